/*
 * set_merge.cuh
 *	  Intersection, union and difference of two sorted sets by merge_path.
 *
 * merge_path follows Green, McColl, Bader, "GPU Merge Path", ICS 2012: the merged order of
 * both sets is cut into ranges of equal length, one a block, and each block's range, in
 * shared memory, into equal lengths again, one a thread.  Of two equal values that of `a`
 * comes first, so a match is found where a value of `a` is taken, by comparing it with the
 * next value of `b`, which may lie in the range behind.  Where a range has few
 * values of one of the sets, these are looked up in the rest of it instead, as Bellas and
 * Gounaris combine intersect path and binary search (Information Systems 108, 2022).
 *
 * A block knows how many values it has, and learns from the blocks before it where they go (a scan
 * with decoupled look-back), in one pass.
 */
#ifndef GJ_CUDA_SET_MERGE_CUH
#define GJ_CUDA_SET_MERGE_CUH

#include "internal.cuh"
#include "place.cuh"

/* Values of the merged order that a thread and a block take. */
template <typename T>
struct Range
{
	static const uint32_t thread = sizeof(T) == 8 ? 9 : 15; /* odd: fewer bank conflicts */
	static const uint32_t block = thread * GJ_THREADS;
};

/*
 * How many of the first `diagonal` values of the merged order come from `a`: the
 * smallest i with a[i] > b[diagonal - 1 - i].
 */
