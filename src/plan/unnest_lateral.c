/*
 * unnest_lateral.c
 *	  LATERAL subqueries that compute aggregates, as joins with their groups.
 *
 *	FROM c, LATERAL (SELECT max(y) m FROM t WHERE t.k = c.k) x
 *		c LEFT JOIN (SELECT max(y) m, k FROM t GROUP BY k) s ON s.k = c.k, and x is the name of that
 *		join: its columns are s.m, or CASE WHEN s.found THEN s.n ELSE 0 END for a count.
 *	FROM c, LATERAL (SELECT z, max(y) m FROM t WHERE t.k = c.k GROUP BY z) x
 *		c, (SELECT z, max(y) m, k FROM t GROUP BY z, k) x WHERE x.k = c.k; also JOIN and LEFT JOIN.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"

#include "compat.h"
#include "plan/unnest_join.h"

/* A lateral subquery, or NULL.  One of a view with a security barrier is none. */
static RangeTblEntry *
find_lateral(const GjUnnest *cxt, Node *part)
{
	RangeTblEntry *rte;

	if (!IsA(part, RangeTblRef))
		return NULL;
	rte = rt_fetch(((RangeTblRef *) part)->rtindex, cxt->query->rtable);
	return rte->rtekind == RTE_SUBQUERY && rte->lateral && !rte->security_barrier ? rte : NULL;
}

/* Columns of one entry of a range table, as expressions and subqueries read them. */
typedef struct ReadersContext
{
	Index		rti;
	int			depth;
	Index		join;			/* they are not NULL because of this join; 0: they stay */
} ReadersContext;

/* True if the row is read as a whole. */
static bool
look_at_readers(Node *node, ReadersContext *cxt)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		Var		   *var = (Var *) node;

		if (var->varno != (int) cxt->rti || (int) var->varlevelsup != cxt->depth)
			return false;
		if (cxt->join != 0)
			gj_drop_nulling_rel(var, cxt->join);
		return var->varattno <= 0;
	}
	if (IsA(node, Query))
	{
		bool		result;

		cxt->depth++;
		result = query_tree_walker((Query *) node, look_at_readers, cxt, 0);
		cxt->depth--;
		return result;
	}
	return expression_tree_walker(node, look_at_readers, cxt);
}

static bool
is_read_whole(Query *query, Index rti)
{
	ReadersContext cxt = {.rti = rti};

	return query_tree_walker(query, look_at_readers, &cxt, 0);
}

/* All that stands in a part of FROM. */
static Relids
relids_of(Node *part)
{
	Relids		relids = NULL;
	ListCell   *lc;

	if (IsA(part, RangeTblRef))
		return bms_make_singleton(((RangeTblRef *) part)->rtindex);
	if (IsA(part, JoinExpr))
	{
		JoinExpr   *join = (JoinExpr *) part;

		relids = bms_union(relids_of(join->larg), relids_of(join->rarg));
		return join->rtindex != 0 ? bms_add_member(relids, join->rtindex) : relids;
	}
	foreach(lc, ((FromExpr *) part)->fromlist)
		relids = bms_add_members(relids, relids_of(lfirst(lc)));
	return relids;
}

/* True if the outer sides of ties read these parts of FROM alone. */
static bool
reads_only(const List *ties, const List *parts)
{
	Relids		relids = NULL;
	ListCell   *lc;

	foreach(lc, parts)
		relids = bms_add_members(relids, relids_of(lfirst(lc)));
	foreach(lc, ties)
	{
		GjTie	   *tie = lfirst(lc);
		Node	   *outer = list_nth(tie->clause->args, tie->inner_first ? 1 : 0);

		if (!bms_is_subset(pull_varnos_of_level(NULL, outer, 1), relids))
			return false;
	}
	return true;
}

/* True if some column is not NULL where there are no rows. */
static bool
has_value_without_rows(const Query *sub)
{
	ListCell   *lc;

	foreach(lc, sub->targetList)
		if (!gj_is_null_without_rows(lfirst_node(TargetEntry, lc)))
			return true;
	return false;
}

/*
 * The join of what is left of a lateral subquery of aggregates with its groups; NULL: it stays.
 * nullable: an outer join further up makes NULLs of its columns.
 */
static JoinExpr *
join_lateral_aggregate(GjUnnest *cxt, Index rti, List *left, bool nullable)
{
	RangeTblEntry *rte = rt_fetch(rti, cxt->query->rtable);
	Query	   *sub = rte->subquery;
	List	   *ties,
			   *keys;
	int			ncolumns = list_length(sub->targetList);
	Index		groups;
	TargetEntry *found;

	if (!gj_is_aggregate(sub, cxt->here) || sub->sortClause != NIL ||
		(nullable && has_value_without_rows(sub)) || is_read_whole(cxt->query, rti))
		return NULL;
	sub = copyObject(sub);
	if (!gj_take_ties(cxt, sub, &ties) || !reads_only(ties, left))
		return NULL;
	gj_show_columns(sub);
	keys = gj_add_keys(sub, ties);
	found = gj_add_found(sub);
	groups = gj_add_subquery(cxt->query, sub);
	rte->rtekind = RTE_JOIN;
	rte->jointype = JOIN_LEFT;
	rte->subquery = NULL;
	rte->lateral = false;
	rte->joinaliasvars = NIL;
	for (int i = 0; i < ncolumns; i++)
		rte->joinaliasvars = lappend(rte->joinaliasvars,
									 gj_value_of_group(cxt, groups, rti, list_nth(sub->targetList, i), found));
	cxt->changed = true;
	return gj_make_left_join(left, groups, gj_tie_conditions(groups, ties, keys), rti);
}

