/*
 * intersections.cu
 *	  Distinct intersections of a family's pairs (GjIntersections): looked up, counted, written.
 *
 * A warp hashes the intersection of a pair: its lanes look elements of the smaller set up in
 * the larger one.  A thread a pair then searches the table.  Where it finds an equal hash, a
 * warp compares the two intersections, and the pairs for which that fails search on; so what
 * is in the table is exact, and rounds after the first are as rare as equal hashes.  Smaller
 * sets of more than SLICE elements are worked on by a warp a slice.
 */
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "device/intersections.h"
#include "internal.cuh"

#define WARPS (GJ_THREADS / 32)
#define SLICE 4096u                         /* elements of the smaller set of a pair */
#define LAUNCH_ELEMENTS (UINT64_C(1) << 26) /* that warps of one launch look up */
#define LAUNCH_ITEMS (UINT64_C(1) << 12)    /* but at least so many slices */
#define WRITE_ITEMS (UINT64_C(1) << 20)     /* slices whose places are kept at a time */

/* What becomes of a pair while it is looked up. */
enum PairState : uint8_t
{
	FOUND,
	TO_COMPARE, /* slot_of has its hash */
	DIFFERENT   /* but another intersection */
};

struct Sets
{
	const uint64_t *offset;
	const uint32_t *code;
	uint32_t first_right;
};

struct Codes
{
	const uint32_t *at;
	uint32_t n;
};

static Sets
sets_of(const GjSetFamily *family)
{
	const Sets sets = {family->offset, family->code, family->first_right};

	return sets;
}

static __device__ __forceinline__ Codes
get_codes(const Sets &sets, uint64_t set)
{
	const uint64_t first = sets.offset[set];
	const Codes codes = {sets.code + first, (uint32_t) (sets.offset[set + 1] - first)};

	return codes;
}

static __device__ __forceinline__ Codes
get_left(const Sets &sets, uint32_t left)
{
	return get_codes(sets, left);
}

static __device__ __forceinline__ Codes
get_right(const Sets &sets, uint32_t right)
{
	return get_codes(sets, (uint64_t) sets.first_right + right);
}

/* Is `value` among n ascending ones? */
template <typename T>
static __device__ __forceinline__ bool
contains(const T *at, uint32_t n, T value)
{
	const uint32_t i = gj_lower_bound(at, n, value);

	return i < n && at[i] == value;
}

static __device__ __forceinline__ uint64_t
warp_number(void)
{
	return ((uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x) / 32;
}

/* ---- slices */

/* slices[i] = slices of pair i, 0 for the one behind the last. */
static __global__ void
__launch_bounds__(GJ_THREADS) count_slices(Sets sets, const uint32_t *left, const uint32_t *right,
										   uint32_t n, uint64_t *slices)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
	{
		const uint32_t small = min(get_left(sets, left[i]).n, get_right(sets, right[i]).n);

		slices[i] = small / SLICE + (small % SLICE > 0);
	}
	else if (i == n)
		slices[i] = 0;
}

/* slices[i] = number of pair i's first slice, slices[n] = *nitems = all.  Waits. */
static GjStatus
number_slices(GjQueue *queue, const GjSetFamily *family, const uint32_t *left,
			  const uint32_t *right, uint32_t n, uint64_t *slices, uint64_t *nitems)
{
	count_slices<<<gj_blocks((uint64_t) n + 1, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		sets_of(family), left, right, n, slices);
	GJ_LAUNCHED(queue, "count_slices");
	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, slices, slices, (int64_t) n + 1);
	GJ_CUDA(queue, cudaMemcpyAsync(&queue->results->total, slices + n, sizeof(uint64_t),
								   cudaMemcpyDeviceToDevice, queue->stream));
	GJ_TRY(gj_wait(queue));
	*nitems = queue->pinned->results.total;
	return GJ_OK;
}

/* What a warp works on: elements from .. from+n-1 of the smaller set of pair i. */
struct Item
{
	uint32_t i;
	uint32_t from;
};

