/*
 * server.h
 *	  gpujoind as the launcher starts it: the socket and its connections.
 */
#ifndef GJ_DAEMON_SESSION_SERVER_H
#define GJ_DAEMON_SESSION_SERVER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct GjServerOptions
{
	const char *directory;		/* where socket and lock are */
	int			parent_fd;		/* socket of the launcher, whose EOF ends gpujoind, or -1 */
	int			journal_fd;		/* or -1 */
	bool		blame;			/* the gpujoind before this one crashed */
	uint64_t	incarnation;	/* the only one that sessions may want */
} GjServerOptions;

/* Serves until told to end.  Returns the exit status of the process. */
extern int	gj_serve(const GjServerOptions *options);

#endif							/* GJ_DAEMON_SESSION_SERVER_H */
