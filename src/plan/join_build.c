/*
 * join_build.c
 *	  From a tree of native joins to sources and steps of a program.
 *
 * One leaf of the tree is streamed: source 0.  The joins on its way to the root are the
 * spine; each joins what is there so far with its other side, which becomes one source,
 * or several where inner joins make it up.  Where the spine is the inner side of a
 * native join, the step's type is mirrored.  Inner joins next to each other on the spine
 * are one conjunction: the order of their steps is chosen anew.  Joins that keep each
 * row of their outer side as it is (left, semi, anti) and lie in a side that is inner
 * joined are done after that inner join instead; the rows are the same.
 *
 * A join that the device cannot do is marked native: it becomes a plan source, and all
 * starts again.  The largest leaves are tried as the streamed one; the cheapest program
 * wins.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"

#include "plan/join_build.h"
#include "plan/join_path.h"
#include "plan/make_expr.h"
#include "plan/outer_joins.h"
#include "plan/reasons.h"

/* Leaves that are tried as the streamed one, and how much smaller than the largest they can be. */
#define MAX_TRIES			4
#define SMALL_LEAF			50

static bool
fail(GjAttempt *a, GjTree *tree)
{
	a->failed = tree;
	return false;
}

/* ---- the order of joins */

/* Adds a source; false if it can neither be read nor be planned. */
static bool
add_source(GjAttempt *a, GjSpineItem *item, GjTree *tree)
{
	int			s = a->builder->nsources;

	if (s == GJ_MAX_SOURCES)
	{
		gj_refuse("more than %d tables", GJ_MAX_SOURCES);
		return fail(a, tree);
	}
	/* conditions are compiled with the columns of the new source */
	a->builder->nsources++;
	if (!gj_choose_source(a->root, a->builder, s, tree->rel, tree->path, tree->fixed))
		return fail(a, tree);
	a->trees[s] = tree;
	if (item)
		item->sources |= 1u << s;
	return true;
}

static Relids
relids_of_clauses(List *rinfos)
{
	Relids		result = NULL;
	ListCell   *lc;

	foreach(lc, rinfos)
		result = bms_add_members(result, lfirst_node(RestrictInfo, lc)->clause_relids);
	return result;
}

static GjSpineItem *
make_item(GjTree *join, GjJoinType type)
{
	GjSpineItem	   *item = palloc0(sizeof(GjSpineItem));

	item->join = join;
	item->type = type;
	item->conditions = list_copy(join->conditions);
	item->filters = join->filters;
	return item;
}

/*
 * Adds a side of an inner join to the group.  `needed`: relations that the conditions of
 * the group read, so they must be joined with it.  Joins that can follow the group are
 * appended to *later.
 */
static bool
add_inner_side(GjAttempt *a, GjSpineItem *group, GjTree *tree, Relids needed, List **later)
{
	GjTree	   *kept = tree->type == JOIN_RIGHT ? tree->inner : tree->outer;
	GjTree	   *other = tree->type == JOIN_RIGHT ? tree->outer : tree->inner;
	GjSpineItem	   *item;

	if (!gj_tree_is_join(tree))
		return add_source(a, group, tree);
	if (tree->type == JOIN_INNER)
	{
		group->conditions = list_concat(group->conditions, tree->conditions);
		needed = bms_union(needed, relids_of_clauses(tree->conditions));
		return add_inner_side(a, group, tree->outer, needed, later) &&
			add_inner_side(a, group, tree->inner, needed, later);
	}
	if (tree->type == JOIN_FULL || bms_overlap(needed, other->rel->relids))
		return add_source(a, group, tree);
	if (!add_inner_side(a, group, kept, needed, later))
		return false;
	item = make_item(tree, tree->type == JOIN_SEMI ? GJ_JOIN_SEMI :
					 tree->type == JOIN_ANTI ? GJ_JOIN_ANTI : GJ_JOIN_LEFT);
	*later = lappend(*later, item);
	return add_source(a, item, other);
}

