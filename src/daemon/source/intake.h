/*
 * intake.h
 *	  How rows come to a run, for the files of this module; see source.h.
 */
#ifndef GJ_DAEMON_SOURCE_INTAKE_H
#define GJ_DAEMON_SOURCE_INTAKE_H

#include "source.h"
#include "daemon/run/state.h"

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
	/* of a build side */
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
 * A build side that is resident, or may be kept, or (source 0) the run's part of probe rows that
 * were exchanged; it outlives the source's GjRunResident.
 */
typedef struct GjRunSide
{
	GjResident *store;
	GjSide	   *kept;			/* pinned: the run uses its memory */
	GjSide	   *made;			/* what it is made of, if it may be kept; not filled in yet */
} GjRunSide;

/* Group codes of probe rows: source/cached_codes.c. */
typedef struct GjRunCodes
{
	GjRunSide	side;			/* kept: they are used; made: they may be made of these fragments */
	bool		make;			/* they are made, when the result is there */
	GjGroups	groups;			/* that kept ones stand for */
} GjRunCodes;

/* Codes of a fragment, with what lies between them and the next one's: all begin aligned. */
static inline uint64_t
gj_codes_of(const GjFragment *fragment)
{
	return (fragment->nrows + 31) & ~UINT64_C(31);
}

/* Chunks in one buffer at most. */
#define GJ_BUFFER_CHUNKS	32

/* A chunk in a buffer: its rows, and its part of the heap. */
typedef struct GjBufferedChunk
{
	uint32_t	first;
	uint32_t	nrows;
	uint64_t	heap;
	uint32_t	heap_used;
} GjBufferedChunk;

/* Probe chunks on the device, one behind the other, so that they pass the joins together. */
typedef struct GjChunkBuffer
{
	GjBuffer	memory;
	uint32_t	nrows;
	uint64_t	heap_used;
	bool		has_nulls[GJ_MAX_COLUMNS];	/* of the probe columns: a chunk has had some */
	uint32_t	nparts;
	GjBufferedChunk part[GJ_BUFFER_CHUNKS];
} GjChunkBuffer;

/* While the joins work on one buffer, chunks are copied to the other. */
typedef struct GjChunkBuffers
{
	GjChunkBuffer buffer[2];
	uint32_t	n;				/* 0: not made yet; 1 where memory is short */
	uint32_t	filling;		/* the buffer that the next chunk goes to */
	uint32_t	rows;			/* capacity of a buffer */
	uint64_t	heap;
	GjColumnPlace *places;		/* of the probe columns in a buffer */
	uint64_t	heap_place;
} GjChunkBuffers;

/* Marks of a queue: one a slot in use, in turn, then those of the buffers. */
#define GJ_SLOT_MARKS		56
#define GJ_MARK_LOADED(i)	(GJ_SLOT_MARKS + (i))	/* buffer i: its chunks are there */
#define GJ_MARK_FREE(i)		(GJ_SLOT_MARKS + 2 + (i))	/* its rows are not read any more */

/* Slots whose chunks are being read. */
typedef struct GjUsedSlots
{
	uint32_t	used[GJ_SLOT_MARKS];	/* their numbers, by their marks */
	uint32_t	first;			/* the one that was used first */
	uint32_t	n;
	uint64_t	nread;			/* slots whose marks have passed */
	uint32_t	narriving;		/* fragments that are complete when more have */
} GjUsedSlots;

/* ---- rows.c: where rows go */

/* Rows first .. end-1. */
typedef struct GjRowRange
{
	uint32_t	first;
	uint32_t	end;
} GjRowRange;

/* Rows of a source on the device, as the way in which they have come describes them. */
typedef struct GjRows
{
	uint32_t	source;
	const GjColumn *columns;	/* of the source, in the order of the program */
	GjRowRange *ranges;			/* that the rows are */
	uint32_t	nranges;
	void	   *heap;			/* that references are relative to */
	uint64_t	heap_used;
	bool		stay;			/* where they are, until gj_fused_flush: they may wait for others */
	const uint32_t *codes;		/* group codes of the columns' rows; NULL: unknown */
} GjRows;

/* Where rows of a source go. */
typedef struct GjRowsTo
{
	const char *name;
	GjStatus	(*rows) (GjRun *run, GjRows *rows);
	GjLane		lane;			/* on which its chunks are read */
	/* Memory that a chunk needs there, before what it is kept in. */
	GjStatus	(*reserve) (GjRun *run, uint32_t source, const GjChunk *chunk);
	/* Queues what reads a chunk, from where it is kept, if it is. */
	GjStatus	(*chunk) (GjRun *run, uint32_t source, const GjChunk *chunk, const GjKept *kept);
} GjRowsTo;

