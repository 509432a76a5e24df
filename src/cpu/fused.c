/*
 * fused.c
 *	  Filter, joins and aggregates of probe rows in one pass.
 *
 * An item of work takes its rows through all of it a tile at a time.  What a step does is
 * done for the whole tile, so that the slots of its table are on the way into the cache
 * before they are looked at; row ids of the tuples that go on are moved together, and
 * never leave the cache.
 */
#include <stdlib.h>
#include <string.h>

#include "rows/aggregate.h"
#include "device/fused_rows.h"
#include "table.h"

#define GJ_LOCKS			64u
#define GJ_MAX_LOCAL		2048u	/* states that an item sums up for itself */

typedef struct GjFusedWork
{
	GjQueue    *queue;
	const GjFusedPlan *plan;
	const GjFusedPart *parts;
	uint32_t	nparts;
	uint32_t	first_item[GJ_FUSED_PARTS + 1];
	GjColumn   *columns;		/* of all parts, one part's behind the other's */
	const GjGroups *groups;
	GjFusedMissed *missed;
	pthread_mutex_t lock[GJ_LOCKS];
} GjFusedWork;

/* What the thread that works on an item has. */
typedef struct GjFusedItem
{
	const GjFusedWork *w;
	const GjTile *tile;
	GjView		view;			/* of the tile's tuples */
	uint32_t	part;
	uint32_t	nslots;			/* of row ids that are there */
	uint32_t	status;
	GjAggState *local;			/* of aggregates, or of groups; NULL: use the groups' own */
	uint64_t	counts[GJ_FUSED_STEPS + 1];
	uint32_t	rowid[GJ_FUSED_STEPS + 1][GJ_TILE_ROWS];
	int64_t		key[GJ_MAX_KEYS][GJ_TILE_ROWS];
	int64_t		value[GJ_TILE_ROWS];
	uint8_t		null[GJ_TILE_ROWS];
	uint8_t		flag[GJ_TILE_ROWS];
	uint32_t	found[GJ_TILE_ROWS];
	uint32_t	start[GJ_TILE_ROWS];	/* of a key's rows in the table, .. */
	uint32_t	count[GJ_TILE_ROWS];	/* .. and how many there are */
} GjFusedItem;

/* ---- values and conditions of the tile's tuples */

/* Values of all n tuples into item->value and item->null. */
static void
values(GjFusedItem *item, const GjFusedExpr *e, uint32_t n)
{
	const GjCode *code = &item->w->queue->code;
	size_t		result;

	if (e->form == GJ_FUSED_SIMPLE || e->form == GJ_FUSED_BYTES)
	{
		for (uint32_t i = 0; i < n; i++)
			item->null[i] = gj_fused_value(e, code->constants, item->view.columns,
										   &item->rowid[0][i], GJ_TILE_ROWS, &item->value[i],
										   &item->status);
		return;
	}
	if (e->form == GJ_FUSED_PRODUCTS || e->form == GJ_FUSED_CASE)
	{
		for (uint32_t i = 0; i < n; i++)
			item->null[i] = gj_fused_argument(item->w->plan, e, code->constants,
											  item->view.columns, &item->rowid[0][i], GJ_TILE_ROWS,
											  &item->value[i], &item->status);
		return;
	}
	gj_eval(code, (uint32_t) e->expr, &item->view, 0, n, item->tile, &item->status);
	result = (size_t) code->exprs[e->expr].result * item->tile->stride;
	memcpy(item->value, item->tile->value + result, n * sizeof(int64_t));
	memcpy(item->null, item->tile->null + result, n);
}

/* item->flag: the condition is true. */
static void
check(GjFusedItem *item, const GjFusedCondition *condition, uint32_t n)
{
	const GjCode *code = &item->w->queue->code;
	size_t		result;

	if (condition->form == GJ_FUSED_ALL_TERMS)
	{
		for (uint32_t i = 0; i < n; i++)
			item->flag[i] = gj_fused_terms(item->w->plan, condition->first, condition->n,
										   code->constants, item->view.columns,
										   &item->rowid[0][i], GJ_TILE_ROWS, &item->status);
		return;
	}
	gj_eval(code, (uint32_t) condition->expr, &item->view, 0, n, item->tile, &item->status);
	result = (size_t) code->exprs[condition->expr].result * item->tile->stride;
	for (uint32_t i = 0; i < n; i++)
		item->flag[i] = !item->tile->null[result + i] && item->tile->value[result + i] != 0;
}

