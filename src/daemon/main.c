/*
 * main.c
 *	  gpujoind: arguments, and which of its jobs to do.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/base.h"
#include "daemon/session/run_file.h"
#include "daemon/session/server.h"

/* No --device: a GPU if there is one. */
#define GJ_ANY_DEVICE		((GjDeviceKind) -1)

typedef struct GjOptions
{
	GjServerOptions server;
	bool		list_devices;
	bool		run;			/* files[nfiles], `repeat` times each */
	char	  **files;
	int			nfiles;
	int			repeat;
	GjTeamOptions team;
	GjDeviceChoice devices;
} GjOptions;

static const struct option long_options[] = {
	{"directory", required_argument, NULL, 'd'},
	{"parent-fd", required_argument, NULL, 'p'},
	{"journal-fd", required_argument, NULL, 'j'},
	{"blame", no_argument, NULL, 'b'},
	{"incarnation", required_argument, NULL, 'i'},
	{"list-devices", no_argument, NULL, 'l'},
	{"run", no_argument, NULL, 'r'},
	{"device", required_argument, NULL, 'k'},
	{"repeat", required_argument, NULL, 'n'},
	{"devices", required_argument, NULL, 'D'},
	{"cpu-devices", required_argument, NULL, 'C'},
	{"gpu-devices", required_argument, NULL, 'G'},
	{"cpu-threads", required_argument, NULL, 'T'},
	{"cpu-memory", required_argument, NULL, 'M'},
	{"version", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0}
};

static const char usage[] =
"gpujoind runs joins on GPUs for the PostgreSQL extension gpujoin.\n"
"\n"
"Usage:\n"
"  gpujoind --directory DIR      serve on the socket " GJ_SOCKET_NAME " in DIR\n"
"           [--parent-fd N]      end when this socket is closed\n"
"           [--journal-fd N]     keep counters in this memory file\n"
"           [--blame]            the gpujoind before this one crashed\n"
"           [--incarnation N]    serve sessions that name this number\n"
"  gpujoind --list-devices       show the GPUs and the cpu device\n"
"  gpujoind --run FILE...        run saved programs\n"
"           [--device cpu|cuda]  on this device (default cuda, cpu if there is none)\n"
"           [--repeat N]         N times\n"
"  gpujoind --version | --help\n"
"With each of the first three:\n"
"           [--devices 0,1,...]  use these GPUs only\n"
"           [--cpu-devices N]    let the cpu pretend to be N devices\n"
"           [--gpu-devices N]    let each GPU pretend to be N devices\n"
"           [--cpu-threads N]    threads of the cpu device (default: one a processor)\n"
"           [--cpu-memory N]     its memory, in MB (default: half of the machine's)\n"
"\n"
"PostgreSQL starts the server itself: see README.md.\n";

static int
list_devices(void)
{
	GjErrorText why;
	uint32_t	ncuda = gj_devices_cuda(true, &why);
	uint32_t	n = gj_devices_count();
	const GjUnusedDevice *unused;
	uint32_t	nunused;

	for (uint32_t i = 0; i < n; i++)
	{
		const GjDeviceInfo *info = &gj_devices_get(i)->info;

		printf("%s %u: %s, %.1f GiB, %u %s\n", info->kind == GJ_DEVICE_CUDA ? "cuda" : "cpu",
			   info->ordinal, info->name, info->memory_total / (1024.0 * 1024.0 * 1024.0),
			   info->nprocessors, info->kind == GJ_DEVICE_CUDA ? "multiprocessors" : "threads");
	}
	nunused = gj_devices_unused(&unused);
	for (uint32_t i = 0; i < nunused; i++)
		printf("not used: %s: %s\n", unused[i].name, unused[i].why.text);
	if (ncuda == 0)
		printf("no GPU: %s\n", why.text);
	return 0;
}

/* A number that is at least `least`; ends the process if it is none. */
static int
parse_number(const char *name, const char *text, int least)
{
	char	   *end;
	long		n = strtol(text, &end, 10);

	if (*text == '\0' || *end != '\0' || n < least || n > 1000000)
	{
		fprintf(stderr, "gpujoind: --%s: invalid value \"%s\"\n", name, text);
		exit(2);
	}
	return (int) n;
}

