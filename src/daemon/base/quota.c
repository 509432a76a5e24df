/*
 * quota.c
 *	  What the sessions of a group may have together; see quota.h.
 *
 * One lock guards all groups.  It may be taken while a device's memory is locked, and holds nobody
 * up for longer than it takes to look at a list of the queries that run.
 */
#include "quota.h"
#include "lease.h"
#include "spin.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

/* How often a waiter looks. */
#define GJ_QUOTA_POLL_MS	5

/* A process with runs. */
typedef struct GjMember
{
	uint32_t	pid;
	uint32_t	nruns;
	struct GjMember *next;
} GjMember;

/* All fields are guarded by the lock. */
struct GjQuota
{
	GjGroup		group;
	uint32_t	nusers;			/* who has got it and not put it back */
	uint32_t	nmembers;
	GjMember   *members;
	uint64_t	nbytes;			/* taken */
	uint64_t	kept;			/* of these: by no run */
	GjQuota    *next;
};

static struct
{
	pthread_mutex_t lock;
	GjQuota    *first;
}			quotas = {.lock = PTHREAD_MUTEX_INITIALIZER};

GjQuota *
gj_quota_get(const GjGroup *group)
{
	GjQuota    *quota;

	pthread_mutex_lock(&quotas.lock);
	for (quota = quotas.first; quota; quota = quota->next)
		if (quota->group.role == group->role && quota->group.database == group->database)
			break;
	if (!quota && (quota = calloc(1, sizeof(GjQuota))) != NULL)
	{
		quota->group = *group;
		quota->next = quotas.first;
		quotas.first = quota;
	}
	if (quota)
		quota->nusers++;
	pthread_mutex_unlock(&quotas.lock);
	return quota;
}

void
gj_quota_put(GjQuota *quota)
{
	GjQuota   **link;

	pthread_mutex_lock(&quotas.lock);
	if (--quota->nusers == 0)
	{
		assert(quota->nmembers == 0 && quota->nbytes == 0);
		for (link = &quotas.first; *link != quota; link = &(*link)->next)
			;
		*link = quota->next;
		free(quota);
	}
	pthread_mutex_unlock(&quotas.lock);
}

/* Waits for a moment, unless the deadline has come.  The lock is held before and after. */
static GjStatus
wait_a_moment(int64_t deadline, bool (*stop) (void *), void *arg)
{
	bool		stopped;

	if (gj_now_us() >= deadline)
		return GJ_LIMITED;
	pthread_mutex_unlock(&quotas.lock);
	poll(NULL, 0, GJ_QUOTA_POLL_MS);
	stopped = stop && stop(arg);
	pthread_mutex_lock(&quotas.lock);
	return stopped ? GJ_CANCELLED : GJ_OK;
}

/* The lock is held, here and below. */
static GjMember **
find_member(GjQuota *quota, uint32_t pid)
{
	GjMember  **link = &quota->members;

	while (*link && (*link)->pid != pid)
		link = &(*link)->next;
	return link;
}

static GjStatus
add_member(GjQuota *quota, uint32_t pid)
{
	GjMember   *member = calloc(1, sizeof(GjMember));

	if (!member)
		return GJ_OUT_OF_HOST_MEMORY;
	*member = (GjMember) {.pid = pid,.nruns = 1,.next = quota->members};
	quota->members = member;
	quota->nmembers++;
	return GJ_OK;
}

GjStatus
gj_quota_enter(GjQuota *quota, uint32_t pid, uint32_t most, bool (*stop) (void *), void *arg)
{
	const int64_t deadline = gj_now_us() + GJ_LEASE_WAIT_MS * INT64_C(1000);
	GjStatus	status = GJ_OK;
	GjMember   *member;

	pthread_mutex_lock(&quotas.lock);
	while (status == GJ_OK && *find_member(quota, pid) == NULL && quota->nmembers >= most)
		status = wait_a_moment(deadline, stop, arg);
	if (status == GJ_OK)
	{
		member = *find_member(quota, pid);
		if (member)
			member->nruns++;
		else
			status = add_member(quota, pid);
	}
	pthread_mutex_unlock(&quotas.lock);
	return status;
}

void
gj_quota_leave(GjQuota *quota, uint32_t pid)
{
	GjMember  **link;
	GjMember   *member;

	pthread_mutex_lock(&quotas.lock);
	link = find_member(quota, pid);
	member = *link;
	if (--member->nruns == 0)
	{
		*link = member->next;
		free(member);
		quota->nmembers--;
	}
	pthread_mutex_unlock(&quotas.lock);
}

/* ---- memory */

static uint64_t
bytes_left(const GjMemoryQuota *quota)
{
	return quota->group->nbytes < quota->limit ? quota->limit - quota->group->nbytes : 0;
}

GjStatus
gj_quota_await(const GjMemoryQuota *quota, uint64_t nbytes, bool (*stop) (void *), void *arg)
{
	const int64_t deadline = gj_now_us() + GJ_LEASE_WAIT_MS * INT64_C(1000);
	GjStatus	status = GJ_OK;

	if (!quota->group)
		return GJ_OK;
	pthread_mutex_lock(&quotas.lock);
	while (status == GJ_OK && bytes_left(quota) < nbytes)
		status = wait_a_moment(deadline, stop, arg);
	if (status == GJ_OK)
		quota->group->nbytes += nbytes;
	pthread_mutex_unlock(&quotas.lock);
	return status;
}

bool
gj_quota_take(const GjMemoryQuota *quota, uint64_t nbytes)
{
	bool		ok;

	if (!quota->group || nbytes == 0)
		return true;
	pthread_mutex_lock(&quotas.lock);
	ok = bytes_left(quota) >= nbytes;
	if (ok)
		quota->group->nbytes += nbytes;
	pthread_mutex_unlock(&quotas.lock);
	return ok;
}

void
gj_quota_give(const GjMemoryQuota *quota, uint64_t nbytes)
{
	if (!quota->group || nbytes == 0)
		return;
	pthread_mutex_lock(&quotas.lock);
	assert(quota->group->nbytes >= nbytes);
	quota->group->nbytes -= nbytes;
	pthread_mutex_unlock(&quotas.lock);
}

uint64_t
gj_quota_left(const GjMemoryQuota *quota)
{
	uint64_t	left;

	if (!quota->group)
		return UINT64_MAX;
	pthread_mutex_lock(&quotas.lock);
	left = bytes_left(quota);
	pthread_mutex_unlock(&quotas.lock);
	return left;
}

void
gj_quota_keep(const GjMemoryQuota *quota, uint64_t nbytes)
{
	if (!quota->group)
		return;
	pthread_mutex_lock(&quotas.lock);
	quota->group->nusers++;
	quota->group->kept += nbytes;
	pthread_mutex_unlock(&quotas.lock);
}

void
gj_quota_drop(const GjMemoryQuota *quota, uint64_t nbytes)
{
	if (!quota->group)
		return;
	pthread_mutex_lock(&quotas.lock);
	quota->group->kept -= nbytes;
	pthread_mutex_unlock(&quotas.lock);
	gj_quota_give(quota, nbytes);
	gj_quota_put(quota->group);
}

uint64_t
gj_quota_most(const GjMemoryQuota *quota)
{
	uint64_t	most;

	if (!quota->group)
		return UINT64_MAX;
	pthread_mutex_lock(&quotas.lock);
	most = quota->group->kept < quota->limit ? quota->limit - quota->group->kept : 0;
	pthread_mutex_unlock(&quotas.lock);
	return most;
}
