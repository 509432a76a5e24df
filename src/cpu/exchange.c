/*
 * exchange.c
 *	  Rows that go to several devices: split by their keys, and columns of them put together.
 */
#include <stdlib.h>
#include <string.h>

#include "../rows/hash.h"
#include "cpu_device.h"

/* ---- split */

#define GJ_ALL_PARTS		(GJ_SPLIT_PARTS + 1)

typedef struct GjSplitWork
{
	const GjKeys *keys;
	const GjSplit *split;
	uint8_t    *part;			/* of each row */
	uint32_t   (*at)[GJ_ALL_PARTS];	/* of each item: rows of each part, then where they go */
	uint32_t   *positions;
} GjSplitWork;

static uint32_t
part_of(const GjSplitWork *w, uint32_t i)
{
	uint64_t	hash = 0;

	if (w->keys->null[i])
		return w->split->null_part;
	for (uint32_t k = 0; k < w->keys->nkeys; k++)
		hash = gj_hash_combine(hash, w->keys->value[k][i]);
	for (uint32_t h = 0; h < w->split->nheavy; h++)
		if (hash == w->split->heavy[h])
			return w->split->nparts;
	return gj_hash_part(hash, w->split->nparts);
}

static uint32_t
item_end(const GjSplitWork *w, uint32_t item)
{
	uint32_t	begin = item * GJ_ITEM_ROWS;

	return w->keys->nrows - begin < GJ_ITEM_ROWS ? w->keys->nrows : begin + GJ_ITEM_ROWS;
}

static void
find_parts_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjSplitWork *w = arg;

	for (uint32_t i = item * GJ_ITEM_ROWS; i < item_end(w, item); i++)
	{
		w->part[i] = (uint8_t) part_of(w, i);
		w->at[item][w->part[i]]++;
	}
}

static void
place_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjSplitWork *w = arg;

	for (uint32_t i = item * GJ_ITEM_ROWS; i < item_end(w, item); i++)
		w->positions[w->at[item][w->part[i]]++] = i;
}

/* Numbers of rows become places; tells where each part starts. */
static void
place_items(const GjSplitWork *w, uint32_t nitems, uint32_t *start)
{
	uint32_t	total = 0;

	for (uint32_t p = 0; p <= w->split->nparts; p++)
	{
		start[p] = total;
		for (uint32_t item = 0; item < nitems; item++)
		{
			uint32_t	n = w->at[item][p];

			w->at[item][p] = total;
			total += n;
		}
	}
	start[w->split->nparts + 1] = total;
}

/* A split takes none of the device's memory. */
GjStatus
gj_cpu_split_reserve(GjQueue *queue, uint32_t n)
{
	return GJ_OK;
}

GjStatus
gj_cpu_split(GjQueue *queue, const GjKeys *keys, const GjSplit *split, uint32_t *positions,
			 uint32_t start[GJ_SPLIT_PARTS + 2])
{
	uint32_t	nitems = gj_items(keys->nrows);
	GjSplitWork w = {keys, split, NULL, NULL, positions};
	GjStatus	status = GJ_OUT_OF_HOST_MEMORY;

	w.part = malloc((size_t) keys->nrows + 1);
	w.at = calloc((size_t) nitems + 1, sizeof(*w.at));
	if (w.part && w.at)
	{
		gj_for_items(queue, keys->nrows, find_parts_item, &w);
		place_items(&w, nitems, start);
		gj_for_items(queue, keys->nrows, place_item, &w);
		status = gj_take_row_error(queue);
	}
	free(w.part);
	free(w.at);
	return status;
}

/* ---- pick_values */

typedef struct GjPickValues
{
	uint8_t    *to;
	const uint8_t *from;
	uint32_t	width;
	const uint32_t *positions;
	uint32_t	n;
} GjPickValues;

static void
pick_values_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjPickValues *p = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = p->n - begin < GJ_ITEM_ROWS ? p->n : begin + GJ_ITEM_ROWS;

	for (uint32_t i = begin; i < end; i++)
		memcpy(p->to + (size_t) i * p->width, p->from + (size_t) p->positions[i] * p->width,
			   p->width);
}

GjStatus
gj_cpu_pick_values(GjQueue *queue, void *to, const void *from, uint32_t width,
				   const uint32_t *positions, uint32_t n)
{
	GjPickValues p = {to, from, width, positions, n};

	gj_for_items(queue, n, pick_values_item, &p);
	return GJ_OK;
}

/* ---- references */

GjStatus
gj_cpu_ref_bytes(GjQueue *queue, const uint64_t *refs, uint32_t n, uint64_t *heap_at)
{
	uint64_t	at = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		heap_at[i] = at;
		at += gj_ref_space(refs[i]);
	}
	heap_at[n] = at;
	return GJ_OK;
}

GjStatus
gj_cpu_move_refs(GjQueue *queue, uint64_t *refs, uint32_t n, const uint8_t *heap,
				 const uint64_t *heap_at, uint8_t *to, uint64_t base)
{
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	ref = refs[i];
		uint64_t	at = heap_at[i] - heap_at[0];

		/* a number of the backend's, not a place */
		if (gj_ref_length(ref) == GJ_REF_HELD)
			continue;
		if (gj_ref_space(ref) > 0)
			memcpy(to + at, heap + gj_ref_offset(ref), gj_ref_space(ref));
		refs[i] = gj_ref_make(base + at, gj_ref_length(ref));
	}
	return GJ_OK;
}
