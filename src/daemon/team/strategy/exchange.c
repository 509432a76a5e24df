/*
 * exchange.c
 *	  The strategy for build sides that fit only all devices together.  Rows of one build source
 *	  and of the probe source are exchanged: each device gets its part of the keys.  Of all other
 *	  build sources each device has all rows.
 *
 * A worker that gets rows of the two sources, in chunks or as resident fragments of its device,
 * sends them on in blocks (source/split.c).  A block lies on the sender's device, and the others
 * copy their parts from there (source/block.c).  A block is a task for each worker that has a
 * part of it, and goes before other tasks once the worker's run can take it.  Runs open, take
 * cached sides and reserve memory without waiting for each other.  Before filling a block a
 * worker receives what others have sent.  If its own blocks are all still being copied, it waits;
 * copies always end, so there is no deadlock.  A source ends when all blocks have been received.
 * Where nothing is loaded, each worker ends the probe source by itself, when all have sent what
 * they have.
 *
 * Equal keys meet on one device, so every join type gives the right rows, the unmatched ones of
 * either side too.  Earlier steps must not return build rows at the end (gj_step_makes_rows): those
 * have no probe row, and their keys would match on one device only.
 */
#include "share.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/program/program.h"

/* What a worker knows of blocks of rows. */
typedef struct GjExchangeWorker
{
	uint32_t	turn;			/* the worker whose blocks it takes first */
	bool		opened;			/* its run has started; before, it is the session's thread's */
	bool		reserved;		/* and has the memory that probe rows on their way need */
	bool		awaits;			/* the next of its own tasks has to wait for blocks */
} GjExchangeWorker;

typedef struct GjExchange
{
	GjShare		share;			/* rows are exchanged by the keys of its step, those of its build
								 * side and of the probe source */
	uint64_t	space;			/* memory of probe rows on their way, on each device; 0: not
								 * known yet */
	bool		staying;		/* atomic: workers keep probe rows that are exchanged */
	uint32_t	nsending;		/* workers that are to send the last probe rows; guarded by lock */
	/* probe rows for each worker, its own too; guarded by lock */
	uint64_t	sent[GJ_MAX_RUN_DEVICES];
	GjExchangeWorker workers[GJ_MAX_RUN_DEVICES];
} GjExchange;

static GjExchange *
state_of(const GjTeam *team)
{
	return team->strategy.state;
}

static GjExchangeWorker *
state_of_worker(const GjWorker *worker)
{
	return &state_of(worker->team)->workers[worker - worker->team->workers];
}

/* ---- in the threads of workers: what others send */

/*
 * Takes the block whose turn it is: one of each other worker after the other, beginning with the
 * one that has the next number.  So not all workers copy from the same one at a time when all have
 * sent.  Of more than two workers each copies one block at a time, for all that have come at once
 * are slower.
 */
static GjTask *
take_turn(GjWorker *worker)
{
	GjExchangeWorker *own = state_of_worker(worker);
	uint32_t	n = worker->team->nworkers;
	uint32_t	least = n;
	GjTask	  **at = NULL;

	if (n > 2 && gj_run_is_reading(worker->run))
		return NULL;
	for (GjTask **t = &worker->ahead.first; *t; t = &(*t)->next)
	{
		uint32_t	turns = ((*t)->from + n - own->turn) % n;

		if (turns < least)
		{
			least = turns;
			at = t;
		}
	}
	if (!at)
		return NULL;
	own->turn = ((*at)->from + 1) % n;
	return gj_unlink_task(&worker->ahead, at);
}

static GjStatus
receive(GjWorker *worker, GjTask *task)
{
	GjBlock   *block = task->block;

	/* the run tells when it has read it */
	task->block = NULL;
	return gj_run_receive(worker->run, block);
}

/* The same as a task of its own. */
static GjStatus
receive_task(GjWorker *worker, GjTask *task)
{
	worker->has_chunks = true;
	return receive(worker, task);
}

