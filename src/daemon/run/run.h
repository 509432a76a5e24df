/*
 * run/state.h
 *	  Runs a program on a device: the session's side of it.
 *
 * session.c (for a backend) and run_file.c (for a file) feed a run with the chunks
 * and ends of its sources and pass on what it makes.  A run belongs to one thread.
 * After any status but GJ_OK only gj_run_error and gj_run_close may follow.
 */
#ifndef GJ_DAEMON_RUN_RUN_H
#define GJ_DAEMON_RUN_RUN_H

#include "daemon/base/devices.h"

typedef struct GjRun GjRun;
typedef struct GjParcel GjParcel;
typedef struct GjSinkOps GjSinkOps;
typedef struct GjJoinOps GjJoinOps;

/* Bytes of an answer about one fragment. */
#define GJ_LEAST_ANSWER		(sizeof(GjAnswered) + sizeof(GjKnownFragment) + \
							 sizeof(uint64_t) * (GJ_FRAGMENT_WORDS + GJ_FRAGMENT_BLOCKS))

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
	 * A slot for the next rows and their keys, registered memory of GJ_SORTED_SLOT_SIZE bytes.  Waits
	 * for it; gives the same one until it was filled.
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
	GjChooseJoin join;
	GjTarget	target;
	GjTiles		tiles;
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

/* What a run that exchanges rows with others asks of who brings them together. */
typedef struct GjExchangeOps
{
	/*
	 * One of the run's parcels that nobody reads any more.  Waits for it; gj_run_receive may be called
	 * meanwhile, and is called with what waits for it unless await_split comes soon.
	 */
	GjStatus	(*get_parcel) (void *arg, GjParcel *parcels, uint32_t n, bool awaits,
							   GjParcel **parcel);
	/* Waits, in the same way, until gj_run_has_split. */
	GjStatus	(*await_split) (void *arg);
	/* Hands the parcel to the runs of all other parts, complete. */
	GjStatus	(*send_parcel) (void *arg, GjParcel *parcel);
	/* The run has read a parcel of another one. */
	void		(*parcel_read) (void *arg, GjParcel *parcel);
} GjExchangeOps;

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

/* True: a chunk of this source may be given now; else some other source must end first. */
extern bool gj_run_accepts(const GjRun *run, uint32_t source);

/*
 * Takes the chunk of `nrows` rows at `memory`, which is read until slot_free(slot), in this
 * call or in a later one.  `slot` is the caller's name for it.
 */
extern GjStatus gj_run_chunk(GjRun *run, uint32_t source, uint32_t nrows,
							 uint8_t *memory, uint32_t slot);

/* Chunks of inner sources, from now on, may become resident here (so it is at first), or not. */
extern void gj_run_may_keep(GjRun *run, bool keep);

/* Tells which fragments of a table are resident: the question at `memory`, of gj_ask_size() bytes. */
extern GjStatus gj_run_ask(GjRun *run, const uint8_t *memory, const GjAnswers *answers);
/*
 * The same for runs of one program on several devices: fragments that any of them has, each
 * once.  runs[0] notes errors.
 */
extern GjStatus gj_runs_ask(GjRun **runs, uint32_t n, const uint8_t *memory,
							const GjAnswers *answers);

/* True if the source was asked about and the device keeps resident data at all. */
extern bool gj_run_has_store(const GjRun *run, uint32_t source);
/* The same for a chunk of the source.  False: it is not to be kept. */
extern bool gj_run_place(const GjRun *run, uint32_t source, const uint8_t *chunk, uint32_t n,
						 uint32_t *place);
/* True: fragments of the source that are used are only noted until it ends. */
extern bool gj_run_notes_uses(const GjRun *run, uint32_t source);
/* Takes the rows of n fragments. */
extern GjStatus gj_run_use(GjRun *run, uint32_t source, uint32_t n, const GjUse *uses);

/*
 * The same of fragments of an inner source that several runs use, wherever they lie.  Each is taken
 * from the run that has it on its device, once; then all runs are told to use them; when the source
 * has ended for all of these they are given back (gj_resident_give_back).
 */
typedef struct GjPinned GjPinned;

/* *pinned: the fragment that was told of by that id, all pages.  False: it was not. */
extern bool gj_run_take_fragment(GjRun *run, uint32_t source, uint64_t id, GjPinned *pinned);
/* The bits of their pages stay until the source has ended. */
extern GjStatus gj_run_use_shared(GjRun *run, uint32_t source, uint32_t n, const GjPinned *used);

extern GjStatus gj_run_source_end(GjRun *run, uint32_t source);
/* True if the source is an inner one that was kept as it was built: the queue works on none of it. */
extern bool gj_run_has_side(const GjRun *run, uint32_t source);

