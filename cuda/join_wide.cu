/*
 * join_wide.cu
 *	  Wide tables: hash tables of two keys, which lie in the slots.
 *
 * In a table of several keys a slot has their hash, and a look-up reads the number of the row and
 * each key beside the slot: three random reads more.  With both keys in it a slot takes 32 bytes,
 * which is what memory reads anyway where it is asked for 16.  A table is built as any other one
 * (join_hash.cu) and widened then: one pass in order, with those three reads a key.
 */
#include "join_hash.cuh"

#define SLOTS 4 /* of a thread, whose reads are under way together */

static_assert(sizeof(GjWideSlot) == 2 * sizeof(uint4), "a wide slot is two words of 16 bytes");

/* results->n: some second key is below zero. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	widen_slots(const GjHashSlot *slots, uint64_t nslots, const uint32_t *key_row,
				const int64_t *first_key, const int64_t *second_key, GjWideSlot *wide,
				GjResults *results)
{
	const uint64_t first = (uint64_t) blockIdx.x * GJ_THREADS * SLOTS + threadIdx.x;
	uint4 slot[SLOTS];
	uint32_t row[SLOTS];
	GjWideSlot made[SLOTS];
	bool negative = false;

	gj_load_slots(slots, nslots, first, slot);
#pragma unroll
	for (uint32_t k = 0; k < SLOTS; k++)
		row[k] = slot[k].w != 0 ? key_row[slot[k].z] : 0;
#pragma unroll
	for (uint32_t k = 0; k < SLOTS; k++)
	{
		made[k] = {};
		if (slot[k].w == 0)
			continue;
		made[k].key[0] = (uint64_t) first_key[row[k]];
		made[k].key[1] = (uint64_t) second_key[row[k]];
		made[k].start = slot[k].z;
		made[k].count = slot[k].w;
		negative |= (int64_t) made[k].key[1] < 0;
	}
#pragma unroll
	for (uint32_t k = 0; k < SLOTS; k++)
	{
		if (first + k * GJ_THREADS < nslots)
			wide[first + k * GJ_THREADS] = made[k];
	}
	if (__syncthreads_or(negative) && threadIdx.x == 0)
		results->n = 1;
}

GjStatus
gj_widen(GjQueue *queue, const GjKeys *keys, uint64_t most_bytes, GjHashTable *table)
{
	const size_t nbytes = table->nslots * sizeof(GjWideSlot);

	if (keys->nkeys != 2 || table->nrows == 0 || nbytes > most_bytes)
		return GJ_OK;
	table->wide = (GjWideSlot *) gj_alloc(queue, nbytes);
	/* it takes longer without */
	if (table->wide == NULL)
		return GJ_OK;
	GJ_CUDA(queue, cudaMemsetAsync(&queue->results->n, 0, sizeof(uint32_t), queue->stream));
	widen_slots<<<gj_blocks(table->nslots, GJ_THREADS * SLOTS), GJ_THREADS, 0, queue->stream>>>(
		table->slots, table->nslots, table->key_row, keys->value[0], keys->value[1], table->wide,
		queue->results);
	GJ_LAUNCHED(queue, "widen_slots");
	GJ_TRY(gj_wait(queue));
	table->kind = GJ_TABLE_WIDE;
	table->positive = queue->pinned->results.n == 0;
	gj_free(queue, table->slots, table->nslots * sizeof(GjHashSlot));
	gj_free(queue, table->key_row, keys->nrows * sizeof(uint32_t));
	table->slots = NULL;
	table->key_row = NULL;
	return GJ_OK;
}
