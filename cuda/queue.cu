/*
 * queue.cu
 *	  Queues of the cuda device: pinned blocks, streams and events, memory, waiting, and time by
 *	  phase.
 *
 * A queue remembers what it allocated from its device's pool and frees it when it is closed.
 * Large blocks that are free are not given back to the pool, but kept for the next request of
 * their size.  The pool would cut its memory to pieces and put some together again later, which
 * takes a millisecond for each, in every run.  Small ones stay with the queue's stream: the pool
 * takes 4 us for each, and 2 us to take it back.
 *
 * Pinned host blocks for results are cut from slabs and go back to the device's list, because
 * cudaHostAlloc stops the whole GPU for a moment.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.cuh"

#define SLAB_SIZE (128 * 1024) /* pinned host memory for queues */

#define SPARE_BYTES ((size_t) 16 << 20) /* of a large block */
#define SPARE_PART 8   /* spare blocks take at most one part in so many of the GPU's memory */
#define SPARE_WASTE 64 /* a block may be larger than what is wanted by one part in so many */
#define LITTLE_FREE 10 /* less than one part in so many is free: others may want memory */
#define KEPT_UNUSED 16 /* the pool then keeps one part in so many */
#define USED_TENTHS 9  /* of the GPU's memory that blocks may take while some are spare */

/* ---- pinned blocks */

/* Cuts a new slab into blocks; the caller holds the lock. */
static cudaError_t
add_slab(GjDevice *device)
{
	GjDeviceBlock *slabs =
		(GjDeviceBlock *) realloc(device->slabs, (device->nslabs + 1) * sizeof(GjDeviceBlock));
	void *memory;
	cudaError_t error;

	if (slabs == NULL)
		return cudaErrorMemoryAllocation;
	device->slabs = slabs;
	error = cudaHostAlloc(&memory, SLAB_SIZE, cudaHostAllocPortable);
	if (error != cudaSuccess)
		return error;
	slabs[device->nslabs].memory = memory;
	slabs[device->nslabs].nbytes = SLAB_SIZE;
	device->nslabs++;
	for (size_t i = 0; i < SLAB_SIZE / sizeof(GjPinnedResults); i++)
	{
		GjPinnedResults *block = (GjPinnedResults *) memory + i;

		block->next = device->pinned;
		device->pinned = block;
	}
	return cudaSuccess;
}

static cudaError_t
take_pinned(GjDevice *device, GjPinnedResults **block)
{
	cudaError_t error = cudaSuccess;

	pthread_mutex_lock(&device->lock);
	if (device->pinned == NULL)
		error = add_slab(device);
	*block = device->pinned;
	if (*block)
		device->pinned = (*block)->next;
	pthread_mutex_unlock(&device->lock);
	return error;
}

static void
give_pinned(GjDevice *device, GjPinnedResults *block)
{
	pthread_mutex_lock(&device->lock);
	block->next = device->pinned;
	device->pinned = block;
	pthread_mutex_unlock(&device->lock);
}

/* ---- small blocks */

/* The class of blocks for so many bytes; GJ_SMALL_CLASSES: they are not small. */
static uint32_t
small_class(size_t nbytes)
{
	uint32_t c = 0;

	while (c < GJ_SMALL_CLASSES && GJ_SMALL_LEAST << c < nbytes)
		c++;
	return c;
}

/* A free block of the queue's kit.  No memory: there is none; nbytes: what is to be allocated. */
static GjDeviceBlock
take_small(GjQueue *queue, size_t nbytes)
{
	const uint32_t c = queue->device->keeps_small ? small_class(nbytes) : GJ_SMALL_CLASSES;
	GjDeviceBlock block = {NULL, nbytes};

	if (c == GJ_SMALL_CLASSES)
		return block;
	block.nbytes = GJ_SMALL_LEAST << c;
	if (queue->kit->nsmall[c] > 0)
		block.memory = queue->kit->small[c][--queue->kit->nsmall[c]];
	return block;
}

