/*
 * other_planner.c
 *	  A planner that behaves as Citus' does, for 035_other_planner.pl.
 *
 * Its hooks may be called below its planner only.  It plans queries of the table "distributed" by
 * itself, and says so: it returns no rows for them.
 */
#include "postgres.h"

#include "fmgr.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "utils/lsyscache.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static planner_hook_type prev_planner = NULL;
static int	depth = 0;

static void
check_depth(void)
{
	if (depth == 0)
		elog(ERROR, "the other planner's hook was called outside of its planner");
}

static void
on_relation(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	check_depth();
}

static void
on_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel, RelOptInfo *innerrel,
		JoinType jointype, JoinPathExtraData *extra)
{
	check_depth();
}

static TupleTableSlot *
no_rows(CustomScanState *state)
{
	return NULL;
}

static void
begin_scan(CustomScanState *state, EState *estate, int eflags)
{
}

static void
end_scan(CustomScanState *state)
{
}

static const CustomExecMethods exec_methods = {
	.CustomName = "OtherScan",
	.BeginCustomScan = begin_scan,
	.ExecCustomScan = no_rows,
	.EndCustomScan = end_scan,
};

static Node *
create_state(CustomScan *scan)
{
	CustomScanState *state = makeNode(CustomScanState);

	state->methods = &exec_methods;
	return (Node *) state;
}

static const CustomScanMethods scan_methods = {"OtherScan", create_state};

static bool
reads_distributed(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		const RangeTblEntry *rte = (const RangeTblEntry *) node;

		return rte->rtekind == RTE_RELATION &&
			strcmp(get_rel_name(rte->relid), "distributed") == 0;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, reads_distributed, context,
								 QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, reads_distributed, context);
}

static Plan *
make_scan(const Plan *plan)
{
	CustomScan *scan = makeNode(CustomScan);
	ListCell   *lc;

	scan->methods = &scan_methods;
	scan->scan.plan.startup_cost = plan->startup_cost;
	scan->scan.plan.total_cost = plan->total_cost;
	foreach(lc, plan->targetlist)
	{
		TargetEntry *entry = copyObject(lfirst_node(TargetEntry, lc));

		entry->expr = (Expr *) makeNullConst(exprType((Node *) entry->expr), -1,
											 exprCollation((Node *) entry->expr));
		scan->scan.plan.targetlist = lappend(scan->scan.plan.targetlist, entry);
	}
	return (Plan *) scan;
}

static PlannedStmt *
plan_query(Query *query, const char *query_string, int cursor_options, ParamListInfo params)
{
	bool		mine = reads_distributed((Node *) query, NULL);
	PlannedStmt *planned;

	depth++;
	PG_TRY();
	{
		planned = prev_planner ? prev_planner(query, query_string, cursor_options, params) :
			standard_planner(query, query_string, cursor_options, params);
	}
	PG_FINALLY();
	{
		depth--;
	}
	PG_END_TRY();
	if (mine)
	{
		ereport(NOTICE, (errmsg("the other planner plans")));
		planned->planTree = make_scan(planned->planTree);
		planned->subplans = NIL;
	}
	return planned;
}

void
_PG_init(void)
{
	prev_planner = planner_hook;
	planner_hook = plan_query;
	set_rel_pathlist_hook = on_relation;
	set_join_pathlist_hook = on_join;
}
