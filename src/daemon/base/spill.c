/*
 * spill.c
 *	  Rows kept on the host: records, written to memory or to files, and lists of
 *	  them; see spill.h.
 */
#define _GNU_SOURCE
#include "spill_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- open and close */

void
gj_spill_open(GjSpill *spill, uint64_t memory_limit, const GjTempFiles *files)
{
	memset(spill, 0, sizeof(*spill));
	spill->memory_limit = memory_limit;
	spill->files = *files;
	pthread_mutex_init(&spill->lock, NULL);
	gj_spill_blocks_open(spill);
}

void
gj_spill_close(GjSpill *spill)
{
	gj_spill_blocks_close();
	gj_temp_give(&spill->files, spill->file_used);
	pthread_mutex_destroy(&spill->lock);
}

void
gj_spill_writer_open(GjSpillWriter *writer, GjSpill *spill)
{
	memset(writer, 0, sizeof(*writer));
	writer->spill = spill;
	writer->fd = -1;
}

void
gj_spill_writer_close(GjSpillWriter *writer)
{
	if (writer->block)
		gj_spill_leave_block(writer->block);
	writer->block = NULL;
	free(writer->buffer);
	writer->buffer = NULL;
	if (writer->fd >= 0)
		close(writer->fd);
	writer->fd = -1;
}

static GjStatus
no_room(GjErrorText *why, const char *what, int error)
{
	char		text[128] = "";

	if (error != 0)
		snprintf(why->text, sizeof(why->text), "%s: %s", what,
				 strerror_r(error, text, sizeof(text)));
	else
		snprintf(why->text, sizeof(why->text), "%s", what);
	return GJ_OUT_OF_HOST_MEMORY;
}

static GjStatus
open_file(GjSpillWriter *writer, GjErrorText *why)
{
	const char *directory = writer->spill->files.directory;

	if (writer->fd >= 0)
		return GJ_OK;
	if (directory[0] == '\0')
		return no_room(why, "there is no directory for temporary files", 0);
	writer->fd = gj_temp_file_open(directory);
	return writer->fd >= 0 ? GJ_OK : no_room(why, "could not create a temporary file", errno);
}

/* ---- writing */

/* The bytes of a record of these rows, and the heap among them, of which *heap_left can be. */
static GjStatus
measure(const GjChunk *chunk, const GjColumnType *types, const uint32_t *positions, uint32_t first,
		uint64_t *heap_left, GjSpillRecord *record, GjErrorText *why)
{
	uint64_t	nbytes = gj_align8(chunk->layout->ncolumns);
	uint64_t	heap = 0;
	uint32_t	n = record->nrows;

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
	if (heap > *heap_left)
	{
		snprintf(why->text, sizeof(why->text), "a chunk has a damaged heap");
		return GJ_BAD_PROGRAM;
	}
	*heap_left -= heap;
	record->nulls = 0;
	for (uint32_t c = 0; c < chunk->layout->ncolumns; c++)
		record->nulls |= (uint64_t) (chunk->has_nulls[c] != 0) << c % 64;
	record->heap_used = (uint32_t) heap;
	record->nbytes = nbytes + heap;
	return GJ_OK;
}

/* PUT(to, value) for each of the values. */
#define GATHER(type, PUT) \
	for (uint32_t i = 0; i < n; i++) \
		PUT((type *) to + i, ((const type *) from)[positions[first + i]])
#define STORE(to, value)	(*(to) = (value))

/*
 * to[i] = from[positions[first + i]], values of `width` bytes.  `stream`: this thread does not
 * read them again.
 */
static void
gather(uint8_t *to, const uint8_t *from, uint32_t width, const uint32_t *positions,
	   uint32_t first, uint32_t n, bool stream)
{
	if (!positions)
	{
		memcpy(to, from + (size_t) first * width, (size_t) n * width);
		return;
	}
	if (stream && width == 8)
		GATHER(uint64_t, gj_stream64);
	else if (stream && width == 4)
		GATHER(uint32_t, gj_stream32);
	else if (width == 8)
		GATHER(uint64_t, STORE);
	else if (width == 4)
		GATHER(uint32_t, STORE);
	else if (width == 2)
		GATHER(uint16_t, STORE);
	else if (width == 1)
		GATHER(uint8_t, STORE);
	else
		for (uint32_t i = 0; i < n; i++)
			memcpy(to + (size_t) i * width, from + (size_t) positions[first + i] * width, width);
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
		/* what refers to bytes is read once more, and what goes to a file by that thread */
		gather(at, chunk->slot + chunk->places[c].data, types[c].width, positions, first, n,
			   record->memory && types[c].kind != GJ_REF);
		if (types[c].kind == GJ_REF &&
			!gather_heap((uint64_t *) at, n, chunk, heap, record->heap_used, &used))
		{
			snprintf(why->text, sizeof(why->text), "a chunk has a bad reference");
			return GJ_BAD_PROGRAM;
		}
		at += gj_align8((uint64_t) n * types[c].width);
		if (!chunk->has_nulls[c])
			continue;
		gather(at, chunk->slot + chunk->places[c].nulls, 1, positions, first, n, false);
		at += gj_align8(n);
	}
	gj_stream_end();
	return GJ_OK;
}

