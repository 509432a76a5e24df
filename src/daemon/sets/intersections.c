/*
 * intersections.c
 *	  GJ_PROGRAM_SETS with `distinct`: the distinct intersections of the pairs of a family, and
 *	  how often each appears.
 *
 * The pairs come tile by tile.  Each is hashed and looked up in a table of intersections,
 * in which a pair stands for each one; nothing is written of an intersection until all pairs
 * have been counted.  If the table outgrows the memory, intersections are taken in parts by
 * their hash: a part of the size that fits is counted over all pairs and sent, then the
 * next one.  So rows go out before all parts have been counted, but a part that has begun
 * to go out is complete.
 */
#include "internal.h"

#include <string.h>

#include "device/intersections.h"
#include "device/set_plan.h"

/* Slots that a table starts with, at least. */
#define GJ_FIRST_SLOTS		UINT64_C(65536)
/* Pairs that are looked up at a time. */
#define GJ_FIND_PAIRS		(256u * 1024)
/* If fewer than one in so many intersections fit at a time, there is no memory for any. */
#define GJ_MAX_PARTS		(UINT64_C(1) << 20)
/* Intersections and elements that are written at a time (but one may have more elements). */
#define GJ_WRITE_SETS		(128u * 1024)
#define GJ_WRITE_ELEMENTS	(256u * 1024)

typedef struct GjRunIntersections
{
	GjRun	   *run;
	const GjSetSpec *spec;
	const GjSetFamily *family;
	const void *elements;
	uint32_t	width;
	const uint32_t *behind;		/* GjFoundPairs */
	uint32_t   *const *out;		/* of set_tile */
	uint64_t	npairs;			/* that the tiles have, about */
	GjIntersections found;
	GjBuffer	slots;
	GjBuffer	hash;
	GjBuffer	pair[3];
	GjBuffer	frequency;
	GjBuffer	pair_hash;		/* of the pairs of a tile, as the next two */
	GjBuffer	slot_of;
	GjBuffer	positions;
	GjBuffer	at;				/* of what is written, as the next two */
	GjBuffer	values;
	GjBuffer	frequencies;
} GjRunIntersections;

/* What is needed however few intersections there are. */
static GjStatus
reserve(GjRunIntersections *ri)
{
	GjWork	   *work = &ri->run->work;
	uint64_t	nelements = GJ_WRITE_ELEMENTS;

	if (ri->family->max_size > nelements)
		nelements = ri->family->max_size;
	GJ_TRY(gj_buffer_reserve(work, &ri->pair_hash, GJ_FIND_PAIRS * sizeof(uint64_t)));
	GJ_TRY(gj_buffer_reserve(work, &ri->slot_of, GJ_FIND_PAIRS * sizeof(uint32_t)));
	GJ_TRY(gj_buffer_reserve(work, &ri->positions, GJ_FIND_PAIRS * sizeof(uint32_t)));
	GJ_TRY(gj_buffer_reserve(work, &ri->at, (GJ_WRITE_SETS + 1) * sizeof(uint64_t)));
	GJ_TRY(gj_buffer_reserve(work, &ri->values, nelements * ri->width));
	return gj_buffer_reserve(work, &ri->frequencies, nelements * sizeof(int64_t));
}

