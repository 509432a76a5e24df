/*
 * run_sort.c
 *	  GJ_OUTPUT_ROWS in the order of the sort keys: all rows, returned when the run is complete.
 *
 * Outer chunks are gone when the next one comes, so the rows of each view are gathered, as a
 * batch would be, and appended to a relation of output columns on the device; so are their
 * keys.  A batch goes through a slot of the host's on its way: that costs a copy, not much
 * beside what PostgreSQL does with the row, and any type of column comes along.  At the end
 * the keys are sorted, and the relation's rows go out as a view of all of them in that order.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#include "segment.h"

typedef struct GjSorted
{
	GjKeys		keys;			/* of the rows */
	int32_t		operand[GJ_MAX_KEYS];
	uint32_t	descending;		/* bits */
	GjColumnType *types;		/* of the relation: any column can have NULLs from outer joins */
	GjRelation	rows;
	GjSegment  *slot;			/* what rows are gathered into */
	GjBuffer	key_values[GJ_MAX_KEYS];
	GjBuffer	key_nulls;		/* of one view; not read */
	GjBuffer	positions;
} GjSorted;

static GjStatus
start_sorted(GjRun *run)
{
	const GjSortKey *sort_keys = gj_program_array(run->program, GjSortKey, sort_keys);
	GjSorted   *sorted = calloc(1, sizeof(GjSorted));
	GjErrorText why = {""};
	GjStatus	status;

	if (!sorted)
		return GJ_OUT_OF_HOST_MEMORY;
	run->sorted = sorted;
	sorted->keys.nkeys = run->program->nsort_keys;
	for (uint32_t k = 0; k < sorted->keys.nkeys; k++)
	{
		sorted->operand[k] = (int32_t) sort_keys[k].index;
		sorted->descending |= (uint32_t) sort_keys[k].descending << k;
	}
	sorted->types = malloc((run->noutputs + 1) * sizeof(GjColumnType));
	if (!sorted->types)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t c = 0; c < run->noutputs; c++)
	{
		sorted->types[c] = run->output_types[c];
		sorted->types[c].nullable = 1;
	}
	if (!gj_relation_init(&sorted->rows, sorted->types, run->noutputs, 0))
		return GJ_OUT_OF_HOST_MEMORY;
	status = gj_segment_get(run->entry, GJ_OUTPUT_SLOT_SIZE, &sorted->slot, &why);
	return status == GJ_OK ? GJ_OK : gj_run_fail(run, status, why.text);
}

static void
free_keys(GjWork *work, GjSorted *sorted)
{
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
		gj_buffer_free(work, &sorted->key_values[k]);
	gj_buffer_free(work, &sorted->key_nulls);
}

void
gj_run_free_sorted(GjRun *run)
{
	GjSorted   *sorted = run->sorted;

	if (!sorted)
		return;
	gj_relation_free(&run->work, &sorted->rows);
	free_keys(&run->work, sorted);
	gj_buffer_free(&run->work, &sorted->positions);
	if (sorted->slot)
		gj_segment_put(sorted->slot);
	free(sorted->types);
	free(sorted);
	run->sorted = NULL;
}

/* Appends the keys of a view's tuples. */
static GjStatus
append_keys(GjRun *run, const GjView *view)
{
	GjSorted   *sorted = run->sorted;
	GjWork	   *work = &run->work;
	GjKeys		keys = {.nkeys = sorted->keys.nkeys,.nrows = view->nrows};
	uint64_t	used = sorted->rows.nrows * sizeof(int64_t);

	GJ_TRY(gj_buffer_reserve(work, &sorted->key_nulls, view->nrows));
	keys.null = sorted->key_nulls.memory;
	for (uint32_t k = 0; k < keys.nkeys; k++)
	{
		GJ_TRY(gj_buffer_grow(work, &sorted->key_values[k], used,
							  used + (uint64_t) view->nrows * sizeof(int64_t), 0));
		sorted->keys.value[k] = sorted->key_values[k].memory;
		keys.value[k] = sorted->keys.value[k] + sorted->rows.nrows;
	}
	return work->ops->ordered_keys(work->queue, view, 0, view->nrows, sorted->operand, &keys);
}

