/*
 * member.c
 *	  A device of a team: its runs, and what these ask for.  It has a thread (team/worker.c).
 *
 * The output ring belongs to one member at a time, from its slot to its batch.
 */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "rows/aggregate.h"
#include "wire/messages.h"
#include "daemon/sets/sets.h"

/* ---- what members ask of the session's thread */

static bool
stopped(const GjTeam *team)
{
	return __atomic_load_n(&team->stop, __ATOMIC_RELAXED) != 0;
}

static bool
member_stop(void *arg)
{
	return stopped(((GjMember *) arg)->team);
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
member_slot_free(void *arg, uint32_t slot)
{
	GjMember   *member = arg;
	GjTeam	   *team = member->team;

	/* the member's own, filled from what is kept on the host */
	if (slot >= GJ_OWN_SLOTS)
	{
		member->nread++;
		return GJ_OK;
	}
	pthread_mutex_lock(&team->lock);
	drop_use(team, slot);
	pthread_mutex_unlock(&team->lock);
	gj_team_wake(team);
	return GJ_OK;
}

/* Waits until the session's thread has granted a wish.  The lock is held. */
static GjStatus
wish(GjMember *member, GjWish what, uint32_t nrows)
{
	GjTeam    *team = member->team;

	team->output.wish = what;
	team->output.nrows = nrows;
	gj_team_wake(team);
	while (team->output.wish != GJ_WISH_NOTHING && !stopped(team))
		gj_member_await_grant(member);
	return stopped(team) ? GJ_CANCELLED : GJ_OK;
}

/* ---- where results of runs go */

static GjStatus
states_slot(void *arg, uint8_t **memory)
{
	*memory = (uint8_t *) ((GjMember *) arg)->states;
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
	((GjMember *) arg)->sent = true;
	return GJ_OK;
}

/* States stay in the member's memory, until the run has ended. */
static const GjFinalOps states_ops = {.slot = states_slot,.ready = states_ready,.send = states_send};

static GjStatus
ring_slot(void *arg, uint8_t **memory)
{
	GjMember   *member = arg;
	GjTeam    *team = member->team;
	GjStatus	status = GJ_OK;

	pthread_mutex_lock(&team->lock);
	while (team->output.writer && team->output.writer != member && !stopped(team))
		gj_member_await_grant(member);
	if (stopped(team))
		status = GJ_CANCELLED;
	else
	{
		team->output.writer = member;
		status = wish(member, GJ_WISH_SLOT, 0);
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
	GjMember   *member = arg;
	GjTeam    *team = member->team;
	GjStatus	status;

	member->sent = true;
	pthread_mutex_lock(&team->lock);
	status = wish(member, GJ_WISH_SEND, nrows);
	team->output.writer = NULL;
	gj_team_grant(team);
	pthread_mutex_unlock(&team->lock);
	return status;
}

/* Batches go to the client's ring, by way of the session's thread. */
static const GjFinalOps ring_ops = {.slot = ring_slot,.ready = ring_ready,.send = ring_send};

GjStatus
gj_member_part_slot(void *arg, uint8_t **memory)
{
	GjMember   *member = arg;
	GjErrorText why;

	if (!member->part)
		GJ_TRY(gj_segment_get(member->entry, GJ_OUTPUT_SLOT_SIZE, &member->part, &why));
	*memory = member->part->memory;
	return GJ_OK;
}

static GjStatus
part_keep(void *arg, const uint8_t *slot)
{
	GjMember   *member = arg;

	member->sent = true;
	return gj_team_groups_keep(member->keeps_groups, slot);
}

/* Parts of groups are kept on the host. */
static const GjPartialOps part_ops = {.slot = gj_member_part_slot,.keep = part_keep};

static bool
take_tile(void *arg, uint64_t tile)
{
	GjMember   *member = arg;

	if (!member->has_tile)
		member->tile = __atomic_fetch_add(&member->team->tiles.next, 1, __ATOMIC_RELAXED);
	/* until it comes: all members go through the tiles in the same order */
	member->has_tile = member->tile != tile;
	return !member->has_tile;
}

/* ---- runs of members */

/* Where the result of the member's next run goes. */
static GjTarget
choose_target(GjMember *member)
{
	if (member->keeps_groups)
		return (GjTarget) {.form = GJ_FORM_PARTIAL,.arg = member,.partial = &part_ops};
	if (member->hands_over)
		return (GjTarget) {.form = GJ_FORM_SORTED,.arg = member,.sorted = &gj_member_sorted_ops};
	return (GjTarget) {.form = GJ_FORM_FINAL,.arg = member,
		.final = member->team->sink->has_states ? &states_ops : &ring_ops};
}

/* What a run of the member's is opened with. */
static GjRunSetup
make_setup(GjMember *member)
{
	member->host = (GjRunHost) {.arg = member,.stop = member_stop,.slot_free = member_slot_free};
	member->sent = false;
	return (GjRunSetup) {.host = &member->host,.sink = member->team->sink,.intake = &gj_intake,.join = gj_join_choose,
		.target = choose_target(member),
		.tiles = {take_tile, member, member->team->tiles.pairs}};
}

GjStatus
gj_member_prepare_run(GjMember *member, const GjProgram *program)
{
	const GjRunSetup setup = make_setup(member);

	member->run = gj_run_prepare(member->entry, program, &member->lease, &setup);
	return member->run ? GJ_OK : GJ_OUT_OF_HOST_MEMORY;
}

void
gj_member_open_run(GjMember *member, const GjProgram *program, GjStatus *status)
{
	const GjRunSetup setup = make_setup(member);
	GjErrorText why = {""};

	member->run = gj_run_open(member->entry, program, &member->lease, &setup, status, &why);
	if (member->run)
	{
		*status = GJ_OK;
		return;
	}
	gj_team_note_error(member->team, *status, why.text);
}

GjStatus
gj_member_close_run(GjMember *member)
{
	GjErrorText why = {""};
	GjStatus	status;

	if (!member->run)
		return GJ_OK;
	status = gj_run_close(member->run, &why);
	member->run = NULL;
	member->restless = false;
	if (status == GJ_DEVICE_LOST)
	{
		pthread_mutex_lock(&member->team->lock);
		member->team->error = why;
		pthread_mutex_unlock(&member->team->lock);
	}
	return status;
}

GjStatus
gj_member_error(GjMember *member, GjStatus status)
{
	/* once it is told to stop, its status is the consequence of another one's */
	if (status == GJ_OK || status == GJ_CANCELLED || !member->run)
		return status;
	return gj_team_note_error(member->team, status, gj_run_error(member->run));
}

void
gj_member_count(GjMember *member, const GjRunStats *stats)
{
	GjDeviceTotals *totals = &member->counts.totals;

	for (int i = 0; i < GJ_NPHASES; i++)
		if (i != GJ_PHASE_WAIT)
			totals->busy_ms += stats->ms[i];
	totals->bytes_in += stats->bytes_in;
	totals->bytes_out += stats->bytes_out;
}

GjStatus
gj_member_finish_run(GjMember *member, uint32_t counted)
{
	GjTeam	   *team = member->team;
	const GjAggregate *aggregates = gj_program_array(team->program, GjAggregate, aggregates);
	GjRunStats	stats;

	memset(&stats, 0, sizeof(stats));
	GJ_TRY(gj_run_finish(member->run, &stats));
	member->counts.outer_rows += stats.source[0].rows_in;
	gj_member_count(member, &stats);
	pthread_mutex_lock(&team->lock);
	gj_add_run_stats(&team->stats, &stats, counted);
	if (team->sink->has_states && member->sent)
		for (uint32_t i = 0; i < team->program->naggregates; i++)
			gj_agg_merge(aggregates[i].op, &team->gather.states[i], &member->states[i]);
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}
