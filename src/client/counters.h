/*
 * counters.h
 *	  How programs ended, by database, for gpujoin_stat.
 */
#ifndef GJ_CLIENT_COUNTERS_H
#define GJ_CLIENT_COUNTERS_H

#include "datatype/timestamp.h"

#include "wire/messages.h"

/* How often programs of a database had an outcome. */
typedef struct GjOutcome
{
	Oid			database;		/* invalid: of databases that are too many to be counted each */
	GjStatus	reason;
	uint64		count;			/* since `reset` */
	int64		last;			/* seconds since 1970, 0 = never */
	TimestampTz reset;			/* 0: never */
} GjOutcome;

/* Makes the file of the counts, if it is not there.  For the launcher, before gpujoind starts. */
extern void gj_counters_prepare(void);

/*
 * All counts since the server started, gpujoind's and those of sessions, palloc'd; returns how
 * many.  Each database that is known has its GJ_OK, others only if they are not 0.
 */
extern int	gj_counters_read(GjOutcome **outcomes);

/* Counts of this database begin anew. */
extern void gj_counters_reset(void);

#endif							/* GJ_CLIENT_COUNTERS_H */
