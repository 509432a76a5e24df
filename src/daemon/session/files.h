/*
 * files.h
 *	  Gives up resident data of files that are no more.
 */
#ifndef GJ_DAEMON_SESSION_FILES_H
#define GJ_DAEMON_SESSION_FILES_H

#include <stdbool.h>

/*
 * Starts a thread that looks for the files of what is resident in the current directory, for as long
 * as the process lives.  False: it could not be started, and what is dropped stays until it is evicted.
 */
extern bool gj_files_watch(void);

#endif							/* GJ_DAEMON_SESSION_FILES_H */
