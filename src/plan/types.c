/*
 * types.c
 *	  What the device knows of each data type.
 *
 * A new type is a row of known_types here, and rows for its functions in
 * device_functions.c.  A type without a row is carried.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/uuid.h"

#include "load/decimal.h"
#include "plan/types.h"
#include "rows/compare.h"
#include "rows/datetime.h"
#include "rows/numeric.h"

static const GjType known_types[] = {
	{BOOLOID, GJ_BOOL, 1, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{CHAROID, GJ_UINT1, 1, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{INT2OID, GJ_INT2, 2, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{INT4OID, GJ_INT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{INT8OID, GJ_INT8, 8, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{OIDOID, GJ_UINT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{REGPROCOID, GJ_UINT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{REGPROCEDUREOID, GJ_UINT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{REGOPEROID, GJ_UINT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{REGOPERATOROID, GJ_UINT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{REGCLASSOID, GJ_UINT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{REGTYPEOID, GJ_UINT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{REGROLEOID, GJ_UINT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{REGNAMESPACEOID, GJ_UINT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{REGCOLLATIONOID, GJ_UINT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{REGCONFIGOID, GJ_UINT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{REGDICTIONARYOID, GJ_UINT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{FLOAT4OID, GJ_FLOAT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{FLOAT8OID, GJ_FLOAT8, 8, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{DATEOID, GJ_INT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{TIMEOID, GJ_INT8, 8, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{TIMESTAMPOID, GJ_INT8, 8, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{TIMESTAMPTZOID, GJ_INT8, 8, GJ_READ_PLAIN, GJ_EQUAL_VALUE},
	{NUMERICOID, GJ_REF, 8, GJ_READ_DECIMAL, GJ_EQUAL_BYTES},
	{TEXTOID, GJ_REF, 8, GJ_READ_VARLENA, GJ_EQUAL_BYTES},
	{VARCHAROID, GJ_REF, 8, GJ_READ_VARLENA, GJ_EQUAL_BYTES},
	{BPCHAROID, GJ_REF, 8, GJ_READ_VARLENA, GJ_EQUAL_PADDED},
	{BYTEAOID, GJ_REF, 8, GJ_READ_VARLENA, GJ_EQUAL_BYTES},
	{INETOID, GJ_REF, 8, GJ_READ_VARLENA, GJ_EQUAL_BYTES},
	{CIDROID, GJ_REF, 8, GJ_READ_VARLENA, GJ_EQUAL_BYTES},
	{NAMEOID, GJ_REF, 8, GJ_READ_CSTRING, GJ_EQUAL_UNKNOWN},
	{MACADDROID, GJ_REF, 8, GJ_READ_FIXED, GJ_EQUAL_UNKNOWN},
	{UUIDOID, GJ_BYTES, 16, GJ_READ_FIXED, GJ_EQUAL_BYTES},
};

/* anyenum stands for all enums: the OIDs of their labels, of which only equality is known */
static const GjType enum_type = {ANYENUMOID, GJ_UINT4, 4, GJ_READ_PLAIN, GJ_EQUAL_VALUE};
static const GjType carried_type = {InvalidOid, GJ_REF, 8, GJ_READ_NONE, GJ_EQUAL_UNKNOWN};

const GjType *
gj_type(Oid typid)
{
	/* types whose OIDs were assigned by hand are neither domains nor enums */
	bool		builtin = typid < FirstGenbkiObjectId;

	if (!builtin)
		typid = getBaseType(typid);
	for (int i = 0; i < lengthof(known_types); i++)
		if (known_types[i].typid == typid)
			return &known_types[i];
	return !builtin && type_is_enum(typid) ? &enum_type : &carried_type;
}

GjColumnType
gj_column_type(Oid typid)
{
	const GjType *known = gj_type(typid);
	GjColumnType type = {.kind = known->kind, .width = known->width, .nullable = 1};
	int16		typlen;
	bool		typbyval;

	if (known->reading != GJ_READ_NONE)
		return type;
	get_typlenbyval(typid, &typlen, &typbyval);
	if (typbyval || typlen == 16)
	{
		type.kind = GJ_BYTES;
		type.width = typlen;
	}
	return type;
}

int
gj_value_kind(Oid typid)
{
	const GjType *type = gj_type(typid);

	switch (type->reading)
	{
		case GJ_READ_NONE:
			return -1;
		case GJ_READ_PLAIN:
			return type->kind == GJ_FLOAT4 ? GJ_FLOAT8 : type->kind;
		case GJ_READ_DECIMAL:
			return GJ_INT8;
		default:
			return GJ_TEXT;
	}
}

