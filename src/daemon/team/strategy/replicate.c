/*
 * replicate.c
 *	  The strategy of several devices that each have all build rows.  A probe chunk goes to any
 *	  device that is free, and team/gather.c puts the results together.
 *
 * Where nothing is loaded, the session's thread posts the tasks of workers without waiting for
 * them.  A worker does its own tasks in the order in which they were posted, and any worker may
 * take a probe chunk.
 */
#include "strategy.h"

#include "daemon/program/program.h"

#include <stdlib.h>
#include <string.h>

static GjReplicate *
state_of(const GjTeam *team)
{
	return team->strategy.state;
}

/* ---- in the threads of workers: sources end */

/* A worker's run is complete, and with it the whole one, unless it needs what others make. */
static void
note_complete(GjWorker *worker)
{
	GjTeam	   *team = worker->team;

	pthread_mutex_lock(&team->lock);
	worker->complete = true;
	pthread_mutex_unlock(&team->lock);
	if (team->strategy.ops->worker->all_complete(team))
		__atomic_store_n(&team->signals.complete, true, __ATOMIC_RELAXED);
}

/* The fragments that the run has used of a source need not stay any longer. */
static void
drop_held(GjWorker *worker, uint32_t source, bool failed)
{
	GjTaskList	others;
	GjTask	   *task;

	gj_start_list(&others);
	while ((task = gj_take_task(&worker->held)))
	{
		if (task->source != source)
		{
			gj_put_task(&others, task);
			continue;
		}
		gj_team_drop_shared(worker->team, task->shared, failed);
		task->shared = NULL;
		gj_team_free_task(worker->team, task);
	}
	while ((task = gj_take_task(&others)))
		gj_put_task(&worker->held, task);
}

GjStatus
gj_worker_end_source(GjWorker *worker, GjTask *task)
{
	GjStatus	status = gj_run_source_end(worker->run, task->source);

	worker->has_chunks |= !gj_run_has_side(worker->run, task->source);
	drop_held(worker, task->source, status != GJ_OK);
	if (status != GJ_OK || !gj_run_complete(worker->run))
		return status;
	/* whoever finishes the run waits for the device */
	worker->has_chunks = false;
	note_complete(worker);
	return GJ_OK;
}

/* ---- rows of build sides that come out by themselves */

/* Finishes the flags of a step and adds them to the team's. */
static GjStatus
add_flags(GjWorker *worker, GjTask *task)
{
	GjTeam	   *team = worker->team;
	GjReplicate *all = state_of(team);
	uint32_t	i = task->source;
	uint64_t	nrows;
	uint8_t    *slot;
	GjStatus	status = GJ_OK;

	GJ_TRY(gj_run_finish_flags(worker->run, i));
	nrows = gj_run_nflags(worker->run, i);
	if (nrows == 0)
		return GJ_OK;
	GJ_TRY(gj_worker_part_slot(worker, &slot));
	pthread_mutex_lock(&team->lock);
	if (!all->flags)
	{
		all->flags = calloc(nrows, 1);
		all->nflags = nrows;
	}
	if (!all->flags || all->nflags != nrows)
		status = GJ_OUT_OF_HOST_MEMORY;
	pthread_mutex_unlock(&team->lock);
	for (uint64_t first = 0, n; first < nrows && status == GJ_OK; first += n)
	{
		n = nrows - first < GJ_OUTPUT_SLOT_SIZE ? nrows - first : GJ_OUTPUT_SLOT_SIZE;
		status = gj_run_copy_flags(worker->run, i, first, n, slot, true);
		pthread_mutex_lock(&team->lock);
		for (uint64_t r = 0; r < n && status == GJ_OK; r++)
			all->flags[first + r] |= slot[r];
		pthread_mutex_unlock(&team->lock);
	}
	return status;
}

