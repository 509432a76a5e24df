/*
 * pack.cu
 *	  Packs columns, and unpacks them.
 *
 * A row of blocks works on one column (blockIdx.y).
 */
#include "load.cuh"

#define PACK_BLOCKS 64u /* of a column, at most */

/* Rows of a thread: first, first + step, ... */
static __device__ __forceinline__ uint32_t
first_row(void)
{
	return blockIdx.x * GJ_THREADS + threadIdx.x;
}

static __device__ __forceinline__ uint32_t
row_step(void)
{
	return gridDim.x * GJ_THREADS;
}

/* Brings the columns to the device, with `more` bytes of room behind them; the grid for them. */
static GjStatus
upload_columns(GjQueue *queue, const GjPackColumn *columns, uint32_t n, size_t more,
			   const GjPackColumn **device, dim3 *grid)
{
	uint32_t most = 1;
	void *memory;

	for (uint32_t c = 0; c < n; c++)
		most = max(most, columns[c].nrows);
	*grid = dim3(min(gj_blocks(most, GJ_THREADS), PACK_BLOCKS), n);
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, n * sizeof(GjPackColumn) + more, &memory));
	GJ_CUDA(queue, cudaMemcpyAsync(memory, columns, n * sizeof(GjPackColumn),
								   cudaMemcpyHostToDevice, queue->stream));
	*device = (const GjPackColumn *) memory;
	return GJ_OK;
}

/* ---- what the values are like */

