/*
 * fused_values.cuh
 *	  Values and conditions of the fused operator, of several tuples of a thread at a time.
 *
 * A plan's parts are looked at once for R tuples, and their loads are under way together.  Sets of
 * a thread's tuples are masks, bit i for tuple i.  Row ids lie in shared memory, because
 * gj_eval reads them there and so that they can be found by number.
 *
 * What computes a value is one function, which is called and not inlined: the kernels' loops must
 * fit the instruction cache, and did not with a copy of it wherever a plan can have a value.
 *
 * Expressions that only gj_eval can compute take the tuples one by one: R is 1 where there are
 * any.
 */
#ifndef GJ_CUDA_FUSED_VALUES_CUH
#define GJ_CUDA_FUSED_VALUES_CUH

#include "device/fused_rows.h"
#include "fused_bytes.cuh"
#include "internal.cuh"
#include "tile.cuh"

#define FUSED_ROWS 4 /* of a thread at a time, where gj_eval is not needed */

/*
 * Which forms of expressions and tables a kernel knows: what the rare ones need takes registers of
 * all plans that run in it.
 */
typedef enum Forms
{
	FORMS_INTEGERS, /* without those below */
	FORMS_BYTES,    /* also GJ_FUSED_BYTES, wide tables and groups by bytes */
	FORMS_CODE      /* these and GJ_FUSED_CODE */
} Forms;

/* Tuples of a thread, of blocks of GJ_THREADS. */
template <uint32_t R>
struct Tuples
{
	const GjCode *code;
	const GjView *view;
	const GjColumn *columns;
	uint32_t *rowid; /* of tuple i, slot s at [(s * R + i) * GJ_THREADS] */
	GjTile tile;
	uint32_t status;
};

/* ---- parts */

/* Rows of one part; a part's columns are program columns of its own. */
typedef struct Part
{
	uint32_t first_chunk;
	uint32_t first_row; /* rows of the parts before */
	uint32_t nrows;
} Part;

/* What all kernels get beside the plan; device memory. */
typedef struct Input
{
	const Part *parts;
	const GjColumn *columns; /* the program's, for each part */
	uint32_t *nmissed;       /* of each part */
	uint32_t nparts;
	uint32_t chunk; /* rows of one */
	uint32_t nchunks;
	uint64_t *counts;
	GjResults *results;
} Input;

/* The part of a chunk: the last of parts low .. that starts at or before it. */
static __device__ __forceinline__ uint32_t
part_of_chunk(const Input &input, uint32_t chunk, uint32_t low)
{
	/* parts without rows have no chunk */
	return gj_last(low, input.nparts,
				   [&](uint32_t p) { return input.parts[p].first_chunk <= chunk; });
}

/* ---- values */

/* Evaluates expression e for the thread's only tuple; true: NULL. */
static __device__ __noinline__ bool
eval_one(const GjCode *code, const GjView *view, const GjTile *tile, uint32_t e, int64_t *value,
		 uint32_t *status)
{
	const uint32_t at = code->exprs[e].result * tile->stride + threadIdx.x;

	/* a thread's rows of a tile of blockDim.x are one */
	gj_eval(code, e, view, 0, blockDim.x, tile, status);
	*value = tile->value[at];
	return tile->null[at] != 0;
}

/* Values of an operand, a column or a constant, as load_column loads them. */
template <uint32_t R>
static __device__ __forceinline__ uint32_t
load_operand(int32_t column, uint32_t slot, int64_t constant, const GjColumn *columns,
			 const uint32_t *rowid, uint32_t wanted, int64_t (&value)[R])
{
	uint32_t row[R];

	if (column < 0)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			value[i] = constant;
		return wanted;
	}
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
		row[i] = rowid[(slot * R + i) * GJ_THREADS];
	return load_column<R>(columns[column], row, wanted, value);
}

/* Values of a packed column that is narrow. */
template <typename Type, uint32_t R>
static __device__ __forceinline__ void
load_narrow_as(const GjColumn &column, const uint32_t (&row)[R], uint32_t wanted,
			   int32_t (&value)[R])
{
	const Type *data = (const Type *) column.data;
	const int32_t base = (int32_t) column.base;
	const uint32_t factor = (uint32_t) column.factor;

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
		value[i] = wanted >> i & 1 ? (int32_t) data[row[i]] : 0;
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
		value[i] = wanted >> i & 1 ? (int32_t) ((uint32_t) base + factor * (uint32_t) value[i]) : 0;
}

/*
 * Values of a column without NULLs that have 32 bits, the commonest of all, without a call: false
 * if it is another one.  *known: the tuples that have one.
 */