/* The step's type for a native join of which the spine is the outer or the inner side. */
static GjJoinType
step_type(JoinType type, bool spine_is_outer)
{
	switch (type)
	{
		case JOIN_LEFT:
			return spine_is_outer ? GJ_JOIN_LEFT : GJ_JOIN_RIGHT;
		case JOIN_RIGHT:
			return spine_is_outer ? GJ_JOIN_RIGHT : GJ_JOIN_LEFT;
		case JOIN_FULL:
			return GJ_JOIN_FULL;
		case JOIN_SEMI:
			return spine_is_outer ? GJ_JOIN_SEMI : GJ_JOIN_RIGHT_SEMI;
		case JOIN_ANTI:
			return spine_is_outer ? GJ_JOIN_ANTI : GJ_JOIN_RIGHT_ANTI;
		default:
			return GJ_JOIN_INNER;
	}
}

/* Walks the spine from the streamed leaf to the root. */
static bool
make_items(GjAttempt *a, GjTree *streamed)
{
	GjSpineItem	   *group = NULL;

	if (!add_source(a, NULL, streamed))
		return false;
	for (GjTree *child = streamed; child->parent != NULL; child = child->parent)
	{
		GjTree	   *join = child->parent;
		GjTree	   *side = join->outer == child ? join->inner : join->outer;
		List	   *later = NIL;
		GjSpineItem	   *item;

		if (join->type != JOIN_INNER)
		{
			group = NULL;
			item = make_item(join, step_type(join->type, join->outer == child));
			if (!add_source(a, item, side))
				return false;
			a->items = lappend(a->items, item);
			continue;
		}
		if (group == NULL)
		{
			group = make_item(join, GJ_JOIN_INNER);
			a->items = lappend(a->items, group);
		}
		else
		{
			group->join = join;
			group->conditions = list_concat(group->conditions, join->conditions);
		}
		if (!add_inner_side(a, group, side, relids_of_clauses(join->conditions), &later))
			return false;
		if (later != NIL)
		{
			a->items = list_concat(a->items, later);
			group = NULL;
		}
	}
	return true;
}

Relids
gj_joined_relids(const GjAttempt *a)
{
	Relids		relids = NULL;

	for (int i = 0; i < a->builder->nsources; i++)
		if (a->joined & (1u << i))
			relids = bms_add_members(relids, a->builder->source[i].relids);
	return relids;
}

/* Rows of the join of the joined sources and s, as PostgreSQL estimates them. */
static double
estimate_rows(GjAttempt *a, int s)
{
	GjBuildSource *source = &a->builder->source[s];
	RelOptInfo *rel = gj_find_join_rel(a->root, bms_add_members(gj_joined_relids(a), source->relids));

	if (rel)
		return rel->rows;
	/* an order that PostgreSQL has not looked at: as if s were a dimension */
	return a->rows * source->rows_filtered / Max(source->rows_loaded, 1);
}

/* How well source s can be joined now. */
typedef enum Link
{
	LINK_NONE,					/* no condition: all pairs */
	LINK_CONDITION,
	LINK_RANGE,
	LINK_SETS,
	LINK_KEY
} Link;

/* *undecided: only conditions that the device does not know link source s with the rest. */
static Link
find_link(GjAttempt *a, int s, GjJoinClauses *clauses, bool *undecided)
{
	Link		link = LINK_NONE;

	*undecided = false;
	for (int i = 0; i < clauses->n; i++)
	{
		GjJoinClause *clause = &clauses->array[i];
		bool		links = (clause->sources & (1u << s)) && (clause->sources & a->joined);

		if (gj_compares(a, clause, s, true))
			link = LINK_KEY;
		else if (gj_compares(a, clause, s, false))
			link = Max(link, LINK_RANGE);
		else if (gj_compares_sets(a, clause, s))
			link = Max(link, LINK_SETS);
		else if (links && gj_can_check(a, clause, s))
			link = Max(link, LINK_CONDITION);
		else if (links && !clause->is_device)
			*undecided = true;
		else if (clause->sources == 0)
			*undecided |= bms_overlap(clause->rinfo->clause_relids, a->trees[s]->rel->relids);
	}
	*undecided &= link == LINK_NONE;
	return link;
}

/* True if only PostgreSQL knows one of the conditions. */
static bool
has_host_clause(const GjJoinClauses *clauses)
{
	for (int i = 0; i < clauses->n; i++)
		if (!clauses->array[i].is_device)
			return true;
	return false;
}

/* Writes a condition down that the device does not know. */
static void
refuse_condition(GjAttempt *a, const char *what, const GjJoinClause *clause)
{
	if (!gj_explaining)
		return;
	gj_swap_obstacle(clause->why);
	gj_refuse_because("%s %s", what, gj_expr_text(a->root, (Node *) clause->rinfo->clause));
}

