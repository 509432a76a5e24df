/*
 * program_builder.h
 *	  Collects sources, columns, expressions and steps while a GpuJoin is planned,
 *	  and writes them as one flat GjProgram.
 */
#ifndef GJ_PROGRAM_BUILDER_H
#define GJ_PROGRAM_BUILDER_H

#include "nodes/pathnodes.h"
#include "plan/types.h"
#include "wire/messages.h"

/* A column that a source must deliver. */
typedef struct GjBuildColumn
{
	Expr	   *expr;			/* Var, or what a plan source computes */
	AttrNumber	attno;			/* of the table, or resno in the child plan's target list */
	GjColumnType type;
	Oid			typid;
	/* of a stage */
	GjStageColumn stage;		/* how it is made of the stage's result */
	int			scale;			/* of a numeric, which is an integer here; else -1 */
} GjBuildColumn;

/* A query whose groups or aggregates can be the rows of a source: stage_path.c. */
typedef struct GjStage
{
	uint32		magic;
	PlannerInfo *root;			/* of the subquery */
	RelOptInfo *rel;			/* its upper relation of groups */
	struct GjJoinInfo *info;
	double		cost;			/* until its result is complete */
} GjStage;

/*
 * A side of the join: tables that the loader reads itself, the result of a stage, or any child
 * path.
 */
typedef struct GjBuildSource
{
	RelOptInfo *rel;
	Relids		relids;
	Oid			heap_relid;		/* heap source: the table, or the parent of its tables (of a
								 * UNION ALL: the first one); plan source: InvalidOid */
	List	   *tables;			/* heap source: int, RT indexes of its tables (source_tables.c) */
	GjStage    *stage;			/* what it is the result of; NULL: it is loaded */
	Path	   *path;			/* plan source: the child */
	char	   *why;			/* while EXPLAIN asks: why it is one */
	List	   *columns;		/* of GjBuildColumn * */
	int			filter;			/* expression, or -1 */
	List	   *filter_clauses; /* bare clauses that the filter is made of */
	double		rows_loaded;	/* estimates */
	double		rows_filtered;
} GjBuildSource;

typedef struct GjBuildStep
{
	int			source;
	GjJoinType	join_type;
	GjAlgorithm algorithm;
	int			nkeys;
	int			probe_keys;		/* first expression */
	int			build_keys;
	int			range_key;		/* expressions, or -1 */
	int			range_low;
	int			range_high;
	bool		low_strict;
	bool		high_strict;
	GjSetStep	set;			/* GJ_JOIN_SET: but for columns and threshold, which are */
	int			outer_set;		/* source << 16 | index */
	int			inner_set;
	int			threshold;		/* expression, or -1 */
	Expr	   *set_left;		/* the columns as the clause has them */
	Expr	   *set_right;
	bool		inverted;		/* the left one is the inner side's */
	bool		has_values;		/* pair values are read; LOAD_PAIR names them step << 16 | number
								 * until gj_builder_finish() */
	double		outer_elements; /* estimates: of a set, */
	double		inner_elements;
	double		common_elements;	/* of a pair; membership: of all pairs */
	double		set_pairs;		/* membership */
	int			residual;
	int			filter;
	List	   *key_clauses;	/* bare clauses, for EXPLAIN */
	List	   *range_clauses;
	List	   *residual_clauses;
	List	   *filter_clauses;
	double		key_selectivity;	/* of pairs, those with equal keys; 0: nothing else is checked */
	double		rows;			/* estimate of what leaves the step */
} GjBuildStep;

/*
 * A constant known when execution begins: the value of `expr` (a Param, now(), ...)
 * goes into instruction `instr`; if that is an IN list, its array does.
 */
typedef struct GjRuntimeConst
{
	Expr	   *expr;
	int			instr;
} GjRuntimeConst;

typedef struct GjBuilder
{
	PlannerInfo *root;
	int			nsources;
	GjBuildSource source[GJ_MAX_SOURCES];
	int			nsteps;
	GjBuildStep step[GJ_MAX_SOURCES];

	GjExpr	   *exprs;
	int			nexprs,
				exprs_size;
	GjInstr    *instrs;			/* LOADs name a column as source << 16 | index until
								 * gj_builder_finish() numbers them */
	int			ninstrs,
				instrs_size;
	int64	   *constants;
	int			nconstants,
				constants_size;
	List	   *runtime;		/* of GjRuntimeConst * */
	bool		can_fail;		/* some expression can fail on data */

	List	   *outputs;		/* int: source << 16 | index */
	List	   *aggregates;		/* of GjAggregate * */
	List	   *group_keys;		/* of GjGroupKey *; columns as outputs name them */
	int			ndistinct_keys; /* so many of the last are what DISTINCT aggregates take */
	int			ndependent_keys;	/* so many of the last ones are determined by the others */
	List	   *sort_keys;		/* of GjSortKey * */
	uint32		limit;			/* 0: none */
	bool		ties;
	/* a stage: columns of the source that reads it (GjBuildColumn *), and rows of its chunks */
	List	   *stage_columns;
	uint32		stage_capacity;
} GjBuilder;

/* Mark to go back to when something turns out not to be possible. */
typedef struct GjBuilderMark
{
	int			nexprs,
				ninstrs,
				nconstants;
	int			ncolumns[GJ_MAX_SOURCES];
	List	   *runtime;
	bool		can_fail;
} GjBuilderMark;

