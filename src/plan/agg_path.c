/*
 * agg_path.c
 *	  Aggregates, groups and distinct rows over a join or a scan, on the device together
 *	  with it.
 *
 * The scan tuple of such a GpuJoin holds the group keys (group_path.c) and one value per
 * Aggref; expressions over them and HAVING are PostgreSQL's.  The fallback is the native
 * aggregate plan with its target list cut down to the same expressions.  SELECT DISTINCT
 * is grouping by all columns, without aggregates.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"

#include "client/client.h"
#include "compat.h"
#include "guc.h"
#include "plan/device_expr.h"
#include "plan/join_path.h"
#include "plan/make_expr.h"
#include "plan/reasons.h"

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
	{F_MIN_TIME, GJ_AGG_MIN_I, GJ_FINAL_MINMAX_INT},
	{F_MAX_TIME, GJ_AGG_MAX_I, GJ_FINAL_MINMAX_INT},
	{F_SUM_FLOAT4, GJ_AGG_SUM_F, GJ_FINAL_SUM_FLOAT4},
	{F_AVG_FLOAT4, GJ_AGG_SUM_F, GJ_FINAL_AVG_FLOAT8},
	{F_MIN_FLOAT4, GJ_AGG_MIN_F, GJ_FINAL_MINMAX_FLOAT4},
	{F_MAX_FLOAT4, GJ_AGG_MAX_F, GJ_FINAL_MINMAX_FLOAT4},
	{F_SUM_NUMERIC, GJ_AGG_SUM_I, GJ_FINAL_SUM_DECIMAL},
	{F_AVG_NUMERIC, GJ_AGG_SUM_I, GJ_FINAL_AVG_DECIMAL},
	{F_MIN_NUMERIC, GJ_AGG_MIN_I, GJ_FINAL_MINMAX_DECIMAL},
	{F_MAX_NUMERIC, GJ_AGG_MAX_I, GJ_FINAL_MINMAX_DECIMAL},
	{F_BOOL_AND, GJ_AGG_MIN_I, GJ_FINAL_MINMAX_INT},
	{F_EVERY, GJ_AGG_MIN_I, GJ_FINAL_MINMAX_INT},
	{F_BOOL_OR, GJ_AGG_MAX_I, GJ_FINAL_MINMAX_INT},
	{F_VAR_POP_INT2, GJ_AGG_SUM_I, GJ_FINAL_VAR_POP},
	{F_VAR_POP_INT4, GJ_AGG_SUM_I, GJ_FINAL_VAR_POP},
	{F_VAR_SAMP_INT2, GJ_AGG_SUM_I, GJ_FINAL_VAR_SAMP},
	{F_VAR_SAMP_INT4, GJ_AGG_SUM_I, GJ_FINAL_VAR_SAMP},
	{F_VARIANCE_INT2, GJ_AGG_SUM_I, GJ_FINAL_VAR_SAMP},
	{F_VARIANCE_INT4, GJ_AGG_SUM_I, GJ_FINAL_VAR_SAMP},
	{F_STDDEV_POP_INT2, GJ_AGG_SUM_I, GJ_FINAL_STDDEV_POP},
	{F_STDDEV_POP_INT4, GJ_AGG_SUM_I, GJ_FINAL_STDDEV_POP},
	{F_STDDEV_SAMP_INT2, GJ_AGG_SUM_I, GJ_FINAL_STDDEV_SAMP},
	{F_STDDEV_SAMP_INT4, GJ_AGG_SUM_I, GJ_FINAL_STDDEV_SAMP},
	{F_STDDEV_INT2, GJ_AGG_SUM_I, GJ_FINAL_STDDEV_SAMP},
	{F_STDDEV_INT4, GJ_AGG_SUM_I, GJ_FINAL_STDDEV_SAMP},
	{F_VAR_POP_INT8, GJ_AGG_SUM_I, GJ_FINAL_WIDE_VAR_POP},
	{F_VAR_SAMP_INT8, GJ_AGG_SUM_I, GJ_FINAL_WIDE_VAR_SAMP},
	{F_VARIANCE_INT8, GJ_AGG_SUM_I, GJ_FINAL_WIDE_VAR_SAMP},
	{F_STDDEV_POP_INT8, GJ_AGG_SUM_I, GJ_FINAL_WIDE_STDDEV_POP},
	{F_STDDEV_SAMP_INT8, GJ_AGG_SUM_I, GJ_FINAL_WIDE_STDDEV_SAMP},
	{F_STDDEV_INT8, GJ_AGG_SUM_I, GJ_FINAL_WIDE_STDDEV_SAMP},
	{F_VAR_POP_NUMERIC, GJ_AGG_SUM_I, GJ_FINAL_WIDE_VAR_POP},
	{F_VAR_SAMP_NUMERIC, GJ_AGG_SUM_I, GJ_FINAL_WIDE_VAR_SAMP},
	{F_VARIANCE_NUMERIC, GJ_AGG_SUM_I, GJ_FINAL_WIDE_VAR_SAMP},
	{F_STDDEV_POP_NUMERIC, GJ_AGG_SUM_I, GJ_FINAL_WIDE_STDDEV_POP},
	{F_STDDEV_SAMP_NUMERIC, GJ_AGG_SUM_I, GJ_FINAL_WIDE_STDDEV_SAMP},
	{F_STDDEV_NUMERIC, GJ_AGG_SUM_I, GJ_FINAL_WIDE_STDDEV_SAMP},
	{F_VAR_POP_FLOAT4, GJ_AGG_SPREAD_F, GJ_FINAL_FLOAT_VAR_POP},
	{F_VAR_SAMP_FLOAT4, GJ_AGG_SPREAD_F, GJ_FINAL_FLOAT_VAR_SAMP},
	{F_VARIANCE_FLOAT4, GJ_AGG_SPREAD_F, GJ_FINAL_FLOAT_VAR_SAMP},
	{F_STDDEV_POP_FLOAT4, GJ_AGG_SPREAD_F, GJ_FINAL_FLOAT_STDDEV_POP},
	{F_STDDEV_SAMP_FLOAT4, GJ_AGG_SPREAD_F, GJ_FINAL_FLOAT_STDDEV_SAMP},
	{F_STDDEV_FLOAT4, GJ_AGG_SPREAD_F, GJ_FINAL_FLOAT_STDDEV_SAMP},
	{F_VAR_POP_FLOAT8, GJ_AGG_SPREAD_F, GJ_FINAL_FLOAT_VAR_POP},
	{F_VAR_SAMP_FLOAT8, GJ_AGG_SPREAD_F, GJ_FINAL_FLOAT_VAR_SAMP},
	{F_VARIANCE_FLOAT8, GJ_AGG_SPREAD_F, GJ_FINAL_FLOAT_VAR_SAMP},
	{F_STDDEV_POP_FLOAT8, GJ_AGG_SPREAD_F, GJ_FINAL_FLOAT_STDDEV_POP},
	{F_STDDEV_SAMP_FLOAT8, GJ_AGG_SPREAD_F, GJ_FINAL_FLOAT_STDDEV_SAMP},
	{F_STDDEV_FLOAT8, GJ_AGG_SPREAD_F, GJ_FINAL_FLOAT_STDDEV_SAMP},
};

/* An argument that was compiled already: aggregates of the same values share it. */
typedef struct CompiledArgument
{
	Expr	   *arg;
	Expr	   *filter;
	int			expr;
	GjNumericInfo numeric;
} CompiledArgument;

