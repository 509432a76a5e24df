/*
 * fused.h
 *	  What the fused operator takes: fused_rows.h says what it does with these.  For device.h.
 */
#ifndef GJ_DEVICE_FUSED_H
#define GJ_DEVICE_FUSED_H

#include "groups.h"
#include "join.h"

#define GJ_FUSED_STEPS		10
#define GJ_FUSED_EXPRS		32
#define GJ_FUSED_TERMS		24
#define GJ_FUSED_FACTORS	32
#define GJ_FUSED_AGGREGATES 8
#define GJ_FUSED_GROUP_KEYS 8
#define GJ_FUSED_PARTS		1024	/* of one call */
#define GJ_FUSED_WALK		64	/* rows of a key that are looked at in turn, at most */
#define GJ_FUSED_PROBE		16	/* probe columns whose values missed tuples take with them */

/* A text of n bytes, at most GJ_MAX_TEXT, from word `at` of the program's constants on. */
#define GJ_FUSED_TEXT(at, n)	((int64_t) (at) << 16 | (n))
#define GJ_BYTES_NOT		1	/* the result is the opposite */
#define GJ_BYTES_UTF8		2	/* LIKE: characters are UTF-8 */
#define GJ_BYTES_TRIMMED	0x80	/* of a form: without blanks at the end */

/* A value, or a term of a condition. */
typedef struct GjFusedExpr
{
	uint8_t		form;			/* GjFusedForm; RANGE, ANSWER and OR only of a term */
	uint8_t		op;				/* SIMPLE: GJ_OP_LOAD, or GjOp of two operands; BYTES: HASH_T, KEY_T,
								 * EQ_T, LIKE, IN_T; CASE: where no term is true, IF: 0, ONLY_IF: NULL */
	uint8_t		arg;			/* of that: GjKind or GjDateField; PRODUCTS, CASE: number of factors;
								 * ANSWER: the question;
								 * BYTES: the form of column a's */
	uint8_t		is_float;
	uint8_t		slot_a;			/* where the row ids of a column's source are; CASE: first of the
								 * plan's terms, .. */
	uint8_t		slot_b;			/* .. and how many there are */
	int16_t		a;				/* columns, -1: the constant */
	int16_t		b;
	int32_t		expr;			/* CODE; PRODUCTS, CASE: first of the plan's factors */
	int64_t		constant;		/* BYTES: the form of column b's; or, where b is -1, a text among the
								 * program's constants, GJ_FUSED_TEXT, or of
								 * IN_T n of these; of HASH_T and KEY_T nothing */
	int64_t		high;			/* BYTES: GJ_BYTES_NOT, GJ_BYTES_UTF8, of KEY_T GJ_KEY_...; RANGE:
								 * constant <= column a <= high; op is LOAD */
} GjFusedExpr;

/* A factor of a sum of products of integers, which an aggregate takes. */
typedef struct GjFusedFactor
{
	uint8_t		join;			/* GJ_OP_MUL_I: of the product before; ADD_I, SUB_I: the first of a
								 * product that is added to those before, or subtracted */
	uint8_t		op;				/* GJ_OP_LOAD: the column, or constant; ADD_I, SUB_I: constant + or -
								 * the column */
	uint8_t		slot;
	int16_t		column;			/* -1: the constant */
	int64_t		constant;
} GjFusedFactor;

typedef struct GjFusedCondition
{
	uint8_t		form;			/* GjFusedForm: NONE, ALL_TERMS or CODE */
	uint8_t		first;			/* of the plan's terms */
	uint8_t		n;
	int32_t		expr;
} GjFusedCondition;

/*
 * A hash join of which a tuple has at most one match; or a semi or anti join, of which it matters
 * only whether there is one.  `walks`: a key may have several rows, and they are looked at one
 * after the other, until the residual condition is true of one.
 *
 * Right and full joins mark build rows that have a match, before the filter; else they are inner
 * and left joins.  Right semi and right anti joins only mark build rows: all of a key's, or those
 * for which the residual condition is true.  No tuple goes on, so such a step is the plan's last.
 */
typedef struct GjFusedStep
{
	GjTableRef	table;
	int16_t		payload;		/* of the table: this column of the program */
	uint8_t		join_type;		/* GjJoinType */
	uint8_t		nkeys;
	uint8_t		first_key;		/* of the plan's exprs */
	uint8_t		source;
	bool		walks;			/* the table is a hash table without payloads */
	uint8_t    *marks;			/* by row id: becomes 1; NULL: nothing is marked */
	GjFusedCondition residual;
	GjFusedCondition filter;
} GjFusedStep;

