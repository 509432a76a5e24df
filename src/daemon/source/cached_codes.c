/*
 * cached_codes.c
 *	  Group codes: for each row of some fragments the number of its value among all different ones
 *	  of a column of texts, and these values.
 *
 * A fragment has codes of its own where a column has few values (store/pack.c).  Of many values, to
 * find the group of each row takes most of a query that groups by them.  So the second such query
 * numbers the groups of all rows, when its result is there, and keeps the numbers.  Later ones have
 * integers side by side for keys, and find groups by places (run/fused_places.c).
 *
 * Codes are kept as a build side is (cached.c), of all rows of exactly the fragments that the query
 * has used: whatever its filter, and whichever pages are valid.  The side has CODE_COLUMNS columns:
 * the codes, and the groups' null bits, hashes, values and ends in the heap.  nread: the rows;
 * nloaded: their codes, with gaps between fragments; nrows: the groups.
 */
#include "intake.h"

#include <stdlib.h>
#include <string.h>

/* Fewer rows are grouped as fast without. */
#define GJ_CODED_ROWS		(256u * 1024)
/* Rows of a group, at least, in the mean: else the values would take much more than the codes. */
#define GJ_ROWS_OF_CODE		4
/* Memory to make them in, times theirs. */
#define GJ_ROOM_TO_MAKE		4

enum
{
	CODE_OF_ROW,
	GROUP_NULL,
	GROUP_HASH,
	GROUP_VALUE,
	GROUP_HEAP_END,
	CODE_COLUMNS
};

static const uint32_t width_of[CODE_COLUMNS] = {4, 4, 8, 8, 8};

/* ---- what is asked for */

/* The key by which a run groups; NULL: it is no column of texts that can have codes. */
static const GjGroupKey *
coded_key(const GjRun *run)
{
	const GjGroupKey *key = gj_program_array(run->program, GjGroupKey, group_keys);

	/* where texts are equal but not the same, a filter decides which one a query returns */
	if (!run->sink->has_groups || !run->sink->fusible || run->nsteps > 0 || run->intake->exchange ||
		run->program->ngroup_keys != 1 || key->how != GJ_GROUP_TEXT ||
		run->types[key->index].source != 0)
		return NULL;
	return key;
}

/* The number of the column in the probe source. */
static uint32_t
column_of(const GjRun *run, const GjGroupKey *key)
{
	return key->index - run->sources[0].first_column;
}

/*
 * Rows of the n fragments that are held, and of those without a dictionary of column c, and codes of
 * all.  False: one has texts that are compressed or out of line.
 */
static bool
count_rows(const GjRun *run, uint32_t c, uint32_t n, uint64_t *nrows, uint64_t *many,
		   uint64_t *ncodes)
{
	const GjRunResident *resident = &run->intake->resident[0];
	uint16_t	place = 0;

	*nrows = *many = *ncodes = 0;
	for (uint32_t i = 0; i < n; i++)
	{
		const GjFragment *fragment = resident->held[i].fragment;
		const GjWanted *wanted = &resident->tables[resident->held[i].table];
		int			at = gj_fragment_find(fragment, &wanted->keys[c], &wanted->types[c],
										  &place);

		/* those that are packed are not */
		if (at < 0 || !fragment->columns[at].packed)
			return false;
		*nrows += fragment->nrows;
		*many += fragment->columns[at].nvalues == 0 ? fragment->nrows : 0;
		*ncodes += gj_codes_of(fragment);
	}
	return true;
}

/* What a side of codes is known by: the column of each table. */
static bool
write_key(const GjRun *run, uint32_t c, GjSide *side)
{
	static const char kind[] = "group codes";
	const GjRunResident *resident = &run->intake->resident[0];
	size_t		one = sizeof(GjRelationKey) + sizeof(GjColumnKey);
	uint8_t    *at = calloc(1, sizeof(kind) + resident->ntables * one);

	side->key = at;
	if (!at)
		return false;
	side->nkey = (uint32_t) (sizeof(kind) + resident->ntables * one);
	memcpy(at, kind, sizeof(kind));
	at += sizeof(kind);
	for (uint32_t t = 0; t < resident->ntables; t++, at += one)
	{
		memcpy(at, &resident->tables[t].relation, sizeof(GjRelationKey));
		memcpy(at + sizeof(GjRelationKey), &resident->tables[t].keys[c], sizeof(GjColumnKey));
	}
	return true;
}

