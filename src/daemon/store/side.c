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

/* ---- memory */

void
gj_side_discard(GjSide *side)
{
	free(side->columns);
	free(side->fragments);
	free(side->key);
	free(side);
}

/* Device memory of a side: buffers, and the table's arrays.  *arrays is the caller's to free. */
static uint32_t
side_arrays(const GjSide *side, void ***arrays)
{
	void	  **all = malloc((2 * side->ncolumns + 1 + GJ_TABLE_ARRAYS) * sizeof(void *));
	uint32_t	n = 0;

	*arrays = all;
	if (!all)
		return 0;
	for (uint32_t c = 0; c < side->ncolumns; c++)
	{
		if (side->columns[c].data.memory)
			all[n++] = side->columns[c].data.memory;
		if (side->columns[c].nulls.memory)
			all[n++] = side->columns[c].nulls.memory;
	}
	if (side->heap.memory)
		all[n++] = side->heap.memory;
	return n + gj_table_arrays(&side->table, all + n);
}

static uint64_t
side_bytes(const GjSide *side)
{
	uint64_t	nbytes = side->table_bytes + side->heap.nbytes;

	for (uint32_t c = 0; c < side->ncolumns; c++)
		nbytes += side->columns[c].data.nbytes + side->columns[c].nulls.nbytes;
	return nbytes;
}

static void
free_buffer(GjResident *store, const GjBuffer *buffer)
{
	if (buffer->memory)
		store->entry->ops->memory->free(store->queue, buffer->memory, buffer->nbytes);
}

/* Frees a side that nobody uses. */
static void
free_side(GjResident *store, GjSide *side)
{
	for (uint32_t c = 0; c < side->ncolumns; c++)
	{
		free_buffer(store, &side->columns[c].data);
		free_buffer(store, &side->columns[c].nulls);
	}
	free_buffer(store, &side->heap);
	store->entry->ops->tables->hash_free(store->queue, &side->table);
	store->memory->resident -= side->nbytes;
	gj_side_discard(side);
}

/* ---- giving up */

GjSide *
gj_side_oldest(GjResident *store, uint64_t before)
{
	GjSide	   *oldest = NULL;

	for (GjSide *side = store->sides; side; side = side->next)
		if (side->pins == 0 && side->used_at < before &&
			(!oldest || side->used_at < oldest->used_at))
			oldest = side;
	return oldest;
}

void
gj_side_withdraw(GjResident *store, GjSide *side)
{
	GjSide	  **at = &store->sides;

	while (*at != side)
		at = &(*at)->next;
	*at = side->next;
	side->published = false;
	if (side->pins == 0)
		free_side(store, side);
}

bool
gj_side_is_of(const GjSide *side, uint32_t database, uint32_t relation)
{
	for (uint32_t i = 0; i < side->nfragments; i++)
		if ((database == 0 || side->fragments[i].relation.database == database) &&
			(relation == 0 || side->fragments[i].relation.relation == relation))
			return true;
	return false;
}

static bool
is_part(const GjSide *side, const GjFragment *fragment)
{
	for (uint32_t i = 0; i < side->nfragments; i++)
		if (side->fragments[i].id == fragment->id)
			return true;
	return false;
}

void
gj_side_withdraw_all(GjResident *store, const GjFragment *fragment)
{
	GjSide	   *next;

	for (GjSide *side = store->sides; side; side = next)
	{
		next = side->next;
		if (is_part(side, fragment))
			gj_side_withdraw(store, side);
	}
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

	for (GjSide *side = store->sides; side; side = next)
	{
		next = side->next;
		if (side == newer || side->pins > 0 || !same_key(side, newer) || !is_older(side, newer))
			continue;
		/* who counts them asks about the table */
		newer->hits += side->hits;
		gj_side_withdraw(store, side);
	}
}

static GjSide *
find(GjResident *store, const GjSide *like)
{
	GjSide	   *side = store->sides;

	while (side && !same_side(side, like))
		side = side->next;
	return side;
}

uint32_t
gj_sides_of(GjDeviceMemory *memory, uint64_t program)
{
	uint32_t	sources = 0;

	pthread_mutex_lock(&memory->lock);
	/* where others run as well, leases that are too small could fail them all */
	for (const GjSide *side = gj_store_of(memory) && memory->nleases == 0 && !memory->first ?
		 gj_store_of(memory)->sides : NULL; side; side = side->next)
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

	return memory->resident - old + nbytes <= store->limit &&
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
	for (const GjSide *side = store->sides; side; side = side->next)
		if (side->pins == 0 && side->used_at < before)
			old += side->nbytes;
	/* who waits for a lease comes first */
	room = !store->memory->first && has_room(store, nbytes, old);
	while (room && !has_room(store, nbytes, 0))
		gj_side_withdraw(store, gj_side_oldest(store, before));
	pthread_mutex_unlock(&store->memory->lock);
	return room;
}

/* All fragments of the device are still there, and nobody has kept the same side meanwhile. */
static bool
is_wanted(GjResident *store, const GjSide *side)
{
	for (uint32_t i = 0; i < side->nfragments; i++)
		if (side->fragments[i].id >> GJ_FRAGMENT_DEVICE_SHIFT == store->entry->info.ordinal &&
			!gj_resident_by_id(store, &side->fragments[i].relation, side->fragments[i].number,
							   side->fragments[i].id))
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
	GjSide	   *oldest;

	while (nbytes > store->limit || memory->resident > store->limit - nbytes)
	{
		oldest = gj_side_oldest(store, clock);
		if (!oldest)
			return false;
		gj_side_withdraw(store, oldest);
	}
	/* who waits for a lease comes first */
	return memory->first == NULL;
}

bool
gj_side_publish(GjResident *store, GjWork *work, uint64_t clock, GjSide *side)
{
	void	  **arrays;
	uint32_t	n = side_arrays(side, &arrays);
	bool		kept = false;

	side->nbytes = side_bytes(side);
	pthread_mutex_lock(&store->memory->lock);
	if (arrays && make_room(store, side->nbytes, clock) && is_wanted(store, side) &&
		work->ops->memory->adopt(store->queue, work->queue, arrays, n) == GJ_OK)
	{
		gj_lease_hand_over(work->lease, side->nbytes);
		side->pins = 1;
		side->published = true;
		side->used_at = store->clock;
		side->next = store->sides;
		store->sides = side;
		supersede(store, side);
		kept = true;
	}
	pthread_mutex_unlock(&store->memory->lock);
	free(arrays);
	return kept;
}