/* Keeps a block for what the queue's stream does next; false: it is not kept. */
static bool
keep_small(GjQueue *queue, GjDeviceBlock block)
{
	const uint32_t c = small_class(block.nbytes);
	GjKit *kit = queue->kit;

	if (!queue->device->keeps_small || kit == NULL || c == GJ_SMALL_CLASSES ||
		block.nbytes != GJ_SMALL_LEAST << c || kit->nsmall[c] == GJ_SMALL_BLOCKS)
		return false;
	kit->small[c][kit->nsmall[c]++] = block.memory;
	return true;
}

/* Gives the pool the small blocks of a kit that no queue has; the caller holds the lock. */
static void
drop_small(GjDevice *device, GjKit *kit)
{
	for (uint32_t c = 0; c < GJ_SMALL_CLASSES; c++)
	{
		device->used_bytes -= kit->nsmall[c] * (GJ_SMALL_LEAST << c);
		while (kit->nsmall[c] > 0)
			cudaFreeAsync(kit->small[c][--kit->nsmall[c]], kit->stream);
	}
}

/* ---- streams and events */

void
gj_destroy_kit(GjDevice *device, GjKit *kit)
{
	if (kit->stream)
	{
		pthread_mutex_lock(&device->lock);
		drop_small(device, kit);
		pthread_mutex_unlock(&device->lock);
	}
	for (uint32_t i = 0; i < kit->nevents; i++)
		cudaEventDestroy(kit->event[i]);
	for (uint32_t i = 0; i < kit->nmarks; i++)
		cudaEventDestroy(kit->mark[i]);
	if (kit->load)
		cudaStreamDestroy(kit->load);
	for (uint32_t i = 0; i < GJ_MAX_PEERS; i++)
	{
		if (kit->peer[i].stream)
			cudaStreamDestroy(kit->peer[i].stream);
		if (kit->peer[i].done)
			cudaEventDestroy(kit->peer[i].done);
	}
	if (kit->stream)
		cudaStreamDestroy(kit->stream);
	free(kit);
}

/* A kit of the device's, or a new one with one stream. */
static GjStatus
take_kit(GjQueue *queue)
{
	GjDevice *device = queue->device;

	pthread_mutex_lock(&device->lock);
	queue->kit = device->kits;
	if (queue->kit)
		device->kits = queue->kit->next;
	pthread_mutex_unlock(&device->lock);
	if (queue->kit == NULL)
	{
		queue->kit = (GjKit *) calloc(1, sizeof(GjKit));
		if (queue->kit == NULL)
			return GJ_OUT_OF_HOST_MEMORY;
		GJ_CUDA(queue, cudaStreamCreateWithFlags(&queue->kit->stream, cudaStreamNonBlocking));
	}
	queue->stream = queue->kit->stream;
	return GJ_OK;
}

/* Gives the device the queue's kit if its streams are idle, and are known to be. */
static void
give_kit(GjQueue *queue, bool idle)
{
	GjKit *kit = queue->kit;

	for (uint32_t i = 0; i < GJ_MAX_MARKS; i++)
	{
		if (queue->mark[i])
			kit->mark[kit->nmarks++] = queue->mark[i];
		if (queue->begin[i])
			kit->mark[kit->nmarks++] = queue->begin[i];
	}
	if (!idle || queue->status != GJ_OK || kit->stream == NULL)
	{
		gj_destroy_kit(queue->device, kit);
		return;
	}
	pthread_mutex_lock(&queue->device->lock);
	kit->next = queue->device->kits;
	queue->device->kits = kit;
	pthread_mutex_unlock(&queue->device->lock);
}

/* ---- memory of a queue */

static GjStatus start_phase(GjQueue *queue);

/* For calls that queue nothing that the phase could be of. */
static GjStatus
enter(GjQueue *queue)
{
	queue->settled = false;
	if (queue->status != GJ_OK)
		return queue->status;
	GJ_CUDA(queue, gj_set_device(queue->device->ordinal));
	return GJ_OK;
}

