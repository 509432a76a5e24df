/*
 * state.h
 *	  The state of a run, shared by the files that execute it.
 *
 *	run/run.c		opens, takes chunks, finishes, closes
 *	run/build.c		an inner side is complete: filter, keys, hash table
 *	run/probe.c		outer rows: filter, then the join steps
 *	run/nested.c	the nested loop: what it compares, and its pairs
 *	run/match.c		outer, semi and anti joins: what has a match, and what has none
 *	sink/output.c	tuples that passed all steps: aggregates or batches
 *	sink/group.c		the same: groups
 *	sink/limit.c		the same: the first rows in some order, returned at the end
 *	sink/sort.c		the same: all rows in some order, returned at the end, or handed over
 *	sink/group_parts.c	groups that are handed over, and put together again
 *	run/fused.c		outer rows through all of it in one call, where that is possible
 *	run/fused_plan.c	the same: whether it is, and what the device is told
 *	sets/intersect.c	GJ_PROGRAM_INTERSECT
 *	sets/sets.c		GJ_PROGRAM_SETS
 *	sets/set_join.c	steps that join sets
 *	sets/membership.c	the same, of sets that are rows of a membership table
 */
#ifndef GJ_DAEMON_RUN_STATE_H
#define GJ_DAEMON_RUN_STATE_H

#include "run.h"
#include "daemon/base/base.h"
#include "daemon/sink/sorted_run.h"

/* A nested loop's side of a step: it has no table, but all rows with their values. */
typedef struct GjRunNested
{
	int32_t		condition;		/* that the loop looks at itself, or -1 */
	uint32_t	nterms;
	struct
	{
		uint8_t		op;			/* GjTermOp */
		uint8_t		narrow;
		uint8_t		outer;		/* number of the operand */
		uint8_t		inner;
	}			terms[GJ_MAX_KEYS];
	uint32_t	nrows;
	GjBuffer	rows;			/* row ids; none: all rows */
	GjBuffer	value[GJ_MAX_KEYS];
	GjBuffer	null;
	uint32_t	ntiles;			/* to look at in the next call */
} GjRunNested;

/* Sets of one side of a step of GJ_JOIN_SET. */
typedef struct GjRunSets
{
	uint64_t	n;
	uint64_t	nvalues;
	GjBuffer	tuple;			/* [n]: outer: number of the tuple; inner: row id */
	GjBuffer	size;			/* [n] */
	GjBuffer	values;			/* elements of all sets */
	/* while sets are added */
	GjBuffer	new_size;
	GjBuffer	null;
	GjBuffer	positions;
	GjBuffer	rows;
} GjRunSets;

#define GJ_MEMBER_KEYS		3

/* One side of a step of GJ_JOIN_SET with `membership`. */
typedef struct GjRunMembers
{
	/* keys of a row, as ordered_keys takes them: perhaps whether the set is NULL, the set, the element */
	uint32_t	nkeys;
	int32_t		operand[GJ_MEMBER_KEYS];
	/* rows as they come */
	uint64_t	nrows;
	GjBuffer	value[GJ_MEMBER_KEYS];
	GjBuffer	null;			/* rows that are in no set */
	/* when all are there */
	bool		sorted;
	GjHashTable table;			/* of sort_build */
	uint64_t	table_bytes;	/* taken from the lease */
	uint32_t	nsets;
	GjBuffer	start;			/* [nsets]: place of the first row */
	GjBuffer	size;			/* [nsets] */
	GjBuffer	set_null;		/* of each row, in order: its set is NULL; none: no set is */
	uint64_t	multiplicity;	/* not less than how often any element is in one set */
} GjRunMembers;

typedef struct GjRunSetJoin
{
	const GjSetStep *step;
	GjRunSets	inner;
	GjRunSets	outer;			/* while a family is joined */
	GjBuffer	inner_row;
	GjBuffer	out[3];			/* what set_tile writes */
	GjRunMembers side[2];		/* membership: outer, inner */
	bool		flushed;		/* the outer rows have been joined in parts */
} GjRunSetJoin;

