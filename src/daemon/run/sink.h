/*
 * run/sink.h
 *	  What becomes of the tuples of a run: the interface of sinks.
 *
 * A sink is one file of src/daemon/sink or, for programs of sets, src/daemon/sets.  sink/registry.c
 * chooses it by the program.  Nobody else asks what a program's output is: what others need to know
 * of it is a field here.  What a sink keeps is run->output.state, which only its own functions look
 * at.
 */
#ifndef GJ_DAEMON_RUN_SINK_H
#define GJ_DAEMON_RUN_SINK_H

#include "run.h"
#include "daemon/base/base.h"

struct GjSinkOps
{
	const char *name;

	/* ---- what comes in */
	/* Tuples of a join: then there is push().  Else whole sources, and source_ended(). */
	bool		joins;
	/* Rows of sources become resident, and are dropped. */
	bool		drops_rows;
	/* Several devices can have some of the tuples, rows or tiles each. */
	bool		spreads;
	/* All devices have the rows of all sources, and share tiles of pairs. */
	bool		by_tiles;
	/*
	 * Nothing but the number of tuples is asked for: joins add it to run->output.counted instead.
	 */
	bool		counts;
	/* The fused pass can make what comes out. */
	bool		fusible;

	/* ---- what comes out */
	/* Rows, some of which may go out before the last tuple has come. */
	bool		returns_rows;
	/* Groups: then there are groups() and make_groups(). */
	bool		has_groups;
	/* One state for each aggregate; those of several devices are added. */
	bool		has_states;
	/* Rows or groups come in the order of the sort keys. */
	bool		sorted;
	/* In batches that have the columns of the output. */
	bool		in_batches;

	/* ---- what it does */
	/*
	 * Marks columns that it reads when their sources were built (run->late); returns sources, bits.
	 */
	uint32_t	(*plan) (GjRun *run);
	/* Bytes that a tuple takes on its way in, beside those that joins count. */
	uint64_t	(*tuple_bytes) (const GjRun *run);
	union
	{
		/* Takes a view's tuples, which have passed all joins. */
		GjStatus	(*push) (GjRun *run, const GjView *view);
		/* A source has come completely. */
		GjStatus	(*source_ended) (GjRun *run, uint32_t source);
	};
	/* The groups found so far; NULL: there are none. */
	const GjGroups *(*groups) (const GjRun *run);
	/*
	 * Makes the groups of a view's tuples, without adding the tuples to them.  group_of[view->nrows]
	 * (device, or NULL) = the group of each.
	 */
	GjStatus	(*make_groups) (GjRun *run, const GjView *view, uint32_t *group_of);
	/*
	 * Has make(run, to, arg) make n groups in `to`, which has room for them, instead of all groups
	 * found so far.  These stay if it fails.  keys = NULL: no key is a reference.  Else make() gives
	 * each as its key the number of one of these groups, which stay.  Its own key becomes theirs, at
	 * the latest when the sink finishes.
	 */
	GjStatus	(*replace_groups) (GjRun *run, uint32_t n,
								   GjStatus (*make) (GjRun *run, const GjGroups *to, void *arg),
								   void *arg, const GjGroups *keys);
	/* Has all groups have their own keys: before more rows are looked up among them. */
	GjStatus	(*take_keys) (GjRun *run);
	/*
	 * Hands over what is still here.  Waits for all that was queued, first: an error of a row must
	 * show before anything is sent.
	 */
	GjStatus	(*finish) (GjRun *run);
	/* Frees what the sink keeps. */
	void		(*free) (GjRun *run);
};

/*
 * For sinks that read no column late; of whose tuples nothing more is counted; that have handed
 * over all when the last tuple has come; that keep nothing.
 */
extern uint32_t gj_sink_reads_nothing(GjRun *run);
extern uint64_t gj_sink_no_bytes(const GjRun *run);
extern GjStatus gj_sink_only_waits(GjRun *run);
extern void gj_sink_frees_nothing(GjRun *run);

/* Notes that an expression, or a column, is read late; returns its sources. */
extern uint32_t gj_run_reads_expr(GjRun *run, uint32_t e);
extern uint32_t gj_run_reads_column(GjRun *run, uint32_t column);

/* ---- run/target.c: a final target, and what is sent there */

/* The slot that is to be filled next; waits until it is free. */
extern GjStatus gj_run_next_slot(GjRun *run, uint8_t **slot);
/* Sends the slot that was filled last. */
extern GjStatus gj_run_send(GjRun *run, uint32_t nrows, uint64_t nbytes);
/* Sends one row of states. */
extern GjStatus gj_run_send_states(GjRun *run, const GjAggState *states, uint32_t n);
/* Bytes of a slot that travelled: values, null maps and heap. */
extern uint64_t gj_run_batch_bytes(const uint8_t *slot, uint32_t nrows, const GjColumnType *types,
								   uint32_t ncolumns);

#endif							/* GJ_DAEMON_RUN_SINK_H */
