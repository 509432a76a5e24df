/*
 * types.h
 *	  What the device knows of each data type: one table.
 */
#ifndef GJ_TYPES_H
#define GJ_TYPES_H

#include "datatype/timestamp.h"
#include "utils/array.h"
#include "wire/program.h"

/* How the stored bytes of a value become a register. */
typedef enum GjReading
{
	GJ_READ_NONE,				/* not at all: carried */
	GJ_READ_PLAIN,				/* by kind and width of the column */
	GJ_READ_VARLENA,			/* bytes, as the GjBytesForm of that name */
	GJ_READ_FIXED,
	GJ_READ_CSTRING,
	GJ_READ_DECIMAL				/* numeric with a scale */
} GjReading;

/* When two values of a type are equal. */
typedef enum GjEquality
{
	GJ_EQUAL_UNKNOWN,			/* ask PostgreSQL */
	GJ_EQUAL_VALUE,				/* the registers are equal (floats: their gj_key_bits) */
	GJ_EQUAL_BYTES,				/* the stored bytes are equal, the length header aside */
	GJ_EQUAL_PADDED				/* the same, but for trailing blanks */
} GjEquality;

typedef struct GjType
{
	Oid			typid;
	uint8		kind;			/* GjKind and width of a column */
	uint8		width;
	uint8		reading;		/* GjReading */
	uint8		equality;		/* GjEquality */
} GjType;

/* What is known of a type, domains as what they are over; never NULL. */
extern const GjType *gj_type(Oid typid);

/* How values of a type travel. */
extern GjColumnType gj_column_type(Oid typid);

/* GjKind of a register: GJ_TEXT for bytes, GJ_INT8 for numeric; -1 if there is none. */
extern int	gj_value_kind(Oid typid);

/* Scale of a numeric's typmod, of the domain's if it is one; -1 if the device has none. */
extern int	gj_numeric_scale(Oid typid, int32 typmod);

/*
 * How values of a table's column travel: numerics as integers where they can be (load/decimal.h),
 * and then *scale is theirs; else it is -1.
 */
extern GjColumnType gj_loaded_type(Oid typid, int32 typmod, int *scale);

/*
 * When two values of a column are equal.  For grouping and for keys: UNKNOWN means that
 * the device must not decide.  `collation` as exprCollation() has it.
 */
extern GjEquality gj_type_equality(Oid typid, int32 typmod, Oid collation);

/* A value of a type whose kind is not GJ_TEXT, and not numeric, as a register holds it. */
extern int64 gj_register_value(Oid typid, Datum value);

/* The bytes that a register of GJ_TEXT would lead to; they may be the datum's own. */
extern const char *gj_value_bytes(Oid typid, Datum value, Size *n);

/* A numeric as an integer times 10^-*scale, the scale being its display scale; or false. */
extern bool gj_numeric_value(Datum value, int *scale, int64 *result);

/* How a numeric becomes an integer times 10^-scale, and a timestamp a day. */
typedef enum GjBound
{
	GJ_BOUND_EXACT,				/* equal, or not at all */
	GJ_BOUND_FLOOR,
	GJ_BOUND_CEIL
} GjBound;

/* False if there is no such integer, or it has more than 18 digits. */
extern bool gj_numeric_bound(Datum value, int scale, GjBound bound, int64 *result);

/*
 * The date beside which others are what they are beside the timestamp; if none is equal, and it is
 * to be so, an integer that no date is.
 */
extern int64 gj_date_bound(Timestamp timestamp, GjBound bound);

#define GJ_BOUND_OF_DATE	1	/* GjInstr.arg of a timestamp that becomes one at execution */

/*
 * The elements of an array as GJ_OP_IN_I, GJ_OP_IN_F or GJ_OP_IN_T wants them: *n entries,
 * ascending, without NULLs, followed by the bytes of texts; *nwords in all.  Numerics are
 * brought to `scale`; one that has no value there equals nothing and is left out.
 * *has_null tells whether there were any.  NULL if an element cannot be expressed.
 */
extern int64 *gj_array_constants(ArrayType *array, int scale, bool *has_null, int *n,
								 int *nwords);

#endif							/* GJ_TYPES_H */
