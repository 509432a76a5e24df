/*
 * join_path.c
 *	  Planner hooks, and how a native join path becomes a GpuJoin path.
 *
 * A GpuJoin competes as one path for a whole join problem, after PostgreSQL has solved
 * it: the tree that PostgreSQL's cheapest path joins in is a legal order, its clauses
 * are complete (join_tree.c), and the cheapest native path, Gather included, is the
 * fallback.  (Offering paths pair by pair would make add_path() drop the native ones that
 * the fallback needs.)  join_build.c turns that tree into sources and steps.
 *
 * A full join, or a query of very many relations, is solved in parts.  The parts are left
 * alone, for the whole can be one program, unless it has too many relations for that.
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
#include "compat.h"
#include "guc.h"
#include "plan/join_path.h"
#include "plan/join_tree.h"
#include "plan/outer_joins.h"
#include "plan/reasons.h"
#include "plan/excluded.h"
#include "plan/unnest.h"
#include "preload.h"

static join_search_hook_type prev_join_search = NULL;
static create_upper_paths_hook_type prev_create_upper_paths = NULL;

/*
 * True if no row is locked, and what is changed is one plain table.  UPDATE, DELETE and
 * MERGE read row identities of all their relations, which a plan source carries as any
 * column.  EvalPlanQual puts single rows in place of relations, by the identities that the
 * join returned: there the node runs the native plan, whose scans know of that.  Members of a
 * partitioned or inherited target have row identities of their own.
 */
static bool
may_change(PlannerInfo *root)
{
	ListCell   *lc;

	foreach(lc, root->rowMarks)
		if (RowMarkRequiresRowShareLock(lfirst_node(PlanRowMark, lc)->markType))
			return gj_refuse("rows are locked (FOR UPDATE or the like)");
	if (root->parse->resultRelation == 0 || root->parse->commandType == CMD_INSERT ||
		!planner_rt_fetch(root->parse->resultRelation, root)->inh)
		return true;
	return gj_refuse("rows of a partitioned or inherited table are changed");
}

/* True if gpujoin.excluded_tables names none of the tables that this query level reads. */
static bool
may_read_all(PlannerInfo *root)
{
	List	   *excluded = gj_excluded_relids();
	ListCell   *lc;
	ListCell   *lc2;

	/* partitions, and tables of views that were merged into the level, have entries, too */
	foreach(lc, excluded)
		foreach(lc2, root->parse->rtable)
		{
			const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc2);

			if (rte->rtekind == RTE_RELATION && rte->relid == lfirst_oid(lc))
				return gj_refuse("gpujoin.excluded_tables has %s", get_rel_name(rte->relid));
		}
	return true;
}

/*
 * True if a subquery of FROM locks rows, at any depth.  PostgreSQL numbers the tables of its LockRows
 * where they are, so no second plan can be made of it for a fallback.
 */
static bool
locks_below(const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		/* one that was merged into the query is gone */
		if (rte->rtekind == RTE_SUBQUERY && rte->subquery != NULL &&
			(rte->subquery->rowMarks != NIL || locks_below(rte->subquery)))
			return true;
	}
	return false;
}

bool
gj_may_plan(PlannerInfo *root)
{
	const char *reason;

	if (!gj_may_offload(&reason))
		return gj_refuse("%s", reason);
	if (!gj_extension_present())
		return gj_refuse("extension gpujoin is not in this database");
	if (root->parse->rowMarks != NIL || locks_below(root->parse))
		return gj_refuse("rows are locked (FOR UPDATE or the like)");
	if (root->parse->hasModifyingCTE)
		return gj_refuse("a WITH query changes rows");
	if (IsolationIsSerializable())
		return gj_refuse("the transaction is SERIALIZABLE");
	return may_change(root) && may_read_all(root);
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
		case T_AppendPath:
			size = sizeof(AppendPath);
			break;
		case T_MergeAppendPath:
			size = sizeof(MergeAppendPath);
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
	subpath = gj_transparent_subpath(unconstify(Path *, path));
	return subpath != NULL && gj_contains_gpujoin(subpath);
}

bool
gj_has_volatile_entry(PlannerInfo *root, Relids relids)
{
	int			relid = -1;

	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		RangeTblEntry *rte = planner_rt_fetch(relid, root);

		if (root->simple_rel_array[relid] == NULL)
			continue;			/* an outer join, from 16 on */
		/* policies of row-level security are here, and not in the join tree */
		if (gj_is_volatile((Node *) find_base_rel(root, relid)->baserestrictinfo))
			return true;
		if ((rte->rtekind == RTE_SUBQUERY && gj_is_volatile((Node *) rte->subquery)) ||
			(rte->rtekind == RTE_FUNCTION && gj_is_volatile((Node *) rte->functions)) ||
			(rte->rtekind == RTE_TABLEFUNC && gj_is_volatile((Node *) rte->tablefunc)) ||
			(rte->rtekind == RTE_VALUES && gj_is_volatile((Node *) rte->values_lists)))
			return true;
	}
	return false;
}

