/*
 * join_plan.c
 *	  From a GpuJoin path to a CustomScan node.
 *
 * The scan tuple (custom_scan_tlist) starts with what a batch delivers.  Behind that
 * come, never filled in, the other columns that conditions speak of: so setrefs.c can
 * adjust the conditions kept in custom_exprs, and EXPLAIN can print them.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"

#include "exec/join_scan.h"
#include "load/tuple_id.h"
#include "plan/join_path.h"
#include "plan/outer_joins.h"
#include "plan/reasons.h"

static Const *
make_bytes(const void *data, Size nbytes)
{
	bytea	   *bytes = palloc(VARHDRSZ + nbytes);

	SET_VARSIZE(bytes, VARHDRSZ + nbytes);
	memcpy(VARDATA(bytes), data, nbytes);
	return makeConst(BYTEAOID, -1, InvalidOid, -1, PointerGetDatum(bytes), false, false);
}

/* Adds entries for the columns in `exprs`, as they are returned, that the scan tuple lacks. */
static List *
add_columns(List *tlist, List *exprs)
{
	List	   *columns = pull_var_clause((Node *) exprs, PVC_INCLUDE_PLACEHOLDERS);
	ListCell   *lc;

	foreach(lc, columns)
	{
		Expr	   *expr = lfirst(lc);

		if (tlist_member(expr, tlist) == NULL)
			tlist = lappend(tlist, makeTargetEntry(expr, list_length(tlist) + 1, NULL, false));
	}
	return tlist;
}

/*
 * The columns of a target that nothing returns.  Below a window function PostgreSQL asks for what is
 * grouped by, and for the columns that it is made of, which nobody reads.
 */
static List *
bare_columns(List *tlist)
{
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, tlist)
	{
		Expr	   *expr = ((TargetEntry *) lfirst(lc))->expr;

		if (IsA(expr, Var) || IsA(expr, PlaceHolderVar))
			columns = lappend(columns, expr);
	}
	return columns;
}

/*
 * The entry of the scan tuple that stands for a table, to find its alias by: one of its
 * columns, or ctid if nothing is read of it.
 */
static AttrNumber
table_resno(const GjBuildSource *source, List *outputs, List **scan_tlist)
{
	Var		   *ctid = makeVar(source->rel->relid, SelfItemPointerAttributeNumber, TIDOID, -1,
							   InvalidOid, 0);
	ListCell   *lc;

	foreach(lc, source->columns)
	{
		Expr	   *column = gj_as_returned(((GjBuildColumn *) lfirst(lc))->expr, outputs);
		TargetEntry *tle = tlist_member(column, *scan_tlist);

		if (tle != NULL)
			return tle->resno;
	}
	ctid = gj_as_returned(ctid, outputs);
	*scan_tlist = add_columns(*scan_tlist, list_make1(ctid));
	return tlist_member((Expr *) ctid, *scan_tlist)->resno;
}

/* See GjSourcePrivate. */
static List *
source_description(const GjBuildSource *source, List *outputs, List **scan_tlist,
				   int *nchildren)
{
	bool		heap = OidIsValid(source->heap_relid);
	List	   *result = list_make3_int((int) source->heap_relid, heap ? -1 : ++(*nchildren),
										heap ? table_resno(source, outputs, scan_tlist) : 0);
	ListCell   *lc;

	foreach(lc, source->columns)
		result = lappend_int(result, ((GjBuildColumn *) lfirst(lc))->attno);
	return result;
}

/* See GjTablePrivate. */
static List *
table_descriptions(PlannerInfo *root, const GjBuildSource *source)
{
	List	   *result = NIL;
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, source->tables)
	{
		Index		rti = lfirst_int(lc);
		List	   *table = list_make2_int((int) planner_rt_fetch(rti, root)->relid,
										   (int) rti - (int) source->rel->relid);

		foreach(lc2, source->columns)
		{
			AttrNumber	attno = gj_table_attno(root, source->rel, rti,
											   ((GjBuildColumn *) lfirst(lc2))->attno);

			if (attno <= 0 && attno != GJ_TUPLE_ID_ATTNO)
				elog(ERROR, "table %u has no such column", planner_rt_fetch(rti, root)->relid);
			table = lappend_int(table, attno);
		}
		result = lappend(result, table);
	}
	return result;
}

/*
 * True if no row may be returned before the run is complete.  Groups come when it is, but
 * what their states hold can still be a reason to fall back.
 */
static bool
complete_first(GjJoinInfo *info)
{
	ListCell   *lc;

	/* the backend returns none before it has sorted all */
	if (info->host_sort != NIL)
		return false;
	/* sorted rows come when all of them have been made */
	if (info->program->output != GJ_OUTPUT_GROUPS)
		return info->builder->can_fail &&
			(info->builder->sort_keys == NIL || info->limit > 0);
	foreach(lc, info->agg_finals)
		if (gj_final_can_fail(gj_final_kind(lfirst_int(lc))))
			return true;
	return false;
}

