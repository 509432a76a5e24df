/*
 * resident.h
 *	  Which pages of a table are resident on the device, and which are to be kept there.
 *
 * What makes a page of a fragment good as it is (found by probing, see README.md): it was
 * all-visible when it was read, its bit in the visibility map is set, and either the map page's
 * LSN is the one noted before the page was loaded, or the page's own LSN is.  Every change of a
 * page clears its bit without moving the map's LSN, and every setting of a bit moves it; every
 * change moves the page's LSN.  That is looked at after the query's snapshot was taken: a change
 * that is under way then belongs to a transaction that the snapshot does not see.
 *
 * The leader of a query asks; the map is flat, so that it can be copied to load workers.
 */
#ifndef GJ_LOAD_RESIDENT_H
#define GJ_LOAD_RESIDENT_H

#include "access/attnum.h"
#include "storage/block.h"
#include "storage/buf.h"
#include "storage/bufpage.h"
#include "utils/relcache.h"

#include "client/client.h"
#include "load/column_writer.h"

/* Blocks of one page of the visibility map; the last fragment of them is shorter. */
#define GJ_MAP_BLOCKS		((BLCKSZ - MAXALIGN(SizeOfPageHeaderData)) * 4)
#define GJ_MAP_FRAGMENTS	((GJ_MAP_BLOCKS + GJ_FRAGMENT_BLOCKS - 1) / GJ_FRAGMENT_BLOCKS)

/* What is to be done with a fragment. */
typedef enum GjFragmentState
{
	GJ_FRAGMENT_KEEP,			/* load its pages and tell gpujoind about them: it keeps them */
	GJ_FRAGMENT_USE				/* load only pages that are neither resident nor empty */
} GjFragmentState;

typedef struct GjFragmentMap
{
	GjFragmentState state;
	uint64		resident[GJ_FRAGMENT_WORDS];	/* pages not to be loaded, one bit each */
} GjFragmentMap;

/* One palloc'd piece without pointers. */
typedef struct GjResidentMap
{
	uint32		nblocks;		/* of the table, as the scan sees it */
	uint32		nfragments;		/* 0: no page is to be loaded */
	uint32		nresident;		/* pages not to be loaded */
	GjFragmentMap fragment[FLEXIBLE_ARRAY_MEMBER];
} GjResidentMap;

static inline uint32
gj_fragment_of(BlockNumber blkno)
{
	return blkno / GJ_MAP_BLOCKS * GJ_MAP_FRAGMENTS + blkno % GJ_MAP_BLOCKS / GJ_FRAGMENT_BLOCKS;
}

static inline BlockNumber
gj_fragment_first(uint32 fragment)
{
	return fragment / GJ_MAP_FRAGMENTS * GJ_MAP_BLOCKS +
		fragment % GJ_MAP_FRAGMENTS * GJ_FRAGMENT_BLOCKS;
}

/* Block behind the fragment in a table of nblocks. */
static inline BlockNumber
gj_fragment_end(uint32 fragment, BlockNumber nblocks)
{
	return Min(gj_fragment_first(fragment + 1), nblocks);
}

/* The first block from `blkno` to before `nblocks` that is to be loaded; nblocks: none. */
extern BlockNumber gj_resident_next(const GjResidentMap *map, BlockNumber blkno, BlockNumber nblocks);

/* Bytes of a map. */
static inline Size
gj_resident_map_size(const GjResidentMap *map)
{
	return offsetof(GjResidentMap, fragment) + sizeof(GjFragmentMap) * (Size) map->nfragments;
}

static inline bool
gj_resident_keeps(const GjResidentMap *map, BlockNumber blkno)
{
	return map != NULL && map->fragment[gj_fragment_of(blkno)].state == GJ_FRAGMENT_KEEP;
}

/* A fragment to be used. */
typedef struct GjFoundFragment
{
	GjUseHead	head;
	const uint64 *pages;		/* one bit each; NULL: all */
} GjFoundFragment;

/* Those of a source, in order. */
typedef struct GjResidentUse
{
	uint32		n;
	uint32		sent;
	GjFoundFragment *found;
} GjResidentUse;

/* A table of a source, as its resident data sees it. */
typedef struct GjResidentTable
{
	Relation	rel;
	const AttrNumber *attnos;	/* attribute of each column of the source */
	BlockNumber nblocks;

	/* the answer */
	const GjResidentMap *map;	/* NULL if nothing of the table may be kept */
	uint32		number;			/* if there is a map: among the source's tables that have one */
} GjResidentTable;

/* What gpujoind is asked about by a run, and what it has told. */
typedef struct GjResidentAsks GjResidentAsks;

/*
 * In the current memory context, where all that is found out is put, too.  prewarm: all that can be kept
 * is to be resident afterwards, as far as there is room for it beside what it replaces.
 */
extern GjResidentAsks *gj_resident_asks(bool prewarm);

/*
 * Adds the tables of a source, all of them different: once for the source, by the leader, after
 * the snapshot of the query was taken and before anything of the run is loaded; `writer` is
 * the one that will write its columns, and nworkers could help to load all of it.  Tables, *use and
 * the relations stay until the end.
 */
extern void gj_resident_add(GjResidentAsks *asks, const GjWriter *writer, int source,
							GjResidentTable *tables, int ntables, int nworkers,
							GjResidentUse *use);

/* Blocks of a source's tables that were added. */
extern uint64 gj_resident_blocks(const GjResidentAsks *asks, int source);

/*
 * Writes questions, as many as an ASK takes, that were not asked yet.  `whole`: nothing but what
 * was added is to be loaded, so all can be used without waiting.  False: there are none.
 */
extern bool gj_resident_questions(GjResidentAsks *asks, bool whole, GjQuestions *questions);

/*
 * After the first questions were sent: takes the answers in and asks the others, compares what
 * gpujoind has with the tables, and completes these and what is to be used.  *used: gpujoind uses
 * all of it already.  False: the run has failed.
 */
extern bool gj_resident_finish(GjResidentAsks *asks, GjClient *client, bool *used,
							   GjFailure *failure);

/* Releases what gj_resident_finish, if it was called at all, may have left pinned. */
extern void gj_resident_release(GjResidentAsks *asks);

/*
 * Appends to a slot of the load ring what is to be used of a source, as much as fits before `end`;
 * `ends`: the source ends with it.  Returns where it ends; adds to *n the fragments.
 */
extern uint8 *gj_resident_fill(GjResidentUse *use, int source, bool ends, uint8 *at,
							   const uint8 *end, uint32 *n);

#endif							/* GJ_LOAD_RESIDENT_H */
