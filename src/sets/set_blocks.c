/*
 * set_blocks.c
 *	  Cuts the families of a set join into blocks that fit the device; see set_blocks.h.
 *
 * A block of one family with itself is two ranges of its sets, cut at the same places: so a
 * block has either the same sets on both sides or none twice.
 */
#include "postgres.h"

#include "device/set_join.h"
#include "sets/set_blocks.h"

/* Device memory of an element and of a set, while a family is built of them (sets/sets.c). */
#define GJ_BLOCK_ELEMENT	84
#define GJ_BLOCK_SET		64
/* Elements of a block at most: sources have less than 2^32 rows. */
#define GJ_BLOCK_ELEMENTS	(UINT64CONST(1) << 30)
/* What tiles take: a quarter of what there is, and the pairs of a tile. */
#define GJ_BLOCK_TILE		(UINT64CONST(40) << 20)
#define GJ_BLOCK_PAIRS		(3 * (uint64) GJ_MAX_TUPLES * sizeof(uint32))

uint64
gj_set_blocks_room(uint64 memory)
{
	uint64		used = Min(memory / 4, GJ_BLOCK_TILE) + GJ_BLOCK_PAIRS + memory / 16;

	return memory > used ? memory - used : 0;
}

/* Compute the device memory of the sets first .. end-1. */
static uint64
cost(const GjSets *sets, uint32 first, uint32 end)
{
	return gj_set_block_elements(sets, first, end - first) * GJ_BLOCK_ELEMENT +
		(uint64) (end - first) * GJ_BLOCK_SET;
}

/* Find the end of the range that starts with `first`: as many sets as fit, at least one. */
static uint32
range_end(const GjSets *sets, uint32 first, uint32 last, uint64 room)
{
	uint32		low = first + 1;
	uint32		high = last;

	while (low < high)
	{
		uint32		middle = low + (high - low + 1) / 2;

		if (cost(sets, first, middle) <= room)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

void
gj_set_blocks_start(GjSetBlocks *blocks, const GjSets *sets, bool both_ways, uint64 room)
{
	uint64		left = cost(sets, 0, sets->nleft);
	uint64		right = sets->self ? left : cost(sets, sets->nleft, sets->nsets);

	memset(blocks, 0, sizeof(*blocks));
	blocks->sets = sets;
	blocks->both_ways = both_ways;
	if (room < PG_UINT64_MAX)
		room = Min(room, GJ_BLOCK_ELEMENTS * GJ_BLOCK_ELEMENT);
	if (sets->self && left > room)
		left = right = room / 2;
	else if (!sets->self && left + right > room)
	{
		/* a small family is sent with each block of the other one */
		if (left > room / 2 && right > room / 2)
			left = right = room / 2;
		else if (left <= right)
			right = room - left;
		else
			left = room - right;
	}
	blocks->room[0] = left;
	blocks->room[1] = right;
}

bool
gj_set_blocks_next(GjSetBlocks *blocks)
{
	const GjSets *sets = blocks->sets;
	GjSetBlock *block = &blocks->block;
	uint32		right = block->right + block->nright;

	if (blocks->n == 0 || right == sets->nsets)
	{
		/* the next left sets, with the first right ones */
		block->left += block->nleft;
		if (block->left == sets->nleft)
			return false;
		block->nleft = range_end(sets, block->left, sets->nleft, blocks->room[0]) - block->left;
		right = !sets->self ? sets->nleft : blocks->both_ways ? 0 : block->left;
		if (right == sets->nsets)
			return false;
	}
	block->right = right;
	block->nright = range_end(sets, right, sets->nsets, blocks->room[1]) - right;
	block->self = sets->self && block->right == block->left;
	blocks->n++;
	return true;
}
