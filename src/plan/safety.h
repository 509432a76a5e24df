/*
 * safety.h
 *	  What can raise an error, and what can give other rows the next time.
 */
#ifndef GJ_SAFETY_H
#define GJ_SAFETY_H

#include "nodes/parsenodes.h"

/* True if an expression can raise an error; of a Query, if anything in it can. */
extern bool gj_can_fail(Node *node);

/* True for functions on numbers that raise none whatever their arguments are. */
extern bool gj_function_is_total(Oid funcid);

/* True for comparisons of built-in types, and operators of functions that raise no error. */
extern bool gj_operator_is_safe(Oid opno);

/* True if a subquery or CTE of a query can be computed several times, for all to see the same rows. */
extern bool gj_is_repeatable(const Query *query, Query *sub);

#endif							/* GJ_SAFETY_H */
