/*
 * set_clause.h
 *	  Join clauses that compare integer arrays as sets.
 */
#ifndef GJ_SET_CLAUSE_H
#define GJ_SET_CLAUSE_H

#include "plan/program_builder.h"

/* What a clause says of two columns of arrays; left and right as predicates name them. */
typedef struct GjSetClause
{
	Expr	   *left;			/* Vars or PlaceHolderVars */
	Expr	   *right;
	GjSetPredicate predicate;
	Expr	   *threshold;		/* NULL: 1 */
	bool		strict;			/* more than the threshold */
	uint8		width;			/* of the elements */
	uint8		left_nulls;		/* GjNullElements */
	uint8		right_nulls;
} GjSetClause;

/*
 * The clause as a comparison of sets, palloc'd; NULL if it is none that the device knows, or if
 * the arrays are too long to be carried.
 */
extern GjSetClause *gj_set_clause(GjBuilder *builder, Expr *clause);

/* Adds what the step needs to the builder; `inverted`: the left column is the inner side's. */
extern bool gj_add_set_step(GjBuilder *builder, GjBuildStep *step, const GjSetClause *set,
							bool inverted);

/* What an expression makes of the pair values of a step. */
typedef struct GjSetValue
{
	int			step;
	GjSetPredicate predicate;	/* a similarity, OVERLAP or CONTAINS */
	bool		is_condition;
	int			contained;		/* pair value that is the size of the set to be contained */
} GjSetValue;

/*
 * True if the expression is a function of two sets that a step of the builder has joined.  Then
 * the step has pair values, and NULL elements make it fail.
 */
extern bool gj_set_value(GjBuilder *builder, Expr *expr, GjSetValue *value);

/* Estimates for cost: elements of an average set, common ones of an average pair. */
extern void gj_estimate_sets(GjBuilder *builder, const GjSetClause *set, double *left, double *right,
							 double *common);

#endif							/* GJ_SET_CLAUSE_H */
