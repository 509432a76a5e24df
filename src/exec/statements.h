/*
 * statements.h
 *	  What devices did for each statement, for gpujoin_stat_statements.
 */
#ifndef GJ_STATEMENTS_H
#define GJ_STATEMENTS_H

#include "wire/messages.h"

/* What the runs of a node did. */
typedef struct GjStatementUse
{
	double		device_ms;		/* all phases of devices but waiting */
	double		wait_ms;		/* the session's, for gpujoind */
	double		load_ms;		/* reading tables and child plans, all processes */
	uint64_t	bytes_in;
	uint64_t	bytes_out;
	uint64_t	fallbacks;
} GjStatementUse;

/* Adds the times and bytes that gpujoind tells of runs. */
extern void gj_statement_use_stats(GjStatementUse *use, const GjRunStats *stats);

/* A node of the statement whose execution ends now has used a device, or wanted to. */
extern void gj_statement_note(const GjStatementUse *use);

/* Sets hooks; called by _PG_init.  Without shared_preload_libraries nothing is counted. */
extern void gj_statements_init(void);

#endif							/* GJ_STATEMENTS_H */
