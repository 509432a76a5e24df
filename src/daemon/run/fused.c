/*
 * fused.c
 *	  The fused pass: probe rows go through filter, steps and aggregates in one call of the
 *	  device.
 *
 * It is possible where a tuple has at most one match in every step (hash joins over unique keys,
 * semi and anti joins), and where the output is aggregates or groups.  Right and full joins mark
 * build rows that have a match; those without one follow by themselves (run/match.c).  A right semi
 * or right anti join is its end: build rows are marked, and nothing else.  When all build sides are
 * built, the run decides once whether it is possible, and makes the plan for the device
 * (run/fused_plan.c).  Otherwise the steps run one by one (run/probe.c).
 *
 * Rows are added as parts, wherever they lie, and pass together: those of many resident fragments
 * in one call.
 *
 * Groups: the device adds tuples of known groups to the aggregates.  It returns all other tuples,
 * and the sink groups them as without a fused pass (sink/group.c), so that their groups are known
 * from then on.  The first calls have few rows, since all of these come back.  The fewer come
 * back, the more rows the next call takes.  If most keep coming back, the run stops using the
 * fused pass.  Where groups are those of the rows of a right join, they are made beforehand.
 */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "device/fused_rows.h"

/* Rows are cut at multiples of this: a part that starts anywhere cannot be read by 16 bytes. */
#define GJ_FUSED_CUT		32
/* Rows of one call. */
#define GJ_FUSED_ROWS		(128u * 1024 * 1024)
/* The same where many tuples may come back, and before there is any group. */
#define GJ_FUSED_GROUP_ROWS (16u * 1024 * 1024)
#define GJ_FUSED_FIRST_ROWS (64u * 1024)
/* If no more of them came back from a call, not many will from one of any size. */
#define GJ_FUSED_FEW		(32u * 1024)
/* Where groups are so few, and there is this much more memory than the tuples need: more rows. */
#define GJ_FUSED_FEW_GROUPS 65536
#define GJ_FUSED_SPARE		16
/* The same of any number of rows. */
#define GJ_FUSED_LEAST_SPARE 4
/* Bytes of lists of tuples, a row and slot: two lists with some room to spare. */
#define GJ_FUSED_LISTS		(2 * 5)
/* Columns of all parts of a call, which are described to the device anew each time. */
#define GJ_FUSED_DESCRIBED	(256 * 1024)
/* Groups of more of the first tuples, on average, are few. */
#define GJ_FUSED_GROUP_TUPLES 16
/* While most tuples come back, and are groups of their own, each call has so many times more rows. */
#define GJ_FUSED_GROWTH		8
/* That many calls of which most tuples came back are too many. */
#define GJ_FUSED_MAX_BAD	4
/* A call takes all rows that are left, if they exceed its own by one part in so many at most. */
#define GJ_FUSED_LAST_PART	4

/* True if a probe column's values go with tuples that come back: the sink reads them. */
static bool
takes_values(const GjRun *run, uint32_t c)
{
	return run->output.columns[run->sources[0].first_column + c];
}

/* True if tuples that come back can have the values of the probe columns with them. */
static bool
can_take_values(const GjRun *run)
{
	return run->sources[0].ncolumns <= GJ_FUSED_PROBE && run->intake_ops->has_probe_columns(run);
}

/*
 * Finds where references of tuples that come back start in memory, if these columns' do, too, and
 * those of the parts so far; false: too far away for one reference.
 */
static bool
heaps_are_near(GjRun *run, const GjColumn *columns)
{
	GjRunFused *fused = run->fused;
	const uint8_t *low[GJ_FUSED_PROBE];

	if (!fused->missed.together)
		return true;
	for (uint32_t c = 0; c < run->sources[0].ncolumns; c++)
	{
		const uint8_t *high = columns[c].heap;

		low[c] = high;
		if (columns[c].kind != GJ_REF || !takes_values(run, c))
			continue;
		if (fused->nparts > 0)
		{
			low[c] = high < fused->missed.heap[c] ? high : fused->missed.heap[c];
			high = high > fused->last_heap[c] ? high : fused->last_heap[c];
			/* half is for the offsets in them */
			if ((uint64_t) (high - low[c]) > gj_ref_offset(UINT64_MAX) / 2)
				return false;
		}
		fused->last_heap[c] = high;
	}
	memcpy(fused->missed.heap, low, run->sources[0].ncolumns * sizeof(low[0]));
	return true;
}

