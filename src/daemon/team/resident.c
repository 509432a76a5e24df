/*
 * resident.c
 *	  Resident fragments of a run on several devices; each fragment lies on one of them.
 *
 * Fragments of the probe side are used where they lie, by the run of that device; so are those of
 * a build side that is exchanged (strategy/exchange.c).  Those of a build side that is shared out
 * (strategy/ring.c) are, too, unless that device has more rows than others.  Fragments of all
 * other build sides go to all runs, in the same order, so that row ids are equal everywhere: they
 * are copied from device to device.  All chunks of a fragment that is to be kept go to one worker, which follows from
 * the fragment's number.  So a table is spread over the devices, and a fragment that is loaded
 * again replaces the old one.
 */
#include "strategy/strategy.h"

#include <stdlib.h>
#include <string.h>

/* ---- ASK */

GjStatus
gj_team_ask_all(GjTeam *team, const uint8_t *memory, const GjAnswers *answers)
{
	GjRun	   *runs[GJ_MAX_RUN_DEVICES];
	GjAsk		ask;
	GjStatus	status;

	/*
	 * Runs must be this thread's, and the output ring nobody's: backends ask before they load, and
	 * a run that starts has neither.  But rows must not go out before all have started.
	 */
	if (team->input.started_us > 0 || team->input.ended != 0 || team->sink->returns_rows)
		GJ_TRY(gj_team_drain(team));
	for (uint32_t i = 0; i < team->nworkers; i++)
		runs[i] = team->workers[i].run;
	status = gj_runs_ask(runs, team->nworkers, memory, answers);
	if (status != GJ_OK && status != GJ_CANCELLED)
	{
		/* a run that starts may be writing its own */
		GJ_TRY(gj_team_drain(team));
		return gj_team_fail(team, status, gj_run_error(runs[0]));
	}
	memcpy(&ask, memory, sizeof(ask));
	for (uint32_t i = 0; i < team->nworkers && status == GJ_OK; i++)
		if (gj_run_has_store(runs[i], ask.source))
			team->input.asked |= 1u << ask.source;
	return status;
}

/* ---- USE */

/* The number of the worker that has a fragment; nworkers: none. */
static uint32_t
owner_of(const GjTeam *team, uint64_t id)
{
	uint32_t	i = 0;

	while (i < team->nworkers &&
		   team->workers[i].entry->info.ordinal != id >> GJ_FRAGMENT_DEVICE_SHIFT)
		i++;
	return i;
}

/* A worker's run takes fragments of its own device. */
static GjStatus
take_own(GjWorker *worker, GjTask *task)
{
	/* it was posted before anybody knew */
	if (task->source == 0 && gj_run_complete(worker->run) &&
		worker->team->strategy.ops->worker->all_complete(worker->team))
		return GJ_OK;
	worker->counts.chunks += task->source == 0 ? task->nuses : 0;
	worker->has_chunks |= !gj_run_notes_uses(worker->run, task->source);
	return gj_run_use(worker->run, task->source, task->nuses, task->uses);
}

/* It takes fragments that all use, wherever they lie; these are only noted, too. */
static GjStatus
take_all(GjWorker *worker, GjTask *task)
{
	return gj_run_use_shared(worker->run, task->source, task->shared->n, task->shared->used);
}

/* A copy of a use; its pages go to *bits, which moves behind them. */
static GjUse
copy_use(const GjUse *use, uint64_t **bits)
{
	GjUse		copy = *use;

	copy.pages = gj_copy_pages(use->pages, bits);
	return copy;
}

/* The uses of fragments that lie on the device of worker m, for its run. */
static GjStatus
use_own(GjTeam *team, uint32_t m, uint32_t source, const GjUse *uses, const uint8_t *owners,
		uint32_t n)
{
	GjTask	   *task;
	GjUse	   *own;
	uint64_t   *bits;
	uint32_t	nown = 0;
	uint32_t	npartial = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		nown += owners[i] == m;
		npartial += owners[i] == m && uses[i].pages;
	}
	if (nown == 0)
		return GJ_OK;
	task = calloc(1, sizeof(GjTask));
	own = malloc(nown * sizeof(GjUse) + npartial * GJ_PAGES_BYTES);
	if (!task || !own)
	{
		free(task);
		free(own);
		return GJ_OUT_OF_HOST_MEMORY;
	}
	*task = (GjTask) {.run = take_own,.source = source,.nuses = nown,.uses = own};
	bits = (uint64_t *) (own + nown);
	for (uint32_t i = 0; i < n; i++)
		if (owners[i] == m)
			*own++ = copy_use(&uses[i], &bits);
	gj_team_post(team, &team->workers[m].own, task);
	return GJ_OK;
}

/* Room for n uses that so many workers have, npartial of them with pages; NULL: out of memory. */
static GjSharedUses *
make_shared(uint32_t n, uint32_t npartial, uint32_t nusers)
{
	GjSharedUses *shared = malloc(sizeof(GjSharedUses) + n * (sizeof(GjUse) + sizeof(GjPinned)) +
								  npartial * GJ_PAGES_BYTES);

	if (!shared)
		return NULL;
	*shared = (GjSharedUses) {.uses = (GjUse *) (shared + 1),.nusers = nusers};
	shared->used = (GjPinned *) (shared->uses + n);
	return shared;
}

