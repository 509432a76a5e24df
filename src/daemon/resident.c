/*
 * resident.c
 *	  The store of resident data of a device; see resident.h.
 */
#include "resident_store.h"

#include <stdlib.h>
#include <string.h>

/* Share of a GPU's memory that is filled with resident data unless gpujoin.cache_size says. */
#define GJ_CACHE_SHARE		0.8
/* The cpu device keeps less: its memory is the server's. */
#define GJ_CACHE_CPU		(UINT64_C(256) * 1024 * 1024)

#define GJ_CACHE_LINE		64
#define GJ_BUFFER_UNIT		256

/* ---- the store */

/* A program that does nothing: queues want one. */
static GjQueue *
open_queue(GjDeviceEntry *entry)
{
	GjProgram	none = {.magic = GJ_PROGRAM_MAGIC,.nbytes = sizeof(GjProgram)};
	GjQueue    *queue = NULL;
	GjErrorText why;

	return entry->ops->queue_open(entry->device, &none, &queue, &why) == GJ_OK ? queue : NULL;
}

static uint64_t
default_limit(const GjDeviceEntry *entry)
{
	uint64_t	share = (uint64_t) (entry->memory.limit * GJ_CACHE_SHARE);

	return entry->ops->kind == GJ_DEVICE_CPU && share > GJ_CACHE_CPU ? GJ_CACHE_CPU : share;
}

static bool give_up(GjResident *store, uint64_t nbytes, uint64_t before);

GjResident *
gj_resident_store(GjDeviceEntry *entry, uint64_t cache_size)
{
	GjDeviceMemory *memory = &entry->memory;
	GjResident *store;

	pthread_mutex_lock(&memory->lock);
	if (!memory->store && cache_size > 0)
	{
		store = calloc(1, sizeof(GjResident));
		if (store)
		{
			store->entry = entry;
			store->memory = memory;
			store->queue = open_queue(entry);
			if (store->queue)
				memory->store = store;
			else
				free(store);
		}
	}
	store = memory->store;
	if (store)
	{
		store->limit = cache_size == UINT64_MAX ? default_limit(entry) : cache_size;
		if (memory->resident > store->limit)
			(void) give_up(store, memory->resident - store->limit, UINT64_MAX);
	}
	pthread_mutex_unlock(&memory->lock);
	return cache_size > 0 ? store : NULL;
}

uint64_t
gj_resident_clock(GjResident *store)
{
	uint64_t	clock;

	pthread_mutex_lock(&store->memory->lock);
	clock = ++store->clock;
	pthread_mutex_unlock(&store->memory->lock);
	return clock;
}

/* ---- memory; the lock is held */

static void
free_buffer(GjResident *store, GjFragment *fragment, GjBuffer *buffer)
{
	if (!buffer->memory)
		return;
	store->entry->ops->free(store->queue, buffer->memory, buffer->nbytes);
	store->memory->resident -= buffer->nbytes;
	fragment->nbytes -= buffer->nbytes;
	if (fragment->pins > 0)
		store->memory->pinned -= buffer->nbytes;
	*buffer = (GjBuffer) {NULL, 0};
}

static void
free_fragment(GjResident *store, GjFragment *fragment)
{
	for (uint32_t c = 0; c < fragment->ncolumns; c++)
	{
		free_buffer(store, fragment, &fragment->columns[c].data);
		free_buffer(store, fragment, &fragment->columns[c].nulls);
	}
	free_buffer(store, fragment, &fragment->heap);
	free(fragment->parts);
	free(fragment);
}

static GjFragment **
bucket_of(GjResident *store, const GjRelationKey *relation, uint32_t number)
{
	uint64_t	h = (uint64_t) relation->filenode * UINT64_C(0x9E3779B97F4A7C15) + number;

	h ^= h >> 29;
	h *= UINT64_C(0xBF58476D1CE4E5B9);
	return &store->bucket[(h >> 32) & (GJ_BUCKETS - 1)];
}

