/*
 * run.c
 *	  Opens a run, finishes and closes it.
 *
 * Build sources are appended to relations and built when they end; the chunks of the
 * probe source pass through all steps at once.  Every loop checks between two calls of
 * the device whether the run must stop.
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
	if (run->program->fail_point == GJ_FAIL_STALL)
		gj_log(GJ_LOG, "stalled by gpujoin.fail_at");
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

uint32_t
gj_run_reads_expr(GjRun *run, uint32_t e)
{
	mark_late(run, e);
	return gj_expr_sources(run->program, e);
}

uint32_t
gj_run_reads_column(GjRun *run, uint32_t column)
{
	run->late[column] = 1;
	return 1u << run->types[column].source;
}

uint32_t
gj_sink_reads_nothing(GjRun *run)
{
	return 0;
}

uint64_t
gj_sink_no_bytes(const GjRun *run)
{
	return 0;
}

GjStatus
gj_sink_only_waits(GjRun *run)
{
	return run->work.ops->queues->sync(run->work.queue);
}

void
gj_sink_frees_nothing(GjRun *run)
{
}

void
gj_join_is_planned(GjRun *run, GjRunStep *rs)
{
}

GjStatus
gj_join_is_fast(GjRun *run, uint32_t source, GjRunStep *rs)
{
	return GJ_OK;
}

GjStatus
gj_join_has_ended(GjRun *run, uint32_t i)
{
	return GJ_OK;
}

/* Notes that what a step reads is read late; returns its sources.  e = -1: none. */
static uint32_t
plan_expr(GjRun *run, int32_t e)
{
	return e < 0 ? 0 : gj_run_reads_expr(run, (uint32_t) e);
}

/* The same for something that is compared: an expression or a column. */
static uint32_t
plan_operand(GjRun *run, int32_t operand)
{
	return operand >= 0 ? plan_expr(run, operand) :
		gj_run_reads_column(run, (uint32_t) (-1 - operand));
}

/* What a step compares: keys, then the range. */
static void
plan_operands(GjRunStep *rs)
{
	const GjStep *step = rs->step;

	for (uint32_t k = 0; k < step->nkeys; k++)
	{
		rs->probe_operand[rs->nprobe_operands++] = (int32_t) (step->probe_keys + k);
		rs->build_operand[rs->nbuild_operands++] = (int32_t) (step->build_keys + k);
	}
	rs->match.nkeys = step->nkeys;
	if (step->range_key < 0)
		return;
	rs->match.has_low = step->range_low >= 0;
	rs->match.has_high = step->range_high >= 0;
	rs->match.low_strict = step->low_strict;
	rs->match.high_strict = step->high_strict;
	rs->build_operand[rs->nbuild_operands++] = step->range_key;
	if (step->range_low >= 0)
		rs->probe_operand[rs->nprobe_operands++] = step->range_low;
	if (step->range_high >= 0)
		rs->probe_operand[rs->nprobe_operands++] = step->range_high;
}

/*
 * Finds out, from the last step to the first, whose row ids each step passes on.  The
 * program was checked: nothing reads a source behind the step that ends it.
 */
static bool
plan_steps(GjRun *run, GjChooseJoin choose)
{
	const GjStep *steps = gj_program_array(run->program, GjStep, steps);
	uint32_t	needed = run->sink->plan(run);
	uint32_t	joined = 1;

	run->output.sources = needed;
	memcpy(run->output.columns, run->late, run->program->ncolumns);
	for (run->nsteps = 0; run->nsteps < run->program->nsteps; run->nsteps++)
	{
		GjRunStep  *rs = &run->steps[run->nsteps];

		rs->step = &steps[run->nsteps];
		rs->join = choose(run->program, rs->step);
		rs->joined = joined;
		rs->residual = rs->step->residual;
		plan_operands(rs);
		if (!rs->join->plan(run, rs))
			return false;
		joined |= 1u << rs->step->source | rs->makes;
	}
	for (uint32_t i = run->nsteps; i-- > 0;)
	{
		GjRunStep  *rs = &run->steps[i];
		uint32_t	source = 1u << steps[i].source;

		rs->out = needed;
		rs->kept = rs->out | plan_expr(run, steps[i].filter);
		rs->expand = rs->kept | plan_expr(run, rs->residual);
		/* the flags of rows are set by the pairs that pass the residual condition */
		if ((rs->residual >= 0 || rs->join->marks_by_pairs) && gj_step_makes_rows(&steps[i]))
			rs->expand |= source;
		needed = rs->expand | rs->reads;
		for (uint32_t k = 0; k < rs->nprobe_operands; k++)
			needed |= plan_operand(run, rs->probe_operand[k]);
		needed &= ~(source | rs->makes);
	}
	for (uint32_t i = 0; i < run->nsteps; i++)
		run->steps[i].join->planned(run, &run->steps[i]);
	return true;
}

