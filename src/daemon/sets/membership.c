/*
 * membership.c
 *	  A join of GJ_JOIN_SET with `membership`.  A row (set, element) says that the element is in
 *	  the set.  The query asks, for each pair of sets, how many pairs of rows have equal elements.
 *
 * Of the rows of both sides only the keys are kept: the set (a flag for NULL, and the value) and
 * the element.  When all rows have come they are sorted, and each set is then a range of them.
 * Both sides together are a family (device/sets.h).  Its pairs come tile by tile, each with its
 * count: the rows that a join would make never exist.  The pairs go on as tuples whose row ids
 * are places in the sorted rows; the two columns are described by these for later steps.
 *
 * If the two sides are the same rows, the build side alone is a family with itself.  If memory is
 * short, or another run has other probe rows, a run sees only parts of the sides.  Then it leaves
 * no pair out, and the groups add the counts up.
 */
#include "internal.h"

#include <string.h>

#include "device/set_plan.h"

/* Bytes a row that sorting takes beside the keys. */
#define GJ_MEMBER_SORT_SPACE		64
/* Probe rows for which there is room, or the build sides are too many. */
#define GJ_LEAST_ROWS		GJ_MIN_TUPLES

/* True if the rows that the run sees are not all that there are. */
static bool
sees_parts(const GjRun *run, const GjRunStep *rs)
{
	return gj_run_form(run) == GJ_FORM_PARTIAL || gj_set(rs)->flushed;
}

/* True if the build rows are all that is needed. */
static bool
build_is_enough(const GjRun *run, const GjRunStep *rs)
{
	return gj_set(rs)->step->same != 0 && gj_run_form(run) != GJ_FORM_PARTIAL;
}

/*
 * What joining takes beside the build side, with probe rows that are still to be sorted; a part of
 * it is the memory of pairs, of which there can be few at a time.
 */
static uint64_t
joining_space(const GjRun *run, const GjRunStep *rs, uint64_t probe_rows)
{
	const GjMembershipSide *build_side = &gj_set(rs)->side[1];
	uint64_t	nrows = build_side->table.nrows + probe_rows;

	return nrows * (GJ_ELEMENT_SPACE + sizeof(int64_t)) + probe_rows * GJ_MEMBER_SORT_SPACE +
		(build_side->nsets + probe_rows) * (GJ_SET_SPACE + sizeof(int32_t)) +
		gj_run_tile_space(run) + 3 * GJ_MAX_TUPLES * sizeof(uint32_t) +
		GJ_MIN_TUPLES * UINT64_C(256);
}

/* ---- rows come in */

static void
start_side(const GjRunStep *rs, bool build_side, GjMembershipSide *side)
{
	const GjSetStep *set = gj_set(rs)->step;
	int32_t		is_null = build_side ? set->build_is_null : set->probe_is_null;

	side->nkeys = 0;
	/* no pair of a NULL and anything else is less, or greater */
	if (is_null >= 0 && !set->same)
		side->operand[side->nkeys++] = is_null;
	side->operand[side->nkeys++] =
		-1 - (int32_t) (build_side ? set->build_column : set->probe_column);
	side->operand[side->nkeys++] =
		(int32_t) (build_side ? rs->step->build_keys : rs->step->probe_keys);
}

static void
planned(GjRun *run, GjRunStep *rs)
{
	const GjSource *build_side = &run->sources[rs->step->source];

	start_side(rs, false, &gj_set(rs)->side[0]);
	start_side(rs, true, &gj_set(rs)->side[1]);
	/* the keys are all that is kept of them */
	memset(run->late + build_side->first_column, 0, build_side->ncolumns);
}

