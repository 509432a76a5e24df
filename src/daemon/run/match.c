/*
 * match.c
 *	  Outer, semi and anti joins: which tuples and build rows have a match.
 *
 * One flag for each tuple of a probe lives as long as the probe.  One flag for each build row, by
 * row id, lives as long as the run.  Without a residual condition the counts of the probe are
 * enough to set the flags, and no pair is written for them.  For build rows, the table ranges
 * that tuples match are noted, and become flags at the end (mark_ranges).  With a residual
 * condition, the pairs that satisfy it set the flags.
 *
 * After the last probe chunk, each step in turn emits the build rows that it returns without a
 * probe row: unmatched ones of right, full and right anti joins, matched ones of right semi joins.
 * They are tuples whose other sources have no row, and pass the later steps before those emit
 * theirs.
 */
#include "state.h"

#include <string.h>

#define GJ_MANY_FLAGS		(16 * GJ_MAX_TUPLES)

/* ---- flags */

static GjStatus
mark_unfiltered(GjRun *run, GjRunStep *rs, const uint32_t *rowid, uint32_t nrows)
{
	GjWork	   *work = &run->work;

	for (uint32_t first = 0, n; first < nrows; first += n)
	{
		n = nrows - first < GJ_MAX_TUPLES ? nrows - first : GJ_MAX_TUPLES;
		GJ_TRY(work->ops->tables->mark_rows(work->queue, rowid + first, NULL, n, GJ_ROW_UNMATCHED,
									rs->unmatched.row_matched.memory));
	}
	return GJ_OK;
}

/* Rows that a probe can find: of the table, or, in a direct one, of the relation. */
static uint64_t
ncovered(const GjRunStep *rs)
{
	return gj_table_is_direct(&rs->table) ? rs->unmatched.nflags : rs->table.nrows;
}

GjStatus
gj_match_start(GjRun *run, GjRunStep *rs, const uint32_t *rowid, uint32_t nrows)
{
	GjWork	   *work = &run->work;
	uint64_t	all = run->relation[rs->step->source].nrows;
	bool		filtered = nrows < all;

	/* rows of several runs are counted when all have theirs */
	if (!gj_step_makes_rows(rs->step) || all == 0 || rs->ring)
		return GJ_OK;
	GJ_TRY(gj_buffer_reserve(work, &rs->unmatched.row_matched, all));
	rs->unmatched.nflags = all;
	GJ_TRY(work->ops->memory->fill(work->queue, rs->unmatched.row_matched.memory,
						   filtered ? GJ_ROW_FILTERED : GJ_ROW_UNMATCHED, all));
	if (filtered)
		GJ_TRY(mark_unfiltered(run, rs, rowid, nrows));
	if (rs->residual < 0 && rs->table.nrows > 0)
	{
		uint64_t	nbytes = (ncovered(rs) + 1) * sizeof(uint64_t);

		GJ_TRY(gj_buffer_reserve(work, &rs->unmatched.cover, nbytes));
		GJ_TRY(work->ops->memory->fill(work->queue, rs->unmatched.cover.memory, 0, nbytes));
	}
	return GJ_OK;
}

GjStatus
gj_match_probed(GjRun *run, GjRunStep *rs, uint32_t ntuples, uint64_t total)
{
	GjWork	   *work = &run->work;
	bool		decided = rs->residual < 0 && total > 0;

	if (decided && gj_step_makes_rows(rs->step))
		GJ_TRY(work->ops->tables->mark_ranges(work->queue, rs->probe.offset.memory,
									  rs->probe.first.memory, ntuples, rs->unmatched.cover.memory));
	if (!gj_step_makes_tuples(rs->step))
		return GJ_OK;
	if (decided)
		return work->ops->tables->flag_counts(work->queue, rs->probe.offset.memory, ntuples,
									  rs->probe.matched.memory);
	return work->ops->memory->fill(work->queue, rs->probe.matched.memory, 0, ntuples);
}

