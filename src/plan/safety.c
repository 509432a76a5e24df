/*
 * safety.c
 *	  What can raise an error, and what can give other rows the next time.
 *
 * Both are lists of what is known to be harmless; anything else is not.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteManip.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "plan/safety.h"

/* Functions that raise no error whatever the values are (numbers of 131 072 digits aside). */
bool
gj_function_is_total(Oid funcid)
{
	switch (funcid)
	{
		case F_NUMERIC_ADD:
		case F_NUMERIC_SUB:
		case F_NUMERIC_MUL:
		case F_NUMERIC_UMINUS:
		case F_NUMERIC_INT2:
		case F_NUMERIC_INT4:
		case F_NUMERIC_INT8:
		case F_INT4_INT2:
		case F_INT8_INT2:
		case F_INT8_INT4:
		case F_FLOAT8_INT4:
		case F_FLOAT8_INT8:
			return true;
		default:
			return false;
	}
}

static bool
function_is_safe(Oid funcid)
{
	return gj_function_is_total(funcid) || funcid == F_FLOAT8_INT2 || funcid == F_TEXT_BPCHAR;
}

/* True for LIKE with a pattern whose last character is no escape; a collation may be refused. */
static bool
like_is_safe(Oid funcid, const List *args, Oid collation)
{
	const Const *pattern;
	char	   *bytes;
	int			length;

	if (funcid != F_TEXTLIKE && funcid != F_TEXTNLIKE && funcid != F_BPCHARLIKE &&
		funcid != F_BPCHARNLIKE)
		return false;
	pattern = lsecond(args);
	if (!IsA(pattern, Const) || pattern->consttype != TEXTOID || pattern->constisnull ||
		!OidIsValid(collation) || !get_collation_isdeterministic(collation))
		return false;
	bytes = TextDatumGetCString(pattern->constvalue);
	length = strlen(bytes);
	return length == 0 || bytes[length - 1] != '\\';
}

/*
 * True for types whose comparison looks at what is in the values: a record may have a column of a
 * type that has none, or records may be of different types.
 */
static bool
is_container(Oid type)
{
	switch (type)
	{
		case RECORDOID:
		case RECORDARRAYOID:
		case ANYARRAYOID:
		case ANYRANGEOID:
		case ANYMULTIRANGEOID:
			return true;
		default:
			return false;
	}
}

bool
gj_operator_is_safe(Oid opno)
{
	Oid			left;
	Oid			right;

	if (!OidIsValid(opno) || opno >= FirstNormalObjectId)
		return false;
	op_input_types(opno, &left, &right);
	if (is_container(left) || is_container(right))
		return false;
	return gj_op_interpretation(opno) != NIL || function_is_safe(get_opcode(opno));
}

/* True if values have a collation, but which one is not clear: to compare them is an error. */
static bool
lacks_collation(const List *values, Oid collation)
{
	ListCell   *lc;

	foreach(lc, OidIsValid(collation) ? NIL : values)
	{
		Node	   *value = lfirst(lc);

		if (IsA(value, TargetEntry))
			value = (Node *) ((TargetEntry *) value)->expr;
		if (type_is_collatable(exprType(value)))
			return true;
	}
	return false;
}

static bool
aggregate_is_safe(const Aggref *aggref)
{
	if (aggref->aggkind != AGGKIND_NORMAL || aggref->aggorder != NIL ||
		lacks_collation(aggref->args, aggref->inputcollid))
		return false;
	switch (aggref->aggfnoid)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
		case F_SUM_INT2:
		case F_SUM_INT4:
		case F_SUM_INT8:
		case F_SUM_NUMERIC:
		case F_AVG_INT2:
		case F_AVG_INT4:
		case F_AVG_INT8:
		case F_AVG_NUMERIC:
		case F_MIN_INT2:
		case F_MIN_INT4:
		case F_MIN_INT8:
		case F_MIN_OID:
		case F_MIN_DATE:
		case F_MIN_TIMESTAMP:
		case F_MIN_TIMESTAMPTZ:
		case F_MIN_FLOAT4:
		case F_MIN_FLOAT8:
		case F_MIN_NUMERIC:
		case F_MIN_TEXT:
		case F_MIN_BPCHAR:
		case F_MAX_INT2:
		case F_MAX_INT4:
		case F_MAX_INT8:
		case F_MAX_OID:
		case F_MAX_DATE:
		case F_MAX_TIMESTAMP:
		case F_MAX_TIMESTAMPTZ:
		case F_MAX_FLOAT4:
		case F_MAX_FLOAT8:
		case F_MAX_NUMERIC:
		case F_MAX_TEXT:
		case F_MAX_BPCHAR:
		case F_BOOL_AND:
		case F_BOOL_OR:
		case F_EVERY:
			return true;
		default:
			return false;
	}
}

