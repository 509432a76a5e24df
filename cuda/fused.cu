/*
 * fused.cu
 *	  Filter, joins and aggregates of outer rows in one kernel.
 *
 * A row belongs to one thread, which takes it through all of it: values of common forms are
 * computed in registers, others by gj_eval over a tile with one row a thread.  Row ids lie
 * in shared memory, a column of them a slot, because gj_eval reads them there and so that
 * they can be found by number.  Lanes whose row was dropped wait for their warp; nothing is
 * moved together, for what bounds this kernel is the loads of table slots, and enough warps
 * hide their latency.
 *
 * Blocks take chunks of the parts' rows in a fixed order, so that the same rows give the
 * same float sum.  Without groups every thread keeps its states in registers.  With groups
 * a value is added to the group's state by atomic operations, in a table of the block in
 * shared memory if they fit; tuples whose group is not known are written to lists.
 */
#include <stdlib.h>
#include <string.h>

#include "../src/rows/fused.h"
#include "aggregate.cuh"
#include "group_state.cuh"
#include "tile.cuh"

#define CHUNK 1024 /* rows */
#define BLOCKS_PER_SM 8
#define GROUP_THREADS 512            /* of a block where no tile takes its shared memory */
#define LOCAL_BYTES (46 * 1024)      /* that any GPU has, with what the kernels have besides */
#define MOST_LOCAL_BYTES (96 * 1024) /* that any GPU since Ampere has if it is asked for */
#define MAX_COPIES 16
#define LOCAL_ROWS 8 /* rows a block and local state, at least, that make it worth while */

/* Rows of one part. */
typedef struct Part
{
	uint32_t first_chunk;
	uint32_t first_row; /* rows of the parts before */
	uint32_t nrows;
} Part;

/* What all kernels get beside the plan; device memory. */
typedef struct Input
{
	const Part *parts;
	const GjColumn *columns; /* the program's, for each part */
	uint32_t *nmissed;       /* of each part */
	uint32_t nparts;
	uint32_t nchunks;
	uint64_t *counts;
	GjResults *results;
} Input;

/* Where missed tuples go. */
typedef struct Missed
{
	uint32_t *rowid[GJ_FUSED_STEPS + 1];
} Missed;

/* A block's shared memory, but for the local table. */
typedef struct Shared
{
	GjView view; /* of gj_eval: columns are those of the part at work */
	uint32_t counts[GJ_FUSED_STEPS + 1];
} Shared;

/* What a thread needs to compute values of its tuple. */
typedef struct Tuple
{
	const GjCode *code;
	const GjView *view;
	const GjColumn *columns;
	uint32_t *rowid; /* slot s at [s * stride] */
	uint32_t stride; /* threads of a block */
	GjTile tile;
	uint32_t status;
} Tuple;

/* ---- values and conditions; `has_code`: some of the plan's are GJ_FUSED_CODE */

/* Evaluates expression e for the thread's tuple; true: NULL. */
static __device__ __noinline__ bool
eval_one(const GjCode *code, const GjView *view, const GjTile *tile, uint32_t e, int64_t *value,
		 uint32_t *status)
{
	const uint32_t at = code->exprs[e].result * tile->stride + threadIdx.x;

	/* a thread's rows of a tile of blockDim.x are one */
	gj_eval(code, e, view, 0, blockDim.x, tile, status);
	*value = tile->value[at];
	return tile->null[at] != 0;
}

template <bool has_code>
static __device__ __forceinline__ bool
value_of(const GjFusedExpr &e, Tuple &t, int64_t *value)
{
	if (!has_code || e.form == GJ_FUSED_SIMPLE)
		return gj_fused_simple(&e, t.columns, t.rowid, t.stride, value, &t.status);
	return eval_one(t.code, t.view, &t.tile, (uint32_t) e.expr, value, &t.status);
}

template <bool has_code>
static __device__ __forceinline__ bool
is_true(const GjFusedPlan &plan, const GjFusedCondition &condition, Tuple &t)
{
	int64_t value;

	if (condition.form == GJ_FUSED_NONE)
		return true;
	if (!has_code || condition.form == GJ_FUSED_ALL_TERMS)
		return gj_fused_terms(&plan, &condition, t.columns, t.rowid, t.stride, &t.status);
	return !eval_one(t.code, t.view, &t.tile, (uint32_t) condition.expr, &value, &t.status) &&
		   value != 0;
}

