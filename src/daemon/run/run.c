/*
 * run.c
 *	  Opens a run, finishes and closes it.
 *
 * Inner sources are appended to relations and built when they end; the chunks of the
 * outer source pass through all steps at once.  Every loop looks between two calls of
 * the device whether it is to stop.
 */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "daemon/program/program.h"

bool
gj_run_fails_at(GjRun *run, GjFailPoint point)
{
	if (run->failed_once || run->program->fail_point != point)
		return false;
	run->failed_once = true;
	return true;
}

GjStatus
gj_run_fail(GjRun *run, GjStatus status, const char *text)
{
	snprintf(run->error.text, sizeof(run->error.text), "%s", text);
	return status;
}

/* Ends gpujoind as a bug would, but leaves no core file in the data directory. */
static void
crash(void)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	abort();
}

GjStatus
gj_run_fail_points(GjRun *run)
{
	const struct timespec pause = {0, 5000000};

	if (run->program->fail_point == GJ_FAIL_NEVER)
		return GJ_OK;
	if (gj_run_fails_at(run, GJ_FAIL_PROBE))
		return gj_run_fail(run, GJ_DEVICE_ERROR, "injected while probing");
	if (gj_run_fails_at(run, GJ_FAIL_OVERFLOW))
		return gj_run_fail(run, GJ_OVERFLOW, "injected");
	if (gj_run_fails_at(run, GJ_FAIL_CRASH))
		crash();
	while (run->program->fail_point == GJ_FAIL_STALL)
	{
		GJ_STOP_CHECK(run);
		nanosleep(&pause, NULL);
	}
	return GJ_OK;
}

/* Notes that an expression reads its columns after their sources were built. */
static void
mark_late(GjRun *run, uint32_t e)
{
	const GjInstr *instrs = gj_program_array(run->program, GjInstr, instrs);

	for (uint32_t i = 0; i < run->exprs[e].ninstrs; i++)
	{
		const GjInstr *instr = &instrs[run->exprs[e].first + i];

		if (gj_op_loads(instr->op))
			run->late[instr->arg] = 1;
	}
}

/* What the output reads: marks columns, returns sources. */
static uint32_t
plan_output(GjRun *run)
{
	const GjProgram *p = run->program;
	const uint32_t *outputs = gj_program_array(p, uint32_t, outputs);
	const GjAggregate *aggregates = gj_program_array(p, GjAggregate, aggregates);
	const GjGroupKey *keys = gj_program_array(p, GjGroupKey, group_keys);
	const GjSortKey *sort_keys = gj_program_array(p, GjSortKey, sort_keys);
	uint32_t	needed = 0;

	if (p->output == GJ_OUTPUT_ROWS)
	{
		for (uint32_t i = 0; i < p->noutputs; i++)
		{
			run->late[outputs[i]] = 1;
			needed |= 1u << run->types[outputs[i]].source;
		}
		for (uint32_t i = 0; i < p->nsort_keys; i++)
		{
			mark_late(run, sort_keys[i].index);
			needed |= gj_expr_sources(p, sort_keys[i].index);
		}
		run->output_sources = needed;
		return needed;
	}
	run->count_only = p->output != GJ_OUTPUT_GROUPS;
	for (uint32_t i = 0; i < p->ngroup_keys; i++)
	{
		if (keys[i].how <= GJ_GROUP_FLOAT)
		{
			mark_late(run, keys[i].index);
			needed |= gj_expr_sources(p, keys[i].index);
		}
		else
		{
			run->late[keys[i].index] = 1;
			needed |= 1u << run->types[keys[i].index].source;
		}
	}
	for (uint32_t i = 0; i < p->naggregates; i++)
	{
		if (aggregates[i].arg < 0)
			continue;
		run->count_only = false;
		mark_late(run, aggregates[i].arg);
		needed |= gj_expr_sources(p, aggregates[i].arg);
	}
	return needed;
}

/* Notes that what a step reads is read late; returns its sources.  e = -1: none. */
static uint32_t
plan_expr(GjRun *run, int32_t e)
{
	if (e < 0)
		return 0;
	mark_late(run, (uint32_t) e);
	return gj_expr_sources(run->program, (uint32_t) e);
}

/* The same for something that is compared: an expression or a column. */
static uint32_t
plan_operand(GjRun *run, int32_t operand)
{
	if (operand >= 0)
		return plan_expr(run, operand);
	run->late[-1 - operand] = 1;
	return 1u << run->types[-1 - operand].source;
}

