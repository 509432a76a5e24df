/*
 * set_keep.cu
 *	  Which pairs of a tile are kept, once their common elements are counted: those that the
 *	  predicate wants, or the best ones of each left set.
 */
#include <cub/block/block_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include "place.cuh"
#include "set_tile.cuh"

#define BEST_THREADS 1024 /* of a block, for a left set that is to have its best */

#define WARP_COLUMNS 1024 /* of one row: 32 for each lane, whose bits it keeps */
#define KEEP_ITEMS 4      /* of a lane at a time */

/*
 * Writes the pairs that are wanted, by row and column.  Blocks are few, for each waits for what
 * those before it have: 11 ns a block, measured.
 */
static __global__ void
__launch_bounds__(GJ_THREADS) keep_wanted(Tile tile, TileState tiles, GjResults *results,
										  uint32_t *left, uint32_t *right, uint32_t *common)
{
	__shared__ Place place;
	const uint32_t nparts = (tile.nright + WARP_COLUMNS - 1) / WARP_COLUMNS;
	const uint32_t warp = (blockIdx.x * GJ_THREADS + threadIdx.x) / 32;
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t row = min(warp / nparts, tile.nleft - 1);
	const uint32_t first = warp % nparts * WARP_COLUMNS;
	const uint32_t *counts = tile.counts + (uint64_t) row * tile.stride;
	const uint32_t least = tile.least[row];
	const uint64_t na = get_left(tile, row).n;
	const bool skip = warp / nparts >= tile.nleft || least == SKIP_ROW;
	uint32_t wanted = 0; /* of columns first + lane * 32 .. + 31 */
	uint32_t n;
	uint32_t at;
	uint64_t to;

	/* all lanes of a warp take the same turns; the loads of one are under way together */
	for (uint32_t base = 0; base < WARP_COLUMNS && first + base < tile.nright && !skip;
		 base += KEEP_ITEMS * 32)
	{
		uint32_t count[KEEP_ITEMS];
		uint32_t size[KEEP_ITEMS];

#pragma unroll
		for (uint32_t i = 0; i < KEEP_ITEMS; i++)
		{
			const uint32_t column = min(first + base + i * 32 + lane, tile.nright - 1);

			/* repeated pairs have no count */
			count[i] = is_repeated(tile, row, column) ? 0 : counts[column];
			size[i] = get_right(tile, column).n;
		}
#pragma unroll
		for (uint32_t i = 0; i < KEEP_ITEMS; i++)
		{
			const uint32_t column = first + base + i * 32 + lane;
			const bool keep = column < tile.nright && count[i] >= least &&
							  !is_repeated(tile, row, column) &&
							  gj_set_matches(tile.predicate, tile.threshold, count[i], na, size[i]);
			const uint32_t bits = __ballot_sync(0xFFFFFFFF, keep);

			wanted = lane == base / 32 + i ? bits : wanted;
		}
	}
	n = __reduce_add_sync(0xFFFFFFFF, (uint32_t) __popc(wanted));
	/* the warp's as those of its first lane */
	at = place_values(place, tiles, lane == 0 ? n : 0, results, &n, &to);
	to += __shfl_sync(0xFFFFFFFF, at, 0);
	for (uint32_t i = 0; i < 32; i++)
	{
		const uint32_t bits = __shfl_sync(0xFFFFFFFF, wanted, i);
		const uint32_t column = first + i * 32 + lane;

		if (bits >> lane & 1)
		{
			const uint64_t place_of = to + (uint32_t) __popc(bits & ((1u << lane) - 1));

			left[place_of] = tile.left + row;
			right[place_of] = tile.right + column;
			common[place_of] = counts[column];
		}
		to += (uint32_t) __popc(bits);
	}
}

GjStatus
gj_keep_matches(GjQueue *queue, const Tile &tile, uint32_t *const out[3], uint32_t *n)
{
	const uint32_t nblocks =
		gj_blocks((uint64_t) tile.nleft * gj_blocks(tile.nright, WARP_COLUMNS), WARPS);
	TileState tiles;

	GJ_TRY(start_places(queue, nblocks, &tiles));
	keep_wanted<<<nblocks, GJ_THREADS, 0, queue->stream>>>(tile, tiles, queue->results, out[0],
														   out[1], out[2]);
	GJ_LAUNCHED(queue, "keep_wanted");
	GJ_TRY(gj_wait(queue));
	*n = (uint32_t) queue->pinned->results.total;
	return GJ_OK;
}

