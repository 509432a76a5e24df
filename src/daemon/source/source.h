/*
 * source.h
 *	  How rows come to a run: the header of src/daemon/source for the others.
 *
 * Who opens a run gives it gj_intake, and then feeds it: with chunks of load rings or temporary
 * files, with fragments that are resident, and with blocks of rows that other runs have sent.
 * Cached build sides need no feeding: the end of their source finds them.  Each way describes the
 * rows that it has (rows.c), and the source says where they go: through the joins, to a build side,
 * or into an exchange.
 */
#ifndef GJ_DAEMON_SOURCE_SOURCE_H
#define GJ_DAEMON_SOURCE_SOURCE_H

#include "daemon/run/run.h"
#include "daemon/store/store.h"

/* What a run is opened with (gj_run_open). */
extern const GjIntakeOps gj_intake;

/* True: a chunk of this source may be given now; else some other source must end first. */
extern bool gj_run_accepts(const GjRun *run, uint32_t source);

/*
 * Takes the chunk of `nrows` rows at `memory`, which is read until slot_free(slot), in this
 * call or in a later one.  `slot` is the caller's name for it.
 */
extern GjStatus gj_run_chunk(GjRun *run, uint32_t source, uint32_t nrows,
							 uint8_t *memory, uint32_t slot);

/* Chunks of build sources, from now on, may become resident here (so it is at first), or not. */
extern void gj_run_may_keep(GjRun *run, bool keep);

/* Bytes of an answer about one fragment. */
#define GJ_LEAST_ANSWER		(sizeof(GjAnswered) + sizeof(GjKnownFragment) + \
							 sizeof(uint64_t) * (GJ_FRAGMENT_WORDS + GJ_FRAGMENT_BLOCKS))

/*
 * Tells which fragments of a table are resident on the devices of n runs of one program, each
 * fragment once.  question: gj_ask_size() bytes.  runs[0] notes errors.
 */
extern GjStatus gj_runs_ask(GjRun **runs, uint32_t n, const uint8_t *question,
							const GjAnswers *answers);

/* True if the source was asked about and the device keeps resident data at all. */
extern bool gj_run_has_store(const GjRun *run, uint32_t source);
/* Which of n devices is to keep a chunk of the source.  False: it is not to be kept. */
extern bool gj_run_place(const GjRun *run, uint32_t source, const uint8_t *chunk, uint32_t n,
						 uint32_t *place);
/* True: fragments of the source that are used are only noted until it ends. */
extern bool gj_run_notes_uses(const GjRun *run, uint32_t source);
/* Takes the rows of n fragments. */
extern GjStatus gj_run_use(GjRun *run, uint32_t source, uint32_t n, const GjUse *uses);

/*
 * The same of fragments of a build source that several runs use, wherever they lie.  Each is taken
 * from the run that has it on its device, once; then all runs are told to use them; when the source
 * has ended for all of these they are given back (gj_resident_give_back).
 */

/* *pinned: the fragment that was told of by that id, all pages.  False: it was not. */
extern bool gj_run_take_fragment(GjRun *run, uint32_t source, uint64_t id, GjPinned *pinned);
/* Its rows; 0: no row of it passes the filter, or it was not told of. */
extern uint64_t gj_run_fragment_rows(const GjRun *run, uint32_t source, uint64_t id);
/* The bits of their pages stay until the source has ended. */
extern GjStatus gj_run_use_shared(GjRun *run, uint32_t source, uint32_t n, const GjPinned *used);

/*
 * Takes the pages of a fragment of the probe side, wherever it lies: other runs take its other
 * pages.  `first`: the fragment counts for this run.  Waits, also if it fails: the fragment is not
 * read any more.
 */
extern GjStatus gj_run_use_part(GjRun *run, uint32_t source, const GjPinned *used, bool first);

/*
 * Takes all rows that another run has left on the same device.  They stay until the run is closed.
 * Nothing else comes of the source.
 */
extern GjStatus gj_run_take_rows(GjRun *run, uint32_t source, const GjKeptRows *kept);

/* Nothing more of the source comes, which ends later: all is where its rows are gathered.  Waits. */
extern GjStatus gj_run_source_loaded(GjRun *run, uint32_t source);
extern GjStatus gj_run_source_end(GjRun *run, uint32_t source);
/* True if the build side of the source is a cached one: the queue works on none of it. */
extern bool gj_run_has_side(const GjRun *run, uint32_t source);

/* A number that equal programs share, and hardly ever others do. */
extern uint64_t gj_program_identity(const GjProgram *program);

/*
 * Exchange: several runs of one program, one a part, each get some rows of the probe source and
 * of the build side that `step` joins, and hand each row to the run of its part, by a hash of the
 * step's keys (source/split.c).  filter: what the probe and the build rows must pass (expressions,
 * or -1) before they are sent; the program says that its sources have none.  Once, before
 * anything else.
 */
typedef struct GjExchangePlan
{
	uint32_t	step;
	uint32_t	nparts;
	uint32_t	part;			/* of this run */
	int32_t		probe_filter;
	int32_t		build_filter;
	uint64_t	program;		/* gj_program_identity of the one with these filters */
	bool	   *staying;		/* atomic, of all runs: parts of probe rows are to be kept; NULL:
								 * they may not be */
} GjExchangePlan;

