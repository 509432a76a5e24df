/*
 * join_radix.cuh
 *	  What the kernels share that partition rows for a hash table, and that claim its slots.
 */
#ifndef GJ_CUDA_JOIN_RADIX_CUH
#define GJ_CUDA_JOIN_RADIX_CUH

#include "join_hash.cuh"

/* Slots of a region, which a block builds in shared memory. */
#define REGION_BITS 12
#define REGION (1u << REGION_BITS)

/*
 * Adds one to count[at] for every lane with `valid`; returns what was there before.  Lanes
 * with the place of the first of them count at once, so that a place that most rows have
 * costs one atomic operation a warp.  All lanes of the warp call it together.
 */
static __device__ __forceinline__ uint32_t
add_one(uint32_t *count, uint32_t at, bool valid)
{
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t lanes = __ballot_sync(0xFFFFFFFF, valid);
	const uint32_t leader = lanes ? (uint32_t) __ffs((int) lanes) - 1 : 0;
	const uint32_t place = __shfl_sync(0xFFFFFFFF, at, (int) leader);
	const bool same = valid && at == place;
	const uint32_t group = __ballot_sync(0xFFFFFFFF, same);
	uint32_t before = 0;
	uint32_t first;

	if (valid && (!same || lane == leader))
		before = atomicAdd(&count[at], same ? (uint32_t) __popc(group) : 1u);
	first = __shfl_sync(0xFFFFFFFF, before, (int) leader);
	return same ? first + (uint32_t) __popc(group & ((1u << lane) - 1)) : before;
}

#endif /* GJ_CUDA_JOIN_RADIX_CUH */
