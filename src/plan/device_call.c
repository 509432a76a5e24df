/*
 * device_call.c
 *	  Compiles functions and operators to device code: those of device_functions.c, by their
 *	  instruction or in a way of their own, and gpujoin's functions of two sets.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "plan/device_expr.h"
#include "plan/reasons.h"
#include "plan/set_clause.h"
#include "rows/numeric.h"

/* True if execution fills the last instruction in: what it has says nothing yet. */
static bool
last_is_runtime(const GjBuilder *builder)
{
	return builder->runtime != NIL &&
		((GjRuntimeConst *) llast(builder->runtime))->instr == builder->ninstrs - 1;
}

void
gj_scale_up(GjCompileContext *cxt, int depth, int from, int to)
{
	GjInstr    *last = &cxt->builder->instrs[cxt->builder->ninstrs - 1];
	int64		scaled;

	if (from == to)
		return;
	if (last->op == GJ_OP_CONST && last->dst == depth && !last_is_runtime(cxt->builder) &&
		gj_mul_i(last->imm, gj_power_of_10(to - from), GJ_INT8, &scaled) == GJ_OK)
	{
		last->imm = scaled;
		return;
	}
	gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_SCALE_UP, .dst = depth, .a = depth, .b = depth,
		.imm = gj_power_of_10(to - from)});
}

/* Brings the numeric in register `depth` to another scale; rounds as GjRounding says. */
static void
change_scale(GjCompileContext *cxt, int depth, int to, uint8 rounding)
{
	if (to >= cxt->scale)
		gj_scale_up(cxt, depth, cxt->scale, to);
	else
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_SCALE_DOWN, .dst = depth, .a = depth, .b = depth,
			.arg = rounding, .imm = gj_power_of_10(cxt->scale - to)});
	cxt->scale = to;
}

/* Compiles two numerics to registers depth and depth+1, at the larger scale of them. */
static bool
compile_decimals(GjCompileContext *cxt, Expr *left, Expr *right, int depth)
{
	int			scale;

	if (!gj_compile_node(cxt, left, depth))
		return false;
	scale = cxt->scale;
	if (!gj_compile_node(cxt, right, depth + 1))
		return false;
	if (cxt->scale < scale)
	{
		gj_scale_up(cxt, depth + 1, cxt->scale, scale);
		cxt->scale = scale;
	}
	else if (cxt->scale > scale)
		gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_SCALE_UP, .dst = depth, .a = depth, .b = depth,
			.imm = gj_power_of_10(cxt->scale - scale)});
	return true;
}

/*
 * Compares a numeric with one whose value is known only when execution begins, or a date with a
 * timestamp whose value is known by then.  What is known becomes an integer: the last or first one
 * on the right side of it at the other's scale, or day.
 */
static bool
compile_late_comparison(GjCompileContext *cxt, GjOp op, List *args, int late, int depth)
{
	GjBound		bound = GJ_BOUND_EXACT;

	/* a < 1.5 is a < 2, and 1.5 < a is 1 < a */
	if (op == GJ_OP_LT_I || op == GJ_OP_GE_I)
		bound = late == 1 ? GJ_BOUND_CEIL : GJ_BOUND_FLOOR;
	else if (op == GJ_OP_LE_I || op == GJ_OP_GT_I)
		bound = late == 1 ? GJ_BOUND_FLOOR : GJ_BOUND_CEIL;
	return gj_compile_node(cxt, list_nth(args, 1 - late), depth + 1 - late) &&
		gj_compile_bound(cxt, list_nth(args, late), bound, depth + late);
}

/* Which argument of a comparison compile_late_comparison() makes an integer; -1: none. */
static int
late_argument(GjCompileContext *cxt, const GjDeviceFunction *func, List *args)
{
	if ((func->flags & GJ_CALL_FAILS) != 0)
		return -1;
	if ((func->flags & GJ_CALL_LEFT_DATE) != 0)
		return gj_is_known_timestamp(cxt, lsecond(args)) ? 1 : -1;
	if ((func->flags & GJ_CALL_RIGHT_DATE) != 0)
		return gj_is_known_timestamp(cxt, linitial(args)) ? 0 : -1;
	for (int i = 0; (func->flags & GJ_CALL_DECIMAL) != 0 && i < 2; i++)
		if (gj_is_late_numeric(cxt, list_nth(args, i)))
			return i;
	return -1;
}

