/*
 * test_crash.c
 *	  Reports of faults: what is at work is told, also where a thread's stack is full.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/crash.h"
#include "unit.h"

#define MOST_RUNS	1000

/* More runs at a time than can be told of do no harm. */
void
test_crash_runs(void)
{
	int			run[MOST_RUNS];
	int			n = 0;

	while (n < MOST_RUNS && (run[n] = gj_crash_begin("a run")) >= 0)
		n++;
	CHECK(n > 0 && n < MOST_RUNS);
	gj_crash_phase(-1, "nothing");
	gj_crash_end(-1);
	gj_crash_end(run[n / 2]);
	CHECK_EQUAL(gj_crash_begin("another run"), run[n / 2]);
	for (int i = 0; i < n; i++)
		gj_crash_end(run[i]);
	CHECK_EQUAL(gj_crash_begin("the first run"), run[0]);
	gj_crash_end(run[0]);
}

/* Sanitizers report faults themselves. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

static int
fill_stack(int depth)
{
	volatile char bytes[1024];

	bytes[0] = (char) depth;
	return depth < 0 ? 0 : fill_stack(depth + 1) + bytes[0];
}

static void *
fault_main(void *arg)
{
	gj_crash_guard_stack();
	if (*(const int *) arg == SIGSEGV)
		return (void *) (intptr_t) fill_stack(0);
	raise(*(const int *) arg);
	return NULL;
}

/* Has a thread of another process fail: what that process writes, and its status. */
static int
report_of(int signo, char *text, size_t size)
{
	const struct rlimit none = {0, 0};
	int			fds[2];
	int			status = 0;
	size_t		nread = 0;
	ssize_t		more;
	pthread_t	thread;
	pid_t		child;

	fflush(stdout);
	if (!CHECK(pipe(fds) == 0) || !CHECK((child = fork()) >= 0))
		return 0;
	if (child == 0)
	{
		setrlimit(RLIMIT_CORE, &none);
		dup2(fds[1], STDERR_FILENO);
		gj_crash_report();
		gj_crash_device_error("out of\norder");
		gj_crash_phase(gj_crash_begin("a join"), "probing");
		gj_crash_end(gj_crash_begin("what has ended"));
		if (signo == 0)
			exit(7);
		pthread_create(&thread, NULL, fault_main, &signo);
		pthread_join(thread, NULL);
		_exit(0);
	}
	close(fds[1]);
	while (nread < size - 1 && (more = read(fds[0], text + nread, size - 1 - nread)) > 0)
		nread += (size_t) more;
	text[nread] = '\0';
	close(fds[0]);
	waitpid(child, &status, 0);
	return status;
}

void
test_crash_report(void)
{
	static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE};
	char		text[4096];
	char		line[64];
	int			status;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
	{
		status = report_of(signals[i], text, sizeof(text));
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
		snprintf(line, sizeof(line), "ERROR: ended by signal %d", signals[i]);
		CHECK_TEXT(text, line);
		CHECK_TEXT(text, "; last device error: out of order\n");
		CHECK_TEXT(text, "ERROR: at work: a join; phase: probing\n");
		CHECK(strstr(text, "what has ended") == NULL);
	}
	status = report_of(0, text, sizeof(text));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK_TEXT(text, "ERROR: exit was called with status 7\n");
}

#else

/* The handlers of the sanitizers stay. */
void
test_crash_report(void)
{
	struct sigaction before,
				after;
	int			status = 0;
	pid_t		child = fork();

	REQUIRE(child >= 0);
	if (child == 0)
	{
		sigaction(SIGSEGV, NULL, &before);
		gj_crash_report();
		sigaction(SIGSEGV, NULL, &after);
		_exit(before.sa_sigaction == after.sa_sigaction ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif
