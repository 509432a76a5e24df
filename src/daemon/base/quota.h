/*
 * quota.h
 *	  What the sessions of a role, of a database, or of all, may have together: running queries, and
 *	  device memory.
 *
 * A quota is a group of sessions.  The limits are settings of each session, which tells them with
 * its run: gpujoin.max_running_queries, gpujoin.max_device_memory.  So after a change old and new
 * limits hold beside each other, each for runs of its own.
 *
 * A run that finds no room waits GJ_LEASE_WAIT_MS before it holds anything that others want.
 */
#ifndef GJ_DAEMON_BASE_QUOTA_H
#define GJ_DAEMON_BASE_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/messages.h"

typedef struct GjQuota GjQuota;

/* A part of a quota's memory, as a run knows it. */
typedef struct GjMemoryQuota
{
	GjQuota    *group;			/* NULL: there is no limit */
	uint64_t	limit;			/* bytes, of the group */
} GjMemoryQuota;

/*
 * The quota of a group, which is kept until gj_quota_put().  NULL: out of memory.
 */
extern GjQuota *gj_quota_get(const GjGroup *group);
extern void gj_quota_put(GjQuota *quota);

/*
 * A run of process `pid` begins; those of one process count as one query.  GJ_LIMITED if there
 * are `most` queries for too long, GJ_CANCELLED if stop(arg) says so, GJ_OUT_OF_HOST_MEMORY.
 */
extern GjStatus gj_quota_enter(GjQuota *quota, uint32_t pid, uint32_t most,
							   bool (*stop) (void *), void *arg);
extern void gj_quota_leave(GjQuota *quota, uint32_t pid);

/* Waits until `nbytes` of memory are left, and takes them.  As gj_quota_enter. */
extern GjStatus gj_quota_await(const GjMemoryQuota *quota, uint64_t nbytes,
							   bool (*stop) (void *), void *arg);

/* Takes memory.  False: so much is not left. */
extern bool gj_quota_take(const GjMemoryQuota *quota, uint64_t nbytes);
extern void gj_quota_give(const GjMemoryQuota *quota, uint64_t nbytes);

/* Bytes that can be taken now; UINT64_MAX: there is no limit. */
extern uint64_t gj_quota_left(const GjMemoryQuota *quota);

/*
 * Taken memory outlives its run, as rows of a stage do.  It stays taken until gj_quota_drop(), and
 * so long the quota is there.
 */
extern void gj_quota_keep(const GjMemoryQuota *quota, uint64_t nbytes);
extern void gj_quota_drop(const GjMemoryQuota *quota, uint64_t nbytes);

/* Bytes that a run can ever get, all but those kept; UINT64_MAX: there is no limit. */
extern uint64_t gj_quota_most(const GjMemoryQuota *quota);

#endif							/* GJ_DAEMON_BASE_QUOTA_H */
