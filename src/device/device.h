/*
 * device.h
 *	  The interface that both devices implement: a table of functions for each concern,
 *	  declared in its header.  run/run.c runs every program through them.
 *
 * A device is one GPU, or the cpu.  A queue belongs to one run of one program, is
 * used by one thread, and keeps its work in order (a CUDA stream).  Calls return
 * when the work is queued, unless they say "waits".  Every pointer named "device"
 * is memory from gj_alloc on that device; host pointers that copies, gather and
 * aggregate_read use lie in rings that were registered, or are small.
 *
 * Every call that can fail returns a GjStatus; the queue's error text then says
 * more, without values from the data.  A row error (overflow, division by zero)
 * that a kernel meets is noted in device memory and returned by the next call that
 * waits.  GJ_DEVICE_LOST means that the process must end: its context is gone.
 *
 * No operator works longer than some 5 ms a call when called with at most
 * most_tuples tuples; run/run.c looks between calls whether to stop.  Some take a
 * whole side at once and are given stop(arg), which they ask as often as they can: the
 * call returns GJ_CANCELLED once it is true.  hash_build asks every few ms.  A sort
 * asks between its passes, and these grow with the data: on a GPU it is one pass, some
 * 10 ms for 100 million values; on the cpu up to half a second for as many.
 */
#ifndef GJ_DEVICE_DEVICE_H
#define GJ_DEVICE_DEVICE_H

#include "columns.h"
#include "exchange.h"
#include "fused.h"
#include "groups.h"
#include "join.h"
#include "memory.h"
#include "sets.h"
#include "sort.h"

#ifdef __cplusplus
extern "C"
{
#endif

typedef struct GjDeviceOps
{
	const char *name;
	GjDeviceKind kind;
	uint32_t	most_tuples;	/* of a call, GJ_MAX_TUPLES or more */

	/* Number of usable devices; 0 with the reason in *why.  Waits. */
	int			(*count) (GjErrorText *why);
	/* The CUDA that the driver supports and that of this program, as 13020 for 13.2; 0: none. */
	void		(*versions) (uint32_t *driver, uint32_t *runtime);
	/* Name of the device that open(ordinal) means. */
	void		(*describe) (int ordinal, char name[64]);
	/* The i-th one that count() leaves out, with name and reason; false: there are no more. */
	bool		(*useless) (int i, char name[64], GjErrorText *why);
	/* Opens a device (CUDA context, measured rates).  NULL with *why.  Waits. */
	GjDevice   *(*open) (int ordinal, GjErrorText *why);
	void		(*close) (GjDevice *device);
	/*
	 * Has two devices of the same kind reach each other's memory directly from now on, in copy_peer
	 * and load_peer, if the hardware can.  While neither is used, so that no allocation is in
	 * between.
	 */
	void		(*meet) (GjDevice *device, GjDevice *other);
	/* Fills in name, sizes and rates; not sessions and memory_used. */
	void		(*info) (GjDevice *device, GjDeviceInfo *info);
	/*
	 * Bytes of memory that it has or could get: other processes have the rest of memory_total.
	 * NULL: there are no others.
	 */
	uint64_t	(*room) (GjDevice *device);
	/*
	 * Gives back memory that it only keeps for later allocations: with `all`, or where little
	 * of memory_total is free; else nothing.  NULL: it keeps none.
	 */
	void		(*tidy) (GjDevice *device, bool all);
	/* Makes host memory usable by copies and kernels of every device.  Waits. */
	GjStatus	(*host_register) (GjDevice *device, void *memory, size_t nbytes, GjErrorText *why);
	void		(*host_unregister) (GjDevice *device, void *memory);

	const GjMemoryOps *memory;
	const GjQueueOps *queues;
	const GjColumnOps *columns;
	const GjTableOps *tables;
	const GjGroupOps *groups;
	const GjFusedOps *pass;
	const GjPlaceOps *places;
	const GjOrderOps *order;
	const GjSetOps *sets;
	const GjSplitOps *exchange;
} GjDeviceOps;

extern const GjDeviceOps gj_cpu_device;

#ifdef GJ_WITH_CUDA
extern const GjDeviceOps gj_cuda_device;
#endif

#ifdef __cplusplus
}
#endif

#endif							/* GJ_DEVICE_DEVICE_H */
