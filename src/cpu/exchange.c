/*
 * exchange.c
 *	  Rows that go to several devices: split by their keys, part by part, and the bytes of references.
 */
#include <stdlib.h>
#include <string.h>

#include "rows/hash.h"
#include "cpu_device.h"

/* ---- split */

/* Rows of a piece. */
typedef struct GjSplitRows
{
	const GjSplitPiece *piece;
	uint32_t	begin;
	uint32_t	end;
	uint32_t	first_row;		/* number of row `begin` of all */
	uint32_t	at[GJ_SPLIT_PARTS];	/* rows of each part, then where they go */
} GjSplitRows;

typedef struct GjSplitWork
{
	const GjSplit *split;
	const GjColumn *to;
	uint8_t    *part;			/* of each row */
	GjSplitRows *items;
} GjSplitWork;

static uint32_t
part_of(const GjSplit *split, const GjSplitRows *item, uint32_t i)
{
	const uint32_t row = item->piece->rows ? item->piece->rows[i] : i;
	uint32_t	number = item->first_row + (i - item->begin);
	uint64_t	hash = 0;

	if (split->keys && split->keys->null[number])
		return split->null_part;
	for (uint32_t k = 0; k < split->nkeys; k++)
	{
		const GjColumn *column = &item->piece->columns[split->key[k]];
		int64_t		value;

		if (split->keys)
			value = split->keys->value[k][number];
		else if (gj_row_is_null(column, row))
			return split->null_part;
		else
			value = gj_key_bits(gj_column_value(column, row),
								column->kind == GJ_FLOAT8 || column->kind == GJ_FLOAT4);
		hash = gj_hash_combine(hash, value);
	}
	return gj_hash_part(hash, split->nparts);
}

static void
find_parts_item(void *arg, uint32_t n, const GjTile *tile)
{
	const GjSplitWork *w = arg;
	GjSplitRows *item = &w->items[n];

	for (uint32_t i = item->begin; i < item->end; i++)
	{
		uint32_t	part = part_of(w->split, item, i);

		w->part[item->first_row + (i - item->begin)] = (uint8_t) part;
		item->at[part]++;
	}
}

/* Values of a packed column of an item's rows, as they are. */
static void
unpack_values(const GjSplitWork *w, const GjSplitRows *item, const GjColumn *from, void *to)
{
	uint32_t	at[GJ_SPLIT_PARTS];

	memcpy(at, item->at, sizeof(at));
	for (uint32_t i = item->begin; i < item->end; i++)
	{
		uint32_t	row = item->piece->rows ? item->piece->rows[i] : i;
		uint32_t	part = w->part[item->first_row + (i - item->begin)];

		gj_put_value((uint8_t *) to + (size_t) at[part]++ * from->width, from->width,
					 gj_packed_value(from, row));
	}
}

/* Values of `width` bytes of an item's rows; `from` is NULL: all are 0. */
static void
write_values(const GjSplitWork *w, const GjSplitRows *item, const void *from, void *to,
			 uint32_t width)
{
	uint32_t	at[GJ_SPLIT_PARTS];

	memcpy(at, item->at, sizeof(at));
	for (uint32_t i = item->begin; i < item->end; i++)
	{
		uint32_t	row = item->piece->rows ? item->piece->rows[i] : i;
		uint32_t	part = w->part[item->first_row + (i - item->begin)];
		uint8_t    *value = (uint8_t *) to + (size_t) at[part]++ * width;

		if (from)
			memcpy(value, (const uint8_t *) from + (size_t) row * width, width);
		else
			memset(value, 0, width);
	}
}

static void
write_item(void *arg, uint32_t n, const GjTile *tile)
{
	const GjSplitWork *w = arg;
	const GjSplitRows *item = &w->items[n];

	for (uint32_t c = 0; c < w->split->ncolumns; c++)
	{
		const GjColumn *from = &item->piece->columns[c];

		if (w->to[c].data && from->packed)
			unpack_values(w, item, from, (void *) w->to[c].data);
		else if (w->to[c].data)
			write_values(w, item, from->data, (void *) w->to[c].data, w->to[c].width);
		if (w->to[c].nulls)
			write_values(w, item, from->nulls, (void *) w->to[c].nulls, 1);
	}
}

/* Numbers of rows become places; tells where the parts are. */
static void
place_items(const GjSplitWork *w, uint32_t nitems, GjSplitParts *parts)
{
	uint32_t	total = 0;

	for (uint32_t p = 0; p < w->split->nparts; p++)
	{
		total = (total + GJ_SPLIT_ALIGN - 1) / GJ_SPLIT_ALIGN * GJ_SPLIT_ALIGN;
		parts->start[p] = total;
		for (uint32_t i = 0; i < nitems; i++)
		{
			uint32_t	n = w->items[i].at[p];

			w->items[i].at[p] = total;
			total += n;
		}
		parts->end[p] = total;
	}
}

/* Makes items of the pieces, and room for the parts of their rows.  False: out of memory. */
static bool
make_items(GjSplitWork *w, uint32_t *nitems)
{
	uint32_t	nrows = 0;
	uint32_t	n = 0;

	for (uint32_t p = 0; p < w->split->npieces; p++)
	{
		nrows += w->split->pieces[p].nrows;
		n += gj_items(w->split->pieces[p].nrows);
	}
	w->part = malloc((size_t) nrows + 1);
	w->items = calloc((size_t) n + 1, sizeof(GjSplitRows));
	if (!w->part || !w->items)
		return false;
	*nitems = n;
	n = nrows = 0;
	for (uint32_t p = 0; p < w->split->npieces; p++)
	{
		const GjSplitPiece *piece = &w->split->pieces[p];

		for (uint32_t begin = 0, end; begin < piece->nrows; begin = end)
		{
			end = (uint32_t) gj_item_end(begin, piece->nrows);
			w->items[n++] = (GjSplitRows) {.piece = piece,.begin = begin,.end = end,.first_row = nrows};
			nrows += end - begin;
		}
	}
	return true;
}

/* A split takes none of the device's memory. */
static GjStatus
gj_cpu_split_reserve(GjQueue *queue, uint32_t n, uint32_t ncolumns, uint32_t nkeys)
{
	return GJ_OK;
}

static GjStatus
gj_cpu_split(GjQueue *queue, const GjSplit *split, const GjColumn *to, bool (*stop) (void *),
			 void *arg, const GjSplitParts **parts)
{
	GjPool	   *pool = queue->device->pool;
	GjSplitWork w = {.split = split,.to = to};
	GjStatus	status = GJ_OUT_OF_HOST_MEMORY;
	uint32_t	nitems;

	queue->split_parts.full = false;
	*parts = &queue->split_parts;
	if (make_items(&w, &nitems))
	{
		status = GJ_CANCELLED;
		if (gj_pool_run(pool, nitems, find_parts_item, &w, &queue->tile, stop, arg))
		{
			place_items(&w, nitems, &queue->split_parts);
			if (gj_pool_run(pool, nitems, write_item, &w, &queue->tile, stop, arg))
				status = gj_take_row_error(queue);
		}
	}
	free(w.part);
	free(w.items);
	return status;
}

/* ---- references */

static GjStatus
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

static GjStatus
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
			gj_copy_padded(to + at, heap, ref);
		refs[i] = gj_ref_make(base + at, gj_ref_length(ref));
	}
	return GJ_OK;
}

const GjSplitOps gj_cpu_exchange = {
	.split = gj_cpu_split,
	.split_reserve = gj_cpu_split_reserve,
	.ref_bytes = gj_cpu_ref_bytes,
	.move_refs = gj_cpu_move_refs
};
