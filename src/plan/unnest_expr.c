/*
 * unnest_expr.c
 *	  Subqueries in expressions: those that are joined, ANY and ALL as comparisons with one value.
 *
 * Where NULL does what false does, as in WHERE, in CASE WHEN and in FILTER,
 *
 *	x IN (SELECT y FROM t WHERE c)	is EXISTS (SELECT FROM t WHERE c AND y = x).
 *	x > ANY (SELECT y FROM t)		is x > (SELECT min(y) FROM t).
 *	x > ALL (SELECT y FROM t)		is NOT EXISTS (SELECT FROM t) OR x > (SELECT max(y) FROM t), with
 *									NULL in place of max(y) where some y is NULL.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parse_func.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "plan/make_expr.h"
#include "plan/unnest_join.h"

/* ---- IN */

bool
gj_is_column_of_sublink(Node *node)
{
	if (IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return IsA(node, Param) && ((Param *) node)->paramkind == PARAM_SUBLINK;
}

/* The subquery's value in a comparison, as an expression of the subquery. */
static Node *
column_of_sublink(const Query *sub, Node *node)
{
	RelabelType *relabel;

	if (!IsA(node, RelabelType))
		return copyObject((Node *) list_nth_node(TargetEntry, sub->targetList,
												 ((Param *) node)->paramid - 1)->expr);
	relabel = copyObject((RelabelType *) node);
	relabel->arg = (Expr *) column_of_sublink(sub, (Node *) relabel->arg);
	return (Node *) relabel;
}

Expr *
gj_compare_in_sublink(const OpExpr *test, const Query *sub)
{
	OpExpr	   *result = copyObject((OpExpr *) test);

	IncrementVarSublevelsUp(linitial(result->args), 1, 0);
	lsecond(result->args) = column_of_sublink(sub, lsecond(test->args));
	return (Expr *) result;
}

/* x IN (SELECT ...) as EXISTS; NULL: it is of another form, or NULLs would be seen. */
static SubLink *
in_as_exists(const GjUnnest *cxt, const SubLink *sublink, bool is_null_false)
{
	Query	   *sub = (Query *) sublink->subselect;
	List	   *tests = make_ands_implicit((Expr *) sublink->testexpr);
	ListCell   *lc;

	if (!gj_is_plain_query(sub) || sub->hasAggs)
		return NULL;
	sub = copyObject(sub);
	foreach(lc, tests)
	{
		OpExpr	   *test = lfirst(lc);
		Expr	   *equal;

		if (!IsA(test, OpExpr) || list_length(test->args) != 2 ||
			!gj_is_column_of_sublink(lsecond(test->args)))
			return NULL;
		equal = gj_compare_in_sublink(test, sub);
		if (!is_null_false && (!gj_is_never_null(cxt->query, linitial(test->args)) ||
							   !gj_is_never_null(sub, lsecond(((OpExpr *) equal)->args))))
			return NULL;
		sub->jointree->quals = gj_and_conditions(sub->jointree->quals, list_make1(equal));
		sub->hasSubLinks |= checkExprHasSubLink((Node *) test);
	}
	return gj_make_sublink(EXISTS_SUBLINK, sub);
}

/* ---- ANY and ALL of what is not correlated */

/*
 * The aggregate whose value decides whether x compares so with any, or all, of the values of a type:
 * their greatest or least one.  InvalidOid: there is none.
 */
static Oid
find_extreme(Oid opno, Oid type, bool all)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY);
	int			strategy;
	bool		greatest;
	Oid			aggregate;
	Form_pg_aggregate form;
	HeapTuple	tuple;
	bool		agrees;

	/* a later timestamp can be an earlier one with a time zone */
	if (!OidIsValid(entry->btree_opf) || op_volatile(opno) != PROVOLATILE_IMMUTABLE)
		return InvalidOid;
	strategy = get_op_opfamily_strategy(opno, entry->btree_opf);
	if (strategy == 0 || strategy == BTEqualStrategyNumber)
		return InvalidOid;
	greatest = all == (strategy == BTGreaterStrategyNumber || strategy == BTGreaterEqualStrategyNumber);
	aggregate = LookupFuncName(list_make2(makeString("pg_catalog"), makeString(greatest ? "max" : "min")),
							   1, &type, true);
	tuple = OidIsValid(aggregate) ? SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate)) : NULL;
	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	agrees = OidIsValid(form->aggsortop) && get_op_opfamily_strategy(form->aggsortop, entry->btree_opf) ==
		(greatest ? BTGreaterStrategyNumber : BTLessStrategyNumber);
	ReleaseSysCache(tuple);
	return agrees ? aggregate : InvalidOid;
}

