/*
 * test_lease.c
 *	  Leases of device memory: nothing is given twice, and who waits comes in turn.
 */
#include <string.h>
#include <time.h>

#include "daemon/base/lease.h"
#include "unit.h"

static const GjMemoryLimits unlimited = {0};
static const GjMemoryLimits limit_500 = {.run = 500};
static const GjMemoryLimits limit_5000 = {.run = 5000};

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

static bool
start(GjLease *lease, GjDeviceMemory *memory, uint64_t nbytes)
{
	return gj_lease_start(lease, memory, nbytes, &unlimited, NULL, NULL) == GJ_OK;
}

/* Every byte is counted, and comes back. */
void
test_lease_accounting(void)
{
	GjDeviceMemory memory;
	GjLease		a,
				b;

	gj_memory_init(&memory, 1000);
	REQUIRE(start(&a, &memory, 600));
	CHECK_EQUAL(memory.leased, 600);
	CHECK(gj_lease_take(&a, 250));
	CHECK(gj_lease_take(&a, 250));
	CHECK_EQUAL(a.used, 500);
	CHECK_EQUAL(memory.used, 500);
	/* what the device has beside the lease, too */
	CHECK_EQUAL(gj_lease_left(&a), 500);
	REQUIRE(gj_lease_try(&b, &memory, 300, &unlimited));
	CHECK_EQUAL(memory.nleases, 2);
	CHECK_EQUAL(gj_lease_left(&a), 200);
	/* beyond the lease, where nobody has it */
	CHECK(gj_lease_take(&a, 180));
	CHECK_EQUAL(memory.leased, 980);
	CHECK(!gj_lease_take(&a, 21));
	CHECK_EQUAL(a.used, 680);
	CHECK(gj_lease_take(&a, 20));
	CHECK(gj_lease_take(&b, 300));
	CHECK(!gj_lease_take(&b, 1));
	gj_lease_give(&a, 700);
	CHECK_EQUAL(a.used, 0);
	CHECK_EQUAL(a.peak, 700);
	/* it is still leased */
	CHECK(!gj_lease_take(&b, 1));
	gj_lease_end(&a);
	CHECK(gj_lease_take(&b, 1));
	gj_lease_give(&b, 301);
	gj_lease_end(&b);
	gj_lease_end(&b);
	CHECK_EQUAL(memory.leased, 0);
	CHECK_EQUAL(memory.used, 0);
	CHECK_EQUAL(memory.nleases, 0);
}

/* The limits of the device and of a session. */
void
test_lease_limits(void)
{
	GjDeviceMemory memory;
	GjLease		lease;

	gj_memory_init(&memory, 1000);
	CHECK_EQUAL(gj_lease_start(&lease, &memory, 1001, &unlimited, NULL, NULL), GJ_OUT_OF_MEMORY);
	CHECK(!gj_lease_try(&lease, &memory, 1001, &unlimited));
	CHECK_EQUAL(gj_lease_start(&lease, &memory, 1001, &limit_500, NULL, NULL), GJ_OUT_OF_MEMORY);
	CHECK_EQUAL(memory.nleases, 0);
	/* a session gets as much as it may have */
	REQUIRE(gj_lease_start(&lease, &memory, 800, &limit_500, NULL, NULL) == GJ_OK);
	CHECK_EQUAL(lease.granted, 500);
	CHECK(gj_lease_take(&lease, 500));
	CHECK(!gj_lease_take(&lease, 1));
	CHECK(!gj_lease_take(&lease, UINT64_MAX));
	gj_lease_give(&lease, 500);
	gj_lease_end(&lease);
	/* a limit above the device's is none */
	REQUIRE(gj_lease_start(&lease, &memory, 10, &limit_5000, NULL, NULL) == GJ_OK);
	CHECK_EQUAL(lease.limit, 1000);
	CHECK_EQUAL(gj_lease_left(&lease), 1000);
	gj_lease_end(&lease);
}

static void
spare_some(void *arg)
{
	gj_lease_give(arg, 400);
}

