/*
 * test_store.c
 *	  A resident store of the cpu device for tests, and fragments in it.
 */
#include <stdlib.h>
#include <string.h>

#include "test_store.h"

const GjColumnType store_types[2] = {{GJ_INT4, 4, 0, 0}, {GJ_REF, 8, 1, 0}};
const GjMemoryLimits unlimited = {0};
const GjColumnKey store_keys[2] = {{{1, 2}, 1, 0}, {{3, 4}, 2, 0}};

bool
open_store(Store *s, uint64_t memory, uint64_t cache)
{
	const GjProgram none = {.magic = GJ_PROGRAM_MAGIC,.nbytes = sizeof(GjProgram)};
	GjErrorText why = {""};
	GjDeviceEntry *cpu = gj_devices_choose(GJ_DEVICE_CPU, &why);

	memset(s, 0, sizeof(*s));
	if (!CHECK(cpu != NULL))
		return false;
	s->entry = *cpu;
	gj_memory_init(&s->entry.memory, memory);
	s->store = gj_resident_store(&s->entry, cache);
	s->slot = calloc(1, GJ_LOAD_SLOT_SIZE);
	s->pages = calloc(1, sizeof(GjChunkPages));
	s->wanted = (GjWanted) {{1, 2, 3, 4}, 2, store_keys, store_types};
	s->work = (GjWork) {.ops = s->entry.ops,.lease = &s->lease};
	return CHECK(s->store && s->slot && s->pages) &&
		CHECK(s->entry.ops->queues->queue_open(s->entry.device, &none, &s->work.queue, &why) == GJ_OK) &&
		CHECK(gj_lease_start(&s->lease, &s->entry.memory, 0, &unlimited, NULL, NULL) == GJ_OK) &&
		CHECK(gj_layout(store_types, 2, NROWS, GJ_LOAD_CHUNK_SIZE, &s->layout, s->places));
}

void
close_store(Store *s)
{
	GjErrorText why;

	gj_resident_evict(&s->entry, 0, 0);
	CHECK_EQUAL(s->entry.memory.resident, 0);
	CHECK_EQUAL(s->entry.memory.pinned, 0);
	CHECK(s->entry.ops->queues->queue_close(s->work.queue, &why) == GJ_OK);
	gj_lease_end(&s->lease);
	/* else a store lives as long as the process */
	CHECK(s->entry.ops->queues->queue_close(s->store->queue, &why) == GJ_OK);
	CHECK_EQUAL(s->store->nfiles + s->store->nsides, 0);
	gj_files_free(s->store);
	free(s->store);
	free(s->slot);
	free(s->pages);
}

GjChunk
fill_chunk(Store *s, uint32_t first_page, uint32_t npages, int32_t base)
{
	for (uint32_t i = 0; i < NROWS; i++)
	{
		((int32_t *) (s->slot + s->places[0].data))[i] = base + (int32_t) i;
		((uint64_t *) (s->slot + s->places[1].data))[i] = gj_ref_make(i % 4 * 8, 8);
		s->slot[s->places[1].nulls + i] = i % 10 == 0;
	}
	memcpy(s->slot + s->layout.heap, "text 000text 001text 002text 003", 32);
	((char *) s->slot + s->layout.heap)[5] = (char) ('0' + base / NROWS % 10);
	*(GjSlotHeader *) s->slot = (GjSlotHeader) {NROWS, 32};
	memcpy(gj_slot_has_nulls(s->slot), "\0\1", 2);
	memset(s->pages, 0, sizeof(*s->pages));
	s->pages->first = first_page;
	s->pages->n = npages;
	s->pages->npages = NPAGES;
	s->pages->map_lsn = 77;
	for (uint32_t i = 0; i < npages; i++)
	{
		s->pages->lsn[i] = 1000 + first_page + i;
		s->pages->nrows[i] = (uint16_t) (NROWS / npages | (first_page + i == 3 ? 0 : GJ_PAGE_VISIBLE));
	}
	return (GjChunk) {s->slot, NROWS, 32, &s->layout, s->places, gj_slot_has_nulls(s->slot)};
}

GjFragment *
load_fragment(Store *s, uint32_t number)
{
	GjFragment *f = gj_fragment_create(&s->wanted, number, NPAGES);
	uint64_t	clock = gj_resident_clock(s->store);
	GjStatus	status = f ? GJ_OK : GJ_OUT_OF_HOST_MEMORY;

	for (uint32_t half = 0; half < 2 && status == GJ_OK; half++)
	{
		GjChunk		chunk = fill_chunk(s, half * NPAGES / 2, NPAGES / 2,
									   (int32_t) ((number * 2 + half) * NROWS));

		status = gj_fragment_append(s->store, &s->work, GJ_LANE_WORK, clock, f, &chunk, s->pages);
		/* the slot is used again */
		if (status == GJ_OK)
			status = s->work.ops->queues->sync(s->work.queue);
	}
	if (status == GJ_OK)
		status = gj_fragment_finish(&s->work, GJ_LANE_WORK, f);
	if (status == GJ_OK)
	{
		gj_resident_publish(s->store, f);
		return f;
	}
	CHECK_EQUAL(status, GJ_OUT_OF_MEMORY);
	if (f)
		gj_fragment_discard(s->store, f);
	return NULL;
}

bool
load_unused(Store *s, uint32_t number)
{
	GjFragment *f = load_fragment(s, number);

	if (f)
		gj_resident_unpin_one(s->store, f);
	return f != NULL;
}

GjFragment *
find_fragment(Store *s, uint32_t number)
{
	const uint64_t lsns[1] = {77};
	uint16_t	places[GJ_MAX_COLUMNS] = {0};
	GjFound		found;

	gj_resident_find(s->store, &s->wanted, places, &number, 1, lsns, 1000, &found);
	return found.fragment;
}

bool
is_resident(Store *s, uint32_t number)
{
	GjFragment *f = find_fragment(s, number);

	if (f)
		gj_resident_unpin_one(s->store, f);
	return f != NULL;
}
