/*
 * work.c
 *	  Device memory of a run; see work.h.
 */
#include "work.h"

/* Sizes are rounded up to this, as devices do it themselves. */
#define GJ_BUFFER_UNIT		256

static GjStatus
buffer_alloc(GjWork *work, GjBuffer *buffer, uint64_t nbytes)
{
	void	   *memory;
	GjStatus	status;

	nbytes = (nbytes + (GJ_BUFFER_UNIT - 1)) & ~(uint64_t) (GJ_BUFFER_UNIT - 1);
	if (nbytes == 0)
		nbytes = GJ_BUFFER_UNIT;
	if (!gj_lease_take(work->lease, nbytes))
		return GJ_OUT_OF_MEMORY;
	status = work->ops->memory->alloc(work->queue, nbytes, &memory);
	if (status == GJ_OUT_OF_MEMORY)
	{
		/* another process has what was counted */
		gj_memory_short(work->lease->memory, nbytes);
		status = work->ops->memory->alloc(work->queue, nbytes, &memory);
	}
	if (status != GJ_OK)
	{
		gj_lease_give(work->lease, nbytes);
		return status;
	}
	*buffer = (GjBuffer) {memory, nbytes};
	return GJ_OK;
}

void
gj_buffer_free(GjWork *work, GjBuffer *buffer)
{
	if (!buffer->memory)
		return;
	work->ops->memory->free(work->queue, buffer->memory, buffer->nbytes);
	gj_lease_give(work->lease, buffer->nbytes);
	buffer->memory = NULL;
	buffer->nbytes = 0;
}

/* Allocates `wanted` bytes, or `least` if there are not as many. */
static GjStatus
alloc_between(GjWork *work, GjBuffer *buffer, uint64_t wanted, uint64_t least)
{
	GjLease    *lease = work->lease;
	void		(*spare) (void *arg) = lease->spare;
	GjStatus	status;

	/* what is more than needed is not worth what could be spared */
	lease->spare = NULL;
	status = buffer_alloc(work, buffer, wanted);
	lease->spare = spare;
	return status == GJ_OUT_OF_MEMORY ? buffer_alloc(work, buffer, least) : status;
}

GjStatus
gj_buffer_reserve(GjWork *work, GjBuffer *buffer, uint64_t nbytes)
{
	if (buffer->memory && buffer->nbytes >= nbytes)
		return GJ_OK;
	gj_buffer_free(work, buffer);
	/* some room to spare, so that slightly larger requests do not allocate again */
	return alloc_between(work, buffer, nbytes + nbytes / 4, nbytes);
}

GjStatus
gj_buffer_grow(GjWork *work, GjBuffer *buffer, uint64_t used, uint64_t nbytes, uint64_t hint)
{
	GjBuffer	old = *buffer;
	uint64_t	want = old.nbytes * 2;

	if (old.memory && old.nbytes >= nbytes)
		return GJ_OK;
	if (want < hint)
		want = hint;
	if (want < nbytes)
		want = nbytes;
	GJ_TRY(alloc_between(work, buffer, want, nbytes));
	if (used > 0)
	{
		GjStatus	status = work->ops->memory->copy(work->queue, buffer->memory, old.memory, used);

		if (status != GJ_OK)
		{
			gj_buffer_free(work, buffer);
			*buffer = old;
			return status;
		}
	}
	gj_buffer_free(work, &old);
	return GJ_OK;
}

GjStatus
gj_buffer_grow_much(GjWork *work, GjBuffer *buffer, uint64_t used, uint64_t nbytes, uint64_t hint)
{
	if (buffer->nbytes < nbytes && nbytes < used + used / 8)
		nbytes = used + used / 8;
	return gj_buffer_grow(work, buffer, used, nbytes, hint);
}
