/*
 * split_tile.cuh
 *	  Splits rows by their keys in one kernel, if the key is a plain column and each part has a
 *	  fixed place (GjSplit.stride).
 *
 * A block counts the rows of each part in its tile and reserves places in each part for them.  It
 * sorts them by part in shared memory, one column after the other, and writes them from there.
 * So each warp writes 32 values next to each other, and memory is nearly as busy as in a copy.
 */
#ifndef GJ_CUDA_SPLIT_TILE_CUH
#define GJ_CUDA_SPLIT_TILE_CUH

#include "split.cuh"

#define TILE_STEPS 4u /* rows of a thread */
#define TILE_ROWS (TILE_STEPS * GJ_THREADS)
#define TILE_WARPS (GJ_THREADS / WARP)
#define WARP_ROWS (TILE_STEPS * WARP)

/* Values of a thread's rows in a column of up to 8 bytes: their low bytes. */
typedef uint64_t Values[TILE_STEPS];

/* What the threads of a block tell each other. */
typedef struct Tile
{
	uint64_t stage[TILE_ROWS];                   /* a column's values, part by part */
	uint8_t part[TILE_ROWS];                     /* of the row in that place of the stage */
	uint32_t before[TILE_WARPS][GJ_SPLIT_PARTS]; /* rows of the part in warps before */
	uint32_t first[GJ_SPLIT_PARTS];              /* the part's first place in the stage */
	uint32_t to[GJ_SPLIT_PARTS];                 /* goes here; less first[], modulo 2^32 */
	bool full;                                   /* a part has no room for its rows */
} Tile;

/* The thread's rows of a tile; returns the bits of those there are.  LISTS: pieces may be lists. */
template <bool LISTS>
static __device__ __forceinline__ uint32_t
find_rows(const Strip &strip, const Piece &piece, uint32_t (&row)[TILE_STEPS])
{
	const uint32_t first = threadIdx.x / WARP * WARP_ROWS + threadIdx.x % WARP;
	uint32_t there = 0;

#pragma unroll
	for (uint32_t s = 0; s < TILE_STEPS; s++)
	{
		const uint32_t r = first + s * WARP;

		there |= (uint32_t) (r < strip.n) << s;
		row[s] = strip.first + r;
		if (LISTS && piece.rows != NULL && r < strip.n)
			row[s] = piece.rows[strip.first + r];
	}
	return there;
}

template <typename T>
static __device__ __forceinline__ void
load_values(const T *from, uint32_t step, const uint32_t (&row)[TILE_STEPS], uint32_t there,
			Values &value)
{
#pragma unroll
	for (uint32_t s = 0; s < TILE_STEPS; s++)
	{
		value[s] = 0;
		if (there >> s & 1)
			value[s] = from[(size_t) row[s] * step];
	}
}

/* The same of a packed column. */
static __device__ __noinline__ void
unpack_values(const GjColumn &column, const uint32_t (&row)[TILE_STEPS], uint32_t there,
			  Values &value)
{
#pragma unroll
	for (uint32_t s = 0; s < TILE_STEPS; s++)
		value[s] = there >> s & 1 ? (uint64_t) gj_packed_value(&column, row[s]) : 0;
}

/* The same of `width` bytes; `from` is NULL: all are 0. */
static __device__ __forceinline__ void
load_values(const void *from, uint32_t width, uint32_t step, const uint32_t (&row)[TILE_STEPS],
			uint32_t there, Values &value)
{
	if (from == NULL)
		there = 0;
	switch (width)
	{
		case 1:
			return load_values((const uint8_t *) from, 1, row, there, value);
		case 2:
			return load_values((const uint16_t *) from, 1, row, there, value);
		case 4:
			return load_values((const uint32_t *) from, 1, row, there, value);
		default:
			return load_values((const uint64_t *) from, step, row, there, value);
	}
}

static __device__ __forceinline__ void
load_values(const From &from, const Target &target, const uint32_t (&row)[TILE_STEPS],
			uint32_t there, Values &value)
{
	if (from.column.packed)
		unpack_values(from.column, row, there, value);
	else
		load_values(from.data, target.width, target.step, row, there, value);
}

/* Takes places of each part for the tile's rows, which its warps have counted; for one warp. */
static __device__ __forceinline__ void
take_places(const Input &input, Tile &tile)
{
	const uint32_t lane = threadIdx.x % WARP;
	const bool is_part = lane < input.nparts;
	uint32_t taken = 0;
	uint32_t n = 0;
	uint32_t end;

	for (uint32_t w = 0; w < TILE_WARPS && is_part; w++)
	{
		const uint32_t count = tile.before[w][lane];

		tile.before[w][lane] = n;
		n += count;
	}
	if (is_part)
		taken = atomicAdd(&input.taken[lane], n);
	end = sum_up_to_lane(n);
	if (is_part)
	{
		tile.first[lane] = end - n;
		tile.to[lane] = lane * input.stride + taken - (end - n);
	}
	const bool full = __any_sync(0xFFFFFFFF, is_part && taken + n > input.stride);

	if (lane == 0)
		tile.full = full;
}

/*
 * Puts the tile's rows in order.  at[]: the parts of the thread's rows, then their places in the
 * stage.  The block waits for all of it.
 */
