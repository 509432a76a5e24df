/*
 * fragment.c
 *	  The store of resident data of a device; see store/store.h.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* Share of a GPU's memory that is filled with resident data unless gpujoin.cache_size says. */
#define GJ_CACHE_SHARE		0.8
/* The cpu device keeps less: its memory is the server's. */
#define GJ_CACHE_CPU		(UINT64_C(256) * 1024 * 1024)

#define GJ_CACHE_LINE		64

/* Uses that make a fragment worth loading anew: during a vacuum each query finds it changed. */
#define GJ_WORTH_LOADING	4

/* ---- the store */

GjQueue *
gj_resident_open_queue(GjDeviceEntry *entry)
{
	/* a program that does nothing: queues want one */
	GjProgram	none = {.magic = GJ_PROGRAM_MAGIC,.nbytes = sizeof(GjProgram)};
	GjQueue    *queue = NULL;
	GjErrorText why;

	return entry->ops->queues->queue_open(entry->device, &none, &queue, &why) == GJ_OK ?
		queue : NULL;
}

static uint64_t
default_limit(const GjDeviceEntry *entry)
{
	uint64_t	share = (uint64_t) (entry->memory.limit * GJ_CACHE_SHARE);

	return entry->ops->kind == GJ_DEVICE_CPU && share > GJ_CACHE_CPU ? GJ_CACHE_CPU : share;
}

/* The evictor of the device's memory. */
static bool
give_way(void *store, uint64_t nbytes)
{
	return gj_resident_give_up(store, nbytes, UINT64_MAX);
}

GjResident *
gj_resident_store(GjDeviceEntry *entry, uint64_t cache_size)
{
	GjDeviceMemory *memory = &entry->memory;
	GjResident *store;

	pthread_mutex_lock(&memory->lock);
	if (!gj_store_of(memory) && cache_size > 0)
	{
		store = calloc(1, sizeof(GjResident));
		if (store)
		{
			store->entry = entry;
			store->memory = memory;
			store->queue = gj_resident_open_queue(entry);
			if (store->queue)
				memory->evictor = (GjEvictor) {give_way, store};
			else
				free(store);
		}
	}
	store = gj_store_of(memory);
	if (store)
	{
		store->limit = cache_size == UINT64_MAX ? default_limit(entry) : cache_size;
		if (gj_cached_bytes(store) > store->limit)
			(void) gj_resident_give_up(store, gj_cached_bytes(store) - store->limit, UINT64_MAX);
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

void
gj_fragment_free_buffer(GjResident *store, GjFragment *fragment, GjBuffer *buffer)
{
	if (!buffer->memory)
		return;
	store->entry->ops->memory->free(store->queue, buffer->memory, buffer->nbytes);
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
		gj_fragment_free_buffer(store, fragment, &fragment->columns[c].data);
		gj_fragment_free_buffer(store, fragment, &fragment->columns[c].nulls);
	}
	gj_fragment_free_buffer(store, fragment, &fragment->heap);
	free(fragment->filling.parts);
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
	fragment->use.older = store->newest;
	fragment->use.newer = NULL;
	if (store->newest)
		store->newest->use.newer = fragment;
	else
		store->oldest = fragment;
	store->newest = fragment;
	fragment->use.used_at = store->clock;
}

static void
use_unlink(GjResident *store, GjFragment *fragment)
{
	if (fragment->use.older)
		fragment->use.older->use.newer = fragment->use.newer;
	else
		store->oldest = fragment->use.newer;
	if (fragment->use.newer)
		fragment->use.newer->use.older = fragment->use.older;
	else
		store->newest = fragment->use.older;
}

static bool
same_place(const GjFragment *fragment, const GjRelationKey *relation, uint32_t number)
{
	return fragment->number == number &&
		memcmp(&fragment->relation, relation, sizeof(*relation)) == 0;
}

/* The copy of a fragment whose pages are counted: others have other columns of them.  Or NULL. */
static GjFragment *
counted_copy(GjResident *store, const GjRelationKey *relation, uint32_t number)
{
	GjFragment *f = *bucket_of(store, relation, number);

	while (f && !same_place(f, relation, number))
		f = f->next;
	return f;
}

/* Takes a fragment out of the store; it is freed now or when it is unpinned. */
static void
withdraw(GjResident *store, GjFragment *fragment)
{
	GjFragment **at = bucket_of(store, &fragment->relation, fragment->number);
	GjFragment *counted = counted_copy(store, &fragment->relation, fragment->number);

	while (*at != fragment)
		at = &(*at)->next;
	*at = fragment->next;
	if (counted == fragment)
	{
		counted = counted_copy(store, &fragment->relation, fragment->number);
		gj_file_add_pages(fragment->file,
						  (int64_t) (counted ? counted->nvalid : 0) - fragment->nvalid);
	}
	use_unlink(store, fragment);
	gj_side_withdraw_all(store, fragment);
	gj_file_remove(store, fragment);
	fragment->published = false;
	if (fragment->pins == 0)
		free_fragment(store, fragment);
}

bool
gj_resident_give_up(GjResident *store, uint64_t nbytes, uint64_t before)
{
	GjDeviceMemory *memory = store->memory;
	uint64_t	all = memory->resident;
	GjFragment *f = store->oldest;

	while (all - memory->resident < nbytes)
	{
		GjSide	   *side = gj_side_cheapest(store, before);
		GjFragment *next;

		/* what can be made again of what stays goes first */
		if (side)
		{
			gj_side_withdraw(store, side);
			continue;
		}
		while (f && f->pins > 0)
			f = f->use.newer;
		if (!f || f->use.used_at >= before)
			break;
		next = f->use.newer;
		withdraw(store, f);
		f = next;
	}
	if (memory->resident < all)
		(void) store->entry->ops->queues->sync(store->queue);
	return all - memory->resident >= nbytes;
}

bool
gj_resident_reserve(GjResident *store, uint64_t nbytes, uint64_t clock)
{
	GjDeviceMemory *memory = store->memory;
	uint64_t	taken = memory->leased + memory->resident + nbytes;
	uint64_t	missing = taken > memory->limit ? taken - memory->limit : 0;

	/* who waits for a lease comes first */
	if (memory->first || nbytes > store->limit)
		return false;
	if (gj_cached_bytes(store) + nbytes > store->limit + missing)
		missing = gj_cached_bytes(store) + nbytes - store->limit;
	return missing == 0 || gj_resident_give_up(store, missing, clock);
}

/* ---- finding */

/* All columns are there. */
static bool
covers(const GjFragment *fragment, const GjWanted *wanted, uint16_t *places)
{
	for (uint32_t c = 0; c < wanted->ncolumns; c++)
		if (gj_fragment_find(fragment, &wanted->keys[c], &wanted->types[c], &places[c]) < 0)
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
			(f->map_lsn != map_lsn ? GJ_KNOWN_LSNS : 0),
		.nlost = f->nlost
	};
}

