/*
 * fused_places.c
 *	  Groups by places: rows of a fused pass are added to groups that integer keys address directly,
 *	  instead of being looked up in a table, or coming back.
 *
 * That takes memory for each value between the least and the greatest key.  So it must not be much
 * more than what the rows would take.  Groups found before are added as well, and the places become
 * groups after each call (GjSinkOps.replace_groups): for everything else nothing differs.
 */
#include "state.h"

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
	const GjPlaces *places;
	void	   *memory;
	uint32_t	n;
} GjPlacesCall;

static GjStatus
make_groups(GjRun *run, const GjGroups *to, void *arg)
{
	const GjPlacesCall *call = arg;
	const GjRunFused *fused = run->fused;

	return run->work.ops->places->groups(run->work.queue, &fused->plan, fused->part, fused->nparts,
										 call->places, call->memory, call->n, to);
}

/* Adds rows and groups to places, and makes groups of these. */
static GjStatus
add_to_places(GjRun *run, const GjGroups *groups, const GjPlaces *places, void *memory, bool *done)
{
	GjRunFused *fused = run->fused;
	GjWork	   *work = &run->work;
	GjPlacesCall call = {places, memory, 0};

	GJ_TRY(work->ops->places->add(work->queue, &fused->plan, run->columns, fused->part,
								  fused->nparts, groups, places, memory, &call.n));
	if (call.n == UINT32_MAX)
	{
		/* to find that out anew in each call is dear */
		fused->many_groups = false;
		return GJ_OK;
	}
	GJ_STOP_CHECK(run);
	work->ops->queues->phase(work->queue, GJ_PHASE_AGGREGATE);
	GJ_TRY(run->sink->replace_groups(run, call.n, make_groups, &call));
	run->stats.group_places++;
	*done = true;
	return GJ_OK;
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
	GjWork	   *work = &run->work;
	GjBuffer	memory = {NULL, 0};
	GjPlaces	places;
	GjStatus	status;

	*done = false;
	if (!fused->many_groups || groups->rows.nrows < GJ_PLACES_GROUPS ||
		fused->nrows < GJ_PLACES_ROWS || fused->nrows < groups->rows.nrows)
		return GJ_OK;
	GJ_TRY(work->ops->places->plan(work->queue, &fused->plan, fused->part, fused->nparts, groups,
								   ((uint64_t) fused->nrows + groups->rows.nrows) *
								   GJ_PLACES_FACTOR, &places));
	/* nothing resident makes room */
	if (places.nplaces == 0 || places.nbytes > gj_lease_free(work->lease))
	{
		fused->many_groups = false;
		return GJ_OK;
	}
	GJ_STOP_CHECK(run);
	status = gj_buffer_grow(work, &memory, 0, places.nbytes, 0);
	if (status == GJ_OK)
		status = add_to_places(run, groups, &places, memory.memory, done);
	gj_buffer_free(work, &memory);
	/* a table takes less */
	return status == GJ_OUT_OF_MEMORY ? GJ_OK : status;
}
