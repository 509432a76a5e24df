/*
 * join_step.c
 *	  One step of a program: how a source is joined with what has been joined before it.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "plan/join_build.h"
#include "plan/join_path.h"

/* The probe side's (0) or build side's (1) expression of a key. */
static Expr *
key_side(const GjJoinClause *key, int s, int side)
{
	bool		right_is_inner = key->right_sources == 1u << s;

	return (side == 0) == right_is_inner ? key->left : key->right;
}

/*
 * Compiles the only key of a step, a text, as two halves: a table of two keys then says of short
 * texts that they are equal, without their bytes.  False if it is too deep.
 */
static bool
compile_halves(GjBuilder *builder, GjBuildStep *step, const GjJoinClause *key)
{
	step->nkeys = 2;
	for (int side = 0; side < 2; side++)
	{
		for (int half = 0; half < 2; half++)
		{
			int			e = gj_compile_key(builder, key->rinfo->clause,
										   key_side(key, step->source, side), half);

			if (e < 0)
				return false;
			if (half == 0)
				*(side == 0 ? &step->probe_keys : &step->build_keys) = e;
		}
	}
	return true;
}

/* Compiles the keys of a step, the first `npacked` of them two by two; false if one is too deep. */
static bool
compile_some_packed(GjBuilder *builder, GjBuildStep *step, GjJoinClause **keys, int n, int npacked)
{
	step->nkeys = n - npacked / 2;
	for (int side = 0; side < 2; side++)
	{
		for (int i = 0; i < n; i++)
		{
			Expr	   *clauses[2] = {keys[i]->rinfo->clause};
			Expr	   *sides[2] = {key_side(keys[i], step->source, side)};
			bool		is_first = i == 0;
			int			e;

			if (i < npacked)
			{
				clauses[1] = keys[++i]->rinfo->clause;
				sides[1] = key_side(keys[i], step->source, side);
				e = gj_compile_packed_key(builder, clauses, sides);
			}
			else
				e = gj_compile_key(builder, clauses[0], sides[0], GJ_WHOLE_KEY);
			if (e < 0)
				return false;
			if (is_first)
				*(side == 0 ? &step->probe_keys : &step->build_keys) = e;
		}
	}
	return true;
}

/*
 * Compiles the keys of a step; they must lie one after the other.  Two integers of 32 bits become a
 * key of 64 bits: tables of one key are much faster than those of several.
 */
static void
compile_keys(GjBuilder *builder, GjBuildStep *step, GjJoinClause **keys)
{
	GjJoinClause *ordered[GJ_MAX_KEYS];
	GjBuilderMark mark;
	int			n = step->nkeys;
	int			npacked = 0;
	int			at = 0;

	gj_builder_mark(builder, &mark);
	if (n == 1 && gj_key_has_halves(keys[0]->rinfo->clause) &&
		compile_halves(builder, step, keys[0]))
		return;
	gj_builder_reset(builder, &mark);
	for (int pass = 0; pass < 2; pass++)
	{
		for (int i = 0; i < n; i++)
			if (gj_key_packs(keys[i]->rinfo->clause) == (pass == 0))
				ordered[at++] = keys[i];
		if (pass == 0)
			npacked = at / 2 * 2;
	}
	if (npacked > 0 && compile_some_packed(builder, step, ordered, n, npacked))
		return;
	gj_builder_reset(builder, &mark);
	if (!compile_some_packed(builder, step, ordered, n, 0))
		elog(ERROR, "could not compile a join key");
}

/* A comparison as EXPLAIN says it: the inner side's expression is on the right, as in a HashJoin. */
static Expr *
with_inner_right(const GjJoinClause *clause, int s)
{
	OpExpr	   *op = (OpExpr *) clause->rinfo->clause;

	if (clause->right_sources == 1u << s || !IsA(op, OpExpr) ||
		!OidIsValid(get_commutator(op->opno)))
		return clause->rinfo->clause;
	op = copyObject(op);
	CommuteOpExpr(op);
	return (Expr *) op;
}

