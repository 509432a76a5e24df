/*
 * sorted_set_width.h
 *	  The part of sorted_set.c that depends on the width of the values.  Included once
 *	  a width, with GJ_VALUE, GJ_UVALUE and GJ_NAME defined; undefines them.
 */
#include "merge_path_width.h"

/* Sorts one run in place. */
static void
GJ_NAME(sort_item) (void *arg, uint32_t item, const GjTile *tile)
{
	const GjSortWork *w = arg;
	uint64_t	begin = item * w->run;

	if (begin < w->n)
		gj_integers_sort(sizeof(GJ_VALUE), (GJ_VALUE *) w->from + begin, (GJ_VALUE *) w->to + begin,
						 w->n - begin < w->run ? w->n - begin : w->run);
}

/* Merges output values item * GJ_SET_ITEM .. of a round, which may span pairs of runs. */
static void
GJ_NAME(merge_item) (void *arg, uint32_t item, const GjTile *tile)
{
	const GjSortWork *w = arg;
	uint64_t	at = (uint64_t) item * GJ_SET_ITEM;
	uint64_t	end = w->n - at < GJ_SET_ITEM ? w->n : at + GJ_SET_ITEM;

	while (at < end)
	{
		uint64_t	start = at / (w->run * 2) * (w->run * 2);
		uint64_t	left = w->n - start;
		uint64_t	na = left < w->run ? left : w->run;
		uint64_t	nb = left - na < w->run ? left - na : w->run;
		uint64_t	stop = start + na + nb < end ? start + na + nb : end;
		const GJ_VALUE *a = (const GJ_VALUE *) w->from + start;
		const GJ_VALUE *b = a + na;
		uint64_t	i = GJ_NAME(merge_path) (a, na, b, nb, at - start);
		uint64_t	j = at - start - i;
		GJ_VALUE   *to = w->to;

		for (; at < stop; at++)
			to[at] = j >= nb || (i < na && a[i] <= b[j]) ? a[i++] : b[j++];
	}
}

static uint64_t
GJ_NAME(unique) (void *memory, uint64_t n)
{
	GJ_VALUE   *values = memory;
	uint64_t	m = n > 0 ? 1 : 0;

	for (uint64_t i = 1; i < n; i++)
		if (values[i] != values[m - 1])
			values[m++] = values[i];
	return m;
}

static const GjSortOps GJ_NAME(sort_ops) = {
	GJ_NAME(sort_item),
	GJ_NAME(merge_item),
	GJ_NAME(unique)
};

#undef GJ_VALUE
#undef GJ_UVALUE
#undef GJ_NAME
