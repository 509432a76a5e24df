/*
 * set_function_cost.c
 *	  How many rows gpu_set_join() and its kin return, and what they cost.
 *
 * The planner asks through their support function; the scan node asks directly.  A query
 * that is a constant is planned, which tells its rows and the size of its sets; one that
 * is a parameter is assumed to return DEFAULT_SETS sets.  What share of the pairs a predicate
 * keeps is a guess from the predicate alone.
 */
#include "postgres.h"

#include <math.h>

#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "client/client.h"
#include "compat.h"
#include "guc.h"
#include "plan/join_path.h"
#include "plan/set_function_path.h"

PG_FUNCTION_INFO_V1(gpujoin_set_function_support);

#define SECONDS(s)			((s) / GJ_COST_UNIT)

#define DEFAULT_SETS		10000.0	/* of a query that is not known */
#define DEFAULT_ELEMENTS	10.0	/* of a set whose width is not known */
#define DEFAULT_WIDTH		32		/* what the planner says of an array without statistics */
#define DEFAULT_THRESHOLD	0.5		/* of a similarity that is not known */

#define START_SECONDS		1e-3	/* submit to the device */
#define ELEMENT_SECONDS		10e-9	/* an element fetched, sorted and sent */
#define SET_SECONDS			0.5e-6	/* a row of a query, beside its elements */
#define CUDA_PAIR_SECONDS	0.06e-9 /* a pair compared */
#define CPU_PAIR_SECONDS	5e-9
#define PROCESS_PAIR_SECONDS 10e-9

/* What is known of a family of sets. */
typedef struct GjFamilyEstimate
{
	double		nsets;
	double		nelements;		/* of an average set */
	Cost		cost;			/* of the query */
} GjFamilyEstimate;

/* ---- queries */

/* Elements of an average array of a query's second column, by the width of its rows. */
static double
average_elements(const Plan *plan)
{
	Oid			type;
	int			width = plan->plan_width;

	if (list_length(plan->targetlist) < 2)
		return DEFAULT_ELEMENTS;
	type = exprType((Node *) lsecond_node(TargetEntry, plan->targetlist)->expr);
	width -= exprType((Node *) linitial_node(TargetEntry, plan->targetlist)->expr) == INT8OID ? 8 : 4;
	if (width == DEFAULT_WIDTH)
		return DEFAULT_ELEMENTS;
	width -= ARR_OVERHEAD_NONULLS(1);
	return Max(width, 0) / (type == INT8ARRAYOID ? 8.0 : type == INT2ARRAYOID ? 2.0 : 4.0);
}

/*
 * Plans a query.  False if it is none, or if the user may not run it: estimates follow from
 * statistics, which tell about values.
 */
static bool
plan_query(const char *query, GjFamilyEstimate *estimate)
{
	SPIPlanPtr	plan = SPI_prepare(query, 0, NULL);
	CachedPlan *cached;
	PlannedStmt *statement;
	bool		usable;

	if (plan == NULL || !SPI_is_cursor_plan(plan))
		return false;
	cached = SPI_plan_get_cached_plan(plan);
	if (cached == NULL)
		return false;
	statement = linitial_node(PlannedStmt, cached->stmt_list);
	usable = statement->commandType == CMD_SELECT && gj_may_execute(statement);
	if (usable)
	{
		estimate->nsets = statement->planTree->plan_rows;
		estimate->nelements = average_elements(statement->planTree);
		estimate->cost = statement->planTree->total_cost;
	}
	ReleaseCachedPlan(cached, NULL);
	return usable;
}

/*
 * Queries that are being planned here: those of a query's own calls are planned, too, but without
 * a limit the calls of functions that call each other would make ever more of them.
 */
#define MAX_NESTED	2

static int	nested = 0;

/*
 * The same in a subtransaction: what is wrong with the query is for its execution to say,
 * if it comes to that.
 */
static bool
try_plan_query(const char *query, GjFamilyEstimate *estimate)
{
	MemoryContext caller = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool planned = false;

	if (IsInParallelMode() || !ActiveSnapshotSet())
		return false;
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(caller);
	nested++;
	PG_TRY();
	{
		if (SPI_connect() != SPI_OK_CONNECT)
			elog(ERROR, "SPI_connect failed");
		planned = plan_query(query, estimate);
		SPI_finish();
		nested--;
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(caller);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		nested--;
		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(caller);
		CurrentResourceOwner = owner;
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED)
			ReThrowError(error);
		FreeErrorData(error);
		planned = false;
	}
	PG_END_TRY();
	return planned;
}

