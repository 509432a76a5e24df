/*
 * unnest.c
 *	  Correlated subqueries as joins.
 *
 * PostgreSQL runs a correlated subquery once for each row outside.  A device would rather have all
 * rows at a time, so a copy of the query is rewritten before it is planned:
 *
 *	a scalar aggregate		SELECT ... WHERE x < (SELECT avg(y) FROM t WHERE t.k = o.k AND c)
 *		in WHERE, in SELECT, in an argument of an aggregate or in an expression that is grouped by,
 *		is that of its group: LEFT JOIN (SELECT k, true, avg(y) FROM t WHERE c GROUP BY k) s
 *		ON s.k = o.k, and x < s.avg.  Where there is no group the value is that of no rows: 0 for a
 *		count, NULL for others.
 *		Where conditions on o alone leave few of its rows, the subquery computes no other groups:
 *		its WHERE gets AND EXISTS (SELECT FROM o WHERE conditions AND t.k = o.k).
 *	EXISTS in an expression	CASE WHEN EXISTS (SELECT FROM t WHERE t.k = o.k AND c) THEN ...
 *		LEFT JOIN (SELECT k FROM t WHERE c GROUP BY k) s ON s.k = o.k, and s.k IS NOT NULL.  IN is an
 *		EXISTS where NULL does what false does, or where there is no NULL.  EXISTS and IN that stand in
 *		WHERE by themselves are semi joins: PostgreSQL makes them, but for a correlated IN, which
 *		becomes EXISTS.
 *	a look-up				SELECT (SELECT y FROM t WHERE t.k = o.k), k being unique: unnest_lookup.c.
 *	LATERAL					FROM o, LATERAL (SELECT max(y) FROM t WHERE t.k = o.k): unnest_lateral.c.
 *	ANY and ALL				x > ALL (SELECT y FROM t): unnest_expr.c.
 *	NOT IN					x NOT IN (SELECT y FROM t WHERE c)
 *		NOT EXISTS (SELECT FROM t WHERE c AND y = x), and if x or y can be NULL
 *		CASE WHEN x IS NULL THEN NOT EXISTS (SELECT FROM t WHERE c)
 *		ELSE NOT EXISTS (SELECT FROM t WHERE c AND y IS NULL) END.
 *	a CTE that is read more than once, or that is MATERIALIZED and has groups, becomes a subquery of
 *		each reader.  Where these do not differ, one result serves all (exec/equal_stages.c).
 *
 * Groups that no device makes are a rewriting of their own: finer_groups.c.
 *
 * Both are planned, and the costs decide.  Only a GpuJoin is worth other joins than the query has: so
 * in the rewritten one it has to be cheaper than the query as it is written, and not than
 * PostgreSQL's plan for the rewritten one.  Groups that nobody asks for are computed, too, so nothing
 * is rewritten that could raise an error in them.  Where other expressions could, their values are
 * CASE WHEN s.found THEN s.avg END: then PostgreSQL makes no inner join of the left one, and computes
 * nothing over s ahead of it.
 *
 * The rewriting of scalar aggregates is that of Kim, "On Optimizing an SQL-like Nested Query"
 * (1982), with the outer join of Ganski and Wong (1987).
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_class.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parse_clause.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "compat.h"
#include "guc.h"
#include "plan/finer_groups.h"
#include "plan/join_path.h"
#include "plan/make_expr.h"
#include "plan/planned.h"
#include "plan/reasons.h"
#include "plan/safety.h"
#include "plan/unnest.h"
#include "plan/unnest_join.h"
#include "preload.h"

static bool rewrite_query(Query *query, const GjAround *outer);

/* ---- NOT IN */

bool
gj_is_never_null(const Query *query, Node *node)
{
	Var		   *var = (Var *) node;
	RangeTblEntry *rte;

	if (!IsA(node, Var) || var->varlevelsup != 0 || var->varattno <= 0)
		return false;
	rte = gj_only_table(query, var->varno);
	return rte != NULL && gj_is_not_null_column(rte->relid, var->varattno);
}

