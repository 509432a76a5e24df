/*
 * run/run.h
 *	  Runs a program on a device: the session's side of it.
 *
 * session.c (for a backend) and run_file.c (for a file) feed a run with the chunks
 * and ends of its sources and pass on what it makes.  A run belongs to one thread.
 * After any status but GJ_OK only gj_run_error and gj_run_close may follow.
 */
#ifndef GJ_DAEMON_RUN_RUN_H
#define GJ_DAEMON_RUN_RUN_H

#include "daemon/base/base.h"

typedef struct GjRun GjRun;
typedef struct GjSinkOps GjSinkOps;
typedef struct GjJoinOps GjJoinOps;
typedef struct GjIntakeOps GjIntakeOps;

/* What a run asks of its caller, whatever it runs. */
typedef struct GjRunHost
{
	void	   *arg;
	/* True: the run is to end with GJ_CANCELLED.  Called every few ms. */
	bool		(*stop) (void *arg);
	/* The chunk that gj_run_chunk was given as `slot` has been read. */
	GjStatus	(*slot_free) (void *arg, uint32_t slot);
} GjRunHost;

/* In which form a run hands its result over. */
typedef enum GjForm
{
	GJ_FORM_FINAL,				/* batches or states, as the client gets them */
	GJ_FORM_PARTIAL,			/* parts of groups (sink/sink.h), now and then and at the end */
	GJ_FORM_SORTED				/* sorted runs (sink/sink.h), one or several */
} GjForm;

typedef struct GjFinalOps
{
	/* Address of a free slot of GJ_OUTPUT_SLOT_SIZE bytes.  Waits for one. */
	GjStatus	(*slot) (void *arg, uint8_t **memory);
	/* True if slot() would not wait now. */
	bool		(*ready) (void *arg);
	/* Sends the slot that slot() gave last. */
	GjStatus	(*send) (void *arg, uint32_t nrows);
	/* The columns of a stage are wanted, where they can be made on the device: then there is */
	bool		keeps_rows;
	/*
	 * Takes them from the run, as all that there is.  No queued work writes them any more.
	 * False: they are still the run's.
	 */
	bool		(*keep) (void *arg, GjDeviceEntry *entry, GjWork *work, GjRelation *rows);
} GjFinalOps;

typedef struct GjPartialOps
{
	/* A slot of GJ_OUTPUT_SLOT_SIZE bytes for a part. */
	GjStatus	(*slot) (void *arg, uint8_t **memory);
	GjStatus	(*keep) (void *arg, const uint8_t *slot);
} GjPartialOps;

typedef struct GjSortedOps
{
	/* A sorted run begins, the last one or not. */
	GjStatus	(*begin) (void *arg, bool last);
	/*
	 * A slot for the next rows and their keys, registered memory of GJ_SORTED_SLOT_SIZE bytes.
	 * Waits for it; gives the same one until it was filled.
	 */
	GjStatus	(*slot) (void *arg, uint8_t **memory);
	/* The keys of the run's last row; called before the first slot is filled. */
	void		(*end_keys) (void *arg, const int64_t *keys);
	GjStatus	(*filled) (void *arg);
} GjSortedOps;

/* Where the result of a run goes; chosen by who opens the run. */
typedef struct GjTarget
{
	GjForm		form;			/* says which ops there are */
	void	   *arg;
	union
	{
		const GjFinalOps *final;
		const GjPartialOps *partial;
		const GjSortedOps *sorted;
	};
} GjTarget;

/* Which tiles of a family of sets are the run's: runs that have the same sets share them. */
typedef struct GjTiles
{
	/* Asked about each tile, 0, 1, ...: is it this run's? */
	bool		(*take) (void *arg, uint64_t tile);
	void	   *arg;
	/* All these runs' tiles have so many pairs at most; 0: as many as the run has memory for. */
	uint32_t	npairs;
} GjTiles;

/* How a step of a checked program finds its pairs: run/join.h. */
typedef const GjJoinOps *(*GjChooseJoin) (const GjProgram *program, const GjStep *step);

