/*
 * set_join.h
 *	  All pairs of one or two families of sets, in plain C: what the cpu device runs on its
 *	  threads, and a session in its own process where there is no device.
 *
 * Elements have become codes, the most frequent one first (set_family.h).  A row of the result is
 * one left set against a range of right sets: one of the gj_row_ functions counts the
 * common elements of each pair, then gj_set_row keeps what is asked for.
 *
 * Pairs whose sizes rule them out are not looked at (gj_set_possible).  The inverted index
 * looks only at the rare elements of the left set, if a pair must have several elements in
 * common: of a set of n elements that shares at least m with another, each choice of
 * n - m + 1 has one that is shared.  The m - 1 most frequent elements, the head, are looked
 * up only in sets that the others have found, and that could be wanted if all of it was shared.
 */
#ifndef GJ_DEVICE_SET_JOIN_H
#define GJ_DEVICE_SET_JOIN_H

#include "set_family.h"

#define GJ_SET_WINDOW		65536u	/* codes that the bitmap of a left set spans at a time */

/* ---- common elements of one left set with a range of right sets */

typedef struct GjSetWork
{
	const GjSetHost *host;
	const GjSetFamily *family;
	const GjSetSpec *spec;
	GjSetTile	tile;
	uint32_t   *const *out;		/* row i of the tile begins at out[.][i * tile.nright] */
	uint32_t   *found;			/* [tile.nleft]: pairs that are kept */
	uint64_t   *matrix;			/* MATRIX: bits of the tile's right sets, ndense of each */
	uint32_t	failed;			/* out of memory */
} GjSetWork;

/* The codes of a set. */
typedef struct GjCodes
{
	const uint32_t *at;
	uint64_t	n;
} GjCodes;

static inline GjCodes
gj_set_codes(const GjSetFamily *family, uint64_t set)
{
	uint64_t	first = family->offset[set];

	return (GjCodes) {family->code + first, family->offset[set + 1] - first};
}

static inline GjCodes
gj_set_right(const GjSetWork *w, uint32_t r)
{
	return gj_set_codes(w->family, (uint64_t) w->family->first_right + w->tile.right + r);
}

