/*
 * outer_joins.c
 *	  What PostgreSQL notes of outer joins in expressions and relations, which programs do not need.
 *
 * From 16 on a Var tells which outer joins may have made it NULL, as it is where it is used, and
 * relations of joins have the numbers of outer joins beside those of tables.  In a program a column
 * is a source's: where it is used says by itself which steps come before.  So columns are looked for
 * without regard to that, and only what returns to PostgreSQL says it again.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/pathnode.h"

#include "plan/outer_joins.h"

bool
gj_same_column(const void *a, const void *b)
{
	if (IsA(a, Var) && IsA(b, Var))
		return ((const Var *) a)->varno == ((const Var *) b)->varno &&
			((const Var *) a)->varattno == ((const Var *) b)->varattno &&
			((const Var *) a)->varlevelsup == ((const Var *) b)->varlevelsup;
	if (IsA(a, PlaceHolderVar) && IsA(b, PlaceHolderVar))
		return ((const PlaceHolderVar *) a)->phid == ((const PlaceHolderVar *) b)->phid &&
			((const PlaceHolderVar *) a)->phlevelsup == ((const PlaceHolderVar *) b)->phlevelsup;
	return equal(a, b);
}

void *
gj_find_column(List *exprs, const void *expr)
{
	ListCell   *lc;

	foreach(lc, exprs)
		if (gj_same_column(lfirst(lc), expr))
			return lfirst(lc);
	return NULL;
}

#if PG_VERSION_NUM >= 160000

static Node *
as_returned_mutator(Node *node, void *context)
{
	Node	   *returned;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Var) && !IsA(node, PlaceHolderVar))
		return expression_tree_mutator(node, as_returned_mutator, context);
	returned = gj_find_column(context, node);
	if (returned != NULL)
		return copyObject(returned);
	if (IsA(node, Var))
	{
		node = copyObject(node);
		((Var *) node)->varnullingrels = NULL;
	}
	else
	{
		node = expression_tree_mutator(node, as_returned_mutator, context);
		((PlaceHolderVar *) node)->phnullingrels = NULL;
	}
	return node;
}

void *
gj_as_returned(const void *expr, List *returned)
{
	return as_returned_mutator(unconstify(void *, expr), returned);
}

Relids
gj_without_outer_joins(PlannerInfo *root, Relids relids)
{
	return bms_overlap(relids, root->outer_join_rels) ?
		bms_difference(relids, root->outer_join_rels) : relids;
}

RelOptInfo *
gj_find_join_rel(PlannerInfo *root, Relids tables)
{
	ListCell   *lc;

	if (bms_is_empty(root->outer_join_rels))
		return find_join_rel(root, tables);
	foreach(lc, root->join_rel_list)
	{
		RelOptInfo *rel = lfirst(lc);

		/* what is more in it are outer joins alone */
		if (bms_is_subset(tables, rel->relids) &&
			bms_equal(gj_without_outer_joins(root, rel->relids), tables))
			return rel;
	}
	return NULL;
}

#else

void *
gj_as_returned(const void *expr, List *returned)
{
	return unconstify(void *, expr);
}

Relids
gj_without_outer_joins(PlannerInfo *root, Relids relids)
{
	return relids;
}

RelOptInfo *
gj_find_join_rel(PlannerInfo *root, Relids tables)
{
	return find_join_rel(root, tables);
}

#endif
