/*
 * similarity.h
 *	  What the similarity of two sets means, and which pairs a set join keeps.
 *
 * All of it follows from three numbers: the elements that both sets have, and the sizes of
 * the sets.  Two empty sets are equal, so their similarity is 1; that of an empty set and
 * one with elements is 0.
 */
#ifndef GJ_ROWS_SIMILARITY_H
#define GJ_ROWS_SIMILARITY_H

#ifndef __CUDACC__
#include <math.h>
#endif

#include "wire/sets.h"
#include "primitives.h"

/* predicate: one of the similarities; all others mean the Jaccard index. */
GJ_FN double
gj_set_similarity(uint32_t predicate, uint64_t common, uint64_t na, uint64_t nb)
{
	const double c = (double) common;

	if (na == 0 || nb == 0)
		return na == nb ? 1.0 : 0.0;
	switch (predicate)
	{
		case GJ_SETS_COSINE:
			return c / sqrt((double) na * (double) nb);
		case GJ_SETS_DICE:
			return 2.0 * c / (double) (na + nb);
		case GJ_SETS_OVERLAP_COEFFICIENT:
		case GJ_SETS_CONTAINMENT:
			return c / (double) (na < nb ? na : nb);
		default:
			return c / (double) (na + nb - common);
	}
}

/* Is the pair wanted?  Never true for fewer common elements and false for more. */
GJ_FN bool
gj_set_matches(uint32_t predicate, double threshold, uint64_t common, uint64_t na, uint64_t nb)
{
	switch (predicate)
	{
		case GJ_SETS_OVERLAP:
			return (double) common >= threshold;
		case GJ_SETS_CONTAINS:
			return common == nb;
		case GJ_SETS_CONTAINED:
			return common == na;
		case GJ_SETS_EQUALS:
			return common == na && na == nb;
		case GJ_SETS_ALL:
			return true;
		default:
			return gj_set_similarity(predicate, common, na, nb) >= threshold;
	}
}

/* The size filter: could a pair of these sizes be wanted at all? */
GJ_FN bool
gj_set_possible(uint32_t predicate, double threshold, uint64_t na, uint64_t nb)
{
	return gj_set_matches(predicate, threshold, na < nb ? na : nb, na, nb);
}

/*
 * `found` elements are common to both sets, and `head` more of one set were not looked at: could
 * the pair be wanted?
 */
GJ_FN bool
gj_set_worth_head(uint32_t predicate, double threshold, uint64_t found, uint64_t head, uint64_t na,
				  uint64_t nb)
{
	const uint64_t smaller = na < nb ? na : nb;
	const uint64_t most = found + head < smaller ? found + head : smaller;

	return gj_set_matches(predicate, threshold, most, na, nb);
}

/*
 * The least number of common elements that makes a pair wanted of a set of n and, if `equal`, one
 * of n as well, else one that has no others; `high` if it is not less.
 */
GJ_FN uint64_t
gj_set_least_common(uint32_t predicate, double threshold, uint64_t n, bool equal, uint64_t high)
{
	uint64_t	low = 0;

	while (low < high)
	{
		const uint64_t mid = low + (high - low) / 2;

		if (gj_set_matches(predicate, threshold, mid, n, equal ? n : mid))
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/*
 * The least number of elements that a set of n must have in common with any other, for the
 * pair to be wanted; n + 1 if no pair of it is.
 */
GJ_FN uint64_t
gj_set_min_common(uint32_t predicate, double threshold, uint64_t n)
{
	/* for so many common elements, the smallest other set is the best */
	return gj_set_least_common(predicate, threshold, n, false, n + 1);
}

/* Of sets of n, the least number of common elements that makes a pair of two wanted; n: or none. */
GJ_FN uint64_t
gj_set_common_of_equals(uint32_t predicate, double threshold, uint64_t n)
{
	return gj_set_least_common(predicate, threshold, n, true, n);
}

/* The share of numbers that are at least `least`, if they are spread as rare events are. */
GJ_FN double
gj_set_share_from(double average, uint64_t least)
{
	double		term = exp(-average);
	double		below = 0;

	for (uint64_t i = 0; i < least && i < 1000; i++)
	{
		below += term;
		term *= average / (double) (i + 1);
	}
	return below < 1 ? 1 - below : 0;
}

/* What gpu_set_topk ranks by. */
GJ_FN double
gj_set_score(uint32_t metric, uint64_t common, uint64_t na, uint64_t nb)
{
	return metric == GJ_SETS_OVERLAP ? (double) common : gj_set_similarity(metric, common, na, nb);
}

#endif							/* GJ_ROWS_SIMILARITY_H */
