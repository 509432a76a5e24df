/*
 * fused_rows.cuh
 *	  What the fused operator does with the tuples of a thread: several at a time.
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
#ifndef GJ_CUDA_FUSED_ROWS_CUH
#define GJ_CUDA_FUSED_ROWS_CUH

#include "device/fused_rows.h"
#include "fused_bytes.cuh"
#include "internal.cuh"
#include "table.cuh"
#include "tile.cuh"

#define FUSED_ROWS 4 /* of a thread at a time, where gj_eval is not needed */

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
template <uint32_t R, bool has_code>
static __device__ __forceinline__ Values<R>
values_of(const GjFusedExpr &e, Tuples<R> &t, uint32_t wanted)
{
	Values<R> values;

	static_assert(!has_code || R == 1, "gj_eval takes one tuple a thread");
	if (has_code && e.form == GJ_FUSED_CODE)
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
	values = e.form == GJ_FUSED_BYTES
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

/* Values of an aggregate's argument for the wanted tuples: the only ones that are products. */
template <uint32_t R, bool has_code>
static __device__ __forceinline__ Values<R>
argument_of(const GjFusedPlan &plan, const GjFusedExpr &e, Tuples<R> &t, uint32_t wanted)
{
	Values<R> values;

	if (e.form != GJ_FUSED_PRODUCTS)
		return values_of<R, has_code>(e, t, wanted);
	values = products_values<R>(&plan.factors[e.expr], e.arg, t.columns, t.rowid, wanted);
	if (values.status != GJ_OK)
		t.status = values.status;
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

/* The wanted tuples for which a condition is true. */
template <uint32_t R, bool has_code>
static __device__ __forceinline__ uint32_t
true_for(const GjFusedPlan &plan, const GjFusedCondition &condition, Tuples<R> &t, uint32_t wanted)
{
	if (condition.form == GJ_FUSED_NONE || wanted == 0)
		return wanted;
	if (has_code && condition.form != GJ_FUSED_ALL_TERMS)
	{
		int64_t value;

		return !eval_one(t.code, t.view, &t.tile, (uint32_t) condition.expr, &value, &t.status) &&
			   value != 0;
	}
#pragma unroll 1
	for (uint32_t k = condition.first; k < (uint32_t) condition.first + condition.n; k++)
	{
		const GjFusedExpr &term = plan.terms[k];

		if (term.form == GJ_FUSED_RANGE)
			wanted = in_range<R>(term, t, wanted);
		else if (term.form == GJ_FUSED_ANSWER)
			wanted =
				answered<R>(term.arg, term.slot_a, t.columns, (uint32_t) term.a, t.rowid, wanted);
		else
		{
			const Values<R> values = values_of<R, false>(term, t, wanted);

			wanted = values.known;
#pragma unroll
			for (uint32_t i = 0; i < R; i++)
			{
				if (values.value[i] == 0)
					wanted &= ~(1u << i);
			}
		}
		if (wanted == 0)
			break;
	}
	return wanted;
}

/* ---- steps */

template <uint32_t R>
struct Found
{
	uint32_t row[R];
};

/* The rows of known keys in a wide table, or payloads. */
template <uint32_t R>
static __device__ __forceinline__ Found<R>
look_up_wide(const GjTableRef &table, bool payload, const int64_t (&key)[2][R], uint32_t open)
{
	const WideRef ref(table);
	Found<R> found;
	uint64_t at[R];
	GjWideSlot slot[R];

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		found.row[i] = GJ_NO_ROW;
		at[i] = ref.home(gj_hash_combine(gj_hash_combine(0, key[0][i]), key[1][i]));
	}
	while (open != 0)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			slot[i] = {};
			if (open >> i & 1)
				slot[i] = ref.load(at[i]);
		}
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			const bool same = slot[i].count != 0 && slot[i].key[0] == (uint64_t) key[0][i] &&
							  slot[i].key[1] == (uint64_t) key[1][i];

			if (same && (open >> i & 1))
				found.row[i] = payload ? slot[i].count : slot[i].start;
			if (same || slot[i].count == 0)
				open &= ~(1u << i);
			if (++at[i] == table.nslots)
				at[i] = 0;
		}
	}
	if (table.rows == NULL || payload)
		return found;
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		if (found.row[i] != GJ_NO_ROW)
			found.row[i] = table.rows[found.row[i]];
	}
	return found;
}

