/*
 * join_sort.cu
 *	  Sort-merge: a build side sorted by its keys, and tuples that look for their matches.
 *
 * Build.  CUB's radix sort of (value, row), from the last value to the first, for it is
 * stable, and only of the bits that differ; where these are 32 or fewer, of 32-bit values.  The
 * other keys are then moved into the order.
 *
 * The range of the first column is then cut into equal buckets, of BUCKET_ROWS rows or more, and
 * the first row of each is noted: a radix table over sorted data (Kipf et al.: "RadixSpline: A
 * Single-Pass Learned Index", aiDM 2020), with a straight line for a spline.
 *
 * Probe.  A tuple's bucket is a shift away, and in it rows are looked for around the place that
 * they would have if its values were spread evenly: mostly in one line of memory.  Where values
 * crowd it is two binary searches.
 */
#include <cub/device/device_select.cuh>

#include "join_unique.cuh"
#include "sort.cuh"

/* Rows of a bucket at least, if values are spread evenly; all buckets take a part of L2. */
#define BUCKET_ROWS 8
#define L2_SHARE 4

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
	int64_t *value[2];
	uint32_t *row[2];
} Sort;

/*
 * The input rows that take part, n of them, in the order of all values: in sort->row[0]; the first
 * column in that order: in sort->value[0].
 */
static GjStatus
sort_rows(GjQueue *queue, const GjKeys *keys, Sort *sort, bool (*stop)(void *), void *arg,
		  uint32_t *n)
{
	GjDiffering differing = {};

	GJ_CUB(queue, cub::DeviceSelect::If, thrust::counting_iterator<uint32_t>(0), sort->row[0],
		   &queue->results->n, (int64_t) keys->nrows, NotNull{keys->null});
	GJ_TRY(gj_wait(queue));
	*n = queue->pinned->results.n;
	if (*n == 0)
		return GJ_OK;
	for (uint32_t k = keys->nkeys; k-- > 0;)
	{
		const int64_t *value = keys->value[k];

		if (stop && stop(arg))
			return GJ_CANCELLED;
		/* else the rows are in the order that they came in, and all are there */
		if (k < keys->nkeys - 1 || *n < keys->nrows)
		{
			GJ_TRY(move(queue, sort->value[0], value, sort->row[0], *n));
			value = sort->value[0];
		}
		GJ_TRY(gj_differing_bits(queue, value, *n, &differing));
		GJ_TRY(gj_sort_by_values(queue, value, sort->value[1], sort->row[0], sort->row[1], *n,
								 &differing));
		std::swap(sort->row[0], sort->row[1]);
	}
	return gj_sorted_values(queue, &sort->value[1], *n, &differing, &sort->value[0]);
}

/*
 * Puts the keys into the order, of which the first column is in sort->value[0], and names the
 * rows.  The arrays that the table does not take are left in sort.
 */
static GjStatus
take_order(GjQueue *queue, const uint32_t *rowid, Sort *sort, uint32_t n, GjHashTable *table)
{
	GjKeys *keys = &table->keys;

	for (uint32_t k = 1; k < keys->nkeys; k++)
	{
		GJ_TRY(move(queue, sort->value[1], (const int64_t *) keys->value[k], sort->row[0], n));
		std::swap(keys->value[k], sort->value[1]);
	}
	std::swap(keys->value[0], sort->value[0]);
	if (rowid)
	{
		GJ_TRY(move(queue, sort->row[1], rowid, sort->row[0], n));
		std::swap(sort->row[0], sort->row[1]);
	}
	std::swap(table->rows, sort->row[0]);
	return GJ_OK;
}

