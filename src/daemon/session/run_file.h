/*
 * run_file.h
 *	  Saved programs on saved chunks (wire/saved.h), without PostgreSQL.
 */
#ifndef GJ_DAEMON_SESSION_RUN_FILE_H
#define GJ_DAEMON_SESSION_RUN_FILE_H

#include "daemon/team/team.h"

typedef struct GjSavedFile GjSavedFile;

/* Takes a batch of a run's result; the states of aggregates are one. */
typedef GjStatus (*GjTakeBatch) (void *arg, const uint8_t *slot, uint32_t nrows);

/* Reads a file and checks its program.  NULL: the log says why. */
extern GjSavedFile *gj_saved_open(const char *path);
extern void gj_saved_close(GjSavedFile *file);
extern GjProgram *gj_saved_program(GjSavedFile *file);

extern GjStatus gj_saved_run(GjSavedFile *file, const GjTeamOptions *options, GjTakeBatch take,
							 void *arg, GjRunStats *stats, GjErrorText *why);

/*
 * gpujoind --run: runs the program in each file `repeat` times and prints what came out and how
 * long it took.  Returns the exit status of the process.
 */
extern int	gj_run_files(char **paths, int npaths, const GjTeamOptions *options, int repeat);

#endif							/* GJ_DAEMON_SESSION_RUN_FILE_H */
