/*
 * cpu_device.c
 *	  The cpu as a device: queues, memory, copies, and the table of operators.
 *
 * Its memory is malloc's; how much of it programs may use is counted by their leases.
 */
#define _GNU_SOURCE
#include "cpu_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "wire/processors.h"

#define GJ_MAX_THREADS		32
/* Threads up to which its rates were measured to grow. */
#define GJ_MEASURED			16
#define GJ_ALLOC_ALIGN		256

/* A core each, measured with 2 M unique keys on a Xeon server; threads multiply the second two. */
#define GJ_COPY_RATE		5e9
#define GJ_BUILD_RATE		6e6
#define GJ_PROBE_RATE		11e6
/* of all threads */
#define GJ_SORT_RATE		2e7
#define GJ_PAIR_RATE		2e8

static double
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* ---- the device */

static int
cpu_count(GjErrorText *why)
{
	return 1;
}

/* The name that /proc/cpuinfo tells, else "cpu". */
static void
read_name(char *name, size_t size)
{
	FILE	   *f = fopen("/proc/cpuinfo", "r");
	char		line[256];

	snprintf(name, size, "cpu");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
	{
		char	   *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(name, size, "%.*s", (int) size - 1, colon[1] == ' ' ? colon + 2 : colon + 1);
		break;
	}
	fclose(f);
}

GjPool *
gj_cpu_pool(GjDevice *device)
{
	return device->pool;
}

/* It needs no driver. */
static void
cpu_versions(uint32_t *driver, uint32_t *runtime)
{
	*driver = *runtime = 0;
}

static void
cpu_describe(int ordinal, char name[64])
{
	read_name(name, 64);
}

/* Each machine has one. */
static bool
cpu_useless(int i, char name[64], GjErrorText *why)
{
	return false;
}

static uint32_t wanted_threads = 0;
static uint64_t wanted_memory = 0;

void
gj_cpu_configure(uint32_t nthreads, uint64_t memory)
{
	wanted_threads = nthreads;
	wanted_memory = memory;
}

static GjDevice *
cpu_open(int ordinal, GjErrorText *why)
{
	GjDevice   *device = calloc(1, sizeof(GjDevice));
	GjDeviceInfo *info;
	uint32_t	nthreads = wanted_threads > 0 ? wanted_threads : (uint32_t) gj_count_processors();

	if (nthreads > GJ_MAX_THREADS)
		nthreads = GJ_MAX_THREADS;
	if (device)
		device->pool = gj_pool_open(nthreads);
	if (!device || !device->pool)
	{
		snprintf(why->text, sizeof(why->text), "out of memory");
		free(device);
		return NULL;
	}
	info = &device->info;
	read_name(info->name, sizeof(info->name));
	info->kind = GJ_DEVICE_CPU;
	info->ordinal = (uint32_t) ordinal;
	info->nprocessors = nthreads;
	info->memory_total = wanted_memory > 0 ? wanted_memory :
		(uint64_t) sysconf(_SC_PHYS_PAGES) * (uint64_t) sysconf(_SC_PAGESIZE) / 2;
	info->memory_free = (uint64_t) sysconf(_SC_AVPHYS_PAGES) * (uint64_t) sysconf(_SC_PAGESIZE);
	info->copy_in_rate = GJ_COPY_RATE;
	info->copy_out_rate = GJ_COPY_RATE;
	info->build_rate = GJ_BUILD_RATE * (nthreads < GJ_MEASURED ? nthreads : GJ_MEASURED);
	info->probe_rate = GJ_PROBE_RATE * (nthreads < GJ_MEASURED ? nthreads : GJ_MEASURED);
	info->sort_rate = GJ_SORT_RATE;
	info->pair_rate = GJ_PAIR_RATE;
	return device;
}

static void
cpu_close(GjDevice *device)
{
	gj_pool_close(device->pool);
	free(device);
}

