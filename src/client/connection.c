/*
 * connection.c
 *	  One connection of a backend to gpujoind: open, send, receive.
 */
#include "postgres.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "client/connection.h"
#include "client/launcher.h"
#include "compat.h"
#include "guc.h"
#include "wire/processors.h"

/* How long a full queue of connections is waited for, and in which steps. */
#define GJ_BACKLOG_STEP		2	/* ms */
#define GJ_BACKLOG_STEPS	500

/* How often who waits looks whether gpujoind is still there. */
#define GJ_LOOK_STEP		250 /* ms */

/* How long a gpujoind that has not answered is left alone. */
#define GJ_REMEMBER_SILENCE	15000	/* ms */

/* The gpujoind that was connected to last; 0: the launcher must be asked. */
static uint64 known_incarnation = 0;

/* The one that did not answer in time, and until when it is left alone. */
static uint64 mute_incarnation = 0;
static TimestampTz mute_until;

/* What gpujoind has told last: there are processors to look before sleeping. */
static bool may_look = true;

void
gj_fail(GjFailure *failure, GjStatus reason, const char *format,...)
{
	va_list		args;

	failure->reason = reason;
	failure->counted = false;
	failure->timeout = false;
	va_start(args, format);
	vsnprintf(failure->detail, sizeof(failure->detail), format, args);
	va_end(args);
}

/* Give back what the connection has beside memory; called when its context goes. */
static void
connection_closer(void *arg)
{
	GjConnection *connection = (GjConnection *) arg;

	if (connection->waits != NULL)
		FreeWaitEventSet(connection->waits);
	connection->waits = NULL;
	gj_connection_expire(connection);
	if (connection->fd == GJ_EXPIRED_FD)
		ReleaseExternalFD();
	connection->fd = -1;
}

void
gj_connection_expire(GjConnection *connection)
{
	if (connection->fd >= 0)
	{
		close(connection->fd);
		connection->fd = GJ_EXPIRED_FD;
	}
	gj_ring_unmap(&connection->load);
	gj_ring_unmap(&connection->output);
}

void
gj_connection_close(GjConnection *connection)
{
	MemoryContextDelete(connection->context);
}

/* Make a connection that has no socket yet. */
static GjConnection *
connection_create(uint32 kind)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpujoin connection",
												  ALLOCSET_SMALL_SIZES);
	GjConnection *connection = MemoryContextAllocZero(context, sizeof(GjConnection));

	connection->context = context;
	connection->fd = -1;
	connection->kind = kind;
	connection->closer.func = connection_closer;
	connection->closer.arg = connection;
	MemoryContextRegisterResetCallback(context, &connection->closer);
	return connection;
}

/* Sleep for some milliseconds, interruptibly. */
static void
nap(long ms)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/* Connect the socket.  A full queue of waiting connections is waited for. */
static bool
connection_connect(GjConnection *connection, GjFailure *failure)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX,.sun_path = GJ_SOCKET_NAME};
	int			error = 0;

	if (!AcquireExternalFD())
	{
		gj_fail(failure, GJ_OUT_OF_HOST_MEMORY, "no file descriptor is free");
		return false;
	}
	connection->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connection->fd < 0)
	{
		ReleaseExternalFD();
		gj_fail(failure, GJ_OUT_OF_HOST_MEMORY, "could not create a socket: %s", strerror(errno));
		return false;
	}
	for (int i = 0; i < GJ_BACKLOG_STEPS; i++)
	{
		if (connect(connection->fd, (struct sockaddr *) &address, sizeof(address)) == 0)
			return true;
		error = errno;
		if (error == EAGAIN)
			nap(GJ_BACKLOG_STEP);
		else if (error != EINTR)
			break;
	}
	if (error == ENOENT || error == ECONNREFUSED)
		gj_fail(failure, GJ_NO_DAEMON, "%s", "");
	else
		gj_fail(failure, GJ_NO_DAEMON, "could not connect to \"%s\": %s", GJ_SOCKET_NAME, strerror(error));
	failure->timeout = error == EAGAIN;
	return false;
}

/* Return whom a limit counts this session together with. */
static GjGroup
group_of(GjScope scope)
{
	GjGroup		group = {0};

	if (scope == GJ_SCOPE_ROLE || scope == GJ_SCOPE_ROLE_IN_DATABASE)
		group.role = GetSessionUserId();
	if (scope == GJ_SCOPE_DATABASE || scope == GJ_SCOPE_ROLE_IN_DATABASE)
		group.database = MyDatabaseId;
	return group;
}

