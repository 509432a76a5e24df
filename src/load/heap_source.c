/*
 * heap_source.c
 *	  Takes columns straight out of the pages of a heap table.
 *
 * Page at a time, under the page's share lock.  A page whose bit in the visibility map
 * is set, tested under that lock, needs no look at transaction ids: heap_insert and
 * heap_update change the page first and clear the bit after, but both under the
 * exclusive lock.  On other pages each tuple is asked, as a SeqScan does.
 *
 * The visible tuples of a page are collected first; then come loops over one column at
 * a time, as long as no tuple of the page has NULLs or too few attributes.  An attribute is
 * at a fixed offset in a section of its tuple: the first one begins with the tuple, others
 * where an attribute of variable length ends.  So a section costs a loop that finds where it
 * begins in each tuple, and a column in it one typed loop.  Tuples of other pages are walked
 * attribute by attribute.  On a uniform page, where tuples of one size lie one after the
 * other, the loops need no pointers to tuples.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tupmacs.h"
#include "access/visibilitymap.h"
#include "catalog/pg_type.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/spccache.h"

#include "compat.h"
#include "load/resident.h"
#include "load/source.h"
#include "load/visibility.h"

/* Blocks to look ahead while reads miss the buffer pool, and for how long after a miss. */
#define PREFETCH_DISTANCE	32
#define PREFETCH_BLOCKS		256

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
	Buffer		last_buffer;	/* of the block read last, or invalid */
	bool		guess;			/* the next one may be in the buffer behind it */
	BlockNumber prefetched;		/* blocks below this were asked for */
	int			prefetch_blocks;	/* keep looking ahead for so many blocks */
	bool		can_prefetch;

	int			ncolumns;
	HeapColumn *columns;
	int16	   *twins;			/* [ncolumns]: the next column of the same attribute, or -1: a
								 * text that is wanted flat, too; UNION ALL has any number */
	int			natts;			/* attributes up to the last wanted one */
	int			nsections;		/* up to the last wanted attribute */
	Section    *sections;		/* [0] begins with the tuple */
	WalkAttribute *walk;		/* [natts] */

	uint32		page_heap_bytes;	/* most heap bytes that one page can need */

	bool		may_be_uniform; /* all columns are copied from fixed offsets */
	bool		uniform;		/* the current page is: tuple i is at first_tuple - i *
								 * stride, and tuples[] and data[] are not filled in */
	const char *first_tuple;
	Size		stride;

	int			ntuples;		/* visible tuples of the current page */
	HeapTupleHeader tuples[MaxHeapTuplesPerPage];
	char	   *data[MaxHeapTuplesPerPage]; /* their attributes, those of the current section on */
	bool		regular;		/* none has NULLs or misses a wanted attribute */
} HeapSource;

/* Asks for blocks ahead of the scan, while they are not in the buffer pool. */
static void
look_ahead(HeapSource *source)
{
	BlockNumber end = Min(source->next + PREFETCH_DISTANCE, source->end);

	if (!source->can_prefetch || source->prefetch_blocks <= 0)
		return;
	source->prefetch_blocks--;
	for (BlockNumber blkno = Max(source->prefetched, source->next + 1); blkno < end; blkno++)
		PrefetchBuffer(source->rel, MAIN_FORKNUM, blkno);
	source->prefetched = Max(source->prefetched, end);
}

/*
 * Pins the block if it is in the buffer behind the last one, where it often is: tables that
 * were read or written in order lie in order in the buffer pool.  That saves the lookup
 * in the buffer table, which misses the cache.
 */
static bool
read_next_buffer(HeapSource *source, BlockNumber blkno)
{
	Buffer		buffer = source->last_buffer + 1;

	if (!source->guess || buffer > NBuffers)
		return false;
	source->guess = gj_read_recent_buffer(source->rel, blkno, buffer);
	if (!source->guess)
		return false;
	pgstat_count_buffer_read(source->rel);
	pgstat_count_buffer_hit(source->rel);
	source->last_buffer = buffer;
	return true;
}

