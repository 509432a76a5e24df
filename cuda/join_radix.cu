/*
 * join_radix.cu
 *	  Builds large hash tables by partitions: a table beyond L2 costs a claim in global
 *	  memory several random accesses, and atomic ones.
 *
 * The slots of the table are cut into regions of REGION slots.  The home slot of a hash
 * grows with the hash, so the region of a row is a radix of its hash.  One or two passes
 * bring (key, row) pairs into the order of regions: each counts the rows of every digit and
 * chunk, a scan makes places of the counts, and the rows of a tile, put in order in shared
 * memory, are written as runs (Rui, Tu: "Fast Equi-Join Algorithms on GPUs", SSDBM 2017;
 * Sioulas, Chrysogelos, Karpathiotakis, Appuswamy, Ailamaki: "Hardware-Conscious Hash-Joins
 * on GPUs", ICDE 2019).  A block then claims the slots of one region in shared memory and
 * writes the region at once (join_radix_claim.cu).
 *
 * The result has exactly the format of join_hash.cu's table, so probes are the same.  They do not
 * go by regions: probe chunks are far smaller than the build side, and sorting each of them
 * by region would save no sector of the table.  (Where whole sides are joined, moving the
 * payload along with the probe keys is what would pay: Wu, Koutsoukos, Alonso: "Efficiently
 * Processing Joins and Grouped Aggregations on GPUs", SIGMOD 2025.)
 */
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>

#include "join_radix.cuh"

#define THREADS 512
#define ITEMS 8
#define TILE (THREADS * ITEMS)
#define MAX_FANOUT 1024 /* two digits a thread */
#define DIGITS (MAX_FANOUT / THREADS)

/* Of direct tables: a part is 4 MB, less where these are few, more where one pass makes fewer. */
#define MAX_PART_BITS 20
#define MIN_PARTS 64

typedef cub::BlockScan<uint32_t, THREADS> Scan;

/*
 * One pass: rows of every segment, each a range of the input, into the order of a digit of
 * their slots.  The first pass has one segment, all rows; the second has one for each digit
 * of the first.  Segments are worked on in chunks, numbered through.
 */
typedef struct Pass
{
	GjKeys keys; /* first pass: the input; else only nkeys */
	const uint64_t *from_key;
	const uint32_t *from_row;
	uint64_t *to_key;
	uint32_t *to_row;
	uint64_t nslots;
	bool direct; /* the slot of a key is key - low: there is one key, and it is not hashed */
	int64_t low;
	uint32_t shift; /* digit of slot s: s >> shift & mask */
	uint32_t mask;
	uint32_t fanout; /* digits are 0 .. fanout-1 */
	uint32_t chunk_rows;
	const uint32_t *start; /* second pass: [nsegments + 1] first row, and */
	const uint32_t *chunk; /* [nsegments + 1] first chunk of each segment */
	uint32_t nsegments;
	/* [fanout * chunks + 1] of segments, then digits, then chunks: rows, and places of them */
	uint32_t *count;
} Pass;

/* Rows of a chunk, and where its counts are: of digit d in count[first_count + d * stride]. */
typedef struct Chunk
{
	uint32_t first;
	uint32_t end;
	uint32_t first_count;
	uint32_t stride;
} Chunk;

static __device__ __forceinline__ uint64_t
home_slot(const Pass &pass, uint64_t key)
{
	if (pass.direct)
		return key - (uint64_t) pass.low;
	return gj_hash_slot(pass.keys.nkeys == 1 ? gj_hash_mix(key) : key, pass.nslots);
}

static __device__ __forceinline__ uint32_t
digit_of(const Pass &pass, uint64_t key)
{
	return (uint32_t) (home_slot(pass, key) >> pass.shift) & pass.mask;
}

/* The chunk of this block; false if there are not so many. */
template <bool first_pass>
static __device__ __forceinline__ bool
find_chunk(const Pass &pass, Chunk *chunk)
{
	uint32_t end;

	if (first_pass)
	{
		chunk->first = blockIdx.x * pass.chunk_rows;
		end = pass.keys.nrows;
		chunk->first_count = blockIdx.x;
		chunk->stride = gridDim.x;
	}
	else
	{
		if (blockIdx.x >= pass.chunk[pass.nsegments])
			return false;
		/* the last segment that starts with this chunk or before: empty ones have none */
		const uint32_t s =
			gj_last(0, pass.nsegments, [&](uint32_t i) { return pass.chunk[i] <= blockIdx.x; });
		const uint32_t before = blockIdx.x - pass.chunk[s];

		chunk->first = pass.start[s] + before * pass.chunk_rows;
		end = pass.start[s + 1];
		chunk->first_count = pass.fanout * pass.chunk[s] + before;
		chunk->stride = pass.chunk[s + 1] - pass.chunk[s];
	}
	chunk->end = end - chunk->first > pass.chunk_rows ? chunk->first + pass.chunk_rows : end;
	return true;
}

