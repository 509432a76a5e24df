/*
 * join_sort.cu
 *	  Sort-merge: an inner side sorted by its keys, and tuples that look for their matches.
 *
 * Build.  CUB's radix sort of (value, row), from the last value to the first, for it is
 * stable, and only of the bits that differ.  The keys are then moved into the order.
 *
 * Probe.  Tuples of a large side are sorted by their first value beforehand: neighbours
 * then search in the same places, so that nearly all loads are from cache.  What they find
 * is written where the tuple was.
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

/* first[i], and in offset[i] the number of matches, of tuple i = order[t]; offset[n] = 0. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	search_sorted(const __grid_constant__ GjKeys side, uint32_t nside,
				  const __grid_constant__ GjKeys tuples, GjSortedMatch match, const uint32_t *order,
				  uint64_t *offset, uint32_t *first)
{
	const uint32_t t = blockIdx.x * GJ_THREADS + threadIdx.x;
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
	if (!tuples.null[i])
		count = gj_sorted_matches(&match, side.value, nside, tuples.value, i, &start);
	offset[i] = count;
	first[i] = start;
}

/* Tuples in the order of their first value; *order is scratch. */
static GjStatus
order_tuples(GjQueue *queue, const GjKeys *keys, const uint32_t **order)
{
	const uint32_t n = keys->nrows;
	const size_t value_bytes = (size_t) n * sizeof(int64_t);
	void *memory;
	int64_t *sorted;
	uint32_t *row;
	uint32_t *to_row;

	GJ_TRY(
		gj_scratch(queue, GJ_SCRATCH_A, value_bytes + 2 * (size_t) n * sizeof(uint32_t), &memory));
	sorted = (int64_t *) memory;
	row = (uint32_t *) ((char *) memory + value_bytes);
	to_row = row + n;
	GJ_TRY(gj_number_rows(queue, row, n));
	GJ_TRY(gj_sort_pairs(queue, keys->value[0], sorted, row, to_row, n));
	*order = to_row;
	return GJ_OK;
}

GjStatus
gj_sort_probe(GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
			  const GjSortedMatch *match, uint64_t *offset, uint32_t *first, uint64_t *total)
{
	const uint64_t n = (uint64_t) keys->nrows + 1;
	const uint32_t *order = NULL;

	*total = 0;
	GJ_TRY(gj_enter(queue));
	if (table->nrows > SMALL_SIDE && keys->nrows > 0)
		GJ_TRY(order_tuples(queue, keys, &order));
	search_sorted<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		table->keys, table->nrows, *keys, *match, order, offset, first);
	GJ_LAUNCHED(queue, "search_sorted");
	return gj_sum_counts(queue, offset, keys->nrows, total);
}
