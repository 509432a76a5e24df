/*
 * partition.c
 *	  Host partitioning: sources of a run are kept on the host and split into parts.
 *
 * One build source and the probe source are split by a hash of the keys of a step.  Which step is
 * known when all build sources have come, or from the start if there is only one.  passes.c says
 * why, and what is done with the parts.
 *
 * Semi and anti joins whose only condition is the key need one build row for each key: most
 * others of a hot key are dropped while the source is split.
 *
 * Chunks are not split one by one.  They wait until the session's thread has no more messages,
 * and are then split by the threads of the cpu's pool together (splitter.c).
 */
#include "partition.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/program/program.h"

/* What a tile of a family takes, and its pairs: at least half of the memory is for the sets. */
#define GJ_FAMILY_BYTES		(UINT64_C(56) * 1024 * 1024)

/* What the device needs for anything else. */
#define GJ_SPARE_BYTES		(UINT64_C(6) * 1024 * 1024)

/* ---- what may be split */

static bool
can_split_by_key(const GjPartition *partition, uint32_t i)
{
	return gj_step_keys_of_probe_side(partition->program, &partition->steps[i]) &&
		!gj_partition_others_keep_build(partition, (int) i);
}

static bool
joins_sets(const GjProgram *p)
{
	const GjStep *steps = gj_program_array(p, GjStep, steps);

	for (uint32_t i = 0; i < p->nsteps; i++)
		if (steps[i].algorithm == GJ_JOIN_SET)
			return true;
	return false;
}

uint64_t
gj_partition_budget(GjTeam *team)
{
	uint64_t	least = gj_team_lease_left(team);
	uint64_t	spare;

	if (joins_sets(team->program))
		least -= least / 2 < GJ_FAMILY_BYTES ? least / 2 : GJ_FAMILY_BYTES;
	spare = least / 8 + GJ_SPARE_BYTES;
	return least > 2 * spare ? least - spare : least / 2;
}

/* What the device has room for of a source that needs so much, of what all need. */
static uint64_t
room_of(const GjPartition *partition, uint64_t need, uint64_t total)
{
	uint64_t	others = total - need;

	return partition->budget > 2 * others ? partition->budget - others : partition->budget / 2;
}

/* ---- open and close */

static bool
open_layouts(GjPartition *partition)
{
	const GjProgram *p = partition->program;

	partition->capacity = 1;
	partition->places = calloc(p->ncolumns + 1, sizeof(GjColumnPlace));
	if (!partition->places)
		return false;
	for (uint32_t s = 0; s < p->nsources; s++)
		if (partition->sources[s].capacity > partition->capacity)
			partition->capacity = partition->sources[s].capacity;
	return gj_program_layout_chunks(p, partition->layout, partition->places);
}

/*
 * Key parts for a source that needs so much, of what all need: such that several fit at a time,
 * for they are not all alike.
 */
static uint32_t
count_parts(const GjPartition *partition, uint64_t need, uint64_t total)
{
	uint64_t	room = room_of(partition, need, total);
	uint32_t	nparts = 4;

	while (nparts < GJ_MAX_PARTS / 4 && need / nparts > room / 4)
		nparts *= 2;
	return nparts;
}

/* Splits the only build source from the start, if that can be done and it may not fit. */
static bool
expect_parts(GjPartition *partition)
{
	uint64_t	need;

	if (partition->program->nsources != 2 || !can_split_by_key(partition, 0))
		return true;
	need = gj_partition_need_of(partition, 1, partition->sources[1].nrows_hint, 0);
	partition->budget = gj_partition_budget(partition->team);
	if (need <= partition->budget)
		return true;
	partition->key_step = 0;
	partition->nparts = count_parts(partition, need, need);
	partition->build_parts = calloc(partition->nparts, sizeof(GjSpillList));
	return partition->build_parts != NULL;
}

