/*
 * single.c
 *	  The strategy of one device, which the session's thread drives; there are no workers.
 */
#include "strategy.h"

#include "daemon/sets/sets.h"

#include <stdio.h>

static GjRun *
run_of(const GjTeam *team)
{
	return team->workers[0].run;
}

GjStatus
gj_single_open(GjTeam *team, GjErrorText *why)
{
	const GjRunSetup setup = {.host = team->host,.sink = team->sink,.intake = &gj_intake,
	.join = gj_join_choose,.target = team->target,.tiles = gj_all_tiles};
	GjWorker   *worker = &team->workers[0];
	GjStatus	status = GJ_OK;

	team->strategy.ops = &gj_single_ops;
	worker->run = gj_run_open(worker->entry, team->program, &worker->lease, &setup, &status, why);
	return status;
}

static bool
accepts(const GjTeam *team, uint32_t source)
{
	return gj_run_accepts(run_of(team), source);
}

static GjStatus
chunk(GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory, uint32_t slot)
{
	team->workers[0].counts.chunks += source == 0;
	return gj_run_chunk(run_of(team), source, nrows, memory, slot);
}

static GjStatus
ask(GjTeam *team, const uint8_t *memory, const GjAnswers *answers)
{
	return gj_runs_ask(&team->workers[0].run, 1, memory, answers);
}

static GjStatus
use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses)
{
	team->workers[0].counts.chunks += source == 0 ? n : 0;
	return gj_run_use(run_of(team), source, n, uses);
}

static GjStatus
take_rows(GjTeam *team, uint32_t source, const GjKeptRows *rows)
{
	return gj_run_take_rows(run_of(team), source, rows);
}

static GjStatus
source_end(GjTeam *team, uint32_t source)
{
	return gj_run_source_end(run_of(team), source);
}

static bool
complete(const GjTeam *team)
{
	return gj_run_complete(run_of(team));
}

static GjStatus
work(GjTeam *team)
{
	return gj_run_work(run_of(team));
}

static GjStatus
flush(GjTeam *team)
{
	GJ_TRY(gj_run_flush(run_of(team)));
	return gj_run_wait(run_of(team));
}

static GjStatus
finish(GjTeam *team, GjRunStats *stats)
{
	GjWorker   *worker = &team->workers[0];

	GJ_TRY(gj_run_finish(worker->run, stats));
	worker->counts.probe_rows = stats->source[0].rows_in;
	gj_worker_count(worker, stats);
	stats->npasses = 1;
	stats->exchange_step = 0;
	return GJ_OK;
}

static void
error(GjTeam *team, GjErrorText *why)
{
	snprintf(why->text, sizeof(why->text), "%s", gj_run_error(run_of(team)));
}

static void
close(GjTeam *team)
{
}

const GjStrategyOps gj_single_ops = {
	.accepts = accepts,.chunk = chunk,.ask = ask,.use = use,
	.reads_rows = true,.take_rows = take_rows,.source_end = source_end,
	.complete = complete,.work = work,.flush = flush,.finish = finish,.error = error,
	.close = close
};
