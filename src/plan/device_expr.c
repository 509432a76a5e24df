/*
 * device_expr.c
 *	  Compiles PostgreSQL's expressions to device code.
 *
 * What the device knows is a list of immutable built-in functions, named by OID
 * (device_functions.c), on types that a register can hold (types.c).  Anything else makes
 * gj_compile() say no, and the caller leaves that expression to PostgreSQL.
 *
 * Registers are handed out like a stack: a node at depth d leaves its value in
 * register d and uses only registers from d on.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "plan/device_functions.h"
#include "plan/program_builder.h"
#include "plan/set_clause.h"
#include "rows/numeric.h"

/* see is_short_text() */
#define MAX_SHORT_TEXT	120
#define MAX_SHORT_TEXTS	5

typedef struct CompileContext
{
	GjBuilder  *builder;
	int			nregisters;
	bool		can_fail;
	int			guard;			/* register: errors of rows where it is not TRUE do not
								 * count; -1: all count */
	int			scale;			/* of the numeric compiled last */
	bool		mixed;			/* display scales of a numeric differ from row to row */
	int			case_value;		/* register of what CaseTestExprs stand for, and its scale */
	int			case_scale;
} CompileContext;

static bool compile_node(CompileContext *cxt, Expr *node, int depth);

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

/* dst = op(dst) */
static void
emit_unary(CompileContext *cxt, uint16 op, int depth)
{
	emit(cxt, (GjInstr) {.op = op, .dst = depth, .a = depth, .b = depth});
}

/*
 * Emits an operator that can fail on data, with its first operand in a register of its
 * own: where the guard is not TRUE that becomes NULL, and NULLs do not fail.
 */