/*
 * Rows of one source on the sender's device, part by part.  The sender writes it while it has
 * no user, and reads its own part; the runs of all other parts that have rows here read theirs.
 */
typedef struct GjBlock
{
	uint32_t	nusers;			/* guarded by the team's lock */
	bool		waits;			/* the sender's own probe rows have yet to pass the steps */
	uint32_t	source;
	GjDeviceEntry *entry;		/* where it lies */
	GjColumn   *columns;		/* of the source; data is NULL if nobody reads it */
	GjSplitParts parts;
	uint64_t	heap_start[GJ_SPLIT_PARTS + 1]; /* part p: bytes of the heap from heap_start[p] on,
												 * to which its references are relative */
	GjBuffer	memory;			/* of the columns */
	GjBuffer	heap;
} GjBlock;

static inline uint32_t
gj_block_rows(const GjBlock *block, uint32_t part)
{
	return block->parts.end[part] - block->parts.start[part];
}

/* What an exchanging run asks of who joins it with the others. */
typedef struct GjExchangeOps
{
	/*
	 * One of the run's n blocks that nobody reads any more.  Waits for it; meanwhile gj_run_receive
	 * may be called, and is called with what waits for it unless await_split comes soon.
	 */
	GjStatus	(*get_block) (void *arg, GjBlock *blocks, uint32_t n, bool awaits,
							   GjBlock **block);
	/* Waits, in the same way, until gj_run_has_split. */
	GjStatus	(*await_split) (void *arg);
	/* Hands a complete block to the runs of all other parts. */
	GjStatus	(*send_block) (void *arg, GjBlock *block);
	/* This run has read a block of another one. */
	void		(*block_read) (void *arg, GjBlock *block);
} GjExchangeOps;

/* The n blocks that a run sends its rows in. */
extern const GjBlock *gj_run_blocks(const GjRun *run, uint32_t *n);

extern GjStatus gj_run_open_exchange(GjRun *run, const GjExchangePlan *plan,
									 const GjExchangeOps *ops, void *arg);
/* *done = the block that is being filled has its rows.  With `wait`, waits until it has. */
extern GjStatus gj_run_has_split(GjRun *run, bool wait, bool *done);
/* The source has ended: hands over all of its rows that are still here. */
extern GjStatus gj_run_send_blocks(GjRun *run, uint32_t source);
/*
 * All rows of a source have come, and none of the runs works on anything.  True if all of them have
 * found their part of it as it was built, or (the probe source) exchanged before: nothing is handed
 * over then.
 */
extern bool gj_sides_resolve(GjRun **runs, uint32_t nruns, uint32_t source);
/* The step by whose keys probe rows are exchanged, if they could be kept so; else NULL. */
extern const GjStep *gj_exchanged_by(const GjRun *run);
/* If not, and it is the probe source: decides whether the runs are to keep their parts of it. */
extern void gj_exchanged_plan(GjRun **runs, uint32_t nruns);
/*
 * The run is finished, and nrows probe rows were sent to its part, by all of them: keeps these, if
 * that was planned.  Waits.
 */
extern GjStatus gj_exchanged_keep(GjRun *run, uint64_t nrows);
/* The rows of the build source are where they belong: gives back what took them there. */
extern void gj_run_end_exchange(GjRun *run);
/* All build sides are there: device memory that the exchange of probe rows may take here. */
extern uint64_t gj_run_exchange_space(GjRun *run);
/* Reserves that, the same number for all runs, before any probe row comes. */
extern GjStatus gj_run_reserve_exchange(GjRun *run, uint64_t nbytes);
/*
 * Takes the rows of the run's part of another one's block.  block_read tells when it has been read,
 * here or in a later call of gj_run_settle; also after an error.
 */
extern GjStatus gj_run_receive(GjRun *run, GjBlock *block);
/* True: blocks of others are being read. */
extern bool gj_run_is_reading(const GjRun *run);
/* Tells, by block_read, which of these have been read by now; `wait`: waits for the first one. */
extern GjStatus gj_run_settle(GjRun *run, bool wait);
/* Waits until none is read any more, also after an error; tells nobody. */
extern void gj_run_stop_reading(GjRun *run);
/*
 * Probe rows that were sent, its own and received ones, wait for more while blocks are filled.
 * True: there are some for which the device had better not wait if nothing else is to be sent; and
 * taking them through the steps.
 */
extern bool gj_run_has_sent(const GjRun *run);
extern GjStatus gj_run_join_sent(GjRun *run);
/* Probe rows that were received so far, the run's own too. */
extern uint64_t gj_run_exchanged_rows(const GjRun *run);

/*
 * Works on chunks that were given before; those given since the call before this one may
 * stay on their way to the device meanwhile.
 */
extern GjStatus gj_run_work(GjRun *run);

/* Works on all chunks that were given, and frees their slots. */
extern GjStatus gj_run_flush(GjRun *run);

/* Waits until the device has done all that is queued; then time counts as waiting. */
extern GjStatus gj_run_wait(GjRun *run);

#endif							/* GJ_DAEMON_SOURCE_SOURCE_H */
