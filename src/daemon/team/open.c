/*
 * open.c
 *	  Opens and closes teams: how many devices a run is worth, whether its inner sides fit them,
 *	  are exchanged or kept on the host, and what the devices' threads need.
 */
#define _GNU_SOURCE
#include "daemon/run/state.h"
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Outer rows that make another device worth its own copy of the inner sides. */
#define GJ_ROWS_A_DEVICE	(UINT64_C(256) * 1024 * 1024)

/* The same of pairs of sets, of which all devices have to build an index. */
#define GJ_PAIRS_A_DEVICE	(UINT64_C(4) << 30)

/* Of a device's memory, what a run may need to work in, if it is short. */
#define GJ_WORKING_SHARE	4

/* True if rows are returned in an order. */
static bool
sorts_rows(const GjProgram *p)
{
	return p->output == GJ_OUTPUT_ROWS && gj_program_is_sorted(p);
}

/* True if results of parts of the outer rows can be put together. */
static bool
can_put_together(const GjProgram *p)
{
	return p->kind == GJ_PROGRAM_JOIN && p->output != GJ_OUTPUT_COUNT;
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
											&team->members[0].lease, team->host, &gj_intake,
											&status, why);
		return status;
	}
	team->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (team->wake_fd < 0)
		return GJ_OUT_OF_HOST_MEMORY;
	team->nidle = team->nmembers;
	for (uint32_t i = 0; i < team->nmembers && status == GJ_OK; i++)
	{
		if (!gj_member_start(&team->members[i]))
			status = GJ_OUT_OF_HOST_MEMORY;
		else if (!team->partition)
			status = team->exchange_step >= 0 ? gj_exchange_prepare(&team->members[i]) :
				gj_member_prepare_run(&team->members[i], team->program);
	}
	/* each starts its own, while the backend is told, and asks what is resident */
	if (status == GJ_OK && !team->partition)
		status = gj_team_post_for_all(team, GJ_TASK_OPEN, 0);
	if (status != GJ_OK)
	{
		pthread_mutex_lock(&team->lock);
		*why = team->error;
		pthread_mutex_unlock(&team->lock);
	}
	return status;
}

/* The memory that the run is expected to need on each of n devices with so much, `saved` not counted. */
static uint64_t
expected_need(const GjTeam *team, uint64_t limit, uint64_t saved)
{
	const GjProgram *p = team->program;
	uint64_t	working = gj_program_working_space(p);
	uint64_t	least = working < limit / GJ_WORKING_SHARE ? working : limit / GJ_WORKING_SHARE;

	return p->lease > working + saved ? p->lease - working - saved + least : least;
}

/* The same where each has all inner rows, or they are exchanged. */
static uint64_t
need_of_devices(const GjTeam *team, uint64_t limit, uint32_t n)
{
	return expected_need(team, limit, gj_exchange_saves(team->program, team->exchange_step, n));
}

/* True if what the run has to keep on a device is not expected to fit. */
static bool
is_too_large(const GjTeam *team, uint64_t limit, uint32_t n)
{
	return can_put_together(team->program) &&
		(team->program->nsources > 1 || team->program->output == GJ_OUTPUT_GROUPS) &&
		(team->program->spill || need_of_devices(team, limit, n) > limit);
}

/*
 * Device memory that the run need not ask for: what others keep of an exchange, or inner sides that the
 * same program has used last and all devices still have.  Else these would go to make room for what is
 * not built.  If they are not what the run needs after all, the lease grows.
 */
