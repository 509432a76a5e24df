/*
 * code.h
 *	  What is written for each kind of instructions: loops over one or two arrays.  Only for
 *	  the files of this folder.
 *
 * Elements are aligned to their width.  Sets are sorted and have no duplicates.  What is
 * written has slack behind it (integers.h).
 */
#ifndef GJ_INTEGERS_CODE_H
#define GJ_INTEGERS_CODE_H

#include "integers.h"

#define GJ_INLINE	static inline __attribute__((always_inline))

/* The loops for one width. */
typedef struct GjIntegersLoops
{
	/* Is it a set? */
	bool		(*is_set) (const void *at, uint64_t n);
	/* Is it sorted, with duplicates or without? */
	bool		(*is_sorted) (const void *at, uint64_t n);
	/* The least and the greatest of n > 0 elements. */
	void		(*bounds) (const void *at, uint64_t n, int64_t *least, int64_t *greatest);
	/* Copies sorted elements without their duplicates; `to` may be `from`.  How many are left. */
	uint64_t	(*unique) (void *to, const void *from, uint64_t n);
	/* Makes a set of at most GJ_INTEGERS_FEW elements; `to` may be `from`.  Its size. */
	uint64_t	(*few) (void *to, const void *from, uint64_t n);
	/* Bits that are 1. */
	uint64_t	(*count_bits) (const uint64_t *words, uint64_t n);
	/* Two sets of similar size; the size of the result. */
	uint64_t	(*count) (const void *a, uint64_t na, const void *b, uint64_t nb);
	uint64_t	(*intersect) (const void *a, uint64_t na, const void *b, uint64_t nb, void *to);
	uint64_t	(*except) (const void *a, uint64_t na, const void *b, uint64_t nb, void *to);
	uint64_t	(*unite) (const void *a, uint64_t na, const void *b, uint64_t nb, void *to);
} GjIntegersLoops;

/* What a file makes by a name for each loop. */
#define GJ_LOOPS(name) \
	{ \
		name(is_set), name(is_sorted), name(bounds), name(unique), name(few), \
		name(count_bits), name(count), name(intersect), name(except), name(unite) \
	}

/* Those of widths 2, 4 and 8. */
extern const GjIntegersLoops gj_integers_plain[3];

/* Those of widths 4 and 8. */
#if defined(__x86_64__)
extern const GjIntegersLoops gj_integers_avx2[2];
extern const GjIntegersLoops gj_integers_avx512[2];
#elif defined(__aarch64__)
extern const GjIntegersLoops gj_integers_neon[2];
#endif

/* The loops in use. */
extern const GjIntegersLoops *gj_integers_loops(uint32_t width);

#endif							/* GJ_INTEGERS_CODE_H */
