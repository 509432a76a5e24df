/*
 * block.c
 *	  The receiving side of an exchange: a run takes its part of the blocks that it has split
 *	  itself, and of those from the runs of other devices (source/split.c).
 *
 * Build rows are copied to the end of their relation.  Probe rows of the run's own blocks pass
 * the steps where they lie.  Those of other runs are copied, on the lane of loads, to the end of
 * a receive buffer, while earlier rows pass the steps.  When a receive buffer is full, the other
 * one is used.  Nobody waits for these copies.  When the mark behind a copy has passed, the
 * block's owner is told that it may fill the block again, and the rows may pass the steps
 * (gj_run_settle).  All received rows pass the steps together, queued after the next split.  So
 * the device is busy while the host passes parts on.
 *
 * Rows with references use one receive buffer and the lane of work, since their references change
 * as they are appended.
 */
#include "exchange.h"

#include <string.h>

_Static_assert(GJ_MARK_READ(GJ_RECEIVED) <= GJ_RING_MARKS, "marks of an exchange");

/* Where no split is to come, rows pass the steps when so many have been received. */
#define GJ_MANY_ROWS		GJ_MAX_TUPLES

/* ---- the run's own blocks */

/* The rows of the run's part, as columns of their own; returns their bytes without the heap's. */
static uint64_t
describe_part(const GjBlock *block, uint32_t part, uint32_t ncolumns, GjColumn *columns)
{
	uint64_t	a_row = 0;

	gj_columns_from(columns, block->columns, ncolumns, block->parts.start[part]);
	for (uint32_t c = 0; c < ncolumns; c++)
		a_row += columns[c].data ? columns[c].width + (columns[c].nulls != NULL) : 0;
	return a_row * gj_block_rows(block, part);
}

/* The rows of the run's part, which `columns` are made to describe. */
static GjRows
rows_of_part(GjRun *run, const GjBlock *block, GjRowRange *range, GjColumn *columns)
{
	uint32_t	part = run->intake->exchange->plan.part;
	uint64_t	heap = block->heap_start[part];
	uint64_t	heap_size = block->heap_start[part + 1] - heap;

	describe_part(block, part, run->sources[block->source].ncolumns, columns);
	*range = (GjRowRange) {0, gj_block_rows(block, part)};
	return (GjRows) {block->source, columns, range, 1,
					 heap_size > 0 ? (uint8_t *) block->heap.memory + heap : NULL, heap_size, true};
}

/* Takes probe rows of the run's part through the joins, at the latest with a flush. */
static GjStatus
join_part(GjRun *run, GjRows *rows)
{
	GJ_TRY(gj_exchanged_add(run, rows->columns, rows->ranges->end));
	return gj_source_rows_behind(run, rows);
}

GjStatus
gj_run_take_own(GjRun *run, GjBlock *block)
{
	GjColumn	columns[GJ_MAX_COLUMNS];
	GjRowRange	range;
	GjRows		rows = rows_of_part(run, block, &range, columns);

	if (range.end == 0)
		return GJ_OK;
	/* a build source's block is filled again by this queue alone, behind what reads it now */
	block->waits = block->source == 0;
	return block->waits ? GJ_OK : gj_source_rows_behind(run, &rows);
}

/* Takes the run's part of a block of its own through the joins, at the latest with a flush. */
static GjStatus
join_own(GjRun *run, GjBlock *block)
{
	GjColumn	columns[GJ_MAX_COLUMNS];
	GjRowRange	range;
	GjRows		rows = rows_of_part(run, block, &range, columns);
	uint32_t	part = run->intake->exchange->plan.part;

	for (uint32_t c = 0; c < run->sources[0].ncolumns; c++)
		if (columns[c].kind == GJ_REF && columns[c].data)
			columns[c].heap = (const uint8_t *) block->heap.memory + block->heap_start[part];
	block->waits = false;
	run->intake->exchange->rows_received += range.end;
	return join_part(run, &rows);
}

/* ---- receive buffers */

/* Takes all rows with references in the receive buffer through the steps. */
static GjStatus
join_in_order(GjRun *run)
{
	GjRelation *buffer = &run->intake->exchange->receive[0];
	GjColumn	columns[GJ_MAX_COLUMNS];
	GjRows		rows = GJ_ALL_ROWS(0, columns, buffer->nrows, true);

	if (buffer->nrows == 0)
		return GJ_OK;
	gj_relation_columns(buffer, 0, columns);
	/* it is filled again by this queue's work, behind what reads it now */
	buffer->nrows = buffer->heap_used = 0;
	return join_part(run, &rows);
}

/*
 * Takes rows without references that were received through the steps, at the latest with a flush:
 * those that are there, or all, for which the device then waits.
 */
