/*
 * run_partition.c
 *	  Runs whose inner sides do not fit the device, in passes over parts of them.
 *
 * Inner sources are kept on the host until all have come; then their sizes are known.  If
 * they fit after all, the devices load them and outer chunks stream as ever.  If not, rows
 * are split, and each pass runs the whole program on a part:
 *
 *	by key		one inner source and the outer one, by a hash of the keys of its step, which
 *				read the outer source only.  Equal keys meet in one pass, so every join type
 *				comes out right, rows of the inner side without a match too.
 *	by blocks	an inner source of an inner join, or one whose own rows come out by themselves
 *				(right, right semi and right anti joins), with all outer rows for each block:
 *				every pair is made in one pass, and it knows which rows have no match.
 *
 * A pass whose part is too large, as estimated or as the device finds out before anything has
 * come of it, is split again: fewer key parts, or fewer blocks (one hot key).  What cannot
 * be split ends the run with GJ_TOO_LARGE: before any row has gone out, for the largest passes
 * come first, unless other sessions have taken memory meanwhile.
 *
 * Semi and anti joins that ask nothing but the key need one inner row of each: most others of
 * a hot key are dropped when its source is split.
 *
 * Keys are computed by the cpu device, so that errors of rows that a filter would have
 * removed do no harm: such rows go anywhere.  Threads share the rows of a chunk: first by their
 * numbers, to count, then to place them, and then by parts, each of which is copied by one.
 */
#include "run_partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../rows/hash.h"
#include "program_check.h"

#define GJ_MAX_PARTS		1024

/* Rows of a chunk that a thread finds the parts of at a time. */
#define GJ_ITEM_ROWS		16384

/* Keys that are remembered, a power of two. */
#define GJ_SEEN_KEYS		4096

/* Rows of a record: what blocks are made of; and where each row is a set of many elements. */
#define GJ_RECORD_ROWS		16384
#define GJ_RECORD_SETS		1024

/* What a tile of a family takes, and its pairs: at least half of the memory is for the sets. */
#define GJ_FAMILY_BYTES		(UINT64_C(56) * 1024 * 1024)

/* What the device needs for anything else. */
#define GJ_SPARE_BYTES		(UINT64_C(6) * 1024 * 1024)

/* ---- what may be split */

