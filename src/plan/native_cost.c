/*
 * native_cost.c
 *	  What PostgreSQL's cost of a plan has wrong of lookups in indexes, where pages are in memory.
 *
 * PostgreSQL charges for the first visit of a page alone, as a read from a disk in no order
 * (random_page_cost), since the page is cached from then on.  So few lookups cost too much where all
 * pages are in memory, and lookups that come back to pages again and again cost too little.
 *
 * A table in memory is loaded for a part of seq_page_cost a page (cached_pages.c).  There a visit in
 * no order takes a process twice as long as a page takes all loaders: 1.7 and 0.7 us (16 cores, TPC-H
 * Q14 at scale 10, November 2026).  So each visit costs two such pages here, in place of what
 * PostgreSQL charges for pages.
 *
 * Where a table is on a disk, visits of cached pages are added to what PostgreSQL charges.  A table
 * that is looked into so often that this matters is read as a whole by PostgreSQL's plan, too, in no
 * order.  So loading it is no large mistake.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "catalog/pg_am.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
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

/* ---- tables in memory */

/* Has PostgreSQL cost a copy of an index scan, or of a bitmap scan, for a single run. */
static double
cost_again(PlannerInfo *root, const Path *path)
{
	IndexPath	index;
	BitmapHeapPath bitmap;

	if (IsA(path, IndexPath))
	{
		index = *(const IndexPath *) path;
		cost_index(&index, root, 1, path->parallel_aware);
		return index.path.total_cost;
	}
	bitmap = *(const BitmapHeapPath *) path;
	/* several indexes keep what they cost */
	if (IsA(bitmap.bitmapqual, IndexPath))
	{
		index = *(const IndexPath *) bitmap.bitmapqual;
		cost_index(&index, root, 1, false);
		bitmap.bitmapqual = &index.path;
	}
	cost_bitmap_heap_scan(&bitmap.path, root, path->parent, path->param_info, bitmap.bitmapqual, 1);
	return bitmap.path.total_cost;
}

/* What PostgreSQL charges one run of a scan for pages. */
static double
charged_for_pages(PlannerInfo *root, const Path *path)
{
	double		random = random_page_cost;
	double		seq = seq_page_cost;
	double		rest;

	random_page_cost = seq_page_cost = 0;
	PG_TRY();
	{
		rest = cost_again(root, path);
	}
	PG_FINALLY();
	{
		random_page_cost = random;
		seq_page_cost = seq;
	}
	PG_END_TRY();
	return Max(path->total_cost - rest, 0);
}

/* Pages that one run of a scan visits, of the table and leaves of the index. */
static double
pages_visited(PlannerInfo *root, const Path *path)
{
	const RelOptInfo *rel = path->parent;
	const IndexOptInfo *index;
	double		found;
	double		leaves;
	double		index_cost;

	if (IsA(path, BitmapHeapPath))
		return compute_bitmap_pages(root, path->parent, ((const BitmapHeapPath *) path)->bitmapqual, 1,
									&index_cost, NULL);
	index = ((const IndexPath *) path)->indexinfo;
	found = clamp_row_est(((const IndexPath *) path)->indexselectivity * rel->tuples);
	leaves = 1 + found * index->pages / Max(index->tuples, 1);
	if (path->pathtype == T_IndexOnlyScan)
		return leaves + found * (1 - rel->allvisfrac);
	if (index->relam == BTREE_AM_OID && gj_remembered(root, is_scattered, index->indexoid) == 0)
		return leaves + Min(found, 1 + found * rel->pages / Max(rel->tuples, 1));
	return leaves + found;
}

/*
 * What the visits of a table in memory cost in each process, less what PostgreSQL charges for pages;
 * loops: runs of the scan.
 */
static double
scan_in_memory(const GjVisits *visits, const Path *path, Oid relid, double loops)
{
	double		visited = pages_visited(visits->root, path);

	if (path->parallel_aware)
		visited /= visits->processes;
	return loops * (visited * VISIT_PAGES * gj_cost_page(visits->root, path->parent, relid) -
					charged_for_pages(visits->root, path));
}

/* ---- tables that may not be */

/* Cost of the visits of cached pages by `loops` runs of an index scan in each process. */
static double
index_on_disk(const GjVisits *visits, const IndexPath *path, double loops)
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

/* The same of a scan of a table, wherever its pages are. */
static double
scan_visits(const GjVisits *visits, const Path *path, double loops)
{
	Oid			relid = planner_rt_fetch(path->parent->relid, visits->root)->relid;
	bool		exists = IsA(path, BitmapHeapPath) ||
		!((const IndexPath *) path)->indexinfo->hypothetical;

	if (exists && gj_remembered(visits->root, gj_pages_cached, relid) != 0)
		return scan_in_memory(visits, path, relid, loops);
	return IsA(path, IndexPath) ? index_on_disk(visits, (const IndexPath *) path, loops) : 0;
}

/* How many processes run what is below a Gather. */
static double
gathered(int nworkers)
{
	double		leader = parallel_leader_participation ? 1 - 0.3 * nworkers : 0;

	return nworkers + Max(leader, 0);
}

/*
 * How often a nested loop runs its inner side, in runs to the end: those of semi and anti joins end
 * with the first row that matches, and are charged for so much.
 */
static double
inner_runs(const JoinPath *join)
{
	double		rows = join->outerjoinpath->rows;
	double		all = rows * join->innerjoinpath->total_cost;

	if ((join->jointype != JOIN_SEMI && join->jointype != JOIN_ANTI) || all <= 0)
		return rows;
	return rows * Min(Max(join->path.total_cost - join->outerjoinpath->total_cost, 0) / all, 1);
}

static double
path_visits(GjVisits visits, const Path *path, double loops)
{
	Path	   *subpath;

	switch (nodeTag(path))
	{
		case T_IndexPath:
		case T_BitmapHeapPath:
			return scan_visits(&visits, path, loops);
		case T_NestPath:
			{
				const JoinPath *join = (const JoinPath *) path;

				return path_visits(visits, join->outerjoinpath, loops) +
					path_visits(visits, join->innerjoinpath, loops * inner_runs(join));
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
