/*
 * fused_plan.c
 *	  Makes the plan of a run's fused pass (run/fused.c): steps, aggregates and group keys as a
 *	  device follows them.
 */
#include "fused_node.h"

#include <string.h>

#include "rows/aggregate.h"
#include "device/fused_rows.h"

/* Makes an expression with a node's factors a CASE. */
static void
make_case(GjFusedPlan *plan, const GjNode *node, GjFusedExpr *made)
{
	made->form = GJ_FUSED_CASE;
	made->op = node->kind == GJ_NODE_CASE ? GJ_OP_IF : GJ_OP_ONLY_IF;
	made->slot_a = plan->nterms;
	made->slot_b = gj_node_add_terms(plan, node);
}

static void
use_code(const GjRun *run, GjFusedPlan *plan, uint32_t e)
{
	if (run->exprs[e].nregisters > plan->nregisters)
		plan->nregisters = (uint8_t) run->exprs[e].nregisters;
}

/*
 * Adds an expression (-1: none) to the plan's; returns its number, or -1: there is no room.
 * is_argument: of an aggregate.
 */
static int
add_value(const GjRun *run, GjFusedPlan *plan, int32_t e, bool is_argument)
{
	GjFusedExpr made = {.form = GJ_FUSED_NONE};
	GjNode		node;
	bool		has_terms;

	if (plan->nexprs == GJ_FUSED_EXPRS)
		return -1;
	if (e >= 0)
	{
		gj_node_follow(run, (uint32_t) e, &node);
		has_terms = node.kind == GJ_NODE_ONLY_IF || node.kind == GJ_NODE_CASE;
		if (node.kind == GJ_NODE_COLUMN || node.kind == GJ_NODE_BINARY ||
			(node.kind == GJ_NODE_HASH && !is_argument))
			made = node.term[0];
		else if (is_argument && node.nfactors > 0 &&
				 plan->nfactors + node.nfactors <= GJ_FUSED_FACTORS &&
				 (!has_terms || plan->nterms + node.nterms <= GJ_FUSED_TERMS))
		{
			made.form = GJ_FUSED_PRODUCTS;
			made.arg = (uint8_t) node.nfactors;
			made.expr = plan->nfactors;
			memcpy(&plan->factors[plan->nfactors], node.factor,
				   node.nfactors * sizeof(GjFusedFactor));
			plan->nfactors += (uint8_t) node.nfactors;
			if (has_terms)
				make_case(plan, &node, &made);
		}
		else
		{
			made.form = GJ_FUSED_CODE;
			made.expr = e;
			use_code(run, plan, (uint32_t) e);
		}
		made.is_float = run->exprs[e].kind == GJ_FLOAT8;
	}
	plan->exprs[plan->nexprs] = made;
	return plan->nexprs++;
}

/* A condition (-1: none). */
static GjFusedCondition
make_condition(const GjRun *run, GjFusedPlan *plan, int32_t e)
{
	GjFusedCondition made = {.form = GJ_FUSED_NONE};
	GjNode		node;

	if (e < 0)
		return made;
	gj_node_follow(run, (uint32_t) e, &node);
	if (gj_node_is_condition(&node) && plan->nterms + node.nterms <= GJ_FUSED_TERMS)
	{
		made.form = GJ_FUSED_ALL_TERMS;
		made.first = plan->nterms;
		made.n = gj_node_add_terms(plan, &node);
		return made;
	}
	made.form = GJ_FUSED_CODE;
	made.expr = e;
	use_code(run, plan, (uint32_t) e);
	return made;
}

/*
 * True if a tuple has at most one match, or it only matters whether there is one, and that does not
 * take long to find out.
 */
static bool
step_fits(const GjRunStep *rs, int32_t residual)
{
	const GjStep *step = rs->step;

	if (!rs->join->hashes || rs->table.kind == GJ_TABLE_SORTED)
		return false;
	switch (step->join_type)
	{
		case GJ_JOIN_INNER:
		case GJ_JOIN_LEFT:
		case GJ_JOIN_RIGHT:
		case GJ_JOIN_FULL:
			return rs->table.max_count <= 1;
		case GJ_JOIN_SEMI:
		case GJ_JOIN_ANTI:
			return rs->table.max_count <= GJ_FUSED_WALK || residual < 0;
		case GJ_JOIN_RIGHT_SEMI:
		case GJ_JOIN_RIGHT_ANTI:
			return rs->table.max_count <= GJ_FUSED_WALK;
		default:
			return false;
	}
}

