/*
 * group_path.c
 *	  What a query groups by, or wants distinct rows of, as group keys of a program.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"

#include "plan/join_path.h"
#include "plan/reasons.h"

/* How values of a type are grouped (GjGroupHow), or -1: the device cannot (types.c). */
static int
group_how(Oid typid, int32 typmod, Oid collation)
{
	const GjType *type = gj_type(typid);

	/* those that the device computes with have one scale */
	if (type->reading == GJ_READ_DECIMAL)
		return GJ_GROUP_INTEGER;
	switch (gj_type_equality(typid, typmod, collation))
	{
		case GJ_EQUAL_VALUE:
			/* datums of "char" have a sign, registers do not */
			if (type->kind == GJ_UINT1)
				return GJ_GROUP_FIXED;
			return type->kind == GJ_FLOAT8 ? GJ_GROUP_FLOAT :
				type->kind == GJ_FLOAT4 ? -1 : GJ_GROUP_INTEGER;
		case GJ_EQUAL_BYTES:
			return type->kind == GJ_REF ? GJ_GROUP_TEXT : -1;
		case GJ_EQUAL_PADDED:
			return GJ_GROUP_PADDED;
		default:
			return getBaseType(typid) == CASHOID ? GJ_GROUP_FIXED : -1;
	}
}

bool
gj_add_group_key(GjJoinInfo *info, Expr *expr)
{
	int			how = group_how(exprType((Node *) expr), exprTypmod((Node *) expr),
								exprCollation((Node *) expr));
	GjGroupKey *key = palloc(sizeof(GjGroupKey));
	Expr	   *column = expr;
	int			e,
				source,
				index;

	if (how < 0)
		return gj_refuse("GROUP BY %s, of type %s, is not supported",
						 gj_expr_text(info->builder->root, (Node *) expr),
						 gj_type_name(exprType((Node *) expr)));
	if (info->ngroup_keys == GJ_MAX_GROUP_KEYS)
		return gj_refuse("more than %d keys to group by", GJ_MAX_GROUP_KEYS);
	key->how = how;
	if (how <= GJ_GROUP_FLOAT)
	{
		GjNumericInfo numeric;

		e = gj_compile_filtered(info->builder, expr, NULL, &numeric);
		if (e < 0)
			return gj_refuse_because("GROUP BY %s",
									 gj_expr_text(info->builder->root, (Node *) expr));
		if (numeric.mixed)
			return gj_refuse("GROUP BY %s: numerics of several scales",
							 gj_expr_text(info->builder->root, (Node *) expr));
		key->index = e;
	}
	else
	{
		GjKind		kind;

		/* varchar as text: the same bytes */
		while (IsA(column, RelabelType))
			column = ((RelabelType *) column)->arg;
		if ((!IsA(column, Var) && !IsA(column, PlaceHolderVar)) ||
			!gj_builder_column(info->builder, column, &source, &index))
			return gj_refuse("GROUP BY %s is supported for columns only",
							 gj_expr_text(info->builder->root, (Node *) expr));
		kind = gj_builder_column_at(info->builder, source, index)->type.kind;
		if (gj_group_by_reference(how) ? kind != GJ_REF : (kind != GJ_BYTES && kind != GJ_UINT1))
			return gj_refuse("GROUP BY %s, of type %s, is not supported",
							 gj_expr_text(info->builder->root, (Node *) expr),
							 gj_type_name(exprType((Node *) expr)));
		key->index = source << 16 | index;
	}
	info->builder->group_keys = lappend(info->builder->group_keys, key);
	info->outputs = lappend(info->outputs, expr);
	info->ngroup_keys++;
	return true;
}

bool
gj_add_group_keys(PlannerInfo *root, GjJoinInfo *info)
{
	Query	   *parse = root->parse;
	List	   *clauses = parse->groupClause;
	ListCell   *lc;

	if (clauses == NIL && !parse->hasAggs)
		clauses = parse->distinctClause;
	foreach(lc, clauses)
	{
		Node	   *expr = get_sortgroupclause_expr(lfirst(lc), root->processed_tlist);

		if (!list_member(info->outputs, expr) && !gj_add_group_key(info, (Expr *) expr))
			return false;
	}
	return true;
}