/* *found = 1 if any of n rows has the keys of the row before it. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	find_equal(const __grid_constant__ GjKeys keys, uint32_t n, uint32_t *found)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	bool equal = i > 0 && i < n;

	for (uint32_t k = 0; k < keys.nkeys && equal; k++)
		equal = keys.value[k][i] == keys.value[k][i - 1];
	if (equal)
		*found = 1;
}

/* bucket[b] = the first of n rows that lies in bucket b or behind it, for b <= nbuckets. */
static __global__ void
__launch_bounds__(GJ_THREADS) find_buckets(const int64_t *value, uint32_t n, int64_t low,
										   uint32_t shift, uint32_t nbuckets, uint32_t *bucket)
{
	const uint32_t b = blockIdx.x * GJ_THREADS + threadIdx.x;

	/* what lies behind the last bucket may be no number of 64 bits */
	if (b == nbuckets)
		bucket[b] = n;
	else if (b < nbuckets)
		bucket[b] = gj_lower_bound(value, n, (int64_t) ((uint64_t) low + ((uint64_t) b << shift)));
}

/* Notes whether keys are unique and where the buckets of the table's n > 0 rows start.  Waits. */
static GjStatus
index_side(GjQueue *queue, uint32_t n, GjHashTable *table)
{
	const uint64_t room = queue->device->l2_bytes / L2_SHARE / sizeof(uint32_t);
	const uint64_t most = max(min((uint64_t) n / BUCKET_ROWS, room), UINT64_C(1));
	const int64_t *value = table->keys.value[0];
	int64_t *ends = queue->pinned->value;
	uint64_t range;

	GJ_CUDA(queue, cudaMemsetAsync(&queue->results->n, 0, sizeof(uint32_t), queue->stream));
	find_equal<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(table->keys, n,
																		   &queue->results->n);
	GJ_LAUNCHED(queue, "find_equal");
	GJ_CUDA(queue, cudaMemcpyAsync(&ends[0], value, sizeof(int64_t), cudaMemcpyDeviceToHost,
								   queue->stream));
	GJ_CUDA(queue, cudaMemcpyAsync(&ends[1], value + (n - 1), sizeof(int64_t),
								   cudaMemcpyDeviceToHost, queue->stream));
	GJ_TRY(gj_wait(queue));
	table->max_count = queue->pinned->results.n == 0;
	table->low = ends[0];
	range = (uint64_t) ends[1] - (uint64_t) ends[0];
	while (range >> table->shift > most)
		table->shift++;
	table->nslots = (range >> table->shift) + 1;
	table->bucket = (uint32_t *) gj_alloc(queue, (table->nslots + 1) * sizeof(uint32_t));
	if (table->bucket == NULL)
		return gj_no_memory(queue);
	find_buckets<<<gj_blocks(table->nslots + 1, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		value, n, table->low, table->shift, (uint32_t) table->nslots, table->bucket);
	GJ_LAUNCHED(queue, "find_buckets");
	return GJ_OK;
}

/* True if the caller of sort_build has made it. */
static bool
is_key_array(const GjKeys *keys, const int64_t *value)
{
	for (uint32_t k = 0; k < keys->nkeys; k++)
	{
		if (keys->value[k] == value)
			return true;
	}
	return false;
}

/* Also those arrays of the caller for which the table took others, if there is a table. */
static void
free_sort(GjQueue *queue, const GjKeys *keys, const Sort *sort, bool taken)
{
	for (int i = 0; i < 2; i++)
	{
		if (taken || !is_key_array(keys, sort->value[i]))
			gj_free(queue, sort->value[i], (size_t) keys->nrows * sizeof(int64_t));
		gj_free(queue, sort->row[i], (size_t) keys->nrows * sizeof(uint32_t));
	}
}

