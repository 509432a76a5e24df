/*
 * set_family.cu
 *	  Families of sets: from elements to codes, the code that is most frequent first, and
 *	  the inverted index of the right family.
 *
 * Elements of all sets are sorted together with their places (CUB radix sort); equal ones
 * get one rank, ranks are sorted by how often they occur, and their places are filled with
 * the new codes; then each set is put in order (CUB segmented sort).  The index is the right
 * family's codes and set numbers sorted by code.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include "device/set_plan.h"
#include "internal.cuh"

#define MAX_DENSE 32768u

/* Memory that building needs and that is given back at its end. */
struct Work
{
	GjQueue *queue;
	void *memory[16];
	size_t nbytes[16];
	uint32_t n;

	explicit Work(GjQueue *q) : queue(q), n(0)
	{
	}
	~Work()
	{
		for (uint32_t i = 0; i < n; i++)
			gj_free(queue, memory[i], nbytes[i]);
	}
	/* NULL: see gj_no_memory. */
	template <typename T>
	T *
	get(uint64_t count)
	{
		void *p = n < 16 ? gj_alloc(queue, count * sizeof(T) + 16) : NULL;

		if (p)
		{
			memory[n] = p;
			nbytes[n++] = count * sizeof(T) + 16;
		}
		return (T *) p;
	}
};

#define GET(pointer, work, type, count)                                                            \
	do                                                                                             \
	{                                                                                              \
		(pointer) = (work).get<type>(count);                                                       \
		if ((pointer) == NULL)                                                                     \
			return gj_no_memory((work).queue);                                                     \
	} while (0)

/* The same for memory that the family keeps. */
#define KEEP(pointer, queue, type, count)                                                          \
	do                                                                                             \
	{                                                                                              \
		(pointer) = (type *) gj_alloc(queue, (count) * sizeof(type) + 16);                         \
		if ((pointer) == NULL)                                                                     \
			return gj_no_memory(queue);                                                            \
	} while (0)

#define THREADS_FOR(n) gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream

static __device__ __forceinline__ uint64_t
thread_number(void)
{
	return (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x;
}

/* ---- offsets */

static __global__ void
__launch_bounds__(GJ_THREADS)
	widen_sizes(const int32_t *size, uint32_t nsets, uint64_t *offset, GjResults *results)
{
	const uint64_t i = thread_number();

	if (i < nsets)
	{
		if (size[i] < 0)
			gj_note_error(results, GJ_BAD_PROGRAM);
		offset[i] = size[i] < 0 ? 0 : (uint64_t) size[i];
	}
	else if (i == nsets)
		offset[i] = 0;
}

static GjStatus
make_offsets(GjQueue *queue, const GjSetInput *sets, GjSetFamily *family)
{
	const uint64_t n = (uint64_t) sets->nsets + 1;

	KEEP(family->offset, queue, uint64_t, n);
	widen_sizes<<<THREADS_FOR(n)>>>(sets->size, sets->nsets, family->offset, queue->results);
	GJ_LAUNCHED(queue, "widen_sizes");
	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, family->offset, family->offset, n);
	GJ_CUDA(queue, cudaMemcpyAsync(&queue->results->total, family->offset + sets->nsets,
								   sizeof(uint64_t), cudaMemcpyDeviceToDevice, queue->stream));
	if (sets->nsets > 0)
		GJ_CUB(queue, cub::DeviceReduce::Max, (const uint32_t *) sets->size, &queue->results->n,
			   (int64_t) sets->nsets);
	GJ_TRY(gj_wait(queue));
	if (queue->pinned->results.total != sets->nvalues)
		return GJ_BAD_PROGRAM;
	family->max_size = sets->nsets > 0 ? queue->pinned->results.n : 0;
	return GJ_OK;
}

/* ---- codes */

/* head[i] = 1: element i is the first of its set. */
static __global__ void
__launch_bounds__(GJ_THREADS) mark_heads(const uint64_t *offset, uint32_t nsets, uint8_t *head)
{
	const uint64_t i = thread_number();

	if (i < nsets && offset[i] < offset[i + 1])
		head[offset[i]] = 1;
}

/* Notes an error if a set is not ascending, or without `multiple` has equal elements; numbers
 * all elements. */
template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS) check_order(const T *values, uint64_t n, const uint8_t *head,
										  bool multiple, uint32_t *place, GjResults *results)
{
	const uint64_t i = thread_number();

	if (i >= n)
		return;
	place[i] = (uint32_t) i;
	if (!head[i] && (values[i] < values[i - 1] || (!multiple && values[i] == values[i - 1])))
		gj_note_error(results, GJ_BAD_PROGRAM);
}

