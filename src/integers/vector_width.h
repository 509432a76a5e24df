/*
 * vector_width.h
 *	  The loops by vector instructions.  Included once for each kind of them and each width,
 *	  with these macros defined (and undefined here):
 *
 *	GJ_TARGET			attributes of functions that use the instructions
 *	GJ_VECTOR			type of a vector
 *	GJ_LANES			elements of a vector
 *	GJ_VALUE			int32_t or int64_t
 *	GJ_LEAST, GJ_GREATEST	the ends of its range
 *	GJ_NAME(name)		name with a suffix
 *
 * and with these functions, where lane i of a mask is bit i:
 *
 *	load(at)				a vector from memory
 *	load_some(at, n, pad)	n < GJ_LANES elements and `pad` in the other lanes; reads no more
 *	store(to, x)
 *	all(value)				`value` in all lanes
 *	equal_any(x, y)			mask: lanes of x that are equal to any of y
 *	less(x, y)				mask: lanes of x that are less than those of y
 *	least(x, y), greatest(x, y)
 *	store_lanes(to, x, mask)	writes the lanes of the mask side by side; may write GJ_LANES
 *	next_to(before, x)		the last lane of `before`, and all of x but its last lane
 *	merge(&x, &y)			two sorted vectors become one sorted sequence
 *
 * A last vector that is not full is filled up with elements that it has: equal ones are found
 * once, or removed as duplicates.
 */

#define GJ_ALL_LANES	((uint32_t) ((UINT64_C(1) << GJ_LANES) - 1))

GJ_INLINE GJ_TARGET uint64_t
GJ_NAME(block) (uint64_t left)
{
	return left < GJ_LANES ? left : GJ_LANES;
}

/* A vector of n elements that the caller has cut by block(). */
GJ_INLINE GJ_TARGET GJ_VECTOR
GJ_NAME(load_block) (const GJ_VALUE *at, uint64_t n, GJ_VALUE pad)
{
	return n == GJ_LANES ? GJ_NAME(load) (at) : GJ_NAME(load_some) (at, n, pad);
}

static GJ_TARGET bool
GJ_NAME(is_set) (const void *memory, uint64_t n)
{
	const GJ_VALUE *at = memory;
	uint64_t	i = 0;

	if (n < 2)
		return true;
	for (; i + GJ_LANES < n; i += GJ_LANES)
		if (GJ_NAME(less) (GJ_NAME(load) (at + i), GJ_NAME(load) (at + i + 1)) != GJ_ALL_LANES)
			return false;
	if (i + 1 == n)
		return true;
	return GJ_NAME(less) (GJ_NAME(load_some) (at + i, n - 1 - i, GJ_LEAST),
						  GJ_NAME(load_some) (at + i + 1, n - 1 - i, GJ_GREATEST)) == GJ_ALL_LANES;
}

static GJ_TARGET bool
GJ_NAME(is_sorted) (const void *memory, uint64_t n)
{
	const GJ_VALUE *at = memory;
	uint64_t	i = 0;

	if (n < 2)
		return true;
	for (; i + GJ_LANES < n; i += GJ_LANES)
		if (GJ_NAME(less) (GJ_NAME(load) (at + i + 1), GJ_NAME(load) (at + i)) != 0)
			return false;
	if (i + 1 == n)
		return true;
	return GJ_NAME(less) (GJ_NAME(load_some) (at + i + 1, n - 1 - i, GJ_GREATEST),
						  GJ_NAME(load_some) (at + i, n - 1 - i, GJ_LEAST)) == 0;
}

static GJ_TARGET void
GJ_NAME(bounds) (const void *memory, uint64_t n, int64_t *least, int64_t *greatest)
{
	const GJ_VALUE *at = memory;
	GJ_VECTOR	low = GJ_NAME(all) (at[0]);
	GJ_VECTOR	high = low;
	GJ_VALUE	lows[GJ_LANES];
	GJ_VALUE	highs[GJ_LANES];

	for (uint64_t i = 0; i < n; i += GJ_LANES)
	{
		GJ_VECTOR	x = GJ_NAME(load_block) (at + i, GJ_NAME(block) (n - i), at[i]);

		low = GJ_NAME(least) (low, x);
		high = GJ_NAME(greatest) (high, x);
	}
	GJ_NAME(store) (lows, low);
	GJ_NAME(store) (highs, high);
	*least = lows[0];
	*greatest = highs[0];
	for (int i = 1; i < GJ_LANES; i++)
	{
		*least = lows[i] < *least ? lows[i] : *least;
		*greatest = highs[i] > *greatest ? highs[i] : *greatest;
	}
}

