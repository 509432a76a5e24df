/*
 * sorted_set.c
 *	  Sets of integers: sort and remove duplicates.
 *
 * Sorting: radix sort (src/integers) of runs, one a thread, then
 * rounds that merge pairs of runs; each round is cut into pieces of equal output by
 * the merge path (Green, McColl, Bader, ICS 2012).
 *
 * The functions of each width are made from one text: sorted_set_width.h.
 */
#include <stdlib.h>
#include <string.h>

#include "integers/integers.h"
#include "cpu_device.h"

/* Values that a thread sorts, or an item merges, at least. */
#define GJ_SET_ITEM			65536u
#define GJ_MAX_RUNS			16u

typedef struct GjSortWork
{
	void	   *from;
	void	   *to;
	uint64_t	n;
	uint64_t	run;			/* values in a sorted run; the last may be shorter */
} GjSortWork;

/* The functions that depend on the width. */
typedef struct GjSortOps
{
	void		(*sort_item) (void *arg, uint32_t item, const GjTile *tile);
	void		(*merge_item) (void *arg, uint32_t item, const GjTile *tile);
	uint64_t	(*unique) (void *values, uint64_t n);
} GjSortOps;

#define GJ_VALUE int16_t
#define GJ_UVALUE uint16_t
#define GJ_NAME(name) name##_2
#include "sorted_set_width.h"

#define GJ_VALUE int32_t
#define GJ_UVALUE uint32_t
#define GJ_NAME(name) name##_4
#include "sorted_set_width.h"

#define GJ_VALUE int64_t
#define GJ_UVALUE uint64_t
#define GJ_NAME(name) name##_8
#include "sorted_set_width.h"

static const GjSortOps *
ops_of(uint32_t width)
{
	return width == 2 ? &sort_ops_2 : width == 4 ? &sort_ops_4 : &sort_ops_8;
}

/* Sorts w->n values, which are then in w->from.  False: it was stopped. */
static bool
sort(GjQueue *queue, const GjSortOps *ops, GjSortWork *w, bool (*stop) (void *), void *arg)
{
	GjPool	   *pool = queue->device->pool;
	uint32_t	nitems = (uint32_t) ((w->n + GJ_SET_ITEM - 1) / GJ_SET_ITEM);
	uint32_t	nruns = 1;

	while ((nruns < GJ_MAX_RUNS && w->n / (nruns * 2) >= GJ_SET_ITEM) || w->n / nruns >= UINT32_MAX)
		nruns *= 2;
	w->run = (w->n + nruns - 1) / nruns;
	if (!gj_pool_run(pool, nruns, ops->sort_item, w, &queue->tile, stop, arg))
		return false;
	for (; w->run < w->n; w->run *= 2)
	{
		void	   *from = w->from;

		if (!gj_pool_run(pool, nitems, ops->merge_item, w, &queue->tile, stop, arg))
			return false;
		w->from = w->to;
		w->to = from;
	}
	return true;
}

GjStatus
gj_cpu_sort_unique(GjQueue *queue, void *values, uint32_t width, uint64_t n,
				   bool (*stop) (void *), void *arg, uint64_t *n_unique)
{
	const GjSortOps *ops = ops_of(width);
	void	   *other = malloc(n > 0 ? n * width : 1);
	GjSortWork	w = {values, other, n};
	bool		done;

	*n_unique = 0;
	if (!other)
		return GJ_OUT_OF_MEMORY;
	done = sort(queue, ops, &w, stop, arg);
	if (done && w.from != values)
		memcpy(values, w.from, n * width);
	free(other);
	if (!done)
		return GJ_CANCELLED;
	*n_unique = ops->unique(values, n);
	return gj_take_row_error(queue);
}
