/*
 * split.c
 *	  The sending side of an exchange: rows of the probe source and of one build source, split by
 *	  the keys of a step, so that each device gets all rows of its part of the keys.
 *
 * Rows wait until there are many: those of resident fragments where they lie; those of chunks,
 * and small groups of rows, are collected in a stage.  Then the rows that pass the filter of
 * their source are split by a hash of their keys, and their columns are written part by part into
 * a block.  The other runs copy their parts from it; the run's own part stays there
 * (source/block.c).  Columns that only the filter reads are not written.  Fragments with
 * references are sent one by one, together with the bytes that the references point to.
 *
 * Rows with a NULL key match nothing and stay with the run that they came to.
 */
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

/* From so many rows on a piece waits where it lies. */
#define GJ_PIECE_ROWS		GJ_MIN_TUPLES

/* A view of the rows of a piece. */
static GjStatus
view_piece(GjRun *run, const GjSplitSide *side, const GjSplitPiece *piece, GjView *view)
{
	GjRunExchange *x = run->intake->exchange;

	memset(view, 0, sizeof(*view));
	memcpy(x->columns + run->sources[side->source].first_column, piece->columns,
		   side->stage.ncolumns * sizeof(GjColumn));
	view->nrows = piece->nrows;
	view->rowid[side->source] = piece->rows;
	return run->work.ops->columns->set_columns(run->work.queue, x->columns, run->program->ncolumns,
									  &view->columns);
}

/* Leaves the rows of the pieces that pass the filter; *n of them. */
static GjStatus
filter_pieces(GjRun *run, GjSplitSide *side, uint32_t *n)
{
	GjRunExchange *x = run->intake->exchange;
	GjWork	   *work = &run->work;

	GJ_TRY(gj_buffer_reserve(work, &x->passed, (uint64_t) *n * sizeof(uint32_t)));
	*n = 0;
	for (uint32_t p = 0; p < x->npieces; p++)
	{
		GjSplitPiece *piece = &x->piece[p];
		uint32_t   *rows = (uint32_t *) x->passed.memory + *n;
		GjView		view;

		GJ_STOP_CHECK(run);
		GJ_TRY(view_piece(run, side, piece, &view));
		GJ_TRY(work->ops->columns->select(work->queue, &view, (uint32_t) side->filter, rows,
										  &piece->nrows));
		piece->rows = rows;
		*n += piece->nrows;
	}
	return GJ_OK;
}

/* Keys of the n rows of all pieces. */
static GjStatus
compute_keys(GjRun *run, GjSplitSide *side, uint32_t n, GjKeys *keys)
{
	GjRunExchange *x = run->intake->exchange;
	GjWork	   *work = &run->work;
	uint32_t	first = 0;

	memset(keys, 0, sizeof(*keys));
	keys->nkeys = x->nkeys;
	keys->nrows = n;
	for (uint32_t k = 0; k < x->nkeys; k++)
	{
		GJ_TRY(gj_buffer_reserve(work, &x->keys.value[k], (uint64_t) n * sizeof(int64_t)));
		keys->value[k] = x->keys.value[k].memory;
	}
	GJ_TRY(gj_buffer_reserve(work, &x->keys.null, n));
	keys->null = x->keys.null.memory;
	for (uint32_t p = 0; p < x->npieces; p++)
	{
		GjKeys		of_piece = *keys;
		GjView		view;

		GJ_STOP_CHECK(run);
		of_piece.nrows = x->piece[p].nrows;
		for (uint32_t k = 0; k < x->nkeys; k++)
			of_piece.value[k] += first;
		of_piece.null += first;
		GJ_TRY(view_piece(run, side, &x->piece[p], &view));
		GJ_TRY(work->ops->columns->keys(work->queue, &view, 0, view.nrows, side->first_key,
										&of_piece));
		first += view.nrows;
	}
	return GJ_OK;
}

/* Any piece has null flags of the column. */
static bool
has_nulls(const GjRunExchange *x, uint32_t c)
{
	for (uint32_t p = 0; p < x->npieces; p++)
		if (x->piece[p].columns[c].nulls)
			return true;
	return false;
}

