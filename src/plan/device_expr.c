/*
 * device_expr.c
 *	  Compiles PostgreSQL's expressions to device code.
 *
 * What the device knows is a list of immutable built-in functions, named by OID
 * (device_functions.c), on types that a register can hold (types.c).  Anything else makes
 * gj_compile() say no, and the caller leaves that expression to PostgreSQL.
 *
 * This file compiles nodes of a kind each, columns, constants and lists; device_call.c and
 * device_condition.c the others; device_key.c clauses of joins.  See device_expr.h.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "plan/device_expr.h"
#include "plan/join_path.h"
#include "plan/make_expr.h"
#include "plan/reasons.h"
#include "plan/safety.h"
#include "plan/uuid.h"
#include "rows/text.h"

/* see is_short_text() */
#define MAX_SHORT_TEXT	120
#define MAX_SHORT_TEXTS	5

bool
gj_use_register(GjCompileContext *cxt, int depth)
{
	if (depth >= GJ_MAX_REGISTERS)
		return gj_refuse("an expression is nested too deep");
	cxt->nregisters = Max(cxt->nregisters, depth + 1);
	return true;
}

int
gj_emit(GjCompileContext *cxt, GjInstr instr)
{
	return gj_builder_instr(cxt->builder, &instr);
}

void
gj_emit_unary(GjCompileContext *cxt, uint16 op, int depth)
{
	gj_emit(cxt, (GjInstr) {.op = op, .dst = depth, .a = depth, .b = depth});
}

void
gj_emit_fallible(GjCompileContext *cxt, GjInstr instr)
{
	if (cxt->guard >= 0)
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_ONLY_IF, .dst = instr.a, .a = instr.a, .b = cxt->guard});
	gj_emit(cxt, instr);
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

/* A query and those around it. */
static const GjAround *
queries_from(const PlannerInfo *root)
{
	GjAround   *around;

	if (root == NULL)
		return NULL;
	around = palloc(sizeof(GjAround));
	around->query = root->parse;
	around->outer = queries_from(root->parent_root);
	return around;
}

/* True if a scalar subquery cannot have more than one row. */
static bool
has_one_row(const Query *query)
{
	return query->hasAggs && query->groupClause == NIL && query->groupingSets == NIL &&
		query->setOperations == NULL && !query->hasTargetSRFs;
}

static bool
is_safe_initplan(const SubPlan *plan, const PlannerInfo *subroot)
{
	return (plan->subLinkType == EXISTS_SUBLINK ||
			(plan->subLinkType == EXPR_SUBLINK && has_one_row(subroot->parse))) &&
		!gj_can_fail((Node *) subroot->parse, queries_from(subroot->parent_root));
}

/*
 * True if a parameter has its value when execution begins, or gets it by being asked for: then
 * an initplan runs, as it does before a Gather, whether there are rows that want it or not.  One
 * with volatile functions is left to PostgreSQL, which may not run it; and so is one that can fail
 * in a branch of a CASE or the like, which may be there to keep it from running.
 */
static bool
is_known_param(GjCompileContext *cxt, Param *param)
{
	PlannerInfo *root = cxt->builder->root;
	ListCell   *lc;

	if (param->paramkind == PARAM_EXTERN)
		return true;
	if (param->paramkind != PARAM_EXEC)
		return false;
	for (; root != NULL; root = root->parent_root)
		foreach(lc, root->init_plans)
		{
			SubPlan    *plan = lfirst_node(SubPlan, lc);

			if (list_member_int(plan->setParam, param->paramid))
			{
				PlannerInfo *subroot = list_nth(root->glob->subroots, plan->plan_id - 1);

				return (!cxt->sometimes || is_safe_initplan(plan, subroot)) &&
					!gj_is_volatile((Node *) subroot->parse);
			}
		}
	return true;
}

bool
gj_is_initplan_param(PlannerInfo *root, Param *param)
{
	ListCell   *lc;

	for (; root != NULL; root = root->parent_root)
		foreach(lc, root->init_plans)
			if (list_member_int(lfirst_node(SubPlan, lc)->setParam, param->paramid))
				return true;
	return false;
}

