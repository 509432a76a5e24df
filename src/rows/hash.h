/*
 * hash.h
 *	  Hashing of join keys.
 *
 * Keys are normalised to 64 bits (gj_key_bits) so that equal keys have equal bits.
 * The mixer is the finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable
 * pseudorandom number generators", 2014), which is a bijection: a table with one
 * key can store the mixed key alone.
 */
#ifndef GJ_ROWS_HASH_H
#define GJ_ROWS_HASH_H

#include <string.h>

#include "primitives.h"

#define GJ_NO_SLOT		UINT64_MAX	/* what an empty slot of a table holds; no slot */

/* Bits of a key value: every NaN alike, -0 as 0. */
GJ_FN int64_t
gj_key_bits(int64_t value, bool is_float)
{
	double		d;

	if (!is_float)
		return value;
	d = gj_bits_to_double(value);
	if (gj_isnan(d))
		return INT64_C(0x7FF8000000000000);
	return d == 0.0 ? 0 : value;
}

GJ_FN uint64_t
gj_hash_mix(uint64_t x)
{
	x += UINT64_C(0x9E3779B97F4A7C15);
	x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
	return x ^ (x >> 31);
}

/* Adds one more key to a hash; start with 0. */
GJ_FN uint64_t
gj_hash_combine(uint64_t hash, int64_t key)
{
	return gj_hash_mix(hash * 31 + (uint64_t) key);
}

/* Adds bytes to a hash, eight at a time. */
GJ_FN uint64_t
gj_hash_bytes(uint64_t hash, const void *bytes, uint64_t n)
{
	const uint8_t *at = (const uint8_t *) bytes;

	for (; n >= sizeof(int64_t); n -= sizeof(int64_t), at += sizeof(int64_t))
	{
		int64_t		word;

		memcpy(&word, at, sizeof(word));
		hash = gj_hash_combine(hash, word);
	}
	for (; n > 0; n--)
		hash = gj_hash_combine(hash, *at++);
	return hash;
}

/* Maps a hash to 0 .. nslots-1 (Lemire: "Fast random integer generation in an interval"). */
GJ_FN uint64_t
gj_hash_slot(uint64_t hash, uint64_t nslots)
{
	return gj_mulhi_u64(hash, nslots);
}

/*
 * A filter of keys: a blocked Bloom filter with blocks of a word (Putze, Sanders, Singler: "Cache-, hash-
 * and space-efficient Bloom filters", section 3), a power of two of them.  The word of a hash; and its two
 * bits, which are all set for a key that is there.
 */
GJ_FN uint32_t
gj_filter_word(uint64_t hash, uint32_t nwords)
{
	return (uint32_t) hash & (nwords - 1);
}

GJ_FN uint32_t
gj_filter_bits(uint64_t hash)
{
	/* not those that choose the word, nor the highest ones, which choose the slot */
	return UINT32_C(1) << ((hash >> 32) & 31) | UINT32_C(1) << ((hash >> 37) & 31);
}

/* True if a value can be a payload. */
GJ_FN bool
gj_payload_fits(int64_t value)
{
	return value > INT32_MIN && value < INT32_MAX;
}

/* The payload: not 0, which makes a slot an empty one, nor GJ_NO_ROW, which does so with a place. */
GJ_FN uint32_t
gj_payload(int64_t value)
{
	return (uint32_t) value ^ UINT32_C(0x80000000);
}

GJ_FN int32_t
gj_payload_value(uint32_t payload)
{
	return (int32_t) (payload ^ UINT32_C(0x80000000));
}

/*
 * The part of nparts whose device gets the rows of these keys.  Of the low half alone: tables use the
 * same hash from its high bits on, and the slots of a part's keys must not all be in one region.
 */
GJ_FN uint32_t
gj_hash_part(uint64_t hash, uint32_t nparts)
{
	return (uint32_t) ((hash & UINT64_C(0xFFFFFFFF)) * nparts >> 32);
}

#endif							/* GJ_ROWS_HASH_H */
