/*
 * join_sort.cu
 *	  Sort-merge: an inner side sorted by its keys, and tuples that look for their matches.
 *
 * Build.  CUB's radix sort of (value, row), from the last value to the first, for it is
 * stable, and only of the bits that differ.  The keys are then moved into the order.
 *
 * Probe.  Of a large side a sample is searched first, which stays in cache, and tuples are sorted
 * by the part of the side, its bucket, that this leaves: neighbours then search the same one.  What
 * they find is written where the tuple was.
 */
#include <cub/device/device_select.cuh>

#include "sort.cuh"

/* Rows of a side that is searched by tuples as they come: its keys stay in L2. */
#define SMALL_SIDE (1u << 16)

/* Rows that take part: those without a NULL. */
struct NotNull
{
	const uint8_t *null;

	__host__ __device__ bool
	operator()(uint32_t i) const
	{
		return !null[i];
	}
};

/* to[i] = from[rows[i]] */
template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS) move_values(T *to, const T *from, const uint32_t *rows, uint32_t n)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		to[i] = from[rows[i]];
}

template <typename T>
static GjStatus
move(GjQueue *queue, T *to, const T *from, const uint32_t *rows, uint32_t n)
{
	move_values<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(to, from, rows, n);
	GJ_LAUNCHED(queue, "move_values");
	return GJ_OK;
}

/* ---- build */

/* What a build allocates besides the table: all of n elements. */
typedef struct Sort
{
	int64_t *value;
	int64_t *sorted;
	uint32_t *row;
	uint32_t *next;
} Sort;

/* The input rows that take part in the order of all values: in sort->row. */
static GjStatus
sort_rows(GjQueue *queue, const GjKeys *keys, Sort *sort, bool (*stop)(void *), void *arg,
		  uint32_t *n)
{
	GJ_CUB(queue, cub::DeviceSelect::If, thrust::counting_iterator<uint32_t>(0), sort->row,
		   &queue->results->n, (int64_t) keys->nrows, NotNull{keys->null});
	GJ_TRY(gj_wait(queue));
	*n = queue->pinned->results.n;
	for (uint32_t k = keys->nkeys; k-- > 0 && *n > 0;)
	{
		uint32_t *row = sort->row;

		if (stop && stop(arg))
			return GJ_CANCELLED;
		GJ_TRY(move(queue, sort->value, (const int64_t *) keys->value[k], row, *n));
		GJ_TRY(gj_sort_pairs(queue, sort->value, sort->sorted, row, sort->next, *n));
		sort->row = sort->next;
		sort->next = row;
	}
	return GJ_OK;
}

/* Moves the keys into the order and names the rows; the key arrays are the table's then. */
static GjStatus
take_order(GjQueue *queue, const GjKeys *keys, const uint32_t *rowid, const Sort *sort, uint32_t n,
		   GjHashTable *table)
{
	for (uint32_t k = 0; k < keys->nkeys && n > 0; k++)
	{
		GJ_TRY(move(queue, sort->value, (const int64_t *) keys->value[k], sort->row, n));
		GJ_CUDA(queue, cudaMemcpyAsync(keys->value[k], sort->value, (size_t) n * sizeof(int64_t),
									   cudaMemcpyDeviceToDevice, queue->stream));
	}
	if (n > 0 && rowid)
		GJ_TRY(move(queue, table->rows, rowid, sort->row, n));
	else if (n > 0)
		GJ_CUDA(queue, cudaMemcpyAsync(table->rows, sort->row, (size_t) n * sizeof(uint32_t),
									   cudaMemcpyDeviceToDevice, queue->stream));
	return GJ_OK;
}

