/*
 * run_parcel.h
 *	  Rows that a run sends to the runs of other devices; see run_split.c.
 */
#ifndef GJ_DAEMON_RUN_PARCEL_H
#define GJ_DAEMON_RUN_PARCEL_H

#include "executor.h"
#include "work.h"

/*
 * Rows of one source on the sender's device, part by part.  The sender writes it while it has
 * no user; then the runs of all parts that have rows here read it, each its own.
 */
struct GjParcel
{
	uint32_t	nusers;			/* guarded by the team's lock */
	uint32_t	source;
	GjDeviceEntry *entry;		/* where it lies */
	GjColumn   *columns;		/* of the source; data is NULL if nobody reads it */
	uint32_t	start[GJ_SPLIT_PARTS + 2];	/* part p: rows start[p] .. start[p+1]-1 */
	uint64_t	heap_start[GJ_SPLIT_PARTS + 1]; /* and these bytes of the heap, to which its
												 * references are relative */
	GjBuffer	memory;			/* of the columns */
	GjBuffer	heap;
};

#endif							/* GJ_DAEMON_RUN_PARCEL_H */