Expr *
gj_not_exists(const Query *sub, Expr *condition)
{
	Query	   *copy = copyObject((Query *) sub);

	if (condition != NULL)
		copy->jointree->quals = gj_and_conditions(copy->jointree->quals, list_make1(condition));
	copy->targetList = list_make1(makeTargetEntry((Expr *) makeBoolConst(true, false), 1, pstrdup("found"), false));
	return makeBoolExpr(NOT_EXPR, list_make1(gj_make_sublink(EXISTS_SUBLINK, copy)), -1);
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
	List	   *result;
	bool		x_null,
				y_null;

	if (!IsA(clause, BoolExpr) || negation->boolop != NOT_EXPR ||
		!IsA(linitial(negation->args), SubLink))
		return NIL;
	sublink = linitial_node(SubLink, negation->args);
	test = (OpExpr *) sublink->testexpr;
	sub = (Query *) sublink->subselect;
	if (sublink->subLinkType != ANY_SUBLINK || !IsA(sub, Query) || !gj_is_plain_query(sub) || sub->hasAggs ||
		gj_reads_level((Node *) sub, 1) || !gj_is_repeatable(query, sub) ||
		gj_can_fail((Node *) sub, here) ||
		list_length(sub->targetList) != 1 || !IsA(test, OpExpr) || list_length(test->args) != 2 ||
		!gj_is_column_of_sublink(lsecond(test->args)) || !gj_operator_is_safe(test->opno) ||
		!op_hashjoinable(test->opno, exprType(linitial(test->args))) ||
		gj_has_more_queries(sub, GJ_MOST_COPIED) ||
		checkExprHasSubLink(linitial(test->args)) || contain_volatile_functions(linitial(test->args)))
		return NIL;
	x = linitial(test->args);
	y = (Node *) linitial_node(TargetEntry, sub->targetList)->expr;
	if (contain_aggs_of_level(x, 0) || (gj_reads_level(x, 1) && is_in_locking_query(here)))
		return NIL;
	result = list_make1(gj_not_exists(sub, gj_compare_in_sublink(test, sub)));
	x_null = !gj_is_never_null(query, x);
	y_null = !gj_is_never_null(sub, y);
	if (x_null || y_null)
		result = lappend(result, case_null(x, x_null ? gj_not_exists(sub, NULL) : boolean(false),
										   y_null ? gj_not_exists(sub, gj_make_null_test(copyObject((Expr *) y), IS_NULL)) :
										   boolean(true)));
	return result;
}

/* ---- queries */

/*
 * The identifier that copies of a CTE get, above the number of its readers: PostgreSQL looks only at
 * that of a whole statement.
 */
#define READ_AGAIN			((uint64) 0x474a5245 << 32)
#define READERS				0xFFFFFFFF

uint32
gj_readers(const Query *query)
{
	uint64		id = (uint64) query->queryId;

	return (id & ~(uint64) READERS) == READ_AGAIN ? (uint32) (id & READERS) : 1;
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
keep_outputs(Query *sub, int nreaders)
{
	ListCell   *lc;

	sub->queryId = READ_AGAIN | (uint32) nreaders;
	foreach(lc, sub->targetList)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		if (contain_agg_clause((Node *) tle->expr))
			(void) assignSortGroupRef(tle, sub->targetList);
	}
}

/*
 * Makes subqueries of CTEs, one for each reader.  PostgreSQL then has conditions of a reader checked
 * ahead of those of the CTE, which may be there to keep them from an error.
 */
static bool
inline_ctes(Query *query, const GjAround *here)
{
	bool		changed = false;
	ListCell   *lc;

	foreach(lc, query->cteList)
	{
		CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);
		Query	   *sub = (Query *) cte->ctequery;

		if (!is_worth_inlining(cte) || cte->cterecursive || sub->commandType != CMD_SELECT ||
			!gj_is_repeatable(query, sub) || gj_conditions_can_fail(here))
			continue;
		if (cte->cterefcount > 1)
			keep_outputs(sub, cte->cterefcount);
		cte->ctematerialized = CTEMaterializeNever;
		changed = true;
	}
	return changed;
}

void
gj_flatten_groups(Query *query)
{
#if PG_VERSION_NUM >= 180000
	ListCell   *lc;

	if (!query->hasGroupRTE || query->groupingSets != NIL)
		return;
	query->targetList = (List *) flatten_group_exprs(NULL, query, (Node *) query->targetList);
	query->havingQual = flatten_group_exprs(NULL, query, query->havingQual);
	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind != RTE_GROUP)
			continue;
		rte->rtekind = RTE_RESULT;
		rte->groupexprs = NIL;
	}
	query->hasGroupRTE = false;
#endif
}