static void
emit_fallible(CompileContext *cxt, GjInstr instr)
{
	if (cxt->guard >= 0)
		emit(cxt, (GjInstr) {.op = GJ_OP_ONLY_IF, .dst = instr.a, .a = instr.a, .b = cxt->guard});
	emit(cxt, instr);
	cxt->can_fail = true;
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

/* The bytes of a text among the program's constants; where they start. */
static int
add_bytes(GjBuilder *builder, const char *bytes, Size n)
{
	int			at = builder->nconstants;

	for (Size i = 0; i < n; i += sizeof(int64))
	{
		int64		word = 0;

		memcpy(&word, bytes + i, Min(n - i, sizeof(int64)));
		gj_builder_constant(builder, word);
	}
	return at;
}

static bool
compile_const(CompileContext *cxt, Const *con, int kind, int depth)
{
	GjInstr		instr = {.op = GJ_OP_CONST, .dst = depth, .n = con->constisnull};

	if (kind == GJ_TEXT)
	{
		instr.op = GJ_OP_CONST_T;
		instr.n = 0;
		instr.imm = con->constisnull;
		if (!con->constisnull)
		{
			Size		n;
			const char *bytes = gj_value_bytes(con->consttype, con->constvalue, &n);

			if (n > GJ_MAX_TEXT)
				return false;
			instr.n = n;
			instr.arg = add_bytes(cxt->builder, bytes, n);
		}
	}
	else if (con->constisnull)
		cxt->scale = 0;
	else if (gj_type(con->consttype)->reading == GJ_READ_DECIMAL)
	{
		if (!gj_numeric_value(con->constvalue, &cxt->scale, &instr.imm))
			return false;
	}
	else
		instr.imm = gj_register_value(con->consttype, con->constvalue);
	emit(cxt, instr);
	return true;
}

static bool
compile_constant(CompileContext *cxt, Expr *node, int kind, int depth)
{
	GjRuntimeConst *runtime;

	if (!use_register(cxt, depth))
		return false;
	if (IsA(node, Const))
		return compile_const(cxt, (Const *) node, kind, depth);
	/* its scale shows only at execution */
	if (gj_type(exprType((Node *) node))->reading == GJ_READ_DECIMAL)
		return false;
	runtime = palloc(sizeof(GjRuntimeConst));
	runtime->expr = node;
	runtime->instr = emit(cxt, (GjInstr) {.op = kind == GJ_TEXT ? GJ_OP_CONST_T : GJ_OP_CONST, .dst = depth});
	cxt->builder->runtime = lappend(cxt->builder->runtime, runtime);
	return true;
}

/*
 * True if all texts of a column are sure to fit a slot once they are flattened: those of
 * the most tuples that a page can have, of up to MAX_SHORT_TEXTS columns of a source
 * (column_writer.c sets GJ_LOAD_SLOT_SIZE / 8 aside for them).
 */
static bool
is_short_text(CompileContext *cxt, Expr *node, int source)
{
	int32		length = type_maximum_size(getBaseType(exprType((Node *) node)),
										   exprTypmod((Node *) node));
	int			ntexts = 0;

	for (int i = 0; i < cxt->builder->ninstrs; i++)
		ntexts += cxt->builder->instrs[i].op == GJ_OP_LOAD_T &&
			cxt->builder->instrs[i].arg >> 16 == source;
	return length > 0 && length <= MAX_SHORT_TEXT && ntexts < MAX_SHORT_TEXTS;
}

/* Loads a column, or whether it is NULL. */
static bool
compile_column(CompileContext *cxt, Expr *node, bool is_null_test, int depth)
{
	const GjType *type = gj_type(exprType((Node *) node));
	GjInstr		instr = {.op = GJ_OP_LOAD, .dst = depth};
	int			source,
				index;

	if (!gj_builder_column(cxt->builder, node, &source, &index) || !use_register(cxt, depth))
		return false;
	instr.arg = source << 16 | index;
	if (is_null_test)
		instr.op = GJ_OP_LOAD_IS_NULL;
	else if (type->reading == GJ_READ_DECIMAL)
	{
		cxt->scale = gj_numeric_scale(exprType((Node *) node), exprTypmod((Node *) node));
		if (cxt->scale < 0)
			return false;
		instr.op = GJ_OP_LOAD_D;
		instr.n = cxt->scale;
	}
	else if (type->reading != GJ_READ_PLAIN)
	{
		instr.op = GJ_OP_LOAD_T;
		instr.n = type->reading == GJ_READ_VARLENA ? GJ_BYTES_VARLENA :
			type->reading == GJ_READ_FIXED ? GJ_BYTES_FIXED : GJ_BYTES_CSTRING;
	}
	if ((instr.op == GJ_OP_LOAD_T || instr.op == GJ_OP_LOAD_D) && cxt->guard >= 0)
	{
		instr.a = cxt->guard;
		instr.imm = 1;
	}
	/* a number that is no numeric(p, s), a text that is too long: PostgreSQL's */
	cxt->can_fail |= instr.op == GJ_OP_LOAD_D ||
		(instr.op == GJ_OP_LOAD_T && instr.n == GJ_BYTES_VARLENA && !is_short_text(cxt, node, source));
	emit(cxt, instr);
	return true;
}

/* ---- functions and operators */

/* Brings the numeric in register `depth` to a scale that is not smaller. */
static void
scale_up(CompileContext *cxt, int depth, int from, int to)
{
	GjInstr    *last = &cxt->builder->instrs[cxt->builder->ninstrs - 1];
	int64		scaled;

	if (from == to)
		return;
	if (last->op == GJ_OP_CONST && last->dst == depth &&
		gj_mul_i(last->imm, gj_power_of_10(to - from), GJ_INT8, &scaled) == GJ_OK)
	{
		last->imm = scaled;
		return;
	}
	emit_fallible(cxt, (GjInstr) {.op = GJ_OP_SCALE_UP, .dst = depth, .a = depth, .b = depth,
		.imm = gj_power_of_10(to - from)});
}

/* Brings the numeric in register `depth` to another scale; rounds as GjRounding says. */
static void
change_scale(CompileContext *cxt, int depth, int to, uint8 rounding)
{
	if (to >= cxt->scale)
		scale_up(cxt, depth, cxt->scale, to);
	else
		emit(cxt, (GjInstr) {.op = GJ_OP_SCALE_DOWN, .dst = depth, .a = depth, .b = depth,
			.arg = rounding, .imm = gj_power_of_10(cxt->scale - to)});
	cxt->scale = to;
}

/* Compiles two numerics to registers depth and depth+1, at the larger scale of them. */
static bool
compile_decimals(CompileContext *cxt, Expr *left, Expr *right, int depth)
{
	int			scale;

	if (!compile_node(cxt, left, depth))
		return false;
	scale = cxt->scale;
	if (!compile_node(cxt, right, depth + 1))
		return false;
	if (cxt->scale < scale)
	{
		scale_up(cxt, depth + 1, cxt->scale, scale);
		cxt->scale = scale;
	}
	else if (cxt->scale > scale)
		emit_fallible(cxt, (GjInstr) {.op = GJ_OP_SCALE_UP, .dst = depth, .a = depth, .b = depth,
			.imm = gj_power_of_10(cxt->scale - scale)});
	return true;
}

/* Argument `which` of a function, ready for its instruction. */
static bool
compile_argument(CompileContext *cxt, const GjDeviceFunction *func, Expr *node, int which, int depth)
{
	if (!compile_node(cxt, node, depth))
		return false;
	if ((func->flags & GJ_CALL_PADDED) && gj_value_kind(exprType((Node *) node)) == GJ_TEXT)
		emit(cxt, (GjInstr) {.op = GJ_OP_TRIM, .dst = depth, .a = depth, .b = depth,
			.arg = GJ_TRIM_RIGHT});
	if (func->flags & (which == 0 ? GJ_CALL_LEFT_DATE : GJ_CALL_RIGHT_DATE))
		emit_fallible(cxt, (GjInstr) {.op = GJ_OP_DATE_TO_TIMESTAMP, .dst = depth, .a = depth, .b = depth});
	return true;
}

/* True if the device knows the encoding of the database: single bytes, or UTF-8. */
static bool
knows_characters(void)
{
	return pg_database_encoding_max_length() == 1 || GetDatabaseEncoding() == PG_UTF8;
}

/* True if the collation is one that the function's instruction is right for. */
static bool
collation_fits(const GjDeviceFunction *func, Oid collation)
{
	if ((func->flags & GJ_CALL_CHARACTERS) && !knows_characters())
		return false;
	if ((func->flags & GJ_CALL_COLLATED) &&
		(!OidIsValid(collation) || !get_collation_isdeterministic(collation)))
		return false;
	return !(func->flags & GJ_CALL_BYTE_ORDER) || gj_collate_is_c(collation);
}

static int32
call_argument(const GjDeviceFunction *func)
{
	return func->flags & GJ_CALL_CHARACTERS ? GetDatabaseEncoding() == PG_UTF8 : func->arg;
}

/* A constant integer, not NULL. */
static bool
const_int4(Expr *node, int *value)
{
	Const	   *con = (Const *) node;

	if (!IsA(node, Const) || con->consttype != INT4OID || con->constisnull)
		return false;
	*value = DatumGetInt32(con->constvalue);
	return true;
}

/* The field that a constant text names, or -1. */
static int
const_field(Expr *node)
{
	static const char *const names[] = {"second", "minute", "hour", "day", "week", "month",
	"quarter", "year", "dow", "isodow", "doy"};
	Const	   *con = (Const *) node;
	char	   *name;

	if (!IsA(node, Const) || con->consttype != TEXTOID || con->constisnull)
		return -1;
	name = TextDatumGetCString(con->constvalue);
	for (int i = 0; i < lengthof(names); i++)
		if (pg_strcasecmp(name, names[i]) == 0)
			return i;
	return -1;
}

/* extract(field from x), date_part(field, timestamp) */
static bool
compile_extract(CompileContext *cxt, const GjDeviceFunction *func, List *args, int depth)
{
	int			field = const_field(linitial(args));
	bool		date = func->funcid == F_EXTRACT_TEXT_DATE;

	if (field < 0 || field == GJ_FIELD_WEEK || (date && field < GJ_FIELD_DAY) ||
		/* in floats, it is computed in a way of its own */
		(func->funcid == F_DATE_PART_TEXT_TIMESTAMP && field == GJ_FIELD_SECOND) ||
		!compile_node(cxt, lsecond(args), depth))
		return false;
	emit_fallible(cxt, (GjInstr) {.op = date ? GJ_OP_EXTRACT_DATE : GJ_OP_EXTRACT_TIMESTAMP,
		.dst = depth, .a = depth, .b = depth, .arg = field});
	cxt->scale = field == GJ_FIELD_SECOND ? 6 : 0;
	if (func->funcid == F_DATE_PART_TEXT_TIMESTAMP)
		emit_unary(cxt, GJ_OP_I_TO_F, depth);
	return true;
}

static bool
compile_date_trunc(CompileContext *cxt, List *args, int depth)
{
	int			field = const_field(linitial(args));

	if (field < 0 || field > GJ_FIELD_YEAR || !compile_node(cxt, lsecond(args), depth))
		return false;
	emit_fallible(cxt, (GjInstr) {.op = GJ_OP_TRUNC_TIMESTAMP, .dst = depth, .a = depth, .b = depth,
		.arg = field});
	return true;
}

/* date or timestamp, plus or minus a constant interval */
static bool
compile_add_interval(CompileContext *cxt, const GjDeviceFunction *func, List *args, int depth)
{
	Const	   *con = lsecond(args);
	bool		minus = func->funcid == F_DATE_MI_INTERVAL || func->funcid == F_TIMESTAMP_MI_INTERVAL;
	Interval   *span;
	int			at;

	if (!IsA(con, Const) || con->constisnull || !compile_node(cxt, linitial(args), depth))
		return false;
	span = DatumGetIntervalP(con->constvalue);
	if (span->time == PG_INT64_MIN)
		return false;
	if (func->funcid == F_DATE_PL_INTERVAL || func->funcid == F_DATE_MI_INTERVAL)
		emit_fallible(cxt, (GjInstr) {.op = GJ_OP_DATE_TO_TIMESTAMP, .dst = depth, .a = depth, .b = depth});
	at = gj_builder_constant(cxt->builder, minus ? -(int64) span->month : span->month);
	gj_builder_constant(cxt->builder, minus ? -(int64) span->day : span->day);
	gj_builder_constant(cxt->builder, minus ? -span->time : span->time);
	emit_fallible(cxt, (GjInstr) {.op = GJ_OP_ADD_INTERVAL, .dst = depth, .a = depth, .b = depth, .arg = at});
	return true;
}

static bool
compile_substr(CompileContext *cxt, const GjDeviceFunction *func, List *args, int depth)
{
	for (int i = 0; i < func->nargs; i++)
		if (!compile_node(cxt, list_nth(args, i), depth + i))
			return false;
	emit_fallible(cxt, (GjInstr) {.op = GJ_OP_SUBSTR, .dst = depth, .a = depth, .b = depth + 1,
		.arg = call_argument(func), .n = func->nargs == 3});
	return true;
}

/* numeric to numeric(p, s) */
static bool
compile_numeric_cast(CompileContext *cxt, List *args, int depth)
{
	int			typmod,
				scale,
				precision;

	if (!const_int4(lsecond(args), &typmod) || !compile_node(cxt, linitial(args), depth))
		return false;
	scale = gj_numeric_scale(NUMERICOID, typmod);
	precision = ((typmod - VARHDRSZ) >> 16) & 0xFFFF;
	if (scale < 0)
		return false;
	change_scale(cxt, depth, scale, GJ_ROUND_HALF_AWAY);
	if (precision <= GJ_MAX_SCALE)
		emit_fallible(cxt, (GjInstr) {.op = GJ_OP_DIGITS_D, .dst = depth, .a = depth, .b = depth,
			.imm = gj_power_of_10(precision)});
	return true;
}

/* round(numeric, n), trunc(numeric, n), floor, ceil */
static bool
compile_rounding(CompileContext *cxt, const GjDeviceFunction *func, List *args, int depth)
{
	int			scale = 0;

	if ((func->nargs == 2 && !const_int4(lsecond(args), &scale)) ||
		scale < 0 || scale > GJ_MAX_SCALE || !compile_node(cxt, linitial(args), depth))
		return false;
	change_scale(cxt, depth, scale, func->arg);
	return true;
}

static bool
compile_numeric_mul(CompileContext *cxt, List *args, int depth)
{
	int			scale;

	if (!compile_node(cxt, linitial(args), depth))
		return false;
	scale = cxt->scale;
	if (!compile_node(cxt, lsecond(args), depth + 1))
		return false;
	cxt->scale += scale;
	emit_fallible(cxt, (GjInstr) {.op = GJ_OP_MUL_I, .dst = depth, .a = depth, .b = depth + 1, .arg = GJ_INT8});
	return cxt->scale <= GJ_MAX_SCALE;
}

/* Functions that need more than an instruction. */
static bool
compile_special(CompileContext *cxt, const GjDeviceFunction *func, List *args, int depth)
{
	switch (func->funcid)
	{
		case F_NUMERIC_MUL:
			return compile_numeric_mul(cxt, args, depth);
		case F_NUMERIC_NUMERIC_INT4:
			return compile_numeric_cast(cxt, args, depth);
		case F_ROUND_NUMERIC_INT4:
		case F_TRUNC_NUMERIC_INT4:
		case F_FLOOR_NUMERIC:
		case F_CEIL_NUMERIC:
		case F_CEILING_NUMERIC:
			return compile_rounding(cxt, func, args, depth);
		case F_EXTRACT_TEXT_DATE:
		case F_EXTRACT_TEXT_TIMESTAMP:
		case F_DATE_PART_TEXT_TIMESTAMP:
			return compile_extract(cxt, func, args, depth);
		case F_DATE_TRUNC_TEXT_TIMESTAMP:
			return compile_date_trunc(cxt, args, depth);
		case F_DATE_PL_INTERVAL:
		case F_DATE_MI_INTERVAL:
		case F_TIMESTAMP_PL_INTERVAL:
		case F_TIMESTAMP_MI_INTERVAL:
			return compile_add_interval(cxt, func, args, depth);
		case F_SUBSTR_TEXT_INT4:
		case F_SUBSTR_TEXT_INT4_INT4:
		case F_SUBSTRING_TEXT_INT4:
		case F_SUBSTRING_TEXT_INT4_INT4:
			return compile_substr(cxt, func, args, depth);
		case F_DATE_MII:
			if (!compile_node(cxt, linitial(args), depth) || !compile_node(cxt, lsecond(args), depth + 1))
				return false;
			emit_fallible(cxt, (GjInstr) {.op = GJ_OP_NEG_I, .dst = depth + 1, .a = depth + 1, .b = depth + 1,
				.arg = GJ_INT8});
			emit_fallible(cxt, (GjInstr) {.op = GJ_OP_DATE_ADD, .dst = depth, .a = depth, .b = depth + 1});
			return true;
	}
	/* the rest has one argument */
	if (!compile_node(cxt, linitial(args), depth))
		return false;
	switch (func->funcid)
	{
		case F_NUMERIC_INT2:
		case F_NUMERIC_INT4:
		case F_NUMERIC_INT8:
			cxt->scale = 0;
			return true;
		case F_SIGN_NUMERIC:
			emit_unary(cxt, GJ_OP_SIGN_I, depth);
			cxt->scale = 0;
			return true;
		case F_INT2_NUMERIC:
		case F_INT4_NUMERIC:
		case F_INT8_NUMERIC:
			change_scale(cxt, depth, 0, GJ_ROUND_HALF_AWAY);
			emit_fallible(cxt, (GjInstr) {.op = GJ_OP_RANGE_I, .dst = depth, .a = depth, .b = depth,
				.arg = func->arg});
			return true;
		case F_FLOAT8_NUMERIC:
			emit_fallible(cxt, (GjInstr) {.op = GJ_OP_D_TO_F, .dst = depth, .a = depth, .b = depth,
				.imm = gj_power_of_10(cxt->scale)});
			return true;
		default:
			return false;
	}
}

/* A function of two sets that a step has joined: of their common elements and sizes. */
static bool
compile_set_value(CompileContext *cxt, Expr *expr, int depth)
{
	GjSetValue	value;
	bool		is_count;

	if (!gj_set_value(cxt->builder, expr, &value) || !use_register(cxt, depth + 2))
		return false;
	is_count = value.predicate == GJ_SETS_OVERLAP;
	emit(cxt, (GjInstr) {.op = GJ_OP_LOAD_PAIR, .dst = depth, .arg = value.step << 16});
	if (is_count && !value.is_condition)
		return true;
	if (is_count)
		emit(cxt, (GjInstr) {.op = GJ_OP_CONST, .dst = depth + 1, .imm = 1});
	else
		emit(cxt, (GjInstr) {.op = GJ_OP_LOAD_PAIR, .dst = depth + 1,
			.arg = value.step << 16 | (value.is_condition ? value.contained : 1)});
	if (value.is_condition)
		emit(cxt, (GjInstr) {.op = is_count ? GJ_OP_GE_I : GJ_OP_EQ_I, .dst = depth, .a = depth, .b = depth + 1});
	else
	{
		emit(cxt, (GjInstr) {.op = GJ_OP_LOAD_PAIR, .dst = depth + 2, .arg = value.step << 16 | 2});
		emit(cxt, (GjInstr) {.op = GJ_OP_SIMILARITY, .dst = depth, .a = depth, .b = depth + 1,
			.arg = value.predicate});
	}
	return true;
}

static bool
compile_call(CompileContext *cxt, Oid funcid, List *args, Oid collation, int depth)
{
	const GjDeviceFunction *func = gj_device_function(funcid);
	GjInstr		instr = {.dst = depth, .a = depth, .b = depth};

	if (func == NULL || list_length(args) != func->nargs || !collation_fits(func, collation))
		return false;
	if (func->op == GJ_NOPS)
		return compile_special(cxt, func, args, depth);
	if ((func->flags & GJ_CALL_DECIMAL) != 0)
	{
		if (!compile_decimals(cxt, linitial(args), lsecond(args), depth))
			return false;
	}
	else if (!compile_argument(cxt, func, linitial(args), 0, depth) ||
			 (func->nargs == 2 && !compile_argument(cxt, func, lsecond(args), 1, depth + 1)))
		return false;
	instr.op = func->op;
	instr.b = func->nargs == 2 ? depth + 1 : depth;
	instr.arg = call_argument(func);
	if (func->flags & GJ_CALL_FAILS)
		emit_fallible(cxt, instr);
	else
		emit(cxt, instr);
	if (func->flags & GJ_CALL_FLOAT4)
		emit_fallible(cxt, (GjInstr) {.op = GJ_OP_F_TO_F4, .dst = depth, .a = depth, .b = depth});
	if (func->flags & GJ_CALL_NOT)
		emit_unary(cxt, GJ_OP_NOT, depth);
	return true;
}

/* ---- what PostgreSQL does not always evaluate */

/*
 * Compiles a node to register `depth` that PostgreSQL evaluates only for some rows: where
 * `op` (GJ_OP_IS_NULL, _IS_TRUE, _IS_FALSE) of register `reg` is TRUE, or FALSE if `negate`.
 * In other rows it does not fail.
 */
static bool
compile_under(CompileContext *cxt, Expr *node, int depth, int reg, uint16 op, bool negate)
{
	GjBuilderMark mark;
	CompileContext before = *cxt;
	bool		can_fail;

	gj_builder_mark(cxt->builder, &mark);
	cxt->can_fail = false;
	if (!compile_node(cxt, node, depth))
		return false;
	can_fail = cxt->can_fail;
	cxt->can_fail |= before.can_fail;
	if (!can_fail)
		return true;
	/* once more, with a guard in `depth` and the value behind it */
	gj_builder_reset(cxt->builder, &mark);
	*cxt = before;
	if (!use_register(cxt, depth + 1))
		return false;
	emit(cxt, (GjInstr) {.op = op, .dst = depth, .a = reg, .b = reg});
	if (negate)
		emit_unary(cxt, GJ_OP_NOT, depth);
	if (before.guard >= 0)
		emit(cxt, (GjInstr) {.op = GJ_OP_AND, .dst = depth, .a = depth, .b = before.guard});
	cxt->guard = depth;
	if (!compile_node(cxt, node, depth + 1))
		return false;
	emit(cxt, (GjInstr) {.op = GJ_OP_MOVE, .dst = depth, .a = depth + 1, .b = depth + 1});
	cxt->guard = before.guard;
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
		/* AND ends at the first FALSE, OR at the first TRUE */
		if (!compile_under(cxt, lfirst(lc), depth + 1, depth,
						   node->boolop == AND_EXPR ? GJ_OP_IS_FALSE : GJ_OP_IS_TRUE, true))
			return false;
		emit(cxt, (GjInstr) {.op = node->boolop == AND_EXPR ? GJ_OP_AND : GJ_OP_OR,
			.dst = depth, .a = depth, .b = depth + 1});
	}
	return true;
}

