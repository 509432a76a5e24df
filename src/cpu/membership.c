/*
 * membership.c
 *	  Sets out of the sorted rows of a membership table: where each begins, and its size.
 */
#include "cpu_device.h"

typedef struct GjChanges
{
	const GjKeys *keys;
	uint32_t	nkeys;
	uint32_t	distance;
	uint8_t    *flags;
} GjChanges;

static void
changes_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjChanges *c = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, c->keys->nrows);

	for (uint32_t i = begin; i < end; i++)
	{
		bool		differs = i < c->distance;

		for (uint32_t k = 0; k < c->nkeys && !differs; k++)
			differs = c->keys->value[k][i] != c->keys->value[k][i - c->distance];
		c->flags[i] = differs;
	}
}

GjStatus
gj_cpu_flag_changes(GjQueue *queue, const GjKeys *keys, uint32_t nkeys, uint32_t distance,
					uint8_t *flags)
{
	GjChanges	c = {keys, nkeys, distance, flags};

	gj_for_items(queue, keys->nrows, changes_item, &c);
	return GJ_OK;
}

typedef struct GjSizes
{
	const uint32_t *starts;
	uint32_t	n;
	uint32_t	nrows;
	int32_t    *size;
} GjSizes;

static void
sizes_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjSizes *s = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = s->n - begin < GJ_ITEM_ROWS ? s->n : begin + GJ_ITEM_ROWS;

	for (uint32_t i = begin; i < end; i++)
		s->size[i] = (int32_t) ((i + 1 < s->n ? s->starts[i + 1] : s->nrows) - s->starts[i]);
}

GjStatus
gj_cpu_run_sizes(GjQueue *queue, const uint32_t *starts, uint32_t n, uint32_t nrows, int32_t *size)
{
	GjSizes		s = {starts, n, nrows, size};

	gj_for_items(queue, n, sizes_item, &s);
	return GJ_OK;
}