/* A side that says what it is to be made of, and nothing else; NULL: out of memory. */
static GjSide *
describe(const GjRun *run, uint32_t c, uint32_t n, uint64_t nrows, uint64_t ncodes)
{
	const GjRunResident *resident = &run->intake->resident[0];
	GjSide	   *side = calloc(1, sizeof(GjSide));
	uint64_t   *pages = NULL;

	if (!side)
		return NULL;
	side->fragments = calloc(n, sizeof(GjSideFragment));
	side->nfragments = n;
	side->nread = nrows;
	side->nloaded = ncodes;
	side->program = gj_run_identity(run);
	if (!side->fragments || !write_key(run, c, side))
	{
		gj_side_discard(side);
		return NULL;
	}
	/* those that are held name no pages: codes are of all */
	(void) gj_side_list_uses(resident->held, n, side->fragments, &pages);
	return side;
}

/* ---- finding */

static void
use(GjRun *run, const GjSide *side)
{
	GjGroups   *groups = &run->intake->codes.groups;

	*groups = (GjGroups) {
		.rows = {
			.nkeys = 1,.nrows = side->nrows,.null = side->columns[GROUP_NULL].data.memory,
			.hash = side->columns[GROUP_HASH].data.memory,
			.value = {side->columns[GROUP_VALUE].data.memory},
			.heap = {side->heap.memory},.how = {GJ_GROUP_TEXT}
		},
		.heap = side->heap.memory,.heap_end = side->columns[GROUP_HEAP_END].data.memory
	};
	run->arrival.coded = groups;
}

const uint32_t *
gj_codes_find(GjRun *run, uint32_t n)
{
	const GjGroupKey *key = coded_key(run);
	GjRunCodes *codes = &run->intake->codes;
	GjRunSide  *side = &codes->side;
	uint64_t	nrows;
	uint64_t	many;
	uint64_t	ncodes;

	if (!key || n == 0 || side->store ||
		!count_rows(run, column_of(run, key), n, &nrows, &many, &ncodes) ||
		nrows < GJ_CODED_ROWS || ncodes > GJ_MAX_ROWS || many < nrows / 2)
		return NULL;
	side->made = describe(run, column_of(run, key), n, nrows, ncodes);
	if (!side->made)
		return NULL;
	side->store = run->intake->resident[0].store;
	side->kept = gj_side_find(side->store, side->made);
	if (!side->kept)
	{
		codes->make = gj_side_again(side->store, side->made);
		return NULL;
	}
	gj_side_use(side->store, side->kept, side->made);
	use(run, side->kept);
	return side->kept->columns[CODE_OF_ROW].data.memory;
}

/* ---- making */

/* Notes the groups of all rows of the i'th fragment that is held, and makes those that are new. */
static GjStatus
number_fragment(GjRun *run, uint32_t i, uint32_t *group_of)
{
	const GjRunResident *resident = &run->intake->resident[0];
	const GjFragment *fragment = resident->held[i].fragment;
	const GjWanted *wanted = &resident->tables[resident->held[i].table];
	GjColumn   *columns = run->columns + run->sources[0].first_column;
	uint16_t	places[GJ_MAX_COLUMNS] = {0};

	for (uint64_t first = 0, n; first < fragment->nrows; first += n)
	{
		GjView		view = {.nrows = 0};

		GJ_STOP_CHECK(run);
		n = fragment->nrows - first;
		if (n > run->tuples.most)
			n = run->tuples.most;
		gj_run_describe_columns(wanted, fragment, places, first, columns);
		GJ_TRY(gj_run_set_columns(run, &view.columns));
		view.nrows = (uint32_t) n;
		GJ_TRY(run->sink->make_groups(run, &view, group_of + first));
	}
	return GJ_OK;
}

/* Numbers the groups of all rows, which are too many if they are most rows. */
static GjStatus
number_rows(GjRun *run, GjSide *side)
{
	uint32_t   *at = side->columns[CODE_OF_ROW].data.memory;

	for (uint32_t i = 0; i < side->nfragments; i++)
	{
		GJ_TRY(number_fragment(run, i, at));
		at += gj_codes_of(run->intake->resident[0].held[i].fragment);
		if (run->sink->groups(run)->rows.nrows > side->nread / GJ_ROWS_OF_CODE)
			return GJ_TOO_LARGE;
	}
	return run->work.ops->queues->sync(run->work.queue);
}

