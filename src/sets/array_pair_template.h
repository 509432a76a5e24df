/*
 * array_pair_template.h
 *	  Two arrays of one integer type as sets, in the process.
 *
 * Included once for each type, with these macros defined (and undefined here):
 *
 *	GJ_SET_ELEMENT		int16, int32 or int64
 *	GJ_SET_UNSIGNED		uint16, uint32 or uint64
 *	GJ_SET_NAME(name)	the name with the suffix of the type
 *	GJ_SET_SORT			name of the comparison sort to generate
 *	GJ_SET_RANKS		most elements that are sorted by counting smaller ones, a multiple of
 *						GJ_SET_LANES up to 64; 0: none
 *
 * Inputs that are sorted and unique already, as most stored sets are, are used where
 * they lie.
 */

#define ST_SORT GJ_SET_SORT
#define ST_ELEMENT_TYPE GJ_SET_ELEMENT
#define ST_COMPARE(a, b) ((*(a) > *(b)) - (*(a) < *(b)))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* A sorted set without duplicates. */
typedef struct GJ_SET_NAME(GjSet)
{
	const		GJ_SET_ELEMENT *at;
	uint32		n;
} GJ_SET_NAME(GjSet);

/* Tell whether elements are sorted and unique already. */
static bool
GJ_SET_NAME(is_set) (const GJ_SET_ELEMENT *at, uint32 n)
{
	for (uint32 start = 0; start + 1 < n; start += GJ_SET_BLOCK)
	{
		uint32		end = Min(start + GJ_SET_BLOCK, n - 1);
		bool		ascending = true;

		for (uint32 i = start; i < end; i++)
			ascending &= at[i] < at[i + 1];
		if (!ascending)
			return false;
		CHECK_FOR_INTERRUPTS();
	}
	return true;
}

/*
 * Count the values of every byte of the elements.  The top byte's sign bit is turned
 * over, so that negative values come first.
 */
static void
GJ_SET_NAME(count_digits) (const GJ_SET_ELEMENT *at, uint32 n,
						   uint32 counts[sizeof(GJ_SET_ELEMENT)][GJ_SET_DIGITS])
{
	memset(counts, 0, sizeof(uint32) * sizeof(GJ_SET_ELEMENT) * GJ_SET_DIGITS);
	for (uint32 start = 0; start < n; start += GJ_SET_BLOCK)
	{
		uint32		end = Min(start + GJ_SET_BLOCK, n);

		for (uint32 i = start; i < end; i++)
		{
			GJ_SET_UNSIGNED key = (GJ_SET_UNSIGNED) at[i] ^ GJ_SET_SIGN;

			for (int digit = 0; digit < sizeof(GJ_SET_ELEMENT); digit++)
				counts[digit][((uint64) key >> (8 * digit)) & 0xFF]++;
		}
		CHECK_FOR_INTERRUPTS();
	}
}