/* Writes what differs from the lane before it; returns where to write next. */
GJ_INLINE GJ_TARGET GJ_VALUE *
GJ_NAME(store_different) (GJ_VALUE *to, GJ_VECTOR before, GJ_VECTOR x)
{
	return GJ_NAME(store_lanes) (to, x, GJ_NAME(less) (GJ_NAME(next_to) (before, x), x));
}

static GJ_TARGET uint64_t
GJ_NAME(unique) (void *to_memory, const void *from_memory, uint64_t n)
{
	GJ_VALUE   *to = to_memory;
	const GJ_VALUE *from = from_memory;
	GJ_VECTOR	before;

	if (n == 0)
		return 0;
	/* nothing is less than the first one, which is no duplicate */
	before = GJ_NAME(all) (from[0]);
	*to++ = from[0];
	for (uint64_t i = 1; i < n; i += GJ_LANES)
	{
		uint64_t	size = GJ_NAME(block) (n - i);
		GJ_VECTOR	x = GJ_NAME(load_block) (from + i, size, from[i + size - 1]);

		to = GJ_NAME(store_different) (to, before, x);
		before = x;
	}
	return (uint64_t) (to - (GJ_VALUE *) to_memory);
}

/*
 * Each element goes to the place that is the number of smaller ones; equal ones have one place.
 */
static GJ_TARGET uint64_t
GJ_NAME(few) (void *to_memory, const void *from_memory, uint64_t n)
{
	GJ_VALUE   *to = to_memory;
	const GJ_VALUE *from = from_memory;
	GJ_VECTOR	given[GJ_INTEGERS_FEW / GJ_LANES];
	GJ_VALUE	placed[GJ_INTEGERS_FEW];
	uint64_t	nvectors = 0;
	uint64_t	places = 0;
	uint64_t	left = 0;

	for (uint64_t i = 0; i < n; i += GJ_LANES)
		given[nvectors++] = GJ_NAME(load_block) (from + i, GJ_NAME(block) (n - i), GJ_GREATEST);
	for (uint64_t i = 0; i < n; i++)
	{
		GJ_VECTOR	x = GJ_NAME(all) (from[i]);
		uint32_t	smaller = 0;

		for (uint64_t j = 0; j < nvectors; j++)
			smaller += (uint32_t) __builtin_popcount(GJ_NAME(less) (given[j], x));
		placed[smaller] = from[i];
		places |= UINT64_C(1) << smaller;
	}
	for (; places != 0; places &= places - 1)
		to[left++] = placed[__builtin_ctzll(places)];
	return left;
}

static GJ_TARGET uint64_t
GJ_NAME(count_bits) (const uint64_t *words, uint64_t n)
{
	uint64_t	count = 0;

	for (uint64_t i = 0; i < n; i++)
		count += (uint32_t) __builtin_popcountll(words[i]);
	return count;
}

/*
 * All elements of a block of a are compared with all of a block of b.  Then the block that ends
 * first makes way for its next one, or both do.
 */
GJ_INLINE GJ_TARGET uint64_t
GJ_NAME(match) (const GJ_VALUE *a, uint64_t na, const GJ_VALUE *b, uint64_t nb, GJ_VALUE *to)
{
	uint64_t	i = 0;
	uint64_t	j = 0;
	uint64_t	count = 0;

	while (i < na && j < nb)
	{
		bool		full = na - i >= GJ_LANES && nb - j >= GJ_LANES;
		uint64_t	in_a = full ? GJ_LANES : GJ_NAME(block) (na - i);
		uint64_t	in_b = full ? GJ_LANES : GJ_NAME(block) (nb - j);
		GJ_VECTOR	x = full ? GJ_NAME(load) (a + i) : GJ_NAME(load_block) (a + i, in_a, a[i]);
		GJ_VECTOR	y = full ? GJ_NAME(load) (b + j) : GJ_NAME(load_block) (b + j, in_b, b[j]);
		GJ_VALUE	last_a = a[i + in_a - 1];
		GJ_VALUE	last_b = b[j + in_b - 1];
		uint32_t	found = GJ_NAME(equal_any) (x, y);

		if (!full)
			found &= (uint32_t) ((UINT64_C(1) << in_a) - 1);
		if (to)
			to = GJ_NAME(store_lanes) (to, x, found);
		count += (uint32_t) __builtin_popcount(found);
		i += last_a <= last_b ? in_a : 0;
		j += last_b <= last_a ? in_b : 0;
	}
	return count;
}

