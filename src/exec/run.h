/*
 * run.h
 *	  One run of a program: submit it, load its sources, take in what comes back.
 *
 * A single loop does both directions, so neither ring can block the other: while a
 * slot of the load ring is free it loads, and whatever gpujoind sends is looked at
 * first.  Rows of the first batches therefore return while the outer side still loads.
 */
#ifndef GJ_RUN_H
#define GJ_RUN_H

#include "client/client.h"
#include "load/source.h"

typedef struct GjRun GjRun;

/* What the loading side did, summed over runs. */
typedef struct GjLoadStats
{
	uint64		npages[GJ_MAX_SOURCES];
	uint64		nvisible[GJ_MAX_SOURCES];
	double		ms[GJ_MAX_SOURCES];
	double		wait_ms;		/* waiting for gpujoind */
	double		start_ms;		/* connect, submit, map */
} GjLoadStats;

typedef enum GjRunResult
{
	GJ_RUN_BATCH,
	GJ_RUN_DONE,
	GJ_RUN_FAILED
} GjRunResult;

/*
 * Submits the program.  NULL with the reason if that fails.  The run lives in the
 * current memory context and keeps `program`.
 */
extern GjRun *gj_run_start(const GjProgram *program, GjLoadStats *stats, GjFailure *failure);

/* Sets the reader of a source; all must be set before the first gj_run_next(). */
extern void gj_run_set_reader(GjRun *run, int source, GjSourceReader *reader);

/* Where plan sources put long values, and the output finds them. */
extern GjHeldValues *gj_run_held(GjRun *run);

/* Loads until there is a batch, the end, or a failure.  A batch is slot *slot. */
extern GjRunResult gj_run_next(GjRun *run, const uint8 **batch, uint32 *slot,
							   GjFailure *failure);

/* The batch is no longer needed. */
extern void gj_run_free_batch(GjRun *run, uint32 slot);

extern const GjRunStats *gj_run_stats(const GjRun *run);

/* Closes readers and connection. */
extern void gj_run_end(GjRun *run);

#endif							/* GJ_RUN_H */
