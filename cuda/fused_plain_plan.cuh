/*
 * fused_plain_plan.cuh
 *	  Which plans of the fused operator are plain, and what they are for its kernels: host code.
 */
#ifndef GJ_CUDA_FUSED_PLAIN_PLAN_CUH
#define GJ_CUDA_FUSED_PLAIN_PLAN_CUH

#include <algorithm>

#include "fused_plain.cuh"

/* True if a column can be one: in all parts, if it is a probe one. */
static bool
plain_column(const GjColumn *column, bool *wide)
{
	*wide = column->packed ? !column->narrow : column->kind == GJ_INT8;
	return (column->packed ? column->kind != GJ_REF
						   : column->kind == GJ_INT4 || column->kind == GJ_INT8) &&
		   column->nulls == NULL;
}

static bool
plain_operand(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
			  uint32_t nparts, int16_t column, uint8_t slot, int64_t constant, PlainOperand *to)
{
	*to = {};
	to->slot = column < 0 ? (uint8_t) PLAIN_CONSTANT : slot;
	to->constant = constant;
	to->wide = column < 0 && constant != (int32_t) constant;
	if (column < 0)
		return true;
	if (slot > 0)
	{
		to->data = columns[column].data;
		return !columns[column].packed && plain_column(&columns[column], &to->wide);
	}
	to->column = column;
	for (uint32_t p = 0; p < nparts; p++)
	{
		bool wide;

		/* those of parts without rows may be missing */
		if (parts[p].nrows == 0)
			continue;
		if (!plain_column(&parts[p].columns[column - (int) plan->first_column], &wide))
			return false;
		to->wide |= wide;
	}
	return true;
}

static bool
plain_ranges(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
			 uint32_t nparts, Plain *plain)
{
	if (plan->filter.form == GJ_FUSED_NONE)
		return true;
	if (plan->filter.form != GJ_FUSED_ALL_TERMS || plan->filter.n > PLAIN_RANGES)
		return false;
	for (uint32_t k = 0; k < plan->filter.n; k++)
	{
		const GjFusedExpr *term = &plan->terms[plan->filter.first + k];
		PlainRange *range = &plain->range[plain->nranges++];
		int64_t high;

		if (term->form != GJ_FUSED_RANGE || term->a < 0 || term->slot_a != 0 ||
			!plain_operand(plan, columns, parts, nparts, term->a, 0, 0, &range->of))
			return false;
		range->low = term->constant;
		high = term->high;
		if (!range->of.wide)
		{
			range->low = std::max(range->low, (int64_t) INT32_MIN);
			high = std::min(high, (int64_t) INT32_MAX);
		}
		/* nothing is in it: the span says at least one value */
		if (range->low > high)
			return false;
		range->span = (uint64_t) high - (uint64_t) range->low;
	}
	return true;
}

/* True if keys are looked up in slots: these are not numbers of places. */
static bool
has_slots(const GjTableRef &table)
{
	return table.kind == GJ_TABLE_HASH || table.kind == GJ_TABLE_WIDE;
}

/* A key that is a column of integers of the probe source. */
static bool
plain_key(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
		  uint32_t nparts, int16_t column, uint8_t slot, PlainOperand *to)
{
	return column >= 0 && slot == 0 &&
		   plain_operand(plan, columns, parts, nparts, column, 0, 0, to);
}

/* What a step looks up. */
static bool
plain_keys(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
		   uint32_t nparts, const GjFusedStep *step, PlainStep *to)
{
	const GjFusedExpr *key = &plan->exprs[step->first_key];

	if (step->nkeys == 2 && are_halves(key))
	{
		to->keys = PLAIN_HALVES;
		to->key.column = key->a;
		to->form = key->arg;
		to->whole = (uint8_t) (key->high & GJ_KEY_WHOLE);
		return step->table.kind == GJ_TABLE_WIDE && key->slot_a == 0;
	}
	if (key->form != GJ_FUSED_SIMPLE ||
		!plain_key(plan, columns, parts, nparts, key->a, key->slot_a, &to->key))
		return false;
	if (step->nkeys == 2)
	{
		to->keys = PLAIN_TWO;
		return step->table.kind == GJ_TABLE_WIDE && key->op == GJ_OP_LOAD && !key->is_float &&
			   key[1].form == GJ_FUSED_SIMPLE && key[1].op == GJ_OP_LOAD && !key[1].is_float &&
			   plain_key(plan, columns, parts, nparts, key[1].a, key[1].slot_a, &to->second);
	}
	if (step->nkeys != 1 || key->op != GJ_OP_PACK_I)
		return step->nkeys == 1 && key->op == GJ_OP_LOAD;
	to->keys = PLAIN_PACKED;
	return !to->key.wide &&
		   plain_key(plan, columns, parts, nparts, key->b, key->slot_b, &to->second) &&
		   !to->second.wide;
}

static bool
plain_steps(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
			uint32_t nparts, Plain *plain)
{
	if (plan->nsteps > PLAIN_STEPS)
		return false;
	plain->nsteps = plan->nsteps;
	for (uint32_t s = 0; s < plan->nsteps; s++)
	{
		const GjFusedStep *step = &plan->steps[s];
		PlainStep *to = &plain->step[s];

		if (step->table.kind == GJ_TABLE_NONE || step->table.nslots > UINT32_MAX ||
			gj_fused_keeps_all(step->join_type) || gj_fused_marks(step->join_type) ||
			step->residual.form != GJ_FUSED_NONE || step->filter.form != GJ_FUSED_NONE)
			return false;
		if (!plain_keys(plan, columns, parts, nparts, step, to))
			return false;
		to->table = step->table;
		if (step->table.kind == GJ_TABLE_WIDE)
			plain->slots = SLOTS_OF_TWO;
		else if (step->table.kind == GJ_TABLE_HASH && plain->slots == NO_SLOTS)
			plain->slots = SLOTS_OF_ONE;
		to->anti = step->join_type == GJ_JOIN_ANTI;
	}
	return true;
}

