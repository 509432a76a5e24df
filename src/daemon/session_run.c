/*
 * session_run.c
 *	  A session's run of a program: lease, rings, chunks in, batches out, outcome.
 *
 * While a run works, messages stay in the socket; they are taken out when the
 * session waits, be it for a chunk or for a free slot of the output ring.  In the
 * second case chunks that arrive are put aside.  All device memory is given back
 * before the outcome is told.
 */
#define _GNU_SOURCE
#include "session_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "program_check.h"
#include "work.h"

static GjStatus
protocol_error(GjErrorText *why)
{
	snprintf(why->text, sizeof(why->text), "malformed message");
	return GJ_BAD_PROGRAM;
}

/* ---- messages of a run */

/* Checks a CHUNK or SOURCE_END against what came before. */
static bool
accept_source_message(GjSession *session, uint32_t type, const GjMsgSlot *message)
{
	if (message->source >= GJ_MAX_SOURCES || (session->ended >> message->source & 1))
		return false;
	if (type == GJ_MSG_SOURCE_END)
	{
		session->ended |= 1u << message->source;
		return true;
	}
	if (message->slot >= GJ_LOAD_SLOTS || (session->load_busy >> message->slot & 1))
		return false;
	session->load_busy |= 1u << message->slot;
	return true;
}

static bool
take_back_batch(GjSession *session, const GjMsgSlot *message)
{
	if (message->slot >= GJ_OUTPUT_SLOTS || (session->output_free >> message->slot & 1))
		return false;
	session->output_free |= 1u << message->slot;
	return true;
}

/*
 * Receives one message of a run.  CHUNK and SOURCE_END are put aside, BATCH_FREE is
 * done with.  Waits; gj_run_wait() was called, so nothing of the run works meanwhile.
 */
static GjStatus
receive_run_message(GjSession *session)
{
	uint32_t	type;
	GjMsgSlot	message;

	gj_journal_rest(&session->mark);
	type = gj_session_receive(session);
	gj_journal_work(&session->mark);
	if (type == GJ_MSG_CLOSED)
		return GJ_CANCELLED;
	if (session->nbytes != sizeof(message))
		return GJ_BAD_PROGRAM;
	memcpy(&message, session->message, sizeof(message));
	if (type == GJ_MSG_BATCH_FREE)
		return take_back_batch(session, &message) ? GJ_OK : GJ_BAD_PROGRAM;
	if ((type != GJ_MSG_CHUNK && type != GJ_MSG_SOURCE_END) ||
		!accept_source_message(session, type, &message))
		return GJ_BAD_PROGRAM;
	/* there is room: each slot and each source waits here at most once */
	session->pending[(session->next_pending + session->npending++) % GJ_MAX_PENDING] = message;
	return GJ_OK;
}

/* ---- what the executor asks for */

static GjStatus
host_output_slot(void *arg, uint8_t **memory)
{
	GjSession  *session = arg;

	while (session->output_free == 0)
		GJ_TRY(receive_run_message(session));
	session->output_slot = (uint32_t) __builtin_ctz(session->output_free);
	*memory = session->output->memory + (size_t) session->output_slot * GJ_OUTPUT_SLOT_SIZE;
	return GJ_OK;
}

static GjStatus
host_send_batch(void *arg, uint32_t nrows)
{
	GjSession  *session = arg;
	GjMsgSlot	message = {GJ_MSG_BATCH, session->output_slot, 0, nrows};

	session->output_free &= ~(1u << session->output_slot);
	return gj_session_send(session, &message, sizeof(message)) ? GJ_OK : GJ_CANCELLED;
}

static GjStatus
host_slot_free(void *arg, uint32_t slot)
{
	GjSession  *session = arg;
	GjMsgSlot	message = {GJ_MSG_SLOT_FREE, slot, 0, 0};

	session->load_busy &= ~(1u << slot);
	return gj_session_send(session, &message, sizeof(message)) ? GJ_OK : GJ_CANCELLED;
}

/* ---- start */

/* Tells the backend the rings and hands it their descriptors. */
static bool
send_ready(GjSession *session)
{
	GjMsgReady	ready = {GJ_MSG_READY, GJ_LOAD_SLOTS, GJ_LOAD_SLOT_SIZE,
	GJ_OUTPUT_SLOTS, GJ_OUTPUT_SLOT_SIZE};
	int			fds[2] = {session->load->fd, session->output->fd};
	union
	{
		struct cmsghdr header;
		char		space[CMSG_SPACE(sizeof(fds))];
	}			control;
	struct iovec part = {&ready, sizeof(ready)};
	struct msghdr message = {.msg_iov = &part,.msg_iovlen = 1,
	.msg_control = control.space,.msg_controllen = sizeof(control.space)};
	struct cmsghdr *rights;
	ssize_t		n;

	memset(&control, 0, sizeof(control));
	rights = CMSG_FIRSTHDR(&message);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(rights), fds, sizeof(fds));
	do
		n = sendmsg(session->socket, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == sizeof(ready);
}

static GjStatus
get_rings(GjSession *session, GjErrorText *why)
{
	session->output_free = (1u << GJ_OUTPUT_SLOTS) - 1;
	GJ_TRY(gj_segment_get(session->entry, GJ_LOAD_SLOTS * (size_t) GJ_LOAD_SLOT_SIZE,
						  &session->load, why));
	return gj_segment_get(session->entry, GJ_OUTPUT_SLOTS * (size_t) GJ_OUTPUT_SLOT_SIZE,
						  &session->output, why);
}

