/*
 * chunk.c
 *	  Chunks of load rings: brings probe rows to where the device reads them, and gives slots back.
 *
 * On a GPU chunks are appended to a buffer by copies that run beside the steps' work on the
 * other buffer; the chunks of a buffer then pass the steps together.  So the more chunks
 * come while the GPU works, the more rows it works on at a time.  The cpu device works
 * on each in a copy of its slot (rows.c).
 *
 * A slot is free when its chunk has been copied: a mark of the queue tells.
 */
#include "intake.h"

#include <stdlib.h>
#include <string.h>

/* Most bytes that a buffer takes, unless a single chunk needs more. */
#define GJ_BUFFER_BYTES		(32u * 1024 * 1024)
/* Part of the memory that is left which both buffers may take. */
#define GJ_BUFFER_SHARE		8

/* ---- slots */

GjStatus
gj_run_free_slots(GjRun *run, bool wait)
{
	GjUsedSlots *slots = &run->intake->slots;
	GjWork	   *work = &run->work;

	while (slots->n > 0)
	{
		uint32_t	slot = slots->used[slots->first];
		bool		done;

		GJ_TRY(work->ops->queues->passed(work->queue, slots->first, wait, &done));
		if (!done)
			break;
		slots->first = (slots->first + 1) % GJ_SLOT_MARKS;
		slots->n--;
		slots->nread++;
		GJ_TRY(run->host->slot_free(run->host->arg, slot));
	}
	return slots->narriving > 0 ? gj_run_arrived(run) : GJ_OK;
}

/* The slot is free once all that is queued on the lane is done. */
static GjStatus
slot_used(GjRun *run, GjLane lane, uint32_t slot)
{
	GjUsedSlots *slots = &run->intake->slots;
	GjWork	   *work = &run->work;
	uint32_t	mark;

	if (slots->n == GJ_SLOT_MARKS)
		GJ_TRY(gj_run_free_slots(run, true));
	mark = (slots->first + slots->n) % GJ_SLOT_MARKS;
	slots->used[mark] = slot;
	slots->n++;
	GJ_TRY(work->ops->queues->mark(work->queue, lane, mark));
	return gj_run_free_slots(run, false);
}

/* ---- buffers */

static const GjColumnType *
probe_types(const GjRun *run)
{
	return run->types + run->sources[0].first_column;
}

/* Lays the probe columns of `rows` rows out behind each other; bytes of all. */
static uint64_t
lay_buffer_out(GjRun *run, uint32_t rows, uint64_t heap)
{
	GjChunkBuffers *buffers = &run->intake->buffers;
	const GjColumnType *types = probe_types(run);
	uint64_t	at = 0;

	for (uint32_t c = 0; c < run->sources[0].ncolumns; c++)
	{
		buffers->places[c].data = (uint32_t) at;
		at += gj_align((uint64_t) rows * types[c].width);
		buffers->places[c].nulls = (uint32_t) at;
		if (types[c].nullable)
			at += gj_align(rows);
	}
	buffers->heap_place = at;
	buffers->rows = rows;
	buffers->heap = heap;
	return at + heap;
}

/*
 * Makes the buffers: as large as is good, two slots large, or one.  What they hold is at
 * least what a slot holds.
 */
