/*
 * join_hash.cu
 *	  The hash join: build a table, probe it, expand the matches to pairs.
 *
 * Build.  Each row claims a slot, or finds the one that a row with its keys has claimed
 * (join_hash.cuh): here, with one 32-bit compare-and-swap, since keys are compared through
 * the key arrays of the owner; where the table is beyond L2, by partitions (join_radix.cu).
 * The count of the slot numbers the rows of a key.  If every key turns out to be unique and
 * none is NULL, the table is finished as it stands: row number = owner.  Otherwise a scan
 * over the counts gives each key its range and every row goes to its place in it.
 *
 * A single key whose values are unique and dense needs none of this (join_direct.cu).
 *
 * Probe.  One thread a tuple, one 16-byte load a slot, then a scan over the counts.
 *
 * Where keys are unique, tuples that have found their row write the pair at once
 * (join_unique.cuh).
 *
 * Expand.  Blocks take equal ranges of pairs, whatever tuples they belong to, and find
 * them by binary search over the scan (Green, McColl, Bader: "GPU Merge Path", ICS 2012,
 * in its load-balancing form).
 */
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/transform_iterator.h>

#include "join_hash.cuh"
#include "join_unique.cuh"
#include "table.cuh"

#define MIN_SLOTS 1024
#define SMALL_TABLE (1u << 17) /* rows; such tables are sparse, if L2 is large: GJ_SPARSE_ROWS */
#define PIECE (1u << 22)       /* rows that one launch of the build takes */
#define STOP_ROWS (1u << 23)   /* from so many on a pass is waited for, and stop asked */
#define PAIRS 1024             /* of a block of expand_pairs */
#define TUPLES 2048            /* tuples whose offsets such a block keeps */

/* ---- build */

static __global__ void
__launch_bounds__(GJ_THREADS) clear_slots(GjHashSlot *slots, uint64_t nslots)
{
	const uint64_t step = (uint64_t) gridDim.x * GJ_THREADS;

	for (uint64_t s = (uint64_t) blockIdx.x * GJ_THREADS + threadIdx.x; s < nslots; s += step)
		*(uint4 *) &slots[s] = make_uint4(0, 0, GJ_NO_OWNER, 0);
}

/*
 * Adds one to the count of slot s, for all lanes in `lanes` that call it together;
 * returns the count before.  Lanes with the slot of the first lane are counted at
 * once, so a key that most rows have costs one atomic operation a warp.
 */
static __device__ __forceinline__ uint32_t
count_row(GjHashSlot *slots, uint32_t s, uint32_t lanes)
{
	const uint32_t lane = threadIdx.x % 32;
	const int leader = __ffs(lanes) - 1;
	const bool same = __shfl_sync(lanes, s, leader) == s;
	const uint32_t group = __ballot_sync(lanes, same);
	uint32_t before = 0;

	if ((int) lane == leader || !same)
		before = atomicAdd(&slots[s].count, same ? (uint32_t) __popc(group) : 1u);
	if (same)
		before = __shfl_sync(group, before, leader) + __popc(group & ((1u << lane) - 1));
	return before;
}

/* Rows first .. end-1: each row's slot and its rank in it. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	build_claim(const __grid_constant__ GjBuild build, uint32_t first, uint32_t end)
{
	const uint32_t i = first + blockIdx.x * GJ_THREADS + threadIdx.x;
	const bool in_table = i < end && !build.keys.null[i];
	const int nrows = __syncthreads_count(in_table);
	const uint32_t lanes = __ballot_sync(0xFFFFFFFF, in_table);
	uint32_t slot = GJ_NO_OWNER;
	uint32_t rank = 0;
	uint32_t max_rank;

	if (in_table)
	{
		slot = gj_claim_slot(build, i, gj_hash_keys(&build.keys, i));
		__syncwarp(lanes);
		rank = count_row(build.slots, slot, lanes);
	}
	if (i < end)
	{
		build.slot_of[i] = slot;
		build.rank[i] = rank;
	}
	__syncwarp();
	max_rank = __reduce_max_sync(0xFFFFFFFF, rank);
	/* a value that is not the latest costs an atomic operation, no more */
	if (threadIdx.x % 32 == 0 && max_rank > build.results->max_rank)
		atomicMax(&build.results->max_rank, max_rank);
	if (threadIdx.x == 0 && nrows > 0)
		atomicAdd(&build.results->nrows, (uint32_t) nrows);
}

