/*
 * late_columns.c
 *	  Columns that are not brought to the device: they are fetched for the rows that come back.
 *
 * A column is late if the device would do nothing with its values but carry them to the output.  In
 * the place of all late columns of a table the program carries the ids of its tuples
 * (load/tuple_id.h), and the node fetches tuples by them under the query's snapshot (exec/late.c).
 * That saves to load the values, and device memory.  A fetch takes longer than to carry a value, so
 * few rows must come back, and that must be certain: estimates of joined rows can be far too low.
 *
 * Late columns belong to plain tables of the query level.  The ids of a partition's tuples would
 * not say which partition it is.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

#include "guc.h"
#include "load/tuple_id.h"
#include "plan/join_path.h"
#include "plan/remembered.h"

/* So many rows of a query are fetched at most, from a table that is in memory, and else; */
#define LATE_ROWS			1000.0
#define LATE_DISK_ROWS		100.0
/* and so many rows a table must have for each of them. */
#define LATE_TABLE_ROWS		100.0
/* Shorter values, in bytes, are not worth it, */
#define LATE_WIDTH			16
/* and shorter ones are not left out when a table is made resident. */
#define PREWARM_WIDTH		40

/* Values of which a fragment has few different ones take little memory: store/pack.c. */
#define DICTIONARY_VALUES	65536.0
#define DICTIONARY_ROWS		4.0

/* ---- which columns */

/* The mean width of a column's values; 0: few of them are different, or nobody knows. */
static int
width_of_different(Oid relid, AttrNumber attno)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relid),
										Int16GetDatum(attno), BoolGetDatum(false));
	HeapTuple	class_tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	int			width = 0;

	if (HeapTupleIsValid(tuple) && HeapTupleIsValid(class_tuple))
	{
		Form_pg_statistic statistic = (Form_pg_statistic) GETSTRUCT(tuple);
		double		rows = Max(((Form_pg_class) GETSTRUCT(class_tuple))->reltuples, 1);
		double		values = statistic->stadistinct < 0 ? -statistic->stadistinct * rows :
			statistic->stadistinct;

		if (values > DICTIONARY_VALUES || values * DICTIONARY_ROWS > rows)
			width = statistic->stawidth;
	}
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	if (HeapTupleIsValid(class_tuple))
		ReleaseSysCache(class_tuple);
	return width;
}

bool
gj_is_long(Oid relid, AttrNumber attno)
{
	Oid			typid = get_atttype(relid, attno);

	/* arrays are what sets are, and numerics are computed with */
	return get_typlen(typid) == -1 && !OidIsValid(get_base_element_type(typid)) &&
		getBaseType(typid) != NUMERICOID && width_of_different(relid, attno) > PREWARM_WIDTH;
}

/* True if a source is one plain table, whose tuples have ids. */
static bool
has_tuple_ids(const GjBuildSource *source)
{
	return OidIsValid(source->heap_relid) && source->stage == NULL &&
		list_length(source->tables) == 1 && linitial_int(source->tables) == source->rel->relid;
}

/* True if a column may be late: nothing on the device reads it. */
static bool
may_be_late(const GjBuilder *builder, int source, int index)
{
	const GjBuildSource *src = &builder->source[source];
	const GjBuildColumn *column = list_nth(src->columns, index);

	return has_tuple_ids(src) && column->attno > 0 && column->type.kind == GJ_REF &&
		!gj_builder_reads(builder, source, index) &&
		(gj_late_columns == GJ_LATE_ON ||
		 width_of_different(src->heap_relid, column->attno) >= LATE_WIDTH);
}

/* The columns that outputs, or dependent keys, are and that may be late: bitmaps by source. */
static void
find_late(const GjJoinInfo *info, Bitmapset **late)
{
	const GjBuilder *builder = info->builder;
	List	   *names = NIL;
	ListCell   *lc;

	if (!info->aggregate)
		names = builder->outputs;
	else
		foreach(lc, builder->group_keys)
		{
			const GjGroupKey *key = lfirst(lc);

			if (key->how > GJ_GROUP_FLOAT)
				names = lappend_int(names, key->index);
		}
	foreach(lc, names)
	{
		int			source = lfirst_int(lc) >> 16;
		int			index = lfirst_int(lc) & 0xFFFF;

		if (may_be_late(builder, source, index))
			late[source] = bms_add_member(late[source], index);
	}
}

