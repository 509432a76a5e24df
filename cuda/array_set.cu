/*
 * array_set.cu
 *	  The sets of integer arrays: decoded (src/rows/array.h), sorted and made unique.
 *
 * A warp copies the elements of an array; all arrays are sorted together (CUB segmented
 * sort).  Elements that are the first ones of their value are then counted by a scan, which
 * tells where each goes and how many each set has left.
 */
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include "rows/array.h"
#include "internal.cuh"

/* Memory that goes with the function that uses it. */
struct Memory
{
	GjQueue *queue;
	uint8_t *bytes;
	size_t nbytes;

	Memory(GjQueue *q, size_t n) : queue(q), bytes((uint8_t *) gj_alloc(q, n)), nbytes(n)
	{
	}
	~Memory()
	{
		if (bytes)
			gj_free(queue, bytes, nbytes);
	}
	Memory(const Memory &) = delete;
};

static __device__ __forceinline__ uint64_t
thread_number(void)
{
	return (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;
}

/* ---- sizes */

/* size[i], null[i] of tuple first + i; adds all sizes up. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	find_sizes(const __grid_constant__ GjView view, uint32_t first, uint32_t n, uint32_t source,
			   GjArrayColumn array, int32_t *size, uint8_t *null, GjResults *results)
{
	const uint64_t i = thread_number();
	uint32_t sum;
	int32_t elements = 0;

	if (i < n)
	{
		const GjColumn *column = &view.columns[array.column];
		const uint32_t row = gj_view_row(&view, source, first + (uint32_t) i);
		uint8_t none = gj_row_is_null(column, row);

		if (!none)
			gj_note_error(results, gj_array_set(gj_column_ref(column, row), column->heap,
												array.width, array.nulls, &elements, &none));
		size[i] = elements;
		null[i] = none;
	}
	/* an array has less than 2^24 bytes; all lanes are here */
	sum = __reduce_add_sync(0xFFFFFFFF, (uint32_t) elements);
	if (threadIdx.x % 32 == 0 && sum > 0)
		atomicAdd((unsigned long long *) &results->total, (unsigned long long) sum);
}

static uint32_t
source_of(const GjQueue *queue, const GjArrayColumn *array)
{
	return gj_program_array(queue->program, GjColumnType, columns)[array->column].source;
}

GjStatus
gj_array_sizes(GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
			   const GjArrayColumn *array, int32_t *size, uint8_t *null, uint64_t *total)
{
	*total = 0;
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return gj_wait(queue);
	GJ_CUDA(queue, cudaMemsetAsync(&queue->results->total, 0, sizeof(uint64_t), queue->stream));
	find_sizes<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		*view, first, n, source_of(queue, array), *array, size, null, queue->results);
	GJ_LAUNCHED(queue, "find_sizes");
	GJ_TRY(gj_wait(queue));
	*total = queue->pinned->results.total;
	return GJ_OK;
}

/* ---- sets */

/* offset[i] = size[i], and a zero behind: to be summed up. */
static __global__ void
__launch_bounds__(GJ_THREADS) widen_sizes(const int32_t *size, uint32_t n, uint64_t *offset)
{
	const uint64_t i = thread_number();

	if (i <= n)
		offset[i] = i < n ? (uint64_t) size[i] : 0;
}

/* A warp an array.  array_sizes has found that it can be read. */
template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS) copy_elements(const __grid_constant__ GjView view, uint32_t source,
											uint32_t column_number, const uint64_t *offset, T *to)
{
	const GjColumn *column = &view.columns[column_number];
	const uint64_t tuple = thread_number() / 32;
	uint64_t begin;
	uint32_t n;
	uint32_t row;
	GjArray array;

	if (tuple >= view.nrows)
		return;
	begin = offset[tuple];
	n = (uint32_t) (offset[tuple + 1] - begin);
	if (n == 0)
		return;
	row = gj_view_row(&view, source, (uint32_t) tuple);
	gj_array_of(gj_column_ref(column, row), column->heap, sizeof(T), &array);
	for (uint32_t i = threadIdx.x % 32; i < n; i += 32)
		to[begin + i] = (T) gj_array_element(&array, i, sizeof(T));
}

/* fresh[i] = 1 if element i is the first one of its value in its set, else 0; a warp a set. */
template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS)
	mark_fresh(const T *values, const uint64_t *offset, uint32_t nsets, uint32_t *fresh)
{
	const uint64_t set = thread_number() / 32;
	uint64_t begin;
	uint64_t end;

	if (set >= nsets)
		return;
	begin = offset[set];
	end = offset[set + 1];
	for (uint64_t i = begin + threadIdx.x % 32; i < end; i += 32)
		fresh[i] = i == begin || values[i] != values[i - 1];
}

/* kept: the sums of fresh up to each element, itself included. */
static __device__ __forceinline__ uint32_t
kept_before(const uint32_t *kept, uint64_t i)
{
	return i > 0 ? kept[i - 1] : 0;
}

