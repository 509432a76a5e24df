/*
 * intersect.c
 *	  The SQL functions gpu_intersect and gpu_intersect_count.
 *
 * Elements of all dimensions form the set.  Large inputs go to the device, if there is
 * one and it is willing; all others, and those that it fails on, stay in the process.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"

#include "guc.h"
#include "sets/intersect.h"

PG_FUNCTION_INFO_V1(gpu_intersect_int4);
PG_FUNCTION_INFO_V1(gpu_intersect_int8);
PG_FUNCTION_INFO_V1(gpu_intersect_count_int4);
PG_FUNCTION_INFO_V1(gpu_intersect_count_int8);

/*
 * Raise an error if an array has a NULL element.
 */
static void
check_nulls(ArrayType *array, int n, int argument)
{
	const bits8 *not_null = ARR_NULLBITMAP(array);

	if (not_null == NULL)
		return;
	for (int i = 0; i < n; i++)
	{
		if ((not_null[i / 8] & (1 << (i % 8))) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("array must not contain nulls"),
					 errdetail("Element %d of argument %d is null.", i + 1, argument)));
	}
}

/*
 * Get the elements of one argument.
 */
static GjElements
get_elements(FunctionCallInfo fcinfo, int argument)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(argument);
	GjElements	elements;

	elements.n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	elements.data = ARR_DATA_PTR(array);
	check_nulls(array, elements.n, argument + 1);
	return elements;
}

/*
 * Intersect, wherever that is best.
 */
static void
intersect(GjIntersection *intersection)
{
	uint64		nelements = (uint64) intersection->input[0].n + intersection->input[1].n;

	if (intersection->input[0].n > 0 && intersection->input[1].n > 0 && gj_enabled &&
		nelements >= gj_set_device_min_elements && gj_intersect_on_device(intersection))
		return;
	if (intersection->kind == GJ_INT4)
		gj_intersect_int4(intersection);
	else
		gj_intersect_int8(intersection);
}

/*
 * Intersect into a new array.
 */
static Datum
intersect_arrays(FunctionCallInfo fcinfo, GjKind kind)
{
	Oid			type = kind == GJ_INT4 ? INT4OID : INT8OID;
	size_t		width = gj_element_width(kind);
	GjIntersection intersection = {.kind = kind};
	ArrayType  *result;
	size_t		room;
	size_t		used;

	intersection.input[0] = get_elements(fcinfo, 0);
	intersection.input[1] = get_elements(fcinfo, 1);
	room = ARR_OVERHEAD_NONULLS(1) + width * Min(intersection.input[0].n, intersection.input[1].n);
	result = palloc(room);
	intersection.result = (char *) result + ARR_OVERHEAD_NONULLS(1);

	intersect(&intersection);
	if (intersection.count == 0)
	{
		pfree(result);
		PG_RETURN_ARRAYTYPE_P(construct_empty_array(type));
	}
	used = ARR_OVERHEAD_NONULLS(1) + width * intersection.count;
	if (used < room / 2)
		result = repalloc(result, used);
	memset(result, 0, ARR_OVERHEAD_NONULLS(1));
	SET_VARSIZE(result, used);
	result->ndim = 1;
	result->elemtype = type;
	ARR_DIMS(result)[0] = intersection.count;
	ARR_LBOUND(result)[0] = 1;
	PG_RETURN_ARRAYTYPE_P(result);
}

/*
 * Count the intersection.
 */
static Datum
count_intersection(FunctionCallInfo fcinfo, GjKind kind)
{
	GjIntersection intersection = {.kind = kind};

	intersection.input[0] = get_elements(fcinfo, 0);
	intersection.input[1] = get_elements(fcinfo, 1);
	intersect(&intersection);
	PG_RETURN_INT64(intersection.count);
}

/*
 * Intersect two int[].
 */
Datum
gpu_intersect_int4(PG_FUNCTION_ARGS)
{
	return intersect_arrays(fcinfo, GJ_INT4);
}

/*
 * Intersect two bigint[].
 */
Datum
gpu_intersect_int8(PG_FUNCTION_ARGS)
{
	return intersect_arrays(fcinfo, GJ_INT8);
}

/*
 * Count the intersection of two int[].
 */
Datum
gpu_intersect_count_int4(PG_FUNCTION_ARGS)
{
	return count_intersection(fcinfo, GJ_INT4);
}

/*
 * Count the intersection of two bigint[].
 */
Datum
gpu_intersect_count_int8(PG_FUNCTION_ARGS)
{
	return count_intersection(fcinfo, GJ_INT8);
}