/* ---- whether it is worth it */

/* True if PostgreSQL stops asking for rows at a LIMIT right above the join. */
static bool
stops_at_limit(PlannerInfo *root, const GjJoinInfo *info)
{
	const Query *parse = root->parse;

	/* a part of a join problem is asked for all */
	return gj_builder_reads_all(info->builder, root) && !info->aggregate && info->host_quals == NIL && root->limit_tuples > 0 &&
		root->query_pathkeys == NIL && parse->groupClause == NIL && !parse->hasAggs &&
		parse->distinctClause == NIL && !parse->hasWindowFuncs && !parse->hasTargetSRFs &&
		parse->setOperations == NULL && parse->havingQual == NULL;
}

/*
 * The most rows that can come back.  How many are equal to the last one in the keys that the device
 * knows is uncertain.
 */
static double
most_rows(PlannerInfo *root, const GjJoinInfo *info)
{
	if (info->limit > 0)
		return info->builder->ties ? HUGE_VAL : info->limit;
	return stops_at_limit(root, info) ? root->limit_tuples : HUGE_VAL;
}

/* Forgets columns of tables that have too few rows. */
static void
drop_small_tables(PlannerInfo *root, const GjJoinInfo *info, Bitmapset **late)
{
	double		rows = most_rows(root, info);

	for (int s = 0; s < info->builder->nsources; s++)
	{
		const GjBuildSource *source = &info->builder->source[s];

		if (late[s] != NULL &&
			(rows > LATE_ROWS || source->rows_loaded < rows * LATE_TABLE_ROWS ||
			 (rows > LATE_DISK_ROWS && source->rel->pages > LATE_DISK_ROWS &&
			  gj_remembered(root, gj_pages_cached, source->heap_relid) == 0)))
			late[s] = NULL;
	}
}

/* True if late columns are possible in this query and program at all. */
static bool
may_have_late(PlannerInfo *root, const GjJoinInfo *info)
{
	if (gj_late_columns == GJ_LATE_OFF || info->is_stage || info->kept_groups > 0 ||
		root->parse->commandType != CMD_SELECT || root->rowMarks != NIL)
		return false;
	/* rows stand for others there */
	for (int i = 0; i < info->builder->nsteps; i++)
	{
		const GjBuildStep *step = &info->builder->step[i];

		if (step->algorithm == GJ_JOIN_SET && step->set.membership)
			return false;
	}
	return true;
}

/* ---- the program with them */

/* Adds an entry for a late column: output `output`, from 0, to the description of its table. */
static void
note_late(const GjBuilder *builder, List **tables, int name, int output)
{
	int			source = name >> 16;
	const GjBuildColumn *column = list_nth(builder->source[source].columns, name & 0xFFFF);

	/* GJ_LATE_ID follows */
	if (tables[source] == NIL)
		tables[source] = list_make2_int((int) builder->source[source].heap_relid, 0);
	tables[source] = lappend_int(tables[source], output + 1);
	tables[source] = lappend_int(tables[source], column->attno);
}

static bool
is_late(Bitmapset *const *late, int name)
{
	return bms_is_member(name & 0xFFFF, late[name >> 16]);
}

/* Notes the late outputs of a program of rows. */
static void
note_outputs(const GjJoinInfo *info, Bitmapset *const *late, List **tables)
{
	int			n = 0;
	ListCell   *lc;

	foreach(lc, info->computed)
	{
		int			name;

		if (lfirst(lc) != NULL)
			continue;
		name = list_nth_int(info->builder->outputs, n++);
		if (is_late(late, name))
			note_late(info->builder, tables, name, foreach_current_index(lc));
	}
}

