/*
 * make_expr.h
 *	  Expressions that the planner makes itself.
 */
#ifndef GJ_MAKE_EXPR_H
#define GJ_MAKE_EXPR_H

#include "nodes/primnodes.h"

/* arg IS NULL, or arg IS NOT NULL */
extern Expr *gj_make_null_test(Expr *arg, NullTestType type);

/* WHEN condition THEN result */
extern CaseWhen *gj_make_when(Expr *condition, Expr *result);

/*
 * CASE with these branches, of the type of the first one.  otherwise: what is after ELSE; NULL is an
 * SQL NULL.
 */
extern Expr *gj_make_case(List *whens, Expr *otherwise);

/* A call of a function whose arguments and result have no collation. */
extern Expr *gj_make_call(Oid function, Oid type, List *args);

/* A constant of type int8. */
extern Expr *gj_make_int8(int64 value);

/* An aggregate of a copy of an argument; arg = NULL: of rows, as count(*). */
extern Aggref *gj_make_aggregate(Oid function, Oid result, Node *arg, Oid collation);

#endif							/* GJ_MAKE_EXPR_H */
