/*
 * join_payload.cu
 *	  Payloads of tables: values of the build side, stored where its keys are found.
 *
 * The cost of a look-up in a table beyond L2 is its random reads: one or two for the slot or the
 * place, and one for the value.  A payload saves the last one.  A slot has the value where it
 * would have a count, if no count is needed, so it is no larger; places have another array beside
 * them.  Payloads are written after the build: one pass in order, and a random read for each row,
 * as many as a probe with as many tuples saves.
 */
#include "rows/hash.h"
#include "internal.cuh"

#define SLOTS 4            /* of a thread, whose rows are read together */
#define BLOCKS_OF_A_SM 16u /* of kernels that take rows in turns */

/* results->n: some value does not fit. */
template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS) find_unfit(const T *value, uint32_t n, GjResults *results)
{
	const uint64_t step = (uint64_t) gridDim.x * GJ_THREADS;
	bool unfit = false;

	for (uint64_t i = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x; i < n; i += step)
		unfit |= !gj_payload_fits(value[i]);
	if (__syncthreads_or(unfit) && threadIdx.x == 0)
		results->n = 1;
}

/* Slots of one key or of two; their start and count lie side by side in both. */
template <typename Slot, typename T>
static __global__ void
__launch_bounds__(GJ_THREADS)
	put_payloads(Slot *slots, uint64_t nslots, const uint32_t *rows, const T *value)
{
	const uint64_t first = (uint64_t) blockIdx.x * GJ_THREADS * SLOTS + threadIdx.x;
	uint2 slot[SLOTS];
	T found[SLOTS];

	static_assert(offsetof(Slot, count) == offsetof(Slot, start) + sizeof(uint32_t) &&
					  offsetof(Slot, start) % sizeof(uint2) == 0,
				  "start and count are loaded at once");
#pragma unroll
	for (uint32_t k = 0; k < SLOTS; k++)
		slot[k] = first + k * GJ_THREADS < nslots
					  ? *(const uint2 *) &slots[first + k * GJ_THREADS].start
					  : make_uint2(0, 0);
#pragma unroll
	for (uint32_t k = 0; k < SLOTS; k++)
	{
		if (slot[k].y != 0)
			found[k] = value[rows != NULL ? rows[slot[k].x] : slot[k].x];
	}
#pragma unroll
	for (uint32_t k = 0; k < SLOTS; k++)
	{
		if (slot[k].y != 0)
			slots[first + k * GJ_THREADS].count = gj_payload(found[k]);
	}
}

/* The same of a direct table, to an array of its own. */
template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS)
	put_beside_places(const uint32_t *place, uint64_t nslots, const T *value, uint32_t *payloads)
{
	const uint64_t first = (uint64_t) blockIdx.x * GJ_THREADS * SLOTS + threadIdx.x;
	uint32_t row[SLOTS];
	T found[SLOTS];

#pragma unroll
	for (uint32_t k = 0; k < SLOTS; k++)
		row[k] = first + k * GJ_THREADS < nslots ? place[first + k * GJ_THREADS] : GJ_NO_ROW;
#pragma unroll
	for (uint32_t k = 0; k < SLOTS; k++)
	{
		if (row[k] != GJ_NO_ROW)
			found[k] = value[row[k]];
	}
#pragma unroll
	for (uint32_t k = 0; k < SLOTS; k++)
	{
		if (first + k * GJ_THREADS < nslots)
			payloads[first + k * GJ_THREADS] =
				row[k] != GJ_NO_ROW ? gj_payload(found[k]) : GJ_NO_ROW;
	}
}

template <typename T>
static GjStatus
put(GjQueue *queue, GjHashTable *table, const T *value, uint32_t nrows, bool *done)
{
	const uint32_t most = queue->device->nprocessors * BLOCKS_OF_A_SM;
	const uint32_t nblocks = gj_blocks(table->nslots, GJ_THREADS * SLOTS);

	GJ_CUDA(queue, cudaMemsetAsync(&queue->results->n, 0, sizeof(uint32_t), queue->stream));
	find_unfit<<<min(gj_blocks(nrows, GJ_THREADS), most), GJ_THREADS, 0, queue->stream>>>(
		value, nrows, queue->results);
	GJ_LAUNCHED(queue, "find_unfit");
	GJ_TRY(gj_wait(queue));
	if (queue->pinned->results.n != 0)
		return GJ_OK;
	if (table->kind == GJ_TABLE_HASH)
	{
		put_payloads<<<nblocks, GJ_THREADS, 0, queue->stream>>>(
			table->slots, table->nslots, table->in_order ? NULL : table->rows, value);
		GJ_LAUNCHED(queue, "put_payloads");
	}
	else if (table->kind == GJ_TABLE_WIDE)
	{
		put_payloads<<<nblocks, GJ_THREADS, 0, queue->stream>>>(
			table->wide, table->nslots, table->in_order ? NULL : table->rows, value);
		GJ_LAUNCHED(queue, "put_payloads");
	}
	else
	{
		table->payloads = (uint32_t *) gj_alloc(queue, table->nslots * sizeof(uint32_t));
		if (table->payloads == NULL)
			return gj_no_memory(queue);
		put_beside_places<<<nblocks, GJ_THREADS, 0, queue->stream>>>(table->place, table->nslots,
																	 value, table->payloads);
		GJ_LAUNCHED(queue, "put_beside_places");
	}
	GJ_TRY(gj_wait(queue));
	*done = true;
	return GJ_OK;
}

GjStatus
gj_hash_payload(GjQueue *queue, GjHashTable *table, const GjColumn *column, uint32_t nrows,
				bool *done)
{
	*done = false;
	GJ_TRY(gj_enter(queue));
	return column->kind == GJ_INT4 ? put(queue, table, (const int32_t *) column->data, nrows, done)
								   : put(queue, table, (const int64_t *) column->data, nrows, done);
}
