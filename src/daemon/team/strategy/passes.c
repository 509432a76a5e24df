/*
 * passes.c
 *	  The strategy for build sides that fit no device: the program runs in passes, each on a part
 *	  of the rows.
 *
 * Build sources are kept on the host until all have come; then their sizes are known.  If they
 * fit after all, the devices load them, and probe chunks stream as with replicate.c.  If not,
 * rows are split, and each pass runs the whole program on a part (a single build source that is
 * expected not to fit is split as it comes):
 *
 *	by key		one build source and the probe source, by a hash of the keys of its step, which
 *				read the probe source only.  Equal keys meet in one pass, so every join type
 *				gives the right rows, unmatched build rows too.
 *	by blocks	a build source of an inner join, or of one that returns build rows by
 *				themselves (right, right semi and right anti joins), with all probe rows for
 *				each block: every pair is made in one pass, which knows the rows without match.
 *	by marks	by blocks, too, where the first join returns probe rows by whether they have a
 *				match (left, full, semi and anti joins without keys).  Each pass marks those
 *				that have one.  When all have ended, one more pass without these build rows
 *				makes tuples by the marks.
 *
 * A pass whose part is too large, as estimated or as the device finds out before the pass has
 * made anything, is split again: into fewer key parts, or smaller blocks (one hot key).  If it
 * cannot be split, the run ends with GJ_TOO_LARGE.  The largest passes come first, so this
 * happens before any row was returned, unless other sessions have taken memory meanwhile.
 */
#include "partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Chunks to be kept on the host that keep the cpu's threads busy. */
#define GJ_MANY_CHUNKS	32

/*
 * A part of the work: key parts first_part .. end_part-1, and of each build source a range of
 * records; of the one that is split by key, a range only within a single key part.
 */
typedef struct GjPass
{
	struct GjPass *next;
	uint32_t	first_part;
	uint32_t	end_part;
	uint32_t	first[GJ_MAX_SOURCES];
	uint32_t	end[GJ_MAX_SOURCES];
	bool		by_marks;		/* the last one: all rows have their marks */
	uint64_t	need;			/* bytes on the device */
} GjPass;

typedef struct GjPasses
{
	GjReplicate replicate;		/* if all fits after all */
	GjPartition *partition;
	GjStaging	staging[GJ_MAX_RUN_DEVICES];
	uint8_t    *marks;			/* of all probe rows; NULL: no pass needs them */
	/* guarded by the team's lock */
	GjPass	   *first;			/* the largest */
	uint32_t	nrun;			/* that were run */
	bool		too_large;		/* a device found that not all fits */
} GjPasses;

static GjPasses *
state_of(const GjTeam *team)
{
	return team->strategy.state;
}

