/*
 * table.h
 *	  What table.c and table_build.c share.
 */
#ifndef GJ_DAEMON_RUN_TABLE_H
#define GJ_DAEMON_RUN_TABLE_H

#include "state.h"

/* Functions of GjJoinOps. */
extern GjStatus gj_table_build(GjRun *run, GjSideBuild *build, GjRunStep *rs);
extern GjStatus gj_table_improve(GjRun *run, uint32_t source, GjRunStep *rs);

#endif							/* GJ_DAEMON_RUN_TABLE_H */
