/*
 * fused_plain.cuh
 *	  The fused operator for the commonest plans: sums of integers without NULLs, over rows that
 *	  pass ranges and joins on integers, or on the halves of a text's or uuid's key.
 *
 * gj_make_plain decides once for a plan whether it is such a one, so the kernels have no branch
 * for anything else; other plans run fused_aggregate.  Instructions limit these kernels, not
 * memory.  So a thread takes several rows, has 32 bytes of each column under way, and does once
 * what is equal for all of its rows.  If no value has more than 32 bits, the kernel computes with
 * 32 bits.
 */
#ifndef GJ_CUDA_FUSED_PLAIN_CUH
#define GJ_CUDA_FUSED_PLAIN_CUH

#include <type_traits>

#include "device/fused_rows.h"
#include "aggregate.cuh"
#include "fused_rows.cuh"
#include "fused_tile.cuh"

#define PLAIN_STEPS 4
#define PLAIN_EXPRS 2
#define PLAIN_RANGES 8
#define PLAIN_CONSTANT 0xFF

/* A column without NULLs: of int4 or packed, or (wide) one whose values may need 64 bits. */
typedef struct PlainOperand
{
	const void *data; /* of a build source; NULL: what its step finds is the value */
	int64_t constant;
	int16_t column; /* of the probe source */
	uint8_t slot;   /* 0: probe, s + 1: of step s, or PLAIN_CONSTANT */
	bool wide;
} PlainOperand;

/* low <= value <= low + span */
typedef struct PlainRange
{
	PlainOperand of; /* probe */
	int64_t low;
	uint64_t span;
} PlainRange;

/* What slots the steps' tables have at most. */
enum PlainSlots
{
	NO_SLOTS,
	SLOTS_OF_ONE,
	SLOTS_OF_TWO /* some; others can be of one key, or have none */
};

/* What a step looks up: an integer, two as one, two, or the halves of a column's bytes. */
enum PlainKeys
{
	PLAIN_ONE,
	PLAIN_PACKED, /* `key` the high 32 bits, `second` the low ones */
	PLAIN_TWO,
	PLAIN_HALVES
};

/* Of slots or places there are less than 2^32. */
typedef struct PlainStep
{
	PlainOperand key; /* probe; HALVES: its column is the one */
	PlainOperand second;
	uint8_t keys;     /* PlainKeys; the last two: in wide slots */
	uint8_t form;     /* HALVES: of the bytes */
	uint8_t whole;    /* HALVES: GJ_KEY_WHOLE or 0 */
	GjTableRef table; /* what it finds is the row where it has no `rows` */
	bool anti;
	bool payload; /* it finds payloads, in slots or places, not rows */
} PlainStep;

/* a, or a <op> b; narrow: it fits 32 bits, or is an error; wide: a or b may not. */
typedef struct PlainExpr
{
	PlainOperand a;
	PlainOperand b;
	uint8_t op; /* GJ_OP_LOAD, ADD_I, SUB_I, MUL_I */
	bool narrow;
	bool wide;
} PlainExpr;

typedef struct Plain
{
	uint32_t ncolumns; /* of the program */
	uint32_t nranges;
	uint32_t nsteps;
	uint32_t nexprs;
	uint32_t naggregates;
	bool wide;                            /* some operand is */
	PlainSlots slots;                     /* of the steps' tables; wide ones: plain.wide, too */
	uint8_t expr_of[GJ_FUSED_AGGREGATES]; /* PLAIN_EXPRS: none, the tuples are counted */
	PlainRange range[PLAIN_RANGES];
	PlainStep step[PLAIN_STEPS];
	PlainExpr expr[PLAIN_EXPRS];
} Plain;

/* ---- values */

/* Values of a packed column; with 32 bits, modulo 2^32, where all values fit them. */
template <typename T, typename V>
static __device__ __forceinline__ void
load_packed_rows(const GjColumn &column, const TileRows<V> &rows, V (&value)[PLAIN_ROWS])
{
	typedef typename std::make_unsigned<V>::type Bits;

	load_rows((const T *) column.data, rows, value);
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
		value[i] = (V) ((Bits) column.base + (Bits) column.factor * (Bits) value[i]);
}

