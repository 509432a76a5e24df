/*
 * copy.cu
 *	  Copies between the host and a device, within it and from another one; and the lane of loads,
 *	  a stream beside the one of the operators, with marks that order the two.
 */
#include <string.h>

#include "internal.cuh"

static GjStatus
copy_kind(GjQueue *queue, void *to, const void *from, size_t nbytes, cudaMemcpyKind kind)
{
	GJ_TRY(gj_enter(queue));
	if (nbytes > 0)
		GJ_CUDA(queue, cudaMemcpyAsync(to, from, nbytes, kind, queue->stream));
	return GJ_OK;
}

GjStatus
gj_copy_in(GjQueue *queue, void *device, const void *host, size_t nbytes)
{
	return copy_kind(queue, device, host, nbytes, cudaMemcpyHostToDevice);
}

GjStatus
gj_copy_out(GjQueue *queue, void *host, const void *device, size_t nbytes)
{
	return copy_kind(queue, host, device, nbytes, cudaMemcpyDeviceToHost);
}

GjStatus
gj_copy(GjQueue *queue, void *to, const void *from, size_t nbytes)
{
	return copy_kind(queue, to, from, nbytes, cudaMemcpyDeviceToDevice);
}

void
gj_meet(GjDevice *device, GjDevice *other)
{
	cudaMemAccessDesc access;
	int can = 0;

	if (other->ordinal >= GJ_MAX_PEERS)
		return;
	memset(&access, 0, sizeof(access));
	access.location.type = cudaMemLocationTypeDevice;
	access.location.id = device->ordinal;
	access.flags = cudaMemAccessFlagsProtReadWrite;
	device->reads[other->ordinal] =
		cudaDeviceCanAccessPeer(&can, device->ordinal, other->ordinal) == cudaSuccess && can &&
		cudaMemPoolSetAccess(other->pool, &access, 1) == cudaSuccess;
	/* if not, there is another way */
	cudaGetLastError();
}

/* A piece of the other device's memory into the queue's staging memory.  Waits. */
static GjStatus
stage_peer(GjQueue *queue, const GjDevice *other, const void *from, size_t nbytes)
{
	GJ_CUDA(queue, cudaSetDevice(other->ordinal));
	GJ_CUDA(queue, cudaMemcpy(queue->staging, from, nbytes, cudaMemcpyDeviceToHost));
	return GJ_OK;
}

/* The same bytes to `to`, on a stream of the queue. */
static GjStatus
copy_from_peer(GjQueue *queue, void *to, const GjDevice *other, const void *from, size_t nbytes,
			   cudaStream_t stream)
{
	/*
	 * The other device writes, which is a third faster over NVLink than reading from here (with
	 * cudaMemcpyAsync).  But all copies from it, whoever wants them, go through one stream of its:
	 * one that has to wait for its turn here holds up those for others.
	 */
	if (other->ordinal < GJ_MAX_PEERS && queue->device->reads[other->ordinal])
	{
		GJ_CUDA(queue, cudaMemcpyPeerAsync(to, queue->device->ordinal, from, other->ordinal, nbytes,
										   stream));
		return GJ_OK;
	}
	if (queue->staging == NULL)
		GJ_CUDA(queue, cudaHostAlloc(&queue->staging, GJ_STAGING_BYTES, cudaHostAllocPortable));
	for (size_t done = 0, n; done < nbytes; done += n)
	{
		GjStatus status;

		n = nbytes - done < GJ_STAGING_BYTES ? nbytes - done : GJ_STAGING_BYTES;
		status = stage_peer(queue, other, (const char *) from + done, n);
		GJ_TRY(gj_enter(queue));
		GJ_TRY(status);
		GJ_CUDA(queue, cudaMemcpyAsync((char *) to + done, queue->staging, n,
									   cudaMemcpyHostToDevice, stream));
		GJ_CUDA(queue, cudaStreamSynchronize(stream));
	}
	return GJ_OK;
}

GjStatus
gj_copy_peer(GjQueue *queue, void *to, GjDevice *other, const void *from, size_t nbytes)
{
	if (other == queue->device)
		return gj_copy(queue, to, from, nbytes);
	GJ_TRY(gj_enter(queue));
	return nbytes == 0 ? GJ_OK : copy_from_peer(queue, to, other, from, nbytes, queue->stream);
}

GjStatus
gj_fill(GjQueue *queue, void *device, int byte, size_t nbytes)
{
	GJ_TRY(gj_enter(queue));
	if (nbytes > 0)
		GJ_CUDA(queue, cudaMemsetAsync(device, byte, nbytes, queue->stream));
	return GJ_OK;
}

/* ---- the lane of loads, and marks */

/* The stream of a lane. */
static GjStatus
lane_stream(GjQueue *queue, GjLane lane, cudaStream_t *stream)
{
	GJ_TRY(gj_enter(queue));
	if (lane == GJ_LANE_LOAD && queue->kit->load == NULL)
		GJ_CUDA(queue, cudaStreamCreateWithFlags(&queue->kit->load, cudaStreamNonBlocking));
	*stream = lane == GJ_LANE_LOAD ? queue->kit->load : queue->stream;
	return GJ_OK;
}