static void
use_link(GjResident *store, GjFragment *fragment)
{
	fragment->older = store->newest;
	fragment->newer = NULL;
	if (store->newest)
		store->newest->newer = fragment;
	else
		store->oldest = fragment;
	store->newest = fragment;
	fragment->used_at = store->clock;
}

static void
use_unlink(GjResident *store, GjFragment *fragment)
{
	if (fragment->older)
		fragment->older->newer = fragment->newer;
	else
		store->oldest = fragment->newer;
	if (fragment->newer)
		fragment->newer->older = fragment->older;
	else
		store->newest = fragment->older;
}

/* Takes a fragment out of the store; it is freed now or when it is unpinned. */
static void
withdraw(GjResident *store, GjFragment *fragment)
{
	GjFragment **at = bucket_of(store, &fragment->relation, fragment->number);

	while (*at != fragment)
		at = &(*at)->next;
	*at = fragment->next;
	use_unlink(store, fragment);
	fragment->published = false;
	gj_side_withdraw_all(store, fragment);
	if (fragment->pins == 0)
		free_fragment(store, fragment);
}

/*
 * Gives up what was last used before a time, until `nbytes` are free.  What is freed can
 * be allocated at once by any queue.
 */
static bool
give_up(GjResident *store, uint64_t nbytes, uint64_t before)
{
	GjDeviceMemory *memory = store->memory;
	uint64_t	all = memory->resident;
	GjFragment *f = store->oldest;

	while (all - memory->resident < nbytes)
	{
		GjSide	   *side = gj_side_oldest(store, before);
		GjFragment *next;

		/* what can be made again of what stays goes first */
		if (side)
		{
			gj_side_withdraw(store, side);
			continue;
		}
		while (f && f->pins > 0)
			f = f->newer;
		if (!f || f->used_at >= before)
			break;
		next = f->newer;
		withdraw(store, f);
		f = next;
	}
	if (memory->resident < all)
		(void) store->entry->ops->sync(store->queue);
	return all - memory->resident >= nbytes;
}

bool
gj_resident_give_way(GjResident *store, uint64_t nbytes)
{
	return give_up(store, nbytes, UINT64_MAX);
}

/* Makes room for `nbytes`; what was used since `clock` stays. */
static bool
reserve(GjResident *store, uint64_t nbytes, uint64_t clock)
{
	GjDeviceMemory *memory = store->memory;
	uint64_t	room = memory->limit - memory->leased - memory->resident;
	uint64_t	missing = nbytes > room ? nbytes - room : 0;

	/* who waits for a lease comes first */
	if (memory->first || nbytes > store->limit)
		return false;
	if (memory->resident + nbytes > store->limit + missing)
		missing = memory->resident + nbytes - store->limit;
	return missing == 0 || give_up(store, missing, clock);
}

/* ---- finding */

/* The number of the column with that key, or -1. */
static int
find_column(const GjFragment *fragment, const GjColumnKey *key, const GjColumnType *type)
{
	for (uint32_t c = 0; c < fragment->ncolumns; c++)
	{
		const GjFragmentColumn *column = &fragment->columns[c];

		if (memcmp(column->key.hash, key->hash, sizeof(key->hash)) == 0 &&
			column->type.kind == type->kind && column->type.width == type->width)
			return (int) c;
	}
	return -1;
}

static bool
same_place(const GjFragment *fragment, const GjRelationKey *relation, uint32_t number)
{
	return fragment->number == number &&
		memcmp(&fragment->relation, relation, sizeof(*relation)) == 0;
}

/* All columns are there. */
static bool
covers(const GjFragment *fragment, const GjWanted *wanted)
{
	for (uint32_t c = 0; c < wanted->ncolumns; c++)
		if (find_column(fragment, &wanted->keys[c], &wanted->types[c]) < 0)
			return false;
	return true;
}

static void
pin(GjResident *store, GjFragment *fragment)
{
	if (fragment->pins++ == 0)
		store->memory->pinned += fragment->nbytes;
}

