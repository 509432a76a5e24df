/*
 * explain.c
 *	  What EXPLAIN says of a GpuJoin.
 *
 * Sources and joins are groups of typed properties in the machine-readable formats, and
 * one line with indented details in text.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

#include "compat.h"
#include "exec/join_scan.h"
#include "guc.h"
#include "plan/join_path.h"

typedef struct ExplainContext
{
	GjScanState *state;
	CustomScan *cscan;
	ExplainState *es;
	List	   *deparse;		/* for deparse_expression() */
} ExplainContext;

/* Starts a line of the text format. */
static void
indent(ExplainState *es)
{
	appendStringInfoSpaces(es->str, es->indent * 2);
}

static char *
deparse(ExplainContext *cxt, Expr *expr)
{
	return deparse_expression((Node *) expr, cxt->deparse,
							  gj_explain_prefixes(cxt->es) || cxt->es->verbose, false);
}

/* A list of conditions as one. */
static char *
deparse_conditions(ExplainContext *cxt, List *clauses)
{
	return deparse(cxt, make_ands_explicit(clauses));
}

/* Starts a group: an element of a list, or in text a line and what is indented below. */
static void
open_item(ExplainContext *cxt, const char *type, const char *text)
{
	ExplainOpenGroup(type, NULL, true, cxt->es);
	if (cxt->es->format == EXPLAIN_FORMAT_TEXT)
	{
		indent(cxt->es);
		appendStringInfo(cxt->es->str, "%s\n", text);
		cxt->es->indent++;
	}
}

static void
close_item(ExplainContext *cxt, const char *type)
{
	if (cxt->es->format == EXPLAIN_FORMAT_TEXT)
		cxt->es->indent--;
	ExplainCloseGroup(type, NULL, true, cxt->es);
}

static bool
is_text(ExplainContext *cxt)
{
	return cxt->es->format == EXPLAIN_FORMAT_TEXT;
}

/* What the query calls a table; NULL if nothing says so. */
static char *
source_alias(ExplainContext *cxt, List *description, bool *is_union)
{
	int			resno = list_nth_int(description, GJ_SOURCE_RESNO);
	TargetEntry *tle = resno == 0 ? NULL :
		list_nth(cxt->cscan->custom_scan_tlist, resno - 1);
	int			varno;

	*is_union = false;
	if (tle == NULL || !IsA(tle->expr, Var))
		return NULL;
	varno = ((Var *) tle->expr)->varno;
	*is_union = rt_fetch(varno, cxt->es->rtable)->rtekind == RTE_SUBQUERY;
	return list_nth(cxt->es->rtable_names, varno - 1);
}

/* Name of a table as the query calls it; of a UNION ALL, its alias alone. */
static char *
source_name(ExplainContext *cxt, List *description)
{
	Oid			relid = (Oid) linitial_int(description);
	char	   *name = get_rel_name(relid);
	bool		is_union;
	char	   *alias = source_alias(cxt, description, &is_union);

	if (name == NULL)
		return pstrdup("?");
	if (cxt->es->verbose)
		name = quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), name);
	else
		name = pstrdup(quote_identifier(name));
	if (alias != NULL && is_union)
		return pstrdup(quote_identifier(alias));
	if (alias == NULL || strcmp(alias, get_rel_name(relid)) == 0)
		return name;
	return psprintf("%s %s", name, quote_identifier(alias));
}

/* The same as properties, named as PostgreSQL's own scans name them. */
static void
explain_relation(ExplainContext *cxt, List *description)
{
	Oid			relid = (Oid) linitial_int(description);
	char	   *name = get_rel_name(relid);
	bool		is_union;
	char	   *alias = source_alias(cxt, description, &is_union);

	if (name == NULL)
		return;
	if (!is_union)
	{
		ExplainPropertyText("Relation Name", name, cxt->es);
		ExplainPropertyText("Schema", get_namespace_name(get_rel_namespace(relid)), cxt->es);
	}
	ExplainPropertyText("Alias", alias != NULL ? alias : name, cxt->es);
}