/*
 * Has columns that are sent lie one behind the other, with n rows each; returns their bytes.
 * Memory NULL: there is none yet.
 */
static uint64_t
place_columns(const GjRun *run, const GjSplitSide *side, void *memory, uint64_t n,
			  GjColumn *columns)
{
	const GjColumnType *types = side->stage.types;
	uintptr_t	start = (uintptr_t) memory;
	uint64_t	at = 0;

	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
	{
		GjColumn   *to = &columns[c];

		*to = (GjColumn) {.kind = types[c].kind,.width = types[c].width};
		if (!side->sent[c])
			continue;
		to->data = (void *) (start + at);
		at += gj_align(n * types[c].width);
		if (!has_nulls(run->intake->exchange, c))
			continue;
		to->nulls = (uint8_t *) (start + at);
		at += gj_align(n);
	}
	return at;
}

/* Room in the block for n rows of the columns that are sent. */
static GjStatus
lay_block_out(GjRun *run, GjSplitSide *side, uint64_t n, GjBlock *block)
{
	uint64_t	nbytes = place_columns(run, side, NULL, n, block->columns);

	GJ_TRY(gj_buffer_reserve(&run->work, &block->memory, nbytes + 1));
	place_columns(run, side, block->memory.memory, n, block->columns);
	return GJ_OK;
}

bool
gj_run_joins_ahead(GjRun *run)
{
	return run->sink->has_states && gj_fused_fits(run);
}

/* True if rows of others are copied beside a split, and joined behind it if room is short. */
static bool
takes_beside(GjRun *run, const GjSplitSide *side)
{
	return side->source == 0 && side->nrefs == 0 && gj_run_joins_ahead(run);
}

/* Queues a split of the rows of all pieces to the block; *parts: see there. */
static GjStatus
split_pieces(GjRun *run, GjSplitSide *side, uint32_t n, GjBlock *block,
			 const GjSplitParts **parts)
{
	GjRunExchange *x = run->intake->exchange;
	GjWork	   *work = &run->work;
	GjSplit		split = {.nparts = x->plan.nparts,.null_part = x->plan.part,
		.npieces = x->npieces,.pieces = x->piece,.ncolumns = side->stage.ncolumns,
	.nkeys = x->nkeys};
	GjKeys		keys;

	/* places of references go by those of rows */
	if (n >= GJ_SPLIT_STRIDE_ROWS && side->nrefs == 0 && !side->uneven)
		split.stride = gj_split_stride(n, x->plan.nparts);
	memcpy(split.key, side->key, sizeof(split.key));
	if (side->computes_keys)
	{
		GJ_TRY(compute_keys(run, side, n, &keys));
		split.keys = &keys;
	}
	GJ_TRY(lay_block_out(run, side, gj_split_room(n, x->plan.nparts), block));
	work->ops->queues->phase(work->queue, GJ_PHASE_TRANSFER);
	GJ_TRY(work->ops->exchange->split(work->queue, &split, block->columns, run->host->stop,
							run->host->arg, parts));
	return work->ops->queues->mark(work->queue, GJ_LANE_WORK, GJ_MARK_SPLIT);
}

GjStatus
gj_run_has_split(GjRun *run, bool wait, bool *done)
{
	return run->work.ops->queues->passed(run->work.queue, GJ_MARK_SPLIT, wait, done);
}

/* Waits for a split that was queued. */
static GjStatus
await_split(GjRun *run, const GjSplitSide *side)
{
	bool		done;

	if (takes_beside(run, side))
		return run->intake->exchange->ops->await_split(run->intake->exchange->arg);
	return gj_run_has_split(run, true, &done);
}

/* Fills the block with the n rows of all pieces.  Waits. */
static GjStatus
fill_block(GjRun *run, GjSplitSide *side, uint32_t n, GjBlock *block)
{
	const GjSplitParts *parts;

	GJ_TRY(split_pieces(run, side, n, block, &parts));
	/* what came before is worked on while the block is handed over and the next one is begun */
	if (side->source == 0 && gj_run_joins_ahead(run) && gj_run_has_sent(run))
		GJ_TRY(gj_run_join_sent(run));
	GJ_TRY(await_split(run, side));
	if (parts->full)
	{
		side->uneven = true;
		GJ_TRY(split_pieces(run, side, n, block, &parts));
		GJ_TRY(await_split(run, side));
	}
	block->parts = *parts;
	return GJ_OK;
}

