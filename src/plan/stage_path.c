/*
 * stage_path.c
 *	  Subqueries whose groups or aggregates are the rows of a source: stages.
 *
 * When PostgreSQL has planned a subquery, its upper relation of groups remembers the program that
 * makes them (gj_stage_note).  The query around it can then read the result where gpujoind has it,
 * instead of having all groups returned and loaded again.  A column of the subquery is an
 * expression over group keys and aggregates.  These are the columns of the source; the expression
 * is compiled where the device needs it, and computed by PostgreSQL for rows that are returned.
 * HAVING becomes a part of the source's filter.
 *
 * The stage becomes a GpuJoin node of its own below the one that reads it, without a fallback: the
 * fallback of the whole is PostgreSQL's plan of the whole.
 */
#include "postgres.h"

#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "compat.h"
#include "guc.h"
#include "plan/device_expr.h"
#include "plan/join_path.h"
#include "plan/make_expr.h"
#include "plan/reasons.h"
#include "plan/safety.h"
#include "plan/unnest.h"
#include "plan/uuid.h"

#define STAGE_MAGIC			0x474a5354

/* Bytes of a program beside those of its stage columns, when it becomes a stage. */
#define STAGE_PROGRAM_BYTES	(GJ_MAX_STAGE_COLUMNS * sizeof(GjStageColumn) + 64)

/* True if the query's result is its groups or aggregates, or its distinct rows, all of them. */
static bool
is_stage_query(const Query *parse)
{
	return parse->commandType == CMD_SELECT && parse->setOperations == NULL &&
		parse->limitCount == NULL && parse->limitOffset == NULL && parse->rowMarks == NIL &&
		parse->windowClause == NIL && !parse->hasWindowFuncs && !parse->hasTargetSRFs &&
		!parse->hasDistinctOn && !parse->hasModifyingCTE && parse->groupingSets == NIL &&
		(parse->distinctClause == NIL || (parse->groupClause == NIL && !parse->hasAggs));
}

void
gj_stage_note(PlannerInfo *root, RelOptInfo *rel, const GjPath *path)
{
	GjStage    *stage;

	if (root->parent_root == NULL || rel->fdw_private != NULL || rel->fdwroutine != NULL ||
		!is_stage_query(root->parse) || path->info->limit > 0)
		return;
	stage = palloc(sizeof(GjStage));
	stage->magic = STAGE_MAGIC;
	stage->root = root;
	stage->rel = rel;
	stage->info = path->info;
	/* all groups are there before the first one is returned */
	stage->cost = path->startup;
	rel->fdw_private = stage;
}

/* The stage that a subquery's rows can be the result of; NULL: there is none. */
static GjStage *
stage_of(const RelOptInfo *rel)
{
	static const UpperRelationKind kinds[] = {UPPERREL_DISTINCT, UPPERREL_GROUP_AGG};

	if (rel->rtekind != RTE_SUBQUERY || rel->subroot == NULL)
		return NULL;
	for (int i = 0; i < lengthof(kinds); i++)
	{
		List	   *rels = rel->subroot->upper_rels[kinds[i]];
		GjStage    *stage = rels != NIL ? linitial_node(RelOptInfo, rels)->fdw_private : NULL;

		if (rels != NIL)
			return stage != NULL && stage->magic == STAGE_MAGIC && stage->root == rel->subroot ?
				stage : NULL;
	}
	return NULL;
}

/* ---- columns */

/*
 * Columns of the result are Vars of the subquery's relation, with attribute numbers that it does
 * not have: two for each key and aggregate, and one for all.
 */
#define COLUMN_TRUE			2000	/* GJ_STAGE_TRUE */
#define FIRST_COLUMN		2001
#define COLUMN_OF(output, which)	(FIRST_COLUMN + 2 * (output) + (which))

bool
gj_is_result_column(const Var *column)
{
	return column->varattno >= COLUMN_TRUE;
}

bool
gj_is_stage_column(const GjBuilder *builder, const void *column)
{
	return gj_builder_stage_of(builder, column) >= 0 && !gj_is_result_column(column);
}

/* Number of the first state of aggregate `which`. */
static int
first_state(const GjJoinInfo *info, int which)
{
	int			state = 0;

	for (int i = 0; i < which; i++)
		state += gj_final_states(gj_final_kind(list_nth_int(info->agg_finals, i)));
	return state;
}

