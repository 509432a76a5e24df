/*
 * launcher.c
 *	  The background worker that keeps gpujoind running.
 *
 * With the library in shared_preload_libraries it is a static worker; else the first
 * session that finds no gpujoind and no launcher registers a dynamic one.  That one
 * is never restarted by the postmaster: the next session that needs it starts it,
 * and a server whose sessions do not need gpujoind does not get it back after a crash.
 *
 * A launcher holds locks on two bytes of the file GJ_LAUNCHER_FILE (locks of the open file
 * description, so that sessions can look at them without taking them).  Another launcher
 * that finds the first one taken ends quietly.  The second one says that the file holds a
 * GjLauncherState of this launcher, not of one before it.
 *
 * gpujoind inherits one end of a socket pair, whose other end is the launcher's: when the
 * launcher ends, by whatever, gpujoind reads the end of the file and ends too.  A gpujoind
 * that cannot read is killed by the kernel then.  So it never outlives the postmaster.  Over this socket gpujoind sends its signs of life: the launcher kills a
 * gpujoind that is silent for longer than gpujoin.daemon_timeout.
 *
 * It inherits its journal as well, memory of the launcher's that outlives gpujoind's crashes.  Its
 * standard output and error are a pipe whose lines become messages in the server log.
 *
 * Times are of the monotonic clock, in microseconds, and silence is counted in looks of the
 * launcher.  So neither a clock that is set nor a machine that was suspended looks like a
 * gpujoind that hangs.
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "client/become_daemon.h"
#include "client/connection.h"
#include "client/counters.h"
#include "client/launcher.h"
#include "guc.h"

#define GJ_LAUNCHER_FILE		"gpujoin." GJ_STRINGIFY(GJ_ABI) ".launcher"

#define GJ_LOCK_LAUNCHER		0	/* bytes of the file */
#define GJ_LOCK_STATE			1

#define GJ_FIRST_BACKOFF		100 /* ms before the first restart, doubled for each */
#define GJ_LONGEST_BACKOFF		60000	/* ms; also the life that resets the back-off */
#define GJ_NOTICEABLE_BACKOFF	1000	/* ms; sessions do not wait for longer ones */
#define GJ_STOP_TIMEOUT			2000	/* ms that gpujoind has to end */
#define GJ_FIRST_SIGN			30000	/* ms until its first sign of life */
#define GJ_LEAST_TIMEOUT		1000	/* ms; a shorter gpujoin.daemon_timeout counts as this */

/* gpujoind's exit status when it cannot get its lock, socket or threads */
#define GJ_EXIT_LOCKED			2

/* What sessions may know; in GJ_LAUNCHER_FILE, written by the launcher. */
typedef struct GjLauncherState
{
	uint64		incarnation;	/* of the gpujoind that answers; 0: none */
	uint64		silent;			/* of the last one that was killed because it was silent */
	int64		next_start;		/* when gpujoind is started again; 0: it was started */
	TimestampTz launcher_start;
	TimestampTz daemon_start;	/* of the last one */
	int32		launcher_pid;
	int32		daemon_pid;		/* 0: it does not run */
	uint32		nstarts;		/* of gpujoind, by this launcher */
	uint32		unused;
} GjLauncherState;

typedef struct GjLauncher
{
	int			state_fd;
	int			journal_fd;		/* -1: none */
	pid_t		child;			/* 0: does not run */
	int			parent_fd;		/* write end of the pipe to gpujoind; -1: closed */
	int			log_fd;			/* read end of its log; -1: closed */
	bool		blame;			/* the last one crashed */
	bool		killed;			/* it was silent, and its end is waited for */
	uint64		incarnation;	/* of the child */
	bool		heard;			/* it has given a sign of life */
	int			nsilent;		/* looks since the last one */
	int64		next_look;
	char	   *settings;		/* those that the last one was started with */
	int			backoff;		/* ms */
	int64		started;
	GjLauncherState state;
	size_t		nlog;			/* bytes of an incomplete line */
	char		log[4096];
} GjLauncher;

