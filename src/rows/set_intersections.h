/*
 * set_intersections.h
 *	  Distinct intersections of a family's pairs, in plain C: what the cpu device runs on its
 *	  threads, and a session in its own process where there is no device.
 *
 * See intersections_find and its kin in src/daemon/device.h for what the functions do.
 */
#ifndef GJ_ROWS_SET_INTERSECTIONS_H
#define GJ_ROWS_SET_INTERSECTIONS_H

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

		while (found->slots[s] != GJ_NO_INTERSECTION)
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

static inline uint64_t
gj_intersection_hash_pair(const GjSetFamily *family, uint32_t left, uint32_t right)
{
	GjCodes		sets[2];
	uint64_t	hash = 0;
	uint64_t	j = 0;

	gj_intersection_sets(family, left, right, sets);
	if (sets[1].n / GJ_INTERSECTION_SKEW < sets[0].n)
	{
		for (uint64_t i = 0; i < sets[0].n && j < sets[1].n;)
		{
			uint32_t	x = sets[0].at[i];
			uint32_t	y = sets[1].at[j];

			if (x == y)
				hash += gj_intersection_hash(x);
			i += x <= y;
			j += y <= x;
		}
		return hash;
	}
	for (uint64_t i = 0; i < sets[0].n; i++)
	{
		j = gj_codes_from(sets[1], j, sets[0].at[i]);
		if (j < sets[1].n && sets[1].at[j] == sets[0].at[i])
			hash += gj_intersection_hash(sets[0].at[i]);
	}
	return hash;
}

/* Two intersections of as many elements: do both sets of the second have those of the first? */
static inline bool
gj_intersection_same(const GjSetFamily *family, uint32_t left, uint32_t right, const GjKnownPair *known)
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
		if (slot == GJ_NO_INTERSECTION &&
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

static void
gj_intersections_find_item(void *arg, uint32_t item)
{
	const GjIntersectionsWork *w = arg;
	const GjFoundPairs *pairs = w->pairs;
	uint32_t	i = item * GJ_INTERSECTIONS_ITEM;
	uint32_t	end = gj_set_least(pairs->n - i, GJ_INTERSECTIONS_ITEM) + i;

	for (; i < end; i++)
	{
		pairs->slot_of[i] = GJ_NOT_LOOKED_UP;
		if (pairs->common[i] == 0)
			continue;
		pairs->hash[i] = gj_intersection_hash_pair(w->family, pairs->left[i], pairs->right[i]);
		if (gj_intersection_wanted(w->found, pairs->common[i], pairs->hash[i]))
			pairs->slot_of[i] = gj_intersection_look_up(w, i);
	}
}

static inline GjStatus
gj_intersections_find(const GjSetHost *host, const GjSetFamily *family, const GjIntersections *found,
					  const GjFoundPairs *pairs, uint32_t *n)
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

#endif							/* GJ_ROWS_SET_INTERSECTIONS_H */
