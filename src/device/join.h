/*
 * join.h
 *	  What operators of joins, groups and sorts take: keys, tables, groups.  For device.h.
 */
#ifndef GJ_DEVICE_JOIN_H
#define GJ_DEVICE_JOIN_H

#include "rows/expression.h"

/* ---- keys and tables */

/* Normalised join keys of n rows, device memory; null[i] = 1 if any key of row i is NULL. */
typedef struct GjKeys
{
	uint32_t	nkeys;
	uint32_t	nrows;
	int64_t    *value[GJ_MAX_KEYS];
	uint8_t    *null;
} GjKeys;

/* One distinct key of the inner side and its rows: rows[start .. start+count). */
typedef struct GjHashSlot
{
	uint64_t	key;			/* the key if there is one, else the hash of the keys */
	uint32_t	start;
	uint32_t	count;			/* 0: empty slot; or a payload, which is never 0 */
} GjHashSlot;

/*
 * A hash table over an inner side, read-only once built: open addressing with linear
 * probing over distinct keys; the row ids of equal keys lie next to each other, so
 * any number of duplicates costs a probe nothing.  Rows with a NULL key are left
 * out.  All arrays are device memory, given back by hash_free.
 *
 * A direct table has `place` instead of slots and rows: there is one key, it is unique,
 * and the row id of key low + i is place[i], GJ_NO_ROW if no row has it, i < nslots.  What a
 * probe finds are these row ids.  A dense one has no place either: the row id of key low + i is i.
 *
 * A table of one key, unique, can have payloads, the values of a column (rows/hash.h: gj_payload): in
 * its slots, which need no counts then, or, a direct one, in an array beside `place`.  A probe that
 * wants nothing else of a row reads one place in memory, not two.
 *
 * A table of one key can have a filter, which says of most keys that are not there that they are not, in
 * a fraction of its memory: with slots, that of rows/hash.h, nkey_filter words, 8 bits a row or more; a
 * direct one, a bit for each place.
 *
 * A sorted side (sort_build) is one without slots: `rows` in the order of keys, whose
 * values are in that order too; a probe searches them (rows/sorted.h).  It may have `bucket`:
 * the rows whose first value is low + (b << shift) or more start with row bucket[b], b <= nslots.
 */
typedef struct GjHashTable
{
	GjHashSlot *slots;
	uint64_t	nslots;
	uint32_t   *place;			/* NULL: the table is not a direct one */
	uint32_t   *bucket;			/* [nslots + 1] or NULL */
	int64_t		low;
	uint32_t	shift;
	uint32_t   *rows;			/* row ids of the relation, grouped by key */
	uint32_t	nrows;			/* rows in the table */
	uint32_t	max_count;		/* of any key: 1 means that keys are unique; 0: not known */
	bool		in_order;		/* rows[i] = i for all rows, or the table is direct */
	bool		dense;
	bool		has_payload;
	uint32_t	payload;		/* column of the inner source, counted from its first */
	uint32_t   *payloads;		/* direct: [nslots], GJ_NO_ROW where no row has the key */
	uint32_t   *key_filter;		/* [nkey_filter] or NULL */
	uint32_t	nkey_filter;
	bool		partitioned;	/* how it was built, for EXPLAIN */
	GjKeys		keys;			/* of the input rows; compared where nkeys > 1 */
	uint32_t   *key_row;		/* nkeys > 1: input row whose keys rows[i] has */
} GjHashTable;

static inline bool
gj_table_is_direct(const GjHashTable *table)
{
	return table->place || table->dense;
}

/* Words of a filter of a table with slots or places. */
static inline uint64_t
gj_filter_words(const GjHashTable *table)
{
	uint64_t	nwords = 32;

	if (table->place)
		return (table->nslots + 31) / 32;
	while (nwords < (uint64_t) table->nrows / 4)
		nwords *= 2;
	return nwords;
}

/* The arrays of a table that are there; returns their number. */
#define GJ_TABLE_ARRAYS		(8 + GJ_MAX_KEYS)
static inline uint32_t
gj_table_arrays(const GjHashTable *table, void *arrays[GJ_TABLE_ARRAYS])
{
	void	   *all[] = {table->slots, table->place, table->payloads, table->key_filter, table->bucket,
	table->rows, table->key_row, table->keys.null};
	uint32_t	n = 0;

	for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i])
			arrays[n++] = all[i];
	for (uint32_t k = 0; k < table->keys.nkeys; k++)
		if (table->keys.value[k])
			arrays[n++] = table->keys.value[k];
	return n;
}

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
