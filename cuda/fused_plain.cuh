/*
 * fused_plain.cuh
 *	  The fused operator for the commonest plans: sums of integers without NULLs, over rows that
 *	  pass ranges and joins on integers, or on the halves of a text's or uuid's key.
 *
 * gj_make_plain decides once for a plan whether it is such a one, so the kernels have no branch
 * for anything else; other plans run fused_aggregate.  Instructions limit these kernels, not
 * memory.  So a thread takes several rows, has 32 bytes of each column under way, and does once
 * what is equal for all of its rows.  If no value has more than 32 bits, the kernel computes with
 * 32 bits.
 */
#ifndef GJ_CUDA_FUSED_PLAIN_CUH
#define GJ_CUDA_FUSED_PLAIN_CUH

#include "device/fused_rows.h"
#include "aggregate.cuh"
#include "fused_plain_joins.cuh"

/* ---- sums */

/*
 * Of less than 2^31 values.  Of a kernel of 64 bits: the sum's 128 bits, hi:lo.  Of one of 32 bits:
 * the sum is hi * 2^32 + lo, where lo counts as unsigned in a product's, else as signed.
 */
struct PlainSum
{
	uint64_t lo;
	int64_t hi;
};

/* Adds the values of a <op> b; true: an error of a tuple that is alive. */
static __device__ __forceinline__ bool
add_plain(const PlainExpr &e, const int32_t (&a)[8], const int32_t (&b)[8], uint32_t alive,
		  PlainSum *sum)
{
	bool wrong = false;

	if (e.op == GJ_OP_MUL_I)
	{
#pragma unroll
		for (uint32_t i = 0; i < 8; i++)
		{
			const int64_t r = alive >> i & 1 ? gj_exact_i(GJ_OP_MUL_I, a[i], b[i]) : 0;

			wrong |= r != (int32_t) r;
			sum->lo += (uint32_t) r;
			sum->hi += (int32_t) (r >> 32);
		}
		return wrong && e.narrow;
	}
	if (e.op == GJ_OP_LOAD)
	{
#pragma unroll
		for (uint32_t i = 0; i < 8; i++)
			sum->lo += (uint64_t) (int64_t) (alive >> i & 1 ? a[i] : 0);
		return false;
	}
#pragma unroll
	for (uint32_t i = 0; i < 8; i++)
	{
		const int64_t r = alive >> i & 1 ? gj_exact_i(e.op, a[i], b[i]) : 0;

		wrong |= r != (int32_t) r;
		sum->lo += (uint64_t) r;
	}
	return wrong && e.narrow;
}

static __device__ __forceinline__ bool
add_plain(const PlainExpr &e, const int64_t (&a)[4], const int64_t (&b)[4], uint32_t alive,
		  PlainSum *sum)
{
	bool over = false;

#pragma unroll
	for (uint32_t i = 0; i < 4; i++)
	{
		int64_t r = a[i];

		if (e.op == GJ_OP_MUL_I && !e.wide)
			r = gj_exact_i(GJ_OP_MUL_I, a[i], b[i]);
		else if (e.op == GJ_OP_MUL_I)
			over |= gj_mul_i(a[i], b[i], GJ_INT8, &r) != GJ_OK && (alive >> i & 1);
		else if (e.op != GJ_OP_LOAD)
		{
			/* only what wide ones come to can leave 64 bits */
			const bool left = gj_sum_i(a[i], b[i], e.op == GJ_OP_SUB_I, &r);

			over |= (alive >> i & 1) && left;
		}
		over |= (alive >> i & 1) && e.narrow && r != (int32_t) r;
		r = alive >> i & 1 ? r : 0;
		gj_add_128(&sum->lo, &sum->hi, (uint64_t) r, r >> 63);
	}
	return over;
}

