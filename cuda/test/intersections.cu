/*
 * intersections.cu
 *	  Tests of the table of distinct intersections: what it finds of families of many shapes,
 *	  whole and in parts, against a map; and two intersections of one hash.
 */
#include <algorithm>
#include <iterator>
#include <map>

#include "device/intersections.h"
#include "device/set_plan.h"
#include "test.cuh"

typedef std::map<std::vector<int64_t>, int64_t> Frequencies;

/* The first set that makes a pair with set l of one family, of which `same` each have one id. */
static uint32_t
first_behind(size_t l, uint32_t same)
{
	return (uint32_t) (l / same + 1) * same;
}

static Frequencies
expected_frequencies(const Sets &left, const Sets *right, uint32_t same)
{
	const Sets &other = right ? *right : left;
	Frequencies frequencies;
	std::vector<int64_t> both;

	for (size_t l = 0; l < left.size(); l++)
		for (size_t r = right ? 0 : first_behind(l, same); r < other.size(); r++)
		{
			both.clear();
			std::set_intersection(left[l].begin(), left[l].end(), other[r].begin(), other[r].end(),
								  std::back_inserter(both));
			if (!both.empty())
				frequencies[both]++;
		}
	return frequencies;
}

/* ---- the device */

/* An array on the device that grows. */
template <typename T>
static void
grow(Queue &q, T *&array, uint64_t used, uint64_t n)
{
	T *larger = (T *) q.alloc(n * sizeof(T) + 8);

	if (used > 0)
		check(q.ops->memory->copy(q.queue, larger, array, used * sizeof(T)) == GJ_OK, "copy", "");
	array = larger;
}

struct Table
{
	Family &f;
	const void *elements;
	uint32_t width;
	GjIntersections found;
	uint64_t room;
	GjFoundPairs pairs;

	Table(Family &f, const void *elements, uint32_t width)
		: f(f), elements(elements), width(width), found(), room(0), pairs()
	{
		pairs.hash = (uint64_t *) f.q.alloc(GJ_MAX_TUPLES * sizeof(uint64_t));
		pairs.slot_of = (uint32_t *) f.q.alloc(GJ_MAX_TUPLES * sizeof(uint32_t));
		pairs.positions = (uint32_t *) f.q.alloc(GJ_MAX_TUPLES * sizeof(uint32_t));
	}
	Table(const Table &) = delete;