void
gj_session_free_rings(GjSession *session)
{
	if (session->load)
		gj_segment_put(session->load);
	if (session->output)
		gj_segment_put(session->output);
	session->load = session->output = NULL;
}

/* Copies the program out of the message and checks it.  The copy is the caller's. */
static GjStatus
take_program(GjSession *session, GjProgram **program, GjErrorText *why)
{
	GjMsgSubmit submit;
	size_t		nbytes = session->nbytes - sizeof(submit);

	memcpy(&submit, session->message, sizeof(submit));
	if (submit.nbytes != nbytes)
		return protocol_error(why);
	*program = malloc(nbytes + sizeof(GjProgram));
	if (!*program)
		return GJ_OUT_OF_HOST_MEMORY;
	memcpy(*program, session->message + sizeof(submit), nbytes);
	return gj_program_check(*program, (uint32_t) nbytes, why);
}

/* ---- the run */

/* Hands chunks and ends to the run until nothing more is needed. */
static GjStatus
feed(GjSession *session)
{
	while (!gj_run_complete(session->run))
	{
		GjMsgSlot	message;
		GjStatus	status;

		while (session->npending == 0)
		{
			GJ_TRY(gj_run_wait(session->run));
			GJ_TRY(receive_run_message(session));
		}
		message = session->pending[session->next_pending];
		session->next_pending = (session->next_pending + 1) % GJ_MAX_PENDING;
		session->npending--;
		status = message.type == GJ_MSG_SOURCE_END ?
			gj_run_source_end(session->run, message.source) :
			gj_run_chunk(session->run, message.source, message.nrows,
						 session->load->memory + (size_t) message.slot * GJ_LOAD_SLOT_SIZE,
						 message.slot);
		if (status != GJ_OK)
			return status;
	}
	return GJ_OK;
}

/* What can crash the device is done here, and noted as this program's. */
static GjStatus
work(GjSession *session, GjRunStats *stats)
{
	GjStatus	status;

	gj_journal_work(&session->mark);
	status = feed(session);
	if (status == GJ_OK)
		status = gj_run_finish(session->run, stats);
	if (status == GJ_OK)
	{
		gj_journal_rest(&session->mark);
		gj_journal_clear(&session->mark);
	}
	return status;
}

/*
 * Runs the program with a lease, and gives back whatever it took.  If the device is
 * lost, nothing can be given back, and the mark stays for the next gpujoind to see.
 */
static GjStatus
run_leased(GjSession *session, const GjProgram *program, GjRunStats *stats, GjErrorText *why)
{
	const GjRunHost host = {session, gj_session_stop, host_output_slot, host_send_batch,
	host_slot_free};
	GjErrorText lost = {""};
	GjStatus	status;

	session->run = gj_run_open(session->entry, program, &session->lease, &host, &status, why);
	if (!session->run)
		return status;
	status = get_rings(session, why);
	if (status == GJ_OK && !send_ready(session))
		status = GJ_CANCELLED;
	if (status == GJ_OK)
		status = work(session, stats);
	if (status != GJ_OK && why->text[0] == '\0')
		snprintf(why->text, sizeof(why->text), "%s", gj_run_error(session->run));

	/* whatever ended the run, closing it shows whether the device is still there */
	if (status != GJ_DEVICE_LOST && gj_run_close(session->run, &lost) == GJ_DEVICE_LOST)
	{
		status = GJ_DEVICE_LOST;
		*why = lost;
	}
	session->run = NULL;
	if (status != GJ_DEVICE_LOST)
		gj_journal_rest(&session->mark);
	return status;
}

static GjStatus
run_program(GjSession *session, const GjProgram *program, GjRunStats *stats, GjErrorText *why)
{
	GjStatus	status;

	if (program->fail_point == GJ_FAIL_SUBMIT)
		return GJ_INJECTED;
	if (!gj_journal_begin(program, &session->mark))
		return GJ_REFUSED;
	session->entry = gj_devices_choose(session->hello.device, why);
	if (!session->entry)
		return GJ_NO_DEVICE;
	status = gj_lease_start(&session->lease, &session->entry->memory, program->lease,
							session->hello.memory_limit, gj_session_stop, session);
	if (status != GJ_OK)
		return status;
	status = run_leased(session, program, stats, why);
	gj_lease_end(&session->lease);
	return status;
}

void
gj_session_run(GjSession *session)
{
	GjProgram  *program = NULL;
	GjMsgDone	done = {.type = GJ_MSG_DONE};
	GjErrorText why = {""};
	GjStatus	status;
	bool		lost;

	status = take_program(session, &program, &why);
	if (status == GJ_OK)
		status = run_program(session, program, &done.stats, &why);
	free(program);
	lost = status == GJ_DEVICE_LOST;
	if (session->closed)
		status = GJ_CANCELLED;
	gj_journal_count(status, 1);
	if (status == GJ_OK)
		gj_session_send(session, &done, sizeof(done));
	else if (status != GJ_CANCELLED)
		gj_session_error(session, status, why.text);
	if (lost)
	{
		gj_log(GJ_ERROR, "the device is lost: %s", why.text);
		_exit(3);
	}
}
