/*
 * sort_width.h
 *	  The part of integers.c that sorts.  Included once a width, with GJ_VALUE, GJ_UVALUE and
 *	  GJ_NAME defined.
 */

/* A set in memory of somebody else. */
typedef struct GJ_NAME(GjSet)
{
	const GJ_VALUE *at;
	uint64_t	n;
} GJ_NAME(GjSet);

/* Counts the values of each digit of `bits` bits of what exceeds `least`. */
static void
GJ_NAME(count_digits) (const GJ_VALUE *at, uint64_t n, GJ_VALUE least, uint32_t bits,
					   uint32_t ndigits, uint32_t counts[][1 << GJ_DIGIT_BITS],
					   const GjIntegersHost *host)
{
	const uint32_t mask = (1u << bits) - 1;

	for (uint32_t d = 0; d < ndigits; d++)
		memset(counts[d], 0, sizeof(uint32_t) << bits);
	for (uint64_t start = 0; start < n; start += GJ_PAUSE)
	{
		uint64_t	end = least_of(start + GJ_PAUSE, n);

		for (uint64_t i = start; i < end; i++)
		{
			uint64_t	key = (GJ_UVALUE) ((GJ_UVALUE) at[i] - (GJ_UVALUE) least);

			for (uint32_t d = 0; d < ndigits; d++)
				counts[d][key >> (d * bits) & mask]++;
		}
		pause_for(host);
	}
}

/* Moves elements to where a digit says; counts become places. */
static void
GJ_NAME(scatter) (const GJ_VALUE *from, GJ_VALUE *to, uint64_t n, GJ_VALUE least, uint32_t shift,
				  uint32_t bits, uint32_t *counts, const GjIntegersHost *host)
{
	const uint32_t mask = (1u << bits) - 1;
	uint32_t	sum = 0;

	for (uint32_t i = 0; i <= mask; i++)
	{
		uint32_t	count = counts[i];

		counts[i] = sum;
		sum += count;
	}
	for (uint64_t start = 0; start < n; start += GJ_PAUSE)
	{
		uint64_t	end = least_of(start + GJ_PAUSE, n);

		for (uint64_t i = start; i < end; i++)
		{
			uint64_t	key = (GJ_UVALUE) ((GJ_UVALUE) from[i] - (GJ_UVALUE) least);

			to[counts[key >> shift & mask]++] = from[i];
		}
		pause_for(host);
	}
}

/*
 * Sorts n > 0 elements, least significant digit first.  Only bits in which elements can differ
 * count, and they are shared out evenly to the digits.  The result is in `one`, in `two`, or,
 * if all are equal, where it was, which may be `one`.
 */
static const GJ_VALUE *
GJ_NAME(radix_sort) (const GjIntegersLoops *loops, const GJ_VALUE *from, uint64_t n, GJ_VALUE *one,
					 GJ_VALUE *two, const GjIntegersHost *host)
{
	uint32_t	counts[GJ_MAX_DIGITS][1 << GJ_DIGIT_BITS];
	int64_t		least;
	int64_t		greatest;
	uint64_t	span;
	uint32_t	all_bits;
	uint32_t	ndigits;
	uint32_t	bits;

	loops->bounds(from, n, &least, &greatest);
	span = (uint64_t) greatest - (uint64_t) least;
	if (span == 0)
		return from;
	all_bits = 64 - (uint32_t) __builtin_clzll(span);
	ndigits = (all_bits + GJ_DIGIT_BITS - 1) / GJ_DIGIT_BITS;
	bits = (all_bits + ndigits - 1) / ndigits;
	GJ_NAME(count_digits) (from, n, (GJ_VALUE) least, bits, ndigits, counts, host);
	for (uint32_t d = 0; d < ndigits; d++)
	{
		GJ_VALUE   *to = from == one ? two : one;

		GJ_NAME(scatter) (from, to, n, (GJ_VALUE) least, d * bits, bits, counts[d], host);
		from = to;
	}
	return from;
}

/*
 * Makes a set of at most GJ_MERGE_MAX elements: of sets of few, and of these pair by pair.  It is
 * in `one` or in `two`.
 */
