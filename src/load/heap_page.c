/*
 * heap_page.c
 *	  Reads the pages of a heap table, and collects the visible tuples of each.
 *
 * A page that says under its share lock that it is all-visible needs no look at transaction ids.
 * On other pages, and on all pages in hot standby, each tuple is asked.  A SeqScan does both.
 *
 * A page may stay resident only if its bit in the visibility map is set as well.  The bit alone is
 * not enough: it can be stale, as after a restored file.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/visibilitymap.h"
#include "executor/instrument.h"
#include "pgstat.h"

#include "compat.h"
#include "load/heap_source.h"
#include "load/resident.h"

/* Blocks to look ahead while reads miss the buffer pool, and for how long after a miss. */
#define PREFETCH_DISTANCE	32
#define PREFETCH_BLOCKS		256

/* ---- buffers */

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

/* Reads a block and notices whether it had to come from outside. */
static Buffer
read_block(HeapSource *source, BlockNumber blkno)
{
	int64		nread = pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read;
	Buffer		buffer = gj_next_buffer(&source->next_buffer, source->rel, blkno);

	if (BufferIsValid(buffer))
		return buffer;
	look_ahead(source);
	buffer = ReadBufferExtended(source->rel, MAIN_FORKNUM, blkno, RBM_NORMAL,
								source->strategy);
	if (pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read != nread)
		source->prefetch_blocks = PREFETCH_BLOCKS;
	gj_note_buffer(&source->next_buffer, buffer);
	return buffer;
}

BlockNumber
gj_heap_block_after(const HeapSource *source, BlockNumber blkno)
{
	return gj_resident_next(source->table->resident, blkno + 1, source->end);
}

Buffer
gj_heap_take_block(HeapSource *source)
{
	Buffer		buffer = source->ahead;
	BlockNumber after = gj_heap_block_after(source, source->next);

	if (!BufferIsValid(buffer))
		buffer = read_block(source, source->next);
	source->ahead = InvalidBuffer;
	if (after < source->end)
		source->ahead = read_block(source, after);
	return buffer;
}

/* ---- tuples */

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
		source->lines[n] = line;
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

/*
 * True if hint bits alone say that an MVCC snapshot sees a tuple: it was inserted by a transaction that has
 * committed, before any that the snapshot takes for running, and nobody has deleted it.
 */
static inline bool
is_seen_by_hints(HeapTupleHeader tuple, Snapshot snapshot)
{
	const uint16 hints = HEAP_XMIN_COMMITTED | HEAP_XMAX_INVALID;

	return (tuple->t_infomask & hints) == hints &&
		(HeapTupleHeaderXminFrozen(tuple) ||
		 TransactionIdPrecedes(HeapTupleHeaderGetRawXmin(tuple), snapshot->xmin));
}

/* The tuples of a page that the snapshot sees.  True if these are all that there are. */
static bool
collect_visible(HeapSource *source, Page page, Buffer buffer)
{
	OffsetNumber nlines = PageGetMaxOffsetNumber(page);
	PageAhead	ahead = page_ahead(source);
	bool		all = true;

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
		fetch_ahead(&ahead);
		if (!is_seen_by_hints(tuple.t_data, source->snapshot) &&
			!HeapTupleSatisfiesVisibility(&tuple, source->snapshot, buffer))
		{
			all = false;
			continue;
		}
		source->tuples[source->ntuples] = tuple.t_data;
		source->lines[source->ntuples] = line;
		source->data[source->ntuples++] = (char *) tuple.t_data + tuple.t_data->t_hoff;
		source->regular &= !(tuple.t_data->t_infomask & HEAP_HASNULL) &&
			HeapTupleHeaderGetNatts(tuple.t_data) >= source->natts;
	}
	while (ahead.line < ahead.end)
		fetch_ahead(&ahead);
	/* as of a page that was filled since the last vacuum */
	if (source->ntuples == nlines)
		source->uniform = collect_uniform(source, page);
	return all;
}

bool
gj_heap_collect(HeapSource *source, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	bool		all = PageIsAllVisible(page);

	if (all && !source->snapshot->takenDuringRecovery)
		collect_all(source, page);
	else
		all &= collect_visible(source, page, buffer);
	all = all && (visibilitymap_get_status(source->rel, source->next, &source->vmbuffer) &
				  VISIBILITYMAP_ALL_VISIBLE);
	source->base.npages++;
	source->base.nvisible += all;
	return all;
}
