/*
 * auto_prewarm.h
 *	  Loads tables in the background that queries would use a device for if they were resident.
 */
#ifndef GJ_AUTO_PREWARM_H
#define GJ_AUTO_PREWARM_H

/* Sets the planner's hook; called by _PG_init, after the planner's own. */
extern void gj_auto_prewarm_init(void);

#endif							/* GJ_AUTO_PREWARM_H */
