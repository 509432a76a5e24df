/*
 * limit.c
 *	  The first rows in the order of the sort keys, returned when the run is complete.
 *
 * Of the tuples of each view the device finds those that are among the first ones of that
 * view and come before the last row kept so far.  They alone are gathered, into a slot of
 * the run's own, and kept on the host: probe chunks are gone when the next one comes.  Where
 * the rows are in random order, few are found after the first views.
 *
 * Rows that take more memory than is reasonable (wide ones, or ties without end) go out, and
 * those found afterwards as they come: PostgreSQL sorts what it gets.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "device/order.h"
#include "daemon/base/base.h"

/* Bytes of kept rows from which on they are not kept any more. */
#define GJ_KEPT_BYTES		(UINT64_C(64) * 1024 * 1024)

/*
 * A row that is kept.  Behind its keys: a null flag of each output column, their values, and
 * the bytes that its references refer to, in the order of columns.
 */
typedef struct GjKeptRow
{
	size_t		nbytes;
	int64_t		key[];
} GjKeptRow;

typedef struct GjLimited
{
	uint32_t	nkeys;
	int32_t		operand[GJ_MAX_KEYS];
	GjSortLimit wanted;			/* its bound is the last row kept, once there are enough */
	GjSegment  *slot;			/* what rows are gathered into */
	size_t		values_size;	/* of a row: null flags and values */

	GjKeptRow **kept;			/* in their order */
	uint32_t	nkept;
	uint64_t	nbytes;
	bool		passing;		/* rows are not kept, but go out */

	GjBuffer	key_values;
	GjBuffer	key_nulls;
	GjBuffer	positions;
	GjBuffer	rowid[GJ_MAX_SOURCES];
} GjLimited;

/* What the run keeps; NULL: no tuples have come. */
static GjLimited *
limited_of(const GjRun *run)
{
	return run->output.state;
}

static GjStatus
start_limited(GjRun *run)
{
	const GjSortKey *sort_keys = gj_program_array(run->program, GjSortKey, sort_keys);
	GjLimited  *limited = calloc(1, sizeof(GjLimited));
	GjErrorText why = {""};
	GjStatus	status;

	if (!limited)
		return GJ_OUT_OF_HOST_MEMORY;
	run->output.state = limited;
	limited->nkeys = run->program->nsort_keys;
	limited->wanted.limit = run->program->limit;
	limited->wanted.ties = run->program->ties != 0;
	for (uint32_t k = 0; k < limited->nkeys; k++)
	{
		limited->operand[k] = (int32_t) sort_keys[k].index;
		limited->wanted.descending |= (uint32_t) sort_keys[k].descending << k;
	}
	for (uint32_t c = 0; c < run->output.ncolumns; c++)
		limited->values_size += 1 + run->output.types[c].width;
	status = gj_segment_get(run->entry, GJ_OUTPUT_SLOT_SIZE, &limited->slot, &why);
	return status == GJ_OK ? GJ_OK : gj_run_fail(run, status, why.text);
}

static void
free_kept(GjLimited *limited)
{
	for (uint32_t i = 0; i < limited->nkept; i++)
		free(limited->kept[i]);
	free(limited->kept);
	limited->kept = NULL;
	limited->nkept = 0;
}

static void
free_limited(GjRun *run)
{
	GjLimited  *limited = limited_of(run);
	GjWork	   *work = &run->work;

	if (!limited)
		return;
	free_kept(limited);
	if (limited->slot)
		gj_segment_put(limited->slot);
	gj_buffer_free(work, &limited->key_values);
	gj_buffer_free(work, &limited->key_nulls);
	gj_buffer_free(work, &limited->positions);
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
		gj_buffer_free(work, &limited->rowid[s]);
	free(limited);
	run->output.state = NULL;
}

/* ---- on the device */

/* Where the keys of a view go; the arrays are one behind the other. */
static GjStatus
describe_keys(GjRun *run, uint32_t nrows, GjKeys *keys)
{
	GjLimited  *limited = limited_of(run);

	memset(keys, 0, sizeof(*keys));
	keys->nkeys = limited->nkeys;
	keys->nrows = nrows;
	GJ_TRY(gj_buffer_reserve(&run->work, &limited->key_values,
							 (uint64_t) nrows * keys->nkeys * sizeof(int64_t)));
	GJ_TRY(gj_buffer_reserve(&run->work, &limited->key_nulls, nrows));
	for (uint32_t k = 0; k < keys->nkeys; k++)
		keys->value[k] = (int64_t *) limited->key_values.memory + (uint64_t) k * nrows;
	keys->null = limited->key_nulls.memory;
	return GJ_OK;
}

