/*
 * group.c
 *	  Groups: keys of tuples, the table of groups, and their aggregates.
 *
 * Threads claim slots with a compare-and-swap, as the GPU's do.  States are guarded by
 * locks, each of which belongs to every GJ_LOCKS-th group; where there are few groups, an
 * item of work sums up for itself and takes the queue's lock once.
 */
#include <stdlib.h>
#include <string.h>

#include "rows/aggregate.h"
#include "device/group.h"
#include "cpu_device.h"

#define GJ_LOCKS			64u
#define GJ_MAX_LOCAL		2048u	/* states that an item sums up for itself */

typedef struct GjGroupWork
{
	GjQueue    *queue;
	const GjView *view;
	uint32_t	first;
	uint32_t	n;
	const GjGroupRows *rows;
	const GjGroups *groups;
	uint32_t   *slot_of;
	const uint32_t *group_of;
	const uint32_t *positions;
	const uint64_t *heap_at;
	uint64_t	heap_used;
	pthread_mutex_t lock[GJ_LOCKS];
} GjGroupWork;

/* ---- keys */

/* Key k of rows at .. at+n-1, which are tuples from `base` on. */
static void
key_tile(const GjGroupWork *w, uint32_t k, uint32_t at, uint32_t base, uint32_t n,
		 const GjTile *tile, uint32_t *status)
{
	const GjCode *code = &w->queue->code;
	const GjGroupKey *key = gj_program_array(w->queue->program, GjGroupKey, group_keys) + k;
	int64_t    *to = w->rows->value[k] + at;
	uint32_t   *null = w->rows->null + at;
	uint64_t   *hash = w->rows->hash + at;

	if (key->how <= GJ_GROUP_FLOAT)
	{
		size_t		result = (size_t) code->exprs[key->index].result * tile->stride;

		gj_eval(code, key->index, w->view, base, n, tile, status);
		for (uint32_t i = 0; i < n; i++)
		{
			to[i] = tile->value[result + i];
			null[i] |= (uint32_t) (tile->null[result + i] != 0) << k;
		}
	}
	else
	{
		const GjColumn *column = &w->view->columns[key->index];
		uint32_t	source = code->columns[key->index].source;

		for (uint32_t i = 0; i < n; i++)
		{
			uint32_t	row = gj_view_row(w->view, source, base + i);
			bool		is_null = gj_row_is_null(column, row);

			to[i] = is_null ? 0 : gj_group_carried(column, row);
			null[i] |= (uint32_t) is_null << k;
		}
	}
	for (uint32_t i = 0; i < n; i++)
		hash[i] = gj_group_hash(w->rows, k, at + i, null[i] >> k & 1, hash[i], status);
}

static void
keys_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjGroupWork *w = arg;
	uint32_t	end = gj_item_end(item * GJ_ITEM_ROWS, w->rows->nrows);
	uint32_t	status = GJ_OK;

	for (uint32_t at = item * GJ_ITEM_ROWS, n; at < end; at += n)
	{
		n = end - at < GJ_TILE_ROWS ? end - at : GJ_TILE_ROWS;
		memset(w->rows->null + at, 0, n * sizeof(uint32_t));
		memset(w->rows->hash + at, 0, n * sizeof(uint64_t));
		for (uint32_t k = 0; k < w->rows->nkeys; k++)
			key_tile(w, k, at, w->first + at, n, tile, &status);
	}
	gj_note_row_error(w->queue, status);
}

static GjStatus
gj_cpu_group_keys(GjQueue *queue, const GjView *view, uint32_t first, const GjGroupRows *rows)
{
	GjGroupWork w = {.queue = queue,.view = view,.first = first,.rows = rows};

	gj_for_items(queue, rows->nrows, keys_item, &w);
	return GJ_OK;
}

/* ---- the table */