/*
 * True for an expression without columns whose value execution can compute beforehand
 * without a risk of raising an error that PostgreSQL would not raise (it might never
 * evaluate the expression, for want of rows).
 */
static bool
is_runtime_constant(GjCompileContext *cxt, Expr *node)
{
	if (IsA(node, RelabelType))
		return is_runtime_constant(cxt, ((RelabelType *) node)->arg);
	if (IsA(node, Param))
		return is_known_param(cxt, (Param *) node);
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
					is_runtime_constant(cxt, linitial(func->args));
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
				/* only 131 072 digits are too many for these */
			case F_NUMERIC_ADD:
			case F_NUMERIC_SUB:
			case F_NUMERIC_MUL:
				return is_runtime_constant(cxt, linitial(op->args)) &&
					is_runtime_constant(cxt, lsecond(op->args));
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
					is_runtime_constant(cxt, linitial(op->args));
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
compile_const(GjCompileContext *cxt, Const *con, int kind, int depth)
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
				return gj_refuse("a constant text of %zu bytes", n);
			instr.n = n;
			instr.arg = add_bytes(cxt->builder, bytes, n);
		}
	}
	else if (con->constisnull)
		cxt->scale = 0;
	else if (gj_type(con->consttype)->reading == GJ_READ_DECIMAL)
	{
		if (!gj_numeric_value(con->constvalue, &cxt->scale, &instr.imm))
			return gj_refuse("a constant numeric of more than 18 digits");
	}
	else
		instr.imm = gj_register_value(con->consttype, con->constvalue);
	gj_emit(cxt, instr);
	return true;
}

/* An instruction that gets the value of `node` when execution begins. */
static void
emit_runtime(GjCompileContext *cxt, Expr *node, GjInstr instr)
{
	GjRuntimeConst *runtime = palloc(sizeof(GjRuntimeConst));

	runtime->expr = node;
	runtime->instr = gj_emit(cxt, instr);
	cxt->builder->runtime = lappend(cxt->builder->runtime, runtime);
}

bool
gj_is_late_numeric(GjCompileContext *cxt, Expr *node)
{
	return !IsA(node, Const) && gj_type(exprType((Node *) node))->reading == GJ_READ_DECIMAL &&
		is_runtime_constant(cxt, node);
}

bool
gj_is_known_timestamp(GjCompileContext *cxt, Expr *node)
{
	return getBaseType(exprType((Node *) node)) == TIMESTAMPOID && is_runtime_constant(cxt, node);
}

bool
gj_compile_bound(GjCompileContext *cxt, Expr *node, GjBound bound, int depth)
{
	bool		decimal = gj_type(exprType((Node *) node))->reading == GJ_READ_DECIMAL;
	Const	   *con = (Const *) node;

	if (!gj_use_register(cxt, depth))
		return false;
	if (IsA(node, Const) && !decimal)
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_CONST, .dst = depth, .n = con->constisnull,
			.imm = con->constisnull ? 0 : gj_date_bound(DatumGetTimestamp(con->constvalue), bound)});
	else
		/* until execution begins: what gj_numeric_bound() or gj_date_bound() has to know */
		emit_runtime(cxt, node, (GjInstr) {.op = GJ_OP_CONST, .dst = depth,
			.arg = decimal ? cxt->scale : GJ_BOUND_OF_DATE, .n = bound});
	return true;
}

static bool
compile_constant(GjCompileContext *cxt, Expr *node, int kind, int depth)
{
	if (!gj_use_register(cxt, depth))
		return false;
	if (IsA(node, Const))
		return compile_const(cxt, (Const *) node, kind, depth);
	/* its scale shows only at execution */
	if (gj_type(exprType((Node *) node))->reading == GJ_READ_DECIMAL)
		return gj_refuse("a numeric that is known only at execution is supported in comparisons only");
	emit_runtime(cxt, node, (GjInstr) {.op = kind == GJ_TEXT ? GJ_OP_CONST_T : GJ_OP_CONST, .dst = depth});
	return true;
}

