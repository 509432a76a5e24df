/*
 * work.h
 *	  Where a run works: its queue on a device, and memory that its lease counts.
 */
#ifndef GJ_DAEMON_BASE_WORK_H
#define GJ_DAEMON_BASE_WORK_H

#include "device/device.h"
#include "lease.h"

typedef struct GjWork
{
	const GjDeviceOps *ops;
	GjQueue    *queue;
	GjLease    *lease;
	GjDevice   *peer;			/* what is appended to relations lies there; NULL: here */
} GjWork;

/* A piece of device memory; all zero: none. */
typedef struct GjBuffer
{
	void	   *memory;
	uint64_t	nbytes;
} GjBuffer;

/* Returns the status of a call that is not GJ_OK to the caller. */
#define GJ_TRY(call) \
	do { \
		GjStatus	try_status = (call); \
		if (try_status != GJ_OK) \
			return try_status; \
	} while (0)

/* Makes a buffer at least `nbytes` large; what was in it may be lost. */
extern GjStatus gj_buffer_reserve(GjWork *work, GjBuffer *buffer, uint64_t nbytes);

/*
 * The same, but keeps the first `used` bytes, and grows by doubling so that many
 * appends cost one copy each; `hint` is a size to start with.
 */
extern GjStatus gj_buffer_grow(GjWork *work, GjBuffer *buffer, uint64_t used,
							   uint64_t nbytes, uint64_t hint);

/*
 * The same, but if it has to grow, then by an eighth at least: many appends where memory is short
 * cost a few copies each.
 */
extern GjStatus gj_buffer_grow_much(GjWork *work, GjBuffer *buffer, uint64_t used,
									uint64_t nbytes, uint64_t hint);

extern void gj_buffer_free(GjWork *work, GjBuffer *buffer);

#endif							/* GJ_DAEMON_BASE_WORK_H */
