/*
 * common.c
 *	  Random numbers, the command line, and telling the iteration when something goes wrong.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define FUZZ_SANITIZED
#include <sanitizer/common_interface_defs.h>

/* a program that asks for too much memory is refused it, as by malloc() */
const char *
__asan_default_options(void)
{
	return "allocator_may_return_null=1:detect_leaks=1:handle_abort=1:hard_rss_limit_mb=6000:"
		"quarantine_size_mb=32:malloc_context_size=8";
}

const char *
__ubsan_default_options(void)
{
	return "halt_on_error=1:print_stacktrace=1";
}
#endif

/* ---- random numbers */

uint64_t
fuzz_next(FuzzRandom *r)
{
	/* Knuth's MMIX, and its high bits folded over the weak low ones */
	r->state = r->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return r->state ^ (r->state >> 29);
}

FuzzRandom
fuzz_random(uint64_t seed, uint64_t iteration)
{
	FuzzRandom	r = {seed * UINT64_C(0x9E3779B97F4A7C15) ^ iteration * UINT64_C(0xD1B54A32D192ED03)};

	for (int i = 0; i < 4; i++)
		r.state ^= fuzz_next(&r) >> 17;
	return r;
}

/* ---- the command line */

static uint64_t
number(const char *text)
{
	char	   *end;
	uint64_t	n = strtoull(text, &end, 10);

	if (*text == '\0' || *end != '\0')
	{
		fprintf(stderr, "\"%s\" is no number\n", text);
		exit(2);
	}
	return n;
}

FuzzOptions
fuzz_options(int argc, char **argv, const char *what, uint64_t count)
{
	static const struct option names[] = {
		{"seed", required_argument, NULL, 's'},
		{"first", required_argument, NULL, 'f'},
		{"count", required_argument, NULL, 'c'},
		{"daemon", required_argument, NULL, 'd'},
		{NULL, 0, NULL, 0}
	};
	FuzzOptions options = {.seed = 1,.count = count};
	int			c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
	{
		if (c == 's')
			options.seed = number(optarg);
		else if (c == 'f')
			options.first = number(optarg);
		else if (c == 'c')
			options.count = number(optarg);
		else if (c == 'd')
			options.daemon = optarg;
		else
		{
			fprintf(stderr, "usage: %s --seed N --first N --count N %s\n", argv[0], what);
			exit(2);
		}
	}
	options.files = argv + optind;
	options.nfiles = argc - optind;
	return options;
}

/* ---- what goes wrong */

/* Of the thread that works, for those who tell of it. */
static struct
{
	uint64_t	seed;
	uint64_t	first;
	uint64_t	count;
	uint64_t	deadline;		/* atomic: seconds; 0: none */
	unsigned	seconds;
	pthread_t	worker;
}			now;

static void
tell_iterations(void)
{
	char		text[160];
	int			n = snprintf(text, sizeof(text), "\nfuzz: --seed %llu --first %llu --count %llu\n",
							 (unsigned long long) now.seed, (unsigned long long) now.first, (unsigned long long) now.count);

	(void) !write(STDERR_FILENO, text, (size_t) n);
}

#ifndef FUZZ_SANITIZED
static void
crashed(int signal)
{
	tell_iterations();
	_exit(128 + signal);
}
#endif

static void
tell_crashes(void)
{
#ifdef FUZZ_SANITIZED
	__sanitizer_set_death_callback(tell_iterations);
#else
	const int	signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], crashed);
#endif
}

static uint64_t
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t) t.tv_sec;
}

void
fuzz_begin(uint64_t seed, uint64_t first, uint64_t count)
{
	if (now.count == 0)
		tell_crashes();
	now.seed = seed;
	now.first = first;
	now.count = count;
	if (now.seconds > 0)
		__atomic_store_n(&now.deadline, seconds() + now.seconds, __ATOMIC_RELAXED);
}

static void *
watch(void *arg)
{
	(void) arg;
	for (;;)
	{
		uint64_t	deadline = __atomic_load_n(&now.deadline, __ATOMIC_RELAXED);

		if (deadline > 0 && seconds() > deadline)
			break;
		sleep(1);
	}
	fprintf(stderr, "fuzz: this hangs\n");
	/* where it hangs is what a sanitizer then tells */
	pthread_kill(now.worker, SIGABRT);
	sleep(10);
	tell_iterations();
	_exit(1);
}

void
fuzz_watch(unsigned limit)
{
	pthread_t	thread;

	now.seconds = limit;
	now.worker = pthread_self();
	if (pthread_create(&thread, NULL, watch, NULL) != 0)
		fuzz_fail("could not start a thread");
	pthread_detach(thread);
}

void
fuzz_fail(const char *format,...)
{
	va_list		args;

	fflush(stdout);
	fprintf(stderr, "fuzz: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	tell_iterations();
	/* no leaks are looked for: nothing was given back */
	_exit(1);
}
