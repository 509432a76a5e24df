/*
 * volatile.c
 *	  Which parts of a query are volatile, so that PostgreSQL alone may evaluate them.
 *
 * A program evaluates a function in FROM once, as a plan source, before or while it runs.  If it falls
 * back, the native plan evaluates the function again, in a node of its own.  So such a function
 * must have no side effect, and give the same rows twice.  PostgreSQL says so of no volatile one.
 *
 * Citus' read_intermediate_result and read_intermediate_results are known to do that: they read files
 * that Citus has written before it sends the query, and that nobody changes or removes before the
 * transaction ends.  They are volatile only so that nobody evaluates them while planning.  Their files
 * are there whether the native plan would read them or not.
 *
 * A CTE needs none of this: its plan runs once, and plan source and native plan share the rows.
 */
#include "postgres.h"

#include "catalog/dependency.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "plan/reasons.h"

/* Functions with these names that were looked up; InvalidOid: free. */
#define REMEMBERED		4

static struct
{
	Oid			function;
	bool		is_reader;
}			remembered[REMEMBERED];
static int	next_remembered = 0;
static bool registered = false;

static void
forget_functions(Datum arg, int cache, uint32 hash)
{
	memset(remembered, 0, sizeof(remembered));
}

static bool
is_in_citus(Oid function)
{
	Oid			extension = getExtensionOfObject(ProcedureRelationId, function);
	char	   *name = OidIsValid(extension) ? get_extension_name(extension) : NULL;

	return name != NULL && strcmp(name, "citus") == 0;
}

/* True if a function reads intermediate results of Citus. */
static bool
is_reader(Oid function)
{
	char	   *name = get_func_name(function);
	int			i = 0;

	if (name == NULL || (strcmp(name, "read_intermediate_result") != 0 &&
						 strcmp(name, "read_intermediate_results") != 0))
		return false;
	if (!registered)
		CacheRegisterSyscacheCallback(PROCOID, forget_functions, (Datum) 0);
	registered = true;
	while (i < REMEMBERED && remembered[i].function != function)
		i++;
	if (i == REMEMBERED)
	{
		bool		found = is_in_citus(function);

		/* the look-up may have found that functions have changed, and forgotten all */
		i = next_remembered++ % REMEMBERED;
		remembered[i].function = function;
		remembered[i].is_reader = found;
	}
	return remembered[i].is_reader;
}

static bool
is_volatile(Oid function, void *found)
{
	if (func_volatile(function) != PROVOLATILE_VOLATILE || is_reader(function))
		return false;
	*(Oid *) found = function;
	return true;
}

static bool
find_volatile(Node *node, void *found)
{
	if (node == NULL)
		return false;
	if (IsA(node, NextValueExpr))
		return true;
	if (IsA(node, RestrictInfo))
		return find_volatile((Node *) ((RestrictInfo *) node)->clause, found);
	if (check_functions_in_node(node, is_volatile, found))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, find_volatile, found, 0);
	return expression_tree_walker(node, find_volatile, found);
}

bool
gj_is_volatile(Node *node)
{
	Oid			function = InvalidOid;

	if (!contain_volatile_functions(node) || !find_volatile(node, &function))
		return false;
	if (gj_explaining && OidIsValid(function))
		gj_refuse("volatile function %s", format_procedure(function));
	else
		gj_refuse("an expression is volatile");
	return true;
}