/* Working memory of a step, and which sources' row ids pass through it (bits). */
typedef struct GjRunStep
{
	const GjStep *step;
	uint32_t	joined;			/* sources joined before */
	uint32_t	expand;			/* sources that the residual, the filter or anything later reads */
	uint32_t	kept;			/* sources that the filter or anything later reads */
	uint32_t	out;			/* sources that anything later reads */
	int32_t		residual;		/* condition on pairs that keys and range let through, or -1 */
	/* what is compared: expressions or columns, as ordered_keys takes them */
	uint32_t	nouter;
	uint32_t	ninner;
	int32_t		outer_operand[GJ_MAX_KEYS];
	int32_t		inner_operand[GJ_MAX_KEYS];
	GjSortedMatch match;		/* sort-merge: what a probe looks for */
	GjHashTable table;			/* without rows: nothing can match */
	bool		built;
	uint64_t	table_bytes;	/* of the table, taken from the lease */
	GjRunNested nested;
	GjRunSetJoin set;
	GjBuffer	key_values;		/* keys of the tuples that probe */
	GjBuffer	key_nulls;
	GjBuffer	offset;
	GjBuffer	first;
	GjBuffer	matched;		/* flag of each tuple that probes: has a match */
	GjBuffer	selected;		/* positions of the tuples or rows that go on by themselves */
	GjBuffer	rowid[GJ_MAX_SOURCES];	/* the pairs */
	GjBuffer	positions;		/* of the pairs that pass the residual condition or the filter */
	GjBuffer	picked[GJ_MAX_SOURCES];
	GjBuffer	tuple;			/* nested loop, sets: number of each pair's tuple */
	/* the rest lives as long as the run: right, full, right semi and right anti joins */
	GjBuffer	row_matched;	/* by row id: GjRowMatch */
	GjBuffer	cover;			/* of table rows, without a residual condition (mark_ranges) */
} GjRunStep;

/* What is known of a row of an inner side. */
typedef enum GjRowMatch
{
	GJ_ROW_UNMATCHED,
	GJ_ROW_MATCHED,
	GJ_ROW_FILTERED				/* by the source's filter: not there at all */
} GjRowMatch;

/* Outer rows that pass filter, steps and aggregates in one call of the device. */
typedef struct GjRunFused
{
	bool		off;			/* it cannot be done, or is of no use any more */
	bool		ran;
	GjFusedPlan plan;
	uint32_t	nparts;			/* waiting for the next call */
	uint32_t	nrows;			/* of these */
	GjFusedPart part[GJ_FUSED_PARTS];
	GjColumn   *columns;		/* of the parts */
	uint32_t	most_rows;		/* of a call, where memory is short; 0: no limit */
	uint32_t	group_rows;		/* of a call, if there are groups, but few; 0: not known yet */
	uint32_t	many_group_rows;	/* the same where groups are many */
	GjBuffer	missed_rows[GJ_FUSED_STEPS + 1];
	GjBuffer	missed_data[GJ_FUSED_OUTER];
	GjBuffer	missed_nulls[GJ_FUSED_OUTER];
	GjFusedMissed missed;		/* tuples whose group was not known */
	uint32_t	nbad;			/* calls from which most tuples came back */
	bool		few_missed;		/* hardly any did from the last one */
} GjRunFused;

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
	uint64_t	rows_ahead;		/* outer rows of fragments that are being used, and later ones */
	uint32_t	ended;			/* sources, one bit each */
	bool		complete;		/* see gj_run_complete */
	bool		failed_once;	/* the failure point was passed */

	uint32_t	nsteps;
	GjRunStep	steps[GJ_MAX_SOURCES];
	uint32_t	max_tuples;		/* to take through a step at a time; 0: not known yet */
	bool		more_room;		/* there may be room for more of them with the next outer rows */

	GjBuffer	filtered;		/* positions of the outer rows that pass the filter */

	uint32_t	output_sources;	/* that batches and their order are made of, bits */
	bool		count_only;		/* nothing but count(*) is asked for */
	int64_t		counted;		/* rows counted without aggregate() */

	uint32_t	noutputs;
	GjColumnType *output_types;
	GjColumnPlace *output_places;
	GjLayout	output_layout;

	struct GjGrouping *grouping;	/* GJ_OUTPUT_GROUPS, from the first tuples on */
	struct GjLimited *limited;	/* GJ_OUTPUT_ROWS with a limit, from the first tuples on */
	struct GjSorted *sorted;	/* GJ_OUTPUT_ROWS in an order, from the first tuples on */
	GjRunFused *fused;			/* NULL: nobody has asked yet whether it can be done */
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

/* run/build.c */
/* The step that joins an inner source. */
extern GjRunStep *gj_run_step_of(GjRun *run, uint32_t source);
/* All rows of an inner source have come: makes what its step joins. */
extern GjStatus gj_run_build(GjRun *run, uint32_t source);
extern GjStatus gj_run_fail_build(GjRun *run);

/* True if nothing of the pairs of step i is asked for but their number. */
static inline bool
gj_step_only_counts(const GjRun *run, uint32_t i)
{
	const GjRunStep *rs = &run->steps[i];

	return i == run->nsteps - 1 && run->count_only && gj_step_makes_pairs(rs->step) &&
		rs->residual < 0 && rs->step->filter < 0;
}

