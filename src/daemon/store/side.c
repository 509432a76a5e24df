/*
 * side.c
 *	  Cached build sides, and probe rows kept after an exchange: finds, publishes and evicts them;
 *	  see store/store.h.
 */
#include "internal.h"

#include "rows/hash.h"

#include <stdlib.h>
#include <string.h>

/* Runs, by the store's clock. */
#define GJ_LONG_AGO			64

/* Sides whose first fragment is of one file: queries with ever new constants would make more. */
#define GJ_MOST_OF_FILE		64

/* So many are compared to find one that is worth little. */
#define GJ_COMPARED			64

/* To build a row takes as long as to read so many (hash tables of the cpu device). */
#define GJ_ROWS_BUILT		4

/* ---- memory */

void
gj_side_discard(GjSide *side)
{
	free(side->columns);
	free(side->fragments);
	free(side->key);
	free(side);
}

static uint32_t
add_array(void **arrays, uint32_t n, const GjBuffer *buffer)
{
	if (buffer->memory)
		arrays[n++] = buffer->memory;
	return n;
}

uint32_t
gj_kept_arrays(const GjRelationColumn *columns, uint32_t n, const GjBuffer *heap, void **arrays)
{
	uint32_t	narrays = 0;

	for (uint32_t c = 0; c < n; c++)
	{
		narrays = add_array(arrays, narrays, &columns[c].data);
		narrays = add_array(arrays, narrays, &columns[c].nulls);
	}
	return add_array(arrays, narrays, heap);
}

uint64_t
gj_kept_bytes(const GjRelationColumn *columns, uint32_t n, const GjBuffer *heap)
{
	uint64_t	nbytes = heap->nbytes;

	for (uint32_t c = 0; c < n; c++)
		nbytes += columns[c].data.nbytes + columns[c].nulls.nbytes;
	return nbytes;
}

static void
free_buffer(GjResident *store, const GjBuffer *buffer)
{
	if (buffer->memory)
		store->entry->ops->memory->free(store->queue, buffer->memory, buffer->nbytes);
}

void
gj_kept_free(GjResident *store, const GjRelationColumn *columns, uint32_t n, const GjBuffer *heap)
{
	for (uint32_t c = 0; c < n; c++)
	{
		free_buffer(store, &columns[c].data);
		free_buffer(store, &columns[c].nulls);
	}
	free_buffer(store, heap);
}

/* Device memory of a side: buffers, and the table's arrays.  *arrays is the caller's to free. */
static uint32_t
side_arrays(const GjSide *side, void ***arrays)
{
	void	  **all = malloc((2 * side->ncolumns + 1 + GJ_TABLE_ARRAYS) * sizeof(void *));
	uint32_t	n;

	*arrays = all;
	if (!all)
		return 0;
	n = gj_kept_arrays(side->columns, side->ncolumns, &side->heap, all);
	return n + gj_table_arrays(&side->table, all + n);
}

static uint64_t
side_bytes(const GjSide *side)
{
	return side->table_bytes + gj_kept_bytes(side->columns, side->ncolumns, &side->heap);
}

/* Frees a side that nobody uses. */
static void
free_side(GjResident *store, GjSide *side)
{
	gj_kept_free(store, side->columns, side->ncolumns, &side->heap);
	store->entry->ops->tables->hash_free(store->queue, &side->table);
	store->memory->resident -= side->nbytes;
	gj_side_discard(side);
}

/* ---- giving up */

/*
 * What a side saves: rows that need not be read and built, for each byte, use and run since it was
 * last used.
 */
static double
worth(const GjResident *store, const GjSide *side)
{
	double		nrows = (double) side->nread + (double) side->nrows * GJ_ROWS_BUILT;
	double		age = (double) (store->clock - side->used_at) + 1;

	return nrows * (double) (side->hits + 1) / ((double) side->nbytes + 1) / age;
}

GjSide *
gj_side_cheapest(GjResident *store, uint64_t before)
{
	GjSide	   *cheapest = NULL;
	uint32_t	ncompared = 0;

	/* the next call looks at those that follow */
	for (uint32_t n = store->nsides; n > 0 && ncompared < GJ_COMPARED; n--)
	{
		GjSide	   *side;

		if (store->side_hand >= store->nsides)
			store->side_hand = 0;
		side = store->sides[store->side_hand++];
		if (side->pins > 0 || side->used_at >= before)
			continue;
		ncompared++;
		if (!cheapest || worth(store, side) < worth(store, cheapest))
			cheapest = side;
	}
	return cheapest;
}

/* Finds the side in the buckets of its key and its program. */
static struct GjSideBucket *
key_bucket(GjResident *store, const GjSide *side)
{
	return &store->side_by_key[gj_hash_bytes(side->nkey, side->key, side->nkey) % GJ_BUCKETS];
}

