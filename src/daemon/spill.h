/*
 * spill.h
 *	  Rows of sources kept on the host: in memory, and beyond a limit in a temporary
 *	  file.
 *
 * Rows come as chunks and are kept as records, each the compact columns of some rows of
 * one chunk.  Lists of records are what runs are fed with later.  One thread writes;
 * once it has stopped, any number of threads may read, each with a buffer of its own.
 * The file has no name, so the kernel removes it however gpujoind ends.
 */
#ifndef GJ_DAEMON_SPILL_H
#define GJ_DAEMON_SPILL_H

#include "relation.h"

typedef struct GjSpillRecord
{
	uint8_t    *memory;			/* NULL: it is in the file */
	uint64_t	offset;			/* in the file */
	uint64_t	nbytes;
	uint32_t	nrows;
	uint32_t	heap_used;
} GjSpillRecord;

typedef struct GjSpillList
{
	GjSpillRecord *records;
	uint32_t	n;
	uint32_t	max;
	uint64_t	nrows;			/* of all records */
	uint64_t	heap_used;
} GjSpillList;

typedef struct GjSpill
{
	uint64_t	memory_limit;	/* bytes */
	uint64_t	temp_limit;
	const char *directory;
	uint64_t	memory_used;
	uint64_t	memory_peak;
	uint64_t	file_used;
	int			fd;				/* -1: no file yet */
	uint8_t    *scratch;		/* of the writer */
	size_t		nscratch;
	GjErrorText error;
} GjSpill;

/* A slot that is being filled from records. */
typedef struct GjSpillSlot
{
	uint8_t    *memory;
	const GjColumnType *types;
	const GjColumnPlace *places;
	const GjLayout *layout;
	uint32_t	nrows;
	uint32_t	heap_used;
	uint8_t    *buffer;			/* of a reader: what was read from the file */
	size_t		nbuffer;
} GjSpillSlot;

/* `directory` must stay. */
extern void gj_spill_open(GjSpill *spill, uint64_t memory_limit, uint64_t temp_limit,
						  const char *directory);
extern void gj_spill_close(GjSpill *spill);

/*
 * Appends a record of rows positions[first .. first+n) of the chunk (NULL: rows first ..).
 * GJ_OUT_OF_HOST_MEMORY if neither memory nor file have room; spill->error says more.
 */
extern GjStatus gj_spill_add(GjSpill *spill, GjSpillList *list, const GjChunk *chunk,
							 const GjColumnType *types, const uint32_t *positions,
							 uint32_t first, uint32_t n);

/* Gives the memory of a list back. */
extern void gj_spill_free_list(GjSpill *spill, GjSpillList *list);

/* Makes the slot empty. */
extern void gj_spill_start(GjSpillSlot *slot);

/* True if the record fits behind what is in the slot; it always fits an empty one. */
extern bool gj_spill_fits(const GjSpillSlot *slot, const GjSpillRecord *record);

/* Appends a record, whose header is then right. */
extern GjStatus gj_spill_fetch(GjSpill *spill, const GjSpillRecord *record, GjSpillSlot *slot);

#endif							/* GJ_DAEMON_SPILL_H */