/* Takes over the team's flags, which are complete, and sends its part of the rows. */
static GjStatus
send_rows(GjWorker *worker, GjTask *task)
{
	GjTeam	   *team = worker->team;
	uint32_t	i = task->source;
	uint64_t	first;
	uint64_t	end;
	uint8_t    *slot;

	if (gj_run_nflags(worker->run, i) == 0)
		return GJ_OK;
	gj_run_flags_to_take(worker->run, i, (uint32_t) (worker - team->workers), team->nworkers,
						 &first, &end);
	GJ_TRY(gj_worker_part_slot(worker, &slot));
	for (uint64_t at = first, n; at < end; at += n)
	{
		n = end - at < GJ_OUTPUT_SLOT_SIZE ? end - at : GJ_OUTPUT_SLOT_SIZE;
		memcpy(slot, state_of(team)->flags + at, n);
		GJ_TRY(gj_run_copy_flags(worker->run, i, at, n, slot, false));
	}
	gj_run_rows_to_send(worker->run, i, &first, &end);
	return gj_run_some_rows(worker->run, i, first, end);
}

/* Sends all of them: no other worker has these rows. */
static GjStatus
send_own_rows(GjWorker *worker, GjTask *task)
{
	uint32_t	i = task->source;
	uint64_t	nrows = gj_run_nflags(worker->run, i);

	if (nrows == 0)
		return GJ_OK;
	GJ_TRY(gj_run_finish_flags(worker->run, i));
	return gj_run_some_rows(worker->run, i, 0, nrows);
}

bool
gj_replicate_makes_rows(const GjProgram *program)
{
	const GjStep *steps = gj_program_array(program, GjStep, steps);
	bool		makes = false;

	for (uint32_t i = 0; i < program->nsteps; i++)
		makes |= gj_step_makes_rows(&steps[i]);
	return makes;
}

GjStatus
gj_replicate_build_rows(GjTeam *team, int own_step)
{
	const GjStep *steps = gj_program_array(team->program, GjStep, steps);
	GjReplicate *all = state_of(team);

	for (uint32_t i = 0; i < team->program->nsteps && team->nworkers > 1; i++)
	{
		if (!gj_step_makes_rows(&steps[i]))
			continue;
		if ((int) i == own_step)
		{
			GJ_TRY(gj_team_for_all(team, send_own_rows, i));
			continue;
		}
		GJ_TRY(gj_team_for_all(team, add_flags, i));
		GJ_TRY(gj_team_for_all(team, send_rows, i));
		free(all->flags);
		all->flags = NULL;
	}
	return GJ_OK;
}

/* ---- in the session's thread */

GjStatus
gj_replicate_chunk(GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory, uint32_t slot)
{
	const GjTask chunk = {.source = source,.nrows = nrows,.memory = memory,.slot = slot};

	GJ_TRY(gj_input_chunk(team, source));
	return gj_input_post(team, &chunk, source > 0 || team->sink->by_tiles ? GJ_TO_ALL : GJ_TO_ANY);
}

/* True if a probe row takes a device longer than its copy: it is compared with all build rows. */
static bool
compares_all(const GjTeam *team)
{
	const GjStep *steps = gj_program_array(team->program, GjStep, steps);
	bool		nested = false;

	for (uint32_t i = 0; i < team->program->nsteps; i++)
		nested |= steps[i].algorithm == GJ_JOIN_NESTED_LOOP;
	return nested;
}

GjStatus
gj_replicate_use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses)
{
	GJ_TRY(gj_input_use(team, source));
	return gj_team_use_all(team, source, n, uses, source > 0 ? GJ_TAKEN_BY_ALL :
						   compares_all(team) ? GJ_TAKEN_IN_PARTS : GJ_TAKEN_BY_OWNERS);
}

void
gj_replicate_note_end(GjTeam *team)
{
	if (team->input.ended == (1u << team->program->nsources) - 1)
		__atomic_store_n(&team->signals.complete, true, __ATOMIC_RELAXED);
}

