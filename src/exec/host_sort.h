/*
 * host_sort.h
 *	  Sorts the rows of a GpuJoin in the backend, by ranks.
 */
#ifndef GJ_HOST_SORT_H
#define GJ_HOST_SORT_H

#include "executor/tuptable.h"
#include "nodes/pg_list.h"

typedef struct GjHostSort GjHostSort;

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
 * attributes are filled.  Memory is a child of the current context, and lives until
 * gj_host_sort_end().
 */
extern GjHostSort *gj_host_sort_begin(TupleDesc desc, int ncolumns, List *keys);
/* Takes a copy of a row in a virtual slot, whose values may be gone afterwards. */
extern void gj_host_sort_put(GjHostSort *sort, TupleTableSlot *slot);
/* Sorts all rows that were put. */
extern void gj_host_sort_perform(GjHostSort *sort, GjHostSortStats *stats);
/* Stores the next row in a virtual slot of `desc`; false at the end. */
extern bool gj_host_sort_next(GjHostSort *sort, TupleTableSlot *slot);
extern void gj_host_sort_end(GjHostSort *sort);

#endif							/* GJ_HOST_SORT_H */
