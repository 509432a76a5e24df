/*
 * intake.c
 *	  Opens the intake of a run, ends its sources, and closes it.
 *
 * Build sides come first.  When a build source has ended, its side is found in the cache, or
 * built and then cached if later runs can find it.  The probe side comes last; its rows pass the
 * joins as they come.
 */
#include "intake.h"

#include <stdlib.h>

/* ---- open and close */

/* Where rows of a source go, unless they are exchanged. */
static const GjRowsTo *
rows_to(const GjRun *run, uint32_t source)
{
	if (run->sink->drops_rows)
		return &gj_to_nowhere;
	if (!run->sink->joins || source > 0 || run->arrival.gathers)
		return &gj_to_build;
	return run->work.ops->kind == GJ_DEVICE_CPU ? &gj_to_joins : &gj_to_joins_buffered;
}

static bool
open_intake(GjRun *run)
{
	GjIntake   *intake = calloc(1, sizeof(GjIntake));

	run->intake = intake;
	if (!intake)
		return false;
	intake->places = calloc(run->program->ncolumns + 1, sizeof(GjColumnPlace));
	if (!intake->places)
		return false;
	for (uint32_t s = 0; s < run->program->nsources; s++)
		intake->to[s] = rows_to(run, s);
	return gj_program_layout_chunks(run->program, intake->layout, intake->places);
}

static void
stop_intake(GjRun *run)
{
	GjIntake   *intake = run->intake;
	GjWork	   *work = &run->work;

	if (!intake)
		return;
	/* memory, also of fragments, must not go while something is still copied to it */
	if (work->queue && (intake->buffers.n > 0 || intake->clock > 0))
		work->ops->queues->load_wait(work->queue);
	gj_run_free_buffers(run);
	gj_buffer_free(work, &intake->compact);
	gj_run_free_exchange(run);
}

static void
free_intake(GjRun *run, bool lost)
{
	if (!run->intake)
		return;
	/* a device that is lost takes them with it */
	for (uint32_t s = 0; s < GJ_MAX_SOURCES && !lost; s++)
		gj_run_release(run, s);
	if (!lost)
		gj_side_release(run);
	free(run->intake->slot_copy);
	free(run->intake->buffers.places);
	free(run->intake->places);
	free(run->intake);
}

/* ---- what the run asks for */

static bool
keeps_side(const GjRun *run, uint32_t source)
{
	return run->intake->side[source].made != NULL;
}

static GjStatus
free_slots(GjRun *run)
{
	return gj_run_free_slots(run, false);
}

static GjStatus
rest(GjRun *run)
{
	/* while the client is waited for nothing is at work, and nothing stays for its sake */
	GJ_TRY(gj_run_wait(run));
	if (run->arrival.ended & 1)
		gj_run_release(run, 0);
	return GJ_OK;
}

static void
free_buffers(GjRun *run)
{
	run->work.ops->queues->load_wait(run->work.queue);
	gj_run_free_buffers(run);
}

const GjIntakeOps gj_intake = {
	.open = open_intake,
	.has_probe_columns = gj_run_has_probe_columns,
	.keeps_side = keeps_side,
	.flush = gj_run_flush,
	.free_slots = free_slots,
	.rest = rest,
	.keep = gj_codes_keep,
	.free_buffers = free_buffers,
	.stop = stop_intake,
	.free = free_intake,
};

GjStatus
gj_run_wait_after(GjRun *run, GjStatus status)
{
	GjStatus	ended = run->work.ops->queues->sync(run->work.queue);

	return status == GJ_OK ? ended : status;
}

GjStatus
gj_run_wait(GjRun *run)
{
	GJ_TRY(run->work.ops->queues->sync(run->work.queue));
	/* copies, and fragments that are there with them */
	GJ_TRY(gj_run_free_slots(run, true));
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_WAIT);
	return GJ_OK;
}

/* ---- sources */

void
gj_run_may_keep(GjRun *run, bool keep)
{
	run->intake->keeps_nothing = !keep;
}

