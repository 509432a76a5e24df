/*
 * join_cost.c
 *	  What a GpuJoin costs, in PostgreSQL's cost units.
 *
 * A first model: the loader's and the executor's prices are constants measured on one core; the
 * device reports its own rates when it is opened.  Pages cost what they cost a SeqScan
 * (seq_page_cost), since both read them from the same place, or less if they are in memory, plus
 * the decoding that a SeqScan pays for in cpu_tuple_cost.  One unit stands for GJ_COST_UNIT seconds,
 * about what PostgreSQL's own joins take a unit when everything is cached.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_class.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/spccache.h"

#include "client/cache_info.h"
#include "client/client.h"
#include "exec/parallel_load.h"
#include "guc.h"
#include "plan/join_path.h"
#include "plan/remembered.h"
#include "plan/unnest.h"

#define SECONDS(s)			((s) / GJ_COST_UNIT)

#define START_SECONDS		3e-3	/* connect, map and touch the rings, submit */
#define STAGE_START_SECONDS	0.5e-3	/* submit a program that reads what another one has made */
#define PLANNING_SECONDS	0.1e-3	/* plan a query, and */
#define JOIN_PLANNING_SECONDS 60e-6	/* find the paths of a join relation of it */
#define PAGE_SECONDS		0.7e-6	/* find, lock and walk a page */
#define VALUE_SECONDS		1.5e-9	/* take one value out of a page */
#define PLAN_ROW_SECONDS	40e-9	/* a row from a child plan's slot into columns */
#define RESIDENT_PAGE_SECONDS 20e-9	/* compare a page that is resident with the table */

/*
 * Part of seq_page_cost that a page costs which is in memory.  16 processes load one in 0.7 us (TPC-H
 * at scale 10), a fourteenth of a unit.  The price is three times that: fewer may load, and PostgreSQL
 * charges its own plan for cached pages, too.
 */
#define CACHED_PAGE_PART	0.2

#define OUTPUT_ROW_SECONDS	30e-9	/* a row from a batch into a slot */
#define OUTPUT_VALUE_SECONDS 4e-9
#define STAGE_ROW_SECONDS	12e-9	/* a group's values made columns of a later program */
#define LATE_ROW_SECONDS	2e-6	/* fetch a tuple that is in shared_buffers */
#define GROUP_ROW_SECONDS	60e-9	/* a group's values made and put into a slot */

/*
 * Of making a hash table, where it is of a whole table that is resident: gpujoind keeps it for
 * queries that ask the same of it.
 */
#define KEPT_BUILD_PART		0.1

#define SORT_START_SECONDS	0.2e-3	/* of a sort: kernels, waits, slots touched */
#define SORT_ROW_SPACE		64		/* bytes of a row, beside its keys and values, while rows are sorted */
#define SORT_MEMORY_SHARE	0.75	/* of a device, what inner sides and such rows may take (GJ_WORKING_SHARE) */
#define MERGE_ROW_SECONDS	50e-9	/* of a row of sorted runs, to be kept on the host and merged, */
#define MERGE_BYTE_SECONDS	1e-9	/* and of a byte of it */

#define HOST_SORT_ROW_SECONDS 60e-9	/* of a row that the backend sorts by ranks, to take it in, */
#define HOST_SORT_KEY_SECONDS 40e-9	/* of each key of it, */
#define HOST_SORTED_ROW_SECONDS 60e-9	/* and to put it into a slot again */

#define CHECK_PAIR_SECONDS	1e-6	/* PostgreSQL gets a joined row and compares its arrays */

/*
 * what devices do not report, of sets: elements sorted and made codes, pairs of a tile, their
 * common elements, in a second
 */
#define CUDA_ELEMENT_RATE	4e8
#define CPU_ELEMENT_RATE	4e6
#define CUDA_SET_PAIR_RATE	2.5e10
#define CPU_SET_PAIR_RATE	2e8
#define CUDA_COMMON_RATE	1e11
#define CPU_COMMON_RATE		4e8

