/*
 * planned.h
 *	  What finished plans have in them.
 */
#ifndef GJ_PLANNED_H
#define GJ_PLANNED_H

#include "nodes/plannodes.h"

/* The plans directly below a node of PostgreSQL's; they are the node's. */
extern List *gj_plans_below(const Plan *plan);

/* True if a GpuJoin is in a plan. */
extern bool gj_has_gpujoin(const PlannedStmt *statement);

/* True if PostgreSQL groups or aggregates in a plan. */
extern bool gj_aggregates_itself(const PlannedStmt *statement);

/* True if PostgreSQL looks into an index in a plan. */
extern bool gj_has_index_scan(const PlannedStmt *statement);

/*
 * PostgreSQL's costs of semi and anti joins by nested loops, if each outer row reads the inner side
 * to its end.  The planner's own costs expect a match soon: estimates of that can be far off.
 */
extern double gj_cost_rereads(const PlannedStmt *statement);

/*
 * True if another planner than PostgreSQL's has planned the query, or a part of it, as Citus does
 * with queries of distributed tables.
 */
extern bool gj_by_other_planner(const PlannedStmt *statement);

#endif							/* GJ_PLANNED_H */
