/*
 * nested.h
 *	  What nested loops over all rows of a build side (nested.c) and over blocks of one that several
 *	  runs share (ring.c) have in common.
 */
#ifndef GJ_DAEMON_RUN_NESTED_H
#define GJ_DAEMON_RUN_NESTED_H

#include "state.h"

/* A nested loop's side of a step: it has no table, but all rows with their values. */
typedef struct GjRunNested
{
	int32_t		condition;		/* that the loop looks at itself, or -1 */
	uint32_t	nterms;
	struct
	{
		uint8_t		op;			/* GjTermOp */
		uint8_t		narrow;
		uint8_t		probe_side;	/* number of the operand */
		uint8_t		build_side;
	}			terms[GJ_MAX_KEYS];
	uint32_t	nrows;
	GjBuffer	rows;			/* row ids; none: all rows */
	GjBuffer	value[GJ_MAX_KEYS];
	GjBuffer	null;
	uint32_t	ntiles;			/* to look at in the next call */
} GjRunNested;

/* Rows of a build side on this device, and their values. */
typedef struct GjNestedRows
{
	const uint32_t *rows;		/* row ids; NULL: 0 .. nrows-1 */
	uint32_t	nrows;
	const int64_t *value[GJ_MAX_KEYS];	/* of the build operands; NULL if there are no terms */
	const uint8_t *null;
} GjNestedRows;

/* Functions of GjJoinOps; a build keeps its row ids and values. */
extern bool gj_nested_plan(GjRun *run, GjRunStep *rs);
extern GjStatus gj_nested_build(GjRun *run, GjSideBuild *build, GjRunStep *rs);
extern void gj_nested_free(GjWork *work, GjRunStep *rs);

/* Describes a loop of the view's tuples, of which none has a match yet, but for its rows. */
extern GjStatus gj_nested_start(GjRun *run, GjRunStep *rs, const GjView *view, GjNested *loop);

/* Takes the pairs with these rows to the next step, or looks at them, or counts them. */
extern GjStatus gj_nested_rows(GjRun *run, uint32_t i, GjNested *loop, const GjNestedRows *rows);

/* All rows that were built. */
extern GjNestedRows gj_nested_all(const GjRunStep *rs);

#endif							/* GJ_DAEMON_RUN_NESTED_H */