GjStatus
gj_match_pairs(GjRun *run, GjRunStep *rs, uint32_t ntuples, const GjView *pairs,
			   uint64_t cursor, const uint32_t *positions, uint32_t n)
{
	GjWork	   *work = &run->work;

	if (gj_step_makes_rows(rs->step))
		GJ_TRY(work->ops->tables->mark_rows(work->queue, pairs->rowid[rs->step->source], positions,
											n, GJ_ROW_MATCHED,
											(uint8_t *) rs->unmatched.row_matched.memory + rs->unmatched.first_row));
	if (!gj_step_makes_tuples(rs->step))
		return GJ_OK;
	if (!rs->join->numbers_pairs)
		return work->ops->tables->mark_rows(work->queue, rs->pairs.tuple.memory, positions, n, 1,
									rs->probe.matched.memory);
	return work->ops->tables->mark_tuples(work->queue, rs->probe.offset.memory, ntuples, cursor,
								  positions, n, rs->probe.matched.memory);
}

/* ---- tuples by themselves */

/* The step's source has no row in n tuples of a view that goes on. */
static GjStatus
add_no_row(GjRun *run, GjRunStep *rs, uint32_t source, uint32_t n, GjView *view)
{
	if (!(rs->kept >> source & 1))
		return GJ_OK;
	view->rowid[source] = rs->pairs.rowid[source].memory;
	view->no_row |= 1u << source;
	/* every byte of GJ_NO_ROW is 0xFF */
	return run->work.ops->memory->fill(run->work.queue, rs->pairs.rowid[source].memory, 0xFF,
							   (uint64_t) n * sizeof(uint32_t));
}

GjStatus
gj_match_tuples(GjRun *run, uint32_t i, const GjView *view)
{
	GjRunStep  *rs = &run->steps[i];
	GjWork	   *work = &run->work;
	const uint32_t *selected = rs->probe.selected.memory;
	uint32_t	total;

	work->ops->queues->phase(work->queue, GJ_PHASE_PROBE);
	GJ_TRY(work->ops->columns->select_flags(work->queue, rs->probe.matched.memory, view->nrows,
								   gj_step_wants_matched(rs->step), rs->probe.selected.memory,
								   &total));
	for (uint32_t first = 0, n; first < total; first += n)
	{
		GjView		tuples = *view;

		GJ_STOP_CHECK(run);
		n = total - first < run->tuples.most ? total - first : run->tuples.most;
		GJ_TRY(gj_run_make_room(run, i + 1, &n));
		/* all of them at once: as they are */
		if (n < view->nrows)
			GJ_TRY(gj_run_pick(run, rs, &tuples, selected + first, n,
							   rs->joined & rs->kept));
		GJ_TRY(add_no_row(run, rs, rs->step->source, n, &tuples));
		for (uint32_t s = 0; rs->makes >> s; s++)
			if (rs->makes >> s & 1)
				GJ_TRY(add_no_row(run, rs, s, n, &tuples));
		GJ_TRY(gj_run_pass_on(run, i, &tuples));
	}
	return GJ_OK;
}

/* ---- rows by themselves */

/* What takes rows of step i, for which there is room behind it. */
typedef GjStatus (*GjTakeRows) (GjRun *run, uint32_t i, GjView *rows);

/* Hands over the rows base + selected[0 .. total). */
static GjStatus
pass_rows(GjRun *run, uint32_t i, const GjColumn *columns, uint32_t base, uint32_t total,
		  GjTakeRows take)
{
	GjRunStep  *rs = &run->steps[i];
	GjWork	   *work = &run->work;
	const uint32_t *selected = rs->probe.selected.memory;
	uint32_t	source = rs->step->source;
	uint32_t	none = rs->joined | rs->makes;

	for (uint32_t first = 0, n; first < total; first += n)
	{
		GjView		rows = {.columns = columns};

		GJ_STOP_CHECK(run);
		n = total - first < run->tuples.most ? total - first : run->tuples.most;
		GJ_TRY(gj_run_make_room(run, i + 1, &n));
		rows.nrows = n;
		for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
			if (none >> s & 1)
				GJ_TRY(add_no_row(run, rs, s, n, &rows));
		if (rs->kept >> source & 1)
		{
			rows.rowid[source] = rs->pairs.rowid[source].memory;
			GJ_TRY(work->ops->columns->pick(work->queue, rs->pairs.rowid[source].memory, NULL, base,
								   selected + first, n));
		}
		GJ_TRY(take(run, i, &rows));
	}
	return GJ_OK;
}