static GjDeviceKind
parse_device(const char *text)
{
	if (strcmp(text, "cpu") == 0)
		return GJ_DEVICE_CPU;
	if (strcmp(text, "cuda") == 0)
		return GJ_DEVICE_CUDA;
	fprintf(stderr, "gpujoind: --device: \"%s\" is neither cpu nor cuda\n", text);
	exit(2);
}

static void
parse_options(int argc, char **argv, GjOptions *options)
{
	int			c;

	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1)
	{
		switch (c)
		{
			case 'd':
				options->server.directory = optarg;
				break;
			case 'p':
				options->server.parent_fd = parse_number("parent-fd", optarg, 0);
				break;
			case 'j':
				options->server.journal_fd = parse_number("journal-fd", optarg, 0);
				break;
			case 'b':
				options->server.blame = true;
				break;
			case 'i':
				options->server.incarnation = strtoull(optarg, NULL, 10);
				break;
			case 'l':
				options->list_devices = true;
				break;
			case 'r':
				options->run = true;
				break;
			case 'k':
				options->team.kind = parse_device(optarg);
				break;
			case 'n':
				options->repeat = parse_number("repeat", optarg, 1);
				break;
			case 'D':
				options->devices.gpus = optarg;
				break;
			case 'C':
				options->devices.ncpu = parse_number("cpu-devices", optarg, 1);
				break;
			case 'G':
				options->devices.per_gpu = parse_number("gpu-devices", optarg, 1);
				break;
			case 'T':
				options->devices.cpu_threads = parse_number("cpu-threads", optarg, 0);
				break;
			case 'M':
				options->devices.cpu_memory =
					(uint64_t) parse_number("cpu-memory", optarg, 0) << 20;
				break;
			case 'v':
				printf("gpujoind %s (ABI %d)\n", GJ_VERSION, GJ_ABI);
				exit(0);
			case 'h':
				fputs(usage, stdout);
				exit(0);
			default:
				exit(2);
		}
	}
	options->files = argv + optind;
	options->nfiles = argc - optind;
	if (optind < argc && !options->run)
	{
		fprintf(stderr, "gpujoind: unexpected argument \"%s\"\n", argv[optind]);
		exit(2);
	}
}

#ifdef GJ_COVERAGE
extern void __gcov_dump(void);
#endif
#ifdef __SANITIZE_ADDRESS__
extern void __lsan_do_leak_check(void);
#endif

static int
run_files(GjOptions *options)
{
	GjErrorText why;

	if (options->team.kind == GJ_ANY_DEVICE)
		options->team.kind = gj_devices_cuda(true, &why) > 0 ? GJ_DEVICE_CUDA : GJ_DEVICE_CPU;
	return gj_run_files(options->files, options->nfiles, &options->team, options->repeat);
}

int
main(int argc, char **argv)
{
	static GjTempAccount temp_account;	/* of --run */
	GjOptions	options = {.server = {NULL, -1, -1, false, 0},.devices = {.ncpu = 1,.per_gpu = 1},
	.repeat = 1,.team = {.kind = GJ_ANY_DEVICE,.spill_memory = UINT64_C(1) << 30,
	.temp = {&temp_account, UINT64_MAX, "/tmp"}}};
	GjErrorText why;
	int			status;

	parse_options(argc, argv, &options);
	if (!gj_devices_configure(&options.devices, &why))
	{
		fprintf(stderr, "gpujoind: --devices: %s\n", why.text);
		return 2;
	}
	if (options.server.directory)
	{
		status = gj_serve(&options.server);
#ifdef GJ_COVERAGE
		__gcov_dump();
#endif
#ifdef __SANITIZE_ADDRESS__
		__lsan_do_leak_check();
#endif
		/* sessions may still run: no destructors */
		_exit(status);
	}
	if (!options.list_devices && (!options.run || options.nfiles == 0))
	{
		fputs(usage, stderr);
		return 2;
	}
	gj_devices_start(false);
	if (options.list_devices)
		status = list_devices();
	else
		status = run_files(&options);
	gj_segment_stop();
	gj_devices_stop();
	return status;
}
