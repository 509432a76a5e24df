/*
 * fused_node.c
 *	  Follows expressions, and finds the forms that they have for a fused pass: fused_node.h.
 */
#include "fused_node.h"

#include <string.h>

#include "device/fused_rows.h"
#include "daemon/program/program.h"

/* The slot of a source's row ids. */
static uint8_t
slot_of(const GjRun *run, uint32_t source)
{
	for (uint32_t i = 0; i < run->nsteps; i++)
		if (run->steps[run->fused->order[i]].step->source == source)
			return (uint8_t) (i + 1);
	return 0;
}

void
gj_node_column(const GjRun *run, uint32_t column, GjNode *node)
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

/* True if a node is one factor that is a column, or a constant. */
static bool
is_factor(const GjNode *node, bool column)
{
	return node->kind != GJ_NODE_CASE && node->nfactors == 1 &&
		node->factor[0].op == GJ_OP_LOAD && (node->factor[0].column >= 0) == column;
}

/* A column plus or minus a constant, which is one factor; false: it is something else. */
static bool
add_constant(uint16_t op, const GjNode *a, const GjNode *b, GjNode *node)
{
	bool		first = is_factor(a, false);
	const GjNode *column = first ? b : a;
	int64_t		constant = (first ? a : b)->factor[0].constant;

	if (!is_factor(column, true) || !is_factor(first ? a : b, false))
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
		!is_one_product(b) || a->kind == GJ_NODE_CASE || b->kind == GJ_NODE_CASE)
		return;
	/* a * (b * c) may overflow where (a * b) * c does not */
	if (op == GJ_OP_MUL_I && (b->nfactors > 1 || !is_one_product(a)))
		return;
	if ((op != GJ_OP_MUL_I && add_constant(op, a, b, node)) || n > GJ_NODE_FACTORS)
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

	if (is_factor(a, false) && gj_mul_i(a->factor[0].constant, power, GJ_INT8, &scaled) == GJ_OK)
	{
		constant_node(scaled, node);
		return;
	}
	constant_node(power, &factor);
	add_factors(GJ_OP_MUL_I, a, &factor, node);
}

bool
gj_node_is_condition(const GjNode *node)
{
	return node->kind == GJ_NODE_AND || node->kind == GJ_NODE_COLUMN ||
		(node->kind == GJ_NODE_BINARY && node->term[0].op <= GJ_OP_GE_F);
}

/* True if nodes have the same terms. */
static bool
same_terms(const GjNode *a, const GjNode *b)
{
	return a->nterms == b->nterms && memcmp(a->term, b->term, a->nterms * sizeof(GjFusedExpr)) == 0;
}

/* Gives a node that was made of factors of a and b the terms that these are under. */
static void
put_under(const GjNode *a, const GjNode *b, GjNode *node)
{
	const GjNode *under = a->kind == GJ_NODE_ONLY_IF ? a : b;

	if (under->kind != GJ_NODE_ONLY_IF)
		return;
	if (a->kind == b->kind && !same_terms(a, b))
		node->nfactors = 0;
	node->kind = GJ_NODE_ONLY_IF;
	node->nterms = under->nterms;
	memcpy(node->term, under->term, under->nterms * sizeof(GjFusedExpr));
}

/* value where the condition is true, else NULL. */
static void
only_if_node(const GjNode *value, const GjNode *condition, GjNode *node)
{
	if ((condition->kind != GJ_NODE_TRUTH && !gj_node_is_condition(condition)) ||
		value->nfactors == 0 || value->kind == GJ_NODE_CASE ||
		(value->kind == GJ_NODE_ONLY_IF && !same_terms(value, condition)))
		return;
	*node = *value;
	node->kind = GJ_NODE_ONLY_IF;
	node->nterms = condition->nterms;
	memcpy(node->term, condition->term, condition->nterms * sizeof(GjFusedExpr));
}

/* condition ? value : otherwise, where that is a CASE of one condition and NULL or 0. */
static void
if_node(const GjNode *condition, const GjNode *value, const GjNode *otherwise, GjNode *node)
{
	if (otherwise->kind == GJ_NODE_NULL)
		only_if_node(value, condition, node);
	else if (condition->kind == GJ_NODE_UNTRUTH && otherwise->kind == GJ_NODE_ONLY_IF &&
			 same_terms(condition, otherwise))
	{
		bool		zero = value->kind == GJ_NODE_CONSTANT && value->term[0].constant == 0;

		if (!zero && value->kind != GJ_NODE_NULL)
			return;
		*node = *otherwise;
		if (zero)
			node->kind = GJ_NODE_CASE;
	}
}

