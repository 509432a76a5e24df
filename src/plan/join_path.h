/*
 * join_path.h
 *	  From a native join path to a GpuJoin path.
 */
#ifndef GJ_JOIN_PATH_H
#define GJ_JOIN_PATH_H

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "optimizer/paths.h"
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
	List	   *computed;		/* outputs of rows that PostgreSQL computes: what of, or NULL; NIL: there are none */
	List	   *host_quals;		/* bare clauses for PostgreSQL to check on joined rows, or
								 * HAVING */
	bool		aggregate;
	bool		is_stage;		/* there is no fallback, and gpujoind keeps the result */
	List	   *agg_finals;		/* int: gj_final_make() of each Aggref */
	List	   *key_codes;		/* of each key: NIL, or the texts (Const) that its integers stand for,
								 * or one Integer: what they are the bytes of (GJ_CODES_...) */
	int			ngroup_keys;	/* grouped, if there are any: the outputs are these, then
								 * the Aggrefs */
	double		groups;			/* estimate */
	double		kept_groups;	/* groups are a stage, for its HAVING: estimate of those that it keeps;
								 * else 0 */
	double		rows;			/* estimate of joined rows */
	int			loader_workers; /* that help to load */
	uint32		limit;			/* rows that come back at most, but for ties; 0: all */
	List	   *sort_exprs;		/* what they are sorted by, as far as the device knows it */
	List	   *sort_labels;	/* strings: how, as EXPLAIN says it behind the expression */
	List	   *late;			/* lists, see GjLatePrivate: what is fetched of tables */
	List	   *host_sort;		/* lists, see GjHostSortKey: what the backend sorts by; NIL: it does not */
	double		host_values;	/* estimate of the different values that it ranks */
	struct GjPart *part;		/* of EXPLAIN's reasons (reasons.h); NULL: nobody asks */
	struct GjPart *order_part;	/* the same of its order */
	double		host_bytes;		/* estimate of what is sorted and has no room on the device; 0: it fits */
} GjJoinInfo;

/* What the integers of a key are the bytes of. */
#define GJ_CODES_WORD			0	/* texts (GJ_OP_WORD_T) */
#define GJ_CODES_FIRST_HALF		1	/* uuids; the next key is their second half, and both are .. */
#define GJ_CODES_SECOND_HALF	2	/* .. outputs of the same expression */

/* True of codes (GjJoinInfo.key_codes) if the integers of a key are such bytes. */
static inline bool
gj_codes_are(const List *codes, int bytes)
{
	return codes != NIL && IsA(linitial(codes), Integer) && intVal(linitial(codes)) == bytes;
}

typedef struct GjPath
{
	CustomPath	cpath;			/* custom_paths: fallback, then plan sources' children */
	GjJoinInfo *info;
	/* costs before prefer_own() (join_cost.c): GpuJoins are compared with each other by these */
	double		startup;
	double		cost;
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
	GJ_FINAL_MINMAX_FLOAT8,
	GJ_FINAL_VAR_POP,			/* these of two states: sum and sum of squares */
	GJ_FINAL_VAR_SAMP,
	GJ_FINAL_STDDEV_POP,
	GJ_FINAL_STDDEV_SAMP,
	GJ_FINAL_SUM_MIXED,			/* numerics whose display scales differ: of two states, the
								 * second one is the largest of these scales */
	GJ_FINAL_AVG_MIXED,
	GJ_FINAL_SUM_DECIMAL,		/* numerics of one scale */
	GJ_FINAL_AVG_DECIMAL,
	GJ_FINAL_MINMAX_DECIMAL,
	GJ_FINAL_SUM_FLOAT4,
	GJ_FINAL_MINMAX_FLOAT4,
	GJ_FINAL_WIDE_VAR_POP,		/* these of three states: sum, sums of the low and the high 64 */
	GJ_FINAL_WIDE_VAR_SAMP,		/* bits of squares; the scale is that of the values */
	GJ_FINAL_WIDE_STDDEV_POP,
	GJ_FINAL_WIDE_STDDEV_SAMP,
	GJ_FINAL_FLOAT_VAR_POP,
	GJ_FINAL_FLOAT_VAR_SAMP,
	GJ_FINAL_FLOAT_STDDEV_POP,
	GJ_FINAL_FLOAT_STDDEV_SAMP
} GjAggFinal;

