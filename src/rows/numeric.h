/*
 * numeric.h
 *	  numeric with a scale that is known when the program is made: integers of 64 bits,
 *	  the value times 10^scale.
 *
 * Addition, subtraction, multiplication and comparison of such integers are those of
 * arith.h, once both have one scale.  What does not fit 64 bits, NaN and infinities
 * are errors of the row.
 */
#ifndef GJ_ROWS_NUMERIC_H
#define GJ_ROWS_NUMERIC_H

#include "arith.h"
#include "text.h"

#define GJ_MAX_SCALE	18		/* 10^18 fits a register */

/* 10^n for 0 <= n <= GJ_MAX_SCALE. */
GJ_FN int64_t
gj_power_of_10(int n)
{
	int64_t		power = 1;

	while (n-- > 0)
		power *= 10;
	return power;
}

GJ_FN uint32_t
gj_uint16_at(const uint8_t *p)
{
	return p[0] | (uint32_t) p[1] << 8;
}

/* *v = *v * factor + added, all of them not negative; false if it does not fit an int64. */
GJ_FN bool
gj_shift_in(int64_t *v, int64_t factor, int64_t added)
{
	return gj_mul_i(*v, factor, GJ_INT8, v) == GJ_OK && gj_add_i(*v, added, GJ_INT8, v) == GJ_OK;
}

/*
 * Decodes a numeric as it is stored, without its length header: a short or long header
 * with sign, weight and display scale, then digits of base 10000, the first of which
 * counts 10000^weight.  Its display scale must be `scale`.
 */
GJ_NOINLINE_FN uint32_t
gj_decode_numeric(const uint8_t *bytes, uint32_t nbytes, int scale, int64_t *result)
{
	uint32_t	header,
				header_size;
	bool		negative;
	int			weight,
				dscale,
				ndigits,
				last;			/* decimal digits that the last one of base 10000 counts */
	int64_t		v = 0;

	*result = 0;
	if (nbytes < 2)
		return GJ_UNKNOWN_VALUE;
	header = gj_uint16_at(bytes);
	if ((header & 0xC000) == 0xC000)
		return GJ_UNKNOWN_VALUE;	/* NaN or infinite */
	if (header & 0x8000)
	{
		header_size = 2;
		negative = (header & 0x2000) != 0;
		dscale = (int) (header >> 7 & 0x3F);
		weight = (int) (header & 0x3F) - (header & 0x40 ? 64 : 0);
	}
	else
	{
		header_size = 4;
		if (nbytes < 4)
			return GJ_UNKNOWN_VALUE;
		negative = (header & 0x4000) != 0;
		dscale = (int) (header & 0x3FFF);
		weight = (int16_t) gj_uint16_at(bytes + 2);
	}
	ndigits = (int) ((nbytes - header_size) / 2);
	if (dscale != scale)
		return GJ_UNKNOWN_VALUE;
	if (ndigits == 0)
		return GJ_OK;
	bytes += header_size;
	for (int i = 0; i < ndigits - 1; i++)
		if (!gj_shift_in(&v, 10000, gj_uint16_at(bytes + i * 2)))
			return GJ_OVERFLOW;
	/* of the last digit only what is before the end of the scale: the rest is zeros */
	last = 4 * (weight - ndigits + 2) + scale;
	if (last < 0)
		return GJ_UNKNOWN_VALUE;
	if (last < 4)
	{
		int64_t		rest = gj_power_of_10(4 - last);
		int64_t		digit = gj_uint16_at(bytes + (ndigits - 1) * 2);

		if (digit % rest != 0)
			return GJ_UNKNOWN_VALUE;
		if (!gj_shift_in(&v, gj_power_of_10(last), digit / rest))
			return GJ_OVERFLOW;
	}
	else if (!gj_shift_in(&v, 10000, gj_uint16_at(bytes + (ndigits - 1) * 2)) ||
			 last - 4 > GJ_MAX_SCALE || !gj_shift_in(&v, gj_power_of_10(last - 4), 0))
		return GJ_OVERFLOW;
	*result = negative ? -v : v;
	return GJ_OK;
}

/* a / power, a power of 10, rounded. */
GJ_FN int64_t
gj_scale_down(int64_t a, int64_t power, uint32_t rounding)
{
	int64_t		q = a / power;
	int64_t		r = a % power;

	switch (rounding)
	{
		case GJ_ROUND_HALF_AWAY:
			if (r >= power - r)
				return q + 1;
			return -r >= power + r ? q - 1 : q;
		case GJ_ROUND_FLOOR:
			return q - (r < 0);
		case GJ_ROUND_CEIL:
			return q + (r > 0);
		default:
			return q;
	}
}

/*
 * a / power as a double.  PostgreSQL goes by way of the decimal text, which gives the
 * nearest double; so does one division of two integers that doubles hold exactly.
 */
GJ_FN uint32_t
gj_decimal_to_f(int64_t a, int64_t power, double *result)
{
	*result = (double) a / (double) power;
	return a > (INT64_C(1) << 53) || a < -(INT64_C(1) << 53) ? GJ_UNKNOWN_VALUE : GJ_OK;
}

#endif							/* GJ_ROWS_NUMERIC_H */