/* What is needed while the aggregates of a query are collected. */
typedef struct AggregateContext
{
	PlannerInfo *root;
	GjJoinInfo *info;
	List	   *arguments;		/* of CompiledArgument * */
	Expr	   *distinct;		/* argument of aggregates with DISTINCT, all the same */
	bool		compare_all;	/* no key is taken as dependent on others */
	bool		failed;			/* something that the device cannot compute */
} AggregateContext;

static CompiledArgument *
compile_shared(AggregateContext *cxt, Expr *arg, Expr *filter)
{
	CompiledArgument *compiled;
	ListCell   *lc;

	foreach(lc, cxt->arguments)
	{
		compiled = lfirst(lc);
		if (equal(compiled->arg, arg) && equal(compiled->filter, filter))
			return compiled;
	}
	compiled = palloc0(sizeof(CompiledArgument));
	compiled->arg = arg;
	compiled->filter = filter;
	compiled->expr = gj_compile_filtered(cxt->info->builder, arg, filter, &compiled->numeric);
	if (compiled->expr >= 0)
		cxt->arguments = lappend(cxt->arguments, compiled);
	return compiled;
}

static Expr *
int4_const(int value)
{
	return (Expr *) makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(value), false, true);
}

/*
 * An expression for the display scale that PostgreSQL's value of `node` has in each row
 * where it is not NULL.  NULL if it is not known.
 */
