/*
 * set_join.h
 *	  Set joins in the backend: loading families with SQL, running the join on the device or
 *	  in the process, and the rows of the set-returning functions.
 */
#ifndef GJ_SETS_SET_JOIN_H
#define GJ_SETS_SET_JOIN_H

#include "sets/array_pair.h"
#include "wire/messages.h"
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
 * one and the join is large enough.  Families that do not fit it are joined in blocks.
 * `distinct`: intersections are wanted instead of pairs; they are counted at once or in the process.
 */
extern GjSetJoin *gj_set_join_start(const GjSets *sets, GjSetPredicate predicate, double threshold,
									uint32 top_k, bool distinct);

/*
 * The next pair; false at the end.  What fails on the device before the first pair of a block
 * is done in the process instead; afterwards it is an error (58000).
 */
extern bool gj_set_join_next(GjSetJoin *join, GjPair *pair);

/*
 * `distinct`: the next intersection that is not empty, and how many pairs have it; each comes
 * once.  Elements are the join's, until the next call.  The rest is as above.
 */
extern bool gj_set_join_next_distinct(GjSetJoin *join, GjElements *set, int64 *frequency);

/* What is known of a join so far. */
typedef struct GjSetJoinStats
{
	bool		on_device;
	uint32		device_kind;	/* GjDeviceKind, if on_device */
	uint8		algorithm;		/* GjSetAlgorithm; AUTO: not known before the first pair */
	GjStatus	reason;			/* why the device did not do it; GJ_OK: it did, or was not asked */
	uint64		ncompared;		/* pairs looked at; on the device known at the end only, 0 before */
	uint64		nreturned;		/* pairs handed out; distinct: their frequencies */
	bool		complete;		/* the last one was handed out */
	uint32		nblocks;		/* that the families were cut into, so far */
	GjRunStats	run;			/* on the device, at the end; else zeroes */
} GjSetJoinStats;

extern const GjSetJoinStats *gj_set_join_stats(const GjSetJoin *join);

/* ---- the set-returning functions */

typedef enum GjSetFunction
{
	GJ_SET_JOIN,
	GJ_SET_JOIN_ITEMS,
	GJ_SET_TOPK,
	GJ_INTERSECT_FAMILY,
	GJ_NSET_FUNCTIONS
} GjSetFunction;

#define GJ_SET_MAX_COLUMNS	5	/* of a row */
#define GJ_SET_MAX_ARGUMENTS 4

typedef struct GjSetArguments
{
	char	   *left_query;
	char	   *right_query;	/* NULL: the left one with itself */
	GjSetPredicate predicate;	/* or metric */
	double		threshold;
	int32		k;				/* GJ_SET_TOPK, else 0 */
} GjSetArguments;

/*
 * Reads the arguments of a function, in their order in SQL, into the current memory
 * context.  Raises an error if one is not valid.
 */
extern void gj_set_arguments(GjSetFunction function, const NullableDatum *argument,
							 GjSetArguments *arguments);

/* The predicate (or metric) of a name, or -1; the name of a predicate. */
extern int	gj_find_set_predicate(const char *name);
extern const char *gj_set_predicate_name(GjSetPredicate predicate);

/*
 * A call of a function: makes its rows.  It lives in `cxt` and holds the sets and, from
 * gj_set_call_start() to gj_set_call_stop() or the end of `cxt`, a run on the device.
 */
typedef struct GjSetCall GjSetCall;

extern GjSetCall *gj_set_call_create(MemoryContext cxt, GjSetFunction function);

/*
 * Starts from the beginning.  Runs the queries, unless it was started with the same ones
 * before: to be used again only within one execution of a statement.
 */
extern void gj_set_call_start(GjSetCall *call, const GjSetArguments *arguments);

/* The next row: no column is NULL, arrays are in the current memory context.  False: the end. */
extern bool gj_set_call_next(GjSetCall *call, Datum *values);

/* Gives back everything but the sets. */
extern void gj_set_call_stop(GjSetCall *call);

/* The sets of a call that was started, and what is known of its join; NULL: not started. */
extern const GjSets *gj_set_call_sets(const GjSetCall *call);
extern const GjSetJoinStats *gj_set_call_stats(const GjSetCall *call);

#endif							/* GJ_SETS_SET_JOIN_H */
