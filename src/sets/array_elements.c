/*
 * array_elements.c
 *	  The elements of stored arrays, without a copy where there is no need of one.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/expandeddatum.h"

#include "sets/array_pair.h"

ArrayType *
gj_get_array(Datum value, GjSmallArray *small, bool *copy)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(value);
	ArrayType  *array;

	*copy = false;
	if (!VARATT_IS_EXTENDED(stored))
		return (ArrayType *) stored;
	/* a value that is kept out of line has a short header, too */
	if (!VARATT_IS_EXTERNAL(stored) && VARATT_IS_SHORT(stored))
	{
		Size		size = VARSIZE_SHORT(stored) - VARHDRSZ_SHORT;

		SET_VARSIZE(small->bytes, VARHDRSZ + size);
		memcpy(VARDATA(small->bytes), VARDATA_SHORT(stored), size);
		return (ArrayType *) small->bytes;
	}
	/* a variable of PL/pgSQL, of which no element has been changed */
	if (VARATT_IS_EXTERNAL_EXPANDED(stored))
	{
		ExpandedArrayHeader *expanded = (ExpandedArrayHeader *) DatumGetEOHP(value);

		if (expanded->fvalue != NULL)
			return expanded->fvalue;
	}
	array = DatumGetArrayTypeP(value);
	*copy = (struct varlena *) array != stored;
	return array;
}

/* Raise an error if an element is NULL. */
static void
check_not_null(const bits8 *not_null, uint32 n, const char *what)
{
	for (uint32 i = 0; i < n; i++)
	{
		if ((not_null[i / 8] & (1 << (i % 8))) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("array must not contain nulls"),
					 errdetail("Element %u of %s is null.", i + 1, what)));
	}
}

GjElements
gj_array_elements(ArrayType *array, GjKind *kind, const char *what)
{
	GjElements	elements;

	elements.n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	elements.data = ARR_DATA_PTR(array);
	if (ARR_HASNULL(array))
		check_not_null(ARR_NULLBITMAP(array), elements.n, what);
	switch (ARR_ELEMTYPE(array))
	{
		case INT2OID:
			*kind = GJ_INT2;
			break;
		case INT4OID:
			*kind = GJ_INT4;
			break;
		case INT8OID:
			*kind = GJ_INT8;
			break;
		default:
			elog(ERROR, "array of type %u is not a set of integers", ARR_ELEMTYPE(array));
	}
	return elements;
}
