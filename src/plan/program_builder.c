/*
 * program_builder.c
 *	  Collects sources, columns, expressions and steps, and writes them as one flat
 *	  GjProgram.
 *
 * Used by join_path.c and agg_path.c while paths are made; everything lives in the
 * planner's memory context.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

#include "load/decimal.h"
#include "load/tuple_id.h"
#include "plan/join_path.h"
#include "plan/outer_joins.h"
#include "plan/program_builder.h"
#include "plan/reasons.h"

GjBuilder *
gj_builder_create(PlannerInfo *root)
{
	GjBuilder  *builder = palloc0(sizeof(GjBuilder));

	builder->root = root;
	for (int s = 0; s < GJ_MAX_SOURCES; s++)
		builder->source[s].filter = -1;
	return builder;
}

static void *
copy_array(const void *array, int n, int size, Size element)
{
	void	   *copy = array ? palloc(size * element) : NULL;

	if (n > 0)
		memcpy(copy, array, n * element);
	return copy;
}

GjBuilder *
gj_builder_copy(const GjBuilder *builder)
{
	GjBuilder  *copy = palloc(sizeof(GjBuilder));

	*copy = *builder;
	copy->exprs = copy_array(builder->exprs, builder->nexprs, builder->exprs_size,
							 sizeof(GjExpr));
	copy->instrs = copy_array(builder->instrs, builder->ninstrs, builder->instrs_size,
							  sizeof(GjInstr));
	copy->constants = copy_array(builder->constants, builder->nconstants,
								 builder->constants_size, sizeof(int64));
	for (int s = 0; s < builder->nsources; s++)
		copy->source[s].columns = list_copy(builder->source[s].columns);
	copy->runtime = list_copy(builder->runtime);
	copy->outputs = list_copy(builder->outputs);
	copy->aggregates = list_copy(builder->aggregates);
	copy->group_keys = list_copy(builder->group_keys);
	copy->sort_keys = list_copy(builder->sort_keys);
	return copy;
}

void
gj_builder_mark(GjBuilder *builder, GjBuilderMark *mark)
{
	mark->nexprs = builder->nexprs;
	mark->ninstrs = builder->ninstrs;
	mark->nconstants = builder->nconstants;
	for (int s = 0; s < builder->nsources; s++)
		mark->ncolumns[s] = list_length(builder->source[s].columns);
	mark->runtime = list_copy(builder->runtime);
	mark->can_fail = builder->can_fail;
}

void
gj_builder_reset(GjBuilder *builder, const GjBuilderMark *mark)
{
	builder->nexprs = mark->nexprs;
	builder->ninstrs = mark->ninstrs;
	builder->nconstants = mark->nconstants;
	for (int s = 0; s < builder->nsources; s++)
		builder->source[s].columns = list_truncate(builder->source[s].columns,
												   mark->ncolumns[s]);
	builder->runtime = mark->runtime;
	builder->can_fail = mark->can_fail;
}

/* Makes room for one more element of an array that doubles. */
static void *
grow(void *array, int n, int *size, Size element)
{
	if (n < *size)
		return array;
	*size = Max(16, *size * 2);
	return array ? repalloc(array, *size * element) : palloc(*size * element);
}

int
gj_builder_expr(GjBuilder *builder, const GjExpr *expr)
{
	builder->exprs = grow(builder->exprs, builder->nexprs, &builder->exprs_size,
						  sizeof(GjExpr));
	builder->exprs[builder->nexprs] = *expr;
	return builder->nexprs++;
}

int
gj_builder_instr(GjBuilder *builder, const GjInstr *instr)
{
	builder->instrs = grow(builder->instrs, builder->ninstrs, &builder->instrs_size,
						   sizeof(GjInstr));
	builder->instrs[builder->ninstrs] = *instr;
	return builder->ninstrs++;
}

int
gj_builder_constant(GjBuilder *builder, int64 constant)
{
	builder->constants = grow(builder->constants, builder->nconstants,
							  &builder->constants_size, sizeof(int64));
	builder->constants[builder->nconstants] = constant;
	return builder->nconstants++;
}

GjBuildColumn *
gj_builder_column_at(GjBuilder *builder, int source, int index)
{
	return list_nth(builder->source[source].columns, index);
}