/* Looks without sleeping, unless loaders need the processors. */
static GjSpin
start_looking(const GjTeam *team)
{
	return __atomic_load_n(&team->signals.loads, __ATOMIC_RELAXED) ? (GjSpin) {0} :
		gj_spin_start(GJ_TEAM_SPIN_US);
}

/*
 * There is nothing to do while blocks are being read: waits until the first of them has been, or
 * workers were told of something since that was seen.  The lock is not held.
 */
static GjStatus
settle(GjWorker *worker, uint32_t seen)
{
	GjTeam	   *team = worker->team;
	GjSpin		spin = start_looking(team);
	bool		wait = false;
	GjStatus	status;

	/* what it settles it tells, too */
	do
	{
		status = gj_run_settle(worker->run, wait);
		wait = !gj_spin_on(&spin);
	} while (status == GJ_OK && __atomic_load_n(&team->signals.notified, __ATOMIC_ACQUIRE) == seen);
	return status;
}

/* Waits until nobody reads the worker's blocks, to which none come any more. */
static GjStatus
await_read(GjWorker *worker)
{
	uint32_t	n;
	const GjBlock *blocks = gj_run_blocks(worker->run, &n);
	GjTeam	   *team = worker->team;
	GjStatus	status = GJ_OK;

	pthread_mutex_lock(&team->lock);
	for (uint32_t i = 0; i < n && status == GJ_OK;)
	{
		if (__atomic_load_n(&team->signals.stop, __ATOMIC_RELAXED) != 0)
			status = GJ_CANCELLED;
		else if (blocks[i].nusers > 0)
			gj_team_await(team);
		else
			i++;
	}
	pthread_mutex_unlock(&team->lock);
	return status;
}

/* ---- a GjExchangeOps, arg is the worker */

/* One of n blocks that nobody reads; NULL: there is none.  The lock is held. */
static GjBlock *
find_block(GjBlock *blocks, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (blocks[i].nusers == 0 && !blocks[i].waits)
			return &blocks[i];
	return NULL;
}

static GjStatus
receive_and_free(GjWorker *worker, GjTask *task)
{
	GjStatus	status = receive(worker, task);

	gj_team_free_task(worker->team, task);
	return status;
}

/*
 * While the worker waits for a block of its own: takes one of another worker, or else what was
 * received through the steps, or waits for something to happen.  The lock is held, but not
 * meanwhile.
 */
static GjStatus
work_meanwhile(GjWorker *worker, GjTask *task)
{
	GjTeam	   *team = worker->team;
	uint32_t	seen = team->signals.notified;
	bool		joins = !task && gj_run_has_sent(worker->run);
	GjStatus	status;

	if (!task && !joins)
	{
		gj_run_waits(worker->run);
		if (!gj_run_is_reading(worker->run))
		{
			gj_team_await(team);
			return GJ_OK;
		}
	}
	pthread_mutex_unlock(&team->lock);
	if (task)
		status = receive_and_free(worker, task);
	else
		status = joins ? gj_run_join_sent(worker->run) : settle(worker, seen);
	pthread_mutex_lock(&team->lock);
	return status;
}

static GjStatus
get_block(void *arg, GjBlock *blocks, uint32_t n, bool awaits, GjBlock **block)
{
	GjWorker   *worker = arg;
	GjTeam	   *team = worker->team;
	uint32_t	taken = 0;
	GjStatus	status = gj_run_settle(worker->run, false);

	*block = NULL;
	pthread_mutex_lock(&team->lock);
	while (status == GJ_OK)
	{
		GjTask	   *task = NULL;

		if (!*block)
			*block = find_block(blocks, n);
		if (__atomic_load_n(&team->signals.stop, __ATOMIC_RELAXED) != 0)
		{
			status = GJ_CANCELLED;
			break;
		}
		/*
		 * First those of others, one of each at most, so that they get theirs back; but the device
		 * should have the split to do while these are taken, if that can be.
		 */
		if (!*block || (!awaits && ++taken < team->nworkers))
			task = take_turn(worker);
		if (!task && *block)
			break;
		status = work_meanwhile(worker, task);
	}
	pthread_mutex_unlock(&team->lock);
	return status;
}

