/*
 * open.c
 *	  Opens and closes teams: how many devices a run is worth, which strategy it gets, leases, and
 *	  what the devices' threads need.
 */
#include "daemon/sets/sets.h"
#include "strategy/strategy.h"

#include <stdlib.h>
#include <unistd.h>

/* Probe rows that make another device worth its own copy of the build sides. */
#define GJ_ROWS_A_DEVICE	(UINT64_C(256) * 1024 * 1024)

/* The same of pairs of sets, of which all devices have to build an index. */
#define GJ_PAIRS_A_DEVICE	(UINT64_C(4) << 30)

/* Of a device's memory, what a run may need to work in, if it is short. */
#define GJ_WORKING_SHARE	4

/* What is decided about a run. */
typedef struct GjWay
{
	bool		spill;			/* what it keeps is not expected to fit */
	int			exchange_step;	/* rows are exchanged by its keys; -1: they are not */
} GjWay;

/* True if rows are returned in an order. */
static bool
sorts_rows(const GjTeam *team)
{
	return team->sink->returns_rows && team->sink->sorted;
}

/* The devices that the size of the program is worth, if each has all build rows. */
static uint64_t
worth_devices(const GjTeam *team)
{
	const GjProgram *p = team->program;
	const GjSetSpec *sets = gj_program_array(p, GjSetSpec, sets);

	if (!team->sink->by_tiles)
		return 1 + gj_program_array(p, GjSource, sources)[0].nrows_hint / GJ_ROWS_A_DEVICE;
	return 1 + (uint64_t) sets->nleft * (sets->self ? sets->nleft : sets->nright) /
		GJ_PAIRS_A_DEVICE;
}

/* How many devices the run may use. */
static uint32_t
most_devices(const GjTeam *team)
{
	const GjTeamOptions *options = &team->options;

	if (!team->sink->spreads)
		return 1;
	return options->max_devices > 0 && options->max_devices < GJ_MAX_RUN_DEVICES ?
		options->max_devices : GJ_MAX_RUN_DEVICES;
}

/* Waits for the first device's lease; the others have room for theirs now or are left out. */
static GjStatus
get_leases(GjTeam *team, GjDeviceEntry **entries, uint32_t n, uint64_t nbytes)
{
	GjWorker   *first = &team->workers[0];

	GJ_TRY(gj_lease_start(&first->lease, &entries[0]->memory, nbytes,
						  &team->options.limits, team->host->stop, team->host->arg));
	first->entry = entries[0];
	team->nworkers = 1;
	for (uint32_t i = 1; i < n; i++)
	{
		GjWorker   *worker = &team->workers[team->nworkers];

		if (!gj_lease_try(&worker->lease, &entries[i]->memory, nbytes,
						  &team->options.limits))
			continue;
		worker->entry = entries[i];
		team->nworkers++;
	}
	return GJ_OK;
}

/* The memory that the run is expected to need on each device with so much, without `saved`. */
static uint64_t
expected_need(const GjTeam *team, uint64_t limit, uint64_t saved)
{
	const GjProgram *p = team->program;
	uint64_t	working = gj_program_working_space(p);
	uint64_t	least = working < limit / GJ_WORKING_SHARE ? working : limit / GJ_WORKING_SHARE;

	return p->lease > working + saved ? p->lease - working - saved + least : least;
}

/* The same where each has all build rows, or they are exchanged. */
static uint64_t
need_of_devices(const GjTeam *team, uint64_t limit, uint32_t n, int exchange_step)
{
	return expected_need(team, limit, gj_exchange_saves(team->program, exchange_step, n)) +
		gj_exchange_needs(team, exchange_step, n);
}

/* True if what the run has to keep on a device is not expected to fit. */
static bool
is_too_large(const GjTeam *team, uint64_t limit, uint32_t n, int exchange_step)
{
	return team->sink->joins &&
		(team->program->nsources > 1 || team->sink->has_groups) &&
		(team->program->spill || need_of_devices(team, limit, n, exchange_step) > limit);
}

/*
 * Device memory that the run need not ask for: what others keep of an exchange, or build sides that
 * the same program has used last and all devices still have.  Else these would go to make room for
 * what is not built.  If they are not what the run needs after all, the lease grows.
 */
static uint64_t
saved_need(const GjTeam *team, GjDeviceEntry **entries, uint32_t n, GjWay way)
{
	const GjProgram *p = team->program;
	uint64_t	others = gj_exchange_saves(p, way.exchange_step, n);
	uint64_t	nbytes = others;
	uint64_t	program;
	uint32_t	sources = UINT32_MAX;

	if (way.spill)
		return nbytes;
	program = gj_program_identity(p);
	for (uint32_t i = 0; i < n; i++)
		sources &= gj_sides_of(&entries[i]->memory, program);
	for (uint32_t i = 0; i < p->nsteps; i++)
	{
		const GjStep *step = gj_program_array(p, GjStep, steps) + i;

		if (sources >> step->source & 1)
			nbytes += gj_step_side_bytes(p, step) - ((int) i == way.exchange_step ? others : 0);
	}
	return nbytes;
}

