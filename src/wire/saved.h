/*
 * saved.h
 *	  A program with its chunks in a file: what gpujoin.save_program writes and
 *	  gpujoind --run reads.
 *
 * The file starts with the 8 bytes GJ_SAVED_MAGIC; then come records, each a
 * GjSavedRecord and nbytes of payload, in the order in which the messages were sent:
 *
 *	GJ_MSG_SUBMIT		the program; the first record, and only there
 *	GJ_MSG_CHUNK		the used part of the slot: its first nbytes bytes, at most
 *						GJ_LOAD_SLOT_SIZE; laid out by the capacity of the source
 *	GJ_MSG_SOURCE_END	no payload
 *
 * Numbers are in the byte order of the machine, as everywhere in src/wire.
 */
#ifndef GJ_WIRE_SAVED_H
#define GJ_WIRE_SAVED_H

#include "messages.h"

#define GJ_SAVED_MAGIC		"GJSAVED1"
#define GJ_SAVED_MAGIC_SIZE	8

typedef struct GjSavedRecord
{
	uint32_t	type;			/* GjMessageType */
	uint32_t	source;			/* CHUNK, SOURCE_END */
	uint32_t	nrows;			/* CHUNK */
	uint32_t	nbytes;			/* of the payload that follows */
} GjSavedRecord;

static_assert(sizeof(GjSavedRecord) == 16, "GjSavedRecord");

#endif							/* GJ_WIRE_SAVED_H */
