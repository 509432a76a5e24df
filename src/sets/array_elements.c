/*
 * array_elements.c
 *	  The elements of stored arrays, without a copy where there is no need of one.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/toast_compression.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/expandeddatum.h"
#include "utils/rel.h"

#include "sets/array_pair.h"
#include "sets/unpack.h"

/* Bytes from which an array is worth being read in parts: a slot of the load ring, or so. */
#define GJ_STORED_MIN		(1024 * 1024)

/* The head of an array, in front of its dimensions, as it follows a length header. */
typedef struct GjArrayHead
{
	int32		ndim;
	int32		dataoffset;
	Oid			elemtype;
} GjArrayHead;

struct GjStoredReader
{
	Oid			toast;			/* the TOAST table */
	Oid			value;
	uint32		size;			/* bytes that are stored */
	uint32		at;				/* in what is stored */
	uint32		rest;			/* bytes of the array that have not been read */
	GjUnpacker *unpacker;		/* if it is compressed */
};

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

/* Read the next bytes that are stored. */
static void
read_bytes(GjStoredReader *reader, uint32 nbytes, void *to)
{
	Relation	toast = table_open(reader->toast, AccessShareLock);

	CHECK_FOR_INTERRUPTS();
	/* it writes the data of a value, not its header */
	table_relation_fetch_toast_slice(toast, reader->value, reader->size, reader->at, nbytes,
									 (struct varlena *) ((char *) to - VARHDRSZ));
	table_close(toast, AccessShareLock);
	reader->at += nbytes;
}

/* Read what is compressed, for the unpacker. */
static uint32_t
read_packed(void *arg, uint8_t *to, uint32_t room)
{
	GjStoredReader *reader = arg;
	uint32		nbytes = Min(room, reader->size - reader->at);

	if (nbytes > 0)
		read_bytes(reader, nbytes, to);
	return nbytes;
}

/* Make the unpacker.  False: it is compressed in an unsupported way. */
static bool
open_unpacker(GjStoredReader *reader, const struct varatt_external *pointer)
{
	uint32		method = VARATT_EXTERNAL_GET_COMPRESS_METHOD(*pointer);

	if (method != TOAST_PGLZ_COMPRESSION_ID && method != TOAST_LZ4_COMPRESSION_ID)
		return false;
	reader->unpacker = palloc(sizeof(GjUnpacker));
	/* what is compressed follows a word with its size and method, which the pointer has, too */
	reader->at = sizeof(uint32);
	gj_unpack_begin(reader->unpacker,
					method == TOAST_PGLZ_COMPRESSION_ID ? GJ_PACKED_PGLZ : GJ_PACKED_LZ4,
					read_packed, reader);
	return true;
}

/* Read the head of an array of integers without NULL.  False: it is something else. */
static bool
read_head(GjStoredReader *reader, GjElements *elements, GjKind *kind)
{
	/* readers want room for a length header in front */
	struct
	{
		int32		length_header;
		GjArrayHead head;
	}			first;
	struct
	{
		int32		length_header;
		int			bounds[2 * MAXDIM];
	}			second;

	if (!gj_read_stored(reader, sizeof(first.head), &first.head) ||
		first.head.ndim < 1 || first.head.ndim > MAXDIM || first.head.dataoffset != 0 ||
		!get_kind(first.head.elemtype, kind) ||
		!gj_read_stored(reader, 2 * sizeof(int) * first.head.ndim, second.bounds))
		return false;
	elements->data = NULL;
	elements->n = ArrayGetNItems(first.head.ndim, second.bounds);
	return (uint64) elements->n * gj_element_width(*kind) == reader->rest;
}

GjStoredReader *
gj_open_stored(Datum value, GjElements *elements, GjKind *kind)
{
	struct varlena *at = (struct varlena *) DatumGetPointer(value);
	struct varatt_external pointer;
	GjStoredReader *reader;

	if (!VARATT_IS_EXTERNAL_ONDISK(at))
		return NULL;
	VARATT_EXTERNAL_GET_POINTER(pointer, at);
	if (pointer.va_rawsize < GJ_STORED_MIN)
		return NULL;
	reader = palloc0(sizeof(GjStoredReader));
	reader->toast = pointer.va_toastrelid;
	reader->value = pointer.va_valueid;
	reader->size = VARATT_EXTERNAL_GET_EXTSIZE(pointer);
	reader->rest = pointer.va_rawsize - VARHDRSZ;
	if ((!VARATT_EXTERNAL_IS_COMPRESSED(pointer) || open_unpacker(reader, &pointer)) &&
		read_head(reader, elements, kind))
		return reader;
	gj_close_stored(reader);
	return NULL;
}

bool
gj_read_stored(GjStoredReader *reader, uint32 nbytes, void *to)
{
	reader->rest -= nbytes;
	if (reader->unpacker == NULL)
	{
		read_bytes(reader, nbytes, to);
		return true;
	}
	return gj_unpack(reader->unpacker, to, nbytes) &&
		(reader->rest > 0 || gj_unpack_ended(reader->unpacker));
}

void
gj_close_stored(GjStoredReader *reader)
{
	if (reader == NULL)
		return;
	if (reader->unpacker != NULL)
		pfree(reader->unpacker);
	pfree(reader);
}
