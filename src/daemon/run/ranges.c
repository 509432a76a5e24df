/*
 * ranges.c
 *	  A sort-merge join of several runs, one on each device, each of which joins a range of the keys.
 *
 * Rows of both sides are gathered where they come.  When the probe source has ended, each run sorts
 * its rows of either side by the first value that the join compares, and shows them to the others,
 * with the values of one row in so many: samples.  These say which rows each run is to have
 * (gj_ranges_cut): of all rows of both sides about as many each, in the order of values.  A run
 * copies its probe rows from all others, and then all build rows that these can match, also beyond
 * its own range.  So each probe row is on one device, and its matches are there, too: any join
 * type, band or residual condition works.  Equal values of the probe side may be cut: then the
 * build rows that they match are on several devices.
 *
 * Flags of build rows are numbered as the sorted rows of all runs, one behind the other.  The run
 * in whose range a build row is has it in any case, in front of the others, and sends it at the
 * end.
 */
#include "ranges.h"

#include <stdlib.h>
#include <string.h>

/* Build rows of a run: `first` is a number among the sorted rows of all, `at` among its own. */
typedef struct GjRangeSlice
{
	uint64_t	first;
	uint64_t	nrows;
	uint64_t	at;
} GjRangeSlice;

typedef struct GjRunRanges
{
	GjRanges   *ranges;
	uint32_t	number;			/* of the run */
	GjRelation	gathered[2];	/* sorted rows that others copy, once the run has its own */
	GjBuffer	value;			/* while a side is sorted */
	GjBuffer	null;
	GjBuffer	sorted;
	GjBuffer	positions;
	GjBuffer	sample;			/* rows of samples, then their values */
	uint64_t	total;			/* build rows of all runs */
	uint64_t	nown;			/* that are in the run's range: the first ones that it has */
	uint32_t	nslices;
	GjRangeSlice slice[3 * GJ_MAX_RUN_DEVICES];
} GjRunRanges;

/* ---- open and close */

GjStatus
gj_run_join_ranges(GjRun *run, GjRanges *ranges, uint32_t number)
{
	GjRunRanges *x = calloc(1, sizeof(GjRunRanges));

	if (!x)
		return GJ_OUT_OF_HOST_MEMORY;
	x->ranges = ranges;
	x->number = number;
	run->ranges = x;
	return GJ_OK;
}

void
gj_ranges_close(GjRun *run)
{
	if (!run->ranges)
		return;
	gj_run_drop_sorted(run);
	free(run->ranges);
	run->ranges = NULL;
}

static const GjStep *
step_of(const GjRun *run)
{
	return run->steps[run->ranges->ranges->step].step;
}

static uint32_t
source_of(const GjRun *run, uint32_t side)
{
	return side == GJ_RANGE_PROBE ? 0 : step_of(run)->source;
}

bool
gj_run_is_ranged(const GjRun *run, uint32_t i)
{
	return run->ranges && run->ranges->ranges->step == i;
}

/* ---- sorted rows */

/* What a side is sorted by; `high`: the other end of what a probe row looks for. */
static int32_t
operand_of(const GjStep *step, uint32_t side, bool high)
{
	if (step->nkeys > 0)
		return (int32_t) (side == GJ_RANGE_PROBE ? step->probe_keys : step->build_keys);
	return side == GJ_RANGE_BUILD ? step->range_key : high ? step->range_high : step->range_low;
}

