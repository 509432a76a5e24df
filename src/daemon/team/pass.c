/*
 * pass.c
 *	  The passes of a run that was split (team/partition.c): making them, and running them in
 *	  the threads of the members.
 */
#include "partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Slots of the staging memory that are filled at a time: half of them. */
#define GJ_STAGING_HALF		8
#define STAGING_BYTES		(2 * GJ_STAGING_HALF * (size_t) GJ_LOAD_SLOT_SIZE)

/* ---- sizes */

/* Rows of source s > 0 in a pass, and bytes of their heap. */
static uint64_t
pass_rows(const GjPartition *partition, const GjPass *pass, uint32_t s, uint64_t *heap)
{
	bool		keyed = gj_partition_is_key_source(partition, s);
	uint64_t	nrows = 0;

	*heap = 0;
	for (uint32_t p = keyed ? pass->first_part : 0; p < (keyed ? pass->end_part : 1); p++)
	{
		const GjSpillList *list = keyed ? &partition->inner_parts[p] : &partition->inner[s];

		if (pass->first[s] == 0 && pass->end[s] >= list->n)
		{
			nrows += list->nrows;
			*heap += list->heap_used;
			continue;
		}
		for (uint32_t r = pass->first[s]; r < pass->end[s] && r < list->n; r++)
		{
			nrows += list->records[r].nrows;
			*heap += list->records[r].heap_used;
		}
	}
	return nrows;
}

static uint64_t
pass_need(const GjPartition *partition, const GjPass *pass)
{
	uint64_t	need = 0;

	for (uint32_t s = 1; s < partition->program->nsources; s++)
	{
		uint64_t	heap;
		uint64_t	nrows = pass_rows(partition, pass, s, &heap);

		need += gj_partition_need_of(partition, s, nrows, heap);
	}
	return need;
}

/* ---- passes */

/* The lists are long at most as there are parts and records: insertion is good enough. */
static void
put_pass(GjPartition *partition, GjPass *pass)
{
	GjPass	  **at = &partition->passes;

	pass->need = pass_need(partition, pass);
	while (*at && (*at)->need > pass->need)
		at = &(*at)->next;
	pass->next = *at;
	*at = pass;
}

/* The place that halves the need of records first .. end-1. */
static uint32_t
middle(uint32_t first, uint32_t end)
{
	return first + (end - first) / 2;
}

/* Records that the pass has of an inner source, if it may have fewer; else 0. */
static uint32_t
splittable_blocks(const GjPartition *partition, const GjPass *pass, uint32_t s)
{
	const GjSpillList *list = &partition->inner[s];
	uint32_t	end;

	if (!gj_partition_can_split_by_blocks(partition, s))
		return 0;
	if (gj_partition_is_key_source(partition, s))
	{
		if (pass->end_part - pass->first_part > 1)
			return 0;
		list = &partition->inner_parts[pass->first_part];
	}
	end = pass->end[s] < list->n ? pass->end[s] : list->n;
	return end > pass->first[s] + 1 ? end - pass->first[s] : 0;
}

/* Makes two of a pass, whichever way takes most off it; false if there is none. */
static bool
split_pass(GjPartition *partition, GjPass *pass, GjPass *half)
{
	uint64_t	most = 0;
	uint32_t	source = 0;
	uint32_t	nblocks = 0;

	for (uint32_t s = 1; s < partition->program->nsources; s++)
	{
		uint64_t	heap;
		uint64_t	nrows = pass_rows(partition, pass, s, &heap);
		uint64_t	need = gj_partition_need_of(partition, s, nrows, heap);
		uint32_t	n = splittable_blocks(partition, pass, s);
		bool		by_key = gj_partition_is_key_source(partition, s) &&
			pass->end_part - pass->first_part > 1;

		if ((n == 0 && !by_key) || need <= most)
			continue;
		most = need;
		source = s;
		nblocks = n;
	}
	if (source == 0)
		return false;
	*half = *pass;
	if (nblocks > 0)
	{
		pass->end[source] = middle(pass->first[source], pass->first[source] + nblocks);
		half->first[source] = pass->end[source];
	}
	else
	{
		pass->end_part = middle(pass->first_part, pass->end_part);
		half->first_part = pass->end_part;
	}
	return true;
}