static GjStatus
make_buffers(GjRun *run)
{
	GjChunkBuffers *buffers = &run->intake->buffers;
	GjWork	   *work = &run->work;
	const GjLayout *layout = &run->intake->layout[0];
	uint64_t	most = gj_lease_left(work->lease) / (2 * GJ_BUFFER_SHARE);
	uint32_t	rows = GJ_MAX_TUPLES;
	uint64_t	heap = (uint64_t) layout->heap_size * 8;
	uint64_t	nbytes;

	buffers->places = calloc(run->sources[0].ncolumns + 1, sizeof(GjColumnPlace));
	if (!buffers->places)
		return GJ_OUT_OF_HOST_MEMORY;
	if (most > GJ_BUFFER_BYTES)
		most = GJ_BUFFER_BYTES;
	while ((nbytes = lay_buffer_out(run, rows, heap)) > most &&
		   (rows > layout->capacity || heap > layout->heap_size))
	{
		rows = rows / 2 > layout->capacity ? rows / 2 : layout->capacity;
		heap = heap / 2 > layout->heap_size ? heap / 2 : layout->heap_size;
	}
	GJ_TRY(gj_buffer_reserve(work, &buffers->buffer[0].memory, nbytes));
	GJ_TRY(work->ops->queues->mark(work->queue, GJ_LANE_WORK, GJ_MARK_FREE(0)));
	buffers->n = 1;
	if (gj_lease_left(work->lease) / GJ_BUFFER_SHARE < nbytes)
		return GJ_OK;
	GJ_TRY(gj_buffer_reserve(work, &buffers->buffer[1].memory, nbytes));
	GJ_TRY(work->ops->queues->mark(work->queue, GJ_LANE_WORK, GJ_MARK_FREE(1)));
	buffers->n = 2;
	return GJ_OK;
}

/* The probe columns, as they lie in a buffer. */
static GjStatus
describe_buffer(GjRun *run, const GjChunkBuffer *buffer, GjColumn *columns)
{
	GjChunkBuffers *buffers = &run->intake->buffers;
	GjWork	   *work = &run->work;
	uint8_t    *memory = buffer->memory.memory;
	const GjColumnType *types = probe_types(run);

	for (uint32_t c = 0; c < run->sources[0].ncolumns; c++)
	{
		uint8_t    *data = memory + buffers->places[c].data;

		columns[c] = (GjColumn) {
			.data = data,.nulls = buffer->has_nulls[c] ? memory + buffers->places[c].nulls : NULL,
			.heap = types[c].kind == GJ_REF ? memory + buffers->heap_place : NULL,
			.kind = types[c].kind,.width = types[c].width
		};
		if (types[c].kind != GJ_REF)
			continue;
		for (uint32_t i = 0; i < buffer->nparts; i++)
			GJ_TRY(work->ops->columns->rebase_refs(work->queue,
										  (uint64_t *) data + buffer->part[i].first,
										  buffer->part[i].nrows, buffer->part[i].heap,
										  buffer->part[i].heap_used));
	}
	return GJ_OK;
}

/* Takes what is in a buffer through the steps. */
static GjStatus
work_on_buffer(GjRun *run, uint32_t i)
{
	GjWork	   *work = &run->work;
	GjChunkBuffer *buffer = &run->intake->buffers.buffer[i];
	GjColumn	columns[GJ_MAX_COLUMNS];
	GjRows		rows = GJ_ALL_ROWS(0, columns, buffer->nrows, false);

	if (buffer->nparts == 0)
		return GJ_OK;
	/* the copies' own time is taken on their lane */
	work->ops->queues->phase(work->queue, GJ_PHASE_WAIT);
	GJ_TRY(work->ops->queues->after(work->queue, GJ_LANE_WORK, GJ_MARK_LOADED(i)));
	GJ_TRY(describe_buffer(run, buffer, columns));
	buffer->nrows = buffer->nparts = 0;
	buffer->heap_used = 0;
	memset(buffer->has_nulls, 0, run->sources[0].ncolumns * sizeof(bool));
	GJ_TRY(gj_source_rows(run, &rows));
	work->ops->queues->phase(work->queue, GJ_PHASE_WAIT);
	GJ_TRY(work->ops->queues->mark(work->queue, GJ_LANE_WORK, GJ_MARK_FREE(i)));
	return gj_run_free_slots(run, false);
}

GjStatus
gj_run_work(GjRun *run)
{
	GjChunkBuffers *buffers = &run->intake->buffers;
	uint32_t	filled = buffers->filling;

	if (buffers->n < 2)
		return buffers->n == 0 ? GJ_OK : work_on_buffer(run, 0);
	GJ_TRY(work_on_buffer(run, 1 - filled));
	if (buffers->buffer[filled].nparts > 0)
		buffers->filling = 1 - filled;
	return GJ_OK;
}

