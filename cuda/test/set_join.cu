/*
 * set_join.cu
 *	  Tests of set_build and set_tile: families of many shapes, every algorithm and every
 *	  predicate, against a plain merge of each pair.
 */
#include <math.h>

#include <algorithm>

#include "device/set_plan.h"
#include "rows/similarity.h"
#include "test.cuh"

/* ---- families */

template <typename T>
static void *
upload_as(Queue &q, const Sets &left, const Sets *right)
{
	std::vector<T> elements;

	for (const auto &set : left)
		elements.insert(elements.end(), set.begin(), set.end());
	if (right)
		for (const auto &set : *right)
			elements.insert(elements.end(), set.begin(), set.end());
	elements.push_back(0); /* so that it is not empty */
	return q.upload(elements);
}

void *
upload_elements(Queue &q, const Sets &left, const Sets *right, uint32_t width)
{
	return width == 2   ? upload_as<int16_t>(q, left, right)
		   : width == 4 ? upload_as<int32_t>(q, left, right)
						: upload_as<int64_t>(q, left, right);
}

Family::Family(Queue &q, const Sets &left, const Sets *right, uint32_t width, GjSetSpec wanted,
			   bool multiple)
	: q(q), spec(wanted), family()
{
	GjSetInput sets = {};
	std::vector<int32_t> size;

	for (const auto &set : left)
		size.push_back((int32_t) set.size());
	for (size_t i = 0; right && i < right->size(); i++)
		size.push_back((int32_t) (*right)[i].size());
	for (int32_t n : size)
		sets.nvalues += n;
	spec.self = right == NULL;
	spec.nleft = (uint32_t) left.size();
	spec.nright = right ? (uint32_t) right->size() : 0;
	sets.size = q.upload(size);
	sets.nsets = (uint32_t) size.size();
	sets.width = width;
	sets.multiple = multiple;
	sets.values = upload_elements(q, left, right, width);
	for (uint32_t *&o : out)
		o = (uint32_t *) q.alloc(GJ_SET_MOST_PAIRS * sizeof(uint32_t));
	status = q.ops->sets->set_build(q.queue, &sets, &spec, NULL, NULL, &family);
	family.tile_pairs = GJ_SET_MOST_PAIRS;
}

Family::~Family()
{
	q.ops->sets->set_free(q.queue, &family);
}

bool
too_many(const Sets &left, const Sets *right)
{
	uint64_t n = 0;

	for (const std::vector<int64_t> &set : left)
		n += set.size();
	for (size_t s = 0; right && s < right->size(); s++)
		n += (*right)[s].size();
	return n > (uint64_t) most * 8;
}

Sets
random_sets(Random &random, uint32_t nsets, uint32_t size, uint64_t universe, double skew)
{
	Sets sets(nsets);

	for (auto &set : sets)
	{
		/* sizes from none to twice the average */
		const uint32_t n = size <= 1 ? size : (uint32_t) (random() % (2 * (uint64_t) size + 1));

		for (uint32_t i = 0; i < n; i++)
		{
			const double x = (double) (random() >> 11) / 9007199254740992.0;

			set.push_back((int64_t) (pow(x, skew) * (double) universe) - (int64_t) (universe / 3));
		}
		std::sort(set.begin(), set.end());
		set.erase(std::unique(set.begin(), set.end()), set.end());
	}
	return sets;
}

/* ---- the reference */

struct Pair
{
	uint32_t left;
	uint32_t right;
	uint32_t common;

	bool
	operator==(const Pair &o) const
	{
		return left == o.left && right == o.right && common == o.common;
	}
	bool
	operator<(const Pair &o) const
	{
		return left != o.left ? left < o.left : right < o.right;
	}
};

typedef std::vector<Pair> Pairs;

static Pairs
all_pairs(const Sets &left, const Sets &right)
{
	Pairs pairs;
	std::vector<int64_t> both;

	for (uint32_t l = 0; l < left.size(); l++)
		for (uint32_t r = 0; r < right.size(); r++)
		{
			both.clear();
			std::set_intersection(left[l].begin(), left[l].end(), right[r].begin(), right[r].end(),
								  std::back_inserter(both));
			pairs.push_back({l, r, (uint32_t) both.size()});
		}
	return pairs;
}

static Pairs
expected_matches(const Pairs &all, const Sets &left, const Sets &right, const GjSetSpec &spec)
{
	Pairs pairs;

	for (const Pair &p : all)
		if ((!spec.self || p.left < p.right) &&
			gj_set_matches(spec.predicate, spec.threshold, p.common, left[p.left].size(),
						   right[p.right].size()))
			pairs.push_back(p);
	return pairs;
}

