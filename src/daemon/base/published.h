/*
 * published.h
 *	  Writes the file from which sessions read what a planner wants to know (wire/published.h).
 */
#ifndef GJ_DAEMON_BASE_PUBLISHED_H
#define GJ_DAEMON_BASE_PUBLISHED_H

#include "wire/published.h"

/*
 * Makes the file in the current directory, in place of one of an earlier gpujoind.  Where that
 * fails, or it was not called, nothing is published: planners take all tables for not resident.
 */
extern void gj_published_open(uint64_t incarnation);

/* Publishes a device, unless one of its kind is known.  Its kind is `kind`. */
extern void gj_published_device(const GjDeviceInfo *info);

/* Adds to the pages of a file that are resident on devices of a kind. */
extern void gj_published_pages(const GjRelationKey *relation, uint32_t kind, int64_t npages);

/* Removes the file. */
extern void gj_published_remove(void);

#endif							/* GJ_DAEMON_BASE_PUBLISHED_H */
