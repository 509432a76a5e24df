/*
 * order.cu
 *	  Rows in the order of some keys, or the first of them, and groups by the order of their
 *	  keys.
 *
 * Rows that come too late are left out before anything is sorted (a bound: what was found
 * among earlier rows), so that hardly any are left once there is one.  The others are sorted
 * by CUB's radix sort, from the last key to the first, for it is stable.  Of few rows, as most
 * groups are, each is compared with all: that is one launch, where a sort is a dozen for each key.
 * Where few of many are wanted, a row of a sorted sample bounds what is worth sorting.
 */
#include <utility>

#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include "device/group.h"
#include "device/order.h"
#include "sort.cuh"

/* ---- rows */

/* Rows that the bound lets pass. */
struct Passes
{
	GjKeys keys;
	GjSortLimit wanted;

	__host__ __device__ bool
	operator()(uint32_t i) const
	{
		return gj_order_passes(&keys, &wanted, i);
	}
};

/* Rows that are not after row *last, or ties of it. */
struct NotAfter
{
	GjKeys keys;
	const uint32_t *last;
	uint32_t descending;
	uint32_t slack;

	__host__ __device__ bool
	operator()(uint32_t i) const
	{
		return gj_order_rows(&keys, descending, i, *last) <= 0 ||
			   gj_order_ties(&keys, descending, slack, i, *last);
	}
};

/* to[i] = value of row rows[i], so that smaller ones come first */
static __global__ void
__launch_bounds__(GJ_THREADS) order_values(int64_t *to, const int64_t *from, const uint32_t *rows,
										   uint32_t n, uint32_t descending, uint32_t k)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		to[i] = gj_order_value(from[rows[i]], descending, k);
}

#define FEW_ROWS 8192
#define SAMPLE_ROWS 1024
#define MANY_ROWS 2048 /* a sample of more tells which ones to sort */
#define WARPS (GJ_THREADS / 32)

/* A warp a row: its place in to[] is the number of rows that come before it.  rows = NULL: 0 .. n-1
 */
static __global__ void
__launch_bounds__(GJ_THREADS) rank_rows(const __grid_constant__ GjKeys keys, uint32_t descending,
										const uint32_t *rows, uint32_t n, uint32_t *to)
{
	const uint32_t i = blockIdx.x * WARPS + threadIdx.x / 32;
	const uint32_t row = i < n ? (rows ? rows[i] : i) : 0;
	uint32_t rank = 0;

	if (i >= n)
		return;
	for (uint32_t j = threadIdx.x % 32; j < n; j += 32)
	{
		const int order = gj_order_rows(&keys, descending, rows ? rows[j] : j, row);

		rank += order < 0 || (order == 0 && j < i);
	}
	rank = __reduce_add_sync(0xFFFFFFFF, rank);
	if (threadIdx.x % 32 == 0)
		to[rank] = row;
}

static GjStatus
sort_few(GjQueue *queue, const GjKeys *keys, uint32_t descending, const uint32_t *rows, uint32_t n,
		 uint32_t *to)
{
	rank_rows<<<gj_blocks(n, WARPS), GJ_THREADS, 0, queue->stream>>>(*keys, descending, rows, n,
																	 to);
	GJ_LAUNCHED(queue, "rank_rows");
	return GJ_OK;
}

/* *end = rows at the start of n sorted ones up to the last tie of rows[last].  One thread. */
static __global__ void
order_ties(const __grid_constant__ GjKeys keys, uint32_t descending, uint32_t slack,
		   const uint32_t *rows, uint32_t last, uint32_t n, uint32_t *end)
{
	uint32_t low = last + 1;
	uint32_t high = n;

	while (low < high)
	{
		const uint32_t mid = low + (high - low) / 2;

		if (gj_order_ties(&keys, descending, slack, rows[mid], rows[last]))
			low = mid + 1;
		else
			high = mid;
	}
	*end = low;
}

/* What sort_limit and sort_rows allocate: all of n elements. */
typedef struct Order
{
	int64_t *value;
	int64_t *scratch;
	uint32_t *row;
	uint32_t *next;
	bool all; /* the rows are 0 .. n-1, and row is not filled */
} Order;

/* positions[0 .. n) = rows[0 .. n).  Waits. */
static GjStatus
copy_rows(GjQueue *queue, uint32_t *positions, const uint32_t *rows, uint32_t n)
{
	GJ_CUDA(queue, cudaMemcpyAsync(positions, rows, (size_t) n * sizeof(uint32_t),
								   cudaMemcpyDeviceToDevice, queue->stream));
	return gj_wait(queue);
}