static GjStatus
record_event(GjQueue *queue, cudaEvent_t *event, cudaStream_t stream)
{
	GjKit *kit = queue->kit;

	if (*event == NULL && kit->nmarks > 0)
		*event = kit->mark[--kit->nmarks];
	if (*event == NULL)
		GJ_CUDA(queue, cudaEventCreate(event));
	GJ_CUDA(queue, cudaEventRecord(*event, stream));
	return GJ_OK;
}

/* The stream of loads, on which one begins: its time is taken up to the next mark. */
static GjStatus
begin_load(GjQueue *queue, cudaStream_t *stream)
{
	GJ_TRY(lane_stream(queue, GJ_LANE_LOAD, stream));
	if (queue->loading)
		return GJ_OK;
	GJ_TRY(record_event(queue, &queue->begin[queue->next_begin], *stream));
	queue->loading = true;
	return GJ_OK;
}

static GjStatus
load_kind(GjQueue *queue, void *to, const void *from, size_t nbytes, cudaMemcpyKind kind)
{
	cudaStream_t stream = NULL;

	if (nbytes == 0)
		return GJ_OK;
	GJ_TRY(begin_load(queue, &stream));
	GJ_CUDA(queue, cudaMemcpyAsync(to, from, nbytes, kind, stream));
	return GJ_OK;
}

GjStatus
gj_load_in(GjQueue *queue, void *device, const void *host, size_t nbytes)
{
	return load_kind(queue, device, host, nbytes, cudaMemcpyHostToDevice);
}

GjStatus
gj_load_copy(GjQueue *queue, void *to, const void *from, size_t nbytes)
{
	return load_kind(queue, to, from, nbytes, cudaMemcpyDeviceToDevice);
}

GjStatus
gj_load_peer(GjQueue *queue, void *to, GjDevice *other, const void *from, size_t nbytes)
{
	cudaStream_t stream = NULL;

	if (other == queue->device)
		return gj_load_copy(queue, to, from, nbytes);
	if (nbytes == 0)
		return GJ_OK;
	GJ_TRY(begin_load(queue, &stream));
	return copy_from_peer(queue, to, other, from, nbytes, stream);
}

GjStatus
gj_load_fill(GjQueue *queue, void *device, int byte, size_t nbytes)
{
	cudaStream_t stream = NULL;

	if (nbytes == 0)
		return GJ_OK;
	GJ_TRY(begin_load(queue, &stream));
	GJ_CUDA(queue, cudaMemsetAsync(device, byte, nbytes, stream));
	return GJ_OK;
}

GjStatus
gj_mark(GjQueue *queue, GjLane lane, uint32_t m)
{
	cudaStream_t stream = NULL;

	GJ_TRY(lane_stream(queue, lane, &stream));
	GJ_TRY(record_event(queue, &queue->mark[m], stream));
	queue->loads[m] = 0;
	if (lane == GJ_LANE_LOAD && queue->loading)
	{
		queue->loads[m] = (uint8_t) (1 + queue->next_begin);
		queue->next_begin = (queue->next_begin + 1) % GJ_MAX_MARKS;
		queue->loading = false;
	}
	return GJ_OK;
}

GjStatus
gj_after(GjQueue *queue, GjLane lane, uint32_t m)
{
	cudaStream_t stream = NULL;

	GJ_TRY(lane_stream(queue, lane, &stream));
	if (queue->mark[m])
		GJ_CUDA(queue, cudaStreamWaitEvent(stream, queue->mark[m], 0));
	return GJ_OK;
}

GjStatus
gj_passed(GjQueue *queue, uint32_t m, bool wait, bool *done)
{
	cudaError_t error;
	float ms = 0.0f;

	*done = true;
	GJ_TRY(gj_enter(queue));
	if (queue->mark[m] == NULL)
		return GJ_OK;
	error = wait ? cudaEventSynchronize(queue->mark[m]) : cudaEventQuery(queue->mark[m]);
	if (error == cudaErrorNotReady)
	{
		cudaGetLastError();
		*done = false;
		return GJ_OK;
	}
	GJ_CUDA(queue, error);
	if (queue->loads[m] != 0)
	{
		GJ_CUDA(queue,
				cudaEventElapsedTime(&ms, queue->begin[queue->loads[m] - 1], queue->mark[m]));
		queue->phase_ms[GJ_PHASE_TRANSFER] += ms;
		queue->loads[m] = 0;
	}
	return GJ_OK;
}

void
gj_load_wait(GjQueue *queue)
{
	cudaSetDevice(queue->device->ordinal);
	/* what went wrong there is found when the queue is closed */
	if (queue->kit->load)
		cudaStreamSynchronize(queue->kit->load);
	cudaGetLastError();
}
