/*
 * set_function_path.c
 *	  A scan node of our own for gpu_set_join() and its kin in a FROM clause.
 *
 * PostgreSQL collects the rows of a function in FROM in a tuplestore.  The node (GpuSetScan)
 * returns each pair when it is asked for, so a LIMIT ends the join early.  It takes the
 * call as an expression, so parameters of LATERAL, of prepared statements and of subqueries
 * are the executor's.
 *
 * Left to PostgreSQL: ROWS FROM with several functions, WITH ORDINALITY, and whole rows
 * (`SELECT j FROM gpu_set_join(…) j`, and what FOR UPDATE, UPDATE and DELETE need to
 * look at a row again).
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

#include "compat.h"
#include "exec/set_scan.h"
#include "guc.h"
#include "plan/set_function_path.h"

static set_rel_pathlist_hook_type prev_set_rel_pathlist = NULL;

/* The C functions. */
static const char *const function_symbols[GJ_NSET_FUNCTIONS] = {
	[GJ_SET_JOIN] = "gpu_set_join",
	[GJ_SET_JOIN_ITEMS] = "gpu_set_join_items",
	[GJ_SET_TOPK] = "gpu_set_topk",
	[GJ_INTERSECT_FAMILY] = "gpu_intersect_family",
};

/*
 * Which of the C functions a catalog entry calls.  False: none, or one that ALTER FUNCTION has
 * given another user, settings or strictness, all of which are the executor's to see to.
 */
static bool
find_symbol(HeapTuple tuple, GjSetFunction *function)
{
	Form_pg_proc form = (Form_pg_proc) GETSTRUCT(tuple);
	bool		isnull;
	Datum		symbol = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
	bool		plain;
	char	   *name;
	int			i = 0;

	if (isnull || form->prolang != ClanguageId || !form->proretset)
		return false;
	(void) SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proconfig, &plain);
	if (!plain || form->prosecdef || form->proisstrict)
		return false;
	name = TextDatumGetCString(symbol);
	while (i < GJ_NSET_FUNCTIONS && strcmp(name, function_symbols[i]) != 0)
		i++;
	pfree(name);
	*function = i;
	return i < GJ_NSET_FUNCTIONS;
}

bool
gj_is_set_function(Oid funcid, GjSetFunction *function)
{
	HeapTuple	tuple;
	bool		found;
	Oid			extension;

	if (funcid < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	if (!HeapTupleIsValid(tuple))
		return false;
	found = find_symbol(tuple, function);
	ReleaseSysCache(tuple);
	if (!found)
		return false;
	extension = get_extension_oid("gpujoin", true);
	return OidIsValid(extension) && getExtensionOfObject(ProcedureRelationId, funcid) == extension;
}

/* The call of a relation that is one of the functions and nothing else, or NULL. */
static FuncExpr *
get_call(RangeTblEntry *rte, GjSetFunction *function)
{
	FuncExpr   *call;

	if (rte->rtekind != RTE_FUNCTION || rte->funcordinality || list_length(rte->functions) != 1)
		return NULL;
	call = (FuncExpr *) linitial_node(RangeTblFunction, rte->functions)->funcexpr;
	if (!IsA(call, FuncExpr) || !gj_is_set_function(call->funcid, function))
		return NULL;
	return call;
}

/* Is the whole row wanted anywhere? */
static bool
needs_whole_row(RelOptInfo *rel)
{
	Bitmapset  *attributes = NULL;

	pull_varattnos((Node *) rel->reltarget->exprs, rel->relid, &attributes);
	pull_varattnos((Node *) extract_actual_clauses(rel->baserestrictinfo, false), rel->relid, &attributes);
	return bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, attributes) ||
		rel->min_attr > 0 || !bms_is_empty(rel->attr_needed[0 - rel->min_attr]);
}

/* All columns of the function, as the scan tuple has them. */
static List *
make_scan_tlist(RangeTblEntry *rte, Index relid)
{
	List	   *names;
	List	   *columns;
	List	   *tlist = NIL;
	ListCell   *lc;

	gj_expand_rte(rte, relid, &names, &columns);
	foreach(lc, columns)
		tlist = lappend(tlist, makeTargetEntry(lfirst(lc), foreach_current_index(lc) + 1, NULL, false));
	return tlist;
}

static Plan *
plan_set_scan(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist, List *clauses,
			  List *custom_plans)
{
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
	CustomScan *scan = makeNode(CustomScan);
	GjSetFunction function = 0;
	FuncExpr   *call = get_call(rte, &function);

	if (call == NULL)
		elog(ERROR, "a set scan of what is no set function");
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = extract_actual_clauses(clauses, false);
	scan->scan.scanrelid = 0;
	scan->flags = best_path->flags;
	/* the planner puts parameters into it */
	scan->custom_exprs = list_make1(copyObject(call));
	scan->custom_scan_tlist = make_scan_tlist(rte, rel->relid);
	scan->custom_private = list_make1_int(function);
	scan->methods = &gj_set_scan_methods;
	return &scan->scan.plan;
}

static const CustomPathMethods set_scan_path_methods = {
	.CustomName = "GpuSetScan",
	.PlanCustomPath = plan_set_scan,
};

/*
 * Set costs: those of a function scan, but that the join goes on while rows are returned,
 * unless they are collected first.
 */
static void
cost_set_scan(PlannerInfo *root, RelOptInfo *rel, const FuncExpr *call, GjSetFunction function, Path *path)
{
	GjSetEstimate estimate;
	List	   *clauses = path->param_info == NULL ? rel->baserestrictinfo :
		list_concat_copy(rel->baserestrictinfo, path->param_info->ppi_clauses);
	QualCost	quals;

	gj_estimate_set_call(root, call, function, &estimate);
	cost_qual_eval(&quals, clauses, root);
	path->rows = path->param_info != NULL ? path->param_info->ppi_rows : rel->rows;
	path->startup_cost = estimate.load_cost + quals.startup + path->pathtarget->cost.startup;
	if (function == GJ_SET_TOPK || function == GJ_INTERSECT_FAMILY)
		path->startup_cost += estimate.join_cost;
	path->total_cost = estimate.load_cost + estimate.join_cost + quals.startup +
		(cpu_tuple_cost + quals.per_tuple) * rel->tuples +
		path->pathtarget->cost.startup + path->pathtarget->cost.per_tuple * path->rows;
}

static void
gj_set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	GjSetFunction function;
	FuncExpr   *call;
	CustomPath *path;

	if (prev_set_rel_pathlist)
		prev_set_rel_pathlist(root, rel, rti, rte);
	if (!gj_enabled || IS_DUMMY_REL(rel))
		return;
	/* a call of the extension's: most queries have none, and need not look for the extension */
	call = get_call(rte, &function);
	if (call == NULL || needs_whole_row(rel))
		return;
	path = makeNode(CustomPath);
	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.param_info = get_baserel_parampathinfo(root, rel, rel->lateral_relids);
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &set_scan_path_methods;
	cost_set_scan(root, rel, call, function, &path->path);
	/* the function scan would do the same, and keep it: a plan that needs that materialises */
	rel->pathlist = NIL;
	add_path(rel, &path->path);
}

void
gj_set_scan_planner_init(void)
{
	prev_set_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = gj_set_rel_pathlist;
}