template <uint32_t R>
static __device__ __forceinline__ bool
load_narrow(const GjFusedExpr &e, const Tuples<R> &t, uint32_t wanted, int32_t (&value)[R],
			uint32_t *known)
{
	const GjColumn &column = t.columns[e.a];
	const int32_t *data = (const int32_t *) column.data;
	const uint32_t *rowid = t.rowid + e.slot_a * R * GJ_THREADS;
	uint32_t row[R];

	if ((column.packed ? !column.narrow : column.kind != GJ_INT4) || column.nulls != NULL)
		return false;
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		row[i] = rowid[i * GJ_THREADS];
		if (row[i] == GJ_NO_ROW)
			wanted &= ~(1u << i);
	}
	*known = wanted;
	if (column.packed == 1)
		load_narrow_as<uint8_t, R>(column, row, wanted, value);
	else if (column.packed == 2)
		load_narrow_as<uint16_t, R>(column, row, wanted, value);
	else if (column.packed == 4)
		load_narrow_as<uint32_t, R>(column, row, wanted, value);
	else if (column.packed)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			value[i] = wanted >> i & 1 ? (int32_t) gj_packed_value(&column, row[i]) : 0;
	}
	else
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			value[i] = wanted >> i & 1 ? data[row[i]] : 0;
	}
	return true;
}

/* True if all values of an operand fit 32 bits with a sign. */
static __device__ __forceinline__ bool
is_narrow(const GjColumn *columns, int column, int64_t constant)
{
	const uint32_t kind = column < 0 ? 0 : columns[column].kind;

	if (column < 0)
		return constant == (int32_t) constant;
	return columns[column].narrow || kind == GJ_BOOL || kind == GJ_UINT1 || kind == GJ_INT2 ||
		   kind == GJ_INT4;
}

/* a[i] = a[i] <op> b[i]; errors count for tuples in `known`.  narrow: no 64 bits can overflow. */
template <uint32_t R>
static __device__ __forceinline__ void
apply(uint32_t op, uint32_t arg, bool narrow, int64_t (&a)[R], const int64_t (&b)[R],
	  uint32_t known, uint32_t *status)
{
#define APPLY(call)                                                                                \
	{                                                                                              \
		_Pragma("unroll") for (uint32_t i = 0; i < R; i++)                                         \
		{                                                                                          \
			const int64_t x = a[i];                                                                \
			const int64_t y = b[i];                                                                \
			int64_t r;                                                                             \
			const uint32_t s = (call);                                                             \
			if (s != GJ_OK && (known >> i & 1))                                                    \
				*status = s;                                                                       \
			a[i] = r;                                                                              \
		}                                                                                          \
		return;                                                                                    \
	}
#define APPLY_OP(op, call)                                                                         \
	case op:                                                                                       \
		APPLY(call)

	if (narrow && op == GJ_OP_MOD_I)
		APPLY(gj_mod_i((int32_t) x, (int32_t) y, &r));
	if (narrow && op >= GJ_OP_ADD_I && op <= GJ_OP_MUL_I && (arg == GJ_INT4 || arg == GJ_INT8))
	{
		bool over = false;

#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			a[i] = gj_exact_i(op, a[i], b[i]);
			over |= (known >> i & 1) && a[i] != (int32_t) a[i];
		}
		if (over && arg == GJ_INT4)
			*status = GJ_OVERFLOW;
		return;
	}
	switch (op)
	{
		GJ_SHORT_OPERATORS(APPLY_OP)
		default:
			/* the operands of others may be anything where they are not known */
#pragma unroll
			for (uint32_t i = 0; i < R; i++)
			{
				int64_t r = 0;

				if (known >> i & 1)
				{
					const uint32_t s = gj_apply_long(op, arg, a[i], b[i], &r);

					if (s != GJ_OK)
						*status = s;
				}
				a[i] = r;
			}
	}
#undef APPLY
#undef APPLY_OP
}

/* Values of a GJ_FUSED_SIMPLE expression for the wanted tuples. */
template <uint32_t R>
static __device__ __noinline__ Values<R>
simple_values(GjFusedExpr e, const GjColumn *columns, const uint32_t *rowid, uint32_t wanted)
{
	Values<R> values;
	int64_t other[R];

	values.status = GJ_OK;
	values.known = load_operand<R>(e.a, e.slot_a, e.constant, columns, rowid, wanted, values.value);
	if (e.op == GJ_OP_LOAD)
		return values;
	values.known = load_operand<R>(e.b, e.slot_b, e.constant, columns, rowid, values.known, other);
	apply<R>(e.op, e.arg,
			 is_narrow(columns, e.a, e.constant) && is_narrow(columns, e.b, e.constant),
			 values.value, other, values.known, &values.status);
	return values;
}

