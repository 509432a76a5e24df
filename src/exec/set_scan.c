/*
 * set_scan.c
 *	  The GpuSetScan node: a CustomScan that returns the rows of gpu_set_join() and its kin
 *	  as they come, instead of a function scan that collects them.
 *
 * With the first row that is asked for, arguments are evaluated, the queries run, and the
 * join starts; then each tile is fetched when the rows of the one before are used up.  A
 * rescan starts the join again; the queries run again only if they have become others.
 * There is no native plan to fall back to: without a device the process does the join.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "portability/instr_time.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"

#include "client/client.h"
#include "compat.h"
#include "exec/set_scan.h"
#include "exec/statements.h"
#include "guc.h"
#include "plan/set_function_path.h"
#include "sets/set_join.h"

typedef struct GjSetScanState
{
	CustomScanState css;
	GjSetFunction function;
	FuncExpr   *expr;
	List	   *argument_exprs; /* ExprStates */
	MemoryContext argument_cxt;
	GjSetArguments arguments;	/* in argument_cxt */
	bool		evaluated;		/* the arguments are those of the parameters' values */
	bool		started;
	bool		ended;			/* the last row was returned */
	GjSetCall  *call;
	/* of all starts, for EXPLAIN ANALYZE */
	double		start_ms;		/* with load, and with the join if rows are collected first */
} GjSetScanState;

static const CustomExecMethods set_scan_exec_methods;

static Node *
create_state(CustomScan *cscan)
{
	GjSetScanState *state = (GjSetScanState *) newNode(sizeof(GjSetScanState), T_CustomScanState);

	state->css.methods = &set_scan_exec_methods;
	return (Node *) state;
}

/* Checks what ExecInitFunc would have checked. */
static void
check_permission(Oid funcid)
{
	AclResult	result = gj_function_aclcheck(funcid, GetUserId(), ACL_EXECUTE);

	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_FUNCTION, get_func_name(funcid));
	InvokeFunctionExecuteHook(funcid);
}

static void
begin_set_scan(CustomScanState *node, EState *estate, int eflags)
{
	GjSetScanState *state = (GjSetScanState *) node;
	CustomScan *cscan = castNode(CustomScan, node->ss.ps.plan);

	state->function = list_nth_int(cscan->custom_private, GJ_SET_SCAN_FUNCTION);
	state->expr = castNode(FuncExpr, linitial(cscan->custom_exprs));
	check_permission(state->expr->funcid);
	state->argument_exprs = ExecInitExprList(state->expr->args, &node->ss.ps);
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	state->argument_cxt = AllocSetContextCreate(estate->es_query_cxt, "gpujoin set arguments",
												ALLOCSET_SMALL_SIZES);
	state->call = gj_set_call_create(estate->es_query_cxt, state->function);
}

static void
evaluate_arguments(GjSetScanState *state)
{
	NullableDatum values[GJ_SET_MAX_ARGUMENTS];
	ListCell   *lc;
	MemoryContext old;

	Assert(list_length(state->argument_exprs) <= GJ_SET_MAX_ARGUMENTS);
	MemoryContextReset(state->argument_cxt);
	foreach(lc, state->argument_exprs)
	{
		NullableDatum *value = &values[foreach_current_index(lc)];

		value->value = ExecEvalExprSwitchContext(lfirst(lc), state->css.ss.ps.ps_ExprContext,
												 &value->isnull);
	}
	old = MemoryContextSwitchTo(state->argument_cxt);
	gj_set_arguments(state->function, values, &state->arguments);
	MemoryContextSwitchTo(old);
	state->evaluated = true;
}

static void
start_call(GjSetScanState *state)
{
	instr_time	start;
	instr_time	end;

	INSTR_TIME_SET_CURRENT(start);
	if (!state->evaluated)
		evaluate_arguments(state);
	gj_set_call_start(state->call, &state->arguments);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	state->start_ms += INSTR_TIME_GET_MILLISEC(end);
	state->started = true;
	state->ended = false;
}

/* The next row, in the scan slot; arrays live until the next one is asked for. */
static TupleTableSlot *
next_row(ScanState *node)
{
	GjSetScanState *state = (GjSetScanState *) node;
	TupleTableSlot *slot = node->ss_ScanTupleSlot;
	MemoryContext old;

	ExecClearTuple(slot);
	if (!state->started)
		start_call(state);
	if (state->ended)
		return slot;
	old = MemoryContextSwitchTo(node->ps.ps_ExprContext->ecxt_per_tuple_memory);
	state->ended = !gj_set_call_next(state->call, slot->tts_values);
	MemoryContextSwitchTo(old);
	if (state->ended)
		return slot;
	memset(slot->tts_isnull, false, sizeof(bool) * slot->tts_tupleDescriptor->natts);
	return ExecStoreVirtualTuple(slot);
}

