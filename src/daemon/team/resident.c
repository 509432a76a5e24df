/*
 * resident.c
 *	  Resident fragments of a run on several devices; each fragment lies on one of them.
 *
 * Fragments of the probe side are used where they lie, by the run of that device; so are those of
 * a build side that is exchanged (strategy/exchange.c).  Those of a build side that is shared out
 * (strategy/ring.c) are, too, unless that device has more rows than others.  Fragments of all
 * other build sides go to all runs, in the same order, so that row ids are equal everywhere: they
 * are copied from device to device.
 *
 * Where a probe row takes long, as in nested loops, devices that have few rows take pages of those
 * that have many.
 *
 * All chunks of a fragment that is to be kept go to one worker, which follows from the fragment's
 * number.  So a table is spread over the devices, and a fragment that is loaded again replaces the
 * old one.
 */
#include "strategy/strategy.h"

#include <stdlib.h>
#include <string.h>

/* ---- ASK */

GjStatus
gj_team_ask_all(GjTeam *team, const uint8_t *memory, const GjAnswers *answers)
{
	GjRun	   *runs[GJ_MAX_RUN_DEVICES];
	GjAsk		ask;
	GjStatus	status;

	/*
	 * Runs must be this thread's, and the output ring nobody's: backends ask before they load, and
	 * a run that starts has neither.  But rows must not go out before all have started.
	 */
	if (team->input.started_us > 0 || team->input.ended != 0 || team->sink->returns_rows)
		GJ_TRY(gj_team_drain(team));
	for (uint32_t i = 0; i < team->nworkers; i++)
		runs[i] = team->workers[i].run;
	status = gj_runs_ask(runs, team->nworkers, memory, answers);
	if (status != GJ_OK && status != GJ_CANCELLED)
	{
		/* a run that starts may be writing its own */
		GJ_TRY(gj_team_drain(team));
		return gj_team_fail(team, status, gj_run_error(runs[0]));
	}
	memcpy(&ask, memory, sizeof(ask));
	for (uint32_t i = 0; i < team->nworkers && status == GJ_OK; i++)
		if (gj_run_has_store(runs[i], ask.source))
			team->input.asked |= 1u << ask.source;
	return status;
}

/* ---- USE */

/* The number of the worker that has a fragment; nworkers: none. */
static uint32_t
owner_of(const GjTeam *team, uint64_t id)
{
	uint32_t	i = 0;

	while (i < team->nworkers &&
		   team->workers[i].entry->info.ordinal != id >> GJ_FRAGMENT_DEVICE_SHIFT)
		i++;
	return i;
}

/* A worker's run takes fragments of its own device. */
static GjStatus
take_own(GjWorker *worker, GjTask *task)
{
	/* it was posted before anybody knew */
	if (task->source == 0 && gj_run_complete(worker->run) &&
		worker->team->strategy.ops->worker->all_complete(worker->team))
		return GJ_OK;
	worker->counts.chunks += task->source == 0 ? task->nuses : 0;
	worker->has_chunks |= !gj_run_notes_uses(worker->run, task->source);
	return gj_run_use(worker->run, task->source, task->nuses, task->uses);
}

/* It takes fragments that all use, wherever they lie; these are only noted, too. */
static GjStatus
take_all(GjWorker *worker, GjTask *task)
{
	return gj_run_use_shared(worker->run, task->source, task->shared->n, task->shared->used);
}

/* It takes some pages of a fragment of the probe side. */
static GjStatus
take_part(GjWorker *worker, GjTask *task)
{
	/* it was posted before anybody knew */
	if (gj_run_complete(worker->run) &&
		worker->team->strategy.ops->worker->all_complete(worker->team))
		return GJ_OK;
	worker->counts.chunks++;
	worker->has_chunks = true;
	return gj_run_use_part(worker->run, task->source, &task->shared->used[0], !task->shared->unnoted);
}

/* A copy of a use; its pages go to *bits, which moves behind them. */
static GjUse
copy_use(const GjUse *use, uint64_t **bits)
{
	GjUse		copy = *use;

	copy.pages = gj_copy_pages(use->pages, bits);
	return copy;
}

