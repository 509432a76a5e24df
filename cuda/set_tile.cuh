/*
 * set_tile.cuh
 *	  What the files of set_tile share: the tile, and the sets in it.
 */
#ifndef GJ_SET_TILE_CUH
#define GJ_SET_TILE_CUH

#include "device/set_plan.h"
#include "rows/similarity.h"
#include "internal.cuh"

#define WARPS (GJ_THREADS / 32)
#define SKIP_ROW UINT32_MAX

/* What the kernels of a tile know. */
struct Tile
{
	const uint64_t *offset; /* of all sets */
	const uint32_t *code;
	const uint64_t *posting_offset;
	const uint32_t *posting;
	uint32_t first_right; /* number of right set 0 */
	uint32_t left;        /* the tile */
	uint32_t nleft;
	uint32_t right;
	uint32_t nright;
	uint32_t *counts;
	uint32_t stride;
	uint32_t *head;    /* [nleft]: most frequent elements of a left set that are looked up last;
						* SKIP_ROW: no pair of the set is wanted */
	uint32_t *least;   /* [nleft]: common elements that a pair needs; SKIP_ROW as above */
	uint32_t min_code; /* of the elements that the index counts */
	uint32_t top_k;
	uint32_t predicate;
	uint32_t self;
	uint32_t multiple;
	double threshold;
};

/* A set in global memory. */
struct Codes
{
	const uint32_t *at;
	uint32_t n;
};

static __device__ __forceinline__ Codes
get_codes(const Tile &tile, uint64_t set)
{
	const uint64_t first = tile.offset[set];
	Codes codes = {tile.code + first, (uint32_t) (tile.offset[set + 1] - first)};

	return codes;
}

static __device__ __forceinline__ Codes
get_left(const Tile &tile, uint32_t row)
{
	return get_codes(tile, (uint64_t) tile.left + row);
}

static __device__ __forceinline__ Codes
get_right(const Tile &tile, uint32_t column)
{
	return get_codes(tile, (uint64_t) tile.first_right + tile.right + column);
}

/* Is this a set with itself, or a pair of a family with itself that its mirror image stands for? */
static __device__ __forceinline__ bool
is_repeated(const Tile &tile, uint32_t row, uint32_t column)
{
	return tile.self && tile.right + column <= tile.left + row;
}

/* Could this pair be wanted, by its place and the sizes of its sets? */
static __device__ __forceinline__ bool
possible(const Tile &tile, uint32_t row, uint32_t column, uint32_t na, uint32_t nb)
{
	if (tile.top_k > 0)
		return true;
	if (is_repeated(tile, row, column))
		return false;
	return gj_set_possible(tile.predicate, tile.threshold, na, nb);
}

/* ---- set_matrix.cu */

/* Rows, and counts of a row, of a tile of a matrix: those of n sets. */
uint32_t gj_matrix_padded(uint32_t n);
/*
 * tile.counts[] = how many of the family's family->ndense most frequent elements each pair has in
 * common: all gj_matrix_padded(nleft) rows of tile.stride, but not those of pairs that no one wants
 * (tile.self).
 */
GjStatus gj_count_matrix(GjQueue *queue, const GjSetFamily *family, const Tile &tile);

/* ---- set_keep.cu */

/* out, *n: as gj_set_tile gives them, of tile.counts. */
GjStatus gj_keep_matches(GjQueue *queue, const Tile &tile, uint32_t *const out[3], uint32_t *n);
GjStatus gj_keep_best(GjQueue *queue, const Tile &tile, uint32_t *const out[3], uint32_t *n);

#endif
