/*
 * run.h
 *	  The state of a run, shared by the files that execute it.
 *
 *	executor.c		opens, takes chunks, finishes, closes
 *	run_build.c		an inner side is complete: filter, keys, hash table
 *	run_stage.c		outer chunks to where the device reads them; slots given back
 *	run_probe.c		outer rows: filter, then the join steps
 *	run_output.c	tuples that passed all steps: aggregates or batches
 *	run_intersect.c	GJ_PROGRAM_INTERSECT
 */
#ifndef GJ_DAEMON_RUN_H
#define GJ_DAEMON_RUN_H

#include "executor.h"
#include "relation.h"
#include "work.h"

/* Working memory of a step, and which sources' row ids pass through it (bits). */
typedef struct GjRunStep
{
	const GjStep *step;
	uint32_t	expand;			/* sources that the residual or anything later reads */
	uint32_t	out;			/* sources that anything later reads */
	GjHashTable table;
	bool		built;
	uint64_t	table_bytes;	/* of the table, taken from the lease */
	GjBuffer	key_values;		/* keys of the tuples that probe */
	GjBuffer	key_nulls;
	GjBuffer	offset;
	GjBuffer	first;
	GjBuffer	rowid[GJ_MAX_SOURCES];	/* the pairs */
	GjBuffer	positions;		/* of the pairs that pass the residual condition */
	GjBuffer	picked[GJ_MAX_SOURCES];
} GjRunStep;

/* Chunks in one stage at most. */
#define GJ_STAGE_PARTS		32

/* A chunk in a stage: its rows, and its part of the heap. */
typedef struct GjStagePart
{
	uint32_t	first;
	uint32_t	nrows;
	uint64_t	heap;
	uint32_t	heap_used;
} GjStagePart;

/*
 * Outer chunks on the device, one behind the other, so that they pass the steps together.
 * There are two: while the steps work on one, chunks are copied to the other.
 */
typedef struct GjStage
{
	GjBuffer	memory;
	uint32_t	nrows;
	uint64_t	heap_used;
	uint32_t	nparts;
	GjStagePart part[GJ_STAGE_PARTS];
} GjStage;

/* A slot of a load ring whose chunk is being copied. */
typedef struct GjUsedSlot
{
	uint32_t	slot;
	uint32_t	mark;
} GjUsedSlot;

/* Marks of a queue: one a slot in use, in turn, then those of the stages. */
#define GJ_SLOT_MARKS		56
#define GJ_MARK_LOADED(i)	(GJ_SLOT_MARKS + (i))	/* stage i: its chunks are there */
#define GJ_MARK_FREE(i)		(GJ_SLOT_MARKS + 2 + (i))	/* its rows are not read any more */

struct GjRun
{
	GjWork		work;
	const GjProgram *program;
	const GjRunHost *host;
	GjErrorText error;			/* of the run itself, else the queue's is told */
	GjRunStats	stats;

	const GjSource *sources;
	const GjColumnType *types;
	const GjExpr *exprs;
	GjColumn   *columns;		/* all of the program's, as set_columns takes them */
	uint8_t    *late;			/* a column: read after its source was built */
	GjColumnPlace *places;		/* of all columns in the chunks of their sources */
	GjLayout	layout[GJ_MAX_SOURCES];
	GjRelation	relation[GJ_MAX_SOURCES];
	uint32_t	ended;			/* sources, one bit each */
	bool		complete;		/* see gj_run_complete */
	bool		failed_once;	/* the failure point was passed */

	uint32_t	nsteps;
	GjRunStep	steps[GJ_MAX_SOURCES];
	uint32_t	max_tuples;		/* to take through a step at a time; 0: not known yet */

	GjStage		stage[2];		/* of outer chunks, unless they are used in place */
	uint32_t	nstages;		/* 0: not made yet; 1 where memory is short */
	uint32_t	filling;		/* the stage that the next chunk goes to */
	uint32_t	stage_rows;		/* capacity of a stage */
	uint64_t	stage_heap;
	GjColumnPlace *stage_places;	/* of the outer columns in a stage */
	uint64_t	stage_heap_place;
	GjUsedSlot	used_slot[GJ_SLOT_MARKS];	/* in order of use */
	uint32_t	first_used;
	uint32_t	nused;
	GjBuffer	filtered;		/* positions of the outer rows that pass the filter */

	bool		count_only;		/* nothing but count(*) is asked for */
	int64_t		counted;		/* rows counted without aggregate() */

	uint32_t	noutputs;
	GjColumnType *output_types;
	GjColumnPlace *output_places;
	GjLayout	output_layout;
	bool		sent_batch;
};

/* However little memory there is, this many tuples are worked on at a time. */
#define GJ_MIN_TUPLES		16384

/* Fewer than n tuples, where memory is short; every part but the last starts aligned. */
static inline uint32_t
gj_fewer_tuples(uint32_t n)
{
	n = n / 2 / GJ_MIN_TUPLES * GJ_MIN_TUPLES;
	return n > 0 ? n : GJ_MIN_TUPLES;
}

#define GJ_STOP_CHECK(run) \
	do { \
		if ((run)->host->stop((run)->host->arg)) \
			return GJ_CANCELLED; \
	} while (0)

/* True once, if the program is to fail at this point. */
extern bool gj_run_fails_at(GjRun *run, GjFailPoint point);
/* Notes more about an error and returns its status. */
extern GjStatus gj_run_fail(GjRun *run, GjStatus status, const char *text);
/* Status of a failure point that every program has when it begins to work on rows. */
extern GjStatus gj_run_fail_points(GjRun *run);

/* run_build.c */
extern GjStatus gj_run_build(GjRun *run, uint32_t source);
extern GjStatus gj_run_fail_build(GjRun *run);

/* run_probe.c */
extern void gj_step_free_probe(GjWork *work, GjRunStep *rs);
extern void gj_step_free_pairs(GjWork *work, GjRunStep *rs);
/* Takes the first nrows rows that the outer columns describe through all steps. */
extern GjStatus gj_run_outer_rows(GjRun *run, uint32_t nrows);

/* run_stage.c */
extern GjStatus gj_run_outer(GjRun *run, const GjChunk *chunk, uint8_t *memory, uint32_t slot);
/* The slot is free once all that is queued on the lane is done. */
extern GjStatus gj_run_slot_used(GjRun *run, GjLane lane, uint32_t slot);
/* Gives back the slots that are free; with `wait`, waits for all. */
extern GjStatus gj_run_free_slots(GjRun *run, bool wait);
extern void gj_run_close_stages(GjRun *run);

/* run_output.c */
extern GjStatus gj_run_output(GjRun *run, const GjView *view);
extern GjStatus gj_run_send(GjRun *run, uint32_t nrows, uint64_t nbytes);
extern GjStatus gj_run_send_states(GjRun *run, const GjAggState *states, uint32_t n);

/* run_intersect.c */
extern GjStatus gj_run_intersect(GjRun *run);

#endif							/* GJ_DAEMON_RUN_H */
