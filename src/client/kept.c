/*
 * kept.c
 *	  Connections whose run has ended, for the next runs of this session.
 *
 * A session that waits for its client runs no code of ours.  So a timeout gives back what it keeps:
 * in the signal handler, by system calls alone.  What such a connection has of this process's memory
 * goes when connections are kept or taken the next time.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timeout.h"

#include "client/kept.h"

/* Connections that a session keeps: a query of several stages has as many. */
#define GJ_MOST_KEPT		4

/* For how long. */
#define GJ_KEEP_MS			1000

/* The handler reads these: they change while the timeout is off. */
static GjConnection *kept[GJ_MOST_KEPT];
static int	nkept = 0;

static TimeoutId timer;
static bool has_timer = false;

/* In a signal handler. */
static void
expire(void)
{
	for (int i = 0; i < nkept; i++)
		gj_connection_expire(kept[i]);
}

/* An error has disabled all timeouts. */
static void
at_end_of_transaction(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT && nkept > 0 && !get_timeout_active(timer))
		enable_timeout_after(timer, GJ_KEEP_MS);
}

static void
make_timer(void)
{
	timer = RegisterTimeout(USER_TIMEOUT, expire);
	RegisterXactCallback(at_end_of_transaction, NULL);
	has_timer = true;
}

/* Take connections whose time is over out of the list. */
static void
forget_expired(void)
{
	int			n = 0;

	for (int i = 0; i < nkept; i++)
	{
		if (gj_connection_expired(kept[i]))
			gj_connection_close(kept[i]);
		else
			kept[n++] = kept[i];
	}
	nkept = n;
}

bool
gj_kept_put(GjConnection *connection)
{
	/* others, as parallel workers, end soon; without a postmaster there are no timeouts */
	if (MyBackendType != B_BACKEND || !IsUnderPostmaster || connection->broken || connection->lost)
		return false;
	if (!has_timer)
		make_timer();
	disable_timeout(timer, false);
	forget_expired();
	if (nkept < GJ_MOST_KEPT)
	{
		MemoryContextSetParent(connection->context, TopMemoryContext);
		kept[nkept++] = connection;
		connection = NULL;
	}
	enable_timeout_after(timer, GJ_KEEP_MS);
	return connection == NULL;
}

GjConnection *
gj_kept_take(uint32 kind)
{
	GjConnection *taken = NULL;

	if (nkept == 0)
		return NULL;
	disable_timeout(timer, false);
	forget_expired();
	for (int i = nkept; i-- > 0 && taken == NULL;)
	{
		if (kept[i]->kind != kind)
			continue;
		taken = kept[i];
		memmove(&kept[i], &kept[i + 1], sizeof(kept[0]) * (--nkept - i));
	}
	if (nkept > 0)
		enable_timeout_after(timer, GJ_KEEP_MS);
	if (taken != NULL)
		MemoryContextSetParent(taken->context, CurrentMemoryContext);
	return taken;
}
