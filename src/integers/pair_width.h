/*
 * pair_width.h
 *	  The part of integers.c that combines two arrays.  Included once a width after
 *	  sort_width.h, with GJ_VALUE, GJ_UVALUE and GJ_NAME defined; undefines them.
 */

/* ---- two sets */

/* The first of at[low .. low + n) that is not less than x, or low + n. */
GJ_INLINE uint64_t
GJ_NAME(search) (const GJ_VALUE *at, uint64_t low, uint64_t n, GJ_VALUE x)
{
	while (n > 0)
	{
		uint64_t	half = n / 2;
		bool		less = at[low + half] < x;

		low += less ? half + 1 : 0;
		n = less ? n - half - 1 : half;
	}
	return low;
}

/* The first of at[low .. n) that is not less than x, or n; in steps that double. */
GJ_INLINE uint64_t
GJ_NAME(look_up) (const GJ_VALUE *at, uint64_t low, uint64_t n, GJ_VALUE x)
{
	uint64_t	step = 1;

	while (step < n - low && at[low + step] < x)
	{
		low += step;
		step *= 2;
	}
	return GJ_NAME(search) (at, low, least_of(step, n - low), x);
}

/* What is kept when the elements of a small set are looked up in a large one. */
enum GJ_NAME(keep)
{
	GJ_NAME(KEEP_COMMON), GJ_NAME(KEEP_SMALL), GJ_NAME(KEEP_LARGE), GJ_NAME(KEEP_ALL)
};

GJ_INLINE uint64_t
GJ_NAME(gallop) (const GJ_VALUE *small, uint64_t nsmall, const GJ_VALUE *large, uint64_t nlarge,
				 GJ_VALUE *to, enum GJ_NAME(keep) keep)
{
	bool		keep_large = keep == GJ_NAME(KEEP_LARGE) || keep == GJ_NAME(KEEP_ALL);
	uint64_t	low = 0;		/* elements before it are smaller than all to come */
	uint64_t	count = 0;

	for (uint64_t i = 0; i < nsmall; i++)
	{
		uint64_t	at = GJ_NAME(look_up) (large, low, nlarge, small[i]);
		bool		found = at < nlarge && large[at] == small[i];

		if (keep_large)
		{
			memcpy(to + count, large + low, sizeof(GJ_VALUE) * (at - low));
			count += at - low;
		}
		if (keep != GJ_NAME(KEEP_LARGE) && to)
			to[count] = small[i];
		count += keep == GJ_NAME(KEEP_COMMON) ? found :
			keep == GJ_NAME(KEEP_SMALL) ? !found : keep == GJ_NAME(KEEP_ALL);
		low = at + found;
	}
	if (keep_large)
	{
		memcpy(to + count, large + low, sizeof(GJ_VALUE) * (nlarge - low));
		count += nlarge - low;
	}
	return count;
}

static uint64_t
GJ_NAME(count_common) (const GjIntegersLoops *loops, const GJ_VALUE *a, uint64_t na,
					   const GJ_VALUE *b, uint64_t nb)
{
	if (na / GJ_GALLOP_RATIO > nb)
		return GJ_NAME(gallop) (b, nb, a, na, NULL, GJ_NAME(KEEP_COMMON));
	if (nb / GJ_GALLOP_RATIO > na)
		return GJ_NAME(gallop) (a, na, b, nb, NULL, GJ_NAME(KEEP_COMMON));
	return loops->count(a, na, b, nb);
}

