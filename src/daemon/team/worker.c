/*
 * worker.c
 *	  What the thread of a worker does: tasks, and what its strategy finds to do without one.
 *
 * A worker that fails tells the team, whose first failure is the run's.
 */
#include "strategy/strategy.h"
#include "daemon/base/base.h"

/* How long a worker looks for a task before it waits for its device, which takes some 0.01 ms. */
#define GJ_CATCH_UP_SPIN_US		50

GjStatus
gj_worker_catch_up(GjWorker *worker, uint32_t seen, bool *more)
{
	GjTeam	   *team = worker->team;

	worker->has_chunks = false;
	if (!__atomic_load_n(&team->signals.loads, __ATOMIC_RELAXED))
		gj_spin_while(&team->signals.notified, seen, GJ_CATCH_UP_SPIN_US);
	*more = __atomic_load_n(&team->signals.notified, __ATOMIC_ACQUIRE) != seen;
	if (*more)
		return GJ_OK;
	GJ_TRY(gj_run_flush(worker->run));
	return gj_run_wait(worker->run);
}

/* ---- a strategy without anything that goes ahead */

static GjTask *
next_task(GjWorker *worker)
{
	GjTask	   *task = gj_take_task(&worker->own);

	return task ? task : gj_take_task(&worker->team->tasks.probe_side);
}

static bool
has_more(const GjWorker *worker)
{
	return worker->has_chunks;
}

static GjStatus
after_task(GjWorker *worker)
{
	return GJ_OK;
}

static bool
all_complete(GjTeam *team)
{
	return true;
}

void
gj_worker_leave(GjWorker *worker)
{
	if (gj_worker_close_run(worker) == GJ_DEVICE_LOST)
		worker->lost = true;
}

const GjWorkerOps gj_plain_worker = {
	.next_task = next_task,.has_more = has_more,.do_more = gj_worker_catch_up,
	.after_task = after_task,.all_complete = all_complete
};

/* ---- the thread */

/* Notes a failure; all end.  The lock is held. */
static void
fail(GjTeam *team, GjStatus status)
{
	if (team->status == GJ_OK || status == GJ_DEVICE_LOST)
		team->status = status;
	__atomic_store_n(&team->signals.stop, 1, __ATOMIC_RELAXED);
	gj_team_grant(team);
	/* and who waits for a block */
	gj_team_notify(team);
}

void
gj_worker_work(GjWorker *worker)
{
	GjTeam	   *team = worker->team;
	const GjWorkerOps *ops = team->strategy.ops->worker;

	pthread_mutex_lock(&team->lock);
	while (!team->tasks.closing)
	{
		GjStatus	status = GJ_CANCELLED;
		GjTask	   *task = team->status == GJ_OK ? ops->next_task(worker) : NULL;
		uint32_t	seen = team->signals.notified;
		bool		more = false;
		bool		wakes = task && task->wakes;

		if (!task && (team->status != GJ_OK || !ops->has_more(worker)))
		{
			gj_team_await(team);
			continue;
		}
		team->tasks.nidle--;
		pthread_mutex_unlock(&team->lock);
		if (__atomic_load_n(&team->signals.stop, __ATOMIC_RELAXED) == 0)
			status = gj_worker_error(worker, task ? task->run(worker, task) :
									 ops->do_more(worker, seen, &more));
		if (task && status == GJ_OK)
			status = gj_worker_error(worker, ops->after_task(worker));
		worker->has_chunks |= more;
		if (task && task->shared && status == GJ_OK)
			gj_put_task(&worker->held, task);
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
		if (team->tasks.nidle == team->nworkers || team->status != GJ_OK || wakes)
			gj_team_wake(team);
	}
	pthread_mutex_unlock(&team->lock);
	team->strategy.ops->leave(worker);
}