static bool preloaded = false;

PGDLLEXPORT void gj_launcher_main(Datum main_arg);

/* Return the time that nobody sets, in microseconds. */
static int64
monotonic_time(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return (int64) INSTR_TIME_GET_MICROSEC(now);
}

/*
 * Fill in what both kinds of registration have in common.
 */
static void
describe_worker(BackgroundWorker *worker)
{
	memset(worker, 0, sizeof(*worker));
	strlcpy(worker->bgw_name, "gpujoin launcher", sizeof(worker->bgw_name));
	strlcpy(worker->bgw_type, "gpujoin launcher", sizeof(worker->bgw_type));
	strlcpy(worker->bgw_library_name, "gpujoin", sizeof(worker->bgw_library_name));
	strlcpy(worker->bgw_function_name, "gj_launcher_main", sizeof(worker->bgw_function_name));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker->bgw_start_time = BgWorkerStart_ConsistentState;
}

void
gj_launcher_init(void)
{
	BackgroundWorker worker;

	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade)
		return;
	preloaded = true;
	describe_worker(&worker);
	worker.bgw_restart_time = 5;
	RegisterBackgroundWorker(&worker);
}

bool
gj_launcher_preloaded(void)
{
	return preloaded;
}

/* ---- in sessions */

/* Tell whether there is a launcher, and what it says. */
static bool
launcher_present(GjLauncherState *state)
{
	struct flock lock = {
		.l_type = F_WRLCK,.l_whence = SEEK_SET,.l_start = GJ_LOCK_STATE,.l_len = 1
	};
	int			fd = BasicOpenFile(GJ_LAUNCHER_FILE, O_RDONLY | O_CLOEXEC | PG_BINARY);
	bool		present;

	memset(state, 0, sizeof(*state));
	if (fd < 0)
		return false;
	present = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	if (pread(fd, state, sizeof(*state), 0) != sizeof(*state))
		memset(state, 0, sizeof(*state));
	close(fd);
	return present;
}

void
gj_daemon_path(char path[MAXPGPATH])
{
	snprintf(path, MAXPGPATH, "%s/%s", pkglib_path, GJ_DAEMON_NAME);
}

/* Register a dynamic launcher, once in a while: it needs some time to take its lock. */
static bool
register_launcher(GjFailure *failure)
{
	static int64 registered = 0;
	int64		now = monotonic_time();
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;

	if (registered != 0 && now - registered < 2000 * 1000)
		return true;
	describe_worker(&worker);
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_notify_pid = MyProcPid;
	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
	{
		gj_fail(failure, GJ_NO_DAEMON,
				"no background worker is free for its launcher: raise max_worker_processes (%d)",
				max_worker_processes);
		return false;
	}
	pfree(handle);
	registered = now;
	return true;
}

bool
gj_launcher_ensure(bool start, GjFailure *failure)
{
	GjLauncherState state;
	char		path[MAXPGPATH];

	if (launcher_present(&state))
	{
		int64		ms = state.next_start == 0 ? 0 : (state.next_start - monotonic_time()) / 1000;

		if (ms <= GJ_NOTICEABLE_BACKOFF)
			return true;
		gj_fail(failure, GJ_NO_DAEMON,
				"it ended and will be started again in %d s; the server log says more",
				(int) ((ms + 999) / 1000));
		return false;
	}
	if (!start)
		return true;
	gj_daemon_path(path);
	if (access(path, X_OK) != 0)
	{
		gj_fail(failure, GJ_NO_DAEMON, "\"%s\" cannot be run", path);
		return false;
	}
	return register_launcher(failure);
}