static __device__ __forceinline__ void
find_places(const Input &input, Tile &tile, uint32_t there, uint32_t (&at)[TILE_STEPS])
{
	const uint32_t warp = threadIdx.x / WARP;
	const uint32_t lane = threadIdx.x % WARP;
	uint32_t part[TILE_STEPS];
	uint32_t count = 0; /* the warp's rows of part `lane` */

#pragma unroll
	for (uint32_t s = 0; s < TILE_STEPS; s++)
	{
		part[s] = at[s];
		at[s] = next_place(part[s], __ballot_sync(0xFFFFFFFF, there >> s & 1), &count);
	}
	if (lane < GJ_SPLIT_PARTS)
		tile.before[warp][lane] = count;
	__syncthreads();
	if (warp == 0)
		take_places(input, tile);
	__syncthreads();
#pragma unroll
	for (uint32_t s = 0; s < TILE_STEPS; s++)
	{
		at[s] += tile.first[part[s]] + tile.before[warp][part[s]];
		if (there >> s & 1)
			tile.part[at[s]] = (uint8_t) part[s];
	}
}

/* Writes a column of the tile's n rows from the stage; `step`: see Target. */
template <typename T>
static __device__ __forceinline__ void
write_stage(const Tile &tile, uint32_t n, T *to, uint32_t step)
{
#pragma unroll
	for (uint32_t s = 0; s < TILE_STEPS; s++)
	{
		const uint32_t i = threadIdx.x + s * GJ_THREADS;

		if (i < n)
			to[(size_t) (tile.to[tile.part[i]] + i) * step] = ((const T *) tile.stage)[i];
	}
}

template <typename T>
static __device__ __forceinline__ void
fill_stage(Tile &tile, const uint32_t (&at)[TILE_STEPS], uint32_t there, const Values &value)
{
#pragma unroll
	for (uint32_t s = 0; s < TILE_STEPS; s++)
	{
		if (there >> s & 1)
			((T *) tile.stage)[at[s]] = (T) value[s];
	}
}

static __device__ __forceinline__ void
fill_stage(Tile &tile, uint32_t width, const uint32_t (&at)[TILE_STEPS], uint32_t there,
		   const Values &value)
{
	switch (width)
	{
		case 1:
			return fill_stage<uint8_t>(tile, at, there, value);
		case 2:
			return fill_stage<uint16_t>(tile, at, there, value);
		case 4:
			return fill_stage<uint32_t>(tile, at, there, value);
		default:
			return fill_stage<uint64_t>(tile, at, there, value);
	}
}

static __device__ __forceinline__ void
write_stage(const Tile &tile, uint32_t n, const Target &target)
{
	switch (target.width)
	{
		case 1:
			return write_stage(tile, n, (uint8_t *) target.to, 1);
		case 2:
			return write_stage(tile, n, (uint16_t *) target.to, 1);
		case 4:
			return write_stage(tile, n, (uint32_t *) target.to, 1);
		default:
			return write_stage(tile, n, (uint64_t *) target.to, target.step);
	}
}

/* A block for each tile, which is a strip of TILE_ROWS. */
template <bool LISTS>
static __global__ void
__launch_bounds__(GJ_THREADS, 5) split_at_once(const __grid_constant__ Input input)
{
	__shared__ Tile tile;
	const Strip strip = find_strip(input, blockIdx.x, TILE_ROWS);
	const Piece piece = input.pieces[strip.piece];
	const GjColumn *key = input.keys + strip.piece;
	const From *from = input.from + (size_t) strip.piece * input.ntargets;
	uint32_t row[TILE_STEPS];
	uint32_t at[TILE_STEPS];
	const uint32_t there = find_rows<LISTS>(strip, piece, row);
	/* mostly it is the key itself, which need not be read again */
	const bool writes_key =
		input.ntargets > 0 && from[0].data == key->data && input.targets[0].width == key->width;
	uint32_t next = writes_key;
	Values keys;
	Values value = {};

	load_values(key->data, key->width, 1, row, there, keys);
	/* values are under way while those before them are written */
	if (next < input.ntargets)
		load_values(from[next], input.targets[next], row, there, value);
#pragma unroll
	for (uint32_t s = 0; s < TILE_STEPS; s++)
		at[s] = plain_part(input, key->kind == GJ_INT8 ? (int64_t) keys[s] : (int32_t) keys[s]);
	find_places(input, tile, there, at);
	if (tile.full)
		return;
	if (writes_key)
	{
		fill_stage(tile, key->width, at, there, keys);
		__syncthreads();
		write_stage(tile, strip.n, input.targets[0]);
		__syncthreads();
	}
	while (next < input.ntargets)
	{
		const Target target = input.targets[next];

		fill_stage(tile, target.width, at, there, value);
		next++;
		if (next < input.ntargets)
			load_values(from[next], input.targets[next], row, there, value);
		__syncthreads();
		write_stage(tile, strip.n, target);
		__syncthreads();
	}
}

/* Where the parts are that split_at_once has written; a thread for each. */
static __global__ void
tell_parts(const __grid_constant__ Input input)
{
	const uint32_t part = threadIdx.x;
	const uint32_t n = input.taken[part];

	input.parts->start[part] = part * input.stride;
	input.parts->end[part] = part * input.stride + n;
	if (n > input.stride)
		input.parts->full = true;
}

#endif /* GJ_CUDA_SPLIT_TILE_CUH */
