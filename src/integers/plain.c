/*
 * plain.c
 *	  The loops in C alone: for processors without the instructions of the other files, and
 *	  for int2, whose sets are never large.
 */
#include <string.h>

#include "code.h"

#define GJ_LANES	16			/* elements that a compiler can compare at a time */

#define GJ_VALUE int16_t
#define GJ_UVALUE uint16_t
#define GJ_GREATEST INT16_MAX
#define GJ_NAME(name) name##_2
#include "plain_width.h"

#define GJ_VALUE int32_t
#define GJ_UVALUE uint32_t
#define GJ_GREATEST INT32_MAX
#define GJ_NAME(name) name##_4
#include "plain_width.h"

#define GJ_VALUE int64_t
#define GJ_UVALUE uint64_t
#define GJ_GREATEST INT64_MAX
#define GJ_NAME(name) name##_8
#include "plain_width.h"

#define OF_2(name) name##_2
#define OF_4(name) name##_4
#define OF_8(name) name##_8

const GjIntegersLoops gj_integers_plain[3] = {GJ_LOOPS(OF_2), GJ_LOOPS(OF_4), GJ_LOOPS(OF_8)};
