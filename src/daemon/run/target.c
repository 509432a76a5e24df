/*
 * run/target.c
 *	  Slots of a final target: waited for, and sent.
 */
#include "state.h"

#include <assert.h>
#include <string.h>

GjStatus
gj_run_next_slot(GjRun *run, uint8_t **slot)
{
	assert(gj_run_form(run) == GJ_FORM_FINAL);
	GJ_STOP_CHECK(run);
	if (run->output.target.final->ready(run->output.target.arg))
		GJ_TRY(run->intake_ops->free_slots(run));
	else
		GJ_TRY(run->intake_ops->rest(run));
	GJ_TRY(run->output.target.final->slot(run->output.target.arg, slot));
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_RETURN);
	return GJ_OK;
}

GjStatus
gj_run_send(GjRun *run, uint32_t nrows, uint64_t nbytes)
{
	run->stats.bytes_out += nbytes;
	run->stats.rows_out += nrows;
	GJ_TRY(run->output.target.final->send(run->output.target.arg, nrows));
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
