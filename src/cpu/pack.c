/*
 * pack.c
 *	  Packs columns, and unpacks them.
 *
 * An item of work is some rows of one column.
 */
#include <pthread.h>
#include <stdlib.h>

#include "cpu_device.h"

/* Items of all columns, numbered through; *row: where the item begins. */
static uint32_t
find_column(const GjPackColumn *columns, uint32_t item, uint32_t *row)
{
	uint32_t	c = 0;

	for (;;)
	{
		uint32_t	nitems = gj_items(columns[c].nrows);

		if (item < nitems)
			break;
		item -= nitems;
		c++;
	}
	*row = item * GJ_ITEM_ROWS;
	return c;
}

static uint64_t
greatest_divisor(uint64_t a, uint64_t b)
{
	while (b != 0)
	{
		uint64_t	rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* ---- what the values are like */

typedef struct GjMeasureWork
{
	const GjPackColumn *columns;
	GjPacking  *packing;
	pthread_mutex_t lock;
} GjMeasureWork;

/* Adds what is known of some values of a column to what is known of others. */
static void
add_packing(GjPacking *to, const GjPacking *from)
{
	uint64_t	apart = (uint64_t) (from->min > to->min ? from->min : to->min) -
		(uint64_t) (from->min > to->min ? to->min : from->min);

	if (!from->any)
		return;
	if (!to->any)
	{
		*to = *from;
		return;
	}
	to->factor = (int64_t) greatest_divisor(greatest_divisor((uint64_t) to->factor,
															 (uint64_t) from->factor), apart);
	if (from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
}

static void
measure_item(void *arg, uint32_t item, const GjTile *tile)
{
	GjMeasureWork *w = arg;
	uint32_t	begin;
	uint32_t	c = find_column(w->columns, item, &begin);
	const GjColumn *column = &w->columns[c].from;
	uint32_t	end = gj_item_end(begin, w->columns[c].nrows);
	GjPacking	local = {0};
	uint64_t	factor = 0;

	(void) tile;
	for (uint32_t i = begin; i < end; i++)
	{
		int64_t		value;

		if (gj_row_is_null(column, i))
			continue;
		value = gj_column_value(column, i);
		if (!local.any)
			local = (GjPacking) {value, value, 0, true};
		/* any value is as good as the least one to tell the factor */
		if (factor != 1)
			factor = greatest_divisor(factor, value > local.min ?
									  (uint64_t) value - (uint64_t) local.min :
									  (uint64_t) local.min - (uint64_t) value);
		if (value < local.min)
			local.min = value;
		if (value > local.max)
			local.max = value;
	}
	local.factor = (int64_t) factor;
	pthread_mutex_lock(&w->lock);
	add_packing(&w->packing[c], &local);
	pthread_mutex_unlock(&w->lock);
}

static void
for_columns(GjQueue *queue, const GjPackColumn *columns, uint32_t n, GjPoolTask task, void *arg)
{
	uint32_t	nitems = 0;

	for (uint32_t c = 0; c < n; c++)
		nitems += gj_items(columns[c].nrows);
	gj_for_items(queue, (uint64_t) nitems * GJ_ITEM_ROWS, task, arg);
}

GjStatus
gj_cpu_measure(GjQueue *queue, const GjPackColumn *columns, uint32_t n, GjPacking *packing)
{
	GjMeasureWork w = {columns, packing, PTHREAD_MUTEX_INITIALIZER};

	for (uint32_t c = 0; c < n; c++)
		packing[c] = (GjPacking) {0};
	for_columns(queue, columns, n, measure_item, &w);
	return gj_take_row_error(queue);
}

/* ---- packing and unpacking */

static void
pack_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjPackColumn *columns = arg;
	uint32_t	begin;
	const GjPackColumn *work = &columns[find_column(columns, item, &begin)];
	GjColumn	plain = work->from;
	uint32_t	end = gj_item_end(begin, work->nrows);

	(void) tile;
	plain.packed = 0;
	for (uint32_t i = begin; i < end; i++)
	{
		uint64_t	above = gj_row_is_null(&plain, i) ? 0 :
			(uint64_t) gj_column_value(&plain, i) - (uint64_t) plain.base;
		uint32_t	u = (uint32_t) (above / (uint64_t) plain.factor);

		if (work->from.packed == 1)
			((uint8_t *) work->to)[i] = (uint8_t) u;
		else if (work->from.packed == 2)
			((uint16_t *) work->to)[i] = (uint16_t) u;
		else
			((uint32_t *) work->to)[i] = u;
	}
}

GjStatus
gj_cpu_pack(GjQueue *queue, const GjPackColumn *columns, uint32_t n)
{
	for_columns(queue, columns, n, pack_item, (void *) columns);
	return GJ_OK;
}

static void
unpack_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjPackColumn *columns = arg;
	uint32_t	begin;
	const GjPackColumn *work = &columns[find_column(columns, item, &begin)];
	uint32_t	width = work->from.width;
	uint32_t	end = gj_item_end(begin, work->nrows);

	(void) tile;
	for (uint32_t i = begin; i < end; i++)
		gj_put_value((uint8_t *) work->to + (size_t) i * width, width,
					 gj_row_is_null(&work->from, i) ? 0 : gj_packed_value(&work->from, i));
}

GjStatus
gj_cpu_unpack(GjQueue *queue, const GjPackColumn *columns, uint32_t n)
{
	for_columns(queue, columns, n, unpack_item, (void *) columns);
	return GJ_OK;
}

/* ---- dictionaries */

/* True if two references are to the same bytes. */
static bool
same_bytes(const uint8_t *heap, uint64_t a, uint64_t b)
{
	return gj_ref_length(a) == gj_ref_length(b) &&
		memcmp(heap + gj_ref_offset(a), heap + gj_ref_offset(b), gj_ref_length(a)) == 0;
}

/* Numbers the values by a table of 1 + their number, 0 where it is empty. */
static void
number_by_table(const GjColumn *column, uint32_t nrows, uint32_t most, uint32_t *table,
				uint32_t nslots, uint32_t *number, uint64_t *value, uint32_t *n)
{
	for (uint32_t i = 0; i < nrows; i++)
	{
		uint64_t	ref = gj_row_is_null(column, i) ? 0 : gj_column_ref(column, i);
		uint32_t	at;

		number[i] = 0;
		if (gj_row_is_null(column, i))
			continue;
		if (gj_ref_length(ref) == GJ_REF_HELD)
		{
			*n = most + 1;
			return;
		}
		at = (uint32_t) gj_hash_bytes(0, column->heap + gj_ref_offset(ref), gj_ref_length(ref)) %
			nslots;
		while (table[at] != 0 && !same_bytes(column->heap, value[table[at] - 1], ref))
			at = at + 1 < nslots ? at + 1 : 0;
		if (table[at] == 0)
		{
			if (++*n > most)
				return;
			value[*n - 1] = ref;
			table[at] = *n;
		}
		number[i] = table[at] - 1;
	}
}

GjStatus
gj_cpu_number_values(GjQueue *queue, const GjColumn *column, uint32_t nrows, uint32_t most,
					 uint32_t *number, uint64_t *value, uint32_t *n)
{
	uint32_t	nslots = 2 * most + 1;
	uint32_t   *table = calloc(nslots, sizeof(uint32_t));

	(void) queue;
	*n = 0;
	if (!table)
		return GJ_OUT_OF_HOST_MEMORY;
	number_by_table(column, nrows, most, table, nslots, number, value, n);
	free(table);
	if (*n == 0)
	{
		value[0] = 0;
		*n = 1;
	}
	return GJ_OK;
}