/* run/probe.c */
extern void gj_step_free_probe(GjWork *work, GjRunStep *rs);
extern void gj_step_free_pairs(GjWork *work, GjRunStep *rs);
/* Device memory without which not even GJ_MIN_TUPLES tuples can be taken through the steps. */
extern uint64_t gj_run_least_space(const GjRun *run);
/* Finds out, once or after rows have left the device, how many tuples all steps can take at a time in half of what is left. */
extern void gj_run_choose_max_tuples(GjRun *run);
/*
 * Calls reserve() for *n tuples, and for fewer, then told in *n, where memory is short.  Before
 * each further call, release() gives back what was reserved: it may be larger than needed.  Both
 * are handed i.
 */
extern GjStatus gj_run_fit_tuples(GjRun *run, uint32_t i, uint32_t *n,
								  GjStatus (*reserve) (GjRun *run, uint32_t i, uint32_t n),
								  void (*release) (GjRun *run, uint32_t i));
/*
 * Room for *n tuples that come from step i-1 (for i = 0: from the outer filter) and enter
 * step i (for i = nsteps: the output), or for fewer, then told in *n, where memory is short.
 */
extern GjStatus gj_run_make_room(GjRun *run, uint32_t i, uint32_t *n);
/*
 * Where rows may be returned before the end: room for the least number of tuples in all steps.  What is
 * left may then go to others, or to fragments that are kept of the outer rows.
 */
extern GjStatus gj_run_reserve_steps(GjRun *run);
/*
 * Takes what step i has made, in its buffers or a view of earlier ones, through its filter
 * and to the next step.  There is room for it.
 */
extern GjStatus gj_run_pass_on(GjRun *run, uint32_t i, GjView *view);
/* Leaves the tuples at positions[0 .. n) of a view of step rs, for the sources that `kept` names. */
extern GjStatus gj_run_pick(GjRun *run, GjRunStep *rs, GjView *view, const uint32_t *positions,
							uint32_t n, uint32_t kept);
/*
 * Takes the first nrows rows that the outer columns describe through all steps.  If not
 * `now`, they may wait for gj_fused_flush, and stay where they are until then.
 */
extern GjStatus gj_run_outer_rows(GjRun *run, uint32_t nrows, bool now);

/* run/fused_plan.c: fills in a zeroed plan once all inner sides are built; false: one call cannot do it. */
extern bool gj_fused_make_plan(const GjRun *run, GjFusedPlan *plan);

/* run/fused.c */
/* True if outer rows can pass in one call; asked when all inner sides are built. */
extern bool gj_fused_fits(GjRun *run);
/*
 * Adds the first nrows rows that the outer columns describe to the next call: *done of them,
 * fewer if the rest had better take the steps one by one.  They must stay where they are
 * until gj_fused_flush, unless they are taken through `now`.
 */
extern GjStatus gj_fused_rows(GjRun *run, uint32_t nrows, bool now, uint32_t *done);
/* Takes all rows through that were added. */
extern GjStatus gj_fused_flush(GjRun *run);
/* Adds to the statistics what has passed.  Waits. */
extern GjStatus gj_fused_finish(GjRun *run);
extern void gj_fused_free(GjRun *run);

/* The values of a view's tuples that step rs compares, in the step's buffers. */
extern GjStatus gj_run_outer_keys(GjRun *run, GjRunStep *rs, const GjView *view, GjKeys *keys);
/*
 * Leaves the pairs for which the step's residual condition is true, and notes them.  The
 * first pair has number `cursor` of the probe; for a nested loop rs->tuple has the tuples.
 */
extern GjStatus gj_run_filter_pairs(GjRun *run, GjRunStep *rs, uint32_t ntuples, uint64_t cursor,
									GjView *pairs);

/* run/nested.c */
/* Finds out what the step compares. */
extern void gj_nested_plan(const GjRun *run, GjRunStep *rs);
/* Takes the pairs of a view's tuples to the next step, or looks at them, or counts them. */
extern GjStatus gj_nested_join(GjRun *run, uint32_t i, const GjView *view);
extern void gj_nested_free(GjWork *work, GjRunStep *rs);

/* sets/set_join.c */
extern void gj_set_join_plan(const GjRun *run, GjRunStep *rs);
/* Makes the sets of the inner side: all rows of the view, which are its own and no others. */
extern GjStatus gj_set_join_build(GjRun *run, GjRunStep *rs, const GjView *view);
/* Takes the pairs of a view's tuples to the next step, or looks at them, or counts them. */
extern GjStatus gj_set_join(GjRun *run, uint32_t i, const GjView *view);
extern void gj_set_join_free(GjWork *work, GjRunStep *rs);
extern void gj_set_join_free_sets(GjWork *work, GjRunSets *sets);
/* What is asked for.  False: no pair can match. */
extern bool gj_set_join_spec(const GjRun *run, const GjSetStep *step, GjSetSpec *spec);