/* Takes the blocks that have come and whose turn it is. */
static GjStatus
take_waiting(GjWorker *worker)
{
	GjTeam	   *team = worker->team;

	for (;;)
	{
		GjTask	   *task;

		pthread_mutex_lock(&team->lock);
		task = take_turn(worker);
		pthread_mutex_unlock(&team->lock);
		if (!task)
			return GJ_OK;
		GJ_TRY(receive_and_free(worker, task));
	}
}

static GjStatus
await_split(void *arg)
{
	GjWorker   *worker = arg;
	GjTeam	   *team = worker->team;
	GjSpin		spin = start_looking(team);
	bool		done = false;
	/* not what it is: blocks may have come before */
	uint32_t	seen = __atomic_load_n(&team->signals.notified, __ATOMIC_ACQUIRE) - 1;

	while (!done)
	{
		uint32_t	told = __atomic_load_n(&team->signals.notified, __ATOMIC_ACQUIRE);

		if (told != seen)
			GJ_TRY(take_waiting(worker));
		seen = told;
		GJ_TRY(gj_run_settle(worker->run, false));
		GJ_TRY(gj_run_has_split(worker->run, !gj_spin_on(&spin), &done));
	}
	return GJ_OK;
}

static GjStatus
send_block(void *arg, GjBlock *block)
{
	GjWorker   *worker = arg;
	GjTeam	   *team = worker->team;
	GjTask	   *tasks[GJ_SPLIT_PARTS] = {NULL};
	GjStatus	status = GJ_OK;

	for (uint32_t p = 0; p < team->nworkers && status == GJ_OK; p++)
	{
		/* the worker takes its own part itself */
		if (gj_block_rows(block, p) == 0 || worker == &team->workers[p])
			continue;
		tasks[p] = calloc(1, sizeof(GjTask));
		if (!tasks[p])
			status = GJ_OUT_OF_HOST_MEMORY;
		else
			*tasks[p] = (GjTask) {.run = receive_task,.source = block->source,.block = block,
			.from = (uint32_t) (worker - team->workers)};
	}
	pthread_mutex_lock(&team->lock);
	for (uint32_t p = 0; p < team->nworkers && status == GJ_OK; p++)
	{
		if (block->source == 0)
			state_of(team)->sent[p] += gj_block_rows(block, p);
		if (!tasks[p])
			continue;
		block->nusers++;
		gj_put_task(&team->workers[p].ahead, tasks[p]);
	}
	gj_team_notify(team);
	pthread_mutex_unlock(&team->lock);
	for (uint32_t p = 0; p < team->nworkers && status != GJ_OK; p++)
		free(tasks[p]);
	return status;
}

static void
block_read(void *arg, GjBlock *block)
{
	gj_team_drop_block(((GjWorker *) arg)->team, block);
}

/* ---- what the threads of workers do */

/* The run exchanges rows. */
static bool
exchanges(const GjWorker *worker)
{
	return state_of_worker(worker)->opened && worker->run;
}

/* Rows that were exchanged wait to pass the steps. */
static bool
has_received(const GjWorker *worker)
{
	return exchanges(worker) && gj_run_has_sent(worker->run);
}

/* Blocks of others are being read. */
static bool
is_reading(const GjWorker *worker)
{
	return exchanges(worker) && gj_run_is_reading(worker->run);
}

/*
 * A block that the worker can take, or NULL: any rows need its run, which others do not wait for,
 * and probe rows its build sides, and room.  The lock is held.
 */
static GjTask *
take_block(GjWorker *worker)
{
	const GjExchangeWorker *own = state_of_worker(worker);
	const GjTask *next = worker->ahead.first;
	bool		takes = next && (next->source > 0 ? own->opened : own->reserved);

	/* all that wait are of one source: it ends before those of the next one come */
	return takes ? take_turn(worker) : NULL;
}

