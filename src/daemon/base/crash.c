/*
 * crash.c
 *	  Reports what ends gpujoind; see crash.h.
 *
 * The handler runs on a stack of its own and makes its lines with nothing but memory and write().
 * Then the signal does what it does by default, so that the launcher sees it, and a core file is
 * what it would have been.
 */
#define _GNU_SOURCE
#include "crash.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

#define GJ_CRASH_RUNS		64
#define GJ_CRASH_STACK		(32 * 1024)
#define GJ_CRASH_LINE		512

/* Sanitizers have reports of their own, which say more. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GJ_SANITIZED		true
#else
#define GJ_SANITIZED		false
#endif

/* A run; `shape` is written before `phase` is set and stays as long as that. */
typedef struct GjCrashRun
{
	bool		taken;			/* atomic */
	const char *phase;			/* atomic; NULL: there is no run */
	char		shape[GJ_SHAPE_BYTES];
} GjCrashRun;

static GjCrashRun runs[GJ_CRASH_RUNS];
static char device_error[GJ_SHAPE_BYTES];
static _Thread_local uint8_t stack[GJ_CRASH_STACK];

/* ---- lines, made without the C library's memory and locks */

typedef struct GjCrashLine
{
	size_t		n;
	char		text[GJ_CRASH_LINE];
} GjCrashLine;

static void
add(GjCrashLine *line, const char *text)
{
	/* the last byte is for the end of the line */
	while (*text != '\0' && line->n < sizeof(line->text) - 1)
	{
		line->text[line->n++] = *text == '\n' ? ' ' : *text;
		text++;
	}
}

static void
add_number(GjCrashLine *line, uint64_t number, unsigned base)
{
	char		digits[24];
	char	   *at = digits + sizeof(digits) - 1;

	*at = '\0';
	do
		*--at = "0123456789abcdef"[number % base];
	while ((number /= base) > 0);
	add(line, at);
}

static void
write_line(GjCrashLine *line)
{
	line->text[line->n++] = '\n';
	/* nobody is left to tell if this fails */
	(void) !write(STDERR_FILENO, line->text, line->n);
	line->n = 0;
}

/* ---- the report */

static void
report_signal(int signo, const siginfo_t *info)
{
	GjCrashLine line = {.n = 0};

	add(&line, "ERROR: ended by signal ");
	add_number(&line, (unsigned) signo, 10);
	/* SIGABRT comes from the process itself */
	if (info->si_code <= 0 && info->si_pid != getpid())
	{
		add(&line, " from process ");
		add_number(&line, (unsigned) info->si_pid, 10);
	}
	else if (info->si_code > 0)
	{
		add(&line, " at address 0x");
		add_number(&line, (uintptr_t) info->si_addr, 16);
	}
	add(&line, "; last device error: ");
	add(&line, device_error[0] != '\0' ? device_error : "none");
	write_line(&line);
}

static void
report_runs(void)
{
	GjCrashLine line = {.n = 0};
	bool		any = false;

	for (int i = 0; i < GJ_CRASH_RUNS; i++)
	{
		const char *phase = __atomic_load_n(&runs[i].phase, __ATOMIC_ACQUIRE);

		if (!phase)
			continue;
		any = true;
		add(&line, "ERROR: at work: ");
		add(&line, runs[i].shape);
		add(&line, "; phase: ");
		add(&line, phase);
		write_line(&line);
	}
	if (any)
		return;
	add(&line, "ERROR: no program was at work");
	write_line(&line);
}

static void
handle_fault(int signo, siginfo_t *info, void *context)
{
	static bool reported;

	(void) context;
	/* another thread reports, and ends the process */
	while (__atomic_exchange_n(&reported, true, __ATOMIC_ACQ_REL))
		pause();
	report_signal(signo, info);
	report_runs();
	/* SA_RESETHAND: does what it does by default */
	raise(signo);
}

static void
report_exit(int status, void *arg)
{
	(void) arg;
	gj_log(GJ_ERROR, "exit was called with status %d", status);
}

void
gj_crash_guard_stack(void)
{
	const stack_t own = {.ss_sp = stack,.ss_size = sizeof(stack)};

	/* theirs is not ours to replace */
	if (!GJ_SANITIZED)
		(void) sigaltstack(&own, NULL);
}

void
gj_crash_report(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
	const struct sigaction action = {.sa_sigaction = handle_fault,
	.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER};

	on_exit(report_exit, NULL);
	if (GJ_SANITIZED)
		return;
	gj_crash_guard_stack();
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigaction(faults[i], &action, NULL);
}

/* ---- what is reported */

int
gj_crash_begin(const char *shape)
{
	for (int i = 0; i < GJ_CRASH_RUNS; i++)
	{
		if (__atomic_exchange_n(&runs[i].taken, true, __ATOMIC_ACQUIRE))
			continue;
		snprintf(runs[i].shape, sizeof(runs[i].shape), "%s", shape);
		gj_crash_phase(i, "opening");
		return i;
	}
	return -1;
}

void
gj_crash_phase(int run, const char *phase)
{
	if (run >= 0)
		__atomic_store_n(&runs[run].phase, phase, __ATOMIC_RELEASE);
}

void
gj_crash_end(int run)
{
	if (run < 0)
		return;
	gj_crash_phase(run, NULL);
	__atomic_store_n(&runs[run].taken, false, __ATOMIC_RELEASE);
}

void
gj_crash_device_error(const char *text)
{
	/* of two at a time some mixture is kept, which ends where the memory does */
	strncpy(device_error, text, sizeof(device_error) - 1);
}
