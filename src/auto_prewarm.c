/*
 * auto_prewarm.c
 *	  gpujoin.auto_prewarm: loads tables in the background that queries would use a device for if
 *	  they were resident.
 *
 * To load a small table for one query costs more than PostgreSQL's plan.  So the query stays native,
 * and the table never becomes resident.  With this setting a query that PostgreSQL's plan has won is
 * planned once more as if all its tables were resident.  If a device wins then, the tables whose
 * pages it would read are requested.  The third request for a table within ten minutes starts a
 * background worker, which calls gpujoin_prewarm() with the columns that were requested.
 *
 * What bounds it: the setting is the largest table that is loaded, one worker runs at a time and
 * loads without parallel workers, and a table is tried every ten minutes at most.  A worker is one of
 * the user who had the session, has that user's rights, and does that user's requests alone.
 *
 * Requests are in a file of the data directory, so those of short sessions add up.  Sessions read
 * and write one entry of it without a lock: a count can be lost, and nothing else.
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "optimizer/planner.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "auto_prewarm.h"
#include "client/cache_info.h"
#include "client/device_info.h"
#include "compat.h"
#include "exec/join_scan.h"
#include "guc.h"
#include "load/tuple_id.h"
#include "plan/join_path.h"
#include "plan/planned.h"

#define GJ_REQUESTS_FILE	"gpujoin." GJ_STRINGIFY(GJ_ABI) ".requests"
#define GJ_REQUESTS			1024	/* entries of the file */
#define GJ_ENOUGH_REQUESTS	3
#define GJ_REQUEST_AGE		600000	/* ms that a request counts, and that a table is left alone */
#define GJ_START_PAUSE		10000	/* ms until it is tried again to start a worker for a table */
#define GJ_COLUMN_WORDS		14	/* attributes 1 .. 895 */

/* A device must save so much of the cost of PostgreSQL's plan. */
#define GJ_LEAST_SAVED		0.1
/* Of a table's pages that are not resident, or cannot be before VACUUM, so many do not matter. */
#define GJ_PAGES_LEFT		0.1

/* A table that was requested; relation 0: free. */
typedef struct GjRequest
{
	Oid			database;
	Oid			user;			/* of the session */
	Oid			relation;
	uint32		count;
	TimestampTz last;
	TimestampTz not_before;		/* when it may be loaded */
	TimestampTz started;		/* when a worker was started for it */
	uint64		columns[GJ_COLUMN_WORDS];	/* bit attribute number; bit 0: ctid (load/tuple_id.h) */
} GjRequest;

/* What a worker is told: in bgw_extra. */
typedef struct GjWork
{
	Oid			database;
	Oid			user;
	int			device;			/* gpujoin.device */
} GjWork;

extern Datum gpujoin_prewarm(PG_FUNCTION_ARGS);
PGDLLEXPORT void gj_auto_prewarm_main(Datum main_arg);

static planner_hook_type prev_planner = NULL;

/* ---- the file */

static int
open_requests(void)
{
	return BasicOpenFile(GJ_REQUESTS_FILE, O_RDWR | O_CREAT | O_CLOEXEC | PG_BINARY);
}

/* Read an entry; one that was never written is free. */
static void
read_request(int fd, int i, GjRequest *request)
{
	if (pread(fd, request, sizeof(*request), (off_t) i * sizeof(*request)) != sizeof(*request))
		memset(request, 0, sizeof(*request));
}

static bool
write_request(int fd, int i, const GjRequest *request)
{
	return pwrite(fd, request, sizeof(*request), (off_t) i * sizeof(*request)) == sizeof(*request);
}

/* Lock the file for a worker, or tell whether one has locked it. */
static bool
lock_requests(int fd, bool lock)
{
	struct flock range = {.l_type = F_WRLCK,.l_whence = SEEK_SET,.l_start = 0,.l_len = 1};

	if (lock)
		return fcntl(fd, F_OFD_SETLK, &range) == 0;
	return fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type == F_UNLCK;
}

static bool
is_old(TimestampTz then, TimestampTz now)
{
	return then > now || TimestampDifferenceExceeds(then, now, GJ_REQUEST_AGE);
}

/* ---- requests */

static void
start_worker(void)
{
	BackgroundWorker worker;
	GjWork		work = {MyDatabaseId, GetSessionUserId(), gj_device};
	BackgroundWorkerHandle *handle;

	memset(&worker, 0, sizeof(worker));
	strlcpy(worker.bgw_name, "gpujoin auto-prewarm", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "gpujoin auto-prewarm", sizeof(worker.bgw_type));
	strlcpy(worker.bgw_library_name, "gpujoin", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "gj_auto_prewarm_main", sizeof(worker.bgw_function_name));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	memcpy(worker.bgw_extra, &work, sizeof(work));
	/* where all are in use, another request will start one */
	(void) RegisterDynamicBackgroundWorker(&worker, &handle);
}

