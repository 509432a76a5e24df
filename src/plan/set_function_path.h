/*
 * set_function_path.h
 *	  Set-returning functions over families of sets, in plans: what they cost, and the scan
 *	  node that takes the place of a function scan.
 *
 *	set_function_path.c	paths and plans
 *	set_function_cost.c	rows and costs, for the function too (its support function)
 *	exec/set_scan.c		the node
 */
#ifndef GJ_SET_FUNCTION_PATH_H
#define GJ_SET_FUNCTION_PATH_H

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

#include "sets/set_join.h"

/* True if this is one of the functions: by what it is, not only by its name. */
extern bool gj_is_set_function(Oid funcid, GjSetFunction *function);

/* What a call of a function comes to. */
typedef struct GjSetEstimate
{
	double		rows;
	Cost		load_cost;		/* running its queries and loading their sets */
	Cost		join_cost;		/* all pairs */
} GjSetEstimate;

/*
 * Estimates a call, as well as its arguments are known: queries that are constants are
 * planned.  Never raises an error because of them.
 */
extern void gj_estimate_set_call(PlannerInfo *root, const FuncExpr *call, GjSetFunction function,
								 GjSetEstimate *estimate);

/* Elements of CustomScan.custom_private, an integer list */
typedef enum GjSetScanPrivate
{
	GJ_SET_SCAN_FUNCTION		/* GjSetFunction */
} GjSetScanPrivate;

extern void gj_set_scan_planner_init(void);

#endif							/* GJ_SET_FUNCTION_PATH_H */
