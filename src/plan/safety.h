/*
 * safety.h
 *	  What can raise an error, and what can give other rows the next time.
 */
#ifndef GJ_SAFETY_H
#define GJ_SAFETY_H

#include "nodes/parsenodes.h"

/* A query around something, and those around it: they have the CTEs that are read. */
typedef struct GjAround
{
	const Query *query;
	const struct GjAround *outer;
} GjAround;

/*
 * True if an expression can raise an error, or wait for others; of a Query, if anything in it can,
 * CTEs that it reads included.  around: the query that has the expression or Query in it.
 */
extern bool gj_can_fail(Node *node, const GjAround *around);

/*
 * True if a condition of the outermost query, or of one in it, can raise an error, or what is selected
 * in one and may become a part of one.  That a scalar subquery has two rows does not count.
 */
extern bool gj_conditions_can_fail(const GjAround *here);

/* The constant that LIMIT or OFFSET is; NULL: it is to be computed. */
extern const Const *gj_constant_limit(Node *limit);

/* True if a query has more than so many, itself and CTEs that are put where they are read included. */
extern bool gj_has_more_queries(Query *query, int most);

/* True for functions on numbers that raise none whatever their arguments are. */
extern bool gj_function_is_total(Oid funcid);

/*
 * True for comparisons of built-in types, but not of records, arrays and ranges, and for operators
 * of functions that raise no error.
 */
extern bool gj_operator_is_safe(Oid opno);

/* True if a subquery or CTE of a query can be computed several times, for all to see the same rows. */
extern bool gj_is_repeatable(const Query *query, Query *sub);

#endif							/* GJ_SAFETY_H */
