/*
 * run_fused.c
 *	  Outer rows through filter, steps and aggregates in one call of the device.
 *
 * That is possible where a tuple has at most one match in every step: hash joins over
 * unique keys, semi and anti joins; and where the output is aggregates or groups.  Whether
 * it is, and the plan that the device then follows, is found out once, when all inner
 * sides are built.  Everything else takes the steps one by one (run_probe.c).
 *
 * Rows are added as parts, wherever they lie, and pass together: those of many resident
 * fragments in one call.
 *
 * Groups: tuples whose group is known are added to its aggregates; all others come back and
 * are grouped as ever (run_group.c), which makes their groups known.  The first rows are
 * few and all come back; the less comes back the more rows pass at once.  Where most of them
 * keep coming back, it is not tried any more.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#include "../rows/aggregate.h"
#include "../rows/fused.h"
#include "program_check.h"

/* Rows are cut at multiples of this: a part that starts anywhere cannot be read by 16 bytes. */
#define GJ_FUSED_CUT		32
/* Rows of one call. */
#define GJ_FUSED_ROWS		(128u * 1024 * 1024)
/* The same where many tuples may come back, and before there is any group. */
#define GJ_FUSED_GROUP_ROWS (16u * 1024 * 1024)
#define GJ_FUSED_FIRST_ROWS (128u * 1024)
/* If no more of them came back from a call, not many will from one of any size. */
#define GJ_FUSED_FEW		(32u * 1024)
/* Where groups are so few, and there is this much more memory than the tuples need: more rows. */
#define GJ_FUSED_FEW_GROUPS 65536
#define GJ_FUSED_SPARE		16
/* The same of any number of rows. */
#define GJ_FUSED_LEAST_SPARE 4
/* Bytes of lists of tuples, a row and slot: two lists with some room to spare. */
#define GJ_FUSED_LISTS		(2 * 5)
/* That many calls of which most tuples came back are too many. */
#define GJ_FUSED_MAX_BAD	4
/* A call takes all rows that are left, if they are no more than one part in so many beyond its own. */
#define GJ_FUSED_LAST_PART	4

/* ---- values */

/* What a register holds, as far as it has a common form. */
typedef enum GjNodeKind
{
	GJ_NODE_OTHER,
	GJ_NODE_CONSTANT,
	GJ_NODE_COLUMN,
	GJ_NODE_BINARY,				/* of columns and constants */
	GJ_NODE_AND					/* of binary ones that cannot fail, and columns */
} GjNodeKind;

typedef struct GjNode
{
	GjNodeKind	kind;
	uint32_t	nterms;			/* BINARY, COLUMN: 1 */
	GjFusedExpr term[GJ_FUSED_TERMS];
} GjNode;

