/*
 * share.h
 *	  What exchange.c, ring.c and ranges.c have in common: each shares the build side of a step out.
 */
#ifndef GJ_DAEMON_TEAM_STRATEGY_SHARE_H
#define GJ_DAEMON_TEAM_STRATEGY_SHARE_H

#include "strategy.h"

/* The state of such a strategy begins with this one. */
typedef struct GjShare
{
	GjReplicate replicate;
	uint32_t	step;
	uint32_t	build_side;		/* its source */
	bool		finished;		/* no run reads what is another's; guarded by lock */
} GjShare;

/* Makes the state of so many bytes, and sets the team's strategy.  NULL: out of host memory. */
extern void *gj_share_make(GjTeam *team, const GjStrategyOps *ops, uint32_t step, size_t nbytes);

/* A GjStrategyOps's function: a run that others may read from stays open. */
extern void gj_share_leave(GjWorker *worker);

/* The same, of a source whose rows go to one worker each, so that all get about as many. */
extern GjStatus gj_share_chunk(GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory,
							   uint32_t slot);
extern GjStatus gj_share_use(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses);

/* Ends the worker's run, and counts the bytes that it has received. */
extern GjStatus gj_share_finish_run(GjWorker *worker);

/* A task: does that, and hands the result over. */
extern GjStatus gj_share_end_run(GjWorker *worker, GjTask *task);

/* All workers end their runs by this task: puts the results together.  Runs may be closed then. */
extern GjStatus gj_share_finish(GjTeam *team, GjTaskRun end_run, GjScheme scheme,
								GjRunStats *stats);

#endif							/* GJ_DAEMON_TEAM_STRATEGY_SHARE_H */
