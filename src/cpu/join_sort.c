/*
 * join_sort.c
 *	  Sort-merge: a build side sorted by its keys, and tuples that look for their matches; and
 *	  rows in the order of some keys.
 *
 * A stable radix sort of (value, row) from the last value to the first, a byte a pass, and
 * only of the bytes that differ.  Each pass is parallel: items count their rows by digit, a
 * scan over digits and items gives every item its places, and items move their rows there.
 * Items are large, so that their counters are few.
 */
#include <stdlib.h>
#include <string.h>

#include "device/order.h"
#include "cpu_device.h"

#define GJ_DIGITS			256
#define GJ_MAX_ITEMS		64
#define GJ_MIN_ITEM			16384

typedef struct GjSort
{
	const GjKeys *keys;
	uint32_t	n;				/* rows that take part */
	uint32_t	item;			/* rows of an item of work */
	uint32_t	nitems;
	uint32_t	descending;		/* bit k: by value k */
	uint32_t	k;				/* value that is sorted by */
	uint32_t	shift;
	uint32_t   *row;			/* input rows in the order so far */
	uint32_t   *next_row;
	uint64_t   *value;			/* of row[i], so that smaller ones come first */
	uint64_t   *next_value;
	uint64_t   *differ;			/* of each item: bits in which its values differ from the first */
	uint32_t   *place;			/* [item][digit]: rows, then where they go */
} GjSort;

static uint32_t
item_end(const GjSort *s, uint32_t begin)
{
	return s->n - begin < s->item ? s->n : begin + s->item;
}

static uint64_t
sort_value(const GjSort *s, uint32_t row)
{
	return (uint64_t) gj_order_value(s->keys->value[s->k][row], s->descending, s->k) ^
		(uint64_t) INT64_MIN;
}

static void
load_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjSort *s = arg;
	uint64_t	first = sort_value(s, s->row[0]);
	uint32_t	begin = item * s->item;
	uint32_t	end = item_end(s, begin);
	uint64_t	differ = 0;

	for (uint32_t i = begin; i < end; i++)
	{
		s->value[i] = sort_value(s, s->row[i]);
		differ |= s->value[i] ^ first;
	}
	s->differ[item] = differ;
}

static void
count_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjSort *s = arg;
	uint32_t   *place = s->place + (size_t) item * GJ_DIGITS;
	uint32_t	begin = item * s->item;
	uint32_t	end = item_end(s, begin);

	memset(place, 0, GJ_DIGITS * sizeof(uint32_t));
	for (uint32_t i = begin; i < end; i++)
		place[s->value[i] >> s->shift & (GJ_DIGITS - 1)]++;
}

static void
move_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjSort *s = arg;
	uint32_t   *place = s->place + (size_t) item * GJ_DIGITS;
	uint32_t	begin = item * s->item;
	uint32_t	end = item_end(s, begin);

	for (uint32_t i = begin; i < end; i++)
	{
		uint32_t	to = place[s->value[i] >> s->shift & (GJ_DIGITS - 1)]++;

		s->next_value[to] = s->value[i];
		s->next_row[to] = s->row[i];
	}
}

/* Where each item's rows of each digit go. */
static void
place_digits(const GjSort *s)
{
	uint32_t	at = 0;

	for (uint32_t digit = 0; digit < GJ_DIGITS; digit++)
		for (uint32_t item = 0; item < s->nitems; item++)
		{
			uint32_t   *place = &s->place[(size_t) item * GJ_DIGITS + digit];
			uint32_t	n = *place;

			*place = at;
			at += n;
		}
}

/* Sorts the rows by value k; rows with equal values keep their order.  False: stopped. */
static bool
sort_by(GjQueue *queue, GjSort *s, bool (*stop) (void *), void *arg)
{
	GjPool	   *pool = queue->device->pool;
	uint64_t	differ = 0;

	if (!gj_pool_run(pool, s->nitems, load_item, s, &queue->tile, stop, arg))
		return false;
	for (uint32_t i = 0; i < s->nitems; i++)
		differ |= s->differ[i];
	for (s->shift = 0; s->shift < 64; s->shift += 8)
	{
		uint32_t   *row = s->row;
		uint64_t   *value = s->value;

		if ((differ >> s->shift & (GJ_DIGITS - 1)) == 0)
			continue;
		if (!gj_pool_run(pool, s->nitems, count_item, s, &queue->tile, stop, arg))
			return false;
		place_digits(s);
		if (!gj_pool_run(pool, s->nitems, move_item, s, &queue->tile, stop, arg))
			return false;
		s->row = s->next_row;
		s->value = s->next_value;
		s->next_row = row;
		s->next_value = value;
	}
	return true;
}

/* Moves the keys into the sorted order and names the rows. */
static void
take_order(GjSort *s, const uint32_t *rowid, GjHashTable *table)
{
	for (uint32_t k = 0; k < s->keys->nkeys; k++)
	{
		for (uint32_t i = 0; i < s->n; i++)
			s->value[i] = (uint64_t) s->keys->value[k][s->row[i]];
		if (s->n > 0)
			memcpy(s->keys->value[k], s->value, s->n * sizeof(uint64_t));
	}
	for (uint32_t i = 0; i < s->n; i++)
		table->rows[i] = rowid ? rowid[s->row[i]] : s->row[i];
}

