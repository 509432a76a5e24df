/*
 * fused.cu
 *	  Filter, joins and aggregates of outer rows in one kernel.
 *
 * A row belongs to one thread, which takes it through all of it, together with some others
 * (fused_rows.cuh).  Lanes whose rows were dropped wait for their warp; what bounds this kernel is
 *the loads of table slots, and enough of them under way hide their latency.
 *
 * Where few tuples come through a step, as a sample of the rows tells, those that do are written to
 * lists, and another kernel takes them on: else warps would go through the later steps for one or
 * two of their lanes.
 *
 * Blocks take chunks of the parts' rows in a fixed order, so that the same rows give the
 * same float sum.  Without groups every thread keeps its states in registers.  With groups
 * a value is added to the group's state by atomic operations, in a table of the block in
 * shared memory if they fit; tuples whose group is not known are written to lists.
 */
#include <stdlib.h>
#include <string.h>

#include "fused_groups.cuh"
#include "fused_plain.cuh"

#define ROWS 4                        /* of a thread at a time, where gj_eval is not needed */
#define MIN_CHUNK (GJ_THREADS * ROWS) /* rows */
#define MAX_CHUNK (8 * MIN_CHUNK)
#define CHUNKS_PER_SM 64 /* that are enough for its blocks to end at the same time */
/* That are enough to prefer chunks that give each thread as many rows as it can take at once. */
#define FEW_CHUNKS_PER_SM 8
#define SAMPLED_ROWS (256u * 1024)
/* Calls with a plan, of other runs, that do what a sample told, before there is another sample. */
#define MAX_CUT_USES 32
#define LOCAL_BYTES (46 * 1024)      /* that any GPU has, with what the kernels have besides */
#define MOST_LOCAL_BYTES (96 * 1024) /* that any GPU since Ampere has if it is asked for */
#define MAX_COPIES 16
#define MAX_BLOCKS_PER_SM (2048 / GJ_THREADS)
#define LOCAL_ROWS 8 /* rows a block and local state, at least, that make it worth while */

/* Where missed tuples go. */
typedef struct Missed
{
	uint32_t *rowid[GJ_FUSED_STEPS + 1];
	uint8_t *data[GJ_FUSED_OUTER];
	uint8_t *nulls[GJ_FUSED_OUTER];
	bool together;
} Missed;

/* A block's shared memory, but for the local table. */
typedef struct Shared
{
	GjView view; /* of gj_eval: columns are those of the part at work */
	uint32_t counts[GJ_FUSED_STEPS + 1];
} Shared;

/* ---- the frame of the kernels */

/* Lays out what follows the local table; bytes as tail_bytes says. */
template <uint32_t R>
static __device__ __forceinline__ Tuples<R>
start_block(const GjCode *code, const GjFusedPlan &plan, Shared *shared, int64_t *tail)
{
	uint32_t *rowids;
	Tuples<R> t;

	t.tile = gj_tile_at(tail, plan.nregisters, blockDim.x);
	rowids = (uint32_t *) (t.tile.null + (size_t) plan.nregisters * blockDim.x);
	t.code = code;
	t.view = &shared->view;
	t.columns = NULL;
	t.rowid = rowids + threadIdx.x;
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
			shared->view.rowid[plan.steps[s].source] = rowids + (s + 1) * R * GJ_THREADS;
	}
	__syncthreads();
	return t;
}

/* The part of a chunk, whose columns the block reads from here on. */
template <uint32_t R, bool has_code>
static __device__ __forceinline__ uint32_t
start_chunk(const GjFusedPlan &plan, const Input &input, uint32_t chunk, Shared *shared,
			Tuples<R> &t)
{
	const uint32_t p = part_of_chunk(input, chunk, 0);

	t.columns = input.columns + (size_t) p * plan.ncolumns;
	if (has_code)
	{
		/* threads may still evaluate rows of the chunk before */
		__syncthreads();
		if (threadIdx.x == 0)
			shared->view.columns = t.columns;
		__syncthreads();
	}
	return p;
}

/* The thread's tuples of rows base .. that are before `end`. */
template <uint32_t R>
static __device__ __forceinline__ uint32_t
tuples_before(uint32_t base, uint32_t end)
{
	uint32_t there = 0;

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
		there |= (uint32_t) (base + i * blockDim.x + threadIdx.x < end) << i;
	return there;
}

/* Tuples of part p that a stage starts with. */
static __device__ __forceinline__ uint32_t
tuples_of(const Stage &stage, const Part &part, uint32_t p)
{
	return stage.from.n != NULL ? stage.from.n[p] : part.nrows;
}

