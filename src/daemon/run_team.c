/*
 * run_team.c
 *	  A run of a program on several devices, as the session's thread sees it; see
 *	  run_team.h.  What the devices' threads do is in run_member.c.
 *
 * Tasks for every device (inner chunks, ends) are in its own list, outer chunks in one that
 * all take from.
 */
#define _GNU_SOURCE
#include "run.h"
#include "run_team_state.h"
#include "spin.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Outer rows that make another device worth its own copy of the inner sides. */
#define GJ_ROWS_A_DEVICE	(UINT64_C(256) * 1024 * 1024)

/* Of a device's memory, what a run may need to work in, if it is short. */
#define GJ_WORKING_SHARE	4

/* The same of pairs of sets, of which all devices have to build an index. */
#define GJ_PAIRS_A_DEVICE	(UINT64_C(4) << 30)

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
	pthread_cond_broadcast(&team->granted);
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

bool
gj_team_idle(GjTeam *team)
{
	bool		idle;

	if (team->direct)
		return true;
	pthread_mutex_lock(&team->lock);
	idle = team->nidle == team->nmembers && !team->outer.first;
	for (uint32_t i = 0; i < team->nmembers; i++)
		idle &= !team->members[i].own.first && !team->members[i].inbox.first;
	pthread_mutex_unlock(&team->lock);
	return idle;
}

/*
 * Waits until a member has woken the session's thread, with `look` at first without sleeping.  False:
 * none has for a while.
 */
static bool
await_members(GjTeam *team, uint32_t seen, bool look)
{
	struct pollfd fd = {.fd = team->wake_fd,.events = POLLIN};

	if (look && !team->loads)
		gj_spin_while(&team->woken, seen, GJ_TEAM_SPIN_US);
	if (__atomic_load_n(&team->woken, __ATOMIC_ACQUIRE) == seen)
		poll(&fd, 1, GJ_TEAM_POLL_MS);
	return __atomic_load_n(&team->woken, __ATOMIC_ACQUIRE) != seen;
}

GjStatus
gj_team_drain(GjTeam *team)
{
	bool		look = true;

	for (;;)
	{
		uint32_t	seen = __atomic_load_n(&team->woken, __ATOMIC_ACQUIRE);
		bool		idle = gj_team_idle(team);

		GJ_TRY(gj_team_serve(team));
		if (idle)
			return GJ_OK;
		if (team->host->stop(team->host->arg))
			return GJ_CANCELLED;
		look = await_members(team, seen, look);
	}
}

/* Makes a task; the lock is not held. */
static GjTask *
make_task(GjTaskKind kind, uint32_t source)
{
	GjTask	   *task = calloc(1, sizeof(GjTask));

	if (task)
	{
		task->kind = kind;
		task->source = source;
	}
	return task;
}

void
gj_team_post(GjTeam *team, GjTaskList *list, GjTask *task)
{
	pthread_mutex_lock(&team->lock);
	gj_put_task(list, task);
	gj_team_tell(team);
	pthread_mutex_unlock(&team->lock);
}

