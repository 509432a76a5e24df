/*
 * exchange.c
 *	  Large inner sides of a run on several devices: each has only the rows of its part of the
 *	  keys, of one inner source and of the outer one, and all rows of the others.
 *
 * Whoever gets rows of these two sources, in chunks or as resident fragments of its device,
 * sends them on in parcels (source/split.c), which lie on the sender's device and are copied from
 * there (source/block.c).  A parcel is a task for the other members that have a part of it, ahead of
 * all else they do once their run can take it: runs open, take sides that were kept and reserve memory
 * without waiting for each other.  Who fills the next one takes those of others first, in their turn,
 * and waits for copies while all of its own are still read: these end, so some member always gets on.
 * Sources end when all parcels have been taken; where nothing is loaded each member ends the outer one
 * by itself, when all have sent what they have.
 *
 * Equal keys meet on one device, so every join type comes out right, the unmatched rows of
 * either side too.  Steps before it must not have rows of their inner side come out at the end:
 * these have no outer row, and their keys would match on one device only.
 */
#include "daemon/run/state.h"
#include "daemon/source/parcel.h"
#include "strategy.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/program/program.h"

/* Device memory of a row's keys and its share of the table (src/plan/join_cost.c). */
#define GJ_TABLE_BYTES		48

/* What a member knows of blocks of rows. */
typedef struct GjExchangeMember
{
	uint32_t	turn;			/* the member whose parcels it takes first */
	bool		opened;			/* its run has started; before, it is the session's thread's */
	bool		reserved;		/* and has the memory that outer rows on their way need */
	bool		awaits;			/* the next of its own tasks has to wait for parcels */
} GjExchangeMember;

typedef struct GjExchange
{
	GjReplicate replicate;
	uint32_t	step;			/* rows are exchanged by its keys, */
	uint32_t	inner;			/* those of this source and of the outer one */
	uint64_t	space;			/* memory that outer rows on their way may take on each device; 0: not
								 * known yet */
	bool		staying;		/* atomic: members keep outer rows that are exchanged */
	bool		finished;		/* no run reads what is another's; guarded by lock */
	uint32_t	nsending;		/* members that are to send the last outer rows; guarded by lock */
	/* outer rows for each member, its own too; guarded by lock */
	uint64_t	sent[GJ_MAX_RUN_DEVICES];
	GjExchangeMember members[GJ_MAX_RUN_DEVICES];
} GjExchange;

static GjExchange *
state_of(const GjTeam *team)
{
	return team->strategy.state;
}

static GjExchangeMember *
of_member(const GjMember *member)
{
	return &state_of(member->team)->members[member - member->team->members];
}

/* ---- what is exchanged */

uint64_t
gj_step_side_bytes(const GjProgram *p, const GjStep *step)
{
	const GjSource *source = &gj_program_array(p, GjSource, sources)[step->source];
	const GjColumnType *types = gj_program_array(p, GjColumnType, columns);
	uint64_t	a_row = GJ_TABLE_BYTES;

	for (uint32_t c = 0; c < source->ncolumns; c++)
		a_row += types[source->first_column + c].width;
	return source->nrows_hint * a_row;
}

static bool
can_exchange(const GjProgram *p, uint32_t i)
{
	const GjStep *steps = gj_program_array(p, GjStep, steps);

	if (steps[i].nkeys == 0 || steps[i].algorithm == GJ_JOIN_SET)
		return false;
	for (uint32_t k = 0; k < steps[i].nkeys; k++)
		if (gj_expr_sources(p, steps[i].outer_keys + k) & ~1u)
			return false;
	for (uint32_t before = 0; before < i; before++)
		if (gj_step_makes_rows(&steps[before]))
			return false;
	return true;
}

/* The step with the largest inner side that can be exchanged, or -1. */
static int
largest_step(const GjTeam *team)
{
	const GjProgram *p = team->program;
	const GjStep *steps = gj_program_array(p, GjStep, steps);
	uint64_t	most = 0;
	int			largest = -1;

	if (!team->sink->joins || p->spill)
		return -1;
	for (uint32_t i = 0; i < p->nsteps; i++)
		if (can_exchange(p, i) && (largest < 0 || gj_step_side_bytes(p, &steps[i]) > most))
		{
			most = gj_step_side_bytes(p, &steps[i]);
			largest = (int) i;
		}
	return largest;
}

