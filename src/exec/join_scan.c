/*
 * join_scan.c
 *	  The GpuJoin node: callbacks, and the decision to run on the device or to fall back.
 *
 * A run starts with the first row asked for.  Until a row has been returned, whatever
 * goes wrong makes the node run the native plan that it displaced instead.  Programs that can fail on data
 * complete first: their batches are spooled.  A device that dies after a row has been
 * returned is an error.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "jit/jit.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pg_list.h"
#include "portability/instr_time.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "exec/join_scan.h"
#include "exec/statements.h"
#include "guc.h"
#include "plan/excluded.h"
#include "plan/join_path.h"
#include "preload.h"

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

/* One row of aggregates, with no groups. */
static bool
is_one_row(const GjScanState *state)
{
	return state->template->output == GJ_OUTPUT_AGGREGATES;
}

static bool
is_grouped(const GjScanState *state)
{
	return state->template->output == GJ_OUTPUT_GROUPS;
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
	state->makes_values = is_grouped(state);
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

/* Adds what gpujoind tells of a run to the sums that EXPLAIN shows. */
static void
add_stats(GjRunStats *sum, const GjRunStats *stats)
{
	gj_add_run_stats(sum, stats, ~0u);
	sum->memory_peak = Max(sum->memory_peak, stats->memory_peak);
	sum->npasses += stats->npasses;
	if (stats->exchange_step > 0)
	{
		sum->exchange_step = stats->exchange_step;
		sum->scheme = stats->scheme;
	}
	sum->elapsed_ms += stats->elapsed_ms;
	sum->spilled_memory = Max(sum->spilled_memory, stats->spilled_memory);
	sum->spilled_disk += stats->spilled_disk;
	sum->sorted_runs += stats->sorted_runs;
	for (uint32 i = 0; i < Min(stats->ndevices, GJ_MAX_RUN_DEVICES); i++)
	{
		uint32		d = 0;

		while (d < sum->ndevices && sum->device[d].ordinal != stats->device[i].ordinal)
			d++;
		if (d == GJ_MAX_RUN_DEVICES)
			continue;
		if (d == sum->ndevices)
			sum->device[sum->ndevices++].ordinal = stats->device[i].ordinal;
		sum->device[d].rows += stats->device[i].rows;
		sum->device[d].chunks += stats->device[i].chunks;
		sum->device[d].busy_ms += stats->device[i].busy_ms;
		sum->device[d].exchanged += stats->device[i].exchanged;
	}
}

GjScanState *
gj_stage_below(PlanState *child)
{
	GjScanState *stage;

	if (IsA(child, SubqueryScanState))
		child = ((SubqueryScanState *) child)->subplan;
	stage = (GjScanState *) child;
	return IsA(child, CustomScanState) && stage->css.methods == &gj_join_exec_methods &&
		stage->is_stage ? stage : NULL;
}

/* Gives back everything that the current run holds, and what it reads of others. */
static void
end_run(GjScanState *state)
{
	ListCell   *lc;

	foreach(lc, state->css.custom_ps)
	{
		GjScanState *stage = gj_stage_below(lfirst(lc));

		if (stage == NULL)
			continue;
		stage->is_left = gj_stage_is_awaited(stage);
		if (!stage->is_left)
			end_run(stage);
	}
	if (state->run)
		gj_remote_end(state->run);
	if (state->spool)
		gj_spool_end(state->spool);
	state->run = NULL;
	state->spool = NULL;
	state->has_result = state->is_left = false;
	state->batch_held = false;
	gj_late_clear(state->late);
	memset(&state->emitter, 0, sizeof(state->emitter));
	if (state->run_cxt)
		MemoryContextReset(state->run_cxt);
}

/* Forgets the rows that were taken in to be sorted. */
static void
end_sort(GjScanState *state)
{
	if (state->host_sort)
		gj_host_sort_end(state->host_sort);
	state->host_sort = NULL;
	state->is_sorted = false;
}

/* What has failed is not tried again by GpuJoins in the native plan. */
static bool
give_up(PlanState *node, void *failure)
{
	GjScanState *state = (GjScanState *) node;

	if (IsA(node, CustomScanState) && state->css.methods == &gj_join_exec_methods &&
		state->phase == GJ_SCAN_START && state->failure.reason == GJ_OK)
		state->failure = *(GjFailure *) failure;
	return planstate_tree_walker(node, give_up, failure);
}

/* Gives results of stages back that nobody waits for any more. */
static void
end_left(EState *estate)
{
	List	   *left = gj_stages_left(estate);
	ListCell   *lc;

	foreach(lc, left)
		end_run(lfirst(lc));
	list_free(left);
}

/* The node will read no stage any more, or not before others have ended. */
static void
forget_stages(GjScanState *state)
{
	ListCell   *lc;

	foreach(lc, state->css.custom_ps)
	{
		GjScanState *stage = gj_stage_below(lfirst(lc));

		if (stage == NULL)
			continue;
		stage->was_read = true;
		forget_stages(stage);
	}
}

/* From now on the native plan gives the rows. */
static void
fall_back(GjScanState *state, const GjFailure *failure)
{
	GjFailure	why = *failure;
	int64		query_id = (int64) state->css.ss.ps.state->es_plannedstmt->queryId;

	end_run(state);
	end_sort(state);
	forget_stages(state);
	end_left(state->css.ss.ps.state);
	if (why.reason != state->failure.reason)
	{
		gj_client_fall_back(&why);
		state->nfallbacks++;
	}
	ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
	state->failure = why;
	ereport(gj_log_fallbacks == GJ_LOG_FALLBACKS_WARNING ? WARNING :
			gj_log_fallbacks == GJ_LOG_FALLBACKS_LOG ? LOG : DEBUG1,
			(errmsg("gpujoin runs PostgreSQL's own plan: %s%s%s", gj_reason_text(why.reason),
					why.detail[0] ? ": " : "", why.detail),
			 query_id != 0 ? errdetail("Query identifier: " INT64_FORMAT ".", query_id) : 0));
	(void) give_up(state->fallback, &why);
	state->phase = GJ_SCAN_FALLBACK;
}

/*
 * Something did not fit the device, which nobody expected: a new run keeps build sides on
 * the host first and takes them in parts.
 */
static void
start_again(GjScanState *state)
{
	ListCell   *lc;

	end_run(state);
	end_sort(state);
	ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
	foreach(lc, state->css.custom_ps)
		if (lfirst(lc) != state->fallback)
			ExecReScan(lfirst(lc));
	ereport(DEBUG1,
			(errmsg_internal("gpujoin runs a program again in parts: %s",
							 gj_reason_text(GJ_OUT_OF_MEMORY))));
	state->spill = true;
	state->phase = GJ_SCAN_START;
}

/* The device has failed: fall back if that is still possible. */
static void
device_failed(GjScanState *state, const GjFailure *failure)
{
	if (state->nreturned > 0)
	{
		gj_client_count(failure);
		ereport(ERROR,
				(errcode(ERRCODE_SYSTEM_ERROR),
				 errmsg("gpujoin lost its device after rows had been returned"),
				 errdetail("%s%s%s", gj_reason_text(failure->reason),
						   failure->detail[0] ? ": " : "", failure->detail),
				 errhint("Run the query again, or set gpujoin.enabled to off.")));
	}
	if (failure->reason == GJ_OUT_OF_MEMORY && !state->spill && gj_fail_at == GJ_FAIL_NEVER)
	{
		start_again(state);
		return;
	}
	fall_back(state, failure);
}

/* Returns a table of the node that gpujoin.excluded_tables has by now, or invalid. */
static Oid
excluded_table(const GjScanState *state)
{
	List	   *excluded = gj_excluded_relids();
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, excluded == NIL ? NIL : state->tables)
		foreach(lc2, lfirst(lc))
		{
			Oid			relid = (Oid) list_nth_int(lfirst(lc2), GJ_TABLE_RELID);

			if (list_member_oid(excluded, relid))
				return relid;
		}
	return InvalidOid;
}