/* How a group key becomes a column.  False: it cannot. */
static bool
describe_key(const GjJoinInfo *info, int which, GjBuildColumn *column)
{
	const GjGroupKey *key = list_nth(info->builder->group_keys, which);

	column->stage.value = GJ_STAGE_KEY;
	column->stage.from = which;
	if (gj_type(column->typid)->reading == GJ_READ_DECIMAL)
	{
		column->scale = info->builder->exprs[key->index].scale;
		column->type = gj_column_type(INT8OID);
	}
	return key->how == GJ_GROUP_INTEGER ? column->type.kind <= GJ_UINT1 :
		key->how == GJ_GROUP_FLOAT ? column->type.kind == GJ_FLOAT8 :
		key->how == GJ_GROUP_FIXED ? column->type.kind == GJ_BYTES || column->type.kind == GJ_UINT1 :
		column->type.kind == GJ_REF;
}

/* The same of an aggregate; second: the count of an average, whose first column is the sum. */
static bool
describe_aggregate(const GjJoinInfo *info, int which, bool second, GjBuildColumn *column)
{
	int			final = list_nth_int(info->agg_finals, which);

	column->stage.from = first_state(info, which);
	if (second)
	{
		column->stage.value = GJ_STAGE_COUNT;
		return true;
	}
	switch (gj_final_kind(final))
	{
		case GJ_FINAL_COUNT:
			column->stage.value = GJ_STAGE_COUNT;
			return true;
		case GJ_FINAL_COUNT_SUM:
			column->stage.value = GJ_STAGE_SUM_OR_ZERO;
			return true;
		case GJ_FINAL_SUM_INT8:
			column->stage.value = GJ_STAGE_SUM;
			return true;
		case GJ_FINAL_SUM_NUMERIC:
		case GJ_FINAL_SUM_DECIMAL:
		case GJ_FINAL_AVG_NUMERIC:
		case GJ_FINAL_AVG_DECIMAL:
			column->stage.value = GJ_STAGE_SUM;
			break;
		case GJ_FINAL_MINMAX_DECIMAL:
			column->stage.value = GJ_STAGE_EXTREME_I;
			break;
		case GJ_FINAL_MINMAX_INT:
			column->stage.value = GJ_STAGE_EXTREME_I;
			return column->type.kind <= GJ_UINT1;
		case GJ_FINAL_MINMAX_FLOAT8:
		case GJ_FINAL_MINMAX_FLOAT4:
			column->stage.value = GJ_STAGE_EXTREME_F;
			return true;
		case GJ_FINAL_SUM_FLOAT8:
			column->stage.value = GJ_STAGE_SUM_F;
			return true;
		default:
			return gj_refuse("the values of an aggregate of a subquery are PostgreSQL's to make");
	}
	column->scale = gj_final_scale(final);
	column->type = gj_column_type(INT8OID);
	return true;
}

/* Describes a column of the result.  False: it has none for what that is made of. */
static bool
describe_column(const GjStage *stage, const Var *var, GjBuildColumn *column)
{
	const GjJoinInfo *info = stage->info;
	int			output = (var->varattno - FIRST_COLUMN) / 2;

	memset(column, 0, sizeof(GjBuildColumn));
	column->expr = (Expr *) var;
	column->attno = var->varattno;
	column->typid = var->vartype;
	column->type = gj_column_type(column->typid);
	column->scale = -1;
	if (var->varattno == COLUMN_TRUE)
		column->stage.value = GJ_STAGE_TRUE;
	else if (!(output < info->ngroup_keys ? describe_key(info, output, column) :
			   describe_aggregate(info, output - info->ngroup_keys,
								  var->varattno == COLUMN_OF(output, 1), column)))
		return false;
	column->type.nullable = 1;
	return true;
}

