/*
 * reasons.c
 *	  Why parts of a query are not done by the device; see reasons.h.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/ruleutils.h"

#include "compat.h"
#include "guc.h"
#include "plan/join_path.h"
#include "plan/program_builder.h"
#include "plan/reasons.h"
#include "plan/remembered.h"
#include "plan/unnest.h"

/* Names of relations in a part's name, before "...". */
#define MAX_NAMES		8
/* Bytes of an expression's text. */
#define MAX_EXPR_TEXT	200

struct GjPart
{
	const char *name;
	char	   *reason;			/* NULL: none was found */
	bool		offered;
	bool		used;
	Cost		cost;			/* if offered: the device's, PostgreSQL's */
	Cost		native_cost;
	const GjPart *base;			/* NULL: of interest in any case */
};

bool		gj_explaining = false;

static List *parts = NIL;		/* of GjPart *, of the query that EXPLAIN plans */
static char *obstacle = NULL;
static bool pending = false;	/* the next query that is planned is to be explained */
static planner_hook_type prev_planner = NULL;
static ExplainOneQuery_hook_type prev_explain_one_query = NULL;

static const char *
part_name(PlannerInfo *root, const char *what, Relids relids)
{
	StringInfoData name;
	int			relid = -1;
	int			nnames = 0;

	initStringInfo(&name);
	appendStringInfoString(&name, what);
	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		RangeTblEntry *rte;

		/* outer joins have numbers, too, from 16 on */
		if (root->simple_rel_array[relid] == NULL)
			continue;
		rte = planner_rt_fetch(relid, root);
		if (nnames++ == MAX_NAMES)
		{
			appendStringInfoString(&name, ", ...");
			break;
		}
		appendStringInfo(&name, "%s%s", nnames > 1 ? ", " : " ",
						 quote_identifier(rte->eref->aliasname));
	}
	return name.data;
}

List *
gj_swap_parts(List *others)
{
	List	   *before = parts;

	parts = others;
	return before;
}

GjPart *
gj_part(PlannerInfo *root, const char *what, Relids relids)
{
	GjPart	   *part;
	const char *name;
	ListCell   *lc;

	if (!gj_explaining)
		return NULL;
	name = part_name(root, what, relids);
	foreach(lc, parts)
	{
		part = lfirst(lc);
		if (strcmp(part->name, name) == 0)
		{
			obstacle = NULL;
			return part;
		}
	}
	part = palloc0(sizeof(GjPart));
	part->name = name;
	parts = lappend(parts, part);
	obstacle = NULL;
	return part;
}

static char *format_text(const char *format, va_list args) pg_attribute_printf(1, 0);

static char *
format_text(const char *format, va_list args)
{
	StringInfoData text;

	initStringInfo(&text);
	for (;;)
	{
		va_list		copy;
		int			needed;

		va_copy(copy, args);
		needed = appendStringInfoVA(&text, format, copy);
		va_end(copy);
		if (needed == 0)
			return text.data;
		enlargeStringInfo(&text, needed);
	}
}

bool
gj_refuse(const char *format,...)
{
	va_list		args;

	if (!gj_explaining)
		return false;
	va_start(args, format);
	obstacle = format_text(format, args);
	va_end(args);
	return false;
}

bool
gj_refuse_else(const char *format,...)
{
	va_list		args;

	if (!gj_explaining || obstacle != NULL)
		return false;
	va_start(args, format);
	obstacle = format_text(format, args);
	va_end(args);
	return false;
}

bool
gj_refuse_because(const char *format,...)
{
	char	   *cause = obstacle;
	va_list		args;

	if (!gj_explaining)
		return false;
	va_start(args, format);
	obstacle = format_text(format, args);
	va_end(args);
	if (cause != NULL)
		obstacle = psprintf("%s: %s", obstacle, cause);
	return false;
}

char *
gj_swap_obstacle(char *text)
{
	char	   *last = obstacle;

	obstacle = text;
	return last;
}

void
gj_part_refused(GjPart *part)
{
	if (part != NULL && part->reason == NULL)
		part->reason = obstacle;
}

void
gj_part_refused_for(PlannerInfo *root, Relids relids)
{
	char	   *why = obstacle;
	GjPart	   *part = gj_part(root, "Join of", relids);

	obstacle = why;
	gj_part_refused(part);
}

