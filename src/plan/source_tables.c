/*
 * source_tables.c
 *	  The tables behind a relation of the query: one, or the members of an append.
 *
 * Partitions, inheritance children and members of a UNION ALL are read as one source, if
 * the loader can read each of them; the columns of the source are the parent's, and each
 * table says which of its attributes they are.  Conditions are the parent's as well: the
 * members' are made of them.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "utils/rel.h"

#include "compat.h"
#include "plan/join_path.h"

bool
gj_is_not_null_column(Oid relid, AttrNumber attnum)
{
	Relation	rel = table_open(relid, NoLock);
	bool		result = gj_is_not_null(RelationGetDescr(rel), attnum - 1);

	table_close(rel, NoLock);
	return result;
}

/* Adds the tables below `relid`, which has members. */
static List *
add_members(PlannerInfo *root, Index relid, List *tables)
{
	/* the array, for the list is forgotten when a plan is made: join_plan.c */
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		AppendRelInfo *member = root->append_rel_array ? root->append_rel_array[i] : NULL;
		RelOptInfo *rel = root->simple_rel_array[i];

		if (member == NULL || member->parent_relid != relid || rel == NULL || IS_DUMMY_REL(rel))
			continue;
		if (planner_rt_fetch(member->child_relid, root)->inh)
			tables = add_members(root, member->child_relid, tables);
		else
			tables = lappend_int(tables, member->child_relid);
	}
	return tables;
}

List *
gj_live_tables(PlannerInfo *root, RelOptInfo *rel)
{
	return planner_rt_fetch(rel->relid, root)->inh ? add_members(root, rel->relid, NIL) :
		list_make1_int(rel->relid);
}

AttrNumber
gj_table_attno(PlannerInfo *root, const RelOptInfo *rel, Index rti, AttrNumber attno)
{
	AppendRelInfo *member;
	Var		   *var;

	if (rti == rel->relid)
		return attno;
	member = root->append_rel_array[rti];
	if (member->parent_relid != rel->relid)
		attno = gj_table_attno(root, rel, member->parent_relid, attno);
	if (attno <= 0 || attno > list_length(member->translated_vars))
		return 0;
	var = list_nth(member->translated_vars, attno - 1);
	return var != NULL && IsA(var, Var) && var->varno == rti && var->varlevelsup == 0 ?
		Max(var->varattno, 0) : 0;
}

bool
gj_tables_have(PlannerInfo *root, const RelOptInfo *rel, List *tables, const Var *var)
{
	ListCell   *lc;

	foreach(lc, tables)
	{
		Index		rti = lfirst_int(lc);
		AppendRelInfo *member = rti == rel->relid ? NULL : root->append_rel_array[rti];
		AttrNumber	attno = gj_table_attno(root, rel, rti, var->varattno);
		Var		   *own;
		AttrNumber	parent_attno = var->varattno;

		if (attno <= 0)
			return false;
		if (member == NULL)
			continue;
		if (member->parent_relid != rel->relid)
			parent_attno = gj_table_attno(root, rel, member->parent_relid, parent_attno);
		own = list_nth(member->translated_vars, parent_attno - 1);
		if (own->vartype != var->vartype || own->varcollid != var->varcollid ||
			(own->vartypmod != var->vartypmod && var->vartypmod != -1))
			return false;
	}
	return true;
}

/* True if the loader can read the table's pages. */
static bool
is_heap_table(PlannerInfo *root, RelOptInfo *rel, Index rti)
{
	RangeTblEntry *rte = planner_rt_fetch(rti, root);
	Relation	relation;
	bool		result;

	if (rte->rtekind != RTE_RELATION ||
		(rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW) ||
		rte->inh || rte->tablesample != NULL)
		return false;
	/*
	 * A member of a UNION ALL can have policies of its own, which neither the parent nor the
	 * member's partitions know.
	 */
	for (Index member = rti; member != rel->relid;
		 member = root->append_rel_array[member]->parent_relid)
		if (planner_rt_fetch(member, root)->securityQuals != NIL)
			return false;
	relation = table_open(rte->relid, NoLock);
	result = relation->rd_tableam == GetHeapamTableAmRoutine();
	table_close(relation, NoLock);
	return result;
}

bool
gj_is_heap(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *tables;
	List	   *read;
	ListCell   *lc;

	if (rel->reloptkind != RELOPT_BASEREL || planner_rt_fetch(rel->relid, root)->tablesample != NULL)
		return false;
	tables = gj_live_tables(root, rel);
	if (tables == NIL)
		return false;
	foreach(lc, tables)
		if (!is_heap_table(root, rel, lfirst_int(lc)))
			return false;
	/* the target of a scan below an aggregate has expressions */
	read = pull_var_clause((Node *) rel->reltarget->exprs, PVC_INCLUDE_AGGREGATES |
						   PVC_INCLUDE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS);
	foreach(lc, read)
		if (!IsA(lfirst(lc), Var) || ((Var *) lfirst(lc))->varattno <= 0)
			return false;
	if (list_length(tables) == 1 && linitial_int(tables) == rel->relid)
		return true;
	read = list_concat(read, pull_var_clause((Node *) get_actual_clauses(rel->baserestrictinfo),
											 PVC_RECURSE_PLACEHOLDERS));
	foreach(lc, read)
		if (((Var *) lfirst(lc))->varno == rel->relid && ((Var *) lfirst(lc))->varlevelsup == 0 &&
			!gj_tables_have(root, rel, tables, lfirst(lc)))
			return false;
	return true;
}

double
gj_heap_tuples(PlannerInfo *root, RelOptInfo *rel, double *pages)
{
	double		tuples = 0;
	double		npages = 0;
	ListCell   *lc;

	foreach(lc, gj_live_tables(root, rel))
	{
		RelOptInfo *table = root->simple_rel_array[lfirst_int(lc)];

		tuples += table->tuples;
		npages += table->pages;
	}
	if (pages)
		*pages = npages;
	return tuples;
}