GjPartition *
gj_partition_open(GjTeam *team, GjStatus *status, GjErrorText *why)
{
	const GjProgram *p = team->program;
	GjPartition *partition = calloc(1, sizeof(GjPartition));

	*status = GJ_OUT_OF_HOST_MEMORY;
	if (!partition)
		return NULL;
	partition->team = team;
	partition->program = p;
	partition->sources = gj_program_array(p, GjSource, sources);
	partition->steps = gj_program_array(p, GjStep, steps);
	partition->types = gj_program_array(p, GjColumnType, columns);
	partition->key_step = -1;
	partition->nparts = 1;
	partition->code = (GjCode) {
		.exprs = gj_program_array(p, GjExpr, exprs),.instrs = gj_program_array(p, GjInstr, instrs),
		.constants = gj_program_array(p, int64_t, constants),.columns = partition->types
	};
	pthread_mutex_init(&partition->splitter_lock, NULL);
	partition->spill = &team->store;
	if (open_layouts(partition) && gj_tile_open(&partition->tile) && expect_parts(partition))
	{
		GjDeviceEntry *cpu = gj_devices_choose(GJ_DEVICE_CPU, why);

		*status = cpu ? GJ_OK : GJ_NO_DEVICE;
		if (cpu)
			partition->pool = gj_cpu_pool(cpu->device);
	}
	if (*status == GJ_OK)
		return partition;
	gj_partition_close(partition);
	return NULL;
}

static void
free_parts(GjPartition *partition, GjSpillList **parts, uint32_t n)
{
	for (uint32_t p = 0; *parts && p < n; p++)
		gj_spill_free_list(partition->spill, &(*parts)[p]);
	free(*parts);
	*parts = NULL;
}

void
gj_partition_close(GjPartition *partition)
{
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
		gj_spill_free_list(partition->spill, &partition->build_side[s]);
	free_parts(partition, &partition->build_parts, partition->nparts);
	free_parts(partition, &partition->probe_parts, partition->nparts);
	gj_splitters_close(partition);
	gj_tile_close(&partition->tile);
	pthread_mutex_destroy(&partition->splitter_lock);
	free(partition->places);
	free(partition);
}

/* ---- chunks come in */

GjStatus
gj_partition_flush(GjPartition *partition, uint32_t least)
{
	const GjRunHost *host = partition->team->host;
	uint32_t	n = partition->nitems;

	if (n == 0 || n < least)
		return GJ_OK;
	GJ_TRY(gj_split_items(partition));
	for (uint32_t i = 0; i < n; i++)
		GJ_TRY(host->slot_free(host->arg, partition->items[i].slot));
	return GJ_OK;
}

GjStatus
gj_partition_chunk(GjPartition *partition, uint32_t source, uint32_t nrows, const uint8_t *memory,
				   uint32_t slot)
{
	GjSplitItem *item;

	if (partition->nitems == GJ_SPLIT_ITEMS)
		GJ_TRY(gj_partition_flush(partition, 0));
	if (source == 0)
		item = gj_split_add(partition, 0, partition->key_step >= 0, partition->probe_parts);
	else if (gj_partition_is_key_source(partition, source))
		item = gj_split_add(partition, source, true, partition->build_parts);
	else
		item = gj_split_add(partition, source, false, &partition->build_side[source]);
	item->memory = memory;
	item->nrows = nrows;
	item->slot = slot;
	return GJ_OK;
}

/* ---- all build sources have come */

/* Splits records that are kept already; gives the memory of each back as soon as it was read. */
static GjStatus
split_list(GjPartition *partition, uint32_t s, GjSpillList *list, GjSpillList *parts)
{
	for (uint32_t r = 0; r < list->n;)
	{
		GjSplitItem *item;

		if (partition->nitems == GJ_SPLIT_ITEMS)
			GJ_TRY(gj_split_items(partition));
		item = gj_split_add(partition, s, true, parts);
		item->records = list->records + r;
		item->nrecords = gj_spill_count(item->records, list->n - r, &partition->layout[s]);
		if (item->nrecords == 0)
			return GJ_BAD_PROGRAM;
		r += item->nrecords;
	}
	return GJ_OK;
}

/*
 * Splits the build source of the key step into nparts, from what there is of it.  What was
 * seen of keys belongs to the old parts: it is forgotten.
 */