static __device__ __forceinline__ void
end_block(const GjFusedPlan &plan, const Input &input, const Shared *shared, uint32_t status)
{
	gj_note_error(input.results, status);
	__syncthreads();
	if (threadIdx.x <= plan.nsteps && shared->counts[threadIdx.x] != 0)
		atomicAdd((unsigned long long *) &input.counts[threadIdx.x],
				  (unsigned long long) shared->counts[threadIdx.x]);
}

/* ---- tuples on their way */

/* All lanes of the warp call it: appends their tuples, which have come through `end` steps. */
template <uint32_t R>
static __device__ __forceinline__ void
append_tuples(const TupleList &to, uint32_t end, const Part &part, uint32_t p, const Tuples<R> &t,
			  uint32_t alive)
{
	const uint32_t lane = threadIdx.x % 32;
	uint32_t at[R];
	uint32_t total = 0;
	uint32_t first = 0;

#pragma unroll
	for (uint32_t i = 0; i < R; i++)
	{
		const uint32_t lanes = __ballot_sync(0xFFFFFFFF, alive >> i & 1);

		at[i] = total + __popc(lanes & ((1u << lane) - 1));
		total += __popc(lanes);
	}
	if (total == 0)
		return;
	if (lane == 0)
		first = atomicAdd(&to.n[p], total);
	first = part.first_row + __shfl_sync(0xFFFFFFFF, first, 0);
#pragma unroll 1
	for (uint32_t s = 0; s <= end; s++)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			if (alive >> i & 1)
				to.rowid[s][first + at[i]] = t.rowid[(s * R + i) * GJ_THREADS];
		}
	}
}

/* Takes every stride'th chunk through a stage, and appends what comes out (to.n = NULL: nowhere).
 */
template <bool has_code>
static __global__ void
__launch_bounds__(GJ_THREADS)
	fused_select(GjCode code, const __grid_constant__ GjFusedPlan plan,
				 const __grid_constant__ Input input, const __grid_constant__ Stage stage,
				 const __grid_constant__ TupleList to, uint32_t stride)
{
	constexpr uint32_t R = has_code ? 1 : ROWS;
	extern __shared__ int64_t memory[];
	__shared__ Shared shared;
	Tuples<R> t = start_block<R>(&code, plan, &shared, memory);

	for (uint32_t chunk = blockIdx.x * stride; chunk < input.nchunks; chunk += gridDim.x * stride)
	{
		const uint32_t p = start_chunk<R, has_code>(plan, input, chunk, &shared, t);
		const Part part = input.parts[p];
		const uint32_t first = (chunk - part.first_chunk) * input.chunk;
		const uint32_t end = min(first + input.chunk, tuples_of(stage, part, p));

		for (uint32_t base = first; base < end; base += R * GJ_THREADS)
		{
			const uint32_t alive =
				take_tuples<R, has_code>(plan, stage, part.first_row, base + threadIdx.x,
										 tuples_before<R>(base, end), t, shared.counts);

			if (to.n != NULL)
				append_tuples<R>(to, stage.end, part, p, t, alive);
		}
	}
	end_block(plan, input, &shared, t.status);
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
					const __grid_constant__ Input input, const __grid_constant__ Stage stage,
					GjAggState *partial)
{
	constexpr uint32_t R = has_code ? 1 : ROWS;
	extern __shared__ int64_t memory[];
	__shared__ Shared shared;
	__shared__ GjAggState warp_states[GJ_WARPS];
	Tuples<R> t = start_block<R>(&code, plan, &shared, memory);
	GjAggState state[most];

#pragma unroll
	for (uint32_t a = 0; a < most; a++)
		gj_agg_start(&state[a]);
	for (uint32_t chunk = blockIdx.x; chunk < input.nchunks; chunk += gridDim.x)
	{
		const uint32_t p = start_chunk<R, has_code>(plan, input, chunk, &shared, t);
		const Part part = input.parts[p];
		const uint32_t first = (chunk - part.first_chunk) * input.chunk;
		const uint32_t end = min(first + input.chunk, tuples_of(stage, part, p));

		for (uint32_t base = first; base < end; base += R * GJ_THREADS)
		{
			const uint32_t alive =
				take_tuples<R, has_code>(plan, stage, part.first_row, base + threadIdx.x,
										 tuples_before<R>(base, end), t, shared.counts);
			Values<R> values = {};

			if (alive == 0)
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

					if (e.form == GJ_FUSED_NONE)
						values.known = alive;
					else
						values = values_of<R, has_code>(e, t, alive);
				}
				add_values<R>(plan.aggregate_op[a], &state[a], values);
			}
		}
		__syncwarp();
	}
	end_block(plan, input, &shared, t.status);
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