/* ---- steps */

/* Normalised key k of a step; true: NULL. */
template <bool has_code>
static __device__ __forceinline__ bool
key_of(const GjFusedPlan &plan, const GjFusedStep &step, uint32_t k, Tuple &t, int64_t *key)
{
	const GjFusedExpr &e = plan.exprs[step.first_key + k];
	const bool null = value_of<has_code>(e, t, key);

	*key = gj_key_bits(*key, e.is_float);
	return null;
}

template <bool has_code>
static __device__ __forceinline__ uint32_t
find_row(const GjFusedPlan &plan, const GjFusedStep &step, Tuple &t)
{
	int64_t key[GJ_MAX_KEYS];
	bool null = false;

	if (step.nslots == 0)
		return GJ_NO_ROW;
	if (step.nkeys == 1)
	{
		int64_t one;

		if (key_of<has_code>(plan, step, 0, t, &one))
			return GJ_NO_ROW;
		return gj_fused_find(&step, &one, 1, 1, gj_fused_hash(&one, 1, 1));
	}
	for (uint32_t k = 0; k < step.nkeys; k++)
		null |= key_of<has_code>(plan, step, k, t, &key[k]);
	if (null)
		return GJ_NO_ROW;
	return gj_fused_find(&step, key, step.nkeys, 1, gj_fused_hash(key, step.nkeys, 1));
}

/* Takes a tuple through step s; false: it does not go on. */
template <bool has_code>
static __device__ __forceinline__ bool
join_step(const GjFusedPlan &plan, uint32_t s, Tuple &t)
{
	const GjFusedStep &step = plan.steps[s];
	uint32_t *rowid = &t.rowid[(s + 1) * t.stride];
	bool found;

	*rowid = find_row<has_code>(plan, step, t);
	found = *rowid != GJ_NO_ROW;
	if (found && !is_true<has_code>(plan, step.residual, t))
	{
		found = false;
		*rowid = GJ_NO_ROW;
	}
	return gj_fused_goes_on(step.join_type, found) && is_true<has_code>(plan, step.filter, t);
}

/* All lanes of the warp call it: counts those whose tuple has got that far. */
static __device__ __forceinline__ void
count_tuples(uint32_t *count, bool alive)
{
	const uint32_t lanes = __ballot_sync(0xFFFFFFFF, alive);

	if (threadIdx.x % 32 == 0 && lanes != 0)
		atomicAdd(count, (uint32_t) __popc(lanes));
}

/* Takes the row through filter and steps, together with those of the other lanes. */
template <bool has_code>
static __device__ __forceinline__ bool
take_row(const GjFusedPlan &plan, uint32_t row, bool alive, Tuple &t, uint32_t *counts)
{
	t.rowid[0] = row;
	if (alive)
		alive = is_true<has_code>(plan, plan.filter, t);
	count_tuples(&counts[0], alive);
	for (uint32_t s = 0; s < plan.nsteps; s++)
	{
		if (alive)
			alive = join_step<has_code>(plan, s, t);
		count_tuples(&counts[s + 1], alive);
	}
	return alive;
}

/* ---- the frame of the kernels */

/* Lays out what follows the local table; bytes as tail_bytes says. */
static __device__ __forceinline__ Tuple
start_block(const GjCode *code, const GjFusedPlan &plan, Shared *shared, int64_t *tail)
{
	uint32_t *rowids;
	Tuple t;

	t.tile = gj_tile_at(tail, plan.nregisters, blockDim.x);
	rowids = (uint32_t *) (t.tile.null + (size_t) plan.nregisters * blockDim.x);
	t.code = code;
	t.view = &shared->view;
	t.columns = NULL;
	t.rowid = rowids + threadIdx.x;
	t.stride = blockDim.x;
	t.status = GJ_OK;
	if (threadIdx.x <= GJ_FUSED_STEPS)
		shared->counts[threadIdx.x] = 0;
	if (threadIdx.x == 0)
	{
		memset(&shared->view, 0, sizeof(GjView));
		shared->view.nrows = blockDim.x;
		shared->view.no_row = plan.no_row;
		shared->view.rowid[0] = rowids;
		for (uint32_t s = 0; s < plan.nsteps; s++)
			shared->view.rowid[plan.steps[s].source] = rowids + (s + 1) * blockDim.x;
	}
	__syncthreads();
	return t;
}

