/*
 * set_join.c
 *	  A join of GJ_JOIN_SET: pairs of arrays, as sets, that overlap, contain each other or are
 *	  similar.
 *
 * The sets of the build side are made once, when it is complete; those of probe tuples as these
 * come.  Both together are a family (device/sets.h), whose pairs come tile by tile.  They become
 * row ids and go on like pairs of other algorithms.  The memory that is left decides how many
 * tuples a family is made of.
 */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/set_plan.h"

/* And while arrays become sets: other copies of the elements, places, segments. */
#define GJ_ARRAY_ELEMENT_SPACE	32
#define GJ_ARRAY_SPACE		32

/* The fewest tuples that a family is made of, however little memory there is. */
#define GJ_MIN_SETS			64

/* ---- the sets of a side */

/*
 * Appends the sets of tuples first .. first+n-1 of the view, n <= GJ_MAX_TUPLES.  What is
 * noted of each is its place among the tuples of the view.
 */
static GjStatus
add_sets(GjRun *run, GjRunSets *sets, const GjArrayColumn *column, const GjView *view,
		 uint32_t first, uint32_t n)
{
	GjWork	   *work = &run->work;
	uint32_t	source = run->types[column->column].source;
	const uint32_t *rowid = view->rowid[source];
	GjView		some = *view;
	uint64_t	total;
	uint64_t	nvalues;
	uint64_t	space;
	uint32_t	nsome;
	GjStatus	status;

	GJ_TRY(gj_buffer_reserve(work, &sets->new_size, (uint64_t) n * sizeof(int32_t)));
	GJ_TRY(gj_buffer_reserve(work, &sets->null, n));
	GJ_TRY(gj_buffer_reserve(work, &sets->positions, (uint64_t) n * sizeof(uint32_t)));
	GJ_TRY(gj_buffer_reserve(work, &sets->rows, (uint64_t) n * sizeof(uint32_t)));
	GJ_TRY(gj_buffer_grow(work, &sets->tuple, sets->n * sizeof(uint32_t),
						  (sets->n + n) * sizeof(uint32_t), 0));
	GJ_TRY(gj_buffer_grow(work, &sets->size, sets->n * sizeof(int32_t),
						  (sets->n + n) * sizeof(int32_t), 0));
	GJ_TRY(work->ops->sets->array_sizes(work->queue, view, first, n, column, sets->new_size.memory,
								  sets->null.memory, &total));
	GJ_TRY(work->ops->columns->select_flags(work->queue, sets->null.memory, n, 0,
											sets->positions.memory, &nsome));
	if (nsome == 0)
		return GJ_OK;
	GJ_TRY(work->ops->columns->pick(work->queue, (uint32_t *) sets->tuple.memory + sets->n, NULL,
									first, sets->positions.memory, nsome));
	GJ_TRY(work->ops->columns->pick(work->queue, (uint32_t *) sets->size.memory + sets->n,
						   sets->new_size.memory, 0, sets->positions.memory, nsome));
	GJ_TRY(work->ops->columns->pick(work->queue, sets->rows.memory, rowid ? rowid + first : NULL,
									first, sets->positions.memory, nsome));
	GJ_TRY(gj_buffer_grow(work, &sets->values, sets->nvalues * column->width,
						  (sets->nvalues + total) * column->width + 8, 0));
	some.nrows = nsome;
	some.same = 0;
	some.rowid[source] = sets->rows.memory;
	space = total * GJ_ARRAY_ELEMENT_SPACE + nsome * (uint64_t) GJ_ARRAY_SPACE;
	if (!gj_lease_take(work->lease, space))
		return GJ_OUT_OF_MEMORY;
	status = work->ops->sets->array_sets(work->queue, &some, column,
								   (int32_t *) sets->size.memory + sets->n,
								   (uint8_t *) sets->values.memory + sets->nvalues * column->width,
								   run->host->stop, run->host->arg, &nvalues);
	gj_lease_give(work->lease, space);
	if (status != GJ_OK)
		return status;
	sets->n += nsome;
	sets->nvalues += nvalues;
	return GJ_OK;
}

/* Gives back what is only needed while sets are added. */
static void
end_adding(GjWork *work, GjRunSets *sets)
{
	gj_buffer_free(work, &sets->new_size);
	gj_buffer_free(work, &sets->null);
	gj_buffer_free(work, &sets->positions);
	gj_buffer_free(work, &sets->rows);
}

void
gj_set_join_free_sets(GjWork *work, GjRunSets *sets)
{
	end_adding(work, sets);
	gj_buffer_free(work, &sets->tuple);
	gj_buffer_free(work, &sets->size);
	gj_buffer_free(work, &sets->values);
	sets->n = sets->nvalues = 0;
}

/* ---- the build side */

