/*
 * stage.c
 *	  Brings outer chunks to where the device reads them, and gives slots of load rings
 *	  back.
 *
 * On a GPU chunks are appended to a stage by copies that run beside the steps' work on the
 * other stage; the chunks of a stage then pass the steps together.  So the more chunks
 * come while the GPU works, the more rows it works on at a time.  The cpu device reads
 * them where they are.
 *
 * A slot is free when its chunk has been copied: a mark of the queue tells.
 */
#include "daemon/run/state.h"

#include <stdlib.h>
#include <string.h>

/* Most bytes that a stage takes, unless a single chunk needs more. */
#define GJ_STAGE_BYTES		(32u * 1024 * 1024)
/* Part of the memory that is left which both stages may take. */
#define GJ_STAGE_SHARE		8

/* ---- slots */

GjStatus
gj_run_free_slots(GjRun *run, bool wait)
{
	GjWork	   *work = &run->work;

	while (run->nused > 0)
	{
		const GjUsedSlot *used = &run->used_slot[run->first_used];
		bool		done;

		GJ_TRY(work->ops->passed(work->queue, used->mark, wait, &done));
		if (!done)
			break;
		run->first_used = (run->first_used + 1) % GJ_SLOT_MARKS;
		run->nused--;
		run->nread++;
		GJ_TRY(run->host->slot_free(run->host->arg, used->slot));
	}
	return run->narriving > 0 ? gj_run_arrived(run) : GJ_OK;
}

GjStatus
gj_run_slot_used(GjRun *run, GjLane lane, uint32_t slot)
{
	GjWork	   *work = &run->work;
	uint32_t	mark;

	if (run->nused == GJ_SLOT_MARKS)
		GJ_TRY(gj_run_free_slots(run, true));
	mark = (run->first_used + run->nused) % GJ_SLOT_MARKS;
	run->used_slot[mark] = (GjUsedSlot) {slot, mark};
	run->nused++;
	GJ_TRY(work->ops->mark(work->queue, lane, mark));
	return gj_run_free_slots(run, false);
}

/* ---- stages */

static const GjColumnType *
outer_types(const GjRun *run)
{
	return run->types + run->sources[0].first_column;
}

/* Lays the outer columns of `rows` rows out behind each other; bytes of all. */
static uint64_t
lay_stage_out(GjRun *run, uint32_t rows, uint64_t heap)
{
	const GjColumnType *types = outer_types(run);
	uint64_t	at = 0;

	for (uint32_t c = 0; c < run->sources[0].ncolumns; c++)
	{
		run->stage_places[c].data = (uint32_t) at;
		at += gj_align((uint64_t) rows * types[c].width);
		run->stage_places[c].nulls = (uint32_t) at;
		if (types[c].nullable)
			at += gj_align(rows);
	}
	run->stage_heap_place = at;
	run->stage_rows = rows;
	run->stage_heap = heap;
	return at + heap;
}

/*
 * Makes the stages: as large as is good, two slots large, or one.  What they hold is at
 * least what a slot holds.
 */
static GjStatus
make_stages(GjRun *run)
{
	GjWork	   *work = &run->work;
	const GjLayout *layout = &run->layout[0];
	uint64_t	most = gj_lease_left(work->lease) / (2 * GJ_STAGE_SHARE);
	uint32_t	rows = GJ_MAX_TUPLES;
	uint64_t	heap = (uint64_t) layout->heap_size * 8;
	uint64_t	nbytes;

	run->stage_places = calloc(run->sources[0].ncolumns + 1, sizeof(GjColumnPlace));
	if (!run->stage_places)
		return GJ_OUT_OF_HOST_MEMORY;
	if (most > GJ_STAGE_BYTES)
		most = GJ_STAGE_BYTES;
	while ((nbytes = lay_stage_out(run, rows, heap)) > most &&
		   (rows > layout->capacity || heap > layout->heap_size))
	{
		rows = rows / 2 > layout->capacity ? rows / 2 : layout->capacity;
		heap = heap / 2 > layout->heap_size ? heap / 2 : layout->heap_size;
	}
	GJ_TRY(gj_buffer_reserve(work, &run->stage[0].memory, nbytes));
	GJ_TRY(work->ops->mark(work->queue, GJ_LANE_WORK, GJ_MARK_FREE(0)));
	run->nstages = 1;
	if (gj_lease_left(work->lease) / GJ_STAGE_SHARE < nbytes)
		return GJ_OK;
	GJ_TRY(gj_buffer_reserve(work, &run->stage[1].memory, nbytes));
	GJ_TRY(work->ops->mark(work->queue, GJ_LANE_WORK, GJ_MARK_FREE(1)));
	run->nstages = 2;
	return GJ_OK;
}