/* Where the bytes of references of a part of a block of n rows start: one more than it has rows. */
static uint64_t *
part_places(const GjRunExchange *x, uint32_t n, const GjBlock *block, uint32_t ref, uint32_t part)
{
	return (uint64_t *) x->heap_at.memory + ref * gj_heap_places(x, n) +
		block->parts.start[part] + part;
}

/*
 * Bytes of the references of each part, and within one column by column: bytes[part * nrefs + r] of
 * the r-th column of references.
 */
static GjStatus
measure_heap(GjRun *run, GjSplitSide *side, uint32_t n, const GjBlock *block, uint64_t *bytes)
{
	GjRunExchange *x = run->intake->exchange;
	GjWork	   *work = &run->work;

	GJ_TRY(gj_buffer_reserve(work, &x->heap_at,
							 gj_heap_places(x, n) * side->nrefs * sizeof(uint64_t)));
	for (uint32_t c = 0, r = 0; c < side->stage.ncolumns; c++)
	{
		const uint64_t *refs = block->columns[c].data;

		if (!side->sent[c] || block->columns[c].kind != GJ_REF)
			continue;
		for (uint32_t p = 0; p < x->plan.nparts; p++)
		{
			uint32_t	rows = gj_block_rows(block, p);
			uint64_t   *at = part_places(x, n, block, r, p);

			GJ_TRY(work->ops->exchange->ref_bytes(work->queue, refs + block->parts.start[p], rows,
												  at));
			GJ_TRY(work->ops->memory->copy_out(work->queue, &bytes[p * side->nrefs + r], at + rows,
									   sizeof(uint64_t)));
		}
		r++;
	}
	return work->ops->queues->sync(work->queue);
}

/* Copies the bytes of all references to the block's heap. */
static GjStatus
move_heap(GjRun *run, GjSplitSide *side, uint32_t n, GjBlock *block, const uint64_t *bytes)
{
	GjRunExchange *x = run->intake->exchange;
	const GjColumn *from = x->piece[0].columns;
	GjWork	   *work = &run->work;

	for (uint32_t p = 0; p < x->plan.nparts; p++)
	{
		uint8_t    *to = (uint8_t *) block->heap.memory + block->heap_start[p];
		uint64_t	base = 0;

		for (uint32_t c = 0, r = 0; c < side->stage.ncolumns; c++)
		{
			uint64_t   *refs = (uint64_t *) block->columns[c].data;

			if (!side->sent[c] || block->columns[c].kind != GJ_REF)
				continue;
			GJ_TRY(work->ops->exchange->move_refs(work->queue, refs + block->parts.start[p],
										gj_block_rows(block, p), from[c].heap,
										part_places(x, n, block, r, p), to + base, base));
			base += bytes[p * side->nrefs + r++];
		}
	}
	/* the block is read by others than this queue */
	return work->ops->queues->sync(work->queue);
}

/*
 * The bytes of the references of a block of n rows, whose pieces have one heap.  *fits: false if
 * they are more than they may be; then the block is not filled.  Waits.
 */
static GjStatus
fill_heap(GjRun *run, GjSplitSide *side, uint32_t n, GjBlock *block, bool *fits)
{
	uint32_t	nparts = run->intake->exchange->plan.nparts;
	uint64_t   *bytes = calloc((size_t) nparts * side->nrefs + 1, sizeof(uint64_t));
	GjStatus	status = bytes ? measure_heap(run, side, n, block, bytes) : GJ_OUT_OF_HOST_MEMORY;
	uint64_t	total = 0;

	for (uint32_t p = 0; p < nparts && status == GJ_OK; p++)
	{
		block->heap_start[p] = total;
		for (uint32_t r = 0; r < side->nrefs; r++)
			total += bytes[p * side->nrefs + r];
		block->heap_start[p + 1] = total;
	}
	*fits = total <= side->most_heap || n == 1;
	if (status == GJ_OK && *fits)
		status = gj_buffer_reserve(&run->work, &block->heap, total + 8);
	if (status == GJ_OK && *fits)
		status = move_heap(run, side, n, block, bytes);
	free(bytes);
	return status;
}

