/*
 * average.c
 *	  Comparisons with averages of a stage, on the device.
 *
 * PostgreSQL's average a of numerics is sum / count, rounded to s digits behind the point; s is 12
 * at least where the quotient is less than 10^8.  The device does not divide: it takes x * count < c * sum for
 * x < c * a.  Both say the same, for this and all other comparisons:
 *
 *	- The difference x - c * sum / count is zero, or at least 10^-D / count, where D is the number of
 *	  digits of x and of c * sum.
 *	- Rounding moves c * a by at most |c| * 10^-s / 2.  That is less as long as there are few rows.
 *	- Where the difference is zero sum / count is x / c.  If that has at most s digits a is x / c,
 *	  too.  It has if the digits of x can be divided by what c has beside twos and fives.
 *
 * Where this does not hold the program fails, and PostgreSQL's plan answers the query: in a group
 * of more rows, or with a larger average, or if x / c has no end and is just what is compared.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "plan/device_expr.h"
#include "plan/join_path.h"
#include "plan/make_expr.h"
#include "rows/numeric.h"

/* Digits that PostgreSQL's averages have at least, while they are less than that. */
#define AVERAGE_DIGITS	12
#define MOST_AVERAGE	100000000

/* What a group may have more rows than is expected. */
#define MORE_ROWS		100

/* factor * sum / count */
typedef struct Average
{
	Expr	   *sum;
	Expr	   *count;
	Const	   *factor;			/* NULL: 1 */
} Average;

/* What a column of a stage is made of. */
static Expr *
expanded(const GjBuilder *builder, Expr *node)
{
	Expr	   *expr = gj_is_stage_column(builder, node) ? gj_stage_expr(builder, (Var *) node) : NULL;

	return expr != NULL ? expr : node;
}

static bool
is_product(Expr *node, List **args)
{
	if (IsA(node, OpExpr))
		set_opfuncid((OpExpr *) node);
	*args = IsA(node, OpExpr) ? ((OpExpr *) node)->args :
		IsA(node, FuncExpr) ? ((FuncExpr *) node)->args : NIL;
	return (IsA(node, OpExpr) && ((OpExpr *) node)->opfuncid == F_NUMERIC_MUL) ||
		(IsA(node, FuncExpr) && ((FuncExpr *) node)->funcid == F_NUMERIC_MUL);
}

/* True for an average of a stage that the program reads. */
static bool
is_quotient(const GjBuilder *builder, Expr *node, Average *average)
{
	return gj_stage_average(node, &average->sum, &average->count) &&
		gj_builder_stage_of(builder, average->count) >= 0;
}

/* True for an average, and for a constant times an average. */
static bool
find_average(const GjBuilder *builder, Expr *node, Average *average)
{
	List	   *args;

	node = expanded(builder, node);
	average->factor = NULL;
	if (is_quotient(builder, node, average))
		return true;
	if (!is_product(node, &args))
		return false;
	for (int i = 0; i < 2; i++)
	{
		Const	   *factor = list_nth(args, i);

		if (!IsA(factor, Const) || factor->constisnull ||
			!is_quotient(builder, expanded(builder, list_nth(args, 1 - i)), average))
			continue;
		average->factor = factor;
		return true;
	}
	return false;
}

typedef struct Factor
{
	double		size;			/* its absolute value */
	int			scale;			/* digits behind the point */
	int			more;			/* digits that x / factor has more than x, if it has an end */
	int64		rest;			/* what its digits have beside twos and fives */
} Factor;

/* False: it is zero, or too long. */
static bool
describe_factor(const Const *factor, Factor *result)
{
	char	   *text = factor == NULL ? "1" :
		DatumGetCString(DirectFunctionCall1(numeric_out, factor->constvalue));
	int64		digits = 0;
	int			twos = 0,
				fives = 0;
	bool		behind = false;

	result->scale = 0;
	for (const char *at = text; *at != '\0'; at++)
	{
		if (*at == '-' && at == text)
			continue;
		if (*at == '.')
		{
			behind = true;
			continue;
		}
		if (*at < '0' || *at > '9' || digits > INT64CONST(1000000000000))
			return false;
		digits = digits * 10 + (*at - '0');
		result->scale += behind;
	}
	if (digits == 0)
		return false;
	result->size = digits / pow(10, result->scale);
	for (; digits % 2 == 0; digits /= 2)
		twos++;
	for (; digits % 5 == 0; digits /= 5)
		fives++;
	result->more = Max(twos, fives) - result->scale;
	result->rest = digits;
	return true;
}

/* The scale of a numeric on the device; -1: it cannot be computed there. */
static int
scale_of(GjCompileContext *cxt, Expr *node, int depth)
{
	GjCompileContext saved = *cxt;
	GjBuilderMark mark;
	int			scale = -1;

	gj_builder_mark(cxt->builder, &mark);
	if (gj_compile_node(cxt, node, depth))
		scale = cxt->scale;
	gj_builder_reset(cxt->builder, &mark);
	*cxt = saved;
	return scale;
}

/* The rows that a group is expected to have. */
static double
expected_rows(const GjBuilder *builder, const Average *average)
{
	const GjJoinInfo *info =
		builder->source[gj_builder_stage_of(builder, average->count)].stage->info;

	return info->rows / Max(info->groups, 1);
}

/* What has to be true for x to be compared with an average. */
typedef struct Limits
{
	int64		rows;			/* a group has less */
	int			x_scale;
	int64		divisor;		/* of the digits of x where both are equal */
} Limits;