uint64_t
gj_exchange_saves(const GjProgram *program, int step, uint32_t n)
{
	uint64_t	all;

	if (step < 0 || n == 0)
		return 0;
	all = gj_step_side_bytes(program, gj_program_array(program, GjStep, steps) + step);
	return all - all / n;
}

int
gj_exchange_choose(const GjTeam *team, uint32_t n, bool too_large)
{
	int			step = n > 1 && n <= GJ_SPLIT_PARTS ? largest_step(team) : -1;

	if (step < 0 || team->options.exchange == GJ_EXCHANGE_OFF)
		return -1;
	/* where there is room all inner rows stay built on each device, and outer ones go nowhere */
	return team->options.exchange == GJ_EXCHANGE_ON || too_large ? step : -1;
}

/* ---- in the threads of members: what others send */

/*
 * Takes the parcel whose turn it is: one of each other member after the other, beginning with the one
 * that has the next number.  So not all members copy from the same one at a time when all have sent.  Of
 * more than two members each copies one parcel at a time, for all that have come at once are slower.
 */
static GjTask *
take_turn(GjMember *member)
{
	GjExchangeMember *own = of_member(member);
	uint32_t	n = member->team->nmembers;
	uint32_t	least = n;
	GjTask	  **at = NULL;

	if (n > 2 && gj_run_is_reading(member->run))
		return NULL;
	for (GjTask **t = &member->inbox.first; *t; t = &(*t)->next)
	{
		uint32_t	turns = ((*t)->from + n - own->turn) % n;

		if (turns < least)
		{
			least = turns;
			at = t;
		}
	}
	if (!at)
		return NULL;
	own->turn = ((*at)->from + 1) % n;
	return gj_unlink_task(&member->inbox, at);
}

static GjStatus
receive(GjMember *member, GjTask *task)
{
	GjParcel   *parcel = task->parcel;

	/* the run tells when it has read it */
	task->parcel = NULL;
	return gj_run_receive(member->run, parcel);
}

/* The same as a task of its own. */
static GjStatus
receive_task(GjMember *member, GjTask *task)
{
	member->restless = true;
	return receive(member, task);
}

/* Looks without sleeping, unless loaders need the processors. */
static GjSpin
start_looking(const GjTeam *team)
{
	return __atomic_load_n(&team->loads, __ATOMIC_RELAXED) ? (GjSpin) {0} :
		gj_spin_start(GJ_TEAM_SPIN_US);
}

/*
 * There is nothing to do while parcels are being read: waits until the first of them has been, or
 * members were told of something since that was seen.  The lock is not held.
 */
static GjStatus
settle(GjMember *member, uint32_t seen)
{
	GjTeam	   *team = member->team;
	GjSpin		spin = start_looking(team);
	bool		wait = false;
	GjStatus	status;

	/* what it settles it tells, too */
	do
	{
		status = gj_run_settle(member->run, wait);
		wait = !gj_spin_on(&spin);
	} while (status == GJ_OK && __atomic_load_n(&team->told, __ATOMIC_ACQUIRE) == seen);
	return status;
}

/* Waits until nobody reads the member's parcels, to which none come any more. */
static GjStatus
await_read(GjMember *member)
{
	uint32_t	n;
	const GjParcel *parcels = gj_run_parcels(member->run, &n);
	GjTeam	   *team = member->team;
	GjStatus	status = GJ_OK;

	pthread_mutex_lock(&team->lock);
	for (uint32_t i = 0; i < n && status == GJ_OK;)
	{
		if (__atomic_load_n(&team->stop, __ATOMIC_RELAXED) != 0)
			status = GJ_CANCELLED;
		else if (parcels[i].nusers > 0)
			gj_team_await(team);
		else
			i++;
	}
	pthread_mutex_unlock(&team->lock);
	return status;
}

/* ---- functions of GjRunHost, arg is the member */

