/*
 * state.h
 *	  What the files of the team share: its workers, their tasks, and who calls what.
 *
 * `lock` guards the fields whose comments say so.  All others belong to the session's thread,
 * those of a worker to the worker's thread while it works.
 */
#ifndef GJ_DAEMON_TEAM_STATE_H
#define GJ_DAEMON_TEAM_STATE_H

#include <pthread.h>

#include "team.h"
#include "daemon/base/base.h"
#include "daemon/sink/sink.h"

/* Numbers of slots that are a worker's own start here. */
#define GJ_OWN_SLOTS		(UINT32_C(1) << 30)

/*
 * How long the session's thread and those of workers look for what the other has done before they
 * sleep: to wake one can take 0.3 ms.
 */
#define GJ_TEAM_SPIN_US		2000

typedef struct GjWorker GjWorker;
typedef struct GjTask GjTask;
typedef struct GjTeamGroups GjTeamGroups;
typedef struct GjTeamSorted GjTeamSorted;

/* A slot of the load ring that workers read; guarded by lock. */
typedef struct GjSlotUse
{
	struct GjSlotUse *next;		/* in the list of those in use, or to be given back */
	uint32_t	slot;
	uint32_t	nusers;
} GjSlotUse;

/* Fragments that workers use, wherever they lie: one block, with their pages. */
typedef struct GjSharedUses
{
	uint32_t	n;
	GjUse	   *uses;
	GjPinned   *used;
	/* guarded by lock */
	uint32_t	nusers;			/* whose source has yet to end; the last one gives them back */
	bool		unnoted;		/* the store is not told of these uses: a run has failed, say */
} GjSharedUses;

/* What a worker does in its thread. */
typedef GjStatus (*GjTaskRun) (GjWorker *worker, GjTask *task);

struct GjTask
{
	GjTask	   *next;
	GjTaskRun	run;
	bool		wakes;			/* its end wakes the session's thread */
	uint32_t	source;			/* or the step, or the round of groups, that it is about */
	/* a chunk */
	uint32_t	nrows;
	uint8_t    *memory;
	uint32_t	slot;
	bool		keep;			/* it may become resident here */
	/* fragments */
	uint32_t	nuses;
	GjUse	   *uses;			/* the task's own, with what they point to; or */
	GjSharedUses *shared;		/* those that workers use wherever they lie */
	/* a block of exchanged rows */
	GjBlock   *block;
	uint32_t	from;			/* of this worker, by its number */
};

typedef struct GjTaskList
{
	GjTask	   *first;
	GjTask	  **end;
} GjTaskList;

static inline void
gj_put_task(GjTaskList *list, GjTask *task)
{
	task->next = NULL;
	*list->end = task;
	list->end = &task->next;
}

/* Takes the task that a link of the list leads to. */
static inline GjTask *
gj_unlink_task(GjTaskList *list, GjTask **link)
{
	GjTask	   *task = *link;

	*link = task->next;
	if (!*link)
		list->end = link;
	return task;
}

static inline GjTask *
gj_take_task(GjTaskList *list)
{
	return list->first ? gj_unlink_task(list, &list->first) : NULL;
}

static inline void
gj_start_list(GjTaskList *list)
{
	list->first = NULL;
	list->end = &list->first;
}

/* What a worker did in all of its runs. */
typedef struct GjWorkerCounts
{
	uint64_t	probe_rows;
	uint64_t	chunks;			/* of probe rows, or fragments */
	uint64_t	exchanged;		/* bytes that other devices sent */
	GjDeviceTotals totals;
} GjWorkerCounts;

/* The thread of a worker: team/thread.c. */
typedef struct GjWorkerThread
{
	bool		started;		/* one was found for it */
	bool		working;		/* atomic: and has not left it yet */
	GjWorker   *next;			/* of those for whom one is to be found */
} GjWorkerThread;

