/*
 * run_file.h
 *	  gpujoind --run: a saved program on saved chunks, without PostgreSQL.
 */
#ifndef GJ_DAEMON_SESSION_RUN_FILE_H
#define GJ_DAEMON_SESSION_RUN_FILE_H

#include "daemon/team/team.h"

typedef struct GjRunFileOptions
{
	int			repeat;
	const char *result;			/* directory for results (run_result.h), or NULL: print a summary */
	bool		spill;			/* as if something had not fitted the device before */
	GjTeamOptions team;
} GjRunFileOptions;

/*
 * Runs the program in each file (wire/saved.h) `repeat` times and prints what came out
 * and how long it took, or writes the result of each to a file of its own.  Returns the
 * exit status of the process.
 */
extern int	gj_run_files(char **paths, int npaths, const GjRunFileOptions *options);

#endif							/* GJ_DAEMON_SESSION_RUN_FILE_H */