static struct GjSideBucket *
program_bucket(GjResident *store, uint64_t program)
{
	return &store->side_by_program[gj_hash_mix(program) % GJ_BUCKETS];
}

/* True if the fragment is one of the store's device. */
static bool
is_own(const GjResident *store, const GjSideFragment *fragment)
{
	return fragment->id >> GJ_FRAGMENT_DEVICE_SHIFT == store->entry->info.ordinal;
}

/* The published fragment, or NULL. */
static GjFragment *
fragment_of(GjResident *store, const GjSideFragment *fragment)
{
	return gj_resident_by_id(store, &fragment->relation, fragment->number, fragment->id);
}

/* Makes a side known, whose own fragments are there; false: out of memory. */
static bool
link_side(GjResident *store, GjSide *side)
{
	if (!gj_file_add_side(store, side))
		return false;
	LIST_INSERT_HEAD(key_bucket(store, side), side, of_key);
	LIST_INSERT_HEAD(program_bucket(store, side->program), side, of_program);
	for (uint32_t i = 0; i < side->nfragments; i++)
	{
		GjSideFragment *fragment = &side->fragments[i];

		fragment->side = is_own(store, fragment) ? side : NULL;
		if (fragment->side)
			LIST_INSERT_HEAD(&fragment_of(store, fragment)->sides, fragment, of_fragment);
	}
	side->published = true;
	return true;
}

void
gj_side_withdraw(GjResident *store, GjSide *side)
{
	gj_file_remove_side(store, side);
	LIST_REMOVE(side, of_key);
	LIST_REMOVE(side, of_program);
	for (uint32_t i = 0; i < side->nfragments; i++)
		if (side->fragments[i].side)
			LIST_REMOVE(&side->fragments[i], of_fragment);
	side->published = false;
	if (side->pins == 0)
		free_side(store, side);
}

/* True if it has rows of a relation (0: any) of a database (0: any). */
static bool
is_of(const GjSide *side, uint32_t database, uint32_t relation)
{
	for (uint32_t i = 0; i < side->nfragments; i++)
		if ((database == 0 || side->fragments[i].relation.database == database) &&
			(relation == 0 || side->fragments[i].relation.relation == relation))
			return true;
	return false;
}

uint64_t
gj_side_withdraw_of(GjResident *store, uint32_t database, uint32_t relation)
{
	uint64_t	nbytes = 0;

	/* what takes the place of one that goes was looked at before */
	for (uint32_t i = store->nsides; i-- > 0;)
	{
		GjSide	   *side = store->sides[i];

		if (!is_of(side, database, relation))
			continue;
		nbytes += side->nbytes;
		gj_side_withdraw(store, side);
	}
	return nbytes;
}

uint64_t
gj_side_withdraw_of_file(GjResident *store, const GjRelationKey *key)
{
	uint64_t	nbytes = 0;

	for (uint32_t i = store->nsides; i-- > 0;)
	{
		GjSide	   *side = store->sides[i];
		uint32_t	f = 0;

		while (f < side->nfragments &&
			   memcmp(&side->fragments[f].relation, key, sizeof(*key)) != 0)
			f++;
		if (f == side->nfragments)
			continue;
		nbytes += side->nbytes;
		gj_side_withdraw(store, side);
	}
	return nbytes;
}

void
gj_side_withdraw_all(GjResident *store, GjFragment *fragment)
{
	while (!LIST_EMPTY(&fragment->sides))
		gj_side_withdraw(store, LIST_FIRST(&fragment->sides)->side);
}

void
gj_side_unpin(GjResident *store, GjSide *side)
{
	pthread_mutex_lock(&store->memory->lock);
	if (--side->pins == 0)
	{
		store->memory->pinned -= side->nbytes;
		if (!side->published)
			free_side(store, side);
		if (store->memory->first)
			pthread_cond_broadcast(&store->memory->changed);
	}
	pthread_mutex_unlock(&store->memory->lock);
}

/* ---- finding and keeping; the lock is held by `find` */

static bool
same_pages(const uint64_t *x, const uint64_t *y)
{
	return x && y ? memcmp(x, y, GJ_PAGES_BYTES) == 0 : x == y;
}

/* The same is asked of the same tables, if perhaps of other fragments. */
static bool
same_key(const GjSide *side, const GjSide *like)
{
	return side->nkey == like->nkey && memcmp(side->key, like->key, like->nkey) == 0;
}

