/*
 * join_hash.cuh
 *	  What the two ways to build a hash table share: join_hash.cu, which claims slots in
 *	  global memory, and join_radix.cu and join_radix_claim.cu, which do so in shared memory.
 *
 * While a table is built, GjHashSlot.start holds the input row that claimed the slot (its
 * owner; GJ_NO_OWNER: none), and the count numbers the rows of a key.  Both ways leave the
 * same slots, so that either can add rows to what the other one has claimed.
 */
#ifndef GJ_CUDA_JOIN_HASH_CUH
#define GJ_CUDA_JOIN_HASH_CUH

#include "rows/hash.h"
#include "internal.cuh"

#define GJ_NO_OWNER 0xFFFFFFFFu

/*
 * A table that is being built.  The rows to enter are input rows 0 .. npositions-1, or,
 * once they are partitioned, those that `order` names: then NULLs are left out already.
 */
typedef struct GjBuild
{
	GjKeys keys;
	GjHashSlot *slots;
	uint64_t nslots;
	uint32_t *order; /* of the rows, or NULL; [keys.nrows] */
	uint32_t npositions;
	uint32_t *slot_of; /* position: slot of its row, or GJ_NO_OWNER if a key is NULL */
	uint32_t *rank;    /* position: number of its row among those of the slot */
	uint32_t *rows;
	uint32_t *key_row;
	const uint32_t *rowid;
	GjResults *results; /* max_rank and nrows are what the claims of all rows leave */
} GjBuild;

/* Rows in partitions, in the order of the slots that their hashes ask for; NULLs left out. */
typedef struct GjPartitions
{
	uint64_t *key;   /* the key, or the hash if there are several */
	uint32_t *row;   /* input row */
	uint32_t *start; /* [n + 1] first row of each partition */
	uint32_t n;
	uint32_t max_nrows; /* room in key and row */
} GjPartitions;

/* Waits for a pass over many rows, and asks stop(arg), if there is one, whether to go on. */
GjStatus gj_build_ask(GjQueue *queue, uint32_t nrows, bool (*stop)(void *), void *arg);

/*
 * join_direct.cu: makes a direct table of up to most_bytes, if the keys are such; else the table
 * stays zero.  Waits.
 */
GjStatus gj_direct_build(GjQueue *queue, const GjKeys *keys, const uint32_t *rowid,
						 uint64_t most_bytes, bool (*stop)(void *), void *arg, GjHashTable *table);

/*
 * join_wide.cu: makes a table of two keys, which lasts, a wide one of up to most_bytes, if there is
 * memory for it.  Waits.
 */
GjStatus gj_widen(GjQueue *queue, const GjKeys *keys, uint64_t most_bytes, GjHashTable *table);

/*
 * join_radix.cu: partitions the rows of keys for a table of nslots slots.  Asks stop(arg)
 * between passes.  On success the caller gives the partitions back.
 */
GjStatus gj_radix_partition(GjQueue *queue, const GjKeys *keys, uint64_t nslots,
							bool (*stop)(void *), void *arg, GjPartitions *partitions);
/*
 * The same for a direct table, whose rows have one key, low .. low + nslots - 1: partitions of
 * places that stay in L2 while they are written.
 */
GjStatus gj_radix_split(GjQueue *queue, const GjKeys *keys, int64_t low, uint64_t nslots,
						bool (*stop)(void *), void *arg, GjPartitions *partitions);
void gj_radix_free(GjQueue *queue, GjPartitions *partitions);
/*
 * join_radix_claim.cu: claims the slots of all rows of the partitions, whose `row` then is
 * build->order.  Waits.
 */
GjStatus gj_radix_claim(GjQueue *queue, GjBuild *build, GjPartitions *partitions);

/* Finds the slot of input row i's keys in global memory, or claims one. */
static __device__ __forceinline__ uint32_t
gj_claim_slot(const GjBuild &build, uint32_t i, uint64_t hash)
{
	uint64_t s = gj_hash_slot(hash, build.nslots);

	for (;;)
	{
		uint32_t *start = &build.slots[s].start;
		uint32_t owner = *(volatile uint32_t *) start;

		if (owner == GJ_NO_OWNER)
		{
			owner = atomicCAS(start, GJ_NO_OWNER, i);
			if (owner == GJ_NO_OWNER)
			{
				build.slots[s].key =
					build.keys.nkeys == 1 ? (uint64_t) build.keys.value[0][i] : hash;
				return (uint32_t) s;
			}
		}
		if (gj_keys_equal(build.keys.nkeys, build.keys.value, i, build.keys.value, owner))
			return (uint32_t) s;
		if (++s == build.nslots)
			s = 0;
	}
}

#endif /* GJ_CUDA_JOIN_HASH_CUH */
