/*
 * set_plan.h
 *	  How a set join is run: the algorithm, and the tiles of its pairs.
 *
 * The thresholds are estimates from the sizes of the work; bench/sets.sh and kernel_test
 * --bench-sets show where they should be.
 */
#ifndef GJ_ROWS_SET_PLAN_H
#define GJ_ROWS_SET_PLAN_H

#include "../daemon/device.h"
#include "similarity.h"

/* Up to so many pairs an index is not worth building: pair by pair. */
#define GJ_SET_FEW_PAIRS	64
/* An index that skips one of so many elements of a set, the most frequent ones, needs no matrix. */
#define GJ_SET_HEAD_PART	4
/* From so many frequent elements on a matrix is worth its tiles. */
#define GJ_SET_MIN_DENSE	64
/* Sides of a tile, where all pairs of a tile are worked on alike. */
#define GJ_SET_TILE_SIDE	1024u
/* Left sets of a tile, where right ones are few. */
#define GJ_SET_MAX_HEIGHT	16384u
/* Elements of left sets, times right sets, in a tile, where pairs are merged: bounds its time. */
#define GJ_SET_TILE_WORK	(UINT64_C(1) << 31)

/* Fills in the numbers of sets.  False: they do not add up. */
static inline bool
gj_set_family_start(GjSetFamily *family, const GjSetInput *sets, const GjSetSpec *spec)
{
	memset(family, 0, sizeof(*family));
	if (spec->nleft > sets->nsets || (!spec->self && spec->nright != sets->nsets - spec->nleft) ||
		(spec->self && spec->nleft != sets->nsets) || sets->nvalues > UINT32_MAX - 1)
		return false;
	family->nsets = sets->nsets;
	family->nleft = spec->nleft;
	family->first_right = spec->self ? 0 : spec->nleft;
	family->nright = sets->nsets - family->first_right;
	family->nelements = sets->nvalues;
	return true;
}

/*
 * Sets the algorithm and the columns of its matrix; family->ndense is the number of elements
 * that are in so many sets that a matrix is faster for them than the index.
 */
static inline void
gj_set_family_choose(GjSetFamily *family, const GjSetSpec *spec)
{
	const uint64_t npairs = (uint64_t) family->nleft * family->nright;
	const uint64_t average = family->nsets > 0 ? family->nelements / family->nsets : 0;
	uint64_t	head = 0;

	/* what the prefix filter of the index leaves out of an average set */
	if (spec->top_k == 0)
		head = gj_set_min_common(spec->predicate, spec->threshold, average);
	if (spec->algorithm != GJ_SETS_AUTO)
		family->algorithm = spec->algorithm;
	else if (npairs <= GJ_SET_FEW_PAIRS)
		family->algorithm = family->max_size / GJ_SET_SKEW >= average ? GJ_SETS_BINARY_SEARCH :
			GJ_SETS_MERGE_PATH;
	else if (family->ndense >= GJ_SET_MIN_DENSE && head * GJ_SET_HEAD_PART < average)
		family->algorithm = GJ_SETS_MATRIX;
	else
		family->algorithm = GJ_SETS_INVERTED_INDEX;
	if (family->ndense == 0)
		family->ndense = 1;
	family->ndense = (family->ndense + GJ_SET_DENSE_STEP - 1) / GJ_SET_DENSE_STEP * GJ_SET_DENSE_STEP;
}

/*
 * The first tile, and the next one; false at the end.  Tiles cover all pairs that are wanted,
 * and the left sets come in order.
 */
static inline bool
gj_set_next_tile(const GjSetFamily *family, const GjSetSpec *spec, GjSetTile *tile, bool first)
{
	const bool triangle = spec->self && spec->top_k == 0;
	/* the index takes a left set against all right ones; the others want square tiles, but
	 * not too many candidates for the best k of each left set */
	uint32_t	width = family->algorithm == GJ_SETS_INVERTED_INDEX ? GJ_MAX_TUPLES :
		spec->top_k > 0 ? GJ_SET_TILE_SIDE * 64 : GJ_SET_TILE_SIDE;
	uint32_t	height;

	if (width > family->nright)
		width = family->nright;
	if (family->nleft == 0 || width == 0)
		return false;
	height = GJ_MAX_TUPLES / width;
	if (height > GJ_SET_MAX_HEIGHT)
		height = GJ_SET_MAX_HEIGHT;
	if (family->algorithm < GJ_SETS_INVERTED_INDEX && family->max_size > 0)
	{
		uint64_t	fair = GJ_SET_TILE_WORK / family->max_size / width;

		height = fair < 1 ? 1 : fair < height ? (uint32_t) fair : height;
	}

	if (first)
		tile->left = tile->right = 0;
	else if (family->nright - tile->right > tile->nright)
		tile->right += tile->nright;
	else if (family->nleft - tile->left > tile->nleft)
	{
		tile->left += tile->nleft;
		tile->right = triangle ? tile->left : 0;
	}
	else
		return false;
	tile->nleft = family->nleft - tile->left < height ? family->nleft - tile->left : height;
	tile->nright = family->nright - tile->right < width ? family->nright - tile->right : width;
	return true;
}

#endif							/* GJ_ROWS_SET_PLAN_H */
