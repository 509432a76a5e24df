/*
 * file.c
 *	  What a store keeps of each file, counted as fragments and sides come and go; see
 *	  store/store.h.
 *
 * The lock of the device's memory is held by all callers but gj_resident_list's.
 */
#include "internal.h"

#include "rows/hash.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists that grow; nobody orders them */

/* The list of n pointers with room for one more, in place of the old one; NULL: out of memory. */
static void *
with_room(void *list, uint32_t n)
{
	return (n & (n - 1)) != 0 ? list : realloc(list, (n ? n * 2 : 1) * sizeof(void *));
}

/* ---- files */

static uint32_t
bucket_of(const GjRelationKey *relation)
{
	return (uint32_t) (gj_hash_bytes(0, relation, sizeof(*relation)) >> 32) &
		(GJ_FILE_BUCKETS - 1);
}

GjKeptFile *
gj_file_find(const GjResident *store, const GjRelationKey *relation)
{
	GjKeptFile *file;

	LIST_FOREACH(file, &store->file_bucket[bucket_of(relation)], of_bucket)
		if (memcmp(&file->counts.relation, relation, sizeof(*relation)) == 0)
			break;
	return file;
}

/* The same, made if there is none; NULL: out of memory. */
static GjKeptFile *
find_or_make(GjResident *store, const GjRelationKey *relation)
{
	GjKeptFile *file = gj_file_find(store, relation);
	GjKeptFile **files;

	if (file)
		return file;
	files = with_room(store->files, store->nfiles);
	if (!files)
		return NULL;
	store->files = files;
	file = calloc(1, sizeof(GjKeptFile));
	if (!file)
		return NULL;
	file->counts.relation = *relation;
	file->counts.device = store->entry->ops->kind;
	file->counts.ordinal = store->entry->info.ordinal;
	file->at = store->nfiles;
	store->files[store->nfiles++] = file;
	LIST_INSERT_HEAD(&store->file_bucket[bucket_of(relation)], file, of_bucket);
	return file;
}

/* Frees a file of which nothing is kept any more. */
static void
free_if_empty(GjResident *store, GjKeptFile *file)
{
	if (!LIST_EMPTY(&file->fragments) || !LIST_EMPTY(&file->sides))
		return;
	LIST_REMOVE(file, of_bucket);
	store->files[file->at] = store->files[--store->nfiles];
	store->files[file->at]->at = file->at;
	free(file->columns);
	free(file);
}

/* ---- fragments */

/* True if there are counts for each of the fragment's columns. */
static bool
has_attributes(GjKeptFile *file, const GjFragment *fragment)
{
	uint32_t	n = file->nattributes;
	GjCachedColumn *grown;

	for (uint32_t c = 0; c < fragment->ncolumns; c++)
		if (fragment->columns[c].key.attnum < GJ_CACHED_WORDS * 64 &&
			fragment->columns[c].key.attnum >= n)
			n = fragment->columns[c].key.attnum + 1;
	if (n == file->nattributes)
		return true;
	grown = realloc(file->columns, n * sizeof(GjCachedColumn));
	if (!grown)
		return false;
	memset(grown + file->nattributes, 0, (n - file->nattributes) * sizeof(GjCachedColumn));
	file->columns = grown;
	file->nattributes = n;
	return true;
}

static GjEncoding
encoding_of(const GjFragmentColumn *column)
{
	if (column->packed == 0)
		return GJ_PLAIN;
	if (column->type.kind != GJ_REF)
		return column->packed == 1 ? GJ_PACKED_1 : column->packed == 2 ? GJ_PACKED_2 : GJ_PACKED_4;
	if (column->nvalues > 0)
		return column->packed == 1 ? GJ_CODES_1 : GJ_CODES_2;
	return column->packed == 2 ? GJ_OFFSETS_2 : GJ_OFFSETS_4;
}

/* Adds a column of a fragment to the counts `by` (1, -1) times. */
static void
count_column(GjCachedColumn *counts, const GjFragment *fragment, const GjFragmentColumn *column,
			 int64_t by)
{
	uint64_t	plain = column->packed > 0 ? fragment->nrows * column->type.width :
		column->data.nbytes;

	counts->attnum = column->key.attnum;
	counts->nfragments[encoding_of(column)] += (uint32_t) by;
	counts->nvalues += (uint64_t) (by * column->nvalues);
	counts->nbytes += (uint64_t) by * (column->data.nbytes + column->nulls.nbytes + column->heap_bytes);
	counts->plain_bytes += (uint64_t) by * (plain + column->nulls.nbytes + column->plain_heap);
}

static void
count_columns(GjKeptFile *file, const GjFragment *fragment, int64_t by)
{
	for (uint32_t c = 0; c < fragment->ncolumns; c++)
		if (fragment->columns[c].key.attnum < GJ_CACHED_WORDS * 64)
			count_column(&file->columns[fragment->columns[c].key.attnum], fragment,
						 &fragment->columns[c], by);
}