static GjStaging *
staging_of(const GjWorker *worker)
{
	return &state_of(worker->team)->staging[worker - worker->team->workers];
}

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
		const GjSpillList *list = keyed ? &partition->build_parts[p] : &partition->build_side[s];

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
put_pass(GjPasses *passes, GjPass *pass)
{
	GjPass	  **at = &passes->first;

	pass->need = pass_need(passes->partition, pass);
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

/* Records that the pass has of a build source, if it may have fewer; else 0. */
static uint32_t
splittable_blocks(const GjPartition *partition, const GjPass *pass, uint32_t s)
{
	const GjSpillList *list = &partition->build_side[s];
	uint32_t	end;

	if (!gj_partition_can_split_by_blocks(partition, s))
		return 0;
	if (gj_partition_is_key_source(partition, s))
	{
		if (pass->end_part - pass->first_part > 1)
			return 0;
		list = &partition->build_parts[pass->first_part];
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
fail_locked(GjTeam *team)
{
	snprintf(team->error.text, sizeof(team->error.text),
			 "a part of a build side that cannot be split has more than the device's memory");
	return GJ_TOO_LARGE;
}

/* Puts both halves of a pass into the list, or gives it up.  The lock is held. */
static GjStatus
put_halves(GjPasses *passes, GjPass *pass)
{
	GjPass	   *half = malloc(sizeof(GjPass));

	if (!half || !split_pass(passes->partition, pass, half))
	{
		free(pass);
		if (!half)
			return GJ_OUT_OF_HOST_MEMORY;
		free(half);
		return fail_locked(passes->partition->team);
	}
	put_pass(passes, pass);
	put_pass(passes, half);
	return GJ_OK;
}

/* Makes passes that fit, and enough of them for all devices.  The lock is held. */
static GjStatus
make_passes(GjPasses *passes, bool by_marks)
{
	const GjPartition *partition = passes->partition;
	GjPass	   *pass = calloc(1, sizeof(GjPass));
	uint32_t	n = 1;

	if (!pass)
		return GJ_OUT_OF_HOST_MEMORY;
	pass->end_part = partition->nparts;
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
		pass->end[s] = UINT32_MAX;
	pass->by_marks = by_marks;
	if (by_marks)
	{
		uint32_t	s = partition->steps[0].source;

		pass->first[s] = pass->end[s] = partition->build_side[s].n;
	}
	put_pass(passes, pass);
	while ((pass = passes->first)->need > partition->budget ||
		   (n < partition->team->nworkers && pass->end_part - pass->first_part > 1))
	{
		passes->first = pass->next;
		GJ_TRY(put_halves(passes, pass));
		n++;
	}
	return GJ_OK;
}

/* ---- in the thread of a worker */

/* The program with the sizes that the sources of a pass have. */
static GjStatus
make_program(GjPartition *partition, GjWorker *worker, const GjPass *pass)
{
	GjSource   *sources;

	if (!worker->program)
		worker->program = malloc(partition->program->nbytes);
	if (!worker->program)
		return GJ_OUT_OF_HOST_MEMORY;
	memcpy(worker->program, partition->program, partition->program->nbytes);
	sources = (GjSource *) ((char *) worker->program + worker->program->sources);
	for (uint32_t s = 1; s < partition->program->nsources; s++)
	{
		uint64_t	heap;

		sources[s].nrows_hint = pass_rows(partition, pass, s, &heap);
	}
	return GJ_OK;
}

/* Opens a run and gives it the build sides of a pass. */
static GjStatus
load_build_sides(GjPartition *partition, GjWorker *worker, const GjPass *pass)
{
	uint8_t    *marks = state_of(worker->team)->marks;
	GjStatus	status;

	GJ_TRY(make_program(partition, worker, pass));
	GJ_TRY(gj_feed_start(staging_of(worker), worker));
	gj_worker_open_run(worker, worker->program, &status);
	GJ_TRY(status);
	if (marks)
		gj_run_mark_rows(worker->run, marks, pass->by_marks);
	for (uint32_t s = 1; s < partition->program->nsources; s++)
	{
		bool		keyed = gj_partition_is_key_source(partition, s);

		if (gj_run_complete(worker->run))
			return GJ_OK;
		GJ_TRY(gj_feed_lists(partition, worker, staging_of(worker), s, keyed ?
						  &partition->build_parts[pass->first_part] : &partition->build_side[s],
						  keyed ? pass->end_part - pass->first_part : 1, pass->first[s],
						  pass->end[s]));
		GJ_TRY(gj_run_source_end(worker->run, s));
	}
	return GJ_OK;
}

/* Sources whose rows no other pass has. */
static uint32_t
counted_sources(const GjPartition *partition, const GjPass *pass)
{
	uint32_t	counted = 0;

	/* others have had its rows */
	if (pass->by_marks)
		return 0;
	for (uint32_t s = 0; s < partition->program->nsources; s++)
	{
		bool		counts = s == 0 || gj_partition_is_key_source(partition, s) ||
			pass->first_part == 0;

		for (uint32_t t = 1; t < partition->program->nsources; t++)
			counts &= t == s || pass->first[t] == 0;
		counted |= (uint32_t) counts << s;
	}
	return counted;
}

/* All rows of a pass. */
static GjStatus
feed_pass(GjPartition *partition, GjWorker *worker, const GjPass *pass)
{
	GJ_TRY(load_build_sides(partition, worker, pass));
	if (!gj_run_complete(worker->run))
		GJ_TRY(gj_feed_lists(partition, worker, staging_of(worker), 0,
							 &partition->probe_parts[pass->first_part],
						  pass->end_part - pass->first_part, 0, UINT32_MAX));
	return gj_run_complete(worker->run) ? GJ_OK : gj_run_source_end(worker->run, 0);
}

/* *too_large: the device has no room for it, and nothing has come of it yet. */
static GjStatus
run_pass(GjPartition *partition, GjWorker *worker, const GjPass *pass, bool *too_large)
{
	GjStatus	status = feed_pass(partition, worker, pass);

	*too_large = status == GJ_OUT_OF_MEMORY && !worker->sent &&
		partition->program->fail_point != GJ_FAIL_MEMORY;
	if (*too_large)
		return gj_worker_close_run(worker);
	GJ_TRY(status);
	GJ_TRY(gj_worker_finish_run(worker, counted_sources(partition, pass)));
	return gj_worker_close_run(worker);
}

/* The next pass; NULL: there is none. */
static GjPass *
take_pass(GjPasses *passes)
{
	GjTeam	   *team = passes->partition->team;
	GjPass	   *pass;

	pthread_mutex_lock(&team->lock);
	pass = passes->first;
	if (pass)
	{
		passes->first = pass->next;
		passes->nrun++;
	}
	pthread_mutex_unlock(&team->lock);
	return pass;
}

/* Takes passes until there are no more. */
static GjStatus
run_passes(GjWorker *worker, GjTask *task)
{
	GjTeam	   *team = worker->team;
	GjPasses   *passes = state_of(team);
	GjPass	   *pass;

	while ((pass = take_pass(passes)))
	{
		bool		too_large = false;
		GjStatus	status = run_pass(passes->partition, worker, pass, &too_large);

		if (!too_large || status != GJ_OK)
		{
			free(pass);
			GJ_TRY(status);
			continue;
		}
		pthread_mutex_lock(&team->lock);
		passes->nrun--;
		status = put_halves(passes, pass);
		/* others may have run out of passes already: this worker takes both */
		pthread_mutex_unlock(&team->lock);
		GJ_TRY(status);
	}
	return GJ_OK;
}

/* Takes all build sides, which are expected to fit. */
static GjStatus
load_all(GjWorker *worker, GjTask *task)
{
	GjTeam	   *team = worker->team;
	GjPasses   *passes = state_of(team);
	GjPass		all = {.end_part = passes->partition->nparts};
	GjStatus	status;

	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
		all.end[s] = UINT32_MAX;
	status = load_build_sides(passes->partition, worker, &all);
	if (status == GJ_OUT_OF_MEMORY && team->program->fail_point != GJ_FAIL_MEMORY)
	{
		pthread_mutex_lock(&team->lock);
		passes->too_large = true;
		pthread_mutex_unlock(&team->lock);
		return GJ_OK;
	}
	GJ_TRY(status);
	if (gj_run_complete(worker->run))
		__atomic_store_n(&team->signals.complete, true, __ATOMIC_RELAXED);
	return GJ_OK;
}

/* ---- in the session's thread */

static GjStatus
chunk(GjTeam *team, uint32_t source, uint32_t nrows, uint8_t *memory, uint32_t slot)
{
	GJ_TRY(gj_input_chunk(team, source));
	return gj_partition_chunk(state_of(team)->partition, source, nrows, memory, slot);
}

/* Nothing is resident, as far as the run is concerned. */
static GjStatus
ask(GjTeam *team, const uint8_t *memory, const GjAnswers *answers)
{
	GjAnswered	nothing = {0, 0};
	GjAsk		ask;
	uint8_t    *out;
	uint32_t	nbytes;

	memcpy(&ask, memory, sizeof(ask));
	nothing.next = ask.nfragments;
	GJ_TRY(gj_partition_flush(state_of(team)->partition, 0));
	GJ_TRY(gj_team_drain(team));
	GJ_TRY(answers->space(answers->arg, &out, &nbytes));
	memcpy(out, &nothing, sizeof(nothing));
	answers->answered(answers->arg, sizeof(nothing));
	return GJ_OK;
}

static GjStatus
work(GjTeam *team)
{
	/* more may have come by now: all are read when the run is flushed */
	GJ_TRY(gj_partition_flush(state_of(team)->partition, GJ_MANY_CHUNKS));
	return gj_team_serve(team);
}

static GjStatus
flush(GjTeam *team)
{
	GJ_TRY(gj_partition_flush(state_of(team)->partition, 0));
	return gj_team_serve(team);
}

static void
close(GjTeam *team)
{
	GjPasses   *passes = state_of(team);

	gj_partition_close(passes->partition);
	free(passes->marks);
	while (passes->first)
	{
		GjPass	   *next = passes->first->next;

		free(passes->first);
		passes->first = next;
	}
	for (uint32_t i = 0; i < team->nworkers; i++)
		if (passes->staging[i].segment)
			gj_segment_put(passes->staging[i].segment);
	gj_replicate_close(team);
}

/* All build sides are on every device: probe chunks go to whichever is free. */
static const GjStrategyOps whole_ops = {
	.worker = &gj_plain_worker,.leave = gj_worker_leave,.stays_open = true,
	.accepts = gj_input_accepts,.chunk = gj_replicate_chunk,.ask = ask,.use = gj_replicate_use,
	.source_end = gj_replicate_source_end,.complete = gj_replicate_complete,
	.work = gj_team_serve,.flush = gj_team_serve,
	.finish = gj_replicate_finish,.error = gj_replicate_error,.close = close
};

/* Gives all devices the build sides.  *fit: they have them; the strategy is another one then. */
static GjStatus
load_whole(GjTeam *team, bool *fit)
{
	GjPasses   *passes = state_of(team);

	GJ_TRY(gj_team_for_all(team, load_all, 0));
	*fit = !passes->too_large;
	for (uint32_t i = 0; i < team->nworkers && !*fit; i++)
		GJ_TRY(gj_worker_close_run(&team->workers[i]));
	if (!*fit)
		return GJ_OK;
	gj_partition_free_build(passes->partition);
	pthread_mutex_lock(&team->lock);
	team->strategy.ops = &whole_ops;
	pthread_mutex_unlock(&team->lock);
	return GJ_OK;
}

/* All build sources have come: decides how to go on. */
static GjStatus
build_end(GjTeam *team)
{
	GjPartition *partition = state_of(team)->partition;
	uint64_t	need = gj_partition_need(partition);
	bool		fit = false;

	partition->budget = gj_partition_budget(team);
	if (need <= partition->budget)
	{
		GJ_TRY(load_whole(team, &fit));
		if (fit)
			return GJ_OK;
		partition->budget = need / 2;
	}
	return gj_partition_split(partition, need);
}

/* Makes passes, and runs them. */
static GjStatus
run_all(GjTeam *team, bool by_marks)
{
	GjStatus	status;

	pthread_mutex_lock(&team->lock);
	status = make_passes(state_of(team), by_marks);
	pthread_mutex_unlock(&team->lock);
	GJ_TRY(status);
	return gj_team_for_all(team, run_passes, 0);
}

/* The probe source has come. */
static GjStatus
probe_end(GjTeam *team)
{
	GjPasses   *passes = state_of(team);

	if (gj_partition_marks_rows(passes->partition))
	{
		passes->marks = calloc(passes->partition->probe_parts[0].nrows + 1, 1);
		if (!passes->marks)
			return GJ_OUT_OF_HOST_MEMORY;
	}
	GJ_TRY(run_all(team, false));
	if (passes->marks)
		GJ_TRY(run_all(team, true));
	__atomic_store_n(&team->signals.complete, true, __ATOMIC_RELAXED);
	return GJ_OK;
}

static GjStatus
source_end(GjTeam *team, uint32_t source)
{
	GJ_TRY(gj_input_end(team, source));
	GJ_TRY(gj_partition_flush(state_of(team)->partition, 0));
	if (source == 0)
		return probe_end(team);
	return gj_input_build_ended(team) ? build_end(team) : GJ_OK;
}

/* Each pass has ended its run. */
static GjStatus
finish(GjTeam *team, GjRunStats *stats)
{
	GJ_TRY(gj_team_drain(team));
	GJ_TRY(gj_gather(team, stats));
	stats->npasses = state_of(team)->nrun;
	return GJ_OK;
}

static const GjStrategyOps passes_ops = {
	.worker = &gj_plain_worker,.leave = gj_worker_leave,.stays_open = false,
	.accepts = gj_input_accepts,.chunk = chunk,.ask = ask,.use = gj_replicate_use,
	.source_end = source_end,.complete = gj_replicate_complete,.work = work,.flush = flush,
	.finish = finish,.error = gj_replicate_error,.close = close
};

GjStatus
gj_passes_open(GjTeam *team, GjErrorText *why)
{
	GjPasses   *passes = calloc(1, sizeof(GjPasses));
	GjStatus	status;

	if (!passes)
		return GJ_OUT_OF_HOST_MEMORY;
	passes->partition = gj_partition_open(team, &status, why);
	if (!passes->partition)
	{
		free(passes);
		return status;
	}
	team->strategy = (GjStrategy) {&passes_ops, passes};
	return gj_workers_start(team);
}
