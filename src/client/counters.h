/*
 * counters.h
 *	  How programs ended, for gpujoin_stat.
 */
#ifndef GJ_CLIENT_COUNTERS_H
#define GJ_CLIENT_COUNTERS_H

#include "wire/messages.h"

/* Makes the file of the counts, if it is not there.  For the launcher, before gpujoind starts. */
extern void gj_counters_prepare(void);

/* All counts since the server started, gpujoind's and those of sessions. */
extern void gj_counters_read(GjCounter counters[GJ_NREASONS]);

#endif							/* GJ_CLIENT_COUNTERS_H */
