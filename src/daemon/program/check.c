/*
 * check.c
 *	  Checks a program before it runs; session.c and run_file.c call it.
 *
 * Backends are not hostile, but a bug in one of them must cost its query only.  So
 * nothing that is read here is believed before it was compared with a limit, and all
 * sums are done in 64 bits, where 32-bit operands cannot overflow.
 */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool
gj_check_fails(GjCheck *check, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	vsnprintf(check->why->text, sizeof(check->why->text), format, args);
	va_end(args);
	return false;
}

static bool
check_array(GjCheck *check, const char *name, uint32_t offset, uint32_t n, size_t size)
{
	if (n == 0)
		return true;
	if (offset % 8 != 0 || offset < sizeof(GjProgram) ||
		(uint64_t) offset + (uint64_t) n * size > check->program->nbytes)
		return gj_check_fails(check, "%s lie outside the program", name);
	return true;
}

static bool
check_header(GjCheck *check, uint32_t nbytes)
{
	const GjProgram *p = check->program;

	if (nbytes < sizeof(GjProgram) || nbytes > GJ_MAX_PROGRAM_SIZE)
		return gj_check_fails(check, "size is %u bytes", nbytes);
	if (p->magic != GJ_PROGRAM_MAGIC || p->nbytes != nbytes)
		return gj_check_fails(check, "header is damaged");
	if (p->kind > GJ_PROGRAM_SETS || p->output > GJ_OUTPUT_GROUPS ||
		p->fail_point > GJ_FAIL_CRASH)
		return gj_check_fails(check, "unknown kind %u, output %u or failure point %u",
							  p->kind, p->output, p->fail_point);
	if (p->nsources < 1 || p->nsources > GJ_MAX_SOURCES || p->ncolumns > GJ_MAX_COLUMNS ||
		p->noutputs > GJ_MAX_COLUMNS || p->naggregates > GJ_MAX_AGGREGATES ||
		p->ngroup_keys > GJ_MAX_GROUP_KEYS)
		return gj_check_fails(check,
							  "%u sources, %u columns, %u outputs, %u aggregates or %u group keys "
							  "are too many", p->nsources, p->ncolumns, p->noutputs, p->naggregates,
							  p->ngroup_keys);
	if (p->nsort_keys > GJ_MAX_KEYS + GJ_MAX_AGGREGATES)
		return gj_check_fails(check, "%u sort keys are too many", p->nsort_keys);
	return check_array(check, "sources", p->sources, p->nsources, sizeof(GjSource)) &&
		check_array(check, "columns", p->columns, p->ncolumns, sizeof(GjColumnType)) &&
		check_array(check, "steps", p->steps, p->nsteps, sizeof(GjStep)) &&
		check_array(check, "expressions", p->exprs, p->nexprs, sizeof(GjExpr)) &&
		check_array(check, "instructions", p->instrs, p->ninstrs, sizeof(GjInstr)) &&
		check_array(check, "constants", p->constants, p->nconstants, sizeof(int64_t)) &&
		check_array(check, "outputs", p->outputs, p->noutputs, sizeof(uint32_t)) &&
		check_array(check, "aggregates", p->aggregates, p->naggregates, sizeof(GjAggregate)) &&
		check_array(check, "group keys", p->group_keys, p->ngroup_keys, sizeof(GjGroupKey)) &&
		check_array(check, "sort keys", p->sort_keys, p->nsort_keys, sizeof(GjSortKey)) &&
		check_array(check, "sets", p->sets, p->nsets, sizeof(GjSetSpec)) &&
		check_array(check, "set steps", p->set_steps, p->nset_steps, sizeof(GjSetStep)) &&
		check_array(check, "stage columns", p->stage_columns, p->nstage_columns,
					sizeof(GjStageColumn));
}

bool
gj_check_column(GjCheck *check, const GjColumnType *type, uint32_t i)
{
	static const uint8_t widths[] = {1, 2, 4, 8, 4, 1, 4, 8, 0, 8};

	if (type->kind > GJ_REF)
		return gj_check_fails(check, "column %u has unknown kind %u", i, type->kind);
	if (type->kind == GJ_BYTES)
	{
		if (type->width != 1 && type->width != 2 && type->width != 4 && type->width != 8 &&
			type->width != 16)
			return gj_check_fails(check, "column %u has width %u", i, type->width);
	}
	else if (type->width != widths[type->kind])
		return gj_check_fails(check, "column %u has width %u", i, type->width);
	return true;
}