/* Sends the pieces.  *fits: false if their heap is too large for a block. */
static GjStatus
send_pieces(GjRun *run, GjSplitSide *side, bool *fits)
{
	GjRunExchange *x = run->intake->exchange;
	GjWork	   *work = &run->work;
	uint32_t	n = x->nwaiting;
	GjBlock   *block;

	*fits = true;
	/*
	 * Rows may be received meanwhile, and change what the queue's columns are.  A filter may leave
	 * none to split.
	 */
	GJ_TRY(x->ops->get_block(x->arg, x->block, GJ_BLOCKS,
							  side->filter < 0 && takes_beside(run, side), &block));
	work->ops->queues->phase(work->queue, GJ_PHASE_TRANSFER);
	if (side->filter >= 0)
		GJ_TRY(filter_pieces(run, side, &n));
	if (n == 0)
		return GJ_OK;
	GJ_TRY(fill_block(run, side, n, block));
	memset(block->heap_start, 0, sizeof(block->heap_start));
	if (side->nrefs > 0)
		GJ_TRY(fill_heap(run, side, n, block, fits));
	if (!*fits)
		return GJ_OK;
	block->source = side->source;
	GJ_TRY(x->ops->send_block(x->arg, block));
	GJ_TRY(gj_run_take_own(run, block));
	/* rows that can pass behind the next split wait for it: who gets the others goes first */
	return side->source == 0 && !gj_run_joins_ahead(run) ? gj_run_join_own(run) : GJ_OK;
}

static void
forget_pieces(GjRunExchange *x)
{
	x->npieces = x->nwaiting = 0;
}

/* How many pieces n rows make. */
static uint32_t
pieces_of(uint32_t n)
{
	return (n + GJ_MAX_TUPLES - 1) / GJ_MAX_TUPLES;
}

/* Makes pieces, which wait, of n rows of columns, from `first` on. */
static void
add_pieces(GjRunExchange *x, const GjSplitSide *side, const GjColumn *columns, uint64_t first,
		   uint32_t n)
{
	for (uint32_t done = 0, rows; done < n; done += rows)
	{
		GjColumn   *to = x->piece_columns + (size_t) x->npieces * side->stage.ncolumns;

		rows = n - done < GJ_MAX_TUPLES ? n - done : GJ_MAX_TUPLES;
		gj_columns_from(to, columns, side->stage.ncolumns, first + done);
		x->piece[x->npieces++] = (GjSplitPiece) {to, NULL, rows};
	}
	x->nwaiting += n;
}

/* Sends nrows rows of columns, whose references point into one heap. */
static GjStatus
send_rows(GjRun *run, GjSplitSide *side, const GjColumn *columns, uint64_t nrows)
{
	for (uint64_t first = 0, n; first < nrows; first += n)
	{
		bool		fits = false;

		n = gj_split_most_rows(run, side);
		if (n > nrows - first)
			n = nrows - first;
		while (!fits)
		{
			add_pieces(run->intake->exchange, side, columns, first, (uint32_t) n);
			GJ_TRY(send_pieces(run, side, &fits));
			forget_pieces(run->intake->exchange);
			if (!fits)
				n /= 2;
		}
	}
	return GJ_OK;
}

/* Sends all rows that wait: those of the stage, and pieces. */
static GjStatus
send_waiting(GjRun *run, GjSplitSide *side)
{
	GjRunExchange *x = run->intake->exchange;
	uint32_t	staged = (uint32_t) side->stage.nrows;
	GjColumn	columns[GJ_MAX_COLUMNS];
	bool		fits;

	gj_relation_columns(&side->stage, 0, columns);
	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
		if (!side->stage_nulls[c])
			columns[c].nulls = NULL;
	memset(side->stage_nulls, 0, side->stage.ncolumns * sizeof(bool));
	side->stage.nrows = side->stage.heap_used = 0;
	if (side->has_refs)
		return send_rows(run, side, columns, staged);
	add_pieces(x, side, columns, 0, staged);
	if (x->nwaiting > 0)
		GJ_TRY(send_pieces(run, side, &fits));
	forget_pieces(x);
	return GJ_OK;
}

