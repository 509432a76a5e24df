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

/* What goes among the program's constants at run time: an IN list, or a text. */
typedef struct RuntimeArray
{
	int			instr;
	bool		isnull;
	bool		has_null;
	int			n;				/* elements; bytes of a text */
	int			nwords;
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
		nbytes += sizeof(int64) * ((RuntimeArray *) lfirst(lc))->nwords;
	if (nbytes > GJ_MAX_PROGRAM_SIZE)
		return NULL;
	program = repalloc(program, nbytes);
	instrs = (GjInstr *) ((char *) program + program->instrs);
	foreach(lc, arrays)
	{
		RuntimeArray *array = lfirst(lc);
		GjInstr    *instr = &instrs[array->instr];

		/* no elements: FALSE, even for a NULL operand; no array: NULL */
		if (instr->op != GJ_OP_CONST_T &&
			(array->isnull || (array->n == 0 && !array->has_null)))
		{
			set_constant(instr, 0, array->isnull);
			continue;
		}
		instr->arg = program->nconstants;
		instr->n = array->n;
		instr->imm = instr->op == GJ_OP_CONST_T ? array->isnull : array->has_null;
		memcpy((char *) program + program->constants + sizeof(int64) * program->nconstants,
			   array->values, sizeof(int64) * array->nwords);
		program->nconstants += array->nwords;
	}
	program->nbytes = program->constants + sizeof(int64) * program->nconstants;
	return program;
}

/* The value of a list or a text; false if a program cannot hold it. */
static bool
runtime_array(RuntimeArray *array, const GjInstr *instr, Oid type, Datum value)
{
	const char *bytes;
	Size		n;

	if (array->isnull)
	{
		array->values = palloc(sizeof(int64));
		return true;
	}
	if (instr->op != GJ_OP_CONST_T)
	{
		array->values = gj_array_constants(DatumGetArrayTypeP(value), instr->n, &array->has_null,
										   &array->n, &array->nwords);
		return array->values != NULL;
	}
	bytes = gj_value_bytes(type, value, &n);
	if (n > PG_UINT16_MAX)
		return false;
	array->n = n;
	array->nwords = (n + 7) / 8;
	array->values = palloc0(sizeof(int64) * Max(array->nwords, 1));
	memcpy(array->values, bytes, n);
	return true;
}

/* An expression as it was before references to the scan's target list took places in it. */
static Node *
without_references(Node *node, void *tlist)
{
	if (node && IsA(node, Var) && ((Var *) node)->varno == INDEX_VAR)
	{
		TargetEntry *entry = list_nth_node(TargetEntry, (List *) tlist,
										   ((Var *) node)->varattno - 1);

		return (Node *) copyObject(entry->expr);
	}
	return expression_tree_mutator(node, without_references, tlist);
}

/*
 * The planner takes whatever the target list has too out of custom_exprs, and puts a
 * reference there.  These expressions are evaluated before there is any row.
 */
List *
gj_runtime_exprs(const CustomScan *cscan)
{
	return (List *) without_references(list_nth(cscan->custom_exprs, GJ_EXPRS_RUNTIME),
									   cscan->custom_scan_tlist);
}

GjProgram *
gj_make_program(GjScanState *state)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	GjProgram  *program = palloc(state->template->nbytes);
	GjInstr    *instrs;
	GjSetStep  *sets;
	List	   *arrays = NIL;
	ListCell   *lc_expr,
			   *lc_instr;

	memcpy(program, state->template, state->template->nbytes);
	program->fail_point = gj_fail_at;
	sets = (GjSetStep *) ((char *) program + program->set_steps);
	for (uint32 i = 0; i < program->nset_steps; i++)
		sets[i].algorithm = gj_set_algorithm;
	instrs = (GjInstr *) ((char *) program + program->instrs);
	forboth(lc_expr, state->runtime_exprs, lc_instr, state->runtime_instrs)
	{
		ExprState  *expr = lfirst(lc_expr);
		GjInstr    *instr = &instrs[lfirst_int(lc_instr)];
		Oid			type = exprType((Node *) expr->expr);
		bool		isnull;
		Datum		value = ExecEvalExprSwitchContext(expr, econtext, &isnull);

		if (instr->op == GJ_OP_CONST && gj_type(type)->reading == GJ_READ_DECIMAL)
		{
			int64		bound = 0;

			if (!isnull && !gj_numeric_bound(value, instr->arg, instr->n, &bound))
				return NULL;
			set_constant(instr, bound, isnull);
		}
		else if (instr->op == GJ_OP_CONST && instr->arg == GJ_BOUND_OF_DATE)
			set_constant(instr, isnull ? 0 : gj_date_bound(DatumGetTimestamp(value), instr->n), isnull);
		else if (instr->op == GJ_OP_CONST)
			set_constant(instr, isnull ? 0 : gj_register_value(type, value), isnull);
		else
		{
			RuntimeArray *array = palloc0(sizeof(RuntimeArray));

			array->instr = lfirst_int(lc_instr);
			array->isnull = isnull;
			if (!runtime_array(array, instr, type, value))
				return NULL;
			arrays = lappend(arrays, array);
		}
	}
	return arrays == NIL ? program : append_arrays(program, arrays);
}