/* All lanes of the warp call it: writes tuples i that are missed to the list of part p, or of all.
 */
template <uint32_t R>
static __device__ __forceinline__ void
write_missed(const GjFusedPlan &plan, const Input &input, const Missed &missed, uint32_t p,
			 const Tuples<R> &t, uint32_t i, bool miss)
{
	const uint32_t lanes = __ballot_sync(0xFFFFFFFF, miss);
	const uint32_t lane = threadIdx.x % 32;
	uint32_t at = 0;

	if (lanes == 0)
		return;
	if (missed.together)
		p = 0;
	if (lane == 0)
		at = atomicAdd(&input.nmissed[p], (uint32_t) __popc(lanes));
	at = input.parts[p].first_row + __shfl_sync(0xFFFFFFFF, at, 0) +
		 __popc(lanes & ((1u << lane) - 1));
	if (!miss)
		return;
	for (uint32_t s = missed.together; s <= plan.nsteps; s++)
	{
		if (missed.rowid[s] != NULL)
			missed.rowid[s][at] = t.rowid[(s * R + i) * GJ_THREADS];
	}
	for (uint32_t c = 0; missed.together && c < plan.nouter; c++)
		gj_fused_copy_value(&t.columns[plan.first_column + c], t.rowid[i * GJ_THREADS],
							missed.data[c], missed.nulls[c], at);
}

template <bool has_code, bool local>
static __global__ void
__launch_bounds__(GJ_THREADS, 2)
	fused_group(GjCode code, const __grid_constant__ GjFusedPlan plan,
				const __grid_constant__ Input input, const __grid_constant__ Stage stage,
				const __grid_constant__ GjGroups groups, const __grid_constant__ Missed missed,
				const __grid_constant__ LocalTable local_table)
{
	constexpr uint32_t R = has_code ? 1 : ROWS;
	extern __shared__ int64_t memory[];
	__shared__ Shared shared;
	const uint32_t ngroups = groups.rows.nrows;
	const uint32_t nstates = local_table.copies * ngroups;
	const uint32_t copy = local ? threadIdx.x % local_table.copies * ngroups : 0;
	uint32_t *table = (uint32_t *) memory;
	Tuples<R> t = start_block<R>(&code, plan, &shared, memory + local_table.nwords / 2);

	if constexpr (local)
		start_table(plan, local_table, nstates, table);
	for (uint32_t chunk = blockIdx.x; chunk < input.nchunks; chunk += gridDim.x)
	{
		const uint32_t p = start_chunk<R, has_code>(plan, input, chunk, &shared, t);
		const Part part = input.parts[p];
		const uint32_t first = (chunk - part.first_chunk) * input.chunk;
		const uint32_t end = min(first + input.chunk, tuples_of(stage, part, p));

		for (uint32_t base = first; base < end; base += R * GJ_THREADS)
		{
			const uint32_t alive =
				take_tuples<R, has_code>(plan, stage, part.first_row, base + threadIdx.x,
										 tuples_before<R>(base, end), t, shared.counts);

			uint32_t group[R];
			uint32_t known = 0;

			if (!__any_sync(0xFFFFFFFF, alive != 0))
				continue;
			groups_of<R, has_code>(plan, groups, t, alive, group);
#pragma unroll
			for (uint32_t i = 0; i < R; i++)
			{
				known |= (uint32_t) (group[i] != GJ_FUSED_NO_GROUP) << i;
				write_missed<R>(plan, input, missed, p, t, i,
								(alive >> i & 1) && group[i] == GJ_FUSED_NO_GROUP);
			}
			add_tuples<R, has_code>(
				plan, t, known,
				[&](uint32_t a, uint32_t op, const Values<R> &values)
				{
					if constexpr (local)
						add_locally<R>(op,
									   table + local_table.at[a] +
										   (words_of(op) == STATE_WORDS ? STATE_WORDS : 1) * copy,
									   nstates, values, group);
					else
						add_globally<R>(op, groups.state[a], values, group);
				});
		}
	}
	end_block(plan, input, &shared, t.status);
	if constexpr (local)
	{
		__syncthreads();
		for (uint32_t i = threadIdx.x; i < plan.naggregates * ngroups; i += GJ_THREADS)
		{
			const uint32_t a = i / ngroups;
			const uint32_t g = i % ngroups;
			const uint32_t op = plan.aggregate_op[a];

			if (words_of(op) > 0)
				add_state(
					op, &groups.state[a][g],
					read_table(op, table + local_table.at[a], local_table.copies, ngroups, g));
		}
	}
}

