/*
 * set_intersect.cu
 *	  Sets of integers: sort and remove duplicates, and intersect two sorted sets.
 *
 * The intersection follows the merge path (Green, McColl, Bader: "GPU Merge Path", ICS
 * 2012): the merged order of both sets is cut into ranges of equal length, one a block,
 * and each block's range into equal lengths again, one a thread.  Of two equal values
 * that of `a` comes first, so a match is found where a value of `b` is taken, by
 * comparing it with the last value of `a` before it, which may lie in the range before.
 * A first pass counts the matches of each block, a scan tells where they go, and a
 * second pass writes them.
 */
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include "internal.cuh"

/* ---- sort_unique */

/* values -> sorted in values or other -> unique in values; *n_unique in the results. */
template <typename T>
static GjStatus
sort_unique(GjQueue *queue, T *values, T *other, uint64_t n)
{
	cub::DoubleBuffer<T> buffer(values, other);
	T *unique;

	GJ_CUB(queue, cub::DeviceRadixSort::SortKeys, buffer, n, 0, (int) sizeof(T) * 8);
	unique = buffer.Current() == values ? other : values;
	GJ_CUB(queue, cub::DeviceSelect::Unique, (const T *) buffer.Current(), unique,
		   &queue->results->total, (int64_t) n);
	GJ_TRY(gj_wait(queue));
	if (unique != values)
		GJ_CUDA(queue, cudaMemcpyAsync(values, unique, queue->pinned->results.total * sizeof(T),
									   cudaMemcpyDeviceToDevice, queue->stream));
	return GJ_OK;
}

GjStatus
gj_sort_unique(GjQueue *queue, void *values, uint32_t width, uint64_t n, bool (*stop)(void *),
			   void *arg, uint64_t *n_unique)
{
	void *other;
	GjStatus status;

	*n_unique = 0;
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return gj_wait(queue);
	other = gj_alloc(queue, n * width);
	if (other == NULL)
		return gj_no_memory(queue);
	/* one pass, as device.h says: there is nothing in between to stop at */
	if (stop && stop(arg))
		status = GJ_CANCELLED;
	else if (width == 2)
		status = sort_unique(queue, (int16_t *) values, (int16_t *) other, n);
	else if (width == 4)
		status = sort_unique(queue, (int32_t *) values, (int32_t *) other, n);
	else
		status = sort_unique(queue, (int64_t *) values, (int64_t *) other, n);
	gj_free(queue, other, n * width);
	if (status == GJ_OK)
		*n_unique = queue->pinned->results.total;
	return status;
}

/* ---- intersect */

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

/* split[k] = values of `a` before block k's range, for k <= nblocks. */
template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS) intersect_split(const T *a, uint64_t na, const T *b, uint64_t nb,
											  uint32_t nblocks, uint64_t *split)
{
	const uint64_t k = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;

	if (k <= nblocks)
		split[k] = merge_path(a, na, b, nb, min(k * Range<T>::block, na + nb));
}

/* A block's range: its values in shared memory. */
template <typename T>
struct Part
{
	const T *a; /* na values; a[-1] is the one before, if has_before */
	const T *b;
	uint32_t na;
	uint32_t nb;
	bool has_before;
};

/* Loads the range into values[Range::block + 1]. */
template <typename T>
static __device__ __forceinline__ Part<T>
load_part(const T *a, uint64_t na, const T *b, uint64_t nb, const uint64_t *split, T *values)
{
	const uint64_t a_first = split[blockIdx.x];
	const uint64_t a_end = split[blockIdx.x + 1];
	const uint64_t first = (uint64_t) blockIdx.x * Range<T>::block;
	const uint64_t end = min(first + Range<T>::block, na + nb);
	const uint64_t b_first = first - a_first;
	Part<T> part;

	part.na = (uint32_t) (a_end - a_first);
	part.nb = (uint32_t) (end - first) - part.na;
	part.has_before = a_first > 0;
	part.a = values + 1;
	part.b = values + 1 + part.na;
	if (threadIdx.x == 0)
		values[0] = part.has_before ? a[a_first - 1] : 0;
	for (uint32_t i = threadIdx.x; i < part.na; i += GJ_THREADS)
		values[1 + i] = a[a_first + i];
	for (uint32_t i = threadIdx.x; i < part.nb; i += GJ_THREADS)
		values[1 + part.na + i] = b[b_first + i];
	__syncthreads();
	return part;
}

/*
 * Walks this thread's values.  Bit s of the result is set if step s found a match,
 * which is then in matches[s].
 */