static GJ_TARGET uint64_t
GJ_NAME(count) (const void *a, uint64_t na, const void *b, uint64_t nb)
{
	return GJ_NAME(match) (a, na, b, nb, NULL);
}

static GJ_TARGET uint64_t
GJ_NAME(intersect) (const void *a, uint64_t na, const void *b, uint64_t nb, void *to)
{
	return GJ_NAME(match) (a, na, b, nb, to);
}

/* As match(), but a block of a is written when it makes way. */
static GJ_TARGET uint64_t
GJ_NAME(except) (const void *a_memory, uint64_t na, const void *b_memory, uint64_t nb, void *memory)
{
	const GJ_VALUE *a = a_memory;
	const GJ_VALUE *b = b_memory;
	GJ_VALUE   *to = memory;
	uint64_t	i = 0;
	uint64_t	j = 0;
	uint32_t	found = 0;		/* lanes of the block of a */

	while (i < na && j < nb)
	{
		uint64_t	in_a = GJ_NAME(block) (na - i);
		uint64_t	in_b = GJ_NAME(block) (nb - j);
		GJ_VECTOR	x = GJ_NAME(load_block) (a + i, in_a, a[i]);
		GJ_VECTOR	y = GJ_NAME(load_block) (b + j, in_b, b[j]);
		GJ_VALUE	last_a = a[i + in_a - 1];
		GJ_VALUE	last_b = b[j + in_b - 1];
		uint32_t	all = (uint32_t) ((UINT64_C(1) << in_a) - 1);

		found |= GJ_NAME(equal_any) (x, y);
		to = GJ_NAME(store_lanes) (to, x, last_a <= last_b ? ~found & all : 0);
		found = last_a <= last_b ? 0 : found;
		i += last_a <= last_b ? in_a : 0;
		j += last_b <= last_a ? in_b : 0;
	}
	if (i < na)
	{
		uint64_t	in_a = GJ_NAME(block) (na - i);

		to = GJ_NAME(store_lanes) (to, GJ_NAME(load_block) (a + i, in_a, a[i]),
								   ~found & (uint32_t) ((UINT64_C(1) << in_a) - 1));
		i += in_a;
		memcpy(to, a + i, sizeof(GJ_VALUE) * (na - i));
		to += na - i;
	}
	return (uint64_t) (to - (GJ_VALUE *) memory);
}

/*
 * The block whose first element is smaller is merged with the greater half of what was merged
 * before.  The smaller half of that is smaller than all that comes later.
 */
static GJ_TARGET uint64_t
GJ_NAME(unite) (const void *a_memory, uint64_t na, const void *b_memory, uint64_t nb, void *memory)
{
	const GJ_VALUE *a = a_memory;
	const GJ_VALUE *b = b_memory;
	GJ_VALUE   *to = memory;
	uint64_t	i = GJ_NAME(block) (na);
	uint64_t	j = GJ_NAME(block) (nb);
	GJ_VECTOR	low;
	GJ_VECTOR	high;
	GJ_VECTOR	before;

	if (na == 0 || nb == 0)
	{
		memcpy(to, na == 0 ? b : a, sizeof(GJ_VALUE) * (na + nb));
		return na + nb;
	}
	low = GJ_NAME(load_block) (a, i, a[i - 1]);
	high = GJ_NAME(load_block) (b, j, b[j - 1]);
	GJ_NAME(merge) (&low, &high);
	/* the first one is no duplicate, and nothing is less than it */
	*to++ = a[0] < b[0] ? a[0] : b[0];
	before = GJ_NAME(all) (to[-1]);
	to = GJ_NAME(store_different) (to, before, low);
	while (i < na || j < nb)
	{
		bool		both = i < na && j < nb;
		bool		take_a = both ? a[i] <= b[j] : i < na;
		const GJ_VALUE *from = take_a ? a + i : b + j;
		uint64_t	size = GJ_NAME(block) (take_a ? na - i : nb - j);

		before = low;
		low = GJ_NAME(load_block) (from, size, from[size - 1]);
		i += take_a ? size : 0;
		j += take_a ? 0 : size;
		GJ_NAME(merge) (&low, &high);
		to = GJ_NAME(store_different) (to, before, low);
	}
	to = GJ_NAME(store_different) (to, low, high);
	return (uint64_t) (to - (GJ_VALUE *) memory);
}

#undef GJ_ALL_LANES
#undef GJ_VECTOR
#undef GJ_LANES
#undef GJ_VALUE
#undef GJ_LEAST
#undef GJ_GREATEST
#undef GJ_NAME
