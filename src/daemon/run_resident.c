/*
 * run_resident.c
 *	  A run and the resident data of its device: what it is told of and uses.
 *
 * ASK pins the fragments that a source could use, until they were used or the source has
 * ended; of several runs one thread looks for all of them, or each run for those that its device
 * should have.  USE takes the rows of pages that the backend has found unchanged: the columns of
 * a fragment are used in place where it is the outer side; else they are remembered, and
 * appended to the relation when the source ends, unless there is a side that was built of
 * the same (run_side.c).  What chunks bring is kept by run_keep.c.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

/* Fragments that are looked for at a time. */
#define GJ_FIND				256
/* More ranges of rows than these are put together before the steps see them. */
#define GJ_MAX_RANGES		4

/* Rows first .. end-1 of a fragment. */
typedef struct GjRowRange
{
	uint32_t	first;
	uint32_t	end;
} GjRowRange;

/* ---- ASK */

/* Adds a table with a copy of its keys. */
static GjStatus
add_table(GjRun *run, uint32_t source, const GjRelationKey *relation, const uint8_t *keys)
{
	GjRunResident *resident = &run->resident[source];
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
	GjRunResident *resident = &run->resident[source];
	const GjSource *src = &run->sources[source];
	const uint8_t *at = memory + sizeof(*ask);
	const GjWanted *wanted;

	memcpy(ask, memory, sizeof(*ask));
	if (ask->ncolumns != src->ncolumns || ask->per_map == 0 || ask->first > ask->nfragments ||
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
remember_pinned(GjRunResident *resident, GjFragment *fragment, uint32_t table)
{
	if ((resident->npinned & (resident->npinned - 1)) == 0)
	{
		uint32_t	n = resident->npinned ? resident->npinned * 2 : 1;
		GjPinned   *grown = realloc(resident->pinned, n * sizeof(GjPinned));

		if (!grown)
			return false;
		resident->pinned = grown;
	}
	resident->pinned[resident->npinned++] = (GjPinned) {fragment, table, NULL};
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

uint32_t
gj_run_place_of(const GjRelationKey *relation, uint32_t fragment, uint32_t n)
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
 * Looks for fragments of the batch, from number `first` on, in the store of run r: for those that it
 * should have, or for the others.
 */
static void
look_in_store(GjRun *run, uint32_t r, const GjAsk *ask, const uint64_t *map_lsns, uint32_t first,
			  bool placed, GjFoundBatch *batch)
{
	GjRunResident *resident = &run->resident[ask->source];
	uint32_t	numbers[GJ_FIND];
	GjFound		others[GJ_FIND];
	uint32_t	n = 0;

	if (!resident->store)
		return;
	for (uint32_t i = 0; i < batch->n; i++)
		if ((batch->place[i] == r) == placed && !is_complete(&batch->found[i]))
			numbers[n++] = first + i;
	if (n == 0)
		return;
	gj_resident_find(resident->store, &resident->tables[ask->table], numbers, n,
					 ask->early ? NULL : map_lsns, ask->per_map, others);
	for (uint32_t i = 0; i < n; i++)
		take_better(batch, numbers[i] - first, resident, &others[i]);
}

/*
 * Looks for fragments from a number on.  If several runs have one, that with most pages that are
 * valid: others may be out of date.  With eight stores most of a look would be for what is not there.
 */
static void
find_batch(GjRun **runs, uint32_t nruns, const GjAsk *ask, const uint64_t *map_lsns,
		   uint32_t first, GjFoundBatch *batch)
{
	batch->n = ask->nfragments - first < GJ_FIND ? ask->nfragments - first : GJ_FIND;
	for (uint32_t i = 0; i < batch->n; i++)
	{
		batch->found[i].fragment = NULL;
		batch->place[i] = gj_run_place_of(&ask->relation, first + i, nruns);
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
write_known(uint8_t *at, GjRunResident *owner, GjFound *found, uint64_t map_lsn)
{
	uint64_t	valid[GJ_FRAGMENT_WORDS];
	uint64_t	lsns[GJ_FRAGMENT_BLOCKS];
	GjKnownFragment *known = &found->known;

	/* a table that the source has twice is told of twice: the id says for which of them */
	known->id = (known->id >> GJ_FRAGMENT_DEVICE_SHIFT << GJ_FRAGMENT_DEVICE_SHIFT) |
		(owner->npinned - 1);
	if (known->flags)
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

/* Tells of as many fragments as there is room for in `space` bytes; *nbytes: how many it takes. */
static GjStatus
answer(GjRun **runs, uint32_t nruns, const GjAsk *ask, const uint64_t *map_lsns, uint8_t *memory,
	   uint32_t space, uint32_t *nbytes)
{
	GjAnswered	head = {0, ask->first};
	uint8_t    *at = memory + sizeof(head);
	bool		room = true;

	while (head.next < ask->nfragments && room)
	{
		GjFoundBatch batch;

		find_batch(runs, nruns, ask, map_lsns, head.next, &batch);
		for (uint32_t i = 0; i < batch.n; i++, head.next++)
		{
			GjFragment *fragment = batch.found[i].fragment;

			room = (uint64_t) (at - memory) + GJ_LEAST_ANSWER - sizeof(head) <= space;
			if (room && !fragment)
				continue;
			if (!room || !remember_pinned(batch.owner[i], fragment, ask->table))
			{
				drop_found(&batch, i);
				if (room)
					return GJ_OUT_OF_HOST_MEMORY;
				break;
			}
			at = write_known(at, batch.owner[i], &batch.found[i],
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
	if (ask->source < run->program->nsources && !(run->ended >> ask->source & 1) &&
		(run->program->kind == GJ_PROGRAM_JOIN || run->program->kind == GJ_PROGRAM_PREWARM))
		return GJ_OK;
	return gj_run_fail(run, GJ_BAD_PROGRAM, "a question about a source that has ended");
}

/* Prepares a run for what a question is about. */
static GjStatus
note_question(GjRun *run, uint32_t source, const uint8_t *memory, GjAsk *ask, uint64_t **lsns)
{
	GjRunResident *resident = &run->resident[source];

	GJ_TRY(read_question(run, source, memory, ask, lsns));
	if (!resident->store)
		resident->store = gj_resident_store(run->entry, ask->cache_size);
	if (resident->store && run->clock == 0)
		run->clock = gj_resident_clock(resident->store);
	return GJ_OK;
}

GjStatus
gj_runs_ask(GjRun **runs, uint32_t n, const GjRunHost *host, const uint8_t *memory)
{
	GjAsk		ask;
	uint64_t   *lsns = NULL;
	uint8_t    *out;
	uint32_t	nbytes;
	GjStatus	status = GJ_OK;

	memcpy(&ask, memory, sizeof(ask));
	GJ_TRY(check_question(runs[0], &ask));
	for (uint32_t i = 0; i < n && status == GJ_OK; i++)
	{
		free(lsns);
		lsns = NULL;
		status = note_question(runs[i], ask.source, memory, &ask, &lsns);
	}
	if (status == GJ_OK)
		status = host->answer_space(host->arg, &out, &nbytes);
	if (status == GJ_OK)
		status = answer(runs, n, &ask, lsns, out, nbytes, &nbytes);
	if (status == GJ_OK)
		host->answered(host->arg, nbytes);
	free(lsns);
	return status;
}

/* True if a fragment was found with all of its pages valid, as many as the table has of it now. */
static bool
is_whole(const GjFound *found, const GjAsk *ask, uint32_t number)
{
	return is_complete(found) && found->known.npages == gj_ask_pages(ask, number);
}

/* Notes n fragments that were looked for, as far as they are there.  *whole: all are, and whole. */
static GjStatus
note_found(GjRun *run, const GjAsk *ask, const uint32_t *numbers, const GjFound *found, uint32_t n,
		   bool *whole)
{
	GjRunResident *resident = &run->resident[ask->source];
	GjRunFound *all = &run->found[ask->source];
	GjUse	   *grown = realloc(all->uses, (all->n + n + 1) * sizeof(GjUse));
	uint32_t	i = 0;

	if (grown)
		all->uses = grown;
	for (; grown && i < n; i++)
	{
		*whole &= is_whole(&found[i], ask, numbers[i]);
		if (!found[i].fragment)
			continue;
		if (!remember_pinned(resident, found[i].fragment, ask->table))
			break;
		grown[all->n++] = (GjUse) {resident->npinned - 1, found[i].known.map_lsn, NULL};
	}
	if (i == n)
		return GJ_OK;
	for (; i < n; i++)
		if (found[i].fragment)
			gj_resident_unpin_one(resident->store, found[i].fragment);
	return GJ_OUT_OF_HOST_MEMORY;
}

GjStatus
gj_run_find(GjRun *run, const uint8_t *memory, uint32_t place, uint32_t nplaces, bool *whole)
{
	GjRunResident *resident;
	uint32_t	numbers[GJ_FIND];
	GjFound		found[GJ_FIND];
	uint64_t   *lsns = NULL;
	uint32_t	number;
	GjAsk		ask;
	GjStatus	status;

	memcpy(&ask, memory, sizeof(ask));
	GJ_TRY(check_question(run, &ask));
	status = note_question(run, ask.source, memory, &ask, &lsns);
	free(lsns);
	GJ_TRY(status);
	resident = &run->resident[ask.source];
	*whole = resident->store != NULL;
	number = (place + nplaces - gj_run_place_of(&ask.relation, 0, nplaces)) % nplaces;
	while (number < ask.nfragments && *whole)
	{
		uint32_t	n = 0;

		for (; n < GJ_FIND && number < ask.nfragments; number += nplaces)
			numbers[n++] = number;
		gj_resident_find(resident->store, &resident->tables[ask.table], numbers, n, NULL,
						 ask.per_map, found);
		GJ_TRY(note_found(run, &ask, numbers, found, n, whole));
	}
	return GJ_OK;
}

const GjUse *
gj_run_found(const GjRun *run, uint32_t source, uint32_t *n)
{
	*n = run->found[source].n;
	return run->found[source].uses;
}

void
gj_run_forget_found(GjRun *run)
{
	for (uint32_t s = 0; s < run->program->nsources; s++)
	{
		GjRunResident *resident = &run->resident[s];

		gj_resident_unpin(resident->store, resident->pinned, resident->npinned);
		resident->npinned = run->found[s].n = 0;
	}
}

bool
gj_run_has_store(const GjRun *run, uint32_t source)
{
	return run->resident[source].store != NULL;
}

bool
gj_run_place(const GjRun *run, uint32_t source, const uint8_t *chunk, uint32_t n, uint32_t *place)
{
	const GjRunResident *resident = &run->resident[source];
	GjChunkPages pages;

	/* only which fragment: who keeps it looks at the rest */
	memcpy(&pages, gj_chunk_pages(chunk), offsetof(GjChunkPages, lsn));
	if (pages.n == 0 || pages.table >= resident->ntables)
		return false;
	*place = gj_run_place_of(&resident->tables[pages.table].relation, pages.fragment, n);
	return true;
}

GjStatus
gj_run_ask(GjRun *run, const uint8_t *memory)
{
	return gj_runs_ask(&run, 1, run->host, memory);
}

/* ---- USE */

static int
compare_ranges(const void *a, const void *b)
{
	uint32_t	x = ((const GjRowRange *) a)->first;
	uint32_t	y = ((const GjRowRange *) b)->first;

	return (x > y) - (x < y);
}

/*
 * The rows of the pages (NULL: all), as ranges[npages]; returns how many there are.  Several
 * processes have loaded the pages, and their rows lie in the order in which they came.
 */
static uint32_t
find_ranges(const GjFragment *fragment, const uint64_t *pages, GjRowRange *ranges)
{
	uint32_t	n = 0;
	uint32_t	merged = 0;

	/* the usual case: all rows are those of some page */
	if (!pages || gj_pages_all(pages, fragment->npages))
	{
		ranges[0] = (GjRowRange) {0, (uint32_t) fragment->nrows};
		return fragment->nrows > 0;
	}
	for (uint32_t page = 0; page < fragment->npages; page++)
	{
		uint32_t	first = fragment->pages->first_row[page];
		uint32_t	count = fragment->pages->row_count[page];

		if (!gj_page_is_set(pages, page) || count == 0)
			continue;
		if (n > 0 && ranges[n - 1].end == first)
			ranges[n - 1].end += count;
		else
			ranges[n++] = (GjRowRange) {first, first + count};
	}
	if (n < 2)
		return n;
	qsort(ranges, n, sizeof(GjRowRange), compare_ranges);
	for (uint32_t i = 1; i < n; i++)
	{
		if (ranges[i].first == ranges[merged].end)
			ranges[merged].end = ranges[i].end;
		else
			ranges[++merged] = ranges[i];
	}
	return merged + 1;
}

/* Describes the columns of a source, in the order of the program, from a row on. */
static void
describe(const GjWanted *wanted, const GjFragment *fragment, uint64_t first, GjColumn *columns)
{
	for (uint32_t c = 0; c < wanted->ncolumns; c++)
		for (uint32_t i = 0; i < fragment->ncolumns; i++)
			if (memcmp(fragment->columns[i].key.hash, wanted->keys[c].hash,
					   sizeof(wanted->keys[c].hash)) == 0 &&
				fragment->columns[i].type.kind == wanted->types[c].kind &&
				fragment->columns[i].type.width == wanted->types[c].width)
				columns[c] = gj_fragment_column(fragment, i, first);
}

/* Copies one column's ranges together; *column then starts at the first of them. */
static GjStatus
gather_ranges(GjWork *work, GjColumn *column, const GjRowRange *ranges, uint32_t n, uint8_t *to)
{
	uint64_t	total = 0;

	for (uint32_t i = 0; i < n; i++)
		total += ranges[i].end - ranges[i].first;
	for (uint32_t i = 0, at = 0; i < n; at += ranges[i].end - ranges[i].first, i++)
	{
		uint32_t	nrows = ranges[i].end - ranges[i].first;

		GJ_TRY(work->ops->copy(work->queue, to + (uint64_t) at * column->width,
							   (const uint8_t *) column->data +
							   (uint64_t) ranges[i].first * column->width,
							   (uint64_t) nrows * column->width));
		if (column->nulls)
			GJ_TRY(work->ops->copy(work->queue, to + gj_align(total * column->width) + at,
								   column->nulls + ranges[i].first, nrows));
	}
	column->data = to;
	if (column->nulls)
		column->nulls = to + gj_align(total * column->width);
	return GJ_OK;
}

/*
 * Puts scattered rows together, so that the steps see them at once.  Without memory for
 * that the ranges stay what they are.
 */
static GjStatus
compact(GjRun *run, GjColumn *columns, uint32_t ncolumns, GjRowRange *ranges, uint32_t *n)
{
	GjWork	   *work = &run->work;
	uint64_t	total = 0;
	uint64_t	nbytes = 0;
	GjStatus	status;

	if (*n <= GJ_MAX_RANGES)
		return GJ_OK;
	for (uint32_t i = 0; i < *n; i++)
		total += ranges[i].end - ranges[i].first;
	for (uint32_t c = 0; c < ncolumns; c++)
		nbytes += gj_align(total * columns[c].width) + gj_align(total);
	/* the steps need some as well */
	if (run->compact.nbytes < nbytes &&
		gj_lease_left(work->lease) < nbytes + nbytes / 4 + 2 * gj_run_least_space(run))
		return GJ_OK;
	status = gj_buffer_reserve(work, &run->compact, nbytes);
	if (status != GJ_OK)
		return status == GJ_OUT_OF_MEMORY ? GJ_OK : status;
	nbytes = 0;
	for (uint32_t c = 0; c < ncolumns; c++)
	{
		GJ_TRY(gather_ranges(work, &columns[c], ranges, *n,
							 (uint8_t *) run->compact.memory + nbytes));
		nbytes += gj_align(total * columns[c].width) + gj_align(total);
	}
	ranges[0] = (GjRowRange) {0, (uint32_t) total};
	*n = 1;
	return GJ_OK;
}

static void
skip_to(GjColumn *columns, uint32_t ncolumns, const GjColumn *start, uint64_t first)
{
	for (uint32_t c = 0; c < ncolumns; c++)
	{
		columns[c] = start[c];
		columns[c].data = (const uint8_t *) start[c].data + first * start[c].width;
		if (start[c].nulls)
			columns[c].nulls = start[c].nulls + first;
	}
}

static GjStatus
use_rows(GjRun *run, uint32_t source, GjPinned used, GjRowRange *ranges, uint32_t n)
{
	const GjFragment *fragment = used.fragment;
	uint32_t	first = run->sources[source].first_column;
	uint32_t	ncolumns = run->sources[source].ncolumns;
	GjColumn	start[GJ_MAX_COLUMNS];
	uint64_t	heap_base = 0;
	bool		exchanged = gj_run_exchanges(run, source);
	bool		outer = run->program->kind == GJ_PROGRAM_JOIN && source == 0 && !exchanged;

	describe(&run->resident[source].tables[used.table], fragment, 0, start);
	if (outer && n > GJ_MAX_RANGES)
	{
		/* rows that wait may lie where these are put together */
		GJ_TRY(gj_fused_flush(run));
		GJ_TRY(compact(run, start, ncolumns, ranges, &n));
	}
	/* rows that are sent from where they lie make a parcel a range */
	else if (exchanged && gj_run_sends_in_place(run, source))
		GJ_TRY(compact(run, start, ncolumns, ranges, &n));
	else if (!outer && !exchanged && run->program->kind == GJ_PROGRAM_JOIN)
		GJ_TRY(gj_relation_append_heap(&run->work, &run->relation[source], fragment->heap.memory,
									   fragment->heap_used, &heap_base));
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	nrows = ranges[i].end - ranges[i].first;

		/* where they are only noted, gj_fused_flush looks */
		if (!outer || !gj_fused_fits(run))
			GJ_STOP_CHECK(run);
		run->stats.source[source].rows_in += nrows;
		skip_to(run->columns + first, ncolumns, start, ranges[i].first);
		if (outer)
			GJ_TRY(gj_run_outer_rows(run, nrows, false));
		else if (exchanged)
			GJ_TRY(gj_run_stage_rows(run, source, nrows));
		else if (run->program->kind == GJ_PROGRAM_JOIN)
			GJ_TRY(gj_relation_append_rows(&run->work, &run->relation[source],
										   run->columns + first, nrows, heap_base,
										   fragment->heap_used));
	}
	return GJ_OK;
}

/* *pinned: the fragment that was told of by that id, of which the caller then has the pin. */
static GjStatus
take_pinned(GjRun *run, uint32_t source, uint64_t id, GjPinned *pinned)
{
	return gj_run_take_fragment(run, source, id, pinned) ? GJ_OK :
		gj_run_fail(run, GJ_BAD_PROGRAM, "use of a fragment that was not told of");
}

GjStatus
gj_run_append_use(GjRun *run, uint32_t source, const GjPinned *use)
{
	GjRowRange *ranges = malloc(GJ_FRAGMENT_BLOCKS * sizeof(GjRowRange));
	GjStatus	status = GJ_OUT_OF_HOST_MEMORY;

	if (ranges)
		status = use_rows(run, source, *use, ranges,
						  find_ranges(use->fragment, use->pages, ranges));
	free(ranges);
	return status;
}

/* Copies the pages of a use, unless it has all. */
static GjStatus
copy_pages(const GjUse *use, GjPinned *used)
{
	const uint64_t *pages = gj_use_pages(use, used->fragment);
	uint64_t   *copy;

	if (!pages)
		return GJ_OK;
	copy = malloc(GJ_PAGES_BYTES);
	if (!copy)
		return GJ_OUT_OF_HOST_MEMORY;
	used->pages = gj_copy_pages(pages, &copy);
	return GJ_OK;
}

/* Remembers what an inner source is to be made of; the pins go with it. */
static GjStatus
remember_uses(GjRun *run, uint32_t source, const GjUse *uses, uint32_t n)
{
	GjRunResident *resident = &run->resident[source];
	GjPinned   *grown = realloc(resident->uses, (resident->nuses + n + 1) * sizeof(GjPinned));

	if (!grown)
		return GJ_OUT_OF_HOST_MEMORY;
	resident->uses = grown;
	grown += resident->nuses;
	for (uint32_t i = 0; i < n; i++)
	{
		GJ_TRY(take_pinned(run, source, uses[i].id, &grown[i]));
		resident->nuses++;
		GJ_TRY(copy_pages(&uses[i], &grown[i]));
	}
	gj_resident_used(resident->store, grown, uses, n);
	return GJ_OK;
}

void
gj_run_drop_uses(GjRunResident *resident, uint32_t n)
{
	if (n == 0)
		return;
	gj_resident_unpin(resident->store, resident->uses, n);
	for (uint32_t i = 0; i < n; i++)
		free((void *) resident->uses[i].pages);
	resident->nuses -= n;
	memmove(resident->uses, resident->uses + n, resident->nuses * sizeof(GjPinned));
}

/* Keeps the pins of fragments until the queue has read them: gj_run_release. */
static GjStatus
hold_fragments(GjRun *run, uint32_t source, const GjUse *uses, uint32_t n)
{
	GjRunResident *resident = &run->resident[source];
	GjPinned   *grown = realloc(resident->held, (resident->nheld + n + 1) * sizeof(GjPinned));

	if (!grown)
		return GJ_OUT_OF_HOST_MEMORY;
	resident->held = grown;
	for (uint32_t i = 0; i < n; i++)
	{
		GJ_TRY(take_pinned(run, source, uses[i].id, &grown[resident->nheld]));
		run->rows_ahead += grown[resident->nheld++].fragment->nrows;
	}
	return GJ_OK;
}

/* Takes the rows of fragments where they lie. */
static GjStatus
use_fragments(GjRun *run, uint32_t source, const GjUse *uses, uint32_t n)
{
	GjRunResident *resident = &run->resident[source];
	uint32_t	first = resident->nheld;
	GjRowRange *ranges;
	GjStatus	status = GJ_OK;

	run->work.ops->phase(run->work.queue, GJ_PHASE_TRANSFER);
	GJ_TRY(hold_fragments(run, source, uses, n));
	ranges = malloc(GJ_FRAGMENT_BLOCKS * sizeof(GjRowRange));
	if (!ranges)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < n && status == GJ_OK; i++)
	{
		GjPinned	used = resident->held[first + i];

		status = use_rows(run, source, used, ranges,
						  find_ranges(used.fragment, uses[i].pages, ranges));
		run->rows_ahead -= used.fragment->nrows;
	}
	free(ranges);
	GJ_TRY(status);
	GJ_TRY(gj_run_send_many(run, source));
	GJ_TRY(gj_fused_flush(run));
	/* while the device works */
	gj_resident_used(resident->store, resident->held + first, uses, n);
	return GJ_OK;
}

GjStatus
gj_run_use(GjRun *run, uint32_t source, uint32_t n, const GjUse *uses)
{
	GJ_TRY(gj_run_may_load(run, source));
	GJ_STOP_CHECK(run);
	if (source == 0)
		GJ_TRY(gj_run_fail_points(run));
	return run->program->kind == GJ_PROGRAM_JOIN && source > 0 ?
		remember_uses(run, source, uses, n) : use_fragments(run, source, uses, n);
}

/* ---- fragments that several runs use */

bool
gj_run_take_fragment(GjRun *run, uint32_t source, uint64_t id, GjPinned *pinned)
{
	GjRunResident *resident = &run->resident[source];
	uint64_t	at = id & ((UINT64_C(1) << GJ_FRAGMENT_DEVICE_SHIFT) - 1);

	if (at >= resident->npinned || !resident->pinned[at].fragment)
		return false;
	*pinned = resident->pinned[at];
	resident->pinned[at].fragment = NULL;
	return true;
}

GjStatus
gj_run_use_shared(GjRun *run, uint32_t source, uint32_t n, const GjPinned *used)
{
	GjRunResident *resident = &run->resident[source];
	GjPinned   *grown;

	GJ_TRY(gj_run_may_load(run, source));
	grown = realloc(resident->shared, (resident->nshared + n + 1) * sizeof(GjPinned));
	if (!grown)
		return GJ_OUT_OF_HOST_MEMORY;
	resident->shared = grown;
	memcpy(grown + resident->nshared, used, n * sizeof(GjPinned));
	resident->nshared += n;
	return GJ_OK;
}

GjStatus
gj_run_append_shared(GjRun *run, uint32_t source)
{
	const GjRunResident *resident = &run->resident[source];
	GjStatus	status = GJ_OK;
	GjStatus	ended;

	for (uint32_t i = 0; i < resident->nshared && status == GJ_OK; i++)
	{
		const GjPinned *use = &resident->shared[i];
		GjDeviceEntry *entry = use->fragment->entry;

		GJ_STOP_CHECK(run);
		run->work.peer = entry == run->entry ? NULL : entry->device;
		status = gj_run_append_use(run, source, use);
		run->work.peer = NULL;
	}
	/* what the queue still reads must stay where it is */
	ended = run->work.ops->sync(run->work.queue);
	return status == GJ_OK ? ended : status;
}

void
gj_run_release(GjRun *run, uint32_t source)
{
	GjRunResident *resident = &run->resident[source];

	gj_run_stop_keeping(resident);
	gj_resident_unpin(resident->store, resident->pinned, resident->npinned);
	gj_run_drop_uses(resident, resident->nuses);
	gj_resident_unpin(resident->store, resident->held, resident->nheld);
	free(resident->uses);
	free(resident->held);
	free(resident->shared);
	free(resident->made);
	free(resident->pinned);
	for (uint32_t i = 0; i < resident->ntables; i++)
		free((void *) resident->tables[i].keys);
	free(resident->tables);
	memset(resident, 0, sizeof(*resident));
}
