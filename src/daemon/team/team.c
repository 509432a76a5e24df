/*
 * team.c
 *	  A run of a program on several devices, as the session's thread sees it; see
 *	  team/team.h.  What the devices' threads do is in team/member.c.
 *
 * Tasks for every device (inner chunks, ends) are in its own list, outer chunks in one that
 * all take from.
 */
#define _GNU_SOURCE
#include "daemon/run/state.h"
#include "state.h"
#include "daemon/base/base.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Chunks to be kept on the host that keep the cpu's threads busy. */
#define GJ_MANY_CHUNKS	32

/* How often the session's thread looks whether it is to stop, while it waits for members. */
#define GJ_TEAM_POLL_MS	5

/* ---- the session's thread */

int
gj_team_fd(const GjTeam *team)
{
	return team->wake_fd;
}

/* Gives slots of the load ring back that all have read. */
static GjStatus
free_slots(GjTeam *team)
{
	GjSlotUse  *list;
	GjStatus	status = GJ_OK;

	pthread_mutex_lock(&team->lock);
	list = team->freed;
	team->freed = NULL;
	pthread_mutex_unlock(&team->lock);
	while (list)
	{
		GjSlotUse  *next = list->next;

		if (status == GJ_OK)
			status = team->host->slot_free(team->host->arg, list->slot);
		free(list);
		list = next;
	}
	return status;
}

/*
 * Grants the wish of the member that has the output ring.  The host may receive messages
 * meanwhile and call gj_team_serve again.
 */
static GjStatus
grant_wish(GjTeam *team)
{
	GjWish		what;
	uint32_t	nrows;
	uint8_t    *slot = NULL;
	GjStatus	status;

	pthread_mutex_lock(&team->lock);
	what = team->wish;
	nrows = team->wish_rows;
	pthread_mutex_unlock(&team->lock);
	if (what == GJ_WISH_NOTHING || team->serving)
		return GJ_OK;
	team->serving = true;
	if (what == GJ_WISH_SLOT)
		status = team->host->output_slot(team->host->arg, &slot);
	else
		status = team->host->send_batch(team->host->arg, nrows);
	team->serving = false;
	GJ_TRY(status);
	pthread_mutex_lock(&team->lock);
	team->output_slot = slot;
	if (what == GJ_WISH_SEND)
		team->sent = true;
	team->wish = GJ_WISH_NOTHING;
	gj_team_grant(team);
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}

