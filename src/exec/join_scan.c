/*
 * join_scan.c
 *	  The GpuJoin node: its callbacks, and rows of batches, or of the native plan, into slots.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "jit/jit.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"

#include "exec/join_scan.h"
#include "exec/statements.h"
#include "guc.h"
#include "plan/join_path.h"

/* So many rows are taken in at once that are to be sorted. */
#define TAKEN_ROWS	256

static const CustomExecMethods gj_join_exec_methods;

static Node *
create_state(CustomScan *cscan)
{
	GjScanState *state = (GjScanState *) newNode(sizeof(GjScanState), T_CustomScanState);

	state->css.methods = &gj_join_exec_methods;
	return (Node *) state;
}

/* Unpacks custom_private. */
static void
unpack_plan(GjScanState *state, CustomScan *cscan)
{
	List	   *private = cscan->custom_private;
	List	   *flags = list_nth(private, GJ_PRIVATE_FLAGS);
	bytea	   *program = DatumGetByteaP(list_nth_node(Const, private,
													   GJ_PRIVATE_PROGRAM)->constvalue);
	ListCell   *lc;

	/* a copy, for its alignment */
	state->template = palloc(VARSIZE_ANY_EXHDR(program));
	memcpy(state->template, VARDATA_ANY(program), VARSIZE_ANY_EXHDR(program));
	state->sources = list_nth(private, GJ_PRIVATE_SOURCES);
	state->runtime_instrs = list_nth(private, GJ_PRIVATE_RUNTIME);
	state->agg_finals = list_nth(private, GJ_PRIVATE_FINALS);
	state->clause_counts = list_nth(private, GJ_PRIVATE_CLAUSE_COUNTS);
	state->tables = list_nth(private, GJ_PRIVATE_TABLES);
	state->noutputs = list_nth_int(flags, GJ_FLAG_NOUTPUTS);
	state->nfallback = list_nth_int(flags, GJ_FLAG_NFALLBACK);
	state->can_fail = list_nth_int(flags, GJ_FLAG_CAN_FAIL);
	state->nworkers = list_nth_int(flags, GJ_FLAG_LOADER_WORKERS);
	state->is_stage = list_nth_int(flags, GJ_FLAG_STAGE);
	state->key_codes = list_nth(private, GJ_PRIVATE_KEY_CODES);
	state->attributes = list_nth(private, GJ_PRIVATE_ATTRIBUTES);
	state->host_sort_keys = list_nth(private, GJ_PRIVATE_HOST_SORT);
	state->makes_values = gj_is_grouped(state);
	foreach(lc, state->attributes)
		state->makes_values |= lfirst_int(lc) != GJ_ATTRIBUTE_PLAIN;
}

/* The output, from 0, of each attribute of the result, where each is one; else NULL. */
static int *
picked_outputs(const GjScanState *state)
{
	List	   *targets = state->css.ss.ps.plan->targetlist;
	int		   *outputs = palloc(sizeof(int) * Max(list_length(targets), 1));
	ListCell   *lc;

	foreach(lc, targets)
	{
		Var		   *var = (Var *) lfirst_node(TargetEntry, lc)->expr;

		if (!IsA(var, Var) || var->varno != INDEX_VAR || var->varattno > state->noutputs)
			return NULL;
		outputs[foreach_current_index(lc)] = var->varattno - 1;
	}
	return outputs;
}

/*
 * If the projection does no more than to pick columns of the output, rows can go into
 * the result slot at once.
 */
static void
find_emit_slot(GjScanState *state)
{
	PlanState  *ps = &state->css.ss.ps;
	int		   *outputs = ps->ps_ProjInfo == NULL ? NULL : picked_outputs(state);

	state->emit_slot = state->css.ss.ss_ScanTupleSlot;
	if (outputs == NULL)
		return;
	if (state->host_sort_keys != NIL)
		state->sorted_outputs = outputs;
	else if (ps->qual == NULL && !state->makes_values &&
			 state->template->output == GJ_OUTPUT_ROWS)
	{
		state->emit_outputs = outputs;
		state->emit_slot = ps->ps_ProjInfo->pi_state.resultslot;
	}
}

