/*
 * array_pair_host.c
 *	  Two integer arrays as sets, in the process.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"

#include "sets/array_pair.h"

#define GJ_SET_BLOCK		(1u << 20)	/* elements between looks at interrupts */
#define GJ_SET_DIGITS		256 /* values of a byte */
#define GJ_SET_RADIX_MIN	2048	/* elements from which sorting by radix is faster */
#define GJ_SET_LANES		16			/* elements that are compared at a time */
#define GJ_SET_GALLOP_RATIO 32	/* of sizes, from which looking up is faster than merging */

#define GJ_SET_ELEMENT		int16
#define GJ_SET_UNSIGNED		uint16
#define GJ_SET_SIGN			UINT16_C(0x8000)
#define GJ_SET_NAME(name)	name##_int2
#define GJ_SET_SORT			sort_int2
#define GJ_SET_RANKS		64
#include "sets/array_pair_template.h"

#define GJ_SET_ELEMENT		int32
#define GJ_SET_UNSIGNED		uint32
#define GJ_SET_SIGN			UINT32_C(0x80000000)
#define GJ_SET_NAME(name)	name##_int4
#define GJ_SET_SORT			sort_int4
#define GJ_SET_RANKS		64
#include "sets/array_pair_template.h"

#define GJ_SET_ELEMENT		int64
#define GJ_SET_UNSIGNED		uint64
#define GJ_SET_SIGN			UINT64_C(0x8000000000000000)
#define GJ_SET_NAME(name)	name##_int8
#define GJ_SET_SORT			sort_int8
#define GJ_SET_RANKS		0	/* SSE2 compares none of 64 bits */
#include "sets/array_pair_template.h"

uint32
gj_sort_elements(GjKind kind, void *elements, uint32 n)
{
	if (kind == GJ_INT2)
		return sort_elements_int2(elements, n);
	if (kind == GJ_INT4)
		return sort_elements_int4(elements, n);
	return sort_elements_int8(elements, n);
}
