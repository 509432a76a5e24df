/*
 * nested.c
 *	  The nested loop of a step: what it compares, and its pairs.
 *
 * Keys, range, and a residual condition that is nothing but comparisons of a column of
 * either side become terms: comparisons of values that were computed once a row.  Without
 * any terms the loop evaluates the residual condition for every pair; with some, it is left
 * for the pairs that they let through.
 *
 * Tuples and rows are looked at tile by tile.  How many tiles a call is asked for follows
 * from how many the last one could do before its pairs filled the room.
 */
#include "nested.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/program/program.h"

/* Tiles of the first call, and the most of any; the device may do fewer. */
#define GJ_FIRST_TILES		256
#define GJ_MOST_TILES		(1u << 20)

static GjRunNested *
nested_of(const GjRunStep *rs)
{
	return rs->join_state;
}

/* ---- what is compared */

/* Values that fit 32 bits: an expression that is a column of such a kind. */
static bool
key_is_narrow(const GjRun *run, int32_t e)
{
	const GjExpr *expr = &run->exprs[e];
	const GjInstr *instr = gj_program_array(run->program, GjInstr, instrs) + expr->first;
	uint32_t	kind;

	if (expr->ninstrs != 1 || instr->op != GJ_OP_LOAD)
		return false;
	kind = run->types[instr->arg].kind;
	return kind == GJ_BOOL || kind == GJ_INT2 || kind == GJ_INT4;
}

/* The number of an operand in a list, to which it is added if it is new; -1: there is no room. */
static int
add_operand(int32_t *list, uint32_t *n, int32_t operand)
{
	for (uint32_t i = 0; i < *n; i++)
		if (list[i] == operand)
			return (int) i;
	if (*n == GJ_MAX_KEYS)
		return -1;
	list[*n] = operand;
	return (int) (*n)++;
}

/* False: there is no room. */
static bool
add_term(GjRunStep *rs, const GjComparison *comparison)
{
	GjRunNested *nested = nested_of(rs);
	uint32_t	t = nested->nterms;
	int			probe_side,
				build_side;

	if (t == GJ_MAX_KEYS)
		return false;
	probe_side = add_operand(rs->probe_operand, &rs->nprobe_operands, comparison->probe_side);
	build_side = add_operand(rs->build_operand, &rs->nbuild_operands, comparison->build_side);
	if (probe_side < 0 || build_side < 0)
		return false;
	nested->terms[t].op = comparison->op;
	nested->terms[t].narrow = comparison->narrow;
	nested->terms[t].probe_side = (uint8_t) probe_side;
	nested->terms[t].build_side = (uint8_t) build_side;
	nested->nterms++;
	return true;
}

/* Keys and ends of a range, for which there is room. */
static void
add_key(const GjRun *run, GjRunStep *rs, GjTermOp op, int32_t probe_side, int32_t build_side)
{
	const GjComparison key = {
		(uint8_t) op, key_is_narrow(run, probe_side) && key_is_narrow(run, build_side), false,
		probe_side, build_side
	};

	(void) add_term(rs, &key);
}

/*
 * An equality, or a value that is bounded from both sides: few of all pairs satisfy these.  What
 * compares with a constant says nothing of pairs.
 */
static bool
leave_few(const GjComparison *comparisons, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
	{
		const GjComparison *a = &comparisons[i];

		if (a->has_constant)
			continue;
		if (a->op == GJ_TERM_EQ)
			return true;
		for (uint32_t j = 0; j < n && (a->op == GJ_TERM_LT || a->op == GJ_TERM_LE); j++)
			if (!comparisons[j].has_constant &&
				(comparisons[j].op == GJ_TERM_GT || comparisons[j].op == GJ_TERM_GE) &&
				(comparisons[j].probe_side == a->probe_side ||
				 comparisons[j].build_side == a->build_side))
				return true;
	}
	return false;
}

/*
 * Makes terms of the residual condition.  What they do not say is left for the pairs that they let
 * through, or evaluated for every pair if these may be many.
 */
static void
take_residual(GjRun *run, GjRunStep *rs)
{
	GjComparison comparisons[GJ_MAX_KEYS];
	bool		exact;
	uint32_t	n = gj_program_comparisons(run->program, rs->step, comparisons, &exact);
	bool		pairs = nested_of(rs)->nterms > 0 || leave_few(comparisons, n);

	for (uint32_t i = 0; i < n && (exact || pairs); i++)
		exact &= add_term(rs, &comparisons[i]);
	if (exact && n > 0)
		rs->residual = -1;
	if (exact || pairs)
		return;
	nested_of(rs)->condition = rs->residual;
	rs->reads = gj_run_reads_expr(run, (uint32_t) rs->residual);
	rs->residual = -1;
}

