/*
 * rows.c
 *	  Destinations of the rows that come to a run: the joins, a relation of which a build side is
 *	  made, or an exchange (GjRowsTo).
 *
 * A source has one destination, in whatever form its rows come.  Whoever receives rows describes
 * them as columns and ranges.  The destination decides how to handle rows that are not
 * contiguous.
 */
#include "intake.h"

#include <stdlib.h>
#include <string.h>

/* More ranges of rows than these are put together before the joins see them. */
#define GJ_MAX_RANGES		4

static uint32_t
ncolumns_of(const GjRun *run, const GjRows *rows)
{
	return run->sources[rows->source].ncolumns;
}

/* ---- rows that lie scattered */

uint64_t
gj_count_ranges(const GjRowRange *ranges, uint32_t n)
{
	uint64_t	nrows = 0;

	for (uint32_t i = 0; i < n; i++)
		nrows += ranges[i].end - ranges[i].first;
	return nrows;
}

uint32_t
gj_add_pieces(GjPiece *pieces, uint8_t *to, const void *from, uint32_t width,
			  const GjRowRange *ranges, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	nbytes = (uint64_t) (ranges[i].end - ranges[i].first) * width;

		pieces[i] = (GjPiece) {to, (const uint8_t *) from + (uint64_t) ranges[i].first * width,
			nbytes};
		to += nbytes;
	}
	return n;
}

uint32_t
gj_add_packed(GjPackColumn *packed, uint8_t *to, const GjColumn *from, const GjRowRange *ranges,
			  uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
	{
		packed[i] = (GjPackColumn) {*from, to, ranges[i].end - ranges[i].first};
		gj_column_skip(&packed[i].from, ranges[i].first);
		to += (uint64_t) packed[i].nrows * from->width;
	}
	return n;
}

/* Bytes from a row to the next one of a column that is put together: offsets become references. */
static uint32_t
stride_together(const GjColumn *column)
{
	return gj_column_has_offsets(column) ? column->width : gj_column_stride(column);
}

/* Makes references to `to` of the ranges' offsets. */
static GjStatus
unpack_ranges(GjWork *work, GjColumn *column, const GjRowRange *ranges, uint32_t n, uint8_t *to)
{
	GjPackColumn *packed = malloc(n * sizeof(GjPackColumn) + 1);
	GjStatus	status;

	if (!packed)
		return GJ_OUT_OF_HOST_MEMORY;
	gj_add_packed(packed, to, column, ranges, n);
	status = work->ops->columns->unpack(work->queue, packed, n);
	free(packed);
	column->packed = 0;
	return status;
}

/* Copies the ranges of all columns together, `total` rows each, where columns then start. */
static GjStatus
gather_ranges(GjWork *work, GjColumn *columns, uint32_t ncolumns, const GjRowRange *ranges,
			  uint32_t n, uint64_t total, uint8_t *to)
{
	GjPiece    *pieces = malloc((uint64_t) ncolumns * 2 * n * sizeof(GjPiece));
	uint32_t	npieces = 0;
	GjStatus	status = GJ_OK;

	if (!pieces)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t c = 0; c < ncolumns && status == GJ_OK; c++)
	{
		GjColumn   *column = &columns[c];
		const uint32_t stride = stride_together(column);

		if (gj_column_has_offsets(column))
			status = unpack_ranges(work, column, ranges, n, to);
		else
			npieces += gj_add_pieces(pieces + npieces, to, column->data, stride, ranges, n);
		column->data = to;
		to += gj_align(total * stride);
		if (column->nulls)
		{
			npieces += gj_add_pieces(pieces + npieces, to, column->nulls, 1, ranges, n);
			column->nulls = to;
		}
		to += gj_align(total);
	}
	if (status == GJ_OK)
		status = work->ops->memory->copy_many(work->queue, pieces, npieces);
	free(pieces);
	return status;
}

/*
 * Puts scattered rows together in a buffer, as `columns`, so that the joins see them at once, or
 * few copies are made of them.  Where they do not fit `room` bytes well, or there is no memory for
 * them, the ranges stay what they are.
 */
