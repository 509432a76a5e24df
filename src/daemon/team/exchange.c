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
#include "state.h"
#include "daemon/base/base.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/program/program.h"

/* Device memory of a row's keys and its share of the table (src/plan/join_cost.c). */
#define GJ_TABLE_BYTES		48

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
largest_step(const GjProgram *p)
{
	const GjStep *steps = gj_program_array(p, GjStep, steps);
	uint64_t	most = 0;
	int			largest = -1;

	if (p->kind != GJ_PROGRAM_JOIN || p->output == GJ_OUTPUT_COUNT || p->spill)
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
	const GjProgram *p = team->program;
	int			step = n > 1 && n <= GJ_SPLIT_PARTS ? largest_step(p) : -1;

	if (step < 0 || team->options.exchange == GJ_EXCHANGE_OFF)
		return -1;
	/* where there is room all inner rows stay built on each device, and outer ones go nowhere */
	return team->options.exchange == GJ_EXCHANGE_ON || too_large ? step : -1;
}

bool
gj_exchange_has(const GjTeam *team, uint32_t source)
{
	return team->exchange_step >= 0 &&
		(source == 0 || source == gj_program_array(team->program, GjStep,
												   steps)[team->exchange_step].source);
}

/* ---- runs */

GjStatus
gj_exchange_end(GjTeam *team, uint32_t source, bool *kept)
{
	GjRun	   *runs[GJ_MAX_RUN_DEVICES];

	for (uint32_t i = 0; i < team->nmembers; i++)
		runs[i] = team->members[i].run;
	*kept = gj_sides_resolve(runs, team->nmembers, source);
	if (*kept)
		return GJ_OK;
	GJ_TRY(gj_team_for_all(team, GJ_TASK_SEND, source));
	/* all parcels have been read: the build may need the memory */
	for (uint32_t i = 0; i < team->nmembers; i++)
		gj_run_end_exchange(runs[i]);
	return GJ_OK;
}

/* Reserves, once, what outer rows on their way need.  Waits where rows may be returned before the end. */
static GjStatus
reserve_outer(GjTeam *team)
{
	uint64_t	nbytes = UINT64_MAX;

	if (team->exchange_space > 0)
		return GJ_OK;
	for (uint32_t i = 0; i < team->nmembers; i++)
	{
		uint64_t	space = gj_run_exchange_space(team->members[i].run);

		if (space < nbytes)
			nbytes = space;
	}
	team->exchange_space = nbytes > 0 ? nbytes : 1;
	/* a run that lacks memory can start again in parts as long as no rows were returned */
	return team->program->output == GJ_OUTPUT_AGGREGATES ?
		gj_team_post_for_all(team, GJ_TASK_RESERVE, 0) :
		gj_team_for_all(team, GJ_TASK_RESERVE, 0);
}

GjStatus
gj_exchange_rows(GjTeam *team, uint32_t source, bool chunk)
{
	return team->exchange_step >= 0 && source == 0 &&
		(chunk || !gj_exchanged_by(team->members[0].run)) ? reserve_outer(team) : GJ_OK;
}

/* All outer rows have come; those that were exchanged before and kept need no room. */
static GjStatus
resolve_outer(GjTeam *team)
{
	GjRun	   *runs[GJ_MAX_RUN_DEVICES];

	for (uint32_t i = 0; i < team->nmembers; i++)
		runs[i] = team->members[i].run;
	if (gj_sides_resolve(runs, team->nmembers, 0))
		return GJ_OK;
	gj_exchanged_plan(runs, team->nmembers);
	return reserve_outer(team);
}

GjStatus
gj_exchange_send_outer(GjTeam *team)
{
	GJ_TRY(resolve_outer(team));
	return gj_team_for_all(team, GJ_TASK_SEND, 0);
}

static const GjExchangeOps exchange_ops = {
	.get_parcel = gj_member_get_parcel,.await_split = gj_member_await_split,
	.send_parcel = gj_member_send_parcel,.parcel_read = gj_member_parcel_read
};

GjStatus
gj_exchange_prepare(GjMember *member)
{
	GjTeam	   *team = member->team;
	const GjProgram *p = team->program;
	uint32_t	inner = gj_program_array(p, GjStep, steps)[team->exchange_step].source;
	GjExchangePlan plan = {(uint32_t) team->exchange_step, team->nmembers,
	(uint32_t) (member - team->members)};
	GjSource   *sources;

	member->turn = (plan.part + 1) % plan.nparts;
	member->program = malloc(p->nbytes);
	if (!member->program)
		return GJ_OUT_OF_HOST_MEMORY;
	memcpy(member->program, p, p->nbytes);
	sources = (GjSource *) ((char *) member->program + p->sources);
	plan.outer_filter = sources[0].filter;
	plan.inner_filter = sources[inner].filter;
	plan.program = gj_program_identity(p);
	plan.staying = team->options.keep_exchanged ? &team->staying : NULL;
	/* rows are filtered before they are sent */
	sources[0].filter = sources[inner].filter = -1;
	sources[inner].nrows_hint /= team->nmembers;
	GJ_TRY(gj_member_prepare_run(member, member->program));
	return gj_run_open_exchange(member->run, &plan, &exchange_ops, member);
}

