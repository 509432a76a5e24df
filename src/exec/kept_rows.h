/*
 * kept_rows.h
 *	  Rows of a scan that begins again with the same parameters, kept as Material keeps them.
 */
#ifndef GJ_KEPT_ROWS_H
#define GJ_KEPT_ROWS_H

#include "nodes/execnodes.h"

typedef struct GjKeptRows GjKeptRows;

/* None yet, in es_query_cxt; in work_mem, then in a file.  They are read into a virtual slot. */
extern GjKeptRows *gj_kept_create(EState *estate, TupleTableSlot *to);

/*
 * The next row, in the slot; NULL at the end.  Those that are not kept yet are asked for by `next`,
 * whose rows are in the slot as well.
 */
extern TupleTableSlot *gj_kept_next(GjKeptRows *kept, TupleTableSlot *(*next) (void *),
									void *arg);

/* The next row is the first one. */
extern void gj_kept_rewind(GjKeptRows *kept);

extern void gj_kept_end(GjKeptRows *kept);

#endif							/* GJ_KEPT_ROWS_H */
