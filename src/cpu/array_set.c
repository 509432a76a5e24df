/*
 * array_set.c
 *	  The sets of integer arrays: decoded, sorted, made unique, on the threads of the cpu
 *	  device.
 */
#include <stdlib.h>
#include <string.h>

#include "integers/integers.h"
#include "rows/array.h"
#include "cpu_device.h"

/* Tuples of an item: sets can be large. */
#define GJ_ARRAY_ITEM		256u

/* The pool looks at cancellation between items. */
static void
do_not_pause(void)
{
}

static const GjIntegersHost host = {malloc, free, do_not_pause};

#define GJ_NAME_(name, width)	name##_##width
#define GJ_NAME(name, width)	GJ_NAME_(name, width)

#define WIDTH	2
#define VALUE	int16_t
#include "array_set_width.h"
#undef WIDTH
#undef VALUE
#define WIDTH	4
#define VALUE	int32_t
#include "array_set_width.h"
#undef WIDTH
#undef VALUE
#define WIDTH	8
#define VALUE	int64_t
#include "array_set_width.h"
#undef WIDTH
#undef VALUE

typedef struct GjArrayWork
{
	GjQueue    *queue;
	const GjView *view;
	const GjColumn *column;
	uint32_t	source;
	uint32_t	first;
	uint32_t	n;
	uint32_t	width;
	uint32_t	nulls;
	int32_t    *size;
	uint8_t    *null;			/* array_sizes */
	uint8_t    *values;			/* array_sets */
	uint64_t   *offset;			/* where each set begins before it is made unique */
} GjArrayWork;

static GjArrayWork
start_work(GjQueue *queue, const GjView *view, const GjArrayColumn *column, uint32_t first,
		   uint32_t n, int32_t *size)
{
	return (GjArrayWork) {
		.queue = queue,.view = view,.column = &view->columns[column->column],
		.source = queue->code.columns[column->column].source,.first = first,.n = n,
		.width = column->width,.nulls = column->nulls,.size = size
	};
}

static bool
run_items(GjArrayWork *work, GjPoolTask task, bool (*stop) (void *), void *arg)
{
	uint32_t	nitems = (uint32_t) (((uint64_t) work->n + GJ_ARRAY_ITEM - 1) / GJ_ARRAY_ITEM);

	return gj_pool_run(work->queue->device->pool, nitems, task, work, &work->queue->tile, stop, arg);
}

/* Tuple i of those that are worked on. */
static inline uint64_t
array_ref(const GjArrayWork *work, uint32_t row)
{
	return gj_column_ref(work->column, row);
}

static void
sizes_item(void *arg, uint32_t item, const GjTile *tile)
{
	GjArrayWork *work = arg;
	uint32_t	begin = item * GJ_ARRAY_ITEM;
	uint32_t	end = work->n - begin < GJ_ARRAY_ITEM ? work->n : begin + GJ_ARRAY_ITEM;
	uint32_t	status = GJ_OK;

	for (uint32_t i = begin; i < end; i++)
	{
		uint32_t	row = gj_view_row(work->view, work->source, work->first + i);
		uint32_t	s;

		work->size[i] = 0;
		work->null[i] = gj_row_is_null(work->column, row);
		if (work->null[i])
			continue;
		s = gj_array_set(array_ref(work, row), work->column->heap, work->width, work->nulls,
						 &work->size[i], &work->null[i]);
		if (s != GJ_OK)
			status = s;
	}
	gj_note_row_error(work->queue, status);
}

GjStatus
gj_cpu_array_sizes(GjQueue *queue, const GjView *view, uint32_t first, uint32_t n,
				   const GjArrayColumn *column, int32_t *size, uint8_t *null, uint64_t *total)
{
	GjArrayWork work = start_work(queue, view, column, first, n, size);

	work.null = null;
	run_items(&work, sizes_item, NULL, NULL);
	*total = 0;
	for (uint32_t i = 0; i < n; i++)
		*total += (uint32_t) size[i];
	return gj_take_row_error(queue);
}

static void
sets_item(void *arg, uint32_t item, const GjTile *tile)
{
	GjArrayWork *work = arg;
	uint32_t	begin = item * GJ_ARRAY_ITEM;
	uint32_t	end = work->n - begin < GJ_ARRAY_ITEM ? work->n : begin + GJ_ARRAY_ITEM;

	for (uint32_t i = begin; i < end; i++)
	{
		uint8_t    *to = work->values + work->offset[i] * work->width;
		GjArray		array;
		bool		made;

		/* array_sizes has seen it */
		if (work->size[i] == 0)
			continue;
		(void) gj_array_of(array_ref(work, gj_view_row(work->view, work->source, i)),
						   work->column->heap, work->width, &array);
		made = work->width == 2 ? make_set_2(&array, (int16_t *) to, &work->size[i]) :
			work->width == 4 ? make_set_4(&array, (int32_t *) to, &work->size[i]) :
			make_set_8(&array, (int64_t *) to, &work->size[i]);
		if (!made)
			gj_note_row_error(work->queue, GJ_OUT_OF_HOST_MEMORY);
	}
}

GjStatus
gj_cpu_array_sets(GjQueue *queue, const GjView *view, const GjArrayColumn *column, int32_t *size,
				  void *values, bool (*stop) (void *), void *arg, uint64_t *nvalues)
{
	GjArrayWork work = start_work(queue, view, column, 0, view->nrows, size);
	uint64_t	total = 0;
	bool		done;

	*nvalues = 0;
	work.values = values;
	work.offset = malloc(((size_t) view->nrows + 1) * sizeof(uint64_t));
	if (!work.offset)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < view->nrows; i++)
	{
		work.offset[i] = total;
		total += (uint32_t) size[i];
	}
	done = run_items(&work, sets_item, stop, arg);
	/* move the sets together */
	total = 0;
	for (uint32_t i = 0; i < view->nrows && done; i++)
	{
		if (total < work.offset[i])
			memmove(work.values + total * work.width, work.values + work.offset[i] * work.width,
					(size_t) size[i] * work.width);
		total += (uint32_t) size[i];
	}
	free(work.offset);
	*nvalues = total;
	return done ? gj_take_row_error(queue) : GJ_CANCELLED;
}
