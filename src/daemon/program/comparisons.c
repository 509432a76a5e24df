/*
 * comparisons.c
 *	  Finds what a nested loop's condition compares: a value that follows from the probe side with one
 *	  that follows from the build side.
 *
 * A condition is followed instruction by instruction.  For each register it is known which of the
 * instructions make its value, or of which comparisons it is the conjunction.  A value that is no
 * column is an expression of its own, which is computed once a row, not once a pair.  Nothing of it
 * fails but what is out of range: where the condition would not ask for such a value, the query
 * falls back.
 */
#include "program.h"

#include <stdlib.h>
#include <string.h>

/* Instructions of a condition that is looked through. */
#define GJ_MOST_INSTRS		64

typedef enum GjPartIs
{
	GJ_PART_OTHER,
	GJ_PART_VALUE,
	GJ_PART_TERMS,				/* a conjunction of comparisons, of nothing else if `exact` */
	GJ_PART_IS_FALSE,			/* that such a conjunction is FALSE */
	GJ_PART_GUARD				/* TRUE where all of the comparisons are */
} GjPartIs;

/* What a register has. */
typedef struct GjPart
{
	GjPartIs	is;
	uint32_t	terms;			/* one bit each; of a value: those that have to be TRUE, or it is NULL */
	bool		exact;
	/* of a value */
	uint64_t	instrs;			/* that make it, one bit each */
	uint32_t	sources;
	enum
	{
		GJ_ANY,					/* a constant */
		GJ_INTEGER,
		GJ_FLOAT
	}			type;
	bool		narrow;			/* it fits 32 bits */
} GjPart;

typedef struct GjFound
{
	GjTermOp	op;
	bool		is_float;
	uint32_t	guards;			/* comparisons that have to be TRUE, or this one is not */
	GjPart		side[2];		/* of the probe side, of the build side */
} GjFound;

typedef struct GjCondition
{
	const GjProgram *program;
	const GjStep *step;
	const GjExpr *expr;
	const GjInstr *instrs;
	GjPart		part[GJ_MAX_REGISTERS];
	GjFound		found[GJ_MAX_KEYS];
	uint32_t	n;
} GjCondition;

/* ---- parts of a condition */

static bool
is_narrow_kind(uint32_t kind)
{
	return kind == GJ_BOOL || kind == GJ_INT2 || kind == GJ_INT4;
}

static GjPart
load_column(const GjCondition *c, uint32_t i)
{
	const GjColumnType *type = gj_program_array(c->program, GjColumnType, columns) +
		c->instrs[i].arg;
	GjPart		part = {GJ_PART_VALUE,.exact = true,.instrs = UINT64_C(1) << i,
		.sources = 1u << type->source,.type = GJ_INTEGER,.narrow = is_narrow_kind(type->kind)
	};

	if (type->kind == GJ_FLOAT8)
		part.type = GJ_FLOAT;
	else if (!part.narrow && type->kind != GJ_INT8 && type->kind != GJ_UINT4)
		part.is = GJ_PART_OTHER;
	return part;
}

static bool
has_type(const GjPart *part, bool is_float)
{
	return part->is == GJ_PART_VALUE &&
		(part->type == GJ_ANY || (part->type == GJ_FLOAT) == is_float);
}

/* The value of instruction i, which fails only where its result is out of range; or other. */
static GjPart
compute(const GjCondition *c, uint32_t i, bool of_floats, bool is_float)
{
	const GjInstr *instr = &c->instrs[i];
	const GjPart *a = &c->part[instr->a];
	const GjPart *b = &c->part[instr->b];
	GjPart		part = *a;

	if (!has_type(a, of_floats) || !has_type(b, of_floats))
		return (GjPart) {GJ_PART_OTHER};
	part.terms |= b->terms;
	part.exact &= b->exact;
	part.instrs |= b->instrs | UINT64_C(1) << i;
	part.sources |= b->sources;
	part.type = is_float ? GJ_FLOAT : GJ_INTEGER;
	part.narrow = !is_float && (instr->arg == GJ_INT2 || instr->arg == GJ_INT4 ||
								(instr->op == GJ_OP_RANGE_I && a->narrow));
	return part;
}

