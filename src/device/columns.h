/*
 * columns.h
 *	  Columns, expressions, keys and batches.
 */
#ifndef GJ_DEVICE_COLUMNS_H
#define GJ_DEVICE_COLUMNS_H

#include "memory.h"
#include "rows/questions.h"
#include "table.h"

/* A slot of the output ring, as gather fills it. */
typedef struct GjBatchTarget
{
	uint8_t    *slot;			/* host address of the slot */
	GjLayout	layout;
	const GjColumnPlace *places;
} GjBatchTarget;

/* How the values of a column of integers can be packed: as (value - min) / factor. */
typedef struct GjPacking
{
	int64_t		min;
	int64_t		max;
	int64_t		factor;			/* greatest that divides all value - min; 0: all are min */
	bool		any;			/* false: all rows are NULL */
} GjPacking;

/* A column of integers that is packed, or unpacked: nrows of it. */
typedef struct GjPackColumn
{
	GjColumn	from;
	void	   *to;
	uint32_t	nrows;
} GjPackColumn;

/* True if columns of a kind can be packed. */
static inline bool
gj_kind_packs(unsigned kind)
{
	return kind == GJ_INT2 || kind == GJ_INT4 || kind == GJ_INT8 || kind == GJ_UINT4;
}

/* Bytes of numbers up to `most`. */
static inline uint8_t
gj_packed_bytes(uint64_t most)
{
	return most > UINT16_MAX ? 4 : most > UINT8_MAX ? 2 : 1;
}

/* Describes how a column is packed; false: that would take no less room. */
static inline bool
gj_choose_packing(GjColumn *column, const GjPacking *packing)
{
	uint64_t	most = (uint64_t) packing->max - (uint64_t) packing->min;

	if (packing->factor != 0)
		most /= (uint64_t) packing->factor;
	if (most > UINT32_MAX || gj_packed_bytes(most) >= column->width)
		return false;
	column->packed = gj_packed_bytes(most);
	column->base = packing->min;
	column->factor = packing->factor != 0 ? packing->factor : 1;
	column->narrow = packing->min >= INT32_MIN && packing->max <= INT32_MAX;
	return true;
}

/* What offsets of the values of a column would be like. */
typedef struct GjOffsets
{
	uint64_t	nbytes;			/* of all values */
	uint64_t	widest;			/* most between offsets that share a number: see GJ_OFFSET_ROWS */
} GjOffsets;

/* Bytes of the numbers that offsets of 2 bytes share, which lie before the values of nrows rows. */
static inline uint64_t
gj_offset_table(uint32_t nrows)
{
	return ((nrows / GJ_OFFSET_ROWS + 1) * sizeof(uint32_t) + 7) & ~UINT64_C(7);
}

/* Bytes before the values of a column that has offsets. */
static inline uint64_t
gj_before_values(const GjColumn *column, uint32_t nrows)
{
	return column->packed == 2 ? gj_offset_table(nrows) : 0;
}

/* Describes a column of references that is to have offsets; false: 32 bits are too few for them. */
static inline bool
gj_choose_offsets(GjColumn *column, const GjOffsets *offsets, uint32_t nrows)
{
	if (offsets->nbytes + gj_offset_table(nrows) > UINT32_MAX)
		return false;
	column->packed = offsets->widest <= UINT16_MAX ? 2 : 4;
	column->factor = 0;
	column->narrow = 0;
	return true;
}