template <typename T>
static __device__ __forceinline__ uint32_t
match_part(const Part<T> &part, T (&matches)[Range<T>::thread])
{
	const uint32_t total = part.na + part.nb;
	const uint32_t diagonal = min(threadIdx.x * Range<T>::thread, total);
	uint32_t i = merge_path(part.a, part.na, part.b, part.nb, diagonal);
	uint32_t j = diagonal - i;
	uint32_t found = 0;

#pragma unroll
	for (uint32_t s = 0; s < Range<T>::thread; s++)
	{
		const bool has_a = i < part.na;
		const bool has_b = j < part.nb;

		if (has_a && (!has_b || part.a[i] <= part.b[j]))
			i++;
		else if (has_b)
		{
			const T value = part.b[j];

			if ((i > 0 || part.has_before) && part.a[(int) i - 1] == value)
			{
				matches[s] = value;
				found |= 1u << s;
			}
			j++;
		}
	}
	return found;
}

/* counts[block] = matches in its range; counts[nblocks] = 0. */
template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS) intersect_count(const T *a, uint64_t na, const T *b, uint64_t nb,
											  const uint64_t *split, uint64_t *counts)
{
	__shared__ T values[Range<T>::block + 1];
	__shared__ uint32_t count;
	T matches[Range<T>::thread];
	Part<T> part;
	uint32_t n;

	if (threadIdx.x == 0)
		count = 0;
	part = load_part(a, na, b, nb, split, values);
	n = __reduce_add_sync(0xFFFFFFFF, (uint32_t) __popc(match_part(part, matches)));
	if (threadIdx.x % 32 == 0 && n > 0)
		atomicAdd(&count, n);
	__syncthreads();
	if (threadIdx.x != 0)
		return;
	counts[blockIdx.x] = count;
	if (blockIdx.x == 0)
		counts[gridDim.x] = 0;
}

/* Writes the matches of block k to result[offset[k] ..]. */
template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS)
	intersect_write(const T *a, uint64_t na, const T *b, uint64_t nb, const uint64_t *split,
					const uint64_t *offset, T *result)
{
	typedef cub::BlockScan<uint32_t, GJ_THREADS> Scan;
	__shared__ T values[Range<T>::block + 1];
	__shared__ typename Scan::TempStorage scan;
	T matches[Range<T>::thread];
	const uint64_t to = offset[blockIdx.x];
	uint32_t found;
	uint32_t at;
	uint32_t n;

	if (offset[blockIdx.x + 1] == to)
		return;
	found = match_part(load_part(a, na, b, nb, split, values), matches);
	Scan(scan).ExclusiveSum((uint32_t) __popc(found), at, n);
	/* all threads have read their values: the matches take their place */
	__syncthreads();
#pragma unroll
	for (uint32_t s = 0; s < Range<T>::thread; s++)
	{
		if (found & (1u << s))
			values[at++] = matches[s];
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < n; i += GJ_THREADS)
		result[to + i] = values[i];
}

template <typename T>
static GjStatus
intersect(GjQueue *queue, const T *a, uint64_t na, const T *b, uint64_t nb, T *result)
{
	const uint32_t nblocks = gj_blocks(na + nb, Range<T>::block);
	void *memory;
	uint64_t *split;
	uint64_t *counts;

	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, 2 * ((size_t) nblocks + 1) * sizeof(uint64_t), &memory));
	split = (uint64_t *) memory;
	counts = split + nblocks + 1;
	intersect_split<<<gj_blocks((uint64_t) nblocks + 1, GJ_THREADS), GJ_THREADS, 0,
					  queue->stream>>>(a, na, b, nb, nblocks, split);
	GJ_LAUNCHED(queue, "intersect_split");
	intersect_count<<<nblocks, GJ_THREADS, 0, queue->stream>>>(a, na, b, nb, split, counts);
	GJ_LAUNCHED(queue, "intersect_count");
	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, counts, counts, (uint64_t) nblocks + 1);
	if (result)
	{
		intersect_write<<<nblocks, GJ_THREADS, 0, queue->stream>>>(a, na, b, nb, split, counts,
																   result);
		GJ_LAUNCHED(queue, "intersect_write");
	}
	GJ_CUDA(queue, cudaMemcpyAsync(&queue->results->total, counts + nblocks, sizeof(uint64_t),
								   cudaMemcpyDeviceToDevice, queue->stream));
	return gj_wait(queue);
}

GjStatus
gj_intersect(GjQueue *queue, const void *a, uint64_t na, const void *b, uint64_t nb, uint32_t width,
			 bool (*stop)(void *), void *arg, void *result, uint64_t *n)
{
	*n = 0;
	GJ_TRY(gj_enter(queue));
	if (stop && stop(arg))
		return GJ_CANCELLED;
	if (na == 0 || nb == 0)
		return gj_wait(queue);
	if (width == 2)
		GJ_TRY(
			intersect(queue, (const int16_t *) a, na, (const int16_t *) b, nb, (int16_t *) result));
	else if (width == 4)
		GJ_TRY(
			intersect(queue, (const int32_t *) a, na, (const int32_t *) b, nb, (int32_t *) result));
	else
		GJ_TRY(
			intersect(queue, (const int64_t *) a, na, (const int64_t *) b, nb, (int64_t *) result));
	*n = queue->pinned->results.total;
	return GJ_OK;
}