static GjStatus
build_sets(GjRun *run, GjRunStep *rs, const GjView *view)
{
	GjWork	   *work = &run->work;
	GjRunSets  *build_side = &gj_set(rs)->build_side;
	const GjArrayColumn column = {
		gj_set(rs)->step->build_column, gj_set(rs)->step->width, gj_set(rs)->step->build_nulls
	};
	const uint32_t *rowid = view->rowid[rs->step->source];
	uint32_t	most = GJ_MAX_TUPLES;

	for (uint32_t first = 0, n; first < view->nrows; first += n)
	{
		GjStatus	status;

		n = view->nrows - first < most ? view->nrows - first : most;
		GJ_STOP_CHECK(run);
		status = add_sets(run, build_side, &column, view, first, n);
		if (status == GJ_OUT_OF_MEMORY && n > GJ_MIN_SETS)
		{
			most = n / 2;
			n = 0;
		}
		else if (status != GJ_OK)
			return status;
	}
	end_adding(work, build_side);
	if (!rowid)
		return GJ_OK;
	/* from places among the rows that passed the filter to row ids */
	GJ_TRY(gj_buffer_reserve(work, &gj_set(rs)->build_row, build_side->n * sizeof(uint32_t)));
	for (uint64_t first = 0, n; first < build_side->n; first += n)
	{
		n = build_side->n - first < GJ_MAX_TUPLES ? build_side->n - first : GJ_MAX_TUPLES;
		GJ_TRY(work->ops->columns->pick(work->queue,
										(uint32_t *) gj_set(rs)->build_row.memory + first, rowid, 0,
										(uint32_t *) build_side->tuple.memory + first,
										(uint32_t) n));
	}
	gj_buffer_free(work, &build_side->tuple);
	build_side->tuple = gj_set(rs)->build_row;
	gj_set(rs)->build_row = (GjBuffer) {NULL, 0};
	return GJ_OK;
}

static GjStatus
build(GjRun *run, GjSideBuild *build, GjRunStep *rs)
{
	GjView		view;

	GJ_TRY(gj_build_view(run, build, &view));
	GJ_TRY(build_sets(run, rs, &view));
	rs->nmatchable = gj_set(rs)->build_side.n;
	return GJ_OK;
}

bool
gj_set_join_plan(GjRun *run, GjRunStep *rs)
{
	const GjSetStep *step = gj_program_array(run->program, GjSetStep, set_steps) + rs->step->set;

	rs->join_state = calloc(1, sizeof(GjRunSetJoin));
	if (!rs->join_state)
		return false;
	gj_set(rs)->step = step;
	rs->reads = gj_run_reads_column(run, step->probe_column);
	rs->makes = gj_pair_values(step);
	rs->needs_tuple = true;
	return true;
}

void
gj_set_join_free(GjWork *work, GjRunStep *rs)
{
	GjRunSetJoin *set = gj_set(rs);

	if (!set)
		return;
	gj_set_join_free_sets(work, &set->build_side);
	gj_set_join_free_sets(work, &set->probe_side);
	gj_buffer_free(work, &set->build_row);
	for (uint32_t i = 0; i < 3; i++)
		gj_buffer_free(work, &set->out[i]);
	free(set);
	rs->join_state = NULL;
}

/* ---- pairs */

bool
gj_set_join_spec(const GjRun *run, const GjSetStep *step, GjSetSpec *spec)
{
	const GjInstr *instr;

	memset(spec, 0, sizeof(*spec));
	spec->algorithm = step->algorithm;
	spec->predicate = step->predicate;
	spec->threshold = 1;
	if (step->threshold < 0)
		return true;
	instr = gj_program_array(run->program, GjInstr, instrs) + run->exprs[step->threshold].first;
	if (instr->n != 0)
		return false;
	if (run->exprs[step->threshold].kind == GJ_FLOAT8)
		spec->threshold = gj_bits_to_double(instr->imm);
	else
		spec->threshold = (double) instr->imm;
	if (step->strict)
		spec->threshold = nextafter(spec->threshold, HUGE_VAL);
	/* more than infinity, or than NaN, is nothing */
	return !gj_isnan(spec->threshold) &&
		!(step->strict && gj_isinf(spec->threshold) && spec->threshold > 0);
}

GjStatus
gj_set_join_build(GjRun *run, GjRunStep *rs, const GjSetInput *sets, GjSetSpec *spec,
				  GjSetFamily *family, uint64_t *space)
{
	GjWork	   *work = &run->work;

	*space = sets->nvalues * GJ_ELEMENT_SPACE + sets->nsets * (uint64_t) GJ_SET_SPACE +
		gj_run_tile_space(run);
	if (!gj_lease_take(work->lease, *space))
	{
		*space = 0;
		return GJ_OUT_OF_MEMORY;
	}
	GJ_TRY(work->ops->sets->set_build(work->queue, sets, spec, run->host->stop, run->host->arg,
									  family));
	gj_buffer_free(work, &gj_set(rs)->probe_side.values);
	return gj_run_make_tiles(run, family, 0, gj_set(rs)->out, space);
}

