/*
 * host_sort_path.c
 *	  GpuJoin paths whose rows the backend sorts by ranks (exec/host_sort.c).
 *
 * They serve orders that the device does not know: of texts and other types of any length, by any
 * collation.  Different values must be few.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
#include "utils/selfuncs.h"

#include "compat.h"
#include "exec/host_sort.h"
#include "plan/join_path.h"
#include "plan/reasons.h"

/* PostgreSQL sorts fewer rows in less time than anybody notices. */
#define LEAST_ROWS		1000
/* Bytes of a row in memory: of itself, a column, a key. */
#define ROW_SPACE		24.0
#define COLUMN_SPACE	9.0
#define KEY_SPACE		16.0
/* Of a different value, beside its bytes. */
#define VALUE_SPACE		64.0
/* Arrays that grow by doubling take so much of what is in them, in the mean. */
#define GROWING			1.5

/* An expression without changes of its type that leave the bytes as they are. */
static Expr *
strip_relabel(Expr *expr)
{
	while (IsA(expr, RelabelType))
		expr = ((RelabelType *) expr)->arg;
	return expr;
}

/* The number of the output, from 1 on, that a member of a class is; 0: none. */
static int
output_of(const GjJoinInfo *info, const EquivalenceMember *member)
{
	ListCell   *lc;

	foreach(lc, info->outputs)
		if (equal(strip_relabel(lfirst(lc)), strip_relabel(member->em_expr)))
			return foreach_current_index(lc) + 1;
	return 0;
}

/* Adds a key; false if its values have no ranks, or too many. */
static bool
add_key(PlannerInfo *root, GjJoinInfo *info, PathKey *pathkey, const EquivalenceClass *ec,
		const EquivalenceMember *member, int output, double rows)
{
	Expr	   *expr = list_nth(info->outputs, output - 1);
	int16		strategy = gj_pathkey_strategy(pathkey);
	Oid			operator = get_opfamily_member(pathkey->pk_opfamily, member->em_datatype,
											   member->em_datatype, strategy);
	Oid			opfamily,
				type;
	String	   *label;

	if (!OidIsValid(operator) ||
		!gj_ordering_properties(operator, &opfamily, &type, &strategy) ||
		get_typlen(exprType((Node *) expr)) == -2)
		return false;
	if (!gj_is_word_order(operator))
	{
		double		values;

		/* nobody knows how many different ones there are */
		if (contain_agg_clause((Node *) expr))
			return false;
		values = estimate_num_groups(root, list_make1(expr), rows, NULL, NULL);
		if (values > rows / 2)
			return false;
		info->host_values += values;
	}
	info->host_sort = lappend(info->host_sort,
							  list_make4_oid(output, operator, ec->ec_collation,
											 pathkey->pk_nulls_first));
	info->sort_exprs = lappend(info->sort_exprs, expr);
	label = gj_sort_label(strategy == BTGreaterStrategyNumber, pathkey->pk_nulls_first);
	if (OidIsValid(ec->ec_collation) && ec->ec_collation != exprCollation((Node *) expr))
		label = makeString(psprintf(" COLLATE %s%s", generate_collation_name(ec->ec_collation),
									strVal(label)));
	info->sort_labels = lappend(info->sort_labels, label);
	return true;
}

static bool
sort_by_pathkey(PlannerInfo *root, GjJoinInfo *info, PathKey *pathkey, double rows)
{
	EquivalenceClass *ec = pathkey->pk_eclass;
	ListCell   *lc;

	while (ec->ec_merged)
		ec = ec->ec_merged;
	if (ec->ec_has_volatile)
		return false;
	foreach(lc, ec->ec_members)
	{
		EquivalenceMember *member = lfirst(lc);
		int			output = member->em_is_const || member->em_is_child ? 0 :
			output_of(info, member);

		if (output > 0)
			return add_key(root, info, pathkey, ec, member, output, rows);
	}
	return false;
}

/* True if the column is a key whose values have ranks: each is kept once. */
static bool
is_ranked(const GjJoinInfo *info, Expr *column)
{
	ListCell   *lc,
			   *lc2;

	forboth(lc, info->sort_exprs, lc2, info->host_sort)
		if (equal(lfirst(lc), column) &&
			!gj_is_word_order(list_nth_oid(lfirst(lc2), GJ_HOST_SORT_OPERATOR)))
			return true;
	return false;
}

/* Bytes that a row takes while rows are sorted. */
static double
row_space(const GjJoinInfo *info, const PathTarget *target)
{
	double		space = ROW_SPACE + COLUMN_SPACE * list_length(info->outputs) +
		KEY_SPACE * list_length(info->host_sort);
	double		copied = 0;
	ListCell   *lc;

	foreach(lc, info->outputs)
		if (!get_typbyval(exprType(lfirst(lc))) && !is_ranked(info, lfirst(lc)))
			copied = target->width;
	return space * GROWING + copied;
}

GjPath *
gj_host_sorted_path(PlannerInfo *root, const GjPath *path, List *pathkeys)
{
	RelOptInfo *rel = path->cpath.path.parent;
	double		rows = path->cpath.path.rows;
	GjJoinInfo *info;
	GjPath	   *sorted;
	ListCell   *lc;

	if (pathkeys == NIL || rows < LEAST_ROWS)
		return NULL;
	info = palloc(sizeof(GjJoinInfo));
	*info = *path->info;
	foreach(lc, pathkeys)
		if (!sort_by_pathkey(root, info, lfirst_node(PathKey, lc), rows))
			return NULL;
	/* the device sorts what needs no ranks */
	if (info->host_values == 0 ||
		rows * row_space(info, path->cpath.path.pathtarget) +
		info->host_values * (VALUE_SPACE + path->cpath.path.pathtarget->width) > work_mem * 1024.0)
		return NULL;
	info->order_part = gj_part(root, "Order of",
							   gj_returns_groups(info) ? root->all_baserels : rel->relids);
	gj_part_above(info->order_part, info->part);
	info->fallback = gj_sorted_native(root, rel, info->fallback, pathkeys);
	sorted = gj_create_path(root, rel, path->cpath.path.pathtarget, info);
	sorted->cpath.path.pathkeys = pathkeys;
	return sorted;
}