static bool
can_split_by_key(const GjPartition *partition, uint32_t i)
{
	const GjStep *step = &partition->steps[i];

	if (step->nkeys == 0 || gj_partition_others_keep_inner(partition, (int) i))
		return false;
	for (uint32_t k = 0; k < step->nkeys; k++)
		if (gj_expr_sources(partition->program, step->outer_keys + k) & ~1u)
			return false;
	return true;
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

/* What every device has room for. */
static uint64_t
find_budget(GjTeam *team)
{
	uint64_t	least = UINT64_MAX;
	uint64_t	spare;

	for (uint32_t i = 0; i < team->nmembers; i++)
	{
		uint64_t	left = gj_lease_left(&team->members[i].lease);

		if (left < least)
			least = left;
	}
	if (joins_sets(team->program))
		least -= least / 2 < GJ_FAMILY_BYTES ? least / 2 : GJ_FAMILY_BYTES;
	spare = least / 8 + GJ_SPARE_BYTES;
	return least > 2 * spare ? least - spare : least / 2;
}

/* ---- open and close */

static uint32_t
items_of(uint32_t nrows)
{
	return (nrows + GJ_ITEM_ROWS - 1) / GJ_ITEM_ROWS;
}

static bool
open_buffers(GjPartition *partition)
{
	const GjProgram *p = partition->program;
	uint32_t	capacity = 1;

	partition->places = calloc(p->ncolumns + 1, sizeof(GjColumnPlace));
	partition->columns = calloc(p->ncolumns + 1, sizeof(GjColumn));
	if (!partition->places || !partition->columns)
		return false;
	for (uint32_t s = 0; s < p->nsources; s++)
	{
		const GjSource *source = &partition->sources[s];

		if (!gj_layout(partition->types + source->first_column, source->ncolumns,
					   source->capacity, GJ_LOAD_CHUNK_SIZE, &partition->layout[s],
					   partition->places + source->first_column))
			return false;
		if (source->capacity > capacity)
			capacity = source->capacity;
	}
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
		if (!(partition->keys.value[k] = malloc(capacity * sizeof(int64_t))))
			return false;
	partition->keys.null = malloc(capacity);
	partition->part = malloc(capacity * sizeof(uint16_t));
	partition->positions = malloc(capacity * sizeof(uint32_t));
	partition->counts = malloc((size_t) items_of(capacity) * (GJ_MAX_PARTS + 1) * sizeof(uint32_t));
	partition->made = malloc((capacity / GJ_RECORD_SETS + 1) * sizeof(GjSpillRecord));
	partition->slot = malloc(GJ_LOAD_SLOT_SIZE);
	partition->seen = calloc(GJ_SEEN_KEYS, sizeof(GjSeenKey));
	return partition->keys.null && partition->part && partition->positions && partition->counts &&
		partition->made && partition->slot && partition->seen;
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
	gj_spill_open(&partition->spill, team->options.spill_memory, team->options.temp_limit,
				  team->options.temp_directory);
	if (open_buffers(partition))
	{
		partition->cpu = gj_devices_choose(GJ_DEVICE_CPU, why);
		*status = partition->cpu ?
			partition->cpu->ops->queue_open(partition->cpu->device, p, &partition->queue, why) :
			GJ_NO_DEVICE;
	}
	if (partition->cpu)
		partition->pool = gj_cpu_pool(partition->cpu->device);
	if (*status == GJ_OK)
		return partition;
	gj_partition_close(partition);
	return NULL;
}

static void
free_parts(GjPartition *partition, GjSpillList **parts, uint32_t n)
{
	for (uint32_t p = 0; *parts && p < n; p++)
		gj_spill_free_list(&partition->spill, &(*parts)[p]);
	free(*parts);
	*parts = NULL;
}

void
gj_partition_close(GjPartition *partition)
{
	GjErrorText none;

	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
		gj_spill_free_list(&partition->spill, &partition->inner[s]);
	free_parts(partition, &partition->inner_parts, partition->nparts);
	free_parts(partition, &partition->outer_parts, partition->nparts);
	gj_spill_close(&partition->spill);
	if (partition->queue)
		partition->cpu->ops->queue_close(partition->queue, &none);
	while (partition->passes)
	{
		GjPass	   *next = partition->passes->next;

		free(partition->passes);
		partition->passes = next;
	}
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
		free(partition->keys.value[k]);
	free(partition->keys.null);
	free(partition->part);
	free(partition->positions);
	free(partition->counts);
	free(partition->made);
	free(partition->slot);
	free(partition->seen);
	free(partition->places);
	free(partition->columns);
	free(partition);
}

/* ---- chunks come in */

static GjStatus
fail(GjPartition *partition, GjStatus status, const char *text)
{
	GjTeam    *team = partition->team;

	pthread_mutex_lock(&team->lock);
	if (team->error.text[0] == '\0')
		snprintf(team->error.text, sizeof(team->error.text), "%s", text);
	pthread_mutex_unlock(&team->lock);
	return status;
}

/* What the threads of the pool work on. */
typedef struct GjSplitWork
{
	GjPartition *partition;
	uint32_t	source;
	const GjChunk *chunk;
	GjSpillList *parts;
	uint32_t	item_rows;
	bool		once;			/* one row of a key is enough: one item */
	GjStatus	status;			/* of the first that failed; atomic */
	uint32_t	start[GJ_MAX_PARTS + 2];	/* of the rows of each part in partition->positions */
} GjSplitWork;

/* The end of the item whose first row this is. */
static uint32_t
item_end(const GjSplitWork *work, uint32_t first)
{
	uint32_t	left = work->chunk->nrows - first;

	return first + (left < work->item_rows ? left : work->item_rows);
}

static void
note_status(GjSplitWork *work, GjStatus status)
{
	GjStatus	none = GJ_OK;

	if (status != GJ_OK)
		__atomic_compare_exchange_n(&work->status, &none, status, false, __ATOMIC_RELAXED,
									__ATOMIC_RELAXED);
}

static bool
work_stopped(void *arg)
{
	const GjRunHost *host = ((GjSplitWork *) arg)->partition->team->host;

	return host->stop(host->arg);
}

/* Runs a task for all items.  The spill's error is the run's. */
static GjStatus
run_items(GjSplitWork *work, uint32_t nitems, GjPoolTask task)
{
	GjPartition *partition = work->partition;

	if (!gj_pool_run(partition->pool, nitems, task, work, NULL, work_stopped, work))
		return GJ_CANCELLED;
	return work->status == GJ_OK ? GJ_OK : fail(partition, work->status, partition->spill.error.text);
}

/* Rows of a record of the source: records are small enough to make blocks of. */
static uint32_t
record_rows(const GjPartition *partition, uint32_t s)
{
	bool		sets = s > 0 && gj_partition_step_of(partition, s)->algorithm == GJ_JOIN_SET;

	return sets ? GJ_RECORD_SETS : GJ_RECORD_ROWS;
}

static void
make_record(void *arg, uint32_t item, const GjTile *tile)
{
	GjSplitWork *work = arg;
	GjPartition *partition = work->partition;
	const GjColumnType *types = partition->types + partition->sources[work->source].first_column;
	uint32_t	first = item * work->item_rows;

	note_status(work, gj_spill_make(&partition->spill, work->chunk, types, NULL, first,
									item_end(work, first) - first, &partition->made[item]));
}

/* Keeps the rows of a chunk as they come. */
static GjStatus
keep_chunk(GjPartition *partition, uint32_t s, GjSpillList *list, const GjChunk *chunk)
{
	GjSplitWork work = {.partition = partition,.source = s,.chunk = chunk,
	.item_rows = record_rows(partition, s)};
	uint32_t	n = (chunk->nrows + work.item_rows - 1) / work.item_rows;
	GjStatus	status;

	memset(partition->made, 0, n * sizeof(GjSpillRecord));
	status = run_items(&work, n, make_record);
	for (uint32_t i = 0; i < n; i++)
	{
		if (status == GJ_OK)
			status = gj_spill_append(list, &partition->made[i]);
		if (status != GJ_OK)
			gj_spill_drop(&partition->spill, &partition->made[i]);
	}
	return status;
}

/* Reads what a slot says about itself, once, for it may change under our eyes. */
static GjStatus
read_chunk(GjPartition *partition, uint32_t s, uint32_t nrows, const uint8_t *slot,
		   uint8_t *has_nulls, GjChunk *chunk)
{
	const GjSource *source = &partition->sources[s];
	GjSlotHeader header;

	memcpy(&header, slot, sizeof(header));
	for (uint32_t c = 0; c < source->ncolumns; c++)
		has_nulls[c] = gj_slot_has_nulls(slot)[c] != 0 &&
			partition->types[source->first_column + c].nullable;
	if (header.nrows != nrows || nrows > source->capacity ||
		header.heap_used > partition->layout[s].heap_size || header.heap_used % 8 != 0)
		return fail(partition, GJ_BAD_PROGRAM, "a chunk has a damaged header");
	*chunk = (GjChunk) {slot, nrows, header.heap_used, &partition->layout[s],
	partition->places + source->first_column, has_nulls};
	return GJ_OK;
}

/*
 * True if of the inner rows of a key one is as good as all: a semi or anti join asks only
 * whether there is one.  The filter of the source has yet to be asked, so there must be none.
 */
static bool
one_is_enough(const GjPartition *partition)
{
	const GjStep *step = &partition->steps[partition->key_step];

	return (step->join_type == GJ_JOIN_SEMI || step->join_type == GJ_JOIN_ANTI) &&
		step->residual < 0 && step->range_key < 0 && partition->sources[step->source].filter < 0;
}

/* True if row i has a key that was seen shortly before; most rows of a hot key have. */
static bool
seen_before(GjPartition *partition, uint64_t hash, uint32_t i)
{
	const GjKeys *keys = &partition->keys;
	GjSeenKey  *seen = &partition->seen[hash >> 32 & (GJ_SEEN_KEYS - 1)];
	bool		equal = seen->used;

	for (uint32_t k = 0; k < keys->nkeys; k++)
	{
		equal &= seen->key[k] == keys->value[k][i];
		seen->key[k] = keys->value[k][i];
	}
	seen->used = true;
	return equal;
}

/* The keys of a chunk's rows. */
static GjStatus
find_keys(GjPartition *partition, uint32_t s, const GjChunk *chunk, bool *failed)
{
	const GjDeviceOps *ops = partition->cpu->ops;
	const GjStep *step = &partition->steps[partition->key_step];
	const GjSource *source = &partition->sources[s];
	GjKeys	   *keys = &partition->keys;
	GjView		view = {.nrows = chunk->nrows};

	for (uint32_t c = 0; c < source->ncolumns; c++)
	{
		GjColumn   *column = &partition->columns[source->first_column + c];
		const GjColumnType *type = &partition->types[source->first_column + c];
		uint8_t    *slot = (uint8_t *) chunk->slot;

		column->kind = type->kind;
		column->width = type->width;
		column->data = slot + chunk->places[c].data;
		column->nulls = chunk->has_nulls[c] ? slot + chunk->places[c].nulls : NULL;
		column->heap = type->kind == GJ_REF ? slot + chunk->layout->heap : NULL;
		/* only checks that they lie within the heap */
		if (type->kind == GJ_REF)
			GJ_TRY(ops->rebase_refs(partition->queue, (uint64_t *) (slot + chunk->places[c].data),
									chunk->nrows, 0, chunk->heap_used));
	}
	GJ_TRY(ops->sync(partition->queue));
	GJ_TRY(ops->set_columns(partition->queue, partition->columns, partition->program->ncolumns,
							&view.columns));
	keys->nkeys = step->nkeys;
	keys->nrows = chunk->nrows;
	GJ_TRY(ops->keys(partition->queue, &view, 0, chunk->nrows,
					 s == 0 ? step->outer_keys : step->inner_keys, keys));
	/* a row error is the device's to find, if the row passes its filter */
	*failed = ops->sync(partition->queue) != GJ_OK;
	return GJ_OK;
}

/* The part that row i belongs to; nparts: none wants it. */
static uint32_t
part_of(GjPartition *partition, bool once, uint32_t i)
{
	const GjKeys *keys = &partition->keys;
	uint64_t	hash = 0;

	for (uint32_t k = 0; k < keys->nkeys; k++)
		hash = gj_hash_combine(hash, keys->value[k][i]);
	/* mixed once more: the devices' tables use the same hash */
	hash = gj_hash_mix(~hash);
	if (once && (keys->null[i] || seen_before(partition, hash, i)))
		return partition->nparts;
	return keys->null[i] ? 0 : (uint32_t) (hash & (partition->nparts - 1));
}

/* Finds the parts of the rows of an item, and how many each has. */
static void
count_rows(void *arg, uint32_t item, const GjTile *tile)
{
	GjSplitWork *work = arg;
	GjPartition *partition = work->partition;
	uint32_t   *counts = partition->counts + (size_t) item * (partition->nparts + 1);
	uint32_t	first = item * work->item_rows;
	uint32_t	end = item_end(work, first);

	memset(counts, 0, (partition->nparts + 1) * sizeof(uint32_t));
	for (uint32_t i = first; i < end; i++)
	{
		uint32_t	part = part_of(partition, work->once, i);

		partition->part[i] = (uint16_t) part;
		counts[part]++;
	}
}

/* Puts the numbers of an item's rows where those of their parts go. */
static void
place_rows(void *arg, uint32_t item, const GjTile *tile)
{
	GjSplitWork *work = arg;
	GjPartition *partition = work->partition;
	uint32_t   *at = partition->counts + (size_t) item * (partition->nparts + 1);
	uint32_t	first = item * work->item_rows;
	uint32_t	end = item_end(work, first);

	for (uint32_t i = first; i < end; i++)
		partition->positions[at[partition->part[i]]++] = i;
}

/* Keeps the rows of a part. */
static void
keep_part(void *arg, uint32_t part, const GjTile *tile)
{
	GjSplitWork *work = arg;
	GjPartition *partition = work->partition;
	const GjColumnType *types = partition->types + partition->sources[work->source].first_column;
	uint32_t	most = record_rows(partition, work->source);
	uint32_t	end = work->start[part + 1];
	GjStatus	status = GJ_OK;

	for (uint32_t first = work->start[part], n; first < end && status == GJ_OK; first += n)
	{
		n = end - first < most ? end - first : most;
		status = gj_spill_add(&partition->spill, &work->parts[part], work->chunk, types,
							  partition->positions, first, n);
	}
	note_status(work, status);
}

/* Keeps the rows of a chunk by part. */
static GjStatus
split_chunk(GjPartition *partition, uint32_t s, const GjChunk *chunk, GjSpillList *parts)
{
	GjSplitWork work = {.partition = partition,.source = s,.chunk = chunk,.parts = parts};
	uint32_t	nparts = partition->nparts;
	uint32_t	before = 0;
	uint32_t	nitems;
	bool		failed;

	GJ_TRY(find_keys(partition, s, chunk, &failed));
	/* what was seen of keys belongs to one thread */
	work.once = s > 0 && !failed && one_is_enough(partition);
	work.item_rows = work.once ? chunk->nrows : GJ_ITEM_ROWS;
	nitems = work.once ? 1 : items_of(chunk->nrows);
	GJ_TRY(run_items(&work, nitems, count_rows));
	for (uint32_t p = 0; p <= nparts; p++)
	{
		work.start[p] = before;
		for (uint32_t i = 0; i < nitems; i++)
		{
			uint32_t   *count = partition->counts + (size_t) i * (nparts + 1) + p;
			uint32_t	n = *count;

			*count = before;
			before += n;
		}
	}
	GJ_TRY(run_items(&work, nitems, place_rows));
	return run_items(&work, nparts, keep_part);
}

GjStatus
gj_partition_chunk(GjPartition *partition, uint32_t source, uint32_t nrows, const uint8_t *slot)
{
	uint8_t		has_nulls[GJ_MAX_COLUMNS];
	GjChunk		chunk;

	GJ_TRY(read_chunk(partition, source, nrows, slot, has_nulls, &chunk));
	if (nrows == 0)
		return GJ_OK;
	if (source == 0 && partition->key_step >= 0)
		return split_chunk(partition, 0, &chunk, partition->outer_parts);
	return keep_chunk(partition, source, source == 0 ? partition->outer_parts :
					  &partition->inner[source], &chunk);
}

/* ---- all inner sources have come */

/* Splits records that are kept already; gives the memory of each back at once. */
static GjStatus
split_list(GjPartition *partition, uint32_t s, GjSpillList *list, GjSpillList *parts)
{
	const GjSource *source = &partition->sources[s];
	GjSpillSlot slot = {partition->slot, partition->types + source->first_column,
	partition->places + source->first_column, &partition->layout[s]};
	GjStatus	status = GJ_OK;

	for (uint32_t r = 0, n; r < list->n && status == GJ_OK; r += n)
	{
		uint8_t		has_nulls[GJ_MAX_COLUMNS];
		GjChunk		chunk;

		if (partition->team->host->stop(partition->team->host->arg))
			return GJ_CANCELLED;
		status = gj_spill_fill(&partition->spill, list->records + r, list->n - r, &slot,
							   partition->pool, &n);
		for (uint32_t i = 0; i < n && status == GJ_OK; i++)
			gj_spill_drop(&partition->spill, &list->records[r + i]);
		if (status == GJ_OK)
			status = read_chunk(partition, s, slot.nrows, partition->slot, has_nulls, &chunk);
		if (status == GJ_OK)
			status = split_chunk(partition, s, &chunk, parts);
	}
	return status;
}

/*
 * Splits the inner source of the key step into nparts, from what there is of it.  What was
 * seen of keys belongs to the old parts: it is forgotten.
 */
static GjStatus
split_inner(GjPartition *partition, uint32_t nparts)
{
	uint32_t	s = partition->steps[partition->key_step].source;
	GjSpillList *old = partition->inner_parts;
	uint32_t	nold = partition->nparts;
	GjSpillList *parts = calloc(nparts, sizeof(GjSpillList));
	GjStatus	status = GJ_OK;

	if (!parts)
		return GJ_OUT_OF_HOST_MEMORY;
	partition->nparts = nparts;
	memset(partition->seen, 0, GJ_SEEN_KEYS * sizeof(GjSeenKey));
	if (old)
		for (uint32_t p = 0; p < nold && status == GJ_OK; p++)
			status = split_list(partition, s, &old[p], parts);
	else
		status = split_list(partition, s, &partition->inner[s], parts);
	free_parts(partition, &old, nold);
	gj_spill_free_list(&partition->spill, &partition->inner[s]);
	partition->inner_parts = parts;
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
		uint64_t	need = gj_partition_need_of(partition, s, partition->inner_parts[p].nrows,
								   partition->inner_parts[p].heap_used);

		if (need > most)
			most = need;
	}
	return most;
}

