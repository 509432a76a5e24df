/*
 * unnest.c
 *	  Correlated subqueries as joins.
 *
 * PostgreSQL runs a correlated subquery once for each row outside.  A device would rather have all
 * rows at a time, so a copy of the query is rewritten before it is planned:
 *
 *	a scalar aggregate		SELECT ... WHERE x < (SELECT avg(y) FROM t WHERE t.k = o.k AND c)
 *		is that of its group: LEFT JOIN (SELECT k, true, avg(y) FROM t WHERE c GROUP BY k) s
 *		ON s.k = o.k, and x < s.avg.  Where there is no group the value is that of no rows: 0 for a
 *		count, NULL for others.
 *		Where conditions on o alone leave few of its rows, the subquery computes no other groups:
 *		its WHERE gets AND EXISTS (SELECT FROM o WHERE conditions AND t.k = o.k).
 *	NOT IN					x NOT IN (SELECT y FROM t WHERE c)
 *		NOT EXISTS (SELECT FROM t WHERE c AND y = x), and if x or y can be NULL
 *		CASE WHEN x IS NULL THEN NOT EXISTS (SELECT FROM t WHERE c)
 *		ELSE NOT EXISTS (SELECT FROM t WHERE c AND y IS NULL) END.
 *	a CTE that is read more than once, or that is MATERIALIZED and has groups, becomes a subquery of
 *		each reader.  Where these do not differ, one result serves all (exec/equal_stages.c).
 *
 * Both are planned, and the costs decide.  Only a GpuJoin is worth other joins than the query has: so
 * in the rewritten one it has to be cheaper than the query as it is written, and not than
 * PostgreSQL's plan for the rewritten one.  Groups that nobody asks for are computed, too, so nothing
 * is rewritten that could raise an error in them.
 *
 * The rewriting of scalar aggregates is that of Kim, "On Optimizing an SQL-like Nested Query"
 * (1982), with the outer join of Ganski and Wong (1987).
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parse_oper.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

#include "compat.h"
#include "guc.h"
#include "plan/join_path.h"
#include "plan/make_expr.h"
#include "plan/planned.h"
#include "plan/reasons.h"
#include "plan/safety.h"
#include "plan/unnest.h"
#include "preload.h"

static bool rewrite_query(Query *query, const GjAround *outer);

/* ---- what may be rewritten */

/* What is read of queries further out: `least` levels up, or more, seen from where the walk began. */
typedef struct OuterContext
{
	int			depth;
	int			least;
} OuterContext;

static bool
reads_outer(Node *node, OuterContext *cxt)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return (int) ((Var *) node)->varlevelsup - cxt->depth >= cxt->least;
	if (IsA(node, Aggref) && (int) ((Aggref *) node)->agglevelsup - cxt->depth >= cxt->least)
		return true;
	if (IsA(node, PlaceHolderVar) || IsA(node, GroupingFunc))
		return true;
	if (IsA(node, Query))
	{
		bool		result;

		cxt->depth++;
		result = query_tree_walker((Query *) node, reads_outer, cxt, QTW_IGNORE_JOINALIASES);
		cxt->depth--;
		return result;
	}
	return expression_tree_walker(node, reads_outer, cxt);
}

/* True if an expression, or a query, reads columns `least` levels further out than its own, or more. */
static bool
reads_level(Node *node, int least)
{
	OuterContext cxt = {.depth = 0,.least = least};

	if (node != NULL && IsA(node, Query))
		return query_tree_walker((Query *) node, reads_outer, &cxt, QTW_IGNORE_JOINALIASES);
	return reads_outer(node, &cxt);
}

/* True for a subquery that is a plain SELECT whose rows are just what its FROM and WHERE give. */
static bool
is_plain(const Query *query)
{
	return query->commandType == CMD_SELECT && query->setOperations == NULL &&
		query->limitCount == NULL && query->limitOffset == NULL && query->rowMarks == NIL &&
		query->groupClause == NIL && query->groupingSets == NIL && query->havingQual == NULL &&
		query->windowClause == NIL && query->distinctClause == NIL && query->cteList == NIL &&
		!query->hasWindowFuncs && !query->hasTargetSRFs && !query->hasModifyingCTE &&
		query->jointree->fromlist != NIL;
}

