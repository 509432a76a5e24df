/*
 * unnest_join.h
 *	  Subqueries as joins of the query that they are in.  A part of unnest.c.
 */
#ifndef GJ_UNNEST_JOIN_H
#define GJ_UNNEST_JOIN_H

#include "nodes/parsenodes.h"

#include "plan/safety.h"

/* A query that is rewritten. */
typedef struct GjUnnest
{
	Query	   *query;
	const GjAround *here;		/* it, and the queries around it */
	List	   *sublinks;		/* those that are joined: equal ones become one join */
	List	   *values;			/* what each of them became */
	bool		changed;
} GjUnnest;

/* A condition inner = outer that ties a subquery to the row outside. */
typedef struct GjTie
{
	Expr	   *inner;
	OpExpr	   *clause;
	bool		inner_first;
} GjTie;

/* Queries in a subquery that becomes several: those of nested ones multiply. */
#define GJ_MOST_COPIED		10

/* True if an expression, or a query, reads columns `least` levels further out than its own, or more. */
extern bool gj_reads_level(Node *node, int least);

/* True for a subquery that is a plain SELECT whose rows are just what its FROM and WHERE give. */
extern bool gj_is_plain_query(const Query *query);

/* A table that stands in FROM by itself, or on the left of LEFT JOINs; NULL: it does not. */
extern RangeTblEntry *gj_plain_table(const Query *query, Index rti);

/* The same of one that has no children. */
extern RangeTblEntry *gj_only_table(const Query *query, Index rti);

/* True for a subquery that has at most one row, by a unique key of its table, and cannot fail. */
extern bool gj_is_lookup(Query *sub, const GjAround *around);

/* True for a query that is one row of aggregates, all of whose groups may be computed. */
extern bool gj_is_aggregate(Query *sub, const GjAround *around);

/* True if a column of aggregates is NULL where there are no rows. */
extern bool gj_is_null_without_rows(const TargetEntry *value);

/*
 * Takes the conditions that tie it to the row outside off a subquery, as GjTies.  False if there are
 * none, or if something else ties it, too.
 */
extern bool gj_take_ties(const GjUnnest *cxt, Query *sub, List **ties);

/* Makes columns of all that a subquery computes. */
extern void gj_show_columns(Query *sub);

/* Adds a column that is not NULL. */
extern TargetEntry *gj_add_found(Query *sub);

/*
 * Puts what is grouped by back where it is read, as before PostgreSQL 18: there are its subqueries.
 * What stands for groups among the relations becomes one that nobody reads.
 */
extern void gj_flatten_groups(Query *query);

/* Adds a subquery to the query's range table; its number. */
extern Index gj_add_subquery(Query *query, Query *subquery);

/* LEFT JOIN of what is left of it, a list of parts of FROM, and a subquery. */
extern JoinExpr *gj_make_left_join(List *left, Index subquery, List *conditions, Index join_rti);

/*
 * A column of groups that are joined; where there is no group, the value of its aggregates of no
 * rows.
 */
extern Node *gj_value_of_group(const GjUnnest *cxt, Index rti, Index join, const TargetEntry *value,
							   const TargetEntry *found);

/* True if what is joined must stay a left join: expressions over its columns can fail. */
extern bool gj_needs_left_join(const GjUnnest *cxt);

/* Makes a subquery group by an expression, too; a column of it. */
extern TargetEntry *gj_add_group(Query *query, Expr *expr);

/* Makes a subquery group by the inner sides of ties; the columns that these are. */
extern List *gj_add_keys(Query *sub, const List *ties);

/* The ties of a subquery in FROM, as conditions of the query around it. */
extern List *gj_tie_conditions(Index subquery, const List *ties, const List *keys);

/*
 * What a correlated SubLink is after its groups, or rows, were joined with the query's FROM; NULL if
 * they cannot be.  It is a scalar aggregate, an EXISTS, or a look-up by a unique key.
 */
extern Node *gj_join_aggregate(GjUnnest *cxt, const SubLink *sublink);
extern Node *gj_join_exists(GjUnnest *cxt, const SubLink *sublink);
extern Node *gj_join_lookup(GjUnnest *cxt, const SubLink *sublink);

/* Joins the groups of subqueries in FROM that are LATERAL. */
extern void gj_join_laterals(GjUnnest *cxt);

/* Rewrites what is in an expression; is_null_false: NULL does what false does. */
extern Node *gj_rewrite_expression(GjUnnest *cxt, Node *node, bool is_null_false);

/* The same of a condition in WHERE; what the planner itself makes a semi or anti join stays. */
extern Node *gj_rewrite_condition(GjUnnest *cxt, Node *clause);

/* Rewrites what is selected and grouped by, and HAVING. */
extern void gj_rewrite_targets(GjUnnest *cxt);

/* True for the subquery's value in a comparison, as the same bytes of another type perhaps. */
extern bool gj_is_column_of_sublink(Node *node);

/* x = y for the subquery of x IN (SELECT y ...). */
extern Expr *gj_compare_in_sublink(const OpExpr *test, const Query *sub);

/* True for a column of a table that has no NULL, not even made up by an outer join. */
extern bool gj_is_never_null(const Query *query, Node *node);

/* A subquery in an expression, without a comparison. */
extern SubLink *gj_make_sublink(SubLinkType type, Query *sub);

/* A condition (NULL: true) AND others. */
extern Node *gj_and_conditions(Node *quals, List *conditions);

/* NOT EXISTS (SELECT FROM ... WHERE ... AND condition); condition: NULL, or one of the subquery's. */
extern Expr *gj_not_exists(const Query *sub, Expr *condition);

#endif							/* GJ_UNNEST_JOIN_H */