static Expr *
display_scale(GjBuilder *builder, Expr *node)
{
	GjNumericInfo info;
	GjBuilderMark mark;
	Expr	   *sides[2];
	OpExpr	   *op = (OpExpr *) node;
	List	   *whens = NIL;
	ListCell   *lc;

	gj_builder_mark(builder, &mark);
	if (gj_compile_filtered(builder, node, NULL, &info) < 0)
		return NULL;
	gj_builder_reset(builder, &mark);
	if (!info.mixed)
		return int4_const(info.scale);
	if (IsA(node, CaseExpr) && ((CaseExpr *) node)->arg == NULL)
	{
		CaseExpr   *from = (CaseExpr *) node;

		foreach(lc, from->args)
		{
			CaseWhen   *when = copyObject(lfirst_node(CaseWhen, lc));

			when->result = display_scale(builder, when->result);
			if (when->result == NULL)
				return NULL;
			whens = lappend(whens, when);
		}
		sides[0] = from->defresult ? display_scale(builder, from->defresult) : int4_const(0);
		return sides[0] ? gj_make_case(whens, sides[0]) : NULL;
	}
	if (IsA(node, CoalesceExpr))
	{
		/* the scale of the first argument that is not NULL, or of the last one */
		foreach(lc, ((CoalesceExpr *) node)->args)
		{
			Expr	   *scale = display_scale(builder, lfirst(lc));

			if (scale == NULL)
				return NULL;
			if (lnext(((CoalesceExpr *) node)->args, lc) == NULL)
				return gj_make_case(whens, scale);
			whens = lappend(whens, gj_make_when(gj_make_null_test(lfirst(lc), IS_NOT_NULL), scale));
		}
	}
	if (!IsA(node, OpExpr) || list_length(op->args) != 2)
		return NULL;
	for (int i = 0; i < 2; i++)
		if ((sides[i] = display_scale(builder, list_nth(op->args, i))) == NULL)
			return NULL;
	if (op->opfuncid == F_NUMERIC_MUL)
		return gj_make_call(F_INT4PL, INT4OID, list_make2(sides[0], sides[1]));
	if (op->opfuncid == F_NUMERIC_ADD || op->opfuncid == F_NUMERIC_SUB)
	{
		MinMaxExpr *greatest = makeNode(MinMaxExpr);

		greatest->minmaxtype = INT4OID;
		greatest->op = IS_GREATEST;
		greatest->args = list_make2(sides[0], sides[1]);
		greatest->location = -1;
		return (Expr *) greatest;
	}
	return NULL;
}

/* True if the column is one of a table, has no NULLs, and no outer join adds any. */
static bool
column_has_value(PlannerInfo *root, const Var *var)
{
	RangeTblEntry *rte = planner_rt_fetch(var->varno, root);
	ListCell   *lc;

	/* an anti join may have been an outer one */
	foreach(lc, root->join_info_list)
		if (lfirst_node(SpecialJoinInfo, lc)->jointype != JOIN_SEMI)
			return false;
	/* nobody sees to what foreign tables promise */
	return rte->rtekind == RTE_RELATION && rte->relkind != RELKIND_FOREIGN_TABLE &&
		var->varlevelsup == 0 && var->varattno > 0 && gj_is_not_null_column(rte->relid, var->varattno);
}