static void
free_side(GjWork *work, GjMembershipSide *side)
{
	for (uint32_t k = 0; k < GJ_MEMBER_KEYS; k++)
		gj_buffer_free(work, &side->value[k]);
	gj_buffer_free(work, &side->null);
	if (side->sorted)
		work->ops->tables->hash_free(work->queue, &side->table);
	side->sorted = false;
	gj_lease_give(work->lease, side->table_bytes);
	side->table_bytes = 0;
	gj_buffer_free(work, &side->start);
	gj_buffer_free(work, &side->size);
	gj_buffer_free(work, &side->set_null);
	side->nrows = side->nsets = 0;
}

/* The values of n tuples of the view, from `first` on, for keys k .. k+nkeys-1 of rows added. */
static GjStatus
compute_values(GjWork *work, const GjMembershipSide *side, const GjView *view, uint32_t first,
			   uint32_t n, uint32_t k, uint32_t nkeys)
{
	/* row `first` of these keys is the next one of the side: it has as many, or more */
	uint64_t	offset = side->nrows - first;
	GjKeys		keys = {.nkeys = nkeys,.nrows = view->nrows};

	for (uint32_t j = 0; j < nkeys; j++)
		keys.value[j] = (int64_t *) side->value[k + j].memory + offset;
	keys.null = (uint8_t *) side->null.memory + offset;
	return work->ops->columns->ordered_keys(work->queue, view, first, n, side->operand + k, &keys);
}

/* Adds tuples first .. first+n-1 of the view, where side->nrows >= first. */
static GjStatus
add_rows(GjRun *run, GjMembershipSide *side, const GjView *view, uint32_t first, uint32_t n)
{
	GjWork	   *work = &run->work;
	uint64_t	used = side->nrows;

	if (used + n > GJ_MAX_ROWS)
		return GJ_OUT_OF_MEMORY;
	for (uint32_t k = 0; k < side->nkeys; k++)
		GJ_TRY(gj_buffer_grow(work, &side->value[k], used * sizeof(int64_t),
							  (used + n) * sizeof(int64_t), 0));
	GJ_TRY(gj_buffer_grow(work, &side->null, used, used + n, 0));
	/* rows without an element are in no set; those of the set NULL are, so their flags go */
	if (side->nkeys < GJ_MEMBER_KEYS)
		GJ_TRY(compute_values(work, side, view, first, n, 0, side->nkeys));
	else
	{
		GJ_TRY(compute_values(work, side, view, first, n, 0, 2));
		GJ_TRY(compute_values(work, side, view, first, n, 2, 1));
	}
	side->nrows += n;
	return GJ_OK;
}

/* ---- rows become sets */

/* The sorted keys; their arrays are counted with the table from now on. */
static GjStatus
sort_side(GjRun *run, GjMembershipSide *side)
{
	GjWork	   *work = &run->work;
	uint64_t	space = side->nrows * GJ_MEMBER_SORT_SPACE + 4096;
	GjKeys		keys = {.nkeys = side->nkeys,.nrows = (uint32_t) side->nrows};
	GjStatus	status;

	for (uint32_t k = 0; k < side->nkeys; k++)
		keys.value[k] = side->value[k].memory;
	keys.null = side->null.memory;
	if (!gj_lease_take(work->lease, space))
		return GJ_OUT_OF_MEMORY;
	status = work->ops->tables->sort_build(work->queue, &keys, NULL, run->host->stop,
										   run->host->arg, &side->table);
	gj_lease_give(work->lease, space);
	if (status != GJ_OK)
		return status;
	side->sorted = true;
	for (uint32_t k = 0; k < side->nkeys; k++)
	{
		side->table_bytes += side->value[k].nbytes;
		side->value[k] = (GjBuffer) {NULL, 0};
	}
	gj_lease_give(work->lease, side->null.nbytes);
	side->null = (GjBuffer) {NULL, 0};
	/* the rows' numbers, and where to look for them */
	space = (side->nrows + (side->table.bucket ? side->table.nslots + 1 : 0)) * sizeof(uint32_t);
	if (!gj_lease_take(work->lease, space))
		return GJ_OUT_OF_MEMORY;
	side->table_bytes += space;
	return GJ_OK;
}

