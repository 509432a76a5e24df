/*
 * resident.c
 *	  Finds out which pages of a table are resident, and unchanged; see resident.h.
 *
 * The visibility map is read twice.  First, to ask gpujoind for the LSNs of pages for which it
 * has noted another LSN of the map.  Then, when all answers have come, to compare.  Everything
 * that gpujoind has reported by then was read before that second look, and only so does an
 * unchanged LSN prove that nothing has changed in between.
 *
 * All tables of all sources are asked about at once, as far as they fit one message, which is
 * sent together with the program.
 *
 * The backend need not wait for the answer if all pages were all-visible at the first look, or
 * had no tuples.  gpujoind then uses all fragments as they are, if it has all of them, if exactly
 * the pages that were all-visible at the look were so when they were read, and if the map's LSNs
 * are the noted ones.  A page that was read before the look is then unchanged, as above.  A page
 * that another backend read afterwards was all-visible when it was read, while our snapshot
 * existed: so all of its tuples are visible to the snapshot, and no visible one is missing.  A
 * page without tuples has none that the snapshot sees, and gets none.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/tupmacs.h"
#include "catalog/catalog.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/rel.h"

#include "compat.h"
#include "guc.h"
#include "load/resident_asks.h"
#include "load/tuple_id.h"
#include "load/visibility.h"

/* So many of a query's fragments are loaded anew in a run though few pages are missing: one in so many, and one more. */
#define RENEW_PART			8
/*
 * With so many workers pages are loaded in the time in which one process compares their LSNs (measured: 2 and 0.4
 * us a page), and nothing is missing afterwards.
 */
#define LOADING_WORKERS		4

struct GjResidentAsks
{
	GjResidentAsk *asks;
	int			n;
	int			size;
	int			first;			/* those before have been told of */
	int			nasked;			/* questions sent whose answers have not come */
	bool		whole;			/* they were GJ_ASK_WHOLE */
	bool		prewarm;
};

/*
 * May anything of this table be kept?  Changes of catalogs can leave bit and LSN alone, and
 * so can those of a file that this transaction has made; unlogged and temporary tables have
 * no LSNs.  A worker does not know what its transaction has made.
 */