bool
gj_stage_column(GjBuilder *builder, int s, const Var *var, int *index)
{
	GjBuildSource *source = &builder->source[s];
	GjBuildColumn *column;
	ListCell   *lc;

	if (!gj_is_result_column(var))
	{
		var = (Var *) gj_stage_expr(builder, var);
		return var != NULL && IsA(var, Var) && gj_stage_column(builder, s, var, index);
	}
	foreach(lc, source->columns)
		if (((GjBuildColumn *) lfirst(lc))->attno == var->varattno)
		{
			*index = foreach_current_index(lc);
			return true;
		}
	if (list_length(source->columns) == GJ_MAX_STAGE_COLUMNS)
		return gj_refuse("a subquery has more than %d columns", GJ_MAX_STAGE_COLUMNS);
	column = palloc(sizeof(GjBuildColumn));
	if (!describe_column(source->stage, var, column))
		return false;
	/* of a stage's program, which is the same for all readers */
	column->stage.type = column->type;
	column->type.source = s;
	*index = list_length(source->columns);
	source->columns = lappend(source->columns, column);
	return true;
}

/* ---- expressions over keys and aggregates, as expressions over columns */

typedef struct ReplaceContext
{
	PlannerInfo *root;			/* of the query around it */
	const GjStage *stage;
	Index		relid;			/* of the subquery */
	bool		failed;
} ReplaceContext;

static Var *
result_column(const ReplaceContext *cxt, int attno, Oid type, int32 typmod, Oid collation)
{
	return makeVar(cxt->relid, attno, type, typmod, collation, 0);
}

/*
 * An average is the quotient of two columns, as PostgreSQL computes it; NULL without values, as the
 * sum then is.
 */
static Node *
average(const ReplaceContext *cxt, int output)
{
	Expr	   *sum = (Expr *) result_column(cxt, COLUMN_OF(output, 0), NUMERICOID, -1, InvalidOid);
	Expr	   *count = (Expr *) result_column(cxt, COLUMN_OF(output, 1), INT8OID, -1, InvalidOid);

	count = (Expr *) makeFuncExpr(F_NUMERIC_INT8, NUMERICOID, list_make1(count), InvalidOid,
								  InvalidOid, COERCE_IMPLICIT_CAST);
	return (Node *) gj_make_call(F_NUMERIC_DIV, NUMERICOID, list_make2(sum, count));
}

/* The text that a key's integer stands for, or the uuid that two have halves of. */
static Node *
decoded(ReplaceContext *cxt, int output, const List *codes)
{
	List	   *whens = NIL;
	ListCell   *lc;

	if (gj_codes_are(codes, GJ_CODES_FIRST_HALF))
		return (Node *)
			gj_make_uuid((Expr *) result_column(cxt, COLUMN_OF(output, 0), INT8OID, -1, InvalidOid),
						 (Expr *) result_column(cxt, COLUMN_OF(output + 1, 0), INT8OID, -1,
												InvalidOid));
	if (IsA(linitial(codes), Integer))
	{
		cxt->failed = true;
		return NULL;
	}
	foreach(lc, codes)
	{
		Expr	   *code = (Expr *) result_column(cxt, COLUMN_OF(output, 0), INT4OID, -1, InvalidOid);
		Expr	   *number = (Expr *) makeConst(INT4OID, -1, InvalidOid, sizeof(int32),
												Int32GetDatum(foreach_current_index(lc)), false,
												true);

		whens = lappend(whens, gj_make_when(make_opclause(Int4EqualOperator, BOOLOID, false, code,
														  number, InvalidOid, InvalidOid),
											lfirst(lc)));
	}
	return (Node *) gj_make_case(whens, NULL);
}

static Node *
replace_outputs(Node *node, ReplaceContext *cxt)
{
	const GjJoinInfo *info = cxt->stage->info;
	ListCell   *lc;

	if (node == NULL || cxt->failed)
		return NULL;
	foreach(lc, info->outputs)
	{
		int			output = foreach_current_index(lc);
		GjAggFinal	final;
		GjBuildColumn column;
		Var		   *var;

		if (!equal(lfirst(lc), node))
			continue;
		final = output < info->ngroup_keys ? GJ_FINAL_COUNT :
			gj_final_kind(list_nth_int(info->agg_finals, output - info->ngroup_keys));
		if (output < info->ngroup_keys && list_nth(info->key_codes, output) != NIL)
			return decoded(cxt, output, list_nth(info->key_codes, output));
		if (final == GJ_FINAL_AVG_NUMERIC || final == GJ_FINAL_AVG_DECIMAL)
			return average(cxt, output);
		var = result_column(cxt, COLUMN_OF(output, 0), exprType(node), exprTypmod(node),
							exprCollation(node));
		cxt->failed |= !describe_column(cxt->stage, var, &column);
		return (Node *) var;
	}
	/* an initplan's value belongs to the plan of its own query; one further out can be asked for */
	cxt->failed |= IsA(node, Var) || IsA(node, PlaceHolderVar) || IsA(node, Aggref) ||
		IsA(node, GroupingFunc) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		(IsA(node, Param) && ((Param *) node)->paramkind != PARAM_EXTERN &&
		 !gj_is_initplan_param(cxt->root, (Param *) node));
	return expression_tree_mutator(node, replace_outputs, cxt);
}

