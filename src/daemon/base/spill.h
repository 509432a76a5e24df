/*
 * spill.h
 *	  Rows of sources, parts of groups and sorted runs kept on the host: in memory, and beyond a
 *	  limit in temporary files.
 *
 * Rows come as chunks and are kept as records, each the compact columns of some rows of
 * one chunk.  Records are kept in lists, which are merged or fed to runs later.  Any number of
 * threads may write records at a time, each with a writer of its own, and read them; one thread
 * appends to a list.
 *
 * Records in memory lie in blocks, each of which one writer fills from its beginning; a block
 * goes when all of its records have gone.  Each writer has a temporary file of its own, for a
 * file is written to by one thread at a time.  The files have no names, so the kernel removes
 * them however gpujoind ends.
 */
#ifndef GJ_DAEMON_BASE_SPILL_H
#define GJ_DAEMON_BASE_SPILL_H

#include <pthread.h>

#include "cpu/pool.h"
#include "relation.h"
#include "temp.h"

#define GJ_UNREADABLE		"rows that were kept on the host could not be read back"

typedef struct GjSpillBlock GjSpillBlock;

typedef struct GjSpillRecord
{
	uint8_t    *memory;			/* NULL: it is in a file */
	GjSpillBlock *block;		/* where the memory is */
	int			fd;				/* a writer's file */
	uint64_t	offset;			/* in the file */
	uint64_t	nbytes;
	uint32_t	nrows;
	uint32_t	heap_used;
	uint64_t	nulls;			/* bit c % 64: column c has some */
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
	GjTempFiles files;
	uint64_t	block_bytes;	/* of a block, if a record fits it */
	pthread_mutex_t lock;		/* of what follows */
	uint64_t	memory_used;	/* by records */
	uint64_t	memory_peak;
	uint64_t	file_used;		/* of all files of this store */
	GjErrorText error;			/* the first one */
} GjSpill;

/* What a thread makes records with; one at a time uses it. */
typedef struct GjSpillWriter
{
	GjSpill    *spill;
	GjSpillBlock *block;		/* that it fills; NULL: none */
	uint8_t    *buffer;			/* records on their way to the file */
	uint64_t	buffer_bytes;
	int			fd;				/* -1: no file yet */
	uint64_t	file_end;
} GjSpillWriter;

/* A slot that is filled with records. */
typedef struct GjSpillSlot
{
	uint8_t    *memory;
	const GjColumnType *types;
	const GjColumnPlace *places;
	const GjLayout *layout;
	uint32_t	first;			/* record */
	uint32_t	nrows;
} GjSpillSlot;

/* What `files` points to must stay.  All records and writers have gone when it is closed. */
extern void gj_spill_open(GjSpill *spill, uint64_t memory_limit, const GjTempFiles *files);
extern void gj_spill_close(GjSpill *spill);

extern void gj_spill_writer_open(GjSpillWriter *writer, GjSpill *spill);
/* Nothing of the writer's file can be read any more; its records in memory stay. */
extern void gj_spill_writer_close(GjSpillWriter *writer);

/*
 * Makes n records of rows positions[first], positions[first + 1], ... of the chunk (NULL: rows
 * first ..): each of the next records[i].nrows > 0 ones, which the caller has set.
 * GJ_OUT_OF_HOST_MEMORY if neither memory nor file have room, GJ_BAD_PROGRAM if the chunk is
 * damaged; spill->error says more, and there are no records then.
 */
extern GjStatus gj_spill_make(GjSpillWriter *writer, const GjChunk *chunk,
							  const GjColumnType *types, const uint32_t *positions,
							  uint32_t first, GjSpillRecord *records, uint32_t n);
/* Appends a record to a list, which has it then. */
extern GjStatus gj_spill_append(GjSpillList *list, const GjSpillRecord *record);
/* Both, one record of n rows; with n = 0 nothing. */
extern GjStatus gj_spill_add(GjSpillWriter *writer, GjSpillList *list, const GjChunk *chunk,
							 const GjColumnType *types, const uint32_t *positions,
							 uint32_t first, uint32_t n);

/*
 * Moves the records of n lists to `all`, in the order in which they lie: who reads and drops them
 * one after the other gives blocks back on the way, and reads files from front to back.  After an
 * error the lists are as they were.
 */
extern GjStatus gj_spill_join(GjSpillList *lists, uint32_t n, GjSpillList *all);

/* The rows of a record where they lie. */
typedef struct GjSpillView
{
	const uint8_t **data;		/* [ncolumns], the caller's */
	const uint8_t **nulls;		/* the same; NULL: none of the rows is */
	const uint8_t *heap;
} GjSpillView;

/*
 * Describes them.  A record in a file is read to *buffer, of *nbytes bytes, which grows as it has
 * to: free() it.  GJ_OUT_OF_HOST_MEMORY also if the file cannot be read.
 */
extern GjStatus gj_spill_view(const GjSpillRecord *record, const GjColumnType *types,
							  uint32_t ncolumns, uint8_t **buffer, uint64_t *nbytes,
							  GjSpillView *view);

/* Gives the memory of a record back, if it has any; of a list. */
extern void gj_spill_drop(GjSpill *spill, GjSpillRecord *record);
extern void gj_spill_free_list(GjSpill *spill, GjSpillList *list);

/* How many of n > 0 records a slot has room for. */
extern uint32_t gj_spill_count(const GjSpillRecord *records, uint32_t n, const GjLayout *layout);

/* Slots on their way to be filled; spill_read.c's, but for the numbers. */
typedef struct GjSpillFill
{
	uint32_t	nslots;			/* that are filled */
	uint32_t	nrecords;		/* that are in them */
	const GjSpillRecord *records;
	GjSpillSlot *slots;
	struct GjSpillPlace *at;	/* where each record goes */
	GjPool	   *pool;			/* NULL: the thread does it all, in the end */
	GjJob		job;
	GjStatus	status;			/* of one that failed; atomic */
} GjSpillFill;

/*
 * Starts to fill up to nslots slots of the same layout with the first ones of n > 0 records, as
 * many as they have room for, at least one.  The threads of `pool` (NULL: none) work on it until
 * the end, where the slots and their headers are right.  After an error there is nothing to end.
 */
extern GjStatus gj_spill_fill_start(GjSpillFill *fill, const GjSpillRecord *records, uint32_t n,
									GjSpillSlot *slots, uint32_t nslots, GjPool *pool);
extern GjStatus gj_spill_fill_end(GjSpillFill *fill);

/* Both, with one slot and no other threads; *ndone = records that are in it. */
extern GjStatus gj_spill_fill(const GjSpillRecord *records, uint32_t n, GjSpillSlot *slot,
							  uint32_t *ndone);

#endif							/* GJ_DAEMON_BASE_SPILL_H */