/* A task for each member; nobody waits for it. */
static GjStatus
post_for_all(GjTeam *team, GjTaskKind kind, uint32_t source)
{
	GjTask	   *tasks[GJ_MAX_RUN_DEVICES];
	bool		made = true;

	for (uint32_t i = 0; i < team->nmembers; i++)
	{
		tasks[i] = make_task(kind, source);
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
gj_team_for_all(GjTeam *team, GjTaskKind kind, uint32_t source)
{
	GJ_TRY(post_for_all(team, kind, source));
	return gj_team_drain(team);
}

/*
 * True if all that was posted comes before what is posted next: members do their own tasks in order.
 * Outer chunks are anybody's, and parcels go ahead.
 */
static bool
in_order(const GjTeam *team)
{
	return !team->loads && team->exchange_step < 0 && !team->partition;
}

/* True if chunks of the source go to all members. */
static bool
is_for_all(const GjTeam *team, uint32_t source)
{
	return (source > 0 || team->program->kind == GJ_PROGRAM_SETS) && !gj_exchange_has(team, source);
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
		return gj_run_ask(team->members[0].run, memory);
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
	if (team->direct)
		return gj_run_source_end(team->members[0].run, source);
	if (source >= team->program->nsources || (team->ended >> source & 1) ||
		(source == 0 && !inner_ended(team)))
		return gj_team_fail(team, GJ_BAD_PROGRAM, "a source ends too early or twice");
	team->ended |= 1u << source;
	/* what fails is told later; the result is waited for at the end */
	if (in_order(team) && source > 0)
		return post_for_all(team, GJ_TASK_SOURCE_END, source);
	if (in_order(team) && !makes_rows(team->program))
	{
		GJ_TRY(post_for_all(team, GJ_TASK_SOURCE_END, source));
		/* nothing more is needed of the backend: members finish as soon as they can */
		if (team->ended == (1u << team->program->nsources) - 1)
			__atomic_store_n(&team->complete, true, __ATOMIC_RELAXED);
		return GJ_OK;
	}
	GJ_TRY(read_waiting(team, 0));
	if (!team->partition)
	{
		GJ_TRY(gj_team_drain(team));
		if (gj_exchange_has(team, source))
			GJ_TRY(gj_exchange_end(team, source));
		if (source == 0)
			GJ_TRY(send_inner_rows(team));
		GJ_TRY(gj_team_for_all(team, GJ_TASK_SOURCE_END, source));
		return source > 0 && team->exchange_step >= 0 && inner_ended(team) ?
			gj_exchange_start(team) : GJ_OK;
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
		gj_partition_stats(team->partition, stats);
	for (uint32_t i = 0; i < 2; i++)
		if (team->groups[i] && team->spill)
			gj_team_groups_stats(team->groups[i], stats);
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
	if (!team->partition || gj_partition_is_whole(team->partition))
		GJ_TRY(gj_team_for_all(team, GJ_TASK_FINISH, 0));
	for (uint32_t i = 0; i < 2; i++)
	{
		if (!team->groups[i])
			continue;
		GJ_TRY(gj_team_groups_share(team->groups[i]));
		GJ_TRY(gj_team_for_all(team, GJ_TASK_GROUPS, i));
	}
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

const char *
gj_team_error(GjTeam *team)
{
	/* nothing works any more, or it is the first failure's */
	return team->direct ? gj_run_error(team->members[0].run) : team->error.text;
}

GjDeviceEntry *
gj_team_entry(const GjTeam *team)
{
	return team->members[0].entry;
}

/* ---- open and close */

/* True if one run has to have all rows: nobody puts sorted ones together. */
static bool
sorts_rows(const GjProgram *p)
{
	return p->output == GJ_OUTPUT_ROWS && gj_program_is_sorted(p);
}

/* True if results of parts of the outer rows can be put together. */
static bool
can_put_together(const GjProgram *p)
{
	return p->kind == GJ_PROGRAM_JOIN && p->output != GJ_OUTPUT_COUNT && !sorts_rows(p);
}

/*
 * True if devices that have all sets each can share the tiles, in any order.  The best k, and
 * distinct intersections, are those of all tiles.
 */
static bool
shares_tiles(const GjProgram *p)
{
	const GjSetSpec *sets = gj_program_array(p, GjSetSpec, sets);

	return p->kind == GJ_PROGRAM_SETS && sets->top_k == 0 && !sets->distinct;
}

/* The devices that the size of the program is worth, if each has all inner rows. */
static uint64_t
worth_devices(const GjProgram *p)
{
	const GjSetSpec *sets = gj_program_array(p, GjSetSpec, sets);

	if (p->kind != GJ_PROGRAM_SETS)
		return 1 + gj_program_array(p, GjSource, sources)[0].nrows_hint / GJ_ROWS_A_DEVICE;
	return 1 + (uint64_t) sets->nleft * (sets->self ? sets->nleft : sets->nright) /
		GJ_PAIRS_A_DEVICE;
}

/* How many devices the run may use. */
static uint32_t
most_devices(const GjProgram *p, const GjTeamOptions *options)
{
	if (!can_put_together(p) && !shares_tiles(p) && p->kind != GJ_PROGRAM_PREWARM)
		return 1;
	return options->max_devices > 0 && options->max_devices < GJ_MAX_RUN_DEVICES ?
		options->max_devices : GJ_MAX_RUN_DEVICES;
}

/* Waits for the first device's lease; the others have room for theirs now or are left out. */
static GjStatus
get_leases(GjTeam *team, GjDeviceEntry **entries, uint32_t n, uint64_t nbytes)
{
	GjMember   *first = &team->members[0];

	GJ_TRY(gj_lease_start(&first->lease, &entries[0]->memory, nbytes,
						  team->options.memory_limit, team->host->stop, team->host->arg));
	first->entry = entries[0];
	team->nmembers = 1;
	for (uint32_t i = 1; i < n; i++)
	{
		GjMember   *member = &team->members[team->nmembers];

		if (!gj_lease_try(&member->lease, &entries[i]->memory, nbytes,
						  team->options.memory_limit))
			continue;
		member->entry = entries[i];
		team->nmembers++;
	}
	return GJ_OK;
}

/* Opens the runs, and threads if there are to be any. */
static GjStatus
start_members(GjTeam *team, GjErrorText *why)
{
	GjStatus	status = GJ_OK;

	if (team->direct)
	{
		team->members[0].run = gj_run_open(team->members[0].entry, team->program,
											&team->members[0].lease, team->host, &status, why);
		return status;
	}
	team->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (team->wake_fd < 0)
		return GJ_OUT_OF_HOST_MEMORY;
	team->nidle = team->nmembers;
	for (uint32_t i = 0; i < team->nmembers && status == GJ_OK; i++)
		if (!gj_member_start(&team->members[i]))
			status = GJ_OUT_OF_HOST_MEMORY;
	/* each opens its own, which takes some tenth of a millisecond on a GPU, while the backend is told */
	if (status == GJ_OK && !team->partition)
		status = team->exchange_step >= 0 ? gj_team_for_all(team, GJ_TASK_OPEN, 0) :
			post_for_all(team, GJ_TASK_OPEN, 0);
	if (status != GJ_OK)
	{
		pthread_mutex_lock(&team->lock);
		*why = team->error;
		pthread_mutex_unlock(&team->lock);
	}
	return status;
}

/* The memory that the run is expected to need on each of n devices with so much. */
static uint64_t
expected_need(const GjTeam *team, uint64_t limit, uint32_t n)
{
	const GjProgram *p = team->program;
	uint64_t	saved = gj_exchange_saves(p, team->exchange_step, n);
	uint64_t	working = gj_program_working_space(p);
	uint64_t	least = working < limit / GJ_WORKING_SHARE ? working : limit / GJ_WORKING_SHARE;

	return p->lease > working + saved ? p->lease - working - saved + least : least;
}

/* True if what the run has to keep on a device is not expected to fit. */
static bool
is_too_large(const GjTeam *team, uint64_t limit, uint32_t n)
{
	return can_put_together(team->program) &&
		(team->program->nsources > 1 || team->program->output == GJ_OUTPUT_GROUPS) &&
		(team->program->spill || expected_need(team, limit, n) > limit);
}

/* Decides between all inner rows on each of n devices, an exchange, and parts. */
static void
choose_way(GjTeam *team, uint64_t limit, uint32_t n)
{
	team->exchange_step = -1;
	team->spill = is_too_large(team, limit, n);
	team->exchange_step = gj_exchange_choose(team, n, team->spill);
	if (team->exchange_step < 0)
		return;
	/* the rest is for what is on its way */
	team->spill = is_too_large(team, limit / 4 * 3, n);
	if (team->spill)
		team->exchange_step = -1;
}

/*
 * How many of n devices the run is worth, and the way: so many as its size asks for, or, where
 * its inner sides do not fit, as many as have room for them together.
 */
static uint32_t
choose_number(GjTeam *team, uint64_t limit, uint32_t n)
{
	const GjTeamOptions *options = &team->options;
	uint64_t	all = worth_devices(team->program);
	uint32_t	worth = all < n ? (uint32_t) all : n;

	/* a cpu that pretends to be several is there for tests */
	if (options->max_devices > 0 || options->kind == GJ_DEVICE_CPU)
		worth = n;
	for (uint32_t m = worth; m <= n; m++)
	{
		choose_way(team, limit, m);
		if (!team->spill)
			return m;
	}
	choose_way(team, limit, worth);
	return worth;
}

/*
 * Runs of members hand their groups over.  Parts of groups and parts of sources get half
 * each of what they may have.
 */
static GjStatus
open_groups(GjTeam *team, GjErrorText *why)
{
	const GjProgram *p = team->program;
	uint32_t	nkeys = gj_group_nkeys(p);

	team->options.spill_memory /= 2;
	if (team->options.temp_limit != UINT64_MAX)
		team->options.temp_limit /= 2;
	team->groups[1] = gj_team_groups_open(team, nkeys, NULL, why);
	if (team->groups[1] && p->distinct_key)
		team->groups[0] = gj_team_groups_open(team, nkeys + 1, team->groups[1], why);
	if (!team->groups[1 - p->distinct_key])
		return why->text[0] ? GJ_TOO_LARGE : GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < team->nmembers; i++)
		team->members[i].keeps_groups = team->groups[1 - p->distinct_key];
	return GJ_OK;
}

static int
compare_entries(const void *a, const void *b)
{
	uint32_t	x = (*(GjDeviceEntry *const *) a)->info.ordinal;
	uint32_t	y = (*(GjDeviceEntry *const *) b)->info.ordinal;

	return (x > y) - (x < y);
}

static GjStatus
open_team(GjTeam *team, GjErrorText *why)
{
	GjDeviceEntry *entries[GJ_MAX_RUN_DEVICES];
	uint32_t	n = gj_devices_choose_some(team->options.kind,
										   most_devices(team->program, &team->options),
										   entries, why);
	uint64_t	nbytes;
	uint64_t	limit;
	GjStatus	status = GJ_OK;

	if (n == 0)
		return GJ_NO_DEVICE;
	if (team->program->spill && sorts_rows(team->program))
	{
		snprintf(why->text, sizeof(why->text), "rows to be sorted have no room on the device");
		return GJ_OUT_OF_MEMORY;
	}
	limit = entries[0]->memory.limit;
	if (team->options.memory_limit != 0 && team->options.memory_limit < limit)
		limit = team->options.memory_limit;
	n = choose_number(team, limit, n);
	/* in the same order in every run: fragments are placed by it */
	qsort(entries, n, sizeof(entries[0]), compare_entries);
	nbytes = team->program->kind == GJ_PROGRAM_JOIN ? expected_need(team, limit, n) :
		team->program->lease;
	/* all have room for the same tiles, or none has */
	team->tile_pairs = GJ_MAX_TUPLES;
	if (n > 1 && shares_tiles(team->program) && nbytes + GJ_LARGE_TILE_SPACE <= limit / 2)
	{
		team->tile_pairs = GJ_SET_MOST_PAIRS;
		nbytes += GJ_LARGE_TILE_SPACE;
	}
	if (team->spill && nbytes > limit)
		nbytes = limit;
	GJ_TRY(get_leases(team, entries, n, nbytes));
	/* other devices are busy */
	if (team->nmembers < n && team->exchange_step >= 0)
		choose_way(team, limit, team->nmembers);
	team->direct = team->nmembers == 1 && !team->spill;
	if (!team->direct && team->program->output == GJ_OUTPUT_GROUPS)
		GJ_TRY(open_groups(team, why));
	if (team->spill && team->program->nsources > 1)
		team->partition = gj_partition_open(team, &status, why);
	return status == GJ_OK ? start_members(team, why) : status;
}

GjTeam *
gj_team_open(const GjProgram *program, const GjTeamOptions *options, const GjRunHost *host,
			  GjStatus *status, GjErrorText *why)
{
	GjTeam    *team = calloc(1, sizeof(GjTeam));
	GjErrorText lost = {""};

	why->text[0] = '\0';
	*status = GJ_OUT_OF_HOST_MEMORY;
	if (!team)
		return NULL;
	team->program = program;
	team->options = *options;
	team->host = host;
	team->wake_fd = -1;
	team->exchange_step = -1;
	pthread_mutex_init(&team->lock, NULL);
	pthread_cond_init(&team->work, NULL);
	pthread_cond_init(&team->granted, NULL);
	gj_start_list(&team->outer);
	for (uint32_t i = 0; i < GJ_MAX_RUN_DEVICES; i++)
	{
		team->members[i].team = team;
		gj_start_list(&team->members[i].own);
		gj_start_list(&team->members[i].inbox);
		gj_start_list(&team->members[i].held);
	}
	*status = open_team(team, why);
	if (*status == GJ_OK)
		return team;
	if (gj_team_close(team, &lost) == GJ_DEVICE_LOST)
	{
		*status = GJ_DEVICE_LOST;
		*why = lost;
	}
	return NULL;
}

/* Ends the threads. */
static void
stop_members(GjTeam *team)
{
	pthread_mutex_lock(&team->lock);
	team->closing = true;
	__atomic_store_n(&team->stop, 1, __ATOMIC_RELAXED);
	gj_team_tell(team);
	pthread_cond_broadcast(&team->granted);
	pthread_mutex_unlock(&team->lock);
	for (uint32_t i = 0; i < team->nmembers; i++)
		if (team->members[i].started)
			gj_member_await_end(&team->members[i]);
}

static void
free_tasks(GjTeam *team, GjTaskList *list)
{
	GjTask	   *task;

	while ((task = gj_take_task(list)))
		gj_team_free_task(team, task);
}

/* The backend does not want them any more. */
static void
free_uses(GjSlotUse **list)
{
	while (*list)
	{
		GjSlotUse  *next = (*list)->next;

		free(*list);
		*list = next;
	}
}

GjStatus
gj_team_close(GjTeam *team, GjErrorText *why)
{
	GjStatus	status = GJ_OK;

	stop_members(team);
	/* what a member found that nobody has asked for since */
	if (team->status == GJ_DEVICE_LOST)
	{
		status = GJ_DEVICE_LOST;
		*why = team->error;
	}
	free_tasks(team, &team->outer);
	free_uses(&team->used);
	free_uses(&team->freed);
	free(team->flags);
	/* parcels are of runs that are still open */
	for (uint32_t i = 0; i < team->nmembers; i++)
	{
		free_tasks(team, &team->members[i].own);
		free_tasks(team, &team->members[i].inbox);
		free_tasks(team, &team->members[i].held);
	}
	for (uint32_t i = 0; i < team->nmembers; i++)
	{
		GjMember   *member = &team->members[i];

		/* the thread has closed it, unless there were parcels */
		if (gj_member_close_run(member) == GJ_DEVICE_LOST || member->lost)
		{
			status = GJ_DEVICE_LOST;
			*why = team->error;
		}
	}
	if (team->partition)
		gj_partition_close(team->partition);
	for (uint32_t i = 0; i < 2; i++)
		if (team->groups[i])
			gj_team_groups_close(team->groups[i]);
	for (uint32_t i = 0; i < team->nmembers; i++)
	{
		GjMember   *member = &team->members[i];

		if (member->staging)
			gj_segment_put(member->staging);
		if (member->part)
			gj_segment_put(member->part);
		gj_lease_end(&member->lease);
		free(member->program);
	}
	if (team->wake_fd >= 0)
		close(team->wake_fd);
	pthread_cond_destroy(&team->work);
	pthread_cond_destroy(&team->granted);
	pthread_mutex_destroy(&team->lock);
	free(team);
	return status;
}