/* ---- scalar aggregates */

/* A condition inner = outer that ties a subquery to the row outside. */
typedef struct Tie
{
	Expr	   *inner;
	OpExpr	   *clause;
	bool		inner_first;
} Tie;

/*
 * True if the clause is an equality of an expression of the subquery and one of the query around
 * it.  Rows of one group are equal to the same outer values: the operator is of the family that
 * groups the inner type.
 */
static bool
find_tie(Node *clause, Tie *tie)
{
	OpExpr	   *op = (OpExpr *) clause;
	TypeCacheEntry *type;
	Oid			inner_type;

	if (!IsA(clause, OpExpr) || list_length(op->args) != 2 || contain_volatile_functions(clause) ||
		checkExprHasSubLink(clause) || op->opno >= FirstNormalObjectId)
		return false;
	for (int i = 0; i < 2; i++)
	{
		Node	   *inner = list_nth(op->args, i);
		Node	   *outer = list_nth(op->args, 1 - i);

		if (reads_level(inner, 1) || !contain_vars_of_level(inner, 0) ||
			contain_vars_of_level(outer, 0) || reads_level(outer, 2) || !reads_level(outer, 1) ||
			contain_aggs_of_level(outer, 1) || contain_aggs_of_level(inner, 0))
			continue;
		inner_type = exprType(inner);
		type = lookup_type_cache(inner_type, TYPECACHE_BTREE_OPFAMILY | TYPECACHE_EQ_OPR |
								 TYPECACHE_LT_OPR);
		if (!OidIsValid(type->btree_opf) || !OidIsValid(type->eq_opr) ||
			get_op_opfamily_strategy(op->opno, type->btree_opf) != BTEqualStrategyNumber ||
			(OidIsValid(op->inputcollid) &&
			 (op->inputcollid != exprCollation(inner) ||
			  !get_collation_isdeterministic(op->inputcollid))))
			continue;
		tie->inner = (Expr *) inner;
		tie->clause = op;
		tie->inner_first = i == 0;
		return true;
	}
	return false;
}

/* What an expression over aggregates is where there are no rows. */
static Node *
without_rows(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
	{
		Aggref	   *aggref = (Aggref *) node;

		if (aggref->aggfnoid == F_COUNT_ || aggref->aggfnoid == F_COUNT_ANY)
			return (Node *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(0),
									  false, FLOAT8PASSBYVAL);
		return (Node *) makeNullConst(aggref->aggtype, -1, aggref->aggcollid);
	}
	return expression_tree_mutator(node, without_rows, context);
}

/* Adds a subquery to the query's range table; its number. */
static Index
add_subquery(Query *query, Query *subquery)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, subquery->targetList)
		names = lappend(names, makeString(pstrdup(lfirst_node(TargetEntry, lc)->resname)));
	rte->rtekind = RTE_SUBQUERY;
	rte->subquery = subquery;
	rte->alias = makeAlias("subquery", NIL);
	rte->eref = makeAlias("subquery", names);
	rte->inFromCl = true;
	query->rtable = lappend(query->rtable, rte);
	return list_length(query->rtable);
}

/* Joins it to all that the query has in FROM; the number of the join. */
static Index
add_left_join(Query *query, Index subquery, List *conditions)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	RangeTblRef *ref = makeNode(RangeTblRef);
	JoinExpr   *join = makeNode(JoinExpr);
	FromExpr   *from = query->jointree;

	rte->rtekind = RTE_JOIN;
	rte->jointype = JOIN_LEFT;
	rte->eref = makeAlias("subquery_join", NIL);
	rte->inFromCl = true;
	query->rtable = lappend(query->rtable, rte);
	ref->rtindex = subquery;
	join->jointype = JOIN_LEFT;
	join->larg = list_length(from->fromlist) == 1 ? linitial(from->fromlist) :
		(Node *) makeFromExpr(from->fromlist, NULL);
	join->rarg = (Node *) ref;
	join->quals = (Node *) make_ands_explicit(conditions);
	join->rtindex = list_length(query->rtable);
	from->fromlist = list_make1(join);
	return join->rtindex;
}