GjStatus
gj_team_serve(GjTeam *team)
{
	uint64_t	count;
	GjStatus	status;

	if (team->direct)
		return GJ_OK;
	/* before looking, so that what comes afterwards wakes us again */
	while (read(team->wake_fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	GJ_TRY(free_slots(team));
	GJ_TRY(grant_wish(team));
	pthread_mutex_lock(&team->lock);
	status = team->status;
	pthread_mutex_unlock(&team->lock);
	return status;
}

/* True if there is something that no member has begun.  The lock is held. */
static bool
has_tasks(const GjTeam *team)
{
	bool		any = team->outer.first != NULL;

	for (uint32_t i = 0; i < team->nmembers; i++)
		any |= team->members[i].own.first || team->members[i].inbox.first;
	return any;
}

/* True if no member has anything to do. */
static bool
is_idle(GjTeam *team)
{
	bool		idle;

	pthread_mutex_lock(&team->lock);
	idle = team->nidle == team->nmembers && !has_tasks(team);
	pthread_mutex_unlock(&team->lock);
	return idle;
}

bool
gj_team_await_members(GjTeam *team, uint32_t seen, bool look)
{
	struct pollfd fd = {.fd = team->wake_fd,.events = POLLIN};

	if (look && !team->loads)
		gj_spin_while(&team->woken, seen, GJ_TEAM_SPIN_US);
	if (__atomic_load_n(&team->woken, __ATOMIC_ACQUIRE) == seen)
		poll(&fd, 1, GJ_TEAM_POLL_MS);
	return __atomic_load_n(&team->woken, __ATOMIC_ACQUIRE) != seen;
}

bool
gj_team_rests(GjTeam *team)
{
	uint32_t	nresting;
	bool		rests;

	if (team->direct)
		return true;
	pthread_mutex_lock(&team->lock);
	nresting = team->nidle;
	for (uint32_t i = 0; i < team->nmembers; i++)
		nresting += team->members[i].waits;
	rests = nresting == team->nmembers && !has_tasks(team);
	pthread_mutex_unlock(&team->lock);
	return rests;
}

GjStatus
gj_team_drain(GjTeam *team)
{
	bool		look = true;

	for (;;)
	{
		uint32_t	seen = __atomic_load_n(&team->woken, __ATOMIC_ACQUIRE);
		bool		idle = team->direct || is_idle(team);

		GJ_TRY(gj_team_serve(team));
		if (idle)
			return GJ_OK;
		if (team->host->stop(team->host->arg))
			return GJ_CANCELLED;
		look = gj_team_await_members(team, seen, look);
	}
}

void
gj_team_post(GjTeam *team, GjTaskList *list, GjTask *task)
{
	pthread_mutex_lock(&team->lock);
	gj_put_task(list, task);
	gj_team_tell(team);
	pthread_mutex_unlock(&team->lock);
}

GjStatus
gj_team_post_copies(GjTeam *team, const GjTask *task)
{
	GjTask	   *tasks[GJ_MAX_RUN_DEVICES];
	bool		made = true;

	for (uint32_t i = 0; i < team->nmembers; i++)
	{
		tasks[i] = malloc(sizeof(GjTask));
		if (tasks[i])
			*tasks[i] = *task;
		made &= tasks[i] != NULL;
	}
	if (!made)
	{
		for (uint32_t i = 0; i < team->nmembers; i++)
			free(tasks[i]);
		return GJ_OUT_OF_HOST_MEMORY;
	}
	/* all are woken at once */
	pthread_mutex_lock(&team->lock);
	for (uint32_t i = 0; i < team->nmembers; i++)
		gj_put_task(&team->members[i].own, tasks[i]);
	gj_team_tell(team);
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}

GjStatus
gj_team_post_for_all(GjTeam *team, GjTaskKind kind, uint32_t source)
{
	return gj_team_post_copies(team, &(GjTask) {.kind = kind,.source = source});
}

GjStatus
gj_team_for_all(GjTeam *team, GjTaskKind kind, uint32_t source)
{
	GJ_TRY(gj_team_post_for_all(team, kind, source));
	return gj_team_drain(team);
}

/*
 * True if all that was posted comes before what is posted next: members do their own tasks in order.
 * Outer chunks are anybody's.
 */
static bool
in_order(const GjTeam *team)
{
	return !team->loads && !team->partition;
}

/* True if chunks of the source go to all members. */
static bool
is_for_all(const GjTeam *team, uint32_t source)
{
	return (source > 0 || team->program->kind == GJ_PROGRAM_SETS) && !gj_exchange_has(team, source);
}

bool
gj_team_has_passes(const GjTeam *team)
{
	return team->partition && !gj_partition_is_whole(team->partition);
}

/* A chunk for all members, or for one. */
static GjStatus
post_chunk(GjTeam *team, const GjTask *chunk)
{
	bool		all = is_for_all(team, chunk->source);
	uint32_t	n = all ? team->nmembers : 1;
	int			keeper = gj_team_place(team, chunk->source, chunk->memory);
	GjSlotUse  *use = calloc(1, sizeof(GjSlotUse));

	if (!use)
		return GJ_OUT_OF_HOST_MEMORY;
	use->slot = chunk->slot;
	use->nusers = n;
	pthread_mutex_lock(&team->lock);
	use->next = team->used;
	team->used = use;
	pthread_mutex_unlock(&team->lock);
	for (uint32_t i = 0; i < n; i++)
	{
		GjTask	   *task = malloc(sizeof(GjTask));

		if (!task)
			return GJ_OUT_OF_HOST_MEMORY;
		*task = *chunk;
		task->keep = all ? keeper == (int) i : keeper >= 0;
		gj_team_post(team, all ? &team->members[i].own :
					 keeper >= 0 ? &team->members[keeper].own : &team->outer, task);
	}
	return gj_team_serve(team);
}

GjStatus
gj_team_fail(GjTeam *team, GjStatus status, const char *text)
{
	pthread_mutex_lock(&team->lock);
	snprintf(team->error.text, sizeof(team->error.text), "%s", text);
	pthread_mutex_unlock(&team->lock);
	return status;
}

GjStatus
gj_team_store_fails(GjTeam *team, GjStatus status)
{
	pthread_mutex_lock(&team->lock);
	if (team->error.text[0] == '\0')
		team->error = team->store.error;
	pthread_mutex_unlock(&team->lock);
	return status;
}

/* True if all inner sources have ended. */
static bool
inner_ended(const GjTeam *team)
{
	return team->program->kind != GJ_PROGRAM_JOIN ||
		(team->ended | 1) == (1u << team->program->nsources) - 1;
}

static double
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec * 1e3 + (double) t.tv_nsec * 1e-6;
}

/* Something has come to work on. */
static void
note_start(GjTeam *team)
{
	if (team->started_ms == 0)
		team->started_ms = now_ms();
}

GjStatus
gj_team_chunk(GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory, uint32_t slot)
{
	const GjTask chunk = {.kind = GJ_TASK_CHUNK,.source = source,.nrows = nrows,.memory = memory,
	.slot = slot};

	note_start(team);
	if (team->direct)
	{
		team->members[0].nchunks += source == 0;
		return gj_run_chunk(team->members[0].run, source, nrows, memory, slot);
	}
	if (source >= team->program->nsources || (team->ended >> source & 1) ||
		(source == 0 && !inner_ended(team)))
		return gj_team_fail(team, GJ_BAD_PROGRAM, "a chunk of a source comes too early or too late");
	if (team->host->stop(team->host->arg))
		return GJ_CANCELLED;
	__atomic_store_n(&team->loads, true, __ATOMIC_RELAXED);
	GJ_TRY(gj_exchange_rows(team, source, true));
	if (team->partition && (source > 0 || !gj_partition_is_whole(team->partition)))
		return gj_partition_chunk(team->partition, source, nrows, memory, slot);
	return post_chunk(team, &chunk);
}

/* Reads the chunks that wait for that, if they are at least so many. */
static GjStatus
read_waiting(GjTeam *team, uint32_t least)
{
	return team->partition ? gj_partition_flush(team->partition, least) : GJ_OK;
}

GjStatus
gj_team_ask(GjTeam *team, const uint8_t *memory)
{
	const GjRunHost *host = team->host;
	GjAnswered	nothing = {0, 0};
	GjAsk		ask;
	uint8_t    *out;
	uint32_t	nbytes;

	if (team->direct)
		return gj_team_ask_runs(team, &team->members[0].run, 1, memory);
	if (!team->partition)
		return gj_team_ask_all(team, memory);
	memcpy(&ask, memory, sizeof(ask));
	nothing.next = ask.nfragments;
	GJ_TRY(read_waiting(team, 0));
	GJ_TRY(gj_team_drain(team));
	GJ_TRY(host->answer_space(host->arg, &out, &nbytes));
	memcpy(out, &nothing, sizeof(nothing));
	host->answered(host->arg, sizeof(nothing));
	return GJ_OK;
}

GjStatus
gj_team_use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses)
{
	note_start(team);
	if (team->direct)
	{
		team->members[0].nchunks += source == 0 ? n : 0;
		return gj_run_use(team->members[0].run, source, n, uses);
	}
	if (source >= team->program->nsources || (source == 0 && !inner_ended(team)))
		return gj_team_fail(team, GJ_BAD_PROGRAM, "use of a fragment of a source whose time has not come");
	GJ_TRY(gj_exchange_rows(team, source, false));
	return gj_team_use_all(team, source, n, uses);
}

