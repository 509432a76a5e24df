/*
 * rows.c
 *	  Rows that a run leaves on its device for another one: the result of a stage.
 *
 * Their memory is resident data that is pinned, so it goes only when its owner gives it up.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/*
 * Parts of memory: what one result may have of what its run may, and all results of the device's.
 * Others run there, too.
 */
#define GJ_ROWS_SHARE		8
#define GJ_ALL_ROWS_SHARE	4

/* The lock is held. */
static bool
fit(const GjResident *store, const GjWork *work, uint64_t nbytes)
{
	return nbytes <= work->lease->limit / GJ_ROWS_SHARE &&
		store->rows_bytes + nbytes <= store->memory->limit / GJ_ALL_ROWS_SHARE;
}

bool
gj_rows_fit(GjDeviceEntry *entry, const GjWork *work, uint64_t nbytes)
{
	GjResident *store;
	bool		ok;

	pthread_mutex_lock(&entry->memory.lock);
	store = gj_store_of(&entry->memory);
	ok = store && fit(store, work, nbytes);
	pthread_mutex_unlock(&entry->memory.lock);
	return ok;
}

/* Makes the store the owner of the relation's memory.  The lock is held. */
static bool
take_memory(GjResident *store, GjWork *work, const GjRelation *relation, uint64_t nbytes)
{
	void	   *arrays[2 * GJ_MAX_STAGE_COLUMNS + 1];
	uint32_t	n;

	if (!fit(store, work, nbytes))
		return false;
	n = gj_kept_arrays(relation->columns, relation->ncolumns, &relation->heap, arrays);
	if (work->ops->memory->adopt(store->queue, work->queue, arrays, n) != GJ_OK)
		return false;
	gj_lease_keep(work->lease, nbytes);
	store->rows_bytes += nbytes;
	return true;
}

GjKeptRows *
gj_rows_keep(GjDeviceEntry *entry, GjWork *work, GjRelation *relation)
{
	GjResident *store;
	GjKeptRows *rows = calloc(1, sizeof(GjKeptRows));

	if (!rows)
		return NULL;
	rows->entry = entry;
	rows->nbytes = gj_kept_bytes(relation->columns, relation->ncolumns, &relation->heap);
	pthread_mutex_lock(&entry->memory.lock);
	store = gj_store_of(&entry->memory);
	if (store && take_memory(store, work, relation, rows->nbytes))
		rows->store = store;
	pthread_mutex_unlock(&entry->memory.lock);
	if (!rows->store)
	{
		free(rows);
		return NULL;
	}
	rows->relation = *relation;
	rows->quota = work->lease->quota;
	memset(relation, 0, sizeof(*relation));
	return rows;
}

uint64_t
gj_rows_kept(GjDeviceEntry *entry)
{
	GjResident *store;
	uint64_t	nbytes;

	pthread_mutex_lock(&entry->memory.lock);
	store = gj_store_of(&entry->memory);
	nbytes = store ? store->rows_bytes : 0;
	pthread_mutex_unlock(&entry->memory.lock);
	return nbytes;
}

void
gj_rows_drop(GjKeptRows *rows)
{
	GjResident *store = rows->store;

	pthread_mutex_lock(&store->memory->lock);
	gj_kept_free(store, rows->relation.columns, rows->relation.ncolumns, &rows->relation.heap);
	store->memory->resident -= rows->nbytes;
	store->memory->pinned -= rows->nbytes;
	store->rows_bytes -= rows->nbytes;
	pthread_cond_broadcast(&store->memory->changed);
	pthread_mutex_unlock(&store->memory->lock);
	gj_quota_drop(&rows->quota, rows->nbytes);
	free(rows->relation.columns);
	free(rows);
}
