/*
 * aggregate.cuh
 *	  The states of a block's threads become one.
 */
#ifndef GJ_CUDA_AGGREGATE_CUH
#define GJ_CUDA_AGGREGATE_CUH

#include "rows/aggregate.h"
#include "internal.cuh"

#define GJ_WARPS (GJ_THREADS / 32)

/* State of the thread `distance` lanes further on. */
static __device__ __forceinline__ GjAggState
state_of_lane(const GjAggState &state, uint32_t distance)
{
	GjAggState other;

	other.count = __shfl_down_sync(0xFFFFFFFF, state.count, distance);
	other.lo = __shfl_down_sync(0xFFFFFFFF, state.lo, distance);
	other.hi = __shfl_down_sync(0xFFFFFFFF, state.hi, distance);
	other.f = __shfl_down_sync(0xFFFFFFFF, state.f, distance);
	return other;
}

/* Merges the states of a block's threads; thread 0 has the result. */
static __device__ __forceinline__ void
gj_merge_block(uint32_t op, GjAggState *state, GjAggState *warp_states)
{
	for (uint32_t distance = 16; distance > 0; distance /= 2)
	{
		/* lanes near the end merge a state of their own: only lane 0's result counts */
		const GjAggState other = state_of_lane(*state, distance);

		gj_agg_merge(op, state, &other);
	}
	if (threadIdx.x % 32 == 0)
		warp_states[threadIdx.x / 32] = *state;
	__syncthreads();
	if (threadIdx.x == 0)
	{
		for (uint32_t w = 1; w < GJ_WARPS; w++)
			gj_agg_merge(op, state, &warp_states[w]);
	}
	/* warp_states may be written again */
	__syncthreads();
}

/* All threads of a block call it: adds a count of tuples and n partial states to *into. */
static __device__ __forceinline__ void
gj_merge_partials(uint32_t op, uint32_t count, const GjAggState *partial, uint32_t n,
				  GjAggState *into)
{
	__shared__ GjAggState warp_states[GJ_WARPS];
	GjAggState state;

	gj_agg_start(&state);
	state.count = threadIdx.x == 0 ? count : 0;
	for (uint32_t i = threadIdx.x; i < n; i += GJ_THREADS)
		gj_agg_merge(op, &state, &partial[i]);
	gj_merge_block(op, &state, warp_states);
	if (threadIdx.x == 0)
		gj_agg_merge(op, into, &state);
}

#endif /* GJ_CUDA_AGGREGATE_CUH */
