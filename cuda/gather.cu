/*
 * gather.cu
 *	  Output rows: the columns of tuples into a slot of the output ring, and references
 *	  moved to another heap.
 *
 * Kernels write straight into the slot, which is pinned host memory: 16 bytes a thread
 * for values and null maps, 8 for the heap, neighbours next to each other.  How many
 * rows the heap has room for is found on the GPU first (one scan), and the kernels
 * after it read that number there, so that one wait is enough.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cub/device/device_scan.cuh>

#include "internal.cuh"

#define WORDS_PER_BLOCK 1024 /* 8-byte words of the heap that a block copies */

/* ---- rebase_refs */

static __global__ void
__launch_bounds__(GJ_THREADS)
	rebase(uint64_t *refs, uint32_t n, uint64_t base, uint64_t heap_size, GjResults *results)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint64_t ref;
	uint64_t offset;

	if (i >= n)
		return;
	ref = refs[i];
	offset = gj_ref_offset(ref);
	if (gj_ref_length(ref) == GJ_REF_HELD)
		return;
	if (offset + gj_ref_length(ref) > heap_size || base + offset > GJ_REF_MAX_OFFSET)
	{
		/* kernels that run before the error is seen must not follow it */
		refs[i] = 0;
		gj_note_error(results, GJ_BAD_PROGRAM);
	}
	else
		refs[i] = gj_ref_make(base + offset, gj_ref_length(ref));
}

GjStatus
gj_rebase_refs(GjQueue *queue, uint64_t *refs, uint32_t n, uint64_t base, uint64_t heap_size)
{
	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return GJ_OK;
	rebase<<<gj_blocks(n, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(refs, n, base, heap_size,
																	   queue->results);
	GJ_LAUNCHED(queue, "rebase");
	return GJ_OK;
}

/* ---- gather */

typedef struct Gather
{
	GjView view;
	uint32_t first; /* tuples first .. first+max-1 */
	uint32_t max;
	uint32_t noutputs;
	uint32_t heap_size;
	const uint32_t *outputs;     /* columns */
	const GjColumnType *types;   /* of all columns */
	const GjColumnPlace *places; /* of the outputs */
	uint8_t *slot;               /* as kernels see it */
	uint8_t *heap;               /* of the slot */
	uint8_t *has_nulls;          /* device, one byte an output */
	const uint64_t *heap_start;  /* tuple i: where its bytes start; max+1 entries */
	const uint32_t *n;           /* rows that fit */
} Gather;

/* Row of the column that is output o, for tuple first+i. */
static __device__ __forceinline__ uint32_t
output_row(const Gather &gather, uint32_t column, uint32_t i)
{
	return gj_view_row(&gather.view, gather.types[column].source, gather.first + i);
}

/* The reference that is output o of tuple first+i; *null and 0 if it is NULL. */
static __device__ __forceinline__ uint64_t
output_ref(const Gather &gather, uint32_t column, uint32_t i, uint8_t *null)
{
	const GjColumn *c = &gather.view.columns[column];
	const uint32_t row = output_row(gather, column, i);

	*null = gj_row_is_null(c, row);
	return *null ? 0 : gj_column_ref(c, row);
}

/* sizes[i] = bytes of the heap that tuple first+i needs; sizes[max] = 0. */
static __global__ void
__launch_bounds__(GJ_THREADS) gather_sizes(const __grid_constant__ Gather gather, uint64_t *sizes)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint64_t size = 0;

	if (i > gather.max)
		return;
	for (uint32_t o = 0; i < gather.max && o < gather.noutputs; o++)
	{
		const uint32_t column = gather.outputs[o];
		uint8_t null;

		if (gather.types[column].kind == GJ_REF)
			size += gj_ref_space(output_ref(gather, column, i, &null));
	}
	sizes[i] = size;
}

/* The largest n whose bytes fit the heap, and how many they are. */
static __global__ void
gather_fit(const uint64_t *heap_start, uint32_t max, uint32_t heap_size, GjResults *results)
{
	uint32_t low = 0;
	uint32_t high = max;

	while (low < high)
	{
		const uint32_t mid = low + (high - low + 1) / 2;

		if (heap_start[mid] <= heap_size)
			low = mid;
		else
			high = mid - 1;
	}
	results->n = low;
	results->total = heap_start[low];
}