GjStatus
gj_exchange_end_outer(GjTeam *team)
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
	team->nsending = team->nmembers;
	pthread_mutex_unlock(&team->lock);
	GJ_TRY(gj_team_post_for_all(team, GJ_TASK_SEND, 0));
	return gj_team_post_for_all(team, GJ_TASK_SOURCE_END, 0);
}

/* ---- parcels, in the threads of members */

/*
 * Takes the parcel whose turn it is: one of each other member after the other, beginning with the one
 * that has the next number.  So not all members copy from the same one at a time when all have sent.  Of
 * more than two members each copies one parcel at a time, for all that have come at once are slower.
 */
static GjTask *
take_turn(GjMember *member)
{
	uint32_t	n = member->team->nmembers;
	uint32_t	least = n;
	GjTask	  **at = NULL;

	if (n > 2 && gj_run_is_reading(member->run))
		return NULL;
	for (GjTask **t = &member->inbox.first; *t; t = &(*t)->next)
	{
		uint32_t	turns = ((*t)->from + n - member->turn) % n;

		if (turns < least)
		{
			least = turns;
			at = t;
		}
	}
	if (!at)
		return NULL;
	member->turn = ((*at)->from + 1) % n;
	return gj_unlink_task(&member->inbox, at);
}

GjTask *
gj_member_take_parcel(GjMember *member)
{
	const GjTask *next = member->inbox.first;
	bool		takes = next && (next->source > 0 ? member->opened : member->reserved);

	/* all that wait are of one source: it ends before those of the next one come */
	return takes ? take_turn(member) : NULL;
}

bool
gj_member_awaits_parcels(const GjMember *member)
{
	const GjTask *next = member->own.first;

	/* some that have come may have to wait for their turn */
	return next && next->kind == GJ_TASK_SOURCE_END && next->source == 0 &&
		(member->team->nsending > 0 || member->inbox.first);
}

GjStatus
gj_member_send_last(GjMember *member, uint32_t source)
{
	GjTeam	   *team = member->team;

	GJ_TRY(gj_run_send_parcels(member->run, source));
	if (source > 0)
		return GJ_OK;
	GJ_TRY(gj_run_join_sent(member->run));
	pthread_mutex_lock(&team->lock);
	if (team->nsending > 0 && --team->nsending == 0)
	{
		gj_team_tell(team);
		/* the session's thread may sleep; the result comes soon: it is awake then, and looks for it */
		gj_team_wake(team);
	}
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}

GjStatus
gj_member_keep_exchanged(GjMember *member)
{
	GjTeam	   *team = member->team;
	uint64_t	nrows;

	if (team->exchange_step < 0)
		return GJ_OK;
	pthread_mutex_lock(&team->lock);
	nrows = team->outer_sent[member - team->members];
	pthread_mutex_unlock(&team->lock);
	return gj_exchanged_keep(member->run, nrows);
}

GjStatus
gj_member_receive(GjMember *member, GjTask *task)
{
	GjParcel   *parcel = task->parcel;

	/* the run tells when it has read it */
	task->parcel = NULL;
	return gj_run_receive(member->run, parcel);
}

GjStatus
gj_member_end_reading(GjMember *member)
{
	while (gj_run_is_reading(member->run))
		GJ_TRY(gj_run_settle(member->run, true));
	return GJ_OK;
}

/* Looks without sleeping, unless loaders need the processors. */
static GjSpin
start_looking(const GjTeam *team)
{
	return __atomic_load_n(&team->loads, __ATOMIC_RELAXED) ? (GjSpin) {0} :
		gj_spin_start(GJ_TEAM_SPIN_US);
}

GjStatus
gj_member_settle(GjMember *member, uint32_t seen)
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

GjStatus
gj_member_await_read(GjMember *member)
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

GjStatus
gj_member_get_parcel(void *arg, GjParcel *parcels, uint32_t n, bool awaits, GjParcel **parcel)
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
			member->run->work.ops->phase(member->run->work.queue, GJ_PHASE_WAIT);
			if (!gj_run_is_reading(member->run))
				gj_team_await(team);
			else
			{
				uint32_t	seen = team->told;

				pthread_mutex_unlock(&team->lock);
				status = gj_member_settle(member, seen);
				pthread_mutex_lock(&team->lock);
			}
			continue;
		}
		pthread_mutex_unlock(&team->lock);
		status = gj_member_receive(member, task);
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
		status = gj_member_receive(member, task);
		gj_team_free_task(team, task);
		GJ_TRY(status);
	}
}

GjStatus
gj_member_await_split(void *arg)
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

GjStatus
gj_member_send_parcel(void *arg, GjParcel *parcel)
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
			*tasks[p] = (GjTask) {.kind = GJ_TASK_RECEIVE,.source = parcel->source,.parcel = parcel,
			.from = (uint32_t) (member - team->members)};
	}
	pthread_mutex_lock(&team->lock);
	for (uint32_t p = 0; p < team->nmembers && status == GJ_OK; p++)
	{
		if (parcel->source == 0)
			team->outer_sent[p] += gj_parcel_rows(parcel, p);
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

void
gj_member_parcel_read(void *arg, GjParcel *parcel)
{
	gj_team_drop_parcel(((GjMember *) arg)->team, parcel);
}

void
gj_team_drop_parcel(GjTeam *team, GjParcel *parcel)
{
	pthread_mutex_lock(&team->lock);
	parcel->nusers--;
	gj_team_tell(team);
	pthread_mutex_unlock(&team->lock);
}