static GjStatus
put_together(GjRun *run, GjRows *rows, GjBuffer *buffer, uint64_t room, GjColumn *columns)
{
	GjWork	   *work = &run->work;
	uint32_t	ncolumns = ncolumns_of(run, rows);
	uint64_t	total;
	uint64_t	nbytes = 0;
	GjStatus	status;

	if (rows->nranges <= GJ_MAX_RANGES)
		return GJ_OK;
	total = gj_count_ranges(rows->ranges, rows->nranges);
	for (uint32_t c = 0; c < ncolumns; c++)
		nbytes += gj_align(total * stride_together(&rows->columns[c])) + gj_align(total);
	/* the joins need some as well */
	if (buffer->nbytes < nbytes && room < nbytes + nbytes / 4 + 2 * gj_run_least_space(run))
		return GJ_OK;
	status = gj_buffer_reserve(work, buffer, nbytes);
	if (status != GJ_OK)
		return status == GJ_OUT_OF_MEMORY ? GJ_OK : status;
	memcpy(columns, rows->columns, ncolumns * sizeof(GjColumn));
	GJ_TRY(gather_ranges(work, columns, ncolumns, rows->ranges, rows->nranges, total,
						 buffer->memory));
	rows->columns = columns;
	rows->codes = NULL;
	rows->ranges[0] = (GjRowRange) {0, (uint32_t) total};
	rows->nranges = 1;
	return GJ_OK;
}

/* ---- to a relation */

/* Appends ranges of rows, their references being behind those that are there. */
static GjStatus
append_ranges(GjRun *run, GjRelation *relation, const GjRows *rows)
{
	GjColumn	columns[GJ_MAX_COLUMNS];
	uint64_t	base;

	GJ_TRY(gj_relation_append_heap(&run->work, relation, rows->heap, rows->heap_used, &base));
	for (uint32_t i = 0; i < rows->nranges; i++)
	{
		const GjRowRange *range = &rows->ranges[i];

		GJ_STOP_CHECK(run);
		gj_columns_from(columns, rows->columns, ncolumns_of(run, rows), range->first);
		GJ_TRY(gj_relation_append_rows(&run->work, relation, columns, range->end - range->first,
									   base, rows->heap_used));
	}
	return GJ_OK;
}

GjStatus
gj_append_rows(GjRun *run, GjRelation *relation, GjRows *rows)
{
	GjBuffer	together = {NULL, 0};
	GjColumn	columns[GJ_MAX_COLUMNS];
	GjStatus	status = GJ_OK;

	/*
	 * What is built wants most of the memory, and nothing resident is to go.  Another device's rows
	 * are copied as they are.
	 */
	if (!run->work.peer)
		status = put_together(run, rows, &together, gj_lease_free(run->work.lease) / 4, columns);
	if (status == GJ_OK)
		status = append_ranges(run, relation, rows);
	gj_buffer_free(&run->work, &together);
	return status;
}

static GjStatus
rows_to_build(GjRun *run, GjRows *rows)
{
	return gj_append_rows(run, &run->relation[rows->source], rows);
}

static GjStatus
reserve_build(GjRun *run, uint32_t source, const GjChunk *chunk)
{
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_TRANSFER);
	/* what is kept may have what memory the side leaves */
	return gj_relation_reserve(&run->work, &run->relation[source], chunk->nrows);
}

static GjStatus
chunk_to_build(GjRun *run, uint32_t source, const GjChunk *chunk, const GjKept *kept)
{
	/* it comes from the host once, and what else wants it copies it on the device */
	return gj_run_append_chunk(run, &run->relation[source], chunk, kept);
}

const GjRowsTo gj_to_build = {"build", rows_to_build, GJ_LANE_WORK, reserve_build, chunk_to_build};

/* ---- through the joins */

static GjStatus
rows_to_joins(GjRun *run, GjRows *rows)
{
	GjColumn   *described = run->columns + run->sources[rows->source].first_column;
	GjColumn	columns[GJ_MAX_COLUMNS];

	if (rows->nranges > GJ_MAX_RANGES)
	{
		/* rows that wait may lie where these are put together */
		GJ_TRY(gj_fused_flush(run));
		GJ_TRY(put_together(run, rows, &run->intake->compact, gj_lease_left(run->work.lease),
							columns));
	}
	for (uint32_t i = 0; i < rows->nranges; i++)
	{
		const GjRowRange *range = &rows->ranges[i];

		/* where they are only noted, gj_fused_flush looks */
		if (!gj_fused_fits(run))
			GJ_STOP_CHECK(run);
		gj_columns_from(described, rows->columns, ncolumns_of(run, rows), range->first);
		run->arrival.codes = rows->codes ? rows->codes + range->first : NULL;
		GJ_TRY(gj_run_probe_rows(run, range->end - range->first, !rows->stay));
	}
	run->arrival.codes = NULL;
	return GJ_OK;
}

static GjStatus
reserve_nothing(GjRun *run, uint32_t source, const GjChunk *chunk)
{
	(void) chunk;
	return source == 0 ? gj_run_fail_points(run) : GJ_OK;
}

/* Copies a part of a chunk to where it lies in a slot. */
static void
copy_part(uint8_t *memory, const GjChunk *chunk, uint32_t at, uint64_t nbytes)
{
	memcpy(memory + at, chunk->slot + at, nbytes);
}

/*
 * Works on a chunk on the cpu device, in a copy of its slot: in the ring the backend could change
 * what has been checked.  The copy is no device memory, but more of the ring.
 */