/*
 * True for functions whose value the planner does not know beforehand, apart from those that raise
 * no error: the time, and what is some days away from it.
 */
static bool
is_unpredictable(Oid funcid, void *context)
{
	switch (funcid)
	{
		case F_NOW:
		case F_TRANSACTION_TIMESTAMP:
		case F_STATEMENT_TIMESTAMP:
		case F_TIMESTAMPTZ_PL_INTERVAL:
		case F_TIMESTAMPTZ_MI_INTERVAL:
		case F_TIMESTAMPTZ_TIMESTAMP:
		case F_TIMESTAMPTZ_DATE:
		case F_TIMESTAMP_TIMESTAMPTZ:
		case F_DATE_TIMESTAMPTZ:
			return false;
		default:
			return func_volatile(funcid) != PROVOLATILE_IMMUTABLE;
	}
}

static bool
is_not_constant(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return IsA(node, Var) || IsA(node, Param) || IsA(node, SubLink) || IsA(node, Aggref) ||
		IsA(node, CaseTestExpr) || check_functions_in_node(node, is_unpredictable, NULL) ||
		expression_tree_walker(node, is_not_constant, context);
}

/* True for a calculation that raises its error, if any, when the query is planned. */
static bool
is_constant(Node *node)
{
	switch (nodeTag(node))
	{
		case T_Const:
		case T_OpExpr:
		case T_FuncExpr:
		case T_NullIfExpr:
		case T_CoerceViaIO:
			return !is_not_constant(node, NULL);
		default:
			return false;
	}
}

/* Looks at queries from the outside in: a CTE is looked at where it is read. */
typedef struct FailContext
{
	const GjAround *around;		/* queries around the node; NULL: none */
	int			nctes;			/* that were looked at */
	bool		without_queries;	/* what is in subqueries does not count */
} FailContext;

/* CTEs that are looked at: some name each other several times. */
#define MOST_CTES	100

static bool can_fail(Node *node, FailContext *cxt);

const Const *
gj_constant_limit(Node *limit)
{
	const FuncExpr *cast = (const FuncExpr *) limit;

	if (IsA(limit, FuncExpr) && gj_function_is_total(cast->funcid) && IsA(linitial(cast->args), Const))
		limit = eval_const_expressions(NULL, limit);
	return IsA(limit, Const) ? (const Const *) limit : NULL;
}

/* True for what LIMIT or OFFSET may not like: it is known too late, or less than none. */
static bool
limit_can_fail(Node *limit)
{
	const Const *value = limit != NULL ? gj_constant_limit(limit) : NULL;

	return limit != NULL &&
		(value == NULL || (!value->constisnull && DatumGetInt64(value->constvalue) < 0));
}

static bool
query_can_fail(Query *query, FailContext *cxt)
{
	GjAround	here = {.query = query,.outer = cxt->around};
	FailContext below = {.around = &here,.nctes = cxt->nctes};
	bool		result;

	if (query->rowMarks != NIL || query->commandType != CMD_SELECT ||
		limit_can_fail(query->limitCount) || limit_can_fail(query->limitOffset))
		return true;
	result = query_tree_walker(query, can_fail, &below, QTW_IGNORE_JOINALIASES |
							   QTW_EXAMINE_RTES_BEFORE | QTW_EXAMINE_SORTGROUP);
	cxt->nctes = below.nctes;
	return result;
}

/* The CTE that a query reads; *around: the query that has it.  NULL: it is not known. */
static const CommonTableExpr *
find_cte(const RangeTblEntry *rte, const GjAround **around)
{
	ListCell   *lc;

	for (Index up = rte->ctelevelsup; up > 0 && *around != NULL; up--)
		*around = (*around)->outer;
	foreach(lc, *around == NULL ? NIL : (*around)->query->cteList)
		if (strcmp(lfirst_node(CommonTableExpr, lc)->ctename, rte->ctename) == 0)
			return lfirst_node(CommonTableExpr, lc);
	return NULL;
}

/* True for a CTE, not a recursive one, that PostgreSQL puts where it is read. */
static bool
is_inlined(const CommonTableExpr *cte)
{
	return cte->ctematerialized != CTEMaterializeAlways &&
		(cte->cterefcount == 1 || cte->ctematerialized == CTEMaterializeNever);
}

static bool
source_can_fail(const RangeTblEntry *rte, FailContext *cxt)
{
	FailContext of_cte = *cxt;
	const CommonTableExpr *cte;
	bool		result;

	if (rte->rtekind == RTE_RELATION)
		return rte->relkind == RELKIND_FOREIGN_TABLE;
	if (rte->rtekind != RTE_CTE)
		return false;
	cte = find_cte(rte, &of_cte.around);
	if (cte == NULL || cte->cterecursive || ++of_cte.nctes > MOST_CTES)
		return true;
	result = can_fail(cte->ctequery, &of_cte);
	cxt->nctes = of_cte.nctes;
	return result;
}

