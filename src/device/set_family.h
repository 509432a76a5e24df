/*
 * set_family.h
 *	  Building a family of sets, in plain C; see set_join.h.
 *
 * Elements become codes, the most frequent one first (GjSetFamily).
 */
#ifndef GJ_DEVICE_SET_FAMILY_H
#define GJ_DEVICE_SET_FAMILY_H

#include <stdlib.h>

#include "set_plan.h"
#include "rows/similarity.h"

#define GJ_SET_MAX_DENSE	32768u	/* columns of the matrix */

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

/* ---- sorting */

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
		sets->width == 4 ? ((const int32_t *) sets->values)[i] :
			((const int64_t *) sets->values)[i];
}

#define GJ_SET_BUILD_ITEM	256u	/* sets of an item */

/* The end of the item that begins with a set. */
static inline uint32_t
gj_set_item_end(const GjSetFamily *family, uint32_t set)
{
	return family->nsets - set < GJ_SET_BUILD_ITEM ? family->nsets : set + GJ_SET_BUILD_ITEM;
}

/* code[i] = position of element i in the dictionary, for the sets of an item. */
static void
gj_set_rank_item(void *arg, uint32_t item)
{
	GjSetBuild *build = arg;
	GjSetFamily *family = build->family;
	uint32_t	set = item * GJ_SET_BUILD_ITEM;
	uint32_t	end = gj_set_item_end(family, set);

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
	uint32_t	end = gj_set_item_end(family, set);

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
gj_set_cpu_steps(const GjSetFamily *family, const GjSetSpec *spec, const uint32_t *listed,
				 uint32_t set, double *index, double *matrix)
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
gj_set_cpu_matrix(const GjSetHost *host, const GjSetFamily *family, const GjSetSpec *spec,
				  bool *matrix)
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

/* Builds a family; see GjSetOps.set_build. */
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

#endif							/* GJ_DEVICE_SET_FAMILY_H */