/* The same of joins that would make all pairs of rows. */
static void
refuse_pairs(GjAttempt *a, const GjJoinClauses *clauses)
{
	for (int i = 0; i < clauses->n; i++)
		if (!clauses->array[i].is_device)
		{
			refuse_condition(a, "join condition", &clauses->array[i]);
			return;
		}
	gj_refuse("no condition joins the tables");
}

/*
 * The source of a group to join next: the one that leaves fewest rows among those with
 * the best link; -1 if the device would make all pairs, or nearly, for PostgreSQL to choose
 * from.
 */
static int
choose_next(GjAttempt *a, uint32 sources, GjJoinClauses *clauses, double *next_rows)
{
	int			best = -1;
	Link		best_link = LINK_NONE;

	for (int s = 1; s < a->builder->nsources; s++)
	{
		double		estimate;
		bool		undecided;
		Link		link;

		if (!(sources & ~a->joined & (1u << s)))
			continue;
		link = find_link(a, s, clauses, &undecided);
		if (undecided)
			continue;
		estimate = estimate_rows(a, s);
		if (best < 0 || link > best_link || (link == best_link && estimate < *next_rows))
		{
			best = s;
			best_link = link;
			*next_rows = estimate;
		}
	}
	return best_link < LINK_RANGE && has_host_clause(clauses) ? -1 : best;
}

/*
 * Leaves conditions to PostgreSQL, to check on the rows that come back.  That is the same
 * if all that follows keeps the tuples that it gets as they are.
 */
static bool
leave_to_host(GjAttempt *a, List *rinfos, int item)
{
	ListCell   *lc;

	if (rinfos == NIL)
		return true;
	gj_refuse("condition %s, which only PostgreSQL knows, is at or below an outer, semi or anti join",
			  gj_expr_text(a->root, (Node *) linitial_node(RestrictInfo, rinfos)->clause));
	if (gj_builder_sources_of(a->builder, relids_of_clauses(rinfos)) & a->dead)
		return false;
	for_each_from(lc, a->items, item + 1)
	{
		GjJoinType	type = ((GjSpineItem *) lfirst(lc))->type;

		if (type != GJ_JOIN_INNER && type != GJ_JOIN_LEFT && type != GJ_JOIN_SEMI &&
			type != GJ_JOIN_ANTI)
			return false;
	}
	a->host = list_concat(a->host, rinfos);
	return true;
}

/* The steps of a group of inner joins. */
static bool
make_group(GjAttempt *a, int i)
{
	GjSpineItem *item = list_nth(a->items, i);
	GjJoinClauses clauses = gj_classify_clauses(a, item->conditions);
	List	   *host = NIL;
	bool		implies = i == 0 && gj_share_classes(&clauses);

	while (item->sources & ~a->joined)
	{
		double		rows = 0;
		int			s;

		for (s = 1; implies && s < a->builder->nsources; s++)
			if (item->sources & ~a->joined & (1u << s))
				gj_add_implied(a, &clauses, s);
		s = choose_next(a, item->sources, &clauses, &rows);
		if (s < 0)
		{
			/* the join that has one of them is PostgreSQL's */
			for (s = 1; !(item->sources & ~a->joined & (1u << s));)
				s++;
			refuse_pairs(a, &clauses);
			return fail(a, a->trees[s]->parent);
		}
		if (implies)
			gj_drop_repeated(a, &clauses, s);
		if (!gj_make_step(a, GJ_JOIN_INNER, s, &clauses, NIL, rows))
			return fail(a, item->join);
	}
	for (int c = 0; c < clauses.n; c++)
		if (!clauses.array[c].used && !clauses.array[c].is_implied)
			host = lappend(host, clauses.array[c].rinfo);
	return leave_to_host(a, host, i) ? true : fail(a, item->join);
}

/*
 * An anti join whose unmatched side is read above becomes a left join that keeps what
 * has matched nothing: there a column that is part of a key is NULL.  The condition that
 * says so; NULL if no key is a column of the side's.
 */
