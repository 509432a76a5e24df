/*
 * order.h
 *	  The order of rows and groups by sort keys.
 */
#ifndef GJ_DEVICE_ORDER_H
#define GJ_DEVICE_ORDER_H

#include "device.h"
#include "rows/aggregate.h"
#include "rows/sorted.h"

/* A value as it is sorted by, so that smaller ones come first; its own inverse. */
GJ_FN int64_t
gj_order_value(int64_t value, uint32_t descending, uint32_t k)
{
	return descending >> k & 1 ? ~value : value;
}

/* < 0 if row i comes before row j, 0 if they are equal. */
GJ_FN int
gj_order_rows(const GjKeys *keys, uint32_t descending, uint32_t i, uint32_t j)
{
	for (uint32_t k = 0; k < keys->nkeys; k++)
	{
		int64_t		a = gj_order_value(keys->value[k][i], descending, k);
		int64_t		b = gj_order_value(keys->value[k][j], descending, k);

		if (a != b)
			return a < b ? -1 : 1;
	}
	return 0;
}

/* True if row i, which is not before the last row wanted, is a tie of it. */
GJ_FN bool
gj_order_ties(const GjKeys *keys, uint32_t descending, uint32_t slack, uint32_t i, uint32_t last)
{
	for (uint32_t k = 0; k < keys->nkeys; k++)
	{
		int64_t		a = gj_order_value(keys->value[k][i], descending, k);
		int64_t		b = gj_order_value(keys->value[k][last], descending, k);

		if (a != b)
			return k == keys->nkeys - 1 && a > b && (uint64_t) a - (uint64_t) b <= slack;
	}
	return true;
}

/* True if the bound lets row i pass. */
GJ_FN bool
gj_order_passes(const GjKeys *keys, const GjSortLimit *wanted, uint32_t i)
{
	for (uint32_t k = 0; k < keys->nkeys; k++)
	{
		int64_t		a = gj_order_value(keys->value[k][i], wanted->descending, k);
		int64_t		b = gj_order_value(wanted->bound[k], wanted->descending, k);

		if (a != b)
			return a < b;
	}
	return wanted->ties;
}

/*
 * An average of integers as it is sorted by is off by a few units of the last digit, and
 * PostgreSQL rounds its own to no fewer digits than a double has.  What is later than the last
 * one wanted by more than this many such units is later for PostgreSQL, too.
 */
#define GJ_AVG_SLACK		64

/* A 128-bit integer, but for a few units of the last digit. */
GJ_FN double
gj_int128_to_double(uint64_t lo, int64_t hi)
{
	bool		negative = hi < 0;
	uint64_t	low = negative ? ~lo + 1 : lo;
	uint64_t	high = negative ? ~(uint64_t) hi + (low == 0) : (uint64_t) hi;
	double		value = (double) high * 18446744073709551616.0 + (double) low;

	return negative ? -value : value;
}

/* The value of group g by a sort key that is no check. */
GJ_FN int64_t
gj_group_sort_value(const GjGroups *groups, const GjSortKey *key, uint32_t g)
{
	const GjAggState *state;

	if (key->of <= GJ_SORT_KEY_NULL)
	{
		bool		null = groups->rows.null[g] >> key->index & 1;

		if (key->of == GJ_SORT_KEY_NULL)
			return null;
		return null ? 0 : gj_ordered_bits(groups->rows.value[key->index][g],
										  groups->rows.how[key->index] == GJ_GROUP_FLOAT);
	}
	state = &groups->state[key->index][g];
	if (key->of == GJ_SORT_COUNT)
		return state->count;
	if (key->of == GJ_SORT_NONE)
		return state->count == 0;
	/* a count made of a sum is 0 then, and no key before tells it apart */
	if (state->count == 0)
		return key->of == GJ_SORT_SUM_LOW ? INT64_MIN : 0;
	switch (key->of)
	{
		case GJ_SORT_SUM_LOW:
			/* it has no sign: the smallest is the smallest integer */
			return (int64_t) (state->lo ^ UINT64_C(0x8000000000000000));
		case GJ_SORT_FLOAT:
			return gj_ordered_bits(gj_double_to_bits(state->f), true);
		case GJ_SORT_FLOAT4:
			return gj_ordered_bits(gj_double_to_bits((double) (float) state->f), true);
		case GJ_SORT_FLOAT_AVG:
			return gj_ordered_bits(gj_double_to_bits((state->f + 0.0) / (double) state->count),
								   true);
		case GJ_SORT_AVG:
			return gj_ordered_bits(gj_double_to_bits(gj_int128_to_double(state->lo, state->hi) /
													 (double) state->count), true);
		default:				/* SUM_HIGH, INTEGER */
			return state->hi;
	}
}

/* True if a check finds that PostgreSQL must compute the aggregates of group g itself. */
GJ_FN bool
gj_group_sort_fails(const GjGroups *groups, const GjSortKey *key, uint32_t g)
{
	const GjAggState *state = &groups->state[key->index][g];

	if (state->count == 0)
		return false;
	switch (key->of)
	{
		case GJ_SORT_CHECK_INT8:
			return state->hi != (int64_t) state->lo >> 63;
		case GJ_SORT_CHECK_FLOAT8:
			return !gj_float_is_finite(state->f);
		case GJ_SORT_CHECK_FLOAT4:
			return !gj_float_is_finite((double) (float) state->f);
		case GJ_SORT_CHECK_AVG:
			return gj_float_avg_fails(state, groups->state[key->index + 1][g].f,
									  groups->state[key->index + 2][g].f);
		case GJ_SORT_CHECK_SPREAD:
			return gj_float_spread_fails(state);
		default:
			return false;
	}
}

#endif							/* GJ_DEVICE_ORDER_H */
