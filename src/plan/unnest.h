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
 * Plans a query, and the same one with its correlated subqueries as joins.  The plan of the latter
 * is returned if it has a GpuJoin and costs less.
 */
extern PlannedStmt *gj_plan_unnested(Query *query, const char *query_string, int cursor_options,
									 ParamListInfo params, GjPlanQuery plan);

/* True for a subquery that was a CTE with several readers: each of them has a copy. */
extern bool gj_is_read_again(const Query *query);

#endif							/* GJ_UNNEST_H */