/* Writes bytes to the end of the writer's file. */
static GjStatus
write_file(GjSpillWriter *writer, uint64_t nbytes, GjErrorText *why)
{
	for (uint64_t done = 0; done < nbytes;)
	{
		ssize_t		n = pwrite(writer->fd, writer->buffer + done, nbytes - done,
							   (off_t) (writer->file_end + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return no_room(why, "could not write to a temporary file", n < 0 ? errno : ENOSPC);
		done += (uint64_t) n;
	}
	writer->file_end += nbytes;
	return GJ_OK;
}

static bool
grow_buffer(GjSpillWriter *writer, uint64_t nbytes)
{
	if (nbytes <= writer->buffer_bytes)
		return true;
	free(writer->buffer);
	writer->buffer = malloc(nbytes);
	writer->buffer_bytes = writer->buffer ? nbytes : 0;
	return writer->buffer != NULL;
}

/*
 * Counts the records' bytes: the first *nmemory are to be in memory, as many as there is room
 * for, the others, of *file_bytes, in the file.
 */
static GjStatus
reserve(GjSpill *spill, const GjSpillRecord *records, uint32_t n, uint32_t *nmemory,
		uint64_t *file_bytes, GjErrorText *why)
{
	GjStatus	status = GJ_OK;
	uint64_t	memory = 0;
	uint32_t	i;

	*file_bytes = 0;
	pthread_mutex_lock(&spill->lock);
	for (i = 0; i < n &&
		 records[i].nbytes <= spill->memory_limit - spill->memory_used - memory; i++)
		memory += records[i].nbytes;
	*nmemory = i;
	for (; i < n; i++)
		*file_bytes += records[i].nbytes;
	if (*file_bytes > 0 && !gj_temp_take(&spill->files, *file_bytes))
		status = no_room(why, "gpujoin.spill_memory and temp_file_limit do not suffice", 0);
	else
	{
		spill->file_used += *file_bytes;
		spill->memory_used += memory;
		if (spill->memory_used > spill->memory_peak)
			spill->memory_peak = spill->memory_used;
	}
	pthread_mutex_unlock(&spill->lock);
	return status;
}

static void
give_memory(GjSpill *spill, uint64_t nbytes)
{
	pthread_mutex_lock(&spill->lock);
	spill->memory_used -= nbytes;
	pthread_mutex_unlock(&spill->lock);
}

/* Writes records, whose bytes are counted: the first nmemory to memory, the others to the file. */
static GjStatus
write_records(GjSpillWriter *writer, const GjChunk *chunk, const GjColumnType *types,
			  const uint32_t *positions, uint32_t first, GjSpillRecord *records, uint32_t n,
			  uint32_t nmemory, uint64_t file_bytes, GjErrorText *why)
{
	uint64_t	at = 0;

	if (file_bytes > 0)
		GJ_TRY(open_file(writer, why));
	if (!grow_buffer(writer, file_bytes))
		return no_room(why, "out of memory", 0);
	for (uint32_t i = 0; i < n; i++)
	{
		GjSpillRecord *record = &records[i];
		uint8_t    *to;

		if (i < nmemory)
		{
			if (!gj_spill_take_memory(writer, record))
				return no_room(why, "out of memory", 0);
			to = record->memory;
		}
		else
		{
			to = writer->buffer + at;
			record->fd = writer->fd;
			record->offset = writer->file_end + at;
			at += record->nbytes;
		}
		GJ_TRY(write_record(chunk, types, positions, first, record, to, why));
		first += record->nrows;
	}
	return write_file(writer, file_bytes, why);
}

/* Makes the records where there is room: in memory, else in the file. */
static GjStatus
make_records(GjSpillWriter *writer, const GjChunk *chunk, const GjColumnType *types,
			 const uint32_t *positions, uint32_t first, GjSpillRecord *records, uint32_t n,
			 GjErrorText *why)
{
	uint64_t	heap_left = chunk->heap_used;
	uint64_t	file_bytes;
	uint32_t	nmemory;
	uint32_t	at = first;
	GjStatus	status;

	for (uint32_t i = 0; i < n; i++)
	{
		records[i].memory = NULL;
		GJ_TRY(measure(chunk, types, positions, at, &heap_left, &records[i], why));
		at += records[i].nrows;
	}
	GJ_TRY(reserve(writer->spill, records, n, &nmemory, &file_bytes, why));
	status = write_records(writer, chunk, types, positions, first, records, n, nmemory, file_bytes,
						   why);
	for (uint32_t i = 0; i < nmemory && status != GJ_OK; i++)
	{
		if (records[i].memory)
			gj_spill_leave_block(records[i].block);
		records[i].memory = NULL;
		give_memory(writer->spill, records[i].nbytes);
	}
	return status;
}

GjStatus
gj_spill_make(GjSpillWriter *writer, const GjChunk *chunk, const GjColumnType *types,
			  const uint32_t *positions, uint32_t first, GjSpillRecord *records, uint32_t n)
{
	GjSpill    *spill = writer->spill;
	GjErrorText why = {""};
	GjStatus	status = make_records(writer, chunk, types, positions, first, records, n, &why);

	if (status != GJ_OK)
	{
		pthread_mutex_lock(&spill->lock);
		if (spill->error.text[0] == '\0')
			spill->error = why;
		pthread_mutex_unlock(&spill->lock);
	}
	return status;
}

/* ---- lists */

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
gj_spill_add(GjSpillWriter *writer, GjSpillList *list, const GjChunk *chunk,
			 const GjColumnType *types, const uint32_t *positions, uint32_t first, uint32_t n)
{
	GjSpillRecord record = {.nrows = n};
	GjStatus	status;

	if (n == 0)
		return GJ_OK;
	GJ_TRY(gj_spill_make(writer, chunk, types, positions, first, &record, 1));
	status = gj_spill_append(list, &record);
	if (status != GJ_OK)
		gj_spill_drop(writer->spill, &record);
	return status;
}

/* Gives the memory of a record back, but does not count it; its bytes. */
static uint64_t
drop(GjSpillRecord *record)
{
	if (!record->memory)
		return 0;
	gj_spill_leave_block(record->block);
	record->memory = NULL;
	return record->nbytes;
}

void
gj_spill_drop(GjSpill *spill, GjSpillRecord *record)
{
	uint64_t	nbytes = drop(record);

	if (nbytes > 0)
		give_memory(spill, nbytes);
}

/* By where they lie. */
static int
compare_records(const void *a, const void *b)
{
	const GjSpillRecord *x = a;
	const GjSpillRecord *y = b;

	if (x->memory != y->memory)
		return x->memory < y->memory ? -1 : 1;
	if (x->fd != y->fd)
		return x->fd < y->fd ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

GjStatus
gj_spill_join(GjSpillList *lists, uint32_t n, GjSpillList *all)
{
	uint64_t	nrecords = 0;

	memset(all, 0, sizeof(*all));
	for (uint32_t i = 0; i < n; i++)
		nrecords += lists[i].n;
	if (nrecords == 0)
		return GJ_OK;
	if (nrecords > UINT32_MAX)
		return GJ_OUT_OF_HOST_MEMORY;
	all->records = malloc(nrecords * sizeof(GjSpillRecord));
	if (!all->records)
		return GJ_OUT_OF_HOST_MEMORY;
	all->max = (uint32_t) nrecords;
	for (uint32_t i = 0; i < n; i++)
	{
		if (lists[i].n > 0)
			memcpy(all->records + all->n, lists[i].records, lists[i].n * sizeof(GjSpillRecord));
		all->n += lists[i].n;
		all->nrows += lists[i].nrows;
		all->heap_used += lists[i].heap_used;
		free(lists[i].records);
		memset(&lists[i], 0, sizeof(lists[i]));
	}
	qsort(all->records, all->n, sizeof(GjSpillRecord), compare_records);
	return GJ_OK;
}

void
gj_spill_free_list(GjSpill *spill, GjSpillList *list)
{
	uint64_t	nbytes = 0;

	for (uint32_t i = 0; i < list->n; i++)
		nbytes += drop(&list->records[i]);
	if (nbytes > 0)
		give_memory(spill, nbytes);
	free(list->records);
	memset(list, 0, sizeof(*list));
}