/* ---- the host's part */

/* Bytes of tile and row ids of a block. */
static size_t
tail_bytes(const GjFusedPlan *plan)
{
	const size_t rows = plan->nregisters > 0 ? 1 : ROWS;

	return GJ_THREADS * (plan->nregisters * (sizeof(int64_t) + 1) +
						 rows * (plan->nsteps + 1) * sizeof(uint32_t));
}

/* Rows of a chunk: many, but so that there are enough chunks for all blocks. */
static uint32_t
chunk_rows(const GjQueue *queue, const GjFusedPart *parts, uint32_t nparts)
{
	uint64_t nrows = 0;
	uint32_t chunk = MIN_CHUNK;

	for (uint32_t p = 0; p < nparts; p++)
		nrows += parts[p].nrows;
	while (chunk < MAX_CHUNK &&
		   nrows / (chunk * 2) >=
			   (uint64_t) queue->device->nprocessors *
				   (chunk < Shape<int32_t>::TILE ? FEW_CHUNKS_PER_SM : CHUNKS_PER_SM))
		chunk *= 2;
	return chunk;
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
			   uint32_t nparts, uint32_t chunk, uint8_t *memory)
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
		nchunks += gj_blocks(parts[p].nrows, chunk);
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
	input->chunk = chunk_rows(queue, parts, nparts);
	input->nchunks = describe_parts(plan, columns, parts, nparts, input->chunk, host);
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

/* As many blocks of a kernel as the device runs at once, if there are as many chunks. */
template <typename Kernel>
static GjStatus
blocks_at_once(GjQueue *queue, Kernel kernel, size_t nbytes, uint32_t nchunks, uint32_t *blocks)
{
	int per_sm = 0;

	GJ_CUDA(queue,
			cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, GJ_THREADS, nbytes));
	*blocks = min(nchunks, (uint32_t) queue->device->nprocessors * (uint32_t) max(per_sm, 1));
	return GJ_OK;
}

template <uint32_t most, bool has_code>
static GjStatus
launch_aggregate(GjQueue *queue, const GjFusedPlan *plan, const Input &input, const Stage &stage)
{
	const size_t nbytes = tail_bytes(plan);
	uint32_t blocks = 0;
	GjAggState *partial;
	void *memory;

	GJ_TRY(blocks_at_once(queue, fused_aggregate<most, has_code>, nbytes, input.nchunks, &blocks));
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, (size_t) plan->naggregates * blocks * sizeof(GjAggState),
					  &memory));
	partial = (GjAggState *) memory;
	fused_aggregate<most, has_code>
		<<<blocks, GJ_THREADS, nbytes, queue->stream>>>(queue->code, *plan, input, stage, partial);
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
launch_for_size(GjQueue *queue, const GjFusedPlan *plan, const Input &input, const Stage &stage)
{
	if (plan->naggregates <= 2)
		return launch_aggregate<2, has_code>(queue, plan, input, stage);
	if (plan->naggregates <= 4)
		return launch_aggregate<4, has_code>(queue, plan, input, stage);
	return launch_aggregate<GJ_FUSED_AGGREGATES, has_code>(queue, plan, input, stage);
}

static_assert(PLAIN_STEPS == 4, "FOR_PLAIN_STEPS");
/* Calls a function template for what a plain plan is. */
#define FOR_PLAIN_STEPS(plain, V, hashed, function, ...)                                           \
	((plain).nsteps == 0   ? function<V, 0, false>(__VA_ARGS__)                                    \
	 : (plain).nsteps == 1 ? function<V, 1, hashed>(__VA_ARGS__)                                   \
	 : (plain).nsteps == 2 ? function<V, 2, hashed>(__VA_ARGS__)                                   \
	 : (plain).nsteps == 3 ? function<V, 3, hashed>(__VA_ARGS__)                                   \
						   : function<V, PLAIN_STEPS, hashed>(__VA_ARGS__))
#define FOR_PLAIN_WIDTH(plain, hashed, function, ...)                                              \
	((plain).wide ? FOR_PLAIN_STEPS(plain, int64_t, hashed, function, __VA_ARGS__)                 \
				  : FOR_PLAIN_STEPS(plain, int32_t, hashed, function, __VA_ARGS__))
