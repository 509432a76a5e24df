/*
 * cached_probe.c
 *	  Cached probe rows: those that an exchange has brought to a device, kept for later queries.
 *
 * A run that exchanges rows notes which resident fragments the probe source is made of, until the
 * source has ended (fragment.c).  An earlier query may have exchanged the rows of these fragments
 * by the same keys and filter.  If each device still has its part of them, the parts pass the
 * steps from there, and nothing is split or sent.
 *
 * Rows are kept when they are exchanged for the second time, so that a query that runs once does
 * not pay for it.  As they pass the steps they are copied to a relation, which then goes to the
 * store as build sides do (cached.c).  They have the same kind of key as build sides.  They use
 * free memory, or that of build sides long unused.  A run that gets many more rows than the mean,
 * or is short of memory itself, keeps none, and tells the other runs.
 */
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

/*
 * Parts are never quite equal, and rows without a key stay where they are: one row in so many more
 * is expected, or allowed.
 */
#define GJ_STAY_SPARE		16
#define GJ_STAY_ALLOWED		2

const GjStep *
gj_exchanged_by(const GjRun *run)
{
	const GjSplitSide *side = gj_split_side(run, 0);

	/*
	 * What references point to is not kept.  And where rows are returned before the end memory must
	 * not run out: what an exchange reserves is not for others.
	 */
	return side && run->intake->exchange->plan.staying && side->nrefs == 0 &&
		!run->sink->returns_rows ?
		run->steps[run->intake->exchange->plan.step].step : NULL;
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

/* True if there is room for n rows, and as much again for what the run takes beside them. */
static bool
can_keep(const GjRun *run, uint64_t n)
{
	uint64_t	nbytes = bytes_of(gj_split_side(run, 0), n);

	return nbytes <= gj_lease_free(run->work.lease) / 2 &&
		gj_side_has_room(run->intake->side[0].store, run->intake->side[0].made, nbytes);
}

/* Keeps nothing; nor does any other run, for a part is of no use without the others. */
static void
give_up(void *arg)
{
	GjRun	   *run = arg;
	GjRunExchange *x = run->intake->exchange;

	__atomic_store_n(x->plan.staying, false, __ATOMIC_RELAXED);
	gj_relation_free(&run->work, &x->stay);
	x->most_stay = 0;
}

/* The same, and for a while it is not tried again. */
static void
refuse(void *arg)
{
	GjRun	   *run = arg;

	gj_side_refuse(run->intake->side[0].store, run->intake->side[0].made);
	give_up(run);
}

void
gj_exchanged_plan(GjRun **runs, uint32_t nruns)
{
	uint64_t	nrows = 0;
	bool		keep = true;

	for (uint32_t r = 0; r < nruns; r++)
	{
		nrows += gj_count_rows(runs[r]->intake->resident[0].uses,
							   runs[r]->intake->resident[0].nuses);
		keep &= runs[r]->intake->side[0].made != NULL;
	}
	nrows = nrows / nruns + 1;
	if (!keep)
		return;
	/* each notes it */
	for (uint32_t r = 0; r < nruns; r++)
		keep &= gj_side_again(runs[r]->intake->side[0].store, runs[r]->intake->side[0].made);
	for (uint32_t r = 0; r < nruns && keep; r++)
		keep = can_keep(runs[r], nrows + nrows / GJ_STAY_ALLOWED);
	for (uint32_t r = 0; r < nruns && keep; r++)
	{
		GjRunExchange *x = runs[r]->intake->exchange;
		const GjRelation *probe_side = &x->side[0].stage;

		keep = gj_relation_init(&x->stay, probe_side->types, probe_side->ncolumns, 0);
		x->stay.hint = nrows + nrows / GJ_STAY_SPARE;
		x->most_stay = nrows + nrows / GJ_STAY_ALLOWED;
		runs[r]->work.lease->spare = refuse;
		runs[r]->work.lease->spare_arg = runs[r];
	}
	if (keep)
		__atomic_store_n(runs[0]->intake->exchange->plan.staying, true, __ATOMIC_RELAXED);
}

/* True if the run keeps its part, and no other one has given up. */
static bool
keeps(GjRun *run)
{
	GjRunExchange *x = run->intake->exchange;

	if (x->most_stay == 0)
		return false;
	if (__atomic_load_n(x->plan.staying, __ATOMIC_RELAXED))
		return true;
	run->work.lease->spare = NULL;
	give_up(run);
	return false;
}

/* Adds rows that columns describe to a relation, without what the lease can spare for others. */
static GjStatus
append(GjRun *run, GjRelation *relation, const GjColumn *columns, uint32_t nrows)
{
	GjLease    *lease = run->work.lease;
	void		(*spare) (void *arg) = lease->spare;
	GjStatus	status;

	lease->spare = NULL;
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_TRANSFER);
	status = gj_relation_append_rows(&run->work, relation, columns, nrows, 0, 0);
	lease->spare = spare;
	return status;
}