/* RT index of the relation whose tables a source reads. */
static Index
source_rti(const CustomScan *cscan, List *description)
{
	TargetEntry *tle = list_nth_node(TargetEntry, cscan->custom_scan_tlist,
									 list_nth_int(description, GJ_SOURCE_RESNO) - 1);

	return castNode(Var, tle->expr)->varno;
}

/* Leaves out the tables that the native plan, which is initialised, does without. */
static void
prune_tables(GjScanState *state, CustomScan *cscan)
{
	Bitmapset  *pruned = state->fallback ? gj_pruned_tables(state->fallback) : NULL;
	List	   *left = NIL;
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, state->tables)
	{
		List	   *description = list_nth(state->sources, foreach_current_index(lc));
		List	   *tables = NIL;

		if (pruned == NULL)
			tables = lfirst(lc);
		else
			foreach(lc2, lfirst(lc))
				if (!bms_is_member(source_rti(cscan, description) +
								   list_nth_int(lfirst(lc2), GJ_TABLE_INDEX), pruned))
					tables = lappend(tables, lfirst(lc2));
		left = lappend(left, tables);
		state->npruned = lappend_int(state->npruned,
									 list_length(lfirst(lc)) - list_length(tables));
	}
	state->tables = left;
}

static void
begin_join_scan(CustomScanState *node, EState *estate, int eflags)
{
	GjScanState *state = (GjScanState *) node;
	CustomScan *cscan = castNode(CustomScan, node->ss.ps.plan);
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	int			jit_flags;
	ListCell   *lc;

	unpack_plan(state, cscan);
	state->runtime_exprs = ExecInitExprList(gj_runtime_exprs(cscan), &node->ss.ps);
	state->computed = ExecInitExprList(list_nth(cscan->custom_exprs, GJ_EXPRS_COMPUTED),
									   &node->ss.ps);
	/* children after the fallback are those of sources */
	for_each_from(lc, cscan->custom_plans, state->is_stage ? 0 : 1)
		node->custom_ps = lappend(node->custom_ps, ExecInitNode(lfirst(lc), estate, eflags));
	/*
	 * The native plan is initialised too, though it may never run: that opens its tables
	 * and indexes, so that nobody drops them under an open cursor, and checks what
	 * PostgreSQL would check.  Without JIT: preparing code costs more than all the rest,
	 * and is hardly ever used.
	 */
	if (!state->is_stage)
	{
		jit_flags = estate->es_jit_flags;
		estate->es_jit_flags = PGJIT_NONE;
		gj_stages_in_fallback(estate, true);
		state->fallback = ExecInitNode(linitial(cscan->custom_plans), estate, eflags);
		gj_stages_in_fallback(estate, false);
		estate->es_jit_flags = jit_flags;
		node->custom_ps = lappend(node->custom_ps, state->fallback);
	}
	prune_tables(state, cscan);
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	state->late = gj_late_open(list_nth(cscan->custom_private, GJ_PRIVATE_LATE), estate);
	/* attributes that are there for the conditions' sake only are never filled in */
	for (int i = 0; i < slot->tts_tupleDescriptor->natts; i++)
	{
		slot->tts_values[i] = (Datum) 0;
		slot->tts_isnull[i] = true;
	}
	find_emit_slot(state);
	state->run_cxt = AllocSetContextCreate(estate->es_query_cxt, "gpujoin run",
										   ALLOCSET_DEFAULT_SIZES);
	if (state->is_stage)
		gj_stage_register(state);
}

bool
gj_is_join_scan(PlanState *node)
{
	return IsA(node, CustomScanState) &&
		((CustomScanState *) node)->methods == &gj_join_exec_methods;
}

GjScanState *
gj_stage_below(PlanState *child)
{
	GjScanState *stage;

	if (IsA(child, SubqueryScanState))
		child = ((SubqueryScanState *) child)->subplan;
	stage = (GjScanState *) child;
	return gj_is_join_scan(child) && stage->is_stage ? stage : NULL;
}

/* The next row of the native plan, in the first attributes of the scan slot. */
static TupleTableSlot *
next_fallback_row(GjScanState *state)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;
	TupleTableSlot *from = ExecProcNode(state->fallback);

	ExecClearTuple(slot);
	if (TupIsNull(from))
		return NULL;
	slot_getsomeattrs(from, state->nfallback);
	memcpy(slot->tts_values, from->tts_values, sizeof(Datum) * state->nfallback);
	memcpy(slot->tts_isnull, from->tts_isnull, sizeof(bool) * state->nfallback);
	return ExecStoreVirtualTuple(slot);
}

