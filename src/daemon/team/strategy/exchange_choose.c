/*
 * exchange_choose.c
 *	  Whether the rows of a run are exchanged, and what devices then need not keep.
 */
#include "strategy.h"

#include "daemon/program/program.h"

/* Device memory of a row's keys and its share of the table (src/plan/join_cost.c). */
#define GJ_TABLE_BYTES		48

uint64_t
gj_step_side_bytes(const GjProgram *p, const GjStep *step)
{
	const GjSource *source = &gj_program_array(p, GjSource, sources)[step->source];
	const GjColumnType *types = gj_program_array(p, GjColumnType, columns);
	uint64_t	a_row = GJ_TABLE_BYTES;

	for (uint32_t c = 0; c < source->ncolumns; c++)
		a_row += types[source->first_column + c].width;
	return source->nrows_hint * a_row;
}

static bool
can_exchange(const GjProgram *p, uint32_t i)
{
	const GjStep *steps = gj_program_array(p, GjStep, steps);

	if (steps[i].algorithm == GJ_JOIN_SET || !gj_step_keys_of_probe_side(p, &steps[i]))
		return false;
	for (uint32_t before = 0; before < i; before++)
		if (gj_step_makes_rows(&steps[before]))
			return false;
	return true;
}

/*
 * Blocks of a nested loop's build side can go round, whatever the condition is; but a later join of
 * sets reads all rows of its sources.
 */
static bool
can_go_round(const GjProgram *p, uint32_t i)
{
	const GjStep *steps = gj_program_array(p, GjStep, steps);

	if (steps[i].algorithm != GJ_JOIN_NESTED_LOOP)
		return false;
	for (uint32_t s = 0; s < p->nsteps; s++)
		if (steps[s].algorithm == GJ_JOIN_SET)
			return false;
	return true;
}

static bool
has_references(const GjProgram *p, uint32_t source)
{
	const GjSource *s = &gj_program_array(p, GjSource, sources)[source];
	const GjColumnType *types = gj_program_array(p, GjColumnType, columns) + s->first_column;

	for (uint32_t c = 0; c < s->ncolumns; c++)
		if (types[c].kind == GJ_REF)
			return true;
	return false;
}

/*
 * Rows can be shared out by ranges of what a sort-merge join compares first, if probe rows look for
 * a key, or for a band with two ends.
 */
static bool
can_go_by_ranges(const GjProgram *p, uint32_t i)
{
	const GjStep *step = gj_program_array(p, GjStep, steps) + i;

	if (step->algorithm != GJ_JOIN_SORT_MERGE || has_references(p, 0) ||
		has_references(p, step->source))
		return false;
	if (step->nkeys > 0)
		return (gj_expr_sources(p, step->probe_keys) & ~1u) == 0;
	return step->range_key >= 0 && step->range_low >= 0 && step->range_high >= 0 &&
		((gj_expr_sources(p, (uint32_t) step->range_low) |
		  gj_expr_sources(p, (uint32_t) step->range_high)) & ~1u) == 0;
}

GjScheme
gj_exchange_scheme(const GjTeam *team, uint32_t step)
{
	const GjProgram *p = team->program;
	bool		by_keys = can_exchange(p, step);

	if (can_go_round(p, step) && (team->options.exchange == GJ_EXCHANGE_RING || !by_keys))
		return GJ_SCHEME_RING;
	if (can_go_by_ranges(p, step) && (team->options.exchange == GJ_EXCHANGE_RANGES || !by_keys))
		return GJ_SCHEME_RANGES;
	return by_keys ? GJ_SCHEME_KEYS : GJ_SCHEME_NONE;
}

/* The step with the largest build side that can be exchanged, or -1. */
static int
largest_step(const GjTeam *team)
{
	const GjProgram *p = team->program;
	const GjStep *steps = gj_program_array(p, GjStep, steps);
	uint64_t	most = 0;
	int			largest = -1;

	if (!team->sink->joins || p->spill)
		return -1;
	for (uint32_t i = 0; i < p->nsteps; i++)
		if (gj_exchange_scheme(team, i) != GJ_SCHEME_NONE &&
			(largest < 0 || gj_step_side_bytes(p, &steps[i]) > most))
		{
			most = gj_step_side_bytes(p, &steps[i]);
			largest = (int) i;
		}
	return largest;
}

uint64_t
gj_exchange_saves(const GjProgram *program, int step, uint32_t n)
{
	uint64_t	all;

	if (step < 0 || n == 0)
		return 0;
	all = gj_step_side_bytes(program, gj_program_array(program, GjStep, steps) + step);
	return all - all / n;
}

uint64_t
gj_exchange_needs(const GjTeam *team, int step, uint32_t n)
{
	const GjProgram *p = team->program;
	const GjSource *source = gj_program_array(p, GjSource, sources);
	const GjColumnType *types = gj_program_array(p, GjColumnType, columns) + source->first_column;
	uint64_t	a_row = 0;

	if (step < 0 || gj_exchange_scheme(team, (uint32_t) step) != GJ_SCHEME_RANGES)
		return 0;
	/* probe rows where they came and where they belong, the order of them, and so of build rows */
	for (uint32_t c = 0; c < source->ncolumns; c++)
		a_row += 2 * (types[c].width + 1u);
	return (source->nrows_hint * (a_row + GJ_TABLE_BYTES) +
			gj_step_side_bytes(p, gj_program_array(p, GjStep, steps) + step)) / n;
}

int
gj_exchange_choose(const GjTeam *team, uint32_t n, bool too_large)
{
	int			step = n > 1 && n <= GJ_SPLIT_PARTS ? largest_step(team) : -1;

	if (step < 0 || team->options.exchange == GJ_EXCHANGE_OFF)
		return -1;
	/* where there is room all build rows stay built on each device, and probe rows go nowhere */
	return team->options.exchange != GJ_EXCHANGE_AUTO || too_large ? step : -1;
}