static Expr *
unmatched_condition(GjAttempt *a, uint32 unmatched, GjJoinClauses *clauses)
{
	for (int i = 0; i < clauses->n; i++)
	{
		GjJoinClause *clause = &clauses->array[i];

		for (int side = 0; side < 2 && clause->is_comparison; side++)
		{
			Expr	   *expr = side == 0 ? clause->left : clause->right;

			if (IsA(expr, Var) && (gj_sources_of_expr(a->builder, expr) & unmatched) != 0)
				return gj_make_null_test(expr, IS_NULL);
		}
	}
	return NULL;
}

/* The step of an outer, semi or anti join. */
static bool
make_single(GjAttempt *a, int i)
{
	GjSpineItem *item = list_nth(a->items, i);
	int			s = pg_rightmost_one_pos32(item->sources);
	GjJoinClauses clauses = gj_classify_clauses(a, item->conditions);
	GjJoinClauses where = gj_classify_clauses(a, item->filters);
	GjJoinType	type = item->type;
	uint32		before = a->joined;
	List	   *filters = NIL,
			   *host = NIL;
	bool		has_sets = false;

	/* what matches must be known to the device: one comparison of sets, and all else */
	for (int c = 0; c < clauses.n; c++)
	{
		if (gj_can_check(a, &clauses.array[c], s))
			continue;
		if (has_sets || !gj_compares_sets(a, &clauses.array[c], s))
		{
			refuse_condition(a, "outer, semi or anti join condition", &clauses.array[c]);
			return fail(a, item->join);
		}
		has_sets = true;
	}
	if (item->join->reads_unmatched)
	{
		bool		mirrored_type = type == GJ_JOIN_RIGHT_ANTI;
		Expr	   *condition = unmatched_condition(a, mirrored_type ? before : item->sources,
													&clauses);

		if (condition == NULL)
		{
			gj_refuse("an anti join whose missing rows are read, and none of its keys is a column");
			return fail(a, item->join);
		}
		filters = list_make1(condition);
		type = mirrored_type ? GJ_JOIN_RIGHT : GJ_JOIN_LEFT;
	}
	for (int c = 0; c < where.n; c++)
	{
		if (gj_can_check(a, &where.array[c], s))
			filters = lappend(filters, where.array[c].rinfo->clause);
		else
			host = lappend(host, where.array[c].rinfo);
	}
	if (!leave_to_host(a, host, i))
		return fail(a, item->join);
	if (!gj_make_step(a, type, s, &clauses, filters, estimate_rows(a, s)))
		return fail(a, item->join);
	if (type == GJ_JOIN_SEMI || type == GJ_JOIN_ANTI)
		a->dead |= item->sources;
	else if (type == GJ_JOIN_RIGHT_SEMI || type == GJ_JOIN_RIGHT_ANTI)
		a->dead |= before;
	return true;
}

/* ---- all together */

static bool
attempt(GjAttempt *a, PlannerInfo *root, GjTree *streamed)
{
	GjBuilder  *builder = gj_builder_create(root);

	memset(a, 0, sizeof(GjAttempt));
	a->root = root;
	a->builder = builder;
	if (!make_items(a, streamed))
		return false;
	for (int s = 0; s < builder->nsources; s++)
		(void) gj_compile_source_filter(builder, s, &builder->source[s].filter);
	a->joined = 1;
	a->rows = builder->source[0].rows_filtered;
	for (int i = 0; i < list_length(a->items); i++)
		if (!(((GjSpineItem *) list_nth(a->items, i))->type == GJ_JOIN_INNER ? make_group(a, i) :
			  make_single(a, i)))
			return false;
	return true;
}

static double
rows_to_load(PlannerInfo *root, const GjTree *leaf)
{
	return gj_is_heap(root, leaf->rel) ?
		Max(gj_heap_tuples(root, leaf->rel, NULL), leaf->rel->rows) : leaf->rel->rows;
}

/*
 * The leaves to try as the streamed one, the largest first; *n of them, at most MAX_TRIES:
 * small sides are seldom it, and each try costs time.  *nlarge: those that are worth a try where
 * another one will do.
 */