/* Fetches late attributes of the slot, then computes what is made of others. */
static void
complete_attributes(GjScanState *state, TupleTableSlot *slot)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	int			n = 0;
	ListCell   *lc;

	if (state->late != NIL)
		state->nfetched += gj_late_fetch(state->late, state->css.ss.ps.state->es_snapshot,
										 slot->tts_values, slot->tts_isnull);
	if (state->computed == NIL)
		return;
	econtext->ecxt_scantuple = slot;
	foreach(lc, state->attributes)
		if (lfirst_int(lc) == GJ_ATTRIBUTE_COMPUTED)
		{
			int			attr = foreach_current_index(lc);

			slot->tts_values[attr] = ExecEvalExpr(list_nth_node(ExprState, state->computed, n++),
												  econtext, &slot->tts_isnull[attr]);
		}
}

/* The next row or group of a batch whose values are made for it, in the scan slot. */
static TupleTableSlot *
next_made(GjScanState *state)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;
	MemoryContext old;
	GjStatus	status = GJ_OK;

	/* values live until the next row is asked for */
	old = MemoryContextSwitchTo(state->css.ss.ps.ps_ExprContext->ecxt_per_tuple_memory);
	if (gj_is_grouped(state))
		status = gj_emit_group(&state->emitter, state->agg_finals, slot);
	else
		gj_emit_row(&state->emitter, slot);
	/* batches were checked before the first row of them */
	if (status != GJ_OK)
		elog(ERROR, "result of an aggregate is out of range");
	complete_attributes(state, slot);
	MemoryContextSwitchTo(old);
	return slot;
}

/* Starts the run or goes on to its next batch; falls back or ends where there is none. */
static void
advance(GjScanState *state)
{
	switch (state->phase)
	{
		case GJ_SCAN_START:
			gj_start_run(state);
			break;
		case GJ_SCAN_STREAM:
		case GJ_SCAN_SPOOL:
			if (!(state->phase == GJ_SCAN_STREAM ? gj_next_streamed_batch(state) :
				  gj_next_spooled_batch(state)) && state->phase == GJ_SCAN_END)
				gj_end_run(state);
			break;
		default:
			break;
	}
}

/* The next row of the join, in the scan slot or in emit_slot; NULL at the end. */
static TupleTableSlot *
next_row(GjScanState *state)
{
	for (;;)
	{
		bool		starts = state->phase == GJ_SCAN_START;

		if (state->phase == GJ_SCAN_FALLBACK)
			return next_fallback_row(state);
		if (state->phase == GJ_SCAN_END)
			return NULL;
		if (state->emitter.next < state->emitter.nrows)
			return state->makes_values ? next_made(state) :
				gj_emit_row(&state->emitter, state->emit_slot);
		advance(state);
		/* the one row of aggregates is in the slot already */
		if (starts && gj_is_one_row(state) && state->phase == GJ_SCAN_SPOOL)
		{
			state->phase = GJ_SCAN_END;
			return state->css.ss.ss_ScanTupleSlot;
		}
	}
}

/* True if a row in the scan slot passes the conditions that PostgreSQL checks. */
static bool
passes(GjScanState *state, TupleTableSlot *slot)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	ExprState  *qual = state->css.ss.ps.qual;

	econtext->ecxt_scantuple = slot;
	/* the native plan has checked everything itself */
	if (qual == NULL || state->phase == GJ_SCAN_FALLBACK || ExecQual(qual, econtext))
		return true;
	InstrCountFiltered1(&state->css, 1);
	return false;
}

/* Puts a row of a block into the scan slot. */
static TupleTableSlot *
row_to_slot(GjScanState *state, const GjRowBlock *block)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;

	ExecClearTuple(slot);
	memcpy(slot->tts_values, block->values, sizeof(Datum) * block->ncolumns);
	memcpy(slot->tts_isnull, block->isnull, sizeof(bool) * block->ncolumns);
	return ExecStoreVirtualTuple(slot);
}