/* Reads a block and notices whether it had to come from outside. */
static Buffer
read_block(HeapSource *source, BlockNumber blkno)
{
	int64		nread = pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read;
	Buffer		buffer;

	if (read_next_buffer(source, blkno))
		return source->last_buffer;
	look_ahead(source);
	buffer = ReadBufferExtended(source->rel, MAIN_FORKNUM, blkno, RBM_NORMAL,
								source->strategy);
	if (pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read != nread)
		source->prefetch_blocks = PREFETCH_BLOCKS;
	source->guess = source->last_buffer > 0 && buffer == source->last_buffer + 1;
	source->last_buffer = buffer;
	return buffer;
}

/* The block to load after `blkno`, of those taken out of the share; end: none. */
static inline BlockNumber
block_after(const HeapSource *source, BlockNumber blkno)
{
	return gj_resident_next(source->table->resident, blkno + 1, source->end);
}

/*
 * The buffer of block `next`, and the one after it pinned as `ahead`: its page is on
 * the way to the cache while this one is decoded.
 */
static Buffer
take_block(HeapSource *source)
{
	Buffer		buffer = source->ahead;
	BlockNumber after = block_after(source, source->next);

	if (!BufferIsValid(buffer))
		buffer = read_block(source, source->next);
	source->ahead = InvalidBuffer;
	if (after < source->end)
		source->ahead = read_block(source, after);
	return buffer;
}

/* The cache lines of the page ahead, to be asked for a few at a time. */
typedef struct PageAhead
{
	const char *line;
	const char *end;
} PageAhead;

#define CACHE_LINE			64

static inline PageAhead
page_ahead(const HeapSource *source)
{
	PageAhead	ahead = {NULL, NULL};

	if (BufferIsValid(source->ahead))
	{
		ahead.line = BufferGetPage(source->ahead);
		ahead.end = ahead.line + BLCKSZ;
	}
	return ahead;
}

static inline void
fetch_ahead(PageAhead *ahead)
{
	if (ahead->line < ahead->end)
	{
		__builtin_prefetch(ahead->line);
		ahead->line += CACHE_LINE;
	}
}

/* What decides whether two tuples have their attributes at the same places, as one word. */
static inline uint64
layout_word(const void *tuple)
{
	uint64		word;

	StaticAssertStmt(offsetof(HeapTupleHeaderData, t_infomask2) == 18 &&
					 offsetof(HeapTupleHeaderData, t_hoff) == 22, "heap tuple header");
	memcpy(&word, (const char *) tuple + 16, sizeof(word));
	return word;
}

/*
 * True if the page is uniform: line pointers count down in equal steps, as they do where
 * tuples of one size were inserted one after the other, and no tuple has NULLs or misses
 * a wanted attribute.
 */
static bool
collect_uniform(HeapSource *source, Page page)
{
	int			n = PageGetMaxOffsetNumber(page);
	const uint32 *lines = (const uint32 *) ((PageHeader) page)->pd_linp;
	const char *first;
	HeapTupleHeaderData mask_header;
	PageAhead	ahead = page_ahead(source);
	uint32		step;
	uint32		differ = 0;
	uint64		mask;
	uint64		expected;
	uint64		words = 0;

	StaticAssertStmt(sizeof(ItemIdData) == sizeof(uint32), "line pointer");
	if (!source->may_be_uniform || n < 2 || !ItemIdIsNormal(PageGetItemId(page, 1)))
		return false;
	first = (const char *) PageGetItem(page, PageGetItemId(page, 1));
	step = ItemIdGetOffset(PageGetItemId(page, 1)) - ItemIdGetOffset(PageGetItemId(page, 2));
	/* only the offset may be another one: the step of the words is that of the offsets */
	if (step < SizeofHeapTupleHeader || step > BLCKSZ ||
		(n - 1) * step > ItemIdGetOffset(PageGetItemId(page, 1)))
		return false;
	if (lines[0] - lines[1] != step)
		return false;
	for (int i = 0; i < n; i++)
		differ |= lines[i] ^ (lines[0] - i * step);
	if (differ != 0)
		return false;

	memset(&mask_header, 0, sizeof(mask_header));
	mask_header.t_infomask2 = HEAP_NATTS_MASK;
	mask_header.t_infomask = HEAP_HASNULL;
	mask_header.t_hoff = 0xFF;
	mask = layout_word(&mask_header);
	expected = layout_word(first);
	for (int i = 0; i < n; i++)
	{
		words |= layout_word(first - (Size) i * step) ^ expected;
		fetch_ahead(&ahead);
	}
	while (ahead.line < ahead.end)
		fetch_ahead(&ahead);
	if ((words & mask) != 0 || (((HeapTupleHeader) first)->t_infomask & HEAP_HASNULL) ||
		HeapTupleHeaderGetNatts((HeapTupleHeader) first) < source->natts)
		return false;
	source->first_tuple = first;
	source->stride = step;
	source->ntuples = n;
	return true;
}

