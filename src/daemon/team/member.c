/*
 * member.c
 *	  A device of a team: its tasks, its runs, and what these ask for.  It has a thread (team/thread.c).
 *
 * A member that fails tells the team, whose first failure is the run's.  The output ring
 * belongs to one member at a time, from its slot to its batch.
 */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rows/aggregate.h"
#include "wire/messages.h"
#include "daemon/base/base.h"

/* How long a member looks for a task before it waits for its device, which takes some 0.01 ms. */
#define GJ_REST_SPIN_US		50

/* ---- what members ask of the session's thread */

void
gj_team_wake(GjTeam *team)
{
	const uint64_t one = 1;

	__atomic_add_fetch(&team->woken, 1, __ATOMIC_RELEASE);
	while (write(team->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void
gj_team_tell(GjTeam *team)
{
	__atomic_add_fetch(&team->told, 1, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&team->work);
}

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
	GjSlotUse **use = &team->used;

	while (*use && (*use)->slot != slot)
		use = &(*use)->next;
	if (*use && --(*use)->nusers == 0)
	{
		GjSlotUse  *freed = *use;

		*use = freed->next;
		freed->next = team->freed;
		team->freed = freed;
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

void
gj_member_await_grant(GjMember *member)
{
	member->waits = true;
	pthread_cond_wait(&member->team->granted, &member->team->lock);
	member->waits = false;
}

void
gj_team_grant(GjTeam *team)
{
	/* before they know: whoever has what it has waited for goes on */
	for (uint32_t i = 0; i < team->nmembers; i++)
		team->members[i].waits = false;
	pthread_cond_broadcast(&team->granted);
}

/* Waits until the session's thread has granted a wish.  The lock is held. */
static GjStatus
wish(GjMember *member, GjWish what, uint32_t nrows)
{
	GjTeam    *team = member->team;

	team->wish = what;
	team->wish_rows = nrows;
	gj_team_wake(team);
	while (team->wish != GJ_WISH_NOTHING && !stopped(team))
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
	while (team->writer && team->writer != member && !stopped(team))
		gj_member_await_grant(member);
	if (stopped(team))
		status = GJ_CANCELLED;
	else
	{
		team->writer = member;
		status = wish(member, GJ_WISH_SLOT, 0);
		*memory = team->output_slot;
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
	team->writer = NULL;
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
		member->tile = __atomic_fetch_add(&member->team->next_tile, 1, __ATOMIC_RELAXED);
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
		.take_tile = member_take_tile,.tile_pairs = member->team->tile_pairs
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
	member->run = gj_run_prepare(member->entry, program, &member->lease, &member->host,
								 &gj_intake);
	return member->run ? GJ_OK : GJ_OUT_OF_HOST_MEMORY;
}

void
gj_member_open_run(GjMember *member, const GjProgram *program, GjStatus *status)
{
	GjErrorText why = {""};

	make_host(member);
	member->run = gj_run_open(member->entry, program, &member->lease, &member->host, &gj_intake,
							  status, &why);
	if (member->run)
	{
		*status = GJ_OK;
		return;
	}
	pthread_mutex_lock(&member->team->lock);
	if (member->team->error.text[0] == '\0')
		member->team->error = why;
	pthread_mutex_unlock(&member->team->lock);
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
	GjTeam    *team = member->team;

	/* once it is told to stop, its status is the consequence of another one's */
	if (status == GJ_OK || status == GJ_CANCELLED || !member->run)
		return status;
	pthread_mutex_lock(&team->lock);
	if (team->error.text[0] == '\0')
		snprintf(team->error.text, sizeof(team->error.text), "%s", gj_run_error(member->run));
	pthread_mutex_unlock(&team->lock);
	return status;
}

void
gj_member_count(GjMember *member, const GjRunStats *stats)
{
	GjDeviceTotals *totals = &member->totals;

	for (int i = 0; i < GJ_NPHASES; i++)
		if (i != GJ_PHASE_WAIT)
			totals->busy_ms += stats->ms[i];
	totals->bytes_in += stats->bytes_in;
	totals->bytes_out += stats->bytes_out;
}

GjStatus
gj_member_finish_run(GjMember *member, uint32_t counted)
{
	GjTeam    *team = member->team;
	const GjAggregate *aggregates = gj_program_array(team->program, GjAggregate, aggregates);
	uint64_t	rows_received;
	uint64_t	bytes_received;
	GjRunStats	stats;

	memset(&stats, 0, sizeof(stats));
	GJ_TRY(gj_run_finish(member->run, &stats));
	gj_run_received(member->run, &rows_received, &bytes_received);
	member->exchanged += bytes_received;
	member->outer_rows += team->exchange_step >= 0 ? rows_received : stats.source[0].rows_in;
	gj_member_count(member, &stats);
	pthread_mutex_lock(&team->lock);
	gj_add_run_stats(&team->stats, &stats, counted);
	if (team->program->output == GJ_OUTPUT_AGGREGATES && member->sent)
		for (uint32_t i = 0; i < team->program->naggregates; i++)
			gj_agg_merge(aggregates[i].op, &team->states[i], &member->states[i]);
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}

/* ---- tasks */

void
gj_team_drop_shared(GjTeam *team, GjSharedUses *shared, bool failed)
{
	bool		last;

	pthread_mutex_lock(&team->lock);
	shared->failed |= failed;
	last = --shared->nusers == 0;
	pthread_mutex_unlock(&team->lock);
	if (!last)
		return;
	for (uint32_t i = 0; i < team->nmembers; i++)
		gj_resident_give_back(&team->members[i].entry->memory, shared->used,
							  shared->failed ? NULL : shared->uses, shared->n);
	free(shared);
}

void
gj_team_free_task(GjTeam *team, GjTask *task)
{
	if (!task)
		return;
	if (task->shared)
		gj_team_drop_shared(team, task->shared, true);
	if (task->parcel)
		gj_team_drop_parcel(team, task->parcel);
	if (task->kind == GJ_TASK_USE)
		free(task->memory);
	free(task);
}

/* ---- rows of inner sides that come out by themselves */

/* Finishes the flags of step i and adds them to the team's. */
static GjStatus
add_flags(GjMember *member, uint32_t i)
{
	GjTeam	   *team = member->team;
	uint64_t	nrows;
	uint8_t    *slot;
	GjStatus	status = GJ_OK;

	GJ_TRY(gj_run_finish_flags(member->run, i));
	nrows = gj_run_nflags(member->run, i);
	if (nrows == 0)
		return GJ_OK;
	GJ_TRY(gj_member_part_slot(member, &slot));
	pthread_mutex_lock(&team->lock);
	if (!team->flags)
	{
		team->flags = calloc(nrows, 1);
		team->nflags = nrows;
	}
	if (!team->flags || team->nflags != nrows)
		status = GJ_OUT_OF_HOST_MEMORY;
	pthread_mutex_unlock(&team->lock);
	for (uint64_t first = 0, n; first < nrows && status == GJ_OK; first += n)
	{
		n = nrows - first < GJ_OUTPUT_SLOT_SIZE ? nrows - first : GJ_OUTPUT_SLOT_SIZE;
		status = gj_run_copy_flags(member->run, i, first, n, slot, true);
		pthread_mutex_lock(&team->lock);
		for (uint64_t r = 0; r < n && status == GJ_OK; r++)
			team->flags[first + r] |= slot[r];
		pthread_mutex_unlock(&team->lock);
	}
	return status;
}

/* Takes over the team's flags, which are complete, and sends its part of the rows. */
static GjStatus
send_rows(GjMember *member, uint32_t i)
{
	GjTeam	   *team = member->team;
	uint64_t	nrows = gj_run_nflags(member->run, i);
	uint32_t	number = (uint32_t) (member - team->members);
	uint64_t	first = nrows / team->nmembers * number;
	uint64_t	end = number + 1 < team->nmembers ? first + nrows / team->nmembers : nrows;
	uint8_t    *slot;

	if (nrows == 0)
		return GJ_OK;
	/* rows that no other member has */
	if ((int) i == team->exchange_step)
	{
		GJ_TRY(gj_run_finish_flags(member->run, i));
		return gj_run_some_rows(member->run, i, 0, nrows);
	}
	GJ_TRY(gj_member_part_slot(member, &slot));
	for (uint64_t at = first, n; at < end; at += n)
	{
		n = end - at < GJ_OUTPUT_SLOT_SIZE ? end - at : GJ_OUTPUT_SLOT_SIZE;
		memcpy(slot, team->flags + at, n);
		GJ_TRY(gj_run_copy_flags(member->run, i, at, n, slot, false));
	}
	return gj_run_some_rows(member->run, i, first, end);
}

/* ---- threads */

/*
 * Works on chunks that it was given, as far as there is nothing else to do.  Where nothing is loaded
 * more comes soon: *more is set then, and nothing was done.
 */
static GjStatus
rest(GjMember *member, uint32_t seen, bool *more)
{
	GjTeam	   *team = member->team;

	if (!__atomic_load_n(&team->loads, __ATOMIC_RELAXED))
		gj_spin_while(&team->told, seen, GJ_REST_SPIN_US);
	*more = __atomic_load_n(&team->told, __ATOMIC_ACQUIRE) != seen;
	if (*more)
		return GJ_OK;
	GJ_TRY(gj_run_flush(member->run));
	return gj_run_wait(member->run);
}

/* The member's run exchanges rows.  Before it was opened it is the session's thread's. */
static bool
exchanges(const GjMember *member)
{
	return member->team->exchange_step >= 0 && member->opened && member->run;
}

/* Rows that were exchanged wait to pass the steps. */
static bool
has_received(const GjMember *member)
{
	return exchanges(member) && gj_run_has_sent(member->run);
}

/* Parcels of others are being read. */
static bool
is_reading(const GjMember *member)
{
	return exchanges(member) && gj_run_is_reading(member->run);
}

/* True: the member can do something without a task.  awaits: the next of its own has to wait. */
static bool
has_more(const GjMember *member, bool awaits)
{
	return has_received(member) || (member->restless && !awaits) || is_reading(member);
}

/*
 * Does that.  Rows that were exchanged pass the steps only now: what sends others goes first, for
 * somebody waits for these.
 */
static GjStatus
do_more(GjMember *member, bool awaits, uint32_t seen, bool *more)
{
	if (has_received(member))
		return gj_run_join_sent(member->run);
	if (!member->restless || awaits || is_reading(member))
		return gj_member_settle(member, seen);
	member->restless = false;
	return rest(member, seen, more);
}

/* True if the runs of all members are complete. */
static bool
all_complete(GjTeam *team)
{
	bool		all = true;

	pthread_mutex_lock(&team->lock);
	for (uint32_t i = 0; i < team->nmembers; i++)
		all &= team->members[i].complete;
	pthread_mutex_unlock(&team->lock);
	return all;
}

/* The run is complete; without an exchange that of one member tells of all. */
static void
note_complete(GjMember *member)
{
	GjTeam	   *team = member->team;

	pthread_mutex_lock(&team->lock);
	member->complete = true;
	pthread_mutex_unlock(&team->lock);
	if (team->exchange_step < 0 || all_complete(team))
		__atomic_store_n(&team->complete, true, __ATOMIC_RELAXED);
}

/* Sources of which the member has counted rows that no other one has. */
static uint32_t
counted_sources(const GjMember *member)
{
	const GjTeam *team = member->team;
	uint32_t	counted = team->program->kind == GJ_PROGRAM_JOIN;

	/* all have the same rows of the other inner sources, or sets */
	if (member == team->members)
		return UINT32_MAX;
	for (uint32_t s = 1; s < team->program->nsources; s++)
		counted |= (uint32_t) gj_exchange_has(team, s) << s;
	return counted;
}

/* The fragments that the run has used of a source need not stay any longer. */
static void
drop_held(GjMember *member, uint32_t source, bool failed)
{
	GjTaskList	others;
	GjTask	   *task;

	gj_start_list(&others);
	while ((task = gj_take_task(&member->held)))
	{
		if (task->source != source)
		{
			gj_put_task(&others, task);
			continue;
		}
		gj_team_drop_shared(member->team, task->shared, failed);
		task->shared = NULL;
		gj_team_free_task(member->team, task);
	}
	while ((task = gj_take_task(&others)))
		gj_put_task(&member->held, task);
}

/* Uses fragments of the member's own. */
static GjStatus
use(GjMember *member, const GjTask *task)
{
	GjTeam	   *team = member->team;

	/* it was posted before anybody knew; in an exchange others may want the rows */
	if (task->source == 0 && gj_run_complete(member->run) &&
		(team->exchange_step < 0 || all_complete(team)))
		return GJ_OK;
	member->nchunks += task->source == 0 ? task->nrows : 0;
	member->restless |= !gj_run_notes_uses(member->run, task->source);
	return gj_run_use(member->run, task->source, task->nrows, (const GjUse *) task->memory);
}

static GjStatus
do_task(GjMember *member, GjTask *task)
{
	GjTeam    *team = member->team;
	GjStatus	status;

	switch (task->kind)
	{
		case GJ_TASK_OPEN:
			member->opened = true;
			return gj_run_start(member->run);
		case GJ_TASK_USE:
			return use(member, task);
		case GJ_TASK_USE_INNER:
			/* only noted, too */
			return gj_run_use_shared(member->run, task->source, task->shared->n,
									 task->shared->used);
		case GJ_TASK_CHUNK:
			member->nchunks += task->source == 0;
			gj_run_may_keep(member->run, task->keep || task->source == 0);
			status = gj_run_chunk(member->run, task->source, task->nrows, task->memory,
								  task->slot);
			member->restless = true;
			return status == GJ_OK ? gj_run_work(member->run) : status;
		case GJ_TASK_SEND:
			member->restless = true;
			return gj_member_send_last(member, task->source);
		case GJ_TASK_RECEIVE:
			member->restless = true;
			return gj_member_receive(member, task);
		case GJ_TASK_RESERVE:
			GJ_TRY(gj_run_reserve_exchange(member->run, team->exchange_space));
			member->reserved = true;
			return GJ_OK;
		case GJ_TASK_SOURCE_END:
			status = gj_run_source_end(member->run, task->source);
			member->restless |= !gj_run_has_side(member->run, task->source);
			drop_held(member, task->source, status != GJ_OK);
			if (status != GJ_OK || !gj_run_complete(member->run))
				return status;
			/* whoever finishes the run waits for the device */
			member->restless = false;
			note_complete(member);
			return GJ_OK;
		case GJ_TASK_LOAD:
			return gj_partition_load(team->partition, member);
		case GJ_TASK_PASSES:
			return gj_partition_passes(team->partition, member);
		case GJ_TASK_FLAGS:
			return add_flags(member, task->source);
		case GJ_TASK_ROWS:
			return send_rows(member, task->source);
		case GJ_TASK_GROUPS:
			return gj_team_groups_join(team->groups[task->source], member);
		default:
			GJ_TRY(gj_member_end_reading(member));
			GJ_TRY(gj_member_finish_run(member, counted_sources(member)));
			if (member->hands_over)
				gj_member_sorted_ended(member);
			GJ_TRY(gj_member_keep_exchanged(member));
			member->restless = false;
			if (member->keeps_groups && team->exchange_step >= 0)
				GJ_TRY(gj_member_await_read(member));
			/* others do without its memory: the result need not wait for that */
			return member->keeps_groups ? gj_member_close_run(member) : GJ_OK;
	}
}

/* Notes a failure; all end.  The lock is held. */
static void
fail(GjTeam *team, GjStatus status)
{
	if (team->status == GJ_OK || status == GJ_DEVICE_LOST)
		team->status = status;
	__atomic_store_n(&team->stop, 1, __ATOMIC_RELAXED);
	gj_team_grant(team);
	/* and who waits for a parcel */
	gj_team_tell(team);
}

void
gj_team_await(GjTeam *team)
{
	uint32_t	seen = team->told;

	if (!__atomic_load_n(&team->loads, __ATOMIC_RELAXED))
	{
		pthread_mutex_unlock(&team->lock);
		gj_spin_while(&team->told, seen, GJ_TEAM_SPIN_US);
		pthread_mutex_lock(&team->lock);
	}
	if (team->told == seen)
		pthread_cond_wait(&team->work, &team->lock);
}

void
gj_member_work(GjMember *member)
{
	GjTeam    *team = member->team;

	pthread_mutex_lock(&team->lock);
	while (!team->closing)
	{
		GjTask	   *task = NULL;
		GjStatus	status = GJ_CANCELLED;
		uint32_t	seen = team->told;
		bool		more = false;
		bool		awaits = false;
		bool		ends;

		if (team->status == GJ_OK)
		{
			task = gj_member_take_parcel(member);
			awaits = !task && gj_member_awaits_parcels(member);
			if (!task && !awaits)
				task = gj_take_task(&member->own);
			if (!task)
				task = gj_take_task(&team->outer);
		}
		ends = task && task->kind == GJ_TASK_FINISH;
		if (!task && (team->status != GJ_OK || !has_more(member, awaits)))
		{
			gj_team_await(team);
			continue;
		}
		team->nidle--;
		pthread_mutex_unlock(&team->lock);
		if (!stopped(team))
			status = gj_member_error(member, task ? do_task(member, task) :
									 do_more(member, awaits, seen, &more));
		/* others may wait for their parcels */
		if (task && status == GJ_OK && exchanges(member))
			status = gj_member_error(member, gj_run_settle(member->run, false));
		member->restless |= more;
		if (task && task->shared && status == GJ_OK)
			gj_put_task(&member->held, task);
		else
			gj_team_free_task(team, task);
		pthread_mutex_lock(&team->lock);
		if (status != GJ_OK)
			fail(team, status);
		team->nidle++;
		/*
		 * The session's thread waits for nothing less; what it is asked for wakes it as well.  But
		 * when one run has ended others soon will: it is awake by then.
		 */
		if (team->nidle == team->nmembers || team->status != GJ_OK || ends)
			gj_team_wake(team);
	}
	pthread_mutex_unlock(&team->lock);
	gj_run_stop_reading(member->run);
	/* all at a time; but parcels that nobody took are of runs that are still open */
	if ((team->exchange_step < 0 || team->finished) &&
		gj_member_close_run(member) == GJ_DEVICE_LOST)
		member->lost = true;
}
