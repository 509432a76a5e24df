/*
 * run/join.h
 *	  How the tuples of a step find their matches: the interface of join algorithms.
 *
 * Joins by tables (hashed or sorted: table.c, table_build.c) and the nested loop (nested.c) are
 * in src/daemon/run, joins of sets in src/daemon/sets, whose joins.c chooses by the step.  All
 * but joins by tables keep their state in rs->join_state, which only their own functions read.
 */
#ifndef GJ_DAEMON_RUN_JOIN_H
#define GJ_DAEMON_RUN_JOIN_H

#include "run.h"
#include "daemon/base/base.h"

typedef struct GjRunStep GjRunStep;

/* What lives until a build side is built. */
typedef struct GjSideBuild
{
	uint32_t	source;
	uint32_t	nrows;			/* rows that pass the filter */
	GjBuffer	rowid;			/* none: all rows */
	GjBuffer	positions;
	GjBuffer	value[GJ_MAX_KEYS];
	GjBuffer	null;
} GjSideBuild;

struct GjJoinOps
{
	const char *name;
	/* Keys are compared by their hashes, not by their order. */
	bool		hashes;
	/*
	 * A probe numbers the pairs of all tuples; else pairs come with their tuples, if anyone asks
	 * for these.
	 */
	bool		numbers_pairs;
	/* What has a match is known by the pairs alone. */
	bool		marks_by_pairs;

	/*
	 * Finds out what the step compares: rs has keys and range; may change rs->residual.  Notes what
	 * else it reads and makes.  False: out of host memory.
	 */
	bool		(*plan) (GjRun *run, GjRunStep *rs);
	/* All steps and the sink are planned. */
	void		(*planned) (GjRun *run, GjRunStep *rs);
	/* Builds a side of at least one row; says in rs->nmatchable whether anything can match. */
	GjStatus	(*build) (GjRun *run, GjSideBuild *build, GjRunStep *rs);
	/*
	 * What was built, or has no row, becomes faster where that is worth it; only late columns are
	 * left.
	 */
	GjStatus	(*improve) (GjRun *run, uint32_t source, GjRunStep *rs);
	/* Takes the pairs of a view's tuples to the next step, or looks at them, or counts them. */
	GjStatus	(*join) (GjRun *run, uint32_t i, const GjView *view);
	/* The probe source has ended. */
	GjStatus	(*end) (GjRun *run, uint32_t i);
	/* Frees what the step keeps, also if plan() was not called. */
	void		(*free) (GjWork *work, GjRunStep *rs);
};

/* For algorithms that do nothing then. */
extern void gj_join_is_planned(GjRun *run, GjRunStep *rs);
extern GjStatus gj_join_is_fast(GjRun *run, uint32_t source, GjRunStep *rs);
extern GjStatus gj_join_has_ended(GjRun *run, uint32_t i);

/* table.c */
extern const GjJoinOps gj_join_hash;
extern const GjJoinOps gj_join_sort_merge;
/* nested.c */
extern const GjJoinOps gj_join_nested_loop;
/* ring.c: instead of a nested loop, where several runs share its build side */
extern const GjJoinOps gj_join_ring;

#endif							/* GJ_DAEMON_RUN_JOIN_H */