/* Not less than how often any element is in one set. */
static GjStatus
find_multiplicity(GjRun *run, GjMembershipSide *side, const GjKeys *keys, uint8_t *flags)
{
	GjWork	   *work = &run->work;
	uint32_t	nequal;

	for (uint64_t distance = 1;; distance *= 2)
	{
		side->multiplicity = distance;
		if (distance >= keys->nrows)
			return GJ_OK;
		GJ_STOP_CHECK(run);
		GJ_TRY(work->ops->sets->flag_changes(work->queue, keys, keys->nkeys, (uint32_t) distance,
											 flags));
		GJ_TRY(work->ops->columns->select_flags(work->queue, flags, keys->nrows, 0,
												side->table.rows, &nequal));
		if (nequal == 0)
			return GJ_OK;
	}
}

/* The set NULL, if there is one, is the last: for its rows the flags are set. */
static GjStatus
flag_null_set(GjRun *run, GjMembershipSide *side, uint32_t nrows)
{
	GjWork	   *work = &run->work;
	int64_t		is_null;
	uint32_t	start;

	GJ_TRY(work->ops->memory->copy_out(work->queue, &is_null, side->table.keys.value[0] + nrows - 1,
							   sizeof(is_null)));
	GJ_TRY(work->ops->memory->copy_out(work->queue, &start,
							   (uint32_t *) side->start.memory + side->nsets - 1, sizeof(start)));
	GJ_TRY(work->ops->queues->sync(work->queue));
	if (!is_null || start >= nrows)
		return GJ_OK;
	GJ_TRY(gj_buffer_reserve(work, &side->set_null, nrows));
	GJ_TRY(work->ops->memory->fill(work->queue, side->set_null.memory, 0, start));
	return work->ops->memory->fill(work->queue, (uint8_t *) side->set_null.memory + start, 1,
						   nrows - start);
}

static GjStatus
find_sets(GjRun *run, GjMembershipSide *side, GjBuffer *flags)
{
	GjWork	   *work = &run->work;
	GjKeys		keys = side->table.keys;

	keys.nrows = side->table.nrows;
	GJ_TRY(gj_buffer_reserve(work, flags, keys.nrows));
	GJ_TRY(work->ops->sets->flag_changes(work->queue, &keys, keys.nkeys - 1, 1, flags->memory));
	/* which row was where before is not asked: its memory is free to use */
	GJ_TRY(work->ops->columns->select_flags(work->queue, flags->memory, keys.nrows, 1,
											side->table.rows, &side->nsets));
	GJ_TRY(gj_buffer_reserve(work, &side->start, (uint64_t) side->nsets * sizeof(uint32_t)));
	GJ_TRY(gj_buffer_reserve(work, &side->size, (uint64_t) side->nsets * sizeof(int32_t)));
	GJ_TRY(work->ops->memory->copy(work->queue, side->start.memory, side->table.rows,
						   (uint64_t) side->nsets * sizeof(uint32_t)));
	GJ_TRY(work->ops->sets->run_sizes(work->queue, side->start.memory, side->nsets, keys.nrows,
								side->size.memory));
	if (side->nkeys == GJ_MEMBER_KEYS)
		GJ_TRY(flag_null_set(run, side, keys.nrows));
	return find_multiplicity(run, side, &keys, flags->memory);
}

/* All rows of a side are there. */
static GjStatus
make_sets(GjRun *run, GjMembershipSide *side)
{
	GjBuffer	flags = {NULL, 0};
	GjStatus	status;

	side->nsets = 0;
	if (side->nrows == 0)
		return GJ_OK;
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_BUILD);
	GJ_TRY(sort_side(run, side));
	if (side->table.nrows == 0)
		return GJ_OK;
	status = find_sets(run, side, &flags);
	gj_buffer_free(&run->work, &flags);
	return status;
}

