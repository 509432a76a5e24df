/*
 * fused_places.c
 *	  Groups by places: rows of a fused pass are added to groups that integer keys address directly,
 *	  instead of being looked up in a table, or coming back.
 *
 * That takes memory for each value between the least and the greatest key.  So it must not be much
 * more than what the rows would take.  Groups found before are added as well, and the places become
 * groups after each call (GjSinkOps.replace_groups): for everything else nothing differs.
 *
 * Group codes of a column of texts are such integers, too (source/cached_codes.c).  The device is
 * shown them instead of the texts.
 */
#include "state.h"

#include <stdlib.h>

#include "device/places.h"

/* Fewer rows are looked up as fast; beside groups of earlier calls that must be added, too. */
#define GJ_PLACES_ROWS		(64u * 1024)
/* Fewer groups are added up in the nearest memory of a GPU. */
#define GJ_PLACES_GROUPS	256
/* Places, at most, to a row or group. */
#define GJ_PLACES_FACTOR	2

/* What makes groups of places. */
typedef struct GjPlacesCall
{
	const GjFusedPlan *plan;
	GjPlaces	places;
	GjBuffer	memory;
	uint32_t	n;
} GjPlacesCall;

static GjStatus
make_groups(GjRun *run, const GjGroups *to, void *arg)
{
	const GjPlacesCall *call = arg;
	const GjRunFused *fused = run->fused;

	return run->work.ops->places->groups(run->work.queue, call->plan, fused->part, fused->nparts,
										 &call->places, call->memory.memory, call->n, to);
}

/*
 * Adds rows and groups to places, and makes groups of these; keys: as for GjSinkOps.replace_groups.
 * Not done if they do not suit.
 */
static GjStatus
add_to_places(GjRun *run, GjPlacesCall *call, const GjGroups *groups, const GjGroups *keys,
			  bool *done)
{
	GjRunFused *fused = run->fused;
	GjWork	   *work = &run->work;

	GJ_TRY(gj_buffer_grow(work, &call->memory, 0, call->places.nbytes, 0));
	GJ_TRY(work->ops->places->add(work->queue, call->plan, run->columns, fused->part,
								  fused->nparts, groups, &call->places, call->memory.memory,
								  &call->n));
	if (call->n == UINT32_MAX)
		return GJ_OK;
	GJ_STOP_CHECK(run);
	work->ops->queues->phase(work->queue, GJ_PHASE_AGGREGATE);
	GJ_TRY(run->sink->replace_groups(run, call->n, make_groups, call, keys));
	run->stats.group_places++;
	*done = true;
	return GJ_OK;
}

/* Groups the rows of the call by places, if these suit. */
static GjStatus
group_by_places(GjRun *run, const GjFusedPlan *plan, const GjGroups *groups, const GjGroups *keys,
				bool *done)
{
	GjRunFused *fused = run->fused;
	GjWork	   *work = &run->work;
	GjPlacesCall call = {.plan = plan,.memory = {NULL, 0}};
	GjStatus	status;

	GJ_TRY(work->ops->places->plan(work->queue, plan, fused->part, fused->nparts, groups,
								   ((uint64_t) fused->nrows + groups->rows.nrows) *
								   GJ_PLACES_FACTOR, &call.places));
	/* nothing resident makes room */
	if (call.places.nplaces == 0 || call.places.nbytes > gj_lease_free(work->lease))
		return GJ_OK;
	GJ_STOP_CHECK(run);
	status = add_to_places(run, &call, groups, keys, done);
	gj_buffer_free(work, &call.memory);
	/* a table takes less, and the keys of texts may be too long together */
	return status == GJ_OUT_OF_MEMORY || status == GJ_TOO_LARGE ? GJ_OK : status;
}

bool
gj_fused_may_have_places(const GjRun *run, const GjGroups *groups)
{
	return groups && run->fused->many_groups && groups->rows.nrows >= GJ_PLACES_GROUPS &&
		run->fused->plan.ngroup_keys == 1 && gj_places_suit(&run->fused->plan, groups);
}

