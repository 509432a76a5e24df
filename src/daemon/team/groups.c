/*
 * groups.c
 *	  Puts the partial groups of a team's runs together.  They are kept on the host until all runs
 *	  have ended.
 *
 * If there are too many for one device, or enough to keep all devices busy, they are split by a
 * hash of their keys, so that equal groups are in one share.  A run for each share puts its
 * groups together and sends them.  A share that proves too large before any of it was sent is
 * split again.  If groups are returned in an order, each share makes a sorted run, and these are
 * merged (team/sorted.c).
 *
 * If the program has a distinct key, this happens twice: first with the distinct key, which
 * leaves each of its values once in each group; then without it, which adds up what different
 * shares have found.
 */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/group.h"
#include "daemon/sink/sink.h"

/* Shares at first, and of a share that is split again; both powers of two. */
#define GJ_MAX_SHARES		1024
#define GJ_SHARES_AGAIN		4
/* Bits of the hash that the first split uses, and how often a share may be split again. */
#define GJ_FIRST_BITS		10
#define GJ_MAX_SPLITS		20

/* Groups that are worth another device. */
#define GJ_GROUPS_A_DEVICE	65536

/* Groups whose keys have the same bits of their hash. */
typedef struct GjGroupShare
{
	struct GjGroupShare *next;
	GjSpillList list;
	uint32_t	nsplits;
} GjGroupShare;

struct GjTeamGroups
{
	GjTeam	   *team;
	uint32_t	nkeys;
	GjTeamGroups *next;			/* what is put together here goes there; NULL: out */
	GjPartLayout part;
	pthread_mutex_t lock;		/* guards all that follows */
	GjSpill    *spill;			/* the team's */
	GjSpillWriter writer;
	GjSpillList all;			/* until they are split */
	GjGroupShare *shares;			/* to be put together */
	bool		several;		/* there are, or were, more than one */
	uint8_t    *slot;			/* of who splits: records, and where they go */
	uint32_t   *positions;
	uint32_t   *share_of;
};

/* ---- open and close */

GjTeamGroups *
gj_team_groups_open(GjTeam *team, uint32_t nkeys, GjTeamGroups *next, GjErrorText *why)
{
	GjTeamGroups *groups = calloc(1, sizeof(GjTeamGroups));
	uint32_t	capacity;

	if (!groups)
		return NULL;
	groups->team = team;
	groups->nkeys = nkeys;
	groups->next = next;
	pthread_mutex_init(&groups->lock, NULL);
	groups->spill = &team->store;
	gj_spill_writer_open(&groups->writer, groups->spill);
	if (!gj_part_layout(team->program, nkeys, &groups->part))
		snprintf(why->text, sizeof(why->text), "a group does not fit a slot");
	else
	{
		capacity = groups->part.layout.capacity;
		groups->slot = malloc(GJ_OUTPUT_SLOT_SIZE);
		groups->positions = malloc(capacity * sizeof(uint32_t));
		groups->share_of = malloc(capacity * sizeof(uint32_t));
		if (groups->slot && groups->positions && groups->share_of)
			return groups;
	}
	gj_team_groups_close(groups);
	return NULL;
}

static void
free_share(GjTeamGroups *groups, GjGroupShare *share)
{
	gj_spill_free_list(groups->spill, &share->list);
	free(share);
}

void
gj_team_groups_close(GjTeamGroups *groups)
{
	gj_spill_free_list(groups->spill, &groups->all);
	while (groups->shares)
	{
		GjGroupShare *next = groups->shares->next;

		free_share(groups, groups->shares);
		groups->shares = next;
	}
	gj_spill_writer_close(&groups->writer);
	pthread_mutex_destroy(&groups->lock);
	free(groups->slot);
	free(groups->positions);
	free(groups->share_of);
	free(groups);
}

/* ---- parts come in */

/* What is in a slot, as a chunk; has_nulls[] is all zero. */
static GjChunk
chunk_of(const GjTeamGroups *groups, const uint8_t *slot, const uint8_t *has_nulls)
{
	GjSlotHeader header;

	memcpy(&header, slot, sizeof(header));
	return (GjChunk) {slot, header.nrows, header.heap_used, &groups->part.layout,
		groups->part.places, has_nulls};
}

/* Keeps some rows of a chunk, NULL: all.  The lock is held. */
static GjStatus
keep(GjTeamGroups *groups, GjSpillList *list, const GjChunk *chunk, const uint32_t *positions,
	 uint32_t first, uint32_t n)
{
	GjStatus	status = gj_spill_add(&groups->writer, list, chunk, groups->part.types, positions,
									  first, n);

	return status == GJ_OK ? GJ_OK : gj_team_store_fails(groups->team, status);
}

