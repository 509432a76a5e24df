/*
 * check.c
 *	  gpujoin_check(): all that support asks for first, and what to change.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "storage/fd.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "client/launcher.h"
#include "client/status.h"
#include "compat.h"
#include "guc.h"

#define GJ_GIB			(1024.0 * 1024.0 * 1024.0)

/* Shared buffers, in blocks, from which huge pages are worth their trouble. */
#define GJ_LARGE_BUFFERS	((int) (1024 * 1024 * 1024 / BLCKSZ))

/* What is free in /dev/shm, in bytes, for parallel workers that load. */
#define GJ_ENOUGH_SHM	(64.0 * 1024 * 1024)

PG_FUNCTION_INFO_V1(gpujoin_check);

/* Where lines go. */
typedef struct CheckPage
{
	ReturnSetInfo *result;
	const char *section;
} CheckPage;

/* Add a line; advice can be NULL. */
static void
put(CheckPage *page, const char *item, const char *value, const char *advice)
{
	Datum		values[4];
	bool		nulls[4] = {false};

	values[0] = CStringGetTextDatum(page->section);
	values[1] = CStringGetTextDatum(item);
	values[2] = CStringGetTextDatum(value);
	nulls[3] = advice == NULL;
	values[3] = advice != NULL ? CStringGetTextDatum(advice) : (Datum) 0;
	tuplestore_putvalues(page->result->setResult, page->result->setDesc, values, nulls);
}

/* Return the first line of a file, NULL if it cannot be read. */
static char *
first_line(const char *path)
{
	FILE	   *file = AllocateFile(path, "r");
	char		line[512];
	bool		read;

	if (file == NULL)
		return NULL;
	read = fgets(line, sizeof(line), file) != NULL;
	FreeFile(file);
	if (!read)
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return pstrdup(line);
}

/* Return a number of /proc/meminfo, -1 if it is not there. */
static int64
meminfo(const char *name)
{
	FILE	   *file = AllocateFile("/proc/meminfo", "r");
	char		line[128];
	size_t		length = strlen(name);
	int64		value = -1;

	if (file == NULL)
		return -1;
	while (value < 0 && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, name, length) == 0 && line[length] == ':')
			value = strtoll(line + length + 1, NULL, 10);
	FreeFile(file);
	return value;
}

/* Return the extension's version in this database and that of the installed files, "" for none. */
static void
extension_versions(char **here, char **files)
{
	MemoryContext context = CurrentMemoryContext;

	*here = *files = "";
	SPI_connect();
	if (SPI_execute("SELECT coalesce(installed_version, ''), default_version "
					"FROM pg_catalog.pg_available_extensions "
					"WHERE name OPERATOR(pg_catalog.=) 'gpujoin'", true, 1) == SPI_OK_SELECT &&
		SPI_processed == 1)
	{
		*here = MemoryContextStrdup(context, SPI_getvalue(SPI_tuptable->vals[0],
														  SPI_tuptable->tupdesc, 1));
		*files = MemoryContextStrdup(context, SPI_getvalue(SPI_tuptable->vals[0],
														   SPI_tuptable->tupdesc, 2));
	}
	SPI_finish();
}

/* Return whether the loaded library is of the files' version, whatever patch release of that. */
static bool
library_is_current(const char *files)
{
	size_t		length = strlen(files);

	return strncmp(GJ_VERSION, files, length) == 0 &&
		(GJ_VERSION[length] == '\0' || GJ_VERSION[length] == '.');
}

static char *
cuda_version(uint32 version)
{
	return psprintf("%u.%u", version / 1000, version % 1000 / 10);
}

static void
check_versions(CheckPage *page, const GjStatusReport *report)
{
	char		path[MAXPGPATH];
	char	   *version;
	char	   *files;
	char	   *module = first_line("/proc/driver/nvidia/version");

	extension_versions(&version, &files);
	page->section = "versions";
	put(page, "PostgreSQL", GetConfigOption("server_version", false, false), NULL);
	put(page, "library", GJ_VERSION, library_is_current(files) ? NULL :
		psprintf("Files of version %s are installed: restart the server.", files));
	put(page, "extension", version,
		strcmp(version, files) == 0 ? NULL : "ALTER EXTENSION gpujoin UPDATE");
	put(page, "ABI", GJ_STRINGIFY(GJ_ABI), NULL);
	gj_daemon_path(path);
	put(page, "gpujoind", path,
		access(path, X_OK) == 0 ? NULL : "This file cannot be run: install gpujoin again.");
	put(page, "NVIDIA kernel module", module != NULL ? module : "none",
		module != NULL ? NULL : "Install NVIDIA's driver, if this machine has a GPU.");
	if (!report->answered)
		return;
	put(page, "CUDA of gpujoind",
		report->cuda_runtime == 0 ? "none" : cuda_version(report->cuda_runtime),
		report->cuda_runtime == 0 ? "Build gpujoin with the CUDA Toolkit." : NULL);
	put(page, "CUDA of the driver",
		report->cuda_driver == 0 ? "none" : cuda_version(report->cuda_driver),
		report->cuda_driver >= report->cuda_runtime ? NULL : "Install a newer driver.");
}

