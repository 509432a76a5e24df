/*
 * split.cuh
 *	  What the two ways to split rows by their keys share: exchange.cu, where rows of each part are
 *	  counted before any is written, and split_tile.cuh.
 */
#ifndef GJ_CUDA_SPLIT_CUH
#define GJ_CUDA_SPLIT_CUH

#include "rows/hash.h"
#include "internal.cuh"

#define WARP 32u
#define PART_BITS 4u /* of the number of a part */

static_assert(1u << PART_BITS == GJ_SPLIT_PARTS, "parts have numbers of PART_BITS bits");
static_assert(GJ_SPLIT_PARTS <= WARP, "a lane counts the rows of a part");

/* A piece; its rows are first_row, ... of all rows. */
typedef struct Piece
{
	const uint32_t *rows;
	uint32_t nrows;
	uint32_t first_row;
	uint32_t first_strip;
} Piece;

/* Values of a column that are wanted, or halves of them (split_at_once), or its null flags. */
typedef struct Target
{
	void *to;
	uint32_t width;
	uint32_t step; /* of widths, from a value to the next one */
} Target;

/* What a target has of a piece: values or flags at `data`; NULL: all are 0. */
typedef struct From
{
	const void *data;
	GjColumn column; /* that they are of, if its values are packed */
} From;

/* What the kernels read and write; all but the numbers and `parts` is device memory. */
typedef struct Input
{
	const Piece *pieces;
	const GjColumn *keys; /* nkeys of each piece */
	const Target *targets;
	const From *from;    /* ntargets of each piece */
	uint8_t *part;       /* of each row */
	uint32_t *counts;    /* of part p in strip s at [p * nstrips + s] */
	uint32_t *taken;     /* places of each part that split_at_once has taken */
	GjSplitParts *parts; /* pinned host memory */
	uint32_t nrows;      /* of all pieces */
	uint32_t npieces;
	uint32_t nstrips;
	uint32_t ntargets;
	uint32_t nparts;
	uint32_t null_part;
	uint32_t nkeys;
	uint32_t stride; /* of parts; 0: two kernels */
	bool lists;      /* a piece has rows that are not all of its columns */
	bool computed;   /* keys are those of the piece's rows 0, 1, ..., not of what `rows` says */
} Input;

/* Rows first .. first+n-1 of a piece. */
typedef struct Strip
{
	uint32_t piece;
	uint32_t first;
	uint32_t n;
} Strip;

/* The strip of that number, which has `rows` rows at most.  For a whole warp; pieces have rows. */
static __device__ __forceinline__ Strip
find_strip(const Input &input, uint32_t number, uint32_t rows)
{
	const uint32_t lane = threadIdx.x % WARP;
	uint32_t npieces = 0; /* that begin with this strip or before it */
	Strip strip;

	for (uint32_t base = 0; base < input.npieces; base += WARP)
	{
		const bool begins =
			base + lane < input.npieces && input.pieces[base + lane].first_strip <= number;

		npieces += __popc(__ballot_sync(0xFFFFFFFF, begins));
	}
	strip.piece = npieces - 1;
	strip.first = (number - input.pieces[strip.piece].first_strip) * rows;
	strip.n = min(rows, input.pieces[strip.piece].nrows - strip.first);
	return strip;
}

/* The bits of a number below 1 << PART_BITS in all lanes of the warp. */
static __device__ __forceinline__ void
part_bits(uint32_t part, uint32_t (&bits)[PART_BITS])
{
#pragma unroll
	for (uint32_t b = 0; b < PART_BITS; b++)
		bits[b] = __ballot_sync(0xFFFFFFFF, part >> b & 1);
}

/* Those lanes among `lanes` whose number is `part`. */
static __device__ __forceinline__ uint32_t
lanes_of_part(const uint32_t (&bits)[PART_BITS], uint32_t part, uint32_t lanes)
{
#pragma unroll
	for (uint32_t b = 0; b < PART_BITS; b++)
		lanes &= part >> b & 1 ? bits[b] : ~bits[b];
	return lanes;
}

/*
 * The place of the lane's row of a part, among rows of those lanes that have one.  *next: in lane p
 * where the next row of part p goes; moves behind them.
 */
static __device__ __forceinline__ uint32_t
next_place(uint32_t part, uint32_t lanes, uint32_t *next)
{
	const uint32_t lane = threadIdx.x % WARP;
	uint32_t bits[PART_BITS];
	uint32_t place;

	part_bits(part, bits);
	place = __shfl_sync(0xFFFFFFFF, *next, part) +
			__popc(lanes_of_part(bits, part, lanes) & ((1u << lane) - 1));
	*next += __popc(lanes_of_part(bits, lane, lanes));
	return place;
}

/* The sum of n of this lane and those before it, for lanes of parts. */
static __device__ __forceinline__ uint32_t
sum_up_to_lane(uint32_t n)
{
	const uint32_t lane = threadIdx.x % WARP;

#pragma unroll
	for (uint32_t distance = 1; distance < GJ_SPLIT_PARTS; distance *= 2)
	{
		const uint32_t others = __shfl_up_sync(0xFFFFFFFF, n, distance);

		if (lane >= distance)
			n += others;
	}
	return n;
}

/* A key of all rows of a piece that is an integer and never NULL. */
static __host__ __device__ __forceinline__ bool
is_plain_key(const GjColumn &key)
{
	return key.nulls == NULL && !key.packed && (key.kind == GJ_INT8 || key.kind == GJ_INT4);
}

/* The part of a row by such a key. */
static __device__ __forceinline__ uint32_t
plain_part(const Input &input, int64_t value)
{
	return gj_hash_part(gj_hash_combine(0, value), input.nparts);
}

#endif /* GJ_CUDA_SPLIT_CUH */
