/*
 * check_stage.c
 *	  Checks what a program that is a stage leaves: columns of a source, made of its result.
 */
#include "check.h"

/* True if a column of that type can have values of a group key. */
static bool
holds_key(const GjColumnType *type, uint32_t how)
{
	switch (how)
	{
		case GJ_GROUP_INTEGER:
			return type->kind <= GJ_UINT1;
		case GJ_GROUP_FLOAT:
			return type->kind == GJ_FLOAT8;
		case GJ_GROUP_FIXED:
			return (type->kind == GJ_BYTES || type->kind == GJ_UINT1) && type->width <= 8;
		default:
			return type->kind == GJ_REF;
	}
}

/* True if one can have values of an aggregate. */
static bool
holds_aggregate(const GjColumnType *type, uint32_t value, uint32_t op)
{
	switch (value)
	{
		case GJ_STAGE_COUNT:
			return type->kind == GJ_INT8;
		case GJ_STAGE_SUM:
		case GJ_STAGE_SUM_OR_ZERO:
			return type->kind == GJ_INT8 && (op == GJ_AGG_SUM_I || op == GJ_AGG_SUM_DISTINCT_I);
		case GJ_STAGE_EXTREME_I:
			return type->kind <= GJ_UINT1 && (op == GJ_AGG_MIN_I || op == GJ_AGG_MAX_I);
		case GJ_STAGE_EXTREME_F:
			return (type->kind == GJ_FLOAT8 || type->kind == GJ_FLOAT4) &&
				(op == GJ_AGG_MIN_F || op == GJ_AGG_MAX_F);
		case GJ_STAGE_SUM_F:
			return type->kind == GJ_FLOAT8 && op == GJ_AGG_SUM_F;
		default:
			return false;
	}
}

static bool
check_stage_column(GjCheck *check, uint32_t i)
{
	const GjProgram *p = check->program;
	const GjStageColumn *column = gj_program_array(p, GjStageColumn, stage_columns) + i;

	if (!gj_check_column(check, &column->type, i))
		return false;
	if (column->value == GJ_STAGE_TRUE ? column->type.kind == GJ_BOOL && column->from == 0 :
		column->value == GJ_STAGE_KEY ?
		column->from < gj_group_nkeys(p) && p->output == GJ_OUTPUT_GROUPS &&
		holds_key(&column->type, check->group_keys[column->from].how) :
		column->from < p->naggregates &&
		holds_aggregate(&column->type, column->value, check->aggregates[column->from].op))
		return true;
	return gj_check_fails(check, "column %u of a stage is made of value %u, number %u", i,
						  column->value, column->from);
}

bool
gj_check_stage(GjCheck *check)
{
	const GjProgram *p = check->program;
	GjColumnType types[GJ_MAX_STAGE_COLUMNS];
	GjColumnPlace places[GJ_MAX_STAGE_COLUMNS];
	GjLayout	layout;

	if (p->stage_capacity == 0)
		return p->nstage_columns == 0 ||
			gj_check_fails(check, "columns of a stage that is none");
	if (p->kind != GJ_PROGRAM_JOIN || p->output == GJ_OUTPUT_ROWS || p->limit > 0 ||
		p->nsort_keys > 0 || p->nstage_columns > GJ_MAX_STAGE_COLUMNS ||
		p->stage_capacity > GJ_MAX_TUPLES)
		return gj_check_fails(check, "a stage has output %u, a limit or an order, or %u columns",
							  p->output, p->nstage_columns);
	for (uint32_t i = 0; i < p->nstage_columns; i++)
	{
		if (!check_stage_column(check, i))
			return false;
		types[i] = gj_program_array(p, GjStageColumn, stage_columns)[i].type;
	}
	return gj_layout(types, p->nstage_columns, p->stage_capacity, GJ_LOAD_CHUNK_SIZE, &layout,
					 places) ||
		gj_check_fails(check, "chunks of a stage do not fit their slot");
}
