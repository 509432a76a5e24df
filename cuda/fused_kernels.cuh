/*
 * fused_kernels.cuh
 *	  The fused operator for any plan: filter, joins and aggregates of probe rows in one kernel.
 *
 * A row belongs to one thread, which takes it through all of it, together with some others
 * (fused_rows.cuh).  Lanes whose rows were dropped wait for their warp; what bounds this kernel is
 * the loads of table slots, and enough of them under way hide their latency.
 *
 * Blocks take chunks of the parts' rows in a fixed order, so that the same rows give the
 * same float sum.  Without groups every thread keeps its states in registers.  With groups
 * a value is added to the group's state by atomic operations, in a table of the block in
 * shared memory if they fit; tuples whose group is not known are written to lists.
 */
#ifndef GJ_CUDA_FUSED_KERNELS_CUH
#define GJ_CUDA_FUSED_KERNELS_CUH

#include <string.h>

#include "aggregate.cuh"
#include "fused_groups.cuh"

/* Where missed tuples go. */
typedef struct Missed
{
	uint32_t *rowid[GJ_FUSED_STEPS + 1];
	uint8_t *data[GJ_FUSED_PROBE];
	uint8_t *nulls[GJ_FUSED_PROBE];
	const uint8_t *heap[GJ_FUSED_PROBE];
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
template <uint32_t R, Forms forms>
static __device__ __forceinline__ uint32_t
start_chunk(const GjFusedPlan &plan, const Input &input, uint32_t chunk, Shared *shared,
			Tuples<R> &t)
{
	const uint32_t p = part_of_chunk(input, chunk, 0);

	t.columns = input.columns + (size_t) p * plan.ncolumns;
	if (forms == FORMS_CODE)
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

static __device__ __forceinline__ uint32_t
chunks_of(const Part &part, uint32_t chunk)
{
	return (part.nrows + chunk - 1) / chunk;
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
	uint32_t at[R];

	if (!take_places<R>(alive, part.first_row, &to.n[p], at))
		return;
#pragma unroll 1
	for (uint32_t s = 0; s <= end; s++)
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			if (alive >> i & 1)
				to.rowid[s][at[i]] = t.rowid[(s * R + i) * GJ_THREADS];
		}
	}
}

/*
 * Takes the tuples of every stride'th chunk through a stage, R of a thread at a time, and calls
 * then(p, part, alive) for what comes out: all threads of a warp call it together.  Lists are
 * shorter than their parts, so the chunks of a part take tuples of its list by turns.
 */
template <uint32_t R, Forms forms, typename Then>
static __device__ __forceinline__ void
take_chunks(const GjFusedPlan &plan, const Input &input, const Stage &stage, uint32_t stride,
			Shared *shared, Tuples<R> &t, Then then)
{
	for (uint32_t chunk = blockIdx.x * stride; chunk < input.nchunks; chunk += gridDim.x * stride)
	{
		const uint32_t p = start_chunk<R, forms>(plan, input, chunk, shared, t);
		const Part part = input.parts[p];
		const bool by_turns = stage.from.n != NULL;
		const uint32_t turn = R * GJ_THREADS;
		const uint32_t first = (chunk - part.first_chunk) * (by_turns ? turn : input.chunk);
		const uint32_t step = by_turns ? chunks_of(part, input.chunk) * turn : turn;
		const uint32_t n = tuples_of(stage, part, p);
		const uint32_t end = by_turns ? n : min(first + input.chunk, n);

		for (uint32_t base = first; base < end; base += step)
			then(p, part,
				 take_tuples<R, forms>(plan, stage, part.first_row, base + threadIdx.x,
									   tuples_before<R>(base, end), t, shared->counts));
		/* `then` may have left some behind */
		__syncwarp();
	}
}

/* Takes every stride'th chunk through a stage, and appends what comes out (to.n = NULL: nowhere).
 */
template <Forms forms>
static __global__ void
__launch_bounds__(GJ_THREADS)
	fused_select(GjCode code, const __grid_constant__ GjFusedPlan plan,
				 const __grid_constant__ Input input, const __grid_constant__ Stage stage,
				 const __grid_constant__ TupleList to, uint32_t stride)
{
	constexpr uint32_t R = forms == FORMS_CODE ? 1 : FUSED_ROWS;
	extern __shared__ int64_t memory[];
	__shared__ Shared shared;
	Tuples<R> t = start_block<R>(&code, plan, &shared, memory);

	const auto append = [&](uint32_t p, const Part &part, uint32_t alive)
	{
		if (to.n != NULL)
			append_tuples<R>(to, stage.end, part, p, t, alive);
	};

	take_chunks<R, forms>(plan, input, stage, stride, &shared, t, append);
	end_block(plan, input, &shared, t.status);
}

/* ---- aggregates of all tuples */

/*
 * partial[aggregate * gridDim.x + block], for up to `most` aggregates.  Many warps hide the
 * latency of the loads: rather some registers in memory than few warps.
 */
