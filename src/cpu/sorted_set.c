/*
 * sorted_set.c
 *	  Sets of integers: sort, remove duplicates, intersect.
 *
 * Sorting: radix sort (least significant byte first) of runs, one a thread, then
 * rounds that merge pairs of runs; each round is cut into pieces of equal output by
 * the merge path (Green, McColl, Bader, ICS 2012).  The intersection is cut at
 * values of the smaller side.
 *
 * The functions of each width are made from one text: sorted_set_width.h.
 */
#include <stdlib.h>
#include <string.h>

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

typedef struct GjIntersectWork
{
	const void *a;				/* the smaller side */
	uint64_t	na;
	const void *b;
	uint64_t	nb;
	uint64_t	piece;			/* values of a in an item */
	void	   *result;			/* NULL: only count */
	uint64_t   *at;				/* of each item: number of values, then where they go */
} GjIntersectWork;

/* The functions that depend on the width. */
typedef struct GjSetOps
{
	void		(*sort_item) (void *arg, uint32_t item, const GjTile *tile);
	void		(*merge_item) (void *arg, uint32_t item, const GjTile *tile);
	void		(*intersect_item) (void *arg, uint32_t item, const GjTile *tile);
	uint64_t	(*unique) (void *values, uint64_t n);
} GjSetOps;

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

static const GjSetOps *
ops_of(uint32_t width)
{
	return width == 2 ? &set_ops_2 : width == 4 ? &set_ops_4 : &set_ops_8;
}

GjStatus
gj_cpu_sort_unique(GjQueue *queue, void *values, uint32_t width, uint64_t n, uint64_t *n_unique)
{
	const GjSetOps *ops = ops_of(width);
	GjPool	   *pool = queue->device->pool;
	void	   *other = malloc(n > 0 ? n * width : 1);
	GjSortWork	w = {values, other, n};
	uint32_t	nruns = 1;

	*n_unique = 0;
	if (!other)
		return GJ_OUT_OF_MEMORY;
	while (nruns < GJ_MAX_RUNS && n / (nruns * 2) >= GJ_SET_ITEM)
		nruns *= 2;
	w.run = (n + nruns - 1) / nruns;
	gj_pool_run(pool, nruns, ops->sort_item, &w, &queue->tile, NULL, NULL);
	for (; w.run < n; w.run *= 2)
	{
		void	   *from = w.from;

		gj_pool_run(pool, (uint32_t) ((n + GJ_SET_ITEM - 1) / GJ_SET_ITEM), ops->merge_item, &w,
					&queue->tile, NULL, NULL);
		w.from = w.to;
		w.to = from;
	}
	if (w.from != values)
		memcpy(values, w.from, n * width);
	free(other);
	*n_unique = ops->unique(values, n);
	return gj_take_row_error(queue);
}

GjStatus
gj_cpu_intersect(GjQueue *queue, const void *a, uint64_t na, const void *b, uint64_t nb,
				 uint32_t width, void *result, uint64_t *n)
{
	const GjSetOps *ops = ops_of(width);
	GjIntersectWork w = {a, na, b, nb, 4096, NULL, NULL};
	uint32_t	nitems;
	uint64_t	total = 0;

	*n = 0;
	if (na > nb)
		w = (GjIntersectWork) {b, nb, a, na, 4096, NULL, NULL};
	/* few enough items for their number to be 32 bits, whatever the size */
	if (w.na / w.piece >= 65536)
		w.piece = w.na / 65536 + 1;
	nitems = (uint32_t) ((w.na + w.piece - 1) / w.piece);
	w.at = calloc(nitems + 1, sizeof(uint64_t));
	if (!w.at)
		return GJ_OUT_OF_HOST_MEMORY;
	gj_pool_run(queue->device->pool, nitems, ops->intersect_item, &w, &queue->tile, NULL, NULL);
	for (uint32_t i = 0; i < nitems; i++)
	{
		uint64_t	count = w.at[i];

		w.at[i] = total;
		total += count;
	}
	w.result = result;
	if (result)
		gj_pool_run(queue->device->pool, nitems, ops->intersect_item, &w, &queue->tile, NULL, NULL);
	free(w.at);
	*n = total;
	return gj_take_row_error(queue);
}