/* NULL: there is something in it that is neither key nor aggregate. */
static Expr *
over_columns(const GjBuilder *builder, int s, Node *inner)
{
	const GjBuildSource *source = &builder->source[s];
	ReplaceContext cxt = {.root = builder->root,.stage = source->stage,.relid = source->rel->relid};
	Node	   *result = replace_outputs(inner, &cxt);

	return cxt.failed ? NULL : (Expr *) result;
}

/*
 * The value of the subquery's column in a row that an outer join has made up is NULL, whatever
 * its expression gives for NULLs.
 */
static Expr *
null_without_row(const GjBuilder *builder, int s, Expr *expr)
{
	Expr	   *exists = (Expr *) makeVar(builder->source[s].rel->relid, COLUMN_TRUE, BOOLOID, -1,
										  InvalidOid, 0);

	if (contain_var_clause((Node *) expr) && !contain_nonstrict_functions((Node *) expr))
		return expr;
	return gj_make_case(list_make1(gj_make_when(exists, expr)), NULL);
}

Expr *
gj_stage_expr(const GjBuilder *builder, const Var *column)
{
	int			s = gj_builder_stage_of(builder, column);
	const GjStage *stage = builder->source[s].stage;
	int			resno = column->varattno;
	Expr	   *expr;

	if (resno <= 0 || resno > list_length(stage->root->processed_tlist))
		return NULL;
	expr = over_columns(builder, s, (Node *) list_nth_node(TargetEntry, stage->root->processed_tlist,
														   resno - 1)->expr);
	if (expr == NULL)
		gj_refuse_else("a column of a subquery is more than keys and aggregates");
	return expr == NULL || IsA(expr, Var) ? expr : null_without_row(builder, s, expr);
}

Expr *
gj_stage_value(const GjBuilder *builder, int s, Expr *expr)
{
	return over_columns(builder, s, (Node *) expr);
}

Expr *
gj_stage_having(const GjBuilder *builder, int s)
{
	Expr	   *having = make_ands_explicit(builder->source[s].stage->info->host_quals);

	return over_columns(builder, s, (Node *) having);
}

/* True for a number that is a constant other than zero. */
static bool
is_nonzero(const Node *node)
{
	const Const *con = (const Const *) node;

	return IsA(node, Const) && con->consttype == NUMERICOID && !con->constisnull &&
		DatumGetBool(DirectFunctionCall2(numeric_ne, con->constvalue,
										 NumericGetDatum(int64_to_numeric(0))));
}

/* True for the count of an average, which is zero only where its sum is NULL. */
static bool
is_average_count(const Node *node)
{
	const FuncExpr *func = (const FuncExpr *) node;

	return IsA(node, FuncExpr) && func->funcid == F_NUMERIC_INT8 &&
		IsA(linitial(func->args), Var) && linitial_node(Var, func->args)->varattno > FIRST_COLUMN &&
		(linitial_node(Var, func->args)->varattno - FIRST_COLUMN) % 2 == 1;
}

bool
gj_stage_average(Expr *node, Expr **sum, Expr **count)
{
	const FuncExpr *func = (const FuncExpr *) node;

	if (!IsA(node, FuncExpr) || func->funcid != F_NUMERIC_DIV ||
		!is_average_count(lsecond(func->args)))
		return false;
	*sum = linitial(func->args);
	*count = linitial(lsecond_node(FuncExpr, func->args)->args);
	return true;
}

/* True for calls that raise no error (beyond numbers of 131 072 digits). */
static bool
call_is_safe(Oid funcid, const List *args)
{
	if (funcid == F_NUMERIC_DIV)
		return is_nonzero(lsecond(args)) || is_average_count(lsecond(args));
	return funcid == F_INT4EQ || gj_function_is_total(funcid);
}

