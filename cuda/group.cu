/*
 * group.cu
 *	  Groups: keys of tuples, the table of groups, and their aggregates.
 *
 * Table.  A tuple that finds no group claims an empty slot with one 64-bit
 * compare-and-swap and stands for its group until all tuples have been looked up; then the
 * tuples that own a slot are numbered (CUB) and become groups.  Keys are compared through
 * arrays that were complete before, so no thread ever waits for another one.
 *
 * Aggregates.  Every step is an atomic operation on the state of the group, or, where
 * there are few groups and many tuples, on a table of the block in shared memory, which
 * is added to the states at the end.  That table has as many copies as fit, and
 * neighbouring lanes use different ones: a hot group costs little more than any other.
 * What a state is until group_finish, group_state.cuh says.
 */
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "rows/aggregate.h"
#include "device/group.h"
#include "group_state.cuh"
#include "tile.cuh"

#define MAX_SHARE 4          /* aggregates of one argument that are made together */
#define TILE_ROWS GJ_THREADS /* of group_aggregate, to leave room for the table */
#define LOCAL_BYTES (48 * 1024)
#define MAX_COPIES 32
#define LOCAL_ROWS 8 /* tuples a block and local state, at least, that make it worth while */

/* ---- keys */

typedef struct Keys
{
	GjGroupKey key[GJ_MAX_GROUP_KEYS];
} Keys;

/* One tile a block; a row of it belongs to one thread, which sees what it wrote before. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	group_keys(GjCode code, const __grid_constant__ GjView view, uint32_t first,
			   const __grid_constant__ Keys keys, const __grid_constant__ GjGroupRows rows,
			   uint32_t nregisters, uint32_t tile_rows, GjResults *results)
{
	extern __shared__ int64_t memory[];
	const GjTile tile = gj_tile_at(memory, nregisters, tile_rows);
	const uint32_t done = blockIdx.x * tile_rows;
	const uint32_t n = min(tile_rows, rows.nrows - done);
	uint32_t status = GJ_OK;

	for (uint32_t k = 0; k < rows.nkeys; k++)
	{
		const uint32_t index = keys.key[k].index;
		const bool computed = keys.key[k].how <= GJ_GROUP_FLOAT;
		const uint32_t result = computed ? code.exprs[index].result * tile_rows : 0;

		if (computed)
			gj_eval(&code, index, &view, first + done, n, &tile, &status);
		GJ_TILE_FOR(i, n)
		{
			const uint32_t at = done + i;
			bool null;
			int64_t value;

			if (computed)
			{
				null = tile.null[result + i] != 0;
				value = tile.value[result + i];
			}
			else
			{
				const GjColumn *column = &view.columns[index];
				const uint32_t row =
					gj_view_row(&view, code.columns[index].source, first + done + i);

				null = gj_row_is_null(column, row);
				value = null ? 0 : gj_group_carried(column, row);
			}
			rows.value[k][at] = null ? 0 : value;
			rows.null[at] = (k == 0 ? 0 : rows.null[at]) | (uint32_t) null << k;
			rows.hash[at] = gj_group_hash(&rows, k, at, null, k == 0 ? 0 : rows.hash[at], &status);
		}
	}
	gj_note_error(results, status);
}

static GjStatus
gj_group_keys(GjQueue *queue, const GjView *view, uint32_t first, const GjGroupRows *rows)
{
	const GjGroupKey *group_keys_of;
	uint32_t nregisters = 1;
	uint32_t tile_rows;
	Keys keys = {};

	GJ_TRY(gj_enter(queue));
	if (rows->nrows == 0)
		return GJ_OK;
	group_keys_of = gj_program_array(queue->program, GjGroupKey, group_keys);
	for (uint32_t k = 0; k < rows->nkeys; k++)
	{
		keys.key[k] = group_keys_of[k];
		if (keys.key[k].how <= GJ_GROUP_FLOAT)
			nregisters =
				max(nregisters, (uint32_t) gj_queue_expr(queue, keys.key[k].index)->nregisters);
	}
	tile_rows = gj_tile_rows(nregisters);
	group_keys<<<gj_blocks(rows->nrows, tile_rows), GJ_THREADS, gj_tile_bytes(nregisters),
				 queue->stream>>>(queue->code, *view, first, keys, *rows, nregisters, tile_rows,
								  queue->results);
	GJ_LAUNCHED(queue, "group_keys");
	return GJ_OK;
}

/* ---- the table */