GjStatus
gj_run_flush(GjRun *run)
{
	/* the first time what was given before, the second time what was given last */
	GJ_TRY(gj_run_work(run));
	GJ_TRY(gj_run_work(run));
	GJ_TRY(gj_run_open_blocks(run));
	return gj_run_free_slots(run, true);
}

/* Null flags of a chunk's column to the end of a buffer, where it has any since the first NULL. */
static GjStatus
append_nulls(GjRun *run, GjChunkBuffer *buffer, const GjChunk *chunk, uint32_t c)
{
	GjWork	   *work = &run->work;
	uint8_t    *nulls = (uint8_t *) buffer->memory.memory + run->intake->buffers.places[c].nulls;
	bool		has_nulls = chunk->has_nulls[c] && probe_types(run)[c].nullable;

	if (has_nulls && !buffer->has_nulls[c])
	{
		GJ_TRY(work->ops->memory->load_fill(work->queue, nulls, 0, buffer->nrows));
		buffer->has_nulls[c] = true;
	}
	if (has_nulls)
		return work->ops->memory->load_in(work->queue, nulls + buffer->nrows,
								  chunk->slot + chunk->places[c].nulls, chunk->nrows);
	return buffer->has_nulls[c] ?
		work->ops->memory->load_fill(work->queue, nulls + buffer->nrows, 0, chunk->nrows) : GJ_OK;
}

/* Queues a copy from the host, or, so that it comes from there once, from where it is kept. */
static GjStatus
bring(GjWork *work, void *to, const void *kept, const void *host, uint64_t nbytes)
{
	return kept ? work->ops->memory->load_copy(work->queue, to, kept, nbytes) :
		work->ops->memory->load_in(work->queue, to, host, nbytes);
}

/* Queues the copies of a chunk to the end of a buffer. */
static GjStatus
append_chunk(GjRun *run, GjChunkBuffer *buffer, const GjChunk *chunk, const GjKept *kept)
{
	GjChunkBuffers *buffers = &run->intake->buffers;
	GjWork	   *work = &run->work;
	uint8_t    *memory = buffer->memory.memory;
	const GjFragment *fragment = kept->fragment;
	const GjColumnType *types = probe_types(run);

	for (uint32_t c = 0; c < run->sources[0].ncolumns; c++)
	{
		uint8_t    *at = memory + buffers->places[c].data +
			(uint64_t) buffer->nrows * types[c].width;
		uint64_t	nbytes = (uint64_t) chunk->nrows * types[c].width;

		GJ_TRY(bring(work, at, fragment ? gj_fragment_column(fragment, c, kept->first).data : NULL,
					 chunk->slot + chunk->places[c].data, nbytes));
		GJ_TRY(append_nulls(run, buffer, chunk, c));
	}
	if (chunk->heap_used > 0)
		GJ_TRY(bring(work, memory + buffers->heap_place + buffer->heap_used,
					 fragment ? (const uint8_t *) fragment->heap.memory + kept->heap : NULL,
					 chunk->slot + chunk->layout->heap, chunk->heap_used));
	buffer->part[buffer->nparts++] = (GjBufferedChunk) {buffer->nrows, chunk->nrows,
	buffer->heap_used, chunk->heap_used};
	buffer->nrows += chunk->nrows;
	buffer->heap_used += chunk->heap_used;
	return GJ_OK;
}

static bool
has_room(const GjRun *run, const GjChunkBuffer *buffer, const GjChunk *chunk)
{
	const GjChunkBuffers *buffers = &run->intake->buffers;
	return buffer->nparts < GJ_BUFFER_CHUNKS &&
		buffer->nrows + chunk->nrows <= buffers->rows &&
		buffer->heap_used + chunk->heap_used <= buffers->heap;
}

