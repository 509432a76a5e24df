/*
 * log.h
 *	  Log lines of gpujoind: to stderr, from where the launcher copies them to the
 *	  server log.  One write per line, so threads do not mix theirs.
 */
#ifndef GJ_DAEMON_BASE_LOG_H
#define GJ_DAEMON_BASE_LOG_H

typedef enum GjLogLevel
{
	GJ_LOG,
	GJ_WARNING,
	GJ_ERROR
} GjLogLevel;

extern void gj_log(GjLogLevel level, const char *format,...) __attribute__((format(printf, 2, 3)));

#endif							/* GJ_DAEMON_BASE_LOG_H */
