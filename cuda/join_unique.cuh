/*
 * join_unique.cuh
 *	  What probing and writing pairs have in common, and both at once where keys are unique.
 *
 * A tuple then has one pair or none, so a kernel that has looked its tuples up knows how many
 * pairs they make; where these go it learns from the blocks before it (place.cuh).  Offsets of all
 * tuples in memory, a scan over them and a search in them are saved, two thirds of the time.
 */
#ifndef GJ_CUDA_JOIN_UNIQUE_CUH
#define GJ_CUDA_JOIN_UNIQUE_CUH

#include "place.cuh"

/* Row ids to write: of the probe tuple through rowid (NULL: the tuple itself), or build. */
typedef struct GjPairColumn
{
	const uint32_t *rowid;
	uint32_t *out;
	bool build_side;
} GjPairColumn;

typedef struct GjPairColumns
{
	uint32_t n;
	GjPairColumn column[GJ_MAX_SOURCES];
} GjPairColumns;

/* Those that out asks for, for tuples of the view. */
static inline GjPairColumns
gj_pair_columns(const GjView *view, uint32_t build_source, uint32_t *const out[GJ_MAX_SOURCES])
{
	GjPairColumns pairs = {};

	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
	{
		if (out[s] == NULL)
			continue;
		pairs.column[pairs.n].rowid = view->rowid[s];
		pairs.column[pairs.n].out = out[s];
		pairs.column[pairs.n].build_side = s == build_source;
		pairs.n++;
	}
	return pairs;
}

/*
 * Pairs of n tuples, items * GJ_THREADS of them a block, in the order of the tuples.  `find` tells
 * for tuple i where to look, find.start(i), and, when that is known for all of a thread's tuples,
 * the row id, find.row(i, start), or GJ_NO_ROW: so their loads are under way together.
 */
template <int items, typename Find>
static __global__ void
__launch_bounds__(GJ_THREADS, items >= 8 ? 4 : 8)
	match_tuples(const __grid_constant__ Find find, uint32_t n,
				 const __grid_constant__ GjPairColumns pairs, TileState tiles, GjResults *results)
{
	__shared__ Place place;
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t base = (blockIdx.x * GJ_THREADS + threadIdx.x - lane) * items + lane;
	typename Find::Start start[items];
	uint32_t row[items];
	uint32_t at[items];
	uint32_t count = 0;
	uint32_t nblock;
	uint64_t first;

#pragma unroll
	for (int k = 0; k < items; k++)
	{
		if (base + k * 32 < n)
			start[k] = find.start(base + k * 32);
	}
#pragma unroll
	for (int k = 0; k < items; k++)
	{
		row[k] = base + k * 32 < n ? find.row(base + k * 32, start[k]) : GJ_NO_ROW;
		__syncwarp();
		const uint32_t found = __ballot_sync(0xFFFFFFFF, row[k] != GJ_NO_ROW);

		at[k] = count + (uint32_t) __popc(found & ((1u << lane) - 1));
		count += (uint32_t) __popc(found);
	}
	/* the first lane counts for its warp */
	count = place_values(place, tiles, lane == 0 ? count : 0, results, &nblock, &first);
	first += __shfl_sync(0xFFFFFFFF, count, 0);
	for (uint32_t c = 0; c < pairs.n; c++)
	{
		const GjPairColumn &column = pairs.column[c];

#pragma unroll
		for (int k = 0; k < items; k++)
		{
			const uint32_t tuple = base + k * 32;

			if (row[k] == GJ_NO_ROW)
				continue;
			column.out[first + at[k]] = column.build_side ? row[k]
										: column.rowid    ? column.rowid[tuple]
														  : tuple;
		}
	}
}

/* Runs it over n > 0 tuples; *npairs (host).  Waits. */
template <int items, typename Find>
static GjStatus
gj_match_tuples(GjQueue *queue, const Find &find, uint32_t n, const GjPairColumns &pairs,
				uint32_t *npairs)
{
	const uint32_t nblocks = gj_blocks(n, GJ_THREADS * items);
	TileState tiles;

	GJ_TRY(start_places(queue, nblocks, &tiles));
	match_tuples<items>
		<<<nblocks, GJ_THREADS, 0, queue->stream>>>(find, n, pairs, tiles, queue->results);
	GJ_LAUNCHED(queue, "match_tuples");
	GJ_TRY(gj_wait(queue));
	*npairs = (uint32_t) queue->pinned->results.total;
	return GJ_OK;
}

/* join_sort.cu: the same of a sorted side. */
GjStatus gj_sort_match(GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
					   const GjSortedMatch *match, const GjPairColumns &pairs, uint32_t *npairs);

#endif /* GJ_CUDA_JOIN_UNIQUE_CUH */
