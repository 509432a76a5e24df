/*
 * set_intersections.h
 *	  Distinct intersections of a family's pairs, in plain C: what the cpu device runs on its
 *	  threads, and a session in its own process where there is no device.
 *
 * See intersections_find and its kin in src/device/sets.h for what the functions do.
 */
#ifndef GJ_DEVICE_SET_INTERSECTIONS_H
#define GJ_DEVICE_SET_INTERSECTIONS_H

#include "intersections.h"
#include "set_join.h"

#define GJ_INTERSECTIONS_ITEM	1024u	/* pairs of an item */

#define gj_intersections_items(n) (((n) + GJ_INTERSECTIONS_ITEM - 1) / GJ_INTERSECTIONS_ITEM)

static inline void
gj_intersections_rehash(const GjIntersections *found)
{
	memset(found->slots, 0xFF, found->nslots * sizeof(uint64_t));
	/* all of them differ: the first empty slot is the right one */
	for (uint32_t i = 0; i < found->n; i++)
	{
		uint64_t	s = gj_intersection_place(found->hash[i], found->nslots);

		while (found->slots[s] != GJ_NO_SLOT)
			s = s + 1 < found->nslots ? s + 1 : 0;
		found->slots[s] = gj_intersection_slot(found->hash[i], i);
	}
}

typedef struct GjIntersectionsWork
{
	const GjSetFamily *family;
	const GjIntersections *found;
	const GjFoundPairs *pairs;
} GjIntersectionsWork;

/* The sets of a pair, the smaller one first. */
static inline void
gj_intersection_sets(const GjSetFamily *family, uint32_t left, uint32_t right, GjCodes sets[2])
{
	GjCodes		a = gj_set_codes(family, left);
	GjCodes		b = gj_set_codes(family, (uint64_t) family->first_right + right);

	sets[0] = a.n <= b.n ? a : b;
	sets[1] = a.n <= b.n ? b : a;
}

/* From this ratio of sizes on elements of the smaller set are looked up; else sets are merged. */
#define GJ_INTERSECTION_SKEW	16

/* The hash of the `common` elements of a pair. */
static inline uint64_t
gj_intersection_hash_pair(const GjSetFamily *family, uint32_t left, uint32_t right, uint32_t common)
{
	GjCodes		sets[2];
	uint64_t	hash = 0;
	uint64_t	j = 0;

	gj_intersection_sets(family, left, right, sets);
	if (sets[1].n / GJ_INTERSECTION_SKEW < sets[0].n)
	{
		for (uint64_t i = 0; common > 0;)
		{
			uint32_t	x = sets[0].at[i];
			uint32_t	y = sets[1].at[j];

			if (x == y)
			{
				hash += gj_intersection_hash(x);
				common--;
			}
			i += x <= y;
			j += y <= x;
		}
		return hash;
	}
	for (uint64_t i = 0; common > 0; i++)
	{
		j = gj_codes_from(sets[1], j, sets[0].at[i]);
		if (j < sets[1].n && sets[1].at[j] == sets[0].at[i])
		{
			hash += gj_intersection_hash(sets[0].at[i]);
			common--;
		}
	}
	return hash;
}

/* Bits of a left set, in which right sets are looked up: pairs of one left set come together. */
#define GJ_LEFT_CODES		262144u /* that it can have */
#define GJ_LEFT_PAIRS		4u		/* from so many pairs on it is worth making */

typedef struct GjLeftBits
{
	uint32_t	left;
	bool		made;			/* false: codes are too large, or pairs too few */
	uint64_t	bits[GJ_LEFT_CODES / 64];
} GjLeftBits;

static inline void
gj_left_flip(GjLeftBits *left, const GjSetFamily *family)
{
	GjCodes		codes = gj_set_codes(family, left->left);

	for (uint64_t k = 0; k < codes.n; k++)
		left->bits[codes.at[k] / 64] ^= UINT64_C(1) << (codes.at[k] % 64);
}

/* Takes the left set of pair i, which those behind it up to `end` may have, too. */
static inline void
gj_left_take(GjLeftBits *left, const GjSetFamily *family, const GjFoundPairs *pairs, uint32_t i,
			 uint32_t end)
{
	if (left->made)
		gj_left_flip(left, family);
	left->left = pairs->left[i];
	left->made = family->universe <= GJ_LEFT_CODES && end - i >= GJ_LEFT_PAIRS &&
		pairs->left[i + GJ_LEFT_PAIRS - 1] == left->left;
	if (left->made)
		gj_left_flip(left, family);
}

static inline uint64_t
gj_left_hash(const GjLeftBits *left, GjCodes right, uint32_t common)
{
	uint64_t	hash = 0;

	for (uint64_t k = 0; common > 0; k++)
		if (left->bits[right.at[k] / 64] >> (right.at[k] % 64) & 1)
		{
			hash += gj_intersection_hash(right.at[k]);
			common--;
		}
	return hash;
}

