/*
 * aggregate.cu
 *	  Aggregates over all tuples, without groups.
 *
 * Every thread keeps the states of its rows in registers, for up to MAX_GROUP
 * aggregates at a time that share an argument, so that the argument is evaluated once.
 * A block merges the states of its threads and stores one partial state an aggregate;
 * a second kernel merges these into the states of the queue.  All of it happens in a
 * fixed order: the same tuples give the same float sum.
 */
#include "aggregate.cuh"
#include "tile.cuh"

#define MAX_GROUP 4
#define BLOCKS_PER_SM 6

/* Aggregates first .. first+n-1 of the program, all with argument `arg` (-1: none). */
typedef struct Group
{
	uint32_t first;
	uint32_t n;
	int32_t arg;
	uint32_t op[MAX_GROUP];
} Group;

/* partial[aggregate * gridDim.x + block] for the aggregates of a group. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	aggregate_partial(GjCode code, const __grid_constant__ GjView view,
					  const __grid_constant__ Group group, uint32_t nregisters, uint32_t rows,
					  GjAggState *partial, GjResults *results)
{
	extern __shared__ int64_t memory[];
	__shared__ GjAggState warp_states[GJ_WARPS];
	const GjTile tile = gj_tile_at(memory, nregisters, rows);
	const uint32_t result = code.exprs[group.arg].result * rows;
	GjAggState state[MAX_GROUP];
	uint32_t status = GJ_OK;

#pragma unroll
	for (uint32_t k = 0; k < MAX_GROUP; k++)
		gj_agg_start(&state[k]);
	for (uint64_t base = (uint64_t) blockIdx.x * rows; base < view.nrows;
		 base += (uint64_t) gridDim.x * rows)
	{
		const uint32_t n = (uint32_t) min((uint64_t) rows, view.nrows - base);

		gj_eval(&code, group.arg, &view, (uint32_t) base, n, &tile, &status);
		GJ_TILE_FOR(i, n)
		{
			const int64_t value = tile.value[result + i];

			if (tile.null[result + i])
				continue;
#pragma unroll
			for (uint32_t k = 0; k < MAX_GROUP; k++)
			{
				if (k < group.n)
					gj_agg_step(group.op[k], &state[k], value);
			}
		}
	}
	gj_note_error(results, status);
#pragma unroll
	for (uint32_t k = 0; k < MAX_GROUP; k++)
	{
		if (k < group.n)
		{
			gj_merge_block(group.op[k], &state[k], warp_states);
			if (threadIdx.x == 0)
				partial[(uint64_t) (group.first + k) * gridDim.x + blockIdx.x] = state[k];
		}
	}
}

/* What aggregate_merge needs to know of each aggregate. */
typedef struct Merge
{
	uint8_t op[GJ_MAX_AGGREGATES];
	uint8_t no_arg[GJ_MAX_AGGREGATES]; /* counts the tuples; has no partial states */
} Merge;

/* Merges the partial states of one aggregate a block into the queue's. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	aggregate_merge(const __grid_constant__ Merge merge, uint32_t nrows, uint32_t npartials,
					const GjAggState *partial, GjAggState *states)
{
	const uint32_t a = blockIdx.x;
	const bool no_arg = merge.no_arg[a];

	gj_merge_partials(merge.op[a], no_arg ? nrows : 0, partial + (uint64_t) a * npartials,
					  no_arg ? 0 : npartials, &states[a]);
}

/* The group that starts with aggregate `first`. */
static Group
next_group(const GjAggregate *aggregates, uint32_t naggregates, uint32_t first)
{
	Group group = {};

	group.first = first;
	group.arg = aggregates[first].arg;
	while (group.n < MAX_GROUP && first + group.n < naggregates &&
		   aggregates[first + group.n].arg == group.arg)
	{
		group.op[group.n] = aggregates[first + group.n].op;
		group.n++;
	}
	return group;
}

GjStatus
gj_aggregate(GjQueue *queue, const GjView *view)
{
	const uint32_t max_blocks = (uint32_t) queue->device->nprocessors * BLOCKS_PER_SM;
	const uint32_t npartials = min(gj_blocks(view->nrows, GJ_THREADS), max_blocks);
	const GjAggregate *aggregates;
	uint32_t naggregates;
	Merge merge = {};
	void *partial;

	GJ_TRY(gj_enter(queue));
	aggregates = gj_program_array(queue->program, GjAggregate, aggregates);
	naggregates = queue->program->naggregates;
	if (view->nrows == 0 || naggregates == 0)
		return GJ_OK;
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, (size_t) naggregates * npartials * sizeof(GjAggState),
					  &partial));
	for (uint32_t a = 0; a < naggregates; a++)
	{
		merge.op[a] = (uint8_t) aggregates[a].op;
		merge.no_arg[a] = aggregates[a].arg < 0;
	}
	for (uint32_t a = 0; a < naggregates;)
	{
		const Group group = next_group(aggregates, naggregates, a);
		uint32_t nregisters;

		a += group.n;
		if (group.arg < 0)
			continue;
		nregisters = gj_queue_expr(queue, group.arg)->nregisters;
		/* a block without a tile still stores its states, which are empty */
		aggregate_partial<<<npartials, GJ_THREADS, gj_tile_bytes(nregisters), queue->stream>>>(
			queue->code, *view, group, nregisters, gj_tile_rows(nregisters), (GjAggState *) partial,
			queue->results);
		GJ_LAUNCHED(queue, "aggregate_partial");
	}
	aggregate_merge<<<naggregates, GJ_THREADS, 0, queue->stream>>>(
		merge, view->nrows, npartials, (const GjAggState *) partial, queue->states);
	GJ_LAUNCHED(queue, "aggregate_merge");
	return GJ_OK;
}

GjStatus
gj_aggregate_read(GjQueue *queue, GjAggState *states)
{
	GJ_TRY(gj_wait_all(queue));
	memcpy(states, queue->pinned->states, queue->program->naggregates * sizeof(GjAggState));
	return GJ_OK;
}
