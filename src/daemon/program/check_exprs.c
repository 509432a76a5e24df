/*
 * check_exprs.c
 *	  Checks a program's expressions: each instruction's operands, and what it reads and writes.
 */
#include "check.h"

#include "rows/numeric.h"

/* How an instruction uses its operands. */
enum
{
	USES_A = 1,
	USES_B = 2,
	USES_DST = 4,
	USES_AFTER_B = 8
};

static uint32_t
operands(const GjInstr *instr)
{
	switch (instr->op)
	{
		case GJ_OP_LOAD:
		case GJ_OP_LOAD_IS_NULL:
		case GJ_OP_CONST:
		case GJ_OP_CONST_T:
		case GJ_OP_LOAD_PAIR:
			return 0;
		case GJ_OP_LOAD_T:
		case GJ_OP_LOAD_D:
			return instr->imm != 0 ? USES_A : 0;
		case GJ_OP_IF:
			return USES_A | USES_B | USES_DST;
		case GJ_OP_SIMILARITY:
			return USES_A | USES_B | USES_AFTER_B;
		case GJ_OP_SUBSTR:
			return USES_A | USES_B | (instr->n != 0 ? USES_AFTER_B : 0);
		case GJ_OP_MOVE:
		case GJ_OP_BIT_NOT:
		case GJ_OP_SIGN_I:
		case GJ_OP_FLOOR_F:
		case GJ_OP_CEIL_F:
		case GJ_OP_ROUND_F:
		case GJ_OP_TRUNC_F:
		case GJ_OP_SIGN_F:
		case GJ_OP_IN_T:
		case GJ_OP_HASH_T:
		case GJ_OP_KEY_T:
		case GJ_OP_TRIM:
		case GJ_OP_LENGTH_T:
		case GJ_OP_OCTETS_T:
		case GJ_OP_SCALE_DOWN:
		case GJ_OP_TIMESTAMP_TO_DATE:
		case GJ_OP_NEG_F:
		case GJ_OP_ABS_F:
		case GJ_OP_I_TO_F:
		case GJ_OP_NOT:
		case GJ_OP_IS_NULL:
		case GJ_OP_IS_TRUE:
		case GJ_OP_IS_FALSE:
		case GJ_OP_IN_I:
		case GJ_OP_IN_F:
			return USES_A;
		default:
			/* the checked unary ones too: they have b = a */
			return USES_A | USES_B;
	}
}

uint32_t
gj_check_reads(const GjInstr *instr)
{
	uint32_t	uses = operands(instr);

	return (uses & USES_A ? 1u << instr->a : 0) | (uses & USES_B ? 1u << instr->b : 0) |
		(uses & USES_DST ? 1u << instr->dst : 0) | (uses & USES_AFTER_B ? 2u << instr->b : 0);
}

/* Operands that must be bytes: others are no addresses. */
static uint32_t
text_operands(const GjInstr *instr)
{
	switch (instr->op)
	{
		case GJ_OP_EQ_T:
		case GJ_OP_NE_T:
		case GJ_OP_LT_T:
		case GJ_OP_LE_T:
		case GJ_OP_GT_T:
		case GJ_OP_GE_T:
		case GJ_OP_LIKE:
		case GJ_OP_STARTS_WITH:
			return USES_A | USES_B;
		case GJ_OP_IN_T:
		case GJ_OP_HASH_T:
		case GJ_OP_KEY_T:
		case GJ_OP_TRIM:
		case GJ_OP_LENGTH_T:
		case GJ_OP_OCTETS_T:
		case GJ_OP_WORD_T:
		case GJ_OP_SUBSTR:
		case GJ_OP_LEFT_T:
		case GJ_OP_RIGHT_T:
			return USES_A;
		default:
			return 0;
	}
}

