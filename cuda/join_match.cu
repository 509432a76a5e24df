/*
 * join_match.cu
 *	  Which tuples and which rows of a build side have a match: flags, one byte each.
 *
 * Threads that set the same flag set it to the same value.
 */
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "internal.cuh"

static __global__ void
__launch_bounds__(GJ_THREADS) flag_counts(const uint64_t *offset, uint32_t n, uint8_t *flags)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		flags[i] = offset[i + 1] > offset[i];
}

GjStatus
gj_flag_counts(GjQueue *queue, const uint64_t *offset, uint32_t n, uint8_t *flags)
{
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return GJ_OK;
	flag_counts<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(offset, n, flags);
	GJ_LAUNCHED(queue, "flag_counts");
	return GJ_OK;
}

static __global__ void
__launch_bounds__(GJ_THREADS) mark_rows(const uint32_t *rows, const uint32_t *positions, uint32_t n,
										uint8_t value, uint8_t *flags)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint32_t at;

	if (i >= n)
		return;
	at = positions ? positions[i] : i;
	flags[rows ? rows[at] : at] = value;
}

GjStatus
gj_mark_rows(GjQueue *queue, const uint32_t *rows, const uint32_t *positions, uint32_t n,
			 uint8_t value, uint8_t *flags)
{
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return GJ_OK;
	mark_rows<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(rows, positions, n, value,
																		  flags);
	GJ_LAUNCHED(queue, "mark_rows");
	return GJ_OK;
}

static __global__ void
__launch_bounds__(GJ_THREADS) mark_tuples(const uint64_t *offset, uint32_t ntuples, uint64_t cursor,
										  const uint32_t *positions, uint32_t n, uint8_t *flags)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		flags[gj_last_at_most(offset, 0, ntuples, cursor + positions[i])] = 1;
}

GjStatus
gj_mark_tuples(GjQueue *queue, const uint64_t *offset, uint32_t ntuples, uint64_t cursor,
			   const uint32_t *positions, uint32_t n, uint8_t *flags)
{
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return GJ_OK;
	mark_tuples<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(offset, ntuples, cursor,
																			positions, n, flags);
	GJ_LAUNCHED(queue, "mark_tuples");
	return GJ_OK;
}

/* Tuples of a warp that have the same matches, as those of a hot key have, are noted once. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	mark_ranges(const uint64_t *offset, const uint32_t *first, uint32_t n, uint64_t *cover)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	const uint64_t count = i < n ? offset[i + 1] - offset[i] : 0;
	const uint32_t lanes = __ballot_sync(0xFFFFFFFF, count > 0);
	uint64_t start;
	uint64_t end;
	uint32_t same;

	if (count == 0)
		return;
	start = first[i];
	end = start + count;
	same = __match_any_sync(lanes, (unsigned long long) (start << 32 | end));
	if (threadIdx.x % 32 != (uint32_t) __ffs(same) - 1)
		return;
	atomicAdd((unsigned long long *) &cover[start], 1ull);
	atomicAdd((unsigned long long *) &cover[end], ~0ull);
}

GjStatus
gj_mark_ranges(GjQueue *queue, const uint64_t *offset, const uint32_t *first, uint32_t n,
			   uint64_t *cover)
{
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return GJ_OK;
	mark_ranges<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(offset, first, n,
																			cover);
	GJ_LAUNCHED(queue, "mark_ranges");
	return GJ_OK;
}

/* cover[i] is the number of noted tuples that match row i now. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	flag_covered(const uint64_t *cover, const uint32_t *rows, uint32_t n, uint8_t *flags)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n && cover[i] > 0)
		flags[rows ? rows[i] : i] = 1;
}

GjStatus
gj_cover_rows(GjQueue *queue, const GjHashTable *table, uint64_t *cover, uint32_t n,
			  bool (*stop)(void *), void *arg, uint8_t *flags)
{
	GJ_TRY(gj_enter(queue));
	if (stop && stop(arg))
		return GJ_CANCELLED;
	if (n == 0)
		return GJ_OK;
	GJ_CUB(queue, cub::DeviceScan::InclusiveSum, cover, cover, (uint64_t) n);
	flag_covered<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(cover, table->rows, n,
																			 flags);
	GJ_LAUNCHED(queue, "flag_covered");
	return GJ_OK;
}

/* A flag that has a value, as CUB reads it. */
struct FlagIs
{
	uint8_t value;

	__host__ __device__ bool
	operator()(uint8_t flag) const
	{
		return flag == value;
	}
};

GjStatus
gj_select_flags(GjQueue *queue, const uint8_t *flags, uint32_t n, uint8_t value,
				uint32_t *positions, uint32_t *npositions)
{
	const thrust::transform_iterator<FlagIs, const uint8_t *> wanted(flags, FlagIs{value});

	*npositions = 0;
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return gj_wait(queue);
	GJ_CUB(queue, cub::DeviceSelect::Flagged, thrust::counting_iterator<uint32_t>(0), wanted,
		   positions, &queue->results->n, (int64_t) n);
	GJ_TRY(gj_wait(queue));
	*npositions = queue->pinned->results.n;
	return GJ_OK;
}
