/*
 * outer_joins.h
 *	  Expressions and relations without what PostgreSQL notes of outer joins in them.
 */
#ifndef GJ_OUTER_JOINS_H
#define GJ_OUTER_JOINS_H

#include "nodes/pathnodes.h"

/*
 * True if two expressions are the same column or placeholder, whatever outer joins may have made of
 * it, or equal.
 */
extern bool gj_same_column(const void *a, const void *b);
/* The first one of `exprs` that is the same column; NULL: none. */
extern void *gj_find_column(List *exprs, const void *expr);

/*
 * An expression, or a list of them, as setrefs.c will look for it in a scan tuple: columns that are
 * among `returned` as they are there, others as they are in their tables.  15 does not tell these
 * apart: there it is what it was.
 */
extern void *gj_as_returned(const void *expr, List *returned);

/* Tables alone: from 16 on outer joins have numbers, too. */
extern Relids gj_without_outer_joins(PlannerInfo *root, Relids relids);
/* The join of these tables, with whatever outer joins; NULL: PostgreSQL has not looked at it. */
extern RelOptInfo *gj_find_join_rel(PlannerInfo *root, Relids tables);

#endif							/* GJ_OUTER_JOINS_H */
