/*
 * marks.c
 *	  Which probe rows have a match, where several runs join all of them with a block each of the
 *	  build side of the first step.
 *
 * Probe rows have numbers, for they come to each run in the same order.  A run makes the pairs with
 * its block, and marks the rows that have some.  When all of these runs have ended, one more run
 * gets the probe rows, but no row of that build side: its tuples come out by the marks.
 */
#include "state.h"

#include <stdlib.h>

void
gj_run_mark_rows(GjRun *run, uint8_t *flags, bool complete)
{
	run->tuples.marks.flags = flags;
	run->tuples.marks.complete = complete;
}

static GjStatus
make_room(GjRunMarks *marks, uint32_t n)
{
	if (n <= marks->room)
		return GJ_OK;
	gj_marks_free(marks);
	marks->tuple = malloc(n);
	marks->row = malloc((size_t) n * sizeof(uint32_t));
	if (!marks->tuple || !marks->row)
		return GJ_OUT_OF_HOST_MEMORY;
	marks->room = n;
	return GJ_OK;
}

/* Number of the probe row of tuple i. */
static uint64_t
number_of(const GjRunMarks *marks, const GjView *view, uint32_t i)
{
	return marks->next + (view->rowid[0] ? marks->row[i] : i);
}

/* Copies out which rows the tuples are, if some are left out.  Does not wait. */
static GjStatus
copy_numbers(GjRun *run, const GjView *view)
{
	if (!view->rowid[0])
		return GJ_OK;
	return run->work.ops->memory->copy_out(run->work.queue, run->tuples.marks.row, view->rowid[0],
										   (size_t) view->nrows * sizeof(uint32_t));
}

/* Marks the rows of the tuples that have a match. */
static GjStatus
note(GjRun *run, const GjRunStep *rs, const GjView *view)
{
	GjRunMarks *marks = &run->tuples.marks;
	GjWork	   *work = &run->work;

	GJ_TRY(copy_numbers(run, view));
	GJ_TRY(work->ops->memory->copy_out(work->queue, marks->tuple, rs->probe.matched.memory,
									   view->nrows));
	GJ_TRY(work->ops->queues->sync(work->queue));
	/* runs on other devices mark rows, too */
	for (uint32_t i = 0; i < view->nrows; i++)
		if (marks->tuple[i])
			__atomic_store_n(&marks->flags[number_of(marks, view, i)], 1, __ATOMIC_RELAXED);
	return GJ_OK;
}

/* Gives the tuples the flags of their rows. */
static GjStatus
take(GjRun *run, const GjRunStep *rs, const GjView *view)
{
	GjRunMarks *marks = &run->tuples.marks;
	GjWork	   *work = &run->work;

	GJ_TRY(copy_numbers(run, view));
	GJ_TRY(work->ops->queues->sync(work->queue));
	for (uint32_t i = 0; i < view->nrows; i++)
		marks->tuple[i] = marks->flags[number_of(marks, view, i)];
	GJ_TRY(work->ops->memory->copy_in(work->queue, rs->probe.matched.memory, marks->tuple,
									  view->nrows));
	return work->ops->queues->sync(work->queue);
}

GjStatus
gj_marks_join(GjRun *run, const GjView *view)
{
	GjRunStep  *rs = &run->steps[0];

	GJ_TRY(make_room(&run->tuples.marks, view->nrows));
	if (run->tuples.marks.complete)
	{
		GJ_TRY(take(run, rs, view));
		return gj_match_tuples(run, 0, view);
	}
	run->stats.step[0].rows_in += view->nrows;
	GJ_TRY(rs->join->join(run, 0, view));
	return note(run, rs, view);
}

void
gj_marks_free(GjRunMarks *marks)
{
	free(marks->tuple);
	free(marks->row);
	marks->tuple = NULL;
	marks->row = NULL;
	marks->room = 0;
}