static void
prefetch(const void *from, size_t nbytes)
{
	for (size_t at = 0; at < nbytes; at += GJ_CACHE_LINE)
		__builtin_prefetch((const char *) from + at);
}

/* What gj_resident_find, and who describes the columns then, reads of a fragment. */
static void
prefetch_fragment(const GjFragment *fragment, uint32_t ncolumns, const uint16_t *places)
{
	prefetch(fragment, offsetof(GjFragment, columns));
	for (uint32_t c = 0; c < ncolumns; c++)
		prefetch(&fragment->columns[places[c]], sizeof(GjFragmentColumn));
}

void
gj_resident_find(GjResident *store, const GjWanted *wanted, uint16_t *places,
				 const uint32_t *numbers, uint32_t n, const uint64_t *map_lsns, uint32_t per_map,
				 GjFound *found)
{
	pthread_mutex_lock(&store->memory->lock);
	/* they lie anywhere: all are fetched at once, not one after the other */
	for (uint32_t i = 0; i < n; i++)
		found[i].fragment = *bucket_of(store, &wanted->relation, numbers[i]);
	/* the first one tells where the columns of the others are */
	for (uint32_t i = 0; i < n; i++)
		if (found[i].fragment)
		{
			(void) covers(found[i].fragment, wanted, places);
			break;
		}
	for (uint32_t i = 0; i < n; i++)
		if (found[i].fragment)
			prefetch_fragment(found[i].fragment, wanted->ncolumns, places);
	for (uint32_t i = 0; i < n; i++)
	{
		GjFragment *f = found[i].fragment;

		while (f && !(same_place(f, &wanted->relation, numbers[i]) && covers(f, wanted, places)))
			f = f->next;
		found[i].fragment = f;
		if (!f)
			continue;
		pin(store, f);
		describe(&found[i], map_lsns[numbers[i] / per_map]);
	}
	pthread_mutex_unlock(&store->memory->lock);
}

void
gj_resident_describe(GjResident *store, GjFound *found, uint64_t map_lsn, uint64_t *valid,
					 uint64_t *lsns)
{
	GjFragment *f = found->fragment;
	uint64_t	id = found->known.id;

	pthread_mutex_lock(&store->memory->lock);
	describe(found, map_lsn);
	found->known.id = id;
	if (f->nlost == f->npages)
		f->nlost -= gj_lost_when_told(f->npages);
	if (found->known.flags & GJ_KNOWN_BITS)
		memcpy(valid, f->pages->valid, sizeof(f->pages->valid));
	if (found->known.flags & GJ_KNOWN_LSNS)
		memcpy(lsns, f->pages->lsn, f->npages * sizeof(uint64_t));
	pthread_mutex_unlock(&store->memory->lock);
}

