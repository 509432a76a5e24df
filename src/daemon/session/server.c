/*
 * server.c
 *	  Owns the socket "gpujoin.<ABI>.sock" and the lock beside it, keeps threads
 *	  that accept connections (session.c), and ends with the launcher.
 *
 * The lock file says who may unlink and bind the socket: it is held from before the
 * bind until the process ends, and the kernel gives it back however that happens.
 * gpujoind ends on EOF of the launcher's socket, and on SIGTERM, SIGINT and SIGQUIT; it does so
 * at once, for all that it holds goes with the process.
 */
#define _GNU_SOURCE
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/base.h"
#include "files.h"
#include "journal.h"
#include "session.h"

/* How long to wait for the lock of a gpujoind that is on its way out. */
#define GJ_LOCK_WAIT_MS		10000
#define GJ_LOCK_POLL_MS		50

/* How soon to try again where no thread could be started; how often to wake up else. */
#define GJ_RETRY_MS			100
#define GJ_WAKE_MS			1000

/* So many signs of life are given without the main thread: 30 s. */
#define GJ_MAX_BEATS		(30000 / GJ_BEAT_MS)

static uint32_t nbeats;			/* atomic; since the main thread was awake */

/* Signals that are left as they are: those of the signalfd, and those that end nothing. */
static bool
is_kept(int signo)
{
	static const int kept[] = {SIGTERM, SIGINT, SIGQUIT, SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP,
	SIGTTIN, SIGTTOU, SIGURG, SIGWINCH};
	bool		found = false;

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		found |= kept[i] == signo;
	return found;
}

/*
 * Undoes what a background worker's child inherits.  SIGTERM, SIGINT and SIGQUIT end gpujoind in
 * order, and faults are reported.  All else that would end it is ignored: SIGPIPE, SIGXFSZ (write()
 * then says so), SIGXCPU, SIGHUP, timers, and signals for users.  Returns a signalfd, or -1.
 */
static int
set_signals(void)
{
	sigset_t	mask;

	for (int s = 1; s < NSIG; s++)
		(void) signal(s, is_kept(s) ? SIG_DFL : SIG_IGN);	/* some cannot be changed */
	gj_crash_report();
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGQUIT);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Says why it is time to end. */
static void
log_end(int signal_fd)
{
	struct signalfd_siginfo info;

	if (read(signal_fd, &info, sizeof(info)) == sizeof(info))
		gj_log(GJ_LOG, "ends because of signal %u from process %u", info.ssi_signo, info.ssi_pid);
	else
		gj_log(GJ_LOG, "ends because its launcher has ended");
}

/* Closes what the launcher had open, and allows many connections. */
static void
set_descriptors(const GjServerOptions *options)
{
	struct rlimit limit;
	long		n = 1024;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
	{
		n = limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > 65536 ? 65536 :
			(long) limit.rlim_cur;
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	for (int fd = 3; fd < n; fd++)
		if (fd != options->parent_fd && fd != options->journal_fd)
			close(fd);
	if (options->parent_fd < 0)
		return;
	fcntl(options->parent_fd, F_SETFD, FD_CLOEXEC);
	/* the log is a pipe: if the launcher does not read it, lines get lost, but nothing waits */
	fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
}

/* Says which limits of the operating system will be in the way. */
static void
log_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < GJ_ENOUGH_FILES)
		gj_log(GJ_WARNING,
			   "%llu files can be open (RLIMIT_NOFILE), a run takes three: raise the limit",
			   (unsigned long long) limit.rlim_max);
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		gj_log(GJ_WARNING,
			   "the address space is limited to %llu MB (RLIMIT_AS): CUDA may not start",
			   (unsigned long long) limit.rlim_cur >> 20);
}

/* True if the launcher's socket or a signal says that this is the end. */
static bool
told_to_end(struct pollfd fds[2], int timeout_ms)
{
	return poll(fds, 2, timeout_ms) > 0 && (fds[0].revents || fds[1].revents);
}