/* The sum's 128 bits. */
template <typename V>
static __device__ __forceinline__ void
finish_plain(const PlainExpr &e, const PlainSum &sum, GjAggState *state)
{
	state->lo = sum.lo;
	if (sizeof(V) == sizeof(int64_t))
		state->hi = sum.hi;
	else if (e.op != GJ_OP_MUL_I)
		state->hi = (int64_t) sum.lo >> 63;
	else
		gj_add_128(&state->lo, &state->hi, (uint64_t) sum.hi << 32, sum.hi >> 32);
}

/* ---- kernels */

template <int nsteps>
static __device__ __forceinline__ void
add_counts(const Input &input, const uint32_t (&counts)[nsteps + 1])
{
#pragma unroll
	for (int s = 0; s <= nsteps; s++)
	{
		const uint32_t n = __reduce_add_sync(0xFFFFFFFF, counts[s]);

		if (threadIdx.x % 32 == 0 && n != 0)
			atomicAdd((unsigned long long *) &input.counts[s], (unsigned long long) n);
	}
}

/* Rows first .. end-1 of a part. */
typedef struct PlainChunk
{
	const GjColumn *columns; /* of the part */
	uint32_t first_row;      /* rows of the parts before */
	uint32_t first;
	uint32_t end;
} PlainChunk;

/* A chunk; *p: the part of one before it, then its own.  ncolumns: of the program. */
static __device__ __forceinline__ PlainChunk
find_chunk(uint32_t ncolumns, const Input &input, uint32_t chunk, uint32_t *p)
{
	PlainChunk c;

	/* mostly the same */
	if (*p + 1 < input.nparts && input.parts[*p + 1].first_chunk <= chunk)
		*p = part_of_chunk(input, chunk, *p + 1);

	const Part part = input.parts[*p];

	c.columns = input.columns + (size_t) *p * ncolumns;
	c.first_row = part.first_row;
	c.first = (chunk - part.first_chunk) * input.chunk;
	c.end = min(c.first + input.chunk, part.nrows);
	return c;
}

/* Blocks of an SM: row ids of more steps take more registers, and so do keys of two words. */
#define PLAIN_BLOCKS(nsteps, slots)                                                                \
	((nsteps) == 1 && (slots) == SLOTS_OF_TWO ? 2 : (nsteps) > 1 || (slots) != NO_SLOTS ? 3 : 4)

/* Adds the tuples that have come out; *over: some value overflows. */
template <typename V, int nsteps>
static __device__ __forceinline__ void
add_tuples(const Plain &plain, const GjColumn *columns, const TileRows<V> &rows,
		   const uint32_t (&found)[nsteps + 1][PLAIN_ROWS], uint32_t alive,
		   PlainSum (&sum)[PLAIN_EXPRS], bool *over)
{
#pragma unroll
	for (uint32_t k = 0; k < PLAIN_EXPRS; k++)
	{
		const PlainExpr &e = plain.expr[k];
		V a[PLAIN_ROWS];
		V b[PLAIN_ROWS];

		if (k >= plain.nexprs)
			break;
		load_plain<V, nsteps>(e.a, columns, rows, found, alive, a);
		if (e.op != GJ_OP_LOAD)
			load_plain<V, nsteps>(e.b, columns, rows, found, alive, b);
		*over |= add_plain(e, a, b, alive, &sum[k]);
	}
}

/* All threads of a block call it: partial[aggregate * gridDim.x + block], as fused_aggregate has
 * it. */
template <typename V, int nsteps>
static __device__ __forceinline__ void
finish_sums(const Plain &plain, const Input &input, bool over, const uint32_t (&counts)[nsteps + 1],
			const PlainSum (&sum)[PLAIN_EXPRS], GjAggState *partial)
{
	__shared__ GjAggState warp_states[GJ_WARPS];

	if (over)
		gj_note_error(input.results, GJ_OVERFLOW);
	add_counts<nsteps>(input, counts);
	for (uint32_t a = 0; a < plain.naggregates; a++)
	{
		GjAggState state;

		gj_agg_start(&state);
		state.count = counts[nsteps];
#pragma unroll
		for (uint32_t k = 0; k < PLAIN_EXPRS; k++)
		{
			if (plain.expr_of[a] == k)
				finish_plain<V>(plain.expr[k], sum[k], &state);
		}
		gj_merge_block(GJ_AGG_SUM_I, &state, warp_states);
		if (threadIdx.x == 0)
			partial[(uint64_t) a * gridDim.x + blockIdx.x] = state;
	}
}

