/*
 * splitter.c
 *	  Splits chunks for passes: the threads of the cpu's pool copy each row to a record of its
 *	  part.
 *
 * One thread does all the work for one item: a chunk, or records that are split again.  So
 * several items are split at a time, and no thread waits for another within an item.  For each
 * item a thread takes a splitter, the memory that it works in; there are as many splitters as
 * threads that have worked at a time.  The session's thread then appends the records to lists, in
 * the order of the items.
 *
 * Keys are computed a tile at a time.  A row whose key has an error goes to any part: the device
 * finds the error if the row passes its filter.
 */
#include "partition.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/tile_keys.h"
#include "rows/hash.h"

/* Keys that are remembered, a power of two. */
#define GJ_SEEN_KEYS		4096

/* Rows of a record: what blocks are made of; and where each row is a set of many elements. */
#define GJ_RECORD_ROWS		16384
#define GJ_RECORD_SETS		1024

/* A key of a build side that is asked only whether it has it. */
typedef struct GjSeenKey
{
	bool		used;
	int64_t		key[GJ_MAX_KEYS];
} GjSeenKey;

struct GjSplitter
{
	GjSplitter *next;			/* that nobody uses; guarded by the partition's splitter_lock */
	GjSpillWriter writer;
	uint16_t   *part;			/* of each row of a chunk; nparts: none wants it */
	uint32_t   *positions;		/* rows by part */
	uint32_t	count[GJ_MAX_PARTS + 1];	/* rows of each part */
	GjColumn   *columns;		/* of a tile */
	uint64_t   *refs;			/* [GJ_TILE_ROWS] for each column, read once */
	GjKeys		keys;			/* of a tile */
	uint64_t	hash[GJ_TILE_ROWS];
	GjSeenKey  *seen;			/* [GJ_SEEN_KEYS], kept in the parts that there are now */
	uint8_t    *slot;			/* for records that are split again; NULL: there were none */
};

/* ---- splitters */

static void
close_splitter(GjSplitter *splitter)
{
	gj_spill_writer_close(&splitter->writer);
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
		free(splitter->keys.value[k]);
	free(splitter->keys.null);
	free(splitter->part);
	free(splitter->positions);
	free(splitter->columns);
	free(splitter->refs);
	free(splitter->seen);
	free(splitter->slot);
	free(splitter);
}

static GjSplitter *
open_splitter(GjPartition *partition)
{
	GjSplitter *splitter = calloc(1, sizeof(GjSplitter));
	uint32_t	ncolumns = partition->program->ncolumns + 1;
	bool		ok;

	if (!splitter)
		return NULL;
	gj_spill_writer_open(&splitter->writer, partition->spill);
	splitter->part = malloc(partition->capacity * sizeof(uint16_t));
	splitter->positions = malloc(partition->capacity * sizeof(uint32_t));
	splitter->columns = calloc(ncolumns, sizeof(GjColumn));
	splitter->refs = malloc((size_t) ncolumns * GJ_TILE_ROWS * sizeof(uint64_t));
	splitter->keys.null = malloc(GJ_TILE_ROWS);
	splitter->seen = calloc(GJ_SEEN_KEYS, sizeof(GjSeenKey));
	ok = splitter->part && splitter->positions && splitter->columns && splitter->refs &&
		splitter->keys.null && splitter->seen;
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
		ok &= (splitter->keys.value[k] = malloc(GJ_TILE_ROWS * sizeof(int64_t))) != NULL;
	if (ok)
		return splitter;
	close_splitter(splitter);
	return NULL;
}

static GjSplitter *
take_splitter(GjPartition *partition)
{
	GjSplitter *splitter;

	pthread_mutex_lock(&partition->splitter_lock);
	splitter = partition->splitters;
	if (splitter)
		partition->splitters = splitter->next;
	pthread_mutex_unlock(&partition->splitter_lock);
	return splitter ? splitter : open_splitter(partition);
}

static void
put_splitter(GjPartition *partition, GjSplitter *splitter)
{
	pthread_mutex_lock(&partition->splitter_lock);
	splitter->next = partition->splitters;
	partition->splitters = splitter;
	pthread_mutex_unlock(&partition->splitter_lock);
}

void
gj_splitters_close(GjPartition *partition)
{
	while (partition->splitters)
	{
		GjSplitter *next = partition->splitters->next;

		close_splitter(partition->splitters);
		partition->splitters = next;
	}
	for (uint32_t i = 0; i < GJ_SPLIT_ITEMS; i++)
	{
		free(partition->items[i].made);
		free(partition->items[i].part);
	}
}