/* A device of the team, and its thread. */
struct GjWorker
{
	struct GjTeam *team;
	GjDeviceEntry *entry;
	GjLease		lease;
	GjRunHost	host;			/* of its runs: the functions of worker.c */
	GjRun	   *run;
	GjProgram  *program;		/* a copy that its strategy has changed; NULL: it needs none */
	GjWorkerThread thread;
	bool		lost;			/* closing its run showed that the device is */
	GjTaskList	own;			/* guarded by lock */
	GjTaskList	ahead;			/* guarded by lock: blocks, ahead of its own once it takes them */
	GjTaskList	held;			/* shared fragments that its run reads when their source ends */
	bool		waits;			/* for `granted`, and for nothing else; guarded by lock */
	bool		sent;			/* the run has made something */
	bool		complete;		/* its run is; guarded by lock */
	bool		has_chunks;		/* the run may have chunks that it has not worked on, and does
								 * not know that it waits now */
	GjAggState	states[GJ_MAX_AGGREGATES];	/* where its run puts them */
	GjWorkerCounts counts;
	uint64_t	tile;			/* of sets: the one that it takes next */
	bool		has_tile;
	uint64_t	nread;			/* slots of its own that its run has read */
	GjTeamGroups *keeps_groups; /* what its runs hand groups over to; NULL: they send them */
	bool		hands_over;		/* its runs hand rows or groups over as sorted runs */
	bool		gathers;		/* its run gathers probe rows */
	GjSegment  *part;			/* where parts of groups are filled and read */
};

/* What a worker wants of the output ring. */
typedef enum GjRequest
{
	GJ_REQUEST_NOTHING,
	GJ_REQUEST_SLOT,
	GJ_REQUEST_SEND
} GjRequest;

/* How the work is spread over devices: strategy/strategy.h.  Chosen when the team opens. */
typedef struct GjStrategy
{
	const struct GjStrategyOps *ops;
	void	   *state;			/* of its kind; begins with a GjReplicate where there are threads */
} GjStrategy;

/* What joins the results of several runs: team/gather.c.  Chosen when the team opens. */
typedef struct GjTeamGather
{
	const struct GjGatherOps *ops;
	bool		reports_store;	/* what was kept on the host is told, be it in memory alone */
	/* parts of groups: [0] with the distinct key, if the program has one, [1] without */
	GjTeamGroups *groups[2];
	GjTeamSorted *sorted;
	GjAggState	states[GJ_MAX_AGGREGATES];	/* merged; guarded by lock */
} GjTeamGather;

/* What has come so far. */
typedef struct GjTeamInput
{
	int64_t		started_us;		/* when the first chunk came; 0: none has */
	uint32_t	ended;			/* sources, one bit each */
	uint32_t	asked;			/* sources, one bit each, whose fragments may be resident */
	uint64_t	given[GJ_MAX_RUN_DEVICES];	/* rows to each worker: gj_input_give */
	uint64_t	probe_rows[GJ_MAX_RUN_DEVICES]; /* of fragments that each worker takes */
	/* slots of the load ring, guarded by lock */
	GjSlotUse  *used;
	GjSlotUse  *freed;
} GjTeamInput;

/* Tiles of sets, which workers share. */
typedef struct GjTeamTiles
{
	uint64_t	next;			/* atomic: that no worker has taken */
	uint32_t	pairs;			/* GjRunHost */
} GjTeamTiles;

/* Who does what; guarded by lock. */
typedef struct GjTeamTasks
{
	GjTaskList	probe_side;			/* for whichever worker is free */
	uint32_t	nidle;			/* workers */
	bool		closing;
} GjTeamTasks;

/* The output ring; guarded by lock. */
typedef struct GjTeamOutput
{
	GjWorker   *writer;			/* who has it */
	GjRequest		request;
	uint32_t	nrows;			/* of the request */
	uint8_t    *slot;			/* granted */
	bool		serving;		/* a request is being granted; the session's thread's */
} GjTeamOutput;

/* What the threads of a team tell each other without its lock. */
typedef struct GjTeamSignals
{
	bool		complete;		/* atomic: nothing more is needed of the backend */
	uint32_t	stop;			/* atomic: workers are to end */
	bool		loads;			/* atomic: chunks come, whose loaders need the processors */
	int			wake_fd;		/* eventfd; -1: there are no threads */
	uint32_t	notified;		/* atomic: how often workers were notified, */
	uint32_t	woken;			/* atomic: and the session's thread */
} GjTeamSignals;

struct GjTeam
{
	const GjProgram *program;
	GjTeamOptions options;
	const GjSinkOps *sink;		/* of the program */
	GjTarget	target;			/* of its result */
	const GjRunHost *host;
	uint32_t	nworkers;
	GjWorker	workers[GJ_MAX_RUN_DEVICES];
	GjStrategy	strategy;
	GjTeamGather gather;
	GjSpill		store;			/* parts of sources and groups, and sorted runs, on the host, */
	bool		has_store;		/* if there can be any */
	GjTeamInput input;
	GjTeamTiles tiles;
	GjTeamSignals signals;