/* The tuples of a page that everybody sees. */
static void
collect_all(HeapSource *source, Page page)
{
	OffsetNumber nlines = PageGetMaxOffsetNumber(page);
	HeapTupleHeader *tuples = source->tuples;
	char	  **data = source->data;
	PageAhead	ahead = page_ahead(source);
	uint16		infomask = 0;
	int			natts = MaxTupleAttributeNumber;
	int			n = 0;

	source->uniform = collect_uniform(source, page);
	if (source->uniform)
		return;
	for (OffsetNumber line = FirstOffsetNumber; line <= nlines; line++)
	{
		ItemId		id = PageGetItemId(page, line);
		HeapTupleHeader tuple;

		if (!ItemIdIsNormal(id))
			continue;
		tuple = (HeapTupleHeader) PageGetItem(page, id);
		tuples[n] = tuple;
		data[n++] = (char *) tuple + tuple->t_hoff;
		infomask |= tuple->t_infomask;
		natts = Min(natts, HeapTupleHeaderGetNatts(tuple));
		fetch_ahead(&ahead);
	}
	while (ahead.line < ahead.end)
		fetch_ahead(&ahead);
	source->ntuples = n;
	source->regular = !(infomask & HEAP_HASNULL) && natts >= source->natts;
}

/* The tuples of a page that the snapshot sees. */
static void
collect_visible(HeapSource *source, Page page, Buffer buffer)
{
	OffsetNumber nlines = PageGetMaxOffsetNumber(page);

	source->ntuples = 0;
	source->regular = true;
	source->uniform = false;
	for (OffsetNumber line = FirstOffsetNumber; line <= nlines; line++)
	{
		ItemId		id = PageGetItemId(page, line);
		HeapTupleData tuple;

		if (!ItemIdIsNormal(id))
			continue;
		tuple.t_tableOid = RelationGetRelid(source->rel);
		tuple.t_data = (HeapTupleHeader) PageGetItem(page, id);
		tuple.t_len = ItemIdGetLength(id);
		ItemPointerSet(&tuple.t_self, source->next, line);
		if (!HeapTupleSatisfiesVisibility(&tuple, source->snapshot, buffer))
			continue;
		source->tuples[source->ntuples] = tuple.t_data;
		source->data[source->ntuples++] = (char *) tuple.t_data + tuple.t_data->t_hoff;
		source->regular &= !(tuple.t_data->t_infomask & HEAP_HASNULL) &&
			HeapTupleHeaderGetNatts(tuple.t_data) >= source->natts;
	}
}

/* Collects the tuples to load from a page, which is share-locked. */
static void
collect_tuples(HeapSource *source, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);

	source->base.npages++;
	if (visibilitymap_get_status(source->rel, source->next, &source->vmbuffer) &
		VISIBILITYMAP_ALL_VISIBLE)
	{
		source->base.nvisible++;
		collect_all(source, page);
	}
	else
		collect_visible(source, page, buffer);
}

/*
 * Prepares to tell gpujoind about the page that comes next, if its rows are to be kept.
 * False: it does not go into this chunk.
 */
static bool
start_page(HeapSource *source, GjWriter *writer)
{
	GjChunkPages *pages = writer->pages;
	uint32		fragment = gj_fragment_of(source->next);
	BlockNumber first = gj_fragment_first(fragment);

	if (!gj_resident_keeps(source->table->resident, source->next))
		return pages->n == 0;
	if (pages->n > 0)
		return pages->n < GJ_CHUNK_MAX_PAGES && pages->table == source->table->number &&
			pages->fragment == fragment && source->next == first + pages->first + pages->n;
	if (writer->nrows > 0)
		return false;
	pages->table = source->table->number;
	pages->fragment = fragment;
	pages->first = source->next - first;
	pages->npages = gj_fragment_end(fragment, source->table->share->nblocks) - first;
	/* before the first bit of these pages is looked at */
	pages->map_lsn = gj_map_lsn(source->rel, source->next, &source->vmbuffer);
	return true;
}