static bool
same_side(const GjSide *side, const GjSide *like)
{
	if (side->nfragments != like->nfragments || !same_key(side, like))
		return false;
	for (uint32_t i = 0; i < like->nfragments; i++)
		if (side->fragments[i].id != like->fragments[i].id ||
			side->fragments[i].table != like->fragments[i].table ||
			!same_pages(side->fragments[i].pages, like->fragments[i].pages))
			return false;
	return true;
}

/*
 * True if the side was made of a fragment that is no more: the other one has the same part of the
 * same table, on the same device, as another one.
 */
static bool
is_older(const GjSide *side, const GjSide *other)
{
	uint32_t	o = 0;

	/* both are sorted alike */
	for (uint32_t i = 0; i < side->nfragments; i++)
	{
		const GjSideFragment *x = &side->fragments[i];

		for (uint32_t k = 0; k < other->nfragments; k++)
		{
			const GjSideFragment *y = &other->fragments[(o + k) % other->nfragments];

			if (x->table != y->table || x->number != y->number ||
				x->id >> GJ_FRAGMENT_DEVICE_SHIFT != y->id >> GJ_FRAGMENT_DEVICE_SHIFT)
				continue;
			/* ids ascend */
			if (x->id < y->id)
				return true;
			o += k;
			break;
		}
	}
	return false;
}

/* Withdraws sides whose place this one takes: fragments have changed, perhaps elsewhere. */
static void
supersede(GjResident *store, GjSide *newer)
{
	GjSide	   *next;

	for (GjSide *side = LIST_FIRST(key_bucket(store, newer)); side; side = next)
	{
		next = LIST_NEXT(side, of_key);
		if (side->pins > 0 || !same_key(side, newer) || !is_older(side, newer))
			continue;
		/* who counts them asks about the table */
		newer->hits += side->hits;
		gj_side_withdraw(store, side);
	}
}

static GjSide *
find(GjResident *store, const GjSide *like)
{
	GjSide	   *side;

	LIST_FOREACH(side, key_bucket(store, like), of_key)
		if (same_side(side, like))
			break;
	return side;
}

uint32_t
gj_sides_of(GjDeviceMemory *memory, uint64_t program)
{
	uint32_t	sources = 0;
	GjResident *store;
	const GjSide *side;

	pthread_mutex_lock(&memory->lock);
	store = gj_store_of(memory);
	/* where others run as well, leases that are too small could fail them all */
	if (store && memory->nleases == 0 && !memory->first)
		LIST_FOREACH(side, program_bucket(store, program), of_program)
			if (side->program == program)
				sources |= 1u << side->source;
	pthread_mutex_unlock(&memory->lock);
	return sources;
}

GjSide *
gj_side_find(GjResident *store, const GjSide *like)
{
	GjSide	   *side;

	pthread_mutex_lock(&store->memory->lock);
	side = find(store, like);
	if (side && side->pins++ == 0)
		store->memory->pinned += side->nbytes;
	pthread_mutex_unlock(&store->memory->lock);
	return side;
}

void
gj_side_use(GjResident *store, GjSide *side, const GjSide *like)
{
	pthread_mutex_lock(&store->memory->lock);
	if (side->published)
	{
		LIST_REMOVE(side, of_program);
		LIST_INSERT_HEAD(program_bucket(store, like->program), side, of_program);
		side->file->counts.table_hits += side->source > 0;
	}
	side->program = like->program;
	side->source = like->source;
	side->hits++;
	side->used_at = store->clock;
	pthread_mutex_unlock(&store->memory->lock);
}

static uint64_t
hash_of(const GjSide *like)
{
	uint64_t	hash = gj_hash_bytes(like->nfragments, like->key, like->nkey);

	for (uint32_t i = 0; i < like->nfragments; i++)
	{
		const GjSideFragment *fragment = &like->fragments[i];

		hash = gj_hash_bytes(gj_hash_combine(hash, fragment->table), &fragment->id,
							 sizeof(fragment->id));
		hash = gj_hash_bytes(hash, fragment->pages, fragment->pages ? GJ_PAGES_BYTES : 0);
	}
	return hash;
}

/* The one with that hash, or NULL. */
static GjWantedBefore *
find_wanted(GjResident *store, uint64_t hash)
{
	for (uint32_t i = 0; i < GJ_WANTED_BEFORE; i++)
		if (store->wanted_before[i].hash == hash)
			return &store->wanted_before[i];
	return NULL;
}

bool
gj_side_again(GjResident *store, const GjSide *like)
{
	uint64_t	hash = hash_of(like);
	GjWantedBefore *wanted;
	bool		again;

	pthread_mutex_lock(&store->memory->lock);
	wanted = find_wanted(store, hash);
	again = wanted && wanted->refused == 0;
	if (!wanted)
		store->wanted_before[store->nwanted++ % GJ_WANTED_BEFORE] = (GjWantedBefore) {hash, 0};
	else if (wanted->refused > 0)
		wanted->refused--;
	pthread_mutex_unlock(&store->memory->lock);
	return again;
}

