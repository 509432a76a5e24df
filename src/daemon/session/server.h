/*
 * server.h
 *	  gpujoind as the launcher starts it: the socket and its connections.
 */
#ifndef GJ_DAEMON_SESSION_SERVER_H
#define GJ_DAEMON_SESSION_SERVER_H

#include <stdbool.h>

typedef struct GjServerOptions
{
	const char *directory;		/* where socket and lock are */
	int			parent_fd;		/* pipe whose EOF ends gpujoind, or -1 */
	int			journal_fd;		/* or -1 */
	bool		blame;			/* the gpujoind before this one crashed */
} GjServerOptions;

/* Serves until told to end.  Returns the exit status of the process. */
extern int	gj_serve(const GjServerOptions *options);

#endif							/* GJ_DAEMON_SESSION_SERVER_H */