/*
 * Puts the numeric in register `depth`, of the scale compiled last from `node`, and that
 * of `scale` in register `other` to one scale.  A scale of -1: there is no other yet.
 */
static void
match_scales(CompileContext *cxt, int other, int scale, Expr *node, int depth)
{
	if (IsA(node, Const) && ((Const *) node)->constisnull)
		cxt->scale = Max(scale, 0); /* NULL has none */
	if (cxt->scale == scale || scale < 0)
		return;
	cxt->mixed = true;
	if (cxt->scale < scale)
	{
		scale_up(cxt, depth, cxt->scale, scale);
		cxt->scale = scale;
	}
	else
		emit_fallible(cxt, (GjInstr) {.op = GJ_OP_SCALE_UP, .dst = other, .a = other, .b = other,
			.imm = gj_power_of_10(cxt->scale - scale)});
}

/*
 * Register depth: the result; depth+1: TRUE where no condition was TRUE yet; depth+2: where
 * the current one is the first; depth+3: its result.  The value of CASE x WHEN goes first.
 */
static bool
compile_case(CompileContext *cxt, CaseExpr *node, int depth)
{
	CompileContext outer = *cxt;
	int			scale = -1,
				arg_scale = 0;
	int			kind = gj_value_kind(node->casetype);
	bool		decimal = gj_type(node->casetype)->reading == GJ_READ_DECIMAL;
	int			at = depth;
	ListCell   *lc;

	if (node->arg)
	{
		if (!compile_node(cxt, node->arg, depth))
			return false;
		arg_scale = cxt->scale;
		at = depth + 1;
	}
	if (!use_register(cxt, at + 3))
		return false;
	emit(cxt, (GjInstr) {.op = kind == GJ_TEXT ? GJ_OP_CONST_T : GJ_OP_CONST, .dst = at,
		.n = kind != GJ_TEXT, .imm = kind == GJ_TEXT});
	emit(cxt, (GjInstr) {.op = GJ_OP_CONST, .dst = at + 1, .imm = 1});
	foreach(lc, node->args)
	{
		CaseWhen   *when = lfirst(lc);

		if (node->arg)
		{
			cxt->case_value = depth;
			cxt->case_scale = arg_scale;
		}
		if (!compile_under(cxt, when->expr, at + 2, at + 1, GJ_OP_IS_TRUE, false))
			return false;
		emit_unary(cxt, GJ_OP_IS_TRUE, at + 2);
		emit(cxt, (GjInstr) {.op = GJ_OP_AND, .dst = at + 2, .a = at + 2, .b = at + 1});
		/* CaseTestExprs in a result belong to a CASE further out */
		cxt->case_value = outer.case_value;
		cxt->case_scale = outer.case_scale;
		if (!compile_under(cxt, when->result, at + 3, at + 2, GJ_OP_IS_TRUE, false))
			return false;
		if (decimal)
			match_scales(cxt, at, scale, when->result, at + 3);
		scale = cxt->scale;
		emit(cxt, (GjInstr) {.op = GJ_OP_IF, .dst = at, .a = at + 2, .b = at + 3});
		emit(cxt, (GjInstr) {.op = GJ_OP_BIT_XOR, .dst = at + 1, .a = at + 1, .b = at + 2});
	}
	cxt->case_value = outer.case_value;
	cxt->case_scale = outer.case_scale;
	if (node->defresult)
	{
		if (!compile_under(cxt, node->defresult, at + 2, at + 1, GJ_OP_IS_TRUE, false))
			return false;
		if (decimal)
			match_scales(cxt, at, scale, node->defresult, at + 2);
		emit(cxt, (GjInstr) {.op = GJ_OP_IF, .dst = at, .a = at + 1, .b = at + 2});
	}
	else
		cxt->scale = scale;
	if (at != depth)
		emit(cxt, (GjInstr) {.op = GJ_OP_MOVE, .dst = depth, .a = at, .b = at});
	return true;
}

