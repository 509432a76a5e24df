/*
 * join_run.c
 *	  The runs of a GpuJoin node: from its sources and stages to batches of rows, or to the native plan.
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
#include "nodes/nodeFuncs.h"
#include "nodes/pg_list.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "exec/join_scan.h"
#include "guc.h"
#include "plan/excluded.h"
#include "plan/join_path.h"
#include "preload.h"

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

void
gj_end_run(GjScanState *state)
{
	ListCell   *lc;

	foreach(lc, state->css.custom_ps)
	{
		GjScanState *stage = gj_stage_below(lfirst(lc));

		if (stage == NULL)
			continue;
		stage->is_left = gj_stage_is_awaited(stage);
		if (!stage->is_left)
			gj_end_run(stage);
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

void
gj_end_sort(GjScanState *state)
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

	if (gj_is_join_scan(node) && state->phase == GJ_SCAN_START && state->failure.reason == GJ_OK)
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
		gj_end_run(lfirst(lc));
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

	gj_end_run(state);
	gj_end_sort(state);
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

	gj_end_run(state);
	gj_end_sort(state);
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
	gj_end_run(stage);
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
	stage->took_rows = true;
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
	if (gj_is_grouped(state))
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
								   gj_is_grouped(state) ? state->emitter.types : output_types,
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
	if (gj_is_grouped(state))
		gj_group_emitter_init(&state->emitter, program, state->key_codes, state->attributes,
							  state->emit_slot->tts_tupleDescriptor);
	else if (!gj_is_one_row(state))
		gj_emitter_init(&state->emitter, program, state->emit_slot->tts_tupleDescriptor,
						state->attributes, state->emit_outputs,
						state->emit_slot->tts_tupleDescriptor->natts);
	return true;
}

void
gj_start_run(GjScanState *state)
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
	else if (gj_is_one_row(state))
		run_aggregates(state);
	else if (state->can_fail)
		run_to_spool(state);
	else
		state->phase = GJ_SCAN_STREAM;
}

bool
gj_next_streamed_batch(GjScanState *state)
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

bool
gj_next_spooled_batch(GjScanState *state)
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
