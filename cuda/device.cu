/*
 * device.cu
 *	  The cuda device: GPUs, their rates, and errors.  Queues, copies and the operators are in
 *	  files of their own (internal.cuh).
 *
 * Memory comes from one stream-ordered pool a GPU that never gives back to the driver
 * what it once had: an allocation costs about a microsecond.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.cuh"

#define MIN_MAJOR 8                   /* compute capability: Ampere */
#define MIN_FREE_BYTES (512ull << 20) /* of its memory; a context takes about as much */
#define RATE_BYTES (32u << 20)        /* copied to measure the rates */
#define H200_BANDWIDTH 4.8e12         /* bytes/s, what the hash rates below belong to */
#define H200_BUILD_RATE 2e9
#define H200_PROBE_RATE 10e9
#define H200_SORT_RATE 2e9 /* these two hold if they cannot be measured */
#define H200_PAIR_RATE 5e10
/* Samples of fewer rows, and lists of more tuples, would take longer than they save. */
#define FUSED_SAMPLE (2u * 1024 * 1024)
#define FUSED_CUT 0.4
#define RADIX_FANOUT 512 /* see GjDevice */

/* ---- errors */

void
gj_set_text(GjErrorText *why, const char *text)
{
	snprintf(why->text, sizeof(why->text), "%s", text);
}

/* CUDA takes 0.3 us to select the GPU that is selected already, and a small run asks 100 times. */
cudaError_t
gj_set_device(int ordinal)
{
	static thread_local int selected = -1;
	cudaError_t error = cudaSuccess;

	if (ordinal != selected)
		error = cudaSetDevice(ordinal);
	selected = error == cudaSuccess ? ordinal : -1;
	return error;
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
		case cudaErrorOperatingSystem: /* a limit of the process: no later call may succeed */
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
	if (error == cudaErrorDevicesUnavailable)
		gj_set_text(
			why, "it is busy: another process may have it for itself (nvidia-smi -q -d COMPUTE)");
	else
		/* the name of the function says enough */
		snprintf(why->text, sizeof(why->text), "%.*s failed at %s:%d: %s", (int) strcspn(call, "("),
				 call, file, line, cudaGetErrorString(error));
	cudaGetLastError();
	why->denied = error == cudaErrorOperatingSystem;
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

static void
cuda_versions(uint32_t *driver, uint32_t *runtime)
{
	int version = 0;

	/* 0 where there is no driver; any driver answers, also one that is too old */
	*driver = cudaDriverGetVersion(&version) == cudaSuccess ? (uint32_t) version : 0;
	*runtime = cudaRuntimeGetVersion(&version) == cudaSuccess ? (uint32_t) version : 0;
	cudaGetLastError();
}

/* Says why CUDA lists no GPU. */
static void
explain_no_gpus(cudaError_t error, GjErrorText *why)
{
	uint32_t driver;
	uint32_t runtime;

	cuda_versions(&driver, &runtime);
	if (driver == 0)
		gj_set_text(why, "no NVIDIA driver is installed, or its libcuda.so.1 is not found");
	else if (error == cudaErrorInsufficientDriver)
		snprintf(why->text, sizeof(why->text),
				 "the NVIDIA driver is too old: it supports CUDA %u.%u, gpujoind needs %u.%u",
				 driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
	else if (error == cudaErrorNoDevice)
		gj_set_text(why, "the NVIDIA driver finds no GPU that this process may use");
	else
		gj_set_text(why, cudaGetErrorString(error));
	cudaGetLastError();
}

/* True if a GPU can do what is needed, else *why. */
static bool
is_useful(int gpu, GjErrorText *why)
{
	int major = 0;
	int minor = 0;
	int pools = 0;

	CHECK(why, false, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu));
	CHECK(why, false, cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu));
	CHECK(why, false, cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, gpu));
	if (major < MIN_MAJOR)
		snprintf(why->text, sizeof(why->text), "compute capability %d.%d, %d.0 is needed", major,
				 minor, MIN_MAJOR);
	else if (!pools)
		gj_set_text(why, "its driver has no memory pools");
	return major >= MIN_MAJOR && pools;
}

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
		explain_no_gpus(error, why);
		return -1;
	}
	for (int i = 0; i < ngpus; i++)
	{
		if (!is_useful(i, why))
			continue;
		if (*n == nth)
			found = i;
		(*n)++;
	}
	if (*n == 0 && ngpus == 0)
		explain_no_gpus(cudaErrorNoDevice, why);
	return found;
}

static void
copy_name(int gpu, char name[64])
{
	cudaDeviceProp properties;

	snprintf(name, 64, "GPU %d", gpu);
	if (cudaGetDeviceProperties(&properties, gpu) == cudaSuccess)
		snprintf(name, 64, "%.63s", properties.name);
	cudaGetLastError();
}

static void
describe_gpu(int ordinal, char name[64])
{
	GjErrorText why;
	int n;
	int gpu = usable_gpu(ordinal, &n, &why);

	snprintf(name, 64, "GPU %d", ordinal);
	if (gpu >= 0)
		copy_name(gpu, name);
}

