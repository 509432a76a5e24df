/*
 * store.h
 *	  Columns of tables, and hash tables over them, that stay in the memory of a device between
 *	  runs.
 *
 * A fragment holds some columns of up to GJ_FRAGMENT_BLOCKS blocks, and what was noted about each
 * page when it was read; the rows of a page lie next to each other.  Its rows never change once
 * it is published.  When pages are found changed, gpujoind no longer reports them.  When there
 * are many, a backend loads the fragment anew, and the new one replaces the old.  Backends decide
 * which pages are valid (../wire/resident.h).
 *
 * The lock of a device's memory account (lease.h) guards its store.  Every function here takes
 * that lock, unless its comment says that it is held.  A pinned fragment stays.  The store frees
 * memory through a queue of its own, so before unpinning, a run must wait until its queue has
 * finished reading the memory.
 */
#ifndef GJ_DAEMON_STORE_STORE_H
#define GJ_DAEMON_STORE_STORE_H

#include <string.h>
#include <sys/queue.h>

#include "daemon/base/base.h"

#define GJ_FRAGMENT_DEVICE_SHIFT 48

typedef struct GjResident GjResident;
typedef struct GjKeptFile GjKeptFile;
typedef struct GjSide GjSide;

/* Rows whose references are still relative to the heap of their chunk. */
typedef struct GjFragmentPart
{
	uint32_t	first;
	uint32_t	nrows;
	uint64_t	heap;			/* where the chunk's heap was copied to */
	uint32_t	heap_used;
} GjFragmentPart;

typedef struct GjFragmentColumn
{
	GjColumnKey key;
	GjColumnType type;
	GjBuffer	data;
	GjBuffer	nulls;			/* none: nothing is NULL */
	bool		toasted;		/* flat and as stored, values are not all the same */
	uint8_t		packed;			/* as in GjColumn; 0 until the fragment is complete */
	uint8_t		narrow;
	int64_t		base;
	int64_t		factor;
	/* of a complete fragment: the least and greatest value; low > high: all are NULL */
	int64_t		low;
	int64_t		high;
	/* of a complete fragment, for users */
	uint32_t	nvalues;		/* of the dictionary; 0: it has none */
	uint64_t	heap_bytes;		/* of the heap, with the dictionary */
	uint64_t	plain_heap;		/* that would be its own without one */
} GjFragmentColumn;

/* What was noted about the pages of a fragment. */
typedef struct GjFragmentPages
{
	uint64_t	filled[GJ_FRAGMENT_WORDS];
	uint64_t	valid[GJ_FRAGMENT_WORDS];
	uint64_t	lsn[GJ_FRAGMENT_BLOCKS];
	uint32_t	first_row[GJ_FRAGMENT_BLOCKS];
	uint16_t	row_count[GJ_FRAGMENT_BLOCKS];
} GjFragmentPages;

/* Of a fragment, until it is published. */
typedef struct GjFilling
{
	uint64_t	capacity;		/* rows */
	uint32_t	nparts;
	GjFragmentPart *parts;
	uint32_t	table;			/* of the source whose chunks fill it */
	uint64_t	last_slot;		/* there when the run has read so many slots; 0: not complete */
} GjFilling;

/* When a fragment was used. */
typedef struct GjFragmentUse
{
	struct GjFragment *older;	/* by last use; only while published */
	struct GjFragment *newer;
	uint64_t	used_at;		/* the store's clock */
	uint64_t	hits;
} GjFragmentUse;

typedef struct GjFragment
{
	/* who looks for a fragment reads this, and the columns */
	struct GjFragment *next;	/* of the same bucket, or built by the same run */
	GjRelationKey relation;
	uint32_t	number;
	uint32_t	npages;
	uint64_t	id;				/* the device's ordinal from GJ_FRAGMENT_DEVICE_SHIFT on */
	uint64_t	map_lsn;		/* the oldest of all chunks */
	uint64_t	loaded_for;		/* the map's LSN for which somebody was to load it anew */
	uint64_t	nbytes;			/* device memory */
	uint32_t	nvalid;			/* pages in `valid` */
	uint32_t	nlost;			/* see GjKnownFragment; halved when somebody is told of all of it */
	uint32_t	pins;

	GjFragmentUse use;
	GjDeviceEntry *entry;		/* the device, once it is published */
	uint64_t	nrows;
	bool		published;
	GjKeptFile *file;			/* that counts it; only while published */
	LIST_ENTRY(GjFragment) of_file;
	LIST_HEAD(, GjSideFragment) sides;	/* sides that are made of it; only while published */
	uint32_t	nfilled;		/* pages that have come; all of them once it is published */
	GjFragmentPages *pages;		/* behind the columns */

	GjFilling	filling;
	GjBuffer	heap;			/* bytes of the references of all columns */
	uint64_t	heap_used;
	uint32_t	ncolumns;
	GjFragmentColumn columns[];
} GjFragment;