/* device memory for an element of a membership table: keys, and a family while it is made */
#define MEMBER_BYTES		120

/* of PostgreSQL's plan, what a GpuJoin costs that is cheaper than its visits: clear of add_path's fuzz */
#define PREFERRED_COST		0.95

/* of a device's memory: inner sides that are expected to take more may have to be taken in parts */
#define INNER_SHARE			0.25

/* Least cost that a GpuJoin can have: cheaper native plans need no look. */
double
gj_cost_least(void)
{
	return SECONDS(START_SECONDS);
}

/* What it costs to plan a query once more that has so many join relations. */
double
gj_cost_planning(uint64 njoins)
{
	return SECONDS(PLANNING_SECONDS + njoins * JOIN_PLANNING_SECONDS);
}

bool		gj_assume_resident = false;

/* The part of a relation's tables that is not resident and must be loaded. */
static double
load_part(PlannerInfo *root, RelOptInfo *rel)
{
	double		pages = 0;
	double		resident = 0;
	ListCell   *lc;

	if (gj_assume_resident)
		return 0;
	foreach(lc, gj_live_tables(root, rel))
	{
		double		all = root->simple_rel_array[lfirst_int(lc)]->pages;

		pages += all;
		if (all > 0)
			resident += Min(gj_remembered(root, gj_cache_pages,
										  planner_rt_fetch(lfirst_int(lc), root)->relid), all);
	}
	return pages > 0 ? 1 - resident / pages : 1;
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
	ListCell   *lc;

	for (int s = 0; s < builder->nsources; s++)
		foreach(lc, builder->source[s].tables)
			if (get_rel_persistence(planner_rt_fetch(lfirst_int(lc), root)->relid) !=
				RELPERSISTENCE_TEMP)
				npages += root->simple_rel_array[lfirst_int(lc)]->pages;
	return npages;
}

double
gj_cost_page(PlannerInfo *root, const RelOptInfo *table, Oid relid)
{
	double		cost;

	get_tablespace_page_costs(table->reltablespace, NULL, &cost);
	return gj_remembered(root, gj_pages_cached, relid) != 0 ? cost * CACHED_PAGE_PART : cost;
}

/* What it costs to get all pages of a relation's tables. */
static double
pages_cost(PlannerInfo *root, RelOptInfo *rel)
{
	double		cost = 0;
	ListCell   *lc;

	foreach(lc, gj_live_tables(root, rel))
	{
		RelOptInfo *table = root->simple_rel_array[lfirst_int(lc)];

		cost += table->pages *
			gj_cost_page(root, table, planner_rt_fetch(lfirst_int(lc), root)->relid);
	}
	return cost;
}

/*
 * Decoding is shared with workers, as many as this relation alone would have.  Getting pages
 * is not, as it is not in PostgreSQL's own parallel scans.
 */
double
gj_cost_heap_source(PlannerInfo *root, RelOptInfo *rel, int ncolumns)
{
	double		pages;
	double		tuples = gj_heap_tuples(root, rel, &pages);
	int			nloaders = 1 + (rel->consider_parallel ?
								gj_plan_loader_workers(root, pages) : 0);
	double		load = load_part(root, rel);
	double		cost = (1 - load) * SECONDS(pages * RESIDENT_PAGE_SECONDS);

	if (load > 0)
		cost += load * (pages_cost(root, rel) +
						SECONDS(pages * PAGE_SECONDS + tuples * ncolumns * VALUE_SECONDS) / nloaders);
	return cost;
}

double
gj_cost_plan_source(const Path *path)
{
	return path->total_cost +
		SECONDS(path->rows * (PLAN_ROW_SECONDS +
							  list_length(path->pathtarget->exprs) * VALUE_SECONDS));
}

double
gj_cost_stage(const GjStage *stage)
{
	return stage->cost / gj_readers(stage->root->parse) +
		SECONDS(stage->info->groups * STAGE_ROW_SECONDS);
}

