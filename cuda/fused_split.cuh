/*
 * fused_split.cuh
 *	  Rows that two devices exchange: those of the own part are joined as they are read, those of
 *	  the other part are written, here or to memory of the other device.
 *
 * A split that writes both parts and a join that reads the own one again take more of memory's
 * time than they need.  Here a warp lists values of the rows of both parts in shared memory.  From
 * one list it takes rows when they are as many as its threads look up at once: every other row of a
 * tile would be too few to hide how long that takes, and numbers of rows instead of values would
 * have them read from memory again.  From the other one it writes rows when each of its threads has
 * 16 bytes of a column to write, side by side with those of the others.
 *
 * Plans and columns are plain ones (fused_plain.cuh).  Of more parts most rows are written, which
 * split_tile.cuh does better.
 */
#ifndef GJ_CUDA_FUSED_SPLIT_CUH
#define GJ_CUDA_FUSED_SPLIT_CUH

#include "rows/hash.h"
#include "fused_plain.cuh"

#define SPLIT_COLUMNS 3 /* lists of more take too much shared memory */

/* An outer column, and where values of the other part go; NULL: nowhere. */
typedef struct SplitColumn
{
	PlainOperand of;
	void *to; /* a multiple of 16 */
} SplitColumn;

/* The other part, of which there is room for so many rows. */
typedef struct SplitPlan
{
	uint32_t part;
	uint32_t nparts;  /* of the input, whose rows are split: those behind are own ones, */
	uint32_t nchunks; /* and these parts' chunks */
	uint32_t room;
	uint32_t *n; /* rows that there are, also without room */
	uint32_t ncolumns;
	SplitColumn column[SPLIT_COLUMNS]; /* the first one is the key */
} SplitPlan;

/* ---- rows that wait */

/*
 * A warp's rows of both parts, values of the plan's columns, in shared memory: `own` ones that it
 * has yet to look up from the front on, and `sent` ones that it has yet to write at the end.
 */
template <typename V>
struct RowLists
{
	static constexpr uint32_t MANY = 32 * PLAIN_ROWS;      /* that a warp looks up at once */
	static constexpr uint32_t UNIT = 32 * Shape<V>::PIECE; /* that it writes at once */
	static constexpr uint32_t MOST = 2 * MANY + UNIT;

	V *value; /* of column c: [c * MOST + row] */
	uint32_t own;
	uint32_t sent;
};

/* A thread's rows of such a list, for a plan whose outer columns are those of the list. */
template <typename V>
struct ListRows
{
	const V *value; /* of row i: [c * MOST + i * 32] */
	uint32_t there;
};

template <typename V>
static __device__ __forceinline__ void
load_outer(const PlainOperand &of, const GjColumn *columns, const ListRows<V> &rows,
		   V (&value)[PLAIN_ROWS])
{
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
		value[i] = rows.value[of.column * RowLists<V>::MOST + i * 32];
}

/* Bytes of the lists of a block. */
template <typename V>
static size_t
list_bytes(uint32_t ncolumns)
{
	return (size_t) GJ_WARPS * ncolumns * RowLists<V>::MOST * sizeof(V);
}

/* Takes the last own rows, at most MANY, off their list. */
template <typename V>
static __device__ __forceinline__ ListRows<V>
take_own(RowLists<V> *lists)
{
	const uint32_t n = min(lists->own, RowLists<V>::MANY);
	const uint32_t lane = threadIdx.x % 32;
	ListRows<V> rows = {NULL, 0};

	lists->own -= n;
	rows.value = lists->value + lists->own + lane;
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
		rows.there |= (uint32_t) (lane + i * 32 < n) << i;
	return rows;
}

static __device__ __forceinline__ void
store_piece(int64_t *to, const int64_t (&value)[2])
{
	*(longlong2 *) to = make_longlong2(value[0], value[1]);
}

static __device__ __forceinline__ void
store_piece(int32_t *to, const int64_t (&value)[2])
{
	*(int2 *) to = make_int2((int32_t) value[0], (int32_t) value[1]);
}

static __device__ __forceinline__ void
store_piece(int32_t *to, const int32_t (&value)[4])
{
	*(int4 *) to = make_int4(value[0], value[1], value[2], value[3]);
}

