/*
 * conversation.c
 *	  The client's side of the protocol of wire/messages.h, for those who break it.
 */
#define _GNU_SOURCE
#include "conversation.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LOAD_BYTES		(GJ_LOAD_SLOTS * (size_t) GJ_LOAD_SLOT_SIZE)
#define OUTPUT_BYTES	(GJ_OUTPUT_SLOTS * (size_t) GJ_OUTPUT_SLOT_SIZE)

GjMsgHello
peer_hello(void)
{
	return (GjMsgHello) {
		.type = GJ_MSG_HELLO,.abi = GJ_ABI,.program_size = sizeof(GjProgram),.stats_size = sizeof(GjRunStats),
		.device = GJ_DEVICE_CPU,.pid = (uint32_t) getpid(),.memory_limit = 64 << 20,
		.max_running = GJ_NO_LIMIT
	};
}

bool
peer_connect(Peer *peer, FuzzRandom *random)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX,.sun_path = GJ_SOCKET_NAME};

	*peer = (Peer) {.random = random,.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
	if (peer->socket < 0)
		fuzz_fail("could not create a socket: %s", strerror(errno));
	if (connect(peer->socket, (struct sockaddr *) &address, sizeof(address)) == 0)
		return true;
	peer_close(peer);
	return false;
}

void
peer_close(Peer *peer)
{
	if (peer->load)
		munmap(peer->load, LOAD_BYTES);
	if (peer->output)
		munmap(peer->output, OUTPUT_BYTES);
	if (peer->socket >= 0)
		close(peer->socket);
	peer->load = peer->output = NULL;
	peer->socket = -1;
	peer->over = true;
}

bool
peer_begin_anew(Peer *peer)
{
	if (peer->socket < 0 || peer->last != GJ_MSG_DONE)
		return false;
	peer->over = false;
	peer->busy = peer->nids = 0;
	return true;
}