/* What a backend must know of a fragment.  The lock is held. */
static void
describe(GjFound *found, uint64_t map_lsn)
{
	const GjFragment *f = found->fragment;

	found->nvalid = f->nvalid;
	found->known = (GjKnownFragment) {
		.id = f->id,.map_lsn = f->map_lsn,.number = f->number,.npages = f->npages,
		.flags = (f->nvalid < f->npages ? GJ_KNOWN_BITS : 0) |
			(f->map_lsn != map_lsn ? GJ_KNOWN_LSNS : 0)
	};
}

/* What gj_resident_find reads of a fragment that has no more columns than are wanted. */
static void
prefetch(const GjFragment *fragment, uint32_t ncolumns)
{
	const char *end = (const char *) &fragment->columns[ncolumns];

	for (const char *line = (const char *) fragment; line < end; line += GJ_CACHE_LINE)
		__builtin_prefetch(line);
}

void
gj_resident_find(GjResident *store, const GjWanted *wanted, const uint32_t *numbers, uint32_t n,
				 const uint64_t *map_lsns, uint32_t per_map, GjFound *found)
{
	pthread_mutex_lock(&store->memory->lock);
	/* they lie anywhere: all are fetched at once, not one after the other */
	for (uint32_t i = 0; i < n; i++)
		found[i].fragment = *bucket_of(store, &wanted->relation, numbers[i]);
	for (uint32_t i = 0; i < n; i++)
		if (found[i].fragment)
			prefetch(found[i].fragment, wanted->ncolumns);
	for (uint32_t i = 0; i < n; i++)
	{
		GjFragment *f = found[i].fragment;

		while (f && !(same_place(f, &wanted->relation, numbers[i]) && covers(f, wanted)))
			f = f->next;
		found[i].fragment = f;
		if (!f)
			continue;
		pin(store, f);
		describe(&found[i], map_lsns ? map_lsns[numbers[i] / per_map] : f->map_lsn);
	}
	pthread_mutex_unlock(&store->memory->lock);
}

void
gj_resident_describe(GjResident *store, GjFound *found, uint64_t map_lsn, uint64_t *valid,
					 uint64_t *lsns)
{
	const GjFragment *f = found->fragment;
	uint64_t	id = found->known.id;

	pthread_mutex_lock(&store->memory->lock);
	describe(found, map_lsn);
	found->known.id = id;
	if (found->known.flags & GJ_KNOWN_BITS)
		memcpy(valid, f->pages->valid, sizeof(f->pages->valid));
	if (found->known.flags & GJ_KNOWN_LSNS)
		memcpy(lsns, f->pages->lsn, f->npages * sizeof(uint64_t));
	pthread_mutex_unlock(&store->memory->lock);
}

GjFragment *
gj_resident_by_id(GjResident *store, const GjRelationKey *relation, uint32_t number, uint64_t id)
{
	GjFragment *f = *bucket_of(store, relation, number);

	while (f && !(f->id == id && same_place(f, relation, number)))
		f = f->next;
	return f;
}

/* The lock is held. */
static void
note_use(GjResident *store, GjFragment *fragment, const GjUse *use)
{
	fragment->hits++;
	if (fragment->published)
	{
		use_unlink(store, fragment);
		use_link(store, fragment);
	}
	/* a backend that looked later knows better */
	if (use->map_lsn <= fragment->map_lsn)
		return;
	fragment->map_lsn = use->map_lsn;
	if (!use->pages)
		return;
	for (uint32_t i = 0; i < GJ_FRAGMENT_WORDS; i++)
		fragment->pages->valid[i] &= use->pages[i];
	fragment->nvalid = gj_pages_count(fragment->pages->valid);
}

void
gj_resident_used(GjResident *store, const GjPinned *used, const GjUse *uses, uint32_t n)
{
	pthread_mutex_lock(&store->memory->lock);
	for (uint32_t i = 0; i < n; i++)
		note_use(store, used[i].fragment, &uses[i]);
	pthread_mutex_unlock(&store->memory->lock);
}

/* The lock is held. */
static void
unpin(GjResident *store, GjFragment *fragment)
{
	if (--fragment->pins > 0)
		return;
	store->memory->pinned -= fragment->nbytes;
	if (!fragment->published)
		free_fragment(store, fragment);
	if (store->memory->first)
		pthread_cond_broadcast(&store->memory->changed);
}