/* True: it has the values that are wanted. */
static inline bool
gj_column_serves(const GjFragmentColumn *column, const GjColumnKey *key, const GjColumnType *type)
{
	return column->key.hash[0] == key->hash[0] && column->key.hash[1] == key->hash[1] &&
		(column->key.flat == key->flat || !column->toasted) &&
		column->type.kind == type->kind && column->type.width == type->width;
}

/*
 * The number of a fragment's column that has the values that are wanted, or -1.  *place, 0 at first:
 * where it was in the fragment before, for there it mostly is in the next one.
 */
static inline int
gj_fragment_find(const GjFragment *fragment, const GjColumnKey *key, const GjColumnType *type,
				 uint16_t *place)
{
	if (*place < fragment->ncolumns && gj_column_serves(&fragment->columns[*place], key, type))
		return *place;
	for (uint32_t c = 0; c < fragment->ncolumns; c++)
	{
		if (!gj_column_serves(&fragment->columns[c], key, type))
			continue;
		*place = (uint16_t) c;
		return (int) c;
	}
	return -1;
}

/* A fragment that a run has pinned. */
typedef struct GjPinned
{
	GjFragment *fragment;		/* NULL once used */
	uint32_t	table;			/* of the source */
	const uint64_t *pages;		/* that a build side has rows of, one bit each; NULL: all */
	bool		excluded;		/* no row passes the source's filter: none is read */
} GjPinned;

/* Copies pages (NULL: all, which have no copy) to *bits, which moves behind them. */
static inline const uint64_t *
gj_copy_pages(const uint64_t *pages, uint64_t **bits)
{
	uint64_t   *copy = *bits;

	if (!pages)
		return NULL;
	*bits += GJ_FRAGMENT_WORDS;
	memcpy(copy, pages, GJ_PAGES_BYTES);
	return copy;
}

/* The pages of a use; NULL: all, even if it names them one by one. */
static inline const uint64_t *
gj_use_pages(const GjUse *use, const GjFragment *fragment)
{
	return use->pages && !gj_pages_all(use->pages, fragment->npages) ? use->pages : NULL;
}

/* A fragment that was looked for, pinned, and what a backend must know of it. */
typedef struct GjFound
{
	GjFragment *fragment;		/* NULL: there is none */
	uint32_t	nvalid;			/* pages that were all-visible */
	GjKnownFragment known;		/* without flags: all were, by the map's LSN asked for */
} GjFound;

/* A fragment that a side was made of. */
typedef struct GjSideFragment
{
	GjRelationKey relation;
	uint32_t	number;
	uint32_t	table;			/* of the source: which of its columns were read */
	uint64_t	id;
	const uint64_t *pages;		/* whose rows it has, one bit each; NULL: all */
	GjSide	   *side;			/* published, and the fragment is on its device; else NULL */
	LIST_ENTRY(GjSideFragment) of_fragment;	/* if it has a side */
} GjSideFragment;

/*
 * A build side as it was built, all of its rows from fragments: the columns that are read
 * later, and the hash table.  Two runs that find the same fragments and pages, and ask the
 * same of them (the key), build the same side.  It goes when one of its fragments does, or when one
 * with the same key is made of newer ones.
 *
 * A side can be one part of what several devices have, whose rows were exchanged by key.  Then
 * fragments of all of them are named, and it goes with those of its own device; when another
 * one has gone, nobody finds it any more, and it makes room in its turn.
 *
 * Probe rows that were exchanged are such a part, too, without a table.
 */
