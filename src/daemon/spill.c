/*
 * spill.c
 *	  Rows of sources kept on the host; see spill.h.
 *
 * A record is: a byte a column that says whether it has NULLs here; then a column after
 * the other, its values and, if it has NULLs, their map; then the bytes that its references
 * refer to.  Each part starts at a multiple of 8.
 */
#define _GNU_SOURCE
#include "spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define gj_align8(n)	(((uint64_t) (n) + 7) & ~UINT64_C(7))

void
gj_spill_open(GjSpill *spill, uint64_t memory_limit, uint64_t temp_limit, const char *directory)
{
	memset(spill, 0, sizeof(*spill));
	spill->memory_limit = memory_limit;
	spill->temp_limit = temp_limit;
	spill->directory = directory;
	spill->fd = -1;
	pthread_mutex_init(&spill->lock, NULL);
}

void
gj_spill_close(GjSpill *spill)
{
	if (spill->fd >= 0)
		close(spill->fd);
	spill->fd = -1;
	pthread_mutex_destroy(&spill->lock);
}

static GjStatus
no_room(GjErrorText *why, const char *what, int error)
{
	char		text[128] = "";

	if (error != 0)
		snprintf(why->text, sizeof(why->text), "%s: %s", what, strerror_r(error, text, sizeof(text)));
	else
		snprintf(why->text, sizeof(why->text), "%s", what);
	return GJ_OUT_OF_HOST_MEMORY;
}

/* A file without a name, or one that loses it at once.  The lock is held. */
static GjStatus
open_file(GjSpill *spill, GjErrorText *why)
{
	char		path[256];

	if (spill->fd >= 0)
		return GJ_OK;
	if (spill->directory[0] == '\0')
		return no_room(why, "there is no directory for temporary files", 0);
	/* PostgreSQL makes it when it first needs it, too */
	mkdir(spill->directory, 0700);
	spill->fd = open(spill->directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (spill->fd < 0)
	{
		/* the prefix by which PostgreSQL knows what to remove after a crash */
		snprintf(path, sizeof(path), "%s/pgsql_tmp_gpujoind.XXXXXX", spill->directory);
		spill->fd = mkostemp(path, O_CLOEXEC);
		if (spill->fd >= 0)
			unlink(path);
	}
	return spill->fd >= 0 ? GJ_OK : no_room(why, "could not create a temporary file", errno);
}

/* ---- writing */

/* The bytes of a record of these rows, and the heap among them. */
static GjStatus
measure(const GjChunk *chunk, const GjColumnType *types, const uint32_t *positions, uint32_t first,
		uint32_t n, GjSpillRecord *record, GjErrorText *why)
{
	uint64_t	nbytes = gj_align8(chunk->layout->ncolumns);
	uint64_t	heap = 0;

	for (uint32_t c = 0; c < chunk->layout->ncolumns; c++)
	{
		const uint64_t *refs = (const uint64_t *) (chunk->slot + chunk->places[c].data);

		nbytes += gj_align8((uint64_t) n * types[c].width);
		if (chunk->has_nulls[c])
			nbytes += gj_align8(n);
		if (types[c].kind != GJ_REF)
			continue;
		for (uint32_t i = 0; i < n; i++)
			heap += gj_ref_space(refs[positions ? positions[first + i] : first + i]);
	}
	/* rows share no bytes in a chunk, so they cannot have more than it */
	if (heap > chunk->heap_used)
	{
		snprintf(why->text, sizeof(why->text), "a chunk has a damaged heap");
		return GJ_BAD_PROGRAM;
	}
	record->nrows = n;
	record->has_nulls = false;
	for (uint32_t c = 0; c < chunk->layout->ncolumns; c++)
		record->has_nulls |= chunk->has_nulls[c] != 0;
	record->heap_used = (uint32_t) heap;
	record->nbytes = nbytes + heap;
	return GJ_OK;
}

#define GATHER(type) \
	for (uint32_t i = 0; i < n; i++) \
		((type *) to)[i] = ((const type *) from)[positions[first + i]]; \
	break

/* to[i] = from[positions[first + i]], values of `width` bytes. */
static void
gather(uint8_t *to, const uint8_t *from, uint32_t width, const uint32_t *positions,
	   uint32_t first, uint32_t n)
{
	if (!positions)
	{
		memcpy(to, from + (size_t) first * width, (size_t) n * width);
		return;
	}
	switch (width)
	{
		case 1:
			GATHER(uint8_t);
		case 2:
			GATHER(uint16_t);
		case 4:
			GATHER(uint32_t);
		case 8:
			GATHER(uint64_t);
		default:
			for (uint32_t i = 0; i < n; i++)
				memcpy(to + (size_t) i * width, from + (size_t) positions[first + i] * width,
					   width);
	}
}

/*
 * Moves what n references refer to behind *used bytes of `heap` and lets them refer to it.
 * The chunk is memory that others can write to: everything is checked as it is read.
 */
static bool
gather_heap(uint64_t *refs, uint32_t n, const GjChunk *chunk, uint8_t *heap, uint32_t size,
			uint32_t *used)
{
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	ref = refs[i];
		uint64_t	offset = gj_ref_offset(ref);
		uint32_t	space = gj_ref_space(ref);

		if (gj_ref_length(ref) == GJ_REF_HELD)
			continue;
		if (offset % 8 != 0 || offset + space > chunk->heap_used || space > size - *used)
			return false;
		memcpy(heap + *used, chunk->slot + chunk->layout->heap + offset, space);
		refs[i] = gj_ref_make(*used, gj_ref_length(ref));
		*used += space;
	}
	return true;
}