/* Without references: all rows, and nothing in the heap. */
static __global__ void
gather_all(uint32_t max, GjResults *results)
{
	results->n = max;
	results->total = 0;
}

/* Values of W bytes, 16 / W rows a thread; zeros where there is no row, and as padding. */
template <typename W>
static __device__ __forceinline__ void
gather_values(const Gather &gather, uint32_t column, W *to, uint32_t n, uint32_t thread)
{
	const uint32_t nvalues = 16 / sizeof(W);
	const GjColumn &from = gather.view.columns[column];
	const W *data = (const W *) from.data;
	union
	{
		W value[16 / sizeof(W)];
		uint4 words;
	} all;

	if (thread * nvalues >= n)
		return;
	all.words = make_uint4(0, 0, 0, 0);
#pragma unroll
	for (uint32_t k = 0; k < nvalues; k++)
	{
		const uint32_t i = thread * nvalues + k;

		if (i < n)
		{
			const uint32_t row = output_row(gather, column, i);

			if (row == GJ_NO_ROW)
				continue;
			if (sizeof(W) > sizeof(uint64_t) || !from.packed)
				all.value[k] = data[row];
			else if (!gj_row_is_null(&from, row))
				gj_put_value(&all.value[k], sizeof(W), gj_packed_value(&from, row));
		}
	}
	((uint4 *) to)[thread] = all.words;
}

/* The null map, 16 rows a thread; notes whether there is a NULL. */
static __device__ __forceinline__ void
gather_nulls(const Gather &gather, uint32_t o, uint32_t column, uint8_t *to, uint32_t n,
			 uint32_t thread)
{
	const GjColumn *c = &gather.view.columns[column];
	uint32_t words[4] = {0, 0, 0, 0};

	if ((c->nulls == NULL && !gj_view_no_row(&gather.view, gather.types[column].source)) ||
		thread * 16 >= n)
		return;
#pragma unroll
	for (uint32_t k = 0; k < 16; k++)
	{
		const uint32_t i = thread * 16 + k;

		if (i < n && gj_row_is_null(c, output_row(gather, column, i)))
			words[k / 4] |= 1u << (k % 4 * 8);
	}
	if (words[0] | words[1] | words[2] | words[3])
		gather.has_nulls[o] = 1; /* whoever writes it writes the same */
	((uint4 *) to)[thread] = make_uint4(words[0], words[1], words[2], words[3]);
}

/* Output blockIdx.y: values (but references) and the null map. */
static __global__ void
__launch_bounds__(GJ_THREADS) gather_columns(const __grid_constant__ Gather gather)
{
	const uint32_t o = blockIdx.y;
	const uint32_t column = gather.outputs[o];
	const GjColumnType type = gather.types[column];
	const uint32_t thread = blockIdx.x * GJ_THREADS + threadIdx.x;
	const uint32_t n = *gather.n;
	uint8_t *data = gather.slot + gather.places[o].data;

	gather_nulls(gather, o, column, gather.slot + gather.places[o].nulls, n, thread);
	if (type.kind == GJ_REF)
		return;
	switch (type.width)
	{
		case 1:
			gather_values(gather, column, (uint8_t *) data, n, thread);
			break;
		case 2:
			gather_values(gather, column, (uint16_t *) data, n, thread);
			break;
		case 4:
			gather_values(gather, column, (uint32_t *) data, n, thread);
			break;
		case 8:
			gather_values(gather, column, (uint64_t *) data, n, thread);
			break;
		default:
			gather_values(gather, column, (uint4 *) data, n, thread);
			break;
	}
}

/* References of one tuple a thread, relative to the slot's heap. */
static __global__ void
__launch_bounds__(GJ_THREADS) gather_refs(const __grid_constant__ Gather gather)
{
	const uint32_t i = blockIdx.x * GJ_THREADS + threadIdx.x;
	uint64_t offset;

	if (i >= *gather.n)
		return;
	offset = gather.heap_start[i];
	for (uint32_t o = 0; o < gather.noutputs; o++)
	{
		const uint32_t column = gather.outputs[o];
		uint64_t ref;
		uint8_t null;

		if (gather.types[column].kind != GJ_REF)
			continue;
		ref = output_ref(gather, column, i, &null);
		if (!null && gj_ref_length(ref) != GJ_REF_HELD)
		{
			const uint32_t space = gj_ref_space(ref);

			ref = gj_ref_make(offset, gj_ref_length(ref));
			offset += space;
		}
		((uint64_t *) (gather.slot + gather.places[o].data))[i] = ref;
	}
}