extern GjBuilder *gj_builder_create(PlannerInfo *root);
/* A copy to add to; what it was made from stays as it is. */
extern GjBuilder *gj_builder_copy(const GjBuilder *builder);
extern void gj_builder_mark(GjBuilder *builder, GjBuilderMark *mark);
extern void gj_builder_reset(GjBuilder *builder, const GjBuilderMark *mark);

/* Appends; the index of what was appended. */
extern int	gj_builder_expr(GjBuilder *builder, const GjExpr *expr);
extern int	gj_builder_instr(GjBuilder *builder, const GjInstr *instr);
extern int	gj_builder_constant(GjBuilder *builder, int64 constant);

/*
 * The source that has the value of `expr` (a Var or PlaceHolderVar) as a column, and
 * its number there; adds the column if need be.  False if no source has it.
 */
extern bool gj_builder_column(GjBuilder *builder, Expr *expr, int *source, int *index);
extern GjBuildColumn *gj_builder_column_at(GjBuilder *builder, int source, int index);

/* Adds the ids of the tuples of a source that is one table (load/tuple_id.h); its number. */
extern int	gj_builder_tuple_id(GjBuilder *builder, int source);

/* True if the program reads all relations of the query level. */
extern bool gj_builder_reads_all(const GjBuilder *builder, const PlannerInfo *root);

/* True if some code, step or compared key reads the column on the device. */
extern bool gj_builder_reads(const GjBuilder *builder, int source, int index);

/*
 * Takes columns of a source out of the program, and out of its outputs and group keys.  Nothing
 * else reads them.
 */
extern void gj_builder_drop_columns(GjBuilder *builder, int source, const Bitmapset *columns);

/* The stage source that has the column; -1: it is none of a stage's. */
extern int	gj_builder_stage_of(const GjBuilder *builder, const void *column);

/* Bit s is set for each source that `relids` touches; 0 if one is in no source. */
extern uint32 gj_builder_sources_of(GjBuilder *builder, Relids relids);

/* Rows of a chunk of these columns; row_heap: bytes of a row's references.  0: none fits. */
extern uint32 gj_chunk_capacity(const GjColumnType *types, uint32 ncolumns, uint64 row_heap);

/*
 * The flat program, palloc'd; NULL if it exceeds what a program or a slot may be.
 * The instructions of runtime constants keep their numbers.
 */
extern GjProgram *gj_builder_finish(GjBuilder *builder, GjOutputKind output);

/* src/plan/device_expr.c */

/*
 * Compiles an expression to device code.  Returns the number of the expression, or -1
 * (and leaves the builder as it was) if the device does not know something in it.
 */
extern int	gj_compile(GjBuilder *builder, Expr *expr);

/*
 * Compiles the source's conditions, and HAVING of the query of a stage; *filter is -1 if there is
 * nothing.  False: the device does not know something in it.
 */
extern bool gj_compile_source_filter(GjBuilder *builder, int s, int *filter);

/* What is known of the numerics that an expression gives. */
typedef struct GjNumericInfo
{
	int			scale;			/* of the register */
	bool		mixed;			/* display scales differ from row to row; else they are that */
} GjNumericInfo;

/*
 * The same for `arg` (NULL: a constant that is not NULL) where `filter` is true; the value
 * is NULL elsewhere.  *numeric, unless NULL, is set if the value is a numeric.
 */
extern int	gj_compile_filtered(GjBuilder *builder, Expr *arg, Expr *filter,
								GjNumericInfo *numeric);

/* The same of a text of at most 8 bytes, as the integer that GJ_OP_WORD_T makes of it. */
extern int	gj_compile_word(GjBuilder *builder, Expr *expr);

/*
 * The same of half 0 or 1 of a uuid: 64 bits, as a number in the order of uuids.  GJ_WHOLE_KEY: 64
 * bits that equal uuids have in common.
 */
extern int	gj_compile_half(GjBuilder *builder, Expr *expr, int half);

/*
 * True if gj_compile() could; leaves the builder as it was.  *can_fail tells whether the
 * code can fail on data.
 */
extern bool gj_compilable(GjBuilder *builder, Expr *expr, bool *can_fail);

/* True if a clause compares an average of a stage, which is no key: average.c. */
extern bool gj_compares_average(const GjBuilder *builder, Expr *clause);

/* src/plan/device_key.c */

/* True if `clause` is left = right in a way that makes it a join key of the device. */
extern bool gj_key_clause(Expr *clause, Expr **left, Expr **right);

/* True if `clause` is an inequality; *op is GJ_OP_LT_I, ... GJ_OP_GE_I or one of floats. */
extern bool gj_inequality_clause(Expr *clause, Expr **left, Expr **right, GjOp *op);

/*
 * False if different values can have equal keys: then the clause must be checked as a
 * residual condition as well.
 */
extern bool gj_key_is_exact(Expr *clause);

/*
 * Compiles one side of a key clause, brought to the form in which both sides' keys are
 * compared, or a half of it.  As gj_compile() otherwise.
 */
#define GJ_WHOLE_KEY	(-1)
extern int	gj_compile_key(GjBuilder *builder, Expr *clause, Expr *side, int half);

/* True if the key can be two keys, halves 0 and 1 (GJ_OP_KEY_T); if these are exact. */
extern bool gj_key_has_halves(Expr *clause);
extern bool gj_halves_are_exact(Expr *clause);

/* True if the sides of a clause that is a key are integers of at most 32 bits. */
extern bool gj_key_packs(Expr *clause);
/* The same of one side of two such clauses, as one key. */
extern int	gj_compile_packed_key(GjBuilder *builder, Expr *const *clauses, Expr *const *sides);

#endif							/* GJ_PROGRAM_BUILDER_H */