/* What a run is opened with, beside its program. */
typedef struct GjRunSetup
{
	const GjRunHost *host;		/* must stay until gj_run_close; the rest is copied */
	const GjSinkOps *sink;		/* what becomes of tuples: run/sink.h */
	const GjIntakeOps *intake;	/* how rows come */
	GjChooseJoin join;
	GjTarget	target;
	GjTiles		tiles;
	bool		gathers;		/* probe rows wait until all have come: gj_run_probe_range */
} GjRunSetup;

/* Where answers to questions about resident data go. */
typedef struct GjAnswers
{
	void	   *arg;
	/* Room for an answer, *nbytes of at least GJ_LEAST_ANSWER. */
	GjStatus	(*space) (void *arg, uint8_t **memory, uint32_t *nbytes);
	/* So many of them are used. */
	void		(*answered) (void *arg, uint32_t nbytes);
} GjAnswers;

/*
 * How rows come to a run, as far as the run asks for it; src/daemon/source has the one that there
 * is.  All of it is always there.
 */
struct GjIntakeOps
{
	/* Makes run->intake.  False: out of host memory, or rows of a source fit no chunk. */
	bool		(*open) (GjRun *run);
	/* False: probe rows come without columns that only their filter reads. */
	bool		(*has_probe_columns) (const GjRun *run);
	/* True: what is built of a build source may stay for later runs. */
	bool		(*keeps_side) (const GjRun *run, uint32_t source);
	/* Takes all probe rows that were given through the steps. */
	GjStatus	(*flush) (GjRun *run);
	/* Gives the slots back whose chunks have been read. */
	GjStatus	(*free_slots) (GjRun *run);
	/* The run waits for its client: lets the device finish, and gives back what rows came from. */
	GjStatus	(*rest) (GjRun *run);
	/* The result is complete: keeps what later runs can use.  Only errors of the device count. */
	GjStatus	(*keep) (GjRun *run);
	/* No more probe rows come: gives the memory back in which they were put together. */
	void		(*free_buffers) (GjRun *run);
	/* The queue is closed next: gives back device memory of the run. */
	void		(*stop) (GjRun *run);
	/* The queue was closed: gives back what is the store's, unless the device is lost. */
	void		(*free) (GjRun *run, bool lost);
};

/*
 * A run of a checked program, which must stay until gj_run_close, as must lease and host, that
 * has not started: it can be asked what is resident, or closed.  NULL: out of host memory.
 */
extern GjRun *gj_run_prepare(GjDeviceEntry *entry, const GjProgram *program, GjLease *lease,
							 const GjRunSetup *setup);

/* Starts it on its device, which takes some tenth of a millisecond on a GPU. */
extern GjStatus gj_run_start(GjRun *run);

/* Both.  NULL with *status and *why. */
extern GjRun *gj_run_open(GjDeviceEntry *entry, const GjProgram *program, GjLease *lease,
						  const GjRunSetup *setup, GjStatus *status, GjErrorText *why);

/*
 * Rows of build sides that come out by themselves at the end, where several runs have the
 * same build rows, in the same order, and each has seen some of the probe rows.  Instead of
 * leaving it to the end of source 0, for one step after the other: all runs finish their
 * flags, a byte a row; these are copied out, put together with OR, and copied in; then each
 * run sends some of the rows.
 */
/* Flags of step i; 0: no rows come out of it by themselves. */
extern uint64_t gj_run_nflags(const GjRun *run, uint32_t i);
extern GjStatus gj_run_finish_flags(GjRun *run, uint32_t i);
/* Flags of rows first .. first+n-1, to (`out`) or from registered memory.  Waits. */
extern GjStatus gj_run_copy_flags(GjRun *run, uint32_t i, uint64_t first, uint64_t n,
								  uint8_t *flags, bool out);
/* The flags that run number `number` of n needs for the rows that it is to send. */
extern void gj_run_flags_to_take(const GjRun *run, uint32_t i, uint32_t number, uint32_t n,
								 uint64_t *first, uint64_t *end);
