/*
 * fused_plain.cuh
 *	  The fused operator for the commonest plans: sums of integers, none of which is NULL, over
 *	  rows that pass ranges and joins with direct tables.
 *
 * A thread takes ROWS rows that lie next to each other, loads them by 16 bytes, and keeps all that
 * it knows of them in registers.  Whatever a plan may have besides is for fused_aggregate: a
 * plan says so once for all of its rows (gj_make_plain), so nothing is asked for each of them.
 */
#ifndef GJ_CUDA_FUSED_PLAIN_CUH
#define GJ_CUDA_FUSED_PLAIN_CUH

#include <algorithm>

#include "../src/rows/fused.h"
#include "aggregate.cuh"
#include "fused_rows.cuh"

#define PLAIN_ROWS 4
#define PLAIN_STEPS 4
#define PLAIN_EXPRS 2
#define PLAIN_RANGES 8
#define PLAIN_CONSTANT 0xFF

/* A column of int4, or (wide) int8, without NULLs. */
typedef struct PlainOperand
{
	const void *data; /* of an inner source */
	int64_t constant;
	int16_t column; /* of the outer source */
	uint8_t slot;   /* 0: outer, s + 1: of step s, or PLAIN_CONSTANT */
	bool wide;
} PlainOperand;

/* low <= value <= low + span */
typedef struct PlainRange
{
	PlainOperand of; /* outer */
	int64_t low;
	uint64_t span;
} PlainRange;

typedef struct PlainStep
{
	PlainOperand key;      /* outer */
	const uint32_t *place; /* NULL: it is dense */
	int64_t low;
	uint64_t nslots;
	bool anti;
} PlainStep;

/* a, or a <op> b; narrow: it fits 32 bits, or is an error. */
typedef struct PlainExpr
{
	PlainOperand a;
	PlainOperand b;
	uint8_t op; /* GJ_OP_LOAD, ADD_I, SUB_I, MUL_I */
	uint8_t arg;
	bool narrow;
} PlainExpr;

typedef struct Plain
{
	uint32_t ncolumns; /* of the program */
	uint32_t nranges;
	uint32_t nsteps;
	uint32_t nexprs;
	uint32_t naggregates;
	uint8_t expr_of[GJ_FUSED_AGGREGATES]; /* PLAIN_EXPRS: none, the tuples are counted */
	PlainRange range[PLAIN_RANGES];
	PlainStep step[PLAIN_STEPS];
	PlainExpr expr[PLAIN_EXPRS];
} Plain;

/* ---- the kernel */

/* Values of rows row .. of which `there` are there. */
static __device__ __forceinline__ void
load_outer(const PlainOperand &of, const GjColumn *columns, uint32_t row, uint32_t there,
		   int64_t (&value)[PLAIN_ROWS])
{
	const void *data = columns[of.column].data;

	/* a part that starts within a fragment may not be aligned */
	if (there != (1u << PLAIN_ROWS) - 1 || (uintptr_t) data % 16 != 0)
	{
#pragma unroll
		for (uint32_t i = 0; i < PLAIN_ROWS; i++)
			value[i] = !(there >> i & 1) ? 0
					   : of.wide         ? ((const int64_t *) data)[row + i]
										 : ((const int32_t *) data)[row + i];
	}
	else if (of.wide)
	{
		const longlong2 *from = (const longlong2 *) ((const int64_t *) data + row);
		const longlong2 a = __ldg(from);
		const longlong2 b = __ldg(from + 1);

		value[0] = a.x;
		value[1] = a.y;
		value[2] = b.x;
		value[3] = b.y;
	}
	else
	{
		const int4 a = __ldg((const int4 *) ((const int32_t *) data + row));

		value[0] = a.x;
		value[1] = a.y;
		value[2] = a.z;
		value[3] = a.w;
	}
}

/* Values of an operand; those of tuples that are not alive may be anything. */
template <int nsteps>
static __device__ __forceinline__ void
load_plain(const PlainOperand &of, const GjColumn *columns, uint32_t row, uint32_t there,
		   const uint32_t (&found)[nsteps + 1][PLAIN_ROWS], uint32_t alive,
		   int64_t (&value)[PLAIN_ROWS])
{
	if (of.slot == 0)
	{
		load_outer(of, columns, row, there, value);
		return;
	}
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
		value[i] = of.constant;
#pragma unroll
	for (int s = 0; s < nsteps; s++)
	{
		if (of.slot != s + 1)
			continue;
#pragma unroll
		for (uint32_t i = 0; i < PLAIN_ROWS; i++)
		{
			if (alive >> i & 1)
				value[i] = of.wide ? __ldg((const long long *) of.data + found[s][i])
								   : __ldg((const int32_t *) of.data + found[s][i]);
		}
	}
}