/* Request a table with columns of it. */
static void
request_table(Oid relid, const List *description)
{
	GjRequest	request;
	TimestampTz now = GetCurrentTimestamp();
	Oid			key[3] = {MyDatabaseId, GetSessionUserId(), relid};
	int			slot = hash_bytes((const unsigned char *) key, sizeof(key)) % GJ_REQUESTS;
	int			fd = open_requests();
	bool		start;

	if (fd < 0)
		return;
	read_request(fd, slot, &request);
	if (request.database != MyDatabaseId || request.user != GetSessionUserId() ||
		request.relation != relid || is_old(request.last, now))
	{
		TimestampTz not_before = request.relation == relid && request.database == MyDatabaseId ?
			request.not_before : 0;

		memset(&request, 0, sizeof(request));
		request.database = MyDatabaseId;
		request.user = GetSessionUserId();
		request.relation = relid;
		request.not_before = not_before;
	}
	request.count++;
	request.last = now;
	for (int i = GJ_TABLE_COLUMNS; i < list_length(description); i++)
	{
		int			attno = list_nth_int(description, i);

		if (attno == GJ_TUPLE_ID_ATTNO)
			attno = 0;
		if (attno >= 0 && attno < GJ_COLUMN_WORDS * 64)
			request.columns[attno / 64] |= UINT64CONST(1) << attno % 64;
	}
	start = request.count >= GJ_ENOUGH_REQUESTS && now >= request.not_before &&
		lock_requests(fd, false) &&
		(request.started > now || TimestampDifferenceExceeds(request.started, now, GJ_START_PAUSE));
	if (start)
		request.started = now;
	if (write_request(fd, slot, &request) && start)
		start_worker();
	close(fd);
}

/* True if a table could become resident, is not, and is none that is too large. */
static bool
is_worth_loading(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	double		nblocks = RelationGetNumberOfBlocks(rel);
	bool		worth = RelationIsPermanent(rel) && !IsCatalogRelation(rel) && nblocks > 0 &&
		nblocks * BLCKSZ <= (double) gj_auto_prewarm * 1024 * 1024 &&
		rel->rd_rel->relallvisible >= nblocks * (1 - GJ_PAGES_LEFT) &&
		gj_cache_pages(relid) < nblocks * (1 - GJ_PAGES_LEFT) &&
		pg_class_aclcheck(relid, GetSessionUserId(), ACL_SELECT) == ACLCHECK_OK;

	table_close(rel, NoLock);
	return worth;
}

/* Request the tables whose pages GpuJoins of a plan read. */
static void
request_tables(const Plan *plan)
{
	const CustomScan *scan = (const CustomScan *) plan;
	ListCell   *lc;
	ListCell   *lc2;

	/* a subplan that PostgreSQL does without */
	if (plan == NULL)
		return;
	if (IsA(plan, CustomScan) && scan->methods == &gj_join_scan_methods)
	{
		foreach(lc, list_nth(scan->custom_private, GJ_PRIVATE_TABLES))
		{
			foreach(lc2, lfirst(lc))
			{
				Oid			relid = (Oid) list_nth_int(lfirst(lc2), GJ_TABLE_RELID);

				if (is_worth_loading(relid))
					request_table(relid, lfirst(lc2));
			}
		}
		return;
	}
	if (IsA(plan, CustomScan))
		foreach(lc, scan->custom_plans)
			request_tables(lfirst(lc));
	foreach(lc, gj_plans_below(plan))
		request_tables(lfirst(lc));
}

/*
 * Plan a query as if all its tables were resident.  Hooks of other extensions may want their planner
 * around PostgreSQL's: Citus' do.
 */
static PlannedStmt *
plan_as_resident(Query *parse, const char *query_string, int cursor_options, ParamListInfo params)
{
	PlannedStmt *volatile statement = NULL;

	gj_assume_resident = true;
	PG_TRY();
	{
		if (prev_planner)
			statement = prev_planner(parse, query_string, cursor_options, params);
		else
			statement = standard_planner(parse, query_string, cursor_options, params);
	}
	PG_FINALLY();
	{
		gj_assume_resident = false;
	}
	PG_END_TRY();
	return statement;
}

