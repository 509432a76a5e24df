/*
 * share.h
 *	  The blocks of a table that are still to be loaded, shared by the processes that load it.
 *
 * Shares of a large table are whole fragments (resident.h), some 32 MB.
 */
#ifndef GJ_SHARE_H
#define GJ_SHARE_H

#include "port/atomics.h"
#include "storage/block.h"

#include "load/resident.h"

/* In the memory of one process, or in shared memory.  All but `next` is constant. */
typedef struct GjBlockShare
{
	BlockNumber nblocks;
	uint32		nloaders;		/* processes that may take shares, for their size */
	uint64		behind;			/* blocks of other tables that come after this one */
	pg_atomic_uint64 next;		/* first block that nobody has taken */
} GjBlockShare;

extern void gj_block_share_init(GjBlockShare *share, BlockNumber nblocks, uint64 behind, uint32 nloaders);

/*
 * Takes blocks *first .. *end-1, at least one, all of one fragment; false if none are left.
 * Who has taken them must load them.
 */
extern bool gj_block_share_next(GjBlockShare *share, BlockNumber *first, BlockNumber *end);

/* True if gj_block_share_next() would find none. */
extern bool gj_block_share_is_empty(GjBlockShare *share);

#endif							/* GJ_SHARE_H */
