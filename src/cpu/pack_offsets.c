/*
 * pack_offsets.c
 *	  Offsets of the values that references lead to, and the values one behind the other.
 *
 * An item of work is some rows.
 */
#include "cpu_device.h"

/* More than offsets can have. */
#define GJ_NO_OFFSET		(UINT64_C(1) << 32)

/* Bytes that the value of a row takes. */
static uint64_t
value_bytes(const GjColumn *column, uint32_t row)
{
	uint32_t	length;

	if (gj_row_is_null(column, row))
		return 0;
	length = gj_ref_length(gj_column_ref(column, row));
	return length == GJ_REF_HELD ? GJ_NO_OFFSET : length;
}

GjStatus
gj_cpu_find_offsets(GjQueue *queue, const GjColumn *column, uint32_t nrows, uint64_t *at,
					GjOffsets *offsets)
{
	uint64_t	end = 0;

	*offsets = (GjOffsets) {0};
	for (uint32_t i = 0; i < nrows; i++)
	{
		uint64_t	beyond;

		at[i] = end;
		end += value_bytes(column, i);
		beyond = at[i] - at[i - i % GJ_OFFSET_ROWS];
		if (beyond > offsets->widest)
			offsets->widest = beyond;
	}
	/* an offset as well */
	at[nrows] = offsets->nbytes = end;
	end -= at[nrows - nrows % GJ_OFFSET_ROWS];
	if (end > offsets->widest)
		offsets->widest = end;
	return gj_take_row_error(queue);
}

typedef struct GjMoveWork
{
	const GjColumn *column;
	uint32_t	nrows;
	const uint64_t *at;
	uint8_t    *to;
	uint64_t	base;
	uint64_t   *refs;
} GjMoveWork;

static void
move_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjMoveWork *w = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, w->nrows);

	(void) tile;
	for (uint32_t i = begin; i < end; i++)
	{
		uint64_t	ref = gj_column_ref(w->column, i);
		uint32_t	length = (uint32_t) (w->at[i + 1] - w->at[i]);

		if (length > 0)
			memcpy(w->to + w->at[i], w->column->heap + gj_ref_offset(ref), length);
		if (w->refs)
			w->refs[i] = gj_ref_make(w->base + w->at[i], length);
	}
}

GjStatus
gj_cpu_move_values(GjQueue *queue, const GjColumn *column, uint32_t nrows, const uint64_t *at,
				   uint8_t *to, uint64_t base, uint64_t *refs)
{
	GjMoveWork	w = {column, nrows, at, to, base, refs};

	gj_for_items(queue, nrows, move_item, &w);
	return GJ_OK;
}

GjStatus
gj_cpu_pack_offsets(GjQueue *queue, const GjPackColumn *column, const uint64_t *at)
{
	uint32_t   *shared = (uint32_t *) (column->from.heap + column->from.base);

	(void) queue;
	for (uint64_t i = 0; i <= column->nrows; i++)
	{
		if (column->from.packed == 4)
			((uint32_t *) column->to)[i] = (uint32_t) at[i];
		else
			((uint16_t *) column->to)[i] = (uint16_t) (at[i] - at[i - i % GJ_OFFSET_ROWS]);
		if (column->from.packed == 2 && i % GJ_OFFSET_ROWS == 0)
			shared[i / GJ_OFFSET_ROWS] = (uint32_t) (gj_offset_table(column->nrows) + at[i]);
	}
	return GJ_OK;
}
