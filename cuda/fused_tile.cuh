/*
 * fused_tile.cuh
 *	  The rows that a thread takes of a tile, and their values, for the plain plans of the fused
 *	  operator (fused_plain.cuh).
 */
#ifndef GJ_CUDA_FUSED_TILE_CUH
#define GJ_CUDA_FUSED_TILE_CUH

#include "internal.cuh"

/*
 * A thread of a kernel that computes with V, int32_t or int64_t, takes ROWS rows: the lanes of a
 * warp take PIECE rows each that lie side by side, 16 bytes of a column, and then as many again.
 */
template <typename V>
struct Shape
{
	static constexpr uint32_t PIECE = 16 / sizeof(V);
	static constexpr uint32_t ROWS = 2 * PIECE;
	static constexpr uint32_t TILE = GJ_THREADS * ROWS; /* rows of a block */
	static constexpr uint32_t ALL = (1u << ROWS) - 1;

	/* The first row of the thread in a tile. */
	static __device__ __forceinline__ uint32_t
	first(uint32_t tile)
	{
		return tile + threadIdx.x / 32 * 32 * ROWS + threadIdx.x % 32 * PIECE;
	}

	static __device__ __forceinline__ uint32_t
	row(uint32_t first, uint32_t i)
	{
		return first + i / PIECE * 32 * PIECE + i % PIECE;
	}

	/* Those of its rows that lie before `end`. */
	static __device__ __forceinline__ uint32_t
	there(uint32_t first, uint32_t tile, uint32_t end)
	{
		uint32_t mask = ALL;

		if (end - tile >= TILE)
			return mask;
#pragma unroll
		for (uint32_t i = 0; i < ROWS; i++)
		{
			if (row(first, i) >= end)
				mask &= ~(1u << i);
		}
		return mask;
	}
};

#define PLAIN_ROWS Shape<V>::ROWS

/* A thread's rows of a tile: those of the bits of `there`. */
template <typename V>
struct TileRows
{
	uint32_t first;
	uint32_t there;

	__device__ __forceinline__
	TileRows(uint32_t tile, uint32_t end)
		: first(Shape<V>::first(tile)), there(Shape<V>::there(first, tile, end))
	{
	}
};

static __device__ __forceinline__ void
load_piece(const int32_t *data, int32_t *value)
{
	const int4 v = __ldg((const int4 *) data);

	value[0] = v.x;
	value[1] = v.y;
	value[2] = v.z;
	value[3] = v.w;
}

static __device__ __forceinline__ void
load_piece(const int64_t *data, int64_t *value)
{
	const longlong2 v = __ldg((const longlong2 *) data);

	value[0] = v.x;
	value[1] = v.y;
}

static __device__ __forceinline__ void
load_piece(const int32_t *data, int64_t *value)
{
	const int2 v = __ldg((const int2 *) data);

	value[0] = v.x;
	value[1] = v.y;
}

/* The same of numbers of packed columns. */
static __device__ __forceinline__ void
load_piece(const uint32_t *data, int32_t *value)
{
	load_piece((const int32_t *) data, value);
}

static __device__ __forceinline__ void
load_piece(const uint16_t *data, int32_t *value)
{
	const ushort4 v = __ldg((const ushort4 *) data);

	value[0] = v.x;
	value[1] = v.y;
	value[2] = v.z;
	value[3] = v.w;
}

static __device__ __forceinline__ void
load_piece(const uint8_t *data, int32_t *value)
{
	const uchar4 v = __ldg((const uchar4 *) data);

	value[0] = v.x;
	value[1] = v.y;
	value[2] = v.z;
	value[3] = v.w;
}

static __device__ __forceinline__ void
load_piece(const uint32_t *data, int64_t *value)
{
	const uint2 v = __ldg((const uint2 *) data);

	value[0] = v.x;
	value[1] = v.y;
}

static __device__ __forceinline__ void
load_piece(const uint16_t *data, int64_t *value)
{
	const ushort2 v = __ldg((const ushort2 *) data);

	value[0] = v.x;
	value[1] = v.y;
}

static __device__ __forceinline__ void
load_piece(const uint8_t *data, int64_t *value)
{
	const uchar2 v = __ldg((const uchar2 *) data);

	value[0] = v.x;
	value[1] = v.y;
}

/* Values of the rows that are there; `data` is what the column has for row 0. */
template <typename T, typename V>
static __device__ __forceinline__ void
load_rows(const T *data, const TileRows<V> &rows, V (&value)[PLAIN_ROWS])
{
	/* a part that starts within a fragment may not be aligned */
	if (rows.there != Shape<V>::ALL || (uintptr_t) data % (Shape<V>::PIECE * sizeof(T)) != 0)
	{
#pragma unroll
		for (uint32_t i = 0; i < PLAIN_ROWS; i++)
			value[i] = rows.there >> i & 1 ? (V) data[Shape<V>::row(rows.first, i)] : 0;
		return;
	}
#pragma unroll
	for (uint32_t i = 0; i < PLAIN_ROWS; i += Shape<V>::PIECE)
		load_piece(data + Shape<V>::row(rows.first, i), value + i);
}

#endif /* GJ_CUDA_FUSED_TILE_CUH */