/* How many tables a source has, if it is more than the relation itself. */
static void
explain_tables(ExplainContext *cxt, int s)
{
	List	   *tables = list_nth(cxt->state->tables, s);
	int			npruned = list_nth_int(cxt->state->npruned, s);

	if (npruned == 0 && list_length(tables) == 1 &&
		list_nth_int(linitial(tables), GJ_TABLE_INDEX) == 0)
		return;
	ExplainPropertyInteger("Tables", NULL, list_length(tables), cxt->es);
	if (npruned > 0)
		ExplainPropertyInteger("Tables Pruned", NULL, npruned, cxt->es);
}

/* Fragments that the filter has spared. */
static void
explain_fragments(ExplainContext *cxt, const GjSourceStats *stats)
{
	if (stats->nexcluded == 0)
		return;
	if (is_text(cxt))
	{
		ExplainPropertyText("Fragments Excluded", psprintf(UINT64_FORMAT " of " UINT64_FORMAT,
							stats->nexcluded, stats->nfragments), cxt->es);
		return;
	}
	ExplainPropertyInteger("Fragments", NULL, (int64) stats->nfragments, cxt->es);
	ExplainPropertyInteger("Fragments Excluded", NULL, (int64) stats->nexcluded, cxt->es);
}

static void
explain_source(ExplainContext *cxt, int s)
{
	ExplainState *es = cxt->es;
	List	   *description = list_nth(cxt->state->sources, s);
	List	   *filter = list_nth(list_nth(cxt->cscan->custom_exprs, GJ_EXPRS_FILTERS), s);
	bool		heap = OidIsValid((Oid) linitial_int(description));
	bool		stage = gj_program_array(cxt->state->template, GjSource, sources)[s].stage != 0;
	int			child = list_nth_int(description, GJ_SOURCE_CHILD);
	char	   *name = heap ? source_name(cxt, description) : NULL;
	const GjSourceStats *stats = &cxt->state->stats.source[s];
	const GjLoadStats *load = &cxt->state->load_stats;

	open_item(cxt, "Source", heap ?
			  psprintf("Source %d: heap pages of %s%s", s + 1, name, s == 0 ? " (streamed)" : "") :
			  psprintf("Source %d: %s child plan %d%s", s + 1,
					   stage ? "result of" : "rows of", child,
					   s == 0 ? " (streamed)" : ""));
	if (!is_text(cxt))
	{
		ExplainPropertyInteger("Source", NULL, s + 1, es);
		ExplainPropertyText("Kind", heap ? "heap pages" : stage ? "stage" : "plan", es);
		if (heap)
			explain_relation(cxt, description);
		else
			ExplainPropertyInteger("Child Plan", NULL, child, es);
		ExplainPropertyBool("Streamed", s == 0, es);
	}
	if (heap)
		explain_tables(cxt, s);
	if (filter != NIL)
		ExplainPropertyText("Device Filter", deparse_conditions(cxt, filter), es);
	if (es->analyze && stats->asked > 0)
		ExplainPropertyInteger("Distinct Values", NULL, (int64) stats->asked, es);
	if (es->analyze)
		explain_fragments(cxt, stats);
	if (es->analyze && cxt->state->nruns > 0)
	{
		if (is_text(cxt))
		{
			indent(es);
			appendStringInfo(es->str, "Rows: loaded=" UINT64_FORMAT " kept=" UINT64_FORMAT,
							 stats->rows_in, stats->rows_out);
			if (heap)
				appendStringInfo(es->str, "  Pages: read=" UINT64_FORMAT " all-visible="
								 UINT64_FORMAT, load->npages[s], load->nvisible[s]);
			if (load->nresident[s] > 0)
				appendStringInfo(es->str, " resident=" UINT64_FORMAT, load->nresident[s]);
			if (es->timing)
				appendStringInfo(es->str, "  Load: %.3f ms", load->ms[s]);
			appendStringInfoChar(es->str, '\n');
		}
		else
		{
			ExplainPropertyInteger("Rows Loaded", NULL, stats->rows_in, es);
			ExplainPropertyInteger("Rows Kept", NULL, stats->rows_out, es);
			if (heap)
			{
				ExplainPropertyInteger("Pages Read", NULL, load->npages[s], es);
				ExplainPropertyInteger("All-Visible Pages", NULL, load->nvisible[s], es);
				ExplainPropertyInteger("Resident Pages", NULL, load->nresident[s], es);
			}
			if (es->timing)
				ExplainPropertyFloat("Load Time", "ms", load->ms[s], 3, es);
		}
	}
	close_item(cxt, "Source");
}

