/*
 * finer_groups.c
 *	  Groups that no device makes, of finer groups that one does: keys that are expressions of texts,
 *	  constants and the like, min and max of texts, DISTINCT of several expressions.
 *
 *	SELECT upper(t), min(u), count(*), avg(v) FROM ... GROUP BY upper(t)
 *
 *	SELECT upper(s.t), min(s.u), coalesce(sum(s.n)::int8, 0), sum(s.v) / sum(s.m)
 *	FROM (SELECT t, u, count(*) AS n, sum(v) AS v, count(v) AS m FROM ... GROUP BY t, u) s
 *	GROUP BY upper(s.t)
 *
 * PostgreSQL makes the groups of the finer ones, which are fewer than the rows.  This is the eager
 * aggregation of Yan and Larson, "Eager Aggregation and Lazy Aggregation" (1995), without a join.
 *
 * What is computed of a column is computed once for each of its values.  So columns in expressions
 * have types whose equal values are the same: no numeric, whose 1.0 and 1.00 differ as a text.  Columns
 * that are grouped by themselves may have any type.
 */
#include "postgres.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "plan/finer_groups.h"
#include "plan/make_expr.h"
#include "plan/unnest_join.h"

/* The number of the only subquery that the query reads afterwards. */
#define FINER	1

typedef struct FinerGroups
{
	Query	   *query;
	Query	   *finer;
	bool		of_values;		/* in what looks at each value of a column */
	bool		fails;			/* something cannot be computed of finer groups */
} FinerGroups;

/* ---- what it is for */

static bool
is_text(Oid type)
{
	return type == TEXTOID || type == VARCHAROID || type == BPCHAROID || type == NAMEOID;
}

/* True for an aggregate that PostgreSQL computes of finer groups as well as of rows. */
static bool
is_of_values(const Aggref *aggref)
{
	return aggref->aggdistinct != NIL || aggref->aggfnoid == F_MIN_TEXT ||
		aggref->aggfnoid == F_MAX_TEXT || aggref->aggfnoid == F_MIN_BPCHAR ||
		aggref->aggfnoid == F_MAX_BPCHAR;
}

/* What keeps the groups of a query from a device. */
typedef struct Obstacles
{
	bool		found;
	const Aggref *distinct;		/* one with DISTINCT */
} Obstacles;

static bool
find_obstacle(Node *node, void *context)
{
	Obstacles  *cxt = context;
	const Aggref *aggref = (const Aggref *) node;

	if (node == NULL)
		return false;
	if (!IsA(node, Aggref))
		return expression_tree_walker(node, find_obstacle, context);
	if (!is_of_values(aggref))
		return false;
	if (aggref->aggdistinct == NIL)
		cxt->found = true;
	else if (cxt->distinct == NULL)
		cxt->distinct = aggref;
	else
		cxt->found |= !equal(cxt->distinct->args, aggref->args) ||
			aggref->aggfilter != NULL || cxt->distinct->aggfilter != NULL;
	return false;
}

/* What a query groups by. */
static Node *
group_expr(const Query *query, const SortGroupClause *group)
{
	Node	   *key = get_sortgroupclause_expr((SortGroupClause *) group, query->targetList);

#if PG_VERSION_NUM >= 180000
	if (IsA(key, Var) && ((Var *) key)->varlevelsup == 0)
	{
		const RangeTblEntry *rte = rt_fetch(((Var *) key)->varno, query->rtable);

		if (rte->rtekind == RTE_GROUP)
			return list_nth(rte->groupexprs, ((Var *) key)->varattno - 1);
	}
#endif
	return key;
}

/* True if a device groups by this key only where PostgreSQL has computed it, most likely. */
static bool
is_obstacle(const Query *query, const SortGroupClause *group)
{
	Node	   *key = group_expr(query, group);
	List	   *vars;
	ListCell   *lc;

	if (IsA(key, Var))
		return false;
	vars = pull_var_clause(key, PVC_RECURSE_AGGREGATES);
	foreach(lc, vars)
		if (is_text(exprType(lfirst(lc))) || exprType(lfirst(lc)) == TIMESTAMPTZOID)
			return true;
	return vars == NIL || is_text(exprType(key)) || exprType(key) == TIMESTAMPTZOID;
}

static bool
has_obstacle(const Query *query)
{
	Obstacles	cxt = {.found = false};
	ListCell   *lc;

	if (query->commandType != CMD_SELECT || (!query->hasAggs && query->groupClause == NIL))
		return false;
	foreach(lc, query->groupClause)
		cxt.found |= is_obstacle(query, lfirst_node(SortGroupClause, lc));
	(void) find_obstacle((Node *) query->targetList, &cxt);
	(void) find_obstacle(query->havingQual, &cxt);
	return cxt.found;
}

static bool
may_have(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return has_obstacle((Query *) node) ||
			query_tree_walker((Query *) node, may_have, context, QTW_IGNORE_JOINALIASES);
	return expression_tree_walker(node, may_have, context);
}

