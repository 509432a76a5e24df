/*
 * cached_pages.c
 *	  Whether a table's pages are in memory: a look at a few of them tells.
 *
 * PostgreSQL's seq_page_cost is one price for a page, wherever it is.  A plan that looks into an
 * index is charged for few pages; one that loads a table for all of them, by many processes.  So
 * where all pages are cached the price decides against loading that takes a tenth of its time.
 *
 * Pages in shared_buffers are found there.  Others are read from the file, which the operating
 * system answers in a few microseconds if it has them, and else not in less than fifty.  They are
 * not checked, nor do they come into shared_buffers: nothing but the time is of interest.
 */
#include "postgres.h"

#include "access/table.h"
#include "common/pg_prng.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "utils/rel.h"

#include "compat.h"
#include "plan/join_path.h"

/* Pages that are looked at; of a table in memory so many may be slow, for the machine is busy. */
#define LOOKS				8
#define SLOW_LOOKS			2
#define SLOW_US				30

/* Tables of fewer pages are not worth a look. */
#define LEAST_PAGES			1024

static bool
is_quick(Relation table, BlockNumber block)
{
	GjIoBlock	page;
	instr_time	start,
				duration;

	if (BufferIsValid(PrefetchBuffer(table, MAIN_FORKNUM, block).recent_buffer))
		return true;
	INSTR_TIME_SET_CURRENT(start);
	smgrread(RelationGetSmgr(table), MAIN_FORKNUM, block, page.data);
	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, start);
	return INSTR_TIME_GET_MICROSEC(duration) < SLOW_US;
}

double
gj_pages_cached(Oid relid)
{
	Relation	table = table_open(relid, NoLock);	/* the planner has locked it */
	BlockNumber npages = RelationGetNumberOfBlocks(table);
	int			nslow = npages < LEAST_PAGES ? LOOKS : 0;

	for (int i = 0; i < LOOKS && nslow <= SLOW_LOOKS; i++)
		if (!is_quick(table, (BlockNumber) pg_prng_uint64_range(&pg_global_prng_state, 0, npages - 1)))
			nslow++;
	table_close(table, NoLock);
	return nslow <= SLOW_LOOKS;
}
