/*
 * counters.h
 *	  Outcomes of programs: those that gpujoind has yet to be told of, and all.
 */
#ifndef GJ_CLIENT_COUNTERS_H
#define GJ_CLIENT_COUNTERS_H

#include "client.h"

/* Tells gpujoind what it does not know of yet, if it is there. */
extern void gj_counters_tell(void);

/*
 * All counts of the server, and those of this session that gpujoind was not told of.
 * False with the reason if gpujoind did not tell its own.
 */
extern bool gj_counters_read(GjCounter counters[GJ_NREASONS], GjFailure *failure);

#endif							/* GJ_CLIENT_COUNTERS_H */