bool
gj_run_accepts(const GjRun *run, uint32_t source)
{
	/* whatever is wrong with others is told when they are given */
	return !run->sink->joins || source != 0 || run->arrival.gathers ||
		run->arrival.ended == (1u << run->program->nsources) - 2;
}

GjStatus
gj_run_may_load(GjRun *run, uint32_t source)
{
	const GjProgram *p = run->program;

	if (source >= p->nsources || (run->arrival.ended >> source & 1))
		return gj_run_fail(run, GJ_BAD_PROGRAM, "a chunk of a source that has ended");
	if (!gj_run_accepts(run, source))
		return gj_run_fail(run, GJ_BAD_PROGRAM, "the probe source comes before a build source");
	return GJ_OK;
}

/*
 * A source has ended: gives its fragments back, when the queue reads them no more.  It never reads
 * those of a side that was built before.  The probe rows are left to gj_run_close where nothing
 * but the result is still to be made, without waiting for a client.
 */
static GjStatus
release_fragments(GjRun *run, uint32_t source)
{
	if (!run->intake->resident[source].store ||
		(run->sink->joins && source == 0 && !run->sink->returns_rows))
		return GJ_OK;
	if (!run->intake->side[source].kept)
		GJ_TRY(run->work.ops->queues->sync(run->work.queue));
	gj_run_release(run, source);
	return GJ_OK;
}

/* What a build source's rows are made into: a cached side, or a new one, which may be kept. */
static GjStatus
build_side(GjRun *run, uint32_t source)
{
	GjRunStep  *rs = gj_run_step_of(run, source);

	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_BUILD);
	GJ_TRY(gj_run_fail_build(run));
	if (gj_side_take(run, rs))
		return gj_match_start(run, rs, NULL, (uint32_t) run->relation[source].nrows);
	GJ_TRY(gj_run_build(run, source));
	return gj_side_keep(run, rs);
}

GjStatus
gj_run_source_loaded(GjRun *run, uint32_t source)
{
	GJ_STOP_CHECK(run);
	GJ_TRY(gj_run_flush(run));
	if (source > 0)
		GJ_TRY(gj_side_resolve(run, source));
	/* it is in the relation */
	GJ_TRY(run->work.ops->queues->sync(run->work.queue));
	gj_run_release(run, source);
	return GJ_OK;
}

GjStatus
gj_run_source_end(GjRun *run, uint32_t source)
{
	const GjProgram *p = run->program;
	uint32_t	all = (1u << p->nsources) - 1;

	if (source >= p->nsources || (run->arrival.ended >> source & 1))
		return gj_run_fail(run, GJ_BAD_PROGRAM, "a source ends twice");
	if (run->sink->joins && source == 0 && run->arrival.ended != all - 1)
		return gj_run_fail(run, GJ_BAD_PROGRAM, "the probe source ends before a build source");
	GJ_STOP_CHECK(run);
	GJ_TRY(gj_run_flush(run));
	if (run->sink->joins && source > 0)
		GJ_TRY(gj_side_resolve(run, source));
	GJ_TRY(release_fragments(run, source));
	run->arrival.ended |= 1u << source;

	if (!run->sink->joins)
		GJ_TRY(run->sink->source_ended(run, source));
	else if (source > 0)
		GJ_TRY(build_side(run, source));
	else
	{
		for (uint32_t i = 0; i < run->nsteps; i++)
			GJ_TRY(run->steps[i].join->end(run, i));
		GJ_TRY(gj_match_rows(run));
	}
	if (run->arrival.ended == all)
		run->complete = true;
	/* where rows are exchanged, gj_run_reserve_exchange does it */
	if (run->complete || !run->sink->joins || run->intake->exchange || !gj_run_accepts(run, 0))
		return GJ_OK;
	/* chunks may come when fragments have already returned rows */
	if (run->sink->returns_rows)
		GJ_TRY(gj_run_reserve_buffers(run));
	return gj_run_reserve_steps(run);
}