static __device__ __forceinline__ uint64_t
greatest_divisor(uint64_t a, uint64_t b)
{
	while (b != 0)
	{
		const uint64_t rest = (a | b) >> 32 == 0 ? (uint32_t) a % (uint32_t) b : a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Before the values are seen. */
static __global__ void
begin_measure(GjPacking *packing, uint32_t n)
{
	for (uint32_t c = threadIdx.x; c < n; c += GJ_THREADS)
		packing[c] = {INT64_MAX, INT64_MIN, 0, false};
}

/* The least and the greatest values. */
static __global__ void
__launch_bounds__(GJ_THREADS) find_ends(const GjPackColumn *columns, GjPacking *packing)
{
	const GjPackColumn &work = columns[blockIdx.y];
	GjPacking &to = packing[blockIdx.y];
	__shared__ long long low;
	__shared__ long long high;
	long long mine[2] = {INT64_MAX, INT64_MIN};

	if (threadIdx.x == 0)
	{
		low = INT64_MAX;
		high = INT64_MIN;
	}
	__syncthreads();
	for (uint32_t i = first_row(); i < work.nrows; i += row_step())
	{
		if (gj_row_is_null(&work.from, i))
			continue;

		const long long value = gj_column_value(&work.from, i);

		mine[0] = min(mine[0], value);
		mine[1] = max(mine[1], value);
	}
	if (mine[0] <= mine[1])
	{
		atomicMin(&low, mine[0]);
		atomicMax(&high, mine[1]);
	}
	__syncthreads();
	if (threadIdx.x == 0 && low <= high)
	{
		atomicMin((long long *) &to.min, low);
		atomicMax((long long *) &to.max, high);
		to.any = true;
	}
}

/* The greatest number that divides all value - min. */
static __global__ void
__launch_bounds__(GJ_THREADS) find_factors(const GjPackColumn *columns, GjPacking *packing)
{
	const GjPackColumn &work = columns[blockIdx.y];
	GjPacking &to = packing[blockIdx.y];
	unsigned long long *factor = (unsigned long long *) &to.factor;
	const uint64_t low = (uint64_t) to.min;
	uint64_t mine = 0;
	unsigned long long known = 0;

	for (uint32_t i = first_row(); i < work.nrows && mine != 1; i += row_step())
		if (!gj_row_is_null(&work.from, i))
			mine = greatest_divisor(mine, (uint64_t) gj_column_value(&work.from, i) - low);
	while (mine != 0)
	{
		const unsigned long long common = greatest_divisor(known, mine);
		const unsigned long long seen = common == known ? known : atomicCAS(factor, known, common);

		if (seen == known)
			break;
		known = seen;
	}
}

GjStatus
gj_measure(GjQueue *queue, const GjPackColumn *columns, uint32_t n, GjPacking *packing)
{
	const GjPackColumn *device;
	GjPacking *found;
	dim3 grid;

	GJ_TRY(gj_enter(queue));
	GJ_TRY(upload_columns(queue, columns, n, n * sizeof(GjPacking), &device, &grid));
	found = (GjPacking *) (device + n);
	begin_measure<<<1, GJ_THREADS, 0, queue->stream>>>(found, n);
	GJ_LAUNCHED(queue, "begin_measure");
	find_ends<<<grid, GJ_THREADS, 0, queue->stream>>>(device, found);
	GJ_LAUNCHED(queue, "find_ends");
	find_factors<<<grid, GJ_THREADS, 0, queue->stream>>>(device, found);
	GJ_LAUNCHED(queue, "find_factors");
	GJ_CUDA(queue, cudaMemcpyAsync(packing, found, n * sizeof(GjPacking), cudaMemcpyDeviceToHost,
								   queue->stream));
	return gj_wait(queue);
}

/* ---- packing and unpacking */

static __global__ void
__launch_bounds__(GJ_THREADS) pack_values(const GjPackColumn *columns)
{
	const GjPackColumn &work = columns[blockIdx.y];
	GjColumn plain = work.from;

	plain.packed = 0;
	for (uint32_t i = first_row(); i < work.nrows; i += row_step())
	{
		const uint64_t above = gj_row_is_null(&plain, i)
								   ? 0
								   : (uint64_t) gj_column_value(&plain, i) - (uint64_t) plain.base;
		const uint32_t u = (uint32_t) (plain.factor == 1 ? above : above / (uint64_t) plain.factor);

		if (work.from.packed == 1)
			((uint8_t *) work.to)[i] = (uint8_t) u;
		else if (work.from.packed == 2)
			((uint16_t *) work.to)[i] = (uint16_t) u;
		else
			((uint32_t *) work.to)[i] = u;
	}
}

GjStatus
gj_pack(GjQueue *queue, const GjPackColumn *columns, uint32_t n)
{
	const GjPackColumn *device;
	dim3 grid;

	GJ_TRY(gj_enter(queue));
	GJ_TRY(upload_columns(queue, columns, n, 0, &device, &grid));
	pack_values<<<grid, GJ_THREADS, 0, queue->stream>>>(device);
	GJ_LAUNCHED(queue, "pack_values");
	return GJ_OK;
}

static __global__ void
__launch_bounds__(GJ_THREADS) unpack_values(const GjPackColumn *columns)
{
	const GjPackColumn &work = columns[blockIdx.y];

	for (uint32_t i = first_row(); i < work.nrows; i += row_step())
		gj_put_value((uint8_t *) work.to + (size_t) i * work.from.width, work.from.width,
					 gj_row_is_null(&work.from, i) ? 0 : gj_packed_value(&work.from, i));
}

GjStatus
gj_unpack(GjQueue *queue, const GjPackColumn *columns, uint32_t n)
{
	const GjPackColumn *device;
	dim3 grid;

	GJ_TRY(gj_enter(queue));
	GJ_TRY(upload_columns(queue, columns, n, 0, &device, &grid));
	unpack_values<<<grid, GJ_THREADS, 0, queue->stream>>>(device);
	GJ_LAUNCHED(queue, "unpack_values");
	return GJ_OK;
}

/* ---- dictionaries */

/* A slot of the table of values: a row that has it, GJ_NO_ROW if it is empty, and its number. */
typedef struct ValueSlot
{
	uint32_t row;
	uint32_t number;
} ValueSlot;

typedef struct Numbering
{
	const uint64_t *refs;
	const uint8_t *nulls;
	const uint8_t *heap;
	uint32_t nrows;
	uint32_t most;
	ValueSlot *slots;
	uint32_t nslots; /* more than `most` */
	uint32_t *number;
	uint64_t *value;
	uint32_t *n; /* values so far, device; more than `most`: too many */
} Numbering;

/* Word w of the bytes of a reference, those behind its end as 0. */
static __device__ __forceinline__ uint64_t
word_of(const uint8_t *heap, uint64_t ref, uint32_t w)
{
	return gj_padded_word(heap + gj_ref_offset(ref), gj_ref_length(ref), w);
}

static __device__ __forceinline__ uint32_t
words_of(uint64_t ref)
{
	return (gj_ref_length(ref) + 7) / 8;
}

static __device__ bool
same_bytes(const uint8_t *heap, uint64_t a, uint64_t b)
{
	bool same = gj_ref_length(a) == gj_ref_length(b);

	for (uint32_t w = 0; same && w < words_of(a); w++)
		same = word_of(heap, a, w) == word_of(heap, b, w);
	return same;
}

/* The slot of a value, which takes an empty one if it is the first of its kind. */
static __device__ uint32_t
find_value(const Numbering &work, uint32_t i, uint64_t ref)
{
	uint64_t hash = gj_ref_length(ref);
	uint32_t at;

	for (uint32_t w = 0; w < words_of(ref); w++)
		hash = gj_hash_combine(hash, (int64_t) word_of(work.heap, ref, w));
	at = (uint32_t) gj_hash_slot(hash, work.nslots);
	for (;;)
	{
		uint32_t *row = &work.slots[at].row;
		uint32_t owner = *(volatile uint32_t *) row;

		if (owner == GJ_NO_ROW)
			owner = atomicCAS(row, GJ_NO_ROW, i);
		if (owner == GJ_NO_ROW)
		{
			const uint32_t number = atomicAdd(work.n, 1);

			work.slots[at].number = number;
			if (number < work.most)
				work.value[number] = ref;
			return at;
		}
		if (same_bytes(work.heap, work.refs[owner], ref))
			return at;
		if (*(volatile uint32_t *) work.n > work.most)
			return at;
		at = at + 1 < work.nslots ? at + 1 : 0;
	}
}

/* number[] = the slot of each row's value. */
static __global__ void
__launch_bounds__(GJ_THREADS) find_values(const __grid_constant__ Numbering work)
{
	for (uint32_t i = first_row(); i < work.nrows; i += row_step())
	{
		if (*(volatile uint32_t *) work.n > work.most)
			return;
		if (work.nulls != NULL && work.nulls[i])
			continue;
		if (gj_ref_length(work.refs[i]) == GJ_REF_HELD)
		{
			atomicMax(work.n, work.most + 1);
			return;
		}
		work.number[i] = find_value(work, i, work.refs[i]);
	}
}

/* Slots become numbers. */
static __global__ void
__launch_bounds__(GJ_THREADS) number_rows(const __grid_constant__ Numbering work)
{
	if (*work.n > work.most)
		return;
	for (uint32_t i = first_row(); i < work.nrows; i += row_step())
		work.number[i] =
			work.nulls != NULL && work.nulls[i] ? 0 : work.slots[work.number[i]].number;
	if (*work.n == 0 && first_row() == 0)
		work.value[0] = 0;
}

GjStatus
gj_number_values(GjQueue *queue, const GjColumn *column, uint32_t nrows, uint32_t most,
				 uint32_t *number, uint64_t *value, uint32_t *n)
{
	Numbering work = {};
	void *slots;
	uint32_t nblocks;

	*n = 0;
	GJ_TRY(gj_enter(queue));
	work.refs = (const uint64_t *) column->data;
	work.nulls = column->nulls;
	work.heap = column->heap;
	work.nrows = nrows;
	work.most = most;
	work.nslots = 2 * most + GJ_THREADS * PACK_BLOCKS;
	work.number = number;
	work.value = value;
	work.n = &queue->results->n;
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, work.nslots * sizeof(ValueSlot), &slots));
	work.slots = (ValueSlot *) slots;
	GJ_CUDA(queue, cudaMemsetAsync(slots, 0xFF, work.nslots * sizeof(ValueSlot), queue->stream));
	GJ_CUDA(queue, cudaMemsetAsync(work.n, 0, sizeof(uint32_t), queue->stream));
	nblocks = max(1u, min(gj_blocks(nrows, GJ_THREADS), PACK_BLOCKS));
	find_values<<<nblocks, GJ_THREADS, 0, queue->stream>>>(work);
	GJ_LAUNCHED(queue, "find_values");
	number_rows<<<nblocks, GJ_THREADS, 0, queue->stream>>>(work);
	GJ_LAUNCHED(queue, "number_rows");
	GJ_TRY(gj_wait(queue));
	*n = max(1u, min(queue->pinned->results.n, most + 1));
	return GJ_OK;
}
