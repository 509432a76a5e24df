/*
 * kept.h
 *	  Connections whose run has ended, for the next runs of this session.
 *
 * To connect, to greet and to map rings takes as long as a small run.  So a session keeps a few
 * connections, with their rings mapped, for a second.
 */
#ifndef GJ_CLIENT_KEPT_H
#define GJ_CLIENT_KEPT_H

#include "client/connection.h"

/*
 * Keeps a connection whose run was told to be done, and which owes gpujoind nothing.  False: the
 * caller still has it.
 */
extern bool gj_kept_put(GjConnection *connection);

/*
 * The one that was kept last, of this kind of device, now in the current memory context; NULL:
 * there is none.  gpujoind may have closed it meanwhile.
 */
extern GjConnection *gj_kept_take(uint32 kind);

#endif							/* GJ_CLIENT_KEPT_H */
