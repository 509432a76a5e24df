/*
 * fused_split.cuh
 *	  Rows that two devices exchange: those of the own part are joined as they are read, those of
 *	  the other part are written.
 *
 * A split that writes both parts and a join that reads the own one again take more of memory's
 * time than they need.  Here a warp appends rows of the other part to what is sent, and values of
 * its own rows to a list in shared memory, from which it takes rows when they are as many as its
 * threads look up at once: every other row of a tile would be too few to hide how long that takes,
 * and numbers of rows instead of values would have them read from memory again.
 *
 * Plans and columns are plain ones (fused_plain.cuh).  Of more parts most rows are written, which
 * split_tile.cuh does better.
 */
#ifndef GJ_CUDA_FUSED_SPLIT_CUH
#define GJ_CUDA_FUSED_SPLIT_CUH

#include "../src/rows/hash.h"
#include "fused_plain.cuh"

#define SPLIT_COLUMNS 3 /* lists of more take too much shared memory */

/* An outer column, and where values of the other part go; NULL: nowhere. */
typedef struct SplitColumn
{
	PlainOperand of;
	void *to;
} SplitColumn;

/* The other part: rows first .. first+room-1 of what they are written to. */
typedef struct SplitPlan
{
	uint32_t part;
	uint32_t first;
	uint32_t room;
	uint32_t *n; /* rows that there are, also without room */
	uint32_t ncolumns;
	SplitColumn column[SPLIT_COLUMNS]; /* the first one is the key */
} SplitPlan;

/* ---- own rows that wait */

/* Rows of a warp that it has yet to look up: values of the plan's columns, in shared memory. */
template <typename V>
struct RowList
{
	static constexpr uint32_t MANY = 32 * PLAIN_ROWS; /* that a warp looks up at once */
	static constexpr uint32_t MOST = 2 * MANY;

	V *value; /* of column c: [c * MOST + row] */
	uint32_t n;
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
		value[i] = rows.value[of.column * RowList<V>::MOST + i * 32];
}

/* Bytes of the lists of a block. */
template <typename V>
static size_t
list_bytes(uint32_t ncolumns)
{
	return (size_t) GJ_WARPS * ncolumns * RowList<V>::MOST * sizeof(V);
}

/* Takes the last rows, at most MANY, off the list. */
template <typename V>
static __device__ __forceinline__ ListRows<V>
take_rows(RowList<V> *list)
{
	const uint32_t n = min(list->n, RowList<V>::MANY);
	const uint32_t lane = threadIdx.x % 32;
	ListRows<V> rows = {NULL, 0};

	list->n -= n;
	rows.value = list->value + list->n + lane;
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
		rows.there |= (uint32_t) (lane + i * 32 < n) << i;
	return rows;
}

/* ---- tiles */

/* Where a thread's rows of a tile go: to the other part, or to the list. */
template <typename V>
struct SplitRows
{
	uint32_t sent;
	uint32_t own;
	uint32_t at[PLAIN_ROWS];
};

/* All lanes of the warp call it: finds places for rows, by their keys. */
template <typename V>
static __device__ __forceinline__ SplitRows<V>
find_places(const SplitPlan &split, uint32_t there, const V (&key)[PLAIN_ROWS], RowList<V> *list)
{
	const uint32_t before = (1u << threadIdx.x % 32) - 1;
	SplitRows<V> rows = {};

#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
	{
		const uint32_t part = gj_hash_part(gj_hash_combine(0, key[i]), 2);

		rows.sent |= (uint32_t) (part == split.part) << i;
	}
	rows.own = there & ~rows.sent;
	rows.sent &= there;
	if (take_places<PLAIN_ROWS>(rows.sent, 0, split.n, rows.at))
	{
#pragma unroll
		for (uint32_t i = 0; i < PLAIN_ROWS; i++)
		{
			if (rows.at[i] >= split.room)
				rows.sent &= ~(1u << i);
			rows.at[i] += split.first;
		}
	}
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
	{
		const uint32_t lanes = __ballot_sync(0xFFFFFFFF, rows.own >> i & 1);

		if (rows.own >> i & 1)
			rows.at[i] = list->n + __popc(lanes & before);
		list->n += __popc(lanes);
	}
	return rows;
}

