/*
 * internal.h
 *	  What the files of sinks share; others include sink.h.
 */
#ifndef GJ_DAEMON_SINK_INTERNAL_H
#define GJ_DAEMON_SINK_INTERNAL_H

#include "sink.h"
#include "daemon/run/state.h"

extern const GjSinkOps gj_sink_aggregates;
extern const GjSinkOps gj_sink_count;
extern const GjSinkOps gj_sink_groups;
extern const GjSinkOps gj_sink_sorted_groups;
extern const GjSinkOps gj_sink_rows;
extern const GjSinkOps gj_sink_first_rows;
extern const GjSinkOps gj_sink_sorted_rows;
extern const GjSinkOps gj_sink_prewarm;

/* aggregates.c: what the aggregates read. */
extern uint32_t gj_aggregates_plan(GjRun *run);

/* rows.c: what rows and their sort keys read; sends a view's tuples as batches. */
extern uint32_t gj_rows_plan(GjRun *run);
extern GjStatus gj_run_output_rows(GjRun *run, const GjView *view);

/* sort.c */
/* Sorts rows by keys (GjOrderOps.sort_rows) with what memory the lease has: positions[nrows]. */
extern GjStatus gj_run_sort_keys(GjRun *run, const GjKeys *keys, uint32_t descending,
								 GjBuffer *positions);
/*
 * Fills a slot of a sorted run with at most *n sorted rows from `first` on; *n = how many.  Waits.
 */
typedef GjStatus (*GjFillSorted) (GjRun *run, void *arg, uint32_t first, uint8_t *slot,
								  uint32_t *n);
/* Hands nrows > 0 sorted rows over to the target: a sorted run, the run's last one or not. */
extern GjStatus gj_run_hand_over(GjRun *run, const GjSortedLayout *layout, uint32_t nrows,
								 bool last, GjFillSorted fill, void *arg);

#endif							/* GJ_DAEMON_SINK_INTERNAL_H */
