/*
 * cache_info.h
 *	  What gpujoind keeps between queries, as a backend is told.
 */
#ifndef GJ_CLIENT_CACHE_INFO_H
#define GJ_CLIENT_CACHE_INFO_H

#include "client.h"

/* A relation on a device. */
typedef struct GjCachedRelation
{
	GjCached	counts;
	GjCachedColumn *columns;	/* [counts.ncolumns], by number */
} GjCachedRelation;

/* All that is resident, palloc'd; false with the reason if gpujoind does not tell. */
extern bool gj_cache_read(GjCachedRelation **list, uint32 *n, GjFailure *failure);

/*
 * Pages of a table, which is locked, that are resident on the kind of device that gpujoin.device
 * asks for: an estimate, and more than there are if several devices have the same ones.
 */
extern double gj_cache_pages(Oid relid);

/* Gives up what belongs to a relation of this database, or to all (InvalidOid). */
extern bool gj_cache_evict(Oid relid, uint64 *nbytes, GjFailure *failure);

#endif							/* GJ_CLIENT_CACHE_INFO_H */