/* The best of each left set, in the order of left set and rank. */
static Pairs
best_pairs(Pairs all, const Sets &left, const Sets &right, const GjSetSpec &spec)
{
	const auto score = [&](const Pair &p)
	{ return gj_set_score(spec.predicate, p.common, left[p.left].size(), right[p.right].size()); };
	Pairs pairs;
	uint32_t rank = 0;

	std::sort(all.begin(), all.end(),
			  [&](const Pair &a, const Pair &b)
			  {
				  if (a.left != b.left)
					  return a.left < b.left;
				  if (score(a) != score(b))
					  return score(a) > score(b);
				  return a.right < b.right;
			  });
	for (const Pair &p : all)
	{
		if (p.common == 0 || (spec.self && p.left == p.right))
			continue;
		rank = pairs.empty() || pairs.back().left != p.left ? 0 : rank + 1;
		if (rank < spec.top_k)
			pairs.push_back(p);
	}
	return pairs;
}

/* ---- the device */

/* Runs all tiles.  Each tile's pairs must come in order. */
static Pairs
run_tiles(Family &f, bool *ordered)
{
	Pairs pairs;
	GjSetTile tile;

	*ordered = true;
	for (bool first = true; gj_set_next_tile(&f.family, &f.spec, &tile, first); first = false)
	{
		uint32_t n = 12345;
		std::vector<uint32_t> out[3];

		if (!check(f.q.ops->sets->set_tile(f.q.queue, &f.family, &f.spec, &tile, NULL, NULL, f.out,
										   &n) == GJ_OK,
				   "set_tile", f.q.ops->queues->queue_error(f.q.queue)))
			return pairs;
		for (int i = 0; i < 3; i++)
			out[i] = f.q.download(f.out[i], n);
		for (uint32_t i = 0; i < n; i++)
		{
			const Pair p = {out[0][i], out[1][i], out[2][i]};

			*ordered &=
				i == 0 || (f.spec.top_k > 0 ? pairs.back().left <= p.left : pairs.back() < p);
			pairs.push_back(p);
		}
	}
	return pairs;
}

static void
test_spec(const Device &device, const char *shape, const Sets &left, const Sets *right,
		  const Pairs &expected, uint32_t width, uint32_t tile_pairs, GjSetSpec spec)
{
	if (too_many(left, right))
		return;

	const std::string where =
		std::string(shape) + (right ? ", two families" : ", one family") + ", width " +
		std::to_string(width) + ", algorithm " + std::to_string(spec.algorithm) + ", predicate " +
		std::to_string(spec.predicate) + ", threshold " + std::to_string(spec.threshold) +
		", top " + std::to_string(spec.top_k) + ", tiles of " + std::to_string(tile_pairs);
	Program program;
	Queue q(device, program);
	Family f(q, left, right, width, spec);
	bool ordered;
	Pairs pairs;

	if (!check(f.status == GJ_OK, "set_build", where + ": " + q.ops->queues->queue_error(q.queue)))
		return;
	check(spec.algorithm == GJ_SETS_AUTO || f.family.algorithm == spec.algorithm, "algorithm",
		  where);
	f.family.tile_pairs = tile_pairs;
	pairs = run_tiles(f, &ordered);
	check(ordered, "order of pairs", where);
	/* tiles of right sets each give their best: together they have the best of all */
	if (spec.top_k > 0)
		pairs = best_pairs(pairs, left, right ? *right : left, f.spec);
	else
		std::sort(pairs.begin(), pairs.end());
	if (check(pairs.size() == expected.size(), "number of pairs",
			  where + ": " + std::to_string(pairs.size()) + ", not " +
				  std::to_string(expected.size())))
		check(pairs == expected, "pairs", where);
}

#define FEW_PAIRS 1500 /* of a tile */

static void
test_family(const Device &device, const char *shape, const Sets &left, const Sets *right,
			uint32_t width)
{
	static const struct
	{
		uint8_t predicate;
		double threshold;
		uint32_t top_k;
	} specs[] = {
		{GJ_SETS_ALL, 0, 0},       {GJ_SETS_OVERLAP, 1, 0},   {GJ_SETS_OVERLAP, 3, 0},
		{GJ_SETS_CONTAINS, 0, 0},  {GJ_SETS_CONTAINED, 0, 0}, {GJ_SETS_EQUALS, 0, 0},
		{GJ_SETS_JACCARD, 0.3, 0}, {GJ_SETS_COSINE, 0.8, 0},  {GJ_SETS_CONTAINMENT, 0.5, 0},
		{GJ_SETS_OVERLAP, 0, 3},   {GJ_SETS_JACCARD, 0, 100}, {GJ_SETS_OVERLAP, 0, 5000}};
	const Sets &other = right ? *right : left;
	const Pairs all = all_pairs(left, other);

	for (const auto &s : specs)
	{
		GjSetSpec spec = {};
		Pairs expected;

		/* many pairs: a predicate of each kind is enough */
		if ((all.size() > GJ_MAX_TUPLES || under_tool()) && s.predicate != GJ_SETS_JACCARD &&
			!(s.predicate == GJ_SETS_OVERLAP && s.top_k == 3))
			continue;
		spec.predicate = s.predicate;
		spec.threshold = s.threshold;
		spec.top_k = s.top_k;
		spec.self = right == NULL;
		expected = spec.top_k > 0 ? best_pairs(all, left, other, spec)
								  : expected_matches(all, left, other, spec);
		for (uint8_t algorithm = 0; algorithm < GJ_SETS_NALGORITHMS; algorithm++)
		{
			spec.algorithm = algorithm;
			test_spec(device, shape, left, right, expected, width, GJ_SET_MOST_PAIRS, spec);
			/* several tiles, each of the size that runs use or, of small families, of less */
			if (all.size() > GJ_MAX_TUPLES)
				test_spec(device, shape, left, right, expected, width, GJ_MAX_TUPLES, spec);
			else if (other.size() <= FEW_PAIRS)
				test_spec(device, shape, left, right, expected, width, FEW_PAIRS, spec);
		}
	}
}

