/*
 * exchange.c
 *	  What a run keeps to exchange rows with the runs of other devices (source/split.c): opened,
 *	  closed, and the memory of it.
 *
 * Once rows have been returned, memory must not run out: before the first probe row comes, all
 * that the exchange of probe rows needs is reserved, the same on all devices, and what does not
 * fit that is sent in smaller blocks.
 */
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

/* Rows of a block at most, and the part of the memory left that all this may take. */
#define GJ_BLOCK_ROWS		(64u * GJ_MAX_TUPLES)
#define GJ_EXCHANGE_SHARE	4

/* A run sends so many blocks, or of 1 M rows each: some are joined while others are copied. */
#define GJ_BLOCKS_EACH		3
/* Shares of devices are never quite equal: a block has room for so much more. */
#define GJ_BLOCK_SPARE		16

/* Rows of a stage. */
#define GJ_STAGE_ROWS		(4u * GJ_MAX_TUPLES)

/* Bytes of a block's heap. */
#define GJ_BLOCK_HEAP		(UINT64_C(256) << 20)

GjSplitSide *
gj_split_side(const GjRun *run, uint32_t source)
{
	if (!run->intake->exchange)
		return NULL;
	if (source == 0)
		return &run->intake->exchange->side[0];
	return source == run->intake->exchange->side[1].source ? &run->intake->exchange->side[1] : NULL;
}

const GjBlock *
gj_run_blocks(const GjRun *run, uint32_t *n)
{
	*n = GJ_BLOCKS;
	return run->intake->exchange->block;
}

bool
gj_run_exchanges(const GjRun *run, uint32_t source)
{
	return gj_split_side(run, source) != NULL;
}

uint64_t
gj_run_identity(const GjRun *run)
{
	const GjRunExchange *x = run->intake->exchange;

	return x ? x->plan.program : gj_program_identity(run->program);
}

int32_t
gj_run_source_filter(const GjRun *run, uint32_t source)
{
	const GjSplitSide *side = gj_split_side(run, source);

	return side ? side->filter : run->sources[source].filter;
}

void
gj_run_exchanged_part(const GjRun *run, uint32_t source, uint32_t part[2])
{
	bool		exchanged = gj_run_exchanges(run, source);

	part[0] = exchanged ? run->intake->exchange->plan.part : 0;
	part[1] = exchanged ? run->intake->exchange->plan.nparts : 1;
}

bool
gj_run_sends_in_place(const GjRun *run, uint32_t source)
{
	return gj_run_exchanges(run, source) && gj_split_side(run, source)->has_refs;
}

bool
gj_run_has_probe_columns(const GjRun *run)
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
 * Notes the columns that are the side's keys, if all of them are columns.  These need not be
 * computed before rows are split.
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
	find_keys(run, side, run->intake->exchange->nkeys);
	side->sent = calloc(src->ncolumns + 1, sizeof(bool));
	side->stage_nulls = calloc(src->ncolumns + 1, sizeof(bool));
	if (!side->sent || !side->stage_nulls ||
		!gj_relation_init(&side->stage, run->types + src->first_column, src->ncolumns, 0))
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t c = 0; c < src->ncolumns; c++)
		side->sent[c] = run->late[src->first_column + c];
	return GJ_OK;
}

/* Host memory of what is not a side's. */
static GjStatus
open_blocks(GjRun *run)
{
	GjRunExchange *x = run->intake->exchange;
	const GjRelation *probe_side = &x->side[0].stage;
	uint32_t	most = probe_side->ncolumns > x->side[1].stage.ncolumns ? probe_side->ncolumns :
		x->side[1].stage.ncolumns;
	bool		opened;

	x->columns = calloc(run->program->ncolumns + 1, sizeof(GjColumn));
	x->piece_columns = calloc((size_t) GJ_SPLIT_PIECES * most + 1, sizeof(GjColumn));
	opened = x->columns && x->piece_columns;
	for (uint32_t p = 0; p < GJ_BLOCKS; p++)
	{
		x->block[p].entry = run->entry;
		x->block[p].columns = calloc(most + 1, sizeof(GjColumn));
		opened &= x->block[p].columns != NULL;
	}
	for (uint32_t i = 0; i < 2; i++)
		opened &= gj_relation_init(&x->receive[i], probe_side->types, probe_side->ncolumns, 0);
	for (uint32_t i = 0; i < GJ_RECEIVED; i++)
	{
		x->received[i].has_nulls = calloc(probe_side->ncolumns + 1, sizeof(bool));
		opened &= x->received[i].has_nulls != NULL;
	}
	return opened ? GJ_OK : GJ_OUT_OF_HOST_MEMORY;
}

