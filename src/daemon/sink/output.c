/*
 * output.c
 *	  What becomes of the tuples that have passed all steps: aggregates or batches.
 */
#include "daemon/run/state.h"

#include <string.h>

GjStatus
gj_run_next_slot(GjRun *run, uint8_t **slot)
{
	GJ_STOP_CHECK(run);
	if (run->host->output_ready && run->host->output_ready(run->host->arg))
		GJ_TRY(run->intake_ops->free_slots(run));
	else
		GJ_TRY(run->intake_ops->rest(run));
	GJ_TRY(run->host->output_slot(run->host->arg, slot));
	run->work.ops->phase(run->work.queue, GJ_PHASE_RETURN);
	return GJ_OK;
}

/* Sends the slot that was filled last. */
GjStatus
gj_run_send(GjRun *run, uint32_t nrows, uint64_t nbytes)
{
	run->stats.bytes_out += nbytes;
	run->stats.rows_out += nrows;
	GJ_TRY(run->host->send_batch(run->host->arg, nrows));
	if (gj_run_fails_at(run, GJ_FAIL_OUTPUT))
		return gj_run_fail(run, GJ_DEVICE_ERROR, "injected after a batch");
	return GJ_OK;
}

GjStatus
gj_run_send_states(GjRun *run, const GjAggState *states, uint32_t n)
{
	uint8_t    *slot;

	GJ_TRY(gj_run_next_slot(run, &slot));
	memcpy(slot, states, n * sizeof(GjAggState));
	return gj_run_send(run, 1, n * sizeof(GjAggState));
}

uint64_t
gj_run_batch_bytes(const uint8_t *slot, uint32_t nrows, const GjColumnType *types,
				   uint32_t ncolumns)
{
	GjSlotHeader header;
	uint64_t	nbytes;

	memcpy(&header, slot, sizeof(header));
	nbytes = header.heap_used;
	for (uint32_t i = 0; i < ncolumns; i++)
		nbytes += (uint64_t) nrows * (types[i].width + (gj_slot_has_nulls(slot)[i] ? 1 : 0));
	return nbytes;
}

GjStatus
gj_run_output_rows(GjRun *run, const GjView *view)
{
	GjBatchTarget target = {.layout = run->output_layout,.places = run->output_places};

	for (uint32_t first = 0, n; first < view->nrows; first += n)
	{
		GJ_TRY(gj_run_next_slot(run, &target.slot));
		GJ_TRY(run->work.ops->gather(run->work.queue, view, first, view->nrows - first,
									 &target, &n));
		GJ_TRY(gj_run_send(run, n, gj_run_batch_bytes(target.slot, n, run->output_types,
													  run->noutputs)));
	}
	return GJ_OK;
}

GjStatus
gj_run_output(GjRun *run, const GjView *view)
{
	if (run->program->output == GJ_OUTPUT_ROWS && gj_program_is_sorted(run->program))
		return gj_run_sort(run, view);
	if (run->program->output == GJ_OUTPUT_ROWS)
		return run->program->limit > 0 ? gj_run_limit(run, view) : gj_run_output_rows(run, view);
	run->work.ops->phase(run->work.queue, GJ_PHASE_AGGREGATE);
	if (run->program->output == GJ_OUTPUT_GROUPS)
		return gj_run_group(run, view);
	return run->work.ops->aggregate(run->work.queue, view);
}