/*
 * Loads the rows base + k * THREADS + threadIdx.x below `end`; bit k of the result: there is
 * one, and it has no NULL.
 */
template <bool first_pass>
static __device__ __forceinline__ uint32_t
load_keys(const Pass &pass, uint32_t base, uint32_t end, uint64_t key[ITEMS])
{
	uint32_t valid = 0;

#pragma unroll
	for (int k = 0; k < ITEMS; k++)
	{
		const uint32_t j = k * THREADS + threadIdx.x;
		const uint32_t i = base + j;

		key[k] = 0;
		/* base + j may be beyond 32 bits where end - base is not */
		if (j >= end - base)
			continue;
		if (!first_pass)
			key[k] = pass.from_key[i];
		else if (pass.keys.null[i])
			continue;
		else if (pass.keys.nkeys == 1)
			key[k] = (uint64_t) pass.keys.value[0][i];
		else
			key[k] = gj_hash_keys(&pass.keys, i);
		valid |= 1u << k;
	}
	return valid;
}

/* Counts the rows of each digit in every chunk. */
template <bool first_pass>
static __global__ void
__launch_bounds__(THREADS) count_digits(const __grid_constant__ Pass pass)
{
	__shared__ uint32_t count[MAX_FANOUT];
	Chunk chunk;

	if (!find_chunk<first_pass>(pass, &chunk))
		return;
	for (uint32_t d = threadIdx.x; d < pass.fanout; d += THREADS)
		count[d] = 0;
	__syncthreads();
	for (uint32_t done = 0; done < chunk.end - chunk.first; done += TILE)
	{
		uint64_t key[ITEMS];
		const uint32_t valid = load_keys<first_pass>(pass, chunk.first + done, chunk.end, key);

#pragma unroll
		for (int k = 0; k < ITEMS; k++)
		{
			if (valid >> k & 1)
				atomicAdd(&count[digit_of(pass, key[k])], 1u);
		}
	}
	__syncthreads();
	for (uint32_t d = threadIdx.x; d < pass.fanout; d += THREADS)
		pass.count[chunk.first_count + d * chunk.stride] = count[d];
}