GjStatus
gj_run_open_exchange(GjRun *run, const GjExchangePlan *plan, const GjExchangeOps *ops,
					 void *arg)
{
	GjRunExchange *x = calloc(1, sizeof(GjRunExchange));
	const GjRunStep *rs = &run->steps[plan->step];
	uint32_t	source = rs->step->source;

	if (!x)
		return GJ_OUT_OF_HOST_MEMORY;
	run->intake->exchange = x;
	x->plan = *plan;
	x->ops = ops;
	x->arg = arg;
	x->nkeys = rs->step->nkeys;
	GJ_TRY(open_side(run, &x->side[0], 0, plan->probe_filter, rs->step->probe_keys));
	GJ_TRY(open_side(run, &x->side[1], source, plan->build_filter, rs->step->build_keys));
	/* what only the build reads */
	for (uint32_t k = 0; k < rs->nbuild_operands; k++)
		send_operand(run, &x->side[1], rs->build_operand[k]);
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t c = 0; c < x->side[i].stage.ncolumns; c++)
			if (x->side[i].stage.types[c].kind == GJ_REF)
			{
				x->side[i].nrefs += x->side[i].sent[c];
				x->side[i].has_refs = true;
			}
	run->intake->to[0] = run->intake->to[source] = &gj_to_exchange;
	return open_blocks(run);
}

static void
free_buffers(GjWork *work, GjRunExchange *x)
{
	for (uint32_t p = 0; p < GJ_BLOCKS; p++)
	{
		gj_buffer_free(work, &x->block[p].memory);
		gj_buffer_free(work, &x->block[p].heap);
	}
	gj_buffer_free(work, &x->passed);
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
		gj_buffer_free(work, &x->keys.value[k]);
	gj_buffer_free(work, &x->keys.null);
	gj_buffer_free(work, &x->heap_at);
}

void
gj_run_free_exchange(GjRun *run)
{
	GjRunExchange *x = run->intake->exchange;
	GjWork	   *work = &run->work;

	if (!x)
		return;
	for (uint32_t i = 0; i < 2; i++)
	{
		gj_relation_free(work, &x->side[i].stage);
		free(x->side[i].sent);
		free(x->side[i].stage_nulls);
		gj_relation_free(work, &x->receive[i]);
	}
	for (uint32_t i = 0; i < GJ_RECEIVED; i++)
		free(x->received[i].has_nulls);
	free_buffers(work, x);
	work->lease->spare = NULL;
	gj_relation_free(work, &x->stay);
	for (uint32_t p = 0; p < GJ_BLOCKS; p++)
		free(x->block[p].columns);
	free(x->piece_columns);
	free(x->columns);
	free(x);
	run->intake->exchange = NULL;
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
	/* stage, receive buffers and blocks */
	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
		a_row += (side->sent[c] ? 3 + GJ_BLOCKS : 1) * (side->stage.types[c].width + 1);
	return a_row;
}

static uint32_t
rows_in(const GjRunExchange *x, const GjSplitSide *side, uint64_t nbytes)
{
	uint64_t	n = nbytes / row_bytes(x, side);

	return n > GJ_BLOCK_ROWS ? GJ_BLOCK_ROWS : n < GJ_MIN_TUPLES ? GJ_MIN_TUPLES : (uint32_t) n;
}

uint64_t
gj_run_exchange_space(GjRun *run)
{
	return gj_lease_left(run->work.lease) / GJ_EXCHANGE_SHARE;
}

/*
 * What a block of the side has at most, in so many bytes for all of them and what else rows need on
 * their way.  Of references half is for heaps: the stage's, the receive buffer's and the blocks',
 * at least that of a chunk each.
 */
static void
set_most(const GjRun *run, GjSplitSide *side, uint64_t nbytes)
{
	uint64_t	heap = 0;

	if (side->has_refs)
	{
		heap = nbytes / 2 / (2 + GJ_BLOCKS) & ~UINT64_C(7);
		if (heap > GJ_BLOCK_HEAP)
			heap = GJ_BLOCK_HEAP;
		if (heap < run->intake->layout[side->source].heap_size)
			heap = run->intake->layout[side->source].heap_size;
		nbytes /= 2;
	}
	side->most_heap = heap;
	side->most_rows = rows_in(run->intake->exchange, side, nbytes);
}

/* Makes a block have no more rows than that, but those of a chunk. */
static void
limit_rows(const GjRun *run, GjSplitSide *side, uint64_t n)
{
	if (side->most_rows > n)
		side->most_rows = (uint32_t) n;
	if (side->most_rows < run->sources[side->source].capacity)
		side->most_rows = run->sources[side->source].capacity;
	side->stage_rows = side->most_rows < GJ_STAGE_ROWS ? side->most_rows : GJ_STAGE_ROWS;
}

