/*
 * loaders.c
 *	  Connections that load the sources of one run together; see loaders.h.
 *
 * A connection is added to run->loaders.session before it is told that it is a loader.  So when
 * it takes blocks to load, the run already waits for its SOURCE_END.
 */
#define _GNU_SOURCE
#include "loaders.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* `lock` guards the list, and loaders[], nloaders and attached of the sessions in it. */
static struct
{
	pthread_mutex_t lock;
	pthread_cond_t released;
	GjSession  *runs;
}			shared = {.lock = PTHREAD_MUTEX_INITIALIZER,.released = PTHREAD_COND_INITIALIZER};

GjStatus
gj_loaders_open(GjSession *run, GjErrorText *why)
{
	run->loaders.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (run->loaders.wake < 0 ||
		getrandom(run->loaders.token.bytes, sizeof(run->loaders.token.bytes), 0) !=
		sizeof(run->loaders.token.bytes))
	{
		snprintf(why->text, sizeof(why->text), "no descriptor for a run: %s", strerror(errno));
		return GJ_OUT_OF_HOST_MEMORY;
	}
	pthread_mutex_lock(&shared.lock);
	run->loaders.session[0] = run;
	run->loaders.n = 1;
	run->loaders.next_run = shared.runs;
	shared.runs = run;
	pthread_mutex_unlock(&shared.lock);
	return GJ_OK;
}

uint32_t
gj_loaders_count(GjSession *run)
{
	uint32_t	n;

	pthread_mutex_lock(&shared.lock);
	n = run->loaders.n;
	pthread_mutex_unlock(&shared.lock);
	return n;
}

void
gj_loaders_close(GjSession *run)
{
	const uint32_t end = GJ_MSG_END;
	GjSession **link;

	pthread_mutex_lock(&shared.lock);
	for (link = &shared.runs; *link && *link != run; link = &(*link)->loaders.next_run)
		;
	if (*link)
		*link = run->loaders.next_run;
	pthread_mutex_unlock(&shared.lock);
	if (run->loaders.wake >= 0)
		close(run->loaders.wake);
	run->loaders.wake = -1;
	/* whoever has gone already is not missed */
	for (uint32_t i = 1; i < run->loaders.n; i++)
		(void) !send(run->loaders.session[i]->socket, &end, sizeof(end),
					 MSG_NOSIGNAL | MSG_DONTWAIT);
}

void
gj_loaders_release(GjSession *run)
{
	pthread_mutex_lock(&shared.lock);
	for (uint32_t i = 1; i < run->loaders.n; i++)
		run->loaders.session[i]->load.attached = false;
	run->loaders.n = 0;
	pthread_cond_broadcast(&shared.released);
	pthread_mutex_unlock(&shared.lock);
}

/* The run of that token, or NULL.  The lock is held. */
static GjSession *
find_run(const GjRunToken *token)
{
	GjSession  *run = shared.runs;

	while (run && memcmp(&run->loaders.token, token, sizeof(*token)) != 0)
		run = run->loaders.next_run;
	return run;
}

/* The device whose rings the run uses; NULL if it is over. */
static GjDeviceEntry *
find_device(const GjRunToken *token)
{
	GjSession  *run;
	GjDeviceEntry *entry;

	pthread_mutex_lock(&shared.lock);
	run = find_run(token);
	entry = run ? gj_team_entry(run->run) : NULL;
	pthread_mutex_unlock(&shared.lock);
	return entry;
}

/* Adds the session to the run's loaders; false if there is none, or no place. */
static bool
join(GjSession *session, const GjRunToken *token)
{
	const uint64_t one = 1;
	GjSession  *run;
	bool		joined;

	pthread_mutex_lock(&shared.lock);
	run = find_run(token);
	joined = run && run->loaders.n < GJ_MAX_LOADERS;
	if (joined)
	{
		session->load.attached = true;
		run->loaders.session[run->loaders.n++] = session;
		/* it is open, for the run is in the list */
		(void) !write(run->loaders.wake, &one, sizeof(one));
	}
	pthread_mutex_unlock(&shared.lock);
	return joined;
}

void
gj_loaders_attach(GjSession *session)
{
	GjMsgAttach attach;
	GjDeviceEntry *entry;
	GjErrorText why = {""};
	GjStatus	status;

	memcpy(&attach, session->message, sizeof(attach));
	entry = find_device(&attach.token);
	/* who has rings of a run of its own helps nobody */
	status = entry && !session->load.ring ?
		gj_segment_get(entry, GJ_LOAD_SLOTS * (size_t) GJ_LOAD_SLOT_SIZE, &session->load.ring, &why) :
		GJ_CANCELLED;
	if (status == GJ_OK && !join(session, &attach.token))
		status = GJ_CANCELLED;
	if (status != GJ_OK)
	{
		gj_session_error(session, status, why.text);
		return;
	}
	/* if it cannot be told, the run will find the connection closed */
	(void) gj_session_ready(session->socket, session->load.ring, NULL, false, &attach.token);
	pthread_mutex_lock(&shared.lock);
	while (session->load.attached)
		pthread_cond_wait(&shared.released, &shared.lock);
	pthread_mutex_unlock(&shared.lock);
}
