/*
 * join_tree.c
 *	  From a native join path to a tree of joins with their conditions.
 *
 * A path has a join's conditions in two places: at the join, and, where a nested loop
 * passes values down, at the scan (or join) below that uses them.  The latter go back to
 * the join at which their relations meet.  There they are conditions of the join, not
 * filters of its result, for the inner side of a nested loop is what they select from.
 * On the way up they must not pass an outer join on its nullable side: such a tree is
 * not understood.
 *
 * Where PostgreSQL has made one side of an inner join unique to run a semijoin, the
 * semijoin comes back; a right semi or anti join becomes one with its sides exchanged.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"

#include "compat.h"
#include "plan/join_tree.h"
#include "plan/outer_joins.h"

static GjTree *make_tree(PlannerInfo *root, Path *path, List **passed);

Path *
gj_transparent_subpath(Path *path)
{
	switch (nodeTag(path))
	{
		case T_GatherPath:
			return ((GatherPath *) path)->subpath;
		case T_GatherMergePath:
			return ((GatherMergePath *) path)->subpath;
		case T_MaterialPath:
			return ((MaterialPath *) path)->subpath;
		case T_MemoizePath:
			return ((MemoizePath *) path)->subpath;
		case T_SortPath:
			return ((SortPath *) path)->subpath;
		case T_IncrementalSortPath:
			return ((IncrementalSortPath *) path)->spath.subpath;
		case T_ProjectionPath:
			return ((ProjectionPath *) path)->subpath;
		default:
			return NULL;
	}
}

/* True for joins whose WHERE conditions are kept apart from their ON conditions. */
static bool
has_filters(JoinType type)
{
	return type != JOIN_INNER && type != JOIN_SEMI;
}

/* True if a row of the side is in the join's result whatever its conditions say... */
static bool
keeps_outer(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_LEFT || type == JOIN_SEMI || type == JOIN_ANTI;
}

/* ...or at least with its own columns as they are: a selection may be made before. */
static bool
keeps_inner(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_RIGHT;
}

/* True if one of the expressions reads a column of these relations, or is computed there. */
static bool
reads_any(List *exprs, Relids relids)
{
	List	   *vars = pull_var_clause((Node *) exprs,
									   PVC_INCLUDE_PLACEHOLDERS | PVC_RECURSE_AGGREGATES |
									   PVC_RECURSE_WINDOWFUNCS);
	ListCell   *lc;

	foreach(lc, vars)
	{
		if (IsA(lfirst(lc), PlaceHolderVar))
		{
			/* a constant is read, too: it is NULL where nothing has matched */
			if (bms_overlap(((PlaceHolderVar *) lfirst(lc))->phrels, relids))
				return true;
		}
		else if (bms_is_member(((Var *) lfirst(lc))->varno, relids))
			return true;
	}
	return false;
}

/*
 * True if the query's result has something of these relations among the expressions.  The other
 * columns that a semijoin passes on of the side that it looks into are equal to one of its outer
 * side; PostgreSQL compares with either further up, and join_clauses.c with the latter.
 */
static bool
returns_any(PlannerInfo *root, List *exprs, Relids relids)
{
	List	   *vars = pull_var_clause((Node *) exprs, PVC_INCLUDE_PLACEHOLDERS);
	ListCell   *lc;

	foreach(lc, vars)
	{
		Var		   *var = lfirst(lc);
		RelOptInfo *rel;

		if (!IsA(var, Var))
		{
			if (bms_overlap(((PlaceHolderVar *) var)->phrels, relids))
				return true;
			continue;
		}
		if (!bms_is_member(var->varno, relids))
			continue;
		rel = find_base_rel(root, var->varno);
		/* relation 0 is the result; only for base relations it is known what needs a column */
		if (rel->reloptkind != RELOPT_BASEREL ||
			bms_is_member(0, rel->attr_needed[var->varattno - rel->min_attr]))
			return true;
	}
	return false;
}

