/*
 * gather.c
 *	  Puts the results of several runs together, by the kind of output: states are added, groups
 *	  joined by their keys (team/groups.c), sorted runs merged (team/sorted.c).  Rows without an
 *	  order, and counts, are sent as they come.
 */
#include "state.h"

#include <string.h>

static GjStatus
open_nothing(GjTeam *team, GjErrorText *why)
{
	return GJ_OK;
}

static GjStatus
nothing_ended(GjWorker *worker)
{
	return GJ_OK;
}

/* Counts, and rows without an order. */
static const GjGatherOps as_they_come = {
	.open = open_nothing,.ended = nothing_ended,.finish = gj_team_drain
};

/* ---- states, which workers add up: the sums go out last */

static GjStatus
send_states(GjTeam *team)
{
	uint32_t	nbytes = team->program->naggregates * sizeof(GjAggState);
	uint8_t    *slot;

	GJ_TRY(gj_team_drain(team));
	GJ_TRY(team->target.final->slot(team->target.arg, &slot));
	memcpy(slot, team->gather.states, nbytes);
	team->stats.rows_out = 1;
	return team->target.final->send(team->target.arg, 1);
}

static const GjGatherOps states = {
	.open = open_nothing,.ended = nothing_ended,.finish = send_states
};

/* ---- sorted rows, which are merged while workers sort */

static GjStatus
open_sorted(GjTeam *team, GjErrorText *why)
{
	team->gather.sorted = gj_team_sorted_open(team, why);
	if (team->gather.sorted)
		return GJ_OK;
	return why->text[0] ? GJ_NO_DEVICE : GJ_OUT_OF_HOST_MEMORY;
}

static GjStatus
send_sorted(GjTeam *team)
{
	GJ_TRY(gj_team_sorted_send(team->gather.sorted));
	GJ_TRY(gj_team_drain(team));
	gj_team_sorted_stats(team->gather.sorted, &team->stats);
	return GJ_OK;
}

static const GjGatherOps sorted_rows = {
	.needs_store = true,
	.open = open_sorted,.ended = gj_worker_sorted_ended,.finish = send_sorted
};

/* ---- groups, which runs hand over */

static GjStatus
open_groups(GjTeam *team, GjErrorText *why)
{
	GjTeamGroups **groups = team->gather.groups;
	const GjProgram *p = team->program;
	int			first = p->ndistinct_keys > 0 ? 0 : 1;

	groups[1] = gj_team_groups_open(team, gj_group_nkeys(p), NULL, why);
	if (groups[1] && first == 0)
		groups[0] = gj_team_groups_open(team, p->ngroup_keys, groups[1], why);
	if (!groups[first])
		return why->text[0] ? GJ_TOO_LARGE : GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < team->nworkers; i++)
		team->workers[i].keeps_groups = groups[first];
	return GJ_OK;
}

/* A worker puts shares together until there are no more. */
static GjStatus
join_shares(GjWorker *worker, GjTask *task)
{
	return gj_team_groups_join(worker->team->gather.groups[task->source], worker);
}

static GjStatus
join_groups(GjTeam *team)
{
	GJ_TRY(gj_team_drain(team));
	for (uint32_t i = 0; i < 2; i++)
	{
		if (!team->gather.groups[i])
			continue;
		GJ_TRY(gj_team_groups_share(team->gather.groups[i]));
		GJ_TRY(gj_team_for_all(team, join_shares, i));
	}
	return GJ_OK;
}

/* Others do without the run's memory: the result need not wait for that. */
static const GjGatherOps groups = {
	.needs_store = true,.closes_runs = true,
	.open = open_groups,.ended = gj_worker_close_run,.finish = join_groups
};

/* ---- groups in an order: those of shares are merged */

static GjStatus
open_sorted_groups(GjTeam *team, GjErrorText *why)
{
	GJ_TRY(open_groups(team, why));
	return open_sorted(team, why);
}

static GjStatus
join_sorted_groups(GjTeam *team)
{
	GJ_TRY(join_groups(team));
	return send_sorted(team);
}

static const GjGatherOps sorted_groups = {
	.needs_store = true,.closes_runs = true,
	.open = open_sorted_groups,.ended = gj_worker_close_run,.finish = join_sorted_groups
};

/* ---- all of them */

const GjGatherOps *
gj_gather_choose(const GjSinkOps *sink)
{
	if (sink->returns_rows)
		return sink->sorted ? &sorted_rows : &as_they_come;
	if (sink->has_groups)
		return sink->sorted ? &sorted_groups : &groups;
	return sink->has_states ? &states : &as_they_come;
}

GjStatus
gj_gather(GjTeam *team, GjRunStats *stats)
{
	GJ_TRY(team->gather.ops->finish(team));
	*stats = team->stats;
	stats->npasses = 1;
	for (uint32_t i = 0; i < team->nworkers; i++)
		stats->memory_peak += team->workers[i].lease.peak;
	/* groups of several devices meet on the host, whether there is room on these or not */
	if (team->gather.reports_store || team->store.file_used > 0)
	{
		stats->spilled_memory = team->store.memory_peak;
		stats->spilled_disk = team->store.file_used;
	}
	return GJ_OK;
}

void
gj_gather_close(GjTeam *team)
{
	for (uint32_t i = 0; i < 2; i++)
		if (team->gather.groups[i])
			gj_team_groups_close(team->gather.groups[i]);
	if (team->gather.sorted)
		gj_team_sorted_close(team->gather.sorted);
}
