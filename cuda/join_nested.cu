/*
 * join_nested.cu
 *	  The nested loop: every tuple against every row of a build side, tile by tile.
 *
 * A thread has some tuples of a tile, all of the block THREADS apart, and goes through the
 * tile's rows; the block sees the same row at the same time.  What a thread finds out about a
 * row is one bit a tuple.  Three kinds of conditions are looked at by three matchers:
 *
 *	Compared	terms that are up to four comparisons by order (an equality is two): values of
 *				tuples are in registers, those of rows in shared memory
 *	Terms		any other terms
 *	Evaluated	an expression, evaluated over the tile's tuples for one row
 *
 * One pass counts the pairs of each tile, a scan finds out how many tiles fit, and a second
 * pass over these writes their pairs.
 */
#include <cuda/std/limits>

#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>

#include "tile.cuh"

#define THREADS 128
#define MANY (GJ_NESTED_TUPLES / THREADS) /* tuples of a thread in a large tile; else one */
#define SEGMENT 256                       /* rows that a block keeps in shared memory */
#define TILES_PER_BLOCK 16

/* Tiles of a call: some 5 ms at most. */
#define COMPARED_TILES (1u << 19)
#define TERM_TILES (1u << 15)
#define EVALUATED_TILES (1u << 14)

/* A term, or a half of one: probe ^ flip <= build ^ flip, or <.  Without arrays it is true. */
typedef struct Comparison
{
	const int64_t *probe_side;
	const int64_t *build_side;
	int64_t flip; /* -1 turns the order of values around */
	bool strict;
} Comparison;

#define MAX_COMPARISONS 4

typedef struct Loop
{
	GjNested nested;                        /* view, a host address, is not used */
	Comparison comparison[MAX_COMPARISONS]; /* Compared */
	GjView view;
	GjCode code;
	GjTiling tiling;
	uint32_t nregisters; /* Evaluated: of the condition */
	uint32_t tile_rows;  /* and how many tuples are evaluated at a time */
	GjResults *results;
} Loop;

static __device__ __forceinline__ uint32_t
row_id(const Loop &loop, uint32_t row)
{
	return loop.nested.rows ? loop.nested.rows[row] : row;
}

/* One of the thread's tuples can get a match that it needs.  Other blocks may find it meanwhile. */
static __device__ __forceinline__ bool
needs_match(const Loop &loop, uint32_t base)
{
	const uint32_t end = min(base + loop.tiling.tuples, loop.view.nrows);

	for (uint32_t t = base + threadIdx.x; t < end; t += THREADS)
	{
		if (!loop.nested.tuple_done[t] && (loop.nested.nterms == 0 || !loop.nested.probe_null[t]))
			return true;
	}
	return false;
}

/* ---- matchers: match() returns a bit for each of the thread's tuples base + threadIdx.x + ... */

/*
 * All terms are comparisons probe <= build, M of them; N tuples a thread.  A pair takes M
 * comparisons, of 32 bits if all values fit, and one more instruction.
 */
template <typename T, int N, int M>
struct Compared
{
	struct alignas(16) Row
	{
		T value[M];
		uint32_t matches; /* 0: nothing, else all bits */
	};
	struct Shared
	{
		Row row[SEGMENT];
	};
	T value[N][M];
	uint32_t tuples; /* a bit for each that may match */

	__device__ __forceinline__ void
	load(const Loop &loop, uint32_t base)
	{
		tuples = 0;
#pragma unroll
		for (int k = 0; k < N; k++)
		{
			const uint32_t i = base + threadIdx.x + k * THREADS;
			const bool there =
				i < loop.view.nrows && (loop.nested.nterms == 0 || !loop.nested.probe_null[i]);

			tuples |= there ? 1u << k : 0u;
#pragma unroll
			for (int m = 0; m < M; m++)
			{
				const Comparison &c = loop.comparison[m];

				value[k][m] = there && c.probe_side ? (T) (c.probe_side[i] ^ c.flip)
													: cuda::std::numeric_limits<T>::min();
			}
		}
	}