/* The same value, NULL where a register is not TRUE. */
static GjPart
only_if(const GjCondition *c, const GjInstr *instr)
{
	const GjPart *guard = &c->part[instr->b];
	GjPart		part = c->part[instr->a];

	/* the instruction is left out of the value */
	if (part.is != GJ_PART_VALUE || instr->dst != instr->a)
		return (GjPart) {GJ_PART_OTHER};
	if (guard->is == GJ_PART_GUARD)
		part.terms |= guard->terms;
	else
		part.exact = false;
	return part;
}

static GjPart
both(const GjPart *a, const GjPart *b)
{
	if (a->is == GJ_PART_GUARD && b->is == GJ_PART_GUARD)
		return (GjPart) {GJ_PART_GUARD, a->terms | b->terms};
	return (GjPart) {GJ_PART_TERMS, (a->is == GJ_PART_TERMS ? a->terms : 0) |
		(b->is == GJ_PART_TERMS ? b->terms : 0),
		a->is == GJ_PART_TERMS && b->is == GJ_PART_TERMS && a->exact && b->exact
	};
}

/* a <op> b is b <result> a. */
static GjTermOp
turned(GjTermOp op)
{
	static const GjTermOp other[] = {
		[GJ_TERM_EQ] = GJ_TERM_EQ,[GJ_TERM_NE] = GJ_TERM_NE,[GJ_TERM_LT] = GJ_TERM_GT,
		[GJ_TERM_LE] = GJ_TERM_GE,[GJ_TERM_GT] = GJ_TERM_LT,[GJ_TERM_GE] = GJ_TERM_LE
	};

	return other[op];
}

/* Notes a comparison of both sides, if it is one, and if there is room. */
static GjPart
compare(GjCondition *c, const GjInstr *instr)
{
	const bool	is_float = instr->op >= GJ_OP_EQ_F;
	const GjTermOp op = (GjTermOp) (instr->op - (is_float ? GJ_OP_EQ_F : GJ_OP_EQ_I));
	const uint32_t build_side = 1u << c->step->source;
	const GjPart *a = &c->part[instr->a];
	const GjPart *b = &c->part[instr->b];
	const bool	inverted = (a->sources & build_side) != 0 ||
		(a->sources == 0 && !(b->sources & build_side));
	const GjPart *probe = inverted ? b : a;
	const GjPart *build = inverted ? a : b;

	if (!has_type(a, is_float) || !has_type(b, is_float) || c->n == GJ_MAX_KEYS ||
		(a->sources | b->sources) == 0 || (probe->sources & build_side) ||
		(build->sources & ~build_side))
		return (GjPart) {GJ_PART_OTHER};
	c->found[c->n] = (GjFound) {inverted ? turned(op) : op, is_float, a->terms | b->terms,
		{*probe, *build}
	};
	return (GjPart) {GJ_PART_TERMS, 1u << c->n++, a->exact && b->exact};
}

/* What instruction i makes. */
static GjPart
follow(GjCondition *c, uint32_t i)
{
	const GjInstr *instr = &c->instrs[i];
	GjPart		part = c->part[instr->a];

	switch (instr->op)
	{
		case GJ_OP_LOAD:
			return load_column(c, i);
		case GJ_OP_CONST:
			return (GjPart) {GJ_PART_VALUE,.exact = true,.instrs = UINT64_C(1) << i,
				.narrow = instr->imm >= INT32_MIN && instr->imm <= INT32_MAX
			};
		case GJ_OP_ADD_I:
		case GJ_OP_SUB_I:
		case GJ_OP_MUL_I:
		case GJ_OP_NEG_I:
		case GJ_OP_ABS_I:
		case GJ_OP_RANGE_I:
			return compute(c, i, false, false);
		case GJ_OP_ADD_F:
		case GJ_OP_SUB_F:
		case GJ_OP_MUL_F:
		case GJ_OP_NEG_F:
		case GJ_OP_ABS_F:
			return compute(c, i, true, true);
		case GJ_OP_I_TO_F:
			return compute(c, i, false, true);
		case GJ_OP_ONLY_IF:
			return only_if(c, instr);
		case GJ_OP_MOVE:
			if (part.is == GJ_PART_VALUE)
				part.instrs |= UINT64_C(1) << i;
			return part;
		case GJ_OP_AND:
			return both(&c->part[instr->a], &c->part[instr->b]);
		case GJ_OP_IS_FALSE:
			return (GjPart) {part.is == GJ_PART_TERMS && part.exact ? GJ_PART_IS_FALSE : GJ_PART_OTHER,
				part.terms
			};
		case GJ_OP_NOT:
			return (GjPart) {part.is == GJ_PART_IS_FALSE ? GJ_PART_GUARD : GJ_PART_OTHER, part.terms};
		default:
			if (instr->op >= GJ_OP_EQ_I && instr->op <= GJ_OP_GE_F)
				return compare(c, instr);
			return (GjPart) {GJ_PART_OTHER};
	}
}

