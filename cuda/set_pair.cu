/*
 * set_pair.cu
 *	  Sets of integers: sort and remove duplicates; intersection, union and difference of
 *	  two sorted sets.
 *
 * merge_path follows Green, McColl, Bader, "GPU Merge Path", ICS 2012: the merged order of
 * both sets is cut into ranges of equal length, one a block, and each block's range, in
 * shared memory, into equal lengths again, one a thread.  Of two equal values that of `a`
 * comes first, so a match is found where a value of `a` is taken, by comparing it with the
 * next value of `b`, which may lie in the range behind.  Where a range has few
 * values of one of the sets, these are looked up in the rest of it instead, as Bellas and
 * Gounaris combine intersect path and binary search (Information Systems 108, 2022).
 *
 * The other algorithms look each value of one set up in the other one: by binary search in the
 * range that a block's values share, whose first steps are in shared memory, in a hash table behind
 * a Bloom filter, or in a bitmap.
 *
 * Either way a block knows how many values it has, and learns from the blocks before it
 * where they go (a scan with decoupled look-back), in one pass.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "internal.cuh"
#include "place.cuh"

/* ---- sort_unique */

/* values -> sorted in values or other -> unique in values; *n_unique in the results. */
template <typename T>
static GjStatus
sort_unique(GjQueue *queue, T *values, T *other, uint64_t n)
{
	cub::DoubleBuffer<T> buffer(values, other);
	T *unique;

	GJ_CUB(queue, cub::DeviceRadixSort::SortKeys, buffer, n, 0, (int) sizeof(T) * 8);
	unique = buffer.Current() == values ? other : values;
	GJ_CUB(queue, cub::DeviceSelect::Unique, (const T *) buffer.Current(), unique,
		   &queue->results->total, (int64_t) n);
	GJ_TRY(gj_wait(queue));
	if (unique != values)
		GJ_CUDA(queue, cudaMemcpyAsync(values, unique, queue->pinned->results.total * sizeof(T),
									   cudaMemcpyDeviceToDevice, queue->stream));
	return GJ_OK;
}

GjStatus
gj_sort_unique(GjQueue *queue, void *values, uint32_t width, uint64_t n, bool (*stop)(void *),
			   void *arg, uint64_t *n_unique)
{
	void *other;
	GjStatus status;

	*n_unique = 0;
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return gj_wait(queue);
	other = gj_alloc(queue, n * width);
	if (other == NULL)
		return gj_no_memory(queue);
	/* one pass, as device.h says: there is nothing in between to stop at */
	if (stop && stop(arg))
		status = GJ_CANCELLED;
	else if (width == 2)
		status = sort_unique(queue, (int16_t *) values, (int16_t *) other, n);
	else if (width == 4)
		status = sort_unique(queue, (int32_t *) values, (int32_t *) other, n);
	else
		status = sort_unique(queue, (int64_t *) values, (int64_t *) other, n);
	gj_free(queue, other, n * width);
	if (status == GJ_OK)
		*n_unique = queue->pinned->results.total;
	return status;
}

/* ---- merge_path */

/* Values of the merged order that a thread and a block take. */
template <typename T>
struct Range
{
	static const uint32_t thread = sizeof(T) == 8 ? 9 : 15; /* odd: fewer bank conflicts */
	static const uint32_t block = thread * GJ_THREADS;
};

/*
 * How many of the first `diagonal` values of the merged order come from `a`: the
 * smallest i with a[i] > b[diagonal - 1 - i].
 */
