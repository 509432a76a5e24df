/*
 * next_buffer.h
 *	  Guesses the buffer of the next block: the one behind the buffer of the last block.  Tables
 *	  that were read or written in order lie in order in the buffer pool.  A right guess saves the
 *	  look-up in the buffer table, which misses the cache.
 */
#ifndef GJ_LOAD_NEXT_BUFFER_H
#define GJ_LOAD_NEXT_BUFFER_H

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"

#include "compat.h"

/* Zeroes: nothing has been read. */
typedef struct GjNextBuffer
{
	Buffer		last;			/* of the block read last, or invalid */
	bool		likely;			/* the one before was in the buffer before it */
} GjNextBuffer;

/* The block, pinned; InvalidBuffer: it is to be read, and noted. */
static inline Buffer
gj_next_buffer(GjNextBuffer *next, Relation rel, BlockNumber blkno)
{
	Buffer		buffer = next->last + 1;

	if (!next->likely || buffer > NBuffers)
		return InvalidBuffer;
	next->likely = gj_read_recent_buffer(rel, blkno, buffer);
	if (!next->likely)
		return InvalidBuffer;
	pgstat_count_buffer_read(rel);
	pgstat_count_buffer_hit(rel);
	next->last = buffer;
	return buffer;
}

/* A block was read into this buffer. */
static inline void
gj_note_buffer(GjNextBuffer *next, Buffer buffer)
{
	next->likely = next->last > 0 && buffer == next->last + 1;
	next->last = buffer;
}

#endif							/* GJ_LOAD_NEXT_BUFFER_H */
