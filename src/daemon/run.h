/*
 * run.h
 *	  The state of a run, shared by the files that execute it.
 *
 *	executor.c		opens, takes chunks, finishes, closes
 *	run_build.c		an inner side is complete: filter, keys, hash table
 *	run_probe.c		an outer chunk: filter, then the join steps
 *	run_output.c	tuples that passed all steps: aggregates or batches
 *	run_group.c		the same: groups
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

	GjBuffer	staging;		/* the outer chunk, unless it is used in place */
	GjBuffer	filtered;		/* positions of the outer rows that pass the filter */

	bool		count_only;		/* nothing but count(*) is asked for */
	int64_t		counted;		/* rows counted without aggregate() */

	uint32_t	noutputs;
	GjColumnType *output_types;
	GjColumnPlace *output_places;
	GjLayout	output_layout;
	bool		sent_batch;

	struct GjGrouping *grouping;	/* GJ_OUTPUT_GROUPS, from the first tuples on */
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
extern GjStatus gj_run_outer(GjRun *run, const GjChunk *chunk, uint8_t *memory, uint32_t slot);

/* run_output.c */
extern GjStatus gj_run_output(GjRun *run, const GjView *view);
extern GjStatus gj_run_send(GjRun *run, uint32_t nrows, uint64_t nbytes);
extern GjStatus gj_run_send_states(GjRun *run, const GjAggState *states, uint32_t n);

/* run_group.c */
extern GjStatus gj_run_group(GjRun *run, const GjView *view);
extern GjStatus gj_run_send_groups(GjRun *run);
extern void gj_run_free_groups(GjRun *run);

/* run_intersect.c */
extern GjStatus gj_run_intersect(GjRun *run);

#endif							/* GJ_DAEMON_RUN_H */