/* Conditions are checked again by ExecScan; there is nothing else. */
static bool
recheck_row(ScanState *node, TupleTableSlot *slot)
{
	return true;
}

static TupleTableSlot *
exec_set_scan(CustomScanState *node)
{
	return ExecScan(&node->ss, next_row, recheck_row);
}

/* Has what the last join of the node did counted; NULL: there was none. */
static void
note_use(const GjSetJoinStats *stats)
{
	GjStatementUse use = {0};

	if (stats == NULL || (!stats->on_device && stats->reason == GJ_OK))
		return;
	use.fallbacks = stats->reason != GJ_OK;
	gj_statement_use_stats(&use, &stats->run);
	gj_statement_note(&use);
}

static void
end_set_scan(CustomScanState *node)
{
	GjSetScanState *state = (GjSetScanState *) node;

	if (state->call == NULL)
		return;
	note_use(gj_set_call_stats(state->call));
	gj_set_call_stop(state->call);
}

static void
rescan_set_scan(CustomScanState *node)
{
	GjSetScanState *state = (GjSetScanState *) node;

	if (node->ss.ps.chgParam != NULL)
		state->evaluated = false;
	/* what nobody asks for any more holds no memory of a device */
	if (state->started && !state->ended && state->function != GJ_SET_TOPK)
		gj_set_call_stop(state->call);
	state->started = false;
	ExecScanReScan(&node->ss);
}

/* ---- EXPLAIN */

/* A constant argument as text; NULL if it is not one, or NULL. */
static char *
constant_text(GjSetScanState *state, int number)
{
	Const	   *value = list_nth(state->expr->args, number);

	return IsA(value, Const) && !value->constisnull ? TextDatumGetCString(value->constvalue) : NULL;
}

/*
 * The arguments, if all are known: as they were evaluated, or else if they are constants and
 * such that the query would raise no error because of them.
 */
static bool
known_arguments(GjSetScanState *state, GjSetArguments *arguments)
{
	bool		topk = state->function == GJ_SET_TOPK;
	Const	   *number = topk ? lthird(state->expr->args) : llast(state->expr->args);
	char	   *name;
	int			predicate;

	if (state->evaluated)
	{
		*arguments = state->arguments;
		return true;
	}
	memset(arguments, 0, sizeof(*arguments));
	arguments->left_query = constant_text(state, 0);
	arguments->right_query = constant_text(state, 1);
	if (arguments->left_query == NULL || !IsA(lsecond(state->expr->args), Const))
		return false;
	arguments->predicate = GJ_SETS_OVERLAP;
	arguments->threshold = 1;
	if (state->function == GJ_INTERSECT_FAMILY)
		return true;
	name = constant_text(state, topk ? 3 : 2);
	predicate = name == NULL ? -1 : gj_find_set_predicate(name);
	if (predicate < 0 || !IsA(number, Const) || number->constisnull)
		return false;
	arguments->predicate = predicate;
	if (topk)
		arguments->k = DatumGetInt32(number->constvalue);
	else
		arguments->threshold = DatumGetFloat8(number->constvalue);
	return true;
}

static void
explain_arguments(GjSetScanState *state, const GjSetArguments *arguments, ExplainState *es)
{
	const char *name = gj_set_predicate_name(arguments->predicate);

	if (state->function == GJ_SET_TOPK)
	{
		ExplainPropertyText("Metric", name, es);
		ExplainPropertyInteger("Best", NULL, arguments->k, es);
	}
	else if (arguments->predicate == GJ_SETS_OVERLAP || (arguments->predicate >= GJ_SETS_JACCARD &&
														 arguments->predicate <= GJ_SETS_CONTAINMENT))
		ExplainPropertyText("Predicate", psprintf("%s >= %g", name, arguments->threshold), es);
	else
		ExplainPropertyText("Predicate", name, es);
	ExplainPropertyText("Left Sets", arguments->left_query, es);
	ExplainPropertyText("Right Sets", arguments->right_query != NULL ? arguments->right_query : "the same", es);
}