/* Unique keys: row number i is input row i. */
static __global__ void
__launch_bounds__(GJ_THREADS) build_rows_unique(GjBuild build, uint32_t n)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i >= n)
		return;
	build.rows[i] = build.rowid ? build.rowid[i] : i;
	if (build.key_row)
		build.key_row[i] = i;
}

/* The ranges of the keys are known: every row goes to its place. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	build_rows(GjBuild build, const uint32_t *start, uint32_t first, uint32_t end)
{
	const uint32_t position = first + blockIdx.x * GJ_THREADS + threadIdx.x;
	uint32_t i;
	uint32_t slot;
	uint32_t rank;
	uint32_t at;

	if (position >= end)
		return;
	slot = build.slot_of[position];
	if (slot == GJ_NO_OWNER)
		return;
	i = build.order ? build.order[position] : position;
	rank = build.rank[position];
	at = start[slot] + rank;
	build.rows[at] = build.rowid ? build.rowid[i] : i;
	if (build.key_row)
		build.key_row[at] = i;
	/* every slot in use has one row of rank 0 */
	if (rank == 0)
		build.slots[slot].start = at;
}

/* Count of a slot, as CUB reads it. */
struct SlotCount
{
	__host__ __device__ uint32_t
	operator()(const GjHashSlot &slot) const
	{
		return slot.count;
	}
};

GjStatus
gj_build_ask(GjQueue *queue, uint32_t nrows, bool (*stop)(void *), void *arg)
{
	if (nrows < STOP_ROWS || stop == NULL)
		return GJ_OK;
	GJ_CUDA(queue, cudaStreamSynchronize(queue->stream));
	return stop(arg) ? GJ_CANCELLED : GJ_OK;
}

/* Launches build_claim or build_rows over all rows, in pieces where they are many. */
template <typename Launch>
static GjStatus
in_pieces(GjQueue *queue, uint32_t n, bool (*stop)(void *), void *arg, Launch launch)
{
	for (uint64_t first = 0; first < n; first += PIECE)
	{
		uint32_t end = (uint32_t) (n - first > PIECE ? first + PIECE : n);

		GJ_TRY(launch((uint32_t) first, end));
		if (n <= 2 * PIECE || stop == NULL)
			continue;
		GJ_CUDA(queue, cudaStreamSynchronize(queue->stream));
		if (stop(arg))
			return GJ_CANCELLED;
	}
	return GJ_OK;
}

/* Claims the slots of all rows; the results then say what the keys are like. */
static GjStatus
build_slots(GjQueue *queue, const GjBuild &build, bool (*stop)(void *), void *arg)
{
	auto launch = [&](uint32_t first, uint32_t end) -> GjStatus
	{
		build_claim<<<gj_blocks(end - first, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
			build, first, end);
		GJ_LAUNCHED(queue, "build_claim");
		return GJ_OK;
	};

	GJ_CUDA(queue,
			cudaMemsetAsync(&queue->results->max_rank, 0, 2 * sizeof(uint32_t), queue->stream));
	clear_slots<<<min(gj_blocks(build.nslots, GJ_THREADS), queue->device->nprocessors * 16u),
				  GJ_THREADS, 0, queue->stream>>>(build.slots, build.nslots);
	GJ_LAUNCHED(queue, "clear_slots");
	GJ_TRY(in_pieces(queue, build.npositions, stop, arg, launch));
	return gj_wait(queue);
}