	__device__ __forceinline__ void
	stage(const Loop &loop, Shared &shared, uint32_t first, uint32_t nrows)
	{
		for (uint32_t j = threadIdx.x; j < nrows; j += THREADS)
		{
			Row row;

			row.matches = 0xFFFFFFFF;
			if (loop.nested.nterms > 0 && loop.nested.build_null[first + j])
				row.matches = 0;
#pragma unroll
			for (int m = 0; m < M; m++)
			{
				const Comparison &c = loop.comparison[m];

				row.value[m] = c.build_side ? (T) (c.build_side[first + j] ^ c.flip)
											: cuda::std::numeric_limits<T>::max();
				/* less than v is at most v - 1; nothing is less than the least */
				if (c.strict && row.value[m] == cuda::std::numeric_limits<T>::min())
					row.matches = 0;
				else if (c.strict)
					row.value[m]--;
			}
			shared.row[j] = row;
		}
	}

	__device__ __forceinline__ uint32_t
	match(const Loop &, const Shared &shared, uint32_t, uint32_t, uint32_t j)
	{
		const Row row = shared.row[j];
		uint32_t mask = 0;

#pragma unroll
		for (int k = 0; k < N; k++)
		{
			bool all = true;

#pragma unroll
			for (int m = 0; m < M; m++)
				all &= value[k][m] <= row.value[m];
			mask |= all ? 1u << k : 0u;
		}
		return mask & tuples & row.matches;
	}

	__device__ __forceinline__ void
	finish(const Loop &)
	{
	}
};

/* Any terms. */
struct Terms
{
	struct Shared
	{
	};

	__device__ __forceinline__ void
	load(const Loop &, uint32_t)
	{
	}

	__device__ __forceinline__ void
	stage(const Loop &, Shared &, uint32_t, uint32_t)
	{
	}

	static __device__ __forceinline__ bool
	is_true(uint32_t op, int64_t probe_side, int64_t build_side)
	{
		switch (op)
		{
			case GJ_TERM_EQ:
				return probe_side == build_side;
			case GJ_TERM_NE:
				return probe_side != build_side;
			case GJ_TERM_LT:
				return probe_side < build_side;
			case GJ_TERM_LE:
				return probe_side <= build_side;
			case GJ_TERM_GT:
				return probe_side > build_side;
			default:
				return probe_side >= build_side;
		}
	}

	__device__ __forceinline__ uint32_t
	match(const Loop &loop, const Shared &, uint32_t base, uint32_t row, uint32_t j)
	{
		const GjNested &nested = loop.nested;
		uint32_t mask = 0;

		if (nested.build_null[row + j])
			return 0;
		for (uint32_t k = 0; k * THREADS < loop.tiling.tuples; k++)
		{
			const uint32_t i = base + threadIdx.x + k * THREADS;
			bool all = i < loop.view.nrows && !nested.probe_null[i];

			for (uint32_t t = 0; all && t < nested.nterms; t++)
				all = is_true(nested.terms[t].op, nested.terms[t].probe_side[i],
							  nested.terms[t].build_side[row + j]);
			mask |= all ? 1u << k : 0u;
		}
		return mask;
	}

	__device__ __forceinline__ void
	finish(const Loop &)
	{
	}
};

/* An expression.  A tuple's registers are of the thread that has the tuple (GJ_TILE_FOR). */
struct Evaluated
{
	struct Shared
	{
	};
	uint32_t status;

	__device__ __forceinline__
	Evaluated()
		: status(GJ_OK)
	{
	}

	__device__ __forceinline__ void
	load(const Loop &, uint32_t)
	{
	}

	__device__ __forceinline__ void
	stage(const Loop &, Shared &, uint32_t, uint32_t)
	{
	}