/* rank[i] = 1 where a new value begins; summed up, these are ranks counted from 1. */
template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS) mark_values(const T *values, uint64_t n, uint32_t *rank)
{
	const uint64_t i = thread_number();

	if (i < n)
		rank[i] = i == 0 || values[i] != values[i - 1];
}

/* start[r] = where the value of rank r begins; start[universe] = n. */
static __global__ void
__launch_bounds__(GJ_THREADS) note_starts(const uint32_t *rank, uint64_t n, uint32_t *start)
{
	const uint64_t i = thread_number();

	if (i >= n)
		return;
	if (i == 0 || rank[i] != rank[i - 1])
		start[rank[i] - 1] = (uint32_t) i;
	if (i == n - 1)
		start[rank[i]] = (uint32_t) n;
}

/* Frequencies, to be sorted with their ranks; counts those that are frequent enough, and adds
 * their squares up. */
static __global__ void
__launch_bounds__(GJ_THREADS) count_values(const uint32_t *start, uint32_t universe, uint32_t nsets,
										   uint32_t *frequency, uint32_t *rank, GjResults *results)
{
	const uint64_t i = thread_number();
	bool dense = false;

	if (i < universe)
	{
		frequency[i] = start[i + 1] - start[i];
		rank[i] = (uint32_t) i;
		dense = (uint64_t) frequency[i] * GJ_SET_GPU_DENSE >= nsets;
	}
	if (dense)
	{
		atomicAdd(&results->n, 1u);
		/* at most the greatest frequency times the sum of all: both have 32 bits */
		atomicAdd((unsigned long long *) &results->total,
				  (unsigned long long) frequency[i] * frequency[i]);
	}
}

static __global__ void
__launch_bounds__(GJ_THREADS) invert_order(const uint32_t *rank, uint32_t universe, uint32_t *code)
{
	const uint64_t i = thread_number();

	if (i < universe)
		code[rank[i]] = (uint32_t) i;
}

static __global__ void
__launch_bounds__(GJ_THREADS) place_codes(const uint32_t *rank, const uint32_t *place, uint64_t n,
										  const uint32_t *code_of_rank, uint32_t *code)
{
	const uint64_t i = thread_number();

	if (i < n)
		code[place[i]] = code_of_rank[rank[i] - 1];
}

/* Sorts the elements with their places; returns ranks and places by value, and the universe. */
template <typename T>
static GjStatus
rank_values(Work &work, const GjSetInput *sets, GjSetFamily *family, uint32_t **ranks,
			uint32_t **places)
{
	GjQueue *queue = work.queue;
	const uint64_t n = sets->nvalues;
	T *other;
	uint32_t *place[2];
	uint32_t *rank;
	uint8_t *head;

	GET(head, work, uint8_t, n);
	GET(place[0], work, uint32_t, n);
	GET(place[1], work, uint32_t, n);
	GET(other, work, T, n);
	GET(rank, work, uint32_t, n);
	GJ_CUDA(queue, cudaMemsetAsync(head, 0, n, queue->stream));
	mark_heads<<<THREADS_FOR(sets->nsets)>>>(family->offset, sets->nsets, head);
	GJ_LAUNCHED(queue, "mark_heads");
	check_order<<<THREADS_FOR(n)>>>((const T *) sets->values, n, head, sets->multiple, place[0],
									queue->results);
	GJ_LAUNCHED(queue, "check_order");

	cub::DoubleBuffer<T> keys((T *) sets->values, other);
	cub::DoubleBuffer<uint32_t> numbers(place[0], place[1]);

	GJ_CUB(queue, cub::DeviceRadixSort::SortPairs, keys, numbers, n, 0, (int) sizeof(T) * 8);
	mark_values<<<THREADS_FOR(n)>>>((const T *) keys.Current(), n, rank);
	GJ_LAUNCHED(queue, "mark_values");
	GJ_CUB(queue, cub::DeviceScan::InclusiveSum, rank, rank, n);
	GJ_CUDA(queue, cudaMemcpyAsync(&queue->results->n, rank + n - 1, sizeof(uint32_t),
								   cudaMemcpyDeviceToDevice, queue->stream));
	GJ_TRY(gj_wait(queue));
	family->universe = queue->pinned->results.n;
	*ranks = rank;
	*places = numbers.Current();
	return GJ_OK;
}

