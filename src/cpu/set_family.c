/*
 * set_family.c
 *	  All pairs of families of sets, and their distinct intersections, on the threads of the
 *	  cpu device; the work itself is in src/device/set_join.h and set_intersections.h.
 */
#include <stdlib.h>
#include <string.h>

#include "cpu_device.h"
#include "device/set_intersections.h"

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

static GjStatus
gj_cpu_set_build(GjQueue *queue, const GjSetInput *sets, const GjSetSpec *spec,
				 bool (*stop) (void *), void *arg, GjSetFamily *family)
{
	GjCpuHost	cpu = {queue, stop, arg};
	GjSetHost	host = make_host(&cpu);

	return gj_set_family_build(&host, sets, spec, family);
}

static void
gj_cpu_set_free(GjQueue *queue, GjSetFamily *family)
{
	GjCpuHost	cpu = {queue, NULL, NULL};
	GjSetHost	host = make_host(&cpu);

	gj_set_family_free(&host, family);
}

static GjStatus
gj_cpu_set_tile(GjQueue *queue, const GjSetFamily *family, const GjSetSpec *spec,
				const GjSetTile *tile, bool (*stop) (void *), void *arg,
				uint32_t *const out[3], uint32_t *n)
{
	GjCpuHost	cpu = {queue, stop, arg};
	GjSetHost	host = make_host(&cpu);
	GjStatus	status = gj_set_run_tile(&host, family, spec, tile, out, n);

	return status != GJ_OK ? status : gj_take_row_error(queue);
}

static GjStatus
gj_cpu_intersections_rehash(GjQueue *queue, const GjIntersections *found)
{
	gj_intersections_rehash(found);
	return GJ_OK;
}

static GjStatus
gj_cpu_intersections_find(GjQueue *queue, const GjSetFamily *family, const GjIntersections *found,
						  const GjFoundPairs *pairs, bool (*stop) (void *), void *arg, uint32_t *n)
{
	GjCpuHost	cpu = {queue, stop, arg};
	GjSetHost	host = make_host(&cpu);
	GjStatus	status = gj_intersections_find(&host, family, found, pairs, n);

	return status != GJ_OK ? status : gj_take_row_error(queue);
}

static GjStatus
gj_cpu_intersections_add(GjQueue *queue, const GjIntersections *found, const GjFoundPairs *pairs,
						 uint32_t n)
{
	gj_intersections_add(found, pairs, n);
	return GJ_OK;
}

static GjStatus
gj_cpu_intersections_place(GjQueue *queue, const GjIntersections *found, uint32_t first,
						   uint32_t max, uint64_t room, uint64_t *at, uint32_t *n, uint64_t *total)
{
	*n = 0;
	*total = 0;
	at[0] = 0;
	while (*n < max && first + *n < found->n &&
		   (*n == 0 || *total + found->common[first + *n] <= room))
	{
		*total += found->common[first + *n];
		at[++*n] = *total;
	}
	return gj_take_row_error(queue);
}

typedef struct GjWriteWork
{
	const GjSetFamily *family;
	const GjIntersections *found;
	const void *elements;
	uint32_t	width;
	uint32_t	first;
	uint32_t	n;
	const uint64_t *at;
	void	   *values;
	int64_t    *frequency;
} GjWriteWork;

static int64_t
get_element(const GjWriteWork *w, uint64_t i)
{
	return w->width == 2 ? ((const int16_t *) w->elements)[i] :
		w->width == 4 ? ((const int32_t *) w->elements)[i] : ((const int64_t *) w->elements)[i];
}

static void
put_element(const GjWriteWork *w, uint64_t i, int64_t value)
{
	if (w->width == 2)
		((int16_t *) w->values)[i] = (int16_t) value;
	else if (w->width == 4)
		((int32_t *) w->values)[i] = (int32_t) value;
	else
		((int64_t *) w->values)[i] = value;
}

/* Merges the sets of a pair until all that they have in common is written. */
static void
write_intersection(const GjWriteWork *w, uint32_t i)
{
	const GjSetFamily *family = w->family;
	uint64_t	a = family->offset[w->found->left[w->first + i]];
	uint64_t	b = family->offset[family->first_right + (uint64_t) w->found->right[w->first + i]];
	uint64_t	to = w->at[i];

	while (to < w->at[i + 1])
	{
		int64_t		x = get_element(w, a);
		int64_t		y = get_element(w, b);

		a += x <= y;
		b += y <= x;
		if (x != y)
			continue;
		put_element(w, to, x);
		w->frequency[to++] = 0;
	}
	w->frequency[to - 1] = (int64_t) w->found->frequency[w->first + i];
}

static void
write_item(void *arg, uint32_t item)
{
	const GjWriteWork *w = arg;
	uint32_t	i = item * GJ_INTERSECTIONS_ITEM;
	uint32_t	end = gj_set_least(w->n - i, GJ_INTERSECTIONS_ITEM) + i;

	for (; i < end; i++)
		write_intersection(w, i);
}

static GjStatus
gj_cpu_intersections_write(GjQueue *queue, const GjSetFamily *family, const GjIntersections *found,
						   const void *elements, uint32_t width, uint32_t first, uint32_t n,
						   const uint64_t *at, bool (*stop) (void *), void *arg, void *values,
						   int64_t *frequency)
{
	GjCpuHost	cpu = {queue, stop, arg};
	GjWriteWork w = {family, found, elements, width, first, n, at, values, frequency};

	return host_run(&cpu, gj_intersections_items(n), write_item, &w) ? GJ_OK : GJ_CANCELLED;
}

const GjSetOps gj_cpu_sets = {
	.sort_unique = gj_cpu_sort_unique,
	.set_pair = gj_cpu_set_pair,
	.array_sizes = gj_cpu_array_sizes,
	.array_sets = gj_cpu_array_sets,
	.flag_changes = gj_cpu_flag_changes,
	.run_sizes = gj_cpu_run_sizes,
	.set_build = gj_cpu_set_build,
	.set_free = gj_cpu_set_free,
	.set_tile = gj_cpu_set_tile,
	.intersections_rehash = gj_cpu_intersections_rehash,
	.intersections_find = gj_cpu_intersections_find,
	.intersections_add = gj_cpu_intersections_add,
	.intersections_place = gj_cpu_intersections_place,
	.intersections_write = gj_cpu_intersections_write
};
