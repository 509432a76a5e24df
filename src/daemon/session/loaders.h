/*
 * loaders.h
 *	  Connections that load the sources of one run together.
 *
 * The session that runs a program is its first loader.  Workers of its backend attach
 * with connections of their own, as long as the run is open to them.  From then on
 * the thread of the run reads their sockets and rings; their own threads wait until the
 * run lets them go.
 */
#ifndef GJ_DAEMON_SESSION_LOADERS_H
#define GJ_DAEMON_SESSION_LOADERS_H

#include "state.h"

/*
 * Thread of the run: makes it known, so that others can attach, and sets its token.
 * GJ_OUT_OF_HOST_MEMORY with *why if that fails.
 */
extern GjStatus gj_loaders_open(GjSession *run, GjErrorText *why);

/*
 * Thread of the run: how many loaders there are now; run->loaders[] below that number does
 * not change.
 */
extern uint32_t gj_loaders_count(GjSession *run);

/* Thread of the run: nobody attaches any more, and those who are can stop. */
extern void gj_loaders_close(GjSession *run);

/* Thread of the run: it uses no ring and no socket but its own any longer. */
extern void gj_loaders_release(GjSession *run);

/*
 * Thread of the other session: attaches it to the run that the ATTACH message names, and
 * waits until that lets it go.
 */
extern void gj_loaders_attach(GjSession *session);

#endif							/* GJ_DAEMON_SESSION_LOADERS_H */