/* Hands fragments that were taken from runs to worker number `to`, or to all. */
static GjStatus
post_to(GjTeam *team, uint32_t source, GjSharedUses *shared, int to)
{
	const GjTask use = {.run = take_all,.source = source,.shared = shared};
	GjTask	   *task;

	if (to == GJ_TO_ALL)
		return gj_team_post_copies(team, &use);
	task = malloc(sizeof(GjTask));
	if (!task)
		return GJ_OUT_OF_HOST_MEMORY;
	*task = use;
	gj_team_post(team, &team->workers[to].own, task);
	return GJ_OK;
}

/* The same, as far as status is GJ_OK. */
static GjStatus
post_shared(GjTeam *team, uint32_t source, GjSharedUses *shared, int to, GjStatus status)
{
	if (status == GJ_OK)
		status = post_to(team, source, shared, to);
	if (status == GJ_OK)
		return GJ_OK;
	/* no worker has got them */
	shared->nusers = 1;
	gj_team_drop_shared(team, shared, true);
	return status;
}

/* Takes the next of the fragments for all workers, which worker m has. */
static GjStatus
take_shared(GjTeam *team, uint32_t source, uint32_t m, GjSharedUses *shared)
{
	GjUse	   *use = &shared->uses[shared->n];
	GjPinned   *used = &shared->used[shared->n];

	if (!gj_run_take_fragment(team->workers[m].run, source, use->id, used))
		return gj_team_fail(team, GJ_BAD_PROGRAM, "use of a fragment that was not told of");
	used->pages = gj_use_pages(use, used->fragment);
	shared->n++;
	return GJ_OK;
}

/* Fragments for all workers. */
static GjStatus
use_shared(GjTeam *team, uint32_t source, const GjUse *uses, const uint8_t *owners, uint32_t n)
{
	GjStatus	status = GJ_OK;
	GjSharedUses *shared;
	uint64_t   *bits;
	uint32_t	npartial = 0;

	for (uint32_t i = 0; i < n; i++)
		npartial += uses[i].pages != NULL;
	shared = make_shared(n, npartial, team->nworkers);
	if (!shared)
		return GJ_OUT_OF_HOST_MEMORY;
	bits = (uint64_t *) (shared->used + n);
	for (uint32_t i = 0; i < n && status == GJ_OK; i++)
	{
		shared->uses[i] = copy_use(&uses[i], &bits);
		status = take_shared(team, source, owners[i], shared);
	}
	return post_shared(team, source, shared, GJ_TO_ALL, status);
}

/* A fragment for one worker: that which has it, unless others have fewer rows. */
static GjStatus
use_evenly(GjTeam *team, uint32_t source, const GjUse *use, uint32_t owner)
{
	GjSharedUses *shared = make_shared(1, use->pages != NULL, 1);
	uint32_t	to = owner;
	uint64_t   *bits;
	GjStatus	status;

	if (!shared)
		return GJ_OUT_OF_HOST_MEMORY;
	bits = (uint64_t *) (shared->used + 1);
	shared->uses[0] = copy_use(use, &bits);
	status = take_shared(team, source, owner, shared);
	if (status == GJ_OK)
		to = gj_input_give(team, (int) owner, shared->used[0].excluded ? 0 :
						   shared->used[0].fragment->nrows);
	return post_shared(team, source, shared, (int) to, status);
}

GjStatus
gj_team_use_all(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses, GjTakers takers)
{
	GjStatus	status = GJ_OK;
	uint8_t    *owners;

	if (!(team->input.asked >> source & 1) || (team->input.ended >> source & 1))
		return gj_team_fail(team, GJ_BAD_PROGRAM, "use of a fragment that was not told of");
	owners = malloc(n + 1);
	if (!owners)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < n && status == GJ_OK; i++)
	{
		owners[i] = (uint8_t) owner_of(team, uses[i].id);
		if (owners[i] == team->nworkers)
			status = gj_team_fail(team, GJ_BAD_PROGRAM, "use of a fragment that was not told of");
	}
	if (takers == GJ_TAKEN_BY_OWNERS)
		for (uint32_t i = 0; i < team->nworkers && status == GJ_OK; i++)
			status = use_own(team, i, source, uses, owners, n);
	else if (takers == GJ_TAKEN_EVENLY)
		for (uint32_t i = 0; i < n && status == GJ_OK; i++)
			status = use_evenly(team, source, &uses[i], owners[i]);
	else if (status == GJ_OK)
		status = use_shared(team, source, uses, owners, n);
	free(owners);
	return status == GJ_OK ? gj_team_serve(team) : status;
}

/* ---- keeping */

int
gj_team_place(GjTeam *team, uint32_t source, const uint8_t *chunk)
{
	uint32_t	place;

	/* all runs were asked the same */
	if (!(team->input.asked >> source & 1) ||
		!gj_run_place(team->workers[0].run, source, chunk, team->nworkers, &place))
		return -1;
	return (int) place;
}
