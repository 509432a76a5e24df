/*
 * group.h
 *	  Group keys of a row: their values, their hash, and when two rows are of one group.
 *
 * A key is a register's value (integers, floats), up to 8 bytes of a carried column, or a
 * reference to a varlena, of which the bytes behind the header count.  The same text can
 * be stored with a long header, with a short one, compressed, or elsewhere: the first two
 * are equal here, the others make the run fail (GJ_UNKNOWN_VALUE).  Values are kept as they
 * are, and normalised where they are hashed or compared, so that what a group shows is a
 * value that one of its rows has.
 */
#ifndef GJ_DEVICE_GROUP_H
#define GJ_DEVICE_GROUP_H

#include "device.h"
#include "rows/hash.h"

#define GJ_GROUP_NULL_HASH	UINT64_C(0x6A09E667F3BCC908)

/* A slot of GjGroups' table. */
GJ_FN uint64_t
gj_group_slot(uint64_t hash, uint32_t number)
{
	return (hash & UINT64_C(0xFFFFFFFF)) << 32 | number;
}

/* What a varlena in the heap holds. */
typedef struct GjPayload
{
	const uint8_t *bytes;
	uint32_t	nbytes;
	bool		known;			/* false: compressed, not inline, or damaged */
} GjPayload;

/* Headers as a little-endian PostgreSQL writes them. */
GJ_FN GjPayload
gj_group_payload(const uint8_t *heap, uint64_t ref, uint32_t how)
{
	GjPayload	payload = {heap + gj_ref_offset(ref), gj_ref_length(ref), false};
	uint32_t	header = 0;

	if (payload.nbytes == GJ_REF_HELD || payload.nbytes == 0)
		return payload;
	if (payload.bytes[0] & 1)
		header = payload.bytes[0] == 1 ? 0 : 1; /* 1: a TOAST pointer */
	else if (!(payload.bytes[0] & 2) && payload.nbytes >= 4)
		header = 4;
	if (header == 0)
		return payload;
	payload.known = true;
	payload.bytes += header;
	payload.nbytes -= header;
	while (how == GJ_GROUP_PADDED && payload.nbytes > 0 &&
		   payload.bytes[payload.nbytes - 1] == ' ')
		payload.nbytes--;
	return payload;
}

GJ_FN uint64_t
gj_group_hash_bytes(uint64_t hash, const uint8_t *bytes, uint32_t nbytes)
{
	uint64_t	word = 0;

	for (uint32_t i = 0; i < nbytes; i++)
	{
		word = word << 8 | bytes[i];
		if (i % 8 == 7)
		{
			hash = gj_hash_combine(hash, (int64_t) word);
			word = 0;
		}
	}
	return gj_hash_combine(hash, (int64_t) (word ^ (uint64_t) nbytes << 56));
}

/*
 * Adds key k of a row to the hash of the row.  *status becomes GJ_UNKNOWN_VALUE if its bytes
 * are not there to be compared.
 */
GJ_FN uint64_t
gj_group_add_key(uint64_t hash, uint32_t k, uint32_t how, bool null, int64_t value,
				 const uint8_t *heap, uint32_t *status)
{
	GjPayload	payload;

	if (null)
		return gj_hash_combine(hash ^ GJ_GROUP_NULL_HASH, (int64_t) k);
	if (!gj_group_by_reference(how))
		return gj_hash_combine(hash, gj_key_bits(value, how == GJ_GROUP_FLOAT));
	payload = gj_group_payload(heap, (uint64_t) value, how);
	if (payload.known)
		return gj_group_hash_bytes(hash, payload.bytes, payload.nbytes);
	*status = GJ_UNKNOWN_VALUE;
	return hash;
}

/* Keys of rows that are hashed and compared: the first ones. */
GJ_FN uint32_t
gj_group_rows_ncompared(const GjGroupRows *rows)
{
	return rows->nkeys - rows->ndependent;
}

/* True if two rows have the same of these NULL. */
GJ_FN bool
gj_group_same_nulls(const GjGroupRows *rows, uint32_t x, uint32_t y)
{
	return ((x ^ y) & (uint32_t) ((UINT64_C(1) << gj_group_rows_ncompared(rows)) - 1)) == 0;
}

