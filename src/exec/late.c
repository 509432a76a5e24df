/*
 * late.c
 *	  Fetches the late columns of the rows that come back.
 *
 * The device has returned the ctids of tuples that the loader saw, perhaps for an earlier query on a
 * page that has not changed since (load/README.md).  The query's snapshot sees these tuples, and is
 * registered until the query ends.  So no vacuum and no pruning takes them away, nor their numbers.
 * A tuple that was updated meanwhile is still there, and its new version is another one.  In hot
 * standby, recovery cancels the query before it removes what the query's snapshot sees.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "utils/rel.h"

#include "exec/late.h"
#include "plan/join_path.h"

/* A late column: an attribute of the row, from 0, and that of the table. */
typedef struct LateColumn
{
	int			attr;
	AttrNumber	attno;
} LateColumn;

struct GjLateTable
{
	Relation	rel;
	TupleTableSlot *slot;		/* the tuple of the last row, or empty */
	int			id;				/* attribute of the row that is the ctid, from 0 */
	AttrNumber	last;			/* the last attribute that is read */
	int			ncolumns;
	LateColumn *columns;
};

static GjLateTable *
open_table(List *description, EState *estate)
{
	GjLateTable *table = palloc0(sizeof(GjLateTable));

	table->rel = table_open((Oid) list_nth_int(description, GJ_LATE_RELID), AccessShareLock);
	table->slot = table_slot_create(table->rel, &estate->es_tupleTable);
	table->id = list_nth_int(description, GJ_LATE_ID) - 1;
	table->columns = palloc(sizeof(LateColumn) * list_length(description));
	for (int i = GJ_LATE_COLUMNS; i < list_length(description); i += 2)
	{
		LateColumn *column = &table->columns[table->ncolumns++];

		column->attr = list_nth_int(description, i) - 1;
		column->attno = list_nth_int(description, i + 1);
		table->last = Max(table->last, column->attno);
	}
	return table;
}

List *
gj_late_open(List *descriptions, EState *estate)
{
	List	   *tables = NIL;
	ListCell   *lc;

	foreach(lc, descriptions)
		tables = lappend(tables, open_table(lfirst(lc), estate));
	return tables;
}

/* Has the tuple in the table's slot.  False if it was there already. */
static bool
fetch_tuple(GjLateTable *table, Snapshot snapshot, ItemPointer tid)
{
	if (!TTS_EMPTY(table->slot) && ItemPointerEquals(&table->slot->tts_tid, tid))
		return false;
	if (!ItemPointerIsValid(tid) ||
		!table_tuple_fetch_row_version(table->rel, tid, snapshot, table->slot))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("gpujoin did not find tuple (%u,%u) of table \"%s\" again",
						ItemPointerGetBlockNumberNoCheck(tid),
						ItemPointerGetOffsetNumberNoCheck(tid),
						RelationGetRelationName(table->rel)),
				 errhint("Set gpujoin.late_columns to off, and report this.")));
	slot_getsomeattrs(table->slot, table->last);
	return true;
}

int
gj_late_fetch(List *tables, Snapshot snapshot, Datum *values, bool *isnull)
{
	int			nfetched = 0;
	ListCell   *lc;

	foreach(lc, tables)
	{
		GjLateTable *table = lfirst(lc);
		bool		missing = isnull[table->id];	/* an outer join has found no row */
		ItemPointerData tid;

		if (!missing)
		{
			memcpy(&tid, DatumGetPointer(values[table->id]), sizeof(tid));
			nfetched += fetch_tuple(table, snapshot, &tid);
		}
		for (int c = 0; c < table->ncolumns; c++)
		{
			const LateColumn *column = &table->columns[c];

			values[column->attr] = missing ? (Datum) 0 : table->slot->tts_values[column->attno - 1];
			isnull[column->attr] = missing || table->slot->tts_isnull[column->attno - 1];
		}
	}
	return nfetched;
}

void
gj_late_clear(List *tables)
{
	ListCell   *lc;

	foreach(lc, tables)
		ExecClearTuple(((GjLateTable *) lfirst(lc))->slot);
}

void
gj_late_close(List *tables)
{
	ListCell   *lc;

	gj_late_clear(tables);
	foreach(lc, tables)
		table_close(((GjLateTable *) lfirst(lc))->rel, NoLock);
}