/* Values of a plan's expression for the wanted tuples. */
template <uint32_t R, Forms forms>
static __device__ __forceinline__ Values<R>
values_of(const GjFusedExpr &e, Tuples<R> &t, uint32_t wanted)
{
	Values<R> values;

	static_assert(forms != FORMS_CODE || R == 1, "gj_eval takes one tuple a thread");
	if (forms == FORMS_CODE && e.form == GJ_FUSED_CODE)
	{
		values.value[0] = 0;
		values.known = wanted != 0 && !eval_one(t.code, t.view, &t.tile, (uint32_t) e.expr,
												values.value, &t.status);
		return values;
	}
	if (e.op == GJ_OP_LOAD)
	{
		int32_t narrow[R];

		if (load_narrow<R>(e, t, wanted, narrow, &values.known))
		{
#pragma unroll
			for (uint32_t i = 0; i < R; i++)
				values.value[i] = narrow[i];
			return values;
		}
	}
	values = forms != FORMS_INTEGERS && e.form == GJ_FUSED_BYTES
				 ? bytes_values<R>(e, t.code->constants, t.columns, t.rowid, wanted)
				 : simple_values<R>(e, t.columns, t.rowid, wanted);
	if (values.status != GJ_OK)
		t.status = values.status;
	return values;
}

/* Values of a GJ_FUSED_PRODUCTS expression, as gj_fused_products computes one. */
template <uint32_t R>
static __device__ __noinline__ Values<R>
products_values(const GjFusedFactor *factors, uint32_t n, const GjColumn *columns,
				const uint32_t *rowid, uint32_t wanted)
{
	Values<R> values = {};
	int64_t product[R] = {};
	uint32_t known_product = wanted;
	uint32_t over = 0;
	bool minus = false;

	values.known = wanted;
#pragma unroll 1
	for (uint32_t k = 0; k <= n; k++)
	{
		const GjFusedFactor f = factors[min(k, n - 1)];
		uint32_t known = wanted;
		int64_t x[R] = {};

		if (k < n)
			known = load_operand<R>(f.column, f.slot, f.constant, columns, rowid, wanted, x);
		if (k < n && f.op != GJ_OP_LOAD)
		{
#pragma unroll
			for (uint32_t i = 0; i < R; i++)
				over |=
					(uint32_t) gj_sum_i(f.constant, x[i], f.op == GJ_OP_SUB_I, &x[i]) << i & known;
		}
		if (k < n && f.join == GJ_OP_MUL_I)
		{
			known_product &= known;
#pragma unroll
			for (uint32_t i = 0; i < R; i++)
				over |= (uint32_t) (gj_mul_i(product[i], x[i], GJ_INT8, &product[i]) != GJ_OK)
							<< i &
						known_product;
			continue;
		}
		/* a product is complete */
		values.known &= known_product;
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			over |= (uint32_t) gj_sum_i(values.value[i], product[i], minus, &values.value[i]) << i &
					values.known;
			product[i] = x[i];
		}
		known_product = known;
		minus = f.join == GJ_OP_SUB_I;
	}
	values.status = over != 0 ? GJ_OVERFLOW : GJ_OK;
	return values;
}

/* The wanted tuples whose column is in the range of a GJ_FUSED_RANGE term. */
template <uint32_t R>
static __device__ __forceinline__ uint32_t
in_range(const GjFusedExpr &term, Tuples<R> &t, uint32_t wanted)
{
	int32_t narrow[R];
	Values<R> values;

	if (load_narrow<R>(term, t, wanted, narrow, &wanted))
	{
		const int32_t low = (int32_t) max(term.constant, (int64_t) INT32_MIN);
		const int32_t high = (int32_t) min(term.high, (int64_t) INT32_MAX);

		if (term.constant > INT32_MAX || term.high < INT32_MIN)
			return 0;
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			if (narrow[i] < low || narrow[i] > high)
				wanted &= ~(1u << i);
		}
		return wanted;
	}
	values = simple_values<R>(term, t.columns, t.rowid, wanted);
	wanted = values.known;
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		if (values.value[i] < term.constant || values.value[i] > term.high)
			wanted &= ~(1u << i);
	}
	return wanted;
}

/* The wanted tuples for which the answer of a GJ_FUSED_ANSWER term is true. */
template <uint32_t R>
static __device__ __noinline__ uint32_t
answered(uint32_t question, uint32_t slot, const GjColumn *columns, uint32_t c,
		 const uint32_t *rowid, uint32_t wanted)
{
	const GjColumn &column = columns[c];
	uint32_t row[R];
	uint32_t code[R];

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		row[i] = rowid[(slot * R + i) * GJ_THREADS];
		if (!(wanted >> i & 1) || gj_row_is_null(&column, row[i]))
			wanted &= ~(1u << i);
	}
	/* none is looked at before all are under way */
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
		code[i] = wanted >> i & 1 ? gj_packed_code(&column, row[i]) : 0;
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		if (!(column.answers[code[i]] >> question & 1))
			wanted &= ~(1u << i);
	}
	return wanted;
}