/* Completes the flags of a step's rows. */
static GjStatus
finish_flags(GjRun *run, GjRunStep *rs)
{
	GjWork	   *work = &run->work;

	work->ops->queues->phase(work->queue, GJ_PHASE_PROBE);
	if (rs->unmatched.cover.memory)
		GJ_TRY(work->ops->tables->cover_rows(work->queue, &rs->table, rs->unmatched.cover.memory,
											 (uint32_t) ncovered(rs), run->host->stop,
											 run->host->arg,
											 rs->unmatched.row_matched.memory));
	gj_buffer_free(work, &rs->unmatched.cover);
	return GJ_OK;
}

/* Flags that are looked at at a time: where there is plenty of memory more, for few may come out. */
static uint32_t
most_flags(GjRun *run)
{
	uint32_t	n = run->tuples.most;

	return n >= GJ_MAX_TUPLES && run->work.ops->most_tuples > GJ_MAX_TUPLES &&
		gj_lease_free(run->work.lease) / GJ_LITTLE_OF >= (uint64_t) GJ_MANY_FLAGS * sizeof(uint32_t) ?
		GJ_MANY_FLAGS : n;
}

/* Hands over those of rows first .. end-1, as flags are numbered, that come out by themselves. */
static GjStatus
match_rows_of_step(GjRun *run, uint32_t i, const GjColumn *columns, uint64_t first, uint64_t end,
				   GjTakeRows take)
{
	GjRunStep  *rs = &run->steps[i];
	GjWork	   *work = &run->work;
	uint32_t	most = most_flags(run);
	uint32_t	piece = end - first < most ? (uint32_t) (end - first) : most;

	GJ_TRY(gj_run_reserve_positions(run, &rs->probe.selected, &piece));
	for (uint64_t base = first; base < end; base += piece)
	{
		uint32_t	n = end - base < piece ? (uint32_t) (end - base) : piece;
		uint32_t	total;

		GJ_STOP_CHECK(run);
		work->ops->queues->phase(work->queue, GJ_PHASE_PROBE);
		GJ_TRY(work->ops->columns->select_flags(work->queue,
												(uint8_t *) rs->unmatched.row_matched.memory + base, n,
									   gj_step_wants_matched(rs->step) ? GJ_ROW_MATCHED :
									   GJ_ROW_UNMATCHED, rs->probe.selected.memory, &total));
		GJ_TRY(pass_rows(run, i, columns, (uint32_t) (base - rs->unmatched.first_row), total,
						 take));
	}
	return GJ_OK;
}

/* The probe columns have no rows any more, but a kind and a width. */
static void
describe_no_rows(GjRun *run)
{
	const GjSource *source = &run->sources[0];

	for (uint32_t c = source->first_column; c < source->first_column + source->ncolumns; c++)
		run->columns[c] = (GjColumn) {.kind = run->types[c].kind,.width = run->types[c].width};
}

/* What the rows of steps are seen through. */
static GjStatus
start_rows(GjRun *run, const GjColumn **columns)
{
	gj_fused_give_room(run);
	gj_run_choose_max_tuples(run);
	describe_no_rows(run);
	return gj_run_set_columns(run, columns);
}

GjStatus
gj_match_rows(GjRun *run)
{
	const GjColumn *columns = NULL;

	for (uint32_t i = 0; i < run->nsteps; i++)
	{
		GjRunStep  *rs = &run->steps[i];

		if (!rs->unmatched.row_matched.memory)
			continue;
		if (!columns)
			GJ_TRY(start_rows(run, &columns));
		GJ_TRY(finish_flags(run, rs));
		GJ_TRY(match_rows_of_step(run, i, columns, 0, rs->unmatched.nflags,
								  gj_run_pass_on));
	}
	return GJ_OK;
}

/* ---- groups of rows before any tuple has come */

