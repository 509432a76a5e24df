/*
 * test_quota.c
 *	  Quotas of roles and databases: groups are apart, queries are processes, and memory comes back.
 */
#include <pthread.h>

#include "daemon/base/lease.h"
#include "unit.h"

static const GjGroup of_role = {.role = 10};
static const GjGroup of_database = {.database = 10};

static bool
always(void *arg)
{
	return true;
}

/* Queries of a group are counted by process. */
void
test_quota_queries(void)
{
	GjQuota    *role = gj_quota_get(&of_role);
	GjQuota    *database = gj_quota_get(&of_database);
	GjQuota    *again = gj_quota_get(&of_role);

	REQUIRE(role && database && role != database);
	CHECK(role == again);
	CHECK_EQUAL(gj_quota_enter(role, 1, 2, NULL, NULL), GJ_OK);
	CHECK_EQUAL(gj_quota_enter(role, 2, 2, NULL, NULL), GJ_OK);
	/* a second run of a query */
	CHECK_EQUAL(gj_quota_enter(role, 1, 2, NULL, NULL), GJ_OK);
	CHECK_EQUAL(gj_quota_enter(again, 3, 2, NULL, NULL), GJ_LIMITED);
	CHECK_EQUAL(gj_quota_enter(again, 3, 2, always, NULL), GJ_CANCELLED);
	/* a larger limit, and another group */
	CHECK_EQUAL(gj_quota_enter(role, 3, 3, NULL, NULL), GJ_OK);
	CHECK_EQUAL(gj_quota_enter(database, 3, 1, NULL, NULL), GJ_OK);
	gj_quota_leave(role, 3);
	/* a query ends with its last run */
	gj_quota_leave(role, 1);
	CHECK_EQUAL(gj_quota_enter(role, 3, 2, NULL, NULL), GJ_LIMITED);
	gj_quota_leave(role, 1);
	CHECK_EQUAL(gj_quota_enter(role, 3, 2, NULL, NULL), GJ_OK);
	gj_quota_leave(role, 2);
	gj_quota_leave(role, 3);
	gj_quota_leave(database, 3);
	gj_quota_put(role);
	gj_quota_put(again);
	gj_quota_put(database);
}

/* What is leased counts, on all devices together; what becomes resident does not. */
void
test_quota_memory(void)
{
	GjDeviceMemory memory[2];
	GjMemoryLimits limits = {.quota = {gj_quota_get(&of_role), 1000}};
	GjMemoryLimits others = {.quota = {gj_quota_get(&of_database), 1000}};
	GjLease		a,
				b,
				c;

	REQUIRE(limits.quota.group && others.quota.group);
	gj_memory_init(&memory[0], 5000);
	gj_memory_init(&memory[1], 5000);
	/* a run may not have more than its group */
	REQUIRE(gj_lease_start(&a, &memory[0], 4000, &limits, NULL, NULL) == GJ_OK);
	CHECK_EQUAL(a.granted, 1000);
	CHECK_EQUAL(gj_lease_left(&a), 1000);
	CHECK(!gj_lease_take(&a, 1001));
	CHECK(!gj_lease_try(&b, &memory[1], 1, &limits));
	CHECK_EQUAL(gj_lease_start(&b, &memory[1], 1, &limits, NULL, NULL), GJ_LIMITED);
	REQUIRE(gj_lease_try(&c, &memory[1], 1000, &others));
	gj_lease_end(&c);
	gj_lease_end(&a);
	CHECK_EQUAL(gj_quota_left(&limits.quota), 1000);

	/* two devices */
	REQUIRE(gj_lease_try(&a, &memory[0], 600, &limits));
	REQUIRE(gj_lease_try(&b, &memory[1], 300, &limits));
	CHECK_EQUAL(gj_lease_left(&a), 700);
	CHECK_EQUAL(gj_lease_free(&b), 400);
	CHECK(gj_lease_take(&b, 400));
	CHECK(!gj_lease_take(&a, 601));
	CHECK(gj_lease_take(&a, 500));
	CHECK_EQUAL(gj_quota_left(&limits.quota), 0);
	pthread_mutex_lock(&memory[0].lock);
	gj_lease_hand_over(&a, 200);
	pthread_mutex_unlock(&memory[0].lock);
	CHECK_EQUAL(gj_quota_left(&limits.quota), 200);
	gj_lease_end(&b);
	/* the device has no room: the quota has it back */
	CHECK(!gj_lease_try(&b, &memory[0], 5001, &others));
	CHECK_EQUAL(gj_quota_left(&others.quota), 1000);
	gj_lease_end(&a);
	CHECK_EQUAL(gj_quota_left(&limits.quota), 1000);
	gj_quota_put(limits.quota.group);
	gj_quota_put(others.quota.group);
}