/* The first position from `low` on whose code is not less than `code`. */
static inline uint64_t
gj_codes_from(GjCodes set, uint64_t low, uint32_t code)
{
	uint64_t	step = 1;
	uint64_t	high = low;

	while (high < set.n && set.at[high] < code)
	{
		low = high + 1;
		high += step;
		step *= 2;
	}
	if (high > set.n)
		high = set.n;
	while (low < high)
	{
		uint64_t	mid = low + (high - low) / 2;

		if (set.at[mid] < code)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static inline uint32_t
gj_codes_merge(GjCodes a, GjCodes b)
{
	uint64_t	i = 0;
	uint64_t	j = 0;
	uint32_t	count = 0;

	while (i < a.n && j < b.n)
	{
		uint32_t	x = a.at[i];
		uint32_t	y = b.at[j];

		count += x == y;
		i += x <= y;
		j += y <= x;
	}
	return count;
}

static inline uint32_t
gj_codes_search(GjCodes a, GjCodes b)
{
	GjCodes		small = a.n <= b.n ? a : b;
	GjCodes		large = a.n <= b.n ? b : a;
	uint32_t	count = 0;
	uint64_t	j = 0;

	for (uint64_t i = 0; i < small.n && j < large.n; i++)
	{
		j = gj_codes_from(large, j, small.at[i]);
		count += j < large.n && large.at[j] == small.at[i];
	}
	return count;
}

static inline bool
gj_row_possible(const GjSetWork *w, GjCodes left, GjCodes right)
{
	if (w->spec->top_k > 0)
		return true;
	return gj_set_possible(w->spec->predicate, w->spec->threshold, left.n, right.n);
}

static inline void
gj_row_pairs(const GjSetWork *w, GjCodes left, uint32_t *counts)
{
	for (uint32_t r = 0; r < w->tile.nright; r++)
	{
		GjCodes		right = gj_set_right(w, r);

		if (!gj_row_possible(w, left, right))
			counts[r] = 0;
		else if (w->family->algorithm == GJ_SETS_BINARY_SEARCH)
			counts[r] = gj_codes_search(left, right);
		else
			counts[r] = gj_codes_merge(left, right);
	}
}

/* A table of the left set, in which all right sets look. */
static inline void
gj_row_hash(GjSetWork *w, GjCodes left, uint32_t *counts)
{
	uint64_t	mask = 16;
	uint32_t   *table;

	while (mask < left.n * 2)
		mask *= 2;
	table = w->host->alloc(w->host->arg, mask * sizeof(uint32_t));
	if (!table)
	{
		__atomic_store_n(&w->failed, 1, __ATOMIC_RELAXED);
		return;
	}
	memset(table, 0xFF, mask * sizeof(uint32_t));
	mask--;
	for (uint64_t i = 0; i < left.n; i++)
	{
		uint64_t	s = left.at[i] * UINT32_C(0x9E3779B1) & mask;

		while (table[s] != UINT32_MAX)
			s = (s + 1) & mask;
		table[s] = left.at[i];
	}
	for (uint32_t r = 0; r < w->tile.nright; r++)
	{
		GjCodes		right = gj_set_right(w, r);

		counts[r] = 0;
		if (!gj_row_possible(w, left, right))
			continue;
		for (uint64_t i = 0; i < right.n; i++)
		{
			uint64_t	s = right.at[i] * UINT32_C(0x9E3779B1) & mask;

			while (table[s] != UINT32_MAX && table[s] != right.at[i])
				s = (s + 1) & mask;
			counts[r] += table[s] == right.at[i];
		}
	}
	w->host->free(w->host->arg, table);
}

/* A bitmap of the left set, one window of codes after the other; right sets test their bits. */
static inline void
gj_row_bitmap(const GjSetWork *w, GjCodes left, uint32_t *counts)
{
	uint64_t	bits[GJ_SET_WINDOW / 64];
	uint64_t	i = 0;

	memset(counts, 0, w->tile.nright * sizeof(uint32_t));
	while (i < left.n)
	{
		uint32_t	base = left.at[i] / GJ_SET_WINDOW * GJ_SET_WINDOW;

		memset(bits, 0, sizeof(bits));
		for (; i < left.n && left.at[i] - base < GJ_SET_WINDOW; i++)
			bits[(left.at[i] - base) / 64] |= UINT64_C(1) << (left.at[i] % 64);
		for (uint32_t r = 0; r < w->tile.nright; r++)
		{
			GjCodes		right = gj_set_right(w, r);
			uint64_t	j = gj_codes_from(right, 0, base);

			for (; j < right.n && right.at[j] - base < GJ_SET_WINDOW; j++)
				counts[r] += bits[(right.at[j] - base) / 64] >> (right.at[j] % 64) & 1;
		}
	}
}

/* Adds 1 to each right set that has one of the codes. */
static inline void
gj_row_index(const GjSetWork *w, GjCodes codes, uint32_t *counts)
{
	const GjSetFamily *family = w->family;

	for (uint64_t i = 0; i < codes.n; i++)
	{
		uint64_t	first = family->posting_offset[codes.at[i]];
		GjCodes		postings = {family->posting + first,
			family->posting_offset[codes.at[i] + 1] - first};
		uint64_t	p = w->tile.right == 0 ? 0 : gj_codes_from(postings, 0, w->tile.right);

		for (; p < postings.n && postings.at[p] - w->tile.right < w->tile.nright; p++)
			counts[postings.at[p] - w->tile.right]++;
	}
}

/*
 * Is it less work to look the head of a left set up in the right sets that need it than to
 * count along its lists?
 */
static inline bool
gj_row_few_candidates(const GjSetWork *w, GjCodes left, uint64_t head, const uint32_t *counts)
{
	const GjSetFamily *family = w->family;
	uint64_t	listed = 0;
	uint64_t	steps = 0;

	for (uint64_t i = 0; i < head; i++)
		listed += family->posting_offset[left.at[i] + 1] - family->posting_offset[left.at[i]];
	/* the lists are of all right sets */
	listed = listed / GJ_SET_HEAD_STEP * w->tile.nright / family->nright;
	for (uint32_t r = 0; r < w->tile.nright && steps <= listed; r++)
	{
		uint64_t	nright = gj_set_right(w, r).n;

		if (counts[r] > 0 &&
			gj_set_worth_head(w->spec->predicate, w->spec->threshold, counts[r], head, left.n,
							  nright))
			steps += head + (head < nright ? head : nright);
	}
	return steps <= listed;
}

static inline void
gj_row_inverted_index(const GjSetWork *w, GjCodes left, uint32_t *counts)
{
	/* the m - 1 most frequent elements can make more than m - 1 pairs of equal ones */
	uint64_t	head = w->family->multiple ? 0 : gj_set_head(w->spec, left.n);

	memset(counts, 0, w->tile.nright * sizeof(uint32_t));
	gj_row_index(w, (GjCodes) {left.at + head, left.n - head}, counts);
	if (head == 0)
		return;
	if (!gj_row_few_candidates(w, left, head, counts))
	{
		gj_row_index(w, (GjCodes) {left.at, head}, counts);
		return;
	}
	for (uint32_t r = 0; r < w->tile.nright; r++)
	{
		GjCodes		right = gj_set_right(w, r);

		if (counts[r] > 0 &&
			gj_set_worth_head(w->spec->predicate, w->spec->threshold, counts[r], head, left.n,
							  right.n))
			counts[r] += gj_codes_merge((GjCodes) {left.at, head}, right);
	}
}

/* Bits that two rows of a matrix have in common. */
__attribute__((always_inline))
static inline uint32_t
gj_row_popcount(const uint64_t *a, const uint64_t *b, uint32_t nwords)
{
	uint32_t	count = 0;

	for (uint32_t i = 0; i < nwords; i++)
		count += (uint32_t) __builtin_popcountll(a[i] & b[i]);
	return count;
}

#ifdef __x86_64__
/* The same on processors that have an instruction for it, which nearly all do. */
__attribute__((target("popcnt")))
static inline uint32_t
gj_row_popcount_x86(const uint64_t *a, const uint64_t *b, uint32_t nwords)
{
	return gj_row_popcount(a, b, nwords);
}
#endif

/* What of it this processor can do. */
static inline uint32_t
(*gj_choose_popcount(void)) (const uint64_t *, const uint64_t *, uint32_t)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("popcnt"))
		return gj_row_popcount_x86;
#endif
	return gj_row_popcount;
}

