/*
 * pool.c
 *	  Threads that share the items of jobs; see pool.h.
 *
 * A job lives in the memory of the thread that asked for it.  It is in the pool's list
 * while threads may join it; its owner takes it out when no item is left and waits
 * for those that are still at work.
 */
#include "pool.h"

#include <pthread.h>
#include <stdlib.h>

struct GjPool
{
	pthread_mutex_t lock;
	pthread_cond_t work;		/* a job has come, or the end */
	pthread_cond_t idle;		/* a thread has left a job */
	GjJob	   *jobs;			/* guarded by lock, as is ending */
	bool		ending;
	uint32_t	nthreads;
	pthread_t	threads[];
};

bool
gj_tile_open(GjTile *tile)
{
	tile->stride = GJ_TILE_ROWS;
	tile->value = calloc((size_t) GJ_MAX_REGISTERS * GJ_TILE_ROWS, sizeof(int64_t));
	tile->null = calloc((size_t) GJ_MAX_REGISTERS * GJ_TILE_ROWS, 1);
	if (tile->value && tile->null)
		return true;
	gj_tile_close(tile);
	return false;
}

void
gj_tile_close(GjTile *tile)
{
	free(tile->value);
	free(tile->null);
	tile->value = NULL;
	tile->null = NULL;
}

static void
work_on(GjJob *job, const GjTile *tile)
{
	uint32_t	item;

	while ((item = __atomic_fetch_add(&job->item, 1, __ATOMIC_RELAXED)) < job->nitems)
		job->task(job->arg, item, tile);
}

/* A job that has items left, moved to the end of the list so that all get their turn. */
static GjJob *
find_job(GjPool *pool)
{
	for (GjJob **j = &pool->jobs; *j; j = &(*j)->next)
	{
		GjJob	   *job = *j;

		if (__atomic_load_n(&job->item, __ATOMIC_RELAXED) >= job->nitems)
			continue;
		*j = job->next;
		job->next = NULL;
		while (*j)
			j = &(*j)->next;
		*j = job;
		return job;
	}
	return NULL;
}

static void *
thread_main(void *arg)
{
	GjPool	   *pool = arg;
	GjTile		tile;
	bool		ok = gj_tile_open(&tile);

	pthread_mutex_lock(&pool->lock);
	while (!pool->ending)
	{
		GjJob	   *job = ok ? find_job(pool) : NULL;

		if (!job)
		{
			pthread_cond_wait(&pool->work, &pool->lock);
			continue;
		}
		job->nworkers++;
		pthread_mutex_unlock(&pool->lock);
		work_on(job, &tile);
		pthread_mutex_lock(&pool->lock);
		if (--job->nworkers == 0)
			pthread_cond_broadcast(&pool->idle);
	}
	pthread_mutex_unlock(&pool->lock);
	gj_tile_close(&tile);
	return NULL;
}

GjPool *
gj_pool_open(uint32_t nthreads)
{
	GjPool	   *pool = calloc(1, sizeof(GjPool) + nthreads * sizeof(pthread_t));

	if (!pool)
		return NULL;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	pthread_cond_init(&pool->idle, NULL);
	/* the thread that asks for work is one of them; fewer threads do as well */
	for (uint32_t i = 1; i < nthreads; i++)
		if (pthread_create(&pool->threads[pool->nthreads], NULL, thread_main, pool) == 0)
			pool->nthreads++;
	return pool;
}

void
gj_pool_close(GjPool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->ending = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (uint32_t i = 0; i < pool->nthreads; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_mutex_destroy(&pool->lock);
	pthread_cond_destroy(&pool->work);
	pthread_cond_destroy(&pool->idle);
	free(pool);
}

/* The owner's share of a job.  False: it was stopped.  It asks even if others leave it nothing to do. */
static bool
work_as_owner(GjJob *job, const GjTile *tile, bool (*stop) (void *), void *stop_arg)
{
	uint32_t	item;
	bool		asked = false;

	while ((item = __atomic_fetch_add(&job->item, 1, __ATOMIC_RELAXED)) < job->nitems)
	{
		job->task(job->arg, item, tile);
		if (stop && stop(stop_arg))
		{
			/* a value at which no further addition can wrap around to an item */
			__atomic_store_n(&job->item, UINT32_MAX / 2, __ATOMIC_RELAXED);
			return false;
		}
		asked = true;
	}
	return asked || !stop || !stop(stop_arg);
}

static void
take_out(GjPool *pool, GjJob *job)
{
	GjJob	  **j = &pool->jobs;

	while (*j != job)
		j = &(*j)->next;
	*j = job->next;
}

/* Puts a job into the list and wakes so many threads. */
static void
post(GjPool *pool, GjJob *job, uint32_t n)
{
	pthread_mutex_lock(&pool->lock);
	job->next = pool->jobs;
	pool->jobs = job;
	if (n < pool->nthreads)
		for (uint32_t i = 0; i < n; i++)
			pthread_cond_signal(&pool->work);
	else
		pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
}

void
gj_pool_start(GjPool *pool, GjJob *job, uint32_t nitems, GjPoolTask task, void *arg)
{
	*job = (GjJob) {.task = task,.arg = arg,.nitems = nitems};
	if (pool->nthreads > 0)
		post(pool, job, nitems);
}

bool
gj_pool_finish(GjPool *pool, GjJob *job, const GjTile *tile, bool (*stop) (void *), void *stop_arg)
{
	bool		done = work_as_owner(job, tile, stop, stop_arg);

	if (pool->nthreads == 0)
		return done;
	pthread_mutex_lock(&pool->lock);
	take_out(pool, job);
	while (job->nworkers > 0)
		pthread_cond_wait(&pool->idle, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
	return done;
}

bool
gj_pool_run(GjPool *pool, uint32_t nitems, GjPoolTask task, void *arg, const GjTile *tile,
			bool (*stop) (void *), void *stop_arg)
{
	GjJob		job = {.task = task,.arg = arg,.nitems = nitems};

	if (nitems <= 1 || pool->nthreads == 0)
		return work_as_owner(&job, tile, stop, stop_arg);
	post(pool, &job, nitems - 1);
	return gj_pool_finish(pool, &job, tile, stop, stop_arg);
}