GjStatus
gj_run_buffer_chunk(GjRun *run, uint32_t source, const GjChunk *chunk, const GjKept *kept)
{
	GjChunkBuffers *buffers = &run->intake->buffers;
	GjWork	   *work = &run->work;

	(void) source;
	while (!has_room(run, &buffers->buffer[buffers->filling], chunk))
		GJ_TRY(gj_run_work(run));
	if (buffers->buffer[buffers->filling].nparts == 0)
		GJ_TRY(work->ops->queues->after(work->queue, GJ_LANE_LOAD, GJ_MARK_FREE(buffers->filling)));
	return append_chunk(run, &buffers->buffer[buffers->filling], chunk, kept);
}

GjStatus
gj_run_reserve_buffers(GjRun *run)
{
	return run->intake->buffers.n > 0 || run->intake->to[0] != &gj_to_joins_buffered ? GJ_OK :
		make_buffers(run);
}

void
gj_run_free_buffers(GjRun *run)
{
	for (uint32_t i = 0; i < 2; i++)
		gj_buffer_free(&run->work, &run->intake->buffers.buffer[i].memory);
}

/* ---- chunks */

/* Reads what a slot says about itself, once, for it may change under our eyes. */
static GjStatus
read_chunk(GjRun *run, uint32_t s, uint32_t nrows, const uint8_t *slot,
		   uint8_t *has_nulls, GjChunk *chunk)
{
	GjSlotHeader header;
	uint32_t	first = run->sources[s].first_column;

	memcpy(&header, slot, sizeof(header));
	memcpy(has_nulls, gj_slot_has_nulls(slot), run->sources[s].ncolumns);
	if (header.nrows != nrows || nrows > run->sources[s].capacity)
		return gj_run_fail(run, GJ_BAD_PROGRAM, "a chunk has too many rows");
	if (header.heap_used > run->intake->layout[s].heap_size || header.heap_used % 8 != 0)
		return gj_run_fail(run, GJ_BAD_PROGRAM, "a chunk has a damaged header");
	chunk->slot = slot;
	chunk->nrows = nrows;
	chunk->heap_used = header.heap_used;
	chunk->layout = &run->intake->layout[s];
	chunk->places = run->intake->places + first;
	chunk->has_nulls = has_nulls;

	run->stats.source[s].rows_in += nrows;
	run->stats.bytes_in += header.heap_used;
	for (uint32_t c = 0; c < run->sources[s].ncolumns; c++)
		run->stats.bytes_in += (uint64_t) nrows *
			(run->types[first + c].width + (has_nulls[c] ? 1 : 0));
	return GJ_OK;
}

/* Who works on the buffer that is being filled waits for this chunk, too. */
static GjStatus
note_loaded(GjRun *run)
{
	return run->work.ops->queues->mark(run->work.queue, GJ_LANE_LOAD,
							   GJ_MARK_LOADED(run->intake->buffers.filling));
}

GjStatus
gj_run_chunk(GjRun *run, uint32_t source, uint32_t nrows, uint8_t *memory, uint32_t slot)
{
	const GjRowsTo *to;
	uint8_t		has_nulls[GJ_MAX_COLUMNS];
	GjKept		kept;
	GjChunk		chunk;

	GJ_TRY(gj_run_may_load(run, source));
	GJ_STOP_CHECK(run);
	GJ_TRY(read_chunk(run, source, nrows, memory, has_nulls, &chunk));
	to = run->intake->to[source];
	GJ_TRY(to->reserve(run, source, &chunk));
	GJ_TRY(gj_run_keep(run, source, &chunk, to->lane, &kept));
	GJ_TRY(to->chunk(run, source, &chunk, &kept));
	run->intake->resident[source].nchunk_rows += nrows;
	GJ_TRY(gj_run_kept(run, source, &kept, to->lane));
	/* the slot's mark first: it takes the time of the copies */
	GJ_TRY(slot_used(run, to->lane, slot));
	return to->lane == GJ_LANE_LOAD ? note_loaded(run) : GJ_OK;
}
