/*
 * visibility.c
 *	  Pages of the visibility map: their LSNs, and which of the pages that they tell of are all-visible.
 */
#include "postgres.h"

#include "access/visibilitymap.h"
#include "storage/bufmgr.h"

#include "load/visibility.h"

/* Words of a map page that are looked at together: the compiler makes vectors of them. */
#define MAP_LANES			8

bool
gj_lock_map(Relation rel, BlockNumber blkno, Buffer *vmbuffer)
{
	(void) visibilitymap_get_status(rel, blkno, vmbuffer);
	if (!BufferIsValid(*vmbuffer))
		return false;
	LockBuffer(*vmbuffer, BUFFER_LOCK_SHARE);
	return true;
}

XLogRecPtr
gj_map_lsn(Relation rel, BlockNumber blkno, Buffer *vmbuffer)
{
	XLogRecPtr	lsn;

	if (!gj_lock_map(rel, blkno, vmbuffer))
		return InvalidXLogRecPtr;
	lsn = PageGetLSN(BufferGetPage(*vmbuffer));
	LockBuffer(*vmbuffer, BUFFER_LOCK_UNLOCK);
	return lsn;
}

void
gj_copy_map_bits(Page map, GjMapBits *bits)
{
	memcpy(bits, PageGetContents(map), GJ_MAP_BLOCKS / 4);
	memset((char *) bits + GJ_MAP_BLOCKS / 4, 0, sizeof(*bits) - GJ_MAP_BLOCKS / 4);
}

bool
gj_map_all_visible(const uint64 *words, const uint8 *bytes, uint32 n)
{
	uint32		whole = n / 32;
	uint64		all = UINT64CONST(0x5555555555555555);
	uint64		some[MAP_LANES];
	uint32		i = 0;

	for (int k = 0; k < MAP_LANES; k++)
		some[k] = all;
	for (; i + MAP_LANES <= whole; i += MAP_LANES)
		for (int k = 0; k < MAP_LANES; k++)
			some[k] &= words[i + k];
	for (; i < whole; i++)
		some[0] &= words[i];
	for (int k = 1; k < MAP_LANES; k++)
		some[0] &= some[k];
	if (some[0] != all)
		return false;
	for (uint32 page = whole * 32; page < n; page++)
		if (!(bytes[page / 4] >> (page % 4 * 2) & VISIBILITYMAP_ALL_VISIBLE))
			return false;
	return true;
}

void
gj_map_visible(const uint8 *bits, uint32 n, uint64 visible[GJ_FRAGMENT_WORDS])
{
	StaticAssertStmt(VISIBILITYMAP_ALL_VISIBLE == 1 && BITS_PER_HEAPBLOCK == 2,
					 "layout of the visibility map");
	for (uint32 i = 0; i < GJ_FRAGMENT_WORDS; i++)
	{
		uint64		word = 0;

		for (int half = 1; half >= 0; half--)
		{
			uint64		b = 0;

			for (int k = 7; k >= 0; k--)
				b = b << 8 | bits[i * 16 + half * 8 + k];
			/* every second bit, moved together */
			b &= UINT64CONST(0x5555555555555555);
			b = (b | b >> 1) & UINT64CONST(0x3333333333333333);
			b = (b | b >> 2) & UINT64CONST(0x0F0F0F0F0F0F0F0F);
			b = (b | b >> 4) & UINT64CONST(0x00FF00FF00FF00FF);
			b = (b | b >> 8) & UINT64CONST(0x0000FFFF0000FFFF);
			b = (b | b >> 16) & UINT64CONST(0x00000000FFFFFFFF);
			word = word << 32 | b;
		}
		if (n < (i + 1) * 64)
			word &= n <= i * 64 ? 0 : UINT64_MAX >> ((i + 1) * 64 - n);
		visible[i] = word;
	}
}