/* True if the device may be used in this execution at all. */
static bool
may_run(GjScanState *state, GjFailure *failure)
{
	EState	   *estate = state->css.ss.ps.state;
	const char *reason;

	failure->reason = GJ_OK;
	if (!gj_may_offload(&reason))
		gj_fail(failure, GJ_DISABLED, "%s", reason);
	else if (!gj_extension_present())
		gj_fail(failure, GJ_DISABLED, "extension gpujoin is not in this database");
	else if (OidIsValid(excluded_table(state)))
		gj_fail(failure, GJ_DISABLED, "gpujoin.excluded_tables has %s",
				get_rel_name(excluded_table(state)));
	else if (IsolationIsSerializable())
		gj_fail(failure, GJ_NOT_NOW, "serializable transaction");
	else if (estate->es_epq_active != NULL)
		gj_fail(failure, GJ_NOT_NOW, "EvalPlanQual recheck");
	return failure->reason == GJ_OK;
}

/* Numbers in a description, from element `from` on. */
static AttrNumber *
read_attnos(List *description, int from)
{
	AttrNumber *attnos = palloc(sizeof(AttrNumber) * list_length(description));

	for (int i = from; i < list_length(description); i++)
		attnos[i - from] = list_nth_int(description, i);
	return attnos;
}

