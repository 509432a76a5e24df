/*
 * exchange.h
 *	  Rows that a run sends to the runs of other devices, and what it keeps for that
 *	  (source/exchange.c); see source/split.c, which sends, and source/block.c.
 */
#ifndef GJ_DAEMON_SOURCE_EXCHANGE_H
#define GJ_DAEMON_SOURCE_EXCHANGE_H

#include "intake.h"

/* One is filled while others are read. */
#define GJ_BLOCKS			3

/* A source whose rows are exchanged. */
typedef struct GjSplitSide
{
	uint32_t	source;
	int32_t		filter;
	uint32_t	first_key;		/* expressions */
	bool		computes_keys;	/* a key is more than a column */
	uint32_t	key[GJ_MAX_KEYS];	/* else: the source's columns that they are */
	GjRelation	stage;			/* rows that were copied together, waiting to be sent */
	bool	   *stage_nulls;	/* of its columns: rows that wait have null flags */
	bool	   *sent;			/* its columns: somebody reads it behind the filter */
	uint32_t	nrefs;			/* of these: references */
	bool		has_refs;		/* any column is one */
	uint32_t	most_rows;		/* of a block; 0: not known yet */
	uint32_t	stage_rows;		/* of the stage */
	uint64_t	most_heap;		/* bytes of a block's heap, if the side has references */
	bool		uneven;			/* some parts were larger: rows are counted before a split */
} GjSplitSide;

/* Marks of the queue, behind those of stages. */
#define GJ_MARK_OPENED(i)	(GJ_SLOT_MARKS + 4 + (i))	/* nobody reads receive buffer i */
#define GJ_MARK_SPLIT		(GJ_SLOT_MARKS + 6)	/* a block is filled */
#define GJ_MARK_READ(i)		(GJ_SLOT_MARKS + 7 + (i))	/* received[i] is there */
#define GJ_RECEIVED			16

/* This run's rows of a block of another one, in the receive buffer that is being filled. */
typedef struct GjReceivedPart
{
	GjBlock   *block;
	uint64_t	first;			/* a multiple of GJ_SPLIT_ALIGN: read faster from there on */
	uint32_t	nrows;
	bool	   *has_nulls;		/* of the columns: they have null flags */
} GjReceivedPart;

typedef struct GjSplitKeys
{
	GjBuffer	value[GJ_MAX_KEYS];
	GjBuffer	null;
} GjSplitKeys;

typedef struct GjRunExchange
{
	GjExchangePlan plan;
	const GjExchangeOps *ops;
	void	   *arg;			/* of these */
	uint32_t	nkeys;
	GjSplitSide side[2];		/* probe, build */
	GjRelation	receive[2];		/* probe rows that were received; references: only the first one */
	uint32_t	filling;		/* the receive buffer that rows are copied to */
	uint32_t	receive_rows;		/* that have room in one */
	/* rows that wait to be sent where they lie; of one source, since probe rows come last */
	GjSplitPiece piece[GJ_SPLIT_PIECES];
	GjColumn   *piece_columns;
	uint32_t	npieces;
	uint32_t	nwaiting;		/* rows of these */
	GjColumn   *columns;		/* all of the program's, as set_columns takes them */
	GjBlock	block[GJ_BLOCKS];
	GjBuffer	passed;			/* rows of the pieces that pass the filter */
	GjSplitKeys keys;			/* that are computed */
	GjBuffer	heap_at;
	/* a ring: numbers of all that were received, of these are there, and have passed the steps */
	GjReceivedPart	received[GJ_RECEIVED];
	uint32_t	nreceived;
	uint32_t	nread;
	uint32_t	njoined;
	uint64_t	rows_received;
	/* source/cached_probe.c */
	uint64_t	most_stay;		/* probe rows of the run's part that may be kept; 0: none */
	GjRelation	stay;
} GjRunExchange;

/* Places of bytes of one column of references in a block of n rows. */
static inline uint64_t
gj_heap_places(const GjRunExchange *x, uint64_t n)
{
	return gj_split_room(n, x->plan.nparts) + x->plan.nparts;
}

/* What is exchanged of the source; NULL: nothing. */
extern GjSplitSide *gj_split_side(const GjRun *run, uint32_t source);
/* Rows of a block of the side, at most; found out once. */
extern uint32_t gj_split_most_rows(GjRun *run, GjSplitSide *side);

/* source/cached_probe.c: the next nrows rows of the run's part. */
extern GjStatus gj_exchanged_add(GjRun *run, const GjColumn *columns, uint32_t nrows);
/* Takes the rows that were kept through the steps. */
extern GjStatus gj_exchanged_join(GjRun *run);

/* source/block.c: takes the rows of the run's part of a block that it has sent; probe rows wait. */
extern GjStatus gj_run_take_own(GjRun *run, GjBlock *block);
/* Takes these through the steps. */
extern GjStatus gj_run_join_own(GjRun *run);
/* source/split.c: true if probe rows are queued to pass the steps, without waiting. */
extern bool gj_run_joins_ahead(GjRun *run);

#endif							/* GJ_DAEMON_SOURCE_EXCHANGE_H */
