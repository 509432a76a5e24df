/*
 * run.c
 *	  One run of a program: submit it, load its sources, take in what comes back.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "portability/instr_time.h"

#include "exec/run.h"

struct GjRemoteRun
{
	const GjProgram *program;
	GjClient   *client;
	GjHeldValues held;
	GjSourceReader *readers[GJ_MAX_SOURCES];
	GjWriter   *writers[GJ_MAX_SOURCES];
	GjResidentUse use[GJ_MAX_SOURCES];	/* what is resident of them */
	GjStages	stages;			/* whose results gpujoind has for it, */
	GjClient   *stage_clients[GJ_MAX_STAGES];	/* and who has had them run */
	int			nsources;
	int			nloaded;		/* sources that have ended */
	GjParallelLoad *workers;	/* NULL: none */
	instr_time	load_start;		/* of the first chunk; zero: there was none */
	instr_time	load_end;		/* of the last one */
	GjLoadStats *stats;
	void		(*watch) (void *);	/* who wants to know that it goes on */
	void	   *watch_arg;
};

/* How long a worker waits for a free slot before it looks whether it is still wanted. */
#define WORKER_WAIT			50	/* ms */

static double
elapsed_ms(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_MILLISEC(now);
}

/* Nobody wants to know. */
static void
watch_nothing(void *arg)
{
}

GjRemoteRun *
gj_remote_create(const GjProgram *program, GjLoadStats *stats)
{
	GjRemoteRun *run = palloc0(sizeof(GjRemoteRun));

	run->program = program;
	run->nsources = program->nsources;
	run->stats = stats;
	run->held.cxt = CurrentMemoryContext;
	run->watch = watch_nothing;
	return run;
}

void
gj_remote_watch(GjRemoteRun *run, void (*watch) (void *), void *arg)
{
	run->watch = watch;
	run->watch_arg = arg;
}

void
gj_remote_set_reader(GjRemoteRun *run, int source, GjSourceReader *reader)
{
	run->readers[source] = reader;
	run->writers[source] = gj_writer_create(run->program, source);
}

static bool
fill_nothing(GjSourceReader *reader, GjWriter *writer, GjFailure *failure)
{
	return false;
}

static void
close_nothing(GjSourceReader *reader)
{
}

void
gj_remote_set_stage(GjRemoteRun *run, int source, const GjRemoteRun *stage)
{
	const GjSource *sources = gj_program_array(run->program, GjSource, sources);
	GjSourceReader *reader = palloc0(sizeof(GjSourceReader));

	reader->fill = fill_nothing;
	reader->close = close_nothing;
	gj_remote_set_reader(run, source, reader);
	Assert(sources[source].stage >= 1 && sources[source].stage <= GJ_MAX_STAGES);
	run->stages.token[sources[source].stage - 1] = *gj_client_token(stage->client);
	run->stage_clients[sources[source].stage - 1] = stage->client;
	run->stages.n = Max(run->stages.n, sources[source].stage);
}

bool
gj_remote_is_lost(const GjRemoteRun *run)
{
	return gj_client_is_lost(run->client);
}

/* Blocks of a source's tables. */
static uint64
blocks_of(const GjSourceReader *reader)
{
	uint64		nblocks = 0;

	for (int i = 0; i < reader->ntables; i++)
		nblocks += reader->tables[i].share->nblocks;
	return nblocks;
}

/* True if all that is to be loaded was asked about. */
static bool
is_asked_about(const GjRemoteRun *run, const GjResidentAsks *asks)
{
	for (int s = 0; s < run->nsources; s++)
		if (run->readers[s]->ntables == 0 ||
			gj_resident_blocks(asks, s) != blocks_of(run->readers[s]))
			return false;
	return true;
}

/* What is asked with the program. */
typedef struct FirstAsk
{
	const GjRemoteRun *run;
	GjResidentAsks *asks;
} FirstAsk;

static bool
ask_first(void *arg, GjQuestions *questions)
{
	FirstAsk   *first = (FirstAsk *) arg;

	return gj_resident_questions(first->asks, is_asked_about(first->run, first->asks), questions);
}

/*
 * Submits the program together with the first questions about what is resident.  Where all that
 * is loaded is to be saved, nothing is asked.
 */
static bool
submit(GjRemoteRun *run, GjResidentAsks *asks, GjFailure *failure)
{
	FirstAsk	first = {run, asks};
	bool		used;

	run->client = gj_client_submit(run->program, &run->stages, ask_first, &first, failure);
	if (run->client == NULL || !gj_resident_finish(asks, run->client, &used, failure))
		return false;
	if (used)
		run->nloaded = run->nsources;
	return true;
}

/* True if gpujoind still has the results of the run's stages: another one does not know them. */
static bool
has_stages(const GjRemoteRun *run, GjFailure *failure)
{
	for (uint32 i = 0; i < run->stages.n; i++)
	{
		if (run->stage_clients[i] == NULL || !gj_client_is_lost(run->stage_clients[i]))
			continue;
		gj_fail(failure, GJ_DEVICE_LOST,
				"gpujoind ended between two stages of the query, whose results are gone");
		return false;
	}
	return true;
}

