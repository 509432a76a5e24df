/*
 * device/set_plan.h
 *	  How a set join is run: the algorithm, and the tiles of its pairs.
 *
 * The thresholds are here.  Those of a GPU are fitted to times of an H200 by kernel_test
 * --bench-sets, which prints new values at its end (cuda/test/bench_sets.cu says how); those of
 * the cpu device to times of one core, of nine shapes of 3 000 sets under seven predicates.
 */
#ifndef GJ_DEVICE_SET_PLAN_H
#define GJ_DEVICE_SET_PLAN_H

#include "device.h"
#include "rows/similarity.h"

/* Up to so many pairs an index is not worth building: pair by pair. */
#define GJ_SET_FEW_PAIRS	64
/* The prefix filter of the index skips much if it leaves out one of so many elements of a set. */
#define GJ_SET_HEAD_PART	2
/*
 * The cpu device and the process: what an element that a pair has in common costs the index, a
 * word of the matrix a pair, and the matrix a pair beside that (ns, all of one core).  Words
 * belong to the matrix if the index would be slower at their elements (gj_set_cpu_matrix).
 */
#define GJ_SET_CPU_COMMON	0.8
#define GJ_SET_CPU_WORD		0.5
#define GJ_SET_CPU_PAIR		3.0
/*
 * On a GPU an element belongs to the matrix if it is in one of GPU_DENSE sets; so many such
 * elements make one worth its tiles.  The products cost next to nothing, but what is rare is
 * counted by the index all the same, so the matrix is worth it where it counts as many elements in
 * a pair, on average; more if the prefix filter would leave many of these out.  With fewer than
 * GPU_LEAST in all pairs its launches take longer than counting them.
 */
#define GJ_SET_GPU_DENSE	128
#define GJ_SET_GPU_MIN_DENSE	16
#define GJ_SET_GPU_COUNTED	0.2
#define GJ_SET_GPU_SKIPPED	1.0
#define GJ_SET_GPU_LEAST	5e6
/*
 * A step of looking the frequent elements of a set up in another costs a GPU about as much as so
 * many along the lists of the index (not measured).  One thread does that, so those of larger sets
 * than this are counted along the lists.
 */
#define GJ_SET_GPU_HEAD_STEP	2
#define GJ_SET_GPU_HEAD_SIZE	4096
/* Right sets of a tile, where all pairs of a tile are worked on alike. */
#define GJ_SET_TILE_SIDE	1024u
/* Those of a tile of a matrix that is large, or for the best k: its left sets are padded. */
#define GJ_SET_MATRIX_SIDE	(GJ_SET_TILE_SIDE * 8)
/* Those of a tile of the best k of each left set: for k up to TILE_SIDE, and for more, because
 * each of the k costs a look at all of them. */
#define GJ_SET_BEST_SIDE	(GJ_SET_TILE_SIDE * 16)
#define GJ_SET_MANY_SIDE	(GJ_SET_TILE_SIDE * 4)
/* Left sets of a tile, where right ones are few. */
#define GJ_SET_MAX_HEIGHT	16384u
/* Elements of left sets, times right sets, in a tile, where pairs are merged: bounds its time. */
#define GJ_SET_TILE_WORK	(UINT64_C(1) << 31)
/* Elements of an average set, above which tiles are small: a tile is counted in one piece. */
#define GJ_SET_LARGE_TILE_SIZE	1024

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
	family->multiple = sets->multiple;
	family->tile_pairs = GJ_MAX_TUPLES;
	return true;
}

/* Elements of an average set. */
static inline uint64_t
gj_set_average(const GjSetFamily *family)
{
	return family->nsets > 0 ? family->nelements / family->nsets : 0;
}

/* A GPU: does the prefix filter of the index leave much out of an average set? */
static inline bool
gj_set_skips_much(const GjSetFamily *family, const GjSetSpec *spec)
{
	const uint64_t average = gj_set_average(family);

	return spec->top_k == 0 && average <= GJ_SET_GPU_HEAD_SIZE &&
		gj_set_min_common(spec->predicate, spec->threshold, average) * GJ_SET_HEAD_PART >= average;
}