/* The bits of the codes below ndense; returns how many codes these are. */
static inline uint64_t
gj_set_bits(GjCodes set, uint32_t ndense, uint64_t *bits)
{
	uint64_t	i = 0;

	memset(bits, 0, ndense / 8);
	for (; i < set.n && set.at[i] < ndense; i++)
		bits[set.at[i] / 64] |= UINT64_C(1) << (set.at[i] % 64);
	return i;
}

/* Frequent codes as rows of a binary matrix, the rest by the inverted index. */
static inline void
gj_row_matrix(const GjSetWork *w, GjCodes left, uint32_t *counts)
{
	uint64_t	row[GJ_SET_MAX_DENSE / 64];
	uint32_t	nwords = w->family->ndense / 64;
	uint64_t	ndense = gj_set_bits(left, w->family->ndense, row);
	uint32_t	(*popcount) (const uint64_t *, const uint64_t *, uint32_t) = gj_choose_popcount();

	for (uint32_t r = 0; r < w->tile.nright; r++)
		counts[r] = popcount(row, w->matrix + (uint64_t) r * nwords, nwords);
	gj_row_index(w, (GjCodes) {left.at + ndense, left.n - ndense}, counts);
}

/* ---- what is kept of a row */

/*
 * Keeps the top_k pairs with the highest scores, best first, in place: counts[r] has been
 * read before anything is written to entry r.
 */
static inline uint32_t
gj_row_topk(const GjSetWork *w, uint32_t l, GjCodes left, uint32_t *out[3])
{
	uint32_t	n = 0;

	for (uint32_t r = 0; r < w->tile.nright; r++)
	{
		uint32_t	common = out[2][r];
		double		score;
		uint32_t	at = n;

		if (common == 0 || (w->spec->self && w->tile.right + r == l))
			continue;
		score = gj_set_score(w->spec->predicate, common, left.n, gj_set_right(w, r).n);
		while (at > 0 && gj_set_score(w->spec->predicate, out[2][at - 1], left.n,
									  gj_set_right(w, out[1][at - 1] - w->tile.right).n) < score)
			at--;
		if (at == w->spec->top_k)
			continue;
		n += n < w->spec->top_k;
		for (uint32_t i = n - 1; i > at; i--)
		{
			out[1][i] = out[1][i - 1];
			out[2][i] = out[2][i - 1];
		}
		out[1][at] = w->tile.right + r;
		out[2][at] = common;
	}
	return n;
}

