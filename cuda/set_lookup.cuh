/*
 * set_lookup.cuh
 *	  Intersection of two sets by looking each value of one up in the other.
 *
 * By binary search in the range that a block's values share, whose first steps are in shared
 * memory, in a hash table behind a Bloom filter, or in a bitmap.  Blocks learn from those before
 * them where their values go, as in set_merge.cuh.
 */
#ifndef GJ_CUDA_SET_LOOKUP_CUH
#define GJ_CUDA_SET_LOOKUP_CUH

#include "internal.cuh"
#include "place.cuh"

#define PROBE_ITEMS 8 /* consecutive values of a thread */
#define PROBE_BLOCK (PROBE_ITEMS * GJ_THREADS)
#define TOP_VALUES 1024 /* of a search tree, in shared memory */

/* The first of n ascending values that is not less, n if there is none.  A warp's lanes share it.
 */
template <typename T>
static __device__ __forceinline__ uint64_t
warp_lower_bound(const T *values, uint64_t n, T value)
{
	uint64_t low = 0;
	uint64_t high = n;

	while (low < high)
	{
		const uint64_t step = (high - low + 31) / 32;
		const uint64_t at = low + threadIdx.x % 32 * step;
		const uint32_t nless = (uint32_t) __popc(
			__ballot_sync(0xFFFFFFFF, at < high && values[min(at, n - 1)] < value));

		if (nless == 0)
			break;
		high = min(low + nless * step, high);
		low += (nless - 1) * step + 1;
	}
	return low;
}

/*
 * Binary search in the range of values that the block's own can lie in, which are sorted, too; the
 * first ten steps are in a sample of it.  (The step from one value's place to the next, by all of a
 * block: what galloping is for one thread.)
 */
template <typename T>
struct SearchLookup
{
	struct Shared
	{
		T top[TOP_VALUES];
		uint64_t first;
		uint64_t end;
	};
	const T *values;
	uint64_t n; /* > 0 */

	static __device__ __forceinline__ uint64_t
	step_of(const Shared &shared)
	{
		return (shared.end - shared.first + TOP_VALUES - 1) / TOP_VALUES;
	}
	__device__ __forceinline__ void
	load(Shared &shared, const T *wanted, uint64_t nwanted) const
	{
		const uint32_t warp = threadIdx.x / 32;

		if (warp < 2)
		{
			const uint64_t at = warp_lower_bound(values, n, wanted[warp == 0 ? 0 : nwanted - 1]);

			if (threadIdx.x == 0)
				shared.first = at;
			else if (threadIdx.x == 32)
				shared.end = min(at + 1, n);
		}
		__syncthreads();
		for (uint32_t i = threadIdx.x; i < TOP_VALUES && shared.first < shared.end; i += GJ_THREADS)
			shared.top[i] = values[min(shared.first + i * step_of(shared), shared.end - 1)];
	}
	__device__ __forceinline__ bool
	has(const Shared &shared, T value) const
	{
		const uint64_t step = step_of(shared);
		uint32_t low = 0;
		uint32_t high = TOP_VALUES;
		uint64_t from;
		uint64_t to;

		if (shared.first >= shared.end)
			return false;
		/* the last of the sample that is at most value */
		while (high - low > 1)
		{
			const uint32_t mid = (low + high) / 2;

			if (shared.top[mid] <= value)
				low = mid;
			else
				high = mid;
		}
		from = min(shared.first + low * step, shared.end - 1);
		to = min(shared.first + (low + 1) * step, shared.end);
		while (to - from > 1)
		{
			const uint64_t mid = from + (to - from) / 2;

			if (values[mid] <= value)
				from = mid;
			else
				to = mid;
		}
		return values[from] == value;
	}
};

/* Types of a slot, which atomicCAS must know. */
template <typename T>
struct SlotType
{
	typedef unsigned int type;
};
template <>
struct SlotType<int64_t>
{
	typedef unsigned long long type;
};

static __device__ __forceinline__ uint64_t
hash_of(uint64_t value)
{
	const uint64_t product = value * UINT64_C(0x9E3779B97F4A7C15);

	return product ^ product >> 32;
}

static __device__ __forceinline__ uint64_t
slot_of(uint64_t hash, uint64_t mask)
{
	return (hash >> 20) & mask;
}

/*
 * A Bloom filter whose values have three bits each in one word (Putze, Sanders, Singler, "Cache-,
 * hash- and space-efficient Bloom filters", JEA 14, 2009: blocked): one read tells of most values
 * that the set has not got, and it is an eighth of the table.
 */
struct Filter
{
	uint32_t *words; /* NULL: no filter */
	uint32_t nwords;

	__device__ __forceinline__ uint32_t *
	word_of(uint64_t hash) const
	{
		return words + ((hash >> 32) * nwords >> 32);
	}
	static __device__ __forceinline__ uint32_t
	bits_of(uint64_t hash)
	{
		return 1u << (hash & 31) | 1u << (hash >> 5 & 31) | 1u << (hash >> 10 & 31);
	}
};

