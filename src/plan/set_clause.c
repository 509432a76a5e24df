/*
 * set_clause.c
 *	  Join clauses that compare integer arrays as sets: core's operators on arrays,
 *	  intarray's, and comparisons of gpujoin's functions with a constant.
 *
 * What is known is functions, not names: core's by OID, those of the two extensions by the
 * symbol of the C function that they are, if it belongs to the extension.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

#include "plan/join_build.h"
#include "plan/outer_joins.h"
#include "plan/set_clause.h"

/* A function of two arrays. */
typedef struct SetFunction
{
	const char *extension;		/* NULL: core's */
	Oid			oid;			/* core's */
	const char *symbol;			/* an extension's */
	bool		is_condition;	/* else a number that is compared */
	GjSetPredicate predicate;
	uint8		left_nulls;		/* GjNullElements */
	uint8		right_nulls;
} SetFunction;

#define SKIPPED	GJ_NULL_ELEMENTS_SKIPPED
#define NEVER	GJ_NULL_ELEMENTS_NEVER
#define FAIL	GJ_NULL_ELEMENTS_FAIL

static const SetFunction set_functions[] = {
	/* core: NULL elements are equal to nothing */
	{NULL, F_ARRAYOVERLAP, NULL, true, GJ_SETS_OVERLAP, SKIPPED, SKIPPED},
	{NULL, F_ARRAYCONTAINS, NULL, true, GJ_SETS_CONTAINS, SKIPPED, NEVER},
	{NULL, F_ARRAYCONTAINED, NULL, true, GJ_SETS_CONTAINED, NEVER, SKIPPED},
	/* the others raise errors for them */
	{"intarray", InvalidOid, "_int_overlap", true, GJ_SETS_OVERLAP, FAIL, FAIL},
	{"intarray", InvalidOid, "_int_contains", true, GJ_SETS_CONTAINS, FAIL, FAIL},
	{"intarray", InvalidOid, "_int_contained", true, GJ_SETS_CONTAINED, FAIL, FAIL},
	{"gpujoin", InvalidOid, "gpu_overlaps", true, GJ_SETS_OVERLAP, FAIL, FAIL},
	{"gpujoin", InvalidOid, "gpu_contains", true, GJ_SETS_CONTAINS, FAIL, FAIL},
	{"gpujoin", InvalidOid, "gpu_intersect_count", false, GJ_SETS_OVERLAP, FAIL, FAIL},
	{"gpujoin", InvalidOid, "gpu_jaccard", false, GJ_SETS_JACCARD, FAIL, FAIL},
	{"gpujoin", InvalidOid, "gpu_cosine", false, GJ_SETS_COSINE, FAIL, FAIL},
	{"gpujoin", InvalidOid, "gpu_dice", false, GJ_SETS_DICE, FAIL, FAIL},
	{"gpujoin", InvalidOid, "gpu_overlap_coefficient", false, GJ_SETS_OVERLAP_COEFFICIENT, FAIL, FAIL},
	{"gpujoin", InvalidOid, "gpu_containment", false, GJ_SETS_CONTAINMENT, FAIL, FAIL},
};

#undef SKIPPED
#undef NEVER
#undef FAIL

/* ---- functions */

/* The function of an extension that the symbol of a C function stands for. */
static const SetFunction *
extension_function(Oid funcid)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	const SetFunction *found = NULL;
	Form_pg_proc proc;
	Oid			extension;
	char	   *name;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	if (proc->prolang == ClanguageId && proc->pronargs == 2)
	{
		bool		isnull;
		char	   *symbol = TextDatumGetCString(SysCacheGetAttr(PROCOID, tuple,
																  Anum_pg_proc_prosrc, &isnull));

		for (int i = 0; i < lengthof(set_functions) && found == NULL; i++)
			if (set_functions[i].symbol && strcmp(set_functions[i].symbol, symbol) == 0)
				found = &set_functions[i];
	}
	ReleaseSysCache(tuple);
	if (found == NULL)
		return NULL;
	/* it reads a catalog: only for what is likely to be one */
	extension = getExtensionOfObject(ProcedureRelationId, funcid);
	name = OidIsValid(extension) ? get_extension_name(extension) : NULL;
	return name != NULL && strcmp(name, found->extension) == 0 ? found : NULL;
}

/* The function that an operator or a call is; NULL if it is none of sets. */
static const SetFunction *
find_function(Expr *expr, List **args)
{
	Oid			funcid;

	if (IsA(expr, OpExpr))
	{
		set_opfuncid((OpExpr *) expr);
		funcid = ((OpExpr *) expr)->opfuncid;
		*args = ((OpExpr *) expr)->args;
	}
	else if (IsA(expr, FuncExpr))
	{
		funcid = ((FuncExpr *) expr)->funcid;
		*args = ((FuncExpr *) expr)->args;
	}
	else
		return NULL;
	if (list_length(*args) != 2)
		return NULL;
	for (int i = 0; i < lengthof(set_functions); i++)
		if (set_functions[i].extension == NULL && set_functions[i].oid == funcid)
			return &set_functions[i];
	return funcid >= FirstNormalObjectId ? extension_function(funcid) : NULL;
}