/* Say hello and wait for the welcome. */
static bool
connection_greet(GjConnection *connection, GjSendFirst send, void *arg,
				 GjMsgWelcome *welcome, GjFailure *failure)
{
	GjMsgHello	hello = {
		.type = GJ_MSG_HELLO,
		.abi = GJ_ABI,
		.program_size = sizeof(GjProgram),
		.stats_size = sizeof(GjRunStats),
		.device = connection->kind,
		.pid = MyProcPid,
		.memory_limit = (uint64) gj_device_memory_limit * 1024 * 1024,
		.incarnation = connection->incarnation,
		.database = MyDatabaseId,
		.max_running = gj_max_running_queries < 0 ? GJ_NO_LIMIT : gj_max_running_queries,
		.running = group_of(gj_max_running_queries_scope),
		.memory = group_of(gj_max_device_memory_scope),
		.max_memory = (uint64) gj_max_device_memory * 1024 * 1024
	};
	GjAnswer	answer;

	connection->look_us = GJ_SPIN_US;
	/* a failure to send shows when reading, perhaps with its reason */
	(void) gj_connection_send(connection, &hello, sizeof(hello), NULL, 0);
	if (send != NULL)
		send(connection, arg);
	if (!gj_connection_expect(connection, GJ_MSG_WELCOME, GJ_ANSWER_TIMEOUT, &answer, failure))
	{
		if (failure->reason == GJ_DEVICE_LOST)
			failure->reason = GJ_NO_DAEMON;
		/* a gpujoind that is not ours counts nothing */
		failure->counted &= failure->reason != GJ_NO_DAEMON;
		return false;
	}
	*welcome = answer.welcome;
	if (welcome->incarnation != connection->incarnation)
	{
		gj_fail(failure, GJ_NO_DAEMON, "another one answers");
		return false;
	}
	may_look = answer.welcome.looks != 0;
	welcome->cuda_reason[sizeof(welcome->cuda_reason) - 1] = '\0';
	welcome->device.name[sizeof(welcome->device.name) - 1] = '\0';
	return true;
}

/* Learn which gpujoind there is.  False if there is none, or if it has not answered of late. */
static bool
find_daemon(GjFailure *failure)
{
	uint64		silent;

	if (known_incarnation == 0)
		known_incarnation = gj_launcher_incarnation(&silent);
	if (known_incarnation == 0)
	{
		gj_fail(failure, GJ_NO_DAEMON, "%s", "");
		return false;
	}
	if (known_incarnation == mute_incarnation && GetCurrentTimestamp() < mute_until)
	{
		known_incarnation = 0;
		gj_fail(failure, GJ_NO_DAEMON, "it did not answer a moment ago");
		failure->timeout = true;
		return false;
	}
	return true;
}

uint64
gj_connection_incarnation(void)
{
	GjFailure	failure;

	known_incarnation = 0;
	return find_daemon(&failure) ? known_incarnation : 0;
}

/* Say hello to the gpujoind that is known, on a new connection, or one that was used. */
static GjConnection *
greet_known(GjConnection *connection, GjSendFirst send, void *arg, GjMsgWelcome *welcome,
			GjFailure *failure)
{
	connection->incarnation = known_incarnation;
	if ((connection->fd >= 0 || connection_connect(connection, failure)) &&
		connection_greet(connection, send, arg, welcome, failure))
		return connection;
	if (failure->timeout)
	{
		mute_incarnation = known_incarnation;
		mute_until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), GJ_REMEMBER_SILENCE);
	}
	gj_connection_close(connection);
	known_incarnation = 0;
	return NULL;
}

/*
 * Connect to gpujoind and say hello.  The gpujoind that was there last may have been replaced.
 */
GjConnection *
gj_connection_open(uint32 kind, GjSendFirst send, void *arg, GjMsgWelcome *welcome,
				   GjFailure *failure)
{
	bool		asked = known_incarnation == 0;
	GjConnection *connection;

	if (!find_daemon(failure))
		return NULL;
	connection = greet_known(connection_create(kind), send, arg, welcome, failure);
	if (connection != NULL || asked || failure->reason != GJ_NO_DAEMON || failure->timeout ||
		!find_daemon(failure))
		return connection;
	return greet_known(connection_create(kind), send, arg, welcome, failure);
}

