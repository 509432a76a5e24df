/*
 * run_split.c
 *	  Rows that a run exchanges with the runs of other devices, so that each has all rows of
 *	  its part of the keys of one step, of the outer and of the inner source.
 *
 * Rows that come, in chunks or in resident fragments, are put together in a stage (those of
 * fragments with references are sent from where they lie).  When they are many, those that pass the filter of their source are split by a hash of their keys, and
 * their columns are written part by part into a parcel; the run of each part copies its own rows
 * out of it: inner rows to the end of its relation, outer ones to an inbox, which passes the
 * steps when it is full.  Columns that only the filter reads stay behind.
 *
 * Rows with a NULL key, which match nothing, stay with the run that they came to.
 *
 * Once rows have been returned, memory must not run out: before the first outer row comes, all
 * that the exchange of outer rows needs is reserved, the same on all devices, and what does not
 * fit that is sent in smaller parcels.
 */
#include "run_parcel.h"
#include "run.h"

#include <stdlib.h>
#include <string.h>

/* Rows of a parcel at most, and the part of the memory left that all this may take. */
#define GJ_PARCEL_ROWS		(4u * GJ_MAX_TUPLES)
#define GJ_EXCHANGE_SHARE	4

/* Bytes of its heap. */
#define GJ_PARCEL_HEAP		(UINT64_C(256) << 20)

/* One is filled while others are read. */
#define GJ_PARCELS			3

/* A source whose rows are exchanged. */
typedef struct GjSplitSide
{
	uint32_t	source;
	int32_t		filter;
	uint32_t	first_key;		/* expressions */
	GjRelation	stage;
	bool	   *sent;			/* its columns: somebody reads it behind the filter */
	uint32_t	nrefs;			/* of these: references */
	bool		has_refs;		/* any column is one */
	uint32_t	most_rows;		/* of a parcel; 0: not known yet */
	uint64_t	most_heap;		/* bytes of its heap, if the side has references */
} GjSplitSide;

typedef struct GjRunExchange
{
	GjExchangePlan plan;
	uint32_t	nkeys;
	GjSplitSide side[2];		/* outer, inner */
	GjRelation	inbox;			/* outer rows */
	GjColumn   *columns;		/* all of the program's, as set_columns takes them */
	GjColumn   *from;			/* columns of the source whose rows are being sent */
	GjParcel	parcel[GJ_PARCELS];
	GjBuffer	passed;			/* rows of the stage that pass the filter */
	GjBuffer	found;			/* in a piece */
	GjBuffer	value[GJ_MAX_KEYS];
	GjBuffer	null;
	GjBuffer	positions;		/* by part */
	GjBuffer	rows;			/* of the stage, by part, where there is a filter */
	GjBuffer	heap_at;
	uint64_t	rows_received;
	uint64_t	bytes_received;
} GjRunExchange;

static GjSplitSide *
side_of(const GjRun *run, uint32_t source)
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
	return side_of(run, source) != NULL;
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
	return gj_run_exchanges(run, source) && side_of(run, source)->has_refs;
}