/* ---- clauses */

/* Bytes of an element of an integer array, or 0. */
static uint8
element_width(Expr *expr)
{
	switch (getBaseType(exprType((Node *) expr)))
	{
		case INT2ARRAYOID:
			return 2;
		case INT4ARRAYOID:
			return 4;
		case INT8ARRAYOID:
			return 8;
		default:
			return 0;
	}
}

/* A column of a source; NULL: something else. */
static Expr *
array_column(Expr *expr)
{
	while (IsA(expr, RelabelType))
		expr = ((RelabelType *) expr)->arg;
	return (IsA(expr, Var) && ((Var *) expr)->varlevelsup == 0) || IsA(expr, PlaceHolderVar) ?
		expr : NULL;
}

static GjSetClause *
make_clause(const SetFunction *function, List *args)
{
	Expr	   *left = array_column(linitial(args));
	Expr	   *right = array_column(lsecond(args));
	GjSetClause *set;

	if (left == NULL || right == NULL || element_width(left) == 0 ||
		element_width(left) != element_width(right))
		return NULL;
	set = palloc0(sizeof(GjSetClause));
	set->left = left;
	set->right = right;
	set->predicate = function->predicate;
	set->width = element_width(left);
	set->left_nulls = function->left_nulls;
	set->right_nulls = function->right_nulls;
	return set;
}

static GjSetClause *
find_clause(Expr *clause)
{
	List	   *args;
	const SetFunction *function = find_function(clause, &args);
	GjSetClause *set;
	Expr	   *sides[2];
	GjOp		op;

	if (function != NULL)
		return function->is_condition ? make_clause(function, args) : NULL;
	if (!gj_inequality_clause(clause, &sides[0], &sides[1], &op))
		return NULL;
	for (int side = 0; side < 2; side++)
	{
		GjOp		seen = side == 0 ? op : gj_mirrored(op);

		if (seen != GJ_OP_GE_I && seen != GJ_OP_GT_I && seen != GJ_OP_GE_F && seen != GJ_OP_GT_F)
			continue;
		if (!is_pseudo_constant_clause((Node *) sides[1 - side]))
			continue;
		function = find_function(sides[side], &args);
		set = function == NULL || function->is_condition ? NULL : make_clause(function, args);
		if (set == NULL)
			continue;
		set->threshold = sides[1 - side];
		set->strict = seen == GJ_OP_GT_I || seen == GJ_OP_GT_F;
		return set;
	}
	return NULL;
}

GjSetClause *
gj_set_clause(GjBuilder *builder, Expr *clause)
{
	GjSetClause *set = find_clause(clause);
	double		left,
				right,
				common;

	if (set == NULL)
		return NULL;
	gj_estimate_sets(builder, set, &left, &right, &common);
	return Max(left, right) * set->width < GJ_MAX_CARRIED / 2 ? set : NULL;
}

/* ---- steps */

bool
gj_add_set_step(GjBuilder *builder, GjBuildStep *step, const GjSetClause *set, bool inverted)
{
	int			source[2];
	int			index[2];

	step->threshold = -1;
	if (set->threshold != NULL)
	{
		const GjExpr *expr;

		step->threshold = gj_compile(builder, set->threshold);
		if (step->threshold < 0)
			return false;
		expr = &builder->exprs[step->threshold];
		if (expr->ninstrs != 1 || builder->instrs[expr->first].op != GJ_OP_CONST)
			return false;
	}
	if (!gj_builder_column(builder, inverted ? set->right : set->left, &source[0], &index[0]) ||
		!gj_builder_column(builder, inverted ? set->left : set->right, &source[1], &index[1]))
		return false;
	step->outer_set = source[0] << 16 | index[0];
	step->inner_set = source[1] << 16 | index[1];
	step->set_left = set->left;
	step->set_right = set->right;
	step->inverted = inverted;
	step->set.predicate = set->predicate;
	if (inverted && set->predicate == GJ_SETS_CONTAINS)
		step->set.predicate = GJ_SETS_CONTAINED;
	else if (inverted && set->predicate == GJ_SETS_CONTAINED)
		step->set.predicate = GJ_SETS_CONTAINS;
	step->set.strict = set->strict;
	step->set.width = set->width;
	step->set.probe_nulls = inverted ? set->right_nulls : set->left_nulls;
	step->set.build_nulls = inverted ? set->left_nulls : set->right_nulls;
	/* elements that are NULL, arrays that do not travel whole */
	builder->can_fail = true;
	return true;
}

