/*
 * run_file.h
 *	  gpujoind --run: a saved program on saved chunks, without PostgreSQL.
 */
#ifndef GJ_DAEMON_SESSION_RUN_FILE_H
#define GJ_DAEMON_SESSION_RUN_FILE_H

#include "device/device.h"

/*
 * Runs the program in a file (wire/saved.h) `repeat` times and prints what came out
 * and how long it took.  Returns the exit status of the process.
 */
extern int	gj_run_file(const char *path, GjDeviceKind kind, int repeat);

#endif							/* GJ_DAEMON_SESSION_RUN_FILE_H */
