/*
 * client.c
 *	  One run of one program: submit, load, wait for events, read batches.
 *
 * A GjClient is in the caller's memory context.  Socket and rings, which must be given back,
 * belong to the context of its connection, a child of the caller's.  A connection whose run was
 * done is kept for the next one.
 */
#include "postgres.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "access/xact.h"
#include "commands/tablespace.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "client/connection.h"
#include "client/device_info.h"
#include "client/kept.h"
#include "client/ring.h"
#include "client/save.h"
#include "guc.h"

#define GJ_RESTART_TIMEOUT	2000	/* ms that a restart of gpujoind may take */
#define GJ_READY_TIMEOUT	60000	/* ms; gpujoind itself bounds the wait for memory */

struct GjClient
{
	GjConnection *connection;	/* NULL: closed */
	GjSaver    *saver;
	uint64		free_slots;		/* of the load ring, a bit each */
	uint32		output_capacity;	/* rows of a batch; 0: it is not rows */
	GjRunToken	token;
	bool		attached;		/* another process has submitted the run */
	bool		is_stage;		/* gpujoind has the result until it is told that it may go */
	bool		may_keep;		/* the connection, once the run is done */
	bool		done;
	GjRunStats	stats;			/* when done */
};

/* What connect_for_run() tries until the deadline. */
static GjConnection *
connect_within(int timeout, GjSendFirst send, void *arg, GjMsgWelcome *welcome, GjFailure *failure)
{
	GjConnection *connection = gj_kept_take(gj_device_kind());

	if (connection != NULL)
	{
		connection = gj_connection_again(connection, send, arg, welcome, failure);
		if (connection != NULL || failure->timeout)
			return connection;
	}
	return gj_connection_open_within(timeout, send, arg, welcome, failure);
}

/* Connect for a run.  A gpujoind that was there before may be restarting. */
static GjConnection *
connect_for_run(const GjProgram *program, GjSendFirst send, void *arg, GjFailure *failure)
{
	GjMsgWelcome welcome;
	GjConnection *connection;

	if (program->fail_point == GJ_FAIL_CONNECT)
	{
		gj_fail(failure, GJ_INJECTED, "%s", "");
		return NULL;
	}
	connection = connect_within(gj_device_known() ? GJ_RESTART_TIMEOUT : 0, send, arg, &welcome,
								failure);
	if (connection == NULL)
	{
		if (failure->reason == GJ_NO_DAEMON)
			gj_client_forget_device();
		return NULL;
	}
	if (welcome.device.memory_total == 0)
	{
		gj_fail(failure, GJ_NO_DEVICE, "%s", welcome.cuda_reason);
		gj_connection_close(connection);
		gj_client_forget_device();
		return NULL;
	}
	return connection;
}

/* Map the rings that came with the answer, unless those of the run before are to be used. */
static bool
map_rings(GjClient *client, const GjMsgReady *ready, const int fds[2], GjFailure *failure)
{
	GjConnection *connection = client->connection;

	client->token = ready->token;
	if (connection->output.base != NULL && fds[0] < 0)
		return true;
	if (connection->output.base != NULL)
		gj_fail(failure, GJ_DEVICE_LOST, "rings for a connection that has some");
	else if (fds[0] < 0 || (fds[1] < 0 && !client->attached))
		gj_fail(failure, GJ_OUT_OF_HOST_MEMORY, "the descriptors of the rings did not arrive");
	else if (ready->load_slot_size != GJ_LOAD_SLOT_SIZE || ready->output_slot_size != GJ_OUTPUT_SLOT_SIZE)
		gj_fail(failure, GJ_ABI_MISMATCH, "slots of %u and %u bytes, not %u and %u",
				ready->load_slot_size, ready->output_slot_size, GJ_LOAD_SLOT_SIZE, GJ_OUTPUT_SLOT_SIZE);
	else
		return gj_ring_map(&connection->load, fds[0], ready->load_slots, ready->load_slot_size, true, failure) &&
			(client->attached ||
			 gj_ring_map(&connection->output, fds[1], ready->output_slots, ready->output_slot_size, false, failure));
	return false;
}