template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS) place_fresh(const T *values, const uint32_t *kept, uint64_t n, T *to)
{
	const uint64_t i = thread_number();

	if (i < n && kept[i] != kept_before(kept, i))
		to[kept[i] - 1] = values[i];
}

static __global__ void
__launch_bounds__(GJ_THREADS)
	count_fresh(const uint32_t *kept, const uint64_t *offset, uint32_t nsets, int32_t *size)
{
	const uint64_t set = thread_number();

	if (set < nsets)
		size[set] = (int32_t) (kept_before(kept, offset[set + 1]) - kept_before(kept, offset[set]));
}

/* The sets behind each other, ascending, duplicates and all, in `values`; `other` is lost. */
template <typename T>
static GjStatus
sort_elements(GjQueue *queue, const GjView *view, const GjArrayColumn *array,
			  const uint64_t *offset, uint64_t total, T *other, T *values)
{
	copy_elements<T>
		<<<gj_blocks((uint64_t) view->nrows * 32, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
			*view, source_of(queue, array), array->column, offset, other);
	GJ_LAUNCHED(queue, "copy_elements");
	GJ_CUB(queue, cub::DeviceSegmentedSort::SortKeys, (const T *) other, values, (int64_t) total,
		   (int64_t) view->nrows, offset, offset + 1);
	return GJ_OK;
}

/* Leaves each value of a set once. */
template <typename T>
static GjStatus
drop_duplicates(GjQueue *queue, const uint64_t *offset, uint32_t nsets, uint64_t total, T *other,
				uint32_t *kept, T *values, int32_t *size, uint64_t *nvalues)
{
	mark_fresh<T><<<gj_blocks((uint64_t) nsets * 32, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		values, offset, nsets, kept);
	GJ_LAUNCHED(queue, "mark_fresh");
	GJ_CUB(queue, cub::DeviceScan::InclusiveSum, kept, kept, (int64_t) total);
	GJ_CUDA(queue, cudaMemcpyAsync(&queue->results->n, kept + total - 1, sizeof(uint32_t),
								   cudaMemcpyDeviceToDevice, queue->stream));
	GJ_TRY(gj_wait(queue));
	*nvalues = queue->pinned->results.n;
	if (*nvalues == total)
		return GJ_OK;
	place_fresh<T><<<gj_blocks(total, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(values, kept,
																				   total, other);
	GJ_LAUNCHED(queue, "place_fresh");
	count_fresh<<<gj_blocks(nsets, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(kept, offset, nsets,
																				size);
	GJ_LAUNCHED(queue, "count_fresh");
	GJ_CUDA(queue, cudaMemcpyAsync(values, other, *nvalues * sizeof(T), cudaMemcpyDeviceToDevice,
								   queue->stream));
	return gj_wait(queue);
}

template <typename T>
static GjStatus
make_sets(GjQueue *queue, const GjView *view, const GjArrayColumn *array, const uint64_t *offset,
		  uint64_t total, int32_t *size, T *values, bool (*stop)(void *), void *arg,
		  uint64_t *nvalues)
{
	Memory other(queue, total * sizeof(T));
	Memory kept(queue, total * sizeof(uint32_t));

	if (!other.bytes || !kept.bytes)
		return gj_no_memory(queue);
	GJ_TRY(sort_elements<T>(queue, view, array, offset, total, (T *) other.bytes, values));
	if (stop && stop(arg))
		return GJ_CANCELLED;
	return drop_duplicates<T>(queue, offset, view->nrows, total, (T *) other.bytes,
							  (uint32_t *) kept.bytes, values, size, nvalues);
}

GjStatus
gj_array_sets(GjQueue *queue, const GjView *view, const GjArrayColumn *array, int32_t *size,
			  void *values, bool (*stop)(void *), void *arg, uint64_t *nvalues)
{
	const uint32_t n = view->nrows;
	uint64_t total;

	*nvalues = 0;
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return gj_wait(queue);

	Memory memory(queue, ((size_t) n + 1) * sizeof(uint64_t));
	uint64_t *offset = (uint64_t *) memory.bytes;

	if (!offset)
		return gj_no_memory(queue);
	widen_sizes<<<gj_blocks((uint64_t) n + 1, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(size, n,
																						   offset);
	GJ_LAUNCHED(queue, "widen_sizes");
	GJ_TRY(gj_sum_counts(queue, offset, n, &total));
	if (total == 0)
		return GJ_OK;
	/* fewer tuples at a time have fewer elements */
	if (total > UINT32_MAX)
		return GJ_OUT_OF_MEMORY;
	return array->width == 2   ? make_sets<int16_t>(queue, view, array, offset, total, size,
                                                  (int16_t *) values, stop, arg, nvalues)
		   : array->width == 4 ? make_sets<int32_t>(queue, view, array, offset, total, size,
													(int32_t *) values, stop, arg, nvalues)
							   : make_sets<int64_t>(queue, view, array, offset, total, size,
													(int64_t *) values, stop, arg, nvalues);
}