	__device__ __forceinline__ uint32_t
	match(const Loop &loop, const Shared &, uint32_t base, uint32_t row, uint32_t j)
	{
		extern __shared__ int64_t memory[];
		const uint32_t e = (uint32_t) loop.nested.condition;
		const uint32_t rows = loop.tile_rows;
		const GjTile tile = gj_tile_at(memory, loop.nregisters, rows);
		const uint32_t result = loop.code.exprs[e].result * rows;
		const uint32_t n = min(loop.tiling.tuples, loop.view.nrows - base);
		const uint32_t id = row_id(loop, row + j);
		GjView view = loop.view;
		uint32_t mask = 0;

		view.rowid[loop.nested.build_source] = &id;
		view.same = (uint16_t) (1u << loop.nested.build_source);
		for (uint32_t done = 0; done < n; done += rows)
		{
			const uint32_t m = min(rows, n - done);

			gj_eval(&loop.code, e, &view, base + done, m, &tile, &status);
			GJ_TILE_FOR(i, m)
			{
				if (!tile.null[result + i] && tile.value[result + i] != 0)
					mask |= 1u << ((done + i) / THREADS);
			}
		}
		return mask;
	}

	__device__ __forceinline__ void
	finish(const Loop &loop)
	{
		gj_note_error(loop.results, status);
	}
};

/* ---- count */

/* counts[t] = pairs of tile first_tile + t, for ntiles tiles, per_block of them a block. */
template <typename M>
static __global__ void
__launch_bounds__(THREADS) nested_count(const __grid_constant__ Loop loop, uint64_t first_tile,
										uint32_t ntiles, uint32_t per_block, uint64_t *counts)
{
	__shared__ typename M::Shared shared;
	__shared__ uint32_t pairs[TILES_PER_BLOCK];
	const uint32_t across = loop.tiling.across;
	const uint32_t rows = loop.tiling.rows;
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t end = min(ntiles, (blockIdx.x + 1) * per_block);
	M m;

	for (uint32_t t = blockIdx.x * per_block; t < end;)
	{
		const uint32_t column = (uint32_t) ((first_tile + t) % across);
		const uint32_t base = (uint32_t) ((first_tile + t) / across) * loop.tiling.tuples;
		const uint32_t ntiles_here = min(min(end - t, across - column), SEGMENT / rows);
		const uint32_t row = column * rows;
		const uint32_t nrows = min(ntiles_here * rows, loop.nested.nrows - row);
		uint32_t hit = 0;

		/* all threads of the block, or none */
		if (loop.nested.tuple_done && !__syncthreads_or(needs_match(loop, base)))
		{
			if (threadIdx.x < ntiles_here)
				counts[t + threadIdx.x] = 0;
			t += ntiles_here;
			continue;
		}
		if (threadIdx.x < ntiles_here)
			pairs[threadIdx.x] = 0;
		m.load(loop, base);
		m.stage(loop, shared, row, nrows);
		__syncthreads();
		for (uint32_t tile = 0; tile < ntiles_here; tile++)
		{
			const uint32_t last = min((tile + 1) * rows, nrows);
			uint32_t count = 0;

			for (uint32_t j = tile * rows; j < last; j++)
			{
				const uint32_t mask = m.match(loop, shared, base, row, j);

				count += __popc(mask);
				hit |= mask;
				if (loop.nested.row_matched && __any_sync(0xFFFFFFFF, mask != 0) && lane == 0)
					loop.nested.row_matched[row_id(loop, row + j)] = 1;
			}
			__syncwarp();
			count = __reduce_add_sync(0xFFFFFFFF, count);
			if (lane == 0 && count > 0)
				atomicAdd(&pairs[tile], count);
		}
		for (uint32_t k = 0; loop.nested.tuple_matched && hit >> k != 0; k++)
		{
			if (hit >> k & 1)
				loop.nested.tuple_matched[base + threadIdx.x + k * THREADS] = 1;
		}
		__syncthreads();
		if (threadIdx.x < ntiles_here)
			counts[t + threadIdx.x] = pairs[threadIdx.x];
		/* before what is staged, and the pairs, are written again */
		__syncthreads();
		t += ntiles_here;
	}
	m.finish(loop);
}