/* True if the join computes a placeholder: its sides do not have it yet. */
static bool
makes_placeholder(const JoinPath *join)
{
	ListCell   *lc;

	foreach(lc, join->path.pathtarget->exprs)
		if (!IsA(lfirst(lc), Var) &&
			!gj_find_column(join->outerjoinpath->pathtarget->exprs, lfirst(lc)) &&
			!gj_find_column(join->innerjoinpath->pathtarget->exprs, lfirst(lc)))
			return true;
	return false;
}

/* Takes in what a side has passed up; false if it cannot be understood. */
static bool
take_passed(GjTree *tree, const JoinPath *join, List *from_side, bool is_inner, List **passed)
{
	ListCell   *lc;

	foreach(lc, from_side)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (bms_is_subset(rinfo->required_relids, tree->rel->relids))
		{
			/* a nested loop, whose sides are never exchanged, passes values to its inner side */
			if (!is_inner && join->jointype != JOIN_INNER)
				return false;
			tree->conditions = list_append_unique(tree->conditions, rinfo);
		}
		else if (is_inner ? keeps_inner(tree->type) : keeps_outer(tree->type))
			*passed = list_append_unique(*passed, rinfo);
		else
			return false;
	}
	return true;
}

/* From 16 on it is in the place of a condition that is true because both sides equal a constant. */
static bool
is_true(const RestrictInfo *rinfo)
{
	const Const *value = (const Const *) rinfo->clause;

	return IsA(value, Const) && !value->constisnull && DatumGetBool(value->constvalue);
}

/* The join's own conditions. */
static bool
take_own(GjTree *tree, const JoinPath *join, List **passed)
{
	ListCell   *lc;

	foreach(lc, join->joinrestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (is_true(rinfo))
			continue;
		if (rinfo->pseudoconstant)
			tree->native = true;
		if (!bms_is_subset(rinfo->required_relids, tree->rel->relids))
		{
			/* a filter of the join's result that uses values from further up */
			if (tree->type != JOIN_INNER)
				return false;
			*passed = list_append_unique(*passed, rinfo);
		}
		else if (has_filters(tree->type) && RINFO_IS_PUSHED_DOWN(rinfo, tree->rel->relids))
			tree->filters = list_append_unique(tree->filters, rinfo);
		else
			tree->conditions = list_append_unique(tree->conditions, rinfo);
	}
	return true;
}

/* Makes an inner join with a side that was made unique a semijoin again, if it is one. */
static void
restore_semijoin(GjTree *tree, const JoinPath *join, Path **outer, Path **inner)
{
	for (int i = 0; i < 2; i++)
	{
		Path	   *unique = i == 0 ? *inner : *outer;
		Path	   *other = i == 0 ? *outer : *inner;
		Path	   *subpath;

		while (!IsA(unique, UniquePath) && (subpath = gj_transparent_subpath(unique)) != NULL)
			unique = subpath;
		if (!IsA(unique, UniquePath) ||
			reads_any(join->path.pathtarget->exprs, unique->parent->relids))
			continue;
		tree->type = JOIN_SEMI;
		*outer = other;
		*inner = ((UniquePath *) unique)->subpath;
		return;
	}
}