/* The tuples of `alive` whose value is in a range. */
static __device__ __forceinline__ uint32_t
in_plain_range(const PlainRange &range, const int64_t (&value)[PLAIN_ROWS], uint32_t alive)
{
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
	{
		const bool in = range.of.wide
							? (uint64_t) value[i] - (uint64_t) range.low <= range.span
							: (uint32_t) value[i] - (uint32_t) range.low <= (uint32_t) range.span;

		if (!in)
			alive &= ~(1u << i);
	}
	return alive;
}

/* Those in all ranges.  Columns of two are loaded together: most rows of a sector need both. */
static __device__ __forceinline__ uint32_t
in_plain_ranges(const Plain &plain, const GjColumn *columns, uint32_t row, uint32_t there)
{
	uint32_t alive = there;

#pragma unroll 1
	for (uint32_t k = 0; k < plain.nranges && alive != 0; k += 2)
	{
		const bool both = k + 1 < plain.nranges;
		int64_t value[PLAIN_ROWS];
		int64_t other[PLAIN_ROWS];

		load_outer(plain.range[k].of, columns, row, there, value);
		if (both)
			load_outer(plain.range[k + 1].of, columns, row, there, other);
		alive = in_plain_range(plain.range[k], value, alive);
		if (both)
			alive = in_plain_range(plain.range[k + 1], other, alive);
	}
	return alive;
}

/* Tuples that have a row in a step's table; *found: it. */
static __device__ __forceinline__ uint32_t
look_up(const PlainStep &step, const int64_t (&key)[PLAIN_ROWS], uint32_t alive,
		uint32_t (&found)[PLAIN_ROWS])
{
	uint32_t matched = 0;

#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
	{
		const uint64_t at = (uint64_t) key[i] - (uint64_t) step.low;

		found[i] = GJ_NO_ROW;
		if ((alive >> i & 1) && at < step.nslots)
			found[i] = step.place != NULL ? __ldg(&step.place[at]) : (uint32_t) at;
	}
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
		matched |= (uint32_t) (found[i] != GJ_NO_ROW) << i;
	return matched;
}

/* An expression's sum; 128 bits unless it is narrow. */
struct PlainSum
{
	uint64_t lo;
	int64_t hi;
};

/* a[i] = a[i] <op> b[i]; true: an error of a tuple that is alive. */
static __device__ __forceinline__ bool
compute(const PlainExpr &e, int64_t (&a)[PLAIN_ROWS], const int64_t (&b)[PLAIN_ROWS],
		uint32_t alive)
{
	bool over = false;

#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
	{
		/* only the sum or difference of wide ones can leave 64 bits */
		const int64_t x = a[i];
		const int64_t y = e.op == GJ_OP_SUB_I ? ~b[i] : b[i];
		const int64_t r = e.op == GJ_OP_MUL_I
							  ? x * y
							  : (int64_t) ((uint64_t) x + (uint64_t) y + (e.op == GJ_OP_SUB_I));
		const bool wrong =
			e.narrow ? r != (int32_t) r : e.op != GJ_OP_MUL_I && ((x ^ r) & (y ^ r)) < 0;

		over |= wrong && (alive >> i & 1);
		a[i] = r;
	}
	return over;
}

static __device__ __forceinline__ void
add_plain(bool narrow, PlainSum *sum, const int64_t (&value)[PLAIN_ROWS], uint32_t alive)
{
	if (narrow)
	{
		/* of less than 2^32 values that fit 32 bits */
#pragma unroll
		for (uint32_t i = 0; i < PLAIN_ROWS; i++)
			sum->lo += alive >> i & 1 ? (uint64_t) value[i] : 0;
		return;
	}
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
	{
		const uint64_t v = alive >> i & 1 ? (uint64_t) value[i] : 0;

		sum->lo += v;
		sum->hi += ((int64_t) v >> 63) + (sum->lo < v);
	}
}

/*
 * Takes rows row .. of a part, those `there`, through ranges and joins: returns those that come
 * out, and found[s], where they were found.
 */
