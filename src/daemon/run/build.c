/*
 * build.c
 *	  Finishes a build side when all of its rows have come: its filter, its keys, and what the
 *	  join makes of them.
 *
 * The filter runs over pieces of the relation, each seen through columns that start at the piece.
 * It leaves the ids of the rows that pass.
 */
#include "state.h"

#include <string.h>

GjStatus
gj_run_fail_build(GjRun *run)
{
	if (gj_run_fails_at(run, GJ_FAIL_MEMORY))
		return gj_run_fail(run, GJ_OUT_OF_MEMORY, "injected");
	if (gj_run_fails_at(run, GJ_FAIL_BUILD))
		return gj_run_fail(run, GJ_DEVICE_ERROR, "injected while building");
	return GJ_OK;
}

/* A view of rows first, first+1, ... of the source alone. */
static GjStatus
view_piece(GjRun *run, uint32_t source, uint64_t first, uint32_t nrows, GjView *view)
{
	memset(view, 0, sizeof(*view));
	gj_relation_columns(&run->relation[source], first,
						run->columns + run->sources[source].first_column);
	view->nrows = nrows;
	return gj_run_set_columns(run, &view->columns);
}

static GjStatus
filter_rows(GjRun *run, GjSideBuild *build)
{
	GjWork	   *work = &run->work;
	uint64_t	nrows = run->relation[build->source].nrows;
	uint32_t	most = run->work.ops->most_tuples;
	uint32_t	piece = nrows < most ? (uint32_t) nrows : most;

	GJ_TRY(gj_buffer_grow(work, &build->rowid, 0, nrows * sizeof(uint32_t), 0));
	GJ_TRY(gj_run_reserve_positions(run, &build->positions, &piece));
	for (uint64_t base = 0; base < nrows; base += piece)
	{
		uint32_t	n = (uint32_t) (nrows - base < piece ? nrows - base : piece);
		uint32_t	passed;
		GjView		view;

		GJ_STOP_CHECK(run);
		GJ_TRY(view_piece(run, build->source, base, n, &view));
		GJ_TRY(work->ops->columns->select(work->queue, &view, run->sources[build->source].filter,
								 build->positions.memory, &passed));
		if (passed == 0)
			continue;
		GJ_TRY(work->ops->columns->pick(work->queue,
										(uint32_t *) build->rowid.memory + build->nrows,
							   NULL, (uint32_t) base, build->positions.memory, passed));
		build->nrows += passed;
	}
	gj_buffer_free(work, &build->positions);
	return GJ_OK;
}

GjStatus
gj_build_view(GjRun *run, const GjSideBuild *build, GjView *view)
{
	GJ_TRY(view_piece(run, build->source, 0, build->nrows, view));
	view->rowid[build->source] = build->rowid.memory;
	return GJ_OK;
}

GjStatus
gj_build_keys(GjRun *run, GjSideBuild *build, const GjRunStep *rs, GjKeys *keys)
{
	GjWork	   *work = &run->work;
	GjView		view;

	memset(keys, 0, sizeof(*keys));
	keys->nkeys = rs->nbuild_operands;
	keys->nrows = build->nrows;
	for (uint32_t k = 0; k < rs->nbuild_operands; k++)
	{
		GJ_TRY(gj_buffer_grow(work, &build->value[k], 0,
							  (uint64_t) build->nrows * sizeof(int64_t), 0));
		keys->value[k] = build->value[k].memory;
	}
	GJ_TRY(gj_buffer_grow(work, &build->null, 0, build->nrows, 0));
	keys->null = build->null.memory;

	GJ_TRY(gj_build_view(run, build, &view));
	for (uint32_t first = 0, n; first < build->nrows; first += n)
	{
		n = build->nrows - first < work->ops->most_tuples ? build->nrows - first :
			work->ops->most_tuples;
		GJ_STOP_CHECK(run);
		if (rs->join->hashes)
			GJ_TRY(work->ops->columns->keys(work->queue, &view, first, n, rs->step->build_keys,
											keys));
		else
			GJ_TRY(work->ops->columns->ordered_keys(work->queue, &view, first, n, rs->build_operand,
													keys));
	}
	return GJ_OK;
}

/* Columns that only the filter and the keys read are not needed any longer. */
static void
drop_columns(GjRun *run, uint32_t source)
{
	uint32_t	first = run->sources[source].first_column;

	for (uint32_t c = 0; c < run->sources[source].ncolumns; c++)
		if (!run->late[first + c])
			gj_relation_drop(&run->work, &run->relation[source], c);
	gj_relation_columns(&run->relation[source], 0, run->columns + first);
}

static GjStatus
build_source(GjRun *run, GjSideBuild *build, GjRunStep *rs)
{
	GjRelation *relation = &run->relation[build->source];
	const uint32_t *rowid;

	if (relation->nrows > 0)
	{
		if (run->sources[build->source].filter >= 0)
			GJ_TRY(filter_rows(run, build));
		else
			build->nrows = (uint32_t) relation->nrows;
	}
	run->stats.source[build->source].rows_out = build->nrows;
	rowid = build->rowid.memory;
	if (build->nrows > 0)
		GJ_TRY(rs->join->build(run, build, rs));
	GJ_TRY(gj_match_start(run, rs, rowid, build->nrows));
	/* other runs may have rows */
	if (rs->nmatchable == 0 && !rs->ring && !(run->tuples.marks.complete && rs == run->steps) &&
		gj_match_ends_run(run, rs, build->nrows))
		run->complete = true;
	drop_columns(run, build->source);
	return rs->join->improve(run, build->source, rs);
}

GjRunStep *
gj_run_step_of(GjRun *run, uint32_t source)
{
	return &run->steps[gj_program_step_of(run->program, source) -
					   gj_program_array(run->program, GjStep, steps)];
}

GjStatus
gj_run_build(GjRun *run, uint32_t source)
{
	GjSideBuild build = {.source = source};
	GjStatus	status = build_source(run, &build, gj_run_step_of(run, source));

	gj_buffer_free(&run->work, &build.rowid);
	gj_buffer_free(&run->work, &build.positions);
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
		gj_buffer_free(&run->work, &build.value[k]);
	gj_buffer_free(&run->work, &build.null);
	return status;
}
