/*
 * fused_plan.c
 *	  Makes the plan of a run's fused pass (run/fused.c): steps, aggregates and group keys as a
 *	  device follows them, and common expressions as forms that need no instructions.
 */
#include "state.h"

#include <string.h>

#include "rows/aggregate.h"
#include "device/fused_rows.h"
#include "daemon/program/program.h"

/* ---- values */

/* What a register holds, as far as it has a common form. */
typedef enum GjNodeKind
{
	GJ_NODE_OTHER,
	GJ_NODE_CONSTANT,
	GJ_NODE_COLUMN,
	GJ_NODE_BINARY,				/* of columns and constants */
	GJ_NODE_TEXT,				/* a column's bytes, or a constant's */
	GJ_NODE_HASH,				/* of a column's bytes, or a half of their key */
	GJ_NODE_AND					/* of binary ones that cannot fail, columns, answers, ranges and bytes
								 * that are like others */
} GjNodeKind;

#define MAX_FACTORS 8			/* of a value */

/* Besides what its kind says, a node can be a sum of products: then it has factors. */
typedef struct GjNode
{
	GjNodeKind	kind;
	uint32_t	nterms;			/* BINARY, COLUMN: 1 */
	uint32_t	nfactors;
	GjFusedExpr term[GJ_FUSED_TERMS];
	GjFusedFactor factor[MAX_FACTORS];
} GjNode;

/* The slot of a source's row ids. */
static uint8_t
slot_of(const GjRun *run, uint32_t source)
{
	for (uint32_t i = 0; i < run->nsteps; i++)
		if (run->steps[run->fused->order[i]].step->source == source)
			return (uint8_t) (i + 1);
	return 0;
}

/* Makes a node the column. */
static void
column_node(const GjRun *run, uint32_t column, GjNode *node)
{
	node->kind = GJ_NODE_COLUMN;
	node->nterms = 1;
	node->term[0] = (GjFusedExpr) {.form = GJ_FUSED_SIMPLE,.op = GJ_OP_LOAD,
	.slot_a = slot_of(run, run->types[column].source),.a = (int16_t) column,.b = -1};
	node->nfactors = 1;
	node->factor[0] = (GjFusedFactor) {.join = GJ_OP_ADD_I,.op = GJ_OP_LOAD,
	.slot = node->term[0].slot_a,.column = (int16_t) column};
}

/* Makes a node the constant. */
static void
constant_node(int64_t value, GjNode *node)
{
	node->kind = GJ_NODE_CONSTANT;
	node->term[0] = (GjFusedExpr) {.a = -1,.constant = value};
	node->nfactors = 1;
	node->factor[0] = (GjFusedFactor) {.join = GJ_OP_ADD_I,.op = GJ_OP_LOAD,.column = -1,
	.constant = value};
}

static bool
is_operand(const GjNode *node)
{
	return node->kind == GJ_NODE_CONSTANT || node->kind == GJ_NODE_COLUMN;
}

/* a <op> b, where that has a common form. */
static void
binary_node(const GjInstr *instr, const GjNode *a, const GjNode *b, GjNode *node)
{
	const GjFusedExpr *x = &a->term[0];
	const GjFusedExpr *y = &b->term[0];

	node->kind = GJ_NODE_OTHER;
	if (!gj_applies(instr->op) || !is_operand(a) || !is_operand(b) ||
		(a->kind == GJ_NODE_CONSTANT && b->kind == GJ_NODE_CONSTANT) || instr->arg > UINT8_MAX)
		return;
	node->kind = GJ_NODE_BINARY;
	node->nterms = 1;
	node->term[0] = (GjFusedExpr) {.form = GJ_FUSED_SIMPLE,.op = (uint8_t) instr->op,
	.arg = (uint8_t) instr->arg,.slot_a = x->slot_a,.slot_b = y->slot_a,.a = x->a,.b = y->a,
	.constant = a->kind == GJ_NODE_CONSTANT ? x->constant : y->constant};
}

static bool
is_one_product(const GjNode *node)
{
	for (uint32_t k = 1; k < node->nfactors; k++)
		if (node->factor[k].join != GJ_OP_MUL_I)
			return false;
	return node->nfactors > 0;
}

