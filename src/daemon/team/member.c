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

static GjStatus
member_output_slot(void *arg, uint8_t **memory)
{
	GjMember   *member = arg;
	GjTeam    *team = member->team;
	GjStatus	status = GJ_OK;

	if (team->program->output == GJ_OUTPUT_AGGREGATES)
	{
		*memory = (uint8_t *) member->states;
		return GJ_OK;
	}
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

/* States go to the member's own memory. */
static bool
member_output_ready(void *arg)
{
	return ((GjMember *) arg)->team->program->output == GJ_OUTPUT_AGGREGATES;
}

static GjStatus
member_send_batch(void *arg, uint32_t nrows)
{
	GjMember   *member = arg;
	GjTeam    *team = member->team;
	GjStatus	status;

	member->sent = true;
	if (team->program->output == GJ_OUTPUT_AGGREGATES)
		return GJ_OK;
	pthread_mutex_lock(&team->lock);
	status = wish(member, GJ_WISH_SEND, nrows);
	team->output.writer = NULL;
	gj_team_grant(team);
	pthread_mutex_unlock(&team->lock);
	return status;
}

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
member_keep_part(void *arg, const uint8_t *slot)
{
	GjMember   *member = arg;

	member->sent = true;
	return gj_team_groups_keep(member->keeps_groups, slot);
}

static bool
member_take_tile(void *arg, uint64_t tile)
{
	GjMember   *member = arg;

	if (!member->has_tile)
		member->tile = __atomic_fetch_add(&member->team->tiles.next, 1, __ATOMIC_RELAXED);
	/* until it comes: all members go through the tiles in the same order */
	member->has_tile = member->tile != tile;
	return !member->has_tile;
}

/* ---- runs of members */

/* Prepares what a run of the member's asks of it. */
static void
make_host(GjMember *member)
{
	/* nothing is asked of members: gj_team_ask */
	member->host = (GjRunHost) {
		.arg = member,.stop = member_stop,.output_slot = member_output_slot,
		.output_ready = member_output_ready,.send_batch = member_send_batch,.slot_free = member_slot_free,
		.take_tile = member_take_tile,.tile_pairs = member->team->tiles.pairs
	};
	if (member->hands_over)
	{
		member->host.sorted_begin = gj_member_sorted_begin;
		member->host.sorted_slot = gj_member_sorted_slot;
		member->host.sorted_end_keys = gj_member_sorted_end_keys;
		member->host.sorted_filled = gj_member_sorted_filled;
	}
	if (member->keeps_groups)
	{
		member->host.part_slot = gj_member_part_slot;
		member->host.keep_part = member_keep_part;
	}
	member->sent = false;
}

GjStatus
gj_member_prepare_run(GjMember *member, const GjProgram *program)
{
	make_host(member);
	member->run = gj_run_prepare(member->entry, program, &member->lease, &member->host);
	return member->run ? GJ_OK : GJ_OUT_OF_HOST_MEMORY;
}

void
gj_member_open_run(GjMember *member, const GjProgram *program, GjStatus *status)
{
	GjErrorText why = {""};

	make_host(member);
	member->run = gj_run_open(member->entry, program, &member->lease, &member->host, status, &why);
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
	if (team->gather.ops->only_states && member->sent)
		for (uint32_t i = 0; i < team->program->naggregates; i++)
			gj_agg_merge(aggregates[i].op, &team->gather.states[i], &member->states[i]);
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}
