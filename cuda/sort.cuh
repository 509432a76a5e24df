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

#include <utility>

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

/* What n > 0 values have in common. */
typedef struct GjDiffering
{
	uint64_t bits; /* in which any two of them differ */
	int64_t first; /* the first value */
} GjDiffering;

/* Waits. */
static inline GjStatus
gj_differing_bits(GjQueue *queue, const int64_t *value, uint32_t n, GjDiffering *differing)
{
	const thrust::transform_iterator<GjDiffers, thrust::counting_iterator<uint32_t>> differs(
		thrust::counting_iterator<uint32_t>(0), GjDiffers{value});

	GJ_CUB(queue, cub::DeviceReduce::Reduce, differs, &queue->results->total, (int64_t) n,
		   GjBitOr(), (uint64_t) 0);
	GJ_CUDA(queue, cudaMemcpyAsync(&queue->pinned->value[0], value, sizeof(*value),
								   cudaMemcpyDeviceToHost, queue->stream));
	GJ_TRY(gj_wait(queue));
	differing->bits = queue->pinned->results.total;
	differing->first = queue->pinned->value[0];
	return GJ_OK;
}

/* The bits begin .. end-1 of values, which are all that differ, as they are sorted. */
typedef struct GjNarrow
{
	int begin;
	int end;
	bool fits; /* 32 bits: halves of the memory, and of the time */
} GjNarrow;

static inline GjNarrow
gj_narrow(const GjDiffering *differing)
{
	GjNarrow narrow;

	narrow.begin = differing->bits ? __builtin_ctzll(differing->bits) : 0;
	narrow.end = differing->bits ? 64 - __builtin_clzll(differing->bits) : 1;
	narrow.fits = narrow.end - narrow.begin <= 32;
	return narrow;
}

/* Negative values are less: their first bit counts the other way round, if it is one of these. */
static __device__ __forceinline__ uint64_t
gj_sign_bit(const GjNarrow &narrow)
{
	return narrow.end == 64 ? UINT64_C(1) << 63 : 0;
}

static __global__ void
__launch_bounds__(GJ_THREADS)
	gj_narrow_values(const int64_t *value, uint32_t n, GjNarrow narrow, uint32_t *to)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		to[i] = (uint32_t) (((uint64_t) value[i] ^ gj_sign_bit(narrow)) >> narrow.begin);
}

static __global__ void
__launch_bounds__(GJ_THREADS) gj_widen_values(const uint32_t *from, uint32_t n, GjNarrow narrow,
											  GjDiffering differing, int64_t *to)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		to[i] = differing.first ^ (int64_t) ((((uint64_t) from[i] << narrow.begin) ^
											  gj_sign_bit(narrow) ^ (uint64_t) differing.first) &
											 differing.bits);
}

/*
 * Sorts n > 0 rows by their values into to_row; rows of equal values keep their order.  The values
 * stay as they are; `scratch`, of n elements, is what gj_sorted_values reads.
 */
static inline GjStatus
gj_sort_by_values(GjQueue *queue, const int64_t *value, int64_t *scratch, const uint32_t *row,
				  uint32_t *to_row, uint32_t n, const GjDiffering *differing)
{
	const GjNarrow narrow = gj_narrow(differing);
	uint32_t *half = (uint32_t *) scratch;

	if (!narrow.fits)
	{
		GJ_CUB(queue, cub::DeviceRadixSort::SortPairs, value, scratch, row, to_row, (int64_t) n,
			   narrow.begin, narrow.end);
		return GJ_OK;
	}
	gj_narrow_values<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(value, n, narrow,
																				 half);
	GJ_LAUNCHED(queue, "narrow_values");
	GJ_CUB(queue, cub::DeviceRadixSort::SortPairs, (const uint32_t *) half, half + n, row, to_row,
		   (int64_t) n, 0, narrow.end - narrow.begin);
	return GJ_OK;
}

/* The values that were sorted, in their order: in *to, which may change places with *scratch. */
static inline GjStatus
gj_sorted_values(GjQueue *queue, int64_t **scratch, uint32_t n, const GjDiffering *differing,
				 int64_t **to)
{
	const GjNarrow narrow = gj_narrow(differing);

	if (!narrow.fits)
	{
		std::swap(*scratch, *to);
		return GJ_OK;
	}
	gj_widen_values<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		(const uint32_t *) *scratch + n, n, narrow, *differing, *to);
	GJ_LAUNCHED(queue, "widen_values");
	return GJ_OK;
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