/* True if an expression is known to have a value for every row. */
static bool
has_value(PlannerInfo *root, Node *node)
{
	const OpExpr *op = (OpExpr *) node;
	const CaseExpr *from = (CaseExpr *) node;
	ListCell   *lc;

	switch (nodeTag(node))
	{
		case T_Const:
			return !((Const *) node)->constisnull;
		case T_Var:
			return column_has_value(root, (Var *) node);
		case T_OpExpr:
			return (op->opfuncid == F_NUMERIC_ADD || op->opfuncid == F_NUMERIC_SUB ||
					op->opfuncid == F_NUMERIC_MUL) &&
				has_value(root, linitial(op->args)) && has_value(root, lsecond(op->args));
		case T_CaseExpr:
			foreach(lc, from->args)
				if (!has_value(root, (Node *) lfirst_node(CaseWhen, lc)->result))
					return false;
			return from->defresult != NULL && has_value(root, (Node *) from->defresult);
		default:
			return false;
	}
}

/* Compiles the display scale of `arg` where it is not NULL; -1 if that is not possible. */
static int
compile_display_scale(AggregateContext *cxt, Expr *arg, Expr *filter)
{
	Expr	   *scale = display_scale(cxt->info->builder, arg);
	CaseWhen   *when;

	if (scale == NULL)
		return -1;
	if (has_value(cxt->root, (Node *) arg))
		return compile_shared(cxt, scale, filter)->expr;
	when = gj_make_when(gj_make_null_test(arg, IS_NOT_NULL), scale);
	return compile_shared(cxt, gj_make_case(list_make1(when), NULL), filter)->expr;
}

/*
 * Compiles the argument.  count() of a column whose values are not to be looked at becomes
 * the sum of "is not null".
 */
static int
compile_argument(AggregateContext *cxt, Expr *arg, Expr *filter, GjAggregate *agg,
				 GjAggFinal *final, GjNumericInfo *numeric)
{
	CompiledArgument *compiled;

	if (agg->op == GJ_AGG_COUNT && arg != NULL && IsA(arg, Var) &&
		gj_column_type(exprType((Node *) arg)).kind >= GJ_BYTES)
	{
		agg->op = GJ_AGG_SUM_I;
		*final = GJ_FINAL_COUNT_SUM;
		arg = gj_make_null_test(arg, IS_NOT_NULL);
	}
	compiled = compile_shared(cxt, arg, filter);
	*numeric = compiled->numeric;
	return compiled->expr;
}

static void
append_aggregate(GjBuilder *builder, uint32 op, int32 arg)
{
	GjAggregate *agg = palloc(sizeof(GjAggregate));

	agg->op = op;
	agg->arg = arg;
	builder->aggregates = lappend(builder->aggregates, agg);
}

/* The same for one with DISTINCT, whose argument becomes a key (see add_distinct_key). */
static bool
add_distinct(AggregateContext *cxt, Aggref *aggref, uint32 op, GjAggFinal final)
{
	GjBuilder  *builder = cxt->info->builder;
	Expr	   *arg = linitial_node(TargetEntry, aggref->args)->expr;
	GjNumericInfo numeric = {0};
	GjBuilderMark mark;

	gj_builder_mark(builder, &mark);
	if (op == GJ_AGG_SUM_I &&
		(gj_compile_filtered(builder, arg, NULL, &numeric) < 0 || numeric.mixed))
		return false;
	gj_builder_reset(builder, &mark);
	if (aggref->aggfilter != NULL || (cxt->distinct != NULL && !equal(cxt->distinct, arg)) ||
		(op != GJ_AGG_COUNT && (op != GJ_AGG_SUM_I || gj_final_states(final) != 1)))
		return false;
	cxt->distinct = arg;
	append_aggregate(builder, op == GJ_AGG_COUNT ? GJ_AGG_COUNT_DISTINCT :
					 GJ_AGG_SUM_DISTINCT_I, -1);
	cxt->info->agg_finals = lappend_int(cxt->info->agg_finals,
										gj_final_make(final, numeric.scale));
	return true;
}