template <int nsteps>
static __device__ __forceinline__ uint32_t
take_plain(const Plain &plain, const GjColumn *columns, uint32_t row, uint32_t there,
		   uint32_t (&found)[nsteps + 1][PLAIN_ROWS], uint32_t (&counts)[nsteps + 1])
{
	uint32_t alive = in_plain_ranges(plain, columns, row, there);

	counts[0] += __popc(alive);
#pragma unroll
	for (int s = 0; s < nsteps; s++)
	{
		int64_t key[PLAIN_ROWS];
		uint32_t matched;

		if (alive == 0)
			break;
		load_outer(plain.step[s].key, columns, row, there, key);
		matched = look_up(plain.step[s], key, alive, found[s]);
		alive &= plain.step[s].anti ? ~matched : matched;
		counts[s + 1] += __popc(alive);
	}
	return alive;
}

template <int nsteps>
static __device__ __forceinline__ void
add_counts(const Input &input, const uint32_t (&counts)[nsteps + 1])
{
#pragma unroll
	for (int s = 0; s <= nsteps; s++)
	{
		const uint32_t n = __reduce_add_sync(0xFFFFFFFF, counts[s]);

		if (threadIdx.x % 32 == 0 && n != 0)
			atomicAdd((unsigned long long *) &input.counts[s], (unsigned long long) n);
	}
}

/* Rows first .. end-1 of a part. */
typedef struct PlainChunk
{
	const GjColumn *columns; /* of the part */
	uint32_t first_row;      /* rows of the parts before */
	uint32_t first;
	uint32_t end;
} PlainChunk;

/* A chunk; *p: the part of one before it, then its own. */
static __device__ __forceinline__ PlainChunk
find_chunk(const Plain &plain, const Input &input, uint32_t chunk, uint32_t *p)
{
	PlainChunk c;

	*p = part_of_chunk(input, chunk, *p);

	const Part part = input.parts[*p];

	c.columns = input.columns + (size_t) *p * plain.ncolumns;
	c.first_row = part.first_row;
	c.first = (chunk - part.first_chunk) * input.chunk;
	c.end = min(c.first + input.chunk, part.nrows);
	return c;
}

/* partial[aggregate * gridDim.x + block], as fused_aggregate has it. */
template <int nsteps>
static __global__ void
__launch_bounds__(GJ_THREADS, 4)
	fused_plain(const __grid_constant__ Plain plain, const __grid_constant__ Input input,
				GjAggState *partial)
{
	__shared__ GjAggState warp_states[GJ_WARPS];
	PlainSum sum[PLAIN_EXPRS] = {};
	uint32_t counts[nsteps + 1] = {};
	bool over = false;
	uint32_t p = 0;

	for (uint32_t chunk = blockIdx.x; chunk < input.nchunks; chunk += gridDim.x)
	{
		const PlainChunk c = find_chunk(plain, input, chunk, &p);

		for (uint32_t row = c.first + threadIdx.x * PLAIN_ROWS; row < c.end;
			 row += GJ_THREADS * PLAIN_ROWS)
		{
			const uint32_t there = (1u << min(c.end - row, (uint32_t) PLAIN_ROWS)) - 1;
			uint32_t found[nsteps + 1][PLAIN_ROWS];
			const uint32_t alive = take_plain<nsteps>(plain, c.columns, row, there, found, counts);

			if (alive == 0)
				continue;
#pragma unroll
			for (uint32_t k = 0; k < PLAIN_EXPRS; k++)
			{
				int64_t value[PLAIN_ROWS];
				int64_t other[PLAIN_ROWS];

				if (k >= plain.nexprs)
					break;
				load_plain<nsteps>(plain.expr[k].a, c.columns, row, there, found, alive, value);
				if (plain.expr[k].op != GJ_OP_LOAD)
				{
					load_plain<nsteps>(plain.expr[k].b, c.columns, row, there, found, alive, other);
					over |= compute(plain.expr[k], value, other, alive);
				}
				add_plain(plain.expr[k].narrow, &sum[k], value, alive);
			}
		}
	}
	if (over)
		gj_note_error(input.results, GJ_OVERFLOW);
	add_counts<nsteps>(input, counts);
	for (uint32_t a = 0; a < plain.naggregates; a++)
	{
		GjAggState state;

		gj_agg_start(&state);
		state.count = counts[nsteps];
#pragma unroll
		for (uint32_t k = 0; k < PLAIN_EXPRS; k++)
		{
			if (plain.expr_of[a] != k)
				continue;
			state.lo = sum[k].lo;
			state.hi = plain.expr[k].narrow ? (int64_t) sum[k].lo >> 63 : sum[k].hi;
		}
		gj_merge_block(GJ_AGG_SUM_I, &state, warp_states);
		if (threadIdx.x == 0)
			partial[(uint64_t) a * gridDim.x + blockIdx.x] = state;
	}
}