static void
explain_run(GjSetScanState *state, ExplainState *es)
{
	const GjSets *sets = gj_set_call_sets(state->call);
	const GjSetJoinStats *stats = gj_set_call_stats(state->call);
	uint32		nparts = stats->run.step[0].nparts;

	if (stats->reason != GJ_OK)
		ExplainPropertyText("Fallback", gj_reason_text(stats->reason), es);
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyInteger("Left Sets Loaded", NULL, sets->nleft, es);
		ExplainPropertyInteger("Right Sets Loaded", NULL, sets->nsets - gj_sets_first_right(sets), es);
		ExplainPropertyInteger("Elements", NULL, sets->offset[sets->nsets], es);
		ExplainPropertyInteger("Blocks", NULL, stats->nblocks, es);
		if (stats->ncompared > 0)
			ExplainPropertyInteger("Pairs Compared", NULL, stats->ncompared, es);
		ExplainPropertyInteger("Pairs Returned", NULL, stats->nreturned, es);
		ExplainPropertyBool("Complete", stats->complete, es);
		if (nparts > 0)
			ExplainPropertyInteger("Parts", NULL, nparts, es);
		return;
	}
	appendStringInfoSpaces(es->str, es->indent * 2);
	appendStringInfo(es->str, "Sets: left=%u right=%u  Elements: " UINT64_FORMAT, sets->nleft,
					 sets->nsets - gj_sets_first_right(sets), sets->offset[sets->nsets]);
	if (stats->nblocks > 1)
		appendStringInfo(es->str, "  Blocks: %u", stats->nblocks);
	appendStringInfoChar(es->str, '\n');
	appendStringInfoSpaces(es->str, es->indent * 2);
	appendStringInfoString(es->str, "Pairs:");
	if (stats->ncompared > 0)
		appendStringInfo(es->str, " compared=" UINT64_FORMAT, stats->ncompared);
	appendStringInfo(es->str, " returned=" UINT64_FORMAT "%s", stats->nreturned,
					 stats->complete ? "" : " (stopped early)");
	if (nparts > 1)
		appendStringInfo(es->str, "  Parts: %u", nparts);
	appendStringInfoChar(es->str, '\n');
}

static void
explain_times(GjSetScanState *state, ExplainState *es)
{
	const GjSetJoinStats *stats = gj_set_call_stats(state->call);
	const double *ms = stats->run.ms;
	static const struct
	{
		const char *name;
		GjPhase		phase;
	}			phases[] = {{"transfer", GJ_PHASE_TRANSFER}, {"build", GJ_PHASE_BUILD},
	{"join", GJ_PHASE_PROBE}, {"return", GJ_PHASE_RETURN}};

	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyFloat("Start Time", "ms", state->start_ms, 3, es);
		for (int i = 0; i < lengthof(phases) && stats->on_device && stats->complete; i++)
			ExplainPropertyFloat(psprintf("Device %s Time", phases[i].name), "ms", ms[phases[i].phase], 3, es);
		return;
	}
	appendStringInfoSpaces(es->str, es->indent * 2);
	appendStringInfo(es->str, "Times: start=%.3f", state->start_ms);
	for (int i = 0; i < lengthof(phases) && stats->on_device && stats->complete; i++)
		appendStringInfo(es->str, " %s=%.3f", phases[i].name, ms[phases[i].phase]);
	appendStringInfoString(es->str, " ms\n");
}

/* Where the join runs, or would run if it is large enough. */
static const char *
device_name(const GjSetJoinStats *stats)
{
	GjFailure	failure;
	const GjDeviceInfo *device;
	const char *reason;

	if (stats != NULL)
		return !stats->on_device ? "none (session's process)" :
			stats->device_kind == GJ_DEVICE_CUDA ? "cuda" : "cpu";
	device = gj_may_offload(&reason) ? gj_client_device(&failure) : NULL;
	return device == NULL ? "none (session's process)" : device->kind == GJ_DEVICE_CUDA ? "cuda" : "cpu";
}

static void
explain_set_scan(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GjSetScanState *state = (GjSetScanState *) node;
	const GjSetJoinStats *stats = state->call != NULL ? gj_set_call_stats(state->call) : NULL;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, node->ss.ps.plan, ancestors);
	GjSetArguments arguments;

	ExplainPropertyText("Device", device_name(stats), es);
	ExplainPropertyText("Technique", stats == NULL || gj_set_algorithm != GJ_SETS_AUTO ||
						stats->algorithm == GJ_SETS_AUTO ? gj_set_algorithm_name(gj_set_algorithm) :
						psprintf("auto (%s)", gj_set_algorithm_name(stats->algorithm)), es);
	if (known_arguments(state, &arguments))
		explain_arguments(state, &arguments, es);
	else
		ExplainPropertyText("Function Call",
							deparse_expression((Node *) state->expr, context, es->verbose ||
											   gj_explain_prefixes(es), false), es);
	if (stats == NULL || !es->analyze)
		return;
	explain_run(state, es);
	if (es->timing)
		explain_times(state, es);
}

/* ---- registration */

const CustomScanMethods gj_set_scan_methods = {
	.CustomName = "GpuSetScan",
	.CreateCustomScanState = create_state,
};

static const CustomExecMethods set_scan_exec_methods = {
	.CustomName = "GpuSetScan",
	.BeginCustomScan = begin_set_scan,
	.ExecCustomScan = exec_set_scan,
	.EndCustomScan = end_set_scan,
	.ReScanCustomScan = rescan_set_scan,
	.ExplainCustomScan = explain_set_scan,
};

void
gj_set_scan_init(void)
{
	/* a second load (old and new library after an upgrade) keeps the first */
	if (GetCustomScanMethods(gj_set_scan_methods.CustomName, true) == NULL)
		RegisterCustomScanMethods(&gj_set_scan_methods);
}