static GjStatus
join_received(GjRun *run, bool all)
{
	GjRunExchange *x = run->intake->exchange;
	GjWork	   *work = &run->work;
	const GjRelation *buffer = &x->receive[x->filling];
	GjColumn	columns[GJ_MAX_COLUMNS];
	uint32_t	end = all ? x->nreceived : x->nread;

	/* some may pass before the host knows that they are there */
	if ((int32_t) (end - x->njoined) <= 0)
		return GJ_OK;
	/* the copies' own time is taken on their lane */
	work->ops->queues->phase(work->queue, GJ_PHASE_WAIT);
	GJ_TRY(work->ops->queues->after(work->queue, GJ_LANE_WORK,
									GJ_MARK_READ((end - 1) % GJ_RECEIVED)));
	while (x->njoined != end)
	{
		const GjReceivedPart *received = &x->received[x->njoined++ % GJ_RECEIVED];

		gj_relation_columns(buffer, received->first, columns);
		for (uint32_t c = 0; c < buffer->ncolumns; c++)
			if (!received->has_nulls[c])
				columns[c].nulls = NULL;
		GJ_TRY(join_part(run, &GJ_ALL_ROWS(0, columns, received->nrows, true)));
	}
	GJ_TRY(gj_fused_flush(run));
	return work->ops->queues->mark(work->queue, GJ_LANE_WORK, GJ_MARK_OPENED(x->filling));
}

/* Takes the run's own rows that wait through the steps. */
static GjStatus
join_all_own(GjRun *run)
{
	for (uint32_t p = 0; p < GJ_BLOCKS; p++)
		if (run->intake->exchange->block[p].waits)
			GJ_TRY(join_own(run, &run->intake->exchange->block[p]));
	return GJ_OK;
}

GjStatus
gj_run_join_own(GjRun *run)
{
	GJ_TRY(join_all_own(run));
	return gj_fused_flush(run);
}

GjStatus
gj_run_open_blocks(GjRun *run)
{
	if (!run->intake->exchange)
		return GJ_OK;
	GJ_TRY(join_all_own(run));
	GJ_TRY(run->intake->exchange->side[0].nrefs > 0 ? join_in_order(run) :
		   join_received(run, true));
	return gj_fused_flush(run);
}

GjStatus
gj_run_join_sent(GjRun *run)
{
	GJ_TRY(join_all_own(run));
	/* rows with references come in small blocks, and wait until they are many */
	if (run->intake->exchange->side[0].nrefs == 0)
		GJ_TRY(join_received(run, false));
	return gj_fused_flush(run);
}

bool
gj_run_has_sent(const GjRun *run)
{
	const GjRunExchange *x = run->intake->exchange;
	uint64_t	nrows = 0;

	for (uint32_t i = x->njoined; (int32_t) (x->nread - i) > 0; i++)
		nrows += x->received[i % GJ_RECEIVED].nrows;
	if (nrows >= GJ_MANY_ROWS)
		return true;
	for (uint32_t p = 0; p < GJ_BLOCKS; p++)
		if (x->block[p].waits)
			return true;
	return false;
}

/*
 * The receive buffer, with room for n rows from a multiple of GJ_SPLIT_ALIGN on, and a place for
 * what is said of them.
 */
static GjStatus
make_receive_room(GjRun *run, uint32_t n, GjRelation **buffer)
{
	GjRunExchange *x = run->intake->exchange;
	GjWork	   *work = &run->work;

	while (x->nreceived - x->nread == GJ_RECEIVED)
		GJ_TRY(gj_run_settle(run, true));
	if (x->nreceived - x->njoined == GJ_RECEIVED)
		GJ_TRY(join_received(run, true));
	*buffer = &x->receive[x->filling];
	(*buffer)->nrows += (uint64_t) -(*buffer)->nrows % GJ_SPLIT_ALIGN;
	/* one has room for a block */
	if ((*buffer)->nrows + n <= x->receive_rows)
		return GJ_OK;
	GJ_TRY(join_received(run, true));
	x->filling = 1 - x->filling;
	*buffer = &x->receive[x->filling];
	(*buffer)->nrows = 0;
	return work->ops->queues->after(work->queue, GJ_LANE_LOAD, GJ_MARK_OPENED(x->filling));
}

