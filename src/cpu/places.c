/*
 * places.c
 *	  Groups that are found by their place (device/places.h): a place has a count and states, and
 *	  locks that each belong to every GJ_LOCKS-th place guard them.
 */
#include <stdlib.h>
#include <string.h>

#include "rows/aggregate.h"
#include "device/places.h"
#include "cpu_device.h"

#define GJ_LOCKS			64u

/* What is in front of the places. */
typedef struct GjPlacesHead
{
	uint64_t	count;			/* rows that passed the filter */
	uint64_t	unused[7];
} GjPlacesHead;

typedef struct GjPlacesWork
{
	GjQueue    *queue;
	const GjFusedPlan *plan;
	const GjPlaces *places;
	GjColumn   *columns;		/* of the part at work */
	uint32_t	nrows;			/* of it */
	GjPlacesHead *head;
	uint64_t   *counts;			/* of each place */
	GjAggState *states;			/* naggregates of each place */
	uint32_t   *positions;		/* of places that have rows */
	int64_t		low[GJ_PLACE_KEYS];
	int64_t		high[GJ_PLACE_KEYS];
	pthread_mutex_t lock[GJ_LOCKS];
} GjPlacesWork;

/* ---- what places are of */

static bool
value_suits(const GjFusedExpr *e)
{
	return e->form == GJ_FUSED_NONE || e->form == GJ_FUSED_SIMPLE || e->form == GJ_FUSED_PRODUCTS;
}

static bool
suits(const GjFusedPlan *plan, const GjGroups *groups)
{
	if (!gj_places_suit(plan, groups) || plan->filter.form == GJ_FUSED_CODE)
		return false;
	for (uint32_t a = 0; a < plan->naggregates; a++)
		if (!value_suits(&plan->exprs[plan->aggregate_expr[a]]))
			return false;
	return true;
}

static const GjColumn *
key_column(const GjFusedPlan *plan, const GjColumn *columns, uint32_t k)
{
	return &columns[plan->exprs[plan->group_expr[k]].a];
}

/* Describes the columns of a part, as the program numbers them. */
static void
start_part(GjPlacesWork *w, const GjColumn *columns, const GjFusedPart *part)
{
	const GjFusedPlan *plan = w->plan;

	if (columns)
		memcpy(w->columns, columns, plan->ncolumns * sizeof(GjColumn));
	memcpy(w->columns + plan->first_column, part->columns,
		   plan->nprobe_columns * sizeof(GjColumn));
	w->nrows = part->nrows;
}

static void
note_value(GjPlacesWork *w, uint32_t k, int64_t value)
{
	if (value < w->low[k])
		w->low[k] = value;
	if (value > w->high[k])
		w->high[k] = value;
}

/* Finds the least and greatest keys of a part; false: one is no integer. */
static bool
bound_part(GjPlacesWork *w)
{
	for (uint32_t k = 0; k < w->plan->ngroup_keys && w->nrows > 0; k++)
	{
		const GjColumn *column = key_column(w->plan, w->columns, k);

		if (!gj_kind_packs(column->kind))
			return false;
		for (uint32_t row = 0; row < w->nrows; row++)
			if (!gj_row_is_null(column, row))
				note_value(w, k, gj_column_value(column, row));
	}
	return true;
}

static uint64_t
place_bytes(const GjFusedPlan *plan)
{
	return sizeof(uint64_t) + plan->naggregates * sizeof(GjAggState);
}

static GjStatus
gj_cpu_places_plan(GjQueue *queue, const GjFusedPlan *plan, const GjFusedPart *parts,
				   uint32_t nparts, const GjGroups *groups, uint64_t most, GjPlaces *places)
{
	GjPlacesWork w = {.queue = queue,.plan = plan};
	uint64_t	nrows = groups->rows.nrows;
	bool		fits = suits(plan, groups);

	memset(places, 0, sizeof(*places));
	if (!fits)
		return GJ_OK;
	w.columns = calloc(plan->ncolumns + 1, sizeof(GjColumn));
	if (!w.columns)
		return GJ_OUT_OF_HOST_MEMORY;
	places->nkeys = plan->ngroup_keys;
	for (uint32_t k = 0; k < places->nkeys; k++)
	{
		w.low[k] = INT64_MAX;
		w.high[k] = INT64_MIN;
		for (uint32_t g = 0; g < groups->rows.nrows; g++)
			if (!(groups->rows.null[g] >> k & 1))
				note_value(&w, k, groups->rows.value[k][g]);
	}
	for (uint32_t p = 0; p < nparts && fits; p++)
	{
		start_part(&w, NULL, &parts[p]);
		nrows += parts[p].nrows;
		fits = bound_part(&w);
	}
	free(w.columns);
	if (fits && gj_places_set(places, w.low, w.high, most))
		places->nbytes = sizeof(GjPlacesHead) + places->nplaces * place_bytes(plan) +
			(nrows < places->nplaces ? nrows : places->nplaces) * sizeof(uint32_t);
	return GJ_OK;
}

/* ---- what is added */

static uint32_t
place_of_row(const GjPlacesWork *w, uint32_t row)
{
	const GjPlaces *places = w->places;
	uint32_t	place = 0;

	for (uint32_t k = 0; k < places->nkeys; k++)
	{
		const GjColumn *column = key_column(w->plan, w->columns, k);
		uint32_t	number = places->numbers[k];

		if (!gj_row_is_null(column, row))
			number = (uint32_t) ((uint64_t) gj_column_value(column, row) -
								 (uint64_t) places->low[k]);
		place = place * (places->numbers[k] + 1) + number;
	}
	return place;
}