/* Moves the tuples with a flag together; returns how many there are. */
static uint32_t
keep_flagged(GjFusedItem *item, uint32_t n)
{
	uint32_t	kept = 0;

	for (uint32_t s = 0; s < item->nslots; s++)
	{
		kept = 0;
		for (uint32_t i = 0; i < n; i++)
		{
			item->rowid[s][kept] = item->rowid[s][i];
			kept += item->flag[i];
		}
	}
	return kept;
}

static uint32_t
keep_true(GjFusedItem *item, const GjFusedCondition *condition, uint32_t n)
{
	if (condition->form == GJ_FUSED_NONE || n == 0)
		return n;
	check(item, condition, n);
	return keep_flagged(item, n);
}

/* ---- steps */

/* item->found: the row of each tuple, or GJ_NO_ROW; of several it is any.  Also start and count. */
static void
find_rows(GjFusedItem *item, const GjFusedStep *step, uint32_t n)
{
	const GjFusedPlan *plan = item->w->plan;
	const GjTableRef *table = &step->table;
	uint64_t	hash[GJ_TILE_ROWS];
	GjKeys		keys = {.nkeys = step->nkeys};

	if (table->kind == GJ_TABLE_NONE)
	{
		memset(item->found, 0xFF, n * sizeof(uint32_t));
		memset(item->count, 0, n * sizeof(uint32_t));
		return;
	}
	memset(item->flag, 0, n);
	for (uint32_t k = 0; k < step->nkeys; k++)
	{
		const GjFusedExpr *e = &plan->exprs[step->first_key + k];

		keys.value[k] = item->key[k];
		values(item, e, n);
		for (uint32_t i = 0; i < n; i++)
		{
			keys.value[k][i] = gj_key_bits(item->value[i], e->is_float);
			item->flag[i] |= item->null[i];
		}
	}
	for (uint32_t i = 0; i < n; i++)
	{
		hash[i] = gj_hash_keys(&keys, i);
		__builtin_prefetch(&table->slots[gj_hash_slot(hash[i], table->nslots)]);
	}
	for (uint32_t i = 0; i < n; i++)
	{
		const GjHashSlot *slot = NULL;

		if (!item->flag[i])
			slot = gj_cpu_find_slot(table, keys.value, keys.nkeys, i, hash[i],
									gj_hash_slot(hash[i], table->nslots));
		item->found[i] = slot ? gj_fused_row(table, slot->start, 0) : GJ_NO_ROW;
		item->start[i] = slot ? slot->start : 0;
		item->count[i] = slot ? slot->count : 0;
	}
}

/* Forgets the rows for which the residual condition is not true. */
static void
check_residual(GjFusedItem *item, const GjFusedStep *step, uint32_t slot, uint32_t n)
{
	uint32_t	all[GJ_FUSED_STEPS + 1][GJ_TILE_ROWS];
	uint32_t	tuple[GJ_TILE_ROWS];
	uint32_t	m = 0;

	/* it sees only tuples that have a row */
	memcpy(item->rowid[slot], item->found, n * sizeof(uint32_t));
	for (uint32_t s = 0; s <= slot; s++)
		memcpy(all[s], item->rowid[s], n * sizeof(uint32_t));
	for (uint32_t i = 0; i < n; i++)
	{
		tuple[m] = i;
		m += item->found[i] != GJ_NO_ROW;
	}
	for (uint32_t s = 0; s <= slot; s++)
		for (uint32_t i = 0; i < m; i++)
			item->rowid[s][i] = all[s][tuple[i]];
	if (m > 0)
		check(item, &step->residual, m);
	for (uint32_t i = 0; i < m; i++)
		if (!item->flag[i])
			item->found[tuple[i]] = GJ_NO_ROW;
	for (uint32_t s = 0; s <= slot; s++)
		memcpy(item->rowid[s], all[s], n * sizeof(uint32_t));
}

