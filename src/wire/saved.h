/*
 * saved.h
 *	  A program with its chunks in a file: what gpujoin.save_program writes and
 *	  gpujoind --run reads.
 *
 * The file starts with the 8 bytes GJ_SAVED_MAGIC; then come records, each a
 * GjSavedRecord and nbytes of payload, in the order in which the messages were sent.
 *
 * A file can end before all of its sources have: the query needed no more.
 *
 * Numbers are in the byte order of the machine, as everywhere in src/wire.
 */
#ifndef GJ_WIRE_SAVED_H
#define GJ_WIRE_SAVED_H

#include <string.h>

#include "messages.h"

#define GJ_SAVED_MAGIC		"GJSAVED3"
#define GJ_SAVED_MAGIC_SIZE	8

/* scripts/replay.pl knows them, too. */
typedef enum GjSavedType
{
	GJ_SAVED_PROGRAM = 1,		/* the program; the first record, and only there */
	GJ_SAVED_CHUNK,				/* the rows of a chunk, packed: see gj_saved_pack */
	GJ_SAVED_SOURCE_END			/* no payload */
} GjSavedType;

typedef struct GjSavedRecord
{
	uint32_t	type;			/* GjSavedType */
	uint32_t	source;			/* of a chunk or an end */
	uint32_t	nrows;			/* of a chunk */
	uint32_t	nbytes;			/* of the payload that follows */
} GjSavedRecord;

static_assert(sizeof(GjSavedRecord) == 16, "GjSavedRecord");

/* Where the parts of a chunk go in a slot, whose layout has room for `capacity` rows. */
typedef struct GjSavedChunk
{
	const GjColumnType *types;
	const GjColumnPlace *places;
	GjLayout	layout;
} GjSavedChunk;

/* Copies between the slot and the packed bytes, and returns the packed bytes behind those. */
static inline uint8_t *
gj_saved_copy(uint8_t *packed, uint8_t *part, size_t nbytes, bool pack)
{
	memcpy(pack ? packed : part, pack ? part : packed, nbytes);
	return packed + nbytes;
}

/* Copies the columns of nrows rows and the heap, which follow header and has_nulls. */
static inline uint8_t *
gj_saved_copy_columns(const GjSavedChunk *chunk, uint8_t *slot, uint8_t *packed, bool pack)
{
	const GjSlotHeader *header = (const GjSlotHeader *) slot;

	for (uint32_t c = 0; c < chunk->layout.ncolumns; c++)
	{
		packed = gj_saved_copy(packed, slot + chunk->places[c].data,
							   (size_t) header->nrows * chunk->types[c].width, pack);
		if (gj_slot_has_nulls(slot)[c])
			packed = gj_saved_copy(packed, slot + chunk->places[c].nulls, header->nrows, pack);
	}
	return gj_saved_copy(packed, slot + chunk->layout.heap,
						 chunk->layout.heap_size > 0 ? header->heap_used : 0, pack);
}

/*
 * Packs a chunk without its unused room: the header, has_nulls[], then of each column the
 * values and, if it has_nulls, the null map, then the used part of the heap.  `packed` has
 * room for a slot.  Returns the number of bytes.
 */
static inline uint32_t
gj_saved_pack(const GjSavedChunk *chunk, uint8_t *slot, uint8_t *packed)
{
	uint8_t    *end = gj_saved_copy(packed, slot, sizeof(GjSlotHeader) + chunk->layout.ncolumns,
									true);

	return (uint32_t) (gj_saved_copy_columns(chunk, slot, end, true) - packed);
}

/* Bytes that a packed chunk with this beginning has. */
static inline uint64_t
gj_saved_size(const GjSavedChunk *chunk, const uint8_t *packed)
{
	GjSlotHeader header;
	uint64_t	size = sizeof(header) + chunk->layout.ncolumns;

	memcpy(&header, packed, sizeof(header));
	for (uint32_t c = 0; c < chunk->layout.ncolumns; c++)
		size += (uint64_t) header.nrows *
			(chunk->types[c].width + (gj_slot_has_nulls(packed)[c] ? 1 : 0));
	return size + (chunk->layout.heap_size > 0 ? header.heap_used : 0);
}

/* Puts a packed chunk into a slot.  False: it is damaged. */
static inline bool
gj_saved_unpack(const GjSavedChunk *chunk, uint8_t *packed, uint32_t nbytes, uint8_t *slot)
{
	uint32_t	start = sizeof(GjSlotHeader) + chunk->layout.ncolumns;
	GjSlotHeader header;

	if (nbytes < start)
		return false;
	memcpy(&header, packed, sizeof(header));
	if (header.nrows > chunk->layout.capacity || header.heap_used > chunk->layout.heap_size ||
		gj_saved_size(chunk, packed) != nbytes)
		return false;
	gj_saved_copy_columns(chunk, slot, gj_saved_copy(packed, slot, start, false), false);
	return true;
}

#endif							/* GJ_WIRE_SAVED_H */