	bool
	ok(GjStatus status, const char *what)
	{
		return check(status == GJ_OK, what, f.q.ops->queues->queue_error(f.q.queue));
	}
	/* Looks up pairs first .. first+n-1 of a tile. */
	bool
	count(uint32_t first, uint32_t n)
	{
		const GjDeviceOps *ops = f.q.ops;
		uint32_t nnew = 0;

		pairs.n = n;
		pairs.left = f.out[0] + first;
		pairs.right = f.out[1] + first;
		pairs.common = f.out[2] + first;
		/* not a power of two, and as full as it may be */
		if (found.nslots < 2 * ((uint64_t) found.n + n) + 1)
		{
			found.nslots = 2 * ((uint64_t) found.n + n) + 1;
			found.slots = (uint64_t *) f.q.alloc(found.nslots * sizeof(uint64_t));
			if (!ok(ops->sets->intersections_rehash(f.q.queue, &found), "intersections_rehash"))
				return false;
		}
		if (!ok(ops->sets->intersections_find(f.q.queue, &f.family, &found, &pairs, never, NULL,
											  &nnew),
				"intersections_find"))
			return false;
		if (found.n + nnew > room)
		{
			room = found.n + nnew + 1000;
			grow(f.q, found.hash, found.n, room);
			grow(f.q, found.left, found.n, room);
			grow(f.q, found.right, found.n, room);
			grow(f.q, found.common, found.n, room);
			grow(f.q, found.frequency, found.n, room);
		}
		if (!ok(ops->sets->intersections_add(f.q.queue, &found, &pairs, nnew), "intersections_add"))
			return false;
		found.n += nnew;
		return true;
	}
	/* Counts all pairs whose intersection belongs to the part; some pairs at a time. */
	bool
	count_all(uint64_t first, uint64_t last, uint32_t some)
	{
		GjSetTile tile;

		found.n = 0;
		found.nslots = 0;
		found.first = first;
		found.last = last;
		for (bool start = true; gj_set_next_tile(&f.family, &f.spec, &tile, start); start = false)
		{
			uint32_t n = 0;

			if (!ok(f.q.ops->sets->set_tile(f.q.queue, &f.family, &f.spec, &tile, NULL, NULL, f.out,
											&n),
					"set_tile"))
				return false;
			for (uint32_t i = 0; i < n; i += some)
				if (!count(i, std::min(some, n - i)))
					return false;
		}
		return true;
	}
	/* Adds what is in the table, `max` of up to `space` elements at a time; returns how many. */
	template <typename T>
	size_t
	read(uint32_t max, uint64_t space, Frequencies *frequencies)
	{
		const GjDeviceOps *ops = f.q.ops;
		uint64_t *at = (uint64_t *) f.q.alloc((max + UINT64_C(1)) * sizeof(uint64_t));
		size_t nread = 0;

		for (uint32_t first = 0, n = 0; first < found.n; first += n)
		{
			uint64_t total = 0;
			std::vector<int64_t> set;

			if (!ok(ops->sets->intersections_place(f.q.queue, &found, first, max, space, at, &n,
												   &total),
					"intersections_place") ||
				!check(n > 0 && n <= max && (total <= space || n == 1), "places",
					   std::to_string(n)))
				break;

			T *values = (T *) f.q.alloc(total * sizeof(T));
			int64_t *frequency = (int64_t *) f.q.alloc(total * sizeof(int64_t));

			if (!ok(ops->sets->intersections_write(f.q.queue, &f.family, &found, elements, width,
												   first, n, at, never, NULL, values, frequency),
					"intersections_write"))
				break;

			const std::vector<T> v = f.q.download(values, total);
			const std::vector<int64_t> c = f.q.download(frequency, total);

			for (uint64_t i = 0; i < total; i++)
			{
				set.push_back(v[i]);
				if (c[i] == 0)
					continue;
				(*frequencies)[set] += c[i];
				set.clear();
				nread++;
			}
			check(set.empty() && nread == first + n, "intersections that were written",
				  std::to_string(nread));
		}
		return nread;
	}
	size_t
	read_all(uint32_t max, uint64_t space, Frequencies *frequencies)
	{
		if (width == 2)
			return read<int16_t>(max, space, frequencies);
		if (width == 4)
			return read<int32_t>(max, space, frequencies);
		return read<int64_t>(max, space, frequencies);
	}
};

static void
test_family(const Device &device, const char *shape, const Sets &left, const Sets *right,
			uint32_t width, uint8_t algorithm, uint32_t same = 1)
{
	if (too_many(left, right))
		return;

	const std::string where = std::string(shape) + ", width " + std::to_string(width) +
							  ", algorithm " + std::to_string(algorithm) + ", of one id " +
							  std::to_string(same);
	const Frequencies expected = expected_frequencies(left, right, same);
	std::vector<uint32_t> behind;
	Program program;
	Queue q(device, program);
	GjSetSpec spec = {};
	const void *elements = upload_elements(q, left, right, width);

	spec.algorithm = algorithm;
	spec.predicate = GJ_SETS_OVERLAP;
	spec.threshold = 1;

	Family f(q, left, right, width, spec);
	Table table(f, elements, width);

	if (!check(f.status == GJ_OK, "set_build", where))
		return;
	for (size_t l = 0; l < left.size(); l++)
		behind.push_back(first_behind(l, same));
	if (same > 1)
		table.pairs.behind = q.upload(behind);
	for (const uint32_t parts : {1u, 3u})
	{
		Frequencies frequencies;
		size_t nread = 0;

		for (uint32_t p = 0; p < parts; p++)
		{
			const uint64_t span = UINT64_MAX / parts;

			if (!table.count_all(p * span + (p > 0), p + 1 < parts ? (p + 1) * span : UINT64_MAX,
								 parts > 1 ? 1000 : GJ_MAX_TUPLES))
				return;
			nread += table.read_all(parts > 1 ? 7 : 100000, parts > 1 ? 20 : 100000, &frequencies);
		}
		check(nread == expected.size() && frequencies == expected, "distinct intersections",
			  where + ", parts " + std::to_string(parts) + ": " + std::to_string(nread) + ", not " +
				  std::to_string(expected.size()));
	}
}

