/*
 * array_pair.h
 *	  Two integer arrays as sets, and what is made of them: in the process, and on the
 *	  device.
 */
#ifndef GJ_SETS_ARRAY_PAIR_H
#define GJ_SETS_ARRAY_PAIR_H

#include "compat.h"
#include "integers/integers.h"
#include "wire/columns.h"
#include "wire/sets.h"

/* The elements of one array argument, in storage order, without NULL. */
typedef struct GjElements
{
	const void *data;
	uint32		n;
} GjElements;

/* Reads the elements of a large array that lies in a TOAST table, one after the other. */
typedef struct GjStoredReader GjStoredReader;

/* What is to be done and where its result goes. */
typedef struct GjArrayPair
{
	GjKind		kind;			/* GJ_INT2, GJ_INT4 or GJ_INT8 */
	GjSetOperation operation;
	GjIntegersWant want;		/* what is not wanted may be found all the same */
	bool		sizes[2];		/* wanted, too: distinct[] */
	GjElements	input[2];		/* data is NULL if stored[] reads them */
	GjStoredReader *stored[2];	/* or NULL */
	bool		for_device;		/* where to begin */
	void	   *result;			/* GJ_WANT_ELEMENTS: sorted, unique; room for gj_array_pair_room()
								 * elements and GJ_INTEGERS_SLACK bytes; else NULL */
	int64		count;			/* elements of the result; GJ_WANT_ANY: 0 if there are none */
	int64		distinct[2];	/* distinct elements of each input */
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
	return gj_integers_room(pair->operation, pair->input[0].n, pair->input[1].n);
}

/* In the process.  Raises errors only for lack of memory and interrupts. */
extern void gj_array_pair_in_process(GjArrayPair *pair);

/*
 * On the device.  False if there is none, or it could not do it; that is counted and
 * shown at DEBUG1, and the result is undefined.
 */
extern bool gj_array_pair_on_device(GjArrayPair *pair);

/*
 * Sorts elements and removes duplicates, in place.  Returns how many are left.  Behind them is
 * room for GJ_INTEGERS_SLACK bytes, which may be overwritten.
 */
extern uint32 gj_sort_elements(GjKind kind, void *elements, uint32 n);

/* Where the elements of a small array are, behind a header that is aligned. */
typedef union GjSmallArray
{
	int64		alignment;
	char		bytes[VARHDRSZ + VARATT_SHORT_MAX];
} GjSmallArray;

/*
 * The array that is stored as a value: where it is, a copy in `small`, or another one that *copy
 * says is to be freed.
 */
struct ArrayType;
extern struct ArrayType *gj_get_array(Datum value, GjSmallArray *small, bool *copy);

/*
 * The elements of an array that has no NULL; raises 22004 with the position if it has one.
 * *kind is set by the element type, which must be int2, int4 or int8.  The text "of `what`"
 * ends the detail.
 */
extern GjElements gj_array_elements(struct ArrayType *array, GjKind *kind, const char *what);

/*
 * Opens a large array that lies in a TOAST table, without NULL: sets elements->n and *kind.  NULL:
 * it is something else.  Reads its head only.
 */
extern GjStoredReader *gj_open_stored(Datum value, GjElements *elements, GjKind *kind);

/*
 * Reads the next bytes of the elements.  The bytes before `to`, VARHDRSZ of them, belong to the
 * caller as well and stay as they are.  False: the value is compressed, and damaged.
 */
extern bool gj_read_stored(GjStoredReader *reader, uint32 nbytes, void *to);

/* Frees the reader, if there is one. */
extern void gj_close_stored(GjStoredReader *reader);

#endif							/* GJ_SETS_ARRAY_PAIR_H */