/* Decides between all build rows on each of n devices, an exchange, and parts. */
static GjWay
choose_way(const GjTeam *team, uint64_t limit, uint32_t n)
{
	bool		spill = is_too_large(team, limit, n, -1);
	int			step = gj_exchange_choose(team, n, spill);

	if (step < 0)
		return (GjWay) {spill, -1};
	/* the rest is for what is on its way */
	spill = is_too_large(team, limit / 4 * 3, n, step);
	return (GjWay) {spill, spill ? -1 : step};
}

/*
 * True if rows to be sorted are expected to fit each of n devices, beside so much else.  Else some
 * of them go to the host in between.
 */
static bool
sorted_rows_fit(const GjTeam *team, uint64_t limit, uint32_t n, uint64_t nbytes)
{
	return !sorts_rows(team) ||
		(nbytes < limit && team->program->sort_space / n <= limit - nbytes);
}

/*
 * How many of n devices the run is worth, and the way: so many as its size asks for, or, where
 * its build sides, or rows to be sorted, do not fit, as many as have room for them together.
 */
static uint32_t
choose_number(const GjTeam *team, uint64_t limit, uint32_t n, GjWay *way)
{
	const GjTeamOptions *options = &team->options;
	uint64_t	all = worth_devices(team);
	uint32_t	worth = all < n ? (uint32_t) all : n;
	uint32_t	fewest = 0;

	if (options->max_devices > 0 || gj_devices_pretend(options->kind))
		worth = n;
	for (uint32_t m = worth; m <= n; m++)
	{
		*way = choose_way(team, limit, m);
		if (way->spill)
			continue;
		if (sorted_rows_fit(team, limit, m, need_of_devices(team, limit, m, way->exchange_step)))
			return m;
		/* rows to be sorted can go to the host, build sides had better not */
		if (fewest == 0)
			fewest = m;
	}
	if (fewest == 0)
		fewest = worth;
	*way = choose_way(team, limit, fewest);
	return fewest;
}

/* Threads, what may be kept on the host, and what joins the results; the way is a strategy. */
static GjStatus
open_threads(GjTeam *team, GjWay way, GjErrorText *why)
{
	bool		parts = way.spill && team->program->nsources > 1;

	if (parts || team->gather.ops->needs_store)
	{
		gj_spill_open(&team->store, team->options.spill_memory, &team->options.temp);
		team->has_store = true;
		team->gather.reports_store = way.spill || sorts_rows(team);
	}
	GJ_TRY(team->gather.ops->open(team, why));
	if (parts)
		return gj_passes_open(team, why);
	if (way.exchange_step < 0)
		return gj_replicate_open(team);
	switch (gj_exchange_scheme(team, (uint32_t) way.exchange_step))
	{
		case GJ_SCHEME_RING:
			return gj_ring_open(team, (uint32_t) way.exchange_step);
		case GJ_SCHEME_RANGES:
			return gj_ranges_open(team, (uint32_t) way.exchange_step);
		default:
			return gj_exchange_open(team, (uint32_t) way.exchange_step);
	}
}

static int
compare_entries(const void *a, const void *b)
{
	uint32_t	x = (*(GjDeviceEntry *const *) a)->info.ordinal;
	uint32_t	y = (*(GjDeviceEntry *const *) b)->info.ordinal;

	return (x > y) - (x < y);
}

/* What results of stages, perhaps those that the run reads, have of the memory of one of n devices. */
static uint64_t
most_kept(GjDeviceEntry **entries, uint32_t n)
{
	uint64_t	most = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	kept = gj_rows_kept(entries[i]);

		if (kept > most)
			most = kept;
	}
	return most;
}

/* Bytes that a run may have on each of the devices. */
static uint64_t
least_limit(GjDeviceEntry **entries, uint32_t n)
{
	const uint64_t kept = most_kept(entries, n);
	uint64_t	least = UINT64_MAX;

	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	limit = gj_memory_limit(&entries[i]->memory);

		if (limit < least)
			least = limit;
	}
	return least > kept ? least - kept : 0;
}

