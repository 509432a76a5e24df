/*
 * arith.h
 *	  Arithmetic as PostgreSQL does it: each function stores its result and returns
 *	  a GjStatus, GJ_OK or the error that PostgreSQL would raise.
 *
 * Where it is not GJ_OK the result means nothing; the program ends and PostgreSQL's
 * own plan runs, which raises the error if it really evaluates that row.
 */
#ifndef GJ_ROWS_ARITH_H
#define GJ_ROWS_ARITH_H

#include "wire/columns.h"
#include "wire/reasons.h"
#include "primitives.h"

/* True if v is a value of the integer type that `kind` (a GjKind) stands for. */
GJ_FN bool
gj_in_range(int64_t v, uint32_t kind)
{
	switch (kind)
	{
		case GJ_BOOL:
			return v == 0 || v == 1;
		case GJ_INT2:
			return v >= INT16_MIN && v <= INT16_MAX;
		case GJ_INT4:
			return v >= INT32_MIN && v <= INT32_MAX;
		case GJ_UINT4:
			return v >= 0 && v <= (int64_t) UINT32_MAX;
		default:
			return true;
	}
}

GJ_FN uint32_t
gj_range_status(int64_t v, uint32_t kind)
{
	return gj_in_range(v, kind) ? GJ_OK : GJ_OVERFLOW;
}

/* a + b, or a - b, modulo 2^64; true if it does not fit. */
GJ_FN bool
gj_sum_i(int64_t a, int64_t b, bool minus, int64_t *result)
{
	/* a - b is a + ~b + 1 */
	int64_t		c = minus ? ~b : b;
	int64_t		r = (int64_t) ((uint64_t) a + (uint64_t) c + minus);

	*result = r;
	return ((a ^ r) & (c ^ r)) < 0;
}

GJ_FN uint32_t
gj_add_i(int64_t a, int64_t b, uint32_t kind, int64_t *result)
{
	return gj_sum_i(a, b, false, result) ? (uint32_t) GJ_OVERFLOW : gj_range_status(*result, kind);
}

GJ_FN uint32_t
gj_sub_i(int64_t a, int64_t b, uint32_t kind, int64_t *result)
{
	return gj_sum_i(a, b, true, result) ? (uint32_t) GJ_OVERFLOW : gj_range_status(*result, kind);
}

GJ_FN uint32_t
gj_mul_i(int64_t a, int64_t b, uint32_t kind, int64_t *result)
{
	int64_t		r = (int64_t) ((uint64_t) a * (uint64_t) b);

	*result = r;
	/* the high half must be the sign extension of the low one */
	if (gj_mulhi_i64(a, b) != (r >> 63))
		return GJ_OVERFLOW;
	return gj_range_status(r, kind);
}

/* Truncates towards zero. */
GJ_FN uint32_t
gj_div_i(int64_t a, int64_t b, uint32_t kind, int64_t *result)
{
	*result = 0;
	if (b == 0)
		return GJ_DIVISION_BY_ZERO;
	if (b == -1)
		return gj_sub_i(0, a, kind, result);
	/* division of 32 bits takes a fraction of the time */
	*result = a == (int32_t) a && b == (int32_t) b ? (int32_t) a / (int32_t) b : a / b;
	return gj_range_status(*result, kind);
}

/* The remainder has the sign of a. */
GJ_FN uint32_t
gj_mod_i(int64_t a, int64_t b, int64_t *result)
{
	*result = 0;
	if (b == 0)
		return GJ_DIVISION_BY_ZERO;
	/* division of 32 bits takes a fraction of the time */
	if (a == (int32_t) a && b == (int32_t) b)
		*result = b == -1 ? 0 : (int32_t) a % (int32_t) b;
	else
		*result = b == -1 ? 0 : a % b;
	return GJ_OK;
}

GJ_FN uint32_t
gj_abs_i(int64_t a, uint32_t kind, int64_t *result)
{
	if (a < 0)
		return gj_sub_i(0, a, kind, result);
	*result = a;
	return GJ_OK;
}

