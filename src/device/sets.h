/*
 * sets.h
 *	  What set operators take: pairs of sets, families of them, intersections.  For device.h.
 */
#ifndef GJ_DEVICE_SETS_H
#define GJ_DEVICE_SETS_H

#include <stdbool.h>

#include "wire/program.h"
#include "memory.h"
#include "table.h"

/* Two sorted, unique arrays of integers of `width` bytes (2, 4 or 8), device memory. */
typedef struct GjSetPair
{
	const void *a;
	uint64_t	na;
	const void *b;
	uint64_t	nb;
	uint32_t	width;
	uint8_t		operation;		/* GjSetOperation */
	uint8_t		algorithm;		/* GjSetAlgorithm */
} GjSetPair;

/*
 * From this ratio of sizes on, looking up the smaller set is faster than merging both;
 * kernel_test --bench-sets prints a fitted value.
 */
#define GJ_SET_SKEW			32

/* The algorithm for a pair: what was asked for, if it can do it, or what the sizes suggest. */
static inline uint8_t
gj_set_pair_algorithm(const GjSetPair *pair)
{
	const uint64_t small = pair->na < pair->nb ? pair->na : pair->nb;
	const uint64_t large = pair->na < pair->nb ? pair->nb : pair->na;

	if (pair->operation != GJ_SETS_INTERSECT || pair->algorithm >= GJ_SETS_INVERTED_INDEX)
		return GJ_SETS_MERGE_PATH;
	if (pair->algorithm != GJ_SETS_AUTO)
		return pair->algorithm;
	return large / GJ_SET_SKEW >= small ? GJ_SETS_BINARY_SEARCH : GJ_SETS_MERGE_PATH;
}

/* A column of integer arrays, taken for sets. */
typedef struct GjArrayColumn
{
	uint32_t	column;
	uint8_t		width;			/* of the elements: 2, 4 or 8 */
	uint8_t		nulls;			/* GjNullElements; array_sizes looks at it */
} GjArrayColumn;

/* Sets as they were loaded: sizes, and the elements of one set after the other. */
typedef struct GjSetInput
{
	const int32_t *size;
	uint32_t	nsets;
	void	   *values;
	uint64_t	nvalues;
	uint32_t	width;			/* 2, 4 or 8 */
	/*
	 * An element can be in a set several times, and pairs of equal elements are counted; fewer
	 * than 2^31 elements, and the predicate is OVERLAP.  Only INVERTED_INDEX does that: it is the
	 * family's algorithm.  The caller knows that no count reaches 2^32.
	 */
	bool		multiple;
} GjSetInput;

/*
 * Sets of element codes, read-only once built.  Code c stands for the element that is the
 * c-th most frequent: what most sets have is at the beginning of each set and of each
 * bitmap row, and what is rare at the end.  All arrays are device memory.
 */
typedef struct GjSetFamily
{
	uint32_t	nsets;			/* of both families */
	uint32_t	nleft;			/* the left one is sets 0 .. nleft-1 */
	uint32_t	first_right;	/* the right one is sets first_right .. nsets-1 */
	uint32_t	nright;
	uint64_t	nelements;
	uint32_t	universe;		/* codes are 0 .. universe-1 */
	uint32_t	max_size;		/* of a set */
	uint8_t		algorithm;		/* GjSetAlgorithm, never AUTO */
	uint8_t		multiple;		/* see GjSetInput */
	uint64_t   *offset;			/* [nsets + 1] */
	uint32_t   *code;			/* [nelements], ascending within a set */
	/* INVERTED_INDEX, MATRIX: which right sets have an element, numbers ascending */
	uint64_t   *posting_offset; /* [universe + 1] */
	uint32_t   *posting;
	uint64_t	nposting;
	/* MATRIX: codes below it are columns of the matrix, a multiple of GJ_SET_DENSE_STEP */
	uint32_t	ndense;
	/* pairs of a tile, at most: what is best for the device; the caller of set_build may set any of
	 * GJ_MAX_TUPLES to GJ_SET_MOST_PAIRS */
	uint32_t	tile_pairs;
} GjSetFamily;