/* Adds one aggregate to the program; false if the device does not know it. */
static bool
add_aggregate(AggregateContext *cxt, Aggref *aggref)
{
	GjBuilder  *builder = cxt->info->builder;
	GjAggregate agg = {.arg = -1};
	GjAggFinal	final;
	GjNumericInfo numeric = {0};
	Expr	   *arg = NULL;
	int			dscale = -1;
	int			i;

	if (aggref->aggorder != NIL && aggref->aggkind == AGGKIND_NORMAL)
		return gj_refuse("aggregate %s with ORDER BY is not supported", gj_function_name(aggref->aggfnoid));
	if (aggref->agglevelsup != 0)
		return gj_refuse("an aggregate of an outer query");
	if (aggref->aggdirectargs != NIL || aggref->aggkind != AGGKIND_NORMAL ||
		aggref->aggsplit != AGGSPLIT_SIMPLE || list_length(aggref->args) > 1)
		return gj_refuse("aggregate %s is not supported", gj_function_name(aggref->aggfnoid));
	for (i = 0; i < lengthof(device_aggregates); i++)
		if (device_aggregates[i].aggfnoid == aggref->aggfnoid)
			break;
	if (i == lengthof(device_aggregates))
		return gj_refuse("aggregate %s is not supported", gj_function_name(aggref->aggfnoid));
	agg.op = device_aggregates[i].op;
	final = device_aggregates[i].final;
	if (agg.op != GJ_AGG_COUNT_STAR)
		arg = linitial_node(TargetEntry, aggref->args)->expr;
	if (aggref->aggdistinct != NIL)
		return add_distinct(cxt, aggref, agg.op, final) ||
			gj_refuse("aggregate %s with DISTINCT is not supported beside these others", gj_function_name(aggref->aggfnoid));
	if (agg.op == GJ_AGG_COUNT_STAR && aggref->aggfilter != NULL)
		agg.op = GJ_AGG_COUNT;
	if (agg.op != GJ_AGG_COUNT_STAR)
	{
		agg.arg = compile_argument(cxt, arg, aggref->aggfilter, &agg, &final, &numeric);
		if (agg.arg < 0)
			return gj_refuse_because("argument of aggregate %s", gj_function_name(aggref->aggfnoid));
	}
	if (numeric.mixed && final >= GJ_FINAL_SUM_DECIMAL && final <= GJ_FINAL_MINMAX_DECIMAL)
	{
		if (final == GJ_FINAL_MINMAX_DECIMAL)
			return gj_refuse("min or max of numerics of several scales");
		final = final == GJ_FINAL_SUM_DECIMAL ? GJ_FINAL_SUM_MIXED : GJ_FINAL_AVG_MIXED;
		dscale = compile_display_scale(cxt, arg, aggref->aggfilter);
		if (dscale < 0)
			return gj_refuse("sum or avg of numerics of several scales");
	}
	if (numeric.mixed && gj_final_is_wide(final))
		return gj_refuse("variance of numerics of several scales");
	append_aggregate(builder, agg.op, agg.arg);
	if (final == GJ_FINAL_AVG_FLOAT8)
	{
		append_aggregate(builder, GJ_AGG_MIN_F, agg.arg);
		append_aggregate(builder, GJ_AGG_MAX_F, agg.arg);
	}
	else if (dscale >= 0)
		append_aggregate(builder, GJ_AGG_MAX_I, dscale);
	else if (gj_final_is_wide(final))
	{
		append_aggregate(builder, GJ_AGG_SUM_SQUARES_I, agg.arg);
		append_aggregate(builder, GJ_AGG_SUM_SQUARES_HIGH_I, agg.arg);
	}
	else if (gj_final_states(final) == 2)
		append_aggregate(builder, GJ_AGG_SUM_SQUARES_I, agg.arg);
	cxt->info->agg_finals = lappend_int(cxt->info->agg_finals,
										gj_final_make(final, numeric.scale));
	return true;
}

/*
 * Columns beside the keys, which they depend on (GROUP BY a primary key), become keys that are not
 * compared.
 */