#define FOR_PLAIN(plain, function, ...)                                                            \
	((plain).hashed ? FOR_PLAIN_WIDTH(plain, true, function, __VA_ARGS__)                          \
					: FOR_PLAIN_WIDTH(plain, false, function, __VA_ARGS__))

template <typename V, int nsteps, bool hashed>
static GjStatus
launch_plain(GjQueue *queue, const GjFusedPlan *plan, const Plain &plain, const Input &input)
{
	uint32_t blocks = 0;
	GjAggState *partial;
	void *memory;

	GJ_TRY(blocks_at_once(queue, fused_plain<V, nsteps, hashed>, 0, input.nchunks, &blocks));
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, (size_t) plan->naggregates * blocks * sizeof(GjAggState),
					  &memory));
	partial = (GjAggState *) memory;
	fused_plain<V, nsteps, hashed><<<blocks, GJ_THREADS, 0, queue->stream>>>(plain, input, partial);
	GJ_LAUNCHED(queue, "fused_plain");
	fused_merge<<<plan->naggregates, GJ_THREADS, 0, queue->stream>>>(*plan, blocks, partial,
																	 queue->states);
	GJ_LAUNCHED(queue, "fused_merge");
	return GJ_OK;
}

template <typename V, int nsteps, bool hashed>
static GjStatus
launch_plain_select(GjQueue *queue, const Plain &plain, const Input &input, const TupleList &to)
{
	uint32_t blocks = 0;

	GJ_TRY(blocks_at_once(queue, fused_plain_select<V, nsteps, hashed>, 0, input.nchunks, &blocks));
	fused_plain_select<V, nsteps, hashed>
		<<<blocks, GJ_THREADS, 0, queue->stream>>>(plain, input, to);
	GJ_LAUNCHED(queue, "fused_plain_select");
	return GJ_OK;
}

/* Copies of a local table that a block can have and that are worth while; 0: none. */
static uint32_t
local_copies(const GjQueue *queue, const GjFusedPlan *plan, const Input &input,
			 const GjGroups *groups, uint32_t words)
{
	const uint64_t one = (uint64_t) words * groups->rows.nrows * sizeof(uint32_t);
	const uint64_t rest = tail_bytes(plan) + sizeof(int64_t);
	uint32_t copies = 1;

	if (one == 0 || (uint64_t) input.nchunks * input.chunk / queue->device->nprocessors <
						(uint64_t) groups->rows.nrows * LOCAL_ROWS)
		return 0;
	while (copies < MAX_COPIES && one * copies * 2 + rest <= LOCAL_BYTES)
		copies *= 2;
	if (one * copies + rest <= LOCAL_BYTES)
		return copies;
	return one + rest <= MOST_LOCAL_BYTES ? 1 : 0;
}

/* Lays the local table out: states first, which are aligned as int64_t. */
static LocalTable
lay_table_out(const GjQueue *queue, const GjFusedPlan *plan, const Input &input,
			  const GjGroups *groups)
{
	LocalTable local = {};
	uint32_t words = 0;

	for (uint32_t a = 0; a < plan->naggregates; a++)
		words += words_of(plan->aggregate_op[a]);
	local.copies = local_copies(queue, plan, input, groups, words);
	for (uint32_t states = 2; states-- > 0;)
	{
		for (uint32_t a = 0; a < plan->naggregates; a++)
		{
			const uint32_t n = words_of(plan->aggregate_op[a]);

			if ((n == STATE_WORDS) != (states == 1))
				continue;
			local.at[a] = local.nwords;
			local.nwords += n * local.copies * groups->rows.nrows;
		}
	}
	/* what follows is aligned as well */
	local.nwords += local.nwords % 2;
	return local;
}

