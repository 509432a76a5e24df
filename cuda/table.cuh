/*
 * table.cuh
 *	  Look-ups in tables: one for each kind, for all kernels that probe.
 *
 * A ref is made where it is used, of what a kernel has been given of a table (GjTableRef); it costs
 * nothing.  At is what numbers slots or places: 32 bits where these are enough, else 64.
 */
#ifndef GJ_CUDA_TABLE_CUH
#define GJ_CUDA_TABLE_CUH

#include "rows/hash.h"
#include "internal.cuh"

template <typename At>
struct HashRef
{
	const GjHashSlot *slots;
	At nslots;

	__device__ __forceinline__
	HashRef(const GjTableRef &table)
		: slots(table.slots), nslots((At) table.nslots)
	{
	}

	__device__ __forceinline__ At
	home(uint64_t hash) const
	{
		if (sizeof(At) == sizeof(uint64_t))
			return (At) gj_hash_slot(hash, nslots);
		/* the same of 32 bits */
		return (At) (((hash >> 32) * nslots + ((uint64_t) (uint32_t) hash * nslots >> 32)) >> 32);
	}

	/*
	 * The slot that is the same as what is looked up, from slot s on, which was loaded, or the
	 * empty one that ends the search.
	 */
	template <typename Same>
	__device__ __forceinline__ GjHashSlot
	find_from(At s, GjHashSlot slot, Same same) const
	{
		while (slot.count != 0 && !same(slot))
		{
			if (++s == nslots)
				s = 0;
			slot = gj_load_slot(slots, s);
		}
		return slot;
	}

	/*
	 * Looks keys number `from` .. from + N - 1 up, those of them that are `open`, whose slots are
	 * under way together: take(i, slot) gets the slot of key from + i, if it has one.
	 */
	template <uint32_t N, uint32_t R, typename V, typename Take>
	__device__ __forceinline__ void
	find(const V (&key)[R], uint32_t from, uint32_t open, Take take) const
	{
		At at[N];

#pragma unroll
		for (uint32_t i = 0; i < N; i++)
			at[i] = home(gj_hash_mix((uint64_t) (int64_t) key[from + i]));
		while (open != 0)
		{
			GjHashSlot slot[N];

#pragma unroll
			for (uint32_t i = 0; i < N; i++)
			{
				if (open >> i & 1)
					slot[i] = gj_load_slot(slots, at[i]);
			}
#pragma unroll
			for (uint32_t i = 0; i < N; i++)
			{
				if (!(open >> i & 1))
					continue;
				if (slot[i].count == 0)
					open &= ~(1u << i);
				else if (slot[i].key == (uint64_t) (int64_t) key[from + i])
				{
					take(i, slot[i]);
					open &= ~(1u << i);
				}
				else if (++at[i] == nslots)
					at[i] = 0;
			}
		}
	}
};

/* Of a direct table, or a dense one. */
template <typename At>
struct PlaceRef
{
	const uint32_t *place;
	At low;
	At nslots;
	bool dense;

	__device__ __forceinline__
	PlaceRef(const GjTableRef &table)
		: place(table.place), low((At) table.low), nslots((At) table.nslots),
		  dense(table.kind == GJ_TABLE_DENSE)
	{
	}

	/* A key's place; nslots or more: it has none. */
	template <typename V>
	__device__ __forceinline__ At
	at(V key) const
	{
		return (At) key - low;
	}

	/* The row of a key, or GJ_NO_ROW. */
	template <typename V>
	__device__ __forceinline__ uint32_t
	find(V key) const
	{
		uint32_t row = GJ_NO_ROW;

		if (at(key) < nslots)
			row = dense ? (uint32_t) at(key) : __ldg(&place[at(key)]);
		return row;
	}

	/* Those of the wanted keys that have a row, found[i]; of others it may be anything. */
	template <uint32_t R, typename V>
	__device__ __forceinline__ uint32_t
	find(const V (&key)[R], uint32_t wanted, uint32_t (&found)[R]) const
	{
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			found[i] = (uint32_t) at(key[i]);
			if (at(key[i]) >= nslots)
				wanted &= ~(1u << i);
		}
		if (dense)
			return wanted;
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
			found[i] = wanted >> i & 1 ? __ldg(&place[found[i]]) : GJ_NO_ROW;
#pragma unroll
		for (uint32_t i = 0; i < R; i++)
		{
			if (found[i] == GJ_NO_ROW)
				wanted &= ~(1u << i);
		}
		return wanted;
	}
};

#endif /* GJ_CUDA_TABLE_CUH */