/*
 * Sorts the m > 0 rows in order->row by all keys.  A key that is the same in all of them (that
 * none is NULL, often) takes no pass.
 */
static GjStatus
sort_by_all(GjQueue *queue, const GjKeys *keys, uint32_t descending, Order *order, uint32_t m,
			bool (*stop)(void *), void *arg)
{
	if (m <= FEW_ROWS)
	{
		GJ_TRY(sort_few(queue, keys, descending, order->row, m, order->next));
		std::swap(order->row, order->next);
		return GJ_OK;
	}
	for (uint32_t k = keys->nkeys; k-- > 0;)
	{
		GjDiffering differing = {};

		if (stop && stop(arg))
			return GJ_CANCELLED;
		order_values<<<gj_blocks(m, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
			order->value, keys->value[k], order->row, m, descending, k);
		GJ_LAUNCHED(queue, "order_values");
		GJ_TRY(gj_differing_bits(queue, order->value, m, &differing));
		if (differing.bits == 0)
			continue;
		GJ_TRY(gj_sort_by_values(queue, order->value, order->scratch, order->row, order->next, m,
								 &differing));
		std::swap(order->row, order->next);
	}
	return GJ_OK;
}

/* sample[i] = row i * n / SAMPLE_ROWS of n rows; rows = NULL: 0 .. n-1 */
static __global__ void
__launch_bounds__(GJ_THREADS) take_sample(const uint32_t *rows, uint32_t n, uint32_t *sample)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	const uint32_t at = (uint32_t) ((uint64_t) i * n / SAMPLE_ROWS);

	if (i < SAMPLE_ROWS)
		sample[i] = rows ? rows[at] : at;
}

/*
 * *last, device memory in order->value: a row of a sample of the m rows.  At least limit of them
 * are not after it, most likely, and few more.
 */
static GjStatus
find_last(GjQueue *queue, const GjKeys *keys, const GjSortLimit *wanted, const Order *order,
		  uint32_t m, const uint32_t **last)
{
	uint32_t *const sample = (uint32_t *) order->value;
	uint32_t *const sorted = sample + SAMPLE_ROWS;
	const uint32_t expected = (uint32_t) ((uint64_t) wanted->limit * SAMPLE_ROWS / m);

	static_assert(2 * SAMPLE_ROWS <= MANY_ROWS && SAMPLE_ROWS / 16 * 3 / 2 + 4 < SAMPLE_ROWS);
	take_sample<<<gj_blocks(SAMPLE_ROWS, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		order->all ? NULL : order->row, m, sample);
	GJ_LAUNCHED(queue, "take_sample");
	GJ_TRY(sort_few(queue, keys, wanted->descending, sample, SAMPLE_ROWS, sorted));
	/* that fewer rows pass has a chance of 1 in 100 at most */
	*last = sorted + expected + expected / 2 + 4;
	return GJ_OK;
}

/* order->next[0 .. *n) = those of the m rows that pass.  Waits. */
template <typename Pass>
static GjStatus
select_rows(GjQueue *queue, const Order *order, uint32_t m, Pass pass, uint32_t *n)
{
	if (order->all)
		GJ_CUB(queue, cub::DeviceSelect::If, thrust::counting_iterator<uint32_t>(0), order->next,
			   &queue->results->n, (int64_t) m, pass);
	else
		GJ_CUB(queue, cub::DeviceSelect::If, order->row, order->next, &queue->results->n,
			   (int64_t) m, pass);
	GJ_TRY(gj_wait(queue));
	*n = queue->pinned->results.n;
	return GJ_OK;
}

/* What was selected are the rows. */
static void
take_selected(Order *order)
{
	std::swap(order->row, order->next);
	order->all = false;
}

/* Leaves out most of the *m rows that are not wanted.  Where too few would be left all stay. */
static GjStatus
leave_out_late(GjQueue *queue, const GjKeys *keys, const GjSortLimit *wanted, Order *order,
			   uint32_t *m)
{
	while (*m > MANY_ROWS && wanted->limit <= *m / 16)
	{
		const uint32_t before = *m;
		NotAfter pass = {*keys, NULL, wanted->descending, 0};
		uint32_t n;

		GJ_TRY(find_last(queue, keys, wanted, order, before, &pass.last));
		GJ_TRY(select_rows(queue, order, before, pass, &n));
		if (n < wanted->limit)
			break;
		/* the last row wanted is not after the bound, but its ties may be */
		if (wanted->ties && wanted->slack > 0)
		{
			pass.slack = wanted->slack;
			GJ_TRY(select_rows(queue, order, before, pass, &n));
		}
		take_selected(order);
		*m = n;
		if (n > before / 2)
			break;
	}
	return GJ_OK;
}