static bool
compile_case_value(CompileContext *cxt, int depth)
{
	if (cxt->case_value < 0 || !use_register(cxt, depth))
		return false;
	emit(cxt, (GjInstr) {.op = GJ_OP_MOVE, .dst = depth, .a = cxt->case_value, .b = cxt->case_value});
	cxt->scale = cxt->case_scale;
	return true;
}

static bool
compile_coalesce(CompileContext *cxt, CoalesceExpr *node, int depth)
{
	bool		decimal = gj_type(node->coalescetype)->reading == GJ_READ_DECIMAL;
	ListCell   *lc;

	if (!compile_node(cxt, linitial(node->args), depth))
		return false;
	for_each_from(lc, node->args, 1)
	{
		int			scale = cxt->scale;

		if (!compile_under(cxt, lfirst(lc), depth + 1, depth, GJ_OP_IS_NULL, false))
			return false;
		if (decimal)
			match_scales(cxt, depth, scale, lfirst(lc), depth + 1);
		emit(cxt, (GjInstr) {.op = GJ_OP_COALESCE, .dst = depth, .a = depth, .b = depth + 1});
	}
	return true;
}

static bool
compile_min_max(CompileContext *cxt, MinMaxExpr *node, int depth)
{
	int			kind = gj_value_kind(node->minmaxtype);
	bool		decimal = gj_type(node->minmaxtype)->reading == GJ_READ_DECIMAL;
	bool		greatest = node->op == IS_GREATEST;
	uint16		op = kind == GJ_FLOAT8 ? (greatest ? GJ_OP_GREATEST_F : GJ_OP_LEAST_F) :
		(greatest ? GJ_OP_GREATEST_I : GJ_OP_LEAST_I);
	ListCell   *lc;

	if (kind == GJ_TEXT || gj_type(node->minmaxtype)->typid == ANYENUMOID ||
		!compile_node(cxt, linitial(node->args), depth))
		return false;
	for_each_from(lc, node->args, 1)
	{
		int			scale = cxt->scale;

		if (!compile_node(cxt, lfirst(lc), depth + 1))
			return false;
		if (decimal)
			match_scales(cxt, depth, scale, lfirst(lc), depth + 1);
		emit(cxt, (GjInstr) {.op = op, .dst = depth, .a = depth, .b = depth + 1});
	}
	return true;
}

