/*
 * ranges_cut.c
 *	  Which run gets what of the sorted rows of all: decided by samples of their values (ranges.c).
 *
 * Samples are exact bounds of the rows between them.  So nothing is searched for, and a run has a
 * few more build rows than it needs, but never fewer.
 */
#include "ranges.h"

#include <stdlib.h>

GjRanges *
gj_ranges_make(uint32_t step, uint32_t nruns)
{
	GjRanges   *ranges = calloc(1, sizeof(GjRanges));

	if (!ranges)
		return NULL;
	ranges->step = step;
	ranges->nruns = nruns;
	return ranges;
}

void
gj_ranges_free(GjRanges *ranges)
{
	for (uint32_t i = 0; ranges && i < 2 * GJ_MAX_RUN_DEVICES; i++)
	{
		free(ranges->rows[i % 2][i / 2].samples);
		free(ranges->rows[i % 2][i / 2].columns);
	}
	free(ranges);
}

/* A sample, and the rows that it stands for. */
typedef struct GjRangeSample
{
	int64_t		value;
	uint32_t	of;				/* run and side */
	uint32_t	number;
} GjRangeSample;

static int
compare_samples(const void *a, const void *b)
{
	const GjRangeSample *x = a;
	const GjRangeSample *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	if (x->of != y->of)
		return x->of < y->of ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* Lists all samples; returns their number. */
static uint32_t
list_samples(const GjRanges *ranges, GjRangeSample *list, uint64_t *nrows)
{
	uint32_t	n = 0;

	*nrows = 0;
	for (uint32_t of = 0; of < 2 * ranges->nruns; of++)
	{
		const GjRangeRows *rows = &ranges->rows[of % 2][of / 2];

		for (uint32_t i = 0; i < rows->nsamples; i++)
			list[n++] = (GjRangeSample) {rows->samples[i], of, i};
		*nrows += rows->nrows;
	}
	return n;
}

GjStatus
gj_ranges_cut(GjRanges *ranges)
{
	GjRangeSample *list = malloc(2 * ranges->nruns * (GJ_RANGE_SAMPLES + 1) *
								 sizeof(GjRangeSample));
	uint64_t	all;
	uint64_t	before = 0;
	uint32_t	n;

	if (!list)
		return GJ_OUT_OF_HOST_MEMORY;
	n = list_samples(ranges, list, &all);
	qsort(list, n, sizeof(GjRangeSample), compare_samples);
	for (uint32_t of = 0; of < 2 * ranges->nruns; of++)
		for (uint32_t p = 1; p <= ranges->nruns; p++)
			ranges->rows[of % 2][of / 2].cut[p] = ranges->rows[of % 2][of / 2].nrows;
	/* those of each side and run come in their order: the first of a part says where it begins */
	for (uint32_t i = 0; i < n; i++)
	{
		GjRangeRows *rows = &ranges->rows[list[i].of % 2][list[i].of / 2];
		uint32_t	first = list[i].number * rows->every;
		uint32_t	part = (uint32_t) (before * ranges->nruns / all);

		for (uint32_t p = part; p > 0 && rows->cut[p] == rows->nrows; p--)
			rows->cut[p] = first;
		before += rows->nrows - first < rows->every ? rows->nrows - first : rows->every;
	}
	free(list);
	return GJ_OK;
}

void
gj_ranges_reach(const GjRangeRows *rows, int64_t low, int64_t high, uint32_t *first, uint32_t *end)
{
	uint32_t	i = 0;

	while (i + 1 < rows->nsamples && rows->samples[i + 1] < low)
		i++;
	*first = *end = i * rows->every;
	if (low > high)
		return;
	while (i < rows->nsamples && rows->samples[i] <= high)
		i++;
	*end = i < rows->nsamples ? i * rows->every : rows->nrows;
	if (*end < *first)
		*end = *first;
}
