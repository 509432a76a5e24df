/*
 * run_split.c
 *	  Rows that a run sends to the runs of other devices, so that each has all rows of its part of
 *	  the keys of one step, of the outer and of the inner source.
 *
 * Rows that come wait until they are many: those of resident fragments where they lie, those of
 * chunks, and the few that lie by themselves, put together in a stage.  Then those that pass the
 * filter of their source are split by a hash of their keys, and their columns are written part by
 * part into a parcel, from which the other runs copy their parts; the run's own part stays there
 * (run_receive.c).  Columns that only the filter reads stay behind.  Fragments with references are
 * sent one by one, for what these point to goes with them.
 *
 * Rows with a NULL key, which match nothing, stay with the run that they came to.
 *
 * Once rows have been returned, memory must not run out: before the first outer row comes, all
 * that the exchange of outer rows needs is reserved, the same on all devices, and what does not
 * fit that is sent in smaller parcels.
 */
#include "run.h"
#include "run_parcel.h"

#include <stdlib.h>
#include <string.h>

/* Rows of a parcel at most, and the part of the memory left that all this may take. */
#define GJ_PARCEL_ROWS		(16u * GJ_MAX_TUPLES)
#define GJ_EXCHANGE_SHARE	4

/* Rows of a stage, and of an inbox. */
#define GJ_STAGE_ROWS		(4u * GJ_MAX_TUPLES)

/* From so many rows on a piece waits where it lies. */
#define GJ_PIECE_ROWS		GJ_MIN_TUPLES

/* Bytes of a parcel's heap. */
#define GJ_PARCEL_HEAP		(UINT64_C(256) << 20)

GjSplitSide *
gj_split_side(const GjRun *run, uint32_t source)
{
	if (!run->exchange)
		return NULL;
	if (source == 0)
		return &run->exchange->side[0];
	return source == run->exchange->side[1].source ? &run->exchange->side[1] : NULL;
}

bool
gj_run_exchanges(const GjRun *run, uint32_t source)
{
	return gj_split_side(run, source) != NULL;
}

int32_t
gj_run_inner_filter(const GjRun *run, uint32_t source)
{
	return gj_run_exchanges(run, source) ? run->exchange->side[1].filter : run->sources[source].filter;
}

void
gj_run_exchanged_part(const GjRun *run, uint32_t source, uint32_t part[2])
{
	bool		exchanged = gj_run_exchanges(run, source);

	part[0] = exchanged ? run->exchange->plan.part : 0;
	part[1] = exchanged ? run->exchange->plan.nparts : 1;
}

bool
gj_run_sends_in_place(const GjRun *run, uint32_t source)
{
	return gj_run_exchanges(run, source) && gj_split_side(run, source)->has_refs;
}

bool
gj_run_has_outer_columns(const GjRun *run)
{
	const GjSplitSide *side = gj_split_side(run, 0);

	for (uint32_t c = 0; side && c < side->stage.ncolumns; c++)
		if (!side->sent[c])
			return false;
	return true;
}

/* ---- open and close */

/* Notes that columns of the side are sent which an operand of the step reads. */
static void
send_operand(const GjRun *run, GjSplitSide *side, int32_t operand)
{
	const GjInstr *instrs = gj_program_array(run->program, GjInstr, instrs);
	uint32_t	first = run->sources[side->source].first_column;

	if (operand < 0)
	{
		side->sent[-1 - operand - (int32_t) first] = true;
		return;
	}
	for (uint32_t i = 0; i < run->exprs[operand].ninstrs; i++)
	{
		const GjInstr *instr = &instrs[run->exprs[operand].first + i];

		if (gj_op_loads(instr->op))
			side->sent[instr->arg - first] = true;
	}
}

/*
 * Notes the columns that are the side's keys, if all of them are columns.  These need not be computed
 * before rows are split.
 */
static void
find_keys(const GjRun *run, GjSplitSide *side, uint32_t nkeys)
{
	const GjInstr *instrs = gj_program_array(run->program, GjInstr, instrs);

	for (uint32_t k = 0; k < nkeys; k++)
	{
		const GjExpr *expr = &run->exprs[side->first_key + k];

		if (expr->ninstrs != 1 || instrs[expr->first].op != GJ_OP_LOAD)
			side->computes_keys = true;
		else
			side->key[k] = instrs[expr->first].arg - run->sources[side->source].first_column;
	}
}

