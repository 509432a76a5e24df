/*
 * whole_joins.c
 *	  A program for whole tables where PostgreSQL joins partition by partition.
 *
 * With enable_partitionwise_join the cheapest native path can be an append of joins, and the
 * paths that joined the whole tables are gone.  One program over all partitions is what
 * a device wants: its sources are of several tables, and what is too large for it
 * is partitioned by hash anyway.  So such a join problem is solved once more without
 * partitionwise joins, and the tree of that trial becomes the program.  The native plan, and
 * so the fallback, stays partitionwise.
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/paths.h"

#include "guc.h"
#include "plan/join_path.h"
#include "plan/join_tree.h"

/* What root->join_search_private is for after the search. */
#define WHOLE_JOINS_MAGIC	0x6A6C7767

typedef struct WholeJoins
{
	uint32		magic;
	List	   *rels;			/* of join problems, a full join's before what it is part of */
} WholeJoins;

/* NULL: there are none (GEQO forgets them, too), or root->join_search_private is another's. */
static WholeJoins *
whole_joins(PlannerInfo *root)
{
	WholeJoins *joins = root->join_search_private;

	return joins != NULL && joins->magic == WHOLE_JOINS_MAGIC ? joins : NULL;
}

/* The relation that joins the same relations without joins of partitions; NULL: none. */
static RelOptInfo *
find_whole(const WholeJoins *joins, const RelOptInfo *rel)
{
	ListCell   *lc;

	if (joins == NULL)
		return NULL;
	foreach(lc, joins->rels)
		if (bms_equal(((RelOptInfo *) lfirst(lc))->relids, rel->relids))
			return lfirst(lc);
	return NULL;
}

/* The relations to be joined, those that are joins of partitions without these. */
static List *
whole_initial_rels(const WholeJoins *joins, List *initial_rels)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, initial_rels)
	{
		RelOptInfo *whole = find_whole(joins, lfirst(lc));

		result = lappend(result, whole != NULL ? whole : lfirst(lc));
	}
	return result;
}

/* Looks for appends of joins in the tree of the path, and for joins that are done elsewhere. */
static void
find_appends(Path *path, bool *found, bool *foreign)
{
	Path	   *subpath = gj_transparent_subpath(path);
	List	   *members = NIL;
	ListCell   *lc;

	if (subpath != NULL)
		find_appends(subpath, found, foreign);
	else if (IsA(path, NestPath) || IsA(path, MergePath) || IsA(path, HashPath))
	{
		find_appends(((JoinPath *) path)->outerjoinpath, found, foreign);
		find_appends(((JoinPath *) path)->innerjoinpath, found, foreign);
	}
	else if (IsA(path, AppendPath))
		members = ((AppendPath *) path)->subpaths;
	else if (IsA(path, MergeAppendPath))
		members = ((MergeAppendPath *) path)->subpaths;
	else if (IsA(path, ForeignPath) && IS_JOIN_REL(path->parent))
		*foreign = true;
	*found |= members != NIL && IS_JOIN_REL(path->parent);
	foreach(lc, members)
		find_appends(lfirst(lc), found, foreign);
}

/* True if the relation is, or can become, an append of joins that no other server does. */
static bool
may_be_partitionwise(RelOptInfo *rel)
{
	bool		found = IS_PARTITIONED_REL(rel);
	bool		foreign = false;

	find_appends(rel->cheapest_total_path, &found, &foreign);
	if (rel->partial_pathlist != NIL)
		find_appends(linitial(rel->partial_pathlist), &found, &foreign);
	return found && !foreign;
}

static RelOptInfo *
search_without_partitions(PlannerInfo *root, int levels_needed, List *initial_rels,
						  join_search_hook_type search)
{
	RelOptInfo *volatile rel = NULL;

	enable_partitionwise_join = false;
	PG_TRY();
	{
		rel = search(root, levels_needed, initial_rels);
	}
	PG_FINALLY();
	{
		enable_partitionwise_join = true;
	}
	PG_END_TRY();
	return rel;
}

void
gj_search_whole_joins(PlannerInfo *root, RelOptInfo *rel, int nsolved, int levels_needed,
					  List *initial_rels, join_search_hook_type search)
{
	List	   *join_rels = root->join_rel_list;
	struct HTAB *join_hash = root->join_rel_hash;
	WholeJoins *joins = whole_joins(root);
	RelOptInfo *whole;

	if (!enable_partitionwise_join || (joins == NULL && root->join_search_private != NULL) ||
		rel->cheapest_total_path == NULL || IS_DUMMY_REL(rel) ||
		(!gj_force && rel->cheapest_total_path->total_cost < gj_cost_least()) ||
		!may_be_partitionwise(rel))
		return;
	if (joins == NULL)
		joins = palloc0(sizeof(WholeJoins));
	joins->magic = WHOLE_JOINS_MAGIC;
	/* as GEQO does for each of its trials */
	root->join_rel_list = list_truncate(list_copy(join_rels), nsolved);
	root->join_rel_hash = NULL;
	whole = search_without_partitions(root, levels_needed,
									  whole_initial_rels(joins, initial_rels), search);
	root->join_rel_list = join_rels;
	root->join_rel_hash = join_hash;
	joins->rels = lappend(joins->rels, whole);
	root->join_search_private = joins;
}

Path *
gj_whole_join(PlannerInfo *root, Path *native)
{
	RelOptInfo *whole = find_whole(whole_joins(root), native->parent);
	bool		found = false;
	bool		foreign = false;

	if (whole == NULL)
		return native;
	find_appends(native, &found, &foreign);
	/* other servers join their partitions themselves: that is not given up */
	return found && !foreign ? whole->cheapest_total_path : native;
}
