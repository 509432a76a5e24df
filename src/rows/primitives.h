/*
 * primitives.h
 *	  The few things in which gcc (cpu device) and nvcc (kernels) differ.
 *
 * The headers of src/rows say once what an operator means on values; both
 * compilers compile them.  Everything that depends on the compiler is here.
 */
#ifndef GJ_ROWS_PRIMITIVES_H
#define GJ_ROWS_PRIMITIVES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDA_ARCH__
#define GJ_ON_GPU 1
#endif

/* GJ_NOINLINE_FN: large or rarely needed, a call costs less than its registers would */
#ifdef __CUDACC__
#define GJ_FN static __host__ __device__ __forceinline__
#define GJ_NOINLINE_FN static __host__ __device__ __noinline__ __attribute__((unused))
#else
#define GJ_FN static inline
#define GJ_NOINLINE_FN static inline
#endif

/*
 * Visits the rows of a tile: all of them on the cpu, those of this thread on the
 * GPU.  A row is always visited by the same thread, so that registers (gj_eval)
 * need no barrier.
 */
#ifdef GJ_ON_GPU
#define GJ_TILE_FOR(i, n)	for (uint32_t i = threadIdx.x; i < (n); i += blockDim.x)
#else
#define GJ_TILE_FOR(i, n)	for (uint32_t i = 0; i < (n); i++)
#endif

GJ_FN uint64_t
gj_mulhi_u64(uint64_t a, uint64_t b)
{
#ifdef GJ_ON_GPU
	return __umul64hi(a, b);
#else
	return (uint64_t) (((unsigned __int128) a * b) >> 64);
#endif
}

GJ_FN int64_t
gj_mulhi_i64(int64_t a, int64_t b)
{
#ifdef GJ_ON_GPU
	return __mul64hi(a, b);
#else
	return (int64_t) (((__int128) a * b) >> 64);
#endif
}

/* The number of the lowest bit that is set; the word is not 0. */
GJ_FN uint32_t
gj_lowest_bit(uint64_t word)
{
#ifdef GJ_ON_GPU
	return (uint32_t) __ffsll((long long) word) - 1;
#else
	return (uint32_t) __builtin_ctzll(word);
#endif
}

GJ_FN double
gj_bits_to_double(int64_t bits)
{
#ifdef GJ_ON_GPU
	return __longlong_as_double(bits);
#else
	double		d;

	memcpy(&d, &bits, sizeof(d));
	return d;
#endif
}

GJ_FN int64_t
gj_double_to_bits(double d)
{
#ifdef GJ_ON_GPU
	return __double_as_longlong(d);
#else
	int64_t		bits;

	memcpy(&bits, &d, sizeof(bits));
	return bits;
#endif
}

GJ_FN uint64_t
gj_byte_swap(uint64_t x)
{
#ifdef GJ_ON_GPU
	return (uint64_t) __byte_perm((uint32_t) x, 0, 0x0123) << 32 |
		__byte_perm((uint32_t) (x >> 32), 0, 0x0123);
#else
	return __builtin_bswap64(x);
#endif
}

/* The same on both: IEEE 754 says what they return to the last bit. */
#ifdef GJ_ON_GPU
#define gj_sqrt(d)	sqrt(d)
#define gj_floor(d) floor(d)
#define gj_ceil(d)	ceil(d)
#define gj_rint(d)	rint(d)
#else
#define gj_sqrt(d)	__builtin_sqrt(d)
#define gj_floor(d) __builtin_floor(d)
#define gj_ceil(d)	__builtin_ceil(d)
#define gj_rint(d)	__builtin_rint(d)
#endif

/* Without <math.h>, whose classification macros differ between C and C++. */
GJ_FN bool
gj_isnan(double d)
{
	return d != d;
}

GJ_FN bool
gj_isinf(double d)
{
	return (gj_double_to_bits(d) & INT64_C(0x7FFFFFFFFFFFFFFF)) == INT64_C(0x7FF0000000000000);
}

#endif							/* GJ_ROWS_PRIMITIVES_H */
