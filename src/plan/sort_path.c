/*
 * sort_path.c
 *	  GpuJoin paths that return their rows in an order, so that PostgreSQL has nothing to sort.
 *
 * The device sorts all joined rows, or groups, by the pathkeys that the query asks for: those
 * of ORDER BY, or what its groups, windows or distinct rows are made from.  Where it knows only
 * the first of them, PostgreSQL can sort what is equal in these (an incremental sort), or leave
 * the order of the device alone and sort everything.  The native plan inside the node delivers the
 * same order.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/guc.h"

#include "client/client.h"
#include "compat.h"
#include "guc.h"
#include "plan/join_path.h"
#include "plan/reasons.h"

/*
 * True if the rows still have what an expression is made of: the inner side of a semi join, which
 * can have a member of a class as well, is gone.  What is put out comes from sides that are there.
 */
static bool
is_there(GjJoinInfo *info, Expr *expr)
{
	List	   *columns = pull_var_clause((Node *) expr, PVC_INCLUDE_AGGREGATES |
										  PVC_INCLUDE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS);

	return gj_returns_groups(info) || list_difference(columns, info->outputs) == NIL;
}

/* Adds the sort keys of a pathkey: those of a member of its class that the device knows exactly. */
static bool
sort_by_pathkey(GjJoinInfo *info, PathKey *pathkey)
{
	GjBuilder  *builder = info->builder;
	EquivalenceClass *ec = pathkey->pk_eclass;
	int			nkeys = list_length(builder->sort_keys);
	int			nexprs = list_length(info->sort_exprs);
	ListCell   *lc;

	while (ec->ec_merged)
		ec = ec->ec_merged;
	if (ec->ec_has_volatile)
		return false;
	foreach(lc, ec->ec_members)
	{
		EquivalenceMember *member = lfirst(lc);

		if (member->em_is_const || member->em_is_child || !is_there(info, member->em_expr) ||
			!gj_sort_by(info, member->em_expr, pathkey->pk_opfamily, gj_pathkey_strategy(pathkey),
						pathkey->pk_nulls_first))
			continue;
		if (((GjSortKey *) llast(builder->sort_keys))->of != GJ_SORT_AVG)
			return true;
		builder->sort_keys = list_truncate(builder->sort_keys, nkeys);
		info->sort_exprs = list_truncate(info->sort_exprs, nexprs);
		info->sort_labels = list_truncate(info->sort_labels, nexprs);
	}
	return false;
}

/* The cheaper one; `a` can be NULL. */
static Path *
cheaper(Path *a, Path *b)
{
	return a != NULL && a->total_cost <= b->total_cost ? a : b;
}

Path *
gj_sorted_native(PlannerInfo *root, RelOptInfo *rel, Path *native, List *pathkeys)
{
	Path	   *best = NULL;
	ListCell   *lc;

	if (pathkeys_contained_in(pathkeys, native->pathkeys))
		return native;
	foreach(lc, rel->pathlist)
	{
		Path	   *path = lfirst(lc);
		Path	   *copy;

		if (path->param_info == NULL && pathkeys_contained_in(pathkeys, path->pathkeys) &&
			equal(path->pathtarget->exprs, native->pathtarget->exprs) &&
			!gj_contains_gpujoin(path) && (copy = gj_copy_path(path)) != NULL)
			best = cheaper(best, copy);
	}
	best = cheaper(best, (Path *) create_sort_path(root, rel, native, pathkeys, -1.0));
	if (rel->consider_parallel && rel->partial_pathlist != NIL)
	{
		Path	   *partial = gj_copy_path(linitial(rel->partial_pathlist));
		double		rows;

		if (partial != NULL && !gj_contains_gpujoin(partial) &&
			equal(partial->pathtarget->exprs, native->pathtarget->exprs))
		{
			rows = partial->rows * partial->parallel_workers;
			partial = (Path *) create_sort_path(root, rel, partial, pathkeys, -1.0);
			best = cheaper(best, (Path *) create_gather_merge_path(root, rel, partial,
																   partial->pathtarget, pathkeys,
																   NULL, &rows));
		}
	}
	return best;
}

/* True if what is sorted may be kept on the host as far as the device has no room for it. */
static bool
has_room(const GjJoinInfo *info)
{
	double		room = gj_spill_memory * 1024.0 * 1024.0 + temp_file_limit * 1024.0;

	return temp_file_limit < 0 || info->host_bytes <= room;
}

GjPath *
gj_sorted_path(PlannerInfo *root, RelOptInfo *rel, PathTarget *target, GjJoinInfo *info,
			   List *pathkeys)
{
	GjJoinInfo *sorted;
	GjPath	   *path;
	ListCell   *lc;

	if (pathkeys == NIL || (info->aggregate && info->ngroup_keys == 0))
		return NULL;
	sorted = palloc(sizeof(GjJoinInfo));
	*sorted = *info;
	sorted->builder = gj_builder_copy(info->builder);
	sorted->order_part = gj_part(root, "Order of", gj_returns_groups(info) ? root->all_baserels : rel->relids);
	gj_part_above(sorted->order_part, info->part);
	foreach(lc, pathkeys)
		if (!sort_by_pathkey(sorted, lfirst_node(PathKey, lc)))
			break;
	pathkeys = list_truncate(list_copy(pathkeys), list_length(sorted->sort_exprs));
	if (pathkeys == NIL)
	{
		gj_part_refused(sorted->order_part);
		return NULL;
	}
	gj_make_late(root, sorted);
	sorted->program = gj_builder_finish(sorted->builder, info->aggregate ? GJ_OUTPUT_GROUPS :
										GJ_OUTPUT_ROWS);
	if (sorted->program == NULL)
		return NULL;
	sorted->fallback = gj_sorted_native(root, rel, info->fallback, pathkeys);
	path = gj_create_path(root, rel, target, sorted);
	path->cpath.path.pathkeys = pathkeys;
	return has_room(sorted) ? path : NULL;
}

void
gj_offer_sorted(PlannerInfo *root, RelOptInfo *rel, GjPath *path, GjPath *sorted, List *pathkeys)
{
	bool		all = sorted != NULL && pathkeys_contained_in(pathkeys, sorted->cpath.path.pathkeys);
	GjPath	   *host_sorted = all ? NULL : gj_host_sorted_path(root, path, pathkeys);

	if (gj_force && all)
	{
		gj_offer_path(rel, (Path *) sorted);
		return;
	}
	/* not where groups are made of the rows: without an order they may cost less */
	if (gj_force && host_sorted != NULL && root->sort_pathkeys != NIL &&
		pathkeys_contained_in(root->sort_pathkeys, pathkeys))
	{
		gj_offer_path(rel, (Path *) host_sorted);
		return;
	}
	gj_offer_path(rel, (Path *) path);
	if (sorted != NULL)
		add_path(rel, (Path *) sorted);
	if (host_sorted != NULL)
		add_path(rel, (Path *) host_sorted);
}
