/*
 * views.c
 *	  The functions behind the views gpujoin_devices and gpujoin_stat.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "client/connection.h"
#include "client/counters.h"
#include "client/device_info.h"
#include "guc.h"

PG_FUNCTION_INFO_V1(gpujoin_devices);
PG_FUNCTION_INFO_V1(gpujoin_stat);

/* Add the row of one device. */
static void
put_device(ReturnSetInfo *result, GjDeviceInfo *device)
{
	Datum		values[15];
	bool		nulls[15] = {false};
	int			n = 0;

	device->name[sizeof(device->name) - 1] = '\0';
	values[n++] = CStringGetTextDatum(device->kind == GJ_DEVICE_CPU ? "cpu" : "cuda");
	values[n++] = Int32GetDatum(device->ordinal);
	values[n++] = CStringGetTextDatum(device->name);
	values[n++] = Int32GetDatum(device->nprocessors);
	values[n++] = Int64GetDatum(device->memory_total);
	values[n++] = Int64GetDatum(device->memory_used);
	values[n++] = Int64GetDatum(device->memory_pinned);
	values[n++] = Int32GetDatum(device->sessions);
	values[n++] = Float8GetDatum(device->copy_in_rate);
	values[n++] = Float8GetDatum(device->copy_out_rate);
	values[n++] = Int64GetDatum((int64) device->memory_resident);
	values[n++] = Int64GetDatum((int64) device->runs);
	values[n++] = Int64GetDatum((int64) device->bytes_in);
	values[n++] = Int64GetDatum((int64) device->bytes_out);
	values[n++] = Float8GetDatum(device->busy_ms);
	Assert(n == lengthof(values));
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

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
connect_for_status(GjFailure *failure)
{
	GjMsgWelcome welcome;
	GjConnection *connection;

	connection = gj_connection_open(gj_device_kind(), NULL, NULL, &welcome, failure);
	if (connection == NULL && failure->reason == GJ_NO_DAEMON && !failure->timeout)
	{
		/* it may have been known, and be on its way back */
		gj_client_forget_device();
		(void) gj_client_device(failure);
		if (!failure->timeout)
			connection = gj_connection_open(gj_device_kind(), NULL, NULL, &welcome, failure);
	}
	return connection;
}

/* Return the devices of gpujoind, none if it is not there. */
Datum
gpujoin_devices(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	uint32		question = GJ_MSG_STATUS;
	GjConnection *connection;
	GjAnswer	answer;
	GjFailure	failure;

	InitMaterializedSRF(fcinfo, 0);
	if (!IsUnderPostmaster)
		return (Datum) 0;
	connection = connect_for_status(&failure);
	if (connection == NULL)
	{
		warn_of_timeout(&failure);
		return (Datum) 0;
	}
	(void) gj_connection_send(connection, &question, sizeof(question), NULL, 0);
	while (gj_connection_expect(connection, GJ_MSG_DEVICE, GJ_ANSWER_TIMEOUT, &answer, &failure))
		put_device(result, &answer.device.device);
	warn_of_timeout(&failure);
	gj_connection_close(connection);
	return (Datum) 0;
}

/* Return how often runs had which outcome. */
Datum
gpujoin_stat(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GjCounter	counters[GJ_NREASONS];

	InitMaterializedSRF(fcinfo, 0);
	gj_counters_read(counters);
	for (uint32 i = 0; i < GJ_NREASONS; i++)
	{
		Datum		values[3];
		bool		nulls[3] = {false};

		if (counters[i].count == 0)
			continue;
		values[0] = CStringGetTextDatum(gj_reason_text(i));
		values[1] = Int64GetDatum(counters[i].count);
		values[2] = TimestampTzGetDatum(time_t_to_timestamptz(counters[i].last));
		nulls[2] = counters[i].last == 0;
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
