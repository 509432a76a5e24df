/*
 * aggregate.h
 *	  States of aggregates: start, take a value, merge two.
 *
 * Integer sums are exact: 128 bits.  Float sums may differ in the last digits from a
 * serial sum, as they do in PostgreSQL's parallel plans.  min and max of floats
 * follow PostgreSQL's order (NaN is the greatest).  The first value of a float sum is
 * taken as it is, so that a sum of negative zeros is one.
 */
#ifndef GJ_ROWS_AGGREGATE_H
#define GJ_ROWS_AGGREGATE_H

#include "../wire/program.h"
#include "compare.h"

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

/* Takes one value that is not NULL (a register's 64 bits). */
GJ_FN void
gj_agg_step(uint32_t op, GjAggState *state, int64_t value)
{
	switch (op)
	{
		case GJ_AGG_SUM_I:
			state->lo += (uint64_t) value;
			state->hi += (value >> 63) + (state->lo < (uint64_t) value);
			break;
		case GJ_AGG_SUM_SQUARES_I:
			value *= value;		/* at most 2^62 */
			state->lo += (uint64_t) value;
			state->hi += state->lo < (uint64_t) value;
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
		case GJ_AGG_SUM_DISTINCT_I:
			into->lo += from->lo;
			into->hi += from->hi + (into->lo < from->lo);
			break;
		case GJ_AGG_SUM_F:
			into->f = into->count == 0 ? from->f : into->f + from->f;
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
