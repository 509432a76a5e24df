/*
 * team.c
 *	  The calls that the session's thread makes to run a program on one device or several; see
 *	  team/team.h.  The strategy decides how the work is spread (strategy/strategy.h).
 */
#include "strategy/strategy.h"

int
gj_team_fd(const GjTeam *team)
{
	return team->signals.wake_fd;
}

/* Something has come to work on. */
static void
note_start(GjTeam *team)
{
	if (team->input.started_us == 0)
		team->input.started_us = gj_now_us();
}

GjStatus
gj_team_chunk(GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory, uint32_t slot)
{
	note_start(team);
	return team->strategy.ops->chunk(team, source, nrows, memory, slot);
}

GjStatus
gj_team_ask(GjTeam *team, const uint8_t *memory, const GjAnswers *answers)
{
	return team->strategy.ops->ask(team, memory, answers);
}

GjStatus
gj_team_use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses)
{
	note_start(team);
	return team->strategy.ops->use(team, source, n, uses);
}

bool
gj_team_reads_rows(const GjTeam *team, const GjKeptRows *rows)
{
	return team->strategy.ops->reads_rows && team->workers[0].entry == rows->entry;
}

GjStatus
gj_team_take_rows(GjTeam *team, uint32_t source, const GjKeptRows *rows)
{
	note_start(team);
	return team->strategy.ops->take_rows(team, source, rows);
}

GjStatus
gj_team_source_end(GjTeam *team, uint32_t source)
{
	return team->strategy.ops->source_end(team, source);
}

bool
gj_team_complete(const GjTeam *team)
{
	return team->strategy.ops->complete(team);
}

/* Which devices did what. */
static void
device_stats(GjTeam *team, GjRunStats *stats)
{
	stats->ndevices = team->nworkers;
	stats->elapsed_ms = team->input.started_us > 0 ?
		(double) (gj_now_us() - team->input.started_us) * 1e-3 : 0;
	for (uint32_t i = 0; i < team->nworkers; i++)
	{
		GjWorker   *worker = &team->workers[i];
		GjWorkerCounts *counts = &worker->counts;

		stats->device[i] = (GjDeviceStats) {
			.ordinal = worker->entry->info.ordinal,.rows = counts->probe_rows,
			.chunks = counts->chunks,.busy_ms = counts->totals.busy_ms,
			.exchanged = counts->exchanged
		};
		counts->totals.runs = 1;
		gj_devices_count_run(worker->entry, &counts->totals);
	}
}

GjStatus
gj_team_finish(GjTeam *team, GjRunStats *stats)
{
	GJ_TRY(team->strategy.ops->finish(team, stats));
	device_stats(team, stats);
	return GJ_OK;
}

bool
gj_team_accepts(const GjTeam *team, uint32_t source)
{
	return team->strategy.ops->accepts(team, source);
}

GjStatus
gj_team_work(GjTeam *team)
{
	return team->strategy.ops->work(team);
}

GjStatus
gj_team_flush(GjTeam *team)
{
	return team->strategy.ops->flush(team);
}

void
gj_team_error(GjTeam *team, GjErrorText *why)
{
	team->strategy.ops->error(team, why);
}

GjDeviceEntry *
gj_team_entry(const GjTeam *team)
{
	return team->workers[0].entry;
}
