/*
 * set_join.c
 *	  The set-returning functions over families of sets: gpu_set_join, gpu_set_join_items,
 *	  gpu_set_topk and gpu_intersect_family.
 *
 * Rows are made one by one, as pairs or intersections come in; gpu_set_topk collects
 * first.  A GjSetCall makes them, for the SQL functions here and for the scan node
 * (src/exec/set_scan.c), which takes their place in a FROM clause.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/shmem.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "rows/similarity.h"
#include "sets/set_join.h"

PG_FUNCTION_INFO_V1(gpu_set_join);
PG_FUNCTION_INFO_V1(gpu_set_join_items);
PG_FUNCTION_INFO_V1(gpu_set_topk);
PG_FUNCTION_INFO_V1(gpu_intersect_family);

/* Names of GjSetPredicate. */
static const char *const predicate_names[GJ_SETS_NPREDICATES] = {
	[GJ_SETS_OVERLAP] = "overlap",
	[GJ_SETS_CONTAINS] = "contains",
	[GJ_SETS_CONTAINED] = "contained",
	[GJ_SETS_EQUALS] = "equals",
	[GJ_SETS_JACCARD] = "jaccard",
	[GJ_SETS_COSINE] = "cosine",
	[GJ_SETS_DICE] = "dice",
	[GJ_SETS_OVERLAP_COEFFICIENT] = "overlap_coefficient",
	[GJ_SETS_CONTAINMENT] = "containment",
	[GJ_SETS_ALL] = "all",
};

struct GjSetCall
{
	GjSetFunction function;
	MemoryContext sets_cxt;		/* of the sets and the arguments */
	MemoryContext run_cxt;		/* of the join and what is collected */
	GjSetArguments arguments;	/* of the last start */
	GjSets	   *sets;			/* of its queries */
	GjSetJoin  *join;			/* NULL: not started */
	bool		complete;		/* gpu_set_topk: all is collected */
	/* gpu_set_topk: all pairs, in their order */
	struct GjCandidate *collected;
	uint64		n;
	uint64		room;
	uint64		at;
	int32		rank;
};

const char *
gj_set_predicate_name(GjSetPredicate predicate)
{
	return predicate_names[predicate];
}

/* Get a text argument, which must not be NULL. */
static char *
text_argument(const NullableDatum *argument, const char *name)
{
	if (argument->isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", name)));
	return TextDatumGetCString(argument->value);
}

int
gj_find_set_predicate(const char *name)
{
	for (int i = 0; i < GJ_SETS_NPREDICATES; i++)
		if (strcmp(predicate_names[i], name) == 0)
			return i;
	return -1;
}

static GjSetPredicate
find_predicate(const char *name)
{
	int			predicate = gj_find_set_predicate(name);

	if (predicate >= 0)
		return predicate;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown predicate \"%s\"", name),
			 errhint("There are overlap, contains, contained, equals, jaccard, cosine, dice, overlap_coefficient, containment and all.")));
}

/* Read the last two arguments of gpu_set_join. */
static void
join_arguments(const NullableDatum *argument, GjSetArguments *arguments)
{
	arguments->predicate = find_predicate(text_argument(&argument[0], "predicate"));
	arguments->threshold = argument[1].isnull ? NAN : DatumGetFloat8(argument[1].value);
	if (isnan(arguments->threshold))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("threshold must be a number")));
}

/* Read the last two arguments of gpu_set_topk. */
static void
topk_arguments(const NullableDatum *argument, GjSetArguments *arguments)
{
	arguments->k = argument[0].isnull ? 0 : DatumGetInt32(argument[0].value);
	arguments->predicate = find_predicate(text_argument(&argument[1], "metric"));
	if (arguments->k <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("k must be positive")));
	if (arguments->predicate != GJ_SETS_OVERLAP &&
		(arguments->predicate < GJ_SETS_JACCARD || arguments->predicate > GJ_SETS_CONTAINMENT))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" is not a metric", predicate_names[arguments->predicate]),
				 errhint("There are overlap, jaccard, cosine, dice, overlap_coefficient and containment.")));
}

void
gj_set_arguments(GjSetFunction function, const NullableDatum *argument, GjSetArguments *arguments)
{
	memset(arguments, 0, sizeof(*arguments));
	arguments->left_query = text_argument(&argument[0], "left_query");
	if (!argument[1].isnull)
		arguments->right_query = text_argument(&argument[1], "right_query");
	if (function == GJ_SET_TOPK)
		topk_arguments(argument + 2, arguments);
	else if (function == GJ_INTERSECT_FAMILY)
	{
		arguments->predicate = GJ_SETS_OVERLAP;
		arguments->threshold = 1;
	}
	else
		join_arguments(argument + 2, arguments);
}

