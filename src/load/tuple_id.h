/*
 * tuple_id.h
 *	  Where a tuple of a table is, as a value of a column: block and tuple number in one integer.
 *
 * Such a column has the attribute number of ctid.  A backend fetches other columns of the rows that
 * come back by it (exec/late.c).
 */
#ifndef GJ_LOAD_TUPLE_ID_H
#define GJ_LOAD_TUPLE_ID_H

#include "access/sysattr.h"
#include "storage/itemptr.h"

#define GJ_TUPLE_ID_ATTNO	SelfItemPointerAttributeNumber

static inline int64
gj_tuple_id_make(BlockNumber block, OffsetNumber offset)
{
	return (int64) block << 16 | offset;
}

static inline void
gj_tuple_id_read(int64 value, ItemPointer tid)
{
	ItemPointerSet(tid, (BlockNumber) (value >> 16), (OffsetNumber) (value & 0xFFFF));
}

#endif							/* GJ_LOAD_TUPLE_ID_H */
