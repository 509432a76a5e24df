/*
 * program.h
 *	  Decides whether a program is one that can be run.
 */
#ifndef GJ_DAEMON_PROGRAM_PROGRAM_H
#define GJ_DAEMON_PROGRAM_PROGRAM_H

#include "device/device.h"

/*
 * Checks the `nbytes` bytes at `program`, 8-byte aligned memory of this process alone:
 * every offset, count, index, kind, register and layout.  After GJ_OK nothing that is
 * in it can lead outside it, outside a slot or outside a register file.
 */
extern GjStatus gj_program_check(const GjProgram *program, uint32_t nbytes, GjErrorText *why);

/*
 * Notes the questions about columns of the probe side (rows/expression.h) in a checked program.
 * Such a program must not be checked again.
 */
extern void gj_program_find_questions(GjProgram *program);

/* What is known of a column, or of a value, in some rows, as a register holds it. */
typedef struct GjBounds
{
	int64_t		low;			/* the least value that is not NULL, or less */
	int64_t		high;			/* the greatest one, or more; less than low: all are NULL */
	bool		has_null;		/* some may be NULL */
} GjBounds;

/*
 * False: in no row that has its columns, numbered from first_column on, within these bounds, is the
 * condition of a checked program TRUE; and PostgreSQL raises no error where it evaluates that.
 */
extern bool gj_program_can_be_true(const GjProgram *program, uint32_t condition,
								   const GjBounds *columns, uint32_t first_column);

/*
 * Gives a checked program the expressions that its nested loops compare (comparisons.c), which may
 * move it.  False: out of host memory.
 */
extern bool gj_program_add_operands(GjProgram **program);

/* A comparison of both sides of a step; operands as ordered_keys takes them. */
typedef struct GjComparison
{
	uint8_t		op;				/* GjTermOp */
	bool		narrow;			/* all values fit 32 bits */
	bool		has_constant;	/* one of the sides reads no column */
	int32_t		probe_side;
	int32_t		build_side;
} GjComparison;

/*
 * Comparisons that have to be true for the residual condition of a step: returns how many,
 * GJ_MAX_KEYS at most.  *exact: it says nothing else.
 */
extern uint32_t gj_program_comparisons(const GjProgram *program, const GjStep *step,
									   GjComparison *comparisons, bool *exact);

/* Columns of a batch of rows of a checked program. */
extern uint32_t gj_program_noutputs(const GjProgram *program);

/*
 * Their types, and where they are in a batch: types and places have room for
 * gj_program_noutputs().  False: they do not fit, which cannot be once checked.
 */
extern bool gj_program_layout_output(const GjProgram *program, GjColumnType *types,
									 GjLayout *layout, GjColumnPlace *places);

/*
 * Where the columns of all sources are in chunks: layouts[nsources], places[ncolumns].  False: they
 * do not fit, which cannot be once checked.
 */
extern bool gj_program_layout_chunks(const GjProgram *program, GjLayout *layouts,
									 GjColumnPlace *places);

/* Sources whose columns an expression of a checked program reads, one bit each. */
extern uint32_t gj_expr_sources(const GjProgram *program, uint32_t expr);

/* The step that joins a build source. */
extern const GjStep *gj_program_step_of(const GjProgram *program, uint32_t source);

/* True if the keys of a step read no source but the probe source: rows can be split by them. */
extern bool gj_step_keys_of_probe_side(const GjProgram *program, const GjStep *step);
/* What a checked program does, as text for the log: joins, counts, and the sink's name. */
extern void gj_program_shape(const GjProgram *program, const char *sink, char *text, uint32_t size);

/* ---- what comes out of a step, by its join type */

/* Pairs. */
static inline bool
gj_step_makes_pairs(const GjStep *step)
{
	return step->join_type <= GJ_JOIN_FULL;
}

/* Tuples by themselves: with a match (semi join) or without. */
static inline bool
gj_step_makes_tuples(const GjStep *step)
{
	return step->join_type == GJ_JOIN_LEFT || step->join_type == GJ_JOIN_FULL ||
		step->join_type == GJ_JOIN_SEMI || step->join_type == GJ_JOIN_ANTI;
}

/* Rows of the source by themselves, at the end: with a match (right semi join) or without. */
static inline bool
gj_step_makes_rows(const GjStep *step)
{
	return step->join_type == GJ_JOIN_RIGHT || step->join_type == GJ_JOIN_FULL ||
		step->join_type == GJ_JOIN_RIGHT_SEMI || step->join_type == GJ_JOIN_RIGHT_ANTI;
}

/* True if those tuples or rows are the ones with a match. */
static inline bool
gj_step_wants_matched(const GjStep *step)
{
	return step->join_type == GJ_JOIN_SEMI || step->join_type == GJ_JOIN_RIGHT_SEMI;
}

#endif							/* GJ_DAEMON_PROGRAM_PROGRAM_H */