bool
gj_fused_fits(GjRun *run)
{
	GjRunFused *fused = run->fused;

	if (fused)
		return !fused->off;
	fused = calloc(1, sizeof(GjRunFused));
	if (!fused)
		return false;
	run->fused = fused;
	fused->columns = malloc(((size_t) GJ_FUSED_PARTS * run->sources[0].ncolumns + 1) *
							sizeof(GjColumn));
	fused->off = !fused->columns || run->tuples.marks.flags || run->nsteps > GJ_FUSED_STEPS;
	if (fused->off)
		return false;
	gj_fused_choose_order(run, fused);
	fused->off = !gj_fused_make_plan(run, &fused->plan);
	fused->missed.together = can_take_values(run);
	return !fused->off;
}

bool
gj_fused_wants_codes(const GjRun *run)
{
	return run->fused && run->fused->many_groups;
}

/* True if tuples come out that are to be grouped. */
static bool
makes_groups(const GjRun *run)
{
	const GjFusedPlan *plan = &run->fused->plan;

	return run->sink->has_groups &&
		(plan->nsteps == 0 || !gj_fused_ends(plan->steps[plan->nsteps - 1].join_type));
}

/* ---- groups that are known before */

/* Sources that the group keys read. */
static uint32_t
sources_of_keys(const GjRun *run)
{
	const GjGroupKey *keys = gj_program_array(run->program, GjGroupKey, group_keys);
	uint32_t	sources = 0;

	for (uint32_t k = 0; k < run->program->ngroup_keys; k++)
		sources |= keys[k].how <= GJ_GROUP_FLOAT ? gj_expr_sources(run->program, keys[k].index) :
			1u << run->types[keys[k].index].source;
	return sources;
}

/*
 * True if each row of the last step's side is sure to come out, with a match or without, and makes
 * a group, which depends on nothing else.  Other runs may let it come out, too: it has to be the
 * only one.
 */
static bool
knows_groups(const GjRun *run)
{
	const GjRunStep *last;
	uint32_t	source;

	if (run->nsteps == 0 || !makes_groups(run) || gj_run_form(run) != GJ_FORM_FINAL)
		return false;
	last = &run->steps[run->nsteps - 1];
	source = last->step->source;
	return (last->step->join_type == GJ_JOIN_RIGHT || last->step->join_type == GJ_JOIN_FULL) &&
		last->step->filter < 0 && last->unmatched.row_matched.memory &&
		run->relation[source].nrows <= run->sources[0].nrows_hint &&
		sources_of_keys(run) == 1u << source;
}

/*
 * The first rows have come.  Where the groups can be made before them, no tuple of such a group
 * comes back, and the first calls may be as large as any.
 */
static GjStatus
start(GjRun *run)
{
	GjRunFused *fused = run->fused;

	if (fused->started)
		return GJ_OK;
	fused->started = true;
	if (!knows_groups(run))
		return GJ_OK;
	GJ_TRY(gj_match_make_groups(run, run->nsteps - 1));
	fused->few_missed = true;
	return GJ_OK;
}

/* ---- tuples that have no group yet */

/* Sources whose row ids the output reads. */
static uint32_t
sources_out(const GjRun *run)
{
	return run->nsteps > 0 ? run->steps[run->nsteps - 1].out : 1;
}

