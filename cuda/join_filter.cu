/*
 * join_filter.cu
 *	  Filters of tables: whether a key exists at all, in a fraction of the table's memory.
 *
 * A look-up of a missing key costs what the random reads of the table cost: more than two on the
 * average if half of the slots are full (Knuth, vol. 3, section 6.4, theorem K).  Most look-ups
 * of a star join are such.  A filter has a byte or two a row where slots have 32, and a bit a
 * place where places have 32.  Up to 2^17 rows, or 2^20 places, it lies in L1, and most of one of
 * 2^26 rows, or 2^29 places, in L2.  A kernel stops asking the filter when most keys exist
 * (fused_plain.cuh).
 */
#include "rows/hash.h"
#include "internal.cuh"

#define SLOTS 4 /* of a thread, which are read together */

static __global__ void
__launch_bounds__(GJ_THREADS)
	set_bits(const GjHashSlot *slots, uint64_t nslots, uint32_t *filter, uint32_t nfilter)
{
	const uint64_t first = (uint64_t) blockIdx.x * GJ_THREADS * SLOTS + threadIdx.x;
	uint4 slot[SLOTS];

	gj_load_slots(slots, nslots, first, slot);
#pragma unroll
	for (uint32_t k = 0; k < SLOTS; k++)
	{
		const uint64_t hash = gj_hash_mix((uint64_t) slot[k].y << 32 | slot[k].x);

		if (slot[k].w != 0)
			atomicOr(&filter[gj_filter_word(hash, nfilter)], gj_filter_bits(hash));
	}
}

/* A word of a warp's places. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	set_place_bits(const uint32_t *place, uint64_t nslots, uint32_t *filter)
{
	const uint64_t i = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;
	const uint32_t bits = __ballot_sync(0xFFFFFFFF, i < nslots && place[i] != GJ_NO_ROW);

	if (threadIdx.x % 32 == 0 && i < nslots)
		filter[i / 32] = bits;
}

/*
 * A key that slots do not have takes two reads or more of them, one that places do not have a
 * single one, so that only a nearer cache is of use.  A filter of which L2 has a half is as good
 * as one that it has.
 */
bool
gj_filter_helps(const GjQueue *queue, const GjHashTable *table)
{
	const uint64_t l1 = queue->device->l1_bytes;
	const uint64_t l2 = queue->device->l2_bytes;
	const uint64_t nbytes = gj_filter_words(table) * sizeof(uint32_t);
	const uint64_t places = table->nslots * sizeof(uint32_t);

	if (table->kind == GJ_TABLE_HASH)
		return nbytes / 2 <= l2;
	return places > l1 && (nbytes <= l1 || (nbytes / 2 <= l2 && places > l2));
}

GjStatus
gj_hash_filter(GjQueue *queue, GjHashTable *table)
{
	const uint32_t nwords = (uint32_t) gj_filter_words(table);
	const size_t nbytes = nwords * sizeof(uint32_t);

	GJ_TRY(gj_enter(queue));
	table->key_filter = (uint32_t *) gj_alloc(queue, nbytes);
	if (table->key_filter == NULL)
		return gj_no_memory(queue);
	table->nkey_filter = nwords;
	table->has_filter = true;
	if (table->kind == GJ_TABLE_DIRECT)
	{
		set_place_bits<<<gj_blocks(table->nslots, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
			table->place, table->nslots, table->key_filter);
		GJ_LAUNCHED(queue, "set_place_bits");
		return GJ_OK;
	}
	GJ_CUDA(queue, cudaMemsetAsync(table->key_filter, 0, nbytes, queue->stream));
	set_bits<<<gj_blocks(table->nslots, GJ_THREADS * SLOTS), GJ_THREADS, 0, queue->stream>>>(
		table->slots, table->nslots, table->key_filter, nwords);
	GJ_LAUNCHED(queue, "set_bits");
	return GJ_OK;
}