/* A column of a subquery in a query where the join may have made it NULL. */
static Var *
joined_column(Index subquery, Index join, const TargetEntry *tle)
{
	Var		   *var = makeVarFromTargetEntry(subquery, (TargetEntry *) tle);

	gj_set_nulling_rel(var, join);
	return var;
}

static TargetEntry *
add_target(Query *query, Expr *expr, const char *name)
{
	TargetEntry *tle = makeTargetEntry(expr, list_length(query->targetList) + 1, pstrdup(name), false);

	query->targetList = lappend(query->targetList, tle);
	return tle;
}

/* Makes the subquery group by an expression, a column of it. */
static TargetEntry *
add_group(Query *query, Expr *expr)
{
	TargetEntry *tle = add_target(query, expr, "key");
	SortGroupClause *group = makeNode(SortGroupClause);

	group->tleSortGroupRef = tle->ressortgroupref = list_length(query->groupClause) + 1;
	get_sort_group_operators(exprType((Node *) expr), false, true, false, &group->sortop,
							 &group->eqop, NULL, &group->hashable);
	query->groupClause = lappend(query->groupClause, group);
	return tle;
}

/*
 * Splits the subquery's conditions into those that tie it to the row outside and others.  False if
 * something else does, too.
 */
static bool
split_conditions(Query *sub, List **ties, List **others)
{
	FromExpr   *from = sub->jointree;
	List	   *quals = make_ands_implicit((Expr *) from->quals);
	Node	   *all = from->quals;
	bool		reads;
	ListCell   *lc;

	*ties = *others = NIL;
	foreach(lc, quals)
	{
		Tie		   *tie = palloc(sizeof(Tie));

		if (find_tie(lfirst(lc), tie))
			*ties = lappend(*ties, tie);
		else
			*others = lappend(*others, lfirst(lc));
	}
	/* all that is left */
	from->quals = (Node *) *others;
	reads = reads_level((Node *) sub, 1);
	from->quals = all;
	return *ties != NIL && !reads;
}

/* True if a SubLink is a scalar aggregate of rows that equalities tie to the row outside. */
static bool
is_scalar_aggregate(const SubLink *sublink, const GjAround *around)
{
	Query	   *sub = (Query *) sublink->subselect;

	return sublink->subLinkType == EXPR_SUBLINK && IsA(sub, Query) && is_plain(sub) &&
		sub->hasAggs && list_length(sub->targetList) == 1 &&
	/* its value without rows is one of the query around it */
		!checkExprHasSubLink((Node *) sub->targetList) &&
		!contain_volatile_functions((Node *) sub) && !gj_can_fail((Node *) sub, around);
}

/* What rewriting the conditions of a query needs, and whether it has done anything. */
typedef struct RewriteContext
{
	Query	   *query;
	const GjAround *here;		/* it, and the queries around it */
	bool		changed;
} RewriteContext;

/* ---- which groups are asked for */

/* True if a condition is one on columns of table `rti` alone that may be evaluated once more. */
static bool
is_of_table(Node *clause, Index rti, const GjAround *here)
{
	List	   *vars;
	ListCell   *lc;

	if (checkExprHasSubLink(clause) || reads_level(clause, 1) ||
		contain_volatile_functions(clause) || gj_can_fail(clause, here))
		return false;
	vars = pull_var_clause(clause, PVC_INCLUDE_PLACEHOLDERS);
	foreach(lc, vars)
		if (!IsA(lfirst(lc), Var) || ((Var *) lfirst(lc))->varno != rti)
			return false;
	return vars != NIL;
}

/* True for column = constant. */
static bool
is_constant_equality(Node *clause)
{
	OpExpr	   *op = (OpExpr *) clause;
	Node	   *other;

	if (!IsA(clause, OpExpr) || list_length(op->args) != 2 || get_oprrest(op->opno) != F_EQSEL)
		return false;
	other = strip_implicit_coercions(lsecond(op->args));
	if (!IsA(strip_implicit_coercions(linitial(op->args)), Var))
		other = IsA(other, Var) ? linitial(op->args) : NULL;
	return other != NULL && (IsA(other, Const) || IsA(other, Param));
}

