/*
 * questions.c
 *	  Finds the questions of a checked program (rows/expression.h): conditions on one column of texts
 *	  that a device can answer once for each value of a dictionary.
 *
 * A question's instructions lie side by side.  All of its operators are strict: where the column is
 * NULL, or a guard is not TRUE, its result is NULL.  It reads nothing from before its LOAD_T but
 * that guard, and nothing of it but the result is read later.
 */
#include "check.h"

#include "rows/expression.h"

/* Registers, one bit each, while the instructions of a question are followed. */
typedef struct GjFollowed
{
	uint32_t	column;			/* the column that is loaded */
	int32_t		guard;			/* the register that guards the load; -1: none */
	uint32_t	written;		/* by the question */
	uint32_t	of_column;		/* NULL where the column is */
} GjFollowed;

static bool
is_of_column(const GjFollowed *f, uint32_t r)
{
	return f->of_column >> r & 1;
}

/* True if a register has a value of the question: the column's, or a constant. */
static bool
is_own(const GjFollowed *f, uint32_t r)
{
	return f->written >> r & 1;
}

/* True if a load, or GJ_OP_ONLY_IF, asks only for what the question has, or the guard. */
static bool
is_guard(const GjFollowed *f, uint32_t r)
{
	return is_of_column(f, r) || (int32_t) r == f->guard;
}

/*
 * True if an instruction can be one of the question's.  *of_column: its result is NULL where the
 * column is.
 */
static bool
can_follow(const GjFollowed *f, const GjInstr *instr, bool *of_column)
{
	const bool	a = is_of_column(f, instr->a);
	const bool	b = is_of_column(f, instr->b);
	const bool	own = is_own(f, instr->a) && is_own(f, instr->b);

	*of_column = true;
	switch (instr->op)
	{
		case GJ_OP_CONST:
		case GJ_OP_CONST_T:
			*of_column = false;
			return true;
		case GJ_OP_LOAD_T:
			return instr->arg == f->column &&
				(instr->imm == 0 ? f->guard < 0 : is_guard(f, instr->a));
		case GJ_OP_ONLY_IF:
			return a && is_guard(f, instr->b);
		case GJ_OP_AND:
		case GJ_OP_OR:
			return a && b;
		case GJ_OP_NOT:
		case GJ_OP_MOVE:
		case GJ_OP_IN_T:
		case GJ_OP_IN_I:
		case GJ_OP_TRIM:
		case GJ_OP_LENGTH_T:
		case GJ_OP_OCTETS_T:
			*of_column = a;		/* or of a constant, which a comparison trims as well */
			return is_own(f, instr->a);
		case GJ_OP_EQ_T:
		case GJ_OP_NE_T:
		case GJ_OP_LT_T:
		case GJ_OP_LE_T:
		case GJ_OP_GT_T:
		case GJ_OP_GE_T:
		case GJ_OP_EQ_I:
		case GJ_OP_NE_I:
		case GJ_OP_LT_I:
		case GJ_OP_LE_I:
		case GJ_OP_GT_I:
		case GJ_OP_GE_I:
		case GJ_OP_LIKE:
		case GJ_OP_STARTS_WITH:
		case GJ_OP_LEFT_T:
		case GJ_OP_RIGHT_T:
			return own && (a || b);
		case GJ_OP_SUBSTR:
			return own && a && (instr->n == 0 || is_own(f, instr->b + 1u));
		default:
			return false;
	}
}

/* True if an instruction's result is a condition. */
static bool
is_condition(uint32_t op)
{
	switch (op)
	{
		case GJ_OP_AND:
		case GJ_OP_OR:
		case GJ_OP_NOT:
		case GJ_OP_IN_T:
		case GJ_OP_IN_I:
		case GJ_OP_EQ_T:
		case GJ_OP_NE_T:
		case GJ_OP_LT_T:
		case GJ_OP_LE_T:
		case GJ_OP_GT_T:
		case GJ_OP_GE_T:
		case GJ_OP_EQ_I:
		case GJ_OP_NE_I:
		case GJ_OP_LT_I:
		case GJ_OP_LE_I:
		case GJ_OP_GT_I:
		case GJ_OP_GE_I:
		case GJ_OP_LIKE:
		case GJ_OP_STARTS_WITH:
			return true;
		default:
			return false;
	}
}

/* True if one of the registers is read from instruction `at` on, before it is written again. */
static bool
is_read_later(const GjExpr *expr, const GjInstr *instrs, uint32_t at, uint32_t registers)
{
	for (uint32_t pc = at; pc < expr->first + expr->ninstrs; pc++)
	{
		if (gj_check_reads(&instrs[pc]) & registers)
			return true;
		registers &= ~(1u << instrs[pc].dst);
	}
	return registers >> expr->result & 1;
}

/* The last instruction of the longest question that begins at `at`; `at`: there is none. */
static uint32_t
find_end(const GjExpr *expr, const GjInstr *instrs, uint32_t at)
{
	const GjInstr *load = &instrs[at];
	GjFollowed	f = {.column = load->arg,.guard = load->imm != 0 ? load->a : -1,
	.written = 1u << load->dst,.of_column = 1u << load->dst};
	uint32_t	end = at;

	/* the guard is still read where answers are looked up */
	if (load->imm != 0 && load->a == load->dst)
		return at;
	for (uint32_t pc = at + 1; pc < expr->first + expr->ninstrs; pc++)
	{
		const GjInstr *instr = &instrs[pc];
		uint32_t	result = 1u << instr->dst;
		bool		of_column;

		if (!can_follow(&f, instr, &of_column) || (int32_t) instr->dst == f.guard)
			break;
		f.written |= result;
		f.of_column = of_column ? f.of_column | result : f.of_column & ~result;
		if (of_column && is_condition(instr->op) &&
			!is_read_later(expr, instrs, pc + 1, f.written & ~result))
			end = pc;
	}
	return end;
}

/* True if no instruction belongs to two expressions. */
static bool
are_apart(const GjProgram *p, const GjExpr *exprs)
{
	for (uint32_t e = 1; e < p->nexprs; e++)
		if (exprs[e].first < exprs[e - 1].first + exprs[e - 1].ninstrs)
			return false;
	return true;
}

void
gj_program_find_questions(GjProgram *p)
{
	const GjExpr *exprs = gj_program_array(p, GjExpr, exprs);
	const GjColumnType *types = gj_program_array(p, GjColumnType, columns);
	GjInstr    *instrs = (GjInstr *) gj_program_array(p, GjInstr, instrs);
	uint8_t		number[GJ_MAX_COLUMNS] = {0};

	if (p->kind != GJ_PROGRAM_JOIN || !are_apart(p, exprs))
		return;
	for (uint32_t e = 0; e < p->nexprs; e++)
		for (uint32_t pc = exprs[e].first; pc < exprs[e].first + exprs[e].ninstrs; pc++)
		{
			GjInstr    *load = &instrs[pc];
			uint32_t	end;

			/* rows of other sources are copied, and are no codes then */
			if (load->op != GJ_OP_LOAD_T || types[load->arg].source != 0 ||
				types[load->arg].kind != GJ_REF || number[load->arg] == GJ_QUESTIONS)
				continue;
			end = find_end(&exprs[e], instrs, pc);
			if (end == pc)
				continue;
			load->b = instrs[end].dst;
			load->imm = gj_question_imm(load->imm, number[load->arg]++, end - pc);
			pc = end;
		}
}
