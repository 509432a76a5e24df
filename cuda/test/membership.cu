/*
 * membership.cu
 *	  Tests of what membership tables need: flag_changes and run_sizes, and families whose sets
 *	  have elements several times, against plain counting.
 */
#include <algorithm>
#include <map>

#include "device/set_plan.h"
#include "test.cuh"

/* ---- sorted rows */

static void
test_rows(const Device &device, Random &random, uint32_t n, uint32_t nkeys, uint32_t values)
{
	const std::string where = std::to_string(n) + " rows, " + std::to_string(nkeys) + " keys of " +
							  std::to_string(values);
	Program program;
	Queue q(device, program);
	std::vector<std::vector<int64_t>> rows(n, std::vector<int64_t>(nkeys));
	GjKeys keys = {};
	uint8_t *flags = (uint8_t *) q.alloc(n + 1);

	for (auto &row : rows)
		for (int64_t &value : row)
			value = (int64_t) (random() % values) * INT64_C(4000000000) - 1;
	std::sort(rows.begin(), rows.end());
	keys.nkeys = nkeys;
	keys.nrows = n;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		std::vector<int64_t> column;

		for (const auto &row : rows)
			column.push_back(row[k]);
		keys.value[k] = q.upload(column);
	}
	for (uint32_t some = 1; some <= nkeys; some++)
		for (const uint32_t distance : {1u, 2u, 7u, 64u, UINT32_MAX})
		{
			std::vector<uint8_t> expected(n);

			for (uint32_t i = 0; i < n; i++)
				expected[i] = i < distance || !std::equal(rows[i].begin(), rows[i].begin() + some,
														  rows[i - distance].begin());
			check(q.ops->sets->flag_changes(q.queue, &keys, some, distance, flags) == GJ_OK,
				  "flag_changes", where);
			check(q.download(flags, n) == expected, "flags of changes",
				  where + ", " + std::to_string(some) + " compared, distance " +
					  std::to_string(distance));
		}

	std::vector<uint32_t> starts;
	std::vector<int32_t> expected_size;

	for (uint32_t i = 0; i < n; i++)
	{
		if (i == 0 || rows[i] != rows[i - 1])
		{
			starts.push_back(i);
			expected_size.push_back(0);
		}
		expected_size.back()++;
	}

	const uint32_t nstarts = (uint32_t) starts.size();
	int32_t *size = (int32_t *) q.alloc(nstarts * sizeof(int32_t) + 4);

	check(q.ops->sets->run_sizes(q.queue, q.upload(starts), nstarts, n, size) == GJ_OK, "run_sizes",
		  where);
	check(q.download(size, nstarts) == expected_size, "sizes of runs", where);
}

/* ---- elements that are in a set several times */

static Sets
repeat_elements(Random &random, Sets sets, uint32_t most)
{
	for (auto &set : sets)
	{
		std::vector<int64_t> repeated;

		for (const int64_t element : set)
			repeated.insert(repeated.end(), 1 + random() % most, element);
		set = repeated;
	}
	return sets;
}

typedef std::map<std::pair<uint32_t, uint32_t>, uint32_t> Counts;

static Counts
count_pairs(const Sets &left, const Sets &right, bool self, double threshold)
{
	Counts counts;

	for (uint32_t l = 0; l < left.size(); l++)
		for (uint32_t r = self ? l + 1 : 0; r < right.size(); r++)
		{
			uint32_t count = 0;

			for (size_t i = 0, j = 0; i < left[l].size() && j < right[r].size();)
			{
				const int64_t x = left[l][i];
				const int64_t y = right[r][j];
				uint32_t m = 0;
				uint32_t n = 0;

				if (x != y)
				{
					i += x < y;
					j += y < x;
					continue;
				}
				for (; i < left[l].size() && left[l][i] == x; i++)
					m++;
				for (; j < right[r].size() && right[r][j] == x; j++)
					n++;
				count += m * n;
			}
			if ((double) count >= threshold)
				counts[{l, r}] = count;
		}
	return counts;
}

static void
test_multiple(const Device &device, const char *shape, const Sets &left, const Sets *right,
			  uint32_t width)
{
	for (const double threshold : {1.0, 3.0, 40.0, 1000.0})
		for (uint8_t algorithm = 0; algorithm < GJ_SETS_NALGORITHMS; algorithm++)
		{
			const std::string where = std::string(shape) + ", threshold " +
									  std::to_string(threshold) + ", algorithm " +
									  std::to_string(algorithm);
			GjSetSpec spec = {};
			Program program;
			Queue q(device, program);
			Counts found;
			GjSetTile tile;

			spec.predicate = GJ_SETS_OVERLAP;
			spec.threshold = threshold;
			spec.algorithm = algorithm;

			Family f(q, left, right, width, spec, true);

			if (!check(f.status == GJ_OK, "set_build with multiple elements",
					   where + ": " + q.ops->queues->queue_error(q.queue)))
				return;
			check(f.family.algorithm == GJ_SETS_INVERTED_INDEX, "algorithm", where);
			for (bool first = true; gj_set_next_tile(&f.family, &f.spec, &tile, first);
				 first = false)
			{
				uint32_t n = 12345;

				if (!check(q.ops->sets->set_tile(q.queue, &f.family, &f.spec, &tile, NULL, NULL,
												 f.out, &n) == GJ_OK,
						   "set_tile", q.ops->queues->queue_error(q.queue)))
					return;

				const std::vector<uint32_t> l = q.download(f.out[0], n);
				const std::vector<uint32_t> r = q.download(f.out[1], n);
				const std::vector<uint32_t> common = q.download(f.out[2], n);

				for (uint32_t i = 0; i < n; i++)
					found[{l[i], r[i]}] = common[i];
			}
			check(found == count_pairs(left, right ? *right : left, right == NULL, threshold),
				  "counts of multiple elements", where);
		}
}

void
test_membership(const Device &device)
{
	Random random(13);
	const Sets few = repeat_elements(random, random_sets(random, 60, 20, 300, 2), 3);
	const Sets many = repeat_elements(random, random_sets(random, 1500, 5, 200, 2), 2);
	const Sets hot = repeat_elements(random, random_sets(random, 40, 3, 10, 1), 200);
	const Sets none;

	for (const uint32_t n : sizes)
		if (n <= 100000 || !quick)
			for (uint32_t nkeys = 1; nkeys <= 3; nkeys++)
				for (const uint32_t values : {2u, 60u, 100000u})
					test_rows(device, random, n, nkeys, values);
	test_multiple(device, "few sets", few, NULL, 8);
	test_multiple(device, "few and many", few, &many, 8);
	test_multiple(device, "many and few", many, &few, 4);
	test_multiple(device, "hot elements", hot, NULL, 8);
	test_multiple(device, "hot elements and few", hot, &few, 8);
	test_multiple(device, "no set and few", none, &few, 8);
	group(device.ops->name, "membership");
}