/* The values of an operand for all rows of a side's relation: x->value. */
static GjStatus
compute_values(GjRun *run, uint32_t side, int32_t operand)
{
	GjRunRanges *x = run->ranges;
	GjWork	   *work = &run->work;
	uint32_t	source = source_of(run, side);
	uint32_t	n = (uint32_t) run->relation[source].nrows;
	GjKeys		keys = {.nkeys = 1,.nrows = n};
	GjView		view = {.nrows = n};

	GJ_TRY(gj_buffer_reserve(work, &x->value, (uint64_t) n * sizeof(int64_t)));
	GJ_TRY(gj_buffer_reserve(work, &x->null, n));
	keys.value[0] = x->value.memory;
	keys.null = x->null.memory;
	gj_relation_columns(&run->relation[source], 0, run->columns + run->sources[source].first_column);
	GJ_TRY(gj_run_set_columns(run, &view.columns));
	for (uint32_t first = 0, some; first < n; first += some)
	{
		some = n - first < GJ_MAX_TUPLES ? n - first : GJ_MAX_TUPLES;
		GJ_STOP_CHECK(run);
		GJ_TRY(work->ops->columns->ordered_keys(work->queue, &view, first, some, &operand, &keys));
	}
	return GJ_OK;
}

/* The order of these: x->positions; and the values in it: x->sorted. */
static GjStatus
sort_values(GjRun *run, uint32_t n)
{
	GjRunRanges *x = run->ranges;
	GjWork	   *work = &run->work;
	const GjKeys keys = {.nkeys = 1,.nrows = n,.value = {x->value.memory},.null = x->null.memory};
	uint64_t	space = (uint64_t) n * GJ_SORT_SPACE;
	GjStatus	status;

	GJ_TRY(gj_buffer_reserve(work, &x->positions, (uint64_t) n * sizeof(uint32_t)));
	GJ_TRY(gj_buffer_reserve(work, &x->sorted, (uint64_t) n * sizeof(int64_t)));
	if (!gj_lease_take(work->lease, space))
		return GJ_OUT_OF_MEMORY;
	status = work->ops->order->sort_rows(work->queue, &keys, 0, run->host->stop, run->host->arg,
										 x->positions.memory);
	gj_lease_give(work->lease, space);
	GJ_TRY(status);
	return work->ops->columns->pick_values(work->queue, x->sorted.memory, x->value.memory,
										   x->positions.memory, n);
}

/* Copies each `every`-th of some values to the host, n <= GJ_RANGE_SAMPLES of them.  Waits. */
static GjStatus
pick_samples(GjRun *run, const int64_t *values, uint32_t every, uint32_t n, int64_t *samples)
{
	GjBuffer   *buffer = &run->ranges->sample;
	GjWork	   *work = &run->work;
	uint32_t	rows[GJ_RANGE_SAMPLES];
	uint8_t    *picked;

	for (uint32_t i = 0; i < n; i++)
		rows[i] = i * every;
	GJ_TRY(gj_buffer_reserve(work, buffer, gj_align(sizeof(rows)) +
							 GJ_RANGE_SAMPLES * sizeof(int64_t)));
	picked = (uint8_t *) buffer->memory + gj_align(sizeof(rows));
	GJ_TRY(work->ops->memory->copy_in(work->queue, buffer->memory, rows, n * sizeof(uint32_t)));
	GJ_TRY(work->ops->columns->pick_values(work->queue, (int64_t *) picked, values,
										   buffer->memory, n));
	GJ_TRY(work->ops->memory->copy_out(work->queue, samples, picked, n * sizeof(int64_t)));
	return work->ops->queues->sync(work->queue);
}

/* How far apart samples of n rows are, and (*nsamples) how many these are. */
static uint32_t
space_samples(uint32_t n, uint32_t *nsamples)
{
	uint32_t	every = n / GJ_RANGE_SAMPLES + 1;

	*nsamples = (n + every - 1) / every;
	return every;
}

/* Copies the samples of sorted values to the host.  Waits. */
static GjStatus
take_samples(GjRun *run, GjRangeRows *rows)
{
	rows->every = space_samples(rows->nrows, &rows->nsamples);
	rows->samples = calloc(rows->nsamples, sizeof(int64_t));
	if (!rows->samples)
		return GJ_OUT_OF_HOST_MEMORY;
	return pick_samples(run, run->ranges->sorted.memory, rows->every, rows->nsamples,
						rows->samples);
}