/*
 * Cost of getting the rows of source s to the device.  Columns that the device has kept from
 * earlier runs would cost next to nothing: this is the place to say so.
 */
static double
source_cost(PlannerInfo *root, const GjBuildSource *source, const GjDeviceInfo *device)
{
	double		row_bytes = 0;
	double		cost;
	double		load = 1;
	ListCell   *lc;

	foreach(lc, source->columns)
		row_bytes += ((GjBuildColumn *) lfirst(lc))->type.width;
	if (OidIsValid(source->heap_relid))
	{
		cost = gj_cost_heap_source(root, source->rel, list_length(source->columns));
		load = load_part(root, source->rel);
	}
	else
		cost = source->stage != NULL ? gj_cost_stage(source->stage) :
			gj_cost_plan_source(source->path);
	return cost +
		SECONDS(load * source->rows_loaded * row_bytes / Max(device->copy_in_rate, 1e6));
}

GjAlgorithm
gj_choose_algorithm(bool has_keys, bool has_range)
{
	switch (gj_algorithm)
	{
		case GJ_SET_ALGORITHM_SORT_MERGE:
			return has_keys || has_range ? GJ_JOIN_SORT_MERGE : GJ_JOIN_NESTED_LOOP;
		case GJ_SET_ALGORITHM_NESTED_LOOP:
			return GJ_JOIN_NESTED_LOOP;
		default:
			return has_keys ? GJ_JOIN_HASH :
				has_range ? GJ_JOIN_SORT_MERGE : GJ_JOIN_NESTED_LOOP;
	}
}

/* Seconds of joining the sets of `outer` tuples with those of `inner` rows. */
static double
set_seconds(const GjDeviceInfo *device, const GjBuildStep *step, double outer, double inner)
{
	bool		cuda = device->kind == GJ_DEVICE_CUDA;
	/* the inner sets become part of each family */
	double		families = ceil(Max(outer, 1) / GJ_MAX_TUPLES);

	return (outer * step->outer_elements + inner * step->inner_elements * (1 + families)) /
		(cuda ? CUDA_ELEMENT_RATE : CPU_ELEMENT_RATE) +
		outer * inner / (cuda ? CUDA_SET_PAIR_RATE : CPU_SET_PAIR_RATE) +
		outer * inner * step->common_elements / (cuda ? CUDA_COMMON_RATE : CPU_COMMON_RATE);
}

/* The same of counting in a membership table. */
static double
membership_seconds(const GjDeviceInfo *device, const GjBuildStep *step, double outer, double inner)
{
	bool		cuda = device->kind == GJ_DEVICE_CUDA;
	double		rows = step->set.same ? inner : outer + inner;
	double		part = step->set.same ? 0.5 : 1;

	return rows / Max(device->sort_rate, 1e5) + rows / (cuda ? CUDA_ELEMENT_RATE : CPU_ELEMENT_RATE) +
		part * step->set_pairs / (cuda ? CUDA_SET_PAIR_RATE : CPU_SET_PAIR_RATE) +
		part * step->common_elements / (cuda ? CUDA_COMMON_RATE : CPU_COMMON_RATE);
}

double
gj_cost_sets(const GjBuildStep *step, double outer, double inner)
{
	GjFailure	failure;
	const GjDeviceInfo *device = gj_client_device(&failure);

	/* without a device nothing will come of it */
	return device ? SECONDS(set_seconds(device, step, outer, inner)) : 0;
}

double
gj_cost_check_pairs(double npairs)
{
	return SECONDS(npairs * CHECK_PAIR_SECONDS);
}

