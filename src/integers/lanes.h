/*
 * lanes.h
 *	  How 16 bytes of vector instructions are packed, for x86.c and neon.c.
 */
#ifndef GJ_INTEGERS_LANES_H
#define GJ_INTEGERS_LANES_H

#include <stdint.h>

#define GJ_BYTES_OF(i)	4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3
#define GJ_NO_BYTES		255, 255, 255, 255

/* Where the lanes of a mask, of 4 bytes each, go side by side: byte by byte, 255 is none. */
static const uint8_t lanes_4[16][16] __attribute__((aligned(16))) = {
	{GJ_NO_BYTES, GJ_NO_BYTES, GJ_NO_BYTES, GJ_NO_BYTES},
	{GJ_BYTES_OF(0), GJ_NO_BYTES, GJ_NO_BYTES, GJ_NO_BYTES},
	{GJ_BYTES_OF(1), GJ_NO_BYTES, GJ_NO_BYTES, GJ_NO_BYTES},
	{GJ_BYTES_OF(0), GJ_BYTES_OF(1), GJ_NO_BYTES, GJ_NO_BYTES},
	{GJ_BYTES_OF(2), GJ_NO_BYTES, GJ_NO_BYTES, GJ_NO_BYTES},
	{GJ_BYTES_OF(0), GJ_BYTES_OF(2), GJ_NO_BYTES, GJ_NO_BYTES},
	{GJ_BYTES_OF(1), GJ_BYTES_OF(2), GJ_NO_BYTES, GJ_NO_BYTES},
	{GJ_BYTES_OF(0), GJ_BYTES_OF(1), GJ_BYTES_OF(2), GJ_NO_BYTES},
	{GJ_BYTES_OF(3), GJ_NO_BYTES, GJ_NO_BYTES, GJ_NO_BYTES},
	{GJ_BYTES_OF(0), GJ_BYTES_OF(3), GJ_NO_BYTES, GJ_NO_BYTES},
	{GJ_BYTES_OF(1), GJ_BYTES_OF(3), GJ_NO_BYTES, GJ_NO_BYTES},
	{GJ_BYTES_OF(0), GJ_BYTES_OF(1), GJ_BYTES_OF(3), GJ_NO_BYTES},
	{GJ_BYTES_OF(2), GJ_BYTES_OF(3), GJ_NO_BYTES, GJ_NO_BYTES},
	{GJ_BYTES_OF(0), GJ_BYTES_OF(2), GJ_BYTES_OF(3), GJ_NO_BYTES},
	{GJ_BYTES_OF(1), GJ_BYTES_OF(2), GJ_BYTES_OF(3), GJ_NO_BYTES},
	{GJ_BYTES_OF(0), GJ_BYTES_OF(1), GJ_BYTES_OF(2), GJ_BYTES_OF(3)}
};

#undef GJ_BYTES_OF
#undef GJ_NO_BYTES

#endif							/* GJ_INTEGERS_LANES_H */
