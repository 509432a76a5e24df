/*
 * set_pair.c
 *	  One pair of sorted sets: intersection, union, difference.
 *
 * The work is cut into items that need nothing of each other: ranges of the merged order
 * (merge_path), or pieces of one side (all other algorithms).  A first pass counts what
 * each item gives, a second one writes it where it belongs.
 *
 * The functions of each width are made from one text: set_pair_width.h.
 */
#include <stdlib.h>
#include <string.h>

#include "integers/integers.h"
#include "cpu_device.h"

#define GJ_PAIR_PIECE		4096u	/* values of an item, at least */
#define GJ_PAIR_ITEMS		65536u	/* at most */
#define GJ_PAIR_WINDOW		65536u	/* values that the bitmap of an item spans */

typedef struct GjPairWork
{
	const void *a;				/* the side that is cut into pieces; merge_path: both are */
	uint64_t	na;
	const void *b;
	uint64_t	nb;
	uint8_t		operation;		/* GjSetOperation */
	uint64_t	piece;			/* values in an item */
	void	   *result;			/* NULL: only count */
	uint64_t   *at;				/* of each item: number of values, then where they go */
	uint64_t   *table;			/* hash: positions in b, plus 1; 0 is an empty slot */
	uint64_t	mask;			/* number of slots - 1 */
} GjPairWork;

/* The functions that depend on the width. */
typedef struct GjPairOps
{
	GjPoolTask	merge_item;
	GjPoolTask	search_item;
	GjPoolTask	bitmap_item;
	GjPoolTask	hash_item;
	void		(*hash_build) (GjPairWork *w);
} GjPairOps;

#define GJ_VALUE int16_t
#define GJ_UVALUE uint16_t
#define GJ_NAME(name) name##_2
#include "set_pair_width.h"

#define GJ_VALUE int32_t
#define GJ_UVALUE uint32_t
#define GJ_NAME(name) name##_4
#include "set_pair_width.h"

#define GJ_VALUE int64_t
#define GJ_UVALUE uint64_t
#define GJ_NAME(name) name##_8
#include "set_pair_width.h"

static const GjPairOps *
ops_of(uint32_t width)
{
	return width == 2 ? &pair_ops_2 : width == 4 ? &pair_ops_4 : &pair_ops_8;
}

/* The table has twice as many slots as values, rounded up to a power of two. */
static bool
make_table(const GjPairOps *ops, GjPairWork *w)
{
	uint64_t	nslots = 16;

	while (nslots < w->nb * 2)
		nslots *= 2;
	w->table = calloc(nslots, sizeof(uint64_t));
	w->mask = nslots - 1;
	if (!w->table)
		return false;
	ops->hash_build(w);
	return true;
}

/* Chooses the function of the items and which side is cut. */
static GjStatus
plan_pair(const GjPairOps *ops, const GjSetPair *pair, GjPairWork *w, GjPoolTask *task, uint64_t *nvalues)
{
	uint8_t		algorithm = gj_set_pair_algorithm(pair);
	bool		small_first = pair->na <= pair->nb;

	*w = (GjPairWork) {pair->a, pair->na, pair->b, pair->nb, pair->operation, GJ_PAIR_PIECE};
	*nvalues = pair->na + pair->nb;
	*task = ops->merge_item;
	if (algorithm == GJ_SETS_MERGE_PATH)
		return GJ_OK;
	/* hash: the table is of the smaller side; else the smaller side is looked up */
	if (small_first == (algorithm == GJ_SETS_HASH))
		*w = (GjPairWork) {pair->b, pair->nb, pair->a, pair->na, pair->operation, GJ_PAIR_PIECE};
	*nvalues = w->na;
	*task = algorithm == GJ_SETS_HASH ? ops->hash_item :
		algorithm == GJ_SETS_BITMAP ? ops->bitmap_item : ops->search_item;
	if (algorithm == GJ_SETS_HASH && !make_table(ops, w))
		return GJ_OUT_OF_MEMORY;
	return GJ_OK;
}

GjStatus
gj_cpu_set_pair(GjQueue *queue, const GjSetPair *pair, bool (*stop) (void *), void *arg,
				void *result, uint64_t *n)
{
	GjPairWork	w;
	GjPoolTask	task;
	uint64_t	nvalues;
	uint32_t	nitems;
	uint64_t	total = 0;
	bool		done = true;
	GjStatus	status = plan_pair(ops_of(pair->width), pair, &w, &task, &nvalues);

	*n = 0;
	if (status != GJ_OK)
		return status;
	/* few enough items for their number to be 32 bits, whatever the size */
	if (nvalues / w.piece >= GJ_PAIR_ITEMS)
		w.piece = nvalues / GJ_PAIR_ITEMS + 1;
	nitems = (uint32_t) ((nvalues + w.piece - 1) / w.piece);
	w.at = calloc(nitems + 1, sizeof(uint64_t));
	if (!w.at)
	{
		free(w.table);
		return GJ_OUT_OF_HOST_MEMORY;
	}
	done = gj_pool_run(queue->device->pool, nitems, task, &w, &queue->tile, stop, arg);
	for (uint32_t i = 0; i < nitems; i++)
	{
		uint64_t	count = w.at[i];

		w.at[i] = total;
		total += count;
	}
	w.result = result;
	if (done && result)
		done = gj_pool_run(queue->device->pool, nitems, task, &w, &queue->tile, stop, arg);
	free(w.at);
	free(w.table);
	if (!done)
		return GJ_CANCELLED;
	*n = total;
	return gj_take_row_error(queue);
}