/* Writes the record to `to`. */
static GjStatus
write_record(const GjChunk *chunk, const GjColumnType *types, const uint32_t *positions,
			 uint32_t first, const GjSpillRecord *record, uint8_t *to, GjErrorText *why)
{
	uint32_t	ncolumns = chunk->layout->ncolumns;
	uint32_t	n = record->nrows;
	uint8_t    *at = to + gj_align8(ncolumns);
	uint8_t    *heap = to + record->nbytes - record->heap_used;
	uint32_t	used = 0;

	memcpy(to, chunk->has_nulls, ncolumns);
	for (uint32_t c = 0; c < ncolumns; c++)
	{
		gather(at, chunk->slot + chunk->places[c].data, types[c].width, positions, first,
			   n);
		if (types[c].kind == GJ_REF &&
			!gather_heap((uint64_t *) at, n, chunk, heap, record->heap_used, &used))
		{
			snprintf(why->text, sizeof(why->text), "a chunk has a bad reference");
			return GJ_BAD_PROGRAM;
		}
		at += gj_align8((uint64_t) n * types[c].width);
		if (!chunk->has_nulls[c])
			continue;
		gather(at, chunk->slot + chunk->places[c].nulls, 1, positions, first, n);
		at += gj_align8(n);
	}
	return GJ_OK;
}

/* Takes a place in the file for the record. */
static GjStatus
reserve_file(GjSpill *spill, GjSpillRecord *record, GjErrorText *why)
{
	GjStatus	status;

	pthread_mutex_lock(&spill->lock);
	if (spill->file_used > spill->temp_limit ||
		record->nbytes > spill->temp_limit - spill->file_used)
		status = no_room(why, "gpujoin.spill_memory and temp_file_limit do not suffice", 0);
	else
		status = open_file(spill, why);
	if (status == GJ_OK)
	{
		record->offset = spill->file_used;
		spill->file_used += record->nbytes;
	}
	pthread_mutex_unlock(&spill->lock);
	return status;
}