/*
 * A GPU: is a matrix of family->ndense columns faster than the index, for frequent elements whose
 * squared frequencies add up to `squares`.
 */
static inline bool
gj_set_gpu_matrix(const GjSetFamily *family, const GjSetSpec *spec, uint64_t squares)
{
	const double nsets = family->nsets;
	const double counted = (double) squares / (nsets * nsets);

	return family->ndense >= GJ_SET_GPU_MIN_DENSE &&
		counted * family->nleft * family->nright >= GJ_SET_GPU_LEAST &&
		counted >= (gj_set_skips_much(family, spec) ? GJ_SET_GPU_SKIPPED : GJ_SET_GPU_COUNTED);
}

/*
 * Sets the algorithm and the columns of its matrix; `matrix`: it is faster than the index for
 * the family->ndense most frequent elements.
 */
static inline void
gj_set_family_choose(GjSetFamily *family, const GjSetSpec *spec, bool matrix)
{
	const uint64_t npairs = (uint64_t) family->nleft * family->nright;

	if (family->multiple)
		family->algorithm = GJ_SETS_INVERTED_INDEX;
	else if (spec->algorithm != GJ_SETS_AUTO)
		family->algorithm = spec->algorithm;
	else if (npairs <= GJ_SET_FEW_PAIRS)
		family->algorithm = family->max_size / GJ_SET_SKEW >= gj_set_average(family) ?
			GJ_SETS_BINARY_SEARCH : GJ_SETS_MERGE_PATH;
	else
		family->algorithm = matrix ? GJ_SETS_MATRIX : GJ_SETS_INVERTED_INDEX;
	if (family->ndense == 0)
		family->ndense = 1;
	family->ndense = (family->ndense + GJ_SET_DENSE_STEP - 1) / GJ_SET_DENSE_STEP *
		GJ_SET_DENSE_STEP;
}

static inline uint32_t
gj_set_least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * The first tile, and the next one; false at the end.  Tiles cover all pairs that are wanted,
 * and the left sets come in order.
 */
static inline bool
gj_set_next_tile(const GjSetFamily *family, const GjSetSpec *spec, GjSetTile *tile, bool first)
{
	const bool triangle = spec->self && spec->top_k == 0;
	/* the index takes a left set against all right ones, but there must not be too many
	 * candidates for the best k of each left set */
	uint32_t	width = spec->top_k > GJ_SET_TILE_SIDE ? GJ_SET_MANY_SIDE :
		family->algorithm == GJ_SETS_MATRIX && (spec->top_k > 0 ||
												family->tile_pairs > GJ_MAX_TUPLES) ?
		GJ_SET_MATRIX_SIDE : spec->top_k > 0 ? GJ_SET_BEST_SIDE :
		family->algorithm == GJ_SETS_INVERTED_INDEX ? family->tile_pairs : GJ_SET_TILE_SIDE;
	uint32_t	height;

	if (family->nleft == 0 || family->nright == 0)
		return false;
	if (first)
		tile->left = tile->right = 0;
	else if (family->nright - tile->right > tile->nright)
	{
		/* of the same left sets */
		tile->right += tile->nright;
		tile->nright = gj_set_least(family->nright - tile->right, width);
		return true;
	}
	else if (family->nleft - tile->left > tile->nleft)
	{
		tile->left += tile->nleft;
		tile->right = triangle ? tile->left : 0;
	}
	else
		return false;
	/* the rows of a triangle become shorter: then more of them make a tile */
	width = gj_set_least(family->nright - tile->right, width);
	height = gj_set_least(family->tile_pairs / width, GJ_SET_MAX_HEIGHT);
	if (family->algorithm < GJ_SETS_INVERTED_INDEX && family->max_size > 0)
	{
		uint64_t	fair = GJ_SET_TILE_WORK / family->max_size / width;

		height = fair < 1 ? 1 : fair < height ? (uint32_t) fair : height;
	}
	tile->nleft = gj_set_least(family->nleft - tile->left, height);
	tile->nright = width;
	return true;
}

#endif							/* GJ_DEVICE_SET_PLAN_H */
