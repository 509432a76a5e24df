/*
 * join_path.c
 *	  Planner hooks, and how a native join path becomes a GpuJoin path.
 *
 * A GpuJoin competes as one path for a whole join problem, after PostgreSQL has solved
 * it: the tree that PostgreSQL's cheapest path joins in is a legal order, its clauses
 * are complete, and the cheapest native path, Gather included, is the fallback.
 * (Offering paths pair by pair would make add_path() drop the native ones that the
 * fallback needs.)  A tree of inner joins is one conjunction over all its relations, so
 * the order of steps on the device is chosen anew.
 *
 * Where the aggregates, groups or distinct rows above the join can be made on the device as
 * well, the join alone is not offered: agg_path.c offers both together, and the same
 * over a scan.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/geqo.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "utils/rel.h"

#include "client/client.h"
#include "guc.h"
#include "plan/join_path.h"

/* A side of the join as the native path has it. */
typedef struct Leaf
{
	RelOptInfo *rel;
	Path	   *path;			/* the path to use as plan source */
	bool		fixed;			/* no other path will do (made unique) */
} Leaf;

/* A join clause and what the device can do with it. */
typedef struct JoinClause
{
	RestrictInfo *rinfo;
	Expr	   *left,			/* sides of a possible key */
			   *right;
	uint32		sources,		/* bit sets of sources */
				left_sources,
				right_sources;
	bool		is_key,
				is_device,
				used;
} JoinClause;

static join_search_hook_type prev_join_search = NULL;
static create_upper_paths_hook_type prev_create_upper_paths = NULL;

bool
gj_may_plan(PlannerInfo *root)
{
	/* UPDATE, DELETE and MERGE need row identities; row marks EvalPlanQual */
	return gj_enabled && gj_device != GJ_SET_DEVICE_OFF &&
		(root->parse->commandType == CMD_SELECT || root->parse->commandType == CMD_INSERT) &&
		root->rowMarks == NIL && root->parse->rowMarks == NIL &&
		root->parse->hasModifyingCTE == false &&
		!IsolationIsSerializable();
}

Path *
gj_copy_path(const Path *path)
{
	Size		size;
	Path	   *copy;

	switch (nodeTag(path))
	{
		case T_NestPath:
			size = sizeof(NestPath);
			break;
		case T_MergePath:
			size = sizeof(MergePath);
			break;
		case T_HashPath:
			size = sizeof(HashPath);
			break;
		case T_GatherPath:
			size = sizeof(GatherPath);
			break;
		case T_GatherMergePath:
			size = sizeof(GatherMergePath);
			break;
		case T_ProjectionPath:
			size = sizeof(ProjectionPath);
			break;
		case T_SortPath:
			size = sizeof(SortPath);
			break;
		case T_IncrementalSortPath:
			size = sizeof(IncrementalSortPath);
			break;
		case T_AggPath:
			size = sizeof(AggPath);
			break;
		case T_GroupPath:
			size = sizeof(GroupPath);
			break;
		case T_UpperUniquePath:
			size = sizeof(UpperUniquePath);
			break;
		default:
			return NULL;
	}
	copy = palloc(size);
	memcpy(copy, path, size);
	return copy;
}

/* Path below a node that does not change which rows there are; NULL if there is none. */
static Path *
transparent_subpath(Path *path)
{
	switch (nodeTag(path))
	{
		case T_GatherPath:
			return ((GatherPath *) path)->subpath;
		case T_GatherMergePath:
			return ((GatherMergePath *) path)->subpath;
		case T_MaterialPath:
			return ((MaterialPath *) path)->subpath;
		case T_MemoizePath:
			return ((MemoizePath *) path)->subpath;
		case T_SortPath:
			return ((SortPath *) path)->subpath;
		case T_IncrementalSortPath:
			return ((IncrementalSortPath *) path)->spath.subpath;
		case T_ProjectionPath:
			return ((ProjectionPath *) path)->subpath;
		default:
			return NULL;
	}
}

