/*
 * join_clauses.c
 *	  What the device can do with join clauses: keys, bounds of ranges, other conditions.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "plan/join_build.h"
#include "plan/reasons.h"

GjOp
gj_mirrored(GjOp op)
{
	switch (op)
	{
		case GJ_OP_LT_I:
			return GJ_OP_GT_I;
		case GJ_OP_LE_I:
			return GJ_OP_GE_I;
		case GJ_OP_GT_I:
			return GJ_OP_LT_I;
		case GJ_OP_GE_I:
			return GJ_OP_LE_I;
		case GJ_OP_LT_F:
			return GJ_OP_GT_F;
		case GJ_OP_LE_F:
			return GJ_OP_GE_F;
		case GJ_OP_GT_F:
			return GJ_OP_LT_F;
		case GJ_OP_GE_F:
			return GJ_OP_LE_F;
		default:
			return op;
	}
}

uint32
gj_sources_of_expr(GjBuilder *builder, Expr *expr)
{
	return gj_builder_sources_of(builder, pull_varnos(builder->root, (Node *) expr));
}

/* The equivalence class that a clause is made from; NULL: it is from none. */
static EquivalenceClass *
class_of(const RestrictInfo *rinfo)
{
	EquivalenceClass *ec = rinfo->parent_ec;

	while (ec != NULL && ec->ec_merged)
		ec = ec->ec_merged;
	return ec;
}

/* A member of an equivalence class that can still be read; NULL if there is none. */
static Expr *
live_member(GjAttempt *a, EquivalenceClass *ec)
{
	ListCell   *lc;

	foreach(lc, ec->ec_members)
	{
		EquivalenceMember *em = lfirst(lc);
		uint32		sources = gj_builder_sources_of(a->builder, em->em_relids);

		if (!em->em_is_const && !em->em_is_child && sources != 0 &&
			(sources & ~(a->joined & ~a->dead)) == 0)
			return em->em_expr;
	}
	return NULL;
}

/*
 * PostgreSQL's semijoin passes on the columns of the row that matched first, and joins
 * above it may compare with one of these instead of a column of the outer side that is
 * equal.  Here the matching side is gone by then: such a clause gets an equal expression.
 * The clause itself if that is not possible, or not needed.
 */
static RestrictInfo *
without_dead_sources(GjAttempt *a, RestrictInfo *rinfo)
{
	EquivalenceClass *ec = class_of(rinfo);
	Expr	   *sides[2];
	Oid			op;
	RestrictInfo *result;

	if ((gj_builder_sources_of(a->builder, rinfo->clause_relids) & a->dead) == 0 || ec == NULL ||
		!is_opclause(rinfo->clause) || list_length(((OpExpr *) rinfo->clause)->args) != 2)
		return rinfo;
	sides[0] = linitial(((OpExpr *) rinfo->clause)->args);
	sides[1] = lsecond(((OpExpr *) rinfo->clause)->args);
	for (int i = 0; i < 2; i++)
		if (gj_sources_of_expr(a->builder, sides[i]) & a->dead)
			sides[i] = live_member(a, ec);
	if (sides[0] == NULL || sides[1] == NULL)
		return rinfo;
	op = get_opfamily_member(linitial_oid(ec->ec_opfamilies), exprType((Node *) sides[0]),
							 exprType((Node *) sides[1]), BTEqualStrategyNumber);
	if (!OidIsValid(op))
		return rinfo;
	result = makeNode(RestrictInfo);
	*result = *rinfo;
	result->clause = make_opclause(op, BOOLOID, false, sides[0], sides[1], InvalidOid,
								   ec->ec_collation);
	result->clause_relids = pull_varnos(a->root, (Node *) result->clause);
	return result;
}

/* True if the clause, or the same with its sides exchanged, is in the list. */
static bool
is_repeated(List *rinfos, const RestrictInfo *rinfo)
{
	OpExpr	   *op = (OpExpr *) rinfo->clause;
	ListCell   *lc;

	foreach(lc, rinfos)
	{
		OpExpr	   *other = (OpExpr *) lfirst_node(RestrictInfo, lc)->clause;

		if (equal(op, other))
			return true;
		if (IsA(op, OpExpr) && IsA(other, OpExpr) && list_length(op->args) == 2 &&
			list_length(other->args) == 2 && get_commutator(op->opno) == other->opno &&
			equal(linitial(op->args), lsecond(other->args)) &&
			equal(lsecond(op->args), linitial(other->args)))
			return true;
	}
	return false;
}

