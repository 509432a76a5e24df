/*
 * devices.c
 *	  The list of devices; see devices.h.
 */
#include "devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/pool.h"
#include "crash.h"
#include "log.h"
#include "segment.h"

#define GJ_MAX_GPUS			64
#define GJ_MAX_PRETENDED	GJ_MAX_RUN_DEVICES

/* Looks (gj_devices_tidy) without a lease after which a device is idle. */
#define GJ_IDLE_LOOKS		10

/* Guarded by `lock`; entries themselves are handed out and stay. */
static struct
{
	pthread_mutex_t lock;
	pthread_cond_t opened;
	pthread_t	opener;
	bool		started;
	bool		report;			/* what was found goes to the log */
	bool		cuda_ready;		/* the GPUs have been looked for and opened */
	bool		cpu_ready;
	uint64_t	skipped_gpus;	/* that gpujoin.devices leaves out, a bit each */
	uint32_t	ncuda;
	uint32_t	ncpu;
	uint32_t	per_gpu;		/* devices that each GPU is */
	GjErrorText cuda_reason;	/* if ncuda is 0 */
	uint32_t	cuda_driver;	/* as in WELCOME */
	uint32_t	cuda_runtime;
	uint32_t	nunused;		/* constant once the GPUs are open */
	GjUnusedDevice unused[GJ_MAX_GPUS];
	GjDeviceEntry cuda[GJ_MAX_GPUS];
	GjDeviceEntry cpu[GJ_MAX_PRETENDED];
}			devices = {
	.ncpu = 1,
	.per_gpu = 1,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.opened = PTHREAD_COND_INITIALIZER,
	.cuda_reason = {"the GPUs are being opened"}
};

/* The room of an entry's memory. */
static uint64_t
look_for_room(void *entry)
{
	const GjDeviceEntry *e = entry;

	return e->ops->room(e->device);
}

/* One of several devices that have the memory of one. */
static void
init_entry(GjDeviceEntry *entry, const GjDeviceOps *ops, GjDevice *device, uint32_t ordinal,
		   uint32_t several)
{
	memset(entry, 0, sizeof(*entry));
	entry->ops = ops;
	entry->device = device;
	ops->info(device, &entry->info);
	entry->info.ordinal = ordinal;
	entry->info.memory_total /= several;
	gj_memory_init(&entry->memory, gj_memory_leasable(entry->info.memory_total));
	if (ops->room)
		entry->memory.room = (GjRoom) {look_for_room, entry};
	(void) gj_memory_look(&entry->memory, true);
	entry->told_limit = entry->memory.limit;
}

/* Devices that one may pretend to be, of so many that are wanted. */
static uint32_t
limit_pretended(uint32_t n)
{
	return n < 1 ? 1 : n < GJ_MAX_PRETENDED ? n : GJ_MAX_PRETENDED;
}

bool
gj_devices_configure(const GjDeviceChoice *choice, GjErrorText *why)
{
	const char *gpus = choice->gpus;
	uint64_t	chosen = 0;

	gj_cpu_configure(choice->cpu_threads, choice->cpu_memory);
	devices.ncpu = limit_pretended(choice->ncpu);
	devices.per_gpu = limit_pretended(choice->per_gpu);
	devices.skipped_gpus = 0;
	if (!gpus || gpus[strspn(gpus, " ")] == '\0')
		return true;
	for (const char *at = gpus;;)
	{
		char	   *end;
		long		ordinal = strtol(at, &end, 10);

		end += strspn(end, " ");
		if (end == at || ordinal < 0 || ordinal >= GJ_MAX_GPUS || (*end != ',' && *end != '\0'))
		{
			snprintf(why->text, sizeof(why->text), "\"%.100s\" is no list of GPUs", gpus);
			return false;
		}
		chosen |= UINT64_C(1) << ordinal;
		if (*end == '\0')
			break;
		at = end + 1;
	}
	devices.skipped_gpus = ~chosen;
	return true;
}

bool
gj_devices_pretend(GjDeviceKind kind)
{
	return kind == GJ_DEVICE_CPU || devices.per_gpu > 1;
}

#ifdef GJ_WITH_CUDA
/* A GPU that is being opened. */
typedef struct GjOpening
{
	int			ordinal;
	pthread_t	thread;
	bool		skipped;		/* gpujoin.devices leaves it out */
	bool		started;
	GjDevice   *device;			/* NULL: it does not work */
	GjErrorText why;
} GjOpening;

/* Notes a GPU that is not used, and says so in the log. */
static void
note_unused(uint32_t ordinal, GjDeviceStatus status, const char *name, const GjErrorText *why)
{
	const bool	left_out = status == GJ_DEVICE_LEFT_OUT;
	char		number[16] = "of no number";
	GjUnusedDevice *unused;

	if (ordinal != GJ_NO_ORDINAL)
		snprintf(number, sizeof(number), "%u", ordinal);

	if (devices.report)
		gj_log(left_out ? GJ_LOG : GJ_WARNING, "GPU %s, %s, %s: %s", number, name,
			   left_out ? "is not used" : "cannot be used", why->text);
	if (devices.nunused == GJ_MAX_GPUS)
		return;
	unused = &devices.unused[devices.nunused++];
	unused->ordinal = ordinal;
	unused->status = status;
	snprintf(unused->name, sizeof(unused->name), "%s", name);
	unused->why = *why;
}