bool
gj_contains_gpujoin(const Path *path)
{
	const Path *subpath;

	if (IsA(path, CustomPath))
		return ((const CustomPath *) path)->methods == &gj_join_path_methods;
	if (IsA(path, NestPath) || IsA(path, MergePath) || IsA(path, HashPath))
		return gj_contains_gpujoin(((const JoinPath *) path)->outerjoinpath) ||
			gj_contains_gpujoin(((const JoinPath *) path)->innerjoinpath);
	if (IsA(path, AggPath))
		return gj_contains_gpujoin(((const AggPath *) path)->subpath);
	if (IsA(path, GroupPath))
		return gj_contains_gpujoin(((const GroupPath *) path)->subpath);
	if (IsA(path, UpperUniquePath))
		return gj_contains_gpujoin(((const UpperUniquePath *) path)->subpath);
	subpath = transparent_subpath(unconstify(Path *, path));
	return subpath != NULL && gj_contains_gpujoin(subpath);
}

/*
 * Collects the sides and the clauses of a tree of inner joins.  A node that is not an
 * inner join becomes a side.  False if clauses could be missing.
 */
static bool
flatten(Path *path, List **leaves, List **clauses)
{
	Path	   *subpath;
	Leaf	   *leaf;

	check_stack_depth();
	if ((IsA(path, NestPath) || IsA(path, MergePath) || IsA(path, HashPath)) &&
		((JoinPath *) path)->jointype == JOIN_INNER)
	{
		JoinPath   *join = (JoinPath *) path;

		*clauses = list_concat(*clauses, join->joinrestrictinfo);
		return flatten(join->outerjoinpath, leaves, clauses) &&
			flatten(join->innerjoinpath, leaves, clauses);
	}
	subpath = transparent_subpath(path);
	if (subpath != NULL)
		return flatten(subpath, leaves, clauses);
	/*
	 * Conditions that a nested loop passes down to its inner side.  Joins and members of
	 * an append have theirs elsewhere: such a tree is not understood.
	 */
	if (path->param_info)
	{
		if (path->parent->reloptkind != RELOPT_BASEREL)
			return false;
		*clauses = list_concat(*clauses, path->param_info->ppi_clauses);
	}
	leaf = palloc0(sizeof(Leaf));
	leaf->rel = path->parent;
	leaf->fixed = IsA(path, UniquePath);
	leaf->path = leaf->fixed ? path : path->parent->cheapest_total_path;
	*leaves = lappend(*leaves, leaf);
	return true;
}

/* True if running these range table entries twice could give different rows. */
static bool
has_volatile_entry(PlannerInfo *root, Relids relids)
{
	int			relid = -1;

	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		RangeTblEntry *rte = planner_rt_fetch(relid, root);

		/* policies of row-level security are here, and not in the join tree */
		if (contain_volatile_functions((Node *) find_base_rel(root, relid)->baserestrictinfo))
			return true;
		if ((rte->rtekind == RTE_SUBQUERY && contain_volatile_functions((Node *) rte->subquery)) ||
			(rte->rtekind == RTE_FUNCTION && contain_volatile_functions((Node *) rte->functions)) ||
			(rte->rtekind == RTE_TABLEFUNC && contain_volatile_functions((Node *) rte->tablefunc)) ||
			(rte->rtekind == RTE_VALUES && contain_volatile_functions((Node *) rte->values_lists)))
			return true;
	}
	return false;
}

/*
 * True if a subquery that reading `relids` reads has inheritance children, at any depth.
 * Members of an append count, whichever relation they belong to.
 */
static bool
has_append_rels_below(PlannerInfo *root, Relids relids)
{
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		RelOptInfo *rel = root->simple_rel_array[i];

		if (rel == NULL || rel->subroot == NULL ||
			(rel->reloptkind != RELOPT_OTHER_MEMBER_REL && relids != NULL &&
			 !bms_is_member(i, relids)))
			continue;
		if (rel->subroot->append_rel_list != NIL || has_append_rels_below(rel->subroot, NULL))
			return true;
	}
	return false;
}

/*
 * True if a relation may be a plan source.  Its plan then exists twice, there and in
 * the fallback; setrefs.c changes the AppendRelInfos of a subquery in place each time,
 * so subqueries that have any are refused, as is the work table of a recursive query.
 */
static bool
can_be_plan_source(PlannerInfo *root, Leaf *leaf)
{
	int			relid = -1;

	if (leaf->path == NULL || leaf->path->param_info != NULL ||
		!bms_is_empty(leaf->rel->lateral_relids) || gj_contains_gpujoin(leaf->path) ||
		has_append_rels_below(root, leaf->rel->relids))
		return false;
	while ((relid = bms_next_member(leaf->rel->relids, relid)) >= 0)
	{
		RangeTblEntry *rte = planner_rt_fetch(relid, root);

		if ((rte->rtekind == RTE_CTE && rte->self_reference) || rte->tablesample != NULL)
			return false;
	}
	return true;
}