/*
 * Follows the residual condition of a step.  Returns what it is: TERMS, where some of the
 * comparisons that were found have to be TRUE for it to be TRUE.
 */
static GjPart
follow_condition(GjCondition *c, const GjProgram *program, const GjStep *step)
{
	memset(c, 0, sizeof(*c));
	c->program = program;
	c->step = step;
	if (step->residual < 0)
		return (GjPart) {GJ_PART_OTHER};
	c->expr = gj_program_array(program, GjExpr, exprs) + step->residual;
	c->instrs = gj_program_array(program, GjInstr, instrs) + c->expr->first;
	if (c->expr->ninstrs > GJ_MOST_INSTRS)
		return (GjPart) {GJ_PART_OTHER};
	for (uint32_t i = 0; i < c->expr->ninstrs; i++)
		c->part[c->instrs[i].dst] = follow(c, i);
	return c->part[c->expr->result];
}

/* ---- values as expressions */

/* An expression that is not yet a program's: its instructions have no place there. */
typedef struct GjValue
{
	GjExpr		expr;
	GjInstr		instrs[GJ_MOST_INSTRS];
} GjValue;

static void
make_value(const GjCondition *c, const GjPart *part, bool is_float, GjValue *value)
{
	GjExpr	   *expr = &value->expr;

	*expr = *c->expr;
	expr->ninstrs = 0;
	expr->kind = is_float ? GJ_FLOAT8 : GJ_INT8;
	for (uint32_t i = 0; i < c->expr->ninstrs; i++)
		if (part->instrs >> i & 1)
			value->instrs[expr->ninstrs++] = c->instrs[i];
	expr->result = value->instrs[expr->ninstrs - 1].dst;
}

/* The operand that a value is, as ordered_keys takes it; false: no expression of the program's. */
static bool
find_operand(const GjProgram *p, const GjValue *value, int32_t *operand)
{
	const GjExpr *exprs = gj_program_array(p, GjExpr, exprs);
	const GjInstr *instrs = gj_program_array(p, GjInstr, instrs);
	const GjExpr *expr = &value->expr;

	*operand = -1 - (int32_t) value->instrs[0].arg;
	if (expr->ninstrs == 1 && value->instrs[0].op == GJ_OP_LOAD)
		return true;
	for (uint32_t e = 0; e < p->nexprs; e++)
		if (exprs[e].ninstrs == expr->ninstrs && exprs[e].result == expr->result &&
			exprs[e].kind == expr->kind &&
			memcmp(instrs + exprs[e].first, value->instrs, expr->ninstrs * sizeof(GjInstr)) == 0)
		{
			*operand = (int32_t) e;
			return true;
		}
	return false;
}

