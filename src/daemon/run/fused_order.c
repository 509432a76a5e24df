/*
 * fused_order.c
 *	  Chooses the order of the steps of a run's fused pass (run/fused.c).
 *
 * A join that drops most tuples comes before others that it does not depend on: these look at few
 * tuples then.  Its key may be a column of another build side, which is equal to the key of that
 * side's join; then it looks up that key.  Example:
 *
 *	fact JOIN dim ON dim.k = fact.k AND dim.x < fact.y JOIN small ON small.k = dim.k
 *		small first, with small.k = fact.k
 *
 * Tuples that come out are the same: every step only drops tuples, or adds a row to them.
 */
#include "state.h"

#include "device/fused_rows.h"

/* A step of which at most one in so many of its source's rows is in the table drops most tuples. */
#define GJ_DROPS_MOST		4

/* True if an expression is a column of integers, then *column. */
static bool
is_integer_column(const GjRun *run, uint32_t e, uint32_t *column)
{
	const GjExpr *expr = &run->exprs[e];
	const GjInstr *instr = gj_program_array(run->program, GjInstr, instrs) + expr->first;

	if (expr->ninstrs != 1 || instr->op != GJ_OP_LOAD ||
		(expr->kind != GJ_INT2 && expr->kind != GJ_INT4 && expr->kind != GJ_INT8))
		return false;
	*column = instr->arg;
	return true;
}

/* True if few tuples can have a match in a step, and nothing but its key decides. */
static bool
drops_most(const GjRun *run, const GjRunStep *rs)
{
	const GjSourceStats *source = &run->stats.source[rs->step->source];
	uint64_t	nrows = source->rows_in + source->rows_excluded;
	uint32_t	column;

	return rs->step->join_type == GJ_JOIN_INNER && rs->step->nkeys == 1 && rs->residual < 0 &&
		rs->step->filter < 0 && is_integer_column(run, rs->step->probe_keys, &column) &&
		nrows > 0 && source->rows_out <= nrows / GJ_DROPS_MOST;
}

/*
 * True if a step that looks up *key can come before another one; *key becomes the other one's where
 * it was a column of its side.
 */
static bool
can_precede(const GjRun *run, const GjRunStep *other, uint32_t *key)
{
	const GjStep *step = other->step;
	uint32_t	column;
	uint32_t	same;

	/* tuples that are dropped before it mark no rows, and behind its end there are none */
	if (gj_fused_marks(step->join_type) || !is_integer_column(run, *key, &column))
		return false;
	if (run->types[column].source != step->source)
		return true;
	for (uint32_t k = 0; k < step->nkeys && step->join_type == GJ_JOIN_INNER; k++)
	{
		if (!is_integer_column(run, step->build_keys + k, &same) || same != column ||
			!is_integer_column(run, step->probe_keys + k, &same))
			continue;
		*key = step->probe_keys + k;
		return true;
	}
	return false;
}

void
gj_fused_choose_order(const GjRun *run, GjRunFused *fused)
{
	for (uint32_t i = 0; i < run->nsteps; i++)
	{
		const GjRunStep *rs = &run->steps[i];
		uint32_t	key = rs->step->probe_keys;
		uint32_t	at = i;

		while (at > 0 && drops_most(run, rs))
		{
			const GjRunStep *before = &run->steps[fused->order[at - 1]];

			if (drops_most(run, before) || !can_precede(run, before, &key))
				break;
			fused->order[at] = fused->order[at - 1];
			fused->key[at] = fused->key[at - 1];
			at--;
		}
		fused->order[at] = (uint8_t) i;
		fused->key[at] = key;
	}
}