/* Notes what the collected tuples' page is like; it is share-locked. */
static void
note_page(HeapSource *source, GjWriter *writer, Buffer buffer, bool visible)
{
	GjChunkPages *pages = writer->pages;

	if (!gj_resident_keeps(source->table->resident, source->next))
		return;
	pages->lsn[pages->n] = BufferGetLSNAtomic(buffer);
	pages->nrows[pages->n++] = source->ntuples | (visible ? GJ_PAGE_VISIBLE : 0);
}

/*
 * The page just noted is not what its column keys say: another query, whose texts alone
 * would have had room, must not take it.
 */
static void
forget_page(HeapSource *source, GjWriter *writer)
{
	if (gj_resident_keeps(source->table->resident, source->next))
		writer->pages->nrows[writer->pages->n - 1] &= ~GJ_PAGE_VISIBLE;
}

/* Gathers a fixed-width attribute at the same offset of every tuple. */
#define GATHER(type) \
	do { \
		type	   *to = (type *) column->data + row; \
		for (int i = 0; i < n; i++) \
			memcpy(&to[i], data[i] + offset, sizeof(type)); \
	} while (0)

static void
gather_fixed(HeapSource *source, GjWriter *writer, GjWriterColumn *column,
			 const HeapColumn *heap)
{
	uint32		row = writer->nrows;
	int			n = source->ntuples;
	int			offset = heap->offset;
	char	  **data = source->data;

	if (column->has_nulls)
		memset(column->nulls + row, 0, n);
	if (column->kind == GJ_REF)
	{
		for (int i = 0; i < n; i++)
			gj_write_bytes(writer, column, row + i, data[i] + offset, heap->attlen);
		return;
	}
	switch (column->width)
	{
		case 1:
			GATHER(uint8);
			break;
		case 2:
			GATHER(uint16);
			break;
		case 4:
			GATHER(uint32);
			break;
		case 8:
			GATHER(uint64);
			break;
		default:
			for (int i = 0; i < n; i++)
				memcpy(column->data + (Size) (row + i) * column->width, data[i] + offset,
					   column->width);
			break;
	}
}

#undef GATHER

/* The same on a uniform page. */
#define GATHER(type) \
	do { \
		type	   *to = (type *) column->data + row; \
		for (int i = 0; i < n; i++, from -= stride) \
			memcpy(&to[i], from, sizeof(type)); \
	} while (0)

static void
gather_uniform(HeapSource *source, GjWriter *writer, GjWriterColumn *column,
			   const HeapColumn *heap)
{
	const char *from = source->first_tuple +
		((HeapTupleHeader) source->first_tuple)->t_hoff + heap->offset;
	Size		stride = source->stride;
	uint32		row = writer->nrows;
	int			n = source->ntuples;

	if (column->has_nulls)
		memset(column->nulls + row, 0, n);
	switch (column->width)
	{
		case 1:
			GATHER(uint8);
			break;
		case 2:
			GATHER(uint16);
			break;
		case 4:
			GATHER(uint32);
			break;
		case 8:
			GATHER(uint64);
			break;
		default:
			for (int i = 0; i < n; i++, from -= stride)
				memcpy(column->data + (Size) (row + i) * column->width, from, column->width);
			break;
	}
}

#undef GATHER

/* Stores the value at p, as it lies in a tuple. */
static inline void
write_attribute(GjWriter *writer, GjWriterColumn *column, uint32 row, int16 attlen,
				const char *p)
{
	if (column->kind == GJ_REF)
	{
		uint32		nbytes = attlen > 0 ? attlen :
			attlen == -1 ? VARSIZE_ANY(p) : strlen(p) + 1;

		gj_write_bytes(writer, column, row, p, nbytes);
		if (column->computed && attlen == -1 && (VARATT_IS_EXTERNAL(p) || VARATT_IS_COMPRESSED(p)))
			gj_writer_note_toasted(writer, column, row);
		return;
	}
	/* constant sizes become single moves */
	switch (column->width)
	{
		case 1:
			column->data[row] = *(const uint8 *) p;
			break;
		case 2:
			memcpy(column->data + (Size) row * 2, p, 2);
			break;
		case 4:
			memcpy(column->data + (Size) row * 4, p, 4);
			break;
		case 8:
			memcpy(column->data + (Size) row * 8, p, 8);
			break;
		default:
			memcpy(column->data + (Size) row * 16, p, 16);
			break;
	}
	gj_write_not_null(column, row);
}