static uint64_t
saved_need(const GjTeam *team, GjDeviceEntry **entries, uint32_t n)
{
	const GjProgram *p = team->program;
	uint64_t	others = gj_exchange_saves(p, team->exchange_step, n);
	uint64_t	nbytes = others;
	uint64_t	program;
	uint32_t	sources = UINT32_MAX;

	if (team->spill)
		return nbytes;
	program = gj_program_identity(p);
	for (uint32_t i = 0; i < n; i++)
		sources &= gj_sides_of(&entries[i]->memory, program);
	for (uint32_t i = 0; i < p->nsteps; i++)
	{
		const GjStep *step = gj_program_array(p, GjStep, steps) + i;

		if (sources >> step->source & 1)
			nbytes += gj_step_side_bytes(p, step) - ((int) i == team->exchange_step ? others : 0);
	}
	return nbytes;
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
 * True if rows to be sorted are expected to fit each of n devices, beside so much else.  Else some of
 * them go to the host in between.
 */
static bool
sorted_rows_fit(const GjTeam *team, uint64_t limit, uint32_t n, uint64_t nbytes)
{
	return !sorts_rows(team->program) ||
		(nbytes < limit && team->program->sort_space / n <= limit - nbytes);
}

/*
 * How many of n devices the run is worth, and the way: so many as its size asks for, or, where
 * its inner sides, or rows to be sorted, do not fit, as many as have room for them together.
 */
static uint32_t
choose_number(GjTeam *team, uint64_t limit, uint32_t n)
{
	const GjTeamOptions *options = &team->options;
	uint64_t	all = worth_devices(team->program);
	uint32_t	worth = all < n ? (uint32_t) all : n;
	uint32_t	fewest = 0;

	if (options->max_devices > 0 || gj_devices_pretend(options->kind))
		worth = n;
	for (uint32_t m = worth; m <= n; m++)
	{
		choose_way(team, limit, m);
		if (team->spill)
			continue;
		if (sorted_rows_fit(team, limit, m, need_of_devices(team, limit, m)))
			return m;
		/* rows to be sorted can go to the host, inner sides had better not */
		if (fewest == 0)
			fewest = m;
	}
	if (fewest == 0)
		fewest = worth;
	choose_way(team, limit, fewest);
	return fewest;
}

/* Runs of members hand their groups over. */
static GjStatus
open_groups(GjTeam *team, GjErrorText *why)
{
	const GjProgram *p = team->program;
	uint32_t	nkeys = gj_group_nkeys(p);

	team->groups[1] = gj_team_groups_open(team, nkeys, NULL, why);
	if (team->groups[1] && p->distinct_key)
		team->groups[0] = gj_team_groups_open(team, nkeys + 1, team->groups[1], why);
	if (!team->groups[1 - p->distinct_key])
		return why->text[0] ? GJ_TOO_LARGE : GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < team->nmembers; i++)
		team->members[i].keeps_groups = team->groups[1 - p->distinct_key];
	return GJ_OK;
}

/* What may be kept on the host: parts of sources, of groups, and sorted runs. */
static GjStatus
open_stores(GjTeam *team, GjStatus *status, GjErrorText *why)
{
	const GjProgram *p = team->program;
	bool		groups = p->output == GJ_OUTPUT_GROUPS;
	bool		sorted = sorts_rows(p) || (groups && gj_program_is_sorted(p));
	bool		parts = team->spill && p->nsources > 1;

	if (!groups && !sorted && !parts)
		return GJ_OK;
	gj_spill_open(&team->store, team->options.spill_memory, team->options.temp_limit,
				  team->options.temp_directory);
	team->has_store = true;
	if (groups)
		GJ_TRY(open_groups(team, why));
	if (sorted && !(team->sorted = gj_team_sorted_open(team, why)))
		return why->text[0] ? GJ_NO_DEVICE : GJ_OUT_OF_HOST_MEMORY;
	if (parts)
		team->partition = gj_partition_open(team, status, why);
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
	limit = entries[0]->memory.limit;
	if (team->options.memory_limit != 0 && team->options.memory_limit < limit)
		limit = team->options.memory_limit;
	n = choose_number(team, limit, n);
	/* in the same order in every run: fragments are placed by it */
	qsort(entries, n, sizeof(entries[0]), compare_entries);
	nbytes = team->program->kind == GJ_PROGRAM_JOIN ?
		expected_need(team, limit, saved_need(team, entries, n)) : team->program->lease;
	if (sorts_rows(team->program))
		nbytes += sorted_rows_fit(team, limit, n, need_of_devices(team, limit, n)) ?
			team->program->sort_space / n : nbytes < limit ? (limit - nbytes) / 2 : 0;
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
	/* rows that have no room, or had none before, are handed over */
	team->direct = team->nmembers == 1 && !team->spill &&
		(!sorts_rows(team->program) ||
		 (!team->program->spill &&
		  sorted_rows_fit(team, limit, 1, need_of_devices(team, limit, 1))));
	if (!team->direct)
		GJ_TRY(open_stores(team, &status, why));
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
	gj_team_grant(team);
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
	if (team->sorted)
		gj_team_sorted_close(team->sorted);
	if (team->has_store)
		gj_spill_close(&team->store);
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