/* Conditions of one kind of a step. */
static List *
step_clauses(ExplainContext *cxt, int i, GjStepClauses kind)
{
	List	   *clauses = list_nth(list_nth(cxt->cscan->custom_exprs, GJ_EXPRS_CONDITIONS), i);
	List	   *counts = list_nth(cxt->state->clause_counts, i);
	int			first = 0;

	for (int k = 0; k < kind; k++)
		first += list_nth_int(counts, k);
	clauses = list_copy_tail(clauses, first);
	return list_truncate(clauses, list_nth_int(counts, kind));
}

/* The technique that was asked for, and the one that the device has used, if it has. */
static void
explain_set_algorithm(ExplainContext *cxt, uint32 used)
{
	const char *name = gj_set_algorithm_name(gj_set_algorithm);

	if (cxt->es->analyze && cxt->state->nruns > 0 && used != GJ_SETS_AUTO)
		name = gj_set_algorithm_name(used);
	ExplainPropertyText("Set Algorithm", name, cxt->es);
}

/* What rows of a membership table are elements of: the groups' keys. */
static void
explain_membership(ExplainContext *cxt, const GjStep *step)
{
	const GjSetStep *set = &gj_program_array(cxt->state->template, GjSetStep, set_steps)[step->set];
	List	   *items = NIL;

	for (int i = 0; i < 2 && set->membership; i++)
	{
		TargetEntry *tle = list_nth(cxt->cscan->custom_scan_tlist, i);

		items = lappend(items, deparse(cxt, (Expr *) makeVarFromTargetEntry(INDEX_VAR, tle)));
	}
	if (set->membership)
		ExplainPropertyList("Sets", items, cxt->es);
}

static void
explain_step(ExplainContext *cxt, int i)
{
	static const char *const join_types[] = {
		[GJ_JOIN_INNER] = "Inner",
		[GJ_JOIN_LEFT] = "Left",
		[GJ_JOIN_RIGHT] = "Right",
		[GJ_JOIN_FULL] = "Full",
		[GJ_JOIN_SEMI] = "Semi",
		[GJ_JOIN_ANTI] = "Anti",
		[GJ_JOIN_RIGHT_SEMI] = "Right Semi",
		[GJ_JOIN_RIGHT_ANTI] = "Right Anti",
	};
	static const char *const algorithms[] = {
		[GJ_JOIN_HASH] = "hash",
		[GJ_JOIN_SORT_MERGE] = "sort-merge",
		[GJ_JOIN_NESTED_LOOP] = "nested loop",
		[GJ_JOIN_SET] = "set join",
	};
	static const char *const labels[] = {
		[GJ_CLAUSES_KEYS] = "Join Condition",
		[GJ_CLAUSES_RANGE] = "Range Condition",
		[GJ_CLAUSES_RESIDUAL] = "Join Filter",
		[GJ_CLAUSES_FILTER] = "Filter After Join",
	};
	ExplainState *es = cxt->es;
	const GjStep *step = &gj_program_array(cxt->state->template, GjStep, steps)[i];
	const char *algorithm = algorithms[step->algorithm];
	const char *type = join_types[step->join_type];
	const GjStepStats *stats = &cxt->state->stats.step[i];

	open_item(cxt, "Join", psprintf("Join %d: %s%s%s with source %d", i + 1, algorithm,
									step->join_type == GJ_JOIN_INNER ? "" : " ",
									step->join_type == GJ_JOIN_INNER ? "" :
									asc_tolower(type, strlen(type)), step->source + 1));
	if (!is_text(cxt))
	{
		ExplainPropertyInteger("Join", NULL, i + 1, es);
		ExplainPropertyText("Join Type", type, es);
		ExplainPropertyText("Algorithm", algorithm, es);
		ExplainPropertyInteger("Source", NULL, step->source + 1, es);
	}
	for (int kind = 0; kind < GJ_NCLAUSES; kind++)
	{
		List	   *clauses = step_clauses(cxt, i, kind);

		if (clauses != NIL)
			ExplainPropertyText(kind == GJ_CLAUSES_KEYS && step->algorithm == GJ_JOIN_SET ?
								"Set Condition" : labels[kind],
								deparse_conditions(cxt, clauses), es);
	}
	if (step->algorithm == GJ_JOIN_SET)
	{
		explain_membership(cxt, step);
		explain_set_algorithm(cxt, stats->set_algorithm);
	}
	if (es->analyze && cxt->state->nruns > 0)
	{
		if (is_text(cxt))
		{
			indent(es);
			appendStringInfo(es->str, "Rows: in=" UINT64_FORMAT " out=" UINT64_FORMAT "\n",
							 stats->rows_in, stats->rows_out);
		}
		else
		{
			ExplainPropertyInteger("Rows In", NULL, stats->rows_in, es);
			ExplainPropertyInteger("Rows Out", NULL, stats->rows_out, es);
		}
		if (stats->partitioned > 0)
			ExplainPropertyText("Hash Table", "radix-partitioned", es);
		else if (stats->direct > 0 && es->verbose)
			ExplainPropertyText("Hash Table", "direct", es);
	}
	close_item(cxt, "Join");
}