GjStatus
gj_replicate_source_end(GjTeam *team, uint32_t source)
{
	GJ_TRY(gj_input_end(team, source));
	/* what fails is told later; the result is waited for at the end */
	if (!team->signals.loads && source > 0)
	{
		GJ_TRY(gj_team_post_for_all(team, gj_worker_end_source, source));
		/* no rows may be returned before all have the memory that they need */
		return team->sink->returns_rows && gj_input_build_ended(team) ?
			gj_team_drain(team) : GJ_OK;
	}
	if (!team->signals.loads && !gj_replicate_makes_rows(team->program))
	{
		GJ_TRY(gj_team_post_for_all(team, gj_worker_end_source, source));
		/* workers finish as soon as they can */
		gj_replicate_note_end(team);
		return GJ_OK;
	}
	GJ_TRY(gj_team_drain(team));
	if (source == 0)
		GJ_TRY(gj_replicate_build_rows(team, -1));
	return gj_team_for_all(team, gj_worker_end_source, source);
}

bool
gj_replicate_complete(const GjTeam *team)
{
	return __atomic_load_n(&team->signals.complete, __ATOMIC_RELAXED);
}

void
gj_replicate_error(GjTeam *team, GjErrorText *why)
{
	/* another worker may fail as well */
	pthread_mutex_lock(&team->lock);
	*why = team->error;
	pthread_mutex_unlock(&team->lock);
}

/* ---- the end */

uint32_t
gj_replicate_counted(const GjWorker *worker)
{
	/* all have the same rows of the build sources, or sets */
	return worker == worker->team->workers ? UINT32_MAX :
		worker->team->sink->joins;
}

GjStatus
gj_replicate_run_ended(GjWorker *worker)
{
	worker->has_chunks = false;
	return worker->team->gather.ops->ended(worker);
}

static GjStatus
end_run(GjWorker *worker, GjTask *task)
{
	GJ_TRY(gj_worker_finish_run(worker, gj_replicate_counted(worker)));
	return gj_replicate_run_ended(worker);
}

GjStatus
gj_replicate_finish(GjTeam *team, GjRunStats *stats)
{
	if (team->signals.loads)
		GJ_TRY(gj_team_drain(team));
	GJ_TRY(gj_team_post_copies(team, &(GjTask) {.run = end_run,.wakes = true}));
	return gj_gather(team, stats);
}

void
gj_replicate_close(GjTeam *team)
{
	free(state_of(team)->flags);
	free(team->strategy.state);
}

static const GjStrategyOps replicate_ops = {
	.worker = &gj_plain_worker,.leave = gj_worker_leave,.stays_open = true,
	.accepts = gj_input_accepts,.chunk = gj_replicate_chunk,.ask = gj_team_ask_all,
	.use = gj_replicate_use,.source_end = gj_replicate_source_end,
	.complete = gj_replicate_complete,.work = gj_team_serve,.flush = gj_team_serve,
	.finish = gj_replicate_finish,.error = gj_replicate_error,.close = gj_replicate_close
};

/* ---- open */

GjStatus
gj_worker_start_run(GjWorker *worker, GjTask *task)
{
	return gj_run_start(worker->run);
}

GjStatus
gj_replicate_open_runs(GjTeam *team, GjStatus (*prepare) (GjWorker *worker), GjTaskRun start)
{
	GJ_TRY(gj_workers_start(team));
	for (uint32_t i = 0; i < team->nworkers; i++)
		GJ_TRY(prepare(&team->workers[i]));
	return gj_team_post_for_all(team, start, 0);
}

static GjStatus
prepare(GjWorker *worker)
{
	return gj_worker_prepare_run(worker, worker->team->program);
}

GjStatus
gj_replicate_open(GjTeam *team)
{
	GjReplicate *all = calloc(1, sizeof(GjReplicate));

	if (!all)
		return GJ_OUT_OF_HOST_MEMORY;
	team->strategy = (GjStrategy) {&replicate_ops, all};
	return gj_replicate_open_runs(team, prepare, gj_worker_start_run);
}