static __global__ void
__launch_bounds__(GJ_THREADS) group_enter(const __grid_constant__ GjGroups groups)
{
	const uint32_t g = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint64_t hash;

	if (g >= groups.rows.nrows)
		return;
	hash = groups.rows.hash[g];
	gj_enter_slot(groups.slots, groups.nslots, gj_hash_slot(hash, groups.nslots),
				  gj_group_slot(hash, g));
}

static GjStatus
gj_group_rehash(GjQueue *queue, const GjGroups *groups)
{
	GJ_TRY(gj_enter(queue));
	GJ_CUDA(queue,
			cudaMemsetAsync(groups->slots, 0xFF, groups->nslots * sizeof(uint64_t), queue->stream));
	if (groups->rows.nrows == 0)
		return GJ_OK;
	group_enter<<<gj_blocks(groups->rows.nrows, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		*groups);
	GJ_LAUNCHED(queue, "group_enter");
	return GJ_OK;
}

/* In slot_of: the row is the one that stands in its slot.  There are at most 2^31 slots. */
#define OWNS_SLOT (UINT32_C(1) << 31)

static __global__ void
__launch_bounds__(GJ_THREADS)
	group_look_up(const __grid_constant__ GjGroupRows rows, const __grid_constant__ GjGroups groups,
				  uint32_t *slot_of)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint64_t hash;
	uint64_t mine;
	uint64_t s;

	if (i >= rows.nrows)
		return;
	hash = rows.hash[i];
	mine = gj_group_slot(hash, groups.rows.nrows + i);
	s = gj_hash_slot(hash, groups.nslots);
	for (;;)
	{
		/* a slot is written once in this launch: what is not empty stays */
		uint64_t slot = *(volatile unsigned long long *) gj_slot_address(groups.slots, s);

		if (slot == GJ_NO_SLOT)
			slot = atomicCAS(gj_slot_address(groups.slots, s), (unsigned long long) GJ_NO_SLOT,
							 (unsigned long long) mine);
		if (slot == GJ_NO_SLOT ||
			(slot >> 32 == mine >> 32 && gj_group_owns(&rows, i, &groups, (uint32_t) slot)))
		{
			slot_of[i] = (uint32_t) s | (slot == GJ_NO_SLOT ? OWNS_SLOT : 0);
			return;
		}
		if (++s == groups.nslots)
			s = 0;
	}
}

/* True for a row that stands in its slot. */
struct OwnsSlot
{
	const uint32_t *slot_of;

	__host__ __device__ bool
	operator()(uint32_t i) const
	{
		return (slot_of[i] & OWNS_SLOT) != 0;
	}
};

/* sizes[r] = bytes of the references of row positions[r], 0 from r = *n on. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	group_sizes(const __grid_constant__ GjGroupRows rows, const uint32_t *positions,
				const uint32_t *n, uint64_t *sizes)
{
	const uint32_t r = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (r <= rows.nrows)
		sizes[r] = r < *n ? gj_group_space(&rows, positions[r]) : 0;
}

static GjStatus
gj_group_find(GjQueue *queue, const GjGroupRows *rows, const GjGroups *groups, uint32_t *slot_of,
			  uint32_t *positions, uint64_t *heap_at, uint32_t *n, uint64_t *nbytes)
{
	const OwnsSlot owns = {slot_of};
	const bool refs = groups->heap_end != NULL;
	const uint64_t nsizes = (uint64_t) rows->nrows + 1;

	*n = 0;
	*nbytes = 0;
	GJ_TRY(gj_enter(queue));
	if (rows->nrows == 0)
		return gj_wait(queue);
	group_look_up<<<gj_blocks(rows->nrows, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		*rows, *groups, slot_of);
	GJ_LAUNCHED(queue, "group_look_up");
	GJ_CUB(queue, cub::DeviceSelect::If, thrust::counting_iterator<uint32_t>(0), positions,
		   &queue->results->n, (int64_t) rows->nrows, owns);
	if (refs)
	{
		group_sizes<<<gj_blocks(nsizes, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
			*rows, positions, &queue->results->n, heap_at);
		GJ_LAUNCHED(queue, "group_sizes");
		GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, heap_at, heap_at, nsizes);
		GJ_CUDA(queue, cudaMemcpyAsync(&queue->results->total, heap_at + rows->nrows,
									   sizeof(uint64_t), cudaMemcpyDeviceToDevice, queue->stream));
	}
	GJ_TRY(gj_wait(queue));
	*n = queue->pinned->results.n;
	if (refs)
		*nbytes = queue->pinned->results.total;
	return GJ_OK;
}

/* ---- states */

