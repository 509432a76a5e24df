/*
 * set_load.c
 *	  Loads families of sets with SQL: queries of the caller that return (id, set).
 *
 * The queries run with the rights of the caller, through cursors, read-only.  What they
 * return is kept here, not only sent to the device: ids and common elements are looked up
 * in it, and the process takes over with it if the device fails.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/memutils.h"

#include "sets/set_join.h"

#define GJ_FETCH_ROWS		1000	/* of a cursor at a time */

/*
 * Make sure that an array has room.
 */
static void *
grow(MemoryContext cxt, void *memory, uint64 room, size_t width)
{
	Size		size = mul_size(room, width);

	if (memory == NULL)
		return MemoryContextAllocExtended(cxt, size, MCXT_ALLOC_HUGE);
	return repalloc_huge(memory, size);
}

/*
 * Add a set: copy it, widened if necessary, sort it and remove duplicates.
 */
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
	if (at + elements.n > sets->element_room)
	{
		sets->element_room = Max(sets->element_room * 2, at + elements.n);
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

/*
 * Open a cursor for a query, after a look at what it would return.
 */
static Portal
open_query(const char *query, const char *name)
{
	SPIPlanPtr	plan = SPI_prepare(query, 0, NULL);
	Portal		portal;
	Oid			types[2] = {InvalidOid, InvalidOid};

	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
	if (!SPI_is_cursor_plan(plan))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be one statement that returns rows", name)));
	portal = SPI_cursor_open(NULL, plan, NULL, NULL, true);
	for (int i = 0; i < 2 && portal->tupDesc->natts == 2; i++)
		types[i] = TupleDescAttr(portal->tupDesc, i)->atttypid;
	if ((types[0] != INT2OID && types[0] != INT4OID && types[0] != INT8OID) ||
		(types[1] != INT2ARRAYOID && types[1] != INT4ARRAYOID && types[1] != INT8ARRAYOID))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("%s must return an id and a set", name),
				 errdetail("The id is a smallint, int or bigint; the set is an array of one of these types.")));
	return portal;
}

/*
 * Add the set of a row.
 */
static void
add_row(GjSets *sets, HeapTuple tuple, TupleDesc desc, const char *name, const char *what)
{
	bool		isnull;
	Datum		id = SPI_getbinval(tuple, desc, 1, &isnull);
	Datum		set;
	ArrayType  *array;
	GjElements	elements;
	GjKind		kind;
	Oid			type = TupleDescAttr(desc, 0)->atttypid;

	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not return a null id", name)));
	set = SPI_getbinval(tuple, desc, 2, &isnull);
	if (isnull)
		return;
	array = DatumGetArrayTypeP(set);
	elements = gj_array_elements(array, &kind, what);
	add_set(sets, type == INT2OID ? DatumGetInt16(id) : type == INT4OID ? DatumGetInt32(id) : DatumGetInt64(id),
			elements, kind);
}

/*
 * Add all rows of a query.
 */
static void
fetch_sets(GjSets *sets, Portal portal, const char *name)
{
	MemoryContext row_cxt = AllocSetContextCreate(CurrentMemoryContext, "gpujoin sets", ALLOCSET_DEFAULT_SIZES);
	char	   *what = psprintf("a set of %s", name);

	for (;;)
	{
		MemoryContext caller;

		SPI_cursor_fetch(portal, true, GJ_FETCH_ROWS);
		if (SPI_processed == 0)
			break;
		caller = MemoryContextSwitchTo(row_cxt);
		for (uint64 i = 0; i < SPI_processed; i++)
		{
			add_row(sets, SPI_tuptable->vals[i], SPI_tuptable->tupdesc, name, what);
			MemoryContextReset(row_cxt);
		}
		MemoryContextSwitchTo(caller);
		SPI_freetuptable(SPI_tuptable);
		CHECK_FOR_INTERRUPTS();
	}
	MemoryContextDelete(row_cxt);
	SPI_cursor_close(portal);
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

/*
 * Put sets first .. end-1 into the order of their ids.
 */
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

/*
 * Load the sets of both queries.
 */
GjSets *
gj_sets_load(MemoryContext cxt, const char *left_query, const char *right_query)
{
	GjSets	   *sets = MemoryContextAllocZero(cxt, sizeof(GjSets));
	Portal		portal[2] = {NULL, NULL};

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	portal[0] = open_query(left_query, "left_query");
	if (right_query != NULL)
		portal[1] = open_query(right_query, "right_query");

	sets->cxt = cxt;
	sets->kind = GJ_INT4;
	for (int i = 0; i < 2 && portal[i] != NULL; i++)
		if (TupleDescAttr(portal[i]->tupDesc, 1)->atttypid == INT8ARRAYOID)
			sets->kind = GJ_INT8;
	sets->self = right_query == NULL;
	sets->room = 1024;
	sets->id = grow(cxt, NULL, sets->room, sizeof(int64));
	sets->offset = grow(cxt, NULL, sets->room + 1, sizeof(uint64));
	sets->offset[0] = 0;
	sets->element_room = 16384;
	sets->elements = grow(cxt, NULL, sets->element_room, gj_element_width(sets->kind));

	fetch_sets(sets, portal[0], "left_query");
	sets->nleft = sets->nsets;
	order_by_id(sets, 0, sets->nleft);
	if (portal[1] != NULL)
	{
		fetch_sets(sets, portal[1], "right_query");
		order_by_id(sets, sets->nleft, sets->nsets);
	}
	SPI_finish();
	return sets;
}