/* Puts the rows of a side's relation into their order. */
static GjStatus
order_rows(GjRun *run, GjRelation *relation)
{
	GjColumn	columns[GJ_MAX_COLUMNS];

	gj_relation_columns(relation, 0, columns);
	for (uint32_t c = 0; c < relation->ncolumns; c++)
	{
		GJ_STOP_CHECK(run);
		if (columns[c].data)
			GJ_TRY(gj_relation_keep(&run->work, relation, c, &columns[c],
									run->ranges->positions.memory, (uint32_t) relation->nrows,
									run->host->stop, run->host->arg));
	}
	return GJ_OK;
}

GjStatus
gj_run_sort_range(GjRun *run, bool build_side)
{
	GjRunRanges *x = run->ranges;
	uint32_t	side = build_side ? GJ_RANGE_BUILD : GJ_RANGE_PROBE;
	GjRangeRows *rows = &x->ranges->rows[side][x->number];
	GjRelation *relation = &run->relation[source_of(run, side)];

	GJ_TRY(gj_run_fail_points(run));
	/* that many rows are more than one call takes */
	if (relation->nrows > INT32_MAX)
		return GJ_OUT_OF_MEMORY;
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_BUILD);
	rows->device = run->entry->device;
	rows->columns = calloc(relation->ncolumns + 1, sizeof(GjColumn));
	if (!rows->columns)
		return GJ_OUT_OF_HOST_MEMORY;
	if (relation->nrows == 0)
		return GJ_OK;
	GJ_TRY(compute_values(run, side, operand_of(step_of(run), side, false)));
	GJ_TRY(sort_values(run, (uint32_t) relation->nrows));
	rows->nrows = (uint32_t) relation->nrows;
	GJ_TRY(take_samples(run, rows));
	GJ_TRY(order_rows(run, relation));
	gj_relation_columns(relation, 0, rows->columns);
	/* others read them from here on */
	return run->work.ops->queues->sync(run->work.queue);
}

/* ---- the run's rows */

/* Appends rows that a run has sorted; that one may be on another device. */
static GjStatus
append(GjRun *run, GjRelation *to, const GjRangeRows *rows, uint32_t first, uint32_t end)
{
	GjColumn	columns[GJ_MAX_COLUMNS];
	bool		own = rows->device == run->entry->device;
	GjStatus	status;

	if (first == end)
		return GJ_OK;
	GJ_STOP_CHECK(run);
	gj_columns_from(columns, rows->columns, to->ncolumns, first);
	run->work.peer = own ? NULL : rows->device;
	status = gj_relation_append_rows(&run->work, to, columns, end - first, 0, 0);
	run->work.peer = NULL;
	for (uint32_t c = 0; c < to->ncolumns && !own; c++)
		run->arrival.received += (uint64_t) (end - first) * (columns[c].width + (columns[c].nulls != NULL));
	return status;
}

/* Starts with room for so many rows, and keeps what was sorted for the others. */
static GjStatus
start_relation(GjRun *run, uint32_t side, uint64_t nrows)
{
	GjRelation *relation = &run->relation[source_of(run, side)];

	run->ranges->gathered[side] = *relation;
	if (!gj_relation_init(relation, run->ranges->gathered[side].types,
						  run->ranges->gathered[side].ncolumns, 0))
		return GJ_OUT_OF_HOST_MEMORY;
	/* that many rows are more than one call takes */
	if (nrows > INT32_MAX)
		return GJ_OUT_OF_MEMORY;
	return gj_relation_reserve(&run->work, relation, (uint32_t) nrows);
}

/* Probe rows that the run is to have. */
static uint64_t
count_probe_rows(const GjRunRanges *x)
{
	uint64_t	nrows = 0;

	for (uint32_t s = 0; s < x->ranges->nruns; s++)
	{
		const GjRangeRows *rows = &x->ranges->rows[GJ_RANGE_PROBE][s];

		nrows += rows->cut[x->number + 1] - rows->cut[x->number];
	}
	return nrows;
}