/* True: the next of the worker's own tasks has to wait for blocks.  The lock is held. */
static bool
awaits_blocks(const GjWorker *worker)
{
	const GjTask *next = worker->own.first;

	/* some that have come may have to wait for their turn */
	return next && next->run == gj_worker_end_source && next->source == 0 &&
		(state_of(worker->team)->nsending > 0 || worker->ahead.first);
}

static GjTask *
next_task(GjWorker *worker)
{
	GjTask	   *task = take_block(worker);
	bool		awaits = !task && awaits_blocks(worker);

	state_of_worker(worker)->awaits = awaits;
	if (!task && !awaits)
		task = gj_take_task(&worker->own);
	return task ? task : gj_take_task(&worker->team->tasks.probe_side);
}

static bool
has_more(const GjWorker *worker)
{
	return has_received(worker) || (worker->has_chunks && !state_of_worker(worker)->awaits) ||
		is_reading(worker);
}

/*
 * Rows that were exchanged pass the steps only now: what sends others goes first, for somebody
 * waits for these.
 */
static GjStatus
do_more(GjWorker *worker, uint32_t seen, bool *more)
{
	if (has_received(worker))
		return gj_run_join_sent(worker->run);
	if (!worker->has_chunks || state_of_worker(worker)->awaits || is_reading(worker))
		return settle(worker, seen);
	return gj_worker_catch_up(worker, seen, more);
}

/* Others may wait for their blocks. */
static GjStatus
after_task(GjWorker *worker)
{
	return exchanges(worker) ? gj_run_settle(worker->run, false) : GJ_OK;
}

/* Others may want the worker's rows. */
static bool
all_complete(GjTeam *team)
{
	bool		all = true;

	pthread_mutex_lock(&team->lock);
	for (uint32_t i = 0; i < team->nworkers; i++)
		all &= team->workers[i].complete;
	pthread_mutex_unlock(&team->lock);
	return all;
}

/* Blocks that nobody took are of runs that are still open. */
static void
leave(GjWorker *worker)
{
	gj_run_stop_reading(worker->run);
	gj_share_leave(worker);
}

static const GjWorkerOps worker = {
	.next_task = next_task,.has_more = has_more,.do_more = do_more,.after_task = after_task,
	.all_complete = all_complete
};

/* ---- tasks */

static GjStatus
start_run(GjWorker *worker, GjTask *task)
{
	state_of_worker(worker)->opened = true;
	return gj_worker_start_run(worker, task);
}

/* Reserves memory for probe rows on their way. */
static GjStatus
reserve(GjWorker *worker, GjTask *task)
{
	GJ_TRY(gj_run_reserve_exchange(worker->run, state_of(worker->team)->space));
	state_of_worker(worker)->reserved = true;
	return GJ_OK;
}

/* Sends all rows of a source that have come. */
static GjStatus
send_last(GjWorker *worker, GjTask *task)
{
	GjTeam	   *team = worker->team;
	GjExchange *exchange = state_of(team);

	worker->has_chunks = true;
	GJ_TRY(gj_run_send_blocks(worker->run, task->source));
	if (task->source > 0)
		return GJ_OK;
	GJ_TRY(gj_run_join_sent(worker->run));
	pthread_mutex_lock(&team->lock);
	if (exchange->nsending > 0 && --exchange->nsending == 0)
	{
		gj_team_notify(team);
		/* the session's thread may sleep, and the result comes soon: then it is awake */
		gj_team_wake(team);
	}
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}

/* The probe rows that the worker has got may stay on its device. */
static GjStatus
keep_exchanged(GjWorker *worker)
{
	GjTeam	   *team = worker->team;
	uint64_t	nrows;

	pthread_mutex_lock(&team->lock);
	nrows = state_of(team)->sent[worker - team->workers];
	pthread_mutex_unlock(&team->lock);
	return gj_exchanged_keep(worker->run, nrows);
}