/* An attribute of the scan tuple, from 0, as the query has it. */
static char *
deparse_attribute(ExplainContext *cxt, int attr)
{
	TargetEntry *tle = list_nth(cxt->cscan->custom_scan_tlist, attr);

	return deparse(cxt, (Expr *) makeVarFromTargetEntry(INDEX_VAR, tle));
}

/* Attributes of the scan tuple, from 0, that are fetched from tables. */
static List *
late_attributes(ExplainContext *cxt)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, list_nth(cxt->cscan->custom_private, GJ_PRIVATE_LATE))
		for (int i = GJ_LATE_COLUMNS; i < list_length(lfirst(lc)); i += 2)
			result = lappend_int(result, list_nth_int(lfirst(lc), i) - 1);
	return result;
}

/* What is fetched for the rows that come back, and how many rows of tables were for that. */
static void
explain_late(ExplainContext *cxt)
{
	List	   *items = NIL;
	ListCell   *lc;

	foreach(lc, late_attributes(cxt))
		items = lappend(items, deparse_attribute(cxt, lfirst_int(lc)));
	if (items == NIL)
		return;
	ExplainPropertyList("Late Columns", items, cxt->es);
	if (cxt->es->analyze && cxt->state->nruns > 0)
		ExplainPropertyInteger("Late Rows Fetched", NULL, (int64) cxt->state->nfetched, cxt->es);
}

static void
explain_output(ExplainContext *cxt)
{
	const GjProgram *program = cxt->state->template;
	int			nids = list_length(list_nth(cxt->cscan->custom_private, GJ_PRIVATE_LATE));
	bool		grouped = gj_group_nkeys(program) > 0;
	/* late columns among them; the ids that they are fetched by come behind the aggregates */
	int			nvalues = cxt->state->noutputs - nids;
	int			nkeys = grouped ? nvalues - list_length(cxt->state->agg_finals) : 0;
	int			ncompared = Min(nkeys, (int) gj_group_ncompared(program));
	List	   *having = list_nth(cxt->cscan->custom_exprs, GJ_EXPRS_HAVING);
	List	   *items = NIL;

	for (int i = 0; i < nvalues && (nkeys > 0 || cxt->state->agg_finals != NIL); i++)
		items = lappend(items, deparse_attribute(cxt, i));
	for (int i = nkeys; i-- > 1;)
	{
		/* a uuid is an output twice (GJ_CODES_SECOND_HALF) */
		if (strcmp(list_nth(items, i), list_nth(items, i - 1)) != 0)
			continue;
		items = list_delete_nth_cell(items, i);
		ncompared -= i < ncompared;
		nkeys--;
	}
	if (nkeys > 0)
	{
		ExplainPropertyList("Group Key", list_truncate(list_copy(items), ncompared), cxt->es);
		if (ncompared < nkeys)
			ExplainPropertyList("Dependent Columns",
								list_copy_tail(list_truncate(list_copy(items), nkeys), ncompared), cxt->es);
		if (cxt->es->analyze && cxt->state->nruns > 0)
		{
			ExplainPropertyInteger("Groups", NULL, cxt->state->stats.rows_out, cxt->es);
			if (cxt->state->stats.group_places > 0 && cxt->es->verbose)
				ExplainPropertyText("Group Table", "direct", cxt->es);
		}
		items = list_copy_tail(items, nkeys);
	}
	if (cxt->state->agg_finals != NIL)
		ExplainPropertyList("Device Aggregates", items, cxt->es);
	else if (nkeys == 0)
		ExplainPropertyInteger("Device Output Columns", NULL,
							   cxt->state->noutputs - list_length(late_attributes(cxt)), cxt->es);
	if (having != NIL)
		ExplainPropertyText("Group Filter", deparse_conditions(cxt, having), cxt->es);
}