/* Room for the tuples of n rows that come back. */
static GjStatus
reserve_missed(GjRun *run, uint32_t i, uint32_t n)
{
	GjRunFused *fused = run->fused;

	for (uint32_t slot = 0; slot <= run->nsteps; slot++)
	{
		uint32_t	source = slot == 0 ? 0 : fused->plan.steps[slot - 1].source;

		if (!(sources_out(run) >> source & 1) || (slot == 0 && fused->missed.together))
			continue;
		GJ_TRY(gj_buffer_reserve(&run->work, &fused->missed_rows[slot],
								 (uint64_t) n * sizeof(uint32_t)));
		fused->missed.rowid[slot] = fused->missed_rows[slot].memory;
	}
	for (uint32_t c = 0; fused->missed.together && c < run->sources[0].ncolumns; c++)
	{
		uint32_t	width = run->types[run->sources[0].first_column + c].width;

		if (!takes_values(run, c))
			continue;
		GJ_TRY(gj_buffer_reserve(&run->work, &fused->missed_data[c], (uint64_t) n * width));
		GJ_TRY(gj_buffer_reserve(&run->work, &fused->missed_nulls[c], n));
		fused->missed.data[c] = fused->missed_data[c].memory;
		fused->missed.nulls[c] = fused->missed_nulls[c].memory;
	}
	return GJ_OK;
}

static void
free_missed(GjRun *run, uint32_t i)
{
	GjRunFused *fused = run->fused;

	for (uint32_t slot = 0; slot <= GJ_FUSED_STEPS; slot++)
	{
		gj_buffer_free(&run->work, &fused->missed_rows[slot]);
		fused->missed.rowid[slot] = NULL;
	}
	for (uint32_t c = 0; c < GJ_FUSED_PROBE; c++)
	{
		gj_buffer_free(&run->work, &fused->missed_data[c]);
		gj_buffer_free(&run->work, &fused->missed_nulls[c]);
	}
}

/* Describes the probe columns of the part's tuples that came back, from one of them on. */
static GjStatus
describe_missed(GjRun *run, uint32_t p, uint32_t done, GjView *view)
{
	GjRunFused *fused = run->fused;
	const GjSource *probe_side = &run->sources[0];
	GjColumn   *to = run->columns + probe_side->first_column;

	for (uint32_t c = 0; c < probe_side->ncolumns; c++)
	{
		to[c] = fused->part[p].columns[c];
		if (!fused->missed.together || !takes_values(run, c))
			continue;
		to[c].data = fused->missed.data[c] + (uint64_t) done * to[c].width;
		to[c].heap = fused->missed.heap[c];
		to[c].nulls = fused->missed.nulls[c] + done;
		to[c].packed = to[c].narrow = 0;
		to[c].answers = NULL;
	}
	return gj_run_set_columns(run, &view->columns);
}

/* Groups tuples of part p that came back, as ever. */
static GjStatus
group_missed(GjRun *run, uint32_t p)
{
	GjRunFused *fused = run->fused;
	GjView		view = {.no_row = fused->plan.no_row};

	for (uint32_t done = 0; done < fused->missed.n[p]; done += view.nrows)
	{
		uint32_t	left = fused->missed.n[p] - done;

		GJ_STOP_CHECK(run);
		if (done == 0 || fused->missed.together)
			GJ_TRY(describe_missed(run, p, done, &view));
		view.nrows = left < run->tuples.most ? left : run->tuples.most;
		for (uint32_t slot = 0; slot <= run->nsteps; slot++)
		{
			uint32_t	source = slot == 0 ? 0 : fused->plan.steps[slot - 1].source;

			if (fused->missed.rowid[slot])
				view.rowid[source] = fused->missed.rowid[slot] + fused->missed.first[p] + done;
		}
		GJ_TRY(run->sink->push(run, &view));
	}
	return GJ_OK;
}

/* Finds out by the tuples of the first call, all of which came back, whether groups are many. */
static void
note_groups(GjRun *run, uint64_t ntuples)
{
	const GjGroups *groups = run->sink->groups(run);

	run->fused->many_groups = groups && ntuples / GJ_FUSED_GROUP_TUPLES <= groups->rows.nrows;
}

/*
 * Rows of the next call after one from which n tuples came back; 0: no limit.  A tuple of a known
 * group is cheaper than one that comes back.  So while most do, calls stay small until their groups
 * are known: of 20 M rows in 4 M groups 9 M come back, and not 20 M.
 */
static uint32_t
grow_call(GjRun *run, uint64_t n)
{
	const GjRunFused *fused = run->fused;
	const GjGroups *groups = run->sink->groups(run);
	uint64_t	rows = (uint64_t) fused->nrows * GJ_FUSED_GROWTH;

	/* bytes of a group are compared as slowly as its tuples come back */
	if (!groups || groups->heap_end || groups->rows.nrows < n / GJ_FUSED_GROWTH ||
		n <= GJ_FUSED_FEW || n <= fused->nrows / 2 || rows >= GJ_FUSED_GROUP_ROWS)
		return 0;
	return (uint32_t) rows;
}