/* A family of tuples first .. first+n-1 of the view and the build sets; takes its memory. */
static GjStatus
make_family(GjRun *run, GjRunStep *rs, const GjView *view, uint32_t first, uint32_t n,
			GjSetSpec *spec, GjSetFamily *family, uint64_t *space)
{
	GjWork	   *work = &run->work;
	GjRunSets  *probe_side = &gj_set(rs)->probe_side;
	const GjRunSets *build_side = &gj_set(rs)->build_side;
	const GjArrayColumn column = {
		gj_set(rs)->step->probe_column, gj_set(rs)->step->width, gj_set(rs)->step->probe_nulls
	};
	GjSetInput	sets = {.width = column.width};

	GJ_TRY(add_sets(run, probe_side, &column, view, first, n));
	end_adding(work, probe_side);
	if (probe_side->n == 0)
		return GJ_OK;
	GJ_TRY(gj_buffer_grow(work, &probe_side->size, probe_side->n * sizeof(int32_t),
						  (probe_side->n + build_side->n) * sizeof(int32_t), 0));
	GJ_TRY(work->ops->memory->copy(work->queue, (int32_t *) probe_side->size.memory + probe_side->n,
						   build_side->size.memory, build_side->n * sizeof(int32_t)));
	GJ_TRY(gj_buffer_grow(work, &probe_side->values, probe_side->nvalues * column.width,
						  (probe_side->nvalues + build_side->nvalues) * column.width + 8, 0));
	if (build_side->nvalues > 0)
		GJ_TRY(work->ops->memory->copy(work->queue, (uint8_t *) probe_side->values.memory +
									   probe_side->nvalues * column.width,
									   build_side->values.memory,
									   build_side->nvalues * column.width));
	sets.nvalues = probe_side->nvalues + build_side->nvalues;
	if (probe_side->n + build_side->n > GJ_MAX_ROWS || sets.nvalues > UINT32_MAX - 1)
		return GJ_OUT_OF_MEMORY;
	sets.nsets = (uint32_t) (probe_side->n + build_side->n);
	sets.size = probe_side->size.memory;
	sets.values = probe_side->values.memory;
	spec->nleft = (uint32_t) probe_side->n;
	spec->nright = (uint32_t) build_side->n;
	return gj_set_join_build(run, rs, &sets, spec, family, space);
}

void
gj_set_join_free_family(GjRun *run, GjRunStep *rs, GjSetFamily *family, uint64_t *space)
{
	run->work.ops->sets->set_free(run->work.queue, family);
	gj_lease_give(run->work.lease, *space);
	*space = 0;
	memset(family, 0, sizeof(*family));
	gj_set_join_free_sets(&run->work, &gj_set(rs)->probe_side);
}

/* Pair value v (GjSetStep) of pairs first .. first+n-1 of those that a tile has left. */
static GjStatus
write_value(GjWork *work, const GjRunStep *rs, uint32_t v, uint32_t first, uint32_t n, uint32_t *to)
{
	/* behind the sizes of the probe sets are those of the build sides */
	const uint32_t *size = gj_set(rs)->probe_side.size.memory;

	if (v == 0)
		return work->ops->memory->copy(work->queue, to,
									   (uint32_t *) gj_set(rs)->out[2].memory + first,
							   (uint64_t) n * sizeof(uint32_t));
	return work->ops->columns->pick(work->queue, to,
									v == 1 ? size : size + gj_set(rs)->probe_side.n, 0,
						   (uint32_t *) gj_set(rs)->out[v - 1].memory + first, n);
}

/* Pairs first .. first+n-1 of those that a tile has left, as a view. */
static GjStatus
write_pairs(GjRun *run, GjRunStep *rs, const GjView *view, uint32_t first, uint32_t n,
			GjView *pairs)
{
	GjWork	   *work = &run->work;
	const uint32_t *left = (uint32_t *) gj_set(rs)->out[0].memory + first;
	const uint32_t *right = (uint32_t *) gj_set(rs)->out[1].memory + first;
	uint32_t   *tuple = rs->pairs.tuple.memory;

	memset(pairs, 0, sizeof(*pairs));
	pairs->columns = view->columns;
	pairs->nrows = n;
	pairs->no_row = view->no_row;
	GJ_TRY(work->ops->columns->pick(work->queue, tuple, gj_set(rs)->probe_side.tuple.memory, 0,
									left, n));
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
	{
		uint32_t   *to = rs->pairs.rowid[s].memory;

		if (!(rs->expand >> s & 1))
			continue;
		if (gj_pair_values(gj_set(rs)->step) >> s & 1)
			GJ_TRY(write_value(work, rs, s - gj_set(rs)->step->values, first, n, to));
		else if (s == rs->step->source)
			GJ_TRY(work->ops->columns->pick(work->queue, to, gj_set(rs)->build_side.tuple.memory, 0,
											right, n));
		else
			GJ_TRY(work->ops->columns->pick(work->queue, to, view->rowid[s], 0, tuple, n));
		pairs->rowid[s] = to;
	}
	return GJ_OK;
}

