/*
 * join_direct.cu
 *	  Direct tables: arrays of row ids, addressed by the key.
 *
 * Most join keys are numbers that were given to rows one after the other.  They are unique, and
 * so dense that an array with a place for every value between the least and the greatest takes no
 * more memory than a hash table.  A probe is then one load of four bytes, and nothing is hashed
 * or compared.  The array is an eighth of a hash table, and so stays in L2 up to ten million
 * rows.
 *
 * One pass over the keys finds their range.  Another one writes the id of every row to its place.
 * If fewer places are filled in the end than there are rows, two rows have one key, and a hash
 * table has to be built.  If keys are in no order and the places do not fit L2, the rows are
 * first brought into partitions of places (join_radix.cu): writing a single place would cost
 * reading and writing a sector.
 *
 * If every place has the row of its own number, no array is needed.  That is so for a table that
 * was filled in the order of its key, and if the executor has put the side's columns into that
 * order.
 */
#include <cub/device/device_reduce.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "join_hash.cuh"

#define BLOCKS_PER_SM 16
#define WARPS (GJ_THREADS / 32)
#define NEAR (1 << 15) /* places: keys of neighbours that are further apart are scattered */

/* What the keys are like; device memory, copied to the host. */
typedef struct KeyRange
{
	int64_t low;
	int64_t high;
	uint32_t nrows;     /* that are not NULL */
	uint32_t scattered; /* of these: far from the key of the row before */
} KeyRange;

static __global__ void
__launch_bounds__(GJ_THREADS) find_range(const __grid_constant__ GjKeys keys, KeyRange *range)
{
	__shared__ int64_t low[WARPS];
	__shared__ int64_t high[WARPS];
	const uint64_t step = (uint64_t) gridDim.x * GJ_THREADS;
	int64_t least = INT64_MAX;
	int64_t greatest = INT64_MIN;
	uint32_t nrows = 0;
	uint32_t scattered = 0;

	for (uint64_t i = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x; i < keys.nrows; i += step)
	{
		const int64_t key = keys.value[0][i];

		if (keys.null[i])
			continue;
		least = min(least, key);
		greatest = max(greatest, key);
		nrows++;
		scattered += i > 0 && (uint64_t) key - (uint64_t) keys.value[0][i - 1] + NEAR > 2 * NEAR;
	}
	for (uint32_t distance = 16; distance > 0; distance /= 2)
	{
		least = min(least, __shfl_down_sync(0xFFFFFFFF, least, distance));
		greatest = max(greatest, __shfl_down_sync(0xFFFFFFFF, greatest, distance));
	}
	nrows = __reduce_add_sync(0xFFFFFFFF, nrows);
	scattered = __reduce_add_sync(0xFFFFFFFF, scattered);
	if (threadIdx.x % 32 == 0)
	{
		low[threadIdx.x / 32] = least;
		high[threadIdx.x / 32] = greatest;
		if (nrows > 0)
			atomicAdd(&range->nrows, nrows);
		if (scattered > 0)
			atomicAdd(&range->scattered, scattered);
	}
	__syncthreads();
	if (threadIdx.x > 0)
		return;
	for (uint32_t w = 1; w < WARPS; w++)
	{
		least = min(least, low[w]);
		greatest = max(greatest, high[w]);
	}
	atomicMin((long long *) &range->low, (long long) least);
	atomicMax((long long *) &range->high, (long long) greatest);
}

/* Where two rows have one place either of them is there afterwards. */
static __global__ void
__launch_bounds__(GJ_THREADS) write_places(const __grid_constant__ GjKeys keys,
										   const uint32_t *rowid, int64_t low, uint32_t *place)
{
	const uint64_t step = (uint64_t) gridDim.x * GJ_THREADS;

	for (uint64_t i = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x; i < keys.nrows; i += step)
	{
		if (!keys.null[i])
			place[(uint64_t) keys.value[0][i] - (uint64_t) low] = rowid ? rowid[i] : (uint32_t) i;
	}
}

/* The same of rows in partitions. */
static __global__ void
__launch_bounds__(GJ_THREADS) write_parts(const uint64_t *key, const uint32_t *row, uint32_t n,
										  const uint32_t *rowid, int64_t low, uint32_t *place)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		place[key[i] - (uint64_t) low] = rowid ? rowid[row[i]] : row[i];
}

/* One if a place has a row, and one more in the upper half if that is row i of i, as CUB reads it.
 */
struct Filled
{
	const uint32_t *place;

	__host__ __device__ uint64_t
	operator()(uint64_t i) const
	{
		return (place[i] != GJ_NO_ROW) + ((uint64_t) (place[i] == i) << 32);
	}
};

/* Copies the range to the host, behind all that is queued. */
static GjStatus
read_range(GjQueue *queue, const KeyRange *range, KeyRange *host)
{
	static_assert(sizeof(KeyRange) <= sizeof(queue->pinned->fused_counts), "room to read it");
	GJ_CUDA(queue, cudaMemcpyAsync(queue->pinned->fused_counts, range, sizeof(*range),
								   cudaMemcpyDeviceToHost, queue->stream));
	GJ_TRY(gj_wait(queue));
	memcpy(host, queue->pinned->fused_counts, sizeof(*host));
	return GJ_OK;
}

static GjStatus
launch_write_parts(GjQueue *queue, const GjPartitions &partitions, const uint32_t *rowid,
				   uint32_t nrows, const GjHashTable *table)
{
	write_parts<<<gj_blocks(nrows, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		partitions.key, partitions.row, nrows, rowid, table->low, table->place);
	GJ_LAUNCHED(queue, "write_parts");
	return GJ_OK;
}