void
gj_splitters_forget(GjPartition *partition)
{
	for (GjSplitter *splitter = partition->splitters; splitter; splitter = splitter->next)
		memset(splitter->seen, 0, GJ_SEEN_KEYS * sizeof(GjSeenKey));
}

/* ---- parts */

static GjStatus
damaged(GjSplitItem *item, const char *what)
{
	item->error = what;
	return GJ_BAD_PROGRAM;
}

/* Reads what a slot says about itself, once, for it may change under our eyes. */
static GjStatus
read_chunk(const GjPartition *partition, GjSplitItem *item, const uint8_t *slot,
		   uint8_t *has_nulls, GjChunk *chunk)
{
	uint32_t	s = item->source;
	const GjSource *source = &partition->sources[s];
	GjSlotHeader header;

	memcpy(&header, slot, sizeof(header));
	for (uint32_t c = 0; c < source->ncolumns; c++)
		has_nulls[c] = gj_slot_has_nulls(slot)[c] != 0 &&
			partition->types[source->first_column + c].nullable;
	if (header.nrows != item->nrows || item->nrows > source->capacity ||
		header.heap_used > partition->layout[s].heap_size || header.heap_used % 8 != 0)
		return damaged(item, "a chunk has a damaged header");
	*chunk = (GjChunk) {slot, item->nrows, header.heap_used, &partition->layout[s],
	partition->places + source->first_column, has_nulls};
	return GJ_OK;
}

/*
 * True if of the build rows of a key one is as good as all: a semi or anti join asks only
 * whether there is one.  The filter of the source has yet to be asked, so there must be none.
 */
static bool
one_is_enough(const GjPartition *partition)
{
	const GjStep *step = &partition->steps[partition->key_step];

	return (step->join_type == GJ_JOIN_SEMI || step->join_type == GJ_JOIN_ANTI) &&
		step->residual < 0 && step->range_key < 0 && partition->sources[step->source].filter < 0;
}

/* True if row i of a tile has a key that was seen shortly before; most rows of a hot key have. */
static bool
seen_before(GjSplitter *splitter, uint32_t i)
{
	const GjKeys *keys = &splitter->keys;
	GjSeenKey  *seen = &splitter->seen[splitter->hash[i] >> 32 & (GJ_SEEN_KEYS - 1)];
	bool		equal = seen->used;

	for (uint32_t k = 0; k < keys->nkeys; k++)
	{
		equal &= seen->key[k] == keys->value[k][i];
		seen->key[k] = keys->value[k][i];
	}
	seen->used = true;
	return equal;
}

/* Reads n references, from row `base` on, once; false: one of them is bad. */
static bool
read_refs(const GjChunk *chunk, uint32_t c, uint32_t base, uint32_t n, uint64_t *refs)
{
	bool		ok = true;

	memcpy(refs, (const uint64_t *) (chunk->slot + chunk->places[c].data) + base,
		   n * sizeof(uint64_t));
	for (uint32_t i = 0; i < n; i++)
		ok &= gj_ref_length(refs[i]) == GJ_REF_HELD ||
			(gj_ref_offset(refs[i]) % 8 == 0 &&
			 gj_ref_offset(refs[i]) + gj_ref_space(refs[i]) <= chunk->heap_used);
	return ok;
}

/* Makes the columns of a source those of n rows of the chunk, from row `base` on. */
static bool
describe_tile(const GjPartition *partition, GjSplitter *splitter, uint32_t s, const GjChunk *chunk,
			  uint32_t base, uint32_t n)
{
	const GjSource *source = &partition->sources[s];
	bool		ok = true;

	for (uint32_t c = 0; c < source->ncolumns; c++)
	{
		uint32_t	i = source->first_column + c;
		const GjColumnType *type = &partition->types[i];
		GjColumn   *column = &splitter->columns[i];

		column->kind = type->kind;
		column->width = type->width;
		column->data = chunk->slot + chunk->places[c].data + (size_t) base * type->width;
		column->nulls = chunk->has_nulls[c] ? chunk->slot + chunk->places[c].nulls + base : NULL;
		if (type->kind != GJ_REF)
			continue;
		column->heap = chunk->slot + chunk->layout->heap;
		column->data = splitter->refs + (size_t) i * GJ_TILE_ROWS;
		ok &= read_refs(chunk, c, base, n, splitter->refs + (size_t) i * GJ_TILE_ROWS);
	}
	return ok;
}

