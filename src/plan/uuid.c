/*
 * uuid.c
 *	  Uuids as two halves of 64 bits, which are numbers in the order of uuids.
 *
 * Groups by a uuid have two integers as keys.  So a uuid of a stage's result is two columns: the
 * device compares their halves, and PostgreSQL makes a uuid of them for rows that are returned.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"

#include "plan/join_path.h"
#include "plan/make_expr.h"
#include "plan/uuid.h"
#include "rows/text.h"

/* The 8 bytes of a half: its first bit is inverted, for negative numbers are smaller. */
static Expr *
bytes_of_half(Expr *half)
{
	Expr	   *sign = gj_make_int8(PG_INT64_MIN);

	half = gj_make_call(F_INT8XOR, INT8OID, list_make2(half, sign));
	return gj_make_call(F_INT8SEND, BYTEAOID, list_make1(half));
}

Expr *
gj_make_uuid(Expr *first, Expr *second)
{
	Const	   *hex = makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1, CStringGetTextDatum("hex"),
								false, false);
	CoerceViaIO *uuid = makeNode(CoerceViaIO);
	Expr	   *bytes = gj_make_call(F_BYTEACAT, BYTEAOID,
									 list_make2(bytes_of_half(first), bytes_of_half(second)));

	uuid->arg = (Expr *) makeFuncExpr(F_ENCODE, TEXTOID, list_make2(bytes, hex),
									  DEFAULT_COLLATION_OID, DEFAULT_COLLATION_OID,
									  COERCE_EXPLICIT_CALL);
	uuid->resulttype = UUIDOID;
	uuid->coerceformat = COERCE_EXPLICIT_CAST;
	uuid->location = -1;
	return (Expr *) uuid;
}

/* Argument `which` of a call of a function; NULL: it is something else. */
static Expr *
argument_of(const Expr *call, Oid funcid, int which)
{
	if (call == NULL || !IsA(call, FuncExpr) || ((const FuncExpr *) call)->funcid != funcid)
		return NULL;
	return list_nth(((const FuncExpr *) call)->args, which);
}

Expr *
gj_half_of_uuid(const Expr *uuid, int half)
{
	Expr	   *halves[2];

	if (!IsA(uuid, CoerceViaIO))
		return NULL;
	for (int i = 0; i < 2; i++)
	{
		const Expr *bytes = argument_of(((const CoerceViaIO *) uuid)->arg, F_ENCODE, 0);

		bytes = argument_of(argument_of(bytes, F_BYTEACAT, i), F_INT8SEND, 0);
		halves[i] = argument_of(bytes, F_INT8XOR, 0);
		if (halves[i] == NULL || !IsA(halves[i], Var))
			return NULL;
	}
	/* the query may have such calls as well, with other constants */
	return equal(uuid, gj_make_uuid(halves[0], halves[1])) ? halves[half] : NULL;
}

/* The half that is a column of a stage's result; NULL: the expression is no uuid of a stage. */
static Expr *
stage_half(const GjBuilder *builder, const Expr *expr, int half)
{
	const Expr *uuid;

	if (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	uuid = gj_is_stage_column(builder, expr) ? gj_stage_expr(builder, (const Var *) expr) : NULL;
	return uuid != NULL ? gj_half_of_uuid(uuid, half) : NULL;
}

/* Compiles a half of a uuid to a register. */
static bool
compile_half(GjCompileContext *cxt, Expr *expr, int half, int depth)
{
	Expr	   *column = stage_half(cxt->builder, expr, half);

	if (column != NULL)
		return gj_compile_node(cxt, column, depth);
	if (!gj_compile_node(cxt, expr, depth))
		return false;
	gj_emit(cxt, (GjInstr) {.op = GJ_OP_KEY_T, .dst = depth, .a = depth,
			.arg = (half == 0 ? 0 : GJ_KEY_SECOND) | GJ_KEY_WHOLE | GJ_KEY_ORDERED});
	return true;
}

/* Compiles a half; GJ_WHOLE_KEY: both, as one integer that equal uuids have in common. */
static bool
compile_key(GjCompileContext *cxt, Expr *expr, int half)
{
	if (half != GJ_WHOLE_KEY)
		return compile_half(cxt, expr, half, 0);
	if (!compile_half(cxt, expr, 0, 0) || !compile_half(cxt, expr, 1, 1))
		return false;
	gj_emit(cxt, (GjInstr) {.op = GJ_OP_BIT_XOR, .dst = 0, .a = 0, .b = 1});
	return true;
}

int
gj_compile_half(GjBuilder *builder, Expr *expr, int half)
{
	return gj_compile_by(builder, expr, compile_key, half);
}

bool
gj_compares_stage_uuid(const GjBuilder *builder, const OpExpr *op)
{
	return (op->opfuncid == F_UUID_EQ || op->opfuncid == F_UUID_NE) &&
		(stage_half(builder, linitial(op->args), 0) != NULL ||
		 stage_half(builder, lsecond(op->args), 0) != NULL);
}

bool
gj_compile_uuid_equal(GjCompileContext *cxt, OpExpr *op, int depth)
{
	if (!gj_compares_stage_uuid(cxt->builder, op))
		return false;
	for (int half = 0; half < 2; half++)
	{
		int			at = depth + half;

		if (!gj_use_register(cxt, at + 1) ||
			!compile_half(cxt, linitial(op->args), half, at) ||
			!compile_half(cxt, lsecond(op->args), half, at + 1))
			return false;
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_EQ_I, .dst = at, .a = at, .b = at + 1});
	}
	gj_emit(cxt, (GjInstr) {.op = GJ_OP_AND, .dst = depth, .a = depth, .b = depth + 1});
	if (op->opfuncid == F_UUID_NE)
		gj_emit_unary(cxt, GJ_OP_NOT, depth);
	return true;
}