/* Notes that the rows found have a match. */
static void
mark_found(const GjFusedItem *item, const GjFusedStep *step, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (item->found[i] != GJ_NO_ROW)
			__atomic_store_n(&step->marks[item->found[i]], 1, __ATOMIC_RELAXED);
}

/*
 * Looks at the rows of each tuple's key in turn.  A tuple is done with the first row for which the
 * residual condition is true, which it has found then, unless rows are to be marked.
 */
static void
walk_rows(GjFusedItem *item, const GjFusedStep *step, uint32_t slot, uint32_t n)
{
	uint32_t	match[GJ_TILE_ROWS];
	bool		open = true;

	memset(match, 0xFF, n * sizeof(uint32_t));
	for (uint32_t r = 0; open; r++)
	{
		open = false;
		for (uint32_t i = 0; i < n; i++)
		{
			bool		looks = r < item->count[i] && (step->marks || match[i] == GJ_NO_ROW);

			item->found[i] = looks ? gj_fused_row(&step->table, item->start[i], r) : GJ_NO_ROW;
			open |= looks;
		}
		if (!open)
			break;
		if (step->residual.form != GJ_FUSED_NONE)
			check_residual(item, step, slot, n);
		if (step->marks)
			mark_found(item, step, n);
		for (uint32_t i = 0; i < n; i++)
			if (item->found[i] != GJ_NO_ROW)
				match[i] = item->found[i];
	}
	memcpy(item->found, match, n * sizeof(uint32_t));
}

/* Takes n tuples through step s; returns how many go on. */
static uint32_t
join(GjFusedItem *item, uint32_t s, uint32_t n)
{
	const GjFusedStep *step = &item->w->plan->steps[s];

	if (n > 0)
		find_rows(item, step, n);
	if (step->walks)
		walk_rows(item, step, s + 1, n);
	else
	{
		if (step->residual.form != GJ_FUSED_NONE && n > 0)
			check_residual(item, step, s + 1, n);
		if (step->marks)
			mark_found(item, step, n);
	}
	memcpy(item->rowid[s + 1], item->found, n * sizeof(uint32_t));
	item->nslots = s + 2;
	for (uint32_t i = 0; i < n; i++)
		item->flag[i] = gj_fused_goes_on(step->join_type, item->found[i] != GJ_NO_ROW);
	n = keep_flagged(item, n);
	return keep_true(item, &step->filter, n);
}

/* ---- what comes out */

static void
aggregate(GjFusedItem *item, uint32_t n)
{
	const GjFusedPlan *plan = item->w->plan;

	for (uint32_t a = 0; a < plan->naggregates; a++)
	{
		const GjFusedExpr *e = &plan->exprs[plan->aggregate_expr[a]];

		if (e->form == GJ_FUSED_NONE)
		{
			item->local[a].count += n;
			continue;
		}
		/* sum(x) and max(x) next to each other take the same values */
		if (a == 0 || plan->aggregate_expr[a] != plan->aggregate_expr[a - 1])
			values(item, e, n);
		gj_cpu_step_tile(plan->aggregate_op[a], &item->local[a], item->value, item->null, n);
	}
}

/* Adds the value of a tuple to an aggregate of its group. */
static void
step_group(GjFusedItem *item, uint32_t a, uint32_t g, int64_t value)
{
	GjFusedWork *w = (GjFusedWork *) item->w;
	uint32_t	op = w->plan->aggregate_op[a];

	if (item->local)
	{
		gj_agg_step(op, &item->local[(size_t) a * w->groups->rows.nrows + g], value);
		return;
	}
	pthread_mutex_lock(&w->lock[g % GJ_LOCKS]);
	gj_agg_step(op, &w->groups->state[a][g], value);
	pthread_mutex_unlock(&w->lock[g % GJ_LOCKS]);
}