GjStatus
gj_team_groups_keep(GjTeamGroups *groups, const uint8_t *slot)
{
	const uint8_t has_nulls[GJ_PART_COLUMNS] = {0};
	GjChunk		chunk = chunk_of(groups, slot, has_nulls);
	GjStatus	status;

	pthread_mutex_lock(&groups->lock);
	status = keep(groups, &groups->all, &chunk, NULL, 0, chunk.nrows);
	pthread_mutex_unlock(&groups->lock);
	return status;
}

/* ---- shares */

/* The share, of nshares, of each row of a chunk, by the hash's bits from `shift` on. */
static GjStatus
find_shares(GjTeamGroups *groups, const GjChunk *chunk, uint32_t nshares, uint32_t shift)
{
	const GjProgram *p = groups->team->program;
	const GjGroupKey *keys = gj_program_array(p, GjGroupKey, group_keys);
	uint8_t    *slot = (uint8_t *) chunk->slot;
	const uint32_t *null = (const uint32_t *) (slot + groups->part.places[0].data);
	GjGroupRows rows = {.nkeys = groups->nkeys,.nrows = chunk->nrows,
		.ndependent = p->ndependent_keys};
	uint32_t	status = GJ_OK;

	for (uint32_t k = 0; k < rows.nkeys; k++)
	{
		rows.how[k] = (uint8_t) keys[k].how;
		rows.value[k] = (int64_t *) (slot + groups->part.places[1 + k].data);
		rows.heap[k] = slot + groups->part.layout.heap;
	}
	for (uint32_t i = 0; i < chunk->nrows; i++)
	{
		uint64_t	hash = 0;

		for (uint32_t k = 0; k < rows.nkeys; k++)
			hash = gj_group_hash(&rows, k, i, null[i] >> k & 1, hash, &status);
		/* mixed once more: the devices' tables use the same hash */
		groups->share_of[i] = (uint32_t) (gj_hash_mix(~hash) >> shift) & (nshares - 1);
	}
	return (GjStatus) status;
}

/* Distributes the rows of a chunk.  The lock is held. */
static GjStatus
split_chunk(GjTeamGroups *groups, const GjChunk *chunk, GjGroupShare **shares, uint32_t nshares,
			uint32_t shift)
{
	uint32_t	start[GJ_MAX_SHARES + 2];

	GJ_TRY(find_shares(groups, chunk, nshares, shift));
	memset(start, 0, (nshares + 2) * sizeof(uint32_t));
	for (uint32_t i = 0; i < chunk->nrows; i++)
		start[groups->share_of[i] + 2]++;
	for (uint32_t s = 0; s < nshares; s++)
		start[s + 2] += start[s + 1];
	for (uint32_t i = 0; i < chunk->nrows; i++)
		groups->positions[start[groups->share_of[i] + 1]++] = i;
	for (uint32_t s = 0; s < nshares; s++)
		GJ_TRY(keep(groups, &shares[s]->list, chunk, groups->positions, start[s],
					start[s + 1] - start[s]));
	return GJ_OK;
}

/* Empties a list into shares; gives the memory of each record back at once.  The lock is held. */
static GjStatus
split_list(GjTeamGroups *groups, GjSpillList *list, GjGroupShare **shares, uint32_t nshares,
		   uint32_t shift)
{
	const uint8_t has_nulls[GJ_PART_COLUMNS] = {0};
	GjSpillSlot slot = {groups->slot, groups->part.types, groups->part.places,
	&groups->part.layout};
	GjStatus	status = GJ_OK;

	for (uint32_t r = 0, n; r < list->n && status == GJ_OK; r += n)
	{
		GjChunk		chunk;

		n = 0;
		if (__atomic_load_n(&groups->team->signals.stop, __ATOMIC_RELAXED))
			status = GJ_CANCELLED;
		else
			status = gj_spill_fill(list->records + r, list->n - r, &slot, &n);
		for (uint32_t i = 0; i < n && status == GJ_OK; i++)
			gj_spill_drop(groups->spill, &list->records[r + i]);
		if (status == GJ_OK)
		{
			chunk = chunk_of(groups, groups->slot, has_nulls);
			status = split_chunk(groups, &chunk, shares, nshares, shift);
		}
	}
	gj_spill_free_list(groups->spill, list);
	return status;
}

/* Makes shares of a list, which becomes empty.  The lock is held. */
static GjStatus
make_shares(GjTeamGroups *groups, GjSpillList *list, uint32_t nshares, uint32_t nsplits)
{
	uint32_t	shift = nsplits == 0 ? 0 : GJ_FIRST_BITS + 2 * (nsplits - 1);
	GjGroupShare *shares[GJ_MAX_SHARES];
	GjStatus	status = GJ_OK;

	groups->several |= nshares > 1;
	for (uint32_t s = 0; s < nshares; s++)
	{
		shares[s] = calloc(1, sizeof(GjGroupShare));
		if (!shares[s])
			nshares = s, status = GJ_OUT_OF_HOST_MEMORY;
		else
			shares[s]->nsplits = nsplits;
	}
	if (status == GJ_OK && nshares == 1)
	{
		shares[0]->list = *list;
		memset(list, 0, sizeof(*list));
	}
	else if (status == GJ_OK)
		status = split_list(groups, list, shares, nshares, shift);
	for (uint32_t s = 0; s < nshares; s++)
	{
		/* one without rows has nothing to send, but for the one group that there always is */
		if (status == GJ_OK && (shares[s]->list.n > 0 || (groups->nkeys == 0 && !groups->next)))
		{
			shares[s]->next = groups->shares;
			groups->shares = shares[s];
		}
		else
			free_share(groups, shares[s]);
	}
	return status;
}

