/*
 * set_join.h
 *	  All pairs of one or two families of sets, in plain C: what the cpu device runs on its
 *	  threads, and a session in its own process where there is no device.
 *
 * Elements become codes, the most frequent one first (GjSetFamily).  A row of the result is
 * one left set against a range of right sets: one of the gj_row_ functions counts the
 * common elements of each pair, then gj_set_row keeps what is asked for.
 *
 * Pairs whose sizes rule them out are not looked at (gj_set_possible).  The inverted index
 * looks only at the rare elements of the left set, if a pair must have several elements in
 * common: of a set of n elements that shares at least m with another, each choice of
 * n - m + 1 has one that is shared.  The m - 1 most frequent elements, the head, are looked
 * up only in sets that the others have found, and that could be wanted if all of it was shared.
 */
#ifndef GJ_ROWS_SET_JOIN_H
#define GJ_ROWS_SET_JOIN_H

#include <stdlib.h>

#include "set_plan.h"
#include "similarity.h"

#define GJ_SET_MAX_DENSE	32768u	/* columns of the matrix */
#define GJ_SET_WINDOW		65536u	/* codes that the bitmap of a left set spans at a time */

/* Where the work is done. */
typedef struct GjSetHost
{
	void	   *arg;
	/* NULL: out of memory. */
	void	   *(*alloc) (void *arg, size_t nbytes);
	void		(*free) (void *arg, void *memory);
	/* Runs task for items 0 .. n-1, perhaps in parallel.  False: it was stopped. */
	bool		(*run) (void *arg, uint32_t n, void (*task) (void *, uint32_t), void *task_arg);
} GjSetHost;

/* ---- building a family */

/* One pass of sorting by a byte of the keys. */
typedef struct GjSetPass
{
	int64_t    *from;
	int64_t    *to;				/* after the pass the two are swapped, unless nothing was moved */
	uint64_t	n;
	uint32_t	digit;
} GjSetPass;

static void
gj_set_sort_item(void *arg, uint32_t item)
{
	GjSetPass  *pass = arg;
	int64_t    *from = pass->from;
	int64_t    *to = pass->to;
	uint32_t	shift = pass->digit * 8;
	uint32_t	flip = pass->digit == 7 ? 0x80 : 0;
	uint64_t	count[256] = {0};
	uint64_t	at = 0;

	for (uint64_t i = 0; i < pass->n; i++)
		count[((uint64_t) from[i] >> shift & 0xFF) ^ flip]++;
	if (pass->n == 0 || count[((uint64_t) from[0] >> shift & 0xFF) ^ flip] == pass->n)
		return;
	for (uint32_t b = 0; b < 256; b++)
	{
		uint64_t	c = count[b];

		count[b] = at;
		at += c;
	}
	for (uint64_t i = 0; i < pass->n; i++)
		to[count[((uint64_t) from[i] >> shift & 0xFF) ^ flip]++] = from[i];
	pass->from = to;
	pass->to = from;
}

/* Sorts n keys; whatever happens, *keys is the caller's to free. */
static inline GjStatus
gj_set_sort(const GjSetHost *host, int64_t **keys, uint64_t n)
{
	GjSetPass	pass = {.from = *keys,.n = n};
	bool		done = true;

	pass.to = host->alloc(host->arg, n * sizeof(int64_t) + 8);
	if (!pass.to)
		return GJ_OUT_OF_MEMORY;
	/* a pass is an item, so that it can be stopped before the next one */
	for (; done && pass.digit < 8; pass.digit++)
		done = host->run(host->arg, 1, gj_set_sort_item, &pass);
	*keys = pass.from;
	host->free(host->arg, pass.to);
	return done ? GJ_OK : GJ_CANCELLED;
}

typedef struct GjSetBuild
{
	GjSetFamily *family;
	const GjSetInput *sets;
	int64_t    *dictionary;		/* distinct elements, ascending */
	uint32_t   *frequency;		/* of each; then its code */
	uint32_t	bad;			/* a set is not in order */
} GjSetBuild;

static inline int64_t
gj_set_value(const GjSetInput *sets, uint64_t i)
{
	return sets->width == 2 ? ((const int16_t *) sets->values)[i] :
		sets->width == 4 ? ((const int32_t *) sets->values)[i] : ((const int64_t *) sets->values)[i];
}

#define GJ_SET_BUILD_ITEM	256u	/* sets of an item */

