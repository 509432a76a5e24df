/*
 * join_path.h
 *	  From a native join path to a GpuJoin path.
 */
#ifndef GJ_JOIN_PATH_H
#define GJ_JOIN_PATH_H

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "plan/program_builder.h"

/* What a GpuJoin path will do; made while paths are, used when one becomes a plan. */
typedef struct GjJoinInfo
{
	GjBuilder  *builder;
	GjProgram  *program;		/* template: runtime constants are still empty */
	Path	   *fallback;		/* a flat copy, see gj_copy_path() */
	List	   *outputs;		/* expressions: the fallback's target, then what host_quals
								 * need beside; Aggrefs if `aggregate` */
	int			nfallback;		/* how many of the outputs the fallback delivers */
	List	   *host_quals;		/* bare clauses for PostgreSQL to check on joined rows, or
								 * HAVING */
	bool		aggregate;
	List	   *agg_finals;		/* int: GjAggFinal of each Aggref */
	double		rows;			/* estimate of joined rows */
	int			loader_workers; /* that help to load */
} GjJoinInfo;

typedef struct GjPath
{
	CustomPath	cpath;			/* custom_paths: fallback, then plan sources' children */
	GjJoinInfo *info;
} GjPath;

/* How states of aggregates become values; order of GjJoinInfo.agg_finals. */
typedef enum GjAggFinal
{
	GJ_FINAL_COUNT,				/* int8: count */
	GJ_FINAL_COUNT_SUM,			/* int8: 128-bit sum of 0s and 1s */
	GJ_FINAL_SUM_INT8,			/* int8, out of range is an overflow */
	GJ_FINAL_SUM_NUMERIC,		/* numeric of any size */
	GJ_FINAL_AVG_NUMERIC,
	GJ_FINAL_SUM_FLOAT8,
	GJ_FINAL_AVG_FLOAT8,		/* of three states: sum, min, max */
	GJ_FINAL_MINMAX_INT,		/* an integer of the result type's width */
	GJ_FINAL_MINMAX_FLOAT8
} GjAggFinal;

/* Installs the planner hooks. */
extern void gj_planner_init(void);

/* True if this session may plan GpuJoins for this query level at all. */
extern bool gj_may_plan(PlannerInfo *root);

/*
 * Turns a native join path into sources, filters and steps.  NULL if it is not a tree
 * of inner joins with device keys.  Clauses that PostgreSQL must check on the joined
 * rows end up in *host_quals; NULL is returned if there are any and host_quals is NULL.
 */
extern GjBuilder *gj_build_join(PlannerInfo *root, Path *native, List **host_quals,
								double *rows);

/* Flat copy of a path that outlives add_path()'s pfree; NULL for unknown kinds. */
extern Path *gj_copy_path(const Path *path);

/* True if the path, or one below it, is a GpuJoin. */
extern bool gj_contains_gpujoin(const Path *path);

/* Makes the path; costs are set. */
extern GjPath *gj_create_path(PlannerInfo *root, RelOptInfo *rel, PathTarget *target,
							  GjJoinInfo *info);

extern void gj_offer_path(RelOptInfo *rel, Path *path);

/* src/plan/join_cost.c */
extern double gj_cost_heap_source(PlannerInfo *root, RelOptInfo *rel, int ncolumns);
extern int	gj_plan_loader_workers(PlannerInfo *root, double npages);
extern double gj_cost_plan_source(const Path *path);
extern double gj_cost_least(void);
extern void gj_cost_join(PlannerInfo *root, GjPath *path);

/* src/plan/agg_path.c */

/* The program of the query's ungrouped aggregates over `native`; NULL if not possible. */
extern GjJoinInfo *gj_build_aggregate(PlannerInfo *root, Path *native);
extern void gj_add_aggregate_path(PlannerInfo *root, RelOptInfo *input_rel,
								  RelOptInfo *output_rel);

/* src/plan/join_plan.c */
extern const CustomPathMethods gj_join_path_methods;

/* Elements of CustomScan.custom_private */
typedef enum GjPrivate
{
	GJ_PRIVATE_PROGRAM,			/* Const bytea: the template */
	GJ_PRIVATE_SOURCES,			/* list of int lists, see GjSourcePrivate */
	GJ_PRIVATE_RUNTIME,			/* int list: instruction of each runtime constant */
	GJ_PRIVATE_FINALS,			/* int list: GjAggFinal, NIL for rows */
	GJ_PRIVATE_FLAGS,			/* int list, see GjPrivateFlag */
	GJ_PRIVATE_KEY_COUNTS		/* int list: key clauses of each step */
} GjPrivate;

typedef enum GjPrivateFlag
{
	GJ_FLAG_NOUTPUTS,			/* leading entries of the scan tuple that a batch fills */
	GJ_FLAG_NFALLBACK,			/* leading entries that the fallback plan fills */
	GJ_FLAG_CAN_FAIL,			/* complete the run before returning a row */
	GJ_FLAG_LOADER_WORKERS		/* workers planned for loading; 0: no parallel mode */
} GjPrivateFlag;

/* Elements of the description of a source */
typedef enum GjSourcePrivate
{
	GJ_SOURCE_RELID,			/* heap source: the table; else InvalidOid */
	GJ_SOURCE_CHILD,			/* plan source: which child plan, from 1; else -1 */
	GJ_SOURCE_RESNO,			/* an entry of the scan tuple that is its column */
	GJ_SOURCE_COLUMNS			/* from here on attribute numbers or resnos */
} GjSourcePrivate;

/* Elements of CustomScan.custom_exprs */
typedef enum GjExprs
{
	GJ_EXPRS_RUNTIME,			/* runtime constants */
	GJ_EXPRS_CONDITIONS,		/* list per step: key clauses, then residual ones */
	GJ_EXPRS_FILTERS			/* list per source */
} GjExprs;

#endif							/* GJ_JOIN_PATH_H */