/* slices = NULL: an item is a pair. */
static __device__ __forceinline__ Item
get_item(const uint64_t *slices, uint32_t npairs, uint64_t number)
{
	Item item = {(uint32_t) number, 0};

	if (slices)
	{
		item.i = gj_last_at_most(slices, 0, npairs, number);
		item.from = (uint32_t) (number - slices[item.i]) * SLICE;
	}
	return item;
}

/*
 * Calls launch(first, n) for all items, some at a time; asks whether to stop before each but the
 * first.
 */
template <typename Launch>
static GjStatus
for_items(GjQueue *queue, const GjSetFamily *family, uint64_t nitems, bool (*stop)(void *),
		  void *arg, Launch launch)
{
	const uint64_t size = max(min(family->max_size, SLICE), 1u);
	const uint64_t most = max(LAUNCH_ELEMENTS / size, LAUNCH_ITEMS);

	for (uint64_t first = 0; first < nitems; first += most)
	{
		if (first > 0)
		{
			GJ_CUDA(queue, cudaStreamSynchronize(queue->stream));
			if (stop && stop(arg))
				return GJ_CANCELLED;
		}
		launch(first, min(nitems - first, most));
		GJ_LAUNCHED(queue, "intersections of pairs");
	}
	return GJ_OK;
}

/* ---- the table */

static __global__ void
__launch_bounds__(GJ_THREADS) enter_all(const __grid_constant__ GjIntersections found)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i >= found.n)
		return;
	gj_enter_slot(found.slots, found.nslots, gj_intersection_place(found.hash[i], found.nslots),
				  gj_intersection_slot(found.hash[i], i));
}

GjStatus
gj_intersections_rehash(GjQueue *queue, const GjIntersections *found)
{
	GJ_TRY(gj_enter(queue));
	GJ_CUDA(queue,
			cudaMemsetAsync(found->slots, 0xFF, found->nslots * sizeof(uint64_t), queue->stream));
	if (found->n == 0)
		return GJ_OK;
	enter_all<<<gj_blocks(found->n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(*found);
	GJ_LAUNCHED(queue, "enter_all");
	return GJ_OK;
}

/* A warp an item: hashes of pairs, or their parts, which are added up. */
static __global__ void
__launch_bounds__(GJ_THREADS) hash_pairs(Sets sets, const __grid_constant__ GjFoundPairs pairs,
										 const uint64_t *slices, uint64_t first, uint64_t nitems)
{
	const uint64_t number = warp_number();
	uint64_t hash = 0;
	Item item;

	if (number >= nitems)
		return;
	item = get_item(slices, pairs.n, first + number);
	if (pairs.common[item.i] > 0)
	{
		const Codes a = get_left(sets, pairs.left[item.i]);
		const Codes b = get_right(sets, pairs.right[item.i]);
		const Codes small = a.n <= b.n ? a : b;
		const Codes large = a.n <= b.n ? b : a;
		const uint32_t end = min(small.n - item.from, SLICE) + item.from;

		for (uint32_t k = item.from + threadIdx.x % 32; k < end; k += 32)
			if (contains(large.at, large.n, small.at[k]))
				hash += gj_intersection_hash(small.at[k]);
		__syncwarp();
		for (uint32_t distance = 16; distance > 0; distance /= 2)
			hash += __shfl_xor_sync(0xFFFFFFFF, hash, distance);
	}
	if (threadIdx.x % 32 > 0)
		return;
	if (!slices)
		pairs.hash[item.i] = hash;
	else if (hash != 0)
		atomicAdd((unsigned long long *) &pairs.hash[item.i], (unsigned long long) hash);
}

/*
 * Searches for the slots of pairs: of all of them the first time, then of those that have turned
 * out to be different from what they found.
 */
static __global__ void
__launch_bounds__(GJ_THREADS)
	find_slots(const __grid_constant__ GjIntersections found,
			   const __grid_constant__ GjFoundPairs pairs, bool again, uint8_t *state)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint64_t hash;
	uint64_t mine;
	uint64_t s;

	if (i >= pairs.n)
		return;
	if (again && state[i] != DIFFERENT)
	{
		state[i] = FOUND;
		return;
	}
	hash = pairs.hash[i];
	if (!again && !gj_intersection_wanted(&found, &pairs, i))
	{
		pairs.slot_of[i] = GJ_NOT_LOOKED_UP;
		state[i] = FOUND;
		return;
	}
	mine = gj_intersection_slot(hash, found.n + i);
	s = again ? (uint64_t) pairs.slot_of[i] + 1 : gj_intersection_place(hash, found.nslots);
	for (;; s++)
	{
		uint64_t slot;

		if (s >= found.nslots)
			s = 0;
		/* a slot is written once in this launch: what is not empty stays */
		slot = *(volatile unsigned long long *) gj_slot_address(found.slots, s);
		if (slot == GJ_NO_SLOT)
			slot = atomicCAS(gj_slot_address(found.slots, s), (unsigned long long) GJ_NO_SLOT,
							 (unsigned long long) mine);
		if (slot == GJ_NO_SLOT)
		{
			pairs.slot_of[i] = (uint32_t) s;
			state[i] = FOUND;
			return;
		}
		if (slot >> 32 == mine >> 32)
		{
			const GjKnownPair known = gj_intersection_pair(&found, &pairs, (uint32_t) slot);

			if (known.hash != hash || known.common != pairs.common[i])
				continue;
			pairs.slot_of[i] = (uint32_t) s;
			/* of one element: the hash tells which */
			state[i] = known.common == 1 ? FOUND : TO_COMPARE;
			return;
		}
	}
}