static GjStatus
get_parcel(void *arg, GjParcel *parcels, uint32_t n, bool awaits, GjParcel **parcel)
{
	GjMember   *member = arg;
	GjTeam	   *team = member->team;
	uint32_t	taken = 0;
	GjStatus	status = gj_run_settle(member->run, false);

	*parcel = NULL;
	pthread_mutex_lock(&team->lock);
	while (status == GJ_OK)
	{
		GjTask	   *task = NULL;

		for (uint32_t i = 0; i < n && !*parcel; i++)
			if (parcels[i].nusers == 0 && !parcels[i].waits)
				*parcel = &parcels[i];
		if (__atomic_load_n(&team->stop, __ATOMIC_RELAXED) != 0)
		{
			status = GJ_CANCELLED;
			break;
		}
		/*
		 * First those of others, one of each at most, so that they get theirs back; but the device
		 * should have the split to do while these are taken, if that can be.
		 */
		if (!*parcel || (!awaits && ++taken < team->nmembers))
			task = take_turn(member);
		if (!task && *parcel)
			break;
		if (!task && gj_run_has_sent(member->run))
		{
			pthread_mutex_unlock(&team->lock);
			status = gj_run_join_sent(member->run);
			pthread_mutex_lock(&team->lock);
			continue;
		}
		if (!task)
		{
			member->run->work.ops->queues->phase(member->run->work.queue, GJ_PHASE_WAIT);
			if (!gj_run_is_reading(member->run))
				gj_team_await(team);
			else
			{
				uint32_t	seen = team->told;

				pthread_mutex_unlock(&team->lock);
				status = settle(member, seen);
				pthread_mutex_lock(&team->lock);
			}
			continue;
		}
		pthread_mutex_unlock(&team->lock);
		status = receive(member, task);
		gj_team_free_task(team, task);
		pthread_mutex_lock(&team->lock);
	}
	pthread_mutex_unlock(&team->lock);
	return status;
}

/* Takes the parcels that have come and whose turn it is. */
static GjStatus
take_waiting(GjMember *member)
{
	GjTeam	   *team = member->team;

	for (;;)
	{
		GjStatus	status;
		GjTask	   *task;

		pthread_mutex_lock(&team->lock);
		task = take_turn(member);
		pthread_mutex_unlock(&team->lock);
		if (!task)
			return GJ_OK;
		status = receive(member, task);
		gj_team_free_task(team, task);
		GJ_TRY(status);
	}
}

static GjStatus
await_split(void *arg)
{
	GjMember   *member = arg;
	GjTeam	   *team = member->team;
	GjSpin		spin = start_looking(team);
	bool		done = false;
	/* not what it is: parcels may have come before */
	uint32_t	seen = __atomic_load_n(&team->told, __ATOMIC_ACQUIRE) - 1;

	while (!done)
	{
		uint32_t	told = __atomic_load_n(&team->told, __ATOMIC_ACQUIRE);

		if (told != seen)
			GJ_TRY(take_waiting(member));
		seen = told;
		GJ_TRY(gj_run_settle(member->run, false));
		GJ_TRY(gj_run_has_split(member->run, !gj_spin_on(&spin), &done));
	}
	return GJ_OK;
}

static GjStatus
send_parcel(void *arg, GjParcel *parcel)
{
	GjMember   *member = arg;
	GjTeam	   *team = member->team;
	GjTask	   *tasks[GJ_SPLIT_PARTS] = {NULL};
	GjStatus	status = GJ_OK;

	for (uint32_t p = 0; p < team->nmembers && status == GJ_OK; p++)
	{
		/* the member takes its own part itself */
		if (gj_parcel_rows(parcel, p) == 0 || member == &team->members[p])
			continue;
		tasks[p] = calloc(1, sizeof(GjTask));
		if (!tasks[p])
			status = GJ_OUT_OF_HOST_MEMORY;
		else
			*tasks[p] = (GjTask) {.run = receive_task,.source = parcel->source,.parcel = parcel,
			.from = (uint32_t) (member - team->members)};
	}
	pthread_mutex_lock(&team->lock);
	for (uint32_t p = 0; p < team->nmembers && status == GJ_OK; p++)
	{
		if (parcel->source == 0)
			state_of(team)->sent[p] += gj_parcel_rows(parcel, p);
		if (!tasks[p])
			continue;
		parcel->nusers++;
		gj_put_task(&team->members[p].inbox, tasks[p]);
	}
	gj_team_tell(team);
	pthread_mutex_unlock(&team->lock);
	for (uint32_t p = 0; p < team->nmembers && status != GJ_OK; p++)
		free(tasks[p]);
	return status;
}