/* An element of agg_finals: a GjAggFinal, and the scale of numerics. */
#define gj_final_make(final, scale)	((int) (final) | (scale) << 8)
#define gj_final_kind(element)		((GjAggFinal) ((element) & 0xFF))
#define gj_final_scale(element)		((element) >> 8)

#define GJ_MAX_FINAL_STATES	3

/* True for variances and deviations of integers of 64 bits, and of numerics. */
static inline bool
gj_final_is_wide(GjAggFinal final)
{
	return final >= GJ_FINAL_WIDE_VAR_POP && final <= GJ_FINAL_WIDE_STDDEV_SAMP;
}

/* Consecutive states that a value is made of. */
static inline int
gj_final_states(GjAggFinal final)
{
	return final == GJ_FINAL_AVG_FLOAT8 || gj_final_is_wide(final) ? 3 :
		final >= GJ_FINAL_VAR_POP && final <= GJ_FINAL_AVG_MIXED ? 2 : 1;
}

/* True if the states can turn out to be what only PostgreSQL makes a value of. */
static inline bool
gj_final_can_fail(GjAggFinal final)
{
	return final == GJ_FINAL_SUM_FLOAT8 || final == GJ_FINAL_AVG_FLOAT8 ||
		final == GJ_FINAL_SUM_INT8 || final == GJ_FINAL_SUM_FLOAT4 ||
		final >= GJ_FINAL_FLOAT_VAR_POP;
}

/* Installs the planner hooks. */
extern void gj_planner_init(void);

/* Join relations that this session has looked at: what a query's planning adds is its effort. */
extern uint64 gj_joins_searched;

/* True if this session may plan GpuJoins for this query level at all. */
extern bool gj_may_plan(PlannerInfo *root);

/*
 * Turns a native join path into sources, filters and steps (join_build.c).  NULL if the
 * device cannot do the topmost join.  Clauses that PostgreSQL must check on the joined
 * rows end up in *host_quals; NULL is returned if there are any and host_quals is NULL.
 */
extern GjBuilder *gj_build_join(PlannerInfo *root, Path *native, List **host_quals,
								double *rows);

/*
 * Decides how source s is read: its pages, with all its conditions on the device, or
 * the rows of `path`; the latter in any case if `fixed`.  False if neither is possible.
 */
extern bool gj_choose_source(PlannerInfo *root, GjBuilder *builder, int s, RelOptInfo *rel,
							 Path *path, bool fixed);

/*
 * True if the device can check all conditions on a relation; *may_fail: one can fail.  A condition
 * that can must not see rows that one of a lower security level hides: a fallback would tell of them.
 */
extern bool gj_can_filter(GjBuilder *builder, RelOptInfo *rel, bool *may_fail);

/* ---- src/plan/stage_path.c */

/* A path of groups or aggregates is complete: a query around this one may read its result. */
extern void gj_stage_note(PlannerInfo *root, RelOptInfo *rel, const GjPath *path);

/*
 * Makes source s, whose `rel` is set, the result of a stage, if there is one, it costs less than
 * `path`, and the device can check all conditions on it.
 */
extern bool gj_choose_stage(PlannerInfo *root, GjBuilder *builder, int s, const Path *path);

/* True for a column of a stage's result, which no relation has. */
extern bool gj_is_result_column(const Var *column);

/* True for a column of a stage's query, other than those that its result has. */
extern bool gj_is_stage_column(const GjBuilder *builder, const void *column);

/*
 * What such a column is made of: columns of the stage's result, as Vars with attribute numbers of
 * their own.  NULL: it cannot be made of them.
 */
extern Expr *gj_stage_expr(const GjBuilder *builder, const Var *column);

