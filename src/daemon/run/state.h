/*
 * state.h
 *	  The state of a run, shared by the files that execute it.
 *
 *	run/run.c		opens, takes chunks, finishes, closes
 *	run/build.c		an inner side is complete: filter, keys, hash table
 *	source/stage.c		outer chunks to where the device reads them; slots given back
 *	run/probe.c		outer rows: filter, then the join steps
 *	run/table.c		joins by tables; table_build.c: what these are made of
 *	run/nested.c	the nested loop: what it compares, and its pairs
 *	run/match.c		outer, semi and anti joins: what has a match, and what has none
 *	run/target.c	slots of a final target
 *	run/fused.c		outer rows through all of it in one call, where that is possible
 *	run/fused_plan.c	the same: whether it is, and what the device is told
 *	source/ask.c		which fragments of sources are resident
 *	source/resident.c	the use of these
 *	source/keep.c		the same: those that chunks make
 *	source/side.c		inner sides that were built before, or are kept
 *	source/exchanged.c	outer rows that were exchanged before, or are kept
 *	source/split.c		rows that are exchanged with runs on other devices: sends them
 *	source/receive.c	the same: takes them
 *	source/parcel.c	the same: what is kept for that
 */
#ifndef GJ_DAEMON_RUN_STATE_H
#define GJ_DAEMON_RUN_STATE_H

#include "run.h"
#include "sink.h"
#include "join.h"
#include "daemon/base/relation.h"
#include "daemon/store/store.h"
#include "daemon/base/work.h"

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
	uint32_t	nouter;
	uint32_t	ninner;
	int32_t		outer_operand[GJ_MAX_KEYS];
	int32_t		inner_operand[GJ_MAX_KEYS];
	GjSortedMatch match;		/* sort-merge: what a probe looks for */
	GjHashTable table;			/* without rows: nothing can match */
	bool		built;
	uint64_t	table_bytes;	/* of the table, taken from the lease */
	const GjJoinOps *join;
	void	   *join_state;		/* its own */
	uint64_t	nmatchable;		/* rows or sets of the inner side that can match */
	GjRunProbe	probe;
	GjRunPairs	pairs;
	/* the rest lives as long as the run: right, full, right semi and right anti joins */
	GjBuffer	row_matched;	/* by row id: GjRowMatch */
	GjBuffer	cover;			/* of table rows, without a residual condition (mark_ranges) */
};

/* What is known of a row of an inner side. */
typedef enum GjRowMatch
{
	GJ_ROW_UNMATCHED,
	GJ_ROW_MATCHED,
	GJ_ROW_FILTERED				/* by the source's filter: not there at all */
} GjRowMatch;

/* Of a source that its backend has asked about; all zero if it has not. */
typedef struct GjRunResident
{
	GjResident *store;			/* NULL: nothing is kept */
	GjWanted   *tables;			/* that were asked about, with their keys */
	uint32_t	ntables;
	GjPinned   *pinned;
	uint32_t	npinned;
	GjPinned   *held;			/* used in place: the queue may still read them */
	uint32_t	nheld;
	GjFragment *building;		/* what its chunks fill */
	bool		full;			/* there was no room for one */
	/* of an inner side */
	GjPinned   *uses;			/* what it is made of, beside chunks; their pages are its own */
	uint32_t	nuses;
	GjPinned   *shared;			/* the same, pinned for several runs, which all use them */
	uint32_t	nshared;
	GjSideFragment *made;		/* fragments that its chunks have filled, all pages valid */
	uint32_t	nmade;
	uint64_t	nchunk_rows;	/* of chunks */
	uint64_t	nmade_rows;		/* of these: rows of fragments in `made` */
} GjRunResident;

/* Where the rows of a chunk, and its heap, begin in the fragment that they have been copied to. */
typedef struct GjKept
{
	GjFragment *fragment;		/* NULL: the chunk is not kept */
	uint64_t	first;
	uint64_t	heap;
} GjKept;

/*
 * An inner side that is resident, or may be kept, or (source 0) the run's part of outer rows that were
 * exchanged; it outlives the source's GjRunResident.
 */
typedef struct GjRunSide
{
	GjResident *store;
	GjSide	   *kept;			/* pinned: the run uses its memory */
	GjSide	   *made;			/* what it is made of, if it may be kept; not filled in yet */
} GjRunSide;

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
	bool		has_nulls[GJ_MAX_COLUMNS];	/* of the outer columns: a chunk has had some */
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