/* Columns, expressions, keys and batches. */
typedef struct GjColumnOps
{
	/* How n columns of integers can be packed: packing[n] (host).  Waits. */
	GjStatus	(*measure) (GjQueue *queue, const GjPackColumn *columns, uint32_t n,
							GjPacking *packing);

	/*
	 * Packs n columns, whose `from` are not packed, to `to`: as their base, factor and packed say.
	 * NULL becomes 0.
	 */
	GjStatus	(*pack) (GjQueue *queue, const GjPackColumn *columns, uint32_t n);

	/* Makes values as they are of n columns that are packed; NULL becomes 0. */
	GjStatus	(*unpack) (GjQueue *queue, const GjPackColumn *columns, uint32_t n);

	/*
	 * Numbers the different byte strings of a column of references that is not packed, from 0 on
	 * in any order: number[nrows], 0 for NULL; value[most]: a reference to each; *n (host): how
	 * many, at least 1 (value[0] = 0 where all are NULL).  More than `most`, or a held one:
	 * *n = most + 1, and the arrays hold nothing of use.  Waits.
	 */
	GjStatus	(*number_values) (GjQueue *queue, const GjColumn *column, uint32_t nrows,
								  uint32_t most, uint32_t *number, uint64_t *value, uint32_t *n);

	/*
	 * Where the bytes of the references of a column that is not packed would lie, one behind the
	 * other: at[0 .. nrows] counts from 0.  A NULL takes none, and a held one more than offsets can
	 * have.  Waits.
	 */
	GjStatus	(*find_offsets) (GjQueue *queue, const GjColumn *column, uint32_t nrows,
								 uint64_t *at, GjOffsets *offsets);

	/*
	 * Copies the bytes to `to`, with nothing between them, as find_offsets says.  refs[nrows] (NULL:
	 * not wanted), which the column does not have: references to a heap with `to` at `base`.
	 */
	GjStatus	(*move_values) (GjQueue *queue, const GjColumn *column, uint32_t nrows,
								const uint64_t *at, uint8_t *to, uint64_t base, uint64_t *refs);

	/*
	 * Makes offsets, nrows + 1 of them, as `from` says, whose data may be missing: to `to`, and the
	 * numbers that they share to its heap.
	 */
	GjStatus	(*pack_offsets) (GjQueue *queue, const GjPackColumn *column, const uint64_t *at);

	/*
	 * Answers a program's questions about n columns of codes, for each value of their
	 * dictionaries.  known[i] (host) = 0: some answer of asked[i] is an error or NULL, and none of
	 * its bytes is of use.  Waits.
	 */
	GjStatus	(*answer) (GjQueue *queue, const GjQuestion *questions, uint32_t nquestions,
						   const GjAsked *asked, uint32_t n, uint8_t *known);

	/*
	 * Adds `base` to the offset of n references, all but held ones.  A reference that
	 * does not lie within heap_size bytes is a row error (GJ_BAD_PROGRAM).  It may begin anywhere.
	 */
	GjStatus	(*rebase_refs) (GjQueue *queue, uint64_t *refs, uint32_t n,
								uint64_t base, uint64_t heap_size);

	/* Sets the program's columns (host array, copied); returns their device address. */
	GjStatus	(*set_columns) (GjQueue *queue, const GjColumn *columns, uint32_t n,
								const GjColumn **device_columns);

	/*
	 * Positions (0 .. view->nrows-1, ascending) of the tuples for which expression
	 * `expr` is TRUE.  positions[view->nrows] is device memory, *n host.  Waits.
	 */
	GjStatus	(*select) (GjQueue *queue, const GjView *view, uint32_t expr,
						   uint32_t *positions, uint32_t *n);

	/* to[i] = from[positions[i]] for i < n; from = NULL: base + positions[i]. */
	GjStatus	(*pick) (GjQueue *queue, uint32_t *to, const uint32_t *from, uint32_t base,
						 const uint32_t *positions, uint32_t n);

	/* to[i] = from[positions[i]] for i < n. */
	GjStatus	(*pick_values) (GjQueue *queue, int64_t *to, const int64_t *from,
								const uint32_t *positions, uint32_t n);

	/* Keys of tuples first .. first+n-1 of the view into keys rows first .. ; normalised. */
	GjStatus	(*keys) (GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
						 uint32_t first_expr, const GjKeys *keys);

	/*
	 * The same of keys->nkeys operands, each an expression or, if it is negative, column
	 * -1 - operand; values as gj_ordered_bits makes them, 0 for NULL.
	 */
	GjStatus	(*ordered_keys) (GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
								 const int32_t *operands, const GjKeys *keys);

	/* Positions, ascending, of flags that have a value.  Room for n; *npositions host.  Waits. */
	GjStatus	(*select_flags) (GjQueue *queue, const uint8_t *flags, uint32_t n, uint8_t value,
								 uint32_t *positions, uint32_t *npositions);

	/*
	 * Fills a batch with the output columns of tuples first, first+1, ... of the
	 * view: as many as rows and heap allow, at least 1, at most max.  Writes the whole
	 * slot, header too.  *n (host) = rows written.  Waits.
	 */
	GjStatus	(*gather) (GjQueue *queue, const GjView *view, uint32_t first, uint32_t max,
						   const GjBatchTarget *target, uint32_t *n);
} GjColumnOps;

#endif							/* GJ_DEVICE_COLUMNS_H */
