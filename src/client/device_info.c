/*
 * device_info.c
 *	  What a backend knows about the device that gpujoin.device asks for.
 *
 * Asked once and remembered: a device until a connection is lost, the absence of one
 * for a minute or until gpujoin.device changes.  That gpujoind did not answer in time is
 * remembered for some seconds only: long enough for the other joins of a query not to wait
 * as well.
 */
#include "postgres.h"

#include <unistd.h>

#include "access/parallel.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

#include "client/device_info.h"
#include "client/launcher.h"
#include "client/published.h"
#include "guc.h"

#define GJ_START_TIMEOUT		5000	/* ms that gpujoind has to come up */
#define GJ_RETRY_STEP			20	/* ms between attempts to connect */
#define GJ_REMEMBER_ABSENCE		60000	/* ms */
#define GJ_REMEMBER_TIMEOUT		5000	/* ms */

typedef struct GjKnownDevice
{
	bool		present;
	bool		absent;
	GjDeviceInfo info;			/* if present */
	GjFailure	failure;		/* if absent */
	TimestampTz ask_again;		/* if absent */
} GjKnownDevice;

static GjKnownDevice known[2];	/* by GjDeviceKind */
static int	known_setting = -1; /* gpujoin.device that absences belong to */

uint32
gj_device_kind(void)
{
	return gj_device == GJ_SET_DEVICE_CPU ? GJ_DEVICE_CPU : GJ_DEVICE_CUDA;
}

bool
gj_device_known(void)
{
	return known[gj_device_kind()].present;
}

void
gj_client_forget_device(void)
{
	memset(known, 0, sizeof(known));
}

/* Tell whether this machine could have an NVIDIA GPU at all. */
static bool
machine_may_have_gpu(void)
{
	static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"};

	for (int i = 0; i < lengthof(nodes); i++)
	{
		if (access(nodes[i], F_OK) == 0)
			return true;
	}
	return false;
}

/*
 * Connect, trying again until the deadline while nobody listens.  With `start`,
 * see to it that there is a launcher.
 */
static GjConnection *
open_until(TimestampTz deadline, bool start, GjSendFirst send, void *arg,
		   GjMsgWelcome *welcome, GjFailure *failure)
{
	for (;;)
	{
		GjConnection *connection = gj_connection_open(gj_device_kind(), send, arg, welcome, failure);

		if (connection != NULL || failure->reason != GJ_NO_DAEMON || failure->timeout)
			return connection;
		if (GetCurrentTimestamp() >= deadline)
			return NULL;
		if (!gj_launcher_ensure(start, failure))
			return NULL;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 GJ_RETRY_STEP, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

GjConnection *
gj_connection_open_within(int timeout, GjSendFirst send, void *arg,
						  GjMsgWelcome *welcome, GjFailure *failure)
{
	return open_until(TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout), false,
					  send, arg, welcome, failure);
}

/* Connect; if there is no gpujoind and this process may start one, start it and wait for it. */
static GjConnection *
open_or_start(GjMsgWelcome *welcome, GjFailure *failure)
{
	if (IsParallelWorker())
		return gj_connection_open(gj_device_kind(), NULL, NULL, welcome, failure);
	return open_until(TimestampTzPlusMilliseconds(GetCurrentTimestamp(), GJ_START_TIMEOUT), true,
					  NULL, NULL, welcome, failure);
}

/* Find the device: gpujoind has published it, or else is asked. */
static bool
ask_device(GjDeviceInfo *info, GjFailure *failure)
{
	GjMsgWelcome welcome;
	uint64		incarnation = gj_connection_incarnation();
	GjConnection *connection;

	if (incarnation != 0 && gj_published_device(incarnation, gj_device_kind(), info))
		return true;
	connection = open_or_start(&welcome, failure);
	if (connection == NULL)
		return false;
	gj_connection_close(connection);
	if (welcome.device.memory_total == 0)
	{
		gj_fail(failure, GJ_NO_DEVICE, "%s", gj_device_kind() == GJ_DEVICE_CUDA ? welcome.cuda_reason : "");
		return false;
	}
	*info = welcome.device;
	return true;
}

/*
 * Find the device without asking gpujoind, if that is possible.  Returns false if
 * it must be asked.
 */
static bool
answer_from_here(const GjDeviceInfo **info, GjFailure *failure)
{
	GjKnownDevice *device = &known[gj_device_kind()];

	*info = NULL;
	if (gj_device == GJ_SET_DEVICE_OFF)
	{
		gj_fail(failure, GJ_DISABLED, "gpujoin.device is \"off\"");
		return true;
	}
	if (!IsUnderPostmaster || CritSectionCount > 0)
	{
		gj_fail(failure, GJ_NOT_NOW, "%s", "");
		return true;
	}
	if (known_setting != gj_device)
	{
		known_setting = gj_device;
		for (int i = 0; i < lengthof(known); i++)
			known[i].absent = false;
	}
	if (device->present)
	{
		*info = &device->info;
		return true;
	}
	if (gj_device == GJ_SET_DEVICE_AUTO && !machine_may_have_gpu())
	{
		gj_fail(failure, GJ_NO_DEVICE, "this machine has no NVIDIA GPU");
		return true;
	}
	if (device->absent && GetCurrentTimestamp() < device->ask_again)
	{
		*failure = device->failure;
		return true;
	}
	return false;
}

/*
 * Say once a session why there is no device: to the client if the settings name cuda, else in the
 * server's log if gpujoind does not come up.
 */
static void
report_absence(const GjFailure *failure)
{
	static bool warned = false;
	static bool logged = false;
	bool		missing = failure->reason == GJ_NO_DEVICE || failure->reason == GJ_NO_DAEMON;

	if (IsParallelWorker() || !missing || failure->timeout)
		return;
	if (gj_device == GJ_SET_DEVICE_CUDA && !warned)
		ereport(WARNING,
				(errmsg("gpujoin.device is \"cuda\", but gpujoin has no GPU"),
				 errdetail("%s%s%s", gj_reason_text(failure->reason),
						   failure->detail[0] ? ": " : "", failure->detail),
				 errhint("PostgreSQL runs all queries itself. SELECT * FROM gpujoin_check() says more.")));
	else if (gj_device != GJ_SET_DEVICE_CUDA && failure->reason == GJ_NO_DAEMON && !logged)
		ereport(LOG,
				(errmsg("gpujoin has no device: %s%s%s", gj_reason_text(failure->reason),
						failure->detail[0] ? ": " : "", failure->detail)));
	warned |= gj_device == GJ_SET_DEVICE_CUDA;
	logged = true;
}

const GjDeviceInfo *
gj_client_device(GjFailure *failure)
{
	GjKnownDevice *device = &known[gj_device_kind()];
	const GjDeviceInfo *info;
	GjDeviceInfo asked;

	if (answer_from_here(&info, failure))
		return info;
	if (ask_device(&asked, failure))
	{
		device->present = true;
		device->absent = false;
		device->info = asked;
		return &device->info;
	}
	device->absent = true;
	device->failure = *failure;
	device->ask_again = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													failure->timeout ? GJ_REMEMBER_TIMEOUT : GJ_REMEMBER_ABSENCE);
	report_absence(failure);
	return NULL;
}