/* True if statistics say that an average array is too long to be carried. */
static bool
is_long_array(GjCompileContext *cxt, Expr *node)
{
	VariableStatData stats;
	bool		result = false;

	examine_variable(cxt->builder->root, (Node *) node, 0, &stats);
	if (HeapTupleIsValid(stats.statsTuple))
		result = ((Form_pg_statistic) GETSTRUCT(stats.statsTuple))->stawidth > GJ_MAX_CARRIED / 2;
	ReleaseVariableStats(stats);
	return result;
}

/* Loads a column of integer arrays, for whatever compares it as a whole. */
static bool
compile_array(GjCompileContext *cxt, Expr *node, int depth)
{
	GjInstr		instr = {.op = GJ_OP_LOAD_T, .dst = depth, .n = GJ_BYTES_ARRAY};
	int			source,
				index;
	Oid			typid;

	while (IsA(node, RelabelType))
		node = ((RelabelType *) node)->arg;
	typid = getBaseType(exprType((Node *) node));
	if ((typid != INT2ARRAYOID && typid != INT4ARRAYOID && typid != INT8ARRAYOID) ||
		(!IsA(node, Var) && !IsA(node, PlaceHolderVar)) || is_long_array(cxt, node) ||
		!gj_builder_column(cxt->builder, node, &source, &index) || !gj_use_register(cxt, depth))
		return false;
	instr.arg = source << 16 | index;
	if (cxt->guard >= 0)
	{
		instr.a = cxt->guard;
		instr.imm = 1;
	}
	cxt->can_fail = true;
	gj_emit(cxt, instr);
	return true;
}

bool
gj_compile_argument(GjCompileContext *cxt, const GjDeviceFunction *func, Expr *node, int which, int depth)
{
	if (func->flags & GJ_CALL_ARRAYS)
		return compile_array(cxt, node, depth);
	if (!gj_compile_node(cxt, node, depth))
		return false;
	if ((func->flags & GJ_CALL_PADDED) && gj_value_kind(exprType((Node *) node)) == GJ_TEXT)
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_TRIM, .dst = depth, .a = depth, .b = depth,
			.arg = GJ_TRIM_RIGHT});
	if (func->flags & (which == 0 ? GJ_CALL_LEFT_DATE : GJ_CALL_RIGHT_DATE))
		gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_DATE_TO_TIMESTAMP, .dst = depth, .a = depth, .b = depth});
	return true;
}

/* True if the device knows the encoding of the database: single bytes, or UTF-8. */
static bool
knows_characters(void)
{
	return pg_database_encoding_max_length() == 1 || GetDatabaseEncoding() == PG_UTF8;
}

bool
gj_collation_fits(const GjDeviceFunction *func, Oid collation)
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
compile_extract(GjCompileContext *cxt, const GjDeviceFunction *func, List *args, int depth)
{
	int			field = const_field(linitial(args));
	bool		date = func->funcid == F_EXTRACT_TEXT_DATE;

	if (field < 0 || field == GJ_FIELD_WEEK || (date && field < GJ_FIELD_DAY) ||
		/* in floats, it is computed in a way of its own */
		(func->funcid == F_DATE_PART_TEXT_TIMESTAMP && field == GJ_FIELD_SECOND) ||
		!gj_compile_node(cxt, lsecond(args), depth))
		return false;
	gj_emit_fallible(cxt, (GjInstr) {.op = date ? GJ_OP_EXTRACT_DATE : GJ_OP_EXTRACT_TIMESTAMP,
		.dst = depth, .a = depth, .b = depth, .arg = field});
	cxt->scale = field == GJ_FIELD_SECOND ? 6 : 0;
	if (func->funcid == F_DATE_PART_TEXT_TIMESTAMP)
		gj_emit_unary(cxt, GJ_OP_I_TO_F, depth);
	return true;
}

static bool
compile_date_trunc(GjCompileContext *cxt, List *args, int depth)
{
	int			field = const_field(linitial(args));

	if (field < 0 || field > GJ_FIELD_YEAR || !gj_compile_node(cxt, lsecond(args), depth))
		return false;
	gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_TRUNC_TIMESTAMP, .dst = depth, .a = depth, .b = depth,
		.arg = field});
	return true;
}

