/*
 * worker.c
 *	  What the thread of a member does: tasks, and what its strategy finds to do without one.
 *
 * A member that fails tells the team, whose first failure is the run's.
 */
#include "strategy/strategy.h"
#include "daemon/base/spin.h"

/* How long a member looks for a task before it waits for its device, which takes some 0.01 ms. */
#define GJ_REST_SPIN_US		50

GjStatus
gj_member_rest(GjMember *member, uint32_t seen, bool *more)
{
	GjTeam	   *team = member->team;

	member->restless = false;
	if (!__atomic_load_n(&team->loads, __ATOMIC_RELAXED))
		gj_spin_while(&team->told, seen, GJ_REST_SPIN_US);
	*more = __atomic_load_n(&team->told, __ATOMIC_ACQUIRE) != seen;
	if (*more)
		return GJ_OK;
	GJ_TRY(gj_run_flush(member->run));
	return gj_run_wait(member->run);
}

/* ---- a strategy without anything that goes ahead */

static GjTask *
next_task(GjMember *member)
{
	GjTask	   *task = gj_take_task(&member->own);

	return task ? task : gj_take_task(&member->team->tasks.outer);
}

static bool
has_more(const GjMember *member)
{
	return member->restless;
}

static GjStatus
after_task(GjMember *member)
{
	return GJ_OK;
}

static bool
all_complete(GjTeam *team)
{
	return true;
}

/* Runs are closed all at a time. */
static void
end(GjMember *member)
{
	if (gj_member_close_run(member) == GJ_DEVICE_LOST)
		member->lost = true;
}

const GjWorkerOps gj_plain_worker = {
	.next_task = next_task,.has_more = has_more,.do_more = gj_member_rest,.after_task = after_task,
	.all_complete = all_complete,.end = end
};

/* ---- the thread */

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
gj_member_work(GjMember *member)
{
	GjTeam	   *team = member->team;
	const GjWorkerOps *ops = team->strategy.ops->worker;

	pthread_mutex_lock(&team->lock);
	while (!team->tasks.closing)
	{
		GjStatus	status = GJ_CANCELLED;
		GjTask	   *task = team->status == GJ_OK ? ops->next_task(member) : NULL;
		uint32_t	seen = team->told;
		bool		more = false;
		bool		wakes = task && task->wakes;

		if (!task && (team->status != GJ_OK || !ops->has_more(member)))
		{
			gj_team_await(team);
			continue;
		}
		team->tasks.nidle--;
		pthread_mutex_unlock(&team->lock);
		if (__atomic_load_n(&team->stop, __ATOMIC_RELAXED) == 0)
			status = gj_member_error(member, task ? task->run(member, task) :
									 ops->do_more(member, seen, &more));
		if (task && status == GJ_OK)
			status = gj_member_error(member, ops->after_task(member));
		member->restless |= more;
		if (task && task->shared && status == GJ_OK)
			gj_put_task(&member->held, task);
		else
			gj_team_free_task(team, task);
		pthread_mutex_lock(&team->lock);
		if (status != GJ_OK)
			fail(team, status);
		team->tasks.nidle++;
		/*
		 * The session's thread waits for nothing less; what it is asked for wakes it as well.  But
		 * when one run has ended others soon will: it is awake by then.
		 */
		if (team->tasks.nidle == team->nmembers || team->status != GJ_OK || wakes)
			gj_team_wake(team);
	}
	pthread_mutex_unlock(&team->lock);
	ops->end(member);
}
