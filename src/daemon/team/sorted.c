/*
 * sorted.c
 *	  Merges the sorted runs of a team: runs hand their rows or groups over, and the session's
 *	  thread merges them when all have come.
 *
 * A worker whose run stays open until the end has its last sorted run on its device.  It is read
 * from there: the worker's thread fills two slots in turn, while the session's thread takes rows
 * from them.  All other sorted runs are kept on the host (spill.h): of workers that had no room
 * for more rows, of passes, and of shares of groups.  They are kept in records of some thousand
 * rows, so that merging many needs little memory.  A thread of the cpu's pool writes them while
 * the device fills the worker's other slot.
 */
#include "strategy/strategy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/base.h"

/* Bytes of a record, about: a merge has one of each run in memory, so of many they are smaller. */
#define GJ_SORTED_RECORD	(128 * 1024)
#define GJ_SORTED_RECORDS	(32 * 1024 * 1024)
#define GJ_SORTED_LEAST		(8 * 1024)

/* A sorted run that is kept on the host. */
typedef struct GjSortedList
{
	struct GjSortedList *next;
	GjTeamSorted *sorted;
	GjSpillList list;
	int64_t		end_keys[GJ_MAX_KEYS];	/* of the last row */
	/* while it is merged */
	uint32_t	nread;			/* records */
	uint8_t    *buffer;			/* of one that was read from a file */
	uint64_t	buffer_bytes;
} GjSortedList;

/* What a worker hands over. */
typedef struct GjSortedWorker
{
	GjTeamSorted *sorted;
	GjSpillWriter writer;
	GjSpillRecord *records;		/* of a slot */
	GjSortedList *list;			/* that it is making; NULL: what comes stays on its device */
	GjSegment  *slot[2];
	uint8_t    *has_nulls;		/* of a slot: columns and keys */
	/* what is kept on the host: by another thread, while the device fills the other slot */
	uint32_t	filling;		/* the slot that comes next */
	uint8_t    *kept;			/* the slot that is kept by */
	GjJob		job;
	bool		keeping;		/* it was begun, and is to be ended */
	GjStatus	status;			/* the job's */
	int64_t		end_keys[GJ_MAX_KEYS];	/* of what stays on its device */
	/* what stays there; guarded by the team's lock */
	uint64_t	nfilled;		/* slots, */
	uint64_t	nread;			/* and those that have been merged */
	bool		reading;		/* the next one is being */
	bool		ended;			/* there are no more */
} GjSortedWorker;

struct GjTeamSorted
{
	GjTeam	   *team;
	GjSortedLayout layout;
	GjSpill    *spill;			/* the team's */
	GjPool	   *pool;
	pthread_mutex_t lock;		/* of `lists` */
	GjSortedList *lists;
	uint32_t	nlists;
	uint32_t	nstreams;		/* sorted runs that stayed on their devices */
	uint64_t	nrows;			/* that were sent */
	GjSortedWorker workers[GJ_MAX_RUN_DEVICES];
};

/* ---- open and close */

GjTeamSorted *
gj_team_sorted_open(GjTeam *team, GjErrorText *why)
{
	GjTeamSorted *sorted = calloc(1, sizeof(GjTeamSorted));
	GjDeviceEntry *cpu = gj_devices_choose(GJ_DEVICE_CPU, why);

	if (!sorted)
		return NULL;
	sorted->team = team;
	sorted->spill = &team->store;
	pthread_mutex_init(&sorted->lock, NULL);
	for (uint32_t i = 0; i < team->nworkers; i++)
	{
		sorted->workers[i].sorted = sorted;
		team->workers[i].hands_over = team->sink->returns_rows;
		gj_spill_writer_open(&sorted->workers[i].writer, sorted->spill);
	}
	if (cpu)
		sorted->pool = gj_cpu_pool(cpu->device);
	if (sorted->pool && gj_sorted_layout(team->program, &sorted->layout))
		return sorted;
	gj_team_sorted_close(sorted);
	return NULL;
}

static void
free_list(GjSortedList *list)
{
	gj_spill_free_list(list->sorted->spill, &list->list);
	free(list->buffer);
	free(list);
}

/* Waits until the slot that was filled last is kept. */
static GjStatus
end_keeping(GjSortedWorker *own)
{
	if (!own->keeping)
		return GJ_OK;
	own->keeping = false;
	gj_pool_finish(own->sorted->pool, &own->job, NULL, NULL, NULL);
	return own->status;
}