/* False: they cannot be compared. */
static bool
find_limits(GjCompileContext *cxt, Expr *x, const Average *average, int depth, Limits *limits)
{
	int			x_scale = scale_of(cxt, x, depth);
	int			sum_scale = scale_of(cxt, average->sum, depth);
	Factor		factor;
	double		rows;

	if (x_scale < 0 || sum_scale < 0 || !describe_factor(average->factor, &factor) ||
		x_scale + factor.more > AVERAGE_DIGITS)
		return false;
	/* half of what suffices */
	rows = pow(10, AVERAGE_DIGITS - Max(x_scale, factor.scale + sum_scale)) / factor.size;
	limits->rows = (int64) Min(rows, 1e18);
	limits->x_scale = x_scale;
	limits->divisor = factor.rest;
	return rows >= MORE_ROWS * (1 + expected_rows(cxt->builder, average));
}

static Expr *
numeric_constant(int64 value)
{
	return (Expr *) makeConst(NUMERICOID, -1, InvalidOid, -1,
							  NumericGetDatum(int64_to_numeric(value)), false, false);
}

/* x times a number */
static Expr *
times(Expr *x, Expr *number)
{
	return gj_make_call(F_NUMERIC_MUL, NUMERICOID, list_make2(x, number));
}

/* count * most */
static Expr *
most_sum(const Average *average, int64 most)
{
	return times(gj_make_call(F_NUMERIC_INT8, NUMERICOID, list_make1(average->count)),
				 numeric_constant(most));
}

/* x is equal to the multiple of the average, but that is not what it was before it was rounded. */
static Expr *
is_rounded(Expr *x, const Average *average, const Limits *limits)
{
	Expr	   *count = gj_make_call(F_NUMERIC_INT8, NUMERICOID, list_make1(average->count));
	Expr	   *power = numeric_constant(gj_power_of_10(limits->x_scale));
	Expr	   *digits = gj_make_call(F_INT8_NUMERIC, INT8OID, list_make1(times(x, power)));
	Expr	   *rest = gj_make_call(F_INT8MOD, INT8OID,
									list_make2(digits, gj_make_int8(limits->divisor)));
	Expr	   *equal = gj_make_call(F_NUMERIC_EQ, BOOLOID,
									 list_make2(times(x, count),
												times(average->sum, (Expr *) average->factor)));
	Expr	   *differs = gj_make_call(F_INT8NE, BOOLOID, list_make2(rest, gj_make_int8(0)));

	return makeBoolExpr(AND_EXPR, list_make2(equal, differs), -1);
}

/* count, or a number out of range if the group cannot be compared with x */
static Expr *
checked_count(Expr *x, const Average *average, const Limits *limits)
{
	Expr	   *large = gj_make_call(F_NUMERIC_GE, BOOLOID,
									 list_make2(average->sum, most_sum(average, MOST_AVERAGE)));
	Expr	   *small = gj_make_call(F_NUMERIC_LE, BOOLOID,
									 list_make2(average->sum, most_sum(average, -MOST_AVERAGE)));
	Expr	   *many = gj_make_call(F_INT8GE, BOOLOID,
									list_make2(average->count, gj_make_int8(limits->rows)));
	List	   *any = list_make3(large, small, many);
	Expr	   *more;

	if (limits->divisor != 1)
		any = lappend(any, is_rounded(x, average, limits));
	more = gj_make_case(list_make1(gj_make_when(makeBoolExpr(OR_EXPR, any, -1),
												gj_make_int8(PG_INT64_MAX))), gj_make_int8(0));
	return gj_make_call(F_INT8PL, INT8OID, list_make2(average->count, more));
}

static bool
is_comparison(Oid funcid)
{
	switch (funcid)
	{
		case F_NUMERIC_EQ:
		case F_NUMERIC_NE:
		case F_NUMERIC_LT:
		case F_NUMERIC_LE:
		case F_NUMERIC_GT:
		case F_NUMERIC_GE:
			return true;
		default:
			return false;
	}
}

bool
gj_compares_average(const GjBuilder *builder, Expr *clause)
{
	Average		average;
	ListCell   *lc;

	foreach(lc, IsA(clause, OpExpr) ? ((OpExpr *) clause)->args : NIL)
		if (find_average(builder, lfirst(lc), &average))
			return true;
	return false;
}

bool
gj_compile_average(GjCompileContext *cxt, OpExpr *op, int depth)
{
	GjCompileContext saved = *cxt;
	GjBuilderMark mark;

	if (!is_comparison(op->opfuncid))
		return false;
	gj_builder_mark(cxt->builder, &mark);
	for (int i = 0; i < 2; i++)
	{
		Expr	   *x = list_nth(op->args, 1 - i);
		Average		average;
		Expr	   *count;
		Expr	   *sum;
		Limits		limits;

		if (!find_average(cxt->builder, list_nth(op->args, i), &average) ||
			!find_limits(cxt, x, &average, depth, &limits))
			continue;
		count = gj_make_call(F_NUMERIC_INT8, NUMERICOID, list_make1(checked_count(x, &average, &limits)));
		x = times(x, count);
		sum = average.factor == NULL ? average.sum : times(average.sum, (Expr *) average.factor);
		if (gj_compile_call(cxt, op->opfuncid, i == 0 ? list_make2(sum, x) : list_make2(x, sum),
							op->inputcollid, depth))
			return true;
		gj_builder_reset(cxt->builder, &mark);
		*cxt = saved;
	}
	return false;
}