uint32_t
gj_program_comparisons(const GjProgram *program, const GjStep *step, GjComparison *comparisons,
					   bool *exact)
{
	GjCondition c;
	const GjPart all = follow_condition(&c, program, step);
	uint32_t	n = 0;

	*exact = all.is == GJ_PART_TERMS && all.exact;
	for (uint32_t t = 0; all.is == GJ_PART_TERMS && t < c.n; t++)
	{
		const GjFound *found = &c.found[t];
		GjComparison *to = &comparisons[n];
		GjValue		value[2];

		if (!(all.terms >> t & 1))
			continue;
		for (int side = 0; side < 2; side++)
			make_value(&c, &found->side[side], found->is_float, &value[side]);
		to->op = (uint8_t) found->op;
		to->narrow = !found->is_float && found->side[0].narrow && found->side[1].narrow;
		to->has_constant = found->side[0].sources == 0 || found->side[1].sources == 0;
		if (find_operand(program, &value[0], &to->probe_side) &&
			find_operand(program, &value[1], &to->build_side))
			n++;
		else
			*exact = false;
		if (found->guards & ~all.terms)
			*exact = false;
	}
	return n;
}

/* ---- the expressions that a program lacks */

typedef struct GjLacking
{
	GjValue    *values;
	uint32_t	n;
	uint32_t	ninstrs;		/* of all of them */
} GjLacking;

static bool
add_lacking(const GjProgram *p, const GjStep *step, GjLacking *lacking)
{
	GjCondition c;
	const GjPart all = follow_condition(&c, p, step);

	for (uint32_t t = 0; all.is == GJ_PART_TERMS && t < c.n; t++)
		for (int side = 0; side < 2 && (all.terms >> t & 1); side++)
		{
			GjValue    *values = realloc(lacking->values, (lacking->n + 1) * sizeof(GjValue));
			GjValue    *value = values + lacking->n;
			int32_t		operand;

			if (!values)
				return false;
			lacking->values = values;
			make_value(&c, &c.found[t].side[side], c.found[t].is_float, value);
			if (find_operand(p, value, &operand))
				continue;
			lacking->n++;
			lacking->ninstrs += value->expr.ninstrs;
		}
	return true;
}

/* A program with more expressions: both arrays of its own lie behind it. */
static GjProgram *
extend(const GjProgram *p, const GjLacking *lacking)
{
	uint64_t	instrs_at = ((uint64_t) p->nbytes + 7) & ~UINT64_C(7);
	uint64_t	exprs_at = instrs_at + ((uint64_t) p->ninstrs + lacking->ninstrs) * sizeof(GjInstr);
	uint64_t	nbytes = exprs_at + ((uint64_t) p->nexprs + lacking->n) * sizeof(GjExpr);
	GjProgram  *to = nbytes <= UINT32_MAX ? calloc(1, nbytes) : NULL;
	GjInstr    *instrs = (GjInstr *) ((char *) to + instrs_at);
	GjExpr	   *exprs = (GjExpr *) ((char *) to + exprs_at);

	if (!to)
		return NULL;
	memcpy(to, p, p->nbytes);
	memcpy(instrs, gj_program_array(p, GjInstr, instrs), p->ninstrs * sizeof(GjInstr));
	memcpy(exprs, gj_program_array(p, GjExpr, exprs), p->nexprs * sizeof(GjExpr));
	to->instrs = (uint32_t) instrs_at;
	to->exprs = (uint32_t) exprs_at;
	to->nbytes = (uint32_t) nbytes;
	for (uint32_t i = 0; i < lacking->n; i++)
	{
		const GjValue *value = &lacking->values[i];

		memcpy(instrs + to->ninstrs, value->instrs, value->expr.ninstrs * sizeof(GjInstr));
		exprs[to->nexprs] = value->expr;
		exprs[to->nexprs++].first = to->ninstrs;
		to->ninstrs += value->expr.ninstrs;
	}
	return to;
}

bool
gj_program_add_operands(GjProgram **program)
{
	const GjStep *steps = gj_program_array(*program, GjStep, steps);
	GjLacking	lacking = {NULL};
	GjProgram  *extended = NULL;
	bool		done = true;

	for (uint32_t i = 0; i < (*program)->nsteps && done; i++)
		if (steps[i].algorithm == GJ_JOIN_NESTED_LOOP)
			done = add_lacking(*program, &steps[i], &lacking);
	if (done && lacking.n > 0)
	{
		extended = extend(*program, &lacking);
		done = extended != NULL;
	}
	free(lacking.values);
	if (!extended)
		return done;
	free(*program);
	*program = extended;
	return true;
}
