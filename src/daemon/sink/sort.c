/*
 * sort.c
 *	  The sink of sorted rows: all rows in the order of the sort keys.
 *
 * Probe chunks are gone when the next one comes.  So the rows of each view are gathered, as a
 * batch would be, and appended to a relation of output columns on the device; so are their keys.
 * A batch goes through a slot in host memory on its way.  That costs a copy, not much beside what
 * PostgreSQL does with the row, and works for any type of column.  At the end the keys are
 * sorted, and the relation's rows are sent as a view of all of them in that order.
 *
 * If other runs have rows too, or the rows do not fit the device, they are handed over as sorted
 * runs (sink.h): whenever there is no room for more, and at the end.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/base.h"

/* However little memory there is, so many rows are kept before they are handed over. */
#define GJ_LEAST_SORTED		1024

/* Rows of one sorted run at most: their number has 32 bits, and buffers grow by doubling. */
#define GJ_MOST_SORTED		(UINT64_C(1) << 30)

typedef struct GjSorted
{
	GjSortedLayout layout;
	GjKeys		keys;			/* of the rows */
	int32_t		operand[GJ_MAX_KEYS];
	GjRelation	rows;
	GjSegment  *slot;			/* what rows are gathered into */
	GjBuffer	key_values[GJ_MAX_KEYS];
	GjBuffer	key_nulls;		/* of one view; not read */
	GjBuffer	positions;
	GjBuffer	picked;			/* handing over: keys of the rows in a slot, key by key */
	uint64_t	reserved;		/* handing over: what sorting will need, taken from the lease */
} GjSorted;

/* What the run keeps; NULL: no tuples have come. */
static GjSorted *
sorted_of(const GjRun *run)
{
	return run->output.state;
}

static bool
hands_over(const GjRun *run)
{
	return gj_run_form(run) == GJ_FORM_SORTED;
}

static void
free_keys(GjWork *work, GjSorted *sorted)
{
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
		gj_buffer_free(work, &sorted->key_values[k]);
	gj_buffer_free(work, &sorted->key_nulls);
}

static void
give_reserved(GjWork *work, GjSorted *sorted)
{
	gj_lease_give(work->lease, sorted->reserved);
	sorted->reserved = 0;
}

/* Gives back what belongs to the rows that there are: there are none then. */
static void
free_rows(GjWork *work, GjSorted *sorted)
{
	gj_relation_free(work, &sorted->rows);
	free_keys(work, sorted);
	gj_buffer_free(work, &sorted->positions);
	gj_buffer_free(work, &sorted->picked);
	give_reserved(work, sorted);
}

/* No rows, or none any more. */
static GjStatus
start_anew(GjRun *run)
{
	GjSorted   *sorted = sorted_of(run);

	free_rows(&run->work, sorted);
	if (!gj_relation_init(&sorted->rows, sorted->layout.types, run->output.ncolumns, 0))
		return GJ_OUT_OF_HOST_MEMORY;
	sorted->rows.in_steps = hands_over(run);
	return GJ_OK;
}

static GjStatus
start_sorted(GjRun *run)
{
	const GjSortKey *sort_keys = gj_program_array(run->program, GjSortKey, sort_keys);
	GjSorted   *sorted = calloc(1, sizeof(GjSorted));
	GjErrorText why = {""};
	GjStatus	status;

	if (!sorted)
		return GJ_OUT_OF_HOST_MEMORY;
	run->output.state = sorted;
	sorted->keys.nkeys = run->program->nsort_keys;
	for (uint32_t k = 0; k < sorted->keys.nkeys; k++)
		sorted->operand[k] = (int32_t) sort_keys[k].index;
	if (!gj_sorted_layout(run->program, &sorted->layout))
		return GJ_OUT_OF_HOST_MEMORY;
	GJ_TRY(start_anew(run));
	status = gj_segment_get(run->entry, GJ_OUTPUT_SLOT_SIZE, &sorted->slot, &why);
	return status == GJ_OK ? GJ_OK : gj_run_fail(run, status, why.text);
}

static void
free_sorted(GjRun *run)
{
	GjSorted   *sorted = sorted_of(run);

	if (!sorted)
		return;
	free_rows(&run->work, sorted);
	if (sorted->slot)
		gj_segment_put(sorted->slot);
	gj_sorted_layout_free(&sorted->layout);
	free(sorted);
	run->output.state = NULL;
}

/* ---- rows come in */