bool
gj_may_have_finer_groups(const Query *query)
{
	return may_have((Node *) query, NULL);
}

/* ---- finer groups */

/* True for a column whose equal values are the same, byte by byte. */
static bool
is_identical(const Var *var)
{
	switch (var->vartype)
	{
		case BOOLOID:
		case CHAROID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case UUIDOID:
		case BYTEAOID:
			return true;
		case BPCHAROID:
			/* padded to one length */
			return var->vartypmod >= (int32) VARHDRSZ &&
				get_collation_isdeterministic(var->varcollid);
		case TEXTOID:
		case VARCHAROID:
		case NAMEOID:
			return get_collation_isdeterministic(var->varcollid);
		default:
			return get_typtype(var->vartype) == TYPTYPE_ENUM;
	}
}

/*
 * True for a column that is grouped by as it is: PostgreSQL takes any of its equal values, too, but
 * not where it groups by an expression of it as well.
 */
static bool
is_key(const Query *query, const Var *var)
{
	bool		found = false;
	ListCell   *lc;

	foreach(lc, query->groupClause)
	{
		Node	   *key = group_expr(query, lfirst(lc));

		if (equal(key, var))
			found = true;
		else if (list_member(pull_var_clause(key, PVC_RECURSE_AGGREGATES), var))
			return false;
	}
	return found;
}

/* A column of the finer groups for an expression: a key, or an aggregate. */
static Var *
finer_column(FinerGroups *cxt, Expr *expr)
{
	Query	   *finer = cxt->finer;
	TargetEntry *tle = tlist_member(expr, finer->targetList);

	if (tle == NULL && IsA(expr, Var))
	{
		tle = gj_add_group(finer, copyObject(expr));
		cxt->fails |= !OidIsValid(llast_node(SortGroupClause, finer->groupClause)->eqop);
	}
	else if (tle == NULL)
	{
		tle = makeTargetEntry(copyObject(expr), list_length(finer->targetList) + 1,
							  pstrdup("value"), false);
		finer->targetList = lappend(finer->targetList, tle);
		finer->hasAggs = true;
	}
	return makeVarFromTargetEntry(FINER, tle);
}

/* The same aggregate of a column of finer groups with another function of the same rows. */
static Var *
finer_aggregate(FinerGroups *cxt, const Aggref *aggref, Oid function, Oid type)
{
	Aggref	   *other = copyObject((Aggref *) aggref);

	other->aggfnoid = function;
	other->aggtype = type;
	return finer_column(cxt, (Expr *) other);
}

/* The sum of a column of finer groups, which has the type of such sums: int8 or numeric. */
static Expr *
sum_of(Var *column)
{
	return (Expr *) gj_make_aggregate(column->vartype == INT8OID ? F_SUM_INT8 : F_SUM_NUMERIC,
									  NUMERICOID, (Node *) column, InvalidOid);
}

/* How many rows all groups counted have: 0 if there are no groups. */
static Expr *
count_of(Var *column)
{
	CoalesceExpr *count = makeNode(CoalesceExpr);

	count->coalescetype = INT8OID;
	count->args = list_make2(gj_make_call(F_INT8_NUMERIC, INT8OID, list_make1(sum_of(column))),
							 gj_make_int8(0));
	count->location = -1;
	return (Expr *) count;
}

/* As PostgreSQL divides; sums are NULL where counts are 0. */
static Expr *
average_of(FinerGroups *cxt, const Aggref *aggref, Oid sum, Oid type)
{
	Expr	   *count = sum_of(finer_aggregate(cxt, aggref, F_COUNT_ANY, INT8OID));

	return gj_make_call(F_NUMERIC_DIV, NUMERICOID,
					 list_make2(sum_of(finer_aggregate(cxt, aggref, sum, type)), count));
}

/* An aggregate of rows as one of finer groups; NULL: it cannot be. */
static Expr *
aggregate_of_finer(FinerGroups *cxt, const Aggref *aggref)
{
	if (aggref->aggkind != AGGKIND_NORMAL || aggref->aggorder != NIL || aggref->aggvariadic)
		return NULL;
	switch (aggref->aggfnoid)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
			return count_of(finer_column(cxt, (Expr *) aggref));
		case F_SUM_INT2:
		case F_SUM_INT4:
			return gj_make_call(F_INT8_NUMERIC, INT8OID,
							 list_make1(sum_of(finer_column(cxt, (Expr *) aggref))));
		case F_SUM_INT8:
		case F_SUM_NUMERIC:
			return sum_of(finer_column(cxt, (Expr *) aggref));
		case F_AVG_INT2:
			return average_of(cxt, aggref, F_SUM_INT2, INT8OID);
		case F_AVG_INT4:
			return average_of(cxt, aggref, F_SUM_INT4, INT8OID);
		case F_AVG_INT8:
			return average_of(cxt, aggref, F_SUM_INT8, NUMERICOID);
		case F_AVG_NUMERIC:
			return average_of(cxt, aggref, F_SUM_NUMERIC, NUMERICOID);
		case F_MIN_INT2:
		case F_MIN_INT4:
		case F_MIN_INT8:
		case F_MIN_NUMERIC:
		case F_MIN_DATE:
		case F_MIN_TIMESTAMP:
		case F_MIN_TIMESTAMPTZ:
		case F_MAX_INT2:
		case F_MAX_INT4:
		case F_MAX_INT8:
		case F_MAX_NUMERIC:
		case F_MAX_DATE:
		case F_MAX_TIMESTAMP:
		case F_MAX_TIMESTAMPTZ:
		case F_BOOL_AND:
		case F_BOOL_OR:
		case F_EVERY:
			return (Expr *) gj_make_aggregate(aggref->aggfnoid, aggref->aggtype,
											  (Node *) finer_column(cxt, (Expr *) aggref),
											  InvalidOid);
		default:
			return NULL;
	}
}