/* True if inner rows of a step come out by themselves when the outer source has ended. */
static bool
makes_rows(const GjProgram *p)
{
	const GjStep *steps = gj_program_array(p, GjStep, steps);
	bool		makes = false;

	for (uint32_t i = 0; i < p->nsteps; i++)
		makes |= gj_step_makes_rows(&steps[i]);
	return makes;
}

/*
 * The outer source has ended for all members, which have all inner rows each (but those that
 * were exchanged): those that come out by themselves, for one step after the other, because
 * they pass the later steps.
 */
static GjStatus
send_inner_rows(GjTeam *team)
{
	const GjStep *steps = gj_program_array(team->program, GjStep, steps);

	for (uint32_t i = 0; i < team->program->nsteps && team->nmembers > 1; i++)
	{
		if (!gj_step_makes_rows(&steps[i]))
			continue;
		if ((int) i != team->exchange_step)
			GJ_TRY(gj_team_for_all(team, GJ_TASK_FLAGS, i));
		GJ_TRY(gj_team_for_all(team, GJ_TASK_ROWS, i));
		free(team->flags);
		team->flags = NULL;
	}
	return GJ_OK;
}

GjStatus
gj_team_source_end(GjTeam *team, uint32_t source)
{
	bool		exchanges = team->exchange_step >= 0;

	if (team->direct)
		return gj_run_source_end(team->members[0].run, source);
	if (source >= team->program->nsources || (team->ended >> source & 1) ||
		(source == 0 && !inner_ended(team)))
		return gj_team_fail(team, GJ_BAD_PROGRAM, "a source ends too early or twice");
	team->ended |= 1u << source;
	/* what fails is told later; the result is waited for at the end */
	if (in_order(team) && source > 0 && !exchanges)
	{
		GJ_TRY(gj_team_post_for_all(team, GJ_TASK_SOURCE_END, source));
		/* no rows may be returned before all have the memory that they need */
		return team->program->output == GJ_OUTPUT_ROWS && inner_ended(team) ? gj_team_drain(team) : GJ_OK;
	}
	if (in_order(team) && (source == 0 || !exchanges) && !makes_rows(team->program))
	{
		GJ_TRY(exchanges ? gj_exchange_end_outer(team) :
			   gj_team_post_for_all(team, GJ_TASK_SOURCE_END, source));
		/* nothing more is needed of the backend: members finish as soon as they can */
		if (team->ended == (1u << team->program->nsources) - 1)
			__atomic_store_n(&team->complete, true, __ATOMIC_RELAXED);
		return GJ_OK;
	}
	GJ_TRY(read_waiting(team, 0));
	if (!team->partition)
	{
		bool		kept = false;

		GJ_TRY(gj_team_drain(team));
		if (gj_exchange_has(team, source))
			GJ_TRY(source > 0 ? gj_exchange_end(team, source, &kept) : gj_exchange_send_outer(team));
		if (source == 0)
			GJ_TRY(send_inner_rows(team));
		GJ_TRY(gj_team_post_for_all(team, GJ_TASK_SOURCE_END, source));
		/* nothing is built of a side that was kept, and no memory taken for it */
		return kept ? GJ_OK : gj_team_drain(team);
	}
	if (source > 0)
		return inner_ended(team) ? gj_partition_inner_end(team->partition) : GJ_OK;
	if (gj_partition_is_whole(team->partition))
	{
		GJ_TRY(gj_team_drain(team));
		GJ_TRY(send_inner_rows(team));
		return gj_team_for_all(team, GJ_TASK_SOURCE_END, source);
	}
	GJ_TRY(gj_partition_run(team->partition));
	__atomic_store_n(&team->complete, true, __ATOMIC_RELAXED);
	return GJ_OK;
}