/* Stores what ALTER TABLE ... ADD COLUMN left for older tuples. */
static void
write_missing(GjWriter *writer, GjWriterColumn *column, uint32 row, const HeapColumn *heap)
{
	if (heap->missing_null)
		gj_write_null(writer, column, row);
	else if (heap->attbyval)
	{
		char		value[16];		/* the widest that write_attribute() could read */

		store_att_byval(value, heap->missing, heap->attlen);
		write_attribute(writer, column, row, heap->attlen, value);
	}
	else
		write_attribute(writer, column, row, heap->attlen, DatumGetPointer(heap->missing));
}

/* Stores an attribute of variable length for all columns that want it; returns where it ends. */
static inline char *
pass_attribute(HeapSource *source, GjWriter *writer, int i, int att, char *p)
{
	const WalkAttribute *walk = &source->walk[att];

	p = (char *) att_align_pointer((uintptr_t) p, walk->attalign, walk->attlen, p);
	for (int c = walk->column; c >= 0; c = source->twins[c])
		write_attribute(writer, &writer->columns[c], writer->nrows + i, walk->attlen, p);
	return (char *) att_addlength_pointer((uintptr_t) p, walk->attlen, p);
}

/* Moves on from the section before, of all collected tuples, none of which has NULLs. */
static void
enter_section(HeapSource *source, GjWriter *writer, int s)
{
	const Section *section = &source->sections[s];
	int			before = source->sections[s - 1].nbytes;
	char	  **data = source->data;
	int			n = source->ntuples;
	uintptr_t	mask = ~((uintptr_t) section->alignment - 1);

	for (int i = 0; i < n; i++)
	{
		char	   *p = data[i] + before;

		if (section->att >= 0)
			p = pass_attribute(source, writer, i, section->att, p);
		data[i] = (char *) (((uintptr_t) p + section->alignment - 1) & mask);
	}
}

/* Walks one tuple. */
static void
walk_tuple(HeapSource *source, GjWriter *writer, int i)
{
	HeapTupleHeader tuple = source->tuples[i];
	const char *data = source->data[i];
	const int16 *twins = source->twins;
	bool		has_nulls = (tuple->t_infomask & HEAP_HASNULL) != 0;
	int			natts = Min(HeapTupleHeaderGetNatts(tuple), source->natts);
	uint32		row = writer->nrows + i;
	int			offset = 0;

	for (int att = 0; att < natts; att++)
	{
		const WalkAttribute *walk = &source->walk[att];

		if (has_nulls && att_isnull(att, tuple->t_bits))
		{
			for (int c = walk->column; c >= 0; c = twins[c])
				gj_write_null(writer, &writer->columns[c], row);
			continue;
		}
		offset = att_align_pointer(offset, walk->attalign, walk->attlen, data + offset);
		for (int c = walk->column; c >= 0; c = twins[c])
			write_attribute(writer, &writer->columns[c], row, walk->attlen, data + offset);
		offset = att_addlength_pointer(offset, walk->attlen, data + offset);
	}
	for (int att = natts; att < source->natts; att++)
		for (int c = source->walk[att].column; c >= 0; c = twins[c])
			write_missing(writer, &writer->columns[c], row, &source->columns[c]);
}

/* Turns the collected tuples into rows. */
static void
write_tuples(HeapSource *source, GjWriter *writer)
{
	if (source->uniform)
	{
		for (int c = 0; c < source->ncolumns; c++)
			gather_uniform(source, writer, &writer->columns[c], &source->columns[c]);
	}
	else if (source->regular)
	{
		for (int s = 0; s < source->nsections; s++)
		{
			if (s > 0)
				enter_section(source, writer, s);
			for (int c = 0; c < source->ncolumns; c++)
				if (source->columns[c].section == s && source->columns[c].offset >= 0)
					gather_fixed(source, writer, &writer->columns[c], &source->columns[c]);
		}
	}
	else
		for (int i = 0; i < source->ntuples; i++)
			walk_tuple(source, writer, i);
	writer->nrows += source->ntuples;
}

