/*
 * pruned_tables.c
 *	  Tables that need not be read in this execution.
 *
 * PostgreSQL prunes partitions again when a plan with parameters is initialised: the native
 * plan, which every GpuJoin keeps, then leaves members of its appends out.  A table that
 * it does not read at all has no part in the result, so a source need not read it either.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"

#include "exec/join_scan.h"

typedef struct PrunedTables
{
	Bitmapset  *read;			/* RT indexes that initialised scans read */
	Bitmapset  *left_out;		/* and those that scans left out of appends would */
} PrunedTables;

/* RT indexes that a node reads itself; NULL for all but scans. */
static Bitmapset *
scanned_by(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
			return bms_make_singleton(((const Scan *) plan)->scanrelid);
		case T_ForeignScan:
			return bms_copy(((const ForeignScan *) plan)->fs_relids);
		case T_CustomScan:
			return bms_copy(((const CustomScan *) plan)->custom_relids);
		default:
			return NULL;
	}
}

/* Adds what a plan would read; nodes that are not known hide what is below them. */
static void
add_left_out(const Plan *plan, PrunedTables *tables)
{
	ListCell   *lc;

	if (plan == NULL)
		return;
	tables->left_out = bms_join(tables->left_out, scanned_by(plan));
	add_left_out(plan->lefttree, tables);
	add_left_out(plan->righttree, tables);
	if (IsA(plan, Append))
		foreach(lc, ((const Append *) plan)->appendplans)
			add_left_out(lfirst(lc), tables);
	else if (IsA(plan, MergeAppend))
		foreach(lc, ((const MergeAppend *) plan)->mergeplans)
			add_left_out(lfirst(lc), tables);
}

/* Adds the members of an append that were not initialised. */
static void
add_members(List *plans, PlanState **states, int nstates, PrunedTables *tables)
{
	int			i = 0;
	ListCell   *lc;

	/* the others are in the same order */
	foreach(lc, plans)
	{
		if (i < nstates && states[i]->plan == lfirst(lc))
			i++;
		else
			add_left_out(lfirst(lc), tables);
	}
}

static bool
find_tables(PlanState *state, PrunedTables *tables)
{
	if (IsA(state, AppendState))
		add_members(((Append *) state->plan)->appendplans, ((AppendState *) state)->appendplans,
					((AppendState *) state)->as_nplans, tables);
	else if (IsA(state, MergeAppendState))
		add_members(((MergeAppend *) state->plan)->mergeplans,
					((MergeAppendState *) state)->mergeplans,
					((MergeAppendState *) state)->ms_nplans, tables);
	tables->read = bms_join(tables->read, scanned_by(state->plan));
	return planstate_tree_walker(state, find_tables, tables);
}

Bitmapset *
gj_pruned_tables(PlanState *native)
{
	PrunedTables tables = {NULL, NULL};

	find_tables(native, &tables);
	return bms_del_members(tables.left_out, tables.read);
}