/* Makes keys of the equalities, and returns these. */
static List *
make_keys(GjAttempt *a, GjBuildStep *step, GjJoinClauses *clauses)
{
	GjJoinClause *keys[GJ_MAX_KEYS];
	List	   *equalities = NIL;

	for (int i = 0; i < clauses->n && step->nkeys < GJ_MAX_KEYS; i++)
	{
		GjJoinClause *clause = &clauses->array[i];

		if (!gj_compares(a, clause, step->source, true))
			continue;
		clause->used = true;
		step->key_clauses = lappend(step->key_clauses, with_inner_right(clause, step->source));
		equalities = lappend(equalities, clause->rinfo);
		keys[step->nkeys++] = clause;
	}
	/* keys that are hashes only say which pairs to look at */
	for (int i = 0; i < step->nkeys; i++)
	{
		Expr	   *clause = keys[i]->rinfo->clause;

		if (!gj_key_is_exact(clause) && !(step->nkeys == 1 && gj_halves_are_exact(clause)))
			step->residual_clauses = lappend(step->residual_clauses, clause);
	}
	compile_keys(a->builder, step, keys);
	return equalities;
}

/* An inequality as inner op outer. */
static GjOp
seen_from_inner(const GjJoinClause *clause, int s, Expr **inner, Expr **outer)
{
	if (clause->left_sources == 1u << s)
	{
		*inner = clause->left;
		*outer = clause->right;
		return clause->op;
	}
	*inner = clause->right;
	*outer = clause->left;
	return gj_mirrored(clause->op);
}

static bool
is_lower_bound(GjOp op)
{
	return op == GJ_OP_GT_I || op == GJ_OP_GE_I || op == GJ_OP_GT_F || op == GJ_OP_GE_F;
}

/*
 * Finds the inequalities that bound one expression on the inner side, if possible from
 * below and from above.  bounds[0]: low, bounds[1]: high, NULL if there is none.
 */
static bool
find_range(GjAttempt *a, int s, GjJoinClauses *clauses, GjJoinClause **bounds)
{
	bounds[0] = bounds[1] = NULL;
	for (int i = 0; i < clauses->n; i++)
	{
		GjJoinClause *found[2] = {NULL, NULL};
		Expr	   *key,
				   *inner,
				   *outer;

		if (!gj_compares(a, &clauses->array[i], s, false))
			continue;
		(void) seen_from_inner(&clauses->array[i], s, &key, &outer);
		for (int j = i; j < clauses->n; j++)
		{
			GjJoinClause *clause = &clauses->array[j];
			int			which;

			if (!gj_compares(a, clause, s, false))
				continue;
			which = is_lower_bound(seen_from_inner(clause, s, &inner, &outer)) ? 0 : 1;
			if (found[which] == NULL && equal(inner, key))
				found[which] = clause;
		}
		if ((found[0] && found[1]) || (bounds[0] == NULL && bounds[1] == NULL))
			memcpy(bounds, found, sizeof(found));
		if (bounds[0] && bounds[1])
			break;
	}
	return bounds[0] || bounds[1];
}

static void
make_range(GjAttempt *a, GjBuildStep *step, GjJoinClause **bounds)
{
	GjBuilder  *builder = a->builder;

	for (int which = 0; which < 2; which++)
	{
		GjJoinClause *clause = bounds[which];
		Expr	   *inner,
				   *outer;
		GjOp		op;
		bool		strict;
		int			e;

		if (clause == NULL)
			continue;
		op = seen_from_inner(clause, step->source, &inner, &outer);
		strict = op == GJ_OP_LT_I || op == GJ_OP_LT_F || op == GJ_OP_GT_I || op == GJ_OP_GT_F;
		if (step->range_key < 0)
			step->range_key = gj_compile(builder, inner);
		e = gj_compile(builder, outer);
		if (step->range_key < 0 || e < 0)
			elog(ERROR, "could not compile a range");
		if (which == 0)
		{
			step->range_low = e;
			step->low_strict = strict;
		}
		else
		{
			step->range_high = e;
			step->high_strict = strict;
		}
		clause->used = true;
		step->range_clauses = lappend(step->range_clauses, clause->rinfo->clause);
	}
}

/* Compiles conditions as one; false if they are too deep together. */
static bool
compile_conditions(GjBuilder *builder, List *clauses, int *expr)
{
	*expr = -1;
	if (clauses != NIL)
		*expr = gj_compile(builder, make_ands_explicit(list_copy(clauses)));
	return clauses == NIL || *expr >= 0;
}