static uint64_t
GJ_NAME(combine) (const GjIntegersLoops *loops, GjSetOperation operation, const GJ_VALUE *a,
				  uint64_t na, const GJ_VALUE *b, uint64_t nb, GJ_VALUE *to)
{
	bool		large_a = na / GJ_GALLOP_RATIO > nb;
	bool		large_b = nb / GJ_GALLOP_RATIO > na;

	if (!to)
	{
		uint64_t	common = GJ_NAME(count_common) (loops, a, na, b, nb);

		return operation == GJ_SETS_INTERSECT ? common :
			operation == GJ_SETS_EXCEPT ? na - common : na + nb - common;
	}
	switch (operation)
	{
		case GJ_SETS_INTERSECT:
			if (large_a)
				return GJ_NAME(gallop) (b, nb, a, na, to, GJ_NAME(KEEP_COMMON));
			if (large_b)
				return GJ_NAME(gallop) (a, na, b, nb, to, GJ_NAME(KEEP_COMMON));
			return loops->intersect(a, na, b, nb, to);
		case GJ_SETS_EXCEPT:
			if (large_a)
				return GJ_NAME(gallop) (b, nb, a, na, to, GJ_NAME(KEEP_LARGE));
			if (large_b)
				return GJ_NAME(gallop) (a, na, b, nb, to, GJ_NAME(KEEP_SMALL));
			return loops->except(a, na, b, nb, to);
		default:
			if (large_a)
				return GJ_NAME(gallop) (b, nb, a, na, to, GJ_NAME(KEEP_ALL));
			if (large_b)
				return GJ_NAME(gallop) (a, na, b, nb, to, GJ_NAME(KEEP_ALL));
			return loops->unite(a, na, b, nb, to);
	}
}

/* ---- two arrays that may be sets */

/* How far an array has been checked and used. */
typedef struct GJ_NAME(GjProgress)
{
	const GJ_VALUE *at;
	uint64_t	n;
	uint64_t	used;
	uint64_t	checked;
} GJ_NAME(GjProgress);

/* Checks the next piece, if the last one has been used.  False: it does not continue a set. */
static bool
GJ_NAME(check_piece) (const GjIntegersLoops *loops, GJ_NAME(GjProgress) *p)
{
	uint64_t	start = p->checked > 0 ? p->checked - 1 : 0;

	if (p->used < p->checked || p->checked == p->n)
		return true;
	p->checked = least_of(p->checked + GJ_PIECE, p->n);
	return loops->is_set(p->at + start, p->checked - start);
}

/*
 * Combines two arrays, if both are sets; false if not.  Each turn takes all elements of two
 * checked pieces up to the last one of the piece that ends first.
 */
static bool
GJ_NAME(sorted_pair) (const GjIntegersLoops *loops, GjIntegersPair *pair,
					  const GjIntegersHost *host)
{
	GJ_NAME(GjProgress) a = {pair->input[0], pair->n[0], 0, 0};
	GJ_NAME(GjProgress) b = {pair->input[1], pair->n[1], 0, 0};
	GJ_VALUE   *to = pair->want == GJ_WANT_ELEMENTS ? pair->result : NULL;

	pair->distinct[0] = a.n;
	pair->distinct[1] = b.n;
	pair->count = 0;
	for (uint32_t turn = 1; a.used < a.n || b.used < b.n; turn++)
	{
		uint64_t	end_a;
		uint64_t	end_b;

		if (!GJ_NAME(check_piece) (loops, &a) || !GJ_NAME(check_piece) (loops, &b))
			return false;
		end_a = a.checked;
		end_b = b.checked;
		if (a.used < end_a && b.used < end_b)
		{
			GJ_VALUE	last_a = a.at[end_a - 1];
			GJ_VALUE	last_b = b.at[end_b - 1];

			if (last_a < last_b)
			{
				end_b = GJ_NAME(look_up) (b.at, b.used, end_b, last_a);
				end_b += b.at[end_b] == last_a;
			}
			else if (last_b < last_a)
			{
				end_a = GJ_NAME(look_up) (a.at, a.used, end_a, last_b);
				end_a += a.at[end_a] == last_b;
			}
		}
		pair->count += GJ_NAME(combine) (loops, pair->operation, a.at + a.used, end_a - a.used,
										 b.at + b.used, end_b - b.used,
										 to ? to + pair->count : NULL);
		a.used = end_a;
		b.used = end_b;
		if (pair->want == GJ_WANT_ANY && pair->count > 0)
			return true;
		if (turn % (GJ_PAUSE / GJ_PIECE) == 0)
			pause_for(host);
	}
	return true;
}

/* ---- in any order: few */

