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

#include "catalog/pg_class.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/spccache.h"

#include "client/client.h"
#include "exec/parallel_load.h"
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

/* Least cost that a GpuJoin can have: cheaper native plans need no look. */
double
gj_cost_least(void)
{
	return SECONDS(START_SECONDS);
}

/*
 * Workers that would help to load `npages` pages of this query's tables, other conditions
 * being as for any parallel plan.
 */
int
gj_plan_loader_workers(PlannerInfo *root, double npages)
{
	return root->glob->parallelModeOK ? gj_loader_workers_for(npages) : 0;
}

/* Pages of tables that workers can read. */
static double
shareable_pages(PlannerInfo *root, GjBuilder *builder)
{
	double		npages = 0;

	for (int s = 0; s < builder->nsources; s++)
	{
		Oid			relid = builder->source[s].heap_relid;

		if (OidIsValid(relid) && get_rel_persistence(relid) != RELPERSISTENCE_TEMP)
			npages += builder->source[s].rel->pages;
	}
	return npages;
}

/*
 * Decoding is shared with workers, as many as this table alone would have.  Getting pages
 * is not, as it is not in PostgreSQL's own parallel scans.
 */
double
gj_cost_heap_source(PlannerInfo *root, RelOptInfo *rel, int ncolumns)
{
	int			nloaders = 1 + gj_plan_loader_workers(root, rel->pages);
	double		page_cost;

	get_tablespace_page_costs(rel->reltablespace, NULL, &page_cost);
	return rel->pages * page_cost +
		SECONDS(rel->pages * PAGE_SECONDS +
				rel->tuples * ncolumns * VALUE_SECONDS) / nloaders;
}

double
gj_cost_plan_source(const Path *path)
{
	return path->total_cost +
		SECONDS(path->rows * (PLAN_ROW_SECONDS +
							  list_length(path->pathtarget->exprs) * VALUE_SECONDS));
}

/* Cost of getting the rows of source s to the device. */
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
	info->loader_workers = gj_plan_loader_workers(root, shareable_pages(root, builder));
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
		/* nothing comes back before the end */
		startup += run;
		run = cpu_tuple_cost;
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
