/*
 * resident.c
 *	  Finds out which pages of a table are resident, and unchanged; see resident.h.
 *
 * The map's LSNs are read twice.  First without any bits, to ask gpujoind for the LSNs of
 * the pages where it has noted another one; then, when all answers are there, under one
 * share lock together with the bits: what has been told of by then was read before, and
 * only then does an unchanged LSN say that nothing has changed in between.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/tupmacs.h"
#include "access/visibilitymap.h"
#include "catalog/catalog.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/rel.h"

#include "compat.h"
#include "guc.h"
#include "load/resident.h"

/* A smaller table is loaded sooner than asked about. */
#define MIN_BLOCKS			32
/* With one part in so many of its pages missing, a fragment is loaded anew and kept. */
#define RELOAD_PART			8
/* It is kept if one page in so many is all-visible. */
#define KEEP_PART			2

/* Bytes of a map page that tell about one fragment. */
#define MAP_BYTES			(GJ_FRAGMENT_BLOCKS / 4)

/* What gpujoind has told about a fragment. */
typedef struct Known
{
	GjKnownFragment known;
	uint64	   *lsns;			/* of its pages, or NULL */
} Known;

typedef struct ResidentAsk
{
	GjResidentTable *table;
	Relation	rel;
	const GjWriter *writer;
	BlockNumber nblocks;
	uint32		nfragments;
	uint32		next;			/* the fragment to ask about next */
	uint32		nmaps;
	uint64	   *lsns;			/* of the map's pages */
	Known	  **known;			/* by fragment, or NULL */
	Buffer		vmbuffer;
} ResidentAsk;

/*
 * May anything of this table be kept?  Changes of catalogs can leave bit and LSN alone, and
 * so can those of a file that this transaction has made; unlogged and temporary tables have
 * no LSNs.  A worker does not know what its transaction has made.
 */
static bool
may_be_resident(Relation rel, BlockNumber nblocks)
{
	return nblocks >= MIN_BLOCKS && !IsParallelWorker() &&
		!IsCatalogRelation(rel) && !RelationIsMapped(rel) && RelationNeedsWAL(rel) &&
		!gj_relation_is_new(rel);
}

/* ---- what decides the contents of a column beside the page */

typedef struct AttributeKey
{
	Oid			typid;
	int32		typmod;
	Oid			collation;
	int16		attnum;
	int16		attlen;
	uint8		kind;
	uint8		width;
	char		attalign;
	bool		attbyval;
	bool		missing_null;
	bool		flat;			/* compressed and external values are made flat */
} AttributeKey;

static void
add_hash(GjColumnKey *key, const void *bytes, Size nbytes)
{
	for (int i = 0; i < 2; i++)
		key->hash[i] = hash_bytes_extended(bytes, nbytes, key->hash[i] + i + 1);
}

/*
 * Attribute, representation, where the attributes before it put it, and what tuples have
 * that are older than the attribute.
 */
static void
make_column_key(Relation rel, AttrNumber attno, const GjWriterColumn *column, GjColumnKey *key)
{
	TupleDesc	desc = RelationGetDescr(rel);
	Form_pg_attribute attr = TupleDescAttr(desc, attno - 1);
	AttributeKey head;
	bool		missing_null;
	Datum		missing = getmissingattr(desc, attno, &missing_null);

	memset(key, 0, sizeof(*key));
	memset(&head, 0, sizeof(head));
	key->attnum = attno;
	head.typid = attr->atttypid;
	head.typmod = attr->atttypmod;
	head.collation = attr->attcollation;
	head.attnum = attno;
	head.attlen = attr->attlen;
	head.kind = column->kind;
	head.width = column->width;
	head.attalign = attr->attalign;
	head.attbyval = attr->attbyval;
	head.missing_null = missing_null;
	head.flat = column->computed;
	add_hash(key, &head, sizeof(head));
	for (int i = 0; i < attno - 1; i++)
	{
		Form_pg_attribute before = TupleDescAttr(desc, i);

		add_hash(key, &before->attlen, sizeof(before->attlen));
		add_hash(key, &before->attalign, sizeof(before->attalign));
	}
	if (missing_null)
		return;
	if (attr->attbyval)
		add_hash(key, &missing, sizeof(missing));
	else
		add_hash(key, DatumGetPointer(missing), datumGetSize(missing, false, attr->attlen));
}

/* ---- the visibility map */

