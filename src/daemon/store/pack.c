/*
 * pack.c
 *	  Packs the columns of complete fragments, as rows/expression.h says: integers; texts of which
 *	  there are few different ones as codes of a dictionary, others as offsets of their bytes.
 *	  Notes the bounds of integers.
 *
 * A dictionary belongs to a column of a fragment.  It lies in the fragment's heap, before its
 * values.  All that is packed goes to a new heap, where values lie one behind the other.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* Columns with so many different values in a fragment have no dictionary, */
#define GJ_DICTIONARY_MOST		65536u
/* nor have those where a value has fewer rows than that in the mean. */
#define GJ_DICTIONARY_ROWS		4u

/* What the steps below work on. */
typedef struct GjPackWork
{
	GjResident *store;
	GjWork	   *work;
	uint64_t	clock;
	GjFragment *fragment;
} GjPackWork;

/* A column that is packed, in memory of its own until it takes the place of the one before. */
static void
take_column(const GjPackWork *w, GjFragmentColumn *column, const GjColumn *packed, GjBuffer *data)
{
	GjBuffer	old = column->data;

	column->data = *data;
	column->packed = packed->packed;
	column->narrow = packed->narrow;
	column->base = packed->base;
	column->factor = packed->factor;
	gj_fragment_free_buffer(w->store, w->fragment, &old);
}

/* ---- integers */

/* The columns of a fragment whose values are measured; then those that pack, and how. */
typedef struct GjPackList
{
	uint32_t	n;
	uint32_t	number[GJ_MAX_COLUMNS];
	GjPackColumn column[GJ_MAX_COLUMNS];
	GjPacking	packing[GJ_MAX_COLUMNS];
	GjBuffer	memory[GJ_MAX_COLUMNS];
} GjPackList;

/* True if the bounds of values of a kind are noted. */
static bool
has_bounds(unsigned kind)
{
	return gj_kind_packs(kind) || kind == GJ_BOOL;
}

static void
note_bounds(const GjPackWork *w, const GjPackList *list)
{
	for (uint32_t i = 0; i < list->n; i++)
	{
		const GjPacking *packing = &list->packing[i];
		GjFragmentColumn *column = &w->fragment->columns[list->number[i]];

		column->low = packing->any ? packing->min : 1;
		column->high = packing->any ? packing->max : 0;
	}
}

/* Drops those from the list that had better stay as they are, and makes memory for the others. */
static void
choose_packed(const GjPackWork *w, GjPackList *list)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < list->n; i++)
	{
		GjPackColumn column = list->column[i];
		GjBuffer	memory = {NULL, 0};

		if (!gj_choose_packing(&column.from, &list->packing[i]))
			continue;
		/* one that there is no room for stays as it is */
		if (gj_fragment_alloc(w->store, w->clock, w->fragment,
							  w->fragment->nrows * column.from.packed, &memory) != GJ_OK)
			continue;
		column.to = memory.memory;
		list->column[n] = column;
		list->number[n] = list->number[i];
		list->memory[n++] = memory;
	}
	list->n = n;
}

/* Puts the packed columns in the place of the others, which nothing reads any more; or not. */
static void
take_packed(const GjPackWork *w, GjPackList *list, bool taken)
{
	pthread_mutex_lock(&w->store->memory->lock);
	for (uint32_t i = 0; i < list->n; i++)
		if (taken)
			take_column(w, &w->fragment->columns[list->number[i]], &list->column[i].from,
						&list->memory[i]);
		else
			gj_fragment_free_buffer(w->store, w->fragment, &list->memory[i]);
	pthread_mutex_unlock(&w->store->memory->lock);
}

static GjStatus
pack_integers(const GjPackWork *w)
{
	const GjColumnOps *ops = w->work->ops->columns;
	GjPackList *list = calloc(1, sizeof(GjPackList));
	GjStatus	status = GJ_OK;

	if (!list)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t c = 0; c < w->fragment->ncolumns; c++)
		if (has_bounds(w->fragment->columns[c].type.kind))
		{
			list->number[list->n] = c;
			list->column[list->n++] = (GjPackColumn) {gj_fragment_column(w->fragment, c, 0), NULL,
			(uint32_t) w->fragment->nrows};
		}
	if (list->n > 0)
		status = ops->measure(w->work->queue, list->column, list->n, list->packing);
	if (status == GJ_OK)
	{
		note_bounds(w, list);
		choose_packed(w, list);
	}
	else
		list->n = 0;
	if (list->n > 0)
	{
		gj_fragment_settle(w->store);
		status = ops->pack(w->work->queue, list->column, list->n);
		if (status == GJ_OK)
			status = w->work->ops->queues->sync(w->work->queue);
		take_packed(w, list, status == GJ_OK);
	}
	free(list);
	return status;
}