void
gj_note_plan_sources(PlannerInfo *root, const GjBuilder *builder, GjPart *above)
{
	for (int s = 0; s < builder->nsources && above != NULL; s++)
	{
		const GjBuildSource *source = &builder->source[s];

		if (source->why != NULL && source->rel->reloptkind == RELOPT_BASEREL)
		{
			GjPart	   *part = gj_part(root, "Pages of", source->rel->relids);

			part->base = above;
			part->reason = source->why;
		}
	}
}

void
gj_part_above(GjPart *part, GjPart *base)
{
	if (part != NULL)
		part->base = base;
}

void
gj_part_offered(GjPart *part, const Path *path, const Path *native)
{
	if (part == NULL || (part->offered && part->cost <= path->total_cost))
		return;
	part->offered = true;
	part->cost = path->total_cost;
	part->native_cost = native->total_cost;
}

void
gj_part_used(GjPart *part)
{
	if (part != NULL)
		part->used = true;
}

const char *
gj_function_name(Oid function)
{
	return gj_explaining ? format_procedure(function) : "";
}

const char *
gj_type_name(Oid type)
{
	return gj_explaining ? format_type_be(type) : "";
}

/* True for what ruleutils.c cannot write without a plan, and columns that only a stage's result has. */
static bool
needs_plan(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var) && gj_is_result_column((Var *) node))
		return true;
	if (IsA(node, PlaceHolderVar) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		IsA(node, WindowFunc) || IsA(node, GroupingFunc) || IsA(node, FieldSelect) ||
		(IsA(node, Param) && ((Param *) node)->paramkind != PARAM_EXTERN))
		return true;
	return expression_tree_walker(node, needs_plan, context);
}

const char *
gj_expr_text(PlannerInfo *root, Node *expr)
{
	PlannedStmt *statement;
	List	   *names;
	Bitmapset  *used = NULL;
	char	   *text;

	if (!gj_explaining)
		return "";
	if (needs_plan(expr, NULL))
		return "with a subquery or a value from an outer query";
	statement = makeNode(PlannedStmt);
	statement->rtable = root->parse->rtable;
	for (int i = 1; i <= list_length(statement->rtable); i++)
		used = bms_add_member(used, i);
	names = select_rtable_names_for_explain(statement->rtable, used);
	text = deparse_expression(expr, deparse_context_for_plan_tree(statement, names), true, false);
	if (strlen(text) > MAX_EXPR_TEXT)
		strcpy(text + pg_mbcliplen(text, strlen(text), MAX_EXPR_TEXT - 3), "...");
	return text;
}

void
gj_note_never_done(PlannerInfo *root, UpperRelationKind stage)
{
	Query	   *parse = root->parse;
	GjPart	   *part;

	if (!gj_explaining)
		return;
	if (stage == UPPERREL_WINDOW)
	{
		part = gj_part(root, "Window functions over", root->all_baserels);
		gj_refuse("window functions are not supported");
	}
	else if (stage == UPPERREL_SETOP &&
			 (((SetOperationStmt *) parse->setOperations)->op != SETOP_UNION ||
			  !((SetOperationStmt *) parse->setOperations)->all))
	{
		part = gj_part(root, "Set operation", NULL);
		gj_refuse("UNION, INTERSECT and EXCEPT are not supported");
	}
	else if (stage == UPPERREL_FINAL && root->parent_root == NULL &&
			 parse->commandType == CMD_SELECT && bms_num_members(root->all_baserels) == 1 &&
			 parse->setOperations == NULL && parse->groupClause == NIL && !parse->hasAggs &&
			 parse->distinctClause == NIL &&
			 planner_rt_fetch(bms_singleton_member(root->all_baserels), root)->rtekind == RTE_RELATION)
	{
		part = gj_part(root, "Scan of", root->all_baserels);
		gj_refuse("one table without joins, groups or aggregates");
	}
	else
		return;
	gj_part_refused(part);
}