static bool
plain_expr(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
		   uint32_t nparts, const GjFusedExpr *e, PlainExpr *to)
{
	if (e->form != GJ_FUSED_SIMPLE || e->is_float ||
		!plain_operand(plan, columns, parts, nparts, e->a, e->slot_a, e->constant, &to->a))
		return false;
	to->op = e->op;
	to->narrow = !to->a.wide;
	to->wide = to->a.wide;
	if (e->op == GJ_OP_LOAD)
		return true;
	if (!plain_operand(plan, columns, parts, nparts, e->b, e->slot_b, e->constant, &to->b))
		return false;
	to->narrow = e->arg == GJ_INT4;
	to->wide = to->a.wide || to->b.wide;
	return (e->op == GJ_OP_ADD_I || e->op == GJ_OP_SUB_I || e->op == GJ_OP_MUL_I) &&
		   (e->arg == GJ_INT8 || (e->arg == GJ_INT4 && !to->wide));
}

/* The operands of all expressions. */
template <typename Function>
static void
for_operands(Plain *plain, Function function)
{
	for (uint32_t k = 0; k < plain->nexprs; k++)
	{
		function(&plain->expr[k].a);
		if (plain->expr[k].op != GJ_OP_LOAD)
			function(&plain->expr[k].b);
	}
}

/*
 * Decides what each step finds: not the number of a row if nothing of the row is read, or only what
 * is there as payload.
 */
static void
choose_found(const GjFusedPlan *plan, const GjColumn *columns, Plain *plain)
{
	for (uint32_t s = 0; s < plan->nsteps; s++)
	{
		const GjFusedStep *step = &plan->steps[s];
		const void *payload = step->table.has_payload ? columns[step->payload].data : NULL;
		bool reads_row = false;

		for_operands(plain, [&](PlainOperand *of)
					 { reads_row |= of->slot == s + 1 && (of->data != payload || !payload); });
		if (reads_row)
			continue;
		plain->step[s].table.rows = NULL;
		plain->step[s].payload = step->table.has_payload;
		if (step->table.has_payload && step->table.kind == GJ_TABLE_DIRECT)
			plain->step[s].table.place = step->table.payloads;
		for_operands(plain,
					 [&](PlainOperand *of)
					 {
						 if (of->slot == s + 1)
							 of->data = NULL;
					 });
	}
}

/*
 * Decides with how many bits a kernel computes.  With 32, a direct table ends at the largest key
 * there can be: key - low, modulo 2^32, of a key below `low` is no place of it then.
 */
static void
choose_width(Plain *plain)
{
	for (uint32_t k = 0; k < plain->nranges; k++)
		plain->wide |= plain->range[k].of.wide;
	for (uint32_t s = 0; s < plain->nsteps; s++)
		plain->wide |= plain->step[s].key.wide || plain->step[s].keys != PLAIN_ONE ||
					   (!has_slots(plain->step[s].table) && plain->step[s].table.low < INT32_MIN);
	for (uint32_t k = 0; k < plain->nexprs; k++)
		plain->wide |= plain->expr[k].wide;
	for (uint32_t s = 0; s < plain->nsteps && !plain->wide; s++)
	{
		GjTableRef *table = &plain->step[s].table;

		if (!has_slots(*table))
			table->nslots = (uint64_t) std::max(
				std::min((int64_t) table->nslots, (int64_t) INT32_MAX + 1 - table->low),
				(int64_t) 0);
	}
}

static bool
plain_rows(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
		   uint32_t nparts, Plain *plain)
{
	*plain = {};
	plain->ncolumns = plan->ncolumns;
	return plain_ranges(plan, columns, parts, nparts, plain) &&
		   plain_steps(plan, columns, parts, nparts, plain);
}

/* True if fused_plain_select can do all steps of a plan for these parts (host arrays). */
static inline bool
gj_make_plain_rows(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
				   uint32_t nparts, Plain *plain)
{
	if (!plain_rows(plan, columns, parts, nparts, plain))
		return false;
	choose_width(plain);
	return true;
}

/* True if fused_plain can do all of a plan without groups. */
static bool
gj_make_plain(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
			  uint32_t nparts, Plain *plain)
{
	uint32_t expr[PLAIN_EXPRS]; /* the plan's */

	if (plan->naggregates == 0 || !plain_rows(plan, columns, parts, nparts, plain))
		return false;
	plain->naggregates = plan->naggregates;
	for (uint32_t a = 0; a < plan->naggregates; a++)
	{
		const GjFusedExpr *e = &plan->exprs[plan->aggregate_expr[a]];
		const uint32_t op = plan->aggregate_op[a];
		uint32_t k = 0;

		plain->expr_of[a] = PLAIN_EXPRS;
		if (op == GJ_AGG_COUNT_STAR || e->form == GJ_FUSED_NONE)
			continue;
		if (op != GJ_AGG_SUM_I && op != GJ_AGG_COUNT)
			return false;
		while (k < plain->nexprs && expr[k] != plan->aggregate_expr[a])
			k++;
		if (k == PLAIN_EXPRS)
			return false;
		plain->expr_of[a] = (uint8_t) k;
		if (k < plain->nexprs)
			continue;
		expr[k] = plan->aggregate_expr[a];
		if (!plain_expr(plan, columns, parts, nparts, e, &plain->expr[plain->nexprs++]))
			return false;
	}
	choose_found(plan, columns, plain);
	choose_width(plain);
	return true;
}

#endif /* GJ_CUDA_FUSED_PLAIN_PLAN_CUH */