/* The lock is held. */
static GjStatus
fail_locked(GjPartition *partition)
{
	snprintf(partition->team->error.text, sizeof(partition->team->error.text),
			 "a part of an inner side that cannot be split has more than the device's memory");
	return GJ_TOO_LARGE;
}

/* Puts both halves of a pass into the list, or gives it up.  The lock is held. */
static GjStatus
put_halves(GjPartition *partition, GjPass *pass)
{
	GjPass	   *half = malloc(sizeof(GjPass));

	if (!half || !split_pass(partition, pass, half))
	{
		free(pass);
		if (!half)
			return GJ_OUT_OF_HOST_MEMORY;
		free(half);
		return fail_locked(partition);
	}
	put_pass(partition, pass);
	put_pass(partition, half);
	return GJ_OK;
}

/* Makes passes that fit, and enough of them for all devices. */
static GjStatus
make_passes(GjPartition *partition)
{
	GjPass	   *pass = calloc(1, sizeof(GjPass));
	uint32_t	n = 1;

	if (!pass)
		return GJ_OUT_OF_HOST_MEMORY;
	pass->end_part = partition->nparts;
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
		pass->end[s] = UINT32_MAX;
	put_pass(partition, pass);
	while ((pass = partition->passes)->need > partition->budget ||
		   (n < partition->team->nmembers && pass->end_part - pass->first_part > 1))
	{
		partition->passes = pass->next;
		GJ_TRY(put_halves(partition, pass));
		n++;
	}
	return GJ_OK;
}

GjStatus
gj_partition_run(GjPartition *partition)
{
	GjTeam    *team = partition->team;
	GjStatus	status;

	pthread_mutex_lock(&team->lock);
	status = make_passes(partition);
	pthread_mutex_unlock(&team->lock);
	GJ_TRY(status);
	return gj_team_for_all(team, GJ_TASK_PASSES, 0);
}

/* ---- in the thread of a member */

/* The program with the sizes that the sources of a pass have. */
static GjStatus
make_program(GjPartition *partition, GjMember *member, const GjPass *pass)
{
	GjSource   *sources;

	if (!member->program)
		member->program = malloc(partition->program->nbytes);
	if (!member->program)
		return GJ_OUT_OF_HOST_MEMORY;
	memcpy(member->program, partition->program, partition->program->nbytes);
	sources = (GjSource *) ((char *) member->program + member->program->sources);
	for (uint32_t s = 1; s < partition->program->nsources; s++)
	{
		uint64_t	heap;

		sources[s].nrows_hint = pass_rows(partition, pass, s, &heap);
	}
	return GJ_OK;
}

static GjStatus
get_staging(GjPartition *partition, GjMember *member)
{
	GjErrorText why = {""};
	GjStatus	status;

	/* a backend may still write to a ring that it had; this is none of these */
	_Static_assert(STAGING_BYTES != GJ_LOAD_SLOTS * GJ_LOAD_SLOT_SIZE &&
				   STAGING_BYTES != GJ_OUTPUT_SLOTS * GJ_OUTPUT_SLOT_SIZE, "staging");
	if (member->staging)
		return GJ_OK;
	status = gj_segment_get(member->entry, STAGING_BYTES, &member->staging, &why);
	return status == GJ_OK ? GJ_OK : gj_partition_fail(partition, status, why.text);
}

/* Records on their way to a run, through one half of the staging memory after the other. */
typedef struct GjFeed
{
	GjPartition *partition;
	GjMember   *member;
	uint32_t	source;
	const GjSpillRecord *records;	/* that are still to be fed */
	uint32_t	n;
	GjSpillFill fill;			/* what is being filled */
	GjSpillSlot slots[2][GJ_STAGING_HALF];
	uint64_t	fed[2];			/* member->nstaged when the half was given to the run last */
} GjFeed;