int
gj_numeric_scale(Oid typid, int32 typmod)
{
	int			precision;

	return gj_typmod_scale(typid, typmod, &precision);
}

GjColumnType
gj_loaded_type(Oid typid, int32 typmod, int *scale)
{
	*scale = gj_type(typid)->reading == GJ_READ_DECIMAL ? gj_decimal_scale(typid, typmod) : -1;
	return gj_column_type(*scale < 0 ? typid : INT8OID);
}

GjEquality
gj_type_equality(Oid typid, int32 typmod, Oid collation)
{
	const GjType *type = gj_type(typid);

	/* of one scale, and so of one representation */
	if (type->reading == GJ_READ_DECIMAL && gj_numeric_scale(typid, typmod) < 0)
		return GJ_EQUAL_UNKNOWN;
	if (OidIsValid(collation) && !get_collation_isdeterministic(collation))
		return GJ_EQUAL_UNKNOWN;
	return type->equality;
}

int64
gj_register_value(Oid typid, Datum value)
{
	switch (gj_type(typid)->kind)
	{
		case GJ_BOOL:
			return DatumGetBool(value);
		case GJ_UINT1:
			return (uint8) DatumGetChar(value);
		case GJ_INT2:
			return DatumGetInt16(value);
		case GJ_INT4:
			return DatumGetInt32(value);
		case GJ_UINT4:
			return DatumGetObjectId(value);
		case GJ_FLOAT4:
			return gj_double_to_bits((double) DatumGetFloat4(value));
		default:				/* GJ_INT8, GJ_FLOAT8 */
			return DatumGetInt64(value);
	}
}

const char *
gj_value_bytes(Oid typid, Datum value, Size *n)
{
	const GjType *type = gj_type(typid);

	switch (type->reading)
	{
		case GJ_READ_CSTRING:
			*n = strlen(NameStr(*DatumGetName(value)));
			return NameStr(*DatumGetName(value));
		case GJ_READ_FIXED:
			*n = type->typid == UUIDOID ? UUID_LEN : get_typlen(type->typid);
			return DatumGetPointer(value);
		default:
			{
				struct varlena *flat = PG_DETOAST_DATUM_PACKED(value);

				*n = VARSIZE_ANY_EXHDR(flat);
				return VARDATA_ANY(flat);
			}
	}
}

bool
gj_numeric_value(Datum value, int *scale, int64 *result)
{
	Numeric		numeric = DatumGetNumeric(value);

	if (numeric_is_nan(numeric) || numeric_is_inf(numeric))
		return false;
	*scale = DatumGetInt32(DirectFunctionCall1(numeric_scale, NumericGetDatum(numeric)));
	return *scale <= GJ_MAX_SCALE &&
		gj_decode_numeric((const uint8 *) VARDATA_ANY(numeric), VARSIZE_ANY_EXHDR(numeric),
						  *scale, result) == GJ_OK;
}

bool
gj_numeric_bound(Datum value, int scale, GjBound bound, int64 *result)
{
	Datum		power = NumericGetDatum(int64_to_numeric(gj_power_of_10(scale)));
	Datum		scaled,
				rounded;
	int			own;

	if (numeric_is_nan(DatumGetNumeric(value)) || numeric_is_inf(DatumGetNumeric(value)) ||
		DatumGetInt32(DirectFunctionCall1(numeric_scale, value)) > NUMERIC_MAX_DISPLAY_SCALE / 2)
		return false;			/* numeric_mul() may round then */
	/* nor may it overflow */
	if (DatumGetBool(DirectFunctionCall2(numeric_ge, DirectFunctionCall1(numeric_abs, value),
										 NumericGetDatum(int64_to_numeric(INT64CONST(1000000000000000000))))))
		return false;
	scaled = DirectFunctionCall2(numeric_mul, value, power);
	rounded = DirectFunctionCall1(bound == GJ_BOUND_CEIL ? numeric_ceil : numeric_floor, scaled);
	return (bound != GJ_BOUND_EXACT ||
			DatumGetBool(DirectFunctionCall2(numeric_eq, scaled, rounded))) &&
		gj_numeric_value(rounded, &own, result) && own == 0;
}