/* item->found: the group of each tuple, or GJ_FUSED_NO_GROUP. */
static void
find_groups(GjFusedItem *item, uint32_t n)
{
	const GjFusedPlan *plan = item->w->plan;
	GjFusedKeys keys[GJ_TILE_ROWS];

	memset(keys, 0, n * sizeof(GjFusedKeys));
	for (uint32_t k = 0; k < plan->ngroup_keys; k++)
	{
		const GjFusedExpr *e = &plan->exprs[plan->group_expr[k]];
		bool		carried = plan->group_how[k] > GJ_GROUP_FLOAT;
		const uint8_t *heap = carried ? item->view.columns[e->a].heap : NULL;

		if (carried)
			for (uint32_t i = 0; i < n; i++)
				item->null[i] = gj_fused_carried(e, item->view.columns, &item->rowid[0][i],
												 GJ_TILE_ROWS, &item->value[i]);
		else
			values(item, e, n);
		for (uint32_t i = 0; i < n; i++)
			gj_fused_add_key(&keys[i], k, plan->group_how[k], item->null[i] != 0, item->value[i],
							 heap, &item->status);
	}
	for (uint32_t i = 0; i < n; i++)
		item->found[i] = gj_fused_group(&keys[i], item->w->groups);
}

/* Leaves the tuples without a group to the caller, and moves the others together. */
static uint32_t
miss(GjFusedItem *item, uint32_t n)
{
	const GjFusedPlan *plan = item->w->plan;
	const GjColumn *probe_side = item->view.columns + plan->first_column;
	GjFusedMissed *missed = item->w->missed;
	uint32_t	list = missed->together ? 0 : item->part;
	uint32_t	hits = 0;
	uint32_t	at;

	for (uint32_t i = 0; i < n; i++)
		hits += item->flag[i] = item->found[i] != GJ_FUSED_NO_GROUP;
	if (hits == n)
		return n;
	at = missed->first[list] + __atomic_fetch_add(&missed->n[list], n - hits, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < n; i++)
	{
		if (item->flag[i])
			continue;
		for (uint32_t s = missed->together; s < item->nslots; s++)
			if (missed->rowid[s])
				missed->rowid[s][at] = item->rowid[s][i];
		for (uint32_t c = 0; missed->together && c < plan->nprobe_columns; c++)
			if (missed->data[c])
				gj_fused_copy_value(&probe_side[c], item->rowid[0][i], missed->heap[c],
									missed->data[c], missed->nulls[c], at);
		at++;
	}
	hits = 0;
	for (uint32_t i = 0; i < n; i++)
		if (item->flag[i])
			item->found[hits++] = item->found[i];
	return keep_flagged(item, n);
}

static void
group(GjFusedItem *item, uint32_t n)
{
	const GjFusedPlan *plan = item->w->plan;

	if (n > 0)
		find_groups(item, n);
	n = miss(item, n);
	for (uint32_t a = 0; a < plan->naggregates && n > 0; a++)
	{
		const GjFusedExpr *e = &plan->exprs[plan->aggregate_expr[a]];

		/* they take their values when the groups are finished */
		if (gj_agg_is_distinct(plan->aggregate_op[a]))
			continue;
		if (e->form == GJ_FUSED_NONE)
		{
			memset(item->value, 0, n * sizeof(int64_t));
			memset(item->null, 0, n);
		}
		else
			values(item, e, n);
		for (uint32_t i = 0; i < n; i++)
			if (!item->null[i])
				step_group(item, a, item->found[i], item->value[i]);
	}
}

/* ---- items */

static void
fused_tile(GjFusedItem *item, uint32_t first, uint32_t n)
{
	const GjFusedPlan *plan = item->w->plan;

	item->nslots = 1;
	for (uint32_t i = 0; i < n; i++)
		item->rowid[0][i] = first + i;
	n = keep_true(item, &plan->filter, n);
	item->counts[0] += n;
	for (uint32_t s = 0; s < plan->nsteps; s++)
	{
		n = join(item, s, n);
		item->counts[s + 1] += n;
	}
	if (item->w->groups)
		group(item, n);
	else
		aggregate(item, n);
}

/* Adds what an item has found to the queue's states, and to those of groups. */
static void
merge_item(GjFusedItem *item)
{
	const GjFusedPlan *plan = item->w->plan;
	const GjGroups *groups = item->w->groups;
	GjQueue    *queue = item->w->queue;

	pthread_mutex_lock(&queue->lock);
	for (uint32_t s = 0; s <= plan->nsteps; s++)
		queue->fused_counts[s] += item->counts[s];
	for (uint32_t a = 0; a < plan->naggregates && item->local; a++)
	{
		if (!groups)
			gj_agg_merge(plan->aggregate_op[a], &queue->states[a], &item->local[a]);
		for (uint32_t g = 0; groups && g < groups->rows.nrows; g++)
			gj_agg_merge(plan->aggregate_op[a], &groups->state[a][g],
						 &item->local[(size_t) a * groups->rows.nrows + g]);
	}
	pthread_mutex_unlock(&queue->lock);
}

