/*
 * sets.c
 *	  Pairs of families of sets: both sources are complete; build the family, then send the pairs
 *	  that are wanted, tile by tile, or their distinct intersections (sets/intersections.c).
 */
#include "internal.h"

#include <string.h>

#include "device/set_plan.h"

/* Counts of a tile of GJ_MAX_TUPLES pairs, its matrix, and the scratch memory of selecting. */
#define GJ_TILE_SPACE		(UINT64_C(40) << 20)
/* So much has to be left for a run's tiles to be large. */
#define GJ_MUCH_SPACE		(UINT64_C(1) << 30)

static bool
take_any(void *arg, uint64_t tile)
{
	return true;
}

const GjTiles gj_all_tiles = {.take = take_any};

uint64_t
gj_run_tile_space(const GjRun *run)
{
	uint64_t	most = run->work.lease->limit / 4;

	return most < GJ_TILE_SPACE ? most : GJ_TILE_SPACE;
}

/* How many pairs the tiles of a family are to have; npairs: those that runs share. */
static uint32_t
choose_tiles(GjRun *run, const GjSetFamily *family, uint32_t npairs)
{
	if ((uint64_t) family->nleft * family->nright <= GJ_MAX_TUPLES ||
		gj_set_average(family) > GJ_SET_LARGE_TILE_SIZE)
		return GJ_MAX_TUPLES;
	if (npairs > 0)
		return npairs;
	return gj_lease_left(run->work.lease) < GJ_MUCH_SPACE ? GJ_MAX_TUPLES : family->tile_pairs;
}

GjStatus
gj_run_make_tiles(GjRun *run, GjSetFamily *family, uint32_t npairs, GjBuffer out[3],
				  uint64_t *space)
{
	GjWork	   *work = &run->work;
	uint64_t	more = GJ_LARGE_TILE_SPACE -
		3 * (GJ_SET_MOST_PAIRS - GJ_MAX_TUPLES) * sizeof(uint32_t);

	family->tile_pairs = choose_tiles(run, family, npairs);
	if (family->tile_pairs > GJ_MAX_TUPLES)
	{
		if (!gj_lease_take(work->lease, more))
			return GJ_OUT_OF_MEMORY;
		*space += more;
	}
	for (uint32_t i = 0; i < 3; i++)
		GJ_TRY(gj_buffer_reserve(work, &out[i], family->tile_pairs * sizeof(uint32_t)));
	return GJ_OK;
}

/* What building and the tiles need besides buffers; taken from the lease as one amount. */
static uint64_t
working_space(const GjRun *run)
{
	return run->relation[1].nrows * GJ_ELEMENT_SPACE + run->relation[0].nrows * GJ_SET_SPACE +
		gj_run_tile_space(run);
}

/* Sends the first n entries of three device arrays; with each batch the algorithm (wire/sets.h). */
static GjStatus
output_pairs(GjRun *run, const GjSetFamily *family, uint32_t *const out[3], uint32_t n)
{
	GjWork	   *work = &run->work;
	uint32_t	capacity = run->output.layout.capacity;

	for (uint32_t first = 0; first < n; first += capacity)
	{
		GjSlotHeader header = {.nrows = n - first < capacity ? n - first : capacity,
								.heap_used = family->algorithm};
		uint8_t    *slot;

		GJ_TRY(gj_run_next_slot(run, &slot));
		memcpy(slot, &header, sizeof(header));
		memset(gj_slot_has_nulls(slot), 0, 3);
		for (uint32_t i = 0; i < 3; i++)
			GJ_TRY(work->ops->memory->copy_out(work->queue, slot + run->output.places[i].data,
									   out[i] + first, header.nrows * sizeof(uint32_t)));
		GJ_TRY(work->ops->queues->sync(work->queue));
		GJ_TRY(gj_run_send(run, header.nrows, header.nrows * UINT64_C(3) * sizeof(uint32_t)));
	}
	return GJ_OK;
}

static GjStatus
run_tiles(GjRun *run, const GjSetSpec *spec, const GjSetFamily *family, uint32_t *const out[3])
{
	GjWork	   *work = &run->work;
	GjSetTile	tile;

	for (uint64_t t = 0; gj_set_next_tile(family, spec, &tile, t == 0); t++)
	{
		uint32_t	n;

		if (!run->output.tiles.take(run->output.tiles.arg, t))
			continue;
		GJ_STOP_CHECK(run);
		work->ops->queues->phase(work->queue, GJ_PHASE_PROBE);
		GJ_TRY(work->ops->sets->set_tile(work->queue, family, spec, &tile, run->host->stop,
								   run->host->arg, out, &n));
		run->stats.step[0].rows_in += (uint64_t) tile.nleft * tile.nright;
		run->stats.step[0].rows_out += n;
		GJ_TRY(output_pairs(run, family, out, n));
	}
	return GJ_OK;
}

