/*
 * base.h
 *	  What all modules of gpujoind stand on: the header of src/daemon/base for the others.
 */
#ifndef GJ_DAEMON_BASE_BASE_H
#define GJ_DAEMON_BASE_BASE_H

#include "crash.h"
#include "devices.h"
#include "lease.h"
#include "log.h"
#include "published.h"
#include "quota.h"
#include "relation.h"
#include "segment.h"
#include "spill.h"
#include "spin.h"
#include "temp.h"
#include "work.h"

#endif							/* GJ_DAEMON_BASE_BASE_H */