template <bool has_code>
static GjStatus
launch_group(GjQueue *queue, const GjFusedPlan *plan, const Input &input, const Stage &stage,
			 const GjGroups *groups, const Missed &missed)
{
	const LocalTable local = lay_table_out(queue, plan, input, groups);
	const size_t nbytes = local.nwords * sizeof(uint32_t) + tail_bytes(plan);
	uint32_t blocks = 0;

	if (local.copies > 0)
	{
		/* always the same, for other threads launch it as well */
		if (nbytes > LOCAL_BYTES)
			GJ_CUDA(queue, cudaFuncSetAttribute(fused_group<has_code, true>,
												cudaFuncAttributeMaxDynamicSharedMemorySize,
												MOST_LOCAL_BYTES));
		GJ_TRY(blocks_at_once(queue, fused_group<has_code, true>, nbytes, input.nchunks, &blocks));
		fused_group<has_code, true><<<blocks, GJ_THREADS, nbytes, queue->stream>>>(
			queue->code, *plan, input, stage, *groups, missed, local);
	}
	else
	{
		GJ_TRY(blocks_at_once(queue, fused_group<has_code, false>, nbytes, input.nchunks, &blocks));
		fused_group<has_code, false><<<blocks, GJ_THREADS, nbytes, queue->stream>>>(
			queue->code, *plan, input, stage, *groups, missed, local);
	}
	GJ_LAUNCHED(queue, "fused_group");
	return GJ_OK;
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

/* ---- stages */

template <bool has_code>
static GjStatus
launch_select(GjQueue *queue, const GjFusedPlan *plan, const Input &input, const Stage &stage,
			  const TupleList &to, uint32_t stride)
{
	const size_t nbytes = tail_bytes(plan);
	uint32_t blocks = 0;

	GJ_TRY(blocks_at_once(queue, fused_select<has_code>, nbytes, gj_blocks(input.nchunks, stride),
						  &blocks));
	fused_select<has_code><<<blocks, GJ_THREADS, nbytes, queue->stream>>>(queue->code, *plan, input,
																		  stage, to, stride);
	GJ_LAUNCHED(queue, "fused_select");
	return GJ_OK;
}

static GjStatus
select_tuples(GjQueue *queue, const GjFusedPlan *plan, const Input &input, const Stage &stage,
			  const TupleList &to, uint32_t stride)
{
	return plan->nregisters > 0 ? launch_select<true>(queue, plan, input, stage, to, stride)
								: launch_select<false>(queue, plan, input, stage, to, stride);
}

/*
 * True if there is anything to be done behind a list.  The order of tuples in lists is any, and so
 * would be that of a sum's terms, and which of the zeros a minimum is.
 */
static bool
may_cut(const GjFusedPlan *plan, const GjGroups *groups)
{
	if (plan->nsteps == 0 && groups == NULL)
		return false;
	for (uint32_t a = 0; a < plan->naggregates && groups == NULL; a++)
	{
		switch (plan->aggregate_op[a])
		{
			case GJ_AGG_SUM_F:
			case GJ_AGG_SPREAD_F:
			case GJ_AGG_MIN_F:
			case GJ_AGG_MAX_F:
				return false;
		}
	}
	return true;
}

/* Finds out how many of some rows come through each step: counts[0 .. nsteps], of *nrows. */
static GjStatus
take_sample(GjQueue *queue, const GjFusedPlan *plan, Input input, uint64_t *counts, uint64_t *nrows)
{
	const size_t nbytes = (GJ_FUSED_STEPS + 1) * sizeof(uint64_t);
	const uint32_t stride = max(input.nchunks / (SAMPLED_ROWS / input.chunk), 1u);
	Stage all = {};
	void *memory;

	all.end = plan->nsteps;
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, nbytes, &memory));
	GJ_CUDA(queue, cudaMemsetAsync(memory, 0, nbytes, queue->stream));
	input.counts = (uint64_t *) memory;
	GJ_TRY(select_tuples(queue, plan, input, all, {}, stride));
	GJ_CUDA(queue, cudaMemcpyAsync(queue->pinned->fused_counts, memory, nbytes,
								   cudaMemcpyDeviceToHost, queue->stream));
	GJ_TRY(gj_wait(queue));
	memcpy(counts, queue->pinned->fused_counts, nbytes);
	/* parts end with smaller chunks: about as many */
	*nrows = (uint64_t) gj_blocks(input.nchunks, stride) * input.chunk;
	return GJ_OK;
}

/* What was chosen for a plan the last time; false: nothing, or it is time to look again. */
static bool
recall_cuts(GjDevice *device, const GjFusedPlan *plan, uint32_t *cuts)
{
	bool known = false;

	pthread_mutex_lock(&device->lock);
	for (uint32_t i = 0; i < GJ_KNOWN_CUTS && !known; i++)
	{
		GjFusedCuts *other = device->cuts[i];

		if (other == NULL || other->nuses == MAX_CUT_USES ||
			memcmp(&other->plan, plan, sizeof(*plan)) != 0)
			continue;
		other->nuses++;
		*cuts = other->cuts;
		known = true;
	}
	pthread_mutex_unlock(&device->lock);
	return known;
}