typedef struct Operators
{
	uint32_t n;
	uint8_t op[GJ_MAX_AGGREGATES];
	uint8_t aggregate[GJ_MAX_AGGREGATES]; /* which of the program's it is */
} Operators;

static Operators
operators_of(const GjProgram *program)
{
	const GjAggregate *aggregates = gj_program_array(program, GjAggregate, aggregates);
	Operators operators = {};

	operators.n = program->naggregates;
	for (uint32_t a = 0; a < operators.n; a++)
	{
		operators.op[a] = (uint8_t) aggregates[a].op;
		operators.aggregate[a] = (uint8_t) a;
	}
	return operators;
}

/* Leaves those whose states are not yet what GjAggState says: start_state, group_finish. */
static Operators
unfinished_of(const Operators &all)
{
	Operators left = {};

	for (uint32_t a = 0; a < all.n; a++)
	{
		switch (all.op[a])
		{
			case GJ_AGG_COUNT_STAR:
			case GJ_AGG_COUNT:
			case GJ_AGG_SUM_I:
				continue;
		}
		left.op[left.n] = all.op[a];
		left.aggregate[left.n++] = all.aggregate[a];
	}
	return left;
}

/* Aggregate blockIdx.y of `all`, a group a thread; `distinct` is the distinct key, or -1. */
static __global__ void
__launch_bounds__(GJ_THREADS) group_finish(const __grid_constant__ GjGroups groups,
										   const __grid_constant__ Operators all, int distinct)
{
	const uint32_t g = blockIdx.x * GJ_THREADS + threadIdx.x;
	const uint32_t op = all.op[blockIdx.y];
	GjAggState *state;

	if (g >= groups.rows.nrows)
		return;
	state = &groups.state[all.aggregate[blockIdx.y]][g];
	if (gj_agg_is_distinct(op))
	{
		if (distinct >= 0)
			gj_agg_distinct(op, state, groups.rows.null[g] >> distinct & 1,
							groups.rows.value[distinct][g]);
	}
	else if (state->count == 0)
		gj_agg_start(state);
	else if (op == GJ_AGG_SPREAD_F)
	{
		const double n = (double) state->count;
		const double sum = gj_bits_to_double(state->hi);
		const double spread = state->f - sum * sum / n;

		state->hi = gj_double_to_bits(n * gj_bits_to_double((int64_t) state->lo) + sum);
		state->lo = 0;
		/* a NaN stays */
		state->f = spread < 0.0 ? 0.0 : spread;
	}
	else if (op == GJ_AGG_MIN_F || op == GJ_AGG_MAX_F)
	{
		/* ordered_bits is its own inverse */
		state->f = gj_bits_to_double(state->hi ^ ((state->hi >> 63) & INT64_MAX));
		state->hi = 0;
	}
}

static GjStatus
gj_group_finish(GjQueue *queue, const GjGroups *groups)
{
	const GjProgram *program;
	Operators unfinished;
	int distinct = -1;

	GJ_TRY(gj_enter(queue));
	program = queue->program;
	unfinished = unfinished_of(operators_of(program));
	if (groups->rows.nrows == 0 || unfinished.n == 0)
		return GJ_OK;
	if (program->ndistinct_keys > 0 && groups->rows.nkeys == program->ngroup_keys)
		distinct = (int) program->ngroup_keys - 1;
	group_finish<<<dim3(gj_blocks(groups->rows.nrows, GJ_THREADS), unfinished.n), GJ_THREADS, 0,
				   queue->stream>>>(*groups, unfinished, distinct);
	GJ_LAUNCHED(queue, "group_finish");
	return GJ_OK;
}

/* ---- groups of groups */

