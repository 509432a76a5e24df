/*
 * launcher.h
 *	  The background worker that keeps gpujoind running.
 */
#ifndef GJ_CLIENT_LAUNCHER_H
#define GJ_CLIENT_LAUNCHER_H

#include "datatype/timestamp.h"

#include "client.h"

/*
 * Makes sure that there is a launcher, if `start`.  False with the reason if there can be none,
 * or if it waits before it starts gpujoind again.  Does not wait for gpujoind.
 */
extern bool gj_launcher_ensure(bool start, GjFailure *failure);

/* The launcher and its gpujoind, as gpujoin_processes shows them. */
typedef struct GjLauncherStatus
{
	int			launcher_pid;	/* 0: there is none, and all else is 0, too */
	TimestampTz launcher_start;
	int			daemon_pid;		/* 0: it does not run */
	TimestampTz daemon_start;	/* of the last one */
	uint32		nstarts;		/* of gpujoind, by this launcher */
	bool		answers;
	int64		restart_ms;		/* until it is started again, if it does not run */
} GjLauncherStatus;

extern void gj_launcher_status(GjLauncherStatus *status);

/* Path of gpujoind's program. */
extern void gj_daemon_path(char path[MAXPGPATH]);

/*
 * The incarnation of the gpujoind that answers, as far as the launcher knows, or 0; and of the last
 * one that was killed because it gave no sign of life.
 */
extern uint64 gj_launcher_incarnation(uint64 *silent);

/* The library is in shared_preload_libraries. */
extern bool gj_launcher_preloaded(void);

#endif							/* GJ_CLIENT_LAUNCHER_H */
