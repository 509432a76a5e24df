/*
 * aggregate.h
 *	  States of aggregates: start, take a value, merge two.
 *
 * Integer sums are exact: 128 bits.  Float sums may differ in the last digits from a
 * serial sum, as they do in PostgreSQL's parallel plans.  min and max of floats
 * follow PostgreSQL's order (NaN is the greatest).  The first value of a float sum is
 * taken as it is, so that a sum of negative zeros is one.  Squared differences from the mean
 * are added up value by value, as PostgreSQL does it, and merged as its parallel plans do it
 * (Youngs, Cramer: Some results relevant to choice of sum and sum-of-product algorithms, 1971).
 */
#ifndef GJ_ROWS_AGGREGATE_H
#define GJ_ROWS_AGGREGATE_H

#include "wire/program.h"
#include "compare.h"

/* Adds to a number of 128 bits. */
GJ_FN void
gj_add_128(uint64_t *lo, int64_t *hi, uint64_t more_lo, int64_t more_hi)
{
	*lo += more_lo;
	*hi += more_hi + (*lo < more_lo);
}

GJ_FN void
gj_agg_start(GjAggState *state)
{
	state->count = 0;
	state->lo = 0;
	state->hi = 0;
	state->f = 0.0;
}

/* True if `value` replaces what MIN or MAX has; `op` is one of the four. */
GJ_FN bool
gj_agg_better(uint32_t op, int64_t hi, double f, const GjAggState *state)
{
	switch (op)
	{
		case GJ_AGG_MIN_I:
			return hi < state->hi;
		case GJ_AGG_MAX_I:
			return hi > state->hi;
		case GJ_AGG_MIN_F:
			return gj_lt_f(f, state->f);
		default:
			return gj_lt_f(state->f, f);
	}
}

/* Adds a value to a sum of squared differences, but not to the count. */
GJ_FN void
gj_agg_spread(GjAggState *state, double value)
{
	double		n = (double) state->count + 1.0;
	double		sum = gj_bits_to_double(state->hi) + value;

	if (state->count > 0)
	{
		double		difference = value * n - sum;

		state->f += difference * difference / (n * (double) state->count);
	}
	else
		state->f = value - value;	/* NaN if it is not finite */
	state->hi = gj_double_to_bits(sum);
}

/* The same of two states. */
GJ_FN void
gj_agg_merge_spread(GjAggState *into, const GjAggState *from)
{
	double		n = (double) into->count;
	double		m = (double) from->count;
	double		sum = gj_bits_to_double(into->hi);
	double		other = gj_bits_to_double(from->hi);

	if (into->count > 0)
	{
		double		difference = sum / n - other / m;

		into->f += from->f + n * m * difference * difference / (n + m);
		into->hi = gj_double_to_bits(sum + other);
	}
	else
	{
		into->f = from->f;
		into->hi = from->hi;
	}
}

/* Takes one value that is not NULL (a register's 64 bits). */
GJ_FN void
gj_agg_step(uint32_t op, GjAggState *state, int64_t value)
{
	switch (op)
	{
		case GJ_AGG_SUM_I:
			gj_add_128(&state->lo, &state->hi, (uint64_t) value, value >> 63);
			break;
		case GJ_AGG_SUM_SQUARES_I:
			gj_add_128(&state->lo, &state->hi, (uint64_t) value * (uint64_t) value, 0);
			break;
		case GJ_AGG_SUM_SQUARES_HIGH_I:
			gj_add_128(&state->lo, &state->hi, (uint64_t) gj_mulhi_i64(value, value), 0);
			break;
		case GJ_AGG_SPREAD_F:
			gj_agg_spread(state, gj_bits_to_double(value));
			break;
		case GJ_AGG_SUM_F:
			state->f = state->count == 0 ? gj_bits_to_double(value) :
				state->f + gj_bits_to_double(value);
			break;
		case GJ_AGG_MIN_I:
		case GJ_AGG_MAX_I:
			if (state->count == 0 || gj_agg_better(op, value, 0.0, state))
				state->hi = value;
			break;
		case GJ_AGG_MIN_F:
		case GJ_AGG_MAX_F:
			if (state->count == 0 || gj_agg_better(op, 0, gj_bits_to_double(value), state))
				state->f = gj_bits_to_double(value);
			break;
		default:
			break;
	}
	state->count++;
}

/* State of a distinct aggregate (COUNT or SUM) of one value of the distinct key. */
GJ_FN void
gj_agg_distinct(uint32_t op, GjAggState *state, bool null, int64_t value)
{
	gj_agg_start(state);
	state->count = !null;
	if (op != GJ_AGG_SUM_DISTINCT_I || null)
		return;
	state->lo = (uint64_t) value;
	state->hi = value >> 63;
}

GJ_FN bool
gj_agg_is_distinct(uint32_t op)
{
	return op == GJ_AGG_COUNT_DISTINCT || op == GJ_AGG_SUM_DISTINCT_I;
}

GJ_FN bool
gj_float_is_finite(double value)
{
	return value - value == 0.0;
}

/*
 * True if PostgreSQL must compute an average of floats itself: sum, smallest and greatest
 * value.  Infinities and NaNs have rules of their own, and float8_accum() also sums
 * squares, and fails if those overflow.
 */
GJ_FN bool
gj_float_avg_fails(const GjAggState *sum, double smallest, double greatest)
{
	double		low = smallest < 0 ? -smallest : smallest;
	double		high = greatest < 0 ? -greatest : greatest;

	return !gj_float_is_finite(sum->f) ||
		(low > high ? low : high) * (double) sum->count > 1e150;
}

/*
 * The same of a variance of floats.  No value differs from the mean by more than the square
 * root of f, so these bounds keep PostgreSQL's squares, of n times such a difference, finite.
 */
GJ_FN bool
gj_float_spread_fails(const GjAggState *state)
{
	double		sum = gj_bits_to_double(state->hi);
	double		n = (double) state->count;

	return !gj_float_is_finite(sum) || !gj_float_is_finite(state->f) ||
		sum > 1e150 || sum < -1e150 || state->f * n * n > 1e300;
}

/* Adds what one state has seen to another: of parts of the rows, on any device. */
GJ_FN void
gj_agg_merge(uint32_t op, GjAggState *into, const GjAggState *from)
{
	if (from->count == 0)
		return;
	switch (op)
	{
		case GJ_AGG_SUM_I:
		case GJ_AGG_SUM_SQUARES_I:
		case GJ_AGG_SUM_SQUARES_HIGH_I:
		case GJ_AGG_SUM_DISTINCT_I:
			gj_add_128(&into->lo, &into->hi, from->lo, from->hi);
			break;
		case GJ_AGG_SUM_F:
			into->f = into->count == 0 ? from->f : into->f + from->f;
			break;
		case GJ_AGG_SPREAD_F:
			gj_agg_merge_spread(into, from);
			break;
		case GJ_AGG_MIN_I:
		case GJ_AGG_MAX_I:
		case GJ_AGG_MIN_F:
		case GJ_AGG_MAX_F:
			if (into->count == 0 || gj_agg_better(op, from->hi, from->f, into))
			{
				into->hi = from->hi;
				into->f = from->f;
			}
			break;
		default:
			break;
	}
	into->count += from->count;
}

#endif							/* GJ_ROWS_AGGREGATE_H */