/* ---- texts */

/* A column of references, and what becomes of it: codes, offsets, or references as they are. */
typedef struct GjTexts
{
	uint32_t	number;			/* of the column */
	uint32_t	nvalues;		/* of its dictionary; 0: it has none */
	uint64_t   *values;			/* references to these; device */
	uint64_t	nbytes;			/* of the heap, with dictionary and what offsets share */
	uint64_t	plain_bytes;	/* of the heap, that its values would have as they are */
	GjBuffer	data;			/* codes or offsets; none: the column stays as it is */
	GjColumn	packed;			/* as `data` has it */
} GjTexts;

typedef struct GjTextList
{
	uint32_t	n;
	uint32_t	most;			/* values of a dictionary */
	GjTexts		texts[GJ_MAX_COLUMNS];
	GjBuffer	number;			/* uint32_t[nrows] */
	GjBuffer	values;			/* uint64_t[n * most] */
	GjBuffer	at;				/* uint64_t[nrows + 1] */
} GjTextList;

static GjStatus
reserve_for_texts(const GjPackWork *w, GjTextList *list)
{
	uint64_t	nrows = w->fragment->nrows;

	GJ_TRY(gj_buffer_reserve(w->work, &list->number, nrows * sizeof(uint32_t)));
	GJ_TRY(gj_buffer_reserve(w->work, &list->values,
							 (uint64_t) list->n * list->most * sizeof(uint64_t)));
	return gj_buffer_reserve(w->work, &list->at, (nrows + 1) * sizeof(uint64_t));
}

/* The values of a column: those of its dictionary, or of all rows; *n of them. */
static GjColumn
values_of(const GjPackWork *w, const GjTexts *texts, uint32_t *n)
{
	GjColumn	column = gj_fragment_column(w->fragment, texts->number, 0);

	*n = (uint32_t) w->fragment->nrows;
	if (texts->nvalues == 0)
		return column;
	*n = texts->nvalues;
	column.data = texts->values;
	column.nulls = NULL;
	return column;
}

/* Bytes before the values of a packed column: its dictionary, or what offsets share. */
static uint64_t
before_values(const GjPackWork *w, const GjTexts *texts)
{
	return texts->nvalues > 0 ? texts->nvalues * sizeof(uint64_t) :
		gj_before_values(&texts->packed, (uint32_t) w->fragment->nrows);
}

/* Finds the offsets of the values of a column one behind the other. */
static GjStatus
find_texts(const GjPackWork *w, const GjTextList *list, const GjTexts *texts, GjOffsets *offsets)
{
	uint32_t	n;
	GjColumn	column = values_of(w, texts, &n);

	return w->work->ops->columns->find_offsets(w->work->queue, &column, n, list->at.memory,
											   offsets);
}

/* Bytes that the values of a column have as they are. */
static GjStatus
measure_plain(const GjPackWork *w, const GjTextList *list, GjTexts *texts)
{
	GjWork	   *work = w->work;
	uint64_t   *at = list->at.memory;
	uint32_t	n;
	GjColumn	column = values_of(w, texts, &n);

	GJ_TRY(work->ops->exchange->ref_bytes(work->queue, column.data, n, at));
	GJ_TRY(work->ops->memory->copy_out(work->queue, &texts->plain_bytes, at + n,
									   sizeof(uint64_t)));
	return work->ops->queues->sync(work->queue);
}

/* The codes of a column, if a dictionary of n values is right for it and there is room. */
static GjStatus
make_codes(const GjPackWork *w, GjTextList *list, GjTexts *texts, uint32_t n)
{
	uint32_t	nrows = (uint32_t) w->fragment->nrows;
	GjPackColumn column = {{.data = list->number.memory,.kind = GJ_UINT4,.width = 4,
	.packed = gj_packed_bytes(n - 1),.factor = 1}, NULL, nrows};

	if (gj_fragment_alloc(w->store, w->clock, w->fragment, (uint64_t) nrows * column.from.packed,
						  &texts->data) != GJ_OK)
		return GJ_OK;
	gj_fragment_settle(w->store);
	column.to = texts->data.memory;
	texts->packed.packed = column.from.packed;
	texts->packed.factor = n;
	texts->nvalues = n;
	return w->work->ops->columns->pack(w->work->queue, &column, 1);
}

