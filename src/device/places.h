/*
 * places.h
 *	  Groups that are found by their place (GjPlaces): which place a group has, and which group is at
 *	  a place.
 */
#ifndef GJ_DEVICE_PLACES_H
#define GJ_DEVICE_PLACES_H

#include "fused_rows.h"

/* The place of a row of group keys, which are within the bounds. */
GJ_FN uint32_t
gj_place_of_group(const GjPlaces *places, const GjGroupRows *rows, uint32_t g)
{
	uint32_t	place = 0;

	for (uint32_t k = 0; k < places->nkeys; k++)
	{
		uint32_t	number = places->numbers[k];

		if (!(rows->null[g] >> k & 1))
			number = (uint32_t) ((uint64_t) rows->value[k][g] - (uint64_t) places->low[k]);
		place = place * (places->numbers[k] + 1) + number;
	}
	return place;
}

/* Makes group g that of a place: keys, nulls, hash. */
GJ_FN void
gj_place_store_keys(const GjPlaces *places, uint32_t place, const GjGroupRows *rows, uint32_t g)
{
	uint32_t	number[GJ_PLACE_KEYS] = {0};
	uint32_t	status = GJ_OK;
	uint32_t	nulls = 0;
	uint64_t	hash = 0;

	for (uint32_t k = places->nkeys; k-- > 1;)
	{
		number[k] = place % (places->numbers[k] + 1);
		place /= places->numbers[k] + 1;
	}
	number[0] = place;
	for (uint32_t k = 0; k < places->nkeys; k++)
	{
		bool		null = number[k] == places->numbers[k];
		int64_t		value = null ? 0 : (int64_t) ((uint64_t) places->low[k] + number[k]);

		rows->value[k][g] = value;
		nulls |= (uint32_t) null << k;
		hash = gj_group_add_key(hash, k, GJ_GROUP_INTEGER, null, value, NULL, &status);
	}
	rows->null[g] = nulls;
	rows->hash[g] = hash;
}

/*
 * Sets the places of keys whose least and greatest values are known; low > high: all are NULL.
 * False: there would be more than `most`.
 */
static inline bool
gj_places_set(GjPlaces *places, const int64_t *low, const int64_t *high, uint64_t most)
{
	uint64_t	nplaces = 1;

	if (most > INT32_MAX)
		most = INT32_MAX;
	for (uint32_t k = 0; k < places->nkeys; k++)
	{
		uint64_t	span = low[k] <= high[k] ? (uint64_t) high[k] - (uint64_t) low[k] : 0;

		if (span >= INT32_MAX || nplaces * (span + 2) > most)
			return false;
		places->low[k] = low[k] <= high[k] ? low[k] : 0;
		places->numbers[k] = (uint32_t) span + 1;
		nplaces *= span + 2;
	}
	places->nplaces = (uint32_t) nplaces;
	return true;
}

/* True if the plan's groups are made by integers that are columns of the probe source. */
static inline bool
gj_places_suit(const GjFusedPlan *plan, const GjGroups *groups)
{
	if (plan->nsteps > 0 || plan->ngroup_keys == 0 || plan->ngroup_keys > GJ_PLACE_KEYS ||
		groups->rows.nkeys != plan->ngroup_keys || groups->rows.ndependent > 0)
		return false;
	for (uint32_t k = 0; k < plan->ngroup_keys; k++)
	{
		const GjFusedExpr *e = &plan->exprs[plan->group_expr[k]];

		if (plan->group_how[k] != GJ_GROUP_INTEGER || e->form != GJ_FUSED_SIMPLE ||
			e->op != GJ_OP_LOAD || e->a < 0 || e->slot_a != 0)
			return false;
	}
	return true;
}

#endif							/* GJ_DEVICE_PLACES_H */