/* Opens the reader of a source's tables. */
static bool
open_tables(GjScanState *state, const GjProgram *program, int s, GjFailure *failure)
{
	List	   *descriptions = list_nth(state->tables, s);
	int			n = list_length(descriptions);
	GjTable    *tables = palloc0(sizeof(GjTable) * Max(n, 1));
	GjSourceReader *reader;
	ListCell   *lc;

	foreach(lc, descriptions)
	{
		GjTable    *table = &tables[foreach_current_index(lc)];

		table->relid = (Oid) list_nth_int(lfirst(lc), GJ_TABLE_RELID);
		table->attnos = read_attnos(lfirst(lc), GJ_TABLE_COLUMNS);
	}
	reader = gj_heap_source(tables, n, state->css.ss.ps.state->es_snapshot, program, s, failure);
	if (reader == NULL)
		return false;
	gj_remote_set_reader(state->run, s, reader);
	return true;
}

/*
 * Workers that may help to load, if this execution was planned for them and is one that runs to its end, as
 * parallel plans need it.
 */
static int
most_workers(const GjScanState *state)
{
	return state->css.ss.ps.state->es_use_parallel_mode && !IsParallelWorker() ? state->nworkers : 0;
}

static bool submit_run(GjScanState *state, GjProgram *program, GjFailure *failure);

/* The program of a run; NULL with the reason. */
static GjProgram *
make_program(GjScanState *state, GjFailure *failure)
{
	GjProgram  *program = gj_make_program(state);

	if (program == NULL)
		gj_fail(failure, GJ_TOO_LARGE, "program");
	else
		program->spill = state->spill;
	return program;
}

