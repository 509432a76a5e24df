/*
 * join.h
 *	  Operators of joins: tables, pairs, nested loops, flags of rows with a match.  Kinds of
 *	  tables are in table.h.
 */
#ifndef GJ_DEVICE_JOIN_H
#define GJ_DEVICE_JOIN_H

#include "rows/sorted.h"
#include "memory.h"
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
	const int64_t *probe_side;		/* ordered_keys of the view's tuples */
	const int64_t *build_side;		/* of the build side's rows */
} GjTerm;

/*
 * A nested loop of a view's tuples over the rows of a build side.  A pair matches if all
 * terms are true and so is the condition; there are terms or a condition, not both, or
 * neither: then every pair matches.  All arrays are device memory.
 *
 * The pairs are worked on in tiles, numbered from 0; see gj_nested_tiling.
 */
typedef struct GjNested
{
	const GjView *view;
	const uint32_t *rows;		/* row ids of the build side, NULL: 0 .. nrows-1 */
	uint32_t	nrows;
	uint32_t	build_source;
	int32_t		condition;		/* expression, or -1 */
	uint32_t	nterms;
	GjTerm		terms[GJ_MAX_KEYS];
	const uint8_t *probe_null;	/* of the terms: 1 for tuples and rows that match nothing */
	const uint8_t *build_null;
	const uint8_t *tuple_done;	/* flags of tuples that need no more matches, whose pairs can be left
								 * out, or NULL; it may be tuple_matched, unless pairs are written */
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
	uint32_t	across;			/* tiles with the same tuples, numbered one after the other */
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

/* Tables and joins. */
typedef struct GjTableOps
{
	bool		reads_payloads; /* hash_payload is of use */
	bool		asks_filters;	/* hash_filter and filter_helps are */
	bool		joins_unique;	/* join_unique does better than hash_probe and hash_expand */
	bool		widens;			/* two keys become a wide table where there is memory */

	/*
	 * Builds a table over keys->nrows rows, whose row ids, which differ, are rowid[i], or i if
	 * rowid is NULL.  Takes over the key arrays on success.  The table may be a direct one, or a
	 * wide one, of up to most_bytes (0: none).  May work for long: asks stop(arg).  Waits.
	 */
	GjStatus	(*hash_build) (GjQueue *queue, const GjKeys *keys, const uint32_t *rowid,
							   uint64_t most_bytes, bool (*stop) (void *), void *arg,
							   GjHashTable *table);
	void		(*hash_free) (GjQueue *queue, GjHashTable *table);

	/*
	 * to[i] = from[table->place[i]], values of `width` bytes (1, 2, 4, 8 or 16), i < table->nslots:
	 * a column of the side of a direct table in the order of keys, each of which has a row.
	 */
	GjStatus	(*order_by_place) (GjQueue *queue, const GjHashTable *table, void *to,
								   const void *from, uint32_t width);

	/*
	 * Gives a table of unique keys, one or in wide slots, with slots or places, payloads: the values
	 * of a column of the build side, GJ_INT4 or GJ_INT8 without NULLs, [nrows].  Those of a direct
	 * table take as much memory as its places.  *done = false: some value does not fit
	 * (gj_payload_fits), and nothing was changed.  Waits.
	 */
	GjStatus	(*hash_payload) (GjQueue *queue, GjHashTable *table, const GjColumn *column,
								 uint32_t nrows, bool *done);

	/*
	 * Gives a table with one key, and slots or places, a filter of gj_filter_words() words, fewer
	 * than 2^31.
	 */
	GjStatus	(*hash_filter) (GjQueue *queue, GjHashTable *table);

	/* True if such a filter is read in less time than the table. */
	bool		(*filter_helps) (const GjQueue *queue, const GjHashTable *table);

	/*
	 * Sorts keys->nrows rows by ordered keys, the first value first, and drops those with a
	 * NULL: a table without slots, and max_count 1 or 0.  The rest is as for hash_build.
	 */
	GjStatus	(*sort_build) (GjQueue *queue, const GjKeys *keys, const uint32_t *rowid,
							   bool (*stop) (void *), void *arg, GjHashTable *table);

	/* hash_probe over a sorted side: keys has the values that `match` names. */
	GjStatus	(*sort_probe) (GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
							   const GjSortedMatch *match, uint64_t *offset, uint32_t *first,
							   uint64_t *total);

	/*
	 * Looks up keys->nrows keys: tuple i matches table->rows[first[i] ..], and its
	 * pairs have the numbers offset[i] .. offset[i+1]-1.  offset has nrows+1 entries;
	 * *total (host) = offset[nrows].  Waits.
	 */
	GjStatus	(*hash_probe) (GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
							   uint64_t *offset, uint32_t *first, uint64_t *total);

	/*
	 * Writes pairs cursor .. cursor+n-1 of a probe of view->nrows tuples: for each
	 * source s with out[s] set, the probe tuple's row id of s, or for s =
	 * build_source the build row's.  n <= most_tuples: the work is split evenly
	 * over pairs, however skewed the keys are.
	 */
	GjStatus	(*hash_expand) (GjQueue *queue, const GjHashTable *table, const GjView *view,
								const uint64_t *offset, const uint32_t *first,
								uint64_t cursor, uint32_t n, uint32_t build_source,
								uint32_t *const out[GJ_MAX_SOURCES]);

	/*
	 * What probing keys->nrows > 0 tuples of the view and writing their pairs gives, at once: for
	 * a table whose max_count is 1, by all of whose keys (match, of a sorted side; it has no
	 * bounds) tuples are looked up.  out has room for as many pairs as tuples; *npairs (host).
	 * Waits.
	 */
	GjStatus	(*join_unique) (GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
								const GjSortedMatch *match, const GjView *view,
								uint32_t build_source, uint32_t *const out[GJ_MAX_SOURCES],
								uint32_t *npairs);

	/*
	 * Looks at tiles first_tile .. of a nested loop: at least one, at most ntiles, fewer if
	 * the pairs of more do not fit or would take too long.  *ndone (host) = tiles, *npairs
	 * = pairs that match in them.  Waits.
	 */
	GjStatus	(*nested_loop) (GjQueue *queue, const GjNested *nested, uint64_t first_tile,
								uint32_t ntiles, uint32_t *ndone, uint64_t *npairs);

	/*
	 * Which tuples and rows have a match.  Flags are one byte each, 0 or 1, device memory.
	 *
	 * flag_counts: flags[i] = 1 if tuple i of a probe has a pair, else 0 (n tuples).
	 */
	GjStatus	(*flag_counts) (GjQueue *queue, const uint64_t *offset, uint32_t n,
								uint8_t *flags);

	/*
	 * flags[rows[positions[i]]] = value for i < n; rows = NULL: positions themselves,
	 * positions = NULL: rows[i].  Not both are NULL.
	 */
	GjStatus	(*mark_rows) (GjQueue *queue, const uint32_t *rows, const uint32_t *positions,
							  uint32_t n, uint8_t value, uint8_t *flags);

	/*
	 * flags[t] = 1 for the tuples t that pairs cursor + positions[i], i < n, of a probe of
	 * ntuples tuples belong to.  Positions ascend.
	 */
	GjStatus	(*mark_tuples) (GjQueue *queue, const uint64_t *offset, uint32_t ntuples,
								uint64_t cursor, const uint32_t *positions, uint32_t n,
								uint8_t *flags);

	/*
	 * Notes which rows of a table have a match, without their pairs: cover, of an entry more
	 * than there are rows, filled with zeros at first, says by how much more tuples match
	 * row i than match row i - 1.  Rows are numbered as a probe finds them: those of a direct
	 * table by their ids.  Tuples of equal matches may be noted as one.
	 */
	GjStatus	(*mark_ranges) (GjQueue *queue, const uint64_t *offset, const uint32_t *first,
								uint32_t n, uint64_t *cover);

	/*
	 * flags[id] = 1 for the ids of those of n rows that cover says have a match.  May work for
	 * long: asks stop(arg).  Changes cover.
	 */
	GjStatus	(*cover_rows) (GjQueue *queue, const GjHashTable *table, uint64_t *cover,
							   uint32_t n, bool (*stop) (void *), void *arg, uint8_t *flags);
} GjTableOps;

#endif							/* GJ_DEVICE_JOIN_H */
