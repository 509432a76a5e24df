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
#include "share.h"

typedef struct GjRangeTeam
{
	GjShare		share;
	GjRanges   *ranges;
} GjRangeTeam;

static GjRangeTeam *
state_of(const GjTeam *team)
{
	return team->strategy.state;
}

/* ---- in the threads of workers */

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

/* ---- in the session's thread */

static GjStatus
chunk(GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory, uint32_t slot)
{
	return source == 0 || source == state_of(team)->share.build_side ?
		gj_share_chunk(team, source, nrows, memory, slot) :
		gj_replicate_chunk(team, source, nrows, memory, slot);
}

/* Rows of the probe side are gathered where they lie: all are divided later. */
static GjStatus
use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses)
{
	if (source == state_of(team)->share.build_side)
		return gj_share_use(team, source, n, uses);
	if (source > 0)
		return gj_replicate_use(team, source, n, uses);
	GJ_TRY(gj_input_use(team, source));
	return gj_team_use_all(team, source, n, uses, GJ_TAKEN_BY_OWNERS);
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
	GJ_TRY(gj_team_for_all(team, build_side, state->share.build_side));
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
	return gj_team_for_all(team, source == state_of(team)->share.build_side ? note_loaded :
						   gj_worker_end_source, source);
}

static GjStatus
finish(GjTeam *team, GjRunStats *stats)
{
	GJ_TRY(gj_team_drain(team));
	return gj_share_finish(team, gj_share_end_run, GJ_SCHEME_RANGES, stats);
}

static void
close(GjTeam *team)
{
	gj_ranges_free(state_of(team)->ranges);
	gj_replicate_close(team);
}

static const GjStrategyOps ranges_ops = {
	.worker = &gj_plain_worker,.leave = gj_share_leave,.stays_open = true,
	.accepts = gj_input_accepts,.chunk = chunk,.ask = gj_team_ask_all,.use = use,
	.source_end = source_end,.complete = gj_replicate_complete,.work = gj_team_serve,
	.flush = gj_team_serve,.finish = finish,.error = gj_replicate_error,.close = close
};

static GjStatus
prepare(GjWorker *worker)
{
	GjTeam	   *team = worker->team;

	worker->gathers = true;
	GJ_TRY(gj_worker_prepare_run(worker, team->program));
	return gj_run_join_ranges(worker->run, state_of(team)->ranges,
							  (uint32_t) (worker - team->workers));
}

GjStatus
gj_ranges_open(GjTeam *team, uint32_t step)
{
	GjRangeTeam *state = gj_share_make(team, &ranges_ops, step, sizeof(GjRangeTeam));

	if (!state)
		return GJ_OUT_OF_HOST_MEMORY;
	state->ranges = gj_ranges_make(step, team->nworkers);
	if (!state->ranges)
		return GJ_OUT_OF_HOST_MEMORY;
	return gj_replicate_open_runs(team, prepare, gj_worker_start_run);
}