static inline uint32_t
gj_row_matches(const GjSetWork *w, uint32_t l, GjCodes left, uint32_t *out[3])
{
	uint32_t	n = 0;

	for (uint32_t r = 0; r < w->tile.nright; r++)
	{
		uint32_t	common = out[2][r];

		if ((w->spec->self && w->tile.right + r <= l) ||
			!gj_set_matches(w->spec->predicate, w->spec->threshold, common, left.n,
							gj_set_right(w, r).n))
			continue;
		out[1][n] = w->tile.right + r;
		out[2][n] = common;
		n++;
	}
	return n;
}

/* A row of the tile: counts, then what is kept. */
static void
gj_set_row(void *arg, uint32_t row)
{
	GjSetWork  *w = arg;
	uint32_t	l = w->tile.left + row;
	GjCodes		left = gj_set_codes(w->family, l);
	uint64_t	at = (uint64_t) row * w->tile.nright;
	uint32_t   *out[3] = {w->out[0] + at, w->out[1] + at, w->out[2] + at};
	uint32_t	n;

	w->found[row] = 0;
	if (w->spec->top_k == 0 && !w->family->multiple &&
		gj_set_min_common(w->spec->predicate, w->spec->threshold, left.n) > left.n)
		return;
	switch (w->family->algorithm)
	{
		case GJ_SETS_HASH:
			gj_row_hash(w, left, out[2]);
			break;
		case GJ_SETS_BITMAP:
			gj_row_bitmap(w, left, out[2]);
			break;
		case GJ_SETS_INVERTED_INDEX:
			gj_row_inverted_index(w, left, out[2]);
			break;
		case GJ_SETS_MATRIX:
			gj_row_matrix(w, left, out[2]);
			break;
		default:
			gj_row_pairs(w, left, out[2]);
			break;
	}
	if (__atomic_load_n(&w->failed, __ATOMIC_RELAXED))
		return;
	n = w->spec->top_k > 0 ? gj_row_topk(w, l, left, out) : gj_row_matches(w, l, left, out);
	for (uint32_t i = 0; i < n; i++)
		out[0][i] = l;
	w->found[row] = n;
}

/* Moves the rows together. */
static inline uint32_t
gj_set_compact(const GjSetWork *w)
{
	uint32_t	n = 0;

	for (uint32_t row = 0; row < w->tile.nleft; row++)
	{
		uint64_t	at = (uint64_t) row * w->tile.nright;

		for (int i = 0; i < 3; i++)
			memmove(w->out[i] + n, w->out[i] + at, w->found[row] * sizeof(uint32_t));
		n += w->found[row];
	}
	return n;
}

/* Runs a tile; see GjSetOps.set_tile. */
static inline GjStatus
gj_set_run_tile(const GjSetHost *host, const GjSetFamily *family, const GjSetSpec *spec,
				const GjSetTile *tile, uint32_t *const out[3], uint32_t *n)
{
	GjSetWork	w = {.host = host,.family = family,.spec = spec,.tile = *tile,.out = out};
	GjStatus	status = GJ_OK;

	*n = 0;
	w.found = host->alloc(host->arg, tile->nleft * sizeof(uint32_t));
	if (!w.found)
		return GJ_OUT_OF_MEMORY;
	if (family->algorithm == GJ_SETS_MATRIX)
	{
		uint32_t	nwords = family->ndense / 64;

		w.matrix = host->alloc(host->arg, (uint64_t) tile->nright * nwords * sizeof(uint64_t) + 8);
		for (uint32_t r = 0; w.matrix && r < tile->nright; r++)
			gj_set_bits(gj_set_right(&w, r), family->ndense, w.matrix + (uint64_t) r * nwords);
		if (!w.matrix)
			status = GJ_OUT_OF_MEMORY;
	}
	if (status == GJ_OK && !host->run(host->arg, tile->nleft, gj_set_row, &w))
		status = GJ_CANCELLED;
	else if (w.failed)
		status = GJ_OUT_OF_MEMORY;
	if (status == GJ_OK)
		*n = gj_set_compact(&w);
	if (w.matrix)
		host->free(host->arg, w.matrix);
	host->free(host->arg, w.found);
	return status;
}

#endif							/* GJ_DEVICE_SET_JOIN_H */
