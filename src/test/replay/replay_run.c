/*
 * replay_run.c
 *	  build/replay_run, for scripts/replay: runs saved programs and writes the result of each.
 *
 * The result of DIRECTORY/NAME.gj goes to NAME.result in the directory of --result, as result.h
 * says.  A run that fails has a result, too.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/base.h"
#include "daemon/session/run_file.h"
#include "result.h"

/* A run may take so long, in seconds. */
#define MAX_SECONDS		60

static const char *directory = ".";
static bool spill;				/* as if something had not fitted the device before */
static uint32_t cpu_devices = 1,
			gpu_devices = 1;
static GjTempAccount temp_account;
static GjTeamOptions team = {.spill_memory = UINT64_C(1) << 30,
.temp = {&temp_account, UINT64_MAX, "/tmp"}};

static const struct option options[] = {
	{"result", required_argument, NULL, 'r'},
	{"device", required_argument, NULL, 'd'},
	{"cpu-devices", required_argument, NULL, 'c'},
	{"gpu-devices", required_argument, NULL, 'g'},
	{"devices-per-query", required_argument, NULL, 'n'},
	{"exchange", required_argument, NULL, 'e'},
	{"memory-limit", required_argument, NULL, 'm'},	/* MB */
	{"spill", no_argument, NULL, 's'},
	{"spill-memory", required_argument, NULL, 'h'}, /* MB */
	{"temp-directory", required_argument, NULL, 't'},
	{NULL, 0, NULL, 0}
};

static bool
parse_option(int option)
{
	switch (option)
	{
		case 'r':
			directory = optarg;
			return true;
		case 'd':
			team.kind = strcmp(optarg, "cuda") == 0 ? GJ_DEVICE_CUDA : GJ_DEVICE_CPU;
			return true;
		case 'c':
			cpu_devices = (uint32_t) atoi(optarg);
			return true;
		case 'g':
			gpu_devices = (uint32_t) atoi(optarg);
			return true;
		case 'n':
			team.max_devices = (uint32_t) atoi(optarg);
			return true;
		case 'e':
			team.exchange = strcmp(optarg, "on") == 0 ? GJ_EXCHANGE_ON :
				strcmp(optarg, "ring") == 0 ? GJ_EXCHANGE_RING :
				strcmp(optarg, "ranges") == 0 ? GJ_EXCHANGE_RANGES : GJ_EXCHANGE_OFF;
			return true;
		case 'm':
			team.limits.run = (uint64_t) atoi(optarg) << 20;
			return true;
		case 's':
			spill = true;
			return true;
		case 'h':
			team.spill_memory = (uint64_t) atoi(optarg) << 20;
			return true;
		case 't':
			team.temp.directory = optarg;
			return true;
		default:
			return false;
	}
}

/* Opens the result of a file. */
static FILE *
open_result(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	char		result[4096];
	FILE	   *out;

	snprintf(result, sizeof(result), "%s/%.*s.result", directory,
			 (int) (dot ? (size_t) (dot - name) : strlen(name)), name);
	out = fopen(result, "w");
	if (!out)
		fprintf(stderr, "could not create \"%s\": %s\n", result, strerror(errno));
	return out;
}

static GjStatus
take_batch(void *arg, const uint8_t *slot, uint32_t nrows)
{
	return result_batch(arg, slot, nrows);
}

static bool
write_result(GjSavedFile *file, FILE *out)
{
	Result	   *result = result_open(gj_saved_program(file), out);
	GjRunStats	stats = {0};
	GjErrorText why = {""};
	GjStatus	status;

	if (!result)
		return false;
	if (spill)
		gj_saved_program(file)->spill = 1;
	/* one that hangs ends the process */
	alarm(MAX_SECONDS);
	status = gj_saved_run(file, &team, take_batch, result, &stats, &why);
	alarm(0);
	result_end(result, status, why.text, &stats);
	result_close(result);
	return true;
}

static bool
run_file(const char *path)
{
	GjSavedFile *file = gj_saved_open(path);
	FILE	   *out = file ? open_result(path) : NULL;
	bool		ok = out && write_result(file, out);

	if (out)
		ok &= fclose(out) == 0;
	gj_saved_close(file);
	return ok;
}

int
main(int argc, char **argv)
{
	GjErrorText why;
	bool		ok = true;
	int			c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!parse_option(c))
			return 2;
	if (!gj_devices_configure(&(GjDeviceChoice) {.ncpu = cpu_devices,.per_gpu = gpu_devices}, &why))
	{
		fprintf(stderr, "%s\n", why.text);
		return 2;
	}
	gj_devices_start(false);
	for (int i = optind; i < argc; i++)
		ok &= run_file(argv[i]);
	gj_segment_stop();
	gj_devices_stop();
	return ok ? 0 : 1;
}