static GjStatus
build(GjRun *run, GjSideBuild *build, GjRunStep *rs)
{
	GjMembershipSide *side = &gj_set(rs)->side[1];
	GjView		view;

	GJ_TRY(gj_build_view(run, build, &view));
	for (uint32_t first = 0, n; first < view.nrows; first += n)
	{
		n = view.nrows - first < GJ_MAX_TUPLES ? view.nrows - first : GJ_MAX_TUPLES;
		GJ_STOP_CHECK(run);
		GJ_TRY(add_rows(run, side, &view, first, n));
	}
	GJ_TRY(make_sets(run, side));
	rs->nmatchable = side->nsets;
	return gj_lease_left(run->work.lease) <
		joining_space(run, rs, build_is_enough(run, rs) ? 0 : GJ_LEAST_ROWS) ?
		GJ_OUT_OF_MEMORY : GJ_OK;
}

/* ---- pairs */

/* The elements of a side's sets to the end of those of the family. */
static GjStatus
copy_sets(GjWork *work, const GjMembershipSide *side, GjRunSets *sets)
{
	uint64_t	nrows = side->table.nrows;

	GJ_TRY(work->ops->memory->copy(work->queue, (int32_t *) sets->size.memory + sets->n,
						   side->size.memory, side->nsets * sizeof(int32_t)));
	GJ_TRY(work->ops->memory->copy(work->queue, (int64_t *) sets->values.memory + sets->nvalues,
						   side->table.keys.value[side->nkeys - 1], nrows * sizeof(int64_t)));
	sets->n += side->nsets;
	sets->nvalues += nrows;
	return GJ_OK;
}

/* A family of the sets of both sides; probe_side = NULL: of the build sides with themselves. */
static GjStatus
make_family(GjRun *run, GjRunStep *rs, const GjMembershipSide *probe_side, GjSetSpec *spec,
			GjSetFamily *family, uint64_t *space)
{
	GjWork	   *work = &run->work;
	const GjMembershipSide *build_side = &gj_set(rs)->side[1];
	GjRunSets  *sets = &gj_set(rs)->probe_side;
	uint64_t	nsets = build_side->nsets + (probe_side ? (uint64_t) probe_side->nsets : 0);
	uint64_t	nvalues = build_side->table.nrows +
		(probe_side ? (uint64_t) probe_side->table.nrows : 0);
	uint64_t	multiplicity = probe_side && probe_side->multiplicity < build_side->multiplicity ?
		probe_side->multiplicity : build_side->multiplicity;
	GjSetInput	input = {.nsets = (uint32_t) nsets,.nvalues = nvalues,.width = sizeof(int64_t)};

	input.multiple = build_side->multiplicity > 1 || (probe_side && probe_side->multiplicity > 1);
	if (nsets > GJ_MAX_ROWS || nvalues > (input.multiple ? INT32_MAX : UINT32_MAX - 1))
		return GJ_OUT_OF_MEMORY;
	sets->n = sets->nvalues = 0;
	GJ_TRY(gj_buffer_reserve(work, &sets->size, nsets * sizeof(int32_t)));
	GJ_TRY(gj_buffer_reserve(work, &sets->values, nvalues * sizeof(int64_t) + 8));
	if (probe_side)
		GJ_TRY(copy_sets(work, probe_side, sets));
	GJ_TRY(copy_sets(work, build_side, sets));
	input.size = sets->size.memory;
	input.values = sets->values.memory;
	spec->self = probe_side == NULL;
	spec->nleft = probe_side ? probe_side->nsets : build_side->nsets;
	spec->nright = probe_side ? build_side->nsets : 0;
	GJ_TRY(gj_set_join_build(run, rs, &input, spec, family, space));
	/* a count, of 32 bits, is at most the size of a set times how often an element is in one */
	if (family->max_size * multiplicity >= UINT32_MAX)
		return gj_run_fail(run, GJ_TOO_LARGE, "elements are too often in sets");
	return GJ_OK;
}