/* The part of a chunk, whose columns the block reads from here on. */
template <bool has_code>
static __device__ __forceinline__ uint32_t
start_chunk(const GjFusedPlan &plan, const Input &input, uint32_t chunk, Shared *shared, Tuple &t)
{
	uint32_t low = 0;
	uint32_t high = input.nparts;

	/* the last part that starts at or before it: parts without rows have none */
	while (high - low > 1)
	{
		const uint32_t mid = low + (high - low) / 2;

		if (input.parts[mid].first_chunk <= chunk)
			low = mid;
		else
			high = mid;
	}
	t.columns = input.columns + (size_t) low * plan.ncolumns;
	if (has_code)
	{
		/* threads may still evaluate rows of the chunk before */
		__syncthreads();
		if (threadIdx.x == 0)
			shared->view.columns = t.columns;
		__syncthreads();
	}
	return low;
}

static __device__ __forceinline__ void
end_block(const GjFusedPlan &plan, const Input &input, const Shared *shared, const Tuple &t)
{
	gj_note_error(input.results, t.status);
	__syncthreads();
	if (threadIdx.x <= plan.nsteps && shared->counts[threadIdx.x] != 0)
		atomicAdd((unsigned long long *) &input.counts[threadIdx.x],
				  (unsigned long long) shared->counts[threadIdx.x]);
}

/* ---- aggregates of all tuples */

/*
 * partial[aggregate * gridDim.x + block], for up to `most` aggregates.  Many warps hide the
 * latency of the loads: rather some registers in memory than few warps.
 */
template <uint32_t most, bool has_code>
static __global__ void
__launch_bounds__(GJ_THREADS, most <= 2 ? 3 : 2)
	fused_aggregate(GjCode code, const __grid_constant__ GjFusedPlan plan,
					const __grid_constant__ Input input, GjAggState *partial)
{
	extern __shared__ int64_t memory[];
	__shared__ Shared shared;
	__shared__ GjAggState warp_states[GJ_WARPS];
	Tuple t = start_block(&code, plan, &shared, memory);
	GjAggState state[most];

#pragma unroll
	for (uint32_t a = 0; a < most; a++)
		gj_agg_start(&state[a]);
	for (uint32_t chunk = blockIdx.x; chunk < input.nchunks; chunk += gridDim.x)
	{
		const Part part = input.parts[start_chunk<has_code>(plan, input, chunk, &shared, t)];
		const uint32_t first = (chunk - part.first_chunk) * CHUNK;
		const uint32_t end = min(first + CHUNK, part.nrows);

		for (uint32_t base = first; base < end; base += GJ_THREADS)
		{
			const uint32_t row = base + threadIdx.x;
			int64_t value = 0;
			bool null = false;

			if (!take_row<has_code>(plan, row, row < end, t, shared.counts))
				continue;
#pragma unroll
			for (uint32_t a = 0; a < most; a++)
			{
				if (a >= plan.naggregates)
					continue;
				/* neighbours of one argument take the same value */
				if (a == 0 || plan.aggregate_expr[a] != plan.aggregate_expr[a - 1])
				{
					const GjFusedExpr &e = plan.exprs[plan.aggregate_expr[a]];

					null = e.form != GJ_FUSED_NONE && value_of<has_code>(e, t, &value);
				}
				if (!null)
					gj_agg_step(plan.aggregate_op[a], &state[a], value);
			}
		}
		__syncwarp();
	}
	end_block(plan, input, &shared, t);
#pragma unroll
	for (uint32_t a = 0; a < most; a++)
	{
		if (a >= plan.naggregates)
			continue;
		gj_merge_block(plan.aggregate_op[a], &state[a], warp_states);
		if (threadIdx.x == 0)
			partial[(uint64_t) a * gridDim.x + blockIdx.x] = state[a];
	}
}

