/*
 * intersect.c
 *	  One pair of sets: both sides are complete; sort, then what GjSetSpec says.
 */
#include "internal.h"

#include <string.h>

/* Sorting needs a second array and some more while it works. */
static GjStatus
sort_side(GjRun *run, uint32_t source, uint64_t *n)
{
	GjWork	   *work = &run->work;
	GjRelation *relation = &run->relation[source];
	uint32_t	width = relation->types[0].width;
	uint64_t	extra = relation->nrows * width * 2 + 4096;
	GjStatus	status;

	*n = 0;
	if (relation->nrows == 0)
		return GJ_OK;
	GJ_STOP_CHECK(run);
	if (!gj_lease_take(work->lease, extra))
		return GJ_OUT_OF_MEMORY;
	status = work->ops->sets->sort_unique(work->queue, relation->columns[0].data.memory, width,
									relation->nrows, run->host->stop, run->host->arg, n);
	gj_lease_give(work->lease, extra);
	return status;
}

/* Device memory that an algorithm takes besides the sets and the result. */
static uint64_t
pair_space(const GjSetPair *pair)
{
	uint64_t	small = pair->na < pair->nb ? pair->na : pair->nb;

	switch (gj_set_pair_algorithm(pair))
	{
		case GJ_SETS_HASH:
			/* up to four slots a value, of eight bytes, and four bits of a filter each */
			return small * (4 * sizeof(uint64_t) + 2) + 8192;
		case GJ_SETS_BITMAP:
			/* up to 256 bits a value, and 2^23 */
			return small * 32 + (1 << 20);
		default:
			return 0;
	}
}

/* Runs the pair; without the memory that another algorithm needs, by merging. */
static GjStatus
run_algorithm(GjRun *run, GjSetPair *pair, void *result, uint64_t *n)
{
	GjWork	   *work = &run->work;
	uint64_t	space = pair_space(pair);
	GjStatus	status;

	if (space > 0 && !gj_lease_take(work->lease, space))
	{
		pair->algorithm = GJ_SETS_MERGE_PATH;
		space = 0;
	}
	status = work->ops->sets->set_pair(work->queue, pair, run->host->stop, run->host->arg, result,
									   n);
	gj_lease_give(work->lease, space);
	return status;
}

/* Sends `n` values that lie in device memory. */
static GjStatus
output_values(GjRun *run, const uint8_t *values, uint64_t n)
{
	GjWork	   *work = &run->work;
	uint32_t	width = run->output.types[0].width;
	uint32_t	capacity = run->output.layout.capacity;

	for (uint64_t first = 0; first < n; first += capacity)
	{
		GjSlotHeader header = {.nrows = (uint32_t) (n - first < capacity ? n - first : capacity)};
		uint64_t	nbytes = (uint64_t) header.nrows * width;
		uint8_t    *slot;

		GJ_TRY(gj_run_next_slot(run, &slot));
		memcpy(slot, &header, sizeof(header));
		gj_slot_has_nulls(slot)[0] = 0;
		GJ_TRY(work->ops->memory->copy_out(work->queue, slot + run->output.places[0].data,
								   values + first * width, nbytes));
		GJ_TRY(work->ops->queues->sync(work->queue));
		GJ_TRY(gj_run_send(run, header.nrows, nbytes));
	}
	return GJ_OK;
}

static GjStatus
run_pair(GjRun *run, GjBuffer *result)
{
	GjWork	   *work = &run->work;
	const GjSetSpec *spec = gj_program_array(run->program, GjSetSpec, sets);
	bool		count_only = !run->sink->in_batches;
	GjSetPair	pair = {.width = run->types[0].width,.operation = spec->operation,
	.algorithm = spec->algorithm};
	uint64_t	room;
	uint64_t	n;

	work->ops->queues->phase(work->queue, GJ_PHASE_BUILD);
	GJ_TRY(sort_side(run, 0, &pair.na));
	GJ_TRY(sort_side(run, 1, &pair.nb));
	GJ_STOP_CHECK(run);
	work->ops->queues->phase(work->queue, GJ_PHASE_PROBE);
	pair.a = run->relation[0].columns[0].data.memory;
	pair.b = run->relation[1].columns[0].data.memory;
	room = pair.operation == GJ_SETS_UNION ? pair.na + pair.nb :
		pair.operation == GJ_SETS_EXCEPT || pair.na < pair.nb ? pair.na : pair.nb;
	if (!count_only)
		GJ_TRY(gj_buffer_reserve(work, result, (room > 0 ? room : 1) * pair.width));
	GJ_TRY(run_algorithm(run, &pair, result->memory, &n));
	if (count_only)
	{
		GjAggState	state = {.count = (int64_t) n,.lo = pair.na,.hi = (int64_t) pair.nb};

		return gj_run_send_states(run, &state, 1);
	}
	return output_values(run, result->memory, n);
}

static GjStatus
intersect(GjRun *run)
{
	GjBuffer	result = {NULL, 0};
	GjStatus	status;

	GJ_TRY(gj_run_fail_points(run));
	status = run_pair(run, &result);
	gj_buffer_free(&run->work, &result);
	return status;
}

static GjStatus
source_ended(GjRun *run, uint32_t source)
{
	GJ_TRY(gj_sets_source_ended(run, source));
	return gj_run_all_ended(run) ? intersect(run) : GJ_OK;
}

const GjSinkOps gj_sink_pair = {
	.name = "pair of sets",
	.returns_rows = true,.in_batches = true,
	.plan = gj_sink_reads_nothing,.tuple_bytes = gj_sink_no_bytes,.source_ended = source_ended,
	.finish = gj_sink_only_waits,.free = gj_sink_frees_nothing
};

const GjSinkOps gj_sink_pair_count = {
	.name = "count of a pair of sets",
	.plan = gj_sink_reads_nothing,.tuple_bytes = gj_sink_no_bytes,.source_ended = source_ended,
	.finish = gj_sink_only_waits,.free = gj_sink_frees_nothing
};
