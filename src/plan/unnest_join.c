/*
 * unnest_join.c
 *	  Subqueries that equalities tie to the row outside, as left joins with their groups.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/prep.h"
#include "parser/parse_clause.h"
#include "parser/parse_oper.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "plan/make_expr.h"
#include "plan/safety.h"
#include "plan/unnest_join.h"

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

bool
gj_reads_level(Node *node, int least)
{
	OuterContext cxt = {.depth = 0,.least = least};

	if (node != NULL && IsA(node, Query))
		return query_tree_walker((Query *) node, reads_outer, &cxt, QTW_IGNORE_JOINALIASES);
	return reads_outer(node, &cxt);
}

bool
gj_is_plain_query(const Query *query)
{
	return query->commandType == CMD_SELECT && query->setOperations == NULL &&
		query->limitCount == NULL && query->limitOffset == NULL && query->rowMarks == NIL &&
		query->groupClause == NIL && query->groupingSets == NIL && query->havingQual == NULL &&
		query->windowClause == NIL && query->distinctClause == NIL && query->cteList == NIL &&
		!query->hasWindowFuncs && !query->hasTargetSRFs && !query->hasModifyingCTE &&
		query->jointree->fromlist != NIL;
}

SubLink *
gj_make_sublink(SubLinkType type, Query *sub)
{
	SubLink    *sublink = makeNode(SubLink);

	sublink->subLinkType = type;
	sublink->subselect = (Node *) sub;
	sublink->location = -1;
	return sublink;
}

Node *
gj_and_conditions(Node *quals, List *conditions)
{
	return (Node *) make_ands_explicit(list_concat(make_ands_implicit((Expr *) quals), conditions));
}

/* ---- scalar aggregates */

/*
 * True if the clause is an equality of an expression of the subquery and one of the query around
 * it.  Rows of one group are equal to the same outer values: the operator is of the family that
 * groups the inner type.  An outer value is equal to one group: two timestamps without a time zone can
 * be the same one with it, but operators that look at a setting are not immutable.
 */
static bool
find_tie(Node *clause, GjTie *tie)
{
	OpExpr	   *op = (OpExpr *) clause;
	TypeCacheEntry *type;
	Oid			inner_type;

	if (!IsA(clause, OpExpr) || list_length(op->args) != 2 || contain_volatile_functions(clause) ||
		checkExprHasSubLink(clause) || op->opno >= FirstNormalObjectId ||
		op_volatile(op->opno) != PROVOLATILE_IMMUTABLE)
		return false;
	for (int i = 0; i < 2; i++)
	{
		Node	   *inner = list_nth(op->args, i);
		Node	   *outer = list_nth(op->args, 1 - i);

		if (gj_reads_level(inner, 1) || !contain_vars_of_level(inner, 0) ||
			contain_vars_of_level(outer, 0) || gj_reads_level(outer, 2) || !gj_reads_level(outer, 1) ||
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
			return (Node *) gj_make_int8(0);
		return (Node *) makeNullConst(aggref->aggtype, -1, aggref->aggcollid);
	}
	return expression_tree_mutator(node, without_rows, context);
}

Index
gj_add_subquery(Query *query, Query *subquery)
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

JoinExpr *
gj_make_left_join(List *left, Index subquery, List *conditions, Index join_rti)
{
	RangeTblRef *ref = makeNode(RangeTblRef);
	JoinExpr   *join = makeNode(JoinExpr);

	ref->rtindex = subquery;
	join->jointype = JOIN_LEFT;
	join->larg = list_length(left) == 1 ? linitial(left) : (Node *) makeFromExpr(left, NULL);
	join->rarg = (Node *) ref;
	join->quals = (Node *) make_ands_explicit(conditions);
	join->rtindex = join_rti;
	return join;
}

/* A new range table entry for a join; its number. */
static Index
add_join_entry(Query *query)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);

	rte->rtekind = RTE_JOIN;
	rte->jointype = JOIN_LEFT;
	rte->eref = makeAlias("subquery_join", NIL);
	rte->inFromCl = true;
	query->rtable = lappend(query->rtable, rte);
	return list_length(query->rtable);
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