/* Groups what came back, and finds out whether it was too much. */
static GjStatus
take_missed(GjRun *run, bool first)
{
	GjRunFused *fused = run->fused;
	bool		grew = fused->growing_rows > 0;
	uint64_t	n = 0;

	for (uint32_t p = 0; p < fused->nparts; p++)
	{
		n += fused->missed.n[p];
		if (fused->missed.n[p] > 0)
			GJ_TRY(group_missed(run, p));
	}
	fused->few_missed = n <= GJ_FUSED_FEW && n <= fused->nrows / 2;
	if (first)
		note_groups(run, n);
	if (!first && !grew && n > fused->nrows / 2 && ++fused->nbad >= GJ_FUSED_MAX_BAD)
		fused->off = true;
	fused->growing_rows = grow_call(run, n);
	return GJ_OK;
}

/* ---- rows */

/* Bytes of one tuple that can come back. */
static uint64_t
missed_bytes(const GjRun *run)
{
	const GjSource *probe_side = &run->sources[0];
	uint64_t	nbytes = (uint64_t) __builtin_popcount(sources_out(run)) * sizeof(uint32_t);

	for (uint32_t c = 0; run->fused->missed.together && c < probe_side->ncolumns; c++)
		if (takes_values(run, c))
			nbytes += run->types[probe_side->first_column + c].width + 1;
	return nbytes;
}

/* n, but from low to high. */
static uint32_t
clamp(uint64_t n, uint32_t low, uint32_t high)
{
	return n < low ? low : n > high ? high : (uint32_t) n;
}

/*
 * Rows of a call whose tuples can come back.  Each call takes some time of its own: all rows at
 * once if there is room for all of their tuples.  But tuples that may never come back must not
 * take what groups need.
 */
static uint32_t
rows_with_groups(GjRun *run, const GjGroups *groups)
{
	GjRunFused *fused = run->fused;

	if ((!groups || groups->rows.nrows == 0) && !fused->few_missed && !run->arrival.coded)
		return GJ_FUSED_FIRST_ROWS;
	if (fused->group_rows == 0)
	{
		uint64_t	fit = gj_lease_free(run->work.lease) / (missed_bytes(run) + 1);

		fused->many_group_rows = clamp(fit / GJ_FUSED_LEAST_SPARE, GJ_FUSED_FIRST_ROWS,
									   GJ_FUSED_GROUP_ROWS);
		fused->group_rows = clamp(fit / GJ_FUSED_SPARE, fused->many_group_rows, GJ_FUSED_ROWS);
	}
	/* most likely none comes back */
	if (fused->few_missed || gj_fused_may_have_places(run, groups))
		return fused->group_rows;
	if (fused->growing_rows > 0 && fused->growing_rows < fused->many_group_rows)
		return fused->growing_rows;
	return groups && groups->rows.nrows > GJ_FUSED_FEW_GROUPS ? fused->many_group_rows :
		fused->group_rows;
}

/*
 * Rows of the next call, at most.  What a call of its own would take for the last few rows is more
 * than they are worth: shares of several devices are never quite equal.
 */
static uint32_t
rows_of_call(GjRun *run)
{
	GjRunFused *fused = run->fused;
	uint64_t	left = fused->nrows + run->arrival.rows_ahead;
	uint32_t	most = GJ_FUSED_ROWS;

	if (makes_groups(run))
		most = rows_with_groups(run, run->sink->groups(run));
	/* memory was short */
	if (fused->most_rows > 0 && fused->most_rows < most)
		return fused->most_rows;
	return left > most && left - most <= most / GJ_FUSED_LAST_PART ? (uint32_t) left : most;
}

/* Rows that the next call can still take. */
static uint32_t
room_for_rows(GjRun *run)
{
	uint32_t	most = rows_of_call(run);
	/* count(*) reads none */
	uint32_t	parts = GJ_FUSED_DESCRIBED / (run->program->ncolumns + 1);

	return run->fused->nparts >= (parts < GJ_FUSED_PARTS ? parts : GJ_FUSED_PARTS) ||
		run->fused->nrows >= most ? 0 : most - run->fused->nrows;
}