int
gj_builder_stage_of(const GjBuilder *builder, const void *column)
{
	const Var  *var = (const Var *) column;

	if (!IsA(column, Var) || var->varlevelsup != 0)
		return -1;
	for (int s = 0; s < builder->nsources; s++)
		if (builder->source[s].stage != NULL && builder->source[s].rel->relid == var->varno)
			return s;
	return -1;
}

/* Where a source has the value of `expr`: attribute or resno; 0 if it has not. */
static AttrNumber
source_attno(GjBuildSource *source, Expr *expr)
{
	AttrNumber	resno = 1;
	ListCell   *lc;

	if (OidIsValid(source->heap_relid))
	{
		Var		   *var = (Var *) expr;

		if (!IsA(expr, Var) || var->varno != source->rel->relid || var->varlevelsup != 0)
			return 0;
		return Max(var->varattno, 0);	/* neither system columns nor whole rows */
	}
	if (source->path == NULL)
		return 0;				/* not decided about yet */
	foreach(lc, source->path->pathtarget->exprs)
	{
		if (gj_same_column(lfirst(lc), expr))
			return resno;
		resno++;
	}
	return 0;
}

/* True if an attribute of some table of a heap source has numerics that must be carried. */
static bool
is_noted(const GjBuilder *builder, const GjBuildSource *source, AttrNumber attno)
{
	ListCell   *lc;

	foreach(lc, source->tables)
	{
		Index		rti = lfirst_int(lc);

		if (gj_decimal_noted(planner_rt_fetch(rti, builder->root)->relid,
							 gj_table_attno(builder->root, source->rel, rti, attno)))
			return true;
	}
	return false;
}

bool
gj_builder_column(GjBuilder *builder, Expr *expr, int *source, int *index)
{
	*source = gj_builder_stage_of(builder, expr);
	if (*source >= 0)
		return gj_stage_column(builder, *source, (Var *) expr, index);
	for (int s = 0; s < builder->nsources; s++)
	{
		GjBuildSource *src = &builder->source[s];
		AttrNumber	attno = source_attno(src, expr);
		GjBuildColumn *column;
		ListCell   *lc;

		if (attno == 0)
			continue;
		*source = s;
		foreach(lc, src->columns)
		{
			column = lfirst(lc);
			if (column->attno == attno)
			{
				*index = foreach_current_index(lc);
				return true;
			}
		}
		if (src->tables != NIL && !gj_tables_have(builder->root, src->rel, src->tables, (Var *) expr))
			return false;
		column = palloc0(sizeof(GjBuildColumn));
		column->expr = expr;
		column->attno = attno;
		column->typid = exprType((Node *) expr);
		column->type = gj_column_type(column->typid);
		column->scale = -1;
		if (OidIsValid(src->heap_relid) && !is_noted(builder, src, attno))
			column->type = gj_loaded_type(column->typid, exprTypmod((Node *) expr), &column->scale);
		column->type.source = s;
		*index = list_length(src->columns);
		src->columns = lappend(src->columns, column);
		return true;
	}
	return false;
}

int
gj_builder_tuple_id(GjBuilder *builder, int source)
{
	GjBuildSource *src = &builder->source[source];
	GjBuildColumn *column = palloc0(sizeof(GjBuildColumn));

	column->expr = (Expr *) makeVar(src->rel->relid, GJ_TUPLE_ID_ATTNO, TIDOID, -1, InvalidOid, 0);
	column->attno = GJ_TUPLE_ID_ATTNO;
	column->typid = INT8OID;
	column->type = gj_column_type(INT8OID);
	column->type.source = source;
	column->scale = -1;
	src->columns = lappend(src->columns, column);
	return list_length(src->columns) - 1;
}

/* ---- columns that nothing reads on the device */

bool
gj_builder_reads(const GjBuilder *builder, int source, int index)
{
	int			name = source << 16 | index;
	int			ncompared = list_length(builder->group_keys) - builder->ndependent_keys;

	for (int i = 0; i < builder->ninstrs; i++)
		if (gj_op_loads(builder->instrs[i].op) && (int) builder->instrs[i].arg == name)
			return true;
	for (int i = 0; i < builder->nsteps; i++)
		if (builder->step[i].algorithm == GJ_JOIN_SET &&
			(builder->step[i].outer_set == name || builder->step[i].inner_set == name))
			return true;
	for (int k = 0; k < ncompared; k++)
	{
		const GjGroupKey *key = list_nth(builder->group_keys, k);

		if (key->how > GJ_GROUP_FLOAT && (int) key->index == name)
			return true;
	}
	return false;
}