/* What a run leaves for another one counts, also when its session is gone; nobody waits for it. */
void
test_quota_kept(void)
{
	GjDeviceMemory memory;
	const GjMemoryLimits limits = {.quota = {gj_quota_get(&of_role), 1000}};
	GjMemoryQuota again = {NULL, 1000};
	GjLease		a,
				b;

	REQUIRE(limits.quota.group);
	gj_memory_init(&memory, 5000);
	REQUIRE(gj_lease_try(&a, &memory, 600, &limits) && gj_lease_take(&a, 400));
	pthread_mutex_lock(&memory.lock);
	gj_lease_keep(&a, 400);
	pthread_mutex_unlock(&memory.lock);
	CHECK_EQUAL(memory.pinned, 400);
	CHECK_EQUAL(gj_quota_left(&limits.quota), 400);
	CHECK_EQUAL(gj_quota_most(&limits.quota), 600);
	gj_lease_end(&a);
	gj_quota_put(limits.quota.group);

	again.group = gj_quota_get(&of_role);
	CHECK(again.group == limits.quota.group);
	CHECK_EQUAL(gj_quota_left(&again), 600);
	/* at once: as much as it can ever get */
	REQUIRE(gj_lease_start(&b, &memory, 4000, &(GjMemoryLimits) {.quota = again}, NULL, NULL) == GJ_OK);
	CHECK_EQUAL(b.granted, 600);
	gj_lease_end(&b);
	gj_quota_put(again.group);
	gj_quota_drop(&again, 400);
	again.group = gj_quota_get(&of_role);
	CHECK_EQUAL(gj_quota_left(&again), 1000);
	CHECK_EQUAL(gj_quota_most(&again), 1000);
	gj_quota_put(again.group);
}

/* A thread's query, and how many there were at once. */
typedef struct Crowd
{
	uint32_t	pid;
	uint32_t   *now;			/* atomic, of all threads; so is *most */
	uint32_t   *most;
} Crowd;

static void *
crowd_main(void *arg)
{
	const Crowd *crowd = arg;

	for (int i = 0; i < 300; i++)
	{
		GjQuota    *quota = gj_quota_get(&of_role);
		GjMemoryQuota memory = {quota, 100};
		uint32_t	n;

		if (gj_quota_enter(quota, crowd->pid, 3, NULL, NULL) == GJ_OK)
		{
			n = __atomic_add_fetch(crowd->now, 1, __ATOMIC_SEQ_CST);
			if (n > __atomic_load_n(crowd->most, __ATOMIC_SEQ_CST))
				__atomic_store_n(crowd->most, n, __ATOMIC_SEQ_CST);
			if (gj_quota_take(&memory, 40))
				gj_quota_give(&memory, 40);
			__atomic_sub_fetch(crowd->now, 1, __ATOMIC_SEQ_CST);
			gj_quota_leave(quota, crowd->pid);
		}
		gj_quota_put(quota);
	}
	return NULL;
}

/* Never more than there may be, and nothing is left. */
void
test_quota_threads(void)
{
	uint32_t	now = 0;
	uint32_t	most = 0;
	Crowd		crowd[8];
	pthread_t	threads[8];
	GjMemoryQuota quota;

	for (uint32_t i = 0; i < 8; i++)
	{
		crowd[i] = (Crowd) {i + 1, &now, &most};
		REQUIRE(pthread_create(&threads[i], NULL, crowd_main, &crowd[i]) == 0);
	}
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	CHECK(most >= 1 && most <= 3);
	quota = (GjMemoryQuota) {gj_quota_get(&of_role), 100};
	CHECK_EQUAL(gj_quota_left(&quota), 100);
	CHECK_EQUAL(gj_quota_enter(quota.group, 1, 1, NULL, NULL), GJ_OK);
	gj_quota_leave(quota.group, 1);
	gj_quota_put(quota.group);
}