/* The counts are places now: every row goes to its own, the rows of a tile in runs. */
template <bool first_pass>
static __global__ void
__launch_bounds__(THREADS, 2) scatter_rows(const __grid_constant__ Pass pass)
{
	/* of a tile, in the order of digits: first the one, then the other */
	__shared__ union
	{
		uint64_t key[TILE];
		uint32_t row[TILE];
	} buffer;
	__shared__ uint32_t count[MAX_FANOUT];  /* rows of each digit, then the first one's place */
	__shared__ uint32_t target[MAX_FANOUT]; /* place j of the tile goes to target + j */
	__shared__ typename Scan::TempStorage temp;
	uint32_t next[DIGITS]; /* of this thread's digits: where the next row goes */
	Chunk chunk;

	if (!find_chunk<first_pass>(pass, &chunk))
		return;
#pragma unroll
	for (int d = 0; d < DIGITS; d++)
	{
		const uint32_t digit = threadIdx.x * DIGITS + d;

		next[d] = digit < pass.fanout ? pass.count[chunk.first_count + digit * chunk.stride] : 0;
	}
	for (uint32_t done = 0; done < chunk.end - chunk.first; done += TILE)
	{
		const uint32_t base = chunk.first + done;
		uint64_t key[ITEMS];
		uint32_t place[ITEMS];
		uint32_t digit[ITEMS];
		uint32_t counts[DIGITS];
		uint32_t starts[DIGITS];
		uint32_t nrows;
		uint32_t valid;

#pragma unroll
		for (int d = 0; d < DIGITS; d++)
			count[threadIdx.x * DIGITS + d] = 0;
		__syncthreads();
		valid = load_keys<first_pass>(pass, base, chunk.end, key);
#pragma unroll
		for (int k = 0; k < ITEMS; k++)
		{
			digit[k] = digit_of(pass, key[k]);
			place[k] = add_one(count, digit[k], valid >> k & 1);
		}
		__syncthreads();
#pragma unroll
		for (int d = 0; d < DIGITS; d++)
			counts[d] = count[threadIdx.x * DIGITS + d];
		Scan(temp).ExclusiveSum(counts, starts, nrows);
#pragma unroll
		for (int d = 0; d < DIGITS; d++)
		{
			count[threadIdx.x * DIGITS + d] = starts[d];
			target[threadIdx.x * DIGITS + d] = next[d] - starts[d];
			next[d] += counts[d];
		}
		__syncthreads();
#pragma unroll
		for (int k = 0; k < ITEMS; k++)
		{
			if (!(valid >> k & 1))
				continue;
			place[k] += count[digit[k]];
			buffer.key[place[k]] = key[k];
		}
		__syncthreads();
		/* digit[] becomes where the row at this thread's k-th place goes */
#pragma unroll
		for (int k = 0; k < ITEMS; k++)
		{
			const uint32_t j = k * THREADS + threadIdx.x;

			if (j >= nrows)
				continue;
			key[k] = buffer.key[j];
			digit[k] = target[digit_of(pass, key[k])] + j;
			pass.to_key[digit[k]] = key[k];
		}
		__syncthreads();
#pragma unroll
		for (int k = 0; k < ITEMS; k++)
		{
			const uint32_t i = base + k * THREADS + threadIdx.x;

			if (valid >> k & 1)
				buffer.row[place[k]] = first_pass ? i : pass.from_row[i];
		}
		__syncthreads();
#pragma unroll
		for (int k = 0; k < ITEMS; k++)
		{
			const uint32_t j = k * THREADS + threadIdx.x;

			if (j < nrows)
				pass.to_row[digit[k]] = buffer.row[j];
		}
	}
}

/*
 * What the second pass needs of the first one's places, whose chunks are nchunks: the first
 * row and the first chunk of each digit.  One block.
 */
static __global__ void
__launch_bounds__(THREADS) find_segments(const uint32_t *place, uint32_t nchunks, uint32_t fanout,
										 uint32_t chunk_rows, uint32_t *start, uint32_t *chunk)
{
	__shared__ typename Scan::TempStorage temp;
	uint32_t counts[DIGITS];
	uint32_t chunks[DIGITS];
	uint32_t all;

#pragma unroll
	for (int d = 0; d < DIGITS; d++)
	{
		const uint32_t digit = threadIdx.x * DIGITS + d;

		counts[d] = 0;
		if (digit >= fanout)
			continue;
		start[digit] = place[(size_t) digit * nchunks];
		counts[d] = place[(size_t) (digit + 1) * nchunks] - start[digit];
		counts[d] = counts[d] / chunk_rows + (counts[d] % chunk_rows != 0);
	}
	Scan(temp).ExclusiveSum(counts, chunks, all);
#pragma unroll
	for (int d = 0; d < DIGITS; d++)
	{
		if (threadIdx.x * DIGITS + d < fanout)
			chunk[threadIdx.x * DIGITS + d] = chunks[d];
	}
	if (threadIdx.x == 0)
	{
		start[fanout] = place[(size_t) fanout * nchunks];
		chunk[fanout] = all;
	}
}

/* The first row of partitions 0 .. n, from the places of the last pass. */
template <bool first_pass>
static __global__ void
__launch_bounds__(THREADS)
	find_starts(const __grid_constant__ Pass pass, uint32_t nchunks, uint32_t n, uint32_t *start)
{
	const uint32_t p = blockIdx.x * THREADS + threadIdx.x;
	uint32_t segment;
	uint32_t digit;
	uint32_t at;

	if (p > n)
		return;
	if (first_pass)
		at = p * nchunks;
	else
	{
		segment = p / pass.fanout;
		digit = p % pass.fanout;
		at = pass.fanout * pass.chunk[segment];
		/* behind the last segment there is only digit 0 */
		if (digit > 0)
			at += digit * (pass.chunk[segment + 1] - pass.chunk[segment]);
	}
	start[p] = pass.count[at];
}

/* ---- passes */