/* Hashes of the keys of a tile. */
static void
hash_tile(GjSplitter *splitter, uint32_t n)
{
	memset(splitter->hash, 0, n * sizeof(uint64_t));
	for (uint32_t k = 0; k < splitter->keys.nkeys; k++)
		for (uint32_t i = 0; i < n; i++)
			splitter->hash[i] = gj_hash_combine(splitter->hash[i], splitter->keys.value[k][i]);
	/* mixed once more: the devices' tables use the same hash */
	for (uint32_t i = 0; i < n; i++)
		splitter->hash[i] = gj_hash_mix(~splitter->hash[i]);
}

/* The parts of n rows, from row `base` on; counts them.  `once`: equal keys may be dropped. */
static void
find_tile_parts(const GjPartition *partition, GjSplitter *splitter, uint32_t base, uint32_t n,
				bool once)
{
	const uint8_t *null = splitter->keys.null;
	uint16_t   *part = splitter->part + base;

	hash_tile(splitter, n);
	for (uint32_t i = 0; i < n; i++)
		/* one with a NULL matches nothing, wherever it is */
		part[i] = (uint16_t) ((null[i] ? base + i : splitter->hash[i]) & (partition->nparts - 1));
	for (uint32_t i = 0; i < n && once; i++)
		if (null[i] || seen_before(splitter, i))
			part[i] = (uint16_t) partition->nparts;
	for (uint32_t i = 0; i < n; i++)
		splitter->count[part[i]]++;
}

/* The parts of a chunk's rows. */
static GjStatus
find_parts(const GjPartition *partition, GjSplitter *splitter, GjSplitItem *item,
		   const GjChunk *chunk, const GjTile *tile)
{
	const GjStep *step = &partition->steps[partition->key_step];
	bool		once = item->source > 0 && one_is_enough(partition);
	GjView		view = {.columns = splitter->columns};

	memset(splitter->count, 0, (partition->nparts + 1) * sizeof(uint32_t));
	splitter->keys.nkeys = step->nkeys;
	for (uint32_t base = 0; base < chunk->nrows; base += view.nrows)
	{
		uint32_t	left = chunk->nrows - base;
		bool		failed;

		view.nrows = left < GJ_TILE_ROWS ? left : GJ_TILE_ROWS;
		if (!describe_tile(partition, splitter, item->source, chunk, base, view.nrows))
			return damaged(item, "a chunk has a bad reference");
		/* a row error is the device's to find, if the row passes its filter */
		failed = gj_cpu_tile_keys(&partition->code, &view,
								  item->source == 0 ? step->probe_keys : step->build_keys, tile,
								  &splitter->keys) != GJ_OK;
		find_tile_parts(partition, splitter, base, view.nrows, once && !failed);
	}
	return GJ_OK;
}

/* Sorts the rows of a chunk by their parts; those that no part wants come last. */
static void
place_rows(const GjPartition *partition, GjSplitter *splitter, uint32_t nrows)
{
	uint32_t	at[GJ_MAX_PARTS + 1];
	uint32_t	before = 0;

	for (uint32_t p = 0; p <= partition->nparts; p++)
	{
		at[p] = before;
		before += splitter->count[p];
	}
	for (uint32_t i = 0; i < nrows; i++)
		splitter->positions[at[splitter->part[i]]++] = i;
}

/* ---- items */

/* Records that n rows of a source make: they are small enough to make blocks of. */
static uint32_t
record_rows(const GjPartition *partition, uint32_t s)
{
	bool		sets = s > 0 && gj_program_step_of(partition->program, s)->algorithm == GJ_JOIN_SET;

	return sets ? GJ_RECORD_SETS : GJ_RECORD_ROWS;
}

static bool
grow_made(GjSplitItem *item, uint32_t n)
{
	if (n <= item->max_made)
		return true;
	free(item->made);
	free(item->part);
	item->made = malloc(n * sizeof(GjSpillRecord));
	item->part = malloc(n * sizeof(uint16_t));
	item->max_made = item->made && item->part ? n : 0;
	return item->max_made > 0;
}

/* Decides the sizes of records of a part's rows; *n counts them. */
static void
cut_part(GjSplitItem *item, uint32_t part, uint32_t nrows, uint32_t most, uint32_t *n)
{
	for (uint32_t rows; nrows > 0; nrows -= rows)
	{
		rows = nrows < most ? nrows : most;
		item->made[*n].nrows = rows;
		item->part[(*n)++] = (uint16_t) part;
	}
}