static __global__ void
__launch_bounds__(GJ_THREADS)
	group_hash(const __grid_constant__ GjGroupRows rows, GjResults *results)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint32_t status = GJ_OK;

	if (i < rows.nrows)
		gj_group_hash_row(&rows, i, &status);
	gj_note_error(results, status);
}

static GjStatus
gj_group_hash(GjQueue *queue, const GjGroupRows *rows)
{
	GJ_TRY(gj_enter(queue));
	if (rows->nrows == 0)
		return GJ_OK;
	group_hash<<<gj_blocks(rows->nrows, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		*rows, queue->results);
	GJ_LAUNCHED(queue, "group_hash");
	return GJ_OK;
}

/* Aggregate blockIdx.y, a group a thread. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	group_merge(const __grid_constant__ GjGroups from, uint32_t first, uint32_t n,
				const uint32_t *group_of, const __grid_constant__ GjGroups groups,
				const __grid_constant__ Operators all)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	const uint32_t op = all.op[blockIdx.y];
	GjAggState state;

	if (i >= n)
		return;
	state = from.state[blockIdx.y][first + i];
	if (op == GJ_AGG_MIN_F || op == GJ_AGG_MAX_F)
		state.hi = ordered_bits(gj_double_to_bits(state.f));
	else if (op == GJ_AGG_SPREAD_F && state.count > 0)
	{
		const double sum = gj_bits_to_double(state.hi);
		const double mean = sum / (double) state.count;

		state.lo = (uint64_t) gj_double_to_bits(mean);
		state.hi = gj_double_to_bits(sum - mean * (double) state.count);
	}
	add_state(op, &groups.state[blockIdx.y][group_of[i]], state);
}

static GjStatus
gj_group_merge(GjQueue *queue, const GjGroups *from, uint32_t first, uint32_t n,
			   const uint32_t *group_of, const GjGroups *groups)
{
	GJ_TRY(gj_enter(queue));
	if (n == 0 || queue->program->naggregates == 0)
		return GJ_OK;
	group_merge<<<dim3(gj_blocks(n, GJ_THREADS), queue->program->naggregates), GJ_THREADS, 0,
				  queue->stream>>>(*from, first, n, group_of, *groups,
								   operators_of(queue->program));
	GJ_LAUNCHED(queue, "group_merge");
	return GJ_OK;
}

/* ---- new groups */

/* Row positions[r] becomes group ngroups + r. */
static __global__ void
__launch_bounds__(GJ_THREADS)
	group_store(const __grid_constant__ GjGroupRows rows, const __grid_constant__ GjGroups groups,
				const __grid_constant__ Operators all, const uint32_t *slot_of,
				const uint32_t *positions, const uint64_t *heap_at, uint32_t n, uint64_t heap_used)
{
	const uint32_t r = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint32_t i;
	uint32_t g;

	if (r >= n)
		return;
	i = positions[r];
	g = groups.rows.nrows + r;
	gj_group_store(&rows, i, &groups, g, heap_at ? heap_used + heap_at[r] : 0);
	groups.slots[slot_of[i] & ~OWNS_SLOT] = gj_group_slot(rows.hash[i], g);
	for (uint32_t a = 0; a < all.n; a++)
		start_state(all.op[a], &groups.state[a][g]);
}

/* Slots of rows become their groups. */
static __global__ void
__launch_bounds__(GJ_THREADS) group_number(const uint64_t *slots, uint32_t *slot_of, uint32_t n)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;

	if (i < n)
		slot_of[i] = (uint32_t) slots[slot_of[i] & ~OWNS_SLOT];
}

static GjStatus
gj_group_add(GjQueue *queue, const GjGroupRows *rows, const GjGroups *groups, uint32_t *slot_of,
			 const uint32_t *positions, const uint64_t *heap_at, uint32_t n, uint64_t heap_used)
{
	GJ_TRY(gj_enter(queue));
	if (n > 0)
	{
		group_store<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
			*rows, *groups, operators_of(queue->program), slot_of, positions,
			groups->heap_end ? heap_at : NULL, n, heap_used);
		GJ_LAUNCHED(queue, "group_store");
	}
	if (rows->nrows > 0)
	{
		group_number<<<gj_blocks(rows->nrows, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
			groups->slots, slot_of, rows->nrows);
		GJ_LAUNCHED(queue, "group_number");
	}
	return GJ_OK;
}