static bool
is_unsafe(Node *node, void *context)
{
	if (node == NULL || gj_half_of_uuid((Expr *) node, 0) != NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
			return false;
		case T_Param:
			return ((Param *) node)->paramkind != PARAM_EXTERN;
		case T_FuncExpr:
			if (!call_is_safe(((FuncExpr *) node)->funcid, ((FuncExpr *) node)->args))
				return true;
			break;
		case T_OpExpr:
			set_opfuncid((OpExpr *) node);
			if (!call_is_safe(((OpExpr *) node)->opfuncid, ((OpExpr *) node)->args))
				return true;
			break;
		case T_RelabelType:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CoalesceExpr:
		case T_NullTest:
		case T_List:
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, is_unsafe, context);
}

bool
gj_stage_expr_is_safe(const Expr *expr)
{
	return !is_unsafe((Node *) expr, NULL);
}

/* ---- sources */

/* True if the device can check all conditions on a stage's rows, and HAVING of its query. */
static bool
can_filter(GjBuilder *builder, int s)
{
	GjBuildSource *source = &builder->source[s];
	GjBuilderMark mark;
	bool		can;
	bool		may_fail;

	if (!gj_can_filter(builder, source->rel, &may_fail))
		return false;
	gj_builder_mark(builder, &mark);
	can = gj_compile_source_filter(builder, s, &source->filter);
	gj_builder_reset(builder, &mark);
	source->filter = -1;
	return can;
}

/*
 * Gives a stage that others may compute as well all columns that its result can have.  Readers that
 * want some of them then have the same program, and one result serves all (exec/equal_stages.c).
 */
static void
add_all_columns(GjBuilder *builder, int s)
{
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, builder->source[s].stage->info->outputs)
	{
		Expr	   *expr = over_columns(builder, s, lfirst(lc));
		List	   *columns = pull_var_clause((Node *) expr, 0);

		foreach(lc2, columns)
		{
			int			index;

			(void) gj_stage_column(builder, s, lfirst(lc2), &index);
		}
	}
}

/* True if all columns that are wanted of it can be made of its result, here or there. */
static bool
has_columns(GjBuilder *builder, int s)
{
	GjBuilderMark mark;
	bool		has = true;
	ListCell   *lc;

	gj_builder_mark(builder, &mark);
	foreach(lc, builder->source[s].rel->reltarget->exprs)
	{
		Expr	   *column = lfirst(lc);
		Expr	   *expr;
		int			index;
		bool		can_fail;

		if (!IsA(column, Var) || (expr = gj_stage_expr(builder, (Var *) column)) == NULL ||
			(!gj_stage_column(builder, s, (Var *) column, &index) &&
			 !gj_stage_expr_is_safe(expr) && !gj_compilable(builder, column, &can_fail)))
			has = false;
	}
	gj_builder_reset(builder, &mark);
	return has;
}

bool
gj_choose_stage(PlannerInfo *root, GjBuilder *builder, int s, const Path *path)
{
	GjBuildSource *source = &builder->source[s];
	RelOptInfo *rel = source->rel;
	GjStage    *stage = stage_of(rel);
	GjBuilderMark mark;

	if (stage == NULL || path == NULL || path->param_info != NULL ||
		!bms_is_empty(rel->lateral_relids) ||
		stage->info->program->nbytes + STAGE_PROGRAM_BYTES > GJ_MAX_PROGRAM_SIZE ||
		(!gj_force && gj_cost_stage(stage) > gj_cost_plan_source(path)))
		return false;
	source->stage = stage;
	source->heap_relid = InvalidOid;
	source->filter_clauses = get_actual_clauses(rel->baserestrictinfo);
	source->rows_loaded = stage->info->groups;
	gj_builder_mark(builder, &mark);
	if (gj_readers(stage->root->parse) > 1)
		add_all_columns(builder, s);
	if (!can_filter(builder, s) || !has_columns(builder, s))
	{
		gj_builder_reset(builder, &mark);
		source->stage = NULL;
		source->filter_clauses = NIL;
		return false;
	}
	return true;
}

