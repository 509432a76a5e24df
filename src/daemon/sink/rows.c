/*
 * rows.c
 *	  Rows: the tuples of each view go out as batches at once.
 */
#include "internal.h"

uint32_t
gj_rows_plan(GjRun *run)
{
	const GjProgram *p = run->program;
	const uint32_t *outputs = gj_program_array(p, uint32_t, outputs);
	const GjSortKey *sort_keys = gj_program_array(p, GjSortKey, sort_keys);
	uint32_t	needed = 0;

	for (uint32_t i = 0; i < p->noutputs; i++)
		needed |= gj_run_reads_column(run, outputs[i]);
	for (uint32_t i = 0; i < p->nsort_keys; i++)
		needed |= gj_run_reads_expr(run, sort_keys[i].index);
	return needed;
}

GjStatus
gj_run_output_rows(GjRun *run, const GjView *view)
{
	GjBatchTarget target = {.layout = run->output.layout,.places = run->output.places};

	for (uint32_t first = 0, n; first < view->nrows; first += n)
	{
		GJ_TRY(gj_run_next_slot(run, &target.slot));
		GJ_TRY(run->work.ops->columns->gather(run->work.queue, view, first, view->nrows - first,
									 &target, &n));
		GJ_TRY(gj_run_send(run, n, gj_run_batch_bytes(target.slot, n, run->output.types,
													  run->output.ncolumns)));
	}
	return GJ_OK;
}

const GjSinkOps gj_sink_rows = {
	.name = "rows",
	.joins = true,.spreads = true,
	.returns_rows = true,.in_batches = true,
	.plan = gj_rows_plan,.tuple_bytes = gj_sink_no_bytes,.push = gj_run_output_rows,
	.finish = gj_sink_only_waits,.free = gj_sink_frees_nothing
};