static GjStatus
open_side(GjRun *run, GjSplitSide *side, uint32_t source, int32_t filter, uint32_t first_key)
{
	const GjSource *src = &run->sources[source];

	side->source = source;
	side->filter = filter;
	side->first_key = first_key;
	find_keys(run, side, run->exchange->nkeys);
	side->sent = calloc(src->ncolumns + 1, sizeof(bool));
	if (!side->sent ||
		!gj_relation_init(&side->stage, run->types + src->first_column, src->ncolumns, 0))
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t c = 0; c < src->ncolumns; c++)
		side->sent[c] = run->late[src->first_column + c];
	return GJ_OK;
}

/* Host memory of what is not a side's. */
static GjStatus
open_parcels(GjRun *run)
{
	GjRunExchange *x = run->exchange;
	const GjRelation *outer = &x->side[0].stage;
	uint32_t	most = outer->ncolumns > x->side[1].stage.ncolumns ? outer->ncolumns :
		x->side[1].stage.ncolumns;
	bool		opened;

	x->columns = calloc(run->program->ncolumns + 1, sizeof(GjColumn));
	x->piece_columns = calloc((size_t) GJ_SPLIT_PIECES * most + 1, sizeof(GjColumn));
	opened = x->columns && x->piece_columns;
	for (uint32_t p = 0; p < GJ_PARCELS; p++)
	{
		x->parcel[p].entry = run->entry;
		x->parcel[p].columns = calloc(most + 1, sizeof(GjColumn));
		opened &= x->parcel[p].columns != NULL;
	}
	for (uint32_t i = 0; i < 2; i++)
	{
		x->inbox[i].has_nulls = calloc(outer->ncolumns + 1, sizeof(bool));
		opened &= gj_relation_init(&x->inbox[i].rows, outer->types, outer->ncolumns, 0) &&
			x->inbox[i].has_nulls;
	}
	return opened ? GJ_OK : GJ_OUT_OF_HOST_MEMORY;
}

GjStatus
gj_run_open_exchange(GjRun *run, const GjExchangePlan *plan)
{
	GjRunExchange *x = calloc(1, sizeof(GjRunExchange));
	const GjRunStep *rs = &run->steps[plan->step];
	uint32_t	source = rs->step->source;

	if (!x)
		return GJ_OUT_OF_HOST_MEMORY;
	run->exchange = x;
	x->plan = *plan;
	x->nkeys = rs->step->nkeys;
	GJ_TRY(open_side(run, &x->side[0], 0, plan->outer_filter, rs->step->outer_keys));
	GJ_TRY(open_side(run, &x->side[1], source, plan->inner_filter, rs->step->inner_keys));
	/* what only the build reads */
	for (uint32_t k = 0; k < rs->ninner; k++)
		send_operand(run, &x->side[1], rs->inner_operand[k]);
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t c = 0; c < x->side[i].stage.ncolumns; c++)
			if (x->side[i].stage.types[c].kind == GJ_REF)
			{
				x->side[i].nrefs += x->side[i].sent[c];
				x->side[i].has_refs = true;
			}
	return open_parcels(run);
}

static void
free_buffers(GjWork *work, GjRunExchange *x)
{
	for (uint32_t p = 0; p < GJ_PARCELS; p++)
	{
		gj_buffer_free(work, &x->parcel[p].memory);
		gj_buffer_free(work, &x->parcel[p].heap);
	}
	gj_buffer_free(work, &x->passed);
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
		gj_buffer_free(work, &x->value[k]);
	gj_buffer_free(work, &x->null);
	gj_buffer_free(work, &x->heap_at);
}

void
gj_run_free_exchange(GjRun *run)
{
	GjRunExchange *x = run->exchange;
	GjWork	   *work = &run->work;

	if (!x)
		return;
	for (uint32_t i = 0; i < 2; i++)
	{
		gj_relation_free(work, &x->side[i].stage);
		free(x->side[i].sent);
		gj_relation_free(work, &x->inbox[i].rows);
		free(x->inbox[i].has_nulls);
	}
	free_buffers(work, x);
	for (uint32_t p = 0; p < GJ_PARCELS; p++)
		free(x->parcel[p].columns);
	free(x->piece_columns);
	free(x->columns);
	free(x);
	run->exchange = NULL;
}

/* ---- memory */

