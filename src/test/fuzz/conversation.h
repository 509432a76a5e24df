/*
 * conversation.h
 *	  The client's side of the protocol of wire/messages.h, for those who break it.
 */
#ifndef GJ_TEST_CONVERSATION_H
#define GJ_TEST_CONVERSATION_H

#include "fuzz.h"

/* A connection, and what belongs to the run on it. */
typedef struct Peer
{
	FuzzRandom *random;
	int			socket;			/* -1: closed */
	uint8_t    *load;			/* rings, or NULL */
	uint8_t    *output;
	GjRunToken	token;
	uint32_t	busy;			/* load slots, a bit each */
	uint64_t	ids[64];		/* of fragments that gpujoind has told of */
	uint32_t	nids;
	uint32_t	last;			/* type of the message that came last, */
	uint32_t	reason;			/* and of an error */
	uint64_t	result;			/* count of the first state of the last batch */
	bool		nonsense;		/* something was sent that is none, or not sent */
	bool		over;			/* DONE, ERROR or END has come */
} Peer;

/* Of all messages but SUBMIT: what a good client says. */
extern GjMsgHello peer_hello(void);

/* False: gpujoind does not listen. */
extern bool peer_connect(Peer *peer, FuzzRandom *random);
extern void peer_close(Peer *peer);

/* After DONE: the next HELLO may be said.  False: the connection is of no more use. */
extern bool peer_begin_anew(Peer *peer);

/* Sends a message as it is; does not wait for long. */
extern void peer_send(Peer *peer, const void *message, size_t nbytes);

/* Takes one message that comes within so many milliseconds, and does what it says.  False: none. */
extern bool peer_receive(Peer *peer, int ms);

/* Receives until a message of this type has come, or the connection is over, or the time is. */
extern bool peer_await(Peer *peer, uint32_t type, int ms);

#endif							/* GJ_TEST_CONVERSATION_H */