template <typename T, typename N>
static __device__ __forceinline__ N
merge_path(const T *a, N na, const T *b, N nb, N diagonal)
{
	N low = diagonal > nb ? diagonal - nb : 0;
	N high = diagonal < na ? diagonal : na;

	while (low < high)
	{
		const N mid = low + (high - low) / 2;

		if (a[mid] <= b[diagonal - 1 - mid])
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* split[k] = values of `a` before block k's range, for k <= nblocks; starts the tiles. */
template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS)
	merge_split(const T *a, uint64_t na, const T *b, uint64_t nb, uint32_t nblocks, uint64_t *split,
				TileState tiles, GjResults *results)
{
	const uint64_t k = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;

	tiles.InitializeStatus((int) nblocks);
	if (k == 0)
		results->total = 0;
	if (k <= nblocks)
		split[k] = merge_path(a, na, b, nb, min(k * Range<T>::block, na + nb));
}

/* A block's range: its values in shared memory. */
template <typename T>
struct Part
{
	const T *a; /* na values; a[-1] is the one before, if has_before */
	const T *b; /* nb values; b[nb] is the one behind, if has_behind */
	uint32_t na;
	uint32_t nb;
	bool has_before;
	bool has_behind;
};

/* Loads the range into values[Range::block + 2]: all loads are under way at once. */
template <typename T>
static __device__ __forceinline__ Part<T>
load_part(const T *a, uint64_t na, const T *b, uint64_t nb, const uint64_t *split, T *values)
{
	const uint64_t a_first = split[blockIdx.x];
	const uint64_t a_end = split[blockIdx.x + 1];
	const uint64_t first = (uint64_t) blockIdx.x * Range<T>::block;
	const uint64_t end = min(first + Range<T>::block, na + nb);
	const uint64_t b_first = first - a_first;
	const uint32_t total = (uint32_t) (end - first);
	T loaded[Range<T>::thread];
	Part<T> part;

	part.na = (uint32_t) (a_end - a_first);
	part.nb = total - part.na;
	part.has_before = a_first > 0;
	part.has_behind = b_first + part.nb < nb;
	part.a = values + 1;
	part.b = values + 1 + part.na;
	if (threadIdx.x == 0)
		values[0] = part.has_before ? a[a_first - 1] : 0;
	if (threadIdx.x == 32)
		values[1 + total] = part.has_behind ? b[b_first + part.nb] : 0;
#pragma unroll
	for (uint32_t s = 0; s < Range<T>::thread; s++)
	{
		const uint32_t i = s * GJ_THREADS + threadIdx.x;

		if (i < total)
			loaded[s] = i < part.na ? a[a_first + i] : b[b_first + (i - part.na)];
	}
#pragma unroll
	for (uint32_t s = 0; s < Range<T>::thread; s++)
	{
		const uint32_t i = s * GJ_THREADS + threadIdx.x;

		if (i < total)
			values[1 + i] = loaded[s];
	}
	__syncthreads();
	return part;
}

/*
 * Walks the values from `a`'s number i and `b`'s number j on, of which CHECKED may be too few.  Bit
 * s of the result is set if step s gave a value, which is then in kept[s].  A step costs one load:
 * the next value of the set that one was taken of.
 */
template <typename T, int OPERATION, bool CHECKED>
static __device__ __forceinline__ uint32_t
walk_part(const Part<T> &part, uint32_t i, uint32_t j, T (&kept)[Range<T>::thread])
{
	T a = part.a[i]; /* b's first, or the one behind, where `a` has no more */
	T b = part.b[j];
	bool was_equal = (i > 0 || part.has_before) && part.a[(int) i - 1] == b;
	uint32_t found = 0;

#pragma unroll
	for (uint32_t s = 0; s < Range<T>::thread; s++)
	{
		const bool has_b = !CHECKED || j < part.nb;
		const bool take_a = CHECKED ? i < part.na && (!has_b || a <= b) : a <= b;
		const bool take_b = !take_a && has_b;
		/* the equal of a value of `a` comes next, perhaps in the range behind */
		const bool equal = a == b && (!CHECKED || (take_a && (has_b || part.has_behind)));
		bool keep;
		T next;

		if (OPERATION == GJ_SETS_INTERSECT)
			keep = equal;
		else if (OPERATION == GJ_SETS_EXCEPT)
			keep = take_a && !equal;
		else
			keep = take_a || (take_b && !was_equal);
		kept[s] = OPERATION != GJ_SETS_UNION || take_a ? a : b;
		found |= keep ? 1u << s : 0u;
		was_equal = equal;
		i += take_a;
		j += take_b;
		next = part.a[take_a ? i : part.na + j]; /* b lies behind a */
		a = take_a ? next : a;
		b = take_a ? b : next;
	}
	return found;
}

/* This thread's values: see walk_part. */
template <typename T, int OPERATION>
static __device__ __forceinline__ uint32_t
merge_part(const Part<T> &part, T (&kept)[Range<T>::thread])
{
	const uint32_t n = Range<T>::thread;
	const uint32_t diagonal = min(threadIdx.x * n, part.na + part.nb);
	const uint32_t i = merge_path(part.a, part.na, part.b, part.nb, diagonal);
	const uint32_t j = diagonal - i;

	/* all but the last threads of a block */
	if (i + n <= part.na && j + n <= part.nb)
		return walk_part<T, OPERATION, false>(part, i, j, kept);
	return walk_part<T, OPERATION, true>(part, i, j, kept);
}

/* From this ratio of a range's values on those of the smaller set are looked up. */
#define RANGE_SKEW 8
#define RANGE_ITEMS 2 /* of them a thread takes */

static_assert(Range<int16_t>::block / RANGE_SKEW + 1 <= RANGE_ITEMS * GJ_THREADS &&
				  Range<int64_t>::block / RANGE_SKEW + 1 <= RANGE_ITEMS * GJ_THREADS,
			  "values of the smaller set");

/*
 * The same for an intersection, where a range has few values of one set: they are looked up among
 * those of the other one.  The equal of a value of `a` may lie right behind the range.
 */
template <typename T>
static __device__ __forceinline__ uint32_t
search_part(const Part<T> &part, T (&kept)[Range<T>::thread])
{
	const uint32_t nb = part.nb + part.has_behind;
	const bool few_a = part.na <= nb;
	const T *few = few_a ? part.a : part.b;
	const T *many = few_a ? part.b : part.a;
	const uint32_t nfew = few_a ? part.na : nb;
	const uint32_t nmany = few_a ? nb : part.na;
	uint32_t found = 0;

#pragma unroll
	for (uint32_t s = 0; s < RANGE_ITEMS; s++)
	{
		const uint32_t i = threadIdx.x * RANGE_ITEMS + s;
		uint32_t low = 0;
		uint32_t high = nmany;

		if (i >= nfew)
			break;
		kept[s] = few[i];
		while (low < high)
		{
			const uint32_t mid = (low + high) / 2;

			if (many[mid] < kept[s])
				low = mid + 1;
			else
				high = mid;
		}
		if (low < nmany && many[low] == kept[s])
			found |= 1u << s;
	}
	return found;
}

/*
 * What the block's range gives; all of its threads take the same way.  FEW: one set is much smaller
 * than the other (a kernel of its own, so that the usual one keeps its registers).
 */
template <typename T, int OPERATION, bool FEW>
static __device__ __forceinline__ uint32_t
take_part(const Part<T> &part, T (&kept)[Range<T>::thread])
{
	if (FEW && min(part.na, part.nb) * RANGE_SKEW <= part.na + part.nb)
		return search_part(part, kept);
	return merge_part<T, OPERATION>(part, kept);
}

/* Adds up how many values the ranges give. */
template <typename T, int OPERATION, bool FEW>
static __global__ void
__launch_bounds__(GJ_THREADS) merge_count(const T *a, uint64_t na, const T *b, uint64_t nb,
										  const uint64_t *split, GjResults *results)
{
	__shared__ T values[Range<T>::block + 2];
	__shared__ uint32_t count;
	T kept[Range<T>::thread];
	uint32_t n;

	if (threadIdx.x == 0)
		count = 0;
	n = (uint32_t) __popc(
		take_part<T, OPERATION, FEW>(load_part(a, na, b, nb, split, values), kept));
	n = __reduce_add_sync(0xFFFFFFFF, n);
	if (threadIdx.x % 32 == 0 && n > 0)
		atomicAdd(&count, n);
	__syncthreads();
	if (threadIdx.x == 0 && count > 0)
		atomicAdd((unsigned long long *) &results->total, (unsigned long long) count);
}

/* Writes the values of all ranges, in order. */
template <typename T, int OPERATION, bool FEW>
static __global__ void
__launch_bounds__(GJ_THREADS)
	merge_write(const T *a, uint64_t na, const T *b, uint64_t nb, const uint64_t *split,
				TileState tiles, GjResults *results, T *result)
{
	__shared__ T values[Range<T>::block + 2];
	__shared__ Place place;
	T kept[Range<T>::thread];
	const uint32_t found =
		take_part<T, OPERATION, FEW>(load_part(a, na, b, nb, split, values), kept);
	uint64_t to;
	uint32_t n;
	uint32_t at = place_values(place, tiles, (uint32_t) __popc(found), results, &n, &to);

	/* all threads have read their values: what is kept takes their place */
#pragma unroll
	for (uint32_t s = 0; s < Range<T>::thread; s++)
	{
		if (found & (1u << s))
			values[at++] = kept[s];
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < n; i += GJ_THREADS)
		result[to + i] = values[i];
}

template <typename T, int OPERATION, bool FEW>
static void
take_ranges(GjQueue *queue, const T *a, uint64_t na, const T *b, uint64_t nb, uint32_t nblocks,
			const uint64_t *split, TileState tiles, T *result)
{
	if (result)
		merge_write<T, OPERATION, FEW><<<nblocks, GJ_THREADS, 0, queue->stream>>>(
			a, na, b, nb, split, tiles, queue->results, result);
	else
		merge_count<T, OPERATION, FEW>
			<<<nblocks, GJ_THREADS, 0, queue->stream>>>(a, na, b, nb, split, queue->results);
}

template <typename T, int OPERATION>
static GjStatus
merge(GjQueue *queue, const T *a, uint64_t na, const T *b, uint64_t nb, T *result)
{
	const uint32_t nblocks = gj_blocks(na + nb, Range<T>::block);
	TileState tiles;
	void *memory;
	uint64_t *split;

	GJ_TRY(tile_memory(queue, nblocks, ((size_t) nblocks + 1) * sizeof(uint64_t), &tiles, &memory));
	split = (uint64_t *) memory;
	/* a thread more than blocks, and those that the states of the tiles need */
	merge_split<<<gj_blocks((uint64_t) nblocks + 64, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		a, na, b, nb, nblocks, split, tiles, queue->results);
	GJ_LAUNCHED(queue, "merge_split");
	if (OPERATION == GJ_SETS_INTERSECT && max(na, nb) / RANGE_SKEW >= min(na, nb))
		take_ranges<T, OPERATION, OPERATION == GJ_SETS_INTERSECT>(queue, a, na, b, nb, nblocks,
																  split, tiles, result);
	else
		take_ranges<T, OPERATION, false>(queue, a, na, b, nb, nblocks, split, tiles, result);
	GJ_LAUNCHED(queue, "merge");
	return GJ_OK;
}

/* ---- looking up */

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

/* ---- set_pair */

template <typename T>
static GjStatus
intersect(GjQueue *queue, const GjSetPair *pair, T *result)
{
	const bool swap = pair->na > pair->nb;
	const T *small = (const T *) (swap ? pair->b : pair->a);
	const T *large = (const T *) (swap ? pair->a : pair->b);
	const uint64_t nsmall = swap ? pair->nb : pair->na;
	const uint64_t nlarge = swap ? pair->na : pair->nb;
	bool done = false;

	switch (gj_set_pair_algorithm(pair))
	{
		case GJ_SETS_BINARY_SEARCH:
			return intersect_search(queue, small, nsmall, large, nlarge, result);
		case GJ_SETS_HASH:
			return intersect_hash(queue, small, nsmall, large, nlarge, result);
		case GJ_SETS_BITMAP:
			GJ_TRY(intersect_bitmap(queue, small, nsmall, large, nlarge, result, &done));
			break;
		default:
			break;
	}
	if (done)
		return GJ_OK;
	return merge<T, GJ_SETS_INTERSECT>(queue, small, nsmall, large, nlarge, result);
}

/* One set is empty: what is left is the other one, or nothing. */
static GjStatus
pair_with_nothing(GjQueue *queue, const GjSetPair *pair, void *result, uint64_t *n)
{
	const void *values = pair->na > 0 ? pair->a : pair->b;

	*n = pair->operation == GJ_SETS_UNION    ? pair->na + pair->nb
		 : pair->operation == GJ_SETS_EXCEPT ? pair->na
											 : 0;
	if (*n > 0 && result)
		GJ_CUDA(queue, cudaMemcpyAsync(result, values, *n * pair->width, cudaMemcpyDeviceToDevice,
									   queue->stream));
	return gj_wait(queue);
}

template <typename T>
static GjStatus
set_pair(GjQueue *queue, const GjSetPair *pair, T *result)
{
	const T *a = (const T *) pair->a;
	const T *b = (const T *) pair->b;

	if (pair->operation == GJ_SETS_INTERSECT)
		return intersect(queue, pair, result);
	if (pair->operation == GJ_SETS_UNION)
		return merge<T, GJ_SETS_UNION>(queue, a, pair->na, b, pair->nb, result);
	return merge<T, GJ_SETS_EXCEPT>(queue, a, pair->na, b, pair->nb, result);
}

GjStatus
gj_set_pair_start(GjQueue *queue, const GjSetPair *pair, void *result)
{
	if (pair->width == 2)
		return set_pair(queue, pair, (int16_t *) result);
	if (pair->width == 4)
		return set_pair(queue, pair, (int32_t *) result);
	return set_pair(queue, pair, (int64_t *) result);
}

GjStatus
gj_set_pair(GjQueue *queue, const GjSetPair *pair, bool (*stop)(void *), void *arg, void *result,
			uint64_t *n)
{
	*n = 0;
	GJ_TRY(gj_enter(queue));
	if (stop && stop(arg))
		return GJ_CANCELLED;
	if (pair->na == 0 || pair->nb == 0)
		return pair_with_nothing(queue, pair, result, n);
	GJ_TRY(gj_set_pair_start(queue, pair, result));
	GJ_TRY(gj_wait(queue));
	*n = queue->pinned->results.total;
	return GJ_OK;
}