template <uint32_t most, Forms forms>
static __global__ void
__launch_bounds__(GJ_THREADS, most <= 2 ? 3 : 2)
	fused_aggregate(GjCode code, const __grid_constant__ GjFusedPlan plan,
					const __grid_constant__ Input input, const __grid_constant__ Stage stage,
					GjAggState *partial)
{
	constexpr uint32_t R = forms == FORMS_CODE ? 1 : FUSED_ROWS;
	extern __shared__ int64_t memory[];
	__shared__ Shared shared;
	__shared__ GjAggState warp_states[GJ_WARPS];
	Tuples<R> t = start_block<R>(&code, plan, &shared, memory);
	GjAggState state[most];

#pragma unroll
	for (uint32_t a = 0; a < most; a++)
		gj_agg_start(&state[a]);
	const auto add = [&](uint32_t p, const Part &part, uint32_t alive)
	{
		Values<R> values = {};

		if (alive == 0)
			return;
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
					values = argument_of<R, forms>(plan, e, t, alive);
			}
			add_values<R>(plan.aggregate_op[a], &state[a], values);
		}
	};

	take_chunks<R, forms>(plan, input, stage, 1, &shared, t, add);
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

/* ---- aggregates of groups */

/*
 * All lanes of the warp call it: writes a tuple that is missed, whose row ids are
 * rowid[slot * stride], to the list of part p, or of all.
 */
static __device__ __forceinline__ void
write_missed(const GjFusedPlan &plan, const Input &input, const Missed &missed, uint32_t p,
			 const GjColumn *columns, const uint32_t *rowid, uint32_t stride, bool miss)
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
			missed.rowid[s][at] = rowid[s * stride];
	}
	for (uint32_t c = 0; missed.together && c < plan.nprobe_columns; c++)
	{
		if (missed.data[c] != NULL)
			gj_fused_copy_value(&columns[plan.first_column + c], rowid[0], missed.heap[c],
								missed.data[c], missed.nulls[c], at);
	}
}

/*
 * Looking groups up in vain takes longer than what is saved where one is found.  After so many
 * tuples a warp goes on only while it finds at least one group in LOOKED_SHARE.
 */
#define LOOKED_FIRST 512
#define LOOKED_SHARE 4

template <Forms forms, bool local>
static __global__ void
__launch_bounds__(GJ_THREADS, 2)
	fused_group(GjCode code, const __grid_constant__ GjFusedPlan plan,
				const __grid_constant__ Input input, const __grid_constant__ Stage stage,
				const __grid_constant__ GjGroups groups, const __grid_constant__ Missed missed,
				const __grid_constant__ LocalTable local_table)
{
	constexpr uint32_t R = forms == FORMS_CODE ? 1 : FUSED_ROWS;
	extern __shared__ int64_t memory[];
	__shared__ Shared shared;
	const uint32_t ngroups = groups.rows.nrows;
	const uint32_t nstates = local_table.copies * ngroups;
	const uint32_t copy = local ? threadIdx.x % local_table.copies * ngroups : 0;
	uint32_t *table = (uint32_t *) memory;
	Tuples<R> t = start_block<R>(&code, plan, &shared, memory + local_table.nwords / 2);
	uint32_t looked = 0; /* groups that the warp looked up */
	uint32_t found = 0;

	if constexpr (local)
		start_table(plan, local_table, nstates, table);
	const auto add = [&](uint32_t p, const Part &part, uint32_t alive)
	{
		uint32_t group[R];
		uint32_t known = 0;

		if (!__any_sync(0xFFFFFFFF, alive != 0))
			return;
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			group[i] = GJ_FUSED_NO_GROUP;
		if (groups.nslots > 0 && (looked < LOOKED_FIRST || found >= looked / LOOKED_SHARE))
		{
			groups_of<R, forms>(plan, groups, t, alive, group);
			looked += __reduce_add_sync(0xFFFFFFFF, (uint32_t) __popc(alive));
		}
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			known |= (uint32_t) (group[i] != GJ_FUSED_NO_GROUP) << i;
			write_missed(plan, input, missed, p, t.columns, t.rowid + i * GJ_THREADS,
						 R * GJ_THREADS, (alive >> i & 1) && group[i] == GJ_FUSED_NO_GROUP);
		}
		found += __reduce_add_sync(0xFFFFFFFF, (uint32_t) __popc(known));
		add_tuples<R, forms>(plan, t, known,
							 [&](uint32_t a, uint32_t op, const Values<R> &values)
							 {
								 if constexpr (local)
									 add_locally<R>(
										 op,
										 table + local_table.at[a] +
											 (words_of(op) == STATE_WORDS ? STATE_WORDS : 1) * copy,
										 nstates, values, group);
								 else
									 add_globally<R>(op, groups.state[a], values, group);
							 });
	};

	take_chunks<R, forms>(plan, input, stage, 1, &shared, t, add);
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

/*
 * fused_grouped.cu: takes all rows of the parts (host array) where there are few groups and a plan
 * is simple enough; *done: it did.
 */
GjStatus gj_fused_grouped(GjQueue *queue, const GjFusedPlan *plan, const GjFusedPart *parts,
						  const Input &input, const GjGroups &groups, const Missed &missed,
						  bool *done);

/* fused.cu: brings the parts to the device, and says in *input where they are. */
GjStatus gj_fused_upload(GjQueue *queue, const GjFusedPlan *plan, const GjColumn *columns,
						 const GjFusedPart *parts, uint32_t nparts, Input *input);

#endif /* GJ_CUDA_FUSED_KERNELS_CUH */