/* Merges the partial states of aggregate blockIdx.x into the queue's. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	fused_merge(const __grid_constant__ GjFusedPlan plan, uint32_t npartials,
				const GjAggState *partial, GjAggState *states)
{
	__shared__ GjAggState warp_states[GJ_WARPS];
	const uint32_t a = blockIdx.x;
	const uint32_t op = plan.aggregate_op[a];
	GjAggState state;

	gj_agg_start(&state);
	for (uint32_t i = threadIdx.x; i < npartials; i += GJ_THREADS)
		gj_agg_merge(op, &state, &partial[(uint64_t) a * npartials + i]);
	gj_merge_block(op, &state, warp_states);
	if (threadIdx.x == 0)
		gj_agg_merge(op, &states[a], &state);
}

/* ---- aggregates of groups */

/* The group of a tuple, or GJ_FUSED_NO_GROUP. */
template <bool has_code>
static __device__ __forceinline__ uint32_t
group_of(const GjFusedPlan &plan, const GjGroups &groups, Tuple &t)
{
	GjFusedKeys keys;

	keys.null = 0;
	keys.hash = 0;
#pragma unroll
	for (uint32_t k = 0; k < GJ_FUSED_GROUP_KEYS; k++)
	{
		const GjFusedExpr &e = plan.exprs[plan.group_expr[k]];
		const uint8_t *heap = NULL;
		int64_t value;
		bool null;

		if (k >= plan.ngroup_keys)
			continue;
		if (plan.group_how[k] > GJ_GROUP_FLOAT)
		{
			null = gj_fused_carried(&e, t.columns, t.rowid, t.stride, &value);
			heap = t.columns[e.a].heap;
		}
		else
			null = value_of<has_code>(e, t, &value);
		gj_fused_add_key(&keys, k, plan.group_how[k], null, value, heap, &t.status);
	}
	return gj_fused_group(&keys, &groups);
}

/* Adds a tuple to the aggregates of group g; states of aggregate a are at state(a). */
template <bool has_code, typename State>
static __device__ __forceinline__ void
add_tuple(const GjFusedPlan &plan, Tuple &t, State state)
{
	int64_t value = 0;
	bool null = false;

	for (uint32_t a = 0; a < plan.naggregates; a++)
	{
		const GjFusedExpr &e = plan.exprs[plan.aggregate_expr[a]];

		/* they take their values when the groups are finished */
		if (gj_agg_is_distinct(plan.aggregate_op[a]))
			continue;
		null = e.form != GJ_FUSED_NONE && value_of<has_code>(e, t, &value);
		if (!null)
			add_value(plan.aggregate_op[a], state(a), value);
	}
}

/* All lanes of the warp call it: writes the tuples that are missed to their part's list. */
static __device__ __forceinline__ void
write_missed(const GjFusedPlan &plan, const Missed &missed, const Part &part, uint32_t *nmissed,
			 const Tuple &t, bool miss)
{
	const uint32_t lanes = __ballot_sync(0xFFFFFFFF, miss);
	const uint32_t lane = threadIdx.x % 32;
	uint32_t at = 0;

	if (lanes == 0)
		return;
	if (lane == 0)
		at = atomicAdd(nmissed, (uint32_t) __popc(lanes));
	at = part.first_row + __shfl_sync(0xFFFFFFFF, at, 0) + __popc(lanes & ((1u << lane) - 1));
	if (!miss)
		return;
	for (uint32_t s = 0; s <= plan.nsteps; s++)
	{
		if (missed.rowid[s] != NULL)
			missed.rowid[s][at] = t.rowid[s * t.stride];
	}
}

/*
 * A local table has `copies` of the states of all groups, aggregate by aggregate; threads
 * use them in turn.
 */
