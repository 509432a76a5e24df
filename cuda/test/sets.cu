/*
 * sets.cu
 *	  Tests of sort_unique and set_pair.
 */
#include <algorithm>

#include "test.cuh"

template <typename T>
static std::vector<T>
random_values(Random &random, uint32_t n, uint64_t range)
{
	std::vector<T> values(n);

	for (T &v : values)
	{
		const uint64_t r = range ? random() % range : random();

		/* negative numbers too */
		v = (T) (range ? (int64_t) r - (int64_t) (range / 2) : (int64_t) r);
	}
	return values;
}

template <typename T>
static std::vector<T>
sorted(std::vector<T> values)
{
	std::sort(values.begin(), values.end());
	values.erase(std::unique(values.begin(), values.end()), values.end());
	return values;
}

template <typename T>
static void
test_sort(const Device &device, Random &random, uint32_t n, uint64_t range)
{
	const std::string where = "n = " + std::to_string(n) + ", width " + std::to_string(sizeof(T));
	std::vector<T> values = random_values<T>(random, n, range);
	std::vector<T> expected = sorted(values);
	Program program;
	Queue q(device, program);
	T *memory = q.upload(values);
	uint64_t m = 12345;

	check(q.ops->sets->sort_unique(q.queue, memory, sizeof(T), n, NULL, NULL, &m) == GJ_OK,
		  "sort_unique", q.ops->queues->queue_error(q.queue));
	if (check(m == expected.size(), "number of values", where))
		check(q.download(memory, m) == expected, "sorted values", where);
}

/* What an operation makes of two sets, by the standard library. */
template <typename T>
static std::vector<T>
reference(GjSetOperation operation, const std::vector<T> &a, const std::vector<T> &b)
{
	std::vector<T> result;

	if (operation == GJ_SETS_UNION)
		std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
	else if (operation == GJ_SETS_EXCEPT)
		std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
	else
		std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
	return result;
}

template <typename T>
static void
test_operation(Queue &q, GjSetPair pair, const std::vector<T> &expected, T *result)
{
	const std::string where =
		"na = " + std::to_string(pair.na) + ", nb = " + std::to_string(pair.nb) + ", width " +
		std::to_string(sizeof(T)) + ", operation " + std::to_string(pair.operation) +
		", algorithm " + std::to_string(pair.algorithm);
	uint64_t n = 12345;

	check(q.ops->sets->set_pair(q.queue, &pair, NULL, NULL, NULL, &n) == GJ_OK, "set_pair",
		  q.ops->queues->queue_error(q.queue));
	check(n == expected.size(), "count only", where);
	n = 12345;
	check(q.ops->sets->set_pair(q.queue, &pair, NULL, NULL, result, &n) == GJ_OK, "set_pair",
		  q.ops->queues->queue_error(q.queue));
	if (check(n == expected.size(), "count", where))
		check(q.download(result, n) == expected, "values", where);
}

/* Every operation by every algorithm that it has. */
template <typename T>
static void
test_pair(const Device &device, const std::vector<T> &a, const std::vector<T> &b)
{
	Program program;
	Queue q(device, program);
	GjSetPair pair = {};
	T *result = (T *) q.alloc((a.size() + b.size() + 1) * sizeof(T));

	pair.a = q.upload(a);
	pair.na = a.size();
	pair.b = q.upload(b);
	pair.nb = b.size();
	pair.width = sizeof(T);
	for (uint8_t operation : {GJ_SETS_INTERSECT, GJ_SETS_UNION, GJ_SETS_EXCEPT})
	{
		const std::vector<T> expected = reference((GjSetOperation) operation, a, b);

		pair.operation = operation;
		for (uint8_t algorithm = 0; algorithm < GJ_SETS_NALGORITHMS; algorithm++)
		{
			pair.algorithm = algorithm;
			if (operation == GJ_SETS_INTERSECT || algorithm == GJ_SETS_AUTO)
				test_operation(q, pair, expected, result);
		}
	}
}

template <typename T>
static void
test_width(const Device &device, Random &random)
{
	std::vector<T> extremes =
		sorted(std::vector<T>{(T) (UINT64_C(1) << (sizeof(T) * 8 - 1)),
							  (T) ~(UINT64_C(1) << (sizeof(T) * 8 - 1)), 0, -1, 1});

	for (uint32_t n : sizes)
	{
		std::vector<T> a = sorted(random_values<T>(random, n, (uint64_t) n * 3 + 1));
		std::vector<T> b = sorted(random_values<T>(random, n / 2 + 1, (uint64_t) n * 3 + 1));
		std::vector<T> above = a;

		test_sort<T>(device, random, n, 0);
		test_sort<T>(device, random, n, n / 4 + 1);
		test_sort<T>(device, random, n, 1);
		test_pair(device, a, b);
		test_pair(device, b, a);
		test_pair(device, a, a);
		test_pair(device, a, std::vector<T>());
		test_pair(device, sorted(random_values<T>(random, n, 0)), extremes);
		/* disjoint: one after the other */
		above.erase(std::remove_if(above.begin(), above.end(), [](T v) { return v < 0; }),
					above.end());
		a.erase(std::remove_if(a.begin(), a.end(), [](T v) { return v >= 0; }), a.end());
		test_pair(device, a, above);
		test_pair(device, above, a);
	}
	/* ranges of the merged order that have few values of one set, or just not so few; many are
	 * equal */
	for (uint32_t ratio : {5u, 7u, 8u, 9u, 16u, 40u, 300u})
	{
		const std::vector<T> many = sorted(random_values<T>(random, 30000, 45000));
		const std::vector<T> few = sorted(random_values<T>(random, 30000 / ratio, 45000));

		test_pair(device, few, many);
		test_pair(device, many, few);
	}
	test_pair(device, extremes, extremes);
	test_pair(device, extremes, std::vector<T>(extremes.begin() + 1, extremes.end()));
}

void
test_sets(const Device &device)
{
	Random random(7);

	test_width<int16_t>(device, random);
	test_width<int32_t>(device, random);
	test_width<int64_t>(device, random);
	group(device.ops->name, "sort_unique, set_pair");
}