/*
 * Other runs of the plan, which has the addresses of its inner sides, choose the same.  Rows can be
 * others by then: only what takes longer depends on it.
 */
static void
remember_cuts(GjDevice *device, const GjFusedPlan *plan, uint32_t cuts)
{
	GjFusedCuts *chosen = (GjFusedCuts *) malloc(sizeof(GjFusedCuts));
	uint32_t place;

	if (chosen == NULL)
		return;
	memcpy(&chosen->plan, plan, sizeof(*plan));
	chosen->cuts = cuts;
	chosen->nuses = 0;
	pthread_mutex_lock(&device->lock);
	place = device->next_cuts++ % GJ_KNOWN_CUTS;
	for (uint32_t i = 0; i < GJ_KNOWN_CUTS; i++)
	{
		if (device->cuts[i] != NULL && memcmp(&device->cuts[i]->plan, plan, sizeof(*plan)) == 0)
			place = i;
	}
	free(device->cuts[place]);
	device->cuts[place] = chosen;
	pthread_mutex_unlock(&device->lock);
}

/*
 * Decides, once for a plan, after which steps tuples are written to lists: bit s of *cuts stands
 * for the filter and s steps.  Few rows are not worth it, and tell nothing about those to come.
 */
static GjStatus
choose_cuts(GjQueue *queue, const GjFusedPlan *plan, const Input &input, uint64_t nrows,
			const GjGroups *groups, uint32_t *cuts)
{
	uint64_t counts[GJ_FUSED_STEPS + 1];
	uint64_t sampled = 0;
	double before;
	GjStatus status;

	*cuts = 0;
	if (nrows < queue->device->fused_sample || !may_cut(plan, groups))
		return GJ_OK;
	if (queue->fused_plan != NULL && memcmp(queue->fused_plan, plan, sizeof(*plan)) == 0)
	{
		*cuts = queue->fused_cuts;
		return GJ_OK;
	}
	if (recall_cuts(queue->device, plan, cuts))
		return GJ_OK;
	status = take_sample(queue, plan, input, counts, &sampled);
	if (status == GJ_OUT_OF_MEMORY)
		return GJ_OK;
	GJ_TRY(status);
	before = (double) sampled;
	for (uint32_t s = 0; s <= plan->nsteps; s++)
	{
		if ((s == plan->nsteps && groups == NULL) ||
			(double) counts[s] > before * queue->device->fused_cut)
			continue;
		*cuts |= 1u << s;
		before = (double) counts[s];
	}
	if (queue->fused_plan == NULL)
		queue->fused_plan = (GjFusedPlan *) malloc(sizeof(*plan));
	if (queue->fused_plan == NULL)
		return GJ_OUT_OF_HOST_MEMORY;
	memcpy(queue->fused_plan, plan, sizeof(*plan));
	queue->fused_cuts = *cuts;
	remember_cuts(queue->device, plan, *cuts);
	return GJ_OK;
}

/*
 * Takes the rows through all stages but the last one, *stage.  A list is read by the next
 * stage alone, so two places do for all of them.  plain: of all steps, or NULL; they are one stage
 * then, for its kernel leaves out what is not alive at a small price.
 */
static GjStatus
run_stages(GjQueue *queue, const GjFusedPlan *plan, const Plain *plain, const Input &input,
		   uint64_t nrows, uint64_t list_bytes, uint32_t cuts, Stage *stage)
{
	GjScratch place = GJ_SCRATCH_LIST;
	uint64_t taken[2] = {};

	for (uint32_t s = 0; s <= plan->nsteps; s++)
	{
		const size_t numbers = gj_align((uint64_t) input.nparts * sizeof(uint32_t));
		const size_t list = gj_align(nrows * sizeof(uint32_t));
		TupleList to = {};
		GjStatus status;
		void *memory;

		if (!(cuts >> s & 1))
			continue;
		/* without lists it takes longer */
		taken[place - GJ_SCRATCH_LIST] = (numbers + (s + 1) * list) / 4 * 5;
		if (taken[0] + taken[1] > list_bytes)
			break;
		status = gj_scratch(queue, place, numbers + (s + 1) * list, &memory);
		if (status == GJ_OUT_OF_MEMORY)
			break;
		GJ_TRY(status);
		to.n = (uint32_t *) memory;
		for (uint32_t slot = 0; slot <= s; slot++)
			to.rowid[slot] = (uint32_t *) ((uint8_t *) memory + numbers + slot * list);
		GJ_CUDA(queue, cudaMemsetAsync(memory, 0, numbers, queue->stream));
		stage->end = s;
		if (plain != NULL)
			GJ_TRY(FOR_PLAIN(*plain, launch_plain_select, queue, *plain, input, to));
		else
			GJ_TRY(select_tuples(queue, plan, input, *stage, to, 1));
		stage->from = to;
		stage->first = s;
		place = place == GJ_SCRATCH_LIST ? GJ_SCRATCH_LIST_2 : GJ_SCRATCH_LIST;
	}
	stage->end = plan->nsteps;
	return GJ_OK;
}

