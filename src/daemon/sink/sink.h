/*
 * sink.h
 *	  What becomes of the tuples of a run, as the rest of gpujoind sees it: which sink a program
 *	  has, and what is handed over where several runs make one result.
 *
 * Parts of groups.  A part is what some run knows of some groups: finished states, to be added to
 * those of other parts.  It travels as a chunk whose columns are the null bits of the keys, the
 * keys and the states of the aggregates.  While the distinct key is among the keys, distinct
 * aggregates have no state yet.  Without it their states cover only some of its values.
 *
 * Sorted runs.  Where one run has all rows of the program and they fit its device, it sends them
 * itself (sort.c, group.c).  Else each run makes sorted runs and hands them over in slots: a
 * batch as the backend would get it, and behind it an array of 64-bit integers for each sort key,
 * as sort_rows takes them.  The team keeps sorted runs on the host, or reads them from the
 * devices slot by slot, and merges them to batches (team/sorted.c).
 */
#ifndef GJ_DAEMON_SINK_SINK_H
#define GJ_DAEMON_SINK_SINK_H

#include "daemon/run/run.h"
#include "daemon/run/sink.h"
#include "daemon/base/base.h"

/* registry.c: the sink of a checked program. */
extern const GjSinkOps *gj_sink_choose(const GjProgram *program);

/* ---- parts of groups: group_parts.c */

#define GJ_PART_COLUMNS		(1 + GJ_MAX_GROUP_KEYS + GJ_MAX_AGGREGATES)

/* How a part lies in a slot of GJ_OUTPUT_SLOT_SIZE bytes. */
typedef struct GjPartLayout
{
	GjLayout	layout;
	GjColumnType types[GJ_PART_COLUMNS];
	GjColumnPlace places[GJ_PART_COLUMNS];
} GjPartLayout;

/* Of the first nkeys keys.  False: rows are too wide for a slot. */
extern bool gj_part_layout(const GjProgram *program, uint32_t nkeys, GjPartLayout *part);

/*
 * Adds groups that other runs have handed over, of the first nkeys keys, to a run that gets
 * nothing else.  Waits.
 */
extern GjStatus gj_run_add_part(GjRun *run, uint32_t nkeys, const uint8_t *slot);

/* ---- sorted runs: sorted_merge.c */

/* Bytes of a slot, and of the keys in it. */
#define GJ_SORTED_KEYS_SIZE	(1024u * 1024)
#define GJ_SORTED_SLOT_SIZE	(GJ_OUTPUT_SLOT_SIZE + GJ_SORTED_KEYS_SIZE)

/* What is in a slot: the columns of the output, then the keys. */
typedef struct GjSortedLayout
{
	uint32_t	noutputs;
	uint32_t	nkeys;
	uint32_t	capacity;		/* rows */
	uint32_t	descending;		/* bit k: by key k greater values come first */
	GjColumnType *types;		/* [noutputs + nkeys] */
	GjColumnPlace *places;		/* the same; keys have no null flags */
	GjLayout	batch;			/* of the output's columns */
	GjLayout	all;			/* the same, with the keys as columns */
} GjSortedLayout;

/* Of a checked program with sort keys.  False: out of host memory; to be freed either way. */
extern bool gj_sorted_layout(const GjProgram *program, GjSortedLayout *layout);
extern void gj_sorted_layout_free(GjSortedLayout *layout);

/* Some rows of a sorted run, columns of GjSortedLayout.types. */
typedef struct GjSortedBlock
{
	uint32_t	nrows;			/* 0: there are no more */
	const uint8_t *heap;		/* of references */
	const uint8_t **data;		/* [noutputs + nkeys] */
	const uint8_t **nulls;		/* the same; NULL: none is NULL */
} GjSortedBlock;

/* Where the blocks of a sorted run come from. */
typedef struct GjSortedInput
{
	/* The next block, whose arrays are the caller's; the one before is not read any more. */
	GjStatus	(*next) (void *arg, GjSortedBlock *block);
	void	   *arg;
	const int64_t *end_keys;	/* of the last row, if there is any */
} GjSortedInput;

/*
 * Sends the rows of all inputs in their order, which is any one for rows with equal keys: the
 * batches go to a final target.  *nrows = how many.  Ends with GJ_CANCELLED when host says so.
 */
extern GjStatus gj_sorted_merge(const GjSortedLayout *layout, const GjSortedInput *inputs,
								uint32_t ninputs, const GjRunHost *host, const GjTarget *target,
								uint64_t *nrows);

#endif							/* GJ_DAEMON_SINK_SINK_H */