GjStatus
gj_exchanged_add(GjRun *run, const GjColumn *columns, uint32_t nrows)
{
	GjRunExchange *x = run->intake->exchange;
	GjStatus	status = GJ_OUT_OF_MEMORY;

	if (nrows == 0 || !keeps(run))
		return GJ_OK;
	/* one device may get most rows; and others' data must not go for them */
	if (x->stay.nrows + nrows <= x->most_stay &&
		(x->stay.nrows + nrows <= x->stay.hint ||
		 gj_lease_free(run->work.lease) >= bytes_of(&x->side[0], 3 * x->most_stay)))
		status = append(run, &x->stay, columns, nrows);
	if (status != GJ_OUT_OF_MEMORY && status != GJ_TOO_LARGE)
		return status;
	run->work.lease->spare = NULL;
	refuse(run);
	return GJ_OK;
}

/* True if there is much memory without rows: few have passed a filter, or it was doubled. */
static bool
is_too_large(const GjRelation *relation)
{
	uint64_t	nbytes = 0;
	uint64_t	used = 0;

	for (uint32_t c = 0; c < relation->ncolumns; c++)
	{
		nbytes += relation->columns[c].data.nbytes;
		used += relation->columns[c].data.memory ? relation->nrows * relation->types[c].width : 0;
	}
	return used < nbytes / 4 * 3;
}

/* Leaves the memory that rows are not in. */
static GjStatus
trim(GjRun *run)
{
	GjRunExchange *x = run->intake->exchange;
	GjColumn	columns[GJ_MAX_COLUMNS];
	GjRelation	trimmed;
	GjStatus	status;

	if (!is_too_large(&x->stay) ||
		gj_lease_free(run->work.lease) < bytes_of(&x->side[0], x->stay.nrows) ||
		!gj_relation_init(&trimmed, x->stay.types, x->stay.ncolumns, 0))
		return GJ_OK;
	trimmed.hint = x->stay.nrows;
	gj_relation_columns(&x->stay, 0, columns);
	status = append(run, &trimmed, columns, (uint32_t) x->stay.nrows);
	gj_relation_free(&run->work, status == GJ_OK ? &x->stay : &trimmed);
	if (status == GJ_OK)
		x->stay = trimmed;
	return status == GJ_OUT_OF_MEMORY ? GJ_OK : status;
}

GjStatus
gj_exchanged_keep(GjRun *run, uint64_t nrows)
{
	GjRunExchange *x = run->intake->exchange;
	GjRunSide  *rside = &run->intake->side[0];
	GjSide	   *side = rside->made;

	/* all of them, or a later run would miss some */
	if (!keeps(run) || x->stay.nrows != nrows)
		return GJ_OK;
	GJ_TRY(trim(run));
	run->work.lease->spare = NULL;
	if (!gj_side_describe(run, 0, &x->stay, nrows))
		return GJ_OK;
	GJ_TRY(gj_side_publish_made(run, 0));
	/* the memory is the side's, unless somebody was faster, or there is no room any more */
	x->stay.borrowed = rside->kept != NULL;
	if (!rside->kept)
		gj_side_refuse(rside->store, side);
	return GJ_OK;
}

/* ---- using */

GjStatus
gj_exchanged_join(GjRun *run)
{
	const GjSide *side = run->intake->side[0].kept;
	const GjRelation rows = {.ncolumns = side->ncolumns,.columns = side->columns,
	.types = run->types + run->sources[0].first_column};
	GjColumn	columns[GJ_MAX_COLUMNS];

	run->stats.source[0].rows_in += side->nread;
	run->intake->exchange->rows_received += side->nloaded;
	gj_relation_columns(&rows, 0, columns);
	run->arrival.rows_ahead = side->nloaded;
	GJ_TRY(gj_source_rows_behind(run, &GJ_ALL_ROWS(0, columns, side->nloaded, false)));
	run->arrival.rows_ahead = 0;
	/* nothing reads the fragments themselves */
	gj_run_drop_uses(&run->intake->resident[0], run->intake->resident[0].nuses);
	return GJ_OK;
}