/* Chooses the largest source that can be split by key, and splits it. */
static GjStatus
choose_split(GjPartition *partition, uint64_t total)
{
	uint64_t	most = 0;
	uint64_t	room;
	uint32_t	nparts = 4;
	uint32_t	s;

	for (uint32_t i = 0; i < partition->program->nsteps; i++)
	{
		const GjSpillList *list = &partition->inner[partition->steps[i].source];
		uint64_t	need = gj_partition_need_of(partition, partition->steps[i].source, list->nrows,
								   list->heap_used);

		if (need > most && can_split_by_key(partition, i))
		{
			most = need;
			partition->key_step = (int) i;
		}
	}
	if (partition->key_step < 0)
		return GJ_OK;
	s = partition->steps[partition->key_step].source;
	room = partition->budget > 2 * (total - most) ? partition->budget - (total - most) :
		partition->budget / 2;
	while (nparts < GJ_MAX_PARTS / 4 && most / nparts > room / 4)
		nparts *= 2;
	GJ_TRY(split_inner(partition, nparts));
	/* keys that are few or skewed */
	while (largest_part(partition) > room && nparts < GJ_MAX_PARTS &&
		   !gj_partition_can_split_by_blocks(partition, s))
	{
		nparts *= 4;
		GJ_TRY(split_inner(partition, nparts > GJ_MAX_PARTS ? GJ_MAX_PARTS : nparts));
	}
	return GJ_OK;
}

