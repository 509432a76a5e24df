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

/*
 * How values of a type are grouped (GjGroupHow), or -1: the device cannot.  Only types
 * whose default equality is what GjGroupHow says; numeric is not one (1.0 = 1.00).
 */
static int
group_how(Oid typid, Oid collation)
{
	Oid			base = getBaseType(typid);

	switch (base)
	{
		case BOOLOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return GJ_GROUP_INTEGER;
		case FLOAT8OID:
			return GJ_GROUP_FLOAT;
		case CHAROID:
		case CASHOID:
		case TIMEOID:
			return GJ_GROUP_FIXED;
		case BYTEAOID:
			return GJ_GROUP_TEXT;
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			if (!OidIsValid(collation) || !get_collation_isdeterministic(collation))
				return -1;
			return base == BPCHAROID ? GJ_GROUP_PADDED : GJ_GROUP_TEXT;
		default:
			return type_is_enum(base) ? GJ_GROUP_FIXED : -1;
	}
}

bool
gj_add_group_key(GjJoinInfo *info, Expr *expr)
{
	int			how = group_how(exprType((Node *) expr), exprCollation((Node *) expr));
	GjGroupKey *key = palloc(sizeof(GjGroupKey));
	Expr	   *column = expr;
	int			e,
				source,
				index;

	if (how < 0 || info->ngroup_keys == GJ_MAX_GROUP_KEYS)
		return false;
	key->how = how;
	if (how <= GJ_GROUP_FLOAT)
	{
		e = gj_compile(info->builder, expr);
		if (e < 0)
			return false;
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
			return false;
		kind = gj_builder_column_at(info->builder, source, index)->type.kind;
		if (kind != (gj_group_by_reference(how) ? GJ_REF : GJ_BYTES))
			return false;
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