Path *
gj_stage_path(PlannerInfo *root, const GjBuilder *builder, int s, const GjProgram *program)
{
	const GjBuildSource *source = &builder->source[s];
	const GjStage *stage = source->stage;
	GjJoinInfo *info = palloc(sizeof(GjJoinInfo));
	GjPath	   *path;

	*info = *stage->info;
	info->part = NULL;
	info->is_stage = true;
	info->fallback = NULL;
	info->builder = gj_builder_copy(info->builder);
	info->builder->stage_columns = source->columns;
	info->builder->stage_capacity = gj_program_array(program, GjSource, sources)[s].capacity;
	info->program = gj_builder_finish(info->builder, stage->info->program->output);
	if (info->program == NULL)
		elog(ERROR, "the program of a stage is too large");
	/* what a query makes of its own groups further up, as window functions, is not there yet */
	path = gj_create_path(stage->root, stage->rel, stage->root == root ? stage->rel->reltarget :
						  create_pathtarget(stage->root, stage->root->processed_tlist), info);
	if (stage->root == root)
		return &path->cpath.path;
	return (Path *) gj_create_subqueryscan_path(root, source->rel, &path->cpath.path);
}

/* ---- HAVING of a query whose groups are returned */

/* Adds keys and aggregates to the outputs, as columns of the result, or made of them. */
static bool
add_stage_outputs(GjJoinInfo *info, const GjStage *stage)
{
	GjBuilder  *builder = info->builder;
	List	   *made_of = NIL;
	ListCell   *lc;

	foreach(lc, stage->info->outputs)
	{
		Expr	   *expr = over_columns(builder, 0, lfirst(lc));
		int			index;

		if (expr == NULL || !gj_stage_expr_is_safe(expr))
			return false;
		info->outputs = lappend(info->outputs, lfirst(lc));
		if (IsA(expr, Var) && gj_stage_column(builder, 0, (Var *) expr, &index))
		{
			builder->outputs = lappend_int(builder->outputs, index);
			info->computed = lappend(info->computed, NULL);
			continue;
		}
		info->computed = lappend(info->computed, expr);
		made_of = list_union(made_of, pull_var_clause((Node *) expr, 0));
	}
	foreach(lc, made_of)
	{
		int			index;

		if (!gj_stage_column(builder, 0, lfirst(lc), &index))
			return false;
		builder->outputs = lappend_int(builder->outputs, index);
		info->outputs = lappend(info->outputs, lfirst(lc));
		info->computed = lappend(info->computed, NULL);
	}
	return true;
}

GjPath *
gj_having_path(PlannerInfo *root, RelOptInfo *rel, const GjPath *groups)
{
	GjJoinInfo *info = palloc0(sizeof(GjJoinInfo));
	GjStage    *stage = palloc0(sizeof(GjStage));
	RelOptInfo *dummy = makeNode(RelOptInfo);
	GjBuildSource *source;

	/* what is spared is at most what returning the groups costs, and a second start is to be paid */
	if (groups->info->host_quals == NIL || groups->info->ngroup_keys == 0 ||
		groups->cost - groups->startup <= gj_cost_least())
		return NULL;
	stage->magic = STAGE_MAGIC;
	stage->root = root;
	stage->rel = rel;
	stage->info = groups->info;
	stage->cost = groups->startup;
	/* columns of the result need the number of some relation */
	dummy->relid = bms_next_member(root->all_baserels, -1);
	info->builder = gj_builder_create(root);
	info->builder->nsources = 1;
	source = &info->builder->source[0];
	source->stage = stage;
	source->rel = dummy;
	source->relids = bms_make_singleton(dummy->relid);
	source->rows_loaded = groups->info->groups;
	source->rows_filtered = groups->cpath.path.rows;
	if (!gj_compile_source_filter(info->builder, 0, &source->filter) ||
		!add_stage_outputs(info, stage) ||
		stage->info->program->nbytes + STAGE_PROGRAM_BYTES > GJ_MAX_PROGRAM_SIZE)
		return NULL;
	info->nfallback = groups->info->nfallback;
	info->fallback = groups->info->fallback;
	info->part = groups->info->part;
	info->rows = groups->info->rows;
	info->kept_groups = groups->cpath.path.rows;
	info->program = gj_builder_finish(info->builder, GJ_OUTPUT_ROWS);
	return info->program != NULL ?
		gj_create_path(root, rel, groups->cpath.path.pathtarget, info) : NULL;
}
