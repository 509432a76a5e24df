/*
 * join_build.h
 *	  What files share that make steps of a tree of joins: join_build.c chooses their order, join_clauses.c
 *	  looks at conditions, join_step.c makes a step.
 */
#ifndef GJ_JOIN_BUILD_H
#define GJ_JOIN_BUILD_H

#include "plan/join_tree.h"
#include "plan/program_builder.h"
#include "plan/set_clause.h"

/* One outer, semi or anti join, or a group of inner ones: what comes next on the spine. */
typedef struct GjSpineItem
{
	GjTree	   *join;			/* the topmost of the native joins that it does */
	GjJoinType	type;
	uint32		sources;		/* bit set of the sources that it adds */
	List	   *conditions;		/* RestrictInfos */
	List	   *filters;
} GjSpineItem;

/* One try to build a program around a streamed leaf. */
typedef struct GjAttempt
{
	PlannerInfo *root;
	GjBuilder  *builder;
	GjTree	   *trees[GJ_MAX_SOURCES];	/* what became source s */
	List	   *items;			/* of GjSpineItem *, in the order of the spine */
	GjTree	   *failed;			/* what did not work, if anything */
	uint32		joined;			/* sources joined so far */
	uint32		dead;			/* of these: not to be read any more */
	double		rows;			/* estimate of what there is so far */
	List	   *host;			/* RestrictInfos for PostgreSQL to check at the end */
} GjAttempt;

/* A join clause and what the device can do with it. */
typedef struct GjJoinClause
{
	RestrictInfo *rinfo;
	Expr	   *left,			/* sides of a possible key, or of an inequality */
			   *right;
	uint32		sources,		/* bit sets of sources */
				left_sources,
				right_sources;
	GjOp		op;				/* of an inequality: left op right */
	char	   *why;			/* while EXPLAIN asks: why is_device is not set */
	GjSetClause *set;			/* a comparison of sets, which is_device does not count; left and
								 * right are its sides */
	bool		is_device,
				is_comparison,	/* left and right are set */
				is_key,			/* left = right */
				is_implied,		/* by the others: nobody needs to check it */
				used;
} GjJoinClause;

typedef struct GjJoinClauses
{
	GjJoinClause *array;
	int			n;
} GjJoinClauses;

/* Relations of the sources joined so far, to be changed or freed by the caller. */
extern Relids gj_joined_relids(const GjAttempt *a);

/* Looks at clauses (RestrictInfos) in the light of what has been joined; each once. */
extern GjJoinClauses gj_classify_clauses(GjAttempt *a, List *rinfos);

/* True if several clauses are from one equivalence class: others may be implied. */
extern bool gj_share_classes(const GjJoinClauses *clauses);

/*
 * Of inner joins alone: adds the equalities of source s and what is joined that equivalence classes imply,
 * where no clause of the class says that.  So each class makes what is joined equal in all its members.
 */
extern void gj_add_implied(GjAttempt *a, GjJoinClauses *clauses, int s);

/*
 * Leaves one clause of each class that compares source s with what is joined, with the streamed source
 * if one does: all members are equal there, and a step that reads no other build side may come before
 * others.
 */
extern void gj_drop_repeated(const GjAttempt *a, GjJoinClauses *clauses, int s);

/*
 * True if the clause compares an expression on source s alone with one on what is joined
 * already: a key if `equal`, else a bound of a range.
 */
extern bool gj_compares(const GjAttempt *a, const GjJoinClause *clause, int s, bool equal);

/* The same for a comparison of sets. */
extern bool gj_compares_sets(const GjAttempt *a, const GjJoinClause *clause, int s);

/* True if the device can check the clause once source s is joined, and it is not used yet. */
extern bool gj_can_check(const GjAttempt *a, const GjJoinClause *clause, int s);

/* Bit set of the sources that an expression reads; 0 if one is in no source. */
extern uint32 gj_sources_of_expr(GjBuilder *builder, Expr *expr);

/* Mirrors a comparison: a < b is b > a. */
extern GjOp gj_mirrored(GjOp op);

/*
 * Adds the next step, which joins source s with all conditions that can be checked there; `rows`: how many come out
 * of it, as PostgreSQL estimates them.  False if conditions are too deep, or sets cannot be joined.
 */
extern bool gj_make_step(GjAttempt *a, GjJoinType type, int s, GjJoinClauses *clauses, List *filters,
						 double rows);

#endif							/* GJ_JOIN_BUILD_H */
