/*
 * device_condition.c
 *	  Compiles what PostgreSQL does not evaluate for every row (AND, OR, CASE, COALESCE), and what
 *	  chooses between values or asks for NULL, TRUE and FALSE.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"

#include "plan/device_expr.h"
#include "rows/numeric.h"

static bool
compile_under(GjCompileContext *cxt, Expr *node, int depth, int reg, uint16 op, bool negate)
{
	GjBuilderMark mark;
	GjCompileContext before = *cxt;
	bool		can_fail;

	gj_builder_mark(cxt->builder, &mark);
	cxt->can_fail = false;
	if (!gj_compile_node(cxt, node, depth))
		return false;
	can_fail = cxt->can_fail;
	cxt->can_fail |= before.can_fail;
	if (!can_fail)
		return true;
	/* once more, with a guard in `depth` and the value behind it */
	gj_builder_reset(cxt->builder, &mark);
	*cxt = before;
	if (!gj_use_register(cxt, depth + 1))
		return false;
	gj_emit(cxt, (GjInstr) {.op = op, .dst = depth, .a = reg, .b = reg});
	if (negate)
		gj_emit_unary(cxt, GJ_OP_NOT, depth);
	if (before.guard >= 0)
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_AND, .dst = depth, .a = depth, .b = before.guard});
	cxt->guard = depth;
	if (!gj_compile_node(cxt, node, depth + 1))
		return false;
	gj_emit(cxt, (GjInstr) {.op = GJ_OP_MOVE, .dst = depth, .a = depth + 1, .b = depth + 1});
	cxt->guard = before.guard;
	return true;
}

bool
gj_compile_under(GjCompileContext *cxt, Expr *node, int depth, int reg, uint16 op, bool negate)
{
	bool		outer = cxt->sometimes;
	bool		done;

	/* sides of an AND have no order that anybody can rely on */
	cxt->sometimes |= op != GJ_OP_IS_FALSE;
	done = compile_under(cxt, node, depth, reg, op, negate);
	cxt->sometimes = outer;
	return done;
}

bool
gj_compile_bool(GjCompileContext *cxt, BoolExpr *node, int depth)
{
	ListCell   *lc;

	if (!gj_compile_node(cxt, linitial(node->args), depth))
		return false;
	if (node->boolop == NOT_EXPR)
	{
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_NOT, .dst = depth, .a = depth, .b = depth});
		return true;
	}
	for_each_from(lc, node->args, 1)
	{
		/* AND ends at the first FALSE, OR at the first TRUE */
		if (!gj_compile_under(cxt, lfirst(lc), depth + 1, depth,
							  node->boolop == AND_EXPR ? GJ_OP_IS_FALSE : GJ_OP_IS_TRUE, true))
			return false;
		gj_emit(cxt, (GjInstr) {.op = node->boolop == AND_EXPR ? GJ_OP_AND : GJ_OP_OR,
			.dst = depth, .a = depth, .b = depth + 1});
	}
	return true;
}

/*
 * Puts the numeric in register `depth`, of the scale compiled last from `node`, and that
 * of `scale` in register `other` to one scale.  A scale of -1: there is no other yet.
 */
static void
match_scales(GjCompileContext *cxt, int other, int scale, Expr *node, int depth)
{
	if (IsA(node, Const) && ((Const *) node)->constisnull)
		cxt->scale = Max(scale, 0); /* NULL has none */
	if (cxt->scale == scale || scale < 0)
		return;
	cxt->mixed = true;
	if (cxt->scale < scale)
	{
		gj_scale_up(cxt, depth, cxt->scale, scale);
		cxt->scale = scale;
	}
	else
		gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_SCALE_UP, .dst = other, .a = other, .b = other,
			.imm = gj_power_of_10(cxt->scale - scale)});
}

/*
 * Register depth: the result; depth+1: TRUE where no condition was TRUE yet; depth+2: where
 * the current one is the first; depth+3: its result.  The value of CASE x WHEN goes first.
 */