/* Values of a probe operand. */
template <typename V>
static __device__ __forceinline__ void
load_probe_side(const PlainOperand &of, const GjColumn *columns, const TileRows<V> &rows,
				V (&value)[PLAIN_ROWS])
{
	const GjColumn &column = columns[of.column];
	const void *data = column.data;

	if (column.packed == 1)
		load_packed_rows<uint8_t>(column, rows, value);
	else if (column.packed == 2)
		load_packed_rows<uint16_t>(column, rows, value);
	else if (column.packed)
		load_packed_rows<uint32_t>(column, rows, value);
	else if (sizeof(V) == sizeof(int64_t) && of.wide)
		load_rows((const V *) data, rows, value);
	else
		load_rows((const int32_t *) data, rows, value);
}

/* Keys of a step. */
template <typename V>
static __device__ __forceinline__ void
load_plain_keys(const PlainStep &step, const GjColumn *columns, const TileRows<V> &rows,
				V (&key)[PLAIN_ROWS])
{
	load_probe_side(step.key, columns, rows, key);
	if constexpr (sizeof(V) == sizeof(int64_t))
	{
		V low[PLAIN_ROWS];

		if (step.keys != PLAIN_PACKED)
			return;
		load_probe_side(step.second, columns, rows, low);
#pragma unroll
		for (uint32_t i = 0; i < PLAIN_ROWS; i++)
			key[i] = gj_pack_i(key[i], low[i]);
	}
}

/* Values of an operand; those of tuples that are not alive may be anything. */
template <typename V, int nsteps>
static __device__ __forceinline__ void
load_plain(const PlainOperand &of, const GjColumn *columns, const TileRows<V> &rows,
		   const uint32_t (&found)[nsteps + 1][PLAIN_ROWS], uint32_t alive, V (&value)[PLAIN_ROWS])
{
	if (of.slot == 0)
	{
		load_probe_side(of, columns, rows, value);
		return;
	}
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
		value[i] = (V) of.constant;
#pragma unroll
	for (int s = 0; s < nsteps; s++)
	{
		if (of.slot != s + 1)
			continue;
#pragma unroll
		for (uint32_t i = 0; i < PLAIN_ROWS; i++)
		{
			if (!(alive >> i & 1))
				continue;
			if (of.data == NULL)
				value[i] = (V) gj_payload_value(found[s][i]);
			else if (sizeof(V) == sizeof(int64_t) && of.wide)
				value[i] = __ldg((const V *) of.data + found[s][i]);
			else
				value[i] = __ldg((const int32_t *) of.data + found[s][i]);
		}
	}
}

/* ---- ranges and joins */

/* The tuples of `alive` whose value is in a range. */
static __device__ __forceinline__ bool
in_plain_range(const PlainRange &range, int32_t value)
{
	return (uint32_t) value - (uint32_t) range.low <= (uint32_t) range.span;
}

static __device__ __forceinline__ bool
in_plain_range(const PlainRange &range, int64_t value)
{
	return (uint64_t) value - (uint64_t) range.low <= range.span;
}

template <typename V>
static __device__ __forceinline__ uint32_t
those_in_range(const PlainRange &range, const V (&value)[PLAIN_ROWS], uint32_t alive)
{
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
	{
		if (!in_plain_range(range, value[i]))
			alive &= ~(1u << i);
	}
	return alive;
}

/* Those in all ranges.  Columns of two are loaded together: most rows of a sector need both. */
template <typename V>
static __device__ __forceinline__ uint32_t
those_in_ranges(const Plain &plain, const GjColumn *columns, const TileRows<V> &rows)
{
	uint32_t alive = rows.there;

#pragma unroll 1
	for (uint32_t k = 0; k < plain.nranges && alive != 0; k += 2)
	{
		const bool both = k + 1 < plain.nranges;
		V value[PLAIN_ROWS];
		V other[PLAIN_ROWS];

		load_probe_side(plain.range[k].of, columns, rows, value);
		if (both)
			load_probe_side(plain.range[k + 1].of, columns, rows, other);
		alive = those_in_range(plain.range[k], value, alive);
		if (both)
			alive = those_in_range(plain.range[k + 1], other, alive);
	}
	return alive;
}

/*
 * Look-ups of this kernel's own: with those of table.cuh it takes more registers.
 */

/* A key's place in a direct table; nslots or more: it has none. */
static __device__ __forceinline__ uint32_t
direct_place(const GjTableRef &table, int32_t key)
{
	/* gj_make_plain has seen to it that no difference is mistaken for another one */
	return (uint32_t) key - (uint32_t) table.low;
}