template <typename T, typename N>
static __device__ __forceinline__ N
merge_path(const T *a, N na, const T *b, N nb, N diagonal)
{
	N low = diagonal > nb ? diagonal - nb : 0;
	N high = diagonal < na ? diagonal : na;

	while (low < high)
	{
		const N mid = low + (high - low) / 2;

		if (a[mid] <= b[diagonal - 1 - mid])
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* split[k] = values of `a` before block k's range, for k <= nblocks; starts the tiles. */
template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS)
	merge_split(const T *a, uint64_t na, const T *b, uint64_t nb, uint32_t nblocks, uint64_t *split,
				TileState tiles, GjResults *results)
{
	const uint64_t k = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;

	tiles.InitializeStatus((int) nblocks);
	if (k == 0)
		results->total = 0;
	if (k <= nblocks)
		split[k] = merge_path(a, na, b, nb, min(k * Range<T>::block, na + nb));
}

/* A block's range: its values in shared memory. */
template <typename T>
struct Part
{
	const T *a; /* na values; a[-1] is the one before, if has_before */
	const T *b; /* nb values; b[nb] is the one behind, if has_behind */
	uint32_t na;
	uint32_t nb;
	bool has_before;
	bool has_behind;
};

/* Loads the range into values[Range::block + 2]: all loads are under way at once. */
template <typename T>
static __device__ __forceinline__ Part<T>
load_part(const T *a, uint64_t na, const T *b, uint64_t nb, const uint64_t *split, T *values)
{
	const uint64_t a_first = split[blockIdx.x];
	const uint64_t a_end = split[blockIdx.x + 1];
	const uint64_t first = (uint64_t) blockIdx.x * Range<T>::block;
	const uint64_t end = min(first + Range<T>::block, na + nb);
	const uint64_t b_first = first - a_first;
	const uint32_t total = (uint32_t) (end - first);
	T loaded[Range<T>::thread];
	Part<T> part;

	part.na = (uint32_t) (a_end - a_first);
	part.nb = total - part.na;
	part.has_before = a_first > 0;
	part.has_behind = b_first + part.nb < nb;
	part.a = values + 1;
	part.b = values + 1 + part.na;
	if (threadIdx.x == 0)
		values[0] = part.has_before ? a[a_first - 1] : 0;
	if (threadIdx.x == 32)
		values[1 + total] = part.has_behind ? b[b_first + part.nb] : 0;
#pragma unroll
	for (uint32_t s = 0; s < Range<T>::thread; s++)
	{
		const uint32_t i = s * GJ_THREADS + threadIdx.x;

		if (i < total)
			loaded[s] = i < part.na ? a[a_first + i] : b[b_first + (i - part.na)];
	}
#pragma unroll
	for (uint32_t s = 0; s < Range<T>::thread; s++)
	{
		const uint32_t i = s * GJ_THREADS + threadIdx.x;

		if (i < total)
			values[1 + i] = loaded[s];
	}
	__syncthreads();
	return part;
}

/*
 * Walks the values from `a`'s number i and `b`'s number j on, of which CHECKED may be too few.  Bit
 * s of the result is set if step s gave a value, which is then in kept[s].  A step costs one load:
 * the next value of the set that one was taken of.
 */
template <typename T, int OPERATION, bool CHECKED>
static __device__ __forceinline__ uint32_t
walk_part(const Part<T> &part, uint32_t i, uint32_t j, T (&kept)[Range<T>::thread])
{
	T a = part.a[i]; /* b's first, or the one behind, where `a` has no more */
	T b = part.b[j];
	bool was_equal = (i > 0 || part.has_before) && part.a[(int) i - 1] == b;
	uint32_t found = 0;

#pragma unroll
	for (uint32_t s = 0; s < Range<T>::thread; s++)
	{
		const bool has_b = !CHECKED || j < part.nb;
		const bool take_a = CHECKED ? i < part.na && (!has_b || a <= b) : a <= b;
		const bool take_b = !take_a && has_b;
		/* the equal of a value of `a` comes next, perhaps in the range behind */
		const bool equal = a == b && (!CHECKED || (take_a && (has_b || part.has_behind)));
		bool keep;
		T next;

		if (OPERATION == GJ_SETS_INTERSECT)
			keep = equal;
		else if (OPERATION == GJ_SETS_EXCEPT)
			keep = take_a && !equal;
		else
			keep = take_a || (take_b && !was_equal);
		kept[s] = OPERATION != GJ_SETS_UNION || take_a ? a : b;
		found |= keep ? 1u << s : 0u;
		was_equal = equal;
		i += take_a;
		j += take_b;
		next = part.a[take_a ? i : part.na + j]; /* b lies behind a */
		a = take_a ? next : a;
		b = take_a ? b : next;
	}
	return found;
}

/* This thread's values: see walk_part. */
template <typename T, int OPERATION>
static __device__ __forceinline__ uint32_t
merge_part(const Part<T> &part, T (&kept)[Range<T>::thread])
{
	const uint32_t n = Range<T>::thread;
	const uint32_t diagonal = min(threadIdx.x * n, part.na + part.nb);
	const uint32_t i = merge_path(part.a, part.na, part.b, part.nb, diagonal);
	const uint32_t j = diagonal - i;

	/* all but the last threads of a block */
	if (i + n <= part.na && j + n <= part.nb)
		return walk_part<T, OPERATION, false>(part, i, j, kept);
	return walk_part<T, OPERATION, true>(part, i, j, kept);
}

/* From this ratio of a range's values on those of the smaller set are looked up. */
#define RANGE_SKEW 8
#define RANGE_ITEMS 2 /* of them a thread takes */

static_assert(Range<int16_t>::block / RANGE_SKEW + 1 <= RANGE_ITEMS * GJ_THREADS &&
				  Range<int64_t>::block / RANGE_SKEW + 1 <= RANGE_ITEMS * GJ_THREADS,
			  "values of the smaller set");

/*
 * The same for an intersection, where a range has few values of one set: they are looked up among
 * those of the other one.  The equal of a value of `a` may lie right behind the range.
 */
template <typename T>
static __device__ __forceinline__ uint32_t
search_part(const Part<T> &part, T (&kept)[Range<T>::thread])
{
	const uint32_t nb = part.nb + part.has_behind;
	const bool few_a = part.na <= nb;
	const T *few = few_a ? part.a : part.b;
	const T *many = few_a ? part.b : part.a;
	const uint32_t nfew = few_a ? part.na : nb;
	const uint32_t nmany = few_a ? nb : part.na;
	uint32_t found = 0;

#pragma unroll
	for (uint32_t s = 0; s < RANGE_ITEMS; s++)
	{
		const uint32_t i = threadIdx.x * RANGE_ITEMS + s;
		uint32_t low = 0;
		uint32_t high = nmany;

		if (i >= nfew)
			break;
		kept[s] = few[i];
		while (low < high)
		{
			const uint32_t mid = (low + high) / 2;

			if (many[mid] < kept[s])
				low = mid + 1;
			else
				high = mid;
		}
		if (low < nmany && many[low] == kept[s])
			found |= 1u << s;
	}
	return found;
}

/*
 * What the block's range gives; all of its threads take the same way.  FEW: one set is much smaller
 * than the other (a kernel of its own, so that the usual one keeps its registers).
 */
template <typename T, int OPERATION, bool FEW>
static __device__ __forceinline__ uint32_t
take_part(const Part<T> &part, T (&kept)[Range<T>::thread])
{
	if (FEW && min(part.na, part.nb) * RANGE_SKEW <= part.na + part.nb)
		return search_part(part, kept);
	return merge_part<T, OPERATION>(part, kept);
}

/* Adds up how many values the ranges give. */
template <typename T, int OPERATION, bool FEW>
static __global__ void
__launch_bounds__(GJ_THREADS) merge_count(const T *a, uint64_t na, const T *b, uint64_t nb,
										  const uint64_t *split, GjResults *results)
{
	__shared__ T values[Range<T>::block + 2];
	__shared__ uint32_t count;
	T kept[Range<T>::thread];
	uint32_t n;

	if (threadIdx.x == 0)
		count = 0;
	n = (uint32_t) __popc(
		take_part<T, OPERATION, FEW>(load_part(a, na, b, nb, split, values), kept));
	n = __reduce_add_sync(0xFFFFFFFF, n);
	if (threadIdx.x % 32 == 0 && n > 0)
		atomicAdd(&count, n);
	__syncthreads();
	if (threadIdx.x == 0 && count > 0)
		atomicAdd((unsigned long long *) &results->total, (unsigned long long) count);
}

/* Writes the values of all ranges, in order. */
template <typename T, int OPERATION, bool FEW>
static __global__ void
__launch_bounds__(GJ_THREADS)
	merge_write(const T *a, uint64_t na, const T *b, uint64_t nb, const uint64_t *split,
				TileState tiles, GjResults *results, T *result)
{
	__shared__ T values[Range<T>::block + 2];
	__shared__ Place place;
	T kept[Range<T>::thread];
	const uint32_t found =
		take_part<T, OPERATION, FEW>(load_part(a, na, b, nb, split, values), kept);
	uint64_t to;
	uint32_t n;
	uint32_t at = place_values(place, tiles, (uint32_t) __popc(found), results, &n, &to);

	/* all threads have read their values: what is kept takes their place */
#pragma unroll
	for (uint32_t s = 0; s < Range<T>::thread; s++)
	{
		if (found & (1u << s))
			values[at++] = kept[s];
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < n; i += GJ_THREADS)
		result[to + i] = values[i];
}

template <typename T, int OPERATION, bool FEW>
static void
take_ranges(GjQueue *queue, const T *a, uint64_t na, const T *b, uint64_t nb, uint32_t nblocks,
			const uint64_t *split, TileState tiles, T *result)
{
	if (result)
		merge_write<T, OPERATION, FEW><<<nblocks, GJ_THREADS, 0, queue->stream>>>(
			a, na, b, nb, split, tiles, queue->results, result);
	else
		merge_count<T, OPERATION, FEW>
			<<<nblocks, GJ_THREADS, 0, queue->stream>>>(a, na, b, nb, split, queue->results);
}

template <typename T, int OPERATION>
static GjStatus
merge(GjQueue *queue, const T *a, uint64_t na, const T *b, uint64_t nb, T *result)
{
	const uint32_t nblocks = gj_blocks(na + nb, Range<T>::block);
	TileState tiles;
	void *memory;
	uint64_t *split;

	GJ_TRY(tile_memory(queue, nblocks, ((size_t) nblocks + 1) * sizeof(uint64_t), &tiles, &memory));
	split = (uint64_t *) memory;
	/* a thread more than blocks, and those that the states of the tiles need */
	merge_split<<<gj_blocks((uint64_t) nblocks + 64, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		a, na, b, nb, nblocks, split, tiles, queue->results);
	GJ_LAUNCHED(queue, "merge_split");
	if (OPERATION == GJ_SETS_INTERSECT && max(na, nb) / RANGE_SKEW >= min(na, nb))
		take_ranges<T, OPERATION, OPERATION == GJ_SETS_INTERSECT>(queue, a, na, b, nb, nblocks,
																  split, tiles, result);
	else
		take_ranges<T, OPERATION, false>(queue, a, na, b, nb, nblocks, split, tiles, result);
	GJ_LAUNCHED(queue, "merge");
	return GJ_OK;
}

#endif /* GJ_CUDA_SET_MERGE_CUH */