/*
 * Open addressing.  The smallest integer of the slot's type means an empty slot; whether the
 * set has that one, its first value tells.
 */
template <typename T>
struct HashLookup
{
	struct Shared
	{
	};
	typedef typename SlotType<T>::type Slot;
	static const Slot empty = (Slot) 1 << (sizeof(Slot) * 8 - 1);
	const Slot *slots;
	uint64_t mask;
	const T *values;
	Filter filter;

	__device__ __forceinline__ void
	load(Shared &, const T *, uint64_t) const
	{
	}
	__device__ __forceinline__ bool
	has(const Shared &, T value) const
	{
		const Slot wanted = (Slot) value;
		const uint64_t hash = hash_of(wanted);
		uint64_t s = slot_of(hash, mask);

		if (wanted == empty)
			return values[0] == value;
		if (filter.words && (~*filter.word_of(hash) & Filter::bits_of(hash)))
			return false;
		while (slots[s] != empty && slots[s] != wanted)
			s = (s + 1) & mask;
		return slots[s] == wanted;
	}
};

template <typename Slot>
static __global__ void
__launch_bounds__(GJ_THREADS) clear_slots(Slot *slots, uint64_t nslots, Slot empty)
{
	const uint64_t i = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < nslots)
		slots[i] = empty;
}

template <typename T, typename Slot>
static __global__ void
__launch_bounds__(GJ_THREADS)
	fill_slots(Slot *slots, uint64_t mask, Slot empty, Filter filter, const T *values, uint64_t n)
{
	const uint64_t i = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;
	uint64_t hash;
	Slot value;
	uint64_t s;

	if (i >= n)
		return;
	value = (Slot) values[i];
	if (value == empty)
		return;
	hash = hash_of(value);
	if (filter.words)
		atomicOr(filter.word_of(hash), Filter::bits_of(hash));
	for (s = slot_of(hash, mask); atomicCAS(&slots[s], empty, value) != empty;)
		s = (s + 1) & mask;
}

/* A bit for each value from the set's first to its last one. */
template <typename T>
struct BitmapLookup
{
	struct Shared
	{
	};
	const uint32_t *bits;
	uint64_t first;
	uint64_t span;

	__device__ __forceinline__ void
	load(Shared &, const T *, uint64_t) const
	{
	}
	__device__ __forceinline__ bool
	has(const Shared &, T value) const
	{
		const uint64_t bit = (uint64_t) (int64_t) value - first;

		return bit < span && (bits[bit / 32] >> (bit % 32) & 1);
	}
};

template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS) fill_bits(uint32_t *bits, uint64_t first, const T *values, uint64_t n)
{
	const uint64_t i = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
	{
		const uint64_t bit = (uint64_t) (int64_t) values[i] - first;

		atomicOr(&bits[bit / 32], 1u << (bit % 32));
	}
}

/* Looks na values up; writes those that are found, in order, or only counts them. */
template <typename T, typename Lookup, bool WRITE>
static __global__ void
__launch_bounds__(GJ_THREADS)
	probe(const T *a, uint64_t na, Lookup lookup, TileState tiles, GjResults *results, T *result)
{
	__shared__ typename Lookup::Shared shared;
	__shared__ Place place;
	const uint64_t first = (uint64_t) blockIdx.x * PROBE_BLOCK;
	const uint64_t base = first + threadIdx.x * PROBE_ITEMS;
	T value[PROBE_ITEMS];
	uint32_t found = 0;

#pragma unroll
	for (uint32_t s = 0; s < PROBE_ITEMS; s++)
	{
		if (base + s < na)
			value[s] = a[base + s];
	}
	lookup.load(shared, a + first, min(na - first, (uint64_t) PROBE_BLOCK));
	__syncthreads();
#pragma unroll
	for (uint32_t s = 0; s < PROBE_ITEMS; s++)
	{
		if (base + s < na && lookup.has(shared, value[s]))
			found |= 1u << s;
	}
	if (WRITE)
	{
		uint64_t to;
		uint32_t n;
		uint32_t at = place_values(place, tiles, (uint32_t) __popc(found), results, &n, &to);

#pragma unroll
		for (uint32_t s = 0; s < PROBE_ITEMS; s++)
		{
			if (found & (1u << s))
				result[to + at++] = value[s];
		}
	}
	else
	{
		const uint32_t n = __reduce_add_sync(0xFFFFFFFF, (uint32_t) __popc(found));

		if (threadIdx.x % 32 == 0 && n > 0)
			atomicAdd((unsigned long long *) &results->total, (unsigned long long) n);
	}
}