/* The same of dependent keys of groups; their codes and the numbers of keys in sort keys follow. */
static void
note_keys(GjJoinInfo *info, Bitmapset *const *late, List **tables)
{
	GjBuilder  *builder = info->builder;
	int		   *renumbered = palloc(sizeof(int) * Max(info->ngroup_keys, 1));
	List	   *codes = NIL;
	List	   *sort_keys = NIL;
	ListCell   *lc;

	foreach(lc, builder->group_keys)
	{
		const GjGroupKey *key = lfirst(lc);
		int			k = foreach_current_index(lc);

		/* a distinct key is no output, and compared */
		if (k >= info->ngroup_keys)
			break;
		renumbered[k] = list_length(codes);
		if (key->how > GJ_GROUP_FLOAT && is_late(late, key->index))
			note_late(builder, tables, key->index, k);
		else
			codes = lappend(codes, list_nth(info->key_codes, k));
	}
	info->key_codes = codes;
	info->ngroup_keys = list_length(codes);
	foreach(lc, builder->sort_keys)
	{
		GjSortKey  *key = palloc(sizeof(GjSortKey));

		*key = *(GjSortKey *) lfirst(lc);
		if (key->of == GJ_SORT_KEY || key->of == GJ_SORT_KEY_NULL)
			key->index = renumbered[key->index];
		sort_keys = lappend(sort_keys, key);
	}
	builder->sort_keys = sort_keys;
}

/* Makes the ids of a source's tuples a dependent key. */
static void
add_id_key(GjJoinInfo *info, int name)
{
	GjBuilder  *builder = info->builder;
	GjInstr		load = {.op = GJ_OP_LOAD,.arg = name};
	GjExpr		expr = {.ninstrs = 1,.nregisters = 1,.kind = GJ_INT8};
	GjGroupKey *key = palloc0(sizeof(GjGroupKey));

	expr.first = gj_builder_instr(builder, &load);
	key->how = GJ_GROUP_INTEGER;
	key->index = gj_builder_expr(builder, &expr);
	builder->group_keys = lappend(builder->group_keys, key);
	builder->ndependent_keys++;
	info->key_codes = lappend(info->key_codes, NIL);
	info->ngroup_keys++;
}

/* Adds the ids of a source's tuples to what comes back; its late columns are noted. */
static void
add_id(GjJoinInfo *info, int source, List *table)
{
	GjBuilder  *builder = info->builder;
	int			index = gj_builder_tuple_id(builder, source);

	if (info->aggregate)
		add_id_key(info, source << 16 | index);
	else
	{
		builder->outputs = lappend_int(builder->outputs, source << 16 | index);
		info->computed = lappend(info->computed, NULL);
	}
	info->outputs = lappend(info->outputs, gj_builder_column_at(builder, source, index)->expr);
	list_nth_cell(table, GJ_LATE_ID)->int_value = list_length(info->outputs);
	info->late = lappend(info->late, table);
}

void
gj_make_late(PlannerInfo *root, GjJoinInfo *info)
{
	Bitmapset  *late[GJ_MAX_SOURCES] = {NULL};
	List	   *tables[GJ_MAX_SOURCES] = {NIL};

	Assert(info->late == NIL);
	if (!may_have_late(root, info))
		return;
	find_late(info, late);
	if (gj_late_columns == GJ_LATE_AUTO)
		drop_small_tables(root, info, late);
	info->outputs = list_copy(info->outputs);
	info->computed = list_copy(info->computed);
	if (info->aggregate)
		note_keys(info, late, tables);
	else
		note_outputs(info, late, tables);
	for (int s = 0; s < info->builder->nsources; s++)
		if (late[s] != NULL)
			gj_builder_drop_columns(info->builder, s, late[s]);
	for (int s = 0; s < info->builder->nsources; s++)
		if (late[s] != NULL)
			add_id(info, s, tables[s]);
}

GjPath *
gj_late_path(PlannerInfo *root, GjPath *path)
{
	GjJoinInfo *info = palloc(sizeof(GjJoinInfo));

	*info = *path->info;
	info->builder = gj_builder_copy(info->builder);
	gj_make_late(root, info);
	if (info->late == NIL)
		return path;
	info->program = gj_builder_finish(info->builder, path->info->program->output);
	return info->program == NULL ? path :
		gj_create_path(root, path->cpath.path.parent, path->cpath.path.pathtarget, info);
}