/* Takes the parts through; lists may take what nobody else has a use for at the time. */
static GjStatus
call_device(GjRun *run, const GjGroups *groups, GjFusedMissed *missed)
{
	GjRunFused *fused = run->fused;
	GjLease    *lease = run->work.lease;
	uint64_t	lists = (uint64_t) fused->nrows * (run->nsteps + 1) * GJ_FUSED_LISTS;
	GjStatus	status;

	if (lists > gj_lease_free(lease) || !gj_lease_take(lease, lists))
		lists = 0;
	status = run->work.ops->pass->fused(run->work.queue, &fused->plan, run->columns, fused->part,
								  fused->nparts, lists, groups, missed);
	gj_lease_give(lease, lists);
	return status;
}

/* Takes the parts through, and groups what comes back. */
static GjStatus
look_up_groups(GjRun *run, const GjGroups *groups, bool first)
{
	static const GjGroups none;

	GJ_TRY(reserve_missed(run, 0, run->fused->nrows));
	GJ_TRY(call_device(run, groups ? groups : &none, &run->fused->missed));
	return take_missed(run, first);
}

/* The same with the first rows alone, and leaves the others: all of them come back. */
static GjStatus
look_up_first(GjRun *run)
{
	GjRunFused *fused = run->fused;
	uint32_t	ncolumns = run->sources[0].ncolumns;
	uint32_t	nparts = fused->nparts;
	uint32_t	nrows = fused->nrows;
	GjFusedPart all = fused->part[0];
	uint32_t	n = all.nrows < GJ_FUSED_FIRST_ROWS ? all.nrows : GJ_FUSED_FIRST_ROWS;
	GjStatus	status;

	fused->part[0].nrows = fused->nrows = n;
	fused->nparts = 1;
	status = look_up_groups(run, NULL, true);
	gj_columns_from(fused->columns, fused->columns, ncolumns, n);
	fused->part[0].nrows = all.nrows - n;
	fused->nparts = nparts;
	fused->nrows = nrows - n;
	return status;
}

static GjStatus
run_groups(GjRun *run)
{
	const GjGroups *groups = run->sink->groups(run);
	bool		first = !groups || groups->rows.nrows == 0;
	bool		done = false;

	if (first)
		GJ_TRY(gj_fused_coded(run, &done));
	else
	{
		GJ_TRY(run->sink->take_keys(run));
		GJ_TRY(gj_fused_places(run, groups, &done));
	}
	if (done)
	{
		run->fused->few_missed = true;
		return GJ_OK;
	}
	/* the codes of all rows were of no use */
	if (first && run->arrival.coded && run->fused->nrows > GJ_FUSED_FIRST_ROWS)
	{
		GJ_TRY(look_up_first(run));
		groups = run->sink->groups(run);
		first = !groups || groups->rows.nrows == 0;
	}
	return look_up_groups(run, groups, first);
}

/* Has questions answered, and the plan use the answers where all parts have them. */
static GjStatus
answer_questions(GjRun *run)
{
	GjRunFused *fused = run->fused;
	GjFusedPlan plan;
	bool		before = fused->answered;

	GJ_TRY(gj_questions_ask(run, fused->columns, fused->nparts, &fused->answered));
	if (fused->answered == before)
		return GJ_OK;
	memset(&plan, 0, sizeof(plan));
	if (gj_fused_make_plan(run, &plan))
		fused->plan = plan;
	else
		fused->answered = before;
	return GJ_OK;
}

GjStatus
gj_fused_flush(GjRun *run)
{
	GjRunFused *fused = run->fused;
	GjStatus	status;

	if (!fused || fused->nparts == 0)
		return GJ_OK;
	GJ_STOP_CHECK(run);
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_PROBE);
	fused->ran = true;
	GJ_TRY(answer_questions(run));
	if (makes_groups(run))
		status = run_groups(run);
	else
		status = call_device(run, NULL, NULL);
	fused->nparts = 0;
	fused->nrows = 0;
	return status;
}

