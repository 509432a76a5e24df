/*
 * bounds.c
 *	  Whether a condition of a checked program can be TRUE for rows of whose columns the least and
 *	  the greatest values are known.
 *
 * Its instructions are followed as for a row, with bounds in the registers (interval arithmetic).
 * The bounds are those of a value that is not NULL.  A condition lies between 0 and 1.  So those of
 * AND are the least ones of its operands, and those of OR the greatest, also where one is NULL in
 * all rows.
 *
 * A row that is left out raises no error.  So where an instruction could, nothing is left out: an
 * instruction that has operands which always are NULL cannot.
 */
#include "check.h"

#include "rows/expression.h"

static const GjBounds never = {1, 0, true};	/* NULL in all rows */
static const GjBounds anything = {INT64_MIN, INT64_MAX, true};

static bool
is_never(GjBounds bounds)
{
	return bounds.low > bounds.high;
}

/* The same of a condition, whose value is 0 or 1. */
static GjBounds
truth(GjBounds bounds)
{
	if (is_never(bounds))
		return never;
	return (GjBounds) {bounds.low > 0 || bounds.high < 0, bounds.low != 0 || bounds.high != 0,
		bounds.has_null};
}

static GjBounds
both(GjBounds a, GjBounds b)
{
	return (GjBounds) {a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high,
		a.has_null || b.has_null};
}

static GjBounds
either(GjBounds a, GjBounds b)
{
	return (GjBounds) {a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high,
		a.has_null || b.has_null};
}

static GjBounds
negated(GjBounds a)
{
	return (GjBounds) {1 - a.high, 1 - a.low, a.has_null};
}

/* Of a < b, or a <= b if `equal`. */
static GjBounds
less(GjBounds a, GjBounds b, bool equal)
{
	const bool	has_null = a.has_null || b.has_null;

	if (is_never(a) || is_never(b))
		return never;
	if (equal)
		return (GjBounds) {a.high <= b.low, a.low <= b.high, has_null};
	return (GjBounds) {a.high < b.low, a.low < b.high, has_null};
}

static GjBounds
equals(GjBounds a, GjBounds b)
{
	if (is_never(a) || is_never(b))
		return never;
	return (GjBounds) {a.low == a.high && b.low == b.high && a.low == b.low,
		a.low <= b.high && b.low <= a.high, a.has_null || b.has_null};
}

/* Of a value among constants, in ascending order; it is not FALSE if there is a NULL beside them. */
static GjBounds
among(GjBounds a, const int64_t *constants, uint32_t n, bool has_null)
{
	uint32_t	first = 0;
	uint32_t	end = n;
	bool		found;

	if (is_never(a))
		return never;
	/* the first one that is not less than all values */
	while (first < end)
	{
		uint32_t	middle = first + (end - first) / 2;

		if (constants[middle] < a.low)
			first = middle + 1;
		else
			end = middle;
	}
	found = first < n && constants[first] <= a.high;
	return (GjBounds) {has_null || (found && a.low == a.high), found, has_null || a.has_null};
}

/* a * factor > 0; false if that can fail. */
static bool
scaled(GjBounds a, int64_t factor, bool has_null, GjBounds *result)
{
	*result = a;
	result->has_null |= has_null;
	return is_never(a) || (gj_mul_i(a.low, factor, GJ_INT8, &result->low) == GJ_OK &&
						   gj_mul_i(a.high, factor, GJ_INT8, &result->high) == GJ_OK);
}

static GjBounds
to_date(GjBounds a)
{
	if (is_never(a))
		return never;
	return (GjBounds) {gj_timestamp_to_date(a.low), gj_timestamp_to_date(a.high), a.has_null};
}

/* a where b is TRUE, else NULL. */
static GjBounds
only_if(GjBounds a, GjBounds b)
{
	if (b.high == 0)
		return never;
	a.has_null |= b.has_null || b.low == 0;
	return a;
}

/*
 * True for instructions that make anything of operands that are anything, and for which PostgreSQL
 * raises no error.
 */
static bool
raises_nothing(uint32_t op)
{
	switch (op)
	{
		case GJ_OP_CONST_T:
		case GJ_OP_EQ_F:
		case GJ_OP_NE_F:
		case GJ_OP_LT_F:
		case GJ_OP_LE_F:
		case GJ_OP_GT_F:
		case GJ_OP_GE_F:
		case GJ_OP_IN_F:
		case GJ_OP_I_TO_F:
		case GJ_OP_EQ_T:
		case GJ_OP_NE_T:
		case GJ_OP_LT_T:
		case GJ_OP_LE_T:
		case GJ_OP_GT_T:
		case GJ_OP_GE_T:
		case GJ_OP_IN_T:
		case GJ_OP_STARTS_WITH:
		case GJ_OP_TRIM:
		case GJ_OP_LENGTH_T:
		case GJ_OP_OCTETS_T:
		case GJ_OP_BIT_XOR:
		/* those that are not strict must be here */
		case GJ_OP_IF:
		case GJ_OP_COALESCE:
		case GJ_OP_NULL_IF:
		case GJ_OP_GREATEST_I:
		case GJ_OP_LEAST_I:
		case GJ_OP_GREATEST_F:
		case GJ_OP_LEAST_F:
			return true;
		default:
			return false;
	}
}