/* Has a stage run, unless an equal one has: its result stays in gpujoind until end_run. */
static bool
run_stage(GjScanState *state, PlanState *child, GjFailure *failure)
{
	GjScanState *stage = gj_stage_below(child);
	Instrumentation *instrument = stage->css.ss.ps.instrument;
	GjProgram  *program;
	MemoryContext old;
	bool		done;

	/* what plans below open when they run lives as long as they do, beyond this run */
	old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	/* values of parameters that the stage's own children have not seen */
	if (child->chgParam != NULL)
		ExecReScan(child);
	if (stage->css.ss.ps.chgParam != NULL)
		ExecReScan(&stage->css.ss.ps);
	end_run(stage);
	stage->spill = state->spill;
	stage->was_read = true;
	MemoryContextSwitchTo(stage->run_cxt);
	program = make_program(stage, failure);
	stage->program = program;
	stage->used_equal = program != NULL && gj_equal_stage(stage, program) != NULL;
	/* the other's result is to stay until set_stages has it */
	stage->was_read = !stage->used_equal;
	if (program == NULL || stage->used_equal)
	{
		MemoryContextSwitchTo(old);
		forget_stages(stage);
		return program != NULL;
	}
	if (instrument)
		InstrStartNode(instrument);
	done = submit_run(stage, program, failure);
	MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	done = done && gj_remote_keep(stage->run, failure);
	MemoryContextSwitchTo(old);
	stage->has_result = done;
	if (done)
		add_stats(&stage->stats, gj_remote_stats(stage->run));
	if (instrument)
		InstrStopNode(instrument, done ? stage->stats.rows_out : 0);
	return done;
}

/* Tells the run whose result a stage is: when all have run, so that nothing ends it before. */
static bool
set_stages(GjScanState *state, const GjProgram *program, GjFailure *failure)
{
	ListCell   *lc;

	foreach(lc, state->sources)
	{
		int			s = foreach_current_index(lc);
		GjScanState *own;
		GjScanState *stage;

		if (gj_program_array(program, GjSource, sources)[s].stage == 0)
			continue;
		own = gj_stage_below(list_nth(state->css.custom_ps,
									  list_nth_int(lfirst(lc), GJ_SOURCE_CHILD) - 1));
		stage = own->used_equal ? gj_equal_stage(own, own->program) : own;
		if (stage == NULL)
		{
			gj_fail(failure, GJ_DEVICE_LOST, "the result of an equal stage is gone");
			return false;
		}
		gj_remote_set_stage(state->run, s, stage->run);
		own->was_read = true;
	}
	return true;
}

/* Opens the readers of all sources and submits the program. */
static bool
open_sources(GjScanState *state, const GjProgram *program, GjFailure *failure)
{
	ListCell   *lc;

	foreach(lc, state->sources)
	{
		List	   *description = lfirst(lc);
		int			s = foreach_current_index(lc);
		PlanState  *child;

		if (OidIsValid((Oid) list_nth_int(description, GJ_SOURCE_RELID)))
		{
			if (!open_tables(state, program, s, failure))
				return false;
			continue;
		}
		child = list_nth(state->css.custom_ps, list_nth_int(description, GJ_SOURCE_CHILD) - 1);
		if (gj_program_array(program, GjSource, sources)[s].stage != 0)
		{
			if (!run_stage(state, child, failure))
				return false;
			continue;
		}
		gj_remote_set_reader(state->run, s,
							 gj_plan_source(child, program, s,
											read_attnos(description, GJ_SOURCE_COLUMNS),
											gj_remote_held(state->run)));
	}
	if (!set_stages(state, program, failure) ||
		!gj_remote_submit(state->run, most_workers(state), failure))
		return false;
	/* gpujoind has them for the run */
	end_left(state->css.ss.ps.state);
	gj_remote_launch(state->run, most_workers(state), state->css.ss.ps.state->es_snapshot);
	return true;
}

/* Takes the states of aggregates in, to the end of the run. */
static void
run_aggregates(GjScanState *state)
{
	GjFailure	failure;
	GjAggState *states = NULL;
	Size		nbytes = sizeof(GjAggState) * state->program->naggregates;
	GjBatch		batch;
	GjRemoteResult result;
	GjStatus	status;
	MemoryContext old;

	while ((result = gj_remote_next(state->run, &batch, &failure)) == GJ_REMOTE_BATCH)
	{
		if (states == NULL)
			states = MemoryContextAlloc(state->run_cxt, nbytes);
		memcpy(states, batch.bytes, nbytes);
		gj_remote_free_batch(state->run, batch.slot);
	}
	if (result == GJ_REMOTE_FAILED)
	{
		device_failed(state, &failure);
		return;
	}
	if (states == NULL)
	{
		gj_fail(&failure, GJ_DEVICE_ERROR, "no aggregates");
		device_failed(state, &failure);
		return;
	}
	add_stats(&state->stats, gj_remote_stats(state->run));
	ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
	old = MemoryContextSwitchTo(state->run_cxt);
	status = gj_emit_aggregates(states, state->agg_finals, state->css.ss.ss_ScanTupleSlot);
	MemoryContextSwitchTo(old);
	if (status != GJ_OK)
	{
		gj_fail(&failure, status, "result of an aggregate");
		device_failed(state, &failure);
		return;
	}
	/* the values lie in run_cxt: only the connection may go */
	gj_remote_end(state->run);
	state->run = NULL;
	state->phase = GJ_SCAN_SPOOL;
}

