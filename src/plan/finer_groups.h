/*
 * finer_groups.h
 *	  Groups that no device makes, of finer groups that one does.  A part of unnest.c.
 */
#ifndef GJ_FINER_GROUPS_H
#define GJ_FINER_GROUPS_H

#include "nodes/parsenodes.h"

/* True if a query, or one below it, has aggregates or groups that gj_make_finer_groups may be for. */
extern bool gj_may_have_finer_groups(const Query *query);

/* Rewrites a query and those below it, as finer_groups.c says.  False: nothing was to be done. */
extern bool gj_make_finer_groups(Query *query);

#endif							/* GJ_FINER_GROUPS_H */