int64
gj_date_bound(Timestamp timestamp, GjBound bound)
{
	int64		day;

	if (!gj_timestamp_is_finite(timestamp))
		return timestamp < 0 ? PG_INT32_MIN : PG_INT32_MAX;
	day = gj_floor_div(timestamp, GJ_US_PER_DAY);
	if (timestamp == day * GJ_US_PER_DAY || bound == GJ_BOUND_FLOOR)
		return day;
	return bound == GJ_BOUND_CEIL ? day + 1 : PG_INT64_MAX;
}

/* ---- lists */

static int
compare_int64(const void *a, const void *b)
{
	int64		x = *(const int64 *) a,
				y = *(const int64 *) b;

	return (x > y) - (x < y);
}

static int
compare_double_bits(const void *a, const void *b)
{
	double		x = gj_bits_to_double(*(const int64 *) a),
				y = gj_bits_to_double(*(const int64 *) b);

	return gj_lt_f(x, y) ? -1 : gj_lt_f(y, x) ? 1 : 0;
}

typedef struct TextElement
{
	const char *bytes;
	Size		n;
} TextElement;

static int
compare_texts(const void *a, const void *b)
{
	const TextElement *x = a,
			   *y = b;
	int			order = memcmp(x->bytes, y->bytes, Min(x->n, y->n));

	return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

/* Entries, then the bytes that they lead to; see gj_in_t(). */
static int64 *
text_constants(Oid element, const Datum *values, int n, int *nwords)
{
	TextElement *texts = palloc(sizeof(TextElement) * Max(n, 1));
	Size		at = n;
	int64	   *result;

	for (int i = 0; i < n; i++)
	{
		texts[i].bytes = gj_value_bytes(element, values[i], &texts[i].n);
		if (gj_type(element)->equality == GJ_EQUAL_PADDED)
			while (texts[i].n > 0 && texts[i].bytes[texts[i].n - 1] == ' ')
				texts[i].n--;
		if (texts[i].n > GJ_MAX_TEXT)
			return NULL;
		at += (texts[i].n + 7) / 8;
	}
	if (at > GJ_MAX_PROGRAM_SIZE / sizeof(int64))
		return NULL;
	qsort(texts, n, sizeof(TextElement), compare_texts);
	result = palloc0(sizeof(int64) * Max(at, 1));
	*nwords = at;
	at = n;
	for (int i = 0; i < n; i++)
	{
		result[i] = (int64) at << 16 | (int64) texts[i].n;
		memcpy(result + at, texts[i].bytes, texts[i].n);
		at += (texts[i].n + 7) / 8;
	}
	return result;
}

/* Numerics that have a value at `scale`; returns their number. */
static int
decimal_constants(const Datum *values, int n, int scale, int64 *result)
{
	int			found = 0;

	for (int i = 0; i < n; i++)
	{
		int64		value;
		int			own;

		if (!gj_numeric_value(values[i], &own, &value))
			continue;			/* no value that a register can have equals it */
		if (own > scale && value % gj_power_of_10(own - scale) != 0)
			continue;
		if (own > scale)
			value /= gj_power_of_10(own - scale);
		else if (gj_mul_i(value, gj_power_of_10(scale - own), GJ_INT8, &value) != GJ_OK)
			continue;
		result[found++] = value;
	}
	return found;
}

int64 *
gj_array_constants(ArrayType *array, int scale, bool *has_null, int *n, int *nwords)
{
	Oid			element = ARR_ELEMTYPE(array);
	const GjType *type = gj_type(element);
	bool		is_float = type->kind == GJ_FLOAT4 || type->kind == GJ_FLOAT8;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	Datum	   *values;
	bool	   *nulls;
	int			nvalues;
	int64	   *result;

	get_typlenbyvalalign(element, &typlen, &typbyval, &typalign);
	deconstruct_array(array, element, typlen, typbyval, typalign, &values, &nulls, &nvalues);
	*n = 0;
	for (int i = 0; i < nvalues; i++)
		if (!nulls[i])
			values[(*n)++] = values[i];
	*has_null = *n < nvalues;
	if (gj_value_kind(element) == GJ_TEXT)
		return text_constants(element, values, *n, nwords);
	result = palloc(sizeof(int64) * Max(*n, 1));
	if (type->reading == GJ_READ_DECIMAL)
	{
		int			nexpressed = decimal_constants(values, *n, scale, result);

		/* a list without elements would mean something else */
		if (nexpressed == 0 && *n > 0)
			return NULL;
		*n = nexpressed;
	}
	else
		for (int i = 0; i < *n; i++)
			result[i] = gj_register_value(element, values[i]);
	qsort(result, *n, sizeof(int64), is_float ? compare_double_bits : compare_int64);
	*nwords = *n;
	return result;
}