static __device__ __forceinline__ uint64_t
direct_place(const GjTableRef &table, int64_t key)
{
	return (uint64_t) key - (uint64_t) table.low;
}

/* Tuples whose key has a row in a direct table; *found: it. */
template <typename V>
static __device__ __forceinline__ uint32_t
look_up_direct(const GjTableRef &table, const V (&key)[PLAIN_ROWS], uint32_t alive,
			   uint32_t (&found)[PLAIN_ROWS])
{
	const auto nslots = (decltype(direct_place(table, key[0]))) table.nslots;

#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
	{
		const auto at = direct_place(table, key[i]);

		found[i] = (uint32_t) at;
		if (at >= nslots)
			alive &= ~(1u << i);
	}
	if (table.kind == GJ_TABLE_DENSE)
		return alive;
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
		found[i] = alive >> i & 1 ? __ldg(&table.place[found[i]]) : GJ_NO_ROW;
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
	{
		if (found[i] == GJ_NO_ROW)
			alive &= ~(1u << i);
	}
	return alive;
}

#define PLAIN_TOGETHER 4 /* rows whose slots are under way together */

/* The same of one with slots. */
template <typename V>
static __device__ __forceinline__ uint32_t
look_up_hashed(const PlainStep &step, const V (&key)[PLAIN_ROWS], uint32_t alive,
			   uint32_t (&found)[PLAIN_ROWS])
{
	const uint32_t nslots = (uint32_t) step.table.nslots;
	uint32_t matched = 0;

#pragma unroll
	for (uint32_t from = 0; from < PLAIN_ROWS; from += PLAIN_TOGETHER)
	{
		uint32_t open = alive >> from & ((1u << PLAIN_TOGETHER) - 1);
		uint32_t at[PLAIN_TOGETHER];

		if (open == 0)
			continue;
#pragma unroll
		for (uint32_t i = 0; i < PLAIN_TOGETHER; i++)
		{
			const uint64_t hash = gj_hash_mix((uint64_t) (int64_t) key[from + i]);

			/* gj_hash_slot of 32 bits */
			at[i] =
				(uint32_t) (((hash >> 32) * nslots + ((uint64_t) (uint32_t) hash * nslots >> 32)) >>
							32);
		}
		while (open != 0)
		{
			GjHashSlot slot[PLAIN_TOGETHER];

#pragma unroll
			for (uint32_t i = 0; i < PLAIN_TOGETHER; i++)
			{
				if (open >> i & 1)
					slot[i] = gj_load_slot(step.table.slots, at[i]);
			}
#pragma unroll
			for (uint32_t i = 0; i < PLAIN_TOGETHER; i++)
			{
				if (!(open >> i & 1))
					continue;
				if (slot[i].count == 0)
					open &= ~(1u << i);
				else if (slot[i].key == (uint64_t) (int64_t) key[from + i])
				{
					found[from + i] = step.payload ? slot[i].count : slot[i].start;
					matched |= 1u << (from + i);
					open &= ~(1u << i);
				}
				else if (++at[i] == nslots)
					at[i] = 0;
			}
		}
	}
	if (step.table.rows == NULL)
		return matched;
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
	{
		if (matched >> i & 1)
			found[i] = __ldg(&step.table.rows[found[i]]);
	}
	return matched;
}

struct TwoKeys
{
	int64_t key[2][PLAIN_TOGETHER];
};

/* The same of halves of keys, and of two keys. */
static __device__ __forceinline__ Found<PLAIN_TOGETHER>
find_halves(const PlainStep &step, const GjColumn &column, const uint4 row, uint32_t wanted,
			GjResults *results)
{
	const uint32_t rows[PLAIN_TOGETHER] = {row.x, row.y, row.z, row.w};
	const Halves<PLAIN_TOGETHER> halves =
		halves_of<PLAIN_TOGETHER>(column, step.form, step.whole, rows, wanted);

	gj_note_error(results, halves.status);
	return look_up_wide<PLAIN_TOGETHER>(step.table, step.payload, halves.key, halves.known);
}

static __device__ __forceinline__ Found<PLAIN_TOGETHER>
find_two(const PlainStep &step, const TwoKeys two, uint32_t wanted)
{
	return look_up_wide<PLAIN_TOGETHER>(step.table, step.payload, two.key, wanted);
}