/* Sources own all columns, in any order, each a range of its own. */
static bool
check_sources(GjCheck *check)
{
	const GjProgram *p = check->program;
	uint64_t	total = 0;

	for (uint32_t i = 0; i < p->ncolumns; i++)
		if (!gj_check_column(check, &check->columns[i], i))
			return false;
	for (uint32_t s = 0; s < p->nsources; s++)
	{
		const GjSource *source = &check->sources[s];
		GjColumnPlace *places;
		GjLayout	layout;
		bool		fits;

		if ((uint64_t) source->first_column + source->ncolumns > p->ncolumns)
			return gj_check_fails(check, "source %u has columns that do not exist", s);
		for (uint32_t c = 0; c < source->ncolumns; c++)
			if (check->columns[source->first_column + c].source != s)
				return gj_check_fails(check, "column %u is not of source %u",
									  source->first_column + c, s);
		total += source->ncolumns;
		if (source->capacity < 1 || source->capacity > GJ_MAX_TUPLES)
			return gj_check_fails(check, "chunks of source %u have %u rows", s, source->capacity);
		if (source->stage > GJ_MAX_STAGES)
			return gj_check_fails(check, "source %u reads stage %u", s, source->stage);

		places = malloc((source->ncolumns + 1) * sizeof(GjColumnPlace));
		fits = places && gj_layout(check->columns + source->first_column, source->ncolumns,
								   source->capacity, GJ_LOAD_CHUNK_SIZE, &layout, places);
		free(places);
		if (!fits)
			return gj_check_fails(check, "chunks of source %u do not fit their slot", s);
	}
	if (total != p->ncolumns)
		return gj_check_fails(check, "a column belongs to no source");
	return true;
}

uint32_t
gj_expr_sources(const GjProgram *program, uint32_t e)
{
	const GjExpr *expr = gj_program_array(program, GjExpr, exprs) + e;
	const GjInstr *instr = gj_program_array(program, GjInstr, instrs) + expr->first;
	const GjColumnType *columns = gj_program_array(program, GjColumnType, columns);
	uint32_t	sources = 0;

	for (uint32_t i = 0; i < expr->ninstrs; i++)
		if (gj_op_loads(instr[i].op))
			sources |= 1u << columns[instr[i].arg].source;
		else if (instr[i].op == GJ_OP_LOAD_PAIR)
			sources |= 1u << instr[i].arg;
	return sources;
}

/* An expression that reads sources of `allowed` only. */
static bool
check_use(GjCheck *check, const char *name, int64_t e, uint32_t allowed)
{
	if (e < 0 || e >= check->program->nexprs)
		return gj_check_fails(check, "%s is an expression that does not exist", name);
	if (gj_expr_sources(check->program, (uint32_t) e) & ~allowed)
		return gj_check_fails(check, "%s reads a source that is not there yet", name);
	return true;
}

static bool
check_condition(GjCheck *check, const char *name, int32_t e, uint32_t allowed)
{
	if (e == -1)
		return true;
	if (!check_use(check, name, e, allowed))
		return false;
	if (check->exprs[e].kind != GJ_BOOL)
		return gj_check_fails(check, "%s is not a condition", name);
	return true;
}

/* Two expressions that are compared: both are floats, or none is; bytes have hashes. */
static bool
check_same_kind(GjCheck *check, uint64_t a, uint64_t b)
{
	if ((check->exprs[a].kind == GJ_FLOAT8) != (check->exprs[b].kind == GJ_FLOAT8) ||
		check->exprs[a].kind == GJ_TEXT || check->exprs[b].kind == GJ_TEXT)
		return gj_check_fails(check, "keys of different kinds are compared");
	return true;
}

static bool
check_keys(GjCheck *check, const GjStep *step, uint32_t alive)
{
	if (step->nkeys > GJ_MAX_KEYS || (step->nkeys == 0 && step->algorithm == GJ_JOIN_HASH))
		return gj_check_fails(check, "a step has %u keys", step->nkeys);
	for (uint32_t k = 0; k < step->nkeys; k++)
	{
		uint64_t	probe_side = (uint64_t) step->probe_keys + k;
		uint64_t	build_side = (uint64_t) step->build_keys + k;

		if (!check_use(check, "probe key", (int64_t) probe_side, alive) ||
			!check_use(check, "build key", (int64_t) build_side, 1u << step->source) ||
			!check_same_kind(check, probe_side, build_side))
			return false;
	}
	return true;
}

