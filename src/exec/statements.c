/*
 * statements.c
 *	  gpujoin_stat_statements: what devices did for each statement.
 *
 * The counts are in a hash table in PostgreSQL's shared memory, which shared_preload_libraries is
 * needed for.  Statements are told apart as pg_stat_statements does: by user, database and query
 * identifier.  There is room for MAX_STATEMENTS; a new one takes the place of the one that has not
 * been executed for longest.
 *
 * Nodes note what they did when they end, all within ExecutorEnd.  The hook there adds it up as one
 * call of the statement.  A statement that ends with an error is not counted.
 *
 * One lock guards all of it.  It is held for some reads and writes of memory, or while a row of the
 * view is made.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "catalog/pg_authid.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/acl.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "exec/statements.h"

#define MAX_STATEMENTS	1000
#define TRANCHE			"gpujoin statements"

typedef struct StatementKey
{
	Oid			user;
	Oid			database;
	int64		query;
} StatementKey;

typedef struct Statement
{
	StatementKey key;			/* first, as dynahash wants it */
	uint64		calls;
	GjStatementUse use;
	TimestampTz since;
	uint64		last_used;		/* by the clock */
} Statement;

/* In shared memory; guarded by the lock, as the hash table is. */
typedef struct Statements
{
	LWLock	   *lock;
	uint64		clock;			/* calls so far */
} Statements;

static Statements *statements = NULL;	/* NULL: nothing is counted */
static HTAB *table = NULL;

/* What nodes of the statement that ends have noted. */
static GjStatementUse ended;
static bool has_ended = false;

static shmem_request_hook_type prev_shmem_request = NULL;
static shmem_startup_hook_type prev_shmem_startup = NULL;
static ExecutorEnd_hook_type prev_executor_end = NULL;

PG_FUNCTION_INFO_V1(gpujoin_stat_statements);
PG_FUNCTION_INFO_V1(gpujoin_stat_statements_reset);

static void
add_use(GjStatementUse *sum, const GjStatementUse *use)
{
	sum->device_ms += use->device_ms;
	sum->wait_ms += use->wait_ms;
	sum->load_ms += use->load_ms;
	sum->bytes_in += use->bytes_in;
	sum->bytes_out += use->bytes_out;
	sum->fallbacks += use->fallbacks;
}

void
gj_statement_use_stats(GjStatementUse *use, const GjRunStats *stats)
{
	for (int phase = 0; phase < GJ_NPHASES; phase++)
		if (phase != GJ_PHASE_WAIT)
			use->device_ms += stats->ms[phase];
	use->bytes_in += stats->bytes_in;
	use->bytes_out += stats->bytes_out;
}

void
gj_statement_note(const GjStatementUse *use)
{
	add_use(&ended, use);
	has_ended = true;
}

/* Removes the statement that has not been executed for longest. */
static void
make_room(void)
{
	HASH_SEQ_STATUS scan;
	Statement  *statement;
	Statement  *oldest = NULL;

	hash_seq_init(&scan, table);
	while ((statement = hash_seq_search(&scan)) != NULL)
		if (oldest == NULL || statement->last_used < oldest->last_used)
			oldest = statement;
	if (oldest != NULL)
		hash_search(table, &oldest->key, HASH_REMOVE, NULL);
}

/* Finds a statement, or makes it; NULL if there is no room.  The lock is held. */
static Statement *
find_statement(const StatementKey *key)
{
	bool		found;
	Statement  *statement = hash_search(table, key, HASH_FIND, NULL);

	if (statement != NULL)
		return statement;
	while (hash_get_num_entries(table) >= MAX_STATEMENTS)
		make_room();
	statement = hash_search(table, key, HASH_ENTER_NULL, &found);
	if (statement == NULL)
		return NULL;
	memset((char *) statement + sizeof(StatementKey), 0, sizeof(Statement) - sizeof(StatementKey));
	statement->since = GetCurrentTimestamp();
	return statement;
}

/* Counts a call.  What a parallel worker did belongs to its leader's. */
static void
count_call(int64 query, const GjStatementUse *use)
{
	StatementKey key = {.user = GetUserId(),.database = MyDatabaseId,.query = query};
	Statement  *statement;

	LWLockAcquire(statements->lock, LW_EXCLUSIVE);
	statement = find_statement(&key);
	if (statement != NULL)
	{
		statement->calls += !IsParallelWorker();
		statement->last_used = ++statements->clock;
		add_use(&statement->use, use);
	}
	LWLockRelease(statements->lock);
}

