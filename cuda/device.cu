/*
 * device.cu
 *	  The cuda device: GPUs, queues, memory, errors and time by phase.  Copies and the
 *	  operators are in files of their own (internal.cuh).
 *
 * Memory comes from one stream-ordered pool a GPU that never gives back to the driver
 * what it once had: an allocation costs about a microsecond.  A queue remembers what
 * it allocated and frees it when it is closed.
 *
 * Pinned host blocks for results are cut from slabs and go back to the device's list,
 * because cudaHostAlloc stops the whole GPU for a moment.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.cuh"

#define MIN_MAJOR 8            /* compute capability: Ampere */
#define SLAB_SIZE (128 * 1024) /* pinned host memory for queues */
#define RATE_BYTES (32u << 20) /* copied to measure the rates */
#define H200_BANDWIDTH 4.8e12  /* bytes/s, what the hash rates below belong to */
#define H200_BUILD_RATE 2e9
#define H200_PROBE_RATE 10e9
#define H200_SORT_RATE 2e9 /* these two hold if they cannot be measured */
#define H200_PAIR_RATE 5e10
/* Samples of fewer rows, and lists of more tuples, would take longer than they save. */
#define FUSED_SAMPLE (2u * 1024 * 1024)
#define FUSED_CUT 0.4
#define RADIX_FANOUT 512 /* see GjDevice */

/* ---- errors */

static void
set_text(GjErrorText *why, const char *text)
{
	snprintf(why->text, sizeof(why->text), "%s", text);
}

/* True if the context cannot be used any more after this error. */
static bool
error_is_fatal(cudaError_t error)
{
	switch (error)
	{
		case cudaErrorIllegalAddress:
		case cudaErrorMisalignedAddress:
		case cudaErrorInvalidAddressSpace:
		case cudaErrorInvalidPc:
		case cudaErrorIllegalInstruction:
		case cudaErrorHardwareStackError:
		case cudaErrorLaunchFailure:
		case cudaErrorLaunchTimeout:
		case cudaErrorAssert:
		case cudaErrorECCUncorrectable:
		case cudaErrorNvlinkUncorrectable:
		case cudaErrorContextIsDestroyed:
		case cudaErrorDevicesUnavailable:
		case cudaErrorMpsClientTerminated:
		case cudaErrorCudartUnloading:
		case cudaErrorUnknown:
			return true;
		default:
			/* errors that newer drivers know: a context that is gone fails every call */
			error = cudaFree(NULL);
			cudaGetLastError();
			return error != cudaSuccess && error != cudaErrorMemoryAllocation;
	}
}

GjStatus
gj_cuda_explain(cudaError_t error, const char *call, const char *file, int line, GjErrorText *why)
{
	/* the name of the function says enough */
	snprintf(why->text, sizeof(why->text), "%.*s failed at %s:%d: %s", (int) strcspn(call, "("),
			 call, file, line, cudaGetErrorString(error));
	cudaGetLastError();
	if (error == cudaErrorMemoryAllocation)
		return GJ_OUT_OF_MEMORY;
	return error_is_fatal(error) ? GJ_DEVICE_LOST : GJ_DEVICE_ERROR;
}

GjStatus
gj_cuda_failed(GjQueue *queue, cudaError_t error, const char *call, const char *file, int line)
{
	GjErrorText text;
	GjStatus status = gj_cuda_explain(error, call, file, line, &text);

	if (status == GJ_OUT_OF_MEMORY)
		return status;
	queue->error = text;
	queue->status = status;
	return status;
}