/* Seconds of a step for `outer` tuples and `inner` rows; *build: before the first tuple. */
static double
step_seconds(const GjDeviceInfo *device, const GjBuildStep *step, double outer, double inner,
			 double *build)
{
	double		sort_rate = Max(device->sort_rate, 1e5);
	double		pair_rate = Max(device->pair_rate, 1e5);
	/* of frequent keys, many more pairs are checked than there are rows */
	double		pairs = outer * inner * step->key_selectivity;
	double		probe = (outer + Max(step->rows, pairs)) / Max(device->probe_rate, 1e5);

	switch (step->algorithm)
	{
		case GJ_JOIN_SORT_MERGE:
			*build = inner / sort_rate;
			/* a range that is open at one end, with other conditions to choose from it */
			if (step->nkeys == 0 && step->residual >= 0 &&
				(step->range_low < 0 || step->range_high < 0))
				probe += outer * inner / 3 / pair_rate;
			return *build + outer / sort_rate + probe;
		case GJ_JOIN_NESTED_LOOP:
			*build = 0;
			return outer * inner / pair_rate + probe;
		case GJ_JOIN_SET:
			*build = 0;
			return probe + (step->set.membership ? membership_seconds(device, step, outer, inner) :
							set_seconds(device, step, outer, inner));
		default:
			*build = inner / Max(device->build_rate, 1e5);
			return *build + probe;
	}
}

double
gj_cost_counted(const GjBuildStep *step, double rows, double outer, double inner, int nwork)
{
	GjFailure	failure;
	const GjDeviceInfo *device = gj_client_device(&failure);
	GjBuildStep all = *step;
	double		build;

	if (device == NULL)
		return 0;				/* nothing will come of it */
	all.rows = rows;
	all.key_selectivity = 0;
	return SECONDS(step_seconds(device, &all, outer, inner, &build) +
				   step->rows * (1 + nwork * 0.25) / Max(device->probe_rate, 1e5));
}

static double inner_memory(const GjBuilder *builder, const GjBuildStep **largest);

/* True if the step's keys are all columns of a unique index: a row matches one row at most. */
static bool
has_unique_keys(PlannerInfo *root, const GjBuildSource *source, const GjBuildStep *step)
{
	List	   *columns = NIL;
	List	   *operators = NIL;
	ListCell   *lc;

	foreach(lc, step->key_clauses)
	{
		const OpExpr *op = lfirst_node(OpExpr, lc);

		columns = lappend(columns, lsecond(op->args));
		operators = lappend_oid(operators, op->opno);
	}
	return columns != NIL &&
		relation_has_unique_index_for(root, source->rel, NIL, columns, operators);
}

/*
 * The part of making a hash table that a query is to pay for.  One without unique keys takes no
 * part in the fused pass, so there is no reason to prefer it.
 */
static double
build_part(PlannerInfo *root, const GjBuildSource *source, const GjBuildStep *step)
{
	bool		is_kept = step->algorithm == GJ_JOIN_HASH && OidIsValid(source->heap_relid) &&
		source->filter < 0 && has_unique_keys(root, source, step) &&
		load_part(root, source->rel) == 0;

	return is_kept ? KEPT_BUILD_PART : 1;
}

/*
 * Seconds of starting a program.  One that reads a stage's result runs in a session that is there; the
 * stage's cost has its start.
 */
static double
start_seconds(const GjBuilder *builder)
{
	for (int s = 0; s < builder->nsources; s++)
		if (builder->source[s].stage != NULL)
			return STAGE_START_SECONDS;
	return START_SECONDS;
}

/* Costs of loading and joining: *startup until the streamed source is read, *run after it. */
static void
cost_program(PlannerInfo *root, const GjBuilder *builder, const GjDeviceInfo *device,
			 double *startup, double *run)
{
	double		rows = builder->source[0].rows_filtered;
	/* what takes much of the memory may not stay */
	bool		stays = inner_memory(builder, NULL) <= gj_device_memory(device) * INNER_SHARE;

	*startup = SECONDS(start_seconds(builder));
	*run = 0;
	for (int s = 0; s < builder->nsources; s++)
	{
		/* a stage has its result before the first row of it is read */
		double	   *when = s == 0 && builder->source[s].stage == NULL ? run : startup;

		*when += source_cost(root, &builder->source[s], device);
	}
	for (int i = 0; i < builder->nsteps; i++)
	{
		const GjBuildStep *step = &builder->step[i];
		const GjBuildSource *inner = &builder->source[step->source];
		double		build;

		*run += SECONDS(step_seconds(device, step, rows, inner->rows_filtered, &build) - build);
		*startup += SECONDS(build * (stays ? build_part(root, inner, step) : 1));
		rows = step->rows;
	}
}