bool
gj_resident_is_to_be_loaded(GjResident *store, GjFragment *fragment, uint64_t map_lsn)
{
	bool		first;

	pthread_mutex_lock(&store->memory->lock);
	first = fragment->map_lsn < map_lsn && fragment->loaded_for < map_lsn &&
		fragment->use.hits >= GJ_WORTH_LOADING;
	if (first)
		fragment->loaded_for = map_lsn;
	pthread_mutex_unlock(&store->memory->lock);
	return first;
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
	uint32_t	left;
	uint32_t	nvalid = fragment->nvalid;

	fragment->use.hits++;
	if (fragment->published)
	{
		fragment->file->counts.hits++;
		use_unlink(store, fragment);
		use_link(store, fragment);
	}
	left = fragment->npages - fragment->nlost;
	fragment->nlost += use->nlost < left ? use->nlost : left;
	/* a backend that looked later knows better */
	if (use->map_lsn <= fragment->map_lsn)
		return;
	fragment->map_lsn = use->map_lsn;
	if (!use->pages)
		return;
	for (uint32_t i = 0; i < GJ_FRAGMENT_WORDS; i++)
		fragment->pages->valid[i] &= use->pages[i];
	fragment->nvalid = gj_pages_count(fragment->pages->valid);
	if (fragment->published &&
		counted_copy(store, &fragment->relation, fragment->number) == fragment)
		gj_file_add_pages(fragment->file, (int64_t) fragment->nvalid - nvalid);
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
gj_resident_pin_again(GjFragment *fragment)
{
	GjDeviceMemory *memory = &fragment->entry->memory;

	pthread_mutex_lock(&memory->lock);
	fragment->pins++;
	pthread_mutex_unlock(&memory->lock);
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
gj_resident_give_back(GjDeviceMemory *memory, GjPinned *used, const GjUse *uses, uint32_t n)
{
	GjResident *store;

	pthread_mutex_lock(&memory->lock);
	store = gj_store_of(memory);
	for (uint32_t i = 0; i < n && store; i++)
	{
		GjFragment *fragment = used[i].fragment;

		if (!fragment || fragment->entry != store->entry)
			continue;
		if (uses)
			note_use(store, fragment, &uses[i]);
		unpin(store, fragment);
		used[i].fragment = NULL;
	}
	pthread_mutex_unlock(&memory->lock);
}

/* ---- keeping */

/* The old one has no column that the new one has not. */
static bool
supersedes(const GjFragment *fragment, const GjFragment *old)
{
	uint16_t	place = 0;

	for (uint32_t c = 0; c < old->ncolumns; c++)
		if (gj_fragment_find(fragment, &old->columns[c].key, &old->columns[c].type, &place) < 0)
			return false;
	return true;
}

void
gj_resident_publish(GjResident *store, GjFragment *fragment)
{
	GjFragment **at;
	GjFragment *next;
	GjFragment *counted;

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
	counted = counted_copy(store, &fragment->relation, fragment->number);
	/* without memory to count it, it goes with its last pin */
	if (gj_file_add(store, fragment))
	{
		gj_file_add_pages(fragment->file,
						  (int64_t) fragment->nvalid - (counted ? counted->nvalid : 0));
		fragment->next = *at;
		*at = fragment;
		fragment->published = true;
		use_link(store, fragment);
	}
	pthread_mutex_unlock(&store->memory->lock);
}

/* ---- what users ask */

/* Withdraws all fragments of a file; returns their bytes. */
static uint64_t
withdraw_fragments(GjResident *store, GjKeptFile *file)
{
	uint64_t	nbytes = 0;
	uint64_t	n = file->counts.nfragments;

	/* the file may go with the last of them */
	while (n-- > 0)
	{
		GjFragment *fragment = LIST_FIRST(&file->fragments);

		nbytes += fragment->nbytes;
		withdraw(store, fragment);
	}
	return nbytes;
}

uint64_t
gj_resident_evict(GjDeviceEntry *entry, uint32_t database, uint32_t relation)
{
	GjDeviceMemory *memory = &entry->memory;
	GjResident *store;
	uint64_t	nbytes = 0;

	pthread_mutex_lock(&memory->lock);
	store = gj_store_of(memory);
	if (store)
	{
		/* those of fragments on other devices too */
		nbytes = gj_side_withdraw_of(store, database, relation);
		/* what takes the place of a file that goes was looked at before */
		for (uint32_t i = store->nfiles; i-- > 0;)
		{
			const GjRelationKey *key;

			/* several may go with the sides of one */
			if (i >= store->nfiles)
				continue;
			key = &store->files[i]->counts.relation;
			if ((database == 0 || key->database == database) &&
				(relation == 0 || key->relation == relation))
				nbytes += withdraw_fragments(store, store->files[i]);
		}
	}
	pthread_mutex_unlock(&memory->lock);
	return nbytes;
}

uint64_t
gj_resident_evict_file(GjDeviceEntry *entry, const GjRelationKey *key)
{
	GjDeviceMemory *memory = &entry->memory;
	GjResident *store;
	GjKeptFile *file;
	uint64_t	nbytes = 0;

	pthread_mutex_lock(&memory->lock);
	store = gj_store_of(memory);
	if (store)
	{
		nbytes = gj_side_withdraw_of_file(store, key);
		file = gj_file_find(store, key);
		if (file)
			nbytes += withdraw_fragments(store, file);
	}
	pthread_mutex_unlock(&memory->lock);
	return nbytes;
}