void
gj_resident_unpin(GjResident *store, const GjPinned *pinned, uint32_t n)
{
	if (n == 0)
		return;
	pthread_mutex_lock(&store->memory->lock);
	for (uint32_t i = 0; i < n; i++)
		if (pinned[i].fragment)
			unpin(store, pinned[i].fragment);
	pthread_mutex_unlock(&store->memory->lock);
}

void
gj_resident_give_back(GjResident *store, GjPinned *used, const GjUse *uses, uint32_t n)
{
	pthread_mutex_lock(&store->memory->lock);
	for (uint32_t i = 0; i < n; i++)
	{
		GjFragment *fragment = used[i].fragment;

		if (!fragment || fragment->entry != store->entry)
			continue;
		if (uses)
			note_use(store, fragment, &uses[i]);
		unpin(store, fragment);
		used[i].fragment = NULL;
	}
	pthread_mutex_unlock(&store->memory->lock);
}

/* ---- keeping */

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
	}
	return fragment;
}

void
gj_fragment_discard(GjResident *store, GjFragment *fragment)
{
	gj_resident_unpin(store, &(GjPinned) {fragment, 0, NULL}, 1);
}

/* Allocates a buffer of a fragment that is being filled, for use after settle(). */
static GjStatus
alloc_buffer(GjResident *store, uint64_t clock, GjFragment *fragment, uint64_t nbytes,
			 GjBuffer *buffer)
{
	GjDeviceMemory *memory = store->memory;
	GjStatus	status = GJ_OUT_OF_MEMORY;

	nbytes = (nbytes + (GJ_BUFFER_UNIT - 1)) & ~(uint64_t) (GJ_BUFFER_UNIT - 1);
	pthread_mutex_lock(&memory->lock);
	if (reserve(store, nbytes, clock) &&
		store->entry->ops->alloc(store->queue, nbytes, &buffer->memory) == GJ_OK)
	{
		buffer->nbytes = nbytes;
		memory->resident += nbytes;
		memory->pinned += nbytes;
		fragment->nbytes += nbytes;
		status = GJ_OK;
	}
	pthread_mutex_unlock(&memory->lock);
	return status;
}

/* Waits until memory is there that was allocated: the run's queue must not be ahead of it. */
static void
settle(GjResident *store)
{
	pthread_mutex_lock(&store->memory->lock);
	(void) store->entry->ops->sync(store->queue);
	pthread_mutex_unlock(&store->memory->lock);
}

/* Waits until what is queued on the lane is done. */
static GjStatus
wait_for_lane(GjWork *work, GjLane lane)
{
	if (lane == GJ_LANE_WORK)
		return work->ops->sync(work->queue);
	work->ops->load_wait(work->queue);
	return GJ_OK;
}

static GjStatus
copy_on_lane(GjWork *work, GjLane lane, void *to, const void *from, uint64_t nbytes)
{
	return lane == GJ_LANE_WORK ? work->ops->copy_in(work->queue, to, from, nbytes) :
		work->ops->load_in(work->queue, to, from, nbytes);
}