/* The tuples of a view that may be wanted, in their order, as a view of their own. */
static GjStatus
find_wanted(GjRun *run, const GjView *view, GjView *found)
{
	GjLimited  *limited = limited_of(run);
	GjWork	   *work = &run->work;
	GjKeys		keys;
	uint32_t	n;

	GJ_TRY(describe_keys(run, view->nrows, &keys));
	GJ_TRY(gj_buffer_reserve(work, &limited->positions,
							 (uint64_t) view->nrows * sizeof(uint32_t)));
	GJ_TRY(work->ops->columns->ordered_keys(work->queue, view, 0, view->nrows, limited->operand,
											&keys));
	GJ_TRY(work->ops->order->sort_limit(work->queue, &keys, &limited->wanted,
								 limited->positions.memory, &n));
	*found = *view;
	found->nrows = n;
	for (uint32_t s = 0; s < run->program->nsources && n > 0; s++)
	{
		found->rowid[s] = NULL;
		if (!(run->output.sources >> s & 1))
			continue;
		GJ_TRY(gj_buffer_reserve(work, &limited->rowid[s], (uint64_t) n * sizeof(uint32_t)));
		GJ_TRY(work->ops->columns->pick(work->queue, limited->rowid[s].memory, view->rowid[s], 0,
							   limited->positions.memory, n));
		found->rowid[s] = limited->rowid[s].memory;
	}
	return GJ_OK;
}

/* Copies the keys of a view's tuples to the host: all of the first one, then of the second. */
static GjStatus
read_keys(GjRun *run, const GjView *view, int64_t *to)
{
	GjLimited  *limited = limited_of(run);
	GjWork	   *work = &run->work;
	GjKeys		keys;

	GJ_TRY(describe_keys(run, view->nrows, &keys));
	GJ_TRY(work->ops->columns->ordered_keys(work->queue, view, 0, view->nrows, limited->operand,
											&keys));
	for (uint32_t k = 0; k < keys.nkeys; k++)
		GJ_TRY(work->ops->memory->copy_out(work->queue, to + (uint64_t) k * view->nrows,
										   keys.value[k],
								   (uint64_t) view->nrows * sizeof(int64_t)));
	return work->ops->queues->sync(work->queue);
}

/* ---- rows on the host */

