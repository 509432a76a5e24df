/*
 * thread.c
 *	  Threads of members of teams.
 */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>

#include "wire/messages.h"
#include "daemon/base/base.h"

/* what the cpu device works on lies here: some 400 kB, and three times that with sanitizers */
#define GJ_MEMBER_STACK		(4 * 1024 * 1024)

/* How long a thread waits for another member. */
#define GJ_IDLE_SECONDS		10

/*
 * A thread that has left a member waits for another one for a while, at first without sleeping, for to
 * start a thread takes longer than the rest of what starts a run.
 */
static struct
{
	pthread_mutex_t lock;
	pthread_cond_t left;
	pthread_cond_t wanted;
	uint32_t	nthreads;		/* that wait, guarded by the lock */
	uint32_t	nwaiting;		/* members; atomic, written under the lock: never more than threads */
	GjMember   *first;			/* of these */
}			pool = {.lock = PTHREAD_MUTEX_INITIALIZER,.left = PTHREAD_COND_INITIALIZER,
.wanted = PTHREAD_COND_INITIALIZER};

/* Leaves a member, which may be gone then, and waits for the next one.  NULL: none has come. */
static GjMember *
next_member(GjMember *member)
{
	struct timespec end;
	int			error = 0;

	pthread_mutex_lock(&pool.lock);
	__atomic_store_n(&member->thread.working, false, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&pool.left);
	pool.nthreads++;
	pthread_mutex_unlock(&pool.lock);
	gj_spin_while(&pool.nwaiting, 0, GJ_SPIN_US);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += GJ_IDLE_SECONDS;
	pthread_mutex_lock(&pool.lock);
	while (!pool.first && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&pool.wanted, &pool.lock, &end);
	pool.nthreads--;
	member = pool.first;
	if (member)
	{
		pool.first = member->thread.next;
		__atomic_store_n(&pool.nwaiting, pool.nwaiting - 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&pool.lock);
	return member;
}

static void *
member_main(void *arg)
{
	GjMember   *member = arg;

	while (member)
	{
		gj_member_work(member);
		member = next_member(member);
	}
	return NULL;
}

/* Gives the member to a thread that waits for one; false: there is none. */
static bool
find_thread(GjMember *member)
{
	bool		found;

	pthread_mutex_lock(&pool.lock);
	found = pool.nwaiting < pool.nthreads;
	if (found)
	{
		member->thread.next = pool.first;
		pool.first = member;
		__atomic_store_n(&pool.nwaiting, pool.nwaiting + 1, __ATOMIC_RELEASE);
		pthread_cond_signal(&pool.wanted);
	}
	pthread_mutex_unlock(&pool.lock);
	return found;
}

void
gj_member_await_end(GjMember *member)
{
	GjSpin		spin = gj_spin_start(GJ_TEAM_SPIN_US);

	while (__atomic_load_n(&member->thread.working, __ATOMIC_ACQUIRE) && gj_spin_on(&spin))
		;
	/* it may still be about to leave: the lock is free when it has */
	pthread_mutex_lock(&pool.lock);
	while (member->thread.working)
		pthread_cond_wait(&pool.left, &pool.lock);
	pthread_mutex_unlock(&pool.lock);
}

/* False: there is none. */
static bool
start(GjMember *member)
{
	pthread_attr_t attr;
	pthread_t	thread;
	sigset_t	all,
				old;

	member->thread.started = member->thread.working = true;
	if (find_thread(member))
		return true;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, GJ_MEMBER_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	member->thread.started = pthread_create(&thread, &attr, member_main, member) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return member->thread.started;
}

GjStatus
gj_members_start(GjTeam *team)
{
	team->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (team->wake_fd < 0)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < team->nmembers; i++)
		if (!start(&team->members[i]))
			return GJ_OUT_OF_HOST_MEMORY;
	return GJ_OK;
}
