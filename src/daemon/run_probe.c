/*
 * run_probe.c
 *	  Takes outer rows through their filter and all join steps.
 *
 * A step probes with all tuples at once and then writes its pairs piece by piece,
 * each of which passes the later steps before the next one is written.  So a
 * result of any size needs a fixed amount of memory.  Tuples are row ids, carried
 * only for sources that something later reads.
 *
 * How many tuples are worked on at a time follows from the memory that is left once all
 * inner sides are built.  All room that a number of tuples needs until the step after is
 * reserved before they are made, so that fewer can be made where there is none.
 */
#include "run.h"

#include <string.h>

/* ---- memory */

/* Room for n tuples to probe with. */
static GjStatus
reserve_probe(GjWork *work, GjRunStep *rs, uint32_t n)
{
	uint64_t	stride = gj_align((uint64_t) n * sizeof(int64_t));

	GJ_TRY(gj_buffer_reserve(work, &rs->key_values, stride * rs->step->nkeys));
	GJ_TRY(gj_buffer_reserve(work, &rs->key_nulls, n));
	GJ_TRY(gj_buffer_reserve(work, &rs->offset, ((uint64_t) n + 1) * sizeof(uint64_t)));
	return gj_buffer_reserve(work, &rs->first, (uint64_t) n * sizeof(uint32_t));
}

void
gj_step_free_probe(GjWork *work, GjRunStep *rs)
{
	gj_buffer_free(work, &rs->key_values);
	gj_buffer_free(work, &rs->key_nulls);
	gj_buffer_free(work, &rs->offset);
	gj_buffer_free(work, &rs->first);
}

/* Room for n pairs and what the residual condition leaves of them. */
static GjStatus
reserve_pairs(GjWork *work, GjRunStep *rs, uint32_t n)
{
	uint64_t	nbytes = (uint64_t) n * sizeof(uint32_t);
	bool		residual = rs->step->residual >= 0;

	if (residual)
		GJ_TRY(gj_buffer_reserve(work, &rs->positions, nbytes));
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
	{
		if (rs->expand >> s & 1)
			GJ_TRY(gj_buffer_reserve(work, &rs->rowid[s], nbytes));
		if (residual && (rs->out >> s & 1))
			GJ_TRY(gj_buffer_reserve(work, &rs->picked[s], nbytes));
	}
	return GJ_OK;
}

void
gj_step_free_pairs(GjWork *work, GjRunStep *rs)
{
	gj_buffer_free(work, &rs->positions);
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
	{
		gj_buffer_free(work, &rs->rowid[s]);
		gj_buffer_free(work, &rs->picked[s]);
	}
}

/* Room for n tuples that come from step i-1 (for i = 0: from the filter) and enter step i. */
static GjStatus
reserve_tuples(GjRun *run, uint32_t i, uint32_t n)
{
	if (i > 0)
		GJ_TRY(reserve_pairs(&run->work, &run->steps[i - 1], n));
	else if (run->sources[0].filter >= 0)
		GJ_TRY(gj_buffer_reserve(&run->work, &run->filtered, (uint64_t) n * sizeof(uint32_t)));
	return i < run->nsteps ? reserve_probe(&run->work, &run->steps[i], n) : GJ_OK;
}

static void
free_tuples(GjRun *run, uint32_t i)
{
	if (i > 0)
		gj_step_free_pairs(&run->work, &run->steps[i - 1]);
	else
		gj_buffer_free(&run->work, &run->filtered);
	if (i < run->nsteps)
		gj_step_free_probe(&run->work, &run->steps[i]);
}

/* The same for *n tuples, or for fewer where memory is short. */
static GjStatus
make_room(GjRun *run, uint32_t i, uint32_t *n)
{
	GjStatus	status = reserve_tuples(run, i, *n);

	while (status == GJ_OUT_OF_MEMORY)
	{
		bool		least = *n <= GJ_MIN_TUPLES;

		/* buffers that were larger than needed make room as well */
		free_tuples(run, i);
		if (!least)
			run->max_tuples = *n = gj_fewer_tuples(*n);
		status = reserve_tuples(run, i, *n);
		if (least)
			break;
	}
	return status;
}

/* Finds out how many tuples all steps can take at a time in half of what is left. */
static void
choose_max_tuples(GjRun *run)
{
	uint64_t	nbytes = sizeof(uint32_t);	/* for a tuple: filtered */
	uint64_t	n;

	for (uint32_t i = 0; i < run->nsteps; i++)
	{
		const GjRunStep *rs = &run->steps[i];
		int			ncolumns = __builtin_popcount(rs->expand);

		if (rs->step->residual >= 0)
			ncolumns += 1 + __builtin_popcount(rs->out);
		nbytes += ncolumns * sizeof(uint32_t) + rs->step->nkeys * sizeof(int64_t) + 1 +
			sizeof(uint64_t) + sizeof(uint32_t);
	}
	n = gj_lease_left(run->work.lease) / 2 / nbytes / GJ_MIN_TUPLES * GJ_MIN_TUPLES;
	if (n < GJ_MIN_TUPLES)
		n = GJ_MIN_TUPLES;
	run->max_tuples = n < GJ_MAX_TUPLES ? (uint32_t) n : GJ_MAX_TUPLES;
}

/* ---- the outer rows */

/* Describes the rows behind the first n of those described before. */
static void
skip_rows(GjRun *run, uint32_t n)
{
	GjColumn   *columns = run->columns + run->sources[0].first_column;

	for (uint32_t c = 0; c < run->sources[0].ncolumns; c++)
	{
		columns[c].data += (size_t) n * columns[c].width;
		if (columns[c].nulls)
			columns[c].nulls += n;
	}
}

/* ---- steps */