/* Gives every key its range of rows; start[nslots] is scratch. */
static GjStatus
build_ranges(GjQueue *queue, const GjBuild &build, uint32_t *start, bool (*stop)(void *), void *arg)
{
	const thrust::transform_iterator<SlotCount, const GjHashSlot *> counts(build.slots,
																		   SlotCount());
	auto launch = [&](uint32_t first, uint32_t end) -> GjStatus
	{
		build_rows<<<gj_blocks(end - first, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
			build, start, first, end);
		GJ_LAUNCHED(queue, "build_rows");
		return GJ_OK;
	};

	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, counts, start, build.nslots);
	return in_pieces(queue, build.npositions, stop, arg, launch);
}

/* All rows have their slots, as the results of the queue say: makes the table of them. */
static GjStatus
finish_table(GjQueue *queue, const GjBuild &build, bool (*stop)(void *), void *arg,
			 GjHashTable *table)
{
	const uint32_t n = build.keys.nrows;
	const size_t start_bytes = build.nslots * sizeof(uint32_t);
	uint32_t *start;
	GjStatus status;

	table->nrows = queue->pinned->results.nrows;
	if (table->nrows == 0)
		return GJ_OK;
	table->max_count = queue->pinned->results.max_rank + 1;
	if (table->max_count == 1 && table->nrows == n)
	{
		build_rows_unique<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(build, n);
		GJ_LAUNCHED(queue, "build_rows_unique");
		table->in_order = build.rowid == NULL;
		return GJ_OK;
	}
	start = (uint32_t *) gj_alloc(queue, start_bytes);
	if (start == NULL)
		return gj_no_memory(queue);
	status = build_ranges(queue, build, start, stop, arg);
	gj_free(queue, start, start_bytes);
	return status;
}

/* Slots for n rows; 0 if their numbers do not fit 32 bits. */
static uint64_t
slots_for(const GjQueue *queue, uint32_t n)
{
	const uint64_t sparse = (uint64_t) n * 4;
	uint64_t nslots = (uint64_t) n * 2;

	if (nslots >= GJ_NO_OWNER)
		nslots = (uint64_t) n + n / 2;
	if (n <= SMALL_TABLE && sparse * sizeof(GjHashSlot) <= queue->device->l2_bytes / 4)
		nslots = sparse;
	if (nslots < MIN_SLOTS)
		nslots = MIN_SLOTS;
	return nslots < GJ_NO_OWNER ? nslots : 0;
}

/* The key arrays are the table's now; it frees those that no probe reads. */
static void
take_keys(GjQueue *queue, const GjKeys *keys, GjHashTable *table)
{
	table->keys = *keys;
	gj_free(queue, keys->null, keys->nrows);
	table->keys.null = NULL;
	for (uint32_t k = 0; k < keys->nkeys && (keys->nkeys == 1 || table->wide != NULL); k++)
	{
		gj_free(queue, keys->value[k], (size_t) keys->nrows * sizeof(int64_t));
		table->keys.value[k] = NULL;
	}
}

static bool
alloc_table(GjQueue *queue, GjBuild *build)
{
	const size_t row_bytes = (size_t) build->keys.nrows * sizeof(uint32_t);

	build->slots = (GjHashSlot *) gj_alloc(queue, build->nslots * sizeof(GjHashSlot));
	build->slot_of = (uint32_t *) gj_alloc(queue, row_bytes);
	build->rank = (uint32_t *) gj_alloc(queue, row_bytes);
	build->rows = (uint32_t *) gj_alloc(queue, row_bytes);
	if (build->keys.nkeys > 1)
		build->key_row = (uint32_t *) gj_alloc(queue, row_bytes);
	return build->slots && build->slot_of && build->rank && build->rows &&
		   (build->keys.nkeys == 1 || build->key_row);
}