/* Both keys of a step with two; returns the tuples of which none is NULL. */
template <uint32_t R, bool has_code>
static __device__ __forceinline__ uint32_t
pair_of_keys(const GjFusedExpr *e, Tuples<R> &t, uint32_t wanted, int64_t (&key)[2][R])
{
	if (are_halves(e))
	{
		uint32_t row[R];

#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			row[i] = t.rowid[(e->slot_a * R + i) * GJ_THREADS];

		const Halves<R> halves =
			halves_of<R>(t.columns[e->a], e->arg, (uint32_t) e->high & GJ_KEY_WHOLE, row, wanted);

		if (halves.status != GJ_OK)
			t.status = halves.status;
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			key[0][i] = halves.key[0][i];
			key[1][i] = halves.key[1][i];
		}
		return halves.known;
	}
#pragma unroll
	for (uint32_t k = 0; k < 2; k++)
	{
		const Values<R> values = values_of<R, has_code>(e[k], t, wanted);

		wanted = values.known;
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			key[k][i] = gj_key_bits(values.value[i], e[k].is_float);
	}
	return wanted;
}

/*
 * The rows of one-key tuples, or payloads if the table gives these, GJ_NO_ROW if they have none; of
 * several rows of a key it is any.  With the look-ups of table.cuh these kernels take more
 * registers.
 */
template <uint32_t R>
static __device__ __forceinline__ void
find_rows(const GjTableRef &table, const int64_t (&key)[R], uint32_t wanted, uint32_t (&found)[R])
{
	uint64_t at[R];
	GjHashSlot slot[R];
	uint32_t open = wanted;

	if (table.kind != GJ_TABLE_HASH)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			at[i] = (uint64_t) key[i] - (uint64_t) table.low;
			found[i] = GJ_NO_ROW;
			if ((wanted >> i & 1) && at[i] < table.nslots)
				found[i] =
					table.kind == GJ_TABLE_DENSE ? (uint32_t) at[i] : __ldg(&table.place[at[i]]);
		}
		return;
	}
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		found[i] = GJ_NO_ROW;
		at[i] = gj_hash_slot(gj_hash_mix((uint64_t) key[i]), table.nslots);
	}
	while (open != 0)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			slot[i].key = 0;
			slot[i].count = 0;
			if (open >> i & 1)
				slot[i] = gj_load_slot(table.slots, at[i]);
		}
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			const bool same = slot[i].count != 0 && slot[i].key == (uint64_t) key[i];

			if (same && (open >> i & 1))
				found[i] = table.finds_payload ? slot[i].count : slot[i].start;
			if (same || slot[i].count == 0)
				open &= ~(1u << i);
			if (++at[i] == table.nslots)
				at[i] = 0;
		}
	}
	if (table.rows == NULL || table.finds_payload)
		return;
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		if (found[i] != GJ_NO_ROW)
			found[i] = table.rows[found[i]];
	}
}

/* The same of tuples with two keys in a wide table. */
template <uint32_t R, bool has_code>
static __device__ __noinline__ Found<R>
find_wide(const GjFusedPlan &plan, const GjFusedStep &step, Tuples<R> &t, uint32_t wanted)
{
	int64_t key[2][R];
	const uint32_t known = pair_of_keys<R, has_code>(&plan.exprs[step.first_key], t, wanted, key);

	return look_up_wide<R>(step.table, step.table.finds_payload, key, known);
}

/* The slot of one or more keys in a table with slots, or an empty one. */
static __device__ __forceinline__ GjHashSlot
find_slot(const GjTableRef &table, const int64_t *key, uint32_t nkeys)
{
	const HashRef<uint64_t> ref(table);
	uint64_t hash = 0;

	if (nkeys == 1)
		hash = gj_hash_mix((uint64_t) key[0]);
	for (uint32_t k = 0; nkeys > 1 && k < nkeys; k++)
		hash = gj_hash_combine(hash, key[k]);

	if (table.kind == GJ_TABLE_WIDE)
	{
		const uint64_t both[] = {(uint64_t) key[0], (uint64_t) key[1]};

		return WideRef(table).find(both, hash);
	}

	const uint64_t s = ref.home(hash);

	return ref.find_from(s, gj_load_slot(ref.slots, s),
						 [&](const GjHashSlot &other)
						 {
							 bool same = other.key == (nkeys == 1 ? (uint64_t) key[0] : hash);

							 if (same && nkeys > 1)
							 {
								 const uint32_t row = table.key_row[other.start];

								 for (uint32_t k = 0; k < nkeys; k++)
									 same = same && table.key_value[k][row] == key[k];
							 }
							 return same;
						 });
}

