/*
 * exchange.cu
 *	  Rows that go to several devices: split by their keys, and columns of them put together.
 *
 * A split is one pass of CUB's radix sort over the numbers of parts, which keeps the order of
 * rows.  So neighbours of a part were near each other before, and reading a column by the
 * positions of one part after the other finds in L2 what the part before has fetched.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "../src/rows/hash.h"
#include "sort.cuh"

/* ---- split */

static __global__ void
__launch_bounds__(GJ_THREADS) split_parts(const __grid_constant__ GjKeys keys,
										  const __grid_constant__ GjSplit split, uint8_t *part)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint64_t hash = 0;
	uint32_t p;

	if (i >= keys.nrows)
		return;
	for (uint32_t k = 0; k < keys.nkeys; k++)
		hash = gj_hash_combine(hash, keys.value[k][i]);
	p = gj_hash_part(hash, split.nparts);
	for (uint32_t h = 0; h < split.nheavy; h++)
	{
		if (hash == split.heavy[h])
			p = split.nparts;
	}
	part[i] = (uint8_t) (keys.null[i] ? split.null_part : p);
}

/* start[p] for p <= end, from n parts in their order; start[end] = n. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	split_starts(const uint8_t *sorted, uint32_t n, uint32_t end, uint32_t *start)
{
	const uint64_t i = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;
	uint32_t first;
	uint32_t last;

	if (i > n)
		return;
	first = i > 0 ? sorted[i - 1] + 1u : 0;
	last = i < n ? sorted[i] : end;
	for (uint32_t p = first; p <= last; p++)
		start[p] = (uint32_t) i;
}

/* Row numbers, starts, parts and sorted parts of n rows; bytes: n, rounded up. */
static GjStatus
split_scratch(GjQueue *queue, uint32_t n, size_t *bytes, void **memory)
{
	*bytes = ((size_t) n + 255) & ~(size_t) 255;
	return gj_scratch(queue, GJ_SCRATCH_A, 4 * *bytes + 256 + 2 * *bytes, memory);
}

/* Bits of the number of a part. */
static int
part_bits(uint32_t nparts)
{
	return 32 - __builtin_clz(nparts);
}

GjStatus
gj_split_reserve(GjQueue *queue, uint32_t n)
{
	size_t nbytes = 0;
	size_t bytes;
	void *memory;

	GJ_TRY(gj_enter(queue));
	GJ_TRY(split_scratch(queue, n, &bytes, &memory));
	GJ_CUDA(queue, cub::DeviceRadixSort::SortPairs(nullptr, nbytes, (const uint8_t *) nullptr,
												   (uint8_t *) nullptr, (const uint32_t *) nullptr,
												   (uint32_t *) nullptr, (int64_t) n, 0,
												   part_bits(GJ_SPLIT_PARTS), queue->stream));
	return gj_scratch(queue, GJ_SCRATCH_CUB, nbytes, &memory);
}

GjStatus
gj_split(GjQueue *queue, const GjKeys *keys, const GjSplit *split, uint32_t *positions,
		 uint32_t start[GJ_SPLIT_PARTS + 2])
{
	const uint32_t n = keys->nrows;
	const uint32_t nstarts = split->nparts + 2;
	size_t bytes;
	void *memory;
	uint32_t *rows;
	uint32_t *starts;
	uint8_t *part;
	uint8_t *sorted;

	GJ_TRY(gj_enter(queue));
	GJ_TRY(split_scratch(queue, n, &bytes, &memory));
	rows = (uint32_t *) memory;
	starts = (uint32_t *) ((uint8_t *) memory + 4 * bytes);
	part = (uint8_t *) starts + 256;
	sorted = part + bytes;
	if (n > 0)
	{
		split_parts<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(*keys, *split,
																				part);
		GJ_LAUNCHED(queue, "split_parts");
		GJ_TRY(gj_number_rows(queue, rows, n));
		GJ_CUB(queue, cub::DeviceRadixSort::SortPairs, part, sorted, rows, positions, (int64_t) n,
			   0, part_bits(split->nparts));
	}
	split_starts<<<gj_blocks((uint64_t) n + 1, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		sorted, n, nstarts - 1, starts);
	GJ_LAUNCHED(queue, "split_starts");
	GJ_CUDA(queue, cudaMemcpyAsync(queue->pinned->split_start, starts, nstarts * sizeof(uint32_t),
								   cudaMemcpyDeviceToHost, queue->stream));
	GJ_TRY(gj_wait(queue));
	for (uint32_t p = 0; p < nstarts; p++)
		start[p] = queue->pinned->split_start[p];
	return GJ_OK;
}