/*
 * code_of_rank[r]: the codes by frequency; notes how many columns a matrix should have, and in
 * *squares the sum of the squared frequencies of their elements.
 */
static GjStatus
order_ranks(Work &work, const GjSetInput *sets, const uint32_t *rank, GjSetFamily *family,
			uint32_t **code_of_rank, uint64_t *squares)
{
	GjQueue *queue = work.queue;
	const uint32_t universe = family->universe;
	uint32_t *start;
	uint32_t *frequency[2];
	uint32_t *order[2];

	GET(start, work, uint32_t, (uint64_t) universe + 1);
	for (int i = 0; i < 2; i++)
	{
		GET(frequency[i], work, uint32_t, universe);
		GET(order[i], work, uint32_t, universe);
	}
	note_starts<<<THREADS_FOR(sets->nvalues)>>>(rank, sets->nvalues, start);
	GJ_LAUNCHED(queue, "note_starts");
	GJ_CUDA(queue, cudaMemsetAsync(&queue->results->n, 0, sizeof(uint32_t), queue->stream));
	GJ_CUDA(queue, cudaMemsetAsync(&queue->results->total, 0, sizeof(uint64_t), queue->stream));
	count_values<<<THREADS_FOR(universe)>>>(start, universe, sets->nsets, frequency[0], order[0],
											queue->results);
	GJ_LAUNCHED(queue, "count_values");

	cub::DoubleBuffer<uint32_t> keys(frequency[0], frequency[1]);
	cub::DoubleBuffer<uint32_t> ranks(order[0], order[1]);

	GJ_CUB(queue, cub::DeviceRadixSort::SortPairsDescending, keys, ranks, universe, 0, 32);
	*code_of_rank = start;
	invert_order<<<THREADS_FOR(universe)>>>(ranks.Current(), universe, start);
	GJ_LAUNCHED(queue, "invert_order");
	GJ_TRY(gj_wait(queue));
	family->ndense = min(queue->pinned->results.n, MAX_DENSE);
	*squares = queue->pinned->results.total;
	return GJ_OK;
}

/* family->code, ascending within each set; *squares as of order_ranks. */
static GjStatus
make_codes(GjQueue *queue, const GjSetInput *sets, GjSetFamily *family, uint64_t *squares)
{
	Work work(queue);
	const uint64_t n = sets->nvalues;
	uint32_t *rank = NULL;
	uint32_t *place = NULL;
	uint32_t *code_of_rank = NULL;
	uint32_t *code;

	if (sets->width == 2)
		GJ_TRY(rank_values<int16_t>(work, sets, family, &rank, &place));
	else if (sets->width == 4)
		GJ_TRY(rank_values<int32_t>(work, sets, family, &rank, &place));
	else
		GJ_TRY(rank_values<int64_t>(work, sets, family, &rank, &place));
	GJ_TRY(order_ranks(work, sets, rank, family, &code_of_rank, squares));
	GET(code, work, uint32_t, n);
	place_codes<<<THREADS_FOR(n)>>>(rank, place, n, code_of_rank, code);
	GJ_LAUNCHED(queue, "place_codes");
	GJ_CUB(queue, cub::DeviceSegmentedSort::SortKeys, (const uint32_t *) code, family->code,
		   (int64_t) n, (int64_t) sets->nsets, family->offset, family->offset + 1);
	return gj_wait(queue);
}

/* ---- the inverted index */

/* set[i] = number of the right set that the right family's element i belongs to. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	number_sets(const uint64_t *offset, uint32_t nright, uint64_t first, uint64_t n, uint32_t *set)
{
	const uint64_t i = thread_number();

	/* a thread an element, not a set: one set may have nearly all of them */
	if (i < n)
		set[i] = gj_last_at_most(offset, 0, nright, first + i);
}

/*
 * posting_offset[c] = the first posting whose code is at least c, for c <= universe.  A search
 * a code: the right family may have few of many codes, so that filling the gaps between its
 * codes would be left to few threads.
 */
static __global__ void
__launch_bounds__(GJ_THREADS)
	find_postings(const uint32_t *code, uint64_t n, uint32_t universe, uint64_t *posting_offset)
{
	const uint64_t c = thread_number();

	if (c <= universe)
		posting_offset[c] = gj_lower_bound(code, n, (uint32_t) c);
}