/* ---- aggregates */

/* Aggregates with one argument (-1: none), and how they are made. */
typedef struct Share
{
	uint32_t n;
	int32_t arg;
	uint32_t ngroups;
	uint32_t copies; /* of the table in shared memory; 0: there is none */
	uint32_t op[MAX_SHARE];
	GjAggState *state[MAX_SHARE];
} Share;

/* Tuples first .. first+n-1. */
template <bool local>
static __global__ void
__launch_bounds__(GJ_THREADS)
	group_aggregate(GjCode code, const __grid_constant__ GjView view, uint32_t first, uint32_t n,
					const uint32_t *group_of, const __grid_constant__ Share share,
					uint32_t nregisters, GjResults *results)
{
	extern __shared__ int64_t memory[];
	GjAggState *table = (GjAggState *) memory;
	const uint32_t nlocal = local ? share.copies * share.ngroups : 0; /* of one aggregate */
	const uint32_t copy = local ? threadIdx.x % share.copies * share.ngroups : 0;
	const GjTile tile =
		gj_tile_at(memory + (size_t) share.n * nlocal * (sizeof(GjAggState) / sizeof(int64_t)),
				   nregisters, TILE_ROWS);
	const uint32_t result = share.arg >= 0 ? code.exprs[share.arg].result * TILE_ROWS : 0;
	uint32_t status = GJ_OK;

	if constexpr (local)
	{
		for (uint32_t s = threadIdx.x; s < share.n * nlocal; s += GJ_THREADS)
			start_state(share.op[s / nlocal], &table[s]);
		__syncthreads();
	}
	for (uint64_t base = (uint64_t) blockIdx.x * TILE_ROWS; base < n;
		 base += (uint64_t) gridDim.x * TILE_ROWS)
	{
		const uint32_t m = (uint32_t) min((uint64_t) TILE_ROWS, n - base);

		if (share.arg >= 0)
			gj_eval(&code, share.arg, &view, first + (uint32_t) base, m, &tile, &status);
		GJ_TILE_FOR(i, m)
		{
			const uint32_t g = group_of[base + i];
			int64_t value = 0;

			if (share.arg >= 0)
			{
				if (tile.null[result + i])
					continue;
				value = tile.value[result + i];
			}
#pragma unroll
			for (uint32_t k = 0; k < MAX_SHARE; k++)
			{
				if (k < share.n)
					add_value(share.op[k],
							  local ? &table[k * nlocal + copy + g] : &share.state[k][g], value);
			}
		}
	}
	gj_note_error(results, status);
	if constexpr (local)
	{
		__syncthreads();
		for (uint32_t s = threadIdx.x; s < share.n * share.ngroups; s += GJ_THREADS)
		{
			const uint32_t k = s / share.ngroups;
			const uint32_t g = s % share.ngroups;
			GjAggState sum;

			start_state(share.op[k], &sum);
			for (uint32_t c = 0; c < share.copies; c++)
				combine(share.op[k], &sum, table[k * nlocal + c * share.ngroups + g]);
			add_state(share.op[k], &share.state[k][g], sum);
		}
	}
}

/* Bytes of shared memory. */
static size_t
share_bytes(const Share &share, uint32_t nregisters)
{
	return (size_t) share.n * share.copies * share.ngroups * sizeof(GjAggState) +
		   (size_t) nregisters * TILE_ROWS * (sizeof(int64_t) + 1);
}

/* Blocks for n tuples if the share has a table, which must be worth while. */
static uint32_t
local_blocks(const GjQueue *queue, const Share &share, uint32_t n)
{
	const uint32_t tiles = gj_blocks(n, TILE_ROWS);
	const uint64_t most = n / ((uint64_t) share.ngroups * LOCAL_ROWS);
	const uint32_t wanted = min(tiles, (uint32_t) queue->device->nprocessors * 4);

	if (most < min(wanted, (uint32_t) queue->device->nprocessors))
		return 0;
	return (uint32_t) min((uint64_t) wanted, most);
}