extern const GjRowsTo gj_to_build;	/* to a relation, of which a build side is made, or sets */
extern const GjRowsTo gj_to_joins;	/* through the joins, each chunk in a copy of its slot */
extern const GjRowsTo gj_to_joins_buffered; /* the same, chunks by way of buffers on the device */
extern const GjRowsTo gj_to_exchange;	/* to the runs of their parts */
extern const GjRowsTo gj_to_nowhere;	/* they are only kept */

/* Rows of n ranges. */
extern uint64_t gj_count_ranges(const GjRowRange *ranges, uint32_t n);
/* Adds the copies of ranges of rows of `width` bytes, one behind the other; returns how many. */
extern uint32_t gj_add_pieces(GjPiece *pieces, uint8_t *to, const void *from, uint32_t width,
							  const GjRowRange *ranges, uint32_t n);
/* Describes ranges of rows of a packed column, whose values are to go to `to`; returns how many. */
extern uint32_t gj_add_packed(GjPackColumn *packed, uint8_t *to, const GjColumn *from,
							  const GjRowRange *ranges, uint32_t n);

/* Takes rows that have come to where their source's go. */
extern GjStatus gj_source_rows(GjRun *run, GjRows *rows);
/* The same for rows that are where an exchange has brought them. */
extern GjStatus gj_source_rows_behind(GjRun *run, GjRows *rows);
/* Appends them to a relation. */
extern GjStatus gj_append_rows(GjRun *run, GjRelation *relation, GjRows *rows);

/* together.c: rows of fragments, put together where that saves calls of the device. */
typedef struct GjTogether GjTogether;

#define GJ_MOST_TOGETHER	16

/* NULL: out of host memory. */
extern GjTogether *gj_together_open(GjRun *run, uint32_t source);
extern void gj_together_close(GjTogether *together);
/*
 * Room for the rows of one more fragment, whose columns go to *columns and whose ranges, up to
 * GJ_FRAGMENT_BLOCKS, to where the struct points; then gj_together_add takes them.
 */
extern GjRows *gj_together_next(GjTogether *together, GjColumn **columns);
extern GjStatus gj_together_add(GjTogether *together);
/* Takes what was added to where the source's rows go. */
extern GjStatus gj_together_flush(GjTogether *together);

/* All n rows of columns. */
#define GJ_ALL_ROWS(source, columns, n, stay) \
	(GjRows) {source, columns, &(GjRowRange) {0, (uint32_t) (n)}, 1, NULL, 0, stay}

/* ---- the state */

typedef struct GjIntake
{
	GjColumnPlace *places;		/* of all columns in the chunks of their sources */
	GjLayout	layout[GJ_MAX_SOURCES];
	const GjRowsTo *to[GJ_MAX_SOURCES];
	GjRunResident resident[GJ_MAX_SOURCES];
	bool		keeps_nothing;	/* of build chunks: see gj_run_may_keep */
	GjRunSide	side[GJ_MAX_SOURCES];
	GjRunCodes	codes;
	uint64_t	clock;			/* of the store when the run began to ask; 0: it did not */
	GjBuffer	compact;		/* rows of a fragment that lay scattered */
	uint8_t    *slot_copy;		/* of a slot of a load ring; NULL: none was needed */
	GjChunkBuffers buffers;
	GjUsedSlots slots;
	struct GjRunExchange *exchange; /* NULL: rows stay where they came */
} GjIntake;

/* intake.c: waits until the queue reads nothing more, also after an error; status, or the wait's. */
extern GjStatus gj_run_wait_after(GjRun *run, GjStatus status);

/* intake.c: GJ_OK if rows of the source may come now. */
extern GjStatus gj_run_may_load(GjRun *run, uint32_t source);

/* chunk.c */
/* Memory for probe chunks on their way to the device, if they go by way of buffers. */
extern GjStatus gj_run_reserve_buffers(GjRun *run);
/* Gives back the slots that are free; with `wait`, waits for all. */
extern GjStatus gj_run_free_slots(GjRun *run, bool wait);
/* Copies a chunk to a buffer (GjRowsTo.chunk). */
extern GjStatus gj_run_buffer_chunk(GjRun *run, uint32_t source, const GjChunk *chunk,
									const GjKept *kept);
/* Gives the buffers' memory back, when nothing is copied there any more. */
extern void gj_run_free_buffers(GjRun *run);

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

/* source/fragment.c */
/*
 * True if no row of a fragment of a table that was asked about passes the filter of the source.
 * places: as for gj_fragment_find.
 */
