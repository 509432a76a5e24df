/*
 * neon.c
 *	  The loops by the vector instructions that every 64-bit Arm processor has.
 */
#include <string.h>

#include "code.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include "lanes.h"

#define GJ_TARGET

/* ---- 4 lanes of 4 bytes */

GJ_INLINE int32x4_t
load_neon_4(const int32_t *at)
{
	return vld1q_s32(at);
}

GJ_INLINE void
store_neon_4(int32_t *to, int32x4_t x)
{
	vst1q_s32(to, x);
}

GJ_INLINE int32x4_t
all_neon_4(int32_t value)
{
	return vdupq_n_s32(value);
}

GJ_INLINE int32x4_t
load_some_neon_4(const int32_t *at, uint64_t n, int32_t pad)
{
	int32_t		lanes[4] = {pad, pad, pad, pad};

	for (uint64_t i = 0; i < n; i++)
		lanes[i] = at[i];
	return vld1q_s32(lanes);
}

GJ_INLINE uint32_t
mask_neon_4(uint32x4_t x)
{
	static const uint32_t bits[4] = {1, 2, 4, 8};

	return vaddvq_u32(vandq_u32(x, vld1q_u32(bits)));
}

GJ_INLINE uint32_t
equal_any_neon_4(int32x4_t x, int32x4_t y)
{
	uint32x4_t	y0 = vceqq_s32(x, y);
	uint32x4_t	y1 = vceqq_s32(x, vextq_s32(y, y, 1));
	uint32x4_t	y2 = vceqq_s32(x, vextq_s32(y, y, 2));
	uint32x4_t	y3 = vceqq_s32(x, vextq_s32(y, y, 3));

	return mask_neon_4(vorrq_u32(vorrq_u32(y0, y1), vorrq_u32(y2, y3)));
}

GJ_INLINE uint32_t
less_neon_4(int32x4_t x, int32x4_t y)
{
	return mask_neon_4(vcltq_s32(x, y));
}

GJ_INLINE int32x4_t
least_neon_4(int32x4_t x, int32x4_t y)
{
	return vminq_s32(x, y);
}

GJ_INLINE int32x4_t
greatest_neon_4(int32x4_t x, int32x4_t y)
{
	return vmaxq_s32(x, y);
}

GJ_INLINE int32_t *
store_lanes_neon_4(int32_t *to, int32x4_t x, uint32_t mask)
{
	vst1q_u8((uint8_t *) to, vqtbl1q_u8(vreinterpretq_u8_s32(x), vld1q_u8(lanes_4[mask])));
	return to + __builtin_popcount(mask);
}

GJ_INLINE int32x4_t
next_to_neon_4(int32x4_t before, int32x4_t x)
{
	return vextq_s32(before, x, 3);
}

/* Sorts lanes that rise and then fall, or fall and then rise. */
GJ_INLINE int32x4_t
sort_turned_neon_4(int32x4_t x)
{
	static const uint32_t second_half[4] = {0, 0, UINT32_MAX, UINT32_MAX};
	static const uint32_t odd[4] = {0, UINT32_MAX, 0, UINT32_MAX};
	int32x4_t	y = vextq_s32(x, x, 2);

	x = vbslq_s32(vld1q_u32(second_half), vmaxq_s32(x, y), vminq_s32(x, y));
	y = vrev64q_s32(x);
	return vbslq_s32(vld1q_u32(odd), vmaxq_s32(x, y), vminq_s32(x, y));
}

GJ_INLINE void
merge_neon_4(int32x4_t *x, int32x4_t *y)
{
	int32x4_t	pairs = vrev64q_s32(*y);
	int32x4_t	turned = vextq_s32(pairs, pairs, 2);
	int32x4_t	low = vminq_s32(*x, turned);
	int32x4_t	high = vmaxq_s32(*x, turned);

	*x = sort_turned_neon_4(low);
	*y = sort_turned_neon_4(high);
}