GjStatus
gj_run_stage_chunk(GjRun *run, uint32_t source, const GjChunk *chunk, const GjKept *kept)
{
	GjSplitSide *side = gj_split_side(run, source);
	uint64_t	staged = side->stage.nrows + chunk->nrows;
	uint64_t	waiting = run->intake->exchange->nwaiting + staged;

	if (waiting > gj_split_most_rows(run, side) || staged > side->stage_rows ||
		side->stage.heap_used + chunk->heap_used > side->most_heap)
		GJ_TRY(send_waiting(run, side));
	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
		side->stage_nulls[c] |= chunk->has_nulls[c];
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_TRANSFER);
	return gj_run_append_chunk(run, &side->stage, chunk, kept);
}

/* Appends n rows of columns, from `first` on, to the stage. */
static GjStatus
stage_rows(GjRun *run, GjSplitSide *side, const GjColumn *columns, uint32_t first, uint32_t n)
{
	GjColumn	from[GJ_MAX_COLUMNS];

	gj_columns_from(from, columns, side->stage.ncolumns, first);
	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
		side->stage_nulls[c] |= columns[c].nulls != NULL;
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_TRANSFER);
	return gj_relation_append_rows(&run->work, &side->stage, from, n, 0, 0);
}

/*
 * Takes rows of columns, from `first` on: *n of them, at most `left`, which now wait; 0 if those
 * that wait must be sent first.
 */
static GjStatus
take_rows(GjRun *run, GjSplitSide *side, const GjColumn *columns, uint32_t first, uint32_t left,
		  uint32_t *n)
{
	GjRunExchange *x = run->intake->exchange;
	uint32_t	most = gj_split_most_rows(run, side);
	uint32_t	waiting = x->nwaiting + (uint32_t) side->stage.nrows;
	uint32_t	room = most - waiting;

	*n = left < room ? left : room;
	if (*n >= GJ_PIECE_ROWS)
	{
		if (x->npieces + pieces_of(*n) + pieces_of(side->stage_rows) > GJ_SPLIT_PIECES)
			*n = 0;
		add_pieces(x, side, columns, first, *n);
		return GJ_OK;
	}
	/* no more than that wait by themselves, unless it is all there is */
	room = *n < left ? 0 : side->stage_rows - (uint32_t) side->stage.nrows;
	*n = *n < room ? *n : room;
	return *n > 0 ? stage_rows(run, side, columns, first, *n) : GJ_OK;
}

GjStatus
gj_run_stage_rows(GjRun *run, uint32_t source, const GjColumn *columns, uint32_t nrows)
{
	GjSplitSide *side = gj_split_side(run, source);
	uint32_t	n;

	if (gj_run_sends_in_place(run, source))
		return send_rows(run, side, columns, nrows);
	for (uint32_t first = 0; first < nrows; first += n)
	{
		GJ_TRY(take_rows(run, side, columns, first, nrows - first, &n));
		if (n == 0)
			GJ_TRY(send_waiting(run, side));
	}
	return GJ_OK;
}

GjStatus
gj_run_send_many(GjRun *run, uint32_t source)
{
	GjSplitSide *side = gj_split_side(run, source);

	return side && run->intake->exchange->nwaiting >= GJ_MAX_TUPLES ?
		send_waiting(run, side) : GJ_OK;
}

GjStatus
gj_run_send_blocks(GjRun *run, uint32_t source)
{
	/* those that were only noted are worked on from here on */
	if (source == 0 && run->intake->resident[0].nuses > 0)
		GJ_TRY(gj_run_fail_points(run));
	if (source == 0 && run->intake->side[0].kept)
		return gj_exchanged_join(run);
	GJ_TRY(gj_run_send_uses(run, source));
	return send_waiting(run, gj_split_side(run, source));
}