bool
gj_nested_plan(GjRun *run, GjRunStep *rs)
{
	const GjStep *step = rs->step;

	rs->join_state = calloc(1, sizeof(GjRunNested));
	if (!rs->join_state)
		return false;
	nested_of(rs)->condition = -1;
	rs->nprobe_operands = rs->nbuild_operands = 0;
	for (uint32_t k = 0; k < step->nkeys; k++)
		add_key(run, rs, GJ_TERM_EQ, (int32_t) (step->probe_keys + k),
				(int32_t) (step->build_keys + k));
	if (step->range_key >= 0 && step->range_low >= 0)
		add_key(run, rs, step->low_strict ? GJ_TERM_LT : GJ_TERM_LE, step->range_low,
				step->range_key);
	if (step->range_key >= 0 && step->range_high >= 0)
		add_key(run, rs, step->high_strict ? GJ_TERM_GT : GJ_TERM_GE, step->range_high,
				step->range_key);
	nested_of(rs)->ntiles = GJ_FIRST_TILES;
	if (rs->residual >= 0)
		take_residual(run, rs);
	rs->needs_tuple = rs->residual >= 0 && gj_step_makes_tuples(step);
	return true;
}

GjStatus
gj_nested_build(GjRun *run, GjSideBuild *build, GjRunStep *rs)
{
	GjRunNested *nested = nested_of(rs);
	GjKeys		keys;

	if (rs->nbuild_operands > 0)
		GJ_TRY(gj_build_keys(run, build, rs, &keys));
	nested->nrows = build->nrows;
	rs->nmatchable = build->nrows;
	nested->rows = build->rowid;
	nested->null = build->null;
	memcpy(nested->value, build->value, sizeof(nested->value));
	build->rowid = build->null = (GjBuffer) {NULL, 0};
	memset(build->value, 0, sizeof(build->value));
	return GJ_OK;
}

/* ---- the loop */

GjStatus
gj_nested_start(GjRun *run, GjRunStep *rs, const GjView *view, GjNested *loop)
{
	const GjRunNested *nested = nested_of(rs);
	uint32_t	i = (uint32_t) (rs - run->steps);
	GjKeys		keys;

	memset(loop, 0, sizeof(*loop));
	loop->view = view;
	loop->build_source = rs->step->source;
	loop->condition = nested->condition;
	loop->nterms = nested->nterms;
	loop->write = rs->residual >= 0 ||
		(gj_step_makes_pairs(rs->step) && !gj_step_only_counts(run, i));
	if (gj_step_makes_tuples(rs->step))
		GJ_TRY(run->work.ops->memory->fill(run->work.queue, rs->probe.matched.memory, 0,
										   view->nrows));
	/* with a residual condition, it is too early to tell */
	if (gj_step_makes_tuples(rs->step) && rs->residual < 0)
		loop->tuple_matched = rs->probe.matched.memory;
	/* a semi or anti join asks for no more than the first match */
	if (gj_step_makes_tuples(rs->step) && !gj_step_makes_pairs(rs->step))
		loop->tuple_done = rs->probe.matched.memory;
	if (nested->nterms == 0)
		return GJ_OK;
	GJ_TRY(gj_run_probe_keys(run, rs, view, &keys));
	for (uint32_t t = 0; t < nested->nterms; t++)
		loop->terms[t] = (GjTerm) {
			nested->terms[t].op, nested->terms[t].narrow, keys.value[nested->terms[t].probe_side],
			NULL
		};
	loop->probe_null = keys.null;
	return GJ_OK;
}

/* Has the loop go over these rows. */
static void
set_rows(const GjRunStep *rs, const GjNestedRows *rows, GjNested *loop)
{
	const GjRunNested *nested = nested_of(rs);

	loop->rows = rows->rows;
	loop->nrows = rows->nrows;
	loop->build_null = rows->null;
	for (uint32_t t = 0; t < nested->nterms; t++)
		loop->terms[t].build_side = rows->value[nested->terms[t].build_side];
	if (gj_step_makes_rows(rs->step) && rs->residual < 0)
		loop->row_matched = (uint8_t *) rs->unmatched.row_matched.memory + rs->unmatched.first_row;
}