/* Gets the lock.  -1: another gpujoind has it, or it is time to end. */
static int
get_lock(struct pollfd ends[2])
{
	int			fd = open(GJ_LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
	{
		gj_log(GJ_ERROR, "could not open \"%s\": %s", GJ_LOCK_NAME, strerror(errno));
		return -1;
	}
	for (int waited = 0; waited < GJ_LOCK_WAIT_MS; waited += GJ_LOCK_POLL_MS)
	{
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		if (told_to_end(ends, GJ_LOCK_POLL_MS))
			break;
	}
	gj_log(GJ_ERROR, "another gpujoind holds \"%s\"", GJ_LOCK_NAME);
	close(fd);
	return -1;
}

static int
listen_on_socket(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX,.sun_path = GJ_SOCKET_NAME};
	int			fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	mode_t		mask = umask(0177);
	bool		ok;

	unlink(GJ_SOCKET_NAME);
	ok = fd >= 0 && bind(fd, (struct sockaddr *) &address, sizeof(address)) == 0 &&
		listen(fd, 512) == 0;
	umask(mask);
	if (ok)
		return fd;
	gj_log(GJ_ERROR, "could not listen on \"%s\": %s", GJ_SOCKET_NAME, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Gives the launcher a sign of life; it does not matter if it has too many unread. */
static void
beat(int launcher_fd)
{
	(void) !send(launcher_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/*
 * Thread: gives signs of life.  The main thread could not: to start a thread takes long while
 * others get or pin much memory.  This thread neither waits for a device nor changes the address
 * space.
 */
static void *
beat_main(void *arg)
{
	for (;;)
	{
		if (__atomic_add_fetch(&nbeats, 1, __ATOMIC_RELAXED) < GJ_MAX_BEATS)
			beat(*(const int *) arg);
		poll(NULL, 0, GJ_BEAT_MS);
	}
	return NULL;
}

/* Sees to it that threads wait for connections, until told to end. */
static void
serve_sessions(struct pollfd ends[2], int few_fd)
{
	struct pollfd fds[3] = {ends[0], ends[1], {.fd = few_fd,.events = POLLIN}};
	int			timeout_ms = GJ_WAKE_MS;

	for (;;)
	{
		__atomic_store_n(&nbeats, 0, __ATOMIC_RELAXED);
		if (gj_sessions_start())
			timeout_ms = GJ_WAKE_MS;
		else
		{
			/* those that there are serve one connection after the other */
			if (timeout_ms == GJ_WAKE_MS)
				gj_log(GJ_WARNING, "could not start a thread for a session");
			timeout_ms = GJ_RETRY_MS;
		}
		if (poll(fds, 3, timeout_ms) >= 0 && (fds[0].revents || fds[1].revents))
			return;
	}
}

static int
serve_in_directory(const GjServerOptions *options)
{
	struct pollfd ends[2] = {
		{.fd = options->parent_fd,.events = POLLIN},
		{.fd = set_signals(),.events = POLLIN}
	};
	pthread_t	beating;
	int			listener;
	int			few_fd;

	if (ends[1].fd < 0)
	{
		gj_log(GJ_ERROR, "could not create a signalfd: %s", strerror(errno));
		return 2;
	}
	if (get_lock(ends) < 0)
		return told_to_end(ends, 0) ? 0 : 2;
	log_limits();
	gj_journal_open(options->journal_fd, options->blame);
	gj_published_open(options->incarnation);
	gj_devices_start(true);
	listener = listen_on_socket();
	if (listener < 0)
		return 2;
	few_fd = gj_sessions_open(listener, options->incarnation);
	if (few_fd < 0)
	{
		gj_log(GJ_ERROR, "could not create an eventfd: %s", strerror(errno));
		return 2;
	}
	if (!gj_sessions_start() || pthread_create(&beating, NULL, beat_main, &ends[0].fd) != 0)
	{
		gj_log(GJ_ERROR, "could not start a thread");
		return 2;
	}
	/* other directories, as of tests, have no such files */
	if (options->parent_fd >= 0 && !gj_files_watch())
		gj_log(GJ_WARNING, "could not start a thread: what is dropped stays until it is evicted");
	/* the launcher reads this when it reads that line */
	beat(ends[0].fd);
	gj_log(GJ_LOG, "gpujoind " GJ_STRINGIFY(GJ_ABI) " is ready, process %d", (int) getpid());
	serve_sessions(ends, few_fd);
	log_end(ends[1].fd);
	unlink(GJ_SOCKET_NAME);
	gj_published_remove();
	return 0;
}

int
gj_serve(const GjServerOptions *options)
{
	set_descriptors(options);
	if (options->parent_fd >= 0)
		setsid();				/* fails if the launcher did it already */
	if (chdir(options->directory) != 0)
	{
		gj_log(GJ_ERROR, "could not change to \"%s\": %s", options->directory, strerror(errno));
		return 2;
	}
	return serve_in_directory(options);
}
