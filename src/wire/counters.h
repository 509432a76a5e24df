/*
 * counters.h
 *	  How programs ended since the server started, by database: a file in the data directory.
 *
 * The launcher makes the file, and gpujoind writes what it counts, so counts outlive gpujoind.
 * Sessions read the file, and add what gpujoind does not see.  Counts are never set back:
 * gpujoin_stat_reset() notes what they were, and that is subtracted from then on.
 */
#ifndef GJ_WIRE_COUNTERS_H
#define GJ_WIRE_COUNTERS_H

#include "wire/messages.h"

#define GJ_COUNTERS_NAME	"gpujoin." GJ_STRINGIFY(GJ_ABI) ".counters"
#define GJ_MAX_COUNTERS		32	/* room for reasons to come */
#define GJ_MAX_DATABASES	64	/* the last place is for all that have none of their own */

/* Who has counted something for a database. */
typedef struct GjDatabaseCounts
{
	uint32_t	database;		/* oid; 0: those that have no place of their own */
	uint32_t	used;			/* 1: this is a place of a database */
	GjCounter	counter[GJ_MAX_COUNTERS];
} GjDatabaseCounts;

typedef struct GjDatabaseReset
{
	uint32_t	database;
	uint32_t	used;
	int64_t		time;			/* PostgreSQL's TimestampTz */
	uint64_t	count[GJ_MAX_COUNTERS]; /* what the counters were then, all together */
} GjDatabaseReset;

typedef struct GjCounterFile
{
	int64_t		server_start;	/* of the postmaster; counts of another start are void */
	GjDatabaseCounts counted[GJ_MAX_DATABASES]; /* by gpujoind */
	/* by sessions, one at a time: the file is locked */
	GjDatabaseCounts noted[GJ_MAX_DATABASES];
	GjDatabaseReset reset[GJ_MAX_DATABASES];
} GjCounterFile;

static_assert(GJ_NREASONS <= GJ_MAX_COUNTERS, "too few counters");

/* The place of a database; one that has none gets it, if there is one. */
static inline GjDatabaseCounts *
gj_database_counts(GjDatabaseCounts *list, uint32_t database)
{
	int			i = 0;

	while (i < GJ_MAX_DATABASES - 1 && list[i].used && list[i].database != database)
		i++;
	if (!list[i].used)
	{
		list[i].used = 1;
		list[i].database = i < GJ_MAX_DATABASES - 1 ? database : 0;
	}
	return &list[i];
}

#endif							/* GJ_WIRE_COUNTERS_H */