/* Adds a comparison of sets to the step. */
static bool
make_sets(GjAttempt *a, GjBuildStep *step, GjJoinClause *clause)
{
	bool		inverted = clause->left_sources == 1u << step->source;

	if (!gj_add_set_step(a->builder, step, clause->set, inverted))
		return false;
	clause->used = true;
	step->key_clauses = list_make1(clause->rinfo->clause);
	return true;
}

/*
 * The comparison of sets by which source s is to be joined; NULL: by other conditions.  Where
 * these leave few pairs, PostgreSQL may as well compare their arrays; but where matches
 * decide about more than pairs, the device must know all of it.
 */
static GjJoinClause *
choose_sets(GjAttempt *a, GjBuildStep *step, GjJoinClauses *clauses)
{
	GjJoinClause *chosen = NULL;
	List	   *keys = NIL;

	for (int i = 0; i < clauses->n; i++)
	{
		if (gj_compares(a, &clauses->array[i], step->source, true))
			keys = lappend(keys, clauses->array[i].rinfo);
		else if (chosen == NULL && gj_compares_sets(a, &clauses->array[i], step->source))
			chosen = &clauses->array[i];
	}
	if (chosen == NULL)
		return NULL;
	gj_estimate_sets(a->builder, chosen->set, &step->outer_elements, &step->inner_elements,
					 &step->common_elements);
	if (chosen->left_sources == 1u << step->source)
	{
		double		left = step->outer_elements;

		step->outer_elements = step->inner_elements;
		step->inner_elements = left;
	}
	if (step->join_type == GJ_JOIN_INNER && keys != NIL)
	{
		double		inner = a->builder->source[step->source].rows_filtered;
		double		pairs = a->rows * inner *
			clauselist_selectivity(a->root, keys, 0, JOIN_INNER, NULL);

		if (gj_cost_check_pairs(pairs) < gj_cost_sets(step, a->rows, inner))
			return NULL;
	}
	return chosen;
}

bool
gj_make_step(GjAttempt *a, GjJoinType type, int s, GjJoinClauses *clauses, List *filters, double rows)
{
	GjBuilder  *builder = a->builder;
	GjBuildStep *step = &builder->step[builder->nsteps];
	GjJoinClause *bounds[2];
	GjJoinClause *sets;
	SpecialJoinInfo inner = {.type = T_SpecialJoinInfo,.jointype = JOIN_INNER};
	List	   *equalities = NIL;
	bool		has_keys = false;

	memset(step, 0, sizeof(GjBuildStep));
	step->source = s;
	step->join_type = type;
	step->range_key = step->range_low = step->range_high = -1;
	sets = choose_sets(a, step, clauses);
	for (int i = 0; i < clauses->n && sets == NULL; i++)
		has_keys |= gj_compares(a, &clauses->array[i], s, true);
	if (sets != NULL)
	{
		step->algorithm = GJ_JOIN_SET;
		if (!make_sets(a, step, sets))
			return false;
		/* PostgreSQL takes a third of all pairs to be similar; most have nothing in common */
		if (type == GJ_JOIN_INNER && step->set.predicate != GJ_SETS_CONTAINS &&
			step->set.predicate != GJ_SETS_CONTAINED)
			rows = Min(rows, clamp_row_est(a->rows * builder->source[s].rows_filtered *
										   step->common_elements));
	}
	else
	{
		step->algorithm = gj_choose_algorithm(has_keys, find_range(a, s, clauses, bounds));
		equalities = make_keys(a, step, clauses);
	}
	if (step->algorithm == GJ_JOIN_SORT_MERGE && !has_keys)
		make_range(a, step, bounds);
	/* the other conditions that can be checked from here on */
	for (int i = 0; i < clauses->n; i++)
	{
		GjJoinClause *clause = &clauses->array[i];

		if (!gj_can_check(a, clause, s))
			continue;
		clause->used = true;
		step->residual_clauses = lappend(step->residual_clauses, clause->rinfo->clause);
	}
	step->filter_clauses = filters;
	if (!compile_conditions(builder, step->residual_clauses, &step->residual) ||
		!compile_conditions(builder, step->filter_clauses, &step->filter))
		return false;
	if (step->residual >= 0 && equalities != NIL)
		step->key_selectivity = clauselist_selectivity(a->root, equalities, 0, JOIN_INNER, &inner);
	step->rows = a->rows = rows;
	a->joined |= 1u << s;
	builder->nsteps++;
	return true;
}