static bool
check_bound(GjCheck *check, const GjStep *step, int32_t bound, uint8_t strict, uint32_t alive)
{
	if (strict > 1)
		return gj_check_fails(check, "a range is strict by %u", strict);
	if (bound == -1)
		return true;
	return check_use(check, "bound of a range", bound, alive) &&
		check_same_kind(check, (uint64_t) step->range_key, (uint64_t) bound);
}

static bool
check_range(GjCheck *check, const GjStep *step, uint32_t alive)
{
	if (step->range_key == -1)
	{
		if (step->algorithm == GJ_JOIN_SORT_MERGE && step->nkeys == 0)
			return gj_check_fails(check, "a sort-merge step has neither keys nor a range");
		return true;
	}
	if (step->algorithm == GJ_JOIN_HASH || step->nkeys > GJ_MAX_RANGE_KEYS)
		return gj_check_fails(check, "a step of algorithm %u with %u keys has a range",
							  step->algorithm, step->nkeys);
	if (step->range_low == -1 && step->range_high == -1)
		return gj_check_fails(check, "a range has no bounds");
	return check_use(check, "key of a range", step->range_key, 1u << step->source) &&
		check_bound(check, step, step->range_low, step->low_strict, alive) &&
		check_bound(check, step, step->range_high, step->high_strict, alive);
}

/* A column of arrays of a source of `allowed`. */
static bool
check_array_column(GjCheck *check, uint32_t column, uint32_t allowed)
{
	if (column >= check->program->ncolumns || check->columns[column].kind != GJ_REF)
		return gj_check_fails(check, "column %u is none of arrays", column);
	if (!(allowed >> check->columns[column].source & 1))
		return gj_check_fails(check, "arrays of a source that is not there yet");
	return true;
}

/* An integer column that tells sets of a membership table apart, and whether it is NULL. */
static bool
check_set_column(GjCheck *check, uint32_t column, int32_t is_null, uint32_t source)
{
	const GjColumnType *type = &check->columns[column];

	if (column >= check->program->ncolumns || type->source != source || type->kind >= GJ_BYTES ||
		type->kind == GJ_FLOAT4 || type->kind == GJ_FLOAT8)
		return gj_check_fails(check, "column %u does not tell sets apart", column);
	return is_null == -1 || (check_use(check, "test of a set", is_null, 1u << source) &&
							 check->exprs[is_null].kind != GJ_TEXT);
}

/* True if the expression reads nothing that pairs of sets do not have. */
static bool
reads_pairs(GjCheck *check, int64_t e, const GjSetStep *set)
{
	const GjExpr *expr;

	if (e < 0)
		return true;
	if (!check_use(check, "expression of pairs", e, UINT32_MAX))
		return false;
	expr = &check->exprs[e];
	for (uint32_t i = 0; i < expr->ninstrs; i++)
	{
		const GjInstr *instr = &check->instrs[expr->first + i];

		if ((gj_op_loads(instr->op) && instr->arg != set->probe_column &&
			 instr->arg != set->build_column) ||
			(instr->op == GJ_OP_LOAD_PAIR && instr->arg != set->values))
			return gj_check_fails(check, "rows of sets are read");
	}
	return true;
}

/* The only step of a program, by whose pairs groups are made. */
static bool
check_membership(GjCheck *check, const GjStep *step, const GjSetStep *set)
{
	const GjProgram *p = check->program;

	if (p->nsteps != 1 || p->nsources != 2 || p->output != GJ_OUTPUT_GROUPS ||
		step->join_type != GJ_JOIN_INNER || step->source != 1 || step->filter != -1 ||
		set->predicate != GJ_SETS_OVERLAP || set->same > 2)
		return gj_check_fails(check, "a membership table is joined in another way");
	if (!check_set_column(check, set->probe_column, set->probe_is_null, 0) ||
		!check_set_column(check, set->build_column, set->build_is_null, 1) ||
		!reads_pairs(check, step->residual, set))
		return false;
	for (uint32_t i = 0; i < p->ngroup_keys; i++)
	{
		if (check->group_keys[i].how > GJ_GROUP_FLOAT)
			return gj_check_fails(check, "sets are grouped by bytes");
		if (!reads_pairs(check, check->group_keys[i].index, set))
			return false;
	}
	for (uint32_t i = 0; i < p->naggregates; i++)
		if (!reads_pairs(check, check->aggregates[i].arg, set))
			return false;
	return true;
}