/*
 * A warp an item: are the common elements of its pair also in both sets of the pair that its slot
 * stands for?  Both intersections have as many elements.  Adds to *ndifferent.
 */
static __global__ void
__launch_bounds__(GJ_THREADS)
	compare_pairs(Sets sets, const __grid_constant__ GjIntersections found,
				  const __grid_constant__ GjFoundPairs pairs, const uint64_t *slices,
				  uint64_t first, uint64_t nitems, uint8_t *state, uint64_t *ndifferent)
{
	const uint64_t number = warp_number();
	bool different = false;
	Item item;

	if (number >= nitems)
		return;
	item = get_item(slices, pairs.n, first + number);
	/* another slice may just say that they differ: then this one need not look, and the lanes may
	 * not agree on that */
	if (__shfl_sync(0xFFFFFFFF, (uint32_t) ((volatile uint8_t *) state)[item.i], 0) != TO_COMPARE)
		return;
	{
		const GjKnownPair known =
			gj_intersection_pair(&found, &pairs, (uint32_t) found.slots[pairs.slot_of[item.i]]);
		const Codes known_left = get_left(sets, known.left);
		const Codes known_right = get_right(sets, known.right);
		const Codes a = get_left(sets, pairs.left[item.i]);
		const Codes b = get_right(sets, pairs.right[item.i]);
		const Codes small = a.n <= b.n ? a : b;
		const Codes large = a.n <= b.n ? b : a;
		const uint32_t end = min(small.n - item.from, SLICE) + item.from;

		for (uint32_t k = item.from + threadIdx.x % 32; k < end && !different; k += 32)
			different = contains(large.at, large.n, small.at[k]) &&
						!(contains(known_left.at, known_left.n, small.at[k]) &&
						  contains(known_right.at, known_right.n, small.at[k]));
	}
	__syncwarp();
	if (__any_sync(0xFFFFFFFF, different) && threadIdx.x % 32 == 0)
	{
		((volatile uint8_t *) state)[item.i] = DIFFERENT;
		atomicAdd((unsigned long long *) ndifferent, 1ull);
	}
}

/* True for a pair whose intersection is new. */
struct OwnsSlot
{
	const uint64_t *slots;
	const uint32_t *slot_of;
	uint32_t nfound;