/* A table that stands in FROM by itself, or NULL. */
static RangeTblEntry *
plain_table(const Query *query, Index rti)
{
	RangeTblEntry *rte = rt_fetch(rti, query->rtable);
	ListCell   *lc;

	if (rte->rtekind != RTE_RELATION || rte->relkind != RELKIND_RELATION ||
		rte->tablesample != NULL || rte->securityQuals != NIL)
		return NULL;
	foreach(lc, query->jointree->fromlist)
		if (IsA(lfirst(lc), RangeTblRef) && ((RangeTblRef *) lfirst(lc))->rtindex == (int) rti)
			return rte;
	return NULL;
}

/* EXISTS (SELECT FROM table of `outer` WHERE conditions), these being on it and one level up. */
static Node *
exists_row(const Query *outer, const RangeTblEntry *table, List *conditions)
{
	Query	   *query = makeNode(Query);
	RangeTblEntry *rte = copyObject((RangeTblEntry *) table);
	RangeTblRef *ref = makeNode(RangeTblRef);
	SubLink    *sublink = makeNode(SubLink);

	/* what the query around it needs: a plan has it for each table */
#if PG_VERSION_NUM >= 160000
	query->rteperminfos =
		list_make1(copyObject(getRTEPermissionInfo(outer->rteperminfos, (RangeTblEntry *) table)));
	rte->perminfoindex = 1;
#else
	(void) outer;
#endif
	ref->rtindex = 1;
	query->commandType = CMD_SELECT;
	query->canSetTag = true;
	query->rtable = list_make1(rte);
	query->jointree = makeFromExpr(list_make1(ref), (Node *) make_ands_explicit(conditions));
	(void) add_target(query, (Expr *) makeBoolConst(true, false), "found");
	sublink->subLinkType = EXISTS_SUBLINK;
	sublink->subselect = (Node *) query;
	sublink->location = -1;
	return (Node *) sublink;
}

/*
 * A condition for a subquery that leaves the groups for which the query's other conditions on the
 * tie's table leave a row; NULL: that may be most of them, or it cannot be said.
 */
static Node *
wanted_groups(const RewriteContext *cxt, const Tie *tie)
{
	OpExpr	   *clause = copyObject(tie->clause);
	Var		   *outer = list_nth(clause->args, tie->inner_first ? 1 : 0);
	Node	   *inner = list_nth(clause->args, tie->inner_first ? 0 : 1);
	RangeTblEntry *table;
	List	   *conditions = NIL;
	bool		few = false;
	ListCell   *lc;

	if (!IsA(outer, Var) || outer->varlevelsup != 1)
		return NULL;
	table = plain_table(cxt->query, outer->varno);
	if (table == NULL)
		return NULL;
	foreach(lc, make_ands_implicit((Expr *) cxt->query->jointree->quals))
	{
		Node	   *condition = lfirst(lc);

		if (!is_of_table(condition, outer->varno, cxt->here))
			continue;
		few |= is_constant_equality(condition);
		condition = copyObject(condition);
		ChangeVarNodes(condition, outer->varno, 1, 0);
		conditions = lappend(conditions, condition);
	}
	if (!few)
		return NULL;
	IncrementVarSublevelsUp(inner, 1, 0);
	outer->varno = 1;
	outer->varlevelsup = 0;
	return exists_row(cxt->query, table, lappend(conditions, clause));
}

/* Leaves the groups of a subquery, tied by these, that are asked for. */
static void
restrict_groups(const RewriteContext *cxt, Query *sub, List *ties)
{
	List	   *quals = make_ands_implicit((Expr *) sub->jointree->quals);
	ListCell   *lc;

	foreach(lc, ties)
	{
		Node	   *wanted = wanted_groups(cxt, lfirst(lc));

		if (wanted == NULL)
			continue;
		sub->jointree->quals = (Node *) make_ands_explicit(lappend(quals, wanted));
		sub->hasSubLinks = true;
		return;
	}
}

