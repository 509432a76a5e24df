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

typedef struct GjRemoteRun GjRemoteRun;

typedef enum GjRemoteResult
{
	GJ_REMOTE_BATCH,
	GJ_REMOTE_DONE,
	GJ_REMOTE_FAILED
} GjRemoteResult;

/* A batch, where gpujoind has put it.  Nothing in it was checked; gj_emitter_check() does. */
typedef struct GjBatch
{
	const uint8 *bytes;
	uint32		slot;			/* of the output ring */
	uint32		nrows;			/* as the message says */
} GjBatch;

/* A run of the program, which lives in the current memory context and keeps `program`. */
extern GjRemoteRun *gj_remote_create(const GjProgram *program, GjLoadStats *stats);

/* Sets the reader of a source; all must be set before the run is submitted. */
extern void gj_remote_set_reader(GjRemoteRun *run, int source, GjSourceReader *reader);

/*
 * The same of a source whose rows are the result of a stage: of `stage`, which has come to its end
 * (gj_remote_keep) and is open as long as this run.
 */
extern void gj_remote_set_stage(GjRemoteRun *run, int source, const GjRemoteRun *stage);

/* True if gpujoind no longer has the result of a stage that has come to its end. */
extern bool gj_remote_is_lost(const GjRemoteRun *run);

/*
 * Runs a stage to its end, after it was submitted: its result is in gpujoind until gj_remote_end.
 * False with the reason if it fails.
 */
extern bool gj_remote_keep(GjRemoteRun *run, GjFailure *failure);

/*
 * Submits the program, and finds out what of its heap sources is resident; up to `most` workers could help
 * to load them.  False with the reason if that fails.
 */
extern bool gj_remote_submit(GjRemoteRun *run, int most, GjFailure *failure);

/* Has watch(arg) be called after each chunk, and each message that was waited for. */
extern void gj_remote_watch(GjRemoteRun *run, void (*watch) (void *), void *arg);

/* Where plan sources put long values, and the output finds them. */
extern GjHeldValues *gj_remote_held(GjRemoteRun *run);

/*
 * Has up to `most` workers help to load what is not resident, if there is enough of it, after the run
 * was submitted.  Where there can be workers, parallel mode must be on, and stays needed until gj_remote_end().
 */
extern void gj_remote_launch(GjRemoteRun *run, int most, Snapshot snapshot);

/* True if workers were launched and have not been waited for. */
extern bool gj_remote_has_workers(const GjRemoteRun *run);

/* Loads until there is a batch, the end, or a failure. */
extern GjRemoteResult gj_remote_next(GjRemoteRun *run, GjBatch *batch, GjFailure *failure);

/* The batch is no longer needed. */
extern void gj_remote_free_batch(GjRemoteRun *run, uint32 slot);

extern const GjRunStats *gj_remote_stats(const GjRemoteRun *run);

/* Closes readers and connection; waits for workers, and raises their errors. */
extern void gj_remote_end(GjRemoteRun *run);

/*
 * In a worker: takes part in loading a run that the leader has submitted.  NULL with the
 * reason if that is not possible (any more).
 */
extern GjRemoteRun *gj_remote_attach(const GjProgram *program, uint32 device_kind,
									 const GjRunToken *token, GjLoadStats *stats,
									 GjFailure *failure);

/*
 * In a worker: loads, and ends all sources, until nothing is left, *stop is set, or the run
 * is over.  False with the reason if a source fails.
 */
extern bool gj_remote_load(GjRemoteRun *run, pg_atomic_uint32 *stop, GjFailure *failure);

#endif							/* GJ_RUN_H */
