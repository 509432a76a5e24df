/*
 * set_join.c
 *	  The set-returning functions over families of sets: gpu_set_join, gpu_set_join_items,
 *	  gpu_set_topk and gpu_intersect_family.
 *
 * Rows are returned one a call, as pairs come in; gpu_set_topk and gpu_intersect_family
 * collect first.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "funcapi.h"
#include "miscadmin.h"
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

/* What a set-returning function keeps between calls. */
typedef struct GjSetCall
{
	GjSets	   *sets;
	GjSetJoin  *join;
	GjSetPredicate predicate;
	/* gpu_set_topk: all pairs, in their order; gpu_intersect_family: the sets */
	void	   *collected;
	uint64		n;
	uint64		room;
	uint64		at;
	int32		rank;
	int32		k;
} GjSetCall;

/*
 * Get a text argument, which must not be NULL.
 */
static char *
text_argument(FunctionCallInfo fcinfo, int argument, const char *name)
{
	if (PG_ARGISNULL(argument))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", name)));
	return text_to_cstring(PG_GETARG_TEXT_PP(argument));
}

/*
 * Look a predicate up by its name.
 */
static GjSetPredicate
find_predicate(const char *name)
{
	for (int i = 0; i < GJ_SETS_NPREDICATES; i++)
		if (strcmp(predicate_names[i], name) == 0)
			return i;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown predicate \"%s\"", name),
			 errhint("There are overlap, contains, contained, equals, jaccard, cosine, dice, overlap_coefficient, containment and all.")));
}

/*
 * Begin a set-returning function: its memory, its result type, its sets.
 */
static FuncCallContext *
start_call(FunctionCallInfo fcinfo, const char *left_query, const char *right_query)
{
	FuncCallContext *context = SRF_FIRSTCALL_INIT();
	MemoryContext caller = MemoryContextSwitchTo(context->multi_call_memory_ctx);
	GjSetCall  *call = palloc0(sizeof(GjSetCall));

	if (get_call_result_type(fcinfo, NULL, &context->tuple_desc) != TYPEFUNC_COMPOSITE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("function returning record called in context that cannot accept type record")));
	context->tuple_desc = BlessTupleDesc(context->tuple_desc);
	context->user_fctx = call;
	MemoryContextSwitchTo(caller);
	call->sets = gj_sets_load(context->multi_call_memory_ctx, left_query, right_query);
	return context;
}

/*
 * Start the join of a call.
 */
static void
start_join(FuncCallContext *context, GjSetPredicate predicate, double threshold, uint32 top_k)
{
	GjSetCall  *call = context->user_fctx;
	MemoryContext caller = MemoryContextSwitchTo(context->multi_call_memory_ctx);

	call->predicate = predicate;
	call->join = gj_set_join_start(call->sets, predicate, threshold, top_k);
	MemoryContextSwitchTo(caller);
}

/*
 * Get the next pair in the memory of the call.
 */
static bool
next_pair(FuncCallContext *context, GjPair *pair)
{
	GjSetCall  *call = context->user_fctx;
	MemoryContext caller = MemoryContextSwitchTo(context->multi_call_memory_ctx);
	bool		found = gj_set_join_next(call->join, pair);

	MemoryContextSwitchTo(caller);
	return found;
}

/*
 * Read the arguments of gpu_set_join and begin it.
 */
static FuncCallContext *
start_set_join(FunctionCallInfo fcinfo)
{
	char	   *left = text_argument(fcinfo, 0, "left_query");
	char	   *right = PG_ARGISNULL(1) ? NULL : text_argument(fcinfo, 1, "right_query");
	GjSetPredicate predicate = find_predicate(text_argument(fcinfo, 2, "predicate"));
	double		threshold = PG_ARGISNULL(3) ? NAN : PG_GETARG_FLOAT8(3);
	FuncCallContext *context;

	if (isnan(threshold))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("threshold must be a number")));
	context = start_call(fcinfo, left, right);
	start_join(context, predicate, threshold, 0);
	return context;
}

/*
 * Fill in the first four columns of a row.
 */
static void
fill_pair(const GjSetCall *call, const GjPair *pair, Datum *values)
{
	values[0] = Int64GetDatum(call->sets->id[pair->left]);
	values[1] = Int64GetDatum(call->sets->id[pair->right]);
	values[2] = Int64GetDatum(pair->common);
	values[3] = Float8GetDatum(gj_set_similarity(call->predicate, pair->common,
												 gj_sets_get(call->sets, pair->left).n,
												 gj_sets_get(call->sets, pair->right).n));
}

/*
 * Return the pairs of sets that a predicate is true of.
 */
Datum
gpu_set_join(PG_FUNCTION_ARGS)
{
	FuncCallContext *context;
	GjPair		pair;
	Datum		values[4];
	bool		nulls[4] = {false};

	if (SRF_IS_FIRSTCALL())
		(void) start_set_join(fcinfo);
	context = SRF_PERCALL_SETUP();
	if (!next_pair(context, &pair))
		SRF_RETURN_DONE(context);
	fill_pair(context->user_fctx, &pair, values);
	SRF_RETURN_NEXT(context, HeapTupleGetDatum(heap_form_tuple(context->tuple_desc, values, nulls)));
}