double
gj_cost_builder(PlannerInfo *root, const GjBuilder *builder)
{
	GjFailure	failure;
	const GjDeviceInfo *device;
	double		startup,
				run;
	int			nhidden = 0;

	/* as many joins as possible, in the same way on every device */
	for (int s = 0; s < builder->nsources; s++)
		nhidden += bms_num_members(builder->source[s].relids) - 1;
	if (gj_force)
		return nhidden + 1;
	device = gj_client_device(&failure);
	if (device == NULL)
		return 0;				/* nothing will come of it */
	cost_program(root, builder, device, &startup, &run);
	return startup + run;
}

/* Bytes of a row that comes back, or of a group. */
static double
output_width(const GjJoinInfo *info)
{
	const GjProgram *program = info->program;
	const GjColumnType *types = gj_program_array(program, GjColumnType, columns);
	const uint32 *outputs = gj_program_array(program, uint32, outputs);
	double		width = 0;
	ListCell   *lc;

	if (info->aggregate)
		return 12 + 8.0 * info->ngroup_keys +
			sizeof(GjAggState) * list_length(info->builder->aggregates);
	for (uint32 i = 0; i < program->noutputs; i++)
		width += types[outputs[i]].width + 1;
	/* what references refer to */
	foreach(lc, info->outputs)
		if (get_typlen(exprType(lfirst(lc))) < 0)
			width += get_typavgwidth(exprType(lfirst(lc)), exprTypmod(lfirst(lc)));
	return width;
}

/*
 * Seconds of sorting rows on the device, all of which must have come; *space: the bytes that
 * they take there.  Joined rows are gathered, kept, and gathered in their order.
 */
static double
sort_seconds(const GjDeviceInfo *device, const GjJoinInfo *info, double rows, double *space)
{
	double		width = output_width(info);
	int			nkeys = list_length(info->builder->sort_keys);

	/* arrays that grow by doubling */
	*space = rows * (1.5 * (width + 8.0 * nkeys) + SORT_ROW_SPACE);
	return SORT_START_SECONDS + rows * nkeys / Max(device->sort_rate, 1e5) +
		rows * width / Max(device->copy_in_rate, 1e6) * (info->aggregate ? 0.1 : 2);
}

/*
 * Seconds of merging sorted runs that have no room on the device.  They are kept on the host; and
 * groups were kept there before, to be put together.
 */
static double
merge_seconds(GjJoinInfo *info, double rows)
{
	double		width = output_width(info) + 8.0 * list_length(info->builder->sort_keys);

	info->host_bytes = rows * width * (info->aggregate ? 2 : 1);
	return rows * (MERGE_ROW_SECONDS + width * MERGE_BYTE_SECONDS);
}

/* Cost of taking rows in and sorting them by ranks. */
static double
cost_host_sort(const GjJoinInfo *info, double rows)
{
	double		values = Max(info->host_values, 2);

	/* PostgreSQL compares different values, as cost_sort() has it */
	return SECONDS(rows * (HOST_SORT_ROW_SECONDS +
						   list_length(info->host_sort) * HOST_SORT_KEY_SECONDS)) +
		2 * cpu_operator_cost * values * log2(values);
}

/* Bytes of a row of a source, as columns. */
static double
source_width(const GjBuildSource *source)
{
	double		width = 0;
	ListCell   *lc;

	foreach(lc, source->columns)
		width += ((GjBuildColumn *) lfirst(lc))->type.width;
	return width;
}

