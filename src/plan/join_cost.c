/*
 * join_cost.c
 *	  What a GpuJoin costs, in PostgreSQL's cost units.
 *
 * A first model: the loader's and the executor's prices are constants measured on one
 * core; the device reports its own rates when it is opened.  Pages cost what they cost a
 * SeqScan (seq_page_cost), since both read them from the same place, plus the decoding
 * that a SeqScan pays for in cpu_tuple_cost.  One unit stands for COST_UNIT seconds,
 * about what PostgreSQL's own joins take a unit when everything is cached.
 */
#include "postgres.h"

#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/spccache.h"

#include "client/client.h"
#include "guc.h"
#include "plan/join_path.h"

#define COST_UNIT			10e-6	/* seconds a unit */
#define SECONDS(s)			((s) / COST_UNIT)

#define START_SECONDS		3e-3	/* connect, map and touch the rings, submit */
#define PAGE_SECONDS		0.7e-6	/* find, lock and walk a page */
#define VALUE_SECONDS		1.5e-9	/* take one value out of a page */
#define PLAN_ROW_SECONDS	40e-9	/* a row from a child plan's slot into columns */
#define OUTPUT_ROW_SECONDS	30e-9	/* a row from a batch into a slot */
#define OUTPUT_VALUE_SECONDS 4e-9
#define GROUP_ROW_SECONDS	60e-9	/* a group's values made and put into a slot */

/* Least cost that a GpuJoin can have: cheaper native plans need no look. */
double
gj_cost_least(void)
{
	return SECONDS(START_SECONDS);
}

double
gj_cost_heap_source(PlannerInfo *root, RelOptInfo *rel, int ncolumns)
{
	double		page_cost;

	get_tablespace_page_costs(rel->reltablespace, NULL, &page_cost);
	return rel->pages * (page_cost + SECONDS(PAGE_SECONDS)) +
		SECONDS(rel->tuples * ncolumns * VALUE_SECONDS);
}

double
gj_cost_plan_source(const Path *path)
{
	return path->total_cost +
		SECONDS(path->rows * (PLAN_ROW_SECONDS +
							  list_length(path->pathtarget->exprs) * VALUE_SECONDS));
}

/*
 * Cost of getting the rows of source s to the device.  Columns that the device has kept from
 * earlier runs would cost next to nothing: this is the place to say so.
 */
static double
source_cost(PlannerInfo *root, GjBuildSource *source, const GjDeviceInfo *device)
{
	double		row_bytes = 0;
	double		cost;
	ListCell   *lc;

	foreach(lc, source->columns)
		row_bytes += ((GjBuildColumn *) lfirst(lc))->type.width;
	if (OidIsValid(source->heap_relid))
		cost = gj_cost_heap_source(root, source->rel, list_length(source->columns));
	else
		cost = gj_cost_plan_source(source->path);
	return cost + SECONDS(source->rows_loaded * row_bytes / Max(device->copy_in_rate, 1e6));
}

void
gj_cost_join(PlannerInfo *root, GjPath *path)
{
	GjJoinInfo *info = path->info;
	GjBuilder  *builder = info->builder;
	GjFailure	failure;
	const GjDeviceInfo *device = gj_client_device(&failure);
	double		startup = SECONDS(START_SECONDS);
	double		run = 0;
	double		lease = 0;
	double		rows = builder->source[0].rows_filtered;

	/* callers have asked before, and the answer is remembered */
	Assert(device != NULL);
	for (int s = 1; s < builder->nsources; s++)
	{
		GjBuildSource *source = &builder->source[s];
		ListCell   *lc;

		startup += source_cost(root, source, device) +
			SECONDS(source->rows_filtered / Max(device->build_rate, 1e5));
		foreach(lc, source->columns)
			lease += source->rows_loaded * ((GjBuildColumn *) lfirst(lc))->type.width;
		lease += source->rows_filtered * 48;	/* hash table, keys, row ids */
	}
	/* working space for chunks, row ids and pairs of every step */
	lease += 64e6 * (builder->nsteps + 1);
	info->program->lease = (uint64) Min(lease, 1e15);

	run += source_cost(root, &builder->source[0], device);
	for (int i = 0; i < builder->nsteps; i++)
	{
		run += SECONDS((rows + builder->step[i].rows) / Max(device->probe_rate, 1e5));
		rows = builder->step[i].rows;
	}
	if (info->aggregate)
	{
		QualCost	qual_cost;
		int			nkeys = list_length(builder->group_keys);
		int			nwork = nkeys + list_length(builder->aggregates);

		cost_qual_eval(&qual_cost, info->host_quals, root);
		/* a look-up in a table for its group, some steps for its aggregates */
		run += SECONDS(rows * (Min(nkeys, 1) + nwork * 0.25) /
					   Max(device->probe_rate, 1e5));
		info->program->lease += (uint64)
			(info->groups * (24 + 8.0 * info->ngroup_keys +
							 sizeof(GjAggState) * list_length(builder->aggregates)) *
			 Min(info->ngroup_keys, 1));
		/* nothing comes back before the end */
		startup += run + qual_cost.startup;
		run = info->groups * (cpu_tuple_cost + qual_cost.per_tuple) +
			SECONDS(info->ngroup_keys > 0 ? info->groups * GROUP_ROW_SECONDS : 0);
		run += info->groups * path->cpath.path.pathtarget->cost.per_tuple;
		startup += path->cpath.path.pathtarget->cost.startup;
	}
	else
	{
		QualCost	qual_cost;

		cost_qual_eval(&qual_cost, info->host_quals, root);
		startup += qual_cost.startup;
		run += rows * (qual_cost.per_tuple +
					   SECONDS(OUTPUT_ROW_SECONDS +
							   list_length(info->outputs) * OUTPUT_VALUE_SECONDS));
		if (builder->can_fail)
		{
			startup += run;
			run = 0;
		}
		run += path->cpath.path.rows * path->cpath.path.pathtarget->cost.per_tuple;
		startup += path->cpath.path.pathtarget->cost.startup;
	}
	path->cpath.path.startup_cost = startup;
	path->cpath.path.total_cost = startup + run;
}
