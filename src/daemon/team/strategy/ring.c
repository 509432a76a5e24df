/*
 * ring.c
 *	  The strategy for nested loops whose build side fits only all devices together, and that no
 *	  key splits: each device has a share of its rows, and blocks of the shares go round.
 *
 * Chunks and fragments of the build source go to one worker each, so that all get about as many
 * rows.  Of all other build sources each worker has all rows, and probe rows go to whichever is
 * free, as with replicate.c.  When the build source has ended for all, each worker joins its probe
 * rows with all shares, copying those of the others from their devices (run/ring.c).  Shares do
 * not change then, so workers need not wait for each other.
 *
 * Every device sees all build rows, so all join types, conditions and other steps are as ever.
 * Only flags of build rows are put together, as where all devices have the same rows.
 */
#include "share.h"

typedef struct GjRingTeam
{
	GjShare		share;
	GjRing	   *ring;
} GjRingTeam;

static GjRingTeam *
state_of(const GjTeam *team)
{
	return team->strategy.state;
}

/* ---- in the threads of workers */

/* All shares are built. */
static GjStatus
start_ring(GjWorker *worker, GjTask *task)
{
	return gj_run_start_ring(worker->run);
}

/* ---- in the session's thread */

static GjStatus
chunk(GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory, uint32_t slot)
{
	return source == state_of(team)->share.build_side ?
		gj_share_chunk(team, source, nrows, memory, slot) :
		gj_replicate_chunk(team, source, nrows, memory, slot);
}

static GjStatus
use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses)
{
	return source == state_of(team)->share.build_side ? gj_share_use(team, source, n, uses) :
		gj_replicate_use(team, source, n, uses);
}

static GjStatus
source_end(GjTeam *team, uint32_t source)
{
	GJ_TRY(gj_input_end(team, source));
	GJ_TRY(gj_team_drain(team));
	if (source == 0)
		GJ_TRY(gj_replicate_build_rows(team, -1));
	GJ_TRY(gj_team_for_all(team, gj_worker_end_source, source));
	if (source != state_of(team)->share.build_side)
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
	return gj_share_finish(team, gj_share_end_run, GJ_SCHEME_RING, stats);
}

static void
close(GjTeam *team)
{
	gj_ring_free(state_of(team)->ring);
	gj_replicate_close(team);
}

static const GjStrategyOps ring_ops = {
	.worker = &gj_plain_worker,.leave = gj_share_leave,.stays_open = true,
	.accepts = gj_input_accepts,.chunk = chunk,.ask = gj_team_ask_all,.use = use,
	.source_end = source_end,.complete = gj_replicate_complete,.work = gj_team_serve,
	.flush = gj_team_serve,.finish = finish,.error = gj_replicate_error,.close = close
};

static GjStatus
prepare(GjWorker *worker)
{
	GjTeam	   *team = worker->team;

	GJ_TRY(gj_worker_prepare_run(worker, team->program));
	return gj_run_join_ring(worker->run, state_of(team)->ring, (uint32_t) (worker - team->workers));
}

GjStatus
gj_ring_open(GjTeam *team, uint32_t step)
{
	GjRingTeam *state = gj_share_make(team, &ring_ops, step, sizeof(GjRingTeam));

	if (!state)
		return GJ_OUT_OF_HOST_MEMORY;
	state->ring = gj_ring_make(step, team->nworkers);
	if (!state->ring)
		return GJ_OUT_OF_HOST_MEMORY;
	return gj_replicate_open_runs(team, prepare, gj_worker_start_run);
}