/* Two intersections of as many elements: do both sets of the second have those of the first? */
static inline bool
gj_intersection_same(const GjSetFamily *family, uint32_t left, uint32_t right,
					 const GjKnownPair *known)
{
	GjCodes		sets[2];
	GjCodes		others[2];
	uint64_t	j = 0;
	uint64_t	at[2] = {0, 0};

	gj_intersection_sets(family, left, right, sets);
	gj_intersection_sets(family, known->left, known->right, others);
	for (uint64_t i = 0; i < sets[0].n; i++)
	{
		uint32_t	code = sets[0].at[i];

		j = gj_codes_from(sets[1], j, code);
		if (j == sets[1].n || sets[1].at[j] != code)
			continue;
		for (int k = 0; k < 2; k++)
		{
			at[k] = gj_codes_from(others[k], at[k], code);
			if (at[k] == others[k].n || others[k].at[at[k]] != code)
				return false;
		}
	}
	return true;
}

/* The slot of a pair's intersection: one that has it, or an empty one, which becomes its own. */
static inline uint32_t
gj_intersection_look_up(const GjIntersectionsWork *w, uint32_t i)
{
	const GjFoundPairs *pairs = w->pairs;
	const GjIntersections *found = w->found;
	uint64_t	hash = pairs->hash[i];
	uint64_t	mine = gj_intersection_slot(hash, found->n + i);
	uint64_t	s = gj_intersection_place(hash, found->nslots);

	for (;; s = s + 1 < found->nslots ? s + 1 : 0)
	{
		uint64_t	slot = __atomic_load_n(&found->slots[s], __ATOMIC_ACQUIRE);
		GjKnownPair known;

		/* who finds the slot sees the hash that was written before */
		if (slot == GJ_NO_SLOT &&
			__atomic_compare_exchange_n(&found->slots[s], &slot, mine, false, __ATOMIC_ACQ_REL,
										__ATOMIC_ACQUIRE))
			return (uint32_t) s;
		if (slot >> 32 != mine >> 32)
			continue;
		known = gj_intersection_pair(found, pairs, (uint32_t) slot);
		if (known.hash == hash && known.common == pairs->common[i] &&
			(known.common == 1 ||
			 gj_intersection_same(w->family, pairs->left[i], pairs->right[i], &known)))
			return (uint32_t) s;
	}
}

/* The hashes of pairs first .. end-1. */
static inline void
gj_intersections_hash(const GjIntersectionsWork *w, uint32_t first, uint32_t end)
{
	const GjSetFamily *family = w->family;
	const GjFoundPairs *pairs = w->pairs;
	GjLeftBits	left;

	memset(&left, 0, sizeof(left));
	left.left = UINT32_MAX;
	for (uint32_t i = first; i < end; i++)
	{
		uint32_t	common = pairs->common[i];

		if (pairs->left[i] != left.left)
			gj_left_take(&left, family, pairs, i, end);
		pairs->hash[i] = left.made ?
			gj_left_hash(&left,
						 gj_set_codes(family, (uint64_t) family->first_right + pairs->right[i]),
						 common) :
			gj_intersection_hash_pair(family, pairs->left[i], pairs->right[i], common);
	}
}

/* Slots are asked for so many pairs ahead: they are anywhere in memory. */
#define GJ_SLOTS_AHEAD		12

static void
gj_intersections_find_item(void *arg, uint32_t item)
{
	const GjIntersectionsWork *w = arg;
	const GjFoundPairs *pairs = w->pairs;
	uint32_t	first = item * GJ_INTERSECTIONS_ITEM;
	uint32_t	end = gj_set_least(pairs->n - first, GJ_INTERSECTIONS_ITEM) + first;

	gj_intersections_hash(w, first, end);
	for (uint32_t i = first; i < end; i++)
	{
		if (i + GJ_SLOTS_AHEAD < end)
			__builtin_prefetch(&w->found->slots
							   [gj_intersection_place(pairs->hash[i + GJ_SLOTS_AHEAD],
													  w->found->nslots)]);
		pairs->slot_of[i] = gj_intersection_wanted(w->found, pairs, i) ?
			gj_intersection_look_up(w, i) : GJ_NOT_LOOKED_UP;
	}
}

static inline GjStatus
gj_intersections_find(const GjSetHost *host, const GjSetFamily *family,
					  const GjIntersections *found, const GjFoundPairs *pairs, uint32_t *n)
{
	GjIntersectionsWork w = {.family = family,.found = found,.pairs = pairs};

	*n = 0;
	if (!host->run(host->arg, gj_intersections_items(pairs->n), gj_intersections_find_item, &w))
		return GJ_CANCELLED;
	for (uint32_t i = 0; i < pairs->n; i++)
		if (pairs->slot_of[i] != GJ_NOT_LOOKED_UP &&
			(uint32_t) found->slots[pairs->slot_of[i]] == found->n + i)
			pairs->positions[(*n)++] = i;
	return GJ_OK;
}

static inline void
gj_intersections_add(const GjIntersections *found, const GjFoundPairs *pairs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		gj_intersection_store(found, found->n + i, pairs, pairs->positions[i]);
	for (uint32_t i = 0; i < pairs->n; i++)
		if (pairs->slot_of[i] != GJ_NOT_LOOKED_UP)
			found->frequency[(uint32_t) found->slots[pairs->slot_of[i]]]++;
}

#endif							/* GJ_DEVICE_SET_INTERSECTIONS_H */
