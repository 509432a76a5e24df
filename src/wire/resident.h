/*
 * resident.h
 *	  Resident data: what a backend and gpujoind say about columns that stay on a device.
 *
 * A fragment is up to GJ_FRAGMENT_BLOCKS consecutive blocks of a table whose bits lie in
 * one page of the visibility map; its columns are kept together.  gpujoind knows nothing
 * about visibility: it keeps for each page what the backend noted when it read the page,
 * and a backend that wants to use a fragment compares that with the table as it is.
 *
 *	ASK			a slot of the load ring: GjAsk, GjColumnKey[ncolumns], uint64_t[nmaps]
 *	RESIDENT	a slot of the output ring: GjAnswered, then per fragment a GjKnownFragment,
 *				and the pages' LSNs where GJ_KNOWN_LSNS is set; given back by BATCH_FREE
 *	USE			a slot of the load ring: GjUse[n]; n is `nrows` of the message
 *	CHUNK		may end with a GjChunkPages, so that gpujoind can keep its rows
 */
#ifndef GJ_WIRE_RESIDENT_H
#define GJ_WIRE_RESIDENT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define GJ_FRAGMENT_BLOCKS	4096u
#define GJ_FRAGMENT_WORDS	(GJ_FRAGMENT_BLOCKS / 64)

/* A file: numbers are reused, but never with a map LSN or page LSN of before. */
typedef struct GjRelationKey
{
	uint32_t	database;
	uint32_t	tablespace;
	uint32_t	filenode;
	uint32_t	relation;		/* oid */
} GjRelationKey;

/* Everything but the page that decides what a column holds, as a 128-bit hash. */
typedef struct GjColumnKey
{
	uint64_t	hash[2];
	uint32_t	attnum;			/* for gpujoin_cache */
	uint32_t	unused;
} GjColumnKey;

typedef struct GjAsk
{
	GjRelationKey relation;
	uint64_t	cache_size;		/* gpujoin.cache_size in bytes, UINT64_MAX: the default */
	uint32_t	first;			/* fragments wanted: first .. nfragments-1 */
	uint32_t	nfragments;
	uint32_t	ncolumns;
	uint32_t	per_map;		/* fragments of one page of the visibility map */
	uint32_t	nmaps;			/* LSNs of these pages, as they were just now:
								 * fragments with another one come with their pages' LSNs */
	uint32_t	table;			/* of the source: the first one asked about is 0, ... */
} GjAsk;

typedef struct GjAnswered
{
	uint32_t	n;				/* fragments told of */
	uint32_t	next;			/* ask again from this fragment on; nfragments: that is all */
} GjAnswered;

#define GJ_KNOWN_LSNS		1u	/* uint64_t[npages] follow */

/* A fragment that has all columns asked for.  It stays until the source ends. */
typedef struct GjKnownFragment
{
	uint64_t	id;				/* of this copy of it, in this run and for this table */
	uint64_t	map_lsn;		/* of the visibility map's page: unchanged and bit set
								 * means that the page is unchanged */
	uint32_t	number;
	uint32_t	npages;
	uint32_t	flags;
	uint32_t	unused;
	uint64_t	valid[GJ_FRAGMENT_WORDS];	/* pages that were all-visible, one bit each */
} GjKnownFragment;

/* Take the rows of these pages as rows of the source. */
typedef struct GjUse
{
	uint64_t	id;
	uint64_t	map_lsn;		/* with which they were found unchanged */
	uint64_t	pages[GJ_FRAGMENT_WORDS];
} GjUse;

#define GJ_CHUNK_MAX_PAGES	2048u
#define GJ_PAGE_VISIBLE		0x8000u

/*
 * The pages that the rows of a chunk came from, at the end of its slot, in order.  A
 * chunk that is to be kept has pages of one fragment only.  The chunks of a fragment may
 * come from several processes, in any order.
 */
typedef struct GjChunkPages
{
	uint32_t	fragment;
	uint32_t	first;			/* page of the fragment that the chunk starts with */
	uint32_t	n;				/* 0: do not keep */
	uint32_t	npages;			/* of the fragment */
	uint64_t	map_lsn;		/* read before the first page was */
	uint32_t	table;			/* of the source, as GjAsk numbers them */
	uint32_t	unused;
	uint64_t	lsn[GJ_CHUNK_MAX_PAGES];
	uint16_t	nrows[GJ_CHUNK_MAX_PAGES];	/* with GJ_PAGE_VISIBLE */
	uint8_t		more_unused[32];
} GjChunkPages;

/* What gpujoin_cache shows: one relation on one device. */
#define GJ_CACHED_WORDS		26	/* attributes 1 .. 1663 */

typedef struct GjCached
{
	GjRelationKey relation;
	uint32_t	device;			/* GjDeviceKind */
	uint32_t	ordinal;
	uint64_t	nfragments;
	uint64_t	npages;			/* that are valid as far as gpujoind knows */
	uint64_t	nbytes;
	uint64_t	hits;			/* uses of a fragment */
	uint64_t	ntables;		/* hash tables that were kept, with the columns they lead to */
	uint64_t	table_hits;
	uint64_t	attributes[GJ_CACHED_WORDS];	/* bit attnum */
} GjCached;

static_assert(GJ_FRAGMENT_BLOCKS % 64 == 0, "words of a fragment");
static_assert(sizeof(GjKnownFragment) == 32 + 8 * GJ_FRAGMENT_WORDS, "GjKnownFragment");
static_assert(sizeof(GjUse) == 16 + 8 * GJ_FRAGMENT_WORDS, "GjUse");
static_assert(sizeof(GjChunkPages) % 64 == 0, "GjChunkPages");

static inline bool
gj_page_is_set(const uint64_t *pages, uint32_t page)
{
	return pages[page / 64] >> (page % 64) & 1;
}

static inline void
gj_page_set(uint64_t *pages, uint32_t page)
{
	pages[page / 64] |= UINT64_C(1) << (page % 64);
}

/* Pages that are set. */
static inline uint32_t
gj_pages_count(const uint64_t *pages)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < GJ_FRAGMENT_WORDS; i++)
		n += (uint32_t) __builtin_popcountll(pages[i]);
	return n;
}

#endif							/* GJ_WIRE_RESIDENT_H */
