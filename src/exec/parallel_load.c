/*
 * parallel_load.c
 *	  Worker processes that help a run to load tables; see parallel_load.h.
 *
 * The leader writes everything in the shared memory before it launches workers; what they
 * change is noted below.  A worker takes a share of a table only when gpujoind knows it as
 * a loader of the run, so a worker that never starts, or comes too late, misses nothing.
 * One that ends before it has loaded what it took makes gpujoind end the run, and its error,
 * if it has one, is raised in the leader.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "pgstat.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/backend_status.h"
#include "utils/snapmgr.h"

#include "client/device_info.h"
#include "exec/parallel_load.h"
#include "exec/run.h"
#include "guc.h"
#include "wire/processors.h"

/* Processes that gpujoin.loader_workers = -1 uses at most, the session's own included. */
#define MOST_PROCESSES		16
/* One processor in so many is left to gpujoind's threads, which copy and look for what to do next. */
#define PROCESSORS_A_FREE_ONE	5

/* A worker pays off from so many times min_parallel_table_scan_size on. */
#define TABLE_SIZES_A_WORKER	2
/* Launching it takes as long as loading these; where workers were asked for, a few will do. */
#define USUAL_PAGES_A_WORKER 512
#define MIN_PAGES_A_WORKER	16

#define KEY_SHARED			UINT64CONST(0x676A6C6400000001)
#define KEY_PROGRAM			UINT64CONST(0x676A6C6400000002)
#define KEY_SNAPSHOT		UINT64CONST(0x676A6C6400000003)
#define KEY_ATTNOS			UINT64CONST(0x676A6C6400000004)
#define KEY_RESULTS			UINT64CONST(0x676A6C6400000005)
#define KEY_QUERY			UINT64CONST(0x676A6C6400000006)
#define KEY_RESIDENT		UINT64CONST(0x676A6C6400000007)
#define KEY_TABLES			UINT64CONST(0x676A6C6400000008)

/* A table that workers can read.  Those of a source lie one after the other. */
typedef struct SharedTable
{
	int			source;
	Oid			relid;
	Size		first_attno;	/* in KEY_ATTNOS */
	Size		resident;		/* in KEY_RESIDENT, if has_resident */
	bool		has_resident;
	uint32		number;			/* see GjTable */
	GjBlockShare		share;			/* all processes: share.c */
} SharedTable;

typedef struct SharedLoad
{
	GjRunToken	token;
	uint32		device_kind;
	int			ntables;
	pg_atomic_uint32 stop;		/* leader: nothing more is wanted */

	slock_t		lock;			/* guards the two below */
	bool		failed;			/* a worker's source has failed */
	GjFailure	failure;
} SharedLoad;

/* Written by one worker; read by the leader after its end. */
typedef struct WorkerResult
{
	bool		loaded;			/* it has attached and come to its end */
	instr_time	end;
	GjLoadStats stats;
	BufferUsage buffers;
	WalUsage	wal;
} WorkerResult;

struct GjParallelLoad
{
	ParallelContext *context;
	SharedLoad *shared;
	WorkerResult *results;
	int			nlaunched;
};

/* ---- how many */

/* Workers that loading takes if nobody says how many. */
static int
usual_workers(void)
{
	int			n = gj_count_processors();

	return Min(n - n / PROCESSORS_A_FREE_ONE, MOST_PROCESSES) - 1;
}

int
gj_loader_workers_for(double npages)
{
	int			n = gj_loader_workers >= 0 ? gj_loader_workers : usual_workers();

	/* chunks of workers would be missing in the file */
	if (npages <= 0 || (gj_save_program != NULL && gj_save_program[0] != '\0'))
		return 0;
	n = Min(n, max_parallel_workers);
	return Min(n, npages / Max((double) min_parallel_table_scan_size * TABLE_SIZES_A_WORKER,
							   gj_loader_workers >= 0 ? MIN_PAGES_A_WORKER : USUAL_PAGES_A_WORKER));
}

/* ---- the leader */

/* What the memory that is shared must have room for. */
typedef struct SharedSizes
{
	int			ntables;
	Size		nattnos;
	Size		nresident;		/* bytes of the maps of what is resident */
} SharedSizes;

static SharedSizes
measure_tables(const GjProgram *program, GjSourceReader **readers)
{
	const GjSource *sources = gj_program_array(program, GjSource, sources);
	SharedSizes sizes = {0};

	for (uint32 s = 0; s < program->nsources; s++)
		for (int i = 0; readers[s] != NULL && i < readers[s]->ntables; i++)
		{
			const GjTable *table = &readers[s]->tables[i];

			if (!table->shareable)
				continue;
			sizes.ntables++;
			sizes.nattnos += sources[s].ncolumns;
			if (table->resident != NULL)
				sizes.nresident = add_size(sizes.nresident, gj_resident_map_size(table->resident));
		}
	return sizes;
}

