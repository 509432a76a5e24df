/*
 * pack.c
 *	  Packs the columns of complete fragments: integers as in rows/expression.h, texts of which there
 *	  are few different ones as codes of a dictionary.  Notes the bounds of integers.
 *
 * A dictionary belongs to a column of a fragment.  It lies in the fragment's heap, behind the bytes
 * of the other columns, which are copied to a new heap that has nothing else.
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

/* A column of references. */
typedef struct GjTexts
{
	uint32_t	number;			/* of the column */
	uint32_t	nvalues;		/* of its dictionary; 0: it has none */
	uint64_t   *refs;			/* to those, or of its rows; device */
	uint32_t	nrefs;
	uint64_t	nbytes;			/* that these refer to */
	GjBuffer	codes;
	GjColumn	packed;			/* as `codes` have it */
} GjTexts;

typedef struct GjTextList
{
	uint32_t	n;
	uint32_t	most;			/* values of a dictionary */
	GjTexts		texts[GJ_MAX_COLUMNS];
	GjBuffer	number;			/* uint32_t[nrows] */
	GjBuffer	values;			/* uint64_t[n * most] */
	GjBuffer	heap_at;		/* uint64_t[nrows + 1] */
} GjTextList;

static GjStatus
reserve_for_texts(const GjPackWork *w, GjTextList *list)
{
	uint64_t	nrows = w->fragment->nrows;

	GJ_TRY(gj_buffer_reserve(w->work, &list->number, nrows * sizeof(uint32_t)));
	GJ_TRY(gj_buffer_reserve(w->work, &list->values,
							 (uint64_t) list->n * list->most * sizeof(uint64_t)));
	return gj_buffer_reserve(w->work, &list->heap_at, (nrows + 1) * sizeof(uint64_t));
}

/* The codes of a column, if a dictionary of n values is right for it and there is room. */
static GjStatus
make_codes(const GjPackWork *w, GjTextList *list, GjTexts *texts, uint32_t n)
{
	uint32_t	nrows = (uint32_t) w->fragment->nrows;
	GjPackColumn column = {{.data = list->number.memory,.kind = GJ_UINT4,.width = 4,
	.packed = gj_packed_bytes(n - 1),.factor = 1}, NULL, nrows};

	if (gj_fragment_alloc(w->store, w->clock, w->fragment, (uint64_t) nrows * column.from.packed,
						  &texts->codes) != GJ_OK)
		return GJ_OK;
	gj_fragment_settle(w->store);
	column.to = texts->codes.memory;
	texts->packed.packed = column.from.packed;
	texts->packed.factor = n;
	texts->nvalues = n;
	return w->work->ops->columns->pack(w->work->queue, &column, 1);
}

/* Finds out what becomes of column i of the list. */
static GjStatus
choose_texts(const GjPackWork *w, GjTextList *list, uint32_t i)
{
	GjTexts    *texts = &list->texts[i];
	GjWork	   *work = w->work;
	GjColumn	column = gj_fragment_column(w->fragment, texts->number, 0);
	uint32_t	nrows = (uint32_t) w->fragment->nrows;
	uint64_t   *values = (uint64_t *) list->values.memory + (uint64_t) i * list->most;
	uint64_t   *heap_at = list->heap_at.memory;
	uint32_t	n;

	GJ_TRY(work->ops->columns->number_values(work->queue, &column, nrows, list->most,
											 list->number.memory, values, &n));
	if (n <= list->most)
		GJ_TRY(make_codes(w, list, texts, n));
	texts->refs = texts->nvalues > 0 ? values : w->fragment->columns[texts->number].data.memory;
	texts->nrefs = texts->nvalues > 0 ? n : nrows;
	GJ_TRY(work->ops->exchange->ref_bytes(work->queue, texts->refs, texts->nrefs, heap_at));
	GJ_TRY(work->ops->memory->copy_out(work->queue, &texts->nbytes, heap_at + texts->nrefs,
									   sizeof(uint64_t)));
	return work->ops->queues->sync(work->queue);
}

