/*
 * remembered.c
 *	  What takes time to find out of a table or index, once for each query that is planned.
 *
 * A table is priced for each path and program that reads it.  Which of its pages are resident, and
 * how an index is laid out, does not change meanwhile, or hardly.
 */
#include "postgres.h"

#include "plan/remembered.h"

/* More are found out anew each time. */
#define MOST_REMEMBERED		64

static struct
{
	GjFindOut	find;
	Oid			relid;
	double		value;
}			remembered[MOST_REMEMBERED];

static int	nremembered = 0;
static const PlannerGlobal *planning = NULL;

void
gj_remember_nothing(void)
{
	nremembered = 0;
}

double
gj_remembered(const PlannerInfo *root, GjFindOut find, Oid relid)
{
	double		value;

	/* extensions can call the planner past its hook */
	if (root->glob != planning)
		nremembered = 0;
	planning = root->glob;
	for (int i = 0; i < nremembered; i++)
		if (remembered[i].find == find && remembered[i].relid == relid)
			return remembered[i].value;
	value = find(relid);
	if (nremembered < MOST_REMEMBERED)
	{
		remembered[nremembered].find = find;
		remembered[nremembered].relid = relid;
		remembered[nremembered++].value = value;
	}
	return value;
}