static bool
add_dependent_keys(Node *node, AggregateContext *cxt)
{
	int			nkeys = cxt->info->ngroup_keys;

	if (node == NULL || IsA(node, Aggref) || list_member(cxt->info->outputs, node))
		return false;
	if (IsA(node, Var) || IsA(node, PlaceHolderVar) || IsA(node, GroupingFunc))
	{
		/* what outer joins compute is compared, and all of them are then */
		cxt->compare_all |= !IsA(node, Var);
		cxt->failed |= nkeys == 0 || !gj_add_group_key(cxt->info, (Expr *) node);
		cxt->info->builder->ndependent_keys += cxt->info->ngroup_keys - nkeys;
		return cxt->failed;
	}
	return expression_tree_walker(node, add_dependent_keys, cxt);
}

/* Adds the aggregates in an expression over keys and aggregates. */
static bool
add_aggregates(Node *node, AggregateContext *cxt)
{
	if (node == NULL || list_member(cxt->info->outputs, node))
		return false;
	if (IsA(node, Aggref))
	{
		cxt->info->outputs = lappend(cxt->info->outputs, node);
		cxt->failed |= !add_aggregate(cxt, (Aggref *) node);
		return cxt->failed;
	}
	return expression_tree_walker(node, add_aggregates, cxt);
}

/* Makes the argument of aggregates with DISTINCT the last key or keys, which are no outputs. */
static bool
add_distinct_key(AggregateContext *cxt)
{
	GjJoinInfo *info = cxt->info;
	int			nkeys = info->ngroup_keys;

	if (cxt->distinct == NULL)
		return true;
	if (!gj_add_group_key(info, cxt->distinct))
		return false;
	for (; info->ngroup_keys > nkeys; info->ngroup_keys--)
	{
		info->outputs = list_delete_last(info->outputs);
		info->key_codes = list_delete_last(info->key_codes);
		info->builder->ndistinct_keys++;
	}
	return true;
}

/* True if the query wants something that is made here, and nothing that is not. */
static bool
is_aggregation(Query *parse)
{
	if (parse->groupingSets != NIL)
		return gj_refuse("GROUPING SETS, ROLLUP and CUBE are not supported");
	if (parse->hasAggs || parse->groupClause != NIL)
		return true;
	if (parse->hasDistinctOn)
		return gj_refuse("DISTINCT ON is not supported");
	if (parse->hasWindowFuncs || parse->hasTargetSRFs)
		return gj_refuse("DISTINCT of window functions or set-returning functions is not supported");
	return parse->distinctClause != NIL;
}

/* An estimate of the groups among `rows` rows. */
static double
estimate_groups(PlannerInfo *root, GjJoinInfo *info)
{
	List	   *keys = list_truncate(list_copy(info->outputs),
									 info->ngroup_keys - info->builder->ndependent_keys);

	if (info->ngroup_keys == 0)
		return 1;
	return clamp_row_est(estimate_num_groups(root, keys, info->rows, NULL, NULL));
}

/*
 * Conditions in the order in which PostgreSQL's aggregate evaluates them, the cheapest first: what
 * one of them leaves out cannot fail in the next.
 */
static List *
in_order_of_cost(PlannerInfo *root, List *quals)
{
	List	   *result = NIL;
	ListCell   *lc;
	ListCell   *before;

	foreach(lc, quals)
	{
		QualCost	cost;
		QualCost	other;
		int			n = 0;

		cost_qual_eval_node(&cost, lfirst(lc), root);
		foreach(before, result)
		{
			cost_qual_eval_node(&other, lfirst(before), root);
			if (cost.per_tuple < other.per_tuple)
				break;
			n++;
		}
		result = list_insert_nth(result, n, lfirst(lc));
	}
	return result;
}

/* True for a value of the query around this one. */
static bool
has_outer_value(Node *node, void *root)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return ((Param *) node)->paramkind == PARAM_EXEC && !gj_is_initplan_param(root, (Param *) node);
	return expression_tree_walker(node, has_outer_value, root);
}

/*
 * True for a scan in a correlated subquery, which runs once for each row outside: some rows
 * each time, often through an index, that a device is never asked for in time.
 */
static bool
is_correlated_scan(const GjBuilder *builder)
{
	ListCell   *lc;

	if (builder->nsources > 1)
		return false;
	foreach(lc, builder->runtime)
		if (has_outer_value((Node *) ((GjRuntimeConst *) lfirst(lc))->expr, builder->root))
			return true;
	return false;
}