/* A column plus or minus a constant, which is one factor; false: it is something else. */
static bool
add_constant(uint16_t op, const GjNode *a, const GjNode *b, GjNode *node)
{
	bool		first = a->kind == GJ_NODE_CONSTANT;
	const GjNode *column = first ? b : a;
	int64_t		constant = (first ? a : b)->term[0].constant;

	if (column->kind != GJ_NODE_COLUMN || (first ? a : b)->kind != GJ_NODE_CONSTANT)
		return false;
	/* column - constant is -constant + column */
	if (op == GJ_OP_SUB_I && !first)
	{
		if (constant == INT64_MIN)
			return false;
		constant = -constant;
		op = GJ_OP_ADD_I;
	}
	node->nfactors = 1;
	node->factor[0] = column->factor[0];
	node->factor[0].op = (uint8_t) op;
	node->factor[0].constant = constant;
	return true;
}

/* Gives a node the factors of a <op> b, where that is a sum of products. */
static void
add_factors(uint16_t op, const GjNode *a, const GjNode *b, GjNode *node)
{
	uint32_t	n = a->nfactors + b->nfactors;

	if ((op != GJ_OP_ADD_I && op != GJ_OP_SUB_I && op != GJ_OP_MUL_I) || a->nfactors == 0 ||
		!is_one_product(b))
		return;
	/* a * (b * c) may overflow where (a * b) * c does not */
	if (op == GJ_OP_MUL_I && (b->nfactors > 1 || !is_one_product(a)))
		return;
	if ((op != GJ_OP_MUL_I && add_constant(op, a, b, node)) || n > MAX_FACTORS)
		return;
	node->nfactors = n;
	memcpy(node->factor, a->factor, a->nfactors * sizeof(GjFusedFactor));
	memcpy(node->factor + a->nfactors, b->factor, b->nfactors * sizeof(GjFusedFactor));
	node->factor[a->nfactors].join = (uint8_t) op;
}

/* Makes a node a constant or product, times a power of 10. */
static void
scale_node(int64_t power, const GjNode *a, GjNode *node)
{
	GjNode		factor = {.kind = GJ_NODE_OTHER};
	int64_t		scaled;

	if (a->kind == GJ_NODE_CONSTANT &&
		gj_mul_i(a->term[0].constant, power, GJ_INT8, &scaled) == GJ_OK)
	{
		constant_node(scaled, node);
		return;
	}
	constant_node(power, &factor);
	add_factors(GJ_OP_MUL_I, a, &factor, node);
}

/* Makes a node a text: a column's bytes, or a constant. */
static void
text_node(const GjRun *run, const GjInstr *instr, GjNode *node)
{
	if (instr->op == GJ_OP_CONST_T)
	{
		if (instr->imm != 0 || instr->n > GJ_MAX_TEXT)
			return;
		node->term[0] = (GjFusedExpr) {.a = -1,.b = -1,
		.constant = GJ_FUSED_TEXT(instr->arg, instr->n)};
	}
	else
	{
		if ((instr->imm & GJ_IS_GUARDED) || instr->n == GJ_BYTES_ARRAY)
			return;
		node->term[0] = (GjFusedExpr) {.form = GJ_FUSED_BYTES,.op = GJ_OP_HASH_T,
		.arg = (uint8_t) instr->n,.slot_a = slot_of(run, run->types[instr->arg].source),
		.a = (int16_t) instr->arg,.b = -1};
	}
	node->kind = GJ_NODE_TEXT;
}

/* Makes a node whether texts are equal, or not, or one is like the other; or the opposite of one. */
static void
bytes_node(const GjRun *run, const GjInstr *instr, const GjNode *a, const GjNode *b, GjNode *node)
{
	const int64_t *constants = gj_program_array(run->program, int64_t, constants);
	GjFusedExpr x = a->term[0];
	GjFusedExpr y = b->term[0];

	if (instr->op == GJ_OP_NOT)
	{
		if (a->kind != GJ_NODE_AND || a->nterms != 1 || x.form != GJ_FUSED_BYTES)
			return;
		x.high ^= GJ_BYTES_NOT;
	}
	else
	{
		if (a->kind != GJ_NODE_TEXT || b->kind != GJ_NODE_TEXT)
			return;
		if (x.a < 0 && instr->op != GJ_OP_LIKE)
		{
			x = b->term[0];
			y = a->term[0];
		}
		if (x.a < 0 || (instr->op == GJ_OP_LIKE &&
						(y.a >= 0 || gj_like_dangles((const uint8_t *) (constants + (y.constant >> 16)),
													 (uint32_t) (y.constant & GJ_MAX_TEXT)))))
			return;
		x.op = instr->op == GJ_OP_LIKE ? GJ_OP_LIKE : GJ_OP_EQ_T;
		x.slot_b = y.slot_a;
		x.b = y.a;
		x.constant = y.a >= 0 ? y.arg : y.constant;
		x.high = (instr->op == GJ_OP_NE_T ? GJ_BYTES_NOT : 0) |
			(instr->op == GJ_OP_LIKE && instr->arg != 0 ? GJ_BYTES_UTF8 : 0);
	}
	node->kind = GJ_NODE_AND;
	node->nterms = 1;
	node->term[0] = x;
}