template <uint32_t threads, bool has_code, bool local>
static __global__ void
__launch_bounds__(threads)
	fused_group(GjCode code, const __grid_constant__ GjFusedPlan plan,
				const __grid_constant__ Input input, const __grid_constant__ GjGroups groups,
				const __grid_constant__ Missed missed, uint32_t copies)
{
	extern __shared__ int64_t memory[];
	__shared__ Shared shared;
	const uint32_t ngroups = groups.rows.nrows;
	const uint32_t nlocal = local ? plan.naggregates * copies * ngroups : 0;
	const uint32_t copy = local ? threadIdx.x % copies * ngroups : 0;
	GjAggState *table = (GjAggState *) memory;
	Tuple t = start_block(&code, plan, &shared,
						  memory + (size_t) nlocal * (sizeof(GjAggState) / sizeof(int64_t)));

	if constexpr (local)
	{
		for (uint32_t i = threadIdx.x; i < nlocal; i += threads)
			start_state(plan.aggregate_op[i / (copies * ngroups)], &table[i]);
		__syncthreads();
	}
	for (uint32_t chunk = blockIdx.x; chunk < input.nchunks; chunk += gridDim.x)
	{
		const uint32_t p = start_chunk<has_code>(plan, input, chunk, &shared, t);
		const Part part = input.parts[p];
		const uint32_t first = (chunk - part.first_chunk) * CHUNK;
		const uint32_t end = min(first + CHUNK, part.nrows);

		for (uint32_t base = first; base < end; base += threads)
		{
			const uint32_t row = base + threadIdx.x;
			const bool alive = take_row<has_code>(plan, row, row < end, t, shared.counts);
			const uint32_t g = alive ? group_of<has_code>(plan, groups, t) : 0;

			if (alive && g != GJ_FUSED_NO_GROUP)
			{
				if constexpr (local)
					add_tuple<has_code>(plan, t,
										[&](uint32_t a) {
											return &table[(size_t) a * copies * ngroups + copy + g];
										});
				else
					add_tuple<has_code>(plan, t, [&](uint32_t a) { return &groups.state[a][g]; });
			}
			write_missed(plan, missed, part, &input.nmissed[p], t, alive && g == GJ_FUSED_NO_GROUP);
		}
	}
	end_block(plan, input, &shared, t);
	if constexpr (local)
	{
		for (uint32_t i = threadIdx.x; i < plan.naggregates * ngroups; i += threads)
		{
			const uint32_t a = i / ngroups;
			const uint32_t g = i % ngroups;
			GjAggState sum;

			start_state(plan.aggregate_op[a], &sum);
			for (uint32_t c = 0; c < copies; c++)
				combine(plan.aggregate_op[a], &sum,
						table[(size_t) a * copies * ngroups + (size_t) c * ngroups + g]);
			add_state(plan.aggregate_op[a], &groups.state[a][g], sum);
		}
	}
}

/* ---- the host's part */

/* Bytes of tile and row ids of a block. */
static size_t
tail_bytes(const GjFusedPlan *plan, uint32_t threads)
{
	return (size_t) threads *
		   (plan->nregisters * (sizeof(int64_t) + 1) + (plan->nsteps + 1) * sizeof(uint32_t));
}

/* Bytes from the start to where columns and numbers of the parts lie. */
static size_t
columns_at(uint32_t nparts)
{
	return gj_align((uint64_t) nparts * sizeof(Part));
}

static size_t
missed_at(const GjFusedPlan *plan, uint32_t nparts)
{
	return columns_at(nparts) + (size_t) nparts * plan->ncolumns * sizeof(GjColumn);
}

/* Lays out in host memory what the kernels read of the parts; returns chunks. */
static uint32_t
describe_parts(const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
			   uint32_t nparts, uint8_t *memory)
{
	Part *to = (Part *) memory;
	GjColumn *to_columns = (GjColumn *) (memory + columns_at(nparts));
	uint32_t nchunks = 0;
	uint32_t nrows = 0;

	for (uint32_t p = 0; p < nparts; p++)
	{
		to[p].first_chunk = nchunks;
		to[p].first_row = nrows;
		to[p].nrows = parts[p].nrows;
		nchunks += gj_blocks(parts[p].nrows, CHUNK);
		nrows += parts[p].nrows;
		memcpy(to_columns, columns, plan->ncolumns * sizeof(GjColumn));
		memcpy(to_columns + plan->first_column, parts[p].columns, plan->nouter * sizeof(GjColumn));
		to_columns += plan->ncolumns;
	}
	memset(memory + missed_at(plan, nparts), 0, nparts * sizeof(uint32_t));
	return nchunks;
}

