/*
 * join_radix_claim.cu
 *	  Claims the slots of a hash table whose rows lie in the order of its regions; see
 *	  join_radix.cu.
 *
 * Rows whose search leaves their region, and all rows of a region that has too many for a
 * block, as those of a hot key, are claimed in global memory afterwards.
 */
#include "join_radix.cuh"

#define THREADS 512
#define MAX_ROWS (REGION - 1) /* of a region that a block builds: REGION_BITS number them */
#define EMPTY 0xFFFFFFFFu     /* no owner: row MAX_ROWS of a region is none */
#define BATCH 4               /* rows a thread that claim_regions loads at once */
#define LATE_ITEMS 8          /* rows a thread of claim_late */

/*
 * Finds the slot of row `base + j` of a region, or claims one, in shared memory.  A word has
 * bits of the owner's hash above its number.  EMPTY: all slots up to the region's end are
 * others'.
 */
static __device__ __forceinline__ uint32_t
claim_in_region(const GjBuild &build, const GjPartitions &partitions, uint32_t *words,
				uint32_t home, uint32_t nslots, uint32_t base, uint32_t j, uint64_t key,
				uint64_t hash)
{
	/* the low bits of a hash have nothing to do with its slot */
	const uint32_t word = (uint32_t) hash << REGION_BITS | j;

	for (uint32_t s = home; s < nslots; s++)
	{
		uint32_t found = ((volatile uint32_t *) words)[s];
		uint32_t owner;

		if (found == EMPTY)
		{
			found = atomicCAS(&words[s], EMPTY, word);
			if (found == EMPTY)
				return s;
		}
		if ((found ^ word) >> REGION_BITS != 0)
			continue;
		owner = base + found % REGION;
		if (partitions.key[owner] == key &&
			(build.keys.nkeys == 1 ||
			 gj_keys_equal(build.keys.nkeys, build.keys.value, partitions.row[base + j],
						   build.keys.value, partitions.row[owner])))
			return s;
	}
	return EMPTY;
}

/*
 * Claims the slots of rows done .. done + BATCH * THREADS - 1 of a region, as far as it has
 * them; returns the highest rank of this thread's.
 */
static __device__ __forceinline__ uint32_t
claim_batch(const GjBuild &build, const GjPartitions &partitions, uint32_t *words, uint32_t *count,
			uint64_t first_slot, uint32_t nslots, uint32_t base, uint32_t nrows, uint32_t done,
			uint32_t *late, uint32_t *nlate)
{
	uint64_t key[BATCH];
	uint32_t max_rank = 0;

	/* all loads before the first claim waits for one */
#pragma unroll
	for (int k = 0; k < BATCH; k++)
	{
		const uint32_t j = done + k * THREADS + threadIdx.x;

		key[k] = j < nrows ? partitions.key[base + j] : 0;
	}
#pragma unroll
	for (int k = 0; k < BATCH; k++)
	{
		const uint32_t j = done + k * THREADS + threadIdx.x;
		uint32_t slot = EMPTY;
		uint32_t rank;

		if (j < nrows)
		{
			const uint64_t hash = build.keys.nkeys == 1 ? gj_hash_mix(key[k]) : key[k];
			const uint32_t home = (uint32_t) (gj_hash_slot(hash, build.nslots) - first_slot);

			slot = claim_in_region(build, partitions, words, home, nslots, base, j, key[k], hash);
			if (slot == EMPTY)
				late[atomicAdd(nlate, 1u)] = base + j;
		}
		rank = add_one(count, slot, slot != EMPTY);
		if (slot == EMPTY)
			continue;
		max_rank = max(max_rank, rank);
		build.slot_of[base + j] = (uint32_t) first_slot + slot;
		build.rank[base + j] = rank;
	}
	return max_rank;
}

/* Writes a region's slots; the owner of one, if it has any, is a row behind `base`. */
static __device__ __forceinline__ void
write_region(const GjBuild &build, const GjPartitions &partitions, const uint32_t *words,
			 const uint32_t *count, uint64_t first_slot, uint32_t nslots, uint32_t base)
{
	for (uint32_t s = threadIdx.x; s < nslots; s += THREADS)
	{
		uint4 slot = make_uint4(0, 0, GJ_NO_OWNER, 0);

		if (words[s] != EMPTY)
		{
			const uint32_t owner = base + words[s] % REGION;
			const uint64_t key = partitions.key[owner];

			slot =
				make_uint4((uint32_t) key, (uint32_t) (key >> 32), partitions.row[owner], count[s]);
		}
		*(uint4 *) &build.slots[first_slot + s] = slot;
	}
}