static int
compare(const GjLimited *limited, const int64_t *a, const int64_t *b)
{
	for (uint32_t k = 0; k < limited->nkeys; k++)
	{
		int64_t		x = gj_order_value(a[k], limited->wanted.descending, k);
		int64_t		y = gj_order_value(b[k], limited->wanted.descending, k);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

/* Output column c of row i of a batch. */
static const uint8_t *
batch_value(const GjRun *run, const uint8_t *slot, uint32_t c, uint32_t i)
{
	return slot + run->output.places[c].data + (size_t) i * run->output.types[c].width;
}

static bool
batch_null(const GjRun *run, const uint8_t *slot, uint32_t c, uint32_t i)
{
	return gj_slot_has_nulls((uint8_t *) slot)[c] && slot[run->output.places[c].nulls + i];
}

static uint64_t
batch_ref(const GjRun *run, const uint8_t *slot, uint32_t c, uint32_t i)
{
	uint64_t	ref;

	if (run->output.types[c].kind != GJ_REF || batch_null(run, slot, c, i))
		return 0;
	memcpy(&ref, batch_value(run, slot, c, i), sizeof(ref));
	return ref;
}

/* Makes row i of a batch one that is kept; key k of it is key[k * stride]. */
static GjKeptRow *
make_row(const GjRun *run, const uint8_t *slot, uint32_t i, const int64_t *key, uint32_t stride)
{
	const GjLimited *limited = limited_of(run);
	size_t		nbytes = sizeof(GjKeptRow) + limited->nkeys * sizeof(int64_t) +
		limited->values_size;
	GjKeptRow  *row;
	uint8_t    *flag;
	uint8_t    *value;

	for (uint32_t c = 0; c < run->output.ncolumns; c++)
		nbytes += gj_ref_space(batch_ref(run, slot, c, i));
	row = malloc(nbytes);
	if (!row)
		return NULL;
	row->nbytes = nbytes;
	for (uint32_t k = 0; k < limited->nkeys; k++)
		row->key[k] = key[(uint64_t) k * stride];
	flag = (uint8_t *) (row->key + limited->nkeys);
	value = flag + run->output.ncolumns;
	for (uint32_t c = 0; c < run->output.ncolumns; c++)
	{
		flag[c] = batch_null(run, slot, c, i);
		memcpy(value, batch_value(run, slot, c, i), run->output.types[c].width);
		value += run->output.types[c].width;
	}
	for (uint32_t c = 0; c < run->output.ncolumns; c++)
	{
		uint64_t	ref = batch_ref(run, slot, c, i);

		if (gj_ref_space(ref) > 0)
			memcpy(value, slot + run->output.layout.heap + gj_ref_offset(ref), gj_ref_space(ref));
		value += gj_ref_space(ref);
	}
	return row;
}

/* Puts n rows in their order among those kept, and drops what is not wanted any more. */
static GjStatus
merge_rows(GjLimited *limited, GjKeptRow **rows, uint32_t n)
{
	uint32_t	limit = limited->wanted.limit;
	GjKeptRow **merged = malloc(((size_t) limited->nkept + n) * sizeof(GjKeptRow *));
	uint32_t	nmerged = 0;
	uint32_t	a = 0;
	uint32_t	b = 0;

	if (!merged)
		return GJ_OUT_OF_HOST_MEMORY;
	limited->nbytes = 0;
	while (a < limited->nkept || b < n)
	{
		bool		old = b == n || (a < limited->nkept &&
									 compare(limited, limited->kept[a]->key, rows[b]->key) <= 0);
		GjKeptRow  *row = old ? limited->kept[a++] : rows[b++];

		if (nmerged < limit ||
			(limited->wanted.ties && compare(limited, merged[limit - 1]->key, row->key) == 0))
		{
			merged[nmerged++] = row;
			limited->nbytes += row->nbytes;
		}
		else
			free(row);
	}
	free(limited->kept);
	limited->kept = merged;
	limited->nkept = nmerged;
	if (nmerged >= limit)
	{
		limited->wanted.bounded = true;
		memcpy(limited->wanted.bound, merged[limit - 1]->key, limited->nkeys * sizeof(int64_t));
	}
	return GJ_OK;
}

/* Gathers a view's tuples, which are in their order, and makes rows of them. */
static GjStatus
gather_rows(GjRun *run, const GjView *view, const int64_t *key, GjKeptRow **rows, uint32_t *nrows)
{
	GjWork	   *work = &run->work;
	GjBatchTarget target = {limited_of(run)->slot->memory, run->output.layout, run->output.places};

	for (uint32_t first = 0, n; first < view->nrows; first += n)
	{
		GJ_STOP_CHECK(run);
		GJ_TRY(work->ops->columns->gather(work->queue, view, first, view->nrows - first, &target,
										  &n));
		for (uint32_t i = 0; i < n; i++)
		{
			rows[*nrows] = make_row(run, target.slot, i, key + first + i, view->nrows);
			if (!rows[*nrows])
				return GJ_OUT_OF_HOST_MEMORY;
			(*nrows)++;
		}
	}
	return GJ_OK;
}

/* Keeps a view's tuples. */
static GjStatus
keep_rows(GjRun *run, const GjView *view)
{
	int64_t    *key = malloc((size_t) view->nrows * limited_of(run)->nkeys * sizeof(int64_t));
	GjKeptRow **rows = malloc((size_t) view->nrows * sizeof(GjKeptRow *));
	uint32_t	nrows = 0;
	GjStatus	status = GJ_OUT_OF_HOST_MEMORY;

	if (key && rows)
		status = read_keys(run, view, key);
	if (status == GJ_OK)
		status = gather_rows(run, view, key, rows, &nrows);
	if (status == GJ_OK)
		status = merge_rows(limited_of(run), rows, nrows);
	if (status != GJ_OK)
		for (uint32_t i = 0; i < nrows; i++)
			free(rows[i]);
	free(key);
	free(rows);
	return status;
}

/* ---- batches */

/* Bytes that the references of a kept row take. */
static uint64_t
row_space(const GjLimited *limited, const GjKeptRow *row)
{
	return row->nbytes - sizeof(GjKeptRow) - limited->nkeys * sizeof(int64_t) -
		limited->values_size;
}

/* Writes a kept row as row i of a slot; its bytes start at heap_at. */
static void
put_row(const GjRun *run, const GjKeptRow *row, uint8_t *slot, uint32_t i, uint64_t heap_at)
{
	const uint8_t *flag = (const uint8_t *) (row->key + limited_of(run)->nkeys);
	const uint8_t *value = flag + run->output.ncolumns;

	memcpy(slot + run->output.layout.heap + heap_at, flag + limited_of(run)->values_size,
		   row_space(limited_of(run), row));
	for (uint32_t c = 0; c < run->output.ncolumns; c++)
	{
		uint32_t	width = run->output.types[c].width;
		uint8_t    *to = slot + run->output.places[c].data + (size_t) i * width;

		memcpy(to, value, width);
		value += width;
		slot[run->output.places[c].nulls + i] = flag[c];
		gj_slot_has_nulls(slot)[c] |= flag[c];
		if (run->output.types[c].kind == GJ_REF && !flag[c])
		{
			uint64_t	ref;

			memcpy(&ref, to, sizeof(ref));
			if (gj_ref_space(ref) == 0)
				continue;
			heap_at += gj_ref_space(ref);
			ref = gj_ref_make(heap_at - gj_ref_space(ref), gj_ref_length(ref));
			memcpy(to, &ref, sizeof(ref));
		}
	}
}

/* Sends all rows that are kept. */
static GjStatus
send_kept(GjRun *run)
{
	GjLimited  *limited = limited_of(run);

	for (uint32_t first = 0, n; first < limited->nkept; first += n)
	{
		GjSlotHeader header = {0, 0};
		uint8_t    *slot;
		uint64_t	nbytes;

		GJ_TRY(gj_run_next_slot(run, &slot));
		memset(gj_slot_has_nulls(slot), 0, run->output.ncolumns);
		for (n = 0; first + n < limited->nkept && n < run->output.layout.capacity; n++)
		{
			const GjKeptRow *row = limited->kept[first + n];

			/* the first one fits, for it was gathered into such a slot */
			if (header.heap_used + row_space(limited, row) > run->output.layout.heap_size)
				break;
			put_row(run, row, slot, n, header.heap_used);
			header.heap_used += (uint32_t) row_space(limited, row);
		}
		header.nrows = n;
		memcpy(slot, &header, sizeof(header));
		nbytes = (uint64_t) n * limited->values_size + header.heap_used;
		GJ_TRY(gj_run_send(run, n, nbytes));
	}
	free_kept(limited);
	return GJ_OK;
}

static GjStatus
push(GjRun *run, const GjView *view)
{
	GjView		found;

	if (!limited_of(run))
		GJ_TRY(start_limited(run));
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_AGGREGATE);
	GJ_TRY(find_wanted(run, view, &found));
	if (found.nrows == 0)
		return GJ_OK;
	if (limited_of(run)->passing)
		return gj_run_output_rows(run, &found);
	GJ_TRY(keep_rows(run, &found));
	if (limited_of(run)->nbytes <= GJ_KEPT_BYTES)
		return GJ_OK;
	limited_of(run)->passing = true;
	return send_kept(run);
}

static GjStatus
finish(GjRun *run)
{
	GJ_TRY(run->work.ops->queues->sync(run->work.queue));
	if (limited_of(run))
		GJ_TRY(send_kept(run));
	return run->work.ops->queues->sync(run->work.queue);
}

static uint64_t
tuple_bytes(const GjRun *run)
{
	return run->program->nsort_keys * sizeof(int64_t) + 1 + 2 * sizeof(uint32_t);
}

const GjSinkOps gj_sink_first_rows = {
	.name = "first rows",
	.joins = true,.spreads = true,
	.returns_rows = true,.in_batches = true,
	.plan = gj_rows_plan,.tuple_bytes = tuple_bytes,.push = push,
	.finish = finish,.free = free_limited
};