static GjStatus
sort_limit(GjQueue *queue, const GjKeys *keys, const GjSortLimit *wanted, Order *order,
		   uint32_t *positions, uint32_t *n)
{
	uint32_t m = keys->nrows;
	bool ties;

	order->all = true;
	if (wanted->bounded)
	{
		GJ_TRY(select_rows(queue, order, m, Passes{*keys, *wanted}, &m));
		take_selected(order);
	}
	if (m == 0)
		return GJ_OK;
	GJ_TRY(leave_out_late(queue, keys, wanted, order, &m));
	if (order->all)
		GJ_TRY(gj_number_rows(queue, order->row, m));
	GJ_TRY(sort_by_all(queue, keys, wanted->descending, order, m, NULL, NULL));
	ties = wanted->ties && m > wanted->limit;
	if (ties)
	{
		order_ties<<<1, 1, 0, queue->stream>>>(*keys, wanted->descending, wanted->slack, order->row,
											   wanted->limit - 1, m, &queue->results->n);
		GJ_LAUNCHED(queue, "order_ties");
	}
	GJ_TRY(copy_rows(queue, positions, order->row, m));
	*n = ties ? queue->pinned->results.n : min(m, wanted->limit);
	return GJ_OK;
}

/* Room for n rows; false if there is none, and order_free gives back what there was. */
static bool
order_alloc(GjQueue *queue, uint32_t n, Order *order)
{
	order->value = (int64_t *) gj_alloc(queue, (size_t) n * sizeof(int64_t));
	order->scratch = (int64_t *) gj_alloc(queue, (size_t) n * sizeof(int64_t));
	order->row = (uint32_t *) gj_alloc(queue, (size_t) n * sizeof(uint32_t));
	order->next = (uint32_t *) gj_alloc(queue, (size_t) n * sizeof(uint32_t));
	return order->value && order->scratch && order->row && order->next;
}

static void
order_free(GjQueue *queue, uint32_t n, const Order *order)
{
	gj_free(queue, order->value, (size_t) n * sizeof(int64_t));
	gj_free(queue, order->scratch, (size_t) n * sizeof(int64_t));
	gj_free(queue, order->row, (size_t) n * sizeof(uint32_t));
	gj_free(queue, order->next, (size_t) n * sizeof(uint32_t));
}

static GjStatus
gj_sort_limit(GjQueue *queue, const GjKeys *keys, const GjSortLimit *wanted, uint32_t *positions,
			  uint32_t *n)
{
	Order order = {};
	GjStatus status;

	*n = 0;
	GJ_TRY(gj_enter(queue));
	/* a row error of what made the keys */
	GJ_TRY(gj_wait(queue));
	if (keys->nrows == 0)
		return GJ_OK;
	status = order_alloc(queue, keys->nrows, &order)
				 ? sort_limit(queue, keys, wanted, &order, positions, n)
				 : gj_no_memory(queue);
	order_free(queue, keys->nrows, &order);
	return status;
}

static GjStatus
gj_sort_rows(GjQueue *queue, const GjKeys *keys, uint32_t descending, bool (*stop)(void *),
			 void *arg, uint32_t *positions)
{
	Order order = {};
	GjStatus status;

	GJ_TRY(gj_enter(queue));
	if (keys->nrows > 0 && keys->nrows <= FEW_ROWS)
	{
		if (stop && stop(arg))
			return GJ_CANCELLED;
		GJ_TRY(sort_few(queue, keys, descending, NULL, keys->nrows, positions));
		return gj_wait(queue);
	}
	GJ_TRY(gj_wait(queue));
	if (keys->nrows == 0)
		return GJ_OK;
	status = order_alloc(queue, keys->nrows, &order) ? gj_number_rows(queue, order.row, keys->nrows)
													 : gj_no_memory(queue);
	if (status == GJ_OK)
		status = sort_by_all(queue, keys, descending, &order, keys->nrows, stop, arg);
	if (status == GJ_OK)
		status = copy_rows(queue, positions, order.row, keys->nrows);
	order_free(queue, keys->nrows, &order);
	return status;
}