static void *
open_gpu(void *arg)
{
	GjOpening  *opening = arg;

	gj_crash_guard_stack();
	opening->device = gj_cuda_device.open(opening->ordinal, &opening->why);
	return NULL;
}

static void
log_gpu(const GjDeviceInfo *info)
{
	const double gib = 1024.0 * 1024.0 * 1024.0;

	if (devices.report)
		gj_log(GJ_LOG, "GPU %u is ready: %s, %u multiprocessors, %.1f GiB, %.1f GiB free",
			   info->ordinal, info->name, info->nprocessors, (double) info->memory_total / gib,
			   (double) info->memory_free / gib);
}

/*
 * Opens every GPU that works, all at the same time; the reason is that of the last one
 * that does not.
 */
static uint32_t
open_cuda(GjErrorText *why)
{
	uint32_t	n = 0;
	uint32_t	per_gpu = devices.per_gpu;
	int			count = gj_cuda_device.count(why) * (int) per_gpu;
	GjOpening	opening[GJ_MAX_GPUS];
	char		name[64];
	GjErrorText useless;

	if (count > GJ_MAX_GPUS)
		count = GJ_MAX_GPUS;
	for (int i = 0; i < count; i++)
	{
		uint32_t	gpu = (uint32_t) i / per_gpu;

		opening[i] = (GjOpening) {.ordinal = (int) gpu,.skipped = devices.skipped_gpus >> gpu & 1};
		if (opening[i].skipped)
			continue;
		opening[i].started = pthread_create(&opening[i].thread, NULL, open_gpu, &opening[i]) == 0;
		if (!opening[i].started)
			open_gpu(&opening[i]);
	}
	for (int i = 0; i < count; i++)
	{
		if (opening[i].started)
			pthread_join(opening[i].thread, NULL);
		if (opening[i].device)
		{
			init_entry(&devices.cuda[n++], &gj_cuda_device, opening[i].device, (uint32_t) i,
					   per_gpu);
			log_gpu(&devices.cuda[n - 1].info);
			continue;
		}
		gj_cuda_device.describe(opening[i].ordinal, name);
		if (opening[i].skipped)
			snprintf(opening[i].why.text, sizeof(opening[i].why.text),
					 "gpujoin.devices leaves GPU %d out", opening[i].ordinal);
		note_unused((uint32_t) i, opening[i].skipped ? GJ_DEVICE_LEFT_OUT : GJ_DEVICE_UNUSABLE,
					name, &opening[i].why);
		*why = opening[i].why;
	}
	for (int i = 0; gj_cuda_device.useless(i, name, &useless); i++)
		note_unused(GJ_NO_ORDINAL, GJ_DEVICE_UNUSABLE, name, &useless);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t other = 0; other < i; other++)
			gj_cuda_device.meet(devices.cuda[i].device, devices.cuda[other].device);
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
	gj_cuda_device.versions(&devices.cuda_driver, &devices.cuda_runtime);
	n = open_cuda(&why);
#endif
	if (n == 0 && devices.report)
		gj_log(GJ_LOG, "no GPU is used: %s", why.text);
	pthread_mutex_lock(&devices.lock);
	devices.ncuda = n;
	devices.cuda_reason = why;
	devices.cuda_ready = true;
	pthread_cond_broadcast(&devices.opened);
	pthread_mutex_unlock(&devices.lock);
	return NULL;
}

