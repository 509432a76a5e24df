/*
 * spill.h
 *	  Rows of sources kept on the host: in memory, and beyond a limit in a temporary
 *	  file.
 *
 * Rows come as chunks and are kept as records, each the compact columns of some rows of
 * one chunk.  Lists of records are what runs are fed with later.  Any number of threads
 * may make records at a time, and read them; one thread adds to a list.
 * The file has no name, so the kernel removes it however gpujoind ends.
 */
#ifndef GJ_DAEMON_SPILL_H
#define GJ_DAEMON_SPILL_H

#include <pthread.h>

#include "../cpu/pool.h"
#include "relation.h"

typedef struct GjSpillRecord
{
	uint8_t    *memory;			/* NULL: it is in the file */
	uint64_t	offset;			/* in the file */
	uint64_t	nbytes;
	uint32_t	nrows;
	uint32_t	heap_used;
	bool		has_nulls;		/* in some column */
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
	pthread_mutex_t lock;		/* of what follows; once there is a file, fd stays */
	uint64_t	memory_used;
	uint64_t	memory_peak;
	uint64_t	file_used;
	int			fd;				/* -1: no file yet */
	GjErrorText error;			/* the first one */
} GjSpill;

/* A slot that is filled with records. */
typedef struct GjSpillSlot
{
	uint8_t    *memory;
	const GjColumnType *types;
	const GjColumnPlace *places;
	const GjLayout *layout;
	uint32_t	nrows;
	uint32_t	heap_used;
} GjSpillSlot;

/* `directory` must stay. */
extern void gj_spill_open(GjSpill *spill, uint64_t memory_limit, uint64_t temp_limit,
						  const char *directory);
extern void gj_spill_close(GjSpill *spill);

/*
 * Makes a record of rows positions[first .. first+n) of the chunk (NULL: rows first ..), n > 0.
 * GJ_OUT_OF_HOST_MEMORY if neither memory nor file have room; spill->error says more.
 */
extern GjStatus gj_spill_make(GjSpill *spill, const GjChunk *chunk, const GjColumnType *types,
							  const uint32_t *positions, uint32_t first, uint32_t n,
							  GjSpillRecord *record);
/* Appends a record to a list, which has it then. */
extern GjStatus gj_spill_append(GjSpillList *list, const GjSpillRecord *record);
/* Both; with n = 0 nothing. */
extern GjStatus gj_spill_add(GjSpill *spill, GjSpillList *list, const GjChunk *chunk,
							 const GjColumnType *types, const uint32_t *positions,
							 uint32_t first, uint32_t n);

/* Gives the memory of a record back, if it has any; of a list. */
extern void gj_spill_drop(GjSpill *spill, GjSpillRecord *record);
extern void gj_spill_free_list(GjSpill *spill, GjSpillList *list);

/*
 * Fills a slot with the first ones of n > 0 records, as many as it has room for, at least one.
 * *ndone = their number; the slot's header is right then.  The threads of `pool` (NULL: none) help.
 */
extern GjStatus gj_spill_fill(GjSpill *spill, const GjSpillRecord *records, uint32_t n,
							  GjSpillSlot *slot, GjPool *pool, uint32_t *ndone);

#endif							/* GJ_DAEMON_SPILL_H */
