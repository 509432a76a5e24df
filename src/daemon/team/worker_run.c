/*
 * worker_run.c
 *	  A device of a team: its runs, and what these ask of their caller.  Its thread is in
 *	  team/worker.c.
 *
 * The output ring belongs to one worker at a time, from the moment it gets a slot until its batch
 * is sent.
 */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "rows/aggregate.h"
#include "wire/messages.h"
#include "daemon/sets/sets.h"

/* ---- what workers ask of the session's thread */

static bool
stopped(const GjTeam *team)
{
	return __atomic_load_n(&team->signals.stop, __ATOMIC_RELAXED) != 0;
}

static bool
worker_stop(void *arg)
{
	return stopped(((GjWorker *) arg)->team);
}

/* A slot has one reader less, perhaps none.  The lock is held. */
static void
drop_use(GjTeam *team, uint32_t slot)
{
	GjSlotUse **use = &team->input.used;

	while (*use && (*use)->slot != slot)
		use = &(*use)->next;
	if (*use && --(*use)->nusers == 0)
	{
		GjSlotUse  *freed = *use;

		*use = freed->next;
		freed->next = team->input.freed;
		team->input.freed = freed;
	}
}

static GjStatus
worker_slot_free(void *arg, uint32_t slot)
{
	GjWorker   *worker = arg;
	GjTeam	   *team = worker->team;

	/* the worker's own, filled from what is kept on the host */
	if (slot >= GJ_OWN_SLOTS)
	{
		worker->nread++;
		return GJ_OK;
	}
	pthread_mutex_lock(&team->lock);
	drop_use(team, slot);
	pthread_mutex_unlock(&team->lock);
	gj_team_wake(team);
	return GJ_OK;
}

/* Waits until the session's thread has granted a request.  The lock is held. */
static GjStatus
request(GjWorker *worker, GjRequest what, uint32_t nrows)
{
	GjTeam    *team = worker->team;

	team->output.request = what;
	team->output.nrows = nrows;
	gj_team_wake(team);
	while (team->output.request != GJ_REQUEST_NOTHING && !stopped(team))
		gj_worker_await_grant(worker);
	return stopped(team) ? GJ_CANCELLED : GJ_OK;
}

/* ---- where results of runs go */

static GjStatus
states_slot(void *arg, uint8_t **memory)
{
	*memory = (uint8_t *) ((GjWorker *) arg)->states;
	return GJ_OK;
}

static bool
states_ready(void *arg)
{
	return true;
}

static GjStatus
states_send(void *arg, uint32_t nrows)
{
	((GjWorker *) arg)->sent = true;
	return GJ_OK;
}

/* States stay in the worker's memory, until the run has ended. */
static const GjFinalOps states_ops = {
	.slot = states_slot,.ready = states_ready,.send = states_send
};

static GjStatus
ring_slot(void *arg, uint8_t **memory)
{
	GjWorker   *worker = arg;
	GjTeam    *team = worker->team;
	GjStatus	status = GJ_OK;

	pthread_mutex_lock(&team->lock);
	while (team->output.writer && team->output.writer != worker && !stopped(team))
		gj_worker_await_grant(worker);
	if (stopped(team))
		status = GJ_CANCELLED;
	else
	{
		team->output.writer = worker;
		status = request(worker, GJ_REQUEST_SLOT, 0);
		*memory = team->output.slot;
	}
	pthread_mutex_unlock(&team->lock);
	return status;
}

/* Others may have the ring. */
static bool
ring_ready(void *arg)
{
	return false;
}

static GjStatus
ring_send(void *arg, uint32_t nrows)
{
	GjWorker   *worker = arg;
	GjTeam    *team = worker->team;
	GjStatus	status;

	worker->sent = true;
	pthread_mutex_lock(&team->lock);
	status = request(worker, GJ_REQUEST_SEND, nrows);
	team->output.writer = NULL;
	gj_team_grant(team);
	pthread_mutex_unlock(&team->lock);
	return status;
}

/* Batches go to the client's ring, by way of the session's thread. */
static const GjFinalOps ring_ops = {.slot = ring_slot,.ready = ring_ready,.send = ring_send};

GjStatus
gj_worker_part_slot(void *arg, uint8_t **memory)
{
	GjWorker   *worker = arg;
	GjErrorText why;

	if (!worker->part)
		GJ_TRY(gj_segment_get(worker->entry, GJ_OUTPUT_SLOT_SIZE, &worker->part, &why));
	*memory = worker->part->memory;
	return GJ_OK;
}

static GjStatus
part_keep(void *arg, const uint8_t *slot)
{
	GjWorker   *worker = arg;

	worker->sent = true;
	return gj_team_groups_keep(worker->keeps_groups, slot);
}