static void
executor_end(QueryDesc *query)
{
	int64		id = (int64) query->plannedstmt->queryId;

	memset(&ended, 0, sizeof(ended));
	has_ended = false;
	if (prev_executor_end)
		prev_executor_end(query);
	else
		standard_ExecutorEnd(query);
	if (has_ended && id != 0 && statements != NULL)
		count_call(id, &ended);
	has_ended = false;
}

/* ---- the view */

static void
check_preloaded(void)
{
	if (statements == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("statements are counted only if gpujoin is in shared_preload_libraries")));
}

/* Adds the row of a statement.  As in pg_stat_statements, others' query identifiers are hidden. */
static void
put_statement(ReturnSetInfo *result, const Statement *statement, bool sees_all)
{
	const GjStatementUse *use = &statement->use;
	Datum		values[11];
	bool		nulls[11] = {false};
	int			n = 0;

	values[n++] = ObjectIdGetDatum(statement->key.user);
	values[n++] = ObjectIdGetDatum(statement->key.database);
	nulls[n] = !sees_all && statement->key.user != GetUserId();
	values[n++] = Int64GetDatum(statement->key.query);
	values[n++] = Int64GetDatum((int64) statement->calls);
	values[n++] = Int64GetDatum((int64) use->fallbacks);
	values[n++] = Float8GetDatum(use->device_ms);
	values[n++] = Float8GetDatum(use->wait_ms);
	values[n++] = Float8GetDatum(use->load_ms);
	values[n++] = Int64GetDatum((int64) use->bytes_in);
	values[n++] = Int64GetDatum((int64) use->bytes_out);
	values[n++] = TimestampTzGetDatum(statement->since);
	Assert(n == lengthof(values));
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* Return all statements. */
Datum
gpujoin_stat_statements(PG_FUNCTION_ARGS)
{
	bool		sees_all = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	HASH_SEQ_STATUS scan;
	Statement  *statement;

	check_preloaded();
	InitMaterializedSRF(fcinfo, 0);
	LWLockAcquire(statements->lock, LW_SHARED);
	hash_seq_init(&scan, table);
	while ((statement = hash_seq_search(&scan)) != NULL)
		put_statement((ReturnSetInfo *) fcinfo->resultinfo, statement, sees_all);
	LWLockRelease(statements->lock);
	return (Datum) 0;
}

/* Forget all statements. */
Datum
gpujoin_stat_statements_reset(PG_FUNCTION_ARGS)
{
	HASH_SEQ_STATUS scan;
	Statement  *statement;

	check_preloaded();
	LWLockAcquire(statements->lock, LW_EXCLUSIVE);
	hash_seq_init(&scan, table);
	while ((statement = hash_seq_search(&scan)) != NULL)
		hash_search(table, &statement->key, HASH_REMOVE, NULL);
	LWLockRelease(statements->lock);
	PG_RETURN_VOID();
}

/* ---- shared memory */

static void
request_memory(void)
{
	if (prev_shmem_request)
		prev_shmem_request();
	RequestAddinShmemSpace(add_size(MAXALIGN(sizeof(Statements)),
									hash_estimate_size(MAX_STATEMENTS, sizeof(Statement))));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

static void
attach_memory(void)
{
	HASHCTL		control = {.keysize = sizeof(StatementKey),.entrysize = sizeof(Statement)};
	bool		found;

	if (prev_shmem_startup)
		prev_shmem_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	statements = ShmemInitStruct(TRANCHE, sizeof(Statements), &found);
	if (!found)
	{
		statements->lock = &GetNamedLWLockTranche(TRANCHE)->lock;
		statements->clock = 0;
	}
	table = ShmemInitHash("gpujoin statement table", MAX_STATEMENTS, MAX_STATEMENTS, &control,
						  HASH_ELEM | HASH_BLOBS);
	LWLockRelease(AddinShmemInitLock);
}

void
gj_statements_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	/* unless compute_query_id is off */
	EnableQueryId();
	prev_shmem_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	prev_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = attach_memory;
	prev_executor_end = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end;
}
