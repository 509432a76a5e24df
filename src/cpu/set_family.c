/*
 * set_family.c
 *	  All pairs of families of sets on the threads of the cpu device; the work itself is in
 *	  src/rows/set_join.h.
 */
#include <stdlib.h>
#include <string.h>

#include "cpu_device.h"
#include "../rows/set_join.h"

/* What a call of the device brings along. */
typedef struct GjCpuHost
{
	GjQueue    *queue;
	bool		(*stop) (void *);
	void	   *stop_arg;
} GjCpuHost;

typedef struct GjCpuTask
{
	void		(*task) (void *, uint32_t);
	void	   *arg;
} GjCpuTask;

static void *
host_alloc(void *arg, size_t nbytes)
{
	return malloc(nbytes > 0 ? nbytes : 1);
}

static void
host_free(void *arg, void *memory)
{
	free(memory);
}

static void
run_task(void *arg, uint32_t item, const GjTile *tile)
{
	const GjCpuTask *task = arg;

	task->task(task->arg, item);
}

static bool
host_run(void *arg, uint32_t n, void (*task) (void *, uint32_t), void *task_arg)
{
	const GjCpuHost *host = arg;
	GjCpuTask	work = {task, task_arg};

	return gj_pool_run(host->queue->device->pool, n, run_task, &work, &host->queue->tile,
					   host->stop, host->stop_arg);
}

static GjSetHost
make_host(GjCpuHost *host)
{
	return (GjSetHost) {host, host_alloc, host_free, host_run};
}

GjStatus
gj_cpu_set_build(GjQueue *queue, const GjSetInput *sets, const GjSetSpec *spec,
				 bool (*stop) (void *), void *arg, GjSetFamily *family)
{
	GjCpuHost	cpu = {queue, stop, arg};
	GjSetHost	host = make_host(&cpu);

	return gj_set_family_build(&host, sets, spec, family);
}

void
gj_cpu_set_free(GjQueue *queue, GjSetFamily *family)
{
	GjCpuHost	cpu = {queue, NULL, NULL};
	GjSetHost	host = make_host(&cpu);

	gj_set_family_free(&host, family);
}

GjStatus
gj_cpu_set_tile(GjQueue *queue, const GjSetFamily *family, const GjSetSpec *spec,
				const GjSetTile *tile, bool (*stop) (void *), void *arg,
				uint32_t *const out[3], uint32_t *n)
{
	GjCpuHost	cpu = {queue, stop, arg};
	GjSetHost	host = make_host(&cpu);
	GjStatus	status = gj_set_run_tile(&host, family, spec, tile, out, n);

	return status != GJ_OK ? status : gj_take_row_error(queue);
}
