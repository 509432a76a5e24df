/*
 * order.c
 *	  The first rows in the order of some keys, and groups by the order of their keys.
 *
 * A heap with the last of the rows wanted so far on top: most rows are compared with that
 * one alone.
 */
#include <stdlib.h>
#include <string.h>

#include "device/group.h"
#include "device/order.h"
#include "cpu_device.h"

/* ---- rows */

typedef struct GjOrder
{
	const GjKeys *keys;
	const GjSortLimit *wanted;
	uint32_t   *heap;			/* positions; the last one in the order is heap[0] */
	uint32_t	n;
} GjOrder;

/* < 0 if row i comes before row j; rows that are equal keep their order. */
static int
compare(const GjOrder *o, uint32_t i, uint32_t j)
{
	int			order = gj_order_rows(o->keys, o->wanted->descending, i, j);

	return order != 0 ? order : (i > j) - (i < j);
}

/* Moves the row at `at` down to its place among the first n. */
static void
sift_down(GjOrder *o, uint32_t at, uint32_t n)
{
	uint32_t	row = o->heap[at];

	for (uint64_t child; (child = 2 * (uint64_t) at + 1) < n; at = (uint32_t) child)
	{
		if (child + 1 < n && compare(o, o->heap[child + 1], o->heap[child]) > 0)
			child++;
		if (compare(o, o->heap[child], row) <= 0)
			break;
		o->heap[at] = o->heap[child];
	}
	o->heap[at] = row;
}

static void
make_heap(GjOrder *o)
{
	for (uint32_t at = o->n / 2; at-- > 0;)
		sift_down(o, at, o->n);
}

static void
take_row(GjOrder *o, uint32_t row)
{
	if (o->n < o->wanted->limit)
	{
		o->heap[o->n++] = row;
		if (o->n == o->wanted->limit)
			make_heap(o);
	}
	else if (compare(o, row, o->heap[0]) < 0)
	{
		o->heap[0] = row;
		sift_down(o, 0, o->n);
	}
}

/* Sorts what is in the heap. */
static void
sort_heap(GjOrder *o)
{
	if (o->n < o->wanted->limit)
		make_heap(o);
	for (uint32_t n = o->n; n > 1;)
	{
		uint32_t	last = o->heap[0];

		o->heap[0] = o->heap[--n];
		o->heap[n] = last;
		sift_down(o, 0, n);
	}
}

/* Puts all ties of the last row where those of them are that were taken. */
static void
take_ties(GjOrder *o)
{
	uint32_t	last = o->heap[o->n - 1];
	uint32_t	n = o->n;

	while (n > 0 && gj_order_rows(o->keys, o->wanted->descending, o->heap[n - 1], last) == 0)
		n--;
	for (uint32_t i = 0; i < o->keys->nrows; i++)
		if (gj_order_ties(o->keys, o->wanted->descending, o->wanted->slack, i, last))
			o->heap[n++] = i;
	o->n = n;
}

static GjStatus
gj_cpu_sort_limit(GjQueue *queue, const GjKeys *keys, const GjSortLimit *wanted,
				  uint32_t *positions, uint32_t *n)
{
	GjOrder		o = {keys, wanted, positions, 0};

	for (uint32_t i = 0; i < keys->nrows; i++)
		if (!wanted->bounded || gj_order_passes(keys, wanted, i))
			take_row(&o, i);
	sort_heap(&o);
	if (wanted->ties && o.n == wanted->limit)
		take_ties(&o);
	*n = o.n;
	return gj_take_row_error(queue);
}

/* ---- groups */

typedef struct GjGroupOrder
{
	GjQueue    *queue;
	const GjGroups *groups;
	const GjKeys *keys;
} GjGroupOrder;

static void
sort_keys_item(void *arg, uint32_t item, const GjTile *tile)
{
	const GjGroupOrder *o = arg;
	const GjSortKey *spec = gj_program_array(o->queue->program, GjSortKey, sort_keys);
	uint32_t	ngroups = o->groups->rows.nrows;
	uint32_t	begin = item * GJ_ITEM_ROWS;
	uint32_t	end = gj_item_end(begin, ngroups);
	bool		fails = false;

	for (uint32_t k = 0; k < o->keys->nkeys; k++)
		for (uint32_t g = begin; g < end; g++)
			o->keys->value[k][g] = gj_group_sort_value(o->groups, &spec[k], g);
	for (uint32_t k = o->keys->nkeys; k < o->queue->program->nsort_keys; k++)
		for (uint32_t g = begin; g < end; g++)
			fails |= gj_group_sort_fails(o->groups, &spec[k], g);
	gj_note_row_error(o->queue, fails ? GJ_OVERFLOW : GJ_OK);
}

GjStatus
gj_cpu_group_sort_keys(GjQueue *queue, const GjGroups *groups, const GjKeys *keys)
{
	GjGroupOrder o = {queue, groups, keys};

	gj_for_items(queue, groups->rows.nrows, sort_keys_item, &o);
	return GJ_OK;
}

GjStatus
gj_cpu_group_bytes(GjQueue *queue, const GjGroups *groups, const uint32_t *positions, uint32_t n,
				   uint64_t *heap_at, uint64_t *nbytes)
{
	heap_at[0] = 0;
	for (uint32_t i = 0; i < n; i++)
		heap_at[i + 1] = heap_at[i] + gj_group_space(&groups->rows, positions[i]);
	*nbytes = heap_at[n];
	return gj_take_row_error(queue);
}

GjStatus
gj_cpu_group_keep(GjQueue *queue, const GjGroups *from, const uint32_t *positions, uint32_t n,
				  const uint64_t *heap_at, const GjGroups *to)
{
	uint32_t	naggregates = from->state[0] ? queue->program->naggregates : 0;

	for (uint32_t i = 0; i < n; i++)
	{
		gj_group_store(&from->rows, positions[i], to, i, to->heap_end ? heap_at[i] : 0);
		for (uint32_t a = 0; a < naggregates; a++)
			to->state[a][i] = from->state[a][positions[i]];
	}
	return GJ_OK;
}

const GjOrderOps gj_cpu_order = {
	.sort_limit = gj_cpu_sort_limit,
	.sort_rows = gj_cpu_sort_rows
};
