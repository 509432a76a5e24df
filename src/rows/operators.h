/*
 * operators.h
 *	  The operators of two numbers: value and error of each, for all that evaluate expressions.
 *
 * An evaluator brings its own loop and its own way to load operands.  It passes a macro for each
 * type of result, MACRO(op, call), and has variables for the operands x and y and for arg, which is
 * GjInstr's.  The call stores its result to r, an int64_t or a double, and returns a GjStatus.
 * All operators are strict: NULL if an operand is, and then an error does not count.
 */
#ifndef GJ_ROWS_OPERATORS_H
#define GJ_ROWS_OPERATORS_H

#include "wire/program.h"
#include "arith.h"
#include "compare.h"
#include "datetime.h"

#define GJ_F(value) gj_bits_to_double(value)

/* Two integers of 32 bits as one of 64: equal if both are. */
GJ_FN int64_t
gj_pack_i(int64_t x, int64_t y)
{
	return (int64_t) ((uint64_t) x << 32 | (uint32_t) y);
}

/* A call that cannot fail. */
#define GJ_SET(value) (r = (value), (uint32_t) GJ_OK)

/* Those that take few instructions. */
#define GJ_SHORT_OPERATORS(INTEGER) \
	INTEGER(GJ_OP_EQ_I, GJ_SET(x == y)) \
	INTEGER(GJ_OP_NE_I, GJ_SET(x != y)) \
	INTEGER(GJ_OP_LT_I, GJ_SET(x < y)) \
	INTEGER(GJ_OP_LE_I, GJ_SET(x <= y)) \
	INTEGER(GJ_OP_GT_I, GJ_SET(x > y)) \
	INTEGER(GJ_OP_GE_I, GJ_SET(x >= y)) \
	INTEGER(GJ_OP_ADD_I, gj_add_i(x, y, arg, &r)) \
	INTEGER(GJ_OP_SUB_I, gj_sub_i(x, y, arg, &r)) \
	INTEGER(GJ_OP_MUL_I, gj_mul_i(x, y, arg, &r)) \
	INTEGER(GJ_OP_PACK_I, GJ_SET(gj_pack_i(x, y)))

#define GJ_LONG_OPERATORS(INTEGER, FLOAT) \
	INTEGER(GJ_OP_EQ_F, GJ_SET(gj_eq_f(GJ_F(x), GJ_F(y)))) \
	INTEGER(GJ_OP_NE_F, GJ_SET(!gj_eq_f(GJ_F(x), GJ_F(y)))) \
	INTEGER(GJ_OP_LT_F, GJ_SET(gj_lt_f(GJ_F(x), GJ_F(y)))) \
	INTEGER(GJ_OP_LE_F, GJ_SET(!gj_lt_f(GJ_F(y), GJ_F(x)))) \
	INTEGER(GJ_OP_GT_F, GJ_SET(gj_lt_f(GJ_F(y), GJ_F(x)))) \
	INTEGER(GJ_OP_GE_F, GJ_SET(!gj_lt_f(GJ_F(x), GJ_F(y)))) \
	INTEGER(GJ_OP_DIV_I, gj_div_i(x, y, arg, &r)) \
	INTEGER(GJ_OP_MOD_I, gj_mod_i(x, y, &r)) \
	INTEGER(GJ_OP_EXTRACT_DATE, gj_extract_date(x, arg, &r)) \
	FLOAT(GJ_OP_ADD_F, gj_add_f(GJ_F(x), GJ_F(y), &r)) \
	FLOAT(GJ_OP_SUB_F, gj_sub_f(GJ_F(x), GJ_F(y), &r)) \
	FLOAT(GJ_OP_MUL_F, gj_mul_f(GJ_F(x), GJ_F(y), &r))

/* The sum, difference or product of values of 32 bits, which 64 bits hold. */
GJ_FN int64_t
gj_exact_i(uint32_t op, int64_t x, int64_t y)
{
	return op == GJ_OP_MUL_I ? x * y : op == GJ_OP_SUB_I ? x - y : x + y;
}

/* ---- two values, which are not NULL */

#define GJ_APPLY(op, call) case op: status = (call); *result = r; return status;
#define GJ_APPLY_F(op, call) \
	case op: { double r; status = (call); *result = gj_double_to_bits(r); return status; }

/* In a function of its own, so that it costs kernels no registers. */
GJ_NOINLINE_FN uint32_t
gj_apply_long(uint32_t op, uint32_t arg, int64_t x, int64_t y, int64_t *result)
{
	uint32_t	status;
	int64_t		r;

	switch (op)
	{
			GJ_LONG_OPERATORS(GJ_APPLY, GJ_APPLY_F)
	}
	*result = 0;
	return GJ_UNKNOWN_VALUE;
}

/* x <op> y; returns an error. */
GJ_FN uint32_t
gj_apply(uint32_t op, uint32_t arg, int64_t x, int64_t y, int64_t *result)
{
	uint32_t	status;
	int64_t		r;

	switch (op)
	{
			GJ_SHORT_OPERATORS(GJ_APPLY)
	}
	/* what a call has the address of stays in no register */
	status = gj_apply_long(op, arg, x, y, &r);
	*result = r;
	return status;
}

#undef GJ_APPLY
#undef GJ_APPLY_F

#define GJ_CASE(op, call) case op:

/* True if gj_apply knows the operator. */
GJ_FN bool
gj_applies(uint32_t op)
{
	switch (op)
	{
			GJ_SHORT_OPERATORS(GJ_CASE) GJ_LONG_OPERATORS(GJ_CASE, GJ_CASE)
			return true;
		default:
			return false;
	}
}

#undef GJ_CASE

#endif							/* GJ_ROWS_OPERATORS_H */
