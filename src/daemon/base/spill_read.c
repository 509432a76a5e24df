/*
 * spill_read.c
 *	  Reads records that are kept on the host: where they lie, or into slots.
 */
#include "spill_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes of records that are worth several threads. */
#define GJ_MANY_BYTES		(UINT64_C(256) * 1024)

/* Where a record goes. */
typedef struct GjSpillPlace
{
	uint32_t	slot;
	uint32_t	row;
	uint32_t	heap;
} GjSpillPlace;

/* Reads a record out of its file.  False: it is not there. */
static bool
read_file(const GjSpillRecord *record, uint8_t *to)
{
	for (uint64_t done = 0; done < record->nbytes;)
	{
		ssize_t		n = pread(record->fd, to + done, record->nbytes - done,
							  (off_t) (record->offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (uint64_t) n;
	}
	return true;
}

GjStatus
gj_spill_view(const GjSpillRecord *record, const GjColumnType *types, uint32_t ncolumns,
			  uint8_t **buffer, uint64_t *nbytes, GjSpillView *view)
{
	const uint8_t *bytes = record->memory;
	const uint8_t *at;

	if (!bytes && *nbytes < record->nbytes)
	{
		free(*buffer);
		*buffer = malloc(record->nbytes);
		*nbytes = *buffer ? record->nbytes : 0;
	}
	if (!bytes && (*nbytes < record->nbytes || !read_file(record, *buffer)))
		return GJ_OUT_OF_HOST_MEMORY;
	if (!bytes)
		bytes = *buffer;
	at = bytes + gj_align8(ncolumns);
	for (uint32_t c = 0; c < ncolumns; c++)
	{
		view->data[c] = at;
		at += gj_align8((uint64_t) record->nrows * types[c].width);
		view->nulls[c] = bytes[c] ? at : NULL;
		if (bytes[c])
			at += gj_align8(record->nrows);
	}
	view->heap = bytes + record->nbytes - record->heap_used;
	return GJ_OK;
}

/* Copies values that this thread does not read again. */
static void
copy_values(uint8_t *to, const uint8_t *from, size_t nbytes)
{
	size_t		at = 0;

	if ((uintptr_t) to % sizeof(uint64_t) == 0)
		for (; at + sizeof(uint64_t) <= nbytes; at += sizeof(uint64_t))
			gj_stream64((uint64_t *) (to + at), *(const uint64_t *) (from + at));
	memcpy(to + at, from + at, nbytes - at);
}

/* Copies references to bytes that go behind `heap` others. */
static void
copy_refs(uint64_t *to, const uint8_t *from, uint32_t n, uint32_t heap)
{
	memcpy(to, from, n * sizeof(uint64_t));
	for (uint32_t i = 0; i < n && heap > 0; i++)
		if (gj_ref_length(to[i]) != GJ_REF_HELD)
			to[i] += gj_ref_make(heap, 0);
}

/* Copies the columns of a record to where they go. */
static void
copy_columns(const GjSpillFill *fill, uint32_t item, const uint8_t *bytes)
{
	const GjSpillSlot *slot = &fill->slots[fill->at[item].slot];
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

		if (slot->types[c].kind == GJ_REF)
			copy_refs((uint64_t *) to, at, n, heap);
		else
			copy_values(to, at, (size_t) n * width);
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
	gj_stream_end();
}

static void
copy_record(void *arg, uint32_t item, const GjTile *tile)
{
	GjSpillFill *fill = arg;
	const GjSpillRecord *record = &fill->records[item];
	uint8_t    *bytes;

	if (record->memory)
	{
		copy_columns(fill, item, record->memory);
		return;
	}
	bytes = malloc(record->nbytes);
	if (bytes && read_file(record, bytes))
		copy_columns(fill, item, bytes);
	else
		__atomic_store_n(&fill->status, GJ_OUT_OF_HOST_MEMORY, __ATOMIC_RELAXED);
	free(bytes);
}

uint32_t
gj_spill_count(const GjSpillRecord *records, uint32_t n, const GjLayout *layout)
{
	uint32_t	rows = layout->capacity;
	uint32_t	heap = layout->heap_size;
	uint32_t	i;

	for (i = 0; i < n && records[i].nrows <= rows && records[i].heap_used <= heap; i++)
	{
		rows -= records[i].nrows;
		heap -= records[i].heap_used;
	}
	return i;
}

/* Finds the places of a slot's records, up to end-1; writes its header. */
static void
place_records(GjSpillFill *fill, uint32_t i, uint32_t end)
{
	GjSpillSlot *slot = &fill->slots[i];
	uint32_t	ncolumns = slot->layout->ncolumns;
	GjSlotHeader header = {0, 0};
	uint64_t	nulls = 0;

	memset(slot->memory, 0, gj_slot_header_size(ncolumns));
	for (uint32_t r = slot->first; r < end; r++)
	{
		fill->at[r].slot = i;
		fill->at[r].row = header.nrows;
		fill->at[r].heap = header.heap_used;
		header.nrows += fill->records[r].nrows;
		header.heap_used += fill->records[r].heap_used;
		nulls |= fill->records[r].nulls;
	}
	/* records without any get a map then, too */
	for (uint32_t c = 0; c < ncolumns && nulls; c++)
		gj_slot_has_nulls(slot->memory)[c] = nulls >> c % 64 & 1;
	memcpy(slot->memory, &header, sizeof(header));
	slot->nrows = header.nrows;
}

GjStatus
gj_spill_fill_start(GjSpillFill *fill, const GjSpillRecord *records, uint32_t n, GjSpillSlot *slots,
					uint32_t nslots, GjPool *pool)
{
	uint64_t	nbytes = 0;

	*fill = (GjSpillFill) {.records = records,.slots = slots,.status = GJ_OK};
	for (uint32_t more; fill->nslots < nslots && fill->nrecords < n; fill->nrecords += more)
	{
		GjSpillSlot *slot = &slots[fill->nslots++];

		slot->first = fill->nrecords;
		more = gj_spill_count(records + fill->nrecords, n - fill->nrecords, slot->layout);
		if (more == 0)
			return GJ_BAD_PROGRAM;
	}
	fill->at = malloc(fill->nrecords * sizeof(GjSpillPlace));
	if (!fill->at)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < fill->nslots; i++)
		place_records(fill, i, i + 1 < fill->nslots ? slots[i + 1].first : fill->nrecords);
	for (uint32_t i = 0; i < fill->nrecords; i++)
		nbytes += records[i].nbytes;
	if (pool && nbytes >= GJ_MANY_BYTES)
	{
		fill->pool = pool;
		gj_pool_start(pool, &fill->job, fill->nrecords, copy_record, fill);
	}
	return GJ_OK;
}

GjStatus
gj_spill_fill_end(GjSpillFill *fill)
{
	if (fill->pool)
		gj_pool_finish(fill->pool, &fill->job, NULL, NULL, NULL);
	else
		for (uint32_t i = 0; i < fill->nrecords && fill->status == GJ_OK; i++)
			copy_record(fill, i, NULL);
	free(fill->at);
	return fill->status;
}

GjStatus
gj_spill_fill(const GjSpillRecord *records, uint32_t n, GjSpillSlot *slot, uint32_t *ndone)
{
	GjSpillFill fill;

	GJ_TRY(gj_spill_fill_start(&fill, records, n, slot, 1, NULL));
	*ndone = fill.nrecords;
	return gj_spill_fill_end(&fill);
}