/* All of them read the same memory. */
static void
cpu_meet(GjDevice *device, GjDevice *other)
{
}

static void
cpu_info(GjDevice *device, GjDeviceInfo *info)
{
	*info = device->info;
}

static GjStatus
cpu_host_register(GjDevice *device, void *memory, size_t nbytes, GjErrorText *why)
{
	return GJ_OK;
}

static void
cpu_host_unregister(GjDevice *device, void *memory)
{
}

/* ---- queues */

static GjStatus
cpu_queue_close(GjQueue *queue, GjErrorText *why)
{
	free(queue->program);
	free(queue->columns);
	gj_tile_close(&queue->tile);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
	return GJ_OK;
}

static GjStatus
cpu_queue_open(GjDevice *device, const GjProgram *program, GjQueue **opened, GjErrorText *why)
{
	GjQueue    *queue = calloc(1, sizeof(GjQueue));

	if (!queue)
		return GJ_OUT_OF_HOST_MEMORY;
	pthread_mutex_init(&queue->lock, NULL);
	queue->device = device;
	queue->program = malloc(program->nbytes);
	queue->columns = calloc(program->ncolumns + 1, sizeof(GjColumn));
	if (!queue->program || !queue->columns || !gj_tile_open(&queue->tile))
	{
		cpu_queue_close(queue, why);
		return GJ_OUT_OF_HOST_MEMORY;
	}
	memcpy(queue->program, program, program->nbytes);
	queue->code.exprs = gj_program_array(queue->program, GjExpr, exprs);
	queue->code.instrs = gj_program_array(queue->program, GjInstr, instrs);
	queue->code.constants = gj_program_array(queue->program, int64_t, constants);
	queue->code.columns = gj_program_array(queue->program, GjColumnType, columns);
	queue->phase = GJ_PHASE_WAIT;
	queue->phase_start = now_ms();
	*opened = queue;
	return GJ_OK;
}

static const char *
cpu_queue_error(GjQueue *queue)
{
	return queue->error.text;
}

GjStatus
gj_take_row_error(GjQueue *queue)
{
	return __atomic_exchange_n(&queue->row_error, GJ_OK, __ATOMIC_RELAXED);
}

static void
cpu_phase(GjQueue *queue, GjPhase phase)
{
	double		now = now_ms();

	queue->phase_ms[queue->phase] += now - queue->phase_start;
	queue->phase = phase;
	queue->phase_start = now;
}

static GjStatus
cpu_sync(GjQueue *queue)
{
	cpu_phase(queue, queue->phase);
	return gj_take_row_error(queue);
}

static const double *
cpu_phase_ms(GjQueue *queue)
{
	return queue->phase_ms;
}

/* ---- memory */

static GjStatus
cpu_alloc(GjQueue *queue, size_t nbytes, void **memory)
{
	if (posix_memalign(memory, GJ_ALLOC_ALIGN, nbytes > 0 ? nbytes : 1) != 0)
		return GJ_OUT_OF_MEMORY;
	return GJ_OK;
}

void
gj_cpu_free(GjQueue *queue, void *memory, size_t nbytes)
{
	free(memory);
}

/* malloc knows no queues. */
static GjStatus
cpu_adopt(GjQueue *queue, GjQueue *from, void *const *memory, uint32_t n)
{
	return GJ_OK;
}

static GjStatus
cpu_copy(GjQueue *queue, void *to, const void *from, size_t nbytes)
{
	if (nbytes > 0)
		memcpy(to, from, nbytes);
	return GJ_OK;
}

static GjStatus
cpu_copy_many(GjQueue *queue, const GjPiece *pieces, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		(void) cpu_copy(queue, pieces[i].to, pieces[i].from, pieces[i].nbytes);
	return GJ_OK;
}

static GjStatus
cpu_copy_peer(GjQueue *queue, void *to, GjDevice *device, const void *from, size_t nbytes)
{
	return cpu_copy(queue, to, from, nbytes);
}

