/*
 * probe.c
 *	  Takes probe rows through their filter and all join steps.
 *
 * A step probes with all tuples at once and then writes its pairs piece by piece,
 * each of which passes the later steps before the next one is written.  So a
 * result of any size needs a fixed amount of memory.  Tuples are row ids, carried
 * only for sources that something later reads.  Tuples that come out without a pair,
 * those of outer, semi and anti joins, follow when all pairs were seen (run/match.c).
 *
 * How many tuples are worked on at a time follows from the memory that is left once all
 * build sides are built.  All room that a number of tuples needs until the step after is
 * reserved before they are made, so that fewer can be made where there is none.
 */
#include "state.h"

#include <string.h>

/* ---- memory */

/* Room for n tuples to probe with. */
static GjStatus
reserve_probe(GjWork *work, GjRunStep *rs, uint32_t n)
{
	uint64_t	stride = gj_align((uint64_t) n * sizeof(int64_t));

	if (rs->nprobe_operands > 0)
	{
		GJ_TRY(gj_buffer_reserve(work, &rs->probe.key_values, stride * rs->nprobe_operands));
		GJ_TRY(gj_buffer_reserve(work, &rs->probe.key_nulls, n));
	}
	if (gj_step_makes_tuples(rs->step))
		GJ_TRY(gj_buffer_reserve(work, &rs->probe.matched, n));
	/* rows need theirs at the end */
	if (gj_step_makes_tuples(rs->step) || gj_step_makes_rows(rs->step))
		GJ_TRY(gj_buffer_reserve(work, &rs->probe.selected, (uint64_t) n * sizeof(uint32_t)));
	if (!rs->join->numbers_pairs)
		return GJ_OK;
	GJ_TRY(gj_buffer_reserve(work, &rs->probe.offset, ((uint64_t) n + 1) * sizeof(uint64_t)));
	return gj_buffer_reserve(work, &rs->probe.first, (uint64_t) n * sizeof(uint32_t));
}

void
gj_step_free_probe(GjWork *work, GjRunStep *rs)
{
	gj_buffer_free(work, &rs->probe.key_values);
	gj_buffer_free(work, &rs->probe.key_nulls);
	gj_buffer_free(work, &rs->probe.offset);
	gj_buffer_free(work, &rs->probe.first);
	gj_buffer_free(work, &rs->probe.matched);
	gj_buffer_free(work, &rs->probe.selected);
}

/* True if not all that a step makes need go on: then positions select it. */
static bool
step_selects(const GjRunStep *rs)
{
	return rs->residual >= 0 || rs->step->filter >= 0;
}

/* Room for n pairs and what the conditions leave of them. */
static GjStatus
reserve_pairs(GjWork *work, GjRunStep *rs, uint32_t n)
{
	uint64_t	nbytes = (uint64_t) n * sizeof(uint32_t);
	bool		selects = step_selects(rs);

	if (selects)
		GJ_TRY(gj_buffer_reserve(work, &rs->pairs.positions, nbytes));
	if (rs->needs_tuple)
		GJ_TRY(gj_buffer_reserve(work, &rs->pairs.tuple, nbytes));
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
	{
		if (rs->expand >> s & 1)
			GJ_TRY(gj_buffer_reserve(work, &rs->pairs.rowid[s], nbytes));
		if (selects && (rs->kept >> s & 1))
			GJ_TRY(gj_buffer_reserve(work, &rs->pairs.picked[s], nbytes));
	}
	return GJ_OK;
}

void
gj_step_free_pairs(GjWork *work, GjRunStep *rs)
{
	gj_buffer_free(work, &rs->pairs.positions);
	gj_buffer_free(work, &rs->pairs.tuple);
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
	{
		gj_buffer_free(work, &rs->pairs.rowid[s]);
		gj_buffer_free(work, &rs->pairs.picked[s]);
	}
}

/* Room for n tuples that come from step i-1 (for i = 0: from the filter) and enter step i. */
static GjStatus
reserve_tuples(GjRun *run, uint32_t i, uint32_t n)
{
	if (i > 0)
		GJ_TRY(reserve_pairs(&run->work, &run->steps[i - 1], n));
	else if (run->sources[0].filter >= 0)
		GJ_TRY(gj_buffer_reserve(&run->work, &run->tuples.filtered,
								 (uint64_t) n * sizeof(uint32_t)));
	return i < run->nsteps ? reserve_probe(&run->work, &run->steps[i], n) : GJ_OK;
}

static void
free_tuples(GjRun *run, uint32_t i)
{
	if (i > 0)
		gj_step_free_pairs(&run->work, &run->steps[i - 1]);
	else
		gj_buffer_free(&run->work, &run->tuples.filtered);
	if (i < run->nsteps)
		gj_step_free_probe(&run->work, &run->steps[i]);
}

