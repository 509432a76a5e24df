/*
 * spool.h
 *	  Keeps the batches of a run that must complete before its first row is returned.
 *
 * Batches stay in memory up to work_mem and go to a temporary file beyond.
 */
#ifndef GJ_SPOOL_H
#define GJ_SPOOL_H

#include "wire/messages.h"

typedef struct GjSpool GjSpool;

/* An empty spool for batches of this layout, in the current memory context. */
extern GjSpool *gj_spool_create(const GjLayout *layout, const GjColumnType *types,
								const GjColumnPlace *places);

/* Adds a copy of a batch. */
extern void gj_spool_add(GjSpool *spool, const uint8 *batch);

/* The next batch, in the order of adding; NULL at the end.  Valid until the next call. */
extern const uint8 *gj_spool_next(GjSpool *spool);

/* Closes the temporary file, if there is one. */
extern void gj_spool_end(GjSpool *spool);

#endif							/* GJ_SPOOL_H */
