/*
 * fragment.c
 *	  How a run uses the resident data of its device.  What backends ask about it is in
 *	  source/ask.c.
 *
 * USE names the pages that the backend has found unchanged.  Of a probe side their columns are
 * read in place.  Of a build side the use is only noted.  When the source ends, a cached side of
 * exactly these pages is used (source/cached.c), or the rows are appended to the relation, or
 * sent to other devices (source/split.c).  source/keep.c makes fragments of chunks.
 *
 * A fragment knows the bounds of its columns.  One of which no row can pass the filter of the source
 * is not read, and is else a fragment like others.
 */
#include "intake.h"

#include <stdlib.h>
#include <string.h>

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

/* The number of the column of a fragment that serves for column c of a source; there is one. */
static uint32_t
find_column(const GjWanted *wanted, const GjFragment *fragment, uint32_t c, uint16_t *places)
{
	return (uint32_t) gj_fragment_find(fragment, &wanted->keys[c], &wanted->types[c], &places[c]);
}

void
gj_run_describe_columns(const GjWanted *wanted, const GjFragment *fragment, uint16_t *places,
						uint64_t first, GjColumn *columns)
{
	for (uint32_t c = 0; c < wanted->ncolumns; c++)
		columns[c] = gj_fragment_column(fragment, find_column(wanted, fragment, c, places), first);
}

bool
gj_run_excludes(const GjRun *run, uint32_t source, const GjWanted *wanted,
				const GjFragment *fragment, uint16_t *places)
{
	int32_t		filter = gj_run_source_filter(run, source);
	GjBounds	bounds[GJ_MAX_COLUMNS];

	if (filter < 0)
		return false;
	for (uint32_t c = 0; c < wanted->ncolumns; c++)
	{
		const GjFragmentColumn *column =
			&fragment->columns[find_column(wanted, fragment, c, places)];

		bounds[c] = (GjBounds) {column->low, column->high, column->nulls.memory != NULL};
	}
	return !gj_program_can_be_true(run->program, (uint32_t) filter, bounds,
								   run->sources[source].first_column);
}

/* Counts fragments that are used, and those of them that are excluded. */
static void
count_fragments(GjRun *run, uint32_t source, const GjPinned *used, uint32_t n)
{
	GjSourceStats *stats = &run->stats.source[source];

	stats->nfragments += n;
	for (uint32_t i = 0; i < n; i++)
		if (used[i].excluded)
		{
			stats->nexcluded++;
			stats->rows_excluded += used[i].fragment->nrows;
		}
}

/*
 * Describes the rows of pages (NULL: all) of a fragment, and the columns of its source, in the order
 * of the program.  rows->ranges: room for them.  places: as for gj_fragment_find.
 */
static void
describe_rows(GjRun *run, const GjPinned *used, const uint64_t *pages, uint16_t *places,
			  GjRows *rows, GjColumn *columns)
{
	const GjFragment *fragment = used->fragment;
	const GjWanted *wanted = &run->intake->resident[rows->source].tables[used->table];

	rows->columns = columns;
	rows->nranges = find_ranges(fragment, pages, rows->ranges);
	rows->heap = fragment->heap.memory;
	rows->heap_used = fragment->heap_used;
	rows->stay = true;
	gj_run_describe_columns(wanted, fragment, places, 0, columns);
	run->stats.source[rows->source].rows_in += gj_count_ranges(rows->ranges, rows->nranges);
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
	GjRows		rows = {.source = source};
	GjColumn	columns[GJ_MAX_COLUMNS];
	uint16_t	places[GJ_MAX_COLUMNS] = {0};
	GjRowRange *ranges;
	GjStatus	status;

	if (use->excluded)
		return GJ_OK;
	ranges = rows.ranges = malloc(GJ_FRAGMENT_BLOCKS * sizeof(GjRowRange));
	if (!ranges)
		return GJ_OUT_OF_HOST_MEMORY;
	describe_rows(run, use, use->pages, places, &rows, columns);
	status = gj_source_rows(run, &rows);
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
	GjRunResident *resident = &run->intake->resident[source];
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
	count_fragments(run, source, grown, n);
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
	GjRunResident *resident = &run->intake->resident[source];
	GjPinned   *grown = realloc(resident->held, (resident->nheld + n + 1) * sizeof(GjPinned));

	if (!grown)
		return GJ_OUT_OF_HOST_MEMORY;
	resident->held = grown;
	for (uint32_t i = 0; i < n; i++)
	{
		const GjPinned *used = &grown[resident->nheld];

		GJ_TRY(take_pinned(run, source, uses[i].id, &grown[resident->nheld]));
		resident->nheld++;
		run->arrival.rows_ahead += used->excluded ? 0 : used->fragment->nrows;
	}
	count_fragments(run, source, grown + resident->nheld - n, n);
	return GJ_OK;
}

/* Takes the rows of fragments where they lie. */
static GjStatus
use_fragments(GjRun *run, uint32_t source, const GjUse *uses, uint32_t n)
{
	GjRunResident *resident = &run->intake->resident[source];
	uint32_t	first = resident->nheld;
	uint16_t	places[GJ_MAX_COLUMNS] = {0};
	GjTogether *together;
	const uint32_t *codes = NULL;
	GjStatus	status = GJ_OK;

	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_TRANSFER);
	GJ_TRY(hold_fragments(run, source, uses, n));
	if (source == 0 && first == 0)
		codes = gj_codes_find(run, n);
	together = gj_together_open(run, source);
	if (!together)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < n && status == GJ_OK; i++)
	{
		const GjPinned *used = &resident->held[first + i];
		const uint32_t *own_codes = codes;
		GjColumn   *columns;
		GjRows	   *rows;

		if (codes)
			codes += gj_codes_of(used->fragment);
		if (used->excluded)
			continue;
		rows = gj_together_next(together, &columns);
		describe_rows(run, used, uses[i].pages, places, rows, columns);
		rows->codes = own_codes;
		status = gj_together_add(together);
		run->arrival.rows_ahead -= used->fragment->nrows;
	}
	if (status == GJ_OK)
		status = gj_together_flush(together);
	gj_together_close(together);
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
	/* whether probe rows were exchanged before is known when all have come; chunks were not */
	return run->sink->joins &&
		(source > 0 || (gj_exchanged_by(run) && run->intake->resident[source].nchunk_rows == 0));
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

