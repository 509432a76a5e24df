/*
 * status.c
 *	  What gpujoind says of itself and of its devices; see status.h.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "client/connection.h"
#include "client/device_info.h"
#include "client/status.h"

/* More devices than this are not shown. */
#define GJ_MAX_SHOWN	256

/* Say so if gpujoind is there but does not answer. */
static void
warn_of_timeout(const GjFailure *failure)
{
	if (failure->timeout)
		ereport(WARNING,
				(errmsg("gpujoind does not answer"),
				 failure->detail[0] ? errdetail_internal("%s", failure->detail) : 0,
				 errhint("If this does not pass, end the process gpujoind of this server; it is started again.")));
}

/* Connect to gpujoind, starting it only if gpujoin.device wants a device. */
static GjConnection *
connect_for_status(GjMsgWelcome *welcome, GjFailure *failure)
{
	GjConnection *connection = gj_connection_open(GJ_DEVICE_CUDA, NULL, NULL, welcome, failure);

	if (connection == NULL && failure->reason == GJ_NO_DAEMON && !failure->timeout)
	{
		/* it may have been known, and be on its way back */
		gj_client_forget_device();
		if (gj_client_device(failure) != NULL || failure->reason == GJ_NO_DEVICE)
		{
			GjFailure	again;

			connection = gj_connection_open(GJ_DEVICE_CUDA, NULL, NULL, welcome, &again);
		}
	}
	return connection;
}

/* Note that there is no GPU. */
static void
add_no_gpu(GjStatusReport *report, const char *reason)
{
	GjMsgDevice *device = &report->devices[report->ndevices++];

	memset(device, 0, sizeof(*device));
	device->status = GJ_DEVICE_UNUSABLE;
	device->device.kind = GJ_DEVICE_CUDA;
	device->device.ordinal = GJ_NO_ORDINAL;
	strlcpy(device->reason, reason, sizeof(device->reason));
}

/* Ask for the devices. */
static void
read_devices(GjStatusReport *report, GjConnection *connection)
{
	uint32		question = GJ_MSG_STATUS;
	GjAnswer	answer;

	(void) gj_connection_send(connection, &question, sizeof(question), NULL, 0);
	while (report->ndevices < GJ_MAX_SHOWN &&
		   gj_connection_expect(connection, GJ_MSG_DEVICE, GJ_ANSWER_TIMEOUT, &answer,
								&report->failure))
	{
		GjMsgDevice *device = &report->devices[report->ndevices++];

		*device = answer.device;
		device->device.name[sizeof(device->device.name) - 1] = '\0';
		device->reason[sizeof(device->reason) - 1] = '\0';
	}
	warn_of_timeout(&report->failure);
}

GjStatusReport *
gj_status_read(void)
{
	GjStatusReport *report = palloc0(sizeof(GjStatusReport));
	GjConnection *connection;
	GjMsgWelcome welcome;
	bool		gpus = false;

	report->devices = palloc(sizeof(GjMsgDevice) * (GJ_MAX_SHOWN + 1));
	if (!IsUnderPostmaster)
	{
		gj_fail(&report->failure, GJ_NOT_NOW, "single-user mode");
		add_no_gpu(report, "single-user mode has no devices");
		return report;
	}
	connection = connect_for_status(&welcome, &report->failure);
	if (connection == NULL)
	{
		warn_of_timeout(&report->failure);
		add_no_gpu(report, report->failure.detail[0] != '\0' ? report->failure.detail :
				   gj_reason_text(report->failure.reason));
		return report;
	}
	report->answered = true;
	report->cuda_driver = welcome.cuda_driver;
	report->cuda_runtime = welcome.cuda_runtime;
	read_devices(report, connection);
	gj_connection_close(connection);
	for (int i = 0; i < report->ndevices; i++)
		gpus |= report->devices[i].device.kind == GJ_DEVICE_CUDA;
	if (!gpus)
		add_no_gpu(report, welcome.cuda_reason);
	return report;
}