/* The same of an expression over keys and aggregates of the stage's query. */
extern Expr *gj_stage_value(const GjBuilder *builder, int s, Expr *expr);

/* The same of HAVING of the stage's query. */
extern Expr *gj_stage_having(const GjBuilder *builder, int s);

/* True if PostgreSQL can compute such an expression of any row without an error. */
extern bool gj_stage_expr_is_safe(const Expr *expr);

/* True for an average among what such an expression is made of; its sum and count. */
extern bool gj_stage_average(Expr *node, Expr **sum, Expr **count);

/*
 * The number that a column of the stage's result has in source s, which gets it; or one of its
 * query that is one of these.  False: it is none.
 */
extern bool gj_stage_column(GjBuilder *builder, int s, const Var *column, int *index);

/*
 * A path that does what `groups` does, but checks HAVING on the device: its groups are a stage.
 * NULL: there is no HAVING, or the device cannot.
 */
extern GjPath *gj_having_path(PlannerInfo *root, RelOptInfo *rel, const GjPath *groups);

/* The path of the stage, once the program that reads it is complete. */
extern Path *gj_stage_path(PlannerInfo *root, const GjBuilder *builder, int s,
						   const GjProgram *program);

/* src/plan/source_tables.c */
/* True if the table, which is open, has no NULL in a column of its own. */
extern bool gj_is_not_null_column(Oid relid, AttrNumber attnum);

/*
 * RT indexes of the tables that a relation's rows come from: the table itself, or what
 * pruning has left of its partitions, children, or members of a UNION ALL.  NIL: of none.
 */
extern List *gj_live_tables(PlannerInfo *root, RelOptInfo *rel);

/*
 * True if the loader can read the pages of these tables itself, and all that the query wants
 * of them: system columns and whole rows are left to a plan.
 */
extern bool gj_is_heap(PlannerInfo *root, RelOptInfo *rel);

/*
 * Which attribute of table `rti`, one of rel's, attribute `attno` of rel is; 0 if it is none
 * of the same type.
 */
extern AttrNumber gj_table_attno(PlannerInfo *root, const RelOptInfo *rel, Index rti,
								 AttrNumber attno);

/*
 * True if each of rel's tables has its column, of the same type: a UNION ALL can make a
 * common type of others.
 */
extern bool gj_tables_have(PlannerInfo *root, const RelOptInfo *rel, List *tables,
						   const Var *var);

/* Tuples that a relation's tables have together, and *pages, unless it is NULL. */
extern double gj_heap_tuples(PlannerInfo *root, RelOptInfo *rel, double *pages);

/* True if running these range table entries twice could give different rows. */
extern bool gj_has_volatile_entry(PlannerInfo *root, Relids relids);

/* Flat copy of a path that outlives add_path()'s pfree; NULL for unknown kinds. */
extern Path *gj_copy_path(const Path *path);

/* True if the path, or one below it, is a GpuJoin. */
extern bool gj_contains_gpujoin(const Path *path);

/* True if a plan is so expensive that a device may be cheaper. */
extern bool gj_worth_looking(const Path *native);
/* True if there is a device, as far as gpujoind says. */
extern bool gj_has_device(void);

/* True if groups come back, as they are or as the result of a stage. */
static inline bool
gj_returns_groups(const GjJoinInfo *info)
{
	return info->aggregate || info->kept_groups > 0;
}

/* Makes the path; costs are set. */
extern GjPath *gj_create_path(PlannerInfo *root, RelOptInfo *rel, PathTarget *target,
							  GjJoinInfo *info);

extern void gj_offer_path(RelOptInfo *rel, Path *path);

/* src/plan/whole_joins.c */

/*
 * If PostgreSQL has solved a join problem by joins of partitions, or may do so later, solves
 * it without them too, for gj_whole_join(): `search`, as
 * in join_search_hook, gave `rel`, and root->join_rel_list had `nsolved` elements before.
 */