static GjStatus
clear_on_lane(GjWork *work, GjLane lane, void *to, uint64_t nbytes)
{
	return lane == GJ_LANE_WORK ? work->ops->fill(work->queue, to, 0, nbytes) :
		work->ops->load_fill(work->queue, to, 0, nbytes);
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
 * Makes a buffer larger, for use after settle(), and keeps the first `used` bytes.  Waits if there
 * are any.
 */
static GjStatus
grow_buffer(const GjAppend *a, GjBuffer *buffer, uint64_t used, uint64_t nbytes)
{
	GjBuffer	old = *buffer;
	GjBuffer	grown = {NULL, 0};
	GjStatus	status;

	if (old.memory && old.nbytes >= nbytes)
		return GJ_OK;
	GJ_TRY(alloc_buffer(a->store, a->clock, a->fragment, nbytes > 0 ? nbytes : 1, &grown));
	*buffer = grown;
	if (!old.memory)
		return GJ_OK;
	settle(a->store);
	status = wait_for_lane(a->work, a->lane);
	if (status == GJ_OK)
		status = a->work->ops->copy(a->work->queue, grown.memory, old.memory, used);
	if (status == GJ_OK)
		status = a->work->ops->sync(a->work->queue);
	pthread_mutex_lock(&a->store->memory->lock);
	free_buffer(a->store, a->fragment, &old);
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

	if (need <= fragment->capacity)
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
	settle(a->store);
	fragment->capacity = capacity;
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
		GJ_TRY(grow_buffer(a, &column->nulls, 0, a->fragment->capacity));
		settle(a->store);
		if (nrows > 0)
			GJ_TRY(clear_on_lane(a->work, a->lane, column->nulls.memory, nrows));
	}
	at = (uint8_t *) column->nulls.memory + nrows;
	if (!has_nulls)
		return clear_on_lane(a->work, a->lane, at, chunk->nrows);
	return copy_on_lane(a->work, a->lane, at, chunk->slot + chunk->places[c].nulls, chunk->nrows);
}

static GjStatus
append_heap(const GjAppend *a)
{
	GjFragment *fragment = a->fragment;
	const GjChunk *chunk = a->chunk;
	uint64_t	need = fragment->heap_used + chunk->heap_used;
	uint64_t	wanted = need * fragment->npages / (fragment->nfilled + a->pages->n) + need / 16;
	GjFragmentPart *parts;

	if (chunk->layout->heap_size == 0)
		return GJ_OK;
	parts = realloc(fragment->parts, (fragment->nparts + 1) * sizeof(GjFragmentPart));
	if (!parts)
		return GJ_OUT_OF_HOST_MEMORY;
	fragment->parts = parts;
	parts[fragment->nparts++] = (GjFragmentPart) {(uint32_t) fragment->nrows, chunk->nrows,
	fragment->heap_used, chunk->heap_used};
	if (chunk->heap_used == 0)
		return GJ_OK;
	if (need > GJ_REF_MAX_OFFSET)
		return GJ_OUT_OF_MEMORY;
	if (need > fragment->heap.nbytes)
	{
		GJ_TRY(grow_buffer(a, &fragment->heap, fragment->heap_used, wanted > need ? wanted : need));
		settle(a->store);
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
		for (uint32_t i = 0; i < fragment->nparts; i++)
			if (fragment->parts[i].nrows > 0)
				GJ_TRY(work->ops->rebase_refs(work->queue, refs + fragment->parts[i].first,
											  fragment->parts[i].nrows, fragment->parts[i].heap,
											  fragment->parts[i].heap_used));
	}
	free(fragment->parts);
	fragment->parts = NULL;
	fragment->nparts = 0;
	return work->ops->sync(work->queue);
}

/* The old one has no column that the new one has not. */
static bool
supersedes(const GjFragment *fragment, const GjFragment *old)
{
	for (uint32_t c = 0; c < old->ncolumns; c++)
		if (find_column(fragment, &old->columns[c].key, &old->columns[c].type) < 0)
			return false;
	return true;
}

void
gj_resident_publish(GjResident *store, GjFragment *fragment)
{
	GjFragment **at;
	GjFragment *next;

	pthread_mutex_lock(&store->memory->lock);
	at = bucket_of(store, &fragment->relation, fragment->number);
	for (GjFragment *old = *at; old; old = next)
	{
		next = old->next;
		if (same_place(old, &fragment->relation, fragment->number) && supersedes(fragment, old))
			withdraw(store, old);
	}
	fragment->id = (uint64_t) store->entry->info.ordinal << GJ_FRAGMENT_DEVICE_SHIFT |
		++store->last_id;
	fragment->entry = store->entry;
	fragment->next = *at;
	*at = fragment;
	fragment->published = true;
	use_link(store, fragment);
	pthread_mutex_unlock(&store->memory->lock);
}

