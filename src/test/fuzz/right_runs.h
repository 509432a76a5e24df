/*
 * right_runs.h
 *	  Programs that are right, and runs of them whose answers are known.
 */
#ifndef GJ_TEST_RIGHT_RUNS_H
#define GJ_TEST_RIGHT_RUNS_H

#include "conversation.h"

#define STAGE_COLUMNS	3

/* Groups of a source by its only column, with their counts, as rows of a source. */
typedef struct Stage
{
	GjProgram	head;
	GjSource	source;
	GjColumnType columns[2];	/* one of them is there for the place of what follows */
	GjExpr		expr;
	GjInstr		instr;
	GjAggregate aggregate;
	GjGroupKey	key;
	GjStageColumn results[STAGE_COLUMNS];
} Stage;

/* count(*) of a source that is joined with such groups. */
typedef struct Reader
{
	GjProgram	head;
	GjSource	sources[2];
	GjColumnType columns[1 + STAGE_COLUMNS];
	GjExpr		exprs[2];
	GjInstr		instrs[2];
	GjStep		step;
	GjAggregate aggregate;
} Reader;

extern Stage make_stage(void);

/* Source 1 is the stage; or source 0, if that is probed. */
extern Reader make_reader(bool probes);

/*
 * These run on connections of their own, and end the process if gpujoind does not answer right.
 *
 * Joins 900 rows of 0 .. 8 with 12 of 0 .. 3: 100 times 3 of each of four.
 */
extern void check_answer(void);

/*
 * A stage of 900 rows of 0 .. 8, which is read twice: by 12 rows of 0 .. 3, and by a run that is not loaded
 * before the stage's connection is closed.
 */
extern void check_stages(void);

#endif							/* GJ_TEST_RIGHT_RUNS_H */