/* Entries that a hash table of a plan that hardly ever runs is made for at first; it grows. */
#define FALLBACK_ENTRIES	256

static void limit_first_hash_tables(Plan *plan);

static void
limit_in_each(List *plans)
{
	ListCell   *lc;

	foreach(lc, plans)
		limit_first_hash_tables(lfirst(lc));
}

/*
 * The fallback is initialised with the node, and hash tables that its nodes make at once with it:
 * memory for many thousand groups would take longer than the device takes for the query.
 */
static void
limit_first_hash_tables(Plan *plan)
{
	if (plan == NULL)
		return;
	switch (nodeTag(plan))
	{
		case T_Agg:
			((Agg *) plan)->numGroups = Min(((Agg *) plan)->numGroups, FALLBACK_ENTRIES);
			limit_in_each(((Agg *) plan)->chain);
			break;
		case T_SetOp:
			((SetOp *) plan)->numGroups = Min(((SetOp *) plan)->numGroups, FALLBACK_ENTRIES);
			break;
		case T_Memoize:
			((Memoize *) plan)->est_entries = Min(((Memoize *) plan)->est_entries, FALLBACK_ENTRIES);
			break;
		case T_SubqueryScan:
			limit_first_hash_tables(((SubqueryScan *) plan)->subplan);
			break;
		case T_Append:
			limit_in_each(((Append *) plan)->appendplans);
			break;
		case T_MergeAppend:
			limit_in_each(((MergeAppend *) plan)->mergeplans);
			break;
		default:
			break;
	}
	limit_first_hash_tables(plan->lefttree);
	limit_first_hash_tables(plan->righttree);
}

/* True if an output, from 0, is a late column. */
static bool
is_late(const GjJoinInfo *info, int output)
{
	ListCell   *lc;

	foreach(lc, info->late)
		for (int i = GJ_LATE_COLUMNS; i < list_length(lfirst(lc)); i += 2)
			if (list_nth_int(lfirst(lc), i) == output + 1)
				return true;
	return false;
}

/* See GJ_ATTRIBUTE_PLAIN; NIL if no column is late. */
static List *
describe_group_attributes(const GjJoinInfo *info)
{
	int			nplain = list_length(info->outputs) - list_length(info->late);
	List	   *result = NIL;

	for (int i = 0; info->late != NIL && i < list_length(info->outputs); i++)
		result = lappend_int(result, i >= nplain ? GJ_ATTRIBUTE_TUPLE_ID :
							 is_late(info, i) ? GJ_ATTRIBUTE_LATE : GJ_ATTRIBUTE_PLAIN);
	return result;
}

/* See GJ_ATTRIBUTE_PLAIN. */
static List *
describe_attributes(const GjJoinInfo *info)
{
	List	   *result = NIL;
	int			n = 0;
	ListCell   *lc;

	if (info->aggregate)
		return describe_group_attributes(info);
	foreach(lc, info->computed)
	{
		GjBuildColumn *column;
		int			output;

		if (is_late(info, foreach_current_index(lc)))
		{
			result = lappend_int(result, GJ_ATTRIBUTE_LATE);
			continue;
		}
		if (lfirst(lc) != NULL)
		{
			result = lappend_int(result, GJ_ATTRIBUTE_COMPUTED);
			continue;
		}
		output = list_nth_int(info->builder->outputs, n++);
		column = gj_builder_column_at(info->builder, output >> 16, output & 0xFFFF);
		result = lappend_int(result, column->attno == GJ_TUPLE_ID_ATTNO ? GJ_ATTRIBUTE_TUPLE_ID :
							 column->scale);
	}
	return result;
}

static List *
computed_exprs(const GjJoinInfo *info)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, info->computed)
		if (lfirst(lc) != NULL)
			result = lappend(result, lfirst(lc));
	return result;
}

static void forget_all_append_rels(PlannerInfo *root);

/*
 * Forgets which relations of subqueries are members of others.  Where a subquery is a source, its
 * plan is there and in the fallback, and setrefs.c changes the subquery's AppendRelInfos in place,
 * once for each: EXPLAIN, which alone reads them, would find them damaged.  Without them it names
 * the first member where it would name the whole.
 *
 * relids: those whose subqueries these are; NULL: all.  Members of an append count in any case.
 */
static void
forget_append_rels(PlannerInfo *root, Relids relids)
{
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		RelOptInfo *rel = root->simple_rel_array[i];

		if (rel == NULL || rel->subroot == NULL ||
			(rel->reloptkind != RELOPT_OTHER_MEMBER_REL && relids != NULL &&
			 !bms_is_member(i, relids)))
			continue;
		forget_all_append_rels(rel->subroot);
	}
}