static bool
rewrite_here(Query *query, const GjAround *here)
{
	GjUnnest	cxt = {.query = query,.here = here};
	List	   *quals = NIL;
	ListCell   *lc;

	if (query->commandType != CMD_SELECT || query->rowMarks != NIL || query->jointree->fromlist == NIL)
		return false;
	if (query->hasSubLinks)
		gj_flatten_groups(query);
	gj_join_laterals(&cxt);
	foreach(lc, query->hasSubLinks ? make_ands_implicit((Expr *) query->jointree->quals) : NIL)
	{
		Node	   *clause = lfirst(lc);
		List	   *parts = rewrite_not_in(here, clause);

		cxt.changed |= parts != NIL;
		quals = list_concat(quals, parts != NIL ? parts :
							list_make1(gj_rewrite_condition(&cxt, clause)));
	}
	if (quals != NIL)
		query->jointree->quals = (Node *) make_ands_explicit(quals);
	gj_rewrite_targets(&cxt);
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
	below.changed |= inline_ctes(query, &here);
	below.changed |= rewrite_here(query, &here);
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

		if (rte->rtekind == RTE_SUBQUERY && (rte->lateral || is_candidate(rte->subquery)))
			return true;
	}
	return false;
}

/* True for statements whose plan may be that of another query, if there is something to rewrite. */
static bool
may_rewrite(const Query *query, int cursor_options)
{
	const char *reason;

	return gj_unnest && query->commandType != CMD_UTILITY && query->utilityStmt == NULL &&
		(cursor_options & CURSOR_OPT_FAST_PLAN) == 0 && gj_may_offload(&reason) &&
		gj_extension_present();
}

/* Queries in a rewritten one: CTEs that read each other several times multiply. */
#define MOST_QUERIES		100

/* What a query must take at least, in times of what planning it once more takes. */
#define PLANNING_WORTH		20

/* Of PostgreSQL's cost, what visits of pages in memory leave at least: see native_cost.c. */
#define LEAST_LEFT			0.1

/* What a query costs that is worth planning once more, if it took the planner so many joins. */
static double
least_cost(uint64 njoins)
{
	return gj_cost_least() + PLANNING_WORTH * gj_cost_planning(njoins);
}

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

/*
 * The plan of the rewritten query, if it has a GpuJoin and costs less than that; or else NULL.  Nor may
 * it have joins that can take longer: the query as it is written hashes such a subquery, perhaps.
 */
static PlannedStmt *
plan_rewritten(double written_cost, GjPlanQuery plan, const Query *rewritten,
			   const char *query_string, int cursor_options, ParamListInfo params)
{
	PlannedStmt *statement;

	(void) gj_swap_parts(NIL);
	statement = plan_against(written_cost, false, plan, copyObject((Query *) rewritten),
							 query_string, cursor_options, params);
	return (gj_force || (statement->planTree->total_cost < written_cost &&
						 gj_cost_rereads(statement) < written_cost)) &&
		gj_has_gpujoin(statement) ? statement : NULL;
}

/* The plan of the query, with its subqueries as joins if that is cheaper. */
static PlannedStmt *
plan_unnested(Query *query, const char *query_string, int cursor_options,
			  ParamListInfo params, GjPlanQuery plan)
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

	if (!is_candidate(query) || !may_rewrite(query, cursor_options))
		return plan_against(0, false, plan, query, query_string, cursor_options, params);
	rewritten = copyObject(query);
	if (!rewrite_query(rewritten, NULL) || gj_has_more_queries(rewritten, MOST_QUERIES))
		return plan_against(0, false, plan, query, query_string, cursor_options, params);
	again = copyObject(query);
	njoins = gj_joins_searched;
	written = plan_against(0, false, plan, query, query_string, cursor_options, params);
	njoins = gj_joins_searched - njoins;
	/* the other planner has its own ways with subqueries */
	if (gj_by_other_planner(written))
		return written;
	cost = written->planTree->total_cost;
	least = least_cost(njoins);
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

PlannedStmt *
gj_plan_unnested(Query *query, const char *query_string, int cursor_options, ParamListInfo params,
				 GjPlanQuery plan)
{
	Query	   *finer = NULL;
	PlannedStmt *unnested;
	PlannedStmt *grouped;
	uint64		njoins = gj_joins_searched;
	List	   *reasons;

	if (gj_may_have_finer_groups(query) && may_rewrite(query, cursor_options))
		finer = copyObject(query);
	unnested = plan_unnested(query, query_string, cursor_options, params, plan);
	njoins = gj_joins_searched - njoins;
	if (finer == NULL || !gj_aggregates_itself(unnested) || gj_by_other_planner(unnested) ||
		(!gj_force && unnested->planTree->total_cost < least_cost(njoins)) ||
		!gj_make_finer_groups(finer))
		return unnested;
	reasons = gj_swap_parts(NIL);
	grouped = plan_rewritten(unnested->planTree->total_cost, plan, finer, query_string,
							 cursor_options, params);
	if (grouped != NULL)
		return grouped;
	(void) gj_swap_parts(reasons);
	return unnested;
}
