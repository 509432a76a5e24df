/*
 * devices.c
 *	  The list of devices; see devices.h.
 */
#include "devices.h"

#include <stdio.h>
#include <string.h>

#include "log.h"
#include "segment.h"

#define GJ_MAX_GPUS			64

/* Part of a device's memory that programs may lease; the rest is for its own needs. */
#define GJ_LEASABLE			0.9

/* Guarded by `lock`; entries themselves are handed out and stay. */
static struct
{
	pthread_mutex_t lock;
	pthread_cond_t opened;
	pthread_t	opener;
	bool		started;
	bool		cuda_ready;		/* the GPUs have been looked for and opened */
	bool		cpu_ready;
	uint32_t	ncuda;
	GjErrorText cuda_reason;	/* if ncuda is 0 */
	GjDeviceEntry cuda[GJ_MAX_GPUS];
	GjDeviceEntry cpu;
}			devices = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.opened = PTHREAD_COND_INITIALIZER,
	.cuda_reason = {"the GPUs are being opened"}
};

static void
init_entry(GjDeviceEntry *entry, const GjDeviceOps *ops, GjDevice *device)
{
	memset(entry, 0, sizeof(*entry));
	entry->ops = ops;
	entry->device = device;
	ops->info(device, &entry->info);
	gj_memory_init(&entry->memory, (uint64_t) (entry->info.memory_total * GJ_LEASABLE));
}

#ifdef GJ_WITH_CUDA
/* A GPU that is being opened. */
typedef struct GjOpening
{
	int			ordinal;
	pthread_t	thread;
	bool		started;
	GjDevice   *device;			/* NULL: it does not work */
	GjErrorText why;
} GjOpening;

static void *
open_gpu(void *arg)
{
	GjOpening  *opening = arg;

	opening->device = gj_cuda_device.open(opening->ordinal, &opening->why);
	return NULL;
}

/*
 * Opens every GPU that works, all at the same time; the reason is that of the last one
 * that does not.
 */
static uint32_t
open_cuda(GjErrorText *why)
{
	uint32_t	n = 0;
	int			count = gj_cuda_device.count(why);
	GjOpening	opening[GJ_MAX_GPUS];

	if (count > GJ_MAX_GPUS)
		count = GJ_MAX_GPUS;
	for (int i = 0; i < count; i++)
	{
		opening[i] = (GjOpening) {.ordinal = i};
		opening[i].started = pthread_create(&opening[i].thread, NULL, open_gpu, &opening[i]) == 0;
		if (!opening[i].started)
			open_gpu(&opening[i]);
	}
	for (int i = 0; i < count; i++)
	{
		if (opening[i].started)
			pthread_join(opening[i].thread, NULL);
		if (opening[i].device)
			init_entry(&devices.cuda[n++], &gj_cuda_device, opening[i].device);
		else
		{
			gj_log(GJ_WARNING, "GPU %d cannot be used: %s", i, opening[i].why.text);
			*why = opening[i].why;
		}
	}
	return n;
}
#endif

/* Thread: opens the GPUs, then tells whoever waits for them. */
static void *
opener_main(void *arg)
{
	GjErrorText why = {"gpujoind was built without CUDA"};
	uint32_t	n = 0;

#ifdef GJ_WITH_CUDA
	n = open_cuda(&why);
#endif
	pthread_mutex_lock(&devices.lock);
	devices.ncuda = n;
	devices.cuda_reason = why;
	devices.cuda_ready = true;
	pthread_cond_broadcast(&devices.opened);
	pthread_mutex_unlock(&devices.lock);
	return NULL;
}

void
gj_devices_start(void)
{
	devices.started = pthread_create(&devices.opener, NULL, opener_main, NULL) == 0;
	if (!devices.started)
		opener_main(NULL);
}

uint32_t
gj_devices_cuda(bool wait, GjErrorText *why)
{
	uint32_t	n;

	pthread_mutex_lock(&devices.lock);
	while (wait && !devices.cuda_ready)
		pthread_cond_wait(&devices.opened, &devices.lock);
	n = devices.ncuda;
	*why = devices.cuda_reason;
	pthread_mutex_unlock(&devices.lock);
	if (n > 0)
		why->text[0] = '\0';
	return n;
}

/* The cpu device, opened by its first user; NULL with the reason. */
static GjDeviceEntry *
get_cpu(GjErrorText *why)
{
	GjDeviceEntry *entry = NULL;

	pthread_mutex_lock(&devices.lock);
	if (!devices.cpu_ready)
	{
		GjDevice   *device = gj_cpu_device.open(0, why);

		if (device)
			init_entry(&devices.cpu, &gj_cpu_device, device);
		devices.cpu_ready = device != NULL;
	}
	if (devices.cpu_ready)
		entry = &devices.cpu;
	pthread_mutex_unlock(&devices.lock);
	return entry;
}

GjDeviceEntry *
gj_devices_choose(GjDeviceKind kind, GjErrorText *why)
{
	uint32_t	n;
	uint32_t	fewest = UINT32_MAX;
	GjDeviceEntry *best = NULL;

	if (kind == GJ_DEVICE_CPU)
		return get_cpu(why);
	n = gj_devices_cuda(true, why);
	for (uint32_t i = 0; i < n; i++)
	{
		GjDeviceEntry *entry = &devices.cuda[i];
		uint32_t	nleases;

		pthread_mutex_lock(&entry->memory.lock);
		nleases = entry->memory.nleases;
		pthread_mutex_unlock(&entry->memory.lock);
		if (nleases < fewest)
		{
			fewest = nleases;
			best = entry;
		}
	}
	return best;
}

uint32_t
gj_devices_count(void)
{
	GjErrorText why;
	uint32_t	n = gj_devices_cuda(true, &why);

	return n + (get_cpu(&why) ? 1 : 0);
}

GjDeviceEntry *
gj_devices_get(uint32_t i)
{
	return i < devices.ncuda ? &devices.cuda[i] : &devices.cpu;
}

void
gj_devices_info(GjDeviceEntry *entry, GjDeviceInfo *info)
{
	*info = entry->info;
	pthread_mutex_lock(&entry->memory.lock);
	info->sessions = entry->memory.nleases;
	info->memory_used = entry->memory.used;
	pthread_mutex_unlock(&entry->memory.lock);
	info->memory_pinned = gj_segment_bytes(entry->ops);
}

void
gj_devices_stop(void)
{
	if (devices.started)
		pthread_join(devices.opener, NULL);
	for (uint32_t i = 0; i < devices.ncuda; i++)
		devices.cuda[i].ops->close(devices.cuda[i].device);
	if (devices.cpu_ready)
		devices.cpu.ops->close(devices.cpu.device);
	devices.ncuda = 0;
	devices.cpu_ready = false;
}