/* The same of all of a subquery, and of the subqueries that its minima and maxima have become. */
static void
forget_all_append_rels(PlannerInfo *root)
{
	ListCell   *lc;

	root->append_rel_list = NIL;
	foreach(lc, root->minmax_aggs)
		forget_all_append_rels(((MinMaxAggInfo *) lfirst(lc))->subroot);
	forget_append_rels(root, NULL);
}

static Plan *
plan_custom_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist,
				 List *clauses, List *custom_plans)
{
	GjJoinInfo *info = ((GjPath *) best_path)->info;
	GjBuilder  *builder = info->builder;
	CustomScan *scan = makeNode(CustomScan);
	List	   *scan_tlist = NIL,
			   *runtime = NIL,
			   *runtime_instrs = NIL,
			   *conditions = NIL,
			   *counts = NIL,
			   *filters = NIL,
			   *sort_exprs = info->sort_exprs,
			   *sources = NIL,
			   *tables = NIL;
	int			nchildren = 0;
	ListCell   *lc;

	foreach(lc, info->outputs)
		scan_tlist = lappend(scan_tlist, makeTargetEntry(lfirst(lc),
														 foreach_current_index(lc) + 1,
														 NULL, false));
	foreach(lc, builder->runtime)
	{
		GjRuntimeConst *constant = lfirst(lc);

		runtime = lappend(runtime, constant->expr);
		runtime_instrs = lappend_int(runtime_instrs, constant->instr);
	}
	for (int i = 0; i < builder->nsteps; i++)
	{
		GjBuildStep *step = &builder->step[i];

		List	   *all = list_concat_copy(step->key_clauses, step->range_clauses);

		all = list_concat(all, step->residual_clauses);
		conditions = lappend(conditions, list_concat(all, step->filter_clauses));
		counts = lappend(counts, list_make4_int(list_length(step->key_clauses),
												list_length(step->range_clauses),
												list_length(step->residual_clauses),
												list_length(step->filter_clauses)));
	}
	for (int s = 0; s < builder->nsources; s++)
		filters = lappend(filters, builder->source[s].filter_clauses);
	conditions = gj_as_returned(conditions, info->outputs);
	filters = gj_as_returned(filters, info->outputs);
	scan_tlist = add_columns(scan_tlist, conditions);
	scan_tlist = add_columns(scan_tlist, filters);
	scan_tlist = add_columns(scan_tlist, bare_columns(tlist));
	/* groups are sorted by what they return */
	if (!gj_returns_groups(info))
	{
		sort_exprs = gj_as_returned(sort_exprs, info->outputs);
		scan_tlist = add_columns(scan_tlist, sort_exprs);
	}
	for (int s = 0; s < builder->nsources; s++)
	{
		sources = lappend(sources, source_description(&builder->source[s], info->outputs,
													  &scan_tlist, &nchildren));
		tables = lappend(tables, table_descriptions(root, &builder->source[s]));
		if (builder->source[s].path != NULL || builder->source[s].stage != NULL)
			forget_append_rels(root, builder->source[s].relids);
	}

	gj_part_used(info->part);
	if (info->sort_exprs != NIL)
		gj_part_used(info->order_part);

	/* as for a Gather */
	if (info->loader_workers > 0)
		root->glob->parallelModeNeeded = true;

	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = info->is_stage ? NIL : info->host_quals;
	scan->scan.scanrelid = 0;
	scan->flags = best_path->flags;
	scan->custom_plans = custom_plans;
	if (!info->is_stage)
		limit_first_hash_tables(linitial(custom_plans));
	scan->custom_exprs = list_make5(runtime, conditions, filters, sort_exprs,
									computed_exprs(info));
	scan->custom_exprs = lappend(scan->custom_exprs, info->is_stage ? info->host_quals : NIL);
	scan->custom_scan_tlist = scan_tlist;
	scan->custom_private = list_make1(make_bytes(info->program, info->program->nbytes));
	scan->custom_private = lappend(scan->custom_private, sources);
	scan->custom_private = lappend(scan->custom_private, runtime_instrs);
	scan->custom_private = lappend(scan->custom_private, info->agg_finals);
	scan->custom_private = lappend(scan->custom_private,
								   lappend_int(list_make4_int(list_length(info->outputs),
															  info->nfallback, complete_first(info),
															  info->loader_workers),
											   info->is_stage));
	scan->custom_private = lappend(scan->custom_private, counts);
	scan->custom_private = lappend(scan->custom_private, tables);
	scan->custom_private = lappend(scan->custom_private, info->sort_labels);
	scan->custom_private = lappend(scan->custom_private, info->key_codes);
	scan->custom_private = lappend(scan->custom_private, describe_attributes(info));
	scan->custom_private = lappend(scan->custom_private, info->host_sort);
	scan->custom_private = lappend(scan->custom_private, info->late);
	scan->methods = &gj_join_scan_methods;
	return &scan->scan.plan;
}

const CustomPathMethods gj_join_path_methods = {
	.CustomName = "GpuJoin",
	.PlanCustomPath = plan_custom_path,
};
