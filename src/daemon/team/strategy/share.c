/*
 * share.c
 *	  What the strategies have in common that share the build side of a step out: exchange.c, ring.c
 *	  and ranges.c.  Their runs read what lies on the devices of others.
 *
 * So no run may be closed while another one reads: runs are closed when all have ended, or one after
 * the other, when the team closes and no thread works any more.
 */
#include "share.h"

#include <stdlib.h>

static GjShare *
state_of(const GjTeam *team)
{
	return team->strategy.state;
}

/* ---- in the threads of workers */

void
gj_share_leave(GjWorker *worker)
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

GjStatus
gj_share_finish_run(GjWorker *worker)
{
	GJ_TRY(gj_worker_finish_run(worker, gj_replicate_counted(worker) |
								1u << state_of(worker->team)->build_side));
	worker->counts.exchanged = gj_run_received(worker->run);
	return GJ_OK;
}

GjStatus
gj_share_end_run(GjWorker *worker, GjTask *task)
{
	GJ_TRY(gj_share_finish_run(worker));
	return gj_replicate_run_ended(worker);
}

/* ---- in the session's thread */

GjStatus
gj_share_chunk(GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory, uint32_t slot)
{
	const GjTask chunk = {.source = source,.nrows = nrows,.memory = memory,.slot = slot};

	GJ_TRY(gj_input_chunk(team, source));
	return gj_input_post(team, &chunk, (int) gj_input_give(team, -1, nrows));
}

GjStatus
gj_share_use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses)
{
	GJ_TRY(gj_input_use(team, source));
	return gj_team_use_all(team, source, n, uses, GJ_TAKEN_EVENLY);
}

GjStatus
gj_share_finish(GjTeam *team, GjTaskRun end_run, GjScheme scheme, GjRunStats *stats)
{
	GJ_TRY(gj_team_post_copies(team, &(GjTask) {.run = end_run,.wakes = true}));
	GJ_TRY(gj_gather(team, stats));
	stats->exchange_step = state_of(team)->step + 1;
	stats->scheme = scheme;
	pthread_mutex_lock(&team->lock);
	state_of(team)->finished = true;
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}

void *
gj_share_make(GjTeam *team, const GjStrategyOps *ops, uint32_t step, size_t nbytes)
{
	GjShare    *share = calloc(1, nbytes);

	if (!share)
		return NULL;
	share->step = step;
	share->build_side = gj_program_array(team->program, GjStep, steps)[step].source;
	team->strategy = (GjStrategy) {ops, share};
	return share;
}