GjStatus
gj_enter(GjQueue *queue)
{
	GJ_TRY(enter(queue));
	return start_phase(queue);
}

/* Takes spare block i out of the list; the caller holds the lock. */
static GjDeviceBlock
unlink_spare(GjDevice *device, uint32_t i)
{
	const GjDeviceBlock block = device->spare[i];

	device->nspare--;
	device->spare_bytes -= block.nbytes;
	memmove(&device->spare[i], &device->spare[i + 1],
			(device->nspare - i) * sizeof(device->spare[0]));
	return block;
}

/*
 * Gives spare blocks to the pool, the oldest first, until no more of them are left; true: some
 * were. The caller holds the lock.
 */
static bool
drop_spares(GjQueue *queue, uint32_t most, uint64_t most_bytes)
{
	GjDevice *device = queue->device;
	const bool drops = device->nspare > most || device->spare_bytes > most_bytes;

	while (device->nspare > most || device->spare_bytes > most_bytes)
		cudaFreeAsync(unlink_spare(device, 0).memory, queue->stream);
	return drops;
}

/* Notes a block that a queue is to have; spare ones that there is no room for beside it go. */
static void
note_used(GjQueue *queue, uint64_t nbytes)
{
	GjDevice *device = queue->device;
	const uint64_t most = device->info.memory_total / 10 * USED_TENTHS;

	pthread_mutex_lock(&device->lock);
	device->used_bytes += nbytes;
	(void) drop_spares(queue, GJ_SPARE_BLOCKS,
					   device->used_bytes < most ? most - device->used_bytes : 0);
	pthread_mutex_unlock(&device->lock);
}

static void
note_freed(GjDevice *device, uint64_t nbytes)
{
	pthread_mutex_lock(&device->lock);
	device->used_bytes -= nbytes;
	pthread_mutex_unlock(&device->lock);
}

/* A spare block of that size, or a little more.  No memory: there is none. */
static GjDeviceBlock
take_spare(GjDevice *device, size_t nbytes)
{
	GjDeviceBlock block = {NULL, nbytes};

	pthread_mutex_lock(&device->lock);
	for (uint32_t i = device->nspare; i-- > 0 && block.memory == NULL;)
	{
		if (device->spare[i].nbytes >= nbytes &&
			device->spare[i].nbytes <= nbytes + nbytes / SPARE_WASTE)
		{
			block = unlink_spare(device, i);
			device->used_bytes += block.nbytes;
		}
	}
	pthread_mutex_unlock(&device->lock);
	return block;
}

/* Frees a block.  idle: nothing that is queued uses it. */
static void
free_block(GjQueue *queue, GjDeviceBlock block, bool idle)
{
	GjDevice *device = queue->device;
	const uint64_t most = device->info.memory_total / SPARE_PART;

	/* one that is kept counts as used */
	if (keep_small(queue, block))
		return;
	pthread_mutex_lock(&device->lock);
	device->used_bytes -= block.nbytes;
	if (idle && block.nbytes >= SPARE_BYTES && block.nbytes <= most)
	{
		(void) drop_spares(queue, GJ_SPARE_BLOCKS - 1, most - block.nbytes);
		device->spare[device->nspare++] = block;
		device->spare_bytes += block.nbytes;
		block.memory = NULL;
	}
	pthread_mutex_unlock(&device->lock);
	if (block.memory != NULL)
		cudaFreeAsync(block.memory, queue->stream);
}

/*
 * Allocates, again as long as there are spare blocks to do without, and once more after giving what
 * the pool does not use back to the driver.
 */