/* How the backend has sorted. */
static void
explain_host_sort(ExplainContext *cxt)
{
	const GjHostSortStats *stats = &cxt->state->sort_stats;
	const char *method = stats->ranked ? "ranks" : "PostgreSQL's";

	if (!cxt->es->analyze || !stats->done)
		return;
	if (is_text(cxt))
	{
		indent(cxt->es);
		appendStringInfo(cxt->es->str, "Host Sort Method: %s", method);
		if (stats->ranked)
			appendStringInfo(cxt->es->str, "  Values: " INT64_FORMAT, stats->nvalues);
		appendStringInfo(cxt->es->str, "  Memory: " INT64_FORMAT "kB\n", stats->kbytes);
		return;
	}
	ExplainPropertyText("Host Sort Method", method, cxt->es);
	ExplainPropertyInteger("Ranked Values", NULL, stats->nvalues, cxt->es);
	ExplainPropertyInteger("Host Sort Memory", "kB", stats->kbytes, cxt->es);
}

/* What is sorted by, and whether but the first rows are returned. */
static void
explain_order(ExplainContext *cxt)
{
	const GjProgram *program = cxt->state->template;
	List	   *labels = list_nth(cxt->cscan->custom_private, GJ_PRIVATE_SORT_LABELS);
	List	   *items = NIL;
	ListCell   *lc,
			   *label;

	if (labels == NIL)
		return;
	forboth(lc, list_nth(cxt->cscan->custom_exprs, GJ_EXPRS_SORT), label, labels)
		items = lappend(items, psprintf("%s%s", deparse(cxt, lfirst(lc)), strVal(lfirst(label))));
	ExplainPropertyList(cxt->state->host_sort_keys != NIL ? "Host Sort Key" : "Sort Key", items,
						cxt->es);
	explain_host_sort(cxt);
	if (program->limit > 0)
		ExplainPropertyInteger("Limit", NULL, program->limit, cxt->es);
	if (program->ties)
		ExplainPropertyBool("Ties", true, cxt->es);
}

/* How fast the pages of all tables came in, all processes together. */
static double
load_rate(const GjLoadStats *load)
{
	uint64		npages = 0;

	for (int s = 0; s < GJ_MAX_SOURCES; s++)
		npages += load->npages[s];
	return load->elapsed_ms > 0 ? npages * (double) BLCKSZ / (load->elapsed_ms * 1e6) : 0;
}

