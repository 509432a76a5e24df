/*
 * make_expr.c
 *	  Expressions that the planner makes itself.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"

#include "plan/make_expr.h"

Expr *
gj_make_null_test(Expr *arg, NullTestType type)
{
	NullTest   *test = makeNode(NullTest);

	test->arg = arg;
	test->nulltesttype = type;
	test->location = -1;
	return (Expr *) test;
}

CaseWhen *
gj_make_when(Expr *condition, Expr *result)
{
	CaseWhen   *when = makeNode(CaseWhen);

	when->expr = condition;
	when->result = result;
	when->location = -1;
	return when;
}

Expr *
gj_make_case(List *whens, Expr *otherwise)
{
	CaseExpr   *result = makeNode(CaseExpr);
	Node	   *first = (Node *) linitial_node(CaseWhen, whens)->result;

	result->casetype = exprType(first);
	result->casecollid = exprCollation(first);
	result->args = whens;
	result->defresult = otherwise ? otherwise :
		(Expr *) makeNullConst(result->casetype, exprTypmod(first), result->casecollid);
	result->location = -1;
	return (Expr *) result;
}