bool
gj_compile_case(GjCompileContext *cxt, CaseExpr *node, int depth)
{
	GjCompileContext outer = *cxt;
	int			scale = -1,
				arg_scale = 0;
	int			kind = gj_value_kind(node->casetype);
	bool		decimal = gj_type(node->casetype)->reading == GJ_READ_DECIMAL;
	int			at = depth;
	ListCell   *lc;

	if (node->arg)
	{
		if (!gj_compile_node(cxt, node->arg, depth))
			return false;
		arg_scale = cxt->scale;
		at = depth + 1;
	}
	if (!gj_use_register(cxt, at + 3))
		return false;
	gj_emit(cxt, (GjInstr) {.op = kind == GJ_TEXT ? GJ_OP_CONST_T : GJ_OP_CONST, .dst = at,
		.n = kind != GJ_TEXT, .imm = kind == GJ_TEXT});
	gj_emit(cxt, (GjInstr) {.op = GJ_OP_CONST, .dst = at + 1, .imm = 1});
	foreach(lc, node->args)
	{
		CaseWhen   *when = lfirst(lc);

		if (node->arg)
		{
			cxt->case_value = depth;
			cxt->case_scale = arg_scale;
		}
		/* the first one is always evaluated */
		if (lc == list_head(node->args) ? !gj_compile_node(cxt, when->expr, at + 2) :
			!gj_compile_under(cxt, when->expr, at + 2, at + 1, GJ_OP_IS_TRUE, false))
			return false;
		gj_emit_unary(cxt, GJ_OP_IS_TRUE, at + 2);
		if (lc != list_head(node->args))
			gj_emit(cxt, (GjInstr) {.op = GJ_OP_AND, .dst = at + 2, .a = at + 2, .b = at + 1});
		/* CaseTestExprs in a result belong to a CASE further out */
		cxt->case_value = outer.case_value;
		cxt->case_scale = outer.case_scale;
		if (!gj_compile_under(cxt, when->result, at + 3, at + 2, GJ_OP_IS_TRUE, false))
			return false;
		if (decimal)
			match_scales(cxt, at, scale, when->result, at + 3);
		scale = cxt->scale;
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_IF, .dst = at, .a = at + 2, .b = at + 3});
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_BIT_XOR, .dst = at + 1, .a = at + 1, .b = at + 2});
	}
	cxt->case_value = outer.case_value;
	cxt->case_scale = outer.case_scale;
	if (node->defresult)
	{
		if (!gj_compile_under(cxt, node->defresult, at + 2, at + 1, GJ_OP_IS_TRUE, false))
			return false;
		if (decimal)
			match_scales(cxt, at, scale, node->defresult, at + 2);
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_IF, .dst = at, .a = at + 1, .b = at + 2});
	}
	else
		cxt->scale = scale;
	if (at != depth)
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_MOVE, .dst = depth, .a = at, .b = at});
	return true;
}

bool
gj_compile_case_value(GjCompileContext *cxt, int depth)
{
	if (cxt->case_value < 0 || !gj_use_register(cxt, depth))
		return false;
	gj_emit(cxt, (GjInstr) {.op = GJ_OP_MOVE, .dst = depth, .a = cxt->case_value, .b = cxt->case_value});
	cxt->scale = cxt->case_scale;
	return true;
}

bool
gj_compile_coalesce(GjCompileContext *cxt, CoalesceExpr *node, int depth)
{
	bool		decimal = gj_type(node->coalescetype)->reading == GJ_READ_DECIMAL;
	ListCell   *lc;

	if (!gj_compile_node(cxt, linitial(node->args), depth))
		return false;
	for_each_from(lc, node->args, 1)
	{
		int			scale = cxt->scale;

		if (!gj_compile_under(cxt, lfirst(lc), depth + 1, depth, GJ_OP_IS_NULL, false))
			return false;
		if (decimal)
			match_scales(cxt, depth, scale, lfirst(lc), depth + 1);
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_COALESCE, .dst = depth, .a = depth, .b = depth + 1});
	}
	return true;
}

