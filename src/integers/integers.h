/*
 * integers.h
 *	  Arrays of int2, int4 or int8 as sets, on one core.
 *
 * A set here is an array that is sorted and has no duplicates.  Arrays of elements are aligned
 * to their width, which is 2, 4 or 8 bytes.
 *
 * Where elements are written, up to GJ_INTEGERS_SLACK bytes behind the last one are written as
 * well: the caller has room for them.
 *
 * The module allocates nothing by itself, keeps nothing between calls and holds no lock, so a
 * pause() that leaves by longjmp does no harm to it.
 */
#ifndef GJ_INTEGERS_H
#define GJ_INTEGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/sets.h"

#define GJ_INTEGERS_SLACK	64	/* bytes */

/* Arrays of at most so many elements need no memory to become sets. */
#define GJ_INTEGERS_FEW		64

/* The instructions that are used.  What the processor does not have becomes AUTO. */
typedef enum GjIntegersCode
{
	GJ_CODE_AUTO,				/* the best that the processor has */
	GJ_CODE_PLAIN,
	GJ_CODE_NEON,
	GJ_CODE_AVX2,
	GJ_CODE_AVX512,
	GJ_NCODES
} GjIntegersCode;

/* Chooses for the whole process; without a call it is AUTO. */
extern void gj_integers_use(GjIntegersCode code);

/* What the module gets from its caller. */
typedef struct GjIntegersHost
{
	void	   *(*allocate) (size_t nbytes);	/* NULL: there is none */
	void		(*release) (void *memory);
	void		(*pause) (void);	/* called every millisecond or so; may not return */
} GjIntegersHost;

/* What is to be known of two arrays. */
typedef enum GjIntegersWant
{
	GJ_WANT_ELEMENTS,			/* the result */
	GJ_WANT_COUNT,				/* how many elements it has */
	GJ_WANT_ANY					/* whether it has one; of GJ_SETS_INTERSECT only */
} GjIntegersWant;

/* Two arrays in any order, and what becomes of them. */
typedef struct GjIntegersPair
{
	uint32_t	width;
	GjSetOperation operation;
	GjIntegersWant want;
	bool		sizes[2];		/* wanted, too: how many different elements each has */
	const void *input[2];
	uint64_t	n[2];			/* below 2^32 */
	void	   *result;			/* GJ_WANT_ELEMENTS: room for gj_integers_room() and slack */
	uint64_t	count;			/* GJ_WANT_ANY: not 0 if there is one */
	uint64_t	distinct[2];	/* undefined if not wanted */
} GjIntegersPair;

/* Elements that a result can have at most. */
static inline uint64_t
gj_integers_room(GjSetOperation operation, uint64_t na, uint64_t nb)
{
	return operation == GJ_SETS_UNION ? na + nb :
		operation == GJ_SETS_EXCEPT || na < nb ? na : nb;
}

/* False: there was no memory, and the result is undefined. */
extern bool gj_integers_pair(GjIntegersPair *pair, const GjIntegersHost *host);

/*
 * Makes a set of n (below 2^32) elements in place, with slack behind them, and tells its size.
 * False: there was no memory, and the elements are in any order.
 */
extern bool gj_integers_make_set(uint32_t width, void *elements, uint64_t *n,
								 const GjIntegersHost *host);

/*
 * Sorts n (below 2^32) elements, duplicates and all, in place.  `spare` has room for as many.
 */
extern void gj_integers_sort(uint32_t width, void *elements, void *spare, uint64_t n);

/* Combines two sets; `to` NULL counts.  `to` is apart from both. */
extern uint64_t gj_integers_combine(uint32_t width, GjSetOperation operation, const void *a,
									uint64_t na, const void *b, uint64_t nb, void *to);

#endif							/* GJ_INTEGERS_H */
