/*
 * pool.h
 *	  Threads of the cpu device, shared by all of its queues and by runs that split their rows.
 *
 * Work is a number of items; the thread that asks for it works on them too, so it is
 * done even if all others are busy, and small work never leaves that thread.
 */
#ifndef GJ_CPU_POOL_H
#define GJ_CPU_POOL_H

#include "rows/expression.h"

/* Rows that an expression is evaluated over at a time. */
#define GJ_TILE_ROWS		1024

typedef struct GjPool GjPool;

/* Works on one item; the tile is the thread's own. */
typedef void (*GjPoolTask) (void *arg, uint32_t item, const GjTile *tile);

/* A job, in the memory of who asks for it; pool.c's. */
typedef struct GjJob
{
	struct GjJob *next;			/* in the list; guarded by the pool's lock */
	GjPoolTask	task;
	void	   *arg;
	uint32_t	nitems;
	uint32_t	item;			/* next item; atomic */
	uint32_t	nworkers;		/* threads at work, but the owner; guarded by the lock */
} GjJob;

/* Threads and memory of cpu devices that are opened from now on; 0: what the machine suggests. */
extern void gj_cpu_configure(uint32_t nthreads, uint64_t memory);

struct GjDevice;
/* Those of an open cpu device (cpu_device.c). */
extern GjPool *gj_cpu_pool(struct GjDevice *device);

extern GjPool *gj_pool_open(uint32_t nthreads);
extern void gj_pool_close(GjPool *pool);

/* Allocates the registers of a tile.  False: out of memory. */
extern bool gj_tile_open(GjTile *tile);
extern void gj_tile_close(GjTile *tile);

/*
 * Runs task for items 0 .. nitems-1 and returns when all are done.  If `stop` is given
 * it is asked between items; once it is true the rest is left out and the result is
 * false.
 */
extern bool gj_pool_run(GjPool *pool, uint32_t nitems, GjPoolTask task, void *arg,
						const GjTile *tile, bool (*stop) (void *), void *stop_arg);

/*
 * The same in two steps: between them the thread that asks does something else.  Each job that is
 * started has to be finished, by one thread, which knows that it was started.
 */
extern void gj_pool_start(GjPool *pool, GjJob *job, uint32_t nitems, GjPoolTask task, void *arg);
extern bool gj_pool_finish(GjPool *pool, GjJob *job, const GjTile *tile, bool (*stop) (void *),
						   void *stop_arg);

#endif							/* GJ_CPU_POOL_H */