bool
gj_compile_min_max(GjCompileContext *cxt, MinMaxExpr *node, int depth)
{
	int			kind = gj_value_kind(node->minmaxtype);
	bool		decimal = gj_type(node->minmaxtype)->reading == GJ_READ_DECIMAL;
	bool		greatest = node->op == IS_GREATEST;
	uint16		op = kind == GJ_FLOAT8 ? (greatest ? GJ_OP_GREATEST_F : GJ_OP_LEAST_F) :
		(greatest ? GJ_OP_GREATEST_I : GJ_OP_LEAST_I);
	ListCell   *lc;

	if (kind == GJ_TEXT || gj_type(node->minmaxtype)->typid == ANYENUMOID ||
		!gj_compile_node(cxt, linitial(node->args), depth))
		return false;
	for_each_from(lc, node->args, 1)
	{
		int			scale = cxt->scale;

		if (!gj_compile_node(cxt, lfirst(lc), depth + 1))
			return false;
		if (decimal)
			match_scales(cxt, depth, scale, lfirst(lc), depth + 1);
		gj_emit(cxt, (GjInstr) {.op = op, .dst = depth, .a = depth, .b = depth + 1});
	}
	return true;
}

/* NULLIF(a, b), an OpExpr of the equality operator */
bool
gj_compile_null_if(GjCompileContext *cxt, OpExpr *node, int depth)
{
	int			scale;

	if (!gj_compile_node(cxt, linitial(node->args), depth))
		return false;
	scale = cxt->scale;
	if (!gj_compile_call(cxt, node->opfuncid, node->args, node->inputcollid, depth + 1))
		return false;
	cxt->scale = scale;
	gj_emit(cxt, (GjInstr) {.op = GJ_OP_NULL_IF, .dst = depth, .a = depth, .b = depth + 1});
	return true;
}

/* a IS DISTINCT FROM b: exactly one is NULL, or they are not equal */
bool
gj_compile_distinct(GjCompileContext *cxt, OpExpr *node, int depth)
{
	for (int i = 0; i < 2; i++)
	{
		if (!gj_compile_node(cxt, list_nth(node->args, i), depth + i))
			return false;
		gj_emit_unary(cxt, GJ_OP_IS_NULL, depth + i);
	}
	gj_emit(cxt, (GjInstr) {.op = GJ_OP_BIT_XOR, .dst = depth, .a = depth, .b = depth + 1});
	if (!gj_compile_call(cxt, node->opfuncid, node->args, node->inputcollid, depth + 1))
		return false;
	gj_emit_unary(cxt, GJ_OP_IS_FALSE, depth + 1);
	gj_emit(cxt, (GjInstr) {.op = GJ_OP_OR, .dst = depth, .a = depth, .b = depth + 1});
	return true;
}

bool
gj_compile_null_test(GjCompileContext *cxt, NullTest *node, int depth)
{
	if (node->argisrow)
		return false;
	/* of a column, any type will do; of a composite, "is null" asks its fields */
	if (IsA(node->arg, Var) && !type_is_rowtype(exprType((Node *) node->arg)))
	{
		if (!gj_compile_column(cxt, node->arg, true, depth))
			return false;
	}
	else
	{
		if (!gj_compile_node(cxt, node->arg, depth))
			return false;
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_IS_NULL, .dst = depth, .a = depth, .b = depth});
	}
	if (node->nulltesttype == IS_NOT_NULL)
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_NOT, .dst = depth, .a = depth, .b = depth});
	return true;
}

bool
gj_compile_boolean_test(GjCompileContext *cxt, BooleanTest *node, int depth)
{
	uint16		op;
	bool		negate;

	switch (node->booltesttype)
	{
		case IS_TRUE:
		case IS_NOT_TRUE:
			op = GJ_OP_IS_TRUE;
			negate = node->booltesttype == IS_NOT_TRUE;
			break;
		case IS_FALSE:
		case IS_NOT_FALSE:
			op = GJ_OP_IS_FALSE;
			negate = node->booltesttype == IS_NOT_FALSE;
			break;
		default:
			op = GJ_OP_IS_NULL;
			negate = node->booltesttype == IS_NOT_UNKNOWN;
			break;
	}
	if (!gj_compile_node(cxt, node->arg, depth))
		return false;
	gj_emit(cxt, (GjInstr) {.op = op, .dst = depth, .a = depth, .b = depth});
	if (negate)
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_NOT, .dst = depth, .a = depth, .b = depth});
	return true;
}