static GjStatus
gj_cpu_group_rehash(GjQueue *queue, const GjGroups *groups)
{
	memset(groups->slots, 0xFF, groups->nslots * sizeof(uint64_t));
	for (uint32_t g = 0; g < groups->rows.nrows; g++)
	{
		uint64_t	s = gj_hash_slot(groups->rows.hash[g], groups->nslots);

		while (groups->slots[s] != GJ_NO_SLOT)
			if (++s == groups->nslots)
				s = 0;
		groups->slots[s] = gj_group_slot(groups->rows.hash[g], g);
	}
	return GJ_OK;
}

static uint32_t
find_slot(const GjGroupWork *w, uint32_t i)
{
	const GjGroups *groups = w->groups;
	uint64_t	hash = w->rows->hash[i];
	uint64_t	mine = gj_group_slot(hash, groups->rows.nrows + i);
	uint64_t	s = gj_hash_slot(hash, groups->nslots);

	for (;;)
	{
		uint64_t	slot = __atomic_load_n(&groups->slots[s], __ATOMIC_RELAXED);

		if (slot == GJ_NO_SLOT &&
			__atomic_compare_exchange_n(&groups->slots[s], &slot, mine, false,
										__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return (uint32_t) s;
		if (slot >> 32 == mine >> 32 && gj_group_owns(w->rows, i, groups, (uint32_t) slot))
			return (uint32_t) s;
		if (++s == groups->nslots)
			s = 0;
	}
}

static void
find_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjGroupWork *w = arg;
	uint32_t	end = gj_item_end(item * GJ_ITEM_ROWS, w->rows->nrows);

	for (uint32_t i = item * GJ_ITEM_ROWS; i < end; i++)
		w->slot_of[i] = find_slot(w, i);
}

static GjStatus
gj_cpu_group_find(GjQueue *queue, const GjGroupRows *rows, const GjGroups *groups,
				  uint32_t *slot_of, uint32_t *positions, uint64_t *heap_at, uint32_t *n,
				  uint64_t *nbytes)
{
	GjGroupWork w = {.queue = queue,.rows = rows,.groups = groups,.slot_of = slot_of};
	GjStatus	status = gj_take_row_error(queue);

	*n = 0;
	*nbytes = 0;
	/* keys that are not known are not to be looked up */
	if (status != GJ_OK)
		return status;
	gj_for_items(queue, rows->nrows, find_item, &w);
	for (uint32_t i = 0; i < rows->nrows; i++)
	{
		if ((uint32_t) groups->slots[slot_of[i]] != groups->rows.nrows + i)
			continue;
		positions[*n] = i;
		if (groups->heap_end)
		{
			heap_at[*n] = *nbytes;
			*nbytes += gj_group_space(rows, i);
		}
		(*n)++;
	}
	if (groups->heap_end)
		heap_at[*n] = *nbytes;
	return GJ_OK;
}

static void
add_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjGroupWork *w = arg;
	uint32_t	naggregates = w->queue->program->naggregates;
	uint32_t	end = gj_item_end(item * GJ_ITEM_ROWS, w->n);

	for (uint32_t r = item * GJ_ITEM_ROWS; r < end; r++)
	{
		uint32_t	i = w->positions[r];
		uint32_t	g = w->groups->rows.nrows + r;

		gj_group_store(w->rows, i, w->groups, g, w->heap_at ? w->heap_used + w->heap_at[r] : 0);
		w->groups->slots[w->slot_of[i]] = gj_group_slot(w->rows->hash[i], g);
		for (uint32_t a = 0; a < naggregates; a++)
			gj_agg_start(&w->groups->state[a][g]);
	}
}

static GjStatus
gj_cpu_group_add(GjQueue *queue, const GjGroupRows *rows, const GjGroups *groups,
				 uint32_t *slot_of, const uint32_t *positions, const uint64_t *heap_at,
				 uint32_t n, uint64_t heap_used)
{
	GjGroupWork w = {.queue = queue,.n = n,.rows = rows,.groups = groups,.slot_of = slot_of,
	.positions = positions,.heap_at = groups->heap_end ? heap_at : NULL,.heap_used = heap_used};

	gj_for_items(queue, n, add_item, &w);
	for (uint32_t i = 0; i < rows->nrows; i++)
		slot_of[i] = (uint32_t) groups->slots[slot_of[i]];
	return GJ_OK;
}

