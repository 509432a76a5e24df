/*
 * team.h
 *	  A program on one or several devices, whether or not its data fits them.
 *
 * The calls are those of run/run.h, and one thread makes them, the session's.  On one device
 * where everything fits they go straight to a GjRun.  Otherwise each device has a worker, a
 * thread with a GjRun: build chunks go to all of them, probe chunks to whichever is free, and
 * states of aggregates and sorted rows are merged at the end.  Where the build sides do not fit
 * (strategy/passes.c), rows are kept on the host and the devices run the program once for each
 * part of them.
 *
 * Device workers never call the session's GjRunHost; they send requests to its thread.  So that
 * thread, when it waits for something else, must also watch gj_team_fd and call gj_team_serve.
 */
#ifndef GJ_DAEMON_TEAM_TEAM_H
#define GJ_DAEMON_TEAM_TEAM_H

#include "daemon/source/source.h"

typedef struct GjTeam GjTeam;

typedef struct GjTeamOptions
{
	GjDeviceKind kind;
	GjMemoryLimits limits;		/* on each device, but for quotas */
	uint32_t	max_devices;	/* 0: as many as the run is worth */
	uint32_t	exchange;		/* GjExchangeMode */
	bool		keep_exchanged; /* probe rows may stay where they were brought */
	/* for build sides, groups and sorted rows that do not fit: */
	uint64_t	spill_memory;	/* bytes */
	GjTempFiles temp;
} GjTeamOptions;

/*
 * Chooses devices, waits for leases and opens the runs.  NULL with *status and *why.  The result
 * goes to a final target.  The checked program, host and options->temp must stay until
 * gj_team_close.
 */
extern GjTeam *gj_team_open(const GjProgram *program, const GjTeamOptions *options,
							  const GjRunHost *host, const GjTarget *target, GjStatus *status,
							  GjErrorText *why);

/* The device whose kind the rings have to be registered with. */
extern GjDeviceEntry *gj_team_entry(const GjTeam *team);

/* As gj_run_*.  A slot may be given back long after gj_team_chunk has returned. */
extern bool gj_team_accepts(const GjTeam *team, uint32_t source);
extern GjStatus gj_team_chunk(GjTeam *team, uint32_t source, uint32_t nrows,
							   uint8_t *memory, uint32_t slot);
/* Only a run whose build sides fit uses what is resident. */
extern GjStatus gj_team_ask(GjTeam *team, const uint8_t *memory, const GjAnswers *answers);
extern GjStatus gj_team_use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses);

/* True: the run can read rows that lie on that device there; and reading them. */
extern bool gj_team_reads_rows(const GjTeam *team, const GjKeptRows *rows);
extern GjStatus gj_team_take_rows(GjTeam *team, uint32_t source, const GjKeptRows *rows);

extern GjStatus gj_team_source_end(GjTeam *team, uint32_t source);
extern bool gj_team_complete(const GjTeam *team);
extern GjStatus gj_team_finish(GjTeam *team, GjRunStats *stats);
extern GjStatus gj_team_work(GjTeam *team);
/* Nothing more comes for a while: works on all that has come; one device alone is waited for. */
extern GjStatus gj_team_flush(GjTeam *team);
extern void gj_team_error(GjTeam *team, GjErrorText *why);
extern GjStatus gj_team_close(GjTeam *team, GjErrorText *why);

/* Readable when the threads want something of the host; -1: there are none. */
extern int	gj_team_fd(const GjTeam *team);

/* Does what they want.  Returns the error of the first that failed. */
extern GjStatus gj_team_serve(GjTeam *team);

/* True: no device works on anything: there is nothing to do, or the client is waited for. */
extern bool gj_team_waits(GjTeam *team);

#endif							/* GJ_DAEMON_TEAM_TEAM_H */