extern bool gj_run_excludes(const GjRun *run, uint32_t source, const GjWanted *wanted,
							const GjFragment *fragment, uint16_t *places);
/* Describes the columns of a source, from row `first` of a fragment on; places: the same. */
extern void gj_run_describe_columns(const GjWanted *wanted, const GjFragment *fragment,
									uint16_t *places, uint64_t first, GjColumn *columns);
/* Appends the rows of pages of a fragment to the relation of a build source. */
extern GjStatus gj_run_append_use(GjRun *run, uint32_t source, const GjPinned *use);
/* The same of those that several runs use, wherever they lie.  Waits. */
extern GjStatus gj_run_append_shared(GjRun *run, uint32_t source);
/* Gives the first n of resident->uses back, after the queue was waited for. */
extern void gj_run_drop_uses(GjRunResident *resident, uint32_t n);
/* Gives all fragments back, after the queue was waited for. */
extern void gj_run_release(GjRun *run, uint32_t source);

/*
 * source/cached_codes.c: the n fragments that the run holds are all that its probe source has used.
 * Finds the group codes of their rows, one behind the other, or notes that they are wanted.  NULL:
 * there are none.
 */
extern const uint32_t *gj_codes_find(GjRun *run, uint32_t n);
/* Makes and keeps codes if they are wanted (GjIntakeOps.keep). */
extern GjStatus gj_codes_keep(GjRun *run);

/*
 * source/cached.c: a build source has ended.  Finds the side that was built of the same, or
 * makes its relation complete.
 */
extern GjStatus gj_side_resolve(GjRun *run, uint32_t source);
/* Lists n fragments that are used, with copies of their pages at *bits; returns where the list ends. */
extern GjSideFragment *gj_side_list_uses(const GjPinned *uses, uint32_t n, GjSideFragment *at,
										 uint64_t **bits);
/* Rows of fragments that a build source is made of, to its stage, unless the side was found. */
extern GjStatus gj_run_send_uses(GjRun *run, uint32_t source);
/* True if the side was found: then the step has its table, and the relation its columns. */
extern bool gj_side_take(GjRun *run, GjRunStep *rs);
/* A side was built: keeps it, if that can be done. */
extern GjStatus gj_side_keep(GjRun *run, GjRunStep *rs);
/* Says what was made of a source: the relation, nrows of which can match.  False: out of memory. */
extern bool gj_side_describe(GjRun *run, uint32_t source, const GjRelation *relation,
							 uint64_t nrows);
/* Hands what was made of a source over to be kept: then it is side[source].kept.  Waits. */
extern GjStatus gj_side_publish_made(GjRun *run, uint32_t source);
/* Rows of all pages that are read. */
extern uint64_t gj_count_rows(const GjPinned *uses, uint32_t n);
/* Gives the sides back, after the queue was closed. */
extern void gj_side_release(GjRun *run);

/* source/split.c */
/*
 * Takes the rows of a chunk, or nrows of columns, to send them.  Those stay where they lie until
 * the source has ended.
 */
extern GjStatus gj_run_stage_chunk(GjRun *run, uint32_t source, const GjChunk *chunk,
								   const GjKept *kept);
extern GjStatus gj_run_stage_rows(GjRun *run, uint32_t source, const GjColumn *columns,
								  uint32_t nrows);
/* Sends those that wait, if they are many: so that others need not wait for them. */
extern GjStatus gj_run_send_many(GjRun *run, uint32_t source);
/* source/block.c: takes all probe rows that were sent through the joins. */
extern GjStatus gj_run_open_blocks(GjRun *run);

/* source/block.c */
/* False: probe rows are exchanged, and come without columns that only their filter reads. */
extern bool gj_run_has_probe_columns(const GjRun *run);
/* True if rows of the source are exchanged. */
extern bool gj_run_exchanges(const GjRun *run, uint32_t source);
/* True if gj_run_stage_rows sends them at once, for their references point into what has them. */
extern bool gj_run_sends_in_place(const GjRun *run, uint32_t source);
/* gj_program_identity of the program that the session has submitted. */
extern uint64_t gj_run_identity(const GjRun *run);
/* What rows of a source have passed before they are sent, or when it is built; -1: no filter. */
extern int32_t gj_run_source_filter(const GjRun *run, uint32_t source);
/* Which part of the source's rows the run has, and of how many; 0 of 1: all. */
extern void gj_run_exchanged_part(const GjRun *run, uint32_t source, uint32_t part[2]);
extern void gj_run_free_exchange(GjRun *run);

#endif							/* GJ_DAEMON_SOURCE_INTAKE_H */