/* The tuples' keys for a step, in the step's buffers. */
static GjStatus
compute_keys(GjRun *run, GjRunStep *rs, const GjView *view, GjKeys *keys)
{
	uint64_t	stride = gj_align((uint64_t) view->nrows * sizeof(int64_t));

	memset(keys, 0, sizeof(*keys));
	keys->nkeys = rs->step->nkeys;
	keys->nrows = view->nrows;
	for (uint32_t k = 0; k < keys->nkeys; k++)
		keys->value[k] = (int64_t *) ((uint8_t *) rs->key_values.memory + k * stride);
	keys->null = rs->key_nulls.memory;
	return run->work.ops->keys(run->work.queue, view, 0, view->nrows, rs->step->outer_keys, keys);
}

/* Writes the next n pairs of a step as a view for the steps after it. */
static GjStatus
expand_pairs(GjRun *run, GjRunStep *rs, const GjView *view, uint64_t cursor, uint32_t n,
			 GjView *pairs)
{
	GjWork	   *work = &run->work;
	uint32_t   *out[GJ_MAX_SOURCES] = {NULL};

	memset(pairs, 0, sizeof(*pairs));
	pairs->columns = view->columns;
	pairs->nrows = n;
	if (rs->expand == 0)
		return GJ_OK;
	for (uint32_t s = 0; s < run->program->nsources; s++)
		if (rs->expand >> s & 1)
			pairs->rowid[s] = out[s] = rs->rowid[s].memory;
	return work->ops->hash_expand(work->queue, &rs->table, view, rs->offset.memory,
								  rs->first.memory, cursor, n, rs->step->source, out);
}

/* Leaves the pairs for which the step's residual condition is true. */
static GjStatus
filter_pairs(GjRun *run, GjRunStep *rs, GjView *pairs)
{
	GjWork	   *work = &run->work;
	uint32_t	n;

	GJ_TRY(work->ops->select(work->queue, pairs, rs->step->residual, rs->positions.memory, &n));
	if (n == pairs->nrows)
		return GJ_OK;
	pairs->nrows = n;
	if (n == 0)
		return GJ_OK;
	for (uint32_t s = 0; s < run->program->nsources; s++)
	{
		if (!(rs->out >> s & 1))
			continue;
		GJ_TRY(work->ops->pick(work->queue, rs->picked[s].memory, pairs->rowid[s], 0,
							   rs->positions.memory, n));
		pairs->rowid[s] = rs->picked[s].memory;
	}
	return GJ_OK;
}

static GjStatus
probe_step(GjRun *run, GjRunStep *rs, const GjView *view, uint64_t *total)
{
	GjWork	   *work = &run->work;
	GjKeys		keys;

	work->ops->phase(work->queue, GJ_PHASE_PROBE);
	GJ_TRY(compute_keys(run, rs, view, &keys));
	return work->ops->hash_probe(work->queue, &rs->table, &keys, rs->offset.memory,
								 rs->first.memory, total);
}

/* Takes tuples, for which there is room, through step i and all that follow. */
static GjStatus
join_tuples(GjRun *run, uint32_t i, const GjView *view)
{
	GjRunStep  *rs = &run->steps[i];
	uint64_t	total;

	GJ_STOP_CHECK(run);
	if (view->nrows == 0)
		return GJ_OK;
	if (i == run->nsteps)
		return gj_run_output(run, view);

	run->stats.step[i].rows_in += view->nrows;
	GJ_TRY(probe_step(run, rs, view, &total));
	if (i == run->nsteps - 1 && run->count_only && rs->step->residual < 0)
	{
		run->stats.step[i].rows_out += total;
		run->counted += (int64_t) total;
		return GJ_OK;
	}
	for (uint64_t cursor = 0; cursor < total;)
	{
		uint64_t	left = total - cursor;
		uint32_t	n = left < run->max_tuples ? (uint32_t) left : run->max_tuples;
		GjView		pairs;

		GJ_STOP_CHECK(run);
		run->work.ops->phase(run->work.queue, GJ_PHASE_PROBE);
		GJ_TRY(make_room(run, i + 1, &n));
		GJ_TRY(expand_pairs(run, rs, view, cursor, n, &pairs));
		if (rs->step->residual >= 0)
			GJ_TRY(filter_pairs(run, rs, &pairs));
		run->stats.step[i].rows_out += pairs.nrows;
		GJ_TRY(join_tuples(run, i + 1, &pairs));
		cursor += n;
	}
	return GJ_OK;
}

/* Takes the first n rows of the outer columns through the filter and all steps. */
static GjStatus
join_rows(GjRun *run, uint32_t n)
{
	GjWork	   *work = &run->work;
	GjView		view = {.nrows = n};

	GJ_TRY(work->ops->set_columns(work->queue, run->columns, run->program->ncolumns,
								  &view.columns));
	if (run->sources[0].filter >= 0)
	{
		uint32_t	passed;

		work->ops->phase(work->queue, GJ_PHASE_PROBE);
		GJ_TRY(work->ops->select(work->queue, &view, run->sources[0].filter,
								 run->filtered.memory, &passed));
		if (passed < n)
			view.rowid[0] = run->filtered.memory;
		view.nrows = passed;
	}
	run->stats.source[0].rows_out += view.nrows;
	return join_tuples(run, 0, &view);
}

GjStatus
gj_run_outer_rows(GjRun *run, uint32_t nrows)
{
	if (run->max_tuples == 0)
		choose_max_tuples(run);
	for (uint32_t first = 0, n; first < nrows; first += n)
	{
		n = nrows - first < run->max_tuples ? nrows - first : run->max_tuples;
		GJ_TRY(make_room(run, 0, &n));
		GJ_TRY(join_rows(run, n));
		skip_rows(run, n);
	}
	return GJ_OK;
}
