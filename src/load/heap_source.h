/*
 * heap_source.h
 *	  What the files share that take columns out of the pages of a heap table: heap_source.c goes from
 *	  block to block, heap_page.c finds the visible tuples of one, heap_tuple.c takes these apart.
 */
#ifndef GJ_LOAD_HEAP_SOURCE_H
#define GJ_LOAD_HEAP_SOURCE_H

#include "access/htup_details.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "load/next_buffer.h"
#include "load/source.h"

/* An attribute that the walk passes. */
typedef struct WalkAttribute
{
	int16		attlen;
	char		attalign;
	int16		column;			/* column that wants it, or -1; others are its twins */
} WalkAttribute;

/*
 * Attributes of a tuple without NULLs at fixed offsets from where they begin: behind an attribute
 * of variable length, or where one needs a larger alignment than is known of the section before.
 */
typedef struct Section
{
	int			att;			/* of variable length, that it begins behind; -1: none */
	int			alignment;		/* of its start */
	int			nbytes;			/* of its attributes, up to the last wanted one */
} Section;

/* What a table says of a column. */
typedef struct HeapColumn
{
	int			attno;			/* from 0 */
	int16		attlen;
	bool		attbyval;
	int			scale;			/* gj_decimal_scale() */
	int			section;		/* of a tuple without NULLs, and */
	int			offset;			/* in it; -1: of variable length */
	bool		missing_null;	/* value for tuples written before ADD COLUMN */
	Datum		missing;
} HeapColumn;

typedef struct HeapSource
{
	GjSourceReader base;
	GjTable    *table;
	Relation	rel;
	Snapshot	snapshot;
	BufferAccessStrategy strategy;
	Buffer		vmbuffer;
	BlockNumber next;			/* blocks next .. end-1 are taken out of the share */
	BlockNumber end;
	Buffer		ahead;			/* block next, pinned before its turn, or invalid */
	GjNextBuffer next_buffer;
	BlockNumber prefetched;		/* blocks below this were asked for */
	int			prefetch_blocks;	/* keep looking ahead for so many blocks */
	bool		can_prefetch;

	int			ncolumns;
	HeapColumn *columns;
	int16	   *twins;			/* [ncolumns]: the next column of the same attribute, or -1: a
								 * text that is wanted flat, too; UNION ALL has any number */
	int			id_column;		/* has the tuples' ids (tuple_id.h); -1: there is none */
	int			natts;			/* attributes up to the last wanted one */
	int			nsections;		/* up to the last wanted attribute */
	Section    *sections;		/* [0] begins with the tuple */
	WalkAttribute *walk;		/* [natts] */

	uint32		page_heap_bytes;	/* most heap bytes that one page can need */

	bool		may_be_uniform; /* all columns are copied from fixed offsets */
	bool		uniform;		/* the current page is: tuple i has number i + 1 and is at
								 * first_tuple - i * stride; tuples[], data[] and lines[] are not
								 * filled in */
	const char *first_tuple;
	Size		stride;

	int			ntuples;		/* visible tuples of the current page */
	HeapTupleHeader tuples[MaxHeapTuplesPerPage];
	char	   *data[MaxHeapTuplesPerPage]; /* their attributes, those of the current section on */
	OffsetNumber lines[MaxHeapTuplesPerPage];	/* their numbers */
	bool		regular;		/* none has NULLs or misses a wanted attribute */
} HeapSource;

/* heap_page.c */

/* The block to load after `blkno`, of those taken out of the share; end: none. */
extern BlockNumber gj_heap_block_after(const HeapSource *source, BlockNumber blkno);
/*
 * The buffer of block `next`, and the one after it pinned as `ahead`: its page is on
 * the way to the cache while this one is decoded.
 */
extern Buffer gj_heap_take_block(HeapSource *source);
/* Collects the tuples to load from a page, which is share-locked.  True if the page is all-visible. */
extern bool gj_heap_collect(HeapSource *source, Buffer buffer);

/* heap_tuple.c */

/* Finds what the loops over columns and the walk have to know; attnos[] of the columns. */
extern void gj_heap_describe(HeapSource *source, const AttrNumber *attnos);
/*
 * Most bytes of a slot's byte heap that the values of one page can need: what is on the
 * page, as often as there are columns of it, with each value, of a byte at least, padded; and
 * for every tuple what ALTER TABLE ... ADD COLUMN left for older ones.
 */
extern uint32 gj_heap_page_bytes(const HeapSource *source, const GjColumnType *types);
/* Turns the collected tuples into rows. */
extern void gj_heap_write_tuples(HeapSource *source, GjWriter *writer);

#endif							/* GJ_LOAD_HEAP_SOURCE_H */
