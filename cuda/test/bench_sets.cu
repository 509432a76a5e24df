/*
 * bench_sets.cu
 *	  Times of the set operations, elements on the device: kernel_test --bench-sets.
 *
 * One pair of sets by each algorithm, and all pairs of generated families, whose sizes,
 * numbers of distinct elements and skew are like those of families that papers on set
 * similarity joins use (numbers printed; the data is not theirs).
 */
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>

#include "../../src/rows/set_plan.h"
#include "test.cuh"

static const char *const names[GJ_SETS_NALGORITHMS] = {
	"auto", "merge_path", "binary_search", "hash", "bitmap", "inverted_index", "matrix"};

/* Ends if a call fails: a benchmark has nothing to say then. */
static void
must(Queue &q, GjStatus status, const char *what)
{
	if (status == GJ_OK)
		return;
	printf("%s: %s (%s)\n", what, gj_reason_text(status), q.ops->queue_error(q.queue));
	exit(1);
}

static double
total_ms(Queue &q)
{
	double ms = 0;

	must(q, q.ops->sync(q.queue), "sync");
	for (int i = 0; i < GJ_NPHASES; i++)
		ms += q.ops->phase_ms(q.queue)[i];
	return ms;
}

/* Median of `runs` after one that does not count. */
template <typename Run>
static double
median(Queue &q, int runs, Run run)
{
	std::vector<double> times;

	for (int i = 0; i <= runs; i++)
	{
		double start;

		q.ops->phase(q.queue, i % 2 ? GJ_PHASE_PROBE : GJ_PHASE_BUILD);
		start = total_ms(q);
		run();
		if (i > 0)
			times.push_back(total_ms(q) - start);
	}
	std::sort(times.begin(), times.end());
	return times[times.size() / 2];
}

/* n ascending values, `gap` apart on average. */
static std::vector<int32_t>
ascending(Random &random, uint32_t n, uint32_t gap)
{
	std::vector<int32_t> values(n);
	int64_t v = -1000000000;

	for (int32_t &value : values)
	{
		v += 1 + (int64_t) (random() % (2 * gap - 1));
		value = (int32_t) v;
	}
	return values;
}

static void
bench_pair(const Device &device, uint32_t na, uint32_t nb, uint32_t gap_a, uint32_t gap_b)
{
	Random random(5);
	Program program;
	Queue q(device, program);
	GjSetPair pair = {};
	int32_t *result = (int32_t *) q.alloc((size_t) std::min(na, nb) * 4);
	uint64_t n = 0;

	pair.a = q.upload(ascending(random, na, gap_a));
	pair.b = q.upload(ascending(random, nb, gap_b));
	pair.na = na;
	pair.nb = nb;
	pair.width = 4;
	printf("\none pair: %.1e and %.1e int4 over %.1e\n", (double) na, (double) nb,
		   (double) na * gap_a);
	for (uint8_t algorithm = GJ_SETS_AUTO; algorithm <= GJ_SETS_BITMAP; algorithm++)
	{
		double count_ms;
		double write_ms;

		pair.algorithm = algorithm;
		count_ms = median(
			q, 5,
			[&] { must(q, q.ops->set_pair(q.queue, &pair, NULL, NULL, NULL, &n), "set_pair"); });
		write_ms = median(
			q, 5,
			[&] { must(q, q.ops->set_pair(q.queue, &pair, NULL, NULL, result, &n), "set_pair"); });
		printf("  %-16s count %9.3f ms %7.1f G elements/s   values %9.3f ms %7.1f G elements/s   "
			   "%llu common\n",
			   names[algorithm], count_ms, ((double) na + nb) / count_ms / 1e6, write_ms,
			   ((double) na + nb) / write_ms / 1e6, (unsigned long long) n);
		fflush(stdout);
	}
}

/* All tiles; adds up what is kept. */
static void
run_tiles(Family &f, uint64_t *kept)
{
	GjSetTile tile;

	*kept = 0;
	for (bool first = true; gj_set_next_tile(&f.family, &f.spec, &tile, first); first = false)
	{
		uint32_t n;

		must(f.q, f.q.ops->set_tile(f.q.queue, &f.family, &f.spec, &tile, NULL, NULL, f.out, &n),
			 "set_tile");
		*kept += n;
	}
}

static void
bench_predicate(const Device &device, const Sets &sets, uint8_t predicate, double threshold)
{
	const double npairs = (double) sets.size() * (double) (sets.size() - 1) / 2;

	for (uint8_t algorithm = GJ_SETS_AUTO; algorithm < GJ_SETS_NALGORITHMS; algorithm++)
	{
		Program program;
		Queue q(device, program);
		GjSetSpec spec = {};
		uint64_t kept = 0;
		double start;
		double build_ms;
		double ms;

		spec.algorithm = algorithm;
		spec.predicate = predicate;
		spec.threshold = threshold;
		q.ops->phase(q.queue, GJ_PHASE_BUILD);
		start = total_ms(q);

		Family f(q, sets, NULL, 4, spec);

		must(q, f.status, "set_build");
		build_ms = total_ms(q) - start;
		ms = median(q, 1, [&] { run_tiles(f, &kept); });
		printf("  %-16s load and build %8.2f ms   pairs %9.2f ms %8.2f G pairs/s   %llu kept%s%s\n",
			   names[algorithm], build_ms, ms, npairs / ms / 1e6, (unsigned long long) kept,
			   algorithm == GJ_SETS_AUTO ? "   " : "",
			   algorithm == GJ_SETS_AUTO ? names[f.family.algorithm] : "");
		fflush(stdout);
	}
}

static void
bench_family(const Device &device, const char *like, uint32_t size, uint64_t universe, double skew)
{
	const uint32_t nsets = quick ? 1000 : 10000;
	Random random(3);
	const Sets sets = random_sets(random, nsets, size, universe, skew);

	printf("\nlike %s: %u sets of %u elements on average over %llu, skew %.0f, all pairs\n", like,
		   nsets, size, (unsigned long long) universe, skew);
	bench_predicate(device, sets, GJ_SETS_ALL, 0);
	printf("  Jaccard index of at least 0.8\n");
	bench_predicate(device, sets, GJ_SETS_JACCARD, 0.8);
}

void
bench_sets(const Device &device)
{
	const uint32_t million = quick ? 10000 : 1000000;

	bench_pair(device, 10 * million, 10 * million, 100, 100);
	bench_pair(device, 100 * million, 100 * million, 20, 20);
	bench_pair(device, 100 * million, million / 10, 20, 20000);
	bench_family(device, "BMS", 9, 1657, 2);
	bench_family(device, "ENRON", 135, 1100000, 6);
	bench_family(device, "ORKUT", 120, 8700000, 3);
	bench_family(device, "TWITTER", 66, 37000, 3);
	bench_family(device, "WORDS", 300, 100000, 4);
}
