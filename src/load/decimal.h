/*
 * decimal.h
 *	  numeric(p, s) of at most 18 digits as an integer: the value times 10^s.
 *
 * The loader makes such integers of what a table stores, and results become numerics again.
 * Values of such a column all show s digits, and each has one representation, so nothing is lost.
 * NaN is an integer that no value has; the device can carry it, but not compute with it.  A query
 * that would falls back, and this process then loads the column as it is stored.
 */
#ifndef GJ_LOAD_DECIMAL_H
#define GJ_LOAD_DECIMAL_H

#include "compat.h"
#include "rows/numeric.h"

#define GJ_DECIMAL_DIGITS	18
#define GJ_DECIMAL_NAN		INT64_MAX
/* Bytes that a value can take as it is stored: header, and groups of four digits. */
#define GJ_DECIMAL_BYTES	16

/* The scale of a numeric's typmod, of the domain's if it is one, and its precision; -1: none. */
extern int	gj_typmod_scale(Oid typid, int32 typmod, int *precision);

/* The scale of a type, or domain, whose values can be such integers; of all others -1. */
extern int	gj_decimal_scale(Oid typid, int32 typmod);

/* Notes, or tells, that a column of a table has values that are no numbers. */
extern void gj_decimal_note(Oid relid, AttrNumber attno);
extern bool gj_decimal_noted(Oid relid, AttrNumber attno);

/*
 * The integer of a value as it lies in a tuple: short, or with a length of 4 bytes.  False: it is
 * none of a column of this scale.
 */
extern bool gj_decimal_read(const char *value, int scale, int64 *result);

/* gj_decimal_read of the usual values: positive or not, up to three groups of digits. */
static inline bool
gj_decimal_read_fast(const char *value, int scale, int64 *result)
{
	const uint8 *bytes = (const uint8 *) value;
	uint32		header;
	int			ngroups;
	int			weight;
	int			shift;			/* of the last group: digits after it up to the end of the scale */
	int64		v = 0;

	static const int64 power[] = {1, 10, 100, 1000, 10000, 100000, 1000000};

	if (!VARATT_IS_1B(value) || VARATT_IS_1B_E(value) || VARSIZE_1B(value) > 3 + 3 * sizeof(int16))
		return gj_decimal_read(value, scale, result);
	ngroups = ((int) VARSIZE_1B(value) - 3) / (int) sizeof(int16);
	header = gj_uint16_at(bytes + 1);
	weight = (int) (header & 0x3F) - (int) (header & 0x40);
	shift = 4 * (weight - ngroups + 1) + scale;
	if ((header & 0xC000) != 0x8000 || (int) (header >> 7 & 0x3F) != scale || ngroups < 1 ||
		shift < -3 || shift > 6)
		return gj_decimal_read(value, scale, result);
	for (int i = 0; i < ngroups; i++)
		v = v * 10000 + gj_uint16_at(bytes + 3 + 2 * i);
	if (shift >= 0)
		v *= power[shift];
	else
	{
		if (v % power[-shift] != 0)
			return false;
		v /= power[-shift];
	}
	*result = header & 0x2000 ? -v : v;
	return true;
}

/* Makes the value as it is stored; to: GJ_DECIMAL_BYTES. */
extern void gj_decimal_write(int64 v, int scale, char *to);

#endif							/* GJ_LOAD_DECIMAL_H */
