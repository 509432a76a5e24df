/*
 * lease.c
 *	  Accounting of device memory; see lease.h.
 *
 * Leases are granted in order of arrival: the first waiter gets the next memory,
 * however much it wants.  Waits are bounded, for PostgreSQL cannot see a deadlock
 * that goes through here.
 */
#include "lease.h"
#include "spin.h"

#include <assert.h>
#include <string.h>
#include <time.h>

/* How often a waiter looks whether it is to stop. */
#define GJ_LEASE_POLL_MS	10

/* Part of a device's memory that programs may lease; the rest is for its own needs. */
#define GJ_LEASABLE			0.9

/* Lives on the stack of the thread that waits; linked under memory->lock. */
struct GjLeaseWaiter
{
	GjLeaseWaiter *next;
};

/* Nothing is resident. */
static bool
give_nothing(void *arg, uint64_t nbytes)
{
	(void) arg;
	(void) nbytes;
	return false;
}

void
gj_memory_init(GjDeviceMemory *memory, uint64_t limit)
{
	pthread_condattr_t attr;

	memset(memory, 0, sizeof(*memory));
	memory->total = limit;
	memory->limit = limit;
	memory->evictor = (GjEvictor) {give_nothing, NULL};
	pthread_mutex_init(&memory->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&memory->changed, &attr);
	pthread_condattr_destroy(&attr);
}

uint64_t
gj_memory_leasable(uint64_t nbytes)
{
	return (uint64_t) ((double) nbytes * GJ_LEASABLE);
}

/* True if `nbytes` more can be leased; resident data makes room.  The lock is held. */
static bool
make_room(GjDeviceMemory *memory, uint64_t nbytes)
{
	uint64_t	taken = memory->leased + memory->resident;

	if (nbytes == 0 || (taken <= memory->limit && nbytes <= memory->limit - taken))
		return true;
	return memory->evictor.give_way(memory->evictor.arg, nbytes + taken - memory->limit);
}

uint64_t
gj_memory_limit(GjDeviceMemory *memory)
{
	uint64_t	limit;

	pthread_mutex_lock(&memory->lock);
	limit = memory->limit;
	pthread_mutex_unlock(&memory->lock);
	return limit;
}

uint64_t
gj_memory_look(GjDeviceMemory *memory, bool now)
{
	int64_t		at = gj_now_us();
	uint64_t	limit;
	bool		known;

	pthread_mutex_lock(&memory->lock);
	limit = memory->limit;
	known = !memory->room.look ||
		(!now && memory->looked_us != 0 && at - memory->looked_us < GJ_LOOK_MS * INT64_C(1000));
	if (!known)
		memory->looked_us = at;
	pthread_mutex_unlock(&memory->lock);
	if (known)
		return limit;

	limit = gj_memory_leasable(memory->room.look(memory->room.arg));
	if (limit > memory->total)
		limit = memory->total;
	pthread_mutex_lock(&memory->lock);
	memory->limit = limit;
	if (memory->first)
		pthread_cond_broadcast(&memory->changed);
	pthread_mutex_unlock(&memory->lock);
	return limit;
}

bool
gj_memory_shrink(GjDeviceMemory *memory)
{
	uint64_t	taken;
	bool		shrinks;

	pthread_mutex_lock(&memory->lock);
	taken = memory->leased + memory->resident;
	shrinks = taken > memory->limit && memory->resident > memory->pinned;
	if (shrinks)
		(void) memory->evictor.give_way(memory->evictor.arg, taken - memory->limit);
	pthread_mutex_unlock(&memory->lock);
	return shrinks;
}

void
gj_memory_short(GjDeviceMemory *memory, uint64_t nbytes)
{
	(void) gj_memory_look(memory, true);
	pthread_mutex_lock(&memory->lock);
	(void) memory->evictor.give_way(memory->evictor.arg, nbytes);
	pthread_mutex_unlock(&memory->lock);
}

static void
enqueue(GjDeviceMemory *memory, GjLeaseWaiter *waiter)
{
	waiter->next = NULL;
	if (memory->last)
		memory->last->next = waiter;
	else
		memory->first = waiter;
	memory->last = waiter;
}