static GjStatus
end_run(GjWorker *worker, GjTask *task)
{
	GjTeam	   *team = worker->team;

	while (gj_run_is_reading(worker->run))
		GJ_TRY(gj_run_settle(worker->run, true));
	GJ_TRY(gj_share_finish_run(worker));
	worker->counts.probe_rows = gj_run_exchanged_rows(worker->run);
	GJ_TRY(keep_exchanged(worker));
	if (team->gather.ops->closes_runs)
	{
		GJ_TRY(await_read(worker));
		/* what the worker runs next exchanges nothing */
		state_of_worker(worker)->opened = false;
	}
	return gj_replicate_run_ended(worker);
}

/* ---- in the session's thread */

static void
get_runs(const GjTeam *team, GjRun **runs)
{
	for (uint32_t i = 0; i < team->nworkers; i++)
		runs[i] = team->workers[i].run;
}

/* Reserves, once, what probe rows on their way need.  Waits unless only states are returned. */
static GjStatus
reserve_probe_side(GjTeam *team)
{
	GjExchange *exchange = state_of(team);
	uint64_t	nbytes = UINT64_MAX;

	if (exchange->space > 0)
		return GJ_OK;
	for (uint32_t i = 0; i < team->nworkers; i++)
	{
		uint64_t	space = gj_run_exchange_space(team->workers[i].run);

		if (space < nbytes)
			nbytes = space;
	}
	exchange->space = nbytes > 0 ? nbytes : 1;
	/* a run that lacks memory can start again in parts as long as no rows were returned */
	return team->sink->has_states ? gj_team_post_for_all(team, reserve, 0) :
		gj_team_for_all(team, reserve, 0);
}

static GjStatus
chunk(GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory, uint32_t slot)
{
	const GjTask chunk = {.source = source,.nrows = nrows,.memory = memory,.slot = slot};

	GJ_TRY(gj_input_chunk(team, source));
	if (source == 0)
		GJ_TRY(reserve_probe_side(team));
	return gj_input_post(team, &chunk, source > 0 && source != state_of(team)->share.build_side ?
						 GJ_TO_ALL : GJ_TO_ANY);
}

static GjStatus
use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses)
{
	GJ_TRY(gj_input_use(team, source));
	/* if they are not only noted */
	if (source == 0 && !gj_exchanged_by(team->workers[0].run))
		GJ_TRY(reserve_probe_side(team));
	return gj_team_use_all(team, source, n, uses,
						   source == 0 || source == state_of(team)->share.build_side ?
						   GJ_TAKEN_BY_OWNERS : GJ_TAKEN_BY_ALL);
}

/*
 * The build source has ended, and no worker works on anything: waits until its rows are where they
 * belong.  *kept: all workers have a side that was kept, and their runs will find it.
 */
static GjStatus
send_build(GjTeam *team, uint32_t source, bool *kept)
{
	GjRun	   *runs[GJ_MAX_RUN_DEVICES];

	get_runs(team, runs);
	*kept = gj_sides_resolve(runs, team->nworkers, source);
	if (*kept)
		return GJ_OK;
	GJ_TRY(gj_team_for_all(team, send_last, source));
	/* all blocks have been read: the build may need the memory */
	for (uint32_t i = 0; i < team->nworkers; i++)
		gj_run_end_exchange(runs[i]);
	return GJ_OK;
}

/* All probe rows have come; those that were exchanged before and kept need no room. */
static GjStatus
resolve_probe_side(GjTeam *team)
{
	GjRun	   *runs[GJ_MAX_RUN_DEVICES];

	get_runs(team, runs);
	if (gj_sides_resolve(runs, team->nworkers, 0))
		return GJ_OK;
	gj_exchanged_plan(runs, team->nworkers);
	return reserve_probe_side(team);
}

/*
 * The probe source has ended, all tasks of which are workers' own, and no build rows come out by
 * themselves: workers end it, too, when all have sent what they have.
 */