static void
fused_item(void *arg, uint32_t number, const GjTile *tile)
{
	const GjFusedWork *w = arg;
	GjAggState	states[GJ_FUSED_AGGREGATES];
	GjFusedItem item;
	uint64_t	nlocal = w->groups ? (uint64_t) w->groups->rows.nrows * w->plan->naggregates : 0;
	uint32_t	nrows;
	uint32_t	begin;
	uint32_t	end;

	item.part = 0;
	while (w->first_item[item.part + 1] <= number)
		item.part++;
	item.w = w;
	item.tile = tile;
	item.status = GJ_OK;
	item.local = states;
	memset(states, 0, sizeof(states));
	memset(item.counts, 0, sizeof(item.counts));
	/* for want of memory, the locks will do */
	if (w->groups)
		item.local = nlocal > 0 && nlocal <= GJ_MAX_LOCAL ?
			calloc(nlocal, sizeof(GjAggState)) : NULL;
	memset(&item.view, 0, sizeof(item.view));
	item.view.columns = w->columns + (size_t) item.part * w->plan->ncolumns;
	item.view.no_row = w->plan->no_row;
	item.view.rowid[0] = item.rowid[0];
	for (uint32_t s = 0; s < w->plan->nsteps; s++)
		item.view.rowid[w->plan->steps[s].source] = item.rowid[s + 1];

	nrows = w->parts[item.part].nrows;
	begin = (number - w->first_item[item.part]) * GJ_ITEM_ROWS;
	end = gj_item_end(begin, nrows);
	for (uint32_t at = begin, n; at < end; at += n)
	{
		n = end - at < GJ_TILE_ROWS ? end - at : GJ_TILE_ROWS;
		item.view.nrows = n;
		fused_tile(&item, at, n);
	}
	merge_item(&item);
	if (w->groups)
		free(item.local);
	gj_note_row_error(w->queue, item.status);
}

static GjStatus
gj_cpu_fused(GjQueue *queue, const GjFusedPlan *plan, const GjColumn *columns,
			 const GjFusedPart *parts, uint32_t nparts, uint64_t list_bytes, const GjGroups *groups,
			 GjFusedMissed *missed)
{
	GjFusedWork w = {.queue = queue,.plan = plan,.parts = parts,.nparts = nparts,.groups = groups,
	.missed = missed};
	uint32_t	before = 0;

	w.columns = malloc((size_t) nparts * plan->ncolumns * sizeof(GjColumn) + 1);
	if (!w.columns)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t p = 0; p < nparts; p++)
	{
		GjColumn   *to = w.columns + (size_t) p * plan->ncolumns;

		memcpy(to, columns, plan->ncolumns * sizeof(GjColumn));
		memcpy(to + plan->first_column, parts[p].columns, plan->nprobe_columns * sizeof(GjColumn));
		w.first_item[p + 1] = w.first_item[p] + gj_items(parts[p].nrows);
		if (!groups)
			continue;
		missed->first[p] = before;
		missed->n[p] = 0;
		before += parts[p].nrows;
	}
	for (uint32_t i = 0; i < GJ_LOCKS; i++)
		pthread_mutex_init(&w.lock[i], NULL);
	gj_pool_run(queue->device->pool, w.first_item[nparts], fused_item, &w, &queue->tile, NULL, NULL);
	for (uint32_t i = 0; i < GJ_LOCKS; i++)
		pthread_mutex_destroy(&w.lock[i]);
	free(w.columns);
	return groups ? gj_take_row_error(queue) : GJ_OK;
}

static GjStatus
gj_cpu_fused_counts(GjQueue *queue, uint64_t counts[GJ_FUSED_STEPS + 1])
{
	memcpy(counts, queue->fused_counts, sizeof(queue->fused_counts));
	return gj_take_row_error(queue);
}

const GjFusedOps gj_cpu_pass = {
	.fused = gj_cpu_fused,
	.fused_counts = gj_cpu_fused_counts
};
