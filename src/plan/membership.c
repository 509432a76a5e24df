/*
 * membership.c
 *	  The self-join of a membership table, grouped by its sets, as a set join.
 *
 *		SELECT a.id, b.id, count(*) FROM m a JOIN m b USING (elem) GROUP BY a.id, b.id HAVING count(*) >= t
 *
 * The join makes a row for each common element of each pair of sets, only to be counted.  A
 * step of GJ_JOIN_SET with `membership` counts without making them.  It does so for any two
 * tables with rows (set, element), duplicates included; what is needed is the form: two
 * sources, one equality, groups by one integer column of each side, nothing but counts.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
#include "utils/selfuncs.h"

#include "guc.h"
#include "plan/join_path.h"
#include "plan/make_expr.h"
#include "rows/similarity.h"

/* One side: a source, and its column that says which set a row belongs to. */
typedef struct Side
{
	int			source;
	int			index;
	Expr	   *set;			/* the column */
	Expr	   *element;		/* its side of the equality */
} Side;

/* The column that a group key is, if it is one by which sets can be told apart. */
static bool
find_side(GjBuilder *builder, const GjGroupKey *key, Expr *expr, Side *side)
{
	const GjExpr *code;
	const GjInstr *instr;
	GjColumnType type;

	if (key->how != GJ_GROUP_INTEGER)
		return false;
	code = &builder->exprs[key->index];
	instr = &builder->instrs[code->first];
	if (code->ninstrs != 1 || instr->op != GJ_OP_LOAD)
		return false;
	side->source = instr->arg >> 16;
	side->index = instr->arg & 0xFFFF;
	side->set = expr;
	type = gj_builder_column_at(builder, side->source, side->index)->type;
	return type.kind < GJ_BYTES && type.kind != GJ_FLOAT4 && type.kind != GJ_FLOAT8;
}

/* True if the expression reads no columns but those of the two sides. */
static bool
reads_sets(GjBuilder *builder, int expr, const Side *sides)
{
	for (uint32 i = 0; i < builder->exprs[expr].ninstrs; i++)
	{
		const GjInstr *instr = &builder->instrs[builder->exprs[expr].first + i];
		bool		found = !gj_op_loads(instr->op);

		for (int s = 0; s < 2 && !found; s++)
			found = instr->arg == (uint32) (sides[s].source << 16 | sides[s].index);
		if (!found)
			return false;
	}
	return true;
}

static Expr *
without_relabel(Expr *expr)
{
	while (IsA(expr, RelabelType))
		expr = ((RelabelType *) expr)->arg;
	return expr;
}

/* True if the aggregate counts all joined rows: count(*), or count() of what is never NULL. */
static bool
counts_rows(Node *node, const Side *sides)
{
	Aggref	   *aggref = (Aggref *) node;
	Expr	   *arg;

	if (!IsA(node, Aggref) || aggref->aggfilter != NULL || aggref->aggdistinct != NIL)
		return false;
	if (aggref->aggfnoid == F_COUNT_)
		return true;
	if (aggref->aggfnoid != F_COUNT_ANY)
		return false;
	arg = without_relabel(linitial_node(TargetEntry, aggref->args)->expr);
	if (IsA(arg, Const))
		return !((Const *) arg)->constisnull;
	return equal(arg, without_relabel(sides[0].element)) ||
		equal(arg, without_relabel(sides[1].element));
}

/* The two sides, outer first, if the program has the form. */
static bool
find_sides(GjJoinInfo *info, Side *sides)
{
	GjBuilder  *builder = info->builder;
	GjBuildStep *step = &builder->step[0];
	Expr	   *left,
			   *right;
	GjKind		kind;

	if (builder->nsources != 2 || builder->nsteps != 1 || info->ngroup_keys != 2 ||
		builder->ndistinct_keys > 0 || step->join_type != GJ_JOIN_INNER ||
		step->algorithm != GJ_JOIN_HASH || list_length(step->key_clauses) != 1 || step->filter >= 0 ||
		!gj_key_is_exact(linitial(step->key_clauses)) ||
		!gj_key_clause(linitial(step->key_clauses), &left, &right))
		return false;
	kind = builder->exprs[step->probe_keys].kind;
	if (kind == GJ_FLOAT8 || kind == GJ_TEXT)
		return false;
	for (int i = 0; i < 2; i++)
	{
		Side		side = {0};

		if (!find_side(builder, list_nth(builder->group_keys, i), list_nth(info->outputs, i),
					   &side))
			return false;
		sides[side.source] = side;
	}
	if (sides[0].set == NULL || sides[1].set == NULL ||
		(step->residual >= 0 && !reads_sets(builder, step->residual, sides)))
		return false;
	if (bms_is_subset(pull_varnos(builder->root, (Node *) left), builder->source[0].relids))
	{
		sides[0].element = left;
		sides[1].element = right;
	}
	else
	{
		sides[0].element = right;
		sides[1].element = left;
	}
	for (int i = info->ngroup_keys; i < list_length(info->outputs); i++)
		if (!counts_rows(list_nth(info->outputs, i), sides))
			return false;
	return true;
}