static void
GJ_NAME(few_pair) (const GjIntegersLoops *loops, GjIntegersPair *pair)
{
	GJ_VALUE	a[GJ_INTEGERS_FEW];
	GJ_VALUE	b[GJ_INTEGERS_FEW];

	pair->distinct[0] = loops->few(a, pair->input[0], pair->n[0]);
	pair->distinct[1] = loops->few(b, pair->input[1], pair->n[1]);
	pair->count = GJ_NAME(combine) (loops, pair->operation, a, pair->distinct[0], b,
									pair->distinct[1],
									pair->want == GJ_WANT_ELEMENTS ? pair->result : NULL);
}

/* ---- in any order: bitmaps */

/* Values that matter: elements outside of them cannot be in the result. */
typedef struct GJ_NAME(GjRange)
{
	GJ_VALUE	least;
	uint64_t	span;			/* the greatest is so much more than the least */
} GJ_NAME(GjRange);

/* The values that matter to two arrays that are not empty.  False: there are none. */
static bool
GJ_NAME(range_of) (const GjIntegersLoops *loops, const GjIntegersPair *pair,
				   GJ_NAME(GjRange) *range)
{
	int64_t		least[2];
	int64_t		greatest[2];
	int64_t		from;
	int64_t		to;

	for (int side = 0; side < 2; side++)
		loops->bounds(pair->input[side], pair->n[side], &least[side], &greatest[side]);
	from = least[0] < least[1] ? least[0] : least[1];
	to = greatest[0] > greatest[1] ? greatest[0] : greatest[1];
	if (!pair->sizes[0] && !pair->sizes[1] && pair->operation == GJ_SETS_INTERSECT)
	{
		from = least[0] > least[1] ? least[0] : least[1];
		to = greatest[0] < greatest[1] ? greatest[0] : greatest[1];
	}
	else if (!pair->sizes[1] && pair->operation == GJ_SETS_EXCEPT)
	{
		from = least[0];
		to = greatest[0];
	}
	range->least = (GJ_VALUE) from;
	range->span = (uint64_t) to - (uint64_t) from;
	return from <= to;
}

static void
GJ_NAME(set_bits) (uint64_t *words, const GJ_VALUE *at, uint64_t n, const GJ_NAME(GjRange) *range,
				   const GjIntegersHost *host)
{
	for (uint64_t start = 0; start < n; start += GJ_PAUSE)
	{
		uint64_t	end = least_of(start + GJ_PAUSE, n);

		for (uint64_t i = start; i < end; i++)
		{
			uint64_t	bit = (GJ_UVALUE) ((GJ_UVALUE) at[i] - (GJ_UVALUE) range->least);

			if (bit <= range->span)
				words[bit / 64] |= UINT64_C(1) << (bit % 64);
		}
		pause_for(host);
	}
}

static uint64_t
GJ_NAME(write_bits) (GJ_VALUE *to, uint64_t bits, GJ_UVALUE least)
{
	uint64_t	count = 0;

	for (; bits != 0; bits &= bits - 1)
		to[count++] = (GJ_VALUE) (GJ_UVALUE) (least + (GJ_UVALUE) __builtin_ctzll(bits));
	return count;
}

/* Makes the result of two bitmaps; that of a becomes the result's. */
static void
GJ_NAME(combine_bitmaps) (const GjIntegersLoops *loops, GjIntegersPair *pair, uint64_t *a,
						  const uint64_t *b, const GJ_NAME(GjRange) *range,
						  const GjIntegersHost *host)
{
	uint64_t	nwords = range->span / 64 + 1;
	GJ_VALUE   *to = pair->want == GJ_WANT_ELEMENTS ? pair->result : NULL;

	if (pair->sizes[0])
		pair->distinct[0] = loops->count_bits(a, nwords);
	if (pair->sizes[1])
		pair->distinct[1] = loops->count_bits(b, nwords);
	for (uint64_t i = 0; i < nwords; i++)
		a[i] = pair->operation == GJ_SETS_INTERSECT ? a[i] & b[i] :
			pair->operation == GJ_SETS_UNION ? a[i] | b[i] : a[i] & ~b[i];
	pair->count = to ? 0 : loops->count_bits(a, nwords);
	for (uint64_t i = 0; to && i < nwords; i++)
	{
		pair->count += GJ_NAME(write_bits) (to + pair->count, a[i],
											(GJ_UVALUE) ((GJ_UVALUE) range->least + i * 64));
		if (i % GJ_PAUSE == 0)
			pause_for(host);
	}
}

