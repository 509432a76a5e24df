/*
 * join_scan.h
 *	  The GpuJoin node: a CustomScan that has a program run by gpujoind.
 *
 *	join_scan.c		callbacks, rows to slots
 *	join_run.c		sources and stages of a run, its batches, or the fall back
 *	run.c			one run: submit, load, take in batches (run.h)
 *	host_sort.c		sorts rows by ranks (host_sort.h), which are value_ranks.c's
 *	spool.c			keeps batches of runs that must complete first (spool.h)
 *	emit.c			batches and aggregate states into slots (emit.h)
 *	late.c			columns of these rows that are fetched from their tables (late.h)
 *	runtime.c		runtime constants into the program
 *	pruned_tables.c	partitions that this execution need not read
 *	equal_stages.c	stages that compute the same
 *	explain.c		EXPLAIN
 */
#ifndef GJ_JOIN_SCAN_H
#define GJ_JOIN_SCAN_H

#include "nodes/execnodes.h"
#include "nodes/extensible.h"

#include "client/client.h"
#include "exec/emit.h"
#include "exec/host_sort.h"
#include "exec/kept_rows.h"
#include "exec/late.h"
#include "exec/run.h"
#include "exec/spool.h"

typedef enum GjScanPhase
{
	GJ_SCAN_START,				/* nothing was done yet */
	GJ_SCAN_STREAM,				/* batches come from the run */
	GJ_SCAN_SPOOL,				/* batches come from the spool of a complete run */
	GJ_SCAN_FALLBACK,			/* rows come from the native plan */
	GJ_SCAN_END
} GjScanPhase;

typedef struct GjScanState
{
	CustomScanState css;

	/* from the plan; see GjPrivate and GjExprs */
	GjProgram  *template;
	List	   *sources;
	List	   *tables;			/* of each source; those that are pruned are left out */
	List	   *npruned;		/* int: how many were, of each source */
	List	   *runtime_instrs;
	List	   *agg_finals;
	List	   *key_codes;		/* see GJ_PRIVATE_KEY_CODES */
	List	   *clause_counts;
	int			noutputs;
	int			nfallback;
	bool		can_fail;
	int			nworkers;		/* planned to help to load */
	bool		is_stage;		/* the node above has it run (run_stage) */
	bool		has_result;		/* a stage: gpujoind has its result until end_run */
	bool		took_rows;		/* a stage: it has run, and read its child plans */
	bool		was_read;		/* its result, or an equal stage's, was read; or nobody will */
	bool		is_left;		/* who read it has ended, but another stage waits for its result */
	bool		used_equal;		/* the last run read an equal stage's result */
	List	   *attributes;		/* see GJ_ATTRIBUTE_PLAIN */
	List	   *computed;		/* ExprStates of those that PostgreSQL computes */
	List	   *late;			/* of GjLateTable: tables of which attributes are fetched */
	uint64		nfetched;		/* tuples that were; of all runs */
	bool		makes_values;	/* a row has values that are made for it */
	bool		spill;			/* build sides, groups or rows to be sorted did not fit the device */
	List	   *runtime_exprs;	/* ExprStates */

	GjScanPhase phase;
	MemoryContext run_cxt;		/* reset for every run */
	GjRemoteRun *run;
	const GjProgram *program;	/* of the run */
	GjSpool    *spool;
	GjEmitter	emitter;		/* of the batch whose rows are being returned */
	TupleTableSlot *emit_slot;	/* where its rows go: the scan slot, or straight into the
								 * result slot if the projection only picks columns */
	int		   *emit_outputs;	/* output column of each result attribute, or NULL */
	bool		batch_held;		/* the emitter's batch is a slot of the output ring */
	uint32		batch_slot;
	uint64		nreturned;		/* rows returned by this run */
	List	   *host_sort_keys; /* see GjHostSortKey; NIL: rows are returned as they come */
	GjHostSort *host_sort;		/* of the rows that were taken in; NULL: there are none */
	bool		is_sorted;		/* all of them were */
	int		   *sorted_outputs; /* of each result attribute, if rows go into the result slot */
	GjKeptRows *kept;			/* from the second time on that it begins; or NULL */

	PlanState  *fallback;		/* the native plan; NULL: a stage has none */
	GjFailure	failure;		/* why the last run fell back; GJ_OK if it did not */

	/* what EXPLAIN ANALYZE tells: sums over all runs */
	int			nruns;
	int			nfallbacks;
	GjRunStats	stats;
	GjLoadStats load_stats;
	GjHostSortStats sort_stats; /* of the last run */
} GjScanState;

extern const CustomScanMethods gj_join_scan_methods;

extern void gj_join_scan_init(void);

/*
 * RT indexes of tables that the native plan, as it was initialised, has pruned and does not
 * read anywhere.
 */
extern Bitmapset *gj_pruned_tables(PlanState *native);

/* The expressions whose values are constants of a run, to be initialised. */
extern List *gj_runtime_exprs(const CustomScan *cscan);

/* The program of a run: the template with runtime constants filled in. */
extern GjProgram *gj_make_program(GjScanState *state);

/* True for the node of a GpuJoin. */
extern bool gj_is_join_scan(PlanState *node);

/* The stage's node, below the scan of its subquery if that is there; NULL: it is none. */
extern GjScanState *gj_stage_below(PlanState *child);

/* One row of aggregates, with no groups. */
static inline bool
gj_is_one_row(const GjScanState *state)
{
	return state->template->output == GJ_OUTPUT_AGGREGATES;
}

/* Rows are groups. */
static inline bool
gj_is_grouped(const GjScanState *state)
{
	return state->template->output == GJ_OUTPUT_GROUPS;
}

/* ---- join_run.c */

/* Starts a run, or falls back: `phase` says where rows come from. */
extern void gj_start_run(GjScanState *state);

/* Next batch of a streaming run; false at the end, or if the node has fallen back. */
extern bool gj_next_streamed_batch(GjScanState *state);

/* Next batch of a complete run; false at the end. */
extern bool gj_next_spooled_batch(GjScanState *state);

/* Gives back everything that the current run holds, and what it reads of others. */
extern void gj_end_run(GjScanState *state);

/* Forgets the rows that were taken in to be sorted. */
extern void gj_end_sort(GjScanState *state);

/* ---- equal_stages.c */

/* Native plans of GpuJoins are initialised from here to there. */
extern void gj_stages_in_fallback(EState *estate, bool begins);

/* Adds a stage to those of its execution. */
extern void gj_stage_register(GjScanState *stage);

/* A stage whose result is that of `program`, which is the one of `stage`; NULL: there is none. */
extern GjScanState *gj_equal_stage(const GjScanState *stage, const GjProgram *program);

/* True if a stage that has yet to run may read this one's result. */
extern bool gj_stage_is_awaited(const GjScanState *stage);

/* Stages that were left for others, and that nobody waits for any more. */
extern List *gj_stages_left(EState *estate);

extern void gj_explain_join_scan(CustomScanState *node, List *ancestors, struct ExplainState *es);

#endif							/* GJ_JOIN_SCAN_H */