/* (SELECT expr FROM the subquery), an aggregate of rows */
static Expr *
select_aggregate(const Query *sub, Expr *expr)
{
	Query	   *query = copyObject((Query *) sub);

	query->hasAggs = true;
	query->sortClause = NIL;
	query->targetList = list_make1(makeTargetEntry(expr, 1, pstrdup("value"), false));
	return (Expr *) gj_make_sublink(EXPR_SUBLINK, query);
}

/* The greatest or least value of a subquery's column; NULL also if one is, and that matters. */
static Expr *
select_extreme(const Query *sub, const Aggref *extreme, Node *y, bool null_matters)
{
	Expr	   *value = (Expr *) extreme;
	Expr	   *no_null;

	if (null_matters)
	{
		no_null = make_opclause(lookup_type_cache(INT8OID, TYPECACHE_EQ_OPR)->eq_opr, BOOLOID, false,
								(Expr *) gj_make_aggregate(F_COUNT_, INT8OID, NULL, InvalidOid),
								(Expr *) gj_make_aggregate(F_COUNT_ANY, INT8OID, y, InvalidOid),
								InvalidOid, InvalidOid);
		set_opfuncid((OpExpr *) no_null);
		((Aggref *) lsecond(((OpExpr *) no_null)->args))->aggargtypes = list_make1_oid(ANYOID);
		value = gj_make_case(list_make1(gj_make_when(no_null, value)), NULL);
	}
	return select_aggregate(sub, value);
}

/* x op ANY or ALL as a comparison, where NULL does what false does; NULL: it is of another form. */
static Node *
compare_with_extreme(const GjUnnest *cxt, const SubLink *sublink, Oid opno, bool all)
{
	Query	   *sub = (Query *) sublink->subselect;
	OpExpr	   *test = (OpExpr *) sublink->testexpr;
	OpExpr	   *result;
	Node	   *x,
			   *y;
	Oid			function;
	Aggref	   *extreme;

	if (!IsA(test, OpExpr) || list_length(test->args) != 2 || !gj_operator_is_safe(opno) ||
		!gj_is_column_of_sublink(lsecond(test->args)) || !gj_is_plain_query(sub) || sub->hasAggs ||
		gj_reads_level((Node *) sub, 1) || !gj_is_repeatable(cxt->query, sub) ||
		gj_has_more_queries(sub, GJ_MOST_COPIED) ||
		gj_can_fail((Node *) sub, cxt->here))
		return NULL;
	x = linitial(test->args);
	if (checkExprHasSubLink(x) || contain_volatile_functions(x) || gj_can_fail(x, cxt->here) ||
		contain_agg_clause(x))
		return NULL;
	y = column_of_sublink(sub, lsecond(test->args));
	function = checkExprHasSubLink(y) ? InvalidOid : find_extreme(opno, exprType(y), all);
	if (!OidIsValid(function))
		return NULL;
	extreme = gj_make_aggregate(function, exprType(y), y, test->inputcollid);
	if (gj_can_fail((Node *) extreme, cxt->here))
		return NULL;
	result = copyObject(test);
	result->opno = opno;
	result->opfuncid = InvalidOid;
	set_opfuncid(result);
	lsecond(result->args) = select_extreme(sub, extreme, y, all && !gj_is_never_null(sub, y));
	if (!all)
		return (Node *) result;
	return (Node *) make_orclause(list_make2(gj_not_exists(sub, NULL), result));
}

/* ---- expressions */

typedef struct RewriteContext
{
	GjUnnest   *unnest;
	bool		is_null_false;	/* NULL does what false does */
} RewriteContext;

