/*
 * join_tree.h
 *	  A native join path as a tree of joins, each with the conditions that are its own.
 */
#ifndef GJ_JOIN_TREE_H
#define GJ_JOIN_TREE_H

#include "nodes/pathnodes.h"

typedef struct GjTree
{
	RelOptInfo *rel;
	struct GjTree *parent;		/* NULL: the root */
	struct GjTree *outer;		/* sides of a join; NULL: a leaf */
	struct GjTree *inner;
	JoinType	type;
	bool		native;			/* a join that the device shall not run: treat it as a leaf */
	bool		fixed;			/* a leaf that no path but `path` will do for (made unique) */
	Path	   *path;			/* a leaf, or a join turned native: gives its rows */
	List	   *conditions;		/* RestrictInfos that decide what matches (ON) */
	List	   *filters;		/* RestrictInfos on what an outer join has made (WHERE) */
	bool		reads_unmatched;	/* an anti join above which columns of the side that
									 * matched nothing are read: all of them are NULL */
} GjTree;

/* True if the device could run this join. */
static inline bool
gj_tree_is_join(const GjTree *tree)
{
	return tree->outer != NULL && !tree->native;
}

/*
 * The tree of a native path, palloc'd; NULL if it holds conditions of which it is not
 * clear where they belong.
 */
extern GjTree *gj_tree_create(PlannerInfo *root, Path *native);

/* The leaves, GjTree *, from left to right. */
extern List *gj_tree_leaves(GjTree *tree);

/* Path below a node that does not change which rows there are; NULL if there is none. */
extern Path *gj_transparent_subpath(Path *path);

#endif							/* GJ_JOIN_TREE_H */
