/*
 * ask.c
 *	  Answers what a backend asks about resident data of a run's device.
 *
 * ASK pins the fragments that a source could use, until the run has used them (fragment.c) or the
 * source has ended.  If a team has several runs, one thread looks for the fragments of all.
 */
#include "intake.h"

#include <stdlib.h>
#include <string.h>

/* Fragments that are looked for at a time. */
#define GJ_FIND				256
/* More than a table of 2^32 blocks has, some of whose fragments are shorter than others. */
#define GJ_MOST_FRAGMENTS	(2u << 20)

/* Adds a table with a copy of its keys. */
static GjStatus
add_table(GjRun *run, uint32_t source, const GjRelationKey *relation, const uint8_t *keys)
{
	GjRunResident *resident = &run->intake->resident[source];
	const GjSource *src = &run->sources[source];
	uint32_t	n = resident->ntables;
	GjColumnKey *copy;

	if ((n & (n - 1)) == 0)
	{
		GjWanted   *grown = realloc(resident->tables, (n ? n * 2 : 1) * sizeof(GjWanted));

		if (!grown)
			return GJ_OUT_OF_HOST_MEMORY;
		resident->tables = grown;
	}
	copy = malloc((src->ncolumns + 1) * sizeof(GjColumnKey));
	if (!copy)
		return GJ_OUT_OF_HOST_MEMORY;
	memcpy(copy, keys, src->ncolumns * sizeof(GjColumnKey));
	resident->tables[n] = (GjWanted) {*relation, src->ncolumns, copy,
	run->types + src->first_column};
	resident->ntables++;
	return GJ_OK;
}

/* Reads the question.  The first one about a table says what its keys are. */
static GjStatus
read_question(GjRun *run, uint32_t source, const uint8_t *memory, GjAsk *ask, uint64_t **lsns)
{
	GjRunResident *resident = &run->intake->resident[source];
	const GjSource *src = &run->sources[source];
	const uint8_t *at = memory + sizeof(*ask);
	const GjWanted *wanted;

	memcpy(ask, memory, sizeof(*ask));
	if (ask->ncolumns != src->ncolumns || ask->per_map == 0 || ask->first > ask->nfragments ||
		ask->nfragments > GJ_MOST_FRAGMENTS ||
		(uint64_t) ask->nmaps * ask->per_map < ask->nfragments)
		return gj_run_fail(run, GJ_BAD_PROGRAM, "a question is damaged");
	*lsns = malloc((ask->nmaps + 1) * sizeof(uint64_t));
	if (!*lsns)
		return GJ_OUT_OF_HOST_MEMORY;
	memcpy(*lsns, at + src->ncolumns * sizeof(GjColumnKey), ask->nmaps * sizeof(uint64_t));
	if (ask->table > resident->ntables)
		return gj_run_fail(run, GJ_BAD_PROGRAM, "a question skips a table");
	if (ask->table == resident->ntables)
		return add_table(run, source, &ask->relation, at);
	/* the fragments that were told of have the columns that were asked for first */
	wanted = &resident->tables[ask->table];
	return memcmp(&wanted->relation, &ask->relation, sizeof(ask->relation)) == 0 &&
		memcmp(wanted->keys, at, src->ncolumns * sizeof(GjColumnKey)) == 0 ? GJ_OK :
		gj_run_fail(run, GJ_BAD_PROGRAM, "a table is asked about in two ways");
}

static bool
remember_pinned(GjRunResident *resident, GjFragment *fragment, uint32_t table, bool excluded)
{
	if ((resident->npinned & (resident->npinned - 1)) == 0)
	{
		uint32_t	n = resident->npinned ? resident->npinned * 2 : 1;
		GjPinned   *grown = realloc(resident->pinned, n * sizeof(GjPinned));

		if (!grown)
			return false;
		resident->pinned = grown;
	}
	resident->pinned[resident->npinned++] = (GjPinned) {fragment, table, NULL, excluded};
	return true;
}

/* Fragments that one of the runs has on its device, pinned for that run. */
typedef struct GjFoundBatch
{
	uint32_t	n;
	GjFound		found[GJ_FIND];
	GjRunResident *owner[GJ_FIND];
	uint32_t	place[GJ_FIND];	/* the run that should have it */
} GjFoundBatch;

/* The number, of n devices, of the one that keeps a fragment of a table. */
static uint32_t
place_of(const GjRelationKey *relation, uint32_t fragment, uint32_t n)
{
	return (uint32_t) (((uint64_t) fragment + relation->filenode) % n);
}

