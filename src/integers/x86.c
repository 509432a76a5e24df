/*
 * x86.c
 *	  The loops by AVX2 and by AVX-512.  Functions have attributes for these instructions, so the
 *	  file is compiled without flags, and its functions are called where the processor has them.
 */
#include <string.h>

#include "code.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "lanes.h"

/* ---- AVX2, 8 lanes of 4 bytes */

#define GJ_TARGET __attribute__((target("avx2,popcnt")))

GJ_INLINE GJ_TARGET __m256i
load_avx2_4(const int32_t *at)
{
	return _mm256_loadu_si256((const __m256i *) at);
}

GJ_INLINE GJ_TARGET void
store_avx2_4(int32_t *to, __m256i x)
{
	_mm256_storeu_si256((__m256i *) to, x);
}

GJ_INLINE GJ_TARGET __m256i
all_avx2_4(int32_t value)
{
	return _mm256_set1_epi32(value);
}

GJ_INLINE GJ_TARGET __m256i
load_some_avx2_4(const int32_t *at, uint64_t n, int32_t pad)
{
	__m256i		numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	__m256i		wanted = _mm256_cmpgt_epi32(_mm256_set1_epi32((int) n), numbers);

	return _mm256_blendv_epi8(_mm256_set1_epi32(pad), _mm256_maskload_epi32(at, wanted), wanted);
}

GJ_INLINE GJ_TARGET uint32_t
mask_avx2_4(__m256i x)
{
	return (uint32_t) _mm256_movemask_ps(_mm256_castsi256_ps(x));
}

GJ_INLINE GJ_TARGET uint32_t
equal_any_avx2_4(__m256i x, __m256i y)
{
	__m256i		z = _mm256_permute2x128_si256(y, y, 0x01);
	__m256i		y0 = _mm256_cmpeq_epi32(x, y);
	__m256i		y1 = _mm256_cmpeq_epi32(x, _mm256_shuffle_epi32(y, 0x39));
	__m256i		y2 = _mm256_cmpeq_epi32(x, _mm256_shuffle_epi32(y, 0x4E));
	__m256i		y3 = _mm256_cmpeq_epi32(x, _mm256_shuffle_epi32(y, 0x93));
	__m256i		z0 = _mm256_cmpeq_epi32(x, z);
	__m256i		z1 = _mm256_cmpeq_epi32(x, _mm256_shuffle_epi32(z, 0x39));
	__m256i		z2 = _mm256_cmpeq_epi32(x, _mm256_shuffle_epi32(z, 0x4E));
	__m256i		z3 = _mm256_cmpeq_epi32(x, _mm256_shuffle_epi32(z, 0x93));

	y0 = _mm256_or_si256(_mm256_or_si256(y0, y1), _mm256_or_si256(y2, y3));
	z0 = _mm256_or_si256(_mm256_or_si256(z0, z1), _mm256_or_si256(z2, z3));
	return mask_avx2_4(_mm256_or_si256(y0, z0));
}

GJ_INLINE GJ_TARGET uint32_t
less_avx2_4(__m256i x, __m256i y)
{
	return mask_avx2_4(_mm256_cmpgt_epi32(y, x));
}

GJ_INLINE GJ_TARGET __m256i
least_avx2_4(__m256i x, __m256i y)
{
	return _mm256_min_epi32(x, y);
}

GJ_INLINE GJ_TARGET __m256i
greatest_avx2_4(__m256i x, __m256i y)
{
	return _mm256_max_epi32(x, y);
}

GJ_INLINE GJ_TARGET int32_t *
store_lanes_avx2_4(int32_t *to, __m256i x, uint32_t mask)
{
	__m128i		low = _mm_load_si128((const __m128i *) lanes_4[mask & 15]);
	__m128i		high = _mm_load_si128((const __m128i *) lanes_4[mask >> 4]);

	_mm_storeu_si128((__m128i *) to, _mm_shuffle_epi8(_mm256_castsi256_si128(x), low));
	to += __builtin_popcount(mask & 15);
	_mm_storeu_si128((__m128i *) to, _mm_shuffle_epi8(_mm256_extracti128_si256(x, 1), high));
	return to + __builtin_popcount(mask >> 4);
}