/* True if the result is bytes; `text` has a bit for each register whose value is. */
static bool
makes_text(const GjInstr *instr, uint32_t text)
{
	bool		a = text >> instr->a & 1;
	bool		b = text >> instr->b & 1;

	switch (instr->op)
	{
		case GJ_OP_LOAD_T:
		case GJ_OP_CONST_T:
		case GJ_OP_TRIM:
		case GJ_OP_SUBSTR:
		case GJ_OP_LEFT_T:
		case GJ_OP_RIGHT_T:
			return true;
		case GJ_OP_MOVE:
		case GJ_OP_ONLY_IF:
		case GJ_OP_NULL_IF:
			return a;
		case GJ_OP_IF:
			return b && (text >> instr->dst & 1);
		case GJ_OP_COALESCE:
			return a && b;
		default:
			return false;
	}
}

/* The n texts of an IN list lie among the program's constants. */
static bool
check_text_list(GjCheck *check, const GjInstr *instr)
{
	const GjProgram *p = check->program;
	const int64_t *list = gj_program_array(p, int64_t, constants) + instr->arg;
	uint64_t	nbytes = (uint64_t) (p->nconstants - instr->arg) * sizeof(int64_t);

	for (uint32_t i = 0; i < instr->n; i++)
		if (list[i] < 0 || (list[i] >> 16) > (int64_t) p->nconstants ||
			(uint64_t) (list[i] >> 16) * sizeof(int64_t) + (list[i] & 0xFFFF) > nbytes)
			return false;
	return true;
}

static bool
is_power_of_10(int64_t imm)
{
	int			n = 0;

	while (n < GJ_MAX_SCALE && gj_power_of_10(n) < imm)
		n++;
	return gj_power_of_10(n) == imm;
}

/* Months and days have 32 bits, and may have changed their sign. */
static bool
is_interval(const int64_t *span)
{
	return span[0] >= INT32_MIN && span[0] <= -(int64_t) INT32_MIN &&
		span[1] >= INT32_MIN && span[1] <= -(int64_t) INT32_MIN;
}

/* Registers that have a value and those whose value is bytes, one bit each. */
typedef struct GjWritten
{
	uint32_t	any;
	uint32_t	text;
} GjWritten;