/* The page of the map that covers a block, share-locked; false if there is none. */
static bool
lock_map(Relation rel, BlockNumber blkno, Buffer *vmbuffer)
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

	if (!lock_map(rel, blkno, vmbuffer))
		return InvalidXLogRecPtr;
	lsn = PageGetLSN(BufferGetPage(*vmbuffer));
	LockBuffer(*vmbuffer, BUFFER_LOCK_UNLOCK);
	return lsn;
}

/* LSN and bits of the map page of a fragment; bits[GJ_MAP_FRAGMENTS * MAP_BYTES]. */
static XLogRecPtr
read_map(ResidentAsk *ask, uint32 fragment, uint8 *bits)
{
	Page		page;
	XLogRecPtr	lsn;

	memset(bits, 0, GJ_MAP_FRAGMENTS * MAP_BYTES);
	if (!lock_map(ask->rel, gj_fragment_first(fragment), &ask->vmbuffer))
		return InvalidXLogRecPtr;
	page = BufferGetPage(ask->vmbuffer);
	lsn = PageGetLSN(page);
	memcpy(bits, PageGetContents(page), GJ_MAP_BLOCKS / 4);
	LockBuffer(ask->vmbuffer, BUFFER_LOCK_UNLOCK);
	return lsn;
}

/* Which of the first n pages of a fragment are all-visible, out of two bits each. */
static void
find_visible(const uint8 *bits, uint32 n, uint64 visible[GJ_FRAGMENT_WORDS])
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

/* ---- asking */

static void
release_map(ResidentAsk *ask)
{
	if (BufferIsValid(ask->vmbuffer))
		ReleaseBuffer(ask->vmbuffer);
	ask->vmbuffer = InvalidBuffer;
}

/* Reads the LSNs of the map, before anything is asked. */
static void
start_ask(ResidentAsk *ask)
{
	ask->nmaps = (ask->nfragments + GJ_MAP_FRAGMENTS - 1) / GJ_MAP_FRAGMENTS;
	ask->lsns = palloc(sizeof(uint64) * ask->nmaps);
	for (uint32 i = 0; i < ask->nmaps; i++)
		ask->lsns[i] = gj_map_lsn(ask->rel, i * GJ_MAP_BLOCKS, &ask->vmbuffer);
	/* there can be many tables */
	release_map(ask);
}

/* Writes the question for the next fragments and later ones. */
static void
write_ask(ResidentAsk *ask, uint8 *slot)
{
	uint32		ncolumns = ask->writer->ncolumns;
	GjAsk		head = {0};
	GjColumnKey *keys = (GjColumnKey *) (slot + sizeof(head));

	gj_relation_file(ask->rel, &head.relation);
	head.cache_size = gj_cache_size < 0 ? UINT64_MAX : (uint64) gj_cache_size * 1024 * 1024;
	head.first = ask->next;
	head.nfragments = ask->nfragments;
	head.ncolumns = ncolumns;
	head.per_map = GJ_MAP_FRAGMENTS;
	head.nmaps = ask->nmaps;
	head.table = ask->table->number;
	memcpy(slot, &head, sizeof(head));
	for (uint32 c = 0; c < ncolumns; c++)
		make_column_key(ask->rel, ask->table->attnos[c], &ask->writer->columns[c], &keys[c]);
	memcpy(keys + ncolumns, ask->lsns, sizeof(uint64) * ask->nmaps);
}

/* Waits for the answer to a question.  NULL with the reason. */
static const uint8 *
await_answer(GjClient *client, uint32 *slot, GjFailure *failure)
{
	for (;;)
	{
		GjEvent		event = gj_client_next(client, true, failure);

		switch (event.type)
		{
			case GJ_EVENT_SLOT:
				break;
			case GJ_EVENT_RESIDENT:
				*slot = event.slot;
				return gj_client_batch(client, event.slot);
			case GJ_EVENT_FAILED:
				return NULL;
			default:
				gj_fail(failure, GJ_DEVICE_LOST, "unexpected answer about resident data");
				return NULL;
		}
	}
}