static bool
may_be_resident(Relation rel, BlockNumber nblocks)
{
	return nblocks > 0 && !IsParallelWorker() &&
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
	Form_pg_attribute attr;
	AttributeKey head;
	bool		missing_null;
	Datum		missing;

	memset(key, 0, sizeof(*key));
	memset(&head, 0, sizeof(head));
	/* the ids of tuples are what the page alone says; no attribute has number 0 */
	if (attno == GJ_TUPLE_ID_ATTNO)
	{
		head.attnum = attno;
		add_hash(key, &head, sizeof(head));
		return;
	}
	attr = TupleDescAttr(desc, attno - 1);
	missing = getmissingattr(desc, attno, &missing_null);
	key->attnum = attno;
	key->flat = column->computed;
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

/* ---- asking */

static void
release_map(GjResidentAsk *ask)
{
	if (BufferIsValid(ask->vmbuffer))
		ReleaseBuffer(ask->vmbuffer);
	ask->vmbuffer = InvalidBuffer;
}

/*
 * Notes the fragments of a page of the map that have pages which are not all-visible.  False if one
 * of these may have a tuple, or there are too many.
 */
static bool
note_partial(GjResidentAsk *ask, uint32 map, const GjMapBits *bits)
{
	uint32		first = map * GJ_MAP_FRAGMENTS;

	for (uint32 i = 0; i < GJ_MAP_FRAGMENTS && first + i < ask->nfragments; i++)
	{
		uint32		npages = gj_fragment_end(first + i, ask->nblocks) - gj_fragment_first(first + i);
		GjAskPages *partial;

		if (gj_map_all_visible(bits->words[i], bits->bytes[i], npages))
			continue;
		if (ask->npartial == GJ_ASK_PARTIAL)
			return false;
		if (ask->partial == NULL)
			ask->partial = palloc(sizeof(GjAskPages) * GJ_ASK_PARTIAL);
		partial = &ask->partial[ask->npartial];
		*partial = (GjAskPages) {.number = first + i};
		gj_map_visible(bits->bytes[i], npages, partial->visible);
		if (!gj_others_are_empty(ask->rel, first + i, npages, partial->visible))
			return false;
		ask->npartial++;
	}
	return true;
}

/* Notes the LSN of a page of the map; clears ask->whole if pages that it covers may have changed. */
static void
look_at_map(GjResidentAsk *ask, uint32 map)
{
	BlockNumber first = map * GJ_MAP_BLOCKS;
	bool		all = false;
	GjMapBits	bits;

	ask->lsns[map] = InvalidXLogRecPtr;
	if (gj_lock_map(ask->rel, first, &ask->vmbuffer))
	{
		Page		page = BufferGetPage(ask->vmbuffer);
		const char *contents = PageGetContents(page);

		ask->lsns[map] = PageGetLSN(page);
		all = gj_map_all_visible((const uint64 *) contents, (const uint8 *) contents,
						  Min(ask->nblocks - first, GJ_MAP_BLOCKS));
		if (!all && ask->whole)
			gj_copy_map_bits(page, &bits);
		LockBuffer(ask->vmbuffer, BUFFER_LOCK_UNLOCK);
	}
	ask->whole = ask->whole && !XLogRecPtrIsInvalid(ask->lsns[map]) &&
		(all || note_partial(ask, map, &bits));
	ask->visible &= all || ask->whole;
}

/* Reads the map, before anything is asked.  whole: it matters whether no page may have changed. */
static void
start_ask(GjResidentAsk *ask, bool whole)
{
	ask->lsns = palloc(sizeof(uint64) * ask->nmaps);
	ask->whole = whole;
	ask->visible = true;
	for (uint32 i = 0; i < ask->nmaps; i++)
		look_at_map(ask, i);
	if (!ask->whole)
		ask->npartial = 0;
	/* there can be many tables */
	release_map(ask);
}

/* The question about a table. */
static GjAsk
question_of(const GjResidentAsk *ask)
{
	GjAsk		head = {0};

	gj_relation_file(ask->rel, &head.relation);
	head.cache_size = gj_cache_size < 0 ? UINT64_MAX : (uint64) gj_cache_size * 1024 * 1024;
	head.first = ask->next;
	head.nfragments = ask->nfragments;
	head.ncolumns = ask->writer->ncolumns;
	head.per_map = GJ_MAP_FRAGMENTS;
	head.nmaps = ask->nmaps;
	head.table = ask->table->number;
	head.source = ask->source;
	head.nblocks = ask->nblocks;
	head.map_blocks = GJ_MAP_BLOCKS;
	head.npartial = ask->npartial;
	head.loads_moved = ask->loads_moved;
	return head;
}

/* Writes the question for the next fragments and later ones; returns where it ends. */
static uint8 *
write_question(GjResidentAsk *ask, uint8 *at)
{
	GjAsk		head = question_of(ask);
	GjColumnKey *keys = (GjColumnKey *) (at + sizeof(head));
	uint64	   *lsns = (uint64 *) (keys + head.ncolumns);

	memcpy(at, &head, sizeof(head));
	for (uint32 c = 0; c < head.ncolumns; c++)
		make_column_key(ask->rel, ask->table->attnos[c], &ask->writer->columns[c], &keys[c]);
	memcpy(lsns, ask->lsns, sizeof(uint64) * ask->nmaps);
	if (ask->npartial > 0)
		memcpy(lsns + ask->nmaps, ask->partial, sizeof(GjAskPages) * ask->npartial);
	return at + gj_ask_size(&head);
}

GjResidentAsks *
gj_resident_asks(bool prewarm)
{
	GjResidentAsks *asks = palloc0(sizeof(GjResidentAsks));

	asks->prewarm = prewarm;
	return asks;
}

void
gj_resident_add(GjResidentAsks *asks, const GjWriter *writer, int source, GjResidentTable *tables,
				int ntables, int nworkers, GjResidentUse *use)
{
	uint32		number = 0;

	for (int i = 0; i < ntables; i++)
	{
		GjResidentAsk *ask;
		GjAsk		question;

		tables[i].map = NULL;
		if (!may_be_resident(tables[i].rel, tables[i].nblocks))
			continue;
		if (asks->n == asks->size)
		{
			asks->size = Max(asks->size * 2, GJ_MAX_SOURCES);
			asks->asks = asks->asks ? repalloc(asks->asks, sizeof(GjResidentAsk) * asks->size) :
				palloc(sizeof(GjResidentAsk) * asks->size);
		}
		ask = &asks->asks[asks->n];
		memset(ask, 0, sizeof(*ask));
		ask->table = &tables[i];
		ask->rel = tables[i].rel;
		ask->writer = writer;
		ask->source = source;
		ask->use = use;
		ask->nblocks = tables[i].nblocks;
		ask->nfragments = gj_fragment_of(ask->nblocks - 1) + 1;
		ask->nmaps = (ask->nfragments + GJ_MAP_FRAGMENTS - 1) / GJ_MAP_FRAGMENTS;
		ask->loads_moved = nworkers >= LOADING_WORKERS;
		ask->prewarm = asks->prewarm;
		ask->vmbuffer = InvalidBuffer;
		question = question_of(ask);
		if (gj_ask_size(&question) + GJ_ASK_PARTIAL * sizeof(GjAskPages) > GJ_MAX_ASK)
			continue;
		tables[i].number = number++;
		ask->known = palloc0(sizeof(GjKnown *) * ask->nfragments);
		asks->n++;
	}
}

uint64
gj_resident_blocks(const GjResidentAsks *asks, int source)
{
	uint64		nblocks = 0;

	for (int i = 0; i < asks->n; i++)
		nblocks += asks->asks[i].source == source ? asks->asks[i].nblocks : 0;
	return nblocks;
}

bool
gj_resident_questions(GjResidentAsks *asks, bool whole, GjQuestions *questions)
{
	Size		nbytes = 0;
	uint8	   *at;
	int			end;

	for (end = asks->first; end < asks->n; end++)
	{
		GjAsk		head;

		if (asks->asks[end].lsns == NULL)
			start_ask(&asks->asks[end], whole);
		whole &= asks->asks[end].whole;
		head = question_of(&asks->asks[end]);
		if (nbytes + gj_ask_size(&head) > GJ_MAX_ASK)
			break;
		nbytes += gj_ask_size(&head);
	}
	asks->nasked = end - asks->first;
	if (asks->nasked == 0)
		return false;
	asks->whole = whole && asks->nasked == asks->n;
	at = palloc(nbytes);
	*questions = (GjQuestions) {.n = asks->nasked,.whole = asks->whole,.nbytes = nbytes,.bytes = at};
	for (int i = asks->first; i < end; i++)
		at = write_question(&asks->asks[i], at);
	return true;
}

/* Waits for answers: a slot with *n of them.  NULL with the reason. */
static const uint8 *
await_answers(GjClient *client, uint32 *slot, uint32 *n, GjFailure *failure)
{
	GjEvent		event = gj_client_next(client, true, failure);

	if (event.type == GJ_EVENT_RESIDENT)
	{
		*slot = event.slot;
		*n = event.nrows;
		return gj_client_batch(client, event.slot);
	}
	if (event.type != GJ_EVENT_FAILED)
		gj_fail(failure, GJ_DEVICE_LOST, "unexpected answer about resident data");
	return NULL;
}

/* A copy of `n` words that lie at *at, which moves behind them; NULL: they are not all there. */
static uint64 *
take_words(const uint8 **at, const uint8 *end, uint32 n)
{
	Size		nbytes = sizeof(uint64) * n;
	uint64	   *words;

	if (end - *at < (ptrdiff_t) nbytes)
		return NULL;
	words = palloc(Max(nbytes, 1));
	memcpy(words, *at, nbytes);
	*at += nbytes;
	return words;
}

/* Takes one fragment in; false if it makes no sense. */
static bool
read_known(GjResidentAsk *ask, GjKnown *known, const uint8 **at, const uint8 *end)
{
	if (end - *at < (ptrdiff_t) sizeof(GjKnownFragment))
		return false;
	memcpy(&known->known, *at, sizeof(GjKnownFragment));
	*at += sizeof(GjKnownFragment);
	known->valid = known->lsns = NULL;
	if (known->known.number >= ask->nfragments || known->known.npages > GJ_FRAGMENT_BLOCKS ||
		((known->known.flags & GJ_KNOWN_BITS) &&
		 (known->valid = take_words(at, end, GJ_FRAGMENT_WORDS)) == NULL) ||
		((known->known.flags & GJ_KNOWN_LSNS) &&
		 (known->lsns = take_words(at, end, known->known.npages)) == NULL))
		return false;
	ask->known[known->known.number] = known;
	return true;
}

/* Takes an answer in; returns where it ends, or NULL if it makes no sense. */
static const uint8 *
read_answer(GjResidentAsk *ask, const uint8 *at, const uint8 *end)
{
	GjAnswered	head;
	GjKnown	   *known;

	if (end - at < (ptrdiff_t) sizeof(head))
		return NULL;
	memcpy(&head, at, sizeof(head));
	at += sizeof(head);
	if (head.n > ask->nfragments)
		return NULL;
	known = palloc_extended(sizeof(GjKnown) * Max(head.n, 1), MCXT_ALLOC_HUGE);
	for (uint32 i = 0; i < head.n; i++)
		if (!read_known(ask, &known[i], &at, end))
			return NULL;
	/* where nothing more is told, that is all */
	ask->next = head.next > ask->next ? head.next : ask->nfragments;
	return at;
}

/* Takes the answers to all questions in that were sent.  False with the reason.  *used: all is. */
static bool
read_answers(GjResidentAsks *asks, GjClient *client, bool *used, GjFailure *failure)
{
	int			i = asks->first;
	int			end = i + asks->nasked;

	while (i < end)
	{
		uint32		slot;
		uint32		n;
		const uint8 *answer = await_answers(client, &slot, &n, failure);
		const uint8 *at = answer;

		if (answer == NULL)
			return false;
		if (n == 0 && asks->whole && i == 0)
		{
			*used = true;
			asks->nasked = 0;
			return true;
		}
		for (; n > 0 && i < end && at != NULL; n--)
			at = read_answer(&asks->asks[i++], at, answer + GJ_OUTPUT_SLOT_SIZE);
		gj_client_free_batch(client, slot);
		if (at == NULL || n > 0)
		{
			gj_fail(failure, GJ_DEVICE_LOST, "damaged answer about resident data");
			return false;
		}
	}
	/* one that did not fit a slot is asked for again */
	while (asks->first < end && asks->asks[asks->first].next >= asks->asks[asks->first].nfragments)
		asks->first++;
	return true;
}

/* The map of a table of which nothing is to be loaded. */
static GjResidentMap *
whole_map(const GjResidentAsk *ask)
{
	GjResidentMap *map = palloc(offsetof(GjResidentMap, fragment));

	map->nblocks = map->nresident = ask->nblocks;
	map->nfragments = 0;
	return map;
}

bool
gj_resident_finish(GjResidentAsks *asks, GjClient *client, bool *used, GjFailure *failure)
{
	GjQuestions questions;
	uint32		renewals = 1;

	*used = false;
	while (asks->nasked > 0)
	{
		if (!read_answers(asks, client, used, failure))
			return false;
		/* a failure to send shows when reading */
		if (!*used && gj_resident_questions(asks, false, &questions))
			(void) gj_client_send_ask(client, &questions);
	}
	for (int i = 0; i < asks->n; i++)
		renewals += asks->asks[i].nfragments / RENEW_PART;
	for (int i = 0; i < asks->n; i++)
	{
		GjResidentAsk *ask = &asks->asks[i];

		ask->table->map = *used ? whole_map(ask) : gj_resident_compare(ask, &renewals);
		release_map(ask);
	}
	return true;
}

void
gj_resident_release(GjResidentAsks *asks)
{
	for (int i = 0; i < asks->n; i++)
		release_map(&asks->asks[i]);
}

uint8 *
gj_resident_fill(GjResidentUse *use, int source, bool ends, uint8 *at, const uint8 *end,
				 uint32 *n)
{
	while (use->sent < use->n)
	{
		const GjFoundFragment *found = &use->found[use->sent];
		GjUseHead	head = found->head;
		Size		nbytes = found->pages ? GJ_PAGES_BYTES : 0;

		if (end - at < (ptrdiff_t) (sizeof(head) + nbytes))
			break;
		if (ends && use->sent == use->n - 1)
			head.flags |= GJ_USE_LAST;
		memcpy(at, &head, sizeof(head));
		at += sizeof(head);
		if (nbytes > 0)
			memcpy(at, found->pages, nbytes);
		at += nbytes;
		use->sent++;
		(*n)++;
	}
	return at;
}
