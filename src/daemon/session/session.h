/*
 * session.h
 *	  Connections of backends.
 */
#ifndef GJ_DAEMON_SESSION_SESSION_H
#define GJ_DAEMON_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Connections of the listening socket that want this incarnation are served from gj_sessions_start
 * on.  Returns a descriptor that can be read when that is to be called again, or -1.
 */
extern int	gj_sessions_open(int listener, uint64_t incarnation);

/*
 * Starts as many threads as there should be, each of which serves one connection after the other.
 * False: not all could be started.
 */
extern bool gj_sessions_start(void);

#endif							/* GJ_DAEMON_SESSION_SESSION_H */
