/*
 * thread.c
 *	  The threads of device workers.
 */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>

#include "wire/messages.h"
#include "daemon/base/base.h"

/* what the cpu device works on lies here: some 400 kB, and three times that with sanitizers */
#define GJ_WORKER_STACK		(4 * 1024 * 1024)

/* How long a thread waits for another worker. */
#define GJ_IDLE_SECONDS		10

/*
 * A thread that has left a worker waits for another one for a while, at first without sleeping, for
 * to start a thread takes longer than the rest of what starts a run.
 */
static struct
{
	pthread_mutex_t lock;
	pthread_cond_t left;
	pthread_cond_t wanted;
	uint32_t	nthreads;		/* that wait, guarded by the lock */
	uint32_t	nwaiting;		/* workers; atomic, written under the lock; <= nthreads */
	GjWorker   *first;			/* of these */
}			pool = {.lock = PTHREAD_MUTEX_INITIALIZER,.left = PTHREAD_COND_INITIALIZER,
.wanted = PTHREAD_COND_INITIALIZER};

/* Leaves a worker, which may be gone then, and waits for the next one.  NULL: none has come. */
static GjWorker *
next_worker(GjWorker *worker)
{
	struct timespec end;
	int			error = 0;

	pthread_mutex_lock(&pool.lock);
	__atomic_store_n(&worker->thread.working, false, __ATOMIC_RELEASE);
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
	worker = pool.first;
	if (worker)
	{
		pool.first = worker->thread.next;
		__atomic_store_n(&pool.nwaiting, pool.nwaiting - 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&pool.lock);
	return worker;
}

static void *
worker_main(void *arg)
{
	GjWorker   *worker = arg;

	gj_crash_guard_stack();
	while (worker)
	{
		gj_worker_work(worker);
		worker = next_worker(worker);
	}
	return NULL;
}

/* Gives the worker to a thread that waits for one; false: there is none. */
static bool
find_thread(GjWorker *worker)
{
	bool		found;

	pthread_mutex_lock(&pool.lock);
	found = pool.nwaiting < pool.nthreads;
	if (found)
	{
		worker->thread.next = pool.first;
		pool.first = worker;
		__atomic_store_n(&pool.nwaiting, pool.nwaiting + 1, __ATOMIC_RELEASE);
		pthread_cond_signal(&pool.wanted);
	}
	pthread_mutex_unlock(&pool.lock);
	return found;
}

void
gj_worker_await_end(GjWorker *worker)
{
	GjSpin		spin = gj_spin_start(GJ_TEAM_SPIN_US);

	while (__atomic_load_n(&worker->thread.working, __ATOMIC_ACQUIRE) && gj_spin_on(&spin))
		;
	/* it may still be about to leave: the lock is free when it has */
	pthread_mutex_lock(&pool.lock);
	while (worker->thread.working)
		pthread_cond_wait(&pool.left, &pool.lock);
	pthread_mutex_unlock(&pool.lock);
}

/* False: there is none. */
static bool
start(GjWorker *worker)
{
	pthread_attr_t attr;
	pthread_t	thread;

	worker->thread.started = worker->thread.working = true;
	if (find_thread(worker))
		return true;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, GJ_WORKER_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	worker->thread.started = pthread_create(&thread, &attr, worker_main, worker) == 0;
	pthread_attr_destroy(&attr);
	return worker->thread.started;
}

GjStatus
gj_workers_start(GjTeam *team)
{
	team->signals.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (team->signals.wake_fd < 0)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < team->nworkers; i++)
		if (!start(&team->workers[i]))
			return GJ_OUT_OF_HOST_MEMORY;
	return GJ_OK;
}