/* Bytes that it takes to sort nrows rows and to hand them over, beside them and their keys. */
static uint64_t
sort_need(const GjSorted *sorted, uint64_t nrows)
{
	uint64_t	picked = sorted->layout.capacity < nrows ? sorted->layout.capacity : nrows;

	return nrows * (GJ_SORT_SPACE + sizeof(uint32_t)) +
		picked * sorted->keys.nkeys * sizeof(int64_t) + 4096;
}

/* Takes that from the lease for n more rows, or many more, for it must not be missing then. */
static GjStatus
reserve_sort(GjRun *run, uint32_t n)
{
	GjSorted   *sorted = sorted_of(run);
	GjLease    *lease = run->work.lease;
	uint64_t	nrows = sorted->rows.nrows + n;
	uint64_t	least = sort_need(sorted, nrows);
	uint64_t	most = sort_need(sorted, nrows + nrows / 2);

	if (nrows > GJ_MOST_SORTED)
		return GJ_OUT_OF_MEMORY;
	if (sorted->reserved >= least)
		return GJ_OK;
	/* what is more than needed is not worth resident data */
	if (most - sorted->reserved > gj_lease_free(lease))
		most = least;
	if (!gj_lease_take(lease, most - sorted->reserved))
		return GJ_OUT_OF_MEMORY;
	sorted->reserved = most;
	return GJ_OK;
}

/* Appends the keys of n of the view's tuples. */
static GjStatus
append_keys(GjRun *run, const GjView *view, uint32_t first, uint32_t n)
{
	GjSorted   *sorted = sorted_of(run);
	GjWork	   *work = &run->work;
	GjKeys		keys = {.nkeys = sorted->keys.nkeys,.nrows = view->nrows};
	uint64_t	used = sorted->rows.nrows * sizeof(int64_t);

	GJ_TRY(gj_buffer_reserve(work, &sorted->key_nulls, view->nrows));
	keys.null = sorted->key_nulls.memory;
	for (uint32_t k = 0; k < keys.nkeys; k++)
	{
		GJ_TRY(gj_buffer_grow_much(work, &sorted->key_values[k], used,
								   used + (uint64_t) n * sizeof(int64_t), 0));
		sorted->keys.value[k] = sorted->key_values[k].memory;
		/* keys are written by the number of their tuple: those before `first` are not there */
		keys.value[k] = (int64_t *) ((uintptr_t) sorted->key_values[k].memory + used -
									 first * sizeof(int64_t));
	}
	return work->ops->columns->ordered_keys(work->queue, view, first, n, sorted->operand, &keys);
}

/* Appends the rows in the slot, n of them. */
static GjStatus
append_slot(GjRun *run, uint32_t n)
{
	GjSorted   *sorted = sorted_of(run);
	const uint8_t *slot = sorted->slot->memory;
	GjSlotHeader header;
	GjChunk		chunk;

	memcpy(&header, slot, sizeof(header));
	chunk = (GjChunk) {slot, n, header.heap_used, &run->output.layout, run->output.places,
		gj_slot_has_nulls((uint8_t *) slot)};
	GJ_TRY(gj_relation_append(&run->work, &sorted->rows, &chunk));
	/* the slot is free again */
	return run->work.ops->queues->sync(run->work.queue);
}

/* Appends n of the view's tuples; *done: those that were, also after an error. */
static GjStatus
append_tuples(GjRun *run, const GjView *view, uint32_t first, uint32_t n, uint32_t *done)
{
	GjWork	   *work = &run->work;
	GjBatchTarget target = {sorted_of(run)->slot->memory, run->output.layout, run->output.places};
	uint32_t	some;

	*done = 0;
	if (hands_over(run))
		GJ_TRY(reserve_sort(run, n));
	GJ_TRY(append_keys(run, view, first, n));
	for (; *done < n; *done += some)
	{
		GJ_STOP_CHECK(run);
		GJ_TRY(work->ops->columns->gather(work->queue, view, first + *done, n - *done, &target,
										  &some));
		GJ_TRY(append_slot(run, some));
	}
	return GJ_OK;
}

/* ---- rows go out */

