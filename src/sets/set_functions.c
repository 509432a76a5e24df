/*
 * set_functions.c
 *	  The SQL functions and aggregates on one or two integer arrays.
 *
 * Elements of all dimensions form the set.  Large inputs go to the device, if there is
 * one and it is willing; all others, and those that it fails on, stay in the process.
 * All functions take int2[], int4[] and int8[]: the element type of the array decides.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/memutils.h"

#include "guc.h"
#include "rows/similarity.h"
#include "sets/array_pair.h"

PG_FUNCTION_INFO_V1(gpu_intersect);
PG_FUNCTION_INFO_V1(gpu_union);
PG_FUNCTION_INFO_V1(gpu_except);
PG_FUNCTION_INFO_V1(gpu_intersect_count);
PG_FUNCTION_INFO_V1(gpu_overlaps);
PG_FUNCTION_INFO_V1(gpu_contains);
PG_FUNCTION_INFO_V1(gpu_jaccard);
PG_FUNCTION_INFO_V1(gpu_cosine);
PG_FUNCTION_INFO_V1(gpu_dice);
PG_FUNCTION_INFO_V1(gpu_overlap_coefficient);
PG_FUNCTION_INFO_V1(gpu_containment);
PG_FUNCTION_INFO_V1(gpu_set_normalize);
PG_FUNCTION_INFO_V1(gpu_union_agg_transfn);
PG_FUNCTION_INFO_V1(gpu_union_agg_combinefn);
PG_FUNCTION_INFO_V1(gpu_union_agg_serialfn);
PG_FUNCTION_INFO_V1(gpu_union_agg_deserialfn);
PG_FUNCTION_INFO_V1(gpu_union_agg_finalfn);

/* The state of gpu_union_agg, in the aggregate's memory. */
typedef struct GjUnionState
{
	GjKind		kind;
	uint32		n;				/* elements, in any order and with duplicates */
	uint32		room;
	char	   *elements;
} GjUnionState;

/* The same between processes. */
typedef struct GjUnionMessage
{
	int32		vl_len_;
	uint32		kind;
	uint32		n;
	uint32		unused;
	char		elements[FLEXIBLE_ARRAY_MEMBER];
} GjUnionMessage;

#define GJ_UNION_MIN_ROOM	64

/* Results of so many bytes are made on the stack, so that only what they need is allocated. */
#define GJ_SMALL_RESULT		1024

/* Where two small arguments are copied to. */
typedef struct GjSmallPair
{
	GjSmallArray argument[2];
} GjSmallPair;

/* Neighbours that are looked at to guess whether an array is sorted. */
#define GJ_LOOKS	64

static int64
element_at(GjKind kind, const void *data, uint32 i)
{
	return kind == GJ_INT2 ? ((const int16 *) data)[i] :
		kind == GJ_INT4 ? ((const int32 *) data)[i] : ((const int64 *) data)[i];
}

/* Guess whether an array in memory is sorted. */
static bool
looks_sorted(GjKind kind, const GjElements *elements)
{
	uint32		distance = elements->n / GJ_LOOKS;
	int64		last = PG_INT64_MIN;

	for (uint32 i = 0; i + 1 < elements->n; i += Max(distance, 1))
	{
		int64		next = element_at(kind, elements->data, i);

		if (next < last || element_at(kind, elements->data, i + 1) < next)
			return false;
		last = next;
	}
	return true;
}

/*
 * Is the device faster?  Sorted arrays in memory are combined while they are read once, which
 * takes less than to write them to a load ring.
 */
static bool
is_for_device(const GjArrayPair *pair)
{
	uint64		nelements = (uint64) pair->input[0].n + pair->input[1].n;
	const char *reason;

	if (pair->input[0].n == 0 || pair->input[1].n == 0 ||
		nelements < gj_set_device_min_elements || !gj_may_offload(&reason))
		return false;
	return gj_set_device_min_elements == 0 || pair->stored[0] != NULL || pair->stored[1] != NULL ||
		!looks_sorted(pair->kind, &pair->input[0]) || !looks_sorted(pair->kind, &pair->input[1]);
}

static void
close_stored(GjArrayPair *pair, int number)
{
	gj_close_stored(pair->stored[number]);
	pair->stored[number] = NULL;
}

/* Get an argument into memory. */
static void
get_argument(FunctionCallInfo fcinfo, int number, GjArrayPair *pair, GjKind *kind,
			 GjSmallPair *small)
{
	bool		copy;
	ArrayType  *array = gj_get_array(PG_GETARG_DATUM(number), &small->argument[number], &copy);

	pair->input[number] = gj_array_elements(array, kind, number == 0 ? "argument 1" : "argument 2");
}