/*
 * Rows of inner sides that come out by themselves at the end, where several runs have the
 * same inner rows, in the same order, and each has seen some of the outer ones.  Instead of
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
/* Sends those of rows first .. end-1 that come out; the flags are then gone. */
extern GjStatus gj_run_some_rows(GjRun *run, uint32_t i, uint64_t first, uint64_t end);

/* A number that equal programs share, and hardly ever others do. */
extern uint64_t gj_program_identity(const GjProgram *program);

/*
 * Exchange: several runs of one program, one a part, each get some rows of the outer source and
 * of the inner one that `step` joins, and hand each row to the run of its part, by a hash of the
 * step's keys (source/split.c).  filter: what the outer and the inner rows must pass (expressions,
 * or -1) before they are sent; the program says that its sources have none.  Once, before
 * anything else.
 */
typedef struct GjExchangePlan
{
	uint32_t	step;
	uint32_t	nparts;
	uint32_t	part;			/* of this run */
	int32_t		outer_filter;
	int32_t		inner_filter;
	uint64_t	program;		/* gj_program_identity of the one with these filters */
	bool	   *staying;		/* atomic, of all runs: their parts of the outer rows are to be kept; NULL:
								 * they may not be */
} GjExchangePlan;

extern GjStatus gj_run_open_exchange(GjRun *run, const GjExchangePlan *plan,
									 const GjExchangeOps *ops, void *arg);
/* *done = the parcel that is being filled has its rows.  With `wait`, waits until it has. */
extern GjStatus gj_run_has_split(GjRun *run, bool wait, bool *done);
/* The source has ended: hands over all of its rows that are still here. */
extern GjStatus gj_run_send_parcels(GjRun *run, uint32_t source);
/*
 * All rows of a source have come, and none of the runs works on anything.  True if all of them have
 * found their part of it as it was built, or (the outer one) exchanged before: nothing is handed over then.
 */
extern bool gj_sides_resolve(GjRun **runs, uint32_t nruns, uint32_t source);
/* If not, and it is the outer one: decides whether the runs are to keep their parts of it. */
extern void gj_exchanged_plan(GjRun **runs, uint32_t nruns);
/*
 * The run is finished, and nrows outer rows were sent to its part, by all of them: keeps these, if that
 * was planned.  Waits.
 */
extern GjStatus gj_exchanged_keep(GjRun *run, uint64_t nrows);
/* The rows of the inner source are where they belong: gives back what took them there. */
extern void gj_run_end_exchange(GjRun *run);
/* All inner sides are built or were kept: device memory that the exchange of outer rows may take here. */
extern uint64_t gj_run_exchange_space(GjRun *run);
/* Reserves that, the same number for all runs, before any outer row comes. */
extern GjStatus gj_run_reserve_exchange(GjRun *run, uint64_t nbytes);
/*
 * Takes the rows of the run's part of another one's parcel.  The host is told when it has been read,
 * here or in a later call of gj_run_settle; also after an error.
 */
extern GjStatus gj_run_receive(GjRun *run, GjParcel *parcel);
/* True: parcels of others are being read. */
extern bool gj_run_is_reading(const GjRun *run);
/* Tells the host which of these have been read by now; with `wait`, waits for the first one. */
extern GjStatus gj_run_settle(GjRun *run, bool wait);
/* Waits until none is read any more, also after an error; tells nobody. */
extern void gj_run_stop_reading(GjRun *run);
/*
 * Outer rows that were sent, its own and received ones, wait for more while parcels are filled.  True:
 * there are some for which the device had better not wait if nothing else is to be sent; and taking
 * them through the steps.
 */
extern bool gj_run_has_sent(const GjRun *run);
extern GjStatus gj_run_join_sent(GjRun *run);
/* Rows of the outer source that were received so far, and all bytes that other devices sent. */
extern void gj_run_received(const GjRun *run, uint64_t *rows, uint64_t *nbytes);

/*
 * Works on chunks that were given before; those given since the call before this one may
 * stay on their way to the device meanwhile.
 */
extern GjStatus gj_run_work(GjRun *run);

/* True: no further chunk can change the result; gj_run_finish comes next. */
extern bool gj_run_complete(const GjRun *run);

/* Sends what is still to be sent.  Fills in the statistics. */
extern GjStatus gj_run_finish(GjRun *run, GjRunStats *stats);

/* Works on all chunks that were given, and frees their slots. */
extern GjStatus gj_run_flush(GjRun *run);

/* Waits until the device has done all that is queued; then time counts as waiting. */
extern GjStatus gj_run_wait(GjRun *run);

/* More about the error that the last call returned; may be "". */
extern const char *gj_run_error(GjRun *run);

/*
 * Gives back all memory of the device.  Waits for queued work.  GJ_DEVICE_LOST, with
 * *why, if the device turns out to be gone; else GJ_OK.
 */
extern GjStatus gj_run_close(GjRun *run, GjErrorText *why);

#endif							/* GJ_DAEMON_RUN_RUN_H */
