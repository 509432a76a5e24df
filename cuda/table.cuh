/*
 * table.cuh
 *	  Look-ups in tables, one for each kind.  The fused operator, whose kernels have no register
 *	  to spare, looks up several tuples of a thread in loops of its own.
 *
 * A reference is made where it is used, from the GjTableRef that the kernel was given; it costs
 * nothing.  The type At numbers slots or places: 32 bits if these are enough, else 64.
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
};

/* Of a wide table. */
struct WideRef
{
	const GjWideSlot *slots;
	uint64_t nslots;

	__device__ __forceinline__
	WideRef(const GjTableRef &table)
		: slots(table.wide), nslots(table.nslots)
	{
	}

	__device__ __forceinline__ uint64_t
	home(uint64_t hash) const
	{
		return gj_hash_slot(hash, nslots);
	}

	__device__ __forceinline__ GjWideSlot
	load(uint64_t s) const
	{
		const ulonglong2 key = __ldg((const ulonglong2 *) &slots[s]);
		const uint2 rows = __ldg((const uint2 *) &slots[s].start);

		return {{key.x, key.y}, rows.x, rows.y, 0};
	}

	/* The slot of two keys, from slot s on, which was loaded; one of count 0: there is none. */
	__device__ __forceinline__ GjHashSlot
	find_from(const uint64_t (&key)[2], uint64_t s, GjWideSlot slot) const
	{
		while (slot.count != 0 && (slot.key[0] != key[0] || slot.key[1] != key[1]))
		{
			if (++s == nslots)
				s = 0;
			slot = load(s);
		}
		return {slot.key[0], slot.start, slot.count};
	}

	__device__ __forceinline__ GjHashSlot
	find(const uint64_t (&key)[2], uint64_t hash) const
	{
		const uint64_t s = home(hash);

		return find_from(key, s, load(s));
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
};

#endif /* GJ_CUDA_TABLE_CUH */