/* Gives all devices the inner sides.  *fit: they have taken them. */
static GjStatus
load_whole(GjPartition *partition, bool *fit)
{
	GjTeam    *team = partition->team;

	partition->whole = true;
	GJ_TRY(gj_team_for_all(team, GJ_TASK_LOAD, 0));
	*fit = !partition->too_large;
	if (*fit)
	{
		for (uint32_t s = 1; s < partition->program->nsources; s++)
			gj_spill_free_list(&partition->spill, &partition->inner[s]);
		return GJ_OK;
	}
	partition->whole = false;
	for (uint32_t i = 0; i < team->nmembers; i++)
		GJ_TRY(gj_member_close_run(&team->members[i]));
	return GJ_OK;
}

GjStatus
gj_partition_inner_end(GjPartition *partition)
{
	uint64_t	total = 0;
	bool		fit = false;

	for (uint32_t s = 1; s < partition->program->nsources; s++)
		total += gj_partition_need_of(partition, s, partition->inner[s].nrows, partition->inner[s].heap_used);
	partition->budget = find_budget(partition->team);
	if (total <= partition->budget)
	{
		GJ_TRY(load_whole(partition, &fit));
		if (fit)
			return GJ_OK;
		partition->budget = total / 2;
	}
	GJ_TRY(choose_split(partition, total));
	partition->outer_parts = calloc(partition->nparts, sizeof(GjSpillList));
	return partition->outer_parts ? GJ_OK : GJ_OUT_OF_HOST_MEMORY;
}

bool
gj_partition_is_whole(const GjPartition *partition)
{
	return partition->whole;
}

void
gj_partition_stats(const GjPartition *partition, GjRunStats *stats)
{
	if (!partition->whole)
		stats->npasses = partition->npasses;
	stats->spilled_memory = partition->spill.memory_peak;
	stats->spilled_disk = partition->spill.file_used;
}