static void
explain_totals(ExplainContext *cxt)
{
	static const char *const phases[] = {
		[GJ_PHASE_TRANSFER] = "Transfer",
		[GJ_PHASE_BUILD] = "Build",
		[GJ_PHASE_PROBE] = "Probe",
		[GJ_PHASE_AGGREGATE] = "Aggregate",
		[GJ_PHASE_RETURN] = "Return",
	};
	ExplainState *es = cxt->es;
	const GjRunStats *stats = &cxt->state->stats;
	const GjLoadStats *load = &cxt->state->load_stats;
	double		load_ms = 0;

	for (int s = 0; s < GJ_MAX_SOURCES; s++)
		load_ms += load->ms[s];
	if (is_text(cxt))
	{
		indent(es);
		appendStringInfo(es->str, "Bytes: to device=" UINT64_FORMAT " from device=" UINT64_FORMAT
						 "  Device Memory: " UINT64_FORMAT "kB\n",
						 stats->bytes_in, stats->bytes_out, stats->memory_peak / 1024);
		if (!es->timing)
			return;
		indent(es);
		appendStringInfo(es->str, "Loading: %.3f ms  %.2f GB/s of pages\n", load->elapsed_ms,
						 load_rate(load));
		indent(es);
		appendStringInfo(es->str, "Times: start=%.3f load=%.3f wait=%.3f",
						 load->start_ms, load_ms, load->wait_ms);
		for (int i = 0; i < lengthof(phases); i++)
		{
			char	   *name = asc_tolower(phases[i], strlen(phases[i]));

			appendStringInfo(es->str, " %s=%.3f", name, stats->ms[i]);
		}
		appendStringInfoString(es->str, " ms\n");
		return;
	}
	ExplainPropertyInteger("Bytes To Device", NULL, stats->bytes_in, es);
	ExplainPropertyInteger("Bytes From Device", NULL, stats->bytes_out, es);
	ExplainPropertyInteger("Device Memory", "kB", stats->memory_peak / 1024, es);
	if (!es->timing)
		return;
	ExplainPropertyFloat("Loading Time", "ms", load->elapsed_ms, 3, es);
	ExplainPropertyFloat("Loading Rate", "GB/s", load_rate(load), 3, es);
	ExplainPropertyFloat("Start Time", "ms", load->start_ms, 3, es);
	ExplainPropertyFloat("Load Time", "ms", load_ms, 3, es);
	ExplainPropertyFloat("Wait Time", "ms", load->wait_ms, 3, es);
	for (int i = 0; i < lengthof(phases); i++)
		ExplainPropertyFloat(psprintf("%s Time", phases[i]), "ms", stats->ms[i], 3, es);
}

/* Percent of the time from the first to the last work of a run in which a device had none. */
static double
idle_share(const GjRunStats *stats, uint32 i)
{
	if (stats->elapsed_ms <= 0)
		return 0;
	/* copies and kernels run side by side: together they can take longer */
	return Max(0, 100 * (1 - stats->device[i].busy_ms / stats->elapsed_ms));
}

static const char *
scheme_name(uint32 scheme)
{
	switch (scheme)
	{
		case GJ_SCHEME_KEYS:
			return "keys";
		case GJ_SCHEME_RING:
			return "ring";
		case GJ_SCHEME_RANGES:
			return "ranges";
		default:
			return "none";
	}
}

/* Which devices took how many probe rows, and their time; what did not fit them. */
static void
explain_devices(ExplainContext *cxt)
{
	ExplainState *es = cxt->es;
	const GjRunStats *stats = &cxt->state->stats;

	if (!is_text(cxt))
	{
		ExplainOpenGroup("Devices Used", "Devices Used", false, es);
		for (uint32 i = 0; i < stats->ndevices; i++)
		{
			ExplainOpenGroup("Device", NULL, true, es);
			ExplainPropertyInteger("Device", NULL, stats->device[i].ordinal, es);
			ExplainPropertyInteger("Rows", NULL, stats->device[i].rows, es);
			ExplainPropertyInteger("Chunks", NULL, stats->device[i].chunks, es);
			ExplainPropertyInteger("Bytes Exchanged", NULL, stats->device[i].exchanged, es);
			if (es->timing)
			{
				ExplainPropertyFloat("Busy Time", "ms", stats->device[i].busy_ms, 3, es);
				ExplainPropertyFloat("Idle Percent", NULL, idle_share(stats, i), 0, es);
			}
			ExplainCloseGroup("Device", NULL, true, es);
		}
		ExplainCloseGroup("Devices Used", "Devices Used", false, es);
		ExplainPropertyInteger("Exchange Join", NULL, stats->exchange_step, es);
		ExplainPropertyText("Exchange Scheme", scheme_name(stats->scheme), es);
		if (es->timing)
			ExplainPropertyFloat("Device Elapsed Time", "ms", stats->elapsed_ms, 3, es);
		ExplainPropertyInteger("Passes", NULL, stats->npasses, es);
		ExplainPropertyInteger("Sorted Runs", NULL, stats->sorted_runs, es);
		ExplainPropertyInteger("Spilled To Memory", "kB", stats->spilled_memory / 1024, es);
		ExplainPropertyInteger("Spilled To Disk", "kB", stats->spilled_disk / 1024, es);
		return;
	}
	if (stats->ndevices > 1)
	{
		indent(es);
		appendStringInfoString(es->str, "Devices Used:");
		for (uint32 i = 0; i < stats->ndevices; i++)
		{
			appendStringInfo(es->str, "%s %u rows=" UINT64_FORMAT " chunks=" UINT64_FORMAT,
							 i > 0 ? "," : "", stats->device[i].ordinal, stats->device[i].rows,
							 stats->device[i].chunks);
			if (es->timing)
				appendStringInfo(es->str, " busy=%.1fms idle=%.0f%%", stats->device[i].busy_ms,
								 idle_share(stats, i));
		}
		appendStringInfoChar(es->str, '\n');
	}
	if (stats->exchange_step > 0)
	{
		indent(es);
		appendStringInfo(es->str, "Exchanged: %s join %u%s, bytes received:",
						 stats->scheme == GJ_SCHEME_RING ? "blocks of" :
						 stats->scheme == GJ_SCHEME_RANGES ? "ranges of" : "by the keys of",
						 stats->exchange_step,
						 stats->scheme == GJ_SCHEME_RING ? " in a ring" : "");
		for (uint32_t i = 0; i < stats->ndevices; i++)
			appendStringInfo(es->str, "%s %u " UINT64_FORMAT, i > 0 ? "," : "",
							 stats->device[i].ordinal, stats->device[i].exchanged);
		appendStringInfoChar(es->str, '\n');
	}
	if (stats->sorted_runs > 0)
	{
		indent(es);
		appendStringInfo(es->str, "Sorted Runs: %u\n", stats->sorted_runs);
	}
	if (stats->spilled_memory + stats->spilled_disk > 0)
	{
		indent(es);
		appendStringInfo(es->str, "Spilled: memory=" UINT64_FORMAT "kB disk=" UINT64_FORMAT
						 "kB  Passes: %u\n", stats->spilled_memory / 1024,
						 stats->spilled_disk / 1024, stats->npasses);
	}
}

