/*
 * cache_info.c
 *	  Asks gpujoind what is resident, for gpujoin_cache and for the planner.
 *
 * The planner asks often and needs no exact answer: it gets one that is remembered for a
 * second.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "client/cache_info.h"
#include "client/connection.h"
#include "client/device_info.h"
#include "guc.h"

#define GJ_REMEMBER_CACHE	1000	/* ms */

/* What was resident when it was last asked about. */
static struct
{
	GjCached   *list;			/* in TopMemoryContext */
	uint32		n;
	TimestampTz ask_again;
}			remembered;

bool
gj_cache_read(GjCached **list, uint32 *n, GjFailure *failure)
{
	uint32		question = GJ_MSG_CACHE;
	uint32		size = 8;
	GjMsgWelcome welcome;
	GjAnswer	answer;
	GjConnection *connection = gj_connection_open(gj_device_kind(), NULL, NULL, &welcome, failure);

	*n = 0;
	*list = NULL;
	if (connection == NULL)
		return false;
	*list = palloc(sizeof(GjCached) * size);
	(void) gj_connection_send(connection, &question, sizeof(question), NULL, 0);
	while (gj_connection_expect(connection, GJ_MSG_CACHED, GJ_ANSWER_TIMEOUT, &answer, failure))
	{
		if (*n == size)
		{
			size *= 2;
			*list = repalloc_huge(*list, sizeof(GjCached) * size);
		}
		(*list)[(*n)++] = answer.cached.cached;
	}
	gj_connection_close(connection);
	return answer.type == GJ_MSG_END;
}

/* Ask what is resident, and remember the answer. */
static void
ask_again(void)
{
	GjCached   *list;
	uint32		n;
	GjFailure	failure;

	(void) gj_cache_read(&list, &n, &failure);
	if (remembered.list != NULL)
		pfree(remembered.list);
	remembered.list = NULL;
	remembered.n = 0;
	if (n > 0)
	{
		remembered.list = MemoryContextAllocHuge(TopMemoryContext, sizeof(GjCached) * n);
		memcpy(remembered.list, list, sizeof(GjCached) * n);
		remembered.n = n;
	}
	remembered.ask_again = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), GJ_REMEMBER_CACHE);
}

double
gj_cache_pages(Oid relid)
{
	double		npages = 0;

	if (gj_cache_size == 0)
		return 0;
	if (GetCurrentTimestamp() >= remembered.ask_again)
		ask_again();
	for (uint32 i = 0; i < remembered.n; i++)
	{
		const GjCached *cached = &remembered.list[i];

		if (cached->relation.database == MyDatabaseId && cached->relation.relation == relid &&
			cached->device == gj_device_kind())
			npages = Max(npages, cached->npages);
	}
	return npages;
}

bool
gj_cache_evict(Oid relid, uint64 *nbytes, GjFailure *failure)
{
	GjMsgEvict	question = {.type = GJ_MSG_EVICT,.relation = relid};
	GjMsgWelcome welcome;
	GjAnswer	answer;
	GjConnection *connection = gj_connection_open(gj_device_kind(), NULL, NULL, &welcome, failure);
	bool		answered;

	*nbytes = 0;
	if (connection == NULL)
		return false;
	if (OidIsValid(relid))
		question.database = MyDatabaseId;
	(void) gj_connection_send(connection, &question, sizeof(question), NULL, 0);
	answered = gj_connection_expect(connection, GJ_MSG_EVICTED, GJ_ANSWER_TIMEOUT, &answer, failure);
	if (answered)
		*nbytes = answer.evicted.nbytes;
	gj_connection_close(connection);
	return answered;
}