void
gj_team_sorted_close(GjTeamSorted *sorted)
{
	/* what an error has left */
	for (uint32_t i = 0; i < GJ_MAX_RUN_DEVICES; i++)
		end_keeping(&sorted->workers[i]);
	while (sorted->lists)
	{
		GjSortedList *next = sorted->lists->next;

		free_list(sorted->lists);
		sorted->lists = next;
	}
	for (uint32_t i = 0; i < GJ_MAX_RUN_DEVICES; i++)
	{
		GjSortedWorker *worker = &sorted->workers[i];

		for (int s = 0; s < 2; s++)
			if (worker->slot[s])
				gj_segment_put(worker->slot[s]);
		free(worker->records);
		free(worker->has_nulls);
		if (worker->sorted)
			gj_spill_writer_close(&worker->writer);
	}
	gj_sorted_layout_free(&sorted->layout);
	pthread_mutex_destroy(&sorted->lock);
	free(sorted);
}

void
gj_team_sorted_stats(const GjTeamSorted *sorted, GjRunStats *stats)
{
	stats->rows_out += sorted->nrows;
	stats->sorted_runs = sorted->nlists + sorted->nstreams;
}

/* True if what workers sort last stays on their devices. */
static bool
stays_on_devices(const GjTeam *team)
{
	return team->sink->returns_rows && team->strategy.ops->stays_open;
}

/* ---- in the thread of a worker: where its sorted runs go */

static GjSortedWorker *
state_of_worker(GjWorker *worker)
{
	return &worker->team->gather.sorted->workers[worker - worker->team->workers];
}

static GjStatus
sorted_begin(void *arg, bool last)
{
	GjWorker   *worker = arg;
	GjSortedWorker *own = state_of_worker(worker);
	GjTeamSorted *sorted = own->sorted;
	bool		stays = last && stays_on_devices(worker->team);
	GjErrorText why;

	GJ_TRY(end_keeping(own));
	for (int s = 0; s < 2; s++)
	{
		GjStatus	status = own->slot[s] ? GJ_OK :
			gj_segment_get(worker->entry, GJ_SORTED_SLOT_SIZE, &own->slot[s], &why);

		if (status != GJ_OK)
			return gj_run_fail(worker->run, status, why.text);
	}
	/* a backend may still write to a ring that it had; this is none of these */
	_Static_assert(GJ_SORTED_SLOT_SIZE != GJ_LOAD_SLOTS * GJ_LOAD_SLOT_SIZE &&
				   GJ_SORTED_SLOT_SIZE != GJ_OUTPUT_SLOTS * GJ_OUTPUT_SLOT_SIZE, "slot");
	if (!own->records)
		own->records = malloc(sorted->layout.capacity * sizeof(GjSpillRecord));
	if (!own->has_nulls)
		own->has_nulls = malloc(sorted->layout.all.ncolumns);
	if (!own->records || !own->has_nulls)
		return GJ_OUT_OF_HOST_MEMORY;
	/* it cannot be made again, with other rows, once some of them are kept */
	worker->sent = true;
	own->list = NULL;
	if (stays)
		return GJ_OK;
	own->list = calloc(1, sizeof(GjSortedList));
	if (!own->list)
		return GJ_OUT_OF_HOST_MEMORY;
	own->list->sorted = sorted;
	pthread_mutex_lock(&sorted->lock);
	own->list->next = sorted->lists;
	sorted->lists = own->list;
	sorted->nlists++;
	pthread_mutex_unlock(&sorted->lock);
	return GJ_OK;
}

static void
sorted_end_keys(void *arg, const int64_t *keys)
{
	GjSortedWorker *own = state_of_worker(arg);

	memcpy(own->list ? own->list->end_keys : own->end_keys, keys,
		   own->sorted->layout.nkeys * sizeof(int64_t));
}

static GjStatus
sorted_slot(void *arg, uint8_t **memory)
{
	GjWorker   *worker = arg;
	GjTeam	   *team = worker->team;
	GjSortedWorker *own = state_of_worker(worker);
	GjStatus	status = GJ_OK;

	if (own->list)
	{
		*memory = own->slot[own->filling]->memory;
		return GJ_OK;
	}
	pthread_mutex_lock(&team->lock);
	while (own->nfilled - own->nread == 2 && !team->signals.stop)
		gj_worker_await_grant(worker);
	if (team->signals.stop)
		status = GJ_CANCELLED;
	*memory = own->slot[own->nfilled % 2]->memory;
	pthread_mutex_unlock(&team->lock);
	return status;
}

