/*
 * stage_path.c
 *	  Subqueries whose groups or aggregates are the rows of a source: stages.
 *
 * When PostgreSQL has planned a subquery, its upper relation of groups remembers the program that
 * makes them (gj_stage_note).  The query around it can then read the result where gpujoind has it,
 * instead of having all groups returned and loaded again.  A column of the subquery is an
 * expression over group keys and aggregates; these are the columns of the source, and the
 * expression is compiled where it is used.  HAVING becomes a part of the source's filter.
 *
 * The stage becomes a GpuJoin node of its own below the one that reads it, without a fallback: the
 * fallback of the whole is PostgreSQL's plan of the whole.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"

#include "compat.h"
#include "guc.h"
#include "plan/device_expr.h"
#include "plan/join_path.h"
#include "plan/reasons.h"

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
	stage->cost = path->cpath.path.startup_cost;
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

Expr *
gj_stage_expr(const GjBuilder *builder, const Expr *column)
{
	const GjStage *stage = builder->source[gj_builder_stage_of(builder, column)].stage;
	int			resno = ((const Var *) column)->varattno;

	if (resno <= 0 || resno > list_length(stage->root->processed_tlist))
		return NULL;
	return list_nth_node(TargetEntry, stage->root->processed_tlist, resno - 1)->expr;
}

/* ---- columns */

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

/* The same of an aggregate. */
static bool
describe_aggregate(const GjJoinInfo *info, int which, GjBuildColumn *column)
{
	int			final = list_nth_int(info->agg_finals, which);

	column->stage.from = first_state(info, which);
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

/* Number of an expression among the keys and aggregates of a stage; -1: it is none. */
static int
find_output(const GjStage *stage, const Expr *inner)
{
	ListCell   *lc;

	foreach(lc, stage->info->outputs)
		if (equal(lfirst(lc), inner))
			return foreach_current_index(lc);
	return -1;
}

bool
gj_is_stage_output(const GjBuilder *builder, int s, const Expr *inner)
{
	return find_output(builder->source[s].stage, inner) >= 0;
}

bool
gj_stage_column(GjBuilder *builder, int s, Expr *inner, int *index)
{
	GjBuildSource *source = &builder->source[s];
	const GjJoinInfo *info = source->stage->info;
	GjBuildColumn *column;
	int			output = inner != NULL ? find_output(source->stage, inner) : -1;
	ListCell   *lc;

	if (output < 0)
		return false;
	foreach(lc, source->columns)
		if (((GjBuildColumn *) lfirst(lc))->attno == output + 1)
		{
			*index = foreach_current_index(lc);
			return true;
		}
	if (list_length(source->columns) == GJ_MAX_STAGE_COLUMNS)
		return gj_refuse("a subquery has more than %d columns", GJ_MAX_STAGE_COLUMNS);
	column = palloc0(sizeof(GjBuildColumn));
	column->expr = inner;
	column->attno = output + 1;
	column->typid = exprType((Node *) inner);
	column->type = gj_column_type(column->typid);
	column->scale = -1;
	if (!(output < info->ngroup_keys ? describe_key(info, output, column) :
		  describe_aggregate(info, output - info->ngroup_keys, column)))
		return false;
	column->type.nullable = 1;
	column->type.source = s;
	column->stage.type = column->type;
	*index = list_length(source->columns);
	source->columns = lappend(source->columns, column);
	return true;
}

/* ---- sources */

/*
 * True if the device can check all conditions on a stage's rows.  One that can fail must not see
 * rows that one of a lower security level hides.
 */
static bool
can_filter(GjBuilder *builder, int s)
{
	GjBuildSource *source = &builder->source[s];
	GjBuilderMark mark;
	bool		can = true;
	bool		can_fail;
	ListCell   *lc;

	foreach(lc, source->rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (rinfo->pseudoconstant || !gj_compilable(builder, rinfo->clause, &can_fail) ||
			(can_fail && rinfo->security_level > source->rel->baserestrict_min_security))
			return false;
	}
	gj_builder_mark(builder, &mark);
	can = gj_compile_stage_filter(builder, s, &source->filter);
	gj_builder_reset(builder, &mark);
	source->filter = -1;
	return can;
}

/*
 * True if the subquery has inheritance children: setrefs.c changes its AppendRelInfos in place, and
 * its plan exists twice, as a stage and in the fallback.
 */
static bool
has_append_rels(PlannerInfo *root)
{
	if (root->append_rel_list != NIL)
		return true;
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		RelOptInfo *rel = root->simple_rel_array[i];

		if (rel != NULL && rel->subroot != NULL && has_append_rels(rel->subroot))
			return true;
	}
	return false;
}

bool
gj_choose_stage(PlannerInfo *root, GjBuilder *builder, int s, const Path *path)
{
	GjBuildSource *source = &builder->source[s];
	RelOptInfo *rel = source->rel;
	GjStage    *stage = stage_of(rel);

	if (stage == NULL || path == NULL || path->param_info != NULL ||
		!bms_is_empty(rel->lateral_relids) || has_append_rels(stage->root) ||
		stage->info->program->nbytes + STAGE_PROGRAM_BYTES > GJ_MAX_PROGRAM_SIZE ||
		(!gj_force && gj_cost_stage(stage) > gj_cost_plan_source(path)))
		return false;
	source->stage = stage;
	source->heap_relid = InvalidOid;
	source->filter_clauses = get_actual_clauses(rel->baserestrictinfo);
	source->rows_loaded = stage->info->groups;
	if (!can_filter(builder, s))
	{
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
	path = gj_create_path(stage->root, stage->rel,
						  create_pathtarget(stage->root, stage->root->processed_tlist), info);
	return (Path *) gj_create_subqueryscan_path(root, source->rel, &path->cpath.path);
}