/* Writes n values of a list to rows `at` on: all of a UNIT side by side, whatever their order. */
template <typename T, typename V>
static __device__ __forceinline__ void
send_values(const SplitPlan &split, T *to, const V *list, uint32_t at, uint32_t n)
{
	const uint32_t lane = threadIdx.x % 32;
	V value[Shape<V>::PIECE];

#pragma unroll
	for (uint32_t i = 0; i < Shape<V>::PIECE; i++)
		value[i] = i * 32 + lane < n ? list[i * 32 + lane] : 0;
	/* others may have written their last rows, fewer than a UNIT */
	if (n == RowLists<V>::UNIT && at % n == 0 && at + n <= split.room)
	{
		store_piece(to + at + lane * Shape<V>::PIECE, value);
		return;
	}
#pragma unroll
	for (uint32_t i = 0; i < Shape<V>::PIECE; i++)
	{
		if (i * 32 + lane < n && at + i * 32 + lane < split.room)
			to[at + i * 32 + lane] = (T) value[i];
	}
}

/* All lanes of the warp call it: takes the last n sent rows, at most a UNIT, off their list. */
template <typename V>
static __device__ __forceinline__ void
send_rows(const SplitPlan &split, uint32_t n, RowLists<V> *lists)
{
	const V *list = lists->value + RowLists<V>::MOST - lists->sent;
	uint32_t at = 0;

	if (threadIdx.x % 32 == 0)
		at = atomicAdd(split.n, n);
	at = __shfl_sync(0xFFFFFFFF, at, 0);
#pragma unroll 1
	for (uint32_t c = 0; c < split.ncolumns; c++)
	{
		const SplitColumn &column = split.column[c];

		if (column.to == NULL)
			;
		else if (sizeof(V) == sizeof(int64_t) && column.of.wide)
			send_values(split, (V *) column.to, list, at, n);
		else
			send_values(split, (int32_t *) column.to, list, at, n);
		list += RowLists<V>::MOST;
	}
	lists->sent -= n;
	/* what was taken is read no more */
	__syncwarp();
}

/* ---- tiles */

/* All lanes of the warp call it: finds places in the lists for a tile's rows, by their keys. */
template <typename V>
static __device__ __forceinline__ void
find_places(const SplitPlan &split, bool is_own, uint32_t there, const V (&key)[PLAIN_ROWS],
			RowLists<V> *lists, uint32_t (&at)[PLAIN_ROWS])
{
	const uint32_t before = (1u << threadIdx.x % 32) - 1;

#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
	{
		const bool sent = !is_own && gj_hash_part(gj_hash_combine(0, key[i]), 2) == split.part;
		const uint32_t all = __ballot_sync(0xFFFFFFFF, there >> i & 1);
		const uint32_t others = __ballot_sync(0xFFFFFFFF, sent) & all;
		const uint32_t own = all & ~others;

		at[i] = sent ? RowLists<V>::MOST - 1 - lists->sent - __popc(others & before)
					 : lists->own + __popc(own & before);
		lists->sent += __popc(others);
		lists->own += __popc(own);
	}
}

/* Values of column c of a tile's rows. */
template <typename V>
static __device__ __forceinline__ void
put_values(uint32_t c, uint32_t there, const uint32_t (&at)[PLAIN_ROWS],
		   const V (&value)[PLAIN_ROWS], const RowLists<V> &lists)
{
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
	{
		if (there >> i & 1)
			lists.value[c * RowLists<V>::MOST + at[i]] = value[i];
	}
}

/* All lanes of the warp call it: lists a tile's rows, and writes those that are many enough. */
template <typename V>
static __device__ __forceinline__ void
split_tile(const SplitPlan &split, bool is_own, const GjColumn *columns, const TileRows<V> &tile,
		   RowLists<V> *lists)
{
	uint32_t at[PLAIN_ROWS];
	V key[PLAIN_ROWS];
	V value[PLAIN_ROWS];

	load_outer(split.column[0].of, columns, tile, key);
	/* they are under way while places are found */
	if (split.ncolumns > 1)
		load_outer(split.column[1].of, columns, tile, value);
	find_places(split, is_own, tile.there, key, lists, at);
	put_values(0, tile.there, at, key, *lists);
#pragma unroll 1
	for (uint32_t c = 1; c < split.ncolumns; c++)
	{
		put_values(c, tile.there, at, value, *lists);
		if (c + 1 < split.ncolumns)
			load_outer(split.column[c + 1].of, columns, tile, value);
	}
	__syncwarp();
	while (lists->sent >= RowLists<V>::UNIT)
		send_rows(split, RowLists<V>::UNIT, lists);
}

