/*
 * state.h
 *	  The state of a run, shared by the files that execute it.
 */
#ifndef GJ_DAEMON_RUN_STATE_H
#define GJ_DAEMON_RUN_STATE_H

#include "run.h"
#include "sink.h"
#include "join.h"
#include "daemon/base/base.h"
#include "daemon/program/program.h"
#include "daemon/store/store.h"

/* Working memory of a step for the tuples that probe. */
typedef struct GjRunProbe
{
	GjBuffer	key_values;
	GjBuffer	key_nulls;
	GjBuffer	offset;
	GjBuffer	first;
	GjBuffer	matched;		/* flag of each tuple: has a match */
	GjBuffer	selected;		/* positions of the tuples or rows that go on by themselves */
} GjRunProbe;

/* And for their pairs. */
typedef struct GjRunPairs
{
	GjBuffer	rowid[GJ_MAX_SOURCES];
	GjBuffer	positions;		/* of those that pass the residual condition or the filter */
	GjBuffer	picked[GJ_MAX_SOURCES];
	GjBuffer	tuple;			/* number of each pair's tuple (needs_tuple) */
} GjRunPairs;

/* Build rows without a match: of right, full, right semi and right anti joins. */
typedef struct GjRunUnmatched
{
	GjBuffer	row_matched;	/* GjRowMatch, by row id, or by the number among the rows of all runs */
	uint64_t	nflags;			/* of these */
	uint64_t	first_row;		/* the flag of the build row that has id 0 at present */
	GjBuffer	cover;			/* of rows that a probe finds, without a residual condition */
} GjRunUnmatched;

/* Working memory of a step, and which sources' row ids pass through it (bits). */
struct GjRunStep
{
	const GjStep *step;
	uint32_t	joined;			/* sources joined before */
	uint32_t	expand;			/* sources that the residual, the filter or anything later reads */
	uint32_t	kept;			/* sources that the filter or anything later reads */
	uint32_t	out;			/* sources that anything later reads */
	uint32_t	reads;			/* sources that the join itself reads, beside what it compares */
	uint32_t	makes;			/* sources that the join makes itself: values of pairs */
	bool		needs_tuple;	/* each pair has the number of its tuple */
	int32_t		residual;		/* condition on pairs that keys and range let through, or -1 */
	/* what is compared: expressions or columns, as ordered_keys takes them */
	uint32_t	nprobe_operands;
	uint32_t	nbuild_operands;
	int32_t		probe_operand[GJ_MAX_KEYS];
	int32_t		build_operand[GJ_MAX_KEYS];
	GjSortedMatch match;		/* sort-merge: what a probe looks for */
	GjHashTable table;			/* without rows: nothing can match */
	bool		built;
	uint64_t	table_bytes;	/* of the table, taken from the lease */
	const GjJoinOps *join;
	void	   *join_state;		/* its own */
	uint64_t	nmatchable;		/* rows or sets of the build side that can match */
	GjRunProbe	probe;
	GjRunPairs	pairs;
	struct GjRunRing *ring;		/* shared: the run has some of the build rows; NULL: all of them */
	GjRunUnmatched unmatched;	/* lives as long as the run */
};

/* What is known of a row of a build side. */
typedef enum GjRowMatch
{
	GJ_ROW_UNMATCHED,
	GJ_ROW_MATCHED,
	GJ_ROW_FILTERED				/* by the source's filter: not there at all */
} GjRowMatch;

/* Probe rows that pass filter, steps and aggregates in one call of the device. */
typedef struct GjRunFused
{
	bool		off;			/* it cannot be done, or is of no use any more */
	bool		started;		/* the first rows have come */
	bool		ran;
	bool		answered;		/* the plan has terms that are answers: all parts have them */
	uint8_t		order[GJ_FUSED_STEPS];	/* the run's step that the plan's step s is */
	uint32_t	key[GJ_FUSED_STEPS];	/* first expression that the plan's step s looks up */
	GjFusedPlan plan;
	uint32_t	nparts;			/* waiting for the next call */
	uint32_t	nrows;			/* of these */
	GjFusedPart part[GJ_FUSED_PARTS];
	GjColumn   *columns;		/* of the parts */
	const uint32_t *codes[GJ_FUSED_PARTS];	/* of the parts' rows, as run->arrival.codes */
	uint32_t	most_rows;		/* of a call, where memory is short; 0: no limit */
	uint32_t	growing_rows;	/* of the next call, as most groups are not known yet; 0: no limit */
	uint32_t	group_rows;		/* of a call, if there are groups, but few; 0: not known yet */
	uint32_t	many_group_rows;	/* the same where groups are many */
	GjBuffer	missed_rows[GJ_FUSED_STEPS + 1];
	GjBuffer	missed_data[GJ_FUSED_PROBE];
	GjBuffer	missed_nulls[GJ_FUSED_PROBE];
	GjFusedMissed missed;		/* tuples whose group was not known */
	const uint8_t *last_heap[GJ_FUSED_PROBE];	/* the farthest heap of the parts */
	uint32_t	nbad;			/* calls from which most tuples came back */
	bool		few_missed;		/* hardly any will: as from the last one */
	bool		many_groups;	/* of few tuples each: places or codes may be of use */
} GjRunFused;