static_assert((GJ_SPLIT_PARTS + 2) * sizeof(uint32_t) <= 256, "starts of parts");

/* ---- pick_values */

template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS)
	pick_values(T *to, const T *from, const uint32_t *positions, uint32_t n)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		to[i] = from[positions[i]];
}

template <typename T>
static GjStatus
pick(GjQueue *queue, void *to, const void *from, const uint32_t *positions, uint32_t n)
{
	pick_values<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		(T *) to, (const T *) from, positions, n);
	GJ_LAUNCHED(queue, "pick_values");
	return GJ_OK;
}

GjStatus
gj_pick_values(GjQueue *queue, void *to, const void *from, uint32_t width,
			   const uint32_t *positions, uint32_t n)
{
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return GJ_OK;
	switch (width)
	{
		case 1:
			return pick<uint8_t>(queue, to, from, positions, n);
		case 2:
			return pick<uint16_t>(queue, to, from, positions, n);
		case 4:
			return pick<uint32_t>(queue, to, from, positions, n);
		case 8:
			return pick<uint64_t>(queue, to, from, positions, n);
		default:
			return pick<uint4>(queue, to, from, positions, n);
	}
}

/* ---- references */

static __global__ void
__launch_bounds__(GJ_THREADS) ref_sizes(const uint64_t *refs, uint32_t n, uint64_t *sizes)
{
	const uint64_t i = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i <= n)
		sizes[i] = i < n ? gj_ref_space(refs[i]) : 0;
}

GjStatus
gj_ref_bytes(GjQueue *queue, const uint64_t *refs, uint32_t n, uint64_t *heap_at)
{
	const uint64_t nsizes = (uint64_t) n + 1;

	GJ_TRY(gj_enter(queue));
	ref_sizes<<<gj_blocks(nsizes, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(refs, n, heap_at);
	GJ_LAUNCHED(queue, "ref_sizes");
	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, heap_at, heap_at, (int64_t) nsizes);
	return GJ_OK;
}

/* So many threads share the words of a reference; they are of one warp. */
#define THREADS_PER_REF 8u

static __global__ void
__launch_bounds__(GJ_THREADS) move_refs(uint64_t *refs, uint32_t n, const uint8_t *heap,
										const uint64_t *heap_at, uint8_t *to, uint64_t base)
{
	const uint64_t t = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;
	const uint64_t i = t / THREADS_PER_REF;
	const uint32_t lane = (uint32_t) (t % THREADS_PER_REF);
	const uint64_t ref = i < n ? refs[i] : 0;
	const uint64_t at = i < n ? heap_at[i] - heap_at[0] : 0;
	const uint64_t *words = (const uint64_t *) (heap + gj_ref_offset(ref));

	/* a held one is a number of the backend's, not a place, and has no space */
	for (uint32_t w = lane; w < gj_ref_space(ref) / 8; w += THREADS_PER_REF)
		((uint64_t *) (to + at))[w] = words[w];
	/* all have read the reference before it changes */
	__syncwarp();
	if (i < n && lane == 0 && gj_ref_length(ref) != GJ_REF_HELD)
		refs[i] = gj_ref_make(base + at, gj_ref_length(ref));
}

GjStatus
gj_move_refs(GjQueue *queue, uint64_t *refs, uint32_t n, const uint8_t *heap,
			 const uint64_t *heap_at, uint8_t *to, uint64_t base)
{
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return GJ_OK;
	move_refs<<<gj_blocks((uint64_t) n * THREADS_PER_REF, GJ_THREADS), GJ_THREADS, 0,
				queue->stream>>>(refs, n, heap, heap_at, to, base);
	GJ_LAUNCHED(queue, "move_refs");
	return GJ_OK;
}
