/*
 * make_expr.c
 *	  Expressions that the planner makes itself.
 */
#include "postgres.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"

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

Expr *
gj_make_call(Oid function, Oid type, List *args)
{
	return (Expr *) makeFuncExpr(function, type, args, InvalidOid, InvalidOid,
								 COERCE_EXPLICIT_CALL);
}

Expr *
gj_make_int8(int64 value)
{
	return (Expr *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(value), false,
							  FLOAT8PASSBYVAL);
}

Aggref *
gj_make_aggregate(Oid function, Oid result, Node *arg, Oid collation)
{
	Aggref	   *aggref = makeNode(Aggref);

	aggref->aggfnoid = function;
	aggref->aggtype = result;
	aggref->aggcollid = type_is_collatable(result) ? collation : InvalidOid;
	aggref->inputcollid = collation;
	aggref->aggstar = arg == NULL;
	if (arg != NULL)
	{
		aggref->aggargtypes = list_make1_oid(exprType(arg));
		aggref->args = list_make1(makeTargetEntry((Expr *) copyObject(arg), 1, NULL, false));
	}
	aggref->aggkind = AGGKIND_NORMAL;
	aggref->aggsplit = AGGSPLIT_SIMPLE;
	aggref->aggno = aggref->aggtransno = -1;
	aggref->location = -1;
	return aggref;
}
