/*
 * join_match.c
 *	  Which tuples and which rows of a build side have a match: flags, one byte each.
 *
 * Threads set flags of the same row, but to the same value.
 */
#include <stdlib.h>

#include "cpu_device.h"

/* The arguments of all of them; each uses some. */
typedef struct GjMatch
{
	const uint64_t *offset;
	const uint32_t *first;
	const uint32_t *rows;
	const uint32_t *positions;
	uint64_t	cursor;
	uint64_t	n;				/* tuples, rows or positions */
	uint32_t	ntuples;
	uint64_t   *cover;
	uint64_t   *item_sum;
	uint8_t		value;
	uint8_t    *flags;
} GjMatch;

static inline void
set_flag(uint8_t *flag, uint8_t value)
{
	__atomic_store_n(flag, value, __ATOMIC_RELAXED);
}

/* ---- tuples */

static void
flag_counts_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjMatch *m = arg;
	uint64_t	begin = (uint64_t) item * GJ_ITEM_ROWS;
	uint64_t	end = gj_item_end(begin, m->n);

	for (uint64_t i = begin; i < end; i++)
		m->flags[i] = m->offset[i + 1] > m->offset[i];
}

GjStatus
gj_cpu_flag_counts(GjQueue *queue, const uint64_t *offset, uint32_t n, uint8_t *flags)
{
	GjMatch		m = {.offset = offset,.n = n,.flags = flags};

	gj_for_items(queue, n, flag_counts_item, &m);
	return GJ_OK;
}

static void
mark_tuples_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjMatch *m = arg;
	uint64_t	begin = (uint64_t) item * GJ_ITEM_ROWS;
	uint64_t	end = gj_item_end(begin, m->n);
	uint64_t	pair = m->cursor + m->positions[begin];
	uint32_t	low = 0;
	uint32_t	high = m->ntuples;

	/* the first tuple whose pairs end behind the first position */
	while (low < high)
	{
		uint32_t	mid = low + (high - low) / 2;

		if (m->offset[mid + 1] <= pair)
			low = mid + 1;
		else
			high = mid;
	}
	for (uint64_t i = begin; i < end; i++)
	{
		pair = m->cursor + m->positions[i];
		while (m->offset[low + 1] <= pair)
			low++;
		set_flag(&m->flags[low], 1);
	}
}

GjStatus
gj_cpu_mark_tuples(GjQueue *queue, const uint64_t *offset, uint32_t ntuples, uint64_t cursor,
				   const uint32_t *positions, uint32_t n, uint8_t *flags)
{
	GjMatch		m = {.offset = offset,.ntuples = ntuples,.cursor = cursor,
	.positions = positions,.n = n,.flags = flags};

	gj_for_items(queue, n, mark_tuples_item, &m);
	return GJ_OK;
}

/* ---- rows */

static void
mark_rows_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjMatch *m = arg;
	uint64_t	begin = (uint64_t) item * GJ_ITEM_ROWS;
	uint64_t	end = gj_item_end(begin, m->n);

	for (uint64_t i = begin; i < end; i++)
	{
		uint32_t	at = m->positions ? m->positions[i] : (uint32_t) i;

		set_flag(&m->flags[m->rows ? m->rows[at] : at], m->value);
	}
}

GjStatus
gj_cpu_mark_rows(GjQueue *queue, const uint32_t *rows, const uint32_t *positions, uint32_t n,
				 uint8_t value, uint8_t *flags)
{
	GjMatch		m = {.rows = rows,.positions = positions,.n = n,.value = value,.flags = flags};

	gj_for_items(queue, n, mark_rows_item, &m);
	return GJ_OK;
}

/* Neighbours with the same matches, as those of a hot key have, are noted once. */
static void
mark_ranges_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjMatch *m = arg;
	uint64_t	begin = (uint64_t) item * GJ_ITEM_ROWS;
	uint64_t	end = gj_item_end(begin, m->n);
	uint64_t	last_start = 0,
				last_end = 0;

	for (uint64_t i = begin; i < end; i++)
	{
		uint64_t	range_start = m->first[i];
		uint64_t	range_end = range_start + (m->offset[i + 1] - m->offset[i]);

		if (range_start == range_end || (range_start == last_start && range_end == last_end))
			continue;
		__atomic_fetch_add(&m->cover[range_start], 1, __ATOMIC_RELAXED);
		__atomic_fetch_sub(&m->cover[range_end], 1, __ATOMIC_RELAXED);
		last_start = range_start;
		last_end = range_end;
	}
}

GjStatus
gj_cpu_mark_ranges(GjQueue *queue, const uint64_t *offset, const uint32_t *first, uint32_t n,
				   uint64_t *cover)
{
	GjMatch		m = {.offset = offset,.first = first,.n = n,.cover = cover};

	gj_for_items(queue, n, mark_ranges_item, &m);
	return GJ_OK;
}

static void
sum_cover_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjMatch *m = arg;
	uint64_t	begin = (uint64_t) item * GJ_ITEM_ROWS;
	uint64_t	end = gj_item_end(begin, m->n);
	uint64_t	sum = 0;

	for (uint64_t i = begin; i < end; i++)
		sum += m->cover[i];
	m->item_sum[item] = sum;
}

static void
cover_rows_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjMatch *m = arg;
	uint64_t	begin = (uint64_t) item * GJ_ITEM_ROWS;
	uint64_t	end = gj_item_end(begin, m->n);
	uint64_t	sum = m->item_sum[item];

	for (uint64_t i = begin; i < end; i++)
	{
		sum += m->cover[i];
		if (sum > 0)
			set_flag(&m->flags[m->rows ? m->rows[i] : i], 1);
	}
}

GjStatus
gj_cpu_cover_rows(GjQueue *queue, const GjHashTable *table, uint64_t *cover, uint32_t n,
				  bool (*stop) (void *), void *arg, uint8_t *flags)
{
	uint32_t	nitems = gj_items(n);
	GjMatch		m = {.rows = table->rows,.n = n,.cover = cover,.flags = flags};
	GjPool	   *pool = queue->device->pool;
	uint64_t	sum = 0;
	bool		done;

	m.item_sum = malloc((nitems + 1) * sizeof(uint64_t));
	if (!m.item_sum)
		return GJ_OUT_OF_HOST_MEMORY;
	done = gj_pool_run(pool, nitems, sum_cover_item, &m, &queue->tile, stop, arg);
	for (uint32_t i = 0; i < nitems && done; i++)
	{
		uint64_t	of_item = m.item_sum[i];

		m.item_sum[i] = sum;
		sum += of_item;
	}
	done = done && gj_pool_run(pool, nitems, cover_rows_item, &m, &queue->tile, stop, arg);
	free(m.item_sum);
	return done ? GJ_OK : GJ_CANCELLED;
}

/* ---- selection */

GjStatus
gj_cpu_select_flags(GjQueue *queue, const uint8_t *flags, uint32_t n, uint8_t value,
					uint32_t *positions, uint32_t *npositions)
{
	uint32_t	count = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		positions[count] = i;
		count += flags[i] == value;
	}
	*npositions = count;
	return gj_take_row_error(queue);
}
