/*
 * join_payload.cu
 *	  The value that a row has in one column, beside its key, at the place of its slot.
 *
 * A probe of a table beyond L2 reads a slot, and then a value, each at a place of its own: two
 * sectors, and the second has to wait for the first.  Where one column is all that is read of an
 * inner side, and keys are unique, slots that have the value instead of the row's number halve
 * that (as buckets do that hold tuples: Balkesen, Teubner, Alonso, Ozsu: "Main-Memory Hash Joins on
 * Multi-Core CPUs: Tuning to the Underlying Hardware", ICDE 2013).
 */
#include "../src/rows/fused.h"
#include "internal.cuh"

/* Has any row of a table of slots the key? */
static __device__ __forceinline__ bool
has_key(const GjHashTable &table, uint64_t key)
{
	uint64_t s = gj_hash_slot(gj_hash_mix(key), table.nslots);

	for (;;)
	{
		const GjHashSlot slot = gj_fused_slot(table.slots, s);

		if (slot.count == 0)
			return false;
		if (slot.key == key)
			return true;
		if (++s == table.nslots)
			s = 0;
	}
}

/* One thread: a key that no row has.  There are fewer rows than keys. */
static __global__ void
find_no_key(const __grid_constant__ GjHashTable table, uint64_t *no_key)
{
	uint64_t key = (uint64_t) INT64_MIN;

	while (has_key(table, key))
		key++;
	*no_key = key;
}

template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS)
	write_payload(const __grid_constant__ GjHashTable table, const T *value, GjHashPair *to)
{
	const uint64_t s = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;
	uint32_t row = GJ_NO_ROW;
	GjHashPair payload = {table.no_key, 0};

	if (s >= table.nslots)
		return;
	if (table.place != NULL)
	{
		row = table.place[s];
		if (row != GJ_NO_ROW)
			payload.key = (uint64_t) table.low + s;
	}
	else
	{
		const GjHashSlot slot = gj_fused_slot(table.slots, s);

		if (slot.count > 0)
		{
			row = table.in_order ? slot.start : table.rows[slot.start];
			payload.key = slot.key;
		}
	}
	if (row != GJ_NO_ROW)
		payload.value = value[row];
	to[s] = payload;
}

GjStatus
gj_hash_payload(GjQueue *queue, const GjColumn *column, GjHashTable *table)
{
	const uint32_t blocks = gj_blocks(table->nslots, GJ_THREADS);

	GJ_TRY(gj_enter(queue));
	/* places have the keys from `low` on */
	table->no_key = (uint64_t) table->low - 1;
	if (table->place == NULL)
	{
		find_no_key<<<1, 1, 0, queue->stream>>>(*table, &queue->results->total);
		GJ_LAUNCHED(queue, "find_no_key");
		GJ_TRY(gj_wait(queue));
		table->no_key = queue->pinned->results.total;
	}
	table->payload = (GjHashPair *) gj_alloc(queue, table->nslots * sizeof(GjHashPair));
	if (table->payload == NULL)
		return gj_no_memory(queue);
	if (column->kind == GJ_INT8)
		write_payload<<<blocks, GJ_THREADS, 0, queue->stream>>>(
			*table, (const int64_t *) column->data, table->payload);
	else
		write_payload<<<blocks, GJ_THREADS, 0, queue->stream>>>(
			*table, (const int32_t *) column->data, table->payload);
	GJ_LAUNCHED(queue, "write_payload");
	return GJ_OK;
}
