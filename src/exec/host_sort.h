/*
 * host_sort.h
 *	  Sorts the rows of a GpuJoin in the backend, by ranks.
 */
#ifndef GJ_HOST_SORT_H
#define GJ_HOST_SORT_H

#include "executor/tuptable.h"
#include "nodes/pg_list.h"

typedef struct GjHostSort GjHostSort;

/* Rows in memory, one after the other: `ncolumns` values each. */
typedef struct GjRowBlock
{
	int			ncolumns;
	Datum	   *values;
	bool	   *isnull;
} GjRowBlock;

/* What EXPLAIN ANALYZE tells of a sort. */
typedef struct GjHostSortStats
{
	bool		done;
	bool		ranked;			/* else PostgreSQL's own sort has taken over */
	int64		nvalues;		/* that have ranks */
	int64		kbytes;			/* of memory */
} GjHostSortStats;

/* True if the bits of a value tell its order by this operator: it needs no rank. */
extern bool gj_is_word_order(Oid operator);

/*
 * Begins to sort rows of `desc` by `keys`, a list of GjHostSortKey lists.  The first `ncolumns`
 * attributes are filled.  At least `expected` rows will come.  Memory is a child of the current
 * context, and lives until gj_host_sort_end().
 */
extern GjHostSort *gj_host_sort_begin(TupleDesc desc, int ncolumns, List *keys, uint32 expected);
/* Where the next n rows are to be stored; all values are NULL so far. */
extern GjRowBlock gj_host_sort_reserve(GjHostSort *sort, uint32 n);
/* Takes the first n of them in, and copies what their values refer to. */
extern void gj_host_sort_put(GjHostSort *sort, uint32 n);
/* Sorts all rows that were put. */
extern void gj_host_sort_perform(GjHostSort *sort, GjHostSortStats *stats);
/*
 * Stores n columns of the next row in a virtual slot: `columns`, from 0; NULL: the first ones.
 * False at the end.
 */
extern bool gj_host_sort_next(GjHostSort *sort, const int *columns, int n, TupleTableSlot *slot);
extern void gj_host_sort_end(GjHostSort *sort);

#endif							/* GJ_HOST_SORT_H */