/* Device memory of all inner sides, and the step with the largest one, if that is asked for. */
static double
inner_memory(const GjBuilder *builder, const GjBuildStep **largest)
{
	double		total = 0;
	double		most = 0;

	for (int i = 0; i < builder->nsteps; i++)
	{
		const GjBuildStep *step = &builder->step[i];
		const GjBuildSource *source = &builder->source[step->source];
		/* hash table, keys, row ids; columns */
		double		bytes = source->rows_filtered * 48 + source->rows_loaded * source_width(source);

		/* the sets, and a family while it is made (sets/set_join.c) */
		if (step->algorithm == GJ_JOIN_SET && step->set.membership)
			bytes += (source->rows_filtered +
					  (step->set.same ? 0 : builder->source[0].rows_filtered)) * MEMBER_BYTES;
		else if (step->algorithm == GJ_JOIN_SET)
			bytes += source->rows_filtered * (8 + step->inner_elements * 80);
		if (largest != NULL && bytes >= most)
		{
			*largest = step;
			most = bytes;
		}
		total += bytes;
	}
	return total;
}

double
gj_device_memory(const GjDeviceInfo *device)
{
	double		memory = (double) device->memory_total;

	return gj_query_memory() > 0 ? Min(memory, (double) gj_query_memory()) : memory;
}

bool
gj_fits_or_splits(const GjBuilder *builder)
{
	GjFailure	failure;
	const GjDeviceInfo *device = gj_client_device(&failure);
	const GjBuildStep *step = NULL;

	if (device == NULL || inner_memory(builder, &step) <= gj_device_memory(device) * INNER_SHARE)
		return true;
	/* by key, or in blocks: src/daemon/team/strategy/passes.c */
	return step->nkeys > 0 ||
		(step->join_type != GJ_JOIN_LEFT && step->join_type != GJ_JOIN_FULL &&
		 step->join_type != GJ_JOIN_SEMI && step->join_type != GJ_JOIN_ANTI);
}

/* True if PostgreSQL may stop the plan after its first rows. */
static bool
may_stop_early(PlannerInfo *root, const GjJoinInfo *info)
{
	return info->limit > 0 || (!info->aggregate && (root->limit_tuples >= 0 || root->tuple_fraction > 0));
}

/* What visits of cached pages add to the costs of a GpuJoin's child plans. */
static double
child_visits(PlannerInfo *root, const GjBuilder *builder)
{
	double		cost = 0;

	for (int s = 0; s < builder->nsources; s++)
		if (builder->source[s].stage == NULL && builder->source[s].path != NULL)
			cost += gj_cost_visits(root, builder->source[s].path);
	return cost;
}

/*
 * Compares a GpuJoin with PostgreSQL's plan, both with their visits of cached pages (native_cost.c),
 * or with a query as it is written (unnest.c).  Other plans are compared with what PostgreSQL says of its
 * own.  So the cheaper one is made to be so by that, too, and no more is taken off or added.
 */
static void
prefer_own(PlannerInfo *root, GjPath *path)
{
	Path	   *own = &path->cpath.path;
	const Path *native = path->info->fallback;
	double		with_visits;
	bool		is_cheaper;

	if (native == NULL || may_stop_early(root, path->info))
		return;
	if (gj_written_cost > 0 && root->parent_root == NULL &&
		gj_builder_reads_all(path->info->builder, root))
		with_visits = gj_written_cost;
	else
		with_visits = native->total_cost + gj_cost_visits(root, native);
	is_cheaper = own->total_cost + child_visits(root, path->info->builder) <= with_visits;
	if (is_cheaper && own->total_cost > native->total_cost)
	{
		own->total_cost = native->total_cost * PREFERRED_COST;
		own->startup_cost = Min(own->startup_cost, own->total_cost);
	}
	else if (!is_cheaper && own->total_cost <= native->total_cost)
		own->total_cost = native->total_cost / PREFERRED_COST;
}