static cudaError_t
pool_alloc(GjQueue *queue, void **memory, size_t nbytes)
{
	GjDevice *device = queue->device;
	cudaError_t error;
	bool drops;

	do
	{
		error = cudaMallocFromPoolAsync(memory, nbytes, device->pool, queue->stream);
		if (error != cudaErrorMemoryAllocation)
			return error;
		cudaGetLastError();
		pthread_mutex_lock(&device->lock);
		drops = drop_spares(queue, 0, 0);
		pthread_mutex_unlock(&device->lock);
	} while (drops);
	error = cudaStreamSynchronize(queue->stream);
	if (error == cudaSuccess)
		error = cudaMemPoolTrimTo(device->pool, 0);
	if (error == cudaSuccess)
		error = cudaMallocFromPoolAsync(memory, nbytes, device->pool, queue->stream);
	return error;
}

/* Bytes of the device's pool: those that are allocated, or all that it has of the GPU's. */
static uint64_t
pool_bytes(GjDevice *device, cudaMemPoolAttr which)
{
	uint64_t nbytes = 0;

	if (cudaMemPoolGetAttribute(device->pool, which, &nbytes) != cudaSuccess)
		nbytes = 0;
	return nbytes;
}

uint64_t
gj_room(GjDevice *device)
{
	size_t free_bytes = 0;
	size_t total_bytes = 0;
	const cudaError_t set = gj_set_device(device->ordinal);
	const bool known =
		set == cudaSuccess && cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess;

	cudaGetLastError();
	/* in this order: what is allocated meanwhile counts twice, not never */
	return known ? free_bytes + pool_bytes(device, cudaMemPoolAttrReservedMemCurrent)
				 : device->info.memory_total;
}

void
gj_tidy(GjDevice *device, bool all)
{
	size_t free_bytes = 0;
	size_t total_bytes = 0;
	uint64_t spare = 0;

	if (gj_set_device(device->ordinal) == cudaSuccess &&
		cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess &&
		(all || free_bytes < total_bytes / LITTLE_FREE))
	{
		pthread_mutex_lock(&device->lock);
		while (device->nspare > 0)
			cudaFreeAsync(unlink_spare(device, 0).memory, cudaStreamPerThread);
		for (GjKit *kit = device->kits; kit && all; kit = kit->next)
		{
			drop_small(device, kit);
			cudaStreamSynchronize(kit->stream);
		}
		pthread_mutex_unlock(&device->lock);
		cudaStreamSynchronize(cudaStreamPerThread);
		/* runs that go on are not to ask the driver for each allocation */
		if (!all)
			spare = total_bytes / KEPT_UNUSED;
		cudaMemPoolTrimTo(device->pool, pool_bytes(device, cudaMemPoolAttrUsedMemCurrent) + spare);
	}
	cudaGetLastError();
}

/* Room to note n more allocations.  False: out of host memory. */
static bool
note_more(GjQueue *queue, size_t n)
{
	size_t max = queue->max_memory ? queue->max_memory * 2 : 64;
	GjDeviceBlock *grown;

	if (queue->nmemory + n <= queue->max_memory)
		return true;
	if (max < queue->nmemory + n)
		max = queue->nmemory + n;
	grown = (GjDeviceBlock *) realloc(queue->memory, max * sizeof(GjDeviceBlock));
	if (grown == NULL)
		return false;
	queue->memory = grown;
	queue->max_memory = max;
	return true;
}

void *
gj_alloc(GjQueue *queue, size_t nbytes)
{
	GjDeviceBlock block;
	cudaError_t error = cudaSuccess;

	if (gj_enter(queue) != GJ_OK)
		return NULL;
	if (!note_more(queue, 1))
		return NULL;
	block = nbytes >= SPARE_BYTES ? take_spare(queue->device, nbytes) : take_small(queue, nbytes);
	if (block.memory == NULL)
	{
		note_used(queue, block.nbytes);
		error = pool_alloc(queue, &block.memory, block.nbytes ? block.nbytes : 1);
	}
	if (error != cudaSuccess)
	{
		note_freed(queue->device, block.nbytes);
		gj_cuda_failed(queue, error, "cudaMallocFromPoolAsync", __FILE__, __LINE__);
		return NULL;
	}
	queue->memory[queue->nmemory++] = block;
	return block.memory;
}