static GjStatus
open_team(GjTeam *team, GjErrorText *why)
{
	const GjProgram *p = team->program;
	GjDeviceEntry *entries[GJ_MAX_RUN_DEVICES];
	uint32_t	n = gj_devices_choose_some(team->options.kind, most_devices(team), entries, why);
	uint64_t	of_quota = gj_quota_most(&team->options.limits.quota);
	uint64_t	nbytes;
	uint64_t	limit;
	GjWay		way;
	bool		fits;

	if (n == 0)
		return GJ_NO_DEVICE;
	limit = least_limit(entries, n);
	if (team->options.limits.run != 0 && team->options.limits.run < limit)
		limit = team->options.limits.run;
	if (of_quota < limit)
		limit = of_quota;
	n = choose_number(team, limit, n, &way);
	/* in the same order in every run: fragments are placed by it */
	qsort(entries, n, sizeof(entries[0]), compare_entries);
	nbytes = team->sink->joins ?
		expected_need(team, limit, saved_need(team, entries, n, way)) +
		gj_exchange_needs(team, way.exchange_step, n) : p->lease;
	if (sorts_rows(team))
	{
		fits = sorted_rows_fit(team, limit, n, need_of_devices(team, limit, n, way.exchange_step));
		nbytes += fits ? p->sort_space / n : nbytes < limit ? (limit - nbytes) / 2 : 0;
	}
	/* all have room for the same tiles, or none has */
	team->tiles.pairs = GJ_MAX_TUPLES;
	if (n > 1 && team->sink->by_tiles && nbytes + GJ_LARGE_TILE_SPACE <= limit / 2)
	{
		team->tiles.pairs = GJ_SET_MOST_PAIRS;
		nbytes += GJ_LARGE_TILE_SPACE;
	}
	if (way.spill && nbytes > limit)
		nbytes = limit;
	GJ_TRY(get_leases(team, entries, n, nbytes));
	/* other devices are busy */
	if (team->nworkers < n && way.exchange_step >= 0)
		way = choose_way(team, limit, team->nworkers);
	/* rows that have no room, or had none before, are handed over */
	fits = !sorts_rows(team) ||
		(!p->spill && sorted_rows_fit(team, limit, 1,
									  need_of_devices(team, limit, 1, way.exchange_step)));
	team->tasks.nidle = team->nworkers;
	return team->nworkers == 1 && !way.spill && fits ? gj_single_open(team, why) :
		open_threads(team, way, why);
}

GjTeam *
gj_team_open(const GjProgram *program, const GjTeamOptions *options, const GjRunHost *host,
			 const GjTarget *target, GjStatus *status, GjErrorText *why)
{
	GjTeam    *team = calloc(1, sizeof(GjTeam));
	GjErrorText lost = {""};

	why->text[0] = '\0';
	*status = GJ_OUT_OF_HOST_MEMORY;
	if (!team)
		return NULL;
	team->program = program;
	team->options = *options;
	team->sink = gj_sink_choose(program);
	team->host = host;
	team->target = *target;
	team->signals.wake_fd = -1;
	/* until another one is chosen; it has no state */
	team->strategy.ops = &gj_single_ops;
	team->gather.ops = gj_gather_choose(team->sink);
	pthread_mutex_init(&team->lock, NULL);
	pthread_cond_init(&team->work, NULL);
	pthread_cond_init(&team->granted, NULL);
	gj_start_list(&team->tasks.probe_side);
	for (uint32_t i = 0; i < GJ_MAX_RUN_DEVICES; i++)
	{
		team->workers[i].team = team;
		gj_start_list(&team->workers[i].own);
		gj_start_list(&team->workers[i].ahead);
		gj_start_list(&team->workers[i].held);
	}
	*status = open_team(team, why);
	if (*status == GJ_OK)
		return team;
	if (why->text[0] == '\0')
		gj_replicate_error(team, why);
	if (gj_team_close(team, &lost) == GJ_DEVICE_LOST)
	{
		*status = GJ_DEVICE_LOST;
		*why = lost;
	}
	return NULL;
}

/* Ends the threads. */
static void
stop_workers(GjTeam *team)
{
	pthread_mutex_lock(&team->lock);
	team->tasks.closing = true;
	__atomic_store_n(&team->signals.stop, 1, __ATOMIC_RELAXED);
	gj_team_notify(team);
	gj_team_grant(team);
	pthread_mutex_unlock(&team->lock);
	for (uint32_t i = 0; i < team->nworkers; i++)
		if (team->workers[i].thread.started)
			gj_worker_await_end(&team->workers[i]);
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

	stop_workers(team);
	/* what a worker found that nobody has asked for since */
	if (team->status == GJ_DEVICE_LOST)
	{
		status = GJ_DEVICE_LOST;
		*why = team->error;
	}
	free_tasks(team, &team->tasks.probe_side);
	free_uses(&team->input.used);
	free_uses(&team->input.freed);
	/* blocks are of runs that are still open */
	for (uint32_t i = 0; i < team->nworkers; i++)
	{
		free_tasks(team, &team->workers[i].own);
		free_tasks(team, &team->workers[i].ahead);
		free_tasks(team, &team->workers[i].held);
	}
	for (uint32_t i = 0; i < team->nworkers; i++)
	{
		GjWorker   *worker = &team->workers[i];

		/* the thread has closed it, unless there were blocks */
		if (gj_worker_close_run(worker) == GJ_DEVICE_LOST || worker->lost)
		{
			status = GJ_DEVICE_LOST;
			*why = team->error;
		}
	}
	team->strategy.ops->close(team);
	gj_gather_close(team);
	if (team->has_store)
		gj_spill_close(&team->store);
	for (uint32_t i = 0; i < team->nworkers; i++)
	{
		GjWorker   *worker = &team->workers[i];

		if (worker->part)
			gj_segment_put(worker->part);
		gj_lease_end(&worker->lease);
		free(worker->program);
	}
	if (team->signals.wake_fd >= 0)
		close(team->signals.wake_fd);
	pthread_cond_destroy(&team->work);
	pthread_cond_destroy(&team->granted);
	pthread_mutex_destroy(&team->lock);
	free(team);
	return status;
}