/* Move elements to where one of their bytes says. */
static void
GJ_SET_NAME(scatter) (const GJ_SET_ELEMENT *from, GJ_SET_ELEMENT *to, uint32 n, int digit,
					  const uint32 counts[GJ_SET_DIGITS])
{
	uint32		place[GJ_SET_DIGITS];
	uint32		sum = 0;

	for (int i = 0; i < GJ_SET_DIGITS; i++)
	{
		place[i] = sum;
		sum += counts[i];
	}
	for (uint32 start = 0; start < n; start += GJ_SET_BLOCK)
	{
		uint32		end = Min(start + GJ_SET_BLOCK, n);

		for (uint32 i = start; i < end; i++)
		{
			GJ_SET_UNSIGNED key = (GJ_SET_UNSIGNED) from[i] ^ GJ_SET_SIGN;

			to[place[((uint64) key >> (8 * digit)) & 0xFF]++] = from[i];
		}
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Sort by radix, between two buffers; return the one that has the result.  Bytes that
 * are the same in all elements cost nothing.
 */
static GJ_SET_ELEMENT *
GJ_SET_NAME(radix_sort) (GJ_SET_ELEMENT *at, GJ_SET_ELEMENT *spare, uint32 n)
{
	uint32		counts[sizeof(GJ_SET_ELEMENT)][GJ_SET_DIGITS];

	GJ_SET_NAME(count_digits) (at, n, counts);
	for (int digit = 0; digit < sizeof(GJ_SET_ELEMENT); digit++)
	{
		GJ_SET_UNSIGNED first = (GJ_SET_UNSIGNED) at[0] ^ GJ_SET_SIGN;
		GJ_SET_ELEMENT *other = spare;

		if (counts[digit][((uint64) first >> (8 * digit)) & 0xFF] == n)
			continue;
		GJ_SET_NAME(scatter) (at, spare, n, digit, counts[digit]);
		spare = at;
		at = other;
	}
	return at;
}

/* Remove duplicates of sorted elements; return how many are left. */
static uint32
GJ_SET_NAME(unique) (GJ_SET_ELEMENT *at, uint32 n)
{
	uint32		left = 1;

	for (uint32 i = 1; i < n; i++)
	{
		GJ_SET_ELEMENT x = at[i];

		at[left] = x;
		left += x != at[left - 1];
	}
	return left;
}

#if GJ_SET_RANKS > 0
/*
 * Make a set of few elements, up to GJ_SET_RANKS, at `to`, which may be where they are; return how
 * many it has.  Each goes to the place that is the number of smaller ones, which is counted
 * for several of them at a time and without a branch that depends on them; equal ones have one place.
 */
static uint32
GJ_SET_NAME(rank) (GJ_SET_ELEMENT *to, const GJ_SET_ELEMENT *from, uint32 n)
{
	GJ_SET_ELEMENT given[GJ_SET_RANKS];
	GJ_SET_ELEMENT placed[GJ_SET_RANKS];
	uint32		end = TYPEALIGN(GJ_SET_LANES, n);
	uint64		places = 0;
	uint32		left = 0;

	memcpy(given, from, sizeof(GJ_SET_ELEMENT) * n);
	/* not smaller than any */
	for (uint32 i = n; i < end; i++)
		given[i] = (GJ_SET_ELEMENT) (GJ_SET_SIGN - 1);
	for (uint32 i = 0; i < n; i++)
	{
		GJ_SET_ELEMENT x = given[i];
		GJ_SET_UNSIGNED smaller = 0;

		for (uint32 j = 0; j < end; j += GJ_SET_LANES)
			for (uint32 k = 0; k < GJ_SET_LANES; k++)
				smaller += given[j + k] < x;
		placed[smaller] = x;
		places |= UINT64_C(1) << smaller;
	}
	for (; places != 0; places &= places - 1)
		to[left++] = placed[pg_rightmost_one_pos64(places)];
	return left;
}
#endif

/* Make a set of elements in any order. */
static GJ_SET_NAME(GjSet)
GJ_SET_NAME(make_set) (const GjElements *input)
{
	GJ_SET_NAME(GjSet) set = {.at = input->data,.n = input->n};
	GJ_SET_ELEMENT *copy;

	if (GJ_SET_NAME(is_set) (set.at, set.n))
		return set;
	copy = palloc(sizeof(GJ_SET_ELEMENT) * set.n);
#if GJ_SET_RANKS > 0
	if (set.n <= GJ_SET_RANKS)
	{
		set.n = GJ_SET_NAME(rank) (copy, set.at, set.n);
		set.at = copy;
		return set;
	}
#endif
	memcpy(copy, set.at, sizeof(GJ_SET_ELEMENT) * set.n);
	if (set.n < GJ_SET_RADIX_MIN)
		GJ_SET_SORT(copy, set.n);
	else
	{
		GJ_SET_ELEMENT *spare = palloc(sizeof(GJ_SET_ELEMENT) * set.n);
		GJ_SET_ELEMENT *sorted = GJ_SET_NAME(radix_sort) (copy, spare, set.n);

		pfree(sorted == copy ? spare : copy);
		copy = sorted;
	}
	set.at = copy;
	set.n = GJ_SET_NAME(unique) (copy, set.n);
	return set;
}

/*
 * Intersect two sets of similar size by merging, without branches that depend on the
 * elements.  The result has room for the smaller set, which cannot be overrun: once it
 * is full, that set is used up.
 */
static pg_attribute_always_inline uint32
GJ_SET_NAME(merge) (GJ_SET_NAME(GjSet) a, GJ_SET_NAME(GjSet) b, GJ_SET_ELEMENT *result)
{
	uint32		i = 0;
	uint32		j = 0;
	uint32		count = 0;

	while (i < a.n && j < b.n)
	{
		/* so many steps can be taken without a look at the ends or at interrupts */
		uint32		steps = Min(Min(a.n - i, b.n - j), GJ_SET_BLOCK);

		while (steps-- > 0)
		{
			GJ_SET_ELEMENT x = a.at[i];
			GJ_SET_ELEMENT y = b.at[j];

			if (result != NULL)
				result[count] = x;
			count += x == y;
			i += x <= y;
			j += y <= x;
		}
		CHECK_FOR_INTERRUPTS();
	}
	return count;
}

/*
 * Intersect a small set with a large one by looking each element up, in steps that
 * double from where the last one was found.
 */
static pg_attribute_always_inline uint32
GJ_SET_NAME(gallop) (GJ_SET_NAME(GjSet) small, GJ_SET_NAME(GjSet) large, GJ_SET_ELEMENT *result)
{
	uint32		low = 0;		/* elements before it are smaller than all to come */
	uint32		count = 0;

	for (uint32 i = 0; i < small.n && low < large.n; i++)
	{
		GJ_SET_ELEMENT x = small.at[i];
		uint32		step = 1;
		uint32		n;

		while (step < large.n - low && large.at[low + step] < x)
		{
			low += step;
			step *= 2;
		}
		/* the first element that is not smaller is within low .. low + step */
		n = Min(step, large.n - low);
		while (n > 0)
		{
			uint32		half = n / 2;

			if (large.at[low + half] < x)
			{
				low += half + 1;
				n -= half + 1;
			}
			else
				n = half;
		}
		if (low < large.n && large.at[low] == x)
		{
			if (result != NULL)
				result[count] = x;
			count++;
			low++;
		}
		if (i % GJ_SET_BLOCK == 0)
			CHECK_FOR_INTERRUPTS();
	}
	return count;
}

/* Intersect two sets, by whichever way suits their sizes. */
static uint32
GJ_SET_NAME(intersect) (GJ_SET_NAME(GjSet) a, GJ_SET_NAME(GjSet) b, GJ_SET_ELEMENT *result)
{
	GJ_SET_NAME(GjSet) small = a.n <= b.n ? a : b;
	GJ_SET_NAME(GjSet) large = a.n <= b.n ? b : a;

	if (large.n / GJ_SET_GALLOP_RATIO >= Max(small.n, 1))
		return result != NULL ? GJ_SET_NAME(gallop) (small, large, result) :
			GJ_SET_NAME(gallop) (small, large, NULL);
	return result != NULL ? GJ_SET_NAME(merge) (small, large, result) :
		GJ_SET_NAME(merge) (small, large, NULL);
}

/* Unite two sets. */
static uint32
GJ_SET_NAME(unite) (GJ_SET_NAME(GjSet) a, GJ_SET_NAME(GjSet) b, GJ_SET_ELEMENT *result)
{
	uint32		i = 0;
	uint32		j = 0;
	uint32		count = 0;

	while (i < a.n && j < b.n)
	{
		uint32		steps = Min(Min(a.n - i, b.n - j), GJ_SET_BLOCK);

		while (steps-- > 0)
		{
			GJ_SET_ELEMENT x = a.at[i];
			GJ_SET_ELEMENT y = b.at[j];

			result[count++] = x <= y ? x : y;
			i += x <= y;
			j += y <= x;
		}
		CHECK_FOR_INTERRUPTS();
	}
	if (i < a.n)
		memcpy(result + count, a.at + i, sizeof(GJ_SET_ELEMENT) * (a.n - i));
	else if (j < b.n)
		memcpy(result + count, b.at + j, sizeof(GJ_SET_ELEMENT) * (b.n - j));
	return count + (a.n - i) + (b.n - j);
}

/* Take one set from another. */
static uint32
GJ_SET_NAME(take_away) (GJ_SET_NAME(GjSet) a, GJ_SET_NAME(GjSet) b, GJ_SET_ELEMENT *result)
{
	uint32		i = 0;
	uint32		j = 0;
	uint32		count = 0;

	while (i < a.n && j < b.n)
	{
		uint32		steps = Min(Min(a.n - i, b.n - j), GJ_SET_BLOCK);

		while (steps-- > 0)
		{
			GJ_SET_ELEMENT x = a.at[i];
			GJ_SET_ELEMENT y = b.at[j];

			if (x < y)
				result[count++] = x;
			i += x <= y;
			j += y <= x;
		}
		CHECK_FOR_INTERRUPTS();
	}
	if (i < a.n)
		memcpy(result + count, a.at + i, sizeof(GJ_SET_ELEMENT) * (a.n - i));
	return count + (a.n - i);
}

/* Do what is asked for with two arrays. */
void
GJ_SET_NAME(gj_array_pair) (GjArrayPair *pair)
{
	GJ_SET_NAME(GjSet) a = GJ_SET_NAME(make_set) (&pair->input[0]);
	GJ_SET_NAME(GjSet) b = GJ_SET_NAME(make_set) (&pair->input[1]);

	pair->distinct[0] = a.n;
	pair->distinct[1] = b.n;
	switch (pair->operation)
	{
		case GJ_SETS_INTERSECT:
			pair->count = GJ_SET_NAME(intersect) (a, b, pair->result);
			break;
		case GJ_SETS_UNION:
			pair->count = GJ_SET_NAME(unite) (a, b, pair->result);
			break;
		case GJ_SETS_EXCEPT:
			pair->count = GJ_SET_NAME(take_away) (a, b, pair->result);
			break;
	}
	if (a.at != pair->input[0].data)
		pfree(unconstify(GJ_SET_ELEMENT *, a.at));
	if (b.at != pair->input[1].data)
		pfree(unconstify(GJ_SET_ELEMENT *, b.at));
}

/* Sort elements in place and remove duplicates; return how many are left. */
static uint32
GJ_SET_NAME(sort_elements) (GJ_SET_ELEMENT *at, uint32 n)
{
	GjElements	input = {.data = at,.n = n};
	GJ_SET_NAME(GjSet) set;

#if GJ_SET_RANKS > 0
	if (n <= GJ_SET_RANKS)
		return GJ_SET_NAME(is_set) (at, n) ? n : GJ_SET_NAME(rank) (at, at, n);
#endif
	set = GJ_SET_NAME(make_set) (&input);
	if (set.at != at)
	{
		memcpy(at, set.at, sizeof(GJ_SET_ELEMENT) * set.n);
		pfree(unconstify(GJ_SET_ELEMENT *, set.at));
	}
	return set.n;
}

#undef GJ_SET_ELEMENT
#undef GJ_SET_UNSIGNED
#undef GJ_SET_SIGN
#undef GJ_SET_NAME
#undef GJ_SET_SORT
#undef GJ_SET_RANKS