extern void gj_search_whole_joins(PlannerInfo *root, RelOptInfo *rel, int nsolved,
								  int levels_needed, List *initial_rels,
								  join_search_hook_type search);

/* `native`, or a path for the same relations in which whole tables are joined. */
extern Path *gj_whole_join(PlannerInfo *root, Path *native);

/* src/plan/join_cost.c */
extern double gj_cost_heap_source(PlannerInfo *root, RelOptInfo *rel, int ncolumns);
extern int	gj_plan_loader_workers(PlannerInfo *root, double npages);
extern double gj_cost_plan_source(const Path *path);
extern double gj_cost_stage(const GjStage *stage);
extern double gj_cost_least(void);
/* What planning costs that looks at so many join relations. */
extern double gj_cost_planning(uint64 njoins);
extern void gj_cost_join(PlannerInfo *root, GjPath *path);

/* Seconds that one of PostgreSQL's units of cost stands for. */
#define GJ_COST_UNIT		10e-6

/* src/plan/cached_pages.c: 1 if a table, which is locked, is in memory, else 0. */
extern double gj_pages_cached(Oid relid);

/* Cost of a page of a table when it is loaded, which may be in memory. */
extern double gj_cost_page(PlannerInfo *root, const RelOptInfo *table, Oid relid);

/*
 * src/plan/native_cost.c: what to add to PostgreSQL's cost of a plan for visits of cached pages; less
 * than 0 where it charges too much for pages that are in memory.
 */
extern double gj_cost_visits(PlannerInfo *root, const Path *native);

/* While true all tables count as resident; see src/auto_prewarm.c. */
extern bool gj_assume_resident;

/* Cost of loading and joining alone, to compare programs for the same join. */
extern double gj_cost_builder(PlannerInfo *root, const GjBuilder *builder);

/* False if the inner sides are not expected to fit the device, and the largest cannot be taken in parts. */
extern bool gj_fits_or_splits(const GjBuilder *builder);
/* Bytes of a device that a query may use. */
extern double gj_device_memory(const GjDeviceInfo *device);

/* What it costs that PostgreSQL compares the arrays of so many joined rows; a step of sets. */
extern double gj_cost_check_pairs(double npairs);
extern double gj_cost_sets(const GjBuildStep *step, double outer, double inner);

/*
 * A step that makes `rows` rows before its residual condition, and groups of what that leaves;
 * nwork: keys and aggregates.
 */
extern double gj_cost_counted(const GjBuildStep *step, double rows, double outer, double inner,
							  int nwork);

/* The algorithm of a step: what gpujoin.algorithm says, if it can do it. */
extern GjAlgorithm gj_choose_algorithm(bool has_keys, bool has_range);

/* src/plan/agg_path.c */

/*
 * The program of the query's aggregates, groups or distinct rows over `native`, a scan or a
 * join; NULL if not possible.
 */
extern GjJoinInfo *gj_build_aggregate(PlannerInfo *root, Path *native);
/* True if there is one over `native`, a path of `rel`: it is offered later, and not made anew. */
extern bool gj_aggregate_follows(PlannerInfo *root, RelOptInfo *rel, Path *native);
/* Offers it at UPPERREL_GROUP_AGG or UPPERREL_DISTINCT. */
extern void gj_add_aggregate_path(PlannerInfo *root, UpperRelationKind stage,
								  RelOptInfo *input_rel, RelOptInfo *output_rel);

/* src/plan/membership.c */

/*
 * Makes the join of a complete program of groups a step that counts pairs of sets, if it is of
 * that form and cheaper so.
 */
extern void gj_plan_membership(PlannerInfo *root, GjJoinInfo *info);

/* src/plan/group_path.c */

/*
 * Adds what the query groups by, or wants distinct rows of, to the program and to
 * info->outputs.  False if the device cannot.
 */
extern bool gj_add_group_keys(PlannerInfo *root, GjJoinInfo *info);
/* The same for one more expression; of a uuid two keys are made, and it is an output twice. */
extern bool gj_add_group_key(GjJoinInfo *info, Expr *expr);

