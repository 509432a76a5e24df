/*
 * copy.cu
 *	  Copies between the host and a device, within it and from another one; and the lane of loads,
 *	  a stream beside the one of the operators, with marks that order the two.
 */
#include <string.h>

#include <cub/device/device_memcpy.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "internal.cuh"

static GjStatus
copy_kind(GjQueue *queue, void *to, const void *from, size_t nbytes, cudaMemcpyKind kind)
{
	GJ_TRY(gj_enter(queue));
	if (nbytes > 0)
		GJ_CUDA(queue, cudaMemcpyAsync(to, from, nbytes, kind, queue->stream));
	return GJ_OK;
}

static GjStatus
gj_copy_in(GjQueue *queue, void *device, const void *host, size_t nbytes)
{
	return copy_kind(queue, device, host, nbytes, cudaMemcpyHostToDevice);
}

static GjStatus
gj_copy_out(GjQueue *queue, void *host, const void *device, size_t nbytes)
{
	return copy_kind(queue, host, device, nbytes, cudaMemcpyDeviceToHost);
}

static GjStatus
gj_copy(GjQueue *queue, void *to, const void *from, size_t nbytes)
{
	return copy_kind(queue, to, from, nbytes, cudaMemcpyDeviceToDevice);
}

/* What cub asks of piece i, which lies in device memory. */
struct PieceFrom
{
	const GjPiece *pieces;

	__device__ const void *
	operator()(uint32_t i) const
	{
		return pieces[i].from;
	}
};

struct PieceTo
{
	const GjPiece *pieces;

	__device__ void *
	operator()(uint32_t i) const
	{
		return pieces[i].to;
	}
};

struct PieceBytes
{
	const GjPiece *pieces;

	__device__ size_t
	operator()(uint32_t i) const
	{
		return pieces[i].nbytes;
	}
};

static GjStatus
gj_copy_many(GjQueue *queue, const GjPiece *pieces, uint32_t n)
{
	const thrust::counting_iterator<uint32_t> all(0);
	void *memory;

	GJ_TRY(gj_enter(queue));
	if (n == 0)
		return GJ_OK;
	GJ_TRY(gj_scratch(queue, GJ_SCRATCH_A, n * sizeof(GjPiece), &memory));
	/* memory that is not pinned has been read when the call returns */
	GJ_CUDA(queue, cudaMemcpyAsync(memory, pieces, n * sizeof(GjPiece), cudaMemcpyHostToDevice,
								   queue->stream));
	pieces = (const GjPiece *) memory;
	GJ_CUB(queue, cub::DeviceMemcpy::Batched,
		   thrust::make_transform_iterator(all, PieceFrom{pieces}),
		   thrust::make_transform_iterator(all, PieceTo{pieces}),
		   thrust::make_transform_iterator(all, PieceBytes{pieces}), n);
	return GJ_OK;
}

/* True if a device has been given access to the memory of another one. */
static bool
give_access(const GjDevice *device, const GjDevice *other)
{
	cudaMemAccessDesc access;
	int can = 0;

	memset(&access, 0, sizeof(access));
	access.location.type = cudaMemLocationTypeDevice;
	access.location.id = device->ordinal;
	access.flags = cudaMemAccessFlagsProtReadWrite;
	return cudaDeviceCanAccessPeer(&can, device->ordinal, other->ordinal) == cudaSuccess && can &&
		   cudaMemPoolSetAccess(other->pool, &access, 1) == cudaSuccess;
}

void
gj_meet(GjDevice *device, GjDevice *other)
{
	if (device->ordinal >= GJ_MAX_PEERS || other->ordinal >= GJ_MAX_PEERS)
		return;
	/* a GPU that pretends to be both needs no access */
	device->met[other->ordinal] = other->met[device->ordinal] =
		device->ordinal == other->ordinal ||
		(give_access(device, other) && give_access(other, device));
	/* if not, there is another way; that one may reach the other does no harm */
	cudaGetLastError();
}