/* Tuples that are taken through a step at a time. */
typedef struct GjRunTuples
{
	uint32_t	most;			/* 0: not known yet */
	bool		more_room;		/* there may be room for more of them with the next outer rows */
	GjBuffer	filtered;		/* positions of the outer rows that pass the filter */
} GjRunTuples;

/* What comes out, and where it goes. */
typedef struct GjRunOutput
{
	void	   *state;			/* the sink's own */
	GjTarget	target;
	GjTiles		tiles;			/* that the run has of all */
	uint32_t	sources;		/* that the sink reads, bits */
	int64_t		counted;		/* tuples that did not go to the sink, which only counts them */
	/* a batch, if the sink makes any */
	uint32_t	ncolumns;
	GjColumnType *types;
	GjColumnPlace *places;
	GjLayout	layout;
} GjRunOutput;

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
	GjColumnPlace *places;		/* of all columns in the chunks of their sources */
	GjLayout	layout[GJ_MAX_SOURCES];
	GjRelation	relation[GJ_MAX_SOURCES];
	GjRunResident resident[GJ_MAX_SOURCES];
	bool		keeps_nothing;	/* of inner chunks: see gj_run_may_keep */
	GjRunSide	side[GJ_MAX_SOURCES];
	uint64_t	rows_ahead;		/* outer rows of fragments that are being used, and later ones */
	uint64_t	clock;			/* of the store when the run began to ask; 0: it did not */
	GjBuffer	compact;		/* rows of a fragment that lay scattered */
	uint32_t	ended;			/* sources, one bit each */
	bool		complete;		/* see gj_run_complete */
	bool		failed_once;	/* the failure point was passed */

	uint32_t	nsteps;
	GjRunStep	steps[GJ_MAX_SOURCES];

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
	uint64_t	nread;			/* slots whose marks have passed */
	uint32_t	narriving;		/* fragments that are complete when more have */

	GjRunTuples	tuples;
	GjRunOutput	output;
	const GjSinkOps *sink;
	GjRunFused *fused;			/* NULL: nobody has asked yet whether it can be done */
	struct GjRunExchange *exchange; /* NULL: rows stay where they came */
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

/* True if all sources have ended. */
static inline bool
gj_run_all_ended(const GjRun *run)
{
	return run->ended == (1u << run->program->nsources) - 1;
}

/* The form in which the result is handed over. */
static inline GjForm
gj_run_form(const GjRun *run)
{
	return run->output.target.form;
}

/* GJ_OK if rows of the source may come now. */
extern GjStatus gj_run_may_load(GjRun *run, uint32_t source);

/* run/build.c */
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

/* source/stage.c */
/* Memory for outer chunks on their way to the device, if they are not worked on where they are. */
extern GjStatus gj_run_reserve_stages(GjRun *run);
extern GjStatus gj_run_outer(GjRun *run, const GjChunk *chunk, uint8_t *memory, uint32_t slot);
/* The slot is free once all that is queued on the lane is done. */
extern GjStatus gj_run_slot_used(GjRun *run, GjLane lane, uint32_t slot);
/* Gives back the slots that are free; with `wait`, waits for all. */
extern GjStatus gj_run_free_slots(GjRun *run, bool wait);
extern void gj_run_close_stages(GjRun *run);

/* The values of a view's tuples that step rs compares, in the step's buffers. */
extern GjStatus gj_run_outer_keys(GjRun *run, GjRunStep *rs, const GjView *view, GjKeys *keys);
/*
 * Leaves the pairs for which the step's residual condition is true, and notes them.  The
 * first pair has number `cursor` of the probe; for a nested loop rs->pairs.tuple has the tuples.
 */
extern GjStatus gj_run_filter_pairs(GjRun *run, GjRunStep *rs, uint32_t ntuples, uint64_t cursor,
									GjView *pairs);

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

/*
 * source/keep.c: copies the chunk into a fragment on that lane, if it is to be kept.  The
 * slot is free when the lane is.  From there it is copied to wherever else it is wanted, so that it
 * passes the bus once; then comes gj_run_kept.
 */
extern GjStatus gj_run_keep(GjRun *run, uint32_t source, const GjChunk *chunk, GjLane lane,
							GjKept *kept);

