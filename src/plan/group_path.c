/*
 * group_path.c
 *	  What a query groups by, or wants distinct rows of, as group keys of a program.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
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

/* True if values of a text expression are sure to have at most 8 bytes: a few characters of others. */
static bool
is_word(const Expr *expr)
{
	const FuncExpr *func = (const FuncExpr *) expr;
	const Const *count;

	if (!IsA(expr, FuncExpr) ||
		(func->funcid != F_SUBSTRING_TEXT_INT4_INT4 && func->funcid != F_SUBSTR_TEXT_INT4_INT4 &&
		 func->funcid != F_LEFT))
		return false;
	count = llast(func->args);
	return IsA(count, Const) && !count->constisnull && DatumGetInt32(count->constvalue) >= 0 &&
		DatumGetInt32(count->constvalue) <=
		(int) sizeof(int64) / pg_database_encoding_max_length();
}

/* Adds a key, and the output that it is; codes: see GjJoinInfo.key_codes. */
static void
add_key(GjJoinInfo *info, Expr *expr, int how, int index, List *codes)
{
	GjGroupKey *key = palloc(sizeof(GjGroupKey));

	key->how = how;
	key->index = index;
	info->builder->group_keys = lappend(info->builder->group_keys, key);
	info->outputs = lappend(info->outputs, expr);
	info->key_codes = lappend(info->key_codes, codes);
	info->ngroup_keys++;
}

/* Adds the halves of a uuid. */
static bool
add_halves(GjJoinInfo *info, Expr *expr)
{
	static const int bytes[] = {GJ_CODES_FIRST_HALF, GJ_CODES_SECOND_HALF};

	for (int half = 0; half < lengthof(bytes); half++)
	{
		int			e = gj_compile_half(info->builder, expr, half);

		if (e < 0)
			return gj_refuse_because("GROUP BY %s",
									 gj_expr_text(info->builder->root, (Node *) expr));
		add_key(info, expr, GJ_GROUP_INTEGER, e, list_make1(makeInteger(bytes[half])));
	}
	return true;
}

bool
gj_add_group_key(GjJoinInfo *info, Expr *expr)
{
	int			how = group_how(exprType((Node *) expr), exprTypmod((Node *) expr),
								exprCollation((Node *) expr));
	bool		uuid = getBaseType(exprType((Node *) expr)) == UUIDOID;
	Expr	   *value = expr;
	Expr	   *column = expr;
	List	   *codes = NIL;
	bool		words;
	int			source,
				index;

	if (how < 0 && !uuid)
		return gj_refuse("GROUP BY %s, of type %s, is not supported",
						 gj_expr_text(info->builder->root, (Node *) expr),
						 gj_type_name(exprType((Node *) expr)));
	if (info->ngroup_keys + (uuid ? 2 : 1) > GJ_MAX_GROUP_KEYS)
		return gj_refuse("more than %d keys to group by", GJ_MAX_GROUP_KEYS);
	if (uuid)
		return add_halves(info, expr);
	if (gj_is_stage_column(info->builder, expr))
		value = gj_stage_expr(info->builder, (Var *) expr);
	if (how == GJ_GROUP_TEXT && value != NULL && IsA(value, CaseExpr) &&
		(value = as_codes(value, &codes)) != NULL)
		how = GJ_GROUP_INTEGER;
	else
		value = expr;
	words = how == GJ_GROUP_TEXT && is_word(value);
	if (words)
	{
		how = GJ_GROUP_INTEGER;
		codes = list_make1(makeInteger(GJ_CODES_WORD));
	}
	if (how <= GJ_GROUP_FLOAT)
	{
		GjNumericInfo numeric = {0};

		index = words ? gj_compile_word(info->builder, value) :
			gj_compile_filtered(info->builder, value, NULL, &numeric);
		if (index < 0)
			return gj_refuse_because("GROUP BY %s",
									 gj_expr_text(info->builder->root, (Node *) expr));
		if (numeric.mixed)
			return gj_refuse("GROUP BY %s: numerics of several scales",
							 gj_expr_text(info->builder->root, (Node *) expr));
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
		index = source << 16 | index;
	}
	add_key(info, expr, how, index, codes);
	return true;
}

/* ---- keys that others determine */

/* The columns of a relation's primary key, if all of them are among the expressions; else NIL. */
static List *
grouped_primary_key(PlannerInfo *root, List *exprs, Index relid)
{
	RangeTblEntry *rte = planner_rt_fetch(relid, root);
	List	   *columns = NIL;
	Oid			constraint;
	Bitmapset  *attnos;
	ListCell   *lc;

	/* that of a parent says nothing of its children's rows */
	if (rte->rtekind != RTE_RELATION || (rte->inh && rte->relkind != RELKIND_PARTITIONED_TABLE))
		return NIL;
	attnos = get_primary_key_attnos(rte->relid, false, &constraint);
	foreach(lc, exprs)
	{
		const Var  *var = lfirst(lc);

		if (IsA(var, Var) && var->varno == relid &&
			bms_is_member(var->varattno - FirstLowInvalidHeapAttributeNumber, attnos))
			columns = list_append_unique(columns, lfirst(lc));
	}
	/* that of a partitioned table is not valid until all partitions have it */
	return attnos != NULL && list_length(columns) == bms_num_members(attnos) &&
		get_index_isvalid(get_constraint_index(constraint)) ? columns : NIL;
}