/* Describes rows first .. of the source's columns as the next part. */
static void
add_part(GjRun *run, const GjColumn *columns, uint32_t first, uint32_t n)
{
	GjRunFused *fused = run->fused;
	uint32_t	ncolumns = run->sources[0].ncolumns;
	GjColumn   *to = fused->columns + (size_t) fused->nparts * ncolumns;

	gj_columns_from(to, columns, ncolumns, first);
	fused->codes[fused->nparts] = run->arrival.codes ? run->arrival.codes + first : NULL;
	fused->part[fused->nparts++] = (GjFusedPart) {to, n};
	fused->nrows += n;
}

/*
 * Makes room for n more rows and their tuples; where no others are described, for all that the call
 * is to take, or for fewer, if need be than n, then told in *n, if memory is short.
 */
static GjStatus
make_room(GjRun *run, uint32_t *n)
{
	uint32_t	most = rows_of_call(run);
	uint32_t	wanted = run->arrival.rows_ahead < most ? (uint32_t) run->arrival.rows_ahead : most;
	uint32_t	fit;
	GjStatus	status;

	if (!makes_groups(run))
		return GJ_OK;
	if (run->fused->nrows > 0)
		return reserve_missed(run, 0, run->fused->nrows + *n);
	fit = wanted = wanted > *n ? wanted : *n;
	status = gj_run_fit_tuples(run, 0, &fit, reserve_missed, free_missed);
	if (fit < *n)
		*n = run->fused->most_rows = fit;
	return status;
}

GjStatus
gj_fused_rows(GjRun *run, uint32_t nrows, bool now, uint32_t *done)
{
	uint32_t	ncolumns = run->sources[0].ncolumns;
	GjColumn   *described = run->columns + run->sources[0].first_column;
	GjColumn	columns[GJ_MAX_COLUMNS];
	GjStatus	status = GJ_OK;

	gj_run_choose_max_tuples(run);
	memcpy(columns, described, ncolumns * sizeof(GjColumn));
	*done = 0;
	status = start(run);
	while (status == GJ_OK && *done < nrows && gj_fused_fits(run))
	{
		uint32_t	room = room_for_rows(run);
		uint32_t	n = nrows - *done <= room ? nrows - *done : room / GJ_FUSED_CUT * GJ_FUSED_CUT;

		if (n == 0)
		{
			status = gj_fused_flush(run);
			continue;
		}
		if (!heaps_are_near(run, columns))
		{
			status = gj_fused_flush(run);
			continue;
		}
		status = make_room(run, &n);
		if (status == GJ_OUT_OF_MEMORY && run->fused->nrows > 0)
		{
			/* what is there must pass first: it has its room */
			status = gj_fused_flush(run);
			continue;
		}
		if (status == GJ_OUT_OF_MEMORY)
		{
			/* the steps one by one do with less */
			free_missed(run, 0);
			run->fused->off = true;
			status = GJ_OK;
			break;
		}
		if (status == GJ_OK)
		{
			add_part(run, columns, *done, n);
			*done += n;
		}
	}
	if (status == GJ_OK && now)
		status = gj_fused_flush(run);
	/* what came back was described in their place */
	memcpy(described, columns, ncolumns * sizeof(GjColumn));
	return status;
}

GjStatus
gj_fused_finish(GjRun *run)
{
	uint64_t	counts[GJ_FUSED_STEPS + 1];

	if (!run->fused || !run->fused->ran)
		return GJ_OK;
	GJ_TRY(run->work.ops->pass->fused_counts(run->work.queue, counts));
	run->stats.source[0].rows_out += counts[0];
	for (uint32_t s = 0; s < run->nsteps; s++)
	{
		run->stats.step[run->fused->order[s]].rows_in += counts[s];
		run->stats.step[run->fused->order[s]].rows_out += counts[s + 1];
	}
	return GJ_OK;
}

void
gj_fused_give_room(GjRun *run)
{
	if (run->fused)
		free_missed(run, 0);
}

void
gj_fused_free(GjRun *run)
{
	gj_fused_give_room(run);
	if (!run->fused)
		return;
	free(run->fused->columns);
	free(run->fused);
	run->fused = NULL;
}
