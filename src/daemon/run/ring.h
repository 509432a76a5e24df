/*
 * ring.h
 *	  What the files of a ring share: shares of a build side (ring_share.c), and blocks of them that
 *	  go round (ring.c).
 */
#ifndef GJ_DAEMON_RUN_RING_H
#define GJ_DAEMON_RUN_RING_H

#include "nested.h"

/* It is known where the bytes of every so many rows begin; blocks have a multiple of these. */
#define GJ_RING_STEP		4096

/* What a run has of the build side.  The arrays are its own, on its device, but heap_at. */
typedef struct GjRingShare
{
	GjDevice   *device;
	uint32_t	nrows;
	GjNestedRows rows;			/* all of them, their values */
	GjColumn   *columns;		/* of the source; data is NULL if nobody reads it later */
	uint64_t  **heap_at;		/* [column]: where the bytes of row GJ_RING_STEP * i begin, at last
								 * where all end; NULL: no references */
} GjRingShare;

struct GjRing
{
	uint32_t	step;
	uint32_t	nshares;
	GjRingShare share[GJ_MAX_RUN_DEVICES];
};

/* Rows of the share of another run. */
typedef struct GjRingBlock
{
	const GjRingShare *share;
	uint32_t	first;			/* a multiple of GJ_RING_STEP */
	uint32_t	nrows;
	uint64_t	flag;			/* the number of its first row among those of all shares */
} GjRingBlock;

typedef struct GjRingBuffer
{
	GjBuffer	rows;			/* values, null flags and columns of a block */
	GjBuffer	heap;
	uint32_t	block;			/* that it has, or is to have */
} GjRingBuffer;

typedef struct GjRunRing
{
	GjRing	   *ring;
	GjRingShare *own;
	uint32_t	ncolumns;		/* of the source */
	GjBuffer   *heap;			/* [column]: bytes of the own share's references */
	GjBuffer	heap_at;		/* while these are moved */
	uint64_t	first;			/* number of the own share's first row among those of all shares */
	uint32_t	nblocks;		/* of all other shares, in the order in which they are joined */
	GjRingBlock *blocks;
	uint32_t	most_rows;		/* of a block, and bytes of its heap */
	uint64_t	most_heap;
	GjRingBuffer buffer[2];		/* of the blocks with even numbers, and with odd ones */
} GjRunRing;

/* ring_share.c: GjJoinOps.build: builds the run's share, and shows it to the others.  Waits. */
extern GjStatus gj_ring_build(GjRun *run, GjSideBuild *build, GjRunStep *rs);

#endif							/* GJ_DAEMON_RUN_RING_H */