/* code[i] = position of element i in the dictionary, for the sets of an item. */
static void
gj_set_rank_item(void *arg, uint32_t item)
{
	GjSetBuild *build = arg;
	GjSetFamily *family = build->family;
	uint32_t	set = item * GJ_SET_BUILD_ITEM;
	uint32_t	end = family->nsets - set < GJ_SET_BUILD_ITEM ? family->nsets : set + GJ_SET_BUILD_ITEM;

	for (; set < end; set++)
	{
		uint32_t	low = 0;

		for (uint64_t i = family->offset[set]; i < family->offset[set + 1]; i++)
		{
			int64_t		value = gj_set_value(build->sets, i);
			uint32_t	high = family->universe;

			while (low < high)
			{
				uint32_t	mid = low + (high - low) / 2;

				if (build->dictionary[mid] < value)
					low = mid + 1;
				else
					high = mid;
			}
			if (low == family->universe || build->dictionary[low] != value)
			{
				/* it is smaller than the one before, or equal to it */
				__atomic_store_n(&build->bad, 1, __ATOMIC_RELAXED);
				low = 0;
			}
			family->code[i] = low;
			low += !family->multiple;
		}
	}
}

static int
gj_set_compare_codes(const void *a, const void *b)
{
	uint32_t	x = *(const uint32_t *) a;
	uint32_t	y = *(const uint32_t *) b;

	return (x > y) - (x < y);
}

/* Positions in the dictionary become codes, ascending in each set. */
static void
gj_set_code_item(void *arg, uint32_t item)
{
	GjSetBuild *build = arg;
	GjSetFamily *family = build->family;
	uint32_t	set = item * GJ_SET_BUILD_ITEM;
	uint32_t	end = family->nsets - set < GJ_SET_BUILD_ITEM ? family->nsets : set + GJ_SET_BUILD_ITEM;

	for (; set < end; set++)
	{
		uint64_t	first = family->offset[set];
		uint64_t	n = family->offset[set + 1] - first;

		for (uint64_t i = first; i < first + n; i++)
			family->code[i] = build->frequency[family->code[i]];
		qsort(family->code + first, n, sizeof(uint32_t), gj_set_compare_codes);
	}
}

/* Makes the dictionary of all elements. */
static inline GjStatus
gj_set_dictionary(const GjSetHost *host, GjSetBuild *build)
{
	const GjSetInput *sets = build->sets;
	uint64_t	m = 0;
	GjStatus	status;

	build->dictionary = host->alloc(host->arg, sets->nvalues * sizeof(int64_t) + 8);
	if (!build->dictionary)
		return GJ_OUT_OF_MEMORY;
	for (uint64_t i = 0; i < sets->nvalues; i++)
		build->dictionary[i] = gj_set_value(sets, i);
	status = gj_set_sort(host, &build->dictionary, sets->nvalues);
	if (status != GJ_OK)
		return status;
	for (uint64_t i = 0; i < sets->nvalues; i++)
		if (m == 0 || build->dictionary[i] != build->dictionary[m - 1])
			build->dictionary[m++] = build->dictionary[i];
	build->family->universe = (uint32_t) m;
	return GJ_OK;
}

/* frequency[rank] becomes the code of the element; notes how many columns a matrix should have. */
static inline GjStatus
gj_set_order_codes(const GjSetHost *host, GjSetBuild *build)
{
	GjSetFamily *family = build->family;
	int64_t    *keys = host->alloc(host->arg, family->universe * sizeof(int64_t) + 8);
	const double nsets = family->nsets;
	double		word = 0;		/* of the elements that share a word of the matrix */
	GjStatus	status;

	if (!keys)
		return GJ_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < family->universe; i++)
		keys[i] = ((int64_t) (INT32_MAX - build->frequency[i]) << 32) | i;
	status = gj_set_sort(host, &keys, family->universe);
	if (status != GJ_OK)
	{
		host->free(host->arg, keys);
		return status;
	}
	for (uint32_t code = 0; code < family->universe; code++)
	{
		uint32_t	frequency = INT32_MAX - (uint32_t) (keys[code] >> 32);

		build->frequency[(uint32_t) keys[code]] = code;
		word += frequency / nsets * (frequency / nsets);
		/* words come with less and less in common: all that are worth it are at the beginning */
		if ((code + 1) % 64 != 0 && code + 1 != family->universe)
			continue;
		if (word * GJ_SET_CPU_COMMON > GJ_SET_CPU_WORD && code < GJ_SET_MAX_DENSE)
			family->ndense = code + 1;
		word = 0;
	}
	host->free(host->arg, keys);
	return GJ_OK;
}