	pthread_mutex_t lock;
	pthread_cond_t work;		/* a task, or the end: gj_team_notify */
	pthread_cond_t granted;		/* a request, the output ring, or a slot of sorted rows */
	/* guarded by lock */
	GjStatus	status;			/* the first failure */
	GjErrorText error;
	GjTeamTasks tasks;
	GjTeamOutput output;
	GjRunStats	stats;			/* merged */
};

/* ---- thread.c */

/* Finds every worker a thread, one that has left another one or a new one. */
extern GjStatus gj_workers_start(GjTeam *team);

/* Waits until the thread has left the worker, after the team was told to close. */
extern void gj_worker_await_end(GjWorker *worker);

/* ---- worker.c */

/* What the thread does until the team is told to close. */
extern void gj_worker_work(GjWorker *worker);

/*
 * Works on chunks that it was given, as far as there is nothing else to do.  Where nothing is
 * loaded more comes soon: *more is set then, and nothing was done.
 */
extern GjStatus gj_worker_catch_up(GjWorker *worker, uint32_t seen, bool *more);

/* ---- worker.c */

/* Prepares a run of the worker's, in any thread: gj_run_prepare. */
extern GjStatus gj_worker_prepare_run(GjWorker *worker, const GjProgram *program);

/* Opens a run of the worker's. */
extern void gj_worker_open_run(GjWorker *worker, const GjProgram *program, GjStatus *status);

/* Closes the worker's run; GJ_DEVICE_LOST if the device is gone. */
extern GjStatus gj_worker_close_run(GjWorker *worker);

/* Notes an error of a worker's run for the team; returns the status. */
extern GjStatus gj_worker_error(GjWorker *worker, GjStatus status);

/* Adds what a run of the worker's did to its totals. */
extern void gj_worker_count(GjWorker *worker, const GjRunStats *stats);

/* Ends a run: merges states, and statistics of the sources in `counted` (bits). */
extern GjStatus gj_worker_finish_run(GjWorker *worker, uint32_t counted);

/* The worker's slot for parts of groups; a GjPartialOps' function, arg is the worker. */
extern GjStatus gj_worker_part_slot(void *arg, uint8_t **memory);

/* ---- tasks.c: what threads ask of each other */

/* Wakes the session's thread. */
extern void gj_team_wake(GjTeam *team);

/* Wakes all workers.  The lock is held. */
extern void gj_team_notify(GjTeam *team);

/* Waits until workers are told of something, at first without sleeping.  The lock is held. */
extern void gj_team_await(GjTeam *team);

/* Waits for what `granted` tells of.  The lock is held. */
extern void gj_worker_await_grant(GjWorker *worker);

/* Tells all who wait for it.  The lock is held. */
extern void gj_team_grant(GjTeam *team);

/* Notes an error of the session's thread; returns the status. */
extern GjStatus gj_team_fail(GjTeam *team, GjStatus status, const char *text);

/* Notes an error, unless there is one, in any thread; returns the status. */
extern GjStatus gj_team_note_error(GjTeam *team, GjStatus status, const char *text);

/* Notes why something could not be kept on the host, in any thread; returns the status. */
extern GjStatus gj_team_store_fails(GjTeam *team, GjStatus status);

/* A worker has used fragments, or will not any more.  The lock is not held. */
extern void gj_team_drop_shared(GjTeam *team, GjSharedUses *shared, bool failed);

/* A block has been read, or will not be.  The lock is not held. */
extern void gj_team_drop_block(GjTeam *team, GjBlock *block);

/* Frees a task and what is its own. */
extern void gj_team_free_task(GjTeam *team, GjTask *task);

/* Puts a task into a list; the lock is not held. */
extern void gj_team_post(GjTeam *team, GjTaskList *list, GjTask *task);

/* The same for copies of a task, one for every worker: all of them, or none if memory is short. */
extern GjStatus gj_team_post_copies(GjTeam *team, const GjTask *task);

/* Posts what every worker is to do about a source. */
extern GjStatus gj_team_post_for_all(GjTeam *team, GjTaskRun run, uint32_t source);

/* The same, and waits until all have done it. */
extern GjStatus gj_team_for_all(GjTeam *team, GjTaskRun run, uint32_t source);

/*
 * Waits until a worker has woken the session's thread, which has seen team->signals.woken so, with
 * `look` at first without sleeping.  False: none has for a while.
 */
extern bool gj_team_await_workers(GjTeam *team, uint32_t seen, bool look);

/* Waits, serving, until no worker has anything to do. */
extern GjStatus gj_team_drain(GjTeam *team);

/* What every device has room for. */
extern uint64_t gj_team_lease_left(GjTeam *team);

/* ---- input.c: what comes to workers; all fail if a client is out of turn */