/* Where memory is short a run gives back once what it can do without. */
void
test_lease_spare(void)
{
	GjDeviceMemory memory;
	GjLease		lease;

	gj_memory_init(&memory, 1000);
	REQUIRE(start(&lease, &memory, 1000));
	lease.spare = spare_some;
	lease.spare_arg = &lease;
	CHECK(gj_lease_take(&lease, 900));
	CHECK(lease.spare != NULL);
	CHECK(gj_lease_take(&lease, 300));
	CHECK_EQUAL(lease.used, 800);
	CHECK(lease.spare == NULL);
	CHECK(!gj_lease_take(&lease, 300));
	CHECK_EQUAL(lease.used, 800);
	gj_lease_give(&lease, 800);
	gj_lease_end(&lease);
}

static bool
always(void *arg)
{
	++*(int *) arg;
	return true;
}

/* A run waits for a second, or until it is to stop. */
void
test_lease_waits(void)
{
	GjDeviceMemory memory;
	GjLease		a,
				b;
	double		begin = now();
	int			asked = 0;

	gj_memory_init(&memory, 1000);
	REQUIRE(start(&a, &memory, 700));
	CHECK_EQUAL(gj_lease_start(&b, &memory, 400, &unlimited, NULL, NULL), GJ_BUSY);
	CHECK(now() - begin >= GJ_LEASE_WAIT_MS / 1000.0 - 0.001);
	CHECK_EQUAL(gj_lease_start(&b, &memory, 400, &unlimited, always, &asked), GJ_CANCELLED);
	CHECK_EQUAL(asked, 1);
	CHECK(memory.first == NULL && memory.last == NULL);
	CHECK_EQUAL(memory.leased, 700);
	gj_lease_end(&a);
	REQUIRE(start(&b, &memory, 400));
	gj_lease_end(&b);
}

typedef struct Waiter
{
	pthread_t	thread;
	GjDeviceMemory *memory;
	uint64_t	nbytes;
	GjLease		lease;
	GjStatus	status;
	int			turn;			/* when it got its lease */
} Waiter;

static int	turns;				/* atomic */

static void *
wait_for_lease(void *arg)
{
	Waiter	   *w = arg;

	w->status = gj_lease_start(&w->lease, w->memory, w->nbytes, &unlimited, NULL, NULL);
	w->turn = __atomic_add_fetch(&turns, 1, __ATOMIC_SEQ_CST);
	if (w->status == GJ_OK)
		gj_lease_end(&w->lease);
	return NULL;
}

/* Waits until n runs wait. */
static bool
await_waiters(GjDeviceMemory *memory, const Waiter *last)
{
	for (double end = now() + 0.9; now() < end;)
	{
		const struct timespec moment = {0, 1000000};
		bool		waits;

		pthread_mutex_lock(&memory->lock);
		waits = last ? memory->first != memory->last : memory->first != NULL;
		pthread_mutex_unlock(&memory->lock);
		if (waits)
			return true;
		nanosleep(&moment, NULL);
	}
	return false;
}

/* The first who waits gets the next memory, however much it wants; others do not overtake it. */
void
test_lease_order(void)
{
	GjDeviceMemory memory;
	Waiter		large = {.memory = &memory,.nbytes = 1000};
	Waiter		small = {.memory = &memory,.nbytes = 600};
	GjLease		held,
				other;

	gj_memory_init(&memory, 1000);
	__atomic_store_n(&turns, 0, __ATOMIC_SEQ_CST);
	REQUIRE(start(&held, &memory, 500));
	REQUIRE(pthread_create(&large.thread, NULL, wait_for_lease, &large) == 0);
	CHECK(await_waiters(&memory, NULL));
	REQUIRE(pthread_create(&small.thread, NULL, wait_for_lease, &small) == 0);
	CHECK(await_waiters(&memory, &small));
	/* there is room for it, but it has not waited */
	CHECK(!gj_lease_try(&other, &memory, 100, &unlimited));
	gj_lease_end(&held);
	pthread_join(large.thread, NULL);
	pthread_join(small.thread, NULL);
	CHECK_EQUAL(large.status, GJ_OK);
	CHECK_EQUAL(small.status, GJ_OK);
	CHECK(large.lease.memory == NULL && memory.leased == 0 && memory.first == NULL);
}