/*
 * True if the loader can read this relation's pages itself, and all that the query wants
 * of it: system columns and whole rows are left to a plan.
 */
static bool
is_plain_heap(PlannerInfo *root, RelOptInfo *rel)
{
	RangeTblEntry *rte;
	Relation	relation;
	bool		result;
	ListCell   *lc;

	if (rel->reloptkind != RELOPT_BASEREL || rel->rtekind != RTE_RELATION)
		return false;
	/* the target of a scan below an aggregate has expressions */
	foreach(lc, pull_var_clause((Node *) rel->reltarget->exprs, PVC_INCLUDE_AGGREGATES |
								PVC_INCLUDE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS))
		if (!IsA(lfirst(lc), Var) || ((Var *) lfirst(lc))->varattno <= 0)
			return false;
	rte = planner_rt_fetch(rel->relid, root);
	if ((rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW) ||
		rte->inh || rte->tablesample != NULL)
		return false;
	relation = table_open(rte->relid, NoLock);
	result = relation->rd_tableam == GetHeapamTableAmRoutine();
	table_close(relation, NoLock);
	return result;
}

static bool
has_pseudoconstant(List *rinfos)
{
	ListCell   *lc;

	foreach(lc, rinfos)
		if (lfirst_node(RestrictInfo, lc)->pseudoconstant)
			return true;
	return false;
}

/*
 * True if the device can check all conditions on a table.  A condition that can fail must
 * not see rows that one of a lower security level hides: a fallback would tell of them.
 */
static bool
can_filter(GjBuilder *builder, RelOptInfo *rel)
{
	ListCell   *lc;
	bool		can_fail;

	foreach(lc, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (!gj_compilable(builder, rinfo->clause, &can_fail) ||
			(can_fail && rinfo->security_level > rel->baserestrict_min_security))
			return false;
	}
	return rel->baserestrictinfo == NIL ||
		gj_compilable(builder, make_ands_explicit(get_actual_clauses(rel->baserestrictinfo)),
					  &can_fail);
}

/*
 * Decides how source s is read: its pages, with all its conditions on the device, or
 * the rows of its cheapest path.  False if neither is possible.
 */
static bool
choose_source(PlannerInfo *root, GjBuilder *builder, int s, Leaf *leaf)
{
	GjBuildSource *source = &builder->source[s];
	RelOptInfo *rel = leaf->rel;
	bool		heap = !leaf->fixed && is_plain_heap(root, rel);
	bool		plan = can_be_plan_source(root, leaf);

	source->rel = rel;
	source->relids = rel->relids;
	source->rows_filtered = rel->rows;
	if (heap)
	{
		source->heap_relid = planner_rt_fetch(rel->relid, root)->relid;
		source->filter_clauses = get_actual_clauses(rel->baserestrictinfo);
		heap = can_filter(builder, rel);
	}
	if (heap && plan)
		heap = gj_cost_heap_source(root, rel, list_length(rel->reltarget->exprs)) <=
			gj_cost_plan_source(leaf->path);
	if (heap)
	{
		source->rows_loaded = rel->tuples;
		return true;
	}
	source->heap_relid = InvalidOid;
	source->filter_clauses = NIL;
	source->path = leaf->path;
	source->rows_loaded = leaf->fixed ? leaf->path->rows : rel->rows;
	source->rows_filtered = source->rows_loaded;
	return plan;
}

/* The leaf with most to load becomes source 0, which is streamed. */
static void
move_largest_first(PlannerInfo *root, List *leaves)
{
	double		largest = -1;
	int			which = 0;
	ListCell   *lc;

	foreach(lc, leaves)
	{
		Leaf	   *leaf = lfirst(lc);
		double		rows = is_plain_heap(root, leaf->rel) ?
			Max(leaf->rel->tuples, leaf->rel->rows) : leaf->rel->rows;

		if (rows > largest)
		{
			largest = rows;
			which = foreach_current_index(lc);
		}
	}
	lc = list_nth_cell(leaves, which);
	if (which != 0)
	{
		void	   *first = linitial(leaves);

		linitial(leaves) = lfirst(lc);
		lfirst(lc) = first;
	}
}