static bool
have_met(const GjDevice *device, const GjDevice *other)
{
	/* the other one may be a new one of that ordinal */
	return device->ordinal < GJ_MAX_PEERS && other->ordinal < GJ_MAX_PEERS &&
		   device->met[other->ordinal] && other->met[device->ordinal];
}

/* A piece of the other device's memory into the queue's staging memory.  Waits. */
static GjStatus
stage_peer(GjQueue *queue, const GjDevice *other, const void *from, size_t nbytes)
{
	GJ_CUDA(queue, gj_set_device(other->ordinal));
	GJ_CUDA(queue, cudaMemcpy(queue->staging, from, nbytes, cudaMemcpyDeviceToHost));
	return GJ_OK;
}

/* Copies the bytes through host memory.  Waits. */
static GjStatus
copy_staged(GjQueue *queue, void *to, const GjDevice *other, const void *from, size_t nbytes,
			cudaStream_t stream)
{
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

static GjStatus
gj_copy_peer(GjQueue *queue, void *to, GjDevice *other, const void *from, size_t nbytes)
{
	if (other == queue->device)
		return gj_copy(queue, to, from, nbytes);
	GJ_TRY(gj_enter(queue));
	if (nbytes == 0)
		return GJ_OK;
	if (!have_met(queue->device, other))
		return copy_staged(queue, to, other, from, nbytes, queue->stream);
	GJ_CUDA(queue, cudaMemcpyPeerAsync(to, queue->device->ordinal, from, other->ordinal, nbytes,
									   queue->stream));
	return GJ_OK;
}

static GjStatus
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

static GjStatus
gj_load_in(GjQueue *queue, void *device, const void *host, size_t nbytes)
{
	return load_kind(queue, device, host, nbytes, cudaMemcpyHostToDevice);
}

static GjStatus
gj_load_copy(GjQueue *queue, void *to, const void *from, size_t nbytes)
{
	return load_kind(queue, to, from, nbytes, cudaMemcpyDeviceToDevice);
}

/* The first of the bits that are set, which it takes out of them. */
static uint32_t
next_peer(uint64_t *bits)
{
	const uint32_t i = (uint32_t) __builtin_ctzll(*bits);

	*bits &= *bits - 1;
	return i;
}

/* Makes what copies from the other device go through. */
static GjStatus
make_peer(GjQueue *queue, const GjDevice *other, GjPeer *peer)
{
	GJ_CUDA(queue, gj_set_device(other->ordinal));
	if (peer->done == NULL)
		GJ_CUDA(queue, cudaEventCreateWithFlags(&peer->done, cudaEventDisableTiming));
	GJ_CUDA(queue, cudaStreamCreateWithFlags(&peer->stream, cudaStreamNonBlocking));
	return GJ_OK;
}

/* Before the first copy from the other device: it is behind what the stream of loads waits for. */
static GjStatus
begin_peer(GjQueue *queue, const GjDevice *other, GjPeer *peer)
{
	cudaEvent_t here = NULL;
	GjStatus recorded;

	if (peer->stream == NULL)
	{
		const GjStatus status = make_peer(queue, other, peer);

		GJ_TRY(gj_enter(queue));
		GJ_TRY(status);
	}
	recorded = record_event(queue, &here, queue->kit->load);
	/* a wait that was queued does not need the event to stay as it is */
	if (here)
		queue->kit->mark[queue->kit->nmarks++] = here;
	GJ_TRY(recorded);
	GJ_CUDA(queue, cudaStreamWaitEvent(peer->stream, here, 0));
	queue->peers |= (uint64_t) 1 << other->ordinal;
	return GJ_OK;
}

/*
 * The other device writes, on a stream of its own for each queue that wants copies: so none of them
 * waits for another one's turn, as with cudaMemcpyPeerAsync, which puts all copies from a device on
 * one stream of it, and they are faster than where many devices read (cudaMemcpyAsync from here).
 */
static GjStatus
gj_load_peer(GjQueue *queue, void *to, GjDevice *other, const void *from, size_t nbytes)
{
	cudaStream_t stream = NULL;
	uint64_t bit;
	GjPeer *peer;

	if (other == queue->device)
		return gj_load_copy(queue, to, from, nbytes);
	if (nbytes == 0)
		return GJ_OK;
	GJ_TRY(begin_load(queue, &stream));
	if (!have_met(queue->device, other))
		return copy_staged(queue, to, other, from, nbytes, stream);
	bit = (uint64_t) 1 << other->ordinal;
	peer = &queue->kit->peer[other->ordinal];
	if (!(queue->peers & bit))
		GJ_TRY(begin_peer(queue, other, peer));
	GJ_CUDA(queue, cudaMemcpyAsync(to, from, nbytes, cudaMemcpyDeviceToDevice, peer->stream));
	queue->unjoined |= bit;
	return GJ_OK;
}

/* Has the stream of loads wait for copies that were queued on those of other devices. */
static GjStatus
join_peers(GjQueue *queue)
{
	while (queue->unjoined != 0)
	{
		const GjPeer *peer = &queue->kit->peer[next_peer(&queue->unjoined)];

		GJ_CUDA(queue, cudaEventRecord(peer->done, peer->stream));
		GJ_CUDA(queue, cudaStreamWaitEvent(queue->kit->load, peer->done, 0));
	}
	return GJ_OK;
}

static GjStatus
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
	if (lane == GJ_LANE_LOAD)
		GJ_TRY(join_peers(queue));
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
	uint64_t peers = lane == GJ_LANE_LOAD ? queue->peers : 0;
	cudaStream_t stream = NULL;

	GJ_TRY(lane_stream(queue, lane, &stream));
	if (queue->mark[m] == NULL)
		return GJ_OK;
	GJ_CUDA(queue, cudaStreamWaitEvent(stream, queue->mark[m], 0));
	while (peers != 0)
		GJ_CUDA(queue,
				cudaStreamWaitEvent(queue->kit->peer[next_peer(&peers)].stream, queue->mark[m], 0));
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

cudaError_t
gj_await_loads(const GjQueue *queue)
{
	cudaError_t error = queue->kit->load ? cudaStreamSynchronize(queue->kit->load) : cudaSuccess;
	uint64_t peers = queue->peers;

	while (peers != 0)
	{
		const cudaError_t other = cudaStreamSynchronize(queue->kit->peer[next_peer(&peers)].stream);

		if (error == cudaSuccess)
			error = other;
	}
	return error;
}

bool
gj_is_idle(const GjQueue *queue)
{
	bool idle = queue->kit != NULL && cudaStreamQuery(queue->stream) == cudaSuccess &&
				(queue->kit->load == NULL || cudaStreamQuery(queue->kit->load) == cudaSuccess);
	uint64_t peers = queue->peers;

	while (peers != 0 && idle)
		idle = cudaStreamQuery(queue->kit->peer[next_peer(&peers)].stream) == cudaSuccess;
	/* that they are busy is no error of the next call's */
	cudaGetLastError();
	return idle;
}

void
gj_load_wait(GjQueue *queue)
{
	gj_set_device(queue->device->ordinal);
	/* what went wrong there is found when the queue is closed */
	(void) gj_await_loads(queue);
	cudaGetLastError();
}

const GjMemoryOps gj_cuda_memory = {
	.alloc = gj_queue_alloc,
	.free = gj_free,
	.adopt = gj_queue_adopt,
	.copy_in = gj_copy_in,
	.copy_out = gj_copy_out,
	.copy = gj_copy,
	.copy_many = gj_copy_many,
	.copy_peer = gj_copy_peer,
	.fill = gj_fill,
	.load_in = gj_load_in,
	.load_copy = gj_load_copy,
	.load_peer = gj_load_peer,
	.load_fill = gj_load_fill,
};