/* The value of a scalar aggregate as one of a join; NULL if it cannot be. */
static Node *
join_aggregate(RewriteContext *cxt, SubLink *sublink)
{
	Query	   *sub;
	List	   *ties,
			   *others;
	List	   *conditions = NIL;
	List	   *keys = NIL;
	Index		rti,
				join;
	TargetEntry *value;
	TargetEntry *exists;
	CaseWhen   *when;
	Node	   *none;
	ListCell   *lc,
			   *lc2;

	if (!is_scalar_aggregate(sublink, cxt->here))
		return NULL;
	sub = copyObject((Query *) sublink->subselect);
	if (!split_conditions(sub, &ties, &others))
		return NULL;
	sub->jointree->quals = others != NIL ? (Node *) make_ands_explicit(others) : NULL;
	restrict_groups(cxt, sub, ties);
	value = linitial_node(TargetEntry, sub->targetList);
	value->resname = pstrdup("value");
	value->resjunk = false;
	value->ressortgroupref = 0;
	none = eval_const_expressions(NULL, without_rows((Node *) value->expr, NULL));
	foreach(lc, ties)
		keys = lappend(keys, add_group(sub, ((Tie *) lfirst(lc))->inner));
	exists = add_target(sub, (Expr *) makeBoolConst(true, false), "found");

	rti = add_subquery(cxt->query, sub);
	forboth(lc, ties, lc2, keys)
	{
		Tie		   *tie = lfirst(lc);
		OpExpr	   *clause = copyObject(tie->clause);
		Node	   *key = (Node *) makeVarFromTargetEntry(rti, lfirst(lc2));
		Node	   *outer = list_nth(clause->args, tie->inner_first ? 1 : 0);

		IncrementVarSublevelsUp(outer, -1, 1);
		clause->args = tie->inner_first ? list_make2(key, outer) : list_make2(outer, key);
		conditions = lappend(conditions, clause);
	}
	join = add_left_join(cxt->query, rti, conditions);
	cxt->changed = true;
	if (IsA(none, Const) && ((Const *) none)->constisnull)
		return (Node *) joined_column(rti, join, value);
	when = gj_make_when((Expr *) joined_column(rti, join, exists),
						(Expr *) joined_column(rti, join, value));
	return (Node *) gj_make_case(list_make1(when), (Expr *) none);
}

static Node *
replace_aggregates(Node *node, RewriteContext *cxt)
{
	if (node == NULL || IsA(node, Query))
		return node;
	if (IsA(node, SubLink))
	{
		Node	   *value = join_aggregate(cxt, (SubLink *) node);

		if (value != NULL)
			return value;
	}
	return expression_tree_mutator(node, replace_aggregates, cxt);
}

/* ---- NOT IN */

/* True for a column of a table that has no NULL, not even made up by an outer join. */
static bool
is_never_null(const Query *query, Node *node)
{
	Var		   *var = (Var *) node;
	RangeTblEntry *rte;
	Relation	rel;
	bool		result;
	ListCell   *lc;

	if (!IsA(node, Var) || var->varlevelsup != 0 || var->varattno <= 0)
		return false;
	/* joins in FROM as they are written may be outer ones */
	foreach(lc, query->jointree->fromlist)
		if (IsA(lfirst(lc), RangeTblRef) && ((RangeTblRef *) lfirst(lc))->rtindex == var->varno)
			break;
	rte = rt_fetch(var->varno, query->rtable);
	if (lc == NULL || rte->rtekind != RTE_RELATION || rte->relkind != RELKIND_RELATION ||
		(rte->inh && has_subclass(rte->relid)))
		return false;
	rel = table_open(rte->relid, NoLock);
	result = gj_is_not_null(RelationGetDescr(rel), var->varattno - 1);
	table_close(rel, NoLock);
	return result;
}

/* NOT EXISTS (SELECT FROM ... WHERE ... AND condition); condition: NULL, or one of the subquery's. */
static Expr *
not_exists(const Query *sub, Expr *condition)
{
	Query	   *copy = copyObject((Query *) sub);
	SubLink    *sublink = makeNode(SubLink);

	if (condition != NULL)
		copy->jointree->quals = (Node *)
			make_ands_explicit(lappend(make_ands_implicit((Expr *) copy->jointree->quals), condition));
	copy->targetList = list_make1(makeTargetEntry((Expr *) makeBoolConst(true, false), 1, pstrdup("found"), false));
	sublink->subLinkType = EXISTS_SUBLINK;
	sublink->subselect = (Node *) copy;
	sublink->location = -1;
	return makeBoolExpr(NOT_EXPR, list_make1(sublink), -1);
}