/* What a step compares: keys, then the range. */
static void
plan_operands(GjRunStep *rs)
{
	const GjStep *step = rs->step;

	for (uint32_t k = 0; k < step->nkeys; k++)
	{
		rs->outer_operand[rs->nouter++] = (int32_t) (step->outer_keys + k);
		rs->inner_operand[rs->ninner++] = (int32_t) (step->inner_keys + k);
	}
	rs->match.nkeys = step->nkeys;
	if (step->range_key < 0)
		return;
	rs->match.has_low = step->range_low >= 0;
	rs->match.has_high = step->range_high >= 0;
	rs->match.low_strict = step->low_strict;
	rs->match.high_strict = step->high_strict;
	rs->inner_operand[rs->ninner++] = step->range_key;
	if (step->range_low >= 0)
		rs->outer_operand[rs->nouter++] = step->range_low;
	if (step->range_high >= 0)
		rs->outer_operand[rs->nouter++] = step->range_high;
}

/*
 * Finds out, from the last step to the first, whose row ids each step passes on.  The
 * program was checked: nothing reads a source behind the step that ends it.
 */
static void
plan_steps(GjRun *run)
{
	const GjStep *steps = gj_program_array(run->program, GjStep, steps);
	uint32_t	needed = plan_output(run);
	uint32_t	joined = 1;

	run->nsteps = run->program->nsteps;
	for (uint32_t i = 0; i < run->nsteps; i++)
	{
		GjRunStep  *rs = &run->steps[i];

		rs->step = &steps[i];
		rs->joined = joined;
		rs->residual = steps[i].residual;
		rs->nested.condition = -1;
		joined |= 1u << steps[i].source;
		plan_operands(rs);
		if (steps[i].algorithm == GJ_JOIN_NESTED_LOOP)
			gj_nested_plan(run, rs);
		else if (steps[i].algorithm == GJ_JOIN_SET)
		{
			gj_set_join_plan(run, rs);
			joined |= gj_pair_values(rs->set.step);
		}
	}
	for (uint32_t i = run->nsteps; i-- > 0;)
	{
		GjRunStep  *rs = &run->steps[i];
		uint32_t	source = 1u << steps[i].source;

		rs->out = needed;
		rs->kept = rs->out | plan_expr(run, steps[i].filter);
		rs->expand = rs->kept | plan_expr(run, rs->residual);
		/* the flags of rows are set by the pairs that pass the residual condition */
		if ((rs->residual >= 0 || rs->set.step) && gj_step_makes_rows(&steps[i]))
			rs->expand |= source;
		needed = rs->expand | plan_expr(run, rs->nested.condition);
		for (uint32_t k = 0; k < rs->nouter; k++)
			needed |= plan_operand(run, rs->outer_operand[k]);
		if (rs->set.step)
			needed |= plan_operand(run, -1 - (int32_t) rs->set.step->outer_column);
		needed &= ~source;
		if (rs->set.step)
			needed &= ~gj_pair_values(rs->set.step);
	}
	for (uint32_t i = 0; i < run->nsteps; i++)
		if (run->steps[i].set.step && run->steps[i].set.step->membership)
			gj_membership_plan(run, &run->steps[i]);
}

/* Layouts of chunks and batches.  The program was checked: they fit. */
static bool
plan_layouts(GjRun *run)
{
	const GjProgram *p = run->program;
	bool		whole = p->kind != GJ_PROGRAM_JOIN;

	for (uint32_t s = 0; s < p->nsources; s++)
	{
		const GjSource *source = &run->sources[s];
		const GjColumnType *types = run->types + source->first_column;

		if ((s > 0 || whole) &&
			!gj_relation_init(&run->relation[s], types, source->ncolumns, source->nrows_hint))
			return false;
	}
	if (p->output != GJ_OUTPUT_ROWS && p->output != GJ_OUTPUT_GROUPS)
		return true;
	run->noutputs = gj_program_noutputs(p);
	return gj_program_layout_output(p, run->output_types, &run->output_layout,
									run->output_places);
}

GjRun *
gj_run_prepare(GjDeviceEntry *entry, const GjProgram *program, GjLease *lease,
			   const GjRunHost *host, const GjIntakeOps *intake)
{
	GjRun	   *run = calloc(1, sizeof(GjRun));
	GjErrorText ignored;

	if (!run)
		return NULL;
	run->entry = entry;
	run->program = program;
	run->host = host;
	run->intake_ops = intake;
	run->work = (GjWork) {entry->ops, NULL, lease, NULL};
	run->sources = gj_program_array(program, GjSource, sources);
	run->types = gj_program_array(program, GjColumnType, columns);
	run->exprs = gj_program_array(program, GjExpr, exprs);
	run->columns = calloc(program->ncolumns + 1, sizeof(GjColumn));
	run->late = calloc(program->ncolumns + 1, 1);
	run->output_types = calloc(gj_program_noutputs(program) + 1, sizeof(GjColumnType));
	run->output_places = calloc(gj_program_noutputs(program) + 1, sizeof(GjColumnPlace));
	if (run->columns && run->late && run->output_types && run->output_places &&
		plan_layouts(run) && intake->open(run))
	{
		plan_steps(run);
		return run;
	}
	gj_run_close(run, &ignored);
	return NULL;
}