#define GJ_VECTOR	int32x4_t
#define GJ_LANES	4
#define GJ_VALUE	int32_t
#define GJ_LEAST	INT32_MIN
#define GJ_GREATEST	INT32_MAX
#define GJ_NAME(name) name##_neon_4
#include "vector_width.h"

/* ---- 2 lanes of 8 bytes */

GJ_INLINE int64x2_t
load_neon_8(const int64_t *at)
{
	return vld1q_s64(at);
}

GJ_INLINE void
store_neon_8(int64_t *to, int64x2_t x)
{
	vst1q_s64(to, x);
}

GJ_INLINE int64x2_t
all_neon_8(int64_t value)
{
	return vdupq_n_s64(value);
}

GJ_INLINE int64x2_t
load_some_neon_8(const int64_t *at, uint64_t n, int64_t pad)
{
	return vcombine_s64(vcreate_s64((uint64_t) (n > 0 ? at[0] : pad)), vcreate_s64((uint64_t) pad));
}

GJ_INLINE uint32_t
mask_neon_8(uint64x2_t x)
{
	return (uint32_t) ((vgetq_lane_u64(x, 0) & 1) | (vgetq_lane_u64(x, 1) & 2));
}

GJ_INLINE uint32_t
equal_any_neon_8(int64x2_t x, int64x2_t y)
{
	return mask_neon_8(vorrq_u64(vceqq_s64(x, y), vceqq_s64(x, vextq_s64(y, y, 1))));
}

GJ_INLINE uint32_t
less_neon_8(int64x2_t x, int64x2_t y)
{
	return mask_neon_8(vcltq_s64(x, y));
}

GJ_INLINE int64x2_t
least_neon_8(int64x2_t x, int64x2_t y)
{
	return vbslq_s64(vcltq_s64(x, y), x, y);
}

GJ_INLINE int64x2_t
greatest_neon_8(int64x2_t x, int64x2_t y)
{
	return vbslq_s64(vcltq_s64(x, y), y, x);
}

/* A lane is two of 4 bytes. */
GJ_INLINE int64_t *
store_lanes_neon_8(int64_t *to, int64x2_t x, uint32_t mask)
{
	static const uint8_t doubled[4] = {0, 3, 12, 15};

	vst1q_u8((uint8_t *) to, vqtbl1q_u8(vreinterpretq_u8_s64(x), vld1q_u8(lanes_4[doubled[mask]])));
	return to + __builtin_popcount(mask);
}

GJ_INLINE int64x2_t
next_to_neon_8(int64x2_t before, int64x2_t x)
{
	return vextq_s64(before, x, 1);
}

GJ_INLINE int64x2_t
sort_turned_neon_8(int64x2_t x)
{
	int64x2_t	y = vextq_s64(x, x, 1);

	return vcombine_s64(vget_low_s64(least_neon_8(x, y)), vget_high_s64(greatest_neon_8(x, y)));
}

GJ_INLINE void
merge_neon_8(int64x2_t *x, int64x2_t *y)
{
	int64x2_t	turned = vextq_s64(*y, *y, 1);
	int64x2_t	low = least_neon_8(*x, turned);
	int64x2_t	high = greatest_neon_8(*x, turned);

	*x = sort_turned_neon_8(low);
	*y = sort_turned_neon_8(high);
}

#define GJ_VECTOR	int64x2_t
#define GJ_LANES	2
#define GJ_VALUE	int64_t
#define GJ_LEAST	INT64_MIN
#define GJ_GREATEST	INT64_MAX
#define GJ_NAME(name) name##_neon_8
#include "vector_width.h"

#define NEON_4(name) name##_neon_4
#define NEON_8(name) name##_neon_8

const GjIntegersLoops gj_integers_neon[2] = {GJ_LOOPS(NEON_4), GJ_LOOPS(NEON_8)};
#endif
