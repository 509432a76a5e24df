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
}

void
gj_spill_close(GjSpill *spill)
{
	if (spill->fd >= 0)
		close(spill->fd);
	free(spill->scratch);
	spill->scratch = NULL;
	spill->fd = -1;
}

static GjStatus
no_room(GjSpill *spill, const char *what, int error)
{
	snprintf(spill->error.text, sizeof(spill->error.text), "%s%s%s", what, error ? ": " : "",
			 error ? strerror(error) : "");
	return GJ_OUT_OF_HOST_MEMORY;
}

/* A file without a name, or one that loses it at once. */
static GjStatus
open_file(GjSpill *spill)
{
	char		path[256];

	if (spill->fd >= 0)
		return GJ_OK;
	if (spill->directory[0] == '\0')
		return no_room(spill, "there is no directory for temporary files", 0);
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
	return spill->fd >= 0 ? GJ_OK : no_room(spill, "could not create a temporary file", errno);
}

/* ---- writing */

/* The bytes of a record of these rows, and the heap among them. */
static GjStatus
measure(GjSpill *spill, const GjChunk *chunk, const GjColumnType *types,
		const uint32_t *positions, uint32_t first, uint32_t n, GjSpillRecord *record)
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
		snprintf(spill->error.text, sizeof(spill->error.text), "a chunk has a damaged heap");
		return GJ_BAD_PROGRAM;
	}
	record->nrows = n;
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
write_record(GjSpill *spill, const GjChunk *chunk, const GjColumnType *types,
			 const uint32_t *positions, uint32_t first, const GjSpillRecord *record, uint8_t *to)
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
			snprintf(spill->error.text, sizeof(spill->error.text), "a chunk has a bad reference");
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

static bool
reserve(uint8_t **buffer, size_t *size, size_t nbytes)
{
	uint8_t    *grown;

	if (*size >= nbytes)
		return true;
	grown = realloc(*buffer, nbytes + nbytes / 4);
	if (!grown)
		return false;
	*buffer = grown;
	*size = nbytes + nbytes / 4;
	return true;
}