/* True if all build sources have ended. */
extern bool gj_input_build_ended(const GjTeam *team);

/* True if rows of the source may come: probe rows do when all build sources have ended. */
extern bool gj_input_accepts(const GjTeam *team, uint32_t source);

/* A chunk comes, fragments are used, or a source ends. */
extern GjStatus gj_input_chunk(GjTeam *team, uint32_t source);
extern GjStatus gj_input_use(GjTeam *team, uint32_t source);
extern GjStatus gj_input_end(GjTeam *team, uint32_t source);

/* Gives a chunk to all workers, to whichever is free, or to that number; or to who is to keep it. */
#define GJ_TO_ALL			(-1)
#define GJ_TO_ANY			(-2)
extern GjStatus gj_input_post(GjTeam *team, const GjTask *chunk, int to);

/*
 * The worker that gets nrows rows of a build side that is shared out: the one that has the fewest,
 * or the owner of these (-1: there is none) if it does not have many more.
 */
extern uint32_t gj_input_give(GjTeam *team, int owner, uint64_t nrows);

/* ---- resident.c */

/* As gj_team_ask, of a team with threads; nothing is kept on the host. */
extern GjStatus gj_team_ask_all(GjTeam *team, const uint8_t *memory, const GjAnswers *answers);

/* Which workers get fragments of a source. */
typedef enum GjTakers
{
	GJ_TAKEN_BY_OWNERS,			/* where they lie */
	GJ_TAKEN_IN_PARTS,			/* of the probe side: the same, but others take what some have more */
	GJ_TAKEN_BY_ALL,
	GJ_TAKEN_EVENLY				/* each by one, so that all have about as many rows */
} GjTakers;

extern GjStatus gj_team_use_all(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses,
								GjTakers takers);

/* The number of the worker that is to keep a chunk; -1: none is. */
extern int	gj_team_place(GjTeam *team, uint32_t source, const uint8_t *chunk);

/* ---- gather.c */

typedef struct GjGatherOps
{
	bool		needs_store;
	bool		closes_runs;	/* when they have ended */
	GjStatus	(*open) (GjTeam *team, GjErrorText *why);
	/* The last run of a worker has ended, in its thread. */
	GjStatus	(*ended) (GjWorker *worker);
	/* In the session's thread: waits until workers have ended their runs; sends what is left. */
	GjStatus	(*finish) (GjTeam *team);
} GjGatherOps;

/* What the program needs. */
extern const GjGatherOps *gj_gather_choose(const GjSinkOps *sink);

/* Workers end their runs, or have: puts together what they have found, and sends it. */
extern GjStatus gj_gather(GjTeam *team, GjRunStats *stats);
extern void gj_gather_close(GjTeam *team);

/* ---- groups.c */

/*
 * For parts of groups of the first nkeys keys; what they are put together to goes to `next`,
 * or, if that is NULL, out.  NULL: out of memory, or *why says what is wrong with the program.
 */
extern GjTeamGroups *gj_team_groups_open(GjTeam *team, uint32_t nkeys, GjTeamGroups *next,
										 GjErrorText *why);
extern void gj_team_groups_close(GjTeamGroups *groups);

/* Keeps a part that a run has handed over; any worker's thread. */
extern GjStatus gj_team_groups_keep(GjTeamGroups *groups, const uint8_t *slot);

/* All parts have come, and all runs are closed: makes shares of them. */
extern GjStatus gj_team_groups_share(GjTeamGroups *groups);

/* In the thread of a worker: puts shares together until there are no more. */
extern GjStatus gj_team_groups_join(GjTeamGroups *groups, GjWorker *worker);

/* ---- sorted.c */

/* NULL: out of memory, or *why says what is missing. */
extern GjTeamSorted *gj_team_sorted_open(GjTeam *team, GjErrorText *why);
extern void gj_team_sorted_close(GjTeamSorted *sorted);

/* Of a target whose arg is the worker. */
extern const GjSortedOps gj_worker_sorted_ops;
/* The worker's run is finished. */
extern GjStatus gj_worker_sorted_ended(GjWorker *worker);

/*
 * In the session's thread: merges what all workers hand over, and sends it.  They finish their runs
 * meanwhile, unless these were of passes or of groups, which have ended.
 */
extern GjStatus gj_team_sorted_send(GjTeamSorted *sorted);

/* Adds what was sent. */
extern void gj_team_sorted_stats(const GjTeamSorted *sorted, GjRunStats *stats);

#endif							/* GJ_DAEMON_TEAM_STATE_H */