/* Copies the groups to the side's columns. */
static GjStatus
copy_groups(GjRun *run, GjSide *side)
{
	GjWork	   *work = &run->work;
	const GjGroups *groups = run->sink->groups(run);
	const void *const from[CODE_COLUMNS] = {NULL, groups->rows.null, groups->rows.hash,
	groups->rows.value[0], groups->heap_end};
	uint32_t	n = groups->rows.nrows;
	GjPiece		pieces[CODE_COLUMNS];

	GJ_TRY(work->ops->memory->copy_out(work->queue, &side->heap_used, groups->heap_end + n - 1,
									   sizeof(uint64_t)));
	GJ_TRY(work->ops->queues->sync(work->queue));
	for (uint32_t c = GROUP_NULL; c < CODE_COLUMNS; c++)
	{
		GjBuffer   *to = &side->columns[c].data;

		GJ_TRY(gj_buffer_grow(work, to, 0, (uint64_t) n * width_of[c], 0));
		pieces[c] = (GjPiece) {to->memory, from[c], (size_t) n * width_of[c]};
	}
	/* all values may be NULL, or empty */
	GJ_TRY(gj_buffer_grow(work, &side->heap, 0, side->heap_used + 1, 0));
	pieces[CODE_OF_ROW] = (GjPiece) {side->heap.memory, groups->heap, side->heap_used};
	GJ_TRY(work->ops->memory->copy_many(work->queue, pieces, CODE_COLUMNS));
	side->nrows = n;
	return work->ops->queues->sync(work->queue);
}

/* Makes all that a side has.  What there is of it stays there, also after an error. */
static GjStatus
make(GjRun *run, GjSide *side)
{
	side->columns = calloc(CODE_COLUMNS, sizeof(GjRelationColumn));
	if (!side->columns)
		return GJ_OUT_OF_HOST_MEMORY;
	side->ncolumns = CODE_COLUMNS;
	/* the groups of the result are not needed any more, nor what was to come back */
	run->sink->free(run);
	gj_fused_give_room(run);
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_BUILD);
	GJ_TRY(gj_buffer_grow(&run->work, &side->columns[CODE_OF_ROW].data, 0,
						  side->nloaded * width_of[CODE_OF_ROW], 0));
	GJ_TRY(number_rows(run, side));
	return copy_groups(run, side);
}

/* Frees what was made of a side. */
static void
drop(GjRun *run, GjSide *side)
{
	GjRelation	made = {.ncolumns = side->ncolumns,.columns = side->columns,.heap = side->heap};

	gj_relation_free(&run->work, &made);
	side->columns = NULL;
}

/* Device memory that a side may take. */
static uint64_t
bytes_of(const GjSide *side)
{
	uint64_t	a_group = 0;

	for (uint32_t c = GROUP_NULL; c < CODE_COLUMNS; c++)
		a_group += width_of[c];
	return side->nloaded * width_of[CODE_OF_ROW] + side->nread / GJ_ROWS_OF_CODE * a_group;
}

GjStatus
gj_codes_keep(GjRun *run)
{
	const GjRunResident *resident = &run->intake->resident[0];
	GjRunCodes *codes = &run->intake->codes;
	GjRunSide  *side = &codes->side;
	GjStatus	status;

	/*
	 * The result is of all that the fragments and nothing else had, they are still there, and groups
	 * that have no room are not handed over.  What is resident is not to go for what is made.
	 */
	if (!codes->make || gj_run_form(run) == GJ_FORM_PARTIAL || !gj_fused_wants_codes(run) ||
		resident->nheld != side->made->nfragments || resident->nchunk_rows > 0 ||
		gj_lease_free(run->work.lease) / GJ_ROOM_TO_MAKE < bytes_of(side->made) ||
		!gj_side_has_room(side->store, side->made, bytes_of(side->made)))
		return GJ_OK;
	status = make(run, side->made);
	run->sink->free(run);
	if (status == GJ_OK && gj_side_publish(side->store, &run->work, run->intake->clock, side->made))
	{
		side->kept = side->made;
		side->made = NULL;
		return GJ_OK;
	}
	drop(run, side->made);
	gj_side_refuse(side->store, side->made);
	/* the result is complete without them */
	return status == GJ_DEVICE_ERROR || status == GJ_DEVICE_LOST ? status : GJ_OK;
}