/* True if there is a block to load: of the share that is being loaded, or of another one. */
static bool
has_block(HeapSource *source)
{
	while (source->next >= source->end)
	{
		if (!gj_share_next(source->table->share, &source->next, &source->end))
			return false;
		source->next = gj_resident_next(source->table->resident, source->next, source->end);
		source->prefetched = source->next;
	}
	return true;
}

static bool
heap_source_fill(GjSourceReader *reader, GjWriter *writer, GjFailure *failure)
{
	HeapSource *source = (HeapSource *) reader;
	uint32		nrows = writer->nrows;
	bool		more = true;

	while (gj_writer_has_room(writer, MaxHeapTuplesPerPage,
							  Max(source->page_heap_bytes, writer->flat_bytes)))
	{
		uint64		nvisible = reader->nvisible;
		Buffer		buffer;

		more = has_block(source);
		if (!more || !start_page(source, writer))
			break;
		CHECK_FOR_INTERRUPTS();
		buffer = take_block(source);
		heap_page_prune_opt(source->rel, buffer);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		collect_tuples(source, buffer);
		if (source->ntuples > 0)
			write_tuples(source, writer);
		note_page(source, writer, buffer, reader->nvisible > nvisible);
		UnlockReleaseBuffer(buffer);
		if (writer->ntoasted > 0 && !gj_writer_flatten(writer))
			forget_page(source, writer);
		source->next = block_after(source, source->next);
	}
	gj_count_tuples_returned(source->rel, writer->nrows - nrows);
	return more;
}

static void
heap_source_close(GjSourceReader *reader)
{
	HeapSource *source = (HeapSource *) reader;

	if (BufferIsValid(source->vmbuffer))
		ReleaseBuffer(source->vmbuffer);
	source->vmbuffer = InvalidBuffer;
	if (BufferIsValid(source->ahead))
		ReleaseBuffer(source->ahead);
	source->ahead = InvalidBuffer;
	if (source->strategy)
		FreeAccessStrategy(source->strategy);
	source->strategy = NULL;
	if (source->rel)
		table_close(source->rel, NoLock);
	source->rel = NULL;
}

/* Begins another section. */
static Section *
add_section(HeapSource *source, int att, int alignment)
{
	Section    *section = &source->sections[source->nsections++];

	section->att = att;
	section->alignment = alignment;
	section->nbytes = 0;
	return section;
}

/* Finds sections and offsets of the attributes up to the last wanted one. */
static void
describe_sections(HeapSource *source)
{
	Section    *section;

	source->sections = palloc(sizeof(Section) * (source->natts + 1));
	source->nsections = 0;
	section = add_section(source, -1, MAXIMUM_ALIGNOF);
	for (int att = 0; att < source->natts; att++)
	{
		const WalkAttribute *walk = &source->walk[att];
		int			alignment = att_align_nominal(1, walk->attalign);

		if (walk->attlen <= 0)
		{
			section = add_section(source, att, 1);
			continue;
		}
		/* the first attribute says where a section begins */
		if (section->nbytes == 0)
			section->alignment = Max(section->alignment, alignment);
		else if (alignment > section->alignment)
			section = add_section(source, -1, alignment);
		section->nbytes = att_align_nominal(section->nbytes, walk->attalign);
		for (int c = walk->column; c >= 0; c = source->twins[c])
		{
			source->columns[c].section = source->nsections - 1;
			source->columns[c].offset = section->nbytes;
		}
		section->nbytes += walk->attlen;
	}
}

/* Finds what the loops over columns and the walk have to know. */
static void
describe_attributes(HeapSource *source, const AttrNumber *attnos)
{
	TupleDesc	desc = RelationGetDescr(source->rel);

	for (int c = 0; c < source->ncolumns; c++)
	{
		Form_pg_attribute attr = TupleDescAttr(desc, attnos[c] - 1);
		HeapColumn *column = &source->columns[c];

		column->attno = attnos[c] - 1;
		column->attlen = attr->attlen;
		column->attbyval = attr->attbyval;
		column->section = 0;
		column->offset = -1;
		column->missing = getmissingattr(desc, attnos[c], &column->missing_null);
		source->natts = Max(source->natts, attnos[c]);
	}
	source->twins = palloc(sizeof(int16) * Max(source->ncolumns, 1));
	source->walk = palloc(sizeof(WalkAttribute) * Max(source->natts, 1));
	for (int att = 0; att < source->natts; att++)
	{
		Form_pg_attribute attr = TupleDescAttr(desc, att);

		source->walk[att].attlen = attr->attlen;
		source->walk[att].attalign = attr->attalign;
		source->walk[att].column = -1;
		for (int c = 0; c < source->ncolumns; c++)
			if (source->columns[c].attno == att)
			{
				source->twins[c] = source->walk[att].column;
				source->walk[att].column = c;
			}
	}
	describe_sections(source);
}

