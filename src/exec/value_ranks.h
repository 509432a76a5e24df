/*
 * value_ranks.h
 *	  Different values, their numbers and their ranks.
 */
#ifndef GJ_EXEC_VALUE_RANKS_H
#define GJ_EXEC_VALUE_RANKS_H

#include "postgres.h"

#include "catalog/pg_attribute.h"
#include "utils/sortsupport.h"

typedef struct GjRanks
{
	MemoryContext cxt;			/* of all that is kept here */
	SortSupportData ssup;
	int16		length;			/* of the attribute */
	bool		byval;
	struct value_hash *different;	/* values by their bytes */
	Datum	   *values;			/* [nvalues], by number: copies of the first that came */
	uint32		nvalues;
	uint32		room;			/* of values */
} GjRanks;

/* Values of an attribute, in the order of an ordering operator.  Deleting cxt frees them. */
extern void gj_ranks_init(GjRanks *ranks, Oid operator, Oid collation, Form_pg_attribute attr,
						  MemoryContext cxt);

/* The number of a value, which is not NULL: 0, 1, .. in the order in which different ones came. */
extern uint32 gj_ranks_number(GjRanks *ranks, Datum value);

/*
 * The rank of each number, ascending whatever the operator's direction: palloced, for the caller to
 * free.  *highest: the greatest of them.
 */
extern uint32 *gj_ranks_make(GjRanks *ranks, uint64 *highest);

#endif							/* GJ_EXEC_VALUE_RANKS_H */
