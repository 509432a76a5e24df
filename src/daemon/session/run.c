/*
 * run.c
 *	  A session's run of a program: rings, chunks in, batches out, outcome.
 *
 * While a run works, messages stay in the sockets of its loaders (loaders.h); they are
 * taken out between two steps of the run, and when it waits for a chunk or for a free slot
 * of the output ring, and are put aside until the run can take them.  All device memory is
 * given back before a failure is told, and before the backend's next HELLO is answered.
 */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "loaders.h"
#include "daemon/base/base.h"
#include "daemon/program/program.h"
#include "daemon/sink/sink.h"

/* A backend that waits for an answer waits no longer than this for its last run to be closed. */
#define GJ_CLOSING_SECONDS	1

static GjStatus
protocol_error(GjErrorText *why)
{
	snprintf(why->text, sizeof(why->text), "malformed message");
	return GJ_BAD_PROGRAM;
}

/* ---- messages of a run */

/* Checks a message about a source against what the loader sent before. */
static bool
accept_source_message(GjSession *loader, const GjMsgSlot *message)
{
	/* it is about several sources; what it is about is looked at later */
	if (message->type == GJ_MSG_ASK)
		return true;
	if (message->source >= GJ_MAX_SOURCES || (loader->load.ended >> message->source & 1))
		return false;
	if (message->type == GJ_MSG_SOURCE_END)
	{
		loader->load.ended |= 1u << message->source;
		return true;
	}
	if (message->slot >= GJ_LOAD_SLOTS || (loader->load.busy >> message->slot & 1))
		return false;
	loader->load.busy |= 1u << message->slot;
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

/* A loader has closed its connection: it may, once it has ended all sources. */
static GjStatus
loader_has_left(GjSession *session, GjSession *loader)
{
	loader->closed = true;
	if (loader == session)
		return GJ_CANCELLED;
	return loader->load.ended == (1u << session->nsources) - 1 ? GJ_OK : GJ_LOADER_LOST;
}

/*
 * The message has `extra` bytes behind it, which must be the questions of an ASK.  The backend
 * waits for the answers to one before it sends another.
 */
static bool
accept_questions(GjSession *session, const GjSession *loader, const GjMsgSlot *message,
				 size_t extra)
{
	if (message->type != GJ_MSG_ASK)
		return extra == 0;
	if (loader != session || session->ask.nbytes > 0 || extra == 0 || extra > GJ_MAX_ASK)
		return false;
	session->ask.nbytes = (uint32_t) extra;
	return true;
}

/*
 * Receives a message of a loader, if there is one.  What is about a source is put aside,
 * BATCH_FREE is done with.
 */
static GjStatus
receive_from(GjSession *session, GjSession *loader)
{
	GjMsgSlot	message;
	/* an ASK that waits must not be written over by a message that comes too early */
	struct iovec parts[2] = {
		{&message, sizeof(message)},
		{session->message, session->ask.nbytes > 0 ? 0 : sizeof(session->message)}
	};
	struct msghdr whole = {.msg_iov = parts,.msg_iovlen = 2};
	bool		reset = false;
	ssize_t		n;

	do
	{
		n = recvmsg(loader->socket, &whole, MSG_DONTWAIT | MSG_TRUNC);
		/* that it has closed with messages unread is told once, ahead of what it sent */
		if (n < 0 && errno == ECONNRESET && !reset)
		{
			reset = true;
			errno = EINTR;
		}
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return GJ_OK;
	if (n <= 0)
		return loader_has_left(session, loader);
	if ((size_t) n < sizeof(message) ||
		!accept_questions(session, loader, &message, (size_t) n - sizeof(message)))
		return GJ_BAD_PROGRAM;
	if (message.type == GJ_MSG_BATCH_FREE && loader == session)
		return take_back_batch(session, &message) ? GJ_OK : GJ_BAD_PROGRAM;
	session->expected = false;
	/* who helps to load does not know what is resident */
	if ((message.type != GJ_MSG_CHUNK && message.type != GJ_MSG_SOURCE_END &&
		 ((message.type != GJ_MSG_ASK && message.type != GJ_MSG_USE) || loader != session)) ||
		!accept_source_message(loader, &message))
		return GJ_BAD_PROGRAM;
	/* there is room: each slot and each source waits here at most once */
	loader->load.pending[(loader->load.next_pending + loader->load.npending++) % GJ_MAX_PENDING] =
		message;
	return GJ_OK;
}

/* Finds the next message that can be done with now, of each loader in turn.  False: there is none. */
static bool
find_message(GjSession *session, uint32_t *which)
{
	uint32_t	n = gj_loaders_count(session);

	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	at = (session->next_loader + i) % n;
		const GjSession *loader = session->loaders.session[at];
		const GjMsgSlot *message = &loader->load.pending[loader->load.next_pending];

		if (loader->load.npending == 0 ||
			((message->type == GJ_MSG_CHUNK || message->type == GJ_MSG_USE) &&
			 !gj_team_accepts(session->run, message->source)))
			continue;
		*which = at;
		return true;
	}
	return false;
}

/* Takes it out. */
static bool
next_message(GjSession *session, uint32_t *which, GjMsgSlot *message)
{
	GjSession  *loader;

	if (!find_message(session, which))
		return false;
	loader = session->loaders.session[*which];
	*message = loader->load.pending[loader->load.next_pending];
	loader->load.next_pending = (loader->load.next_pending + 1) % GJ_MAX_PENDING;
	loader->load.npending--;
	session->next_loader = *which + 1;
	return true;
}

/* True if who feeds the run has something to do. */
static bool
can_feed(GjSession *session)
{
	uint32_t	which;

	return gj_team_complete(session->run) || gj_session_can_feed_stages(session) ||
		find_message(session, &which);
}

/*
 * Receives at most one message of each loader.  With `wait`, waits for something to
 * happen, be it that a device of several wants something; of a single one gj_team_flush()
 * was called then, so nothing of the run works meanwhile.  Who feeds the run does not wait while
 * there is something to do.
 */
static GjStatus
receive_messages(GjSession *session, bool wait, bool feeding)
{
	uint32_t	n = gj_loaders_count(session);
	struct pollfd fds[GJ_MAX_LOADERS + 2];
	uint64_t	count;
	int			ready = 0;

	for (uint32_t i = 0; i < n; i++)
		fds[i] = (struct pollfd) {
			.fd = session->loaders.session[i]->closed ? -1 :
				session->loaders.session[i]->socket,.events = POLLIN
		};
	fds[n] = (struct pollfd) {.fd = session->loaders.wake,.events = POLLIN};
	fds[n + 1] = (struct pollfd) {.fd = gj_team_fd(session->run),.events = POLLIN};
	if (wait)
		GJ_TRY(gj_team_serve(session->run));
	/*
	 * That may have taken what was to wake us: a chunk of a stage is read, the run is complete.  Or
	 * what we are to wait for: to send a batch it receives messages itself, as flushing does.
	 */
	wait &= !feeding || !can_feed(session);
	if (wait && gj_team_waits(session->run))
		gj_journal_rest(&session->mark);
	if (wait && session->expected)
		ready = gj_spin_poll(fds, n + 2, GJ_SPIN_US);
	if (ready == 0)
		ready = poll(fds, n + 2, wait ? -1 : 0);
	if (ready < 0)
		n = 0;
	if (wait)
		gj_journal_work(&session->mark);
	/* who has attached is asked from the next call on */
	if (n > 0 && fds[n].revents)
		(void) !read(session->loaders.wake, &count, sizeof(count));
	for (uint32_t i = 0; i < n; i++)
		if (fds[i].revents)
			GJ_TRY(receive_from(session, session->loaders.session[i]));
	return GJ_OK;
}

GjStatus
gj_session_source_ended(GjSession *session, GjSession *loader, uint32_t source)
{
	uint32_t	n = gj_loaders_count(session);

	loader->load.finished |= 1u << source;
	/* who attached later has found nothing of it left */
	if (session->sources_ended >> source & 1)
		return GJ_OK;
	for (uint32_t i = 0; i < n; i++)
		if (!(session->loaders.session[i]->load.finished >> source & 1))
			return GJ_OK;
	session->sources_ended |= 1u << source;
	if (session->stages.waiting == 0 && !session->stages.read[source])
		return gj_team_source_end(session->run, source);
	/* in their order: gj_session_feed_stages */
	session->stages.waiting |= 1u << source;
	return GJ_OK;
}

/* ---- what the executor asks for */

GjStatus
gj_session_output_slot(void *arg, uint8_t **memory)
{
	GjSession  *session = arg;

	while (session->output_free == 0)
		GJ_TRY(receive_messages(session, true, false));
	session->output_slot = (uint32_t) __builtin_ctz(session->output_free);
	*memory = session->output->memory + (size_t) session->output_slot * GJ_OUTPUT_SLOT_SIZE;
	return GJ_OK;
}

static bool
output_ready(void *arg)
{
	return ((GjSession *) arg)->output_free != 0;
}

static GjStatus
send_batch(void *arg, uint32_t nrows)
{
	GjSession  *session = arg;
	GjMsgSlot	message = {GJ_MSG_BATCH, session->output_slot, 0, nrows};

	session->output_free &= ~(1u << session->output_slot);
	return gj_session_send(session, &message, sizeof(message)) ? GJ_OK : GJ_CANCELLED;
}

/* The client's ring. */
static const GjFinalOps ring_ops = {
	.slot = gj_session_output_slot,.ready = output_ready,.send = send_batch
};

GjStatus
gj_session_slot_free(void *arg, uint32_t slot)
{
	GjSession  *session = arg;
	GjSession  *loader;
	GjMsgSlot	message = {GJ_MSG_SLOT_FREE, slot % GJ_LOAD_SLOTS, 0, 0};

	if (slot >= GJ_STAGE_SLOTS)
	{
		session->stages.nheld--;
		return GJ_OK;
	}
	loader = session->loaders.session[slot / GJ_LOAD_SLOTS];
	loader->load.busy &= ~(1u << message.slot);
	if (loader == session)
		return gj_session_send(session, &message, sizeof(message)) ? GJ_OK : GJ_CANCELLED;
	/* a worker that has gone does not want it: what that means is seen where it is read */
	(void) !send(loader->socket, &message, sizeof(message), MSG_NOSIGNAL);
	return GJ_OK;
}

/* ---- start */

bool
gj_session_ready(int socket, const GjSegment *load, const GjSegment *output, bool mapped,
				 const GjRunToken *token)
{
	GjMsgReady	ready = {GJ_MSG_READY, GJ_LOAD_SLOTS, GJ_LOAD_SLOT_SIZE,
	output ? GJ_OUTPUT_SLOTS : 0, GJ_OUTPUT_SLOT_SIZE, *token};
	int			fds[2] = {load->fd, output ? output->fd : -1};
	size_t		fds_size = (output ? 2 : 1) * sizeof(int);
	union
	{
		struct cmsghdr header;
		char		space[CMSG_SPACE(sizeof(fds))];
	}			control;
	struct iovec part = {&ready, sizeof(ready)};
	struct msghdr message = {.msg_iov = &part,.msg_iovlen = 1};
	ssize_t		n;

	if (!mapped)
	{
		struct cmsghdr *rights = &control.header;

		memset(&control, 0, sizeof(control));
		message.msg_control = control.space;
		message.msg_controllen = CMSG_SPACE(fds_size);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(fds_size);
		memcpy(CMSG_DATA(rights), fds, fds_size);
	}
	do
		n = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == sizeof(ready);
}

/* Gets rings, unless there are those of the connection's run before: *mapped. */
static GjStatus
get_rings(GjSession *session, bool *mapped, GjErrorText *why)
{
	GjDeviceEntry *entry = gj_team_entry(session->run);

	session->output_free = (1u << GJ_OUTPUT_SLOTS) - 1;
	*mapped = session->load.ring && session->output;
	if (*mapped)
		return session->output->ops == entry->ops ? GJ_OK : protocol_error(why);
	GJ_TRY(gj_segment_get(entry, GJ_LOAD_SLOTS * (size_t) GJ_LOAD_SLOT_SIZE,
						  &session->load.ring, why));
	return gj_segment_get(entry, GJ_OUTPUT_SLOTS * (size_t) GJ_OUTPUT_SLOT_SIZE,
						  &session->output, why);
}

void
gj_session_free_rings(GjSession *session)
{
	if (session->load.ring)
		gj_segment_put(session->load.ring);
	if (session->output)
		gj_segment_put(session->output);
	session->load.ring = session->output = NULL;
}

/* Copies the program out of the message and checks it.  The copy is the caller's. */
static GjStatus
take_program(GjSession *session, GjProgram **program, GjErrorText *why)
{
	GjMsgSubmit *submit = &session->submit;
	size_t		nbytes = session->nbytes - sizeof(*submit);

	memcpy(submit, session->message, sizeof(*submit));
	submit->temp_directory[sizeof(submit->temp_directory) - 1] = '\0';
	if (submit->nbytes != nbytes)
		return protocol_error(why);
	if (!gj_temp_directory_known(submit->temp_directory))
	{
		snprintf(why->text, sizeof(why->text), "temporary files may not go to \"%s\"",
				 submit->temp_directory);
		return GJ_BAD_PROGRAM;
	}
	*program = malloc(nbytes + sizeof(GjProgram));
	if (!*program)
		return GJ_OUT_OF_HOST_MEMORY;
	memcpy(*program, session->message + sizeof(*submit), nbytes);
	GJ_TRY(gj_program_check(*program, (uint32_t) nbytes, why));
	gj_program_find_questions(*program);
	return gj_program_add_operands(program) ? GJ_OK : GJ_OUT_OF_HOST_MEMORY;
}

/* ---- the run */

/* Hands one message about a source to the run. */
static GjStatus
feed_message(GjSession *session, uint32_t which, const GjMsgSlot *message)
{
	GjSession  *loader = session->loaders.session[which];
	uint8_t    *memory = loader->load.ring->memory + (size_t) message->slot * GJ_LOAD_SLOT_SIZE;
	uint32_t	slot = which * GJ_LOAD_SLOTS + message->slot;

	if (message->type != GJ_MSG_ASK)
		gj_crash_phase(session->mark.report, message->source == 0 ? "probing" :
					   message->type == GJ_MSG_SOURCE_END ? "building" : "loading a build side");
	switch (message->type)
	{
		case GJ_MSG_SOURCE_END:
			return gj_session_source_ended(session, loader, message->source);
		case GJ_MSG_ASK:
			return gj_session_feed_questions(session, message->slot == GJ_ASK_WHOLE);
		case GJ_MSG_USE:
			return gj_session_feed_uses(session, which, message, memory);
		default:
			return gj_team_chunk(session->run, message->source, message->nrows, memory, slot);
	}
}

/*
 * Hands chunks and ends to the run until nothing more is needed.  What has come meanwhile
 * is handed over before the run works on what was handed over before: so a device can copy
 * the one while it works on the other.
 */
static GjStatus
feed(GjSession *session)
{
	bool		settled = true;	/* nothing was handed over since the run was waited for */

	while (!gj_team_complete(session->run))
	{
		GjMsgSlot	message;
		uint32_t	which;
		bool		any = false;

		/* the questions that wait have the room of the next ones */
		if (session->ask.nbytes == 0)
			GJ_TRY(receive_messages(session, false, true));
		while (!gj_team_complete(session->run) && next_message(session, &which, &message))
		{
			any = true;
			settled &= message.type == GJ_MSG_ASK;
			GJ_TRY(feed_message(session, which, &message));
		}
		if (session->stages.waiting != 0)
		{
			bool		fed = false;

			GJ_TRY(gj_session_feed_stages(session, &fed));
			any |= fed;
			settled &= !fed;
		}
		if (any)
			GJ_TRY(gj_team_work(session->run));
		else if (!gj_team_complete(session->run))
		{
			if (!settled)
				GJ_TRY(gj_team_flush(session->run));
			settled = true;
			GJ_TRY(receive_messages(session, true, true));
		}
	}
	return GJ_OK;
}

/* What can crash the device is done here, and noted as this program's. */
static GjStatus
work(GjSession *session, GjRunStats *stats)
{
	GjStatus	status;

	gj_journal_work(&session->mark);
	/* what is resident is asked right behind the program */
	session->expected = true;
	status = feed(session);
	gj_crash_phase(session->mark.report, "finishing");
	if (status == GJ_OK)
		status = gj_team_finish(session->run, stats);
	if (status == GJ_OK)
	{
		gj_journal_rest(&session->mark);
		gj_journal_clear(&session->mark);
	}
	return status;
}

/* ---- the outcome */

/* Sessions that have told the outcome of their run and are giving back what it held. */
static struct
{
	pthread_mutex_t lock;
	pthread_cond_t given_back;
	GjSession  *first;			/* linked by done.next_closing */
}			closing = {.lock = PTHREAD_MUTEX_INITIALIZER,.given_back = PTHREAD_COND_INITIALIZER};

/* The lock is held. */
static bool
is_closing(uint32_t pid)
{
	for (GjSession *session = closing.first; session; session = session->done.next_closing)
		if (session->hello.pid == pid)
			return true;
	return false;
}

void
gj_session_await_closing(uint32_t pid)
{
	struct timespec end;
	GjSpin		spin = gj_spin_start(GJ_SPIN_US);
	bool		looks = true;
	int			error = 0;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += GJ_CLOSING_SECONDS;
	pthread_mutex_lock(&closing.lock);
	while (is_closing(pid) && error != ETIMEDOUT)
	{
		if (!looks)
		{
			error = pthread_cond_timedwait(&closing.given_back, &closing.lock, &end);
			continue;
		}
		pthread_mutex_unlock(&closing.lock);
		looks = gj_spin_on(&spin);
		pthread_mutex_lock(&closing.lock);
	}
	pthread_mutex_unlock(&closing.lock);
}

/* The run was successful, and the devices have nothing to do for it any more. */
static void
tell_done(GjSession *session, const GjRunStats *stats)
{
	const GjMsgDone done = {.type = GJ_MSG_DONE,.may_keep = gj_session_may_keep(session),.stats = *stats};

	gj_journal_count(session->hello.database, GJ_OK);
	pthread_mutex_lock(&closing.lock);
	session->done.next_closing = closing.first;
	closing.first = session;
	pthread_mutex_unlock(&closing.lock);
	session->done.told = true;
	gj_session_send(session, &done, sizeof(done));
}

/* All that the run held was given back. */
static void
end_closing(GjSession *session)
{
	GjSession **link;

	if (!session->done.told)
		return;
	pthread_mutex_lock(&closing.lock);
	for (link = &closing.first; *link != session; link = &(*link)->done.next_closing)
		;
	*link = session->done.next_closing;
	pthread_cond_broadcast(&closing.given_back);
	pthread_mutex_unlock(&closing.lock);
}

static void
leave_quotas(GjSession *session)
{
	if (session->running)
	{
		gj_quota_leave(session->running, session->hello.pid);
		gj_quota_put(session->running);
	}
	if (session->memory.group)
		gj_quota_put(session->memory.group);
	session->running = NULL;
	session->memory.group = NULL;
}

/*
 * Gets a place among the running queries, waiting for it, and the quota of memory.  leave_quotas
 * follows.
 */
static GjStatus
enter_quotas(GjSession *session, GjErrorText *why)
{
	const GjMsgHello *hello = &session->hello;
	GjStatus	status = GJ_OK;

	if (hello->max_memory != 0)
	{
		session->memory.limit = hello->max_memory;
		session->memory.group = gj_quota_get(&hello->memory);
		if (!session->memory.group)
			return GJ_OUT_OF_HOST_MEMORY;
	}
	if (hello->max_running == GJ_NO_LIMIT)
		return GJ_OK;
	session->running = gj_quota_get(&hello->running);
	if (session->running)
		status = gj_quota_enter(session->running, hello->pid, hello->max_running, gj_session_stop,
								session);
	else
		status = GJ_OUT_OF_HOST_MEMORY;
	if (status == GJ_LIMITED)
		snprintf(why->text, sizeof(why->text), "gpujoin.max_running_queries");
	if (status != GJ_OK && session->running)
	{
		gj_quota_put(session->running);
		session->running = NULL;
	}
	return status;
}

/*
 * Runs the program and gives back whatever it took, after the outcome of a successful run was told:
 * its backend need not wait for that.  If a device is lost, nothing can be given back, and the
 * mark stays for the next gpujoind to see.
 */
static GjStatus
run_on_devices(GjSession *session, const GjProgram *program, GjTempAccount *account,
			   GjErrorText *why)
{
	GjRunStats	stats = {0};
	const GjRunHost host = {
		.arg = session,.stop = gj_session_stop,.slot_free = gj_session_slot_free
	};
	const GjTarget target = {.form = GJ_FORM_FINAL,.arg = session,
	.final = program->stage_capacity == 0 ? &ring_ops : gj_session_open_stage(session, program)};
	const GjTeamOptions options = {
		.kind = session->hello.device,
		.limits = {session->hello.memory_limit, session->memory},
		.max_devices = session->submit.max_devices,
		.exchange = session->submit.exchange,
		.keep_exchanged = session->submit.keep_exchanged != 0,
		.spill_memory = session->submit.spill_memory,
		.temp = {account, session->submit.temp_limit, session->submit.temp_directory}
	};
	GjErrorText lost = {""};
	bool		mapped = false;
	GjStatus	status;

	if (!target.final)
		return GJ_OUT_OF_HOST_MEMORY;
	gj_spin_count(1);
	session->run = gj_team_open(program, &options, &host, &target, &status, why);
	if (!session->run)
	{
		gj_spin_count(-1);
		if (status == GJ_LIMITED)
			snprintf(why->text, sizeof(why->text), "gpujoin.max_device_memory");
		return status;
	}
	status = get_rings(session, &mapped, why);
	if (status == GJ_OK)
		status = gj_loaders_open(session, why);
	if (status == GJ_OK && !gj_session_ready(session->socket, session->load.ring, session->output,
											 mapped, &session->loaders.token))
		status = GJ_CANCELLED;
	if (status == GJ_OK)
		status = work(session, &stats);
	if (status != GJ_OK && why->text[0] == '\0')
		gj_team_error(session->run, why);
	if (status != GJ_OK && why->text[0] == '\0')
		*why = session->stages.why;

	gj_loaders_close(session);
	if (status == GJ_DEVICE_ERROR || status == GJ_DEVICE_LOST)
		gj_crash_device_error(why->text);
	gj_crash_phase(session->mark.report, "closing");
	if (status == GJ_OK && session->stages.result)
		gj_stage_publish(session->stages.result, &session->loaders.token);
	if (status == GJ_OK && !session->closed)
		tell_done(session, &stats);
	/* whatever ended the run, closing it shows whether the device is still there */
	if (status != GJ_DEVICE_LOST && gj_team_close(session->run, &lost) == GJ_DEVICE_LOST)
	{
		status = GJ_DEVICE_LOST;
		*why = lost;
	}
	session->run = NULL;
	/* the process will end if the device is lost: it may still write to rings */
	if (status != GJ_DEVICE_LOST)
	{
		/* at once: its memory is back, and who sees that may think that nothing works any more */
		gj_journal_rest(&session->mark);
		gj_loaders_release(session);
		gj_spin_count(-1);
		/* before the next run of the same backend */
		leave_quotas(session);
		end_closing(session);
	}
	return status;
}

/* What a report of a crash would say of the run. */
static void
begin_report(GjSession *session, const GjProgram *program)
{
	char		shape[GJ_SHAPE_BYTES];
	int			n = snprintf(shape, sizeof(shape), "program %016" PRIx64 " of process %u: ",
							 session->mark.fingerprint, session->hello.pid);

	gj_program_shape(program, gj_sink_choose(program)->name, shape + n,
					 sizeof(shape) - (uint32_t) n);
	session->mark.report = gj_crash_begin(shape);
}

static GjStatus
run_program(GjSession *session, const GjProgram *program, GjErrorText *why)
{
	GjTempAccount *account;
	GjStatus	status;

	if (program->fail_point == GJ_FAIL_SUBMIT)
		return GJ_INJECTED;
	session->nsources = program->nsources;
	session->fail_point = program->fail_point;
	if (!gj_journal_begin(program, &session->mark))
		return GJ_REFUSED;
	account = gj_temp_account_get(session->hello.pid);
	if (!account)
		return GJ_OUT_OF_HOST_MEMORY;
	status = enter_quotas(session, why);
	if (status == GJ_OK)
	{
		begin_report(session, program);
		status = run_on_devices(session, program, account, why);
		gj_crash_end(session->mark.report);
	}
	if (status != GJ_DEVICE_LOST)
		leave_quotas(session);
	/* threads of a team that was not closed may still count */
	if (status != GJ_DEVICE_LOST)
		gj_temp_account_put(account);
	return status;
}

void
gj_session_run(GjSession *session)
{
	GjProgram  *program = NULL;
	GjErrorText why = {""};
	GjStatus	status;
	bool		lost;

	status = take_program(session, &program, &why);
	if (status == GJ_OK)
		status = gj_session_find_stages(session, program, &why);
	if (status == GJ_OK)
		status = run_program(session, program, &why);
	lost = status == GJ_DEVICE_LOST;
	/* threads of a team that was not closed may still read it */
	if (!lost)
		free(program);
	if (!session->done.told)
	{
		if (session->closed)
			status = GJ_CANCELLED;
		gj_journal_count(session->hello.database, status);
		if (status != GJ_CANCELLED)
			gj_session_error(session, status, why.text);
	}
	if (lost)
	{
		gj_log(GJ_ERROR, "the device is lost: %s", why.text);
		_exit(why.denied ? GJ_EXIT_DENIED : 3);
	}
}
