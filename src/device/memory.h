/*
 * memory.h
 *	  Memory and queues of a device.
 */
#ifndef GJ_DEVICE_MEMORY_H
#define GJ_DEVICE_MEMORY_H

#include "rows/expression.h"
#include "wire/messages.h"

typedef struct GjDevice GjDevice;
typedef struct GjQueue GjQueue;

typedef struct GjErrorText
{
	char		text[240];
	bool		denied;			/* by the operating system: no program is to blame */
} GjErrorText;

/*
 * A queue has two lanes.  Each keeps its work in order, and they run side by side: what is
 * queued goes to GJ_LANE_WORK, but for what the load_ functions put on GJ_LANE_LOAD.
 */
typedef enum GjLane
{
	GJ_LANE_WORK,
	GJ_LANE_LOAD
} GjLane;

#define GJ_MAX_MARKS		88

/* A copy within a device's memory. */
typedef struct GjPiece
{
	void	   *to;
	const void *from;
	size_t		nbytes;
} GjPiece;

/* Memory and copies. */
typedef struct GjMemoryOps
{
	/* Device memory, 256-byte aligned, uninitialised. */
	GjStatus	(*alloc) (GjQueue *queue, size_t nbytes, void **memory);
	void		(*free) (GjQueue *queue, void *memory, size_t nbytes);

	/*
	 * n allocations of another queue become this one's: all of them, or none.  Nothing that
	 * the other queue has queued uses them, and no other thread uses either queue.
	 */
	GjStatus	(*adopt) (GjQueue *queue, GjQueue *from, void *const *memory, uint32_t n);
	GjStatus	(*copy_in) (GjQueue *queue, void *device, const void *host, size_t nbytes);
	GjStatus	(*copy_out) (GjQueue *queue, void *host, const void *device, size_t nbytes);
	GjStatus	(*copy) (GjQueue *queue, void *to, const void *from, size_t nbytes);

	/* n copies within the device at once, without overlap; pieces are read before it returns. */
	GjStatus	(*copy_many) (GjQueue *queue, const GjPiece *pieces, uint32_t n);

	/*
	 * The same from the memory of another device of the same kind, where nothing is queued
	 * that writes it.  Through host memory, and then waiting, if they have not met.  What it has to
	 * wait for here may hold up copies from that device to third ones, too.
	 */
	GjStatus	(*copy_peer) (GjQueue *queue, void *to, GjDevice *device, const void *from,
							  size_t nbytes);
	GjStatus	(*fill) (GjQueue *queue, void *device, int byte, size_t nbytes);

	/*
	 * copy_in, copy, copy_peer and fill on GJ_LANE_LOAD.  Marks alone give load_peer its place
	 * there: it is behind what a mark given to after() stands for, and before the next mark of the
	 * lane.
	 */
	GjStatus	(*load_in) (GjQueue *queue, void *device, const void *host, size_t nbytes);
	GjStatus	(*load_copy) (GjQueue *queue, void *to, const void *from, size_t nbytes);
	GjStatus	(*load_peer) (GjQueue *queue, void *to, GjDevice *device, const void *from,
							  size_t nbytes);
	GjStatus	(*load_fill) (GjQueue *queue, void *device, int byte, size_t nbytes);
} GjMemoryOps;

/* Queues, their lanes, and the time that they take. */
typedef struct GjQueueOps
{
	/* A queue with the code of a program (copied). */
	GjStatus	(*queue_open) (GjDevice *device, const GjProgram *program, GjQueue **queue,
							   GjErrorText *why);

	/*
	 * Waits for what is queued and gives back everything that the queue still holds.
	 * GJ_DEVICE_LOST, with *why, if the device turns out to be gone; else GJ_OK.
	 */
	GjStatus	(*queue_close) (GjQueue *queue, GjErrorText *why);
	const char *(*queue_error) (GjQueue *queue);

	/* Waits for all queued work; row errors and device errors are returned here. */
	GjStatus	(*sync) (GjQueue *queue);

	/* From here on time counts as `phase`; (*phase_ms)[] is complete after a sync. */
	void		(*phase) (GjQueue *queue, GjPhase phase);
	const double *(*phase_ms) (GjQueue *queue);

	/* From here on mark m < GJ_MAX_MARKS stands for all that is queued on the lane by now. */
	GjStatus	(*mark) (GjQueue *queue, GjLane lane, uint32_t m);

	/* What is queued on the lane from here on starts when what m stands for is done. */
	GjStatus	(*after) (GjQueue *queue, GjLane lane, uint32_t m);

	/* *done = what m stands for is done.  With `wait`, waits until it is. */
	GjStatus	(*passed) (GjQueue *queue, uint32_t m, bool wait, bool *done);

	/* Waits until nothing is left on GJ_LANE_LOAD, also after an error. */
	void		(*load_wait) (GjQueue *queue);
} GjQueueOps;

#endif							/* GJ_DEVICE_MEMORY_H */