GjJoinInfo *
gj_build_aggregate(PlannerInfo *root, Path *native)
{
	Query	   *parse = root->parse;
	GjJoinInfo *info;
	AggregateContext cxt = {.root = root};

	if (!is_aggregation(parse))
		return NULL;
	info = cxt.info = palloc0(sizeof(GjJoinInfo));
	info->aggregate = true;
	info->builder = gj_build_join(root, native, NULL, &info->rows);
	if (info->builder == NULL)
		return NULL;
	/* reading the rows of another plan only to count them gains nothing */
	if (info->builder->nsources == 1 && !OidIsValid(info->builder->source[0].heap_relid) &&
		info->builder->source[0].stage == NULL)
	{
		gj_swap_obstacle(info->builder->source[0].why);
		gj_refuse_because("its rows come from a plan, not from pages of tables");
		return NULL;
	}
	if (is_correlated_scan(info->builder))
	{
		gj_refuse("a correlated subquery, which runs once for each outer row");
		return NULL;
	}
	if (!gj_add_group_keys(root, info) ||
		add_dependent_keys((Node *) root->processed_tlist, &cxt) ||
		add_dependent_keys(parse->havingQual, &cxt) ||
		add_aggregates((Node *) root->processed_tlist, &cxt) ||
		add_aggregates(parse->havingQual, &cxt) || info->outputs == NIL ||
		!add_distinct_key(&cxt))
		return NULL;
	/* a distinct key is behind them */
	if (cxt.compare_all || info->builder->ndistinct_keys > 0)
		info->builder->ndependent_keys = 0;
	info->nfallback = list_length(info->outputs);
	info->host_quals = in_order_of_cost(root, (List *) parse->havingQual);
	gj_plan_membership(root, info);
	info->groups = estimate_groups(root, info);
	info->program = gj_builder_finish(info->builder, info->builder->group_keys != NIL ?
									  GJ_OUTPUT_GROUPS : GJ_OUTPUT_AGGREGATES);
	return info->program ? info : NULL;
}

/* What gj_aggregate_follows has made, in PlannerInfo.join_search_private. */
#define BUILT_MAGIC			0x474a4231

typedef struct BuiltAggregate
{
	uint32		magic;
	RelOptInfo *rel;
	GjJoinInfo *info;
} BuiltAggregate;

/* How EXPLAIN's reasons call what is made here. */
static const char *
aggregate_part(Query *parse)
{
	return parse->groupClause != NIL || parse->groupingSets != NIL ? "Groups of" :
		parse->hasAggs ? "Aggregates of" : "Distinct rows of";
}

bool
gj_aggregate_follows(PlannerInfo *root, RelOptInfo *rel, Path *native)
{
	GjPart	   *part = is_aggregation(root->parse) ?
		gj_part(root, aggregate_part(root->parse), rel->relids) : NULL;
	GjJoinInfo *info = gj_build_aggregate(root, native);
	BuiltAggregate *built;

	if (info == NULL)
		gj_part_refused(part);
	else
		info->part = part;

	/* what is there belongs to another extension, or to joins of partitions */
	if (info == NULL || root->join_search_private != NULL)
		return info != NULL;
	built = palloc(sizeof(BuiltAggregate));
	built->magic = BUILT_MAGIC;
	built->rel = rel;
	built->info = info;
	root->join_search_private = built;
	return true;
}

/* Takes what was made for the relation out again; NULL: nothing was. */
static GjJoinInfo *
take_built(PlannerInfo *root, RelOptInfo *rel)
{
	BuiltAggregate *built = root->join_search_private;

	if (built == NULL || built->magic != BUILT_MAGIC || built->rel != rel)
		return NULL;
	root->join_search_private = NULL;
	return built->info;
}

