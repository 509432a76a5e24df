/*
 * launcher.h
 *	  The background worker that keeps gpujoind running.
 */
#ifndef GJ_CLIENT_LAUNCHER_H
#define GJ_CLIENT_LAUNCHER_H

#include "client.h"

/*
 * Makes sure that there is a launcher, if `start`.  False with the reason if there can be none,
 * or if it waits before it starts gpujoind again.  Does not wait for gpujoind.
 */
extern bool gj_launcher_ensure(bool start, GjFailure *failure);

/*
 * The incarnation of the gpujoind that answers, as far as the launcher knows, or 0; and of the last
 * one that was killed because it gave no sign of life.
 */
extern uint64 gj_launcher_incarnation(uint64 *silent);

/* The library is in shared_preload_libraries. */
extern bool gj_launcher_preloaded(void);

#endif							/* GJ_CLIENT_LAUNCHER_H */
