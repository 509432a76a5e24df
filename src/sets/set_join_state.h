/*
 * set_join_state.h
 *	  A set join that runs, shared by set_join_run.c and set_join_process.c.
 */
#ifndef GJ_SETS_SET_JOIN_STATE_H
#define GJ_SETS_SET_JOIN_STATE_H

#include "client/client.h"
#include "device/set_intersections.h"
#include "sets/set_blocks.h"
#include "sets/set_join.h"

struct GjSetJoin
{
	const GjSets *sets;
	GjSetSpec	spec;			/* its families are those of the block */
	GjSetBlocks blocks;
	uint64		room;			/* for the sets of a block on the device; 0: none is done there */
	MemoryContext cxt;			/* of the block */
	GjSetJoinStats stats;
	uint64		nbefore;		/* pairs that the blocks before have returned */

	/* the batch that is being handed out */
	const uint32 *left;
	const uint32 *right;
	const uint32 *common;
	const char *elements;		/* of distinct intersections, with the next one instead */
	const int64 *frequency;
	uint32		n;
	uint32		at;

	/* distinct: NULL, or of each set the number of the first one that has another id */
	uint32	   *behind;
	/* an intersection of several batches, or of the process */
	char	   *set;
	uint64		set_n;
	uint64		set_room;

	/* on the device */
	GjClient   *client;			/* NULL: in the process */
	GjLayout	load[2];
	GjColumnPlace load_place[2];
	GjLayout	output;
	GjColumnPlace output_place[3];
	int			source;			/* being loaded: 1, 0, then -1 */
	uint64		sent;			/* rows of it */
	bool		batch;			/* there is one, ... */
	uint32		slot;			/* ... here */

	/* in the process */
	bool		built;
	bool		begun;			/* `tile` is one of the family's */
	GjSetHost	host;
	GjSetFamily family;
	GjSetTile	tile;
	uint32	   *out[3];
	/* distinct: the intersections of a part, how many there is room for, and what pairs of a tile need */
	GjIntersections found;
	uint64		found_room;
	uint64		span;			/* of a part */
	GjFoundPairs pairs;
	uint32		next;			/* to be handed out */
};

/* Elements of the left (0) or right (1) sets of the block; with itself they are all left. */
static inline uint64
gj_join_block_elements(const GjSetJoin *join, int side)
{
	const GjSetBlock *block = &join->blocks.block;

	if (side == 0)
		return gj_set_block_elements(join->sets, block->left, block->nleft);
	return block->self ? 0 : gj_set_block_elements(join->sets, block->right, block->nright);
}

static inline uint32
gj_join_block_sets(const GjSetJoin *join)
{
	const GjSetBlock *block = &join->blocks.block;

	return block->nleft + (block->self ? 0 : block->nright);
}

/* Elements of set i of the block, its left sets first. */
static inline int32
gj_join_set_size(const GjSetJoin *join, uint32 i)
{
	const GjSetBlock *block = &join->blocks.block;
	uint32		set = i < block->nleft ? block->left + i : block->right + (i - block->nleft);

	return join->sets->offset[set + 1] - join->sets->offset[set];
}

/* set_join_process.c: pairs of the block's next tile become the batch; false: there is no more. */
extern bool gj_set_process_tile(GjSetJoin *join);
/* The same of distinct intersections, one at a time. */
extern bool gj_set_process_found(GjSetJoin *join, GjElements *set, int64 *frequency);
/* Makes room for n elements of join->set, which keeps what it has. */
extern void gj_set_join_grow(GjSetJoin *join, uint64 n);

#endif							/* GJ_SETS_SET_JOIN_STATE_H */
