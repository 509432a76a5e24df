/*
 * sort_keys.c
 *	  What the device sorts by: sort keys of an expression over joined rows, of a group key or
 *	  of an aggregate.
 *
 * Called for ORDER BY ... LIMIT (limit_path.c) and for paths that are sorted (sort_path.c).
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "plan/join_path.h"
#include "plan/make_expr.h"
#include "plan/reasons.h"

/*
 * True if the order is one that the device knows: that of the type's own < or >, where
 * registers have it.
 */
static bool
known_order(Expr *expr, Oid opfamily)
{
	Oid			typid = getBaseType(exprType((Node *) expr));

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
		case UUIDOID:
			return opfamily == lookup_type_cache(typid, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
		default:
			return false;
	}
}

void
gj_add_sort_key(GjJoinInfo *info, GjSortOf of, uint32 index, bool descending)
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

/*
 * Keys of an expression over joined rows, or over groups that are a stage: whether it is NULL, then
 * its value.
 */
static bool
sort_rows_by(GjJoinInfo *info, Expr *expr, bool descending, bool nulls_first)
{
	GjBuilder  *builder = info->builder;
	GjBuilderMark mark;
	bool		uuid = getBaseType(exprType((Node *) expr)) == UUIDOID;
	int			is_null;
	int			value;
	int			second = -1;

	if (info->kept_groups > 0 && (expr = gj_stage_value(builder, 0, expr)) == NULL)
		return false;
	gj_builder_mark(builder, &mark);
	if (!has_room(info, uuid ? 3 : 2))
		return false;
	value = uuid ? gj_compile_half(builder, expr, 0) : gj_compile(builder, expr);
	if (value < 0)
		return false;
	if (uuid)
		second = gj_compile_half(builder, expr, 1);
	is_null = gj_compile(builder, gj_make_null_test(expr, IS_NULL));
	if (is_null < 0 || builder->exprs[value].kind == GJ_TEXT || (uuid && second < 0))
	{
		gj_builder_reset(builder, &mark);
		return false;
	}
	gj_add_sort_key(info, GJ_SORT_EXPR, is_null, nulls_first);
	gj_add_sort_key(info, GJ_SORT_EXPR, value, descending);
	if (uuid)
		gj_add_sort_key(info, GJ_SORT_EXPR, second, descending);
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
			gj_add_sort_key(info, GJ_SORT_COUNT, state, descending);
			return true;
		case GJ_FINAL_COUNT_SUM:
		case GJ_FINAL_SUM_INT8:
		case GJ_FINAL_SUM_NUMERIC:
		case GJ_FINAL_SUM_MIXED:
		case GJ_FINAL_SUM_DECIMAL:
			if (!has_room(info, 3))
				return false;
			if (final != GJ_FINAL_COUNT_SUM)
				gj_add_sort_key(info, GJ_SORT_NONE, state, nulls_first);
			gj_add_sort_key(info, GJ_SORT_SUM_HIGH, state, descending);
			gj_add_sort_key(info, GJ_SORT_SUM_LOW, state, descending);
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
			of = GJ_SORT_AVG;
			break;
		default:
			return false;		/* variances */
	}
	if (!has_room(info, 2))
		return false;
	gj_add_sort_key(info, GJ_SORT_NONE, state, nulls_first);
	gj_add_sort_key(info, of, state, descending);
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
			bool		halves = gj_codes_are(list_nth(info->key_codes, i), GJ_CODES_FIRST_HALF);

			if (!found)
				continue;
			if (key->how > GJ_GROUP_FLOAT || !has_room(info, halves ? 3 : 2))
				return false;
			gj_add_sort_key(info, GJ_SORT_KEY_NULL, i, nulls_first);
			gj_add_sort_key(info, GJ_SORT_KEY, i, descending);
			if (halves)
				gj_add_sort_key(info, GJ_SORT_KEY, i + 1, descending);
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

String *
gj_sort_label(bool descending, bool nulls_first)
{
	return makeString(psprintf("%s%s", descending ? " DESC" : "",
							   descending == nulls_first ? "" :
							   nulls_first ? " NULLS FIRST" : " NULLS LAST"));
}

bool
gj_sort_by(GjJoinInfo *info, Expr *expr, Oid opfamily, int strategy, bool nulls_first)
{
	bool		descending = strategy == BTGreaterStrategyNumber;

	if (!known_order(expr, opfamily) ||
		!(info->aggregate ? sort_groups_by(info, expr, descending, nulls_first) :
		  sort_rows_by(info, expr, descending, nulls_first)))
		return gj_refuse("no device sorts by %s, of type %s",
						 gj_expr_text(info->builder->root, (Node *) expr),
						 gj_type_name(exprType((Node *) expr)));
	info->sort_exprs = lappend(info->sort_exprs, expr);
	info->sort_labels = lappend(info->sort_labels, gj_sort_label(descending, nulls_first));
	return true;
}
