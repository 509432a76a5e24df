/*
 * published.h
 *	  What gpujoind tells every session without being asked: a file in the data directory.
 *
 * It says which devices there are, and how many pages of each table are resident: all that a planner
 * wants to know.  A new session reads two pages of it.  To connect and ask takes longer than many
 * queries run.
 *
 * gpujoind makes a new file when it starts and maps it.  Sessions read it, and do not map it: a
 * file that somebody shortens would be a SIGBUS, and so a restart of the cluster.  Nobody locks
 * it, and what is read may be half written: costs depend on it, no rows.
 */
#ifndef GJ_WIRE_PUBLISHED_H
#define GJ_WIRE_PUBLISHED_H

#include <string.h>

#include "wire/messages.h"

#define GJ_PUBLISHED_NAME	"gpujoin." GJ_STRINGIFY(GJ_ABI) ".published"
#define GJ_PUBLISHED_KINDS	2	/* of GjDeviceKind */

/* The file has a head and so many pages, each of this size. */
#define GJ_PUBLISHED_PAGE	4096
#define GJ_PUBLISHED_PAGES	256
#define GJ_PUBLISHED_FILES	127	/* of a page */

typedef struct GjPublishedHead
{
	uint64_t	incarnation;	/* of the gpujoind that writes the file; of others it is void */
	uint32_t	present[GJ_PUBLISHED_KINDS];	/* 1: there is one; 0: not known, gpujoind must be asked */
	GjDeviceInfo device[GJ_PUBLISHED_KINDS];	/* the first one of a kind, as it was when opened */
} GjPublishedHead;

/* Pages of a file that are resident and valid as far as gpujoind knows, on all devices of a kind. */
typedef struct GjPublishedFile
{
	GjRelationKey relation;		/* relation 0: free */
	uint64_t	npages[GJ_PUBLISHED_KINDS];
} GjPublishedFile;

/* The files whose keys hash to its number; those that have no room are not told of. */
typedef struct GjPublishedPage
{
	uint64_t	incarnation;
	uint64_t	unused[3];
	GjPublishedFile file[GJ_PUBLISHED_FILES];
} GjPublishedPage;

static_assert(sizeof(GjPublishedHead) <= GJ_PUBLISHED_PAGE, "GjPublishedHead");
static_assert(sizeof(GjPublishedPage) == GJ_PUBLISHED_PAGE, "GjPublishedPage");

/* The page that tells of a file, from 0 on; it lies behind the head. */
static inline uint32_t
gj_published_page(const GjRelationKey *relation)
{
	uint64_t	h = (uint64_t) relation->filenode << 32 | relation->relation;

	h = (h ^ relation->database) * UINT64_C(0x9E3779B97F4A7C15);
	return (uint32_t) (h >> 32) % GJ_PUBLISHED_PAGES;
}

#endif							/* GJ_WIRE_PUBLISHED_H */
