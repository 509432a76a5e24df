/*
 * columns.h
 *	  The one format in which rows travel: columns in a slot of a memfd ring.
 *
 * A slot holds either a chunk (backend to gpujoind: rows of one source) or a
 * batch (gpujoind to backend: rows of the result).  Both are laid out alike:
 *
 *	GjSlotHeader
 *	has_nulls[ncolumns]		one byte a column: 1 if its null map is filled in
 *	per column, each part 64-byte aligned:
 *		data[capacity]		fixed-width values
 *		nulls[capacity]		one byte a row, 1 = NULL
 *	byte heap				the bytes that GJ_REF values refer to
 *
 * A null map has one byte a row, not one bit: it can be appended anywhere with a
 * plain copy, it is what tuple slots want (bool isnull[]), and it travels only
 * for columns that have a NULL in this chunk.
 *
 * A GJ_REF value refers to bytes in the slot's heap.  They start at a multiple of
 * 8 and are padded to one, so they can be moved as words and used in place as a
 * datum of any alignment.
 */
#ifndef GJ_WIRE_COLUMNS_H
#define GJ_WIRE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How the bytes of a column become a value.  The kinds up to GJ_FLOAT8 are values of a
 * register as they are (date is GJ_INT4, timestamp(tz) GJ_INT8, oid GJ_UINT4).  GJ_BYTES
 * (1, 2, 4, 8 or 16 bytes) and GJ_REF are carried; the device computes on them where
 * an instruction says how to read them.
 */
typedef enum GjKind
{
	GJ_BOOL,					/* 1 byte */
	GJ_INT2,
	GJ_INT4,
	GJ_INT8,
	GJ_UINT4,
	GJ_UINT1,					/* "char" */
	GJ_FLOAT4,					/* a double in a register */
	GJ_FLOAT8,
	GJ_BYTES,					/* fixed width, carried */
	GJ_REF,						/* 8-byte reference into the byte heap, carried */
	GJ_TEXT						/* of expressions only: bytes, see program.h */
} GjKind;

static inline bool
gj_kind_computable(unsigned kind)
{
	return kind <= GJ_FLOAT8;
}

/* References: 40 bits of offset, 24 bits of length in bytes. */
/* A length that no value has: the offset is an index of the backend's own. */
#define GJ_REF_HELD			0xFFFFFFu
#define GJ_REF_MAX_OFFSET	((UINT64_C(1) << 40) - 1)

#define gj_ref_make(offset, length)	(((uint64_t) (offset) << 24) | (uint64_t) (length))
#define gj_ref_offset(ref)			((uint64_t) (ref) >> 24)
#define gj_ref_length(ref)			((uint32_t) ((ref) & 0xFFFFFF))
/* Bytes that a reference occupies in the heap. */
#define gj_ref_space(ref) \
	(gj_ref_length(ref) == GJ_REF_HELD ? 0 : ((gj_ref_length(ref) + 7u) & ~7u))

#define GJ_ALIGN			64
#define gj_align(n)			(((uint64_t) (n) + (GJ_ALIGN - 1)) & ~(uint64_t) (GJ_ALIGN - 1))

typedef struct GjSlotHeader
{
	uint32_t	nrows;
	uint32_t	heap_used;		/* bytes of the heap in use, a multiple of 8 */
} GjSlotHeader;

/* Kind and width of one column, as programs describe them. */
typedef struct GjColumnType
{
	uint8_t		kind;			/* GjKind */
	uint8_t		width;			/* bytes a value: 1, 2, 4, 8 or 16 */
	uint8_t		nullable;		/* 0: has no NULL, whatever has_nulls says */
	uint8_t		source;			/* source that the column belongs to */
} GjColumnType;

/* Where things are in a slot.  Both sides compute it, with gj_layout(). */
typedef struct GjColumnPlace
{
	uint32_t	data;			/* offset in the slot */
	uint32_t	nulls;
} GjColumnPlace;

typedef struct GjLayout
{
	uint32_t	ncolumns;
	uint32_t	capacity;		/* rows */
	uint32_t	heap;			/* offset of the byte heap */
	uint32_t	heap_size;		/* bytes, 0 if no column is GJ_REF */
} GjLayout;

/* Bytes before the first column. */
#define gj_slot_header_size(ncolumns) gj_align(sizeof(GjSlotHeader) + (ncolumns))
#define gj_slot_has_nulls(slot)		((uint8_t *) (slot) + sizeof(GjSlotHeader))

/* Bytes of a slot that hold `capacity` rows without any heap. */
static inline uint64_t
gj_layout_fixed_size(const GjColumnType *types, uint32_t ncolumns, uint32_t capacity)
{
	uint64_t	size = gj_slot_header_size(ncolumns);

	for (uint32_t i = 0; i < ncolumns; i++)
		size += gj_align((uint64_t) capacity * types[i].width) + gj_align(capacity);
	return size;
}

/*
 * Lays `ncolumns` columns of `capacity` rows out in a slot of `slot_size` bytes;
 * what is left is heap.  places[ncolumns] is the caller's.  False if it does not fit.
 */
static inline bool
gj_layout(const GjColumnType *types, uint32_t ncolumns, uint32_t capacity,
		  uint32_t slot_size, GjLayout *layout, GjColumnPlace *places)
{
	uint64_t	at = gj_slot_header_size(ncolumns);
	bool		refs = false;

	if (gj_layout_fixed_size(types, ncolumns, capacity) > slot_size)
		return false;
	for (uint32_t i = 0; i < ncolumns; i++)
	{
		places[i].data = (uint32_t) at;
		at += gj_align((uint64_t) capacity * types[i].width);
		places[i].nulls = (uint32_t) at;
		at += gj_align(capacity);
		refs |= types[i].kind == GJ_REF;
	}
	layout->ncolumns = ncolumns;
	layout->capacity = capacity;
	layout->heap = (uint32_t) at;
	layout->heap_size = refs ? (uint32_t) ((slot_size - at) & ~UINT64_C(7)) : 0;
	return true;
}

#endif							/* GJ_WIRE_COLUMNS_H */