void
gj_launcher_status(GjLauncherStatus *status)
{
	GjLauncherState state;
	bool		present = launcher_present(&state);

	memset(status, 0, sizeof(*status));
	if (!present)
		return;
	status->launcher_pid = state.launcher_pid;
	status->launcher_start = state.launcher_start;
	status->daemon_pid = state.daemon_pid;
	status->daemon_start = state.daemon_start;
	status->nstarts = state.nstarts;
	status->answers = state.incarnation != 0;
	if (state.next_start != 0)
		status->restart_ms = Max(0, (state.next_start - monotonic_time()) / 1000);
}

uint64
gj_launcher_incarnation(uint64 *silent)
{
	GjLauncherState state;
	bool		present = launcher_present(&state);

	*silent = state.silent;
	return present ? state.incarnation : 0;
}

/* ---- in the launcher */

/* Close a descriptor, if it is open. */
static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/*
 * Tell sessions which gpujoind answers (0: none), or when it will be started again.  False if that
 * cannot be told.
 */
static bool
publish_state(GjLauncher *launcher, uint64 incarnation, int64 next_start)
{
	GjLauncherState *state = &launcher->state;

	state->incarnation = incarnation;
	state->next_start = next_start;
	state->launcher_pid = MyProcPid;
	state->daemon_pid = launcher->child;
	if (pwrite(launcher->state_fd, state, sizeof(*state), 0) == sizeof(*state))
		return true;
	ereport(WARNING,
			(errcode_for_file_access(),
			 errmsg("could not write file \"%s\": %m", GJ_LAUNCHER_FILE)));
	return false;
}

/* Take one of the launcher's locks.  False if another launcher has it. */
static bool
take_lock(GjLauncher *launcher, int byte)
{
	struct flock lock = {.l_type = F_WRLCK,.l_whence = SEEK_SET,.l_start = byte,.l_len = 1};

	if (fcntl(launcher->state_fd, F_OFD_SETLK, &lock) == 0)
		return true;
	if (errno != EAGAIN && errno != EACCES)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not lock file \"%s\": %m", GJ_LAUNCHER_FILE)));
	return false;
}