/* Bytes that a row of the side takes on its way, without its heap. */
static uint64_t
row_bytes(const GjRunExchange *x, const GjSplitSide *side)
{
	/* what split() takes, and rows that passed the filter */
	uint64_t	a_row = 2 + sizeof(uint32_t) + side->nrefs * sizeof(uint64_t);

	if (side->computes_keys)
		a_row += x->nkeys * sizeof(int64_t) + 1;
	/* stage, inboxes and parcels */
	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
		a_row += (side->sent[c] ? 3 + GJ_PARCELS : 1) * (side->stage.types[c].width + 1);
	return a_row;
}

static uint32_t
rows_in(const GjRunExchange *x, const GjSplitSide *side, uint64_t nbytes)
{
	uint64_t	n = nbytes / row_bytes(x, side);

	return n > GJ_PARCEL_ROWS ? GJ_PARCEL_ROWS : n < GJ_MIN_TUPLES ? GJ_MIN_TUPLES : (uint32_t) n;
}

uint64_t
gj_run_exchange_space(GjRun *run)
{
	return gj_lease_left(run->work.lease) / GJ_EXCHANGE_SHARE;
}

/*
 * What a parcel of the side has at most, in so many bytes for all of them and what else rows need
 * on their way.  Of references half is for heaps: the stage's, the inbox's and the parcels', at
 * least that of a chunk each.
 */
static void
set_most(const GjRun *run, GjSplitSide *side, uint64_t nbytes)
{
	uint64_t	heap = 0;

	if (side->has_refs)
	{
		heap = nbytes / 2 / (2 + GJ_PARCELS) & ~UINT64_C(7);
		if (heap > GJ_PARCEL_HEAP)
			heap = GJ_PARCEL_HEAP;
		if (heap < run->layout[side->source].heap_size)
			heap = run->layout[side->source].heap_size;
		nbytes /= 2;
	}
	side->most_heap = heap;
	side->most_rows = rows_in(run->exchange, side, nbytes);
}

/* Makes a parcel have no more rows than that, but those of a chunk. */
static void
limit_rows(const GjRun *run, GjSplitSide *side, uint64_t n)
{
	if (side->most_rows > n)
		side->most_rows = (uint32_t) n;
	if (side->most_rows < run->sources[side->source].capacity)
		side->most_rows = run->sources[side->source].capacity;
	side->stage_rows = side->most_rows < GJ_STAGE_ROWS ? side->most_rows : GJ_STAGE_ROWS;
}

/* Finds out, once, how many rows a parcel of the side has. */
static uint32_t
most_rows(GjRun *run, GjSplitSide *side)
{
	if (side->most_rows == 0)
	{
		set_most(run, side, gj_run_exchange_space(run));
		limit_rows(run, side, GJ_PARCEL_ROWS);
	}
	return side->most_rows;
}

/* Memory for parcels, and for what is needed to fill them. */
static GjStatus
reserve_parcels(GjRun *run, const GjSplitSide *side)
{
	GjRunExchange *x = run->exchange;
	GjWork	   *work = &run->work;
	uint64_t	n = side->most_rows;
	uint64_t	nbytes = 1;

	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
		nbytes += side->sent[c] ? gj_align(n * side->stage.types[c].width) + gj_align(n) : 0;
	for (uint32_t p = 0; p < GJ_PARCELS; p++)
	{
		GJ_TRY(gj_buffer_grow(work, &x->parcel[p].memory, 0, nbytes, 0));
		if (side->nrefs > 0)
			GJ_TRY(gj_buffer_grow(work, &x->parcel[p].heap, 0, side->most_heap + 8, 0));
	}
	for (uint32_t k = 0; k < x->nkeys && side->computes_keys; k++)
		GJ_TRY(gj_buffer_grow(work, &x->value[k], 0, n * sizeof(int64_t), 0));
	if (side->computes_keys)
		GJ_TRY(gj_buffer_grow(work, &x->null, 0, n, 0));
	GJ_TRY(work->ops->split_reserve(work->queue, (uint32_t) n, side->stage.ncolumns, x->nkeys));
	if (side->nrefs > 0)
		GJ_TRY(gj_buffer_grow(work, &x->heap_at, 0, (n + 1) * side->nrefs * sizeof(uint64_t), 0));
	return side->filter >= 0 ? gj_buffer_grow(work, &x->passed, 0, n * sizeof(uint32_t), 0) : GJ_OK;
}

