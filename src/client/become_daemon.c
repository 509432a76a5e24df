/*
 * become_daemon.c
 *	  What the launcher's child does before it is gpujoind: async-signal-safe calls only.
 */
#include "postgres.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "miscadmin.h"

#include "client/become_daemon.h"
#include "client/client.h"
#include "guc.h"

#define GJ_PARENT_FD			3	/* in gpujoind */
#define GJ_JOURNAL_FD			4

/* Close all descriptors from `first` on. */
static void
close_from(int first)
{
	struct dirent *entry;
	DIR		   *dir;

#ifdef SYS_close_range
	if (syscall(SYS_close_range, first, ~0U, 0) == 0)
		return;
#endif

	/* an old kernel; this process has one thread, so that memory can be allocated */
	dir = opendir("/proc/self/fd");
	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL)
	{
		int			fd = atoi(entry->d_name);

		if (fd >= first && fd != dirfd(dir))
			close(fd);
	}
}

/* Put the descriptors where gpujoind expects them: 0 is empty, 1 and 2 are the log. */
static void
arrange_descriptors(int parent_fd, int journal_fd, int log_fd)
{
	int			null_fd = open("/dev/null", O_RDWR);

	/* move all out of the way of the numbers to come */
	parent_fd = fcntl(parent_fd, F_DUPFD, 10);
	log_fd = fcntl(log_fd, F_DUPFD, 10);
	null_fd = fcntl(null_fd, F_DUPFD, 10);
	journal_fd = journal_fd < 0 ? null_fd : fcntl(journal_fd, F_DUPFD, 10);
	dup2(null_fd, STDIN_FILENO);
	dup2(log_fd, STDOUT_FILENO);
	dup2(log_fd, STDERR_FILENO);
	dup2(parent_fd, GJ_PARENT_FD);
	dup2(journal_fd, GJ_JOURNAL_FD);
	close_from(GJ_JOURNAL_FD + 1);
}

/* Give up what a child of a background worker inherits of its signals. */
static void
reset_signals(void)
{
	sigset_t	none;

	for (int signo = 1; signo < NSIG; signo++)
		(void) signal(signo, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Add an argument of gpujoind, with a number, unless that is the default.  Returns the new number
 * of arguments.
 */
static int
add_number(char *name, int value, int usual, char number[16], char **arguments, int n)
{
	if (value == usual)
		return n;
	snprintf(number, 16, "%d", value);
	arguments[n++] = name;
	arguments[n++] = number;
	return n;
}

void
gj_become_daemon(const GjDaemonStart *start)
{
	char	   *arguments[22];
	char		numbers[4][16];
	char		incarnation[24];
	int			n = 0;

	/* SIGKILL ends a stopped process, too; the launcher may have ended meanwhile */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != MyProcPid)
		_exit(0);
	setsid();
	arrange_descriptors(start->parent_fd, start->journal_fd, start->log_fd);
	arguments[n++] = GJ_DAEMON_NAME;
	arguments[n++] = "--directory";
	arguments[n++] = DataDir;
	arguments[n++] = "--parent-fd";
	arguments[n++] = CppAsString2(GJ_PARENT_FD);
	arguments[n++] = "--incarnation";
	snprintf(incarnation, sizeof(incarnation), UINT64_FORMAT, start->incarnation);
	arguments[n++] = incarnation;
	if (start->journal_fd >= 0)
	{
		arguments[n++] = "--journal-fd";
		arguments[n++] = CppAsString2(GJ_JOURNAL_FD);
	}
	if (start->blame)
		arguments[n++] = "--blame";
	if (gj_devices[0] != '\0')
	{
		arguments[n++] = "--devices";
		arguments[n++] = gj_devices;
	}
	n = add_number("--cpu-devices", gj_cpu_devices, 1, numbers[0], arguments, n);
	n = add_number("--gpu-devices", gj_gpu_devices, 1, numbers[1], arguments, n);
	n = add_number("--cpu-threads", gj_cpu_threads, 0, numbers[2], arguments, n);
	n = add_number("--cpu-memory", gj_cpu_memory, 0, numbers[3], arguments, n);
	arguments[n] = NULL;
	reset_signals();
	execv(start->path, arguments);
	dprintf(STDERR_FILENO, "ERROR: could not run \"%s\": %s\n", start->path, strerror(errno));
	_exit(127);
}
