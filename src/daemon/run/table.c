/*
 * table.c
 *	  Joins by tables of the build side: hashed, or sorted for sort-merge joins.
 *
 * A probe counts the pairs of all tuples at once; then pairs are written by number, any range of
 * them.
 */
#include "state.h"

/* Describes pairs that are going to be written, their number but for; out: where to. */
static void
describe_pairs(const GjRunStep *rs, const GjView *view, GjView *pairs,
			   uint32_t *out[GJ_MAX_SOURCES])
{
	memset(pairs, 0, sizeof(*pairs));
	pairs->columns = view->columns;
	pairs->no_row = view->no_row;
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
	{
		out[s] = rs->expand >> s & 1 ? rs->pairs.rowid[s].memory : NULL;
		pairs->rowid[s] = out[s];
	}
}

/* Writes the next n pairs of a step as a view. */
static GjStatus
expand_pairs(GjRun *run, GjRunStep *rs, const GjView *view, uint64_t cursor, uint32_t n,
			 GjView *pairs)
{
	GjWork	   *work = &run->work;
	uint32_t   *out[GJ_MAX_SOURCES];

	describe_pairs(rs, view, pairs, out);
	pairs->nrows = n;
	if (rs->expand == 0)
		return GJ_OK;
	return work->ops->tables->hash_expand(work->queue, &rs->table, view, rs->probe.offset.memory,
								  rs->probe.first.memory, cursor, n, rs->step->source, out);
}

static GjStatus
probe_step(GjRun *run, GjRunStep *rs, const GjView *view, uint64_t *total)
{
	GjWork	   *work = &run->work;
	GjKeys		keys;

	*total = 0;
	work->ops->queues->phase(work->queue, GJ_PHASE_PROBE);
	if (rs->table.nrows > 0)
	{
		GJ_TRY(gj_run_probe_keys(run, rs, view, &keys));
		if (rs->join->hashes)
			GJ_TRY(work->ops->tables->hash_probe(work->queue, &rs->table, &keys,
												 rs->probe.offset.memory,
										 rs->probe.first.memory, total));
		else
			GJ_TRY(work->ops->tables->sort_probe(work->queue, &rs->table, &keys, &rs->match,
										 rs->probe.offset.memory, rs->probe.first.memory, total));
	}
	return gj_match_probed(run, rs, view->nrows, *total);
}

/* All pairs of a probe, piece by piece: to the next step, or only looked at. */
static GjStatus
join_pairs(GjRun *run, uint32_t i, const GjView *view, uint64_t total)
{
	GjRunStep  *rs = &run->steps[i];

	for (uint64_t cursor = 0; cursor < total;)
	{
		uint64_t	left = total - cursor;
		uint32_t	n = left < run->tuples.most ? (uint32_t) left : run->tuples.most;
		GjView		pairs;

		GJ_STOP_CHECK(run);
		run->work.ops->queues->phase(run->work.queue, GJ_PHASE_PROBE);
		GJ_TRY(gj_run_make_room(run, i + 1, &n));
		GJ_TRY(expand_pairs(run, rs, view, cursor, n, &pairs));
		if (rs->residual >= 0)
			GJ_TRY(gj_run_filter_pairs(run, rs, view->nrows, cursor, &pairs));
		if (gj_step_makes_pairs(rs->step))
			GJ_TRY(gj_run_pass_on(run, i, &pairs));
		cursor += n;
	}
	return GJ_OK;
}

/*
 * True if tuples of the step have one pair at most, and nothing but the pairs is asked for: then
 * they are found and written at once.
 */
static bool
joins_at_once(const GjRun *run, const GjRunStep *rs)
{
	if (!run->work.ops->tables->joins_unique || rs->table.max_count != 1 || rs->table.nrows == 0 ||
		rs->step->join_type != GJ_JOIN_INNER || rs->expand == 0)
		return false;
	return rs->join->hashes ||
		(rs->match.nkeys == rs->table.keys.nkeys && !rs->match.has_low && !rs->match.has_high);
}

/* Joins tuples by such a step; *done: false if there is no room for as many pairs. */
static GjStatus
join_at_once(GjRun *run, uint32_t i, const GjView *view, bool *done)
{
	GjRunStep  *rs = &run->steps[i];
	GjWork	   *work = &run->work;
	uint32_t   *out[GJ_MAX_SOURCES];
	uint32_t	n = view->nrows;
	GjView		pairs;
	GjKeys		keys;

	GJ_TRY(gj_run_make_room(run, i + 1, &n));
	*done = n == view->nrows;
	if (!*done)
		return GJ_OK;
	work->ops->queues->phase(work->queue, GJ_PHASE_PROBE);
	GJ_TRY(gj_run_probe_keys(run, rs, view, &keys));
	describe_pairs(rs, view, &pairs, out);
	GJ_TRY(work->ops->tables->join_unique(work->queue, &rs->table, &keys, &rs->match, view,
								  rs->step->source, out, &pairs.nrows));
	if (rs->residual >= 0 && pairs.nrows > 0)
		GJ_TRY(gj_run_filter_pairs(run, rs, view->nrows, 0, &pairs));
	return gj_run_pass_on(run, i, &pairs);
}

/* Joins tuples by looking them up in the table of a step. */
static GjStatus
join_by_table(GjRun *run, uint32_t i, const GjView *view)
{
	GjRunStep  *rs = &run->steps[i];
	bool		counts = gj_step_only_counts(run, i);
	uint64_t	total;

	if (!counts && joins_at_once(run, rs))
	{
		bool		done;

		GJ_TRY(join_at_once(run, i, view, &done));
		if (done)
			return GJ_OK;
	}
	GJ_TRY(probe_step(run, rs, view, &total));
	if (counts)
	{
		run->stats.step[i].rows_out += total;
		run->output.counted += (int64_t) total;
		return GJ_OK;
	}
	if (!gj_step_makes_pairs(rs->step) && rs->residual < 0)
		return GJ_OK;
	return join_pairs(run, i, view, total);
}

/* Keys, then the range: as every step has them. */
static bool
plan(GjRun *run, GjRunStep *rs)
{
	return true;
}

static void
free_table(GjWork *work, GjRunStep *rs)
{
	if (rs->built)
		work->ops->tables->hash_free(work->queue, &rs->table);
	gj_lease_give(work->lease, rs->table_bytes);
}

const GjJoinOps gj_join_hash = {
	.name = "hash",
	.hashes = true,.numbers_pairs = true,
	.plan = plan,.planned = gj_join_is_planned,.build = gj_table_build,.improve = gj_table_improve,
	.join = join_by_table,.end = gj_join_has_ended,.free = free_table
};

const GjJoinOps gj_join_sort_merge = {
	.name = "sort-merge",
	.numbers_pairs = true,
	.plan = plan,.planned = gj_join_is_planned,.build = gj_table_build,.improve = gj_table_improve,
	.join = join_by_table,.end = gj_join_has_ended,.free = free_table
};