static GjStatus
split_build_side(GjPartition *partition, uint32_t nparts)
{
	uint32_t	s = partition->steps[partition->key_step].source;
	GjSpillList *old = partition->build_parts;
	uint32_t	nold = partition->nparts;
	GjSpillList *parts = calloc(nparts, sizeof(GjSpillList));
	GjSpillList all;
	GjStatus	status;

	if (!parts)
		return GJ_OUT_OF_HOST_MEMORY;
	status = old ? gj_spill_join(old, nold, &all) :
		gj_spill_join(&partition->build_side[s], 1, &all);
	if (status != GJ_OK)
	{
		free(parts);
		return status;
	}
	free(old);
	partition->nparts = nparts;
	partition->build_parts = parts;
	gj_splitters_forget(partition);
	status = split_list(partition, s, &all, parts);
	if (status == GJ_OK)
		status = gj_split_items(partition);
	gj_spill_free_list(partition->spill, &all);
	return status;
}

/* The need of the largest key part. */
static uint64_t
largest_part(const GjPartition *partition)
{
	uint32_t	s = partition->steps[partition->key_step].source;
	uint64_t	most = 0;

	for (uint32_t p = 0; p < partition->nparts; p++)
	{
		uint64_t	need = gj_partition_need_of(partition, s, partition->build_parts[p].nrows,
								   partition->build_parts[p].heap_used);

		if (need > most)
			most = need;
	}
	return most;
}

/* The need of all that there is of a build source. */
static uint64_t
source_need(const GjPartition *partition, uint32_t s)
{
	bool		in_parts = gj_partition_is_key_source(partition, s) && partition->build_parts;
	const GjSpillList *lists = in_parts ? partition->build_parts : &partition->build_side[s];
	uint64_t	nrows = 0;
	uint64_t	heap = 0;

	for (uint32_t p = 0; p < (in_parts ? partition->nparts : 1); p++)
	{
		nrows += lists[p].nrows;
		heap += lists[p].heap_used;
	}
	return gj_partition_need_of(partition, s, nrows, heap);
}

/*
 * Chooses the largest source that can be split by key, unless one is split already, or one that
 * needs marks is larger: with all probe rows in one part it can be split by blocks.
 */
static void
choose_step(GjPartition *partition)
{
	uint64_t	most = gj_partition_marks_rows(partition) ?
		source_need(partition, partition->steps[0].source) : 0;

	for (uint32_t i = 0; i < partition->program->nsteps && !partition->build_parts; i++)
	{
		uint64_t	need = source_need(partition, partition->steps[i].source);

		if (need > most && can_split_by_key(partition, i))
		{
			most = need;
			partition->key_step = (int) i;
		}
	}
}

/* Splits a source by key, if one can be, into as many parts as it takes. */
static GjStatus
split_by_key(GjPartition *partition, uint64_t total)
{
	uint64_t	need;
	uint64_t	room;
	uint32_t	nparts;
	uint32_t	s;

	choose_step(partition);
	if (partition->key_step < 0)
		return GJ_OK;
	s = partition->steps[partition->key_step].source;
	need = source_need(partition, s);
	room = room_of(partition, need, total);
	nparts = count_parts(partition, need, total);
	/* from the start it may be in more parts than it had to be, or in large ones that do */
	if (!partition->build_parts ||
		(partition->nparts < nparts && largest_part(partition) > room / 2))
		GJ_TRY(split_build_side(partition, nparts));
	/* keys that are few or skewed */
	while (largest_part(partition) > room && partition->nparts < GJ_MAX_PARTS &&
		   !gj_partition_can_split_by_blocks(partition, s))
		GJ_TRY(split_build_side(partition, partition->nparts > GJ_MAX_PARTS / 4 ? GJ_MAX_PARTS :
						   partition->nparts * 4));
	return GJ_OK;
}

uint64_t
gj_partition_need(const GjPartition *partition)
{
	uint64_t	total = 0;

	for (uint32_t s = 1; s < partition->program->nsources; s++)
		total += source_need(partition, s);
	return total;
}

GjStatus
gj_partition_split(GjPartition *partition, uint64_t need)
{
	GJ_TRY(split_by_key(partition, need));
	partition->probe_parts = calloc(partition->nparts, sizeof(GjSpillList));
	return partition->probe_parts ? GJ_OK : GJ_OUT_OF_HOST_MEMORY;
}

void
gj_partition_free_build(GjPartition *partition)
{
	for (uint32_t s = 1; s < partition->program->nsources; s++)
		gj_spill_free_list(partition->spill, &partition->build_side[s]);
	free_parts(partition, &partition->build_parts, partition->nparts);
}