/* date or timestamp, plus or minus a constant interval */
static bool
compile_add_interval(GjCompileContext *cxt, const GjDeviceFunction *func, List *args, int depth)
{
	Const	   *con = lsecond(args);
	bool		minus = func->funcid == F_DATE_MI_INTERVAL || func->funcid == F_TIMESTAMP_MI_INTERVAL;
	Interval   *span;
	int			at;

	if (!IsA(con, Const) || con->constisnull || !gj_compile_node(cxt, linitial(args), depth))
		return false;
	span = DatumGetIntervalP(con->constvalue);
	/* endless ones, too, which 17 has */
	if (span->time == PG_INT64_MIN || span->time == PG_INT64_MAX)
		return false;
	if (func->funcid == F_DATE_PL_INTERVAL || func->funcid == F_DATE_MI_INTERVAL)
		gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_DATE_TO_TIMESTAMP, .dst = depth, .a = depth, .b = depth});
	at = gj_builder_constant(cxt->builder, minus ? -(int64) span->month : span->month);
	gj_builder_constant(cxt->builder, minus ? -(int64) span->day : span->day);
	gj_builder_constant(cxt->builder, minus ? -span->time : span->time);
	gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_ADD_INTERVAL, .dst = depth, .a = depth, .b = depth, .arg = at});
	return true;
}

static bool
compile_substr(GjCompileContext *cxt, const GjDeviceFunction *func, List *args, int depth)
{
	for (int i = 0; i < func->nargs; i++)
		if (!gj_compile_node(cxt, list_nth(args, i), depth + i))
			return false;
	gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_SUBSTR, .dst = depth, .a = depth, .b = depth + 1,
		.arg = call_argument(func), .n = func->nargs == 3});
	return true;
}

/* right(): what it makes of the least number is not the same in all versions */
static bool
compile_right(GjCompileContext *cxt, const GjDeviceFunction *func, List *args, int depth)
{
	GjInstr		instr = {.op = GJ_OP_RIGHT_T,.dst = depth,.a = depth,.b = depth + 1,
	.arg = call_argument(func)};
	int			nchars;

	if (!gj_compile_node(cxt, linitial(args), depth) ||
		!gj_compile_node(cxt, lsecond(args), depth + 1))
		return false;
	if (const_int4(lsecond(args), &nchars) && nchars > PG_INT32_MIN)
		gj_emit(cxt, instr);
	else
		gj_emit_fallible(cxt, instr);
	return true;
}

/* numeric to numeric(p, s) */
static bool
compile_numeric_cast(GjCompileContext *cxt, List *args, int depth)
{
	int			typmod,
				scale,
				precision;

	if (!const_int4(lsecond(args), &typmod) || !gj_compile_node(cxt, linitial(args), depth))
		return false;
	scale = gj_numeric_scale(NUMERICOID, typmod);
	precision = ((typmod - VARHDRSZ) >> 16) & 0xFFFF;
	if (scale < 0)
		return false;
	change_scale(cxt, depth, scale, GJ_ROUND_HALF_AWAY);
	if (precision <= GJ_MAX_SCALE)
		gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_DIGITS_D, .dst = depth, .a = depth, .b = depth,
			.imm = gj_power_of_10(precision)});
	return true;
}

/* round(numeric, n), trunc(numeric, n), floor, ceil */
static bool
compile_rounding(GjCompileContext *cxt, const GjDeviceFunction *func, List *args, int depth)
{
	int			scale = 0;

	if ((func->nargs == 2 && !const_int4(lsecond(args), &scale)) ||
		scale < 0 || scale > GJ_MAX_SCALE || !gj_compile_node(cxt, linitial(args), depth))
		return false;
	change_scale(cxt, depth, scale, func->arg);
	return true;
}

static bool
compile_numeric_mul(GjCompileContext *cxt, List *args, int depth)
{
	int			scale;

	if (!gj_compile_node(cxt, linitial(args), depth))
		return false;
	scale = cxt->scale;
	if (!gj_compile_node(cxt, lsecond(args), depth + 1))
		return false;
	cxt->scale += scale;
	gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_MUL_I, .dst = depth, .a = depth, .b = depth + 1, .arg = GJ_INT8});
	return cxt->scale <= GJ_MAX_SCALE;
}