/* The cheapest native way to do the same, its target cut down to `outputs`. */
static Path *
native_aggregate(PlannerInfo *root, RelOptInfo *rel, List *outputs)
{
	Path	   *best = NULL;
	PathTarget *target;
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		/* an append of aggregates of partitions has the target that it was given */
		if ((IsA(path, AggPath) || IsA(path, GroupPath) || IsA(path, UpperUniquePath) ||
			 (IsA(path, AppendPath) &&
			  list_difference(outputs, path->pathtarget->exprs) == NIL)) &&
			path->param_info == NULL && !gj_contains_gpujoin(path) &&
			(best == NULL || path->total_cost < best->total_cost))
			best = path;
	}
	if (best == NULL)
		return NULL;
	target = create_empty_pathtarget();
	foreach(lc, outputs)
		add_column_to_pathtarget(target, lfirst(lc), 0);
	target = set_pathtarget_cost_width(root, target);
	best = gj_copy_path(best);
	/* these return what they read */
	if (IsA(best, UpperUniquePath) || IsA(best, AppendPath))
		return (Path *) create_projection_path(root, rel, best, target);
	best->pathtarget = target;
	return best;
}

/* The order in which what follows would have its rows, if it wants one. */
static List *
wanted_order(PlannerInfo *root, UpperRelationKind stage)
{
	if (stage == UPPERREL_DISTINCT)
		return root->sort_pathkeys;
	return root->window_pathkeys != NIL ? root->window_pathkeys :
		root->distinct_pathkeys != NIL ? root->distinct_pathkeys : root->sort_pathkeys;
}

/* The path that is sorted by more, or else the cheaper one; each can be NULL. */
static GjPath *
cheaper_sorted(GjPath *a, GjPath *b)
{
	int			more;

	if (a == NULL || b == NULL)
		return a != NULL ? a : b;
	more = list_length(b->cpath.path.pathkeys) - list_length(a->cpath.path.pathkeys);
	return more > 0 || (more == 0 && b->cost < a->cost) ? b : a;
}

static bool
offer_aggregate(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
				RelOptInfo *output_rel, GjPart *part)
{
	Path	   *native = input_rel->cheapest_total_path;
	GjJoinInfo *info;
	PathTarget *target;
	List	   *pathkeys = wanted_order(root, stage);
	GjPath	   *sorted;
	GjPath	   *path;
	GjPath	   *having;

	if (!gj_may_plan(root))
		return false;
	if (native == NULL || native->param_info != NULL || !bms_is_empty(input_rel->lateral_relids))
		return gj_refuse("LATERAL is not supported");
	if (gj_contains_gpujoin(native))
		return is_aggregation(root->parse) &&
			gj_refuse("what they are made of is offloaded by itself");
	if (!gj_worth_looking(native))
		return false;
	info = take_built(root, input_rel);
	if (info == NULL)
		info = gj_build_aggregate(root, native);
	if (info == NULL || !gj_has_device())
		return false;
	info->part = part;
	info->fallback = native_aggregate(root, output_rel, info->outputs);
	if (info->fallback == NULL)
		return gj_refuse("PostgreSQL's plan for them is of an unknown kind");
	/* a relation of distinct rows has no target of its own: it is what they are made of */
	target = stage == UPPERREL_DISTINCT ? native->pathtarget : output_rel->reltarget;
	gj_remember_limited(root, output_rel, target, info);
	sorted = gj_sorted_path(root, output_rel, target, info, pathkeys);
	path = gj_create_path(root, output_rel, target, info);
	gj_stage_note(root, output_rel, path);
	having = gj_having_path(root, output_rel, path);
	if (having != NULL)
	{
		gj_remember_limited(root, output_rel, target, having->info);
		sorted = cheaper_sorted(sorted, gj_sorted_path(root, output_rel, target, having->info, pathkeys));
		if (having->cost < path->cost)
			path = having;
	}
	gj_offer_sorted(root, output_rel, gj_late_path(root, path), sorted, pathkeys);
	return true;
}

void
gj_add_aggregate_path(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
					  RelOptInfo *output_rel)
{
	GjPart	   *part;

	if ((input_rel->reloptkind != RELOPT_JOINREL && input_rel->reloptkind != RELOPT_BASEREL) ||
		IS_DUMMY_REL(input_rel))
		return;
	part = gj_part(root, aggregate_part(root->parse), input_rel->relids);
	if (!offer_aggregate(root, stage, input_rel, output_rel, part))
		gj_part_refused(part);
}