/* The wanted tuples for which a condition is true, as gj_fused_terms tells. */
template <uint32_t R, Forms forms>
static __device__ __forceinline__ uint32_t
true_for(const GjFusedPlan &plan, const GjFusedCondition &condition, Tuples<R> &t, uint32_t wanted)
{
	uint32_t alive = wanted; /* those for which the terms since the last OR are true */
	uint32_t passed = 0;

	if (condition.form == GJ_FUSED_NONE || wanted == 0)
		return wanted;
	if (forms == FORMS_CODE && condition.form != GJ_FUSED_ALL_TERMS)
	{
		int64_t value;

		return !eval_one(t.code, t.view, &t.tile, (uint32_t) condition.expr, &value, &t.status) &&
			   value != 0;
	}
#pragma unroll 1
	for (uint32_t k = condition.first; k < (uint32_t) condition.first + condition.n; k++)
	{
		const GjFusedExpr &term = plan.terms[k];

		if (term.form == GJ_FUSED_OR)
		{
			passed |= alive;
			alive = wanted & ~passed;
		}
		else if (alive == 0)
			continue;
		else if (term.form == GJ_FUSED_RANGE)
			alive = in_range<R>(term, t, alive);
		else if (term.form == GJ_FUSED_ANSWER)
			alive =
				answered<R>(term.arg, term.slot_a, t.columns, (uint32_t) term.a, t.rowid, alive);
		else
		{
			/* terms are never code */
			constexpr Forms known_forms = forms == FORMS_CODE ? FORMS_BYTES : forms;
			const Values<R> values = values_of<R, known_forms>(term, t, alive);

			alive = values.known;
#pragma unroll
			for (uint32_t i = 0; i < R; i++)
			{
				if (values.value[i] == 0)
					alive &= ~(1u << i);
			}
		}
	}
	return passed | alive;
}

/* Values of a GJ_FUSED_CASE expression for the wanted tuples. */
template <uint32_t R, Forms forms>
static __device__ __noinline__ Values<R>
case_values(const GjFusedPlan &plan, const GjFusedExpr &e, Tuples<R> &t, uint32_t wanted)
{
	const GjFusedCondition condition = {GJ_FUSED_ALL_TERMS, e.slot_a, e.slot_b};
	const uint32_t taken = true_for<R, forms>(plan, condition, t, wanted);
	Values<R> values = products_values<R>(&plan.factors[e.expr], e.arg, t.columns, t.rowid, taken);

	if (e.op == GJ_OP_IF)
		values.known |= wanted & ~taken;
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		if (!(taken >> i & 1))
			values.value[i] = 0;
	}
	return values;
}

/* Values of an aggregate's argument for the wanted tuples: the only ones that are products. */
template <uint32_t R, Forms forms>
static __device__ __forceinline__ Values<R>
argument_of(const GjFusedPlan &plan, const GjFusedExpr &e, Tuples<R> &t, uint32_t wanted)
{
	Values<R> values;

	if (e.form != GJ_FUSED_PRODUCTS && e.form != GJ_FUSED_CASE)
		return values_of<R, forms>(e, t, wanted);
	values = e.form == GJ_FUSED_CASE
				 ? case_values<R, forms>(plan, e, t, wanted)
				 : products_values<R>(&plan.factors[e.expr], e.arg, t.columns, t.rowid, wanted);
	if (values.status != GJ_OK)
		t.status = values.status;
	return values;
}

/* ---- aggregates */

/* Takes the known values, as gj_agg_step takes one. */
template <uint32_t R>
static __device__ __noinline__ GjAggState
add_any(uint32_t op, GjAggState state, Values<R> values)
{
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		if (values.known >> i & 1)
			gj_agg_step(op, &state, values.value[i]);
	}
	return state;
}

/* The same: the commonest aggregates without a call. */
template <uint32_t R>
static __device__ __forceinline__ void
add_values(uint32_t op, GjAggState *state, const Values<R> &values)
{
	if (op == GJ_AGG_SUM_I)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			const int64_t v = values.known >> i & 1 ? values.value[i] : 0;

			gj_add_128(&state->lo, &state->hi, (uint64_t) v, v >> 63);
		}
		state->count += __popc(values.known);
	}
	else if (op == GJ_AGG_COUNT || op == GJ_AGG_COUNT_STAR)
		state->count += __popc(values.known);
	else
		*state = add_any<R>(op, *state, values);
}

#endif /* GJ_CUDA_FUSED_VALUES_CUH */