static void
estimate_sizes(ParallelContext *context, const GjProgram *program, Snapshot snapshot,
			   const SharedSizes *sizes)
{
	shm_toc_estimator *estimator = &context->estimator;

	shm_toc_estimate_chunk(estimator, sizeof(SharedLoad));
	shm_toc_estimate_chunk(estimator, program->nbytes);
	shm_toc_estimate_chunk(estimator, EstimateSnapshotSpace(snapshot));
	shm_toc_estimate_chunk(estimator, mul_size(sizeof(SharedTable), Max(sizes->ntables, 1)));
	shm_toc_estimate_chunk(estimator, mul_size(sizeof(AttrNumber), Max(sizes->nattnos, 1)));
	shm_toc_estimate_chunk(estimator, mul_size(sizeof(WorkerResult), context->nworkers));
	shm_toc_estimate_chunk(estimator, Max(sizes->nresident, 1));
	shm_toc_estimate_keys(estimator, 7);
	if (debug_query_string != NULL)
	{
		shm_toc_estimate_chunk(estimator, strlen(debug_query_string) + 1);
		shm_toc_estimate_keys(estimator, 1);
	}
}

static void *
add_chunk(ParallelContext *context, uint64 key, Size nbytes)
{
	void	   *chunk = shm_toc_allocate(context->toc, nbytes);

	shm_toc_insert(context->toc, key, chunk);
	return chunk;
}

/* Describes the tables to workers, and gives the readers the common shares. */
static void
share_tables(SharedTable *tables, AttrNumber *attnos, char *resident, const GjProgram *program,
			 GjSourceReader **readers, int nworkers)
{
	const GjSource *sources = gj_program_array(program, GjSource, sources);
	Size		nattnos = 0;
	Size		nresident = 0;

	for (uint32 s = 0; s < program->nsources; s++)
		for (int i = 0; readers[s] != NULL && i < readers[s]->ntables; i++)
		{
			GjTable    *table = &readers[s]->tables[i];

			if (!table->shareable)
				continue;
			memset(tables, 0, sizeof(SharedTable));
			tables->source = s;
			tables->relid = table->relid;
			tables->number = table->number;
			tables->first_attno = nattnos;
			memcpy(attnos + nattnos, table->attnos, sizeof(AttrNumber) * sources[s].ncolumns);
			nattnos += sources[s].ncolumns;
			if (table->resident != NULL)
			{
				Size		nbytes = gj_resident_map_size(table->resident);

				tables->has_resident = true;
				tables->resident = nresident;
				memcpy(resident + nresident, table->resident, nbytes);
				nresident += nbytes;
			}
			gj_block_share_init(&tables->share, table->share->nblocks, table->share->behind,
						  nworkers + 1);
			table->share = &tables->share;
			tables++;
		}
}

static void
fill_shared_memory(GjParallelLoad *load, const GjProgram *program, const GjRunToken *token,
				   Snapshot snapshot, GjSourceReader **readers, const SharedSizes *sizes)
{
	ParallelContext *context = load->context;
	SharedTable *tables;
	AttrNumber *attnos;

	load->shared = add_chunk(context, KEY_SHARED, sizeof(SharedLoad));
	memset(load->shared, 0, sizeof(SharedLoad));
	load->shared->token = *token;
	load->shared->device_kind = gj_device_kind();
	load->shared->ntables = sizes->ntables;
	pg_atomic_init_u32(&load->shared->stop, 0);
	SpinLockInit(&load->shared->lock);

	memcpy(add_chunk(context, KEY_PROGRAM, program->nbytes), program, program->nbytes);
	SerializeSnapshot(snapshot, add_chunk(context, KEY_SNAPSHOT, EstimateSnapshotSpace(snapshot)));
	tables = add_chunk(context, KEY_TABLES, mul_size(sizeof(SharedTable), Max(sizes->ntables, 1)));
	attnos = add_chunk(context, KEY_ATTNOS, mul_size(sizeof(AttrNumber), Max(sizes->nattnos, 1)));
	share_tables(tables, attnos, add_chunk(context, KEY_RESIDENT, Max(sizes->nresident, 1)),
				 program, readers, context->nworkers);
	load->results = add_chunk(context, KEY_RESULTS,
							  mul_size(sizeof(WorkerResult), context->nworkers));
	memset(load->results, 0, sizeof(WorkerResult) * context->nworkers);
	if (debug_query_string != NULL)
		strcpy(add_chunk(context, KEY_QUERY, strlen(debug_query_string) + 1), debug_query_string);
}

GjParallelLoad *
gj_parallel_load_start(int nworkers, const GjProgram *program, const GjRunToken *token,
					   Snapshot snapshot, GjSourceReader **readers)
{
	GjParallelLoad *load = palloc0(sizeof(GjParallelLoad));
	SharedSizes sizes = measure_tables(program, readers);

	Assert(IsInParallelMode() && !IsParallelWorker());
	load->context = CreateParallelContext("gpujoin", "gj_parallel_load_main", nworkers);
	estimate_sizes(load->context, program, snapshot, &sizes);
	InitializeParallelDSM(load->context);
	/* no shared memory segment is left: the context is there, but takes no workers */
	if (load->context->seg == NULL)
	{
		DestroyParallelContext(load->context);
		pfree(load);
		return NULL;
	}
	fill_shared_memory(load, program, token, snapshot, readers, &sizes);
	LaunchParallelWorkers(load->context);
	load->nlaunched = load->context->nworkers_launched;
	return load;
}