/* Numbers the values of column i of the list, and makes codes if these are few. */
static GjStatus
try_codes(const GjPackWork *w, GjTextList *list, uint32_t i)
{
	GjTexts    *texts = &list->texts[i];
	GjColumn	column = gj_fragment_column(w->fragment, texts->number, 0);
	uint32_t	n;

	if (list->most == 0)
		return GJ_OK;
	texts->values = (uint64_t *) list->values.memory + (uint64_t) i * list->most;
	GJ_TRY(w->work->ops->columns->number_values(w->work->queue, &column,
												(uint32_t) w->fragment->nrows, list->most,
												list->number.memory, texts->values, &n));
	return n <= list->most ? make_codes(w, list, texts, n) : GJ_OK;
}

/* Room for the offsets of a column, if these are good and there is some. */
static void
try_offsets(const GjPackWork *w, GjTexts *texts, const GjOffsets *offsets)
{
	uint32_t	nrows = (uint32_t) w->fragment->nrows;

	if (!gj_choose_offsets(&texts->packed, offsets, nrows))
		return;
	if (gj_fragment_alloc(w->store, w->clock, w->fragment,
						  ((uint64_t) nrows + 1) * texts->packed.packed, &texts->data) != GJ_OK)
		texts->packed.packed = 0;
}

/* Finds out what becomes of column i of the list. */
static GjStatus
choose_texts(const GjPackWork *w, GjTextList *list, uint32_t i)
{
	GjTexts    *texts = &list->texts[i];
	GjOffsets	offsets;

	GJ_TRY(try_codes(w, list, i));
	GJ_TRY(measure_plain(w, list, texts));
	GJ_TRY(find_texts(w, list, texts, &offsets));
	if (texts->nvalues == 0)
		try_offsets(w, texts, &offsets);
	texts->nbytes = !texts->packed.packed ? texts->plain_bytes :
		(before_values(w, texts) + offsets.nbytes + 7) & ~UINT64_C(7);
	return GJ_OK;
}

/* Moves the values of a column that stays as it is to `to`, which is `base` in the new heap. */
static GjStatus
move_plain(const GjPackWork *w, const GjTextList *list, const GjTexts *texts, uint8_t *to,
		   uint64_t base)
{
	const GjSplitOps *ops = w->work->ops->exchange;
	uint64_t   *refs = w->fragment->columns[texts->number].data.memory;
	uint32_t	n = (uint32_t) w->fragment->nrows;

	GJ_TRY(ops->ref_bytes(w->work->queue, refs, n, list->at.memory));
	return ops->move_refs(w->work->queue, refs, n, w->fragment->heap.memory, list->at.memory, to,
						  base);
}

/* Moves what a column has of the heap to `base` in the new one. */
static GjStatus
move_texts(const GjPackWork *w, const GjTextList *list, GjTexts *texts, uint8_t *heap,
		   uint64_t base)
{
	const GjColumnOps *ops = w->work->ops->columns;
	const uint64_t *at = list->at.memory;
	uint32_t	n;
	GjColumn	values = values_of(w, texts, &n);
	GjPackColumn to = {texts->packed, texts->data.memory, n};
	GjOffsets	offsets;
	uint64_t	first = base + before_values(w, texts);

	texts->packed.base = (int64_t) base;
	if (!texts->packed.packed)
		return move_plain(w, list, texts, heap + base, base);
	GJ_TRY(find_texts(w, list, texts, &offsets));
	GJ_TRY(ops->move_values(w->work->queue, &values, n, at, heap + first, first,
							texts->nvalues > 0 ? (uint64_t *) (heap + base) : NULL));
	if (texts->nvalues > 0)
		return GJ_OK;
	to.from.base = (int64_t) base;
	to.from.heap = heap;
	return ops->pack_offsets(w->work->queue, &to, at);
}

/* Moves all values to a heap of their own; *taken: it is there, and the columns are packed. */
static GjStatus
make_heap(const GjPackWork *w, GjTextList *list, bool *taken)
{
	GjFragment *fragment = w->fragment;
	GjBuffer	heap = {NULL, 0};
	uint64_t	nbytes = 0;
	uint64_t	at = 0;
	GjStatus	status = GJ_OK;

	for (uint32_t i = 0; i < list->n; i++)
		nbytes += list->texts[i].nbytes;
	if (nbytes > GJ_REF_MAX_OFFSET ||
		gj_fragment_alloc(w->store, w->clock, fragment, nbytes > 0 ? nbytes : 1, &heap) != GJ_OK)
		return GJ_OK;
	gj_fragment_settle(w->store);
	for (uint32_t i = 0; i < list->n && status == GJ_OK; at += list->texts[i++].nbytes)
		status = move_texts(w, list, &list->texts[i], heap.memory, at);
	if (status == GJ_OK)
		status = w->work->ops->queues->sync(w->work->queue);
	pthread_mutex_lock(&w->store->memory->lock);
	if (status == GJ_OK)
	{
		GjBuffer	old = fragment->heap;

		fragment->heap = heap;
		fragment->heap_used = nbytes;
		heap = old;
		for (uint32_t i = 0; i < list->n; i++)
			if (list->texts[i].packed.packed)
				take_column(w, &fragment->columns[list->texts[i].number], &list->texts[i].packed,
							&list->texts[i].data);
	}
	gj_fragment_free_buffer(w->store, fragment, &heap);
	pthread_mutex_unlock(&w->store->memory->lock);
	*taken = status == GJ_OK;
	return status;
}