bool
gj_builder_reads_all(const GjBuilder *builder, const PlannerInfo *root)
{
	Relids		read = NULL;

	for (int s = 0; s < builder->nsources; s++)
		read = bms_union(read, builder->source[s].relids);
	return bms_equal(read, root->all_baserels);
}

/* The name (source << 16 | index) of a column when others of its source are gone. */
static int
renamed(int name, int source, const int *renumbered)
{
	return name >> 16 == source ? source << 16 | renumbered[name & 0xFFFF] : name;
}

/* The list of names without those of columns that are gone. */
static List *
rename_outputs(List *outputs, int source, const int *renumbered)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, outputs)
	{
		int			name = lfirst_int(lc);

		if (name >> 16 != source || renumbered[name & 0xFFFF] >= 0)
			result = lappend_int(result, renamed(name, source, renumbered));
	}
	return result;
}

/* The same of group keys; those that are gone are dependent ones. */
static void
rename_keys(GjBuilder *builder, int source, const int *renumbered)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, builder->group_keys)
	{
		GjGroupKey *key = lfirst(lc);

		if (key->how > GJ_GROUP_FLOAT && (int) key->index >> 16 == source)
		{
			GjGroupKey *copy = palloc(sizeof(GjGroupKey));

			if (renumbered[key->index & 0xFFFF] < 0)
			{
				builder->ndependent_keys--;
				continue;
			}
			*copy = *key;
			copy->index = renamed(key->index, source, renumbered);
			key = copy;
		}
		result = lappend(result, key);
	}
	builder->group_keys = result;
}

void
gj_builder_drop_columns(GjBuilder *builder, int source, const Bitmapset *columns)
{
	GjBuildSource *src = &builder->source[source];
	int		   *renumbered = palloc(sizeof(int) * Max(list_length(src->columns), 1));
	List	   *left = NIL;
	ListCell   *lc;

	foreach(lc, src->columns)
	{
		int			i = foreach_current_index(lc);

		renumbered[i] = bms_is_member(i, columns) ? -1 : list_length(left);
		if (renumbered[i] >= 0)
			left = lappend(left, lfirst(lc));
	}
	src->columns = left;
	for (int i = 0; i < builder->ninstrs; i++)
		if (gj_op_loads(builder->instrs[i].op))
			builder->instrs[i].arg = renamed(builder->instrs[i].arg, source, renumbered);
	for (int i = 0; i < builder->nsteps; i++)
		if (builder->step[i].algorithm == GJ_JOIN_SET)
		{
			builder->step[i].outer_set = renamed(builder->step[i].outer_set, source, renumbered);
			builder->step[i].inner_set = renamed(builder->step[i].inner_set, source, renumbered);
		}
	builder->outputs = rename_outputs(builder->outputs, source, renumbered);
	rename_keys(builder, source, renumbered);
}

uint32
gj_builder_sources_of(GjBuilder *builder, Relids relids)
{
	uint32		result = 0;
	int			relid = -1;

	relids = gj_without_outer_joins(builder->root, relids);
	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		int			s;

		for (s = 0; s < builder->nsources; s++)
			if (bms_is_member(relid, builder->source[s].relids))
				break;
		if (s == builder->nsources)
			return 0;
		result |= 1u << s;
	}
	return result;
}

/* Expected bytes of a value in the byte heap. */
static int
heap_bytes(const GjBuildColumn *column)
{
	return MAXALIGN(get_typavgwidth(column->typid, exprTypmod((Node *) column->expr)));
}

/*
 * Rows for a slot so that fixed-width part and byte heap should fill up together; the
 * heap never gets less than `min_heap` bytes.  0 if that is not possible.
 */
static uint32
slot_capacity(const GjColumnType *types, uint32 ncolumns, uint32 slot_size,
			  uint64 row_heap, uint64 min_heap, uint32 min_rows)
{
	uint64		row = row_heap;
	uint64		overhead = gj_slot_header_size(ncolumns) + (uint64) ncolumns * 2 * GJ_ALIGN;
	uint64		capacity;

	for (uint32 i = 0; i < ncolumns; i++)
		row += types[i].width + 1;
	if (overhead + min_heap >= slot_size)
		return 0;
	capacity = (slot_size - overhead - min_heap) / Max(row, 1);
	return capacity < min_rows ? 0 : Min(capacity, GJ_MAX_TUPLES);
}

