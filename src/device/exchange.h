/*
 * exchange.h
 *	  What an exchange of rows between devices takes.  For device.h.
 */
#ifndef GJ_DEVICE_EXCHANGE_H
#define GJ_DEVICE_EXCHANGE_H

#include "join.h"

#define GJ_SPLIT_PARTS		16
#define GJ_SPLIT_PIECES		256

/* Rows rows[0 .. nrows) (NULL: 0 .. nrows-1) of columns[ncolumns] (host array), anywhere. */
typedef struct GjSplitPiece
{
	const GjColumn *columns;
	const uint32_t *rows;		/* device memory */
	uint32_t	nrows;
} GjSplitPiece;

/*
 * Rows that are split by their keys: hash h (gj_hash_combine of all keys) belongs to part
 * gj_hash_part(h, nparts).
 */
typedef struct GjSplit
{
	uint32_t	nparts;			/* 1 .. GJ_SPLIT_PARTS */
	uint32_t	null_part;		/* of rows that have a NULL key */
	uint32_t	npieces;		/* at most GJ_SPLIT_PIECES, with fewer than 2^31 rows together */
	const GjSplitPiece *pieces;
	uint32_t	ncolumns;
	uint32_t	nkeys;
	uint32_t	key[GJ_MAX_KEYS];	/* columns, no references */
	const GjKeys *keys;			/* of all rows, piece by piece; NULL: columns `key` are */
	uint32_t	stride;			/* parts may start so many rows apart, a multiple of GJ_SPLIT_ALIGN;
								 * 0: they may not */
} GjSplit;

/* Part p is rows start[p] .. end[p]-1 of what a split has written. */
typedef struct GjSplitParts
{
	uint32_t	start[GJ_SPLIT_PARTS];	/* multiples of GJ_SPLIT_ALIGN */
	uint32_t	end[GJ_SPLIT_PARTS];
	bool		full;			/* one has no room for its rows: nothing of this is true */
} GjSplitParts;

#define GJ_SPLIT_ALIGN		32

/* From so many rows on parts may be a stride apart: their mean, and so much of it to spare. */
#define GJ_SPLIT_STRIDE_ROWS (4u * 1024 * 1024)
#define GJ_SPLIT_SPARE		64

/* A stride that parts of n rows do not exceed, unless some keys have very many of them. */
static inline uint32_t
gj_split_stride(uint64_t n, uint32_t nparts)
{
	uint64_t	mean = n / nparts;

	return (uint32_t) ((mean + mean / GJ_SPLIT_SPARE) / GJ_SPLIT_ALIGN + 1) * GJ_SPLIT_ALIGN;
}

/* Room in rows for n of them in parts, a stride apart or one behind the other. */
static inline uint64_t
gj_split_room(uint64_t n, uint32_t nparts)
{
	uint64_t	strides = n < GJ_SPLIT_STRIDE_ROWS ? 0 :
		(uint64_t) nparts * gj_split_stride(n, nparts);
	uint64_t	packed = n + (uint64_t) nparts * (GJ_SPLIT_ALIGN - 1);

	return strides > packed ? strides : packed;
}

/* Rows on their way to other devices. */
typedef struct GjSplitOps
{
	/*
	 * Writes the rows of all pieces to columns to[split->ncolumns] (host array) part by part: the
	 * values where `data` is not NULL, the null flags where `nulls` is not NULL; they have
	 * gj_split_room().  Rows of a part are in their order, or, with a stride, in any: a device that
	 * need not count the rows of each part before reads the keys once.  References keep what they
	 * are.  May work for long: asks stop(arg).  *parts is host memory, the queue's: filled when
	 * what is queued by now is done, and until the next split.
	 */
	GjStatus	(*split) (GjQueue *queue, const GjSplit *split, const GjColumn *to,
						  bool (*stop) (void *), void *arg, const GjSplitParts **parts);

	/*
	 * Room for split() of n rows of GJ_SPLIT_PIECES pieces, with ncolumns columns and nkeys keys,
	 * and for ref_bytes() of them: no such call runs out of device memory then.
	 */
	GjStatus	(*split_reserve) (GjQueue *queue, uint32_t n, uint32_t ncolumns, uint32_t nkeys);

	/*
	 * heap_at[0 .. n] = where the bytes of n references would start, one behind the other and
	 * counted from 0.
	 */
	GjStatus	(*ref_bytes) (GjQueue *queue, const uint64_t *refs, uint32_t n, uint64_t *heap_at);

	/*
	 * Copies the bytes that n references into `heap` refer to, those of refs[i] to `to` +
	 * heap_at[i] - heap_at[0], and makes them references to a heap that has `to` at `base`.
	 */
	GjStatus	(*move_refs) (GjQueue *queue, uint64_t *refs, uint32_t n, const uint8_t *heap,
							  const uint64_t *heap_at, uint8_t *to, uint64_t base);
} GjSplitOps;

#endif							/* GJ_DEVICE_EXCHANGE_H */
