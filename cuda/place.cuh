/*
 * place.cuh
 *	  Where the blocks of a kernel put what they have: in the order of their numbers, one behind
 *	  the other, in one pass.  Each learns from those before it (Merrill and Garland, "Single-pass
 *	  parallel prefix scan with decoupled look-back", NVR-2016-002).
 */
#ifndef GJ_PLACE_CUH
#define GJ_PLACE_CUH

#include <cub/agent/single_pass_scan_operators.cuh>
#include <cub/block/block_scan.cuh>

#include "internal.cuh"

typedef cub::ScanTileState<uint64_t> TileState;
typedef cuda::std::plus<> Plus;
typedef cub::TilePrefixCallbackOp<uint64_t, Plus, TileState> TilePrefix;
typedef cub::BlockScan<uint32_t, GJ_THREADS> Scan;

/* Shared memory of place_values. */
struct Place
{
	union
	{
		typename Scan::TempStorage scan;
		typename TilePrefix::TempStorage prefix;
	};
	uint64_t first;
};

/*
 * Called by all threads of all blocks with the number of values that they have: returns
 * where this thread's go within the block's, and in *n and *first how many the block has
 * and where they go.  The last block notes the total.
 */
static __device__ __forceinline__ uint32_t
place_values(Place &place, TileState tiles, uint32_t count, GjResults *results, uint32_t *n,
			 uint64_t *first)
{
	uint32_t at;

	Scan(place.scan).ExclusiveSum(count, at, *n);
	__syncthreads();
	if (blockIdx.x == 0)
	{
		if (threadIdx.x == 0)
		{
			tiles.SetInclusive(0, (uint64_t) *n);
			place.first = 0;
		}
	}
	else if (threadIdx.x < 32)
	{
		TilePrefix prefix(tiles, place.prefix, Plus(), (int) blockIdx.x);
		const uint64_t before = prefix((uint64_t) *n);

		if (threadIdx.x == 0)
			place.first = before;
	}
	__syncthreads();
	*first = place.first;
	if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
		results->total = *first + *n;
	return at;
}

/* Scratch memory: the state of nblocks tiles, then `nbytes` of the caller's. */
static GjStatus
tile_memory(GjQueue *queue, uint32_t nblocks, size_t nbytes, TileState *tiles, void **rest)
{
	size_t state_bytes = 0;
	void *memory;

	GJ_CUDA(queue, TileState::AllocationSize((int) nblocks, state_bytes));
	state_bytes = (state_bytes + 255) / 256 * 256;
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, state_bytes + nbytes, &memory));
	GJ_CUDA(queue, tiles->Init((int) nblocks, memory, state_bytes));
	*rest = (char *) memory + state_bytes;
	return GJ_OK;
}

static __global__ void
__launch_bounds__(GJ_THREADS) start_tiles(TileState tiles, uint32_t nblocks, GjResults *results)
{
	tiles.InitializeStatus((int) nblocks);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		results->total = 0;
}

/* Makes the tiles of a kernel of nblocks blocks that calls place_values. */
static GjStatus
start_places(GjQueue *queue, uint32_t nblocks, TileState *tiles)
{
	void *rest;

	GJ_TRY(tile_memory(queue, nblocks, 0, tiles, &rest));
	start_tiles<<<gj_blocks(nblocks, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(*tiles, nblocks,
																				  queue->results);
	GJ_LAUNCHED(queue, "start_tiles");
	return GJ_OK;
}

#endif