static void
dequeue(GjDeviceMemory *memory, GjLeaseWaiter *waiter)
{
	GjLeaseWaiter *before = NULL;

	for (GjLeaseWaiter *w = memory->first; w != waiter; w = w->next)
		before = w;
	if (before)
		before->next = waiter->next;
	else
		memory->first = waiter->next;
	if (memory->last == waiter)
		memory->last = before;
	pthread_cond_broadcast(&memory->changed);
}

/* Waits until `waiter` is the first and there is room.  The lock is held. */
static GjStatus
wait_for_turn(GjDeviceMemory *memory, GjLeaseWaiter *waiter, uint64_t nbytes,
			  bool (*stop) (void *), void *arg)
{
	const int64_t deadline = gj_now_us() + GJ_LEASE_WAIT_MS * INT64_C(1000);

	for (;;)
	{
		int64_t		now = gj_now_us();
		int64_t		wake = now + GJ_LEASE_POLL_MS * INT64_C(1000);
		struct timespec until;
		bool		stopped;

		if (memory->first == waiter && make_room(memory, nbytes))
			return GJ_OK;
		if (now >= deadline)
			return GJ_BUSY;
		if (wake > deadline)
			wake = deadline;
		until.tv_sec = wake / 1000000;
		until.tv_nsec = wake % 1000000 * 1000;
		pthread_cond_timedwait(&memory->changed, &memory->lock, &until);

		pthread_mutex_unlock(&memory->lock);
		stopped = stop && stop(arg);
		pthread_mutex_lock(&memory->lock);
		if (stopped)
			return GJ_CANCELLED;
	}
}

/* Returns how much of `nbytes` the session may have; more than there is if that is less. */
static uint64_t
init_lease(GjLease *lease, uint64_t limit, uint64_t nbytes, const GjMemoryLimits *limits)
{
	uint64_t	of_quota = gj_quota_most(&limits->quota);

	memset(lease, 0, sizeof(*lease));
	lease->limit = limit;
	lease->quota = limits->quota;
	if (limits->run != 0 && limits->run < lease->limit)
		lease->limit = limits->run;
	if (of_quota < lease->limit)
		lease->limit = of_quota;
	return nbytes > lease->limit && nbytes <= limit ? lease->limit : nbytes;
}

/* The lock is held. */
static void
grant(GjLease *lease, GjDeviceMemory *memory, uint64_t nbytes)
{
	memory->leased += nbytes;
	memory->nleases++;
	lease->memory = memory;
	lease->granted = nbytes;
}

GjStatus
gj_lease_start(GjLease *lease, GjDeviceMemory *memory, uint64_t nbytes,
			   const GjMemoryLimits *limits, bool (*stop) (void *), void *arg)
{
	const uint64_t limit = gj_memory_limit(memory);
	GjLeaseWaiter waiter;
	GjStatus	status;

	nbytes = init_lease(lease, limit, nbytes, limits);
	if (nbytes > limit)
		return GJ_OUT_OF_MEMORY;
	/* whose group has no room does not keep others from the device */
	status = gj_quota_await(&lease->quota, nbytes, stop, arg);
	if (status != GJ_OK)
		return status;
	pthread_mutex_lock(&memory->lock);
	enqueue(memory, &waiter);
	status = wait_for_turn(memory, &waiter, nbytes, stop, arg);
	dequeue(memory, &waiter);
	if (status == GJ_OK)
		grant(lease, memory, nbytes);
	pthread_mutex_unlock(&memory->lock);
	if (status != GJ_OK)
		gj_quota_give(&lease->quota, nbytes);
	return status;
}

bool
gj_lease_try(GjLease *lease, GjDeviceMemory *memory, uint64_t nbytes, const GjMemoryLimits *limits)
{
	bool		ok;

	nbytes = init_lease(lease, gj_memory_limit(memory), nbytes, limits);
	if (!gj_quota_take(&lease->quota, nbytes))
		return false;
	pthread_mutex_lock(&memory->lock);
	/* whoever waits comes first */
	ok = !memory->first && nbytes <= memory->limit && make_room(memory, nbytes);
	if (ok)
		grant(lease, memory, nbytes);
	pthread_mutex_unlock(&memory->lock);
	if (!ok)
		gj_quota_give(&lease->quota, nbytes);
	return ok;
}