/* Checks what is followed of a batch, and what is made of it.  False with the reason. */
static bool
check_batch(GjScanState *state, const GjBatch *batch, GjFailure *failure)
{
	GjStatus	status = GJ_OK;

	if (!gj_emitter_check(&state->emitter, batch, gj_remote_held(state->run), failure))
		return false;
	if (is_grouped(state))
		status = gj_check_groups(&state->emitter, batch, state->agg_finals);
	if (status != GJ_OK)
		gj_fail(failure, status, "result of an aggregate");
	return status == GJ_OK;
}

/* Runs a program that can fail to its end, before any row is returned. */
static void
run_to_spool(GjScanState *state)
{
	const GjProgram *program = state->program;
	GjFailure	failure;
	const GjColumnType *types = gj_program_array(program, GjColumnType, columns);
	const uint32 *outputs = gj_program_array(program, uint32, outputs);
	GjColumnType *output_types;
	GjBatch		batch;
	GjRemoteResult result;
	MemoryContext old = MemoryContextSwitchTo(state->run_cxt);

	output_types = palloc(sizeof(GjColumnType) * Max(program->noutputs, 1));
	for (uint32 i = 0; i < program->noutputs; i++)
		output_types[i] = types[outputs[i]];
	state->spool = gj_spool_create(&state->emitter.layout,
								   is_grouped(state) ? state->emitter.types : output_types,
								   state->emitter.places);
	MemoryContextSwitchTo(old);
	while ((result = gj_remote_next(state->run, &batch, &failure)) == GJ_REMOTE_BATCH)
	{
		if (!check_batch(state, &batch, &failure))
		{
			device_failed(state, &failure);
			return;
		}
		gj_spool_add(state->spool, batch.bytes);
		gj_remote_free_batch(state->run, batch.slot);
	}
	if (result == GJ_REMOTE_FAILED)
	{
		device_failed(state, &failure);
		return;
	}
	add_stats(&state->stats, gj_remote_stats(state->run));
	gj_remote_end(state->run);
	state->phase = GJ_SCAN_SPOOL;
}

/* Submits the program, NULL: there is none, and opens its sources; false with the reason. */
static bool
submit_run(GjScanState *state, GjProgram *program, GjFailure *failure)
{
	if (program == NULL)
		return false;
	state->nruns++;
	state->program = program;
	state->run = gj_remote_create(program, &state->load_stats);
	if (!open_sources(state, program, failure))
		return false;
	if (state->is_stage)
		return true;
	if (is_grouped(state))
		gj_group_emitter_init(&state->emitter, program, state->key_codes, state->attributes,
							  state->emit_slot->tts_tupleDescriptor);
	else if (!is_one_row(state))
		gj_emitter_init(&state->emitter, program, state->emit_slot->tts_tupleDescriptor,
						state->attributes, state->emit_outputs,
						state->emit_slot->tts_tupleDescriptor->natts);
	return true;
}

