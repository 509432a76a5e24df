/*
 * session.c
 *	  The protocol of messages.h, from HELLO to the end of the connection.
 *
 * Each connection has a thread, which owns the socket, the session and all that it
 * points to; nothing is shared between sessions but devices, pool and journal.  Some threads
 * wait for the next connections; they serve one after the other.  session/run.c runs a
 * submitted program.
 */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "loaders.h"
#include "daemon/base/base.h"
#include "daemon/store/store.h"
#include "session.h"

/* what the cpu device works on lies here: some 400 kB, and three times that with sanitizers */
#define GJ_SESSION_STACK	(4 * 1024 * 1024)

/* Threads that wait for connections: more are started below, and none wait beyond. */
#define GJ_LEAST_WAITING	4
#define GJ_MOST_WAITING		8

/* How long a thread whose run has just ended looks for the next one before it sleeps. */
#define GJ_NEXT_RUN_US		1000

/* Connections of all sessions that may wait for a next run: each has 24 MB of rings. */
#define GJ_MOST_KEPT		16

/* How often to look whether the peer is still there. */
#define GJ_LOOK_US			1000

/* How long to wait where no connection can be accepted. */
#define GJ_ACCEPT_PAUSE_MS	10

/*
 * Threads that wait for connections: to start one takes longer than to answer.  The thread that
 * owns the listener keeps their number, and is told when they become few.
 */
static struct
{
	pthread_mutex_t lock;
	uint32_t	nwaiting;		/* guarded by the lock */
	int			listener;
	uint64_t	incarnation;
	int			few_fd;			/* eventfd */
	bool		looking;		/* atomic: one of all looks for its next run */
	uint32_t	nkept;			/* atomic */
}			threads = {.lock = PTHREAD_MUTEX_INITIALIZER,.few_fd = -1};

/* Asked for each fragment, or tile: it looks once a millisecond. */
bool
gj_session_stop(void *arg)
{
	GjSession  *session = arg;
	struct pollfd fd = {.fd = session->socket,.events = POLLRDHUP};
	uint64_t	now = (uint64_t) gj_now_us();

	if (session->closed || now - session->looked_us < GJ_LOOK_US)
		return session->closed;
	session->looked_us = now;
	if (poll(&fd, 1, 0) > 0 &&
		(fd.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)))
		session->closed = true;
	return session->closed;
}

bool
gj_session_send(GjSession *session, const void *message, size_t nbytes)
{
	ssize_t		n;

	do
		n = send(session->socket, message, nbytes, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t) nbytes)
		session->closed = true;
	return n == (ssize_t) nbytes;
}

/* Looks for something to come for a moment: a message, a connection. */
static void
look_at(int fd, uint32_t us)
{
	struct pollfd poll_fd = {.fd = fd,.events = POLLIN};

	(void) gj_spin_poll(&poll_fd, 1, us);
}