#define GJ_SET_DENSE_STEP	64
#define GJ_SET_MOST_PAIRS	(4 * GJ_MAX_TUPLES)

typedef struct GjSetTile
{
	uint32_t	left;
	uint32_t	nleft;
	uint32_t	right;
	uint32_t	nright;
} GjSetTile;

/*
 * Distinct intersections of pairs of a family that have been found so far, each told by one
 * pair that has it, and a hash table over them: open addressing, a slot holds 32 bits of
 * the hash and a number.  While pairs are looked up, numbers from n on stand for pairs whose
 * intersection is new: the first of each to arrive.  Equal hashes are not believed: the
 * elements are compared.  All arrays are device memory.
 */
typedef struct GjIntersections
{
	uint32_t	n;
	uint64_t	nslots;			/* at least twice what the table holds, below 2^32 */
	uint64_t   *slots;
	uint64_t   *hash;			/* the others: of each intersection */
	uint32_t   *left;			/* a pair, as set_tile numbers sets */
	uint32_t   *right;
	uint32_t   *common;			/* elements */
	uint64_t   *frequency;		/* pairs that have it */
	/* only those whose gj_intersection_part() is first .. last are looked at */
	uint64_t	first;
	uint64_t	last;
} GjIntersections;

/* Pairs as set_tile writes them, and what intersections_find knows of each. */
typedef struct GjFoundPairs
{
	uint32_t	n;				/* at most GJ_MAX_TUPLES */
	const uint32_t *left;
	const uint32_t *right;
	const uint32_t *common;
	const uint32_t *behind;		/* NULL, or of each left set: pairs with right sets before this
								 * one are not looked at */
	uint64_t   *hash;
	uint32_t   *slot_of;		/* UINT32_MAX: it is not looked at */
	uint32_t   *positions;		/* of those that are to become intersections */
} GjFoundPairs;