/* Brings the parts to the device. */
static GjStatus
upload_parts(GjQueue *queue, const GjFusedPlan *plan, const GjColumn *columns,
			 const GjFusedPart *parts, uint32_t nparts, Input *input)
{
	const size_t nbytes = missed_at(plan, nparts) + nparts * sizeof(uint32_t);
	uint8_t *host;
	uint8_t *device;
	cudaError_t error;

	GJ_TRY(gj_buffer(queue, &queue->parts, nbytes));
	host = (uint8_t *) malloc(nbytes);
	if (host == NULL)
		return GJ_OUT_OF_HOST_MEMORY;
	device = (uint8_t *) queue->parts.memory;
	input->nchunks = describe_parts(plan, columns, parts, nparts, host);
	input->nparts = nparts;
	input->parts = (const Part *) device;
	input->columns = (const GjColumn *) (device + columns_at(nparts));
	input->nmissed = (uint32_t *) (device + missed_at(plan, nparts));
	/* memory that is not pinned has been read when the call returns */
	error = cudaMemcpyAsync(device, host, nbytes, cudaMemcpyHostToDevice, queue->stream);
	free(host);
	GJ_CUDA(queue, error);
	return GJ_OK;
}

/* The counters of the queue, which start at 0. */
static GjStatus
make_counts(GjQueue *queue)
{
	const size_t nbytes = (GJ_FUSED_STEPS + 1) * sizeof(uint64_t);

	if (queue->fused_counts != NULL)
		return GJ_OK;
	queue->fused_counts = (uint64_t *) gj_alloc(queue, nbytes);
	if (queue->fused_counts == NULL)
		return gj_no_memory(queue);
	GJ_CUDA(queue, cudaMemsetAsync(queue->fused_counts, 0, nbytes, queue->stream));
	return GJ_OK;
}

template <uint32_t most, bool has_code>
static GjStatus
launch_aggregate(GjQueue *queue, const GjFusedPlan *plan, const Input &input)
{
	const uint32_t blocks =
		min(input.nchunks, (uint32_t) queue->device->nprocessors * BLOCKS_PER_SM);
	const size_t nbytes = tail_bytes(plan, GJ_THREADS);
	GjAggState *partial;
	void *memory;

	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, (size_t) plan->naggregates * blocks * sizeof(GjAggState),
					  &memory));
	partial = (GjAggState *) memory;
	fused_aggregate<most, has_code>
		<<<blocks, GJ_THREADS, nbytes, queue->stream>>>(queue->code, *plan, input, partial);
	GJ_LAUNCHED(queue, "fused_aggregate");
	if (plan->naggregates == 0)
		return GJ_OK;
	fused_merge<<<plan->naggregates, GJ_THREADS, 0, queue->stream>>>(*plan, blocks, partial,
																	 queue->states);
	GJ_LAUNCHED(queue, "fused_merge");
	return GJ_OK;
}

/* Few aggregates are the rule, and states in registers are dear. */
template <bool has_code>
static GjStatus
launch_for_size(GjQueue *queue, const GjFusedPlan *plan, const Input &input)
{
	if (plan->naggregates <= 2)
		return launch_aggregate<2, has_code>(queue, plan, input);
	if (plan->naggregates <= 4)
		return launch_aggregate<4, has_code>(queue, plan, input);
	return launch_aggregate<GJ_FUSED_AGGREGATES, has_code>(queue, plan, input);
}

/* Copies of a local table that a block can have and that are worth while; 0: none. */
static uint32_t
local_copies(const GjQueue *queue, const GjFusedPlan *plan, const Input &input,
			 const GjGroups *groups, uint32_t threads)
{
	const uint64_t one = (uint64_t) plan->naggregates * groups->rows.nrows * sizeof(GjAggState);
	const uint64_t rest = tail_bytes(plan, threads);
	uint32_t copies = 1;

	if (one == 0 || (uint64_t) input.nchunks * CHUNK / queue->device->nprocessors <
						(uint64_t) groups->rows.nrows * LOCAL_ROWS)
		return 0;
	while (copies < MAX_COPIES && one * copies * 2 + rest <= LOCAL_BYTES)
		copies *= 2;
	if (one * copies + rest <= LOCAL_BYTES)
		return copies;
	return one + rest <= MOST_LOCAL_BYTES ? 1 : 0;
}