/* Read the answer to SUBMIT or ATTACH.  Sets *nothing if there is none yet. */
static bool
read_ready(GjClient *client, bool *nothing, GjFailure *failure)
{
	GjAnswer	answer;
	int			fds[2];
	GjReceived	received;
	bool		mapped = false;

	*nothing = false;

	/* the two are open for a moment only, and nothing is raised in between */
	ReserveExternalFD();
	ReserveExternalFD();
	received = gj_connection_read(client->connection, &answer, fds, lengthof(fds));
	if (received == GJ_RECEIVED_NOTHING)
		*nothing = true;
	else if (received == GJ_RECEIVED_LOST)
		gj_connection_lost(client->connection, failure);
	else
	{
		if (answer.type == GJ_MSG_READY)
			mapped = map_rings(client, &answer.ready, fds, failure);
		else if (answer.type == GJ_MSG_ERROR)
			gj_failure_from_message(&answer.error, failure);
		else if (answer.type == GJ_MSG_END && client->attached)
			gj_fail(failure, GJ_CANCELLED, "%s", "");
		else
			gj_fail(failure, GJ_DEVICE_LOST, "unexpected message %u", answer.type);
		for (int i = 0; i < lengthof(fds); i++)
		{
			if (fds[i] >= 0)
				close(fds[i]);
		}
	}
	ReleaseExternalFD();
	ReleaseExternalFD();
	return mapped;
}

/* Wait until gpujoind is ready for sources. */
static bool
wait_until_ready(GjClient *client, GjFailure *failure)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), GJ_READY_TIMEOUT);
	bool		nothing;

	while (!read_ready(client, &nothing, failure))
	{
		if (!nothing)
			return false;
		if (!gj_connection_wait(client->connection, deadline))
		{
			gj_fail(failure, GJ_DEVICE_LOST, "no answer within %d ms", GJ_READY_TIMEOUT);
			return false;
		}
	}
	client->free_slots = client->connection->load.nslots == 64 ? ~UINT64CONST(0) :
		(UINT64CONST(1) << client->connection->load.nslots) - 1;
	return true;
}

/* Choose where gpujoind may put temporary files, as if they were ours. */
static void
choose_temp_directory(char *directory, Size size)
{
	char		path[MAXPGPATH];
	Oid			tablespace = InvalidOid;

	/* looks into the catalog */
	if (IsTransactionState())
	{
		PrepareTempTablespaces();
		tablespace = GetNextTempTableSpace();
	}
	TempTablespacePath(path, OidIsValid(tablespace) ? tablespace : MyDatabaseTableSpace);
	if (strlen(path) < size)
		strlcpy(directory, path, size);
}

/* Make the message that the program is behind. */
static GjMsgSubmit
make_submit(const GjProgram *program, const GjStages *stages)
{
	GjMsgSubmit submit = {
		.type = GJ_MSG_SUBMIT,
		.nbytes = program->nbytes,
		.max_devices = gj_devices_per_query,
		.exchange = gj_exchange,
		.keep_exchanged = gj_keep_exchanged,
		.spill_memory = (uint64) gj_spill_memory * 1024 * 1024,
		.temp_limit = temp_file_limit < 0 ? PG_UINT64_MAX : (uint64) temp_file_limit * 1024
	};

	choose_temp_directory(submit.temp_directory, sizeof(submit.temp_directory));
	if (stages != NULL)
	{
		submit.nstages = stages->n;
		memcpy(submit.stages, stages->token, sizeof(submit.stages));
	}
	return submit;
}

