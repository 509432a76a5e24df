/*
 * internal.h
 *	  The store of resident data, for the files that make it up.
 *
 *	store/fragment.c		the store and its fragments
 *	store/fill.c	fragments that are being filled
 *	store/pack.c	and packed, when they are complete
 *	store/side.c	cached build sides
 *	store/file.c	what is kept of each file, counted
 *	store/rows.c	results of stages
 */
#ifndef GJ_DAEMON_STORE_INTERNAL_H
#define GJ_DAEMON_STORE_INTERNAL_H

#include "store.h"

#define GJ_BUCKETS			4096	/* a power of two */
#define GJ_FILE_BUCKETS		1024	/* a power of two */
#define GJ_WANTED_BEFORE	256		/* a power of two */

/* What gj_side_again was asked about. */
typedef struct GjWantedBefore
{
	uint64_t	hash;
	uint32_t	refused;		/* so many times the answer will be no */
} GjWantedBefore;

/*
 * What is kept of one file on one device: fragments, and sides whose first fragment is one of its.
 * There as long as there is one of them.
 */
struct GjKeptFile
{
	LIST_ENTRY(GjKeptFile) of_bucket;
	uint32_t	at;				/* in the store's list of files */
	GjCached	counts;			/* all but ncolumns and the attributes */
	LIST_HEAD(, GjFragment) fragments;
	LIST_HEAD(, GjSide) sides;	/* the newest first */
	uint32_t	nsides;
	uint32_t	nattributes;
	GjCachedColumn *columns;	/* [nattributes]: of fragments, by attribute number */
};

struct GjResident
{
	GjDeviceEntry *entry;
	GjDeviceMemory *memory;		/* its lock guards all of this */
	GjQueue    *queue;			/* allocates and frees */
	uint64_t	limit;			/* bytes */
	uint64_t	clock;
	uint64_t	last_id;
	GjFragment *oldest;
	GjFragment *newest;
	GjSide	  **sides;			/* [nsides], in no order */
	uint32_t	nsides;
	uint32_t	side_hand;		/* where it is looked for sides to give up */
	GjKeptFile **files;			/* [nfiles], in no order */
	uint32_t	nfiles;
	GjWantedBefore wanted_before[GJ_WANTED_BEFORE]; /* a ring */
	uint32_t	nwanted;
	uint64_t	rows_bytes;		/* of GjKeptRows, which count as resident and pinned */
	GjFragment *bucket[GJ_BUCKETS];
	LIST_HEAD(, GjKeptFile) file_bucket[GJ_FILE_BUCKETS];
	LIST_HEAD(GjSideBucket, GjSide) side_by_key[GJ_BUCKETS];
	struct GjSideBucket side_by_program[GJ_BUCKETS];
};

/* The store of a device; NULL: there never was any. */
static inline GjResident *
gj_store_of(const GjDeviceMemory *memory)
{
	return memory->evictor.arg;
}

/* Bytes of what is cached, to be compared with the limit of the store. */
static inline uint64_t
gj_cached_bytes(const GjResident *store)
{
	return store->memory->resident - store->rows_bytes;
}

/*
 * Allocates a buffer of a fragment that is being filled, for use after gj_fragment_settle(): the
 * run's queue must not be ahead of the store's, which makes it.
 */
extern GjStatus gj_fragment_alloc(GjResident *store, uint64_t clock, GjFragment *fragment,
								  uint64_t nbytes, GjBuffer *buffer);
extern void gj_fragment_settle(GjResident *store);

/* The lock is held for all of these. */

/* Makes room for `nbytes`; what was used since `clock` stays. */
extern bool gj_resident_reserve(GjResident *store, uint64_t nbytes, uint64_t clock);

/*
 * Gives up what was last used before a time, until `nbytes` are free.  What is freed can
 * be allocated at once by any queue.
 */
extern bool gj_resident_give_up(GjResident *store, uint64_t nbytes, uint64_t before);

/* Frees a buffer of a fragment, if it has memory. */
extern void gj_fragment_free_buffer(GjResident *store, GjFragment *fragment, GjBuffer *buffer);

/* The published fragment of that number and id, or NULL. */
extern GjFragment *gj_resident_by_id(GjResident *store, const GjRelationKey *relation,
									 uint32_t number, uint64_t id);

/* The unpinned side that is worth least and was not used since a time; NULL: none. */
extern GjSide *gj_side_cheapest(GjResident *store, uint64_t before);

/* Takes a side out of the store; it is freed now or when it is unpinned. */
extern void gj_side_withdraw(GjResident *store, GjSide *side);

/* The same for all sides that the fragment is part of. */
extern void gj_side_withdraw_all(GjResident *store, GjFragment *fragment);

/* The same for those with rows of a relation (0: any) of a database (0: any); returns bytes. */
extern uint64_t gj_side_withdraw_of(GjResident *store, uint32_t database, uint32_t relation);

/* The same for those with rows of a file. */
extern uint64_t gj_side_withdraw_of_file(GjResident *store, const GjRelationKey *key);

/* Columns and their heap that are kept as they are: their allocations, to arrays[2 * n + 1]; bytes. */
extern uint32_t gj_kept_arrays(const GjRelationColumn *columns, uint32_t n, const GjBuffer *heap,
							   void **arrays);
extern uint64_t gj_kept_bytes(const GjRelationColumn *columns, uint32_t n, const GjBuffer *heap);
/* Frees the memory, which is still counted. */
extern void gj_kept_free(GjResident *store, const GjRelationColumn *columns, uint32_t n,
						 const GjBuffer *heap);

/* What is kept of a file, or NULL. */
extern GjKeptFile *gj_file_find(const GjResident *store, const GjRelationKey *relation);

/*
 * Counts a fragment, but for its pages: only one of several copies counts, see fragment.c.  False:
 * out of memory, and it is not counted.
 */
extern bool gj_file_add(GjResident *store, GjFragment *fragment);

/* Counts it no longer.  The file may be freed with it. */
extern void gj_file_remove(GjResident *store, GjFragment *fragment);

/* Adds to the pages that a file has resident. */
extern void gj_file_add_pages(GjKeptFile *file, int64_t npages);

/* The same of sides. */
extern bool gj_file_add_side(GjResident *store, GjSide *side);
extern void gj_file_remove_side(GjResident *store, GjSide *side);

/* Frees what the store has but fragments and sides, of which there are none. */
extern void gj_files_free(GjResident *store);

#endif							/* GJ_DAEMON_STORE_INTERNAL_H */