/* The last queries that were planned: a statement asks for rows and costs several times. */
#define NREMEMBERED		4

typedef struct GjRemembered
{
	char	   *query;			/* NULL: empty; in TopMemoryContext */
	TimestampTz statement;
	CommandId	command;
	GjFamilyEstimate estimate;
} GjRemembered;

static GjRemembered remembered[NREMEMBERED];
static int	next_remembered = 0;

static void
remember(const char *query, const GjFamilyEstimate *estimate)
{
	GjRemembered *entry = &remembered[next_remembered];

	next_remembered = (next_remembered + 1) % NREMEMBERED;
	if (entry->query != NULL)
		pfree(entry->query);
	entry->query = NULL;
	entry->query = MemoryContextStrdup(TopMemoryContext, query);
	entry->statement = GetCurrentStatementStartTimestamp();
	entry->command = GetCurrentCommandId(false);
	entry->estimate = *estimate;
}

static bool
recall(const char *query, GjFamilyEstimate *estimate)
{
	for (int i = 0; i < NREMEMBERED; i++)
		if (remembered[i].query != NULL && strcmp(remembered[i].query, query) == 0 &&
			remembered[i].statement == GetCurrentStatementStartTimestamp() &&
			remembered[i].command == GetCurrentCommandId(false))
		{
			*estimate = remembered[i].estimate;
			return true;
		}
	return false;
}

/* What is known of the sets of a query (NULL: it is not known itself), and what they cost. */
static GjFamilyEstimate
estimate_family(const char *query)
{
	GjFamilyEstimate estimate = {DEFAULT_SETS, DEFAULT_ELEMENTS, 0};

	if (query != NULL && nested < MAX_NESTED && !recall(query, &estimate))
	{
		GjFamilyEstimate planned = estimate;

		if (try_plan_query(query, &planned))
			estimate = planned;
		estimate.nsets = Max(estimate.nsets, 1);
		remember(query, &estimate);
	}
	estimate.cost += SECONDS(estimate.nsets * (SET_SECONDS + estimate.nelements * ELEMENT_SECONDS));
	return estimate;
}

/* ---- the join */

/* The value of an argument: false if it is not known. */
static bool
argument_value(PlannerInfo *root, const FuncExpr *call, int number, Const **value)
{
	Node	   *expr = number < list_length(call->args) ? list_nth(call->args, number) : NULL;

	if (expr != NULL && !IsA(expr, Const))
		expr = estimate_expression_value(root, expr);
	*value = (Const *) expr;
	return expr != NULL && IsA(expr, Const);
}

/* A text argument, or NULL: it is NULL, or not known (*known). */
static char *
text_value(PlannerInfo *root, const FuncExpr *call, int number, bool *known)
{
	Const	   *value;

	*known = argument_value(root, call, number, &value);
	return *known && !value->constisnull ? TextDatumGetCString(value->constvalue) : NULL;
}

/* What share of all pairs a predicate keeps. */
static double
selectivity(int predicate, double threshold, double nsets)
{
	switch (predicate)
	{
		case GJ_SETS_ALL:
			return 1;
		case GJ_SETS_EQUALS:
			return 1 / nsets;
		case GJ_SETS_CONTAINS:
		case GJ_SETS_CONTAINED:
			return 0.001;
		case GJ_SETS_OVERLAP:
			return threshold <= 0 ? 1 : 0.02 * pow(0.5, Min(threshold, 64));
		default:
			return threshold <= 0 ? 1 : threshold > 1 ? 0 : 0.01 * (1 - threshold) * (1 - threshold) + 1e-6;
	}
}

