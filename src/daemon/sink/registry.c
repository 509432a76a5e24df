/*
 * registry.c
 *	  Chooses the sink of a program: the only place that asks what its output is.
 */
#include "internal.h"
#include "daemon/sets/sets.h"

/* True if nothing but count(*) is asked for. */
static bool
only_counts(const GjProgram *p)
{
	const GjAggregate *aggregates = gj_program_array(p, GjAggregate, aggregates);

	for (uint32_t i = 0; i < p->naggregates; i++)
		if (aggregates[i].arg >= 0)
			return false;
	return true;
}

/* The sink of a program that joins. */
static const GjSinkOps *
choose_of_join(const GjProgram *p)
{
	switch (p->output)
	{
		case GJ_OUTPUT_GROUPS:
			return gj_program_is_sorted(p) ? &gj_sink_sorted_groups : &gj_sink_groups;
		case GJ_OUTPUT_AGGREGATES:
			return only_counts(p) ? &gj_sink_count : &gj_sink_aggregates;
		default:
			if (gj_program_is_sorted(p))
				return &gj_sink_sorted_rows;
			return p->limit > 0 ? &gj_sink_first_rows : &gj_sink_rows;
	}
}

const GjSinkOps *
gj_sink_choose(const GjProgram *p)
{
	const GjSetSpec *sets = gj_program_array(p, GjSetSpec, sets);

	switch (p->kind)
	{
		case GJ_PROGRAM_PREWARM:
			return &gj_sink_prewarm;
		case GJ_PROGRAM_INTERSECT:
			return p->output == GJ_OUTPUT_COUNT ? &gj_sink_pair_count : &gj_sink_pair;
		case GJ_PROGRAM_SETS:
			if (sets->distinct)
				return &gj_sink_intersections;
			return sets->top_k > 0 ? &gj_sink_best_pairs : &gj_sink_pairs;
		default:
			return choose_of_join(p);
	}
}