/* Partitions are first, and their keys last as long as the claims: that is the peak. */
static GjStatus
build_table(GjQueue *queue, GjBuild *build, bool (*stop)(void *), void *arg, GjHashTable *table)
{
	const bool radix =
		build->keys.nrows > 0 && build->nslots * sizeof(GjHashSlot) > queue->device->radix_bytes;
	GjPartitions partitions = {};
	GjStatus status;

	if (radix)
		GJ_TRY(gj_radix_partition(queue, &build->keys, build->nslots, stop, arg, &partitions));
	if (!alloc_table(queue, build))
		status = gj_no_memory(queue);
	else
		status = radix ? gj_radix_claim(queue, build, &partitions)
					   : build_slots(queue, *build, stop, arg);
	gj_radix_free(queue, &partitions);
	table->partitioned = radix;
	return status == GJ_OK ? finish_table(queue, *build, stop, arg, table) : status;
}

static GjStatus
gj_hash_build(GjQueue *queue, const GjKeys *keys, const uint32_t *rowid, uint64_t most_bytes,
			  bool (*stop)(void *), void *arg, GjHashTable *table)
{
	const size_t row_bytes = (size_t) keys->nrows * sizeof(uint32_t);
	GjBuild build = {};
	GjStatus status;

	memset(table, 0, sizeof(*table));
	GJ_TRY(gj_enter(queue));
	GJ_TRY(gj_direct_build(queue, keys, rowid, most_bytes, stop, arg, table));
	if (gj_table_is_direct(table))
	{
		take_keys(queue, keys, table);
		return GJ_OK;
	}
	build.nslots = slots_for(queue, keys->nrows);
	if (build.nslots == 0)
		return GJ_TOO_LARGE;
	build.keys = *keys;
	build.npositions = keys->nrows;
	build.rowid = rowid;
	build.results = queue->results;
	status = build_table(queue, &build, stop, arg, table);

	gj_free(queue, build.order, row_bytes);
	gj_free(queue, build.slot_of, row_bytes);
	gj_free(queue, build.rank, row_bytes);
	table->kind = GJ_TABLE_HASH;
	table->slots = build.slots;
	table->nslots = build.nslots;
	table->rows = build.rows;
	table->key_row = build.key_row;
	if (status == GJ_OK)
		status = gj_widen(queue, keys, most_bytes, table);
	if (status != GJ_OK)
		gj_hash_free(queue, table);
	else
		take_keys(queue, keys, table);
	return status;
}

void
gj_hash_free(GjQueue *queue, GjHashTable *table)
{
	const size_t nrows = table->keys.nrows;

	gj_free(queue, table->slots, table->nslots * sizeof(GjHashSlot));
	gj_free(queue, table->wide, table->nslots * sizeof(GjWideSlot));
	gj_free(queue, table->place, table->nslots * sizeof(uint32_t));
	gj_free(queue, table->payloads, table->nslots * sizeof(uint32_t));
	gj_free(queue, table->key_filter, table->nkey_filter * sizeof(uint32_t));
	gj_free(queue, table->bucket, (table->nslots + 1) * sizeof(uint32_t));
	gj_free(queue, table->rows, nrows * sizeof(uint32_t));
	gj_free(queue, table->key_row, nrows * sizeof(uint32_t));
	for (uint32_t k = 0; k < table->keys.nkeys; k++)
		gj_free(queue, table->keys.value[k], nrows * sizeof(int64_t));
	gj_free(queue, table->keys.null, nrows);
	memset(table, 0, sizeof(*table));
}

/* ---- probe */

/* How a table with slots is looked up. */
enum Form
{
	ONE_KEY,
	TWO_KEYS, /* in wide slots */
	SEVERAL
};

/*
 * The slot of the keys of row i, from slot s on, which was loaded: found, or the empty one that
 * ends the search.
 */
template <Form form>
static __device__ __forceinline__ GjHashSlot
find_slot_from(const GjTableRef &table, const GjKeys &keys, uint32_t i, uint64_t s, GjHashSlot slot)
{
	const uint64_t wanted = form == ONE_KEY ? (uint64_t) keys.value[0][i] : gj_hash_keys(&keys, i);

	return HashRef<uint64_t>(table).find_from(
		s, slot,
		[&](const GjHashSlot &other)
		{
			return other.key == wanted &&
				   (form == ONE_KEY || gj_keys_equal(keys.nkeys, keys.value, i, table.key_value,
													 table.key_row[other.start]));
		});
}