/*
 * A block's next chunks: of rows that are split, and of own ones, whose numbers follow theirs. Both
 * kinds take turns in each block, so that rows are looked up while others are written, which the
 * way to another device may hold up; half of the blocks begin with own ones.
 */
struct Turns
{
	const uint32_t nsplit;
	const uint32_t nown;
	uint32_t split = blockIdx.x;
	uint32_t own = blockIdx.x;
	bool own_first = (blockIdx.x * 0x9E3779B9u) >> 31;

	__device__ __forceinline__
	Turns(const SplitPlan &plan, const Input &input)
		: nsplit(plan.nchunks), nown(input.nchunks - plan.nchunks)
	{
	}

	__device__ __forceinline__ bool
	left() const
	{
		return split < nsplit || own < nown;
	}

	/* The next one, of which there is one. */
	__device__ __forceinline__ uint32_t
	take(bool *is_own)
	{
		uint32_t chunk;

		/* the kind of which less has been done */
		*is_own = own < nown && (split >= nsplit || own_first ||
								 (uint64_t) own * nsplit < (uint64_t) split * nown);
		own_first = false;
		chunk = *is_own ? nsplit + own : split;
		(*is_own ? own : split) += gridDim.x;
		return chunk;
	}
};

/* ---- kernels */

template <typename V, int nsteps, bool hashed>
static __global__ void
__launch_bounds__(GJ_THREADS, PLAIN_BLOCKS(nsteps, hashed))
	fused_plain_split(const __grid_constant__ Plain plain, const __grid_constant__ Input input,
					  const __grid_constant__ SplitPlan split, GjAggState *partial)
{
	extern __shared__ uint4 memory[];
	RowLists<V> lists = {
		(V *) memory + (size_t) threadIdx.x / 32 * split.ncolumns * RowLists<V>::MOST, 0, 0};
	PlainSum sum[PLAIN_EXPRS] = {};
	uint32_t counts[nsteps + 1] = {};
	Filters filters = {};
	bool over = false;
	Turns turns(split, input);
	uint32_t tile = 0;
	uint32_t split_p = 0;
	uint32_t own_p = split.nparts;
	bool is_own = false;
	PlainChunk c = {};

	for (;;)
	{
		/* as many as are looked up at once, or all that are left */
		while (lists.own < RowLists<V>::MANY && (tile < c.end || turns.left()))
		{
			if (tile >= c.end)
			{
				const uint32_t chunk = turns.take(&is_own);

				c = is_own ? find_chunk(plain, input, chunk, &own_p)
						   : find_chunk(plain, input, chunk, &split_p);
				tile = c.first;
				filters.start_chunk<nsteps>();
			}
			split_tile(split, is_own, c.columns, TileRows<V>(tile, c.end), &lists);
			tile += Shape<V>::TILE;
		}
		if (lists.own == 0)
			break;

		const ListRows<V> rows = take_own(&lists);
		uint32_t found[nsteps + 1][PLAIN_ROWS];
		const uint32_t alive =
			take_plain<V, nsteps, hashed>(plain, NULL, rows, filters, found, counts);

		if (alive != 0)
			add_tuples<V, nsteps>(plain, NULL, rows, found, alive, sum, &over);
		/* what was taken is read no more */
		__syncwarp();
	}
	if (lists.sent > 0)
		send_rows(split, lists.sent, &lists);
	finish_sums<V, nsteps>(plain, input, over, counts, sum, partial);
}

/* Where the rows of the other part are. */
static __global__ void
tell_sent(const __grid_constant__ SplitPlan split, GjSplitParts *parts)
{
	const uint32_t n = *split.n;

	parts->end[split.part] = n;
	parts->full = n > split.room;
}

#endif /* GJ_CUDA_FUSED_SPLIT_CUH */