static bool
check_sets_of_step(GjCheck *check, const GjStep *step, uint32_t alive)
{
	const GjSetStep *set = &check->set_steps[step->set];
	const GjExpr *expr;

	if (step->set >= check->program->nset_steps)
		return gj_check_fails(check, "set step %u does not exist", step->set);
	if (set->membership > 1 || step->nkeys != set->membership || step->range_key != -1)
		return gj_check_fails(check, "a step that joins sets has %u keys or a range", step->nkeys);
	if (set->algorithm >= GJ_SETS_NALGORITHMS || set->predicate >= GJ_SETS_ALL || set->strict > 1 ||
		set->probe_nulls > GJ_NULL_ELEMENTS_FAIL || set->build_nulls > GJ_NULL_ELEMENTS_FAIL ||
		(set->width != 2 && set->width != 4 && set->width != 8))
		return gj_check_fails(check, "sets of width %u are joined by predicate %u and algorithm %u",
							  set->width, set->predicate, set->algorithm);
	if (set->values != 0 && (set->values < check->program->nsources ||
							 set->values > GJ_MAX_SOURCES - GJ_PAIR_VALUES))
		return gj_check_fails(check, "a step has pair values %u", set->values);
	if (set->membership ? !check_membership(check, step, set) :
		!check_array_column(check, set->probe_column, alive) ||
		!check_array_column(check, set->build_column, 1u << step->source))
		return false;
	if (set->threshold == -1)
		return true;
	if (!check_use(check, "threshold", set->threshold, 0))
		return false;
	expr = &check->exprs[set->threshold];
	if (expr->ninstrs != 1 || check->instrs[expr->first].op != GJ_OP_CONST)
		return gj_check_fails(check, "threshold is not a constant");
	return true;
}

/*
 * *joined: sources that were joined so far, one bit each; *alive: those of them that can
 * still be read.
 */
static bool
check_step(GjCheck *check, const GjStep *step, uint32_t *joined, uint32_t *alive)
{
	uint32_t	source = 1u << (step->source % 32);
	uint32_t	values = 0;

	if (step->join_type > GJ_JOIN_RIGHT_ANTI || step->algorithm > GJ_JOIN_SET)
		return gj_check_fails(check, "join type %u or algorithm %u is unknown",
							  step->join_type, step->algorithm);
	if (step->source >= check->program->nsources || (*joined & source))
		return gj_check_fails(check, "source %u is joined twice or does not exist", step->source);
	if (step->algorithm == GJ_JOIN_SET)
	{
		if (!check_sets_of_step(check, step, *alive))
			return false;
		values = gj_pair_values(&check->set_steps[step->set]);
		if (*joined & values)
			return gj_check_fails(check, "two steps have the same pair values");
	}
	if (!check_keys(check, step, *alive) || !check_range(check, step, *alive) ||
		!check_condition(check, "residual condition", step->residual, *alive | source | values))
		return false;
	*joined |= source | values;
	switch (step->join_type)
	{
		case GJ_JOIN_SEMI:
		case GJ_JOIN_ANTI:
			break;
		case GJ_JOIN_RIGHT_SEMI:
		case GJ_JOIN_RIGHT_ANTI:
			*alive = source;
			break;
		default:
			*alive |= source | values;
	}
	return check_condition(check, "filter of a step", step->filter, *alive);
}

static bool
check_aggregates(GjCheck *check, uint32_t alive)
{
	const GjProgram *p = check->program;

	for (uint32_t i = 0; i < p->naggregates; i++)
	{
		const GjAggregate *agg = &check->aggregates[i];
		bool		is_float = agg->op == GJ_AGG_SUM_F || agg->op == GJ_AGG_MIN_F ||
			agg->op == GJ_AGG_MAX_F || agg->op == GJ_AGG_SPREAD_F;

		if (agg->op > GJ_AGG_SUM_DISTINCT_I)
			return gj_check_fails(check, "unknown aggregate %u", agg->op);
		if (agg->op >= GJ_AGG_COUNT_DISTINCT)
		{
			if (agg->arg != -1 || p->ndistinct_keys == 0)
				return gj_check_fails(check, "aggregate %u has no values", i);
			continue;
		}
		if (agg->op == GJ_AGG_COUNT_STAR)
		{
			if (agg->arg != -1)
				return gj_check_fails(check, "count(*) has an argument");
			continue;
		}
		if (!check_use(check, "argument of an aggregate", agg->arg, alive))
			return false;
		if (agg->op != GJ_AGG_COUNT && ((check->exprs[agg->arg].kind == GJ_FLOAT8) != is_float ||
										check->exprs[agg->arg].kind == GJ_TEXT))
			return gj_check_fails(check, "aggregate %u has an argument of the wrong kind", i);
	}
	return true;
}

