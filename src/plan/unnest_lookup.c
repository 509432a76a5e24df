/*
 * unnest_lookup.c
 *	  Subqueries that look up one row by a unique key, as left joins.
 *
 *	SELECT (SELECT y FROM t WHERE t.k = o.k AND c) FROM o
 *		o LEFT JOIN (SELECT y, k FROM t WHERE c) s ON s.k = o.k, and s.y, where t has a unique index on
 *		k.  PostgreSQL plans anew when an index is dropped.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_index.h"
#include "catalog/pg_proc.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "plan/unnest_join.h"

/* True for equality, of an operator family, of a column and of something that is not of its row. */
static bool
is_column_equality(const OpExpr *op, Index rti, AttrNumber attno, Oid opfamily)
{
	if (!IsA(op, OpExpr) || list_length(op->args) != 2 ||
		get_op_opfamily_strategy(op->opno, opfamily) != BTEqualStrategyNumber ||
		/* two timestamps can be the same one with a time zone */
		op_volatile(op->opno) != PROVOLATILE_IMMUTABLE ||
		(OidIsValid(op->inputcollid) && !get_collation_isdeterministic(op->inputcollid)))
		return false;
	for (int i = 0; i < 2; i++)
	{
		Var		   *var = list_nth(op->args, i);

		if (IsA(var, RelabelType))
			var = (Var *) ((RelabelType *) var)->arg;
		if (IsA(var, Var) && var->varno == (int) rti && var->varattno == attno &&
			var->varlevelsup == 0 && !contain_vars_of_level(list_nth(op->args, 1 - i), 0))
			return true;
	}
	return false;
}

/* True if conditions say what a column of an index is equal to. */
static bool
is_column_given(const List *quals, Index rti, AttrNumber attno, Oid opfamily)
{
	ListCell   *lc;

	foreach(lc, quals)
		if (is_column_equality(lfirst(lc), rti, attno, opfamily))
			return true;
	return false;
}

/* True if no two rows have the same values of an index's columns, and conditions give them all. */
static bool
is_row_given(Relation index, const List *quals, Index rti)
{
	const FormData_pg_index *form = index->rd_index;

	if (!form->indisunique || !form->indimmediate || !form->indisvalid ||
		index->rd_rel->relam != BTREE_AM_OID ||
		!heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) ||
		/* a snapshot that is older than the index may see duplicates that are gone */
		(IsolationUsesXactSnapshot() &&
		 !TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data), TransactionXmin)))
		return false;
	/* an expression has the number 0 */
	for (int i = 0; i < form->indnkeyatts; i++)
		if (form->indkey.values[i] <= 0 ||
			!is_column_given(quals, rti, form->indkey.values[i], index->rd_opfamily[i]))
			return false;
	return true;
}

/* True if conditions leave at most one row of a table. */
static bool
leaves_one_row(Oid relid, const List *quals, Index rti)
{
	Relation	rel = table_open(relid, NoLock);
	List	   *indexes = RelationGetIndexList(rel);
	bool		result = false;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		result = is_row_given(index, quals, rti);
		index_close(index, NoLock);
		if (result)
			break;
	}
	list_free(indexes);
	table_close(rel, NoLock);
	return result;
}

/* The number of the only table that a query reads; 0: it reads something else. */
static Index
only_table(const Query *query)
{
	Node	   *part = linitial(query->jointree->fromlist);

	if (list_length(query->jointree->fromlist) != 1 || !IsA(part, RangeTblRef) ||
		gj_only_table(query, ((RangeTblRef *) part)->rtindex) == NULL)
		return 0;
	return ((RangeTblRef *) part)->rtindex;
}

bool
gj_is_lookup(Query *sub, const GjAround *around)
{
	Index		rti = only_table(sub);

	return rti != 0 && !contain_volatile_functions((Node *) sub) &&
		!gj_can_fail((Node *) sub, around) &&
		leaves_one_row(gj_only_table(sub, rti)->relid,
					   make_ands_implicit((Expr *) sub->jointree->quals), rti);
}