/*
 * Most bytes of a slot's byte heap that the values of one page can need: what is on the
 * page, as often as there are columns of it, with each value, of a byte at least, padded; and
 * for every tuple what ALTER TABLE ... ADD COLUMN left for older ones.
 */
static uint32
page_heap_bytes(HeapSource *source, const GjColumnType *types)
{
	Size		missing = 0;
	Size		nrefs = 0;
	Size		most_twins = 1;
	Size		on_page;
	Size		nvalues;
	Size		nbytes;

	for (int c = 0; c < source->ncolumns; c++)
	{
		const HeapColumn *column = &source->columns[c];
		Size		ntwins = 0;

		if (types[c].kind != GJ_REF)
			continue;
		nrefs++;
		for (int twin = c; twin >= 0; twin = source->twins[twin])
			ntwins++;
		most_twins = Max(most_twins, ntwins);
		if (!column->missing_null)
			missing += MAXALIGN(column->attlen > 0 ? column->attlen :
								VARSIZE_ANY(DatumGetPointer(column->missing)));
	}
	on_page = most_twins * BLCKSZ;
	nvalues = Min(nrefs * MaxHeapTuplesPerPage, on_page);
	nbytes = on_page + nvalues * (MAXIMUM_ALIGNOF - 1) + missing * MaxHeapTuplesPerPage;
	return Min(nbytes, PG_UINT32_MAX);
}

/* True if a column of the source is carried as references to its bytes. */
static bool
has_refs(const GjSource *src, const GjProgram *program)
{
	const GjColumnType *types = gj_program_array(program, GjColumnType, columns) +
		src->first_column;

	for (uint32 c = 0; c < src->ncolumns; c++)
		if (types[c].kind == GJ_REF)
			return true;
	return false;
}

static HeapSource *
open_table(GjTable *table, const GjProgram *program, int source_number)
{
	const GjSource *src = &gj_program_array(program, GjSource, sources)[source_number];
	HeapSource *source = palloc0(sizeof(HeapSource));

	source->base.fill = heap_source_fill;
	source->base.close = heap_source_close;
	source->base.tables = table;
	source->base.ntables = 1;
	source->table = table;
	source->vmbuffer = InvalidBuffer;
	source->ahead = InvalidBuffer;
	source->rel = table_open(table->relid, AccessShareLock);
	source->ncolumns = src->ncolumns;
	source->columns = palloc0(sizeof(HeapColumn) * Max(src->ncolumns, 1));
	describe_attributes(source, table->attnos);
	source->may_be_uniform = source->nsections == 1 && !has_refs(src, program);
	source->page_heap_bytes = page_heap_bytes(source,
											  gj_program_array(program, GjColumnType, columns) +
											  src->first_column);
	return source;
}

bool
gj_table_measure(GjTable *table, const GjProgram *program, int source_number, GjFailure *failure)
{
	HeapSource *source = open_table(table, program, source_number);
	bool		fits = source->page_heap_bytes <= GJ_LOAD_SLOT_SIZE / 8;

	table->share = &table->own_share;
	gj_share_init(table->share, RelationGetNumberOfBlocks(source->rel), 0, 1);
	table->shareable = !RelationUsesLocalBuffers(source->rel);
	heap_source_close(&source->base);
	if (!fits)
		gj_fail(failure, GJ_TOO_LARGE, "values of a page are too long together");
	return fits;
}

GjSourceReader *
gj_table_source(GjTable *table, Snapshot snapshot, const GjProgram *program, int source_number)
{
	HeapSource *source = open_table(table, program, source_number);

	source->snapshot = snapshot;
	source->can_prefetch =
		get_tablespace_io_concurrency(source->rel->rd_rel->reltablespace) > 0;
	if (!RelationUsesLocalBuffers(source->rel) && table->share->nblocks > NBuffers / 4)
		source->strategy = GetAccessStrategy(BAS_BULKREAD);
	pgstat_count_heap_scan(source->rel);
	return &source->base;
}
