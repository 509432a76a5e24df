/*
 * aggregate.c
 *	  Aggregates: a state per item of work, merged into the queue's.
 */
#include <string.h>

#include "rows/aggregate.h"
#include "cpu_device.h"

typedef struct GjAggWork
{
	GjQueue    *queue;
	const GjView *view;
	const GjAggregate *aggregates;
	uint32_t	n;
} GjAggWork;

/* The operator is a constant in each loop, so the compiler leaves its case only. */
#define GJ_STEP_ALL(op) \
	for (uint32_t i = 0; i < n; i++) \
		if (!null[i]) \
			gj_agg_step(op, state, value[i]); \
	break

void
gj_cpu_step_tile(uint32_t op, GjAggState *state, const int64_t *value, const uint8_t *null,
				 uint32_t n)
{
	switch (op)
	{
		case GJ_AGG_COUNT:
			GJ_STEP_ALL(GJ_AGG_COUNT);
		case GJ_AGG_SUM_I:
			GJ_STEP_ALL(GJ_AGG_SUM_I);
		case GJ_AGG_SUM_SQUARES_I:
			GJ_STEP_ALL(GJ_AGG_SUM_SQUARES_I);
		case GJ_AGG_SUM_SQUARES_HIGH_I:
			GJ_STEP_ALL(GJ_AGG_SUM_SQUARES_HIGH_I);
		case GJ_AGG_SPREAD_F:
			GJ_STEP_ALL(GJ_AGG_SPREAD_F);
		case GJ_AGG_SUM_F:
			GJ_STEP_ALL(GJ_AGG_SUM_F);
		case GJ_AGG_MIN_I:
			GJ_STEP_ALL(GJ_AGG_MIN_I);
		case GJ_AGG_MAX_I:
			GJ_STEP_ALL(GJ_AGG_MAX_I);
		case GJ_AGG_MIN_F:
			GJ_STEP_ALL(GJ_AGG_MIN_F);
		case GJ_AGG_MAX_F:
			GJ_STEP_ALL(GJ_AGG_MAX_F);
		default:
			GJ_STEP_ALL(op);
	}
}

/* Adds tuples base .. base+n-1 to the states. */
static void
aggregate_tile(const GjAggWork *w, GjAggState *states, uint32_t base, uint32_t n,
			   const GjTile *tile, uint32_t *status)
{
	const GjCode *code = &w->queue->code;
	int32_t		evaluated = -1;

	for (uint32_t a = 0; a < w->n; a++)
	{
		const GjAggregate *agg = &w->aggregates[a];
		size_t		result;

		if (agg->op == GJ_AGG_COUNT_STAR)
		{
			states[a].count += n;
			continue;
		}
		/* sum(x) and max(x) next to each other read the same register */
		if (agg->arg != evaluated)
			gj_eval(code, agg->arg, w->view, base, n, tile, status);
		evaluated = agg->arg;
		result = (size_t) code->exprs[agg->arg].result * tile->stride;
		gj_cpu_step_tile(agg->op, &states[a], tile->value + result, tile->null + result, n);
	}
}

static void
aggregate_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjAggWork *w = arg;
	GjQueue    *queue = w->queue;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, w->view->nrows);
	uint32_t	status = GJ_OK;
	GjAggState	states[GJ_MAX_AGGREGATES];

	for (uint32_t a = 0; a < w->n; a++)
		gj_agg_start(&states[a]);
	for (uint32_t base = begin, n; base < end; base += n)
	{
		n = end - base < GJ_TILE_ROWS ? end - base : GJ_TILE_ROWS;
		aggregate_tile(w, states, base, n, tile, &status);
	}
	pthread_mutex_lock(&queue->lock);
	for (uint32_t a = 0; a < w->n; a++)
		gj_agg_merge(w->aggregates[a].op, &queue->states[a], &states[a]);
	pthread_mutex_unlock(&queue->lock);
	gj_note_row_error(queue, status);
}

GjStatus
gj_cpu_aggregate(GjQueue *queue, const GjView *view)
{
	GjAggWork	w = {queue, view, gj_program_array(queue->program, GjAggregate, aggregates),
	queue->program->naggregates};

	gj_for_items(queue, view->nrows, aggregate_item, &w);
	return GJ_OK;
}

GjStatus
gj_cpu_aggregate_read(GjQueue *queue, GjAggState *states)
{
	memcpy(states, queue->states, queue->program->naggregates * sizeof(GjAggState));
	return gj_take_row_error(queue);
}
