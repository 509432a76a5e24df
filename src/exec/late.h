/*
 * late.h
 *	  Late columns of the rows that come back: fetched from their tables (plan/late_columns.c).
 */
#ifndef GJ_EXEC_LATE_H
#define GJ_EXEC_LATE_H

#include "nodes/execnodes.h"

typedef struct GjLateTable GjLateTable;

/* The tables of GJ_PRIVATE_LATE, opened; in the current memory context. */
extern List *gj_late_open(List *descriptions, EState *estate);

/*
 * Fetches the late columns of a row by the ctids in it, and stores them.  They are there until the
 * next row is fetched, or gj_late_clear.  Returns how many tuples were fetched.
 */
extern int	gj_late_fetch(List *tables, Snapshot snapshot, Datum *values, bool *isnull);

/* Lets go of the pages of the last row. */
extern void gj_late_clear(List *tables);

extern void gj_late_close(List *tables);

#endif							/* GJ_EXEC_LATE_H */