/* True for the subquery's value in a comparison, as the same bytes of another type perhaps. */
static bool
is_column_of_sublink(Node *node)
{
	if (IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return IsA(node, Param) && ((Param *) node)->paramkind == PARAM_SUBLINK;
}

static Expr *
boolean(bool value)
{
	return (Expr *) makeBoolConst(value, false);
}

/* CASE WHEN arg IS NULL THEN is_null ELSE otherwise END */
static Expr *
case_null(Node *arg, Expr *is_null, Expr *otherwise)
{
	Expr	   *test = gj_make_null_test(copyObject((Expr *) arg), IS_NULL);

	return gj_make_case(list_make1(gj_make_when(test, is_null)), otherwise);
}

/*
 * True if rows of a query around it are locked.  If one has changed meanwhile, PostgreSQL looks at
 * the new one and at the others that it was joined with, and no more; a subquery runs once more.
 */
static bool
is_in_locking_query(const GjAround *here)
{
	for (here = here->outer; here != NULL; here = here->outer)
		if (here->query->commandType != CMD_SELECT || here->query->rowMarks != NIL)
			return true;
	return false;
}

/* Conditions that are true where x NOT IN (...) is; NIL if the clause is none of that form. */
static List *
rewrite_not_in(const GjAround *here, Node *clause)
{
	const Query *query = here->query;
	BoolExpr   *negation = (BoolExpr *) clause;
	SubLink    *sublink;
	OpExpr	   *test;
	Query	   *sub;
	Node	   *x,
			   *y;
	OpExpr	   *equal;
	List	   *result;
	bool		x_null,
				y_null;

	if (!IsA(clause, BoolExpr) || negation->boolop != NOT_EXPR ||
		!IsA(linitial(negation->args), SubLink))
		return NIL;
	sublink = linitial_node(SubLink, negation->args);
	test = (OpExpr *) sublink->testexpr;
	sub = (Query *) sublink->subselect;
	if (sublink->subLinkType != ANY_SUBLINK || !IsA(sub, Query) || !is_plain(sub) || sub->hasAggs ||
		reads_level((Node *) sub, 1) || !gj_is_repeatable(query, sub) ||
		gj_can_fail((Node *) sub, here) ||
		list_length(sub->targetList) != 1 || !IsA(test, OpExpr) || list_length(test->args) != 2 ||
		!is_column_of_sublink(lsecond(test->args)) || !gj_operator_is_safe(test->opno) ||
		!op_hashjoinable(test->opno, exprType(linitial(test->args))) ||
		checkExprHasSubLink(linitial(test->args)) || contain_volatile_functions(linitial(test->args)))
		return NIL;
	x = linitial(test->args);
	y = (Node *) linitial_node(TargetEntry, sub->targetList)->expr;
	if (contain_aggs_of_level(x, 0) || (reads_level(x, 1) && is_in_locking_query(here)))
		return NIL;
	equal = copyObject(test);
	equal->args = list_make2(copyObject(x), copyObject(y));
	if (IsA(lsecond(test->args), RelabelType))
	{
		RelabelType *relabel = copyObject(lsecond_node(RelabelType, test->args));

		relabel->arg = lsecond(equal->args);
		lsecond(equal->args) = relabel;
	}
	IncrementVarSublevelsUp(linitial(equal->args), 1, 0);
	result = list_make1(not_exists(sub, (Expr *) equal));
	x_null = !is_never_null(query, x);
	y_null = !is_never_null(sub, y);
	if (x_null || y_null)
		result = lappend(result, case_null(x, x_null ? not_exists(sub, NULL) : boolean(false),
										   y_null ? not_exists(sub, gj_make_null_test(copyObject((Expr *) y), IS_NULL)) :
										   boolean(true)));
	return result;
}

/* ---- queries */

/* The identifier that copies of a CTE get: PostgreSQL looks only at that of a whole statement. */
#define READ_AGAIN			0x474a5245

bool
gj_is_read_again(const Query *query)
{
	return query->queryId == READ_AGAIN;
}

/* True if readers could have the CTE as a stage, but PostgreSQL will not inline it. */
static bool
is_worth_inlining(const CommonTableExpr *cte)
{
	const Query *sub = (const Query *) cte->ctequery;

	return cte->ctematerialized == CTEMaterializeDefault ? cte->cterefcount > 1 :
		cte->ctematerialized == CTEMaterializeAlways && cte->cterefcount > 0 &&
		(sub->hasAggs || sub->groupClause != NIL || sub->distinctClause != NIL);
}

/*
 * Has all readers compute all aggregates: PostgreSQL leaves out what its reader does not want, but for
 * what is sorted or grouped by, and so has a number.  Then they are the same, and one of them runs.
 */
static void
keep_outputs(Query *sub)
{
	Index		last = 0;
	ListCell   *lc;

	sub->queryId = READ_AGAIN;
	foreach(lc, sub->targetList)
		last = Max(last, lfirst_node(TargetEntry, lc)->ressortgroupref);
	foreach(lc, sub->targetList)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		if (tle->ressortgroupref == 0 && contain_agg_clause((Node *) tle->expr))
			tle->ressortgroupref = ++last;
	}
}