/* True if an instruction reads a register that always is NULL. */
static bool
reads_never(const GjInstr *instr, const GjBounds *registers)
{
	uint32_t	reads = gj_check_reads(instr);

	for (uint32_t r = 0; r < GJ_MAX_REGISTERS; r++)
		if ((reads >> r & 1) && is_never(registers[r]))
			return true;
	return false;
}

/* True for a LIKE, among instructions from `first` on, whose pattern is a constant without error. */
static bool
has_sound_pattern(const GjProgram *p, const GjInstr *first, const GjInstr *like)
{
	const GjInstr *pattern = like;

	if (like->op != GJ_OP_LIKE || like == first)
		return false;
	pattern--;
	while (pattern > first && pattern->dst != like->b)
		pattern--;
	return pattern->op == GJ_OP_CONST_T && pattern->dst == like->b &&
		!gj_like_dangles((const uint8_t *) (gj_program_array(p, int64_t, constants) + pattern->arg),
						 pattern->n);
}

/*
 * What an instruction, of those from `first` on, stores; `column`: that it loads, if it does.  False:
 * it can raise an error.
 */
static bool
follow(const GjProgram *p, const GjInstr *first, const GjInstr *instr, const GjBounds *column,
	   const GjBounds *registers, GjBounds *result)
{
	const GjBounds a = registers[instr->a];
	const GjBounds b = registers[instr->b];

	switch (instr->op)
	{
		case GJ_OP_LOAD:
			*result = *column;
			return true;
		case GJ_OP_LOAD_T:
		case GJ_OP_LOAD_D:
			/* if the device cannot load it, that is no error of PostgreSQL's */
			*result = (instr->imm & GJ_IS_GUARDED) ? only_if(anything, truth(a)) : anything;
			return true;
		case GJ_OP_LOAD_IS_NULL:
			*result = (GjBounds) {is_never(*column), column->has_null, false};
			return true;
		case GJ_OP_CONST:
			*result = instr->n ? never : (GjBounds) {instr->imm, instr->imm, false};
			return true;
		case GJ_OP_EQ_I:
			*result = equals(a, b);
			return true;
		case GJ_OP_NE_I:
			*result = negated(equals(a, b));
			return true;
		case GJ_OP_LT_I:
			*result = less(a, b, false);
			return true;
		case GJ_OP_LE_I:
			*result = less(a, b, true);
			return true;
		case GJ_OP_GT_I:
			*result = less(b, a, false);
			return true;
		case GJ_OP_GE_I:
			*result = less(b, a, true);
			return true;
		case GJ_OP_IN_I:
			*result = among(a, gj_program_array(p, int64_t, constants) + instr->arg, instr->n,
							instr->imm != 0);
			return true;
		case GJ_OP_AND:
			*result = both(truth(a), truth(b));
			return true;
		case GJ_OP_OR:
			*result = either(truth(a), truth(b));
			return true;
		case GJ_OP_NOT:
			*result = negated(truth(a));
			return true;
		case GJ_OP_IS_TRUE:
			*result = (GjBounds) {!a.has_null && truth(a).low, truth(a).high, false};
			return true;
		case GJ_OP_IS_FALSE:
			*result = (GjBounds) {!a.has_null && !truth(a).high, !truth(a).low, false};
			return true;
		case GJ_OP_IS_NULL:
			*result = (GjBounds) {is_never(a), a.has_null, false};
			return true;
		case GJ_OP_ONLY_IF:
			*result = only_if(a, truth(b));
			return true;
		case GJ_OP_MOVE:
			*result = a;
			return true;
		case GJ_OP_SCALE_UP:
			/* as all that are checked, it looks at b, too, which is a */
			return scaled(a, instr->imm, b.has_null, result);
		case GJ_OP_TIMESTAMP_TO_DATE:
			*result = to_date(a);
			return true;
		default:
			*result = anything;
			if (raises_nothing(instr->op) || has_sound_pattern(p, first, instr))
				return true;
			/* the others are strict */
			*result = never;
			return reads_never(instr, registers);
	}
}

bool
gj_program_can_be_true(const GjProgram *p, uint32_t condition, const GjBounds *columns,
					   uint32_t first_column)
{
	const GjExpr *expr = gj_program_array(p, GjExpr, exprs) + condition;
	const GjInstr *instrs = gj_program_array(p, GjInstr, instrs) + expr->first;
	GjBounds	registers[GJ_MAX_REGISTERS];

	for (uint32_t r = 0; r < expr->nregisters; r++)
		registers[r] = anything;
	for (uint32_t i = 0; i < expr->ninstrs; i++)
	{
		const GjBounds *column = gj_op_loads(instrs[i].op) ?
			&columns[instrs[i].arg - first_column] : NULL;
		GjBounds	result;

		if (!follow(p, instrs, &instrs[i], column, registers, &result))
			return true;
		registers[instrs[i].dst] = result;
	}
	return truth(registers[expr->result]).high == 1;
}