/* The rows' keys; what is not an expression is a column of a source joined by then. */
static bool
check_group_keys(GjCheck *check, uint32_t joined)
{
	const GjProgram *p = check->program;

	if (p->ngroup_keys == 0 || p->ndistinct_keys > GJ_MAX_DISTINCT_KEYS ||
		p->ndistinct_keys > p->ngroup_keys)
		return gj_check_fails(check, "groups without a key");
	if (p->ndistinct_keys > 0 && p->naggregates == 0)
		return gj_check_fails(check, "a distinct key without aggregates");
	if (p->ndependent_keys >= p->ngroup_keys || (p->ndependent_keys > 0 && p->ndistinct_keys > 0))
		return gj_check_fails(check, "%u of %u group keys are dependent", p->ndependent_keys,
							  p->ngroup_keys);
	for (uint32_t i = 0; i < p->ngroup_keys; i++)
	{
		const GjGroupKey *key = &check->group_keys[i];
		const GjColumnType *type;

		if (key->how > GJ_GROUP_PADDED)
			return gj_check_fails(check, "group key %u is of unknown kind %u", i, key->how);
		if (key->how <= GJ_GROUP_FLOAT)
		{
			if (!check_use(check, "group key", key->index, joined))
				return false;
			if ((check->exprs[key->index].kind == GJ_FLOAT8) != (key->how == GJ_GROUP_FLOAT) ||
				check->exprs[key->index].kind == GJ_TEXT)
				return gj_check_fails(check, "group key %u is of the wrong kind", i);
			continue;
		}
		if (key->index >= p->ncolumns)
			return gj_check_fails(check, "group key %u is a column that does not exist", i);
		type = &check->columns[key->index];
		if (!(joined >> type->source & 1))
			return gj_check_fails(check, "group key %u is of a source that is not there", i);
		if (gj_group_by_reference(key->how) ? type->kind != GJ_REF :
			(type->kind != GJ_BYTES && type->kind != GJ_UINT1) || type->width > 8)
			return gj_check_fails(check, "group key %u is a column of the wrong kind", i);
	}
	return true;
}

/* What a sort key that is none of the expressions needs of an aggregate. */
static bool
sorts_by(uint32_t of, uint32_t op)
{
	switch (of)
	{
		case GJ_SORT_COUNT:
		case GJ_SORT_NONE:
			return true;
		case GJ_SORT_SUM_HIGH:
		case GJ_SORT_SUM_LOW:
		case GJ_SORT_AVG:
		case GJ_SORT_CHECK_INT8:
			return op == GJ_AGG_SUM_I || op == GJ_AGG_SUM_DISTINCT_I;
		case GJ_SORT_INTEGER:
			return op == GJ_AGG_MIN_I || op == GJ_AGG_MAX_I;
		case GJ_SORT_FLOAT:
		case GJ_SORT_FLOAT4:
			return op == GJ_AGG_SUM_F || op == GJ_AGG_MIN_F || op == GJ_AGG_MAX_F;
		case GJ_SORT_CHECK_SPREAD:
			return op == GJ_AGG_SPREAD_F;
		default:
			return op == GJ_AGG_SUM_F;
	}
}