static bool
GJ_NAME(bitmap_pair) (const GjIntegersLoops *loops, GjIntegersPair *pair,
					  const GJ_NAME(GjRange) *range, const GjIntegersHost *host)
{
	uint64_t	on_stack[GJ_STACK_WORDS * 2];
	uint64_t   *words = on_stack;
	uint64_t	nwords = range->span / 64 + 1;

	if (nwords > GJ_STACK_WORDS)
	{
		words = host->allocate(sizeof(uint64_t) * nwords * 2);
		if (!words)
			return false;
	}
	memset(words, 0, sizeof(uint64_t) * nwords * 2);
	GJ_NAME(set_bits) (words, pair->input[0], pair->n[0], range, host);
	GJ_NAME(set_bits) (words + nwords, pair->input[1], pair->n[1], range, host);
	GJ_NAME(combine_bitmaps) (loops, pair, words, words + nwords, range, host);
	if (words != on_stack)
		host->release(words);
	return true;
}

/* ---- in any order: sorted first */

static bool
GJ_NAME(sort_pair) (const GjIntegersLoops *loops, GjIntegersPair *pair, const GjIntegersHost *host)
{
	size_t		size = buffer_size(sizeof(GJ_VALUE), greatest_of(pair->n[0], pair->n[1]));
	uint8_t    *memory = host->allocate(size * 3);
	GJ_VALUE   *buffers[3] = {(GJ_VALUE *) memory, (GJ_VALUE *) (memory + size),
	(GJ_VALUE *) (memory + size * 2)};
	GjIntegersPair sets = *pair;
	GJ_NAME(GjSet) a;
	GJ_NAME(GjSet) b;

	if (!memory)
		return false;
	a = GJ_NAME(make_set) (loops, pair->input[0], pair->n[0], buffers[0], buffers[1], host);
	/* in the buffer that is free */
	b = GJ_NAME(make_set) (loops, pair->input[1], pair->n[1],
						   a.at == buffers[0] ? buffers[1] : buffers[0], buffers[2], host);
	sets.input[0] = a.at;
	sets.input[1] = b.at;
	pair->distinct[0] = sets.n[0] = a.n;
	pair->distinct[1] = sets.n[1] = b.n;
	(void) GJ_NAME(sorted_pair) (loops, &sets, host);
	pair->count = sets.count;
	host->release(memory);
	return true;
}

/* ---- in any order: a small one and a large one */

/* A filter of hashes. */
typedef struct GJ_NAME(GjFilter)
{
	uint64_t   *words;
	uint32_t	shift;			/* of a hash, for the number of a bit */
} GJ_NAME(GjFilter);

GJ_INLINE uint64_t
GJ_NAME(filter_bit) (const GJ_NAME(GjFilter) *filter, GJ_VALUE x)
{
	return (uint64_t) (GJ_UVALUE) x * UINT64_C(0x9E3779B97F4A7C15) >> filter->shift;
}

/*
 * Marks the elements of the small set that the other array has; with `only_any`, one of them.
 * False: so many elements pass the filter that sorting is faster.
 */
static bool
GJ_NAME(mark_found) (GJ_NAME(GjSet) small, const GJ_VALUE *at, uint64_t n,
					 const GJ_NAME(GjFilter) *filter, bool only_any, uint8_t *found,
					 const GjIntegersHost *host)
{
	uint64_t	may_pass = n / GJ_FILTER_PASS;

	for (uint64_t i = 0; i < small.n; i++)
	{
		uint64_t	bit = GJ_NAME(filter_bit) (filter, small.at[i]);

		filter->words[bit / 64] |= UINT64_C(1) << (bit % 64);
	}
	for (uint64_t start = 0; start < n; start += GJ_PAUSE)
	{
		uint64_t	end = least_of(start + GJ_PAUSE, n);

		for (uint64_t i = start; i < end; i++)
		{
			uint64_t	bit = GJ_NAME(filter_bit) (filter, at[i]);
			uint64_t	place;

			if (!(filter->words[bit / 64] >> (bit % 64) & 1))
				continue;
			if (may_pass-- == 0)
				return false;
			place = GJ_NAME(search) (small.at, 0, small.n, at[i]);
			if (place == small.n || small.at[place] != at[i])
				continue;
			found[place] = 1;
			if (only_any)
				return true;
		}
		pause_for(host);
	}
	return true;
}

