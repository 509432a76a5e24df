/*
 * tasks.c
 *	  Tasks from the session's thread to workers, and requests from workers to it: a slot of the
 *	  output ring, the sending of a batch, slots of load rings to be given back.
 *
 * Tasks for every device (build chunks, ends) are in the worker's own list, probe chunks in one
 * list that all workers take from.
 */
#define _GNU_SOURCE
#include "state.h"
#include "daemon/base/base.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/store/store.h"

/* How often the session's thread looks whether it is to stop, while it waits for workers. */
#define GJ_TEAM_POLL_MS	5

/* ---- who wakes whom */

void
gj_team_wake(GjTeam *team)
{
	const uint64_t one = 1;

	__atomic_add_fetch(&team->signals.woken, 1, __ATOMIC_RELEASE);
	while (write(team->signals.wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void
gj_team_notify(GjTeam *team)
{
	__atomic_add_fetch(&team->signals.notified, 1, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&team->work);
}

void
gj_team_await(GjTeam *team)
{
	uint32_t	seen = team->signals.notified;

	if (!__atomic_load_n(&team->signals.loads, __ATOMIC_RELAXED))
	{
		pthread_mutex_unlock(&team->lock);
		gj_spin_while(&team->signals.notified, seen, GJ_TEAM_SPIN_US);
		pthread_mutex_lock(&team->lock);
	}
	if (team->signals.notified == seen)
		pthread_cond_wait(&team->work, &team->lock);
}

void
gj_worker_await_grant(GjWorker *worker)
{
	worker->waits = true;
	pthread_cond_wait(&worker->team->granted, &worker->team->lock);
	worker->waits = false;
}

void
gj_team_grant(GjTeam *team)
{
	/* before they know: whoever has what it has waited for goes on */
	for (uint32_t i = 0; i < team->nworkers; i++)
		team->workers[i].waits = false;
	pthread_cond_broadcast(&team->granted);
}

/* ---- errors */

GjStatus
gj_team_fail(GjTeam *team, GjStatus status, const char *text)
{
	pthread_mutex_lock(&team->lock);
	snprintf(team->error.text, sizeof(team->error.text), "%s", text);
	pthread_mutex_unlock(&team->lock);
	return status;
}

GjStatus
gj_team_note_error(GjTeam *team, GjStatus status, const char *text)
{
	pthread_mutex_lock(&team->lock);
	if (team->error.text[0] == '\0')
		snprintf(team->error.text, sizeof(team->error.text), "%s", text);
	pthread_mutex_unlock(&team->lock);
	return status;
}

GjStatus
gj_team_store_fails(GjTeam *team, GjStatus status)
{
	return gj_team_note_error(team, status, team->store.error.text);
}

/* ---- tasks */

void
gj_team_drop_shared(GjTeam *team, GjSharedUses *shared, bool failed)
{
	bool		last;

	pthread_mutex_lock(&team->lock);
	shared->unnoted |= failed;
	last = --shared->nusers == 0;
	pthread_mutex_unlock(&team->lock);
	if (!last)
		return;
	for (uint32_t i = 0; i < team->nworkers; i++)
		gj_resident_give_back(&team->workers[i].entry->memory, shared->used,
							  shared->unnoted ? NULL : shared->uses, shared->n);
	free(shared);
}

void
gj_team_free_task(GjTeam *team, GjTask *task)
{
	if (!task)
		return;
	if (task->shared)
		gj_team_drop_shared(team, task->shared, true);
	if (task->block)
		gj_team_drop_block(team, task->block);
	free(task->uses);
	free(task);
}

void
gj_team_drop_block(GjTeam *team, GjBlock *block)
{
	pthread_mutex_lock(&team->lock);
	block->nusers--;
	gj_team_notify(team);
	pthread_mutex_unlock(&team->lock);
}

void
gj_team_post(GjTeam *team, GjTaskList *list, GjTask *task)
{
	pthread_mutex_lock(&team->lock);
	gj_put_task(list, task);
	gj_team_notify(team);
	pthread_mutex_unlock(&team->lock);
}

GjStatus
gj_team_post_copies(GjTeam *team, const GjTask *task)
{
	GjTask	   *tasks[GJ_MAX_RUN_DEVICES];
	bool		made = true;

	for (uint32_t i = 0; i < team->nworkers; i++)
	{
		tasks[i] = malloc(sizeof(GjTask));
		if (tasks[i])
			*tasks[i] = *task;
		made &= tasks[i] != NULL;
	}
	if (!made)
	{
		for (uint32_t i = 0; i < team->nworkers; i++)
			free(tasks[i]);
		return GJ_OUT_OF_HOST_MEMORY;
	}
	/* all are woken at once */
	pthread_mutex_lock(&team->lock);
	for (uint32_t i = 0; i < team->nworkers; i++)
		gj_put_task(&team->workers[i].own, tasks[i]);
	gj_team_notify(team);
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}

GjStatus
gj_team_post_for_all(GjTeam *team, GjTaskRun run, uint32_t source)
{
	return gj_team_post_copies(team, &(GjTask) {.run = run,.source = source});
}

GjStatus
gj_team_for_all(GjTeam *team, GjTaskRun run, uint32_t source)
{
	GJ_TRY(gj_team_post_for_all(team, run, source));
	return gj_team_drain(team);
}

/* ---- in the session's thread */

/* Gives slots of the load ring back that all have read. */
static GjStatus
free_slots(GjTeam *team)
{
	GjSlotUse  *list;
	GjStatus	status = GJ_OK;

	pthread_mutex_lock(&team->lock);
	list = team->input.freed;
	team->input.freed = NULL;
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
 * Grants the request of the worker that has the output ring.  The host may receive messages
 * meanwhile and call gj_team_serve again.
 */
static GjStatus
grant_request(GjTeam *team)
{
	GjRequest		what;
	uint32_t	nrows;
	uint8_t    *slot = NULL;
	GjStatus	status;

	pthread_mutex_lock(&team->lock);
	what = team->output.request;
	nrows = team->output.nrows;
	pthread_mutex_unlock(&team->lock);
	if (what == GJ_REQUEST_NOTHING || team->output.serving)
		return GJ_OK;
	team->output.serving = true;
	if (what == GJ_REQUEST_SLOT)
		status = team->target.final->slot(team->target.arg, &slot);
	else
		status = team->target.final->send(team->target.arg, nrows);
	team->output.serving = false;
	GJ_TRY(status);
	pthread_mutex_lock(&team->lock);
	team->output.slot = slot;
	team->output.request = GJ_REQUEST_NOTHING;
	gj_team_grant(team);
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}

GjStatus
gj_team_serve(GjTeam *team)
{
	uint64_t	count;
	GjStatus	status;

	if (team->signals.wake_fd < 0)
		return GJ_OK;
	/* before looking, so that what comes afterwards wakes us again */
	while (read(team->signals.wake_fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	GJ_TRY(free_slots(team));
	GJ_TRY(grant_request(team));
	pthread_mutex_lock(&team->lock);
	status = team->status;
	pthread_mutex_unlock(&team->lock);
	return status;
}

/* True if there is something that no worker has begun.  The lock is held. */
static bool
has_tasks(const GjTeam *team)
{
	bool		any = team->tasks.probe_side.first != NULL;

	for (uint32_t i = 0; i < team->nworkers; i++)
		any |= team->workers[i].own.first || team->workers[i].ahead.first;
	return any;
}

/* True if no worker has anything to do. */
static bool
is_idle(GjTeam *team)
{
	bool		idle;

	pthread_mutex_lock(&team->lock);
	idle = team->tasks.nidle == team->nworkers && !has_tasks(team);
	pthread_mutex_unlock(&team->lock);
	return idle;
}

bool
gj_team_await_workers(GjTeam *team, uint32_t seen, bool look)
{
	struct pollfd fd = {.fd = team->signals.wake_fd,.events = POLLIN};

	if (look && !team->signals.loads)
		gj_spin_while(&team->signals.woken, seen, GJ_TEAM_SPIN_US);
	if (__atomic_load_n(&team->signals.woken, __ATOMIC_ACQUIRE) == seen)
		poll(&fd, 1, GJ_TEAM_POLL_MS);
	return __atomic_load_n(&team->signals.woken, __ATOMIC_ACQUIRE) != seen;
}

bool
gj_team_waits(GjTeam *team)
{
	uint32_t	nresting;
	bool		rests;

	pthread_mutex_lock(&team->lock);
	nresting = team->tasks.nidle;
	for (uint32_t i = 0; i < team->nworkers; i++)
		nresting += team->workers[i].waits;
	rests = nresting == team->nworkers && !has_tasks(team);
	pthread_mutex_unlock(&team->lock);
	return rests;
}

GjStatus
gj_team_drain(GjTeam *team)
{
	bool		look = true;

	for (;;)
	{
		uint32_t	seen = __atomic_load_n(&team->signals.woken, __ATOMIC_ACQUIRE);
		bool		idle = is_idle(team);

		GJ_TRY(gj_team_serve(team));
		if (idle)
			return GJ_OK;
		if (team->host->stop(team->host->arg))
			return GJ_CANCELLED;
		look = gj_team_await_workers(team, seen, look);
	}
}

uint64_t
gj_team_lease_left(GjTeam *team)
{
	uint64_t	least = UINT64_MAX;

	for (uint32_t i = 0; i < team->nworkers; i++)
	{
		uint64_t	left = gj_lease_left(&team->workers[i].lease);

		if (left < least)
			least = left;
	}
	return least;
}