/* Which child is what. */
static void
explain_children(ExplainContext *cxt)
{
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, cxt->state->sources)
		if (!OidIsValid((Oid) linitial_int(lfirst(lc))))
			names = lappend(names, psprintf("source %d", foreach_current_index(lc) + 1));
	if (!cxt->state->is_stage)
		names = lappend(names, is_text(cxt) ? "fallback (runs only if the device cannot)" : "fallback");
	if (names != NIL)
		ExplainPropertyList("Child Plans", names, cxt->es);
}

void
gj_explain_join_scan(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GjScanState *state = (GjScanState *) node;
	ExplainContext cxt = {.state = state,.es = es};
	GjFailure	failure;
	const GjDeviceInfo *device = gj_client_device(&failure);

	cxt.cscan = castNode(CustomScan, node->ss.ps.plan);
	cxt.deparse = set_deparse_context_plan(es->deparse_cxt, node->ss.ps.plan, ancestors);
	ExplainPropertyText("Device", device == NULL ? "none" :
						device->kind == GJ_DEVICE_CUDA ? "cuda" : "cpu", es);
	if (state->nworkers > 0)
		ExplainPropertyInteger("Loader Workers Planned", NULL, state->nworkers, es);
	if (state->nworkers > 0 && es->analyze && state->nruns > 0)
		ExplainPropertyInteger("Loader Workers Launched", NULL, state->load_stats.nlaunched, es);
	ExplainOpenGroup("Sources", "Sources", false, es);
	for (int s = 0; s < list_length(state->sources); s++)
		explain_source(&cxt, s);
	ExplainCloseGroup("Sources", "Sources", false, es);
	ExplainOpenGroup("Joins", "Joins", false, es);
	for (int i = 0; i < state->template->nsteps; i++)
		explain_step(&cxt, i);
	ExplainCloseGroup("Joins", "Joins", false, es);
	explain_output(&cxt);
	explain_late(&cxt);
	explain_order(&cxt);
	if (es->analyze && state->nruns > 0)
	{
		explain_totals(&cxt);
		explain_devices(&cxt);
	}
	if (es->analyze && state->used_equal)
		ExplainPropertyText("Result", "of an equal stage", es);
	if (state->failure.reason != GJ_OK)
		ExplainPropertyText("Fallback",
							psprintf("%s%s%s", gj_reason_text(state->failure.reason),
									 state->failure.detail[0] ? ": " : "",
									 state->failure.detail), es);
	explain_children(&cxt);
}
