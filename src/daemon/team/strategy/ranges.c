/*
 * ranges.c
 *	  The strategy for sort-merge joins whose build side fits only all devices together: each device
 *	  joins a range of the keys (run/ranges.c).
 *
 * Chunks and fragments of the build source and of the probe source go to one worker each, so that
 * all get about as many rows.  Of all other build sources each worker has all rows.  When the
 * probe source has ended, workers sort what they have, copy the rows of their ranges from each
 * other, and join these; at each step all wait for all, since they read what the step before has
 * left.
 */
#include "strategy.h"

#include <stdlib.h>

typedef struct GjRangeTeam
{
	GjReplicate replicate;
	uint32_t	step;
	uint32_t	build_side;		/* its source */
	GjRanges   *ranges;
	bool		finished;		/* no run reads what is another's; guarded by lock */
} GjRangeTeam;

static GjRangeTeam *
state_of(const GjTeam *team)
{
	return team->strategy.state;
}

/* ---- in the threads of workers */

static GjStatus
start_run(GjWorker *worker, GjTask *task)
{
	return gj_run_start(worker->run);
}

/* All rows of a source that is gathered are there. */
static GjStatus
note_loaded(GjWorker *worker, GjTask *task)
{
	worker->has_chunks = false;
	return gj_run_source_loaded(worker->run, task->source);
}

static GjStatus
sort_sides(GjWorker *worker, GjTask *task)
{
	GJ_TRY(gj_run_sort_range(worker->run, true));
	return gj_run_sort_range(worker->run, false);
}

static GjStatus
take_range(GjWorker *worker, GjTask *task)
{
	return gj_run_take_range(worker->run);
}

/* Builds the side, with all the memory that it needs, before any device returns rows. */
static GjStatus
build_side(GjWorker *worker, GjTask *task)
{
	gj_run_drop_sorted(worker->run);
	return gj_run_source_end(worker->run, task->source);
}

static GjStatus
probe(GjWorker *worker, GjTask *task)
{
	return gj_run_probe_range(worker->run);
}

static GjStatus
end_run(GjWorker *worker, GjTask *task)
{
	GjRangeTeam *state = state_of(worker->team);

	GJ_TRY(gj_worker_finish_run(worker, gj_replicate_counted(worker) | 1u << state->build_side));
	worker->counts.exchanged = gj_run_range_received(worker->run);
	worker->has_chunks = false;
	return worker->team->gather.ops->ended(worker);
}

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

/* ---- in the session's thread */

static bool
is_shared(const GjTeam *team, uint32_t source)
{
	return source == 0 || source == state_of(team)->build_side;
}

static GjStatus
chunk(GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory, uint32_t slot)
{
	const GjTask chunk = {.source = source,.nrows = nrows,.memory = memory,.slot = slot};

	if (!is_shared(team, source))
		return gj_replicate_chunk(team, source, nrows, memory, slot);
	GJ_TRY(gj_input_chunk(team, source));
	return gj_input_post(team, &chunk, (int) gj_input_give(team, -1, nrows));
}

static GjStatus
use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses)
{
	if (source == 0 || !is_shared(team, source))
		return gj_replicate_use(team, source, n, uses);
	GJ_TRY(gj_input_use(team, source));
	return gj_team_use_all(team, source, n, uses, GJ_TAKEN_EVENLY);
}

/* All rows have come. */
static GjStatus
join_ranges(GjTeam *team)
{
	GjRangeTeam *state = state_of(team);

	GJ_TRY(gj_team_for_all(team, note_loaded, 0));
	GJ_TRY(gj_team_for_all(team, sort_sides, 0));
	GJ_TRY(gj_ranges_cut(state->ranges));
	GJ_TRY(gj_team_for_all(team, take_range, 0));
	GJ_TRY(gj_team_for_all(team, build_side, state->build_side));
	GJ_TRY(gj_team_for_all(team, probe, 0));
	GJ_TRY(gj_replicate_build_rows(team, -1));
	return gj_team_for_all(team, gj_worker_end_source, 0);
}

static GjStatus
source_end(GjTeam *team, uint32_t source)
{
	GJ_TRY(gj_input_end(team, source));
	GJ_TRY(gj_team_drain(team));
	if (source == 0)
		return join_ranges(team);
	return gj_team_for_all(team, source == state_of(team)->build_side ? note_loaded :
						   gj_worker_end_source, source);
}

static GjStatus
finish(GjTeam *team, GjRunStats *stats)
{
	GJ_TRY(gj_team_drain(team));
	GJ_TRY(gj_team_post_copies(team, &(GjTask) {.run = end_run,.wakes = true}));
	GJ_TRY(gj_gather(team, stats));
	stats->exchange_step = state_of(team)->step + 1;
	stats->scheme = GJ_SCHEME_RANGES;
	pthread_mutex_lock(&team->lock);
	state_of(team)->finished = true;
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}

static void
close(GjTeam *team)
{
	gj_ranges_free(state_of(team)->ranges);
	gj_replicate_close(team);
}

static const GjStrategyOps ranges_ops = {
	.worker = &gj_plain_worker,.leave = leave,.stays_open = true,
	.accepts = gj_input_accepts,.chunk = chunk,.ask = gj_team_ask_all,.use = use,
	.source_end = source_end,.complete = gj_replicate_complete,.work = gj_team_serve,
	.flush = gj_team_serve,.finish = finish,.error = gj_replicate_error,.close = close
};

GjStatus
gj_ranges_open(GjTeam *team, uint32_t step)
{
	GjRangeTeam *state = calloc(1, sizeof(GjRangeTeam));

	if (!state)
		return GJ_OUT_OF_HOST_MEMORY;
	state->step = step;
	state->build_side = gj_program_array(team->program, GjStep, steps)[step].source;
	team->strategy = (GjStrategy) {&ranges_ops, state};
	state->ranges = gj_ranges_make(step, team->nworkers);
	if (!state->ranges)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < team->nworkers; i++)
	{
		team->workers[i].gathers = true;
		GJ_TRY(gj_worker_prepare_run(&team->workers[i], team->program));
		GJ_TRY(gj_run_join_ranges(team->workers[i].run, state->ranges, i));
	}
	GJ_TRY(gj_workers_start(team));
	return gj_team_post_for_all(team, start_run, 0);
}