static bool
check_sort_key(GjCheck *check, uint32_t i, uint32_t alive)
{
	const GjProgram *p = check->program;
	const GjSortKey *key = &check->sort_keys[i];

	if (key->of >= GJ_NSORTS || key->descending > 1)
		return gj_check_fails(check, "sort key %u is of unknown kind %u", i, key->of);
	if ((key->of == GJ_SORT_EXPR) != (p->output == GJ_OUTPUT_ROWS))
		return gj_check_fails(check, "sort key %u does not suit the output", i);
	if (key->of == GJ_SORT_EXPR)
	{
		if (!check_use(check, "sort key", key->index, alive))
			return false;
		return check->exprs[key->index].kind == GJ_TEXT ?
			gj_check_fails(check, "sort key %u is of the wrong kind", i) : true;
	}
	if (key->of <= GJ_SORT_KEY_NULL)
		return key->index < gj_group_nkeys(p) && check->group_keys[key->index].how <=
			GJ_GROUP_FLOAT ?
			true : gj_check_fails(check, "sort key %u is not a group key", i);
	if (key->index >= p->naggregates || !sorts_by(key->of, check->aggregates[key->index].op) ||
		(key->of == GJ_SORT_CHECK_AVG && key->index + 2 >= p->naggregates))
		return gj_check_fails(check, "sort key %u is not an aggregate", i);
	return true;
}

static bool
check_order(GjCheck *check, uint32_t alive)
{
	const GjProgram *p = check->program;
	uint32_t	nkeys = gj_sort_nkeys(p);

	if (p->limit == 0 && p->ties != 0)
		return gj_check_fails(check, "ties without a limit");
	if (p->limit == 0 && p->nsort_keys == 0)
		return true;
	if (p->limit > GJ_MAX_LIMIT || p->ties > 1 || nkeys < 1 || nkeys > GJ_MAX_KEYS)
		return gj_check_fails(check, "a limit of %u rows by %u keys", p->limit, nkeys);
	if (p->limit == 0 && p->nsort_keys > nkeys)
		return gj_check_fails(check, "a check of groups all of which are returned");
	for (uint32_t i = 0; i < p->nsort_keys; i++)
	{
		if (i >= nkeys && check->sort_keys[i].of < GJ_SORT_CHECK_INT8)
			return gj_check_fails(check, "sort key %u follows a check", i);
		if (check->sort_keys[i].of == GJ_SORT_AVG && (i != nkeys - 1 || p->ties == 0))
			return gj_check_fails(check, "sort key %u is nothing to go on from", i);
		if (!check_sort_key(check, i, alive))
			return false;
	}
	return true;
}

/* True if the elements of distinct intersections come out. */
static bool
returns_intersections(const GjProgram *program)
{
	return program->kind == GJ_PROGRAM_SETS &&
		gj_program_array(program, GjSetSpec, sets)->distinct != 0;
}

/* One pair of sets returns column 0, a set join three numbers a pair (or see sets.h). */
const GjStep *
gj_program_step_of(const GjProgram *program, uint32_t source)
{
	const GjStep *step = gj_program_array(program, GjStep, steps);

	while (step->source != source)
		step++;
	return step;
}

bool
gj_step_keys_of_probe_side(const GjProgram *program, const GjStep *step)
{
	for (uint32_t k = 0; k < step->nkeys; k++)
		if (gj_expr_sources(program, step->probe_keys + k) & ~1u)
			return false;
	return step->nkeys > 0;
}

bool
gj_program_layout_chunks(const GjProgram *program, GjLayout *layouts, GjColumnPlace *places)
{
	const GjSource *sources = gj_program_array(program, GjSource, sources);
	const GjColumnType *types = gj_program_array(program, GjColumnType, columns);
	bool		fit = true;

	for (uint32_t s = 0; s < program->nsources; s++)
		fit &= gj_layout(types + sources[s].first_column, sources[s].ncolumns, sources[s].capacity,
						 GJ_LOAD_CHUNK_SIZE, &layouts[s], places + sources[s].first_column);
	return fit;
}

uint32_t
gj_program_noutputs(const GjProgram *program)
{
	if (program->output == GJ_OUTPUT_GROUPS)
		return gj_group_nkeys(program) + program->naggregates;
	if (program->kind == GJ_PROGRAM_SETS)
		return returns_intersections(program) ? 2 : 3;
	return program->kind == GJ_PROGRAM_INTERSECT ? 1 : program->noutputs;
}

/* Column i of a batch, if it does not hold groups. */
static GjColumnType
output_type(const GjProgram *program, uint32_t i)
{
	const GjColumnType *columns = gj_program_array(program, GjColumnType, columns);

	switch (program->kind)
	{
		case GJ_PROGRAM_SETS:
			if (!returns_intersections(program))
				return (GjColumnType) {.kind = GJ_UINT4,.width = sizeof(uint32_t)};
			return i == 0 ? columns[1] : (GjColumnType) {.kind = GJ_INT8,.width = sizeof(int64_t)};
		case GJ_PROGRAM_INTERSECT:
			return columns[0];
		default:
			return columns[gj_program_array(program, uint32_t, outputs)[i]];
	}
}

