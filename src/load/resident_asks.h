/*
 * resident_asks.h
 *	  What a query asks about resident data, for the files that find it out.
 *
 *	resident.c			asks gpujoind
 *	resident_compare.c	compares what it has with the tables, and says what is to be loaded
 */
#ifndef GJ_LOAD_RESIDENT_ASKS_H
#define GJ_LOAD_RESIDENT_ASKS_H

#include "load/resident.h"

/* What gpujoind has told about a fragment. */
typedef struct GjKnown
{
	GjKnownFragment known;
	uint64	   *valid;			/* pages that were all-visible, one bit each; NULL: all */
	uint64	   *lsns;			/* of its pages, or NULL */
} GjKnown;

/* One table. */
typedef struct GjResidentAsk
{
	GjResidentTable *table;
	Relation	rel;
	const GjWriter *writer;
	int			source;
	GjResidentUse *use;
	BlockNumber nblocks;
	uint32		nfragments;
	uint32		next;			/* the fragment to ask about next */
	uint32		nmaps;
	uint64	   *lsns;			/* of the map's pages */
	GjAskPages *partial;		/* NULL, or room for GJ_ASK_PARTIAL */
	uint32		npartial;
	bool		whole;			/* with these all pages were all-visible, or empty as `partial` says */
	bool		prewarm;		/* see gj_resident_asks */
	bool		loads_moved;	/* see GjAsk */
	bool		visible;		/* all pages were all-visible, or empty as far as was looked */
	GjKnown   **known;			/* by fragment, or NULL */
	Buffer		vmbuffer;
} GjResidentAsk;

/*
 * Decides what of a table is to be loaded, which is returned, and adds what is to be used to ask->use.
 * *renewals: how many more fragments may be loaded anew though few of their pages are missing.
 */
extern GjResidentMap *gj_resident_compare(GjResidentAsk *ask, uint32 *renewals);

/*
 * True if no page of a fragment has a tuple but those given; false also if they are too many to look at.
 * Pages by which a file was extended and which nobody has used, as a parallel load leaves some, are never
 * all-visible: each query would have them loaded, and what is made of the table could not be kept.  A
 * tuple that the snapshot sees was there before it.
 */
extern bool gj_others_are_empty(Relation rel, uint32 fragment, uint32 npages, const uint64 *pages);

#endif							/* GJ_LOAD_RESIDENT_ASKS_H */