/* Moves the bytes of a column to `to`, which is `at` in the new heap, behind its dictionary. */
static GjStatus
move_texts(const GjPackWork *w, GjTextList *list, GjTexts *texts, uint8_t *heap, uint64_t *at)
{
	GjWork	   *work = w->work;
	uint64_t	ndictionary = (uint64_t) texts->nvalues * sizeof(uint64_t);
	uint64_t	base = *at + ndictionary;

	texts->packed.base = (int64_t) *at;
	GJ_TRY(work->ops->exchange->ref_bytes(work->queue, texts->refs, texts->nrefs,
										  list->heap_at.memory));
	GJ_TRY(work->ops->exchange->move_refs(work->queue, texts->refs, texts->nrefs,
										  w->fragment->heap.memory, list->heap_at.memory,
										  heap + base, base));
	if (ndictionary > 0)
		GJ_TRY(work->ops->memory->copy(work->queue, heap + *at, texts->refs, ndictionary));
	*at = base + texts->nbytes;
	return GJ_OK;
}

/* Moves all bytes to a heap of their own; *taken: it is there, and the columns are packed. */
static GjStatus
make_heap(const GjPackWork *w, GjTextList *list, bool *taken)
{
	GjFragment *fragment = w->fragment;
	GjBuffer	heap = {NULL, 0};
	uint64_t	nbytes = 0;
	uint64_t	at = 0;
	GjStatus	status = GJ_OK;

	for (uint32_t i = 0; i < list->n; i++)
		nbytes += list->texts[i].nvalues * sizeof(uint64_t) + list->texts[i].nbytes;
	if (nbytes > GJ_REF_MAX_OFFSET ||
		gj_fragment_alloc(w->store, w->clock, fragment, nbytes > 0 ? nbytes : 1, &heap) != GJ_OK)
		return GJ_OK;
	gj_fragment_settle(w->store);
	for (uint32_t i = 0; i < list->n && status == GJ_OK; i++)
		status = move_texts(w, list, &list->texts[i], heap.memory, &at);
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
			if (list->texts[i].nvalues > 0)
				take_column(w, &fragment->columns[list->texts[i].number], &list->texts[i].packed,
							&list->texts[i].codes);
	}
	gj_fragment_free_buffer(w->store, fragment, &heap);
	pthread_mutex_unlock(&w->store->memory->lock);
	*taken = status == GJ_OK;
	return status;
}

/* Bytes of a value of its dictionary, in the mean. */
static double
value_bytes(const GjTexts *texts)
{
	return texts->nvalues > 0 ? (double) texts->nbytes / texts->nvalues : 0;
}

/*
 * Notes what each column has of the heap, and would have without dictionaries: of the heap before,
 * which had `before` bytes, columns with a dictionary share by the length of their values.
 */
static void
note_heap(const GjPackWork *w, const GjTextList *list, uint64_t before)
{
	double		all = 0;

	for (uint32_t i = 0; i < list->n; i++)
	{
		all += value_bytes(&list->texts[i]);
		if (list->texts[i].nvalues == 0)
			before -= list->texts[i].nbytes < before ? list->texts[i].nbytes : before;
	}
	for (uint32_t i = 0; i < list->n; i++)
	{
		const GjTexts *texts = &list->texts[i];
		GjFragmentColumn *column = &w->fragment->columns[texts->number];

		column->nvalues = texts->nvalues;
		column->heap_bytes = texts->nbytes + texts->nvalues * sizeof(uint64_t);
		column->plain_heap = texts->nvalues == 0 ? texts->nbytes :
			all > 0 ? (uint64_t) ((double) before * value_bytes(texts) / all) : 0;
	}
}

static GjStatus
pack_listed(const GjPackWork *w, GjTextList *list)
{
	uint64_t	before = w->fragment->heap_used;
	uint32_t	ndictionaries = 0;
	bool		taken = false;
	GjStatus	status = reserve_for_texts(w, list);

	/* without the memory for it they stay as they are */
	if (status != GJ_OK)
		return status == GJ_OUT_OF_MEMORY ? GJ_OK : status;
	for (uint32_t i = 0; i < list->n && status == GJ_OK; i++)
	{
		status = choose_texts(w, list, i);
		ndictionaries += list->texts[i].nvalues > 0;
	}
	if (ndictionaries > 0 && status == GJ_OK)
		status = make_heap(w, list, &taken);
	if (status == GJ_OK && (ndictionaries == 0 || taken))
		note_heap(w, list, before);
	if (ndictionaries == 0 || taken)
		return status;
	pthread_mutex_lock(&w->store->memory->lock);
	for (uint32_t i = 0; i < list->n; i++)
		gj_fragment_free_buffer(w->store, w->fragment, &list->texts[i].codes);
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
	if (list->n > 0 && list->most > 0)
		status = pack_listed(w, list);
	gj_buffer_free(w->work, &list->number);
	gj_buffer_free(w->work, &list->values);
	gj_buffer_free(w->work, &list->heap_at);
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