/*
 * Makes subqueries of CTEs, one for each reader.  PostgreSQL then has conditions of a reader checked
 * ahead of those of the CTE, which may be there to keep them from an error.
 */
static bool
inline_ctes(Query *query)
{
	bool		changed = false;
	ListCell   *lc;

	foreach(lc, query->cteList)
	{
		CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);
		Query	   *sub = (Query *) cte->ctequery;

		if (!is_worth_inlining(cte) || cte->cterecursive || sub->commandType != CMD_SELECT ||
			!gj_is_repeatable(query, sub) || gj_conditions_can_fail(query))
			continue;
		if (cte->cterefcount > 1)
			keep_outputs(sub);
		cte->ctematerialized = CTEMaterializeNever;
		changed = true;
	}
	return changed;
}

static bool
rewrite_conditions(Query *query, const GjAround *here)
{
	RewriteContext cxt = {.query = query,.here = here};
	List	   *quals = NIL;
	ListCell   *lc;

	if (query->commandType != CMD_SELECT || query->rowMarks != NIL ||
		query->jointree->fromlist == NIL || query->jointree->quals == NULL)
		return false;
	foreach(lc, make_ands_implicit((Expr *) query->jointree->quals))
	{
		Node	   *clause = lfirst(lc);
		List	   *parts = rewrite_not_in(here, clause);

		cxt.changed |= parts != NIL;
		quals = list_concat(quals, parts != NIL ? parts : list_make1(replace_aggregates(clause, &cxt)));
	}
	if (cxt.changed)
		query->jointree->quals = (Node *) make_ands_explicit(quals);
	return cxt.changed;
}

/* What is rewritten below a query. */
typedef struct BelowContext
{
	const GjAround *here;		/* the query */
	bool		changed;
} BelowContext;

static bool
rewrite_below(Node *node, void *context)
{
	BelowContext *cxt = context;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		cxt->changed |= rewrite_query((Query *) node, cxt->here);
		return false;
	}
	return expression_tree_walker(node, rewrite_below, context);
}

/* The innermost queries first: they are copied into others. */
static bool
rewrite_query(Query *query, const GjAround *outer)
{
	const GjAround here = {.query = query,.outer = outer};
	BelowContext below = {.here = &here};

	(void) query_tree_walker(query, rewrite_below, &below, QTW_IGNORE_JOINALIASES);
	below.changed |= inline_ctes(query);
	below.changed |= rewrite_conditions(query, &here);
	return below.changed;
}

/* ---- plans */

/* True if there may be something to be rewritten.  Most queries have no subquery: it takes no time. */
static bool
is_candidate(const Query *query)
{
	ListCell   *lc;

	if (query->hasSubLinks || query->cteList != NIL)
		return true;
	foreach(lc, query->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_SUBQUERY && is_candidate(rte->subquery))
			return true;
	}
	return false;
}

