/*
 * run_receive.c
 *	  Rows that a run gets of those that are exchanged: its part of parcels, its own and those of the
 *	  runs of other devices (run_split.c).
 *
 * Inner rows are copied to the end of their relation.  Outer rows of its own parcels pass the steps
 * where they lie.  Those of others are copied, on a lane of their own, to one of two inboxes, while
 * what the other one has passes the steps.  All that has come by then passes together, behind the next
 * split, so that the device works while the host is told of parts and hands them over.  Rows with
 * references take one inbox and the lane of the steps: where their bytes lie is found out there.
 */
#include "run.h"
#include "run_parcel.h"

#include <string.h>

_Static_assert(GJ_MARK_SPLIT < GJ_MAX_MARKS, "marks of an exchange");

/* Where no split is to come, an inbox is opened when it has so many rows. */
#define GJ_MANY_ROWS		GJ_MAX_TUPLES

/* ---- the run's own parcels */

/* The rows of the run's part, as columns of their own; returns their bytes without the heap's. */
static uint64_t
describe_part(const GjParcel *parcel, uint32_t part, uint32_t ncolumns, GjColumn *columns)
{
	uint32_t	first = parcel->parts.start[part];
	uint64_t	n = gj_parcel_rows(parcel, part);
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
								   gj_parcel_rows(parcel, part), base, heap_size);
}

GjStatus
gj_run_take_own(GjRun *run, GjParcel *parcel)
{
	uint32_t	part = run->exchange->plan.part;
	uint32_t	n = gj_parcel_rows(parcel, part);
	GjColumn	columns[GJ_MAX_COLUMNS];

	if (n == 0)
		return GJ_OK;
	if (parcel->source == 0)
	{
		parcel->waits = true;
		return GJ_OK;
	}
	/* the parcel is filled again by this queue alone, behind what reads it now */
	describe_part(parcel, part, run->sources[parcel->source].ncolumns, columns);
	return append_part(run, parcel, columns, &run->relation[parcel->source]);
}

/* Takes the run's part of a parcel of its own through the steps, at the latest with a flush. */
static GjStatus
join_own(GjRun *run, GjParcel *parcel)
{
	GjRunExchange *x = run->exchange;
	uint32_t	part = x->plan.part;
	uint32_t	n = gj_parcel_rows(parcel, part);
	uint32_t	ncolumns = run->sources[0].ncolumns;
	GjColumn   *columns = run->columns + run->sources[0].first_column;

	describe_part(parcel, part, ncolumns, columns);
	for (uint32_t c = 0; c < ncolumns; c++)
		if (columns[c].kind == GJ_REF && columns[c].data)
			columns[c].heap = (const uint8_t *) parcel->heap.memory + parcel->heap_start[part];
	parcel->waits = false;
	x->rows_received += n;
	return gj_run_outer_rows(run, n, false);
}

/* ---- inboxes */

/* The same of what is in the inbox. */
static GjStatus
join_inbox(GjRun *run)
{
	GjRunExchange *x = run->exchange;
	GjWork	   *work = &run->work;
	GjInbox    *inbox = &x->inbox[x->filling];
	GjColumn   *columns = run->columns + run->sources[0].first_column;
	uint32_t	nrows = (uint32_t) inbox->rows.nrows;
	bool		beside = x->side[0].nrefs == 0;

	gj_relation_columns(&inbox->rows, 0, columns);
	for (uint32_t c = 0; c < inbox->rows.ncolumns && beside; c++)
		if (!inbox->has_nulls[c])
			columns[c].nulls = NULL;
	inbox->rows.nrows = inbox->rows.heap_used = 0;
	memset(inbox->has_nulls, 0, inbox->rows.ncolumns * sizeof(bool));
	if (beside)
	{
		/* the copies' own time is taken on their lane */
		work->ops->phase(work->queue, GJ_PHASE_WAIT);
		GJ_TRY(work->ops->after(work->queue, GJ_LANE_WORK, GJ_MARK_COPIED(x->filling)));
	}
	return gj_run_outer_rows(run, nrows, false);
}

/* Takes all that waits through the steps; rows of others are then copied to the other inbox. */
static GjStatus
join_waiting(GjRun *run, bool with_inbox)
{
	GjRunExchange *x = run->exchange;
	GjWork	   *work = &run->work;
	uint32_t	i = x->filling;
	bool		opened = with_inbox && x->inbox[i].rows.nrows > 0;

	if (opened)
		GJ_TRY(join_inbox(run));
	for (uint32_t p = 0; p < GJ_PARCELS; p++)
		if (x->parcel[p].waits)
			GJ_TRY(join_own(run, &x->parcel[p]));
	GJ_TRY(gj_fused_flush(run));
	/* with references it is filled again by this queue's work, behind what reads it now */
	if (!opened || x->side[0].nrefs > 0)
		return GJ_OK;
	x->filling = 1 - i;
	return work->ops->mark(work->queue, GJ_LANE_WORK, GJ_MARK_OPENED(i));
}

GjStatus
gj_run_open_parcels(GjRun *run)
{
	return run->exchange ? join_waiting(run, true) : GJ_OK;
}

GjStatus
gj_run_join_sent(GjRun *run)
{
	/* rows with references come in small parcels, and wait until they are many */
	return join_waiting(run, run->exchange->side[0].nrefs == 0);
}

bool
gj_run_has_sent(const GjRun *run)
{
	const GjRunExchange *x = run->exchange;
	bool		any = x->side[0].nrefs == 0 && x->inbox[x->filling].rows.nrows >= GJ_MANY_ROWS;

	for (uint32_t p = 0; p < GJ_PARCELS; p++)
		any |= x->parcel[p].waits;
	return any;
}