int
gj_parallel_load_launched(const GjParallelLoad *load)
{
	return load->nlaunched;
}

static void
add_result(const WorkerResult *result, GjLoadStats *stats, instr_time *end)
{
	for (int s = 0; s < GJ_MAX_SOURCES; s++)
	{
		stats->npages[s] += result->stats.npages[s];
		stats->nvisible[s] += result->stats.nvisible[s];
		stats->ms[s] += result->stats.ms[s];
	}
	if (INSTR_TIME_GET_DOUBLE(result->end) > INSTR_TIME_GET_DOUBLE(*end))
		*end = result->end;
}

bool
gj_parallel_load_end(GjParallelLoad *load, GjLoadStats *stats, instr_time *end,
					 GjFailure *failure)
{
	bool		failed;

	pg_atomic_write_u32(&load->shared->stop, 1);
	WaitForParallelWorkersToFinish(load->context);
	for (int i = 0; i < load->nlaunched; i++)
	{
		WorkerResult *result = &load->results[i];

		if (!result->loaded)
			continue;
		InstrAccumParallelQuery(&result->buffers, &result->wal);
		add_result(result, stats, end);
	}
	failed = load->shared->failed;
	if (failed)
		*failure = load->shared->failure;
	DestroyParallelContext(load->context);
	pfree(load);
	return failed;
}

/* ---- a worker */

/* What a worker finds in the shared memory. */
typedef struct WorkerLoad
{
	SharedLoad *shared;
	const GjProgram *program;
	SharedTable *tables;
	const AttrNumber *attnos;
	const char *resident;
	Snapshot	snapshot;
} WorkerLoad;

/* Opens the readers of the sources of which some tables are for workers. */
static bool
open_readers(GjRemoteRun *run, const WorkerLoad *load, GjFailure *failure)
{
	GjTable    *tables = palloc0(sizeof(GjTable) * Max(load->shared->ntables, 1));
	int			end;

	for (int first = 0; first < load->shared->ntables; first = end)
	{
		int			s = load->tables[first].source;
		GjSourceReader *reader;

		for (end = first; end < load->shared->ntables && load->tables[end].source == s; end++)
		{
			SharedTable *from = &load->tables[end];

			tables[end].relid = from->relid;
			tables[end].number = from->number;
			tables[end].attnos = load->attnos + from->first_attno;
			tables[end].share = &from->share;
			if (from->has_resident)
				tables[end].resident = (const GjResidentMap *) (load->resident + from->resident);
		}
		reader = gj_heap_source(tables + first, end - first, load->snapshot, load->program, s,
								failure);
		if (reader == NULL)
			return false;
		gj_remote_set_reader(run, s, reader);
	}
	return true;
}

/* True if there is something left for a worker to load. */
static bool
is_wanted(const WorkerLoad *load)
{
	if (pg_atomic_read_u32(&load->shared->stop))
		return false;
	for (int i = 0; i < load->shared->ntables; i++)
		if (!gj_block_share_is_empty(&load->tables[i].share))
			return true;
	return false;
}

static void
note_failure(SharedLoad *shared, const GjFailure *failure)
{
	SpinLockAcquire(&shared->lock);
	if (!shared->failed)
		shared->failure = *failure;
	shared->failed = true;
	SpinLockRelease(&shared->lock);
}

static void
load_shares(const WorkerLoad *load, WorkerResult *result)
{
	SharedLoad *shared = load->shared;
	GjFailure	failure = {.reason = GJ_OK};
	GjRemoteRun *run;

	run = gj_remote_attach(load->program, shared->device_kind, &shared->token, &result->stats,
						   &failure);
	/* if gpujoind is gone, or the run is over, the leader knows it as well */
	if (run == NULL)
		return;
	if (!open_readers(run, load, &failure) || !gj_remote_load(run, &shared->stop, &failure))
		note_failure(shared, &failure);
	INSTR_TIME_SET_CURRENT(result->end);
	gj_remote_end(run);
	result->loaded = true;
}

void
gj_parallel_load_main(dsm_segment *segment, shm_toc *toc)
{
	WorkerLoad	load = {.shared = shm_toc_lookup(toc, KEY_SHARED, false)};
	WorkerResult *result = (WorkerResult *) shm_toc_lookup(toc, KEY_RESULTS, false) +
		ParallelWorkerNumber;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	load.tables = shm_toc_lookup(toc, KEY_TABLES, false);
	if (!is_wanted(&load))
		return;
	load.program = shm_toc_lookup(toc, KEY_PROGRAM, false);
	load.attnos = shm_toc_lookup(toc, KEY_ATTNOS, false);
	load.resident = shm_toc_lookup(toc, KEY_RESIDENT, false);
	load.snapshot = RegisterSnapshot(RestoreSnapshot(shm_toc_lookup(toc, KEY_SNAPSHOT, false)));
	InstrStartParallelQuery();
	load_shares(&load, result);
	InstrEndParallelQuery(&result->buffers, &result->wal);
	UnregisterSnapshot(load.snapshot);
}