static Node *
rewrite_sublink(const SubLink *sublink, const RewriteContext *cxt)
{
	SubLink    *exists;
	Node	   *result = NULL;

	if (!IsA(sublink->subselect, Query))
		return NULL;
	switch (sublink->subLinkType)
	{
		case EXPR_SUBLINK:
			result = gj_join_aggregate(cxt->unnest, sublink);
			return result != NULL ? result : gj_join_lookup(cxt->unnest, sublink);
		case EXISTS_SUBLINK:
			return gj_join_exists(cxt->unnest, sublink);
		case ANY_SUBLINK:
		case ALL_SUBLINK:
			exists = sublink->subLinkType == ALL_SUBLINK ? NULL :
				in_as_exists(cxt->unnest, sublink, cxt->is_null_false);
			if (exists != NULL)
				result = gj_join_exists(cxt->unnest, exists);
			if (result == NULL && cxt->is_null_false && IsA(sublink->testexpr, OpExpr))
				result = compare_with_extreme(cxt->unnest, sublink, ((OpExpr *) sublink->testexpr)->opno,
											  sublink->subLinkType == ALL_SUBLINK);
			cxt->unnest->changed |= result != NULL;
			return result;
		default:
			return NULL;
	}
}

/* NOT x > ANY (...) is x <= ALL (...), and the other way round. */
static Node *
rewrite_negation(const BoolExpr *negation, const RewriteContext *cxt)
{
	const SubLink *sublink = linitial(negation->args);
	Oid			negator;
	Node	   *result;

	if (!cxt->is_null_false || !IsA(sublink, SubLink) ||
		(sublink->subLinkType != ANY_SUBLINK && sublink->subLinkType != ALL_SUBLINK) ||
		!IsA(sublink->testexpr, OpExpr))
		return NULL;
	negator = get_negator(((OpExpr *) sublink->testexpr)->opno);
	if (!OidIsValid(negator))
		return NULL;
	result = compare_with_extreme(cxt->unnest, sublink, negator, sublink->subLinkType == ANY_SUBLINK);
	cxt->unnest->changed |= result != NULL;
	return result;
}

static Node *
rewrite(Node *node, RewriteContext *cxt)
{
	RewriteContext inside = {.unnest = cxt->unnest};
	RewriteContext condition = {.unnest = cxt->unnest,.is_null_false = true};
	Node	   *result = NULL;

	if (node == NULL || IsA(node, Query))
		return node;
	switch (nodeTag(node))
	{
		case T_SubLink:
			result = rewrite_sublink((SubLink *) node, cxt);
			break;
		case T_BoolExpr:
			if (((BoolExpr *) node)->boolop == NOT_EXPR)
				result = rewrite_negation((BoolExpr *) node, cxt);
			else
				inside.is_null_false = cxt->is_null_false;
			break;
		case T_List:
			/* of arguments of what was just looked at */
			inside.is_null_false = cxt->is_null_false;
			break;
		case T_CaseWhen:
			{
				CaseWhen   *when = (CaseWhen *) node;

				return (Node *) gj_make_when((Expr *) rewrite((Node *) when->expr, &condition),
											 (Expr *) rewrite((Node *) when->result, &inside));
			}
		case T_Aggref:
			{
				Aggref	   *aggref = makeNode(Aggref);

				memcpy(aggref, node, sizeof(Aggref));
				aggref->args = (List *) rewrite((Node *) aggref->args, &inside);
				aggref->aggfilter = (Expr *) rewrite((Node *) aggref->aggfilter, &condition);
				return (Node *) aggref;
			}
		default:
			break;
	}
	return result != NULL ? result : expression_tree_mutator(node, rewrite, &inside);
}

Node *
gj_rewrite_expression(GjUnnest *cxt, Node *node, bool is_null_false)
{
	RewriteContext inside = {.unnest = cxt,.is_null_false = is_null_false};

	return rewrite(node, &inside);
}

/* True for equality with one of a subquery's rows. */
static bool
is_in(const SubLink *sublink)
{
	const Node *test = sublink->testexpr;

	return sublink->subLinkType == ANY_SUBLINK &&
		(!IsA(test, OpExpr) || get_oprrest(((const OpExpr *) test)->opno) == F_EQSEL);
}

static bool
is_exists(Node *node)
{
	return node != NULL && IsA(node, SubLink) && ((SubLink *) node)->subLinkType == EXISTS_SUBLINK;
}

