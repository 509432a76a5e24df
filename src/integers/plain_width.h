/*
 * plain_width.h
 *	  The part of plain.c that depends on the width of the elements.  Included once a width,
 *	  with GJ_VALUE, GJ_UVALUE, GJ_GREATEST and GJ_NAME defined; undefines them.
 *
 * Loops that choose between two arrays have no branch that depends on the elements.
 */

/* Elements between looks at whether a check has failed already. */
#define GJ_CHECKED	64

/* `strict` is a constant wherever this is called. */
GJ_INLINE bool
GJ_NAME(in_order) (const GJ_VALUE *at, uint64_t n, bool strict)
{
	for (uint64_t i = 0; i + 1 < n;)
	{
		uint64_t	end = n - 1 - i < GJ_CHECKED ? n - 1 : i + GJ_CHECKED;
		bool		ordered = true;

		for (; i < end; i++)
			ordered &= strict ? at[i] < at[i + 1] : at[i] <= at[i + 1];
		if (!ordered)
			return false;
	}
	return true;
}

static bool
GJ_NAME(is_set) (const void *memory, uint64_t n)
{
	return GJ_NAME(in_order) (memory, n, true);
}

static bool
GJ_NAME(is_sorted) (const void *memory, uint64_t n)
{
	return GJ_NAME(in_order) (memory, n, false);
}

static void
GJ_NAME(bounds) (const void *memory, uint64_t n, int64_t *least, int64_t *greatest)
{
	const GJ_VALUE *at = memory;
	GJ_VALUE	low = at[0];
	GJ_VALUE	high = at[0];

	for (uint64_t i = 1; i < n; i++)
	{
		low = at[i] < low ? at[i] : low;
		high = at[i] > high ? at[i] : high;
	}
	*least = low;
	*greatest = high;
}

static uint64_t
GJ_NAME(unique) (void *to_memory, const void *from_memory, uint64_t n)
{
	GJ_VALUE   *to = to_memory;
	const GJ_VALUE *from = from_memory;
	uint64_t	left = 1;

	if (n == 0)
		return 0;
	to[0] = from[0];
	for (uint64_t i = 1; i < n; i++)
	{
		GJ_VALUE	x = from[i];

		to[left] = x;
		left += x != to[left - 1];
	}
	return left;
}

/*
 * Each element goes to the place that is the number of smaller ones, which is counted for
 * several of them at a time; equal ones have one place.
 */
static uint64_t
GJ_NAME(few) (void *to_memory, const void *from, uint64_t n)
{
	GJ_VALUE   *to = to_memory;
	GJ_VALUE	given[GJ_INTEGERS_FEW];
	GJ_VALUE	placed[GJ_INTEGERS_FEW];
	uint64_t	end = (n + GJ_LANES - 1) / GJ_LANES * GJ_LANES;
	uint64_t	places = 0;
	uint64_t	left = 0;

	memcpy(given, from, sizeof(GJ_VALUE) * n);
	/* not smaller than any */
	for (uint64_t i = n; i < end; i++)
		given[i] = GJ_GREATEST;
	for (uint64_t i = 0; i < n; i++)
	{
		GJ_VALUE	x = given[i];
		GJ_UVALUE	smaller = 0;

		for (uint64_t j = 0; j < end; j += GJ_LANES)
			for (uint64_t k = 0; k < GJ_LANES; k++)
				smaller += given[j + k] < x;
		placed[smaller] = x;
		places |= UINT64_C(1) << smaller;
	}
	for (; places != 0; places &= places - 1)
		to[left++] = placed[__builtin_ctzll(places)];
	return left;
}

static uint64_t
GJ_NAME(count_bits) (const uint64_t *words, uint64_t n)
{
	uint64_t	count = 0;

	for (uint64_t i = 0; i < n; i++)
		count += (uint32_t) __builtin_popcountll(words[i]);
	return count;
}

GJ_INLINE uint64_t
GJ_NAME(merge) (const GJ_VALUE *a, uint64_t na, const GJ_VALUE *b, uint64_t nb, GJ_VALUE *to,
				GjSetOperation operation)
{
	uint64_t	i = 0;
	uint64_t	j = 0;
	uint64_t	count = 0;

	while (i < na && j < nb)
	{
		/* so many steps can be taken without a look at the ends */
		uint64_t	steps = na - i < nb - j ? na - i : nb - j;

		while (steps-- > 0)
		{
			GJ_VALUE	x = a[i];
			GJ_VALUE	y = b[j];

			if (to)
				to[count] = operation == GJ_SETS_UNION && y < x ? y : x;
			count += operation == GJ_SETS_INTERSECT ? x == y :
				operation == GJ_SETS_EXCEPT ? x < y : 1;
			i += x <= y;
			j += y <= x;
		}
	}
	if (operation != GJ_SETS_INTERSECT)
	{
		memcpy(to + count, a + i, sizeof(GJ_VALUE) * (na - i));
		count += na - i;
	}
	if (operation == GJ_SETS_UNION)
	{
		memcpy(to + count, b + j, sizeof(GJ_VALUE) * (nb - j));
		count += nb - j;
	}
	return count;
}

static uint64_t
GJ_NAME(count) (const void *a, uint64_t na, const void *b, uint64_t nb)
{
	return GJ_NAME(merge) (a, na, b, nb, NULL, GJ_SETS_INTERSECT);
}

static uint64_t
GJ_NAME(intersect) (const void *a, uint64_t na, const void *b, uint64_t nb, void *to)
{
	return GJ_NAME(merge) (a, na, b, nb, to, GJ_SETS_INTERSECT);
}

static uint64_t
GJ_NAME(except) (const void *a, uint64_t na, const void *b, uint64_t nb, void *to)
{
	return GJ_NAME(merge) (a, na, b, nb, to, GJ_SETS_EXCEPT);
}

static uint64_t
GJ_NAME(unite) (const void *a, uint64_t na, const void *b, uint64_t nb, void *to)
{
	return GJ_NAME(merge) (a, na, b, nb, to, GJ_SETS_UNION);
}

#undef GJ_CHECKED
#undef GJ_VALUE
#undef GJ_UVALUE
#undef GJ_GREATEST
#undef GJ_NAME
