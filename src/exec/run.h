/*
 * run.h
 *	  One run of a program: submit it, load its sources, take in what comes back.
 *
 * A single loop does both directions, so neither ring can block the other: while a
 * slot of the load ring is free it loads, and whatever gpujoind sends is looked at
 * first.  Rows of the first batches therefore return while the probe side still loads.
 */
#ifndef GJ_RUN_H
#define GJ_RUN_H

#include "portability/instr_time.h"

#include "client/client.h"
#include "exec/parallel_load.h"
#include "load/source.h"

typedef struct GjRun GjRun;

typedef enum GjRunResult
{
	GJ_RUN_BATCH,
	GJ_RUN_DONE,
	GJ_RUN_FAILED
} GjRunResult;

/* A batch, where gpujoind has put it.  Nothing in it was checked; gj_emitter_check() does. */
typedef struct GjBatch
{
	const uint8 *bytes;
	uint32		slot;			/* of the output ring */
	uint32		nrows;			/* as the message says */
} GjBatch;

/* A run of the program, which lives in the current memory context and keeps `program`. */
extern GjRun *gj_run_create(const GjProgram *program, GjLoadStats *stats);

/* Sets the reader of a source; all must be set before the run is submitted. */
extern void gj_run_set_reader(GjRun *run, int source, GjSourceReader *reader);

/*
 * Submits the program, and finds out what of its heap sources is resident; up to `most` workers could help
 * to load them.  False with the reason if that fails.
 */
extern bool gj_run_submit(GjRun *run, int most, GjFailure *failure);

/* Where plan sources put long values, and the output finds them. */
extern GjHeldValues *gj_run_held(GjRun *run);

/*
 * Has up to `most` workers help to load what is not resident, if there is enough of it, after the run
 * was submitted.  Where there can be workers, parallel mode must be on, and stays needed until gj_run_end().
 */
extern void gj_run_launch(GjRun *run, int most, Snapshot snapshot);

/* True if workers were launched and have not been waited for. */
extern bool gj_run_has_workers(const GjRun *run);

/* Loads until there is a batch, the end, or a failure. */
extern GjRunResult gj_run_next(GjRun *run, GjBatch *batch, GjFailure *failure);

/* The batch is no longer needed. */
extern void gj_run_free_batch(GjRun *run, uint32 slot);

extern const GjRunStats *gj_run_stats(const GjRun *run);

/* Closes readers and connection; waits for workers, and raises their errors. */
extern void gj_run_end(GjRun *run);

/*
 * In a worker: takes part in loading a run that the leader has submitted.  NULL with the
 * reason if that is not possible (any more).
 */
extern GjRun *gj_run_attach(const GjProgram *program, uint32 device_kind,
							const GjRunToken *token, GjLoadStats *stats, GjFailure *failure);

/*
 * In a worker: loads, and ends all sources, until nothing is left, *stop is set, or the run
 * is over.  False with the reason if a source fails.
 */
extern bool gj_run_load(GjRun *run, pg_atomic_uint32 *stop, GjFailure *failure);

#endif							/* GJ_RUN_H */
