/*
 * array_elements.c
 *	  The elements of stored arrays, without a copy where there is no need of one.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/expandeddatum.h"
#include "utils/rel.h"

#include "sets/array_pair.h"

/* Bytes from which an array is worth being read in parts: a slot of the load ring, or so. */
#define GJ_STORED_MIN		(1024 * 1024)

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

/* The kind of elements of a type; false if there is none. */
static bool
get_kind(Oid type, GjKind *kind)
{
	if (type != INT2OID && type != INT4OID && type != INT8OID)
		return false;
	*kind = type == INT2OID ? GJ_INT2 : type == INT4OID ? GJ_INT4 : GJ_INT8;
	return true;
}

GjElements
gj_array_elements(ArrayType *array, GjKind *kind, const char *what)
{
	GjElements	elements;

	elements.n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	elements.data = ARR_DATA_PTR(array);
	if (ARR_HASNULL(array))
		check_not_null(ARR_NULLBITMAP(array), elements.n, what);
	if (!get_kind(ARR_ELEMTYPE(array), kind))
		elog(ERROR, "array of type %u is not a set of integers", ARR_ELEMTYPE(array));
	return elements;
}

bool
gj_find_stored(Datum value, GjStoredArray *stored, GjElements *elements, GjKind *kind)
{
	struct varlena *at = (struct varlena *) DatumGetPointer(value);
	struct varatt_external pointer;
	ArrayType  *head;
	bool		found;

	if (!VARATT_IS_EXTERNAL_ONDISK(at))
		return false;
	VARATT_EXTERNAL_GET_POINTER(pointer, at);
	if (VARATT_EXTERNAL_IS_COMPRESSED(pointer) || pointer.va_rawsize < GJ_STORED_MIN)
		return false;
	head = (ArrayType *) PG_DETOAST_DATUM_SLICE(value, 0, ARR_OVERHEAD_NONULLS(MAXDIM) - VARHDRSZ);
	*stored = (GjStoredArray) {
		.toast = pointer.va_toastrelid,.value = pointer.va_valueid,
		.size = VARATT_EXTERNAL_GET_EXTSIZE(pointer),
		.start = ARR_OVERHEAD_NONULLS(ARR_NDIM(head)) - VARHDRSZ
	};
	elements->data = NULL;
	elements->n = ArrayGetNItems(ARR_NDIM(head), ARR_DIMS(head));
	found = !ARR_HASNULL(head) && get_kind(ARR_ELEMTYPE(head), kind) &&
		stored->start + (uint64) elements->n * gj_element_width(*kind) == stored->size;
	pfree(head);
	return found;
}

void
gj_read_stored(const GjStoredArray *stored, uint32 from, uint32 nbytes, void *to)
{
	Relation	toast = table_open(stored->toast, AccessShareLock);

	/* it writes the data of a value, not its header */
	table_relation_fetch_toast_slice(toast, stored->value, stored->size, stored->start + from,
									 nbytes, (struct varlena *) ((char *) to - VARHDRSZ));
	table_close(toast, AccessShareLock);
}
