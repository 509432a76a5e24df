/*
 * fused_plain_joins.cuh
 *	  What a plain plan of the fused operator is (fused_plain.cuh), and the way of a thread's rows
 *	  through its ranges and joins.
 */
#ifndef GJ_CUDA_FUSED_PLAIN_JOINS_CUH
#define GJ_CUDA_FUSED_PLAIN_JOINS_CUH

#include <type_traits>

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

#endif /* GJ_CUDA_FUSED_PLAIN_JOINS_CUH */
