/*
 * progress.c
 *	  gpujoin_stat_progress_prewarm: how far gpujoin_prewarm() is, in any session.
 *
 * PostgreSQL's own progress reporting carries it: each session has an entry in shared memory
 * with a command and some numbers.  The command is none that PostgreSQL knows, so none of its
 * views shows it.  The end of a transaction, by an error too, clears the entry.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/backend_progress.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"

#include "compat.h"
#include "progress.h"

/* "gj": a number that PostgreSQL's commands will not reach. */
#define GJ_PROGRESS_PREWARM ((ProgressCommandType) 0x676a)

/* The numbers. */
typedef enum GjProgress
{
	GJ_PROGRESS_PHASE,			/* GjProgressPhase */
	GJ_PROGRESS_NTABLES,
	GJ_PROGRESS_TABLES_DONE,
	GJ_PROGRESS_RELID,			/* the table that is loaded now */
	GJ_PROGRESS_NBLOCKS,		/* of this table */
	GJ_PROGRESS_BLOCKS_DONE
} GjProgress;

typedef enum GjProgressPhase
{
	GJ_PHASE_PREPARE,
	GJ_PHASE_LOAD,
	GJ_PHASE_FINISH
} GjProgressPhase;

PG_FUNCTION_INFO_V1(gpujoin_stat_progress_prewarm);

void
gj_progress_start(Oid relid, int ntables)
{
	pgstat_progress_start_command(GJ_PROGRESS_PREWARM, relid);
	pgstat_progress_update_param(GJ_PROGRESS_NTABLES, ntables);
}

void
gj_progress_table(Oid relid, int ndone, BlockNumber nblocks)
{
	const int	index[] = {
		GJ_PROGRESS_PHASE, GJ_PROGRESS_TABLES_DONE, GJ_PROGRESS_RELID, GJ_PROGRESS_NBLOCKS,
		GJ_PROGRESS_BLOCKS_DONE
	};
	const int64 value[] = {GJ_PHASE_PREPARE, ndone, relid, nblocks, 0};

	pgstat_progress_update_multi_param(lengthof(index), index, value);
}

void
gj_progress_blocks(BlockNumber ndone, BlockNumber nblocks)
{
	const int	index[] = {GJ_PROGRESS_PHASE, GJ_PROGRESS_NBLOCKS, GJ_PROGRESS_BLOCKS_DONE};
	const int64 value[] = {ndone < nblocks ? GJ_PHASE_LOAD : GJ_PHASE_FINISH, nblocks, ndone};

	pgstat_progress_update_multi_param(lengthof(index), index, value);
}

void
gj_progress_end(void)
{
	pgstat_progress_end_command();
}

/* Return how far all sessions are. */
Datum
gpujoin_stat_progress_prewarm(PG_FUNCTION_ARGS)
{
	static const char *const phases[] = {"preparing", "loading", "finishing"};
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int			nbackends = pgstat_fetch_stat_numbackends();

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 1; i <= nbackends; i++)
	{
		const PgBackendStatus *backend = &gj_local_backend(i)->backendStatus;
		const int64 *param = backend->st_progress_param;
		uint64		phase = (uint64) param[GJ_PROGRESS_PHASE];
		Datum		values[9];
		bool		nulls[9] = {false};

		if (backend->st_progress_command != GJ_PROGRESS_PREWARM)
			continue;
		values[0] = Int32GetDatum(backend->st_procpid);
		values[1] = ObjectIdGetDatum(backend->st_databaseid);
		/* as in pg_stat_progress_vacuum, what others do is not for everybody */
		if (!has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) &&
			!has_privs_of_role(GetUserId(), backend->st_userid))
			memset(nulls + 2, true, sizeof(nulls) - 2);
		values[2] = ObjectIdGetDatum(backend->st_progress_command_target);
		values[3] = CStringGetTextDatum(phases[Min(phase, GJ_PHASE_FINISH)]);
		values[4] = Int64GetDatum(param[GJ_PROGRESS_NTABLES]);
		values[5] = Int64GetDatum(param[GJ_PROGRESS_TABLES_DONE]);
		values[6] = ObjectIdGetDatum((Oid) param[GJ_PROGRESS_RELID]);
		values[7] = Int64GetDatum(param[GJ_PROGRESS_NBLOCKS]);
		values[8] = Int64GetDatum(param[GJ_PROGRESS_BLOCKS_DONE]);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
