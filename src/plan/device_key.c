/*
 * device_key.c
 *	  Compiles clauses of joins: keys, whole, in halves or two in one, and bounds of ranges.
 *
 * Both sides of a key get the form in which they are compared: numerics one scale, texts a hash or
 * two halves of 8 bytes, two narrow integers one of 64 bits.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"

#include "plan/uuid.h"
#include "rows/text.h"

/* The function of a clause that can be a key, or NULL. */
static const GjDeviceFunction *
key_function(Expr *clause)
{
	OpExpr	   *op = (OpExpr *) clause;
	const GjDeviceFunction *func;

	if (!IsA(clause, OpExpr) || list_length(op->args) != 2)
		return NULL;
	set_opfuncid(op);
	func = gj_device_function(op->opfuncid);
	if (func == NULL || !gj_collation_fits(func, op->inputcollid) ||
		(func->op != GJ_OP_EQ_I && func->op != GJ_OP_EQ_F && func->op != GJ_OP_EQ_T))
		return NULL;
	return func;
}

bool
gj_key_clause(Expr *clause, Expr **left, Expr **right)
{
	if (key_function(clause) == NULL)
		return false;
	*left = linitial(((OpExpr *) clause)->args);
	*right = lsecond(((OpExpr *) clause)->args);
	return true;
}

bool
gj_inequality_clause(Expr *clause, Expr **left, Expr **right, GjOp *op)
{
	OpExpr	   *node = (OpExpr *) clause;
	const GjDeviceFunction *func;

	if (!IsA(clause, OpExpr) || list_length(node->args) != 2)
		return false;
	set_opfuncid(node);
	func = gj_device_function(node->opfuncid);
	/* both bounds of a range must see the same key: no conversions that depend on them */
	if (func == NULL || (func->flags & GJ_CALL_CONVERTS) != 0)
		return false;
	switch (func->op)
	{
		case GJ_OP_LT_I:
		case GJ_OP_LE_I:
		case GJ_OP_GT_I:
		case GJ_OP_GE_I:
		case GJ_OP_LT_F:
		case GJ_OP_LE_F:
		case GJ_OP_GT_F:
		case GJ_OP_GE_F:
			*op = func->op;
			*left = linitial(node->args);
			*right = lsecond(node->args);
			return true;
		default:
			return false;
	}
}

bool
gj_key_is_exact(Expr *clause)
{
	const GjDeviceFunction *func = key_function(clause);

	return func != NULL && func->op != GJ_OP_EQ_T;
}

bool
gj_key_has_halves(Expr *clause)
{
	return key_function(clause)->op == GJ_OP_EQ_T;
}

bool
gj_halves_are_exact(Expr *clause)
{
	return gj_key_has_halves(clause) &&
		exprType(linitial(((OpExpr *) clause)->args)) == UUIDOID &&
		exprType(lsecond(((OpExpr *) clause)->args)) == UUIDOID;
}

/* True for values that are integers of at most 32 bits. */
static bool
is_narrow_integer(Expr *expr)
{
	switch (gj_type(exprType((Node *) expr))->kind)
	{
		case GJ_BOOL:
		case GJ_INT2:
		case GJ_INT4:
		case GJ_UINT4:
		case GJ_UINT1:
			return true;
		default:
			return false;
	}
}

bool
gj_key_packs(Expr *clause)
{
	const GjDeviceFunction *func = key_function(clause);
	List	   *args = ((OpExpr *) clause)->args;

	return func->op == GJ_OP_EQ_I && (func->flags & GJ_CALL_CONVERTS) == 0 &&
		is_narrow_integer(linitial(args)) && is_narrow_integer(lsecond(args));
}

int
gj_compile_packed_key(GjBuilder *builder, Expr *const *clauses, Expr *const *sides)
{
	GjCompileContext cxt = GJ_COMPILE_CONTEXT(builder);
	GjBuilderMark mark;
	int			first = builder->ninstrs;

	gj_builder_mark(builder, &mark);
	for (int i = 0; i < 2; i++)
		if (!gj_compile_argument(&cxt, key_function(clauses[i]), sides[i],
								 sides[i] == linitial(((OpExpr *) clauses[i])->args) ? 0 : 1, i))
		{
			gj_builder_reset(builder, &mark);
			return -1;
		}
	gj_emit(&cxt, (GjInstr) {.op = GJ_OP_PACK_I, .dst = 0, .a = 0, .b = 1});
	return gj_add_compiled(&cxt, first, INT8OID);
}

int
gj_compile_key(GjBuilder *builder, Expr *clause, Expr *side, int half)
{
	const GjDeviceFunction *func = key_function(clause);
	List	   *args = ((OpExpr *) clause)->args;
	GjCompileContext cxt = GJ_COMPILE_CONTEXT(builder);
	int			which = side == linitial(args) ? 0 : 1;
	GjBuilderMark mark;
	int			scale = 0;
	int			first = builder->ninstrs;

	/* there are no bytes to hash */
	if (gj_compares_stage_uuid(builder, (OpExpr *) clause))
		return gj_compile_half(builder, side, half);
	gj_builder_mark(builder, &mark);
	if (func->flags & GJ_CALL_DECIMAL)
	{
		/* the scale of the other side */
		if (!gj_compile_node(&cxt, list_nth(args, 1 - which), 0))
			scale = -1;
		else
			scale = cxt.scale;
		gj_builder_reset(builder, &mark);
		cxt = (GjCompileContext) GJ_COMPILE_CONTEXT(builder);
	}
	if (scale < 0 || !gj_compile_argument(&cxt, func, side, which, 0))
	{
		gj_builder_reset(builder, &mark);
		return -1;
	}
	if ((func->flags & GJ_CALL_DECIMAL) && cxt.scale < scale)
		gj_scale_up(&cxt, 0, cxt.scale, scale);
	if (half != GJ_WHOLE_KEY)
		gj_emit(&cxt, (GjInstr) {.op = GJ_OP_KEY_T,
				.arg = (half == 0 ? 0 : GJ_KEY_SECOND) |
				(gj_halves_are_exact(clause) ? GJ_KEY_WHOLE : 0)});
	else if (func->op == GJ_OP_EQ_T)
		gj_emit_unary(&cxt, GJ_OP_HASH_T, 0);
	return gj_add_compiled(&cxt, first, func->op == GJ_OP_EQ_T ? INT8OID : exprType((Node *) side));
}