bool
gj_remote_submit(GjRemoteRun *run, int most, GjFailure *failure)
{
	GjResidentAsks *asks;
	instr_time	start;
	bool		submitted;

	if (!has_stages(run, failure))
		return false;
	asks = gj_resident_asks(run->program->kind == GJ_PROGRAM_PREWARM);
	INSTR_TIME_SET_CURRENT(start);
	for (int s = 0; s < run->nsources; s++)
		if (run->readers[s]->ntables > 0 && gj_client_may_ask())
			gj_heap_source_ask(run->readers[s], asks, run->writers[s], s,
							   Min(most, gj_loader_workers_for(gj_heap_source_left(run->readers[s]))),
							   &run->use[s]);
	submitted = submit(run, asks, failure);
	gj_resident_release(asks);
	for (int s = 0; s < run->nsources; s++)
	{
		if (run->readers[s]->asked != NULL)
			gj_heap_source_found(run->readers[s]);
		run->stats->nresident[s] += run->readers[s]->nresident;
	}
	run->stats->start_ms += elapsed_ms(start);
	return submitted;
}

GjHeldValues *
gj_remote_held(GjRemoteRun *run)
{
	return &run->held;
}

void
gj_remote_launch(GjRemoteRun *run, int most, Snapshot snapshot)
{
	double		npages = 0;
	int			nworkers;
	instr_time	start;

	for (int s = 0; s < run->nsources; s++)
		npages += gj_heap_source_left(run->readers[s]);
	nworkers = Min(most, gj_loader_workers_for(npages));
	if (nworkers <= 0)
		return;
	INSTR_TIME_SET_CURRENT(start);
	run->workers = gj_parallel_load_start(nworkers, run->program, gj_client_token(run->client),
										  snapshot, run->readers);
	if (run->workers != NULL)
		run->stats->nlaunched = Max(run->stats->nlaunched,
									gj_parallel_load_launched(run->workers));
	run->stats->start_ms += elapsed_ms(start);
}

bool
gj_remote_has_workers(const GjRemoteRun *run)
{
	return run->workers != NULL;
}

/* The source to load now: build sides first, the probe side last. */
static int
current_source(const GjRemoteRun *run)
{
	return run->nloaded < run->nsources - 1 ? run->nloaded + 1 : 0;
}

/* True if nothing of a source is left to be loaded, but what is resident. */
static bool
is_resident(const GjSourceReader *reader)
{
	return blocks_of(reader) == reader->nresident;
}

/*
 * Sends what is resident, in a slot: the next of a source; where that is all of it, its end, too,
 * and what is resident of the following ones, unless others still load the first.
 */
static void
send_use(GjRemoteRun *run, uint8 *memory, uint32 slot)
{
	const uint8 *end = memory + GJ_LOAD_SLOT_SIZE;
	uint32		first = current_source(run);
	uint32		n = 0;

	while (run->nloaded < run->nsources)
	{
		int			s = current_source(run);
		GjResidentUse *use = &run->use[s];
		bool		ends = use->n > 0 && is_resident(run->readers[s]);

		/* nor the probe side, before the results of stages have become build sides */
		if (use->n == use->sent || (s == 0 && n > 0 && run->stages.n > 0))
			break;
		memory = gj_resident_fill(use, s, ends, memory, end, &n);
		if (!ends || use->sent < use->n)
			break;
		run->nloaded++;
		if (run->workers != NULL)
			break;
	}
	/* if that fails, gj_client_next() tells why */
	if (!gj_client_send_use(run->client, slot, first, n,
							run->nloaded == run->nsources && run->workers == NULL))
		run->nloaded = run->nsources;
}

/*
 * Fills one slot and sends it.  False with the reason if the source fails; if the
 * connection does, gj_client_next() tells why.
 */
static bool
load_chunk(GjRemoteRun *run, uint8 *memory, uint32 slot, GjFailure *failure)
{
	int			s = current_source(run);
	GjSourceReader *reader = run->readers[s];
	GjWriter   *writer = run->writers[s];
	uint64		npages;
	uint64		nvisible;
	instr_time	start;
	bool		more;
	bool		sent = true;

	failure->reason = GJ_OK;
	/* a worker has no part in sources that others cannot read */
	if (reader == NULL)
	{
		if (gj_client_end_source(run->client, s))
			run->nloaded++;
		else
			run->nloaded = run->nsources;
		return true;
	}
	if (run->use[s].sent < run->use[s].n)
	{
		send_use(run, memory, slot);
		return true;
	}
	npages = reader->npages;
	nvisible = reader->nvisible;
	INSTR_TIME_SET_CURRENT(start);
	if (INSTR_TIME_IS_ZERO(run->load_start))
		run->load_start = start;
	gj_writer_start(writer, memory);
	more = reader->fill(reader, writer, failure);
	INSTR_TIME_SET_CURRENT(run->load_end);
	run->stats->ms[s] += elapsed_ms(start);
	run->stats->npages[s] += reader->npages - npages;
	run->stats->nvisible[s] += reader->nvisible - nvisible;
	if (failure->reason != GJ_OK)
		return false;
	gj_writer_finish(writer);
	if (writer->nrows > 0 || writer->pages->n > 0)
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

bool
gj_remote_load(GjRemoteRun *run, pg_atomic_uint32 *stop, GjFailure *failure)
{
	while (run->nloaded < run->nsources && !pg_atomic_read_u32(stop))
	{
		GjFailure	lost;
		GjEvent		event = gj_client_next(run->client, false, &lost);
		uint8	   *memory;
		uint32		slot;

		/* how the run ends is the leader's business */
		if (event.type == GJ_EVENT_DONE || event.type == GJ_EVENT_FAILED)
			return true;
		if (event.type != GJ_EVENT_NONE)
			continue;
		memory = gj_client_load_slot(run->client, &slot);
		if (memory == NULL)
			gj_client_wait(run->client, WORKER_WAIT);
		else if (!load_chunk(run, memory, slot, failure))
			return false;
	}
	return true;
}

static GjEvent
wait_for_event(GjRemoteRun *run, GjFailure *failure)
{
	GjEvent		event;
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);
	event = gj_client_next(run->client, true, failure);
	run->stats->wait_ms += elapsed_ms(start);
	return event;
}

