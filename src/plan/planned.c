/*
 * planned.c
 *	  What finished plans have in them.
 */
#include "postgres.h"

#include "nodes/extensible.h"

#include "exec/join_scan.h"
#include "exec/set_scan.h"
#include "plan/planned.h"

typedef bool (*Test) (const Plan *plan);

static bool any_plan(const List *plans, Test test);

/* True if the test is true for a node of a plan.  What GpuJoins have as children does not count. */
static bool
some_node(const Plan *plan, Test test)
{
	if (plan == NULL)
		return false;
	if (test(plan))
		return true;
	if (IsA(plan, SubqueryScan))
		return some_node(((const SubqueryScan *) plan)->subplan, test);
	if (IsA(plan, Append))
		return any_plan(((const Append *) plan)->appendplans, test);
	if (IsA(plan, MergeAppend))
		return any_plan(((const MergeAppend *) plan)->mergeplans, test);
	return some_node(plan->lefttree, test) || some_node(plan->righttree, test);
}

static bool
any_plan(const List *plans, Test test)
{
	ListCell   *lc;

	foreach(lc, plans)
		if (some_node(lfirst(lc), test))
			return true;
	return false;
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
	return some_node(statement->planTree, is_index_scan) ||
		any_plan(statement->subplans, is_index_scan);
}

bool
gj_has_gpujoin(const PlannedStmt *statement)
{
	return some_node(statement->planTree, is_gpujoin) || any_plan(statement->subplans, is_gpujoin);
}

bool
gj_by_other_planner(const PlannedStmt *statement)
{
	return some_node(statement->planTree, is_foreign) || any_plan(statement->subplans, is_foreign);
}