/* Null flags (NULL: none is set) of n rows of column c to the end of the inbox. */
static GjStatus
copy_nulls(GjRun *run, GjInbox *inbox, uint32_t c, GjDevice *device, const uint8_t *nulls,
		   uint32_t n)
{
	GjWork	   *work = &run->work;
	uint8_t    *to = inbox->rows.columns[c].nulls.memory;
	uint64_t	nrows = inbox->rows.nrows;

	if (nulls && !inbox->has_nulls[c])
	{
		GJ_TRY(work->ops->load_fill(work->queue, to, 0, nrows));
		inbox->has_nulls[c] = true;
	}
	if (nulls)
		return work->ops->load_peer(work->queue, to + nrows, device, nulls, n);
	return inbox->has_nulls[c] ? work->ops->load_fill(work->queue, to + nrows, 0, n) : GJ_OK;
}

/* Queues copies of rows of columns, which lie on another device, to the end of the inbox. */
static GjStatus
copy_rows(GjRun *run, GjDevice *device, const GjColumn *columns, uint32_t first, uint32_t n)
{
	GjRunExchange *x = run->exchange;
	GjWork	   *work = &run->work;
	GjInbox    *inbox = &x->inbox[x->filling];

	if (inbox->rows.nrows == 0)
		GJ_TRY(work->ops->after(work->queue, GJ_LANE_LOAD, GJ_MARK_OPENED(x->filling)));
	for (uint32_t c = 0; c < inbox->rows.ncolumns; c++)
	{
		const GjColumn *from = &columns[c];
		uint8_t    *to = inbox->rows.columns[c].data.memory;

		if (!from->data)
			continue;
		GJ_TRY(work->ops->load_peer(work->queue, to + inbox->rows.nrows * from->width, device,
									(const uint8_t *) from->data + (uint64_t) first * from->width,
									(uint64_t) n * from->width));
		GJ_TRY(copy_nulls(run, inbox, c, device,
						  from->nulls && inbox->rows.types[c].nullable ? from->nulls + first : NULL,
						  n));
	}
	inbox->rows.nrows += n;
	return work->ops->mark(work->queue, GJ_LANE_LOAD, GJ_MARK_COPIED(x->filling));
}

/* Takes outer rows without references from another device.  Waits until they have been copied. */
static GjStatus
receive_rows(GjRun *run, GjDevice *device, const GjColumn *columns, uint32_t nrows)
{
	GjRunExchange *x = run->exchange;
	uint32_t	last = x->filling;
	bool		copied;

	for (uint32_t first = 0, n; first < nrows; first += n)
	{
		GjInbox    *inbox = &x->inbox[x->filling];

		n = x->inbox_rows - (uint32_t) inbox->rows.nrows;
		if (n > nrows - first)
			n = nrows - first;
		last = x->filling;
		GJ_TRY(copy_rows(run, device, columns, first, n));
		if (inbox->rows.nrows == x->inbox_rows)
			GJ_TRY(join_waiting(run, true));
	}
	return run->work.ops->passed(run->work.queue, GJ_MARK_COPIED(last), true, &copied);
}

/* Takes inner rows, or outer ones with references, from another device.  Waits. */
static GjStatus
receive_in_order(GjRun *run, const GjParcel *parcel, const GjColumn *columns)
{
	GjRunExchange *x = run->exchange;
	GjRelation *inbox = &x->inbox[0].rows;
	uint32_t	part = x->plan.part;
	uint32_t	n = gj_parcel_rows(parcel, part);
	uint64_t	heap = parcel->heap_start[part + 1] - parcel->heap_start[part];
	GjStatus	status;
	GjStatus	ended;

	/* the inbox has room for a parcel */
	if (parcel->source == 0 && (inbox->nrows + n > x->inbox_rows ||
								inbox->heap_used + heap > x->side[0].most_heap))
		GJ_TRY(join_waiting(run, true));
	run->work.ops->phase(run->work.queue, GJ_PHASE_TRANSFER);
	run->work.peer = parcel->entry->device;
	status = append_part(run, parcel, columns,
						 parcel->source == 0 ? inbox : &run->relation[parcel->source]);
	run->work.peer = NULL;
	/* also after an error: the sender may do with it what it likes */
	ended = run->work.ops->sync(run->work.queue);
	return status == GJ_OK ? ended : status;
}

GjStatus
gj_run_receive(GjRun *run, const GjParcel *parcel)
{
	GjRunExchange *x = run->exchange;
	uint32_t	part = x->plan.part;
	uint32_t	n = gj_parcel_rows(parcel, part);
	GjColumn	columns[GJ_MAX_COLUMNS];
	uint64_t	nbytes = describe_part(parcel, part, run->sources[parcel->source].ncolumns, columns);
	GjStatus	status;

	GJ_STOP_CHECK(run);
	if (parcel->source > 0 || x->side[0].nrefs > 0)
		GJ_TRY(receive_in_order(run, parcel, columns));
	else
	{
		status = receive_rows(run, parcel->entry->device, columns, n);
		/* the sender may do with it what it likes */
		if (status != GJ_OK)
			run->work.ops->load_wait(run->work.queue);
		GJ_TRY(status);
	}
	if (parcel->source == 0)
		x->rows_received += n;
	x->bytes_received += nbytes + parcel->heap_start[part + 1] - parcel->heap_start[part];
	return GJ_OK;
}

void
gj_run_received(const GjRun *run, uint64_t *rows, uint64_t *nbytes)
{
	*rows = run->exchange ? run->exchange->rows_received : 0;
	*nbytes = run->exchange ? run->exchange->bytes_received : 0;
}