void
peer_send(Peer *peer, const void *message, size_t nbytes)
{
	struct pollfd fd = {.fd = peer->socket,.events = POLLOUT};

	if (peer->socket < 0)
		return;
	(void) poll(&fd, 1, 100);
	(void) !send(peer->socket, message, nbytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- what comes */

/* Maps a ring, which must be one that neither shrinks nor grows. */
static uint8_t *
map_ring(Peer *peer, int fd, size_t nbytes)
{
	uint8_t    *memory;

	if (fuzz_percent(peer->random, 5) &&
		(ftruncate(fd, 0) == 0 || ftruncate(fd, (off_t) nbytes * 2) == 0))
		fuzz_fail("a ring can be given another size");
	memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

static void
take_rings(Peer *peer, const GjMsgReady *ready, int fds[2])
{
	peer->token = ready->token;
	if (peer->load)
	{
		/* of the run before */
		if (fds[0] >= 0 || fds[1] >= 0 || !peer->output)
			fuzz_fail("READY came with rings for a connection that has some");
		return;
	}
	if (fds[0] < 0 || (ready->output_slots > 0) != (fds[1] >= 0))
		fuzz_fail("READY came with the wrong descriptors");
	peer->load = map_ring(peer, fds[0], LOAD_BYTES);
	if (fds[1] >= 0)
		peer->output = map_ring(peer, fds[1], OUTPUT_BYTES);
}

/* Notes the fragments of answers.  Others may have changed what is there. */
static void
take_answers(Peer *peer, const GjMsgSlot *message)
{
	const uint8_t *at = peer->output + (size_t) (message->slot % GJ_OUTPUT_SLOTS) * GJ_OUTPUT_SLOT_SIZE;
	const uint8_t *end = at + GJ_OUTPUT_SLOT_SIZE - GJ_PAGES_BYTES - sizeof(GjKnownFragment);

	for (uint32_t i = 0; i < message->nrows; i++)
	{
		GjAnswered	head;

		memcpy(&head, at, sizeof(head));
		at += sizeof(head);
		for (uint32_t k = 0; k < head.n && at < end; k++)
		{
			GjKnownFragment known;

			memcpy(&known, at, sizeof(known));
			at += sizeof(known) + (known.flags & GJ_KNOWN_BITS ? GJ_PAGES_BYTES : 0) +
				(known.flags & GJ_KNOWN_LSNS ? known.npages % (GJ_FRAGMENT_BLOCKS + 1) * sizeof(uint64_t) : 0);
			if (peer->nids < sizeof(peer->ids) / sizeof(peer->ids[0]))
				peer->ids[peer->nids++] = known.id;
		}
		if (at >= end)
			return;
	}
}

/* A batch or answers: looked at, and mostly given back. */
static void
take_slot(Peer *peer, const GjMsgSlot *message)
{
	GjMsgSlot	back = {GJ_MSG_BATCH_FREE, message->slot, 0, 0};

	if (!peer->output || message->slot >= GJ_OUTPUT_SLOTS)
		fuzz_fail("slot %u of the output ring", message->slot);
	if (message->type == GJ_MSG_RESIDENT)
		take_answers(peer, message);
	else
		memcpy(&peer->result, peer->output + (size_t) message->slot * GJ_OUTPUT_SLOT_SIZE, sizeof(peer->result));
	if (message->type == GJ_MSG_RESIDENT && message->nrows == 0)
		return;
	peer_send(peer, &back, sizeof(back));
}

static void
take_message(Peer *peer, const uint8_t *bytes, int fds[2])
{
	GjMsgSlot	slot;
	GjMsgReady	ready;
	GjMsgError	error;

	memcpy(&peer->last, bytes, sizeof(peer->last));
	memcpy(&slot, bytes, sizeof(slot));
	switch (peer->last)
	{
		case GJ_MSG_READY:
			memcpy(&ready, bytes, sizeof(ready));
			take_rings(peer, &ready, fds);
			break;
		case GJ_MSG_SLOT_FREE:
			peer->busy &= ~(1u << slot.slot % GJ_LOAD_SLOTS);
			break;
		case GJ_MSG_RESIDENT:
		case GJ_MSG_BATCH:
			take_slot(peer, &slot);
			break;
		case GJ_MSG_ERROR:
			memcpy(&error, bytes, sizeof(error));
			peer->reason = error.reason;
			peer->over = true;
			break;
		case GJ_MSG_DONE:
		case GJ_MSG_END:
			peer->over = true;
			break;
	}
}

bool
peer_receive(Peer *peer, int ms)
{
	static _Thread_local uint8_t bytes[8192] __attribute__((aligned(8)));
	union
	{
		struct cmsghdr header;
		char		space[CMSG_SPACE(2 * sizeof(int))];
	}			control;
	struct pollfd fd = {.fd = peer->socket,.events = POLLIN};
	struct iovec part = {bytes, sizeof(bytes)};
	struct msghdr message = {.msg_iov = &part,.msg_iovlen = 1,.msg_control = control.space,
	.msg_controllen = sizeof(control.space)};
	struct cmsghdr *rights;
	int			fds[2] = {-1, -1};
	ssize_t		n;

	if (peer->socket < 0 || poll(&fd, 1, ms) <= 0)
		return false;
	n = recvmsg(peer->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < (ssize_t) sizeof(peer->last))
	{
		peer->over = true;
		return false;
	}
	rights = CMSG_FIRSTHDR(&message);
	if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(rights), rights->cmsg_len - CMSG_LEN(0));
	take_message(peer, bytes, fds);
	return true;
}

bool
peer_await(Peer *peer, uint32_t type, int ms)
{
	/* at most so long for each of them: what comes ends with the run */
	while (!peer->over || type != GJ_MSG_DONE)
	{
		if (!peer_receive(peer, ms))
			return false;
		if (peer->last == type)
			return true;
		if (peer->over)
			return false;
	}
	return peer->last == type;
}