bool
gj_run_has_outer_columns(const GjRun *run)
{
	const GjSplitSide *side = side_of(run, 0);

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

static GjStatus
open_side(GjRun *run, GjSplitSide *side, uint32_t source, int32_t filter, uint32_t first_key)
{
	const GjSource *src = &run->sources[source];

	side->source = source;
	side->filter = filter;
	side->first_key = first_key;
	side->sent = calloc(src->ncolumns + 1, sizeof(bool));
	if (!side->sent ||
		!gj_relation_init(&side->stage, run->types + src->first_column, src->ncolumns, 0))
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t c = 0; c < src->ncolumns; c++)
		side->sent[c] = run->late[src->first_column + c];
	return GJ_OK;
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
	x->from = calloc(run->program->ncolumns + 1, sizeof(GjColumn));
	x->columns = calloc(run->program->ncolumns + 1, sizeof(GjColumn));
	for (uint32_t p = 0; p < GJ_PARCELS; p++)
	{
		x->parcel[p].entry = run->entry;
		x->parcel[p].columns = calloc(run->program->ncolumns + 1, sizeof(GjColumn));
		if (!x->parcel[p].columns)
			return GJ_OUT_OF_HOST_MEMORY;
	}
	return x->columns && x->from &&
		gj_relation_init(&x->inbox, x->side[0].stage.types, x->side[0].stage.ncolumns, 0) ?
		GJ_OK : GJ_OUT_OF_HOST_MEMORY;
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
	gj_buffer_free(work, &x->found);
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
		gj_buffer_free(work, &x->value[k]);
	gj_buffer_free(work, &x->null);
	gj_buffer_free(work, &x->positions);
	gj_buffer_free(work, &x->rows);
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
	}
	gj_relation_free(work, &x->inbox);
	free_buffers(work, x);
	for (uint32_t p = 0; p < GJ_PARCELS; p++)
		free(x->parcel[p].columns);
	free(x->from);
	free(x->columns);
	free(x);
	run->exchange = NULL;
}

/* ---- memory */