GjStatus
gj_run_start(GjRun *run)
{
	const GjDeviceOps *ops = run->work.ops;

	GJ_TRY(ops->queue_open(run->entry->device, run->program, &run->work.queue, &run->error));
	ops->phase(run->work.queue, GJ_PHASE_WAIT);
	return GJ_OK;
}

GjRun *
gj_run_open(GjDeviceEntry *entry, const GjProgram *program, GjLease *lease,
			const GjRunHost *host, const GjIntakeOps *intake, GjStatus *status, GjErrorText *why)
{
	GjRun	   *run = gj_run_prepare(entry, program, lease, host, intake);
	GjErrorText ignored;

	why->text[0] = '\0';
	*status = run ? gj_run_start(run) : GJ_OUT_OF_HOST_MEMORY;
	if (*status == GJ_OK || !run)
		return run;
	*why = run->error;
	/* it has no queue: there is nothing more to find out about the device */
	gj_run_close(run, &ignored);
	return NULL;
}

bool
gj_run_complete(const GjRun *run)
{
	return run->complete;
}

/* The states of a join's aggregates go out last. */
static GjStatus
finish_aggregates(GjRun *run)
{
	const GjAggregate *aggregates = gj_program_array(run->program, GjAggregate, aggregates);
	uint32_t	n = run->program->naggregates;
	GjAggState	states[GJ_MAX_AGGREGATES];

	GJ_TRY(run->work.ops->aggregate_read(run->work.queue, states));
	for (uint32_t i = 0; i < n; i++)
		if (aggregates[i].op == GJ_AGG_COUNT_STAR)
			states[i].count += run->counted;
	return gj_run_send_states(run, states, n);
}

GjStatus
gj_run_finish(GjRun *run, GjRunStats *stats)
{
	const GjProgram *p = run->program;

	GJ_STOP_CHECK(run);
	/* waits, and so finds errors of rows before anything is sent; what is read then is there */
	if (p->output == GJ_OUTPUT_AGGREGATES)
	{
		run->work.ops->phase(run->work.queue, GJ_PHASE_AGGREGATE);
		GJ_TRY(run->work.ops->sync(run->work.queue));
	}
	GJ_TRY(gj_fused_finish(run));
	if (p->output == GJ_OUTPUT_AGGREGATES)
		GJ_TRY(finish_aggregates(run));
	else if (p->output == GJ_OUTPUT_GROUPS)
		GJ_TRY(gj_run_send_groups(run));
	else if (p->output == GJ_OUTPUT_ROWS && gj_program_is_sorted(p))
		GJ_TRY(gj_run_send_sorted(run));
	else if (p->output == GJ_OUTPUT_ROWS)
		GJ_TRY(gj_run_send_limited(run));
	/* a row error must not stay unnoticed; what aggregates and groups are made of was waited for */
	if (p->output != GJ_OUTPUT_AGGREGATES && p->output != GJ_OUTPUT_GROUPS)
		GJ_TRY(run->work.ops->sync(run->work.queue));
	memcpy(run->stats.ms, run->work.ops->phase_ms(run->work.queue), sizeof(run->stats.ms));
	run->stats.memory_peak = run->work.lease->peak;
	*stats = run->stats;
	return GJ_OK;
}

const char *
gj_run_error(GjRun *run)
{
	const char *text = run->error.text;

	if (!text[0] && run->work.queue)
		text = run->work.ops->queue_error(run->work.queue);
	return text ? text : "";
}

static void
free_step(GjRun *run, GjRunStep *rs)
{
	GjWork	   *work = &run->work;

	if (rs->built)
		work->ops->hash_free(work->queue, &rs->table);
	gj_lease_give(work->lease, rs->table_bytes);
	gj_step_free_probe(work, rs);
	gj_step_free_pairs(work, rs);
	gj_match_free(work, rs);
	gj_nested_free(work, rs);
	gj_set_join_free(work, rs);
}

GjStatus
gj_run_close(GjRun *run, GjErrorText *why)
{
	GjWork	   *work = &run->work;
	GjStatus	status = GJ_OK;

	for (uint32_t i = 0; i < run->nsteps; i++)
		free_step(run, &run->steps[i]);
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
		gj_relation_free(work, &run->relation[s]);
	gj_buffer_free(work, &run->filtered);
	gj_run_free_groups(run);
	gj_run_free_limited(run);
	gj_run_free_sorted(run);
	gj_fused_free(run);
	run->intake_ops->stop(run);
	if (work->queue)
		status = work->ops->queue_close(work->queue, why);
	run->intake_ops->free(run, status == GJ_DEVICE_LOST);
	free(run->columns);
	free(run->late);
	free(run->output_types);
	free(run->output_places);
	free(run);
	return status;
}