/* Makes a node the hash of a column's bytes, or a half of their key. */
static void
hash_node(const GjInstr *instr, const GjNode *a, GjNode *node)
{
	if (a->kind != GJ_NODE_TEXT || a->term[0].a < 0)
		return;
	node->kind = GJ_NODE_HASH;
	node->term[0] = a->term[0];
	node->term[0].op = (uint8_t) instr->op;
	node->term[0].high = instr->arg;
}

/* Makes a node the answer to the question that begins with an instruction. */
static void
answer_node(const GjRun *run, const GjInstr *load, GjNode *node)
{
	node->kind = GJ_NODE_AND;
	node->nterms = 1;
	node->term[0] = (GjFusedExpr) {.form = GJ_FUSED_ANSWER,.op = GJ_OP_LOAD,
	.arg = (uint8_t) gj_question_number(load),.slot_a = slot_of(run, run->types[load->arg].source),
	.a = (int16_t) load->arg,.b = -1};
}

/* True if a node can be terms of a condition: they are not all evaluated. */
static bool
is_condition(const GjNode *node)
{
	return node->kind == GJ_NODE_AND || node->kind == GJ_NODE_COLUMN ||
		(node->kind == GJ_NODE_BINARY && node->term[0].op <= GJ_OP_GE_F);
}

/*
 * Makes a comparison of an integer column with a constant a range of the column, where there is
 * one.
 */
static void
make_range(GjFusedExpr *term)
{
	bool		flipped = term->a < 0;
	int64_t		value = term->constant;
	GjFusedExpr range = *term;

	if (term->form != GJ_FUSED_SIMPLE || term->op < GJ_OP_EQ_I || term->op > GJ_OP_GE_I || term->op == GJ_OP_NE_I ||
		(term->a >= 0 && term->b >= 0))
		return;
	if (flipped)
	{
		range.a = term->b;
		range.slot_a = term->slot_b;
		range.b = -1;
	}
	range.constant = INT64_MIN;
	range.high = INT64_MAX;
	switch (term->op)
	{
		case GJ_OP_EQ_I:
			range.constant = range.high = value;
			break;
		case GJ_OP_LE_I:
		case GJ_OP_GE_I:
			if ((term->op == GJ_OP_LE_I) != flipped)
				range.high = value;
			else
				range.constant = value;
			break;
		default:
			/* nothing is less than the least, or greater than the greatest */
			if (value == INT64_MIN || value == INT64_MAX)
				return;
			if ((term->op == GJ_OP_LT_I) != flipped)
				range.high = value - 1;
			else
				range.constant = value + 1;
			break;
	}
	range.form = GJ_FUSED_RANGE;
	range.op = GJ_OP_LOAD;
	*term = range;
}

/* Adds a term to the plan's; ranges of one column become one. */
static void
add_term(GjFusedPlan *plan, uint32_t first, GjFusedExpr term)
{
	make_range(&term);
	for (uint32_t t = first; t < plan->nterms && term.form == GJ_FUSED_RANGE; t++)
	{
		GjFusedExpr *other = &plan->terms[t];

		if (other->form != GJ_FUSED_RANGE || other->a != term.a)
			continue;
		if (other->constant < term.constant)
			other->constant = term.constant;
		if (other->high > term.high)
			other->high = term.high;
		return;
	}
	plan->terms[plan->nterms++] = term;
}

static void
and_node(const GjNode *a, const GjNode *b, GjNode *node)
{
	uint32_t	n = a->nterms + b->nterms;

	node->kind = GJ_NODE_OTHER;
	if (!is_condition(a) || !is_condition(b) || n > GJ_FUSED_TERMS)
		return;
	node->kind = GJ_NODE_AND;
	node->nterms = n;
	memcpy(node->term, a->term, a->nterms * sizeof(GjFusedExpr));
	memcpy(node->term + a->nterms, b->term, b->nterms * sizeof(GjFusedExpr));
}

/* The range of one column that a condition stands for; false: it is something else. */
static bool
range_of(const GjNode *node, GjFusedExpr *range)
{
	if (!is_condition(node))
		return false;
	for (uint32_t t = 0; t < node->nterms; t++)
	{
		GjFusedExpr term = node->term[t];

		make_range(&term);
		if (term.form != GJ_FUSED_RANGE || (t > 0 && term.a != range->a))
			return false;
		if (t == 0)
			*range = term;
		if (range->constant < term.constant)
			range->constant = term.constant;
		if (range->high > term.high)
			range->high = term.high;
	}
	return node->nterms > 0 && range->constant <= range->high;
}

