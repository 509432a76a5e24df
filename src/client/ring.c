/*
 * ring.c
 *	  A ring of slots in a memfd that gpujoind made, as this process maps it.
 *
 * A memfd that is shorter than it says, or that shrinks, would be a SIGBUS here and
 * so a restart of the whole cluster: that is checked before the first access.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client/connection.h"
#include "client/ring.h"

#define GJ_MAX_SLOTS		64	/* more is a mistake */

/* Check what gpujoind says about the memfd. */
static bool
ring_is_sound(int fd, uint32 nslots, uint32 slot_size, GjFailure *failure)
{
	struct stat status;
	int			seals = fcntl(fd, F_GET_SEALS);

	if (nslots == 0 || nslots > GJ_MAX_SLOTS || slot_size == 0 || slot_size % GJ_ALIGN != 0)
		gj_fail(failure, GJ_DEVICE_LOST, "impossible ring of %u slots of %u bytes", nslots, slot_size);
	else if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
		gj_fail(failure, GJ_DEVICE_LOST, "the ring is not sealed against shrinking");
	else if (fstat(fd, &status) != 0 || status.st_size < (off_t) nslots * slot_size)
		gj_fail(failure, GJ_DEVICE_LOST, "the ring is shorter than %u slots of %u bytes", nslots, slot_size);
	else
		return true;
	return false;
}

bool
gj_ring_map(GjRing *ring, int fd, uint32 nslots, uint32 slot_size, bool writable, GjFailure *failure)
{
	int			protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	void	   *base;

	if (!ring_is_sound(fd, nslots, slot_size, failure))
		return false;
	base = mmap(NULL, (size_t) nslots * slot_size, protection, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
	{
		gj_fail(failure, GJ_OUT_OF_HOST_MEMORY, "could not map a ring: %s", strerror(errno));
		return false;
	}
	ring->base = base;
	ring->nslots = nslots;
	ring->slot_size = slot_size;
	return true;
}

void
gj_ring_unmap(GjRing *ring)
{
	if (ring->base != NULL)
		munmap(ring->base, (size_t) ring->nslots * ring->slot_size);
	ring->base = NULL;
}