/* The run's probe rows, from all runs; *low: nothing less is looked for. */
static GjStatus
take_probe_rows(GjRun *run, int64_t *low)
{
	GjRunRanges *x = run->ranges;
	uint32_t	n = x->ranges->nruns;

	*low = INT64_MAX;
	GJ_TRY(start_relation(run, GJ_RANGE_PROBE, count_probe_rows(x)));
	for (uint32_t i = 0; i < n; i++)
	{
		const GjRangeRows *rows = &x->ranges->rows[GJ_RANGE_PROBE][(x->number + i) % n];
		uint32_t	first = rows->cut[x->number];
		uint32_t	end = rows->cut[x->number + 1];

		GJ_TRY(append(run, &run->relation[0], rows, first, end));
		if (first < end && rows->samples[first / rows->every] < *low)
			*low = rows->samples[first / rows->every];
	}
	return GJ_OK;
}

/* *high: the greatest value that the run's probe rows look for.  Waits. */
static GjStatus
find_high(GjRun *run, int64_t *high)
{
	GjRunRanges *x = run->ranges;
	uint32_t	n = (uint32_t) run->relation[0].nrows;
	GjWork	   *work = &run->work;
	const int64_t *values;
	GjSortLimit wanted = {.limit = 1,.descending = 1,.ties = true,.bounded = true};
	GjKeys		keys = {.nkeys = 1,.nrows = n};
	uint64_t	space = (uint64_t) n * GJ_SORT_SPACE;
	int64_t		samples[GJ_RANGE_SAMPLES];
	uint32_t	nsamples;
	uint32_t	every = space_samples(n, &nsamples);
	uint32_t	nfound;
	GjStatus	status;

	*high = INT64_MIN;
	if (n == 0)
		return GJ_OK;
	GJ_TRY(compute_values(run, GJ_RANGE_PROBE, operand_of(step_of(run), GJ_RANGE_PROBE, true)));
	values = x->value.memory;
	/* few rows are above the greatest of the samples: only these are sorted */
	GJ_TRY(pick_samples(run, values, every, nsamples, samples));
	wanted.bound[0] = samples[0];
	for (uint32_t i = 1; i < nsamples; i++)
		if (samples[i] > wanted.bound[0])
			wanted.bound[0] = samples[i];
	GJ_TRY(gj_buffer_reserve(work, &x->positions, (uint64_t) n * sizeof(uint32_t)));
	keys.value[0] = x->value.memory;
	if (!gj_lease_take(work->lease, space))
		return GJ_OUT_OF_MEMORY;
	status = work->ops->order->sort_limit(work->queue, &keys, &wanted, x->positions.memory,
										  &nfound);
	gj_lease_give(work->lease, space);
	GJ_TRY(status);
	GJ_TRY(work->ops->columns->pick_values(work->queue, x->sample.memory, values,
										   x->positions.memory, 1));
	GJ_TRY(work->ops->memory->copy_out(work->queue, high, x->sample.memory, sizeof(*high)));
	return work->ops->queues->sync(work->queue);
}

/* Appends build rows first .. end-1 of a run, whose first row has number `number` among all. */
static GjStatus
take_slice(GjRun *run, const GjRangeRows *rows, uint64_t number, uint32_t first, uint32_t end)
{
	GjRunRanges *x = run->ranges;
	GjRelation *relation = &run->relation[source_of(run, GJ_RANGE_BUILD)];

	if (first >= end)
		return GJ_OK;
	x->slice[x->nslices++] = (GjRangeSlice) {number + first, end - first, relation->nrows};
	return append(run, relation, rows, first, end);
}