/*
 * Waits for the workers' end.  True if one of them has noted a failure of its source, which
 * is then *failure.
 */
static bool
end_workers(GjRemoteRun *run, GjFailure *failure)
{
	GjParallelLoad *workers = run->workers;

	run->workers = NULL;
	return workers != NULL &&
		gj_parallel_load_end(workers, run->stats, &run->load_end, failure);
}

/* The run has failed: a worker may know better why, and the connection is of no use. */
static GjRemoteResult
run_failed(GjRemoteRun *run, GjFailure *failure)
{
	gj_client_close(run->client);
	(void) end_workers(run, failure);
	return GJ_REMOTE_FAILED;
}

static void
close_readers(GjRemoteRun *run)
{
	for (int s = 0; s < run->nsources; s++)
	{
		if (run->readers[s])
			run->readers[s]->close(run->readers[s]);
		run->readers[s] = NULL;
	}
}

GjRemoteResult
gj_remote_next(GjRemoteRun *run, GjBatch *batch, GjFailure *failure)
{
	for (;;)
	{
		GjEvent		event = gj_client_next(run->client, false, failure);
		uint8	   *memory = NULL;
		uint32		load_slot;

		/* there may always be a batch to take, so that nothing is waited for */
		CHECK_FOR_INTERRUPTS();
		if (event.type == GJ_EVENT_NONE && run->nloaded < run->nsources)
			memory = gj_client_load_slot(run->client, &load_slot);
		if (memory != NULL)
		{
			if (!load_chunk(run, memory, load_slot, failure))
				return run_failed(run, failure);
			run->watch(run->watch_arg);
			continue;
		}
		if (event.type == GJ_EVENT_NONE)
		{
			event = wait_for_event(run, failure);
			run->watch(run->watch_arg);
		}
		switch (event.type)
		{
			case GJ_EVENT_BATCH:
				*batch = (GjBatch) {gj_client_batch(run->client, event.slot), event.slot, event.nrows};
				return GJ_REMOTE_BATCH;
			case GJ_EVENT_DONE:
				return GJ_REMOTE_DONE;
			case GJ_EVENT_FAILED:
				return run_failed(run, failure);
			default:
				break;
		}
	}
}

bool
gj_remote_keep(GjRemoteRun *run, GjFailure *failure)
{
	GjBatch		batch;
	GjRemoteResult result;

	while ((result = gj_remote_next(run, &batch, failure)) == GJ_REMOTE_BATCH)
		gj_remote_free_batch(run, batch.slot);
	if (result == GJ_REMOTE_FAILED)
		return false;
	close_readers(run);
	failure->reason = GJ_OK;
	return !end_workers(run, failure);
}

void
gj_remote_free_batch(GjRemoteRun *run, uint32 slot)
{
	gj_client_free_batch(run->client, slot);
}

const GjRunStats *
gj_remote_stats(const GjRemoteRun *run)
{
	return gj_client_stats(run->client);
}

GjRemoteRun *
gj_remote_attach(const GjProgram *program, uint32 device_kind, const GjRunToken *token,
				 GjLoadStats *stats, GjFailure *failure)
{
	GjRemoteRun *run = gj_remote_create(program, stats);

	run->client = gj_client_attach(device_kind, token, failure);
	return run->client ? run : NULL;
}

void
gj_remote_end(GjRemoteRun *run)
{
	GjFailure	ignored;

	close_readers(run);
	if (run->client)
		gj_client_close(run->client);
	run->client = NULL;
	(void) end_workers(run, &ignored);
	if (!INSTR_TIME_IS_ZERO(run->load_start))
	{
		INSTR_TIME_SUBTRACT(run->load_end, run->load_start);
		run->stats->elapsed_ms += INSTR_TIME_GET_MILLISEC(run->load_end);
		INSTR_TIME_SET_ZERO(run->load_start);
	}
}
