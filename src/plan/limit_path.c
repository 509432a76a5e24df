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

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "plan/join_path.h"

#define LIMITED_MAGIC		0x474a4c31

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
	if (info->aggregate)
		return info->ngroup_keys > 0 && !(grouped && parse->distinctClause != NIL);
	return !grouped && parse->distinctClause == NIL && parse->havingQual == NULL;
}

/*
 * True if the order is one that the device knows: that of the type's own < or >, where
 * registers have it.
 */
static bool
known_order(Expr *expr, SortGroupClause *clause, bool *descending)
{
	Oid			typid = getBaseType(exprType((Node *) expr));
	Oid			opfamily,
				opcintype;
	int16		strategy;

	switch (typid)
	{
		case BOOLOID:
		case CHAROID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			break;
		default:
			return false;
	}
	if (!get_ordering_op_properties(clause->sortop, &opfamily, &opcintype, &strategy) ||
		opfamily != lookup_type_cache(typid, TYPECACHE_BTREE_OPFAMILY)->btree_opf)
		return false;
	*descending = strategy == BTGreaterStrategyNumber;
	return true;
}

static void
add_sort_key(GjJoinInfo *info, GjSortOf of, uint32 index, bool descending)
{
	GjSortKey  *key = palloc(sizeof(GjSortKey));

	key->of = of;
	key->index = index;
	key->descending = descending;
	info->builder->sort_keys = lappend(info->builder->sort_keys, key);
}

/* Room for n more keys? */
static bool
has_room(GjJoinInfo *info, int n)
{
	return list_length(info->builder->sort_keys) + n <= GJ_MAX_KEYS;
}

/* Keys of an expression over joined rows: whether it is NULL, then its value. */
static bool
sort_rows_by(GjJoinInfo *info, Expr *expr, bool descending, bool nulls_first)
{
	GjBuilder  *builder = info->builder;
	NullTest   *test = makeNode(NullTest);
	GjBuilderMark mark;
	int			is_null,
				value;

	test->arg = expr;
	test->nulltesttype = IS_NULL;
	test->location = -1;
	gj_builder_mark(builder, &mark);
	if (!has_room(info, 2) || (value = gj_compile(builder, expr)) < 0)
		return false;
	is_null = gj_compile(builder, (Expr *) test);
	if (is_null < 0 || builder->exprs[value].kind == GJ_TEXT)
	{
		gj_builder_reset(builder, &mark);
		return false;
	}
	add_sort_key(info, GJ_SORT_EXPR, is_null, nulls_first);
	add_sort_key(info, GJ_SORT_EXPR, value, descending);
	return true;
}

/* Keys of an aggregate, the states of which start with number `state`. */
static bool
sort_by_aggregate(GjJoinInfo *info, GjAggFinal final, uint32 state, bool descending,
				  bool nulls_first)
{
	GjSortOf	of;

	switch (final)
	{
		case GJ_FINAL_COUNT:
			if (!has_room(info, 1))
				return false;
			add_sort_key(info, GJ_SORT_COUNT, state, descending);
			return true;
		case GJ_FINAL_COUNT_SUM:
		case GJ_FINAL_SUM_INT8:
		case GJ_FINAL_SUM_NUMERIC:
		case GJ_FINAL_SUM_MIXED:
		case GJ_FINAL_SUM_DECIMAL:
			if (!has_room(info, 3))
				return false;
			if (final != GJ_FINAL_COUNT_SUM)
				add_sort_key(info, GJ_SORT_NONE, state, nulls_first);
			add_sort_key(info, GJ_SORT_SUM_HIGH, state, descending);
			add_sort_key(info, GJ_SORT_SUM_LOW, state, descending);
			return true;
		case GJ_FINAL_MINMAX_INT:
		case GJ_FINAL_MINMAX_DECIMAL:
			of = GJ_SORT_INTEGER;
			break;
		case GJ_FINAL_SUM_FLOAT8:
		case GJ_FINAL_MINMAX_FLOAT8:
		case GJ_FINAL_MINMAX_FLOAT4:
			of = GJ_SORT_FLOAT;
			break;
		case GJ_FINAL_SUM_FLOAT4:
			of = GJ_SORT_FLOAT4;
			break;
		case GJ_FINAL_AVG_FLOAT8:
			of = GJ_SORT_FLOAT_AVG;
			break;
		case GJ_FINAL_AVG_NUMERIC:
		case GJ_FINAL_AVG_DECIMAL:
		case GJ_FINAL_AVG_MIXED:
			/* not exactly known: no key can follow */
			info->builder->ties = true;
			of = GJ_SORT_AVG;
			break;
		default:
			return false;		/* variances */
	}
	if (!has_room(info, 2))
		return false;
	add_sort_key(info, GJ_SORT_NONE, state, nulls_first);
	add_sort_key(info, of, state, descending);
	return true;
}

