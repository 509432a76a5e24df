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

#endif							/* GJ_MAKE_EXPR_H */