GjStatus
gj_run_fit_tuples(GjRun *run, uint32_t i, uint32_t *n,
				  GjStatus (*reserve) (GjRun *run, uint32_t i, uint32_t n),
				  void (*release) (GjRun *run, uint32_t i))
{
	GjStatus	status = reserve(run, i, *n);

	while (status == GJ_OUT_OF_MEMORY)
	{
		bool		least = *n <= GJ_MIN_TUPLES;

		release(run, i);
		if (!least)
			*n = gj_fewer_tuples(*n);
		status = reserve(run, i, *n);
		if (least)
			break;
	}
	return status;
}

GjStatus
gj_run_reserve_positions(GjRun *run, GjBuffer *positions, uint32_t *n)
{
	GjStatus	status;

	while ((status = gj_buffer_reserve(&run->work, positions, (uint64_t) *n * sizeof(uint32_t))) ==
		   GJ_OUT_OF_MEMORY && *n > GJ_MIN_TUPLES)
		*n = gj_fewer_tuples(*n);
	return status;
}

GjStatus
gj_run_make_room(GjRun *run, uint32_t i, uint32_t *n)
{
	uint32_t	asked = *n;
	GjStatus	status = gj_run_fit_tuples(run, i, n, reserve_tuples, free_tuples);

	if (*n < asked)
		run->tuples.most = *n;
	return status;
}

GjStatus
gj_run_reserve_steps(GjRun *run)
{
	for (uint32_t i = 0; i <= run->nsteps && run->sink->returns_rows; i++)
	{
		uint32_t	n = GJ_MIN_TUPLES;

		GJ_TRY(gj_run_make_room(run, i, &n));
	}
	return GJ_OK;
}

/* Bytes that a tuple takes on its way through all steps. */
static uint64_t
tuple_bytes(const GjRun *run)
{
	uint64_t	nbytes = sizeof(uint32_t);	/* filtered */

	for (uint32_t i = 0; i < run->nsteps; i++)
	{
		const GjRunStep *rs = &run->steps[i];
		int			ncolumns = __builtin_popcount(rs->expand);

		if (step_selects(rs))
			ncolumns += 1 + __builtin_popcount(rs->kept);
		nbytes += ncolumns * sizeof(uint32_t) + rs->nprobe_operands * sizeof(int64_t) + 1 +
			sizeof(uint64_t) + sizeof(uint32_t);
		if (gj_step_makes_tuples(rs->step) || gj_step_makes_rows(rs->step))
			nbytes += 1 + sizeof(uint32_t);
		if (rs->needs_tuple)
			nbytes += sizeof(uint32_t);
	}
	return nbytes + run->sink->tuple_bytes(run);
}

uint64_t
gj_run_least_space(const GjRun *run)
{
	return tuple_bytes(run) * GJ_MIN_TUPLES;
}

/* Half of what is left for GJ_MAX_TUPLES, and little of it for more, up to what the device takes. */
void
gj_run_choose_max_tuples(GjRun *run)
{
	uint64_t	fit;
	uint64_t	most = GJ_MAX_TUPLES;

	if (run->tuples.most != 0 && !run->tuples.more_room)
		return;
	run->tuples.more_room = false;
	fit = gj_lease_left(run->work.lease) / 2 / tuple_bytes(run);
	while (most < run->work.ops->most_tuples && most * 2 <= fit / GJ_LITTLE_OF)
		most *= 2;
	fit = fit / GJ_MIN_TUPLES * GJ_MIN_TUPLES;
	if (fit < GJ_MIN_TUPLES)
		fit = GJ_MIN_TUPLES;
	run->tuples.most = (uint32_t) (fit < most ? fit : most);
}

/* ---- the probe rows */

/* Describes the rows behind the first n of those described before. */
static void
skip_rows(GjRun *run, uint32_t n)
{
	GjColumn   *columns = run->columns + run->sources[0].first_column;

	gj_columns_from(columns, columns, run->sources[0].ncolumns, n);
}

/* ---- steps */

GjStatus
gj_run_probe_keys(GjRun *run, GjRunStep *rs, const GjView *view, GjKeys *keys)
{
	GjWork	   *work = &run->work;
	uint64_t	stride = gj_align((uint64_t) view->nrows * sizeof(int64_t));

	memset(keys, 0, sizeof(*keys));
	keys->nkeys = rs->nprobe_operands;
	keys->nrows = view->nrows;
	for (uint32_t k = 0; k < keys->nkeys; k++)
		keys->value[k] = (int64_t *) ((uint8_t *) rs->probe.key_values.memory + k * stride);
	keys->null = rs->probe.key_nulls.memory;
	if (rs->join->hashes)
		return work->ops->columns->keys(work->queue, view, 0, view->nrows, rs->step->probe_keys,
										keys);
	return work->ops->columns->ordered_keys(work->queue, view, 0, view->nrows, rs->probe_operand,
											keys);
}

