/*
 * ring.c
 *	  The strategy for nested loops whose build side fits only all devices together, and that no
 *	  key splits: each device has a share of its rows, and blocks of the shares go round.
 *
 * Chunks and fragments of the build source go to one worker each, so that all get about as many
 * rows.  Of all other build sources each worker has all rows, and probe rows go to whichever is
 * free, as with replicate.c.  When the build source has ended for all, each worker joins its probe
 * rows with all shares, copying those of the others from their devices (run/ring.c).  Shares do
 * not change then, so workers need not wait for each other.  But no run may be closed while
 * another one copies from its device: runs are closed when all have ended the probe source, or one
 * after the other, when the team closes and no thread works any more.
 *
 * Every device sees all build rows, so all join types, conditions and other steps are as ever.
 * Only flags of build rows are put together, as where all devices have the same rows.
 */
#include "strategy.h"

#include <stdlib.h>

typedef struct GjRingTeam
{
	GjReplicate replicate;
	uint32_t	step;
	uint32_t	build_side;		/* its source */
	GjRing	   *ring;
	bool		finished;		/* no run reads what is another's; guarded by lock */
} GjRingTeam;

static GjRingTeam *
state_of(const GjTeam *team)
{
	return team->strategy.state;
}

/* ---- in the threads of workers */

/* A run that others may copy from stays open. */
static void
leave(GjWorker *worker)
{
	GjTeam	   *team = worker->team;
	bool		finished;

	gj_run_stop_copies(worker->run);
	pthread_mutex_lock(&team->lock);
	finished = state_of(team)->finished;
	pthread_mutex_unlock(&team->lock);
	if (finished)
		gj_worker_leave(worker);
}

static GjStatus
start_run(GjWorker *worker, GjTask *task)
{
	return gj_run_start(worker->run);
}

/* All shares are built. */
static GjStatus
start_ring(GjWorker *worker, GjTask *task)
{
	return gj_run_start_ring(worker->run);
}

static GjStatus
end_run(GjWorker *worker, GjTask *task)
{
	GJ_TRY(gj_worker_finish_run(worker, gj_replicate_counted(worker) |
								1u << state_of(worker->team)->build_side));
	worker->counts.exchanged = gj_run_ring_received(worker->run);
	worker->has_chunks = false;
	return worker->team->gather.ops->ended(worker);
}

/* ---- in the session's thread */

static GjStatus
chunk(GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory, uint32_t slot)
{
	const GjTask chunk = {.source = source,.nrows = nrows,.memory = memory,.slot = slot};

	if (source != state_of(team)->build_side)
		return gj_replicate_chunk(team, source, nrows, memory, slot);
	GJ_TRY(gj_input_chunk(team, source));
	return gj_input_post(team, &chunk, (int) gj_input_give(team, -1, nrows));
}

static GjStatus
use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses)
{
	if (source != state_of(team)->build_side)
		return gj_replicate_use(team, source, n, uses);
	GJ_TRY(gj_input_use(team, source));
	return gj_team_use_all(team, source, n, uses, GJ_TAKEN_EVENLY);
}

static GjStatus
source_end(GjTeam *team, uint32_t source)
{
	GJ_TRY(gj_input_end(team, source));
	GJ_TRY(gj_team_drain(team));
	if (source == 0)
		GJ_TRY(gj_replicate_build_rows(team, -1));
	GJ_TRY(gj_team_for_all(team, gj_worker_end_source, source));
	if (source != state_of(team)->build_side)
		return GJ_OK;
	GJ_TRY(gj_team_for_all(team, start_ring, source));
	/* all know the same of all rows */
	if (gj_run_complete(team->workers[0].run))
		__atomic_store_n(&team->signals.complete, true, __ATOMIC_RELAXED);
	return GJ_OK;
}

static GjStatus
finish(GjTeam *team, GjRunStats *stats)
{
	/* none joins any more, so runs may be closed */
	GJ_TRY(gj_team_drain(team));
	GJ_TRY(gj_team_post_copies(team, &(GjTask) {.run = end_run,.wakes = true}));
	GJ_TRY(gj_gather(team, stats));
	stats->exchange_step = state_of(team)->step + 1;
	stats->scheme = GJ_SCHEME_RING;
	pthread_mutex_lock(&team->lock);
	state_of(team)->finished = true;
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}

static void
close(GjTeam *team)
{
	gj_ring_free(state_of(team)->ring);
	gj_replicate_close(team);
}

static const GjStrategyOps ring_ops = {
	.worker = &gj_plain_worker,.leave = leave,.stays_open = true,
	.accepts = gj_input_accepts,.chunk = chunk,.ask = gj_team_ask_all,.use = use,
	.source_end = source_end,.complete = gj_replicate_complete,.work = gj_team_serve,
	.flush = gj_team_serve,.finish = finish,.error = gj_replicate_error,.close = close
};

GjStatus
gj_ring_open(GjTeam *team, uint32_t step)
{
	GjRingTeam *state = calloc(1, sizeof(GjRingTeam));

	if (!state)
		return GJ_OUT_OF_HOST_MEMORY;
	state->step = step;
	state->build_side = gj_program_array(team->program, GjStep, steps)[step].source;
	team->strategy = (GjStrategy) {&ring_ops, state};
	state->ring = gj_ring_make(step, team->nworkers);
	if (!state->ring)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < team->nworkers; i++)
	{
		GJ_TRY(gj_worker_prepare_run(&team->workers[i], team->program));
		GJ_TRY(gj_run_join_ring(team->workers[i].run, state->ring, i));
	}
	GJ_TRY(gj_workers_start(team));
	return gj_team_post_for_all(team, start_run, 0);
}