/* The run's build rows: those of its range, if any may come out by themselves, and the reach. */
static GjStatus
take_build_rows(GjRun *run, int64_t low, int64_t high)
{
	GjRunRanges *x = run->ranges;
	bool		makes_rows = gj_step_makes_rows(step_of(run));
	uint64_t	number[GJ_MAX_RUN_DEVICES] = {0};

	GJ_TRY(start_relation(run, GJ_RANGE_BUILD, 0));
	for (uint32_t s = 0; s < x->ranges->nruns; s++)
	{
		number[s] = x->total;
		x->total += x->ranges->rows[GJ_RANGE_BUILD][s].nrows;
	}
	for (uint32_t s = 0; s < x->ranges->nruns && makes_rows; s++)
	{
		const GjRangeRows *rows = &x->ranges->rows[GJ_RANGE_BUILD][s];

		GJ_TRY(take_slice(run, rows, number[s], rows->cut[x->number], rows->cut[x->number + 1]));
	}
	x->nown = run->relation[source_of(run, GJ_RANGE_BUILD)].nrows;
	for (uint32_t s = 0; s < x->ranges->nruns; s++)
	{
		const GjRangeRows *rows = &x->ranges->rows[GJ_RANGE_BUILD][s];
		uint32_t	own = makes_rows ? rows->cut[x->number] : rows->nrows;
		uint32_t	own_end = makes_rows ? rows->cut[x->number + 1] : rows->nrows;
		uint32_t	first,
					end;

		gj_ranges_reach(rows, low, high, &first, &end);
		GJ_TRY(take_slice(run, rows, number[s], first, end < own ? end : own));
		GJ_TRY(take_slice(run, rows, number[s], first > own_end ? first : own_end, end));
	}
	return GJ_OK;
}

GjStatus
gj_run_take_range(GjRun *run)
{
	int64_t		low;
	int64_t		high;

	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_TRANSFER);
	GJ_TRY(take_probe_rows(run, &low));
	GJ_TRY(find_high(run, &high));
	GJ_TRY(take_build_rows(run, low, high));
	/* also what others have may go then */
	return run->work.ops->queues->sync(run->work.queue);
}

void
gj_run_drop_sorted(GjRun *run)
{
	GjRunRanges *x = run->ranges;
	GjWork	   *work = &run->work;

	for (uint32_t i = 0; i < 2; i++)
		gj_relation_free(work, &x->gathered[i]);
	gj_buffer_free(work, &x->value);
	gj_buffer_free(work, &x->null);
	gj_buffer_free(work, &x->sorted);
	gj_buffer_free(work, &x->positions);
	gj_buffer_free(work, &x->sample);
}

GjStatus
gj_run_probe_range(GjRun *run)
{
	const GjRelation *relation = &run->relation[0];

	if (run->complete || relation->nrows == 0)
		return GJ_OK;
	gj_relation_columns(relation, 0, run->columns + run->sources[0].first_column);
	return gj_run_probe_rows(run, (uint32_t) relation->nrows, true);
}

/* ---- flags of build rows */

uint64_t
gj_ranges_nflags(const GjRun *run)
{
	return run->ranges->total;
}

uint64_t
gj_ranges_nown(const GjRun *run)
{
	return run->ranges->nown;
}

GjStatus
gj_ranges_copy_flags(GjRun *run, uint32_t i, uint64_t first, uint64_t n, uint8_t *flags, bool out)
{
	const GjRunRanges *x = run->ranges;
	uint8_t    *own = run->steps[i].unmatched.row_matched.memory;
	GjWork	   *work = &run->work;

	GJ_STOP_CHECK(run);
	if (out)
		memset(flags, GJ_ROW_UNMATCHED, n);
	for (uint32_t s = 0; s < x->nslices && own; s++)
	{
		const GjRangeSlice *slice = &x->slice[s];
		uint64_t	from = slice->first > first ? slice->first : first;
		uint64_t	end = slice->first + slice->nrows < first + n ? slice->first + slice->nrows :
			first + n;
		uint8_t    *at = own + slice->at + (from - slice->first);

		if (from >= end)
			continue;
		GJ_TRY(out ? work->ops->memory->copy_out(work->queue, flags + (from - first), at,
												 end - from) :
			   work->ops->memory->copy_in(work->queue, at, flags + (from - first), end - from));
	}
	return work->ops->queues->sync(work->queue);
}