/* src/plan/limit_path.c */

/*
 * Where the query wants but the first rows in some order: remembers a path for `rel` that does
 * what `info`, which is complete, does, and returns no more than these rows.
 */
extern void gj_remember_limited(PlannerInfo *root, RelOptInfo *rel, PathTarget *target,
								GjJoinInfo *info);
/* Offers the remembered path, sorted, at UPPERREL_ORDERED. */
extern void gj_add_limited_path(PlannerInfo *root, RelOptInfo *input_rel,
								RelOptInfo *output_rel);

/* src/plan/late_columns.c */

/*
 * Makes late columns of those outputs of a program whose values the device only carries, if that is
 * wanted: for few rows, or by gpujoin.late_columns.  `info` and its builder must be copies,
 * complete but for info->program.
 */
extern void gj_make_late(PlannerInfo *root, GjJoinInfo *info);

/*
 * The path that does what `path` does, but with late columns, if that is wanted; else `path`.
 */
extern GjPath *gj_late_path(PlannerInfo *root, GjPath *path);

/*
 * True if the values of a table's column are long texts, documents or bytes in the mean, and mostly
 * different: gpujoin_prewarm() leaves them out.
 */
extern bool gj_is_long(Oid relid, AttrNumber attno);

/* src/plan/sort_keys.c */

/* Adds one sort key to the program. */
extern void gj_add_sort_key(GjJoinInfo *info, GjSortOf of, uint32 index, bool descending);
/*
 * Adds the sort keys of an expression, in the order of a btree operator family, to the program,
 * and the expression to info->sort_exprs.  False, and nothing is added, if the device does
 * not know that order or has no room.  No key can follow GJ_SORT_AVG, which knows it nearly.
 */
extern bool gj_sort_by(GjJoinInfo *info, Expr *expr, Oid opfamily, int strategy,
					   bool nulls_first);
/* How a key is sorted, as EXPLAIN says it. */
extern String *gj_sort_label(bool descending, bool nulls_first);

/* src/plan/host_sort_path.c */

/*
 * A path that does what `path` does, and sorts its rows in the backend (exec/host_sort.c) in the
 * order of all `pathkeys`; NULL if PostgreSQL sorts such rows as well or better.
 * `path` has not been offered yet.
 */
extern GjPath *gj_host_sorted_path(PlannerInfo *root, const GjPath *path, List *pathkeys);

/* src/plan/sort_path.c */

/*
 * The cheapest native way to an order: `native`, a path of the relation, sorted; or one that has
 * the order already; or parts sorted by workers.
 */
extern Path *gj_sorted_native(PlannerInfo *root, RelOptInfo *rel, Path *native, List *pathkeys);
/*
 * A path that does what `info`, which is complete, does, and returns its rows in the order of
 * `pathkeys`, or of the first of them that the device knows; NULL if it knows none, or is not
 * expected to have the memory for all rows.
 * To be made before other paths are offered, which can free those of `rel`.
 */
extern GjPath *gj_sorted_path(PlannerInfo *root, RelOptInfo *rel, PathTarget *target,
							  GjJoinInfo *info, List *pathkeys);
/*
 * Offers a path and, if they are not NULL, the same one sorted by the device and by the backend;
 * under gpujoin.force the one that has all of the wanted order alone, if there is one.
 */
extern void gj_offer_sorted(PlannerInfo *root, RelOptInfo *rel, GjPath *path, GjPath *sorted,
							List *pathkeys);

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
	GJ_PRIVATE_CLAUSE_COUNTS,	/* list of int lists, per step: see GjStepClauses */
	GJ_PRIVATE_TABLES,			/* list per source of int lists, see GjTablePrivate; NIL for
								 * a plan source */
	GJ_PRIVATE_SORT_LABELS,		/* list of strings, one for each of GJ_EXPRS_SORT */
	GJ_PRIVATE_KEY_CODES,		/* see GjJoinInfo.key_codes */
	GJ_PRIVATE_ATTRIBUTES,		/* int list, of rows; of groups if some are late: see
								 * GJ_ATTRIBUTE_PLAIN */
	GJ_PRIVATE_HOST_SORT,		/* see GjJoinInfo.host_sort */
	GJ_PRIVATE_LATE				/* list of int lists, see GjLatePrivate */
} GjPrivate;

