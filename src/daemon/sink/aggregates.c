/*
 * aggregates.c
 *	  Aggregates without groups: the device adds tuples to one state each, which go out at the end.
 *
 * Where only count(*) is asked for, joins need not write their pairs (run->output.counted).
 */
#include "internal.h"

/* What the aggregates read; also those of groups. */
uint32_t
gj_aggregates_plan(GjRun *run)
{
	const GjAggregate *aggregates = gj_program_array(run->program, GjAggregate, aggregates);
	uint32_t	needed = 0;

	for (uint32_t i = 0; i < run->program->naggregates; i++)
		if (aggregates[i].arg >= 0)
			needed |= gj_run_reads_expr(run, (uint32_t) aggregates[i].arg);
	return needed;
}

static GjStatus
push(GjRun *run, const GjView *view)
{
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_AGGREGATE);
	return run->work.ops->groups->aggregate(run->work.queue, view);
}

static GjStatus
finish(GjRun *run)
{
	const GjAggregate *aggregates = gj_program_array(run->program, GjAggregate, aggregates);
	uint32_t	n = run->program->naggregates;
	GjAggState	states[GJ_MAX_AGGREGATES];

	/* what is read then is there */
	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_AGGREGATE);
	GJ_TRY(run->work.ops->queues->sync(run->work.queue));
	GJ_TRY(gj_fused_finish(run));
	GJ_TRY(run->work.ops->groups->aggregate_read(run->work.queue, states));
	for (uint32_t i = 0; i < n; i++)
		if (aggregates[i].op == GJ_AGG_COUNT_STAR)
			states[i].count += run->output.counted;
	return gj_run_send_states(run, states, n);
}

const GjSinkOps gj_sink_aggregates = {
	.name = "aggregates",
	.joins = true,.spreads = true,.fusible = true,
	.has_states = true,
	.plan = gj_aggregates_plan,.tuple_bytes = gj_sink_no_bytes,.push = push,
	.finish = finish,.free = gj_sink_frees_nothing
};

const GjSinkOps gj_sink_count = {
	.name = "count",
	.joins = true,.spreads = true,.counts = true,.fusible = true,
	.has_states = true,
	.plan = gj_sink_reads_nothing,.tuple_bytes = gj_sink_no_bytes,.push = push,
	.finish = finish,.free = gj_sink_frees_nothing
};