static void
parcel_read(void *arg, GjParcel *parcel)
{
	gj_team_drop_parcel(((GjMember *) arg)->team, parcel);
}

/* ---- what the threads of members do */

/* The run exchanges rows. */
static bool
exchanges(const GjMember *member)
{
	return of_member(member)->opened && member->run;
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

/*
 * A parcel that the member can take, or NULL: any rows need its run, which others do not wait for, and
 * outer ones its inner sides, and room.  The lock is held.
 */
static GjTask *
take_parcel(GjMember *member)
{
	const GjExchangeMember *own = of_member(member);
	const GjTask *next = member->inbox.first;
	bool		takes = next && (next->source > 0 ? own->opened : own->reserved);

	/* all that wait are of one source: it ends before those of the next one come */
	return takes ? take_turn(member) : NULL;
}

/* True: the next of the member's own tasks has to wait for parcels.  The lock is held. */
static bool
awaits_parcels(const GjMember *member)
{
	const GjTask *next = member->own.first;

	/* some that have come may have to wait for their turn */
	return next && next->run == gj_member_end_source && next->source == 0 &&
		(state_of(member->team)->nsending > 0 || member->inbox.first);
}

static GjTask *
next_task(GjMember *member)
{
	GjTask	   *task = take_parcel(member);
	bool		awaits = !task && awaits_parcels(member);

	of_member(member)->awaits = awaits;
	if (!task && !awaits)
		task = gj_take_task(&member->own);
	return task ? task : gj_take_task(&member->team->tasks.outer);
}

static bool
has_more(const GjMember *member)
{
	return has_received(member) || (member->restless && !of_member(member)->awaits) ||
		is_reading(member);
}

/*
 * Rows that were exchanged pass the steps only now: what sends others goes first, for somebody
 * waits for these.
 */
static GjStatus
do_more(GjMember *member, uint32_t seen, bool *more)
{
	if (has_received(member))
		return gj_run_join_sent(member->run);
	if (!member->restless || of_member(member)->awaits || is_reading(member))
		return settle(member, seen);
	return gj_member_rest(member, seen, more);
}

/* Others may wait for their parcels. */
static GjStatus
after_task(GjMember *member)
{
	return exchanges(member) ? gj_run_settle(member->run, false) : GJ_OK;
}

/* Others may want the member's rows. */
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

/* Parcels that nobody took are of runs that are still open. */
static void
end(GjMember *member)
{
	gj_run_stop_reading(member->run);
	if (state_of(member->team)->finished)
		gj_plain_worker.end(member);
}

static const GjWorkerOps worker = {
	.next_task = next_task,.has_more = has_more,.do_more = do_more,.after_task = after_task,
	.all_complete = all_complete,.end = end
};

/* ---- tasks */

static GjStatus
start_run(GjMember *member, GjTask *task)
{
	of_member(member)->opened = true;
	return gj_run_start(member->run);
}

/* Reserves memory for outer rows on their way. */
static GjStatus
reserve(GjMember *member, GjTask *task)
{
	GJ_TRY(gj_run_reserve_exchange(member->run, state_of(member->team)->space));
	of_member(member)->reserved = true;
	return GJ_OK;
}

/* Sends all rows of a source that have come. */
static GjStatus
send_last(GjMember *member, GjTask *task)
{
	GjTeam	   *team = member->team;
	GjExchange *exchange = state_of(team);

	member->restless = true;
	GJ_TRY(gj_run_send_parcels(member->run, task->source));
	if (task->source > 0)
		return GJ_OK;
	GJ_TRY(gj_run_join_sent(member->run));
	pthread_mutex_lock(&team->lock);
	if (exchange->nsending > 0 && --exchange->nsending == 0)
	{
		gj_team_tell(team);
		/* the session's thread may sleep; the result comes soon: it is awake then, and looks for it */
		gj_team_wake(team);
	}
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}

/* The outer rows that the member has got may stay on its device. */
static GjStatus
keep_exchanged(GjMember *member)
{
	GjTeam	   *team = member->team;
	uint64_t	nrows;

	pthread_mutex_lock(&team->lock);
	nrows = state_of(team)->sent[member - team->members];
	pthread_mutex_unlock(&team->lock);
	return gj_exchanged_keep(member->run, nrows);
}

static GjStatus
end_run(GjMember *member, GjTask *task)
{
	GjTeam	   *team = member->team;

	while (gj_run_is_reading(member->run))
		GJ_TRY(gj_run_settle(member->run, true));
	GJ_TRY(gj_member_finish_run(member, gj_replicate_counted(member) |
								1u << state_of(team)->inner));
	gj_run_received(member->run, &member->counts.outer_rows, &member->counts.exchanged);
	GJ_TRY(keep_exchanged(member));
	member->restless = false;
	if (team->gather.ops->closes_runs)
		GJ_TRY(await_read(member));
	return team->gather.ops->ended(member);
}

/* ---- in the session's thread */

static void
get_runs(const GjTeam *team, GjRun **runs)
{
	for (uint32_t i = 0; i < team->nmembers; i++)
		runs[i] = team->members[i].run;
}

/* Reserves, once, what outer rows on their way need.  Waits unless only states are returned. */
static GjStatus
reserve_outer(GjTeam *team)
{
	GjExchange *exchange = state_of(team);
	uint64_t	nbytes = UINT64_MAX;

	if (exchange->space > 0)
		return GJ_OK;
	for (uint32_t i = 0; i < team->nmembers; i++)
	{
		uint64_t	space = gj_run_exchange_space(team->members[i].run);

		if (space < nbytes)
			nbytes = space;
	}
	exchange->space = nbytes > 0 ? nbytes : 1;
	/* a run that lacks memory can start again in parts as long as no rows were returned */
	return team->sink->has_states ? gj_team_post_for_all(team, reserve, 0) :
		gj_team_for_all(team, reserve, 0);
}

static GjStatus
chunk(GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory, uint32_t slot)
{
	const GjTask chunk = {.source = source,.nrows = nrows,.memory = memory,.slot = slot};

	GJ_TRY(gj_input_chunk(team, source));
	if (source == 0)
		GJ_TRY(reserve_outer(team));
	return gj_input_post(team, &chunk, source > 0 && source != state_of(team)->inner);
}

static GjStatus
use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses)
{
	GJ_TRY(gj_input_use(team, source));
	/* if they are not only noted */
	if (source == 0 && !gj_exchanged_by(team->members[0].run))
		GJ_TRY(reserve_outer(team));
	return gj_team_use_all(team, source, n, uses, source == 0 || source == state_of(team)->inner);
}