/* An expression of the inner side, as if it were one of the outer side. */
static Node *
as_outer(GjBuilder *builder, void *expr)
{
	Node	   *copy = copyObject((Node *) expr);

	ChangeVarNodes(copy, builder->source[1].rel->relid, builder->source[0].rel->relid, 0);
	return copy;
}

/*
 * If both sides are the same rows of a table, and the residual condition compares their sets:
 * GjSetStep.same, else 0.
 */
static uint8
compare_sides(GjBuilder *builder, const Side *sides)
{
	GjBuildSource *outer = &builder->source[0];
	GjBuildSource *inner = &builder->source[1];
	GjBuildStep *step = &builder->step[0];
	Expr	   *left,
			   *right;
	GjOp		op;

	if (!OidIsValid(outer->heap_relid) || outer->heap_relid != inner->heap_relid ||
		list_length(outer->tables) != 1 || list_length(inner->tables) != 1 ||
		list_length(step->residual_clauses) != 1 ||
		planner_rt_fetch(outer->rel->relid, builder->root)->inh !=
		planner_rt_fetch(inner->rel->relid, builder->root)->inh ||
		!equal(outer->filter_clauses, as_outer(builder, inner->filter_clauses)) ||
		!equal(sides[0].set, as_outer(builder, sides[1].set)) ||
		!equal(sides[0].element, as_outer(builder, sides[1].element)) ||
		!gj_inequality_clause(linitial(step->residual_clauses), &left, &right, &op))
		return 0;
	if (op != GJ_OP_LT_I && op != GJ_OP_GT_I)
		return 0;
	if (equal(left, sides[0].set) && equal(right, sides[1].set))
		return op == GJ_OP_LT_I ? 1 : 2;
	if (equal(left, sides[1].set) && equal(right, sides[0].set))
		return op == GJ_OP_LT_I ? 2 : 1;
	return 0;
}

/*
 * A lower bound of the count in HAVING: the other side of a comparison with one of the counts,
 * which is a constant when the query runs.  NULL: there is none, or something in HAVING could
 * fail for groups that do not reach it.
 */
static Expr *
find_threshold(List *having, const Side *sides, bool *strict)
{
	Expr	   *found = NULL;
	ListCell   *lc;

	foreach(lc, having)
	{
		Expr	   *clause = lfirst(lc);
		Expr	   *arg[2];
		GjOp		op = GJ_OP_EQ_I;

		if (!gj_inequality_clause(clause, &arg[0], &arg[1], &op) &&
			!gj_key_clause(clause, &arg[0], &arg[1]))
			return NULL;
		/* a subquery, of which a Param is the result, could fail as well */
		for (int side = 0; side < 2; side++)
			if (!IsA(arg[side], Aggref) && !IsA(arg[side], Var) && !IsA(arg[side], Const) &&
				!(IsA(arg[side], Param) && ((Param *) arg[side])->paramkind == PARAM_EXTERN))
				return NULL;
		for (int side = 0; side < 2; side++)
		{
			bool		less = op == (side == 0 ? GJ_OP_GT_I : GJ_OP_LT_I);

			if (op != GJ_OP_EQ_I && !less && op != (side == 0 ? GJ_OP_GE_I : GJ_OP_LE_I))
				continue;
			if (!counts_rows((Node *) arg[side], sides) ||
				!is_pseudo_constant_clause((Node *) arg[1 - side]))
				continue;
			if (found == NULL)
				*strict = less;
			found = found ? found : arg[1 - side];
		}
	}
	return found;
}

/* Compiles the bound; -1: there is none that the device knows. */
static int
compile_threshold(GjBuilder *builder, Expr *bound)
{
	GjBuilderMark mark;
	const GjExpr *code;
	int			e;

	if (bound == NULL)
		return -1;
	gj_builder_mark(builder, &mark);
	e = gj_compile(builder, bound);
	if (e < 0)
		return -1;
	code = &builder->exprs[e];
	if (code->ninstrs == 1 && builder->instrs[code->first].op == GJ_OP_CONST &&
		code->kind < GJ_FLOAT4)
		return e;
	gj_builder_reset(builder, &mark);
	return -1;
}