GjStatus
gj_queue_alloc(GjQueue *queue, size_t nbytes, void **memory)
{
	*memory = gj_alloc(queue, nbytes);
	return *memory ? GJ_OK : gj_no_memory(queue);
}

void
gj_free(GjQueue *queue, void *memory, size_t nbytes)
{
	if (memory == NULL)
		return;
	/* the youngest are freed first, mostly */
	for (size_t i = queue->nmemory; i-- > 0;)
	{
		const GjDeviceBlock block = queue->memory[i];

		if (block.memory != memory)
			continue;
		queue->memory[i] = queue->memory[--queue->nmemory];
		gj_set_device(queue->device->ordinal);
		free_block(queue, block, block.nbytes >= SPARE_BYTES && gj_is_idle(queue));
		cudaGetLastError();
		return;
	}
}

GjStatus
gj_queue_adopt(GjQueue *queue, GjQueue *from, void *const *memory, uint32_t n)
{
	if (!note_more(queue, n))
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t m = 0; m < n; m++)
	{
		for (size_t i = from->nmemory; i-- > 0;)
		{
			const GjDeviceBlock block = from->memory[i];

			if (block.memory != memory[m])
				continue;
			from->memory[i] = from->memory[--from->nmemory];
			queue->memory[queue->nmemory++] = block;
			break;
		}
	}
	return GJ_OK;
}

GjStatus
gj_buffer(GjQueue *queue, GjDeviceBlock *buffer, size_t nbytes)
{
	size_t rounded = nbytes < 4096 ? 4096 : nbytes + nbytes / 4;

	if (buffer->memory != NULL && buffer->nbytes >= nbytes)
		return GJ_OK;
	gj_free(queue, buffer->memory, buffer->nbytes);
	buffer->nbytes = 0;
	buffer->memory = gj_alloc(queue, rounded);
	if (buffer->memory == NULL)
		return gj_no_memory(queue);
	buffer->nbytes = rounded;
	return GJ_OK;
}

GjStatus
gj_scratch(GjQueue *queue, GjScratch which, size_t nbytes, void **memory)
{
	GJ_TRY(gj_buffer(queue, &queue->scratch[which], nbytes));
	*memory = queue->scratch[which].memory;
	return GJ_OK;
}

/* ---- queues */

/* Frees all memory, waits for it, and destroys what CUDA made for the queue. */
static GjStatus
gj_queue_close(GjQueue *queue, GjErrorText *why)
{
	GjStatus status = GJ_OK;
	cudaError_t error = cudaSuccess;

	gj_set_device(queue->device->ordinal);
	if (queue->stream)
	{
		error = cudaStreamSynchronize(queue->stream);
		const cudaError_t of_loads = gj_await_loads(queue);

		if (error == cudaSuccess)
			error = of_loads;
		for (size_t i = 0; i < queue->nmemory; i++)
			free_block(queue, queue->memory[i], error == cudaSuccess);
		/* only then may other queues have it */
		if (error == cudaSuccess)
			error = cudaStreamSynchronize(queue->stream);
		if (error != cudaSuccess && gj_cuda_explain(error, "cudaStreamSynchronize", __FILE__,
													__LINE__, why) == GJ_DEVICE_LOST)
			status = GJ_DEVICE_LOST;
	}
	if (queue->kit)
		give_kit(queue, error == cudaSuccess);
	cudaGetLastError();
	if (queue->pinned)
		give_pinned(queue->device, queue->pinned);
	free(queue->memory);
	free(queue->places_host);
	free(queue->fused_plan);
	if (queue->staging)
		cudaFreeHost(queue->staging);
	free(queue->start);
	free(queue);
	return status;
}

/* Bytes of results, counts and states. */
static size_t
head_bytes(const GjProgram *program)
{
	return offsetof(GjPinnedResults, states) + program->naggregates * sizeof(GjAggState);
}