/*
 * True if a row of `known` has found at most one row of the relation: inner joins compare all columns
 * of a unique index with expressions over `known`.
 */
static bool
has_one_row(const GjBuilder *builder, Index relid, Relids known)
{
	PlannerInfo *root = builder->root;
	List	   *columns = NIL;
	List	   *operators = NIL;
	ListCell   *lc;

	for (int i = 0; i < builder->nsteps; i++)
	{
		const GjBuildStep *step = &builder->step[i];

		if (step->join_type != GJ_JOIN_INNER || step->algorithm == GJ_JOIN_SET)
			continue;
		foreach(lc, step->key_clauses)
		{
			const OpExpr *op = lfirst_node(OpExpr, lc);

			for (int side = 0; side < 2; side++)
			{
				Var		   *column = list_nth(op->args, side);
				Relids		others = pull_varnos(root, list_nth(op->args, 1 - side));

				/* where an outer join has made the others NULL, this one is as well */
				if (!IsA(column, Var) || column->varno != relid || bms_is_empty(others) ||
					!bms_is_subset(others, known) ||
					contain_nonstrict_functions(list_nth(op->args, 1 - side)))
					continue;
				columns = lappend(columns, column);
				operators = lappend_oid(operators, op->opno);
			}
		}
	}
	return columns != NIL &&
		relation_has_unique_index_for(root, find_base_rel(root, relid), NIL, columns, operators);
}

/*
 * The relations of which all rows of a group have the same row, or none; *keys: the columns that make
 * it so, of primary keys among the expressions.
 */
static Relids
determined_relations(const GjBuilder *builder, List *exprs, List **keys)
{
	PlannerInfo *root = builder->root;
	Relids		known = NULL;
	bool		more;

	*keys = NIL;
	for (int relid = -1; (relid = bms_next_member(root->all_baserels, relid)) >= 0;)
	{
		List	   *key = grouped_primary_key(root, exprs, relid);

		if (key != NIL)
			known = bms_add_member(known, relid);
		*keys = list_concat(*keys, key);
	}
	do
	{
		more = false;
		for (int relid = -1; (relid = bms_next_member(root->all_baserels, relid)) >= 0;)
			if (known != NULL && !bms_is_member(relid, known) && has_one_row(builder, relid, known))
			{
				known = bms_add_member(known, relid);
				more = true;
			}
	} while (more);
	return known;
}

/* The clauses of GROUP BY that PostgreSQL compares.  Before 16 the query has no others. */
static List *
compared_by_postgres(PlannerInfo *root)
{
#if PG_VERSION_NUM >= 160000
	if (root->processed_groupClause != NIL)
		return root->processed_groupClause;
#endif
	return root->parse->groupClause;
}

/* Those of the clauses that are to be compared: the others are columns that these determine. */
static List *
compared_clauses(PlannerInfo *root, const GjBuilder *builder, List *clauses)
{
	List	   *exprs = get_sortgrouplist_exprs(clauses, root->processed_tlist);
	List	   *result = NIL;
	List	   *keys;
	Relids		known;
	ListCell   *clause;
	ListCell   *expr;

	if (list_length(clauses) < 2)
		return clauses;
	known = determined_relations(builder, exprs, &keys);
	forboth(clause, clauses, expr, exprs)
	{
		Var		   *var = lfirst(expr);

		if (!IsA(var, Var) || !bms_is_member(var->varno, known) || list_member(keys, var))
			result = lappend(result, lfirst(clause));
	}
	return result;
}

/* Adds a key for each clause that has none yet. */
static bool
add_clauses(PlannerInfo *root, GjJoinInfo *info, List *clauses)
{
	ListCell   *lc;

	foreach(lc, clauses)
	{
		Node	   *expr = get_sortgroupclause_expr(lfirst(lc), root->processed_tlist);

		if (!list_member(info->outputs, expr) && !gj_add_group_key(info, (Expr *) expr))
			return false;
	}
	return true;
}

bool
gj_add_group_keys(PlannerInfo *root, GjJoinInfo *info)
{
	Query	   *parse = root->parse;
	bool		distinct = parse->groupClause == NIL && !parse->hasAggs;
	List	   *clauses = distinct ? parse->distinctClause : compared_by_postgres(root);
	int			ncompared;

	if (!add_clauses(root, info, compared_clauses(root, info->builder, clauses)))
		return false;
	ncompared = info->ngroup_keys;
	if (!add_clauses(root, info, distinct ? clauses : parse->groupClause))
		return false;
	info->builder->ndependent_keys = info->ngroup_keys - ncompared;
	return true;
}