/* Takes one that was found instead of what the batch has, if that is out of date. */
static void
take_better(GjFoundBatch *batch, uint32_t at, GjRunResident *resident, const GjFound *other)
{
	GjFound    *found = &batch->found[at];

	if (!other->fragment)
		return;
	if (found->fragment && other->nvalid <= found->nvalid)
	{
		gj_resident_unpin_one(resident->store, other->fragment);
		return;
	}
	if (found->fragment)
		gj_resident_unpin_one(batch->owner[at]->store, found->fragment);
	*found = *other;
	batch->owner[at] = resident;
}

/* True if no other copy can be better than what was found. */
static bool
is_complete(const GjFound *found)
{
	return found->fragment && found->known.flags == 0;
}

/*
 * Looks for fragments of the batch, from number `first` on, in the store of run r: for those that
 * it should have, or for the others.
 */
static void
look_in_store(GjRun *run, uint32_t r, const GjAsk *ask, const uint64_t *map_lsns, uint32_t first,
			  bool placed, GjFoundBatch *batch)
{
	GjRunResident *resident = &run->intake->resident[ask->source];
	const GjWanted *wanted = &resident->tables[ask->table];
	uint32_t	numbers[GJ_FIND];
	GjFound		others[GJ_FIND];
	uint16_t	places[GJ_MAX_COLUMNS];
	uint32_t	n = 0;

	if (!resident->store)
		return;
	for (uint32_t i = 0; i < batch->n; i++)
		if ((batch->place[i] == r) == placed && !is_complete(&batch->found[i]))
			numbers[n++] = first + i;
	if (n == 0)
		return;
	memset(places, 0, wanted->ncolumns * sizeof(uint16_t));
	gj_resident_find(resident->store, wanted, places, numbers, n, map_lsns, ask->per_map, others);
	for (uint32_t i = 0; i < n; i++)
		take_better(batch, numbers[i] - first, resident, &others[i]);
}

/*
 * Looks for fragments from a number on.  If several runs have one, that with most pages that are
 * valid: others may be out of date.  With eight stores most of a look would be for what is not
 * there.
 */
static void
find_batch(GjRun **runs, uint32_t nruns, const GjAsk *ask, const uint64_t *map_lsns,
		   uint32_t first, GjFoundBatch *batch)
{
	batch->n = ask->nfragments - first < GJ_FIND ? ask->nfragments - first : GJ_FIND;
	for (uint32_t i = 0; i < batch->n; i++)
	{
		batch->found[i].fragment = NULL;
		batch->place[i] = place_of(&ask->relation, first + i, nruns);
	}
	for (uint32_t r = 0; r < nruns; r++)
		look_in_store(runs[r], r, ask, map_lsns, first, true, batch);
	for (uint32_t r = 0; r < nruns && nruns > 1; r++)
		look_in_store(runs[r], r, ask, map_lsns, first, false, batch);
}

/* Unpins what was found, from one of the batch on. */
static void
drop_found(GjFoundBatch *batch, uint32_t from)
{
	for (uint32_t i = from; i < batch->n; i++)
		if (batch->found[i].fragment)
			gj_resident_unpin_one(batch->owner[i]->store, batch->found[i].fragment);
}

/* Appends what a backend must know of a fragment; returns where it ends. */
static uint8_t *
write_known(uint8_t *at, const GjAsk *ask, GjRunResident *owner, GjFound *found, uint64_t map_lsn)
{
	uint64_t	valid[GJ_FRAGMENT_WORDS];
	uint64_t	lsns[GJ_FRAGMENT_BLOCKS];
	GjKnownFragment *known = &found->known;

	/* a table that the source has twice is told of twice: the id says for which of them */
	known->id = (known->id >> GJ_FRAGMENT_DEVICE_SHIFT << GJ_FRAGMENT_DEVICE_SHIFT) |
		(owner->npinned - 1);
	if (known->flags || known->nlost == known->npages)
		gj_resident_describe(owner->store, found, map_lsn, valid, lsns);
	memcpy(at, known, sizeof(*known));
	at += sizeof(*known);
	if (known->flags & GJ_KNOWN_BITS)
	{
		memcpy(at, valid, sizeof(valid));
		at += sizeof(valid);
	}
	if (known->flags & GJ_KNOWN_LSNS)
	{
		memcpy(at, lsns, known->npages * sizeof(uint64_t));
		at += known->npages * sizeof(uint64_t);
	}
	return at;
}

/*
 * True if a backend is not told of a fragment that was found: it is to be loaded anew, and can make
 * room for that.
 */
static bool
is_left_out(const GjFoundBatch *batch, uint32_t i, const GjAsk *ask, uint64_t map_lsn)
{
	/* most are not older: that needs no lock */
	return ask->loads_moved && batch->found[i].known.map_lsn < map_lsn &&
		gj_resident_is_to_be_loaded(batch->owner[i]->store, batch->found[i].fragment, map_lsn);
}