/* Writes row ids to their places, partition by partition. */
static GjStatus
fill_by_parts(GjQueue *queue, const GjKeys *keys, const uint32_t *rowid, uint32_t nrows,
			  const GjHashTable *table, bool (*stop)(void *), void *arg)
{
	GjPartitions partitions;
	GjStatus status;

	GJ_TRY(gj_radix_split(queue, keys, table->low, table->nslots, stop, arg, &partitions));
	status = launch_write_parts(queue, partitions, rowid, nrows, table);
	gj_radix_free(queue, &partitions);
	return status;
}

/* Fills the places; *unique = false: two rows want the same one. */
static GjStatus
fill_places(GjQueue *queue, const GjKeys *keys, const uint32_t *rowid, const KeyRange *range,
			GjHashTable *table, uint32_t blocks, bool (*stop)(void *), void *arg, bool *unique)
{
	const uint64_t nbytes = table->nslots * sizeof(uint32_t);
	const thrust::transform_iterator<Filled, thrust::counting_iterator<uint64_t>> filled(
		thrust::counting_iterator<uint64_t>(0), Filled{table->place});
	GjStatus status = GJ_OUT_OF_MEMORY;

	GJ_CUDA(queue, cudaMemsetAsync(table->place, 0xFF, nbytes, queue->stream));
	if (nbytes > queue->device->radix_bytes && range->scattered > range->nrows / 2)
		status = fill_by_parts(queue, keys, rowid, range->nrows, table, stop, arg);
	if (status == GJ_OUT_OF_MEMORY)
	{
		/* one by one, then: that needs no more memory */
		write_places<<<blocks, GJ_THREADS, 0, queue->stream>>>(*keys, rowid, table->low,
															   table->place);
		GJ_LAUNCHED(queue, "write_places");
		status = gj_build_ask(queue, keys->nrows, stop, arg);
	}
	GJ_TRY(status);
	GJ_CUB(queue, cub::DeviceReduce::Sum, filled, &queue->results->total, (int64_t) table->nslots);
	GJ_TRY(gj_wait(queue));
	*unique = (uint32_t) queue->pinned->results.total == range->nrows;
	table->kind =
		queue->pinned->results.total >> 32 == table->nslots ? GJ_TABLE_DENSE : GJ_TABLE_DIRECT;
	return GJ_OK;
}

GjStatus
gj_direct_build(GjQueue *queue, const GjKeys *keys, const uint32_t *rowid, uint64_t most_bytes,
				bool (*stop)(void *), void *arg, GjHashTable *table)
{
	const KeyRange nothing = {INT64_MAX, INT64_MIN, 0, 0};
	const uint32_t blocks = min(gj_blocks(keys->nrows, GJ_THREADS),
								(uint32_t) queue->device->nprocessors * BLOCKS_PER_SM);
	KeyRange range = nothing;
	void *memory;
	bool unique = false;
	GjStatus status;

	if (keys->nkeys != 1 || keys->nrows == 0 || most_bytes == 0)
		return GJ_OK;
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, sizeof(KeyRange), &memory));
	GJ_CUDA(queue, cudaMemcpyAsync(memory, &nothing, sizeof(nothing), cudaMemcpyHostToDevice,
								   queue->stream));
	find_range<<<blocks, GJ_THREADS, 0, queue->stream>>>(*keys, (KeyRange *) memory);
	GJ_LAUNCHED(queue, "find_range");
	GJ_TRY(read_range(queue, (KeyRange *) memory, &range));
	/* too sparse; or so dense that some key is there twice */
	if (range.nrows == 0 ||
		(uint64_t) range.high - (uint64_t) range.low >= most_bytes / sizeof(uint32_t) ||
		range.nrows - 1 > (uint64_t) range.high - (uint64_t) range.low)
		return GJ_OK;
	GJ_TRY(gj_build_ask(queue, keys->nrows, stop, arg));
	table->low = range.low;
	table->nslots = (uint64_t) range.high - (uint64_t) range.low + 1;
	table->place = (uint32_t *) gj_alloc(queue, table->nslots * sizeof(uint32_t));
	status = table->place == NULL
				 ? gj_no_memory(queue)
				 : fill_places(queue, keys, rowid, &range, table, blocks, stop, arg, &unique);
	if (status != GJ_OK || !unique || table->kind == GJ_TABLE_DENSE)
	{
		gj_free(queue, table->place, table->nslots * sizeof(uint32_t));
		table->place = NULL;
	}
	if (status != GJ_OK || !unique)
	{
		memset(table, 0, sizeof(*table));
		return status;
	}
	table->nrows = range.nrows;
	table->max_count = 1;
	table->in_order = true;
	return GJ_OK;
}

/* ---- columns in the order of keys */

template <typename T>
static __global__ void
__launch_bounds__(GJ_THREADS) order_values(const uint32_t *place, uint32_t n, const T *from, T *to)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		to[i] = from[place[i]];
}

template <typename T>
static GjStatus
order(GjQueue *queue, const GjHashTable *table, void *to, const void *from)
{
	order_values<T><<<gj_blocks(table->nslots, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		table->place, (uint32_t) table->nslots, (const T *) from, (T *) to);
	GJ_LAUNCHED(queue, "order_values");
	return GJ_OK;
}

GjStatus
gj_order_by_place(GjQueue *queue, const GjHashTable *table, void *to, const void *from,
				  uint32_t width)
{
	GJ_TRY(gj_enter(queue));
	switch (width)
	{
		case 1:
			return order<uint8_t>(queue, table, to, from);
		case 2:
			return order<uint16_t>(queue, table, to, from);
		case 4:
			return order<uint32_t>(queue, table, to, from);
		case 8:
			return order<uint64_t>(queue, table, to, from);
		default:
			return order<uint4>(queue, table, to, from);
	}
}