/* Takes in some of the rows of the batch, those that pass, to be sorted. */
static void
take_rows(GjScanState *state)
{
	TupleDesc	desc = state->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	uint32		n = Min(state->emitter.nrows - state->emitter.next, TAKEN_ROWS);
	bool		singly = state->css.ss.ps.qual != NULL || state->computed != NIL ||
		state->late != NIL;
	GjRowBlock	block;
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);

	/* what PostgreSQL computes of a row can take any memory */
	if (singly)
		n = 1;
	if (state->host_sort == NULL)
		state->host_sort = gj_host_sort_begin(desc, state->noutputs, state->host_sort_keys,
											  state->emitter.nrows);
	block = gj_host_sort_reserve(state->host_sort, n);
	MemoryContextSwitchTo(state->css.ss.ps.ps_ExprContext->ecxt_per_tuple_memory);
	if (gj_emit_block(&state->emitter, gj_is_grouped(state) ? state->agg_finals : NIL, desc, n,
					  &block) != GJ_OK)
		elog(ERROR, "result of an aggregate is out of range");
	if (singly)
	{
		TupleTableSlot *slot = row_to_slot(state, &block);

		complete_attributes(state, slot);
		memcpy(block.values, slot->tts_values, sizeof(Datum) * block.ncolumns);
		memcpy(block.isnull, slot->tts_isnull, sizeof(bool) * block.ncolumns);
		if (!passes(state, slot))
			n = 0;
	}
	gj_host_sort_put(state->host_sort, n);
	MemoryContextSwitchTo(old);
}

/* The next of the sorted rows, in the scan slot or in the result slot; NULL at the end. */
static TupleTableSlot *
sorted_row(GjScanState *state)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;
	int			n = state->noutputs;

	if (state->sorted_outputs)
	{
		slot = state->css.ss.ps.ps_ProjInfo->pi_state.resultslot;
		n = slot->tts_tupleDescriptor->natts;
	}
	return state->host_sort != NULL &&
		gj_host_sort_next(state->host_sort, state->sorted_outputs, n, slot) ? slot : NULL;
}

/*
 * The next row in the order that the backend makes; NULL at the end.  The first one is asked for
 * when all have been taken in.  The native plan has the order by itself.
 */
static TupleTableSlot *
next_sorted_row(GjScanState *state)
{
	Assert(!gj_is_one_row(state));
	while (!state->is_sorted)
	{
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(state->css.ss.ps.ps_ExprContext);
		if (state->phase == GJ_SCAN_FALLBACK)
			return next_fallback_row(state);
		if (state->phase == GJ_SCAN_END)
		{
			if (state->host_sort != NULL)
				gj_host_sort_perform(state->host_sort, &state->sort_stats);
			state->is_sorted = true;
		}
		else if (state->emitter.next < state->emitter.nrows)
			take_rows(state);
		else
			advance(state);
	}
	return sorted_row(state);
}

/* The next row, in the slot that the node returns; that is empty at the end, or it is NULL. */
static TupleTableSlot *
next_result(void *arg)
{
	GjScanState *state = arg;
	CustomScanState *node = &state->css;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	ProjectionInfo *projection = node->ss.ps.ps_ProjInfo;

	/* the usual row of a large result */
	if (state->emit_outputs && state->emitter.next < state->emitter.nrows)
	{
		CHECK_FOR_INTERRUPTS();
		state->nreturned++;
		return gj_emit_row(&state->emitter, state->emit_slot);
	}
	for (;;)
	{
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		slot = state->host_sort_keys != NIL ? next_sorted_row(state) : next_row(state);
		if (slot == NULL)
			return projection ? ExecClearTuple(projection->pi_state.resultslot) : NULL;
		if (slot != node->ss.ss_ScanTupleSlot)
		{
			state->nreturned++;
			return slot;
		}
		econtext->ecxt_scantuple = slot;
		if (state->host_sort_keys == NIL && !passes(state, slot))
			continue;
		state->nreturned++;
		return projection ? ExecProject(projection) : slot;
	}
}

static TupleTableSlot *
exec_join_scan(CustomScanState *node)
{
	GjScanState *state = (GjScanState *) node;

	if (state->is_stage)
		elog(ERROR, "a stage of a GpuJoin returns no rows");
	return state->kept ? gj_kept_next(state->kept, next_result, state) : next_result(state);
}