/* ---- aggregates */

/* Adds tuples to aggregate a of their groups: locally, or under the groups' locks. */
static void
step_tile(GjGroupWork *w, uint32_t a, GjAggState *local, uint32_t at, uint32_t n,
		  const int64_t *value, const uint8_t *null)
{
	uint32_t	op = gj_program_array(w->queue->program, GjAggregate, aggregates)[a].op;
	uint32_t	ngroups = w->groups->rows.nrows;

	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	g = w->group_of[at + i];
		int64_t		v = value ? value[i] : 0;

		if (null && null[i])
			continue;
		if (local)
			gj_agg_step(op, &local[a * ngroups + g], v);
		else
		{
			pthread_mutex_lock(&w->lock[g % GJ_LOCKS]);
			gj_agg_step(op, &w->groups->state[a][g], v);
			pthread_mutex_unlock(&w->lock[g % GJ_LOCKS]);
		}
	}
}

static void
aggregate_tile(GjGroupWork *w, GjAggState *local, uint32_t at, uint32_t n, const GjTile *tile,
			   uint32_t *status)
{
	const GjCode *code = &w->queue->code;
	const GjAggregate *aggregates = gj_program_array(w->queue->program, GjAggregate, aggregates);
	int32_t		evaluated = -1;

	for (uint32_t a = 0; a < w->queue->program->naggregates; a++)
	{
		int32_t		arg = aggregates[a].arg;
		size_t		result;

		if (gj_agg_is_distinct(aggregates[a].op))
			continue;
		if (arg < 0)
		{
			step_tile(w, a, local, at, n, NULL, NULL);
			continue;
		}
		/* sum(x) and max(x) next to each other read the same register */
		if (arg != evaluated)
			gj_eval(code, arg, w->view, w->first + at, n, tile, status);
		evaluated = arg;
		result = (size_t) code->exprs[arg].result * tile->stride;
		step_tile(w, a, local, at, n, tile->value + result, tile->null + result);
	}
}

/* Adds what an item has summed up for itself. */
static void
merge_local(GjGroupWork *w, const GjAggState *local)
{
	const GjAggregate *aggregates = gj_program_array(w->queue->program, GjAggregate, aggregates);
	uint32_t	ngroups = w->groups->rows.nrows;

	pthread_mutex_lock(&w->queue->lock);
	for (uint32_t a = 0; a < w->queue->program->naggregates; a++)
		for (uint32_t g = 0; g < ngroups; g++)
			gj_agg_merge(aggregates[a].op, &w->groups->state[a][g], &local[a * ngroups + g]);
	pthread_mutex_unlock(&w->queue->lock);
}

static void
aggregate_item(void *arg, uint32_t item, const GjTile *tile)
{
	GjGroupWork *w = arg;
	uint64_t	nlocal = (uint64_t) w->groups->rows.nrows * w->queue->program->naggregates;
	uint32_t	end = gj_item_end(item * GJ_ITEM_ROWS, w->n);
	uint32_t	status = GJ_OK;
	/* for want of memory, the locks will do */
	GjAggState *local = nlocal <= GJ_MAX_LOCAL ? calloc(nlocal, sizeof(GjAggState)) : NULL;

	for (uint32_t at = item * GJ_ITEM_ROWS, n; at < end; at += n)
	{
		n = end - at < GJ_TILE_ROWS ? end - at : GJ_TILE_ROWS;
		aggregate_tile(w, local, at, n, tile, &status);
	}
	if (local)
		merge_local(w, local);
	free(local);
	gj_note_row_error(w->queue, status);
}

static GjStatus
gj_cpu_group_aggregate(GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
					   const uint32_t *group_of, const GjGroups *groups)
{
	GjGroupWork w = {.queue = queue,.view = view,.first = first,.n = n,.groups = groups,
	.group_of = group_of};

	if (queue->program->naggregates == 0)
		return GJ_OK;
	for (uint32_t i = 0; i < GJ_LOCKS; i++)
		pthread_mutex_init(&w.lock[i], NULL);
	gj_for_items(queue, n, aggregate_item, &w);
	for (uint32_t i = 0; i < GJ_LOCKS; i++)
		pthread_mutex_destroy(&w.lock[i]);
	return GJ_OK;
}