template <uint32_t threads, bool has_code>
static GjStatus
launch_group(GjQueue *queue, const GjFusedPlan *plan, const Input &input, const GjGroups *groups,
			 const Missed &missed)
{
	const uint32_t copies = local_copies(queue, plan, input, groups, threads);
	const size_t nbytes =
		(size_t) copies * plan->naggregates * groups->rows.nrows * sizeof(GjAggState) +
		tail_bytes(plan, threads);
	/* with large tables few blocks run at once, and each merges its own */
	const uint32_t per_sm = copies == 0 ? 2048 / threads : nbytes <= LOCAL_BYTES ? 4 : 2;
	const uint32_t blocks = min(input.nchunks, (uint32_t) queue->device->nprocessors * per_sm);

	if (copies > 0)
	{
		/* always the same, for other threads launch it as well */
		if (nbytes > LOCAL_BYTES)
			GJ_CUDA(queue, cudaFuncSetAttribute(fused_group<threads, has_code, true>,
												cudaFuncAttributeMaxDynamicSharedMemorySize,
												MOST_LOCAL_BYTES));
		fused_group<threads, has_code, true><<<blocks, threads, nbytes, queue->stream>>>(
			queue->code, *plan, input, *groups, missed, copies);
	}
	else
		fused_group<threads, has_code, false><<<blocks, threads, nbytes, queue->stream>>>(
			queue->code, *plan, input, *groups, missed, 1);
	GJ_LAUNCHED(queue, "fused_group");
	return GJ_OK;
}

static GjStatus
launch_with_code(GjQueue *queue, const GjFusedPlan *plan, const Input &input,
				 const GjGroups *groups, const Missed &missed)
{
	return launch_group<GJ_THREADS, true>(queue, plan, input, groups, missed);
}

static GjStatus
launch_without_code(GjQueue *queue, const GjFusedPlan *plan, const Input &input,
					const GjGroups *groups, const Missed &missed)
{
	return launch_group<GROUP_THREADS, false>(queue, plan, input, groups, missed);
}

/* Brings the numbers of missed tuples back. */
static GjStatus
read_missed(GjQueue *queue, const Input &input, const GjFusedPart *parts, GjFusedMissed *missed)
{
	uint32_t before = 0;

	GJ_CUDA(queue,
			cudaMemcpyAsync(queue->pinned->missed, input.nmissed, input.nparts * sizeof(uint32_t),
							cudaMemcpyDeviceToHost, queue->stream));
	GJ_TRY(gj_wait(queue));
	for (uint32_t p = 0; p < input.nparts; p++)
	{
		missed->first[p] = before;
		missed->n[p] = queue->pinned->missed[p];
		before += parts[p].nrows;
	}
	return GJ_OK;
}

GjStatus
gj_fused(GjQueue *queue, const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
		 uint32_t nparts, const GjGroups *groups, GjFusedMissed *missed)
{
	Input input = {};
	Missed lists = {};

	static_assert(sizeof(GjCode) + sizeof(GjFusedPlan) + sizeof(Input) + sizeof(GjGroups) +
						  sizeof(Missed) <=
					  4000,
				  "parameters of a kernel");
	GJ_TRY(gj_enter(queue));
	GJ_TRY(make_counts(queue));
	GJ_TRY(upload_parts(queue, plan, columns, parts, nparts, &input));
	input.counts = queue->fused_counts;
	input.results = queue->results;
	if (groups == NULL)
	{
		if (input.nchunks == 0)
			return GJ_OK;
		return plan->nregisters > 0 ? launch_for_size<true>(queue, plan, input)
									: launch_for_size<false>(queue, plan, input);
	}
	memcpy(lists.rowid, missed->rowid, sizeof(lists.rowid));
	if (input.nchunks > 0)
		GJ_TRY(plan->nregisters > 0 ? launch_with_code(queue, plan, input, groups, lists)
									: launch_without_code(queue, plan, input, groups, lists));
	return read_missed(queue, input, parts, missed);
}

GjStatus
gj_fused_counts(GjQueue *queue, uint64_t counts[GJ_FUSED_STEPS + 1])
{
	const size_t nbytes = (GJ_FUSED_STEPS + 1) * sizeof(uint64_t);

	GJ_TRY(gj_enter(queue));
	memset(queue->pinned->fused_counts, 0, nbytes);
	if (queue->fused_counts != NULL)
		GJ_CUDA(queue, cudaMemcpyAsync(queue->pinned->fused_counts, queue->fused_counts, nbytes,
									   cudaMemcpyDeviceToHost, queue->stream));
	GJ_TRY(gj_wait(queue));
	memcpy(counts, queue->pinned->fused_counts, nbytes);
	return GJ_OK;
}
