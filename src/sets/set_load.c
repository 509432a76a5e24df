/*
 * set_load.c
 *	  Loads families of sets with SQL: queries of the caller that return (id, set).
 *
 * The queries run with the rights of the caller, read-only, in parallel where PostgreSQL
 * plans that.  What they return is kept here, not only sent to the device: ids and common
 * elements are looked up in it, and the process takes over with it if the device fails.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/shmem.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/plancache.h"

#include "sets/set_join.h"

/* A query, and what takes its rows. */
typedef struct GjSetQuery
{
	DestReceiver dest;			/* first: it is what the executor knows */
	SPIPlanPtr	plan;
	Oid			types[2];		/* of the rows */
	const char *name;
	const char *what;			/* for messages */
	GjSets	   *sets;
} GjSetQuery;

/* Make sure that an array has room. */
static void *
grow(MemoryContext cxt, void *memory, uint64 room, size_t width)
{
	Size		size = mul_size(room, width);

	if (memory == NULL)
		return MemoryContextAllocExtended(cxt, size, MCXT_ALLOC_HUGE);
	return repalloc_huge(memory, size);
}

/* Add a set: copy it, widened if necessary, sort it and remove duplicates. */
static void
add_set(GjSets *sets, int64 id, GjElements elements, GjKind kind)
{
	size_t		width = gj_element_width(sets->kind);
	uint64		at = sets->offset[sets->nsets];
	char	   *to;

	if (sets->nsets == sets->room)
	{
		if (sets->nsets > PG_UINT32_MAX / 4)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("too many sets")));
		sets->room *= 2;
		sets->id = grow(sets->cxt, sets->id, sets->room, sizeof(int64));
		sets->offset = grow(sets->cxt, sets->offset, (uint64) sets->room + 1, sizeof(uint64));
	}
	if (at + elements.n + GJ_INTEGERS_SLACK > sets->element_room)
	{
		sets->element_room = Max(sets->element_room * 2, at + elements.n + GJ_INTEGERS_SLACK);
		sets->elements = grow(sets->cxt, sets->elements, sets->element_room, width);
	}
	to = sets->elements + at * width;
	if (kind == sets->kind)
		memcpy(to, elements.data, width * elements.n);
	else
		for (uint32 i = 0; i < elements.n; i++)
		{
			int64		value = kind == GJ_INT2 ? ((const int16 *) elements.data)[i] :
				((const int32 *) elements.data)[i];

			if (sets->kind == GJ_INT4)
				((int32 *) to)[i] = (int32) value;
			else
				((int64 *) to)[i] = value;
		}
	sets->id[sets->nsets++] = id;
	sets->offset[sets->nsets] = at + gj_sort_elements(sets->kind, to, elements.n);
}

/* Add the set of a row. */
static bool
add_row(TupleTableSlot *slot, DestReceiver *dest)
{
	GjSetQuery *query = (GjSetQuery *) dest;
	Oid			type = query->types[0];
	GjSmallArray small;
	ArrayType  *array;
	GjElements	elements;
	GjKind		kind;
	Datum		id;
	bool		copy;

	slot_getsomeattrs(slot, 2);
	if (slot->tts_isnull[0])
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not return a null id", query->name)));
	if (slot->tts_isnull[1])
		return true;
	id = slot->tts_values[0];
	array = gj_get_array(slot->tts_values[1], &small, &copy);
	elements = gj_array_elements(array, &kind, query->what);
	add_set(query->sets, type == INT2OID ? DatumGetInt16(id) : type == INT4OID ? DatumGetInt32(id) : DatumGetInt64(id),
			elements, kind);
	if (copy)
		pfree(array);
	return true;
}

/* Note the types of the columns that a query returns. */
static void
note_types(GjSetQuery *query, TupleDesc desc)
{
	Oid			id = desc->natts == 2 ? TupleDescAttr(desc, 0)->atttypid : InvalidOid;
	Oid			set = desc->natts == 2 ? TupleDescAttr(desc, 1)->atttypid : InvalidOid;

	if ((id != INT2OID && id != INT4OID && id != INT8OID) ||
		(set != INT2ARRAYOID && set != INT4ARRAYOID && set != INT8ARRAYOID))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("%s must return an id and a set", query->name),
				 errdetail("The id is a smallint, int or bigint; the set is an array of one of these types.")));
	query->types[0] = id;
	query->types[1] = set;
}

/*
 * Make sure that the rows that come are what was expected: what the other query has called
 * may have changed a table.
 */
static void
start_rows(DestReceiver *dest, int operation, TupleDesc desc)
{
	GjSetQuery *query = (GjSetQuery *) dest;
	Oid			expected = query->types[1];

	note_types(query, desc);
	if (query->types[1] != expected)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the type of the sets of %s changed while they were read", query->name)));
}