GjStatus
gj_sort_build(GjQueue *queue, const GjKeys *keys, const uint32_t *rowid, bool (*stop)(void *),
			  void *arg, GjHashTable *table)
{
	const size_t row_bytes = (size_t) keys->nrows * sizeof(uint32_t);
	const size_t value_bytes = (size_t) keys->nrows * sizeof(int64_t);
	GjHashTable made = {};
	Sort sort = {};
	GjStatus status = GJ_OK;

	memset(table, 0, sizeof(*table));
	GJ_TRY(gj_enter(queue));
	made.kind = GJ_TABLE_SORTED;
	made.keys = *keys;
	for (int i = 0; i < 2; i++)
	{
		sort.value[i] = (int64_t *) gj_alloc(queue, value_bytes);
		sort.row[i] = (uint32_t *) gj_alloc(queue, row_bytes);
		if (!sort.value[i] || !sort.row[i])
			status = gj_no_memory(queue);
	}
	if (status == GJ_OK)
		status = sort_rows(queue, keys, &sort, stop, arg, &made.nrows);
	if (status == GJ_OK && made.nrows > 0)
	{
		status = take_order(queue, rowid, &sort, made.nrows, &made);
		if (status == GJ_OK)
			status = index_side(queue, made.nrows, &made);
	}
	free_sort(queue, keys, &sort, status == GJ_OK);
	if (status == GJ_OK)
	{
		gj_free(queue, keys->null, keys->nrows);
		made.keys.null = NULL;
		*table = made;
		return GJ_OK;
	}
	for (uint32_t k = 0; k < keys->nkeys; k++)
	{
		if (!is_key_array(keys, made.keys.value[k]))
			gj_free(queue, made.keys.value[k], value_bytes);
	}
	gj_free(queue, made.rows, row_bytes);
	gj_free(queue, made.bucket, (made.nslots + 1) * sizeof(uint32_t));
	return status;
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
	/* What the first column of the first match is at least. */
	__device__ __forceinline__ int64_t
	least() const
	{
		return match.nkeys > 0 || match.has_low ? tuples.value[0][tuple] : INT64_MIN;
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
	__device__ __forceinline__ int64_t
	least() const
	{
		return from;
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

/* A sorted side as it is searched. */
typedef struct Side
{
	GjKeys keys;
	uint32_t nrows;
	const uint32_t *bucket; /* [nbuckets + 1] first row of each */
	uint64_t nbuckets;
	int64_t low; /* where the first bucket starts; bucket b: low + (b << shift) */
	uint32_t shift;
} Side;

/* Where to look for the first row whose first column is at least some value. */
struct Bucket
{
	uint32_t low; /* it is one of rows low .. high */
	uint32_t high;
	uint32_t guess; /* low .. high - 1, if low < high */
};

static __device__ __forceinline__ Bucket
find_bucket(const Side &side, int64_t value)
{
	const uint64_t at = (uint64_t) value - (uint64_t) side.low;
	const uint64_t b = at >> side.shift;
	Bucket bucket = {};

	if (value < side.low)
		return bucket;
	bucket.low = bucket.high = bucket.guess = side.nrows;
	if (b >= side.nbuckets)
		return bucket;
	bucket.low = __ldg(&side.bucket[b]);
	bucket.high = __ldg(&side.bucket[b + 1]);
	/* as far into the rows as the value is into the bucket */
	bucket.guess = bucket.low;
	if (side.shift > 0)
		bucket.guess +=
			(uint32_t) __umul64hi(at << (64 - side.shift), (uint64_t) bucket.high - bucket.low);
	return bucket;
}

/* The first row of a bucket that is not before the matches: high, if all below it are. */
template <typename M>
static __device__ __forceinline__ uint32_t
first_match(const M &m, const Bucket &bucket)
{
	uint32_t low = bucket.low;
	uint32_t high = bucket.high;
	uint32_t step = 1;

	if (low == high)
		return low;
	/* away from the guess, by steps that double, until it is passed */
	if (m.before(bucket.guess))
	{
		low = bucket.guess + 1;
		while (high - low > step && m.before(low + step))
		{
			low += step + 1;
			step *= 2;
		}
		if (high - low > step)
			high = low + step;
	}
	else
	{
		high = bucket.guess;
		while (high - low > step && !m.before(high - step))
		{
			high -= step;
			step *= 2;
		}
		if (high - low > step)
			low = high - step + 1;
	}
	while (low < high)
	{
		const uint32_t mid = low + (high - low) / 2;

		if (m.before(mid))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The number of matches among nrows rows, which start with row `low`, if there are any. */
template <typename M>
static __device__ __forceinline__ uint32_t
count_matches(const M &m, uint32_t nrows, uint32_t low)
{
	const uint32_t first = low;
	uint64_t step = 1;
	uint32_t high;

	if (low == nrows || m.behind(low))
		return 0;
	/* mostly there are few: look close by first */
	while (low + step < nrows && !m.behind((uint32_t) (low + step)))
		step *= 2;
	high = low + step < nrows ? (uint32_t) (low + step) : nrows;
	low += (uint32_t) (step / 2);
	while (low < high)
	{
		const uint32_t mid = low + (high - low) / 2;

		if (!m.behind(mid))
			low = mid + 1;
		else
			high = mid;
	}
	return low - first;
}

/* first[i], and in offset[i] the number of matches, of tuple i.  offset[n] = 0. */
template <typename M>
static __global__ void
__launch_bounds__(GJ_THREADS)
	search_sorted(const __grid_constant__ Side side, const __grid_constant__ GjKeys tuples,
				  const __grid_constant__ GjSortedMatch match, uint64_t *offset, uint32_t *first)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint32_t low = 0;
	uint32_t count = 0;

	if (i > tuples.nrows)
		return;
	if (i == tuples.nrows)
	{
		offset[i] = 0;
		return;
	}
	if (!tuples.null[i])
	{
		const M m(match, side.keys, tuples, i);

		low = first_match(m, find_bucket(side, m.least()));
		count = count_matches(m, side.nrows, low);
	}
	offset[i] = count;
	first[i] = low;
}

static Side
side_of(const GjHashTable *table)
{
	Side side = {};

	side.keys = table->keys;
	side.nrows = table->nrows;
	side.bucket = table->bucket;
	side.nbuckets = table->nslots;
	side.low = table->low;
	side.shift = table->shift;
	return side;
}

GjStatus
gj_sort_probe(GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
			  const GjSortedMatch *match, uint64_t *offset, uint32_t *first, uint64_t *total)
{
	const uint32_t blocks = gj_blocks((uint64_t) keys->nrows + 1, GJ_THREADS);

	*total = 0;
	GJ_TRY(gj_enter(queue));
	if (has_one_column(match))
		search_sorted<Column><<<blocks, GJ_THREADS, 0, queue->stream>>>(side_of(table), *keys,
																		*match, offset, first);
	else
		search_sorted<Columns><<<blocks, GJ_THREADS, 0, queue->stream>>>(side_of(table), *keys,
																		 *match, offset, first);
	GJ_LAUNCHED(queue, "search_sorted");
	return gj_sum_counts(queue, offset, keys->nrows, total);
}

/* ---- both at once, of unique keys */

template <typename M>
struct FindSorted
{
	Side side;
	GjKeys tuples;
	GjSortedMatch match;
	const uint32_t *rows;

	typedef Bucket Start;

	__device__ __forceinline__ Bucket
	start(uint32_t i) const
	{
		return tuples.null[i] ? Bucket{}
							  : find_bucket(side, M(match, side.keys, tuples, i).least());
	}
	__device__ __forceinline__ uint32_t
	row(uint32_t i, const Bucket &bucket) const
	{
		const M m(match, side.keys, tuples, i);
		uint32_t at;

		if (tuples.null[i])
			return GJ_NO_ROW;
		at = first_match(m, bucket);
		return at == side.nrows || m.behind(at) ? GJ_NO_ROW : __ldg(&rows[at]);
	}
};

template <typename M>
static GjStatus
match_sorted(GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
			 const GjSortedMatch *match, const GjPairColumns &pairs, uint32_t *npairs)
{
	const FindSorted<M> find = {side_of(table), *keys, *match, table->rows};

	return gj_match_tuples<4>(queue, find, keys->nrows, pairs, npairs);
}

GjStatus
gj_sort_match(GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
			  const GjSortedMatch *match, const GjPairColumns &pairs, uint32_t *npairs)
{
	return has_one_column(match) ? match_sorted<Column>(queue, table, keys, match, pairs, npairs)
								 : match_sorted<Columns>(queue, table, keys, match, pairs, npairs);
}
