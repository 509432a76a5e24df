/*
 * set_keep.cu
 *	  Which pairs of a tile are kept, once their common elements are counted: those that the
 *	  predicate wants, or the best ones of each left set.
 */
#include <cub/block/block_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "set_tile.cuh"

#define BEST_THREADS 1024 /* of a block, for a left set that is to have its best */

/* Is pair number i of the tile wanted? */
struct Wanted
{
	Tile tile;

	__device__ __forceinline__ bool
	operator()(const uint32_t &i) const
	{
		const uint32_t row = i / tile.nright;
		const uint32_t column = i % tile.nright;

		if ((tile.self && tile.right + column <= tile.left + row) || tile.head[row] == SKIP_ROW)
			return false;
		return gj_set_matches(tile.predicate, tile.threshold,
							  tile.counts[(uint64_t) row * tile.stride + column],
							  get_left(tile, row).n, get_right(tile, column).n);
	}
};

/* left[i] is a number of a pair: writes what is known of the pair. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	write_pairs(Tile tile, uint32_t n, uint32_t *left, uint32_t *right, uint32_t *common)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
	{
		const uint32_t row = left[i] / tile.nright;
		const uint32_t column = left[i] % tile.nright;

		left[i] = tile.left + row;
		right[i] = tile.right + column;
		common[i] = tile.counts[(uint64_t) row * tile.stride + column];
	}
}

GjStatus
gj_keep_matches(GjQueue *queue, const Tile &tile, uint32_t *const out[3], uint32_t *n)
{
	const Wanted wanted = {tile};

	GJ_CUB(queue, cub::DeviceSelect::If, thrust::counting_iterator<uint32_t>(0), out[0],
		   &queue->results->n, (int) (tile.nleft * tile.nright), wanted);
	GJ_TRY(gj_wait(queue));
	*n = queue->pinned->results.n;
	if (*n == 0)
		return GJ_OK;
	write_pairs<<<gj_blocks(*n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(tile, *n, out[0],
																			 out[1], out[2]);
	GJ_LAUNCHED(queue, "write_pairs");
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