/* Get the arguments that were left where they are stored. */
static void
get_stored(FunctionCallInfo fcinfo, GjArrayPair *pair, GjSmallPair *small)
{
	for (int i = 0; i < 2; i++)
	{
		if (pair->stored[i] == NULL)
			continue;
		close_stored(pair, i);
		get_argument(fcinfo, i, pair, &pair->kind, small);
	}
}

/* Get both arguments.  Large ones may stay where they are stored, for the device. */
static void
get_pair(FunctionCallInfo fcinfo, GjArrayPair *pair, GjSmallPair *small)
{
	GjKind		kinds[2];

	for (int i = 0; i < 2; i++)
	{
		pair->stored[i] = gj_open_stored(PG_GETARG_DATUM(i), &pair->input[i], &kinds[i]);
		if (pair->stored[i] == NULL)
			get_argument(fcinfo, i, pair, &kinds[i], small);
	}
	if (kinds[0] != kinds[1])
		elog(ERROR, "sets of kinds %d and %d", kinds[0], kinds[1]);
	pair->kind = kinds[0];
	pair->for_device = is_for_device(pair);
	if (!pair->for_device)
		get_stored(fcinfo, pair, small);
}

/* Do what is asked for, wherever that is best. */
static void
run_pair(FunctionCallInfo fcinfo, GjArrayPair *pair, GjSmallPair *small)
{
	if (pair->for_device && gj_array_pair_on_device(pair))
	{
		close_stored(pair, 0);
		close_stored(pair, 1);
		return;
	}
	get_stored(fcinfo, pair, small);
	gj_array_pair_in_process(pair);
}

static Oid
element_type(GjKind kind)
{
	return kind == GJ_INT2 ? INT2OID : kind == GJ_INT4 ? INT4OID : INT8OID;
}

/* Allocate an array with room for elements and slack; they begin at *elements. */
static ArrayType *
allocate_array(GjKind kind, uint64 room, void **elements)
{
	Size		size = ARR_OVERHEAD_NONULLS(1) + gj_element_width(kind) * room + GJ_INTEGERS_SLACK;
	ArrayType  *array = MemoryContextAllocHuge(CurrentMemoryContext, size);

	*elements = (char *) array + ARR_OVERHEAD_NONULLS(1);
	return array;
}

/* Write the header of an array of n > 0 elements. */
static void
write_header(GjKind kind, ArrayType *array, uint64 n)
{
	Size		size = ARR_OVERHEAD_NONULLS(1) + gj_element_width(kind) * n;

	if (!AllocSizeIsValid(size))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("array size exceeds the maximum allowed (%zu)", MaxAllocSize)));
	SET_VARSIZE(array, size);
	array->ndim = 1;
	array->dataoffset = 0;
	array->elemtype = element_type(kind);
	ARR_DIMS(array)[0] = n;
	ARR_LBOUND(array)[0] = 1;
}

/* Make an array of the first n elements of what allocate_array() returned. */
static ArrayType *
finish_array(GjKind kind, ArrayType *array, uint64 room, uint64 n)
{
	if (n == 0)
	{
		pfree(array);
		return construct_empty_array(element_type(kind));
	}
	write_header(kind, array, n);
	return n < room / 2 ? repalloc(array, VARSIZE(array)) : array;
}

/* Make an array of n elements that are somewhere else. */
static ArrayType *
copy_array(GjKind kind, const void *elements, uint64 n)
{
	Size		size = gj_element_width(kind) * n;
	ArrayType  *array;

	if (n == 0)
		return construct_empty_array(element_type(kind));
	array = palloc(ARR_OVERHEAD_NONULLS(1) + size);
	write_header(kind, array, n);
	memcpy((char *) array + ARR_OVERHEAD_NONULLS(1), elements, size);
	return array;
}

/* Make a new set of two. */
static Datum
make_set(FunctionCallInfo fcinfo, GjSetOperation operation)
{
	GjArrayPair pair = {.operation = operation,.want = GJ_WANT_ELEMENTS};
	GjSmallPair small;
	uint64		room;
	ArrayType  *array;

	get_pair(fcinfo, &pair, &small);
	room = gj_array_pair_room(&pair);
	if (room <= GJ_SMALL_RESULT / gj_element_width(pair.kind))
	{
		int64		elements[(GJ_SMALL_RESULT + GJ_INTEGERS_SLACK) / sizeof(int64)];

		pair.result = elements;
		run_pair(fcinfo, &pair, &small);
		PG_RETURN_ARRAYTYPE_P(copy_array(pair.kind, elements, pair.count));
	}
	array = allocate_array(pair.kind, room, &pair.result);
	run_pair(fcinfo, &pair, &small);
	PG_RETURN_ARRAYTYPE_P(finish_array(pair.kind, array, room, pair.count));
}