bool
gj_set_value(GjBuilder *builder, Expr *expr, GjSetValue *value)
{
	List	   *args;
	const SetFunction *function = find_function(expr, &args);
	GjSetClause *set;

	/* of core's operators, a NULL element is no error */
	if (function == NULL || function->left_nulls != GJ_NULL_ELEMENTS_FAIL ||
		(set = make_clause(function, args)) == NULL)
		return false;
	for (int i = 0; i < builder->nsteps; i++)
	{
		GjBuildStep *step = &builder->step[i];
		bool		same;

		if (step->algorithm != GJ_JOIN_SET)
			continue;
		same = gj_same_column(set->left, step->set_left) &&
			gj_same_column(set->right, step->set_right);
		if (!same && !(gj_same_column(set->left, step->set_right) &&
					   gj_same_column(set->right, step->set_left)))
			continue;
		step->has_values = true;
		step->set.probe_nulls = step->set.build_nulls = GJ_NULL_ELEMENTS_FAIL;
		value->step = i;
		value->predicate = function->predicate;
		value->is_condition = function->is_condition;
		/* the second argument, or for CONTAINED the first: is it the outer or the inner set? */
		value->contained = (same != step->inverted) == (function->predicate != GJ_SETS_CONTAINED) ? 2 : 1;
		if (value->predicate == GJ_SETS_CONTAINED)
			value->predicate = GJ_SETS_CONTAINS;
		return true;
	}
	return false;
}

/* ---- estimates */

/* Elements of an average set, if nothing is known. */
#define DEFAULT_ELEMENTS	10.0
/* Different elements that there are, if nothing is known. */
#define DEFAULT_UNIVERSE	1000.0

/* What statistics say of a column of arrays. */
typedef struct ArrayStats
{
	double		elements;		/* different ones of an average array */
	AttStatsSlot common;		/* the most frequent elements and their frequencies */
	bool		has_common;
} ArrayStats;

static void
read_stats(PlannerInfo *root, Expr *expr, int width, ArrayStats *stats)
{
	VariableStatData vardata;
	AttStatsSlot slot;

	memset(stats, 0, sizeof(*stats));
	stats->elements = DEFAULT_ELEMENTS;
	examine_variable(root, (Node *) expr, 0, &vardata);
	if (HeapTupleIsValid(vardata.statsTuple))
	{
		Form_pg_statistic form = (Form_pg_statistic) GETSTRUCT(vardata.statsTuple);

		if (form->stawidth > 0)
			stats->elements = Max((form->stawidth - 24.0) / width, 1);
		/* the last number of the histogram of distinct elements is their average */
		if (get_attstatsslot(&slot, vardata.statsTuple, STATISTIC_KIND_DECHIST, InvalidOid,
							 ATTSTATSSLOT_NUMBERS))
		{
			if (slot.nnumbers > 0)
				stats->elements = Max(slot.numbers[slot.nnumbers - 1], 1);
			free_attstatsslot(&slot);
		}
		stats->has_common = get_attstatsslot(&stats->common, vardata.statsTuple,
											 STATISTIC_KIND_MCELEM, InvalidOid,
											 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS);
		/* frequencies, then the least and the greatest, and that of NULL */
		if (stats->has_common && (stats->common.nnumbers < stats->common.nvalues + 2 ||
								  stats->common.nvalues == 0))
		{
			free_attstatsslot(&stats->common);
			stats->has_common = false;
		}
	}
	ReleaseVariableStats(vardata);
}

static int64
element_value(const AttStatsSlot *slot, int width, int i)
{
	return width == 2 ? DatumGetInt16(slot->values[i]) :
		width == 4 ? DatumGetInt32(slot->values[i]) : DatumGetInt64(slot->values[i]);
}

void
gj_estimate_sets(GjBuilder *builder, const GjSetClause *set, double *left, double *right,
				 double *common)
{
	ArrayStats	a;
	ArrayStats	b;
	double		rest_a;
	double		rest_b;
	double		universe = DEFAULT_UNIVERSE;

	read_stats(builder->root, set->left, set->width, &a);
	read_stats(builder->root, set->right, set->width, &b);
	*left = rest_a = a.elements;
	*right = rest_b = b.elements;
	*common = 0;
	if (a.has_common && b.has_common)
	{
		float4		least_a = a.common.numbers[a.common.nvalues];
		float4		least_b = b.common.numbers[b.common.nvalues];

		/* both lists ascend by element */
		for (int i = 0, j = 0; i < a.common.nvalues && j < b.common.nvalues;)
		{
			int64		x = element_value(&a.common, set->width, i);
			int64		y = element_value(&b.common, set->width, j);

			if (x == y)
			{
				*common += a.common.numbers[i] * b.common.numbers[j];
				rest_a -= a.common.numbers[i];
				rest_b -= b.common.numbers[j];
			}
			i += x <= y;
			j += y <= x;
		}
		/* the others are no more frequent than the least of these */
		universe = Max(1 / Max(Max(least_a, least_b), 1e-9), 1);
	}
	*common += Max(rest_a, 0) * Max(rest_b, 0) / universe;
	if (a.has_common)
		free_attstatsslot(&a.common);
	if (b.has_common)
		free_attstatsslot(&b.common);
}
