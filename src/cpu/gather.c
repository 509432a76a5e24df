/*
 * gather.c
 *	  Fills a batch with the output columns of tuples.
 *
 * Where references are returned, a first pass over the rows finds out where their
 * bytes go and how many rows the heap takes; after that all rows are independent.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_device.h"

typedef struct GjGather
{
	GjQueue    *queue;
	const GjView *view;
	uint32_t	first;
	uint32_t	n;
	const GjBatchTarget *target;
	const uint32_t *outputs;
	uint32_t   *heap_at;		/* of each row's bytes in the heap; NULL: no references */
} GjGather;

/* Bytes that a row's references need in the heap. */
static uint64_t
row_space(const GjGather *g, uint32_t tuple)
{
	uint64_t	space = 0;

	for (uint32_t c = 0; c < g->target->layout.ncolumns; c++)
	{
		const GjColumn *column = &g->view->columns[g->outputs[c]];
		uint32_t	row;

		if (column->kind != GJ_REF)
			continue;
		row = gj_view_row(g->view, g->queue->code.columns[g->outputs[c]].source, tuple);
		if (!gj_row_is_null(column, row))
			space += gj_ref_space(gj_column_ref(column, row));
	}
	return space;
}

/* Places the rows' bytes; lowers g->n to the rows that fit.  Returns bytes used. */
static uint32_t
place_rows(GjGather *g)
{
	uint64_t	at = 0;

	for (uint32_t i = 0; i < g->n; i++)
	{
		uint64_t	space = row_space(g, g->first + i);

		if (at + space > g->target->layout.heap_size)
		{
			g->n = i;
			break;
		}
		g->heap_at[i] = (uint32_t) at;
		at += space;
	}
	return (uint32_t) at;
}

#define GJ_COPY_VALUES(type) \
	if (gj_view_no_row(g->view, source)) \
		for (uint32_t i = begin; i < end; i++) \
		{ \
			uint32_t	row = gj_view_row(g->view, source, g->first + i); \
			((type *) to)[i] = row == GJ_NO_ROW ? (type) {0} : ((const type *) column->data)[row]; \
		} \
	else \
		for (uint32_t i = begin; i < end; i++) \
			((type *) to)[i] = \
				((const type *) column->data)[gj_view_row(g->view, source, g->first + i)]; \
	break

typedef struct GjWide
{
	uint64_t	half[2];
} GjWide;

/* The same of a packed column. */
static void
unpack_values(const GjGather *g, const GjColumn *column, uint32_t source, uint8_t *to,
			  uint32_t begin, uint32_t end)
{
	for (uint32_t i = begin; i < end; i++)
	{
		uint32_t	row = gj_view_row(g->view, source, g->first + i);
		bool		none = gj_row_is_null(column, row);

		gj_put_value(to + (size_t) i * column->width, column->width,
					 none ? 0 : gj_packed_value(column, row));
	}
}

static void
copy_values(const GjGather *g, const GjColumn *column, uint32_t source, void *to,
			uint32_t begin, uint32_t end)
{
	if (column->packed)
	{
		unpack_values(g, column, source, to, begin, end);
		return;
	}
	switch (column->width)
	{
		case 1:
			GJ_COPY_VALUES(uint8_t);
		case 2:
			GJ_COPY_VALUES(uint16_t);
		case 4:
			GJ_COPY_VALUES(uint32_t);
		case 8:
			GJ_COPY_VALUES(uint64_t);
		default:
			GJ_COPY_VALUES(GjWide);
	}
}

/* Copies null flags; the column has a map if any of them is set. */
static void
copy_nulls(const GjGather *g, const GjColumn *column, uint32_t source, uint32_t c,
		   uint32_t begin, uint32_t end)
{
	uint8_t    *to = g->target->slot + g->target->places[c].nulls;
	uint8_t		any = 0;

	for (uint32_t i = begin; i < end; i++)
	{
		to[i] = gj_row_is_null(column, gj_view_row(g->view, source, g->first + i));
		any |= to[i];
	}
	if (any)
		__atomic_store_n(&gj_slot_has_nulls(g->target->slot)[c], 1, __ATOMIC_RELAXED);
}

/* Copies the bytes of a row's references and points new references to them. */
static void
copy_refs(const GjGather *g, uint32_t i)
{
	uint8_t    *heap = g->target->slot + g->target->layout.heap;
	uint64_t	at = g->heap_at[i];

	for (uint32_t c = 0; c < g->target->layout.ncolumns; c++)
	{
		const GjColumn *column = &g->view->columns[g->outputs[c]];
		uint64_t   *to = (uint64_t *) (g->target->slot + g->target->places[c].data) + i;
		uint64_t	ref;
		uint32_t	row;

		if (column->kind != GJ_REF)
			continue;
		row = gj_view_row(g->view, g->queue->code.columns[g->outputs[c]].source, g->first + i);
		ref = gj_row_is_null(column, row) ? 0 : gj_column_ref(column, row);
		if (gj_ref_space(ref) > 0)
		{
			gj_copy_padded(heap + at, column->heap, ref);
			*to = gj_ref_make(at, gj_ref_length(ref));
			at += gj_ref_space(ref);
		}
		else
			*to = gj_ref_length(ref) == GJ_REF_HELD ? ref : 0;
	}
}

static void
gather_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjGather *g = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, g->n);

	for (uint32_t c = 0; c < g->target->layout.ncolumns; c++)
	{
		const GjColumn *column = &g->view->columns[g->outputs[c]];
		uint32_t	source = g->queue->code.columns[g->outputs[c]].source;

		if (column->kind != GJ_REF)
			copy_values(g, column, source, g->target->slot + g->target->places[c].data, begin, end);
		if (column->nulls || gj_view_no_row(g->view, source))
			copy_nulls(g, column, source, c, begin, end);
	}
	if (g->heap_at)
		for (uint32_t i = begin; i < end; i++)
			copy_refs(g, i);
}

GjStatus
gj_cpu_gather(GjQueue *queue, const GjView *view, uint32_t first, uint32_t max,
			  const GjBatchTarget *target, uint32_t *n)
{
	const GjLayout *layout = &target->layout;
	GjGather	g = {queue, view, first, max < layout->capacity ? max : layout->capacity, target,
	gj_program_array(queue->program, uint32_t, outputs), NULL};
	GjSlotHeader header = {0, 0};
	GjStatus	status = gj_take_row_error(queue);
	bool		refs = false;

	*n = 0;
	if (status != GJ_OK)
		return status;
	for (uint32_t c = 0; c < layout->ncolumns; c++)
		refs |= view->columns[g.outputs[c]].kind == GJ_REF;
	if (refs)
	{
		g.heap_at = malloc((size_t) g.n * sizeof(uint32_t));
		if (!g.heap_at)
			return GJ_OUT_OF_HOST_MEMORY;
		header.heap_used = place_rows(&g);
	}
	if (g.n == 0)
	{
		free(g.heap_at);
		snprintf(queue->error.text, sizeof(queue->error.text), "a row does not fit a batch");
		return GJ_TOO_LARGE;
	}
	header.nrows = g.n;
	memcpy(target->slot, &header, sizeof(header));
	memset(gj_slot_has_nulls(target->slot), 0, layout->ncolumns);
	gj_for_items(queue, g.n, gather_item, &g);
	free(g.heap_at);
	*n = g.n;
	return GJ_OK;
}
