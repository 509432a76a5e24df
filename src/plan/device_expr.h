/*
 * device_expr.h
 *	  What the files that compile expressions to device code share: device_expr.c (nodes, columns,
 *	  constants), device_call.c (functions and operators), device_condition.c (what PostgreSQL
 *	  does not always evaluate), average.c (averages of stages).
 *
 * Registers are handed out like a stack: a node at depth d leaves its value in register d and uses
 * only registers from d on.  The functions that compile return false if the device does not know
 * what they are given; what was emitted by then is the caller's to take back.
 */
#ifndef GJ_DEVICE_EXPR_H
#define GJ_DEVICE_EXPR_H

#include "plan/device_functions.h"
#include "plan/program_builder.h"

typedef struct GjCompileContext
{
	GjBuilder  *builder;
	int			nregisters;
	bool		can_fail;
	int			guard;			/* register: errors of rows where it is not TRUE do not
								 * count; -1: all count */
	bool		sometimes;		/* PostgreSQL evaluates this for some rows only, not counting AND */
	int			scale;			/* of the numeric compiled last */
	bool		mixed;			/* display scales of a numeric differ from row to row */
	int			case_value;		/* register of what CaseTestExprs stand for, and its scale */
	int			case_scale;
} GjCompileContext;

#define GJ_COMPILE_CONTEXT(b)	{.builder = (b), .guard = -1, .case_value = -1}

/* ---- device_expr.c */

/* Takes register `depth` into use. */
extern bool gj_use_register(GjCompileContext *cxt, int depth);
/* Adds an instruction and returns its number. */
extern int	gj_emit(GjCompileContext *cxt, GjInstr instr);
/* dst = op(dst) */
extern void gj_emit_unary(GjCompileContext *cxt, uint16 op, int depth);
/*
 * Emits an operator that can fail on data, with its first operand in a register of its
 * own: where the guard is not TRUE that becomes NULL, and NULLs do not fail.
 */
extern void gj_emit_fallible(GjCompileContext *cxt, GjInstr instr);
/* True for an initplan's value, of this query level or one further out. */
extern bool gj_is_initplan_param(PlannerInfo *root, Param *param);
/* True for a numeric that has its value, and so its scale, only when execution begins. */
extern bool gj_is_late_numeric(GjCompileContext *cxt, Expr *node);
/* True for a timestamp that has its value when execution begins, or now. */
extern bool gj_is_known_timestamp(GjCompileContext *cxt, Expr *node);
/*
 * Loads one of both as what `bound` makes of it: a numeric at the scale of what was compiled last, a
 * timestamp as a date.
 */
extern bool gj_compile_bound(GjCompileContext *cxt, Expr *node, GjBound bound, int depth);
/* Compiles a node so that its value ends in register `depth`. */
extern bool gj_compile_node(GjCompileContext *cxt, Expr *node, int depth);
/* Loads a column, or whether it is NULL. */
extern bool gj_compile_column(GjCompileContext *cxt, Expr *node, bool is_null_test, int depth);

/* Adds what was compiled since instruction `first` as an expression of a type, and returns its number. */
extern int	gj_add_compiled(GjCompileContext *cxt, int first, Oid typid);

/*
 * Adds an expression of 64 bits that a function compiles to register 0: its number, or -1, with the
 * builder as it was and a reason.
 */
typedef bool (*GjCompiler) (GjCompileContext *cxt, Expr *expr, int arg);
extern int	gj_compile_by(GjBuilder *builder, Expr *expr, GjCompiler compile, int arg);

/* ---- device_call.c */

/* Brings the numeric in register `depth` to a scale that is not smaller. */
extern void gj_scale_up(GjCompileContext *cxt, int depth, int from, int to);
/* Argument `which` of a function, ready for its instruction. */
extern bool gj_compile_argument(GjCompileContext *cxt, const GjDeviceFunction *func, Expr *node,
								int which, int depth);
/* True if the collation is one that the function's instruction is right for. */
extern bool gj_collation_fits(const GjDeviceFunction *func, Oid collation);
/* A function of two sets that a step has joined: of their common elements and sizes. */
extern bool gj_compile_set_value(GjCompileContext *cxt, Expr *expr, int depth);
/* A function, or an operator by its function. */
extern bool gj_compile_call(GjCompileContext *cxt, Oid funcid, List *args, Oid collation, int depth);

/* ---- average.c */

/* A comparison with an average of a stage, or with a constant times that. */
extern bool gj_compile_average(GjCompileContext *cxt, OpExpr *op, int depth);

/* ---- device_condition.c */

/*
 * Compiles a node to register `depth` that PostgreSQL evaluates only for some rows: where
 * `op` (GJ_OP_IS_NULL, _IS_TRUE, _IS_FALSE) of register `reg` is TRUE, or FALSE if `negate`.
 * In other rows it does not fail.
 */
extern bool gj_compile_under(GjCompileContext *cxt, Expr *node, int depth, int reg, uint16 op,
							 bool negate);
extern bool gj_compile_bool(GjCompileContext *cxt, BoolExpr *node, int depth);
extern bool gj_compile_case(GjCompileContext *cxt, CaseExpr *node, int depth);
/* What a CaseTestExpr stands for. */
extern bool gj_compile_case_value(GjCompileContext *cxt, int depth);
extern bool gj_compile_coalesce(GjCompileContext *cxt, CoalesceExpr *node, int depth);
extern bool gj_compile_min_max(GjCompileContext *cxt, MinMaxExpr *node, int depth);
extern bool gj_compile_null_if(GjCompileContext *cxt, OpExpr *node, int depth);
extern bool gj_compile_distinct(GjCompileContext *cxt, OpExpr *node, int depth);
extern bool gj_compile_null_test(GjCompileContext *cxt, NullTest *node, int depth);
extern bool gj_compile_boolean_test(GjCompileContext *cxt, BooleanTest *node, int depth);

#endif							/* GJ_DEVICE_EXPR_H */