GjConnection *
gj_connection_again(GjConnection *connection, GjSendFirst send, void *arg, GjMsgWelcome *welcome,
					GjFailure *failure)
{
	if (connection->incarnation == known_incarnation)
		return greet_known(connection, send, arg, welcome, failure);
	gj_connection_close(connection);
	gj_fail(failure, GJ_NO_DAEMON, "%s", "");
	return NULL;
}

void
gj_connection_lost(const GjConnection *connection, GjFailure *failure)
{
	uint64		silent;

	(void) gj_launcher_incarnation(&silent);
	gj_fail(failure, GJ_DEVICE_LOST, "%s",
			silent == connection->incarnation ? "gpujoind did not answer and was ended" : "");
}

/*
 * Note it if gpujoind is no longer the one that was connected to.  One that the launcher cannot get
 * rid of keeps its connections open.
 */
static void
look_for_daemon(GjConnection *connection)
{
	uint64		silent;

	if (gj_launcher_incarnation(&silent) != connection->incarnation)
		connection->broken = connection->lost = true;
}

bool
gj_connection_send(GjConnection *connection, const void *head, size_t head_size,
				   const void *body, size_t body_size)
{
	struct iovec parts[2] = {
		{.iov_base = unconstify(void *, head),.iov_len = head_size},
		{.iov_base = unconstify(void *, body),.iov_len = body_size}
	};
	struct msghdr message = {.msg_iov = parts,.msg_iovlen = body_size > 0 ? 2 : 1};

	while (!connection->broken)
	{
		if (sendmsg(connection->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return true;
		if (errno == EAGAIN)
		{
			int			events = WaitLatchOrSocket(MyLatch, WL_LATCH_SET | WL_SOCKET_WRITEABLE |
												   WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
												   connection->fd, GJ_LOOK_STEP, PG_WAIT_EXTENSION);

			if (events & WL_TIMEOUT)
				look_for_daemon(connection);
			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
		}
		else if (errno != EINTR)
			connection->broken = true;
	}
	return false;
}

/*
 * Look for a message for a moment, if there are processors for that.  Once it does not come so soon,
 * it is not expected so soon any more.
 */
static bool
look_for_message(GjConnection *connection)
{
	struct pollfd fd = {.fd = connection->fd,.events = POLLIN};
	instr_time	start,
				now;

	if (!may_look || gj_count_processors() < GJ_SPIN_PROCESSORS)
		return false;
	INSTR_TIME_SET_CURRENT(start);
	for (;;)
	{
		if (poll(&fd, 1, 0) > 0)
			return true;
		INSTR_TIME_SET_CURRENT(now);
		INSTR_TIME_SUBTRACT(now, start);
		if (MyLatch->is_set)
			return false;
		if (INSTR_TIME_GET_MICROSEC(now) >= connection->look_us)
			break;
		/* somebody may have nowhere else to run */
		sched_yield();
	}
	connection->look_us = 0;
	return false;
}

/*
 * Wait until a message or the end of the connection can be read.  What is waited for is put
 * together once.  Who waits for long sees to it that there is somebody to wait for.
 */
bool
gj_connection_wait(GjConnection *connection, TimestampTz deadline)
{
	if (connection->look_us > 0 && look_for_message(connection))
		return true;
	if (connection->waits == NULL)
	{
		connection->waits = gj_create_wait_set(connection->context, 3);
		AddWaitEventToSet(connection->waits, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
		/* in single-user mode there is none */
		if (IsUnderPostmaster)
			AddWaitEventToSet(connection->waits, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
		AddWaitEventToSet(connection->waits, WL_SOCKET_READABLE, connection->fd, NULL, NULL);
	}
	for (;;)
	{
		WaitEvent	event;
		long		timeout = GJ_LOOK_STEP;

		if (deadline != 0)
			timeout = Min(timeout, TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
																   deadline));
		if (connection->lost)
			return true;
		if (WaitEventSetWait(connection->waits, timeout, &event, 1, PG_WAIT_EXTENSION) == 0)
		{
			if (timeout < GJ_LOOK_STEP)
				return false;
			look_for_daemon(connection);
			continue;
		}
		if (event.events & WL_SOCKET_READABLE)
			return true;
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/* Take the descriptors out of a received message; close those that nobody wants. */
static void
take_descriptors(struct msghdr *message, int *fds, int nfds)
{
	int			taken = 0;

	for (int i = 0; i < nfds; i++)
		fds[i] = -1;
	for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control != NULL;
		 control = CMSG_NXTHDR(message, control))
	{
		int			received;

		if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
			continue;
		received = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (int i = 0; i < received; i++)
		{
			int			fd;

			memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
			if (taken < nfds)
				fds[taken++] = fd;
			else
				close(fd);
		}
	}
}

/* Size that a message of gpujoind must have; 0 if there is no such message. */
static size_t
answer_size(uint32 type)
{
	switch (type)
	{
		case GJ_MSG_WELCOME:
			return sizeof(GjMsgWelcome);
		case GJ_MSG_DEVICE:
			return sizeof(GjMsgDevice);
		case GJ_MSG_END:
			return sizeof(uint32);
		case GJ_MSG_READY:
			return sizeof(GjMsgReady);
		case GJ_MSG_SLOT_FREE:
		case GJ_MSG_BATCH:
		case GJ_MSG_RESIDENT:
			return sizeof(GjMsgSlot);
		case GJ_MSG_CACHED:
			return sizeof(GjMsgCached);
		case GJ_MSG_CACHED_COLUMN:
			return sizeof(GjMsgCachedColumn);
		case GJ_MSG_EVICTED:
			return sizeof(GjMsgEvicted);
		case GJ_MSG_DONE:
			return sizeof(GjMsgDone);
		case GJ_MSG_ERROR:
			return sizeof(GjMsgError);
		default:
			return 0;
	}
}

GjReceived
gj_connection_read(GjConnection *connection, GjAnswer *answer, int *fds, int nfds)
{
	union
	{
		struct cmsghdr align;
		char		data[CMSG_SPACE(4 * sizeof(int))];
	}			control;
	struct iovec part = {.iov_base = answer,.iov_len = sizeof(*answer)};
	struct msghdr message = {.msg_iov = &part,.msg_iovlen = 1};
	ssize_t		size;
	int			resets = 0;

	for (;;)
	{
		if (connection->lost)
			return GJ_RECEIVED_LOST;
		message.msg_control = control.data;
		message.msg_controllen = sizeof(control.data);
		size = recvmsg(connection->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (size >= 0)
			break;
		if (errno == EAGAIN)
			return GJ_RECEIVED_NOTHING;

		/* reported once, ahead of the messages that came before */
		if (errno == ECONNRESET && resets++ == 0)
			connection->broken = true;
		else if (errno != EINTR)
			return GJ_RECEIVED_LOST;
	}
	take_descriptors(&message, fds, nfds);
	if (size < (ssize_t) sizeof(uint32) || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
		size < (ssize_t) answer_size(answer->type))
	{
		for (int i = 0; i < nfds; i++)
		{
			if (fds[i] >= 0)
				close(fds[i]);
			fds[i] = -1;
		}
		connection->broken = true;
		return GJ_RECEIVED_LOST;
	}
	return GJ_RECEIVED_MESSAGE;
}

void
gj_failure_from_message(const GjMsgError *error, GjFailure *failure)
{
	GjStatus	reason = error->reason;

	if (reason == GJ_OK || reason >= GJ_NREASONS)
		reason = GJ_DEVICE_ERROR;
	gj_fail(failure, reason, "%.*s", (int) strnlen(error->detail, sizeof(error->detail)), error->detail);
	failure->counted = true;
}

bool
gj_connection_expect(GjConnection *connection, uint32 type, int timeout,
					 GjAnswer *answer, GjFailure *failure)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout);

	for (;;)
	{
		switch (gj_connection_read(connection, answer, NULL, 0))
		{
			case GJ_RECEIVED_MESSAGE:
				if (answer->type == type)
					return true;
				/* of the run before */
				if (answer->type == GJ_MSG_SLOT_FREE)
					continue;
				if (answer->type == GJ_MSG_ERROR)
					gj_failure_from_message(&answer->error, failure);
				else
					gj_fail(failure, GJ_DEVICE_LOST, "unexpected message %u", answer->type);
				return false;
			case GJ_RECEIVED_LOST:
				gj_connection_lost(connection, failure);
				return false;
			case GJ_RECEIVED_NOTHING:
				if (!gj_connection_wait(connection, deadline))
				{
					gj_fail(failure, GJ_NO_DAEMON, "no answer within %d ms", timeout);
					failure->timeout = true;
					return false;
				}
		}
	}
}