/* The uses of fragments that lie on the device of worker m, for its run. */
static GjStatus
use_own(GjTeam *team, uint32_t m, uint32_t source, const GjUse *uses, const uint8_t *owners,
		uint32_t n)
{
	GjTask	   *task;
	GjUse	   *own;
	uint64_t   *bits;
	uint32_t	nown = 0;
	uint32_t	npartial = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		nown += owners[i] == m;
		npartial += owners[i] == m && uses[i].pages;
	}
	if (nown == 0)
		return GJ_OK;
	task = calloc(1, sizeof(GjTask));
	own = malloc(nown * sizeof(GjUse) + npartial * GJ_PAGES_BYTES);
	if (!task || !own)
	{
		free(task);
		free(own);
		return GJ_OUT_OF_HOST_MEMORY;
	}
	*task = (GjTask) {.run = take_own,.source = source,.nuses = nown,.uses = own};
	bits = (uint64_t *) (own + nown);
	for (uint32_t i = 0; i < n; i++)
		if (owners[i] == m)
			*own++ = copy_use(&uses[i], &bits);
	gj_team_post(team, &team->workers[m].own, task);
	return GJ_OK;
}

/* Room for n uses that so many workers have, npartial of them with pages; NULL: out of memory. */
static GjSharedUses *
make_shared(uint32_t n, uint32_t npartial, uint32_t nusers)
{
	GjSharedUses *shared = malloc(sizeof(GjSharedUses) + n * (sizeof(GjUse) + sizeof(GjPinned)) +
								  npartial * GJ_PAGES_BYTES);

	if (!shared)
		return NULL;
	*shared = (GjSharedUses) {.uses = (GjUse *) (shared + 1),.nusers = nusers};
	shared->used = (GjPinned *) (shared->uses + n);
	return shared;
}

/* Hands fragments that were taken from runs to worker number `to`, or to all, for `run`. */
static GjStatus
post_to(GjTeam *team, uint32_t source, GjSharedUses *shared, int to, GjTaskRun run)
{
	const GjTask use = {.run = run,.source = source,.shared = shared};
	GjTask	   *task;

	if (to == GJ_TO_ALL)
		return gj_team_post_copies(team, &use);
	task = malloc(sizeof(GjTask));
	if (!task)
		return GJ_OUT_OF_HOST_MEMORY;
	*task = use;
	gj_team_post(team, &team->workers[to].own, task);
	return GJ_OK;
}

/* As post_to, as far as status is GJ_OK. */
static GjStatus
post_shared(GjTeam *team, uint32_t source, GjSharedUses *shared, int to, GjTaskRun run,
			GjStatus status)
{
	if (status == GJ_OK)
		status = post_to(team, source, shared, to, run);
	if (status == GJ_OK)
		return GJ_OK;
	/* no worker has got them */
	shared->nusers = 1;
	gj_team_drop_shared(team, shared, true);
	return status;
}

/* Takes the next of the fragments for all workers, which worker m has. */
static GjStatus
take_shared(GjTeam *team, uint32_t source, uint32_t m, GjSharedUses *shared)
{
	GjUse	   *use = &shared->uses[shared->n];
	GjPinned   *used = &shared->used[shared->n];

	if (!gj_run_take_fragment(team->workers[m].run, source, use->id, used))
		return gj_team_fail(team, GJ_BAD_PROGRAM, "use of a fragment that was not told of");
	used->pages = gj_use_pages(use, used->fragment);
	shared->n++;
	return GJ_OK;
}

/* Fragments for all workers. */
static GjStatus
use_shared(GjTeam *team, uint32_t source, const GjUse *uses, const uint8_t *owners, uint32_t n)
{
	GjStatus	status = GJ_OK;
	GjSharedUses *shared;
	uint64_t   *bits;
	uint32_t	npartial = 0;

	for (uint32_t i = 0; i < n; i++)
		npartial += uses[i].pages != NULL;
	shared = make_shared(n, npartial, team->nworkers);
	if (!shared)
		return GJ_OUT_OF_HOST_MEMORY;
	bits = (uint64_t *) (shared->used + n);
	for (uint32_t i = 0; i < n && status == GJ_OK; i++)
	{
		shared->uses[i] = copy_use(&uses[i], &bits);
		status = take_shared(team, source, owners[i], shared);
	}
	return post_shared(team, source, shared, GJ_TO_ALL, take_all, status);
}

/* A fragment for one worker: that which has it, unless others have fewer rows. */
static GjStatus
use_evenly(GjTeam *team, uint32_t source, const GjUse *use, uint32_t owner)
{
	GjSharedUses *shared = make_shared(1, use->pages != NULL, 1);
	uint32_t	to = owner;
	uint64_t   *bits;
	GjStatus	status;

	if (!shared)
		return GJ_OUT_OF_HOST_MEMORY;
	bits = (uint64_t *) (shared->used + 1);
	shared->uses[0] = copy_use(use, &bits);
	status = take_shared(team, source, owner, shared);
	if (status == GJ_OK)
		to = gj_input_give(team, (int) owner, shared->used[0].excluded ? 0 :
						   shared->used[0].fragment->nrows);
	return post_shared(team, source, shared, (int) to, take_all, status);
}

