/*
 * group_state.cuh
 *	  Aggregates of groups while values are added to them, by many threads at once.
 *
 * Until group_finish states differ from what GjAggState says, so that no step
 * depends on being the first: minima start at the greatest value, a float sum at -0, and
 * floats are compared as integers of the same order, in `hi`.  For a variance the first value that
 * comes is the base, and the differences of all values from it are added up, and their squares: the
 * base is one of the values, so these sums are no larger than the result asks for, give or take
 * the number of values.
 */
#ifndef GJ_CUDA_GROUP_STATE_CUH
#define GJ_CUDA_GROUP_STATE_CUH

#include "rows/aggregate.h"
#include "internal.cuh"

/* The bits of a double as an integer of the same order; every NaN alike and the greatest. */
static __device__ __forceinline__ int64_t
ordered_bits(int64_t bits)
{
	if (gj_isnan(gj_bits_to_double(bits)))
		bits = INT64_C(0x7FF8000000000000);
	return bits ^ ((bits >> 63) & INT64_MAX);
}

/* A variance until group_finish: in `lo` the bits of the base, or this, which is a NaN. */
#define NO_BASE UINT64_MAX

static __device__ __forceinline__ void
start_state(uint32_t op, GjAggState *state)
{
	const bool min = op == GJ_AGG_MIN_I || op == GJ_AGG_MIN_F;
	const bool max = op == GJ_AGG_MAX_I || op == GJ_AGG_MAX_F;

	state->count = 0;
	state->lo = op == GJ_AGG_SPREAD_F ? NO_BASE : 0;
	state->hi = min ? INT64_MAX : max ? INT64_MIN : 0;
	state->f = op == GJ_AGG_SUM_F ? -0.0 : 0.0;
}

/* The base of a variance, which becomes `value` if there is none yet. */
static __device__ __forceinline__ double
take_base(GjAggState *state, double value)
{
	const unsigned long long mine = (unsigned long long) gj_double_to_bits(value);
	unsigned long long base = *(volatile unsigned long long *) &state->lo;

	if (base == NO_BASE)
		base = atomicCAS((unsigned long long *) &state->lo, (unsigned long long) NO_BASE, mine);
	return base == NO_BASE ? value : gj_bits_to_double((int64_t) base);
}

/*
 * Adds n values to a variance: their differences from `base` add up to `sum`, the squares of
 * these to `squares`.
 */
static __device__ __forceinline__ void
add_spread(GjAggState *state, double n, double base, double sum, double squares)
{
	const double shift = base - take_base(state, base);

	atomicAdd((double *) &state->hi, sum + n * shift);
	atomicAdd(&state->f, squares + 2.0 * shift * sum + n * shift * shift);
}

static __device__ __forceinline__ void
add_128(GjAggState *state, uint64_t lo, int64_t hi)
{
	const uint64_t before = atomicAdd((unsigned long long *) &state->lo, (unsigned long long) lo);

	hi += before + lo < before;
	if (hi != 0)
		atomicAdd((unsigned long long *) &state->hi, (unsigned long long) hi);
}

static __device__ __forceinline__ void
lower_to(GjAggState *state, int64_t value)
{
	/* a value that is not the latest costs an atomic operation, no more */
	if (value < *(volatile int64_t *) &state->hi)
		atomicMin((long long *) &state->hi, (long long) value);
}

static __device__ __forceinline__ void
raise_to(GjAggState *state, int64_t value)
{
	if (value > *(volatile int64_t *) &state->hi)
		atomicMax((long long *) &state->hi, (long long) value);
}

/* Takes one value that is not NULL, among other threads. */
static __device__ __forceinline__ void
add_value(uint32_t op, GjAggState *state, int64_t value)
{
	switch (op)
	{
		case GJ_AGG_SUM_I:
			add_128(state, (uint64_t) value, value >> 63);
			break;
		case GJ_AGG_SUM_SQUARES_I:
			add_128(state, (uint64_t) value * (uint64_t) value, 0);
			break;
		case GJ_AGG_SUM_SQUARES_HIGH_I:
			add_128(state, (uint64_t) gj_mulhi_i64(value, value), 0);
			break;
		case GJ_AGG_SPREAD_F:
			add_spread(state, 1.0, gj_bits_to_double(value), 0.0, 0.0);
			break;
		case GJ_AGG_SUM_F:
			atomicAdd(&state->f, gj_bits_to_double(value));
			break;
		case GJ_AGG_MIN_I:
			lower_to(state, value);
			break;
		case GJ_AGG_MAX_I:
			raise_to(state, value);
			break;
		case GJ_AGG_MIN_F:
			lower_to(state, ordered_bits(value));
			break;
		case GJ_AGG_MAX_F:
			raise_to(state, ordered_bits(value));
			break;
		default:
			break;
	}
	atomicAdd((unsigned long long *) &state->count, 1ULL);
}

/* Adds a variance to one of this thread's own. */
static __device__ __forceinline__ void
combine_spread(GjAggState *into, const GjAggState &from)
{
	const double n = (double) from.count;
	const double sum = gj_bits_to_double(from.hi);
	double shift;

	if (from.count == 0)
		return;
	if (into->count == 0)
	{
		*into = from;
		return;
	}
	shift = gj_bits_to_double((int64_t) from.lo) - gj_bits_to_double((int64_t) into->lo);
	into->hi = gj_double_to_bits(gj_bits_to_double(into->hi) + sum + n * shift);
	into->f += from.f + 2.0 * shift * sum + n * shift * shift;
	into->count += from.count;
}

/* Adds a state to one of this thread's own. */
static __device__ __forceinline__ void
combine(uint32_t op, GjAggState *into, const GjAggState &from)
{
	if (op == GJ_AGG_SPREAD_F)
	{
		combine_spread(into, from);
		return;
	}
	if (op == GJ_AGG_MIN_I || op == GJ_AGG_MIN_F)
		into->hi = min(into->hi, from.hi);
	else if (op == GJ_AGG_MAX_I || op == GJ_AGG_MAX_F)
		into->hi = max(into->hi, from.hi);
	else
		gj_add_128(&into->lo, &into->hi, from.lo, from.hi);
	into->f += from.f;
	into->count += from.count;
}

/* Adds a state of this thread's own to one that others add to. */
static __device__ __forceinline__ void
add_state(uint32_t op, GjAggState *state, const GjAggState &from)
{
	if (from.count == 0)
		return;
	switch (op)
	{
		case GJ_AGG_SUM_I:
		case GJ_AGG_SUM_SQUARES_I:
		case GJ_AGG_SUM_SQUARES_HIGH_I:
		case GJ_AGG_SUM_DISTINCT_I:
			add_128(state, from.lo, from.hi);
			break;
		case GJ_AGG_SUM_F:
			atomicAdd(&state->f, from.f);
			break;
		case GJ_AGG_SPREAD_F:
			add_spread(state, (double) from.count, gj_bits_to_double((int64_t) from.lo),
					   gj_bits_to_double(from.hi), from.f);
			break;
		case GJ_AGG_MIN_I:
		case GJ_AGG_MIN_F:
			lower_to(state, from.hi);
			break;
		case GJ_AGG_MAX_I:
		case GJ_AGG_MAX_F:
			raise_to(state, from.hi);
			break;
		default:
			break;
	}
	atomicAdd((unsigned long long *) &state->count, (unsigned long long) from.count);
}

#endif /* GJ_CUDA_GROUP_STATE_CUH */
