/*
 * runtime.c
 *	  Fills the constants that are known only now into a copy of the program.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

#include "exec/join_scan.h"
#include "guc.h"
#include "plan/program_builder.h"

/* Elements that an IN list gets at run time. */
typedef struct RuntimeArray
{
	int			instr;
	bool		isnull;
	bool		has_null;
	int			n;
	int64	   *values;
} RuntimeArray;

static void
set_constant(GjInstr *instr, int64 value, bool isnull)
{
	uint16		dst = instr->dst;

	memset(instr, 0, sizeof(GjInstr));
	instr->op = GJ_OP_CONST;
	instr->dst = dst;
	instr->imm = value;
	instr->n = isnull;
}

/* Appends the arrays' elements to the program's constants. */
static GjProgram *
append_arrays(GjProgram *program, List *arrays)
{
	GjInstr    *instrs;
	ListCell   *lc;
	Size		nbytes = program->nbytes;

	foreach(lc, arrays)
		nbytes += sizeof(int64) * ((RuntimeArray *) lfirst(lc))->n;
	if (nbytes > GJ_MAX_PROGRAM_SIZE)
		return NULL;
	program = repalloc(program, nbytes);
	instrs = (GjInstr *) ((char *) program + program->instrs);
	foreach(lc, arrays)
	{
		RuntimeArray *array = lfirst(lc);
		GjInstr    *instr = &instrs[array->instr];

		/* no elements: FALSE, even for a NULL operand; no array: NULL */
		if (array->isnull || (array->n == 0 && !array->has_null))
		{
			set_constant(instr, 0, array->isnull);
			continue;
		}
		instr->arg = program->nconstants;
		instr->n = array->n;
		instr->imm = array->has_null;
		memcpy((char *) program + program->constants + sizeof(int64) * program->nconstants,
			   array->values, sizeof(int64) * array->n);
		program->nconstants += array->n;
	}
	program->nbytes = program->constants + sizeof(int64) * program->nconstants;
	return program;
}

GjProgram *
gj_make_program(GjScanState *state)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	GjProgram  *program = palloc(state->template->nbytes);
	GjInstr    *instrs;
	List	   *arrays = NIL;
	ListCell   *lc_expr,
			   *lc_instr;

	memcpy(program, state->template, state->template->nbytes);
	program->fail_point = gj_fail_at;
	instrs = (GjInstr *) ((char *) program + program->instrs);
	forboth(lc_expr, state->runtime_exprs, lc_instr, state->runtime_instrs)
	{
		ExprState  *expr = lfirst(lc_expr);
		GjInstr    *instr = &instrs[lfirst_int(lc_instr)];
		Oid			type = exprType((Node *) expr->expr);
		bool		isnull;
		Datum		value = ExecEvalExprSwitchContext(expr, econtext, &isnull);

		if (instr->op == GJ_OP_CONST)
			set_constant(instr, isnull ? 0 : gj_register_value(type, value), isnull);
		else
		{
			RuntimeArray *array = palloc0(sizeof(RuntimeArray));

			array->instr = lfirst_int(lc_instr);
			array->isnull = isnull;
			if (!isnull)
				array->values = gj_array_constants(DatumGetArrayTypeP(value),
												   &array->has_null, &array->n);
			arrays = lappend(arrays, array);
		}
	}
	return arrays == NIL ? program : append_arrays(program, arrays);
}
