/*
 * planned.c
 *	  What finished plans have in them.
 */
#include "postgres.h"

#include "nodes/extensible.h"
#include "optimizer/optimizer.h"

#include "exec/join_scan.h"
#include "exec/set_scan.h"
#include "plan/join_path.h"
#include "plan/planned.h"

typedef bool (*Test) (const Plan *plan);

List *
gj_plans_below(const Plan *plan)
{
	List	   *below = NIL;

	if (IsA(plan, SubqueryScan))
		return list_make1(((const SubqueryScan *) plan)->subplan);
	if (IsA(plan, Append))
		return ((const Append *) plan)->appendplans;
	if (IsA(plan, MergeAppend))
		return ((const MergeAppend *) plan)->mergeplans;
	if (plan->lefttree != NULL)
		below = lappend(below, plan->lefttree);
	if (plan->righttree != NULL)
		below = lappend(below, plan->righttree);
	return below;
}

/*
 * True if the test is true for a node of some plans; NULL is a subplan that PostgreSQL does without.
 * What GpuJoins have as children does not count.
 */
static bool
any_plan(const List *plans, Test test)
{
	ListCell   *lc;

	foreach(lc, plans)
		if (lfirst(lc) != NULL &&
			(test(lfirst(lc)) || any_plan(gj_plans_below(lfirst(lc)), test)))
			return true;
	return false;
}

static bool
some_node(const PlannedStmt *statement, Test test)
{
	return test(statement->planTree) || any_plan(gj_plans_below(statement->planTree), test) ||
		any_plan(statement->subplans, test);
}

static bool
is_gpujoin(const Plan *plan)
{
	return IsA(plan, CustomScan) &&
		((const CustomScan *) plan)->methods == &gj_join_scan_methods;
}

/* A node of another extension that neither scans a table nor has a plan of PostgreSQL below it. */
static bool
is_foreign(const Plan *plan)
{
	const CustomScan *scan = (const CustomScan *) plan;

	return IsA(plan, CustomScan) && scan->scan.scanrelid == 0 && scan->custom_plans == NIL &&
		scan->methods != &gj_join_scan_methods && scan->methods != &gj_set_scan_methods;
}

static bool
is_index_scan(const Plan *plan)
{
	return IsA(plan, IndexScan) || IsA(plan, IndexOnlyScan) || IsA(plan, BitmapHeapScan);
}

bool
gj_has_index_scan(const PlannedStmt *statement)
{
	return some_node(statement, is_index_scan);
}

bool
gj_has_gpujoin(const PlannedStmt *statement)
{
	return some_node(statement, is_gpujoin);
}

static bool
is_aggregation(const Plan *plan)
{
	return IsA(plan, Agg) || IsA(plan, Group);
}

bool
gj_aggregates_itself(const PlannedStmt *statement)
{
	return some_node(statement, is_aggregation);
}

bool
gj_by_other_planner(const PlannedStmt *statement)
{
	return some_node(statement, is_foreign);
}

/* What it takes to read a semi or anti join's inner side to its end for each outer row; or 0. */
static double
cost_reread(const Plan *plan)
{
	const Plan *inner = plan->righttree;
	double		cost;

	if (!IsA(plan, NestLoop) || ((const NestLoop *) plan)->nestParams != NIL ||
		(((const Join *) plan)->jointype != JOIN_SEMI && ((const Join *) plan)->jointype != JOIN_ANTI))
		return 0;
	cost = IsA(inner, Material) ? inner->plan_rows * cpu_operator_cost : inner->total_cost;
	return plan->lefttree->plan_rows * cost;
}

static double
cost_rereads(const List *plans)
{
	double		cost = 0;
	ListCell   *lc;

	foreach(lc, plans)
	{
		const Plan *plan = lfirst(lc);
		const CustomScan *scan = (const CustomScan *) plan;

		if (plan == NULL)
			continue;
		cost += cost_reread(plan);
		if (!is_gpujoin(plan))
			cost += cost_rereads(gj_plans_below(plan));
		else if (list_nth_int(list_nth(scan->custom_private, GJ_PRIVATE_FLAGS), GJ_FLAG_STAGE))
			cost += cost_rereads(scan->custom_plans);
		else
			cost += cost_rereads(list_copy_tail(scan->custom_plans, 1));
	}
	return cost;
}

double
gj_cost_rereads(const PlannedStmt *statement)
{
	return cost_rereads(list_make1(statement->planTree)) + cost_rereads(statement->subplans);
}
