/*
 * pack_offsets.cu
 *	  Offsets of the values that references lead to, and the values one behind the other.
 */
#include <cub/device/device_scan.cuh>

#include "internal.cuh"

/* More than offsets can have; the sum of as many as there are rows fits 64 bits. */
#define NO_OFFSET (UINT64_C(1) << 32)

/* So many threads copy a value. */
#define THREADS_PER_VALUE 8u

static __device__ __forceinline__ uint64_t
thread_number(void)
{
	return (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;
}

/* bytes[i] of the value of row i; bytes[nrows] = 0. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	value_bytes(const uint64_t *refs, const uint8_t *nulls, uint32_t nrows, uint64_t *bytes)
{
	const uint64_t i = thread_number();
	uint64_t n = 0;

	if (i > nrows)
		return;
	if (i < nrows && !(nulls != NULL && nulls[i]))
	{
		n = gj_ref_length(refs[i]);
		if (n == GJ_REF_HELD)
			n = NO_OFFSET;
	}
	bytes[i] = n;
}

/* Of what offsets that share a number are beyond it, the most; a thread each such number. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	find_widest(const uint64_t *at, uint32_t nrows, unsigned long long *widest)
{
	const uint64_t first = thread_number() * GJ_OFFSET_ROWS;

	if (first > nrows)
		return;

	const uint64_t last = min(first + GJ_OFFSET_ROWS - 1, (uint64_t) nrows);
	const unsigned long long beyond = at[last] - at[first];

	if (beyond > *(volatile unsigned long long *) widest)
		atomicMax(widest, beyond);
}

GjStatus
gj_find_offsets(GjQueue *queue, const GjColumn *column, uint32_t nrows, uint64_t *at,
				GjOffsets *offsets)
{
	const uint64_t noffsets = (uint64_t) nrows + 1;
	const uint64_t nshared = nrows / GJ_OFFSET_ROWS + 1;
	unsigned long long *widest = (unsigned long long *) &queue->results->total;

	GJ_TRY(gj_enter(queue));
	value_bytes<<<gj_blocks(noffsets, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		(const uint64_t *) column->data, column->nulls, nrows, at);
	GJ_LAUNCHED(queue, "value_bytes");
	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, at, at, (int64_t) noffsets);
	GJ_CUDA(queue, cudaMemsetAsync(widest, 0, sizeof(*widest), queue->stream));
	find_widest<<<gj_blocks(nshared, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(at, nrows,
																				  widest);
	GJ_LAUNCHED(queue, "find_widest");
	GJ_CUDA(queue, cudaMemcpyAsync(&queue->pinned->value[0], at + nrows, sizeof(uint64_t),
								   cudaMemcpyDeviceToHost, queue->stream));
	GJ_TRY(gj_wait(queue));
	*offsets = {(uint64_t) queue->pinned->value[0], queue->pinned->results.total};
	return GJ_OK;
}

static __global__ void
__launch_bounds__(GJ_THREADS)
	move_values(const uint64_t *from, uint32_t nrows, const uint8_t *heap, const uint64_t *at,
				uint8_t *to, uint64_t base, uint64_t *refs)
{
	const uint64_t i = thread_number() / THREADS_PER_VALUE;
	const uint32_t lane = threadIdx.x % THREADS_PER_VALUE;

	if (i >= nrows)
		return;

	const uint64_t offset = at[i];
	const uint32_t length = (uint32_t) (at[i + 1] - offset);
	const uint8_t *bytes = heap + gj_ref_offset(from[i]);

	for (uint32_t b = lane; b < length; b += THREADS_PER_VALUE)
		to[offset + b] = bytes[b];
	if (lane == 0 && refs != NULL)
		refs[i] = gj_ref_make(base + offset, length);
}

GjStatus
gj_move_values(GjQueue *queue, const GjColumn *column, uint32_t nrows, const uint64_t *at,
			   uint8_t *to, uint64_t base, uint64_t *refs)
{
	GJ_TRY(gj_enter(queue));
	if (nrows == 0)
		return GJ_OK;
	move_values<<<gj_blocks((uint64_t) nrows * THREADS_PER_VALUE, GJ_THREADS), GJ_THREADS, 0,
				  queue->stream>>>((const uint64_t *) column->data, nrows, column->heap, at, to,
								   base, refs);
	GJ_LAUNCHED(queue, "move_values");
	return GJ_OK;
}

static __global__ void
__launch_bounds__(GJ_THREADS)
	pack_offsets(const __grid_constant__ GjPackColumn column, const uint64_t *at, uint64_t before)
{
	const uint64_t i = thread_number();
	const GjColumn &as = column.from;

	if (i > column.nrows)
		return;
	if (as.packed == 4)
	{
		((uint32_t *) column.to)[i] = (uint32_t) at[i];
		return;
	}
	((uint16_t *) column.to)[i] = (uint16_t) (at[i] - at[i - i % GJ_OFFSET_ROWS]);
	if (i % GJ_OFFSET_ROWS == 0)
		((uint32_t *) (as.heap + as.base))[i / GJ_OFFSET_ROWS] = (uint32_t) (before + at[i]);
}

GjStatus
gj_pack_offsets(GjQueue *queue, const GjPackColumn *column, const uint64_t *at)
{
	GJ_TRY(gj_enter(queue));
	pack_offsets<<<gj_blocks((uint64_t) column->nrows + 1, GJ_THREADS), GJ_THREADS, 0,
				   queue->stream>>>(*column, at, gj_offset_table(column->nrows));
	GJ_LAUNCHED(queue, "pack_offsets");
	return GJ_OK;
}