static GjStatus
chunk_in_copy(GjRun *run, uint32_t source, const GjChunk *chunk, const GjKept *kept)
{
	const GjColumnType *types = run->types + run->sources[source].first_column;
	uint8_t    *memory = run->intake->slot_copy;
	GjColumn	columns[GJ_MAX_COLUMNS];
	GjRows		rows = GJ_ALL_ROWS(source, columns, chunk->nrows, false);

	(void) kept;
	if (!memory)
		memory = run->intake->slot_copy = malloc(GJ_LOAD_SLOT_SIZE);
	if (!memory)
		return GJ_OUT_OF_HOST_MEMORY;
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_TRANSFER);
	copy_part(memory, chunk, chunk->layout->heap, chunk->heap_used);
	for (uint32_t c = 0; c < run->sources[source].ncolumns; c++)
	{
		const GjColumnPlace *place = &chunk->places[c];
		bool		has_nulls = chunk->has_nulls[c] && types[c].nullable;

		copy_part(memory, chunk, place->data, (uint64_t) chunk->nrows * types[c].width);
		if (has_nulls)
			copy_part(memory, chunk, place->nulls, chunk->nrows);
		/* base 0: only checks that they lie within the heap */
		if (types[c].kind == GJ_REF)
			GJ_TRY(run->work.ops->columns->rebase_refs(run->work.queue,
											  (uint64_t *) (memory + place->data),
											  chunk->nrows, 0, chunk->heap_used));
		columns[c] = (GjColumn) {
			.data = memory + place->data,.nulls = has_nulls ? memory + place->nulls : NULL,
			.heap = types[c].kind == GJ_REF ? memory + chunk->layout->heap : NULL,
			.kind = types[c].kind,.width = types[c].width
		};
	}
	return gj_source_rows(run, &rows);
}

const GjRowsTo gj_to_joins = {"joins", rows_to_joins, GJ_LANE_WORK, reserve_nothing,
chunk_in_copy};

static GjStatus
reserve_buffers(GjRun *run, uint32_t source, const GjChunk *chunk)
{
	GJ_TRY(reserve_nothing(run, source, chunk));
	/* what is kept may have what memory they leave */
	return gj_run_reserve_buffers(run);
}

const GjRowsTo gj_to_joins_buffered = {"joins, by way of buffers", rows_to_joins, GJ_LANE_LOAD,
reserve_buffers, gj_run_buffer_chunk};

/* ---- into an exchange */

static GjStatus
rows_to_exchange(GjRun *run, GjRows *rows)
{
	GjColumn	together[GJ_MAX_COLUMNS];
	GjColumn	columns[GJ_MAX_COLUMNS];

	/* rows that are sent from where they lie make a block a range */
	if (gj_run_sends_in_place(run, rows->source))
		GJ_TRY(put_together(run, rows, &run->intake->compact, gj_lease_left(run->work.lease),
							together));
	for (uint32_t i = 0; i < rows->nranges; i++)
	{
		const GjRowRange *range = &rows->ranges[i];

		GJ_STOP_CHECK(run);
		gj_columns_from(columns, rows->columns, ncolumns_of(run, rows), range->first);
		GJ_TRY(gj_run_stage_rows(run, rows->source, columns, range->end - range->first));
	}
	return GJ_OK;
}

const GjRowsTo gj_to_exchange = {"exchange", rows_to_exchange, GJ_LANE_WORK, reserve_nothing,
gj_run_stage_chunk};

/* ---- nowhere: GJ_PROGRAM_PREWARM */

static GjStatus
rows_to_nowhere(GjRun *run, GjRows *rows)
{
	(void) rows;
	GJ_STOP_CHECK(run);
	return GJ_OK;
}

static GjStatus
reserve_nowhere(GjRun *run, uint32_t source, const GjChunk *chunk)
{
	(void) source;
	(void) chunk;
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_TRANSFER);
	return gj_run_fail_points(run);
}

static GjStatus
chunk_to_nowhere(GjRun *run, uint32_t source, const GjChunk *chunk, const GjKept *kept)
{
	(void) run;
	(void) source;
	(void) chunk;
	(void) kept;
	return GJ_OK;
}

const GjRowsTo gj_to_nowhere = {"nowhere", rows_to_nowhere, GJ_LANE_WORK, reserve_nowhere,
chunk_to_nowhere};

/* ---- all of them */

GjStatus
gj_source_rows(GjRun *run, GjRows *rows)
{
	return run->intake->to[rows->source]->rows(run, rows);
}

GjStatus
gj_source_rows_behind(GjRun *run, GjRows *rows)
{
	return rows->source == 0 ? rows_to_joins(run, rows) : rows_to_build(run, rows);
}
