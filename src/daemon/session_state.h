/*
 * session_state.h
 *	  The state of a connection, shared by session.c and session_run.c.
 *
 * All of it belongs to the thread of the session.
 */
#ifndef GJ_DAEMON_SESSION_STATE_H
#define GJ_DAEMON_SESSION_STATE_H

#include "executor.h"
#include "journal.h"
#include "segment.h"

/* What gj_session_receive returns beside types of messages. */
#define GJ_MSG_CLOSED		0
#define GJ_MSG_MALFORMED	UINT32_MAX

/* Messages that can wait: a chunk a slot, an end a source. */
#define GJ_MAX_PENDING		(GJ_LOAD_SLOTS + GJ_MAX_SOURCES)

typedef struct GjSession
{
	int			socket;
	bool		closed;			/* the peer has closed the connection */
	GjMsgHello	hello;

	/* a run */
	GjDeviceEntry *entry;
	GjSegment  *load;			/* rings; kept until the peer has closed */
	GjSegment  *output;
	GjLease		lease;
	GjRun	   *run;
	GjJournalMark mark;
	uint32_t	load_busy;		/* slots that hold a chunk, one bit each */
	uint32_t	ended;			/* sources whose end has come, one bit each */
	uint32_t	output_free;	/* slots that the backend has given back */
	uint32_t	output_slot;	/* the one that is being filled */
	uint32_t	npending;		/* CHUNK and SOURCE_END that came while waiting for a slot */
	uint32_t	next_pending;
	GjMsgSlot	pending[GJ_MAX_PENDING];

	/* the message received last */
	size_t		nbytes;
	uint8_t		message[GJ_MAX_PROGRAM_SIZE + 64] __attribute__((aligned(8)));
} GjSession;

/* True: the peer is gone.  Does not wait. */
extern bool gj_session_stop(void *session);

/* False: the peer is gone. */
extern bool gj_session_send(GjSession *session, const void *message, size_t nbytes);
extern void gj_session_error(GjSession *session, GjStatus reason, const char *detail);

/* Type of the next message, which is then in session->message.  Waits. */
extern uint32_t gj_session_receive(GjSession *session);

/* Runs the program of the SUBMIT message, up to and including DONE or ERROR. */
extern void gj_session_run(GjSession *session);

/* Gives the rings back; only after the peer has closed. */
extern void gj_session_free_rings(GjSession *session);

#endif							/* GJ_DAEMON_SESSION_STATE_H */