/* Tells of as many fragments as there is room for in `space` bytes; *nbytes: how many it takes. */
static GjStatus
write_answer(GjRun **runs, uint32_t nruns, const GjAsk *ask, const uint64_t *map_lsns,
			 uint8_t *memory, uint32_t space, uint32_t *nbytes)
{
	const GjWanted *wanted = &runs[0]->intake->resident[ask->source].tables[ask->table];
	GjAnswered	head = {0, ask->first};
	uint8_t    *at = memory + sizeof(head);
	uint16_t	places[GJ_MAX_COLUMNS];
	bool		room = true;

	memset(places, 0, wanted->ncolumns * sizeof(uint16_t));
	while (head.next < ask->nfragments && room)
	{
		GjFoundBatch batch;

		/* a question can be about four billion of them */
		GJ_STOP_CHECK(runs[0]);
		find_batch(runs, nruns, ask, map_lsns, head.next, &batch);
		for (uint32_t i = 0; i < batch.n; i++, head.next++)
		{
			GjFragment *fragment = batch.found[i].fragment;

			room = (uint64_t) (at - memory) + GJ_LEAST_ANSWER - sizeof(head) <= space;
			if (room && !fragment)
				continue;
			if (room && is_left_out(&batch, i, ask, map_lsns[head.next / ask->per_map]))
			{
				gj_resident_unpin_one(batch.owner[i]->store, fragment);
				continue;
			}
			if (!room || !remember_pinned(batch.owner[i], fragment, ask->table,
										  gj_run_excludes(runs[0], ask->source, wanted, fragment,
														  places)))
			{
				drop_found(&batch, i);
				if (room)
					return GJ_OUT_OF_HOST_MEMORY;
				break;
			}
			at = write_known(at, ask, batch.owner[i], &batch.found[i],
							 map_lsns[head.next / ask->per_map]);
			head.n++;
		}
	}
	memcpy(memory, &head, sizeof(head));
	*nbytes = (uint32_t) (at - memory);
	return GJ_OK;
}

/* A question that the run can be asked. */
static GjStatus
check_question(GjRun *run, const GjAsk *ask)
{
	if (ask->source < run->program->nsources && !(run->arrival.ended >> ask->source & 1) &&
		(run->sink->joins || run->sink->drops_rows))
		return GJ_OK;
	return gj_run_fail(run, GJ_BAD_PROGRAM, "a question about a source that has ended");
}

/* Prepares a run for what a question is about. */
static GjStatus
note_question(GjRun *run, uint32_t source, const uint8_t *memory, GjAsk *ask, uint64_t **lsns)
{
	GjRunResident *resident = &run->intake->resident[source];

	GJ_TRY(read_question(run, source, memory, ask, lsns));
	if (!resident->store)
		resident->store = gj_resident_store(run->entry, ask->cache_size);
	if (resident->store && run->intake->clock == 0)
		run->intake->clock = gj_resident_clock(resident->store);
	return GJ_OK;
}

GjStatus
gj_runs_ask(GjRun **runs, uint32_t n, const uint8_t *question, const GjAnswers *answers)
{
	GjAsk		ask;
	uint64_t   *lsns = NULL;
	uint8_t    *out;
	uint32_t	nbytes;
	GjStatus	status = GJ_OK;

	memcpy(&ask, question, sizeof(ask));
	GJ_TRY(check_question(runs[0], &ask));
	for (uint32_t i = 0; i < n && status == GJ_OK; i++)
	{
		free(lsns);
		lsns = NULL;
		status = note_question(runs[i], ask.source, question, &ask, &lsns);
	}
	if (status == GJ_OK)
		status = answers->space(answers->arg, &out, &nbytes);
	if (status == GJ_OK)
		status = write_answer(runs, n, &ask, lsns, out, nbytes, &nbytes);
	if (status == GJ_OK)
		answers->answered(answers->arg, nbytes);
	free(lsns);
	return status;
}

bool
gj_run_has_store(const GjRun *run, uint32_t source)
{
	return run->intake->resident[source].store != NULL;
}

bool
gj_run_place(const GjRun *run, uint32_t source, const uint8_t *chunk, uint32_t n, uint32_t *place)
{
	const GjRunResident *resident = &run->intake->resident[source];
	GjChunkPages pages;

	/* only which fragment: who keeps it looks at the rest */
	memcpy(&pages, gj_chunk_pages(chunk), offsetof(GjChunkPages, lsn));
	if (pages.n == 0 || pages.table >= resident->ntables)
		return false;
	*place = place_of(&resident->tables[pages.table].relation, pages.fragment, n);
	return true;
}