/* The npairs pairs that a tile has left: to the next step, or only looked at. */
static GjStatus
pass_pairs(GjRun *run, uint32_t i, const void *arg, uint32_t npairs)
{
	const GjView *view = arg;
	GjRunStep  *rs = &run->steps[i];

	if (gj_step_only_counts(run, i))
	{
		run->stats.step[i].rows_out += npairs;
		run->output.counted += npairs;
		if (!gj_step_makes_tuples(rs->step) && !gj_step_makes_rows(rs->step))
			return GJ_OK;
	}
	for (uint32_t first = 0, n; first < npairs; first += n)
	{
		GjView		pairs;

		GJ_STOP_CHECK(run);
		n = npairs - first < run->tuples.most ? npairs - first : run->tuples.most;
		GJ_TRY(gj_run_make_room(run, i + 1, &n));
		GJ_TRY(write_pairs(run, rs, view, first, n, &pairs));
		if (rs->residual >= 0)
			GJ_TRY(gj_run_filter_pairs(run, rs, view->nrows, 0, &pairs));
		else
			GJ_TRY(gj_match_pairs(run, rs, view->nrows, &pairs, 0, NULL, n));
		if (gj_step_makes_pairs(rs->step) && !gj_step_only_counts(run, i))
			GJ_TRY(gj_run_pass_on(run, i, &pairs));
	}
	return GJ_OK;
}

GjStatus
gj_set_join_tiles(GjRun *run, uint32_t i, const GjSetSpec *spec, const GjSetFamily *family,
				  GjPassPairs pass, const void *arg)
{
	GjRunStep  *rs = &run->steps[i];
	GjWork	   *work = &run->work;
	uint32_t   *out[3];
	GjSetTile	tile;

	run->stats.step[i].set_algorithm = family->algorithm;
	for (uint32_t k = 0; k < 3; k++)
		out[k] = gj_set(rs)->out[k].memory;
	for (bool first = true; gj_set_next_tile(family, spec, &tile, first); first = false)
	{
		uint32_t	n;

		GJ_STOP_CHECK(run);
		work->ops->queues->phase(work->queue, GJ_PHASE_PROBE);
		GJ_TRY(work->ops->sets->set_tile(work->queue, family, spec, &tile, run->host->stop,
								   run->host->arg, out, &n));
		GJ_TRY(pass(run, i, arg, n));
	}
	return GJ_OK;
}

static GjStatus
join(GjRun *run, uint32_t i, const GjView *view)
{
	GjRunStep  *rs = &run->steps[i];
	GjWork	   *work = &run->work;
	GjSetFamily family = {0};
	uint64_t	space = 0;
	uint32_t	most = view->nrows;
	GjStatus	status = GJ_OK;
	GjSetSpec	spec;
	bool		wanted;

	work->ops->queues->phase(work->queue, GJ_PHASE_PROBE);
	if (gj_step_makes_tuples(rs->step))
		GJ_TRY(work->ops->memory->fill(work->queue, rs->probe.matched.memory, 0, view->nrows));
	if (gj_set(rs)->build_side.n == 0)
		return GJ_OK;
	/* arrays that are errors are that even if no pair can match */
	wanted = gj_set_join_spec(run, gj_set(rs)->step, &spec);
	for (uint32_t first = 0, n; first < view->nrows && status == GJ_OK; first += n)
	{
		n = view->nrows - first < most ? view->nrows - first : most;
		status = make_family(run, rs, view, first, n, &spec, &family, &space);
		if (status == GJ_OUT_OF_MEMORY && n > GJ_MIN_SETS)
		{
			/* none of these has been joined yet */
			most = n / 2;
			n = 0;
			status = GJ_OK;
		}
		else if (status == GJ_OK && gj_set(rs)->probe_side.n > 0 && wanted)
			status = gj_set_join_tiles(run, i, &spec, &family, pass_pairs, view);
		gj_set_join_free_family(run, rs, &family, &space);
	}
	return status;
}

const GjJoinOps gj_join_sets = {
	.name = "sets",
	.marks_by_pairs = true,
	.plan = gj_set_join_plan,.planned = gj_join_is_planned,.build = build,
	.improve = gj_join_is_fast,.join = join,.end = gj_join_has_ended,.free = gj_set_join_free
};
