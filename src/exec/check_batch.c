/*
 * check_batch.c
 *	  Checks a batch before its rows are returned.
 *
 * A batch lies in memory that another process writes, and a bit of it may be wrong.  That must not
 * be followed out of the slot: counts are compared with the layout, and each reference with the
 * value that it refers to.  The length of a value is told twice, by the reference and by the value's
 * own header, and both must agree.
 *
 * What a value holds is not checked, as PostgreSQL does not check it on its own pages, but for
 * numerics: their functions rely on a length that is no less than the header says.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "catalog/pg_class.h"
#include "utils/lsyscache.h"

#include "exec/emit.h"

/* Of a numeric's header, as src/rows/numeric.h reads it: two bytes are all of it. */
#define NUMERIC_SHORT_FORM		0x8000	/* and special ones, as NaN */

/* True if there is room for the header that a numeric says it has. */
static inline bool
numeric_is_sound(const char *bytes, uint32 nbytes)
{
	uint16		header;

	if (nbytes < sizeof(header))
		return false;
	memcpy(&header, bytes, sizeof(header));
	return (header & NUMERIC_SHORT_FORM) != 0 || nbytes >= 2 * sizeof(header);
}

/* True if a value is a pointer to one that is stored out of line. */
static bool
pointer_is_sound(const char *value, uint32 length)
{
	static Oid	last = InvalidOid;
	struct varatt_external pointer;

	if (length != VARHDRSZ_EXTERNAL + sizeof(pointer) || VARTAG_EXTERNAL(value) != VARTAG_ONDISK)
		return false;
	memcpy(&pointer, VARDATA_EXTERNAL(value), sizeof(pointer));
	if (pointer.va_toastrelid != last)
	{
		if (get_rel_relkind(pointer.va_toastrelid) != RELKIND_TOASTVALUE)
			return false;
		last = pointer.va_toastrelid;
	}
	return true;
}

/* numeric_is_sound() of a numeric that is compressed. */
static bool
compressed_is_sound(const char *value)
{
	struct varlena *flat = detoast_attr((struct varlena *) value);
	bool		sound = numeric_is_sound(VARDATA_ANY(flat), VARSIZE_ANY_EXHDR(flat));

	pfree(flat);
	return sound;
}

/* True if `length` bytes are a value of the column. */
static inline bool
value_is_sound(const GjEmitColumn *column, const char *value, uint32 length)
{
	if (column->attlen > 0)
		return length == column->attlen;
	if (column->attlen == -2)
		return length > 0 && value[length - 1] == '\0';
	if (length == 0 || VARATT_IS_1B_E(value))
		return length > 0 && pointer_is_sound(value, length);
	if (VARATT_IS_1B(value))
		return VARSIZE_1B(value) == length &&
			(!column->numeric || numeric_is_sound(VARDATA_1B(value), length - VARHDRSZ_SHORT));
	if (length < VARHDRSZ || VARSIZE_4B(value) != length)
		return false;
	if (VARATT_IS_4B_C(value))
		return length >= VARHDRSZ_COMPRESSED && (!column->numeric || compressed_is_sound(value));
	return !column->numeric || numeric_is_sound(VARDATA_4B(value), length - VARHDRSZ);
}

/* Number of the first row whose reference leads nowhere; nrows if there is none. */
static uint32
find_bad_reference(const GjEmitColumn *column, const GjBatch *batch, const uint64 *refs,
				   const uint8 *nulls, const char *heap, uint32 heap_used, const GjHeldValues *held)
{
	for (uint32 row = 0; row < batch->nrows; row++)
	{
		uint64		offset = gj_ref_offset(refs[row]);
		uint32		length = gj_ref_length(refs[row]);

		if (nulls != NULL && nulls[row])
			continue;
		if (length == GJ_REF_HELD ? offset >= held->n :
			offset % MAXIMUM_ALIGNOF != 0 || offset > heap_used || length > heap_used - offset ||
			!value_is_sound(column, heap + offset, length))
			return row;
	}
	return batch->nrows;
}

/* False if a header cannot be that of the batch. */
static bool
header_is_sound(const GjLayout *layout, const GjBatch *batch)
{
	const GjSlotHeader *header = (const GjSlotHeader *) batch->bytes;
	const uint8 *has_nulls = gj_slot_has_nulls(batch->bytes);

	if (header->nrows != batch->nrows || batch->nrows > layout->capacity ||
		header->heap_used > layout->heap_size || header->heap_used % MAXIMUM_ALIGNOF != 0)
		return false;
	for (uint32 i = 0; i < layout->ncolumns; i++)
		if (has_nulls[i] > 1)
			return false;
	return true;
}

/* Number of the first row whose code stands for nothing; nrows if there is none. */
static uint32
find_bad_code(const GjEmitColumn *column, const GjBatch *batch, const int64 *values,
			  const uint8 *nulls)
{
	for (uint32 row = 0; row < batch->nrows; row++)
		if (!(nulls != NULL && nulls[row]) &&
			(values[row] < 0 || values[row] >= list_length(column->codes)))
			return row;
	return batch->nrows;
}

bool
gj_emitter_check(const GjEmitter *emitter, const GjBatch *batch, const GjHeldValues *held,
				 GjFailure *failure)
{
	const GjSlotHeader *header = (const GjSlotHeader *) batch->bytes;
	const uint8 *has_nulls = gj_slot_has_nulls(batch->bytes);

	if (!header_is_sound(&emitter->layout, batch))
	{
		gj_fail(failure, GJ_DEVICE_ERROR, "a batch of %u rows is damaged", batch->nrows);
		return false;
	}
	for (uint32 i = 0; i < emitter->ncolumns; i++)
	{
		const GjEmitColumn *column = &emitter->columns[i];
		const GjColumnPlace *place = &emitter->places[column->output];
		const uint8 *nulls = has_nulls[column->output] ? batch->bytes + place->nulls : NULL;
		uint32		bad;

		if (column->how == GJ_EMIT_REF)
			bad = find_bad_reference(column, batch, (const uint64 *) (batch->bytes + place->data),
									 nulls, (const char *) batch->bytes + emitter->layout.heap,
									 header->heap_used, held);
		else if (column->how == GJ_EMIT_CODE)
			bad = find_bad_code(column, batch, (const int64 *) (batch->bytes + place->data), nulls);
		else
			continue;
		if (bad < batch->nrows)
		{
			gj_fail(failure, GJ_DEVICE_ERROR, "row %u of a batch of %u is damaged", bad, batch->nrows);
			return false;
		}
	}
	return true;
}
