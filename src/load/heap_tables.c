/*
 * heap_tables.c
 *	  A heap source of one table or of several: partitions, children, members of UNION ALL.
 *
 * Tables are read one after the other.  Only the one that is being read is open: a worker
 * never opens a table of which the others have taken all shares.  A slot can end with rows of
 * one table and go on with rows of the next, unless its pages are to be kept.
 */
#include "postgres.h"

#include "access/table.h"
#include "utils/memutils.h"

#include "compat.h"
#include "load/source.h"

typedef struct TablesSource
{
	GjSourceReader base;
	Snapshot	snapshot;
	const GjProgram *program;
	int			source;
	int			next;			/* the table to be read after the current one */
	GjSourceReader *current;	/* NULL: none is open */
	MemoryContext table_cxt;	/* of the current one */
} TablesSource;

static void
close_current(TablesSource *tables)
{
	if (tables->current)
		tables->current->close(tables->current);
	tables->current = NULL;
	MemoryContextReset(tables->table_cxt);
}

/* Opens the next table of which something is left to load; false if there is none. */
static bool
open_next(TablesSource *tables)
{
	MemoryContext old;

	while (tables->next < tables->base.ntables &&
		   gj_block_share_is_empty(tables->base.tables[tables->next].share))
		tables->next++;
	if (tables->next == tables->base.ntables)
		return false;
	old = MemoryContextSwitchTo(tables->table_cxt);
	tables->current = gj_table_source(&tables->base.tables[tables->next++], tables->snapshot,
									  tables->program, tables->source);
	MemoryContextSwitchTo(old);
	return true;
}

static bool
tables_fill(GjSourceReader *reader, GjWriter *writer, GjFailure *failure)
{
	TablesSource *tables = (TablesSource *) reader;

	while (tables->current != NULL || open_next(tables))
	{
		GjSourceReader *current = tables->current;
		uint64		npages = current->npages;
		uint64		nvisible = current->nvisible;
		bool		more = current->fill(current, writer, failure);

		reader->npages += current->npages - npages;
		reader->nvisible += current->nvisible - nvisible;
		if (more || failure->reason != GJ_OK)
			return more;
		close_current(tables);
	}
	return false;
}

static void
tables_close(GjSourceReader *reader)
{
	close_current((TablesSource *) reader);
}

/* Shares of several tables: each is the larger the more comes behind it. */
static void
count_behind(GjTable *tables, int ntables)
{
	uint64		behind = 0;

	for (int i = ntables - 1; i >= 0; i--)
	{
		tables[i].share->behind = behind;
		behind += tables[i].share->nblocks;
	}
}

GjSourceReader *
gj_heap_source(GjTable *tables, int ntables, Snapshot snapshot, const GjProgram *program,
			   int source, GjFailure *failure)
{
	TablesSource *reader;
	bool		leader = ntables > 0 && tables[0].share == NULL;

	if (snapshot == NULL || snapshot->snapshot_type != SNAPSHOT_MVCC)
	{
		gj_fail(failure, GJ_NOT_NOW, "not an MVCC snapshot");
		return NULL;
	}
	if (gj_old_snapshot_threshold_active())
	{
		gj_fail(failure, GJ_NOT_NOW, "old_snapshot_threshold is active");
		return NULL;
	}
	reader = palloc0(sizeof(TablesSource));
	reader->table_cxt = AllocSetContextCreate(CurrentMemoryContext, "gpujoin table",
											  ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < ntables; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(reader->table_cxt);
		bool		measured = !leader ||
			gj_table_measure(&tables[i], program, source, failure);

		MemoryContextSwitchTo(old);
		MemoryContextReset(reader->table_cxt);
		if (!measured)
			return NULL;
	}
	if (ntables == 1)
		return gj_table_source(tables, snapshot, program, source);
	if (leader)
		count_behind(tables, ntables);
	reader->base.fill = tables_fill;
	reader->base.close = tables_close;
	reader->base.tables = tables;
	reader->base.ntables = ntables;
	reader->snapshot = snapshot;
	reader->program = program;
	reader->source = source;
	return &reader->base;
}

/* True if an earlier table of the source is the same: UNION ALL of a table with itself. */
static bool
is_repeated(const GjTable *tables, int i)
{
	for (int k = 0; k < i; k++)
		if (tables[k].relid == tables[i].relid)
			return true;
	return false;
}

void
gj_heap_source_ask(GjSourceReader *reader, GjResidentAsks *asks, const GjWriter *writer,
				   int source, int nworkers, GjResidentUse *use)
{
	int			n = 0;

	reader->asked = palloc0(sizeof(GjResidentTable) * Max(reader->ntables, 1));
	for (int i = 0; i < reader->ntables; i++)
	{
		GjTable    *table = &reader->tables[i];

		/* the pages of one would be kept as those of the other */
		if (is_repeated(reader->tables, i))
			continue;
		reader->asked[n].rel = table_open(table->relid, NoLock);
		reader->asked[n].attnos = table->attnos;
		reader->asked[n++].nblocks = table->share->nblocks;
	}
	gj_resident_add(asks, writer, source, reader->asked, n, nworkers, use);
}

void
gj_heap_source_found(GjSourceReader *reader)
{
	int			n = 0;

	for (int i = 0; i < reader->ntables; i++)
	{
		GjTable    *table = &reader->tables[i];
		GjResidentTable *asked = &reader->asked[n];

		if (is_repeated(reader->tables, i))
			continue;
		table->resident = asked->map;
		table->number = asked->number;
		if (table->resident != NULL)
			reader->nresident += table->resident->nresident;
		table_close(asked->rel, NoLock);
		n++;
	}
	pfree(reader->asked);
	reader->asked = NULL;
}

uint64
gj_heap_source_left(const GjSourceReader *reader)
{
	uint64		npages = 0;

	for (int i = 0; i < reader->ntables; i++)
	{
		const GjTable *table = &reader->tables[i];

		if (table->shareable)
			npages += table->share->nblocks - (table->resident ? table->resident->nresident : 0);
	}
	return npages;
}