typedef struct GjFusedPlan
{
	uint32_t	ncolumns;		/* of the program */
	uint32_t	first_column;	/* the probe source's columns are first_column .. */
	uint32_t	nprobe_columns;	/* .. +nprobe_columns */
	uint16_t	no_row;			/* as in GjView */
	uint8_t		nsteps;			/* of the program; fewer if no tuple gets to the others */
	uint8_t		nregisters;		/* of CODE; 0: there is none */
	uint8_t		nexprs;
	uint8_t		nterms;
	uint8_t		nfactors;
	uint8_t		naggregates;
	uint8_t		ngroup_keys;
	uint8_t		aggregate_op[GJ_FUSED_AGGREGATES];
	uint8_t		aggregate_expr[GJ_FUSED_AGGREGATES];	/* form NONE: no argument */
	uint8_t		group_how[GJ_FUSED_GROUP_KEYS];
	uint8_t		group_expr[GJ_FUSED_GROUP_KEYS];	/* of FIXED, TEXT, PADDED: SIMPLE, LOAD */
	uint32_t	nnumbers;		/* values of key 0 are 0 .. nnumbers-1; 0: it is not known */
	GjFusedCondition filter;	/* of the probe source */
	GjFusedStep steps[GJ_FUSED_STEPS];
	GjFusedExpr exprs[GJ_FUSED_EXPRS];
	GjFusedExpr terms[GJ_FUSED_TERMS];
	GjFusedFactor factors[GJ_FUSED_FACTORS];
} GjFusedPlan;

/* Probe rows 0 .. nrows-1 of columns[nprobe_columns] (host array), which may lie anywhere. */
typedef struct GjFusedPart
{
	const GjColumn *columns;
	uint32_t	nrows;
} GjFusedPart;

/*
 * Tuples without a group: of part p they are rowid[slot][first[p] .. +n[p]).  Or, `together`: those
 * of all parts are rowid[slot][0 .. n[0]), the values of probe column c that they have are
 * data[c] and nulls[c] in the same order, and rowid[0] is not written.  data[c] = NULL: not wanted.
 * References are to heap[c], which lies before those of the column in all parts, by less than
 * references can say.  There are at most GJ_FUSED_PROBE probe columns then.
 */
typedef struct GjFusedMissed
{
	uint32_t   *rowid[GJ_FUSED_STEPS + 1];	/* device memory, room for all rows; NULL: not wanted */
	bool		together;
	uint8_t    *data[GJ_FUSED_PROBE];	/* device memory, room for all rows, as the next */
	uint8_t    *nulls[GJ_FUSED_PROBE];
	const uint8_t *heap[GJ_FUSED_PROBE];
	uint32_t	first[GJ_FUSED_PARTS];	/* rows of the parts before */
	uint32_t	n[GJ_FUSED_PARTS];
} GjFusedMissed;

/*
 * Groups by integers that lie near to each other: a group is found by its place, which is
 *
 *	(number of key 0 * (numbers[1] + 1) + number of key 1) * (numbers[2] + 1) + ...
 *
 * The number of a value is value - low, that of NULL is `numbers`.  See places.h.
 */
#define GJ_PLACE_KEYS		4

typedef struct GjPlaces
{
	uint32_t	nkeys;
	uint32_t	nplaces;		/* 0: groups are not found by places */
	int64_t		low[GJ_PLACE_KEYS];
	uint32_t	numbers[GJ_PLACE_KEYS];
	uint64_t	nbytes;			/* of device memory that `add` takes */
} GjPlaces;

/* Filter, joins and aggregates in one pass. */
typedef struct GjFusedOps
{
	/*
	 * Takes the rows of the parts, at most GJ_FUSED_PARTS and together fewer than 2^31,
	 * through filter and steps.  groups = NULL: adds what comes out to the program's
	 * aggregates.  Else adds it to the aggregates of its groups, and waits.  Tuples that have
	 * none yet are left to the caller in *missed; if these are most, others may be as well.
	 * columns are all of the program's (host); those of the probe source are the parts' own.
	 * list_bytes is the memory that the device may take for lists of tuples between steps,
	 * until it returns.
	 */
	GjStatus	(*fused) (GjQueue *queue, const GjFusedPlan *plan, const GjColumn *columns,
						  const GjFusedPart *parts, uint32_t nparts, uint64_t list_bytes,
						  const GjGroups *groups, GjFusedMissed *missed);

	/*
	 * Tuples that all calls of `fused` have let through: counts[0] the filter, counts[s+1]
	 * step s.  Waits.
	 */
	GjStatus	(*fused_counts) (GjQueue *queue, uint64_t counts[GJ_FUSED_STEPS + 1]);
} GjFusedOps;

/* Groups by places: device/places.h. */
typedef struct GjPlaceOps
{
	/*
	 * Finds out whether the device can add the parts' rows to groups by places, and also all groups
	 * so far, which have been made by the plan's keys.  At most `most` places.  Waits.
	 */
	GjStatus	(*plan) (GjQueue *queue, const GjFusedPlan *plan, const GjFusedPart *parts,
								uint32_t nparts, const GjGroups *groups, uint64_t most,
								GjPlaces *places);

	/*
	 * Adds them to places in device memory.  *n (host) = places that something was added to; or
	 * UINT32_MAX: the groups do not suit, and nothing is of use.  Waits.
	 */
	GjStatus	(*add) (GjQueue *queue, const GjFusedPlan *plan, const GjColumn *columns,
							   const GjFusedPart *parts, uint32_t nparts, const GjGroups *groups,
							   const GjPlaces *places, void *memory, uint32_t *n);

	/*
	 * Makes the n places groups 0 .. n-1 of `to`, which has room for them.  Counts the rows that
	 * passed the filter (fused_counts).
	 */
	GjStatus	(*groups) (GjQueue *queue, const GjFusedPlan *plan, const GjFusedPart *parts,
								  uint32_t nparts, const GjPlaces *places, void *memory, uint32_t n,
								  const GjGroups *to);
} GjPlaceOps;

#endif							/* GJ_DEVICE_FUSED_H */