template <typename T, typename Lookup>
static GjStatus
run_probe(GjQueue *queue, const T *a, uint64_t na, const Lookup &lookup, T *result)
{
	const uint32_t nblocks = gj_blocks(na, PROBE_BLOCK);
	TileState tiles;

	GJ_TRY(start_places(queue, nblocks, &tiles));
	if (result)
		probe<T, Lookup, true><<<nblocks, GJ_THREADS, 0, queue->stream>>>(a, na, lookup, tiles,
																		  queue->results, result);
	else
		probe<T, Lookup, false><<<nblocks, GJ_THREADS, 0, queue->stream>>>(a, na, lookup, tiles,
																		   queue->results, result);
	GJ_LAUNCHED(queue, "probe");
	return GJ_OK;
}

template <typename T>
static GjStatus
intersect_search(GjQueue *queue, const T *small, uint64_t nsmall, const T *large, uint64_t nlarge,
				 T *result)
{
	SearchLookup<T> lookup = {large, nlarge};

	return run_probe(queue, small, nsmall, lookup, result);
}

/* From this ratio of sizes on a filter is worth it: at most one value in so many is found. */
#define FILTER_SKEW 4
#define FILTER_BITS 8 /* a value, at least */

template <typename T>
static GjStatus
intersect_hash(GjQueue *queue, const T *small, uint64_t nsmall, const T *large, uint64_t nlarge,
			   T *result)
{
	typedef HashLookup<T> Lookup;
	typedef typename Lookup::Slot Slot;
	const bool filtered = nlarge / FILTER_SKEW >= nsmall;
	uint64_t nslots = 1024;
	uint64_t nwords;
	size_t nbytes;
	Slot *slots;
	Lookup lookup;
	GjStatus status;

	while (nslots < nsmall * 2)
		nslots *= 2;
	/* half of the slots may have a value; sets have less than 2^32 of them */
	nwords = filtered ? nslots / 2 / 32 * FILTER_BITS : 0;
	nbytes = nslots * sizeof(Slot) + nwords * sizeof(uint32_t);
	slots = (Slot *) gj_alloc(queue, nbytes);
	if (slots == NULL)
		return gj_no_memory(queue);
	lookup.slots = slots;
	lookup.mask = nslots - 1;
	lookup.values = small;
	lookup.filter.words = filtered ? (uint32_t *) (slots + nslots) : NULL;
	lookup.filter.nwords = (uint32_t) nwords;
	if (filtered)
		GJ_CUDA(queue,
				cudaMemsetAsync(lookup.filter.words, 0, nwords * sizeof(uint32_t), queue->stream));
	clear_slots<<<gj_blocks(nslots, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		slots, nslots, (Slot) Lookup::empty);
	GJ_LAUNCHED(queue, "clear_slots");
	fill_slots<<<gj_blocks(nsmall, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		slots, nslots - 1, (Slot) Lookup::empty, lookup.filter, small, nsmall);
	GJ_LAUNCHED(queue, "fill_slots");
	status = run_probe(queue, large, nlarge, lookup, result);
	gj_free(queue, slots, nbytes);
	return status;
}

/* A bitmap may take so many bits a value, and some more. */
#define BITMAP_BITS 256
#define BITMAP_MIN (UINT64_C(1) << 23)

/* *done = false: the values are too far apart for a bitmap. */
template <typename T>
static GjStatus
intersect_bitmap(GjQueue *queue, const T *small, uint64_t nsmall, const T *large, uint64_t nlarge,
				 T *result, bool *done)
{
	T ends[2];
	BitmapLookup<T> lookup;
	uint32_t *bits;
	size_t nbytes;
	GjStatus status;

	GJ_CUDA(queue,
			cudaMemcpyAsync(&ends[0], small, sizeof(T), cudaMemcpyDeviceToHost, queue->stream));
	GJ_CUDA(queue, cudaMemcpyAsync(&ends[1], small + nsmall - 1, sizeof(T), cudaMemcpyDeviceToHost,
								   queue->stream));
	GJ_CUDA(queue, cudaStreamSynchronize(queue->stream));
	lookup.first = (uint64_t) (int64_t) ends[0];
	lookup.span = (uint64_t) (int64_t) ends[1] - lookup.first;
	*done = lookup.span < nsmall * BITMAP_BITS + BITMAP_MIN;
	if (!*done)
		return GJ_OK;
	lookup.span++;
	nbytes = (lookup.span + 31) / 32 * sizeof(uint32_t);
	bits = (uint32_t *) gj_alloc(queue, nbytes);
	if (bits == NULL)
		return gj_no_memory(queue);
	GJ_CUDA(queue, cudaMemsetAsync(bits, 0, nbytes, queue->stream));
	fill_bits<<<gj_blocks(nsmall, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(bits, lookup.first,
																			   small, nsmall);
	GJ_LAUNCHED(queue, "fill_bits");
	lookup.bits = bits;
	status = run_probe(queue, large, nlarge, lookup, result);
	gj_free(queue, bits, nbytes);
	return status;
}

#endif /* GJ_CUDA_SET_LOOKUP_CUH */