/* Returns `result` with the reason in *why if a call without a queue fails. */
#define CHECK(why, result, call)                                                                   \
	do                                                                                             \
	{                                                                                              \
		cudaError_t error_ = (call);                                                               \
		if (error_ != cudaSuccess)                                                                 \
		{                                                                                          \
			gj_cuda_explain(error_, #call, __FILE__, __LINE__, (why));                             \
			return result;                                                                         \
		}                                                                                          \
	} while (0)

/* ---- devices */

/* CUDA's number of the `nth` usable GPU, or -1; *n = how many there are. */
static int
usable_gpu(int nth, int *n, GjErrorText *why)
{
	int found = -1;
	int ngpus = 0;
	cudaError_t error;

	*n = 0;
	error = cudaGetDeviceCount(&ngpus);
	if (error != cudaSuccess)
	{
		set_text(why, cudaGetErrorString(error));
		cudaGetLastError();
		return -1;
	}
	for (int i = 0; i < ngpus; i++)
	{
		int major = 0;
		int pools = 0;

		CHECK(why, -1, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, i));
		CHECK(why, -1, cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, i));
		if (major < MIN_MAJOR || !pools)
			continue;
		if (*n == nth)
			found = i;
		(*n)++;
	}
	if (*n == 0)
		set_text(why, ngpus == 0 ? "no GPU found"
								 : "no GPU of compute capability 8.0 or later with memory pools");
	return found;
}

static int
device_count(GjErrorText *why)
{
	int n;

	/* load kernels with the context, not when the first query needs them */
	setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	usable_gpu(0, &n, why);
	return n;
}

/* Fails if this program has no code for the selected GPU. */
static __global__ void
empty_kernel(void)
{
}

/* Milliseconds of the second of two copies; negative if something failed. */
static float
time_copy(void *to, const void *from, cudaMemcpyKind kind, cudaEvent_t start, cudaEvent_t end)
{
	float ms = -1.0f;

	if (cudaMemcpyAsync(to, from, RATE_BYTES, kind, 0) != cudaSuccess ||
		cudaEventRecord(start, 0) != cudaSuccess ||
		cudaMemcpyAsync(to, from, RATE_BYTES, kind, 0) != cudaSuccess ||
		cudaEventRecord(end, 0) != cudaSuccess || cudaEventSynchronize(end) != cudaSuccess ||
		cudaEventElapsedTime(&ms, start, end) != cudaSuccess)
		return -1.0f;
	return ms;
}

/* Measures the copies; the rates of hashing follow from the bandwidth of the memory. */
static void
measure_rates(GjDevice *device)
{
	GjDeviceInfo *info = &device->info;
	void *host = NULL;
	void *memory = NULL;
	cudaEvent_t start = NULL;
	cudaEvent_t end = NULL;
	int clock = 0;
	int width = 0;
	double scale = 0.5;

	info->copy_in_rate = info->copy_out_rate = 10e9;
	if (cudaDeviceGetAttribute(&clock, cudaDevAttrMemoryClockRate, device->ordinal) ==
			cudaSuccess &&
		cudaDeviceGetAttribute(&width, cudaDevAttrGlobalMemoryBusWidth, device->ordinal) ==
			cudaSuccess &&
		clock > 0 && width > 0)
		scale = 2.0 * clock * 1e3 * (width / 8.0) / H200_BANDWIDTH;
	info->build_rate = H200_BUILD_RATE * scale;
	info->probe_rate = H200_PROBE_RATE * scale;
	info->sort_rate = H200_SORT_RATE * scale;
	info->pair_rate = H200_PAIR_RATE * scale;

	if (cudaHostAlloc(&host, RATE_BYTES, cudaHostAllocDefault) == cudaSuccess &&
		cudaMalloc(&memory, RATE_BYTES) == cudaSuccess && cudaEventCreate(&start) == cudaSuccess &&
		cudaEventCreate(&end) == cudaSuccess)
	{
		float in;
		float out;

		memset(host, 1, RATE_BYTES);
		in = time_copy(memory, host, cudaMemcpyHostToDevice, start, end);
		out = time_copy(host, memory, cudaMemcpyDeviceToHost, start, end);
		if (in > 0.0f)
			info->copy_in_rate = RATE_BYTES / (in * 1e-3);
		if (out > 0.0f)
			info->copy_out_rate = RATE_BYTES / (out * 1e-3);
	}
	if (start)
		cudaEventDestroy(start);
	if (end)
		cudaEventDestroy(end);
	cudaFree(memory);
	if (host)
		cudaFreeHost(host);
	cudaGetLastError();
}