/* True if comparing values of a type, as greatest() does, can raise an error. */
static bool
order_can_fail(Oid type)
{
	return !gj_operator_is_safe(lookup_type_cache(type, TYPECACHE_LT_OPR)->lt_opr);
}

static bool
operator_can_fail(Oid opno, const List *args, Oid collation)
{
	return (!gj_operator_is_safe(opno) && !like_is_safe(get_opcode(opno), args, collation)) ||
		lacks_collation(args, collation);
}

/* What is sorted or grouped by is in the target list. */
static bool
target_can_fail(const TargetEntry *tle)
{
	return tle->ressortgroupref != 0 &&
		lacks_collation(list_make1(tle->expr), exprCollation((Node *) tle->expr));
}

/* The node alone, without what is in it. */
static bool
node_can_fail(Node *node)
{
	switch (nodeTag(node))
	{
		case T_OpExpr:
		case T_NullIfExpr:
			{
				OpExpr	   *op = (OpExpr *) node;

				return operator_can_fail(op->opno, op->args, op->inputcollid);
			}
		case T_ScalarArrayOpExpr:
			{
				ScalarArrayOpExpr *op = (ScalarArrayOpExpr *) node;

				return !gj_operator_is_safe(op->opno) || lacks_collation(op->args, op->inputcollid);
			}
		case T_FuncExpr:
			return !function_is_safe(((FuncExpr *) node)->funcid);
		case T_Aggref:
			return !aggregate_is_safe((Aggref *) node);
		case T_MinMaxExpr:
			return order_can_fail(((MinMaxExpr *) node)->minmaxtype) ||
				lacks_collation(((MinMaxExpr *) node)->args, ((MinMaxExpr *) node)->inputcollid);
		case T_Param:
			return ((Param *) node)->paramkind == PARAM_MULTIEXPR;
		case T_TargetEntry:
			return target_can_fail((TargetEntry *) node);
		case T_SortGroupClause:
			return !gj_operator_is_safe(((SortGroupClause *) node)->eqop);
		case T_Var:
		case T_Const:
		case T_List:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_SQLValueFunction:
		case T_RelabelType:
		case T_FromExpr:
		case T_JoinExpr:
		case T_RangeTblRef:
		case T_ArrayExpr:
			return false;
		default:
			return true;
	}
}

/* One with two rows is an error. */
static bool
sublink_can_fail(const SubLink *sublink)
{
	return sublink->subLinkType != EXISTS_SUBLINK && sublink->subLinkType != ANY_SUBLINK;
}

static bool
can_fail(Node *node, FailContext *cxt)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Query:
			return !cxt->without_queries && query_can_fail((Query *) node, cxt);
		case T_SubLink:
			return (!cxt->without_queries && sublink_can_fail((SubLink *) node)) ||
				expression_tree_walker(node, can_fail, cxt);
		case T_RangeTblEntry:
			/* its parts are walked by whoever has the query */
			return source_can_fail((RangeTblEntry *) node, cxt);
		case T_CommonTableExpr:
			return false;
		default:
			return node_can_fail(node) ? !is_constant(node) :
				expression_tree_walker(node, can_fail, cxt);
	}
}

bool
gj_can_fail(Node *node, const GjAround *around)
{
	FailContext cxt = {.around = around};

	return can_fail(node, &cxt);
}

/* The same of an expression; what is in its subqueries does not count. */
static bool
expression_can_fail(Node *node)
{
	FailContext cxt = {.without_queries = true};

	return can_fail(node, &cxt);
}

/*
 * True if what a subquery selects, as a part of a condition around it perhaps, can raise an error.
 * Aggregates and window functions are computed where they stand.
 */
static bool
selected_can_fail(const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->targetList)
	{
		Node	   *expr = (Node *) lfirst_node(TargetEntry, lc)->expr;

		if (!contain_aggs_of_level(expr, 0) && !contain_windowfuncs(expr) &&
			expression_can_fail(expr))
			return true;
	}
	return limit_can_fail(query->limitCount) || limit_can_fail(query->limitOffset);
}

static bool
values_can_fail(const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
		if (expression_can_fail((Node *) lfirst_node(RangeTblEntry, lc)->values_lists))
			return true;
	return false;
}

/* True for a query that no condition is around: its rows are the result, inserted or those of UNION. */
static bool
is_result(const Query *query, const Query *root)
{
	ListCell   *lc;

	if (query == root)
		return true;
	foreach(lc, root->commandType == CMD_INSERT || root->setOperations != NULL ? root->rtable : NIL)
		if (lfirst_node(RangeTblEntry, lc)->subquery == query)
			return true;
	return false;
}

