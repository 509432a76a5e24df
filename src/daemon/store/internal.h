/*
 * internal.h
 *	  The store of resident data, for the files that make it up.
 *
 *	store/fragment.c		the store and its fragments
 *	store/fill.c	fragments that are being filled
 *	store/side.c	cached build sides
 */
#ifndef GJ_DAEMON_STORE_INTERNAL_H
#define GJ_DAEMON_STORE_INTERNAL_H

#include "store.h"

#define GJ_BUCKETS			4096	/* a power of two */
#define GJ_WANTED_BEFORE	256		/* a power of two */

/* What gj_side_again was asked about. */
typedef struct GjWantedBefore
{
	uint64_t	hash;
	uint32_t	refused;		/* so many times the answer will be no */
} GjWantedBefore;

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
	GjSide	   *sides;
	GjWantedBefore wanted_before[GJ_WANTED_BEFORE]; /* a ring */
	uint32_t	nwanted;
	GjFragment *bucket[GJ_BUCKETS];
};

/* The store of a device; NULL: there never was any. */
static inline GjResident *
gj_store_of(const GjDeviceMemory *memory)
{
	return memory->evictor.arg;
}

/* The lock is held for all of these. */

/* Makes room for `nbytes`; what was used since `clock` stays. */
extern bool gj_resident_reserve(GjResident *store, uint64_t nbytes, uint64_t clock);

/* Frees a buffer of a fragment, if it has memory. */
extern void gj_fragment_free_buffer(GjResident *store, GjFragment *fragment, GjBuffer *buffer);

/* The published fragment of that number and id, or NULL. */
extern GjFragment *gj_resident_by_id(GjResident *store, const GjRelationKey *relation,
									 uint32_t number, uint64_t id);

/* The side that was used longest ago, before a time, and is not pinned; NULL: none. */
extern GjSide *gj_side_oldest(GjResident *store, uint64_t before);

/* True if it has rows of a relation (0: any) of a database (0: any). */
extern bool gj_side_is_of(const GjSide *side, uint32_t database, uint32_t relation);

/* Takes a side out of the store; it is freed now or when it is unpinned. */
extern void gj_side_withdraw(GjResident *store, GjSide *side);

/* The same for all sides that the fragment is part of. */
extern void gj_side_withdraw_all(GjResident *store, const GjFragment *fragment);

#endif							/* GJ_DAEMON_STORE_INTERNAL_H */