/* The same of row i, which is stored.  Bytes that are only kept must be there as well. */
GJ_FN uint64_t
gj_group_hash(const GjGroupRows *rows, uint32_t k, uint32_t i, bool null, uint64_t hash,
			  uint32_t *status)
{
	if (k >= gj_group_rows_ncompared(rows))
	{
		if (!null && gj_group_by_reference(rows->how[k]) &&
			!gj_group_payload(rows->heap[k], (uint64_t) rows->value[k][i], GJ_GROUP_TEXT).known)
			*status = GJ_UNKNOWN_VALUE;
		return hash;
	}
	return gj_group_add_key(hash, k, rows->how[k], null, rows->value[k][i], rows->heap[k], status);
}

/* Hashes row i by its first keys alone; see group_hash. */
GJ_FN void
gj_group_hash_row(const GjGroupRows *rows, uint32_t i, uint32_t *status)
{
	uint64_t	hash = 0;

	rows->null[i] &= (uint32_t) ((UINT64_C(1) << rows->nkeys) - 1);
	for (uint32_t k = 0; k < rows->nkeys; k++)
		hash = gj_group_hash(rows, k, i, rows->null[i] >> k & 1, hash, status);
	rows->hash[i] = hash;
}

GJ_FN bool
gj_group_same_bytes(GjPayload a, GjPayload b)
{
	if (!a.known || !b.known || a.nbytes != b.nbytes)
		return false;
	for (uint32_t i = 0; i < a.nbytes; i++)
		if (a.bytes[i] != b.bytes[i])
			return false;
	return true;
}

/* True if two values of a key, none of which is NULL, make one group. */
GJ_FN bool
gj_group_same_key(uint32_t how, int64_t x, const uint8_t *x_heap, int64_t y, const uint8_t *y_heap)
{
	if (gj_group_by_reference(how))
		return gj_group_same_bytes(gj_group_payload(x_heap, (uint64_t) x, how),
								   gj_group_payload(y_heap, (uint64_t) y, how));
	return x == y || (how == GJ_GROUP_FLOAT && gj_key_bits(x, true) == gj_key_bits(y, true));
}

/* True if row i of `a` and row j of `b`, of the same keys, belong to one group. */
GJ_FN bool
gj_group_equal(const GjGroupRows *a, uint32_t i, const GjGroupRows *b, uint32_t j)
{
	uint32_t	null = a->null[i];

	if (!gj_group_same_nulls(a, null, b->null[j]))
		return false;
	for (uint32_t k = 0; k < gj_group_rows_ncompared(a); k++)
		if (!(null >> k & 1) && !gj_group_same_key(a->how[k], a->value[k][i], a->heap[k],
												   b->value[k][j], b->heap[k]))
			return false;
	return true;
}

/* True if row i of `rows` belongs to number `owner` of a slot; see GjGroups. */
GJ_FN bool
gj_group_owns(const GjGroupRows *rows, uint32_t i, const GjGroups *groups, uint32_t owner)
{
	if (owner < groups->rows.nrows)
		return gj_group_equal(rows, i, &groups->rows, owner);
	return gj_group_equal(rows, i, rows, owner - groups->rows.nrows);
}

/*
 * Key of a carried column for a row of it: the bytes, sign-extended as datums are, or the
 * reference.
 */
GJ_FN int64_t
gj_group_carried(const GjColumn *column, uint32_t row)
{
	if (column->packed)
		return gj_packed_value(column, row);
	switch (column->width)
	{
		case 1:
			return ((const int8_t *) column->data)[row];
		case 2:
			return ((const int16_t *) column->data)[row];
		case 4:
			return ((const int32_t *) column->data)[row];
		default:
			return ((const int64_t *) column->data)[row];
	}
}

/* Bytes of the heap that the references of row i take. */
GJ_FN uint64_t
gj_group_space(const GjGroupRows *rows, uint32_t i)
{
	uint64_t	space = 0;

	for (uint32_t k = 0; k < rows->nkeys; k++)
		if (gj_group_by_reference(rows->how[k]) && !(rows->null[i] >> k & 1))
			space += gj_ref_space((uint64_t) rows->value[k][i]);
	return space;
}

