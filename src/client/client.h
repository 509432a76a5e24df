/*
 * client.h
 *	  The backend's end of a connection to gpujoind.
 *
 * A GjClient is one run of one program.  It lives in the memory context that was
 * current at gj_client_submit(); when that context is reset (end of query, error,
 * cancel) the connection closes, and gpujoind gives back all that the run held.
 *
 * No function raises an error because of the daemon: what goes wrong is a GjStatus,
 * and the caller falls back.  Functions that wait do so on the process latch as well
 * and process interrupts, so cancel, termination and statement_timeout are raised.
 */
#ifndef GJ_CLIENT_H
#define GJ_CLIENT_H

#include "wire/messages.h"

typedef struct GjClient GjClient;

/* Why something was not done: `detail` may be "". */
typedef struct GjFailure
{
	GjStatus	reason;
	bool		counted;		/* gpujoind knows of it: it is in gpujoin_stat */
	bool		timeout;		/* gpujoind is there, but did not answer in time */
	char		detail[240];
} GjFailure;

/* Fills in a failure of this process's own. */
extern void gj_fail(GjFailure *failure, GjStatus reason, const char *format,...) pg_attribute_printf(3, 4);

typedef enum GjEventType
{
	GJ_EVENT_NONE,				/* nothing to read (only without waiting) */
	GJ_EVENT_SLOT,				/* a slot of the load ring has become free */
	GJ_EVENT_BATCH,
	GJ_EVENT_RESIDENT,			/* nrows answers to an ASK, in a slot of the output ring; 0: all is
								 * used that was asked about, and there is no slot */
	GJ_EVENT_DONE,				/* gj_client_stats() is filled in */
	GJ_EVENT_FAILED				/* *failure is filled in; the connection is useless */
} GjEventType;

typedef struct GjEvent
{
	GjEventType type;
	uint32		slot;			/* GJ_EVENT_BATCH, GJ_EVENT_RESIDENT */
	uint32		nrows;
} GjEvent;

/*
 * The device that gpujoin.device asks for, or NULL with the reason.  Asked of
 * gpujoind once per backend and remembered; starts gpujoind if it is not there and
 * this machine could have such a device.  May wait up to 5 s, the first time.
 */
extern const GjDeviceInfo *gj_client_device(GjFailure *failure);

/* Forgets what gj_client_device() remembers (after a lost connection). */
extern void gj_client_forget_device(void);

/* Questions about resident data (wire/resident.h), at least one. */
typedef struct GjQuestions
{
	uint32		n;
	bool		whole;			/* GJ_ASK_WHOLE */
	Size		nbytes;
	const uint8 *bytes;
} GjQuestions;

/* Tells what is asked with a program, each time that one is sent.  False: nothing. */
typedef bool (*GjAskFirst) (void *arg, GjQuestions *questions);

/* Results of other runs, whose clients are open, that a program reads as its stages. */
typedef struct GjStages
{
	uint32		n;
	GjRunToken	token[GJ_MAX_STAGES];
} GjStages;

/*
 * Connects, submits the program and maps the rings.  stages: NULL, or what it reads.  `ask` (NULL:
 * nothing is asked) is called once the program was sent: gpujoind opens the run meanwhile.  NULL
 * with the reason if that fails.  Waits for gpujoind's answer, but not for those to what was asked.
 */
extern GjClient *gj_client_submit(const GjProgram *program, const GjStages *stages,
								  GjAskFirst ask, void *arg, GjFailure *failure);

/* What another process needs to attach to the run. */
extern const GjRunToken *gj_client_token(const GjClient *client);

/*
 * Connects and attaches to a run that another process has submitted, to help it load: a
 * GjClient without an output ring, whose run is done (GJ_EVENT_DONE) when gpujoind wants no
 * more.  NULL with the reason if that fails; GJ_CANCELLED if the run is over.
 */
extern GjClient *gj_client_attach(uint32 device_kind, const GjRunToken *token, GjFailure *failure);

/* Waits until there may be an event, at most some milliseconds. */
extern void gj_client_wait(GjClient *client, int timeout);

/* Address of a free slot of the load ring and its number; NULL if none is free. */
extern uint8 *gj_client_load_slot(GjClient *client, uint32 *slot);

/* Sends the filled slot.  False: the connection is lost. */
extern bool gj_client_send_chunk(GjClient *client, uint32 slot, uint32 source, uint32 nrows);

/*
 * True if sources of runs that are submitted now may be resident: everything must pass through
 * here that is to be saved.
 */
extern bool gj_client_may_ask(void);

/* Asks more; all that was asked before has been answered. */
extern bool gj_client_send_ask(GjClient *client, const GjQuestions *ask);
/*
 * Sends a slot that holds a USE of n fragments (wire/resident.h), those of `source` first.
 * `complete`: nothing is left to be loaded.
 */
extern bool gj_client_send_use(GjClient *client, uint32 slot, uint32 source, uint32 n,
							   bool complete);

extern bool gj_client_end_source(GjClient *client, uint32 source);

/* Next event.  With `wait`, waits for one. */
extern GjEvent gj_client_next(GjClient *client, bool wait, GjFailure *failure);

/* True if gpujoind has ended, after a run that is done: what it has left is gone. */
extern bool gj_client_is_lost(GjClient *client);

/* Address of a slot of the output ring, readable until gj_client_free_batch(). */
extern const uint8 *gj_client_batch(GjClient *client, uint32 slot);
extern void gj_client_free_batch(GjClient *client, uint32 slot);

/* Statistics of the run; NULL before GJ_EVENT_DONE, and for who has attached. */
extern const GjRunStats *gj_client_stats(const GjClient *client);

/* Ends the connection at once.  Does nothing the second time. */
extern void gj_client_close(GjClient *client);

/* Counts a failure for gpujoin_stat, unless gpujoind has done so. */
extern void gj_client_count(const GjFailure *failure);

/*
 * Counts one after which the device's work is done without it.  An error under
 * gpujoin.forbid_fallback, as is gj_client_may_do_without, where none was tried.
 */
extern void gj_client_fall_back(const GjFailure *failure);
extern void gj_client_may_do_without(const GjFailure *failure);

/* Hands the launcher's registration to the postmaster; called by _PG_init. */
extern void gj_launcher_init(void);

#endif							/* GJ_CLIENT_H */
