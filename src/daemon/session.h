/*
 * session.h
 *	  One connection of a backend.
 */
#ifndef GJ_DAEMON_SESSION_H
#define GJ_DAEMON_SESSION_H

/*
 * Serves the connected socket in a thread of its own, which closes it.  False: no
 * thread could be started; the socket is still the caller's.
 */
extern bool gj_session_start(int socket);

#endif							/* GJ_DAEMON_SESSION_H */
