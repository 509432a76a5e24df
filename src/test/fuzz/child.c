/*
 * child.c
 *	  A gpujoind that is a child of the fuzzer.
 */
#define _GNU_SOURCE
#include "child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"

static pid_t daemon_pid;
static int	daemon_pipe;
static char directory[] = "/tmp/gjfuzz.XXXXXX";

void
fuzz_start_daemon(const char *path)
{
	char		pipe_text[16];
	char		log[64];
	int			fds[2];

	if (!mkdtemp(directory) || pipe(fds) != 0)
		fuzz_fail("could not make a folder and a pipe: %s", strerror(errno));
	daemon_pipe = fds[1];
	fcntl(daemon_pipe, F_SETFD, FD_CLOEXEC);
	snprintf(pipe_text, sizeof(pipe_text), "%d", fds[0]);
	snprintf(log, sizeof(log), "%s/log", directory);
	daemon_pid = fork();
	if (daemon_pid == 0)
	{
		int			fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		/* 2: also where gpujoind handles a signal itself */
		setenv("ASAN_OPTIONS", "allocator_may_return_null=1:quarantine_size_mb=16:malloc_context_size=8:"
			   "handle_segv=2:handle_sigbus=2:handle_abort=2:handle_sigfpe=2:handle_sigill=2", 0);
		setenv("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1", 0);
		execl(path, path, "--directory", directory, "--parent-fd", pipe_text,
			  "--cpu-devices", "2", (char *) NULL);
		_exit(127);
	}
	close(fds[0]);
	if (chdir(directory) != 0)
		fuzz_fail("could not enter \"%s\"", directory);
	mkdir("base", 0700);
	mkdir("base/pgsql_tmp", 0700);
	for (int i = 0; access(GJ_SOCKET_NAME, F_OK) != 0; i++)
	{
		if (i == 300)
			fuzz_fail("\"%s\" does not listen in %s", path, directory);
		usleep(100000);
	}
}

static void
tell_log(void)
{
	fflush(stdout);
	(void) !system("tail -n 60 log >&2");
}

void
fuzz_check_alive(void)
{
	int			status;

	if (waitpid(daemon_pid, &status, WNOHANG) == 0)
		return;
	tell_log();
	fuzz_fail("gpujoind has ended, by %s %d", WIFSIGNALED(status) ? "signal" : "status",
			  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void
fuzz_stop_daemon(void)
{
	char		command[64];
	int			status;

	close(daemon_pipe);
	waitpid(daemon_pid, &status, 0);
	if (status != 0)
	{
		tell_log();
		fuzz_fail("gpujoind ends with status %d", status);
	}
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	(void) !system(command);
}

uint32_t
fuzz_count_files(void)
{
	char		path[64];
	char		target[64];
	struct dirent *entry;
	uint32_t	n = 0;
	DIR		   *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int) daemon_pid);
	dir = opendir(path);
	if (!dir)
		fuzz_check_alive();
	while (dir && (entry = readdir(dir)) != NULL)
	{
		ssize_t		length = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[length > 0 ? length : 0] = '\0';
		n += strncmp(target, "/memfd:gpujoin", 14) != 0;
	}
	if (dir)
		closedir(dir);
	return n;
}

uint64_t
fuzz_count_memory(void)
{
	char		line[256];
	unsigned long long kb = 0;
	FILE	   *f;

	snprintf(line, sizeof(line), "/proc/%d/status", (int) daemon_pid);
	f = fopen(line, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %llu", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb << 10;
}