static GJ_NAME(GjSet)
GJ_NAME(merge_sort) (const GjIntegersLoops *loops, const GJ_VALUE *from, uint64_t n, GJ_VALUE *one,
					 GJ_VALUE *two)
{
	uint64_t	sizes[GJ_MERGE_MAX / GJ_INTEGERS_FEW];
	uint64_t	nsets = 0;

	for (uint64_t i = 0; i < n; i += GJ_INTEGERS_FEW)
		sizes[nsets++] = loops->few(one + i, from + i, least_of(n - i, GJ_INTEGERS_FEW));
	for (uint64_t apart = GJ_INTEGERS_FEW; nsets > 1; apart *= 2)
	{
		GJ_VALUE   *swap = one;
		uint64_t	nunited = 0;

		for (uint64_t s = 0; s < nsets; s += 2)
			sizes[nunited++] = loops->unite(one + s * apart, sizes[s], one + (s + 1) * apart,
											s + 1 < nsets ? sizes[s + 1] : 0, two + s * apart);
		nsets = nunited;
		one = two;
		two = swap;
	}
	return (GJ_NAME(GjSet)) {one, sizes[0]};
}

/*
 * Makes a set of n > 0 elements in any order.  It is in `one`, in `two`, or where it was, if it
 * was one.  Elements at `one` may be those that are given.
 */
static GJ_NAME(GjSet)
GJ_NAME(make_set) (const GjIntegersLoops *loops, const GJ_VALUE *from, uint64_t n, GJ_VALUE *one,
				   GJ_VALUE *two, const GjIntegersHost *host)
{
	const GJ_VALUE *sorted = from;

	if (loops->is_set(from, n))
		return (GJ_NAME(GjSet)) {from, n};
	if (n <= GJ_INTEGERS_FEW)
		return (GJ_NAME(GjSet)) {one, loops->few(one, from, n)};
	if (!loops->is_sorted(from, n))
	{
		if (n <= GJ_MERGE_MAX)
			return GJ_NAME(merge_sort) (loops, from, n, one, two);
		sorted = GJ_NAME(radix_sort) (loops, from, n, one, two, host);
	}
	if (sorted == two)
		one = two;
	return (GJ_NAME(GjSet)) {one, loops->unique(one, sorted, n)};
}

static bool
GJ_NAME(make_set_in_place) (const GjIntegersLoops *loops, GJ_VALUE *elements, uint64_t *n,
							const GjIntegersHost *host)
{
	GJ_VALUE   *spare;
	GJ_NAME(GjSet) set;

	if (*n <= GJ_INTEGERS_FEW)
	{
		if (!loops->is_set(elements, *n))
			*n = loops->few(elements, elements, *n);
		return true;
	}
	if (loops->is_set(elements, *n))
		return true;
	if (*n <= GJ_MERGE_MAX)
	{
		GJ_VALUE	other[GJ_MERGE_MAX + GJ_INTEGERS_SLACK / sizeof(GJ_VALUE)];

		set = GJ_NAME(make_set) (loops, elements, *n, elements, other, host);
		if (set.at != elements)
			memcpy(elements, set.at, sizeof(GJ_VALUE) * set.n);
		*n = set.n;
		return true;
	}
	spare = host->allocate(buffer_size(sizeof(GJ_VALUE), *n));
	if (!spare)
		return false;
	set = GJ_NAME(make_set) (loops, elements, *n, elements, spare, host);
	if (set.at != elements)
		memcpy(elements, set.at, sizeof(GJ_VALUE) * set.n);
	host->release(spare);
	*n = set.n;
	return true;
}

static void
GJ_NAME(sort_in_place) (const GjIntegersLoops *loops, GJ_VALUE *elements, GJ_VALUE *spare,
						uint64_t n)
{
	const GJ_VALUE *sorted;

	if (loops->is_sorted(elements, n))
		return;
	sorted = GJ_NAME(radix_sort) (loops, elements, n, elements, spare, NULL);
	if (sorted != elements)
		memcpy(elements, sorted, sizeof(GJ_VALUE) * n);
}
