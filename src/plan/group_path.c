/*
 * group_path.c
 *	  What a query groups by, or wants distinct rows of, as group keys of a program.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/datum.h"
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

/* The number of a text among those that codes stand for, which gets it if need be. */
static int
code_of(List **codes, const Const *text)
{
	ListCell   *lc;

	foreach(lc, *codes)
	{
		const Const *other = lfirst_node(Const, lc);

		if (datumIsEqual(other->constvalue, text->constvalue, false, -1))
			return foreach_current_index(lc);
	}
	*codes = lappend(*codes, (void *) text);
	return list_length(*codes) - 1;
}

/*
 * A CASE that chooses between texts that are constants, as one that chooses between integers, which
 * stand for them; NULL if it is none.  The texts are added to *codes.
 */
static Expr *
as_codes(Expr *expr, List **codes)
{
	CaseExpr   *copy;
	ListCell   *lc;

	if (expr == NULL || (IsA(expr, Const) && ((Const *) expr)->constisnull))
		return (Expr *) makeNullConst(INT4OID, -1, InvalidOid);
	if (IsA(expr, Const))
		return (Expr *) makeConst(INT4OID, -1, InvalidOid, sizeof(int32),
								  Int32GetDatum(code_of(codes, (Const *) expr)), false, true);
	if (!IsA(expr, CaseExpr))
		return NULL;
	copy = copyObject((CaseExpr *) expr);
	copy->casetype = INT4OID;
	copy->casecollid = InvalidOid;
	foreach(lc, copy->args)
	{
		CaseWhen   *when = lfirst_node(CaseWhen, lc);

		when->result = as_codes(when->result, codes);
		if (when->result == NULL)
			return NULL;
	}
	copy->defresult = as_codes(copy->defresult, codes);
	return copy->defresult != NULL ? (Expr *) copy : NULL;
}

bool
gj_add_group_key(GjJoinInfo *info, Expr *expr)
{
	int			how = group_how(exprType((Node *) expr), exprTypmod((Node *) expr),
								exprCollation((Node *) expr));
	GjGroupKey *key = palloc(sizeof(GjGroupKey));
	Expr	   *value = expr;
	Expr	   *column = expr;
	List	   *codes = NIL;
	int			e,
				source,
				index;

	if (how < 0)
		return gj_refuse("GROUP BY %s, of type %s, is not supported",
						 gj_expr_text(info->builder->root, (Node *) expr),
						 gj_type_name(exprType((Node *) expr)));
	if (info->ngroup_keys == GJ_MAX_GROUP_KEYS)
		return gj_refuse("more than %d keys to group by", GJ_MAX_GROUP_KEYS);
	if (gj_is_stage_column(info->builder, expr))
		value = gj_stage_expr(info->builder, (Var *) expr);
	if (how == GJ_GROUP_TEXT && value != NULL && IsA(value, CaseExpr) &&
		(value = as_codes(value, &codes)) != NULL)
		how = GJ_GROUP_INTEGER;
	else
		value = expr;
	key->how = how;
	if (how <= GJ_GROUP_FLOAT)
	{
		GjNumericInfo numeric;

		e = gj_compile_filtered(info->builder, value, NULL, &numeric);
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
	info->key_codes = lappend(info->key_codes, codes);
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