/* Lists may be as large as the rows: others of the query need the memory more. */
static void
free_lists(GjQueue *queue)
{
	for (uint32_t s = GJ_SCRATCH_LIST; s <= GJ_SCRATCH_LIST_2; s++)
	{
		gj_free(queue, queue->scratch[s].memory, queue->scratch[s].nbytes);
		queue->scratch[s] = {};
	}
}

/* Launches what takes the rows of a call through all of the plan. */
static GjStatus
launch_all(GjQueue *queue, const GjFusedPlan *plan, const Plain *plain, const Input &input,
		   uint64_t nrows, uint64_t list_bytes, const GjGroups *groups, const Missed &missed)
{
	Stage stage = {};
	uint32_t cuts = 0;
	void *partial;

	/* before lists take the memory */
	if (groups == NULL)
		GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A,
						  (size_t) plan->naggregates * queue->device->nprocessors *
							  MAX_BLOCKS_PER_SM * sizeof(GjAggState),
						  &partial));
	if (list_bytes > 0)
		GJ_TRY(choose_cuts(queue, plan, input, nrows, groups, &cuts));
	if (plain != NULL && cuts != 0)
		cuts = 1u << plan->nsteps;
	GJ_TRY(run_stages(queue, plan, plain, input, nrows, list_bytes, cuts, &stage));
	if (groups == NULL)
		return plan->nregisters > 0 ? launch_for_size<true>(queue, plan, input, stage)
									: launch_for_size<false>(queue, plan, input, stage);
	return plan->nregisters > 0 ? launch_group<true>(queue, plan, input, stage, groups, missed)
								: launch_group<false>(queue, plan, input, stage, groups, missed);
}

GjStatus
gj_fused(GjQueue *queue, const GjFusedPlan *plan, const GjColumn *columns, const GjFusedPart *parts,
		 uint32_t nparts, uint64_t list_bytes, const GjGroups *groups, GjFusedMissed *missed)
{
	Input input = {};
	Missed lists = {};
	uint64_t nrows = 0;
	Plain plain;

	static_assert(sizeof(GjCode) + sizeof(GjFusedPlan) + sizeof(Input) + sizeof(GjGroups) +
						  sizeof(Missed) + sizeof(Stage) + sizeof(LocalTable) <=
					  32764,
				  "parameters of a kernel");
	GJ_TRY(gj_enter(queue));
	GJ_TRY(upload_parts(queue, plan, columns, parts, nparts, &input));
	input.counts = queue->fused_counts;
	input.results = queue->results;
	for (uint32_t p = 0; p < nparts; p++)
		nrows += parts[p].nrows;
	if (groups != NULL)
	{
		memcpy(lists.rowid, missed->rowid, sizeof(lists.rowid));
		memcpy(lists.data, missed->data, sizeof(lists.data));
		memcpy(lists.nulls, missed->nulls, sizeof(lists.nulls));
		lists.together = missed->together;
	}
	if (input.nchunks > 0 && groups == NULL && gj_make_plain(plan, columns, parts, nparts, &plain))
		return FOR_PLAIN(plain, launch_plain, queue, plan, plain, input);
	if (input.nchunks > 0)
	{
		const bool is_plain = gj_make_plain_rows(plan, columns, parts, nparts, &plain);
		const GjStatus status = launch_all(queue, plan, is_plain ? &plain : NULL, input, nrows,
										   list_bytes, groups, lists);

		free_lists(queue);
		GJ_TRY(status);
	}
	return groups == NULL ? GJ_OK : read_missed(queue, input, parts, missed);
}

GjStatus
gj_fused_counts(GjQueue *queue, uint64_t counts[GJ_FUSED_STEPS + 1])
{
	GJ_TRY(gj_wait_all(queue));
	memcpy(counts, queue->pinned->fused_counts, (GJ_FUSED_STEPS + 1) * sizeof(uint64_t));
	return GJ_OK;
}