/* The argument of an aggregate; true: NULL. */
static bool
argument(const GjPlacesWork *w, const GjFusedExpr *e, const uint32_t *row, int64_t *value,
		 uint32_t *status)
{
	*value = 0;
	if (e->form == GJ_FUSED_NONE)
		return false;
	if (e->form == GJ_FUSED_SIMPLE)
		return gj_fused_simple(e, w->columns, row, 1, value, status);
	return gj_fused_products(&w->plan->factors[e->expr], e->arg, w->columns, row, 1, value, status);
}

static void
add_row(GjPlacesWork *w, uint32_t row, uint32_t *status)
{
	const GjFusedPlan *plan = w->plan;
	uint32_t	place = place_of_row(w, row);
	GjAggState *states = w->states + (uint64_t) place * plan->naggregates;

	pthread_mutex_lock(&w->lock[place % GJ_LOCKS]);
	w->counts[place]++;
	for (uint32_t a = 0; a < plan->naggregates; a++)
	{
		int64_t		value;

		/* they take their values when the groups are finished */
		if (gj_agg_is_distinct(plan->aggregate_op[a]))
			continue;
		if (!argument(w, &plan->exprs[plan->aggregate_expr[a]], &row, &value, status))
			gj_agg_step(plan->aggregate_op[a], &states[a], value);
	}
	pthread_mutex_unlock(&w->lock[place % GJ_LOCKS]);
}

static void
add_item(void *arg, uint32_t item, const GjTile *tile)
{
	GjPlacesWork *w = arg;
	uint32_t	end = gj_item_end(item * GJ_ITEM_ROWS, w->nrows);
	uint32_t	status = GJ_OK;
	uint64_t	count = 0;

	for (uint32_t row = item * GJ_ITEM_ROWS; row < end; row++)
	{
		if (w->plan->filter.form != GJ_FUSED_NONE &&
			!gj_fused_terms(w->plan, w->plan->filter.first, w->plan->filter.n,
							w->queue->code.constants, w->columns, &row, 1, &status))
			continue;
		count++;
		add_row(w, row, &status);
	}
	__atomic_fetch_add(&w->head->count, count, __ATOMIC_RELAXED);
	gj_note_row_error(w->queue, status);
}

/* Adds a group that was there before. */
static void
add_group(GjPlacesWork *w, const GjGroups *groups, uint32_t g)
{
	const GjFusedPlan *plan = w->plan;
	uint32_t	place = gj_place_of_group(w->places, &groups->rows, g);

	w->counts[place]++;
	for (uint32_t a = 0; a < plan->naggregates; a++)
		if (!gj_agg_is_distinct(plan->aggregate_op[a]))
			gj_agg_merge(plan->aggregate_op[a],
						 &w->states[(uint64_t) place * plan->naggregates + a],
						 &groups->state[a][g]);
}

/* Where the parts of the memory are. */
static void
lay_out(GjPlacesWork *w, void *memory)
{
	w->head = memory;
	w->counts = (uint64_t *) (w->head + 1);
	w->states = (GjAggState *) (w->counts + w->places->nplaces);
	w->positions = (uint32_t *) (w->states + (uint64_t) w->places->nplaces * w->plan->naggregates);
}

static GjStatus
gj_cpu_places_add(GjQueue *queue, const GjFusedPlan *plan, const GjColumn *columns,
				  const GjFusedPart *parts, uint32_t nparts, const GjGroups *groups,
				  const GjPlaces *places, void *memory, uint32_t *n)
{
	GjPlacesWork w = {.queue = queue,.plan = plan,.places = places};

	*n = 0;
	w.columns = calloc(plan->ncolumns + 1, sizeof(GjColumn));
	if (!w.columns)
		return GJ_OUT_OF_HOST_MEMORY;
	lay_out(&w, memory);
	memset(memory, 0, sizeof(GjPlacesHead) + places->nplaces * place_bytes(plan));
	for (uint32_t g = 0; g < groups->rows.nrows; g++)
		add_group(&w, groups, g);
	for (uint32_t i = 0; i < GJ_LOCKS; i++)
		pthread_mutex_init(&w.lock[i], NULL);
	for (uint32_t p = 0; p < nparts; p++)
	{
		start_part(&w, columns, &parts[p]);
		gj_for_items(queue, w.nrows, add_item, &w);
	}
	for (uint32_t i = 0; i < GJ_LOCKS; i++)
		pthread_mutex_destroy(&w.lock[i]);
	free(w.columns);
	for (uint32_t place = 0; place < places->nplaces; place++)
		if (w.counts[place] > 0)
			w.positions[(*n)++] = place;
	return gj_take_row_error(queue);
}

static GjStatus
gj_cpu_places_groups(GjQueue *queue, const GjFusedPlan *plan, const GjFusedPart *parts,
					 uint32_t nparts, const GjPlaces *places, void *memory, uint32_t n,
					 const GjGroups *to)
{
	GjPlacesWork w = {.queue = queue,.plan = plan,.places = places};

	lay_out(&w, memory);
	queue->fused_counts[0] += w.head->count;
	for (uint32_t g = 0; g < n; g++)
	{
		uint32_t	place = w.positions[g];

		gj_place_store_keys(places, place, &to->rows, g);
		for (uint32_t a = 0; a < plan->naggregates; a++)
			to->state[a][g] = w.states[(uint64_t) place * plan->naggregates + a];
	}
	return GJ_OK;
}

const GjPlaceOps gj_cpu_places = {
	.plan = gj_cpu_places_plan,
	.add = gj_cpu_places_add,
	.groups = gj_cpu_places_groups
};