/* Appends the rows that come out to lists of all slots, as fused_select does. */
template <int nsteps>
static __global__ void
__launch_bounds__(GJ_THREADS, 4)
	fused_plain_select(const __grid_constant__ Plain plain, const __grid_constant__ Input input,
					   const __grid_constant__ TupleList to)
{
	const uint32_t lane = threadIdx.x % 32;
	uint32_t counts[nsteps + 1] = {};
	uint32_t p = 0;

	for (uint32_t chunk = blockIdx.x; chunk < input.nchunks; chunk += gridDim.x)
	{
		const PlainChunk c = find_chunk(plain, input, chunk, &p);

		for (uint32_t base = c.first; base < c.end; base += GJ_THREADS * PLAIN_ROWS)
		{
			const uint32_t row = base + threadIdx.x * PLAIN_ROWS;
			const uint32_t there =
				row < c.end ? (1u << min(c.end - row, (uint32_t) PLAIN_ROWS)) - 1 : 0;
			uint32_t found[nsteps + 1][PLAIN_ROWS];
			const uint32_t alive = take_plain<nsteps>(plain, c.columns, row, there, found, counts);
			uint32_t at[PLAIN_ROWS];
			uint32_t total = 0;
			uint32_t place = 0;

			__syncwarp();
#pragma unroll
			for (uint32_t i = 0; i < PLAIN_ROWS; i++)
			{
				const uint32_t lanes = __ballot_sync(0xFFFFFFFF, alive >> i & 1);

				at[i] = total + __popc(lanes & ((1u << lane) - 1));
				total += __popc(lanes);
			}
			if (total == 0)
				continue;
			if (lane == 0)
				place = atomicAdd(&to.n[p], total);
			place = c.first_row + __shfl_sync(0xFFFFFFFF, place, 0);
#pragma unroll
			for (uint32_t i = 0; i < PLAIN_ROWS; i++)
			{
				if (!(alive >> i & 1))
					continue;
				to.rowid[0][place + at[i]] = row + i;
#pragma unroll
				for (int s = 0; s < nsteps; s++)
					to.rowid[s + 1][place + at[i]] = found[s][i];
			}
		}
	}
	add_counts<nsteps>(input, counts);
}

/* ---- which plans are plain */

/* True if a column can be one: in all parts, if it is an outer one. */
static bool
plain_column(const GjColumn *column, bool *wide)
{
	*wide = column->kind == GJ_INT8;
	return (column->kind == GJ_INT4 || column->kind == GJ_INT8) && column->nulls == NULL;
}

static bool
plain_operand(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
			  uint32_t nparts, int16_t column, uint8_t slot, int64_t constant, PlainOperand *to)
{
	*to = {};
	to->slot = column < 0 ? (uint8_t) PLAIN_CONSTANT : slot;
	to->constant = constant;
	to->wide = column < 0 && constant != (int32_t) constant;
	if (column < 0)
		return true;
	if (slot > 0)
	{
		to->data = columns[column].data;
		return plain_column(&columns[column], &to->wide);
	}
	to->column = column;
	for (uint32_t p = 0; p < nparts; p++)
	{
		bool wide;

		/* those of parts without rows may be missing */
		if (parts[p].nrows == 0)
			continue;
		if (!plain_column(&parts[p].columns[column - (int) plan->first_column], &wide))
			return false;
		to->wide = wide;
	}
	return true;
}

static bool
plain_ranges(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
			 uint32_t nparts, Plain *plain)
{
	if (plan->filter.form == GJ_FUSED_NONE)
		return true;
	if (plan->filter.form != GJ_FUSED_ALL_TERMS || plan->filter.n > PLAIN_RANGES)
		return false;
	for (uint32_t k = 0; k < plan->filter.n; k++)
	{
		const GjFusedExpr *term = &plan->terms[plan->filter.first + k];
		PlainRange *range = &plain->range[plain->nranges++];
		int64_t high;

		if (term->form != GJ_FUSED_RANGE || term->a < 0 || term->slot_a != 0 ||
			!plain_operand(plan, columns, parts, nparts, term->a, 0, 0, &range->of))
			return false;
		range->low = term->constant;
		high = term->high;
		if (!range->of.wide)
		{
			range->low = std::max(range->low, (int64_t) INT32_MIN);
			high = std::min(high, (int64_t) INT32_MAX);
		}
		/* nothing is in it: the span says at least one value */
		if (range->low > high)
			return false;
		range->span = (uint64_t) high - (uint64_t) range->low;
	}
	return true;
}