static void
check_processes(CheckPage *page, const GjStatusReport *report)
{
	GjLauncherStatus status;

	gj_launcher_status(&status);
	page->section = "processes";
	put(page, "loaded by", gj_launcher_preloaded() ? "shared_preload_libraries" :
		"the session, or session_preload_libraries", NULL);
	put(page, "launcher", status.launcher_pid == 0 ? "not running" :
		psprintf("process %d", status.launcher_pid),
		status.launcher_pid == 0 ? "The first query that wants a device starts it." : NULL);
	put(page, "gpujoind", status.daemon_pid == 0 ? "not running" :
		psprintf("process %d, started %u times", status.daemon_pid, status.nstarts),
		report->answered ? NULL :
		psprintf("%s%s%s", gj_reason_text(report->failure.reason),
				 report->failure.detail[0] ? ": " : "", report->failure.detail));
	put(page, "background workers", psprintf("%d", max_worker_processes),
		max_worker_processes > max_parallel_workers ? NULL :
		"Parallel workers can take all of them: raise max_worker_processes above max_parallel_workers.");
	put(page, "parallel workers", psprintf("%d, %d per query", max_parallel_workers,
										   max_parallel_workers_per_gather),
		max_parallel_workers > 0 && max_parallel_workers_per_gather > 0 ? NULL :
		"Queries load tables alone: raise max_parallel_workers and max_parallel_workers_per_gather.");
}

static void
check_devices(CheckPage *page, const GjStatusReport *report)
{
	bool		ready = false;

	page->section = "devices";
	put(page, "gpujoin.device", GetConfigOption("gpujoin.device", false, false), NULL);
	for (int i = 0; i < report->ndevices; i++)
	{
		const GjDeviceInfo *info = &report->devices[i].device;
		const char *kind = info->kind == GJ_DEVICE_CPU ? "cpu" : "GPU";

		ready |= report->devices[i].status == GJ_DEVICE_READY;
		if (report->devices[i].status == GJ_DEVICE_READY)
			put(page, psprintf("%s %u", kind, info->ordinal),
				psprintf("%s, %u %s, %.1f GiB, %.1f GiB free when opened", info->name,
						 info->nprocessors,
						 info->kind == GJ_DEVICE_CPU ? "threads" : "multiprocessors",
						 info->memory_total / GJ_GIB, info->memory_free / GJ_GIB),
				info->kind == GJ_DEVICE_CUDA && info->memory_free < info->memory_total / 2 ?
				"Other processes hold much of its memory: see nvidia-smi." : NULL);
		else
			put(page, kind, info->name[0] != '\0' ? info->name : "none", report->devices[i].reason);
	}
	page->section = "rates";
	for (int i = 0; i < report->ndevices && ready; i++)
	{
		const GjDeviceInfo *info = &report->devices[i].device;

		if (report->devices[i].status == GJ_DEVICE_READY)
			put(page, psprintf("%s %u", info->kind == GJ_DEVICE_CPU ? "cpu" : "GPU", info->ordinal),
				psprintf("copies %.1f GB/s in, %.1f GB/s out; hash joins %.0f M rows/s built, %.0f M rows/s probed",
						 info->copy_in_rate / 1e9, info->copy_out_rate / 1e9,
						 info->build_rate / 1e6, info->probe_rate / 1e6),
				info->kind == GJ_DEVICE_CUDA && info->copy_in_rate < 5e9 ?
				"Slow: is the GPU in a slot with few PCIe lanes?" : NULL);
	}
}

