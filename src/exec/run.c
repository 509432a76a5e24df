/*
 * run.c
 *	  One run of a program: submit it, load its sources, take in what comes back.
 */
#include "postgres.h"

#include "portability/instr_time.h"

#include "exec/run.h"

struct GjRun
{
	const GjProgram *program;
	GjClient   *client;
	GjHeldValues held;
	GjSourceReader *readers[GJ_MAX_SOURCES];
	GjWriter   *writers[GJ_MAX_SOURCES];
	int			nsources;
	int			nloaded;		/* sources that have ended */
	GjLoadStats *stats;
};

static double
elapsed_ms(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_MILLISEC(now);
}

GjRun *
gj_run_start(const GjProgram *program, GjLoadStats *stats, GjFailure *failure)
{
	GjRun	   *run = palloc0(sizeof(GjRun));
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);
	run->program = program;
	run->nsources = program->nsources;
	run->stats = stats;
	run->held.cxt = CurrentMemoryContext;
	run->client = gj_client_submit(program, failure);
	stats->start_ms += elapsed_ms(start);
	return run->client ? run : NULL;
}

void
gj_run_set_reader(GjRun *run, int source, GjSourceReader *reader)
{
	run->readers[source] = reader;
	run->writers[source] = gj_writer_create(run->program, source);
}

GjHeldValues *
gj_run_held(GjRun *run)
{
	return &run->held;
}

/* The source to load now: inner sides first, the outer side last. */
static int
current_source(const GjRun *run)
{
	return run->nloaded < run->nsources - 1 ? run->nloaded + 1 : 0;
}

/*
 * Fills one slot and sends it.  False with the reason if the source fails; if the
 * connection does, gj_client_next() tells why.
 */
static bool
load_chunk(GjRun *run, uint8 *memory, uint32 slot, GjFailure *failure)
{
	int			s = current_source(run);
	GjSourceReader *reader = run->readers[s];
	GjWriter   *writer = run->writers[s];
	uint64		npages = reader->npages;
	uint64		nvisible = reader->nvisible;
	instr_time	start;
	bool		more;
	bool		sent = true;

	INSTR_TIME_SET_CURRENT(start);
	failure->reason = GJ_OK;
	gj_writer_start(writer, memory);
	more = reader->fill(reader, writer, failure);
	run->stats->ms[s] += elapsed_ms(start);
	run->stats->npages[s] += reader->npages - npages;
	run->stats->nvisible[s] += reader->nvisible - nvisible;
	if (failure->reason != GJ_OK)
		return false;
	gj_writer_finish(writer);
	if (writer->nrows > 0)
		sent = gj_client_send_chunk(run->client, slot, s, writer->nrows);
	else if (more)
		elog(ERROR, "a row of source %d does not fit an empty slot", s);
	if (sent && !more)
	{
		sent = gj_client_end_source(run->client, s);
		run->nloaded++;
	}
	if (!sent)
		run->nloaded = run->nsources;
	return true;
}

static GjEvent
wait_for_event(GjRun *run, GjFailure *failure)
{
	GjEvent		event;
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);
	event = gj_client_next(run->client, true, failure);
	run->stats->wait_ms += elapsed_ms(start);
	return event;
}

GjRunResult
gj_run_next(GjRun *run, const uint8 **batch, uint32 *slot, GjFailure *failure)
{
	for (;;)
	{
		GjEvent		event = gj_client_next(run->client, false, failure);
		uint8	   *memory = NULL;
		uint32		load_slot;

		if (event.type == GJ_EVENT_NONE && run->nloaded < run->nsources)
			memory = gj_client_load_slot(run->client, &load_slot);
		if (memory != NULL)
		{
			if (!load_chunk(run, memory, load_slot, failure))
				return GJ_RUN_FAILED;
			continue;
		}
		if (event.type == GJ_EVENT_NONE)
			event = wait_for_event(run, failure);
		switch (event.type)
		{
			case GJ_EVENT_BATCH:
				*batch = gj_client_batch(run->client, event.slot);
				*slot = event.slot;
				return GJ_RUN_BATCH;
			case GJ_EVENT_DONE:
				return GJ_RUN_DONE;
			case GJ_EVENT_FAILED:
				return GJ_RUN_FAILED;
			default:
				break;
		}
	}
}

void
gj_run_free_batch(GjRun *run, uint32 slot)
{
	gj_client_free_batch(run->client, slot);
}

const GjRunStats *
gj_run_stats(const GjRun *run)
{
	return gj_client_stats(run->client);
}

void
gj_run_end(GjRun *run)
{
	for (int s = 0; s < run->nsources; s++)
	{
		if (run->readers[s])
			run->readers[s]->close(run->readers[s]);
		run->readers[s] = NULL;
	}
	if (run->client)
		gj_client_close(run->client);
	run->client = NULL;
}