/* The slot of tuple i, with any number of keys. */
template <uint32_t R, bool has_code>
static __device__ __noinline__ GjHashSlot
slot_of_tuple(const GjFusedPlan &plan, const GjFusedStep &step, Tuples<R> &t, uint32_t i)
{
	int64_t key[GJ_MAX_KEYS];
	GjHashSlot slot = {};
	bool null = false;

	for (uint32_t k = 0; k < step.nkeys; k++)
	{
		const GjFusedExpr &e = plan.exprs[step.first_key + k];

		if (!has_code || e.form != GJ_FUSED_CODE)
			null |= gj_fused_value(&e, t.code->constants, t.columns, t.rowid + i * GJ_THREADS,
								   R * GJ_THREADS, &key[k], &t.status);
		else
			null |= eval_one(t.code, t.view, &t.tile, (uint32_t) e.expr, &key[k], &t.status);
		key[k] = gj_key_bits(key[k], e.is_float);
	}
	if (!null)
		slot = find_slot(step.table, key, step.nkeys);
	return slot;
}

/* The row of tuple i, with any number of keys, or GJ_NO_ROW. */
template <uint32_t R, bool has_code>
static __device__ __forceinline__ uint32_t
find_row(const GjFusedPlan &plan, const GjFusedStep &step, Tuples<R> &t, uint32_t i)
{
	const GjHashSlot slot = slot_of_tuple<R, has_code>(plan, step, t, i);

	return slot.count == 0 ? GJ_NO_ROW : gj_fused_row(&step.table, slot.start, 0);
}

/* Notes that the rows of some tuples have a match. */
template <uint32_t R>
static __device__ __forceinline__ void
mark_rows(const GjFusedStep &step, const uint32_t *rowid, uint32_t matched)
{
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		/* all write the same */
		if (matched >> i & 1)
			step.marks[rowid[i * GJ_THREADS]] = 1;
	}
}

/*
 * Looks at the rows of each wanted tuple's key in turn; returns the tuples that have a row for
 * which the residual condition is true.  Rows that are to be marked are all looked at, else a tuple
 * is done with the first such row.
 */
template <uint32_t R, bool has_code>
static __device__ __noinline__ uint32_t
walk_rows(const GjFusedPlan &plan, const GjFusedStep &step, uint32_t *rowid, Tuples<R> &t,
		  uint32_t wanted)
{
	uint32_t start[R];
	uint32_t count[R];
	uint32_t matched = 0;
	uint32_t open = wanted;

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		GjHashSlot slot = {};

		if (step.table.kind != GJ_TABLE_NONE && (wanted >> i & 1))
			slot = slot_of_tuple<R, has_code>(plan, step, t, i);
		start[i] = slot.start;
		count[i] = slot.count;
	}
	for (uint32_t r = 0;; r++)
	{
		uint32_t kept;

#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			if (r >= count[i])
				open &= ~(1u << i);
			if (open >> i & 1)
				rowid[i * GJ_THREADS] = gj_fused_row(&step.table, start[i], r);
		}
		if (open == 0)
			return matched;
		kept = true_for<R, has_code>(plan, step.residual, t, open);
		matched |= kept;
		if (step.marks == NULL)
			open &= ~kept;
		else
			mark_rows<R>(step, rowid, kept);
	}
}

/* Finds the row of each wanted tuple that has one at most; returns the tuples that have a match. */
template <uint32_t R, bool has_code>
static __device__ __forceinline__ uint32_t
match_rows(const GjFusedPlan &plan, const GjFusedStep &step, uint32_t *rowid, Tuples<R> &t,
		   uint32_t wanted)
{
	uint32_t found[R];
	uint32_t matched = 0;

	if (step.table.kind != GJ_TABLE_NONE && step.nkeys == 1)
	{
		const GjFusedExpr &e = plan.exprs[step.first_key];
		Values<R> key = values_of<R, has_code>(e, t, wanted);

		if (e.is_float)
		{
#pragma unroll
			for (uint32_t i = 0; i < R; i++)
				key.value[i] = gj_key_bits(key.value[i], true);
		}
		find_rows<R>(step.table, key.value, key.known, found);
	}
	else if (step.table.kind == GJ_TABLE_WIDE)
	{
		const Found<R> wide = find_wide<R, has_code>(plan, step, t, wanted);

#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			found[i] = wide.row[i];
	}
	else
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			found[i] = step.table.kind != GJ_TABLE_NONE && (wanted >> i & 1)
						   ? find_row<R, has_code>(plan, step, t, i)
						   : GJ_NO_ROW;
	}
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		rowid[i * GJ_THREADS] = found[i];
		matched |= (uint32_t) (found[i] != GJ_NO_ROW) << i;
	}
	if (step.residual.form != GJ_FUSED_NONE)
	{
		const uint32_t kept = true_for<R, has_code>(plan, step.residual, t, matched);

#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			if ((matched & ~kept) >> i & 1)
				rowid[i * GJ_THREADS] = GJ_NO_ROW;
		}
		matched = kept;
	}
	if (step.marks != NULL)
		mark_rows<R>(step, rowid, matched);
	return matched;
}