/* The slot of a source's row ids. */
static uint8_t
slot_of(const GjRun *run, uint32_t source)
{
	for (uint32_t i = 0; i < run->nsteps; i++)
		if (run->steps[i].step->source == source)
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
	if (!gj_fused_knows(instr->op) || !is_operand(a) || !is_operand(b) ||
		(a->kind == GJ_NODE_CONSTANT && b->kind == GJ_NODE_CONSTANT) || instr->arg > UINT8_MAX)
		return;
	node->kind = GJ_NODE_BINARY;
	node->nterms = 1;
	node->term[0] = (GjFusedExpr) {.form = GJ_FUSED_SIMPLE,.op = (uint8_t) instr->op,
	.arg = (uint8_t) instr->arg,.slot_a = x->slot_a,.slot_b = y->slot_a,.a = x->a,.b = y->a,
	.constant = a->kind == GJ_NODE_CONSTANT ? x->constant : y->constant};
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

	if (term->op < GJ_OP_EQ_I || term->op > GJ_OP_GE_I || term->op == GJ_OP_NE_I ||
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
		{
			made.kind = GJ_NODE_CONSTANT;
			made.term[0] = (GjFusedExpr) {.a = -1,.constant = instr->imm};
		}
		else if (instr->op == GJ_OP_AND)
			and_node(&node[instr->a], &node[instr->b], &made);
		else
			binary_node(instr, &node[instr->a], &node[instr->b], &made);
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

/* Adds an expression (-1: none) to the plan's; returns its number, or -1: there is no room. */
static int
add_value(const GjRun *run, GjFusedPlan *plan, int32_t e)
{
	GjFusedExpr made = {.form = GJ_FUSED_NONE};
	GjNode		node;

	if (plan->nexprs == GJ_FUSED_EXPRS)
		return -1;
	if (e >= 0)
	{
		follow(run, (uint32_t) e, &node);
		if (node.kind == GJ_NODE_COLUMN || node.kind == GJ_NODE_BINARY)
			made = node.term[0];
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

/* True if a tuple has at most one match, or it does not matter how many. */
static bool
step_fits(const GjRunStep *rs)
{
	const GjStep *step = rs->step;

	if (step->algorithm != GJ_JOIN_HASH || (rs->table.nrows > 0 && !rs->table.slots && !gj_table_is_direct(&rs->table)))
		return false;
	switch (step->join_type)
	{
		case GJ_JOIN_INNER:
		case GJ_JOIN_LEFT:
			return rs->table.max_count <= 1;
		case GJ_JOIN_SEMI:
		case GJ_JOIN_ANTI:
			return rs->table.max_count <= 1 || rs->residual < 0;
		default:
			return false;
	}
}

static bool
add_step(const GjRun *run, GjFusedPlan *plan, const GjRunStep *rs)
{
	const GjStep *step = rs->step;
	const GjHashTable *table = &rs->table;
	GjFusedStep *to = &plan->steps[plan->nsteps];

	if (!step_fits(rs))
		return false;
	if (table->nrows > 0)
	{
		to->slots = table->slots;
		to->nslots = table->nslots;
		to->place = table->place;
		to->dense = table->dense;
		to->low = table->low;
		to->rows = table->in_order ? NULL : table->rows;
		to->key_row = table->key_row;
		for (uint32_t k = 0; k < step->nkeys; k++)
			to->key_value[k] = table->keys.value[k];
	}
	to->join_type = step->join_type;
	to->source = step->source;
	to->nkeys = step->nkeys;
	to->first_key = plan->nexprs;
	for (uint32_t k = 0; k < step->nkeys; k++)
		if (add_value(run, plan, (int32_t) (step->outer_keys + k)) < 0)
			return false;
	to->residual = make_condition(run, plan, rs->residual);
	to->filter = make_condition(run, plan, step->filter);
	if (step->join_type == GJ_JOIN_LEFT)
		plan->no_row |= 1u << step->source;
	plan->nsteps++;
	return true;
}

static bool
add_aggregates(const GjRun *run, GjFusedPlan *plan)
{
	const GjAggregate *aggregates = gj_program_array(run->program, GjAggregate, aggregates);

	for (uint32_t a = 0; a < run->program->naggregates; a++)
	{
		bool		known = aggregates[a].op <= GJ_AGG_SUM_SQUARES_I ||
			gj_agg_is_distinct(aggregates[a].op);
		/* what has one argument shares it */
		int			e = a > 0 && aggregates[a].arg == aggregates[a - 1].arg ?
			plan->aggregate_expr[a - 1] : add_value(run, plan, aggregates[a].arg);

		if (!known || e < 0)
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

	for (uint32_t k = 0; k < run->program->ngroup_keys; k++)
	{
		GjNode		node;

		plan->group_how[k] = (uint8_t) keys[k].how;
		plan->group_expr[k] = plan->nexprs;
		if (keys[k].how <= GJ_GROUP_FLOAT)
		{
			if (add_value(run, plan, (int32_t) keys[k].index) < 0)
				return false;
			continue;
		}
		if (plan->nexprs == GJ_FUSED_EXPRS)
			return false;
		column_node(run, keys[k].index, &node);
		plan->exprs[plan->nexprs++] = node.term[0];
	}
	plan->ngroup_keys = (uint8_t) run->program->ngroup_keys;
	return true;
}

static bool
make_plan(const GjRun *run, GjFusedPlan *plan)
{
	const GjProgram *p = run->program;

	if (!run->work.ops->fused || p->kind != GJ_PROGRAM_JOIN || p->output == GJ_OUTPUT_ROWS ||
		run->nsteps > GJ_FUSED_STEPS || p->naggregates > GJ_FUSED_AGGREGATES ||
		p->ngroup_keys > GJ_FUSED_GROUP_KEYS)
		return false;
	plan->ncolumns = p->ncolumns;
	plan->first_column = run->sources[0].first_column;
	plan->nouter = run->sources[0].ncolumns;
	plan->filter = make_condition(run, plan, run->sources[0].filter);
	for (uint32_t i = 0; i < run->nsteps; i++)
		if (!add_step(run, plan, &run->steps[i]))
			return false;
	return add_aggregates(run, plan) &&
		(p->output != GJ_OUTPUT_GROUPS || add_group_keys(run, plan));
}

/* True if tuples that come back can have the values of the outer columns with them. */
static bool
can_take_values(const GjRun *run)
{
	const GjSource *outer = &run->sources[0];

	for (uint32_t c = 0; c < outer->ncolumns; c++)
		if (run->types[outer->first_column + c].kind == GJ_REF)
			return false;
	return outer->ncolumns <= GJ_FUSED_OUTER && gj_run_has_outer_columns(run);
}

bool
gj_fused_fits(GjRun *run)
{
	GjRunFused *fused = run->fused;

	if (fused)
		return !fused->off;
	fused = calloc(1, sizeof(GjRunFused));
	if (!fused)
		return false;
	run->fused = fused;
	fused->columns = calloc((size_t) GJ_FUSED_PARTS * run->sources[0].ncolumns + 1, sizeof(GjColumn));
	fused->off = !fused->columns || !make_plan(run, &fused->plan);
	fused->missed.together = can_take_values(run);
	return !fused->off;
}

/* ---- tuples that have no group yet */

/* Sources whose row ids the output reads. */
static uint32_t
sources_out(const GjRun *run)
{
	return run->nsteps > 0 ? run->steps[run->nsteps - 1].out : 1;
}

/* Room for the tuples of n rows that come back. */
static GjStatus
reserve_missed(GjRun *run, uint32_t i, uint32_t n)
{
	GjRunFused *fused = run->fused;

	for (uint32_t slot = 0; slot <= run->nsteps; slot++)
	{
		uint32_t	source = slot == 0 ? 0 : run->steps[slot - 1].step->source;

		if (!(sources_out(run) >> source & 1) || (slot == 0 && fused->missed.together))
			continue;
		GJ_TRY(gj_buffer_reserve(&run->work, &fused->missed_rows[slot], (uint64_t) n * sizeof(uint32_t)));
		fused->missed.rowid[slot] = fused->missed_rows[slot].memory;
	}
	for (uint32_t c = 0; fused->missed.together && c < run->sources[0].ncolumns; c++)
	{
		uint32_t	width = run->types[run->sources[0].first_column + c].width;

		GJ_TRY(gj_buffer_reserve(&run->work, &fused->missed_data[c], (uint64_t) n * width));
		GJ_TRY(gj_buffer_reserve(&run->work, &fused->missed_nulls[c], n));
		fused->missed.data[c] = fused->missed_data[c].memory;
		fused->missed.nulls[c] = fused->missed_nulls[c].memory;
	}
	return GJ_OK;
}

static void
free_missed(GjRun *run, uint32_t i)
{
	GjRunFused *fused = run->fused;

	for (uint32_t slot = 0; slot <= GJ_FUSED_STEPS; slot++)
	{
		gj_buffer_free(&run->work, &fused->missed_rows[slot]);
		fused->missed.rowid[slot] = NULL;
	}
	for (uint32_t c = 0; c < GJ_FUSED_OUTER; c++)
	{
		gj_buffer_free(&run->work, &fused->missed_data[c]);
		gj_buffer_free(&run->work, &fused->missed_nulls[c]);
	}
}

/* Describes the outer columns of the part's tuples that came back, from one of them on. */
static GjStatus
describe_missed(GjRun *run, uint32_t p, uint32_t done, GjView *view)
{
	GjRunFused *fused = run->fused;
	const GjSource *outer = &run->sources[0];
	GjColumn   *to = run->columns + outer->first_column;

	for (uint32_t c = 0; c < outer->ncolumns; c++)
	{
		to[c] = fused->part[p].columns[c];
		if (!fused->missed.together)
			continue;
		to[c].data = fused->missed.data[c] + (uint64_t) done * to[c].width;
		to[c].nulls = fused->missed.nulls[c] + done;
	}
	return run->work.ops->set_columns(run->work.queue, run->columns, run->program->ncolumns,
									  &view->columns);
}

/* Groups tuples of part p that came back, as ever. */
static GjStatus
group_missed(GjRun *run, uint32_t p)
{
	GjRunFused *fused = run->fused;
	GjView		view = {.no_row = fused->plan.no_row};

	for (uint32_t done = 0; done < fused->missed.n[p]; done += view.nrows)
	{
		uint32_t	left = fused->missed.n[p] - done;

		GJ_STOP_CHECK(run);
		if (done == 0 || fused->missed.together)
			GJ_TRY(describe_missed(run, p, done, &view));
		view.nrows = left < run->max_tuples ? left : run->max_tuples;
		for (uint32_t slot = 0; slot <= run->nsteps; slot++)
		{
			uint32_t	source = slot == 0 ? 0 : run->steps[slot - 1].step->source;

			if (fused->missed.rowid[slot])
				view.rowid[source] = fused->missed.rowid[slot] + fused->missed.first[p] + done;
		}
		GJ_TRY(gj_run_output(run, &view));
	}
	return GJ_OK;
}

/* Groups what came back, and finds out whether it was too much. */
static GjStatus
take_missed(GjRun *run, bool first)
{
	GjRunFused *fused = run->fused;
	uint64_t	n = 0;

	for (uint32_t p = 0; p < fused->nparts; p++)
	{
		n += fused->missed.n[p];
		if (fused->missed.n[p] > 0)
			GJ_TRY(group_missed(run, p));
	}
	fused->few_missed = n <= GJ_FUSED_FEW && n <= fused->nrows / 2;
	if (!first && n > fused->nrows / 2 && ++fused->nbad >= GJ_FUSED_MAX_BAD)
		fused->off = true;
	return GJ_OK;
}

/* ---- rows */

/* Bytes of one tuple that can come back. */
static uint64_t
missed_bytes(const GjRun *run)
{
	const GjSource *outer = &run->sources[0];
	uint64_t	nbytes = (uint64_t) __builtin_popcount(sources_out(run)) * sizeof(uint32_t);

	for (uint32_t c = 0; run->fused->missed.together && c < outer->ncolumns; c++)
		nbytes += run->types[outer->first_column + c].width + 1;
	return nbytes;
}

/* n, but from low to high. */
static uint32_t
clamp(uint64_t n, uint32_t low, uint32_t high)
{
	return n < low ? low : n > high ? high : (uint32_t) n;
}

/*
 * Rows of a call whose tuples can come back.  Each call takes some time of its own: all rows at
 * once if there is room for all of their tuples.  But tuples that may never come back must not
 * take what groups need.
 */
static uint32_t
rows_with_groups(GjRun *run, const GjGroups *groups)
{
	GjRunFused *fused = run->fused;

	if ((!groups || groups->rows.nrows == 0) && !fused->few_missed)
		return GJ_FUSED_FIRST_ROWS;
	if (fused->group_rows == 0)
	{
		uint64_t	fit = gj_lease_free(run->work.lease) / (missed_bytes(run) + 1);

		fused->many_group_rows = clamp(fit / GJ_FUSED_LEAST_SPARE, GJ_FUSED_FIRST_ROWS,
									   GJ_FUSED_GROUP_ROWS);
		fused->group_rows = clamp(fit / GJ_FUSED_SPARE, fused->many_group_rows, GJ_FUSED_ROWS);
	}
	return groups && groups->rows.nrows > GJ_FUSED_FEW_GROUPS && !fused->few_missed ?
		fused->many_group_rows : fused->group_rows;
}

/*
 * Rows of the next call, at most.  What a call of its own would take for the last few rows is more than
 * they are worth: shares of several devices are never quite equal.
 */
static uint32_t
rows_of_call(GjRun *run)
{
	GjRunFused *fused = run->fused;
	uint64_t	left = fused->nrows + run->rows_ahead;
	uint32_t	most = GJ_FUSED_ROWS;

	if (run->program->output == GJ_OUTPUT_GROUPS)
		most = rows_with_groups(run, gj_run_groups(run));
	/* memory was short */
	if (fused->most_rows > 0 && fused->most_rows < most)
		return fused->most_rows;
	return left > most && left - most <= most / GJ_FUSED_LAST_PART ? (uint32_t) left : most;
}

/* Rows that the next call can still take. */
static uint32_t
room_for_rows(GjRun *run)
{
	uint32_t	most = rows_of_call(run);

	return run->fused->nparts == GJ_FUSED_PARTS || run->fused->nrows >= most ? 0 :
		most - run->fused->nrows;
}

/* Takes the parts through; lists may take what nobody else has a use for at the time. */
static GjStatus
call_device(GjRun *run, const GjGroups *groups, GjFusedMissed *missed)
{
	GjRunFused *fused = run->fused;
	GjLease    *lease = run->work.lease;
	uint64_t	lists = (uint64_t) fused->nrows * (run->nsteps + 1) * GJ_FUSED_LISTS;
	GjStatus	status;

	if (lists > gj_lease_free(lease) || !gj_lease_take(lease, lists))
		lists = 0;
	status = run->work.ops->fused(run->work.queue, &fused->plan, run->columns, fused->part,
								  fused->nparts, lists, groups, missed);
	gj_lease_give(lease, lists);
	return status;
}

/* Takes the parts through, and groups what comes back. */
static GjStatus
run_groups(GjRun *run)
{
	static const GjGroups none;
	const GjGroups *groups = gj_run_groups(run);
	bool		first = !groups || groups->rows.nrows == 0;

	GJ_TRY(reserve_missed(run, 0, run->fused->nrows));
	GJ_TRY(call_device(run, groups ? groups : &none, &run->fused->missed));
	return take_missed(run, first);
}

GjStatus
gj_fused_flush(GjRun *run)
{
	GjRunFused *fused = run->fused;
	GjStatus	status;

	if (!fused || fused->nparts == 0)
		return GJ_OK;
	GJ_STOP_CHECK(run);
	run->work.ops->phase(run->work.queue, GJ_PHASE_PROBE);
	fused->ran = true;
	if (run->program->output == GJ_OUTPUT_GROUPS)
		status = run_groups(run);
	else
		status = call_device(run, NULL, NULL);
	fused->nparts = 0;
	fused->nrows = 0;
	return status;
}

/* Describes rows first .. of the source's columns as the next part. */
static void
add_part(GjRun *run, const GjColumn *columns, uint32_t first, uint32_t n)
{
	GjRunFused *fused = run->fused;
	uint32_t	ncolumns = run->sources[0].ncolumns;
	GjColumn   *to = fused->columns + (size_t) fused->nparts * ncolumns;

	for (uint32_t c = 0; c < ncolumns; c++)
	{
		to[c] = columns[c];
		/* one that is not read may be missing */
		if (columns[c].data)
			to[c].data = (const uint8_t *) columns[c].data + (size_t) first * columns[c].width;
		if (columns[c].nulls)
			to[c].nulls = columns[c].nulls + first;
	}
	fused->part[fused->nparts++] = (GjFusedPart) {to, n};
	fused->nrows += n;
}

/*
 * Makes room for n more rows and their tuples; where no others are described, for all that the call
 * is to take, or for fewer, if need be than n, then told in *n, if memory is short.
 */
static GjStatus
make_room(GjRun *run, uint32_t *n)
{
	uint32_t	most = rows_of_call(run);
	uint32_t	wanted = run->rows_ahead < most ? (uint32_t) run->rows_ahead : most;
	uint32_t	fit;
	GjStatus	status;

	if (run->program->output != GJ_OUTPUT_GROUPS)
		return GJ_OK;
	if (run->fused->nrows > 0)
		return reserve_missed(run, 0, run->fused->nrows + *n);
	fit = wanted = wanted > *n ? wanted : *n;
	status = gj_run_fit_tuples(run, 0, &fit, reserve_missed, free_missed);
	if (fit < *n)
		*n = run->fused->most_rows = fit;
	return status;
}

GjStatus
gj_fused_rows(GjRun *run, uint32_t nrows, bool now, uint32_t *done)
{
	uint32_t	ncolumns = run->sources[0].ncolumns;
	GjColumn   *described = run->columns + run->sources[0].first_column;
	GjColumn	columns[GJ_MAX_COLUMNS];
	GjStatus	status = GJ_OK;

	gj_run_choose_max_tuples(run);
	memcpy(columns, described, ncolumns * sizeof(GjColumn));
	*done = 0;
	while (status == GJ_OK && *done < nrows && gj_fused_fits(run))
	{
		uint32_t	room = room_for_rows(run);
		uint32_t	n = nrows - *done <= room ? nrows - *done : room / GJ_FUSED_CUT * GJ_FUSED_CUT;

		if (n == 0)
		{
			status = gj_fused_flush(run);
			continue;
		}
		status = make_room(run, &n);
		if (status == GJ_OUT_OF_MEMORY && run->fused->nrows > 0)
		{
			/* what is there must pass first: it has its room */
			status = gj_fused_flush(run);
			continue;
		}
		if (status == GJ_OUT_OF_MEMORY)
		{
			/* the steps one by one do with less */
			free_missed(run, 0);
			run->fused->off = true;
			status = GJ_OK;
			break;
		}
		if (status == GJ_OK)
		{
			add_part(run, columns, *done, n);
			*done += n;
		}
	}
	if (status == GJ_OK && now)
		status = gj_fused_flush(run);
	/* what came back was described in their place */
	memcpy(described, columns, ncolumns * sizeof(GjColumn));
	return status;
}

GjStatus
gj_fused_finish(GjRun *run)
{
	uint64_t	counts[GJ_FUSED_STEPS + 1];

	if (!run->fused || !run->fused->ran)
		return GJ_OK;
	GJ_TRY(run->work.ops->fused_counts(run->work.queue, counts));
	run->stats.source[0].rows_out += counts[0];
	for (uint32_t i = 0; i < run->nsteps; i++)
	{
		run->stats.step[i].rows_in += counts[i];
		run->stats.step[i].rows_out += counts[i + 1];
	}
	return GJ_OK;
}

void
gj_fused_free(GjRun *run)
{
	if (!run->fused)
		return;
	free_missed(run, 0);
	free(run->fused->columns);
	free(run->fused);
	run->fused = NULL;
}