/* The machine's shift, by fewer places than there are bits. */
GJ_FN uint32_t
gj_shift_left(int64_t a, int64_t places, uint32_t kind, int64_t *result)
{
	int64_t		width = kind == GJ_INT8 ? 64 : 32;
	uint64_t	bits;

	*result = 0;
	if (places < 0 || places >= width)
		return GJ_UNKNOWN_VALUE;
	bits = (uint64_t) a << places;
	*result = kind == GJ_INT8 ? (int64_t) bits : kind == GJ_INT4 ? (int64_t) (int32_t) (uint32_t) bits :
		(int64_t) (int16_t) (uint16_t) bits;
	return GJ_OK;
}

GJ_FN uint32_t
gj_shift_right(int64_t a, int64_t places, uint32_t kind, int64_t *result)
{
	*result = 0;
	if (places < 0 || places >= (kind == GJ_INT8 ? 64 : 32))
		return GJ_UNKNOWN_VALUE;
	*result = a >> places;
	return GJ_OK;
}

/* Rounds to the nearest integer, halves to the even one. */
GJ_FN uint32_t
gj_f_to_i(double a, uint32_t kind, int64_t *result)
{
	double		limit = kind == GJ_INT2 ? 32768.0 : kind == GJ_INT4 ? 2147483648.0 : 9223372036854775808.0;
	double		rounded = gj_rint(a);

	*result = 0;
	if (!(rounded >= -limit && rounded < limit))
		return GJ_OVERFLOW;
	*result = (int64_t) rounded;
	return GJ_OK;
}

/*
 * The nearest float4, as a double; also what the arithmetic of float4 makes of the
 * exact result, since a double has more than twice the digits.
 */
GJ_FN uint32_t
gj_f_to_f4(double a, double *result)
{
	*result = (double) (float) a;
	return (gj_isinf(*result) && !gj_isinf(a)) || (*result == 0.0 && a != 0.0) ? GJ_OVERFLOW : GJ_OK;
}

GJ_FN uint32_t
gj_sqrt_f(double a, double *result)
{
	*result = a < 0.0 ? 0.0 : gj_sqrt(a);
	return a < 0.0 ? GJ_UNKNOWN_VALUE : GJ_OK;
}

GJ_FN double
gj_trunc_f(double a)
{
	return a >= 0.0 ? gj_floor(a) : gj_ceil(a);
}

GJ_FN double
gj_sign_f(double a)
{
	return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : 0.0;
}

/* An infinite result of finite operands is an error in PostgreSQL. */
GJ_FN uint32_t
gj_overflow_f(double r, double a, double b)
{
	return gj_isinf(r) && !gj_isinf(a) && !gj_isinf(b) ? GJ_OVERFLOW : GJ_OK;
}

GJ_FN uint32_t
gj_add_f(double a, double b, double *result)
{
	*result = a + b;
	return gj_overflow_f(*result, a, b);
}

GJ_FN uint32_t
gj_sub_f(double a, double b, double *result)
{
	*result = a - b;
	return gj_overflow_f(*result, a, b);
}

/* So is a zero product of factors that are not zero. */
GJ_FN uint32_t
gj_mul_f(double a, double b, double *result)
{
	*result = a * b;
	if (*result == 0.0 && a != 0.0 && b != 0.0)
		return GJ_OVERFLOW;
	return gj_overflow_f(*result, a, b);
}

GJ_FN uint32_t
gj_div_f(double a, double b, double *result)
{
	*result = 0.0;
	if (b == 0.0)
		return gj_isnan(a) ? (*result = a, (uint32_t) GJ_OK) : (uint32_t) GJ_DIVISION_BY_ZERO;
	*result = a / b;
	if (*result == 0.0 && a != 0.0 && !gj_isinf(b))
		return GJ_OVERFLOW;
	return gj_isinf(*result) && !gj_isinf(a) ? GJ_OVERFLOW : GJ_OK;
}

#endif							/* GJ_ROWS_ARITH_H */