static __device__ __forceinline__ bool
is_candidate(const Tile &tile, uint32_t row, uint32_t column)
{
	return tile.counts[(uint64_t) row * tile.stride + column] > 0 &&
		   !(tile.self && tile.right + column == tile.left + row);
}

/* place[row] = how many pairs of a left set are kept, at most top_k; place[nleft] = 0. */
static __global__ void
__launch_bounds__(BEST_THREADS) count_best(Tile tile, uint32_t *place)
{
	const uint32_t row = blockIdx.x;
	uint32_t n = 0;

	/* all threads come to the same number */
	for (uint32_t first = 0; first < tile.nright && n < tile.top_k; first += BEST_THREADS)
	{
		const uint32_t column = first + threadIdx.x;

		n += __syncthreads_count(column < tile.nright && is_candidate(tile, row, column));
	}
	if (threadIdx.x == 0)
	{
		place[row] = min(n, tile.top_k);
		if (row == 0)
			place[tile.nleft] = 0;
	}
}

/* A pair of a row and its score; the better one comes first. */
struct Ranked
{
	double score; /* negative: no pair */
	uint32_t column;

	__device__ __forceinline__ bool
	before(const Ranked &other) const
	{
		return score > other.score || (score == other.score && column < other.column);
	}
};

struct Better
{
	__device__ __forceinline__ Ranked
	operator()(const Ranked &a, const Ranked &b) const
	{
		return b.before(a) ? b : a;
	}
};

/* Finds the best pair of a row, then the best of those behind it, and so on: a block a row. */
static __global__ void
__launch_bounds__(BEST_THREADS)
	write_best(Tile tile, const uint32_t *place, uint32_t *left, uint32_t *right, uint32_t *common)
{
	typedef cub::BlockReduce<Ranked, BEST_THREADS> Reduce;
	__shared__ typename Reduce::TempStorage storage;
	__shared__ Ranked last;
	const uint32_t row = blockIdx.x;
	const uint32_t na = get_left(tile, row).n;

	for (uint32_t at = place[row]; at < place[row + 1]; at++)
	{
		const bool first = at == place[row];
		Ranked behind = {0, 0};
		Ranked best = {-1.0, UINT32_MAX};

		if (!first)
			behind = last;
		for (uint32_t column = threadIdx.x; column < tile.nright; column += BEST_THREADS)
		{
			Ranked pair;

			if (!is_candidate(tile, row, column))
				continue;
			pair.score =
				gj_set_score(tile.predicate, tile.counts[(uint64_t) row * tile.stride + column], na,
							 get_right(tile, column).n);
			pair.column = column;
			if ((first || behind.before(pair)) && pair.before(best))
				best = pair;
		}
		best = Reduce(storage).Reduce(best, Better());
		__syncthreads(); /* all have read `last`, and the storage is free */
		if (threadIdx.x == 0)
		{
			last = best;
			left[at] = tile.left + row;
			right[at] = tile.right + best.column;
			common[at] = tile.counts[(uint64_t) row * tile.stride + best.column];
		}
		__syncthreads();
	}
}

GjStatus
gj_keep_best(GjQueue *queue, const Tile &tile, uint32_t *const out[3], uint32_t *n)
{
	void *memory;
	uint32_t *place;

	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, ((size_t) tile.nleft + 1) * sizeof(uint32_t), &memory));
	place = (uint32_t *) memory;
	count_best<<<tile.nleft, BEST_THREADS, 0, queue->stream>>>(tile, place);
	GJ_LAUNCHED(queue, "count_best");
	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, place, place, (int) tile.nleft + 1);
	GJ_CUDA(queue, cudaMemcpyAsync(&queue->results->n, place + tile.nleft, sizeof(uint32_t),
								   cudaMemcpyDeviceToDevice, queue->stream));
	write_best<<<tile.nleft, BEST_THREADS, 0, queue->stream>>>(tile, place, out[0], out[1], out[2]);
	GJ_LAUNCHED(queue, "write_best");
	GJ_TRY(gj_wait(queue));
	*n = queue->pinned->results.n;
	return GJ_OK;
}
