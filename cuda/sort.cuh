/*
 * sort.cuh
 *	  Sorting of values with their rows, by CUB's radix sort and only of the bits that differ.
 */
#ifndef GJ_CUDA_SORT_CUH
#define GJ_CUDA_SORT_CUH

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "internal.cuh"

/* Bits in which a value differs from the first one. */
struct GjDiffers
{
	const int64_t *value;

	__host__ __device__ uint64_t
	operator()(uint32_t i) const
	{
		return (uint64_t) (value[i] ^ value[0]);
	}
};

struct GjBitOr
{
	__host__ __device__ uint64_t
	operator()(uint64_t a, uint64_t b) const
	{
		return a | b;
	}
};

/* *bits = those in which any two of n > 0 values differ.  Waits. */
static inline GjStatus
gj_differing_bits(GjQueue *queue, const int64_t *value, uint32_t n, uint64_t *bits)
{
	const thrust::transform_iterator<GjDiffers, thrust::counting_iterator<uint32_t>> differs(
		thrust::counting_iterator<uint32_t>(0), GjDiffers{value});

	GJ_CUB(queue, cub::DeviceReduce::Reduce, differs, &queue->results->total, (int64_t) n,
		   GjBitOr(), (uint64_t) 0);
	GJ_TRY(gj_wait(queue));
	*bits = queue->pinned->results.total;
	return GJ_OK;
}

/*
 * Sorts n values with their rows into to_value and to_row, by the bits in which they differ;
 * rows of equal values keep their order.  n > 0.
 */
static inline GjStatus
gj_sort_pairs_by_bits(GjQueue *queue, const int64_t *value, int64_t *to_value, const uint32_t *row,
					  uint32_t *to_row, uint32_t n, uint64_t bits)
{
	const int begin = bits ? __builtin_ctzll(bits) : 0;
	const int end = bits ? 64 - __builtin_clzll(bits) : 1;

	GJ_CUB(queue, cub::DeviceRadixSort::SortPairs, value, to_value, row, to_row, (int64_t) n, begin,
		   end);
	return GJ_OK;
}

/* The same, which finds out about the bits itself.  Waits. */
static inline GjStatus
gj_sort_pairs(GjQueue *queue, const int64_t *value, int64_t *to_value, const uint32_t *row,
			  uint32_t *to_row, uint32_t n)
{
	uint64_t bits = 0;

	GJ_TRY(gj_differing_bits(queue, value, n, &bits));
	return gj_sort_pairs_by_bits(queue, value, to_value, row, to_row, n, bits);
}

static __global__ void
__launch_bounds__(GJ_THREADS) gj_number_rows_kernel(uint32_t *rows, uint32_t n)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		rows[i] = i;
}

/* rows[i] = i for i < n; n > 0. */
static inline GjStatus
gj_number_rows(GjQueue *queue, uint32_t *rows, uint32_t n)
{
	gj_number_rows_kernel<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(rows, n);
	GJ_LAUNCHED(queue, "number_rows");
	return GJ_OK;
}

#endif /* GJ_CUDA_SORT_CUH */