GjStatus
gj_sort_build(GjQueue *queue, const GjKeys *keys, const uint32_t *rowid, bool (*stop)(void *),
			  void *arg, GjHashTable *table)
{
	const size_t row_bytes = (size_t) keys->nrows * sizeof(uint32_t);
	const size_t value_bytes = (size_t) keys->nrows * sizeof(int64_t);
	uint32_t *rows;
	uint32_t n = 0;
	Sort sort = {};
	GjStatus status;

	memset(table, 0, sizeof(*table));
	GJ_TRY(gj_enter(queue));
	rows = (uint32_t *) gj_alloc(queue, row_bytes);
	sort.value = (int64_t *) gj_alloc(queue, value_bytes);
	sort.sorted = (int64_t *) gj_alloc(queue, value_bytes);
	sort.row = (uint32_t *) gj_alloc(queue, row_bytes);
	sort.next = (uint32_t *) gj_alloc(queue, row_bytes);
	if (rows && sort.value && sort.sorted && sort.row && sort.next)
	{
		table->rows = rows;
		status = sort_rows(queue, keys, &sort, stop, arg, &n);
		if (status == GJ_OK)
			status = take_order(queue, keys, rowid, &sort, n, table);
	}
	else
		status = gj_no_memory(queue);
	gj_free(queue, sort.value, value_bytes);
	gj_free(queue, sort.sorted, value_bytes);
	gj_free(queue, sort.row, row_bytes);
	gj_free(queue, sort.next, row_bytes);
	if (status != GJ_OK)
	{
		gj_free(queue, rows, row_bytes);
		memset(table, 0, sizeof(*table));
		return status;
	}
	table->nrows = n;
	table->keys = *keys;
	gj_free(queue, keys->null, keys->nrows);
	table->keys.null = NULL;
	return GJ_OK;
}

/* ---- probe */

/* Where rows lie to the matches of a tuple: by all columns, as src/rows/sorted.h has it. */
struct Columns
{
	const GjSortedMatch &match;
	const GjKeys &side;
	const GjKeys &tuples;
	uint32_t tuple;

	__device__ __forceinline__
	Columns(const GjSortedMatch &match, const GjKeys &side, const GjKeys &tuples, uint32_t tuple)
		: match(match), side(side), tuples(tuples), tuple(tuple)
	{
	}
	__device__ __forceinline__ bool
	before(uint32_t row) const
	{
		return gj_sorted_place(&match, side.value, row, tuples.value, tuple) < 0;
	}
	__device__ __forceinline__ bool
	behind(uint32_t row) const
	{
		return gj_sorted_place(&match, side.value, row, tuples.value, tuple) > 0;
	}
};

/* The same of a side with one column: a key, or a value within bounds.  It matches from .. last. */
struct Column
{
	const int64_t *side;
	int64_t from;
	int64_t last;

	__device__ __forceinline__
	Column(const GjSortedMatch &match, const GjKeys &side, const GjKeys &tuples, uint32_t tuple)
		: side(side.value[0]), from(INT64_MIN), last(INT64_MAX)
	{
		uint32_t k = 0;

		if (match.nkeys > 0)
			from = last = tuples.value[k++][tuple];
		if (match.has_low)
			from = tuples.value[k++][tuple];
		if (match.has_high)
			last = tuples.value[k][tuple];
		/* nothing is greater than the greatest, or less than the least: nothing matches */
		if ((match.low_strict && match.has_low && from == INT64_MAX) ||
			(match.high_strict && match.has_high && last == INT64_MIN))
		{
			from = INT64_MAX;
			last = INT64_MIN;
			return;
		}
		from += match.low_strict && match.has_low;
		last -= match.high_strict && match.has_high;
	}
	__device__ __forceinline__ bool
	before(uint32_t row) const
	{
		return side[row] < from;
	}
	__device__ __forceinline__ bool
	behind(uint32_t row) const
	{
		return side[row] > last;
	}
};

static bool
has_one_column(const GjSortedMatch *match)
{
	return match->nkeys + (match->has_low || match->has_high) == 1;
}

/* The rows of a bucket: the highest bucket has a number of 16 bits. */
static uint32_t
bucket_rows(uint32_t nside)
{
	return nside / UINT16_MAX + 1;
}

/*
 * bucket[i] = the bucket of the side that has the place of tuple i: the first steps of its search,
 * among the last rows of the buckets, which stay in L2.  row[i] = i.
 */
template <typename M>
static __global__ void
__launch_bounds__(GJ_THREADS)
	find_buckets(const __grid_constant__ GjKeys side, uint32_t nside, uint32_t rows,
				 const __grid_constant__ GjKeys tuples, const __grid_constant__ GjSortedMatch match,
				 uint16_t *bucket, uint32_t *row)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint32_t low = 0;
	uint32_t high = nside / rows; /* behind the last whole one is what is left */

	if (i >= tuples.nrows)
		return;

	const M m(match, side, tuples, i);

	if (tuples.null[i])
		low = high;
	while (low < high)
	{
		const uint32_t mid = low + (high - low) / 2;

		if (m.before(mid * rows + rows - 1))
			low = mid + 1;
		else
			high = mid;
	}
	bucket[i] = (uint16_t) low;
	row[i] = i;
}