/* Takes an answer in; returns the fragment to ask about next. */
static uint32
read_answer(ResidentAsk *ask, const uint8 *answer)
{
	GjAnswered	head;
	const uint8 *at = answer + sizeof(head);
	const uint8 *end = answer + GJ_OUTPUT_SLOT_SIZE;

	memcpy(&head, answer, sizeof(head));
	for (uint32 i = 0; i < head.n && end - at >= (ptrdiff_t) sizeof(GjKnownFragment); i++)
	{
		Known	   *known = palloc0(sizeof(Known));
		Size		nbytes;

		memcpy(&known->known, at, sizeof(GjKnownFragment));
		at += sizeof(GjKnownFragment);
		nbytes = sizeof(uint64) * known->known.npages;
		if (known->known.number >= ask->nfragments || known->known.npages > GJ_FRAGMENT_BLOCKS)
			break;
		if (known->known.flags & GJ_KNOWN_LSNS)
		{
			if (end - at < (ptrdiff_t) nbytes)
				break;
			known->lsns = palloc(Max(nbytes, 1));
			memcpy(known->lsns, at, nbytes);
			at += nbytes;
		}
		ask->known[known->known.number] = known;
	}
	return head.next;
}

/*
 * Asks about all tables until gpujoind has told all.  Some questions are on their way at a
 * time, as many as there are slots: answers come in their order.
 */
static bool
ask_all(ResidentAsk *asks, int n, GjClient *client, int source, GjFailure *failure)
{
	int			waiting[GJ_LOAD_SLOTS];
	int			nwaiting = 0;
	int			again = -1;		/* a table whose answer did not fit a slot */
	int			next = 0;

	StaticAssertStmt(GJ_LOAD_SLOTS <= GJ_OUTPUT_SLOTS, "an answer waits for no slot");
	while (nwaiting > 0 || again >= 0 || next < n)
	{
		ResidentAsk *ask;
		const uint8 *answer;
		uint32		slot;
		uint32		first;

		if (nwaiting < GJ_LOAD_SLOTS && (again >= 0 || next < n))
		{
			int			i = again >= 0 ? again : next++;
			uint8	   *memory = gj_client_load_slot(client, &slot);

			if (memory == NULL)
			{
				gj_fail(failure, GJ_DEVICE_LOST, "no slot to ask in");
				return false;
			}
			if (i != again)
				start_ask(&asks[i]);
			again = -1;
			write_ask(&asks[i], memory);
			/* a failure to send shows when reading */
			(void) gj_client_send_ask(client, slot, source);
			waiting[nwaiting++] = i;
			continue;
		}
		answer = await_answer(client, &slot, failure);
		if (answer == NULL)
			return false;
		ask = &asks[waiting[0]];
		first = ask->next;
		ask->next = read_answer(ask, answer);
		gj_client_free_batch(client, slot);
		if (ask->next > first && ask->next < ask->nfragments)
			again = waiting[0];
		nwaiting--;
		memmove(waiting, waiting + 1, sizeof(int) * nwaiting);
	}
	return true;
}

/* ---- comparing */

/* Clears the bits of pages whose LSN is not the one that was noted. */
static void
check_page_lsns(ResidentAsk *ask, uint32 fragment, const Known *known, uint64 *pages)
{
	BlockNumber first = gj_fragment_first(fragment);

	for (uint32 page = 0; page < known->known.npages; page++)
	{
		Buffer		buffer;
		XLogRecPtr	lsn;

		if (!gj_page_is_set(pages, page))
			continue;
		CHECK_FOR_INTERRUPTS();
		buffer = ReadBuffer(ask->rel, first + page);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		lsn = BufferGetLSNAtomic(buffer);
		UnlockReleaseBuffer(buffer);
		if (lsn != known->lsns[page] || XLogRecPtrIsInvalid(lsn))
			pages[page / 64] &= ~(UINT64CONST(1) << (page % 64));
	}
}

/* The pages of a known fragment that are as they were.  False: it is of no use. */
static bool
find_unchanged(ResidentAsk *ask, uint32 fragment, XLogRecPtr map_lsn, const uint64 *visible,
			   uint64 *pages)
{
	const Known *known = ask->known[fragment];

	if (known == NULL || XLogRecPtrIsInvalid(map_lsn))
		return false;
	for (uint32 i = 0; i < GJ_FRAGMENT_WORDS; i++)
		pages[i] = known->known.valid[i] & visible[i];
	if (known->known.map_lsn == map_lsn)
		return true;
	/* moved since it was asked for: only the LSNs of the pages could tell */
	if (known->lsns == NULL)
		return false;
	check_page_lsns(ask, fragment, known, pages);
	return true;
}

