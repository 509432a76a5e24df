/*
 * published.h
 *	  What gpujoind tells every session without being asked (wire/published.h).
 */
#ifndef GJ_CLIENT_PUBLISHED_H
#define GJ_CLIENT_PUBLISHED_H

#include "client.h"
#include "wire/published.h"

/*
 * The device of a kind, as gpujoind reported it.  False: the gpujoind of this incarnation has not
 * told, and must be asked.
 */
extern bool gj_published_device(uint64 incarnation, uint32 kind, GjDeviceInfo *info);

/* Pages of a file that are resident on devices of a kind; of one on several the sum. */
extern double gj_published_pages(const GjRelationKey *file, uint32 kind);

#endif							/* GJ_CLIENT_PUBLISHED_H */