/*
 * Two sets of eight elements each whose hashes are equal, as long as their codes are their
 * values: each value below 5120 is in two sets.
 */
static void
test_equal_hashes(const Device &device)
{
	const std::vector<int64_t> a = {239, 741, 1306, 2049, 2659, 3210, 4063, 4502};
	const std::vector<int64_t> b = {375, 1210, 1832, 2468, 3056, 3740, 4339, 5023};
	uint64_t difference = 0;
	Sets sets;
	Sets rest(3);

	for (size_t i = 0; i < a.size(); i++)
		difference += gj_intersection_hash((uint32_t) a[i]) - gj_intersection_hash((uint32_t) b[i]);
	check(difference == 0, "equal hashes", "");
	for (int64_t e = 0; e < 5120; e++)
		if (!std::binary_search(a.begin(), a.end(), e) &&
			!std::binary_search(b.begin(), b.end(), e))
			rest[e % 3].push_back(e);
	for (int i = 0; i < 2; i++)
	{
		sets.push_back(a);
		sets.push_back(b);
		sets.insert(sets.end(), rest.begin(), rest.end());
	}
	test_family(device, "equal hashes", sets, NULL, 4, GJ_SETS_INVERTED_INDEX);
	/* the same with sets that are worked on in slices */
	sets.push_back({});
	for (int64_t e = 10000; e < 20000; e++)
		sets.back().push_back(e);
	sets.push_back(sets.back());
	test_family(device, "equal hashes and large sets", sets, NULL, 4, GJ_SETS_MERGE_PATH);
}

void
test_intersections(const Device &device)
{
	Random random(13);
	const Sets none;
	const Sets empty(3);
	const Sets uniform = random_sets(random, 130, 40, 1000, 1);
	const Sets zipf = random_sets(random, 200, 30, 1000000000, 8);
	const Sets dense = random_sets(random, 100, 20, 40, 1);
	const Sets large = random_sets(random, 5, 12000, 50000, 1);
	Sets same(90);

	/* few intersections that many pairs have */
	for (size_t s = 0; s < same.size(); s++)
		for (int64_t e = 0; e < 20; e++)
			same[s].push_back(e * 3 + (int64_t) (s % 3) * 30 - 40);
	for (uint8_t algorithm = 0; algorithm < GJ_SETS_NALGORITHMS; algorithm++)
	{
		test_family(device, "uniform", uniform, NULL, 2, algorithm);
		test_family(device, "zipf and uniform", zipf, &uniform, 8, algorithm);
	}
	test_family(device, "uniform and zipf", uniform, &zipf, 4, GJ_SETS_AUTO);
	test_family(device, "dense", dense, NULL, 4, GJ_SETS_AUTO);
	test_family(device, "dense", dense, NULL, 4, GJ_SETS_AUTO, 7);
	test_family(device, "the same again and again", same, NULL, 8, GJ_SETS_AUTO);
	/* smaller sets of several slices, with and without others */
	test_family(device, "large", large, NULL, 4, GJ_SETS_AUTO);
	test_family(device, "large and uniform", large, &uniform, 8, GJ_SETS_INVERTED_INDEX);
	test_family(device, "uniform and large", uniform, &large, 4, GJ_SETS_AUTO);
	test_family(device, "empty sets", empty, NULL, 4, GJ_SETS_AUTO);
	test_family(device, "no set and others", none, &uniform, 4, GJ_SETS_AUTO);
	test_equal_hashes(device);
	if (!quick)
		test_family(device, "many", random_sets(random, 1200, 20, 200, 1), NULL, 4, GJ_SETS_AUTO);
	group(device.ops->name, "intersections");
}
