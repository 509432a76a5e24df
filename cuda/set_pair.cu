/*
 * set_pair.cu
 *	  Sets of integers: sort and remove duplicates; intersection, union and difference of
 *	  two sorted sets.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "set_lookup.cuh"
#include "set_merge.cuh"

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

/* ---- set_pair */

template <typename T>
static GjStatus
intersect(GjQueue *queue, const GjSetPair *pair, T *result)
{
	const bool swap = pair->na > pair->nb;
	const T *small = (const T *) (swap ? pair->b : pair->a);
	const T *large = (const T *) (swap ? pair->a : pair->b);
	const uint64_t nsmall = swap ? pair->nb : pair->na;
	const uint64_t nlarge = swap ? pair->na : pair->nb;
	bool done = false;

	switch (gj_set_pair_algorithm(pair))
	{
		case GJ_SETS_BINARY_SEARCH:
			return intersect_search(queue, small, nsmall, large, nlarge, result);
		case GJ_SETS_HASH:
			return intersect_hash(queue, small, nsmall, large, nlarge, result);
		case GJ_SETS_BITMAP:
			GJ_TRY(intersect_bitmap(queue, small, nsmall, large, nlarge, result, &done));
			break;
		default:
			break;
	}
	if (done)
		return GJ_OK;
	return merge<T, GJ_SETS_INTERSECT>(queue, small, nsmall, large, nlarge, result);
}

/* One set is empty: what is left is the other one, or nothing. */
static GjStatus
pair_with_nothing(GjQueue *queue, const GjSetPair *pair, void *result, uint64_t *n)
{
	const void *values = pair->na > 0 ? pair->a : pair->b;

	*n = pair->operation == GJ_SETS_UNION    ? pair->na + pair->nb
		 : pair->operation == GJ_SETS_EXCEPT ? pair->na
											 : 0;
	if (*n > 0 && result)
		GJ_CUDA(queue, cudaMemcpyAsync(result, values, *n * pair->width, cudaMemcpyDeviceToDevice,
									   queue->stream));
	return gj_wait(queue);
}

template <typename T>
static GjStatus
set_pair(GjQueue *queue, const GjSetPair *pair, T *result)
{
	const T *a = (const T *) pair->a;
	const T *b = (const T *) pair->b;

	if (pair->operation == GJ_SETS_INTERSECT)
		return intersect(queue, pair, result);
	if (pair->operation == GJ_SETS_UNION)
		return merge<T, GJ_SETS_UNION>(queue, a, pair->na, b, pair->nb, result);
	return merge<T, GJ_SETS_EXCEPT>(queue, a, pair->na, b, pair->nb, result);
}

GjStatus
gj_set_pair_start(GjQueue *queue, const GjSetPair *pair, void *result)
{
	if (pair->width == 2)
		return set_pair(queue, pair, (int16_t *) result);
	if (pair->width == 4)
		return set_pair(queue, pair, (int32_t *) result);
	return set_pair(queue, pair, (int64_t *) result);
}

GjStatus
gj_set_pair(GjQueue *queue, const GjSetPair *pair, bool (*stop)(void *), void *arg, void *result,
			uint64_t *n)
{
	*n = 0;
	GJ_TRY(gj_enter(queue));
	if (stop && stop(arg))
		return GJ_CANCELLED;
	if (pair->na == 0 || pair->nb == 0)
		return pair_with_nothing(queue, pair, result, n);
	GJ_TRY(gj_set_pair_start(queue, pair, result));
	GJ_TRY(gj_wait(queue));
	*n = queue->pinned->results.total;
	return GJ_OK;
}
