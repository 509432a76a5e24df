/*
 * relation.h
 *	  The complete rows of one source in device memory, appended chunk by chunk.
 */
#ifndef GJ_DAEMON_BASE_RELATION_H
#define GJ_DAEMON_BASE_RELATION_H

#include "work.h"

/* Row ids are 32 bits, and one value stays free. */
#define GJ_MAX_ROWS			UINT64_C(0xFFFFFFFE)

typedef struct GjRelationColumn
{
	GjBuffer	data;
	GjBuffer	nulls;			/* none until the first chunk that has a NULL */
} GjRelationColumn;

typedef struct GjRelation
{
	uint32_t	ncolumns;
	const GjColumnType *types;
	uint64_t	nrows;
	uint64_t	hint;			/* rows to make room for at the start */
	GjRelationColumn *columns;
	GjBuffer	heap;			/* bytes of the references of all columns */
	uint64_t	heap_used;
	bool		borrowed;		/* the memory is somebody else's */
	bool		in_steps;		/* grows by gj_buffer_grow_much: some rows go elsewhere */
} GjRelation;

/* A chunk in its slot; header and null flags were read from it once. */
typedef struct GjChunk
{
	const uint8_t *slot;
	uint32_t	nrows;
	uint32_t	heap_used;
	const GjLayout *layout;
	const GjColumnPlace *places;
	const uint8_t *has_nulls;	/* [ncolumns] */
} GjChunk;

/* False: out of host memory.  `types` must stay. */
extern bool gj_relation_init(GjRelation *relation, const GjColumnType *types,
							 uint32_t ncolumns, uint64_t nrows_hint);

/* Makes room for the values of nrows more rows. */
extern GjStatus gj_relation_reserve(GjWork *work, GjRelation *relation, uint32_t nrows);

/* Queues the copies; the slot may be reused after the next sync. */
extern GjStatus gj_relation_append(GjWork *work, GjRelation *relation, const GjChunk *chunk);

/* Copies bytes that references of rows to come refer to; *base is where they begin. */
extern GjStatus gj_relation_append_heap(GjWork *work, GjRelation *relation, const void *heap,
										uint64_t nbytes, uint64_t *base);

/*
 * Queues copies of rows that lie on the device; their references, relative to a heap of
 * heap_size bytes, have been copied to `base`.  A column without data, which nothing reads,
 * stays away, in this call and all others.
 */
extern GjStatus gj_relation_append_rows(GjWork *work, GjRelation *relation,
										const GjColumn *columns, uint32_t nrows,
										uint64_t base, uint64_t heap_size);

/* Describes rows first, first+1, ... as columns[ncolumns] (host array). */
extern void gj_relation_columns(const GjRelation *relation, uint64_t first, GjColumn *columns);

/* Makes columns[n] the others' from row `first` on; one that is not read may be missing. */
static inline void
gj_columns_from(GjColumn *columns, const GjColumn *others, uint32_t n, uint64_t first)
{
	for (uint32_t c = 0; c < n; c++)
	{
		columns[c] = others[c];
		gj_column_skip(&columns[c], first);
	}
}

/*
 * Leaves nrows rows of a column, in this order; `from` describes the column with all rows.  The
 * caller sets relation->nrows when it has done so with all columns that are read.
 */
extern GjStatus gj_relation_keep(GjWork *work, GjRelation *relation, uint32_t c,
								 const GjColumn *from, const uint32_t *rows, uint32_t nrows,
								 bool (*stop) (void *), void *arg);

/* Gives a column back that nothing reads any more. */
extern void gj_relation_drop(GjWork *work, GjRelation *relation, uint32_t column);

extern void gj_relation_free(GjWork *work, GjRelation *relation);

#endif							/* GJ_DAEMON_BASE_RELATION_H */