/* Which probe rows have a match in the first step, if other runs join them, too: run/marks.c. */
typedef struct GjRunMarks
{
	uint8_t    *flags;			/* of all probe rows, shared; NULL: no other run joins them */
	bool		complete;		/* tuples come out by these */
	uint64_t	next;			/* number of the first row of the current view */
	uint32_t	room;			/* of tuple and row */
	uint8_t    *tuple;			/* flags of a view's tuples, and their rows */
	uint32_t   *row;
} GjRunMarks;

/* Questions about columns of the probe side: run/questions.c. */
typedef struct GjRunQuestions GjRunQuestions;

/* Tuples that are taken through a step at a time. */
typedef struct GjRunTuples
{
	uint32_t	most;			/* 0: not known yet */
	bool		more_room;		/* there may be room for more of them with the next probe rows */
	GjBuffer	filtered;		/* positions of the probe rows that pass the filter */
	GjRunMarks	marks;
} GjRunTuples;

/* What comes out, and where it goes. */
typedef struct GjRunOutput
{
	void	   *state;			/* the sink's own */
	GjTarget	target;
	GjTiles		tiles;			/* that the run has of all */
	uint32_t	sources;		/* that the sink reads, bits */
	uint8_t    *columns;		/* a column: the sink reads it */
	int64_t		counted;		/* tuples that did not go to the sink, which only counts them */
	/* a batch, if the sink makes any */
	uint32_t	ncolumns;
	GjColumnType *types;
	GjColumnPlace *places;
	GjLayout	layout;
} GjRunOutput;

/* How rows arrive. */
typedef struct GjRunArrival
{
	uint64_t	rows_ahead;		/* probe rows of fragments that are being used, and later ones */
	const GjGroups *coded;		/* the group of each group code, without states; NULL: no codes */
	const uint32_t *codes;		/* of the probe rows that are described; NULL: unknown */
	bool		gathers;		/* probe rows go to a relation, before any is joined */
	uint64_t	received;		/* bytes that other devices sent */
	uint32_t	ended;			/* sources, one bit each */
} GjRunArrival;

struct GjRun
{
	GjDeviceEntry *entry;
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
	GjRelation	relation[GJ_MAX_SOURCES];
	const GjIntakeOps *intake_ops;	/* how rows come */
	struct GjIntake *intake;	/* its own state */
	GjRunArrival arrival;
	bool		complete;		/* see gj_run_complete */
	bool		failed_once;	/* the failure point was passed */
	struct GjRunRanges *ranges; /* the run joins a range of the keys; NULL: no such thing */

	uint32_t	nsteps;
	GjRunStep	steps[GJ_MAX_SOURCES];

	GjRunTuples	tuples;
	GjRunOutput	output;
	const GjSinkOps *sink;
	GjRunFused *fused;			/* NULL: nobody has asked yet whether it can be done */
	GjRunQuestions *questions;	/* NULL: the program has none */
};

/* Marks of the queue from here on are those of run/ring.c; the intake has the others. */
#define GJ_RING_MARKS		(GJ_MAX_MARKS - 4)

/* However little memory there is, this many tuples are worked on at a time. */
#define GJ_MIN_TUPLES		16384

/* More than GJ_MAX_TUPLES take at most half of one part in so many of what is left. */
#define GJ_LITTLE_OF		8

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
/* Status of a failure point that every program has when it begins to work on rows. */
extern GjStatus gj_run_fail_points(GjRun *run);

/* True if all sources have ended. */
static inline bool
gj_run_all_ended(const GjRun *run)
{
	return run->arrival.ended == (1u << run->program->nsources) - 1;
}

/* Has the queue see the program's columns as run->columns describes them. */
static inline GjStatus
gj_run_set_columns(GjRun *run, const GjColumn **columns)
{
	return run->work.ops->columns->set_columns(run->work.queue, run->columns,
											   run->program->ncolumns, columns);
}

/* The form in which the result is handed over. */
static inline GjForm
gj_run_form(const GjRun *run)
{
	return run->output.target.form;
}