/* a OR b, where these are ranges of one column without a gap between them. */
static void
or_node(const GjNode *a, const GjNode *b, GjNode *node)
{
	GjFusedExpr x;
	GjFusedExpr y;

	node->kind = GJ_NODE_OTHER;
	if (!range_of(a, &x) || !range_of(b, &y) || x.a != y.a ||
		(x.high < y.constant && y.constant - 1 > x.high) ||
		(y.high < x.constant && x.constant - 1 > y.high))
		return;
	if (x.constant > y.constant)
		x.constant = y.constant;
	if (x.high < y.high)
		x.high = y.high;
	node->kind = GJ_NODE_AND;
	node->nterms = 1;
	node->term[0] = x;
}

/* Follows an expression's instructions; *result is what it comes to. */
static void
follow(const GjRun *run, uint32_t e, GjNode *result)
{
	const GjInstr *instrs = gj_program_array(run->program, GjInstr, instrs);
	GjNode		node[GJ_MAX_REGISTERS];

	memset(node, 0, sizeof(node));
	for (uint32_t i = 0; i < run->exprs[e].ninstrs; i++)
	{
		const GjInstr *instr = &instrs[run->exprs[e].first + i];
		GjNode		made = {.kind = GJ_NODE_OTHER};

		if (instr->op == GJ_OP_LOAD)
			column_node(run, instr->arg, &made);
		else if (instr->op == GJ_OP_CONST && instr->n == 0)
			constant_node(instr->imm, &made);
		else if (instr->op == GJ_OP_MOVE || (instr->op == GJ_OP_RANGE_I && instr->arg == GJ_INT8))
			made = node[instr->a];
		else if (instr->op == GJ_OP_AND)
			and_node(&node[instr->a], &node[instr->b], &made);
		else if (instr->op == GJ_OP_OR)
			or_node(&node[instr->a], &node[instr->b], &made);
		else if (instr->op == GJ_OP_LOAD_T || instr->op == GJ_OP_CONST_T)
			text_node(run, instr, &made);
		else if (instr->op == GJ_OP_EQ_T || instr->op == GJ_OP_NE_T || instr->op == GJ_OP_LIKE ||
				 instr->op == GJ_OP_NOT)
			bytes_node(run, instr, &node[instr->a], &node[instr->b], &made);
		else if (instr->op == GJ_OP_HASH_T || instr->op == GJ_OP_KEY_T)
			hash_node(instr, &node[instr->a], &made);
		else if (instr->op == GJ_OP_SCALE_UP)
			scale_node(instr->imm, &node[instr->a], &made);
		else
		{
			binary_node(instr, &node[instr->a], &node[instr->b], &made);
			if (instr->arg == GJ_INT8)
				add_factors(instr->op, &node[instr->a], &node[instr->b], &made);
		}
		if (run->fused->answered && gj_is_question(instr) && !(instr->imm & GJ_IS_GUARDED))
		{
			answer_node(run, instr, &made);
			node[instr->b] = made;
			i += gj_question_skips(instr);
			continue;
		}
		node[instr->dst] = made;
	}
	*result = node[run->exprs[e].result];
}

/* ---- the plan */

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

	if (plan->nexprs == GJ_FUSED_EXPRS)
		return -1;
	if (e >= 0)
	{
		follow(run, (uint32_t) e, &node);
		if (node.kind == GJ_NODE_COLUMN || node.kind == GJ_NODE_BINARY ||
			(node.kind == GJ_NODE_HASH && !is_argument))
			made = node.term[0];
		else if (is_argument && node.nfactors > 0 &&
				 plan->nfactors + node.nfactors <= GJ_FUSED_FACTORS)
		{
			made.form = GJ_FUSED_PRODUCTS;
			made.arg = (uint8_t) node.nfactors;
			made.expr = plan->nfactors;
			memcpy(&plan->factors[plan->nfactors], node.factor,
				   node.nfactors * sizeof(GjFusedFactor));
			plan->nfactors += (uint8_t) node.nfactors;
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
	follow(run, (uint32_t) e, &node);
	if (is_condition(&node) && plan->nterms + node.nterms <= GJ_FUSED_TERMS)
	{
		made.form = GJ_FUSED_ALL_TERMS;
		made.first = plan->nterms;
		for (uint32_t t = 0; t < node.nterms; t++)
			add_term(plan, made.first, node.term[t]);
		made.n = plan->nterms - made.first;
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
		column_node(run, keys[k].index, &node);
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