/* Parts of groups are kept on the host. */
static const GjPartialOps part_ops = {.slot = gj_worker_part_slot,.keep = part_keep};

static bool
take_tile(void *arg, uint64_t tile)
{
	GjWorker   *worker = arg;

	if (!worker->has_tile)
		worker->tile = __atomic_fetch_add(&worker->team->tiles.next, 1, __ATOMIC_RELAXED);
	/* until it comes: all workers go through the tiles in the same order */
	worker->has_tile = worker->tile != tile;
	return !worker->has_tile;
}

/* ---- runs of workers */

/* Where the result of the worker's next run goes. */
static GjTarget
choose_target(GjWorker *worker)
{
	if (worker->keeps_groups)
		return (GjTarget) {.form = GJ_FORM_PARTIAL,.arg = worker,.partial = &part_ops};
	if (worker->hands_over)
		return (GjTarget) {.form = GJ_FORM_SORTED,.arg = worker,.sorted = &gj_worker_sorted_ops};
	return (GjTarget) {.form = GJ_FORM_FINAL,.arg = worker,
		.final = worker->team->sink->has_states ? &states_ops : &ring_ops};
}

/* What a run of the worker's is opened with. */
static GjRunSetup
make_setup(GjWorker *worker)
{
	worker->host = (GjRunHost) {.arg = worker,.stop = worker_stop,.slot_free = worker_slot_free};
	worker->sent = false;
	return (GjRunSetup) {.host = &worker->host,.sink = worker->team->sink,.intake = &gj_intake,
		.join = gj_join_choose,.target = choose_target(worker),
		.tiles = {take_tile, worker, worker->team->tiles.pairs},.gathers = worker->gathers};
}

GjStatus
gj_worker_prepare_run(GjWorker *worker, const GjProgram *program)
{
	const GjRunSetup setup = make_setup(worker);

	worker->run = gj_run_prepare(worker->entry, program, &worker->lease, &setup);
	return worker->run ? GJ_OK : GJ_OUT_OF_HOST_MEMORY;
}

void
gj_worker_open_run(GjWorker *worker, const GjProgram *program, GjStatus *status)
{
	const GjRunSetup setup = make_setup(worker);
	GjErrorText why = {""};

	worker->run = gj_run_open(worker->entry, program, &worker->lease, &setup, status, &why);
	if (worker->run)
	{
		*status = GJ_OK;
		return;
	}
	gj_team_note_error(worker->team, *status, why.text);
}

GjStatus
gj_worker_close_run(GjWorker *worker)
{
	GjErrorText why = {""};
	GjStatus	status;

	if (!worker->run)
		return GJ_OK;
	status = gj_run_close(worker->run, &why);
	worker->run = NULL;
	worker->has_chunks = false;
	if (status == GJ_DEVICE_LOST)
	{
		pthread_mutex_lock(&worker->team->lock);
		worker->team->error = why;
		pthread_mutex_unlock(&worker->team->lock);
	}
	return status;
}

GjStatus
gj_worker_error(GjWorker *worker, GjStatus status)
{
	/* once it is told to stop, its status is the consequence of another one's */
	if (status == GJ_OK || status == GJ_CANCELLED || !worker->run)
		return status;
	return gj_team_note_error(worker->team, status, gj_run_error(worker->run));
}

void
gj_worker_count(GjWorker *worker, const GjRunStats *stats)
{
	GjDeviceTotals *totals = &worker->counts.totals;

	for (int i = 0; i < GJ_NPHASES; i++)
		if (i != GJ_PHASE_WAIT)
			totals->busy_ms += stats->ms[i];
	totals->bytes_in += stats->bytes_in;
	totals->bytes_out += stats->bytes_out;
	/* fragments that it took, and did not read */
	worker->counts.chunks -= stats->source[0].nexcluded;
}

GjStatus
gj_worker_finish_run(GjWorker *worker, uint32_t counted)
{
	GjTeam	   *team = worker->team;
	const GjAggregate *aggregates = gj_program_array(team->program, GjAggregate, aggregates);
	GjRunStats	stats;

	memset(&stats, 0, sizeof(stats));
	GJ_TRY(gj_run_finish(worker->run, &stats));
	worker->counts.probe_rows += stats.source[0].rows_in;
	gj_worker_count(worker, &stats);
	pthread_mutex_lock(&team->lock);
	gj_add_run_stats(&team->stats, &stats, counted);
	if (team->sink->has_states && worker->sent)
		for (uint32_t i = 0; i < team->program->naggregates; i++)
			gj_agg_merge(aggregates[i].op, &team->gather.states[i], &worker->states[i]);
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}
