/*
 * agg_path.c
 *	  Ungrouped aggregates over a join, on the device together with it.
 *
 * The scan tuple of such a GpuJoin holds one value per Aggref; expressions over them
 * and HAVING are PostgreSQL's.  The fallback is the native aggregate plan with its
 * target list cut down to the same Aggrefs.
 */
#include "postgres.h"

#include "catalog/pg_aggregate.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"

#include "client/client.h"
#include "guc.h"
#include "plan/join_path.h"

/* How a built-in aggregate is computed. */
typedef struct DeviceAggregate
{
	Oid			aggfnoid;
	uint32		op;
	GjAggFinal	final;
} DeviceAggregate;

static const DeviceAggregate device_aggregates[] = {
	{F_COUNT_, GJ_AGG_COUNT_STAR, GJ_FINAL_COUNT},
	{F_COUNT_ANY, GJ_AGG_COUNT, GJ_FINAL_COUNT},
	{F_SUM_INT2, GJ_AGG_SUM_I, GJ_FINAL_SUM_INT8},
	{F_SUM_INT4, GJ_AGG_SUM_I, GJ_FINAL_SUM_INT8},
	{F_SUM_INT8, GJ_AGG_SUM_I, GJ_FINAL_SUM_NUMERIC},
	{F_SUM_FLOAT8, GJ_AGG_SUM_F, GJ_FINAL_SUM_FLOAT8},
	{F_AVG_INT2, GJ_AGG_SUM_I, GJ_FINAL_AVG_NUMERIC},
	{F_AVG_INT4, GJ_AGG_SUM_I, GJ_FINAL_AVG_NUMERIC},
	{F_AVG_INT8, GJ_AGG_SUM_I, GJ_FINAL_AVG_NUMERIC},
	{F_AVG_FLOAT8, GJ_AGG_SUM_F, GJ_FINAL_AVG_FLOAT8},
	{F_MIN_INT2, GJ_AGG_MIN_I, GJ_FINAL_MINMAX_INT},
	{F_MIN_INT4, GJ_AGG_MIN_I, GJ_FINAL_MINMAX_INT},
	{F_MIN_INT8, GJ_AGG_MIN_I, GJ_FINAL_MINMAX_INT},
	{F_MIN_OID, GJ_AGG_MIN_I, GJ_FINAL_MINMAX_INT},
	{F_MIN_DATE, GJ_AGG_MIN_I, GJ_FINAL_MINMAX_INT},
	{F_MIN_TIMESTAMP, GJ_AGG_MIN_I, GJ_FINAL_MINMAX_INT},
	{F_MIN_TIMESTAMPTZ, GJ_AGG_MIN_I, GJ_FINAL_MINMAX_INT},
	{F_MIN_FLOAT8, GJ_AGG_MIN_F, GJ_FINAL_MINMAX_FLOAT8},
	{F_MAX_INT2, GJ_AGG_MAX_I, GJ_FINAL_MINMAX_INT},
	{F_MAX_INT4, GJ_AGG_MAX_I, GJ_FINAL_MINMAX_INT},
	{F_MAX_INT8, GJ_AGG_MAX_I, GJ_FINAL_MINMAX_INT},
	{F_MAX_OID, GJ_AGG_MAX_I, GJ_FINAL_MINMAX_INT},
	{F_MAX_DATE, GJ_AGG_MAX_I, GJ_FINAL_MINMAX_INT},
	{F_MAX_TIMESTAMP, GJ_AGG_MAX_I, GJ_FINAL_MINMAX_INT},
	{F_MAX_TIMESTAMPTZ, GJ_AGG_MAX_I, GJ_FINAL_MINMAX_INT},
	{F_MAX_FLOAT8, GJ_AGG_MAX_F, GJ_FINAL_MINMAX_FLOAT8},
};

/*
 * Compiles the argument.  count() of a column that the device only carries becomes the
 * sum of "is not null".
 */
static int
compile_argument(GjBuilder *builder, Expr *arg, GjAggregate *agg, GjAggFinal *final)
{
	NullTest   *test;
	int			e = gj_compile(builder, arg);

	if (e >= 0 || agg->op != GJ_AGG_COUNT || !IsA(arg, Var))
		return e;
	test = makeNode(NullTest);
	test->arg = arg;
	test->nulltesttype = IS_NOT_NULL;
	test->location = -1;
	agg->op = GJ_AGG_SUM_I;
	*final = GJ_FINAL_COUNT_SUM;
	return gj_compile(builder, (Expr *) test);
}

static void
append_aggregate(GjBuilder *builder, uint32 op, int32 arg)
{
	GjAggregate *agg = palloc(sizeof(GjAggregate));

	agg->op = op;
	agg->arg = arg;
	builder->aggregates = lappend(builder->aggregates, agg);
}

