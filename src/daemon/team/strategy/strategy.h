/*
 * strategy.h
 *	  How the work of a run is spread over devices: one file for each way, chosen once, when the
 *	  team opens (team/open.c).
 *
 *	single.c	one device, driven by the session's thread
 *	replicate.c all build rows on every device, probe rows on whichever is free
 *	exchange.c	each device has its part of the keys, of one build source and of the probe source
 *	ring.c		each device has a share of one build source, of which blocks go round
 *	ranges.c	each device has a range of what a join compares, of both sides
 *	share.c		what these three have in common
 *	passes.c	build rows fit no device: rows are kept on the host, and parts are run one by one
 */
#ifndef GJ_DAEMON_TEAM_STRATEGY_STRATEGY_H
#define GJ_DAEMON_TEAM_STRATEGY_STRATEGY_H

#include "daemon/team/state.h"

/* What a worker's thread asks. */
typedef struct GjWorkerOps
{
	/* The next task; NULL: there is none.  The lock is held. */
	GjTask	   *(*next_task) (GjWorker *worker);
	/* True: without a task there is something to do.  The lock is held, after next_task. */
	bool		(*has_more) (const GjWorker *worker);
	/* Does that; as gj_worker_catch_up. */
	GjStatus	(*do_more) (GjWorker *worker, uint32_t seen, bool *more);
	/* A task is done. */
	GjStatus	(*after_task) (GjWorker *worker);
	/* The worker's run is complete: true if the result needs no rows of any other one. */
	bool		(*all_complete) (GjTeam *team);
} GjWorkerOps;

/* What the session's thread asks: as the functions of team.h, but finish, which the others' end. */
typedef struct GjStrategyOps
{
	const GjWorkerOps *worker;	/* of strategies with threads */
	void		(*leave) (GjWorker *worker);	/* theirs, too: the team closes, in its thread */
	bool		stays_open;		/* runs do, to the end: what they sort last is read there */
	bool		(*accepts) (const GjTeam *team, uint32_t source);
	GjStatus	(*chunk) (GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory,
						  uint32_t slot);
	GjStatus	(*ask) (GjTeam *team, const uint8_t *memory, const GjAnswers *answers);
	GjStatus	(*use) (GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses);
	bool		reads_rows;		/* that lie on the one device: then there is take_rows */
	GjStatus	(*take_rows) (GjTeam *team, uint32_t source, const GjKeptRows *rows);
	GjStatus	(*source_end) (GjTeam *team, uint32_t source);
	bool		(*complete) (const GjTeam *team);
	GjStatus	(*work) (GjTeam *team);
	GjStatus	(*flush) (GjTeam *team);
	GjStatus	(*finish) (GjTeam *team, GjRunStats *stats);
	void		(*error) (GjTeam *team, GjErrorText *why);
	/* When all runs are closed; frees the state. */
	void		(*close) (GjTeam *team);
} GjStrategyOps;

/* ---- each sets the team's strategy, and starts it */

extern const GjStrategyOps gj_single_ops;
extern GjStatus gj_single_open(GjTeam *team, GjErrorText *why);
extern GjStatus gj_replicate_open(GjTeam *team);
extern GjStatus gj_exchange_open(GjTeam *team, uint32_t step);
extern GjStatus gj_ring_open(GjTeam *team, uint32_t step);
extern GjStatus gj_ranges_open(GjTeam *team, uint32_t step);
extern GjStatus gj_passes_open(GjTeam *team, GjErrorText *why);

/* ---- replicate.c, on which the others with threads build */

/* The state of a strategy with threads begins with this one. */
typedef struct GjReplicate
{
	/* flags of the build rows of a step, merged; guarded by lock, and also read without it */
	uint8_t    *flags;
	uint64_t	nflags;
} GjReplicate;

/* A GjStrategyOps's functions. */
extern GjStatus gj_replicate_chunk(GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory,
								   uint32_t slot);
extern GjStatus gj_replicate_use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses);
extern GjStatus gj_replicate_source_end(GjTeam *team, uint32_t source);
extern bool gj_replicate_complete(const GjTeam *team);
extern GjStatus gj_replicate_finish(GjTeam *team, GjRunStats *stats);
extern void gj_replicate_error(GjTeam *team, GjErrorText *why);

/* Frees the state. */
extern void gj_replicate_close(GjTeam *team);

/*
 * The probe source has ended for all workers, which have all build rows each: those that come out
 * by themselves, for one step after the other, because they pass the later steps.  own_step: of
 * this one each worker has rows that no other one has; -1: there is none.
 */
extern GjStatus gj_replicate_build_rows(GjTeam *team, int own_step);

/* True if build rows of a step come out by themselves when the probe source has ended. */
extern bool gj_replicate_makes_rows(const GjProgram *program);

/* All sources have ended: nothing more is needed of the backend. */
extern void gj_replicate_note_end(GjTeam *team);

/* Sources of which the worker has counted rows that no other one has. */
extern uint32_t gj_replicate_counted(const GjWorker *worker);

/*
 * Finds threads for all workers, has each one's run prepared, and posts the task that starts it:
 * meanwhile the backend is told, and asks what is resident.
 */
extern GjStatus gj_replicate_open_runs(GjTeam *team, GjStatus (*prepare) (GjWorker *worker),
									   GjTaskRun start);

/* The worker's run is finished: hands the result over. */
extern GjStatus gj_replicate_run_ended(GjWorker *worker);

/* Tasks: the worker's run starts; a source has ended for it. */
extern GjStatus gj_worker_start_run(GjWorker *worker, GjTask *task);
extern GjStatus gj_worker_end_source(GjWorker *worker, GjTask *task);

/* ---- worker.c: without anything that goes ahead */

extern const GjWorkerOps gj_plain_worker;

/* Closes the worker's run: those of all workers at a time. */
extern void gj_worker_leave(GjWorker *worker);

/* ---- exchange_choose.c */

/*
 * The step of whose build side n devices had better have a part each, or -1.  too_large: each of
 * them has no room for all build rows.
 */
extern int	gj_exchange_choose(const GjTeam *team, uint32_t n, bool too_large);

/* How they do, for such a step. */
extern GjScheme gj_exchange_scheme(const GjTeam *team, uint32_t step);

/* Device memory of a step's build side, as the program's lease counts it. */
extern uint64_t gj_step_side_bytes(const GjProgram *p, const GjStep *step);

/* What a device of n then has to keep less than all of the build sides. */
extern uint64_t gj_exchange_saves(const GjProgram *program, int step, uint32_t n);

/* What it needs beside what is left of them: rows that are gathered first. */
extern uint64_t gj_exchange_needs(const GjTeam *team, int step, uint32_t n);

#endif							/* GJ_DAEMON_TEAM_STRATEGY_STRATEGY_H */