static GjStatus
make_groups(GjRun *run, uint32_t i, GjView *rows)
{
	return run->sink->make_groups(run, rows, NULL);
}

GjStatus
gj_match_make_groups(GjRun *run, uint32_t i)
{
	const GjColumn *columns;

	GJ_TRY(start_rows(run, &columns));
	return match_rows_of_step(run, i, columns, 0, run->steps[i].unmatched.nflags, make_groups);
}

/* ---- rows by themselves, where several devices have all of them */

uint64_t
gj_run_nflags(const GjRun *run, uint32_t i)
{
	const GjRunStep *rs = &run->steps[i];

	if (gj_run_is_ranged(run, i) && gj_step_makes_rows(rs->step))
		return gj_ranges_nflags(run);
	return rs->unmatched.row_matched.memory ? rs->unmatched.nflags : 0;
}

void
gj_run_flags_to_take(const GjRun *run, uint32_t i, uint32_t number, uint32_t n, uint64_t *first,
					 uint64_t *end)
{
	const GjRunStep *rs = &run->steps[i];
	uint64_t	part = rs->unmatched.nflags / n;

	*first = part * number;
	*end = number + 1 < n ? *first + part : rs->unmatched.nflags;
	if (rs->ring)
		gj_ring_range(rs, first, end);
	/* its rows are among those of all */
	if (gj_run_is_ranged(run, i))
	{
		*first = 0;
		*end = gj_ranges_nflags(run);
	}
}

void
gj_run_rows_to_send(const GjRun *run, uint32_t i, uint64_t *first, uint64_t *end)
{
	if (!gj_run_is_ranged(run, i))
		return;
	*first = 0;
	*end = gj_ranges_nown(run);
}

GjStatus
gj_run_finish_flags(GjRun *run, uint32_t i)
{
	GJ_TRY(run->intake_ops->flush(run));
	return finish_flags(run, &run->steps[i]);
}

GjStatus
gj_run_copy_flags(GjRun *run, uint32_t i, uint64_t first, uint64_t n, uint8_t *flags, bool out)
{
	GjWork	   *work = &run->work;
	uint8_t    *at = (uint8_t *) run->steps[i].unmatched.row_matched.memory + first;

	if (gj_run_is_ranged(run, i))
		return gj_ranges_copy_flags(run, i, first, n, flags, out);
	GJ_STOP_CHECK(run);
	GJ_TRY(out ? work->ops->memory->copy_out(work->queue, flags, at, n) :
		   work->ops->memory->copy_in(work->queue, at, flags, n));
	return work->ops->queues->sync(work->queue);
}

GjStatus
gj_run_some_rows(GjRun *run, uint32_t i, uint64_t first, uint64_t end)
{
	GjRunStep  *rs = &run->steps[i];
	const GjColumn *columns;

	GJ_TRY(start_rows(run, &columns));
	GJ_TRY(match_rows_of_step(run, i, columns, first, end, gj_run_pass_on));
	/* nothing of it is left for gj_match_rows */
	gj_buffer_free(&run->work, &rs->unmatched.row_matched);
	return GJ_OK;
}

/* ---- ends */

bool
gj_match_ends_run(const GjRun *run, const GjRunStep *rs, uint32_t nrows)
{
	/* no tuple gets past this step, and none comes out of it at the end */
	switch (rs->step->join_type)
	{
		case GJ_JOIN_INNER:
		case GJ_JOIN_SEMI:
		case GJ_JOIN_RIGHT_SEMI:
			break;
		case GJ_JOIN_RIGHT:
		case GJ_JOIN_RIGHT_ANTI:
			if (nrows > 0)
				return false;
			break;
		default:
			return false;
	}
	for (rs++; rs < run->steps + run->nsteps; rs++)
		if (gj_step_makes_rows(rs->step) && !gj_step_wants_matched(rs->step))
			return false;
	return true;
}

void
gj_match_free(GjWork *work, GjRunStep *rs)
{
	gj_buffer_free(work, &rs->unmatched.row_matched);
	gj_buffer_free(work, &rs->unmatched.cover);
}