/* The index of the right family: which of its sets have an element. */
static inline GjStatus
gj_set_index(const GjSetHost *host, GjSetFamily *family)
{
	uint64_t	first = family->offset[family->first_right];
	uint64_t   *at;

	family->nposting = family->nelements - first;
	family->posting_offset = host->alloc(host->arg, (family->universe + 2) * sizeof(uint64_t));
	family->posting = host->alloc(host->arg, family->nposting * sizeof(uint32_t) + 4);
	if (!family->posting_offset || !family->posting)
		return GJ_OUT_OF_MEMORY;
	/* at[c] counts, then points behind what is filled: one further on than the offsets */
	at = family->posting_offset + 1;
	memset(family->posting_offset, 0, (family->universe + 2) * sizeof(uint64_t));
	for (uint64_t i = first; i < family->nelements; i++)
		at[family->code[i] + 1]++;
	for (uint32_t c = 0; c < family->universe; c++)
		at[c + 1] += at[c];
	for (uint32_t r = 0; r < family->nright; r++)
	{
		uint32_t	set = family->first_right + r;

		for (uint64_t i = family->offset[set]; i < family->offset[set + 1]; i++)
			family->posting[at[family->code[i]]++] = r;
	}
	return GJ_OK;
}

static inline void
gj_set_family_free(const GjSetHost *host, GjSetFamily *family)
{
	host->free(host->arg, family->offset);
	host->free(host->arg, family->code);
	host->free(host->arg, family->posting_offset);
	host->free(host->arg, family->posting);
	memset(family, 0, sizeof(*family));
}

static inline GjStatus
gj_set_encode(const GjSetHost *host, GjSetBuild *build)
{
	GjSetFamily *family = build->family;
	uint32_t	nitems = (family->nsets + GJ_SET_BUILD_ITEM - 1) / GJ_SET_BUILD_ITEM;
	GjStatus	status = gj_set_dictionary(host, build);

	if (status != GJ_OK)
		return status;
	build->frequency = host->alloc(host->arg, family->universe * sizeof(uint32_t) + 4);
	if (!build->frequency)
		return GJ_OUT_OF_MEMORY;
	if (!host->run(host->arg, nitems, gj_set_rank_item, build))
		return GJ_CANCELLED;
	if (build->bad)
		return GJ_BAD_PROGRAM;
	memset(build->frequency, 0, family->universe * sizeof(uint32_t));
	for (uint64_t i = 0; i < family->nelements; i++)
		build->frequency[family->code[i]]++;
	status = gj_set_order_codes(host, build);
	if (status == GJ_OK && !host->run(host->arg, nitems, gj_set_code_item, build))
		status = GJ_CANCELLED;
	return status;
}

/* Elements of a left set of n that the index looks up only where others have matched. */
static inline uint64_t
gj_set_head(const GjSetSpec *spec, uint64_t n)
{
	uint64_t	min_common;

	if (spec->top_k > 0)
		return 0;
	min_common = gj_set_min_common(spec->predicate, spec->threshold, n);
	return min_common > 0 ? min_common - 1 : 0;
}

/* A step of looking a head up in a right set costs as much as so many along the lists. */
#define GJ_SET_HEAD_STEP	2

/* A look at a candidate costs as much as so many steps. */
#define GJ_SET_CANDIDATE_STEPS	8

/*
 * What the head of a left set costs the index: a look at all that the tail has found, and then
 * whatever is less work.  `head` and `tail` are steps along the lists.
 */
static inline double
gj_set_head_steps(const GjSetFamily *family, const GjSetSpec *spec, uint64_t n, uint64_t skipped,
				  double head, double tail)
{
	const double average = tail / family->nright;
	const uint64_t least = gj_set_common_of_equals(spec->predicate, spec->threshold, n);
	const double worth = gj_set_share_from(average, least > skipped ? least - skipped : 1);
	const double looked_up = family->nright * worth * (double) skipped * 2 * GJ_SET_HEAD_STEP;

	return family->nright * gj_set_share_from(average, 1) * GJ_SET_CANDIDATE_STEPS +
		(looked_up < head ? looked_up : head);
}

