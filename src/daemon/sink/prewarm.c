/*
 * prewarm.c
 *	  The sink of a prewarm: rows of the source become resident, and nothing is returned.
 */
#include "internal.h"

static GjStatus
source_ended(GjRun *run, uint32_t source)
{
	return GJ_OK;
}

const GjSinkOps gj_sink_prewarm = {
	.name = "prewarm",
	.drops_rows = true,.spreads = true,
	.plan = gj_sink_reads_nothing,.tuple_bytes = gj_sink_no_bytes,.source_ended = source_ended,
	.finish = gj_sink_only_waits,.free = gj_sink_frees_nothing
};