static bool
useless_gpu(int i, char name[64], GjErrorText *why)
{
	int ngpus = 0;

	if (cudaGetDeviceCount(&ngpus) != cudaSuccess)
		cudaGetLastError();
	for (int gpu = 0; gpu < ngpus; gpu++)
		if (!is_useful(gpu, why) && i-- == 0)
		{
			copy_name(gpu, name);
			return true;
		}
	return false;
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

/* Milliseconds of the fastest of GJ_MEASUREMENTS copies; negative if something failed. */
static float
time_copy(void *to, const void *from, cudaMemcpyKind kind, cudaEvent_t start, cudaEvent_t end)
{
	float best = -1.0f;

	for (int i = 0; i < GJ_MEASUREMENTS; i++)
	{
		float ms;

		if (cudaEventRecord(start, 0) != cudaSuccess ||
			cudaMemcpyAsync(to, from, RATE_BYTES, kind, 0) != cudaSuccess ||
			cudaEventRecord(end, 0) != cudaSuccess || cudaEventSynchronize(end) != cudaSuccess ||
			cudaEventElapsedTime(&ms, start, end) != cudaSuccess)
			return -1.0f;
		if (best < 0 || ms < best)
			best = ms;
	}
	return best;
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
	size_t free_bytes;
	size_t total_bytes;

	CHECK(why, false, gj_set_device(device->ordinal));
	/* a backend that was woken may be on the processor of a thread that waits for the GPU */
	CHECK(why, false, cudaSetDeviceFlags(cudaDeviceScheduleYield));
	CHECK(why, false, cudaGetDeviceProperties(&gpu, device->ordinal));
	empty_kernel<<<1, 1>>>();
	CHECK(why, false, cudaGetLastError());
	CHECK(why, false, cudaDeviceSynchronize());

	CHECK(why, false, cudaMemGetInfo(&free_bytes, &total_bytes));
	device->info.memory_free = free_bytes;
	if (free_bytes < MIN_FREE_BYTES)
	{
		snprintf(why->text, sizeof(why->text),
				 "too little memory: %zu of %zu MiB are free; other processes have the rest",
				 free_bytes >> 20, total_bytes >> 20);
		return false;
	}

	memset(&props, 0, sizeof(props));
	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = cudaMemHandleTypeNone;
	props.location.type = cudaMemLocationTypeDevice;
	props.location.id = device->ordinal;
	CHECK(why, false, cudaMemPoolCreate(&device->pool, &props));
	CHECK(why, false,
		  cudaMemPoolSetAttribute(device->pool, cudaMemPoolAttrReleaseThreshold, &threshold));

	device->nprocessors = gpu.multiProcessorCount;
	device->l1_bytes = (uint64_t) gpu.sharedMemPerMultiprocessor / 4 * 3;
	device->l2_bytes = (uint64_t) gpu.l2CacheSize;
	device->radix_bytes = device->l2_bytes;
	device->radix_fanout = RADIX_FANOUT;
	device->fused_sample = FUSED_SAMPLE;
	device->fused_cut = FUSED_CUT;
	device->keeps_small = true;
	snprintf(device->info.name, sizeof(device->info.name), "%.63s", gpu.name);
	device->info.kind = GJ_DEVICE_CUDA;
	device->info.ordinal = (uint32_t) ordinal;
	device->info.nprocessors = (uint32_t) gpu.multiProcessorCount;
	device->info.memory_total = gpu.totalGlobalMem;
	measure_rates(device);
	return gj_measure_joins(device, why);
}

static void
device_close(GjDevice *device)
{
	if (device == NULL)
		return;
	gj_set_device(device->ordinal);
	for (size_t i = 0; i < device->nslabs; i++)
		cudaFreeHost(device->slabs[i].memory);
	free(device->slabs);
	while (device->kits)
	{
		GjKit *kit = device->kits;

		device->kits = kit->next;
		gj_destroy_kit(device, kit);
	}
	for (uint32_t i = 0; i < GJ_KNOWN_CUTS; i++)
		free(device->cuts[i]);
	for (uint32_t i = 0; i < device->nspare; i++)
		cudaFree(device->spare[i].memory);
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
			gj_set_text(why, "no such GPU");
		return NULL;
	}
	device = (GjDevice *) calloc(1, sizeof(GjDevice));
	if (device == NULL)
	{
		gj_set_text(why, "out of host memory");
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
	cudaError_t error = gj_set_device(device->ordinal);
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
	gj_set_device(device->ordinal);
	cudaHostUnregister(memory);
	cudaGetLastError();
}

extern "C" const GjDeviceOps gj_cuda_device = {
	.name = "cuda",
	.kind = GJ_DEVICE_CUDA,
	.most_tuples = 4 * GJ_MAX_TUPLES, /* each call waits for its end: some 20 us */
	.count = device_count,
	.versions = cuda_versions,
	.describe = describe_gpu,
	.useless = useless_gpu,
	.open = device_open,
	.close = device_close,
	.meet = gj_meet,
	.info = device_info,
	.room = gj_room,
	.tidy = gj_tidy,
	.host_register = host_register,
	.host_unregister = host_unregister,
	.memory = &gj_cuda_memory,
	.queues = &gj_cuda_queues,
	.columns = &gj_cuda_columns,
	.tables = &gj_cuda_tables,
	.groups = &gj_cuda_groups,
	.pass = &gj_cuda_pass,
	.places = &gj_cuda_places,
	.order = &gj_cuda_order,
	.sets = &gj_cuda_sets,
	.exchange = &gj_cuda_exchange,
};