/*
 * What the index has to do for a left set, and the matrix beside its words: steps along the
 * lists, of lengths listed[code].
 */
static inline void
gj_set_cpu_steps(const GjSetFamily *family, const GjSetSpec *spec, const uint32_t *listed, uint32_t set,
				 double *index, double *matrix)
{
	uint64_t	first = family->offset[set];
	uint64_t	n = family->offset[set + 1] - first;
	uint64_t	skipped = gj_set_head(spec, n);
	double		head = 0;
	double		tail = 0;

	if (skipped > n)
		return;					/* no pair of it is wanted */
	for (uint64_t i = 0; i < n; i++)
	{
		uint32_t	code = family->code[first + i];

		if (i < skipped)
			head += listed[code];
		else
			tail += listed[code];
		if (code >= family->ndense)
			*matrix += listed[code];
	}
	*index += tail;
	if (skipped > 0)
		*index += gj_set_head_steps(family, spec, n, skipped, head, tail);
}

/* Is a matrix of family->ndense columns faster than the index?  *matrix is set. */
static inline GjStatus
gj_set_cpu_matrix(const GjSetHost *host, const GjSetFamily *family, const GjSetSpec *spec, bool *matrix)
{
	double		nwords = (family->ndense + 63) / 64;
	double		npairs = (double) family->nleft * family->nright;
	double		index_steps = 0;
	double		matrix_steps = 0;
	uint32_t   *listed;

	*matrix = false;
	if (family->ndense == 0)
		return GJ_OK;
	listed = host->alloc(host->arg, family->universe * sizeof(uint32_t) + 4);
	if (!listed)
		return GJ_OUT_OF_MEMORY;
	memset(listed, 0, family->universe * sizeof(uint32_t));
	for (uint64_t i = family->offset[family->first_right]; i < family->nelements; i++)
		listed[family->code[i]]++;
	for (uint32_t set = 0; set < family->nleft; set++)
		gj_set_cpu_steps(family, spec, listed, set, &index_steps, &matrix_steps);
	host->free(host->arg, listed);
	*matrix = (index_steps - matrix_steps) * GJ_SET_CPU_COMMON >
		npairs * (GJ_SET_CPU_PAIR + nwords * GJ_SET_CPU_WORD);
	return GJ_OK;
}

/* Builds a family; see GjDeviceOps.set_build. */
static inline GjStatus
gj_set_family_build(const GjSetHost *host, const GjSetInput *sets, const GjSetSpec *spec,
					GjSetFamily *family)
{
	GjSetBuild	build = {.family = family,.sets = sets};
	uint64_t	total = 0;
	bool		matrix = false;
	GjStatus	status;

	if (!gj_set_family_start(family, sets, spec))
		return GJ_BAD_PROGRAM;
	family->offset = host->alloc(host->arg, (sets->nsets + UINT64_C(1)) * sizeof(uint64_t));
	family->code = host->alloc(host->arg, sets->nvalues * sizeof(uint32_t) + 4);
	if (!family->offset || !family->code)
		return GJ_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < sets->nsets; i++)
	{
		if (sets->size[i] < 0)
			return GJ_BAD_PROGRAM;
		family->offset[i] = total;
		total += sets->size[i];
		if (sets->size[i] > family->max_size)
			family->max_size = sets->size[i];
	}
	family->offset[sets->nsets] = total;
	if (total != sets->nvalues)
		return GJ_BAD_PROGRAM;

	status = gj_set_encode(host, &build);
	if (build.dictionary)
		host->free(host->arg, build.dictionary);
	if (build.frequency)
		host->free(host->arg, build.frequency);
	if (status != GJ_OK)
		return status;
	if (spec->algorithm == GJ_SETS_AUTO && !family->multiple)
		status = gj_set_cpu_matrix(host, family, spec, &matrix);
	if (status != GJ_OK)
		return status;
	gj_set_family_choose(family, spec, matrix);
	if (family->algorithm < GJ_SETS_INVERTED_INDEX)
		return GJ_OK;
	return gj_set_index(host, family);
}

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
			gj_set_worth_head(w->spec->predicate, w->spec->threshold, counts[r], head, left.n, nright))
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
			gj_set_worth_head(w->spec->predicate, w->spec->threshold, counts[r], head, left.n, right.n))
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

/* Runs a tile; see GjDeviceOps.set_tile. */
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

#endif							/* GJ_ROWS_SET_JOIN_H */
