/*
 * visibility.h
 *	  Pages of the visibility map.
 *
 * A page of the map has two bits for each of GJ_MAP_BLOCKS pages of the table, those of GJ_MAP_FRAGMENTS
 * fragments (src/wire/resident.h).
 */
#ifndef GJ_LOAD_VISIBILITY_H
#define GJ_LOAD_VISIBILITY_H

#include "storage/bufpage.h"
#include "utils/rel.h"

#include "load/resident.h"

/* Bytes of a map page that tell about one fragment. */
#define GJ_MAP_BYTES		(GJ_FRAGMENT_BLOCKS / 4)

/* Bits of a page of the map; what is behind them is 0. */
typedef union GjMapBits
{
	uint64		words[GJ_MAP_FRAGMENTS][GJ_MAP_BYTES / sizeof(uint64)];
	uint8		bytes[GJ_MAP_FRAGMENTS][GJ_MAP_BYTES];
} GjMapBits;

/*
 * The page of the map that covers a block, share-locked, in *vmbuffer, which stays pinned; false if there
 * is none.
 */
extern bool gj_lock_map(Relation rel, BlockNumber blkno, Buffer *vmbuffer);

/* LSN of that page; invalid if there is none. */
extern XLogRecPtr gj_map_lsn(Relation rel, BlockNumber blkno, Buffer *vmbuffer);

/* The bits of a page of the map that is locked. */
extern void gj_copy_map_bits(Page map, GjMapBits *bits);

/* True if the first n pages of some are all-visible: every second bit, as words and as bytes. */
extern bool gj_map_all_visible(const uint64 *words, const uint8 *bytes, uint32 n);

/* Which of the first n pages of a fragment are all-visible, out of two bits each. */
extern void gj_map_visible(const uint8 *bits, uint32 n, uint64 visible[GJ_FRAGMENT_WORDS]);

#endif							/* GJ_LOAD_VISIBILITY_H */