/* How a table is partitioned. */
typedef struct Plan
{
	uint32_t nparts;
	uint32_t fanout[2]; /* of the passes; the second is 0 if there is one only */
	uint32_t shift[2];
	uint32_t chunk_rows;
	uint32_t nchunks[2]; /* at most */
} Plan;

static Plan
make_plan(const GjQueue *queue, uint32_t nrows, uint64_t nslots)
{
	/* chunks for several waves of blocks, each a tile at least */
	const uint32_t wanted = (uint32_t) queue->device->nprocessors * 16;
	const uint32_t tiles = gj_blocks(nrows, TILE);
	Plan plan = {};

	plan.nparts = (uint32_t) ((nslots + REGION - 1) / REGION);
	plan.chunk_rows = (tiles + wanted - 1) / wanted * TILE;
	plan.nchunks[0] = gj_blocks(nrows, plan.chunk_rows);
	plan.fanout[0] = plan.nparts;
	plan.shift[0] = REGION_BITS;
	if (plan.nparts > min(queue->device->radix_fanout, (uint32_t) MAX_FANOUT))
	{
		uint32_t bits = 1; /* of the second digit: half of all */

		while (plan.nparts > 1u << 2 * bits)
			bits++;
		plan.fanout[0] = ((plan.nparts - 1) >> bits) + 1;
		plan.fanout[1] = 1u << bits;
		plan.shift[0] = REGION_BITS + bits;
		plan.shift[1] = REGION_BITS;
		plan.nchunks[1] = nrows / plan.chunk_rows + plan.fanout[0];
	}
	return plan;
}

/* Counts and scatters; pass->count then has the places that rows were scattered from. */
template <bool first_pass>
static GjStatus
run_pass(GjQueue *queue, Pass *pass, uint32_t nchunks)
{
	const size_t ncounts = (size_t) pass->fanout * nchunks + 1;
	void *count;

	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, ncounts * sizeof(uint32_t), &count));
	pass->count = (uint32_t *) count;
	GJ_CUDA(queue, cudaMemsetAsync(count, 0, ncounts * sizeof(uint32_t), queue->stream));
	count_digits<first_pass><<<nchunks, THREADS, 0, queue->stream>>>(*pass);
	GJ_LAUNCHED(queue, "count_digits");
	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, pass->count, pass->count, (int64_t) ncounts);
	scatter_rows<first_pass><<<nchunks, THREADS, 0, queue->stream>>>(*pass);
	GJ_LAUNCHED(queue, "scatter_rows");
	return GJ_OK;
}

static void
free_rows(GjQueue *queue, uint32_t n, uint64_t *key, uint32_t *row)
{
	gj_free(queue, key, (size_t) n * sizeof(uint64_t));
	gj_free(queue, row, (size_t) n * sizeof(uint32_t));
}

static GjStatus
alloc_rows(GjQueue *queue, uint32_t n, uint64_t **key, uint32_t **row)
{
	*key = (uint64_t *) gj_alloc(queue, (size_t) n * sizeof(uint64_t));
	*row = (uint32_t *) gj_alloc(queue, (size_t) n * sizeof(uint32_t));
	return *key && *row ? GJ_OK : gj_no_memory(queue);
}

/* The second pass, from where the first one has put the rows; into partitions, anew. */
static GjStatus
second_pass(GjQueue *queue, const Plan &plan, Pass *pass, GjPartitions *partitions)
{
	const size_t nsegments = plan.fanout[0];
	void *segments;

	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_B, 2 * (nsegments + 1) * sizeof(uint32_t), &segments));
	pass->start = (uint32_t *) segments;
	pass->chunk = pass->start + nsegments + 1;
	pass->nsegments = (uint32_t) nsegments;
	find_segments<<<1, THREADS, 0, queue->stream>>>(pass->count, plan.nchunks[0], plan.fanout[0],
													plan.chunk_rows, (uint32_t *) segments,
													(uint32_t *) segments + nsegments + 1);
	GJ_LAUNCHED(queue, "find_segments");
	pass->from_key = partitions->key;
	pass->from_row = partitions->row;
	partitions->key = NULL;
	partitions->row = NULL;
	GJ_TRY(alloc_rows(queue, partitions->max_nrows, &partitions->key, &partitions->row));
	pass->to_key = partitions->key;
	pass->to_row = partitions->row;
	pass->fanout = plan.fanout[1];
	pass->shift = plan.shift[1];
	pass->mask = plan.fanout[1] - 1;
	return run_pass<false>(queue, pass, plan.nchunks[1]);
}

