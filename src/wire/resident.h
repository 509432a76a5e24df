/*
 * resident.h
 *	  Resident data: what a backend and gpujoind say about columns that stay on a device.
 *
 * A fragment is up to GJ_FRAGMENT_BLOCKS consecutive blocks of a table whose bits lie in
 * one page of the visibility map; its columns are kept together.  gpujoind knows nothing
 * about visibility: it keeps for each page what the backend noted when it read the page,
 * and a backend that wants to use a fragment compares that with the table as it is.
 *
 *	ASK			behind the message: questions about tables, one after the other, each a GjAsk,
 *				GjColumnKey[ncolumns], uint64_t[nmaps], GjAskPages[npartial]
 *	RESIDENT	a slot of the output ring, given back by BATCH_FREE: `nrows` answers in the order of
 *				the questions, each a GjAnswered, then for each fragment a GjKnownFragment and
 *				what its flags say; several if one slot is not enough for all questions
 *	USE			a slot of the load ring: `nrows` times a GjUseHead and what its flags say, in the
 *				order in which sources are loaded
 *	CHUNK		may end with a GjChunkPages, so that gpujoind can keep its rows
 */
#ifndef GJ_WIRE_RESIDENT_H
#define GJ_WIRE_RESIDENT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define GJ_FRAGMENT_BLOCKS	4096u
#define GJ_FRAGMENT_WORDS	(GJ_FRAGMENT_BLOCKS / 64)

/* Bytes of the bits of a fragment's pages. */
#define GJ_PAGES_BYTES		(GJ_FRAGMENT_WORDS * sizeof(uint64_t))

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
	uint32_t	flat;			/* 1: compressed and external values are wanted flat; 0: as stored */
} GjColumnKey;

static inline bool
gj_same_column_key(const GjColumnKey *a, const GjColumnKey *b)
{
	return a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1] && a->flat == b->flat;
}

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
	uint32_t	source;
	uint32_t	nblocks;		/* of the table */
	uint32_t	map_blocks;		/* blocks of one page of the visibility map */
	uint32_t	npartial;		/* fragments with pages that are not all-visible, but empty */
	uint32_t	loads_moved;	/* of fragments with another LSN only those are wanted that somebody was
								 * to load anew before, for the same LSN: others are loaded */
	uint32_t	unused;
} GjAsk;

/* Such a fragment; in ascending order. */
typedef struct GjAskPages
{
	uint32_t	number;
	uint32_t	unused;
	uint64_t	visible[GJ_FRAGMENT_WORDS]; /* all-visible pages, one bit each; no other has a tuple */
} GjAskPages;

/* A backend names at most so many of these in a question. */
#define GJ_ASK_PARTIAL		8u

/* Bytes of a question. */
static inline uint64_t
gj_ask_size(const GjAsk *ask)
{
	return sizeof(GjAsk) + (uint64_t) ask->ncolumns * sizeof(GjColumnKey) +
		(uint64_t) ask->nmaps * sizeof(uint64_t) + (uint64_t) ask->npartial * sizeof(GjAskPages);
}

/* Pages of a fragment of the table as it is. */
static inline uint32_t
gj_ask_pages(const GjAsk *ask, uint32_t fragment)
{
	uint32_t	next = fragment + 1;
	uint32_t	first = fragment / ask->per_map * ask->map_blocks +
		fragment % ask->per_map * GJ_FRAGMENT_BLOCKS;
	uint32_t	end = next / ask->per_map * ask->map_blocks + next % ask->per_map * GJ_FRAGMENT_BLOCKS;

	return (next == ask->nfragments ? ask->nblocks : end) - first;
}

typedef struct GjAnswered
{
	uint32_t	n;				/* fragments told of */
	uint32_t	next;			/* ask again from this fragment on; nfragments: that is all */
} GjAnswered;

/* What follows, in this order.  Without bits all pages are meant. */
#define GJ_KNOWN_BITS		1u	/* uint64_t[GJ_FRAGMENT_WORDS]: pages, one bit each */
#define GJ_KNOWN_LSNS		2u	/* uint64_t[npages]: the map's LSN is another one than that asked for */

/* A fragment that has all columns asked for.  It stays until the source ends. */
typedef struct GjKnownFragment
{
	uint64_t	id;				/* of this copy of it, in this run and for this table */
	uint64_t	map_lsn;		/* of the visibility map's page: unchanged and bit set
								 * means that the page is unchanged */
	uint32_t	number;
	uint32_t	npages;
	uint32_t	flags;
	uint32_t	nlost;			/* of its uses, so far; npages: as much as loading it costs */
} GjKnownFragment;				/* the bits: pages that were all-visible */