/* Elements of an Oid list: a key that the backend sorts by */
typedef enum GjHostSortKey
{
	GJ_HOST_SORT_ATTNO,			/* of the scan tuple */
	GJ_HOST_SORT_OPERATOR,		/* < or > */
	GJ_HOST_SORT_COLLATION,
	GJ_HOST_SORT_NULLS_FIRST	/* 0 or 1 */
} GjHostSortKey;

/* What an output is; else the scale of a numeric that is an integer on the device. */
#define GJ_ATTRIBUTE_PLAIN		(-1)
#define GJ_ATTRIBUTE_COMPUTED	(-2)	/* of others, by PostgreSQL: GJ_EXPRS_COMPUTED, in order */
#define GJ_ATTRIBUTE_LATE		(-3)	/* fetched from its table: GJ_PRIVATE_LATE */
#define GJ_ATTRIBUTE_TUPLE_ID	(-4)	/* by this */

typedef enum GjPrivateFlag
{
	GJ_FLAG_NOUTPUTS,			/* leading entries of the scan tuple that a batch fills */
	GJ_FLAG_NFALLBACK,			/* leading entries that the fallback plan fills */
	GJ_FLAG_CAN_FAIL,			/* complete the run before returning a row */
	GJ_FLAG_LOADER_WORKERS,		/* workers planned for loading; 0: no parallel mode */
	GJ_FLAG_STAGE				/* the node above has it run, and reads its result */
} GjPrivateFlag;

/* The kinds of conditions of a step; elements of GJ_PRIVATE_CLAUSE_COUNTS */
typedef enum GjStepClauses
{
	GJ_CLAUSES_KEYS,
	GJ_CLAUSES_RANGE,
	GJ_CLAUSES_RESIDUAL,
	GJ_CLAUSES_FILTER,
	GJ_NCLAUSES
} GjStepClauses;

/* Elements of the description of a source */
typedef enum GjSourcePrivate
{
	GJ_SOURCE_RELID,			/* heap source: see GjBuildSource; else InvalidOid */
	GJ_SOURCE_CHILD,			/* plan source: which child plan, from 1; else -1 */
	GJ_SOURCE_RESNO,			/* heap source: an entry of the scan tuple that is its column */
	GJ_SOURCE_COLUMNS			/* plan source: from here on resnos */
} GjSourcePrivate;

/* Elements of the description of a table */
typedef enum GjTablePrivate
{
	GJ_TABLE_RELID,
	GJ_TABLE_INDEX,				/* its RT index, less that of the Var that GJ_SOURCE_RESNO names */
	GJ_TABLE_COLUMNS			/* from here on the attribute of each column of the source */
} GjTablePrivate;

/* Elements of an int list: a table whose late columns are fetched */
typedef enum GjLatePrivate
{
	GJ_LATE_RELID,
	GJ_LATE_ID,					/* the attribute of the scan tuple that is its ctid, from 1 */
	GJ_LATE_COLUMNS				/* from here on pairs: an attribute of the scan tuple, from 1, and
								 * that of the table */
} GjLatePrivate;

/* Elements of CustomScan.custom_exprs */
typedef enum GjExprs
{
	GJ_EXPRS_RUNTIME,			/* runtime constants */
	GJ_EXPRS_CONDITIONS,		/* list per step, in the order of GjStepClauses */
	GJ_EXPRS_FILTERS,			/* list per source */
	GJ_EXPRS_SORT,				/* what the first rows are sorted by */
	GJ_EXPRS_COMPUTED,			/* what outputs are that PostgreSQL computes */
	GJ_EXPRS_HAVING				/* a stage: HAVING, which the program that reads it checks */
} GjExprs;

#endif							/* GJ_JOIN_PATH_H */