/* The share that starts with aggregate `first`; tables in shared memory where they fit. */
static Share
next_share(const GjQueue *queue, const GjGroups *groups, uint32_t first, uint32_t nregisters)
{
	const GjAggregate *aggregates = gj_program_array(queue->program, GjAggregate, aggregates);
	Share share = {};

	share.arg = aggregates[first].arg;
	share.ngroups = groups->rows.nrows;
	share.copies = 1;
	while (share.n < MAX_SHARE && first + share.n < queue->program->naggregates &&
		   aggregates[first + share.n].arg == share.arg &&
		   !gj_agg_is_distinct(aggregates[first + share.n].op))
	{
		share.op[share.n] = aggregates[first + share.n].op;
		share.state[share.n] = groups->state[first + share.n];
		share.n++;
		if (share_bytes(share, nregisters) > LOCAL_BYTES)
		{
			/* rather a table for fewer aggregates than none */
			if (share.n > 1)
			{
				share.n--;
				break;
			}
			share.copies = 0;
		}
	}
	while (share.copies > 0 && share.copies < MAX_COPIES)
	{
		share.copies *= 2;
		if (share_bytes(share, nregisters) > LOCAL_BYTES)
		{
			share.copies /= 2;
			break;
		}
	}
	return share;
}

static GjStatus
gj_group_aggregate(GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
				   const uint32_t *group_of, const GjGroups *groups)
{
	const GjAggregate *aggregates;

	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return GJ_OK;
	aggregates = gj_program_array(queue->program, GjAggregate, aggregates);
	for (uint32_t a = 0; a < queue->program->naggregates;)
	{
		const int32_t arg = aggregates[a].arg;

		/* they take their values when the groups are finished */
		if (gj_agg_is_distinct(aggregates[a].op))
		{
			a++;
			continue;
		}
		const uint32_t nregisters = arg < 0 ? 1 : gj_queue_expr(queue, arg)->nregisters;
		Share share = next_share(queue, groups, a, nregisters);
		const uint32_t blocks = share.copies > 0 ? local_blocks(queue, share, n) : 0;

		a += share.n;
		if (blocks > 0)
			group_aggregate<true>
				<<<blocks, GJ_THREADS, share_bytes(share, nregisters), queue->stream>>>(
					queue->code, *view, first, n, group_of, share, nregisters, queue->results);
		else
		{
			share.copies = 0;
			group_aggregate<false>
				<<<min(gj_blocks(n, TILE_ROWS), (uint32_t) queue->device->nprocessors * 8),
				   GJ_THREADS, share_bytes(share, nregisters), queue->stream>>>(
					queue->code, *view, first, n, group_of, share, nregisters, queue->results);
		}
		GJ_LAUNCHED(queue, "group_aggregate");
	}
	return GJ_OK;
}

/* ---- a column of a stage */

static __global__ void
__launch_bounds__(GJ_THREADS)
	group_column(const __grid_constant__ GjGroups groups,
				 const __grid_constant__ GjGroupColumn column, GjResults *results)
{
	const uint32_t g = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint32_t status = GJ_OK;

	if (g >= groups.rows.nrows)
		return;
	/* all write the same */
	if (gj_group_column_value(&groups, &column, g, &status))
		*column.any_null = 1;
	gj_note_error(results, status);
}

static GjStatus
gj_group_column(GjQueue *queue, const GjGroups *groups, const GjGroupColumn *column)
{
	GJ_TRY(gj_enter(queue));
	if (groups->rows.nrows == 0)
		return GJ_OK;
	group_column<<<gj_blocks(groups->rows.nrows, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		*groups, *column, queue->results);
	GJ_LAUNCHED(queue, "group_column");
	return GJ_OK;
}

const GjGroupOps gj_cuda_groups = {
	.aggregate = gj_aggregate,
	.aggregate_read = gj_aggregate_read,
	.group_keys = gj_group_keys,
	.group_rehash = gj_group_rehash,
	.group_find = gj_group_find,
	.group_add = gj_group_add,
	.group_aggregate = gj_group_aggregate,
	.group_hash = gj_group_hash,
	.group_merge = gj_group_merge,
	.group_finish = gj_group_finish,
	.group_sort_keys = gj_group_sort_keys,
	.group_bytes = gj_group_bytes,
	.group_keep = gj_group_keep,
	.group_column = gj_group_column,
};
