/*
 * connection.h
 *	  One connection of a backend to gpujoind: open, send, receive.
 *
 * A connection lives in a memory context of its own, a child of the one that was
 * current when it was opened, or taken (kept.h).  Deleting that context closes it, and unmaps
 * its rings, so an error or a cancel closes it at once.  Messages are read and written without
 * blocking; functions that wait process interrupts.
 */
#ifndef GJ_CLIENT_CONNECTION_H
#define GJ_CLIENT_CONNECTION_H

#include "datatype/timestamp.h"
#include "storage/latch.h"
#include "utils/palloc.h"

#include "client.h"
#include "client/ring.h"

/* Milliseconds that gpujoind has for its answer to a question. */
#define GJ_ANSWER_TIMEOUT	5000

typedef struct GjConnection
{
	MemoryContext context;		/* owns this struct and what the connection needs */
	MemoryContextCallback closer;
	WaitEventSet *waits;		/* latch, postmaster, socket; NULL: nothing was waited for */
	int			fd;				/* -1: it has none; or GJ_EXPIRED_FD */
	uint32		kind;			/* of devices that were asked for: GjDeviceKind */
	GjRing		load;			/* of its runs */
	GjRing		output;
	uint32		look_us;		/* so soon what comes next is expected; 0: it may take longer */
	bool		broken;			/* nothing can be sent any more; reading may still
								 * bring the reason */
	bool		lost;			/* gpujoind has ended, or might as well: nothing is read */
	uint64		incarnation;	/* of gpujoind */
} GjConnection;

#define GJ_EXPIRED_FD		(-2)	/* it is closed, but counts among PostgreSQL's */

/* Any message that gpujoind sends. */
typedef union GjAnswer
{
	uint32		type;
	GjMsgWelcome welcome;
	GjMsgDevice device;
	GjMsgCached cached;
	GjMsgCachedColumn cached_column;
	GjMsgEvicted evicted;
	GjMsgReady	ready;
	GjMsgSlot	slot;
	GjMsgDone	done;
	GjMsgError	error;
} GjAnswer;

/* What gj_connection_read() found. */
typedef enum GjReceived
{
	GJ_RECEIVED_MESSAGE,
	GJ_RECEIVED_NOTHING,		/* timeout, or nothing there without waiting */
	GJ_RECEIVED_LOST			/* the connection has ended */
} GjReceived;

/* Sends what comes right behind the hello, in as many messages as it likes. */
typedef void (*GjSendFirst) (GjConnection *connection, void *arg);

/*
 * Connects and says hello.  NULL with the reason if that fails: GJ_NO_DAEMON if
 * there is nobody to talk to (now), which is worth trying again unless it was a timeout.
 * `send` (NULL: nothing) is called without waiting for the welcome.
 */
extern GjConnection *gj_connection_open(uint32 kind, GjSendFirst send, void *arg,
										GjMsgWelcome *welcome, GjFailure *failure);

/* The same with one that a run was done with, which goes if this fails. */
extern GjConnection *gj_connection_again(GjConnection *connection, GjSendFirst send, void *arg,
										 GjMsgWelcome *welcome, GjFailure *failure);

/* The gpujoind that there is; 0: none, or it has not answered of late. */
extern uint64 gj_connection_incarnation(void);

/* Ends the connection at once and frees it. */
extern void gj_connection_close(GjConnection *connection);

/* Ends it, rings too, by system calls alone: gj_connection_close is still needed. */
extern void gj_connection_expire(GjConnection *connection);
#define gj_connection_expired(connection) ((connection)->fd == GJ_EXPIRED_FD)

/* Sends one message.  False: it is broken. */
extern bool gj_connection_send(GjConnection *connection, const void *head, size_t head_size,
							   const void *body, size_t body_size);

/*
 * Waits until there is something to read, at most until `deadline` (0: for ever).
 * False at the deadline.
 */
extern bool gj_connection_wait(GjConnection *connection, TimestampTz deadline);

/*
 * Reads a message without waiting.  fds[nfds] receives descriptors that came with
 * it, or -1; they are the caller's.
 */
extern GjReceived gj_connection_read(GjConnection *connection, GjAnswer *answer, int *fds, int nfds);

/*
 * Waits for a message of `type`, at most `timeout` ms.  False with the reason if an
 * error message or anything else comes.
 */
extern bool gj_connection_expect(GjConnection *connection, uint32 type, int timeout,
								 GjAnswer *answer, GjFailure *failure);

/* Says why the connection has ended, if nothing else does. */
extern void gj_connection_lost(const GjConnection *connection, GjFailure *failure);

/* Takes the reason out of a GJ_MSG_ERROR. */
extern void gj_failure_from_message(const GjMsgError *error, GjFailure *failure);

#endif							/* GJ_CLIENT_CONNECTION_H */
