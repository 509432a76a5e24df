/*
 * test_wire.c
 *	  Messages and layouts: what a backend and gpujoind have to agree about.
 */
#include <stdlib.h>
#include <string.h>

#include "../wire/saved.h"
#include "unit.h"

/*
 * Sizes of what travels.  A change here is a change of the interface: raise GJ_ABI, and then
 * change these numbers.
 */
void
test_wire_sizes(void)
{
	CHECK_EQUAL(GJ_ABI, 18);
	CHECK_EQUAL(sizeof(GjMsgHello), 72);
	CHECK_EQUAL(sizeof(GjDeviceInfo), 200);
	CHECK_EQUAL(sizeof(GjMsgWelcome), 360);
	CHECK_EQUAL(sizeof(GjMsgDevice), 336);
	CHECK_EQUAL(sizeof(GjCounter), 16);
	CHECK_EQUAL(sizeof(GjMsgSubmit), 408);
	CHECK_EQUAL(sizeof(GjMsgReady), 36);
	CHECK_EQUAL(sizeof(GjMsgAttach), 20);
	CHECK_EQUAL(sizeof(GjMsgSlot), 16);
	CHECK_EQUAL(sizeof(GjMsgCached), 296);
	CHECK_EQUAL(sizeof(GjMsgCachedColumn), 72);
	CHECK_EQUAL(sizeof(GjMsgEvict), 16);
	CHECK_EQUAL(sizeof(GjMsgEvicted), 16);
	CHECK_EQUAL(sizeof(GjStepStats), 32);
	CHECK_EQUAL(sizeof(GjSourceStats), 48);
	CHECK_EQUAL(sizeof(GjDeviceStats), 40);
	CHECK_EQUAL(sizeof(GjRunStats), 2048);
	CHECK_EQUAL(sizeof(GjMsgDone), 2056);
	CHECK_EQUAL(sizeof(GjMsgError), 248);
	CHECK_EQUAL(sizeof(GjProgram), 152);
	CHECK_EQUAL(sizeof(GjAsk), 72);
	CHECK_EQUAL(sizeof(GjAskPages), 520);
	CHECK_EQUAL(sizeof(GjChunkPages), 20544);
	CHECK_EQUAL(sizeof(GjSavedRecord), 16);
	CHECK_EQUAL(GJ_LOAD_SLOT_SIZE, 2 * 1024 * 1024);
	CHECK_EQUAL(GJ_OUTPUT_SLOT_SIZE, 4 * 1024 * 1024);
	CHECK_EQUAL(GJ_NREASONS, 21);
	CHECK_EQUAL(GJ_NOPS, 98);
	CHECK_EQUAL(GJ_MSG_ERROR, 71);
}

/* Columns lie one behind the other, aligned, and the heap has the rest. */
void
test_wire_layout(void)
{
	const GjColumnType types[] = {{GJ_INT4, 4, 0, 0}, {GJ_BYTES, 16, 1, 0}, {GJ_REF, 8, 1, 0}};
	GjColumnPlace places[3];
	GjLayout	layout = {0};
	uint32_t	capacity = 1;

	REQUIRE(gj_layout(types, 3, 1000, GJ_LOAD_CHUNK_SIZE, &layout, places));
	CHECK_EQUAL(places[0].data, 64);
	for (int c = 0; c < 3; c++)
	{
		CHECK_EQUAL(places[c].data % GJ_ALIGN, 0);
		CHECK(places[c].nulls >= places[c].data + 1000 * types[c].width);
		CHECK((c < 2 ? places[c + 1].data : layout.heap) >= places[c].nulls + 1000);
	}
	CHECK_EQUAL(layout.heap + layout.heap_size, GJ_LOAD_CHUNK_SIZE);
	/* without a reference there is no heap */
	REQUIRE(gj_layout(types, 2, 1000, GJ_LOAD_CHUNK_SIZE, &layout, places));
	CHECK_EQUAL(layout.heap_size, 0);
	/* the largest capacity that fits fills the slot nearly */
	while (gj_layout(types, 2, capacity + 1, GJ_LOAD_CHUNK_SIZE, &layout, places))
		capacity++;
	CHECK(gj_layout_fixed_size(types, 2, capacity) <= GJ_LOAD_CHUNK_SIZE);
	CHECK(gj_layout_fixed_size(types, 2, capacity + 1) > GJ_LOAD_CHUNK_SIZE);
	CHECK(!gj_layout(types, 3, UINT32_MAX, GJ_LOAD_CHUNK_SIZE, &layout, places));
}

/* A packed chunk has its rows and nothing else; a damaged one is noticed. */
void
test_saved_chunks(void)
{
	const GjColumnType types[] = {{GJ_INT4, 4, 1, 0}, {GJ_REF, 8, 0, 0}};
	GjColumnPlace places[2];
	GjSavedChunk chunk = {types, places, {0}};
	uint8_t    *slot = calloc(2, GJ_LOAD_SLOT_SIZE);
	uint8_t    *again = slot + GJ_LOAD_SLOT_SIZE;
	uint8_t    *packed = malloc(GJ_LOAD_SLOT_SIZE);
	uint32_t	nbytes;

	REQUIRE(slot && packed && gj_layout(types, 2, 5000, GJ_LOAD_CHUNK_SIZE, &chunk.layout, places));
	*(GjSlotHeader *) slot = (GjSlotHeader) {10, 24};
	gj_slot_has_nulls(slot)[0] = 1;
	for (uint32_t i = 0; i < 10; i++)
	{
		((int32_t *) (slot + places[0].data))[i] = (int32_t) (i * 7);
		slot[places[0].nulls + i] = i == 3;
		((uint64_t *) (slot + places[1].data))[i] = gj_ref_make(i % 3 * 8, 5);
	}
	memset(slot + chunk.layout.heap, 'x', 24);
	nbytes = gj_saved_pack(&chunk, slot, packed);
	CHECK_EQUAL(nbytes, sizeof(GjSlotHeader) + 2 + 10 * 4 + 10 + 10 * 8 + 24);
	REQUIRE(gj_saved_unpack(&chunk, packed, nbytes, again));
	CHECK(memcmp(slot, again, sizeof(GjSlotHeader) + 2) == 0);
	CHECK(memcmp(slot + places[0].data, again + places[0].data, 40) == 0);
	CHECK(memcmp(slot + places[0].nulls, again + places[0].nulls, 10) == 0);
	CHECK(memcmp(slot + places[1].data, again + places[1].data, 80) == 0);
	CHECK(memcmp(slot + chunk.layout.heap, again + chunk.layout.heap, 24) == 0);

	for (uint32_t n = 0; n < nbytes; n++)
		CHECK(!gj_saved_unpack(&chunk, packed, n, again));
	((GjSlotHeader *) packed)->nrows = 5001;
	CHECK(!gj_saved_unpack(&chunk, packed, nbytes, again));
	((GjSlotHeader *) packed)->nrows = 10;
	((GjSlotHeader *) packed)->heap_used = UINT32_MAX;
	CHECK(!gj_saved_unpack(&chunk, packed, nbytes, again));
	free(slot);
	free(packed);
}
