/*
 * spool.c
 *	  Keeps the batches of a run that must complete before its first row is returned.
 *
 * Only the used parts of a batch are stored: the slot's header, each column's values
 * and, where the batch has NULLs, null map, and the used heap.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "storage/buffile.h"

#include "exec/spool.h"

struct GjSpool
{
	GjLayout	layout;
	const GjColumnType *types;
	const GjColumnPlace *places;
	MemoryContext cxt;
	List	   *batches;		/* packed, in memory */
	Size		nbytes;
	int			next;
	BufFile    *file;			/* the batches after those in memory */
	uint64		nfile;			/* how many it holds */
	bool		reading;
	uint8	   *slot;			/* where a batch is unpacked */
};

typedef void (*PartFunction) (void *to_or_from, uint8 *part, Size nbytes);

GjSpool *
gj_spool_create(const GjLayout *layout, const GjColumnType *types, const GjColumnPlace *places)
{
	GjSpool    *spool = palloc0(sizeof(GjSpool));

	spool->layout = *layout;
	spool->types = types;
	spool->places = places;
	spool->cxt = CurrentMemoryContext;
	return spool;
}

/* Calls f for the header of a slot, and once that is in place for each used part. */
static void
for_each_part(const GjSpool *spool, uint8 *slot, PartFunction f, void *arg)
{
	GjSlotHeader *header = (GjSlotHeader *) slot;

	f(arg, slot, gj_slot_header_size(spool->layout.ncolumns));
	for (uint32 i = 0; i < spool->layout.ncolumns; i++)
	{
		f(arg, slot + spool->places[i].data, (Size) header->nrows * spool->types[i].width);
		if (gj_slot_has_nulls(slot)[i])
			f(arg, slot + spool->places[i].nulls, header->nrows);
	}
	f(arg, slot + spool->layout.heap, header->heap_used);
}

static void
measure_part(void *total, uint8 *part, Size nbytes)
{
	*(Size *) total += nbytes;
}

static void
pack_part(void *to, uint8 *part, Size nbytes)
{
	memcpy(*(uint8 **) to, part, nbytes);
	*(uint8 **) to += nbytes;
}

static void
unpack_part(void *from, uint8 *part, Size nbytes)
{
	memcpy(part, *(uint8 **) from, nbytes);
	*(uint8 **) from += nbytes;
}

static void
write_part(void *file, uint8 *part, Size nbytes)
{
	BufFileWrite(file, part, nbytes);
}

static void
read_part(void *file, uint8 *part, Size nbytes)
{
	if (BufFileRead(file, part, nbytes) != nbytes)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read back a batch of gpujoin's from a temporary file")));
}

void
gj_spool_add(GjSpool *spool, const uint8 *batch)
{
	MemoryContext old = MemoryContextSwitchTo(spool->cxt);
	uint8	   *slot = unconstify(uint8 *, batch);
	Size		nbytes = 0;

	for_each_part(spool, slot, measure_part, &nbytes);
	if (spool->file == NULL && spool->nbytes + nbytes <= (Size) work_mem * 1024L)
	{
		uint8	   *packed = palloc(nbytes);
		uint8	   *to = packed;

		for_each_part(spool, slot, pack_part, &to);
		spool->batches = lappend(spool->batches, packed);
		spool->nbytes += nbytes;
	}
	else
	{
		if (spool->file == NULL)
			spool->file = BufFileCreateTemp(false);
		for_each_part(spool, slot, write_part, spool->file);
		spool->nfile++;
	}
	MemoryContextSwitchTo(old);
}

const uint8 *
gj_spool_next(GjSpool *spool)
{
	if (spool->slot == NULL)
		spool->slot = MemoryContextAlloc(spool->cxt, GJ_OUTPUT_SLOT_SIZE);
	if (spool->next < list_length(spool->batches))
	{
		uint8	   *from = list_nth(spool->batches, spool->next++);

		for_each_part(spool, spool->slot, unpack_part, &from);
		return spool->slot;
	}
	if (spool->nfile == 0)
		return NULL;
	if (!spool->reading)
	{
		if (BufFileSeek(spool->file, 0, 0, SEEK_SET) != 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not rewind a temporary file of gpujoin's")));
		spool->reading = true;
	}
	spool->nfile--;
	for_each_part(spool, spool->slot, read_part, spool->file);
	return spool->slot;
}

void
gj_spool_end(GjSpool *spool)
{
	if (spool->file)
		BufFileClose(spool->file);
	spool->file = NULL;
}
