/*
 * run_probe.c
 *	  Takes an outer chunk through its filter and all join steps.
 *
 * A step probes with all tuples at once and then writes its pairs piece by piece,
 * each of which passes the later steps before the next one is written.  So a
 * result of any size needs a fixed amount of memory.  Tuples are row ids, carried
 * only for sources that something later reads.
 */
#include "run.h"

#include <string.h>

/* However little memory there is, this many pairs are expanded at a time. */
#define GJ_MIN_PAIRS		16384

/* Brings a chunk to where the device can read it and describes its columns. */
static GjStatus
load_chunk(GjRun *run, const GjChunk *chunk, uint8_t *memory)
{
	GjWork	   *work = &run->work;
	bool		in_place = work->ops->kind == GJ_DEVICE_CPU;
	uint8_t    *to = memory;

	if (!in_place)
	{
		GJ_TRY(gj_buffer_reserve(work, &run->staging, GJ_LOAD_SLOT_SIZE));
		to = run->staging.memory;
		if (chunk->heap_used > 0)
			GJ_TRY(work->ops->copy_in(work->queue, to + chunk->layout->heap,
									  memory + chunk->layout->heap, chunk->heap_used));
	}
	for (uint32_t c = 0; c < chunk->layout->ncolumns; c++)
	{
		const GjColumnType *type = &run->types[run->sources[0].first_column + c];
		const GjColumnPlace *place = &chunk->places[c];
		GjColumn   *column = &run->columns[run->sources[0].first_column + c];
		bool		has_nulls = chunk->has_nulls[c] && type->nullable;

		if (!in_place)
		{
			GJ_TRY(work->ops->copy_in(work->queue, to + place->data, memory + place->data,
									  (size_t) chunk->nrows * type->width));
			if (has_nulls)
				GJ_TRY(work->ops->copy_in(work->queue, to + place->nulls, memory + place->nulls,
										  chunk->nrows));
		}
		/* base 0: only checks that they lie within the heap */
		if (type->kind == GJ_REF)
			GJ_TRY(work->ops->rebase_refs(work->queue, (uint64_t *) (to + place->data),
										  chunk->nrows, 0, chunk->heap_used));
		column->data = to + place->data;
		column->nulls = has_nulls ? to + place->nulls : NULL;
		column->heap = type->kind == GJ_REF ? to + chunk->layout->heap : NULL;
		column->kind = type->kind;
		column->width = type->width;
	}
	return GJ_OK;
}

/* The tuples' keys for a step, in the step's buffers. */
static GjStatus
compute_keys(GjRun *run, GjRunStep *rs, const GjView *view, GjKeys *keys)
{
	GjWork	   *work = &run->work;
	uint64_t	stride = gj_align((uint64_t) view->nrows * sizeof(int64_t));

	memset(keys, 0, sizeof(*keys));
	keys->nkeys = rs->step->nkeys;
	keys->nrows = view->nrows;
	GJ_TRY(gj_buffer_reserve(work, &rs->key_values, stride * keys->nkeys));
	GJ_TRY(gj_buffer_reserve(work, &rs->key_nulls, view->nrows));
	for (uint32_t k = 0; k < keys->nkeys; k++)
		keys->value[k] = (int64_t *) ((uint8_t *) rs->key_values.memory + k * stride);
	keys->null = rs->key_nulls.memory;
	return work->ops->keys(work->queue, view, 0, view->nrows, rs->step->outer_keys, keys);
}

static GjStatus
reserve_pairs(GjRun *run, GjRunStep *rs, uint32_t n)
{
	for (uint32_t s = 0; s < run->program->nsources; s++)
		if (rs->expand >> s & 1)
			GJ_TRY(gj_buffer_reserve(&run->work, &rs->rowid[s], (uint64_t) n * sizeof(uint32_t)));
	return GJ_OK;
}

/*
 * Writes the next pairs of a step, *n at most, as a view for the steps after it.
 * Where memory is short, fewer pairs at a time do.
 */
static GjStatus
expand_pairs(GjRun *run, GjRunStep *rs, const GjView *view, uint64_t cursor, uint32_t *n,
			 GjView *pairs)
{
	GjWork	   *work = &run->work;
	uint32_t   *out[GJ_MAX_SOURCES] = {NULL};
	GjStatus	status;

	while ((status = reserve_pairs(run, rs, *n)) == GJ_OUT_OF_MEMORY && *n > GJ_MIN_PAIRS)
		run->max_pairs = *n = *n / 2 > GJ_MIN_PAIRS ? *n / 2 : GJ_MIN_PAIRS;
	if (status != GJ_OK)
		return status;

	memset(pairs, 0, sizeof(*pairs));
	pairs->columns = view->columns;
	pairs->nrows = *n;
	if (rs->expand == 0)
		return GJ_OK;
	for (uint32_t s = 0; s < run->program->nsources; s++)
		if (rs->expand >> s & 1)
			pairs->rowid[s] = out[s] = rs->rowid[s].memory;
	return work->ops->hash_expand(work->queue, &rs->table, view, rs->offset.memory,
								  rs->first.memory, cursor, *n, rs->step->source, out);
}

