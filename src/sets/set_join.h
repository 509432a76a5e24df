/*
 * set_join.h
 *	  Set joins in the backend: loading families with SQL, and running the join on the
 *	  device or in the process.
 */
#ifndef GJ_SETS_SET_JOIN_H
#define GJ_SETS_SET_JOIN_H

#include "sets/array_pair.h"
#include "wire/sets.h"

/*
 * The sets of one or two queries: those of the left one first, each family in the order of
 * its ids.  Elements are sorted and unique within a set.
 */
typedef struct GjSets
{
	MemoryContext cxt;			/* of all that follows */
	GjKind		kind;			/* GJ_INT4, or GJ_INT8 if a query returns int8[] */
	uint32		nsets;
	uint32		nleft;
	bool		self;			/* one query: the right family is the left one */
	uint32		room;			/* of id; offset has one more */
	int64	   *id;
	uint64	   *offset;			/* of a set's elements; one more than sets */
	uint64		element_room;
	char	   *elements;
} GjSets;

/*
 * Runs the queries (right_query may be NULL) and keeps what they return in `cxt`.  Raises
 * an error if a query is not one read-only statement that returns an integer and an array
 * of integers, or returns a NULL id or a set with a NULL element; rows whose set is NULL
 * are left out.
 */
extern GjSets *gj_sets_load(MemoryContext cxt, const char *left_query, const char *right_query);

/* The set number `set`, counted through both families. */
static inline GjElements
gj_sets_get(const GjSets *sets, uint32 set)
{
	GjElements	elements;

	elements.data = sets->elements + sets->offset[set] * gj_element_width(sets->kind);
	elements.n = sets->offset[set + 1] - sets->offset[set];
	return elements;
}

/* Number of the first set of the right family. */
#define gj_sets_first_right(sets) ((sets)->self ? 0 : (sets)->nleft)

/* A pair of the result: numbers of sets counted through both families. */
typedef struct GjPair
{
	uint32		left;
	uint32		right;
	uint32		common;
} GjPair;

typedef struct GjSetJoin GjSetJoin;

/*
 * Starts a join of loaded sets, in the current memory context, on the device if there is
 * one and the join is large enough.
 */
extern GjSetJoin *gj_set_join_start(const GjSets *sets, GjSetPredicate predicate, double threshold,
									uint32 top_k);

/*
 * The next pair; false at the end.  What fails on the device before the first pair is done
 * in the process instead; afterwards it is an error (58000).
 */
extern bool gj_set_join_next(GjSetJoin *join, GjPair *pair);

#endif							/* GJ_SETS_SET_JOIN_H */
