/*
 * compare.h
 *	  Order of values as PostgreSQL defines it.
 *
 * Floats: NaN equals NaN and is greater than everything else; -0 equals 0
 * (float8_cmp_internal's order).
 */
#ifndef GJ_ROWS_COMPARE_H
#define GJ_ROWS_COMPARE_H

#include "primitives.h"

GJ_FN bool
gj_eq_f(double a, double b)
{
	return gj_isnan(a) ? gj_isnan(b) : a == b;
}

GJ_FN bool
gj_lt_f(double a, double b)
{
	return gj_isnan(a) ? false : (gj_isnan(b) || a < b);
}

/* True if constants[0 .. n), ascending, contain v. */
GJ_FN bool
gj_in_i(int64_t v, const int64_t *constants, uint32_t n)
{
	uint32_t	low = 0,
				high = n;

	while (low < high)
	{
		uint32_t	mid = low + (high - low) / 2;

		if (constants[mid] < v)
			low = mid + 1;
		else
			high = mid;
	}
	return low < n && constants[low] == v;
}

/* The same for doubles, given as bits and ascending in gj_lt_f's order. */
GJ_FN bool
gj_in_f(double v, const int64_t *constants, uint32_t n)
{
	uint32_t	low = 0,
				high = n;

	while (low < high)
	{
		uint32_t	mid = low + (high - low) / 2;

		if (gj_lt_f(gj_bits_to_double(constants[mid]), v))
			low = mid + 1;
		else
			high = mid;
	}
	return low < n && gj_eq_f(gj_bits_to_double(constants[low]), v);
}

#endif							/* GJ_ROWS_COMPARE_H */