/*
 * The inner source has ended, and no member works on anything: waits until its rows are where they
 * belong.  *kept: all members have a side that was kept, and their runs will find it.
 */
static GjStatus
send_inner(GjTeam *team, uint32_t source, bool *kept)
{
	GjRun	   *runs[GJ_MAX_RUN_DEVICES];

	get_runs(team, runs);
	*kept = gj_sides_resolve(runs, team->nmembers, source);
	if (*kept)
		return GJ_OK;
	GJ_TRY(gj_team_for_all(team, send_last, source));
	/* all parcels have been read: the build may need the memory */
	for (uint32_t i = 0; i < team->nmembers; i++)
		gj_run_end_exchange(runs[i]);
	return GJ_OK;
}

/* All outer rows have come; those that were exchanged before and kept need no room. */
static GjStatus
resolve_outer(GjTeam *team)
{
	GjRun	   *runs[GJ_MAX_RUN_DEVICES];

	get_runs(team, runs);
	if (gj_sides_resolve(runs, team->nmembers, 0))
		return GJ_OK;
	gj_exchanged_plan(runs, team->nmembers);
	return reserve_outer(team);
}

/*
 * The outer source has ended, all tasks of which are members' own, and no inner rows come out by
 * themselves: members end it, too, when all have sent what they have.
 */
static GjStatus
end_outer(GjTeam *team)
{
	/* where members note what they use, it is known when they have; they are soon done with that */
	if (gj_exchanged_by(team->members[0].run))
	{
		GJ_TRY(gj_team_drain(team));
		GJ_TRY(resolve_outer(team));
	}
	else
		GJ_TRY(reserve_outer(team));
	pthread_mutex_lock(&team->lock);
	state_of(team)->nsending = team->nmembers;
	pthread_mutex_unlock(&team->lock);
	GJ_TRY(gj_team_post_for_all(team, send_last, 0));
	GJ_TRY(gj_team_post_for_all(team, gj_member_end_source, 0));
	gj_replicate_note_end(team);
	return GJ_OK;
}