/* The word at `offset` of the heap, which belongs to tuple first+i. */
static __device__ __forceinline__ uint64_t
heap_word(const Gather &gather, uint32_t i, uint64_t offset)
{
	uint64_t start = gather.heap_start[i];

	for (uint32_t o = 0; o < gather.noutputs; o++)
	{
		const uint32_t column = gather.outputs[o];
		uint64_t ref;
		uint32_t space;
		uint8_t null;

		if (gather.types[column].kind != GJ_REF)
			continue;
		ref = output_ref(gather, column, i, &null);
		space = gj_ref_space(ref);
		if (offset < start + space)
			return gj_padded_word(gather.view.columns[column].heap + gj_ref_offset(ref),
								  gj_ref_length(ref), (uint32_t) (offset - start) / 8);
		start += space;
	}
	return 0;
}

/* The heap, WORDS_PER_BLOCK words a block, whatever values they belong to. */
static __global__ void
__launch_bounds__(GJ_THREADS) gather_heap(const __grid_constant__ Gather gather)
{
	__shared__ uint32_t bounds[2];
	const uint32_t n = *gather.n;
	const uint64_t first = (uint64_t) blockIdx.x * WORDS_PER_BLOCK;
	uint64_t nwords;

	if (n == 0)
		return;
	nwords = min(gather.heap_start[n] / 8, first + WORDS_PER_BLOCK);
	if (first >= nwords)
		return;
	/* the tuples of the first and of the last word */
	if (threadIdx.x < 2)
		bounds[threadIdx.x] =
			gj_last_at_most(gather.heap_start, 0, n, (threadIdx.x == 0 ? first : nwords - 1) * 8);
	__syncthreads();
	for (uint64_t word = first + threadIdx.x; word < nwords; word += GJ_THREADS)
	{
		const uint32_t i = gj_last_at_most(gather.heap_start, bounds[0], bounds[1] + 1, word * 8);

		((uint64_t *) gather.heap)[word] = heap_word(gather, i, word * 8);
	}
}

/* Brings the places to the GPU, unless it has them from the batch before. */
static GjStatus
load_places(GjQueue *queue, const GjColumnPlace *places, uint32_t noutputs)
{
	const size_t nbytes = noutputs * sizeof(GjColumnPlace);

	if (queue->places_host && memcmp(queue->places_host, places, nbytes) == 0)
		return GJ_OK;
	if (queue->places_host == NULL)
		queue->places_host = (GjColumnPlace *) malloc(nbytes + 1);
	if (queue->places_host == NULL)
		return GJ_OUT_OF_HOST_MEMORY;
	memset(queue->places_host, 0xFF, nbytes);
	/* the has_nulls bytes lie behind the places */
	GJ_TRY(gj_buffer(queue, &queue->places, nbytes + noutputs));
	GJ_CUDA(queue, cudaMemcpyAsync(queue->places.memory, places, nbytes, cudaMemcpyHostToDevice,
								   queue->stream));
	memcpy(queue->places_host, places, nbytes);
	return GJ_OK;
}

/* Describes a gather of at least one row to the kernels. */
static GjStatus
gather_start(GjQueue *queue, const GjView *view, uint32_t first, uint32_t max,
			 const GjBatchTarget *target, Gather *gather)
{
	const GjProgram *program = queue->program;
	const char *device_program = (const char *) queue->code.columns - program->columns;
	cudaPointerAttributes attributes;

	GJ_CUDA(queue, cudaPointerGetAttributes(&attributes, target->slot));
	if (attributes.devicePointer == NULL)
	{
		queue->status = GJ_DEVICE_ERROR;
		snprintf(queue->error.text, sizeof(queue->error.text),
				 "output slot is not registered memory");
		return queue->status;
	}
	GJ_TRY(load_places(queue, target->places, program->noutputs));
	gather->view = *view;
	gather->first = first;
	gather->max = max;
	gather->noutputs = program->noutputs;
	gather->heap_size = target->layout.heap_size;
	gather->outputs = (const uint32_t *) (device_program + program->outputs);
	gather->types = queue->code.columns;
	gather->places = (const GjColumnPlace *) queue->places.memory;
	gather->slot = (uint8_t *) attributes.devicePointer;
	gather->heap = gather->slot + target->layout.heap;
	gather->has_nulls =
		(uint8_t *) queue->places.memory + program->noutputs * sizeof(GjColumnPlace);
	gather->n = &queue->results->n;
	if (program->noutputs > 0)
		GJ_CUDA(queue, cudaMemsetAsync(gather->has_nulls, 0, program->noutputs, queue->stream));
	return GJ_OK;
}