/* Elements of both sets. */
Datum
gpu_intersect(PG_FUNCTION_ARGS)
{
	return make_set(fcinfo, GJ_SETS_INTERSECT);
}

/* Elements of either set. */
Datum
gpu_union(PG_FUNCTION_ARGS)
{
	return make_set(fcinfo, GJ_SETS_UNION);
}

/* Elements of the first set that the second one does not have. */
Datum
gpu_except(PG_FUNCTION_ARGS)
{
	return make_set(fcinfo, GJ_SETS_EXCEPT);
}

/* Count the elements of both sets, or look for one; and count those of each, if wanted. */
static void
count_pair(FunctionCallInfo fcinfo, GjArrayPair *pair, GjIntegersWant want, bool of_first,
		   bool of_second)
{
	GjSmallPair small;

	*pair = (GjArrayPair) {.operation = GJ_SETS_INTERSECT,.want = want};
	pair->sizes[0] = of_first;
	pair->sizes[1] = of_second;
	get_pair(fcinfo, pair, &small);
	run_pair(fcinfo, pair, &small);
}

/* Count the intersection. */
Datum
gpu_intersect_count(PG_FUNCTION_ARGS)
{
	GjArrayPair pair;

	count_pair(fcinfo, &pair, GJ_WANT_COUNT, false, false);
	PG_RETURN_INT64(pair.count);
}

/* Tell whether two sets have an element in common. */
Datum
gpu_overlaps(PG_FUNCTION_ARGS)
{
	GjArrayPair pair;

	count_pair(fcinfo, &pair, GJ_WANT_ANY, false, false);
	PG_RETURN_BOOL(pair.count > 0);
}

/* Tell whether the first set has all elements of the second. */
Datum
gpu_contains(PG_FUNCTION_ARGS)
{
	GjArrayPair pair;

	count_pair(fcinfo, &pair, GJ_WANT_COUNT, false, true);
	PG_RETURN_BOOL(pair.count == pair.distinct[1]);
}

/* Compute a similarity. */
static Datum
similarity(FunctionCallInfo fcinfo, GjSetPredicate which)
{
	GjArrayPair pair;

	count_pair(fcinfo, &pair, GJ_WANT_COUNT, true, true);
	PG_RETURN_FLOAT8(gj_set_similarity(which, pair.count, pair.distinct[0], pair.distinct[1]));
}

Datum
gpu_jaccard(PG_FUNCTION_ARGS)
{
	return similarity(fcinfo, GJ_SETS_JACCARD);
}

Datum
gpu_cosine(PG_FUNCTION_ARGS)
{
	return similarity(fcinfo, GJ_SETS_COSINE);
}

Datum
gpu_dice(PG_FUNCTION_ARGS)
{
	return similarity(fcinfo, GJ_SETS_DICE);
}

Datum
gpu_overlap_coefficient(PG_FUNCTION_ARGS)
{
	return similarity(fcinfo, GJ_SETS_OVERLAP_COEFFICIENT);
}

Datum
gpu_containment(PG_FUNCTION_ARGS)
{
	return similarity(fcinfo, GJ_SETS_CONTAINMENT);
}

/* Make a set of elements. */
static Datum
return_set(GjKind kind, const void *data, uint32 n)
{
	void	   *elements;
	ArrayType  *array = allocate_array(kind, n, &elements);

	memcpy(elements, data, gj_element_width(kind) * n);
	PG_RETURN_ARRAYTYPE_P(finish_array(kind, array, n, gj_sort_elements(kind, elements, n)));
}

/*
 * Sort an array and remove duplicates: the final function of gpu_intersect_agg, whose
 * state is the very first set if there was only one.
 */
Datum
gpu_set_normalize(PG_FUNCTION_ARGS)
{
	GjKind		kind;
	GjSmallArray small;
	bool		copy;
	GjElements	elements = gj_array_elements(gj_get_array(PG_GETARG_DATUM(0), &small, &copy), &kind,
											 "the array");

	return return_set(kind, elements.data, elements.n);
}

/* ---- gpu_union_agg */

/* Return the memory of the aggregate. */
static MemoryContext
aggregate_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		elog(ERROR, "gpu_union_agg was called outside an aggregate");
	return context;
}

/*
 * Add elements to a state.  Duplicates go whenever the room is used up; it is doubled only
 * if that leaves less than half of it free.
 */
