/*
 * fill.c
 *	  Fills fragments with chunks: their memory, rows and pages; see store/store.h.
 *
 * A run fills fragments of its own (source/keep.c).  Nobody else can find them before
 * gj_resident_publish.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define GJ_BUFFER_UNIT		256

GjFragment *
gj_fragment_create(const GjWanted *wanted, uint32_t number, uint32_t npages)
{
	GjFragment *fragment = calloc(1, sizeof(GjFragment) + sizeof(GjFragmentPages) +
								  wanted->ncolumns * sizeof(GjFragmentColumn));

	if (!fragment)
		return NULL;
	fragment->pages = (GjFragmentPages *) (fragment->columns + wanted->ncolumns);
	fragment->pins = 1;
	fragment->relation = wanted->relation;
	fragment->number = number;
	fragment->npages = npages;
	fragment->map_lsn = UINT64_MAX;
	fragment->ncolumns = wanted->ncolumns;
	for (uint32_t c = 0; c < wanted->ncolumns; c++)
	{
		fragment->columns[c].key = wanted->keys[c];
		fragment->columns[c].type = wanted->types[c];
		fragment->columns[c].low = INT64_MIN;
		fragment->columns[c].high = INT64_MAX;
	}
	return fragment;
}

void
gj_fragment_discard(GjResident *store, GjFragment *fragment)
{
	gj_resident_unpin(store, &(GjPinned) {.fragment = fragment}, 1);
}

/* Allocates if the cache may have so much; *denied: it may, but the device has no memory. */
static GjStatus
try_alloc(GjResident *store, uint64_t clock, GjFragment *fragment, uint64_t nbytes,
		  GjBuffer *buffer, bool *denied)
{
	GjDeviceMemory *memory = store->memory;
	GjStatus	status = GJ_OUT_OF_MEMORY;

	*denied = false;
	pthread_mutex_lock(&memory->lock);
	if (gj_resident_reserve(store, nbytes, clock))
	{
		status = store->entry->ops->memory->alloc(store->queue, nbytes, &buffer->memory);
		*denied = status == GJ_OUT_OF_MEMORY;
	}
	if (status == GJ_OK)
	{
		buffer->nbytes = nbytes;
		memory->resident += nbytes;
		memory->pinned += nbytes;
		fragment->nbytes += nbytes;
	}
	pthread_mutex_unlock(&memory->lock);
	return status == GJ_OK ? GJ_OK : GJ_OUT_OF_MEMORY;
}

GjStatus
gj_fragment_alloc(GjResident *store, uint64_t clock, GjFragment *fragment, uint64_t nbytes,
				  GjBuffer *buffer)
{
	GjStatus	status;
	bool		denied;

	nbytes = (nbytes + (GJ_BUFFER_UNIT - 1)) & ~(uint64_t) (GJ_BUFFER_UNIT - 1);
	(void) gj_memory_look(store->memory, false);
	status = try_alloc(store, clock, fragment, nbytes, buffer, &denied);
	if (!denied)
		return status;
	/* another process has what was counted: what was used before this run makes room, or nothing */
	(void) gj_memory_look(store->memory, true);
	pthread_mutex_lock(&store->memory->lock);
	(void) gj_resident_give_up(store, nbytes, clock);
	pthread_mutex_unlock(&store->memory->lock);
	return try_alloc(store, clock, fragment, nbytes, buffer, &denied);
}

void
gj_fragment_settle(GjResident *store)
{
	pthread_mutex_lock(&store->memory->lock);
	(void) store->entry->ops->queues->sync(store->queue);
	pthread_mutex_unlock(&store->memory->lock);
}

/* Waits until what is queued on the lane is done. */
static GjStatus
wait_for_lane(GjWork *work, GjLane lane)
{
	if (lane == GJ_LANE_WORK)
		return work->ops->queues->sync(work->queue);
	work->ops->queues->load_wait(work->queue);
	return GJ_OK;
}

static GjStatus
copy_on_lane(GjWork *work, GjLane lane, void *to, const void *from, uint64_t nbytes)
{
	return lane == GJ_LANE_WORK ? work->ops->memory->copy_in(work->queue, to, from, nbytes) :
		work->ops->memory->load_in(work->queue, to, from, nbytes);
}

static GjStatus
clear_on_lane(GjWork *work, GjLane lane, void *to, uint64_t nbytes)
{
	return lane == GJ_LANE_WORK ? work->ops->memory->fill(work->queue, to, 0, nbytes) :
		work->ops->memory->load_fill(work->queue, to, 0, nbytes);
}