/* Sorts all rows: a view of them, whose columns are the queue's until others are set. */
static GjStatus
sort_rows(GjRun *run, GjView *sorted_view)
{
	GjSorted   *sorted = sorted_of(run);
	GjWork	   *work = &run->work;
	const GjProgram *p = run->program;
	const uint32_t *outputs = gj_program_array(p, uint32_t, outputs);
	GjColumn   *of_rows = malloc((run->output.ncolumns + 1) * sizeof(GjColumn));
	GjColumn   *columns = malloc((p->ncolumns + 1) * sizeof(GjColumn));
	GjStatus	status = GJ_OUT_OF_HOST_MEMORY;

	memset(sorted_view, 0, sizeof(*sorted_view));
	sorted->keys.nrows = sorted_view->nrows = (uint32_t) sorted->rows.nrows;
	give_reserved(work, sorted);
	if (of_rows && columns)
		status = gj_run_sort_keys(run, &sorted->keys, sorted->layout.descending,
								  &sorted->positions);
	if (status == GJ_OK)
	{
		/* the output columns are those of the relation now, of whichever source they were */
		memcpy(columns, run->columns, p->ncolumns * sizeof(GjColumn));
		gj_relation_columns(&sorted->rows, 0, of_rows);
		for (uint32_t c = 0; c < run->output.ncolumns; c++)
			columns[outputs[c]] = of_rows[c];
		status = work->ops->columns->set_columns(work->queue, columns, p->ncolumns,
												 &sorted_view->columns);
	}
	for (uint32_t s = 0; s < p->nsources; s++)
		sorted_view->rowid[s] = sorted->positions.memory;
	free(of_rows);
	free(columns);
	return status;
}

/* Fills a slot with sorted rows from `first` on, at most *n of them, and their keys. */
static GjStatus
fill_slot(GjRun *run, void *arg, uint32_t first, uint8_t *slot, uint32_t *n)
{
	const GjView *view = arg;
	GjSorted   *sorted = sorted_of(run);
	GjWork	   *work = &run->work;
	const GjSortedLayout *layout = &sorted->layout;
	GjBatchTarget target = {slot, layout->batch, layout->places};

	GJ_TRY(work->ops->columns->gather(work->queue, view, first, *n, &target, n));
	GJ_TRY(gj_buffer_reserve(work, &sorted->picked,
							 (uint64_t) *n * layout->nkeys * sizeof(int64_t)));
	for (uint32_t k = 0; k < layout->nkeys; k++)
	{
		int64_t    *picked = (int64_t *) sorted->picked.memory + (uint64_t) k * *n;

		GJ_TRY(work->ops->columns->pick_values(work->queue, picked, sorted->keys.value[k],
									  (const uint32_t *) sorted->positions.memory + first, *n));
		GJ_TRY(work->ops->memory->copy_out(work->queue,
										   slot + layout->places[layout->noutputs + k].data,
								   picked, *n * sizeof(int64_t)));
	}
	return work->ops->queues->sync(work->queue);
}

/* Tells the host the keys of the last row. */
static GjStatus
tell_end_keys(GjRun *run, const GjSortedLayout *layout, uint32_t nrows, GjFillSorted fill,
			  void *arg)
{
	const GjTarget *to = &run->output.target;
	int64_t		keys[GJ_MAX_KEYS];
	uint32_t	n = 1;
	uint8_t    *slot;

	GJ_TRY(to->sorted->slot(to->arg, &slot));
	GJ_TRY(fill(run, arg, nrows - 1, slot, &n));
	for (uint32_t k = 0; k < layout->nkeys; k++)
		memcpy(&keys[k], slot + layout->places[layout->noutputs + k].data, sizeof(keys[k]));
	to->sorted->end_keys(to->arg, keys);
	return GJ_OK;
}

GjStatus
gj_run_hand_over(GjRun *run, const GjSortedLayout *layout, uint32_t nrows, bool last,
				 GjFillSorted fill, void *arg)
{
	GjWork	   *work = &run->work;
	const GjTarget *to = &run->output.target;

	work->ops->queues->phase(work->queue, GJ_PHASE_WAIT);
	GJ_TRY(to->sorted->begin(to->arg, last));
	work->ops->queues->phase(work->queue, GJ_PHASE_RETURN);
	GJ_TRY(tell_end_keys(run, layout, nrows, fill, arg));
	for (uint32_t first = 0, n; first < nrows; first += n)
	{
		uint8_t    *slot;

		GJ_STOP_CHECK(run);
		work->ops->queues->phase(work->queue, GJ_PHASE_WAIT);
		GJ_TRY(to->sorted->slot(to->arg, &slot));
		work->ops->queues->phase(work->queue, GJ_PHASE_RETURN);
		n = nrows - first < layout->capacity ? nrows - first : layout->capacity;
		GJ_TRY(fill(run, arg, first, slot, &n));
		run->stats.bytes_out += gj_run_batch_bytes(slot, n, layout->types, layout->noutputs) +
			(uint64_t) n * layout->nkeys * sizeof(int64_t);
		work->ops->queues->phase(work->queue, GJ_PHASE_WAIT);
		GJ_TRY(to->sorted->filled(to->arg));
		if (gj_run_fails_at(run, GJ_FAIL_OUTPUT))
			return gj_run_fail(run, GJ_DEVICE_ERROR, "injected after a batch");
	}
	return GJ_OK;
}