/* What is after NOT; NULL: there is no NOT. */
static Node *
negated(Node *node)
{
	BoolExpr   *negation = (BoolExpr *) node;

	return IsA(node, BoolExpr) && negation->boolop == NOT_EXPR ? linitial(negation->args) : NULL;
}

/* IN in WHERE.  PostgreSQL makes a semi join of it, or of EXISTS where the subquery is correlated. */
static Node *
rewrite_in(GjUnnest *cxt, SubLink *sublink)
{
	RewriteContext inside = {.unnest = cxt};
	Query	   *sub = (Query *) sublink->subselect;
	SubLink    *exists;

	if (IsA(sub, Query) && gj_reads_level((Node *) sub, 1) && !gj_reads_level((Node *) sub, 2) &&
		!gj_reads_level(sublink->testexpr, 1) && !contain_volatile_functions((Node *) sublink) &&
		!gj_can_fail((Node *) sub, cxt->here) && !gj_can_fail(sublink->testexpr, cxt->here))
	{
		exists = in_as_exists(cxt, sublink, true);
		if (exists != NULL)
		{
			cxt->changed = true;
			return (Node *) exists;
		}
	}
	return expression_tree_mutator((Node *) sublink, rewrite, &inside);
}

Node *
gj_rewrite_condition(GjUnnest *cxt, Node *clause)
{
	List	   *quals = NIL;
	ListCell   *lc;

	if (IsA(clause, BoolExpr) && ((BoolExpr *) clause)->boolop == AND_EXPR)
	{
		foreach(lc, ((BoolExpr *) clause)->args)
			quals = lappend(quals, gj_rewrite_condition(cxt, lfirst(lc)));
		return (Node *) make_andclause(quals);
	}
	/* semi and anti joins */
	if (is_exists(clause) || is_exists(negated(clause)))
		return clause;
	if (IsA(clause, SubLink) && is_in((SubLink *) clause))
		return rewrite_in(cxt, (SubLink *) clause);
	return gj_rewrite_expression(cxt, clause, true);
}

/* ---- what is selected */

/* Group keys with subqueries, before and after. */
typedef struct KeyContext
{
	GjUnnest   *unnest;
	List	   *before;
	List	   *after;
} KeyContext;

/* What comes after grouping: only in arguments of aggregates, and in whole keys, are rows read. */
static Node *
rewrite_grouped(Node *node, KeyContext *cxt)
{
	ListCell   *lc,
			   *lc2;

	if (node == NULL || IsA(node, Query))
		return node;
	forboth(lc, cxt->before, lc2, cxt->after)
		if (equal(node, lfirst(lc)))
			return copyObject(lfirst(lc2));
	if (IsA(node, Aggref))
		return ((Aggref *) node)->agglevelsup > 0 ? node : gj_rewrite_expression(cxt->unnest, node, false);
	return expression_tree_mutator(node, rewrite_grouped, cxt);
}

static void
rewrite_keys(KeyContext *cxt)
{
	Query	   *query = cxt->unnest->query;
	ListCell   *lc;

	foreach(lc, query->groupingSets == NIL ? query->groupClause : NIL)
	{
		Node	   *before = get_sortgroupclause_expr(lfirst(lc), query->targetList);
		Node	   *after;

		if (!checkExprHasSubLink(before))
			continue;
		after = gj_rewrite_expression(cxt->unnest, before, false);
		if (equal(before, after))
			continue;
		cxt->before = lappend(cxt->before, before);
		cxt->after = lappend(cxt->after, after);
	}
}

void
gj_rewrite_targets(GjUnnest *cxt)
{
	Query	   *query = cxt->query;
	KeyContext	keys = {.unnest = cxt};

	if (!query->hasSubLinks)
		return;
	if (query->hasAggs || query->groupClause != NIL || query->groupingSets != NIL ||
		query->havingQual != NULL)
	{
		rewrite_keys(&keys);
		query->targetList = (List *) rewrite_grouped((Node *) query->targetList, &keys);
		query->havingQual = rewrite_grouped(query->havingQual, &keys);
	}
	else
		query->targetList = (List *) gj_rewrite_expression(cxt, (Node *) query->targetList, false);
}
