/*
 * feed.c
 *	  Gives a run the records that are kept on the host, as chunks.
 *
 * They are copied to the worker's staging memory by the cpu's threads: one half of it is filled
 * while the device takes what is in the other one.
 */
#include "partition.h"

#include <stdlib.h>

/* Slots of the staging memory that are filled at a time: half of them. */
#define GJ_STAGING_HALF		8
#define STAGING_BYTES		(2 * GJ_STAGING_HALF * (size_t) GJ_LOAD_SLOT_SIZE)

GjStatus
gj_feed_start(GjStaging *staging, GjWorker *worker)
{
	GjErrorText why = {""};
	GjStatus	status;

	/* a backend may still write to a ring that it had; this is none of these */
	_Static_assert(STAGING_BYTES != GJ_LOAD_SLOTS * GJ_LOAD_SLOT_SIZE &&
				   STAGING_BYTES != GJ_OUTPUT_SLOTS * GJ_OUTPUT_SLOT_SIZE, "staging");
	staging->nslots = worker->nread = 0;
	if (staging->segment)
		return GJ_OK;
	status = gj_segment_get(worker->entry, STAGING_BYTES, &staging->segment, &why);
	return status == GJ_OK ? GJ_OK : gj_team_note_error(worker->team, status, why.text);
}

/* Records on their way to a run, through one half of the staging memory after the other. */
typedef struct GjFeed
{
	GjPartition *partition;
	GjWorker   *worker;
	GjStaging  *staging;
	uint32_t	source;
	const GjSpillRecord *records;	/* that are still to be fed */
	uint32_t	n;
	GjSpillFill fill;			/* what is being filled */
	GjSpillSlot slots[2][GJ_STAGING_HALF];
	uint64_t	fed[2];			/* of the staging's slots, when the half was given last */
} GjFeed;

/* Starts to fill a half, if there is something left to fill it with. */
static GjStatus
start_half(GjFeed *feed, uint32_t half)
{
	GjPartition *partition = feed->partition;
	GjWorker   *worker = feed->worker;
	const GjSource *source = &partition->sources[feed->source];

	feed->fill.nslots = 0;
	if (feed->n == 0 || gj_run_complete(worker->run))
		return GJ_OK;
	if (worker->nread < feed->fed[half])
		GJ_TRY(gj_run_flush(worker->run));
	for (uint32_t i = 0; i < GJ_STAGING_HALF; i++)
		feed->slots[half][i] = (GjSpillSlot) {
			.memory = feed->staging->segment->memory +
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
	GjWorker   *worker = feed->worker;

	for (uint32_t i = 0; i < nslots; i++)
	{
		const GjSpillSlot *slot = &feed->slots[half][i];

		worker->counts.chunks += feed->source == 0;
		feed->staging->nslots++;
		GJ_TRY(gj_run_chunk(worker->run, feed->source, slot->nrows, slot->memory,
							GJ_OWN_SLOTS + i));
	}
	feed->fed[half] = feed->staging->nslots;
	return gj_run_work(worker->run);
}

/* Feeds the run with records: while the device takes those of one half, the other is filled. */
static GjStatus
feed_records(GjPartition *partition, GjWorker *worker, GjStaging *staging, uint32_t s,
			 const GjSpillRecord *records, uint32_t n)
{
	GjFeed		feed = {.partition = partition,.worker = worker,.staging = staging,.source = s,
	.records = records,.n = n};
	uint32_t	half = 0;
	uint32_t	nslots;

	GJ_TRY(start_half(&feed, half));
	while ((nslots = feed.fill.nslots) > 0)
	{
		GjStatus	status;

		if ((status = gj_spill_fill_end(&feed.fill)) != GJ_OK)
			return gj_team_note_error(worker->team, status, GJ_UNREADABLE);
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
	return gj_run_flush(worker->run);
}

GjStatus
gj_feed_lists(GjPartition *partition, GjWorker *worker, GjStaging *staging, uint32_t s,
			  const GjSpillList *lists, uint32_t n, uint32_t first, uint32_t end)
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
	status = feed_records(partition, worker, staging, s, records, nrecords);
	free(records);
	return status;
}
