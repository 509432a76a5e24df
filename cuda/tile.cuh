/*
 * tile.cuh
 *	  A block's tile: the registers of gj_eval in shared memory.
 *
 * A block of GJ_THREADS threads evaluates an expression over a tile of rows; a row
 * belongs to one thread (GJ_TILE_FOR), so a tile needs no barrier.  Tiles are sized
 * so that their registers take at most 36 kB: six blocks of an SM run at once, and no
 * GPU needs to be asked for more than its 48 kB.
 */
#ifndef GJ_CUDA_TILE_CUH
#define GJ_CUDA_TILE_CUH

#include "internal.cuh"

/* Rows of a tile with `nregisters` registers. */
static inline uint32_t
gj_tile_rows(uint32_t nregisters)
{
	return nregisters <= 4 ? 1024 : nregisters <= 8 ? 512 : 256;
}

/* Bytes of shared memory of such a tile. */
static inline size_t
gj_tile_bytes(uint32_t nregisters)
{
	return (size_t) nregisters * gj_tile_rows(nregisters) * (sizeof(int64_t) + 1);
}

/* Lays a tile out in `memory`, 8-byte aligned. */
static __device__ __forceinline__ GjTile
gj_tile_at(int64_t *memory, uint32_t nregisters, uint32_t rows)
{
	GjTile tile;

	tile.value = memory;
	tile.null = (uint8_t *) (memory + (size_t) nregisters * rows);
	tile.stride = rows;
	return tile;
}

/* Expression `e` of the queue's program (host). */
static inline const GjExpr *
gj_queue_expr(const GjQueue *queue, uint32_t e)
{
	return &gj_program_array(queue->program, GjExpr, exprs)[e];
}

#endif /* GJ_CUDA_TILE_CUH */