/* Fills in a device whose memory is zeros; false with *why, and nothing to undo but the pool. */
static bool
device_start(GjDevice *device, int ordinal, GjErrorText *why)
{
	cudaMemPoolProps props;
	cudaDeviceProp gpu;
	uint64_t threshold = UINT64_MAX;

	CHECK(why, false, cudaSetDevice(device->ordinal));
	/* a backend that was woken may be on the processor of a thread that waits for the GPU */
	CHECK(why, false, cudaSetDeviceFlags(cudaDeviceScheduleYield));
	CHECK(why, false, cudaGetDeviceProperties(&gpu, device->ordinal));
	empty_kernel<<<1, 1>>>();
	CHECK(why, false, cudaGetLastError());
	CHECK(why, false, cudaDeviceSynchronize());

	memset(&props, 0, sizeof(props));
	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = cudaMemHandleTypeNone;
	props.location.type = cudaMemLocationTypeDevice;
	props.location.id = device->ordinal;
	CHECK(why, false, cudaMemPoolCreate(&device->pool, &props));
	CHECK(why, false,
		  cudaMemPoolSetAttribute(device->pool, cudaMemPoolAttrReleaseThreshold, &threshold));

	device->nprocessors = gpu.multiProcessorCount;
	device->l2_bytes = (uint64_t) gpu.l2CacheSize;
	device->radix_bytes = device->l2_bytes;
	device->radix_fanout = RADIX_FANOUT;
	device->fused_sample = FUSED_SAMPLE;
	device->fused_cut = FUSED_CUT;
	snprintf(device->info.name, sizeof(device->info.name), "%.63s", gpu.name);
	device->info.kind = GJ_DEVICE_CUDA;
	device->info.ordinal = (uint32_t) ordinal;
	device->info.nprocessors = (uint32_t) gpu.multiProcessorCount;
	device->info.memory_total = gpu.totalGlobalMem;
	measure_rates(device);
	return gj_measure_joins(device, why);
}