/*
 * True if a relation may be a plan source.  Its plan then exists twice, there and in
 * the fallback; the work table of a recursive query is refused.
 */
static bool
can_be_plan_source(PlannerInfo *root, RelOptInfo *rel, const Path *path)
{
	int			relid = -1;

	if (path == NULL || path->param_info != NULL || !bms_is_empty(rel->lateral_relids))
		return gj_refuse("LATERAL is not supported");
	if (gj_contains_gpujoin(path))
		return gj_refuse("a subquery of it is offloaded by itself");
	while ((relid = bms_next_member(rel->relids, relid)) >= 0)
	{
		RangeTblEntry *rte = planner_rt_fetch(relid, root);

		if (rte->rtekind == RTE_CTE && rte->self_reference)
			return gj_refuse("recursive queries are not supported");
		if (rte->tablesample != NULL)
			return gj_refuse("TABLESAMPLE is not supported");
	}
	return true;
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

bool
gj_can_filter(GjBuilder *builder, RelOptInfo *rel, bool *may_fail)
{
	ListCell   *lc;
	bool		can_fail;

	*may_fail = false;
	foreach(lc, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (!gj_compilable(builder, rinfo->clause, &can_fail))
			return gj_refuse_because("condition %s",
									 gj_expr_text(builder->root, (Node *) rinfo->clause));
		if (can_fail && rinfo->security_level > rel->baserestrict_min_security)
			return gj_refuse("condition %s can fail, and row security hides rows",
							 gj_expr_text(builder->root, (Node *) rinfo->clause));
		*may_fail |= can_fail;
	}
	return list_length(rel->baserestrictinfo) <= 1 ||
		gj_compilable(builder, make_ands_explicit(get_actual_clauses(rel->baserestrictinfo)),
					  &can_fail);
}

/* Refuses to read a relation's rows from pages of tables. */
static bool
refuse_pages(const RelOptInfo *rel, bool fixed, bool pseudoconstant)
{
	if (fixed)
		return gj_refuse("a semi join whose side is made unique first");
	if (pseudoconstant)
		return gj_refuse("a condition without columns decides if it is read");
	switch (rel->rtekind)
	{
		case RTE_RELATION:
			return gj_refuse("it is no table of access method heap");
		case RTE_SUBQUERY:
			return gj_refuse("it is a subquery that PostgreSQL computes");
		case RTE_CTE:
			return gj_refuse("it is a CTE that PostgreSQL computes");
		case RTE_JOIN:
			return gj_refuse("it is a join that PostgreSQL computes");
		default:
			return gj_refuse("its rows are VALUES, or those of a function");
	}
}

bool
gj_choose_source(PlannerInfo *root, GjBuilder *builder, int s, RelOptInfo *rel, Path *path,
				 bool fixed)
{
	GjBuildSource *source = &builder->source[s];
	bool		pseudoconstant = has_pseudoconstant(rel->baserestrictinfo);
	bool		heap = !fixed && !pseudoconstant && gj_is_heap(root, rel);
	bool		plan;
	bool		may_fail = false;

	source->rel = rel;
	source->relids = gj_without_outer_joins(root, rel->relids);
	source->rows_filtered = rel->rows;
	if (!fixed && !pseudoconstant && gj_choose_stage(root, builder, s, path))
		return true;
	if (heap)
	{
		source->tables = gj_live_tables(root, rel);
		source->heap_relid = planner_rt_fetch(rel->relid, root)->relid;
		if (!OidIsValid(source->heap_relid))
			source->heap_relid = planner_rt_fetch(linitial_int(source->tables), root)->relid;
		source->filter_clauses = get_actual_clauses(rel->baserestrictinfo);
		heap = gj_can_filter(builder, rel, &may_fail);
	}
	else
		(void) refuse_pages(rel, fixed, pseudoconstant);
	source->why = heap ? NULL : gj_swap_obstacle(NULL);
	plan = can_be_plan_source(root, rel, path);
	/* a failure on the device is no error yet: PostgreSQL may never look at that row */
	if (heap && plan && !may_fail)
	{
		Cost		pages = gj_cost_heap_source(root, rel, list_length(rel->reltarget->exprs));

		heap = pages <= gj_cost_plan_source(path);
		if (!heap)
		{
			gj_refuse("all its pages would cost %.2f, PostgreSQL's scan %.2f", pages,
					  gj_cost_plan_source(path));
			source->why = gj_swap_obstacle(NULL);
		}
	}
	if (heap)
	{
		source->rows_loaded = gj_heap_tuples(root, rel, NULL);
		return true;
	}
	source->heap_relid = InvalidOid;
	source->tables = NIL;
	source->filter_clauses = NIL;
	source->path = path;
	source->rows_loaded = fixed ? path->rows : rel->rows;
	source->rows_filtered = source->rows_loaded;
	return plan;
}

/* Sources whose rows come out of all steps, one bit each: not those that are only looked into. */
static uint32
sources_alive(const GjBuilder *builder)
{
	uint32		alive = 1;

	for (int i = 0; i < builder->nsteps; i++)
	{
		const GjBuildStep *step = &builder->step[i];
		uint32		source = UINT32_C(1) << step->source;

		if (step->join_type == GJ_JOIN_RIGHT_SEMI || step->join_type == GJ_JOIN_RIGHT_ANTI)
			alive = source;
		else if (step->join_type != GJ_JOIN_SEMI && step->join_type != GJ_JOIN_ANTI)
			alive |= source;
	}
	return alive;
}

/*
 * Adds the columns of `exprs` to the output.  False if one is not a source's column, and cannot be
 * made of columns of a stage's result, which add_made_of then adds.
 */
static bool
add_outputs(GjBuilder *builder, GjJoinInfo *info, List *exprs)
{
	uint32		alive = sources_alive(builder);
	ListCell   *lc;

	foreach(lc, exprs)
	{
		Expr	   *computed = NULL;
		int			source,
					index;

		if (gj_builder_column(builder, lfirst(lc), &source, &index))
		{
			/* a part of a query passes on what joins further up compare */
			if (!(alive >> source & 1))
				return false;
			builder->outputs = lappend_int(builder->outputs, source << 16 | index);
		}
		else
		{
			computed = gj_is_stage_column(builder, lfirst(lc)) ?
				gj_stage_expr(builder, lfirst(lc)) : NULL;
			if (computed == NULL || !gj_stage_expr_is_safe(computed))
				return false;
		}
		info->outputs = lappend(info->outputs, lfirst(lc));
		info->computed = lappend(info->computed, computed);
	}
	return true;
}

/* Adds what outputs are made of that PostgreSQL computes. */
static bool
add_made_of(GjBuilder *builder, GjJoinInfo *info)
{
	List	   *columns = pull_var_clause((Node *) info->computed, 0);

	return add_outputs(builder, info, list_difference(list_union(NIL, columns), info->outputs));
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
	path->cpath.path.rows = info->aggregate ?
		clamp_row_est(info->groups * clauselist_selectivity(root, info->host_quals, 0, JOIN_INNER, NULL)) :
		info->kept_groups > 0 ? info->kept_groups : rel->rows;
	if (info->limit > 0)
		path->cpath.path.rows = Min(path->cpath.path.rows, info->limit);
	path->cpath.flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->cpath.methods = &gj_join_path_methods;
	if (!info->is_stage)
		path->cpath.custom_paths = list_make1(info->fallback);
	for (int s = 0; s < info->builder->nsources; s++)
	{
		GjBuildSource *source = &info->builder->source[s];
		Path	   *child = source->stage ? gj_stage_path(root, info->builder, s, info->program) :
			source->path;

		if (child != NULL)
			path->cpath.custom_paths = lappend(path->cpath.custom_paths, child);
	}
	gj_cost_join(root, path);
	gj_part_offered(info->part, &path->cpath.path, info->fallback);
	gj_note_plan_sources(root, info->builder, info->part);
	return path;
}

bool
gj_worth_looking(const Path *native)
{
	/* a part of a rewritten query can be cheap, and be dear in the query as it is written */
	return gj_force || Max(native->total_cost, gj_written_cost) >= gj_cost_least() ||
		gj_refuse("PostgreSQL's plan costs %.2f, to start a device %.2f", native->total_cost,
				  gj_cost_least());
}

bool
gj_has_device(void)
{
	GjFailure	failure;

	if (gj_client_device(&failure) != NULL)
		return true;
	return gj_refuse("no device: %s%s%s", gj_reason_text(failure.reason),
					 failure.detail[0] ? ": " : "", failure.detail);
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
static bool
offer_join(PlannerInfo *root, RelOptInfo *rel, GjPart *part)
{
	Path	   *native;
	GjJoinInfo *info;
	GjPath	   *sorted;
	List	   *pathkeys;

	if (!gj_may_plan(root))
		return false;
	if (!bms_is_empty(rel->lateral_relids))
		return gj_refuse("LATERAL is not supported");
	native = cheapest_native(root, rel);
	if (native == NULL)
		return gj_refuse("it needs values from another part of the query");
	if (gj_contains_gpujoin(native))
		return gj_refuse("a part of it is offloaded by itself");
	if (!gj_worth_looking(native))
		return false;
	if (bms_equal(rel->relids, gj_all_relids(root)) &&
		gj_aggregate_follows(root, rel, native))
	{
		/* that part speaks for both */
		gj_part_used(part);
		return true;
	}

	info = palloc0(sizeof(GjJoinInfo));
	info->part = part;
	info->builder = gj_build_join(root, native, &info->host_quals, &info->rows);
	if (info->builder == NULL)
		return false;
	info->fallback = gj_copy_path(native);
	if (info->fallback == NULL)
		return gj_refuse("PostgreSQL's plan is of an unknown kind");
	if (!add_outputs(info->builder, info, info->fallback->pathtarget->exprs))
		return gj_refuse("it computes more than columns of its tables");
	info->nfallback = list_length(info->outputs);
	info->host_quals = gj_as_returned(info->host_quals, info->outputs);
	/* columns that only the host's conditions need; expressions can be among them */
	if (!add_outputs(info->builder, info,
					 list_difference(pull_var_clause((Node *) info->host_quals,
													 PVC_INCLUDE_PLACEHOLDERS),
									 info->outputs)))
		return gj_refuse("a condition reads more than columns of its tables");
	if (!add_made_of(info->builder, info))
		return gj_refuse("it computes more than columns of subqueries");
	info->program = gj_builder_finish(info->builder, GJ_OUTPUT_ROWS);
	if (info->program == NULL || !gj_has_device())
		return false;
	gj_remember_limited(root, rel, rel->reltarget, info);
	/* joins above would lose the order */
	pathkeys = bms_equal(rel->relids, gj_all_relids(root)) ? root->query_pathkeys : NIL;
	sorted = gj_sorted_path(root, rel, rel->reltarget, info, pathkeys);
	gj_offer_sorted(root, rel, gj_late_path(root, gj_create_path(root, rel, rel->reltarget, info)),
					sorted, pathkeys);
	set_cheapest(rel);
	/* or else PostgreSQL would drop it and put the join together from its partitions again */
	if (bms_equal(rel->relids, gj_all_relids(root)) && gj_contains_gpujoin(rel->cheapest_total_path))
		rel->part_scheme = NULL;
	return true;
}

static void
add_join_path(PlannerInfo *root, RelOptInfo *rel)
{
	GjPart	   *part;

	if (rel->reloptkind != RELOPT_JOINREL || IS_DUMMY_REL(rel) ||
		(!bms_equal(rel->relids, gj_all_relids(root)) &&
		 bms_num_members(root->all_baserels) <= GJ_MAX_SOURCES))
		return;
	part = gj_part(root, "Join of", rel->relids);
	if (!offer_join(root, rel, part))
		gj_part_refused(part);
}

static RelOptInfo *
search_joins(PlannerInfo *root, int levels_needed, List *initial_rels)
{
	if (prev_join_search)
		return prev_join_search(root, levels_needed, initial_rels);
	if (enable_geqo && levels_needed >= geqo_threshold)
		return geqo(root, levels_needed, initial_rels);
	return standard_join_search(root, levels_needed, initial_rels);
}

uint64		gj_joins_searched = 0;

static RelOptInfo *
gj_join_search(PlannerInfo *root, int levels_needed, List *initial_rels)
{
	int			nsolved = list_length(root->join_rel_list);
	RelOptInfo *rel = search_joins(root, levels_needed, initial_rels);

	gj_joins_searched += list_length(root->join_rel_list) - nsolved;
	if (gj_may_plan(root))
		gj_search_whole_joins(root, rel, nsolved, levels_needed, initial_rels, search_joins);
	add_join_path(root, rel);
	return rel;
}

bool		gj_charging_visits = false;

/* Has paths of a query level cost what their visits of pages do. */
static void
charge_visits(PlannerInfo *root, RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		path->total_cost = Max(path->total_cost + gj_cost_visits(root, path), 0);
		path->startup_cost = Min(path->startup_cost, path->total_cost);
	}
}

static void
gj_create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
					  RelOptInfo *output_rel, void *extra)
{
	if (prev_create_upper_paths)
		prev_create_upper_paths(root, stage, input_rel, output_rel, extra);
	if (stage == UPPERREL_GROUP_AGG || stage == UPPERREL_DISTINCT)
		gj_add_aggregate_path(root, stage, input_rel, output_rel);
	else if (stage == UPPERREL_ORDERED)
		gj_add_limited_path(root, input_rel, output_rel);
	else if (stage == UPPERREL_FINAL && gj_charging_visits)
		charge_visits(root, output_rel);
	else
		gj_note_never_done(root, stage);
}

void
gj_planner_init(void)
{
	prev_join_search = join_search_hook;
	join_search_hook = gj_join_search;
	prev_create_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = gj_create_upper_paths;
}
