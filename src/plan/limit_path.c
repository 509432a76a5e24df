/*
 * limit_path.c
 *	  ORDER BY ... LIMIT: only the first rows come back from the device.
 *
 * The device knows the sort keys, or the first of them, and returns the rows wanted in any
 * order; PostgreSQL's Sort and Limit above have a few rows to sort.  Where the device knows only
 * the first keys, it returns what equals the last row in these, too.
 *
 * Such a path is good for nothing but this sort.  It is made together with the one that
 * returns everything, when the join or the aggregate is planned, and remembered until the
 * sort is: the one that returns everything may be far too expensive to stay among the paths.
 */
#include "postgres.h"

#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "plan/join_path.h"
#include "plan/reasons.h"

#define LIMITED_MAGIC		0x474a4c31

/* What a limit may cost, in times of what is to be paid without; clear of add_path's fuzz. */
#define LIMIT_WORTH			1.02

/* What is remembered, in PlannerInfo.join_search_private. */
typedef struct LimitedPath
{
	uint32		magic;
	RelOptInfo *rel;
	GjPath	   *path;
} LimitedPath;

/* The value of LIMIT or OFFSET, `otherwise` if there is none; -1: not known now. */
static int64
limit_value(Node *node, int64 otherwise)
{
	Const	   *value = (Const *) node;

	if (node == NULL)
		return otherwise;
	if (!IsA(node, Const))
		return -1;
	if (value->constisnull)
		return otherwise;
	return DatumGetInt64(value->constvalue);
}

/* Rows that the sort has to deliver, 0 if that is not known or too many. */
static uint32
rows_wanted(Query *parse)
{
	int64		count = limit_value(parse->limitCount, -1);
	int64		offset = limit_value(parse->limitOffset, 0);

	if (parse->sortClause == NIL || parse->hasWindowFuncs || parse->hasTargetSRFs ||
		parse->hasDistinctOn || parse->groupingSets != NIL || parse->setOperations != NULL ||
		count <= 0 || offset < 0 || count > GJ_MAX_LIMIT || offset > GJ_MAX_LIMIT - count)
		return 0;
	return (uint32) (count + offset);
}

/* True if the paths of this kind are what is sorted, and not the input of something else. */
static bool
is_sorted_next(Query *parse, GjJoinInfo *info)
{
	bool		grouped = parse->groupClause != NIL || parse->hasAggs;

	/* conditions that PostgreSQL checks on what comes back would leave fewer rows */
	if (info->host_quals != NIL)
		return false;
	if (gj_returns_groups(info))
		return (info->kept_groups > 0 || info->ngroup_keys > 0) &&
			!(grouped && parse->distinctClause != NIL);
	return !grouped && parse->distinctClause == NIL && parse->havingQual == NULL;
}

/*
 * Groups that are not returned can have values that are errors in PostgreSQL: the device
 * looks for them.
 */
static void
add_checks(GjJoinInfo *info)
{
	uint32		state = 0;
	ListCell   *lc;

	foreach(lc, info->agg_finals)
	{
		GjAggFinal	final = gj_final_kind(lfirst_int(lc));

		if (final == GJ_FINAL_SUM_INT8)
			gj_add_sort_key(info, GJ_SORT_CHECK_INT8, state, false);
		else if (final == GJ_FINAL_SUM_FLOAT8)
			gj_add_sort_key(info, GJ_SORT_CHECK_FLOAT8, state, false);
		else if (final == GJ_FINAL_SUM_FLOAT4)
			gj_add_sort_key(info, GJ_SORT_CHECK_FLOAT4, state, false);
		else if (final == GJ_FINAL_AVG_FLOAT8)
			gj_add_sort_key(info, GJ_SORT_CHECK_AVG, state, false);
		else if (final >= GJ_FINAL_FLOAT_VAR_POP)
			gj_add_sort_key(info, GJ_SORT_CHECK_SPREAD, state, false);
		else
			Assert(!gj_final_can_fail(final));
		state += gj_final_states(final);
	}
}