/* Layouts of chunks and batches.  The program was checked: they fit. */
static bool
plan_layouts(GjRun *run)
{
	const GjProgram *p = run->program;
	bool		whole = !run->sink->joins || run->arrival.gathers;

	for (uint32_t s = 0; s < p->nsources; s++)
	{
		const GjSource *source = &run->sources[s];
		const GjColumnType *types = run->types + source->first_column;

		if ((s > 0 || whole) &&
			!gj_relation_init(&run->relation[s], types, source->ncolumns, source->nrows_hint))
			return false;
	}
	if (!run->sink->in_batches)
		return true;
	run->output.ncolumns = gj_program_noutputs(p);
	return gj_program_layout_output(p, run->output.types, &run->output.layout,
									run->output.places);
}

GjRun *
gj_run_prepare(GjDeviceEntry *entry, const GjProgram *program, GjLease *lease,
			   const GjRunSetup *setup)
{
	GjRun	   *run = calloc(1, sizeof(GjRun));
	GjErrorText ignored;

	if (!run)
		return NULL;
	run->entry = entry;
	run->program = program;
	run->host = setup->host;
	run->intake_ops = setup->intake;
	run->sink = setup->sink;
	run->output.target = setup->target;
	run->output.tiles = setup->tiles;
	run->arrival.gathers = setup->gathers;
	run->work = (GjWork) {entry->ops, NULL, lease, NULL};
	run->sources = gj_program_array(program, GjSource, sources);
	run->types = gj_program_array(program, GjColumnType, columns);
	run->exprs = gj_program_array(program, GjExpr, exprs);
	run->columns = calloc(program->ncolumns + 1, sizeof(GjColumn));
	run->late = calloc(program->ncolumns + 1, 1);
	run->output.columns = calloc(program->ncolumns + 1, 1);
	run->output.types = calloc(gj_program_noutputs(program) + 1, sizeof(GjColumnType));
	run->output.places = calloc(gj_program_noutputs(program) + 1, sizeof(GjColumnPlace));
	if (run->columns && run->late && run->output.columns && run->output.types &&
		run->output.places && plan_layouts(run) && setup->intake->open(run) &&
		plan_steps(run, setup->join) && gj_questions_open(run))
		return run;
	gj_run_close(run, &ignored);
	return NULL;
}

GjStatus
gj_run_start(GjRun *run)
{
	const GjDeviceOps *ops = run->work.ops;

	GJ_TRY(ops->queues->queue_open(run->entry->device, run->program, &run->work.queue,
								   &run->error));
	ops->queues->phase(run->work.queue, GJ_PHASE_WAIT);
	return GJ_OK;
}

GjRun *
gj_run_open(GjDeviceEntry *entry, const GjProgram *program, GjLease *lease,
			const GjRunSetup *setup, GjStatus *status, GjErrorText *why)
{
	GjRun	   *run = gj_run_prepare(entry, program, lease, setup);
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

uint64_t
gj_run_received(const GjRun *run)
{
	return run->arrival.received;
}

void
gj_run_stop_copies(GjRun *run)
{
	if (!run || !run->work.queue)
		return;
	run->work.ops->queues->load_wait(run->work.queue);
	run->work.ops->queues->sync(run->work.queue);
}

bool
gj_run_complete(const GjRun *run)
{
	return run->complete;
}

GjStatus
gj_run_finish(GjRun *run, GjRunStats *stats)
{
	GJ_STOP_CHECK(run);
	GJ_TRY(run->sink->finish(run));
	GJ_TRY(run->intake_ops->keep(run));
	memcpy(run->stats.ms, run->work.ops->queues->phase_ms(run->work.queue), sizeof(run->stats.ms));
	run->stats.memory_peak = run->work.lease->peak;
	*stats = run->stats;
	return GJ_OK;
}

void
gj_run_waits(GjRun *run)
{
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_WAIT);
}

const char *
gj_run_error(GjRun *run)
{
	const char *text = run->error.text;

	if (!text[0] && run->work.queue)
		text = run->work.ops->queues->queue_error(run->work.queue);
	return text ? text : "";
}

static void
free_step(GjRun *run, GjRunStep *rs)
{
	GjWork	   *work = &run->work;

	rs->join->free(work, rs);
	gj_step_free_probe(work, rs);
	gj_step_free_pairs(work, rs);
	gj_match_free(work, rs);
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
	gj_buffer_free(work, &run->tuples.filtered);
	gj_ranges_close(run);
	run->sink->free(run);
	gj_fused_free(run);
	gj_questions_free(run);
	gj_marks_free(&run->tuples.marks);
	run->intake_ops->stop(run);
	if (work->queue)
		status = work->ops->queues->queue_close(work->queue, why);
	run->intake_ops->free(run, status == GJ_DEVICE_LOST);
	free(run->columns);
	free(run->late);
	free(run->output.columns);
	free(run->output.types);
	free(run->output.places);
	free(run);
	return status;
}