static JoinClause *
classify_clauses(GjBuilder *builder, List *rinfos)
{
	JoinClause *clauses = palloc0(sizeof(JoinClause) * Max(list_length(rinfos), 1));
	ListCell   *lc;

	foreach(lc, rinfos)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		JoinClause *clause = &clauses[foreach_current_index(lc)];
		bool		can_fail = false;

		clause->rinfo = rinfo;
		clause->sources = gj_builder_sources_of(builder, rinfo->clause_relids);
		/* as in can_filter(): PostgreSQL checks the rest in order of security level */
		clause->is_device = clause->sources != 0 &&
			gj_compilable(builder, rinfo->clause, &can_fail) &&
			!(can_fail && rinfo->security_level > 0);
		if (clause->is_device && gj_key_clause(rinfo->clause, &clause->left, &clause->right))
		{
			clause->left_sources =
				gj_builder_sources_of(builder, pull_varnos(builder->root, (Node *) clause->left));
			clause->right_sources =
				gj_builder_sources_of(builder, pull_varnos(builder->root, (Node *) clause->right));
			clause->is_key = clause->left_sources != 0 && clause->right_sources != 0;
		}
	}
	return clauses;
}

/* True if the clause is a key between what is joined already and source s. */
static bool
is_key_for(const JoinClause *clause, uint32 joined, int s)
{
	uint32		inner = 1u << s;

	if (!clause->is_key || clause->used)
		return false;
	return (clause->right_sources == inner && (clause->left_sources & ~joined) == 0) ||
		(clause->left_sources == inner && (clause->right_sources & ~joined) == 0);
}

/* Rows of the join of the joined sources and s, as PostgreSQL estimates them. */
static double
estimate_rows(GjBuilder *builder, uint32 joined, double rows, int s)
{
	Relids		relids = bms_copy(builder->source[s].relids);
	RelOptInfo *rel;

	for (int i = 0; i < builder->nsources; i++)
		if (joined & (1u << i))
			relids = bms_add_members(relids, builder->source[i].relids);
	rel = find_join_rel(builder->root, relids);
	if (rel)
		return rel->rows;
	/* an order that PostgreSQL has not looked at: as if s were a dimension */
	return rows * builder->source[s].rows_filtered / Max(builder->source[s].rows_loaded, 1);
}

/* The source to join next: the one that leaves fewest rows; -1 if none has a key. */
static int
choose_next(GjBuilder *builder, JoinClause *clauses, int nclauses, uint32 joined,
			double rows, double *next_rows)
{
	int			best = -1;

	for (int s = 1; s < builder->nsources; s++)
	{
		double		estimate;

		if (joined & (1u << s))
			continue;
		for (int i = 0; i < nclauses; i++)
		{
			if (!is_key_for(&clauses[i], joined, s))
				continue;
			estimate = estimate_rows(builder, joined, rows, s);
			if (best < 0 || estimate < *next_rows)
			{
				best = s;
				*next_rows = estimate;
			}
			break;
		}
	}
	return best;
}

/* Compiles the keys of a step; they must lie one after the other. */
static void
compile_keys(GjBuilder *builder, GjBuildStep *step, JoinClause **keys)
{
	uint32		inner = 1u << step->source;

	for (int side = 0; side < 2; side++)
	{
		for (int i = 0; i < step->nkeys; i++)
		{
			bool		right_is_inner = keys[i]->right_sources == inner;
			Expr	   *expr = (side == 0) == right_is_inner ? keys[i]->left : keys[i]->right;
			int			e = gj_compile(builder, expr);

			if (e < 0)
				elog(ERROR, "could not compile a join key");
			if (i == 0)
				*(side == 0 ? &step->outer_keys : &step->inner_keys) = e;
		}
	}
}