/* Writes the record's bytes to its place in the file. */
static GjStatus
write_file(const GjSpill *spill, const GjSpillRecord *record, const uint8_t *bytes, GjErrorText *why)
{
	for (uint64_t done = 0; done < record->nbytes;)
	{
		ssize_t		n = pwrite(spill->fd, bytes + done, record->nbytes - done,
							   (off_t) (record->offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return no_room(why, "could not write to a temporary file", n < 0 ? errno : ENOSPC);
		done += (uint64_t) n;
	}
	return GJ_OK;
}

static GjStatus
grow_list(GjSpillList *list)
{
	uint32_t	max = list->max ? list->max * 2 : 16;
	GjSpillRecord *grown;

	if (list->n < list->max)
		return GJ_OK;
	grown = realloc(list->records, max * sizeof(GjSpillRecord));
	if (!grown)
		return GJ_OUT_OF_HOST_MEMORY;
	list->records = grown;
	list->max = max;
	return GJ_OK;
}

/* Counts memory for the record.  False: there is none left. */
static bool
take_memory(GjSpill *spill, uint64_t nbytes)
{
	bool		ok;

	pthread_mutex_lock(&spill->lock);
	ok = nbytes <= spill->memory_limit && spill->memory_used <= spill->memory_limit - nbytes;
	if (ok)
		spill->memory_used += nbytes;
	if (spill->memory_used > spill->memory_peak)
		spill->memory_peak = spill->memory_used;
	pthread_mutex_unlock(&spill->lock);
	return ok;
}

static void
give_memory(GjSpill *spill, uint64_t nbytes)
{
	pthread_mutex_lock(&spill->lock);
	spill->memory_used -= nbytes;
	pthread_mutex_unlock(&spill->lock);
}

/* Makes the record where there is room: in memory, else in the file. */
static GjStatus
place_record(GjSpill *spill, const GjChunk *chunk, const GjColumnType *types,
			 const uint32_t *positions, uint32_t first, GjSpillRecord *record, GjErrorText *why)
{
	bool		in_memory = take_memory(spill, record->nbytes);
	uint8_t    *bytes = malloc(record->nbytes);
	GjStatus	status;

	record->memory = NULL;
	if (!bytes)
	{
		if (in_memory)
			give_memory(spill, record->nbytes);
		return no_room(why, "out of memory", 0);
	}
	status = write_record(chunk, types, positions, first, record, bytes, why);
	if (status == GJ_OK && in_memory)
	{
		record->memory = bytes;
		return GJ_OK;
	}
	if (in_memory)
		give_memory(spill, record->nbytes);
	else if (status == GJ_OK)
		status = reserve_file(spill, record, why);
	if (status == GJ_OK)
		status = write_file(spill, record, bytes, why);
	free(bytes);
	return status;
}

GjStatus
gj_spill_make(GjSpill *spill, const GjChunk *chunk, const GjColumnType *types,
			  const uint32_t *positions, uint32_t first, uint32_t n, GjSpillRecord *record)
{
	GjErrorText why = {""};
	GjStatus	status = measure(chunk, types, positions, first, n, record, &why);

	if (status == GJ_OK)
		status = place_record(spill, chunk, types, positions, first, record, &why);
	if (status != GJ_OK)
	{
		pthread_mutex_lock(&spill->lock);
		if (spill->error.text[0] == '\0')
			spill->error = why;
		pthread_mutex_unlock(&spill->lock);
	}
	return status;
}

GjStatus
gj_spill_append(GjSpillList *list, const GjSpillRecord *record)
{
	GJ_TRY(grow_list(list));
	list->records[list->n++] = *record;
	list->nrows += record->nrows;
	list->heap_used += record->heap_used;
	return GJ_OK;
}

GjStatus
gj_spill_add(GjSpill *spill, GjSpillList *list, const GjChunk *chunk, const GjColumnType *types,
			 const uint32_t *positions, uint32_t first, uint32_t n)
{
	GjSpillRecord record;
	GjStatus	status;

	if (n == 0)
		return GJ_OK;
	GJ_TRY(gj_spill_make(spill, chunk, types, positions, first, n, &record));
	status = gj_spill_append(list, &record);
	if (status != GJ_OK)
		gj_spill_drop(spill, &record);
	return status;
}

void
gj_spill_drop(GjSpill *spill, GjSpillRecord *record)
{
	if (!record->memory)
		return;
	free(record->memory);
	record->memory = NULL;
	give_memory(spill, record->nbytes);
}

void
gj_spill_free_list(GjSpill *spill, GjSpillList *list)
{
	for (uint32_t i = 0; i < list->n; i++)
		gj_spill_drop(spill, &list->records[i]);
	free(list->records);
	memset(list, 0, sizeof(*list));
}

/* ---- reading */

/* Bytes of records that are worth several threads. */
#define GJ_MANY_BYTES		(UINT64_C(256) * 1024)

/* Records on their way into a slot. */
typedef struct GjFill
{
	const GjSpill *spill;
	const GjSpillRecord *records;
	GjSpillSlot *slot;
	struct
	{
		uint32_t	row;
		uint32_t	heap;
	}		   *at;				/* where each record goes */
	GjStatus	status;			/* of one that failed; atomic */
} GjFill;

/* Reads bytes of the file.  False: they are not there. */
static bool
read_file(const GjSpill *spill, uint64_t offset, uint64_t nbytes, uint8_t *to)
{
	for (uint64_t done = 0; done < nbytes;)
	{
		ssize_t		n = pread(spill->fd, to + done, nbytes - done, (off_t) (offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (uint64_t) n;
	}
	return true;
}

/* Copies the columns of a record to where they go. */
static void
copy_columns(const GjFill *fill, uint32_t item, const uint8_t *bytes)
{
	const GjSpillSlot *slot = fill->slot;
	const GjSpillRecord *record = &fill->records[item];
	uint32_t	row = fill->at[item].row;
	uint32_t	heap = fill->at[item].heap;
	uint32_t	n = record->nrows;
	const uint8_t *at = bytes + gj_align8(slot->layout->ncolumns);

	for (uint32_t c = 0; c < slot->layout->ncolumns; c++)
	{
		uint32_t	width = slot->types[c].width;
		uint8_t    *to = slot->memory + slot->places[c].data + (size_t) row * width;
		uint8_t    *nulls = slot->memory + slot->places[c].nulls + row;

		memcpy(to, at, (size_t) n * width);
		if (slot->types[c].kind == GJ_REF && heap > 0)
			for (uint32_t i = 0; i < n; i++)
				if (gj_ref_length(((uint64_t *) to)[i]) != GJ_REF_HELD)
					((uint64_t *) to)[i] += gj_ref_make(heap, 0);
		at += gj_align8((uint64_t) n * width);
		if (bytes[c])
		{
			memcpy(nulls, at, n);
			at += gj_align8(n);
		}
		else if (gj_slot_has_nulls(slot->memory)[c])
			memset(nulls, 0, n);
	}
	memcpy(slot->memory + slot->layout->heap + heap, bytes + record->nbytes - record->heap_used,
		   record->heap_used);
}

static void
copy_record(void *arg, uint32_t item, const GjTile *tile)
{
	GjFill	   *fill = arg;
	const GjSpillRecord *record = &fill->records[item];
	uint8_t    *bytes;

	if (record->memory)
	{
		copy_columns(fill, item, record->memory);
		return;
	}
	bytes = malloc(record->nbytes);
	if (bytes && read_file(fill->spill, record->offset, record->nbytes, bytes))
		copy_columns(fill, item, bytes);
	else
		__atomic_store_n(&fill->status, GJ_OUT_OF_HOST_MEMORY, __ATOMIC_RELAXED);
	free(bytes);
}

/* Notes which columns of a record have NULLs. */
static bool
note_nulls(const GjSpill *spill, const GjSpillRecord *record, uint32_t ncolumns, uint8_t *has_nulls)
{
	uint8_t		buffer[GJ_MAX_COLUMNS];
	const uint8_t *bytes = record->memory;

	if (!record->has_nulls)
		return true;
	if (!bytes)
	{
		if (!read_file(spill, record->offset, ncolumns, buffer))
			return false;
		bytes = buffer;
	}
	for (uint32_t c = 0; c < ncolumns; c++)
		has_nulls[c] |= bytes[c];
	return true;
}

/* How many of n records a slot has room for; sets its numbers. */
static uint32_t
count_fitting(const GjSpillRecord *records, uint32_t n, GjSpillSlot *slot)
{
	uint32_t	i;

	slot->nrows = slot->heap_used = 0;
	for (i = 0; i < n && records[i].nrows <= slot->layout->capacity - slot->nrows &&
		 records[i].heap_used <= slot->layout->heap_size - slot->heap_used; i++)
	{
		slot->nrows += records[i].nrows;
		slot->heap_used += records[i].heap_used;
	}
	return i;
}

GjStatus
gj_spill_fill(GjSpill *spill, const GjSpillRecord *records, uint32_t n, GjSpillSlot *slot,
			  GjPool *pool, uint32_t *ndone)
{
	uint32_t	ncolumns = slot->layout->ncolumns;
	GjFill		fill = {.spill = spill,.records = records,.slot = slot,.status = GJ_OK};
	GjSlotHeader header = {0, 0};
	uint64_t	nbytes = 0;

	n = *ndone = count_fitting(records, n, slot);
	if (n == 0)
		return GJ_BAD_PROGRAM;
	fill.at = malloc(n * sizeof(*fill.at));
	if (!fill.at)
		return GJ_OUT_OF_HOST_MEMORY;
	memset(slot->memory, 0, gj_slot_header_size(ncolumns));
	for (uint32_t i = 0; i < n; i++)
	{
		fill.at[i].row = header.nrows;
		fill.at[i].heap = header.heap_used;
		header.nrows += records[i].nrows;
		header.heap_used += records[i].heap_used;
		nbytes += records[i].nbytes;
		if (!note_nulls(spill, &records[i], ncolumns, gj_slot_has_nulls(slot->memory)))
			fill.status = GJ_OUT_OF_HOST_MEMORY;
	}
	memcpy(slot->memory, &header, sizeof(header));
	if (fill.status == GJ_OK && pool && nbytes >= GJ_MANY_BYTES)
		gj_pool_run(pool, n, copy_record, &fill, NULL, NULL, NULL);
	else
		for (uint32_t i = 0; i < n && fill.status == GJ_OK; i++)
			copy_record(&fill, i, NULL);
	free(fill.at);
	return fill.status;
}