GJ_INLINE GJ_TARGET __m256i
next_to_avx2_4(__m256i before, __m256i x)
{
	return _mm256_alignr_epi8(x, _mm256_permute2x128_si256(before, x, 0x21), 12);
}

/* Sorts lanes that rise and then fall, or fall and then rise. */
GJ_INLINE GJ_TARGET __m256i
sort_turned_avx2_4(__m256i x)
{
	__m256i		y = _mm256_permute2x128_si256(x, x, 0x01);

	x = _mm256_blend_epi32(_mm256_min_epi32(x, y), _mm256_max_epi32(x, y), 0xF0);
	y = _mm256_shuffle_epi32(x, 0x4E);
	x = _mm256_blend_epi32(_mm256_min_epi32(x, y), _mm256_max_epi32(x, y), 0xCC);
	y = _mm256_shuffle_epi32(x, 0xB1);
	return _mm256_blend_epi32(_mm256_min_epi32(x, y), _mm256_max_epi32(x, y), 0xAA);
}

GJ_INLINE GJ_TARGET void
merge_avx2_4(__m256i *x, __m256i *y)
{
	__m256i		turned = _mm256_permutevar8x32_epi32(*y, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
	__m256i		low = _mm256_min_epi32(*x, turned);
	__m256i		high = _mm256_max_epi32(*x, turned);

	*x = sort_turned_avx2_4(low);
	*y = sort_turned_avx2_4(high);
}

#define GJ_VECTOR	__m256i
#define GJ_LANES	8
#define GJ_VALUE	int32_t
#define GJ_LEAST	INT32_MIN
#define GJ_GREATEST	INT32_MAX
#define GJ_NAME(name) name##_avx2_4
#include "vector_width.h"

/* ---- AVX2, 4 lanes of 8 bytes */

GJ_INLINE GJ_TARGET __m256i
load_avx2_8(const int64_t *at)
{
	return _mm256_loadu_si256((const __m256i *) at);
}

GJ_INLINE GJ_TARGET void
store_avx2_8(int64_t *to, __m256i x)
{
	_mm256_storeu_si256((__m256i *) to, x);
}

GJ_INLINE GJ_TARGET __m256i
all_avx2_8(int64_t value)
{
	return _mm256_set1_epi64x(value);
}

GJ_INLINE GJ_TARGET __m256i
load_some_avx2_8(const int64_t *at, uint64_t n, int64_t pad)
{
	__m256i		wanted = _mm256_cmpgt_epi64(_mm256_set1_epi64x((long long) n),
											_mm256_setr_epi64x(0, 1, 2, 3));

	return _mm256_blendv_epi8(_mm256_set1_epi64x(pad),
							  _mm256_maskload_epi64((const long long *) at, wanted), wanted);
}

GJ_INLINE GJ_TARGET uint32_t
mask_avx2_8(__m256i x)
{
	return (uint32_t) _mm256_movemask_pd(_mm256_castsi256_pd(x));
}

GJ_INLINE GJ_TARGET uint32_t
equal_any_avx2_8(__m256i x, __m256i y)
{
	__m256i		y0 = _mm256_cmpeq_epi64(x, y);
	__m256i		y1 = _mm256_cmpeq_epi64(x, _mm256_permute4x64_epi64(y, 0x39));
	__m256i		y2 = _mm256_cmpeq_epi64(x, _mm256_permute4x64_epi64(y, 0x4E));
	__m256i		y3 = _mm256_cmpeq_epi64(x, _mm256_permute4x64_epi64(y, 0x93));

	return mask_avx2_8(_mm256_or_si256(_mm256_or_si256(y0, y1), _mm256_or_si256(y2, y3)));
}

GJ_INLINE GJ_TARGET uint32_t
less_avx2_8(__m256i x, __m256i y)
{
	return mask_avx2_8(_mm256_cmpgt_epi64(y, x));
}

GJ_INLINE GJ_TARGET __m256i
least_avx2_8(__m256i x, __m256i y)
{
	return _mm256_blendv_epi8(x, y, _mm256_cmpgt_epi64(x, y));
}

GJ_INLINE GJ_TARGET __m256i
greatest_avx2_8(__m256i x, __m256i y)
{
	return _mm256_blendv_epi8(y, x, _mm256_cmpgt_epi64(x, y));
}

/* A lane is two of 4 bytes. */
GJ_INLINE GJ_TARGET int64_t *
store_lanes_avx2_8(int64_t *to, __m256i x, uint32_t mask)
{
	static const uint8_t doubled[4] = {0, 3, 12, 15};
	__m128i		low = _mm_load_si128((const __m128i *) lanes_4[doubled[mask & 3]]);
	__m128i		high = _mm_load_si128((const __m128i *) lanes_4[doubled[mask >> 2]]);

	_mm_storeu_si128((__m128i *) to, _mm_shuffle_epi8(_mm256_castsi256_si128(x), low));
	to += __builtin_popcount(mask & 3);
	_mm_storeu_si128((__m128i *) to, _mm_shuffle_epi8(_mm256_extracti128_si256(x, 1), high));
	return to + __builtin_popcount(mask >> 2);
}

GJ_INLINE GJ_TARGET __m256i
next_to_avx2_8(__m256i before, __m256i x)
{
	return _mm256_alignr_epi8(x, _mm256_permute2x128_si256(before, x, 0x21), 8);
}

GJ_INLINE GJ_TARGET __m256i
sort_turned_avx2_8(__m256i x)
{
	__m256i		y = _mm256_permute4x64_epi64(x, 0x4E);

	x = _mm256_blend_epi32(least_avx2_8(x, y), greatest_avx2_8(x, y), 0xF0);
	y = _mm256_shuffle_epi32(x, 0x4E);
	return _mm256_blend_epi32(least_avx2_8(x, y), greatest_avx2_8(x, y), 0xCC);
}

GJ_INLINE GJ_TARGET void
merge_avx2_8(__m256i *x, __m256i *y)
{
	__m256i		turned = _mm256_permute4x64_epi64(*y, 0x1B);
	__m256i		low = least_avx2_8(*x, turned);
	__m256i		high = greatest_avx2_8(*x, turned);

	*x = sort_turned_avx2_8(low);
	*y = sort_turned_avx2_8(high);
}

#define GJ_VECTOR	__m256i
#define GJ_LANES	4
#define GJ_VALUE	int64_t
#define GJ_LEAST	INT64_MIN
#define GJ_GREATEST	INT64_MAX
#define GJ_NAME(name) name##_avx2_8
#include "vector_width.h"

#undef GJ_TARGET

/* ---- AVX-512, 16 lanes of 4 bytes */

#define GJ_TARGET __attribute__((target("avx512f,popcnt")))

GJ_INLINE GJ_TARGET __m512i
load_avx512_4(const int32_t *at)
{
	return _mm512_loadu_si512(at);
}

GJ_INLINE GJ_TARGET void
store_avx512_4(int32_t *to, __m512i x)
{
	_mm512_storeu_si512(to, x);
}

GJ_INLINE GJ_TARGET __m512i
all_avx512_4(int32_t value)
{
	return _mm512_set1_epi32(value);
}

GJ_INLINE GJ_TARGET __m512i
load_some_avx512_4(const int32_t *at, uint64_t n, int32_t pad)
{
	return _mm512_mask_loadu_epi32(_mm512_set1_epi32(pad), (__mmask16) ((1u << n) - 1), at);
}

/* x against y with its lanes turned within 16 bytes. */
GJ_INLINE GJ_TARGET uint32_t
equal_in_quarters_avx512_4(__m512i x, __m512i y)
{
	return (uint32_t) _mm512_cmpeq_epi32_mask(x, y) |
		(uint32_t) _mm512_cmpeq_epi32_mask(x, _mm512_shuffle_epi32(y, 0x39)) |
		(uint32_t) _mm512_cmpeq_epi32_mask(x, _mm512_shuffle_epi32(y, 0x4E)) |
		(uint32_t) _mm512_cmpeq_epi32_mask(x, _mm512_shuffle_epi32(y, 0x93));
}

GJ_INLINE GJ_TARGET uint32_t
equal_any_avx512_4(__m512i x, __m512i y)
{
	return equal_in_quarters_avx512_4(x, y) |
		equal_in_quarters_avx512_4(x, _mm512_shuffle_i64x2(y, y, 0x39)) |
		equal_in_quarters_avx512_4(x, _mm512_shuffle_i64x2(y, y, 0x4E)) |
		equal_in_quarters_avx512_4(x, _mm512_shuffle_i64x2(y, y, 0x93));
}

GJ_INLINE GJ_TARGET uint32_t
less_avx512_4(__m512i x, __m512i y)
{
	return _mm512_cmplt_epi32_mask(x, y);
}

GJ_INLINE GJ_TARGET __m512i
least_avx512_4(__m512i x, __m512i y)
{
	return _mm512_min_epi32(x, y);
}

GJ_INLINE GJ_TARGET __m512i
greatest_avx512_4(__m512i x, __m512i y)
{
	return _mm512_max_epi32(x, y);
}

/* To a register first: compressing into memory takes a hundred cycles on some processors. */
GJ_INLINE GJ_TARGET int32_t *
store_lanes_avx512_4(int32_t *to, __m512i x, uint32_t mask)
{
	_mm512_storeu_si512(to, _mm512_maskz_compress_epi32((__mmask16) mask, x));
	return to + __builtin_popcount(mask);
}

GJ_INLINE GJ_TARGET __m512i
next_to_avx512_4(__m512i before, __m512i x)
{
	return _mm512_alignr_epi32(x, before, 15);
}

GJ_INLINE GJ_TARGET __m512i
sort_turned_avx512_4(__m512i x)
{
	__m512i		y = _mm512_shuffle_i64x2(x, x, 0x4E);

	x = _mm512_mask_max_epi32(_mm512_min_epi32(x, y), 0xFF00, x, y);
	y = _mm512_shuffle_i64x2(x, x, 0xB1);
	x = _mm512_mask_max_epi32(_mm512_min_epi32(x, y), 0xF0F0, x, y);
	y = _mm512_shuffle_epi32(x, 0x4E);
	x = _mm512_mask_max_epi32(_mm512_min_epi32(x, y), 0xCCCC, x, y);
	y = _mm512_shuffle_epi32(x, 0xB1);
	return _mm512_mask_max_epi32(_mm512_min_epi32(x, y), 0xAAAA, x, y);
}

GJ_INLINE GJ_TARGET void
merge_avx512_4(__m512i *x, __m512i *y)
{
	__m512i		turn = _mm512_setr_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
	__m512i		turned = _mm512_permutexvar_epi32(turn, *y);
	__m512i		low = _mm512_min_epi32(*x, turned);
	__m512i		high = _mm512_max_epi32(*x, turned);

	*x = sort_turned_avx512_4(low);
	*y = sort_turned_avx512_4(high);
}

#define GJ_VECTOR	__m512i
#define GJ_LANES	16
#define GJ_VALUE	int32_t
#define GJ_LEAST	INT32_MIN
#define GJ_GREATEST	INT32_MAX
#define GJ_NAME(name) name##_avx512_4
#include "vector_width.h"

/* ---- AVX-512, 8 lanes of 8 bytes */

GJ_INLINE GJ_TARGET __m512i
load_avx512_8(const int64_t *at)
{
	return _mm512_loadu_si512(at);
}

GJ_INLINE GJ_TARGET void
store_avx512_8(int64_t *to, __m512i x)
{
	_mm512_storeu_si512(to, x);
}

GJ_INLINE GJ_TARGET __m512i
all_avx512_8(int64_t value)
{
	return _mm512_set1_epi64(value);
}

GJ_INLINE GJ_TARGET __m512i
load_some_avx512_8(const int64_t *at, uint64_t n, int64_t pad)
{
	return _mm512_mask_loadu_epi64(_mm512_set1_epi64(pad), (__mmask8) ((1u << n) - 1), at);
}

GJ_INLINE GJ_TARGET uint32_t
equal_in_quarters_avx512_8(__m512i x, __m512i y)
{
	return (uint32_t) _mm512_cmpeq_epi64_mask(x, y) |
		(uint32_t) _mm512_cmpeq_epi64_mask(x, _mm512_shuffle_epi32(y, 0x4E));
}

GJ_INLINE GJ_TARGET uint32_t
equal_any_avx512_8(__m512i x, __m512i y)
{
	return equal_in_quarters_avx512_8(x, y) |
		equal_in_quarters_avx512_8(x, _mm512_shuffle_i64x2(y, y, 0x39)) |
		equal_in_quarters_avx512_8(x, _mm512_shuffle_i64x2(y, y, 0x4E)) |
		equal_in_quarters_avx512_8(x, _mm512_shuffle_i64x2(y, y, 0x93));
}

GJ_INLINE GJ_TARGET uint32_t
less_avx512_8(__m512i x, __m512i y)
{
	return _mm512_cmplt_epi64_mask(x, y);
}

GJ_INLINE GJ_TARGET __m512i
least_avx512_8(__m512i x, __m512i y)
{
	return _mm512_min_epi64(x, y);
}

GJ_INLINE GJ_TARGET __m512i
greatest_avx512_8(__m512i x, __m512i y)
{
	return _mm512_max_epi64(x, y);
}

GJ_INLINE GJ_TARGET int64_t *
store_lanes_avx512_8(int64_t *to, __m512i x, uint32_t mask)
{
	_mm512_storeu_si512(to, _mm512_maskz_compress_epi64((__mmask8) mask, x));
	return to + __builtin_popcount(mask);
}

GJ_INLINE GJ_TARGET __m512i
next_to_avx512_8(__m512i before, __m512i x)
{
	return _mm512_alignr_epi64(x, before, 7);
}

GJ_INLINE GJ_TARGET __m512i
sort_turned_avx512_8(__m512i x)
{
	__m512i		y = _mm512_shuffle_i64x2(x, x, 0x4E);

	x = _mm512_mask_max_epi64(_mm512_min_epi64(x, y), 0xF0, x, y);
	y = _mm512_shuffle_i64x2(x, x, 0xB1);
	x = _mm512_mask_max_epi64(_mm512_min_epi64(x, y), 0xCC, x, y);
	y = _mm512_shuffle_epi32(x, 0x4E);
	return _mm512_mask_max_epi64(_mm512_min_epi64(x, y), 0xAA, x, y);
}

GJ_INLINE GJ_TARGET void
merge_avx512_8(__m512i *x, __m512i *y)
{
	__m512i		turned = _mm512_permutexvar_epi64(_mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0), *y);
	__m512i		low = _mm512_min_epi64(*x, turned);
	__m512i		high = _mm512_max_epi64(*x, turned);

	*x = sort_turned_avx512_8(low);
	*y = sort_turned_avx512_8(high);
}

#define GJ_VECTOR	__m512i
#define GJ_LANES	8
#define GJ_VALUE	int64_t
#define GJ_LEAST	INT64_MIN
#define GJ_GREATEST	INT64_MAX
#define GJ_NAME(name) name##_avx512_8
#include "vector_width.h"

#define AVX2_4(name) name##_avx2_4
#define AVX2_8(name) name##_avx2_8
#define AVX512_4(name) name##_avx512_4
#define AVX512_8(name) name##_avx512_8

const GjIntegersLoops gj_integers_avx2[2] = {GJ_LOOPS(AVX2_4), GJ_LOOPS(AVX2_8)};
const GjIntegersLoops gj_integers_avx512[2] = {GJ_LOOPS(AVX512_4), GJ_LOOPS(AVX512_8)};
#endif