/* Where and how an append works. */
typedef struct GjAppend
{
	GjResident *store;
	GjWork	   *work;
	GjLane		lane;
	uint64_t	clock;
	GjFragment *fragment;
	const GjChunk *chunk;
	const GjChunkPages *pages;
} GjAppend;

/*
 * Makes a buffer larger, for use after gj_fragment_settle(), and keeps the first `used` bytes.
 * Waits if there are any.
 */
static GjStatus
grow_buffer(const GjAppend *a, GjBuffer *buffer, uint64_t used, uint64_t nbytes)
{
	GjBuffer	old = *buffer;
	GjBuffer	grown = {NULL, 0};
	GjStatus	status;

	if (old.memory && old.nbytes >= nbytes)
		return GJ_OK;
	GJ_TRY(gj_fragment_alloc(a->store, a->clock, a->fragment, nbytes > 0 ? nbytes : 1, &grown));
	*buffer = grown;
	if (!old.memory)
		return GJ_OK;
	gj_fragment_settle(a->store);
	status = wait_for_lane(a->work, a->lane);
	if (status == GJ_OK)
		status = a->work->ops->memory->copy(a->work->queue, grown.memory, old.memory, used);
	if (status == GJ_OK)
		status = a->work->ops->queues->sync(a->work->queue);
	pthread_mutex_lock(&a->store->memory->lock);
	gj_fragment_free_buffer(a->store, a->fragment, &old);
	pthread_mutex_unlock(&a->store->memory->lock);
	return status;
}

/* Room for rows: as many as all pages of the fragment should have, judged by those here. */
static GjStatus
make_rows_fit(const GjAppend *a)
{
	GjFragment *fragment = a->fragment;
	uint64_t	nrows = fragment->nrows;
	uint64_t	need = nrows + a->chunk->nrows;
	uint64_t	npages = fragment->nfilled + a->pages->n;
	uint64_t	capacity = need;

	if (need <= fragment->filling.capacity)
		return GJ_OK;
	if (npages < fragment->npages)
		capacity = need * fragment->npages / npages + need * fragment->npages / npages / 64 + 1024;
	for (uint32_t c = 0; c < fragment->ncolumns; c++)
	{
		GjFragmentColumn *column = &fragment->columns[c];

		GJ_TRY(grow_buffer(a, &column->data, nrows * column->type.width,
						   capacity * column->type.width));
		if (column->nulls.memory)
			GJ_TRY(grow_buffer(a, &column->nulls, nrows, capacity));
	}
	gj_fragment_settle(a->store);
	fragment->filling.capacity = capacity;
	return GJ_OK;
}

static GjStatus
append_column(const GjAppend *a, uint32_t c)
{
	const GjChunk *chunk = a->chunk;
	GjFragmentColumn *column = &a->fragment->columns[c];
	uint64_t	nrows = a->fragment->nrows;
	bool		has_nulls = chunk->has_nulls[c] && column->type.nullable;
	uint8_t    *at;

	GJ_TRY(copy_on_lane(a->work, a->lane,
						(uint8_t *) column->data.memory + nrows * column->type.width,
						chunk->slot + chunk->places[c].data,
						(uint64_t) chunk->nrows * column->type.width));
	if (!column->nulls.memory && !has_nulls)
		return GJ_OK;
	if (!column->nulls.memory)
	{
		GJ_TRY(grow_buffer(a, &column->nulls, 0, a->fragment->filling.capacity));
		gj_fragment_settle(a->store);
		if (nrows > 0)
			GJ_TRY(clear_on_lane(a->work, a->lane, column->nulls.memory, nrows));
	}
	at = (uint8_t *) column->nulls.memory + nrows;
	if (!has_nulls)
		return clear_on_lane(a->work, a->lane, at, chunk->nrows);
	return copy_on_lane(a->work, a->lane, at, chunk->slot + chunk->places[c].nulls, chunk->nrows);
}

static bool
has_refs(const GjFragment *fragment)
{
	bool		refs = false;

	for (uint32_t c = 0; c < fragment->ncolumns; c++)
		refs |= fragment->columns[c].type.kind == GJ_REF;
	return refs;
}

