/*
 * cache_info.c
 *	  What is resident: gpujoin_cache asks gpujoind, the planner reads what gpujoind publishes.
 */
#include "postgres.h"

#include "access/table.h"
#include "miscadmin.h"

#include "client/cache_info.h"
#include "client/connection.h"
#include "client/device_info.h"
#include "client/published.h"
#include "compat.h"
#include "guc.h"

/* Reads the columns that follow a CACHED. */
static bool
read_columns(GjConnection *connection, GjCachedRelation *relation, GjFailure *failure)
{
	GjAnswer	answer;

	/* as many as its bitmap can have */
	if (relation->counts.ncolumns > GJ_CACHED_WORDS * 64)
		return false;
	relation->columns = palloc(sizeof(GjCachedColumn) * (relation->counts.ncolumns + 1));
	for (uint32 c = 0; c < relation->counts.ncolumns; c++)
	{
		if (!gj_connection_expect(connection, GJ_MSG_CACHED_COLUMN, GJ_ANSWER_TIMEOUT, &answer,
								  failure))
			return false;
		relation->columns[c] = answer.cached_column.column;
	}
	return true;
}

bool
gj_cache_read(GjCachedRelation **list, uint32 *n, GjFailure *failure)
{
	uint32		question = GJ_MSG_CACHE;
	uint32		size = 8;
	GjMsgWelcome welcome;
	GjAnswer	answer = {0};
	GjConnection *connection = gj_connection_open(gj_device_kind(), NULL, NULL, &welcome, failure);

	*n = 0;
	*list = NULL;
	if (connection == NULL)
		return false;
	*list = palloc(sizeof(GjCachedRelation) * size);
	(void) gj_connection_send(connection, &question, sizeof(question), NULL, 0);
	while (gj_connection_expect(connection, GJ_MSG_CACHED, GJ_ANSWER_TIMEOUT, &answer, failure))
	{
		if (*n == size)
		{
			size *= 2;
			*list = repalloc_huge(*list, sizeof(GjCachedRelation) * size);
		}
		(*list)[*n].counts = answer.cached.cached;
		if (!read_columns(connection, &(*list)[*n], failure))
			break;
		(*n)++;
	}
	gj_connection_close(connection);
	return answer.type == GJ_MSG_END;
}

double
gj_cache_pages(Oid relid)
{
	GjRelationKey file;
	Relation	rel;

	if (gj_cache_size == 0)
		return 0;
	rel = table_open(relid, NoLock);
	gj_relation_file(rel, &file);
	table_close(rel, NoLock);
	return gj_published_pages(&file, gj_device_kind());
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