/* Appends a chunk, from where it is kept, if it is. */
extern GjStatus gj_run_append_chunk(GjRun *run, GjRelation *relation, const GjChunk *chunk,
									const GjKept *kept);

/*
 * Everything is queued that reads the chunk where it is kept, and its slot is used next: if the
 * fragment is complete, others will find it when that has been read.
 */
extern GjStatus gj_run_kept(GjRun *run, uint32_t source, const GjKept *kept, GjLane lane);

/* Slots have been read: fragments that were complete with them are there. */
extern GjStatus gj_run_arrived(GjRun *run);

/* Gives up what is not complete, after the queue was waited for. */
extern void gj_run_stop_keeping(GjRunResident *resident);

/* source/resident.c */
/* Appends the rows of pages of a fragment to the relation of an inner source. */
extern GjStatus gj_run_append_use(GjRun *run, uint32_t source, const GjPinned *use);
/* The same of those that several runs use, wherever they lie.  Waits. */
extern GjStatus gj_run_append_shared(GjRun *run, uint32_t source);
/* Gives the first n of resident->uses back, after the queue was waited for. */
extern void gj_run_drop_uses(GjRunResident *resident, uint32_t n);
/* Gives all fragments back, after the queue was waited for. */
extern void gj_run_release(GjRun *run, uint32_t source);

/*
 * source/side.c: an inner source has ended.  Finds the side that was built of the same, or
 * makes its relation complete.
 */
extern GjStatus gj_side_resolve(GjRun *run, uint32_t source);
/* Rows of fragments that an inner source is made of, to its stage, unless the side was found. */
extern GjStatus gj_run_send_uses(GjRun *run, uint32_t source);
/* True if the side was found: then the step has its table, and the relation its columns. */
extern bool gj_side_take(GjRun *run, GjRunStep *rs);
/* A side was built, nrows rows of which passed the filter: keeps it, if that can be done. */
extern GjStatus gj_side_keep(GjRun *run, GjRunStep *rs, uint32_t nrows);
/* Hands what was made of a source over to be kept: then it is side[source].kept.  Waits. */
extern GjStatus gj_side_publish_made(GjRun *run, uint32_t source);
/* Rows of all pages that are used. */
extern uint64_t gj_count_rows(const GjPinned *uses, uint32_t n);
/* Gives the sides back, after the queue was closed. */
extern void gj_side_release(GjRun *run);

/* source/exchanged.c: the step by whose keys outer rows are exchanged, if they could be kept so; else NULL. */
extern const GjStep *gj_exchanged_by(const GjRun *run);

/* source/split.c */
/* False: outer rows are exchanged, and come without columns that only their filter reads. */
extern bool gj_run_has_outer_columns(const GjRun *run);
/* True if rows of the source are exchanged. */
extern bool gj_run_exchanges(const GjRun *run, uint32_t source);
/*
 * Takes the rows of a chunk, or nrows that the source's columns describe, to send them.  Those stay
 * where they lie until the source has ended.
 */
extern GjStatus gj_run_stage_chunk(GjRun *run, uint32_t source, const GjChunk *chunk,
								   const GjKept *kept);
extern GjStatus gj_run_stage_rows(GjRun *run, uint32_t source, uint32_t nrows);
/* Sends those that wait, if they are many and more may come: so that others need not wait for them. */
extern GjStatus gj_run_send_many(GjRun *run, uint32_t source);
/* True if gj_run_stage_rows sends them at once, for their references point into what has them. */
extern bool gj_run_sends_in_place(const GjRun *run, uint32_t source);
/* gj_program_identity of the program that the session has submitted. */
extern uint64_t gj_run_identity(const GjRun *run);
/* The filter that rows of a source have passed before they are sent, or by the time it is built; -1: none. */
extern int32_t gj_run_source_filter(const GjRun *run, uint32_t source);
/* Which part of the source's rows the run has, and of how many; 0 of 1: all. */
extern void gj_run_exchanged_part(const GjRun *run, uint32_t source, uint32_t part[2]);
extern void gj_run_free_exchange(GjRun *run);

/* source/receive.c: takes all outer rows that were sent through the steps. */
extern GjStatus gj_run_open_parcels(GjRun *run);

#endif							/* GJ_DAEMON_RUN_STATE_H */