static void
destroy_kit(GjKit *kit)
{
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

static void
device_close(GjDevice *device)
{
	if (device == NULL)
		return;
	cudaSetDevice(device->ordinal);
	for (size_t i = 0; i < device->nslabs; i++)
		cudaFreeHost(device->slabs[i].memory);
	free(device->slabs);
	while (device->kits)
	{
		GjKit *kit = device->kits;

		device->kits = kit->next;
		destroy_kit(kit);
	}
	for (uint32_t i = 0; i < GJ_KNOWN_CUTS; i++)
		free(device->cuts[i]);
	if (device->pool)
		cudaMemPoolDestroy(device->pool);
	cudaGetLastError();
	pthread_mutex_destroy(&device->lock);
	free(device);
}

static GjDevice *
device_open(int ordinal, GjErrorText *why)
{
	int n;
	int gpu = usable_gpu(ordinal, &n, why);
	GjDevice *device;

	if (gpu < 0)
	{
		if (n > 0)
			set_text(why, "no such GPU");
		return NULL;
	}
	device = (GjDevice *) calloc(1, sizeof(GjDevice));
	if (device == NULL)
	{
		set_text(why, "out of host memory");
		return NULL;
	}
	pthread_mutex_init(&device->lock, NULL);
	device->ordinal = gpu;
	if (!device_start(device, ordinal, why))
	{
		device_close(device);
		return NULL;
	}
	return device;
}

static void
device_info(GjDevice *device, GjDeviceInfo *info)
{
	*info = device->info;
}

static GjStatus
host_register(GjDevice *device, void *memory, size_t nbytes, GjErrorText *why)
{
	cudaError_t error = cudaSetDevice(device->ordinal);
	GjStatus status;

	if (error == cudaSuccess)
		error = cudaHostRegister(memory, nbytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
	if (error == cudaSuccess)
		return GJ_OK;
	status = gj_cuda_explain(error, "cudaHostRegister", __FILE__, __LINE__, why);
	return status == GJ_OUT_OF_MEMORY ? GJ_OUT_OF_HOST_MEMORY : status;
}

static void
host_unregister(GjDevice *device, void *memory)
{
	cudaSetDevice(device->ordinal);
	cudaHostUnregister(memory);
	cudaGetLastError();
}

/* ---- pinned blocks */

/* Cuts a new slab into blocks; the caller holds the lock. */
static cudaError_t
add_slab(GjDevice *device)
{
	GjBuffer *slabs = (GjBuffer *) realloc(device->slabs, (device->nslabs + 1) * sizeof(GjBuffer));
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
	for (size_t i = 0; i < SLAB_SIZE / sizeof(GjPinned); i++)
	{
		GjPinned *block = (GjPinned *) memory + i;

		block->next = device->pinned;
		device->pinned = block;
	}
	return cudaSuccess;
}

static cudaError_t
take_pinned(GjDevice *device, GjPinned **block)
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
give_pinned(GjDevice *device, GjPinned *block)
{
	pthread_mutex_lock(&device->lock);
	block->next = device->pinned;
	device->pinned = block;
	pthread_mutex_unlock(&device->lock);
}

/* ---- streams and events */

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
		destroy_kit(kit);
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
	GJ_CUDA(queue, cudaSetDevice(queue->device->ordinal));
	return GJ_OK;
}

GjStatus
gj_enter(GjQueue *queue)
{
	GJ_TRY(enter(queue));
	return start_phase(queue);
}

/* Allocates, and once more after giving what the pool does not use back to the driver. */
static cudaError_t
pool_alloc(GjQueue *queue, void **memory, size_t nbytes)
{
	cudaError_t error = cudaMallocFromPoolAsync(memory, nbytes, queue->device->pool, queue->stream);

	if (error != cudaErrorMemoryAllocation)
		return error;
	cudaGetLastError();
	error = cudaStreamSynchronize(queue->stream);
	if (error == cudaSuccess)
		error = cudaMemPoolTrimTo(queue->device->pool, 0);
	if (error == cudaSuccess)
		error = cudaMallocFromPoolAsync(memory, nbytes, queue->device->pool, queue->stream);
	return error;
}

/* Room to note n more allocations.  False: out of host memory. */
static bool
note_more(GjQueue *queue, size_t n)
{
	size_t max = queue->max_memory ? queue->max_memory * 2 : 64;
	void **grown;

	if (queue->nmemory + n <= queue->max_memory)
		return true;
	if (max < queue->nmemory + n)
		max = queue->nmemory + n;
	grown = (void **) realloc(queue->memory, max * sizeof(void *));
	if (grown == NULL)
		return false;
	queue->memory = grown;
	queue->max_memory = max;
	return true;
}

void *
gj_alloc(GjQueue *queue, size_t nbytes)
{
	void *memory = NULL;
	cudaError_t error;

	if (gj_enter(queue) != GJ_OK)
		return NULL;
	if (!note_more(queue, 1))
		return NULL;
	error = pool_alloc(queue, &memory, nbytes ? nbytes : 1);
	if (error != cudaSuccess)
	{
		gj_cuda_failed(queue, error, "cudaMallocFromPoolAsync", __FILE__, __LINE__);
		return NULL;
	}
	queue->memory[queue->nmemory++] = memory;
	return memory;
}

static GjStatus
queue_alloc(GjQueue *queue, size_t nbytes, void **memory)
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
		if (queue->memory[i] != memory)
			continue;
		queue->memory[i] = queue->memory[--queue->nmemory];
		cudaSetDevice(queue->device->ordinal);
		cudaFreeAsync(memory, queue->stream);
		cudaGetLastError();
		return;
	}
}

static GjStatus
queue_adopt(GjQueue *queue, GjQueue *from, void *const *memory, uint32_t n)
{
	if (!note_more(queue, n))
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t m = 0; m < n; m++)
	{
		for (size_t i = from->nmemory; i-- > 0;)
		{
			if (from->memory[i] != memory[m])
				continue;
			from->memory[i] = from->memory[--from->nmemory];
			queue->memory[queue->nmemory++] = memory[m];
			break;
		}
	}
	return GJ_OK;
}