bool
gj_team_complete(const GjTeam *team)
{
	return team->direct ? gj_run_complete(team->members[0].run) :
		__atomic_load_n(&team->complete, __ATOMIC_RELAXED);
}

/* The merged states go out last. */
static GjStatus
send_states(GjTeam *team)
{
	uint32_t	nbytes = team->program->naggregates * sizeof(GjAggState);
	uint8_t    *slot;

	GJ_TRY(team->host->output_slot(team->host->arg, &slot));
	memcpy(slot, team->states, nbytes);
	team->stats.rows_out = 1;
	return team->host->send_batch(team->host->arg, 1);
}

/* Which devices did what. */
static void
device_stats(GjTeam *team, GjRunStats *stats)
{
	stats->ndevices = team->nmembers;
	stats->npasses = 1;
	stats->exchange_step = (uint32_t) (team->exchange_step + 1);
	stats->elapsed_ms = team->started_ms > 0 ? now_ms() - team->started_ms : 0;
	for (uint32_t i = 0; i < team->nmembers; i++)
	{
		GjMember   *member = &team->members[i];

		if (team->direct)
		{
			member->outer_rows = stats->source[0].rows_in;
			gj_member_count(member, stats);
		}
		else
			stats->memory_peak += member->lease.peak;
		stats->device[i] = (GjDeviceStats) {
			.ordinal = member->entry->info.ordinal,.rows = member->outer_rows,
			.chunks = member->nchunks,.busy_ms = member->totals.busy_ms,
			.exchanged = member->exchanged
		};
		member->totals.runs = 1;
		gj_devices_count_run(member->entry, &member->totals);
	}
	if (team->partition)
		stats->npasses = gj_partition_npasses(team->partition);
	if (team->sorted)
		gj_team_sorted_stats(team->sorted, stats);
	/* groups of several devices meet on the host, whether there is room on these or not */
	if (team->has_store && (team->spill || team->store.file_used > 0 ||
							team->program->output == GJ_OUTPUT_ROWS))
	{
		stats->spilled_memory = team->store.memory_peak;
		stats->spilled_disk = team->store.file_used;
	}
}

