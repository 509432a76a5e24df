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
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

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

bool
gj_operator_is_safe(Oid opno)
{
	if (opno >= FirstNormalObjectId)
		return false;
	return gj_op_interpretation(opno) != NIL || function_is_safe(get_opcode(opno));
}

static bool
aggregate_is_safe(const Aggref *aggref)
{
	if (aggref->aggkind != AGGKIND_NORMAL || aggref->aggorder != NIL)
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

/* What the planner computes, whichever way the query is planned. */
static bool
is_not_constant(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return IsA(node, Var) || IsA(node, Param) || IsA(node, SubLink) || IsA(node, Aggref) ||
		expression_tree_walker(node, is_not_constant, context);
}

static bool
is_constant(Node *node)
{
	return !is_not_constant(node, NULL);
}

static bool
can_fail(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Query:
			return query_tree_walker((Query *) node, can_fail, context, QTW_IGNORE_JOINALIASES);
		case T_OpExpr:
			if (!gj_operator_is_safe(((OpExpr *) node)->opno) &&
				!like_is_safe(get_opcode(((OpExpr *) node)->opno), ((OpExpr *) node)->args,
							  ((OpExpr *) node)->inputcollid))
				return !is_constant(node);
			break;
		case T_ScalarArrayOpExpr:
			if (!gj_operator_is_safe(((ScalarArrayOpExpr *) node)->opno))
				return true;
			break;
		case T_FuncExpr:
			if (!function_is_safe(((FuncExpr *) node)->funcid))
				return !is_constant(node);
			break;
		case T_Aggref:
			if (!aggregate_is_safe((Aggref *) node))
				return true;
			break;
		case T_Param:
			return ((Param *) node)->paramkind == PARAM_MULTIEXPR;
		case T_SubLink:
			/* one with two rows is an error */
			if (((SubLink *) node)->subLinkType != EXISTS_SUBLINK &&
				((SubLink *) node)->subLinkType != ANY_SUBLINK)
				return true;
			break;
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
		case T_NullIfExpr:
		case T_MinMaxExpr:
		case T_RelabelType:
		case T_TargetEntry:
		case T_FromExpr:
		case T_JoinExpr:
		case T_RangeTblRef:
		case T_SortGroupClause:
		case T_RangeTblEntry:
		case T_ArrayExpr:
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, can_fail, context);
}

bool
gj_can_fail(Node *node)
{
	return can_fail(node, NULL);
}

/* The query whose subquery or CTE is looked at, and how deep below it. */
typedef struct RepeatContext
{
	const Query *query;
	int			depth;
} RepeatContext;

static bool rows_can_differ(Node *node, RepeatContext *cxt);

/* True if rows of a source can be others the next time; CTEs inside the walk are walked themselves. */
static bool
source_can_differ(const RangeTblEntry *rte, const RepeatContext *cxt)
{
	RepeatContext below = {.query = cxt->query};
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

		/* one that PostgreSQL puts where it is read is computed by each reader */
		if (strcmp(cte->ctename, rte->ctename) == 0)
			return !cte->cterecursive && cte->ctematerialized != CTEMaterializeAlways &&
				(cte->cterefcount == 1 || cte->ctematerialized == CTEMaterializeNever) &&
				rows_can_differ(cte->ctequery, &below);
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