GjStatus
gj_fused_places(GjRun *run, const GjGroups *groups, bool *done)
{
	GjRunFused *fused = run->fused;

	*done = false;
	if (!fused->many_groups || !gj_places_suit(&fused->plan, groups) ||
		groups->rows.nrows < GJ_PLACES_GROUPS || fused->nrows < GJ_PLACES_ROWS ||
		fused->nrows < groups->rows.nrows)
		return GJ_OK;
	GJ_TRY(group_by_places(run, &fused->plan, groups, NULL, done));
	/* to find out anew in each call that they do not suit is dear */
	fused->many_groups = *done;
	return GJ_OK;
}

/* ---- group codes */

/* True if an expression or term may read column c, or anything. */
static bool
may_read(const GjFusedExpr *e, int c)
{
	switch (e->form)
	{
		case GJ_FUSED_NONE:
		case GJ_FUSED_PRODUCTS:
		case GJ_FUSED_CASE:
		case GJ_FUSED_OR:
			/* no columns, or factors and terms */
			return false;
		case GJ_FUSED_CODE:
			return true;
		default:
			return e->a == c || e->b == c;
	}
}

/* True if no more than groups is made of column c of the program. */
static bool
only_groups(const GjFusedPlan *plan, int c)
{
	bool		others = plan->filter.form == GJ_FUSED_CODE;

	for (uint32_t e = 0; e < plan->nexprs; e++)
		others |= e != plan->group_expr[0] && may_read(&plan->exprs[e], c);
	for (uint32_t t = 0; t < plan->nterms; t++)
		others |= may_read(&plan->terms[t], c);
	for (uint32_t f = 0; f < plan->nfactors; f++)
		others |= plan->factors[f].column == c;
	return !others;
}

/* Column c of the program, which is one of the probe source, in part p. */
static GjColumn *
column_of_part(const GjRun *run, uint32_t p, int c)
{
	const GjSource *probe_side = &run->sources[0];

	return &run->fused->columns[(size_t) p * probe_side->ncolumns +
								(uint32_t) c - probe_side->first_column];
}

/* Codes of a part, as integers that a device groups by. */
static GjColumn
column_of_codes(const uint32_t *codes)
{
	return (GjColumn) {.data = codes,.kind = GJ_INT4,.width = sizeof(int32_t),
		.packed = sizeof(uint32_t),.narrow = 1,.factor = 1};
}

GjStatus
gj_fused_coded(GjRun *run, bool *done)
{
	GjRunFused *fused = run->fused;
	GjFusedPlan plan = fused->plan;
	GjGroups	none = {.rows = {.nkeys = 1}};
	GjColumn   *texts;
	int			column;
	GjStatus	status;

	*done = false;
	if (!run->arrival.coded || fused->nrows < GJ_PLACES_ROWS)
		return GJ_OK;
	column = plan.exprs[plan.group_expr[0]].a;
	for (uint32_t p = 0; p < fused->nparts; p++)
		if (!fused->codes[p])
			return GJ_OK;
	if (!only_groups(&plan, column))
		return GJ_OK;
	texts = malloc(fused->nparts * sizeof(GjColumn) + 1);
	if (!texts)
		return GJ_OUT_OF_HOST_MEMORY;
	plan.group_how[0] = GJ_GROUP_INTEGER;
	plan.nnumbers = run->arrival.coded->rows.nrows;
	for (uint32_t p = 0; p < fused->nparts; p++)
	{
		GjColumn   *shown = column_of_part(run, p, column);

		texts[p] = *shown;
		*shown = column_of_codes(fused->codes[p]);
	}
	status = group_by_places(run, &plan, &none, run->arrival.coded, done);
	for (uint32_t p = 0; p < fused->nparts; p++)
		*column_of_part(run, p, column) = texts[p];
	free(texts);
	return status;
}
