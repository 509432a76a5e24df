/*
 * sorted.h
 *	  Values as integers in their order, and the place of a tuple in a sorted side.
 *
 * A sorted side has its rows in the order of its columns: the keys, then the range key if
 * there is one.  The rows that match a tuple lie next to each other; two binary searches
 * find them.
 */
#ifndef GJ_ROWS_SORTED_H
#define GJ_ROWS_SORTED_H

#include "hash.h"

/*
 * A value (a register's 64 bits) as an integer: equal values are equal and greater ones are
 * greater, as PostgreSQL compares them (NaN is the greatest float, -0 equals 0).
 */
GJ_FN int64_t
gj_ordered_bits(int64_t value, bool is_float)
{
	int64_t		bits = gj_key_bits(value, is_float);

	/* negative floats ascend as their bits descend */
	return is_float && bits < 0 ? bits ^ INT64_MAX : bits;
}

/* What matches: equal keys, and a value of the row behind them within bounds, if there are any. */
typedef struct GjSortedMatch
{
	uint32_t	nkeys;
	uint8_t		has_low;		/* value nkeys of a tuple is its lower bound */
	uint8_t		has_high;		/* the value after these is its upper bound */
	uint8_t		low_strict;
	uint8_t		high_strict;
} GjSortedMatch;

/* Where row `at` of a sorted side lies: before (-1), among (0) or behind (1) a tuple's matches. */
GJ_FN int
gj_sorted_place(const GjSortedMatch *match, int64_t *const *side, uint32_t at,
				int64_t *const *tuples, uint32_t tuple)
{
	uint32_t	k;
	int64_t		value;

	for (k = 0; k < match->nkeys; k++)
	{
		int64_t		key = tuples[k][tuple];

		value = side[k][at];
		if (value != key)
			return value < key ? -1 : 1;
	}
	if (match->has_low)
	{
		int64_t		low = tuples[k][tuple];

		value = side[match->nkeys][at];
		if (value < low || (match->low_strict && value == low))
			return -1;
		k++;
	}
	if (match->has_high)
	{
		int64_t		high = tuples[k][tuple];

		value = side[match->nkeys][at];
		if (value > high || (match->high_strict && value == high))
			return 1;
	}
	return 0;
}

/* The first of rows low .. high-1 that lies at or behind `place`; high if there is none. */
GJ_FN uint32_t
gj_sorted_search(const GjSortedMatch *match, int64_t *const *side, uint32_t low, uint32_t high,
				 int64_t *const *tuples, uint32_t tuple, int place)
{
	while (low < high)
	{
		uint32_t	mid = low + (high - low) / 2;

		if (gj_sorted_place(match, side, mid, tuples, tuple) < place)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The matches of a tuple among n rows: rows *first .. *first + result - 1. */
GJ_FN uint32_t
gj_sorted_matches(const GjSortedMatch *match, int64_t *const *side, uint32_t n,
				  int64_t *const *tuples, uint32_t tuple, uint32_t *first)
{
	uint32_t	low = gj_sorted_search(match, side, 0, n, tuples, tuple, 0);
	uint64_t	step = 1;
	uint32_t	high;

	/* mostly there are few: look close by first */
	*first = low;
	while (low + step < n && gj_sorted_place(match, side, (uint32_t) (low + step), tuples, tuple) < 1)
		step *= 2;
	high = low + step < n ? (uint32_t) (low + step) : n;
	return gj_sorted_search(match, side, low + (uint32_t) (step / 2), high, tuples, tuple, 1) - low;
}

#endif							/* GJ_ROWS_SORTED_H */