/* What reads rows reads finer groups. */
static Node *
read_finer(Node *node, void *context)
{
	FinerGroups *cxt = context;

	if (node == NULL || cxt->fails)
		return node;
	if (IsA(node, Aggref) && is_of_values((Aggref *) node))
	{
		cxt->of_values = true;
		node = expression_tree_mutator(node, read_finer, context);
		cxt->of_values = false;
		return node;
	}
	if (IsA(node, Aggref))
	{
		Expr	   *expr = aggregate_of_finer(cxt, (Aggref *) node);

		cxt->fails |= expr == NULL;
		return (Node *) expr;
	}
	if (IsA(node, Var))
	{
		const Var  *var = (Var *) node;

		cxt->fails |= var->varattno <= 0 ||
			(!is_identical(var) && (cxt->of_values || !is_key(cxt->query, var)));
		return cxt->fails ? node : (Node *) finer_column(cxt, (Expr *) var);
	}
	return expression_tree_mutator(node, read_finer, context);
}

/* True for a query of rows that finer groups can be made of. */
static bool
may_be_grouped(Query *query)
{
	return query->groupingSets == NIL && query->setOperations == NULL && query->rowMarks == NIL &&
		query->constraintDeps == NIL && query->jointree->fromlist != NIL &&
		!query->hasTargetSRFs && !query->hasSubLinks && !query->hasModifyingCTE &&
		!query->hasRecursive && !gj_reads_level((Node *) query, 1) &&
		!contain_volatile_functions((Node *) query);
}

/* The rows of a query, to be grouped: all that it reads goes there. */
static Query *
take_rows(const Query *query)
{
	Query	   *rows = makeNode(Query);

	rows->commandType = CMD_SELECT;
	rows->querySource = query->querySource;
	rows->canSetTag = true;
	rows->hasRowSecurity = query->hasRowSecurity;
	rows->cteList = query->cteList;
	rows->rtable = query->rtable;
#if PG_VERSION_NUM >= 160000
	rows->rteperminfos = query->rteperminfos;
#endif
	rows->jointree = query->jointree;
	rows->stmt_location = -1;
	return rows;
}

static bool
make_finer(Query *query)
{
	FinerGroups cxt = {.query = query};
	RangeTblRef *ref = makeNode(RangeTblRef);
	RangeTblEntry *rte;
	List	   *targets;
	Node	   *having;

	if (!has_obstacle(query) || !may_be_grouped(query))
		return false;
	gj_flatten_groups(query);
	cxt.finer = take_rows(query);
	targets = (List *) read_finer((Node *) query->targetList, &cxt);
	having = read_finer(query->havingQual, &cxt);
	/* one row of aggregates without a key would be there without any row */
	if (cxt.fails || cxt.finer->groupClause == NIL)
		return false;
	query->targetList = targets;
	query->havingQual = having;
	query->cteList = NIL;
	query->rtable = NIL;
#if PG_VERSION_NUM >= 160000
	query->rteperminfos = NIL;
#endif
	IncrementVarSublevelsUp((Node *) cxt.finer, 1, 1);
	ref->rtindex = gj_add_subquery(query, cxt.finer);
	Assert(ref->rtindex == FINER);
	rte = linitial_node(RangeTblEntry, query->rtable);
	rte->alias = makeAlias("finer_groups", NIL);
	rte->eref->aliasname = pstrdup("finer_groups");
	query->jointree = makeFromExpr(list_make1(ref), NULL);
	return true;
}

static bool
make_finer_below(Node *node, void *context)
{
	bool	   *changed = context;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		*changed |= gj_make_finer_groups((Query *) node);
		return false;
	}
	return expression_tree_walker(node, make_finer_below, context);
}

bool
gj_make_finer_groups(Query *query)
{
	bool		changed = false;

	(void) query_tree_walker(query, make_finer_below, &changed, QTW_IGNORE_JOINALIASES);
	changed |= make_finer(query);
	return changed;
}