/* Functions of their own where there are more steps: they take more registers than all others. */
static __device__ __noinline__ Found<PLAIN_TOGETHER>
call_find_halves(const PlainStep &step, const GjColumn &column, const uint4 row, uint32_t wanted,
				 GjResults *results)
{
	return find_halves(step, column, row, wanted, results);
}

static __device__ __noinline__ Found<PLAIN_TOGETHER>
call_find_two(const PlainStep &step, const TwoKeys two, uint32_t wanted)
{
	return find_two(step, two, wanted);
}

static_assert(PLAIN_TOGETHER == 4, "find_halves");

template <typename V, int nsteps>
static __device__ __forceinline__ uint32_t
look_up_in_wide(const PlainStep &step, const GjColumn *columns, const TileRows<V> &rows,
				uint32_t alive, uint32_t (&found)[PLAIN_ROWS], GjResults *results)
{
	uint32_t matched = 0;
	V first[PLAIN_ROWS] = {};
	V second[PLAIN_ROWS] = {};

	if (step.keys == PLAIN_TWO)
	{
		load_probe_side(step.key, columns, rows, first);
		load_probe_side(step.second, columns, rows, second);
	}
#pragma unroll
	for (uint32_t from = 0; from < PLAIN_ROWS; from += PLAIN_TOGETHER)
	{
		const uint32_t wanted = alive >> from & ((1u << PLAIN_TOGETHER) - 1);
		Found<PLAIN_TOGETHER> some;

		if (wanted == 0)
			continue;
		if (step.keys == PLAIN_TWO)
		{
			const TwoKeys two = {
				{{first[from], first[from + 1], first[from + 2], first[from + 3]},
				 {second[from], second[from + 1], second[from + 2], second[from + 3]}}};

			some = nsteps == 1 ? find_two(step, two, wanted) : call_find_two(step, two, wanted);
		}
		else
		{
			const GjColumn &column = columns[step.key.column];
			const uint4 row = {Shape<V>::row(rows.first, from), Shape<V>::row(rows.first, from + 1),
							   Shape<V>::row(rows.first, from + 2),
							   Shape<V>::row(rows.first, from + 3)};

			some = nsteps == 1 ? find_halves(step, column, row, wanted, results)
							   : call_find_halves(step, column, row, wanted, results);
		}
#pragma unroll
		for (uint32_t i = 0; i < PLAIN_TOGETHER; i++)
		{
			found[from + i] = some.row[i];
			matched |= (uint32_t) (some.row[i] != GJ_NO_ROW) << (from + i);
		}
	}
	return matched;
}

/* The tuples of `alive` whose key may be in a table, by its filter. */
template <typename V, bool hashed>
static __device__ __forceinline__ uint32_t
those_in_filter(const GjTableRef &table, const V (&key)[PLAIN_ROWS], uint32_t alive)
{
	const auto nslots = (decltype(direct_place(table, key[0]))) table.nslots;

#pragma unroll
	for (uint32_t from = 0; from < PLAIN_ROWS; from += PLAIN_TOGETHER)
	{
		uint32_t word[PLAIN_TOGETHER];
		uint32_t bits[PLAIN_TOGETHER];

#pragma unroll
		for (uint32_t i = 0; i < PLAIN_TOGETHER; i++)
		{
			const bool wanted = alive >> (from + i) & 1;

			if (hashed && table.kind == GJ_TABLE_HASH)
			{
				const uint64_t hash = gj_hash_mix((uint64_t) (int64_t) key[from + i]);

				bits[i] = gj_filter_bits(hash);
				word[i] =
					wanted ? __ldg(&table.key_filter[gj_filter_word(hash, table.nkey_filter)]) : 0;
			}
			else
			{
				const auto at = direct_place(table, key[from + i]);

				bits[i] = 1u << ((uint32_t) at & 31);
				word[i] = wanted && at < nslots ? __ldg(&table.key_filter[at / 32]) : 0;
			}
		}
#pragma unroll
		for (uint32_t i = 0; i < PLAIN_TOGETHER; i++)
		{
			if ((word[i] & bits[i]) != bits[i])
				alive &= ~(1u << (from + i));
		}
	}
	return alive;
}

/*
 * What filters of a thread's steps were of no use for: tuples that passed more than those that did
 * not.  From FILTER_WASTE on a filter is asked no more, but once in FILTER_REST chunks.
 */