/* Leaves the pairs for which the step's residual condition is true. */
static GjStatus
filter_pairs(GjRun *run, GjRunStep *rs, GjView *pairs)
{
	GjWork	   *work = &run->work;
	uint32_t	n;

	GJ_TRY(gj_buffer_reserve(work, &rs->positions, (uint64_t) pairs->nrows * sizeof(uint32_t)));
	GJ_TRY(work->ops->select(work->queue, pairs, rs->step->residual, rs->positions.memory, &n));
	if (n == pairs->nrows)
		return GJ_OK;
	pairs->nrows = n;
	if (n == 0)
		return GJ_OK;
	for (uint32_t s = 0; s < run->program->nsources; s++)
	{
		if (!(rs->out >> s & 1))
			continue;
		GJ_TRY(gj_buffer_reserve(work, &rs->picked[s], (uint64_t) n * sizeof(uint32_t)));
		GJ_TRY(work->ops->pick(work->queue, rs->picked[s].memory, pairs->rowid[s], 0,
							   rs->positions.memory, n));
		pairs->rowid[s] = rs->picked[s].memory;
	}
	return GJ_OK;
}

static GjStatus
probe_step(GjRun *run, GjRunStep *rs, const GjView *view, uint64_t *total)
{
	GjWork	   *work = &run->work;
	GjKeys		keys;

	work->ops->phase(work->queue, GJ_PHASE_PROBE);
	GJ_TRY(compute_keys(run, rs, view, &keys));
	GJ_TRY(gj_buffer_reserve(work, &rs->offset, ((uint64_t) view->nrows + 1) * sizeof(uint64_t)));
	GJ_TRY(gj_buffer_reserve(work, &rs->first, (uint64_t) view->nrows * sizeof(uint32_t)));
	return work->ops->hash_probe(work->queue, &rs->table, &keys, rs->offset.memory,
								 rs->first.memory, total);
}

/* Takes tuples through step i and all that follow. */
static GjStatus
join_tuples(GjRun *run, uint32_t i, const GjView *view)
{
	GjRunStep  *rs = &run->steps[i];
	uint64_t	total;

	GJ_STOP_CHECK(run);
	if (view->nrows == 0)
		return GJ_OK;
	if (i == run->nsteps)
		return gj_run_output(run, view);

	run->stats.step[i].rows_in += view->nrows;
	GJ_TRY(probe_step(run, rs, view, &total));
	if (i == run->nsteps - 1 && run->count_only && rs->step->residual < 0)
	{
		run->stats.step[i].rows_out += total;
		run->counted += (int64_t) total;
		return GJ_OK;
	}
	for (uint64_t cursor = 0; cursor < total;)
	{
		uint64_t	left = total - cursor;
		uint32_t	n = left < run->max_pairs ? (uint32_t) left : run->max_pairs;
		GjView		pairs;

		GJ_STOP_CHECK(run);
		run->work.ops->phase(run->work.queue, GJ_PHASE_PROBE);
		GJ_TRY(expand_pairs(run, rs, view, cursor, &n, &pairs));
		if (rs->step->residual >= 0)
			GJ_TRY(filter_pairs(run, rs, &pairs));
		run->stats.step[i].rows_out += pairs.nrows;
		GJ_TRY(join_tuples(run, i + 1, &pairs));
		cursor += n;
	}
	return GJ_OK;
}

GjStatus
gj_run_outer(GjRun *run, const GjChunk *chunk, uint8_t *memory, uint32_t slot)
{
	GjWork	   *work = &run->work;
	bool		in_place = work->ops->kind == GJ_DEVICE_CPU;
	GjView		view = {.nrows = chunk->nrows};

	GJ_TRY(gj_run_fail_points(run));
	GJ_TRY(load_chunk(run, chunk, memory));
	GJ_TRY(work->ops->set_columns(work->queue, run->columns, run->program->ncolumns,
								  &view.columns));
	if (!in_place)
	{
		GJ_TRY(work->ops->sync(work->queue));
		GJ_TRY(run->host->slot_free(run->host->arg, slot));
	}
	if (run->sources[0].filter >= 0 && chunk->nrows > 0)
	{
		uint32_t	n;

		work->ops->phase(work->queue, GJ_PHASE_PROBE);
		GJ_TRY(gj_buffer_reserve(work, &run->filtered, (uint64_t) chunk->nrows * sizeof(uint32_t)));
		GJ_TRY(work->ops->select(work->queue, &view, run->sources[0].filter,
								 run->filtered.memory, &n));
		if (n < chunk->nrows)
			view.rowid[0] = run->filtered.memory;
		view.nrows = n;
	}
	run->stats.source[0].rows_out += view.nrows;
	GJ_TRY(join_tuples(run, 0, &view));
	return in_place ? run->host->slot_free(run->host->arg, slot) : GJ_OK;
}