/* Bytes that it takes to put groups together: buffers grow by doubling. */
static uint64_t
need_of(const GjTeamGroups *groups, uint64_t nrows, uint64_t heap)
{
	uint64_t	a_row = 12 + 8 * groups->nkeys +
		sizeof(GjAggState) * groups->team->program->naggregates;

	return (nrows * (2 * a_row + 32) + 2 * heap) * (groups->next ? 2 : 1);
}

/* True if there can be several shares. */
static bool
can_split(const GjTeamGroups *groups)
{
	return groups->nkeys > 0;
}

GjStatus
gj_team_groups_share(GjTeamGroups *groups)
{
	GjTeam	   *team = groups->team;
	const GjSpillList *all = &groups->all;
	uint64_t	need = need_of(groups, all->nrows, all->heap_used);
	uint64_t	room = gj_team_lease_left(team);
	uint32_t	nshares = 1;
	GjStatus	status;

	room = room > 2 * GJ_OUTPUT_SLOT_SIZE ? room - GJ_OUTPUT_SLOT_SIZE : room / 2;
	if (can_split(groups))
		while (nshares < GJ_MAX_SHARES &&
			   (need / nshares > room ||
				(nshares < team->nworkers && all->nrows / nshares >= GJ_GROUPS_A_DEVICE)))
			nshares *= 2;
	pthread_mutex_lock(&groups->lock);
	status = make_shares(groups, &groups->all, nshares, 0);
	pthread_mutex_unlock(&groups->lock);
	return status;
}

/* True if shares are to hand their groups over as sorted runs. */
static bool
are_merged(GjTeamGroups *groups)
{
	bool		several;

	pthread_mutex_lock(&groups->lock);
	several = groups->several && !groups->next && groups->team->sink->sorted;
	pthread_mutex_unlock(&groups->lock);
	return several;
}

/* ---- in the thread of a worker */

/* Feeds a new run with a share. */
static GjStatus
add_share(GjTeamGroups *groups, GjWorker *worker, const GjGroupShare *share)
{
	GjSpillSlot slot = {NULL, groups->part.types, groups->part.places, &groups->part.layout};
	GjStatus	status;

	worker->keeps_groups = groups->next;
	worker->hands_over = are_merged(groups);
	gj_worker_open_run(worker, groups->team->program, &status);
	GJ_TRY(status);
	GJ_TRY(gj_worker_part_slot(worker, &slot.memory));
	for (uint32_t r = 0, n; r < share->list.n; r += n)
	{
		GJ_TRY(gj_spill_fill(share->list.records + r, share->list.n - r, &slot, &n));
		GJ_TRY(gj_run_add_part(worker->run, groups->nkeys, slot.memory));
	}
	return GJ_OK;
}

/* Puts a share together and sends its groups.  *too_large: it has yet to send anything. */
static GjStatus
join_share(GjTeamGroups *groups, GjWorker *worker, const GjGroupShare *share, bool *too_large)
{
	GjStatus	status = add_share(groups, worker, share);

	worker->sent = false;
	if (status == GJ_OK)
		status = gj_worker_finish_run(worker, 0);
	*too_large = (status == GJ_OUT_OF_MEMORY || status == GJ_TOO_LARGE) && !worker->sent &&
		can_split(groups) && share->nsplits < GJ_MAX_SPLITS;
	if (status != GJ_OK && !*too_large)
		return status;
	return gj_worker_close_run(worker);
}

static GjGroupShare *
take_share(GjTeamGroups *groups)
{
	GjGroupShare *share;

	pthread_mutex_lock(&groups->lock);
	share = groups->shares;
	if (share)
		groups->shares = share->next;
	pthread_mutex_unlock(&groups->lock);
	return share;
}

GjStatus
gj_team_groups_join(GjTeamGroups *groups, GjWorker *worker)
{
	GjGroupShare *share;
	GjStatus	status = GJ_OK;

	while (status == GJ_OK && (share = take_share(groups)))
	{
		bool		too_large;

		status = join_share(groups, worker, share, &too_large);
		pthread_mutex_lock(&groups->lock);
		if (too_large && status == GJ_OK)
			status = make_shares(groups, &share->list, GJ_SHARES_AGAIN, share->nsplits + 1);
		free_share(groups, share);
		pthread_mutex_unlock(&groups->lock);
	}
	return status;
}
