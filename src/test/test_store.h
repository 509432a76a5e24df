/*
 * test_store.h
 *	  A resident store of the cpu device for tests, and fragments in it.
 */
#ifndef GJ_TEST_STORE_H
#define GJ_TEST_STORE_H

#include "daemon/store/internal.h"
#include "unit.h"

#define MB			(UINT64_C(1) << 20)
#define NROWS		1000		/* of a chunk */
#define NPAGES		10			/* of a fragment */

/* Those of a fragment's columns. */
extern const GjColumnType store_types[2];
extern const GjColumnKey store_keys[2];

extern const GjMemoryLimits unlimited;

/* A device of our own memory account, and a table. */
typedef struct Store
{
	GjDeviceEntry entry;
	GjResident *store;
	GjQueue    *queue;
	GjLease		lease;
	GjWork		work;
	uint8_t    *slot;
	GjColumnPlace places[2];
	GjLayout	layout;
	GjChunkPages *pages;
	GjWanted	wanted;
} Store;

/* False: a check has failed, and the test ends. */
extern bool open_store(Store *s, uint64_t memory, uint64_t cache);
extern void close_store(Store *s);

/* The chunk of some pages of a fragment: values are base + row. */
extern GjChunk fill_chunk(Store *s, uint32_t first_page, uint32_t npages, int32_t base);

/* Loads a fragment in two chunks.  NULL: there is no room.  It stays pinned. */
extern GjFragment *load_fragment(Store *s, uint32_t number);

/* The same, pinned by nobody. */
extern bool load_unused(Store *s, uint32_t number);

/* The fragment of a number, pinned, or NULL. */
extern GjFragment *find_fragment(Store *s, uint32_t number);
extern bool is_resident(Store *s, uint32_t number);

#endif							/* GJ_TEST_STORE_H */