/* Hands the rows over as a sorted run, the last one or not.  There are none then. */
static GjStatus
hand_over(GjRun *run, bool last)
{
	GjView		view;

	GJ_TRY(sort_rows(run, &view));
	GJ_TRY(gj_run_hand_over(run, &sorted_of(run)->layout, view.nrows, last, fill_slot, &view));
	return start_anew(run);
}

/* Hands the rows over between tuples of `view`, whose columns are the queue's again. */
static GjStatus
make_room(GjRun *run, const GjView *view)
{
	const GjColumn *columns;

	GJ_TRY(hand_over(run, false));
	run->tuples.more_room = true;
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_AGGREGATE);
	return gj_run_set_columns(run, &columns);
}

static GjStatus
push(GjRun *run, const GjView *view)
{
	uint32_t	most = view->nrows;
	uint32_t	done;

	if (!sorted_of(run))
		GJ_TRY(start_sorted(run));
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_AGGREGATE);
	for (uint32_t first = 0; first < view->nrows; first += done)
	{
		uint32_t	n = view->nrows - first < most ? view->nrows - first : most;
		GjStatus	status = append_tuples(run, view, first, n, &done);

		if (status == GJ_OUT_OF_MEMORY && hands_over(run) && sorted_of(run)->rows.nrows > 0)
			status = make_room(run, view);
		else if (status == GJ_OUT_OF_MEMORY && hands_over(run) && most > GJ_LEAST_SORTED)
		{
			most = most / 2 > GJ_LEAST_SORTED ? most / 2 : GJ_LEAST_SORTED;
			status = start_anew(run);
		}
		GJ_TRY(status);
	}
	return GJ_OK;
}

GjStatus
gj_run_sort_keys(GjRun *run, const GjKeys *keys, uint32_t descending, GjBuffer *positions)
{
	GjWork	   *work = &run->work;
	uint64_t	space = (uint64_t) keys->nrows * GJ_SORT_SPACE;
	GjStatus	status;

	/* first: a buffer takes more than it needs where there is more */
	if (!gj_lease_take(work->lease, space))
		return GJ_OUT_OF_MEMORY;
	status = gj_buffer_reserve(work, positions, (uint64_t) keys->nrows * sizeof(uint32_t));
	if (status == GJ_OK)
		status = work->ops->order->sort_rows(work->queue, keys, descending, run->host->stop,
									  run->host->arg, positions->memory);
	gj_lease_give(work->lease, space);
	return status;
}

/* Gives back what the steps worked with: no more tuples come. */
static void
free_working_space(GjRun *run)
{
	GjWork	   *work = &run->work;

	for (uint32_t i = 0; i < run->nsteps; i++)
	{
		gj_step_free_probe(work, &run->steps[i]);
		gj_step_free_pairs(work, &run->steps[i]);
	}
	gj_buffer_free(work, &run->tuples.filtered);
	run->intake_ops->free_buffers(run);
}

static GjStatus
send_sorted(GjRun *run)
{
	GjSorted   *sorted = sorted_of(run);
	GjView		view;

	/* a row error must show before anything is sent */
	GJ_TRY(run->work.ops->queues->sync(run->work.queue));
	if (!sorted || sorted->rows.nrows == 0)
		return GJ_OK;
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_AGGREGATE);
	free_working_space(run);
	if (hands_over(run))
		return hand_over(run, true);
	GJ_TRY(sort_rows(run, &view));
	free_keys(&run->work, sorted);
	return gj_run_output_rows(run, &view);
}

static GjStatus
finish(GjRun *run)
{
	GJ_TRY(send_sorted(run));
	return run->work.ops->queues->sync(run->work.queue);
}

const GjSinkOps gj_sink_sorted_rows = {
	.name = "sorted rows",
	.joins = true,.spreads = true,
	.returns_rows = true,.sorted = true,.in_batches = true,
	.plan = gj_rows_plan,.tuple_bytes = gj_sink_no_bytes,.push = push,
	.finish = finish,.free = free_sorted
};