GjStatus
gj_run_pick(GjRun *run, GjRunStep *rs, GjView *view, const uint32_t *positions, uint32_t n,
			uint32_t kept)
{
	GjWork	   *work = &run->work;

	view->nrows = n;
	for (uint32_t s = 0; s < GJ_MAX_SOURCES && n > 0; s++)
	{
		uint32_t   *to = rs->pairs.rowid[s].memory;

		if (!(kept >> s & 1))
			continue;
		if (view->rowid[s] == to)
			to = rs->pairs.picked[s].memory;
		GJ_TRY(work->ops->columns->pick(work->queue, to, view->rowid[s], 0, positions, n));
		view->rowid[s] = to;
	}
	return GJ_OK;
}

GjStatus
gj_run_filter_pairs(GjRun *run, GjRunStep *rs, uint32_t ntuples, uint64_t cursor, GjView *pairs)
{
	GjWork	   *work = &run->work;
	uint32_t   *positions = rs->pairs.positions.memory;
	uint32_t	n;

	GJ_TRY(work->ops->columns->select(work->queue, pairs, rs->residual, positions, &n));
	if (n > 0)
		GJ_TRY(gj_match_pairs(run, rs, ntuples, pairs, cursor, positions, n));
	if (n == pairs->nrows || !gj_step_makes_pairs(rs->step))
		return GJ_OK;
	return gj_run_pick(run, rs, pairs, positions, n, rs->kept);
}

/* Takes tuples, for which there is room, through step i and all that follow. */
static GjStatus
join_tuples(GjRun *run, uint32_t i, const GjView *view)
{
	GjRunStep  *rs = &run->steps[i];

	GJ_STOP_CHECK(run);
	if (view->nrows == 0)
		return GJ_OK;
	if (i == run->nsteps)
		return run->sink->push(run, view);

	if (i == 0 && run->tuples.marks.flags)
		return gj_marks_join(run, view);
	run->stats.step[i].rows_in += view->nrows;
	GJ_TRY(rs->join->join(run, i, view));
	return gj_step_makes_tuples(rs->step) ? gj_match_tuples(run, i, view) : GJ_OK;
}

GjStatus
gj_run_pass_on(GjRun *run, uint32_t i, GjView *view)
{
	GjRunStep  *rs = &run->steps[i];
	GjWork	   *work = &run->work;

	if (rs->step->filter >= 0 && view->nrows > 0)
	{
		uint32_t	n;

		GJ_TRY(work->ops->columns->select(work->queue, view, rs->step->filter,
								 rs->pairs.positions.memory, &n));
		if (n < view->nrows)
			GJ_TRY(gj_run_pick(run, rs, view, rs->pairs.positions.memory, n, rs->out));
	}
	run->stats.step[i].rows_out += view->nrows;
	return join_tuples(run, i + 1, view);
}

/* Takes the first n rows of the probe columns through the filter and all steps. */
static GjStatus
join_rows(GjRun *run, uint32_t n)
{
	GjWork	   *work = &run->work;
	GjView		view = {.nrows = n};

	GJ_TRY(gj_run_set_columns(run, &view.columns));
	if (run->sources[0].filter >= 0)
	{
		uint32_t	passed;

		work->ops->queues->phase(work->queue, GJ_PHASE_PROBE);
		GJ_TRY(work->ops->columns->select(work->queue, &view, run->sources[0].filter,
								 run->tuples.filtered.memory, &passed));
		if (passed < n)
			view.rowid[0] = run->tuples.filtered.memory;
		view.nrows = passed;
	}
	run->stats.source[0].rows_out += view.nrows;
	GJ_TRY(join_tuples(run, 0, &view));
	run->tuples.marks.next += n;
	return GJ_OK;
}

GjStatus
gj_run_probe_rows(GjRun *run, uint32_t nrows, bool now)
{
	uint32_t	done = 0;
	bool		answered;

	gj_run_choose_max_tuples(run);
	if (gj_fused_fits(run))
		GJ_TRY(gj_fused_rows(run, nrows, now, &done));
	skip_rows(run, done);
	if (done < nrows)
		GJ_TRY(gj_questions_ask(run, run->columns + run->sources[0].first_column, 1, &answered));
	for (uint32_t first = done, n; first < nrows; first += n)
	{
		n = nrows - first < run->tuples.most ? nrows - first : run->tuples.most;
		GJ_TRY(gj_run_make_room(run, 0, &n));
		GJ_TRY(join_rows(run, n));
		skip_rows(run, n);
	}
	return GJ_OK;
}