/* Queues copies of the probe rows without references in a block of another device. */
static GjStatus
copy_rows(GjRun *run, GjBlock *block, const GjColumn *columns)
{
	GjRunExchange *x = run->intake->exchange;
	GjWork	   *work = &run->work;
	GjDevice   *device = block->entry->device;
	uint32_t	n = gj_block_rows(block, x->plan.part);
	GjReceivedPart *received;
	GjRelation *buffer;

	GJ_TRY(make_receive_room(run, n, &buffer));
	received = &x->received[x->nreceived % GJ_RECEIVED];
	received->block = block;
	received->first = buffer->nrows;
	received->nrows = n;
	for (uint32_t c = 0; c < buffer->ncolumns; c++)
	{
		const GjColumn *from = &columns[c];
		uint8_t    *to = buffer->columns[c].data.memory;

		received->has_nulls[c] = from->data && from->nulls && buffer->types[c].nullable;
		if (from->data)
			GJ_TRY(work->ops->memory->load_peer(work->queue, to + buffer->nrows * from->width,
												device, from->data, (uint64_t) n * from->width));
		if (received->has_nulls[c])
			GJ_TRY(work->ops->memory->load_peer(work->queue,
										(uint8_t *) buffer->columns[c].nulls.memory + buffer->nrows,
										device, from->nulls, n));
	}
	GJ_TRY(work->ops->queues->mark(work->queue, GJ_LANE_LOAD,
								   GJ_MARK_READ(x->nreceived % GJ_RECEIVED)));
	x->nreceived++;
	buffer->nrows += n;
	return GJ_OK;
}

/* Takes build rows, or probe rows with references, from another device.  Waits. */
static GjStatus
receive_in_order(GjRun *run, const GjBlock *block)
{
	GjRunExchange *x = run->intake->exchange;
	GjRelation *buffer = &x->receive[0];
	uint32_t	part = x->plan.part;
	uint32_t	n = gj_block_rows(block, part);
	uint64_t	heap = block->heap_start[part + 1] - block->heap_start[part];
	GjColumn	columns[GJ_MAX_COLUMNS];
	GjRowRange	range;
	GjRows		rows = rows_of_part(run, block, &range, columns);
	GjStatus	status;

	/* the receive buffer has room for a block */
	if (block->source == 0 && (buffer->nrows + n > x->receive_rows ||
								buffer->heap_used + heap > x->side[0].most_heap))
		GJ_TRY(gj_run_open_blocks(run));
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_TRANSFER);
	run->work.peer = block->entry->device;
	status = block->source == 0 ? gj_append_rows(run, buffer, &rows) :
		gj_source_rows_behind(run, &rows);
	run->work.peer = NULL;
	/* the sender may do with it what it likes */
	return gj_run_wait_after(run, status);
}

GjStatus
gj_run_receive(GjRun *run, GjBlock *block)
{
	GjRunExchange *x = run->intake->exchange;
	uint32_t	part = x->plan.part;
	uint32_t	n = gj_block_rows(block, part);
	uint64_t	heap = block->heap_start[part + 1] - block->heap_start[part];
	bool		probe_side = block->source == 0;
	bool		in_order = !probe_side || x->side[0].nrefs > 0;
	GjColumn	columns[GJ_MAX_COLUMNS];
	uint64_t	nbytes = describe_part(block, part, run->sources[block->source].ncolumns, columns);
	GjStatus	status = run->host->stop(run->host->arg) ? GJ_CANCELLED : GJ_OK;

	if (status == GJ_OK)
		status = in_order ? receive_in_order(run, block) : copy_rows(run, block, columns);
	/* the sender may do with it what it likes */
	if (status != GJ_OK && !in_order)
		run->work.ops->queues->load_wait(run->work.queue);
	if (status != GJ_OK || in_order)
		x->ops->block_read(x->arg, block);
	GJ_TRY(status);
	x->rows_received += probe_side ? n : 0;
	run->arrival.received += nbytes + heap;
	/* who waits for the client in a join must not keep the blocks of others */
	while (gj_run_is_reading(run) && !gj_run_joins_ahead(run))
		GJ_TRY(gj_run_settle(run, true));
	return GJ_OK;
}

bool
gj_run_is_reading(const GjRun *run)
{
	const GjRunExchange *x = run ? run->intake->exchange : NULL;

	return x && x->nread != x->nreceived;
}

GjStatus
gj_run_settle(GjRun *run, bool wait)
{
	GjRunExchange *x = run->intake->exchange;
	bool		done;

	while (gj_run_is_reading(run))
	{
		uint32_t	i = x->nread % GJ_RECEIVED;

		GJ_TRY(run->work.ops->queues->passed(run->work.queue, GJ_MARK_READ(i), wait, &done));
		if (!done)
			break;
		x->ops->block_read(x->arg, x->received[i].block);
		x->nread++;
		wait = false;
	}
	return GJ_OK;
}

void
gj_run_stop_reading(GjRun *run)
{
	if (!gj_run_is_reading(run))
		return;
	run->work.ops->queues->load_wait(run->work.queue);
	run->intake->exchange->nread = run->intake->exchange->nreceived;
}

uint64_t
gj_run_exchanged_rows(const GjRun *run)
{
	return run->intake->exchange ? run->intake->exchange->rows_received : 0;
}