/* Has what all runs of the node did counted. */
static void
note_use(const GjScanState *state)
{
	GjStatementUse use = {.wait_ms = state->load_stats.wait_ms,.fallbacks = state->nfallbacks};

	if (state->nruns == 0 && state->nfallbacks == 0)
		return;
	gj_statement_use_stats(&use, &state->stats);
	for (int s = 0; s < GJ_MAX_SOURCES; s++)
		use.load_ms += state->load_stats.ms[s];
	gj_statement_note(&use);
}

static void
forget_kept(GjScanState *state)
{
	if (state->kept != NULL)
		gj_kept_end(state->kept);
	state->kept = NULL;
}

static void
end_join_scan(CustomScanState *node)
{
	ListCell   *lc;

	forget_kept((GjScanState *) node);
	gj_end_run((GjScanState *) node);
	gj_end_sort((GjScanState *) node);
	note_use((GjScanState *) node);
	gj_late_close(((GjScanState *) node)->late);
	foreach(lc, node->custom_ps)
		ExecEndNode(lfirst(lc));
}

/*
 * No more rows are wanted.  A run with workers ends here, while parallel mode is still on;
 * any other one can wait for its end, or go on if this was a mistake.
 */
static void
shutdown_join_scan(CustomScanState *node)
{
	GjScanState *state = (GjScanState *) node;

	if (state->run == NULL || !gj_remote_has_workers(state->run))
		return;
	/* they would not become all of them */
	forget_kept(state);
	gj_end_run(state);
	state->phase = GJ_SCAN_END;
}

/* The slot that rows are returned in. */
static TupleTableSlot *
result_slot(const GjScanState *state)
{
	const PlanState *ps = &state->css.ss.ps;

	return ps->ps_ProjInfo ? ps->ps_ProjInfo->pi_state.resultslot : state->css.ss.ss_ScanTupleSlot;
}

/*
 * Begins again.  Rows are kept from the second time on, so that a scan that does not begin again
 * keeps none: a nested loop whose outer side has more rows than was expected reads them often.
 */
static void
rescan_join_scan(CustomScanState *node)
{
	GjScanState *state = (GjScanState *) node;
	bool		is_same = node->ss.ps.chgParam == NULL;
	bool		keeps = !state->is_stage && is_same && state->phase != GJ_SCAN_START;
	ListCell   *lc;

	if (state->kept != NULL && is_same)
	{
		gj_kept_rewind(state->kept);
		return;
	}
	forget_kept(state);
	gj_end_run(state);
	gj_end_sort(state);
	if (node->ss.ps.ps_ResultTupleSlot)
		ExecClearTuple(node->ss.ps.ps_ResultTupleSlot);
	ExecClearTuple(node->ss.ss_ScanTupleSlot);
	foreach(lc, node->custom_ps)
	{
		PlanState  *child = lfirst(lc);

		if (node->ss.ps.chgParam != NULL)
			UpdateChangedParamSet(child, node->ss.ps.chgParam);
		if (child->chgParam == NULL && (state->phase != GJ_SCAN_START || state->took_rows))
			ExecReScan(child);
	}
	state->phase = GJ_SCAN_START;
	state->took_rows = false;
	if (keeps)
		state->kept = gj_kept_create(node->ss.ps.state, result_slot(state));
}

const CustomScanMethods gj_join_scan_methods = {
	.CustomName = "GpuJoin",
	.CreateCustomScanState = create_state,
};

static const CustomExecMethods gj_join_exec_methods = {
	.CustomName = "GpuJoin",
	.BeginCustomScan = begin_join_scan,
	.ExecCustomScan = exec_join_scan,
	.EndCustomScan = end_join_scan,
	.ReScanCustomScan = rescan_join_scan,
	.ShutdownCustomScan = shutdown_join_scan,
	.ExplainCustomScan = gj_explain_join_scan,
};

void
gj_join_scan_init(void)
{
	/* a second load (old and new library after an upgrade) keeps the first */
	if (GetCustomScanMethods(gj_join_scan_methods.CustomName, true) == NULL)
		RegisterCustomScanMethods(&gj_join_scan_methods);
}