/* root: the outermost query */
static bool
conditions_can_fail(Node *node, void *root)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Query:
			return expression_can_fail((Node *) ((Query *) node)->jointree) ||
				expression_can_fail(((Query *) node)->havingQual) ||
				(!is_result((Query *) node, root) && selected_can_fail((Query *) node)) ||
				values_can_fail((Query *) node) ||
				query_tree_walker((Query *) node, conditions_can_fail, root, QTW_IGNORE_JOINALIASES);
		case T_RangeTblFunction:
			return expression_can_fail(((RangeTblFunction *) node)->funcexpr) ||
				expression_tree_walker(node, conditions_can_fail, root);
		case T_TableFunc:
			return true;
		default:
			return expression_tree_walker(node, conditions_can_fail, root);
	}
}

bool
gj_conditions_can_fail(const GjAround *here)
{
	while (here->outer != NULL)
		here = here->outer;
	return conditions_can_fail((Node *) here->query, (void *) here->query);
}

/* How many more queries there may be. */
typedef struct CountContext
{
	const GjAround *around;
	int			left;
} CountContext;

static bool
counts_more(Node *node, CountContext *cxt)
{
	CountContext below = *cxt;
	GjAround	here = {.outer = cxt->around};
	const CommonTableExpr *cte;
	bool		result = false;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		here.query = (Query *) node;
		below.around = &here;
		result = --below.left < 0 ||
			query_tree_walker((Query *) node, counts_more, &below,
							  QTW_IGNORE_JOINALIASES | QTW_EXAMINE_RTES_BEFORE);
	}
	else if (!IsA(node, RangeTblEntry))
		return expression_tree_walker(node, counts_more, cxt);
	else if (((RangeTblEntry *) node)->rtekind == RTE_CTE)
	{
		cte = find_cte((RangeTblEntry *) node, &below.around);
		result = cte != NULL && !cte->cterecursive && is_inlined(cte) &&
			counts_more(cte->ctequery, &below);
	}
	cxt->left = below.left;
	return result;
}

bool
gj_has_more_queries(Query *query, int most)
{
	CountContext cxt = {.left = most};

	return counts_more((Node *) query, &cxt);
}

/* The query whose subquery or CTE is looked at, and how deep below it. */
typedef struct RepeatContext
{
	const Query *query;
	int			depth;
	int			nctes;			/* that were looked at */
} RepeatContext;

static bool rows_can_differ(Node *node, RepeatContext *cxt);

/* True if rows of a source can be others the next time; CTEs inside the walk are walked themselves. */
static bool
source_can_differ(const RangeTblEntry *rte, RepeatContext *cxt)
{
	RepeatContext below = {.query = cxt->query,.nctes = cxt->nctes + 1};
	bool		result;
	ListCell   *lc;

	if (rte->rtekind != RTE_CTE)
		return rte->tablesample != NULL || rte->relkind == RELKIND_FOREIGN_TABLE;
	if ((int) rte->ctelevelsup < cxt->depth)
		return false;
	if ((int) rte->ctelevelsup > cxt->depth)
		return true;
	foreach(lc, cxt->query->cteList)
	{
		CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);

		if (strcmp(cte->ctename, rte->ctename) != 0)
			continue;
		/* one that PostgreSQL puts where it is read is computed by each reader */
		if (cte->cterecursive || !is_inlined(cte))
			return false;
		result = below.nctes > MOST_CTES || rows_can_differ(cte->ctequery, &below);
		cxt->nctes = below.nctes;
		return result;
	}
	return true;
}

/*
 * True for what may give other rows the next time: which ones come first, in which order floats
 * are added, which rows are sampled.
 */
static bool
rows_can_differ(Node *node, RepeatContext *cxt)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;
		bool		result;

		cxt->depth++;
		result = query->limitCount != NULL || query->limitOffset != NULL || query->hasDistinctOn ||
			query->hasWindowFuncs || query->rowMarks != NIL ||
			query_tree_walker(query, rows_can_differ, cxt,
							  QTW_IGNORE_JOINALIASES | QTW_EXAMINE_RTES_BEFORE);
		cxt->depth--;
		return result;
	}
	if (IsA(node, RangeTblEntry))
		return source_can_differ((RangeTblEntry *) node, cxt);
	if (IsA(node, Aggref) && !aggregate_is_safe((Aggref *) node))
		return true;
	return expression_tree_walker(node, rows_can_differ, cxt);
}

bool
gj_is_repeatable(const Query *query, Query *sub)
{
	RepeatContext cxt = {.query = query};

	return !contain_volatile_functions((Node *) sub) && !rows_can_differ((Node *) sub, &cxt);
}