template <Form form>
static __device__ __forceinline__ GjHashSlot
find_slot(const GjTableRef &table, const GjKeys &keys, uint32_t i)
{
	if (form == TWO_KEYS)
	{
		const uint64_t key[] = {(uint64_t) keys.value[0][i], (uint64_t) keys.value[1][i]};

		return WideRef(table).find(key, gj_hash_keys(&keys, i));
	}

	const uint64_t s = HashRef<uint64_t>(table).home(gj_hash_keys(&keys, i));

	return find_slot_from<form>(table, keys, i, s, gj_load_slot(table.slots, s));
}

/* The row of the key of row i in a table without slots, or GJ_NO_ROW. */
static __device__ __forceinline__ uint32_t
find_place(const GjTableRef &table, const GjKeys &keys, uint32_t i)
{
	return PlaceRef<uint64_t>(table).find(keys.value[0][i]);
}

/* first[i], and in offset[i] the number of matches; offset[n] = 0. */
template <Form form>
static __global__ void
__launch_bounds__(GJ_THREADS)
	probe_keys(const __grid_constant__ GjTableRef table, const __grid_constant__ GjKeys keys,
			   bool unique, uint64_t *offset, uint32_t *first)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	GjHashSlot slot = {};

	if (i > keys.nrows)
		return;
	if (i == keys.nrows)
	{
		offset[i] = 0;
		return;
	}
	if (!keys.null[i])
	{
		if (!gj_kind_is_direct(table.kind))
			slot = find_slot<form>(table, keys, i);
		else
		{
			slot.start = find_place(table, keys, i);
			slot.count = slot.start != GJ_NO_ROW;
		}
	}
	/* where keys are unique, it may be a payload */
	offset[i] = unique ? slot.count != 0 : slot.count;
	first[i] = slot.count ? slot.start : 0;
}

GjStatus
gj_sum_counts(GjQueue *queue, uint64_t *offset, uint32_t n, uint64_t *total)
{
	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, offset, offset, (uint64_t) n + 1);
	GJ_CUDA(queue, cudaMemcpyAsync(&queue->results->total, offset + n, sizeof(uint64_t),
								   cudaMemcpyDeviceToDevice, queue->stream));
	GJ_TRY(gj_wait(queue));
	*total = queue->pinned->results.total;
	return GJ_OK;
}

static GjStatus
gj_hash_probe(GjQueue *queue, const GjHashTable *table, const GjKeys *keys, uint64_t *offset,
			  uint32_t *first, uint64_t *total)
{
	const uint32_t blocks = gj_blocks((uint64_t) keys->nrows + 1, GJ_THREADS);
	const GjTableRef ref = gj_table_ref(table);
	const bool unique = table->max_count == 1;

	*total = 0;
	GJ_TRY(gj_enter(queue));
	if (keys->nkeys == 1)
		probe_keys<ONE_KEY>
			<<<blocks, GJ_THREADS, 0, queue->stream>>>(ref, *keys, unique, offset, first);
	else if (table->kind == GJ_TABLE_WIDE)
		probe_keys<TWO_KEYS>
			<<<blocks, GJ_THREADS, 0, queue->stream>>>(ref, *keys, unique, offset, first);
	else
		probe_keys<SEVERAL>
			<<<blocks, GJ_THREADS, 0, queue->stream>>>(ref, *keys, unique, offset, first);
	GJ_LAUNCHED(queue, "probe_keys");
	return gj_sum_counts(queue, offset, keys->nrows, total);
}

/* ---- expand */

typedef struct Pairs
{
	const uint64_t *offset;
	const uint32_t *first;
	const uint32_t *rows; /* NULL: rows[i] = i */
	uint32_t ntuples;
	GjPairColumns columns;
} Pairs;