static bool
alloc_sort(GjSort *s)
{
	size_t		n = s->keys->nrows > 0 ? s->keys->nrows : 1;

	s->row = malloc(n * sizeof(uint32_t));
	s->next_row = malloc(n * sizeof(uint32_t));
	s->value = malloc(n * sizeof(uint64_t));
	s->next_value = malloc(n * sizeof(uint64_t));
	s->differ = malloc(GJ_MAX_ITEMS * sizeof(uint64_t));
	s->place = malloc((size_t) GJ_MAX_ITEMS * GJ_DIGITS * sizeof(uint32_t));
	return s->row && s->next_row && s->value && s->next_value && s->differ && s->place;
}

static void
free_sort(GjSort *s)
{
	free(s->row);
	free(s->next_row);
	free(s->value);
	free(s->next_value);
	free(s->differ);
	free(s->place);
}

/* Sorts the rows that take part, which s->row names, by all values. */
static GjStatus
sort_by_all(GjQueue *queue, GjSort *s, bool (*stop) (void *), void *arg)
{
	s->item = s->n / GJ_MAX_ITEMS + 1;
	if (s->item < GJ_MIN_ITEM)
		s->item = GJ_MIN_ITEM;
	s->nitems = (s->n + s->item - 1) / s->item;
	for (s->k = s->keys->nkeys; s->k-- > 0 && s->n > 0;)
		if (!sort_by(queue, s, stop, arg))
			return GJ_CANCELLED;
	return gj_take_row_error(queue);
}

GjStatus
gj_cpu_sort_build(GjQueue *queue, const GjKeys *keys, const uint32_t *rowid,
				  bool (*stop) (void *), void *arg, GjHashTable *table)
{
	GjSort		s = {.keys = keys};
	GjStatus	status = GJ_OUT_OF_MEMORY;

	memset(table, 0, sizeof(*table));
	table->kind = GJ_TABLE_SORTED;
	table->rows = malloc((keys->nrows > 0 ? keys->nrows : 1) * sizeof(uint32_t));
	if (alloc_sort(&s) && table->rows)
	{
		for (uint32_t i = 0; i < keys->nrows; i++)
			if (!keys->null[i])
				s.row[s.n++] = i;
		status = sort_by_all(queue, &s, stop, arg);
	}
	if (status == GJ_OK)
	{
		take_order(&s, rowid, table);
		table->nrows = s.n;
		table->keys = *keys;
		gj_cpu_free(queue, table->keys.null, keys->nrows);
		table->keys.null = NULL;
	}
	free_sort(&s);
	if (status != GJ_OK)
		gj_cpu_hash_free(queue, table);
	return status;
}

GjStatus
gj_cpu_sort_rows(GjQueue *queue, const GjKeys *keys, uint32_t descending, bool (*stop) (void *),
				 void *arg, uint32_t *positions)
{
	GjSort		s = {.keys = keys,.n = keys->nrows,.descending = descending};
	GjStatus	status = GJ_OUT_OF_MEMORY;

	if (alloc_sort(&s))
	{
		for (uint32_t i = 0; i < s.n; i++)
			s.row[i] = i;
		status = sort_by_all(queue, &s, stop, arg);
	}
	if (status == GJ_OK)
		memcpy(positions, s.row, (size_t) s.n * sizeof(uint32_t));
	free_sort(&s);
	return status;
}

/* ---- probe */

typedef struct GjSortProbe
{
	const GjHashTable *table;
	const GjKeys *keys;
	const GjSortedMatch *match;
	uint64_t   *offset;
	uint32_t   *first;
	uint64_t   *item_sum;
} GjSortProbe;

/* Offsets count from the start of the item. */
static void
probe_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjSortProbe *p = arg;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, p->keys->nrows);
	uint64_t	sum = 0;

	for (uint32_t i = begin; i < end; i++)
	{
		p->offset[i] = sum;
		p->first[i] = 0;
		if (!p->keys->null[i])
			sum += gj_sorted_matches(p->match, p->table->keys.value, p->table->nrows,
									 p->keys->value, i, &p->first[i]);
	}
	p->item_sum[item] = sum;
}

GjStatus
gj_cpu_sort_probe(GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
				  const GjSortedMatch *match, uint64_t *offset, uint32_t *first, uint64_t *total)
{
	uint32_t	nitems = gj_items(keys->nrows);
	GjSortProbe p = {table, keys, match, offset, first, malloc((nitems + 1) * sizeof(uint64_t))};

	if (!p.item_sum)
		return GJ_OUT_OF_HOST_MEMORY;
	gj_for_items(queue, keys->nrows, probe_item, &p);
	gj_cpu_number_pairs(queue, p.item_sum, keys->nrows, offset, total);
	free(p.item_sum);
	return gj_take_row_error(queue);
}