void
gj_cost_join(PlannerInfo *root, GjPath *path)
{
	GjJoinInfo *info = path->info;
	GjBuilder  *builder = info->builder;
	GjFailure	failure;
	const GjDeviceInfo *device = gj_client_device(&failure);
	double		startup;
	double		run;
	double		inner;
	double		lease;
	double		rows = builder->nsteps > 0 ? builder->step[builder->nsteps - 1].rows :
		builder->source[0].rows_filtered;

	/* callers have asked before, and the answer is remembered */
	Assert(device != NULL);
	info->loader_workers = gj_plan_loader_workers(root, shareable_pages(root, builder));
	inner = inner_memory(builder, NULL);
	/* working space for chunks, row ids and pairs of every step */
	lease = inner + (double) GJ_STEP_SPACE * (builder->nsteps + 1);
	info->program->lease = (uint64) Min(lease, 1e15);

	info->host_bytes = 0;
	cost_program(root, builder, device, &startup, &run);
	if (builder->sort_keys != NIL && info->limit == 0)
	{
		double		space;

		run += SECONDS(sort_seconds(device, info, info->aggregate ? info->groups : rows, &space));
		if (info->aggregate)
			info->program->lease += (uint64) Min(space, 1e15);
		else
			info->program->sort_space = (uint64) Min(space, 1e15);
		if (inner + space > gj_device_memory(device) * SORT_MEMORY_SHARE)
			run += SECONDS(merge_seconds(info, info->aggregate ? info->groups : rows));
		/* parts are kept there as well */
		if (inner > gj_device_memory(device) * SORT_MEMORY_SHARE)
			info->host_bytes += inner + builder->source[0].rows_filtered * source_width(&builder->source[0]);
	}
	if (info->aggregate)
	{
		QualCost	qual_cost;
		double		groups;
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
		/* nothing comes back before the end, and then all groups, whatever HAVING says of them */
		startup += run + qual_cost.startup;
		groups = info->limit > 0 ? Min(info->groups, info->limit) : info->groups;
		run = groups * (cpu_tuple_cost + qual_cost.per_tuple) +
			SECONDS(info->ngroup_keys > 0 ? groups * GROUP_ROW_SECONDS : 0);
		run += path->cpath.path.rows * path->cpath.path.pathtarget->cost.per_tuple;
		startup += path->cpath.path.pathtarget->cost.startup;
	}
	else
	{
		QualCost	qual_cost;

		cost_qual_eval(&qual_cost, info->host_quals, root);
		startup += qual_cost.startup;
		/* estimates of joined rows are of what is left of them; PostgreSQL gets all to check */
		if (info->host_quals != NIL)
		{
			SpecialJoinInfo inner = {.type = T_SpecialJoinInfo,.jointype = JOIN_INNER};

			rows /= Max(clauselist_selectivity(root, info->host_quals, 0, JOIN_INNER, &inner), 1e-6);
		}
		if (info->limit > 0)
		{
			/* looked at once, and hardly any of them again */
			startup += run + SECONDS(rows / Max(device->probe_rate, 1e5));
			run = 0;
			rows = Min(rows, info->limit);
		}
		else if (builder->sort_keys != NIL)
		{
			/* the last row can be the first one */
			startup += run;
			run = 0;
		}
		run += rows * (qual_cost.per_tuple +
					   SECONDS(OUTPUT_ROW_SECONDS +
							   list_length(info->outputs) * OUTPUT_VALUE_SECONDS));
		if (builder->can_fail && (builder->sort_keys == NIL || info->limit > 0))
		{
			startup += run;
			run = 0;
		}
		run += path->cpath.path.rows * path->cpath.path.pathtarget->cost.per_tuple;
		startup += path->cpath.path.pathtarget->cost.startup;
	}
	run += SECONDS(path->cpath.path.rows * list_length(info->late) * LATE_ROW_SECONDS);
	if (info->host_sort != NIL)
	{
		startup += run + cost_host_sort(info, path->cpath.path.rows);
		run = SECONDS(path->cpath.path.rows * HOST_SORTED_ROW_SECONDS);
	}
	path->cpath.path.startup_cost = startup;
	path->cpath.path.total_cost = startup + run;
	path->startup = startup;
	path->cost = startup + run;
	prefer_own(root, path);
}