/* Copies the program to the host and the GPU, with results, counts and states before it. */
static GjStatus
queue_load_program(GjQueue *queue, const GjProgram *program)
{
	const size_t before = gj_align(head_bytes(program));
	char *memory;

	if (program->naggregates > GJ_MAX_AGGREGATES)
		return GJ_BAD_PROGRAM;
	memory = (char *) gj_alloc(queue, before + program->nbytes);
	if (memory == NULL)
		return gj_no_memory(queue);
	queue->results = (GjResults *) memory;
	queue->fused_counts = (uint64_t *) (memory + offsetof(GjPinnedResults, fused_counts));
	queue->states = (GjAggState *) (memory + offsetof(GjPinnedResults, states));

	/* zeros: no error, and states as gj_agg_start makes them */
	queue->start = (uint8_t *) calloc(1, before + program->nbytes);
	if (queue->start == NULL)
		return GJ_OUT_OF_HOST_MEMORY;
	queue->program = (GjProgram *) (queue->start + before);
	memcpy(queue->program, program, program->nbytes);
	GJ_CUDA(queue, cudaMemcpyAsync(memory, queue->start, before + program->nbytes,
								   cudaMemcpyHostToDevice, queue->stream));
	memory += before;
	queue->code.exprs = (const GjExpr *) (memory + program->exprs);
	queue->code.instrs = (const GjInstr *) (memory + program->instrs);
	queue->code.constants = (const int64_t *) (memory + program->constants);
	queue->code.columns = (const GjColumnType *) (memory + program->columns);
	return GJ_OK;
}

static GjStatus
queue_start(GjQueue *queue, const GjProgram *program)
{
	GJ_TRY(gj_enter(queue));
	GJ_TRY(take_kit(queue));
	GJ_CUDA(queue, take_pinned(queue->device, &queue->pinned));
	memset(queue->pinned, 0, sizeof(GjPinnedResults));
	return queue_load_program(queue, program);
}

static GjStatus
gj_queue_open(GjDevice *device, const GjProgram *program, GjQueue **opened, GjErrorText *why)
{
	GjQueue *queue = (GjQueue *) calloc(1, sizeof(GjQueue));
	GjStatus status;

	if (queue == NULL)
		return GJ_OUT_OF_HOST_MEMORY;
	queue->device = device;
	status = queue_start(queue, program);
	if (status != GJ_OK)
	{
		GjErrorText lost;

		gj_set_text(why, queue->error.text);
		if (gj_queue_close(queue, &lost) != GJ_DEVICE_LOST)
			return status;
		*why = lost;
		return GJ_DEVICE_LOST;
	}
	*opened = queue;
	return GJ_OK;
}

static const char *
gj_queue_error(GjQueue *queue)
{
	return queue->error.text;
}

/* Waits for the first bytes of what a run ends with. */
static GjStatus
wait_for(GjQueue *queue, size_t nbytes)
{
	GjResults *results = &queue->pinned->results;

	GJ_CUDA(queue, cudaMemcpyAsync(results, queue->results, nbytes, cudaMemcpyDeviceToHost,
								   queue->stream));
	GJ_CUDA(queue, cudaStreamSynchronize(queue->stream));
	if (results->error == GJ_OK)
		return GJ_OK;
	queue->status = (GjStatus) results->error;
	/* the reason says it all */
	gj_set_text(&queue->error, "");
	return queue->status;
}

GjStatus
gj_wait(GjQueue *queue)
{
	return wait_for(queue, sizeof(GjResults));
}

GjStatus
gj_wait_all(GjQueue *queue)
{
	if (queue->settled)
		return GJ_OK;
	GJ_TRY(enter(queue));
	GJ_TRY(wait_for(queue, head_bytes(queue->program)));
	queue->settled = true;
	return GJ_OK;
}

/* ---- time by phase */