/* How many tiles' pairs fit, and how many pairs they are. */
static __global__ void
nested_fit(const uint64_t *start, uint32_t ntiles, bool write, uint32_t capacity,
		   GjResults *results)
{
	uint32_t low = 0;
	uint32_t high = ntiles;

	if (!write)
		low = ntiles;
	while (low < high)
	{
		const uint32_t mid = low + (high - low + 1) / 2;

		if (start[mid] <= capacity)
			low = mid;
		else
			high = mid - 1;
	}
	results->n = low;
	results->total = start[low];
}

/* ---- write */

/* Writes pair number `at`. */
static __device__ __forceinline__ void
write_pair(const Loop &loop, uint64_t at, uint32_t tuple, uint32_t id)
{
	if (loop.nested.tuple)
		loop.nested.tuple[at] = tuple;
#pragma unroll
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
	{
		if (loop.nested.out[s])
			loop.nested.out[s][at] =
				s == loop.nested.build_source ? id : gj_view_row(&loop.view, s, tuple);
	}
}

/* One tile a block: its pairs from start[block] on. */
template <typename M>
static __global__ void
__launch_bounds__(THREADS)
	nested_write(const __grid_constant__ Loop loop, uint64_t first_tile, const uint64_t *start)
{
	typedef cub::BlockScan<uint32_t, THREADS> Scan;
	__shared__ typename M::Shared shared;
	__shared__ typename Scan::TempStorage scan;
	const uint64_t t = first_tile + blockIdx.x;
	const uint32_t base = (uint32_t) (t / loop.tiling.across) * loop.tiling.tuples;
	const uint32_t row = (uint32_t) (t % loop.tiling.across) * loop.tiling.rows;
	const uint32_t nrows = min(loop.tiling.rows, loop.nested.nrows - row);
	uint32_t before;
	uint32_t count = 0;
	uint64_t at;
	M m;

	if (start[blockIdx.x] == start[blockIdx.x + 1])
		return;
	m.load(loop, base);
	m.stage(loop, shared, row, nrows);
	__syncthreads();
	for (uint32_t j = 0; j < nrows; j++)
		count += __popc(m.match(loop, shared, base, row, j));
	Scan(scan).ExclusiveSum(count, before);
	at = start[blockIdx.x] + before;
	for (uint32_t j = 0; j < nrows; j++)
	{
		uint32_t mask = m.match(loop, shared, base, row, j);

		for (; mask != 0; mask &= mask - 1)
			write_pair(loop, at++, base + threadIdx.x + (__ffs(mask) - 1) * THREADS,
					   row_id(loop, row + j));
	}
}

/* ---- host */

template <typename M>
static GjStatus
run_loop(GjQueue *queue, const Loop &loop, uint64_t first_tile, uint32_t ntiles, size_t dynamic,
		 uint32_t *ndone, uint64_t *npairs)
{
	const uint32_t spread = ntiles / ((uint32_t) queue->device->nprocessors * 16) + 1;
	const uint32_t per_block = min(spread, (uint32_t) TILES_PER_BLOCK);
	const size_t nbytes = ((size_t) ntiles + 1) * sizeof(uint64_t);
	void *memory;
	uint64_t *start;

	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, nbytes, &memory));
	start = (uint64_t *) memory;
	GJ_CUDA(queue, cudaMemsetAsync(start + ntiles, 0, sizeof(uint64_t), queue->stream));
	nested_count<M><<<gj_blocks(ntiles, per_block), THREADS, dynamic, queue->stream>>>(
		loop, first_tile, ntiles, per_block, start);
	GJ_LAUNCHED(queue, "nested_count");
	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, start, start, (uint64_t) ntiles + 1);
	nested_fit<<<1, 1, 0, queue->stream>>>(start, ntiles, loop.nested.write, loop.nested.capacity,
										   queue->results);
	GJ_LAUNCHED(queue, "nested_fit");
	GJ_TRY(gj_wait(queue));
	*ndone = queue->pinned->results.n;
	*npairs = queue->pinned->results.total;
	if (loop.nested.write && *npairs > 0)
	{
		nested_write<M><<<*ndone, THREADS, dynamic, queue->stream>>>(loop, first_tile, start);
		GJ_LAUNCHED(queue, "nested_write");
	}
	return GJ_OK;
}

