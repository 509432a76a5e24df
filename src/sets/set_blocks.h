/*
 * set_blocks.h
 *	  Set joins whose families exceed the device's memory: in blocks of sets that do not.
 */
#ifndef GJ_SETS_SET_BLOCKS_H
#define GJ_SETS_SET_BLOCKS_H

#include "sets/set_join.h"

/* Left sets to be joined with right ones: numbers counted through both families. */
typedef struct GjSetBlock
{
	uint32		left;
	uint32		nleft;
	uint32		right;
	uint32		nright;
	bool		self;			/* they are the same sets: each pair once, or both ways */
} GjSetBlock;

typedef struct GjSetBlocks
{
	const GjSets *sets;
	bool		both_ways;		/* of one family: pairs are wanted both ways */
	uint64		room[2];		/* bytes for the left and for the right sets of a block */
	GjSetBlock	block;			/* the current one */
	uint32		n;				/* blocks so far */
} GjSetBlocks;

/* Device memory, in bytes, for the sets of a block, of a device that has so much; 0: not enough. */
extern uint64 gj_set_blocks_room(uint64 memory);

/*
 * Before the first block.  The blocks together have all pairs that are wanted, each once; the
 * sets of one fit into `room` bytes, unless one set alone is larger.  PG_UINT64_MAX: one block.
 */
extern void gj_set_blocks_start(GjSetBlocks *blocks, const GjSets *sets, bool both_ways, uint64 room);

/* The next block; false at the end. */
extern bool gj_set_blocks_next(GjSetBlocks *blocks);

/* Elements of the sets first .. first+n-1. */
static inline uint64
gj_set_block_elements(const GjSets *sets, uint32 first, uint32 n)
{
	return sets->offset[first + n] - sets->offset[first];
}

#endif							/* GJ_SETS_SET_BLOCKS_H */