/* Starts a run, or falls back. */
static void
start_run(GjScanState *state)
{
	GjFailure	failure;
	bool		running;
	MemoryContext old;

	state->nreturned = 0;
	if (state->failure.reason != GJ_OK)
	{
		/* what failed once in this execution is not tried again */
		fall_back(state, &state->failure);
		return;
	}
	old = MemoryContextSwitchTo(state->run_cxt);
	running = may_run(state, &failure) &&
		submit_run(state, make_program(state, &failure), &failure);
	MemoryContextSwitchTo(old);
	if (!running)
		device_failed(state, &failure);
	else if (is_one_row(state))
		run_aggregates(state);
	else if (state->can_fail)
		run_to_spool(state);
	else
		state->phase = GJ_SCAN_STREAM;
}

/* Next batch of a streaming run; false at the end, or if the node has fallen back. */
static bool
next_streamed_batch(GjScanState *state)
{
	GjFailure	failure;
	GjBatch		batch;
	GjRemoteResult result;

	if (state->batch_held)
		gj_remote_free_batch(state->run, state->batch_slot);
	state->batch_held = false;
	result = gj_remote_next(state->run, &batch, &failure);
	if (result == GJ_REMOTE_BATCH && !check_batch(state, &batch, &failure))
		result = GJ_REMOTE_FAILED;
	switch (result)
	{
		case GJ_REMOTE_BATCH:
			state->batch_held = true;
			state->batch_slot = batch.slot;
			gj_emitter_start(&state->emitter, batch.bytes, batch.nrows, gj_remote_held(state->run));
			return true;
		case GJ_REMOTE_DONE:
			add_stats(&state->stats, gj_remote_stats(state->run));
			state->phase = GJ_SCAN_END;
			return false;
		default:
			device_failed(state, &failure);
			return false;
	}
}

static bool
next_spooled_batch(GjScanState *state)
{
	const uint8 *batch = state->spool ? gj_spool_next(state->spool) : NULL;

	if (batch == NULL)
	{
		state->phase = GJ_SCAN_END;
		return false;
	}
	gj_emitter_start(&state->emitter, batch, ((const GjSlotHeader *) batch)->nrows,
					 gj_remote_held(state->run));
	return true;
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
	if (is_grouped(state))
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
			start_run(state);
			break;
		case GJ_SCAN_STREAM:
		case GJ_SCAN_SPOOL:
			if (!(state->phase == GJ_SCAN_STREAM ? next_streamed_batch(state) :
				  next_spooled_batch(state)) && state->phase == GJ_SCAN_END)
				end_run(state);
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
		if (starts && is_one_row(state) && state->phase == GJ_SCAN_SPOOL)
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
	if (gj_emit_block(&state->emitter, is_grouped(state) ? state->agg_finals : NIL, desc, n,
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
	Assert(!is_one_row(state));
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

static TupleTableSlot *
exec_join_scan(CustomScanState *node)
{
	GjScanState *state = (GjScanState *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	ProjectionInfo *projection = node->ss.ps.ps_ProjInfo;

	if (state->is_stage)
		elog(ERROR, "a stage of a GpuJoin returns no rows");
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
end_join_scan(CustomScanState *node)
{
	ListCell   *lc;

	end_run((GjScanState *) node);
	end_sort((GjScanState *) node);
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
	end_run(state);
	state->phase = GJ_SCAN_END;
}

static void
rescan_join_scan(CustomScanState *node)
{
	GjScanState *state = (GjScanState *) node;
	ListCell   *lc;

	end_run(state);
	end_sort(state);
	if (node->ss.ps.ps_ResultTupleSlot)
		ExecClearTuple(node->ss.ps.ps_ResultTupleSlot);
	ExecClearTuple(node->ss.ss_ScanTupleSlot);
	foreach(lc, node->custom_ps)
	{
		PlanState  *child = lfirst(lc);

		if (node->ss.ps.chgParam != NULL)
			UpdateChangedParamSet(child, node->ss.ps.chgParam);
		if (child->chgParam == NULL && state->phase != GJ_SCAN_START)
			ExecReScan(child);
	}
	state->phase = GJ_SCAN_START;
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