static bool
take(GjLease *lease, uint64_t nbytes)
{
	GjDeviceMemory *memory = lease->memory;
	uint64_t	more = 0;
	bool		ok;

	if (nbytes > lease->limit - lease->used)
		return false;
	if (lease->used + nbytes > lease->granted)
		more = lease->used + nbytes - lease->granted;

	if (!gj_quota_take(&lease->quota, more))
		return false;
	pthread_mutex_lock(&memory->lock);
	ok = make_room(memory, more);
	if (ok)
	{
		memory->leased += more;
		memory->used += nbytes;
		lease->granted += more;
		lease->used += nbytes;
	}
	pthread_mutex_unlock(&memory->lock);
	if (!ok)
		gj_quota_give(&lease->quota, more);
	else if (lease->used > lease->peak)
		lease->peak = lease->used;
	return ok;
}

bool
gj_lease_take(GjLease *lease, uint64_t nbytes)
{
	void		(*spare) (void *arg) = lease->spare;

	if (take(lease, nbytes))
		return true;
	if (!spare)
		return false;
	lease->spare = NULL;
	spare(lease->spare_arg);
	return take(lease, nbytes);
}

/* Bytes that can be taken; resident data stay if `keep`, else only those that are pinned. */
static uint64_t
bytes_left(GjLease *lease, bool keep)
{
	GjDeviceMemory *memory = lease->memory;
	uint64_t	of_quota = gj_quota_left(&lease->quota);
	uint64_t	of_device;
	uint64_t	unused;
	uint64_t	left;
	uint64_t	taken;

	pthread_mutex_lock(&memory->lock);
	unused = lease->granted - lease->used;
	left = lease->limit - lease->used;
	taken = memory->leased + (keep ? memory->resident : memory->pinned);
	of_device = taken < memory->limit ? memory->limit - taken : 0;
	pthread_mutex_unlock(&memory->lock);
	if (of_quota < of_device)
		of_device = of_quota;
	return of_device + unused < left ? of_device + unused : left;
}

uint64_t
gj_lease_left(GjLease *lease)
{
	return bytes_left(lease, false);
}

uint64_t
gj_lease_free(GjLease *lease)
{
	return bytes_left(lease, true);
}

void
gj_lease_give(GjLease *lease, uint64_t nbytes)
{
	GjDeviceMemory *memory = lease->memory;

	assert(nbytes <= lease->used);
	pthread_mutex_lock(&memory->lock);
	lease->used -= nbytes;
	memory->used -= nbytes;
	pthread_mutex_unlock(&memory->lock);
}

/* What the lease counts becomes resident data, pinned. */
static void
become_resident(GjLease *lease, uint64_t nbytes)
{
	GjDeviceMemory *memory = lease->memory;

	assert(nbytes <= lease->used);
	lease->used -= nbytes;
	lease->granted -= nbytes;
	memory->used -= nbytes;
	memory->leased -= nbytes;
	memory->resident += nbytes;
	memory->pinned += nbytes;
}

void
gj_lease_hand_over(GjLease *lease, uint64_t nbytes)
{
	become_resident(lease, nbytes);
	gj_quota_give(&lease->quota, nbytes);
}

void
gj_lease_keep(GjLease *lease, uint64_t nbytes)
{
	become_resident(lease, nbytes);
	gj_quota_keep(&lease->quota, nbytes);
}

void
gj_lease_end(GjLease *lease)
{
	GjDeviceMemory *memory = lease->memory;

	if (!memory)
		return;
	pthread_mutex_lock(&memory->lock);
	memory->used -= lease->used;
	memory->leased -= lease->granted;
	memory->nleases--;
	pthread_cond_broadcast(&memory->changed);
	pthread_mutex_unlock(&memory->lock);
	gj_quota_give(&lease->quota, lease->granted);
	lease->memory = NULL;
}