/* Makes the records of a chunk, or of records that are split again. */
static GjStatus
split_chunk(GjPartition *partition, GjSplitter *splitter, GjSplitItem *item, const uint8_t *slot,
			const GjTile *tile)
{
	const GjColumnType *types = partition->types + partition->sources[item->source].first_column;
	uint32_t	most = record_rows(partition, item->source);
	uint32_t	n = 0;
	uint8_t		has_nulls[GJ_MAX_COLUMNS];
	GjChunk		chunk;

	GJ_TRY(read_chunk(partition, item, slot, has_nulls, &chunk));
	if (!grow_made(item, item->nrows / most + partition->nparts + 1))
		return GJ_OUT_OF_HOST_MEMORY;
	if (item->by_key)
	{
		GJ_TRY(find_parts(partition, splitter, item, &chunk, tile));
		place_rows(partition, splitter, chunk.nrows);
		for (uint32_t p = 0; p < partition->nparts; p++)
			cut_part(item, p, splitter->count[p], most, &n);
	}
	else
		cut_part(item, 0, chunk.nrows, most, &n);
	GJ_TRY(gj_spill_make(&splitter->writer, &chunk, types,
						 item->by_key ? splitter->positions : NULL, 0, item->made, n));
	item->nmade = n;
	return GJ_OK;
}

/* Reads records that are kept into the splitter's slot; gives their memory back at once. */
static GjStatus
read_records(GjPartition *partition, GjSplitter *splitter, GjSplitItem *item)
{
	const GjSource *source = &partition->sources[item->source];
	GjSpillSlot slot = {.types = partition->types + source->first_column,
		.places = partition->places + source->first_column,
	.layout = &partition->layout[item->source]};
	uint32_t	n;

	if (!splitter->slot)
		splitter->slot = malloc(GJ_LOAD_SLOT_SIZE);
	if (!splitter->slot)
		return GJ_OUT_OF_HOST_MEMORY;
	slot.memory = splitter->slot;
	if (gj_spill_fill(item->records, item->nrecords, &slot, &n) != GJ_OK)
	{
		item->error = GJ_UNREADABLE;
		return GJ_OUT_OF_HOST_MEMORY;
	}
	for (uint32_t i = 0; i < n; i++)
		gj_spill_drop(partition->spill, &item->records[i]);
	item->nrows = slot.nrows;
	return GJ_OK;
}

/* What a thread of the pool does for an item. */
static void
split_item(void *arg, uint32_t i, const GjTile *tile)
{
	GjPartition *partition = arg;
	GjSplitItem *item = &partition->items[i];
	GjSplitter *splitter = take_splitter(partition);

	if (!splitter)
	{
		item->status = GJ_OUT_OF_HOST_MEMORY;
		return;
	}
	if (item->records)
		item->status = read_records(partition, splitter, item);
	if (item->status == GJ_OK)
		item->status = split_chunk(partition, splitter, item,
								   item->records ? splitter->slot : item->memory, tile);
	put_splitter(partition, splitter);
}

static bool
stopped(void *arg)
{
	const GjRunHost *host = ((GjPartition *) arg)->team->host;

	return host->stop(host->arg);
}

/* Gives the lists what was made of an item, or drops what cannot be given any more. */
static GjStatus
append_made(GjPartition *partition, GjSplitItem *item, GjStatus status)
{
	for (uint32_t r = 0; r < item->nmade; r++)
	{
		if (status == GJ_OK)
			status = gj_spill_append(&item->lists[item->part[r]], &item->made[r]);
		if (status != GJ_OK)
			gj_spill_drop(partition->spill, &item->made[r]);
	}
	item->nmade = 0;
	return status;
}

GjStatus
gj_split_items(GjPartition *partition)
{
	uint32_t	n = partition->nitems;
	GjStatus	status = GJ_OK;

	partition->nitems = 0;
	if (!gj_pool_run(partition->pool, n, split_item, partition, &partition->tile, stopped,
					 partition))
		status = GJ_CANCELLED;
	for (uint32_t i = 0; i < n; i++)
	{
		GjSplitItem *item = &partition->items[i];

		if (status == GJ_OK && item->status != GJ_OK)
			status = gj_team_note_error(partition->team, item->status,
									   item->error ? item->error : partition->spill->error.text);
		status = append_made(partition, item, status);
	}
	return status;
}

GjSplitItem *
gj_split_add(GjPartition *partition, uint32_t source, bool by_key, GjSpillList *lists)
{
	GjSplitItem *item = &partition->items[partition->nitems++];

	item->source = source;
	item->by_key = by_key;
	item->lists = lists;
	item->records = NULL;
	item->nrecords = 0;
	item->nmade = 0;
	item->status = GJ_OK;
	item->error = NULL;
	return item;
}