static GjStatus
source_end(GjTeam *team, uint32_t source)
{
	GjExchange *exchange = state_of(team);
	bool		kept = false;

	GJ_TRY(gj_input_end(team, source));
	if (!team->loads && source == 0 && !gj_replicate_makes_rows(team->program))
		return end_outer(team);
	GJ_TRY(gj_team_drain(team));
	if (source == exchange->inner)
		GJ_TRY(send_inner(team, source, &kept));
	if (source == 0)
	{
		/* members send what they have, and take what others have, or what was kept of it */
		GJ_TRY(resolve_outer(team));
		GJ_TRY(gj_team_for_all(team, send_last, 0));
		GJ_TRY(gj_replicate_inner_rows(team, (int) exchange->step));
	}
	GJ_TRY(gj_team_post_for_all(team, gj_member_end_source, source));
	/* nothing is built of a side that was kept, and no memory taken for it */
	return kept ? GJ_OK : gj_team_drain(team);
}

static GjStatus
finish(GjTeam *team, GjRunStats *stats)
{
	GjExchange *exchange = state_of(team);

	if (team->loads)
		GJ_TRY(gj_team_drain(team));
	GJ_TRY(gj_team_post_copies(team, &(GjTask) {.run = end_run,.wakes = true}));
	GJ_TRY(gj_gather(team, stats));
	stats->exchange_step = exchange->step + 1;
	pthread_mutex_lock(&team->lock);
	exchange->finished = true;
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}

static const GjStrategyOps exchange_ops = {
	.worker = &worker,.stays_open = true,
	.accepts = gj_input_accepts,.chunk = chunk,.ask = gj_team_ask_all,.use = use,
	.source_end = source_end,.complete = gj_replicate_complete,.work = gj_team_serve,
	.flush = gj_team_serve,.finish = finish,.error = gj_replicate_error,
	.close = gj_replicate_close
};

/* ---- open */

static const GjExchangeOps between = {
	.get_parcel = get_parcel,.await_split = await_split,.send_parcel = send_parcel,
	.parcel_read = parcel_read
};

/* Prepares the run of a member. */
static GjStatus
prepare(GjMember *member)
{
	GjTeam	   *team = member->team;
	const GjProgram *p = team->program;
	GjExchange *exchange = state_of(team);
	uint32_t	inner = exchange->inner;
	GjExchangePlan plan = {exchange->step, team->nmembers,
	(uint32_t) (member - team->members)};
	GjSource   *sources;

	of_member(member)->turn = (plan.part + 1) % plan.nparts;
	member->program = malloc(p->nbytes);
	if (!member->program)
		return GJ_OUT_OF_HOST_MEMORY;
	memcpy(member->program, p, p->nbytes);
	sources = (GjSource *) ((char *) member->program + p->sources);
	plan.outer_filter = sources[0].filter;
	plan.inner_filter = sources[inner].filter;
	plan.program = gj_program_identity(p);
	plan.staying = team->options.keep_exchanged ? &exchange->staying : NULL;
	/* rows are filtered before they are sent */
	sources[0].filter = sources[inner].filter = -1;
	sources[inner].nrows_hint /= team->nmembers;
	GJ_TRY(gj_member_prepare_run(member, member->program));
	return gj_run_open_exchange(member->run, &plan, &between, member);
}

GjStatus
gj_exchange_open(GjTeam *team, uint32_t step)
{
	GjExchange *exchange = calloc(1, sizeof(GjExchange));

	if (!exchange)
		return GJ_OUT_OF_HOST_MEMORY;
	exchange->step = step;
	exchange->inner = gj_program_array(team->program, GjStep, steps)[step].source;
	team->strategy = (GjStrategy) {&exchange_ops, exchange};
	GJ_TRY(gj_members_start(team));
	for (uint32_t i = 0; i < team->nmembers; i++)
		GJ_TRY(prepare(&team->members[i]));
	return gj_team_post_for_all(team, start_run, 0);
}