/* Finds what the device can do with a clause. */
static void
classify_clause(GjAttempt *a, RestrictInfo *rinfo, GjJoinClause *clause)
{
	GjBuilder  *builder = a->builder;
	bool		can_fail = false;

	clause->rinfo = rinfo;
	clause->sources = gj_builder_sources_of(builder, rinfo->clause_relids);
	/* as in can_filter(): PostgreSQL checks the rest in order of security level */
	clause->is_device = clause->sources != 0 && (clause->sources & a->dead) == 0 &&
		gj_compilable(builder, rinfo->clause, &can_fail) &&
		!(can_fail && rinfo->security_level > 0);
	if (!clause->is_device)
	{
		if (can_fail)
			gj_refuse("it can fail, and row security hides rows");
		else if (clause->sources == 0 || (clause->sources & a->dead) != 0)
			gj_refuse("it reads what is not there any more");
		clause->why = gj_swap_obstacle(NULL);
	}
	clause->is_key = clause->is_device &&
		gj_key_clause(rinfo->clause, &clause->left, &clause->right) &&
		!gj_compares_average(builder, rinfo->clause);
	clause->is_comparison = clause->is_key ||
		(clause->is_device &&
		 gj_inequality_clause(rinfo->clause, &clause->left, &clause->right, &clause->op));
	if (!clause->is_device && clause->sources != 0 && (clause->sources & a->dead) == 0 &&
		rinfo->security_level == 0)
		clause->set = gj_set_clause(builder, rinfo->clause);
	if (clause->set != NULL)
	{
		clause->left = clause->set->left;
		clause->right = clause->set->right;
	}
	if (clause->is_comparison || clause->set != NULL)
	{
		clause->left_sources = gj_sources_of_expr(builder, clause->left);
		clause->right_sources = gj_sources_of_expr(builder, clause->right);
	}
}

GjJoinClauses
gj_classify_clauses(GjAttempt *a, List *rinfos)
{
	GjJoinClauses clauses = {palloc0(sizeof(GjJoinClause) * Max(list_length(rinfos), 1))};
	List	   *unique = NIL;
	ListCell   *lc;

	foreach(lc, rinfos)
	{
		RestrictInfo *rinfo = without_dead_sources(a, lfirst_node(RestrictInfo, lc));

		if (!is_repeated(unique, rinfo))
			unique = lappend(unique, rinfo);
	}
	foreach(lc, unique)
		classify_clause(a, lfirst_node(RestrictInfo, lc), &clauses.array[clauses.n++]);
	return clauses;
}

/* One side is on source s alone, the other one on what is joined already. */
static bool
joins_source(const GjAttempt *a, const GjJoinClause *clause, int s)
{
	uint32		inner = 1u << s;

	return (clause->right_sources == inner && clause->left_sources != 0 &&
			(clause->left_sources & ~a->joined) == 0) ||
		(clause->left_sources == inner && clause->right_sources != 0 &&
		 (clause->right_sources & ~a->joined) == 0);
}

bool
gj_compares(const GjAttempt *a, const GjJoinClause *clause, int s, bool equal)
{
	return clause->is_comparison && !clause->used && clause->is_key == equal &&
		joins_source(a, clause, s);
}

bool
gj_compares_sets(const GjAttempt *a, const GjJoinClause *clause, int s)
{
	return clause->set != NULL && !clause->used && joins_source(a, clause, s);
}

bool
gj_can_check(const GjAttempt *a, const GjJoinClause *clause, int s)
{
	return !clause->used && clause->is_device &&
		(clause->sources & ~(a->joined | 1u << s)) == 0;
}

/* ---- what equivalence classes say beside */

/* The equivalence class of a clause; NULL: none, or PostgreSQL lacks an operator that it implies. */
static EquivalenceClass *
whole_class_of(const RestrictInfo *rinfo)
{
	EquivalenceClass *ec = class_of(rinfo);

	return ec != NULL && !ec->ec_broken ? ec : NULL;
}

bool
gj_share_classes(const GjJoinClauses *clauses)
{
	for (int i = 0; i < clauses->n; i++)
		for (int j = 0; j < i; j++)
			if (whole_class_of(clauses->array[i].rinfo) != NULL &&
				whole_class_of(clauses->array[i].rinfo) == whole_class_of(clauses->array[j].rinfo))
				return true;
	return false;
}

/*
 * The clause of a class that compares source s with what is joined: the first one with the streamed
 * source, or else with any; -1: there is none.
 */
static int
find_of_class(const GjAttempt *a, const GjJoinClauses *clauses, const EquivalenceClass *ec, int s)
{
	int			found = -1;

	for (int i = 0; i < clauses->n; i++)
		if (whole_class_of(clauses->array[i].rinfo) == ec && gj_compares(a, &clauses->array[i], s, true))
		{
			if (clauses->array[i].sources == (1u << s | 1))
				return i;
			if (found < 0)
				found = i;
		}
	return found;
}

void
gj_add_implied(GjAttempt *a, GjJoinClauses *clauses, int s)
{
	RelOptInfo *rel = a->trees[s]->rel;
	Relids		joined = gj_joined_relids(a);
	List	   *implied;
	ListCell   *lc;

	if (IS_OTHER_REL(rel))
		return;
	implied = gj_implied_equalities(a->root, bms_union(joined, rel->relids), joined, rel);
	foreach(lc, implied)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		EquivalenceClass *ec = whole_class_of(rinfo);
		GjJoinClause clause = {.is_implied = true};

		if (ec == NULL || find_of_class(a, clauses, ec, s) >= 0)
			continue;
		classify_clause(a, rinfo, &clause);
		if (!gj_compares(a, &clause, s, true))
			continue;
		clauses->array = repalloc(clauses->array, sizeof(GjJoinClause) * (clauses->n + 1));
		clauses->array[clauses->n++] = clause;
	}
}

void
gj_drop_repeated(const GjAttempt *a, GjJoinClauses *clauses, int s)
{
	for (int i = 0; i < clauses->n; i++)
	{
		EquivalenceClass *ec = whole_class_of(clauses->array[i].rinfo);

		if (ec != NULL && gj_compares(a, &clauses->array[i], s, true) &&
			find_of_class(a, clauses, ec, s) != i)
			clauses->array[i].used = true;
	}
}
