/*
 * unnest.h
 *	  Correlated subqueries as joins; CTEs as subqueries.
 */
#ifndef GJ_UNNEST_H
#define GJ_UNNEST_H

#include "nodes/params.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"

/* A planner's function. */
typedef PlannedStmt *(*GjPlanQuery) (Query *query, const char *query_string, int cursor_options,
									 ParamListInfo params);

/*
 * While a query is planned that was rewritten: what the plan of the query as it is written costs, with
 * what is to be added for visits of cached pages (native_cost.c).  Else 0.
 */
extern double gj_written_cost;

/* While true, the plan of each query level costs what its visits of cached pages do, too. */
extern bool gj_charging_visits;

/*
 * Plans a query, the same one with its correlated subqueries as joins, and the same one with finer
 * groups (finer_groups.h).  The plan of one of the latter is returned if it has a GpuJoin and costs less.
 */
extern PlannedStmt *gj_plan_unnested(Query *query, const char *query_string, int cursor_options,
									 ParamListInfo params, GjPlanQuery plan);

/*
 * The readers of a subquery that was a CTE: each of them has a copy, and the stages of these are the
 * same, most likely, so that one of them runs.  1: it was none, or has one reader.
 */
extern uint32 gj_readers(const Query *query);

#endif							/* GJ_UNNEST_H */