/* ---- groups of groups */

static void
hash_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjGroupWork *w = arg;
	const GjGroupRows *rows = w->rows;
	uint32_t	end = gj_item_end(item * GJ_ITEM_ROWS, rows->nrows);
	uint32_t	status = GJ_OK;

	for (uint32_t i = item * GJ_ITEM_ROWS; i < end; i++)
		gj_group_hash_row(rows, i, &status);
	gj_note_row_error(w->queue, status);
}

static GjStatus
gj_cpu_group_hash(GjQueue *queue, const GjGroupRows *rows)
{
	GjGroupWork w = {.queue = queue,.rows = rows};

	gj_for_items(queue, rows->nrows, hash_item, &w);
	return GJ_OK;
}

static GjStatus
gj_cpu_group_merge(GjQueue *queue, const GjGroups *from, uint32_t first, uint32_t n,
				   const uint32_t *group_of, const GjGroups *groups)
{
	const GjAggregate *aggregates = gj_program_array(queue->program, GjAggregate, aggregates);

	for (uint32_t a = 0; a < queue->program->naggregates; a++)
		for (uint32_t i = 0; i < n; i++)
			gj_agg_merge(aggregates[a].op, &groups->state[a][group_of[i]],
						 &from->state[a][first + i]);
	return GJ_OK;
}

/* States are ordinary ones here. */
static GjStatus
gj_cpu_group_finish(GjQueue *queue, const GjGroups *groups)
{
	const GjAggregate *aggregates = gj_program_array(queue->program, GjAggregate, aggregates);
	uint32_t	key = queue->program->ngroup_keys - 1;

	if (queue->program->ndistinct_keys == 0 || groups->rows.nkeys <= key)
		return GJ_OK;
	for (uint32_t a = 0; a < queue->program->naggregates; a++)
		for (uint32_t g = 0; gj_agg_is_distinct(aggregates[a].op) && g < groups->rows.nrows; g++)
			gj_agg_distinct(aggregates[a].op, &groups->state[a][g],
							groups->rows.null[g] >> key & 1, groups->rows.value[key][g]);
	return GJ_OK;
}

/* ---- a column of a stage */

typedef struct GjColumnWork
{
	GjQueue    *queue;
	const GjGroups *groups;
	const GjGroupColumn *column;
} GjColumnWork;

static void
column_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjColumnWork *w = arg;
	uint32_t	end = gj_item_end(item * GJ_ITEM_ROWS, w->groups->rows.nrows);
	uint32_t	status = GJ_OK;
	bool		any_null = false;

	for (uint32_t g = item * GJ_ITEM_ROWS; g < end; g++)
		any_null |= gj_group_column_value(w->groups, w->column, g, &status);
	if (any_null)
		__atomic_store_n(w->column->any_null, 1, __ATOMIC_RELAXED);
	gj_note_row_error(w->queue, status);
}

static GjStatus
gj_cpu_group_column(GjQueue *queue, const GjGroups *groups, const GjGroupColumn *column)
{
	GjColumnWork w = {queue, groups, column};

	gj_for_items(queue, groups->rows.nrows, column_item, &w);
	return GJ_OK;
}

const GjGroupOps gj_cpu_groups = {
	.aggregate = gj_cpu_aggregate,
	.aggregate_read = gj_cpu_aggregate_read,
	.group_keys = gj_cpu_group_keys,
	.group_rehash = gj_cpu_group_rehash,
	.group_find = gj_cpu_group_find,
	.group_add = gj_cpu_group_add,
	.group_aggregate = gj_cpu_group_aggregate,
	.group_hash = gj_cpu_group_hash,
	.group_merge = gj_cpu_group_merge,
	.group_finish = gj_cpu_group_finish,
	.group_sort_keys = gj_cpu_group_sort_keys,
	.group_bytes = gj_cpu_group_bytes,
	.group_keep = gj_cpu_group_keep,
	.group_column = gj_cpu_group_column
};
