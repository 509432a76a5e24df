/*
 * run_exchanged.c
 *	  Outer rows that stay where an exchange has brought them.
 *
 * A run that exchanges rows notes which resident fragments the outer source is made of, until it has
 * ended (run_resident.c).  If their rows were exchanged before, by the same keys and filter, and each device
 * still has its part, the parts are what the exchange would make of them: they pass the steps from there,
 * and nothing is split, nor sent.
 *
 * Rows are kept that are exchanged for the second time, so that who asks once does not pay for it: as
 * they pass the steps they are copied to the end of a relation, which then goes to the store, as inner
 * sides do (run_side.c), found by the same kind of name.  They take no room that anything else has, and
 * make room as sides do.
 */
#include "run.h"
#include "run_parcel.h"

#include <stdlib.h>
#include <string.h>

/* Parts are never quite equal: there is room for one row in so many more. */
#define GJ_STAY_SPARE		16

const GjStep *
gj_exchanged_by(const GjRun *run)
{
	const GjSplitSide *side = gj_split_side(run, 0);

	/*
	 * What references point to is not kept.  And where rows are returned before the end memory must not run
	 * out: what an exchange reserves is not for others.
	 */
	return side && side->nrefs == 0 && run->program->output != GJ_OUTPUT_ROWS ?
		run->steps[run->exchange->plan.step].step : NULL;
}

/* ---- keeping */

/* Bytes of n rows as they are kept. */
static uint64_t
bytes_of(const GjSplitSide *side, uint64_t n)
{
	uint64_t	a_row = 0;

	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
		if (side->sent[c])
			a_row += side->stage.types[c].width + (side->stage.types[c].nullable ? 1 : 0);
	return n * a_row;
}

/* True if the run can keep n rows: beside what the exchange needs there is room for them and as much again. */
static bool
can_keep(const GjRun *run, uint64_t n)
{
	uint64_t	nbytes = bytes_of(gj_split_side(run, 0), n);

	return run->side[0].made && nbytes <= gj_resident_room(run->side[0].store) && nbytes <= gj_lease_free(run->work.lease) / 2;
}

void
gj_exchanged_plan(GjRun **runs, uint32_t nruns)
{
	uint64_t	nrows = 0;
	bool		keep = true;

	for (uint32_t r = 0; r < nruns; r++)
		nrows += gj_count_rows(runs[r]->resident[0].uses, runs[r]->resident[0].nuses);
	nrows = nrows / nruns + nrows / nruns / GJ_STAY_SPARE + 1;
	for (uint32_t r = 0; r < nruns; r++)
		keep &= can_keep(runs[r], nrows);
	/* each notes it */
	for (uint32_t r = 0; r < nruns; r++)
		if (runs[r]->side[0].made)
			keep &= gj_side_again(runs[r]->side[0].store, runs[r]->side[0].made);
	for (uint32_t r = 0; r < nruns && keep; r++)
	{
		GjRunExchange *x = runs[r]->exchange;
		const GjRelation *outer = &x->side[0].stage;

		x->stays = gj_relation_init(&x->stay, outer->types, outer->ncolumns, 0);
		/* who knows how many pass a filter */
		x->stay.hint = x->side[0].filter < 0 ? nrows : 0;
	}
}

GjStatus
gj_exchanged_add(GjRun *run, uint32_t nrows)
{
	GjRunExchange *x = run->exchange;
	GjStatus	status;

	if (!x->stays || nrows == 0)
		return GJ_OK;
	run->work.ops->phase(run->work.queue, GJ_PHASE_TRANSFER);
	status = gj_relation_append_rows(&run->work, &x->stay, run->columns + run->sources[0].first_column,
									 nrows, 0, 0);
	if (status != GJ_OUT_OF_MEMORY && status != GJ_TOO_LARGE)
		return status;
	/* the run does without */
	gj_relation_free(&run->work, &x->stay);
	x->stays = false;
	return GJ_OK;
}

GjStatus
gj_exchanged_keep(GjRun *run, uint64_t nrows)
{
	GjRunExchange *x = run->exchange;
	GjRunSide  *rside = &run->side[0];
	GjSide	   *side = rside->made;

	/* all of them, or a later run would miss some */
	if (!x->stays || x->stay.nrows != nrows)
		return GJ_OK;
	side->columns = malloc((x->stay.ncolumns + 1) * sizeof(GjRelationColumn));
	if (!side->columns)
		return GJ_OK;
	memcpy(side->columns, x->stay.columns, x->stay.ncolumns * sizeof(GjRelationColumn));
	side->ncolumns = x->stay.ncolumns;
	side->nloaded = side->nrows = (uint32_t) nrows;
	side->nread = run->stats.source[0].rows_in;
	GJ_TRY(gj_side_publish_made(run, 0));
	/* the memory is the side's */
	x->stay.borrowed = rside->kept != NULL;
	return GJ_OK;
}

/* ---- using */

GjStatus
gj_exchanged_join(GjRun *run)
{
	const GjSide *side = run->side[0].kept;
	const GjRelation rows = {.ncolumns = side->ncolumns,.columns = side->columns,
	.types = run->types + run->sources[0].first_column};

	run->stats.source[0].rows_in += side->nread;
	run->exchange->rows_received += side->nloaded;
	gj_relation_columns(&rows, 0, run->columns + run->sources[0].first_column);
	run->rows_ahead = side->nloaded;
	GJ_TRY(gj_run_outer_rows(run, (uint32_t) side->nloaded, true));
	run->rows_ahead = 0;
	return GJ_OK;
}