/* NULLIF(a, b), an OpExpr of the equality operator */
static bool
compile_null_if(CompileContext *cxt, OpExpr *node, int depth)
{
	int			scale;

	if (!compile_node(cxt, linitial(node->args), depth))
		return false;
	scale = cxt->scale;
	if (!compile_call(cxt, node->opfuncid, node->args, node->inputcollid, depth + 1))
		return false;
	cxt->scale = scale;
	emit(cxt, (GjInstr) {.op = GJ_OP_NULL_IF, .dst = depth, .a = depth, .b = depth + 1});
	return true;
}

/* a IS DISTINCT FROM b: exactly one is NULL, or they are not equal */
static bool
compile_distinct(CompileContext *cxt, OpExpr *node, int depth)
{
	for (int i = 0; i < 2; i++)
	{
		if (!compile_node(cxt, list_nth(node->args, i), depth + i))
			return false;
		emit_unary(cxt, GJ_OP_IS_NULL, depth + i);
	}
	emit(cxt, (GjInstr) {.op = GJ_OP_BIT_XOR, .dst = depth, .a = depth, .b = depth + 1});
	if (!compile_call(cxt, node->opfuncid, node->args, node->inputcollid, depth + 1))
		return false;
	emit_unary(cxt, GJ_OP_IS_FALSE, depth + 1);
	emit(cxt, (GjInstr) {.op = GJ_OP_OR, .dst = depth, .a = depth, .b = depth + 1});
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
		if (!compile_column(cxt, node->arg, true, depth))
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

/* x = ANY (array), x <> ALL (array) */
static bool
compile_in(CompileContext *cxt, ScalarArrayOpExpr *node, int depth)
{
	static const struct
	{
		uint16		eq,
					ne,
					in;
	}			lists[] = {
		{GJ_OP_EQ_I, GJ_OP_NE_I, GJ_OP_IN_I},
		{GJ_OP_EQ_F, GJ_OP_NE_F, GJ_OP_IN_F},
		{GJ_OP_EQ_T, GJ_OP_NE_T, GJ_OP_IN_T},
	};
	Expr	   *array = lsecond(node->args);
	const GjDeviceFunction *func;
	GjInstr		instr = {.op = GJ_NOPS, .dst = depth, .a = depth, .b = depth};
	Oid			element;

	set_sa_opfuncid(node);
	func = gj_device_function(node->opfuncid);
	element = get_base_element_type(exprType((Node *) array));
	if (func == NULL || !OidIsValid(element) || gj_value_kind(element) < 0 ||
		(func->flags & (GJ_CALL_LEFT_DATE | GJ_CALL_RIGHT_DATE)) != 0 ||
		!collation_fits(func, node->inputcollid))
		return false;
	for (int i = 0; i < lengthof(lists); i++)
		if (func->op == (node->useOr ? lists[i].eq : lists[i].ne))
			instr.op = lists[i].in;
	if (instr.op == GJ_NOPS || !compile_argument(cxt, func, linitial(node->args), 0, depth))
		return false;
	if (IsA(array, Const))
	{
		Const	   *con = (Const *) array;
		bool		has_null;
		int			n,
					nwords;
		int64	   *values;

		if (con->constisnull)
			return false;
		values = gj_array_constants(DatumGetArrayTypeP(con->constvalue), cxt->scale, &has_null,
									&n, &nwords);
		/* an empty list is FALSE even for a NULL operand */
		if (values == NULL || n == 0)
			return false;
		instr.arg = cxt->builder->nconstants;
		instr.n = n;
		instr.imm = has_null;
		for (int i = 0; i < nwords; i++)
			gj_builder_constant(cxt->builder, values[i]);
		emit(cxt, instr);
	}
	else if (IsA(array, Param) && is_known_param(cxt->builder->root, (Param *) array))
	{
		GjRuntimeConst *runtime = palloc(sizeof(GjRuntimeConst));

		/* for now, what gj_array_constants() has to know */
		instr.n = cxt->scale;
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
	int			kind;

	check_stack_depth();
	if (IsA(node, OpExpr) || IsA(node, NullIfExpr) || IsA(node, DistinctExpr))
		set_opfuncid((OpExpr *) node);
	kind = gj_value_kind(exprType((Node *) node));
	if (kind < 0)
		return false;
	if (is_runtime_constant(cxt->builder->root, node))
		return compile_constant(cxt, node, kind, depth);

	switch (nodeTag(node))
	{
		case T_Var:
		case T_PlaceHolderVar:
			return compile_column(cxt, node, false, depth);
		case T_OpExpr:
			{
				OpExpr	   *op = (OpExpr *) node;

				return compile_call(cxt, op->opfuncid, op->args, op->inputcollid, depth) ||
					compile_set_value(cxt, node, depth);
			}
		case T_FuncExpr:
			{
				FuncExpr   *func = (FuncExpr *) node;

				return compile_call(cxt, func->funcid, func->args, func->inputcollid, depth) ||
					compile_set_value(cxt, node, depth);
			}
		case T_BoolExpr:
			return compile_bool(cxt, (BoolExpr *) node, depth);
		case T_NullTest:
			return compile_null_test(cxt, (NullTest *) node, depth);
		case T_BooleanTest:
			return compile_boolean_test(cxt, (BooleanTest *) node, depth);
		case T_ScalarArrayOpExpr:
			return compile_in(cxt, (ScalarArrayOpExpr *) node, depth);
		case T_CaseExpr:
			return compile_case(cxt, (CaseExpr *) node, depth);
		case T_CaseTestExpr:
			return compile_case_value(cxt, depth);
		case T_CoalesceExpr:
			return compile_coalesce(cxt, (CoalesceExpr *) node, depth);
		case T_MinMaxExpr:
			return compile_min_max(cxt, (MinMaxExpr *) node, depth);
		case T_NullIfExpr:
			return compile_null_if(cxt, (OpExpr *) node, depth);
		case T_DistinctExpr:
			return compile_distinct(cxt, (OpExpr *) node, depth);
		case T_CollateExpr:
			return compile_node(cxt, ((CollateExpr *) node)->arg, depth);
		case T_RelabelType:
			{
				Expr	   *arg = ((RelabelType *) node)->arg;
				const GjType *from = gj_type(exprType((Node *) arg));
				const GjType *to = gj_type(exprType((Node *) node));

				/* the same bits, read in the same way */
				return from->kind == to->kind && from->reading == to->reading &&
					compile_node(cxt, arg, depth);
			}
		default:
			return false;
	}
}

/* Adds what was compiled since `first` as an expression of a type. */
static int
add_expr(CompileContext *cxt, int first, Oid typid)
{
	GjExpr		result = {0};

	result.first = first;
	result.ninstrs = cxt->builder->ninstrs - first;
	result.nregisters = cxt->nregisters;
	result.kind = gj_value_kind(typid);
	result.can_fail = cxt->can_fail;
	if (gj_type(typid)->reading == GJ_READ_DECIMAL)
		result.scale = cxt->scale;
	cxt->builder->can_fail |= cxt->can_fail;
	return gj_builder_expr(cxt->builder, &result);
}

#define COMPILE_CONTEXT(b)	{.builder = (b), .guard = -1, .case_value = -1}

int
gj_compile(GjBuilder *builder, Expr *expr)
{
	return gj_compile_filtered(builder, expr, NULL, NULL);
}

/* The value goes to register 0 and becomes NULL where `filter` is not true. */
static bool
compile_filtered(CompileContext *cxt, Expr *expr, Expr *filter)
{
	if (filter == NULL)
		return compile_node(cxt, expr, 0);
	if (!compile_node(cxt, filter, 0) ||
		!compile_under(cxt, expr, 1, 0, GJ_OP_IS_TRUE, false))
		return false;
	emit(cxt, (GjInstr) {.op = GJ_OP_ONLY_IF, .dst = 0, .a = 1, .b = 0});
	return true;
}

int
gj_compile_filtered(GjBuilder *builder, Expr *arg, Expr *filter, GjNumericInfo *numeric)
{
	CompileContext cxt = COMPILE_CONTEXT(builder);
	Expr	   *expr = arg ? arg : (Expr *) makeBoolConst(true, false);
	GjBuilderMark mark;
	int			first = builder->ninstrs;

	gj_builder_mark(builder, &mark);
	if (!compile_filtered(&cxt, expr, filter))
	{
		gj_builder_reset(builder, &mark);
		return -1;
	}
	if (numeric != NULL)
	{
		numeric->scale = cxt.scale;
		numeric->mixed = cxt.mixed;
	}
	return add_expr(&cxt, first, exprType((Node *) expr));
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

/* The function of a clause that can be a key, or NULL. */
static const GjDeviceFunction *
key_function(Expr *clause)
{
	OpExpr	   *op = (OpExpr *) clause;
	const GjDeviceFunction *func;

	if (!IsA(clause, OpExpr) || list_length(op->args) != 2)
		return NULL;
	set_opfuncid(op);
	func = gj_device_function(op->opfuncid);
	if (func == NULL || !collation_fits(func, op->inputcollid) ||
		(func->op != GJ_OP_EQ_I && func->op != GJ_OP_EQ_F && func->op != GJ_OP_EQ_T))
		return NULL;
	return func;
}

bool
gj_key_clause(Expr *clause, Expr **left, Expr **right)
{
	if (key_function(clause) == NULL)
		return false;
	*left = linitial(((OpExpr *) clause)->args);
	*right = lsecond(((OpExpr *) clause)->args);
	return true;
}

bool
gj_inequality_clause(Expr *clause, Expr **left, Expr **right, GjOp *op)
{
	OpExpr	   *node = (OpExpr *) clause;
	const GjDeviceFunction *func;

	if (!IsA(clause, OpExpr) || list_length(node->args) != 2)
		return false;
	set_opfuncid(node);
	func = gj_device_function(node->opfuncid);
	/* both bounds of a range must see the same key: no conversions that depend on them */
	if (func == NULL ||
		(func->flags & (GJ_CALL_DECIMAL | GJ_CALL_LEFT_DATE | GJ_CALL_RIGHT_DATE)) != 0)
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

bool
gj_key_is_exact(Expr *clause)
{
	const GjDeviceFunction *func = key_function(clause);

	return func != NULL && func->op != GJ_OP_EQ_T;
}

int
gj_compile_key(GjBuilder *builder, Expr *clause, Expr *side)
{
	const GjDeviceFunction *func = key_function(clause);
	List	   *args = ((OpExpr *) clause)->args;
	CompileContext cxt = COMPILE_CONTEXT(builder);
	int			which = side == linitial(args) ? 0 : 1;
	GjBuilderMark mark;
	int			scale = 0;
	int			first = builder->ninstrs;

	gj_builder_mark(builder, &mark);
	if (func->flags & GJ_CALL_DECIMAL)
	{
		/* the scale of the other side */
		if (!compile_node(&cxt, list_nth(args, 1 - which), 0))
			scale = -1;
		else
			scale = cxt.scale;
		gj_builder_reset(builder, &mark);
		cxt = (CompileContext) COMPILE_CONTEXT(builder);
	}
	if (scale < 0 || !compile_argument(&cxt, func, side, which, 0))
	{
		gj_builder_reset(builder, &mark);
		return -1;
	}
	if ((func->flags & GJ_CALL_DECIMAL) && cxt.scale < scale)
		scale_up(&cxt, 0, cxt.scale, scale);
	if (func->op == GJ_OP_EQ_T)
		emit_unary(&cxt, GJ_OP_HASH_T, 0);
	return add_expr(&cxt, first, func->op == GJ_OP_EQ_T ? INT8OID : exprType((Node *) side));
}
