/*
 * integers.c
 *	  Two arrays as sets, by the way that suits their sizes, order and values.
 *
 * Sorted arrays are combined piece by piece.  A piece is checked just before it is used, so it
 * comes from memory once.  If an array turns out not to be a set, the work starts again in one of
 * these ways (pair_width.h):
 *
 *	- bitmaps of both, if the values are dense;
 *	- a filter of the small array's hashes, if it is much smaller than the other one;
 *	- sorting both (sort_width.h).
 */
#include <string.h>

#include "code.h"

/* The numbers below were measured with bench/intersect.sh; see bench/RESULTS.md. */

#define GJ_PIECE		4096u	/* elements that are checked at a time */
#define GJ_PAUSE		(1u << 18)	/* elements between two pauses */
#define GJ_GALLOP_RATIO	48u		/* of sizes, from which looking up is faster than comparing */
#define GJ_FILTER_RATIO	8u		/* the same of arrays in any order, against sorting */
#define GJ_FILTER_BITS	64u		/* of a filter, for each element; at least */
#define GJ_FILTER_PASS	4u		/* one in so many elements may pass a filter */
#define GJ_BITMAP_BITS	32u		/* of a bitmap, for each element; at most */
#define GJ_CACHED_BITS	(1u << 25)	/* of a bitmap that the caches hold */
#define GJ_DENSE_BITS	4u		/* of a larger one, for each element; at most */
#define GJ_STACK_WORDS	1024u	/* of a bitmap that needs no memory: enough for int2 */
#define GJ_MERGE_MAX	256u	/* elements up to which merging sorts faster than radix */
#define GJ_DIGIT_BITS	9u		/* at most */
#define GJ_MAX_DIGITS	8u		/* of 64 bits */

static uint64_t
least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
greatest_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void
pause_for(const GjIntegersHost *host)
{
	if (host)
		host->pause();
}

/* Bytes of n elements and slack, so that what follows is aligned. */
static size_t
buffer_size(uint32_t width, uint64_t n)
{
	return (n * width + GJ_INTEGERS_SLACK + 63) / 64 * 64;
}

#define GJ_VALUE int16_t
#define GJ_UVALUE uint16_t
#define GJ_NAME(name) name##_2
#include "sort_width.h"
#include "pair_width.h"

#define GJ_VALUE int32_t
#define GJ_UVALUE uint32_t
#define GJ_NAME(name) name##_4
#include "sort_width.h"
#include "pair_width.h"

#define GJ_VALUE int64_t
#define GJ_UVALUE uint64_t
#define GJ_NAME(name) name##_8
#include "sort_width.h"
#include "pair_width.h"

/* ---- the instructions in use */

static int	code_in_use = GJ_CODE_AUTO;

static GjIntegersCode
best_code(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f"))
		return GJ_CODE_AVX512;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt"))
		return GJ_CODE_AVX2;
	return GJ_CODE_PLAIN;
#elif defined(__aarch64__)
	return GJ_CODE_NEON;
#else
	return GJ_CODE_PLAIN;
#endif
}

static bool
has_code(GjIntegersCode code)
{
	GjIntegersCode best = best_code();

	return code == GJ_CODE_PLAIN || code == best ||
		(code == GJ_CODE_AVX2 && best == GJ_CODE_AVX512);
}

/* Threads that come here first find the same. */
static GjIntegersCode
code(void)
{
	int			found = __atomic_load_n(&code_in_use, __ATOMIC_RELAXED);

	if (found == GJ_CODE_AUTO)
	{
		found = best_code();
		__atomic_store_n(&code_in_use, found, __ATOMIC_RELAXED);
	}
	return (GjIntegersCode) found;
}

void
gj_integers_use(GjIntegersCode wanted)
{
	if (!has_code(wanted))
		wanted = GJ_CODE_AUTO;
	__atomic_store_n(&code_in_use, (int) wanted, __ATOMIC_RELAXED);
}

const GjIntegersLoops *
gj_integers_loops(uint32_t width)
{
	if (width == 2)
		return &gj_integers_plain[0];
	switch (code())
	{
#if defined(__x86_64__)
		case GJ_CODE_AVX2:
			return &gj_integers_avx2[width == 8];
		case GJ_CODE_AVX512:
			return &gj_integers_avx512[width == 8];
#elif defined(__aarch64__)
		case GJ_CODE_NEON:
			return &gj_integers_neon[width == 8];
#endif
		default:
			return &gj_integers_plain[width == 4 ? 1 : 2];
	}
}

/* ---- one function of each width */

bool
gj_integers_pair(GjIntegersPair *pair, const GjIntegersHost *host)
{
	const GjIntegersLoops *loops = gj_integers_loops(pair->width);

	if (pair->width == 2)
		return pair_2(loops, pair, host);
	if (pair->width == 4)
		return pair_4(loops, pair, host);
	return pair_8(loops, pair, host);
}

bool
gj_integers_make_set(uint32_t width, void *elements, uint64_t *n, const GjIntegersHost *host)
{
	const GjIntegersLoops *loops = gj_integers_loops(width);

	if (width == 2)
		return make_set_in_place_2(loops, elements, n, host);
	if (width == 4)
		return make_set_in_place_4(loops, elements, n, host);
	return make_set_in_place_8(loops, elements, n, host);
}

void
gj_integers_sort(uint32_t width, void *elements, void *spare, uint64_t n)
{
	const GjIntegersLoops *loops = gj_integers_loops(width);

	if (width == 2)
		sort_in_place_2(loops, elements, spare, n);
	else if (width == 4)
		sort_in_place_4(loops, elements, spare, n);
	else
		sort_in_place_8(loops, elements, spare, n);
}

uint64_t
gj_integers_combine(uint32_t width, GjSetOperation operation, const void *a, uint64_t na,
					const void *b, uint64_t nb, void *to)
{
	const GjIntegersLoops *loops = gj_integers_loops(width);

	if (width == 2)
		return combine_2(loops, operation, a, na, b, nb, to);
	if (width == 4)
		return combine_4(loops, operation, a, na, b, nb, to);
	return combine_8(loops, operation, a, na, b, nb, to);
}
