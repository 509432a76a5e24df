/*
 * kept_rows.c
 *	  Rows that another run has left on the device: read in place by the joins, or copied to a build
 *	  side.
 */
#include "intake.h"

GjStatus
gj_run_take_rows(GjRun *run, uint32_t source, const GjKeptRows *kept)
{
	const GjRelation *from = &kept->relation;
	GjColumn	columns[GJ_MAX_COLUMNS];
	GjRelation *to = &run->relation[source];

	GJ_TRY(gj_run_may_load(run, source));
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_TRANSFER);
	gj_relation_columns(from, 0, columns);
	/* what is built of them is made of more than fragments */
	run->intake->resident[source].nchunk_rows += from->nrows;
	if (source > 0 && to->nrows == 0)
		to->hint = from->nrows;
	for (uint64_t first = 0, n; first < from->nrows; first += n)
	{
		GjRowRange	range = {(uint32_t) first};
		GjRows		rows = {.source = source,.columns = columns,.ranges = &range,.nranges = 1,
			.heap = from->heap.memory,.heap_used = from->heap_used,.stay = true};

		GJ_STOP_CHECK(run);
		if (source == 0)
			GJ_TRY(gj_run_fail_points(run));
		/* a build side takes the bytes of all references with the first rows */
		n = from->nrows - first;
		if (source == 0 && n > GJ_MAX_TUPLES)
			n = GJ_MAX_TUPLES;
		range.end = (uint32_t) (first + n);
		run->stats.source[source].rows_in += n;
		GJ_TRY(gj_source_rows(run, &rows));
	}
	GJ_TRY(gj_run_send_many(run, source));
	return gj_fused_flush(run);
}