/*
 * Writes terms as comparisons by order.  Returns how many they are; more than MAX_COMPARISONS: they
 * cannot be written so.  *narrow: all values fit 32 bits.
 */
static uint32_t
compare_terms(const GjNested *nested, Comparison *comparison, bool *narrow)
{
	uint32_t n = 0;

	*narrow = true;
	for (uint32_t t = 0; t < nested->nterms; t++)
	{
		const GjTerm *term = &nested->terms[t];
		const bool strict = term->op == GJ_TERM_LT || term->op == GJ_TERM_GT;
		const bool at_most = term->op == GJ_TERM_LE || term->op == GJ_TERM_LT;
		const bool at_least = term->op == GJ_TERM_GE || term->op == GJ_TERM_GT;
		const bool equal = term->op == GJ_TERM_EQ;

		if (n + (equal ? 2 : 1) > MAX_COMPARISONS || !(at_most || at_least || equal))
			return MAX_COMPARISONS + 1;
		if (at_most || equal)
			comparison[n++] = {term->probe_side, term->build_side, 0, strict};
		if (at_least || equal)
			comparison[n++] = {term->probe_side, term->build_side, -1, strict};
		*narrow = *narrow && term->narrow;
	}
	return n;
}

/* The loop of n comparisons of values of a type. */
template <typename T>
static GjStatus
run_compared(GjQueue *queue, const Loop &loop, uint32_t n, uint64_t first_tile, uint32_t ntiles,
			 uint32_t *ndone, uint64_t *npairs)
{
	if (loop.tiling.tuples == THREADS)
		return run_loop<Compared<T, 1, MAX_COMPARISONS>>(queue, loop, first_tile, ntiles, 0, ndone,
														 npairs);
	if (n > 2)
		return run_loop<Compared<T, MANY, MAX_COMPARISONS>>(queue, loop, first_tile, ntiles, 0,
															ndone, npairs);
	return run_loop<Compared<T, MANY, 2>>(queue, loop, first_tile, ntiles, 0, ndone, npairs);
}

GjStatus
gj_nested_loop(GjQueue *queue, const GjNested *nested, uint64_t first_tile, uint32_t ntiles,
			   uint32_t *ndone, uint64_t *npairs)
{
	Loop loop = {};
	const bool evaluated = nested->condition >= 0;
	bool narrow;
	const uint32_t ncomparisons = compare_terms(nested, loop.comparison, &narrow);
	const bool compared = !evaluated && ncomparisons <= MAX_COMPARISONS;
	const uint32_t most = evaluated ? EVALUATED_TILES : compared ? COMPARED_TILES : TERM_TILES;
	size_t dynamic = 0;

	*ndone = 0;
	*npairs = 0;
	GJ_TRY(gj_enter(queue));
	loop.nested = *nested;
	loop.view = *nested->view;
	loop.code = queue->code;
	loop.tiling = gj_nested_tiling(nested->view->nrows, nested->nrows);
	loop.results = queue->results;
	ntiles = (uint32_t) min((uint64_t) min(ntiles, most), loop.tiling.ntiles - first_tile);
	if (evaluated)
	{
		loop.nregisters = gj_queue_expr(queue, (uint32_t) nested->condition)->nregisters;
		loop.tile_rows = gj_tile_rows(loop.nregisters);
		dynamic = gj_tile_bytes(loop.nregisters);
		return run_loop<Evaluated>(queue, loop, first_tile, ntiles, dynamic, ndone, npairs);
	}
	if (!compared)
		return run_loop<Terms>(queue, loop, first_tile, ntiles, 0, ndone, npairs);
	return narrow
			   ? run_compared<int32_t>(queue, loop, ncomparisons, first_tile, ntiles, ndone, npairs)
			   : run_compared<int64_t>(queue, loop, ncomparisons, first_tile, ntiles, ndone,
									   npairs);
}