static GjUnionState *
add_elements(MemoryContext context, GjUnionState *state, GjKind kind, const void *data, uint32 n)
{
	Size		width = gj_element_width(kind);

	if (state == NULL)
	{
		state = MemoryContextAllocZero(context, sizeof(GjUnionState));
		state->kind = kind;
		state->room = GJ_UNION_MIN_ROOM;
		state->elements = MemoryContextAlloc(context, width * state->room + GJ_INTEGERS_SLACK);
	}
	if (state->kind != kind)
		elog(ERROR, "sets of kinds %d and %d", state->kind, kind);
	if (n > state->room - state->n)
	{
		state->n = gj_sort_elements(kind, state->elements, state->n);
		if (n > state->room - state->n || state->n > state->room / 2)
		{
			uint64		room = Max((uint64) state->room * 2, ((uint64) state->n + n) * 2);

			room = Min(room, (MaxAllocSize - GJ_INTEGERS_SLACK) / width);
			if (room < (uint64) state->n + n)
				ereport(ERROR,
						(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						 errmsg("array size exceeds the maximum allowed (%zu)", MaxAllocSize)));
			if (room > state->room)
				state->elements = repalloc(state->elements, width * room + GJ_INTEGERS_SLACK);
			state->room = room;
		}
	}
	memcpy(state->elements + width * state->n, data, width * n);
	state->n += n;
	return state;
}

/* Add a set. */
Datum
gpu_union_agg_transfn(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	GjUnionState *state = PG_ARGISNULL(0) ? NULL : (GjUnionState *) PG_GETARG_POINTER(0);

	if (!PG_ARGISNULL(1))
	{
		GjKind		kind;
		GjSmallArray small;
		bool		copy;
		GjElements	elements = gj_array_elements(gj_get_array(PG_GETARG_DATUM(1), &small, &copy),
												 &kind, "the array");

		state = add_elements(context, state, kind, elements.data, elements.n);
	}
	if (state == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(state);
}

/* Add the second state to the first. */
Datum
gpu_union_agg_combinefn(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	GjUnionState *state = PG_ARGISNULL(0) ? NULL : (GjUnionState *) PG_GETARG_POINTER(0);

	if (!PG_ARGISNULL(1))
	{
		GjUnionState *other = (GjUnionState *) PG_GETARG_POINTER(1);

		state = add_elements(context, state, other->kind, other->elements, other->n);
	}
	if (state == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(state);
}

/* Write a state for another process. */
Datum
gpu_union_agg_serialfn(PG_FUNCTION_ARGS)
{
	GjUnionState *state = (GjUnionState *) PG_GETARG_POINTER(0);
	GjUnionMessage *message;
	Size		size;

	state->n = gj_sort_elements(state->kind, state->elements, state->n);
	size = offsetof(GjUnionMessage, elements) + gj_element_width(state->kind) * state->n;
	if (!AllocSizeIsValid(size))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("array size exceeds the maximum allowed (%zu)", MaxAllocSize)));
	message = palloc0(size);
	SET_VARSIZE(message, size);
	message->kind = state->kind;
	message->n = state->n;
	memcpy(message->elements, state->elements, gj_element_width(state->kind) * state->n);
	PG_RETURN_POINTER(message);
}

/* Read what gpu_union_agg_serialfn() wrote. */
Datum
gpu_union_agg_deserialfn(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	Size		head = offsetof(GjUnionMessage, elements) - VARHDRSZ;
	uint32		kind_and_n[2];

	if (VARSIZE_ANY_EXHDR(bytes) < head)
		elog(ERROR, "a state of gpu_union_agg is damaged");
	memcpy(kind_and_n, VARDATA_ANY(bytes), sizeof(kind_and_n));
	if (kind_and_n[0] < GJ_INT2 || kind_and_n[0] > GJ_INT8 ||
		VARSIZE_ANY_EXHDR(bytes) - head != gj_element_width(kind_and_n[0]) * kind_and_n[1])
		elog(ERROR, "a state of gpu_union_agg is damaged");
	PG_RETURN_POINTER(add_elements(context, NULL, kind_and_n[0], VARDATA_ANY(bytes) + head, kind_and_n[1]));
}

/* Make the result of a state, which stays as it is to whoever adds more. */
Datum
gpu_union_agg_finalfn(PG_FUNCTION_ARGS)
{
	GjUnionState *state = PG_ARGISNULL(0) ? NULL : (GjUnionState *) PG_GETARG_POINTER(0);

	if (state == NULL)
		PG_RETURN_NULL();
	return return_set(state->kind, state->elements, state->n);
}