/* Keys of what groups are sorted by: a group key, or an aggregate. */
static bool
sort_groups_by(GjJoinInfo *info, Expr *expr, bool descending, bool nulls_first)
{
	uint32		state = 0;
	ListCell   *lc;

	foreach(lc, info->outputs)
	{
		int			i = foreach_current_index(lc);
		bool		found = equal(lfirst(lc), expr);

		if (i < info->ngroup_keys)
		{
			GjGroupKey *key = list_nth(info->builder->group_keys, i);

			if (!found)
				continue;
			if (key->how > GJ_GROUP_FLOAT || !has_room(info, 2))
				return false;
			add_sort_key(info, GJ_SORT_KEY_NULL, i, nulls_first);
			add_sort_key(info, GJ_SORT_KEY, i, descending);
			return true;
		}
		else
		{
			GjAggFinal	final = gj_final_kind(list_nth_int(info->agg_finals,
														   i - info->ngroup_keys));

			if (found)
				return sort_by_aggregate(info, final, state, descending, nulls_first);
			state += gj_final_states(final);
		}
	}
	return false;
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
			add_sort_key(info, GJ_SORT_CHECK_INT8, state, false);
		else if (final == GJ_FINAL_SUM_FLOAT8)
			add_sort_key(info, GJ_SORT_CHECK_FLOAT8, state, false);
		else if (final == GJ_FINAL_SUM_FLOAT4)
			add_sort_key(info, GJ_SORT_CHECK_FLOAT4, state, false);
		else if (final == GJ_FINAL_AVG_FLOAT8)
			add_sort_key(info, GJ_SORT_CHECK_AVG, state, false);
		else if (final >= GJ_FINAL_FLOAT_VAR_POP)
			add_sort_key(info, GJ_SORT_CHECK_SPREAD, state, false);
		else
			Assert(!gj_final_can_fail(final));
		state += gj_final_states(final);
	}
}

/* Adds the sort keys that the device knows, up to the first that it does not. */
static bool
add_sort_keys(PlannerInfo *root, GjJoinInfo *info)
{
	Query	   *parse = root->parse;
	ListCell   *lc;

	foreach(lc, parse->sortClause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Expr	   *expr = (Expr *) get_sortgroupclause_expr(clause, root->processed_tlist);
		bool		descending;

		if (!known_order(expr, clause, &descending) ||
			!(info->aggregate ? sort_groups_by(info, expr, descending, clause->nulls_first) :
			  sort_rows_by(info, expr, descending, clause->nulls_first)))
		{
			info->builder->ties = true;
			break;
		}
		info->sort_exprs = lappend(info->sort_exprs, expr);
		info->sort_labels = lappend(info->sort_labels,
									makeString(psprintf("%s%s", descending ? " DESC" : "",
														descending == clause->nulls_first ? "" :
														clause->nulls_first ? " NULLS FIRST" :
														" NULLS LAST")));
		if (((GjSortKey *) llast(info->builder->sort_keys))->of == GJ_SORT_AVG)
			break;
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
		(!info->aggregate && !bms_equal(rel->relids, gj_all_relids(root))))
		return;
	limited = palloc(sizeof(GjJoinInfo));
	*limited = *info;
	limited->builder = gj_builder_copy(info->builder);
	limited->builder->limit = limited->limit = limit;
	limited->builder->ties = parse->limitOption == LIMIT_OPTION_WITH_TIES;
	if (!add_sort_keys(root, limited))
		return;
	if (limited->aggregate)
		add_checks(limited);
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

void
gj_add_limited_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *output_rel)
{
	LimitedPath *remembered = root->join_search_private;
	PathTarget *sort_target = input_rel->cheapest_total_path->pathtarget;
	PathTarget *target = root->upper_targets[UPPERREL_ORDERED];
	Path	   *path;

	if (remembered == NULL || remembered->magic != LIMITED_MAGIC || remembered->rel != input_rel ||
		root->sort_pathkeys == NIL || contain_volatile_functions((Node *) sort_target->exprs))
		return;
	path = (Path *) remembered->path;
	if (!remembered->path->info->aggregate)
		path = (Path *) create_projection_path(root, input_rel, path, sort_target);
	path = (Path *) create_sort_path(root, output_rel, path, root->sort_pathkeys,
									 remembered->path->info->limit);
	if (path->pathtarget != target)
		path = apply_projection_to_path(root, output_rel, path, target);
	gj_offer_path(output_rel, path);
}