/*
 * Make a bigint[] of the elements of a set.
 */
static Datum
make_items(GjKind kind, const void *elements, uint32 n)
{
	Datum	   *items = palloc(sizeof(Datum) * Max(n, 1));
	ArrayType  *array;

	for (uint32 i = 0; i < n; i++)
		items[i] = Int64GetDatum(kind == GJ_INT4 ? ((const int32 *) elements)[i] : ((const int64 *) elements)[i]);
	array = n > 0 ? construct_array(items, n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE) :
		construct_empty_array(INT8OID);
	pfree(items);
	return PointerGetDatum(array);
}

/*
 * Intersect the sets of a pair; the result is the caller's.
 */
static void *
intersect_pair(const GjSets *sets, const GjPair *pair, uint32 *n)
{
	GjArrayPair both = {.kind = sets->kind,.operation = GJ_SETS_INTERSECT};

	both.input[0] = gj_sets_get(sets, pair->left);
	both.input[1] = gj_sets_get(sets, pair->right);
	both.result = palloc(gj_array_pair_room(&both) * gj_element_width(sets->kind) + 8);
	gj_array_pair_in_process(&both);
	*n = both.count;
	return both.result;
}

/*
 * Return the same pairs with their common elements.
 */
Datum
gpu_set_join_items(PG_FUNCTION_ARGS)
{
	FuncCallContext *context;
	GjSetCall  *call;
	GjPair		pair;
	Datum		values[5];
	bool		nulls[5] = {false};
	void	   *common;
	uint32		n;

	if (SRF_IS_FIRSTCALL())
		(void) start_set_join(fcinfo);
	context = SRF_PERCALL_SETUP();
	call = context->user_fctx;
	if (!next_pair(context, &pair))
		SRF_RETURN_DONE(context);
	fill_pair(call, &pair, values);
	common = intersect_pair(call->sets, &pair, &n);
	if (n != pair.common)
		elog(ERROR, "%u common elements, not %u", n, pair.common);
	values[4] = make_items(call->sets->kind, common, n);
	pfree(common);
	SRF_RETURN_NEXT(context, HeapTupleGetDatum(heap_form_tuple(context->tuple_desc, values, nulls)));
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

	if (x->pair.left != y->pair.left)
		return x->pair.left < y->pair.left ? -1 : 1;
	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return x->pair.right < y->pair.right ? -1 : x->pair.right > y->pair.right;
}

/*
 * Collect the best pairs of all tiles, in order.
 */
static void
collect_candidates(FuncCallContext *context)
{
	GjSetCall  *call = context->user_fctx;
	GjCandidate *all = NULL;
	GjPair		pair;

	while (next_pair(context, &pair))
	{
		if (call->n == call->room)
		{
			call->room = Max(call->room * 2, 1024);
			all = all == NULL ?
				MemoryContextAlloc(context->multi_call_memory_ctx, sizeof(GjCandidate) * call->room) :
				repalloc_huge(all, mul_size(sizeof(GjCandidate), call->room));
		}
		all[call->n].pair = pair;
		all[call->n].score = gj_set_score(call->predicate, pair.common, gj_sets_get(call->sets, pair.left).n,
										  gj_sets_get(call->sets, pair.right).n);
		if (++call->n % 65536 == 0)
			CHECK_FOR_INTERRUPTS();
	}
	if (call->n > 0)
		qsort(all, call->n, sizeof(GjCandidate), compare_candidates);
	call->collected = all;
}

/*
 * Read the arguments of gpu_set_topk and begin it.
 */
static void
start_topk(FunctionCallInfo fcinfo)
{
	char	   *left = text_argument(fcinfo, 0, "left_query");
	char	   *right = PG_ARGISNULL(1) ? NULL : text_argument(fcinfo, 1, "right_query");
	int32		k = PG_ARGISNULL(2) ? 0 : PG_GETARG_INT32(2);
	GjSetPredicate metric = find_predicate(text_argument(fcinfo, 3, "metric"));
	FuncCallContext *context;

	if (k <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("k must be positive")));
	if (metric != GJ_SETS_OVERLAP && (metric < GJ_SETS_JACCARD || metric > GJ_SETS_CONTAINMENT))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" is not a metric", predicate_names[metric]),
				 errhint("There are overlap, jaccard, cosine, dice, overlap_coefficient and containment.")));
	context = start_call(fcinfo, left, right);
	((GjSetCall *) context->user_fctx)->k = k;
	start_join(context, metric, 0, k);
	collect_candidates(context);
}

/*
 * Return the best pairs of each left set.
 */