/*
 * True if all texts of a column are sure to fit a slot once they are flattened: those of
 * the most tuples that a page can have, of up to MAX_SHORT_TEXTS columns of a source
 * (column_writer.c sets GJ_LOAD_SLOT_SIZE / 8 aside for them).
 */
static bool
is_short_text(GjCompileContext *cxt, Expr *node, int source)
{
	int32		length = type_maximum_size(getBaseType(exprType((Node *) node)),
										   exprTypmod((Node *) node));
	int			ntexts = 0;

	for (int i = 0; i < cxt->builder->ninstrs; i++)
		ntexts += cxt->builder->instrs[i].op == GJ_OP_LOAD_T &&
			cxt->builder->instrs[i].arg >> 16 == source;
	return length > 0 && length <= MAX_SHORT_TEXT && ntexts < MAX_SHORT_TEXTS;
}

bool
gj_compile_column(GjCompileContext *cxt, Expr *node, bool is_null_test, int depth)
{
	const GjType *type = gj_type(exprType((Node *) node));
	GjInstr		instr = {.op = GJ_OP_LOAD, .dst = depth};
	int			source,
				index,
				scale;

	if (gj_is_stage_column(cxt->builder, node))
	{
		/* made of columns of the stage's result, or one of them */
		Expr	   *expr = gj_stage_expr(cxt->builder, (Var *) node);
		Expr	   *half = expr != NULL && is_null_test ? gj_half_of_uuid(expr, 0) : NULL;

		if (expr == NULL)
			return false;
		if (half != NULL)
			expr = half;
		if (!IsA(expr, Var))
		{
			if (!gj_compile_node(cxt, expr, depth))
				return false;
			if (is_null_test)
				gj_emit_unary(cxt, GJ_OP_IS_NULL, depth);
			return true;
		}
		node = expr;
	}
	if (!gj_builder_column(cxt->builder, node, &source, &index))
		return gj_refuse("%s is not read from a table", gj_expr_text(cxt->builder->root, (Node *) node));
	if (!gj_use_register(cxt, depth))
		return false;
	instr.arg = source << 16 | index;
	scale = gj_builder_column_at(cxt->builder, source, index)->scale;
	if (is_null_test)
		instr.op = GJ_OP_LOAD_IS_NULL;
	else if (scale >= 0)
		cxt->scale = scale;
	else if (type->reading == GJ_READ_DECIMAL)
	{
		cxt->scale = gj_numeric_scale(exprType((Node *) node), exprTypmod((Node *) node));
		if (cxt->scale < 0)
			return gj_refuse("%s is numeric without precision and scale, or with more than 18 digits",
							 gj_expr_text(cxt->builder->root, (Node *) node));
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
	/* NaN, a number that is no numeric(p, s), a text that is too long: PostgreSQL's */
	cxt->can_fail |= instr.op == GJ_OP_LOAD_D ||
		(instr.op == GJ_OP_LOAD && scale >= 0 && cxt->builder->source[source].stage == NULL) ||
		(instr.op == GJ_OP_LOAD_T && instr.n == GJ_BYTES_VARLENA && !is_short_text(cxt, node, source));
	gj_emit(cxt, instr);
	return true;
}

/* x = ANY (array), x <> ALL (array) */
static bool
compile_in(GjCompileContext *cxt, ScalarArrayOpExpr *node, int depth)
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
		!gj_collation_fits(func, node->inputcollid))
		return gj_refuse("IN, ANY or ALL with function %s is not supported", gj_function_name(node->opfuncid));
	for (int i = 0; i < lengthof(lists); i++)
		if (func->op == (node->useOr ? lists[i].eq : lists[i].ne))
			instr.op = lists[i].in;
	if (instr.op == GJ_NOPS || !gj_compile_argument(cxt, func, linitial(node->args), 0, depth))
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
		gj_emit(cxt, instr);
	}
	else if (IsA(array, Param) && is_known_param(cxt, (Param *) array))
	{
		/* until execution begins: what gj_array_constants() has to know */
		instr.n = cxt->scale;
		emit_runtime(cxt, array, instr);
	}
	else
		return false;
	if (!node->useOr)
		gj_emit(cxt, (GjInstr) {.op = GJ_OP_NOT, .dst = depth, .a = depth, .b = depth});
	return true;
}