/* Adds one aggregate to the program; false if the device does not know it. */
static bool
add_aggregate(GjBuilder *builder, GjJoinInfo *info, Aggref *aggref)
{
	GjAggregate agg = {.arg = -1};
	GjAggFinal	final;
	int			i;

	if (aggref->aggdistinct != NIL || aggref->aggorder != NIL || aggref->aggfilter != NULL ||
		aggref->aggdirectargs != NIL || aggref->aggkind != AGGKIND_NORMAL ||
		aggref->aggsplit != AGGSPLIT_SIMPLE || aggref->agglevelsup != 0 ||
		list_length(aggref->args) > 1)
		return false;
	for (i = 0; i < lengthof(device_aggregates); i++)
		if (device_aggregates[i].aggfnoid == aggref->aggfnoid)
			break;
	if (i == lengthof(device_aggregates))
		return false;
	agg.op = device_aggregates[i].op;
	final = device_aggregates[i].final;
	if (agg.op != GJ_AGG_COUNT_STAR)
	{
		agg.arg = compile_argument(builder, linitial_node(TargetEntry, aggref->args)->expr,
								   &agg, &final);
		if (agg.arg < 0)
			return false;
	}
	append_aggregate(builder, agg.op, agg.arg);
	if (final == GJ_FINAL_AVG_FLOAT8)
	{
		append_aggregate(builder, GJ_AGG_MIN_F, agg.arg);
		append_aggregate(builder, GJ_AGG_MAX_F, agg.arg);
	}
	info->outputs = lappend(info->outputs, aggref);
	info->agg_finals = lappend_int(info->agg_finals, final);
	return true;
}

GjJoinInfo *
gj_build_aggregate(PlannerInfo *root, Path *native)
{
	Query	   *parse = root->parse;
	GjJoinInfo *info;
	List	   *nodes;
	ListCell   *lc;

	if (!parse->hasAggs || parse->groupClause != NIL || parse->groupingSets != NIL)
		return NULL;
	info = palloc0(sizeof(GjJoinInfo));
	info->aggregate = true;
	info->builder = gj_build_join(root, native, NULL, &info->rows);
	if (info->builder == NULL)
		return NULL;
	nodes = pull_var_clause((Node *) root->processed_tlist,
							PVC_INCLUDE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
							PVC_INCLUDE_PLACEHOLDERS);
	nodes = list_concat(nodes,
						pull_var_clause(parse->havingQual,
										PVC_INCLUDE_AGGREGATES | PVC_INCLUDE_PLACEHOLDERS));
	foreach(lc, nodes)
	{
		if (list_member(info->outputs, lfirst(lc)))
			continue;
		if (!IsA(lfirst(lc), Aggref) || !add_aggregate(info->builder, info, lfirst(lc)))
			return NULL;
	}
	if (info->outputs == NIL)
		return NULL;
	info->nfallback = list_length(info->outputs);
	info->host_quals = (List *) parse->havingQual;
	info->program = gj_builder_finish(info->builder, GJ_OUTPUT_AGGREGATES);
	return info->program ? info : NULL;
}

/* The cheapest native way to aggregate, its target cut down to `aggrefs`. */
static Path *
native_aggregate(PlannerInfo *root, RelOptInfo *rel, List *aggrefs)
{
	Path	   *best = NULL;
	PathTarget *target;
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (IsA(path, AggPath) && path->param_info == NULL && !gj_contains_gpujoin(path) &&
			(best == NULL || path->total_cost < best->total_cost))
			best = path;
	}
	if (best == NULL)
		return NULL;
	target = create_empty_pathtarget();
	foreach(lc, aggrefs)
		add_column_to_pathtarget(target, lfirst(lc), 0);
	best = gj_copy_path(best);
	best->pathtarget = set_pathtarget_cost_width(root, target);
	return best;
}

void
gj_add_aggregate_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *output_rel)
{
	Path	   *native = input_rel->cheapest_total_path;
	GjJoinInfo *info;
	GjFailure	failure;

	if (!gj_may_plan(root) || input_rel->reloptkind != RELOPT_JOINREL ||
		IS_DUMMY_REL(input_rel) || native == NULL || native->param_info != NULL ||
		!bms_is_empty(input_rel->lateral_relids) ||
		gj_contains_gpujoin(native) || (!gj_force && native->total_cost < gj_cost_least()))
		return;
	info = gj_build_aggregate(root, native);
	if (info == NULL || gj_client_device(&failure) == NULL)
		return;
	info->fallback = native_aggregate(root, output_rel, info->outputs);
	if (info->fallback != NULL)
		gj_offer_path(output_rel, (Path *) gj_create_path(root, output_rel,
														  output_rel->reltarget, info));
}
