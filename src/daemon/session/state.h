/*
 * state.h
 *	  The state of a connection, shared by session.c, session/run.c and session/resident.c.
 *
 * All of it belongs to the thread of the session.
 */
#ifndef GJ_DAEMON_SESSION_STATE_H
#define GJ_DAEMON_SESSION_STATE_H

#include "journal.h"
#include "stage.h"
#include "daemon/team/team.h"
#include "daemon/base/base.h"

/* What receive() in session.c returns beside types of messages. */
#define GJ_MSG_CLOSED		0
#define GJ_MSG_MALFORMED	UINT32_MAX

/* Messages of a loader that can wait: a chunk a slot, an end a source, an ASK. */
#define GJ_MAX_PENDING		(GJ_LOAD_SLOTS + GJ_MAX_SOURCES + 1)

/*
 * Loading, of the session's own run or of the one that it is attached to.  While it is attached,
 * the thread of the run has this, and the session's `socket` and `closed`.
 */
typedef struct GjSessionLoad
{
	GjSegment  *ring;			/* kept until the peer has closed, also from run to run */
	uint32_t	busy;			/* slots that hold a chunk, one bit each */
	uint32_t	ended;			/* sources whose end has come, one bit each */
	uint32_t	finished;		/* sources whose end was taken out of `pending` */
	uint32_t	npending;		/* messages about sources that have come */
	uint32_t	next_pending;
	GjMsgSlot	pending[GJ_MAX_PENDING];
	bool		attached;		/* guarded by the lock of loaders.c */
} GjSessionLoad;

/* Who loads the session's run: loaders.c. */
typedef struct GjSessionLoaders
{
	struct GjSession *next_run; /* that others can attach to */
	GjRunToken	token;
	int			wake;			/* eventfd: somebody has attached */
	uint32_t	n;
	struct GjSession *session[GJ_MAX_LOADERS];	/* the session itself, then the attached */
} GjSessionLoaders;

/* Sources that read results of stages, and what the session itself leaves as one. */
typedef struct GjSessionStages
{
	GjStageResult *read[GJ_MAX_SOURCES];	/* by source; NULL: it is loaded */
	uint32_t	waiting;		/* sources that have ended for all loaders, but not for the run */
	uint32_t	nhanded[GJ_MAX_SOURCES];	/* chunks that were handed over, */
	uint32_t	nheld;			/* those that the run still reads, */
	uint32_t	nslots;			/* and all, by which they are numbered */
	GjStageResult *result;		/* NULL: batches go to the backend */
	GjErrorText why;			/* it could not take a batch */
} GjSessionStages;

/* A message ASK that is being answered. */
typedef struct GjSessionAsk
{
	uint32_t	nbytes;			/* of it, in the session's `message`; 0: none waits */
	uint8_t    *answers;		/* the slot that is being filled with answers; NULL: none */
	uint32_t	nanswers;
	uint32_t	answer_bytes;
} GjSessionAsk;

/* The end of a successful run. */
typedef struct GjSessionDone
{
	bool		told;			/* DONE was sent */
	bool		kept;			/* it allows the peer to keep the connection */
	struct GjSession *next_closing; /* while it gives back what it held: session/run.c */
} GjSessionDone;

typedef struct GjSession
{
	int			socket;
	bool		closed;			/* the peer has closed the connection */
	uint64_t	looked_us;		/* when that was looked at last */
	GjMsgHello	hello;

	GjSessionLoad load;

	/* a run */
	GjSegment  *output;			/* ring; kept as the other one */
	GjMsgSubmit submit;
	GjTeam	   *run;
	GjQuota    *running;		/* that the run has a place in; NULL: none */
	GjMemoryQuota memory;
	GjJournalMark mark;
	GjSessionDone done;
	uint32_t	nsources;
	GjFailPoint fail_point;
	uint32_t	sources_ended;	/* by all loaders, one bit each */
	GjSessionStages stages;
	uint32_t	output_free;	/* slots that the backend has given back */
	uint32_t	output_slot;	/* the one that is being filled */
	GjSessionAsk ask;
	bool		expected;		/* the backend's next message is, at once */
	uint32_t	next_loader;	/* whose turn it is */

	GjSessionLoaders loaders;

	/* the message received last; during a run: the questions of an ASK */
	size_t		nbytes;
	uint8_t		message[GJ_MAX_PROGRAM_SIZE + sizeof(GjMsgSubmit)] __attribute__((aligned(8)));
} GjSession;

/* True: the peer is gone.  Does not wait. */
extern bool gj_session_stop(void *session);

/* False: the peer is gone. */
extern bool gj_session_send(GjSession *session, const void *message, size_t nbytes);
extern void gj_session_error(GjSession *session, GjStatus reason, const char *detail);

/* Runs the program of the SUBMIT message, up to and including DONE or ERROR. */
extern void gj_session_run(GjSession *session);

/* Whether the peer may keep the connection, and its rings, for a next run. */
extern bool gj_session_may_keep(GjSession *session);

/* Waits until earlier runs of the process have given back what they held. */
extern void gj_session_await_closing(uint32_t pid);

/* ---- reading.c: stages */

/* Slots of chunks of stages are numbered from here on. */
#define GJ_STAGE_SLOTS		(UINT32_C(1) << 28)

/* Finds the results of stages that the program reads. */
extern GjStatus gj_session_find_stages(GjSession *session, const GjProgram *program,
									   GjErrorText *why);
/*
 * Hands chunks of stages to the run, as far as it takes them now, and ends sources that have all of
 * their rows.  *any: something was done.
 */
extern GjStatus gj_session_feed_stages(GjSession *session, bool *any);
/* True if a chunk of a stage waits only for the run to have read others. */
extern bool gj_session_can_feed_stages(const GjSession *session);
/* Where the result of a program goes that is a stage; NULL: out of memory. */
extern const GjFinalOps *gj_session_open_stage(GjSession *session, const GjProgram *program);
/* Gives results of stages back: those that the run, which is over, has read. */
extern void gj_session_end_reading(GjSession *session);
/* The same, and the session's own. */
extern void gj_session_drop_stages(GjSession *session);

/* Gives the rings back; only after the peer has closed. */
extern void gj_session_free_rings(GjSession *session);

/* session/run.c, also as a target's function: a free slot of the output ring, waited for. */
extern GjStatus gj_session_output_slot(void *session, uint8_t **memory);
/* The loader that has it gets a slot of its load ring back, numbered through all loaders. */
extern GjStatus gj_session_slot_free(void *session, uint32_t slot);
/* A loader has ended a source: ends it for the run if nobody else still loads it. */
extern GjStatus gj_session_source_ended(GjSession *session, GjSession *loader, uint32_t source);

/* Answers the questions of the ASK that waits; whole: or uses all of it, if it is there. */
extern GjStatus gj_session_feed_questions(GjSession *session, bool whole);
/* Hands the fragments of a USE, in a slot of loader `which`, to the run. */
extern GjStatus gj_session_feed_uses(GjSession *session, uint32_t which, const GjMsgSlot *message,
									 const uint8_t *memory);

/*
 * Tells the backend its rings, and hands it their descriptors unless it has them (`mapped`); output
 * may be NULL.
 */
extern bool gj_session_ready(int socket, const GjSegment *load, const GjSegment *output,
							 bool mapped, const GjRunToken *token);

#endif							/* GJ_DAEMON_SESSION_STATE_H */