bool
gj_program_layout_output(const GjProgram *program, GjColumnType *types, GjLayout *layout,
						 GjColumnPlace *places)
{
	uint32_t	n = gj_program_noutputs(program);

	for (uint32_t i = 0; i < n; i++)
		types[i] = program->output == GJ_OUTPUT_GROUPS ? gj_group_output_type(program, i) :
			output_type(program, i);
	return gj_layout(types, n, program->output_capacity, GJ_OUTPUT_SLOT_SIZE, layout, places);
}

/* Output columns must be of the sources in `alive`. */
static bool
check_batch(GjCheck *check, uint32_t alive)
{
	const GjProgram *p = check->program;
	uint32_t	n = gj_program_noutputs(p);
	GjColumnType *types;
	GjColumnPlace *places;
	GjLayout	layout;
	bool		fits;

	if (p->output_capacity < 1 || p->output_capacity > GJ_MAX_TUPLES)
		return gj_check_fails(check, "batches have %u rows", p->output_capacity);
	for (uint32_t i = 0; i < p->noutputs; i++)
		if (check->outputs[i] >= p->ncolumns ||
			!(alive >> check->columns[check->outputs[i]].source & 1))
			return gj_check_fails(check, "output %u is a column that is not there", i);

	types = malloc((n + 1) * sizeof(GjColumnType));
	places = malloc((n + 1) * sizeof(GjColumnPlace));
	fits = types && places && gj_program_layout_output(p, types, &layout, places);
	free(types);
	free(places);
	return fits ? true : gj_check_fails(check, "batches do not fit their slot");
}

static bool
check_join(GjCheck *check)
{
	const GjProgram *p = check->program;
	uint32_t	joined = 1;
	uint32_t	alive = 1;

	if (p->nsteps != p->nsources - 1)
		return gj_check_fails(check, "%u steps do not join %u sources", p->nsteps, p->nsources);
	for (uint32_t s = 0; s < p->nsources; s++)
		if (!check_condition(check, "filter", check->sources[s].filter, 1u << s))
			return false;
	for (uint32_t i = 0; i < p->nsteps; i++)
		if (!check_step(check, &check->steps[i], &joined, &alive))
			return false;
	switch (p->output)
	{
		case GJ_OUTPUT_ROWS:
			return check_batch(check, alive) && check_order(check, alive);
		case GJ_OUTPUT_AGGREGATES:
			if (p->naggregates == 0 || p->ndistinct_keys != 0)
				return gj_check_fails(check, "no aggregates");
			return check_aggregates(check, alive);
		case GJ_OUTPUT_GROUPS:
			return check_group_keys(check, alive) && check_aggregates(check, alive) &&
				check_batch(check, alive) && check_order(check, alive);
		default:
			return gj_check_fails(check, "a join has no output %u", p->output);
	}
}

static bool
is_integer(const GjColumnType *type)
{
	return type->kind == GJ_INT2 || type->kind == GJ_INT4 || type->kind == GJ_INT8;
}

/* What a pair of sets and a set join have alike: two sources of one column, and a GjSetSpec. */
static bool
check_sets(GjCheck *check)
{
	const GjProgram *p = check->program;
	const GjColumnType *type = check->columns;
	const GjSetSpec *spec = gj_program_array(p, GjSetSpec, sets);

	if (p->nsources != 2 || p->ncolumns != 2 || p->nsteps != 0 ||
		check->sources[0].ncolumns != 1 || check->sources[1].ncolumns != 1)
		return gj_check_fails(check, "sets have two sources of one column");
	if (check->sources[0].filter != -1 || check->sources[1].filter != -1)
		return gj_check_fails(check, "sets have no filters");
	if (p->nsets != 1 || spec->algorithm >= GJ_SETS_NALGORITHMS ||
		spec->operation > GJ_SETS_EXCEPT || spec->predicate >= GJ_SETS_NPREDICATES ||
			spec->self > 1)
		return gj_check_fails(check, "unknown operation on sets");
	if (type[0].source != 0 || type[1].source != 1 || !is_integer(&type[0]) ||
		!is_integer(&type[1]))
		return gj_check_fails(check, "kinds %u and %u are not sets", type[0].kind, type[1].kind);
	return true;
}