/* True for a query of groups, no more. */
static bool
is_grouped(Query *sub, const GjAround *around)
{
	Query		rows = *sub;

	rows.groupClause = NIL;
	rows.havingQual = NULL;
	return sub->groupClause != NIL && gj_is_plain_query(&rows) &&
		!contain_volatile_functions((Node *) sub) && !gj_can_fail((Node *) sub, around);
}

/*
 * Makes a lateral subquery of groups, with what is left of it in FROM, one that is not lateral; the
 * conditions of the join, NIL: it stays.
 */
static List *
join_lateral_groups(GjUnnest *cxt, Index rti, List *left)
{
	RangeTblEntry *rte = rt_fetch(rti, cxt->query->rtable);
	Query	   *sub = rte->subquery;
	List	   *ties,
			   *keys;

	if (!is_grouped(sub, cxt->here) || is_read_whole(cxt->query, rti) || gj_needs_left_join(cxt))
		return NIL;
	sub = copyObject(sub);
	if (!gj_take_ties(cxt, sub, &ties) || !reads_only(ties, left))
		return NIL;
	sub->sortClause = NIL;
	gj_show_columns(sub);
	keys = gj_add_keys(sub, ties);
	while (list_length(rte->eref->colnames) < list_length(sub->targetList))
		rte->eref->colnames = lappend(rte->eref->colnames, makeString(pstrdup("key")));
	rte->subquery = sub;
	rte->lateral = false;
	cxt->changed = true;
	return gj_tie_conditions(rti, ties, keys);
}

static bool
is_true(Node *quals)
{
	return quals == NULL || (IsA(quals, Const) && !((Const *) quals)->constisnull &&
							 DatumGetBool(((Const *) quals)->constvalue));
}

/* The join without a lateral subquery on its right, or as it is. */
static Node *
join_without_lateral(GjUnnest *cxt, JoinExpr *join, bool nullable)
{
	Index		rti = ((RangeTblRef *) join->rarg)->rtindex;
	List	   *left = list_make1(join->larg);
	List	   *conditions = join_lateral_groups(cxt, rti, left);
	JoinExpr   *result;

	if (conditions != NIL)
	{
		join->quals = gj_and_conditions(join->quals, conditions);
		return (Node *) join;
	}
	/* there is one row, so that a LEFT JOIN of it adds none */
	if (join->jointype == JOIN_LEFT && !is_true(join->quals))
		return (Node *) join;
	result = join_lateral_aggregate(cxt, rti, left, nullable);
	if (result == NULL)
		return (Node *) join;
	if (join->jointype == JOIN_LEFT)
	{
		ReadersContext readers = {.rti = rti,.join = join->rtindex};

		(void) query_tree_walker(cxt->query, look_at_readers, &readers, 0);
	}
	return is_true(join->quals) ? (Node *) result : (Node *) makeFromExpr(list_make1(result), join->quals);
}

/* A part of FROM without its lateral subqueries. */
static Node *
rewrite_part(GjUnnest *cxt, Node *part, bool nullable)
{
	JoinExpr   *join = (JoinExpr *) part;

	if (!IsA(part, JoinExpr))
		return part;
	join->larg = rewrite_part(cxt, join->larg, nullable || join->jointype == JOIN_RIGHT ||
							  join->jointype == JOIN_FULL);
	join->rarg = rewrite_part(cxt, join->rarg, nullable || join->jointype == JOIN_LEFT ||
							  join->jointype == JOIN_FULL);
	if ((join->jointype != JOIN_INNER && join->jointype != JOIN_LEFT) ||
		find_lateral(cxt, join->rarg) == NULL)
		return part;
	return join_without_lateral(cxt, join, nullable);
}

void
gj_join_laterals(GjUnnest *cxt)
{
	FromExpr   *from = cxt->query->jointree;
	List	   *left = NIL;
	ListCell   *lc;

	foreach(lc, from->fromlist)
	{
		Node	   *part = rewrite_part(cxt, lfirst(lc), false);

		if (left != NIL && find_lateral(cxt, part) != NULL)
		{
			Index		rti = ((RangeTblRef *) part)->rtindex;
			List	   *conditions = join_lateral_groups(cxt, rti, left);
			JoinExpr   *join = conditions != NIL ? NULL : join_lateral_aggregate(cxt, rti, left, false);

			if (conditions != NIL)
				from->quals = gj_and_conditions(from->quals, conditions);
			if (join != NULL)
			{
				left = list_make1(join);
				continue;
			}
		}
		left = lappend(left, part);
	}
	from->fromlist = left;
}