/* Where the next pairs go: room for n of them. */
static void
place_pairs(GjRunStep *rs, uint32_t n, GjNested *loop, GjView *pairs)
{
	const GjView *view = loop->view;

	loop->capacity = n;
	loop->tuple = rs->pairs.tuple.memory;
	memset(pairs, 0, sizeof(*pairs));
	pairs->columns = view->columns;
	pairs->no_row = view->no_row;
	for (uint32_t s = 0; s < GJ_MAX_SOURCES; s++)
		if (rs->expand >> s & 1)
			pairs->rowid[s] = loop->out[s] = rs->pairs.rowid[s].memory;
}

/* The pairs of the tiles from number `tile`; *ndone = tiles. */
static GjStatus
next_pairs(GjRun *run, uint32_t i, GjNested *loop, uint64_t tile, uint32_t *ndone)
{
	GjRunStep  *rs = &run->steps[i];
	GjWork	   *work = &run->work;
	uint32_t	room = run->tuples.most;
	uint64_t	npairs;
	GjView		pairs;

	GJ_STOP_CHECK(run);
	work->ops->queues->phase(work->queue, GJ_PHASE_PROBE);
	if (loop->write)
	{
		GJ_TRY(gj_run_make_room(run, i + 1, &room));
		place_pairs(rs, room, loop, &pairs);
	}
	GJ_TRY(work->ops->tables->nested_loop(work->queue, loop, tile, nested_of(rs)->ntiles, ndone,
										  &npairs));
	if (!loop->write)
	{
		if (gj_step_makes_pairs(rs->step))
		{
			run->stats.step[i].rows_out += npairs;
			run->output.counted += (int64_t) npairs;
		}
		return GJ_OK;
	}
	pairs.nrows = (uint32_t) npairs;
	if (npairs == 0)
		return GJ_OK;
	if (rs->residual >= 0)
		GJ_TRY(gj_run_filter_pairs(run, rs, loop->view->nrows, 0, &pairs));
	return gj_step_makes_pairs(rs->step) ? gj_run_pass_on(run, i, &pairs) : GJ_OK;
}

GjStatus
gj_nested_rows(GjRun *run, uint32_t i, GjNested *loop, const GjNestedRows *rows)
{
	GjRunStep  *rs = &run->steps[i];
	uint64_t	ntiles = gj_nested_tiling(loop->view->nrows, rows->nrows).ntiles;
	uint32_t	ndone;

	set_rows(rs, rows, loop);
	for (uint64_t tile = 0; tile < ntiles; tile += ndone)
	{
		uint32_t	asked = nested_of(rs)->ntiles;

		GJ_TRY(next_pairs(run, i, loop, tile, &ndone));
		if (ndone < asked)
			nested_of(rs)->ntiles = ndone < asked / 2 ? 2 * ndone : asked;
		else if (asked < GJ_MOST_TILES)
			nested_of(rs)->ntiles = 2 * asked;
	}
	return GJ_OK;
}

GjNestedRows
gj_nested_all(const GjRunStep *rs)
{
	const GjRunNested *nested = nested_of(rs);
	GjNestedRows rows = {
		.rows = nested->rows.memory,.nrows = nested->nrows,.null = nested->null.memory
	};

	for (uint32_t k = 0; k < rs->nbuild_operands; k++)
		rows.value[k] = nested->value[k].memory;
	return rows;
}

static GjStatus
join(GjRun *run, uint32_t i, const GjView *view)
{
	GjRunStep  *rs = &run->steps[i];
	const GjNestedRows rows = gj_nested_all(rs);
	GjNested	loop;

	run->work.ops->queues->phase(run->work.queue, GJ_PHASE_PROBE);
	GJ_TRY(gj_nested_start(run, rs, view, &loop));
	return gj_nested_rows(run, i, &loop, &rows);
}

void
gj_nested_free(GjWork *work, GjRunStep *rs)
{
	GjRunNested *nested = nested_of(rs);

	if (!nested)
		return;
	gj_buffer_free(work, &nested->rows);
	gj_buffer_free(work, &nested->null);
	for (uint32_t k = 0; k < GJ_MAX_KEYS; k++)
		gj_buffer_free(work, &nested->value[k]);
	free(nested);
	rs->join_state = NULL;
}

const GjJoinOps gj_join_nested_loop = {
	.name = "nested loop",
	.plan = gj_nested_plan,.planned = gj_join_is_planned,.build = gj_nested_build,
	.improve = gj_join_is_fast,.join = join,.end = gj_join_has_ended,.free = gj_nested_free
};
