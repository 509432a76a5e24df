/*
 * replicate.c
 *	  A run on several devices: inner rows go to all of them, outer ones to whichever is free, and
 *	  what they have found is put together at the end (team/gather.c).
 *
 * Where nothing is loaded the session's thread posts what members are to do, without waiting for
 * them: they do their own tasks in the order in which these were posted.  Outer chunks are anybody's.
 */
#include "daemon/run/state.h"
#include "strategy.h"

#include <stdlib.h>
#include <string.h>

static GjReplicate *
state_of(const GjTeam *team)
{
	return team->strategy.state;
}

/* ---- in the threads of members: sources end */

/* A member's run is complete, and with it the whole one, unless it needs what others make. */
static void
note_complete(GjMember *member)
{
	GjTeam	   *team = member->team;

	pthread_mutex_lock(&team->lock);
	member->complete = true;
	pthread_mutex_unlock(&team->lock);
	if (team->strategy.ops->worker->all_complete(team))
		__atomic_store_n(&team->complete, true, __ATOMIC_RELAXED);
}

/* The fragments that the run has used of a source need not stay any longer. */
static void
drop_held(GjMember *member, uint32_t source, bool failed)
{
	GjTaskList	others;
	GjTask	   *task;

	gj_start_list(&others);
	while ((task = gj_take_task(&member->held)))
	{
		if (task->source != source)
		{
			gj_put_task(&others, task);
			continue;
		}
		gj_team_drop_shared(member->team, task->shared, failed);
		task->shared = NULL;
		gj_team_free_task(member->team, task);
	}
	while ((task = gj_take_task(&others)))
		gj_put_task(&member->held, task);
}

GjStatus
gj_member_end_source(GjMember *member, GjTask *task)
{
	GjStatus	status = gj_run_source_end(member->run, task->source);

	member->restless |= !gj_run_has_side(member->run, task->source);
	drop_held(member, task->source, status != GJ_OK);
	if (status != GJ_OK || !gj_run_complete(member->run))
		return status;
	/* whoever finishes the run waits for the device */
	member->restless = false;
	note_complete(member);
	return GJ_OK;
}

/* ---- rows of inner sides that come out by themselves */

/* Finishes the flags of a step and adds them to the team's. */
static GjStatus
add_flags(GjMember *member, GjTask *task)
{
	GjTeam	   *team = member->team;
	GjReplicate *all = state_of(team);
	uint32_t	i = task->source;
	uint64_t	nrows;
	uint8_t    *slot;
	GjStatus	status = GJ_OK;

	GJ_TRY(gj_run_finish_flags(member->run, i));
	nrows = gj_run_nflags(member->run, i);
	if (nrows == 0)
		return GJ_OK;
	GJ_TRY(gj_member_part_slot(member, &slot));
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
		status = gj_run_copy_flags(member->run, i, first, n, slot, true);
		pthread_mutex_lock(&team->lock);
		for (uint64_t r = 0; r < n && status == GJ_OK; r++)
			all->flags[first + r] |= slot[r];
		pthread_mutex_unlock(&team->lock);
	}
	return status;
}

/* Takes over the team's flags, which are complete, and sends its part of the rows. */
static GjStatus
send_rows(GjMember *member, GjTask *task)
{
	GjTeam	   *team = member->team;
	uint32_t	i = task->source;
	uint64_t	nrows = gj_run_nflags(member->run, i);
	uint32_t	number = (uint32_t) (member - team->members);
	uint64_t	first = nrows / team->nmembers * number;
	uint64_t	end = number + 1 < team->nmembers ? first + nrows / team->nmembers : nrows;
	uint8_t    *slot;

	if (nrows == 0)
		return GJ_OK;
	GJ_TRY(gj_member_part_slot(member, &slot));
	for (uint64_t at = first, n; at < end; at += n)
	{
		n = end - at < GJ_OUTPUT_SLOT_SIZE ? end - at : GJ_OUTPUT_SLOT_SIZE;
		memcpy(slot, state_of(team)->flags + at, n);
		GJ_TRY(gj_run_copy_flags(member->run, i, at, n, slot, false));
	}
	return gj_run_some_rows(member->run, i, first, end);
}