uint32
gj_chunk_capacity(const GjColumnType *types, uint32 ncolumns, uint64 row_heap)
{
	bool		refs = false;

	for (uint32 i = 0; i < ncolumns; i++)
		refs |= types[i].kind == GJ_REF;
	/* an eighth of a slot has room for a page's values (heap_source.c) */
	return slot_capacity(types, ncolumns, GJ_LOAD_CHUNK_SIZE, row_heap,
						 refs ? GJ_LOAD_SLOT_SIZE / 8 : 0, 2 * MaxHeapTuplesPerPage);
}

/* Fills in the sources' columns; false if a chunk of a source does not fit a slot. */
static bool
finish_sources(GjBuilder *builder, GjSource *sources, GjColumnType *types, int *first_column)
{
	uint32		n = 0;
	uint32		nstages = 0;

	for (int s = 0; s < builder->nsources; s++)
	{
		GjBuildSource *src = &builder->source[s];
		uint64		row_heap = 0;
		ListCell   *lc;

		first_column[s] = n;
		sources[s].first_column = n;
		sources[s].ncolumns = list_length(src->columns);
		sources[s].filter = src->filter;
		sources[s].nrows_hint = (uint64) Min(src->rows_loaded, 4e9);
		if (src->stage != NULL)
			sources[s].stage = ++nstages;
		foreach(lc, src->columns)
		{
			GjBuildColumn *column = lfirst(lc);

			types[n] = column->type;
			if (column->type.kind == GJ_REF)
				row_heap += heap_bytes(column);
			n++;
		}
		sources[s].capacity = gj_chunk_capacity(types + first_column[s], sources[s].ncolumns,
												row_heap);
		if (sources[s].capacity == 0)
			return false;
	}
	return true;
}

/* Rows of a batch; 0 if one row might not fit. */
static uint32
output_capacity(GjBuilder *builder)
{
	int			n = list_length(builder->outputs);
	GjColumnType *types = palloc(sizeof(GjColumnType) * Max(n, 1));
	uint64		row_heap = 0,
				min_heap = 0;
	ListCell   *lc;

	foreach(lc, builder->outputs)
	{
		GjBuildColumn *column = gj_builder_column_at(builder, lfirst_int(lc) >> 16,
													 lfirst_int(lc) & 0xFFFF);

		types[foreach_current_index(lc)] = column->type;
		if (column->type.kind == GJ_REF)
		{
			row_heap += heap_bytes(column);
			min_heap += GJ_MAX_CARRIED + MAXIMUM_ALIGNOF;
		}
	}
	return slot_capacity(types, n, GJ_OUTPUT_SLOT_SIZE, row_heap, min_heap, 64);
}

/* The same for groups. */
static uint32
group_capacity(GjBuilder *builder, const GjProgram *program)
{
	int			n = gj_group_nkeys(program) + program->naggregates;
	GjColumnType *types = palloc(sizeof(GjColumnType) * n);
	uint64		row_heap = 0,
				min_heap = 0;

	for (int i = 0; i < n; i++)
	{
		GjGroupKey *key;

		types[i] = gj_group_output_type(program, i);
		if (types[i].kind != GJ_REF)
			continue;
		key = list_nth(builder->group_keys, i);
		row_heap += heap_bytes(gj_builder_column_at(builder, key->index >> 16,
													key->index & 0xFFFF));
		min_heap += GJ_MAX_CARRIED + MAXIMUM_ALIGNOF;
	}
	return slot_capacity(types, n, GJ_OUTPUT_SLOT_SIZE, row_heap, min_heap, 64);
}

/* Copies one array into the program and returns where the next one starts. */
static uint32
put_array(char *program, uint32 at, uint32 *offset, const void *array, Size nbytes)
{
	*offset = at;
	if (nbytes > 0)
		memcpy(program + at, array, nbytes);
	return at + MAXALIGN(nbytes);
}

