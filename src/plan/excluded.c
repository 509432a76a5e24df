/*
 * excluded.c
 *	  Tables that gpujoin.excluded_tables leaves to PostgreSQL; see excluded.h.
 */
#include "postgres.h"

#include "guc.h"
#include "plan/excluded.h"

List *
gj_excluded_relids(void)
{
	List	   *relids = NIL;
	List	   *names;
	ListCell   *lc;

	/* the list was checked when it was set */
	if (gj_excluded_tables[0] == '\0' || !gj_split_table_names(gj_excluded_tables, &names))
		return NIL;
	foreach(lc, names)
	{
		Oid			relid = gj_find_table(lfirst(lc));

		if (OidIsValid(relid))
			relids = lappend_oid(relids, relid);
	}
	return relids;
}