template <typename T, typename V>
static __device__ __forceinline__ void
send_values(T *to, const SplitRows<V> &rows, const V (&value)[PLAIN_ROWS])
{
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
	{
		if (rows.sent >> i & 1)
			to[rows.at[i]] = (T) value[i];
	}
}

/* Values of column c of a tile's rows. */
template <typename V>
static __device__ __forceinline__ void
put_values(const SplitPlan &split, uint32_t c, const SplitRows<V> &rows,
		   const V (&value)[PLAIN_ROWS], const RowList<V> &list)
{
	const SplitColumn &column = split.column[c];

	if (column.to == NULL)
		;
	else if (sizeof(V) == sizeof(int64_t) && column.of.wide)
		send_values((int64_t *) column.to, rows, value);
	else
		send_values((int32_t *) column.to, rows, value);
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i++)
	{
		if (rows.own >> i & 1)
			list.value[c * RowList<V>::MOST + rows.at[i]] = value[i];
	}
}

/* All lanes of the warp call it: sends rows of a tile, and lists the others. */
template <typename V>
static __device__ __forceinline__ void
split_tile(const SplitPlan &split, const GjColumn *columns, const TileRows<V> &tile,
		   RowList<V> *list)
{
	V key[PLAIN_ROWS];
	V value[PLAIN_ROWS];

	load_outer(split.column[0].of, columns, tile, key);
	/* they are under way while places are found */
	if (split.ncolumns > 1)
		load_outer(split.column[1].of, columns, tile, value);

	const SplitRows<V> rows = find_places(split, tile.there, key, list);

	put_values(split, 0, rows, key, *list);
#pragma unroll 1
	for (uint32_t c = 1; c < split.ncolumns; c++)
	{
		put_values(split, c, rows, value, *list);
		if (c + 1 < split.ncolumns)
			load_outer(split.column[c + 1].of, columns, tile, value);
	}
	__syncwarp();
}

/* ---- kernels */

template <typename V, int nsteps, bool hashed>
static __global__ void
__launch_bounds__(GJ_THREADS, PLAIN_BLOCKS(nsteps, hashed))
	fused_plain_split(const __grid_constant__ Plain plain, const __grid_constant__ Input input,
					  const __grid_constant__ SplitPlan split, GjAggState *partial)
{
	extern __shared__ uint4 memory[];
	RowList<V> list = {(V *) memory + (size_t) threadIdx.x / 32 * split.ncolumns * RowList<V>::MOST,
					   0};
	PlainSum sum[PLAIN_EXPRS] = {};
	uint32_t counts[nsteps + 1] = {};
	Filters filters = {};
	bool over = false;
	uint32_t chunk = blockIdx.x;
	uint32_t tile = 0;
	uint32_t p = 0;
	PlainChunk c = {};

	for (;;)
	{
		/* as many as are looked up at once, or all that are left */
		while (list.n < RowList<V>::MANY && (tile < c.end || chunk < input.nchunks))
		{
			if (tile >= c.end)
			{
				c = find_chunk(plain, input, chunk, &p);
				chunk += gridDim.x;
				tile = c.first;
				filters.start_chunk<nsteps>();
			}
			split_tile(split, c.columns, TileRows<V>(tile, c.end), &list);
			tile += Shape<V>::TILE;
		}
		if (list.n == 0)
			break;

		const ListRows<V> rows = take_rows(&list);
		uint32_t found[nsteps + 1][PLAIN_ROWS];
		const uint32_t alive =
			take_plain<V, nsteps, hashed>(plain, NULL, rows, filters, found, counts);

		if (alive != 0)
			add_tuples<V, nsteps>(plain, NULL, rows, found, alive, sum, &over);
		/* what was taken is read no more */
		__syncwarp();
	}
	finish_sums<V, nsteps>(plain, input, over, counts, sum, partial);
}

/* Where the rows of the other part are. */
static __global__ void
tell_sent(const __grid_constant__ SplitPlan split, GjSplitParts *parts)
{
	const uint32_t n = *split.n;

	parts->start[split.part] = split.first;
	parts->end[split.part] = split.first + n;
	parts->full = n > split.room;
}

#endif /* GJ_CUDA_FUSED_SPLIT_CUH */