static void
end_rows(DestReceiver *dest)
{
}

/* Prepare a query, and look at what it would return. */
static void
open_query(GjSetQuery *query, const char *text, const char *name)
{
	query->name = name;
	query->what = psprintf("a set of %s", name);
	query->dest = (DestReceiver) {add_row, start_rows, end_rows, end_rows, DestNone};
	query->plan = SPI_prepare_cursor(text, 0, NULL, CURSOR_OPT_PARALLEL_OK);
	if (query->plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
	if (!SPI_is_cursor_plan(query->plan))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be one statement that returns rows", name)));
	note_types(query, linitial_node(CachedPlanSource, SPI_plan_get_plan_sources(query->plan))->resultDesc);
}

/* Add all rows of a query. */
static void
fetch_sets(GjSets *sets, GjSetQuery *query)
{
	SPIExecuteOptions options = {.read_only = true,.dest = &query->dest};
	int			result;

	query->sets = sets;
	result = SPI_execute_plan_extended(query->plan, &options);
	if (result < 0)
		elog(ERROR, "SPI_execute_plan failed: %s", SPI_result_code_string(result));
}

/* An id and where its set is. */
typedef struct GjIdPlace
{
	int64		id;
	uint32		set;
} GjIdPlace;

static inline int
compare_places(const GjIdPlace *x, const GjIdPlace *y)
{
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->set < y->set ? -1 : x->set > y->set;
}

#define ST_SORT sort_places
#define ST_ELEMENT_TYPE GjIdPlace
#define ST_COMPARE(a, b) compare_places(a, b)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

/* Put sets first .. end-1 into the order of their ids. */
static void
order_by_id(GjSets *sets, uint32 first, uint32 end)
{
	size_t		width = gj_element_width(sets->kind);
	uint32		n = end - first;
	uint64		base = sets->offset[first];
	uint64		nelements = sets->offset[end] - base;
	uint32		ascending = 1;
	GjIdPlace  *place;
	char	   *elements;
	uint64	   *offset;
	uint64		at = base;

	while (ascending < n && sets->id[first + ascending - 1] <= sets->id[first + ascending])
		ascending++;
	if (ascending >= n)
		return;
	place = grow(CurrentMemoryContext, NULL, n, sizeof(GjIdPlace));
	for (uint32 i = 0; i < n; i++)
		place[i] = (GjIdPlace) {sets->id[first + i], i};
	sort_places(place, n);
	elements = grow(sets->cxt, NULL, base + nelements + 1, width);
	offset = grow(CurrentMemoryContext, NULL, (uint64) n + 1, sizeof(uint64));
	memcpy(elements, sets->elements, base * width);
	memcpy(offset, sets->offset + first, ((Size) n + 1) * sizeof(uint64));
	for (uint32 i = 0; i < n; i++)
	{
		uint64		from = offset[place[i].set];
		uint64		size = offset[place[i].set + 1] - from;

		memcpy(elements + at * width, sets->elements + from * width, size * width);
		sets->id[first + i] = place[i].id;
		sets->offset[first + i] = at;
		at += size;
	}
	pfree(sets->elements);
	sets->elements = elements;
	sets->element_room = base + nelements + 1;
	pfree(place);
	pfree(offset);
}

GjSets *
gj_sets_load(MemoryContext cxt, const char *left_query, const char *right_query)
{
	GjSets	   *sets = MemoryContextAllocZero(cxt, sizeof(GjSets));
	GjSetQuery	queries[2] = {0};
	int			nqueries = right_query == NULL ? 1 : 2;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	open_query(&queries[0], left_query, "left_query");
	if (right_query != NULL)
		open_query(&queries[1], right_query, "right_query");

	sets->cxt = cxt;
	sets->kind = GJ_INT4;
	for (int i = 0; i < nqueries; i++)
		if (queries[i].types[1] == INT8ARRAYOID)
			sets->kind = GJ_INT8;
	sets->self = right_query == NULL;
	sets->room = 1024;
	sets->id = grow(cxt, NULL, sets->room, sizeof(int64));
	sets->offset = grow(cxt, NULL, sets->room + 1, sizeof(uint64));
	sets->offset[0] = 0;
	sets->element_room = 16384;
	sets->elements = grow(cxt, NULL, sets->element_room, gj_element_width(sets->kind));

	fetch_sets(sets, &queries[0]);
	sets->nleft = sets->nsets;
	order_by_id(sets, 0, sets->nleft);
	if (right_query != NULL)
	{
		fetch_sets(sets, &queries[1]);
		order_by_id(sets, sets->nleft, sets->nsets);
	}
	SPI_finish();
	return sets;
}
