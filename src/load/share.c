/*
 * share.c
 *	  Gives out the blocks of a table to the processes that load it.
 *
 * Shares are large, so that reads stay sequential, and become smaller towards the end, so
 * that all processes finish at about the same time.
 */
#include "postgres.h"

#include "load/share.h"

/* The smallest share, but for the last one of a fragment. */
#define LEAST_BLOCKS		32

/* A share is this part of what each process would get of the rest. */
#define PART_OF_REST		2

void
gj_block_share_init(GjBlockShare *share, BlockNumber nblocks, uint64 behind, uint32 nloaders)
{
	share->nblocks = nblocks;
	share->behind = behind;
	share->nloaders = nloaders;
	pg_atomic_init_u64(&share->next, 0);
}

/* Blocks of a share that starts at block `first`. */
static BlockNumber
share_size(const GjBlockShare *share, BlockNumber first)
{
	BlockNumber rest = share->nblocks - first;
	BlockNumber in_fragment = gj_fragment_end(gj_fragment_of(first), share->nblocks) - first;
	uint64		part = (rest + share->behind) / (share->nloaders * PART_OF_REST);
	BlockNumber size = GJ_FRAGMENT_BLOCKS;

	if (share->nloaders == 1)
		return Min(in_fragment, rest);
	while (size > LEAST_BLOCKS && size > part)
		size /= 2;
	return Min(Min(size, in_fragment), rest);
}

bool
gj_block_share_next(GjBlockShare *share, BlockNumber *first, BlockNumber *end)
{
	uint64		next = pg_atomic_read_u64(&share->next);

	while (next < share->nblocks)
	{
		uint64		after = next + share_size(share, (BlockNumber) next);

		if (!pg_atomic_compare_exchange_u64(&share->next, &next, after))
			continue;
		*first = (BlockNumber) next;
		*end = (BlockNumber) after;
		return true;
	}
	return false;
}

bool
gj_block_share_is_empty(GjBlockShare *share)
{
	return pg_atomic_read_u64(&share->next) >= share->nblocks;
}