/* ---- USE: pages of the probe side for devices that have few rows */

#define GJ_LEAST_GIVEN		16384	/* rows of a fragment that are worth a copy */
#define GJ_MOST_GIVEN		GJ_MAX_TUPLES	/* rows that a device gets at a time */

/* Owner of a fragment that is handed out in parts. */
#define GJ_OWNED_IN_PARTS	UINT8_MAX

/* Rows of the probe side that a device has memory to copy. */
static uint64_t
room_for_rows(GjTeam *team)
{
	const GjProgram *p = team->program;
	const GjSource *source = gj_program_array(p, GjSource, sources);
	const GjColumnType *types = gj_program_array(p, GjColumnType, columns) + source->first_column;
	uint64_t	row_bytes = 1;
	uint64_t	room;

	for (uint32_t c = 0; c < source->ncolumns; c++)
	{
		/* all bytes that the references of a fragment name would be copied */
		if (types[c].kind == GJ_REF)
			return 0;
		row_bytes += types[c].width + 1;
	}
	room = gj_team_lease_left(team) / 4 / row_bytes;
	return room < GJ_MOST_GIVEN ? room : GJ_MOST_GIVEN;
}

/* Rows that each worker has more than others; negative: that it is to get. */
static void
balance(GjTeam *team, const GjUse *uses, const uint8_t *owners, uint32_t n, int64_t *more)
{
	int64_t		most = (int64_t) room_for_rows(team);
	uint64_t   *rows = team->input.probe_rows;
	uint64_t	all = 0;

	for (uint32_t i = 0; i < n; i++)
		rows[owners[i]] += gj_run_fragment_rows(team->workers[owners[i]].run, 0, uses[i].id);
	for (uint32_t i = 0; i < team->nworkers; i++)
		all += rows[i];
	for (uint32_t i = 0; i < team->nworkers; i++)
	{
		more[i] = (int64_t) rows[i] - (int64_t) (all / team->nworkers);
		if (more[i] < -most)
			more[i] = -most;
	}
}

/* The worker that is to get most. */
static uint32_t
poorest(const GjTeam *team, const int64_t *more)
{
	uint32_t	least = 0;

	for (uint32_t i = 1; i < team->nworkers; i++)
		if (more[i] < more[least])
			least = i;
	return least;
}

/* What all workers are to get. */
static uint64_t
wanted_rows(const GjTeam *team, const int64_t *more)
{
	uint64_t	wanted = 0;

	for (uint32_t i = 0; i < team->nworkers; i++)
		wanted += more[i] < 0 ? (uint64_t) -more[i] : 0;
	return wanted;
}

/* Pages of a use whose rows begin with first .. end-1 of the fragment. */
static void
cut_pages(const GjUse *use, const GjFragment *fragment, uint64_t first, uint64_t end,
		  uint64_t *pages)
{
	memset(pages, 0, GJ_PAGES_BYTES);
	for (uint32_t page = 0; page < fragment->npages; page++)
		if ((!use->pages || gj_page_is_set(use->pages, page)) &&
			fragment->pages->first_row[page] >= first && fragment->pages->first_row[page] < end)
			gj_page_set(pages, page);
}

/* Hands the pages with rows first .. end-1 to a worker, with a pin of their own. */
static GjStatus
post_part(GjTeam *team, const GjUse *use, const GjPinned *pinned, uint64_t first, uint64_t end,
		  uint32_t to)
{
	GjSharedUses *shared = make_shared(1, 2, 1);
	uint64_t   *bits;

	if (!shared)
		return GJ_OUT_OF_HOST_MEMORY;
	bits = (uint64_t *) (shared->used + 1);
	shared->uses[0] = copy_use(use, &bits);
	cut_pages(use, pinned->fragment, first, end, bits);
	shared->used[0] = *pinned;
	shared->used[0].pages = bits;
	shared->n = 1;
	/* once for all parts */
	shared->unnoted = first > 0;
	gj_resident_pin_again(pinned->fragment);
	team->input.probe_rows[to] += end - first;
	return post_shared(team, 0, shared, (int) to, take_part, GJ_OK);
}

