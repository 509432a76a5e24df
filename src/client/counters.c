/*
 * counters.c
 *	  Outcomes of programs: those that gpujoind has yet to be told of, and all.
 *
 * gpujoind counts what it sees.  A backend that falls back for a reason of its own
 * notes it here, and tells gpujoind when it is there.
 */
#include "postgres.h"

#include <time.h>

#include "client/connection.h"
#include "client/counters.h"
#include "client/device_info.h"

static GjCounter untold[GJ_NREASONS];

/* Send what gpujoind does not know of yet. */
static void
send_notes(GjConnection *connection)
{
	for (uint32 i = 0; i < GJ_NREASONS; i++)
	{
		GjMsgNote	note = {.type = GJ_MSG_NOTE,.reason = i,.count = untold[i].count};

		if (note.count > 0 && gj_connection_send(connection, &note, sizeof(note), NULL, 0))
			memset(&untold[i], 0, sizeof(untold[i]));
	}
}

/*
 * Tell gpujoind what it does not know of, and ask for all that it knows.  The answer
 * also shows that the notes have arrived.
 */
static bool
exchange(GjMsgCounters *counters, GjFailure *failure)
{
	uint32		question = GJ_MSG_COUNTERS;
	GjMsgWelcome welcome;
	GjAnswer	answer;
	GjConnection *connection = gj_connection_open(gj_device_kind(), NULL, NULL, &welcome, failure);
	bool		answered;

	if (connection == NULL)
		return false;
	send_notes(connection);
	(void) gj_connection_send(connection, &question, sizeof(question), NULL, 0);
	answered = gj_connection_expect(connection, GJ_MSG_COUNTERS, GJ_ANSWER_TIMEOUT, &answer, failure);
	if (answered)
		*counters = answer.counters;
	gj_connection_close(connection);
	return answered;
}

void
gj_counters_tell(void)
{
	GjMsgCounters counters;
	GjFailure	failure;

	for (int i = 0; i < GJ_NREASONS; i++)
	{
		if (untold[i].count > 0)
		{
			(void) exchange(&counters, &failure);
			return;
		}
	}
}

void
gj_client_count(const GjFailure *failure)
{
	if (failure->counted)
		return;
	untold[failure->reason].count++;
	untold[failure->reason].last = time(NULL);
	if (failure->reason != GJ_NO_DAEMON)
		gj_counters_tell();
}

bool
gj_counters_read(GjCounter counters[GJ_NREASONS], GjFailure *failure)
{
	GjMsgCounters all = {0};
	bool		answered = exchange(&all, failure);

	for (int i = 0; i < GJ_NREASONS; i++)
	{
		counters[i].count = all.counter[i].count + untold[i].count;
		counters[i].last = Max(all.counter[i].last, untold[i].last);
	}
	return answered;
}