static bool
add_step(const GjRun *run, GjFusedPlan *plan, uint32_t i)
{
	const GjRunStep *rs = &run->steps[run->fused->order[i]];
	const GjStep *step = rs->step;
	const GjHashTable *table = &rs->table;
	GjFusedStep *to = &plan->steps[plan->nsteps];
	const int32_t residual = gj_residual_holds(run, rs) ? -1 : rs->residual;

	if (!step_fits(rs, residual))
		return false;
	if (table->nrows > 0)
	{
		bool		marks = gj_fused_marks(step->join_type);

		to->walks = table->max_count > 1 && (marks || residual >= 0);
		to->marks = marks ? rs->unmatched.row_matched.memory : NULL;
		to->table = gj_table_ref(table);
		to->payload = (int16_t) (run->sources[step->source].first_column + table->payload);
	}
	to->join_type = step->join_type;
	to->source = step->source;
	to->nkeys = step->nkeys;
	to->first_key = plan->nexprs;
	for (uint32_t k = 0; k < step->nkeys; k++)
		if (add_value(run, plan, (int32_t) (run->fused->key[i] + k), false) < 0)
			return false;
	to->residual = make_condition(run, plan, residual);
	if (!gj_fused_ends(step->join_type))
		to->filter = make_condition(run, plan, step->filter);
	if (gj_fused_keeps_all(step->join_type))
		plan->no_row |= 1u << step->source;
	plan->nsteps++;
	return true;
}

/* True if a fused pass can compute the aggregate. */
static bool
is_fusible(uint32_t op)
{
	switch (op)
	{
		case GJ_AGG_COUNT_STAR:
		case GJ_AGG_COUNT:
		case GJ_AGG_SUM_I:
		case GJ_AGG_SUM_F:
		case GJ_AGG_MIN_I:
		case GJ_AGG_MAX_I:
		case GJ_AGG_MIN_F:
		case GJ_AGG_MAX_F:
		case GJ_AGG_SUM_SQUARES_I:
			return true;
		default:
			return gj_agg_is_distinct(op);
	}
}

static bool
add_aggregates(const GjRun *run, GjFusedPlan *plan)
{
	const GjAggregate *aggregates = gj_program_array(run->program, GjAggregate, aggregates);

	for (uint32_t a = 0; a < run->program->naggregates; a++)
	{
		/* what has one argument shares it */
		int			e = a > 0 && aggregates[a].arg == aggregates[a - 1].arg ?
			plan->aggregate_expr[a - 1] : add_value(run, plan, aggregates[a].arg, true);

		if (!is_fusible(aggregates[a].op) || e < 0)
			return false;
		plan->aggregate_op[a] = (uint8_t) aggregates[a].op;
		plan->aggregate_expr[a] = (uint8_t) e;
	}
	plan->naggregates = (uint8_t) run->program->naggregates;
	return true;
}

static bool
add_group_keys(const GjRun *run, GjFusedPlan *plan)
{
	const GjGroupKey *keys = gj_program_array(run->program, GjGroupKey, group_keys);

	for (uint32_t k = 0; k < gj_group_ncompared(run->program); k++)
	{
		GjNode		node;

		plan->group_how[k] = (uint8_t) keys[k].how;
		plan->group_expr[k] = plan->nexprs;
		if (keys[k].how <= GJ_GROUP_FLOAT)
		{
			if (add_value(run, plan, (int32_t) keys[k].index, false) < 0)
				return false;
			continue;
		}
		if (plan->nexprs == GJ_FUSED_EXPRS)
			return false;
		gj_node_column(run, keys[k].index, &node);
		plan->exprs[plan->nexprs++] = node.term[0];
	}
	plan->ngroup_keys = (uint8_t) gj_group_ncompared(run->program);
	return true;
}

bool
gj_fused_make_plan(const GjRun *run, GjFusedPlan *plan)
{
	const GjProgram *p = run->program;

	if (!run->sink->fusible || p->naggregates > GJ_FUSED_AGGREGATES ||
		gj_group_ncompared(p) > GJ_FUSED_GROUP_KEYS)
		return false;
	plan->ncolumns = p->ncolumns;
	plan->first_column = run->sources[0].first_column;
	plan->nprobe_columns = run->sources[0].ncolumns;
	plan->filter = make_condition(run, plan, run->sources[0].filter);
	for (uint32_t i = 0; i < run->nsteps; i++)
	{
		if (!add_step(run, plan, i))
			return false;
		if (gj_fused_ends(plan->steps[i].join_type))
			return true;
	}
	return add_aggregates(run, plan) &&
		(!run->sink->has_groups || add_group_keys(run, plan));
}
