/*
 * remembered.h
 *	  What takes time to find out of a table or index, once for each query that is planned.
 */
#ifndef GJ_REMEMBERED_H
#define GJ_REMEMBERED_H

#include "nodes/pathnodes.h"

/* Finds something out; what it is belongs to the caller. */
typedef double (*GjFindOut) (Oid relid);

/* Another query will be planned. */
extern void gj_remember_nothing(void);

/* What `find` says of the relation, asked once while a query is planned. */
extern double gj_remembered(const PlannerInfo *root, GjFindOut find, Oid relid);

#endif							/* GJ_REMEMBERED_H */
