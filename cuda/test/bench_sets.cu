/*
 * bench_sets.cu
 *	  Times of the set operations, elements on the device: kernel_test --bench-sets, or
 *	  --bench-pairs for the first part of it.
 *
 * One pair of sets by each algorithm, and all pairs of generated families, whose sizes,
 * numbers of distinct elements and skew are like those of families that papers on set
 * similarity joins use (numbers printed; the data is not theirs).  At the end: how far `auto`
 * is from the best, and the thresholds of src/device/set_plan.h and GJ_SET_SKEW fitted to this run.
 *
 * The fit: `auto` takes the matrix where an average pair has so many common elements in its columns
 * that the product of the times of all rows is least.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <unordered_map>

#include "device/set_plan.h"
#include "bench.cuh"

static const char *const names[GJ_SETS_NALGORITHMS] = {
	"auto", "merge_path", "binary_search", "hash", "bitmap", "inverted_index", "matrix"};

/* What was measured of one family and predicate. */
struct Row
{
	std::string what;
	double average; /* elements of a set */
	double counted; /* as gj_set_gpu_matrix counts them, and ... */
	bool skips;     /* ... whether the index skips much */
	uint32_t ndense;
	bool few; /* so few columns or common elements that auto has no choice */
	double ms[GJ_SETS_NALGORITHMS];
	uint8_t chosen;
};

static std::vector<Row> rows;

/* Median of `runs` after one that does not count. */
template <typename Run>
static double
median(Queue &q, int runs, Run run)
{
	return times_of(q, runs, nothing, run)[runs / 2];
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

/* n ascending values below `universe`: uniform, normal around its middle, or by Zipf's law. */
static std::vector<int32_t>
drawn(Random &random, uint32_t n, uint32_t universe, const std::string &distribution)
{
	std::vector<bool> has(universe);
	std::vector<int32_t> values;
	std::uniform_real_distribution<double> unit(0, 1);
	std::normal_distribution<double> normal(0.5, 0.125);
	uint32_t drawn = 0;

	while (drawn < n)
	{
		double x = distribution == "normal" ? normal(random) : unit(random);

		if (distribution == "zipf")
			x = exp(x * log((double) universe)) / universe;
		if (x < 0 || x >= 1)
			continue;

		const uint32_t v = (uint32_t) (x * universe);

		drawn += !has[v];
		has[v] = true;
	}
	for (uint32_t v = 0; v < universe; v++)
		if (has[v])
			values.push_back((int32_t) v);
	return values;
}

static void
bench_pair(const Device &device, const std::string &what, const std::vector<int32_t> &a,
		   const std::vector<int32_t> &b)
{
	const double na = (double) a.size();
	const double nb = (double) b.size();
	Program program;
	Queue q(device, program);
	GjSetPair pair = {};
	int32_t *result = (int32_t *) q.alloc(std::min(a.size(), b.size()) * 4);
	uint64_t n = 0;

	pair.a = q.upload(a);
	pair.b = q.upload(b);
	pair.na = a.size();
	pair.nb = b.size();
	pair.width = 4;
	printf("\none pair: %.1e and %.1e int4 over %s\n", na, nb, what.c_str());
	for (uint8_t algorithm = GJ_SETS_AUTO; algorithm <= GJ_SETS_BITMAP; algorithm++)
	{
		double count_ms;
		double write_ms;

		pair.algorithm = algorithm;
		count_ms = median(
			q, 5,
			[&]
			{ must(q, q.ops->sets->set_pair(q.queue, &pair, NULL, NULL, NULL, &n), "set_pair"); });
		write_ms = median(q, 5,
						  [&] {
							  must(q, q.ops->sets->set_pair(q.queue, &pair, NULL, NULL, result, &n),
								   "set_pair");
						  });
		printf("  %-16s count %9.3f ms %7.1f G elements/s   values %9.3f ms %7.1f G elements/s   "
			   "%llu common\n",
			   names[algorithm], count_ms, (na + nb) / count_ms / 1e6, write_ms,
			   (na + nb) / write_ms / 1e6, (unsigned long long) n);
		fflush(stdout);
	}
}

/* Values that are a random gap apart. */
static void
bench_gaps(const Device &device, uint32_t na, uint32_t nb, uint32_t gap_a, uint32_t gap_b)
{
	Random random(5);
	const std::vector<int32_t> a = ascending(random, na, gap_a);
	char what[32];

	snprintf(what, sizeof(what), "%.1e", (double) na * gap_a);
	bench_pair(device, what, a, ascending(random, nb, gap_b));
}

static void
bench_drawn(const Device &device, uint32_t n, uint32_t universe, const char *distribution)
{
	Random random(6);
	const std::vector<int32_t> a = drawn(random, n, universe, distribution);
	char what[64];

	snprintf(what, sizeof(what), "%.1e, %s", (double) universe, distribution);
	bench_pair(device, what, a, drawn(random, n, universe, distribution));
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

		must(f.q,
			 f.q.ops->sets->set_tile(f.q.queue, &f.family, &f.spec, &tile, NULL, NULL, f.out, &n),
			 "set_tile");
		*kept += n;
	}
}

