/*
 * devices.h
 *	  The devices of this machine: opened once, shared by all sessions.
 *
 * GPUs are opened by threads of their own as soon as gpujoind starts, so that no
 * query pays for creating their contexts.  The cpu device is opened when it is first
 * asked for; for tests it can pretend to be several.  Entries live until the process
 * ends.  Fields whose comments name no lock do not change once an entry was handed out.
 */
#ifndef GJ_DAEMON_BASE_DEVICES_H
#define GJ_DAEMON_BASE_DEVICES_H

#include "device/device.h"
#include "lease.h"

/* What the programs did that were completed. */
typedef struct GjDeviceTotals
{
	uint64_t	runs;
	uint64_t	bytes_in;
	uint64_t	bytes_out;
	double		busy_ms;
} GjDeviceTotals;

typedef struct GjDeviceEntry
{
	const GjDeviceOps *ops;
	GjDevice   *device;
	GjDeviceInfo info;			/* as the device reported it when it was opened */
	GjDeviceMemory memory;		/* guarded by its own lock */
	GjDeviceTotals totals;		/* guarded by that lock too */
	/* of gj_devices_tidy alone */
	uint64_t	told_limit;		/* of the memory, as the log has it */
	uint32_t	idle_looks;		/* without a lease, the last ones */
} GjDeviceEntry;

/* A GPU that is not used. */
typedef struct GjUnusedDevice
{
	uint32_t	ordinal;		/* GJ_NO_ORDINAL: it has none */
	GjDeviceStatus status;
	char		name[64];
	GjErrorText why;
} GjUnusedDevice;

/* Which devices there are to be. */
typedef struct GjDeviceChoice
{
	const char *gpus;			/* by ordinal ("0,2,3"); "" or NULL: all */
	/*
	 * Devices that the cpu and each GPU pretend to be, which share its memory: those of GPU g come
	 * as g * per_gpu on.
	 */
	uint32_t	ncpu;
	uint32_t	per_gpu;
	uint32_t	cpu_threads;	/* 0: one a processor */
	uint64_t	cpu_memory;		/* bytes; 0: half of the machine's */
} GjDeviceChoice;

/* Chooses devices.  False with *why if the list is none.  Before gj_devices_start. */
extern bool gj_devices_configure(const GjDeviceChoice *choice, GjErrorText *why);

/* True if devices of a kind are there for tests: one that pretends to be several. */
extern bool gj_devices_pretend(GjDeviceKind kind);

/*
 * Starts to open the GPUs.  With `report`, what is found goes to the log.  Called once, before
 * anything else here.
 */
extern void gj_devices_start(bool report);

/*
 * Number of usable GPUs; if 0, *why is the reason.  With `wait`, waits until they are
 * open; else there are none before that.
 */
extern uint32_t gj_devices_cuda(bool wait, GjErrorText *why);

/*
 * The device of a kind on which the fewest programs run, or NULL with the reason.
 * Waits until it is open.
 */
extern GjDeviceEntry *gj_devices_choose(GjDeviceKind kind, GjErrorText *why);

/*
 * The same for at most `max` devices, those with the fewest programs first.  Returns
 * how many there are.
 */
extern uint32_t gj_devices_choose_some(GjDeviceKind kind, uint32_t max, GjDeviceEntry **entries,
									   GjErrorText *why);

/* Number of devices of all kinds, the cpu last.  Opens them all. */
extern uint32_t gj_devices_count(void);
extern GjDeviceEntry *gj_devices_get(uint32_t i);

/* Devices that are open by now, at most `max`; opens none.  Returns how many. */
extern uint32_t gj_devices_open(uint32_t max, GjDeviceEntry **entries);
/* GPUs that are not used.  Waits until all are open. */
extern uint32_t gj_devices_unused(const GjUnusedDevice **list);

/* The CUDA of the driver and of gpujoind, as in WELCOME.  May wait for the driver. */
extern void gj_devices_cuda_versions(uint32_t *driver, uint32_t *runtime);

/* Adds what a program did. */
extern void gj_devices_count_run(GjDeviceEntry *entry, const GjDeviceTotals *run);

/*
 * Looks what other processes left of the device, and gives up what exceeds that.  Gives the driver
 * back what allocations left, where the device is idle, or others want memory.  One thread calls
 * it, each second.
 */
extern void gj_devices_tidy(GjDeviceEntry *entry);

/* What STATUS tells about a device: the numbers of this moment too. */
extern void gj_devices_info(GjDeviceEntry *entry, GjDeviceInfo *info);

/* Closes all of them.  Nothing may use them any longer. */
extern void gj_devices_stop(void);

#endif							/* GJ_DAEMON_BASE_DEVICES_H */