	__host__ __device__ bool
	operator()(uint32_t i) const
	{
		return slot_of[i] != GJ_NOT_LOOKED_UP && (uint32_t) slots[slot_of[i]] == nfound + i;
	}
};

/* Finds all slots; the number of new intersections is in queue->pinned. */
static GjStatus
find_all_slots(GjQueue *queue, const GjSetFamily *family, const GjIntersections *found,
			   const GjFoundPairs *pairs, const uint64_t *slices, uint64_t nitems, uint8_t *state,
			   bool (*stop)(void *), void *arg)
{
	const OwnsSlot owns = {found->slots, pairs->slot_of, found->n};

	for (bool again = false;; again = true)
	{
		find_slots<<<gj_blocks(pairs->n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
			*found, *pairs, again, state);
		GJ_LAUNCHED(queue, "find_slots");
		GJ_CUDA(queue, cudaMemsetAsync(&queue->results->total, 0, sizeof(uint64_t), queue->stream));
		GJ_TRY(for_items(queue, family, nitems, stop, arg,
						 [&](uint64_t first, uint64_t n)
						 {
							 compare_pairs<<<gj_blocks(n, WARPS), GJ_THREADS, 0, queue->stream>>>(
								 sets_of(family), *found, *pairs, slices, first, n, state,
								 &queue->results->total);
						 }));
		GJ_CUB(queue, cub::DeviceSelect::If, thrust::counting_iterator<uint32_t>(0),
			   pairs->positions, &queue->results->n, (int64_t) pairs->n, owns);
		GJ_TRY(gj_wait(queue));
		if (queue->pinned->results.total == 0)
			return GJ_OK;
	}
}

GjStatus
gj_intersections_find(GjQueue *queue, const GjSetFamily *family, const GjIntersections *found,
					  const GjFoundPairs *pairs, bool (*stop)(void *), void *arg, uint32_t *n)
{
	uint64_t *slices = NULL;
	uint64_t nitems = pairs->n;
	void *state;

	*n = 0;
	GJ_TRY(gj_enter(queue));
	if (pairs->n == 0)
		return gj_wait(queue);
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_B, pairs->n, &state));
	if (family->max_size > SLICE)
	{
		void *memory;

		GJ_TRY(
			gj_scratch(queue, GJ_SCRATCH_A, ((size_t) pairs->n + 1) * sizeof(uint64_t), &memory));
		slices = (uint64_t *) memory;
		GJ_TRY(number_slices(queue, family, pairs->left, pairs->right, pairs->n, slices, &nitems));
		GJ_CUDA(queue, cudaMemsetAsync(pairs->hash, 0, pairs->n * sizeof(uint64_t), queue->stream));
	}
	GJ_TRY(for_items(queue, family, nitems, stop, arg,
					 [&](uint64_t first, uint64_t count)
					 {
						 hash_pairs<<<gj_blocks(count, WARPS), GJ_THREADS, 0, queue->stream>>>(
							 sets_of(family), *pairs, slices, first, count);
					 }));
	GJ_TRY(
		find_all_slots(queue, family, found, pairs, slices, nitems, (uint8_t *) state, stop, arg));
	*n = queue->pinned->results.n;
	return GJ_OK;
}

/* ---- counting */

/* Pair positions[r] becomes intersection nfound + r. */
static __global__ void
__launch_bounds__(GJ_THREADS) store_new(const __grid_constant__ GjIntersections found,
										const __grid_constant__ GjFoundPairs pairs, uint32_t n)
{
	const uint32_t r = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (r < n)
		gj_intersection_store(&found, found.n + r, &pairs, pairs.positions[r]);
}

