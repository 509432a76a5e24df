/*
 * decimal.c
 *	  numeric(p, s) of at most 18 digits as an integer; see decimal.h.
 *
 * The format is that of PostgreSQL's numeric.c: a header with sign, weight and display scale, then
 * digits of base 10000, the first of which counts 10000^weight, without zeros at both ends.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "load/decimal.h"

#define HEADER_SHORT		0x8000
#define HEADER_NAN			0xC000
#define HEADER_NEGATIVE		0x2000

int
gj_typmod_scale(Oid typid, int32 typmod, int *precision)
{
	int			scale;

	if (getBaseTypeAndTypmod(typid, &typmod) != NUMERICOID || typmod < (int32) VARHDRSZ)
		return -1;
	*precision = ((typmod - VARHDRSZ) >> 16) & 0xFFFF;
	/* the scale has 11 bits, one of them its sign */
	scale = (((typmod - VARHDRSZ) & 0x7FF) ^ 1024) - 1024;
	return scale >= 0 && scale <= GJ_MAX_SCALE ? scale : -1;
}

int
gj_decimal_scale(Oid typid, int32 typmod)
{
	int			precision = 0;
	int			scale = gj_typmod_scale(typid, typmod, &precision);

	return precision <= GJ_DECIMAL_DIGITS ? scale : -1;
}

typedef struct Noted
{
	Oid			relid;
	AttrNumber	attno;
} Noted;

/* Of this process, in no order; few tables have such a column. */
static Noted *noted;
static int	nnoted;

bool
gj_decimal_noted(Oid relid, AttrNumber attno)
{
	for (int i = 0; i < nnoted; i++)
		if (noted[i].relid == relid && noted[i].attno == attno)
			return true;
	return false;
}

void
gj_decimal_note(Oid relid, AttrNumber attno)
{
	Size		nbytes = (nnoted + 1) * sizeof(Noted);

	if (gj_decimal_noted(relid, attno))
		return;
	noted = noted ? repalloc(noted, nbytes) : MemoryContextAlloc(TopMemoryContext, nbytes);
	noted[nnoted++] = (Noted) {relid, attno};
}

bool
gj_decimal_read(const char *value, int scale, int64 *result)
{
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(value);
	uint32		nbytes;

	if (VARATT_IS_EXTERNAL(value) || VARATT_IS_COMPRESSED(value))
		return false;
	nbytes = VARSIZE_ANY_EXHDR(value);
	if (nbytes == sizeof(uint16) && gj_uint16_at(bytes) == HEADER_NAN)
	{
		*result = GJ_DECIMAL_NAN;
		return true;
	}
	return gj_decode_numeric(bytes, nbytes, scale, result) == GJ_OK &&
		*result < GJ_DECIMAL_NAN && *result > -GJ_DECIMAL_NAN;
}

/* Puts the groups of four digits of an integer before the end of groups[]; returns their number. */
static int
integer_groups(uint64 v, int16 *end)
{
	int			n = 0;

	for (; v > 0; v /= 10000)
		*--end = (int16) (v % 10000), n++;
	return n;
}

void
gj_decimal_write(int64 v, int scale, char *to)
{
	int16		groups[2 * GJ_DECIMAL_DIGITS];
	int16	   *middle = groups + GJ_DECIMAL_DIGITS;
	uint64		magnitude = v < 0 ? -(uint64) v : (uint64) v;
	uint64		power = (uint64) gj_power_of_10(scale);
	uint64		rest = magnitude % power;
	int			before = integer_groups(magnitude / power, middle);
	int			after = 0;
	int			first = -before;
	uint16		header = HEADER_SHORT | (v < 0 ? HEADER_NEGATIVE : 0) | scale << 7;

	if (v == GJ_DECIMAL_NAN)
	{
		header = HEADER_NAN;
		before = first = 0;
		rest = 0;
	}
	for (int left = scale; rest > 0; left -= 4)
	{
		/* the next four digits of those that are left; zeros behind the last one */
		uint64		unit = left > 4 ? (uint64) gj_power_of_10(left - 4) : 1;

		middle[after++] = (int16) (left >= 4 ? rest / unit : rest * gj_power_of_10(4 - left));
		rest = left > 4 ? rest % unit : 0;
	}
	/* no zeros at the ends */
	while (first < after && middle[first] == 0)
		first++;
	while (after > first && middle[after - 1] == 0)
		after--;
	/* the group before the point counts 10000^0 */
	if (first < after && v != GJ_DECIMAL_NAN)
		header |= (uint16) ((-first - 1) & 0x7F);
	SET_VARSIZE_SHORT(to, VARHDRSZ_SHORT + sizeof(header) + (after - first) * sizeof(int16));
	memcpy(to + VARHDRSZ_SHORT, &header, sizeof(header));
	memcpy(to + VARHDRSZ_SHORT + sizeof(header), middle + first, (after - first) * sizeof(int16));
}