/* Bytes that a row of the side takes on its way, without its heap. */
static uint64_t
row_bytes(const GjRunExchange *x, const GjSplitSide *side)
{
	uint64_t	a_row = x->nkeys * sizeof(int64_t) + 1 + 4 * sizeof(uint32_t) +
		side->nrefs * sizeof(uint64_t);

	/* stage, inbox and parcels */
	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
		a_row += (2 + GJ_PARCELS) * (side->stage.types[c].width + 1);
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

/* Finds out, once, how many rows a parcel of the side has. */
static uint32_t
most_rows(GjRun *run, GjSplitSide *side)
{
	if (side->most_rows == 0)
		set_most(run, side, gj_run_exchange_space(run));
	return side->most_rows;
}

/* Memory for all columns of the relation that are wanted (NULL: all), and its heap. */
static GjStatus
reserve_relation(GjWork *work, GjRelation *relation, const bool *wanted, uint64_t nrows,
				 uint64_t heap)
{
	for (uint32_t c = 0; c < relation->ncolumns; c++)
	{
		GjRelationColumn *column = &relation->columns[c];

		if (wanted && !wanted[c])
			continue;
		GJ_TRY(gj_buffer_grow(work, &column->data, 0, nrows * relation->types[c].width, 0));
		if (relation->types[c].nullable)
			GJ_TRY(gj_buffer_grow(work, &column->nulls, 0, nrows, 0));
	}
	return heap > 0 ? gj_buffer_grow(work, &relation->heap, 0, heap, 0) : GJ_OK;
}

/* The same for parcels and what is needed to fill them. */
static GjStatus
reserve_parcels(GjRun *run, const GjSplitSide *side)
{
	GjRunExchange *x = run->exchange;
	GjWork	   *work = &run->work;
	uint64_t	n = side->most_rows;
	uint64_t	piece = n < GJ_MAX_TUPLES ? n : GJ_MAX_TUPLES;
	uint64_t	nbytes = 1;

	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
		nbytes += side->sent[c] ? gj_align(n * side->stage.types[c].width) + gj_align(n) : 0;
	for (uint32_t p = 0; p < GJ_PARCELS; p++)
	{
		GJ_TRY(gj_buffer_grow(work, &x->parcel[p].memory, 0, nbytes, 0));
		if (side->nrefs > 0)
			GJ_TRY(gj_buffer_grow(work, &x->parcel[p].heap, 0, side->most_heap + 8, 0));
	}
	for (uint32_t k = 0; k < x->nkeys; k++)
		GJ_TRY(gj_buffer_grow(work, &x->value[k], 0, n * sizeof(int64_t), 0));
	GJ_TRY(gj_buffer_grow(work, &x->null, 0, n, 0));
	GJ_TRY(gj_buffer_grow(work, &x->positions, 0, n * sizeof(uint32_t), 0));
	GJ_TRY(work->ops->split_reserve(work->queue, (uint32_t) n));
	if (side->nrefs > 0)
		GJ_TRY(gj_buffer_grow(work, &x->heap_at, 0, (n + 1) * side->nrefs * sizeof(uint64_t), 0));
	if (side->filter < 0)
		return GJ_OK;
	GJ_TRY(gj_buffer_grow(work, &x->passed, 0, n * sizeof(uint32_t), 0));
	GJ_TRY(gj_buffer_grow(work, &x->found, 0, piece * sizeof(uint32_t), 0));
	return gj_buffer_grow(work, &x->rows, 0, n * sizeof(uint32_t), 0);
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

	set_most(run, side, nbytes);
	/* a small source needs less, if it is as small as expected */
	if (side->most_rows > GJ_MAX_TUPLES / 4 && side->most_rows > run->sources[0].nrows_hint)
		side->most_rows = run->sources[0].nrows_hint > GJ_MAX_TUPLES / 4 ?
			(uint32_t) run->sources[0].nrows_hint : GJ_MAX_TUPLES / 4;
	if (side->most_rows < run->sources[0].capacity)
		side->most_rows = run->sources[0].capacity;
	GJ_TRY(reserve_relation(work, &side->stage, NULL, side->most_rows, side->most_heap));
	GJ_TRY(reserve_relation(work, &x->inbox, side->sent, side->most_rows,
							side->nrefs > 0 ? side->most_heap : 0));
	GJ_TRY(reserve_parcels(run, side));
	/* the steps take theirs when another device may have returned rows */
	return gj_lease_left(work->lease) >= 2 * gj_run_least_space(run) ? GJ_OK : GJ_OUT_OF_MEMORY;
}

/* ---- sending */

/* A view of n rows of what is sent, from `first` on, of the rows at rowid, if that is not NULL. */
static GjStatus
view_rows(GjRun *run, GjSplitSide *side, uint64_t first, uint32_t n, const uint32_t *rowid,
		  GjView *view)
{
	GjRunExchange *x = run->exchange;
	GjColumn   *to = x->columns + run->sources[side->source].first_column;

	memset(view, 0, sizeof(*view));
	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
	{
		to[c] = x->from[c];
		to[c].data = (const uint8_t *) x->from[c].data + first * x->from[c].width;
		if (x->from[c].nulls)
			to[c].nulls = x->from[c].nulls + first;
	}
	view->nrows = n;
	view->rowid[side->source] = rowid;
	return run->work.ops->set_columns(run->work.queue, x->columns, run->program->ncolumns,
									  &view->columns);
}

/* The rows first .. first+*n-1 that pass the filter, counted from `first`. */
static GjStatus
filter_rows(GjRun *run, GjSplitSide *side, uint64_t first, uint32_t *n)
{
	GjRunExchange *x = run->exchange;
	GjWork	   *work = &run->work;
	uint32_t	all = *n;

	*n = 0;
	GJ_TRY(gj_buffer_reserve(work, &x->passed, (uint64_t) all * sizeof(uint32_t)));
	GJ_TRY(gj_buffer_reserve(work, &x->found, (uint64_t) (all < GJ_MAX_TUPLES ? all :
														   GJ_MAX_TUPLES) * sizeof(uint32_t)));
	for (uint32_t base = 0, piece; base < all; base += piece)
	{
		uint32_t	found;
		GjView		view;

		piece = all - base < GJ_MAX_TUPLES ? all - base : GJ_MAX_TUPLES;
		GJ_STOP_CHECK(run);
		GJ_TRY(view_rows(run, side, first + base, piece, NULL, &view));
		GJ_TRY(work->ops->select(work->queue, &view, (uint32_t) side->filter, x->found.memory,
								 &found));
		GJ_TRY(work->ops->pick(work->queue, (uint32_t *) x->passed.memory + *n, NULL, base,
							   x->found.memory, found));
		*n += found;
	}
	return GJ_OK;
}

/* Keys of n rows, from `first` on or those that passed the filter. */
static GjStatus
compute_keys(GjRun *run, GjSplitSide *side, uint64_t first, uint32_t n, GjKeys *keys)
{
	GjRunExchange *x = run->exchange;
	GjWork	   *work = &run->work;
	GjView		view;

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
	GJ_TRY(view_rows(run, side, first, n, side->filter >= 0 ? x->passed.memory : NULL, &view));
	for (uint32_t done = 0, piece; done < n; done += piece)
	{
		piece = n - done < GJ_MAX_TUPLES ? n - done : GJ_MAX_TUPLES;
		GJ_STOP_CHECK(run);
		GJ_TRY(work->ops->keys(work->queue, &view, done, piece, side->first_key, keys));
	}
	return GJ_OK;
}

/* Values and null flags of the columns that are sent: those of n rows of x->columns. */
static GjStatus
fill_columns(GjRun *run, GjSplitSide *side, const uint32_t *rows, uint32_t n, GjParcel *parcel)
{
	const GjColumn *from = run->exchange->columns + run->sources[side->source].first_column;
	GjWork	   *work = &run->work;
	uint64_t	at = 0;

	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
		if (side->sent[c])
			at += gj_align((uint64_t) n * from[c].width) + (from[c].nulls ? gj_align(n) : 0);
	GJ_TRY(gj_buffer_reserve(work, &parcel->memory, at + 1));
	at = 0;
	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
	{
		GjColumn   *to = &parcel->columns[c];

		*to = (GjColumn) {.kind = from[c].kind,.width = from[c].width};
		if (!side->sent[c])
			continue;
		to->data = (uint8_t *) parcel->memory.memory + at;
		at += gj_align((uint64_t) n * from[c].width);
		GJ_TRY(work->ops->pick_values(work->queue, (void *) to->data, from[c].data, from[c].width,
									  rows, n));
		if (!from[c].nulls)
			continue;
		to->nulls = (uint8_t *) parcel->memory.memory + at;
		at += gj_align(n);
		GJ_TRY(work->ops->pick_values(work->queue, (void *) to->nulls, from[c].nulls, 1, rows, n));
	}
	return GJ_OK;
}

/*
 * The bytes of the parcel's references, part by part, and within one column by column.
 * heap_at has n + 1 entries for each column of references.  *fits: false if they are more than
 * they may be; then the parcel is not filled.
 */
static GjStatus
fill_heap(GjRun *run, GjSplitSide *side, uint32_t n, GjParcel *parcel, bool *fits)
{
	const GjColumn *from = run->exchange->columns + run->sources[side->source].first_column;
	GjRunExchange *x = run->exchange;
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

/* Sends n rows of x->from.  *fits: false if their heap is too large for a parcel. */
static GjStatus
send_some(GjRun *run, GjSplitSide *side, uint64_t first, uint32_t n, bool *fits)
{
	GjRunExchange *x = run->exchange;
	GjWork	   *work = &run->work;
	const GjSplit split = {.nparts = x->plan.nparts,.null_part = x->plan.part};
	const uint32_t *rows;
	GjParcel   *parcel;
	GjKeys		keys;

	*fits = true;
	/* rows may be received meanwhile, and change what the queue's columns are */
	GJ_TRY(run->host->get_parcel(run->host->arg, x->parcel, GJ_PARCELS, &parcel));
	work->ops->phase(work->queue, GJ_PHASE_TRANSFER);
	if (side->filter >= 0)
		GJ_TRY(filter_rows(run, side, first, &n));
	if (n == 0)
		return GJ_OK;
	GJ_TRY(compute_keys(run, side, first, n, &keys));
	GJ_TRY(gj_buffer_reserve(work, &x->positions, (uint64_t) n * sizeof(uint32_t)));
	rows = x->positions.memory;
	GJ_TRY(work->ops->split(work->queue, &keys, &split, x->positions.memory, parcel->start));
	if (side->filter >= 0)
	{
		GJ_TRY(gj_buffer_reserve(work, &x->rows, (uint64_t) n * sizeof(uint32_t)));
		GJ_TRY(work->ops->pick(work->queue, x->rows.memory, x->passed.memory, 0,
							   x->positions.memory, n));
		rows = x->rows.memory;
	}
	GJ_TRY(fill_columns(run, side, rows, n, parcel));
	GJ_TRY(fill_heap(run, side, n, parcel, fits));
	if (!*fits)
		return GJ_OK;
	/* it is read by others than this queue */
	GJ_TRY(work->ops->sync(work->queue));
	parcel->source = side->source;
	return run->host->send_parcel(run->host->arg, parcel);
}

/* Sends nrows rows of x->from. */
static GjStatus
send_rows(GjRun *run, GjSplitSide *side, uint64_t nrows)
{
	for (uint64_t first = 0, n; first < nrows; first += n)
	{
		bool		fits;

		n = nrows - first < most_rows(run, side) ? nrows - first : most_rows(run, side);
		GJ_TRY(send_some(run, side, first, (uint32_t) n, &fits));
		while (!fits)
		{
			n /= 2;
			GJ_TRY(send_some(run, side, first, (uint32_t) n, &fits));
		}
	}
	return GJ_OK;
}

/* Sends what is in the stage. */
static GjStatus
send_stage(GjRun *run, GjSplitSide *side)
{
	uint64_t	nrows = side->stage.nrows;

	gj_relation_columns(&side->stage, 0, run->exchange->from);
	side->stage.nrows = side->stage.heap_used = 0;
	return send_rows(run, side, nrows);
}

GjStatus
gj_run_stage_chunk(GjRun *run, uint32_t source, const GjChunk *chunk, const GjKept *kept)
{
	GjSplitSide *side = side_of(run, source);

	if (side->stage.nrows + chunk->nrows > most_rows(run, side) ||
		side->stage.heap_used + chunk->heap_used > side->most_heap)
		GJ_TRY(send_stage(run, side));
	run->work.ops->phase(run->work.queue, GJ_PHASE_TRANSFER);
	return gj_run_append_chunk(run, &side->stage, chunk, kept);
}

GjStatus
gj_run_stage_rows(GjRun *run, uint32_t source, uint32_t nrows)
{
	GjSplitSide *side = side_of(run, source);
	GjRelation *stage = &side->stage;
	const GjColumn *described = run->columns + run->sources[source].first_column;
	GjColumn	columns[GJ_MAX_COLUMNS];
	uint32_t	n;

	/* rows that are received meanwhile are described in their place */
	memcpy(columns, described, stage->ncolumns * sizeof(GjColumn));
	if (gj_run_sends_in_place(run, source))
	{
		memcpy(run->exchange->from, columns, stage->ncolumns * sizeof(GjColumn));
		return send_rows(run, side, nrows);
	}
	for (uint32_t first = 0; first < nrows; first += n)
	{
		uint32_t	most = most_rows(run, side);

		if (stage->nrows >= most)
			GJ_TRY(send_stage(run, side));
		n = nrows - first < most - stage->nrows ? nrows - first : most - (uint32_t) stage->nrows;
		run->work.ops->phase(run->work.queue, GJ_PHASE_TRANSFER);
		GJ_TRY(gj_relation_append_rows(&run->work, stage, columns, n, 0, 0));
		for (uint32_t c = 0; c < stage->ncolumns; c++)
		{
			columns[c].data = (const uint8_t *) columns[c].data + (uint64_t) n * columns[c].width;
			if (columns[c].nulls)
				columns[c].nulls += n;
		}
	}
	return GJ_OK;
}

GjStatus
gj_run_send_parcels(GjRun *run, uint32_t source)
{
	if (source > 0)
		GJ_TRY(gj_run_send_uses(run, source));
	return send_stage(run, side_of(run, source));
}

/* ---- receiving */

/* The rows of the run's part, as columns of their own; returns their bytes without the heap's. */
static uint64_t
describe_part(const GjParcel *parcel, uint32_t part, uint32_t ncolumns, GjColumn *columns)
{
	uint32_t	first = parcel->start[part];
	uint64_t	n = parcel->start[part + 1] - first;
	uint64_t	nbytes = 0;

	for (uint32_t c = 0; c < ncolumns; c++)
	{
		columns[c] = parcel->columns[c];
		if (!columns[c].data)
			continue;
		columns[c].data = (const uint8_t *) columns[c].data + (uint64_t) first * columns[c].width;
		nbytes += n * columns[c].width;
		if (!columns[c].nulls)
			continue;
		columns[c].nulls += first;
		nbytes += n;
	}
	return nbytes;
}

static GjStatus
append_part(GjRun *run, const GjParcel *parcel, const GjColumn *columns, GjRelation *relation)
{
	uint32_t	part = run->exchange->plan.part;
	uint64_t	heap = parcel->heap_start[part];
	uint64_t	heap_size = parcel->heap_start[part + 1] - heap;
	uint64_t	base;

	GJ_TRY(gj_relation_append_heap(&run->work, relation,
								   heap_size > 0 ? (uint8_t *) parcel->heap.memory + heap : NULL,
								   heap_size, &base));
	return gj_relation_append_rows(&run->work, relation, columns,
								   parcel->start[part + 1] - parcel->start[part], base, heap_size);
}

GjStatus
gj_run_receive(GjRun *run, const GjParcel *parcel)
{
	GjRunExchange *x = run->exchange;
	GjSplitSide *side = side_of(run, parcel->source);
	GjRelation *relation = parcel->source == 0 ? &x->inbox : &run->relation[parcel->source];
	uint32_t	part = x->plan.part;
	GjColumn	columns[GJ_MAX_COLUMNS];
	uint64_t	nbytes = describe_part(parcel, part, side->stage.ncolumns, columns);
	uint32_t	n = parcel->start[part + 1] - parcel->start[part];
	uint64_t	heap = parcel->heap_start[part + 1] - parcel->heap_start[part];
	GjStatus	status;
	GjStatus	ended;

	GJ_STOP_CHECK(run);
	/* the inbox has room for a parcel */
	if (parcel->source == 0 &&
		(x->inbox.nrows + n > side->most_rows || x->inbox.heap_used + heap > side->most_heap))
		GJ_TRY(gj_run_open_parcels(run));
	run->work.ops->phase(run->work.queue, GJ_PHASE_TRANSFER);
	run->work.peer = parcel->entry == run->entry ? NULL : parcel->entry->device;
	status = append_part(run, parcel, columns, relation);
	run->work.peer = NULL;
	/* also after an error: the sender may do with it what it likes */
	ended = run->work.ops->sync(run->work.queue);
	GJ_TRY(status);
	GJ_TRY(ended);
	if (parcel->source == 0)
		x->rows_received += n;
	if (parcel->entry != run->entry)
		x->bytes_received += nbytes + heap;
	return GJ_OK;
}

GjStatus
gj_run_open_parcels(GjRun *run)
{
	GjRunExchange *x = run->exchange;
	uint32_t	nrows;

	if (!x || x->inbox.nrows == 0)
		return GJ_OK;
	/* it is filled again by this queue alone, behind what reads it now */
	nrows = (uint32_t) x->inbox.nrows;
	gj_relation_columns(&x->inbox, 0, run->columns + run->sources[0].first_column);
	x->inbox.nrows = x->inbox.heap_used = 0;
	return gj_run_outer_rows(run, nrows, true);
}

void
gj_run_received(const GjRun *run, uint64_t *rows, uint64_t *nbytes)
{
	*rows = run->exchange ? run->exchange->rows_received : 0;
	*nbytes = run->exchange ? run->exchange->bytes_received : 0;
}