void
gj_run_end_exchange(GjRun *run)
{
	free_buffers(&run->work, run->exchange);
	gj_relation_free(&run->work, &run->exchange->side[1].stage);
	gj_buffer_free(&run->work, &run->compact);
}

GjStatus
gj_run_reserve_exchange(GjRun *run, uint64_t nbytes)
{
	GjRunExchange *x = run->exchange;
	GjWork	   *work = &run->work;
	GjSplitSide *side = &x->side[0];
	uint64_t	hint = run->sources[0].nrows_hint;

	set_most(run, side, nbytes);
	/* a small source needs less, if it is as small as expected */
	limit_rows(run, side, hint > GJ_MAX_TUPLES / 4 ? hint : GJ_MAX_TUPLES / 4);
	/* that of others may be as large, and is of one piece where there are references */
	x->inbox_rows = side->nrefs > 0 ? side->most_rows : side->stage_rows;
	GJ_TRY(gj_relation_reserve_all(work, &side->stage, NULL, side->stage_rows, side->most_heap));
	GJ_TRY(gj_run_reserve_inbox(run));
	GJ_TRY(reserve_parcels(run, side));
	/* the steps take theirs when another device may have returned rows */
	return gj_lease_left(work->lease) >= 2 * gj_run_least_space(run) ? GJ_OK : GJ_OUT_OF_MEMORY;
}

/* ---- sending */

/* A view of the rows of a piece. */
static GjStatus
view_piece(GjRun *run, const GjSplitSide *side, const GjSplitPiece *piece, GjView *view)
{
	GjRunExchange *x = run->exchange;

	memset(view, 0, sizeof(*view));
	memcpy(x->columns + run->sources[side->source].first_column, piece->columns,
		   side->stage.ncolumns * sizeof(GjColumn));
	view->nrows = piece->nrows;
	view->rowid[side->source] = piece->rows;
	return run->work.ops->set_columns(run->work.queue, x->columns, run->program->ncolumns,
									  &view->columns);
}

/* Leaves the rows of the pieces that pass the filter; *n of them. */
static GjStatus
filter_pieces(GjRun *run, GjSplitSide *side, uint32_t *n)
{
	GjRunExchange *x = run->exchange;
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
		GJ_TRY(work->ops->select(work->queue, &view, (uint32_t) side->filter, rows, &piece->nrows));
		piece->rows = rows;
		*n += piece->nrows;
	}
	return GJ_OK;
}