static GjStatus
append_heap(const GjAppend *a)
{
	GjFragment *fragment = a->fragment;
	const GjChunk *chunk = a->chunk;
	uint64_t	need = fragment->heap_used + chunk->heap_used;
	uint64_t	wanted = need * fragment->npages / (fragment->nfilled + a->pages->n) + need / 16;
	GjFragmentPart *parts;

	/* also where the columns leave no room for a heap: gj_fragment_finish checks the references */
	if (!has_refs(fragment))
		return GJ_OK;
	parts = realloc(fragment->filling.parts,
					(fragment->filling.nparts + 1) * sizeof(GjFragmentPart));
	if (!parts)
		return GJ_OUT_OF_HOST_MEMORY;
	fragment->filling.parts = parts;
	parts[fragment->filling.nparts++] = (GjFragmentPart) {(uint32_t) fragment->nrows, chunk->nrows,
	fragment->heap_used, chunk->heap_used};
	if (chunk->heap_used == 0)
		return GJ_OK;
	if (need > GJ_REF_MAX_OFFSET)
		return GJ_OUT_OF_MEMORY;
	if (need > fragment->heap.nbytes)
	{
		GJ_TRY(grow_buffer(a, &fragment->heap, fragment->heap_used, wanted > need ? wanted : need));
		gj_fragment_settle(a->store);
	}
	return copy_on_lane(a->work, a->lane, (uint8_t *) fragment->heap.memory + fragment->heap_used,
						chunk->slot + chunk->layout->heap, chunk->heap_used);
}

static void
note_pages(const GjAppend *a)
{
	GjFragment *fragment = a->fragment;
	GjFragmentPages *pages = fragment->pages;
	uint32_t	row = (uint32_t) fragment->nrows;

	for (uint32_t i = 0; i < a->pages->n; i++)
	{
		uint32_t	page = a->pages->first + i;
		uint16_t	count = a->pages->nrows[i] & ~GJ_PAGE_VISIBLE;

		pages->lsn[page] = a->pages->lsn[i];
		pages->first_row[page] = row;
		pages->row_count[page] = count;
		row += count;
		gj_page_set(pages->filled, page);
		if (a->pages->nrows[i] & GJ_PAGE_VISIBLE)
		{
			gj_page_set(pages->valid, page);
			fragment->nvalid++;
		}
	}
	for (uint32_t c = 0; c < fragment->ncolumns; c++)
		fragment->columns[c].toasted |= gj_is_toasted(a->pages, c);
	fragment->nfilled += a->pages->n;
	fragment->nrows += a->chunk->nrows;
	fragment->heap_used += a->chunk->heap_used;
	if (a->pages->map_lsn < fragment->map_lsn)
		fragment->map_lsn = a->pages->map_lsn;
}

GjStatus
gj_fragment_append(GjResident *store, GjWork *work, GjLane lane, uint64_t clock,
				   GjFragment *fragment, const GjChunk *chunk, const GjChunkPages *pages)
{
	GjAppend	a = {store, work, lane, clock, fragment, chunk, pages};

	GJ_TRY(make_rows_fit(&a));
	GJ_TRY(append_heap(&a));
	if (chunk->nrows > 0)
		for (uint32_t c = 0; c < fragment->ncolumns; c++)
			GJ_TRY(append_column(&a, c));
	note_pages(&a);
	return GJ_OK;
}

GjStatus
gj_fragment_finish(GjWork *work, GjLane lane, GjFragment *fragment)
{
	GJ_TRY(wait_for_lane(work, lane));
	for (uint32_t c = 0; c < fragment->ncolumns; c++)
	{
		uint64_t   *refs = fragment->columns[c].data.memory;

		if (fragment->columns[c].type.kind != GJ_REF)
			continue;
		for (uint32_t i = 0; i < fragment->filling.nparts; i++)
		{
			const GjFragmentPart *part = &fragment->filling.parts[i];

			if (part->nrows > 0)
				GJ_TRY(work->ops->columns->rebase_refs(work->queue, refs + part->first, part->nrows,
													   part->heap, part->heap_used));
		}
	}
	free(fragment->filling.parts);
	fragment->filling.parts = NULL;
	fragment->filling.nparts = 0;
	return work->ops->queues->sync(work->queue);
}

GjColumn
gj_fragment_column(const GjFragment *fragment, uint32_t c, uint64_t first)
{
	const GjFragmentColumn *from = &fragment->columns[c];
	GjColumn	column = {.kind = from->type.kind,.width = from->type.width,.packed = from->packed,
	.narrow = from->narrow,.base = from->base,.factor = from->factor};

	column.data = from->data.memory;
	column.nulls = from->nulls.memory;
	if (from->type.kind == GJ_REF)
		column.heap = fragment->heap.memory;
	gj_column_skip(&column, first);
	return column;
}