GjProgram *
gj_builder_finish(GjBuilder *builder, GjOutputKind output)
{
	GjSource	sources[GJ_MAX_SOURCES] = {0};
	GjStep		steps[GJ_MAX_SOURCES] = {0};
	GjSetStep	set_steps[GJ_MAX_SOURCES] = {0};
	int			nset_steps = 0;
	int			next_value = builder->nsources;
	int			first_column[GJ_MAX_SOURCES];
	int			ncolumns = 0;
	GjColumnType *types;
	GjInstr    *instrs;
	uint32	   *outputs;
	GjAggregate *aggregates;
	GjGroupKey *group_keys;
	GjSortKey  *sort_keys;
	GjStageColumn *stage_columns;
	GjProgram  *program;
	Size		nbytes;
	uint32		at;
	ListCell   *lc;

	for (int s = 0; s < builder->nsources; s++)
		ncolumns += list_length(builder->source[s].columns);
	if (ncolumns > GJ_MAX_COLUMNS || list_length(builder->outputs) > GJ_MAX_COLUMNS ||
		list_length(builder->aggregates) > GJ_MAX_AGGREGATES ||
		list_length(builder->group_keys) > GJ_MAX_GROUP_KEYS ||
		list_length(builder->stage_columns) > GJ_MAX_STAGE_COLUMNS)
	{
		gj_refuse("it has %d columns and %d states of aggregates, and %d and %d are the most",
				  ncolumns, list_length(builder->aggregates), GJ_MAX_COLUMNS, GJ_MAX_AGGREGATES);
		return NULL;
	}
	nbytes = sizeof(GjProgram) + sizeof(sources) + sizeof(steps) + sizeof(set_steps) +
		MAXALIGN(sizeof(GjColumnType) * ncolumns) + sizeof(GjExpr) * builder->nexprs +
		sizeof(GjInstr) * builder->ninstrs +
		MAXALIGN(sizeof(uint32) * list_length(builder->outputs)) +
		sizeof(GjAggregate) * list_length(builder->aggregates) +
		sizeof(GjGroupKey) * list_length(builder->group_keys) +
		sizeof(GjSortKey) * list_length(builder->sort_keys) +
		sizeof(GjStageColumn) * list_length(builder->stage_columns) +
		sizeof(int64) * builder->nconstants;
	if (nbytes > GJ_MAX_PROGRAM_SIZE)
	{
		gj_refuse("its expressions and constants are too large");
		return NULL;
	}

	types = palloc0(sizeof(GjColumnType) * Max(ncolumns, 1));
	if (!finish_sources(builder, sources, types, first_column))
	{
		gj_refuse("a row of a table is too wide");
		return NULL;
	}

	outputs = palloc(sizeof(uint32) * (list_length(builder->outputs) + 1));
	foreach(lc, builder->outputs)
		outputs[foreach_current_index(lc)] =
			first_column[lfirst_int(lc) >> 16] + (lfirst_int(lc) & 0xFFFF);
	aggregates = palloc(sizeof(GjAggregate) * (list_length(builder->aggregates) + 1));
	foreach(lc, builder->aggregates)
		aggregates[foreach_current_index(lc)] = *(GjAggregate *) lfirst(lc);
	group_keys = palloc(sizeof(GjGroupKey) * (list_length(builder->group_keys) + 1));
	foreach(lc, builder->group_keys)
	{
		GjGroupKey *key = &group_keys[foreach_current_index(lc)];

		*key = *(GjGroupKey *) lfirst(lc);
		if (key->how > GJ_GROUP_FLOAT)
			key->index = first_column[key->index >> 16] + (key->index & 0xFFFF);
	}
	sort_keys = palloc(sizeof(GjSortKey) * (list_length(builder->sort_keys) + 1));
	foreach(lc, builder->sort_keys)
		sort_keys[foreach_current_index(lc)] = *(GjSortKey *) lfirst(lc);
	stage_columns = palloc(sizeof(GjStageColumn) * (list_length(builder->stage_columns) + 1));
	foreach(lc, builder->stage_columns)
		stage_columns[foreach_current_index(lc)] = ((GjBuildColumn *) lfirst(lc))->stage;
	for (int i = 0; i < builder->nsteps; i++)
	{
		GjBuildStep *step = &builder->step[i];

		steps[i].join_type = step->join_type;
		steps[i].algorithm = step->algorithm;
		steps[i].nkeys = step->nkeys;
		steps[i].source = step->source;
		steps[i].residual = step->residual;
		steps[i].probe_keys = step->probe_keys;
		steps[i].build_keys = step->build_keys;
		steps[i].filter = step->filter;
		steps[i].range_key = step->range_key;
		steps[i].range_low = step->range_low;
		steps[i].range_high = step->range_high;
		steps[i].low_strict = step->low_strict;
		steps[i].high_strict = step->high_strict;
		if (step->algorithm == GJ_JOIN_SET)
		{
			GjSetStep  *set = &set_steps[nset_steps];

			steps[i].set = nset_steps++;
			*set = step->set;
			set->probe_column = first_column[step->outer_set >> 16] + (step->outer_set & 0xFFFF);
			set->build_column = first_column[step->inner_set >> 16] + (step->inner_set & 0xFFFF);
			set->threshold = step->threshold;
			if (step->has_values)
			{
				set->values = next_value;
				next_value += GJ_PAIR_VALUES;
			}
		}
	}

	if (next_value > GJ_MAX_SOURCES)
		return NULL;
	instrs = palloc(sizeof(GjInstr) * Max(builder->ninstrs, 1));
	for (int i = 0; i < builder->ninstrs; i++)
	{
		instrs[i] = builder->instrs[i];
		if (gj_op_loads(instrs[i].op))
			instrs[i].arg = first_column[instrs[i].arg >> 16] + (instrs[i].arg & 0xFFFF);
		else if (instrs[i].op == GJ_OP_LOAD_PAIR)
			instrs[i].arg = set_steps[steps[instrs[i].arg >> 16].set].values +
				(instrs[i].arg & 0xFFFF);
	}

	program = palloc0(nbytes);
	program->magic = GJ_PROGRAM_MAGIC;
	program->kind = GJ_PROGRAM_JOIN;
	program->output = output;
	if (output == GJ_OUTPUT_ROWS && (program->output_capacity = output_capacity(builder)) == 0)
		return NULL;
	program->nsources = builder->nsources;
	program->ncolumns = ncolumns;
	program->nsteps = builder->nsteps;
	program->nset_steps = nset_steps;
	program->nexprs = builder->nexprs;
	program->ninstrs = builder->ninstrs;
	program->nconstants = builder->nconstants;
	program->noutputs = list_length(builder->outputs);
	program->naggregates = list_length(builder->aggregates);
	program->ngroup_keys = list_length(builder->group_keys);
	program->ndistinct_keys = builder->ndistinct_keys;
	program->ndependent_keys = builder->ndependent_keys;
	program->nsort_keys = list_length(builder->sort_keys);
	program->limit = builder->limit;
	program->ties = builder->ties;
	at = sizeof(GjProgram);
	at = put_array((char *) program, at, &program->sources, sources,
				   sizeof(GjSource) * program->nsources);
	at = put_array((char *) program, at, &program->columns, types,
				   sizeof(GjColumnType) * ncolumns);
	at = put_array((char *) program, at, &program->steps, steps,
				   sizeof(GjStep) * program->nsteps);
	at = put_array((char *) program, at, &program->set_steps, set_steps,
				   sizeof(GjSetStep) * nset_steps);
	at = put_array((char *) program, at, &program->exprs, builder->exprs,
				   sizeof(GjExpr) * builder->nexprs);
	at = put_array((char *) program, at, &program->instrs, instrs,
				   sizeof(GjInstr) * builder->ninstrs);
	at = put_array((char *) program, at, &program->outputs, outputs,
				   sizeof(uint32) * program->noutputs);
	at = put_array((char *) program, at, &program->aggregates, aggregates,
				   sizeof(GjAggregate) * program->naggregates);
	at = put_array((char *) program, at, &program->group_keys, group_keys,
				   sizeof(GjGroupKey) * program->ngroup_keys);
	at = put_array((char *) program, at, &program->sort_keys, sort_keys,
				   sizeof(GjSortKey) * program->nsort_keys);
	program->stage_capacity = builder->stage_capacity;
	program->nstage_columns = list_length(builder->stage_columns);
	at = put_array((char *) program, at, &program->stage_columns, stage_columns,
				   sizeof(GjStageColumn) * program->nstage_columns);
	if (output == GJ_OUTPUT_GROUPS &&
		(program->output_capacity = group_capacity(builder, program)) == 0)
		return NULL;
	/* last, so that execution can append the elements of runtime arrays */
	at = put_array((char *) program, at, &program->constants, builder->constants,
				   sizeof(int64) * builder->nconstants);
	program->nbytes = at;
	return program;
}
