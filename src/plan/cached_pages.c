/*
 * cached_pages.c
 *	  Whether a table's pages are in memory: a look at a few of them tells.
 *
 * PostgreSQL's seq_page_cost is one price for a page, wherever it is.  A plan that looks into an
 * index is charged for few pages.  One that loads a table is charged for all, though many processes
 * share that, and pages in memory take them a tenth of the time that the price stands for.
 *
 * Pages in shared_buffers are found there.  Others are read from the file: the operating system
 * answers in a few microseconds if it has them, and else not in less than fifty.  They are not
 * checked, nor do they come into shared_buffers: nothing but the time is of interest.
 *
 * The answer holds for some seconds: one query's plan is not to change with the noise of a machine.
 */
#include "postgres.h"

#include "access/table.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "plan/join_path.h"

/* Pages that are looked at; of a table in memory so many may be slow, for the machine is busy. */
#define LOOKS				8
#define SLOW_LOOKS			2
#define SLOW_US				30

/* Tables of fewer pages are not worth a look. */
#define LEAST_PAGES			256

#define ANSWERS				64
#define ANSWER_MS			10000

typedef struct Answer
{
	Oid			relid;
	BlockNumber npages;
	bool		cached;
	TimestampTz until;
} Answer;

static Answer answers[ANSWERS];

static bool
is_quick(Relation table, BlockNumber block)
{
	GjIoBlock	page;
	instr_time	start,
				duration;

	INSTR_TIME_SET_CURRENT(start);
	if (BufferIsValid(PrefetchBuffer(table, MAIN_FORKNUM, block).recent_buffer))
		return true;
	smgrread(RelationGetSmgr(table), MAIN_FORKNUM, block, page.data);
	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, start);
	return INSTR_TIME_GET_MICROSEC(duration) < SLOW_US;
}

static bool
look(Relation table, BlockNumber npages)
{
	int			nslow = 0;

	for (int i = 0; i < LOOKS && nslow <= SLOW_LOOKS; i++)
	{
		uint64		block = pg_prng_uint64_range(&pg_global_prng_state, 0, npages - 1);

		if (!is_quick(table, (BlockNumber) block))
			nslow++;
	}
	return nslow <= SLOW_LOOKS;
}

double
gj_pages_cached(Oid relid)
{
	Answer	   *answer = &answers[murmurhash32(relid) % ANSWERS];
	Relation	table = table_open(relid, NoLock);	/* the planner has locked it */
	BlockNumber npages = RelationGetNumberOfBlocks(table);
	TimestampTz now = GetCurrentTimestamp();

	/* temporary pages of others are not to be read */
	if (npages < LEAST_PAGES || RELATION_IS_OTHER_TEMP(table))
	{
		table_close(table, NoLock);
		return 0;
	}
	if (answer->relid != relid || answer->npages != npages || answer->until <= now)
		*answer = (Answer) {
			relid, npages, look(table, npages), TimestampTzPlusMilliseconds(now, ANSWER_MS)
		};
	table_close(table, NoLock);
	return answer->cached;
}