static GjStatus
partition_rows(GjQueue *queue, const Plan &plan, Pass *pass, bool (*stop)(void *), void *arg,
			   GjPartitions *partitions)
{
	const uint32_t nrows = pass->keys.nrows;
	const uint32_t blocks = gj_blocks((uint64_t) plan.nparts + 1, THREADS);

	GJ_TRY(alloc_rows(queue, nrows, &partitions->key, &partitions->row));
	partitions->start = (uint32_t *) gj_alloc(queue, ((size_t) plan.nparts + 1) * sizeof(uint32_t));
	if (partitions->start == NULL)
		return gj_no_memory(queue);
	pass->to_key = partitions->key;
	pass->to_row = partitions->row;
	GJ_TRY(run_pass<true>(queue, pass, plan.nchunks[0]));
	GJ_TRY(gj_build_ask(queue, nrows, stop, arg));
	if (plan.fanout[1] == 0)
		find_starts<true><<<blocks, THREADS, 0, queue->stream>>>(*pass, plan.nchunks[0],
																 plan.nparts, partitions->start);
	else
	{
		GJ_TRY(second_pass(queue, plan, pass, partitions));
		find_starts<false><<<blocks, THREADS, 0, queue->stream>>>(*pass, plan.nchunks[1],
																  plan.nparts, partitions->start);
	}
	GJ_LAUNCHED(queue, "find_starts");
	return gj_build_ask(queue, nrows, stop, arg);
}

/* The first pass of a plan, by hashes. */
static Pass
first_pass_of(const Plan &plan, const GjKeys *keys, uint64_t nslots)
{
	Pass pass = {};

	pass.keys = *keys;
	pass.nslots = nslots;
	pass.shift = plan.shift[0];
	pass.mask = 0xFFFFFFFF;
	pass.fanout = plan.fanout[0];
	pass.chunk_rows = plan.chunk_rows;
	return pass;
}

/* Makes the partitions, or none. */
static GjStatus
partition_keys(GjQueue *queue, const Plan &plan, Pass *pass, bool (*stop)(void *), void *arg,
			   GjPartitions *partitions)
{
	GjStatus status;

	memset(partitions, 0, sizeof(*partitions));
	partitions->n = plan.nparts;
	partitions->max_nrows = pass->keys.nrows;
	status = partition_rows(queue, plan, pass, stop, arg, partitions);
	/* what a second pass has read */
	free_rows(queue, partitions->max_nrows, (uint64_t *) pass->from_key,
			  (uint32_t *) pass->from_row);
	if (status != GJ_OK)
		gj_radix_free(queue, partitions);
	return status;
}

GjStatus
gj_radix_partition(GjQueue *queue, const GjKeys *keys, uint64_t nslots, bool (*stop)(void *),
				   void *arg, GjPartitions *partitions)
{
	const Plan plan = make_plan(queue, keys->nrows, nslots);
	Pass pass = first_pass_of(plan, keys, nslots);

	return partition_keys(queue, plan, &pass, stop, arg, partitions);
}

void
gj_radix_free(GjQueue *queue, GjPartitions *partitions)
{
	free_rows(queue, partitions->max_nrows, partitions->key, partitions->row);
	gj_free(queue, partitions->start, ((size_t) partitions->n + 1) * sizeof(uint32_t));
	memset(partitions, 0, sizeof(*partitions));
}

GjStatus
gj_radix_split(GjQueue *queue, const GjKeys *keys, int64_t low, uint64_t nslots,
			   bool (*stop)(void *), void *arg, GjPartitions *partitions)
{
	const uint32_t most = min(queue->device->radix_fanout, (uint32_t) MAX_FANOUT);
	Plan plan = make_plan(queue, keys->nrows, nslots);
	Pass pass;

	plan.shift[0] = MAX_PART_BITS;
	while (plan.shift[0] > 0 && (nslots - 1) >> plan.shift[0] < MIN_PARTS)
		plan.shift[0]--;
	while ((nslots - 1) >> plan.shift[0] >= most)
		plan.shift[0]++;
	plan.nparts = plan.fanout[0] = (uint32_t) ((nslots - 1) >> plan.shift[0]) + 1;
	plan.fanout[1] = 0;
	pass = first_pass_of(plan, keys, nslots);
	pass.direct = true;
	pass.low = low;
	return partition_keys(queue, plan, &pass, stop, arg, partitions);
}