/* Send questions. */
static bool
send_ask(GjConnection *connection, const GjQuestions *ask)
{
	GjMsgSlot	question = {
		.type = GJ_MSG_ASK,.slot = ask->whole ? GJ_ASK_WHOLE : 0,.nrows = ask->n
	};

	return gj_connection_send(connection, &question, sizeof(question), ask->bytes, ask->nbytes);
}

/* A program on its way, and who knows the questions that come behind it. */
typedef struct Submission
{
	const GjProgram *program;
	const GjStages *stages;
	GjAskFirst	ask;			/* NULL: there are none */
	void	   *arg;
} Submission;

/* Send the program, and what is asked with it: by the time that is known gpujoind has begun. */
static void
send_submission(GjConnection *connection, void *arg)
{
	const Submission *submission = (const Submission *) arg;
	GjMsgSubmit submit = make_submit(submission->program, submission->stages);
	GjQuestions questions;

	if (gj_connection_send(connection, &submit, sizeof(submit), submission->program,
						   submission->program->nbytes) &&
		submission->ask != NULL && submission->ask(submission->arg, &questions))
		(void) send_ask(connection, &questions);
}

/* Make the client of a connection. */
static GjClient *
client_create(GjConnection *connection)
{
	GjClient   *client = palloc0(sizeof(GjClient));

	client->connection = connection;
	return client;
}

/*
 * That there was no room, or place, for a run, which has waited for it: others of the same statement
 * do not wait again for a while.
 */
#define REFUSED_MS			10000

static GjFailure refusal;
static TimestampTz refused_statement;	/* when it began */
static TimestampTz refused_until;

static void
note_refusal(const GjFailure *failure)
{
	if (failure->reason != GJ_BUSY && failure->reason != GJ_LIMITED)
		return;
	refusal = *failure;
	refusal.counted = false;
	refused_statement = GetCurrentStatementStartTimestamp();
	refused_until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), REFUSED_MS);
}

static bool
was_refused(void)
{
	return refused_until != 0 && refused_statement == GetCurrentStatementStartTimestamp() &&
		GetCurrentTimestamp() < refused_until;
}

/*
 * Submit a program.  Nothing is waited for before all that gpujoind needs was sent: it takes as long to
 * wake up for each message as it takes to answer.  A failure to send shows when reading, perhaps with
 * its reason.
 */
GjClient *
gj_client_submit(const GjProgram *program, const GjStages *stages, GjAskFirst ask, void *arg,
				 GjFailure *failure)
{
	Submission	submission = {program, stages, ask, arg};
	GjClient   *client;
	GjConnection *connection;

	if (program->nbytes > GJ_MAX_PROGRAM_SIZE)
	{
		gj_fail(failure, GJ_TOO_LARGE, "a program of %u bytes", program->nbytes);
		return NULL;
	}
	if (was_refused())
	{
		*failure = refusal;
		return NULL;
	}
	connection = connect_for_run(program, send_submission, &submission, failure);
	if (connection == NULL)
		return NULL;
	client = client_create(connection);
	client->output_capacity = program->output == GJ_OUTPUT_ROWS ? program->output_capacity : 0;
	if (!wait_until_ready(client, failure))
	{
		note_refusal(failure);
		if (failure->reason == GJ_DEVICE_LOST)
			gj_client_forget_device();
		gj_client_close(client);
		pfree(client);
		return NULL;
	}
	client->is_stage = program->stage_capacity > 0;
	/* what other runs have left cannot be saved */
	if (stages == NULL || stages->n == 0)
		client->saver = gj_save_open(program);
	return client;
}

/* Send which run it is that is attached to. */
static void
send_attach(GjConnection *connection, void *arg)
{
	GjMsgAttach attach = {.type = GJ_MSG_ATTACH,.token = *(const GjRunToken *) arg};

	(void) gj_connection_send(connection, &attach, sizeof(attach), NULL, 0);
}

const GjRunToken *
gj_client_token(const GjClient *client)
{
	return &client->token;
}