/* Appends the rows in the slot, n of them. */
static GjStatus
append_slot(GjRun *run, uint32_t n)
{
	GjSorted   *sorted = run->sorted;
	const uint8_t *slot = sorted->slot->memory;
	GjSlotHeader header;
	GjChunk		chunk;

	memcpy(&header, slot, sizeof(header));
	chunk = (GjChunk) {slot, n, header.heap_used, &run->output_layout, run->output_places,
		gj_slot_has_nulls((uint8_t *) slot)};
	GJ_TRY(gj_relation_append(&run->work, &sorted->rows, &chunk));
	/* the slot is free again */
	return run->work.ops->sync(run->work.queue);
}

GjStatus
gj_run_sort(GjRun *run, const GjView *view)
{
	GjWork	   *work = &run->work;
	GjBatchTarget target = {.layout = run->output_layout,.places = run->output_places};

	if (!run->sorted)
		GJ_TRY(start_sorted(run));
	target.slot = run->sorted->slot->memory;
	work->ops->phase(work->queue, GJ_PHASE_AGGREGATE);
	GJ_TRY(append_keys(run, view));
	for (uint32_t first = 0, n; first < view->nrows; first += n)
	{
		GJ_STOP_CHECK(run);
		GJ_TRY(work->ops->gather(work->queue, view, first, view->nrows - first, &target, &n));
		GJ_TRY(append_slot(run, n));
	}
	return GJ_OK;
}

GjStatus
gj_run_sort_keys(GjRun *run, const GjKeys *keys, uint32_t descending, GjBuffer *positions)
{
	GjWork	   *work = &run->work;
	uint64_t	space = (uint64_t) keys->nrows * GJ_SORT_SPACE;
	GjStatus	status;

	GJ_TRY(gj_buffer_reserve(work, positions, (uint64_t) keys->nrows * sizeof(uint32_t)));
	if (!gj_lease_take(work->lease, space))
		return GJ_OUT_OF_MEMORY;
	status = work->ops->sort_rows(work->queue, keys, descending, run->host->stop, run->host->arg,
								  positions->memory);
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
	gj_buffer_free(work, &run->filtered);
	/* memory must not go while something is still copied to it */
	work->ops->load_wait(work->queue);
	gj_buffer_free(work, &run->stage[0].memory);
	gj_buffer_free(work, &run->stage[1].memory);
}

GjStatus
gj_run_send_sorted(GjRun *run)
{
	GjSorted   *sorted = run->sorted;
	GjWork	   *work = &run->work;
	const uint32_t *outputs = gj_program_array(run->program, uint32_t, outputs);
	GjColumn   *columns;
	GjView		view = {0};

	/* a row error must show before anything is sent */
	GJ_TRY(work->ops->sync(work->queue));
	if (!sorted || sorted->rows.nrows == 0)
		return GJ_OK;
	work->ops->phase(work->queue, GJ_PHASE_AGGREGATE);
	free_working_space(run);
	sorted->keys.nrows = view.nrows = (uint32_t) sorted->rows.nrows;
	GJ_TRY(gj_run_sort_keys(run, &sorted->keys, sorted->descending, &sorted->positions));
	free_keys(work, sorted);
	/* the output columns are those of the relation now, of whichever source they were */
	columns = malloc((run->noutputs + 1) * sizeof(GjColumn));
	if (!columns)
		return GJ_OUT_OF_HOST_MEMORY;
	gj_relation_columns(&sorted->rows, 0, columns);
	for (uint32_t c = 0; c < run->noutputs; c++)
		run->columns[outputs[c]] = columns[c];
	free(columns);
	GJ_TRY(work->ops->set_columns(work->queue, run->columns, run->program->ncolumns,
								  &view.columns));
	for (uint32_t s = 0; s < run->program->nsources; s++)
		view.rowid[s] = sorted->positions.memory;
	return gj_run_output_rows(run, &view);
}