/* Become the launcher of this server.  False if there is one, or if sessions cannot be told. */
static bool
become_launcher(GjLauncher *launcher)
{
	launcher->state_fd = BasicOpenFile(GJ_LAUNCHER_FILE, O_RDWR | O_CREAT | O_CLOEXEC | PG_BINARY);
	if (launcher->state_fd < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", GJ_LAUNCHER_FILE)));
	return take_lock(launcher, GJ_LOCK_LAUNCHER) && publish_state(launcher, 0, 0) &&
		take_lock(launcher, GJ_LOCK_STATE);
}

/*
 * Make the memory in which gpujoind keeps what must outlive it.
 */
static void
make_journal(GjLauncher *launcher)
{
	launcher->journal_fd = memfd_create("gpujoin journal", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (launcher->journal_fd >= 0 &&
		ftruncate(launcher->journal_fd, GJ_JOURNAL_SIZE) == 0 &&
		fallocate(launcher->journal_fd, 0, 0, GJ_JOURNAL_SIZE) == 0 &&
		fcntl(launcher->journal_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
		return;
	ereport(WARNING,
			(errmsg("could not create the journal of gpujoind: %m"),
			 errdetail("Counts, and programs that ended gpujoind, will be forgotten when it is restarted.")));
	close_fd(&launcher->journal_fd);
}

/* Report one line of gpujoind's in the server log. */
static void
report_line(char *line)
{
	static const struct
	{
		const char *prefix;
		int			level;
	}			levels[] = {
		{"LOG: ", LOG}, {"WARNING: ", WARNING}, {"ERROR: ", WARNING}
	};
	int			level = LOG;

	for (int i = 0; i < lengthof(levels); i++)
	{
		size_t		length = strlen(levels[i].prefix);

		if (strncmp(line, levels[i].prefix, length) == 0)
		{
			level = levels[i].level;
			line += length;
			break;
		}
	}
	/* whatever libraries print must be valid in any encoding */
	for (char *c = line; *c != '\0'; c++)
	{
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
	if (*line != '\0')
		ereport(level, (errmsg_internal("gpujoind: %s", line)));
}

/* Report the complete lines of the buffer; all of it if it is full or `rest` is set. */
static void
report_lines(GjLauncher *launcher, bool rest)
{
	char	   *line = launcher->log;
	char	   *end = launcher->log + launcher->nlog;
	char	   *newline;

	while ((newline = memchr(line, '\n', end - line)) != NULL)
	{
		*newline = '\0';
		report_line(line);
		line = newline + 1;
	}
	if (line < end && (rest || (line == launcher->log && launcher->nlog == sizeof(launcher->log) - 1)))
	{
		*end = '\0';
		report_line(line);
		line = end;
	}
	launcher->nlog = end - line;
	memmove(launcher->log, line, launcher->nlog);
}

/* Read what gpujoind has written. */
static void
read_log(GjLauncher *launcher)
{
	while (launcher->log_fd >= 0)
	{
		ssize_t		size = read(launcher->log_fd, launcher->log + launcher->nlog,
								sizeof(launcher->log) - 1 - launcher->nlog);

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0 && errno == EAGAIN)
			return;
		if (size > 0)
			launcher->nlog += size;
		report_lines(launcher, size <= 0);
		if (size <= 0)
		{
			close(launcher->log_fd);
			launcher->log_fd = -1;
		}
	}
}

/* Say when gpujoind will be started again: the later, the more often it ended. */
static void
schedule_start(GjLauncher *launcher)
{
	int64		now = monotonic_time();
	int64		next_start;

	if (launcher->started != 0 && now - launcher->started > GJ_LONGEST_BACKOFF * INT64CONST(1000))
		launcher->backoff = GJ_FIRST_BACKOFF;
	launcher->started = 0;
	next_start = now + launcher->backoff * INT64CONST(1000);
	launcher->backoff = Min(launcher->backoff * 2, GJ_LONGEST_BACKOFF);
	(void) publish_state(launcher, 0, next_start);
}

/* Return the settings that take effect when gpujoind starts, malloc'd. */
static char *
start_settings(void)
{
	char	   *text = psprintf("gpujoin.devices = '%s', gpujoin.cpu_devices = %d, "
								"gpujoin.gpu_devices = %d, gpujoin.cpu_threads = %d, "
								"gpujoin.cpu_memory = %d",
								gj_devices, gj_cpu_devices, gj_gpu_devices, gj_cpu_threads,
								gj_cpu_memory);
	char	   *copy = strdup(text);

	pfree(text);
	return copy;
}

/* After a reload, say which settings wait for another gpujoind. */
static void
report_settings(const GjLauncher *launcher)
{
	char	   *settings = start_settings();

	if (launcher->child != 0 && launcher->settings != NULL && settings != NULL &&
		strcmp(settings, launcher->settings) != 0)
		ereport(LOG,
				(errmsg("settings of gpujoind have changed and take effect when it starts again"),
				 errdetail("It runs with: %s.", launcher->settings),
				 errhint("Restart the server, or end process %d: another one is started. Queries that it runs fall back, or fail if rows have been returned.",
						 (int) launcher->child)));
	free(settings);
}

/* Start gpujoind. */
static void
start_daemon(GjLauncher *launcher)
{
	char		path[MAXPGPATH];
	int			parent[2] = {-1, -1};
	int			log[2] = {-1, -1};

	gj_daemon_path(path);
	launcher->started = monotonic_time();
	launcher->next_look = launcher->started + GJ_BEAT_MS * 1000;
	launcher->nsilent = 0;
	launcher->heard = false;
	launcher->nlog = 0;
	free(launcher->settings);
	launcher->settings = start_settings();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, parent) == 0 &&
		pipe2(log, O_CLOEXEC) == 0 && fcntl(log[0], F_SETFL, O_NONBLOCK) == 0 &&
		pg_strong_random(&launcher->incarnation, sizeof(launcher->incarnation)) &&
		publish_state(launcher, 0, 0))
	{
		launcher->child = fork();
		if (launcher->child == 0)
			gj_become_daemon(&(GjDaemonStart) {
				path, parent[0], launcher->journal_fd, log[1], launcher->incarnation, launcher->blame
			});
	}
	else
		launcher->child = -1;
	if (launcher->child > 0)
	{
		launcher->state.nstarts++;
		launcher->state.daemon_start = GetCurrentTimestamp();
		(void) publish_state(launcher, 0, 0);
	}
	else
	{
		ereport(WARNING, (errmsg("could not start gpujoind: %m")));
		launcher->child = 0;
		close_fd(&parent[1]);
		close_fd(&log[0]);
		schedule_start(launcher);
	}
	close_fd(&parent[0]);
	close_fd(&log[1]);
	launcher->parent_fd = parent[1];
	launcher->log_fd = log[0];
}

/* Tell whether gpujoind ended because of an error of its own. */
static bool
is_crash(int status)
{
	if (WIFSIGNALED(status))
		return WTERMSIG(status) != SIGKILL && WTERMSIG(status) != SIGTERM && WTERMSIG(status) != SIGINT;
	return WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != GJ_EXIT_LOCKED &&
		WEXITSTATUS(status) != GJ_EXIT_DENIED;
}

/* If gpujoind has ended, say how and when it will be started again. */
static void
reap_daemon(GjLauncher *launcher)
{
	int			status;

	if (launcher->child == 0 || waitpid(launcher->child, &status, WNOHANG) != launcher->child)
		return;
	read_log(launcher);
	close_fd(&launcher->log_fd);
	close_fd(&launcher->parent_fd);
	launcher->child = 0;
	launcher->blame = is_crash(status);
	if (ShutdownRequestPending && !launcher->blame)
		return;
	if (!launcher->killed && !ShutdownRequestPending)
		schedule_start(launcher);
	else
		(void) publish_state(launcher, 0, launcher->state.next_start);
	launcher->killed = false;

	/*
	 * This launcher is the only one, so a gpujoind that has the lock belongs to one
	 * that is gone, and is about to end.  gpujoind has said what it waited for.
	 */
	if (WIFEXITED(status) && WEXITSTATUS(status) == GJ_EXIT_LOCKED)
		ereport(LOG,
				(errmsg("gpujoind could not get its lock, socket or threads and will be tried again")));
	else if (WIFSIGNALED(status))
		ereport(WARNING, (errmsg("gpujoind was terminated by signal %d: %s",
								 WTERMSIG(status), pg_strsignal(WTERMSIG(status)))));
	else
		ereport(WEXITSTATUS(status) == 0 ? LOG : WARNING,
				(errmsg("gpujoind ended with exit status %d", WEXITSTATUS(status))));
}

/* Tell whether gpujoind has given a sign of life since the last look. */
static bool
hear_daemon(GjLauncher *launcher)
{
	char		beats[64];
	bool		heard = false;

	while (recv(launcher->parent_fd, beats, sizeof(beats), MSG_DONTWAIT) > 0)
		heard = true;
	return heard;
}

/*
 * Kill gpujoind if it has been silent for too long.  Sessions that wait for it see their
 * connections closed, or, should it not even die, that there is none.  Then each start is put
 * off, as it would be after crashes.
 */
static void
watch_daemon(GjLauncher *launcher)
{
	int64		now = monotonic_time();
	int			timeout = GJ_FIRST_SIGN;

	if (launcher->heard)
		timeout = Max(gj_daemon_timeout, GJ_LEAST_TIMEOUT);

	if (launcher->killed && now >= launcher->state.next_start)
		schedule_start(launcher);
	if (launcher->child == 0 || launcher->killed || (launcher->heard && now < launcher->next_look))
		return;
	if (hear_daemon(launcher))
	{
		if (!launcher->heard)
			(void) publish_state(launcher, launcher->incarnation, 0);
		launcher->heard = true;
		launcher->nsilent = 0;
	}
	else if (now >= launcher->next_look)
		launcher->nsilent++;
	if (now >= launcher->next_look)
		launcher->next_look = now + GJ_BEAT_MS * 1000;
	/* the last sign of life came up to one look earlier */
	if (gj_daemon_timeout == 0 || launcher->nsilent < timeout / GJ_BEAT_MS - 1)
		return;
	ereport(WARNING,
			(errmsg("gpujoind has given no sign of life for %d ms and is killed", timeout),
			 errhint("If this machine is only slow, raise gpujoin.daemon_timeout.")));
	launcher->killed = true;
	launcher->state.silent = launcher->incarnation;
	schedule_start(launcher);
	kill(launcher->child, SIGKILL);
}

/* Return when the launcher has something to do even if nothing happens (0: never). */
static int64
next_deadline(const GjLauncher *launcher)
{
	if (launcher->child == 0 || launcher->killed)
		return launcher->state.next_start;
	return gj_daemon_timeout == 0 && launcher->heard ? 0 : launcher->next_look;
}

/*
 * Wait for something to happen, at most until `deadline` (0: for ever).
 */
static void
wait_for_something(GjLauncher *launcher, int64 deadline)
{
	int			events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;
	long		timeout = -1;

	if (deadline != 0)
	{
		events |= WL_TIMEOUT;
		timeout = Max(0, (deadline - monotonic_time() + 999) / 1000);
	}
	if (launcher->log_fd >= 0)
		(void) WaitLatchOrSocket(MyLatch, events | WL_SOCKET_READABLE, launcher->log_fd, timeout,
								 PG_WAIT_EXTENSION);
	else
		(void) WaitLatch(MyLatch, events, timeout, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/* End gpujoind and wait for its end; kill it if it takes too long. */
static void
stop_daemon(GjLauncher *launcher)
{
	int64		deadline = monotonic_time() + GJ_STOP_TIMEOUT * 1000;

	close_fd(&launcher->parent_fd);
	for (reap_daemon(launcher); launcher->child != 0; reap_daemon(launcher))
	{
		if (monotonic_time() >= deadline)
		{
			ereport(LOG, (errmsg("gpujoind did not end within %d ms and is killed", GJ_STOP_TIMEOUT)));
			kill(launcher->child, SIGKILL);
			return;
		}
		wait_for_something(launcher, deadline);
		read_log(launcher);
	}
}

/* Wake the launcher when gpujoind has ended. */
static void
handle_sigchld(SIGNAL_ARGS)
{
	int			save_errno = errno;

	SetLatch(MyLatch);
	errno = save_errno;
}

/* Keep gpujoind running until the server shuts down. */
static void
keep_daemon(GjLauncher *launcher)
{
	while (!ShutdownRequestPending)
	{
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			report_settings(launcher);
		}
		read_log(launcher);
		reap_daemon(launcher);
		watch_daemon(launcher);
		if (launcher->child == 0 && monotonic_time() >= launcher->state.next_start)
			start_daemon(launcher);
		wait_for_something(launcher, next_deadline(launcher));
	}
	stop_daemon(launcher);
}

/* Entry point of the background worker. */
void
gj_launcher_main(Datum main_arg)
{
	GjLauncher	launcher = {
		.journal_fd = -1,
		.parent_fd = -1,
		.log_fd = -1,
		.backoff = GJ_FIRST_BACKOFF
	};

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGCHLD, handle_sigchld);
	BackgroundWorkerUnblockSignals();

	launcher.state.launcher_start = GetCurrentTimestamp();
	if (!become_launcher(&launcher))
		proc_exit(0);
	make_journal(&launcher);
	gj_counters_prepare();
	keep_daemon(&launcher);
	proc_exit(0);
}