/* Describes the column of sets: by the places of the sorted rows. */
static void
describe_sets(GjRun *run, const GjMembershipSide *side, uint32_t column)
{
	run->columns[column] = (GjColumn) {
		.data = side->table.keys.value[side->nkeys - 2],.nulls = side->set_null.memory,
		.kind = GJ_INT8,.width = sizeof(int64_t)
	};
}

/* Looks the places of n sets up, from their numbers, if the column of sets is read later. */
static GjStatus
pick_places(GjRun *run, GjRunStep *rs, uint32_t source, const GjMembershipSide *side,
			const uint32_t *sets, uint32_t n, GjView *pairs)
{
	if (!(rs->expand >> source & 1))
		return GJ_OK;
	pairs->rowid[source] = rs->pairs.rowid[source].memory;
	return run->work.ops->columns->pick(run->work.queue, rs->pairs.rowid[source].memory,
										side->start.memory, 0, sets, n);
}

/* Pairs first .. first+n-1 of those that a tile has left, as a view. */
static GjStatus
write_pairs(GjRun *run, GjRunStep *rs, const GjColumn *columns, const GjMembershipSide *probe_side,
			uint32_t first, uint32_t n, GjView *pairs)
{
	const GjMembershipSide *build_side = &gj_set(rs)->side[1];
	/* a family with itself has its lesser sets on the left */
	uint32_t	left = !probe_side && gj_set(rs)->step->same == 2 ? 1 : 0;
	uint32_t	source = rs->step->source;

	memset(pairs, 0, sizeof(*pairs));
	pairs->columns = columns;
	pairs->nrows = n;
	GJ_TRY(pick_places(run, rs, 0, probe_side ? probe_side : build_side,
					   (uint32_t *) gj_set(rs)->out[left].memory + first, n, pairs));
	GJ_TRY(pick_places(run, rs, source, build_side,
					   (uint32_t *) gj_set(rs)->out[1 - left].memory + first, n, pairs));
	if (gj_set(rs)->step->values)
		pairs->rowid[gj_set(rs)->step->values] = (uint32_t *) gj_set(rs)->out[2].memory + first;
	return GJ_OK;
}

/* What the pairs of a family are seen through. */
typedef struct GjPairColumns
{
	const GjColumn *columns;
	const GjMembershipSide *probe_side; /* NULL: a family with itself */
} GjPairColumns;

/* The npairs pairs that a tile has left go on. */
static GjStatus
pass_pairs(GjRun *run, uint32_t i, const void *arg, uint32_t npairs)
{
	const GjPairColumns *seen = arg;
	GjRunStep  *rs = &run->steps[i];

	for (uint32_t first = 0, n; first < npairs; first += n)
	{
		GjView		pairs;

		GJ_STOP_CHECK(run);
		n = npairs - first < run->tuples.most ? npairs - first : run->tuples.most;
		GJ_TRY(gj_run_make_room(run, i + 1, &n));
		GJ_TRY(write_pairs(run, rs, seen->columns, seen->probe_side, first, n, &pairs));
		/* what it says is how a family with itself is joined */
		if (rs->residual >= 0 && seen->probe_side)
			GJ_TRY(gj_run_filter_pairs(run, rs, n, 0, &pairs));
		GJ_TRY(gj_run_pass_on(run, i, &pairs));
	}
	return GJ_OK;
}

static GjStatus
join_family(GjRun *run, uint32_t i, const GjMembershipSide *probe_side, const GjSetSpec *spec,
			const GjSetFamily *family)
{
	GjRunStep  *rs = &run->steps[i];
	const GjSetStep *set = gj_set(rs)->step;
	GjPairColumns seen = {.probe_side = probe_side};

	describe_sets(run, probe_side ? probe_side : &gj_set(rs)->side[1], set->probe_column);
	describe_sets(run, &gj_set(rs)->side[1], set->build_column);
	GJ_TRY(gj_run_set_columns(run, &seen.columns));
	return gj_set_join_tiles(run, i, spec, family, pass_pairs, &seen);
}