/* One region a block.  Positions of rows that it leaves to claim_late go to `late`. */
static __global__ void
__launch_bounds__(THREADS)
	claim_regions(const __grid_constant__ GjBuild build,
				  const __grid_constant__ GjPartitions partitions, uint32_t *late, uint32_t *nlate)
{
	__shared__ uint32_t words[REGION];
	__shared__ uint32_t count[REGION];
	__shared__ uint32_t first_late;
	const uint64_t first_slot = (uint64_t) blockIdx.x * REGION;
	const uint32_t nslots = (uint32_t) min((uint64_t) REGION, build.nslots - first_slot);
	const uint32_t base = partitions.start[blockIdx.x];
	const uint32_t nrows = partitions.start[blockIdx.x + 1] - base;
	uint32_t max_rank = 0;

	for (uint32_t s = threadIdx.x; s < REGION; s += THREADS)
	{
		words[s] = EMPTY;
		count[s] = 0;
	}
	if (threadIdx.x == 0 && nrows > MAX_ROWS)
		first_late = atomicAdd(nlate, nrows);
	if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1)
		build.results->nrows = base + nrows;
	__syncthreads();
	if (nrows > MAX_ROWS)
	{
		for (uint64_t j = threadIdx.x; j < nrows; j += THREADS)
			late[first_late + j] = base + (uint32_t) j;
	}
	else
	{
		for (uint32_t done = 0; done < nrows; done += BATCH * THREADS)
			max_rank = max(max_rank, claim_batch(build, partitions, words, count, first_slot,
												 nslots, base, nrows, done, late, nlate));
	}
	__syncthreads();
	write_region(build, partitions, words, count, first_slot, nslots, base);
	max_rank = __reduce_max_sync(0xFFFFFFFF, max_rank);
	/* a value that is not the latest costs an atomic operation, no more */
	if (threadIdx.x % 32 == 0 && max_rank > *(volatile uint32_t *) &build.results->max_rank)
		atomicMax(&build.results->max_rank, max_rank);
}

/*
 * Claims what is left, in global memory.  A warp takes LATE_ITEMS rows a lane and counts all
 * that have the slot of its first row at once: a hot key costs it one atomic operation.
 */
static __global__ void
__launch_bounds__(GJ_THREADS) claim_late(const __grid_constant__ GjBuild build,
										 const __grid_constant__ GjPartitions partitions,
										 const uint32_t *late, const uint32_t *nlate)
{
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t warp = (blockIdx.x * GJ_THREADS + threadIdx.x) / 32;
	const uint32_t n = *nlate;
	const uint64_t step = (uint64_t) gridDim.x * GJ_THREADS * LATE_ITEMS;

	/* lanes of a warp go round equally often */
	for (uint64_t base = (uint64_t) warp * 32 * LATE_ITEMS; base < n; base += step)
	{
		uint32_t position[LATE_ITEMS];
		uint32_t slot[LATE_ITEMS];
		uint32_t max_rank = 0;
		uint32_t nhot = 0;
		uint32_t before = 0;
		uint32_t hot;

#pragma unroll
		for (int k = 0; k < LATE_ITEMS; k++)
		{
			const uint64_t at = base + k * 32 + lane;

			position[k] = slot[k] = GJ_NO_OWNER;
			if (at < n)
			{
				position[k] = late[at];
				slot[k] =
					gj_claim_slot(build, partitions.row[position[k]],
								  build.keys.nkeys == 1 ? gj_hash_mix(partitions.key[position[k]])
														: partitions.key[position[k]]);
			}
		}
		hot = __shfl_sync(0xFFFFFFFF, slot[0], 0);
#pragma unroll
		for (int k = 0; k < LATE_ITEMS; k++)
			nhot += (uint32_t) __popc(__ballot_sync(0xFFFFFFFF, slot[k] == hot));
		if (lane == 0)
			before = atomicAdd(&build.slots[hot].count, nhot);
		before = __shfl_sync(0xFFFFFFFF, before, 0);
#pragma unroll
		for (int k = 0; k < LATE_ITEMS; k++)
		{
			const uint32_t group = __ballot_sync(0xFFFFFFFF, slot[k] == hot);
			uint32_t rank = before + (uint32_t) __popc(group & ((1u << lane) - 1));

			before += (uint32_t) __popc(group);
			if (slot[k] == GJ_NO_OWNER)
				continue;
			if (slot[k] != hot)
				rank = atomicAdd(&build.slots[slot[k]].count, 1u);
			max_rank = max(max_rank, rank);
			build.slot_of[position[k]] = slot[k];
			build.rank[position[k]] = rank;
		}
		max_rank = __reduce_max_sync(0xFFFFFFFF, max_rank);
		if (lane == 0 && max_rank > *(volatile uint32_t *) &build.results->max_rank)
			atomicMax(&build.results->max_rank, max_rank);
	}
}

GjStatus
gj_radix_claim(GjQueue *queue, GjBuild *build, GjPartitions *partitions)
{
	void *nlate;
	/* not written before all rows have their slots */
	uint32_t *late = build->rows;

	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, sizeof(uint32_t), &nlate));
	GJ_CUDA(queue, cudaMemsetAsync(nlate, 0, sizeof(uint32_t), queue->stream));
	GJ_CUDA(queue,
			cudaMemsetAsync(&queue->results->max_rank, 0, 2 * sizeof(uint32_t), queue->stream));
	claim_regions<<<partitions->n, THREADS, 0, queue->stream>>>(*build, *partitions, late,
																(uint32_t *) nlate);
	GJ_LAUNCHED(queue, "claim_regions");
	claim_late<<<(uint32_t) queue->device->nprocessors * 8, GJ_THREADS, 0, queue->stream>>>(
		*build, *partitions, late, (const uint32_t *) nlate);
	GJ_LAUNCHED(queue, "claim_late");
	GJ_TRY(gj_wait(queue));
	build->order = partitions->row;
	partitions->row = NULL;
	build->npositions = queue->pinned->results.nrows;
	return GJ_OK;
}