/* Pairs that gpu_set_join and gpu_set_join_items return. */
static double
joined_rows(PlannerInfo *root, const FuncExpr *call, double npairs, double nsets)
{
	bool		known;
	char	   *name = text_value(root, call, 2, &known);
	int			predicate = name != NULL ? gj_find_set_predicate(name) : GJ_SETS_OVERLAP;
	Const	   *threshold;
	double		limit = predicate == GJ_SETS_OVERLAP ? 1 : DEFAULT_THRESHOLD;

	if (argument_value(root, call, 3, &threshold) && !threshold->constisnull)
		limit = DatumGetFloat8(threshold->constvalue);
	if (isnan(limit) || predicate < 0)
		return 1;
	return npairs * selectivity(predicate, limit, nsets);
}

/* Pairs that gpu_set_topk returns. */
static double
best_rows(PlannerInfo *root, const FuncExpr *call, double nleft, double nright)
{
	Const	   *k;
	double		best = 10;

	if (argument_value(root, call, 2, &k) && !k->constisnull)
		best = DatumGetInt32(k->constvalue);
	return nleft * Min(Max(best, 0), nright);
}

/* A pair, where it will probably be compared. */
static double
pair_seconds(double npairs, double nelements)
{
	GjFailure	failure;
	const GjDeviceInfo *device = NULL;
	const char *reason;

	if (gj_may_offload(&reason) &&
		Max(npairs, nelements) >= gj_set_device_min_elements)
		device = gj_client_device(&failure);
	return device == NULL ? PROCESS_PAIR_SECONDS :
		device->kind == GJ_DEVICE_CUDA ? CUDA_PAIR_SECONDS : CPU_PAIR_SECONDS / device->nprocessors;
}

void
gj_estimate_set_call(PlannerInfo *root, const FuncExpr *call, GjSetFunction function,
					 GjSetEstimate *estimate)
{
	bool		known;
	char	   *query = text_value(root, call, 0, &known);
	GjFamilyEstimate left = estimate_family(query);
	GjFamilyEstimate right = left;
	bool		self;
	double		npairs;

	query = text_value(root, call, 1, &known);
	self = known && query == NULL;
	if (!self)
		right = estimate_family(query);
	npairs = self && function != GJ_SET_TOPK ? left.nsets * (left.nsets - 1) / 2 : left.nsets * right.nsets;

	if (function == GJ_SET_TOPK)
		estimate->rows = best_rows(root, call, left.nsets, right.nsets);
	else if (function == GJ_INTERSECT_FAMILY)
		estimate->rows = npairs * selectivity(GJ_SETS_OVERLAP, 1, left.nsets);
	else
		estimate->rows = joined_rows(root, call, npairs, Max(left.nsets, right.nsets));
	estimate->rows = clamp_row_est(estimate->rows);
	estimate->load_cost = left.cost + (self ? 0 : right.cost);
	estimate->join_cost = SECONDS(START_SECONDS +
								  npairs * pair_seconds(npairs, left.nsets * left.nelements +
														(self ? 0 : right.nsets * right.nelements)));
}

/* ---- the support function */

/* Estimate the call that is asked about; false if there is none to look at. */
static bool
estimate_request(PlannerInfo *root, Oid funcid, Node *node, GjSetEstimate *estimate)
{
	GjSetFunction function;

	if (node == NULL || !IsA(node, FuncExpr) || !gj_is_set_function(funcid, &function))
		return false;
	gj_estimate_set_call(root, (FuncExpr *) node, function, estimate);
	return true;
}

/* Tell the planner about rows and costs. */
Datum
gpujoin_set_function_support(PG_FUNCTION_ARGS)
{
	Node	   *raw = (Node *) PG_GETARG_POINTER(0);
	GjSetEstimate estimate;

	if (IsA(raw, SupportRequestRows))
	{
		SupportRequestRows *request = (SupportRequestRows *) raw;

		if (!estimate_request(request->root, request->funcid, request->node, &estimate))
			PG_RETURN_POINTER(NULL);
		request->rows = estimate.rows;
		PG_RETURN_POINTER(request);
	}
	if (IsA(raw, SupportRequestCost))
	{
		SupportRequestCost *request = (SupportRequestCost *) raw;

		if (!estimate_request(request->root, request->funcid, request->node, &estimate))
			PG_RETURN_POINTER(NULL);
		request->startup = 0;
		request->per_tuple = estimate.load_cost + estimate.join_cost;
		PG_RETURN_POINTER(request);
	}
	PG_RETURN_POINTER(NULL);
}
