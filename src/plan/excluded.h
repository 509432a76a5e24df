/*
 * excluded.h
 *	  Tables that gpujoin.excluded_tables leaves to PostgreSQL.
 */
#ifndef GJ_EXCLUDED_H
#define GJ_EXCLUDED_H

#include "nodes/pg_list.h"

/* Their oids, of those that exist; palloc'd.  Looks them up in caches only. */
extern List *gj_excluded_relids(void);

#endif							/* GJ_EXCLUDED_H */