/* Fills in what auto looks at. */
static void
describe(Row &row, const Sets &sets, uint8_t predicate, double threshold)
{
	const double n = (double) sets.size();
	std::unordered_map<int64_t, uint32_t> frequency;
	uint64_t nelements = 0;
	GjSetFamily family = {};
	GjSetSpec spec = {};

	for (const auto &set : sets)
		for (int64_t e : set)
		{
			frequency[e]++;
			nelements++;
		}
	for (const auto &f : frequency)
		if ((double) f.second * GJ_SET_GPU_DENSE >= n)
		{
			row.ndense++;
			row.counted += f.second / n * (f.second / n);
		}
	family.nsets = (uint32_t) sets.size();
	family.nelements = nelements;
	spec.predicate = predicate;
	spec.threshold = threshold;
	row.skips = gj_set_skips_much(&family, &spec);
	row.average = (double) gj_set_average(&family);
	row.few = row.ndense < GJ_SET_GPU_MIN_DENSE || row.counted * n * n < GJ_SET_GPU_LEAST;
}

static void
bench_predicate(const Device &device, const std::string &what, const Sets &sets, uint8_t predicate,
				double threshold)
{
	const double npairs = (double) sets.size() * (double) (sets.size() - 1) / 2;
	Row row = {};

	row.what = what;
	describe(row, sets, predicate, threshold);

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
		q.ops->queues->phase(q.queue, GJ_PHASE_BUILD);
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
		row.ms[algorithm] = ms;
		if (algorithm == GJ_SETS_AUTO)
			row.chosen = f.family.algorithm;
	}
	rows.push_back(row);
}

static void
bench_family(const Device &device, const char *like, uint32_t size, uint64_t universe, double skew)
{
	const uint32_t nsets = quick ? 1000 : 10000;
	Random random(3);
	const Sets sets = random_sets(random, nsets, size, universe, skew);

	printf("\nlike %s: %u sets of %u elements on average over %llu, skew %.0f, all pairs\n", like,
		   nsets, size, (unsigned long long) universe, skew);
	bench_predicate(device, std::string(like) + ", all", sets, GJ_SETS_ALL, 0);
	printf("  at least 3 common elements\n");
	bench_predicate(device, std::string(like) + ", overlap 3", sets, GJ_SETS_OVERLAP, 3);
	printf("  Jaccard index of at least 0.8\n");
	bench_predicate(device, std::string(like) + ", Jaccard 0.8", sets, GJ_SETS_JACCARD, 0.8);
}

/* ---- the fit */

/* Prints how often a choice is within 20 % of the best. */
template <typename Choose>
static void
print_choices(const char *who, Choose choose)
{
	uint32_t good = 0;

	for (const Row &row : rows)
	{
		const double best =
			*std::min_element(row.ms + GJ_SETS_MERGE_PATH, row.ms + GJ_SETS_NALGORITHMS);
		const uint8_t algorithm = choose(row);

		good += row.ms[algorithm] <= best * 1.2;
		if (row.ms[algorithm] > best * 1.2)
			printf("  %s: %s takes %s, %.2f times the best\n", who, row.what.c_str(),
				   names[algorithm], row.ms[algorithm] / best);
	}
	printf("  %s: within 20 %% of the best in %u of %zu\n", who, good, rows.size());
}