/* Starts to fill a half, if there is something left to fill it with. */
static GjStatus
start_half(GjFeed *feed, uint32_t half)
{
	GjPartition *partition = feed->partition;
	GjMember   *member = feed->member;
	const GjSource *source = &partition->sources[feed->source];

	feed->fill.nslots = 0;
	if (feed->n == 0 || gj_run_complete(member->run))
		return GJ_OK;
	if (member->nread < feed->fed[half])
		GJ_TRY(gj_run_flush(member->run));
	for (uint32_t i = 0; i < GJ_STAGING_HALF; i++)
		feed->slots[half][i] = (GjSpillSlot) {
			.memory = member->staging->memory +
				(half * GJ_STAGING_HALF + i) * (size_t) GJ_LOAD_SLOT_SIZE,
			.types = partition->types + source->first_column,
			.places = partition->places + source->first_column,
			.layout = &partition->layout[feed->source]
		};
	GJ_TRY(gj_spill_fill_start(&feed->fill, feed->records, feed->n, feed->slots[half],
							   GJ_STAGING_HALF, partition->pool));
	feed->records += feed->fill.nrecords;
	feed->n -= feed->fill.nrecords;
	return GJ_OK;
}

/* Gives the run the slots of a half that is filled. */
static GjStatus
feed_half(GjFeed *feed, uint32_t half, uint32_t nslots)
{
	GjMember   *member = feed->member;

	for (uint32_t i = 0; i < nslots; i++)
	{
		const GjSpillSlot *slot = &feed->slots[half][i];

		member->nchunks += feed->source == 0;
		member->nstaged++;
		GJ_TRY(gj_run_chunk(member->run, feed->source, slot->nrows, slot->memory,
							GJ_OWN_SLOTS + i));
	}
	feed->fed[half] = member->nstaged;
	return gj_run_work(member->run);
}

/* Feeds the run with records: while the device takes those of one half, the other is filled. */
static GjStatus
feed_records(GjPartition *partition, GjMember *member, uint32_t s, const GjSpillRecord *records,
			 uint32_t n)
{
	GjFeed		feed = {.partition = partition,.member = member,.source = s,.records = records,
	.n = n};
	uint32_t	half = 0;
	uint32_t	nslots;

	GJ_TRY(start_half(&feed, half));
	while ((nslots = feed.fill.nslots) > 0)
	{
		GjStatus	status;

		if ((status = gj_spill_fill_end(&feed.fill)) != GJ_OK)
			return gj_partition_fail(partition, status, GJ_UNREADABLE);
		GJ_TRY(start_half(&feed, 1 - half));
		status = feed_half(&feed, half, nslots);
		if (status != GJ_OK)
		{
			if (feed.fill.nslots > 0)
				gj_spill_fill_end(&feed.fill);
			return status;
		}
		half = 1 - half;
	}
	/* the next ones start with the first half again */
	return gj_run_flush(member->run);
}

/* Feeds the run with records first .. end-1 of each of n lists. */
static GjStatus
feed_lists(GjPartition *partition, GjMember *member, uint32_t s, const GjSpillList *lists,
		   uint32_t n, uint32_t first, uint32_t end)
{
	GjSpillRecord *records;
	uint32_t	nrecords = 0;
	GjStatus	status;

	for (uint32_t i = 0; i < n; i++)
		nrecords += lists[i].n;
	records = malloc((nrecords + 1) * sizeof(GjSpillRecord));
	if (!records)
		return GJ_OUT_OF_HOST_MEMORY;
	nrecords = 0;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t r = first; r < end && r < lists[i].n; r++)
			records[nrecords++] = lists[i].records[r];
	status = feed_records(partition, member, s, records, nrecords);
	free(records);
	return status;
}

/* Opens a run and gives it the inner sides of a pass. */
static GjStatus
load_inner(GjPartition *partition, GjMember *member, const GjPass *pass)
{
	GjStatus	status;

	GJ_TRY(make_program(partition, member, pass));
	GJ_TRY(get_staging(partition, member));
	gj_member_open_run(member, member->program, &status);
	GJ_TRY(status);
	member->nstaged = member->nread = 0;
	for (uint32_t s = 1; s < partition->program->nsources; s++)
	{
		bool		keyed = gj_partition_is_key_source(partition, s);

		if (gj_run_complete(member->run))
			return GJ_OK;
		GJ_TRY(feed_lists(partition, member, s, keyed ?
						  &partition->inner_parts[pass->first_part] : &partition->inner[s],
						  keyed ? pass->end_part - pass->first_part : 1, pass->first[s],
						  pass->end[s]));
		GJ_TRY(gj_run_source_end(member->run, s));
	}
	return GJ_OK;
}