void
gj_side_refuse(GjResident *store, const GjSide *like)
{
	uint64_t	hash = hash_of(like);
	GjWantedBefore *wanted;

	pthread_mutex_lock(&store->memory->lock);
	wanted = find_wanted(store, hash);
	/* another run may have been faster */
	if (wanted && !find(store, like))
		wanted->refused = GJ_LONG_AGO;
	pthread_mutex_unlock(&store->memory->lock);
}

/*
 * True if the cache, and the device, have room for so many bytes that nobody leases, without `old`
 * bytes of what is resident.  The lock is held.
 */
static bool
has_room(const GjResident *store, uint64_t nbytes, uint64_t old)
{
	const GjDeviceMemory *memory = store->memory;

	return gj_cached_bytes(store) - old + nbytes <= store->limit &&
		memory->leased + memory->resident - old + nbytes <= memory->limit;
}

bool
gj_side_has_room(GjResident *store, GjSide *like, uint64_t nbytes)
{
	uint64_t	before;
	uint64_t	old = 0;
	bool		room;

	pthread_mutex_lock(&store->memory->lock);
	supersede(store, like);
	before = store->clock > GJ_LONG_AGO ? store->clock - GJ_LONG_AGO : 0;
	for (uint32_t i = 0; i < store->nsides && !has_room(store, nbytes, 0); i++)
		if (store->sides[i]->pins == 0 && store->sides[i]->used_at < before)
			old += store->sides[i]->nbytes;
	/* who waits for a lease comes first */
	room = !store->memory->first && has_room(store, nbytes, old);
	while (room && !has_room(store, nbytes, 0))
		gj_side_withdraw(store, gj_side_cheapest(store, before));
	pthread_mutex_unlock(&store->memory->lock);
	return room;
}

/* All fragments of the device are still there, and nobody has kept the same side meanwhile. */
static bool
is_wanted(GjResident *store, const GjSide *side)
{
	for (uint32_t i = 0; i < side->nfragments; i++)
		if (is_own(store, &side->fragments[i]) && !fragment_of(store, &side->fragments[i]))
			return false;
	return !find(store, side);
}

/*
 * True if the cache may grow by what the lease already has.  Only sides that were not used
 * since `clock` make room for it: fragments take longer to load than a side to build.
 */
static bool
make_room(GjResident *store, uint64_t nbytes, uint64_t clock)
{
	const GjDeviceMemory *memory = store->memory;

	if (nbytes > store->limit)
		return false;
	while (gj_cached_bytes(store) > store->limit - nbytes)
	{
		GjSide	   *side = gj_side_cheapest(store, clock);

		if (!side)
			return false;
		gj_side_withdraw(store, side);
	}
	/* who waits for a lease comes first */
	return memory->first == NULL;
}

/*
 * True if there are few enough sides of the file of this one.  Else the one goes that is worth least,
 * and of several the oldest.
 */
static bool
make_room_in_file(GjResident *store, const GjSide *newer)
{
	GjKeptFile *file = gj_file_find(store, &newer->fragments[0].relation);
	GjSide	   *cheapest = NULL;
	GjSide	   *side;

	if (!file || file->nsides < GJ_MOST_OF_FILE)
		return true;
	LIST_FOREACH(side, &file->sides, of_file)
		if (side->pins == 0 && (!cheapest || worth(store, side) <= worth(store, cheapest)))
			cheapest = side;
	if (cheapest)
		gj_side_withdraw(store, cheapest);
	return cheapest != NULL;
}

bool
gj_side_publish(GjResident *store, GjWork *work, uint64_t clock, GjSide *side)
{
	void	  **arrays;
	uint32_t	n = side_arrays(side, &arrays);
	bool		kept = false;

	side->nbytes = side_bytes(side);
	pthread_mutex_lock(&store->memory->lock);
	if (arrays && make_room(store, side->nbytes, clock) && is_wanted(store, side))
	{
		supersede(store, side);
		side->used_at = store->clock;
		kept = make_room_in_file(store, side) && link_side(store, side);
	}
	if (kept && work->ops->memory->adopt(store->queue, work->queue, arrays, n) == GJ_OK)
	{
		gj_lease_hand_over(work->lease, side->nbytes);
		side->pins = 1;
	}
	else if (kept)
	{
		/* its memory is the run's: nothing of it is freed here */
		side->pins = 1;
		gj_side_withdraw(store, side);
		side->pins = 0;
		kept = false;
	}
	pthread_mutex_unlock(&store->memory->lock);
	free(arrays);
	return kept;
}