/* What the matrix has to count for the times to be least, of rows that skip much or do not. */
static double
fit_counted(bool skips)
{
	std::vector<double> candidates = {0};
	double best_at = 0;
	double best_sum = HUGE_VAL;

	for (const Row &row : rows)
		if (row.skips == skips)
			candidates.push_back(row.counted * 1.01);
	std::sort(candidates.begin(), candidates.end());
	for (size_t c = 0; c < candidates.size(); c++)
	{
		double sum = 0;

		for (const Row &row : rows)
			if (row.skips == skips)
				sum +=
					log(row.ms[row.counted >= candidates[c] && !row.few ? GJ_SETS_MATRIX
																		: GJ_SETS_INVERTED_INDEX]);
		if (sum >= best_sum)
			continue;
		best_sum = sum;
		/* up to the next row it is the same */
		best_at =
			c + 1 < candidates.size() ? (candidates[c] + candidates[c + 1]) / 2 : candidates[c];
	}
	return best_at;
}

static void
print_family_fit(void)
{
	const double counted = fit_counted(false);
	const double skipped = fit_counted(true);

	printf("\nall pairs: auto\n");
	for (const Row &row : rows)
		printf("  %-24s matrix counts %6.2f in a pair, %5u columns%s: index %8.3f ms, matrix %8.3f "
			   "ms\n",
			   row.what.c_str(), row.counted, row.ndense, row.skips ? ", skips much" : "",
			   row.ms[GJ_SETS_INVERTED_INDEX], row.ms[GJ_SETS_MATRIX]);
	print_choices("auto", [](const Row &row) { return row.chosen; });
	printf("#define GJ_SET_GPU_COUNTED\t%.1f\n#define GJ_SET_GPU_SKIPPED\t%.1f\n", counted,
		   skipped);
	print_choices("fitted",
				  [&](const Row &row)
				  {
					  return !row.few && row.counted >= (row.skips ? skipped : counted)
								 ? GJ_SETS_MATRIX
								 : GJ_SETS_INVERTED_INDEX;
				  });
}

/* Prints from which ratio of sizes on looking up is faster than merging. */
static void
print_skew_fit(const Device &device)
{
	const uint32_t large = quick ? 100000 : 10000000;
	uint32_t skew = 0;

	printf("\none pair: merge_path and binary_search, %u elements and a part of it\n", large);
	for (uint32_t ratio = 4; ratio <= 256; ratio *= 2)
	{
		Random random(9);
		Program program;
		Queue q(device, program);
		GjSetPair pair = {};
		uint64_t n = 0;
		double ms[2];

		pair.na = large;
		pair.nb = large / ratio;
		pair.a = q.upload(ascending(random, large, 20));
		pair.b = q.upload(ascending(random, large / ratio, 20 * ratio));
		pair.width = 4;
		for (int i = 0; i < 2; i++)
		{
			pair.algorithm = i == 0 ? GJ_SETS_MERGE_PATH : GJ_SETS_BINARY_SEARCH;
			ms[i] = median(q, 5,
						   [&] {
							   must(q, q.ops->sets->set_pair(q.queue, &pair, NULL, NULL, NULL, &n),
									"set_pair");
						   });
		}
		printf("  1 : %-4u %9.4f ms %9.4f ms\n", ratio, ms[0], ms[1]);
		if (ms[1] < ms[0] && skew == 0)
			skew = ratio;
		else if (ms[1] >= ms[0])
			skew = 0;
	}
	if (skew == 0)
		printf("  looking up is not faster up to there\n");
	else
		printf("#define GJ_SET_SKEW\t%u\n", skew);
}

void
bench_pairs(const Device &device)
{
	const uint32_t million = quick ? 10000 : 1000000;

	bench_gaps(device, 10 * million, 10 * million, 100, 100);
	bench_gaps(device, 100 * million, 100 * million, 20, 20);
	bench_gaps(device, 100 * million, million / 10, 20, 20000);
	for (uint32_t n : {million, 10 * million})
		for (uint32_t universe : {100 * million, 1000 * million})
			for (const char *distribution : {"uniform", "normal", "zipf"})
				bench_drawn(device, n, universe, distribution);
}

void
bench_sets(const Device &device)
{
	bench_pairs(device);
	bench_family(device, "BMS", 9, 1657, 2);
	bench_family(device, "ENRON", 135, 1100000, 6);
	bench_family(device, "ORKUT", 120, 8700000, 3);
	bench_family(device, "TWITTER", 66, 37000, 3);
	bench_family(device, "WORDS", 300, 100000, 4);
	bench_family(device, "dense", 100, 300, 1);
	print_skew_fit(device);
	print_family_fit();
}
