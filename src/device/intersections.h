/*
 * intersections.h
 *	  The table of distinct intersections (GjIntersections): hashes, slots and parts.
 *
 * The hash of an intersection is the sum of its elements' hashes, so its parts can be hashed
 * anywhere in any order.  One of a single element has that element's hash, which no other
 * element has: two such ones need not be compared.
 */
#ifndef GJ_DEVICE_INTERSECTIONS_H
#define GJ_DEVICE_INTERSECTIONS_H

#include "device.h"
#include "rows/hash.h"

#define GJ_NOT_LOOKED_UP	UINT32_MAX	/* GjFoundPairs.slot_of */

/* What an element adds to the hash. */
GJ_FN uint64_t
gj_intersection_hash(uint32_t code)
{
	return gj_hash_mix(code);
}

/* Where an intersection is looked for first. */
GJ_FN uint64_t
gj_intersection_place(uint64_t hash, uint64_t nslots)
{
	return gj_hash_slot(gj_hash_mix(hash), nslots);
}

GJ_FN uint64_t
gj_intersection_slot(uint64_t hash, uint32_t number)
{
	return (hash & UINT64_C(0xFFFFFFFF)) << 32 | number;
}

/* Which part of all intersections it belongs to. */
GJ_FN uint64_t
gj_intersection_part(uint64_t hash)
{
	return gj_hash_mix(~hash);
}

/* Is pair i, which has been hashed, looked at? */
GJ_FN bool
gj_intersection_wanted(const GjIntersections *found, const GjFoundPairs *pairs, uint32_t i)
{
	uint64_t	part = gj_intersection_part(pairs->hash[i]);

	return pairs->common[i] > 0 && found->first <= part && part <= found->last &&
		!(pairs->behind && pairs->right[i] < pairs->behind[pairs->left[i]]);
}

/* What a slot's number stands for: an intersection, or a pair that may become one. */
typedef struct GjKnownPair
{
	uint64_t	hash;
	uint32_t	left;
	uint32_t	right;
	uint32_t	common;
} GjKnownPair;

GJ_FN GjKnownPair
gj_intersection_pair(const GjIntersections *found, const GjFoundPairs *pairs, uint32_t number)
{
	GjKnownPair known;

	if (number < found->n)
	{
		known.hash = found->hash[number];
		known.left = found->left[number];
		known.right = found->right[number];
		known.common = found->common[number];
	}
	else
	{
		number -= found->n;
		known.hash = pairs->hash[number];
		known.left = pairs->left[number];
		known.right = pairs->right[number];
		known.common = pairs->common[number];
	}
	return known;
}

/* Pair i becomes intersection `number`. */
GJ_FN void
gj_intersection_store(const GjIntersections *found, uint32_t number, const GjFoundPairs *pairs,
					  uint32_t i)
{
	found->hash[number] = pairs->hash[i];
	found->left[number] = pairs->left[i];
	found->right[number] = pairs->right[i];
	found->common[number] = pairs->common[i];
	found->frequency[number] = 0;
	found->slots[pairs->slot_of[i]] = gj_intersection_slot(pairs->hash[i], number);
}

#endif							/* GJ_DEVICE_INTERSECTIONS_H */
