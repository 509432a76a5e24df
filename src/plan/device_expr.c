/*
 * device_expr.c
 *	  Compiles PostgreSQL's expressions to device code.
 *
 * What the device knows is a list of immutable built-in functions, named by OID, on
 * types that a register can hold.  Anything else makes gj_compile() say no, and the
 * caller leaves that expression to PostgreSQL.
 *
 * Registers are handed out like a stack: a node at depth d leaves its value in
 * register d and uses only registers from d on.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "plan/program_builder.h"
#include "rows/compare.h"

/* How a built-in function becomes one instruction; `range` as GjInstr.arg has it. */
typedef struct DeviceFunction
{
	Oid			funcid;
	uint16		op;
	uint8		nargs;
	uint8		range;
} DeviceFunction;

#define COMPARISONS(eq, ne, lt, le, gt, ge, suffix) \
	{eq, GJ_OP_EQ_##suffix, 2}, {ne, GJ_OP_NE_##suffix, 2}, \
	{lt, GJ_OP_LT_##suffix, 2}, {le, GJ_OP_LE_##suffix, 2}, \
	{gt, GJ_OP_GT_##suffix, 2}, {ge, GJ_OP_GE_##suffix, 2}
#define COMPARE(prefix, suffix) \
	COMPARISONS(prefix##EQ, prefix##NE, prefix##LT, prefix##LE, prefix##GT, prefix##GE, suffix)
#define COMPARE_(prefix, suffix) \
	COMPARISONS(prefix##_EQ, prefix##_NE, prefix##_LT, prefix##_LE, prefix##_GT, prefix##_GE, suffix)
#define ARITHMETIC(prefix, range) \
	{prefix##PL, GJ_OP_ADD_I, 2, range}, {prefix##MI, GJ_OP_SUB_I, 2, range}, \
	{prefix##MUL, GJ_OP_MUL_I, 2, range}, {prefix##DIV, GJ_OP_DIV_I, 2, range}

static const DeviceFunction device_functions[] = {
	COMPARE(F_INT2, I), COMPARE(F_INT4, I), COMPARE(F_INT8, I),
	COMPARE(F_INT24, I), COMPARE(F_INT42, I), COMPARE(F_INT28, I),
	COMPARE(F_INT82, I), COMPARE(F_INT48, I), COMPARE(F_INT84, I),
	COMPARE(F_BOOL, I), COMPARE(F_OID, I),
	COMPARE_(F_DATE, I), COMPARE_(F_TIMESTAMP, I), COMPARE_(F_TIMESTAMPTZ, I),
	COMPARE(F_FLOAT8, F),

	ARITHMETIC(F_INT2, GJ_INT2), ARITHMETIC(F_INT4, GJ_INT4), ARITHMETIC(F_INT8, GJ_INT8),
	ARITHMETIC(F_INT24, GJ_INT4), ARITHMETIC(F_INT42, GJ_INT4),
	ARITHMETIC(F_INT28, GJ_INT8), ARITHMETIC(F_INT82, GJ_INT8),
	ARITHMETIC(F_INT48, GJ_INT8), ARITHMETIC(F_INT84, GJ_INT8),
	{F_INT2MOD, GJ_OP_MOD_I, 2}, {F_INT4MOD, GJ_OP_MOD_I, 2}, {F_INT8MOD, GJ_OP_MOD_I, 2},
	{F_MOD_INT2_INT2, GJ_OP_MOD_I, 2}, {F_MOD_INT4_INT4, GJ_OP_MOD_I, 2},
	{F_MOD_INT8_INT8, GJ_OP_MOD_I, 2},
	{F_INT2UM, GJ_OP_NEG_I, 1, GJ_INT2}, {F_INT4UM, GJ_OP_NEG_I, 1, GJ_INT4},
	{F_INT8UM, GJ_OP_NEG_I, 1, GJ_INT8},
	{F_INT2ABS, GJ_OP_ABS_I, 1, GJ_INT2}, {F_INT4ABS, GJ_OP_ABS_I, 1, GJ_INT4},
	{F_INT8ABS, GJ_OP_ABS_I, 1, GJ_INT8},
	{F_ABS_INT2, GJ_OP_ABS_I, 1, GJ_INT2}, {F_ABS_INT4, GJ_OP_ABS_I, 1, GJ_INT4},
	{F_ABS_INT8, GJ_OP_ABS_I, 1, GJ_INT8},

	{F_INT4_INT2, GJ_OP_RANGE_I, 1, GJ_INT4}, {F_INT8_INT2, GJ_OP_RANGE_I, 1, GJ_INT8},
	{F_INT8_INT4, GJ_OP_RANGE_I, 1, GJ_INT8}, {F_INT2_INT4, GJ_OP_RANGE_I, 1, GJ_INT2},
	{F_INT2_INT8, GJ_OP_RANGE_I, 1, GJ_INT2}, {F_INT4_INT8, GJ_OP_RANGE_I, 1, GJ_INT4},

	{F_FLOAT8PL, GJ_OP_ADD_F, 2}, {F_FLOAT8MI, GJ_OP_SUB_F, 2},
	{F_FLOAT8MUL, GJ_OP_MUL_F, 2}, {F_FLOAT8DIV, GJ_OP_DIV_F, 2},
	{F_FLOAT8UM, GJ_OP_NEG_F, 1}, {F_FLOAT8ABS, GJ_OP_ABS_F, 1}, {F_ABS_FLOAT8, GJ_OP_ABS_F, 1},
	{F_FLOAT8_INT2, GJ_OP_I_TO_F, 1}, {F_FLOAT8_INT4, GJ_OP_I_TO_F, 1},
	{F_FLOAT8_INT8, GJ_OP_I_TO_F, 1},
};

typedef struct CompileContext
{
	GjBuilder  *builder;
	int			nregisters;
	bool		can_fail;
} CompileContext;

static bool compile_node(CompileContext *cxt, Expr *node, int depth);

static const DeviceFunction *
find_function(Oid funcid)
{
	for (int i = 0; i < lengthof(device_functions); i++)
		if (device_functions[i].funcid == funcid)
			return &device_functions[i];
	return NULL;
}

/* True if the operator can fail on data (a cast that only widens cannot). */
static bool
op_can_fail(Oid funcid, uint16 op)
{
	switch (op)
	{
		case GJ_OP_ADD_I:
		case GJ_OP_SUB_I:
		case GJ_OP_MUL_I:
		case GJ_OP_DIV_I:
		case GJ_OP_MOD_I:
		case GJ_OP_NEG_I:
		case GJ_OP_ABS_I:
		case GJ_OP_ADD_F:
		case GJ_OP_SUB_F:
		case GJ_OP_MUL_F:
		case GJ_OP_DIV_F:
			return true;
		case GJ_OP_RANGE_I:
			return funcid == F_INT2_INT4 || funcid == F_INT2_INT8 || funcid == F_INT4_INT8;
		default:
			return false;
	}
}

/* Takes register `depth` into use. */
static bool
use_register(CompileContext *cxt, int depth)
{
	if (depth >= GJ_MAX_REGISTERS)
		return false;
	cxt->nregisters = Max(cxt->nregisters, depth + 1);
	return true;
}

static int
emit(CompileContext *cxt, GjInstr instr)
{
	return gj_builder_instr(cxt->builder, &instr);
}

/* A datum as a register holds it. */
static int64
register_value(GjKind kind, Datum value)
{
	switch (kind)
	{
		case GJ_BOOL:
			return DatumGetBool(value);
		case GJ_INT2:
			return DatumGetInt16(value);
		case GJ_INT4:
			return DatumGetInt32(value);
		case GJ_UINT4:
			return DatumGetObjectId(value);
		default:				/* GJ_INT8, GJ_FLOAT8 */
			return DatumGetInt64(value);
	}
}

/* True for a constant span of time that no plausible date leaves its range by. */
static bool
is_small_span(Node *node)
{
	Const	   *con = (Const *) node;

	if (!IsA(node, Const) || con->constisnull)
		return false;
	if (con->consttype == INT4OID)
		return abs(DatumGetInt32(con->constvalue)) < 3650000;
	if (con->consttype == INTERVALOID)
	{
		Interval   *span = DatumGetIntervalP(con->constvalue);

		return abs(span->month) < 120000 && abs(span->day) < 3650000 &&
			span->time > -INT64CONST(315360000000000000) &&
			span->time < INT64CONST(315360000000000000);
	}
	return false;
}

/*
 * True if a parameter has its value when execution begins.  An initplan has yet to run
 * then, and PostgreSQL might never run it.
 */
static bool
is_known_param(PlannerInfo *root, Param *param)
{
	ListCell   *lc;

	if (param->paramkind == PARAM_EXTERN)
		return true;
	if (param->paramkind != PARAM_EXEC)
		return false;
	for (; root != NULL; root = root->parent_root)
		foreach(lc, root->init_plans)
			if (list_member_int(lfirst_node(SubPlan, lc)->setParam, param->paramid))
				return false;
	return true;
}

/*
 * True for an expression without columns whose value execution can compute beforehand
 * without a risk of raising an error that PostgreSQL would not raise (it might never
 * evaluate the expression, for want of rows).
 */
static bool
is_runtime_constant(PlannerInfo *root, Expr *node)
{
	if (IsA(node, RelabelType))
		return is_runtime_constant(root, ((RelabelType *) node)->arg);
	if (IsA(node, Param))
		return is_known_param(root, (Param *) node);
	if (IsA(node, Const) || IsA(node, SQLValueFunction))
		return true;
	if (IsA(node, FuncExpr))
	{
		FuncExpr   *func = (FuncExpr *) node;

		switch (func->funcid)
		{
			case F_NOW:
			case F_TRANSACTION_TIMESTAMP:
			case F_STATEMENT_TIMESTAMP:
				return true;
			case F_DATE_TIMESTAMPTZ:
			case F_TIMESTAMP_TIMESTAMPTZ:
				return !IsA(linitial(func->args), Param) &&
					!IsA(linitial(func->args), Const) &&
					is_runtime_constant(root, linitial(func->args));
			default:
				return false;
		}
	}
	if (IsA(node, OpExpr))
	{
		OpExpr	   *op = (OpExpr *) node;

		set_opfuncid(op);
		switch (op->opfuncid)
		{
			case F_TIMESTAMPTZ_PL_INTERVAL:
			case F_TIMESTAMPTZ_MI_INTERVAL:
			case F_TIMESTAMP_PL_INTERVAL:
			case F_TIMESTAMP_MI_INTERVAL:
			case F_DATE_PL_INTERVAL:
			case F_DATE_MI_INTERVAL:
			case F_DATE_PLI:
			case F_DATE_MII:
				return is_small_span(lsecond(op->args)) &&
					!IsA(linitial(op->args), Param) && !IsA(linitial(op->args), Const) &&
					is_runtime_constant(root, linitial(op->args));
			default:
				return false;
		}
	}
	return false;
}

static bool
compile_constant(CompileContext *cxt, Expr *node, GjKind kind, int depth)
{
	GjInstr		instr = {.op = GJ_OP_CONST, .dst = depth};
	GjRuntimeConst *runtime;

	if (!use_register(cxt, depth))
		return false;
	if (IsA(node, Const))
	{
		Const	   *con = (Const *) node;

		instr.n = con->constisnull;
		instr.imm = con->constisnull ? 0 : register_value(kind, con->constvalue);
		emit(cxt, instr);
		return true;
	}
	runtime = palloc(sizeof(GjRuntimeConst));
	runtime->expr = node;
	runtime->instr = emit(cxt, instr);
	cxt->builder->runtime = lappend(cxt->builder->runtime, runtime);
	return true;
}

static bool
compile_column(CompileContext *cxt, Expr *node, uint16 op, int depth)
{
	int			source,
				index;

	if (!gj_builder_column(cxt->builder, node, &source, &index))
		return false;
	if (op == GJ_OP_LOAD &&
		!gj_kind_computable(gj_builder_column_at(cxt->builder, source, index)->type.kind))
		return false;
	if (!use_register(cxt, depth))
		return false;
	emit(cxt, (GjInstr) {.op = op, .dst = depth, .arg = source << 16 | index});
	return true;
}

static bool
compile_call(CompileContext *cxt, Oid funcid, List *args, int depth)
{
	const DeviceFunction *func = find_function(funcid);
	bool		binary;

	if (func == NULL || list_length(args) != func->nargs)
		return false;
	binary = func->nargs == 2;
	if (!compile_node(cxt, linitial(args), depth) ||
		(binary && !compile_node(cxt, lsecond(args), depth + 1)))
		return false;
	emit(cxt, (GjInstr) {.op = func->op, .dst = depth, .a = depth,
		.b = binary ? depth + 1 : depth, .arg = func->range});
	cxt->can_fail |= op_can_fail(funcid, func->op);
	return true;
}

static bool
compile_bool(CompileContext *cxt, BoolExpr *node, int depth)
{
	ListCell   *lc;

	if (!compile_node(cxt, linitial(node->args), depth))
		return false;
	if (node->boolop == NOT_EXPR)
	{
		emit(cxt, (GjInstr) {.op = GJ_OP_NOT, .dst = depth, .a = depth, .b = depth});
		return true;
	}
	for_each_from(lc, node->args, 1)
	{
		if (!compile_node(cxt, lfirst(lc), depth + 1))
			return false;
		emit(cxt, (GjInstr) {.op = node->boolop == AND_EXPR ? GJ_OP_AND : GJ_OP_OR,
			.dst = depth, .a = depth, .b = depth + 1});
	}
	return true;
}

static bool
compile_null_test(CompileContext *cxt, NullTest *node, int depth)
{
	if (node->argisrow)
		return false;
	/* of a column, any type will do; of a composite, "is null" asks its fields */
	if (IsA(node->arg, Var) && !type_is_rowtype(exprType((Node *) node->arg)))
	{
		if (!compile_column(cxt, node->arg, GJ_OP_LOAD_IS_NULL, depth))
			return false;
	}
	else
	{
		if (!compile_node(cxt, node->arg, depth))
			return false;
		emit(cxt, (GjInstr) {.op = GJ_OP_IS_NULL, .dst = depth, .a = depth, .b = depth});
	}
	if (node->nulltesttype == IS_NOT_NULL)
		emit(cxt, (GjInstr) {.op = GJ_OP_NOT, .dst = depth, .a = depth, .b = depth});
	return true;
}

static bool
compile_boolean_test(CompileContext *cxt, BooleanTest *node, int depth)
{
	uint16		op;
	bool		negate;

	switch (node->booltesttype)
	{
		case IS_TRUE:
		case IS_NOT_TRUE:
			op = GJ_OP_IS_TRUE;
			negate = node->booltesttype == IS_NOT_TRUE;
			break;
		case IS_FALSE:
		case IS_NOT_FALSE:
			op = GJ_OP_IS_FALSE;
			negate = node->booltesttype == IS_NOT_FALSE;
			break;
		default:
			op = GJ_OP_IS_NULL;
			negate = node->booltesttype == IS_NOT_UNKNOWN;
			break;
	}
	if (!compile_node(cxt, node->arg, depth))
		return false;
	emit(cxt, (GjInstr) {.op = op, .dst = depth, .a = depth, .b = depth});
	if (negate)
		emit(cxt, (GjInstr) {.op = GJ_OP_NOT, .dst = depth, .a = depth, .b = depth});
	return true;
}

static int
compare_int64(const void *a, const void *b)
{
	int64		x = *(const int64 *) a,
				y = *(const int64 *) b;

	return (x > y) - (x < y);
}

static int
compare_double_bits(const void *a, const void *b)
{
	double		x = gj_bits_to_double(*(const int64 *) a),
				y = gj_bits_to_double(*(const int64 *) b);

	return gj_lt_f(x, y) ? -1 : gj_lt_f(y, x) ? 1 : 0;
}

int64 *
gj_array_constants(ArrayType *array, bool *has_null, int *n)
{
	Oid			element = ARR_ELEMTYPE(array);
	GjKind		kind = gj_column_type(element).kind;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	Datum	   *values;
	bool	   *nulls;
	int			nvalues;
	int64	   *result;

	get_typlenbyvalalign(element, &typlen, &typbyval, &typalign);
	deconstruct_array(array, element, typlen, typbyval, typalign, &values, &nulls, &nvalues);
	result = palloc(sizeof(int64) * Max(nvalues, 1));
	*has_null = false;
	*n = 0;
	for (int i = 0; i < nvalues; i++)
	{
		if (nulls[i])
			*has_null = true;
		else
			result[(*n)++] = register_value(kind, values[i]);
	}
	qsort(result, *n, sizeof(int64), kind == GJ_FLOAT8 ? compare_double_bits : compare_int64);
	return result;
}

int64
gj_register_value(Oid typid, Datum value)
{
	return register_value(gj_column_type(typid).kind, value);
}

/* x = ANY (array), x <> ALL (array) */
static bool
compile_in(CompileContext *cxt, ScalarArrayOpExpr *node, int depth)
{
	Expr	   *array = lsecond(node->args);
	const DeviceFunction *func;
	GjInstr		instr = {.dst = depth, .a = depth, .b = depth};
	bool		is_float;
	Oid			element;

	set_sa_opfuncid(node);
	func = find_function(node->opfuncid);
	element = get_base_element_type(exprType((Node *) array));
	if (func == NULL || !OidIsValid(element) ||
		!gj_kind_computable(gj_column_type(element).kind))
		return false;
	is_float = func->op == GJ_OP_EQ_F || func->op == GJ_OP_NE_F;
	if (node->useOr ? (func->op != GJ_OP_EQ_I && func->op != GJ_OP_EQ_F) :
		(func->op != GJ_OP_NE_I && func->op != GJ_OP_NE_F))
		return false;
	if (!compile_node(cxt, linitial(node->args), depth))
		return false;
	instr.op = is_float ? GJ_OP_IN_F : GJ_OP_IN_I;
	if (IsA(array, Const))
	{
		Const	   *con = (Const *) array;
		bool		has_null;
		int			n;
		int64	   *values;

		if (con->constisnull)
			return false;
		values = gj_array_constants(DatumGetArrayTypeP(con->constvalue), &has_null, &n);
		instr.arg = cxt->builder->nconstants;
		instr.n = n;
		instr.imm = has_null;
		/* an empty list is FALSE even for a NULL operand */
		if (n == 0)
			return false;
		for (int i = 0; i < n; i++)
			gj_builder_constant(cxt->builder, values[i]);
		emit(cxt, instr);
	}
	else if (IsA(array, Param) && is_known_param(cxt->builder->root, (Param *) array))
	{
		GjRuntimeConst *runtime = palloc(sizeof(GjRuntimeConst));

		runtime->expr = array;
		runtime->instr = emit(cxt, instr);
		cxt->builder->runtime = lappend(cxt->builder->runtime, runtime);
	}
	else
		return false;
	if (!node->useOr)
		emit(cxt, (GjInstr) {.op = GJ_OP_NOT, .dst = depth, .a = depth, .b = depth});
	return true;
}

/*
 * Compiles a node so that its value ends in register `depth`.  False if the device
 * does not know it; what was emitted by then is the caller's to take back.
 */
static bool
compile_node(CompileContext *cxt, Expr *node, int depth)
{
	GjKind		kind;

	check_stack_depth();
	if (IsA(node, OpExpr))
		set_opfuncid((OpExpr *) node);
	kind = gj_column_type(exprType((Node *) node)).kind;
	if (!gj_kind_computable(kind))
		return false;
	if (is_runtime_constant(cxt->builder->root, node))
		return compile_constant(cxt, node, kind, depth);

	switch (nodeTag(node))
	{
		case T_Var:
		case T_PlaceHolderVar:
			return compile_column(cxt, node, GJ_OP_LOAD, depth);
		case T_OpExpr:
			return compile_call(cxt, ((OpExpr *) node)->opfuncid, ((OpExpr *) node)->args, depth);
		case T_FuncExpr:
			return compile_call(cxt, ((FuncExpr *) node)->funcid, ((FuncExpr *) node)->args, depth);
		case T_BoolExpr:
			return compile_bool(cxt, (BoolExpr *) node, depth);
		case T_NullTest:
			return compile_null_test(cxt, (NullTest *) node, depth);
		case T_BooleanTest:
			return compile_boolean_test(cxt, (BooleanTest *) node, depth);
		case T_ScalarArrayOpExpr:
			return compile_in(cxt, (ScalarArrayOpExpr *) node, depth);
		case T_RelabelType:
			{
				Expr	   *arg = ((RelabelType *) node)->arg;

				/* the same bits, read in the same way */
				return gj_column_type(exprType((Node *) arg)).kind == kind &&
					compile_node(cxt, arg, depth);
			}
		default:
			return false;
	}
}

/* A value in register 0 that becomes NULL where `filter` is not true. */
static bool
compile_filter(CompileContext *cxt, Expr *filter)
{
	if (!compile_node(cxt, filter, 1))
		return false;
	emit(cxt, (GjInstr) {.op = GJ_OP_ONLY_IF, .dst = 0, .a = 0, .b = 1});
	return true;
}

int
gj_compile(GjBuilder *builder, Expr *expr)
{
	return gj_compile_filtered(builder, expr, NULL);
}

int
gj_compile_filtered(GjBuilder *builder, Expr *arg, Expr *filter)
{
	CompileContext cxt = {.builder = builder};
	Expr	   *expr = arg ? arg : (Expr *) makeBoolConst(true, false);
	GjBuilderMark mark;
	GjExpr		result = {0};

	gj_builder_mark(builder, &mark);
	result.first = builder->ninstrs;
	if (!compile_node(&cxt, expr, 0) || (filter != NULL && !compile_filter(&cxt, filter)))
	{
		gj_builder_reset(builder, &mark);
		return -1;
	}
	result.ninstrs = builder->ninstrs - result.first;
	result.result = 0;
	result.nregisters = cxt.nregisters;
	result.kind = gj_column_type(exprType((Node *) expr)).kind;
	result.can_fail = cxt.can_fail;
	builder->can_fail |= cxt.can_fail;
	return gj_builder_expr(builder, &result);
}

bool
gj_compilable(GjBuilder *builder, Expr *expr, bool *can_fail)
{
	GjBuilderMark mark;
	int			e;

	gj_builder_mark(builder, &mark);
	e = gj_compile(builder, expr);
	*can_fail = e >= 0 && builder->exprs[e].can_fail;
	gj_builder_reset(builder, &mark);
	return e >= 0;
}

bool
gj_key_clause(Expr *clause, Expr **left, Expr **right)
{
	OpExpr	   *op = (OpExpr *) clause;
	const DeviceFunction *func;

	if (!IsA(clause, OpExpr) || list_length(op->args) != 2)
		return false;
	set_opfuncid(op);
	func = find_function(op->opfuncid);
	if (func == NULL || (func->op != GJ_OP_EQ_I && func->op != GJ_OP_EQ_F))
		return false;
	*left = linitial(op->args);
	*right = lsecond(op->args);
	return true;
}

bool
gj_inequality_clause(Expr *clause, Expr **left, Expr **right, GjOp *op)
{
	OpExpr	   *node = (OpExpr *) clause;
	const DeviceFunction *func;

	if (!IsA(clause, OpExpr) || list_length(node->args) != 2)
		return false;
	set_opfuncid(node);
	func = find_function(node->opfuncid);
	if (func == NULL)
		return false;
	switch (func->op)
	{
		case GJ_OP_LT_I:
		case GJ_OP_LE_I:
		case GJ_OP_GT_I:
		case GJ_OP_GE_I:
		case GJ_OP_LT_F:
		case GJ_OP_LE_F:
		case GJ_OP_GT_F:
		case GJ_OP_GE_F:
			*op = func->op;
			*left = linitial(node->args);
			*right = lsecond(node->args);
			return true;
		default:
			return false;
	}
}