GjStatus
gj_buffer(GjQueue *queue, GjBuffer *buffer, size_t nbytes)
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
queue_close(GjQueue *queue, GjErrorText *why)
{
	GjStatus status = GJ_OK;
	cudaError_t error = cudaSuccess;

	cudaSetDevice(queue->device->ordinal);
	if (queue->stream)
	{
		error = cudaStreamSynchronize(queue->stream);
		const cudaError_t of_loads = gj_await_loads(queue);

		if (error == cudaSuccess)
			error = of_loads;
		for (size_t i = 0; i < queue->nmemory; i++)
			cudaFreeAsync(queue->memory[i], queue->stream);
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
	return offsetof(GjPinned, states) + program->naggregates * sizeof(GjAggState);
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
	queue->fused_counts = (uint64_t *) (memory + offsetof(GjPinned, fused_counts));
	queue->states = (GjAggState *) (memory + offsetof(GjPinned, states));

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
	memset(queue->pinned, 0, sizeof(GjPinned));
	return queue_load_program(queue, program);
}

static GjStatus
queue_open(GjDevice *device, const GjProgram *program, GjQueue **opened, GjErrorText *why)
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

		set_text(why, queue->error.text);
		if (queue_close(queue, &lost) != GJ_DEVICE_LOST)
			return status;
		*why = lost;
		return GJ_DEVICE_LOST;
	}
	*opened = queue;
	return GJ_OK;
}

static const char *
queue_error(GjQueue *queue)
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
	set_text(&queue->error, "");
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
queue_phase(GjQueue *queue, GjPhase phase)
{
	queue->phase = phase;
	queue->timed = true;
	if (phase == GJ_PHASE_WAIT)
		(void) gj_enter(queue);
}

static const double *
queue_phase_ms(GjQueue *queue)
{
	return queue->phase_ms;
}

static GjStatus
queue_sync(GjQueue *queue)
{
	GJ_TRY(enter(queue));
	if (queue->nmarks > 0)
		GJ_TRY(record_mark(queue, queue->event_phase[queue->nmarks - 1]));
	GJ_TRY(gj_wait_all(queue));
	return queue->nmarks > 0 ? resolve_marks(queue) : GJ_OK;
}

static GjStatus
set_columns(GjQueue *queue, const GjColumn *columns, uint32_t n, const GjColumn **device_columns)
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

extern "C" const GjDeviceOps gj_cuda_device = {
	.name = "cuda",
	.kind = GJ_DEVICE_CUDA,
	.count = device_count,
	.open = device_open,
	.close = device_close,
	.meet = gj_meet,
	.info = device_info,
	.host_register = host_register,
	.host_unregister = host_unregister,
	.queue_open = queue_open,
	.queue_close = queue_close,
	.queue_error = queue_error,
	.sync = queue_sync,
	.phase = queue_phase,
	.phase_ms = queue_phase_ms,
	.alloc = queue_alloc,
	.free = gj_free,
	.adopt = queue_adopt,
	.copy_in = gj_copy_in,
	.copy_out = gj_copy_out,
	.copy = gj_copy,
	.copy_peer = gj_copy_peer,
	.fill = gj_fill,
	.load_in = gj_load_in,
	.load_copy = gj_load_copy,
	.load_peer = gj_load_peer,
	.load_fill = gj_load_fill,
	.mark = gj_mark,
	.after = gj_after,
	.passed = gj_passed,
	.load_wait = gj_load_wait,
	.rebase_refs = gj_rebase_refs,
	.set_columns = set_columns,
	.select = gj_select,
	.pick = gj_pick,
	.split = gj_split,
	.split_reserve = gj_split_reserve,
	.ref_bytes = gj_ref_bytes,
	.move_refs = gj_move_refs,
	.keys = gj_keys,
	.ordered_keys = gj_ordered_keys,
	.hash_build = gj_hash_build,
	.hash_free = gj_hash_free,
	.order_by_place = gj_order_by_place,
	.hash_payload = gj_hash_payload,
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
	.select_flags = gj_select_flags,
	.sort_limit = gj_sort_limit,
	.sort_rows = gj_sort_rows,
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
	.fused = gj_fused,
	.fused_counts = gj_fused_counts,
	.gather = gj_gather,
	.sort_unique = gj_sort_unique,
	.set_pair = gj_set_pair,
	.array_sizes = gj_array_sizes,
	.array_sets = gj_array_sets,
	.flag_changes = gj_flag_changes,
	.run_sizes = gj_run_sizes,
	.set_build = gj_set_build,
	.set_free = gj_set_free,
	.set_tile = gj_set_tile,
	.intersections_rehash = gj_intersections_rehash,
	.intersections_find = gj_intersections_find,
	.intersections_add = gj_intersections_add,
	.intersections_place = gj_intersections_place,
	.intersections_write = gj_intersections_write,
};