GjClient *
gj_client_attach(uint32 device_kind, const GjRunToken *token, GjFailure *failure)
{
	GjMsgWelcome welcome;
	GjRunToken	run = *token;
	GjConnection *connection = gj_connection_open(device_kind, send_attach, &run, &welcome,
												  failure);
	GjClient   *client;

	if (connection == NULL)
		return NULL;
	client = client_create(connection);
	client->attached = true;
	if (wait_until_ready(client, failure))
	{
#ifdef MADV_POPULATE_WRITE
		/* all of it will be written: cheaper now than a page at a time */
		(void) madvise(client->connection->load.base, (size_t) client->connection->load.nslots * client->connection->load.slot_size,
					   MADV_POPULATE_WRITE);
#endif
		return client;
	}
	gj_client_close(client);
	pfree(client);
	return NULL;
}

void
gj_client_wait(GjClient *client, int timeout)
{
	if (client->connection != NULL)
		(void) gj_connection_wait(client->connection,
								  TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout));
}

/* Tell gpujoind that nobody will read the result of a stage.  False: it cannot be told at once. */
static bool
release_stage(const GjConnection *connection)
{
	const uint32 release = GJ_MSG_RELEASE;

	return send(connection->fd, &release, sizeof(release), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(release);
}

void
gj_client_close(GjClient *client)
{
	GjConnection *connection = client->connection;

	client->connection = NULL;
	gj_save_close(client->saver);
	if (connection == NULL)
		return;
	if (client->may_keep && (!client->is_stage || release_stage(connection)) && gj_kept_put(connection))
		return;
	gj_connection_close(connection);
}

uint8 *
gj_client_load_slot(GjClient *client, uint32 *slot)
{
	if (client->connection == NULL || client->free_slots == 0)
		return NULL;
	*slot = __builtin_ctzll(client->free_slots);
	return gj_ring_slot(&client->connection->load, *slot);
}

/* Send a message about a slot.  After DONE nobody listens, and that is no failure. */
static bool
send_slot(GjClient *client, uint32 type, uint32 slot, uint32 source, uint32 nrows)
{
	GjMsgSlot	message = {.type = type,.slot = slot,.source = source,.nrows = nrows};

	if (client->connection != NULL && type != GJ_MSG_BATCH_FREE)
		client->connection->look_us = 0;
	if (client->done)
		return true;
	if (client->connection == NULL)
		return false;
	return gj_connection_send(client->connection, &message, sizeof(message), NULL, 0);
}

bool
gj_client_send_chunk(GjClient *client, uint32 slot, uint32 source, uint32 nrows)
{
	if (client->connection != NULL)
		gj_save_chunk(client->saver, gj_ring_slot(&client->connection->load, slot), source, nrows);
	client->free_slots &= ~(UINT64CONST(1) << slot);
	return send_slot(client, GJ_MSG_CHUNK, slot, source, nrows);
}

bool
gj_client_may_ask(void)
{
	return !gj_save_wanted();
}

bool
gj_client_send_ask(GjClient *client, const GjQuestions *ask)
{
	return client->connection != NULL && send_ask(client->connection, ask);
}

bool
gj_client_send_use(GjClient *client, uint32 slot, uint32 source, uint32 n, bool complete)
{
	bool		sent;

	client->free_slots &= ~(UINT64CONST(1) << slot);
	sent = send_slot(client, GJ_MSG_USE, slot, source, n);
	if (client->connection != NULL && complete)
		client->connection->look_us = GJ_RESULT_SPIN_US;
	return sent;
}

/* Say that a source is complete. */
bool
gj_client_end_source(GjClient *client, uint32 source)
{
	gj_save_source_end(client->saver, source);
	return send_slot(client, GJ_MSG_SOURCE_END, 0, source, 0);
}

/* Make the event that says why the run is over. */
static GjEvent
failed(GjClient *client, GjFailure *failure)
{
	GjEvent		event = {.type = GJ_EVENT_FAILED};

	if (failure->reason == GJ_DEVICE_LOST)
		gj_client_forget_device();
	gj_client_close(client);
	return event;
}

/* Make an event of a message. */
static GjEvent
event_from_message(GjClient *client, const GjAnswer *answer, GjFailure *failure)
{
	GjEvent		event = {.type = GJ_EVENT_NONE};
	const GjMsgSlot *slot = &answer->slot;

	switch (answer->type)
	{
		case GJ_MSG_SLOT_FREE:
			if (slot->slot >= client->connection->load.nslots)
				break;
			client->free_slots |= UINT64CONST(1) << slot->slot;
			event.type = GJ_EVENT_SLOT;
			return event;
		case GJ_MSG_END:
			if (!client->attached)
				break;
			client->done = true;
			event.type = GJ_EVENT_DONE;
			return event;
		case GJ_MSG_BATCH:
			if (slot->slot >= client->connection->output.nslots ||
				(client->output_capacity > 0 && slot->nrows > client->output_capacity))
				break;
			event.type = GJ_EVENT_BATCH;
			event.slot = slot->slot;
			event.nrows = slot->nrows;
			return event;
		case GJ_MSG_RESIDENT:
			if (slot->slot >= client->connection->output.nslots)
				break;
			if (slot->nrows == 0)
				client->connection->look_us = GJ_RESULT_SPIN_US;
			event.type = GJ_EVENT_RESIDENT;
			event.slot = slot->slot;
			event.nrows = slot->nrows;
			return event;
		case GJ_MSG_DONE:
			client->stats = answer->done.stats;
			client->may_keep = answer->done.may_keep != 0;
			client->done = true;
			event.type = GJ_EVENT_DONE;
			return event;
		case GJ_MSG_ERROR:
			gj_failure_from_message(&answer->error, failure);
			return failed(client, failure);
	}
	gj_fail(failure, GJ_DEVICE_LOST, "unexpected message %u", answer->type);
	return failed(client, failure);
}

GjEvent
gj_client_next(GjClient *client, bool wait, GjFailure *failure)
{
	GjEvent		none = {.type = GJ_EVENT_NONE};
	GjAnswer	answer;

	if (client->done)
	{
		none.type = GJ_EVENT_DONE;
		return none;
	}
	while (client->connection != NULL)
	{
		switch (gj_connection_read(client->connection, &answer, NULL, 0))
		{
			case GJ_RECEIVED_MESSAGE:
				return event_from_message(client, &answer, failure);
			case GJ_RECEIVED_LOST:
				gj_connection_lost(client->connection, failure);
				return failed(client, failure);
			case GJ_RECEIVED_NOTHING:
				if (!wait)
					return none;
				(void) gj_connection_wait(client->connection, 0);
		}
	}
	gj_fail(failure, GJ_DEVICE_LOST, "the connection was closed");
	return failed(client, failure);
}

bool
gj_client_is_lost(GjClient *client)
{
	GjAnswer	answer;
	GjReceived	received = GJ_RECEIVED_LOST;

	Assert(client->done);
	while (client->connection != NULL &&
		   (received = gj_connection_read(client->connection, &answer, NULL, 0)) == GJ_RECEIVED_MESSAGE)
		;						/* of slots that have become free */
	return received == GJ_RECEIVED_LOST;
}

const uint8 *
gj_client_batch(GjClient *client, uint32 slot)
{
	Assert(client->connection->output.base != NULL && slot < client->connection->output.nslots);
	return gj_ring_slot(&client->connection->output, slot);
}

/* Give a batch back. */
void
gj_client_free_batch(GjClient *client, uint32 slot)
{
	(void) send_slot(client, GJ_MSG_BATCH_FREE, slot, 0, 0);
}

const GjRunStats *
gj_client_stats(const GjClient *client)
{
	return client->done && !client->attached ? &client->stats : NULL;
}