static GjTree **
sort_leaves(PlannerInfo *root, GjTree *tree, int *n, int *nlarge)
{
	List	   *leaves = gj_tree_leaves(tree);
	GjTree	  **result = palloc(sizeof(GjTree *) * list_length(leaves));
	double	   *rows = palloc(sizeof(double) * list_length(leaves));

	*n = list_length(leaves);
	for (int i = 0; i < *n; i++)
	{
		GjTree	   *leaf = list_nth(leaves, i);
		double		leaf_rows = rows_to_load(root, leaf);
		int			at = i;

		for (; at > 0 && rows[at - 1] < leaf_rows; at--)
		{
			result[at] = result[at - 1];
			rows[at] = rows[at - 1];
		}
		result[at] = leaf;
		rows[at] = leaf_rows;
	}
	*n = Min(*n, MAX_TRIES);
	for (*nlarge = 0; *nlarge < *n && rows[*nlarge] * SMALL_LEAF >= rows[0];)
		(*nlarge)++;
	return result;
}

/* The best program for the tree as it is; false with the culprit if there is none. */
static bool
try_leaves(PlannerInfo *root, GjTree *tree, GjAttempt *best, GjTree **culprit)
{
	int			n;
	int			nlarge;
	GjTree	  **order = sort_leaves(root, tree, &n, &nlarge);
	double		best_cost = 0;
	bool		best_fits = false;
	bool		found = false;

	char	   *why = NULL;

	*culprit = NULL;
	for (int i = 0; i < (found ? nlarge : n); i++)
	{
		GjAttempt		a;
		double		cost;
		bool		fits;

		if (!attempt(&a, root, order[i]))
		{
			if (*culprit == NULL)
			{
				*culprit = a.failed;
				why = gj_swap_obstacle(NULL);
			}
			continue;
		}
		cost = gj_cost_builder(root, a.builder);
		fits = gj_fits_or_splits(a.builder);
		/* estimates are rough: the largest leaf, unless another one is clearly better */
		if (!found || (fits == best_fits ? cost < best_cost * 0.9 : fits))
		{
			*best = a;
			best_cost = cost;
			best_fits = fits;
		}
		found = true;
	}
	gj_swap_obstacle(why);
	return found;
}

static int
compare_security(const ListCell *a, const ListCell *b)
{
	return (int) lfirst_node(RestrictInfo, a)->security_level -
		(int) lfirst_node(RestrictInfo, b)->security_level;
}

/*
 * True if a child plan alone costs more than PostgreSQL's plan for all: that one has a way to
 * read but few rows of it, and the child plan would read them all, whoever forces it.
 */
static bool
has_dear_source(const GjAttempt *a, const Path *native)
{
	for (int s = 0; s < a->builder->nsources; s++)
	{
		const Path *path = a->builder->source[s].path;

		if (path != NULL && path->total_cost > 2 * native->total_cost &&
			path->total_cost > 10 * gj_cost_least())
			return !gj_refuse("a child plan would cost %.2f, PostgreSQL's plan for all %.2f",
							  path->total_cost, native->total_cost);
	}
	return false;
}

GjBuilder *
gj_build_join(PlannerInfo *root, Path *native, List **host_quals, double *rows)
{
	GjTree	   *tree,
			   *culprit;
	GjAttempt		a = {0};

	if (gj_has_volatile_entry(root, native->parent->relids) ||
		gj_is_volatile((Node *) root->parse->jointree))
		return NULL;
	tree = gj_tree_create(root, gj_whole_join(root, native));
	/* a scan alone is a program without steps, for what is above it */
	if (tree == NULL || (!gj_tree_is_join(tree) && !IS_SIMPLE_REL(native->parent)))
	{
		gj_refuse("its plan is not a tree of joins: a LATERAL reference, or a condition that "
				  "passes an outer join");
		return NULL;
	}
	while (!try_leaves(root, tree, &a, &culprit))
	{
		/* a join that does not work is native; a source that does not, with its join */
		if (!gj_tree_is_join(culprit))
			culprit = culprit->parent;
		if (culprit == NULL || culprit->parent == NULL)
			return NULL;
		culprit->native = true;
		gj_part_refused_for(root, culprit->rel->relids);
	}
	*rows = a.rows;
	if (has_dear_source(&a, native))
		return NULL;
	if (a.host == NIL)
		return a.builder;
	if (host_quals == NULL)
	{
		gj_refuse_because("condition %s, which only PostgreSQL knows, is below aggregates",
						  gj_expr_text(root, (Node *) linitial_node(RestrictInfo, a.host)->clause));
		return NULL;
	}
	list_sort(a.host, compare_security);
	*host_quals = get_actual_clauses(a.host);
	return gj_is_volatile((Node *) *host_quals) ? NULL : a.builder;
}