/* Keys of the n rows of all pieces. */
static GjStatus
compute_keys(GjRun *run, GjSplitSide *side, uint32_t n, GjKeys *keys)
{
	GjRunExchange *x = run->exchange;
	GjWork	   *work = &run->work;
	uint32_t	first = 0;

	memset(keys, 0, sizeof(*keys));
	keys->nkeys = x->nkeys;
	keys->nrows = n;
	for (uint32_t k = 0; k < x->nkeys; k++)
	{
		GJ_TRY(gj_buffer_reserve(work, &x->value[k], (uint64_t) n * sizeof(int64_t)));
		keys->value[k] = x->value[k].memory;
	}
	GJ_TRY(gj_buffer_reserve(work, &x->null, n));
	keys->null = x->null.memory;
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
		GJ_TRY(work->ops->keys(work->queue, &view, 0, view.nrows, side->first_key, &of_piece));
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

/* Room in the parcel for n rows of the columns that are sent. */
static GjStatus
lay_parcel_out(GjRun *run, GjSplitSide *side, uint32_t n, GjParcel *parcel)
{
	const GjColumnType *types = side->stage.types;
	GjRunExchange *x = run->exchange;
	uint64_t	at = 0;

	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
		if (side->sent[c])
			at += gj_align((uint64_t) n * types[c].width) + (has_nulls(x, c) ? gj_align(n) : 0);
	GJ_TRY(gj_buffer_reserve(&run->work, &parcel->memory, at + 1));
	at = 0;
	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
	{
		GjColumn   *to = &parcel->columns[c];

		*to = (GjColumn) {.kind = types[c].kind,.width = types[c].width};
		if (!side->sent[c])
			continue;
		to->data = (uint8_t *) parcel->memory.memory + at;
		at += gj_align((uint64_t) n * types[c].width);
		if (!has_nulls(x, c))
			continue;
		to->nulls = (uint8_t *) parcel->memory.memory + at;
		at += gj_align(n);
	}
	return GJ_OK;
}

/* Rows of all pieces to the parcel. */
static GjStatus
split_pieces(GjRun *run, GjSplitSide *side, uint32_t n, GjParcel *parcel)
{
	GjRunExchange *x = run->exchange;
	GjSplit		split = {.nparts = x->plan.nparts,.null_part = x->plan.part,
		.npieces = x->npieces,.pieces = x->piece,.ncolumns = side->stage.ncolumns,
	.nkeys = x->nkeys};
	GjKeys		keys;

	memcpy(split.key, side->key, sizeof(split.key));
	if (side->computes_keys)
	{
		GJ_TRY(compute_keys(run, side, n, &keys));
		split.keys = &keys;
	}
	GJ_TRY(lay_parcel_out(run, side, n, parcel));
	return run->work.ops->split(run->work.queue, &split, parcel->columns, run->host->stop,
								run->host->arg, parcel->start);
}

/*
 * The bytes of the parcel's references, part by part, and within one column by column.
 * heap_at has n + 1 entries for each column of references, and all pieces have one heap.  *fits: false if they are more than
 * they may be; then the parcel is not filled.
 */
static GjStatus
fill_heap(GjRun *run, GjSplitSide *side, uint32_t n, GjParcel *parcel, bool *fits)
{
	GjRunExchange *x = run->exchange;
	const GjColumn *from = x->piece[0].columns;
	GjWork	   *work = &run->work;
	uint32_t	nparts = x->plan.nparts;
	uint64_t	stride = (uint64_t) n + 1;
	uint64_t	bound[GJ_SPLIT_PARTS + 1];
	uint64_t	total = 0;
	uint32_t	r = 0;

	memset(parcel->heap_start, 0, sizeof(parcel->heap_start));
	if (side->nrefs == 0)
		return GJ_OK;
	GJ_TRY(gj_buffer_reserve(work, &x->heap_at, stride * side->nrefs * sizeof(uint64_t)));
	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
	{
		uint64_t   *heap_at = (uint64_t *) x->heap_at.memory + r * stride;

		if (!side->sent[c] || parcel->columns[c].kind != GJ_REF)
			continue;
		r++;
		GJ_TRY(work->ops->ref_bytes(work->queue, parcel->columns[c].data, n, heap_at));
		for (uint32_t p = 0; p <= nparts; p++)
			GJ_TRY(work->ops->copy_out(work->queue, &bound[p], heap_at + parcel->start[p],
									   sizeof(uint64_t)));
		GJ_TRY(work->ops->sync(work->queue));
		for (uint32_t p = 0; p < nparts; p++)
			parcel->heap_start[p + 1] += bound[p + 1] - bound[p];
	}
	for (uint32_t p = 0; p <= nparts; p++)
		parcel->heap_start[p] = total += parcel->heap_start[p];
	*fits = total <= side->most_heap || n == 1;
	if (!*fits)
		return GJ_OK;
	GJ_TRY(gj_buffer_reserve(work, &parcel->heap, total + 8));
	for (uint32_t p = 0; p < nparts; p++)
	{
		uint8_t    *to = (uint8_t *) parcel->heap.memory + parcel->heap_start[p];
		uint32_t	first = parcel->start[p];
		uint64_t	base = 0;

		r = 0;
		for (uint32_t c = 0; c < side->stage.ncolumns; c++)
		{
			const uint64_t *heap_at = (uint64_t *) x->heap_at.memory + r * stride + first;
			uint64_t	end[2];

			if (!side->sent[c] || parcel->columns[c].kind != GJ_REF)
				continue;
			r++;
			GJ_TRY(work->ops->move_refs(work->queue, (uint64_t *) parcel->columns[c].data + first,
										parcel->start[p + 1] - first, from[c].heap,
										heap_at, to + base, base));
			if (r == side->nrefs)
				break;
			/* where the next column's start */
			GJ_TRY(work->ops->copy_out(work->queue, &end[0], heap_at, sizeof(uint64_t)));
			GJ_TRY(work->ops->copy_out(work->queue, &end[1],
									   heap_at + (parcel->start[p + 1] - first), sizeof(uint64_t)));
			GJ_TRY(work->ops->sync(work->queue));
			base += end[1] - end[0];
		}
	}
	return GJ_OK;
}

/* Sends the pieces.  *fits: false if their heap is too large for a parcel. */
static GjStatus
send_pieces(GjRun *run, GjSplitSide *side, bool *fits)
{
	GjRunExchange *x = run->exchange;
	GjWork	   *work = &run->work;
	uint32_t	n = x->nwaiting;
	GjParcel   *parcel;

	*fits = true;
	/* rows may be received meanwhile, and change what the queue's columns are */
	GJ_TRY(run->host->get_parcel(run->host->arg, x->parcel, GJ_PARCELS, &parcel));
	work->ops->phase(work->queue, GJ_PHASE_TRANSFER);
	if (side->filter >= 0)
		GJ_TRY(filter_pieces(run, side, &n));
	if (n == 0)
		return GJ_OK;
	GJ_TRY(split_pieces(run, side, n, parcel));
	GJ_TRY(fill_heap(run, side, n, parcel, fits));
	if (!*fits)
		return GJ_OK;
	/* it is read by others than this queue; split() has waited */
	if (side->nrefs > 0)
		GJ_TRY(work->ops->sync(work->queue));
	parcel->source = side->source;
	GJ_TRY(run->host->send_parcel(run->host->arg, parcel));
	return gj_run_take_own(run, parcel);
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
		for (uint32_t c = 0; c < side->stage.ncolumns; c++)
		{
			to[c] = columns[c];
			/* one that is not read may be missing */
			if (columns[c].data)
				to[c].data = (const uint8_t *) columns[c].data + (first + done) * columns[c].width;
			if (columns[c].nulls)
				to[c].nulls = columns[c].nulls + first + done;
		}
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

		n = nrows - first < most_rows(run, side) ? nrows - first : most_rows(run, side);
		while (!fits)
		{
			add_pieces(run->exchange, side, columns, first, (uint32_t) n);
			GJ_TRY(send_pieces(run, side, &fits));
			forget_pieces(run->exchange);
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
	GjRunExchange *x = run->exchange;
	uint32_t	staged = (uint32_t) side->stage.nrows;
	GjColumn	columns[GJ_MAX_COLUMNS];
	bool		fits;

	gj_relation_columns(&side->stage, 0, columns);
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

	if (run->exchange->nwaiting + staged > most_rows(run, side) || staged > side->stage_rows ||
		side->stage.heap_used + chunk->heap_used > side->most_heap)
		GJ_TRY(send_waiting(run, side));
	run->work.ops->phase(run->work.queue, GJ_PHASE_TRANSFER);
	return gj_run_append_chunk(run, &side->stage, chunk, kept);
}

/* Appends n rows of columns, from `first` on, to the stage. */
static GjStatus
stage_rows(GjRun *run, GjSplitSide *side, const GjColumn *columns, uint32_t first, uint32_t n)
{
	GjColumn	from[GJ_MAX_COLUMNS];

	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
	{
		from[c] = columns[c];
		if (columns[c].data)
			from[c].data = (const uint8_t *) columns[c].data + (uint64_t) first * columns[c].width;
		if (columns[c].nulls)
			from[c].nulls = columns[c].nulls + first;
	}
	run->work.ops->phase(run->work.queue, GJ_PHASE_TRANSFER);
	return gj_relation_append_rows(&run->work, &side->stage, from, n, 0, 0);
}

/*
 * Takes rows of columns, from `first` on: *n of them, at most `left`, which now wait; 0 if those that
 * wait must be sent first.
 */
static GjStatus
take_rows(GjRun *run, GjSplitSide *side, const GjColumn *columns, uint32_t first, uint32_t left,
		  uint32_t *n)
{
	GjRunExchange *x = run->exchange;
	uint32_t	most = most_rows(run, side);
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
gj_run_stage_rows(GjRun *run, uint32_t source, uint32_t nrows)
{
	GjSplitSide *side = gj_split_side(run, source);
	const GjColumn *described = run->columns + run->sources[source].first_column;
	GjColumn	columns[GJ_MAX_COLUMNS];
	uint32_t	n;

	/* rows that are received meanwhile are described in their place */
	memcpy(columns, described, side->stage.ncolumns * sizeof(GjColumn));
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

	return side && run->exchange->nwaiting >= GJ_MAX_TUPLES ? send_waiting(run, side) : GJ_OK;
}

GjStatus
gj_run_send_parcels(GjRun *run, uint32_t source)
{
	if (source > 0)
		GJ_TRY(gj_run_send_uses(run, source));
	return send_waiting(run, gj_split_side(run, source));
}
