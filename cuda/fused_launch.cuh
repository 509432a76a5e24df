/*
 * fused_launch.cuh
 *	  How kernels of the fused operator are started, and their sums merged: host code for fused.cu.
 */
#ifndef GJ_CUDA_FUSED_LAUNCH_CUH
#define GJ_CUDA_FUSED_LAUNCH_CUH

#include <stdlib.h>
#include <string.h>

#include "aggregate.cuh"
#include "blocks.cuh"
#include "fused_plain.cuh"

#define MIN_CHUNK (GJ_THREADS * FUSED_ROWS) /* rows */
#define MAX_CHUNK (8 * MIN_CHUNK)
#define CHUNKS_PER_SM 64 /* that are enough for its blocks to end at the same time */
/* That are enough to prefer chunks that give each thread as many rows as it can take at once. */
#define FEW_CHUNKS_PER_SM 8

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
		memcpy(to_columns + plan->first_column, parts[p].columns,
			   plan->nprobe_columns * sizeof(GjColumn));
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

/* Merges the partial states of aggregate blockIdx.x into the queue's. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	fused_merge(const __grid_constant__ GjFusedPlan plan, uint32_t npartials,
				const GjAggState *partial, GjAggState *states)
{
	const uint32_t a = blockIdx.x;

	gj_merge_partials(plan.aggregate_op[a], 0, partial + (uint64_t) a * npartials, npartials,
					  &states[a]);
}

/* Adds the partial states of so many blocks to the queue's. */
static GjStatus
merge_partials(GjQueue *queue, const GjFusedPlan *plan, uint32_t blocks, const GjAggState *partial)
{
	if (plan->naggregates == 0)
		return GJ_OK;
	fused_merge<<<plan->naggregates, GJ_THREADS, 0, queue->stream>>>(*plan, blocks, partial,
																	 queue->states);
	GJ_LAUNCHED(queue, "fused_merge");
	return GJ_OK;
}

static_assert(PLAIN_STEPS == 4, "FOR_PLAIN_STEPS");
/* Calls a function template for what a plain plan is. */
#define FOR_PLAIN_STEPS(plain, V, slots, function, ...)                                            \
	((plain).nsteps == 0   ? function<V, 0, NO_SLOTS>(__VA_ARGS__)                                 \
	 : (plain).nsteps == 1 ? function<V, 1, slots>(__VA_ARGS__)                                    \
	 : (plain).nsteps == 2 ? function<V, 2, slots>(__VA_ARGS__)                                    \
	 : (plain).nsteps == 3 ? function<V, 3, slots>(__VA_ARGS__)                                    \
						   : function<V, PLAIN_STEPS, slots>(__VA_ARGS__))
#define FOR_PLAIN_WIDTH(plain, slots, function, ...)                                               \
	((plain).wide ? FOR_PLAIN_STEPS(plain, int64_t, slots, function, __VA_ARGS__)                  \
				  : FOR_PLAIN_STEPS(plain, int32_t, slots, function, __VA_ARGS__))
#define FOR_PLAIN(plain, function, ...)                                                            \
	((plain).slots == SLOTS_OF_TWO                                                                 \
		 ? FOR_PLAIN_STEPS(plain, int64_t, SLOTS_OF_TWO, function, __VA_ARGS__)                    \
	 : (plain).slots == SLOTS_OF_ONE ? FOR_PLAIN_WIDTH(plain, SLOTS_OF_ONE, function, __VA_ARGS__) \
									 : FOR_PLAIN_WIDTH(plain, NO_SLOTS, function, __VA_ARGS__))

#endif /* GJ_CUDA_FUSED_LAUNCH_CUH */