/* These rows, by their numbers in the run: the same, unless it has other rows than others. */
extern void gj_run_rows_to_send(const GjRun *run, uint32_t i, uint64_t *first, uint64_t *end);
/* Sends those of rows first .. end-1 that come out; the flags are then gone. */
extern GjStatus gj_run_some_rows(GjRun *run, uint32_t i, uint64_t first, uint64_t end);

/*
 * Probe rows that several runs join, all in the same order, with a block each of the build side of
 * the first step.  A run sets the flags, a byte a row, of those that have a match, and returns pairs
 * alone; with complete flags it has no row of that build side, and returns what the first step
 * returns by itself.  Once, before a source ends; flags stay until the run is closed.
 */
extern void gj_run_mark_rows(GjRun *run, uint8_t *flags, bool complete);

/*
 * Ring: several runs of one program, one on each device, share the build side of a nested loop.
 * Each has some of its rows, a share.  When all have ended that source, each joins its probe rows
 * with its own share first and then with blocks of the others', which it copies from their devices
 * (run/ring.c).  Flags of build rows are those of all shares, one behind the other.
 */
typedef struct GjRing GjRing;

/* For the build side of a step; NULL: out of host memory. */
extern GjRing *gj_ring_make(uint32_t step, uint32_t nshares);
/* When all of its runs are closed. */
extern void gj_ring_free(GjRing *ring);

/* The run has that share.  Once, before it starts. */
extern GjStatus gj_run_join_ring(GjRun *run, GjRing *ring, uint32_t share);
/*
 * All shares are built, and no run works on anything: reserves what blocks and flags need.  Finds
 * out if the run is complete, for nothing can match.
 */
extern GjStatus gj_run_start_ring(GjRun *run);

/*
 * Ranges: several runs of one program, one on each device, which gather probe rows.  Each joins a
 * range of what a sort-merge join compares (run/ranges.c).  When the probe source has ended, all
 * runs do one of these after the other: both sort_range, take_range, drop_sorted.  Then they end
 * the build source, and probe_range.  Sources have no references.
 */
typedef struct GjRanges GjRanges;

/* For a step that sorts; NULL: out of host memory. */
extern GjRanges *gj_ranges_make(uint32_t step, uint32_t nruns);
extern void gj_ranges_free(GjRanges *ranges);
/* The run has that number.  Once, before it starts. */
extern GjStatus gj_run_join_ranges(GjRun *run, GjRanges *ranges, uint32_t number);
/* Sorts the rows of a side that the run has, and shows them to the others.  Waits. */
extern GjStatus gj_run_sort_range(GjRun *run, bool build_side);
/* All have: decides which run gets what. */
extern GjStatus gj_ranges_cut(GjRanges *ranges);
/* Copies the run's rows from all.  Waits. */
extern GjStatus gj_run_take_range(GjRun *run);
/* All have: gives back what others have copied. */
extern void gj_run_drop_sorted(GjRun *run);
/* Joins the run's probe rows. */
extern GjStatus gj_run_probe_range(GjRun *run);

/* Runs that read what is others': bytes that came from other devices. */
extern uint64_t gj_run_received(const GjRun *run);
/* Waits until nothing is copied from there, also after an error. */
extern void gj_run_stop_copies(GjRun *run);

/* True: no further chunk can change the result; gj_run_finish comes next. */
extern bool gj_run_complete(const GjRun *run);

/* Sends what is still to be sent.  Fills in the statistics. */
extern GjStatus gj_run_finish(GjRun *run, GjRunStats *stats);

/* The run waits for others: time counts as waiting until it works again. */
extern void gj_run_waits(GjRun *run);

/* Notes more about an error and returns its status. */
extern GjStatus gj_run_fail(GjRun *run, GjStatus status, const char *text);

/* More about the error that the last call returned; may be "". */
extern const char *gj_run_error(GjRun *run);

/*
 * Gives back all memory of the device.  Waits for queued work.  GJ_DEVICE_LOST, with
 * *why, if the device turns out to be gone; else GJ_OK.
 */
extern GjStatus gj_run_close(GjRun *run, GjErrorText *why);

#endif							/* GJ_DAEMON_RUN_RUN_H */
