/*
 * lease.h
 *	  Accounting of device memory: every byte that a run holds is counted here.
 *
 * A run asks for a lease, an amount that it expects to need, before it starts and
 * waits its turn for it.  What it allocates is then taken from the lease; an
 * allocation beyond it extends the lease if the device has room.  So a run that has
 * its lease never waits for another one, and no two runs can block each other.
 *
 * Resident data fills the memory that nobody leases.  When a lease needs that memory,
 * resident data that no run is using is evicted at once.  The store registers an evictor
 * for that.
 */
#ifndef GJ_DAEMON_BASE_LEASE_H
#define GJ_DAEMON_BASE_LEASE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "quota.h"
#include "wire/reasons.h"

/* How long a run waits for its lease before its session is told GJ_BUSY. */
#define GJ_LEASE_WAIT_MS	1000

/* What was seen of a device's memory counts for so long. */
#define GJ_LOOK_MS			100

typedef struct GjLeaseWaiter GjLeaseWaiter;

/* Makes room: gives up `nbytes` of resident data, or more.  False: fewer.  The lock is held. */
typedef struct GjEvictor
{
	bool		(*give_way) (void *arg, uint64_t nbytes);
	void	   *arg;			/* NULL: nothing has ever been resident */
} GjEvictor;

/* Bytes that this process has of a device's memory, and those that nobody has.  May take long. */
typedef struct GjRoom
{
	uint64_t	(*look) (void *arg);	/* NULL: all of the device's memory, always */
	void	   *arg;
} GjRoom;

/*
 * The memory of one device.  Fields are guarded by `lock`, but for total and room, which do not
 * change.  What is leased or resident can exceed `limit` where another process took memory.
 */
typedef struct GjDeviceMemory
{
	pthread_mutex_t lock;
	pthread_cond_t changed;		/* memory came back, or the first waiter left */
	uint64_t	total;			/* bytes that may be leased if no other process has any */
	GjRoom		room;
	int64_t		looked_us;		/* when `limit` was found */
	uint64_t	limit;			/* bytes that may be leased; at most `total` */
	uint64_t	leased;			/* bytes leased now */
	uint64_t	used;			/* bytes allocated now, by all leases */
	uint64_t	resident;		/* bytes of resident data */
	uint64_t	pinned;			/* of these: in use by runs */
	GjEvictor	evictor;		/* of the resident data */
	uint32_t	nleases;
	GjLeaseWaiter *first;		/* who waits, in order of arrival */
	GjLeaseWaiter *last;
} GjDeviceMemory;

/* What a session may have. */
typedef struct GjMemoryLimits
{
	uint64_t	run;			/* bytes of one run on one device; 0: there is no limit */
	GjMemoryQuota quota;		/* what it has with others */
} GjMemoryLimits;

/*
 * One run's share.  The thread of the run alone changes it, and holds the memory's lock for `granted`
 * and `used`: others ask what is left.
 */
typedef struct GjLease
{
	GjDeviceMemory *memory;
	uint64_t	limit;			/* of this run, at most memory->limit */
	GjMemoryQuota quota;		/* which has what is granted */
	uint64_t	granted;
	uint64_t	used;
	uint64_t	peak;
	/* called once where memory is short: gives back what the run can do without; NULL: nothing */
	void		(*spare) (void *arg);
	void	   *spare_arg;
} GjLease;

/* Part of a device's memory, or of what others left of it, that may be leased. */
extern uint64_t gj_memory_leasable(uint64_t nbytes);

/* Memory of a device that no other process uses, unless `room` is set before it is shared. */
extern void gj_memory_init(GjDeviceMemory *memory, uint64_t limit);

/* Bytes that may be leased, as far as it is known.  The lock is not held. */
extern uint64_t gj_memory_limit(GjDeviceMemory *memory);

/*
 * Finds out what other processes have left, and sets the limit.  Not again within GJ_LOOK_MS, but
 * with `now`.  Returns the limit.  The lock is not held.
 */
extern uint64_t gj_memory_look(GjDeviceMemory *memory, bool now);

/* Gives up resident data that exceeds the limit.  True: there was some. */
extern bool gj_memory_shrink(GjDeviceMemory *memory);

/*
 * The device had no memory for an allocation that was counted: looks, and gives up as much of what
 * is resident.  The allocation is worth a second try then.
 */
extern void gj_memory_short(GjDeviceMemory *memory, uint64_t nbytes);

/*
 * Waits for `nbytes`, an estimate, or for as much of it as the session may have, and
 * starts the lease.  GJ_OUT_OF_MEMORY if the device is too small, GJ_BUSY if there is no room in
 * time, GJ_LIMITED if the quota has none, GJ_CANCELLED if stop(arg) says so.
 */
extern GjStatus gj_lease_start(GjLease *lease, GjDeviceMemory *memory, uint64_t nbytes,
							   const GjMemoryLimits *limits, bool (*stop) (void *), void *arg);

/* The same without waiting.  False: there is no room now, or never. */
extern bool gj_lease_try(GjLease *lease, GjDeviceMemory *memory, uint64_t nbytes,
						 const GjMemoryLimits *limits);

/* Takes or gives back memory.  False: there is no room. */
extern bool gj_lease_take(GjLease *lease, uint64_t nbytes);
extern void gj_lease_give(GjLease *lease, uint64_t nbytes);

/* Bytes that can still be taken, as far as one can tell. */
extern uint64_t gj_lease_left(GjLease *lease);
/* The same without resident data having to go. */
extern uint64_t gj_lease_free(GjLease *lease);

/*
 * What the lease counts becomes resident data, pinned.  The caller holds the lock of the
 * memory and has seen to it that the cache may have it.
 */
extern void gj_lease_hand_over(GjLease *lease, uint64_t nbytes);

/* The same, but it stays taken from the lease's quota: gj_quota_drop() gives it back there. */
extern void gj_lease_keep(GjLease *lease, uint64_t nbytes);

/* Ends the lease, all memory having been given back.  Does nothing the second time. */
extern void gj_lease_end(GjLease *lease);

#endif							/* GJ_DAEMON_BASE_LEASE_H */
