/*
 * progress.h
 *	  How far gpujoin_prewarm() is, for gpujoin_stat_progress_prewarm.
 */
#ifndef GJ_PROGRESS_H
#define GJ_PROGRESS_H

#include "storage/block.h"

/* Begins to tell; ends by gj_progress_end(), or with the transaction. */
extern void gj_progress_start(Oid relid, int ntables);

/* The next table is loaded; `ndone` were before it. */
extern void gj_progress_table(Oid relid, int ndone, BlockNumber nblocks);

/* So many of its blocks have been read, or taken by a process to be read. */
extern void gj_progress_blocks(BlockNumber ndone, BlockNumber nblocks);

extern void gj_progress_end(void);

#endif							/* GJ_PROGRESS_H */