struct GjSide
{
	/* the first six only while published */
	bool		published;
	uint32_t	at;				/* in the store's list of sides */
	GjKeptFile *file;			/* of its first fragment, which counts it */
	LIST_ENTRY(GjSide) of_file;
	LIST_ENTRY(GjSide) of_key;
	LIST_ENTRY(GjSide) of_program;
	uint32_t	pins;
	uint64_t	used_at;		/* the store's clock */
	uint64_t	hits;
	uint64_t	nbytes;			/* device memory */
	uint64_t	program;		/* who used it last: gj_program_identity, and its source */
	uint32_t	source;
	uint32_t	nfragments;
	GjSideFragment *fragments;	/* by table, number and id; one block with their pages */
	uint32_t	nkey;			/* bytes of the key */
	uint8_t    *key;
	uint64_t	nloaded;		/* its rows, before a filter of the build */
	uint64_t	nread;			/* rows that the run took from its device's fragments, or chunks */
	uint32_t	nrows;			/* of these: passed the filter */
	uint32_t	ncolumns;
	GjRelationColumn *columns;
	GjBuffer	heap;
	uint64_t	heap_used;
	GjHashTable table;
	uint64_t	table_bytes;
};

/* What is looked for: fragments of a relation with all of these columns. */
typedef struct GjWanted
{
	GjRelationKey relation;
	uint32_t	ncolumns;
	const GjColumnKey *keys;
	const GjColumnType *types;
} GjWanted;

/*
 * The store of a device, made if there is none, with room for cache_size bytes, or the
 * default if that is UINT64_MAX.  NULL: it keeps nothing.
 */
extern GjResident *gj_resident_store(GjDeviceEntry *entry, uint64_t cache_size);

/* The store's clock: fragments used since are not given up to keep others. */
extern uint64_t gj_resident_clock(GjResident *store);

/*
 * Looks for the fragments of n numbers, to found[n].  places[ncolumns]: as for gj_fragment_find.
 * map_lsns are those of the pages of the visibility map, per_map fragments each, from fragment 0 on.
 */
extern void gj_resident_find(GjResident *store, const GjWanted *wanted, uint16_t *places,
							 const uint32_t *numbers, uint32_t n, const uint64_t *map_lsns,
							 uint32_t per_map, GjFound *found);

/*
 * What a backend must know of a fragment that was found, as it is now, beside its id: copies
 * valid[GJ_FRAGMENT_WORDS] and lsns[GJ_FRAGMENT_BLOCKS] if the flags say so.
 */
extern void gj_resident_describe(GjResident *store, GjFound *found, uint64_t map_lsn,
								 uint64_t *valid, uint64_t *lsns);

/*
 * True if a fragment that was found has an older LSN of the map than this, was of some use since it
 * was loaded, and nobody was to load it anew for this LSN: now the caller is.
 */
extern bool gj_resident_is_to_be_loaded(GjResident *store, GjFragment *fragment, uint64_t map_lsn);

/* Notes uses, and that their pages are what is valid where the map's LSN is newer than known. */
extern void gj_resident_used(GjResident *store, const GjPinned *used, const GjUse *uses,
							 uint32_t n);

/* Pins a fragment that is published and pinned once more. */
extern void gj_resident_pin_again(GjFragment *fragment);

/* Unpins those that are not NULL. */
extern void gj_resident_unpin(GjResident *store, const GjPinned *pinned, uint32_t n);

static inline void
gj_resident_unpin_one(GjResident *store, GjFragment *fragment)
{
	const GjPinned one = {fragment, 0, NULL, false};

	gj_resident_unpin(store, &one, 1);
}

/*
 * Notes uses (NULL: there were none) of the fragments that lie on the device of this memory, and
 * unpins them: they are NULL then, as may be others.
 */
extern void gj_resident_give_back(GjDeviceMemory *memory, GjPinned *used, const GjUse *uses,
								  uint32_t n);

/* A fragment to be filled, unpublished and pinned; NULL: out of host memory. */
extern GjFragment *gj_fragment_create(const GjWanted *wanted, uint32_t number, uint32_t npages);

/*
 * Appends a chunk and its pages, which were checked; `clock` is that of the run's start.
 * Queues copies on the lane, and may wait for it.  GJ_OUT_OF_MEMORY: there is no room to
 * keep it; the fragment is then good for nothing but gj_fragment_discard.
 */
extern GjStatus gj_fragment_append(GjResident *store, GjWork *work, GjLane lane, uint64_t clock,
								   GjFragment *fragment, const GjChunk *chunk,
								   const GjChunkPages *pages);

/*
 * After all pages have come, and all is queued that reads the rows of its chunks: makes the
 * references of its columns its own, and waits for that.  For a fragment that has some: nparts > 0.
 */
extern GjStatus gj_fragment_finish(GjWork *work, GjLane lane, GjFragment *fragment);

/*
 * Packs the columns of a complete fragment that take less room then, and notes the bounds of their
 * values.  Waits for all that is queued, and frees what is no longer needed.  Without memory for it,
 * they stay as they are.
 */