uint32_t
gj_split_most_rows(GjRun *run, GjSplitSide *side)
{
	if (side->most_rows == 0)
	{
		set_most(run, side, gj_run_exchange_space(run));
		limit_rows(run, side, GJ_BLOCK_ROWS);
	}
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

/* Room for probe rows that are received, receive_rows at a time. */
static GjStatus
reserve_receive_buffers(GjRun *run)
{
	GjRunExchange *x = run->intake->exchange;
	const GjSplitSide *side = &x->side[0];

	for (uint32_t i = 0; i < (side->nrefs > 0 ? 1u : 2u); i++)
	{
		GJ_TRY(reserve_relation(&run->work, &x->receive[i], side->sent, x->receive_rows,
								side->nrefs > 0 ? side->most_heap : 0));
		/* from here on another lane may write it */
		GJ_TRY(run->work.ops->queues->mark(run->work.queue, GJ_LANE_WORK, GJ_MARK_OPENED(i)));
	}
	return run->work.ops->queues->after(run->work.queue, GJ_LANE_LOAD, GJ_MARK_OPENED(x->filling));
}

/* Memory for blocks, and for what is needed to fill them. */
static GjStatus
reserve_blocks(GjRun *run, const GjSplitSide *side)
{
	GjRunExchange *x = run->intake->exchange;
	GjWork	   *work = &run->work;
	uint64_t	n = side->most_rows;
	uint64_t	room = gj_split_room(n, x->plan.nparts);
	uint64_t	nbytes = 1;

	for (uint32_t c = 0; c < side->stage.ncolumns; c++)
		nbytes += side->sent[c] ? gj_align(room * side->stage.types[c].width) + gj_align(room) : 0;
	for (uint32_t p = 0; p < GJ_BLOCKS; p++)
	{
		GJ_TRY(gj_buffer_grow(work, &x->block[p].memory, 0, nbytes, 0));
		if (side->nrefs > 0)
			GJ_TRY(gj_buffer_grow(work, &x->block[p].heap, 0, side->most_heap + 8, 0));
	}
	for (uint32_t k = 0; k < x->nkeys && side->computes_keys; k++)
		GJ_TRY(gj_buffer_grow(work, &x->keys.value[k], 0, n * sizeof(int64_t), 0));
	if (side->computes_keys)
		GJ_TRY(gj_buffer_grow(work, &x->keys.null, 0, n, 0));
	GJ_TRY(work->ops->exchange->split_reserve(work->queue, (uint32_t) n, side->stage.ncolumns,
											  x->nkeys));
	if (side->nrefs > 0)
		GJ_TRY(gj_buffer_grow(work, &x->heap_at, 0,
							  gj_heap_places(x, n) * side->nrefs * sizeof(uint64_t), 0));
	return side->filter >= 0 ? gj_buffer_grow(work, &x->passed, 0, n * sizeof(uint32_t), 0) : GJ_OK;
}

void
gj_run_end_exchange(GjRun *run)
{
	free_buffers(&run->work, run->intake->exchange);
	gj_relation_free(&run->work, &run->intake->exchange->side[1].stage);
	gj_buffer_free(&run->work, &run->intake->compact);
}

/* Rows of a block that a source of so many rows, as is expected, has a use for. */
static uint64_t
rows_wanted(const GjRunExchange *x, uint64_t expected)
{
	uint64_t	n = expected / (x->plan.nparts * GJ_BLOCKS_EACH);

	n += n / GJ_BLOCK_SPARE;
	if (n < GJ_MAX_TUPLES)
		n = expected < GJ_MAX_TUPLES ? expected : GJ_MAX_TUPLES;
	return n > GJ_MAX_TUPLES / 4 ? n : GJ_MAX_TUPLES / 4;
}

GjStatus
gj_run_reserve_exchange(GjRun *run, uint64_t nbytes)
{
	GjRunExchange *x = run->intake->exchange;
	GjWork	   *work = &run->work;
	GjSplitSide *side = &x->side[0];

	/* nothing is built any more */
	work->ops->queues->phase(work->queue, GJ_PHASE_WAIT);
	set_most(run, side, nbytes);
	limit_rows(run, side, rows_wanted(x, run->sources[0].nrows_hint));
	/* one takes what all others send while a block is filled; a block of one of them at least */
	x->receive_rows = side->most_rows;
	GJ_TRY(reserve_relation(work, &side->stage, NULL, side->stage_rows, side->most_heap));
	GJ_TRY(reserve_receive_buffers(run));
	GJ_TRY(reserve_blocks(run, side));
	if (gj_lease_left(work->lease) < 2 * gj_run_least_space(run))
		return GJ_OUT_OF_MEMORY;
	/* the steps' too: another device may have returned rows when they begin */
	return gj_run_reserve_steps(run);
}