/* True if values of two types are the same bits, read in the same way. */
static bool
same_bits(Oid one, Oid other)
{
	const GjType *x = gj_type(one);
	const GjType *y = gj_type(other);

	return one == other || (x->kind == y->kind && x->reading == y->reading);
}

bool
gj_compile_node(GjCompileContext *cxt, Expr *node, int depth)
{
	int			kind;

	check_stack_depth();
	if (IsA(node, OpExpr) || IsA(node, NullIfExpr) || IsA(node, DistinctExpr))
		set_opfuncid((OpExpr *) node);
	kind = gj_value_kind(exprType((Node *) node));
	if (kind < 0)
		return gj_refuse("type %s is not supported", gj_type_name(exprType((Node *) node)));
	if (is_runtime_constant(cxt, node))
		return compile_constant(cxt, node, kind, depth);

	switch (nodeTag(node))
	{
		case T_Var:
		case T_PlaceHolderVar:
			return gj_compile_column(cxt, node, false, depth);
		case T_OpExpr:
			{
				OpExpr	   *op = (OpExpr *) node;

				return gj_compile_average(cxt, op, depth) || gj_compile_uuid_equal(cxt, op, depth) ||
					gj_compile_call(cxt, op->opfuncid, op->args, op->inputcollid, depth) ||
					gj_compile_set_value(cxt, node, depth);
			}
		case T_FuncExpr:
			{
				FuncExpr   *func = (FuncExpr *) node;

				/* a cast of int2 to oid calls int4(int2), and -1 becomes 4294967295 */
				if (!same_bits(get_func_rettype(func->funcid), func->funcresulttype))
					return gj_refuse("function %s is not supported with a result of type %s", gj_function_name(func->funcid), format_type_be(func->funcresulttype));
				return gj_compile_call(cxt, func->funcid, func->args, func->inputcollid, depth) ||
					gj_compile_set_value(cxt, node, depth);
			}
		case T_BoolExpr:
			return gj_compile_bool(cxt, (BoolExpr *) node, depth);
		case T_NullTest:
			return gj_compile_null_test(cxt, (NullTest *) node, depth);
		case T_BooleanTest:
			return gj_compile_boolean_test(cxt, (BooleanTest *) node, depth);
		case T_ScalarArrayOpExpr:
			return compile_in(cxt, (ScalarArrayOpExpr *) node, depth);
		case T_CaseExpr:
			return gj_compile_case(cxt, (CaseExpr *) node, depth);
		case T_CaseTestExpr:
			return gj_compile_case_value(cxt, depth);
		case T_CoalesceExpr:
			return gj_compile_coalesce(cxt, (CoalesceExpr *) node, depth);
		case T_MinMaxExpr:
			return gj_compile_min_max(cxt, (MinMaxExpr *) node, depth);
		case T_NullIfExpr:
			return gj_compile_null_if(cxt, (OpExpr *) node, depth);
		case T_DistinctExpr:
			return gj_compile_distinct(cxt, (OpExpr *) node, depth);
		case T_CollateExpr:
			return gj_compile_node(cxt, ((CollateExpr *) node)->arg, depth);
		case T_RelabelType:
			{
				Expr	   *arg = ((RelabelType *) node)->arg;

				return same_bits(exprType((Node *) arg), exprType((Node *) node)) &&
					gj_compile_node(cxt, arg, depth);
			}
		case T_SubPlan:
		case T_AlternativeSubPlan:
			return gj_refuse("subqueries in expressions are not supported");
		default:
			return gj_refuse("expression %s is not supported", gj_expr_text(cxt->builder->root, (Node *) node));
	}
}