/*
 * Takes the tiles of a block's chunks through ranges and joins.  take(c, p, rows, found, alive)
 * gets what comes out of each: of chunk c of part p.
 */
template <typename V, int nsteps, PlainSlots slots, typename Take>
static __device__ __forceinline__ void
take_tiles(const Plain &plain, const Input &input, uint32_t (&counts)[nsteps + 1], Take take)
{
	Filters filters = {};
	uint32_t p = 0;

	for (uint32_t chunk = blockIdx.x; chunk < input.nchunks; chunk += gridDim.x)
	{
		const PlainChunk c = find_chunk(plain.ncolumns, input, chunk, &p);

		filters.start_chunk<nsteps>();
		for (uint32_t tile = c.first; tile < c.end; tile += Shape<V>::TILE)
		{
			const TileRows<V> rows(tile, c.end);
			uint32_t found[nsteps + 1][PLAIN_ROWS];
			const uint32_t alive = take_plain<V, nsteps, slots>(plain, c.columns, rows, filters,
																found, counts, input.results);

			take(c, p, rows, found, alive);
		}
	}
}

template <typename V, int nsteps, PlainSlots slots>
static __global__ void
__launch_bounds__(GJ_THREADS, PLAIN_BLOCKS(nsteps, slots))
	fused_plain(const __grid_constant__ Plain plain, const __grid_constant__ Input input,
				GjAggState *partial)
{
	PlainSum sum[PLAIN_EXPRS] = {};
	uint32_t counts[nsteps + 1] = {};
	bool over = false;

	take_tiles<V, nsteps, slots>(plain, input, counts,
								 [&](const PlainChunk &c, uint32_t, const TileRows<V> &rows,
									 const uint32_t(&found)[nsteps + 1][PLAIN_ROWS], uint32_t alive)
								 {
									 if (alive != 0)
										 add_tuples<V, nsteps>(plain, c.columns, rows, found, alive,
															   sum, &over);
								 });
	finish_sums<V, nsteps>(plain, input, over, counts, sum, partial);
}

/* Appends the rows that come out to lists of all slots, as fused_select does. */
template <typename V, int nsteps, PlainSlots slots>
static __global__ void
__launch_bounds__(GJ_THREADS, PLAIN_BLOCKS(nsteps, slots))
	fused_plain_select(const __grid_constant__ Plain plain, const __grid_constant__ Input input,
					   const __grid_constant__ TupleList to)
{
	uint32_t counts[nsteps + 1] = {};

	take_tiles<V, nsteps, slots>(plain, input, counts,
								 [&](const PlainChunk &c, uint32_t p, const TileRows<V> &rows,
									 const uint32_t(&found)[nsteps + 1][PLAIN_ROWS], uint32_t alive)
								 {
									 uint32_t at[PLAIN_ROWS];

									 __syncwarp();
									 if (!take_places<PLAIN_ROWS>(alive, c.first_row, &to.n[p], at))
										 return;
#pragma unroll
									 for (uint32_t i = 0; i < PLAIN_ROWS; i++)
									 {
										 if (!(alive >> i & 1))
											 continue;
										 to.rowid[0][at[i]] = Shape<V>::row(rows.first, i);
#pragma unroll
										 for (int s = 0; s < nsteps; s++)
											 to.rowid[s + 1][at[i]] = found[s][i];
									 }
								 });
	add_counts<nsteps>(input, counts);
}

#endif /* GJ_CUDA_FUSED_PLAIN_CUH */
