/*
 * kept_rows.c
 *	  Rows of a scan that begins again with the same parameters, kept as Material keeps them.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "exec/kept_rows.h"

struct GjKeptRows
{
	Tuplestorestate *store;
	TupleTableSlot *from;		/* a row of the store */
	TupleTableSlot *to;			/* the same, as nodes above expect it */
	bool		all;
};

GjKeptRows *
gj_kept_create(EState *estate, TupleTableSlot *to)
{
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	GjKeptRows *kept = palloc0(sizeof(GjKeptRows));

	kept->to = to;
	kept->from = MakeSingleTupleTableSlot(to->tts_tupleDescriptor, &TTSOpsMinimalTuple);
	kept->store = tuplestore_begin_heap(false, false, work_mem);
	tuplestore_set_eflags(kept->store, EXEC_FLAG_REWIND);
	MemoryContextSwitchTo(old);
	return kept;
}

TupleTableSlot *
gj_kept_next(GjKeptRows *kept, TupleTableSlot *(*next) (void *), void *arg)
{
	TupleTableSlot *slot = kept->to;
	int			n = slot->tts_tupleDescriptor->natts;

	if (!tuplestore_ateof(kept->store) &&
		tuplestore_gettupleslot(kept->store, true, false, kept->from))
	{
		slot_getallattrs(kept->from);
		ExecClearTuple(slot);
		memcpy(slot->tts_values, kept->from->tts_values, sizeof(Datum) * n);
		memcpy(slot->tts_isnull, kept->from->tts_isnull, sizeof(bool) * n);
		return ExecStoreVirtualTuple(slot);
	}
	slot = kept->all ? NULL : next(arg);
	if (TupIsNull(slot))
	{
		kept->all = true;
		return ExecClearTuple(kept->to);
	}
	Assert(slot == kept->to);
	/* the place to read at moves with a row that is added at the end */
	tuplestore_puttupleslot(kept->store, slot);
	return slot;
}

void
gj_kept_rewind(GjKeptRows *kept)
{
	ExecClearTuple(kept->to);
	tuplestore_rescan(kept->store);
}

void
gj_kept_end(GjKeptRows *kept)
{
	ExecClearTuple(kept->to);
	ExecDropSingleTupleTableSlot(kept->from);
	tuplestore_end(kept->store);
	pfree(kept);
}