static bool
check_instr(GjCheck *check, uint32_t i, uint32_t nregisters, GjWritten *written)
{
	const GjProgram *p = check->program;
	const GjInstr *instr = &check->instrs[i];
	uint32_t	uses;

	if (instr->op >= GJ_NOPS)
		return gj_check_fails(check, "instruction %u has unknown operator %u", i, instr->op);
	if (instr->dst >= nregisters || instr->a >= nregisters || instr->b >= nregisters)
		return gj_check_fails(check, "instruction %u uses a register that does not exist", i);
	uses = operands(instr);
	if (((uses & USES_A) && !(written->any >> instr->a & 1)) ||
		((uses & USES_B) && !(written->any >> instr->b & 1)) ||
		((uses & USES_DST) && !(written->any >> instr->dst & 1)) ||
		((uses & USES_AFTER_B) && !(written->any >> (instr->b + 1u) & 1)))
		return gj_check_fails(check, "instruction %u reads a register without value", i);
	uses = text_operands(instr);
	if (((uses & USES_A) && !(written->text >> instr->a & 1)) ||
		((uses & USES_B) && !(written->text >> instr->b & 1)))
		return gj_check_fails(check, "instruction %u takes for bytes what is none", i);
	if (makes_text(instr, written->text))
		written->text |= 1u << instr->dst;
	else
		written->text &= ~(1u << instr->dst);
	written->any |= 1u << instr->dst;

	switch (instr->op)
	{
		case GJ_OP_LOAD:
		case GJ_OP_LOAD_IS_NULL:
			if (instr->arg >= p->ncolumns)
				return gj_check_fails(check, "instruction %u loads a column that does not exist",
									  i);
			if (instr->op == GJ_OP_LOAD && !gj_kind_computable(check->columns[instr->arg].kind))
				return gj_check_fails(check, "instruction %u computes on a carried column", i);
			break;
		case GJ_OP_LOAD_PAIR:
			/* who may read it is looked at where sources are */
			if (instr->arg < p->nsources || instr->arg >= GJ_MAX_SOURCES)
				return gj_check_fails(check,
									  "instruction %u loads a pair value that does not exist", i);
			break;
		case GJ_OP_SIMILARITY:
			if (instr->arg >= GJ_SETS_NPREDICATES)
				return gj_check_fails(check, "instruction %u has an unknown similarity", i);
			break;
		case GJ_OP_CONST:
			if (instr->n > 1)
				return gj_check_fails(check, "instruction %u has a bad null flag", i);
			break;
		case GJ_OP_LOAD_T:
		case GJ_OP_LOAD_D:
			if (instr->arg >= p->ncolumns)
				return gj_check_fails(check, "instruction %u loads a column that does not exist",
									  i);
			if (check->columns[instr->arg].kind != GJ_REF &&
				(check->columns[instr->arg].kind != GJ_BYTES || instr->op == GJ_OP_LOAD_D))
				return gj_check_fails(check, "instruction %u loads a column of another kind", i);
			/* gpujoind has a use of its own for the other bits */
			if (instr->imm < 0 || instr->imm > 1)
				return gj_check_fails(check, "instruction %u has a bad guard", i);
			if (instr->n > (instr->op == GJ_OP_LOAD_T ? GJ_BYTES_ARRAY : 18u))
				return gj_check_fails(check, "instruction %u loads in an unknown form", i);
			break;
		case GJ_OP_CONST_T:
			if (instr->imm < 0 || instr->imm > 1 || instr->n > 0xFFFF ||
				(uint64_t) instr->arg + (instr->n + 7) / 8 > p->nconstants)
				return gj_check_fails(check, "instruction %u has a bad text", i);
			break;
		case GJ_OP_ADD_INTERVAL:
			if ((uint64_t) instr->arg + 3 > p->nconstants)
				return gj_check_fails(check, "instruction %u uses constants that do not exist", i);
			if (!is_interval(gj_program_array(p, int64_t, constants) + instr->arg))
				return gj_check_fails(check, "instruction %u has a bad interval", i);
			break;
		case GJ_OP_SCALE_UP:
		case GJ_OP_SCALE_DOWN:
		case GJ_OP_DIGITS_D:
		case GJ_OP_D_TO_F:
			if (!is_power_of_10(instr->imm))
				return gj_check_fails(check, "instruction %u has a bad power of 10", i);
			break;
		case GJ_OP_IN_I:
		case GJ_OP_IN_F:
		case GJ_OP_IN_T:
			if ((uint64_t) instr->arg + instr->n > p->nconstants ||
				(instr->op == GJ_OP_IN_T && !check_text_list(check, instr)))
				return gj_check_fails(check, "instruction %u uses constants that do not exist", i);
			break;
		default:
			break;
	}
	return true;
}

bool
gj_check_exprs(GjCheck *check)
{
	const GjProgram *p = check->program;
	uint64_t	total = 0;

	for (uint32_t e = 0; e < p->nexprs; e++)
	{
		const GjExpr *expr = &check->exprs[e];
		GjWritten	written = {0, 0};

		if (expr->ninstrs < 1 || (uint64_t) expr->first + expr->ninstrs > p->ninstrs)
			return gj_check_fails(check, "expression %u has instructions that do not exist", e);
		/* shared instructions must not make the check itself quadratic */
		total += expr->ninstrs;
		if (total > GJ_MAX_PROGRAM_SIZE)
			return gj_check_fails(check, "expressions overlap");
		if (expr->nregisters < 1 || expr->nregisters > GJ_MAX_REGISTERS)
			return gj_check_fails(check, "expression %u has %u registers", e, expr->nregisters);
		if ((!gj_kind_computable(expr->kind) && expr->kind != GJ_TEXT) || expr->kind == GJ_FLOAT4)
			return gj_check_fails(check, "expression %u has kind %u", e, expr->kind);
		for (uint32_t i = 0; i < expr->ninstrs; i++)
			if (!check_instr(check, expr->first + i, expr->nregisters, &written))
				return false;
		if (expr->result >= expr->nregisters || !(written.any >> expr->result & 1))
			return gj_check_fails(check, "expression %u has no result", e);
		if ((expr->kind == GJ_TEXT) != (written.text >> expr->result & 1))
			return gj_check_fails(check, "expression %u has a result of another kind", e);
	}
	return true;
}