int
gj_add_compiled(GjCompileContext *cxt, int first, Oid typid)
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

int
gj_compile(GjBuilder *builder, Expr *expr)
{
	return gj_compile_filtered(builder, expr, NULL, NULL);
}

/* The value goes to register 0 and becomes NULL where `filter` is not true. */
static bool
compile_filtered(GjCompileContext *cxt, Expr *expr, Expr *filter)
{
	if (filter == NULL)
		return gj_compile_node(cxt, expr, 0);
	if (!gj_compile_node(cxt, filter, 0) ||
		!gj_compile_under(cxt, expr, 1, 0, GJ_OP_IS_TRUE, false))
		return false;
	gj_emit(cxt, (GjInstr) {.op = GJ_OP_ONLY_IF, .dst = 0, .a = 1, .b = 0});
	return true;
}

int
gj_compile_filtered(GjBuilder *builder, Expr *arg, Expr *filter, GjNumericInfo *numeric)
{
	GjCompileContext cxt = GJ_COMPILE_CONTEXT(builder);
	Expr	   *expr = arg ? arg : (Expr *) makeBoolConst(true, false);
	GjBuilderMark mark;
	int			first = builder->ninstrs;

	gj_swap_obstacle(NULL);
	gj_builder_mark(builder, &mark);
	if (!compile_filtered(&cxt, expr, filter))
	{
		gj_refuse_else("expression %s is not supported", gj_expr_text(builder->root, (Node *) expr));
		gj_builder_reset(builder, &mark);
		return -1;
	}
	if (numeric != NULL)
	{
		/* a condition may have left the scale of what it compares */
		bool		decimal = gj_type(exprType((Node *) expr))->reading == GJ_READ_DECIMAL;

		numeric->scale = decimal ? cxt.scale : 0;
		numeric->mixed = decimal && cxt.mixed;
	}
	return gj_add_compiled(&cxt, first, exprType((Node *) expr));
}

int
gj_compile_by(GjBuilder *builder, Expr *expr, GjCompiler compile, int arg)
{
	GjCompileContext cxt = GJ_COMPILE_CONTEXT(builder);
	GjBuilderMark mark;
	int			first = builder->ninstrs;

	gj_swap_obstacle(NULL);
	gj_builder_mark(builder, &mark);
	if (!compile(&cxt, expr, arg))
	{
		gj_refuse_else("expression %s is not supported", gj_expr_text(builder->root, (Node *) expr));
		gj_builder_reset(builder, &mark);
		return -1;
	}
	return gj_add_compiled(&cxt, first, INT8OID);
}

static bool
compile_word(GjCompileContext *cxt, Expr *expr, int unused)
{
	if (!gj_compile_node(cxt, expr, 0))
		return false;
	gj_emit(cxt, (GjInstr) {.op = GJ_OP_WORD_T});
	return true;
}

int
gj_compile_word(GjBuilder *builder, Expr *expr)
{
	return gj_compile_by(builder, expr, compile_word, 0);
}

bool
gj_compile_source_filter(GjBuilder *builder, int s, int *filter)
{
	GjBuildSource *source = &builder->source[s];
	List	   *clauses = source->filter_clauses;

	*filter = -1;
	if (source->stage != NULL && source->stage->info->host_quals != NIL)
	{
		Expr	   *condition = gj_stage_having(builder, s);

		if (condition == NULL)
			return false;
		/* a group that HAVING leaves out is not there: nothing else fails for it */
		if (clauses != NIL)
			condition = gj_make_case(list_make1(gj_make_when(condition, make_ands_explicit(clauses))),
									 (Expr *) makeBoolConst(false, false));
		clauses = list_make1(condition);
	}
	if (clauses == NIL)
		return true;
	*filter = gj_compile(builder, make_ands_explicit(clauses));
	return *filter >= 0;
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