/* Makes step number builder->nsteps, which joins source s. */
static bool
make_step(GjBuilder *builder, JoinClause *clauses, int nclauses, uint32 joined, int s)
{
	GjBuildStep *step = &builder->step[builder->nsteps];
	JoinClause *keys[GJ_MAX_KEYS];

	step->source = s;
	step->residual = -1;
	for (int i = 0; i < nclauses && step->nkeys < GJ_MAX_KEYS; i++)
	{
		if (!is_key_for(&clauses[i], joined, s))
			continue;
		clauses[i].used = true;
		step->key_clauses = lappend(step->key_clauses, clauses[i].rinfo->clause);
		keys[step->nkeys++] = &clauses[i];
	}
	compile_keys(builder, step, keys);
	/* the other conditions that can be checked from here on */
	for (int i = 0; i < nclauses; i++)
	{
		JoinClause *clause = &clauses[i];

		if (clause->used || !clause->is_device || (clause->sources & ~(joined | 1u << s)) != 0)
			continue;
		clause->used = true;
		step->residual_clauses = lappend(step->residual_clauses, clause->rinfo->clause);
	}
	if (step->residual_clauses != NIL)
	{
		step->residual = gj_compile(builder, make_ands_explicit(step->residual_clauses));
		if (step->residual < 0)
			return false;		/* too deep together */
	}
	builder->nsteps++;
	return true;
}

static int
compare_security(const ListCell *a, const ListCell *b)
{
	return (int) lfirst_node(RestrictInfo, a)->security_level -
		(int) lfirst_node(RestrictInfo, b)->security_level;
}

GjBuilder *
gj_build_join(PlannerInfo *root, Path *native, List **host_quals, double *rows)
{
	GjBuilder  *builder = gj_builder_create(root);
	List	   *leaves = NIL,
			   *rinfos = NIL,
			   *unique = NIL,
			   *host = NIL;
	JoinClause *clauses;
	int			nclauses;
	uint32		joined = 1;
	ListCell   *lc;

	/* a scan alone is a program without steps, for what is above it */
	if (!flatten(native, &leaves, &rinfos) ||
		list_length(leaves) < (IS_SIMPLE_REL(native->parent) ? 1 : 2) ||
		list_length(leaves) > GJ_MAX_SOURCES)
		return NULL;
	foreach(lc, rinfos)
		unique = list_append_unique(unique, lfirst(lc));
	if (has_pseudoconstant(unique) || has_volatile_entry(root, native->parent->relids) ||
		contain_volatile_functions((Node *) root->parse->jointree))
		return NULL;

	move_largest_first(root, leaves);
	builder->nsources = list_length(leaves);
	foreach(lc, leaves)
	{
		Leaf	   *leaf = lfirst(lc);

		if (has_pseudoconstant(leaf->rel->baserestrictinfo) ||
			!choose_source(root, builder, foreach_current_index(lc), leaf))
			return NULL;
	}
	for (int s = 0; s < builder->nsources; s++)
		if (builder->source[s].filter_clauses != NIL)
			builder->source[s].filter =
				gj_compile(builder, make_ands_explicit(builder->source[s].filter_clauses));

	clauses = classify_clauses(builder, unique);
	nclauses = list_length(unique);
	*rows = builder->source[0].rows_filtered;
	while (builder->nsteps < builder->nsources - 1)
	{
		double		next_rows = 0;
		int			s = choose_next(builder, clauses, nclauses, joined, *rows, &next_rows);

		if (s < 0 || !make_step(builder, clauses, nclauses, joined, s))
			return NULL;
		builder->step[builder->nsteps - 1].rows = next_rows;
		joined |= 1u << s;
		*rows = next_rows;
	}
	for (int i = 0; i < nclauses; i++)
		if (!clauses[i].used)
			host = lappend(host, clauses[i].rinfo);
	if (host == NIL)
		return builder;
	if (host_quals == NULL)
		return NULL;
	list_sort(host, compare_security);
	*host_quals = get_actual_clauses(host);
	return contain_volatile_functions((Node *) *host_quals) ? NULL : builder;
}

/* Adds the columns of `exprs` to the output; false if one is not a source's column. */
static bool
add_outputs(GjBuilder *builder, GjJoinInfo *info, List *exprs)
{
	ListCell   *lc;

	foreach(lc, exprs)
	{
		int			source,
					index;

		if (!gj_builder_column(builder, lfirst(lc), &source, &index))
			return false;
		builder->outputs = lappend_int(builder->outputs, source << 16 | index);
		info->outputs = lappend(info->outputs, lfirst(lc));
	}
	return true;
}