/* True for statements whose plan may be that of another query. */
static bool
may_rewrite(const Query *query, int cursor_options)
{
	const char *reason;

	return gj_unnest && query->commandType != CMD_UTILITY && query->utilityStmt == NULL &&
		(cursor_options & CURSOR_OPT_FAST_PLAN) == 0 && is_candidate(query) &&
		gj_may_offload(&reason) && gj_extension_present();
}

/* What a query must take at least, in times of what planning it once more takes. */
#define PLANNING_WORTH		20

/* Of PostgreSQL's cost, what visits of pages in memory leave at least: see native_cost.c. */
#define LEAST_LEFT			0.1

double		gj_written_cost;

/* Plans a query, while gj_written_cost and gj_charging_visits are these. */
static PlannedStmt *
plan_against(double written_cost, bool charging_visits, GjPlanQuery plan, Query *query,
			 const char *query_string, int cursor_options, ParamListInfo params)
{
	double		saved_cost = gj_written_cost;
	bool		saved_charging = gj_charging_visits;
	PlannedStmt *statement;

	gj_written_cost = written_cost;
	gj_charging_visits = charging_visits;
	PG_TRY();
	{
		statement = plan(query, query_string, cursor_options, params);
	}
	PG_FINALLY();
	{
		gj_written_cost = saved_cost;
		gj_charging_visits = saved_charging;
	}
	PG_END_TRY();
	return statement;
}

/* The plan of the rewritten query, if it has a GpuJoin and costs less than that; or else NULL. */
static PlannedStmt *
plan_rewritten(double written_cost, GjPlanQuery plan, const Query *rewritten,
			   const char *query_string, int cursor_options, ParamListInfo params)
{
	PlannedStmt *statement;

	(void) gj_swap_parts(NIL);
	statement = plan_against(written_cost, false, plan, copyObject((Query *) rewritten),
							 query_string, cursor_options, params);
	return (gj_force || statement->planTree->total_cost < written_cost) &&
		gj_has_gpujoin(statement) ? statement : NULL;
}

PlannedStmt *
gj_plan_unnested(Query *query, const char *query_string, int cursor_options, ParamListInfo params,
				 GjPlanQuery plan)
{
	Query	   *rewritten;
	Query	   *again;
	PlannedStmt *written;
	PlannedStmt *unnested = NULL;
	uint64		njoins;
	double		cost;
	double		least;
	bool		is_known;
	List	   *reasons;

	if (!may_rewrite(query, cursor_options))
		return plan_against(0, false, plan, query, query_string, cursor_options, params);
	rewritten = copyObject(query);
	if (!rewrite_query(rewritten, NULL))
		return plan_against(0, false, plan, query, query_string, cursor_options, params);
	again = copyObject(query);
	njoins = gj_joins_searched;
	written = plan_against(0, false, plan, query, query_string, cursor_options, params);
	njoins = gj_joins_searched - njoins;
	/* the other planner has its own ways with subqueries */
	if (gj_by_other_planner(written))
		return written;
	cost = written->planTree->total_cost;
	least = gj_cost_least() + PLANNING_WORTH * gj_cost_planning(njoins);
	if (!gj_force && cost < least)
		return written;
	reasons = gj_swap_parts(NIL);
	/* it is planned once more for what its visits of pages cost, unless that makes no difference */
	is_known = gj_force || !gj_has_index_scan(written);
	if (is_known || cost * LEAST_LEFT >= least)
		unnested = plan_rewritten(is_known ? cost : cost * LEAST_LEFT, plan, rewritten,
								  query_string, cursor_options, params);
	if (unnested == NULL && !is_known)
	{
		cost = plan_against(0, true, plan, again, query_string, cursor_options,
							params)->planTree->total_cost;
		if (cost >= least)
			unnested = plan_rewritten(cost, plan, rewritten, query_string, cursor_options, params);
	}
	if (unnested != NULL)
		return unnested;
	(void) gj_swap_parts(reasons);
	return written;
}
