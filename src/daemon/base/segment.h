/*
 * segment.h
 *	  Memory that a backend and gpujoind both map: the rings of a run.
 *
 * A segment is a memfd, allocated in full and sealed, so that neither side can meet
 * SIGBUS on it.  It is registered with its kind of device once and then kept
 * for later runs.  A run owns its segments until the peer's connection is closed:
 * until then some backend could still write to them.
 */
#ifndef GJ_DAEMON_BASE_SEGMENT_H
#define GJ_DAEMON_BASE_SEGMENT_H

#include "devices.h"

typedef struct GjSegment
{
	struct GjSegment *next;		/* in the pool */
	const GjDeviceOps *ops;		/* the devices that it is registered with */
	GjDevice   *device;			/* the one that registered it */
	int			fd;
	uint8_t    *memory;
	size_t		nbytes;
} GjSegment;

/* A segment of exactly `nbytes` bytes, from the pool if there is one. */
extern GjStatus gj_segment_get(GjDeviceEntry *entry, size_t nbytes, GjSegment **segment,
							   GjErrorText *why);

/* Gives it back; no other process may use it any longer. */
extern void gj_segment_put(GjSegment *segment);

/* Bytes in all segments of a kind of device, those in the pool included. */
extern uint64_t gj_segment_bytes(const GjDeviceOps *ops);

/* Frees what is in the pool. */
extern void gj_segment_stop(void);

#endif							/* GJ_DAEMON_BASE_SEGMENT_H */
