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

#include <unistd.h>

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

/* Processes that gpujoin.loader_workers = -1 uses at most, the session's own included. */
#define MOST_PROCESSES		16

/* A worker pays off from so many times min_parallel_table_scan_size on. */
#define TABLE_SIZES_A_WORKER	2

#define KEY_SHARED			UINT64CONST(0x676A6C6400000001)
#define KEY_PROGRAM			UINT64CONST(0x676A6C6400000002)
#define KEY_SNAPSHOT		UINT64CONST(0x676A6C6400000003)
#define KEY_ATTNOS			UINT64CONST(0x676A6C6400000004)
#define KEY_RESULTS			UINT64CONST(0x676A6C6400000005)
#define KEY_QUERY			UINT64CONST(0x676A6C6400000006)
#define KEY_RESIDENT		UINT64CONST(0x676A6C6400000007)

typedef struct SharedLoad
{
	GjRunToken	token;
	uint32		device_kind;
	int			nsources;
	Oid			relid[GJ_MAX_SOURCES];	/* InvalidOid: not for workers */
	int			first_attno[GJ_MAX_SOURCES];	/* in KEY_ATTNOS */
	Size		resident[GJ_MAX_SOURCES];	/* in KEY_RESIDENT, if has_resident */
	bool		has_resident[GJ_MAX_SOURCES];
	GjShare		share[GJ_MAX_SOURCES];	/* all processes: share.c */
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

static int
count_cores(void)
{
	long		n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > MOST_PROCESSES ? MOST_PROCESSES : (int) n;
}

int
gj_loader_workers_for(double npages)
{
	int			n = gj_loader_workers >= 0 ? gj_loader_workers : count_cores() - 1;

	/* chunks of workers would be missing in the file */
	if (npages <= 0 || (gj_save_program != NULL && gj_save_program[0] != '\0'))
		return 0;
	n = Min(n, max_parallel_workers);
	if (min_parallel_table_scan_size > 0)
		n = Min(n, npages / ((double) min_parallel_table_scan_size * TABLE_SIZES_A_WORKER));
	return n;
}

/* ---- the leader */

static bool
for_workers(const GjSourceReader *reader)
{
	return reader != NULL && reader->share != NULL && reader->shareable;
}

/* Attribute numbers of all sources that are for workers. */
static int
count_attnos(const GjProgram *program, GjSourceReader **readers)
{
	const GjSource *sources = gj_program_array(program, GjSource, sources);
	int			n = 0;

	for (uint32 s = 0; s < program->nsources; s++)
		if (for_workers(readers[s]))
			n += sources[s].ncolumns;
	return n;
}

/* Bytes of the maps of what is resident. */
static Size
resident_size(const GjProgram *program, GjSourceReader **readers)
{
	Size		nbytes = 0;

	for (uint32 s = 0; s < program->nsources; s++)
		if (for_workers(readers[s]) && readers[s]->resident != NULL)
			nbytes = add_size(nbytes, gj_resident_map_size(readers[s]->resident));
	return nbytes;
}

static void
estimate_sizes(ParallelContext *context, const GjProgram *program, Snapshot snapshot,
			   int nattnos, Size nresident)
{
	shm_toc_estimator *estimator = &context->estimator;

	shm_toc_estimate_chunk(estimator, sizeof(SharedLoad));
	shm_toc_estimate_chunk(estimator, program->nbytes);
	shm_toc_estimate_chunk(estimator, EstimateSnapshotSpace(snapshot));
	shm_toc_estimate_chunk(estimator, mul_size(sizeof(AttrNumber), Max(nattnos, 1)));
	shm_toc_estimate_chunk(estimator, mul_size(sizeof(WorkerResult), context->nworkers));
	shm_toc_estimate_chunk(estimator, Max(nresident, 1));
	shm_toc_estimate_keys(estimator, 6);
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

/* Describes the sources to workers, and gives the readers the common shares. */
static void
share_sources(SharedLoad *shared, AttrNumber *attnos, char *resident, const GjProgram *program,
			  GjSourceReader **readers, int nworkers)
{
	const GjSource *sources = gj_program_array(program, GjSource, sources);
	int			nattnos = 0;
	Size		nresident = 0;

	for (uint32 s = 0; s < program->nsources; s++)
	{
		GjSourceReader *reader = readers[s];

		if (!for_workers(reader))
			continue;
		shared->relid[s] = reader->relid;
		shared->first_attno[s] = nattnos;
		memcpy(attnos + nattnos, reader->attnos, sizeof(AttrNumber) * sources[s].ncolumns);
		nattnos += sources[s].ncolumns;
		if (reader->resident != NULL)
		{
			shared->has_resident[s] = true;
			shared->resident[s] = nresident;
			memcpy(resident + nresident, reader->resident, gj_resident_map_size(reader->resident));
			nresident += gj_resident_map_size(reader->resident);
		}
		gj_share_init(&shared->share[s], reader->share->nblocks, nworkers + 1);
		reader->share = &shared->share[s];
	}
}

static void
fill_shared_memory(GjParallelLoad *load, const GjProgram *program, const GjRunToken *token,
				   Snapshot snapshot, GjSourceReader **readers, int nattnos, Size nresident)
{
	ParallelContext *context = load->context;
	AttrNumber *attnos;

	load->shared = add_chunk(context, KEY_SHARED, sizeof(SharedLoad));
	memset(load->shared, 0, sizeof(SharedLoad));
	load->shared->token = *token;
	load->shared->device_kind = gj_device_kind();
	load->shared->nsources = program->nsources;
	pg_atomic_init_u32(&load->shared->stop, 0);
	SpinLockInit(&load->shared->lock);

	memcpy(add_chunk(context, KEY_PROGRAM, program->nbytes), program, program->nbytes);
	SerializeSnapshot(snapshot, add_chunk(context, KEY_SNAPSHOT, EstimateSnapshotSpace(snapshot)));
	attnos = add_chunk(context, KEY_ATTNOS, mul_size(sizeof(AttrNumber), Max(nattnos, 1)));
	share_sources(load->shared, attnos, add_chunk(context, KEY_RESIDENT, Max(nresident, 1)),
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
	int			nattnos = count_attnos(program, readers);
	Size		nresident = resident_size(program, readers);

	Assert(IsInParallelMode() && !IsParallelWorker());
	load->context = CreateParallelContext("gpujoin", "gj_parallel_load_main", nworkers);
	estimate_sizes(load->context, program, snapshot, nattnos, nresident);
	InitializeParallelDSM(load->context);
	/* no shared memory segment is left: the context is there, but takes no workers */
	if (load->context->seg == NULL)
	{
		DestroyParallelContext(load->context);
		pfree(load);
		return NULL;
	}
	fill_shared_memory(load, program, token, snapshot, readers, nattnos, nresident);
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

/* Opens the readers of the sources that are for workers. */
static bool
open_readers(GjRun *run, const SharedLoad *shared, const GjProgram *program, Snapshot snapshot,
			 const AttrNumber *attnos, const char *resident, GjFailure *failure)
{
	for (int s = 0; s < shared->nsources; s++)
	{
		GjSourceReader *reader;

		if (!OidIsValid(shared->relid[s]))
			continue;
		reader = gj_heap_source(shared->relid[s], snapshot, program, s,
								attnos + shared->first_attno[s],
								unconstify(GjShare *, &shared->share[s]), failure);
		if (reader == NULL)
			return false;
		if (shared->has_resident[s])
			reader->resident = (const GjResidentMap *) (resident + shared->resident[s]);
		gj_run_set_reader(run, s, reader);
	}
	return true;
}

/* True if there is something left for a worker to load. */
static bool
is_wanted(SharedLoad *shared)
{
	if (pg_atomic_read_u32(&shared->stop))
		return false;
	for (int s = 0; s < shared->nsources; s++)
		if (OidIsValid(shared->relid[s]) && !gj_share_is_empty(&shared->share[s]))
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
load_shares(SharedLoad *shared, const GjProgram *program, Snapshot snapshot,
			const AttrNumber *attnos, const char *resident, WorkerResult *result)
{
	GjFailure	failure = {.reason = GJ_OK};
	GjRun	   *run;

	run = gj_run_attach(program, shared->device_kind, &shared->token, &result->stats, &failure);
	/* if gpujoind is gone, or the run is over, the leader knows it as well */
	if (run == NULL)
		return;
	if (!open_readers(run, shared, program, snapshot, attnos, resident, &failure) ||
		!gj_run_load(run, &shared->stop, &failure))
		note_failure(shared, &failure);
	INSTR_TIME_SET_CURRENT(result->end);
	gj_run_end(run);
	result->loaded = true;
}

void
gj_parallel_load_main(dsm_segment *segment, shm_toc *toc)
{
	SharedLoad *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	WorkerResult *result = (WorkerResult *) shm_toc_lookup(toc, KEY_RESULTS, false) +
		ParallelWorkerNumber;
	Snapshot	snapshot;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	if (!is_wanted(shared))
		return;
	snapshot = RegisterSnapshot(RestoreSnapshot(shm_toc_lookup(toc, KEY_SNAPSHOT, false)));
	InstrStartParallelQuery();
	load_shares(shared, shm_toc_lookup(toc, KEY_PROGRAM, false), snapshot,
				shm_toc_lookup(toc, KEY_ATTNOS, false), shm_toc_lookup(toc, KEY_RESIDENT, false),
				result);
	InstrEndParallelQuery(&result->buffers, &result->wal);
	UnregisterSnapshot(snapshot);
}