/* Request tables if a device would win a query that PostgreSQL's plan has won. */
static void
consider(const PlannedStmt *planned, Query *parse, const char *query_string, int cursor_options,
		 ParamListInfo params)
{
	PlannedStmt *resident;
	GjFailure	failure;
	ListCell   *lc;

	if (gj_by_other_planner(planned) || planned->planTree->total_cost < gj_cost_least() ||
		gj_client_device(&failure) == NULL)
		return;
	resident = plan_as_resident(parse, query_string, cursor_options, params);
	if (resident->planTree->total_cost > planned->planTree->total_cost * (1 - GJ_LEAST_SAVED))
		return;
	request_tables(resident->planTree);
	foreach(lc, resident->subplans)
		request_tables(lfirst(lc));
}

static PlannedStmt *
plan_query(Query *parse, const char *query_string, int cursor_options, ParamListInfo params)
{
	PlannedStmt *planned;
	Query	   *copy = NULL;
	bool		assume = gj_assume_resident;
	const char *reason;

	/* whoever plans changes the query */
	if (gj_auto_prewarm > 0 && gj_may_offload(&reason) && !gj_force && gj_cache_size != 0 &&
		!assume && parse->commandType == CMD_SELECT && !IsParallelWorker() &&
		!IsInParallelMode())
		copy = copyObject(parse);
	/* what functions plan that the planner calls may be kept; after an error it is false again */
	gj_assume_resident = false;
	if (prev_planner)
		planned = prev_planner(parse, query_string, cursor_options, params);
	else
		planned = standard_planner(parse, query_string, cursor_options, params);
	gj_assume_resident = assume;
	if (copy != NULL)
		consider(planned, copy, query_string, cursor_options, params);
	return planned;
}

/* ---- the worker */

/* The names of columns that were requested, as an argument of gpujoin_prewarm(). */
static Datum
column_names(const GjRequest *request)
{
	Datum	   *names = palloc(sizeof(Datum) * GJ_COLUMN_WORDS * 64);
	int			n = 0;

	for (int attno = 0; attno < GJ_COLUMN_WORDS * 64; attno++)
	{
		bool		wanted = request->columns[attno / 64] >> attno % 64 & 1;
		char	   *name = !wanted ? NULL : attno == 0 ? "ctid" :
			get_attname(request->relation, attno, true);

		if (name != NULL)
		{
			NameData   *column = palloc(sizeof(NameData));

			namestrcpy(column, name);
			names[n++] = NameGetDatum(column);
		}
	}
	return PointerGetDatum(construct_array(names, n, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR));
}

static void
load_requested(const GjRequest *request)
{
	Relation	rel;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	rel = try_table_open(request->relation, AccessShareLock);
	if (rel != NULL)
	{
		char	   *name = pstrdup(RelationGetRelationName(rel));
		int64		npages;

		pgstat_report_activity(STATE_RUNNING, psprintf("loads \"%s\"", name));
		npages = DatumGetInt64(DirectFunctionCall2(gpujoin_prewarm, ObjectIdGetDatum(request->relation),
												   column_names(request)));
		table_close(rel, NoLock);
		ereport(LOG,
				(errmsg("gpujoin has loaded \"%s\" in the background: " INT64_FORMAT " pages are resident",
						name, npages)));
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* Load what was requested often enough; returns whether anything was. */
static bool
load_all_requested(int fd, const GjWork *work)
{
	bool		loaded = false;

	for (int i = 0; i < GJ_REQUESTS; i++)
	{
		GjRequest	request;
		TimestampTz now = GetCurrentTimestamp();

		CHECK_FOR_INTERRUPTS();
		read_request(fd, i, &request);
		if (request.database != work->database || request.user != work->user ||
			request.count < GJ_ENOUGH_REQUESTS || now < request.not_before)
			continue;
		/* first, lest a table that cannot be loaded is tried for ever */
		request.count = 0;
		request.not_before = TimestampTzPlusMilliseconds(now, GJ_REQUEST_AGE);
		if (!write_request(fd, i, &request))
			return false;
		load_requested(&request);
		loaded = true;
	}
	return loaded;
}

void
gj_auto_prewarm_main(Datum main_arg)
{
	GjWork		work;
	int			fd;

	memcpy(&work, MyBgworkerEntry->bgw_extra, sizeof(work));
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(work.database, work.user, 0);
	SetConfigOption("gpujoin.device", gj_device_setting_name(work.device), PGC_USERSET, PGC_S_SESSION);
	SetConfigOption("gpujoin.loader_workers", "0", PGC_USERSET, PGC_S_SESSION);
	fd = open_requests();
	/* another worker may have been faster; the file is closed and unlocked when this one ends */
	if (fd >= 0 && lock_requests(fd, true))
	{
		/* others may have been requested meanwhile */
		while (load_all_requested(fd, &work))
			;
	}
	proc_exit(0);
}

void
gj_auto_prewarm_init(void)
{
	prev_planner = planner_hook;
	planner_hook = plan_query;
}
