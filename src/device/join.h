/*
 * join.h
 *	  What operators of joins, groups and sorts take, beside tables (table.h).
 */
#ifndef GJ_DEVICE_JOIN_H
#define GJ_DEVICE_JOIN_H

#include "table.h"

/* ---- nested loop */

/* A tuple's value <op> a row's value. */
typedef enum GjTermOp
{
	GJ_TERM_EQ,
	GJ_TERM_NE,
	GJ_TERM_LT,
	GJ_TERM_LE,
	GJ_TERM_GT,
	GJ_TERM_GE
} GjTermOp;

typedef struct GjTerm
{
	uint32_t	op;				/* GjTermOp */
	uint32_t	narrow;			/* 1: all values of both sides fit 32 bits */
	const int64_t *outer;		/* ordered_keys of the view's tuples */
	const int64_t *inner;		/* of the inner side's rows */
} GjTerm;

/*
 * A nested loop of a view's tuples over the rows of an inner side.  A pair matches if all
 * terms are true and so is the condition; there are terms or a condition, not both, or
 * neither: then every pair matches.  All arrays are device memory.
 *
 * The pairs are worked on in tiles, numbered from 0; see gj_nested_tiling.
 */
typedef struct GjNested
{
	const GjView *view;
	const uint32_t *rows;		/* row ids of the inner side, NULL: 0 .. nrows-1 */
	uint32_t	nrows;
	uint32_t	inner_source;
	int32_t		condition;		/* expression, or -1 */
	uint32_t	nterms;
	GjTerm		terms[GJ_MAX_KEYS];
	const uint8_t *outer_null;	/* of the terms: 1 for tuples and rows that match nothing */
	const uint8_t *inner_null;
	uint8_t    *tuple_matched;	/* flags of the tuples, to be set to 1, or NULL */
	uint8_t    *row_matched;	/* the same of the rows, by row id, or NULL */
	bool		write;			/* write pairs; else only count them */
	uint32_t	capacity;		/* pairs that may be written, at least GJ_NESTED_TILE */
	uint32_t   *tuple;			/* number of each pair's tuple in the view, or NULL */
	uint32_t   *out[GJ_MAX_SOURCES];	/* row ids of the pairs, as hash_expand writes them */
} GjNested;

#define GJ_NESTED_TILE		16384	/* pairs of a tile, at most */
#define GJ_NESTED_TUPLES	1024	/* tuples of a tile, at most */

typedef struct GjTiling
{
	uint32_t	tuples;			/* of a tile: 128 or GJ_NESTED_TUPLES */
	uint32_t	rows;
	uint32_t	across;			/* tiles with the same tuples; they are numbered next to each other */
	uint64_t	ntiles;
} GjTiling;

/* Tiles of a nested loop: tile t has tuples t / across * tuples .. and rows t % across * rows .. */
static inline GjTiling
gj_nested_tiling(uint32_t ntuples, uint32_t nrows)
{
	GjTiling	tiling;

	tiling.tuples = ntuples > GJ_NESTED_TUPLES / 2 ? GJ_NESTED_TUPLES : 128;
	tiling.rows = GJ_NESTED_TILE / tiling.tuples;
	tiling.across = (uint32_t) (((uint64_t) nrows + tiling.rows - 1) / tiling.rows);
	tiling.ntiles = ((uint64_t) ntuples + tiling.tuples - 1) / tiling.tuples * tiling.across;
	return tiling;
}

/*
 * Group keys of nrows rows (tuples, or the groups found so far), device memory.  A value is
 * a register's, or what GjGroupKey says of its kind; references point into heap[k].
 */
typedef struct GjGroupRows
{
	uint32_t	nkeys;
	uint32_t	nrows;
	uint32_t   *null;			/* bit k: key k is NULL */
	uint64_t   *hash;			/* of all keys */
	int64_t    *value[GJ_MAX_GROUP_KEYS];
	const uint8_t *heap[GJ_MAX_GROUP_KEYS];
	uint8_t		how[GJ_MAX_GROUP_KEYS];	/* GjGroupHow */
} GjGroupRows;

/*
 * The groups found so far and a hash table over them: open addressing, a slot holds 32 bits
 * of the hash and a number.  While tuples are looked up, numbers from rows.nrows on stand
 * for tuples that no group has yet: the first of each new group to arrive.
 */
typedef struct GjGroups
{
	GjGroupRows rows;			/* one a group, its keys those of a tuple in it */
	uint64_t	nslots;			/* at least twice what the table holds, below 2^32 */
	uint64_t   *slots;
	uint8_t    *heap;			/* bytes of references, in the order of groups, then keys */
	uint64_t   *heap_end;		/* end of each group's bytes; NULL: no key is a reference */
	GjAggState *state[GJ_MAX_AGGREGATES];	/* of each aggregate, one a group */
} GjGroups;

/* Which rows of many are wanted: the first ones in the order of some keys. */
typedef struct GjSortLimit
{
	uint32_t	limit;			/* this many */
	uint32_t	descending;		/* bit k: by key k greater values come first */
	bool		ties;			/* and rows that equal the last one in all keys */
	uint32_t	slack;			/* with ties: or come later by the last key alone, by no more than
								 * this; their own order is any */
	bool		bounded;		/* only rows that come before `bound`, or with ties are equal to it */
	int64_t		bound[GJ_MAX_KEYS];	/* host */
} GjSortLimit;

/* Bytes a row that sort_rows works with: values and rows twice, and as much for a pass over them. */
#define GJ_SORT_SPACE		36

#endif							/* GJ_DEVICE_JOIN_H */