#define FILTER_WASTE 32
#define FILTER_REST 16

struct Filters
{
	uint32_t waste; /* a signed byte of each step: registers are dear */

	__device__ __forceinline__ int32_t
	get(int s) const
	{
		return (int8_t) (waste >> 8 * s);
	}

	__device__ __forceinline__ void
	set(int s, int32_t n)
	{
		waste = (waste & ~(0xFFu << 8 * s)) | (uint32_t) (uint8_t) n << 8 * s;
	}

	template <int nsteps>
	__device__ __forceinline__ void
	start_chunk()
	{
#pragma unroll
		for (int s = 0; s < nsteps; s++)
		{
			if (get(s) >= FILTER_WASTE)
				set(s, get(s) - 1);
		}
	}

	/* The tuples of `alive` that are worth a look-up in step s. */
	template <typename V, bool hashed>
	__device__ __forceinline__ uint32_t
	ask(const PlainStep &step, int s, const V (&key)[PLAIN_ROWS], uint32_t alive)
	{
		uint32_t may;
		int32_t n;

		if (!step.table.has_filter || get(s) >= FILTER_WASTE)
			return alive;
		may = those_in_filter<V, hashed>(step.table, key, alive);
		n = get(s) + 2 * __popc(may) - __popc(alive);
		set(s, n >= FILTER_WASTE ? FILTER_WASTE + FILTER_REST - 1 : max(n, -FILTER_WASTE));
		return may;
	}
};

static_assert(PLAIN_STEPS <= 4 && FILTER_WASTE + FILTER_REST <= INT8_MAX, "Filters");

/*
 * Takes the rows of a thread that are there through ranges and joins: returns those that come out,
 * and found[s], where they were found.
 */
template <typename V, int nsteps, PlainSlots slots>
static __device__ __forceinline__ uint32_t
take_plain(const Plain &plain, const GjColumn *columns, const TileRows<V> &rows, Filters &filters,
		   uint32_t (&found)[nsteps + 1][PLAIN_ROWS], uint32_t (&counts)[nsteps + 1],
		   GjResults *results)
{
	uint32_t alive = those_in_ranges<V>(plain, columns, rows);

	counts[0] += __popc(alive);
#pragma unroll
	for (int s = 0; s < nsteps; s++)
	{
		const PlainStep &step = plain.step[s];
		V key[PLAIN_ROWS];
		uint32_t matched;

		if (alive == 0)
			break;
		if (slots == SLOTS_OF_TWO && step.table.kind == GJ_TABLE_WIDE)
			matched = look_up_in_wide<V, nsteps>(step, columns, rows, alive, found[s], results);
		else
		{
			load_plain_keys(step, columns, rows, key);
			matched = filters.ask<V, slots != NO_SLOTS>(step, s, key, alive);
			if (slots != NO_SLOTS && step.table.kind == GJ_TABLE_HASH)
				matched = look_up_hashed(step, key, matched, found[s]);
			else
				matched = look_up_direct(step.table, key, matched, found[s]);
		}
		if (step.anti)
		{
#pragma unroll
			for (uint32_t i = 0; i < PLAIN_ROWS; i++)
				found[s][i] = GJ_NO_ROW;
		}
		alive &= step.anti ? ~matched : matched;
		counts[s + 1] += __popc(alive);
	}
	return alive;
}

/* ---- sums */

/*
 * Of less than 2^31 values.  Of a kernel of 64 bits: the sum's 128 bits, hi:lo.  Of one of 32 bits:
 * the sum is hi * 2^32 + lo, where lo counts as unsigned in a product's, else as signed.
 */
struct PlainSum
{
	uint64_t lo;
	int64_t hi;
};

/* Adds the values of a <op> b; true: an error of a tuple that is alive. */
static __device__ __forceinline__ bool
add_plain(const PlainExpr &e, const int32_t (&a)[8], const int32_t (&b)[8], uint32_t alive,
		  PlainSum *sum)
{
	bool wrong = false;

	if (e.op == GJ_OP_MUL_I)
	{
#pragma unroll
		for (uint32_t i = 0; i < 8; i++)
		{
			const int64_t r = alive >> i & 1 ? gj_exact_i(GJ_OP_MUL_I, a[i], b[i]) : 0;

			wrong |= r != (int32_t) r;
			sum->lo += (uint32_t) r;
			sum->hi += (int32_t) (r >> 32);
		}
		return wrong && e.narrow;
	}
	if (e.op == GJ_OP_LOAD)
	{
#pragma unroll
		for (uint32_t i = 0; i < 8; i++)
			sum->lo += (uint64_t) (int64_t) (alive >> i & 1 ? a[i] : 0);
		return false;
	}
#pragma unroll
	for (uint32_t i = 0; i < 8; i++)
	{
		const int64_t r = alive >> i & 1 ? gj_exact_i(e.op, a[i], b[i]) : 0;

		wrong |= r != (int32_t) r;
		sum->lo += (uint64_t) r;
	}
	return wrong && e.narrow;
}