static GjTree *
make_join(PlannerInfo *root, JoinPath *join, List **passed)
{
	GjTree	   *tree = palloc0(sizeof(GjTree));
	Path	   *outer = join->outerjoinpath,
			   *inner = join->innerjoinpath;
	List	   *from_outer = NIL,
			   *from_inner = NIL;

	tree->rel = join->path.parent;
	tree->type = gj_mirrored_join(join->jointype);
	tree->path = tree->rel->cheapest_total_path;
	if (tree->type != join->jointype)
	{
		outer = join->innerjoinpath;
		inner = join->outerjoinpath;
	}
	if (tree->type == JOIN_INNER)
		restore_semijoin(tree, join, &outer, &inner);
	tree->outer = make_tree(root, outer, &from_outer);
	tree->inner = make_tree(root, inner, &from_inner);
	if (tree->outer == NULL || tree->inner == NULL || !take_own(tree, join, passed) ||
		!take_passed(tree, join, from_outer, false, passed) ||
		!take_passed(tree, join, from_inner, true, passed))
		return NULL;
	tree->outer->parent = tree;
	tree->inner->parent = tree;
	/* UPDATE and its kin want row identities of the side that a semijoin looks into */
	tree->native |= makes_placeholder(join) ||
		(tree->type == JOIN_SEMI &&
		 returns_any(root, join->path.pathtarget->exprs, tree->inner->rel->relids));
	if (tree->type == JOIN_ANTI)
	{
		List	   *read = list_copy(join->path.pathtarget->exprs);
		ListCell   *lc;

		foreach(lc, tree->filters)
			read = lappend(read, lfirst_node(RestrictInfo, lc)->clause);
		tree->reads_unmatched = reads_any(read, tree->inner->rel->relids);
	}
	return tree;
}

static bool
is_known_join(const Path *path)
{
	if (!IsA(path, NestPath) && !IsA(path, MergePath) && !IsA(path, HashPath))
		return false;
	switch (gj_mirrored_join(((const JoinPath *) path)->jointype))
	{
		case JOIN_INNER:
		case JOIN_LEFT:
		case JOIN_RIGHT:
		case JOIN_FULL:
		case JOIN_SEMI:
		case JOIN_ANTI:
			return true;
		default:
			return false;
	}
}

/*
 * The conditions that a parameterised path of a plain relation checks for its joins.  Its
 * param_info lists them, unless it is an append: then each member has them in its own
 * terms, and these are what they were made from.
 */
static List *
passed_down(PlannerInfo *root, Path *path)
{
	RelOptInfo *rel = path->parent;
	Relids		outer = PATH_REQ_OUTER(path);
	Relids		both;
	List	   *clauses = NIL;
	ListCell   *lc;

	if (!IsA(path, AppendPath) && !IsA(path, MergeAppendPath))
		return path->param_info->ppi_clauses;
	both = bms_union(rel->relids, outer);
	foreach(lc, rel->joininfo)
		if (join_clause_is_movable_into(lfirst_node(RestrictInfo, lc), rel->relids, both))
			clauses = lappend(clauses, lfirst(lc));
	return list_concat(clauses, gj_implied_equalities(root, both, outer, rel));
}

/*
 * The tree of a path.  Conditions that need relations from further up are added to
 * *passed.
 */
static GjTree *
make_tree(PlannerInfo *root, Path *path, List **passed)
{
	Path	   *subpath;
	GjTree	   *leaf;

	check_stack_depth();
	if (is_known_join(path))
		return make_join(root, (JoinPath *) path, passed);
	subpath = gj_transparent_subpath(path);
	if (subpath != NULL)
		return make_tree(root, subpath, passed);
	/* joins have their conditions elsewhere */
	if (path->param_info)
	{
		if (path->parent->reloptkind != RELOPT_BASEREL)
			return NULL;
		*passed = list_concat_unique(*passed, passed_down(root, path));
	}
	leaf = palloc0(sizeof(GjTree));
	leaf->rel = path->parent;
	leaf->fixed = IsA(path, UniquePath);
	leaf->path = leaf->fixed ? path : path->parent->cheapest_total_path;
	return leaf;
}

GjTree *
gj_tree_create(PlannerInfo *root, Path *native)
{
	List	   *passed = NIL;
	GjTree	   *tree = make_tree(root, native, &passed);

	return passed == NIL ? tree : NULL;
}

List *
gj_tree_leaves(GjTree *tree)
{
	if (!gj_tree_is_join(tree))
		return list_make1(tree);
	return list_concat(gj_tree_leaves(tree->outer), gj_tree_leaves(tree->inner));
}