/* sets/membership.c: the same for such a step, when all steps are planned. */
extern void gj_membership_plan(GjRun *run, GjRunStep *rs);
/* Makes the sets of all rows of the view. */
extern GjStatus gj_membership_build(GjRun *run, GjRunStep *rs, const GjView *view);
/* Takes rows; their pairs come at the end, or sooner where there is no room for all rows. */
extern GjStatus gj_membership_rows(GjRun *run, uint32_t i, const GjView *view);
/* The outer source has ended.  Nothing is done if the program has no such step. */
extern GjStatus gj_membership_end(GjRun *run);
extern void gj_membership_free(GjWork *work, GjRunStep *rs);

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
/* The outer source has ended: rows that come out by themselves, step by step. */
extern GjStatus gj_match_rows(GjRun *run);
/* True if nothing can come out of the run when no row matches in step rs, whose source has nrows. */
extern bool gj_match_ends_run(const GjRun *run, const GjRunStep *rs, uint32_t nrows);
extern void gj_match_free(GjWork *work, GjRunStep *rs);

/* sink/output.c */
extern GjStatus gj_run_output(GjRun *run, const GjView *view);
/* Sends the view's tuples as batches. */
extern GjStatus gj_run_output_rows(GjRun *run, const GjView *view);
/* The slot of the output ring that is to be filled next; waits until it is free. */
extern GjStatus gj_run_next_slot(GjRun *run, uint8_t **slot);
extern GjStatus gj_run_send(GjRun *run, uint32_t nrows, uint64_t nbytes);
/* Bytes of a slot that travelled: values, null maps and heap. */
extern uint64_t gj_run_batch_bytes(const uint8_t *slot, uint32_t nrows, const GjColumnType *types,
								   uint32_t ncolumns);
extern GjStatus gj_run_send_states(GjRun *run, const GjAggState *states, uint32_t n);

/* sink/group.c */
extern GjStatus gj_run_group(GjRun *run, const GjView *view);
/* Waits for all that was queued, too. */
extern GjStatus gj_run_send_groups(GjRun *run);
/* The groups found so far; NULL: there are none. */
extern const GjGroups *gj_run_groups(const GjRun *run);
extern void gj_run_free_groups(GjRun *run);

/* sink/limit.c */
/* Takes a view's tuples; those that may be among the first ones are kept on the host. */
extern GjStatus gj_run_limit(GjRun *run, const GjView *view);
extern GjStatus gj_run_send_limited(GjRun *run);
extern void gj_run_free_limited(GjRun *run);

/* sink/sort.c */
/* Takes a view's tuples, which are kept on the device until they are sorted and sent or handed over. */
extern GjStatus gj_run_sort(GjRun *run, const GjView *view);
extern GjStatus gj_run_send_sorted(GjRun *run);
extern void gj_run_free_sorted(GjRun *run);
/* Sorts rows by keys (GjDeviceOps.sort_rows) with what memory the lease has: positions[nrows]. */
extern GjStatus gj_run_sort_keys(GjRun *run, const GjKeys *keys, uint32_t descending,
								 GjBuffer *positions);
/* Fills a slot (sorted_run.h) with at most *n sorted rows from `first` on; *n = how many.  Waits. */
typedef GjStatus (*GjFillSorted) (GjRun *run, void *arg, uint32_t first, uint8_t *slot,
								  uint32_t *n);
/* Hands nrows > 0 sorted rows over to the host: a sorted run, the run's last one or not. */
extern GjStatus gj_run_hand_over(GjRun *run, const GjSortedLayout *layout, uint32_t nrows, bool last,
								 GjFillSorted fill, void *arg);

/* sets/intersect.c */
extern GjStatus gj_run_intersect(GjRun *run);

/* sets/sets.c */
extern GjStatus gj_run_sets(GjRun *run);
/*
 * What is counted of the device memory that a tile of GJ_MAX_TUPLES pairs takes: all, or a quarter of
 * what the run may have if that is less.  Most is scratch memory of the queue, of which other
 * operators count nothing.
 */
extern uint64_t gj_run_tile_space(const GjRun *run);
/*
 * A family was built: chooses how many pairs its tiles have, and makes room for as many in out[0 .. 3).
 * What larger tiles take beside that is taken from the lease and added to *space.
 */
extern GjStatus gj_run_make_tiles(GjRun *run, GjSetFamily *family, GjBuffer out[3], uint64_t *space);
/* What they take more than small ones, pairs included. */
#define GJ_LARGE_TILE_SPACE	(UINT64_C(176) << 20)

/*
 * sets/intersections.c: sends the distinct intersections of the family's pairs.  `elements` are
 * those of all sets, as they were loaded; `behind` is as in GjFoundPairs; `out` is for set_tile.
 */
extern GjStatus gj_run_intersections(GjRun *run, const GjSetSpec *spec, const GjSetFamily *family,
									 const void *elements, const uint32_t *behind,
									 uint32_t *const out[3]);

#endif							/* GJ_DAEMON_RUN_STATE_H */