static __device__ __forceinline__ bool
add_plain(const PlainExpr &e, const int64_t (&a)[4], const int64_t (&b)[4], uint32_t alive,
		  PlainSum *sum)
{
	bool over = false;

#pragma unroll
	for (uint32_t i = 0; i < 4; i++)
	{
		int64_t r = a[i];

		if (e.op == GJ_OP_MUL_I && !e.wide)
			r = gj_exact_i(GJ_OP_MUL_I, a[i], b[i]);
		else if (e.op == GJ_OP_MUL_I)
			over |= gj_mul_i(a[i], b[i], GJ_INT8, &r) != GJ_OK && (alive >> i & 1);
		else if (e.op != GJ_OP_LOAD)
		{
			/* only what wide ones come to can leave 64 bits */
			const bool left = gj_sum_i(a[i], b[i], e.op == GJ_OP_SUB_I, &r);

			over |= (alive >> i & 1) && left;
		}
		over |= (alive >> i & 1) && e.narrow && r != (int32_t) r;
		r = alive >> i & 1 ? r : 0;
		gj_add_128(&sum->lo, &sum->hi, (uint64_t) r, r >> 63);
	}
	return over;
}

/* The sum's 128 bits. */
template <typename V>
static __device__ __forceinline__ void
finish_plain(const PlainExpr &e, const PlainSum &sum, GjAggState *state)
{
	state->lo = sum.lo;
	if (sizeof(V) == sizeof(int64_t))
		state->hi = sum.hi;
	else if (e.op != GJ_OP_MUL_I)
		state->hi = (int64_t) sum.lo >> 63;
	else
		gj_add_128(&state->lo, &state->hi, (uint64_t) sum.hi << 32, sum.hi >> 32);
}

/* ---- kernels */

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

/* A chunk; *p: the part of one before it, then its own.  ncolumns: of the program. */
static __device__ __forceinline__ PlainChunk
find_chunk(uint32_t ncolumns, const Input &input, uint32_t chunk, uint32_t *p)
{
	PlainChunk c;

	/* mostly the same */
	if (*p + 1 < input.nparts && input.parts[*p + 1].first_chunk <= chunk)
		*p = part_of_chunk(input, chunk, *p + 1);

	const Part part = input.parts[*p];

	c.columns = input.columns + (size_t) *p * ncolumns;
	c.first_row = part.first_row;
	c.first = (chunk - part.first_chunk) * input.chunk;
	c.end = min(c.first + input.chunk, part.nrows);
	return c;
}

/* Blocks of an SM: row ids of more steps take more registers, and so do keys of two words. */
#define PLAIN_BLOCKS(nsteps, slots)                                                                \
	((nsteps) == 1 && (slots) == SLOTS_OF_TWO ? 2 : (nsteps) > 1 || (slots) != NO_SLOTS ? 3 : 4)

/* Adds the tuples that have come out; *over: some value overflows. */
template <typename V, int nsteps>
static __device__ __forceinline__ void
add_tuples(const Plain &plain, const GjColumn *columns, const TileRows<V> &rows,
		   const uint32_t (&found)[nsteps + 1][PLAIN_ROWS], uint32_t alive,
		   PlainSum (&sum)[PLAIN_EXPRS], bool *over)
{
#pragma unroll
	for (uint32_t k = 0; k < PLAIN_EXPRS; k++)
	{
		const PlainExpr &e = plain.expr[k];
		V a[PLAIN_ROWS];
		V b[PLAIN_ROWS];

		if (k >= plain.nexprs)
			break;
		load_plain<V, nsteps>(e.a, columns, rows, found, alive, a);
		if (e.op != GJ_OP_LOAD)
			load_plain<V, nsteps>(e.b, columns, rows, found, alive, b);
		*over |= add_plain(e, a, b, alive, &sum[k]);
	}
}