/* Make a call, which has not started. */
GjSetCall *
gj_set_call_create(MemoryContext cxt, GjSetFunction function)
{
	GjSetCall  *call = MemoryContextAllocZero(cxt, sizeof(GjSetCall));

	call->function = function;
	call->sets_cxt = AllocSetContextCreate(cxt, "gpujoin sets", ALLOCSET_DEFAULT_SIZES);
	call->run_cxt = AllocSetContextCreate(cxt, "gpujoin set join", ALLOCSET_DEFAULT_SIZES);
	return call;
}

static bool
same_query(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Load the sets of both queries, unless the last start was with the same ones. */
static void
load_sets(GjSetCall *call, const GjSetArguments *arguments)
{
	const GjSetArguments *last = &call->arguments;
	MemoryContext caller;

	if (call->sets != NULL && same_query(last->left_query, arguments->left_query) &&
		same_query(last->right_query, arguments->right_query))
		return;
	call->sets = NULL;
	MemoryContextReset(call->sets_cxt);
	caller = MemoryContextSwitchTo(call->sets_cxt);
	call->arguments.left_query = pstrdup(arguments->left_query);
	call->arguments.right_query = arguments->right_query == NULL ? NULL : pstrdup(arguments->right_query);
	MemoryContextSwitchTo(caller);
	call->sets = gj_sets_load(call->sets_cxt, arguments->left_query, arguments->right_query);
}

static void collect_candidates(GjSetCall *call);

void
gj_set_call_start(GjSetCall *call, const GjSetArguments *arguments)
{
	GjSets	   *loaded = call->sets;
	MemoryContext caller;

	load_sets(call, arguments);
	call->at = 0;
	call->rank = 0;
	/* what was collected of the same sets for the same arguments is still right */
	if (call->complete && call->sets == loaded && arguments->k == call->arguments.k &&
		arguments->predicate == call->arguments.predicate)
		return;
	gj_set_call_stop(call);
	call->arguments.predicate = arguments->predicate;
	call->arguments.threshold = arguments->threshold;
	call->arguments.k = arguments->k;
	caller = MemoryContextSwitchTo(call->run_cxt);
	call->join = gj_set_join_start(call->sets, arguments->predicate, arguments->threshold, arguments->k,
								   call->function == GJ_INTERSECT_FAMILY);
	MemoryContextSwitchTo(caller);
	if (call->function == GJ_SET_TOPK)
		collect_candidates(call);
}

void
gj_set_call_stop(GjSetCall *call)
{
	call->join = NULL;
	call->complete = false;
	call->collected = NULL;
	call->n = call->room = 0;
	MemoryContextReset(call->run_cxt);
}

const GjSets *
gj_set_call_sets(const GjSetCall *call)
{
	return call->sets;
}

const GjSetJoinStats *
gj_set_call_stats(const GjSetCall *call)
{
	return call->join != NULL ? gj_set_join_stats(call->join) : NULL;
}

/* Get the next pair. */
static bool
next_pair(GjSetCall *call, GjPair *pair)
{
	MemoryContext caller = MemoryContextSwitchTo(call->run_cxt);
	bool		found = gj_set_join_next(call->join, pair);

	MemoryContextSwitchTo(caller);
	return found;
}

/* Fill in the first four columns of a row. */
static void
fill_pair(const GjSetCall *call, const GjPair *pair, Datum *values)
{
	values[0] = Int64GetDatum(call->sets->id[pair->left]);
	values[1] = Int64GetDatum(call->sets->id[pair->right]);
	values[2] = Int64GetDatum(pair->common);
	values[3] = Float8GetDatum(gj_set_similarity(call->arguments.predicate, pair->common,
												 gj_sets_get(call->sets, pair->left).n,
												 gj_sets_get(call->sets, pair->right).n));
}

/* Make a bigint[] of the elements of a set. */
static Datum
make_items(GjKind kind, const void *elements, uint32 n)
{
	Size		size = ARR_OVERHEAD_NONULLS(1) + (Size) n * sizeof(int64);
	ArrayType  *array;
	int64	   *items;

	if (n == 0)
		return PointerGetDatum(construct_empty_array(INT8OID));
	if (!AllocSizeIsValid(size))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a set of %u elements is too large for an array", n)));
	array = palloc(size);
	SET_VARSIZE(array, size);
	array->ndim = 1;
	array->dataoffset = 0;
	array->elemtype = INT8OID;
	ARR_DIMS(array)[0] = (int) n;
	ARR_LBOUND(array)[0] = 1;
	items = (int64 *) ARR_DATA_PTR(array);
	if (kind == GJ_INT4)
		for (uint32 i = 0; i < n; i++)
			items[i] = ((const int32 *) elements)[i];
	else
		memcpy(items, elements, (Size) n * sizeof(int64));
	return PointerGetDatum(array);
}

/* Intersect the sets of a pair; the result is the caller's. */
static void *
intersect_pair(const GjSets *sets, const GjPair *pair, uint32 *n)
{
	GjElements	left = gj_sets_get(sets, pair->left);
	GjElements	right = gj_sets_get(sets, pair->right);
	size_t		width = gj_element_width(sets->kind);
	void	   *result = palloc(Min(left.n, right.n) * width + GJ_INTEGERS_SLACK);

	*n = gj_integers_combine(width, GJ_SETS_INTERSECT, left.data, left.n, right.data, right.n,
							 result);
	return result;
}

/* The common elements of a pair, as an array. */
static Datum
common_items(const GjSetCall *call, const GjPair *pair)
{
	uint32		n;
	void	   *common = intersect_pair(call->sets, pair, &n);
	Datum		items;

	if (n != pair->common)
		elog(ERROR, "%u common elements, not %u", n, pair->common);
	items = make_items(call->sets->kind, common, n);
	pfree(common);
	return items;
}

/* The next row of gpu_set_join and gpu_set_join_items. */
static bool
next_joined(GjSetCall *call, Datum *values)
{
	GjPair		pair;

	if (!next_pair(call, &pair))
		return false;
	fill_pair(call, &pair, values);
	if (call->function == GJ_SET_JOIN_ITEMS)
		values[4] = common_items(call, &pair);
	return true;
}

/* ---- gpu_set_topk */

/* A candidate: what it is ranked by. */
typedef struct GjCandidate
{
	GjPair		pair;
	double		score;
} GjCandidate;

static int
compare_candidates(const void *a, const void *b)
{
	const GjCandidate *x = a;
	const GjCandidate *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return x->pair.right < y->pair.right ? -1 : x->pair.right > y->pair.right;
}

/* Put n candidates in the order of their left sets, and those of each set in that of their rank. */
static GjCandidate *
sort_candidates(GjSetCall *call, GjCandidate *all)
{
	uint32		nleft = call->sets->nleft;
	uint64	   *end;
	GjCandidate *sorted;
	uint64		before = 0;

	end = MemoryContextAllocExtended(call->run_cxt, mul_size(sizeof(uint64), nleft),
									 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	sorted = MemoryContextAllocHuge(call->run_cxt, mul_size(sizeof(GjCandidate), call->n));
	for (uint64 i = 0; i < call->n; i++)
	{
		if (i % 65536 == 0)
			CHECK_FOR_INTERRUPTS();
		end[all[i].pair.left]++;
	}
	/* where the candidates of each set begin, then where they end */
	for (uint32 left = 0; left < nleft; left++)
	{
		uint64		n = end[left];

		end[left] = before;
		before += n;
	}
	for (uint64 i = 0; i < call->n; i++)
	{
		if (i % 65536 == 0)
			CHECK_FOR_INTERRUPTS();
		sorted[end[all[i].pair.left]++] = all[i];
	}
	before = 0;
	for (uint32 left = 0; left < nleft; before = end[left++])
	{
		if (end[left] - before > 1)
			qsort(sorted + before, end[left] - before, sizeof(GjCandidate), compare_candidates);
		if (left % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
	}
	pfree(end);
	pfree(all);
	return sorted;
}

/* Collect the best pairs of all tiles, in order. */
static void
collect_candidates(GjSetCall *call)
{
	GjCandidate *all = NULL;
	GjPair		pair;

	while (next_pair(call, &pair))
	{
		if (call->n == call->room)
		{
			call->room = Max(call->room * 2, 1024);
			all = all == NULL ?
				MemoryContextAlloc(call->run_cxt, sizeof(GjCandidate) * call->room) :
				repalloc_huge(all, mul_size(sizeof(GjCandidate), call->room));
		}
		all[call->n].pair = pair;
		all[call->n].score = gj_set_score(call->arguments.predicate, pair.common, gj_sets_get(call->sets, pair.left).n,
										  gj_sets_get(call->sets, pair.right).n);
		if (++call->n % 65536 == 0)
			CHECK_FOR_INTERRUPTS();
	}
	call->collected = call->n > 0 ? sort_candidates(call, all) : NULL;
	call->complete = true;
}

/* The next of the best pairs of each left set. */
static bool
next_best(GjSetCall *call, Datum *values)
{
	while (call->at < call->n)
	{
		const GjCandidate *candidate = call->collected + call->at;
		bool		same = call->at > 0 && candidate[-1].pair.left == candidate->pair.left;

		call->at++;
		call->rank = same ? call->rank + 1 : 1;
		if (call->rank > call->arguments.k)
			continue;
		values[0] = Int64GetDatum(call->sets->id[candidate->pair.left]);
		values[1] = Int64GetDatum(call->sets->id[candidate->pair.right]);
		values[2] = Int32GetDatum(call->rank);
		values[3] = Float8GetDatum(candidate->score);
		return true;
	}
	return false;
}

/* ---- gpu_intersect_family */

/* The next of the distinct intersections, and how often it appears. */
static bool
next_intersection(GjSetCall *call, Datum *values)
{
	MemoryContext caller = MemoryContextSwitchTo(call->run_cxt);
	GjElements	set;
	int64		frequency;
	bool		found = gj_set_join_next_distinct(call->join, &set, &frequency);

	MemoryContextSwitchTo(caller);
	if (!found)
		return false;
	values[0] = make_items(call->sets->kind, set.data, set.n);
	values[1] = Int64GetDatum(frequency);
	return true;
}

/* ---- rows */

bool
gj_set_call_next(GjSetCall *call, Datum *values)
{
	switch (call->function)
	{
		case GJ_SET_TOPK:
			return next_best(call, values);
		case GJ_INTERSECT_FAMILY:
			return next_intersection(call, values);
		default:
			return next_joined(call, values);
	}
}

/* Begin an SQL function: its memory, its result type, its join. */
static void
start_function(FunctionCallInfo fcinfo, GjSetFunction function)
{
	FuncCallContext *context = SRF_FIRSTCALL_INIT();
	MemoryContext caller = MemoryContextSwitchTo(context->multi_call_memory_ctx);
	GjSetArguments arguments;

	gj_set_arguments(function, fcinfo->args, &arguments);
	if (get_call_result_type(fcinfo, NULL, &context->tuple_desc) != TYPEFUNC_COMPOSITE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("function returning record called in context that cannot accept type record")));
	context->tuple_desc = BlessTupleDesc(context->tuple_desc);
	context->user_fctx = gj_set_call_create(context->multi_call_memory_ctx, function);
	MemoryContextSwitchTo(caller);
	gj_set_call_start(context->user_fctx, &arguments);
}

/* One call of an SQL function. */
static Datum
call_function(FunctionCallInfo fcinfo, GjSetFunction function)
{
	FuncCallContext *context;
	Datum		values[GJ_SET_MAX_COLUMNS];
	bool		nulls[GJ_SET_MAX_COLUMNS] = {false};

	if (SRF_IS_FIRSTCALL())
		start_function(fcinfo, function);
	context = SRF_PERCALL_SETUP();
	if (!gj_set_call_next(context->user_fctx, values))
		SRF_RETURN_DONE(context);
	SRF_RETURN_NEXT(context, HeapTupleGetDatum(heap_form_tuple(context->tuple_desc, values, nulls)));
}

/* Return the pairs of sets that a predicate is true of. */
Datum
gpu_set_join(PG_FUNCTION_ARGS)
{
	return call_function(fcinfo, GJ_SET_JOIN);
}

/* Return the same pairs with their common elements. */
Datum
gpu_set_join_items(PG_FUNCTION_ARGS)
{
	return call_function(fcinfo, GJ_SET_JOIN_ITEMS);
}

/* Return the best pairs of each left set. */
Datum
gpu_set_topk(PG_FUNCTION_ARGS)
{
	return call_function(fcinfo, GJ_SET_TOPK);
}

/* Return the distinct intersections and how often each appears. */
Datum
gpu_intersect_family(PG_FUNCTION_ARGS)
{
	return call_function(fcinfo, GJ_INTERSECT_FAMILY);
}