/*
 * Makes a node a text: a column's bytes, or a constant.  Terms need no guards: they are evaluated
 * where all before them are true, or no alternative is.
 */
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
		if (instr->n == GJ_BYTES_ARRAY)
			return;
		node->nterms = (instr->imm & GJ_IS_GUARDED) != 0;
		node->term[0] = (GjFusedExpr) {.form = GJ_FUSED_BYTES,.op = GJ_OP_HASH_T,
		.arg = (uint8_t) instr->n,.slot_a = slot_of(run, run->types[instr->arg].source),
		.a = (int16_t) instr->arg,.b = -1};
	}
	node->kind = GJ_NODE_TEXT;
}

/* Makes a node a text that is guarded. */
static void
guard_node(const GjNode *a, GjNode *node)
{
	*node = *a;
	node->nterms = 1;
}

/* Makes a node a text without blanks at its end. */
static void
trim_node(const GjRun *run, const GjInstr *instr, const GjNode *a, GjNode *node)
{
	const int64_t *constants = gj_program_array(run->program, int64_t, constants);
	GjFusedExpr *text = &node->term[0];

	if (a->kind != GJ_NODE_TEXT || instr->arg != GJ_TRIM_RIGHT)
		return;
	*node = *a;
	if (text->a >= 0)
		text->arg |= GJ_BYTES_TRIMMED;
	else
		text->constant = GJ_FUSED_TEXT(text->constant >> 16, gj_text_length(gj_trim(
			gj_text((const uint8_t *) (constants + (text->constant >> 16)),
					(uint32_t) (text->constant & GJ_MAX_TEXT)), GJ_TRIM_RIGHT)));
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

/* Makes a node whether a column's text is in a list without NULLs. */
static void
in_node(const GjInstr *instr, const GjNode *a, GjNode *node)
{
	if (a->kind != GJ_NODE_TEXT || a->term[0].a < 0 || instr->imm != 0 || instr->n > GJ_MAX_TEXT)
		return;
	node->kind = GJ_NODE_AND;
	node->nterms = 1;
	node->term[0] = a->term[0];
	node->term[0].op = GJ_OP_IN_T;
	node->term[0].constant = GJ_FUSED_TEXT(instr->arg, instr->n);
}

/* Makes a node the hash of a column's bytes, or a half of their key. */
static void
hash_node(const GjInstr *instr, const GjNode *a, GjNode *node)
{
	if (a->kind != GJ_NODE_TEXT || a->nterms > 0 || a->term[0].a < 0 ||
		(a->term[0].arg & GJ_BYTES_TRIMMED))
		return;
	node->kind = GJ_NODE_HASH;
	node->term[0] = a->term[0];
	node->term[0].op = (uint8_t) instr->op;
	node->term[0].high = instr->arg;
}

/* Makes a node the answer to the question that begins with an instruction, guarded or not. */
static void
answer_node(const GjRun *run, const GjInstr *load, GjNode *node)
{
	node->kind = GJ_NODE_AND;
	node->nterms = 1;
	node->term[0] = (GjFusedExpr) {.form = GJ_FUSED_ANSWER,.op = GJ_OP_LOAD,
	.arg = (uint8_t) gj_question_number(load),.slot_a = slot_of(run, run->types[load->arg].source),
	.a = (int16_t) load->arg,.b = -1};
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

	if (term->form != GJ_FUSED_SIMPLE || term->op < GJ_OP_EQ_I || term->op > GJ_OP_GE_I ||
		term->op == GJ_OP_NE_I ||
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

/* True if terms of a condition are alternatives. */
static bool
has_or(const GjNode *node)
{
	for (uint32_t t = 0; t < node->nterms; t++)
		if (node->term[t].form == GJ_FUSED_OR)
			return true;
	return false;
}

/* Makes a node the terms of a, then those of b. */
static void
join_terms(const GjNode *a, const GjNode *b, GjNode *node)
{
	node->kind = GJ_NODE_AND;
	node->nterms = a->nterms + b->nterms;
	memcpy(node->term, a->term, a->nterms * sizeof(GjFusedExpr));
	memcpy(node->term + a->nterms, b->term, b->nterms * sizeof(GjFusedExpr));
}

static void
and_node(const GjNode *a, const GjNode *b, GjNode *node)
{
	if (gj_node_is_condition(a) && gj_node_is_condition(b) && a->nterms + b->nterms <= GJ_FUSED_TERMS &&
		!has_or(a) && !has_or(b))
		join_terms(a, b, node);
}

/* Makes a node whether a condition is true. */
static void
truth_node(const GjNode *condition, GjNode *node)
{
	if (condition->kind != GJ_NODE_TRUTH && condition->kind != GJ_NODE_UNTRUTH &&
		!gj_node_is_condition(condition))
		return;
	*node = *condition;
	node->nfactors = 0;
	if (condition->kind != GJ_NODE_UNTRUTH)
		node->kind = GJ_NODE_TRUTH;
}

/* Makes a node whether a condition is not true: 1 xor whether it is. */
static void
untruth_node(const GjNode *one, const GjNode *truth, GjNode *node)
{
	if (one->kind != GJ_NODE_CONSTANT || one->term[0].constant != 1 || truth->kind != GJ_NODE_TRUTH)
		return;
	*node = *truth;
	node->kind = GJ_NODE_UNTRUTH;
}

/* The range of one column that a condition stands for; false: it is something else. */
static bool
range_of(const GjNode *node, GjFusedExpr *range)
{
	if (!gj_node_is_condition(node))
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

/* a OR b, where these are ranges of one column without a gap between them; false: they are not. */
static bool
join_ranges(const GjNode *a, const GjNode *b, GjNode *node)
{
	GjFusedExpr x;
	GjFusedExpr y;

	if (!range_of(a, &x) || !range_of(b, &y) || x.a != y.a ||
		(x.high < y.constant && y.constant - 1 > x.high) ||
		(y.high < x.constant && x.constant - 1 > y.high))
		return false;
	if (x.constant > y.constant)
		x.constant = y.constant;
	if (x.high < y.high)
		x.high = y.high;
	node->kind = GJ_NODE_AND;
	node->nterms = 1;
	node->term[0] = x;
	return true;
}

/* a OR b: a range, or else alternatives. */
static void
or_node(const GjNode *a, const GjNode *b, GjNode *node)
{
	GjNode		other = {.nterms = 1,.term[0] = {.form = GJ_FUSED_OR,.op = GJ_OP_LOAD,.a = -1,.b = -1}};

	if (join_ranges(a, b, node) || !gj_node_is_condition(a) || !gj_node_is_condition(b) ||
		a->nterms + 1 + b->nterms > GJ_FUSED_TERMS)
		return;
	join_terms(&other, b, node);
	other = *node;
	join_terms(a, &other, node);
}

void
gj_node_follow(const GjRun *run, uint32_t e, GjNode *result)
{
	const GjInstr *instrs = gj_program_array(run->program, GjInstr, instrs);
	GjNode		node[GJ_MAX_REGISTERS];

	memset(node, 0, sizeof(node));
	for (uint32_t i = 0; i < run->exprs[e].ninstrs; i++)
	{
		const GjInstr *instr = &instrs[run->exprs[e].first + i];
		GjNode		made = {.kind = GJ_NODE_OTHER};

		if (instr->op == GJ_OP_LOAD)
			gj_node_column(run, instr->arg, &made);
		else if (instr->op == GJ_OP_CONST && instr->n == 0)
			constant_node(instr->imm, &made);
		else if (instr->op == GJ_OP_CONST)
			made.kind = GJ_NODE_NULL;
		else if (instr->op == GJ_OP_IS_TRUE)
			truth_node(&node[instr->a], &made);
		else if (instr->op == GJ_OP_BIT_XOR)
			untruth_node(&node[instr->a], &node[instr->b], &made);
		else if (instr->op == GJ_OP_ONLY_IF && node[instr->a].kind == GJ_NODE_TEXT)
			guard_node(&node[instr->a], &made);
		else if (instr->op == GJ_OP_ONLY_IF)
			only_if_node(&node[instr->a], &node[instr->b], &made);
		else if (instr->op == GJ_OP_IF)
			if_node(&node[instr->a], &node[instr->b], &node[instr->dst], &made);
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
		else if (instr->op == GJ_OP_IN_T)
			in_node(instr, &node[instr->a], &made);
		else if (instr->op == GJ_OP_TRIM)
			trim_node(run, instr, &node[instr->a], &made);
		else if (instr->op == GJ_OP_HASH_T || instr->op == GJ_OP_KEY_T)
			hash_node(instr, &node[instr->a], &made);
		else if (instr->op == GJ_OP_SCALE_UP)
		{
			scale_node(instr->imm, &node[instr->a], &made);
			put_under(&node[instr->a], &node[instr->a], &made);
		}
		else
		{
			binary_node(instr, &node[instr->a], &node[instr->b], &made);
			if (instr->arg == GJ_INT8)
				add_factors(instr->op, &node[instr->a], &node[instr->b], &made);
			put_under(&node[instr->a], &node[instr->b], &made);
		}
		if (run->fused->answered && gj_is_question(instr))
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

uint8_t
gj_node_add_terms(GjFusedPlan *plan, const GjNode *node)
{
	uint32_t	first = plan->nterms;
	uint32_t	alternative = first;

	for (uint32_t t = 0; t < node->nterms; t++)
	{
		add_term(plan, alternative, node->term[t]);
		if (node->term[t].form == GJ_FUSED_OR)
			alternative = plan->nterms;
	}
	return (uint8_t) (plan->nterms - first);
}