static bool
plain_steps(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
			uint32_t nparts, Plain *plain)
{
	if (plan->nsteps > PLAIN_STEPS)
		return false;
	plain->nsteps = plan->nsteps;
	for (uint32_t s = 0; s < plan->nsteps; s++)
	{
		const GjFusedStep *step = &plan->steps[s];
		const GjFusedExpr *key = &plan->exprs[step->first_key];
		PlainStep *to = &plain->step[s];

		if ((step->place == NULL && !step->dense) || step->nkeys != 1 ||
			step->join_type == GJ_JOIN_LEFT || step->residual.form != GJ_FUSED_NONE ||
			step->filter.form != GJ_FUSED_NONE)
			return false;
		if (key->form != GJ_FUSED_SIMPLE || key->op != GJ_OP_LOAD || key->a < 0 ||
			key->slot_a != 0 ||
			!plain_operand(plan, columns, parts, nparts, key->a, 0, 0, &to->key))
			return false;
		to->place = step->place;
		to->low = step->low;
		to->nslots = step->nslots;
		to->anti = step->join_type == GJ_JOIN_ANTI;
	}
	return true;
}

static bool
plain_expr(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
		   uint32_t nparts, const GjFusedExpr *e, PlainExpr *to)
{
	if (e->form != GJ_FUSED_SIMPLE || e->is_float ||
		!plain_operand(plan, columns, parts, nparts, e->a, e->slot_a, e->constant, &to->a))
		return false;
	to->op = e->op;
	to->arg = e->arg;
	to->narrow = !to->a.wide;
	if (e->op == GJ_OP_LOAD)
		return true;
	if (!plain_operand(plan, columns, parts, nparts, e->b, e->slot_b, e->constant, &to->b))
		return false;
	to->narrow = e->arg == GJ_INT4;
	if (e->op == GJ_OP_MUL_I)
		return !to->a.wide && !to->b.wide && (e->arg == GJ_INT4 || e->arg == GJ_INT8);
	return (e->op == GJ_OP_ADD_I || e->op == GJ_OP_SUB_I) &&
		   (e->arg == GJ_INT8 || (e->arg == GJ_INT4 && !to->a.wide && !to->b.wide));
}

/* True if fused_plain_select can do all steps of a plan for these parts (host arrays). */
static bool
gj_make_plain_rows(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
				   uint32_t nparts, Plain *plain)
{
	*plain = {};
	plain->ncolumns = plan->ncolumns;
	return plain_ranges(plan, columns, parts, nparts, plain) &&
		   plain_steps(plan, columns, parts, nparts, plain);
}

/* True if fused_plain can do all of a plan without groups. */
static bool
gj_make_plain(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
			  uint32_t nparts, Plain *plain)
{
	uint32_t expr[PLAIN_EXPRS]; /* the plan's */

	if (plan->naggregates == 0 || !gj_make_plain_rows(plan, columns, parts, nparts, plain))
		return false;
	plain->naggregates = plan->naggregates;
	for (uint32_t a = 0; a < plan->naggregates; a++)
	{
		const GjFusedExpr *e = &plan->exprs[plan->aggregate_expr[a]];
		const uint32_t op = plan->aggregate_op[a];
		uint32_t k = 0;

		plain->expr_of[a] = PLAIN_EXPRS;
		if (op == GJ_AGG_COUNT_STAR || e->form == GJ_FUSED_NONE)
			continue;
		if (op != GJ_AGG_SUM_I && op != GJ_AGG_COUNT)
			return false;
		while (k < plain->nexprs && expr[k] != plan->aggregate_expr[a])
			k++;
		if (k == PLAIN_EXPRS)
			return false;
		plain->expr_of[a] = (uint8_t) k;
		if (k < plain->nexprs)
			continue;
		expr[k] = plan->aggregate_expr[a];
		if (!plain_expr(plan, columns, parts, nparts, e, &plain->expr[plain->nexprs++]))
			return false;
	}
	return true;
}

#endif /* GJ_CUDA_FUSED_PLAIN_CUH */