void
gj_devices_start(bool report)
{
	devices.report = report;
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

/* Opens all devices that the cpu pretends to be, which share its memory.  The lock is held. */
static bool
open_cpu(GjErrorText *why)
{
	for (uint32_t i = 0; i < devices.ncpu; i++)
	{
		GjDeviceEntry *entry = &devices.cpu[i];
		GjDevice   *device = gj_cpu_device.open((int) i, why);

		if (!device)
		{
			while (i-- > 0)
				gj_cpu_device.close(devices.cpu[i].device);
			return false;
		}
		init_entry(entry, &gj_cpu_device, device, i, devices.ncpu);
	}
	return true;
}

/* Number of devices of a kind and, in *first, their entries; opened by the first who asks. */
static uint32_t
get_devices(GjDeviceKind kind, GjDeviceEntry **first, GjErrorText *why)
{
	uint32_t	n;

	*first = kind == GJ_DEVICE_CPU ? devices.cpu : devices.cuda;
	if (kind != GJ_DEVICE_CPU)
		return gj_devices_cuda(true, why);
	pthread_mutex_lock(&devices.lock);
	if (!devices.cpu_ready)
		devices.cpu_ready = open_cpu(why);
	n = devices.cpu_ready ? devices.ncpu : 0;
	pthread_mutex_unlock(&devices.lock);
	return n;
}

uint32_t
gj_devices_choose_some(GjDeviceKind kind, uint32_t max, GjDeviceEntry **entries, GjErrorText *why)
{
	GjDeviceEntry *first;
	uint32_t	n = get_devices(kind, &first, why);
	uint32_t	load[GJ_MAX_GPUS];
	uint32_t	nchosen;

	for (uint32_t i = 0; i < n; i++)
	{
		pthread_mutex_lock(&first[i].memory.lock);
		load[i] = first[i].memory.nleases;
		pthread_mutex_unlock(&first[i].memory.lock);
	}
	for (nchosen = 0; nchosen < n && nchosen < max; nchosen++)
	{
		uint32_t	best = 0;

		for (uint32_t i = 1; i < n; i++)
			if (load[i] < load[best])
				best = i;
		entries[nchosen] = &first[best];
		load[best] = UINT32_MAX;
	}
	return nchosen;
}

GjDeviceEntry *
gj_devices_choose(GjDeviceKind kind, GjErrorText *why)
{
	GjDeviceEntry *entry;

	return gj_devices_choose_some(kind, 1, &entry, why) > 0 ? entry : NULL;
}

uint32_t
gj_devices_count(void)
{
	GjErrorText why;
	GjDeviceEntry *first;

	return get_devices(GJ_DEVICE_CUDA, &first, &why) + get_devices(GJ_DEVICE_CPU, &first, &why);
}

GjDeviceEntry *
gj_devices_get(uint32_t i)
{
	return i < devices.ncuda ? &devices.cuda[i] : &devices.cpu[i - devices.ncuda];
}

uint32_t
gj_devices_open(uint32_t max, GjDeviceEntry **entries)
{
	uint32_t	n = 0;

	pthread_mutex_lock(&devices.lock);
	for (uint32_t i = 0; i < devices.ncuda && n < max; i++)
		entries[n++] = &devices.cuda[i];
	for (uint32_t i = 0; devices.cpu_ready && i < devices.ncpu && n < max; i++)
		entries[n++] = &devices.cpu[i];
	pthread_mutex_unlock(&devices.lock);
	return n;
}

uint32_t
gj_devices_unused(const GjUnusedDevice **list)
{
	GjErrorText why;

	(void) gj_devices_cuda(true, &why);
	*list = devices.unused;
	return devices.nunused;
}

void
gj_devices_cuda_versions(uint32_t *driver, uint32_t *runtime)
{
	GjErrorText why;

	(void) gj_devices_cuda(true, &why);
	*driver = devices.cuda_driver;
	*runtime = devices.cuda_runtime;
}

void
gj_devices_count_run(GjDeviceEntry *entry, const GjDeviceTotals *run)
{
	pthread_mutex_lock(&entry->memory.lock);
	entry->totals.runs += run->runs;
	entry->totals.bytes_in += run->bytes_in;
	entry->totals.bytes_out += run->bytes_out;
	entry->totals.busy_ms += run->busy_ms;
	pthread_mutex_unlock(&entry->memory.lock);
}

/* Says in the log how much of the device other processes have, if that changed much. */
static void
tell_limit(GjDeviceEntry *entry, uint64_t limit)
{
	const uint64_t told = entry->told_limit;
	const uint64_t change = limit > told ? limit - told : told - limit;

	if (change < entry->memory.total / 8)
		return;
	entry->told_limit = limit;
	gj_log(GJ_LOG, "device %u: other processes leave %" PRIu64 " of %" PRIu64
		   " MB to queries and resident data", entry->info.ordinal, limit >> 20,
		   entry->memory.total >> 20);
}

void
gj_devices_tidy(GjDeviceEntry *entry)
{
	GjDeviceMemory *memory = &entry->memory;
	bool		shrinks;

	if (!entry->ops->tidy)
		return;
	tell_limit(entry, gj_memory_look(memory, false));
	shrinks = gj_memory_shrink(memory);
	pthread_mutex_lock(&memory->lock);
	entry->idle_looks = memory->nleases > 0 ? 0 : entry->idle_looks + 1;
	pthread_mutex_unlock(&memory->lock);
	entry->ops->tidy(entry->device, shrinks || entry->idle_looks == GJ_IDLE_LOOKS);
}

void
gj_devices_info(GjDeviceEntry *entry, GjDeviceInfo *info)
{
	*info = entry->info;
	pthread_mutex_lock(&entry->memory.lock);
	info->sessions = entry->memory.nleases;
	info->memory_used = entry->memory.used;
	info->memory_resident = entry->memory.resident;
	info->runs = entry->totals.runs;
	info->bytes_in = entry->totals.bytes_in;
	info->bytes_out = entry->totals.bytes_out;
	info->busy_ms = entry->totals.busy_ms;
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
	for (uint32_t i = 0; devices.cpu_ready && i < devices.ncpu; i++)
		devices.cpu[i].ops->close(devices.cpu[i].device);
	devices.ncuda = 0;
	devices.cpu_ready = false;
}
