/*
 * parallel_load.h
 *	  Worker processes that help a run to load tables.
 *
 * They are PostgreSQL's parallel workers, in a ParallelContext of the run's own: same
 * transaction, same snapshot, same settings.  Each attaches to the run with a connection
 * and a load ring of its own and takes shares of the same tables (load/share.h).
 */
#ifndef GJ_PARALLEL_LOAD_H
#define GJ_PARALLEL_LOAD_H

#include "portability/instr_time.h"
#include "storage/shm_toc.h"

#include "load/source.h"

typedef struct GjParallelLoad GjParallelLoad;

/* What the loading side did, summed over runs and, but for times, over processes. */
typedef struct GjLoadStats
{
	uint64		npages[GJ_MAX_SOURCES];
	uint64		nvisible[GJ_MAX_SOURCES];
	uint64		nresident[GJ_MAX_SOURCES];	/* pages that were not read */
	double		ms[GJ_MAX_SOURCES]; /* filling slots, all processes */
	double		wait_ms;		/* the session's own process: waiting for gpujoind */
	double		start_ms;		/* connect, submit, map, launch workers */
	double		elapsed_ms;		/* from the first page to the last, in whatever process */
	int			nlaunched;		/* workers, the most of any run */
} GjLoadStats;

/* Workers that loading `npages` pages of tables may use here and now; 0: none. */
extern int	gj_loader_workers_for(double npages);

/*
 * Launches up to nworkers workers for a run, and puts shares that they have in common into
 * the readers.  readers[s] = NULL or not shareable: the caller loads source s alone.
 * Parallel mode must be on.  Keeps the readers until gj_parallel_load_end().
 */
extern GjParallelLoad *gj_parallel_load_start(int nworkers, const GjProgram *program,
											  const GjRunToken *token, Snapshot snapshot,
											  GjSourceReader **readers);

extern int	gj_parallel_load_launched(const GjParallelLoad *load);

/*
 * Stops the workers and waits for their end; the run's connection must be closed, or all
 * sources have ended.  Errors of workers are raised.  Adds what they did to *stats, and tells
 * in *end when the last of them had loaded its last page.  True if one of them has noted a
 * failure of its source, which is then *failure.
 */
extern bool gj_parallel_load_end(GjParallelLoad *load, GjLoadStats *stats, instr_time *end,
								 GjFailure *failure);

/* What a worker runs; named to PostgreSQL. */
extern PGDLLEXPORT void gj_parallel_load_main(struct dsm_segment *segment, shm_toc *toc);

#endif							/* GJ_PARALLEL_LOAD_H */
