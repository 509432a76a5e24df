/*
 * array_pair.h
 *	  Two integer arrays as sets, and what is made of them: in the process, and on the
 *	  device.
 */
#ifndef GJ_SETS_ARRAY_PAIR_H
#define GJ_SETS_ARRAY_PAIR_H

#include "wire/columns.h"
#include "wire/sets.h"

/* The elements of one array argument, in storage order, without NULL. */
typedef struct GjElements
{
	const void *data;
	uint32		n;
} GjElements;

/* What is to be done and where its result goes. */
typedef struct GjArrayPair
{
	GjKind		kind;			/* GJ_INT2, GJ_INT4 or GJ_INT8 */
	GjSetOperation operation;
	GjElements	input[2];
	void	   *result;			/* sorted, unique; room for gj_array_pair_room(); NULL: only
								 * count */
	int64		count;			/* elements of the result */
	int64		distinct[2];	/* distinct elements of each input; only if result is NULL */
} GjArrayPair;

static inline size_t
gj_element_width(GjKind kind)
{
	return kind == GJ_INT2 ? sizeof(int16) : kind == GJ_INT4 ? sizeof(int32) : sizeof(int64);
}

/* Elements that the result can have at most. */
static inline uint64
gj_array_pair_room(const GjArrayPair *pair)
{
	switch (pair->operation)
	{
		case GJ_SETS_UNION:
			return (uint64) pair->input[0].n + pair->input[1].n;
		case GJ_SETS_EXCEPT:
			return pair->input[0].n;
		default:
			return Min(pair->input[0].n, pair->input[1].n);
	}
}

/* In the process.  Raises errors only for lack of memory and interrupts. */
extern void gj_array_pair_int2(GjArrayPair *pair);
extern void gj_array_pair_int4(GjArrayPair *pair);
extern void gj_array_pair_int8(GjArrayPair *pair);

static inline void
gj_array_pair_in_process(GjArrayPair *pair)
{
	if (pair->kind == GJ_INT2)
		gj_array_pair_int2(pair);
	else if (pair->kind == GJ_INT4)
		gj_array_pair_int4(pair);
	else
		gj_array_pair_int8(pair);
}

/*
 * On the device.  False if there is none, or it could not do it; that is counted and
 * shown at DEBUG1, and the result is undefined.
 */
extern bool gj_array_pair_on_device(GjArrayPair *pair);

/* Sorts elements and removes duplicates, in place.  Returns how many are left. */
extern uint32 gj_sort_elements(GjKind kind, void *elements, uint32 n);

/*
 * The elements of an array that has no NULL; raises 22004 with the position if it has one.
 * *kind is set by the element type, which must be int2, int4 or int8.  The text "of `what`"
 * ends the detail.
 */
struct ArrayType;
extern GjElements gj_array_elements(struct ArrayType *array, GjKind *kind, const char *what);

#endif							/* GJ_SETS_ARRAY_PAIR_H */
