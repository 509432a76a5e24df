/*
 * input.c
 *	  Brings chunks, fragments and ends of sources to the workers of a team.
 */
#include "state.h"

#include <stdlib.h>

bool
gj_input_build_ended(const GjTeam *team)
{
	return !team->sink->joins ||
		(team->input.ended | 1) == (1u << team->program->nsources) - 1;
}

bool
gj_input_accepts(const GjTeam *team, uint32_t source)
{
	return source != 0 || gj_input_build_ended(team);
}

GjStatus
gj_input_chunk(GjTeam *team, uint32_t source)
{
	if (source >= team->program->nsources || (team->input.ended >> source & 1) ||
		!gj_input_accepts(team, source))
		return gj_team_fail(team, GJ_BAD_PROGRAM,
							"a chunk of a source comes too early or too late");
	if (team->host->stop(team->host->arg))
		return GJ_CANCELLED;
	__atomic_store_n(&team->signals.loads, true, __ATOMIC_RELAXED);
	return GJ_OK;
}

GjStatus
gj_input_use(GjTeam *team, uint32_t source)
{
	if (source >= team->program->nsources || !gj_input_accepts(team, source))
		return gj_team_fail(team, GJ_BAD_PROGRAM,
							"use of a fragment of a source whose time has not come");
	return GJ_OK;
}

GjStatus
gj_input_end(GjTeam *team, uint32_t source)
{
	if (source >= team->program->nsources || (team->input.ended >> source & 1) ||
		!gj_input_accepts(team, source))
		return gj_team_fail(team, GJ_BAD_PROGRAM, "a source ends too early or twice");
	team->input.ended |= 1u << source;
	return GJ_OK;
}

/* A worker's run takes a chunk. */
static GjStatus
take_chunk(GjWorker *worker, GjTask *task)
{
	GjStatus	status;

	worker->counts.chunks += task->source == 0;
	gj_run_may_keep(worker->run, task->keep || task->source == 0);
	status = gj_run_chunk(worker->run, task->source, task->nrows, task->memory, task->slot);
	worker->has_chunks = true;
	return status == GJ_OK ? gj_run_work(worker->run) : status;
}

uint32_t
gj_input_give(GjTeam *team, int owner, uint64_t nrows)
{
	uint64_t   *given = team->input.given;
	uint32_t	to = 0;

	for (uint32_t i = 1; i < team->nworkers; i++)
		if (given[i] < given[to])
			to = i;
	if (owner >= 0 && given[owner] <= given[to] + nrows)
		to = (uint32_t) owner;
	given[to] += nrows;
	return to;
}

GjStatus
gj_input_post(GjTeam *team, const GjTask *chunk, int to)
{
	bool		all = to == GJ_TO_ALL;
	uint32_t	n = all ? team->nworkers : 1;
	int			keeper = gj_team_place(team, chunk->source, chunk->memory);
	GjSlotUse  *use = calloc(1, sizeof(GjSlotUse));

	if (!use)
		return GJ_OUT_OF_HOST_MEMORY;
	/* who is to keep it takes it */
	if (!all && keeper >= 0)
		to = keeper;
	use->slot = chunk->slot;
	use->nusers = n;
	pthread_mutex_lock(&team->lock);
	use->next = team->input.used;
	team->input.used = use;
	pthread_mutex_unlock(&team->lock);
	for (uint32_t i = 0; i < n; i++)
	{
		GjTask	   *task = malloc(sizeof(GjTask));

		if (!task)
			return GJ_OUT_OF_HOST_MEMORY;
		*task = *chunk;
		task->run = take_chunk;
		task->keep = all ? keeper == (int) i : keeper >= 0;
		gj_team_post(team, all ? &team->workers[i].own :
					 to >= 0 ? &team->workers[to].own : &team->tasks.probe_side, task);
	}
	return gj_team_serve(team);
}
