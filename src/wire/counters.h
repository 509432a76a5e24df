/*
 * counters.h
 *	  How programs ended since the server started: a file in the data directory.
 *
 * The launcher makes the file, and gpujoind writes what it counts, so counts outlive gpujoind.
 * Sessions read the file, and add what gpujoind does not see.
 */
#ifndef GJ_WIRE_COUNTERS_H
#define GJ_WIRE_COUNTERS_H

#include "wire/messages.h"

#define GJ_COUNTERS_NAME	"gpujoin." GJ_STRINGIFY(GJ_ABI) ".counters"
#define GJ_MAX_COUNTERS		64	/* room for reasons to come */

typedef struct GjCounterFile
{
	int64_t		server_start;	/* of the postmaster; counts of another start are void */
	GjCounter	counted[GJ_MAX_COUNTERS];	/* by gpujoind */
	GjCounter	noted[GJ_MAX_COUNTERS]; /* by sessions, one at a time: the file is locked */
} GjCounterFile;

static_assert(GJ_NREASONS <= GJ_MAX_COUNTERS, "too few counters");

#endif							/* GJ_WIRE_COUNTERS_H */