/* A slot as a chunk whose columns are those of a batch and the keys, which need has_nulls[]. */
static GjChunk
chunk_of(const GjSortedLayout *layout, const uint8_t *slot, uint8_t *has_nulls)
{
	GjSlotHeader header;

	memcpy(&header, slot, sizeof(header));
	memcpy(has_nulls, gj_slot_has_nulls(slot), layout->noutputs);
	memset(has_nulls + layout->noutputs, 0, layout->nkeys);
	return (GjChunk) {slot, header.nrows, header.heap_used, &layout->all, layout->places,
		has_nulls};
}

/* How many rows a record of them has. */
static uint32_t
record_rows(GjTeamSorted *sorted, const GjChunk *chunk)
{
	uint64_t	width = chunk->heap_used / chunk->nrows + 1;
	uint64_t	nbytes;

	for (uint32_t c = 0; c < chunk->layout->ncolumns; c++)
		width += sorted->layout.types[c].width;
	pthread_mutex_lock(&sorted->lock);
	nbytes = GJ_SORTED_RECORDS / sorted->nlists;
	pthread_mutex_unlock(&sorted->lock);
	if (nbytes > GJ_SORTED_RECORD)
		nbytes = GJ_SORTED_RECORD;
	if (nbytes < GJ_SORTED_LEAST)
		nbytes = GJ_SORTED_LEAST;
	return nbytes > width ? (uint32_t) (nbytes / width) : 1;
}

/* Keeps the rows of a slot on the host. */
static GjStatus
keep_rows(GjSortedWorker *own)
{
	GjTeamSorted *sorted = own->sorted;
	const GjSortedLayout *layout = &sorted->layout;
	GjChunk		chunk = chunk_of(layout, own->kept, own->has_nulls);
	uint32_t	rows = record_rows(sorted, &chunk);
	uint32_t	n = (chunk.nrows + rows - 1) / rows;
	GjStatus	status;

	for (uint32_t i = 0; i < n; i++)
		own->records[i] = (GjSpillRecord) {.nrows = rows};
	own->records[n - 1].nrows = chunk.nrows - (n - 1) * rows;
	status = gj_spill_make(&own->writer, &chunk, layout->types, NULL, 0, own->records, n);
	if (status != GJ_OK)
		return gj_team_store_fails(sorted->team, status);
	for (uint32_t i = 0; i < n; i++)
	{
		if (status == GJ_OK)
			status = gj_spill_append(&own->list->list, &own->records[i]);
		if (status != GJ_OK)
			gj_spill_drop(sorted->spill, &own->records[i]);
	}
	return status;
}

/* The same in a thread of the pool, or in that which waits for it. */
static void
keep_slot(void *arg, uint32_t item, const GjTile *tile)
{
	GjSortedWorker *own = arg;
	bool		stopped = __atomic_load_n(&own->sorted->team->signals.stop, __ATOMIC_RELAXED) != 0;

	own->status = stopped ? GJ_CANCELLED : keep_rows(own);
}

static GjStatus
sorted_filled(void *arg)
{
	GjWorker   *worker = arg;
	GjTeam	   *team = worker->team;
	GjSortedWorker *own = state_of_worker(worker);

	if (own->list)
	{
		GJ_TRY(end_keeping(own));
		own->kept = own->slot[own->filling]->memory;
		own->filling = 1 - own->filling;
		own->keeping = true;
		gj_pool_start(own->sorted->pool, &own->job, 1, keep_slot, own);
		return GJ_OK;
	}
	pthread_mutex_lock(&team->lock);
	own->nfilled++;
	pthread_mutex_unlock(&team->lock);
	gj_team_wake(team);
	return GJ_OK;
}

const GjSortedOps gj_worker_sorted_ops = {
	.begin = sorted_begin,.slot = sorted_slot,.end_keys = sorted_end_keys,.filled = sorted_filled
};

GjStatus
gj_worker_sorted_ended(GjWorker *worker)
{
	GjTeam	   *team = worker->team;

	pthread_mutex_lock(&team->lock);
	state_of_worker(worker)->ended = true;
	pthread_mutex_unlock(&team->lock);
	gj_team_wake(team);
	return GJ_OK;
}

/* ---- in the session's thread: what is merged */