/* The cheapest complete native path of a join, with a Gather if that is cheaper. */
static Path *
cheapest_native(PlannerInfo *root, RelOptInfo *rel)
{
	Path	   *best = rel->cheapest_total_path;

	if (best == NULL || best->param_info != NULL)
		return NULL;
	if (rel->consider_parallel && rel->partial_pathlist != NIL)
	{
		Path	   *partial = linitial(rel->partial_pathlist);
		double		rows = partial->rows * partial->parallel_workers;
		Path	   *gather = (Path *) create_gather_path(root, rel, partial, rel->reltarget,
														 NULL, &rows);

		if (gather->total_cost < best->total_cost)
			best = gather;
	}
	return best;
}

GjPath *
gj_create_path(PlannerInfo *root, RelOptInfo *rel, PathTarget *target, GjJoinInfo *info)
{
	GjPath	   *path = (GjPath *) palloc0(sizeof(GjPath));

	path->info = info;
	path->cpath.path.type = T_CustomPath;
	path->cpath.path.pathtype = T_CustomScan;
	path->cpath.path.parent = rel;
	path->cpath.path.pathtarget = target;
	path->cpath.path.rows = info->aggregate ? info->groups : rel->rows;
	path->cpath.flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->cpath.methods = &gj_join_path_methods;
	path->cpath.custom_paths = list_make1(info->fallback);
	for (int s = 0; s < info->builder->nsources; s++)
		if (info->builder->source[s].path)
			path->cpath.custom_paths = lappend(path->cpath.custom_paths,
											   info->builder->source[s].path);
	gj_cost_join(root, path);
	return path;
}

/* Adds the path to the relation's; under gpujoin.force it is the only one. */
void
gj_offer_path(RelOptInfo *rel, Path *path)
{
	if (gj_force)
	{
		rel->pathlist = NIL;
		rel->partial_pathlist = NIL;
	}
	add_path(rel, path);
}

/* Offers a GpuJoin that returns rows for a join relation that is complete. */
static void
add_join_path(PlannerInfo *root, RelOptInfo *rel)
{
	Path	   *native;
	GjJoinInfo *info;
	GjFailure	failure;

	if (!gj_may_plan(root) || rel->reloptkind != RELOPT_JOINREL || IS_DUMMY_REL(rel) ||
		!bms_is_empty(rel->lateral_relids))
		return;
	native = cheapest_native(root, rel);
	if (native == NULL || gj_contains_gpujoin(native) ||
		(!gj_force && native->total_cost < gj_cost_least()))
		return;
	if (bms_equal(rel->relids, root->all_baserels) && gj_build_aggregate(root, native) != NULL)
		return;

	info = palloc0(sizeof(GjJoinInfo));
	info->builder = gj_build_join(root, native, &info->host_quals, &info->rows);
	if (info->builder == NULL)
		return;
	info->fallback = gj_copy_path(native);
	if (info->fallback == NULL ||
		!add_outputs(info->builder, info, info->fallback->pathtarget->exprs))
		return;
	info->nfallback = list_length(info->outputs);
	/* columns that only the host's conditions need; expressions can be among them */
	if (!add_outputs(info->builder, info,
					 list_difference(pull_var_clause((Node *) info->host_quals,
													 PVC_INCLUDE_PLACEHOLDERS),
									 info->outputs)))
		return;
	info->program = gj_builder_finish(info->builder, GJ_OUTPUT_ROWS);
	if (info->program == NULL || gj_client_device(&failure) == NULL)
		return;
	gj_offer_path(rel, (Path *) gj_create_path(root, rel, rel->reltarget, info));
	set_cheapest(rel);
}

static RelOptInfo *
gj_join_search(PlannerInfo *root, int levels_needed, List *initial_rels)
{
	RelOptInfo *rel;

	if (prev_join_search)
		rel = prev_join_search(root, levels_needed, initial_rels);
	else if (enable_geqo && levels_needed >= geqo_threshold)
		rel = geqo(root, levels_needed, initial_rels);
	else
		rel = standard_join_search(root, levels_needed, initial_rels);
	add_join_path(root, rel);
	return rel;
}

static void
gj_create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
					  RelOptInfo *output_rel, void *extra)
{
	if (prev_create_upper_paths)
		prev_create_upper_paths(root, stage, input_rel, output_rel, extra);
	if (stage == UPPERREL_GROUP_AGG || stage == UPPERREL_DISTINCT)
		gj_add_aggregate_path(root, stage, input_rel, output_rel);
}

void
gj_planner_init(void)
{
	prev_join_search = join_search_hook;
	join_search_hook = gj_join_search;
	prev_create_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = gj_create_upper_paths;
}
