/*
 * sort.h
 *	  Operators that sort rows by keys, or find the first of them.
 */
#ifndef GJ_DEVICE_SORT_H
#define GJ_DEVICE_SORT_H

#include "memory.h"
#include "table.h"

/* Which rows of many are wanted: the first ones in the order of some keys. */
typedef struct GjSortLimit
{
	uint32_t	limit;			/* this many */
	uint32_t	descending;		/* bit k: by key k greater values come first */
	bool		ties;			/* and rows that equal the last one in all keys */
	uint32_t	slack;			/* with ties: or come later by the last key alone, by no more than
								 * this; their own order is any */
	bool		bounded;		/* only rows before `bound`, or with ties equal to it */
	int64_t		bound[GJ_MAX_KEYS];	/* host */
} GjSortLimit;

/* Bytes a row that sort_rows works with: values and rows twice, and as much for a pass. */
#define GJ_SORT_SPACE		36

/* The order of rows. */
typedef struct GjOrderOps
{
	/*
	 * Finds the rows wanted of keys->nrows rows, whose values are as ordered_keys makes them
	 * (keys->null is not read): their positions, in the wanted order.  positions has room
	 * for keys->nrows.  *n host.  One call, however many rows: some 10 ms for 100 million
	 * on a GPU.  Waits.
	 */
	GjStatus	(*sort_limit) (GjQueue *queue, const GjKeys *keys, const GjSortLimit *wanted,
							   uint32_t *positions, uint32_t *n);

	/*
	 * Puts all of keys->nrows > 0 rows, whose values are as ordered_keys makes them (keys->null
	 * is not read), into their order: positions[nrows].  Bit k of descending: by key k greater
	 * values come first.  Needs GJ_SORT_SPACE bytes a row besides.  May work for long: asks
	 * stop(arg).  Waits.
	 */
	GjStatus	(*sort_rows) (GjQueue *queue, const GjKeys *keys, uint32_t descending,
							  bool (*stop) (void *), void *arg, uint32_t *positions);
} GjOrderOps;

#endif							/* GJ_DEVICE_SORT_H */