/* Type of the next message, which is then in session->message, or of the end.  Waits. */
static uint32_t
receive(GjSession *session)
{
	ssize_t		n;
	uint32_t	type;

	look_at(session->socket, GJ_SPIN_US);
	do
		n = recv(session->socket, session->message, sizeof(session->message), MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
	{
		session->closed = true;
		return GJ_MSG_CLOSED;
	}
	session->nbytes = (size_t) n;
	if (session->nbytes > sizeof(session->message) || session->nbytes < sizeof(type))
		return GJ_MSG_MALFORMED;
	memcpy(&type, session->message, sizeof(type));
	return type == GJ_MSG_CLOSED ? GJ_MSG_MALFORMED : type;
}

void
gj_session_error(GjSession *session, GjStatus reason, const char *detail)
{
	GjMsgError	error = {.type = GJ_MSG_ERROR,.reason = reason};

	snprintf(error.detail, sizeof(error.detail), "%s", detail);
	gj_session_send(session, &error, sizeof(error));
}

/* The process at the other end of a connection; if the kernel cannot tell, what was told. */
static uint32_t
peer_of(int socket, uint32_t told)
{
	struct ucred peer;
	socklen_t	size = sizeof(peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0)
		return told;
	return (uint32_t) peer.pid;
}

/* Checks HELLO and answers it.  False: the session is over. */
static bool
welcome(GjSession *session)
{
	GjMsgHello *hello = &session->hello;
	GjMsgWelcome answer = {.type = GJ_MSG_WELCOME,.incarnation = threads.incarnation};
	GjDeviceEntry *entry;
	GjErrorText why = {""};

	memcpy(hello, session->message, sizeof(*hello));
	hello->pid = peer_of(session->socket, hello->pid);
	if (hello->abi != GJ_ABI || hello->program_size != sizeof(GjProgram) ||
		hello->stats_size != sizeof(GjRunStats))
	{
		gj_journal_count(0, GJ_ABI_MISMATCH);
		gj_session_error(session, GJ_ABI_MISMATCH, "");
		return false;
	}
	if (hello->incarnation != threads.incarnation)
	{
		gj_session_error(session, GJ_NO_DAEMON,
						 "another one, of a launcher that has ended, is still there");
		return false;
	}
	if (hello->device > GJ_DEVICE_CUDA)
	{
		gj_session_error(session, GJ_BAD_PROGRAM, "unknown kind of device");
		return false;
	}
	gj_session_await_closing(hello->pid);
	entry = gj_devices_choose(hello->device, &why);
	if (entry)
	{
		gj_devices_info(entry, &answer.device);
		gj_published_device(&answer.device);
	}
	answer.looks = gj_spin_allowed(1);
	/* who asks for the cpu does not wait for GPUs */
	answer.ncuda = gj_devices_cuda(hello->device == GJ_DEVICE_CUDA, &why);
	snprintf(answer.cuda_reason, sizeof(answer.cuda_reason), "%.*s",
			 (int) sizeof(answer.cuda_reason) - 1, why.text);
	if (hello->device == GJ_DEVICE_CUDA)
		gj_devices_cuda_versions(&answer.cuda_driver, &answer.cuda_runtime);
	return gj_session_send(session, &answer, sizeof(answer));
}

/* Tells about GPUs that are not used. */
static bool
send_unused(GjSession *session)
{
	const GjUnusedDevice *unused;
	uint32_t	n = gj_devices_unused(&unused);

	for (uint32_t i = 0; i < n; i++)
	{
		GjMsgDevice message = {.type = GJ_MSG_DEVICE,.status = unused[i].status,
		.device = {.kind = GJ_DEVICE_CUDA,.ordinal = unused[i].ordinal}};

		memcpy(message.device.name, unused[i].name, sizeof(message.device.name));
		snprintf(message.reason, sizeof(message.reason), "%.*s",
				 (int) sizeof(message.reason) - 1, unused[i].why.text);
		if (!gj_session_send(session, &message, sizeof(message)))
			return false;
	}
	return true;
}

static bool
send_status(GjSession *session)
{
	const uint32_t end = GJ_MSG_END;
	uint32_t	n = gj_devices_count();

	for (uint32_t i = 0; i < n; i++)
	{
		GjMsgDevice message = {.type = GJ_MSG_DEVICE};

		gj_devices_info(gj_devices_get(i), &message.device);
		if (!gj_session_send(session, &message, sizeof(message)))
			return false;
	}
	return send_unused(session) && gj_session_send(session, &end, sizeof(end));
}

/* Tells of a file, and of its columns. */
static bool
send_cached(GjSession *session, const GjCached *cached, const GjCachedColumn *columns)
{
	const GjMsgCached message = {.type = GJ_MSG_CACHED,.cached = *cached};
	bool		sent = gj_session_send(session, &message, sizeof(message));

	for (uint32_t c = 0; c < cached->ncolumns && sent; c++)
	{
		const GjMsgCachedColumn column = {.type = GJ_MSG_CACHED_COLUMN,.column = columns[c]};

		sent = gj_session_send(session, &column, sizeof(column));
	}
	return sent;
}

/* Tells what is resident on all devices. */
static bool
send_cache(GjSession *session)
{
	const uint32_t end = GJ_MSG_END;
	uint32_t	ndevices = gj_devices_count();

	for (uint32_t d = 0; d < ndevices; d++)
	{
		GjCached   *list;
		GjCachedColumn *columns;
		uint32_t	n = gj_resident_list(gj_devices_get(d), &list, &columns);
		uint64_t	at = 0;
		bool		sent = true;

		for (uint32_t i = 0; i < n && sent; i++)
		{
			sent = send_cached(session, &list[i], columns + at);
			at += list[i].ncolumns;
		}
		free(columns);
		free(list);
		if (!sent)
			return false;
	}
	return gj_session_send(session, &end, sizeof(end));
}

static bool
evict(GjSession *session)
{
	GjMsgEvict	question;
	GjMsgEvicted message = {.type = GJ_MSG_EVICTED};
	uint32_t	ndevices = gj_devices_count();

	memcpy(&question, session->message, sizeof(question));
	for (uint32_t d = 0; d < ndevices; d++)
		message.nbytes += gj_resident_evict(gj_devices_get(d), question.database,
											question.relation);
	return gj_session_send(session, &message, sizeof(message));
}

static bool
malformed(GjSession *session)
{
	gj_log(GJ_WARNING, "process %u sent a malformed message", session->hello.pid);
	gj_journal_count(session->hello.database, GJ_BAD_PROGRAM);
	gj_session_error(session, GJ_BAD_PROGRAM, "malformed message");
	return false;
}

/* Answers one message after HELLO.  False: the session is over. */
static bool
answer(GjSession *session, uint32_t type)
{
	switch (type)
	{
		case GJ_MSG_STATUS:
			return send_status(session);
		case GJ_MSG_CACHE:
			return send_cache(session);
		case GJ_MSG_EVICT:
			if (session->nbytes != sizeof(GjMsgEvict))
				return malformed(session);
			return evict(session);
		case GJ_MSG_SUBMIT:
			if (session->nbytes < sizeof(GjMsgSubmit))
				return malformed(session);
			gj_session_run(session);
			return false;
		case GJ_MSG_ATTACH:
			if (session->nbytes != sizeof(GjMsgAttach))
				return malformed(session);
			gj_loaders_attach(session);
			return false;
		case GJ_MSG_CLOSED:
			return false;
		default:
			return malformed(session);
	}
}

/*
 * Looks for a connection, or for a message of one, for a moment: the next query of a session comes
 * soon after the one before.  One thread is enough for that.
 */
static void
look_for_next_run(int fd)
{
	if (__atomic_exchange_n(&threads.looking, true, __ATOMIC_ACQUIRE))
		return;
	look_at(fd, GJ_NEXT_RUN_US);
	__atomic_store_n(&threads.looking, false, __ATOMIC_RELEASE);
}

/* The peer may still send and still read: whatever it sends is ignored until it closes. */
static void
wait_for_close(GjSession *session)
{
	while (!session->closed)
		receive(session);
}

/* Makes a session of a connection, with these rings, of nothing but the message received last. */
static void
start_session(GjSession *session, int socket, GjSegment *load, GjSegment *output)
{
	const size_t nbytes = session->nbytes;

	memset(session, 0, offsetof(GjSession, message));
	session->socket = socket;
	session->nbytes = nbytes;
	session->load.ring = load;
	session->output = output;
	session->loaders.wake = -1;
}

bool
gj_session_may_keep(GjSession *session)
{
	session->done.kept = __atomic_add_fetch(&threads.nkept, 1, __ATOMIC_RELAXED) <= GJ_MOST_KEPT;
	if (!session->done.kept)
		__atomic_sub_fetch(&threads.nkept, 1, __ATOMIC_RELAXED);
	return session->done.kept;
}

/* After a run: true if the peer begins anew; type of its message. */
static bool
begins_anew(GjSession *session, uint32_t *type)
{
	if (!session->done.told)
		return false;
	gj_session_end_reading(session);
	if (session->done.kept)
		look_for_next_run(session->socket);
	do
	{
		*type = receive(session);
		if (*type == GJ_MSG_RELEASE)
			gj_session_drop_stages(session);
	} while (*type != GJ_MSG_HELLO && *type != GJ_MSG_CLOSED);
	if (session->done.kept)
		__atomic_sub_fetch(&threads.nkept, 1, __ATOMIC_RELAXED);
	session->done.kept = false;
	if (*type == GJ_MSG_CLOSED)
		return false;
	gj_session_drop_stages(session);
	start_session(session, session->socket, session->load.ring, session->output);
	return true;
}

/* Serves one connection, from HELLO to its end. */
static void
serve(GjSession *session, int socket)
{
	uint32_t	type;

	start_session(session, socket, NULL, NULL);
	type = receive(session);
	do
	{
		if (type == GJ_MSG_HELLO && session->nbytes == sizeof(GjMsgHello))
		{
			if (welcome(session))
				while (answer(session, receive(session)))
					;
		}
		else if (type == GJ_MSG_HELLO)
			gj_session_error(session, GJ_ABI_MISMATCH, "");
		else if (type != GJ_MSG_CLOSED)
			malformed(session);
	} while (begins_anew(session, &type));
	wait_for_close(session);
	gj_session_drop_stages(session);
	gj_session_free_rings(session);
	close(session->socket);
}

/* ---- threads */

/* A thread begins to wait; false if enough others do. */
static bool
begin_to_wait(void)
{
	bool		wanted;

	pthread_mutex_lock(&threads.lock);
	wanted = threads.nwaiting < GJ_MOST_WAITING;
	threads.nwaiting += wanted;
	pthread_mutex_unlock(&threads.lock);
	return wanted;
}

/* A thread has a connection. */
static void
end_to_wait(void)
{
	const uint64_t one = 1;
	bool		few;

	pthread_mutex_lock(&threads.lock);
	few = --threads.nwaiting < GJ_LEAST_WAITING;
	pthread_mutex_unlock(&threads.lock);
	if (few)
		(void) !write(threads.few_fd, &one, sizeof(one));
}

/* The next connection.  Waits. */
static int
accept_one(void)
{
	for (;;)
	{
		int			fd = accept4(threads.listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			return fd;
		/* out of descriptors or memory: some session will end */
		if (errno != EINTR && errno != ECONNABORTED)
			poll(NULL, 0, GJ_ACCEPT_PAUSE_MS);
	}
}

static void *
session_main(void *arg)
{
	GjSession  *session = arg;

	gj_crash_guard_stack();
	do
	{
		int			fd;

		if (session->done.told)
			look_for_next_run(threads.listener);
		fd = accept_one();
		end_to_wait();
		serve(session, fd);
	} while (begin_to_wait());
	free(session);
	return NULL;
}

/* Starts a thread that waits, which has been counted. */
static bool
start_thread(void)
{
	GjSession  *session = calloc(1, sizeof(GjSession));
	pthread_attr_t attr;
	pthread_t	thread;
	int			error;

	if (!session)
		return false;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, GJ_SESSION_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attr, session_main, session);
	pthread_attr_destroy(&attr);
	if (error != 0)
		free(session);
	return error == 0;
}

int
gj_sessions_open(int listener, uint64_t incarnation)
{
	threads.listener = listener;
	threads.incarnation = incarnation;
	threads.few_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return threads.few_fd;
}

bool
gj_sessions_start(void)
{
	uint64_t	count;

	/* before looking, so that what happens afterwards wakes the caller again */
	(void) !read(threads.few_fd, &count, sizeof(count));
	for (;;)
	{
		bool		few;

		pthread_mutex_lock(&threads.lock);
		few = threads.nwaiting < GJ_LEAST_WAITING;
		threads.nwaiting += few;
		pthread_mutex_unlock(&threads.lock);
		if (!few)
			return true;
		if (start_thread())
			continue;
		pthread_mutex_lock(&threads.lock);
		threads.nwaiting--;
		pthread_mutex_unlock(&threads.lock);
		return false;
	}
}