GjStatus
gj_team_finish(GjTeam *team, GjRunStats *stats)
{
	if (team->direct)
	{
		GJ_TRY(gj_run_finish(team->members[0].run, stats));
		device_stats(team, stats);
		return GJ_OK;
	}
	if (!in_order(team))
		GJ_TRY(gj_team_drain(team));
	if (!gj_team_has_passes(team))
		GJ_TRY(gj_team_post_for_all(team, GJ_TASK_FINISH, 0));
	if (team->sorted && team->program->output == GJ_OUTPUT_ROWS)
		GJ_TRY(gj_team_sorted_send(team->sorted));
	GJ_TRY(gj_team_drain(team));
	team->finished = true;
	for (uint32_t i = 0; i < 2; i++)
	{
		if (!team->groups[i])
			continue;
		GJ_TRY(gj_team_groups_share(team->groups[i]));
		GJ_TRY(gj_team_for_all(team, GJ_TASK_GROUPS, i));
	}
	if (team->sorted && team->program->output == GJ_OUTPUT_GROUPS)
		GJ_TRY(gj_team_sorted_send(team->sorted));
	if (team->program->output == GJ_OUTPUT_AGGREGATES)
		GJ_TRY(send_states(team));
	*stats = team->stats;
	device_stats(team, stats);
	return GJ_OK;
}

bool
gj_team_accepts(const GjTeam *team, uint32_t source)
{
	if (team->direct)
		return gj_run_accepts(team->members[0].run, source);
	return source != 0 || inner_ended(team);
}

GjStatus
gj_team_work(GjTeam *team)
{
	if (team->direct)
		return gj_run_work(team->members[0].run);
	/* more may have come by now: all are read when the run is flushed */
	GJ_TRY(read_waiting(team, GJ_MANY_CHUNKS));
	return gj_team_serve(team);
}

GjStatus
gj_team_flush(GjTeam *team)
{
	if (team->direct)
		return gj_run_flush(team->members[0].run);
	GJ_TRY(read_waiting(team, 0));
	return gj_team_serve(team);
}

GjStatus
gj_team_wait(GjTeam *team)
{
	return team->direct ? gj_run_wait(team->members[0].run) : gj_team_serve(team);
}

void
gj_team_error(GjTeam *team, GjErrorText *why)
{
	if (team->direct)
	{
		snprintf(why->text, sizeof(why->text), "%s", gj_run_error(team->members[0].run));
		return;
	}
	/* another member may fail as well */
	pthread_mutex_lock(&team->lock);
	*why = team->error;
	pthread_mutex_unlock(&team->lock);
}

GjDeviceEntry *
gj_team_entry(const GjTeam *team)
{
	return team->members[0].entry;
}