/* All threads of a block call it: partial[aggregate * gridDim.x + block], as fused_aggregate has
 * it. */
template <typename V, int nsteps>
static __device__ __forceinline__ void
finish_sums(const Plain &plain, const Input &input, bool over, const uint32_t (&counts)[nsteps + 1],
			const PlainSum (&sum)[PLAIN_EXPRS], GjAggState *partial)
{
	__shared__ GjAggState warp_states[GJ_WARPS];

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
			if (plain.expr_of[a] == k)
				finish_plain<V>(plain.expr[k], sum[k], &state);
		}
		gj_merge_block(GJ_AGG_SUM_I, &state, warp_states);
		if (threadIdx.x == 0)
			partial[(uint64_t) a * gridDim.x + blockIdx.x] = state;
	}
}

/*
 * Takes the tiles of a block's chunks through ranges and joins.  take(c, p, rows, found, alive)
 * gets what comes out of each: of chunk c of part p.
 */
template <typename V, int nsteps, PlainSlots slots, typename Take>
static __device__ __forceinline__ void
take_tiles(const Plain &plain, const Input &input, uint32_t (&counts)[nsteps + 1], Take take)
{
	Filters filters = {};
	uint32_t p = 0;

	for (uint32_t chunk = blockIdx.x; chunk < input.nchunks; chunk += gridDim.x)
	{
		const PlainChunk c = find_chunk(plain.ncolumns, input, chunk, &p);

		filters.start_chunk<nsteps>();
		for (uint32_t tile = c.first; tile < c.end; tile += Shape<V>::TILE)
		{
			const TileRows<V> rows(tile, c.end);
			uint32_t found[nsteps + 1][PLAIN_ROWS];
			const uint32_t alive = take_plain<V, nsteps, slots>(plain, c.columns, rows, filters,
																found, counts, input.results);

			take(c, p, rows, found, alive);
		}
	}
}

template <typename V, int nsteps, PlainSlots slots>
static __global__ void
__launch_bounds__(GJ_THREADS, PLAIN_BLOCKS(nsteps, slots))
	fused_plain(const __grid_constant__ Plain plain, const __grid_constant__ Input input,
				GjAggState *partial)
{
	PlainSum sum[PLAIN_EXPRS] = {};
	uint32_t counts[nsteps + 1] = {};
	bool over = false;

	take_tiles<V, nsteps, slots>(plain, input, counts,
								 [&](const PlainChunk &c, uint32_t, const TileRows<V> &rows,
									 const uint32_t(&found)[nsteps + 1][PLAIN_ROWS], uint32_t alive)
								 {
									 if (alive != 0)
										 add_tuples<V, nsteps>(plain, c.columns, rows, found, alive,
															   sum, &over);
								 });
	finish_sums<V, nsteps>(plain, input, over, counts, sum, partial);
}

/* Appends the rows that come out to lists of all slots, as fused_select does. */
template <typename V, int nsteps, PlainSlots slots>
static __global__ void
__launch_bounds__(GJ_THREADS, PLAIN_BLOCKS(nsteps, slots))
	fused_plain_select(const __grid_constant__ Plain plain, const __grid_constant__ Input input,
					   const __grid_constant__ TupleList to)
{
	uint32_t counts[nsteps + 1] = {};

	take_tiles<V, nsteps, slots>(plain, input, counts,
								 [&](const PlainChunk &c, uint32_t p, const TileRows<V> &rows,
									 const uint32_t(&found)[nsteps + 1][PLAIN_ROWS], uint32_t alive)
								 {
									 uint32_t at[PLAIN_ROWS];

									 __syncwarp();
									 if (!take_places<PLAIN_ROWS>(alive, c.first_row, &to.n[p], at))
										 return;
#pragma unroll
									 for (uint32_t i = 0; i < PLAIN_ROWS; i++)
									 {
										 if (!(alive >> i & 1))
											 continue;
										 to.rowid[0][at[i]] = Shape<V>::row(rows.first, i);
#pragma unroll
										 for (int s = 0; s < nsteps; s++)
											 to.rowid[s + 1][at[i]] = found[s][i];
									 }
								 });
	add_counts<nsteps>(input, counts);
}

#endif /* GJ_CUDA_FUSED_PLAIN_CUH */