/* What building a family loses, and distinct intersections are written from. */
static GjStatus
keep_elements(GjRun *run, const GjSetInput *sets, GjBuffer *elements)
{
	GjWork	   *work = &run->work;
	uint64_t	nbytes = sets->nvalues * sets->width;

	GJ_TRY(gj_buffer_reserve(work, elements, nbytes + sizeof(int64_t)));
	return nbytes == 0 ? GJ_OK :
		work->ops->memory->copy(work->queue, elements->memory, sets->values, nbytes);
}

static GjStatus
join_sets(GjRun *run, GjSetFamily *family, GjBuffer buffers[3], GjBuffer *elements, uint64_t *space)
{
	GjWork	   *work = &run->work;
	const GjSetSpec *spec = gj_program_array(run->program, GjSetSpec, sets);
	const uint32_t nsets = (uint32_t) run->relation[0].nrows / (spec->behind ? 2 : 1);
	const uint32_t *sizes = run->relation[0].columns[0].data.memory;
	const GjSetInput sets = {
		.size = (const int32_t *) sizes,
		.nsets = nsets,
		.values = run->relation[1].columns[0].data.memory,
		.nvalues = run->relation[1].nrows,
		.width = run->types[1].width
	};
	uint32_t   *out[3];

	work->ops->queues->phase(work->queue, GJ_PHASE_BUILD);
	if (spec->distinct)
		GJ_TRY(keep_elements(run, &sets, elements));
	GJ_TRY(work->ops->sets->set_build(work->queue, &sets, spec, run->host->stop, run->host->arg,
									  family));
	run->stats.step[0].set_algorithm = family->algorithm;
	gj_relation_drop(work, &run->relation[1], 0);
	GJ_TRY(gj_run_make_tiles(run, family, run->output.tiles.npairs, buffers, space));
	for (uint32_t i = 0; i < 3; i++)
		out[i] = buffers[i].memory;
	if (spec->distinct)
		return gj_run_intersections(run, spec, family, elements->memory,
									spec->behind ? sizes + nsets : NULL, out);
	return run_tiles(run, spec, family, out);
}

static GjStatus
send_pairs(GjRun *run)
{
	GjWork	   *work = &run->work;
	uint64_t	space = working_space(run);
	GjSetFamily family = {0};
	GjBuffer	out[3] = {{NULL, 0}};
	GjBuffer	elements = {NULL, 0};
	GjStatus	status;

	GJ_TRY(gj_run_fail_points(run));
	if (!gj_lease_take(work->lease, space))
		return GJ_OUT_OF_MEMORY;
	status = join_sets(run, &family, out, &elements, &space);
	work->ops->sets->set_free(work->queue, &family);
	for (uint32_t i = 0; i < 3; i++)
		gj_buffer_free(work, &out[i]);
	gj_buffer_free(work, &elements);
	gj_lease_give(work->lease, space);
	return status;
}

GjStatus
gj_sets_source_ended(GjRun *run, uint32_t source)
{
	GJ_TRY(gj_run_fail_build(run));
	run->stats.source[source].rows_out = run->relation[source].nrows;
	return GJ_OK;
}

static GjStatus
source_ended(GjRun *run, uint32_t source)
{
	GJ_TRY(gj_sets_source_ended(run, source));
	return gj_run_all_ended(run) ? send_pairs(run) : GJ_OK;
}

const GjSinkOps gj_sink_pairs = {
	.name = "pairs of sets",
	.spreads = true,.by_tiles = true,
	.returns_rows = true,.in_batches = true,
	.plan = gj_sink_reads_nothing,.tuple_bytes = gj_sink_no_bytes,.source_ended = source_ended,
	.finish = gj_sink_only_waits,.free = gj_sink_frees_nothing
};

/* The best are those of all tiles: one device has to see them. */
const GjSinkOps gj_sink_best_pairs = {
	.name = "best pairs of sets",
	.by_tiles = true,
	.returns_rows = true,.in_batches = true,
	.plan = gj_sink_reads_nothing,.tuple_bytes = gj_sink_no_bytes,.source_ended = source_ended,
	.finish = gj_sink_only_waits,.free = gj_sink_frees_nothing
};

const GjSinkOps gj_sink_intersections = {
	.name = "distinct intersections",
	.by_tiles = true,
	.returns_rows = true,.in_batches = true,
	.plan = gj_sink_reads_nothing,.tuple_bytes = gj_sink_no_bytes,.source_ended = source_ended,
	.finish = gj_sink_only_waits,.free = gj_sink_frees_nothing
};