/*
 * The number of matches among nside rows, the first of which, or its place, is one of low .. high;
 * *first = it.
 */
template <typename M>
static __device__ __forceinline__ uint32_t
find_matches(const M &m, uint32_t nside, uint32_t low, uint32_t high, uint32_t *first)
{
	uint64_t step = 1;

	while (low < high)
	{
		const uint32_t mid = low + (high - low) / 2;

		if (m.before(mid))
			low = mid + 1;
		else
			high = mid;
	}
	*first = low;
	if (low == nside || m.behind(low))
		return 0;
	/* mostly there are few: look close by first */
	while (low + step < nside && !m.behind((uint32_t) (low + step)))
		step *= 2;
	high = low + step < nside ? (uint32_t) (low + step) : nside;
	low += (uint32_t) (step / 2);
	while (low < high)
	{
		const uint32_t mid = low + (high - low) / 2;

		if (!m.behind(mid))
			low = mid + 1;
		else
			high = mid;
	}
	return low - *first;
}

/*
 * first[i], and in offset[i] the number of matches, of tuple i = order[t], whose bucket has number
 * bucket[t]; without buckets i = t.  offset[n] = 0.
 */
template <typename M>
static __global__ void
__launch_bounds__(GJ_THREADS)
	search_sorted(const __grid_constant__ GjKeys side, uint32_t nside,
				  const __grid_constant__ GjKeys tuples,
				  const __grid_constant__ GjSortedMatch match, const uint16_t *bucket,
				  uint32_t rows, const uint32_t *order, uint64_t *offset, uint32_t *first)
{
	const uint32_t t = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint32_t low = 0;
	uint32_t high = nside;
	uint32_t start = 0;
	uint32_t count = 0;
	uint32_t i;

	if (t > tuples.nrows)
		return;
	if (t == tuples.nrows)
	{
		offset[t] = 0;
		return;
	}
	i = order ? order[t] : t;
	if (bucket)
	{
		low = bucket[t] * rows;
		high = nside - low > rows ? low + rows : nside;
	}
	if (!tuples.null[i])
		count = find_matches(M(match, side, tuples, i), nside, low, high, &start);
	offset[i] = count;
	first[i] = start;
}

/* Tuples in the order of their buckets; *bucket and *order are scratch. */
template <typename M>
static GjStatus
order_tuples(GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
			 const GjSortedMatch *match, uint32_t rows, const uint16_t **bucket,
			 const uint32_t **order)
{
	const uint32_t n = keys->nrows;
	void *memory;
	uint32_t *row;
	uint16_t *number;

	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, 2 * (size_t) n * (sizeof(uint32_t) + sizeof(uint16_t)),
					  &memory));
	row = (uint32_t *) memory;
	number = (uint16_t *) (row + 2 * (size_t) n);
	find_buckets<M><<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		table->keys, table->nrows, rows, *keys, *match, number, row);
	GJ_LAUNCHED(queue, "find_buckets");
	GJ_CUB(queue, cub::DeviceRadixSort::SortPairs, (const uint16_t *) number, number + n,
		   (const uint32_t *) row, row + n, (int64_t) n, 0, 16);
	*bucket = number + n;
	*order = row + n;
	return GJ_OK;
}

template <typename M>
static GjStatus
probe(GjQueue *queue, const GjHashTable *table, const GjKeys *keys, const GjSortedMatch *match,
	  uint64_t *offset, uint32_t *first)
{
	const uint64_t n = (uint64_t) keys->nrows + 1;
	const uint32_t rows = bucket_rows(table->nrows);
	const uint16_t *bucket = NULL;
	const uint32_t *order = NULL;

	if (table->nrows > SMALL_SIDE && keys->nrows > 0)
		GJ_TRY(order_tuples<M>(queue, table, keys, match, rows, &bucket, &order));
	search_sorted<M><<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		table->keys, table->nrows, *keys, *match, bucket, rows, order, offset, first);
	GJ_LAUNCHED(queue, "search_sorted");
	return GJ_OK;
}

GjStatus
gj_sort_probe(GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
			  const GjSortedMatch *match, uint64_t *offset, uint32_t *first, uint64_t *total)
{
	*total = 0;
	GJ_TRY(gj_enter(queue));
	if (has_one_column(match))
		GJ_TRY(probe<Column>(queue, table, keys, match, offset, first));
	else
		GJ_TRY(probe<Columns>(queue, table, keys, match, offset, first));
	return gj_sum_counts(queue, offset, keys->nrows, total);
}
