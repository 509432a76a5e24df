/*
 * ring.h
 *	  A ring of slots in a memfd that gpujoind made, as this process maps it.
 */
#ifndef GJ_CLIENT_RING_H
#define GJ_CLIENT_RING_H

#include "client.h"

typedef struct GjRing
{
	uint8	   *base;			/* NULL: not mapped */
	uint32		nslots;
	uint32		slot_size;		/* bytes */
} GjRing;

#define gj_ring_slot(ring, slot) ((ring)->base + (size_t) (slot) * (ring)->slot_size)

/*
 * Maps the ring, after a check that the memfd has these slots and cannot shrink.
 * The descriptor stays the caller's.
 */
extern bool gj_ring_map(GjRing *ring, int fd, uint32 nslots, uint32 slot_size, bool writable,
						GjFailure *failure);

/* Does nothing to a ring that is not mapped. */
extern void gj_ring_unmap(GjRing *ring);

#endif							/* GJ_CLIENT_RING_H */