/* Makes the outer columns those of a stage. */
static GjStatus
describe_stage(GjRun *run, GjStage *stage)
{
	GjWork	   *work = &run->work;
	uint8_t    *memory = stage->memory.memory;
	const GjColumnType *types = outer_types(run);
	GjColumn   *columns = run->columns + run->sources[0].first_column;

	for (uint32_t c = 0; c < run->sources[0].ncolumns; c++)
	{
		uint8_t    *data = memory + run->stage_places[c].data;

		columns[c].data = data;
		columns[c].nulls = stage->has_nulls[c] ? memory + run->stage_places[c].nulls : NULL;
		columns[c].heap = types[c].kind == GJ_REF ? memory + run->stage_heap_place : NULL;
		columns[c].kind = types[c].kind;
		columns[c].width = types[c].width;
		if (types[c].kind != GJ_REF)
			continue;
		for (uint32_t i = 0; i < stage->nparts; i++)
			GJ_TRY(work->ops->rebase_refs(work->queue,
										  (uint64_t *) data + stage->part[i].first,
										  stage->part[i].nrows, stage->part[i].heap,
										  stage->part[i].heap_used));
	}
	return GJ_OK;
}

/* Takes what is in a stage through the steps. */
static GjStatus
work_on_stage(GjRun *run, uint32_t i)
{
	GjWork	   *work = &run->work;
	GjStage    *stage = &run->stage[i];
	uint32_t	nrows = stage->nrows;

	if (stage->nparts == 0)
		return GJ_OK;
	/* the copies' own time is taken on their lane */
	work->ops->phase(work->queue, GJ_PHASE_WAIT);
	GJ_TRY(work->ops->after(work->queue, GJ_LANE_WORK, GJ_MARK_LOADED(i)));
	GJ_TRY(describe_stage(run, stage));
	stage->nrows = stage->nparts = 0;
	stage->heap_used = 0;
	memset(stage->has_nulls, 0, run->sources[0].ncolumns * sizeof(bool));
	GJ_TRY(gj_run_outer_rows(run, nrows, true));
	work->ops->phase(work->queue, GJ_PHASE_WAIT);
	GJ_TRY(work->ops->mark(work->queue, GJ_LANE_WORK, GJ_MARK_FREE(i)));
	return gj_run_free_slots(run, false);
}

GjStatus
gj_run_work(GjRun *run)
{
	uint32_t	filled = run->filling;

	if (run->nstages < 2)
		return run->nstages == 0 ? GJ_OK : work_on_stage(run, 0);
	GJ_TRY(work_on_stage(run, 1 - filled));
	if (run->stage[filled].nparts > 0)
		run->filling = 1 - filled;
	return GJ_OK;
}

GjStatus
gj_run_flush(GjRun *run)
{
	/* the first time what was given before, the second time what was given last */
	GJ_TRY(gj_run_work(run));
	GJ_TRY(gj_run_work(run));
	GJ_TRY(gj_run_open_parcels(run));
	return gj_run_free_slots(run, true);
}

/* Null flags of a chunk's column to the end of a stage, where it has any since the first NULL. */
static GjStatus
append_nulls(GjRun *run, GjStage *stage, const GjChunk *chunk, uint32_t c)
{
	GjWork	   *work = &run->work;
	uint8_t    *nulls = (uint8_t *) stage->memory.memory + run->stage_places[c].nulls;
	bool		has_nulls = chunk->has_nulls[c] && outer_types(run)[c].nullable;

	if (has_nulls && !stage->has_nulls[c])
	{
		GJ_TRY(work->ops->load_fill(work->queue, nulls, 0, stage->nrows));
		stage->has_nulls[c] = true;
	}
	if (has_nulls)
		return work->ops->load_in(work->queue, nulls + stage->nrows,
								  chunk->slot + chunk->places[c].nulls, chunk->nrows);
	return stage->has_nulls[c] ?
		work->ops->load_fill(work->queue, nulls + stage->nrows, 0, chunk->nrows) : GJ_OK;
}

/* Queues a copy from the host, or, so that it comes from there once, from where it is kept. */
static GjStatus
bring(GjWork *work, void *to, const void *kept, const void *host, uint64_t nbytes)
{
	return kept ? work->ops->load_copy(work->queue, to, kept, nbytes) :
		work->ops->load_in(work->queue, to, host, nbytes);
}