static __global__ void
__launch_bounds__(GJ_THREADS) count_found(const __grid_constant__ GjIntersections found,
										  const __grid_constant__ GjFoundPairs pairs)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	const uint32_t slot = i < pairs.n ? pairs.slot_of[i] : GJ_NOT_LOOKED_UP;
	const uint32_t number =
		slot != GJ_NOT_LOOKED_UP ? (uint32_t) found.slots[slot] : GJ_NOT_LOOKED_UP;
	/* neighbours often have one intersection: one lane adds for all of them */
	const uint32_t same = __match_any_sync(0xFFFFFFFF, number);

	if (number != GJ_NOT_LOOKED_UP && threadIdx.x % 32 == __ffs(same) - 1)
		atomicAdd((unsigned long long *) &found.frequency[number],
				  (unsigned long long) __popc(same));
}

GjStatus
gj_intersections_add(GjQueue *queue, const GjIntersections *found, const GjFoundPairs *pairs,
					 uint32_t n)
{
	GJ_TRY(gj_enter(queue));
	if (pairs->n == 0)
		return GJ_OK;
	if (n > 0)
	{
		store_new<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(*found, *pairs, n);
		GJ_LAUNCHED(queue, "store_new");
	}
	count_found<<<gj_blocks(pairs->n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(*found, *pairs);
	GJ_LAUNCHED(queue, "count_found");
	return GJ_OK;
}

/* ---- writing */

static __global__ void
__launch_bounds__(GJ_THREADS) copy_sizes(const uint32_t *common, uint32_t n, uint64_t *at)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i <= n)
		at[i] = i < n ? common[i] : 0;
}

/* The last of at[1] .. at[n] that is at most `room`, or the first of them. */
static __global__ void
find_last(const uint64_t *at, uint32_t n, uint64_t room, GjResults *results)
{
	const uint32_t last = max(gj_last_at_most(at, 0, n + 1, room), 1u);

	results->n = last;
	results->total = at[last];
}

GjStatus
gj_intersections_place(GjQueue *queue, const GjIntersections *found, uint32_t first, uint32_t max,
					   uint64_t room, uint64_t *at, uint32_t *n, uint64_t *total)
{
	const uint32_t most = min(max, found->n - first);

	*n = 0;
	*total = 0;
	GJ_TRY(gj_enter(queue));
	if (most == 0)
		return gj_wait(queue);
	copy_sizes<<<gj_blocks((uint64_t) most + 1, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		found->common + first, most, at);
	GJ_LAUNCHED(queue, "copy_sizes");
	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, at, at, (int64_t) most + 1);
	find_last<<<1, 1, 0, queue->stream>>>(at, most, room, queue->results);
	GJ_LAUNCHED(queue, "find_last");
	GJ_TRY(gj_wait(queue));
	*n = queue->pinned->results.n;
	*total = queue->pinned->results.total;
	return GJ_OK;
}

/* What the kernels that write know. */
struct Writing
{
	Sets sets;
	const void *elements;  /* in the places of sets.code */
	const uint32_t *left;  /* of the pairs that stand for the intersections, */
	const uint32_t *right; /* as the next two */
	const uint64_t *frequency;
	const uint64_t *at;
	uint32_t n;
	const uint64_t *slices;
	uint64_t *item_at; /* elements that an item has, or those of all items before it */
	void *values;
	int64_t *frequencies;
};

/* A warp an item: counts its elements (COUNT), or writes them. */
template <typename T, bool COUNT>
static __global__ void
__launch_bounds__(GJ_THREADS)
	write_items(const __grid_constant__ Writing w, uint64_t first, uint64_t nitems)
{
	const uint64_t number = warp_number();
	const uint32_t lane = threadIdx.x % 32;
	uint64_t to = 0;
	Item item;

	if (number >= nitems)
		return;
	item = get_item(w.slices, w.n, first + number);
	if (!COUNT)
		to = w.at[item.i];
	if (!COUNT && w.slices)
		to += w.item_at[first + number] - w.item_at[w.slices[item.i]];
	{
		const uint64_t last = w.at[item.i + 1] - 1;
		const Codes a = get_left(w.sets, w.left[item.i]);
		const Codes b = get_right(w.sets, w.right[item.i]);
		const Codes small = a.n <= b.n ? a : b;
		const Codes large = a.n <= b.n ? b : a;
		const T *from = (const T *) w.elements + (small.at - w.sets.code);
		const T *other = (const T *) w.elements + (large.at - w.sets.code);
		const uint32_t end = min(small.n - item.from, SLICE) + item.from;

		/* all lanes take the same number of turns */
		for (uint32_t k = item.from; k < end; k += 32)
		{
			const bool has = k + lane < end;
			const T value = has ? from[k + lane] : T(0);
			const bool common = has && contains(other, large.n, value);
			const uint32_t which = __ballot_sync(0xFFFFFFFF, common);

			if (!COUNT && common)
			{
				const uint64_t place = to + __popc(which & ((1u << lane) - 1));

				((T *) w.values)[place] = value;
				w.frequencies[place] = place == last ? (int64_t) w.frequency[item.i] : 0;
			}
			to += __popc(which);
		}
	}
	if (COUNT && lane == 0)
		w.item_at[first + number] = to;
}