/* What EXPLAIN says of a part; NULL: nothing, for it is in the plan. */
static const char *
part_reason(const GjPart *part)
{
	if (part->used || (part->base != NULL && !part->base->used))
		return NULL;
	if (part->reason != NULL)
		return part->reason;
	if (part->offered)
		return psprintf("the device would cost %.2f, PostgreSQL's plan %.2f", part->cost,
						part->native_cost);
	return "PostgreSQL found a better plan for a larger part of the query";
}

/* All parts that have a reason; if they stand `apart` from the query, as an object. */
static void
explain_parts(ExplainState *es, bool apart)
{
	bool		open = false;
	ListCell   *lc;

	foreach(lc, parts)
	{
		const GjPart *part = lfirst(lc);
		const char *reason = part_reason(part);

		if (reason == NULL)
			continue;
		if (!open)
		{
			if (apart)
				ExplainOpenGroup("Query", NULL, true, es);
			ExplainOpenGroup("Not Offloaded", "Not Offloaded", false, es);
			if (es->format == EXPLAIN_FORMAT_TEXT)
				appendStringInfoString(es->str, "Not Offloaded:\n");
			open = true;
		}
		if (es->format == EXPLAIN_FORMAT_TEXT)
		{
			appendStringInfo(es->str, "  %s: %s\n", part->name, reason);
			continue;
		}
		ExplainOpenGroup("Part", NULL, true, es);
		ExplainPropertyText("Part", part->name, es);
		ExplainPropertyText("Reason", reason, es);
		ExplainCloseGroup("Part", NULL, true, es);
	}
	if (open)
		ExplainCloseGroup("Not Offloaded", "Not Offloaded", false, es);
	if (open && apart)
		ExplainCloseGroup("Query", NULL, true, es);
}

/*
 * Planning may run functions, which plan queries of their own: only the query that EXPLAIN was
 * asked for is of interest.
 */
static PlannedStmt *
plan_query(Query *query, const char *query_string, int cursor_options, ParamListInfo params)
{
	bool		outer = gj_explaining;
	PlannedStmt *result;

	gj_explaining = pending;
	pending = false;
	gj_remember_nothing();
	PG_TRY();
	{
		result = gj_plan_unnested(query, query_string, cursor_options, params,
								  prev_planner ? prev_planner : standard_planner);
	}
	PG_FINALLY();
	{
		gj_explaining = outer;
	}
	PG_END_TRY();
	return result;
}

#if PG_VERSION_NUM >= 180000
static explain_per_plan_hook_type prev_explain_per_plan = NULL;

static void
explain_per_plan(PlannedStmt *plannedstmt, IntoClause *into, ExplainState *es,
				 const char *query_string, ParamListInfo params, QueryEnvironment *env)
{
	if (prev_explain_per_plan)
		prev_explain_per_plan(plannedstmt, into, es, query_string, params, env);
	explain_parts(es, false);
	parts = NIL;
}
#endif

/*
 * Plans and explains a query with reasons.  Before 18 no hook is asked for what belongs to the
 * plan, so they come behind it: in structured formats as an object of its own.
 */
static void
explain_one_query(Query *query, int cursor_options, IntoClause *into, ExplainState *es,
				  const char *query_string, ParamListInfo params, QueryEnvironment *env)
{
	List	   *outer_parts = parts;

	parts = NIL;
	pending = gj_explain_reasons == GJ_REASONS_ON ||
		(gj_explain_reasons == GJ_REASONS_VERBOSE && es->verbose);
	PG_TRY();
	{
		if (prev_explain_one_query)
			prev_explain_one_query(query, cursor_options, into, es, query_string, params, env);
		else
			gj_standard_explain(query, cursor_options, into, es, query_string, params, env);
		/* nothing is left from 18 on; programs expect one object for a query unless told otherwise */
		if (es->format == EXPLAIN_FORMAT_TEXT || gj_explain_reasons == GJ_REASONS_ON)
			explain_parts(es, true);
	}
	PG_FINALLY();
	{
		pending = false;
		parts = outer_parts;
	}
	PG_END_TRY();
}

void
gj_reasons_init(void)
{
	prev_planner = planner_hook;
	planner_hook = plan_query;
	prev_explain_one_query = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_one_query;
#if PG_VERSION_NUM >= 180000
	prev_explain_per_plan = explain_per_plan_hook;
	explain_per_plan_hook = explain_per_plan;
#endif
}
