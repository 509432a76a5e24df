/*
 * spill_store.h
 *	  What the files of rows that are kept on the host share: spill.c writes records, spill_block.c has
 *	  the memory for them, spill_read.c reads them.
 *
 * A record is: a byte a column that says whether it has NULLs here; then a column after
 * the other, its values and, if it has NULLs, their map; then the bytes that its references
 * refer to.  Each part starts at a multiple of 8.
 */
#ifndef GJ_DAEMON_SPILL_STORE_H
#define GJ_DAEMON_SPILL_STORE_H

#include "spill.h"

#define gj_align8(n)	(((uint64_t) (n) + 7) & ~UINT64_C(7))

/* A run that keeps rows begins, or ends.  Memory stays mapped while there is one. */
extern void gj_spill_blocks_open(GjSpill *spill);
extern void gj_spill_blocks_close(void);

/* Memory for a record, in the writer's block or in a new one: record->memory.  False: out of memory. */
extern bool gj_spill_take_memory(GjSpillWriter *writer, GjSpillRecord *record);
/* A record of the block has gone, or its writer has done with it. */
extern void gj_spill_leave_block(GjSpillBlock *block);

#endif							/* GJ_DAEMON_SPILL_STORE_H */
