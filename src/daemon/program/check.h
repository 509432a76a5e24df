/*
 * check.h
 *	  What check.c, check_exprs.c, check_stage.c and questions.c share; they implement program.h.
 */
#ifndef GJ_DAEMON_PROGRAM_CHECK_H
#define GJ_DAEMON_PROGRAM_CHECK_H

#include "program.h"

/* What is known while a program is checked. */
typedef struct GjCheck
{
	const GjProgram *program;
	const GjSource *sources;
	const GjColumnType *columns;
	const GjStep *steps;
	const GjExpr *exprs;
	const GjInstr *instrs;
	const uint32_t *outputs;
	const GjAggregate *aggregates;
	const GjGroupKey *group_keys;
	const GjSetStep *set_steps;
	const GjSortKey *sort_keys;
	GjErrorText *why;
} GjCheck;

/* Says why the program is refused; returns false. */
extern bool gj_check_fails(GjCheck *check, const char *format,...)
			__attribute__((format(printf, 2, 3)));

/* True if all expressions have instructions, which use columns and registers as they may. */
extern bool gj_check_exprs(GjCheck *check);

/* The registers that an instruction of a checked program reads, one bit each. */
extern uint32_t gj_check_reads(const GjInstr *instr);

/* True if column i has a kind that there is, and its width. */
extern bool gj_check_column(GjCheck *check, const GjColumnType *type, uint32_t i);

/*
 * True if the program is no stage, or its result, all groups or the aggregates, can be chunks of a
 * source.  Called when all else was checked.
 */
extern bool gj_check_stage(GjCheck *check);

#endif							/* GJ_DAEMON_PROGRAM_CHECK_H */