static GjStatus
cpu_fill(GjQueue *queue, void *memory, int byte, size_t nbytes)
{
	if (nbytes > 0)
		memset(memory, byte, nbytes);
	return GJ_OK;
}

/* Everything is done when it is queued: marks stand for nothing. */
static GjStatus
cpu_mark(GjQueue *queue, GjLane lane, uint32_t m)
{
	queue->marked[m] = true;
	return GJ_OK;
}

static GjStatus
cpu_after(GjQueue *queue, GjLane lane, uint32_t m)
{
	return GJ_OK;
}

static GjStatus
cpu_passed(GjQueue *queue, uint32_t m, bool wait, bool *done)
{
	/* all is done, but so that callers do without knowing that at once, as with a GPU: the second time */
	*done = wait || !queue->marked[m];
	queue->marked[m] = false;
	return GJ_OK;
}

static void
cpu_load_wait(GjQueue *queue)
{
	memset(queue->marked, 0, sizeof(queue->marked));
}

/* A bad reference becomes an empty one, so that nothing follows it. */
GjStatus
gj_cpu_rebase_refs(GjQueue *queue, uint64_t *refs, uint32_t n, uint64_t base, uint64_t heap_size)
{
	bool		bad = false;

	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	ref = refs[i];

		if (gj_ref_length(ref) == GJ_REF_HELD)
			continue;
		if (gj_ref_offset(ref) + gj_ref_length(ref) > heap_size)
		{
			bad = true;
			refs[i] = 0;
		}
		else if (base != 0)
			refs[i] = ref + gj_ref_make(base, 0);
	}
	if (bad)
		gj_note_row_error(queue, GJ_BAD_PROGRAM);
	return GJ_OK;
}

GjStatus
gj_cpu_set_columns(GjQueue *queue, const GjColumn *columns, uint32_t n,
				const GjColumn **device_columns)
{
	memcpy(queue->columns, columns, n * sizeof(GjColumn));
	*device_columns = queue->columns;
	return GJ_OK;
}

const GjDeviceOps gj_cpu_device = {
	.name = "cpu",
	.kind = GJ_DEVICE_CPU,
	.most_tuples = GJ_MAX_TUPLES,
	.count = cpu_count,
	.versions = cpu_versions,
	.describe = cpu_describe,
	.useless = cpu_useless,
	.open = cpu_open,
	.close = cpu_close,
	.meet = cpu_meet,
	.info = cpu_info,
	.host_register = cpu_host_register,
	.host_unregister = cpu_host_unregister,
	.memory = &gj_cpu_memory,
	.queues = &gj_cpu_queues,
	.columns = &gj_cpu_columns,
	.tables = &gj_cpu_tables,
	.groups = &gj_cpu_groups,
	.pass = &gj_cpu_pass,
	.places = &gj_cpu_places,
	.order = &gj_cpu_order,
	.sets = &gj_cpu_sets,
	.exchange = &gj_cpu_exchange
};

const GjMemoryOps gj_cpu_memory = {
	.alloc = cpu_alloc,
	.free = gj_cpu_free,
	.adopt = cpu_adopt,
	.copy_in = cpu_copy,
	.copy_out = cpu_copy,
	.copy = cpu_copy,
	.copy_many = cpu_copy_many,
	.copy_peer = cpu_copy_peer,
	.fill = cpu_fill,
	.load_in = cpu_copy,
	.load_copy = cpu_copy,
	.load_peer = cpu_copy_peer,
	.load_fill = cpu_fill
};

const GjQueueOps gj_cpu_queues = {
	.queue_open = cpu_queue_open,
	.queue_close = cpu_queue_close,
	.queue_error = cpu_queue_error,
	.sync = cpu_sync,
	.phase = cpu_phase,
	.phase_ms = cpu_phase_ms,
	.mark = cpu_mark,
	.after = cpu_after,
	.passed = cpu_passed,
	.load_wait = cpu_load_wait
};