/* What was told of by that id; its fragment is NULL once it is taken. */
static GjPinned *
find_pinned(const GjRun *run, uint32_t source, uint64_t id)
{
	const GjRunResident *resident = &run->intake->resident[source];
	uint64_t	at = id & ((UINT64_C(1) << GJ_FRAGMENT_DEVICE_SHIFT) - 1);

	return at < resident->npinned ? &resident->pinned[at] : NULL;
}

bool
gj_run_take_fragment(GjRun *run, uint32_t source, uint64_t id, GjPinned *pinned)
{
	GjPinned   *found = find_pinned(run, source, id);
	/* the session's thread takes some, and a client may name one twice */
	GjFragment *fragment = found ? __atomic_exchange_n(&found->fragment, NULL, __ATOMIC_ACQ_REL) :
		NULL;

	if (!fragment)
		return false;
	*pinned = *found;
	pinned->fragment = fragment;
	return true;
}

uint64_t
gj_run_fragment_rows(const GjRun *run, uint32_t source, uint64_t id)
{
	const GjPinned *found = find_pinned(run, source, id);
	const GjFragment *fragment = found ? __atomic_load_n(&found->fragment, __ATOMIC_ACQUIRE) : NULL;

	return fragment && !found->excluded ? fragment->nrows : 0;
}

GjStatus
gj_run_use_shared(GjRun *run, uint32_t source, uint32_t n, const GjPinned *used)
{
	GjRunResident *resident = &run->intake->resident[source];
	GjPinned   *grown;

	GJ_TRY(gj_run_may_load(run, source));
	grown = realloc(resident->shared, (resident->nshared + n + 1) * sizeof(GjPinned));
	if (!grown)
		return GJ_OUT_OF_HOST_MEMORY;
	resident->shared = grown;
	memcpy(grown + resident->nshared, used, n * sizeof(GjPinned));
	resident->nshared += n;
	count_fragments(run, source, used, n);
	return GJ_OK;
}

/* Copies rows of a fragment from the device where it lies, and takes them.  Waits. */
static GjStatus
bring_part(GjRun *run, uint32_t source, const GjPinned *used, GjRowRange *ranges)
{
	GjRows		rows = {.source = source,.ranges = ranges};
	GjColumn	columns[GJ_MAX_COLUMNS];
	uint16_t	places[GJ_MAX_COLUMNS] = {0};
	GjRelation	brought;
	GjStatus	status;

	if (!gj_relation_init(&brought, run->types + run->sources[source].first_column,
						  run->sources[source].ncolumns, 0))
		return GJ_OUT_OF_HOST_MEMORY;
	describe_rows(run, used, used->pages, places, &rows, columns);
	run->work.peer = used->fragment->entry->device;
	status = gj_append_rows(run, &brought, &rows);
	run->work.peer = NULL;
	if (status == GJ_OK)
	{
		gj_relation_columns(&brought, 0, columns);
		status = gj_source_rows(run, &GJ_ALL_ROWS(source, columns, brought.nrows, false));
	}
	status = gj_run_wait_after(run, status);
	gj_relation_free(&run->work, &brought);
	return status;
}

/* Takes rows of a fragment of the run's own device.  Waits. */
static GjStatus
use_own_part(GjRun *run, uint32_t source, const GjPinned *used)
{
	GjStatus	status = gj_run_append_use(run, source, used);

	if (status == GJ_OK)
		status = gj_fused_flush(run);
	return gj_run_wait_after(run, status);
}

GjStatus
gj_run_use_part(GjRun *run, uint32_t source, const GjPinned *used, bool first)
{
	GjRowRange *ranges;
	GjStatus	status;

	GJ_TRY(gj_run_may_load(run, source));
	GJ_STOP_CHECK(run);
	GJ_TRY(gj_run_fail_points(run));
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_TRANSFER);
	if (first)
		count_fragments(run, source, used, 1);
	if (used->fragment->entry == run->entry)
		return use_own_part(run, source, used);
	ranges = malloc(GJ_FRAGMENT_BLOCKS * sizeof(GjRowRange));
	if (!ranges)
		return GJ_OUT_OF_HOST_MEMORY;
	status = bring_part(run, source, used, ranges);
	free(ranges);
	return status;
}

GjStatus
gj_run_append_shared(GjRun *run, uint32_t source)
{
	const GjRunResident *resident = &run->intake->resident[source];
	GjStatus	status = GJ_OK;

	for (uint32_t i = 0; i < resident->nshared && status == GJ_OK; i++)
	{
		const GjPinned *use = &resident->shared[i];
		GjDeviceEntry *entry = use->fragment->entry;

		GJ_STOP_CHECK(run);
		run->work.peer = entry == run->entry ? NULL : entry->device;
		status = gj_run_append_use(run, source, use);
		run->work.peer = NULL;
	}
	return gj_run_wait_after(run, status);
}

void
gj_run_release(GjRun *run, uint32_t source)
{
	GjRunResident *resident = &run->intake->resident[source];

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