/* run/build.c */
/* The step that joins a build source. */
extern GjRunStep *gj_run_step_of(GjRun *run, uint32_t source);
/* All rows of a build source have come: makes what its step joins. */
extern GjStatus gj_run_build(GjRun *run, uint32_t source);
extern GjStatus gj_run_fail_build(GjRun *run);

/* Of rows that passed the filter: a view, and their keys. */
extern GjStatus gj_build_view(GjRun *run, const GjSideBuild *build, GjView *view);
extern GjStatus gj_build_keys(GjRun *run, GjSideBuild *build, const GjRunStep *rs, GjKeys *keys);

/* True if nothing of the pairs of step i is asked for but their number. */
static inline bool
gj_step_only_counts(const GjRun *run, uint32_t i)
{
	const GjRunStep *rs = &run->steps[i];

	return i == run->nsteps - 1 && run->sink->counts && gj_step_makes_pairs(rs->step) &&
		rs->residual < 0 && rs->step->filter < 0;
}

/* run/probe.c */
extern void gj_step_free_probe(GjWork *work, GjRunStep *rs);
extern void gj_step_free_pairs(GjWork *work, GjRunStep *rs);
/* Device memory without which not even GJ_MIN_TUPLES tuples can be taken through the steps. */
extern uint64_t gj_run_least_space(const GjRun *run);
/*
 * Finds out, once or after rows have left the device, how many tuples all steps can take at a time
 * in half of the memory that is left.
 */
extern void gj_run_choose_max_tuples(GjRun *run);
/*
 * Calls reserve() for *n tuples, and for fewer, then told in *n, where memory is short.  Before
 * each further call, release() gives back what was reserved: it may be larger than needed.  Both
 * are handed i.
 */
extern GjStatus gj_run_fit_tuples(GjRun *run, uint32_t i, uint32_t *n,
								  GjStatus (*reserve) (GjRun *run, uint32_t i, uint32_t n),
								  void (*release) (GjRun *run, uint32_t i));
/* Room for positions of *n rows, or of fewer, then told in *n, where memory is short. */
extern GjStatus gj_run_reserve_positions(GjRun *run, GjBuffer *positions, uint32_t *n);
/*
 * Room for *n tuples that come from step i-1 (for i = 0: from the probe filter) and enter
 * step i (for i = nsteps: the output), or for fewer, then told in *n, where memory is short.
 */
extern GjStatus gj_run_make_room(GjRun *run, uint32_t i, uint32_t *n);
/*
 * Where rows may be returned before the end: room for the least number of tuples in all steps.
 * What is left may then go to others, or to fragments that are kept of the probe rows.
 */
extern GjStatus gj_run_reserve_steps(GjRun *run);
/*
 * Takes what step i has made, in its buffers or a view of earlier ones, through its filter
 * and to the next step.  There is room for it.
 */
extern GjStatus gj_run_pass_on(GjRun *run, uint32_t i, GjView *view);
/* Leaves the tuples at positions[0 .. n) of a view of step rs, for the sources in `kept`. */
extern GjStatus gj_run_pick(GjRun *run, GjRunStep *rs, GjView *view, const uint32_t *positions,
							uint32_t n, uint32_t kept);
/*
 * Takes the first nrows rows that the probe columns describe through all steps.  If not
 * `now`, they may wait for gj_fused_flush, and stay where they are until then.
 */
extern GjStatus gj_run_probe_rows(GjRun *run, uint32_t nrows, bool now);

/* run/questions.c */
/* False: no memory. */
extern bool gj_questions_open(GjRun *run);
/*
 * Answers the program's questions for columns of the probe side, as many for each part as it has.
 * They have their answers then until the next call.  *all: no column lacks them.
 */
extern GjStatus gj_questions_ask(GjRun *run, GjColumn *columns, uint32_t nparts, bool *all);
extern void gj_questions_free(GjRun *run);

/*
 * run/fused_plan.c: fills in a zeroed plan, all build sides being there.  fused->answered: all
 * columns have answers.  False: it cannot.
 */
extern bool gj_fused_make_plan(const GjRun *run, GjFusedPlan *plan);

/*
 * run/fused_places.c: adds the rows of a call to groups by places, where that is possible and takes
 * less time than a look-up of each row.  *done: it did.
 */
extern GjStatus gj_fused_places(GjRun *run, const GjGroups *groups, bool *done);
/* True if that is likely. */
extern bool gj_fused_may_have_places(const GjRun *run, const GjGroups *groups);
/* The same by group codes of all rows (source/cached_codes.c), before there is any group. */
extern GjStatus gj_fused_coded(GjRun *run, bool *done);

/* run/fused_order.c: chooses the order of the plan's steps, which fit it. */
extern void gj_fused_choose_order(const GjRun *run, GjRunFused *fused);