/* Intersections first .. first+n-1, of few enough slices that their places are kept. */
template <typename T>
static GjStatus
write_some(GjQueue *queue, const GjSetFamily *family, Writing w, bool (*stop)(void *), void *arg)
{
	uint64_t nitems = w.n;

	if (family->max_size > SLICE)
	{
		void *slices;
		void *item_at;

		GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, ((size_t) w.n + 1) * sizeof(uint64_t), &slices));
		GJ_TRY(number_slices(queue, family, w.left, w.right, w.n, (uint64_t *) slices, &nitems));
		GJ_TRY(gj_scratch(queue, GJ_SCRATCH_B, nitems * sizeof(uint64_t), &item_at));
		w.slices = (const uint64_t *) slices;
		w.item_at = (uint64_t *) item_at;
		GJ_TRY(for_items(queue, family, nitems, stop, arg,
						 [&](uint64_t first, uint64_t n) {
							 write_items<T, true>
								 <<<gj_blocks(n, WARPS), GJ_THREADS, 0, queue->stream>>>(w, first,
																						 n);
						 }));
		GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, w.item_at, w.item_at, (int64_t) nitems);
	}
	return for_items(queue, family, nitems, stop, arg,
					 [&](uint64_t first, uint64_t n) {
						 write_items<T, false>
							 <<<gj_blocks(n, WARPS), GJ_THREADS, 0, queue->stream>>>(w, first, n);
					 });
}

template <typename T>
static GjStatus
write_all(GjQueue *queue, const GjSetFamily *family, const Writing &all, bool (*stop)(void *),
		  void *arg)
{
	const uint64_t slices = family->max_size / SLICE + 1;
	const uint32_t most = slices == 1 ? all.n : (uint32_t) max(WRITE_ITEMS / slices, (uint64_t) 1);

	for (uint32_t first = 0; first < all.n; first += most)
	{
		Writing some = all;

		some.left += first;
		some.right += first;
		some.frequency += first;
		some.at += first;
		some.n = min(all.n - first, most);
		GJ_TRY(write_some<T>(queue, family, some, stop, arg));
		if (all.n - first <= most)
			break;
	}
	return GJ_OK;
}

GjStatus
gj_intersections_write(GjQueue *queue, const GjSetFamily *family, const GjIntersections *found,
					   const void *elements, uint32_t width, uint32_t first, uint32_t n,
					   const uint64_t *at, bool (*stop)(void *), void *arg, void *values,
					   int64_t *frequency)
{
	Writing all = {};

	GJ_TRY(gj_enter(queue));
	all.sets = sets_of(family);
	all.elements = elements;
	all.left = found->left + first;
	all.right = found->right + first;
	all.frequency = found->frequency + first;
	all.at = at;
	all.n = n;
	all.values = values;
	all.frequencies = frequency;
	if (width == 2)
		return write_all<int16_t>(queue, family, all, stop, arg);
	if (width == 4)
		return write_all<int32_t>(queue, family, all, stop, arg);
	return write_all<int64_t>(queue, family, all, stop, arg);
}