TargetEntry *
gj_add_group(Query *query, Expr *expr)
{
	TargetEntry *tle = add_target(query, expr, "key");
	SortGroupClause *group = makeNode(SortGroupClause);

	group->tleSortGroupRef = assignSortGroupRef(tle, query->targetList);
	get_sort_group_operators(exprType((Node *) expr), false, true, false, &group->sortop,
							 &group->eqop, NULL, &group->hashable);
	query->groupClause = lappend(query->groupClause, group);
	return tle;
}

List *
gj_add_keys(Query *sub, const List *ties)
{
	List	   *keys = NIL;
	ListCell   *lc;

	foreach(lc, ties)
		keys = lappend(keys, gj_add_group(sub, ((GjTie *) lfirst(lc))->inner));
	return keys;
}

List *
gj_tie_conditions(Index subquery, const List *ties, const List *keys)
{
	List	   *conditions = NIL;
	ListCell   *lc,
			   *lc2;

	forboth(lc, ties, lc2, keys)
	{
		GjTie	   *tie = lfirst(lc);
		OpExpr	   *clause = copyObject(tie->clause);
		Node	   *key = (Node *) makeVarFromTargetEntry(subquery, lfirst(lc2));
		Node	   *outer = list_nth(clause->args, tie->inner_first ? 1 : 0);

		IncrementVarSublevelsUp(outer, -1, 1);
		clause->args = tie->inner_first ? list_make2(key, outer) : list_make2(outer, key);
		conditions = lappend(conditions, clause);
	}
	return conditions;
}

/*
 * Splits the subquery's conditions into those that tie it to the row outside and others.  False if
 * something else does, too.
 */
static bool
split_conditions(Query *sub, List **ties, List **others)
{
	FromExpr   *from = sub->jointree;
	/* what all sides of an OR have in common may be a tie */
	List	   *quals = make_ands_implicit(canonicalize_qual((Expr *) from->quals, false));
	Node	   *all = from->quals;
	bool		reads;
	ListCell   *lc;

	*ties = *others = NIL;
	foreach(lc, quals)
	{
		GjTie	   *tie = palloc(sizeof(GjTie));

		if (find_tie(lfirst(lc), tie))
			*ties = lappend(*ties, tie);
		else
			*others = lappend(*others, lfirst(lc));
	}
	/* all that is left */
	from->quals = (Node *) *others;
	reads = gj_reads_level((Node *) sub, 1);
	from->quals = all;
	return *ties != NIL && !reads;
}

bool
gj_is_aggregate(Query *sub, const GjAround *around)
{
	return gj_is_plain_query(sub) && sub->hasAggs &&
	/* its value without rows is one of the query around it */
		!checkExprHasSubLink((Node *) sub->targetList) &&
		!contain_volatile_functions((Node *) sub) && !gj_can_fail((Node *) sub, around);
}

/* ---- which groups are asked for */