/* Sets: pairs, families and intersections. */
typedef struct GjSetOps
{
	/*
	 * Sorts n integers of `width` bytes (2, 4 or 8) ascending and removes duplicates,
	 * in place.  *n_unique host.  May work for long: asks stop(arg).  Waits.
	 */
	GjStatus	(*sort_unique) (GjQueue *queue, void *values, uint32_t width, uint64_t n,
								bool (*stop) (void *), void *arg, uint64_t *n_unique);

	/*
	 * One pair of sets: what pair->operation makes of two sorted, unique arrays,
	 * ascending, into result (room for the smaller of na and nb for INTERSECT, na + nb for
	 * UNION, na for EXCEPT), or only counted if result is NULL.  pair->algorithm is for
	 * INTERSECT; the others merge.  *n host.  May work for long: asks stop(arg).  Waits.
	 * (Merge path: Green, McColl, Bader, "GPU Merge Path", ICS 2012.)
	 */
	GjStatus	(*set_pair) (GjQueue *queue, const GjSetPair *pair, bool (*stop) (void *),
							 void *arg, void *result, uint64_t *n);

	/*
	 * Sets of the integer arrays in `column` (GjArrayColumn), for tuples first .. first+n-1
	 * of the view.  null[i] = 1 if tuple i has none, else 0; size[i] = its elements that are
	 * not NULL, duplicates too, or 0; *total (host) = all of them.  Waits.
	 */
	GjStatus	(*array_sizes) (GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
								const GjArrayColumn *column, int32_t *size, uint8_t *null,
								uint64_t *total);

	/*
	 * The elements of all tuples of the view, whose sizes array_sizes has found, one set after
	 * the other, ascending and without duplicates, into values (room for all, column->width
	 * each).  size[i] becomes the size of set i, *nvalues (host) their sum.  May work for
	 * long: asks stop(arg).  Waits.
	 */
	GjStatus	(*array_sets) (GjQueue *queue, const GjView *view, const GjArrayColumn *column,
							   int32_t *size, void *values, bool (*stop) (void *), void *arg,
							   uint64_t *nvalues);

	/*
	 * flags[i] = 1 if row i of keys->nrows differs from row i - distance in one of the values
	 * 0 .. nkeys-1 of keys, or there is no such row; else 0.  keys->null is not read.
	 */
	GjStatus	(*flag_changes) (GjQueue *queue, const GjKeys *keys, uint32_t nkeys,
								 uint32_t distance, uint8_t *flags);

	/* size[i] = starts[i+1] - starts[i] for i < n, starts[n] being nrows. */
	GjStatus	(*run_sizes) (GjQueue *queue, const uint32_t *starts, uint32_t n, uint32_t nrows,
							  int32_t *size);

	/*
	 * Makes a family of what sets->size and sets->values hold (device memory; values are
	 * lost), and what spec->algorithm needs besides.  GJ_BAD_PROGRAM if the sizes do not
	 * add up.  The family is given back by set_free, also after a failure.  May work for
	 * long: asks stop(arg).  Waits.
	 */
	GjStatus	(*set_build) (GjQueue *queue, const GjSetInput *sets, const GjSetSpec *spec,
							  bool (*stop) (void *), void *arg, GjSetFamily *family);
	void		(*set_free) (GjQueue *queue, GjSetFamily *family);

	/*
	 * The pairs of a tile that spec wants, in the order of left, then right (top_k: then
	 * rank), into device arrays with room for family->tile_pairs entries.  A tile is left sets
	 * left .. left+nleft-1 times right sets right .. right+nright-1, numbered within their
	 * families, and has no more pairs than that (src/device/set_plan.h makes the tiles).  *n host.
	 * May work for long, where sets are large: asks stop(arg).  Waits.
	 */
	GjStatus	(*set_tile) (GjQueue *queue, const GjSetFamily *family, const GjSetSpec *spec,
							 const GjSetTile *tile, bool (*stop) (void *), void *arg,
							 uint32_t *const out[3], uint32_t *n);

	/* Clears the table, which has room for them, and enters all intersections. */
	GjStatus	(*intersections_rehash) (GjQueue *queue, const GjIntersections *found);

	/*
	 * Looks up the pairs that have common elements, and whose intersection belongs to the part:
	 * their hash and slot_of.  positions[0 .. *n) = pairs that are to become intersections,
	 * ascending.  *n host.  May work for long, where sets are large: asks stop(arg).  Waits.
	 */
	GjStatus	(*intersections_find) (GjQueue *queue, const GjSetFamily *family,
									   const GjIntersections *found, const GjFoundPairs *pairs,
									   bool (*stop) (void *), void *arg, uint32_t *n);

	/*
	 * Makes pairs positions[0 .. n) intersections number found->n, ..., for which there is room,
	 * and counts all pairs that were looked up.
	 */
	GjStatus	(*intersections_add) (GjQueue *queue, const GjIntersections *found,
									  const GjFoundPairs *pairs, uint32_t n);

	/*
	 * Elements of intersections first, first + 1, ...: as many, up to max, as have no more than
	 * `room` elements together, but at least one.  at[0 .. *n] (device, room for max + 1) = where
	 * the elements of each start, counted from 0; *n and *total = at[*n] are host.  Waits.
	 */
	GjStatus	(*intersections_place) (GjQueue *queue, const GjIntersections *found,
										uint32_t first, uint32_t max, uint64_t room,
										uint64_t *at, uint32_t *n, uint64_t *total);

	/*
	 * Writes the elements of intersections first .. first+n-1 where `at` says, each ascending.
	 * `elements` are those of all sets of the family as they were before set_build took them,
	 * `width` bytes each.  frequency[i] = 0, but the intersection's for its last element.  May
	 * work for long, where sets are large: asks stop(arg).
	 */
	GjStatus	(*intersections_write) (GjQueue *queue, const GjSetFamily *family,
										const GjIntersections *found, const void *elements,
										uint32_t width, uint32_t first, uint32_t n,
										const uint64_t *at, bool (*stop) (void *), void *arg,
										void *values, int64_t *frequency);
} GjSetOps;

#endif							/* GJ_DEVICE_SETS_H */