/*
 * What a use loses since n of a fragment's pages are missing that are all-visible, in pages that are read:
 * these; and if the table could be whole, that it is not, as if a 16th of the fragment were read (measured:
 * what is built of it is not kept, gpujoind has to be asked and told of each fragment, parts are read one by one).
 */
static inline uint32_t
gj_lost_pages(uint32_t npages, uint32_t n, bool could_be_whole)
{
	return n > 0 && could_be_whole ? n + (npages + 15) / 16 : n;
}

/*
 * Who is told that all of npages were lost takes so much away, lest all load the fragment anew, or try it where
 * there is no room.  One who does not try gives it back with its use.
 */
static inline uint32_t
gj_lost_when_told(uint32_t npages)
{
	return (npages + 1) / 2;
}

/* Take the rows of these pages of a fragment as rows of the source. */
typedef struct GjUseHead
{
	uint64_t	id;
	uint64_t	map_lsn;		/* with which they were found unchanged */
	uint32_t	source;
	uint32_t	npages;			/* of the fragment */
	uint32_t	flags;			/* GJ_KNOWN_BITS, GJ_USE_LAST */
	uint32_t	nlost;			/* see gj_lost_pages, gj_lost_when_told */
} GjUseHead;

/* The source ends with this one, as if SOURCE_END followed; the next one can be of another source. */
#define GJ_USE_LAST			4u

/* The same as gpujoind works with it. */
typedef struct GjUse
{
	uint64_t	id;
	uint64_t	map_lsn;
	const uint64_t *pages;		/* one bit each; NULL: all */
	uint32_t	nlost;
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
	uint8_t		toasted[32];	/* gj_is_toasted */
} GjChunkPages;

/* True if column c of the chunk may have values that are compressed or external in the table. */
static inline bool
gj_is_toasted(const GjChunkPages *pages, uint32_t c)
{
	return c / 8 >= sizeof(pages->toasted) || (pages->toasted[c / 8] >> c % 8 & 1);
}

/* What gpujoin_cache shows: one relation on one device. */
#define GJ_CACHED_WORDS		26	/* attributes 1 .. 1663 */

/*
 * How a column of a fragment lies on the device: integers, codes of dictionaries, and offsets of
 * values, by their bytes.
 */
typedef enum GjEncoding
{
	GJ_PLAIN,
	GJ_PACKED_1,
	GJ_PACKED_2,
	GJ_PACKED_4,
	GJ_CODES_1,
	GJ_CODES_2,
	GJ_OFFSETS_2,
	GJ_OFFSETS_4,
	GJ_NENCODINGS
} GjEncoding;

/* A column of a relation on a device, of all its fragments. */
typedef struct GjCachedColumn
{
	uint32_t	attnum;
	uint32_t	nfragments[GJ_NENCODINGS];
	uint64_t	nvalues;		/* of all dictionaries */
	uint64_t	nbytes;
	uint64_t	plain_bytes;	/* that it would take unencoded */
} GjCachedColumn;

typedef struct GjCached
{
	GjRelationKey relation;
	uint32_t	device;			/* GjDeviceKind */
	uint32_t	ordinal;
	uint32_t	ncolumns;		/* GjCachedColumn of it: those of `attributes` */
	uint32_t	unused;
	uint64_t	nfragments;
	uint64_t	npages;			/* that are valid as far as gpujoind knows */
	uint64_t	nbytes;
	uint64_t	hits;			/* uses of a fragment */
	uint64_t	ntables;		/* hash tables that were kept, with the columns they lead to */
	uint64_t	table_hits;
	uint64_t	attributes[GJ_CACHED_WORDS];	/* bit attnum */
} GjCached;

static_assert(GJ_FRAGMENT_BLOCKS % 64 == 0, "words of a fragment");
static_assert(sizeof(GjAsk) % 8 == 0 && sizeof(GjColumnKey) % 8 == 0 && sizeof(GjAskPages) % 8 == 0,
			  "questions lie aligned");
static_assert(sizeof(GjAnswered) == 8 && sizeof(GjKnownFragment) == 32, "answers lie aligned");
static_assert(sizeof(GjUseHead) == 32, "GjUseHead");
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

/* The first n pages, and no others. */
static inline void
gj_pages_first(uint64_t *pages, uint32_t n)
{
	for (uint32_t i = 0; i < GJ_FRAGMENT_WORDS; i++)
		pages[i] = n >= (i + 1) * 64 ? UINT64_MAX : n <= i * 64 ? 0 : UINT64_MAX >> ((i + 1) * 64 - n);
}

/* True if all of the first n pages are set. */
static inline bool
gj_pages_all(const uint64_t *pages, uint32_t n)
{
	for (uint32_t i = 0; i < n / 64; i++)
		if (pages[i] != UINT64_MAX)
			return false;
	return n % 64 == 0 || (~pages[n / 64] & (UINT64_MAX >> (64 - n % 64))) == 0;
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