/*
 * The small array is pair->input[side], at most 1 / GJ_FILTER_RATIO of the other one.  Keeps what
 * the other one has, or what it has not.
 */
static bool
GJ_NAME(filter_pair) (const GjIntegersLoops *loops, GjIntegersPair *pair, int side,
					  const GjIntegersHost *host)
{
	bool		keep_found = pair->operation == GJ_SETS_INTERSECT;
	uint64_t	n = pair->n[side];
	GJ_VALUE   *to = pair->want == GJ_WANT_ELEMENTS ? pair->result : NULL;
	size_t		buffer = buffer_size(sizeof(GJ_VALUE), n);
	uint32_t	bits = 64 - (uint32_t) __builtin_clzll(n * GJ_FILTER_BITS);
	size_t		filter_size = ((size_t) 1 << bits) / 8;
	uint8_t    *memory = host->allocate(buffer * 2 + filter_size + n);
	GJ_NAME(GjFilter) filter;
	GJ_NAME(GjSet) small;
	uint8_t    *found;
	bool		done;

	if (!memory)
		return false;
	small = GJ_NAME(make_set) (loops, pair->input[side], n, (GJ_VALUE *) memory,
							   (GJ_VALUE *) (memory + buffer), host);
	memset(memory + buffer * 2, 0, filter_size + n);
	filter = (GJ_NAME(GjFilter)) {(uint64_t *) (memory + buffer * 2), 64 - bits};
	found = memory + buffer * 2 + filter_size;
	pair->distinct[side] = small.n;
	done = GJ_NAME(mark_found) (small, pair->input[!side], pair->n[!side], &filter,
								pair->want == GJ_WANT_ANY, found, host);
	pair->count = 0;
	for (uint64_t i = 0; done && i < small.n; i++)
	{
		if (to)
			to[pair->count] = small.at[i];
		pair->count += found[i] == keep_found;
	}
	host->release(memory);
	return done || GJ_NAME(sort_pair) (loops, pair, host);
}

/* ---- all of it */

static bool
GJ_NAME(pair) (const GjIntegersLoops *loops, GjIntegersPair *pair, const GjIntegersHost *host)
{
	uint64_t	na = pair->n[0];
	uint64_t	nb = pair->n[1];
	GJ_NAME(GjRange) range;

	if (GJ_NAME(sorted_pair) (loops, pair, host))
		return true;
	if (na <= GJ_INTEGERS_FEW && nb <= GJ_INTEGERS_FEW)
	{
		GJ_NAME(few_pair) (loops, pair);
		return true;
	}
	if (na > 0 && nb > 0)
	{
		bool		small_a = na <= nb / GJ_FILTER_RATIO;
		bool		small_b = nb <= na / GJ_FILTER_RATIO;

		if (!GJ_NAME(range_of) (loops, pair, &range))
		{
			pair->count = 0;
			return true;
		}
		if (range.span / (range.span < GJ_CACHED_BITS ? GJ_BITMAP_BITS : GJ_DENSE_BITS) < na + nb)
			return GJ_NAME(bitmap_pair) (loops, pair, &range, host);
		if (small_a && !pair->sizes[1] && pair->operation != GJ_SETS_UNION)
			return GJ_NAME(filter_pair) (loops, pair, 0, host);
		if (small_b && !pair->sizes[0] && pair->operation == GJ_SETS_INTERSECT)
			return GJ_NAME(filter_pair) (loops, pair, 1, host);
	}
	return GJ_NAME(sort_pair) (loops, pair, host);
}

#undef GJ_VALUE
#undef GJ_UVALUE
#undef GJ_NAME