/* Takes the wanted tuples through step s; returns those that go on. */
template <uint32_t R, bool has_code>
static __device__ __forceinline__ uint32_t
join_step(const GjFusedPlan &plan, uint32_t s, Tuples<R> &t, uint32_t wanted)
{
	const GjFusedStep &step = plan.steps[s];
	uint32_t *rowid = &t.rowid[(s + 1) * R * GJ_THREADS];
	const uint32_t matched = step.walks ? walk_rows<R, has_code>(plan, step, rowid, t, wanted)
										: match_rows<R, has_code>(plan, step, rowid, t, wanted);

	if (gj_fused_ends(step.join_type))
		return 0;
	if (!gj_fused_keeps_all(step.join_type))
		wanted &= step.join_type == GJ_JOIN_ANTI ? ~matched : matched;
	return true_for<R, has_code>(plan, step.filter, t, wanted);
}

/* All lanes of the warp call it: counts their tuples. */
static __device__ __forceinline__ void
count_tuples(uint32_t *count, uint32_t alive)
{
	const uint32_t n = __reduce_add_sync(0xFFFFFFFF, (uint32_t) __popc(alive));

	if (threadIdx.x % 32 == 0 && n != 0)
		atomicAdd(count, n);
}

/*
 * Tuples that have come through some steps: those of part p are rowid[slot][first_row .. + n[p]),
 * first_row being that of the part.  n = NULL: the rows of the parts themselves.
 */
typedef struct TupleList
{
	uint32_t *rowid[GJ_FUSED_STEPS + 1];
	uint32_t *n;
} TupleList;

/*
 * All lanes of the warp call it: places in a list of a part for their tuples `alive`, behind the *n
 * that it has; at[i]: tuple i's, if it is alive.  False: the warp has none.
 */
template <uint32_t R>
static __device__ __forceinline__ bool
take_places(uint32_t alive, uint32_t first_row, uint32_t *n, uint32_t (&at)[R])
{
	const uint32_t lane = threadIdx.x % 32;
	uint32_t total = 0;
	uint32_t first = 0;

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		const uint32_t lanes = __ballot_sync(0xFFFFFFFF, alive >> i & 1);

		at[i] = total + __popc(lanes & ((1u << lane) - 1));
		total += __popc(lanes);
	}
	if (total == 0)
		return false;
	if (lane == 0)
		first = atomicAdd(n, total);
	first = first_row + __shfl_sync(0xFFFFFFFF, first, 0);
#pragma unroll
	for (uint32_t i = 0; i < R; i++)
		at[i] += first;
	return true;
}

/* What a kernel takes tuples through: steps first .. end-1, and rows through the filter before. */
typedef struct Stage
{
	TupleList from;
	uint32_t first;
	uint32_t end;
} Stage;

/*
 * All lanes of the warp call it: takes tuples `alive` of a part, number i being at
 * first + i * GJ_THREADS, through a stage; returns those that come out.
 */
template <uint32_t R, bool has_code>
static __device__ __forceinline__ uint32_t
take_tuples(const GjFusedPlan &plan, const Stage &stage, uint32_t first_row, uint32_t first,
			uint32_t alive, Tuples<R> &t, uint32_t *counts)
{
	if (stage.from.n == NULL)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			t.rowid[i * GJ_THREADS] = first + i * GJ_THREADS;
		alive = true_for<R, has_code>(plan, plan.filter, t, alive);
		count_tuples(&counts[0], alive);
	}
	else
	{
#pragma unroll 1
		for (uint32_t s = 0; s <= stage.first; s++)
		{
			const uint32_t *from = stage.from.rowid[s] + first_row + first;

#pragma unroll
			for (uint32_t i = 0; i < R; i++)
			{
				if (alive >> i & 1)
					t.rowid[(s * R + i) * GJ_THREADS] = from[i * GJ_THREADS];
			}
		}
	}
	for (uint32_t s = stage.first; s < stage.end; s++)
	{
		if (alive != 0)
			alive = join_step<R, has_code>(plan, s, t, alive);
		count_tuples(&counts[s + 1], alive);
	}
	return alive;
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

#endif /* GJ_CUDA_FUSED_ROWS_CUH */