static void
give_back(GjRunIntersections *ri)
{
	GjBuffer   *buffers[] = {&ri->slots, &ri->hash, &ri->pair[0], &ri->pair[1], &ri->pair[2],
	&ri->frequency, &ri->pair_hash, &ri->slot_of, &ri->positions, &ri->at, &ri->values,
	&ri->frequencies};

	for (uint32_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
		gj_buffer_free(&ri->run->work, buffers[i]);
}

/* Slots for all intersections and npairs that may become some. */
static GjStatus
grow_table(GjRunIntersections *ri, uint32_t npairs)
{
	GjWork	   *work = &ri->run->work;
	GjIntersections *found = &ri->found;
	uint64_t	least = 2 * ((uint64_t) found->n + npairs);
	uint64_t	nslots = found->nslots > 0 ? found->nslots : GJ_FIRST_SLOTS;

	if (least <= found->nslots)
		return GJ_OK;
	while (nslots < least)
		nslots *= 2;
	/* slots have 32 bits, and so have numbers */
	if (nslots >= UINT32_MAX)
		return GJ_OUT_OF_MEMORY;
	gj_buffer_free(work, &ri->slots);
	found->nslots = 0;
	GJ_TRY(gj_buffer_reserve(work, &ri->slots, nslots * sizeof(uint64_t)));
	found->slots = ri->slots.memory;
	found->nslots = nslots;
	return work->ops->sets->intersections_rehash(work->queue, found);
}

/* Room for n more intersections. */
static GjStatus
grow_found(GjRunIntersections *ri, uint32_t n)
{
	GjWork	   *work = &ri->run->work;
	GjIntersections *found = &ri->found;
	uint64_t	have = found->n;
	uint64_t	want = have + n;

	GJ_TRY(gj_buffer_grow(work, &ri->hash, have * sizeof(uint64_t), want * sizeof(uint64_t), 0));
	GJ_TRY(gj_buffer_grow(work, &ri->frequency, have * sizeof(uint64_t), want * sizeof(uint64_t),
						  0));
	for (uint32_t i = 0; i < 3; i++)
		GJ_TRY(gj_buffer_grow(work, &ri->pair[i], have * sizeof(uint32_t),
							  want * sizeof(uint32_t), 0));
	found->hash = ri->hash.memory;
	found->frequency = ri->frequency.memory;
	found->left = ri->pair[0].memory;
	found->right = ri->pair[1].memory;
	found->common = ri->pair[2].memory;
	return GJ_OK;
}

/* Counts pairs first .. first+npairs-1 of those that a tile has left. */
static GjStatus
count_pairs(GjRunIntersections *ri, uint32_t first, uint32_t npairs)
{
	GjRun	   *run = ri->run;
	GjWork	   *work = &run->work;
	GjFoundPairs pairs = {
		.n = npairs,.left = ri->out[0] + first,.right = ri->out[1] + first,
		.common = ri->out[2] + first,.behind = ri->behind,.hash = ri->pair_hash.memory,
		.slot_of = ri->slot_of.memory,.positions = ri->positions.memory
	};
	uint32_t	n;

	GJ_STOP_CHECK(run);
	GJ_TRY(grow_table(ri, npairs));
	GJ_TRY(work->ops->sets->intersections_find(work->queue, ri->family, &ri->found, &pairs,
										 run->host->stop, run->host->arg, &n));
	GJ_TRY(grow_found(ri, n));
	GJ_TRY(work->ops->sets->intersections_add(work->queue, &ri->found, &pairs, n));
	ri->found.n += n;
	return GJ_OK;
}

/*
 * Counts all pairs whose intersection belongs to the part.  *done = how many of all pairs these
 * were, about, also if memory ran out.
 */
static GjStatus
count_part(GjRunIntersections *ri, double *done)
{
	GjRun	   *run = ri->run;
	GjWork	   *work = &run->work;
	GjSetTile	tile;

	*done = 0;
	ri->found.n = 0;
	if (ri->found.nslots > 0)
		GJ_TRY(work->ops->sets->intersections_rehash(work->queue, &ri->found));
	work->ops->queues->phase(work->queue, GJ_PHASE_PROBE);
	for (bool first = true; gj_set_next_tile(ri->family, ri->spec, &tile, first); first = false)
	{
		uint32_t	n;

		GJ_STOP_CHECK(run);
		GJ_TRY(work->ops->sets->set_tile(work->queue, ri->family, ri->spec, &tile, run->host->stop,
								   run->host->arg, ri->out, &n));
		for (uint32_t i = 0; i < n; i += GJ_FIND_PAIRS)
		{
			uint32_t	some = n - i < GJ_FIND_PAIRS ? n - i : GJ_FIND_PAIRS;

			GJ_TRY(count_pairs(ri, i, some));
			*done += (double) tile.nleft * tile.nright * some / n;
		}
		if (n == 0)
			*done += (double) tile.nleft * tile.nright;
		run->stats.step[0].rows_in += (uint64_t) tile.nleft * tile.nright;
		run->stats.step[0].rows_out += n;
	}
	return GJ_OK;
}

/* Sends n elements, with the frequencies of the intersections that end among them. */
static GjStatus
send_elements(GjRunIntersections *ri, uint64_t n)
{
	GjRun	   *run = ri->run;
	GjWork	   *work = &run->work;
	uint32_t	capacity = run->output.layout.capacity;

	for (uint64_t first = 0; first < n; first += capacity)
	{
		GjSlotHeader header = {.nrows = (uint32_t) (n - first < capacity ? n - first : capacity),
								.heap_used = ri->family->algorithm};
		uint8_t    *slot;

		GJ_TRY(gj_run_next_slot(run, &slot));
		memcpy(slot, &header, sizeof(header));
		memset(gj_slot_has_nulls(slot), 0, 2);
		GJ_TRY(work->ops->memory->copy_out(work->queue, slot + run->output.places[0].data,
								   (uint8_t *) ri->values.memory + first * ri->width,
								   (uint64_t) header.nrows * ri->width));
		GJ_TRY(work->ops->memory->copy_out(work->queue, slot + run->output.places[1].data,
								   (int64_t *) ri->frequencies.memory + first,
								   header.nrows * sizeof(int64_t)));
		GJ_TRY(work->ops->queues->sync(work->queue));
		GJ_TRY(gj_run_send(run, header.nrows,
						   (uint64_t) header.nrows * (ri->width + sizeof(int64_t))));
	}
	return GJ_OK;
}

static GjStatus
send_part(GjRunIntersections *ri)
{
	GjRun	   *run = ri->run;
	GjWork	   *work = &run->work;

	for (uint32_t first = 0, n; first < ri->found.n; first += n)
	{
		uint64_t	total;

		work->ops->queues->phase(work->queue, GJ_PHASE_RETURN);
		GJ_TRY(work->ops->sets->intersections_place(work->queue, &ri->found, first, GJ_WRITE_SETS,
											  GJ_WRITE_ELEMENTS, ri->at.memory, &n, &total));
		GJ_TRY(work->ops->sets->intersections_write(work->queue, ri->family, &ri->found,
													ri->elements,
											  ri->width, first, n, ri->at.memory, run->host->stop,
											  run->host->arg, ri->values.memory,
											  ri->frequencies.memory));
		GJ_TRY(send_elements(ri, total));
	}
	return GJ_OK;
}

/* After a part that proved too large when `done` of the pairs had been counted: a smaller one. */
static GjStatus
shrink_part(GjRunIntersections *ri, double done)
{
	GjRun	   *run = ri->run;
	uint64_t	span = ri->found.last - ri->found.first;
	double		share = 0.8 * done / (double) (ri->npairs + 1);

	if (share > 0.5)
		share = 0.5;
	else if (share < 1.0 / 64)
		share = 1.0 / 64;
	span = (uint64_t) ((double) span * share);
	if (span < UINT64_MAX / GJ_MAX_PARTS)
		return gj_run_fail(run, GJ_OUT_OF_MEMORY, "few intersections fit at a time");
	ri->found.last = ri->found.first + span;
	return GJ_OK;
}

static GjStatus
run_parts(GjRunIntersections *ri)
{
	GjRun	   *run = ri->run;
	uint64_t	span = UINT64_MAX;

	GJ_TRY(reserve(ri));
	for (ri->found.first = 0;; ri->found.first = ri->found.last + 1)
	{
		const GjStepStats before = run->stats.step[0];
		GjStatus	status;
		double		done;

		ri->found.last = span < UINT64_MAX - ri->found.first ? ri->found.first + span : UINT64_MAX;
		while ((status = count_part(ri, &done)) == GJ_OUT_OF_MEMORY)
		{
			GJ_TRY(shrink_part(ri, done));
			run->stats.step[0] = before;
		}
		GJ_TRY(status);
		run->stats.step[0].nparts++;
		GJ_TRY(send_part(ri));
		if (ri->found.last == UINT64_MAX)
			return GJ_OK;
		span = ri->found.last - ri->found.first;
	}
}

GjStatus
gj_run_intersections(GjRun *run, const GjSetSpec *spec, const GjSetFamily *family,
					 const void *elements, const uint32_t *behind, uint32_t *const out[3])
{
	GjRunIntersections ri = {.run = run,.spec = spec,.family = family,.elements = elements,
	.width = run->types[1].width,.behind = behind,.out = out};
	GjStatus	status;

	ri.npairs = (uint64_t) family->nleft * family->nright;
	if (spec->self)
		ri.npairs /= 2;
	status = run_parts(&ri);
	give_back(&ri);
	return status;
}
