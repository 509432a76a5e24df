/*
 * set_pair_width.h
 *	  The part of set_pair.c that depends on the width of the values.  Included once a
 *	  width, with GJ_VALUE, GJ_UVALUE and GJ_NAME defined; undefines them.
 *
 * An item's function counts (w->result is NULL) into w->at[item], or writes from there on.
 */
#include "merge_path_width.h"

/* Where a range of the merged order is cut: behind a value of a, and behind its equal of b. */
static void
GJ_NAME(cut) (const GjPairWork *w, uint64_t diagonal, uint64_t *i, uint64_t *j)
{
	const GJ_VALUE *a = w->a;
	const GJ_VALUE *b = w->b;

	*i = GJ_NAME(merge_path) (a, w->na, b, w->nb, diagonal);
	*j = diagonal - *i;
	if (*i > 0 && *j < w->nb && b[*j] == a[*i - 1])
		(*j)++;
}

/* What is written goes through memory of the item's own: others write behind its part. */
static void
GJ_NAME(pair_merge_item) (void *arg, uint32_t item, const GjTile *tile)
{
	const GjPairWork *w = arg;
	uint64_t	total = w->na + w->nb;
	uint64_t	at = item * w->piece;
	uint64_t	stop = total - at < w->piece ? total : at + w->piece;
	GJ_VALUE	part[GJ_PAIR_PIECE + 2 + GJ_INTEGERS_SLACK / sizeof(GJ_VALUE)];
	GJ_VALUE   *to = w->result ? (GJ_VALUE *) w->result + w->at[item] : NULL;
	uint64_t	count = 0;
	uint64_t	i,
				j,
				i_end,
				j_end;

	GJ_NAME(cut) (w, at, &i, &j);
	for (; at < stop; i = i_end, j = j_end)
	{
		uint64_t	n;

		at = stop - at < GJ_PAIR_PIECE ? stop : at + GJ_PAIR_PIECE;
		GJ_NAME(cut) (w, at, &i_end, &j_end);
		n = gj_integers_combine(sizeof(GJ_VALUE), w->operation, (const GJ_VALUE *) w->a + i,
								i_end - i, (const GJ_VALUE *) w->b + j, j_end - j,
								to ? part : NULL);
		if (to)
			memcpy(to + count, part, n * sizeof(GJ_VALUE));
		count += n;
	}
	if (!to)
		w->at[item] = count;
}

/* The first value of b[low .. n) that is not less than v: doubling steps, then halving. */
static uint64_t
GJ_NAME(gallop) (const GJ_VALUE *b, uint64_t low, uint64_t n, GJ_VALUE v)
{
	uint64_t	step = 1;
	uint64_t	high = low;

	while (high < n && b[high] < v)
	{
		low = high + 1;
		high += step;
		step *= 2;
	}
	if (high > n)
		high = n;
	while (low < high)
	{
		uint64_t	mid = low + (high - low) / 2;

		if (b[mid] < v)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void
GJ_NAME(search_item) (void *arg, uint32_t item, const GjTile *tile)
{
	const GjPairWork *w = arg;
	const GJ_VALUE *a = w->a;
	const GJ_VALUE *b = w->b;
	uint64_t	i = item * w->piece;
	uint64_t	end = w->na - i < w->piece ? w->na : i + w->piece;
	GJ_VALUE   *to = w->result ? (GJ_VALUE *) w->result + w->at[item] : NULL;
	uint64_t	j = GJ_NAME(gallop) (b, 0, w->nb, a[i]);
	uint64_t	count = 0;

	for (; i < end && j < w->nb; i++)
	{
		if (b[j] < a[i])
			j = GJ_NAME(gallop) (b, j, w->nb, a[i]);
		if (j == w->nb || b[j] != a[i])
			continue;
		if (to)
			to[count] = a[i];
		count++;
	}
	if (!to)
		w->at[item] = count;
}

/* A bitmap on the fly of the values of a in one window after the other; values of b look there. */
static void
GJ_NAME(bitmap_item) (void *arg, uint32_t item, const GjTile *tile)
{
	const GjPairWork *w = arg;
	const GJ_VALUE *a = w->a;
	const GJ_VALUE *b = w->b;
	uint64_t	i = item * w->piece;
	uint64_t	end = w->na - i < w->piece ? w->na : i + w->piece;
	GJ_VALUE   *to = w->result ? (GJ_VALUE *) w->result + w->at[item] : NULL;
	uint64_t	j = 0;
	uint64_t	count = 0;
	uint64_t	bits[GJ_PAIR_WINDOW / 64];

	while (i < end && j < w->nb)
	{
		GJ_UVALUE	base = (GJ_UVALUE) a[i];
		uint64_t	last = 0;

		memset(bits, 0, sizeof(bits));
		for (; i < end; i++)
		{
			uint64_t	bit = (GJ_UVALUE) ((GJ_UVALUE) a[i] - base);

			if (bit >= GJ_PAIR_WINDOW)
				break;
			bits[bit / 64] |= UINT64_C(1) << (bit % 64);
			last = bit;
		}
		for (j = GJ_NAME(gallop) (b, j, w->nb, (GJ_VALUE) base); j < w->nb; j++)
		{
			uint64_t	bit = (GJ_UVALUE) ((GJ_UVALUE) b[j] - base);

			if (bit > last)
				break;
			if (!(bits[bit / 64] >> (bit % 64) & 1))
				continue;
			if (to)
				to[count] = b[j];
			count++;
		}
	}
	if (!to)
		w->at[item] = count;
}

static uint64_t
GJ_NAME(slot) (const GjPairWork *w, GJ_VALUE v)
{
	return ((uint64_t) (GJ_UVALUE) v * UINT64_C(0x9E3779B97F4A7C15) >> 20) & w->mask;
}

static void
GJ_NAME(hash_build) (GjPairWork *w)
{
	const GJ_VALUE *b = w->b;

	for (uint64_t j = 0; j < w->nb; j++)
	{
		uint64_t	s = GJ_NAME(slot) (w, b[j]);

		while (w->table[s] != 0)
			s = (s + 1) & w->mask;
		w->table[s] = j + 1;
	}
}

static void
GJ_NAME(hash_item) (void *arg, uint32_t item, const GjTile *tile)
{
	const GjPairWork *w = arg;
	const GJ_VALUE *a = w->a;
	const GJ_VALUE *b = w->b;
	uint64_t	i = item * w->piece;
	uint64_t	end = w->na - i < w->piece ? w->na : i + w->piece;
	GJ_VALUE   *to = w->result ? (GJ_VALUE *) w->result + w->at[item] : NULL;
	uint64_t	count = 0;

	for (; i < end; i++)
	{
		uint64_t	s = GJ_NAME(slot) (w, a[i]);

		while (w->table[s] != 0 && b[w->table[s] - 1] != a[i])
			s = (s + 1) & w->mask;
		if (w->table[s] == 0)
			continue;
		if (to)
			to[count] = a[i];
		count++;
	}
	if (!to)
		w->at[item] = count;
}

static const GjPairOps GJ_NAME(pair_ops) = {
	GJ_NAME(pair_merge_item),
	GJ_NAME(search_item),
	GJ_NAME(bitmap_item),
	GJ_NAME(hash_item),
	GJ_NAME(hash_build)
};

#undef GJ_VALUE
#undef GJ_UVALUE
#undef GJ_NAME