/* Records the next mark: from here on time counts as `phase`. */
static GjStatus
record_mark(GjQueue *queue, GjPhase phase)
{
	uint32_t i = queue->nmarks;

	if (i == queue->kit->nevents)
	{
		GJ_CUDA(queue, cudaEventCreate(&queue->kit->event[i]));
		queue->kit->nevents++;
	}
	GJ_CUDA(queue, cudaEventRecord(queue->kit->event[i], queue->stream));
	queue->event_phase[i] = phase;
	queue->nmarks++;
	return GJ_OK;
}

/* Adds up what lies between marks that the GPU has passed; the last one stays. */
static GjStatus
resolve_marks(GjQueue *queue)
{
	uint32_t last = queue->nmarks - 1;
	cudaEvent_t event;

	for (uint32_t i = 0; i < last; i++)
	{
		float ms = 0.0f;

		GJ_CUDA(queue, cudaEventElapsedTime(&ms, queue->kit->event[i], queue->kit->event[i + 1]));
		queue->phase_ms[queue->event_phase[i]] += ms;
	}
	event = queue->kit->event[0];
	queue->kit->event[0] = queue->kit->event[last];
	queue->kit->event[last] = event;
	queue->event_phase[0] = queue->event_phase[last];
	queue->nmarks = 1;
	return GJ_OK;
}

/* Records the mark that the phase starts with, if it has not started. */
static GjStatus
start_phase(GjQueue *queue)
{
	if (!queue->timed ||
		(queue->nmarks > 0 && queue->event_phase[queue->nmarks - 1] == queue->phase))
		return GJ_OK;
	GJ_TRY(record_mark(queue, queue->phase));
	if (queue->nmarks < GJ_EVENTS)
		return GJ_OK;
	if (cudaEventSynchronize(queue->kit->event[queue->nmarks - 1]) == cudaSuccess)
		return resolve_marks(queue);
	queue->nmarks = 0; /* the next call that waits returns the error */
	return GJ_OK;
}

/*
 * A wait starts at once, any other phase with the first that is queued in it: a mark takes as long
 * as a launch, and a run whose data is resident passes through most phases with nothing to do.
 */
static void
gj_queue_phase(GjQueue *queue, GjPhase phase)
{
	queue->phase = phase;
	queue->timed = true;
	if (phase == GJ_PHASE_WAIT)
		(void) gj_enter(queue);
}

static const double *
gj_queue_phase_ms(GjQueue *queue)
{
	return queue->phase_ms;
}

static GjStatus
gj_queue_sync(GjQueue *queue)
{
	GJ_TRY(enter(queue));
	if (queue->nmarks > 0)
		GJ_TRY(record_mark(queue, queue->event_phase[queue->nmarks - 1]));
	GJ_TRY(gj_wait_all(queue));
	return queue->nmarks > 0 ? resolve_marks(queue) : GJ_OK;
}

GjStatus
gj_set_columns(GjQueue *queue, const GjColumn *columns, uint32_t n, const GjColumn **device_columns)
{
	size_t nbytes = n * sizeof(GjColumn);

	GJ_TRY(gj_enter(queue));
	GJ_TRY(gj_buffer(queue, &queue->columns, nbytes));
	if (n > 0)
		GJ_CUDA(queue, cudaMemcpyAsync(queue->columns.memory, columns, nbytes,
									   cudaMemcpyHostToDevice, queue->stream));
	*device_columns = (const GjColumn *) queue->columns.memory;
	return GJ_OK;
}

const GjQueueOps gj_cuda_queues = {
	.queue_open = gj_queue_open,
	.queue_close = gj_queue_close,
	.queue_error = gj_queue_error,
	.sync = gj_queue_sync,
	.phase = gj_queue_phase,
	.phase_ms = gj_queue_phase_ms,
	.mark = gj_mark,
	.after = gj_after,
	.passed = gj_passed,
	.load_wait = gj_load_wait,
};