/* Queues the copies of a chunk to the end of a stage. */
static GjStatus
append_chunk(GjRun *run, GjStage *stage, const GjChunk *chunk, const GjKept *kept)
{
	GjWork	   *work = &run->work;
	uint8_t    *memory = stage->memory.memory;
	const GjFragment *fragment = kept->fragment;
	const GjColumnType *types = outer_types(run);

	for (uint32_t c = 0; c < run->sources[0].ncolumns; c++)
	{
		uint8_t    *at = memory + run->stage_places[c].data + (uint64_t) stage->nrows * types[c].width;
		uint64_t	nbytes = (uint64_t) chunk->nrows * types[c].width;

		GJ_TRY(bring(work, at, fragment ? gj_fragment_column(fragment, c, kept->first).data : NULL,
					 chunk->slot + chunk->places[c].data, nbytes));
		GJ_TRY(append_nulls(run, stage, chunk, c));
	}
	if (chunk->heap_used > 0)
		GJ_TRY(bring(work, memory + run->stage_heap_place + stage->heap_used,
					 fragment ? (const uint8_t *) fragment->heap.memory + kept->heap : NULL,
					 chunk->slot + chunk->layout->heap, chunk->heap_used));
	stage->part[stage->nparts++] = (GjStagePart) {stage->nrows, chunk->nrows,
	stage->heap_used, chunk->heap_used};
	stage->nrows += chunk->nrows;
	stage->heap_used += chunk->heap_used;
	return GJ_OK;
}

static bool
has_room(const GjRun *run, const GjStage *stage, const GjChunk *chunk)
{
	return stage->nparts < GJ_STAGE_PARTS &&
		stage->nrows + chunk->nrows <= run->stage_rows &&
		stage->heap_used + chunk->heap_used <= run->stage_heap;
}

static GjStatus
stage_chunk(GjRun *run, const GjChunk *chunk, const GjKept *kept)
{
	GjWork	   *work = &run->work;

	while (!has_room(run, &run->stage[run->filling], chunk))
		GJ_TRY(gj_run_work(run));
	if (run->stage[run->filling].nparts == 0)
		GJ_TRY(work->ops->after(work->queue, GJ_LANE_LOAD, GJ_MARK_FREE(run->filling)));
	return append_chunk(run, &run->stage[run->filling], chunk, kept);
}

/* Works on a chunk where it lies. */
static GjStatus
work_in_place(GjRun *run, const GjChunk *chunk, uint8_t *memory)
{
	const GjColumnType *types = outer_types(run);
	GjColumn   *columns = run->columns + run->sources[0].first_column;

	run->work.ops->phase(run->work.queue, GJ_PHASE_TRANSFER);
	for (uint32_t c = 0; c < run->sources[0].ncolumns; c++)
	{
		const GjColumnPlace *place = &chunk->places[c];
		bool		has_nulls = chunk->has_nulls[c] && types[c].nullable;

		/* base 0: only checks that they lie within the heap */
		if (types[c].kind == GJ_REF)
			GJ_TRY(run->work.ops->rebase_refs(run->work.queue,
											  (uint64_t *) (memory + place->data),
											  chunk->nrows, 0, chunk->heap_used));
		columns[c].data = memory + place->data;
		columns[c].nulls = has_nulls ? memory + place->nulls : NULL;
		columns[c].heap = types[c].kind == GJ_REF ? memory + chunk->layout->heap : NULL;
		columns[c].kind = types[c].kind;
		columns[c].width = types[c].width;
	}
	return gj_run_outer_rows(run, chunk->nrows, true);
}

/* True if chunks are worked on where they are, without stages. */
static bool
is_in_place(const GjRun *run)
{
	return run->work.ops->kind == GJ_DEVICE_CPU;
}

GjStatus
gj_run_reserve_stages(GjRun *run)
{
	return run->nstages > 0 || is_in_place(run) ? GJ_OK : make_stages(run);
}

GjStatus
gj_run_outer(GjRun *run, const GjChunk *chunk, uint8_t *memory, uint32_t slot)
{
	GjKept		kept;

	GJ_TRY(gj_run_fail_points(run));
	if (is_in_place(run))
	{
		GJ_TRY(gj_run_keep(run, 0, chunk, GJ_LANE_WORK, &kept));
		GJ_TRY(work_in_place(run, chunk, memory));
		GJ_TRY(gj_run_kept(run, 0, &kept, GJ_LANE_WORK));
		return gj_run_slot_used(run, GJ_LANE_WORK, slot);
	}
	/* what is kept may have what memory they leave */
	GJ_TRY(gj_run_reserve_stages(run));
	GJ_TRY(gj_run_keep(run, 0, chunk, GJ_LANE_LOAD, &kept));
	GJ_TRY(stage_chunk(run, chunk, &kept));
	GJ_TRY(gj_run_kept(run, 0, &kept, GJ_LANE_LOAD));
	/* the slot's mark first: it takes the time of the copies */
	GJ_TRY(gj_run_slot_used(run, GJ_LANE_LOAD, slot));
	return run->work.ops->mark(run->work.queue, GJ_LANE_LOAD, GJ_MARK_LOADED(run->filling));
}

void
gj_run_close_stages(GjRun *run)
{
	GjWork	   *work = &run->work;

	/* memory must not go while something is still copied to it */
	if (work->queue && run->nstages > 0)
		work->ops->load_wait(work->queue);
	gj_buffer_free(work, &run->stage[0].memory);
	gj_buffer_free(work, &run->stage[1].memory);
	free(run->stage_places);
}