/* Functions that need more than an instruction. */
static bool
compile_special(GjCompileContext *cxt, const GjDeviceFunction *func, List *args, int depth)
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
		case F_RIGHT:
			return compile_right(cxt, func, args, depth);
		case F_DATE_MII:
			if (!gj_compile_node(cxt, linitial(args), depth) || !gj_compile_node(cxt, lsecond(args), depth + 1))
				return false;
			gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_NEG_I, .dst = depth + 1, .a = depth + 1, .b = depth + 1,
				.arg = GJ_INT8});
			gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_DATE_ADD, .dst = depth, .a = depth, .b = depth + 1});
			return true;
	}
	/* the rest has one argument */
	if (!gj_compile_node(cxt, linitial(args), depth))
		return false;
	switch (func->funcid)
	{
		case F_NUMERIC_INT2:
		case F_NUMERIC_INT4:
		case F_NUMERIC_INT8:
			cxt->scale = 0;
			return true;
		case F_SIGN_NUMERIC:
			gj_emit_unary(cxt, GJ_OP_SIGN_I, depth);
			cxt->scale = 0;
			return true;
		case F_INT2_NUMERIC:
		case F_INT4_NUMERIC:
		case F_INT8_NUMERIC:
			change_scale(cxt, depth, 0, GJ_ROUND_HALF_AWAY);
			gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_RANGE_I, .dst = depth, .a = depth, .b = depth,
				.arg = func->arg});
			return true;
		case F_FLOAT8_NUMERIC:
			gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_D_TO_F, .dst = depth, .a = depth, .b = depth,
				.imm = gj_power_of_10(cxt->scale)});
			return true;
		default:
			return false;
	}
}

bool
gj_compile_set_value(GjCompileContext *cxt, Expr *expr, int depth)
{
	GjSetValue	value;
	bool		is_count;

	if (!gj_set_value(cxt->builder, expr, &value) || !gj_use_register(cxt, depth + 2))
		return false;
	is_count = value.predicate == GJ_SETS_OVERLAP;
	gj_emit(cxt, (GjInstr) {.op = GJ_OP_LOAD_PAIR, .dst = depth, .arg = value.step << 16});
	if (is_count && !value.is_condition)
		return true;
	if (is_count)
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_CONST, .dst = depth + 1, .imm = 1});
	else
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_LOAD_PAIR, .dst = depth + 1,
			.arg = value.step << 16 | (value.is_condition ? value.contained : 1)});
	if (value.is_condition)
		gj_emit(cxt, (GjInstr) {.op = is_count ? GJ_OP_GE_I : GJ_OP_EQ_I, .dst = depth, .a = depth, .b = depth + 1});
	else
	{
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_LOAD_PAIR, .dst = depth + 2, .arg = value.step << 16 | 2});
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_SIMILARITY, .dst = depth, .a = depth, .b = depth + 1,
			.arg = value.predicate});
	}
	return true;
}

bool
gj_compile_call(GjCompileContext *cxt, Oid funcid, List *args, Oid collation, int depth)
{
	const GjDeviceFunction *func = gj_device_function(funcid);
	GjInstr		instr = {.dst = depth, .a = depth, .b = depth};
	int			late;

	if (func == NULL || list_length(args) != func->nargs)
		return gj_refuse("function %s is not supported", gj_function_name(funcid));
	if (!gj_collation_fits(func, collation))
		return gj_refuse("function %s is not supported with this collation or encoding", gj_function_name(funcid));
	if (func->op == GJ_NOPS)
		return compile_special(cxt, func, args, depth) ||
			gj_refuse_else("function %s is not supported with these arguments", gj_function_name(funcid));
	if ((late = late_argument(cxt, func, args)) >= 0)
	{
		if (!compile_late_comparison(cxt, func->op, args, late, depth))
			return false;
	}
	else if ((func->flags & GJ_CALL_DECIMAL) != 0)
	{
		if (!compile_decimals(cxt, linitial(args), lsecond(args), depth))
			return false;
	}
	else if (!gj_compile_argument(cxt, func, linitial(args), 0, depth) ||
			 (func->nargs == 2 && !gj_compile_argument(cxt, func, lsecond(args), 1, depth + 1)))
		return false;
	instr.op = func->op;
	instr.b = func->nargs == 2 ? depth + 1 : depth;
	instr.arg = call_argument(func);
	if (func->flags & GJ_CALL_FAILS)
		gj_emit_fallible(cxt, instr);
	else
		gj_emit(cxt, instr);
	if (func->flags & GJ_CALL_FLOAT4)
		gj_emit_fallible(cxt, (GjInstr) {.op = GJ_OP_F_TO_F4, .dst = depth, .a = depth, .b = depth});
	if (func->flags & GJ_CALL_NOT)
		gj_emit_unary(cxt, GJ_OP_NOT, depth);
	return true;
}
