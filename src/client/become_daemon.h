/*
 * become_daemon.h
 *	  How a child of the launcher becomes gpujoind.
 */
#ifndef GJ_CLIENT_BECOME_DAEMON_H
#define GJ_CLIENT_BECOME_DAEMON_H

/* What gpujoind is started with, beside the settings. */
typedef struct GjDaemonStart
{
	const char *path;			/* of its program */
	int			parent_fd;		/* end of a socket pair: its descriptor 3 */
	int			journal_fd;		/* its descriptor 4; -1: none */
	int			log_fd;			/* its standard output and error */
	uint64		incarnation;
	bool		blame;			/* the last one crashed */
} GjDaemonStart;

/* Runs gpujoind in this process; on failure, the process ends. */
extern void gj_become_daemon(const GjDaemonStart *start) __attribute__((noreturn));

#endif							/* GJ_CLIENT_BECOME_DAEMON_H */