/* The next record of a list: GjSortedInput. */
static GjStatus
next_record(void *arg, GjSortedBlock *block)
{
	GjSortedList *list = arg;
	GjTeamSorted *sorted = list->sorted;
	const GjSortedLayout *layout = &sorted->layout;
	GjSpillRecord *records = list->list.records;
	GjSpillView view = {block->data, block->nulls, NULL};
	GjStatus	status;

	if (list->nread > 0)
		gj_spill_drop(sorted->spill, &records[list->nread - 1]);
	if (list->nread == list->list.n)
	{
		free(list->buffer);
		list->buffer = NULL;
		return GJ_OK;
	}
	status = gj_spill_view(&records[list->nread], layout->types, layout->all.ncolumns,
						   &list->buffer, &list->buffer_bytes, &view);
	if (status != GJ_OK)
		return gj_team_fail(sorted->team, status, GJ_UNREADABLE);
	block->nrows = records[list->nread++].nrows;
	block->heap = view.heap;
	return GJ_OK;
}

/* Waits for a slot of a worker's; *any: there is one. */
static GjStatus
await_slot(GjSortedWorker *own, bool *any)
{
	GjTeam	   *team = own->sorted->team;
	bool		look = true;

	for (;;)
	{
		uint32_t	seen = __atomic_load_n(&team->signals.woken, __ATOMIC_ACQUIRE);
		bool		ended;

		pthread_mutex_lock(&team->lock);
		*any = own->nfilled > own->nread;
		ended = own->ended;
		pthread_mutex_unlock(&team->lock);
		if (*any || ended)
			return GJ_OK;
		GJ_TRY(gj_team_serve(team));
		if (team->host->stop(team->host->arg))
			return GJ_CANCELLED;
		look = gj_team_await_workers(team, seen, look);
	}
}

/* The next slot of a worker: GjSortedInput. */
static GjStatus
next_slot(void *arg, GjSortedBlock *block)
{
	GjSortedWorker *own = arg;
	const GjSortedLayout *layout = &own->sorted->layout;
	GjTeam	   *team = own->sorted->team;
	GjChunk		chunk;
	bool		any;

	if (own->reading)
	{
		pthread_mutex_lock(&team->lock);
		own->nread++;
		gj_team_grant(team);
		pthread_mutex_unlock(&team->lock);
	}
	own->reading = false;
	GJ_TRY(await_slot(own, &any));
	if (!any)
		return GJ_OK;
	own->reading = true;
	chunk = chunk_of(layout, own->slot[own->nread % 2]->memory, own->has_nulls);
	for (uint32_t c = 0; c < layout->all.ncolumns; c++)
	{
		block->data[c] = chunk.slot + layout->places[c].data;
		block->nulls[c] = chunk.has_nulls[c] ? chunk.slot + layout->places[c].nulls : NULL;
	}
	block->nrows = chunk.nrows;
	block->heap = chunk.slot + layout->batch.heap;
	return GJ_OK;
}

/* Waits until no worker makes lists any more: what stays on devices is sorted there. */
static GjStatus
await_last_runs(GjTeamSorted *sorted)
{
	for (uint32_t i = 0; i < sorted->team->nworkers; i++)
	{
		bool		any;

		GJ_TRY(await_slot(&sorted->workers[i], &any));
		sorted->nstreams += any;
	}
	return GJ_OK;
}

GjStatus
gj_team_sorted_send(GjTeamSorted *sorted)
{
	GjTeam	   *team = sorted->team;
	bool		stays = stays_on_devices(team);
	uint32_t	n = 0;
	GjSortedInput *inputs;
	GjStatus	status;

	if (stays)
		GJ_TRY(await_last_runs(sorted));
	for (uint32_t i = 0; i < team->nworkers; i++)
		GJ_TRY(end_keeping(&sorted->workers[i]));
	inputs = malloc(((size_t) sorted->nlists + team->nworkers) * sizeof(GjSortedInput));
	if (!inputs)
		return GJ_OUT_OF_HOST_MEMORY;
	for (GjSortedList *list = sorted->lists; list; list = list->next)
		inputs[n++] = (GjSortedInput) {next_record, list, list->end_keys};
	for (uint32_t i = 0; i < team->nworkers && stays; i++)
		inputs[n++] = (GjSortedInput) {next_slot, &sorted->workers[i],
			sorted->workers[i].end_keys};
	status = gj_sorted_merge(&sorted->layout, inputs, n, team->host, &team->target, &sorted->nrows);
	free(inputs);
	return status;
}
