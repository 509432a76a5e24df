/*
 * heap_source.c
 *	  Takes columns straight out of the pages of a heap table.
 *
 * Page at a time, under the page's share lock: its visible tuples are collected first
 * (heap_page.c), then taken apart (heap_tuple.c).  Chunks that are to become resident also carry
 * the LSNs, row counts and visibility of their pages.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/spccache.h"

#include "compat.h"
#include "load/heap_source.h"
#include "load/resident.h"
#include "load/visibility.h"

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
 * The page just noted is not what its column keys say: another query must not take it.  Its texts
 * alone might have had room, or it might compute with a number that is NaN.
 */
static void
forget_page(HeapSource *source, GjWriter *writer)
{
	if (gj_resident_keeps(source->table->resident, source->next))
		writer->pages->nrows[writer->pages->n - 1] &= ~GJ_PAGE_VISIBLE;
}

/* A number of a column is one that the device cannot compute with: later queries see to it. */
static void
refuse_column(HeapSource *source, int column, GjFailure *failure)
{
	AttrNumber	attno = source->columns[column].attno + 1;

	gj_decimal_note(RelationGetRelid(source->rel), attno);
	gj_fail(failure, GJ_UNKNOWN_VALUE, "NaN in column %s of table %s",
			NameStr(TupleDescAttr(RelationGetDescr(source->rel), attno - 1)->attname),
			RelationGetRelationName(source->rel));
}

/* True if there is a block to load: of the share that is being loaded, or of another one. */
static bool
has_block(HeapSource *source)
{
	while (source->next >= source->end)
	{
		if (!gj_block_share_next(source->table->share, &source->next, &source->end))
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
		Buffer		buffer;
		bool		visible;

		more = has_block(source);
		if (!more || !start_page(source, writer))
			break;
		CHECK_FOR_INTERRUPTS();
		buffer = gj_heap_take_block(source);
		heap_page_prune_opt(source->rel, buffer);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		visible = gj_heap_collect(source, buffer);
		if (source->ntuples > 0)
			gj_heap_write_tuples(source, writer);
		note_page(source, writer, buffer, visible);
		UnlockReleaseBuffer(buffer);
		if ((writer->ntoasted > 0 && !gj_writer_flatten(writer)) || writer->has_nan)
			forget_page(source, writer);
		writer->has_nan = false;
		if (writer->failed >= 0)
		{
			refuse_column(source, writer->failed, failure);
			return false;
		}
		source->next = gj_heap_block_after(source, source->next);
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
	gj_heap_describe(source, table->attnos);
	source->may_be_uniform = source->nsections == 1 && !has_refs(src, program);
	source->page_heap_bytes = gj_heap_page_bytes(source,
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
	gj_block_share_init(table->share, RelationGetNumberOfBlocks(source->rel), 0, 1);
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