static GjStatus
make_index(GjQueue *queue, GjSetFamily *family)
{
	Work work(queue);
	uint64_t first = 0;
	uint64_t n;
	uint32_t *code[2];
	uint32_t *set[2];
	int bits = 1;

	GJ_CUDA(queue, cudaMemcpyAsync(&queue->results->total, family->offset + family->first_right,
								   sizeof(uint64_t), cudaMemcpyDeviceToDevice, queue->stream));
	GJ_TRY(gj_wait(queue));
	first = queue->pinned->results.total;
	n = family->nelements - first;
	family->nposting = n;
	KEEP(family->posting_offset, queue, uint64_t, (uint64_t) family->universe + 1);
	KEEP(family->posting, queue, uint32_t, n);
	if (n == 0)
	{
		GJ_CUDA(queue, cudaMemsetAsync(family->posting_offset, 0,
									   ((uint64_t) family->universe + 1) * sizeof(uint64_t),
									   queue->stream));
		return gj_wait(queue);
	}
	for (int i = 0; i < 2; i++)
	{
		GET(code[i], work, uint32_t, n);
		GET(set[i], work, uint32_t, n);
	}
	GJ_CUDA(queue, cudaMemcpyAsync(code[0], family->code + first, n * sizeof(uint32_t),
								   cudaMemcpyDeviceToDevice, queue->stream));
	number_sets<<<THREADS_FOR(n)>>>(family->offset + family->first_right, family->nright, first, n,
									set[0]);
	GJ_LAUNCHED(queue, "number_sets");
	while (bits < 32 && family->universe >> bits != 0)
		bits++;

	cub::DoubleBuffer<uint32_t> codes(code[0], code[1]);
	cub::DoubleBuffer<uint32_t> sets(set[0], set[1]);

	GJ_CUB(queue, cub::DeviceRadixSort::SortPairs, codes, sets, n, 0, bits);
	find_postings<<<THREADS_FOR((uint64_t) family->universe + 1)>>>(
		codes.Current(), n, family->universe, family->posting_offset);
	GJ_LAUNCHED(queue, "find_postings");
	GJ_CUDA(queue, cudaMemcpyAsync(family->posting, sets.Current(), n * sizeof(uint32_t),
								   cudaMemcpyDeviceToDevice, queue->stream));
	return gj_wait(queue);
}

/* ---- operators */

static GjStatus
gj_set_build(GjQueue *queue, const GjSetInput *sets, const GjSetSpec *spec, bool (*stop)(void *),
			 void *arg, GjSetFamily *family)
{
	uint64_t squares = 0;

	GJ_TRY(gj_enter(queue));
	if (!gj_set_family_start(family, sets, spec))
		return GJ_BAD_PROGRAM;
	GJ_TRY(make_offsets(queue, sets, family));
	KEEP(family->code, queue, uint32_t, sets->nvalues);
	if (stop && stop(arg))
		return GJ_CANCELLED;
	if (sets->nvalues > 0)
		GJ_TRY(make_codes(queue, sets, family, &squares));
	gj_set_family_choose(family, spec, gj_set_gpu_matrix(family, spec, squares));
	/* half of the time of a small tile is launches; the counts should stay in L2 */
	if (queue->device->l2_bytes / 2 >= GJ_SET_MOST_PAIRS * sizeof(uint32_t))
		family->tile_pairs = GJ_SET_MOST_PAIRS;
	if (stop && stop(arg))
		return GJ_CANCELLED;
	if (family->algorithm < GJ_SETS_INVERTED_INDEX)
		return GJ_OK;
	return make_index(queue, family);
}

static void
gj_set_free(GjQueue *queue, GjSetFamily *family)
{
	gj_free(queue, family->offset, 0);
	gj_free(queue, family->code, 0);
	gj_free(queue, family->posting_offset, 0);
	gj_free(queue, family->posting, 0);
	memset(family, 0, sizeof(*family));
}

const GjSetOps gj_cuda_sets = {
	.sort_unique = gj_sort_unique,
	.set_pair = gj_set_pair,
	.array_sizes = gj_array_sizes,
	.array_sets = gj_array_sets,
	.flag_changes = gj_flag_changes,
	.run_sizes = gj_run_sizes,
	.set_build = gj_set_build,
	.set_free = gj_set_free,
	.set_tile = gj_set_tile,
	.intersections_rehash = gj_intersections_rehash,
	.intersections_find = gj_intersections_find,
	.intersections_add = gj_intersections_add,
	.intersections_place = gj_intersections_place,
	.intersections_write = gj_intersections_write,
};
