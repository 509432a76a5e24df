/*
 * gpujoin.c
 *	  Entry point of the library: settings and hooks, nothing else.
 */
#include "postgres.h"

#include "fmgr.h"

#include "auto_prewarm.h"
#include "client/client.h"
#include "exec/join_scan.h"
#include "exec/set_scan.h"
#include "exec/statements.h"
#include "guc.h"
#include "plan/join_path.h"
#include "plan/reasons.h"
#include "plan/set_function_path.h"
#include "preload.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	gj_guc_init();
	gj_launcher_init();
	gj_join_scan_init();
	gj_set_scan_init();
	gj_statements_init();
	gj_planner_init();
	gj_reasons_init();
	gj_set_scan_planner_init();
	gj_auto_prewarm_init();
	gj_preload_init();
}