extern GjStatus gj_fragment_pack(GjResident *store, GjWork *work, uint64_t clock,
								 GjFragment *fragment);

/* Frees an unpublished fragment, which no queued work uses any more. */
extern void gj_fragment_discard(GjResident *store, GjFragment *fragment);

/*
 * Makes a filled fragment known, in the place of those that it supersedes.  No queued work
 * writes it any more.  It stays pinned.
 */
extern void gj_resident_publish(GjResident *store, GjFragment *fragment);

/* The side with all that `like` has but memory, pinned, or NULL. */
extern GjSide *gj_side_find(GjResident *store, const GjSide *like);

/* Notes that a pinned side is used, for the program and the source of `like`. */
extern void gj_side_use(GjResident *store, GjSide *side, const GjSide *like);

/*
 * The sources, one bit each, of which the device has a side that the program used last: a guess at
 * which ones a run of it need not build.  None while there are other runs.
 */
extern uint32_t gj_sides_of(GjDeviceMemory *memory, uint64_t program);

/*
 * Keeps a side, if there is room: its memory, taken from the run's lease and queue, becomes
 * the store's, and the struct too; it is pinned.  No queued work writes it any more.
 */
extern bool gj_side_publish(GjResident *store, GjWork *work, uint64_t clock, GjSide *side);

extern void gj_side_unpin(GjResident *store, GjSide *side);

/* True if one like it, with all but memory, was asked for before: the last 256 are remembered. */
extern bool gj_side_again(GjResident *store, const GjSide *like);

/* It could not be kept: the answer is no for the next 64 times. */
extern void gj_side_refuse(GjResident *store, const GjSide *like);

/*
 * True if it can be kept now, with so many bytes, and nothing is given up for that but sides whose
 * place it takes, or that none of the last 64 runs has used.
 */
extern bool gj_side_has_room(GjResident *store, GjSide *like, uint64_t nbytes);

/* Frees a side that was not published, but for device memory. */
extern void gj_side_discard(GjSide *side);

/* Rows that a run has left on its device for others: they stay until they are dropped. */
typedef struct GjKeptRows
{
	GjDeviceEntry *entry;
	GjResident *store;
	GjRelation	relation;
	uint64_t	nbytes;			/* device memory */
	GjMemoryQuota quota;		/* which has it taken */
} GjKeptRows;

/*
 * Keeps rows: the memory of the relation, taken from the run's lease and queue, becomes the
 * store's, and the relation is empty then.  No queued work writes it any more.  NULL, with nothing
 * changed: the device has no store, or a share of its memory too small for them.
 */
extern GjKeptRows *gj_rows_keep(GjDeviceEntry *entry, GjWork *work, GjRelation *relation);

/* True if rows of so many bytes may have room so. */
extern bool gj_rows_fit(GjDeviceEntry *entry, const GjWork *work, uint64_t nbytes);

/* Frees them: no queued work reads them any more. */
extern void gj_rows_drop(GjKeptRows *rows);

/* Bytes of them on a device: nothing makes room there for a lease. */
extern uint64_t gj_rows_kept(GjDeviceEntry *entry);

/* A queue of its own on the device, to be closed by the caller; NULL: there is none. */
extern GjQueue *gj_resident_open_queue(GjDeviceEntry *entry);

/* Describes column c from a row on. */
extern GjColumn gj_fragment_column(const GjFragment *fragment, uint32_t c, uint64_t first);

/* Gives up what belongs to a database (0: all) and relation (0: all).  Returns bytes. */
extern uint64_t gj_resident_evict(GjDeviceEntry *entry, uint32_t database, uint32_t relation);

/*
 * Copies the keys of at most `max` files, from number `first` on; returns how many.  Which file has
 * which number changes as files come and go.
 */
extern uint32_t gj_resident_files(GjDeviceEntry *entry, uint32_t first, uint32_t max,
								  GjRelationKey *keys);

/* Gives up what belongs to a file.  Returns bytes. */
extern uint64_t gj_resident_evict_file(GjDeviceEntry *entry, const GjRelationKey *key);

/*
 * What is kept, by file, in no order, and if `columns` is not NULL their columns in that order:
 * *list and *columns are the caller's to free.  Returns the number of files.
 */
extern uint32_t gj_resident_list(GjDeviceEntry *entry, GjCached **list, GjCachedColumn **columns);

#endif							/* GJ_DAEMON_STORE_STORE_H */