/* How many rows fit, and where the bytes of each start. */
static GjStatus
gather_find_fit(GjQueue *queue, Gather *gather)
{
	const uint64_t nsizes = (uint64_t) gather->max + 1;
	void *sizes;

	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, nsizes * sizeof(uint64_t), &sizes));
	gather->heap_start = (const uint64_t *) sizes;
	gather_sizes<<<gj_blocks(nsizes, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(
		*gather, (uint64_t *) sizes);
	GJ_LAUNCHED(queue, "gather_sizes");
	GJ_CUB(queue, cub::DeviceScan::ExclusiveSum, (uint64_t *) sizes, (uint64_t *) sizes, nsizes);
	gather_fit<<<1, 1, 0, queue->stream>>>(gather->heap_start, gather->max, gather->heap_size,
										   queue->results);
	GJ_LAUNCHED(queue, "gather_fit");
	return GJ_OK;
}

static GjStatus
gather_rows(GjQueue *queue, Gather *gather, bool refs)
{
	if (refs)
	{
		GJ_TRY(gather_find_fit(queue, gather));
		gather_refs<<<gj_blocks(gather->max, GJ_THREADS), GJ_THREADS, 0, queue->stream>>>(*gather);
		GJ_LAUNCHED(queue, "gather_refs");
		if (gather->heap_size > 0)
		{
			gather_heap<<<gj_blocks(gather->heap_size / 8, WORDS_PER_BLOCK), GJ_THREADS, 0,
						  queue->stream>>>(*gather);
			GJ_LAUNCHED(queue, "gather_heap");
		}
	}
	else
	{
		gather_all<<<1, 1, 0, queue->stream>>>(gather->max, queue->results);
		GJ_LAUNCHED(queue, "gather_all");
	}
	if (gather->noutputs > 0)
	{
		/* one thread a row is enough for 16-byte values, and more than enough for others */
		gather_columns<<<dim3(gj_blocks(gather->max, GJ_THREADS), gather->noutputs), GJ_THREADS, 0,
						 queue->stream>>>(*gather);
		GJ_LAUNCHED(queue, "gather_columns");
	}
	return GJ_OK;
}

GjStatus
gj_gather(GjQueue *queue, const GjView *view, uint32_t first, uint32_t max,
		  const GjBatchTarget *target, uint32_t *n)
{
	GjSlotHeader *header = (GjSlotHeader *) target->slot;
	const GjColumnType *types;
	const uint32_t *outputs;
	Gather gather = {};
	bool refs = false;

	*n = 0;
	GJ_TRY(gj_enter(queue));
	types = gj_program_array(queue->program, GjColumnType, columns);
	outputs = gj_program_array(queue->program, uint32_t, outputs);
	for (uint32_t o = 0; o < queue->program->noutputs; o++)
		refs |= types[outputs[o]].kind == GJ_REF;
	max = min(max, target->layout.capacity);
	max = first < view->nrows ? min(max, view->nrows - first) : 0;

	memset(target->slot, 0, sizeof(GjSlotHeader) + queue->program->noutputs);
	if (max == 0)
		return gj_wait(queue);
	GJ_TRY(gather_start(queue, view, first, max, target, &gather));
	GJ_TRY(gather_rows(queue, &gather, refs));
	if (gather.noutputs > 0)
		GJ_CUDA(queue, cudaMemcpyAsync(gj_slot_has_nulls(target->slot), gather.has_nulls,
									   gather.noutputs, cudaMemcpyDeviceToHost, queue->stream));
	GJ_TRY(gj_wait(queue));
	if (queue->pinned->results.n == 0)
	{
		snprintf(queue->error.text, sizeof(queue->error.text),
				 "a row does not fit a batch of the output");
		return GJ_TOO_LARGE;
	}
	*n = queue->pinned->results.n;
	header->nrows = *n;
	header->heap_used = (uint32_t) queue->pinned->results.total;
	return GJ_OK;
}