/* Bytes of a value of its dictionary, in the mean. */
static double
mean_bytes(const GjTexts *texts)
{
	return texts->nvalues > 0 ? (double) texts->plain_bytes / texts->nvalues : 0;
}

/*
 * Notes what each column has of the heap, and would have unencoded: of the heap before, which had
 * `before` bytes, columns with a dictionary share by the length of their values.
 */
static void
note_heap(const GjPackWork *w, const GjTextList *list, uint64_t before)
{
	double		all = 0;

	for (uint32_t i = 0; i < list->n; i++)
	{
		const GjTexts *texts = &list->texts[i];

		all += mean_bytes(texts);
		if (texts->nvalues == 0)
			before -= texts->plain_bytes < before ? texts->plain_bytes : before;
	}
	for (uint32_t i = 0; i < list->n; i++)
	{
		const GjTexts *texts = &list->texts[i];
		GjFragmentColumn *column = &w->fragment->columns[texts->number];

		column->nvalues = texts->nvalues;
		column->heap_bytes = texts->nbytes;
		column->plain_heap = texts->nvalues == 0 ? texts->plain_bytes :
			all > 0 ? (uint64_t) ((double) before * mean_bytes(texts) / all) : 0;
	}
}

static GjStatus
pack_listed(const GjPackWork *w, GjTextList *list)
{
	uint64_t	before = w->fragment->heap_used;
	uint32_t	npacked = 0;
	bool		taken = false;
	GjStatus	status = reserve_for_texts(w, list);

	/* without the memory for it they stay as they are */
	if (status != GJ_OK)
		return status == GJ_OUT_OF_MEMORY ? GJ_OK : status;
	for (uint32_t i = 0; i < list->n && status == GJ_OK; i++)
	{
		status = choose_texts(w, list, i);
		npacked += list->texts[i].packed.packed > 0;
	}
	if (npacked > 0 && status == GJ_OK)
		status = make_heap(w, list, &taken);
	if (status == GJ_OK && (npacked == 0 || taken))
		note_heap(w, list, before);
	if (taken)
		return status;
	pthread_mutex_lock(&w->store->memory->lock);
	for (uint32_t i = 0; i < list->n; i++)
		gj_fragment_free_buffer(w->store, w->fragment, &list->texts[i].data);
	pthread_mutex_unlock(&w->store->memory->lock);
	return status;
}

/* What each column has of the heap, as long as it is not looked at: the same. */
static void
share_heap(GjFragment *fragment, const GjTextList *list)
{
	for (uint32_t i = 0; i < list->n; i++)
	{
		GjFragmentColumn *column = &fragment->columns[list->texts[i].number];

		column->heap_bytes = column->plain_heap = fragment->heap_used / list->n;
	}
}

static GjStatus
pack_texts(const GjPackWork *w)
{
	GjFragment *fragment = w->fragment;
	GjTextList *list = calloc(1, sizeof(GjTextList));
	GjStatus	status = GJ_OK;

	if (!list)
		return GJ_OUT_OF_HOST_MEMORY;
	list->most = (uint32_t) (fragment->nrows / GJ_DICTIONARY_ROWS);
	if (list->most > GJ_DICTIONARY_MOST)
		list->most = GJ_DICTIONARY_MOST;
	for (uint32_t c = 0; c < fragment->ncolumns; c++)
		if (fragment->columns[c].type.kind == GJ_REF)
			list->texts[list->n++].number = c;
	share_heap(fragment, list);
	if (list->n > 0)
		status = pack_listed(w, list);
	gj_buffer_free(w->work, &list->number);
	gj_buffer_free(w->work, &list->values);
	gj_buffer_free(w->work, &list->at);
	free(list);
	return status;
}

GjStatus
gj_fragment_pack(GjResident *store, GjWork *work, uint64_t clock, GjFragment *fragment)
{
	const GjPackWork w = {store, work, clock, fragment};

	if (fragment->nrows == 0)
		return GJ_OK;
	/* the last chunk may still be on its way, and others may be reading what they share with it */
	work->ops->queues->load_wait(work->queue);
	GJ_TRY(pack_integers(&w));
	return pack_texts(&w);
}