/* Sources whose rows no other pass has. */
static uint32_t
counted_sources(const GjPartition *partition, const GjPass *pass)
{
	uint32_t	counted = 0;

	for (uint32_t s = 0; s < partition->program->nsources; s++)
	{
		bool		counts = s == 0 || gj_partition_is_key_source(partition, s) || pass->first_part == 0;

		for (uint32_t t = 1; t < partition->program->nsources; t++)
			counts &= t == s || pass->first[t] == 0;
		counted |= (uint32_t) counts << s;
	}
	return counted;
}

/* All rows of a pass. */
static GjStatus
feed_pass(GjPartition *partition, GjMember *member, const GjPass *pass)
{
	GJ_TRY(load_inner(partition, member, pass));
	if (!gj_run_complete(member->run))
		GJ_TRY(feed_lists(partition, member, 0, &partition->outer_parts[pass->first_part],
						  pass->end_part - pass->first_part, 0, UINT32_MAX));
	return gj_run_complete(member->run) ? GJ_OK : gj_run_source_end(member->run, 0);
}

/* *too_large: the device has no room for it, and nothing has come of it yet. */
static GjStatus
run_pass(GjPartition *partition, GjMember *member, const GjPass *pass, bool *too_large)
{
	GjStatus	status = feed_pass(partition, member, pass);

	*too_large = status == GJ_OUT_OF_MEMORY && !member->sent &&
		partition->program->fail_point != GJ_FAIL_MEMORY;
	if (*too_large)
		return gj_member_close_run(member);
	GJ_TRY(status);
	GJ_TRY(gj_member_finish_run(member, counted_sources(partition, pass)));
	return gj_member_close_run(member);
}

static GjPass *
take_pass(GjPartition *partition)
{
	GjPass	   *pass;

	pthread_mutex_lock(&partition->team->lock);
	pass = partition->passes;
	if (pass)
	{
		partition->passes = pass->next;
		partition->npasses++;
	}
	pthread_mutex_unlock(&partition->team->lock);
	return pass;
}

GjStatus
gj_partition_passes(GjPartition *partition, GjMember *member)
{
	GjTeam    *team = partition->team;
	GjPass	   *pass;

	while ((pass = take_pass(partition)))
	{
		bool		too_large = false;
		GjStatus	status = run_pass(partition, member, pass, &too_large);

		if (!too_large || status != GJ_OK)
		{
			free(pass);
			GJ_TRY(status);
			continue;
		}
		pthread_mutex_lock(&team->lock);
		partition->npasses--;
		status = put_halves(partition, pass);
		/* others may have run out of passes already: this member takes both */
		pthread_mutex_unlock(&team->lock);
		GJ_TRY(status);
	}
	return GJ_OK;
}

GjStatus
gj_partition_load(GjPartition *partition, GjMember *member)
{
	GjTeam    *team = partition->team;
	GjPass		all = {.end_part = partition->nparts};
	GjStatus	status;

	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
		all.end[s] = UINT32_MAX;
	status = load_inner(partition, member, &all);
	if (status == GJ_OUT_OF_MEMORY && partition->program->fail_point != GJ_FAIL_MEMORY)
	{
		pthread_mutex_lock(&team->lock);
		partition->too_large = true;
		pthread_mutex_unlock(&team->lock);
		return GJ_OK;
	}
	GJ_TRY(status);
	if (gj_run_complete(member->run))
	{
		pthread_mutex_lock(&team->lock);
		__atomic_store_n(&team->complete, true, __ATOMIC_RELAXED);
		pthread_mutex_unlock(&team->lock);
	}
	return GJ_OK;
}