/* ---- groups */

typedef struct SortKeys
{
	uint32_t nkeys;
	uint32_t n; /* with the checks that follow the keys */
	GjSortKey key[GJ_MAX_KEYS + GJ_MAX_AGGREGATES];
} SortKeys;

static __global__ void
__launch_bounds__(GJ_THREADS)
	group_sort_keys(const __grid_constant__ GjGroups groups, const __grid_constant__ SortKeys spec,
					const __grid_constant__ GjKeys keys, GjResults *results)
{
	const uint32_t g = blockIdx.x * GJ_THREADS + threadIdx.x;
	bool fails = false;

	if (g >= groups.rows.nrows)
		return;
	for (uint32_t k = 0; k < spec.nkeys; k++)
		keys.value[k][g] = gj_group_sort_value(&groups, &spec.key[k], g);
	for (uint32_t k = spec.nkeys; k < spec.n; k++)
		fails |= gj_group_sort_fails(&groups, &spec.key[k], g);
	gj_note_error(results, fails ? GJ_OVERFLOW : GJ_OK);
}

GjStatus
gj_group_sort_keys(GjQueue *queue, const GjGroups *groups, const GjKeys *keys)
{
	const GjSortKey *sort_keys;
	SortKeys spec = {};

	GJ_TRY(gj_enter(queue));
	if (groups->rows.nrows == 0)
		return GJ_OK;
	sort_keys = gj_program_array(queue->program, GjSortKey, sort_keys);
	spec.nkeys = keys->nkeys;
	spec.n = queue->program->nsort_keys;
	for (uint32_t k = 0; k < spec.n; k++)
		spec.key[k] = sort_keys[k];
	group_sort_keys<<<gj_blocks(groups->rows.nrows, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		*groups, spec, *keys, queue->results);
	GJ_LAUNCHED(queue, "group_sort_keys");
	return GJ_OK;
}

/* sizes[i] = bytes of the references of group positions[i]; sizes[n] = 0. */
static __global__ void
__launch_bounds__(GJ_THREADS) group_bytes(const __grid_constant__ GjGroupRows rows,
										  const uint32_t *positions, uint32_t n, uint64_t *sizes)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i <= n)
		sizes[i] = i < n ? gj_group_space(&rows, positions[i]) : 0;
}

GjStatus
gj_group_bytes(GjQueue *queue, const GjGroups *groups, const uint32_t *positions, uint32_t n,
			   uint64_t *heap_at, uint64_t *nbytes)
{
	const uint64_t nsizes = (uint64_t) n + 1;

	*nbytes = 0;
	GJ_TRY(gj_enter(queue));
	group_bytes<<<gj_blocks(nsizes, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		groups->rows, positions, n, heap_at);
	GJ_LAUNCHED(queue, "group_bytes");
	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, heap_at, heap_at, nsizes);
	GJ_CUDA(queue, cudaMemcpyAsync(&queue->results->total, heap_at + n, sizeof(uint64_t),
								   cudaMemcpyDeviceToDevice, queue->stream));
	GJ_TRY(gj_wait(queue));
	*nbytes = queue->pinned->results.total;
	return GJ_OK;
}

static __global__ void
__launch_bounds__(GJ_THREADS)
	group_keep(const __grid_constant__ GjGroups from, const uint32_t *positions, uint32_t n,
			   const uint64_t *heap_at, const __grid_constant__ GjGroups to, uint32_t naggregates)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint32_t g;

	if (i >= n)
		return;
	g = positions[i];
	gj_group_store(&from.rows, g, &to, i, heap_at ? heap_at[i] : 0);
	for (uint32_t a = 0; a < naggregates; a++)
		to.state[a][i] = from.state[a][g];
}

GjStatus
gj_group_keep(GjQueue *queue, const GjGroups *from, const uint32_t *positions, uint32_t n,
			  const uint64_t *heap_at, const GjGroups *to)
{
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return GJ_OK;
	group_keep<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		*from, positions, n, to->heap_end ? heap_at : NULL, *to,
		from->state[0] ? queue->program->naggregates : 0);
	GJ_LAUNCHED(queue, "group_keep");
	return GJ_OK;
}

const GjOrderOps gj_cuda_order = {
	.sort_limit = gj_sort_limit,
	.sort_rows = gj_sort_rows,
};