/* run/fused.c */
/* True if probe rows can pass in one call; asked when all build sides are built. */
extern bool gj_fused_fits(GjRun *run);
/* True if groups were so many, of few tuples each, that codes of texts would be of use. */
extern bool gj_fused_wants_codes(const GjRun *run);
/*
 * Adds the first nrows rows that the probe columns describe to the next call: *done of them,
 * fewer if the rest had better take the steps one by one.  They must stay where they are
 * until gj_fused_flush, unless they are taken through `now`.
 */
extern GjStatus gj_fused_rows(GjRun *run, uint32_t nrows, bool now, uint32_t *done);
/* Takes all rows through that were added. */
extern GjStatus gj_fused_flush(GjRun *run);
/* No tuple comes back any more: frees the room for those. */
extern void gj_fused_give_room(GjRun *run);
/* Adds to the statistics what has passed.  Waits. */
extern GjStatus gj_fused_finish(GjRun *run);
extern void gj_fused_free(GjRun *run);

/* The values of a view's tuples that step rs compares, in the step's buffers. */
extern GjStatus gj_run_probe_keys(GjRun *run, GjRunStep *rs, const GjView *view, GjKeys *keys);
/*
 * Leaves the pairs for which the step's residual condition is true, and notes them.  The
 * first pair has number `cursor` of the probe; for a nested loop rs->pairs.tuple has the tuples.
 */
extern GjStatus gj_run_filter_pairs(GjRun *run, GjRunStep *rs, uint32_t ntuples, uint64_t cursor,
									GjView *pairs);

/* run/ring.c */
/* Rows first .. end-1 of all runs' are this one's. */
extern void gj_ring_range(const GjRunStep *rs, uint64_t *first, uint64_t *end);

/* run/ranges.c */
/* True if the run has a range of what step i compares; then: */
extern bool gj_run_is_ranged(const GjRun *run, uint32_t i);
/* Flags of the build rows of all runs. */
extern uint64_t gj_ranges_nflags(const GjRun *run);
/* Build rows in its range: the first ones that it has. */
extern uint64_t gj_ranges_nown(const GjRun *run);
/* As gj_run_copy_flags; rows that the run does not have are unmatched. */
extern GjStatus gj_ranges_copy_flags(GjRun *run, uint32_t i, uint64_t first, uint64_t n,
									 uint8_t *flags, bool out);
extern void gj_ranges_close(GjRun *run);

/* run/table_build.c: functions of GjJoinOps */
extern GjStatus gj_table_build(GjRun *run, GjSideBuild *build, GjRunStep *rs);
extern GjStatus gj_table_improve(GjRun *run, uint32_t source, GjRunStep *rs);
/*
 * True if a built step's residual condition says no more than its keys: that texts are equal, none
 * of which is too long for its key.
 */
extern bool gj_residual_holds(const GjRun *run, const GjRunStep *rs);

/* run/match.c */
/* Starts the flags of a source's rows; rowid: those that passed the filter, NULL: all. */
extern GjStatus gj_match_start(GjRun *run, GjRunStep *rs, const uint32_t *rowid, uint32_t nrows);
/* After a probe that made `total` pairs: notes what has a match, without their conditions. */
extern GjStatus gj_match_probed(GjRun *run, GjRunStep *rs, uint32_t ntuples, uint64_t total);
/*
 * Notes the tuples and rows of pairs that satisfy the residual condition: `n` of the
 * positions (NULL: all n), in pairs that start with pair number `cursor` of the probe.
 */
extern GjStatus gj_match_pairs(GjRun *run, GjRunStep *rs, uint32_t ntuples, const GjView *pairs,
							   uint64_t cursor, const uint32_t *positions, uint32_t n);
/* Sends the tuples that come out by themselves to the next step. */
extern GjStatus gj_match_tuples(GjRun *run, uint32_t i, const GjView *view);
/* The probe source has ended: rows that come out by themselves, step by step. */
extern GjStatus gj_match_rows(GjRun *run);
/*
 * Makes the groups of all rows of right or full join i, without adding the rows to them.  Nothing
 * has been probed, and groups depend on these rows alone.
 */
extern GjStatus gj_match_make_groups(GjRun *run, uint32_t i);
/* True if nothing comes out of the run when none of the nrows rows matches in step rs. */
extern bool gj_match_ends_run(const GjRun *run, const GjRunStep *rs, uint32_t nrows);
extern void gj_match_free(GjWork *work, GjRunStep *rs);

/* marks.c: takes tuples through the first step, if the run marks probe rows. */
extern GjStatus gj_marks_join(GjRun *run, const GjView *view);
extern void gj_marks_free(GjRunMarks *marks);

#endif							/* GJ_DAEMON_RUN_STATE_H */