/* Joins the build sets with the probe rows; probe_side = NULL: with themselves. */
static GjStatus
join_sets(GjRun *run, uint32_t i, const GjMembershipSide *probe_side)
{
	GjRunStep  *rs = &run->steps[i];
	GjSetFamily family = {0};
	GjSetSpec	spec;
	bool		wanted = gj_set_join_spec(run, gj_set(rs)->step, &spec);
	uint64_t	space = 0;
	GjStatus	status;

	if (gj_set(rs)->side[1].nsets == 0 || (probe_side && probe_side->nsets == 0))
		return GJ_OK;
	if (sees_parts(run, rs))
		spec.threshold = 1;
	else if (!wanted)
		return GJ_OK;
	/* sets without a common element have no joined row */
	else if (spec.threshold < 1)
		spec.threshold = 1;
	gj_run_choose_max_tuples(run);
	status = make_family(run, rs, probe_side, &spec, &family, &space);
	if (status == GJ_OK)
		status = join_family(run, i, probe_side, &spec, &family);
	gj_set_join_free_family(run, rs, &family, &space);
	return status;
}

/* Joins the probe rows that have come so far; there are none afterwards. */
static GjStatus
join_probe_side(GjRun *run, uint32_t i)
{
	GjMembershipSide *probe_side = &gj_set(&run->steps[i])->side[0];
	GjStatus	status = make_sets(run, probe_side);

	if (status == GJ_OK)
		status = join_sets(run, i, probe_side);
	free_side(&run->work, probe_side);
	return status;
}

/* There is no room for more probe rows: joins those that are there, as a part. */
static GjStatus
flush_probe_side(GjRun *run, uint32_t i, GjView *view)
{
	const GjSetStep *set = gj_set(&run->steps[i])->step;
	GjColumn	probe_side = run->columns[set->probe_column];
	GjColumn	build_side = run->columns[set->build_column];

	gj_set(&run->steps[i])->flushed = true;
	GJ_TRY(join_probe_side(run, i));
	run->columns[set->probe_column] = probe_side;
	run->columns[set->build_column] = build_side;
	return gj_run_set_columns(run, &view->columns);
}

static GjStatus
join(GjRun *run, uint32_t i, const GjView *view)
{
	GjRunStep  *rs = &run->steps[i];
	GjMembershipSide *probe_side = &gj_set(rs)->side[0];
	GjView		rows = *view;
	GjStatus	status = GJ_OUT_OF_MEMORY;

	if (build_is_enough(run, rs) || gj_set(rs)->side[1].nsets == 0)
		return GJ_OK;
	if (probe_side->nrows == 0 ||
		gj_lease_left(run->work.lease) >= joining_space(run, rs, probe_side->nrows + rows.nrows))
		status = add_rows(run, probe_side, &rows, 0, rows.nrows);
	if (status != GJ_OUT_OF_MEMORY || probe_side->nrows == 0)
		return status;
	GJ_TRY(flush_probe_side(run, i, &rows));
	return add_rows(run, probe_side, &rows, 0, rows.nrows);
}

static GjStatus
end(GjRun *run, uint32_t i)
{
	return build_is_enough(run, &run->steps[i]) ? join_sets(run, i, NULL) : join_probe_side(run, i);
}

static void
free_members(GjWork *work, GjRunStep *rs)
{
	if (!gj_set(rs))
		return;
	free_side(work, &gj_set(rs)->side[0]);
	free_side(work, &gj_set(rs)->side[1]);
	gj_set_join_free(work, rs);
}

const GjJoinOps gj_join_membership = {
	.name = "membership",
	.marks_by_pairs = true,
	.plan = gj_set_join_plan,.planned = planned,.build = build,
	.improve = gj_join_is_fast,.join = join,.end = end,.free = free_members
};
