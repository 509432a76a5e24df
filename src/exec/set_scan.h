/*
 * set_scan.h
 *	  The GpuSetScan node: rows of a set-returning function, as they come.
 */
#ifndef GJ_SET_SCAN_H
#define GJ_SET_SCAN_H

#include "nodes/extensible.h"

extern const CustomScanMethods gj_set_scan_methods;

extern void gj_set_scan_init(void);

#endif							/* GJ_SET_SCAN_H */