/* True if a condition is one on columns of table `rti` alone that may be evaluated once more. */
static bool
is_of_table(Node *clause, Index rti, const GjAround *here)
{
	List	   *vars;
	ListCell   *lc;

	if (checkExprHasSubLink(clause) || gj_reads_level(clause, 1) ||
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

/* True if a table stands in a part of FROM by itself, or on the left of LEFT JOINs. */
static bool
stands_in(Node *part, Index rti)
{
	JoinExpr   *join = (JoinExpr *) part;
	ListCell   *lc;

	if (IsA(part, RangeTblRef))
		return ((RangeTblRef *) part)->rtindex == (int) rti;
	if (IsA(part, JoinExpr))
		return join->jointype == JOIN_LEFT && stands_in(join->larg, rti);
	foreach(lc, ((FromExpr *) part)->fromlist)
		if (stands_in(lfirst(lc), rti))
			return true;
	return false;
}

RangeTblEntry *
gj_plain_table(const Query *query, Index rti)
{
	RangeTblEntry *rte = rt_fetch(rti, query->rtable);

	return rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_RELATION &&
		stands_in((Node *) query->jointree, rti) ? rte : NULL;
}

RangeTblEntry *
gj_only_table(const Query *query, Index rti)
{
	RangeTblEntry *rte = gj_plain_table(query, rti);

	return rte != NULL && !(rte->inh && has_subclass(rte->relid)) ? rte : NULL;
}

/* EXISTS (SELECT FROM table of `outer` WHERE conditions), these being on it and one level up. */
static Node *
exists_row(const Query *outer, const RangeTblEntry *table, List *conditions)
{
	Query	   *query = makeNode(Query);
	RangeTblEntry *rte = copyObject((RangeTblEntry *) table);
	RangeTblRef *ref = makeNode(RangeTblRef);

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
	return (Node *) gj_make_sublink(EXISTS_SUBLINK, query);
}

/*
 * A condition for a subquery that leaves the groups for which the query's other conditions on the
 * tie's table leave a row; NULL: that may be most of them, or it cannot be said.
 */
static Node *
wanted_groups(const GjUnnest *cxt, const GjTie *tie)
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
	table = gj_plain_table(cxt->query, outer->varno);
	if (table == NULL || table->tablesample != NULL || table->securityQuals != NIL)
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

/*
 * The same where the query has a condition k IN (SELECT ... WHERE ...) on the tie's column k: the
 * subquery's rows must be among these, too.
 */
static Node *
wanted_members(const GjUnnest *cxt, const GjTie *tie)
{
	Var		   *outer = list_nth(tie->clause->args, tie->inner_first ? 1 : 0);
	ListCell   *lc;

	if (!IsA(outer, Var) || outer->varlevelsup != 1 ||
		exprType((Node *) outer) != exprType((Node *) tie->inner) ||
		gj_plain_table(cxt->query, outer->varno) == NULL)
		return NULL;
	foreach(lc, make_ands_implicit((Expr *) cxt->query->jointree->quals))
	{
		SubLink    *in = lfirst(lc);
		OpExpr	   *test;
		Query	   *members;
		Var		   *member_of;

		if (!IsA(in, SubLink) || in->subLinkType != ANY_SUBLINK || !IsA(in->testexpr, OpExpr))
			continue;
		test = (OpExpr *) in->testexpr;
		members = (Query *) in->subselect;
		member_of = linitial(test->args);
		/* the same operator on the same types: what is equal to a member's equal is one's equal */
		if (test->opno != tie->clause->opno || test->inputcollid != tie->clause->inputcollid ||
			!IsA(member_of, Var) || member_of->varlevelsup != 0 ||
			member_of->varno != outer->varno || member_of->varattno != outer->varattno ||
			!gj_is_plain_query(members) || members->jointree->quals == NULL ||
			members->hasAggs || members->hasSubLinks || gj_reads_level((Node *) members, 1) ||
			!gj_is_repeatable(cxt->query, members) ||
			contain_volatile_functions((Node *) members) || gj_can_fail((Node *) members, cxt->here))
			continue;
		in = copyObject(in);
		linitial(((OpExpr *) in->testexpr)->args) = copyObject(tie->inner);
		/* it is a level deeper, and may read CTEs of the query */
		IncrementVarSublevelsUp(in->subselect, 1, 1);
		return (Node *) in;
	}
	return NULL;
}

/* Leaves the groups of a subquery, tied by these, that are asked for. */
static void
restrict_groups(const GjUnnest *cxt, Query *sub, List *ties)
{
	List	   *quals = make_ands_implicit((Expr *) sub->jointree->quals);
	ListCell   *lc;

	foreach(lc, ties)
	{
		Node	   *wanted = wanted_groups(cxt, lfirst(lc));

		if (wanted == NULL)
			wanted = wanted_members(cxt, lfirst(lc));
		if (wanted == NULL)
			continue;
		sub->jointree->quals = (Node *) make_ands_explicit(lappend(quals, wanted));
		sub->hasSubLinks = true;
		return;
	}
}

/* ---- left joins with groups */

bool
gj_take_ties(const GjUnnest *cxt, Query *sub, List **ties)
{
	List	   *others;

	if (!split_conditions(sub, ties, &others))
		return false;
	sub->jointree->quals = others != NIL ? (Node *) make_ands_explicit(others) : NULL;
	restrict_groups(cxt, sub, *ties);
	return true;
}

/* What an aggregate expression is where there are no rows. */
static Node *
value_without_rows(const TargetEntry *value)
{
	return eval_const_expressions(NULL, without_rows((Node *) value->expr, NULL));
}

bool
gj_is_null_without_rows(const TargetEntry *value)
{
	Node	   *none = value_without_rows(value);

	return IsA(none, Const) && ((Const *) none)->constisnull;
}

/*
 * An expression that can fail would be evaluated for rows that nobody asks for if PostgreSQL made an
 * inner join of the left one, and then had conditions checked ahead of it.
 */
bool
gj_needs_left_join(const GjUnnest *cxt)
{
	return gj_conditions_can_fail(cxt->here);
}

/* CASE WHEN condition THEN value ELSE otherwise END: no left join becomes an inner one by it. */
static Node *
value_if(Expr *condition, Expr *value, Expr *otherwise)
{
	return (Node *) gj_make_case(list_make1(gj_make_when(condition, value)), otherwise);
}

Node *
gj_value_of_group(const GjUnnest *cxt, Index rti, Index join, const TargetEntry *value,
				  const TargetEntry *found)
{
	Expr	   *result = (Expr *) joined_column(rti, join, value);

	if (gj_is_null_without_rows(value) && !gj_needs_left_join(cxt))
		return (Node *) result;
	return value_if((Expr *) joined_column(rti, join, found), result,
					(Expr *) value_without_rows(value));
}

void
gj_show_columns(Query *sub)
{
	ListCell   *lc;

	foreach(lc, sub->targetList)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		tle->resjunk = false;
		/* as EXPLAIN shows it */
		if (tle->resname == NULL || strcmp(tle->resname, "?column?") == 0)
			tle->resname = pstrdup("value");
	}
}

TargetEntry *
gj_add_found(Query *sub)
{
	return add_target(sub, (Expr *) makeBoolConst(true, false), "found");
}

/* Joins groups, or rows, with all that the query has in FROM; the number of the join. */
static Index
join_groups(GjUnnest *cxt, Query *sub, Index *rti, const List *ties, const List *keys)
{
	FromExpr   *from = cxt->query->jointree;
	Index		join;

	*rti = gj_add_subquery(cxt->query, sub);
	join = add_join_entry(cxt->query);
	from->fromlist = list_make1(gj_make_left_join(from->fromlist, *rti,
											   gj_tie_conditions(*rti, ties, keys), join));
	cxt->changed = true;
	return join;
}

/* What an equal SubLink became before; NULL: there was none. */
static Node *
joined_before(const GjUnnest *cxt, const SubLink *sublink)
{
	ListCell   *lc,
			   *lc2;

	forboth(lc, cxt->sublinks, lc2, cxt->values)
		if (equal(lfirst(lc), sublink))
			return copyObject(lfirst(lc2));
	return NULL;
}

static Node *
remember(GjUnnest *cxt, const SubLink *sublink, Node *value)
{
	cxt->sublinks = lappend(cxt->sublinks, copyObject((SubLink *) sublink));
	cxt->values = lappend(cxt->values, value);
	return copyObject(value);
}

Node *
gj_join_aggregate(GjUnnest *cxt, const SubLink *sublink)
{
	Query	   *sub = (Query *) sublink->subselect;
	List	   *ties,
			   *keys;
	Index		rti,
				join;
	TargetEntry *found;
	Node	   *value = joined_before(cxt, sublink);

	if (value != NULL)
		return value;
	if (!gj_is_aggregate(sub, cxt->here) || list_length(sub->targetList) != 1)
		return NULL;
	sub = copyObject(sub);
	if (!gj_take_ties(cxt, sub, &ties))
		return NULL;
	sub->sortClause = NIL;
	linitial_node(TargetEntry, sub->targetList)->ressortgroupref = 0;
	gj_show_columns(sub);
	keys = gj_add_keys(sub, ties);
	found = gj_add_found(sub);
	join = join_groups(cxt, sub, &rti, ties, keys);
	return remember(cxt, sublink, gj_value_of_group(cxt, rti, join, linitial(sub->targetList), found));
}

/* True where the join has found a row: a key that equals something is not NULL. */
static Expr *
has_row(Index rti, Index join, const List *keys)
{
	return gj_make_null_test((Expr *) joined_column(rti, join, linitial(keys)), IS_NOT_NULL);
}

Node *
gj_join_lookup(GjUnnest *cxt, const SubLink *sublink)
{
	Query	   *sub = (Query *) sublink->subselect;
	List	   *ties,
			   *others;
	List	   *keys = NIL;
	Index		rti,
				join;
	Node	   *value = joined_before(cxt, sublink);
	ListCell   *lc;

	if (value != NULL)
		return value;
	if (!gj_is_plain_query(sub) || sub->hasAggs || sub->sortClause != NIL ||
		list_length(sub->targetList) != 1)
		return NULL;
	sub = copyObject(sub);
	if (!split_conditions(sub, &ties, &others) || !gj_is_lookup(sub, cxt->here))
		return NULL;
	sub->jointree->quals = others != NIL ? (Node *) make_ands_explicit(others) : NULL;
	gj_show_columns(sub);
	foreach(lc, ties)
		keys = lappend(keys, add_target(sub, ((GjTie *) lfirst(lc))->inner, "key"));
	join = join_groups(cxt, sub, &rti, ties, keys);
	value = (Node *) joined_column(rti, join, linitial(sub->targetList));
	if (gj_needs_left_join(cxt))
		value = value_if(has_row(rti, join, keys), (Expr *) value, NULL);
	return remember(cxt, sublink, value);
}

/* True if a limit of rows leaves the first one. */
static bool
leaves_a_row(Node *limit)
{
	const Const *value = limit != NULL ? gj_constant_limit(limit) : NULL;

	return limit == NULL ||
		(value != NULL && (value->constisnull || DatumGetInt64(value->constvalue) > 0));
}

/* A copy without all that does not matter to whether there is a row; NULL if there is more to it. */
static Query *
simple_exists(const Query *query)
{
	Query	   *sub = copyObject((Query *) query);

	if (leaves_a_row(sub->limitCount))
		sub->limitCount = NULL;
	if (!sub->hasDistinctOn)
		sub->distinctClause = NIL;
	if (!gj_is_plain_query(sub) || sub->hasAggs)
		return NULL;
	sub->sortClause = NIL;
	sub->targetList = NIL;
	return sub;
}

Node *
gj_join_exists(GjUnnest *cxt, const SubLink *sublink)
{
	Query	   *sub;
	List	   *ties,
			   *keys;
	Index		rti,
				join;
	Node	   *value = joined_before(cxt, sublink);

	if (value != NULL)
		return value;
	sub = simple_exists((Query *) sublink->subselect);
	if (sub == NULL || contain_volatile_functions((Node *) sub) ||
		gj_can_fail((Node *) sub, cxt->here) || !gj_take_ties(cxt, sub, &ties))
		return NULL;
	keys = gj_add_keys(sub, ties);
	join = join_groups(cxt, sub, &rti, ties, keys);
	value = (Node *) has_row(rti, join, keys);
	if (gj_needs_left_join(cxt))
		value = value_if((Expr *) value, (Expr *) makeBoolConst(true, false),
						 (Expr *) makeBoolConst(false, false));
	return remember(cxt, sublink, value);
}