static bool
check_intersect(GjCheck *check)
{
	const GjProgram *p = check->program;

	if (!check_sets(check))
		return false;
	if (check->columns[0].kind != check->columns[1].kind)
		return gj_check_fails(check, "kinds %u and %u make no pair", check->columns[0].kind,
							  check->columns[1].kind);
	if (p->output == GJ_OUTPUT_AGGREGATES || p->output == GJ_OUTPUT_GROUPS)
		return gj_check_fails(check, "an intersection has no aggregates");
	return p->output == GJ_OUTPUT_COUNT || check_batch(check, 3);
}

static bool
check_set_join(GjCheck *check)
{
	const GjProgram *p = check->program;
	const GjSetSpec *spec = gj_program_array(p, GjSetSpec, sets);

	if (!check_sets(check))
		return false;
	if (check->columns[0].kind != GJ_INT4)
		return gj_check_fails(check, "sizes of kind %u", check->columns[0].kind);
	if (p->output != GJ_OUTPUT_ROWS)
		return gj_check_fails(check, "a set join returns rows");
	if (spec->self && spec->nright != 0)
		return gj_check_fails(check, "one family has %u sets on the right", spec->nright);
	if (spec->distinct > 1 || (spec->distinct && spec->top_k > 0))
		return gj_check_fails(check, "distinct intersections of the best %u pairs", spec->top_k);
	if (spec->behind > 1 || (spec->behind && !(spec->distinct && spec->self)))
		return gj_check_fails(check,
							  "sets that are no pair of two families, or of no intersection");
	return check_batch(check, 3);
}

/* Loads one source, for what stays of it; the output is the number of rows. */
static bool
check_prewarm(GjCheck *check)
{
	const GjProgram *p = check->program;

	if (p->nsources != 1 || p->nsteps != 0 || p->output != GJ_OUTPUT_COUNT ||
		check->sources[0].filter != -1)
		return gj_check_fails(check, "a prewarming program has one source and nothing else");
	return true;
}

static bool
check_kind(GjCheck *check)
{
	const GjProgram *p = check->program;

	/* whoever plans a run looks at them whatever its kind */
	if ((p->ngroup_keys > 0 && p->output != GJ_OUTPUT_GROUPS) ||
		(p->naggregates > 0 && p->output != GJ_OUTPUT_GROUPS && p->output != GJ_OUTPUT_AGGREGATES))
		return gj_check_fails(check, "%u aggregates and %u group keys with output %u",
							  p->naggregates, p->ngroup_keys, p->output);
	if ((p->limit > 0 || p->nsort_keys > 0) &&
		(p->kind != GJ_PROGRAM_JOIN ||
		 (p->output != GJ_OUTPUT_ROWS && p->output != GJ_OUTPUT_GROUPS)))
		return gj_check_fails(check, "a limit of output %u", p->output);
	switch (p->kind)
	{
		case GJ_PROGRAM_JOIN:
			return check_join(check);
		case GJ_PROGRAM_INTERSECT:
			return check_intersect(check);
		case GJ_PROGRAM_SETS:
			return check_set_join(check);
		default:
			return check_prewarm(check);
	}
}

GjStatus
gj_program_check(const GjProgram *p, uint32_t nbytes, GjErrorText *why)
{
	GjCheck		check = {.program = p,.why = why};
	bool		ok;

	why->text[0] = '\0';
	if (!check_header(&check, nbytes))
		return GJ_BAD_PROGRAM;
	check.sources = gj_program_array(p, GjSource, sources);
	check.columns = gj_program_array(p, GjColumnType, columns);
	check.steps = gj_program_array(p, GjStep, steps);
	check.exprs = gj_program_array(p, GjExpr, exprs);
	check.instrs = gj_program_array(p, GjInstr, instrs);
	check.outputs = gj_program_array(p, uint32_t, outputs);
	check.aggregates = gj_program_array(p, GjAggregate, aggregates);
	check.group_keys = gj_program_array(p, GjGroupKey, group_keys);
	check.set_steps = gj_program_array(p, GjSetStep, set_steps);
	check.sort_keys = gj_program_array(p, GjSortKey, sort_keys);
	ok = check_sources(&check) && gj_check_exprs(&check) && check_kind(&check) &&
		gj_check_stage(&check);
	return ok ? GJ_OK : GJ_BAD_PROGRAM;
}
