/*
 * views.c
 *	  The functions behind the views gpujoin_devices, gpujoin_processes and gpujoin_stat.
 */
#include "postgres.h"

#include <unistd.h>

#include "fmgr.h"
#include "funcapi.h"
#include "storage/fd.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "client/counters.h"
#include "client/launcher.h"
#include "client/status.h"
#include "guc.h"

PG_FUNCTION_INFO_V1(gpujoin_devices);
PG_FUNCTION_INFO_V1(gpujoin_processes);
PG_FUNCTION_INFO_V1(gpujoin_stat);
PG_FUNCTION_INFO_V1(gpujoin_stat_reset);

/* ---- gpujoin_devices */

/* Why this session does not use devices of a kind that are ready; NULL: it does. */
static const char *
why_unused(uint32 kind)
{
	const char *reason;

	if (!gj_may_offload(&reason))
		return reason;
	if (kind == GJ_DEVICE_CPU && gj_device != GJ_SET_DEVICE_CPU)
		return "used only where gpujoin.device is cpu";
	if (kind == GJ_DEVICE_CUDA && gj_device == GJ_SET_DEVICE_CPU)
		return "gpujoin.device is cpu";
	return NULL;
}

/* Add the row of one device. */
static void
put_device(ReturnSetInfo *result, const GjMsgDevice *message)
{
	const GjDeviceInfo *device = &message->device;
	bool		ready = message->status == GJ_DEVICE_READY;
	const char *reason = ready ? why_unused(device->kind) : message->reason;
	Datum		values[17];
	bool		nulls[17] = {false};
	int			n = 0;

	values[n++] = CStringGetTextDatum(device->kind == GJ_DEVICE_CPU ? "cpu" : "cuda");
	nulls[n] = device->ordinal == GJ_NO_ORDINAL;
	values[n++] = Int32GetDatum(device->ordinal);
	nulls[n] = device->name[0] == '\0';
	values[n++] = CStringGetTextDatum(device->name);
	values[n++] = CStringGetTextDatum(message->status == GJ_DEVICE_UNUSABLE ? "unusable" :
									  reason != NULL ? "unused" : "ready");
	nulls[n] = reason == NULL;
	values[n++] = reason != NULL ? CStringGetTextDatum(reason) : (Datum) 0;
	/* of what is not open only the name is known */
	for (int i = n; i < lengthof(nulls); i++)
		nulls[i] = !ready;
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

/* Return what there is of devices, and why some are not used. */
Datum
gpujoin_devices(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GjStatusReport *report;

	InitMaterializedSRF(fcinfo, 0);
	report = gj_status_read();
	for (int i = 0; i < report->ndevices; i++)
		put_device(result, &report->devices[i]);
	return (Datum) 0;
}

/* ---- gpujoin_processes */

/* Bytes of physical memory of a process. */
static bool
resident_bytes(int pid, int64 *nbytes)
{
	char		path[64];
	long		npages;
	FILE	   *file;
	bool		read;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	file = AllocateFile(path, "r");
	if (file == NULL)
		return false;
	read = fscanf(file, "%*s %ld", &npages) == 1;
	FreeFile(file);
	*nbytes = (int64) npages * sysconf(_SC_PAGESIZE);
	return read;
}

/* Add the row of a process; pid 0: it does not run. */
static void
put_process(ReturnSetInfo *result, const char *name, int pid, const char *state,
			TimestampTz start, uint32 nstarts)
{
	Datum		values[6];
	bool		nulls[6] = {false};
	int64		nbytes = 0;

	values[0] = CStringGetTextDatum(name);
	values[1] = Int32GetDatum(pid);
	nulls[1] = pid == 0;
	values[2] = CStringGetTextDatum(state);
	nulls[3] = pid == 0 || !resident_bytes(pid, &nbytes);
	values[3] = Int64GetDatum(nbytes);
	values[4] = TimestampTzGetDatum(start);
	nulls[4] = pid == 0;
	values[5] = Int64GetDatum(nstarts);
	nulls[5] = nstarts == 0;
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* Return the launcher and gpujoind, whether they run or not. */
Datum
gpujoin_processes(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GjLauncherStatus status;
	const char *state = "not running";

	InitMaterializedSRF(fcinfo, 0);
	gj_launcher_status(&status);
	put_process(result, "launcher", status.launcher_pid,
				status.launcher_pid == 0 ? "not running" : "running", status.launcher_start, 0);
	if (status.answers)
		state = "running";
	else if (status.restart_ms > 0)
		state = psprintf("starts again in %d s", (int) ((status.restart_ms + 999) / 1000));
	else if (status.daemon_pid != 0)
		state = "starting";
	put_process(result, "gpujoind", status.daemon_pid, state, status.daemon_start, status.nstarts);
	return (Datum) 0;
}

/* ---- gpujoin_stat */

/* Return how often runs had which outcome. */
Datum
gpujoin_stat(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GjOutcome  *outcomes;
	int			n;

	InitMaterializedSRF(fcinfo, 0);
	n = gj_counters_read(&outcomes);
	for (int i = 0; i < n; i++)
	{
		const GjOutcome *outcome = &outcomes[i];
		Datum		values[5];
		bool		nulls[5] = {false};

		values[0] = ObjectIdGetDatum(outcome->database);
		nulls[0] = !OidIsValid(outcome->database);
		values[1] = CStringGetTextDatum(gj_reason_text(outcome->reason));
		values[2] = Int64GetDatum(outcome->count);
		values[3] = TimestampTzGetDatum(time_t_to_timestamptz(outcome->last));
		nulls[3] = outcome->last == 0;
		values[4] = TimestampTzGetDatum(outcome->reset);
		nulls[4] = outcome->reset == 0;
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* Let the counts of this database begin anew. */
Datum
gpujoin_stat_reset(PG_FUNCTION_ARGS)
{
	gj_counters_reset();
	PG_RETURN_VOID();
}