bool
gj_file_add(GjResident *store, GjFragment *fragment)
{
	GjKeptFile *file = find_or_make(store, &fragment->relation);

	if (!file)
		return false;
	if (!has_attributes(file, fragment))
	{
		free_if_empty(store, file);
		return false;
	}
	count_columns(file, fragment, 1);
	file->counts.nfragments++;
	file->counts.nbytes += fragment->nbytes;
	file->counts.hits += fragment->use.hits;
	fragment->file = file;
	LIST_INSERT_HEAD(&file->fragments, fragment, of_file);
	return true;
}

void
gj_file_remove(GjResident *store, GjFragment *fragment)
{
	GjKeptFile *file = fragment->file;

	count_columns(file, fragment, -1);
	file->counts.nfragments--;
	file->counts.nbytes -= fragment->nbytes;
	file->counts.hits -= fragment->use.hits;
	fragment->file = NULL;
	LIST_REMOVE(fragment, of_file);
	free_if_empty(store, file);
}

void
gj_file_add_pages(GjKeptFile *file, int64_t npages)
{
	file->counts.npages += (uint64_t) npages;
	gj_published_pages(&file->counts.relation, file->counts.device, npages);
}

/* ---- sides */

bool
gj_file_add_side(GjResident *store, GjSide *side)
{
	GjSide	  **sides = with_room(store->sides, store->nsides);
	GjKeptFile *file;

	if (!sides)
		return false;
	store->sides = sides;
	file = find_or_make(store, &side->fragments[0].relation);
	if (!file)
		return false;
	side->at = store->nsides;
	store->sides[store->nsides++] = side;
	/* probe rows that were exchanged have no table */
	file->counts.ntables += side->source > 0;
	file->counts.table_hits += side->source > 0 ? side->hits : 0;
	file->counts.nbytes += side->nbytes;
	file->nsides++;
	side->file = file;
	LIST_INSERT_HEAD(&file->sides, side, of_file);
	return true;
}

void
gj_file_remove_side(GjResident *store, GjSide *side)
{
	GjKeptFile *file = side->file;

	store->sides[side->at] = store->sides[--store->nsides];
	store->sides[side->at]->at = side->at;
	file->counts.ntables -= side->source > 0;
	file->counts.table_hits -= side->source > 0 ? side->hits : 0;
	file->counts.nbytes -= side->nbytes;
	file->nsides--;
	side->file = NULL;
	LIST_REMOVE(side, of_file);
	free_if_empty(store, file);
}

void
gj_files_free(GjResident *store)
{
	free(store->files);
	free(store->sides);
}

/* ---- what users ask */

static bool
is_kept(const GjCachedColumn *column)
{
	for (uint32_t e = 0; e < GJ_NENCODINGS; e++)
		if (column->nfragments[e] > 0)
			return true;
	return false;
}

/* Adds the columns of a file that there are to the counts, and to `columns`; returns their number. */
static uint32_t
list_columns(const GjKeptFile *file, GjCached *cached, GjCachedColumn *columns)
{
	for (uint32_t a = 0; a < file->nattributes; a++)
	{
		if (!is_kept(&file->columns[a]))
			continue;
		cached->attributes[a / 64] |= UINT64_C(1) << a % 64;
		if (columns)
			columns[cached->ncolumns] = file->columns[a];
		cached->ncolumns++;
	}
	return cached->ncolumns;
}

/* The most columns that all files can have. */
static uint64_t
most_columns(const GjResident *store)
{
	uint64_t	n = 0;

	for (uint32_t i = 0; store && i < store->nfiles; i++)
		n += store->files[i]->nattributes;
	return n;
}

uint32_t
gj_resident_list(GjDeviceEntry *entry, GjCached **list, GjCachedColumn **columns)
{
	GjDeviceMemory *memory = &entry->memory;
	GjResident *store;
	uint64_t	ncolumns = 0;
	uint32_t	n;

	pthread_mutex_lock(&memory->lock);
	store = gj_store_of(memory);
	n = store ? store->nfiles : 0;
	*list = malloc((n + 1) * sizeof(GjCached));
	if (columns)
		*columns = malloc((most_columns(store) + 1) * sizeof(GjCachedColumn));
	if (!*list || (columns && !*columns))
		n = 0;
	for (uint32_t i = 0; i < n; i++)
	{
		const GjKeptFile *file = store->files[i];

		(*list)[i] = file->counts;
		ncolumns += list_columns(file, &(*list)[i], columns ? *columns + ncolumns : NULL);
	}
	pthread_mutex_unlock(&memory->lock);
	return n;
}

uint32_t
gj_resident_files(GjDeviceEntry *entry, uint32_t first, uint32_t max, GjRelationKey *keys)
{
	GjDeviceMemory *memory = &entry->memory;
	const GjResident *store;
	uint32_t	n = 0;

	pthread_mutex_lock(&memory->lock);
	store = gj_store_of(memory);
	while (store && n < max && first + n < store->nfiles)
	{
		keys[n] = store->files[first + n]->counts.relation;
		n++;
	}
	pthread_mutex_unlock(&memory->lock);
	return n;
}