/* Makes row i group g; its bytes start at `heap_at`.  All but the slot and the states. */
GJ_FN void
gj_group_store(const GjGroupRows *rows, uint32_t i, const GjGroups *groups, uint32_t g,
			   uint64_t heap_at)
{
	groups->rows.null[g] = rows->null[i];
	groups->rows.hash[g] = rows->hash[i];
	for (uint32_t k = 0; k < rows->nkeys; k++)
	{
		int64_t		value = rows->value[k][i];

		if (rows->null[i] >> k & 1)
			value = 0;
		else if (gj_group_by_reference(rows->how[k]))
		{
			const uint8_t *from = rows->heap[k] + gj_ref_offset(value);
			uint64_t   *to = (uint64_t *) (groups->heap + heap_at);
			uint32_t	nwords = gj_ref_space((uint64_t) value) / 8;

			for (uint32_t w = 0; w < nwords; w++)
				to[w] = gj_padded_word(from, gj_ref_length(value), w);
			value = (int64_t) gj_ref_make(heap_at, gj_ref_length(value));
			heap_at += (uint64_t) nwords * 8;
		}
		groups->rows.value[k][g] = value;
	}
	if (groups->heap_end)
		groups->heap_end[g] = heap_at;
}

/*
 * A value of a stage's column that is made of a state (GjStageValue), as a datum's bits.  True: it is NULL.  *status becomes GJ_OVERFLOW where the value does not fit.
 */
GJ_FN bool
gj_stage_of_state(uint32_t value, bool float4, const GjAggState *state, int64_t *bits,
				  uint32_t *status)
{
	float		narrow;
	uint32_t	narrow_bits;

	switch (value)
	{
		case GJ_STAGE_COUNT:
			*bits = state->count;
			return false;
		case GJ_STAGE_EXTREME_I:
			*bits = state->hi;
			return state->count == 0;
		case GJ_STAGE_EXTREME_F:
		case GJ_STAGE_SUM_F:
			/* finite: its exponent is not all ones */
			memcpy(bits, &state->f, sizeof(*bits));
			if (value == GJ_STAGE_SUM_F && (*bits >> 52 & 0x7FF) == 0x7FF)
				*status = GJ_OVERFLOW;
			if (float4)
			{
				narrow = (float) state->f;
				memcpy(&narrow_bits, &narrow, sizeof(narrow_bits));
				*bits = narrow_bits;
			}
			return state->count == 0;
		default:
			*bits = (int64_t) state->lo;
			if (state->hi != *bits >> 63)
				*status = GJ_OVERFLOW;
			return state->count == 0 && value != GJ_STAGE_SUM_OR_ZERO;
	}
}

/* Value i of a column of 1, 2, 4 or 8 bytes. */
GJ_FN void
gj_stage_store(void *data, uint32_t width, uint32_t i, int64_t bits)
{
	switch (width)
	{
		case 1:
			((uint8_t *) data)[i] = (uint8_t) bits;
			break;
		case 2:
			((uint16_t *) data)[i] = (uint16_t) bits;
			break;
		case 4:
			((uint32_t *) data)[i] = (uint32_t) bits;
			break;
		default:
			((int64_t *) data)[i] = bits;
	}
}

/* Makes value g of a column of groups (group_column).  True: it is NULL. */
GJ_FN bool
gj_group_column_value(const GjGroups *groups, const GjGroupColumn *column, uint32_t g,
					  uint32_t *status)
{
	const GjGroupRows *rows = &groups->rows;
	int64_t		bits = 1;
	bool		null = false;

	if (column->value == GJ_STAGE_KEY)
	{
		null = rows->null[g] >> column->from & 1;
		bits = null ? 0 : rows->value[column->from][g];
	}
	else if (column->value != GJ_STAGE_TRUE)
		null = gj_stage_of_state(column->value, column->type.kind == GJ_FLOAT4,
								 &groups->state[column->from][g], &bits, status);
	column->nulls[g] = null;
	gj_stage_store(column->data, column->type.width, g, bits);
	return null;
}

#endif							/* GJ_DEVICE_GROUP_H */