/* Writes pairs cursor .. cursor+n-1, PAIRS of them a block. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	expand_pairs(const __grid_constant__ Pairs pairs, uint64_t cursor, uint32_t n)
{
	/* offsets of the block's tuples, counted from its first pair */
	__shared__ uint32_t relative[TUPLES];
	__shared__ uint32_t bounds[2];
	const uint32_t base = blockIdx.x * PAIRS;
	const uint32_t npairs = min((uint32_t) PAIRS, n - base);
	const uint64_t first_pair = cursor + base;
	uint32_t low;
	uint32_t ntuples;

	/* the tuples of the first and of the last pair */
	if (threadIdx.x < 2)
		bounds[threadIdx.x] = gj_last_at_most(pairs.offset, 0, pairs.ntuples,
											  first_pair + (threadIdx.x == 0 ? 0 : npairs - 1));
	__syncthreads();
	low = bounds[0];
	ntuples = bounds[1] - low + 1;
	if (ntuples <= TUPLES)
	{
		for (uint32_t t = threadIdx.x; t < ntuples; t += GJ_THREADS)
		{
			const uint64_t offset = pairs.offset[low + t];

			relative[t] = offset > first_pair ? (uint32_t) (offset - first_pair) : 0;
		}
	}
	__syncthreads();

	for (uint32_t j = threadIdx.x; j < npairs; j += GJ_THREADS)
	{
		const uint64_t pair = first_pair + j;
		uint32_t tuple;
		uint32_t number;

		if (ntuples <= TUPLES)
		{
			uint32_t a = 0;
			uint32_t b = ntuples;

			while (b - a > 1)
			{
				const uint32_t mid = a + (b - a) / 2;

				if (relative[mid] <= j)
					a = mid;
				else
					b = mid;
			}
			tuple = low + a;
		}
		else
			tuple = gj_last_at_most(pairs.offset, low, low + ntuples, pair);

		number = (uint32_t) (pair - pairs.offset[tuple]);
		for (uint32_t c = 0; c < pairs.columns.n; c++)
		{
			const GjPairColumn &column = pairs.columns.column[c];

			if (column.build_side)
			{
				const uint32_t row = pairs.first[tuple] + number;

				column.out[base + j] = pairs.rows ? pairs.rows[row] : row;
			}
			else
				column.out[base + j] = column.rowid ? column.rowid[tuple] : tuple;
		}
	}
}

static GjStatus
gj_hash_expand(GjQueue *queue, const GjHashTable *table, const GjView *view, const uint64_t *offset,
			   const uint32_t *first, uint64_t cursor, uint32_t n, uint32_t build_source,
			   uint32_t *const out[GJ_MAX_SOURCES])
{
	Pairs pairs = {};

	GJ_TRY(gj_enter(queue));
	if (n == 0 || view->nrows == 0)
		return GJ_OK;
	pairs.offset = offset;
	pairs.first = first;
	pairs.rows = table->in_order ? NULL : table->rows;
	pairs.ntuples = view->nrows;
	pairs.columns = gj_pair_columns(view, build_source, out);
	expand_pairs<<<gj_blocks(n, PAIRS), GJ_THREADS, 0, queue->stream>>>(pairs, cursor, n);
	GJ_LAUNCHED(queue, "expand_pairs");
	return GJ_OK;
}

/* ---- both at once, of unique keys */

template <Form form>
struct FindHashed
{
	GjTableRef table;
	GjKeys tuples;

	typedef GjHashSlot Start; /* the slot that the hash asks for */

	__device__ __forceinline__ GjHashSlot
	start(uint32_t i) const
	{
		return tuples.null[i] ? GjHashSlot{} : gj_load_slot(table.slots, home(i));
	}
	/* The hash is worked out anew: registers are scarcer than time while slots are loaded. */
	__device__ __forceinline__ uint32_t
	row(uint32_t i, const GjHashSlot &start) const
	{
		const GjHashSlot slot = find_slot_from<form>(table, tuples, i, home(i), start);

		if (slot.count == 0)
			return GJ_NO_ROW;
		return table.rows == NULL ? slot.start : __ldg(&table.rows[slot.start]);
	}
	__device__ __forceinline__ uint64_t
	home(uint32_t i) const
	{
		return HashRef<uint64_t>(table).home(gj_hash_keys(&tuples, i));
	}
};