/* Decides about one fragment. */
static void
compare_fragment(ResidentAsk *ask, uint32 fragment, XLogRecPtr map_lsn, const uint8 *bits,
				 GjFragmentMap *map, GjUse *use)
{
	uint32		npages = gj_fragment_end(fragment, ask->nblocks) - gj_fragment_first(fragment);
	uint64		visible[GJ_FRAGMENT_WORDS];
	uint32		nvisible;
	uint32		nresident;

	find_visible(bits, npages, visible);
	nvisible = gj_pages_count(visible);
	map->state = GJ_FRAGMENT_LOAD;
	if (XLogRecPtrIsInvalid(map_lsn) || nvisible < npages / KEEP_PART)
	{
		/* what is known may still be better than nothing */
		if (!find_unchanged(ask, fragment, map_lsn, visible, map->resident))
			return;
	}
	else if (!find_unchanged(ask, fragment, map_lsn, visible, map->resident))
	{
		map->state = GJ_FRAGMENT_KEEP;
		return;
	}
	nresident = gj_pages_count(map->resident);
	if (nvisible >= npages / KEEP_PART && nvisible - nresident > npages / RELOAD_PART)
		map->state = GJ_FRAGMENT_KEEP;
	else if (nresident > 0)
		map->state = GJ_FRAGMENT_USE;
	if (map->state != GJ_FRAGMENT_USE)
	{
		memset(map->resident, 0, sizeof(map->resident));
		return;
	}
	use->id = ask->known[fragment]->known.id;
	use->map_lsn = map_lsn;
	memcpy(use->pages, map->resident, sizeof(use->pages));
}

static GjResidentMap *
compare_all(ResidentAsk *ask, GjResidentUse *use)
{
	GjResidentMap *map = MemoryContextAllocExtended(CurrentMemoryContext,
													offsetof(GjResidentMap, fragment) +
													sizeof(GjFragmentMap) * ask->nfragments,
													MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	uint8		bits[GJ_MAP_FRAGMENTS * MAP_BYTES];
	XLogRecPtr	map_lsn = InvalidXLogRecPtr;
	Size		nbytes;

	map->nblocks = ask->nblocks;
	map->nfragments = ask->nfragments;
	nbytes = sizeof(GjUse) * (Size) (use->n + ask->nfragments);
	use->uses = use->uses ? repalloc_huge(use->uses, nbytes) :
		MemoryContextAllocExtended(CurrentMemoryContext, nbytes, MCXT_ALLOC_HUGE);
	for (uint32 f = 0; f < ask->nfragments; f++)
	{
		if (f % GJ_MAP_FRAGMENTS == 0)
			map_lsn = read_map(ask, f, bits);
		compare_fragment(ask, f, map_lsn, bits + f % GJ_MAP_FRAGMENTS * MAP_BYTES,
						 &map->fragment[f], &use->uses[use->n]);
		if (map->fragment[f].state != GJ_FRAGMENT_USE)
			continue;
		use->n++;
		map->nresident += gj_pages_count(map->fragment[f].resident);
	}
	return map;
}

bool
gj_resident_ask(GjClient *client, const GjWriter *writer, int source, GjResidentTable *tables,
				int ntables, GjResidentUse *use, GjFailure *failure)
{
	ResidentAsk *asks = palloc0(sizeof(ResidentAsk) * Max(ntables, 1));
	int			n = 0;
	bool		asked;

	for (int i = 0; i < ntables; i++)
	{
		ResidentAsk *ask = &asks[n];

		tables[i].map = NULL;
		if (!may_be_resident(tables[i].rel, tables[i].nblocks) || !gj_client_may_ask(client))
			continue;
		tables[i].number = n++;
		ask->table = &tables[i];
		ask->rel = tables[i].rel;
		ask->writer = writer;
		ask->nblocks = tables[i].nblocks;
		ask->nfragments = gj_fragment_of(ask->nblocks - 1) + 1;
		ask->known = palloc0(sizeof(Known *) * ask->nfragments);
		ask->vmbuffer = InvalidBuffer;
	}
	asked = ask_all(asks, n, client, source, failure);
	for (int i = 0; i < n; i++)
	{
		if (asked)
			asks[i].table->map = compare_all(&asks[i], use);
		release_map(&asks[i]);
	}
	return asked;
}

uint32
gj_resident_fill(GjResidentUse *use, uint8 *slot)
{
	uint32		n = Min(use->n - use->sent, GJ_LOAD_SLOT_SIZE / sizeof(GjUse));

	memcpy(slot, use->uses + use->sent, sizeof(GjUse) * n);
	use->sent += n;
	return n;
}

BlockNumber
gj_resident_next(const GjResidentMap *map, BlockNumber blkno, BlockNumber nblocks)
{
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