/* Sends all of them: no other member has these rows. */
static GjStatus
send_own_rows(GjMember *member, GjTask *task)
{
	uint32_t	i = task->source;
	uint64_t	nrows = gj_run_nflags(member->run, i);

	if (nrows == 0)
		return GJ_OK;
	GJ_TRY(gj_run_finish_flags(member->run, i));
	return gj_run_some_rows(member->run, i, 0, nrows);
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
gj_replicate_inner_rows(GjTeam *team, int own_step)
{
	const GjStep *steps = gj_program_array(team->program, GjStep, steps);
	GjReplicate *all = state_of(team);

	for (uint32_t i = 0; i < team->program->nsteps && team->nmembers > 1; i++)
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
	return gj_input_post(team, &chunk, source > 0 || team->program->kind == GJ_PROGRAM_SETS);
}

GjStatus
gj_replicate_use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses)
{
	GJ_TRY(gj_input_use(team, source));
	return gj_team_use_all(team, source, n, uses, source == 0);
}

void
gj_replicate_note_end(GjTeam *team)
{
	if (team->input.ended == (1u << team->program->nsources) - 1)
		__atomic_store_n(&team->complete, true, __ATOMIC_RELAXED);
}

GjStatus
gj_replicate_source_end(GjTeam *team, uint32_t source)
{
	GJ_TRY(gj_input_end(team, source));
	/* what fails is told later; the result is waited for at the end */
	if (!team->loads && source > 0)
	{
		GJ_TRY(gj_team_post_for_all(team, gj_member_end_source, source));
		/* no rows may be returned before all have the memory that they need */
		return team->sink->returns_rows && gj_input_inner_ended(team) ?
			gj_team_drain(team) : GJ_OK;
	}
	if (!team->loads && !gj_replicate_makes_rows(team->program))
	{
		GJ_TRY(gj_team_post_for_all(team, gj_member_end_source, source));
		/* members finish as soon as they can */
		gj_replicate_note_end(team);
		return GJ_OK;
	}
	GJ_TRY(gj_team_drain(team));
	if (source == 0)
		GJ_TRY(gj_replicate_inner_rows(team, -1));
	return gj_team_for_all(team, gj_member_end_source, source);
}

bool
gj_replicate_complete(const GjTeam *team)
{
	return __atomic_load_n(&team->complete, __ATOMIC_RELAXED);
}

void
gj_replicate_error(GjTeam *team, GjErrorText *why)
{
	/* another member may fail as well */
	pthread_mutex_lock(&team->lock);
	*why = team->error;
	pthread_mutex_unlock(&team->lock);
}

/* ---- the end */

uint32_t
gj_replicate_counted(const GjMember *member)
{
	/* all have the same rows of the inner sources, or sets */
	return member == member->team->members ? UINT32_MAX :
		member->team->program->kind == GJ_PROGRAM_JOIN;
}

static GjStatus
end_run(GjMember *member, GjTask *task)
{
	GJ_TRY(gj_member_finish_run(member, gj_replicate_counted(member)));
	member->restless = false;
	return member->team->gather.ops->ended(member);
}

GjStatus
gj_replicate_finish(GjTeam *team, GjRunStats *stats)
{
	if (team->loads)
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
	.worker = &gj_plain_worker,.stays_open = true,
	.accepts = gj_input_accepts,.chunk = gj_replicate_chunk,.ask = gj_team_ask_all,
	.use = gj_replicate_use,.source_end = gj_replicate_source_end,
	.complete = gj_replicate_complete,.work = gj_team_serve,.flush = gj_team_serve,
	.finish = gj_replicate_finish,.error = gj_replicate_error,.close = gj_replicate_close
};

/* ---- open */

/* The member's run starts, while the backend is told, and asks what is resident. */
static GjStatus
start_run(GjMember *member, GjTask *task)
{
	return gj_run_start(member->run);
}

GjStatus
gj_replicate_open(GjTeam *team)
{
	GjReplicate *all = calloc(1, sizeof(GjReplicate));

	if (!all)
		return GJ_OUT_OF_HOST_MEMORY;
	team->strategy = (GjStrategy) {&replicate_ops, all};
	GJ_TRY(gj_members_start(team));
	for (uint32_t i = 0; i < team->nmembers; i++)
		GJ_TRY(gj_member_prepare_run(&team->members[i], team->program));
	return gj_team_post_for_all(team, start_run, 0);
}
