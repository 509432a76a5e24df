/*
 * store/fragment.c
 *	  A run and the resident data of its device: what it uses.  What it is asked about is in source/ask.c.
 *
 * USE takes the rows of pages that the backend has found unchanged: the columns of
 * a fragment are used in place where it is the outer side; else they are remembered, and
 * appended to the relation, or sent (source/split.c), when the source ends, unless there is a side that
 * was made of the same (source/side.c).  What chunks bring is kept by source/keep.c.
 */
#include "daemon/run/state.h"

#include <stdlib.h>
#include <string.h>

/* More ranges of rows than these are put together before the steps see them. */
#define GJ_MAX_RANGES		4

/* Rows first .. end-1 of a fragment. */
typedef struct GjRowRange
{
	uint32_t	first;
	uint32_t	end;
} GjRowRange;

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

/* Adds the copies of ranges of rows of `width` bytes; returns how many. */
static uint32_t
add_pieces(GjPiece *pieces, uint8_t *to, const void *from, uint32_t width, const GjRowRange *ranges,
		   uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	nbytes = (uint64_t) (ranges[i].end - ranges[i].first) * width;

		pieces[i] = (GjPiece) {to, (const uint8_t *) from + (uint64_t) ranges[i].first * width, nbytes};
		to += nbytes;
	}
	return n;
}

/* Copies the ranges of all columns together, `total` rows each; columns then start at the first of them. */
static GjStatus
gather_ranges(GjWork *work, GjColumn *columns, uint32_t ncolumns, const GjRowRange *ranges, uint32_t n,
			  uint64_t total, uint8_t *to)
{
	GjPiece    *pieces = malloc((uint64_t) ncolumns * 2 * n * sizeof(GjPiece));
	uint32_t	npieces = 0;
	GjStatus	status;

	if (!pieces)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t c = 0; c < ncolumns; c++)
	{
		GjColumn   *column = &columns[c];

		npieces += add_pieces(pieces + npieces, to, column->data, column->width, ranges, n);
		column->data = to;
		to += gj_align(total * column->width);
		if (column->nulls)
		{
			npieces += add_pieces(pieces + npieces, to, column->nulls, 1, ranges, n);
			column->nulls = to;
		}
		to += gj_align(total);
	}
	status = work->ops->copy_many(work->queue, pieces, npieces);
	free(pieces);
	return status;
}

/*
 * Puts scattered rows together in a buffer, so that the steps see them at once, or few copies are made of them.
 * Where they do not fit `room` bytes well, or there is no memory for them, the ranges stay what they are.
 */
static GjStatus
compact(GjRun *run, GjBuffer *buffer, uint64_t room, GjColumn *columns, uint32_t ncolumns,
		GjRowRange *ranges, uint32_t *n)
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
	if (buffer->nbytes < nbytes && room < nbytes + nbytes / 4 + 2 * gj_run_least_space(run))
		return GJ_OK;
	status = gj_buffer_reserve(work, buffer, nbytes);
	if (status != GJ_OK)
		return status == GJ_OUT_OF_MEMORY ? GJ_OK : status;
	GJ_TRY(gather_ranges(work, columns, ncolumns, ranges, *n, total, buffer->memory));
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

/* Appends ranges of rows of a fragment to a relation, its references being behind those that are there. */
static GjStatus
append_ranges(GjRun *run, uint32_t source, const GjFragment *fragment, const GjColumn *start,
			  const GjRowRange *ranges, uint32_t n)
{
	GjRelation *relation = &run->relation[source];
	GjColumn	columns[GJ_MAX_COLUMNS];
	uint64_t	base;

	GJ_TRY(gj_relation_append_heap(&run->work, relation, fragment->heap.memory, fragment->heap_used, &base));
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	nrows = ranges[i].end - ranges[i].first;

		GJ_STOP_CHECK(run);
		run->stats.source[source].rows_in += nrows;
		skip_to(columns, run->sources[source].ncolumns, start, ranges[i].first);
		GJ_TRY(gj_relation_append_rows(&run->work, relation, columns, nrows, base, fragment->heap_used));
	}
	return GJ_OK;
}

/* The same of what may be many ranges. */
static GjStatus
append_fragment(GjRun *run, uint32_t source, const GjFragment *fragment, GjColumn *start, GjRowRange *ranges,
				uint32_t n)
{
	GjBuffer	together = {NULL, 0};
	GjStatus	status = GJ_OK;

	/* what is built wants most of the memory, and nothing resident is to go; another device's are copied as they are */
	if (!run->work.peer)
		status = compact(run, &together, gj_lease_free(run->work.lease) / 4, start, run->sources[source].ncolumns, ranges, &n);
	if (status == GJ_OK)
		status = append_ranges(run, source, fragment, start, ranges, n);
	gj_buffer_free(&run->work, &together);
	return status;
}

static GjStatus
use_rows(GjRun *run, uint32_t source, GjPinned used, GjRowRange *ranges, uint32_t n)
{
	uint32_t	first = run->sources[source].first_column;
	uint32_t	ncolumns = run->sources[source].ncolumns;
	GjColumn	start[GJ_MAX_COLUMNS];
	bool		exchanged = gj_run_exchanges(run, source);
	bool		is_join = run->sink->joins;
	bool		outer = is_join && source == 0 && !exchanged;

	describe(&run->resident[source].tables[used.table], used.fragment, 0, start);
	if (is_join && !outer && !exchanged)
		return append_fragment(run, source, used.fragment, start, ranges, n);
	if (outer && n > GJ_MAX_RANGES)
	{
		/* rows that wait may lie where these are put together */
		GJ_TRY(gj_fused_flush(run));
		GJ_TRY(compact(run, &run->compact, gj_lease_left(run->work.lease), start, ncolumns, ranges, &n));
	}
	/* rows that are sent from where they lie make a parcel a range */
	else if (exchanged && gj_run_sends_in_place(run, source))
		GJ_TRY(compact(run, &run->compact, gj_lease_left(run->work.lease), start, ncolumns, ranges, &n));
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

/* Remembers what a source is to be made of; the pins go with it. */
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

bool
gj_run_notes_uses(const GjRun *run, uint32_t source)
{
	/* outer rows may have been exchanged before: that is known when all have come, unless some are chunks' */
	return run->sink->joins &&
		(source > 0 || (gj_exchanged_by(run) && run->resident[source].nchunk_rows == 0));
}

GjStatus
gj_run_use(GjRun *run, uint32_t source, uint32_t n, const GjUse *uses)
{
	GJ_TRY(gj_run_may_load(run, source));
	GJ_STOP_CHECK(run);
	if (gj_run_notes_uses(run, source))
		return remember_uses(run, source, uses, n);
	if (source == 0)
		GJ_TRY(gj_run_fail_points(run));
	return use_fragments(run, source, uses, n);
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