static GjStatus
end_probe(GjTeam *team)
{
	/* where workers note what they use, it is known when they have; they are soon done with that */
	if (gj_exchanged_by(team->workers[0].run))
	{
		GJ_TRY(gj_team_drain(team));
		GJ_TRY(resolve_probe_side(team));
	}
	else
		GJ_TRY(reserve_probe_side(team));
	pthread_mutex_lock(&team->lock);
	state_of(team)->nsending = team->nworkers;
	pthread_mutex_unlock(&team->lock);
	GJ_TRY(gj_team_post_for_all(team, send_last, 0));
	GJ_TRY(gj_team_post_for_all(team, gj_worker_end_source, 0));
	gj_replicate_note_end(team);
	return GJ_OK;
}

static GjStatus
source_end(GjTeam *team, uint32_t source)
{
	GjExchange *exchange = state_of(team);
	bool		kept = false;

	GJ_TRY(gj_input_end(team, source));
	if (!team->signals.loads && source == 0 && !gj_replicate_makes_rows(team->program))
		return end_probe(team);
	GJ_TRY(gj_team_drain(team));
	if (source == exchange->share.build_side)
		GJ_TRY(send_build(team, source, &kept));
	if (source == 0)
	{
		/* workers send what they have, and take what others have, or what was kept of it */
		GJ_TRY(resolve_probe_side(team));
		GJ_TRY(gj_team_for_all(team, send_last, 0));
		GJ_TRY(gj_replicate_build_rows(team, (int) exchange->share.step));
	}
	GJ_TRY(gj_team_post_for_all(team, gj_worker_end_source, source));
	/* nothing is built of a side that was kept, and no memory taken for it */
	return kept ? GJ_OK : gj_team_drain(team);
}

static GjStatus
finish(GjTeam *team, GjRunStats *stats)
{
	if (team->signals.loads)
		GJ_TRY(gj_team_drain(team));
	return gj_share_finish(team, end_run, GJ_SCHEME_KEYS, stats);
}

static const GjStrategyOps exchange_ops = {
	.worker = &worker,.leave = leave,.stays_open = true,
	.accepts = gj_input_accepts,.chunk = chunk,.ask = gj_team_ask_all,.use = use,
	.source_end = source_end,.complete = gj_replicate_complete,.work = gj_team_serve,
	.flush = gj_team_serve,.finish = finish,.error = gj_replicate_error,
	.close = gj_replicate_close
};

/* ---- open */

static const GjExchangeOps between = {
	.get_block = get_block,.await_split = await_split,.send_block = send_block,
	.block_read = block_read
};

/* Prepares the run of a worker. */
static GjStatus
prepare(GjWorker *worker)
{
	GjTeam	   *team = worker->team;
	const GjProgram *p = team->program;
	GjExchange *exchange = state_of(team);
	uint32_t	build_side = exchange->share.build_side;
	GjExchangePlan plan = {exchange->share.step, team->nworkers,
	(uint32_t) (worker - team->workers)};
	GjSource   *sources;

	state_of_worker(worker)->turn = (plan.part + 1) % plan.nparts;
	worker->program = malloc(p->nbytes);
	if (!worker->program)
		return GJ_OUT_OF_HOST_MEMORY;
	memcpy(worker->program, p, p->nbytes);
	sources = (GjSource *) ((char *) worker->program + p->sources);
	plan.probe_filter = sources[0].filter;
	plan.build_filter = sources[build_side].filter;
	plan.program = gj_program_identity(p);
	plan.staying = team->options.keep_exchanged ? &exchange->staying : NULL;
	/* rows are filtered before they are sent */
	sources[0].filter = sources[build_side].filter = -1;
	sources[build_side].nrows_hint /= team->nworkers;
	GJ_TRY(gj_worker_prepare_run(worker, worker->program));
	return gj_run_open_exchange(worker->run, &plan, &between, worker);
}

GjStatus
gj_exchange_open(GjTeam *team, uint32_t step)
{
	if (!gj_share_make(team, &exchange_ops, step, sizeof(GjExchange)))
		return GJ_OUT_OF_HOST_MEMORY;
	return gj_replicate_open_runs(team, prepare, start_run);
}
