/*
 * equal_stages.c
 *	  Stages of a query that compute the same: one of them runs, and its result serves all.
 *
 * A CTE that is read in several places is a subquery of each.  Where readers have the device check
 * their conditions on its groups, and not before, the programs of these stages are the same.  All
 * nodes of an execution have one snapshot, so the results are the same as well.
 *
 * Each execution has a list of its stages.  A result that another stage waits for stays in gpujoind
 * beyond the run that has read it, until nobody waits for it or the node ends.
 */
#include "postgres.h"

#include "exec/join_scan.h"

/* The stages of one execution; freed with its memory. */
typedef struct QueryStages
{
	EState	   *estate;
	List	   *stages;			/* GjScanStates */
	int			in_fallback;	/* native plans that are being initialised */
	MemoryContextCallback end;
	struct QueryStages *next;
} QueryStages;

static QueryStages *queries = NULL;

static void
forget_query(void *arg)
{
	for (QueryStages **link = &queries; *link != NULL; link = &(*link)->next)
		if (*link == arg)
		{
			*link = (*link)->next;
			return;
		}
}

static QueryStages *
stages_of(EState *estate, bool create)
{
	QueryStages *query;

	for (query = queries; query != NULL; query = query->next)
		if (query->estate == estate)
			return query;
	if (!create)
		return NULL;
	query = MemoryContextAllocZero(estate->es_query_cxt, sizeof(QueryStages));
	query->estate = estate;
	query->end.func = forget_query;
	query->end.arg = query;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, &query->end);
	query->next = queries;
	queries = query;
	return query;
}

void
gj_stages_in_fallback(EState *estate, bool begins)
{
	stages_of(estate, true)->in_fallback += begins ? 1 : -1;
}

void
gj_stage_register(GjScanState *stage)
{
	EState	   *estate = stage->css.ss.ps.state;
	QueryStages *query = stages_of(estate, true);
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

	/* a native plan hardly ever runs: nothing is kept for it */
	stage->was_read = query->in_fallback > 0;
	query->stages = lappend(query->stages, stage);
	MemoryContextSwitchTo(old);
}

/* True for stages of one program, over the same tables and stages of which that is true. */
static bool
is_same_stage(const GjScanState *a, const GjScanState *b)
{
	ListCell   *lc;
	ListCell   *lc2;

	if (a->template->nbytes != b->template->nbytes ||
		memcmp(a->template, b->template, a->template->nbytes) != 0 ||
		!equal(a->tables, b->tables) ||
		list_length(a->css.custom_ps) != list_length(b->css.custom_ps))
		return false;
	forboth(lc, a->css.custom_ps, lc2, b->css.custom_ps)
	{
		const GjScanState *x = gj_stage_below(lfirst(lc));
		const GjScanState *y = gj_stage_below(lfirst(lc2));

		/* their values would have to be compared: in a template a parameter looks like 0 */
		if (x == NULL || y == NULL || x->runtime_instrs != NIL || y->runtime_instrs != NIL ||
			!is_same_stage(x, y))
			return false;
	}
	return true;
}

GjScanState *
gj_equal_stage(const GjScanState *stage, const GjProgram *program)
{
	QueryStages *query = stages_of(stage->css.ss.ps.state, false);
	ListCell   *lc;

	foreach(lc, query != NULL ? query->stages : NIL)
	{
		GjScanState *other = lfirst(lc);

		if (other != stage && other->has_result && program->nbytes == other->program->nbytes &&
			memcmp(program, other->program, program->nbytes) == 0 &&
			is_same_stage(stage, other) && !gj_remote_is_lost(other->run))
			return other;
	}
	return NULL;
}

bool
gj_stage_is_awaited(const GjScanState *stage)
{
	QueryStages *query = stages_of(stage->css.ss.ps.state, false);
	ListCell   *lc;

	foreach(lc, query != NULL && stage->has_result ? query->stages : NIL)
	{
		const GjScanState *other = lfirst(lc);

		if (other != stage && !other->was_read && is_same_stage(stage, other))
			return true;
	}
	return false;
}

List *
gj_stages_left(EState *estate)
{
	QueryStages *query = stages_of(estate, false);
	List	   *left = NIL;
	ListCell   *lc;

	foreach(lc, query != NULL ? query->stages : NIL)
	{
		GjScanState *stage = lfirst(lc);

		if (stage->is_left && !gj_stage_is_awaited(stage))
			left = lappend(left, stage);
	}
	return left;
}
