/*
 * sets.h
 *	  What set operators take: pairs of sets, families of them, intersections.  For device.h.
 */
#ifndef GJ_DEVICE_SETS_H
#define GJ_DEVICE_SETS_H

#include <stdbool.h>

#include "wire/program.h"

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

#endif							/* GJ_DEVICE_SETS_H */