struct FindWide
{
	GjTableRef table;
	GjKeys tuples;

	typedef GjWideSlot Start; /* the slot that the hash asks for */

	__device__ __forceinline__ GjWideSlot
	start(uint32_t i) const
	{
		const WideRef ref(table);

		return tuples.null[i] ? GjWideSlot{} : ref.load(ref.home(gj_hash_keys(&tuples, i)));
	}
	__device__ __forceinline__ uint32_t
	row(uint32_t i, const GjWideSlot &start) const
	{
		const WideRef ref(table);
		const uint64_t key[] = {(uint64_t) tuples.value[0][i], (uint64_t) tuples.value[1][i]};
		const GjHashSlot slot = ref.find_from(key, ref.home(gj_hash_keys(&tuples, i)), start);

		if (slot.count == 0)
			return GJ_NO_ROW;
		return table.rows == NULL ? slot.start : __ldg(&table.rows[slot.start]);
	}
};

struct FindPlace
{
	GjTableRef table;
	GjKeys tuples;

	typedef uint32_t Start;

	__device__ __forceinline__ uint32_t
	start(uint32_t i) const
	{
		return tuples.null[i] ? GJ_NO_ROW : find_place(table, tuples, i);
	}
	__device__ __forceinline__ uint32_t
	row(uint32_t i, uint32_t start) const
	{
		return start;
	}
};

static GjStatus
gj_join_unique(GjQueue *queue, const GjHashTable *table, const GjKeys *keys,
			   const GjSortedMatch *match, const GjView *view, uint32_t build_source,
			   uint32_t *const out[GJ_MAX_SOURCES], uint32_t *npairs)
{
	const GjPairColumns pairs = gj_pair_columns(view, build_source, out);
	const GjTableRef ref = gj_table_ref(table);
	const uint32_t n = keys->nrows;

	*npairs = 0;
	GJ_TRY(gj_enter(queue));
	if (gj_table_is_direct(table))
		return gj_match_tuples<8>(queue, FindPlace{ref, *keys}, n, pairs, npairs);
	if (table->kind == GJ_TABLE_SORTED)
		return gj_sort_match(queue, table, keys, match, pairs, npairs);
	if (table->kind == GJ_TABLE_WIDE)
		return gj_match_tuples<4>(queue, FindWide{ref, *keys}, n, pairs, npairs);
	if (keys->nkeys == 1)
		return gj_match_tuples<8>(queue, FindHashed<ONE_KEY>{ref, *keys}, n, pairs, npairs);
	return gj_match_tuples<8>(queue, FindHashed<SEVERAL>{ref, *keys}, n, pairs, npairs);
}

const GjTableOps gj_cuda_tables = {
	.reads_payloads = true,
	.asks_filters = true,
	.joins_unique = true,
	.widens = true,
	.hash_build = gj_hash_build,
	.hash_free = gj_hash_free,
	.order_by_place = gj_order_by_place,
	.hash_payload = gj_hash_payload,
	.hash_filter = gj_hash_filter,
	.filter_helps = gj_filter_helps,
	.sort_build = gj_sort_build,
	.sort_probe = gj_sort_probe,
	.hash_probe = gj_hash_probe,
	.hash_expand = gj_hash_expand,
	.join_unique = gj_join_unique,
	.nested_loop = gj_nested_loop,
	.flag_counts = gj_flag_counts,
	.mark_rows = gj_mark_rows,
	.mark_tuples = gj_mark_tuples,
	.mark_ranges = gj_mark_ranges,
	.cover_rows = gj_cover_rows,
};