/* ---- shapes */

/* Sets with nothing in common, the same set again and again, and each set in the next one. */
static Sets
special_sets(uint32_t nsets, uint32_t size, int kind)
{
	Sets sets(nsets);

	for (uint32_t s = 0; s < nsets; s++)
		for (uint32_t i = 0; i < (kind == 2 ? s * size : size); i++)
			sets[s].push_back(kind == 0 ? (int64_t) s * size + i : (int64_t) i * 3 - 100);
	return sets;
}

/* So many right sets and frequent elements that a GPU multiplies them in parts. */
static void
test_wide_matrix(const Device &device, Random &random)
{
	const Sets left = random_sets(random, 3, 200, 20000, 1);
	const Sets right = random_sets(random, 8300, 200, 20000, 1);
	const Pairs all = all_pairs(left, right);
	GjSetSpec spec = {};

	spec.algorithm = GJ_SETS_MATRIX;
	spec.predicate = GJ_SETS_OVERLAP;
	spec.threshold = 2;
	test_spec(device, "wide matrix", left, &right, expected_matches(all, left, right, spec), 4,
			  GJ_SET_MOST_PAIRS, spec);
}

static void
test_bad_input(const Device &device)
{
	const Sets unordered = {{1, 2, 3}, {5, 4}};
	const Sets twice = {{1, 2, 3}, {4, 4}};
	GjSetSpec spec = {};

	for (const Sets *sets : {&unordered, &twice})
	{
		Program program;
		Queue q(device, program);
		Family f(q, *sets, NULL, 4, spec);

		check(f.status == GJ_BAD_PROGRAM, "set_build of sets that are not in order", "");
	}
}

void
test_set_join(const Device &device)
{
	Random random(11);
	const Sets none;
	const Sets empty(3);
	const Sets uniform = random_sets(random, 130, 40, 1000, 1);
	const Sets zipf = random_sets(random, 200, 30, 1000000000, 8);
	const Sets dense = random_sets(random, 150, 300, 500, 1);
	const Sets small = random_sets(random, 20, 30, 3000, 1);
	const Sets wide = random_sets(random, 1, 3, 900, 1);
	const Sets large = random_sets(random, 3, 12000, 50000, 1);
	const Sets very_many = random_sets(random, 9000, 3, 2000, 3);

	test_family(device, "uniform", uniform, NULL, 2);
	test_family(device, "uniform and dense", uniform, &dense, 4);
	test_family(device, "zipf", zipf, NULL, 4);
	test_family(device, "zipf and uniform", zipf, &uniform, 8);
	test_family(device, "dense", dense, NULL, 8);
	test_family(device, "large and small", large, &small, 4);
	test_family(device, "one and many", wide, &dense, 4);
	test_family(device, "many and one", dense, &wide, 4);
	/* more right sets than a tile of a matrix has */
	test_family(device, "few and very many", random_sets(random, 3, 20, 2000, 3), &very_many, 4);
	test_family(device, "disjoint", special_sets(40, 20, 0), NULL, 4);
	test_family(device, "equal", special_sets(40, 20, 1), NULL, 4);
	test_family(device, "nested", special_sets(40, 20, 2), NULL, 4);
	test_family(device, "one element", random_sets(random, 100, 1, 30, 1), NULL, 4);
	test_family(device, "empty sets", empty, NULL, 4);
	test_family(device, "empty sets and others", empty, &small, 4);
	test_family(device, "no set", none, NULL, 4);
	test_family(device, "no set and others", none, &small, 4);
	test_family(device, "others and no set", small, &none, 4);
	if (!quick)
	{
		/* more than a tile on both sides; sets that are worth the whole GPU */
		const Sets many = random_sets(random, 1300, 6, 2000, 3);
		const Sets others = random_sets(random, 1100, 6, 2000, 3);
		const Sets huge = {special_sets(1, 1000000, 1)[0], special_sets(1, 300000, 0)[0],
						   random_sets(random, 1, 100000, 1000000, 1)[0]};

		test_family(device, "many", many, NULL, 4);
		test_family(device, "many and others", many, &others, 8);
		test_family(device, "huge", huge, NULL, 4);
		test_family(device, "huge and one", huge, &wide, 8);
	}
	test_wide_matrix(device, random);
	test_bad_input(device);
	group(device.ops->name, "set_build, set_tile");
}