Datum
gpu_set_topk(PG_FUNCTION_ARGS)
{
	FuncCallContext *context;
	GjSetCall  *call;

	if (SRF_IS_FIRSTCALL())
		start_topk(fcinfo);
	context = SRF_PERCALL_SETUP();
	call = context->user_fctx;
	while (call->at < call->n)
	{
		const GjCandidate *candidate = (const GjCandidate *) call->collected + call->at;
		bool		same = call->at > 0 && candidate[-1].pair.left == candidate->pair.left;
		Datum		values[4];
		bool		nulls[4] = {false};

		call->at++;
		call->rank = same ? call->rank + 1 : 1;
		if (call->rank > call->k)
			continue;
		values[0] = Int64GetDatum(call->sets->id[candidate->pair.left]);
		values[1] = Int64GetDatum(call->sets->id[candidate->pair.right]);
		values[2] = Int32GetDatum(call->rank);
		values[3] = Float8GetDatum(candidate->score);
		SRF_RETURN_NEXT(context, HeapTupleGetDatum(heap_form_tuple(context->tuple_desc, values, nulls)));
	}
	SRF_RETURN_DONE(context);
}

/* ---- gpu_intersect_family */

/* A distinct intersection. */
typedef struct GjFamilyEntry
{
	const void *elements;
	uint32		hash;
	uint32		status;
	int64		frequency;
} GjFamilyEntry;

#define SH_PREFIX family
#define SH_ELEMENT_TYPE GjFamilyEntry
#define SH_KEY_TYPE const void *
#define SH_KEY elements
#define SH_HASH_KEY(table, key) (*(uint32 *) (table)->private_data)
#define SH_EQUAL(table, a, b) (family_equal(a, b))
#define SH_STORE_HASH
#define SH_GET_HASH(table, entry) (entry)->hash
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE

/* A key is its length in bytes and then the elements. */
static inline bool
family_equal(const void *a, const void *b)
{
	uint64		n = *(const uint64 *) a;

	return n == *(const uint64 *) b && memcmp((const uint64 *) a + 1, (const uint64 *) b + 1, n) == 0;
}

#include "lib/simplehash.h"

/*
 * Count the distinct intersections of all pairs.
 */
static void
collect_family(FuncCallContext *context)
{
	GjSetCall  *call = context->user_fctx;
	size_t		width = gj_element_width(call->sets->kind);
	uint32		hash;
	family_hash *table = family_create(context->multi_call_memory_ctx, 1024, &hash);
	family_iterator iterator;
	GjFamilyEntry *entry;
	GjPair		pair;

	while (next_pair(context, &pair))
	{
		GjArrayPair both = {.kind = call->sets->kind,.operation = GJ_SETS_INTERSECT};
		uint64	   *key;
		bool		found;

		both.input[0] = gj_sets_get(call->sets, pair.left);
		both.input[1] = gj_sets_get(call->sets, pair.right);
		key = MemoryContextAllocHuge(context->multi_call_memory_ctx,
									 sizeof(uint64) + gj_array_pair_room(&both) * width);
		both.result = key + 1;
		gj_array_pair_in_process(&both);
		*key = both.count * width;
		hash = hash_bytes((const unsigned char *) (key + 1), *key);
		entry = family_insert(table, key, &found);
		if (found)
			pfree(key);
		else
		{
			entry->frequency = 0;
			entry->elements = repalloc_huge(key, sizeof(uint64) + *key);
		}
		entry->frequency++;
		CHECK_FOR_INTERRUPTS();
	}
	call->n = table->members;
	call->collected = MemoryContextAllocHuge(context->multi_call_memory_ctx,
											 sizeof(GjFamilyEntry) * Max(call->n, 1));
	call->n = 0;
	family_start_iterate(table, &iterator);
	while ((entry = family_iterate(table, &iterator)) != NULL)
		((GjFamilyEntry *) call->collected)[call->n++] = *entry;
	family_destroy(table);
}

/*
 * Return the distinct intersections and how often each appears.
 */
Datum
gpu_intersect_family(PG_FUNCTION_ARGS)
{
	FuncCallContext *context;
	GjSetCall  *call;
	const GjFamilyEntry *entry;
	uint64		nbytes;
	Datum		values[2];
	bool		nulls[2] = {false};

	if (SRF_IS_FIRSTCALL())
	{
		char	   *left = text_argument(fcinfo, 0, "left_query");
		char	   *right = PG_ARGISNULL(1) ? NULL : text_argument(fcinfo, 1, "right_query");

		context = start_call(fcinfo, left, right);
		start_join(context, GJ_SETS_OVERLAP, 1, 0);
		collect_family(context);
	}
	context = SRF_PERCALL_SETUP();
	call = context->user_fctx;
	if (call->at == call->n)
		SRF_RETURN_DONE(context);
	entry = (const GjFamilyEntry *) call->collected + call->at++;
	nbytes = *(const uint64 *) entry->elements;
	values[0] = make_items(call->sets->kind, (const uint64 *) entry->elements + 1,
						   nbytes / gj_element_width(call->sets->kind));
	values[1] = Int64GetDatum(entry->frequency);
	SRF_RETURN_NEXT(context, HeapTupleGetDatum(heap_form_tuple(context->tuple_desc, values, nulls)));
}