/* Hands out the last `give` rows, about, of a fragment to workers that are to get some. */
static GjStatus
post_parts(GjTeam *team, const GjUse *use, const GjPinned *pinned, uint32_t owner, uint64_t give,
		   int64_t *more)
{
	uint64_t	nrows = pinned->fragment->nrows;

	team->input.probe_rows[owner] -= nrows;
	more[owner] -= (int64_t) give;
	if (give < nrows)
		GJ_TRY(post_part(team, use, pinned, 0, nrows - give, owner));
	for (uint64_t at = nrows - give, some; at < nrows; at += some)
	{
		uint32_t	to = poorest(team, more);

		some = (uint64_t) -more[to];
		if (nrows - at < some + GJ_LEAST_GIVEN)
			some = nrows - at;
		more[to] += (int64_t) some;
		GJ_TRY(post_part(team, use, pinned, at, at + some, to));
	}
	return GJ_OK;
}

static GjStatus
use_parts(GjTeam *team, const GjUse *use, uint32_t owner, uint64_t give, int64_t *more)
{
	GjPinned	pinned;
	GjStatus	status;

	if (!gj_run_take_fragment(team->workers[owner].run, 0, use->id, &pinned))
		return gj_team_fail(team, GJ_BAD_PROGRAM, "use of a fragment that was not told of");
	status = post_parts(team, use, &pinned, owner, give, more);
	gj_resident_give_back(&pinned.fragment->entry->memory, &pinned, NULL, 1);
	return status;
}

/* Fragments where they lie, but for what some workers have more than others. */
static GjStatus
use_in_parts(GjTeam *team, const GjUse *uses, uint8_t *owners, uint32_t n)
{
	int64_t		more[GJ_MAX_RUN_DEVICES];
	GjStatus	status = GJ_OK;

	balance(team, uses, owners, n, more);
	for (uint32_t i = 0; i < n && status == GJ_OK; i++)
	{
		uint32_t	owner = owners[i];
		uint64_t	nrows = gj_run_fragment_rows(team->workers[owner].run, 0, uses[i].id);
		uint64_t	wanted = wanted_rows(team, more);
		uint64_t	give = more[owner] > 0 ? (uint64_t) more[owner] : 0;

		give = give < nrows ? give : nrows;
		give = give < wanted ? give : wanted;
		if (give < GJ_LEAST_GIVEN)
			continue;
		status = use_parts(team, &uses[i], owner, give, more);
		owners[i] = GJ_OWNED_IN_PARTS;
	}
	for (uint32_t i = 0; i < team->nworkers && status == GJ_OK; i++)
		status = use_own(team, i, 0, uses, owners, n);
	return status;
}

GjStatus
gj_team_use_all(GjTeam *team, uint32_t source, uint32_t n, const GjUse *uses, GjTakers takers)
{
	GjStatus	status = GJ_OK;
	uint8_t    *owners;

	if (!(team->input.asked >> source & 1) || (team->input.ended >> source & 1))
		return gj_team_fail(team, GJ_BAD_PROGRAM, "use of a fragment that was not told of");
	owners = malloc(n + 1);
	if (!owners)
		return GJ_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < n && status == GJ_OK; i++)
	{
		owners[i] = (uint8_t) owner_of(team, uses[i].id);
		if (owners[i] == team->nworkers)
			status = gj_team_fail(team, GJ_BAD_PROGRAM, "use of a fragment that was not told of");
	}
	if (takers == GJ_TAKEN_BY_OWNERS)
		for (uint32_t i = 0; i < team->nworkers && status == GJ_OK; i++)
			status = use_own(team, i, source, uses, owners, n);
	else if (takers == GJ_TAKEN_IN_PARTS && status == GJ_OK)
		status = use_in_parts(team, uses, owners, n);
	else if (takers == GJ_TAKEN_EVENLY)
		for (uint32_t i = 0; i < n && status == GJ_OK; i++)
			status = use_evenly(team, source, &uses[i], owners[i]);
	else if (status == GJ_OK)
		status = use_shared(team, source, uses, owners, n);
	free(owners);
	return status == GJ_OK ? gj_team_serve(team) : status;
}

/* ---- keeping */

int
gj_team_place(GjTeam *team, uint32_t source, const uint8_t *chunk)
{
	uint32_t	place;

	/* all runs were asked the same */
	if (!(team->input.asked >> source & 1) ||
		!gj_run_place(team->workers[0].run, source, chunk, team->nworkers, &place))
		return -1;
	return (int) place;
}