GjColumn
gj_fragment_column(const GjFragment *fragment, uint32_t c, uint64_t first)
{
	const GjFragmentColumn *from = &fragment->columns[c];
	GjColumn	column = {.kind = from->type.kind,.width = from->type.width};

	if (from->data.memory)
		column.data = (const uint8_t *) from->data.memory + first * from->type.width;
	if (from->nulls.memory)
		column.nulls = (const uint8_t *) from->nulls.memory + first;
	if (from->type.kind == GJ_REF)
		column.heap = fragment->heap.memory;
	return column;
}

/* ---- what users ask */

uint64_t
gj_resident_evict(GjDeviceEntry *entry, uint32_t database, uint32_t relation)
{
	GjDeviceMemory *memory = &entry->memory;
	uint64_t	nbytes = 0;
	GjFragment *next;
	GjSide	   *next_side;

	pthread_mutex_lock(&memory->lock);
	/* those of fragments on other devices too */
	for (GjSide *side = memory->store ? memory->store->sides : NULL; side; side = next_side)
	{
		next_side = side->next;
		if (!gj_side_is_of(side, database, relation))
			continue;
		nbytes += side->nbytes;
		gj_side_withdraw(memory->store, side);
	}
	for (GjFragment *f = memory->store ? memory->store->oldest : NULL; f; f = next)
	{
		next = f->newer;
		if ((database != 0 && f->relation.database != database) ||
			(relation != 0 && f->relation.relation != relation))
			continue;
		nbytes += f->nbytes;
		withdraw(memory->store, f);
	}
	pthread_mutex_unlock(&memory->lock);
	return nbytes;
}

/* The entry of a relation, added if there is none.  NULL: out of memory. */
static GjCached *
find_cached(GjCached **list, uint32_t *n, const GjRelationKey *relation)
{
	GjCached   *grown;

	for (uint32_t i = *n; i-- > 0;)
		if (memcmp(&(*list)[i].relation, relation, sizeof(*relation)) == 0)
			return &(*list)[i];
	if ((*n & (*n - 1)) == 0)
	{
		grown = realloc(*list, (*n ? *n * 2 : 1) * sizeof(GjCached));
		if (!grown)
			return NULL;
		*list = grown;
	}
	memset(&(*list)[*n], 0, sizeof(GjCached));
	(*list)[*n].relation = *relation;
	return &(*list)[(*n)++];
}

/* No other copy of the fragment, with other columns, comes before this one. */
static bool
is_first(GjResident *store, const GjFragment *fragment)
{
	const GjFragment *f = *bucket_of(store, &fragment->relation, fragment->number);

	while (!same_place(f, &fragment->relation, fragment->number))
		f = f->next;
	return f == fragment;
}

uint32_t
gj_resident_list(GjDeviceEntry *entry, GjCached **list)
{
	GjDeviceMemory *memory = &entry->memory;
	uint32_t	n = 0;

	*list = NULL;
	pthread_mutex_lock(&memory->lock);
	for (GjFragment *f = memory->store ? memory->store->newest : NULL; f; f = f->older)
	{
		GjCached   *cached = find_cached(list, &n, &f->relation);

		if (!cached)
			break;
		cached->device = entry->ops->kind;
		cached->ordinal = entry->info.ordinal;
		cached->nfragments++;
		if (is_first(memory->store, f))
			cached->npages += f->nvalid;
		cached->nbytes += f->nbytes;
		cached->hits += f->hits;
		for (uint32_t c = 0; c < f->ncolumns; c++)
			if (f->columns[c].key.attnum < GJ_CACHED_WORDS * 64)
				cached->attributes[f->columns[c].key.attnum / 64] |=
					UINT64_C(1) << f->columns[c].key.attnum % 64;
	}
	for (GjSide *side = memory->store ? memory->store->sides : NULL; side; side = side->next)
	{
		/* one of several tables: of the first */
		GjCached   *cached = find_cached(list, &n, &side->fragments[0].relation);

		if (!cached)
			break;
		cached->device = entry->ops->kind;
		cached->ordinal = entry->info.ordinal;
		cached->ntables++;
		cached->nbytes += side->nbytes;
		cached->table_hits += side->hits;
	}
	pthread_mutex_unlock(&memory->lock);
	return n;
}