/* An expression that tells whether a set is NULL; -1: it never is.  False: not possible. */
static bool
compile_is_null(GjBuilder *builder, const Side *side, int32 *expr)
{
	*expr = -1;
	if (!gj_builder_column_at(builder, side->source, side->index)->type.nullable)
		return true;
	*expr = gj_compile(builder, gj_make_null_test(side->set, IS_NULL));
	return *expr >= 0;
}

/* The argument of the aggregates: how many joined rows a pair stands for. */
static int
add_count(GjBuilder *builder)
{
	GjInstr		instr = {.op = GJ_OP_LOAD_PAIR};
	GjExpr		expr = {.ninstrs = 1,.nregisters = 1,.kind = GJ_INT8};

	expr.first = gj_builder_instr(builder, &instr);
	return gj_builder_expr(builder, &expr);
}

/* What the step costs as it is, and what it makes; the estimates are set. */
static double
estimate_join(PlannerInfo *root, GjJoinInfo *info, const Side *sides, GjBuildStep *counted,
			  Expr *threshold, bool strict)
{
	GjBuilder  *builder = info->builder;
	GjBuildStep joined = builder->step[0];
	double		outer = builder->source[0].rows_filtered;
	double		inner = builder->source[1].rows_filtered;
	double		rows = outer * inner *
		clauselist_selectivity(root, joined.key_clauses, 0, JOIN_INNER, NULL);
	double		all = clamp_row_est(estimate_num_groups(root, list_make1(sides[0].set), outer, NULL, NULL)) *
		clamp_row_est(estimate_num_groups(root, list_make1(sides[1].set), inner, NULL, NULL));
	double		least = 1;
	double		share;

	if (threshold != NULL && IsA(threshold, Const) && !((Const *) threshold)->constisnull)
		least = gj_register_value(exprType((Node *) threshold), ((Const *) threshold)->constvalue) +
			(strict ? 1 : 0);
	share = gj_set_share_from(rows / all, (uint64) Min(Max(least, 1), 1000));
	if (threshold != NULL && !IsA(threshold, Const))
		share /= 3;
	counted->set_pairs = all;
	counted->common_elements = rows;
	/* of each joined row, what other conditions have left */
	counted->rows = clamp_row_est(all * share * Min(joined.rows / Max(rows, 1), 1));
	counted->rows = Min(counted->rows, joined.rows);
	return gj_cost_counted(&joined, rows, outer, inner, list_length(builder->aggregates) + 2);
}

void
gj_plan_membership(PlannerInfo *root, GjJoinInfo *info)
{
	GjBuilder  *builder = info->builder;
	GjBuildStep counted = builder->step[0];
	Side		sides[2] = {{0}};
	bool		strict = false;
	Expr	   *threshold = NULL;
	double		cost;
	int			count;
	ListCell   *lc;

	if (gj_algorithm != GJ_SET_ALGORITHM_AUTO || !find_sides(info, sides))
		return;
	/* nor may conditions be left out that could fail */
	if (counted.residual < 0 || !builder->exprs[counted.residual].can_fail)
		threshold = find_threshold((List *) root->parse->havingQual, sides, &strict);
	cost = estimate_join(root, info, sides, &counted, threshold, strict);
	counted.algorithm = GJ_JOIN_SET;
	counted.set = (GjSetStep) {
		.predicate = GJ_SETS_OVERLAP,.strict = strict,.width = sizeof(int64),.membership = 1,
		.same = compare_sides(builder, sides)
	};
	counted.outer_set = sides[0].source << 16 | sides[0].index;
	counted.inner_set = sides[1].source << 16 | sides[1].index;
	counted.has_values = true;
	/* a technique that was asked for is one of set joins */
	if (gj_set_algorithm == GJ_SETS_AUTO &&
		gj_cost_counted(&counted, counted.rows, builder->source[0].rows_filtered,
						builder->source[1].rows_filtered, list_length(builder->aggregates) + 2) >= cost)
		return;
	if (!compile_is_null(builder, &sides[0], &counted.set.probe_is_null) ||
		!compile_is_null(builder, &sides[1], &counted.set.build_is_null))
		return;
	counted.threshold = compile_threshold(builder, threshold);
	count = add_count(builder);
	foreach(lc, builder->aggregates)
	{
		GjAggregate *aggregate = lfirst(lc);

		aggregate->op = GJ_AGG_SUM_I;
		aggregate->arg = count;
	}
	foreach(lc, info->agg_finals)
		lfirst_int(lc) = gj_final_make(GJ_FINAL_COUNT_SUM, 0);
	builder->step[0] = counted;
	info->rows = counted.rows;
}