static void
check_memory(CheckPage *page)
{
	int64		huge_total = meminfo("HugePages_Total");
	int64		huge_size = meminfo("Hugepagesize");
	int64		total = meminfo("MemTotal");
	int64		available = meminfo("MemAvailable");
	char	   *cgroup = first_line("/sys/fs/cgroup/memory.max");
	struct statvfs shm;
	int			fd;

	page->section = "memory";
	if (total > 0 && available >= 0)
		put(page, "host", psprintf("%.1f GiB, %.1f GiB available", total / (1024.0 * 1024.0),
								   available / (1024.0 * 1024.0)),
			NULL);
	if (cgroup != NULL && strcmp(cgroup, "max") != 0)
		put(page, "limit of the control group", psprintf("%.1f GiB", atof(cgroup) / GJ_GIB),
			"gpujoind and its rings count as well.");
	put(page, "shared_buffers", GetConfigOptionByName("shared_buffers", NULL, false), NULL);
	put(page, "huge pages",
		psprintf("huge_pages = %s, %lld of %lld kB in the system",
				 GetConfigOption("huge_pages", false, false), (long long) Max(huge_total, 0),
				 (long long) Max(huge_size, 0)),
		NBuffers < GJ_LARGE_BUFFERS || huge_total > 0 ? NULL :
		psprintf("sysctl vm.nr_hugepages=%d, and huge_pages = on",
				 (int) (NBuffers / 1024 * (BLCKSZ / 1024) / Max(huge_size / 1024, 1) + 200)));
	if (statvfs("/dev/shm", &shm) == 0)
		put(page, "/dev/shm",
			psprintf("%.1f GiB free", (double) shm.f_bavail * shm.f_frsize / GJ_GIB),
			(double) shm.f_bavail * shm.f_frsize >= GJ_ENOUGH_SHM ? NULL :
			"Parallel workers need it: in a container, raise --shm-size.");
	fd = memfd_create("gpujoin check", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && fallocate(fd, 0, 0, GJ_OUTPUT_SLOTS * (off_t) GJ_OUTPUT_SLOT_SIZE) == 0)
		put(page, "memfd", "works", NULL);
	else
		put(page, "memfd", psprintf("%m"), "Queries exchange rows with gpujoind through it.");
	if (fd >= 0)
		close(fd);
}

/* Add the limits of this process, which gpujoind inherits. */
static void
put_limit(CheckPage *page, const char *name, int which, rlim_t enough, const char *advice)
{
	struct rlimit limit;
	char	   *soft;
	char	   *hard;

	if (getrlimit(which, &limit) != 0)
		return;
	soft = limit.rlim_cur == RLIM_INFINITY ? "unlimited" :
		psprintf("%llu", (unsigned long long) limit.rlim_cur);
	hard = limit.rlim_max == RLIM_INFINITY ? "unlimited" :
		psprintf("%llu", (unsigned long long) limit.rlim_max);
	put(page, name, psprintf("%s, at most %s", soft, hard),
		limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= enough ? NULL : advice);
}

static void
check_limits(CheckPage *page)
{
	page->section = "limits";
	put_limit(page, "open files (RLIMIT_NOFILE)", RLIMIT_NOFILE, GJ_ENOUGH_FILES,
			  "gpujoind needs three for each query: raise LimitNOFILE of the service.");
	put_limit(page, "locked memory (RLIMIT_MEMLOCK)", RLIMIT_MEMLOCK, 64 * 1024,
			  "Raise LimitMEMLOCK of the service if gpujoind cannot register its rings.");
	put_limit(page, "address space (RLIMIT_AS)", RLIMIT_AS, RLIM_INFINITY,
			  "CUDA reserves more addresses than there is memory: set LimitAS=infinity.");
}

/* Add settings that are not as they come. */
static void
check_settings(CheckPage *page)
{
	page->section = "settings";
	SPI_connect();
	if (SPI_execute("SELECT name, pg_catalog.concat_ws(' ', setting, unit), source "
					"FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.~~) 'gpujoin.%' "
					"AND setting IS DISTINCT FROM boot_val ORDER BY 1", true, 0) == SPI_OK_SELECT)
		for (uint64 i = 0; i < SPI_processed; i++)
		{
			HeapTuple	row = SPI_tuptable->vals[i];
			TupleDesc	desc = SPI_tuptable->tupdesc;

			put(page, SPI_getvalue(row, desc, 1),
				psprintf("%s (%s)", SPI_getvalue(row, desc, 2), SPI_getvalue(row, desc, 3)), NULL);
		}
	SPI_finish();
	if (DefaultXactIsoLevel == XACT_SERIALIZABLE)
		put(page, "default_transaction_isolation", "serializable",
			"Nothing is offloaded in serializable transactions.");
	if (gj_old_snapshot_threshold_active())
		put(page, "old_snapshot_threshold", GetConfigOption("old_snapshot_threshold", false, false),
			"Tables are read by PostgreSQL's own plans: set it to -1.");
}

/* Return the page. */
Datum
gpujoin_check(PG_FUNCTION_ARGS)
{
	CheckPage	page;
	GjStatusReport *report;

	InitMaterializedSRF(fcinfo, 0);
	page.result = (ReturnSetInfo *) fcinfo->resultinfo;
	report = gj_status_read();
	check_versions(&page, report);
	check_processes(&page, report);
	check_devices(&page, report);
	check_memory(&page);
	check_limits(&page);
	check_settings(&page);
	return (Datum) 0;
}
