/*
 * resident_compare.c
 *	  Compares the fragments that gpujoind has of a table with the table; see resident.h.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "load/next_buffer.h"
#include "load/resident_asks.h"
#include "load/visibility.h"

/* With one part in so many of its pages missing, a fragment is loaded anew and kept. */
#define RELOAD_PART			8
/* A fragment is kept if one page in so many is all-visible. */
#define KEEP_PART			2
/* So few missing pages are looked at, whether they are empty. */
#define LOOK_AT_PAGES		(GJ_FRAGMENT_BLOCKS / RELOAD_PART)
/* Headers of pages are asked for so many pages before they are read. */
#define PREFETCH_HEADERS	8

bool
gj_others_are_empty(Relation rel, uint32 fragment, uint32 npages, const uint64 *pages)
{
	if (npages - gj_pages_count(pages) > LOOK_AT_PAGES)
		return false;
	for (uint32 page = 0; page < npages; page++)
	{
		Buffer		buffer;
		bool		empty;

		if (gj_page_is_set(pages, page))
			continue;
		CHECK_FOR_INTERRUPTS();
		buffer = ReadBuffer(rel, gj_fragment_first(fragment) + page);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		empty = PageIsNew(BufferGetPage(buffer)) || PageIsEmpty(BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
		if (!empty)
			return false;
	}
	return true;
}

/* LSN and bits of the map page of a fragment. */
static XLogRecPtr
read_map(GjResidentAsk *ask, uint32 fragment, GjMapBits *bits)
{
	Page		page;
	XLogRecPtr	lsn;

	if (!gj_lock_map(ask->rel, gj_fragment_first(fragment), &ask->vmbuffer))
	{
		memset(bits, 0, sizeof(*bits));
		return InvalidXLogRecPtr;
	}
	page = BufferGetPage(ask->vmbuffer);
	lsn = PageGetLSN(page);
	gj_copy_map_bits(page, bits);
	LockBuffer(ask->vmbuffer, BUFFER_LOCK_UNLOCK);
	return lsn;
}

/* The header of a page that is read some blocks later, if blocks lie in order in the buffer pool. */
static inline void
prefetch_header(const GjNextBuffer *next)
{
	Buffer		buffer = next->last + PREFETCH_HEADERS;

	if (next->likely && buffer <= NBuffers)
		__builtin_prefetch(BufferGetPage(buffer));
}

/* Clears the bits of pages that are not all-visible, or whose LSN is not the one that was noted. */
static void
check_pages(GjResidentAsk *ask, uint32 fragment, const GjKnown *known, uint64 *pages)
{
	BlockNumber first = gj_fragment_first(fragment);
	GjNextBuffer next = {0};

	for (uint32 page = 0; page < known->known.npages; page++)
	{
		Buffer		buffer;
		bool		unchanged;

		if (!gj_page_is_set(pages, page))
			continue;
		CHECK_FOR_INTERRUPTS();
		buffer = gj_next_buffer(&next, ask->rel, first + page);
		if (!BufferIsValid(buffer))
		{
			buffer = ReadBuffer(ask->rel, first + page);
			gj_note_buffer(&next, buffer);
		}
		prefetch_header(&next);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		unchanged = PageIsAllVisible(BufferGetPage(buffer)) &&
			!XLogRecPtrIsInvalid(known->lsns[page]) &&
			BufferGetLSNAtomic(buffer) == known->lsns[page];
		UnlockReleaseBuffer(buffer);
		if (!unchanged)
			pages[page / 64] &= ~(UINT64CONST(1) << (page % 64));
	}
}

/* What is known of a fragment, and its pages that are as they were.  NULL: it is of no use. */
static const GjKnown *
find_unchanged(GjResidentAsk *ask, uint32 fragment, XLogRecPtr map_lsn, const uint64 *visible,
			   uint64 *pages)
{
	const GjKnown *known = ask->known[fragment];

	gj_pages_first(pages, 0);
	if (known == NULL || XLogRecPtrIsInvalid(map_lsn))
		return NULL;
	/* moved since it was asked for: only the LSNs of the pages could tell */
	if (known->known.map_lsn != map_lsn && known->lsns == NULL)
		return NULL;
	/* nothing that is no page of the fragment is valid, whatever gpujoind says */
	gj_pages_first(pages, known->known.npages);
	for (uint32 i = 0; i < GJ_FRAGMENT_WORDS; i++)
		pages[i] &= (known->valid ? known->valid[i] : UINT64_MAX) & visible[i];
	if (known->known.map_lsn != map_lsn)
		check_pages(ask, fragment, known, pages);
	return known;
}

/* True if gpujoind has told of one that its uses have lost as much as loading it costs. */
static inline bool
is_due(const GjKnown *known)
{
	return known->known.nlost >= known->known.npages;
}

/*
 * Is a fragment to be loaded anew, and kept?  If many of its all-visible pages are missing, yes.  If few
 * are, when earlier runs have lost as much as it costs, so it is no more than twice what would have been
 * best (ski rental: Karlin, Manasse, Rudolph, Sleator, "Competitive snoopy caching", Algorithmica 3, 1988);
 * not while a vacuum sets bits of the map, for it has more to come.
 */
static bool
is_to_be_loaded(const GjResidentAsk *ask, const GjKnown *known, XLogRecPtr map_lsn, uint32 npages,
				uint32 nvisible, uint32 nmissing, uint32 *renewals)
{
	if (XLogRecPtrIsInvalid(map_lsn) || nvisible == 0 || nvisible < npages / KEEP_PART)
		return false;
	if (known == NULL || nmissing > (ask->prewarm ? 0 : npages / RELOAD_PART))
		return true;
	if (nmissing == 0 || !is_due(known) || known->known.map_lsn != map_lsn || *renewals == 0)
		return false;
	--*renewals;
	return true;
}

/* Adds pages of a fragment to what is to be used; NULL: all. */
static void
use_fragment(GjResidentAsk *ask, uint32 fragment, XLogRecPtr map_lsn, const uint64 *pages, uint32 nlost)
{
	const GjKnown *known = ask->known[fragment];
	GjFoundFragment *found = &ask->use->found[ask->use->n++];

	found->head = (GjUseHead) {
		.id = known->known.id,.map_lsn = map_lsn,.source = ask->source,
		.npages = known->known.npages,.flags = pages ? GJ_KNOWN_BITS : 0,
		.nlost = nlost
	};
	found->pages = pages;
}

/* Decides about one fragment of which something may have changed; returns how many of its pages need not be loaded. */
static uint32
compare_pages(GjResidentAsk *ask, uint32 fragment, XLogRecPtr map_lsn, const uint8 *bits, uint32 npages,
			  GjFragmentMap *map, uint32 *renewals)
{
	uint64		visible[GJ_FRAGMENT_WORDS];
	uint64	   *pages = map->resident;
	const GjKnown *known;
	uint32		nvisible;
	uint32		nresident;
	uint32		nlost;

	gj_map_visible(bits, npages, visible);
	/* of one that is not to be kept, what is known may still be better than nothing */
	known = find_unchanged(ask, fragment, map_lsn, visible, map->resident);
	nvisible = gj_pages_count(visible);
	nresident = gj_pages_count(map->resident);
	if (is_to_be_loaded(ask, known, map_lsn, npages, nvisible, nvisible - nresident, renewals))
	{
		map->state = GJ_FRAGMENT_KEEP;
		gj_pages_first(map->resident, 0);
		return 0;
	}
	map->state = GJ_FRAGMENT_USE;
	nlost = gj_lost_pages(npages, nvisible - nresident, ask->visible);
	if (nresident < npages && gj_others_are_empty(ask->rel, fragment, npages, map->resident))
	{
		pages = palloc(sizeof(map->resident));
		memcpy(pages, map->resident, sizeof(map->resident));
		gj_pages_first(map->resident, npages);
		nlost = 0;
	}
	/* what gpujoind took away from what was lost when it told so, the next one is to be told */
	if (known != NULL && is_due(known))
		nlost += gj_lost_when_told(known->known.npages);
	if (nresident > 0)
		use_fragment(ask, fragment, map_lsn, pages, nlost);
	return gj_pages_count(map->resident);
}

/* The same of any fragment. */
static uint32
compare_fragment(GjResidentAsk *ask, uint32 fragment, XLogRecPtr map_lsn, const GjMapBits *bits,
				 GjFragmentMap *map, uint32 *renewals)
{
	uint32		in_map = fragment % GJ_MAP_FRAGMENTS;
	uint32		npages = gj_fragment_end(fragment, ask->nblocks) - gj_fragment_first(fragment);
	const GjKnown *known = ask->known[fragment];

	/* the usual case: nothing has changed */
	if (known != NULL && known->valid == NULL && known->known.npages == npages &&
		known->known.map_lsn == map_lsn && !XLogRecPtrIsInvalid(map_lsn) &&
		gj_map_all_visible(bits->words[in_map], bits->bytes[in_map], npages))
	{
		map->state = GJ_FRAGMENT_USE;
		gj_pages_first(map->resident, npages);
		use_fragment(ask, fragment, map_lsn, NULL, 0);
		return npages;
	}
	return compare_pages(ask, fragment, map_lsn, bits->bytes[in_map], npages, map, renewals);
}

GjResidentMap *
gj_resident_compare(GjResidentAsk *ask, uint32 *renewals)
{
	GjResidentUse *use = ask->use;
	GjResidentMap *map = palloc_extended(offsetof(GjResidentMap, fragment) +
										 sizeof(GjFragmentMap) * (Size) ask->nfragments,
										 MCXT_ALLOC_HUGE);
	GjMapBits	bits;
	XLogRecPtr	map_lsn = InvalidXLogRecPtr;
	Size		nbytes;

	map->nblocks = ask->nblocks;
	map->nfragments = ask->nfragments;
	map->nresident = 0;
	nbytes = sizeof(GjFoundFragment) * (Size) (use->n + ask->nfragments);
	use->found = use->found ? repalloc_huge(use->found, nbytes) :
		palloc_extended(nbytes, MCXT_ALLOC_HUGE);
	for (uint32 f = 0; f < ask->nfragments; f++)
	{
		if (f % GJ_MAP_FRAGMENTS == 0)
			map_lsn = read_map(ask, f, &bits);
		map->nresident += compare_fragment(ask, f, map_lsn, &bits, &map->fragment[f], renewals);
	}
	return map;
}

BlockNumber
gj_resident_next(const GjResidentMap *map, BlockNumber blkno, BlockNumber nblocks)
{
	if (map != NULL && map->nresident == map->nblocks)
		return nblocks;
	while (map != NULL && blkno < nblocks)
	{
		uint32		fragment = gj_fragment_of(blkno);
		const GjFragmentMap *f = &map->fragment[fragment];
		BlockNumber first = gj_fragment_first(fragment);
		BlockNumber end = gj_fragment_end(fragment, nblocks);

		if (f->state != GJ_FRAGMENT_USE)
			break;
		while (blkno < end)
		{
			uint32		page = blkno - first;
			uint64		left = ~f->resident[page / 64] >> (page % 64);

			if (left != 0)
			{
				blkno += __builtin_ctzll(left);
				break;
			}
			blkno = first + (page / 64 + 1) * 64;
		}
		/* a page that is not resident, or the end of the fragment */
		if (blkno < end)
			break;
		blkno = end;
	}
	return blkno;
}
