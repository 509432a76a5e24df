/*
 * intersect.h
 *	  Intersection of two integer arrays: in the process, and on the device.
 */
#ifndef GJ_SETS_INTERSECT_H
#define GJ_SETS_INTERSECT_H

#include "wire/columns.h"

/* The elements of one array argument, in storage order, without NULL. */
typedef struct GjElements
{
	const void *data;
	uint32		n;
} GjElements;

/* What is to be done and where its result goes. */
typedef struct GjIntersection
{
	GjKind		kind;			/* GJ_INT4 or GJ_INT8 */
	GjElements	input[2];
	void	   *result;			/* sorted, unique; room for the smaller input; NULL: only
								 * count */
	int64		count;			/* elements of the result */
} GjIntersection;

#define gj_element_width(kind) ((kind) == GJ_INT4 ? sizeof(int32) : sizeof(int64))

/* In the process.  Raises errors only for lack of memory and interrupts. */
extern void gj_intersect_int4(GjIntersection *intersection);
extern void gj_intersect_int8(GjIntersection *intersection);

/*
 * On the device.  False if there is none, or it could not do it; that is counted and
 * shown at DEBUG1, and the result is undefined.
 */
extern bool gj_intersect_on_device(GjIntersection *intersection);

#endif							/* GJ_SETS_INTERSECT_H */
