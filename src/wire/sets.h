/*
 * sets.h
 *	  What programs over sets of integers ask for: GJ_PROGRAM_INTERSECT (one pair of
 *	  sets) and GJ_PROGRAM_SETS (all pairs of one or two families).
 *
 * A family travels as two sources: source 0 has one int4 column, the number of elements
 * of each set, and source 1 one integer column, the elements of all sets, one set after
 * the other, ascending and without duplicates within a set.  The sets of the left family
 * come first, then those of the right one; with `self` there is one family, and it is
 * both.  The output has three uint4 columns: the number of the left set, that of the
 * right set (each counted from 0 within its family), and their common elements.  None of
 * them uses the byte heap: a batch has the GjSetAlgorithm that made it in heap_used.
 *
 * With `distinct` the output are the distinct intersections of these pairs that are not
 * empty, each once: two columns with a row an element, the element, in the kind of the
 * sets, ascending within an intersection, and an int8, which is 0 but for the last element
 * of an intersection.  There it is the number of pairs that have this intersection.  An
 * intersection can begin in one batch and end in a later one.
 */
#ifndef GJ_WIRE_SETS_H
#define GJ_WIRE_SETS_H

#include <assert.h>
#include <stdint.h>

/* gpujoin.set_algorithm; the same names in SQL, files and kernels. */
typedef enum GjSetAlgorithm
{
	GJ_SETS_AUTO,
	GJ_SETS_MERGE_PATH,
	GJ_SETS_BINARY_SEARCH,
	GJ_SETS_HASH,
	GJ_SETS_BITMAP,
	GJ_SETS_INVERTED_INDEX,		/* of one pair: merge_path */
	GJ_SETS_MATRIX,				/* of one pair: merge_path */
	GJ_SETS_NALGORITHMS
} GjSetAlgorithm;

typedef enum GjSetOperation
{
	GJ_SETS_INTERSECT,
	GJ_SETS_UNION,
	GJ_SETS_EXCEPT				/* elements of the first that are not in the second */
} GjSetOperation;

/* Which pairs are wanted; `threshold` counts where it says so. */
typedef enum GjSetPredicate
{
	GJ_SETS_OVERLAP,			/* at least `threshold` common elements */
	GJ_SETS_CONTAINS,			/* the left set contains the right one */
	GJ_SETS_CONTAINED,
	GJ_SETS_EQUALS,
	GJ_SETS_JACCARD,			/* these: a similarity of at least `threshold` */
	GJ_SETS_COSINE,
	GJ_SETS_DICE,
	GJ_SETS_OVERLAP_COEFFICIENT,
	GJ_SETS_CONTAINMENT,
	GJ_SETS_ALL,				/* every pair */
	GJ_SETS_NPREDICATES
} GjSetPredicate;

typedef struct GjSetSpec
{
	uint8_t		algorithm;		/* GjSetAlgorithm */
	uint8_t		operation;		/* GjSetOperation: of GJ_PROGRAM_INTERSECT */
	uint8_t		predicate;		/* GjSetPredicate: the rest is of GJ_PROGRAM_SETS */
	uint8_t		self;			/* one family with itself: each pair once, left < right;
								 * if top_k > 0, both ways */
	uint32_t	top_k;			/* > 0: of each left set the top_k right sets of the
								 * highest score (the similarity of `predicate`, or the
								 * number of common elements), lower numbers first where
								 * scores are equal, only those with common elements; of
								 * each tile: the backend puts tiles together */
	uint32_t	nleft;			/* sets of the left family */
	uint32_t	nright;			/* of the right one; 0 with `self` */
	double		threshold;
	uint8_t		distinct;		/* distinct intersections instead of pairs; then top_k = 0 */
	uint8_t		behind;			/* distinct, self: source 0 has twice as many rows; behind the
								 * sizes are, for each set, the number of the first set with
								 * which it makes a pair, those before it left out */
	uint8_t		unused[6];
} GjSetSpec;

static_assert(sizeof(GjSetSpec) == 32, "GjSetSpec");

#endif							/* GJ_WIRE_SETS_H */