/* Appends what is in the scratch buffer to the file. */
static GjStatus
write_file(GjSpill *spill, GjSpillRecord *record)
{
	GJ_TRY(open_file(spill));
	for (uint64_t done = 0; done < record->nbytes;)
	{
		ssize_t		n = pwrite(spill->fd, spill->scratch + done, record->nbytes - done,
							   (off_t) (spill->file_used + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return no_room(spill, "could not write to a temporary file", n < 0 ? errno : ENOSPC);
		done += (uint64_t) n;
	}
	record->offset = spill->file_used;
	spill->file_used += record->nbytes;
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

/* Makes the record where there is room: in memory, else in the file. */
static GjStatus
place_record(GjSpill *spill, const GjChunk *chunk, const GjColumnType *types,
			 const uint32_t *positions, uint32_t first, GjSpillRecord *record)
{
	GjStatus	status;

	record->memory = NULL;
	if (record->nbytes <= spill->memory_limit &&
		spill->memory_used <= spill->memory_limit - record->nbytes)
		record->memory = malloc(record->nbytes);
	if (record->memory)
	{
		status = write_record(spill, chunk, types, positions, first, record, record->memory);
		if (status != GJ_OK)
		{
			free(record->memory);
			return status;
		}
		spill->memory_used += record->nbytes;
		if (spill->memory_used > spill->memory_peak)
			spill->memory_peak = spill->memory_used;
		return GJ_OK;
	}
	if (spill->file_used > spill->temp_limit || record->nbytes > spill->temp_limit - spill->file_used)
		return no_room(spill, "gpujoin.spill_memory and temp_file_limit do not suffice", 0);
	if (!reserve(&spill->scratch, &spill->nscratch, record->nbytes))
		return GJ_OUT_OF_HOST_MEMORY;
	GJ_TRY(write_record(spill, chunk, types, positions, first, record, spill->scratch));
	return write_file(spill, record);
}

GjStatus
gj_spill_add(GjSpill *spill, GjSpillList *list, const GjChunk *chunk, const GjColumnType *types,
			 const uint32_t *positions, uint32_t first, uint32_t n)
{
	GjSpillRecord record;

	if (n == 0)
		return GJ_OK;
	GJ_TRY(measure(spill, chunk, types, positions, first, n, &record));
	GJ_TRY(grow_list(list));
	GJ_TRY(place_record(spill, chunk, types, positions, first, &record));
	list->records[list->n++] = record;
	list->nrows += record.nrows;
	list->heap_used += record.heap_used;
	return GJ_OK;
}

void
gj_spill_free_list(GjSpill *spill, GjSpillList *list)
{
	for (uint32_t i = 0; i < list->n; i++)
	{
		if (!list->records[i].memory)
			continue;
		free(list->records[i].memory);
		spill->memory_used -= list->records[i].nbytes;
	}
	free(list->records);
	memset(list, 0, sizeof(*list));
}

/* ---- reading */

void
gj_spill_start(GjSpillSlot *slot)
{
	slot->nrows = 0;
	slot->heap_used = 0;
	memset(slot->memory, 0, gj_slot_header_size(slot->layout->ncolumns));
}

bool
gj_spill_fits(const GjSpillSlot *slot, const GjSpillRecord *record)
{
	return record->nrows <= slot->layout->capacity - slot->nrows &&
		record->heap_used <= slot->layout->heap_size - slot->heap_used;
}

/* The bytes of a record: in memory, or read from the file. */
static GjStatus
read_record(GjSpill *spill, const GjSpillRecord *record, GjSpillSlot *slot, const uint8_t **bytes)
{
	*bytes = record->memory;
	if (record->memory)
		return GJ_OK;
	if (!reserve(&slot->buffer, &slot->nbuffer, record->nbytes))
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint64_t done = 0; done < record->nbytes;)
	{
		ssize_t		n = pread(spill->fd, slot->buffer + done, record->nbytes - done,
							  (off_t) (record->offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		/* several threads read: the text is not theirs to write */
		if (n <= 0)
			return GJ_OUT_OF_HOST_MEMORY;
		done += (uint64_t) n;
	}
	*bytes = slot->buffer;
	return GJ_OK;
}

static void
fetch_nulls(GjSpillSlot *slot, uint32_t c, const uint8_t *nulls, uint32_t n)
{
	uint8_t    *map = slot->memory + slot->places[c].nulls;
	uint8_t    *has_nulls = gj_slot_has_nulls(slot->memory) + c;

	if (nulls && !*has_nulls)
	{
		memset(map, 0, slot->nrows);
		*has_nulls = 1;
	}
	if (nulls)
		memcpy(map + slot->nrows, nulls, n);
	else if (*has_nulls)
		memset(map + slot->nrows, 0, n);
}

GjStatus
gj_spill_fetch(GjSpill *spill, const GjSpillRecord *record, GjSpillSlot *slot)
{
	uint32_t	ncolumns = slot->layout->ncolumns;
	uint32_t	n = record->nrows;
	GjSlotHeader header;
	const uint8_t *bytes;
	const uint8_t *at;

	GJ_TRY(read_record(spill, record, slot, &bytes));
	at = bytes + gj_align8(ncolumns);
	for (uint32_t c = 0; c < ncolumns; c++)
	{
		uint32_t	width = slot->types[c].width;
		uint8_t    *to = slot->memory + slot->places[c].data + (size_t) slot->nrows * width;

		memcpy(to, at, (size_t) n * width);
		if (slot->types[c].kind == GJ_REF && slot->heap_used > 0)
			for (uint32_t i = 0; i < n; i++)
				if (gj_ref_length(((uint64_t *) to)[i]) != GJ_REF_HELD)
					((uint64_t *) to)[i] += gj_ref_make(slot->heap_used, 0);
		at += gj_align8((uint64_t) n * width);
		fetch_nulls(slot, c, bytes[c] ? at : NULL, n);
		if (bytes[c])
			at += gj_align8(n);
	}
	memcpy(slot->memory + slot->layout->heap + slot->heap_used,
		   bytes + record->nbytes - record->heap_used, record->heap_used);
	slot->nrows += n;
	slot->heap_used += record->heap_used;
	header = (GjSlotHeader) {slot->nrows, slot->heap_used};
	memcpy(slot->memory, &header, sizeof(header));
	return GJ_OK;
}