/* Adds the sort keys that the device knows, up to the first that it does not. */
static bool
add_sort_keys(PlannerInfo *root, GjJoinInfo *info)
{
	ListCell   *lc;

	foreach(lc, root->parse->sortClause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Expr	   *expr = (Expr *) get_sortgroupclause_expr(clause, root->processed_tlist);
		Oid			opfamily,
					opcintype;
		int16		strategy;

		if (!gj_ordering_properties(clause->sortop, &opfamily, &opcintype, &strategy) ||
			!gj_sort_by(info, expr, opfamily, strategy, clause->nulls_first))
		{
			info->builder->ties = true;
			break;
		}
		if (((GjSortKey *) llast(info->builder->sort_keys))->of == GJ_SORT_AVG)
		{
			info->builder->ties = true;
			break;
		}
	}
	return info->sort_exprs != NIL;
}

void
gj_remember_limited(PlannerInfo *root, RelOptInfo *rel, PathTarget *target, GjJoinInfo *info)
{
	Query	   *parse = root->parse;
	uint32		limit = rows_wanted(parse);
	GjJoinInfo *limited;
	LimitedPath *remembered = root->join_search_private;

	/* what another extension keeps there is its own */
	if (remembered != NULL && remembered->magic != LIMITED_MAGIC)
		return;
	if (limit == 0 || !is_sorted_next(parse, info) ||
		(!gj_returns_groups(info) && !bms_equal(rel->relids, gj_all_relids(root))))
		return;
	limited = palloc(sizeof(GjJoinInfo));
	*limited = *info;
	limited->builder = gj_builder_copy(info->builder);
	limited->builder->limit = limited->limit = limit;
	limited->builder->ties = parse->limitOption == LIMIT_OPTION_WITH_TIES;
	limited->order_part = gj_part(root, "Order of", gj_returns_groups(info) ? root->all_baserels : rel->relids);
	gj_part_above(limited->order_part, info->part);
	if (!add_sort_keys(root, limited))
		return;
	if (limited->aggregate)
		add_checks(limited);
	gj_make_late(root, limited);
	limited->program = gj_builder_finish(limited->builder, info->aggregate ? GJ_OUTPUT_GROUPS :
										 GJ_OUTPUT_ROWS);
	if (limited->program == NULL)
		return;
	remembered = palloc(sizeof(LimitedPath));
	remembered->magic = LIMITED_MAGIC;
	remembered->rel = rel;
	remembered->path = gj_create_path(root, rel, target, limited);
	root->join_search_private = remembered;
}

/*
 * A limit costs next to nothing where PostgreSQL expects few rows, and spares much if there are many:
 * then the path with the limit is made the cheaper one.
 */
static void
prefer_limit(const RelOptInfo *rel, Path *limited)
{
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		const Path *path = lfirst(lc);

		if (gj_contains_gpujoin(path) && limited->total_cost < path->total_cost * LIMIT_WORTH)
		{
			limited->total_cost = Min(limited->total_cost, path->total_cost / LIMIT_WORTH);
			limited->startup_cost = Min(limited->startup_cost, limited->total_cost);
		}
	}
}

void
gj_add_limited_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *output_rel)
{
	LimitedPath *remembered = root->join_search_private;
	/* not that of a path, which may have got the final one: costly columns are computed after a sort */
	PathTarget *sort_target = root->parse->hasTargetSRFs || root->upper_targets[UPPERREL_WINDOW] == NULL ?
		input_rel->cheapest_total_path->pathtarget : root->upper_targets[UPPERREL_WINDOW];
	PathTarget *target = root->upper_targets[UPPERREL_ORDERED];
	Path	   *path;

	if (remembered == NULL || remembered->magic != LIMITED_MAGIC || remembered->rel != input_rel ||
		root->sort_pathkeys == NIL || contain_volatile_functions((Node *) sort_target->exprs))
		return;
	path = (Path *) remembered->path;
	if (!gj_returns_groups(remembered->path->info))
		path = (Path *) create_projection_path(root, input_rel, path, sort_target);
	path = (Path *) create_sort_path(root, output_rel, path, root->sort_pathkeys,
									 remembered->path->info->limit);
	if (path->pathtarget != target)
		path = apply_projection_to_path(root, output_rel, path, target);
	prefer_limit(output_rel, path);
	gj_offer_path(output_rel, path);
}
