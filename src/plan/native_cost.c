/*
 * native_cost.c
 *	  What PostgreSQL's cost of a plan leaves out: visits of pages that are cached.
 *
 * A lookup in an index visits the page of each row that it finds.  PostgreSQL charges for the
 * first visit of a page alone, since the page is cached from then on.  But GpuJoin's load is
 * charged for each page as if none were cached.  Where all are, a visit in no order takes a
 * process twice as long as a page takes all loaders: 1.7 and 0.7 us (16 cores, TPC-H Q14 at scale
 * 10, November 2026).  So the same price is put on both here.
 *
 * A table that is looked into so often that this matters is read as a whole by PostgreSQL's plan,
 * too, in no order.  So loading it is no large mistake where tables are on a disk, either.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "catalog/pg_am.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/spccache.h"

#include "plan/join_path.h"
#include "plan/join_tree.h"
#include "plan/remembered.h"

/* Cost of such a visit, as pages that are read in order. */
#define VISIT_PAGES			2.0

/* Pages of an index that are looked at; its entries that must lie on another page than the last. */
#define SAMPLE_PAGES		3
#define SCATTERED_SHARE		0.5

typedef struct GjVisits
{
	PlannerInfo *root;
	double		processes;		/* that share the rows of the path */
} GjVisits;

typedef struct GjSample
{
	double		entries;
	double		moves;			/* to another page than the entry before */
	BlockNumber last;
} GjSample;

static void
sample_row(GjSample *sample, ItemPointer row)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(row);

	sample->entries++;
	sample->moves += block != sample->last;
	sample->last = block;
}

static void
sample_page(GjSample *sample, Page page)
{
	BTPageOpaque opaque;

	if (PageIsNew(page))
		return;
	opaque = BTPageGetOpaque(page);
	if (P_IGNORE(opaque) || !P_ISLEAF(opaque))
		return;
	for (OffsetNumber i = P_FIRSTDATAKEY(opaque); i <= PageGetMaxOffsetNumber(page); i++)
	{
		IndexTuple	entry = (IndexTuple) PageGetItem(page, PageGetItemId(page, i));

		if (BTreeTupleIsPosting(entry))
			for (int k = 0; k < BTreeTupleGetNPosting(entry); k++)
				sample_row(sample, BTreeTupleGetPostingN(entry, k));
		else
			sample_row(sample, &entry->t_tid);
	}
}

/*
 * 1 if rows that follow each other in a btree index lie on different pages of the table, else 0: a
 * look at some of its pages tells.  The correlation in the statistics is one of the whole table, and
 * low where rows of a key lie side by side, but keys in no order.
 */
static double
is_scattered(Oid indexrelid)
{
	Relation	index = index_open(indexrelid, NoLock);	/* the planner has locked it */
	GjSample	sample = {0, 0, InvalidBlockNumber};

	if (index->rd_rel->relam == BTREE_AM_OID)
	{
		BlockNumber npages = RelationGetNumberOfBlocks(index);

		for (int i = 1; i <= SAMPLE_PAGES; i++)
		{
			/* page 0 is none of entries */
			BlockNumber block = (BlockNumber) ((double) npages * i / (SAMPLE_PAGES + 1));
			Buffer		buffer;

			if (block == 0)
				continue;
			buffer = ReadBuffer(index, block);
			LockBuffer(buffer, BT_READ);
			sample_page(&sample, BufferGetPage(buffer));
			UnlockReleaseBuffer(buffer);
		}
	}
	index_close(index, NoLock);
	return sample.entries > 0 && sample.moves > sample.entries * SCATTERED_SHARE;
}

/* Cost of the visits of cached pages by `loops` runs of an index scan in each process. */
static double
index_visits(const GjVisits *visits, const IndexPath *path, double loops)
{
	const RelOptInfo *rel = path->path.parent;
	const IndexOptInfo *index = path->indexinfo;
	double		found = clamp_row_est(path->indexselectivity * rel->tuples);
	double		all = found * loops * visits->processes;
	double		page_cost;

	/* an index-only scan; one that does not exist; or not even a visit for each page */
	if (path->path.pathtype != T_IndexScan || index->hypothetical || all <= rel->pages ||
		gj_remembered(visits->root, is_scattered, index->indexoid) == 0)
		return 0;
	get_tablespace_page_costs(rel->reltablespace, NULL, &page_cost);
	all -= index_pages_fetched(all, rel->pages, index->pages, visits->root);
	/* a path in Gather is a process' share */
	return Max(all, 0) / visits->processes * page_cost * VISIT_PAGES;
}

/* How many processes run what is below a Gather. */
static double
gathered(int nworkers)
{
	double		leader = parallel_leader_participation ? 1 - 0.3 * nworkers : 0;

	return nworkers + Max(leader, 0);
}

static double
path_visits(GjVisits visits, const Path *path, double loops)
{
	Path	   *subpath;

	switch (nodeTag(path))
	{
		case T_IndexPath:
			return index_visits(&visits, (const IndexPath *) path, loops);
		case T_NestPath:
			{
				const JoinPath *join = (const JoinPath *) path;

				return path_visits(visits, join->outerjoinpath, loops) +
					path_visits(visits, join->innerjoinpath, loops * join->outerjoinpath->rows);
			}
		case T_HashPath:
		case T_MergePath:
			return path_visits(visits, ((const JoinPath *) path)->outerjoinpath, loops) +
				path_visits(visits, ((const JoinPath *) path)->innerjoinpath, loops);
		case T_MemoizePath:
			{
				const MemoizePath *memoize = (const MemoizePath *) path;
				double		missed = memoize->est_entries / Max(memoize->calls, 1);

				return path_visits(visits, memoize->subpath, loops * Min(missed, 1));
			}
		case T_MaterialPath:
			return path_visits(visits, ((const MaterialPath *) path)->subpath, 1);
		case T_AggPath:
			return path_visits(visits, ((const AggPath *) path)->subpath, loops);
		case T_GroupPath:
			return path_visits(visits, ((const GroupPath *) path)->subpath, loops);
		case T_UpperUniquePath:
			return path_visits(visits, ((const UpperUniquePath *) path)->subpath, loops);
		case T_UniquePath:
			return path_visits(visits, ((const UniquePath *) path)->subpath, loops);
		case T_GatherPath:
			visits.processes = gathered(((const GatherPath *) path)->num_workers);
			return path_visits(visits, ((const GatherPath *) path)->subpath, loops);
		case T_GatherMergePath:
			visits.processes = gathered(((const GatherMergePath *) path)->num_workers);
			return path_visits(visits, ((const GatherMergePath *) path)->subpath, loops);
		default:
			/* a subquery speaks for itself: it can be a stage */
			subpath = gj_transparent_subpath(unconstify(Path *, path));
			return subpath != NULL ? path_visits(visits, subpath, loops) : 0;
	}
}

double
gj_cost_visits(PlannerInfo *root, const Path *native)
{
	GjVisits	visits = {root, 1};

	return path_visits(visits, native, 1);
}
